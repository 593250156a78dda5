//! What it costs to be seen, and to wait: microseconds a run with and without an observer and as a future, bytes of a run that waits.
//!
//! `cargo run --release -p ptc-lisp-runtime --features async --example costs`

use lisp_runtime::observe::{CallEnded, PrintedLine, RunEnded};
use lisp_runtime::{Engine, Input, Limits, Observer, Outcome, Program, Tool, ToolCall};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Counts what it is told.
#[derive(Default)]
struct Counts(AtomicU64);

impl Observer for Counts {
    fn run_ended(&self, _: &RunEnded<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn printed(&self, _: &PrintedLine<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn call_ended(&self, _: &CallEnded<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn engine(seen: bool, asynchronous: bool) -> Engine {
    let tool = match asynchronous {
        true => Tool::new_async("get", |call: ToolCall| async move { call.get::<i64>("n") }),
        false => Tool::new("get", |call| call.get::<i64>("n")),
    };
    let never = Tool::new_async("never", |_| std::future::pending::<Result<(), _>>());
    let limits = Limits::default().with_timeout_ms(600_000).with_parallel_timeout_ms(600_000);
    let builder = Engine::builder().limits(limits).grant(tool).grant(never);
    let builder = if seen { builder.observer(Counts::default()) } else { builder };
    builder.build().expect("an engine")
}

fn block_on(mut run: Pin<&mut impl Future<Output = Outcome>>) -> Outcome {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(outcome) = run.as_mut().poll(&mut context) {
            return outcome;
        }
    }
}

/// Microseconds a run: the best of some rounds.
fn measure(mut run: impl FnMut()) -> f64 {
    const ROUND: Duration = Duration::from_millis(200);
    let round = |run: &mut dyn FnMut()| {
        let (begun, mut runs) = (Instant::now(), 0_u32);
        while begun.elapsed() < ROUND {
            run();
            runs += 1;
        }
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(runs)
    };
    (0..7).map(|_| round(&mut run)).fold(f64::INFINITY, f64::min)
}

/// Bytes that the process has resident, where the system says so.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split(' ').nth(1)?.parse::<u64>().ok().map(|pages| pages * 4096)
}

fn waiting(program: &Program, engine: &Engine, what: &str) {
    const RUNS: u64 = 10_000;
    let before = resident();
    let mut context = Context::from_waker(Waker::noop());
    let mut runs: Vec<_> = (0..RUNS).map(|_| Box::pin(engine.run_async(program, Input::new()))).collect();
    for run in &mut runs {
        assert!(run.as_mut().poll(&mut context).is_pending());
    }
    let after = resident();
    let bytes = before.zip(after).map(|(before, after)| after.saturating_sub(before) / RUNS);
    println!("{what}: {} bytes resident a run, of {RUNS}", bytes.map_or("?".to_owned(), |bytes| bytes.to_string()));
}

fn main() {
    let programs = [
        ("1", "a program of one number"),
        ("(reduce + (map (fn [n] (tool/get {:n n})) (range 100)))", "100 calls of a tool"),
        ("(doseq [i (range 100)] (println i))", "100 printed lines"),
        ("(reduce + (pmap (fn [n] (tool/get {:n n})) (range 8)))", "a pmap of 8 calls"),
    ];
    for (source, what) in programs {
        let of = |seen| {
            let engine = engine(seen, false);
            let program = engine.compile(source).expect("a program");
            measure(|| drop(black_box(engine.run(&program, Input::new()))))
        };
        let engine = engine(false, true);
        let program = engine.compile(source).expect("a program");
        let future = measure(|| {
            let outcome = block_on(pin!(engine.run_async(&program, Input::new())));
            assert!(black_box(outcome).is_success());
        });
        println!("{what}: {:.2} us, {:.2} us with an observer, {future:.2} us as a future", of(false), of(true));
    }
    let engine = engine(false, true);
    let call = engine.compile("(tool/never {:n 1})").expect("a program");
    waiting(&call, &engine, "one call waits");
    let three = engine.compile("(pmap (fn [n] (tool/never {:n n})) (range 3))").expect("a program");
    waiting(&three, &engine, "three calls of a pmap wait");
}
