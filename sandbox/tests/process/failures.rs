//! Parallel calls whose workers fail, behind the process door: what they come to is what they come to in-process.
//!
//! `PTC_FAILING_PROGRAMS` says how many programs there are: 60 unless it is set.

use crate::failing::{Bounds, Maker, came_to, with_tools};
use lisp_runtime::{Engine, Outcome, Record, Recording};
use lisp_sandbox::Sandbox;

/// A run at one door, recorded, cut behind some of its lines, goes on at both.
fn cut(engine: &Engine, sandbox: &Sandbox, source: &str, bounds: Bounds, each: &mut dyn FnMut(String, Outcome)) {
    let recording = Recording::new();
    each("recorded".to_owned(), sandbox.eval(source, &bounds.input(8).record(&recording)));
    let text = recording.text();
    let all = text.lines().count();
    for lines in [1, all / 3, 2 * all / 3, all].into_iter().filter(|&lines| lines > 0) {
        let cut: String = text.split_inclusive('\n').take(lines).collect();
        for process in [true, false] {
            let (program, input, _) = engine.open_record(&Record::parse(cut.clone()).unwrap(), &[]).unwrap();
            let input = input.limits_over(&bounds.limits(8));
            let outcome = if process { sandbox.eval(program.source(), &input) } else { engine.run(&program, input) };
            each(format!("cut behind line {lines}, process {process}\n{text}"), outcome);
        }
    }
}

pub(crate) fn come_to_one_answer(_: &Sandbox) {
    let programs = std::env::var("PTC_FAILING_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let engine = with_tools(Engine::builder());
    let alone = with_tools(Engine::builder().without_threads());
    let sandbox = Sandbox::builder().engine(engine.clone()).build().unwrap();
    let (mut runs, mut failed) = (0_u64, 0);
    for seed in 1..=programs {
        let (source, bounds) = (Maker::program(seed), Bounds::of(seed));
        let plain = alone.eval(&source, bounds.input(1));
        failed += u64::from(!plain.is_success());
        let expected = came_to(&plain);
        let mut each = |way: String, outcome: Outcome| {
            runs += 1;
            assert_eq!(came_to(&outcome), expected, "program {seed}, {bounds:?}, {way}:\n{source}");
        };
        for window in [1, 2, 8] {
            each(format!("process, window {window}"), sandbox.eval(&source, &bounds.input(window)));
        }
        // What is left of a budget is another matter for a run that goes on.
        if bounds.budget.is_none() {
            cut(&engine, &sandbox, &source, bounds, &mut each);
        }
    }
    assert!(failed > programs / 20 && failed < programs, "{failed} of {programs} fail");
    println!("{runs} runs of {programs} programs, of which {failed} fail");
}
