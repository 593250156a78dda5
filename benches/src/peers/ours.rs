//! This interpreter.

use super::{Answer, Compiled, MEMORY, Peer, STEPS, Task, Warm, programs};
use lisp_runtime::{DataSet, Engine, Input, Limits, Outcome};
use std::any::Any;

programs!("clj");

pub(super) struct Ours;

fn limits() -> Limits {
    Limits::default().with_timeout_ms(60_000).with_loop_iterations(0).with_fuel(STEPS).with_heap_bytes(MEMORY as u64)
}

/// An engine that compiles a program each time, as the others do.
fn engine() -> Engine {
    Engine::builder().limits(limits()).kept_programs(0).build().expect("an engine")
}

fn answer(outcome: &Outcome) -> Answer {
    match outcome.json() {
        Some(json) => json.to_owned(),
        None => format!("{:?}", outcome.problem()),
    }
}

fn inside(engine: &Engine, name: &str, json: &str) -> DataSet {
    engine.import(name, json).expect("JSON")
}

impl Peer for Ours {
    fn name(&self) -> &'static str {
        "PTC-Lisp"
    }

    fn program(&self, task: Task) -> &'static str {
        program(task)
    }

    fn one_liner(&self) -> &'static str {
        "(+ 1 2)"
    }

    fn cold(&self, source: &str) -> Answer {
        answer(&engine().eval(source, Input::new()))
    }

    fn warm(&self, orders: Option<&str>, text: Option<&str>) -> Warm {
        let engine = engine();
        let orders = orders.map(|json| inside(&engine, "orders", json));
        let text = text.map(|text| inside(&engine, "text", &serde_json::to_string(text).expect("a JSON string")));
        Box::new(move |source| {
            let input = [&orders, &text].into_iter().flatten().fold(Input::new(), Input::data_set);
            answer(&engine.eval(source, input))
        })
    }

    fn compiler(&self) -> Box<dyn FnMut(&str)> {
        let engine = engine();
        Box::new(move |source| drop(engine.compile(source).expect("a program")))
    }

    fn compiled(&self, orders: Option<&str>, source: &str) -> Compiled {
        let engine = engine();
        let inside = orders.map(|json| inside(&engine, "orders", json));
        let program = engine.compile(source).expect("a program");
        Box::new(move |orders| {
            let input = match orders {
                Some(json) => Input::new().json("orders", json),
                None => inside.iter().fold(Input::new(), Input::data_set),
            };
            answer(&engine.run(&program, input))
        })
    }

    fn bring(&self) -> Box<dyn FnMut(&str) -> Answer> {
        let engine = engine();
        Box::new(move |orders| answer(&engine.eval(program(Task::Pipeline), Input::new().json("orders", orders))))
    }

    fn import(&self) -> Box<dyn FnMut(&str)> {
        let engine = engine();
        Box::new(move |orders| drop(engine.import("orders", orders).expect("orders")))
    }

    fn idle(&self) -> Box<dyn Any> {
        let mut session = engine().session(Input::new());
        session.eval("(+ 1 2)");
        Box::new(session)
    }
}
