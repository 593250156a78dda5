//! Lua 5.4 or Luau, by mlua. Lua looks at the limit every 1,000 instructions by a hook, Luau by its interrupt. Both run
//! once more without limits, which nobody should do with a program of a model's, but which is how fast they can be.

use super::{Answer, Compiled, MEMORY, NONE, Peer, STEPS, Task, Warm, programs};
use jiter::JsonValue;
use mlua::{IntoLua, LuaOptions, StdLib, Value};
use std::any::Any;

programs!("lua");

pub(super) struct Lua {
    pub(super) limits: bool,
}

fn state(limits: bool) -> mlua::Lua {
    let lua =
        mlua::Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, LuaOptions::default()).expect("a state");
    if !limits {
        return lua;
    }
    lua.set_memory_limit(MEMORY).expect("a memory limit");
    let steps = std::cell::Cell::new(0u64);
    let check = move || {
        steps.set(steps.get() + 1);
        if steps.get() > STEPS { Err(mlua::Error::runtime("too many steps")) } else { Ok(mlua::VmState::Continue) }
    };
    #[cfg(feature = "luau")]
    lua.set_interrupt(move |_| check());
    #[cfg(not(feature = "luau"))]
    lua.set_hook(mlua::HookTriggers::new().every_nth_instruction(1_000), move |_, _| check()).expect("a hook");
    lua
}

fn answer(value: &Value) -> Answer {
    value.to_string().expect("a text")
}

/// A JSON value as Lua's. Not by way of serde: a feature that other interpreters turn on makes tables of its numbers.
fn table_of(lua: &mlua::Lua, value: &JsonValue<'_>) -> mlua::Result<Value> {
    Ok(match value {
        JsonValue::Null => Value::Nil,
        JsonValue::Bool(b) => Value::Boolean(*b),
        JsonValue::Int(i) => (*i).into_lua(lua)?,
        JsonValue::Float(f) => Value::Number(*f),
        JsonValue::Str(s) => Value::String(lua.create_string(s.as_bytes())?),
        JsonValue::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| table_of(lua, item)).collect::<mlua::Result<_>>()?;
            Value::Table(lua.create_sequence_from(items)?)
        }
        JsonValue::Object(entries) => {
            let table = lua.create_table_with_capacity(0, entries.len())?;
            for (key, value) in entries.iter() {
                table.raw_set(key.as_ref(), table_of(lua, value)?)?;
            }
            Value::Table(table)
        }
    })
}

fn decode(lua: &mlua::Lua, json: &[u8]) -> mlua::Result<Value> {
    table_of(lua, &JsonValue::parse(json, false).map_err(mlua::Error::external)?)
}

fn set_json(lua: &mlua::Lua, name: &str, json: &str) {
    lua.globals().set(name, decode(lua, json.as_bytes()).expect("JSON")).expect("a global");
}

/// A state whose globals have the orders (JSON text), and functions for JSON.
fn state_with(limits: bool, orders: &str) -> mlua::Lua {
    let lua = state(limits);
    set_json(&lua, "orders", orders);
    let decode = lua.create_function(|lua, text: mlua::LuaString| decode(lua, &text.as_bytes())).expect("a function");
    let encode = lua
        .create_function(|_, value: Value| serde_json::to_string(&value).map_err(mlua::Error::external))
        .expect("a function");
    lua.globals().set("json_decode", decode).expect("a global");
    lua.globals().set("json_encode", encode).expect("a global");
    lua
}

/// An environment of its own over the globals.
fn environment(lua: &mlua::Lua) -> mlua::Table {
    let globals = lua.create_table().expect("a table");
    globals.set("__index", lua.globals()).expect("an index");
    let environment = lua.create_table().expect("a table");
    environment.set_metatable(Some(globals)).expect("a metatable");
    environment
}

fn run(lua: &mlua::Lua, source: &str) -> Answer {
    answer(&lua.load(source).set_environment(environment(lua)).eval().expect("an answer"))
}

impl Peer for Lua {
    fn name(&self) -> &'static str {
        match (cfg!(feature = "luau"), self.limits) {
            (false, true) => "Lua 5.4 (mlua 0.12)",
            (false, false) => "Lua 5.4, no limits",
            (true, true) => "Luau (mlua 0.12)",
            (true, false) => "Luau, no limits",
        }
    }

    fn program(&self, task: Task) -> &'static str {
        program(task)
    }

    fn one_liner(&self) -> &'static str {
        "return 1 + 2"
    }

    fn cold(&self, source: &str) -> Answer {
        answer(&state(self.limits).load(source).eval().expect("an answer"))
    }

    fn warm(&self, orders: Option<&str>, text: Option<&str>) -> Warm {
        let lua = state_with(self.limits, orders.unwrap_or(NONE));
        lua.globals().set("text", text.unwrap_or_default()).expect("a global");
        Box::new(move |source| run(&lua, source))
    }

    fn compiler(&self) -> Box<dyn FnMut(&str)> {
        let lua = state(self.limits);
        Box::new(move |source| drop(lua.load(source).into_function().expect("a function")))
    }

    fn compiled(&self, orders: Option<&str>, source: &str) -> Compiled {
        let lua = state_with(self.limits, orders.unwrap_or(NONE));
        let function = lua.load(source).into_function().expect("a function");
        Box::new(move |orders| {
            if let Some(json) = orders {
                set_json(&lua, "orders", json);
            }
            function.set_environment(environment(&lua)).expect("an environment");
            answer(&function.call(()).expect("an answer"))
        })
    }

    fn bring(&self) -> Box<dyn FnMut(&str) -> Answer> {
        let lua = state_with(self.limits, NONE);
        Box::new(move |orders| {
            set_json(&lua, "orders", orders);
            run(&lua, program(Task::Pipeline))
        })
    }

    fn import(&self) -> Box<dyn FnMut(&str)> {
        let lua = state(self.limits);
        Box::new(move |orders| drop(decode(&lua, orders.as_bytes()).expect("JSON")))
    }

    fn idle(&self) -> Box<dyn Any> {
        Box::new(state(self.limits))
    }
}
