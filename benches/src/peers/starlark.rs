//! Starlark, by the crate of that name.

use super::{Answer, Compiled, MEMORY, NONE, Peer, STEPS, Task, Warm, programs};
use starlark::environment::{FrozenModule, Globals, GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::Value;
use std::any::Any;

programs!("star");

pub(super) struct Starlark;

fn globals() -> Globals {
    GlobalsBuilder::extended_by(&[LibraryExtension::Json]).build()
}

fn parse(source: &str) -> AstModule {
    AstModule::parse("program.star", source.to_owned(), &Dialect::Extended).expect("a module")
}

fn limit(evaluator: &mut Evaluator<'_, '_, '_>) {
    evaluator.set_max_heap_size(MEMORY).expect("a heap limit");
    evaluator.set_max_tick_count(STEPS).expect("a limit of ticks");
}

/// Of a text its characters, without marks around them.
fn answer(value: Value<'_>) -> Answer {
    value.unpack_str().map_or_else(|| value.to_str(), str::to_owned)
}

fn evaluate<'v>(module: &Module<'v>, globals: &Globals, source: &str) -> Answer {
    let mut evaluator = Evaluator::new(module);
    limit(&mut evaluator);
    answer(evaluator.eval_module(parse(source), globals).expect("an answer"))
}

fn value_of<'v>(module: &Module<'v>, json: &str) -> Value<'v> {
    let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
    module.heap().alloc(value)
}

/// A module in which the program is the function `main` of the orders: its last line is the answer.
fn main_of(source: &str, globals: &Globals) -> FrozenModule {
    let source = source.trim_end();
    let (definitions, last) = source.rsplit_once('\n').unwrap_or(("", source));
    Module::with_temp_heap(|module| {
        evaluate(&module, globals, &format!("{definitions}\ndef main(orders):\n    return {last}\n"));
        module.freeze().expect("a frozen module")
    })
}

/// A module with the orders and the text in it, that others import.
fn data(orders: &str, text: &str) -> FrozenModule {
    Module::with_temp_heap(|module| {
        module.set("orders", value_of(&module, orders));
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

    fn warm(&self, orders: Option<&str>, text: Option<&str>) -> Warm {
        let (globals, data) = (globals(), data(orders.unwrap_or(NONE), text.unwrap_or_default()));
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

    fn compiled(&self, orders: Option<&str>, source: &str) -> Compiled {
        let (program, data) = (main_of(source, &globals()), data(orders.unwrap_or(NONE), ""));
        Box::new(move |orders| {
            Module::with_temp_heap(|module| {
                let frozen =
                    |of: &FrozenModule, name| module.heap().access_owned_frozen_value(&of.get(name).expect(name));
                let orders = orders.map_or_else(|| frozen(&data, "orders"), |json| value_of(&module, json));
                let main = frozen(&program, "main");
                let mut evaluator = Evaluator::new(&module);
                limit(&mut evaluator);
                answer(evaluator.eval_function(main, &[orders], &[]).expect("an answer"))
            })
        })
    }

    fn bring(&self) -> Box<dyn FnMut(&str) -> Answer> {
        let globals = globals();
        Box::new(move |orders| {
            Module::with_temp_heap(|module| {
                module.set("orders", value_of(&module, orders));
                evaluate(&module, &globals, program(Task::Pipeline))
            })
        })
    }

    fn import(&self) -> Box<dyn FnMut(&str)> {
        Box::new(|orders| {
            Module::with_temp_heap(|module| {
                std::hint::black_box(value_of(&module, orders));
            });
        })
    }

    fn idle(&self) -> Box<dyn Any> {
        Box::new(Module::with_temp_heap(|module| {
            evaluate(&module, &globals(), "x = 1 + 2\nx");
            module.freeze().expect("a frozen module")
        }))
    }
}
