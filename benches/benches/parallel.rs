//! `pmap`: what a worker costs, how much two cores help, and how well waiting tools share slots.

use criterion::{Criterion, criterion_group, criterion_main};
use lisp_runtime::threads::Pool;
use lisp_runtime::{Engine, Input, Limits, Tool};
use std::time::Duration;

fn limits() -> Limits {
    Limits::default().with_timeout_ms(600_000).with_parallel_timeout_ms(600_000).with_loop_iterations(0)
}

fn run(engine: &Engine, source: &str) {
    let outcome = engine.eval(source, Input::new());
    assert!(outcome.is_success(), "{:?}", outcome.problem());
}

/// One function over the same items, with `map` and with `pmap`. `EACH` stands for either of them, also in the body.
fn pair(c: &mut Criterion, name: &str, engine: &Engine, body: &str, items: u64) {
    let mut group = c.benchmark_group(name);
    for function in ["map", "pmap"] {
        let source = format!("{} (count ({function} work (range {items})))", body.replace("EACH", function));
        group.bench_function(function, |b| b.iter(|| run(engine, &source)));
    }
    group.finish();
}

fn items(c: &mut Criterion) {
    let engine = Engine::builder().limits(limits()).build().expect("an engine");
    pair(c, "10,000 tiny items", &engine, "(defn work [i] (inc i))", 10_000);
    let fib = "(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (defn work [_] (fib 22))";
    pair(c, "16 items of about 1 ms", &engine, fib, 16);
    pair(c, "16 items of about 5 ms", &engine, &fib.replace("22", "25"), 16);
    let nested = fib.replace("(fib 22)", "(count (EACH (fn [_] (fib 12)) (range 32)))");
    pair(c, "32 items, each of 32 items of about 10 us", &engine, &nested, 32);
}

fn tools(c: &mut Criterion) {
    let engine = Engine::builder()
        .limits(limits().with_parallel_window(8))
        .pool(Pool::new(2).expect("a pool"))
        .grant(Tool::new("wait", |_| {
            std::thread::sleep(Duration::from_millis(20));
            Ok(())
        }))
        .build()
        .expect("an engine");
    let mut group = c.benchmark_group("tools");
    group.sample_size(10);
    group.bench_function("64 calls of 20 ms under 8 slots (ideal: 160 ms)", |b| {
        b.iter(|| run(&engine, "(count (pmap (fn [i] (tool/wait {:i i})) (range 64)))"));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_millis(300));
    targets = items, tools
}
criterion_main!(benches);
