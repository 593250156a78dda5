//! Parallel calls whose workers fail: random programs, at any width, on any number of threads, in one half and in two, by hand in several
//! orders, recorded, replayed, and cut anywhere and gone on with. Each comes to one answer.
//!
//! `PTC_FAILING_PROGRAMS` says how many programs there are: 120 unless it is set.

use crate::remote::eval_in_two;
use lisp_runtime::{
    Effect, Engine, EngineBuilder, Input, Limits, LimitsRequest, Outcome, Pool, Progress, Record, Recording, Tool,
    ToolError,
};
use std::fmt::Write;
use std::sync::{Arc, Mutex};

/// Random numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// Makes a program; `i` is the number of the worker that is around.
struct Maker {
    dice: Dice,
    /// How many parallel calls there are so far.
    calls: u64,
}

impl Maker {
    fn program(seed: u64) -> String {
        let mut maker = Maker { dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1), calls: 0 };
        let mut program = String::from("(def i 0) ");
        for n in 0..=maker.dice.roll(3) {
            let form = maker.parallel(0);
            let form = if maker.dice.roll(4) == 0 { form } else { maker.caught(&form) };
            let _ = write!(program, "(def r{n} {form}) ");
        }
        let _ = write!(program, "(tool/pure {{:n {}}}) [r0 i]", maker.dice.roll(6));
        program
    }

    fn caught(&mut self, form: &str) -> String {
        let end = if self.dice.roll(2) == 0 { "(finally (println :finally i))" } else { "" };
        format!("(try {form} (catch Exception e (println :caught (:reason e)) (:message e)) {end})")
    }

    fn parallel(&mut self, depth: u64) -> String {
        self.calls += 1;
        let count = 1 + self.dice.roll(6);
        if self.dice.roll(4) == 0 {
            let bodies: Vec<String> =
                (0..count).map(|at| format!("(fn [] (let [i {at}] {}))", self.body(depth))).collect();
            return format!("(pcalls {})", bodies.join(" "));
        }
        format!("(pmap (fn [i] {}) (range {count}))", self.body(depth))
    }

    fn body(&mut self, depth: u64) -> String {
        let steps: Vec<String> = (0..=self.dice.roll(3)).map(|_| self.step(depth)).collect();
        format!("(do {})", steps.join(" "))
    }

    fn step(&mut self, depth: u64) -> String {
        let (n, m) = (self.dice.roll(7), 2 + self.dice.roll(4));
        match self.dice.roll(14) {
            0 | 1 => format!("(println :line i {n})"),
            2 => format!("(tool/pure {{:n (+ i {n})}})"),
            3 => format!("(tool/kept {{:n (mod i {m})}})"),
            4 => format!("(tool/fails {{:n (+ i {n})}})"),
            5 => format!("(tool/kept-fails {{:n (mod i {m})}})"),
            6 | 7 => format!("(when (= (mod i {m}) {}) (/ {n} 0))", n % m),
            8 => format!("(when (= i {n}) (throw (ex-info \"thrown\" {{:i i}})))"),
            9 => format!("(reduce + (range (* 150 (- 6 i) {n})))"),
            10 => format!("(loop [k 0] (if (< k (* 40 (inc (mod i {m})))) (recur (inc k)) k))"),
            11 => format!("(do (def i (+ i {n})) (when (= i 8) (fail i)) i)"),
            12 if depth < 2 && self.calls < 6 => self.parallel(depth + 1),
            13 if depth < 2 && self.calls < 6 => {
                let inner = self.parallel(depth + 1);
                self.caught(&inner)
            }
            _ => {
                let inner = format!("(tool/fails {{:n (* i {n})}})");
                self.caught(&inner)
            }
        }
    }
}

fn with_tools(builder: EngineBuilder) -> Engine {
    let some = |n: i64| match n % 3 {
        2 => Err(ToolError::new(format!("no {n}"))),
        _ => Ok(n * 10),
    };
    builder
        .limits(Limits::default().with_timeout_ms(60_000).with_parallel_timeout_ms(60_000))
        .grant(Tool::new("pure", |call| Ok(call.get::<i64>("n")? + 1)).effect(Effect::Read))
        .grant(Tool::new("kept", |call| Ok(call.get::<i64>("n")? + 2)).cached().effect(Effect::Read))
        .grant(Tool::new("fails", move |call| some(call.get("n")?)).effect(Effect::Read))
        .grant(Tool::new("kept-fails", move |call| some(call.get("n")?)).cached().effect(Effect::Read))
        .build()
        .unwrap()
}

/// The limits of a run: every fourth program may make few calls of tools, which some of them make.
fn limits(window: u64, source: &str) -> LimitsRequest {
    let mut asked = LimitsRequest::default();
    asked.set("parallel_window", window).unwrap();
    if source.len().is_multiple_of(4) {
        asked.set("tool_calls", 2 + source.len() as u64 % 7).unwrap();
    }
    asked
}

/// All that an answer says but for times, and for what says how busy the machine was.
fn came_to(outcome: &Outcome) -> String {
    let problem = outcome.problem().map(|problem| {
        let error = &problem.error;
        (error.reason, error.message.clone(), error.hint.clone(), error.details.clone(), problem.position)
    });
    let calls: Vec<_> = outcome
        .ledger
        .iter()
        .map(|call| {
            let (status, error) = (call.status, call.error.clone());
            (
                call.name.clone(),
                call.arguments.text.clone(),
                status,
                call.refused,
                call.result.clone(),
                error,
                call.worker.clone(),
            )
        })
        .collect();
    format!(
        "{:?}\n{problem:?}\n{:?}\nfuel {}, {} calls\n{:?}\n{calls:#?}",
        outcome.text(),
        outcome.prints,
        outcome.usage.fuel,
        outcome.usage.tool_calls,
        outcome.memory(),
    )
}

/// Drives a run by hand; the calls are answered from the first on, from the last, or in turn.
fn by_hand(engine: &Engine, source: &str, input: Input<'_>, order: usize) -> Outcome {
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
    fn go_on(&self, source: &str, text: &str, lines: usize, window: u64) -> Outcome {
        let cut: String = text.split_inclusive('\n').take(lines).collect();
        let record = Record::parse(cut).unwrap();
        let engine = &self.pools[lines % self.pools.len()];
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        engine.run(&program, input.limits_over(&limits(window, source)))
    }

    /// Every way in which a program can be run. `each` gets the name of the way, and the outcome.
    fn all(&self, source: &str, mut each: impl FnMut(String, Outcome)) {
        for window in [1, 2, 8] {
            each(
                format!("alone, window {window}"),
                self.alone.eval(source, Input::new().limits(limits(window, source))),
            );
            for (threads, engine) in [1, 2, 8].iter().zip(&self.pools) {
                let shown = Arc::new(Mutex::new(Vec::new()));
                let hook = shown.clone();
                let input = Input::new().on_print(move |line| hook.lock().unwrap().push(line.to_owned()));
                let outcome = engine.eval(source, input.limits(limits(window, source)));
                // What is shown as it is printed is what is kept, in the same order.
                assert_eq!(*shown.lock().unwrap(), outcome.prints, "{threads} threads, window {window}: {source}");
                each(format!("{threads} threads, window {window}"), outcome);
            }
            each(
                format!("two halves, window {window}"),
                eval_in_two(&self.alone, source, &Input::new().limits(limits(window, source))),
            );
            for order in 0..3 {
                let outcome = by_hand(&self.alone, source, Input::new().limits(limits(window, source)), order);
                each(format!("by hand in order {order}, window {window}"), outcome);
            }
        }
        let recording = Recording::new();
        let whole = self.pools[1].eval(source, Input::new().limits(limits(8, source)).record(&recording));
        let answer = lisp_runtime::Answer::new(None, &whole).to_json();
        each("recorded".to_owned(), whole);
        let text = recording.text();
        for lines in 1..=text.lines().count() {
            for window in [1, 8] {
                each(
                    format!("cut behind line {lines}, window {window}\n{text}"),
                    self.go_on(source, &text, lines, window),
                );
            }
        }
        recording.answer(&answer).unwrap();
        each("replayed".to_owned(), self.go_on(source, &recording.text(), usize::MAX, 8));
    }
}

/// Of several failures the first in the order of the calls is the one that counts, and nothing that calls behind it did is in the answer.
#[test]
fn programs_with_failing_workers_come_to_one_answer() {
    let programs = std::env::var("PTC_FAILING_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
    let engines = Engines::new();
    let (mut failed, mut caught, mut runs) = (0, 0, 0_u64);
    for seed in 1..=programs {
        let source = Maker::program(seed);
        let plain = engines.alone.eval(&source, Input::new().limits(limits(1, &source)));
        failed += u64::from(!plain.is_success());
        caught += u64::from(plain.prints.iter().any(|line| line.starts_with(":caught")));
        let expected = came_to(&plain);
        engines.all(&source, |way, outcome| {
            runs += 1;
            let came = came_to(&outcome);
            assert_eq!(came, expected, "program {seed}, {way}:\n{source}");
        });
    }
    // All kinds of programs are among them.
    assert!(failed > programs / 20 && caught > programs / 10 && failed < programs, "{failed} fail, {caught} catch");
    println!("{programs} programs, {runs} runs: {failed} programs fail, {caught} catch a failure");
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
