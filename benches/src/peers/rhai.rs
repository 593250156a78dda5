//! Rhai.

use super::{Answer, Compiled, NONE, Peer, STEPS, Task, Warm, programs};
use rhai::{AST, Dynamic, Engine, EvalAltResult, Scope};
use std::any::Any;
use std::time::{Duration, Instant};

programs!("rhai");

pub(super) struct Rhai;

/// Sizes of strings, arrays and maps that no workload comes to.
const SIZE: usize = 50_000_000;
/// No workload is waited for longer.
const PATIENCE: Duration = Duration::from_secs(20);

fn engine() -> Engine {
    let mut engine = Engine::new();
    engine.set_max_operations(STEPS);
    engine.set_max_string_size(SIZE);
    // A limit on arrays and maps makes building them quadratic: it is left off.
    engine.set_max_expr_depths(64, 64);
    engine
}

/// Lets a program work as long as there is patience.
fn be_patient(engine: &mut Engine) {
    let end = Instant::now() + PATIENCE;
    engine.on_progress(move |steps| (steps % 65_536 == 0 && Instant::now() > end).then(|| Dynamic::from("too slow")));
}

fn text_of(answer: Result<Dynamic, Box<EvalAltResult>>) -> Answer {
    answer.map_or_else(|error| error.to_string(), |value| value.to_string())
}

fn run(engine: &mut Engine, scope: &mut Scope<'static>, source: &str) -> Answer {
    be_patient(engine);
    let bottom = scope.len();
    let answer = engine.eval_with_scope(scope, source);
    scope.rewind(bottom);
    text_of(answer)
}

/// Runs a compiled program with orders, which it shares with others.
fn run_compiled(engine: &mut Engine, program: &AST, orders: Dynamic) -> Answer {
    be_patient(engine);
    let mut scope = Scope::new();
    scope.push_constant_dynamic("orders", orders);
    text_of(engine.eval_ast_with_scope(&mut scope, program))
}

fn orders_of(engine: &Engine, json: &str) -> Dynamic {
    let mut all = engine.parse_json(format!("{{\"orders\":{json}}}"), true).expect("JSON");
    all.remove("orders").expect("orders")
}

impl Peer for Rhai {
    fn name(&self) -> &'static str {
        "Rhai 1.27"
    }

    fn program(&self, task: Task) -> &'static str {
        program(task)
    }

    fn one_liner(&self) -> &'static str {
        "1 + 2"
    }

    fn cold(&self, source: &str) -> Answer {
        run(&mut engine(), &mut Scope::new(), source)
    }

    fn warm(&self, orders: Option<&str>, text: Option<&str>) -> Warm {
        let (mut engine, mut scope) = (engine(), Scope::new());
        scope.push_constant_dynamic("orders", orders_of(&engine, orders.unwrap_or(NONE)));
        scope.push_constant("text", text.unwrap_or_default().to_owned());
        Box::new(move |source| run(&mut engine, &mut scope, source))
    }

    fn compiler(&self) -> Box<dyn FnMut(&str)> {
        let engine = engine();
        Box::new(move |source| drop(engine.compile(source).expect("a program")))
    }

    fn compiled(&self, orders: Option<&str>, source: &str) -> Compiled {
        let mut engine = engine();
        let program = engine.compile(source).expect("a program");
        let inside = orders_of(&engine, orders.unwrap_or(NONE)).into_shared();
        Box::new(move |orders| {
            let orders = orders.map_or_else(|| inside.clone(), |json| orders_of(&engine, json));
            run_compiled(&mut engine, &program, orders)
        })
    }

    fn bring(&self) -> Box<dyn FnMut(&str) -> Answer> {
        let mut engine = engine();
        Box::new(move |orders| {
            let mut scope = Scope::new();
            scope.push_constant_dynamic("orders", orders_of(&engine, orders));
            run(&mut engine, &mut scope, program(Task::Pipeline))
        })
    }

    fn import(&self) -> Box<dyn FnMut(&str)> {
        let engine = engine();
        Box::new(move |orders| drop(orders_of(&engine, orders)))
    }

    fn idle(&self) -> Box<dyn Any> {
        Box::new(engine())
    }
}
