//! What a check costs before a run: 30 lines over data that was imported once.

use criterion::{Criterion, criterion_group, criterion_main};
use lisp_runtime::{Check, Engine, Input};
use std::fmt::Write as _;
use std::hint::black_box;

const REPORT: &str = include_str!("../programs/report.clj");

fn orders(count: usize) -> String {
    let mut json = String::from("[");
    for i in 0..count {
        let comma = if i == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(
            json,
            r#"{comma}{{"id":{i},"customer":"c{}","region":"r{}","status":"{}","lines":[{{"price":{},"quantity":2}}]}}"#,
            i % 9,
            i % 4,
            if i % 3 == 0 { "paid" } else { "open" },
            i % 90 + 20,
        );
    }
    json + "]"
}

fn check(c: &mut Criterion) {
    let mut group = c.benchmark_group("check");
    let json = orders(10);
    for (name, check) in [("off", Check::Off), ("warn", Check::Warn)] {
        let engine = Engine::builder().check(check).build().expect("an engine");
        let set = engine.import("orders", json.as_str()).expect("data");
        let program = engine.compile(REPORT).expect("a program");
        let input = || Input::new().data_set(&set).without_memory();
        let outcome = engine.run(&program, input());
        assert!(outcome.problem().is_none() && outcome.warnings().is_empty(), "{outcome:?}");
        group.bench_function(format!("30 compiled lines, {name}"), |b| {
            b.iter(|| black_box(engine.run(&program, input())));
        });
        group.bench_function(format!("30 lines of text, {name}"), |b| {
            b.iter(|| black_box(engine.eval(REPORT, input())));
        });
    }
    group.finish();
}

criterion_group!(benches, check);
criterion_main!(benches);
