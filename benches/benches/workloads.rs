//! The workloads on this interpreter, all limits on.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lisp_benches::{FIB, LOOP, ONE_LINER, PIPELINE, definitions, orders};
use lisp_runtime::{Engine, Input, Limits, Outcome};
use std::hint::black_box;
use std::time::Duration;

/// The engine of the long workloads: fuel is counted, and time and loops are let run.
fn engine() -> Engine {
    let limits = Limits::default().with_timeout_ms(60_000).with_loop_iterations(0).with_fuel(u64::MAX / 2);
    Engine::builder().limits(limits).build().expect("an engine")
}

fn succeeded(outcome: Outcome) -> Outcome {
    assert!(outcome.is_success(), "{:?}", outcome.problem());
    outcome
}

fn start(c: &mut Criterion) {
    let mut group = c.benchmark_group("start");
    group.bench_function("W1 new engine, compile and run (+ 1 2)", |b| {
        b.iter(|| Engine::builder().build().expect("an engine").eval(black_box(ONE_LINER), Input::new()))
    });
    let engine = engine();
    group.bench_function("W2 compile and run (+ 1 2) on an engine", |b| {
        b.iter(|| engine.eval(black_box(ONE_LINER), Input::new()))
    });
    let program = engine.compile(ONE_LINER).expect("a program");
    succeeded(engine.run(&program, Input::new()));
    group.bench_function("run compiled (+ 1 2) afresh", |b| b.iter(|| engine.run(black_box(&program), Input::new())));
    group.bench_function("W3 compile the pipeline", |b| {
        b.iter(|| engine.compile(black_box(PIPELINE)).expect("a program"))
    });
    let many = definitions(100);
    group.bench_function("compile 1,000 lines with 400 definitions", |b| {
        b.iter(|| engine.compile(black_box(&many)).expect("a program"))
    });
    group.finish();
}

fn records(c: &mut Criterion) {
    let engine = engine();
    let json = orders(1_000);
    let set = engine.import("orders", &*json).expect("a data set");
    let program = engine.compile(PIPELINE).expect("a program");
    succeeded(engine.run(&program, Input::new().data_set(&set)));
    let mut group = c.benchmark_group("1,000 orders");
    group.bench_function("W4 compile and run the pipeline, data inside", |b| {
        b.iter(|| engine.eval(black_box(PIPELINE), Input::new().data_set(&set)))
    });
    group.bench_function("W4 run the compiled pipeline, data inside", |b| {
        b.iter(|| engine.run(black_box(&program), Input::new().data_set(&set)))
    });
    group.bench_function("W5 JSON text in, compile and run the pipeline", |b| {
        b.iter(|| engine.eval(black_box(PIPELINE), Input::new().json("orders", black_box(&*json))))
    });
    group.throughput(Throughput::Bytes(json.len() as u64));
    group
        .bench_function("JSON text in", |b| b.iter(|| engine.import("orders", black_box(&*json)).expect("a data set")));
    group.bench_function("JSON text to serde_json::Value", |b| {
        b.iter(|| serde_json::from_str::<serde_json::Value>(black_box(&json)).expect("JSON"))
    });
    group.finish();
}

fn compute(c: &mut Criterion) {
    let engine = engine();
    let mut group = c.benchmark_group("compute");
    group.sample_size(20).measurement_time(Duration::from_secs(8));
    for (name, source) in [("W6 fib(27)", FIB), ("W7 sum of 5 million integers in a loop", LOOP)] {
        let program = engine.compile(source).expect("a program");
        succeeded(engine.run(&program, Input::new()));
        group.bench_function(name, |b| b.iter(|| engine.run(black_box(&program), Input::new())));
    }
    group.finish();
}

criterion_group!(benches, start, records, compute);
criterion_main!(benches);
