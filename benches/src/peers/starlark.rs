//! Starlark, by the crate of that name.

use super::{Answer, MEMORY, Peer, STEPS, Task, Warm, programs};
use starlark::environment::{FrozenModule, Globals, GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::syntax::{AstModule, Dialect};
use std::any::Any;

programs!("star");

pub(super) struct Starlark;

fn globals() -> Globals {
    GlobalsBuilder::extended_by(&[LibraryExtension::Json]).build()
}

fn parse(source: &str) -> AstModule {
    AstModule::parse("program.star", source.to_owned(), &Dialect::Extended).expect("a module")
}

fn evaluate<'v>(module: &Module<'v>, globals: &Globals, source: &str) -> Answer {
    let mut evaluator = Evaluator::new(module);
    evaluator.set_max_heap_size(MEMORY).expect("a heap limit");
    evaluator.set_max_tick_count(STEPS).expect("a limit of ticks");
    let value = evaluator.eval_module(parse(source), globals).expect("an answer");
    value.to_str().trim_matches('"').to_owned()
}

/// A module with the orders and the text in it, that others import.
fn data(orders: &str, text: &str) -> FrozenModule {
    Module::with_temp_heap(|module| {
        let orders: serde_json::Value = serde_json::from_str(orders).expect("JSON");
        module.set("orders", module.heap().alloc(orders));
        module.set("text", module.heap().alloc(text));
        module.freeze().expect("a frozen module")
    })
}

impl Peer for Starlark {
    fn name(&self) -> &'static str {
        "starlark 0.14"
    }

    fn program(&self, task: Task) -> &'static str {
        program(task)
    }

    fn one_liner(&self) -> &'static str {
        "1 + 2"
    }

    fn cold(&self, source: &str) -> Answer {
        Module::with_temp_heap(|module| evaluate(&module, &globals(), source))
    }

    fn warm(&self, orders: &str, text: &str) -> Warm {
        let (globals, data) = (globals(), data(orders, text));
        Box::new(move |source| {
            Module::with_temp_heap(|module| {
                module.import_public_symbols(&data);
                evaluate(&module, &globals, source)
            })
        })
    }

    fn compiler(&self) -> Box<dyn FnMut(&str)> {
        Box::new(|source| drop(parse(source)))
    }

    fn bring(&self) -> Box<dyn FnMut(&str) -> Answer> {
        let globals = globals();
        Box::new(move |orders| {
            Module::with_temp_heap(|module| {
                let orders: serde_json::Value = serde_json::from_str(orders).expect("JSON");
                module.set("orders", module.heap().alloc(orders));
                evaluate(&module, &globals, program(Task::Pipeline))
            })
        })
    }

    fn idle(&self) -> Box<dyn Any> {
        Box::new(Module::with_temp_heap(|module| {
            evaluate(&module, &globals(), "x = 1 + 2\nx");
            module.freeze().expect("a frozen module")
        }))
    }
}
