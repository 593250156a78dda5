//! A workload in hand-written Rust: prints the median of its times in microseconds, a tab, and the answer
//! (`src/peers/process.rs`). Build it alone: starlark turns on a feature of `serde_json` that makes numbers texts.

use lisp_benches::peers::rust::{Held, work};
use lisp_benches::peers::{Data, Task, Workload};
use lisp_benches::timing::Budget;
use std::time::Duration;

fn main() {
    if cfg!(feature = "starlark") {
        eprintln!("it was built with starlark: cargo build --release -p ptc-lisp-benches --example floor");
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [held, kind, task, orders, text, numbers @ ..] = arguments.as_slice() else { panic!("too few arguments") };
    let held = if held == "value" { Held::Value } else { Held::Typed };
    let workload = match kind.as_str() {
        "compiled-inside" => Workload::CompiledInside,
        "compiled-bring" => Workload::CompiledBring,
        "import" => Workload::Import,
        _ => Workload::Long(Task::named(task).expect("a task")),
    };
    let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
    let [warm, measure, fewest, max] = numbers.as_slice() else { panic!("four numbers") };
    let budget = Budget {
        warm: Duration::from_millis(*warm),
        measure: Duration::from_millis(*measure),
        fewest: *fewest as usize,
        max: *max as usize,
    };
    let data = Data::read(orders.as_ref(), text.as_ref()).expect("the data");
    let mut work = work(held, workload, &data).expect("work of the floor");
    let (time, answer) = budget.median(&mut work, |answer| data.is_right(workload, answer));
    println!("{time}\t{answer}");
}
