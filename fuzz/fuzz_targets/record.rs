//! Any text is a record or an error; what is a record can be settled, sealed, opened and gone on with, at any width, and calls no tool
//! that it says was called.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lisp_runtime::record::Settled;
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Limits, LimitsRequest, Record, Tool, ToolError};
use std::sync::LazyLock;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let limits = Limits::default().with_timeout_ms(500).with_heap_bytes(1 << 20).with_fuel(200_000);
    Engine::builder()
        .limits(limits)
        .grant(Tool::new("write", |call| call.get::<i64>("n")).with_effect(Effect::Write))
        .grant(Tool::new("cached", |call| call.get::<i64>("n")).cached().with_effect(Effect::Read))
        .grant(Tool::new("fails", |_| Err::<(), _>(ToolError::new("no"))).with_effect(Effect::Read))
        .build()
        .expect("an engine")
});

fuzz_target!(|text: &str| {
    let Ok(mut record) = Record::parse(text) else { return };
    let again = Record::parse(record.text()).expect("a record is one");
    assert_eq!(again, record);
    let _ = (record.answer(), record.program(), record.external_tools());
    let sealed = record.seal(&[7; 32], "a", 10).expect("there is a key");
    assert_eq!(Record::unseal(&sealed, &[7; 32], "a", 9).as_ref(), Ok(&record));
    let how = [Settled::Done("[1]".to_owned()), Settled::Failed("no".to_owned()), Settled::NotMade];
    for (call, how) in record.open_calls().into_iter().zip(how.iter().cycle()) {
        record.settle(&call.name, how.clone()).expect("an open call");
    }
    if let Ok((program, input, recording)) = ENGINE.open_record(&record, &[]) {
        // A fuzzer has not the time that a program of its own asks for.
        let mut asked = LimitsRequest::default();
        (asked.timeout_ms, asked.parallel_workers) = (Some(500), Some(4));
        ENGINE.run(&program, input.limits_over(&asked));
        recording.record().expect("what was written is a record");
    }
});
