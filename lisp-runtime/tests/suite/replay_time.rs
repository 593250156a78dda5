//! The time of a run that goes on from a record begins where the record is done again.

use crate::cpu::timed;
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Input, Limits, LimitsRequest, Progress, Reason, Record, Recording, Tool};
use std::time::{Duration, Instant};

/// It computes for a while, alone and in workers, and asks what to do then.
const PROGRAM: &str = "(let [busy (fn [] (dotimes [_ 60] (reduce + (map inc (range 50000)))))]
    (busy) (pmap (fn [i] (busy) (tool/read {:n i})) [1 2]) (System/currentTimeMillis) (busy)
    (if (= :endless (keyword (tool/ask {}))) (loop [i 0] (recur (inc i))) 5))";

fn engine(answer: &'static str) -> Engine {
    let limits = Limits::default().with_fuel(0).with_loop_iterations(0).with_parallel_timeout_ms(600_000);
    Engine::builder()
        .limits(limits.with_timeout_ms(600_000))
        .grant(Tool::new("read", |call| call.get::<i64>("n")).with_effect(Effect::Read))
        .grant(Tool::new("ask", move |_| Ok(answer)).with_effect(Effect::Read))
        .build()
        .unwrap()
}

/// The record up to the last call, which had started, and the processor time that its thread took: a part of the work.
fn recorded() -> (Record, Duration) {
    let recording = Recording::new();
    let (outcome, took) = timed(|| engine("go").eval(PROGRAM, Input::new().record(&recording)));
    assert_eq!(outcome.text(), Some("5"));
    let text = recording.text();
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    (Record::parse(&text[..last]).unwrap(), took)
}

fn within(ms: u64) -> LimitsRequest {
    let mut asked = LimitsRequest::default();
    asked.set("timeout_ms", ms).unwrap();
    asked.set("parallel_timeout_ms", ms).unwrap();
    asked
}

#[test]
fn what_is_done_again_takes_no_time_of_the_run() {
    let (record, took) = recorded();
    let ms = u64::try_from(took.as_millis()).unwrap() / 4;
    let go = engine("go");
    let (program, input, _) = go.open_record(&record, &[]).unwrap();
    let outcome = go.run(&program, input.limits_over(&within(ms)));
    assert_eq!(outcome.text(), Some("5"), "{:?}", outcome.problem());
    assert!(outcome.usage.duration_us > ms * 1_000, "the test shows nothing: {} us", outcome.usage.duration_us);
    // By hand it stops where it is to go on, with all of its time.
    let (program, input, _) = go.open_record(&record, &[]).unwrap();
    let Progress::ToolCall(waiting) = go.start(&program, input.limits_over(&within(ms))) else { panic!() };
    let left = waiting.wake_at().unwrap().saturating_duration_since(Instant::now());
    assert!(left > Duration::ZERO && left <= Duration::from_millis(ms), "{left:?} of {ms} ms");
    assert!(waiting.call().remaining().is_some_and(|left| left <= Duration::from_millis(ms)));
    let Progress::Done(outcome) = waiting.reply(&"go") else { panic!() };
    assert_eq!(outcome.text(), Some("5"));
}

#[test]
fn an_endless_program_behind_it_ends_at_its_deadline() {
    let (record, _) = recorded();
    let endless = engine("endless");
    let (program, input, _) = endless.open_record(&record, &[]).unwrap();
    let outcome = endless.run(&program, input.limits_over(&within(100)));
    let problem = outcome.problem().unwrap();
    assert_eq!(problem.reason(), Reason::Timeout);
    assert_eq!(problem.error.message, "the run takes longer than 100 ms");
    assert!(outcome.usage.tool_calls == 3 && outcome.usage.duration_us > 100_000, "{:?}", outcome.usage);
}

#[test]
fn a_replay_that_leads_nowhere_ends() {
    let (record, _) = recorded();
    let nowhere = Record::parse(record.text().replacen("[_ 60]", "[_ 60000000]", 1)).unwrap();
    let go = engine("go");
    let (program, input, _) = go.open_record(&nowhere, &[]).unwrap();
    let outcome = go.run(&program, input.limits_over(&within(3)));
    let problem = outcome.problem().unwrap();
    assert_eq!(problem.reason(), Reason::Timeout);
    assert!(problem.error.message.contains("longer than 100 times timeout_ms, 300 ms"), "{}", problem.error.message);
}
