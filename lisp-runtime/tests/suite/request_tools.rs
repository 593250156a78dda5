//! Tools of a request that JSON Schemas describe.

use lisp_runtime::request::{ScriptedTool, answer_line};
use lisp_runtime::{Engine, Input, Limits, Record, Recording, Request, Tools};
use serde_json::{Value, json};
use std::time::Duration;

fn engine() -> Engine {
    // The machine may be busy.
    let limits = Limits::default().with_timeout_ms(60_000);
    Engine::builder().limits(limits).ceiling(Limits::unlimited()).build().unwrap()
}

fn ask(request: &Value) -> Value {
    serde_json::from_str(&answer_line(&engine(), &request.to_string()).to_json()).unwrap()
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

fn price() -> Value {
    json!({
        "description": "The price of a product. In euros.",
        "input": {
            "type": "object",
            "properties": { "sku": { "type": "string", "description": "Its number." }, "vat-rate": { "type": "number" } },
            "required": ["sku"],
            "additionalProperties": false,
        },
        "output": { "type": "object", "properties": { "price": { "type": "number" } }, "required": ["price"] },
        "returns": { "price": 5 },
    })
}

#[test]
fn calls_are_checked_as_those_of_a_configured_tool() {
    let run = |program: &str, tool: Value| ask(&json!({ "program": program, "tools": { "price": tool } }));
    let answer = run("(:price (tool/price {:sku \"A\" :vat-rate 1.5}))", price());
    assert_eq!(answer["value"], json!(5), "{answer}");
    assert_eq!(answer["ledger"][0]["arguments"], json!({ "sku": "A", "vat-rate": 1.5 }));
    let answer = run("(tool/price {:sku 7})", price());
    assert_eq!(answer["error"]["reason"], "invalid_tool_args");
    assert_eq!(message(&answer), "tool/price: sku: expected a string, got the number 7; write \"7\", in quotes");
    let hint = answer["error"]["hint"].as_str().unwrap();
    assert_eq!(hint, "tool/price: (sku :string, vat-rate? :float) -> {price :float}");
    let mut wrong = price();
    wrong["returns"] = json!({ "prize": 5 });
    let answer = run("(tool/price {:sku \"A\"})", wrong);
    assert_eq!(answer["error"]["reason"], "tool_error");
    assert!(
        message(&answer).contains("its result does not fit its schema: result.price: the field is missing"),
        "{answer}"
    );
    // Arguments that come back are results too.
    let echo = json!({ "echo": true, "output": { "type": "object", "required": ["price"] } });
    assert!(message(&run("(tool/price {:sku 1})", echo.clone())).contains("result.price"));
    assert_eq!(run("(tool/price {:price 1})", echo)["value"], json!({ "price": 1 }));
    // With one of the two, the other is anything.
    assert_eq!(run("(tool/price {:x 1})", json!({ "returns": 3, "output": { "type": "integer" } }))["value"], 3);
    assert_eq!(run("(tool/price {:x 1})", json!({ "returns": "a", "input": true }))["value"], "a");
    let page = run("(doc tool/price)", price())["prints"].to_string();
    assert!(page.contains("In euros") && page.contains("sku: Its number."), "{page}");
}

#[test]
fn what_cannot_be_a_schema_is_an_error_before_anything_runs() {
    let remote = json!({ "properties": { "a": { "$ref": "http://127.0.0.1:9/schema.json" } } });
    let file = json!({ "$ref": "file:///etc/passwd" });
    let pattern = |size: usize| json!({ "type": "string", "pattern": "a".repeat(size) });
    let wide = |n: usize| json!({ "anyOf": vec![json!({ "type": "string" }); n] });
    let patterns: serde_json::Map<String, Value> = (0..101).map(|n| (format!("p{n}"), pattern(1))).collect();
    let mut deep = json!({});
    for _ in 0..50 {
        deep = json!({ "allOf": [deep] });
    }
    for (tool, wanted) in [
        (json!({ "signature": "() -> :int", "input": {} }), "has a signature and a JSON Schema"),
        (json!({ "signature": "() -> :int", "output": {} }), "give one of the two"),
        (
            json!({ "input": { "type": "nothing" } }),
            "the schema of its arguments: it is not a valid JSON Schema at /type: \"nothing\" is not a type; write \"string\", ",
        ),
        (
            json!({ "input": { "properties": { "n": { "type": ["string", "nothing"] } } } }),
            "at /properties/n/type: [\"string\",\"nothing\"] is not a type; write",
        ),
        (json!({ "output": { "required": 5 } }), "the schema of its results"),
        (json!({ "input": 5 }), "the schema of its arguments"),
        (json!({ "input": remote }), "it refers to \"http://127.0.0.1:9/schema.json\", which it does not contain"),
        (json!({ "output": file }), "it refers to \"file:///etc/passwd\""),
        (json!({ "input": pattern(2_001) }), "a pattern may have 2000"),
        (json!({ "input": { "pattern": "(((\\w{9}){9}){9}){9}" } }), "is not a valid JSON Schema"),
        (json!({ "input": { "properties": patterns } }), "more than 100 patterns together"),
        (json!({ "input": wide(10_000) }), "more than 10000 schemas together"),
        (json!({ "input": { "description": "a".repeat(1 << 20) } }), "more than 1048576 bytes together"),
        (json!({ "input": deep }), "more than 32 schemas for one value"),
    ] {
        for kind in [json!({ "client": true }), json!({ "echo": true })] {
            let mut tool = tool.clone();
            tool.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
            let answer = ask(&json!({ "program": "(println 1) 2", "tools": { "t": tool } }));
            assert_eq!(
                (&answer["error"]["reason"], &answer["prints"]),
                (&json!("parse_error"), &json!([])),
                "{answer}"
            );
            let said = message(&answer);
            assert!(said.starts_with("the tools of the request: tool t") && said.contains(wanted), "{said}");
        }
    }
    // What one tool may have, many may have together.
    let half = json!({ "returns": 1, "input": { "description": "a".repeat(600_000) } });
    let answer = ask(&json!({ "program": "2", "tools": { "a": half } }));
    assert_eq!(answer["value"], 2);
    let answer = ask(&json!({ "program": "2", "tools": { "a": half, "b": half } }));
    assert!(
        message(&answer).contains("tool b: ") && message(&answer).contains("bytes together"),
        "{}",
        message(&answer)
    );
}

/// The slowest tools that a request may have, by the processor time that reading them takes.
#[test]
fn reading_the_tools_of_a_request_takes_little_time() {
    let many = |n: usize, schema: &dyn Fn(usize) -> Value| {
        let tools = (0..n).map(|at| (format!("t{at}"), json!({ "client": true, "input": schema(at) })));
        json!({ "program": "1", "tools": Value::Object(tools.collect()) }).to_string()
    };
    let patterns: Vec<Value> = (0..100).map(|n| json!({ "pattern": format!("^(\\w{{0,13}}|{n})$") })).collect();
    let fields: serde_json::Map<String, Value> =
        (0..9_000).map(|n| (format!("f{n}"), json!({ "type": "string", "format": "date" }))).collect();
    let ladder: serde_json::Map<String, Value> = (0..15)
        .map(|n| {
            let next = json!({ "$ref": format!("#/$defs/n{}", n + 1) });
            (format!("n{n}"), json!({ "anyOf": [next, next, next, next] }))
        })
        .chain([("n15".to_owned(), json!({ "type": "string" }))])
        .collect();
    let ladder = json!({ "$ref": "#/$defs/n0", "$defs": ladder });
    for (what, line) in [
        ("patterns", many(1, &|_| json!({ "allOf": patterns }))),
        ("fields", many(1, &|_| json!({ "properties": fields }))),
        ("small tools", many(1_000, &|at| json!({ "properties": {}, "title": at.to_string() }))),
        ("references", many(100, &|_| ladder.clone())),
    ] {
        let request = Request::parse(&line).unwrap();
        let (tools, took) = crate::cpu::timed(|| request.own_tools(&engine()));
        let tools = tools.map(|tools| tools.all().count()).map_err(|problem| problem.to_string());
        assert_eq!(tools, Ok(request.tools.len()), "{what}");
        // It takes 0.3 s in a debug build; the service reads them on a thread that may block.
        assert!(took < Duration::from_secs(3), "{what}: {took:?}");
    }
}

#[test]
fn a_request_keeps_its_tools_when_it_is_written() {
    let text = json!({ "program": "1", "tools": { "price": price() } }).to_string();
    let request = Request::parse(&text).unwrap();
    let again = serde_json::to_string(&request).unwrap();
    let read: Value = serde_json::from_str(&again).unwrap();
    for field in ["description", "input", "output"] {
        assert_eq!(read["tools"]["price"][field], price()[field]);
    }
}

/// The header of a record has the schemas: a resumed run checks by them, and takes no other tool for it.
#[test]
fn a_recorded_run_resumes_with_the_same_schemas() {
    let script: ScriptedTool = serde_json::from_value(price()).unwrap();
    let own = |script: &ScriptedTool| {
        let mut tools = Tools::new();
        tools.add(script.tool("price")).unwrap();
        Input::new().tools(tools)
    };
    let recording = Recording::builder().build();
    let engine = engine();
    let program = "(:price (tool/price {:sku \"A\"}))";
    assert_eq!(engine.eval(program, own(&script).record(&recording)).text(), Some("5"));
    let text = recording.text();
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        header["contracts"]["price"]["schemas"],
        json!({ "input": price()["input"], "output": price()["output"] })
    );
    let record = Record::parse(&text).unwrap();
    let resumed = |script: &ScriptedTool| {
        engine
            .open_record_given(&record, own(script), &Recording::builder())
            .map(|(program, input, _)| engine.run(&program, input).text().map(str::to_owned))
            .map_err(|error| error.to_string())
    };
    assert_eq!(resumed(&script), Ok(Some("5".to_owned())));
    let mut other = price();
    other["output"] = json!({ "type": "object" });
    let error = resumed(&serde_json::from_value(other).unwrap()).unwrap_err();
    assert!(error.contains("price") && error.contains("output schema"), "{error}");
}

#[test]
fn the_prompt_of_a_run_has_its_tools() {
    let text = json!({ "program": "1", "tools": { "price": price() }, "json_keys": "keywords" }).to_string();
    let request = Request::parse(&text).unwrap();
    let engine = Engine::builder().grant(lisp_runtime::Tool::external("now")).build().unwrap();
    let own = request.own_tools(&engine).unwrap();
    let prompt = engine.prompt_for_run(&request.input_with(own));
    let line = "tool/price (sku :string, vat-rate? :float) -> {price :float} ; The price of a product.";
    assert!(prompt.contains(line) && prompt.contains("tool/now\n") && prompt.contains("keys are keywords"), "{prompt}");
    assert!(!engine.prompt().contains("tool/price"));
}

#[test]
fn a_tool_of_the_client_says_where_it_works() {
    let answer = ask(&json!({ "program": "(tool/ask {})", "tools": { "ask": { "client": true } } }));
    let wanted = "tool/ask: it is answered by its client, which only the service supports (ptcl serve); elsewhere give it `returns`, \
                  `error` or `echo`";
    assert_eq!(message(&answer), wanted);
}
