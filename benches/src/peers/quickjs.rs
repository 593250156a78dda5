//! QuickJS-ng, by rquickjs.

use super::{Answer, Compiled, MEMORY, NONE, Peer, STEPS, Task, Warm, programs};
use rquickjs::{Coerced, Context, Function, Runtime, Value};
use std::any::Any;

programs!("js");

pub(super) struct QuickJs;

fn runtime() -> Runtime {
    let runtime = Runtime::new().expect("a runtime");
    runtime.set_memory_limit(MEMORY);
    let mut steps = 0u64;
    runtime.set_interrupt_handler(Some(Box::new(move || {
        steps += 1;
        steps > STEPS
    })));
    runtime
}

fn run(context: &Context, source: &str) -> Answer {
    context.with(|ctx| ctx.eval::<Coerced<String>, _>(source).expect("an answer").0)
}

/// A function that is not called is compiled all the same.
fn function_of(source: &str) -> String {
    format!("() => ({})", source.trim_end())
}

fn set_json(context: &Context, name: &str, json: &str) {
    context.with(|ctx| {
        let value = ctx.json_parse(json).expect("JSON");
        ctx.globals().set(name, value).expect("a global");
    });
}

impl Peer for QuickJs {
    fn name(&self) -> &'static str {
        "QuickJS-ng (rquickjs 0.14)"
    }

    fn program(&self, task: Task) -> &'static str {
        program(task)
    }

    fn one_liner(&self) -> &'static str {
        "1 + 2"
    }

    fn cold(&self, source: &str) -> Answer {
        let runtime = runtime();
        run(&Context::full(&runtime).expect("a context"), source)
    }

    fn warm(&self, orders: Option<&str>, text: Option<&str>) -> Warm {
        let runtime = runtime();
        let context = Context::full(&runtime).expect("a context");
        set_json(&context, "orders", orders.unwrap_or(NONE));
        context.with(|ctx| ctx.globals().set("text", text.unwrap_or_default())).expect("a global");
        Box::new(move |source| run(&context, source))
    }

    fn compiler(&self) -> Box<dyn FnMut(&str)> {
        let runtime = runtime();
        let context = Context::full(&runtime).expect("a context");
        Box::new(move |source| {
            context.with(|ctx| drop(ctx.eval::<Value<'_>, _>(function_of(source)).expect("a function")));
        })
    }

    fn compiled(&self, orders: Option<&str>, source: &str) -> Compiled {
        let runtime = runtime();
        let context = Context::full(&runtime).expect("a context");
        set_json(&context, "orders", orders.unwrap_or(NONE));
        context.with(|ctx| {
            let program: Value<'_> = ctx.eval(function_of(source)).expect("a function");
            ctx.globals().set("program", program).expect("a global");
        });
        Box::new(move |orders| {
            if let Some(json) = orders {
                set_json(&context, "orders", json);
            }
            context.with(|ctx| {
                let program: Function<'_> = ctx.globals().get("program").expect("a function");
                program.call::<_, Coerced<String>>(()).expect("an answer").0
            })
        })
    }

    fn bring(&self) -> Box<dyn FnMut(&str) -> Answer> {
        let runtime = runtime();
        let context = Context::full(&runtime).expect("a context");
        Box::new(move |orders| {
            set_json(&context, "orders", orders);
            run(&context, program(Task::Pipeline))
        })
    }

    fn import(&self) -> Box<dyn FnMut(&str)> {
        let runtime = runtime();
        let context = Context::full(&runtime).expect("a context");
        Box::new(move |orders| context.with(|ctx| drop(ctx.json_parse(orders).expect("JSON"))))
    }

    fn idle(&self) -> Box<dyn Any> {
        Box::new(Context::full(&runtime()).expect("a context"))
    }
}
