//! Parallel calls whose workers fail: random programs, at any width, on any number of threads, in one half and in two, step by step in several
//! orders, recorded, replayed, and cut anywhere and gone on with. Each comes to one answer.
//!
//! `PTC_FAILING_PROGRAMS` says how many programs there are: 120 unless it is set.

use crate::failing::{Bounds, Maker, came_to, with_tools};
use crate::remote::eval_in_two;
use lisp_runtime::threads::Pool;
use lisp_runtime::{Engine, Input, Limits, LimitsRequest, Outcome, Progress, Record, Recording};
use std::sync::{Arc, Mutex};

/// Drives a run step by step; the calls are answered from the first on, from the last, or in turn.
fn step_by_step(engine: &Engine, source: &str, input: Input<'_>, order: usize) -> Outcome {
    let mut progress = match engine.compile(source) {
        Ok(program) => engine.start(&program, input),
        Err(problem) => panic!("{source}: {problem}"),
    };
    let mut turn = 0;
    loop {
        progress = match progress {
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => {
                let calls: Vec<_> = waiting.calls().map(|(id, _)| id).collect();
                turn += 1;
                let at = match order {
                    0 => 0,
                    1 => calls.len() - 1,
                    _ => turn % calls.len(),
                };
                waiting.serve(calls[at])
            }
            Progress::Done(outcome) => return *outcome,
        };
    }
}

struct Engines {
    alone: Engine,
    pools: Vec<Engine>,
}

impl Engines {
    fn new() -> Engines {
        let pool = |threads| with_tools(Engine::builder().pool(Pool::new(threads).unwrap()));
        Engines { alone: with_tools(Engine::builder().without_threads()), pools: vec![pool(1), pool(2), pool(8)] }
    }

    /// The record of a run, cut behind so many lines, goes on.
    fn go_on(&self, bounds: Bounds, text: &str, lines: usize, window: u64) -> Outcome {
        let cut: String = text.split_inclusive('\n').take(lines).collect();
        let record = Record::parse(cut).unwrap();
        let engine = &self.pools[lines % self.pools.len()];
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        engine.run(&program, input.limits_over(&bounds.limits(window)))
    }

    /// Every way in which a program can be run. `each` gets the name of the way, and the outcome.
    fn all(&self, source: &str, bounds: Bounds, mut each: impl FnMut(String, Outcome)) {
        for window in [1, 2, 8] {
            each(format!("alone, window {window}"), self.alone.eval(source, bounds.input(window)));
            for (threads, engine) in [1, 2, 8].iter().zip(&self.pools) {
                let shown = Arc::new(Mutex::new(Vec::new()));
                let hook = shown.clone();
                let input = bounds.input(window).on_print(move |line| hook.lock().unwrap().push(line.to_owned()));
                let outcome = engine.eval(source, input);
                // What is shown as it is printed is what is kept, in the same order.
                assert_eq!(*shown.lock().unwrap(), outcome.prints, "{threads} threads, window {window}: {source}");
                each(format!("{threads} threads, window {window}"), outcome);
            }
            each(format!("two halves, window {window}"), eval_in_two(&self.alone, source, &bounds.input(window)));
            for order in 0..3 {
                let outcome = step_by_step(&self.alone, source, bounds.input(window), order);
                each(format!("step by step in order {order}, window {window}"), outcome);
            }
        }
        // What is left of a budget is another matter for a run that goes on.
        if bounds.budget.is_some() {
            return;
        }
        let recording = Recording::new();
        let whole = self.pools[1].eval(source, bounds.input(8).record(&recording));
        let answer = lisp_runtime::Answer::new(None, &whole).to_json();
        each("recorded".to_owned(), whole);
        let text = recording.text();
        for lines in 1..=text.lines().count() {
            for window in [1, 8] {
                each(
                    format!("cut behind line {lines}, window {window}\n{text}"),
                    self.go_on(bounds, &text, lines, window),
                );
            }
        }
        recording.answer(&answer).unwrap();
        each("replayed".to_owned(), self.go_on(bounds, &recording.text(), usize::MAX, 8));
    }
}

/// Of several failures the first in the order of the calls is the one that counts, and nothing that calls behind it did is in the answer.
#[test]
fn programs_with_failing_workers_come_to_one_answer() {
    let programs = std::env::var("PTC_FAILING_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
    let engines = Engines::new();
    let (mut failed, mut caught, mut bounded, mut runs) = (0, 0, 0, 0_u64);
    for seed in 1..=programs {
        let source = Maker::program(seed);
        let bounds = Bounds::of(seed);
        let plain = engines.alone.eval(&source, bounds.input(1));
        failed += u64::from(!plain.is_success());
        bounded += u64::from(plain.problem().is_some_and(|problem| {
            problem.error.message.contains("a run may call") || problem.error.message.contains("the budget")
        }));
        caught += u64::from(plain.prints.iter().any(|line| line.starts_with(":caught")));
        let expected = came_to(&plain);
        engines.all(&source, bounds, |way, outcome| {
            runs += 1;
            let came = came_to(&outcome);
            assert_eq!(came, expected, "program {seed}, {bounds:?}, {way}:\n{source}");
        });
    }
    // All kinds of programs are among them.
    let kinds = format!("{failed} of {programs} fail, {bounded} of them by calls, {caught} catch a failure");
    assert!(
        failed > programs / 20 && bounded > programs / 20 && caught > programs / 10 && failed < programs,
        "{kinds}"
    );
    println!("{runs} runs: {kinds}");
}

/// What the calls of a run take in its record is counted in the program's order, whoever comes first.
#[test]
fn the_ceiling_of_a_record_does_not_depend_on_the_time() {
    let engines = Engines::new();
    let mut over = 0;
    for seed in 1..=40 {
        let (source, bounds) = (Maker::program(seed), Bounds::of(seed));
        let max = 400 + 311 * (seed as usize % 9);
        let input = |window| bounds.input(window).record(&Recording::builder().max_bytes(max).build());
        let plain = engines.alone.eval(&source, input(1));
        let expected = came_to(&plain);
        over += u64::from(plain.problem().is_some_and(|problem| problem.error.message.contains("in its record")));
        for window in [1, 2, 8] {
            let outcomes = [
                engines.pools[1].eval(&source, input(window)),
                engines.pools[2].eval(&source, input(window)),
                eval_in_two(&engines.alone, &source, &input(window)),
                step_by_step(&engines.alone, &source, input(window), 0),
                step_by_step(&engines.alone, &source, input(window), 1),
                step_by_step(&engines.alone, &source, input(window), 2),
            ];
            for (way, outcome) in outcomes.iter().enumerate() {
                assert_eq!(
                    came_to(outcome),
                    expected,
                    "program {seed}, {bounds:?}, {max} bytes, window {window}, way {way}:\n{source}"
                );
            }
        }
    }
    assert!((5..40).contains(&over), "{over}");
}

/// What is given up is not in the profile either, which is the same each time but for the time.
#[test]
fn a_profile_has_nothing_that_was_given_up() {
    let engines = Engines::new();
    let source = "(defn work [n] (reduce (fn [a b] (+ a b)) 0 (range n)))
        (try (pmap (fn [i] (work (* 100 i)) (if (= i 2) (tool/fails {:n 2}) (work (* 10 i)))) (range 6)) (catch Exception e (work 7)))";
    let seen = |engine: &Engine, window| {
        let outcome = engine.eval(source, Bounds::none().input(window).profile());
        let nodes: Vec<_> = outcome.profile.as_ref().unwrap().nodes.iter().collect();
        let fuel: u64 = nodes.iter().map(|node| node.cost.fuel).sum();
        assert!(fuel <= outcome.usage.fuel, "{fuel} of {}", outcome.usage.fuel);
        format!(
            "{:?}",
            nodes.iter().map(|node| (&node.function, node.span, node.parent, node.cost.fuel)).collect::<Vec<_>>()
        )
    };
    let alone = seen(&engines.alone, 1);
    for engine in &engines.pools {
        for window in [1, 2, 6, 6, 6] {
            assert_eq!(seen(engine, window), alone);
        }
    }
}

/// As many calls as the limit allows are made, however they are spread over workers, and the one behind them is refused.
#[test]
fn the_call_behind_the_limit_is_the_one_that_is_refused() {
    let engines = Engines::new();
    let even = |count: u64| format!("(count (pmap (fn [i] (tool/pure {{:n i}})) (range {count})))");
    // The first makes most of the calls, and the others do not wait for it.
    let uneven = |first: u64| {
        format!("(count (pmap (fn [i] (doseq [n (range (if (= i 0) {first} 1))] (tool/pure {{:n n}}))) (range 11)))")
    };
    for (source, text, index) in [
        (even(100), Some("100"), None),
        (even(101), None, Some(100)),
        (even(250), None, Some(100)),
        (uneven(90), Some("11"), None),
        (uneven(91), None, Some(10)),
        (uneven(95), None, Some(6)),
        (uneven(101), None, Some(0)),
    ] {
        let limits = Limits::default().with_tool_calls(100);
        for window in [1, 2, 4, 8] {
            let mut asked = LimitsRequest::all(&limits);
            asked.set("parallel_window", window).unwrap();
            let outcome = engines.pools[2].eval(&source, Input::new().limits(asked));
            let problem = outcome.problem().map(|problem| problem.error.clone());
            assert_eq!(outcome.text(), text, "{source}: {problem:?}");
            let detail = |name: &str| {
                problem
                    .as_ref()
                    .and_then(|error| error.details.iter().find(|(known, _)| *known == name))
                    .map(|(_, it)| it.clone())
            };
            assert_eq!(
                detail("index"),
                index.map(lisp_runtime::outcome::Detail::Int),
                "{source}, {window}: {problem:?}"
            );
            let made = outcome.ledger.len() + outcome.given_up.iter().filter(|call| !call.refused).count();
            assert!(made <= 110, "{made} calls: {source}");
        }
    }
}

/// However often a program catches a failure, calls behind it are made for nothing no more often than a tenth of the limit.
#[test]
fn calls_that_are_made_for_nothing_have_a_bound() {
    let engines = Engines::new();
    let source = "(loop [k 0] (if (< k 200)
          (do (try (pmap (fn [i] (if (= i 0) (do (reduce + (range 3000)) (/ 1 0)) (tool/pure {:n i}))) (range 4))
                   (catch Exception e k))
              (recur (inc k)))
          (tool/pure {:n 1})))";
    let limits = Limits::default().with_tool_calls(50).with_timeout_ms(60_000);
    for engine in &engines.pools {
        let outcome = engine.eval(source, Input::new().limits(LimitsRequest::all(&limits)));
        assert_eq!((outcome.text(), outcome.usage.tool_calls), (Some("2"), 1), "{:?}", outcome.problem());
        assert!(outcome.given_up.iter().filter(|call| !call.refused).count() <= 5, "{:?}", outcome.given_up);
    }
}

/// What a parallel call did for nothing counts nowhere, but the host can see the calls that were made.
#[test]
fn calls_that_were_made_for_nothing_are_told_and_not_counted() {
    let engine = with_tools(Engine::builder());
    let source = "(try (pmap (fn [i] (tool/pure {:n i}) (if (= i 0) (tool/fails {:n 2}) (tool/pure {:n i}))) (range 4)) (catch Exception e :caught)) (tool/pure {:n 9})";
    let program = engine.compile(source).unwrap();
    let limits = Limits::default().with_tool_calls(60);
    let mut progress = engine.start(&program, Input::new().limits(LimitsRequest::all(&limits)));
    // The first worker's call fails when the others have made theirs.
    let outcome = loop {
        progress = match progress {
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => {
                let last = waiting.calls().map(|(id, _)| id).last().unwrap();
                waiting.serve(last)
            }
            Progress::Done(outcome) => break outcome,
        };
    };
    assert_eq!(outcome.text(), Some("10"), "{:?}", outcome.problem());
    let calls: Vec<_> = outcome.ledger.iter().map(|call| (&*call.name, call.arguments.text.as_str())).collect();
    assert_eq!(calls, [("pure", "{\"n\":0}"), ("fails", "{\"n\":2}"), ("pure", "{\"n\":9}")]);
    assert_eq!(outcome.usage.tool_calls, 3, "{:?}", outcome.ledger);
    assert!(
        !outcome.given_up.is_empty() && outcome.given_up.iter().all(|call| call.worker != [0]),
        "{:?}",
        outcome.given_up
    );
}
