//! What it costs to record a run, and to go on with it.

use criterion::{Criterion, criterion_group, criterion_main};
use lisp_benches::{PIPELINE, orders};
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Input, Progress, Record, Recording, Tool};
use std::hint::black_box;

fn record(c: &mut Criterion) {
    let mut group = c.benchmark_group("record");
    let engine = Engine::default();
    let set = engine.import("orders", orders(1_000)).expect("data");
    let pipeline = engine.compile(PIPELINE).expect("a program");
    let input = || Input::new().data_set(&set).without_memory();
    group.bench_function("W4 run the compiled pipeline, data inside", |b| {
        b.iter(|| black_box(engine.run(&pipeline, input())));
    });
    group.bench_function("W4 the same, recorded", |b| {
        b.iter(|| black_box(engine.run(&pipeline, input().record(&Recording::new()))));
    });
    let engine =
        Engine::builder().grant(Tool::new("price", |call| call.get::<f64>("base")).with_effect(Effect::Read)).build();
    let engine = engine.expect("an engine");
    let calls = engine.compile("(reduce + (map (fn [i] (tool/price {:base i})) (range 1000)))").expect("a program");
    group.bench_function("1,000 calls", |b| b.iter(|| black_box(engine.run(&calls, Input::new()))));
    group.bench_function("1,000 calls, recorded", |b| {
        b.iter(|| black_box(engine.run(&calls, Input::new().record(&Recording::new()))));
    });
    let recording = Recording::new();
    engine.run(&calls, Input::new().record(&recording));
    let record = Record::parse(recording.text()).expect("a record");
    group.bench_function("1,000 calls, gone on with from their record", |b| {
        b.iter(|| match engine.resume(&record).expect("a run") {
            Progress::Done(outcome) => outcome,
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => panic!("{waiting:?}"),
        });
    });
    let (engine, recording) = (Engine::default(), Recording::new());
    let json = orders(1_000);
    let whole = || Input::new().json("orders", json.as_str()).without_memory();
    group.bench_function("W4 with 1,000 orders as JSON", |b| b.iter(|| black_box(engine.run(&pipeline, whole()))));
    group.bench_function("W4 with 1,000 orders as JSON, recorded", |b| {
        b.iter(|| black_box(engine.run(&pipeline, whole().record(&Recording::new()))));
    });
    engine.run(&pipeline, whole().record(&recording));
    let record = recording.record().expect("a record");
    group.bench_function("W4 with 1,000 orders as JSON, gone on with from its record", |b| {
        b.iter(|| match engine.resume(&record).expect("a run") {
            Progress::Done(outcome) => outcome,
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => panic!("{waiting:?}"),
        });
    });
    group.finish();
}

criterion_group!(benches, record);
criterion_main!(benches);
