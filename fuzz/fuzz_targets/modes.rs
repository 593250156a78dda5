//! Whole programs under three rhythms of compaction and slicing: value, prints, error and fuel must be the same.
#![no_main]

mod shared;

use libfuzzer_sys::{Corpus, fuzz_target};
use lisp_core::compile::Program;
use lisp_core::heap::TextBuf;
use lisp_core::syntax::ReadLimits;
use lisp_core::text::pr_str;
use lisp_core::vm::{Effect, Ending, Grant, Machine, Settings, Step};
use lisp_core::{Error, Reason};
use shared::Source;
use std::sync::Arc;

/// What a program may not notice: how often the heap is compacted, and how much fuel comes at once.
const RHYTHMS: [(Option<u64>, u64); 3] = [(None, 1_000_000), (Some(1), 1_000_000), (Some(3), 500)];

fn run(program: &Arc<Program>, compact_every: Option<u64>, slice: u64) -> (String, Vec<String>, u64, bool) {
    // So little that what is held at most, copied at every allocation, takes no more than seconds.
    let settings =
        Settings { fuel: Some(20_000), heap_bytes: 1 << 17, now_ms: Some(0), compact_every, ..Settings::default() };
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
    if let Err(error) = machine.load(program.clone()) {
        return (error.to_string(), Vec::new(), 0, false);
    }
    let ending = loop {
        match machine.resume(slice) {
            Step::Paused => {}
            Step::Effect(Effect::ToolCall) => drop(machine.reply_from_call(|h, _, args| h.vector(args))),
            Step::Effect(Effect::Parallel) => machine.stop(Error::new(Reason::RuntimeError, "no workers here")),
            Step::Effect(Effect::Clock) => machine.tell_time(0),
            Step::Done(ending) => break ending,
        }
    };
    let text = match ending {
        Ending::Error(error) => format!("{error} at {:?}", error.span),
        _ => machine.with_result(|h, value| {
            h.unmetered(1 << 26, u64::MAX, || {
                let mut out = TextBuf::new(h);
                pr_str(h, value, &mut out).map(|()| out.into_string()).unwrap_or_default()
            })
        }),
    };
    let prints = machine.take_prints();
    // Memory runs out at another point when more of it is garbage, and so may a limit that is a little below.
    let out_of_memory = text.contains("memory_exceeded") || text.contains("its budget is");
    (text, prints, machine.usage().fuel, out_of_memory)
}

fuzz_target!(|source: Source| -> Corpus {
    let Ok(program) = Program::compile(&source.0, &ReadLimits::default()) else { return Corpus::Reject };
    let program = Arc::new(program);
    let came = RHYTHMS.map(|(every, slice)| run(&program, every, slice));
    if came.iter().any(|came| came.3) {
        return Corpus::Keep;
    }
    assert_eq!(came[0], came[1], "compaction at every allocation");
    assert_eq!(came[0], came[2], "compaction at every third, in slices");
    Corpus::Keep
});
