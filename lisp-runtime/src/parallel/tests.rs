//! Breaks workers at every stage, ten thousand times: the run always ends, and every slot is freed.

use crate::api::run::Run;
use crate::drive::shared::Stage;
use crate::threads::Pool;
use crate::{Cancel, Engine, Input, Limits, Program, Tool, ToolError};
use std::sync::Once;
use std::time::{Duration, Instant};

const ROUNDS: u64 = 10_000;

/// A small, deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Silences intended panics.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<&str>().copied().unwrap_or_default();
            if !text.contains("injected") {
                usual(info);
            }
        }));
    });
}

/// The bodies of workers; `i` is their element.
const BODIES: &[&str] = &[
    "(inc i)",
    "(tool/ok {:i i})",
    "(tool/same {:i 1})",
    "(do (tool/ok {:i i}) (println i) (tool/ok {:i i}))",
    "(if (= i 1) (tool/boom {}) (tool/ok {:i i}))",
    "(if (= i 2) (tool/no {}) (tool/same {:i 2}))",
    "(if (= i 1) (/ 1 0) (loop [] (recur)))",
    "(if (= i 3) (reduce (fn [s _] (str s s)) \"x\" (range 64)) (str i))",
    "(loop [] (recur))",
    "(count (map str (range 2000)))",
    "(pmap (fn [j] (+ i j)) (range 3))",
    "(pcalls #(tool/ok {:i i}) #(if (= i 1) (inc nil) 2))",
    "(pmap (fn [j] (if (= j i) (loop [] (recur)) (tool/same {:i j}))) (range 3))",
];

/// Returns an engine with a deadline for parallel calls.
fn engine(pool: Option<Pool>, parallel_timeout_ms: u64) -> Engine {
    let builder = Engine::builder()
        .limits(
            Limits::default()
                .with_loop_iterations(0)
                .with_heap_bytes(400_000)
                .with_parallel_timeout_ms(parallel_timeout_ms)
                .with_parallel_window(3),
        )
        .tool("ok", |call| call.get::<i64>("i"))
        .tool("no", |_| Err::<(), _>(ToolError::new("no")))
        .tool("boom", |_| -> Result<(), ToolError> { std::panic::panic_any("injected") })
        .grant(Tool::new("same", |call| call.get::<i64>("i")).cached());
    let builder = match pool {
        Some(pool) => builder.pool(pool),
        None => builder.without_threads(),
    };
    builder.build().unwrap()
}

/// Runs a program with a fault. Returns whether it succeeded.
fn round(engine: &Engine, program: &Program, fault: Option<(Stage, usize)>, cancel_after: Option<Duration>) -> bool {
    let cancel = Cancel::new();
    let input = Input::new().cancel_with(&cancel);
    let mut run = Run::set_up(
        Instant::now(),
        engine.setting(&input, engine.view(&input, Instant::now())).unwrap(),
        program,
        &input,
        0,
    )
    .unwrap();
    *run.shared.fault.lock().unwrap() = fault;
    let shared = run.shared.clone();
    let outcome = std::thread::scope(|scope| {
        if let Some(after) = cancel_after {
            scope.spawn(move || {
                std::thread::sleep(after);
                cancel.cancel();
            });
        }
        engine.to_end(&mut run)
    });
    assert_eq!(shared.budget.in_use(), 0, "{}: {fault:?} {:?}", program.source(), outcome.problem());
    outcome.is_success()
}

#[test]
fn every_slot_comes_back_however_workers_end() {
    hush();
    let engines = [engine(Some(Pool::new(2).unwrap()), 3), engine(None, 3)];
    let programs: Vec<Vec<Program>> = engines
        .iter()
        .map(|engine| {
            let source = |body: &&str| format!("(pmap (fn [i] {body}) (range 6))");
            BODIES.iter().map(|body| engine.compile(&source(body)).unwrap()).collect()
        })
        .collect();
    let mut dice = Dice(1);
    let mut succeeded = 0;
    for _ in 0..ROUNDS {
        let which = dice.roll(2) as usize;
        let program = &programs[which][dice.roll(BODIES.len() as u64) as usize];
        let stages = [Stage::Begin, Stage::Turn, Stage::Call, Stage::Reply, Stage::End];
        let (fault, cancel_after) = match dice.roll(20) {
            0..10 => (Some((stages[dice.roll(5) as usize], dice.roll(6) as usize)), None),
            10 => (None, Some(Duration::from_micros(dice.roll(500)))),
            _ => (None, None),
        };
        succeeded += u64::from(round(&engines[which], program, fault, cancel_after));
    }
    // Both kinds of endings occurred.
    assert!(succeeded > ROUNDS / 20 && succeeded < ROUNDS * 19 / 20, "{succeeded}");
}

#[test]
fn a_worker_that_is_lost_is_a_bug_that_shows() {
    hush();
    for engine in [engine(Some(Pool::new(2).unwrap()), 60_000), engine(None, 60_000)] {
        let program = engine.compile("(pmap (fn [i] (tool/ok {:i i})) (range 4))").unwrap();
        assert!(round(&engine, &program, None, None));
        for stage in [Stage::Begin, Stage::Turn, Stage::Call, Stage::Reply, Stage::End] {
            let input = Input::new();
            let mut run = Run::set_up(
                Instant::now(),
                engine.setting(&input, engine.view(&input, Instant::now())).unwrap(),
                &program,
                &input,
                0,
            )
            .unwrap();
            *run.shared.fault.lock().unwrap() = Some((stage, 2));
            let outcome = engine.to_end(&mut run);
            assert_eq!(outcome.verdict(), crate::Verdict::HostFault, "{stage:?}");
            assert!(!run.is_of_use(), "{stage:?}");
            assert!(outcome.problem().unwrap().error.details.iter().any(|(name, _)| name == "index"));
        }
    }
}
