//! Requests and answers.

use lisp_runtime::request::{answer_bytes, answer_bytes_by, answer_line};
use lisp_runtime::{Answer, Engine, Limits, Request, Verdict};
use serde_json::{Value, json};

fn ask(request: &Value) -> Value {
    let engine = Engine::builder().ceiling(Limits::unlimited()).build().expect("an engine");
    let text = answer_line(&engine, &request.to_string()).to_json();
    serde_json::from_str(&text).expect("an answer is JSON")
}

#[test]
fn one_request_with_everything() {
    let answer = ask(&json!({
        "id": {"n": [1]},
        "program": "(println \"hi\") (def seen (conj seen (tool/price {:sku data/sku}))) {:total (reduce + seen) :last *1}",
        "setup": ["(defn unused [x] x)"],
        "data": {"sku": "A"},
        "memory": {"seen": [1.5]},
        "history": [7],
        "tools": {"price": {"returns": 2.5, "signature": "(sku :string) -> :float", "cache": true, "delay_ms": 1}},
        "limits": {"fuel": 100_000, "timeout_ms": 5_000},
        "signature": "() -> {total :float, last :int}",
        "strict_data": true,
        "isolation": "in_process",
    }));
    assert_eq!(answer["schema"], "ptc-lisp/1");
    assert_eq!(answer["id"], json!({"n": [1]}));
    assert_eq!((&answer["verdict"], &answer["outcome"]), (&json!("ok"), &json!("value")));
    assert_eq!(answer["value"], json!({"total": 4.0, "last": 7}));
    assert_eq!(answer["text"], "{:last 7 :total 4.0}");
    assert_eq!(answer["prints"], json!(["hi"]));
    assert_eq!(answer["memory"], json!({"seen": [1.5, 2.5]}));
    assert_eq!(answer["truncated"], json!({}));
    assert_eq!(answer["ledger"][0]["arguments"], json!({"sku": "A"}));
    assert_eq!(answer["ledger"][0]["status"], "ok");
    assert_eq!(answer["ledger"][0]["result"], json!(2.5));
    assert_eq!(answer["limits"]["fuel"], json!(100_000));
    assert_eq!(answer["cost_schedule"], json!(lisp_runtime::language::COST_SCHEDULE_VERSION));
    assert!(answer["usage"]["fuel"].as_u64() > Some(0));
    assert!(answer["run_id"].as_str().is_some_and(|id| id.len() > 16));
    assert!(answer.get("error").is_none());
}

/// An answer of another version can be read: unknown limits are ignored, missing ones are off.
#[test]
fn answers_of_other_versions_have_limits() {
    let mut answer = ask(&json!({ "program": "1" }));
    let limits = answer["limits"].as_object_mut().unwrap();
    for (name, value) in [("limit_of_tomorrow", json!(7)), ("another", json!("1 GB")), ("one_more", Value::Null)] {
        limits.insert(name.to_owned(), value);
    }
    limits.remove("session_undo");
    limits.remove("worker_heap_bytes");
    let read: Answer = serde_json::from_str(&answer.to_string()).unwrap();
    let (limits, off) = (read.limits.unwrap(), Limits::unlimited());
    assert_eq!((limits.session_undo, limits.worker_heap_bytes), (off.session_undo, off.worker_heap_bytes));
    assert_eq!((limits.fuel, limits.heap_bytes), (Limits::default().fuel, Limits::default().heap_bytes));
    answer["limits"]["fuel"] = json!("many");
    assert!(serde_json::from_str::<Answer>(&answer.to_string()).is_err());
}

#[test]
fn an_error_has_its_place_and_figures() {
    let answer = ask(&json!({"program": "(println 1)\n(loop [] (recur))", "limits": {"loop_iterations": 10}}));
    assert_eq!(answer["verdict"], "error");
    assert_eq!(answer["error"]["reason"], "loop_limit_exceeded");
    assert_eq!(answer["error"]["line"], 2);
    assert_eq!(answer["error"]["details"]["phase"], "eval");
    assert_eq!(answer["prints"], json!(["1"]));
    assert!(answer.get("value").is_none() && answer.get("memory").is_none());
    let answer = ask(&json!({"program": "(defn f [x] (inc (f x))) (f 1)", "limits": {"heap_bytes": 100_000}}));
    assert_eq!(answer["verdict"], "out_of_memory");
    assert_eq!(answer["error"]["details"]["budget_bytes"], 100_000);
}

#[test]
fn scripted_tools() {
    let tools = json!({"bad": {"error": "boom"}, "say": {"echo": true}, "none": {}, "free": {"echo": true}});
    let run = |program: &str| ask(&json!({"program": program, "tools": tools}));
    assert_eq!(run("(tool/bad)")["error"]["reason"], "tool_error");
    assert_eq!(run("(tool/say {:a 1})")["value"], json!({"a": 1}));
    assert_eq!(run("(tool/none)")["value"], Value::Null);
    assert_eq!(run("(tool/free {:a 1})")["value"], json!({"a": 1}));
    assert_eq!(run("(tool/other)")["error"]["reason"], "unknown_tool");
    // A signature that cannot be read is an error, whatever answers the calls: before anything is done.
    for script in
        [json!({"returns": 1}), json!({"echo": true}), json!({"error": "x"}), json!({"client": true}), json!({})]
    {
        for signature in ["anything", "(x :int", "(x :nothing!) -> :int", "", "(x :int) ->"] {
            let mut script = script.clone();
            script["signature"] = signature.into();
            let answer = ask(&json!({"program": "(println 1) 2", "tools": {"t": script}}));
            let error = &answer["error"];
            assert_eq!(
                (&error["reason"], answer["prints"].as_array().map_or(0, Vec::len)),
                (&json!("parse_error"), 0),
                "{answer}"
            );
            assert!(error["message"].as_str().unwrap().contains('t'), "{answer}");
        }
    }
}

#[test]
fn what_is_no_request_is_answered_too() {
    let engine = Engine::default();
    for line in ["", "null", "[]", "{", "{\"program\": 1}", "{\"program\": \"1\", \"data\": {}, \"extra\": 1}"] {
        let answer = answer_line(&engine, line);
        assert_eq!(answer.verdict, Verdict::Error, "{line}");
        assert_eq!(answer.error.expect("an error").reason, "parse_error", "{line}");
    }
    assert_eq!(answer_bytes(&engine, b"{\"program\": \"\xff\"}").verdict, Verdict::Error);
    assert_eq!(ask(&json!({"program": "1", "data": [1]}))["error"]["reason"], "parse_error");
    assert_eq!(ask(&json!({"program": "1", "isolation": "process"}))["verdict"], "error");
}

#[test]
fn answers_can_be_read_back() {
    let engine = Engine::default();
    let answer = answer_line(&engine, r#"{"id": 1, "program": "(def a [1 {:b 2.50}]) a"}"#);
    let text = answer.to_json();
    let read: Answer = serde_json::from_str(&text).expect("an answer");
    assert_eq!(read.to_json(), text);
}

#[test]
fn what_is_cut_is_said() {
    let answer = ask(&json!({
        "program": "(doseq [i (range 100)] (println \"a line\")) 1",
        "limits": {"prints_bytes": 300},
    }));
    assert_eq!(answer["truncated"]["prints"]["lines_total"], 100);
    assert_eq!(answer["truncated"]["prints"]["lines_shown"], 10);
}

/// The signatures of a request's tools are read in the run's time.
#[test]
fn tools_are_read_before_the_deadline() {
    let signature = format!("({}) -> :int", (0..800).map(|i| format!("a{i} :int")).collect::<Vec<_>>().join(", "));
    let tools: Vec<String> =
        (0..1_000).map(|i| format!(r#""t{i}": {{"returns": 1, "signature": "{signature}"}}"#)).collect();
    let line = format!(r#"{{"program": "1", "limits": {{"timeout_ms": 20}}, "tools": {{{}}}}}"#, tools.join(", "));
    let request = Request::parse(&line).unwrap();
    let took = (0..5).map(|_| {
        let (outcome, took) = crate::cpu::timed(|| request.outcome(&Engine::default()));
        assert_eq!(outcome.verdict(), Verdict::Timeout, "{:?}", outcome.problem());
        took
    });
    let least = took.min().unwrap();
    assert!(least < std::time::Duration::from_millis(60), "{least:?}");
}

/// What a request omits is not in the answer, nor in what it says was cut; what is left is the same.
#[test]
fn parts_that_are_omitted_are_not_there() {
    let request = |omit: &[&str]| {
        json!({
            "program": "(def a {\"k\" 1 :k 2}) (tool/t {}) (println 1) \"text\"",
            "tools": {"t": {"returns": "x".repeat(3_000)}},
            "limits": {"result_bytes": 100_000},
            "omit": omit,
        })
    };
    let whole = ask(&request(&[]));
    let parts = ["value", "text", "memory", "ledger", "limits"];
    for part in parts {
        let answer = ask(&request(&[part]));
        for (name, value) in whole.as_object().unwrap() {
            match name.as_str() {
                name if name == part => assert!(answer.get(name).is_none(), "{part}: {answer}"),
                "truncated" => assert!(answer["truncated"].get(part).is_none(), "{part}: {answer}"),
                "run_id" | "usage" => {}
                name => {
                    let (mut one, mut other) = (value.clone(), answer[name].clone());
                    for line in [&mut one, &mut other].into_iter().filter_map(|it| it.get_mut(0)) {
                        if let Some(line) = line.as_object_mut() {
                            line.remove("duration_us");
                        }
                    }
                    assert_eq!(one, other, "{part}: {name}");
                }
            }
        }
    }
    let least = ask(&request(&parts));
    assert_eq!(least.get("truncated"), Some(&json!({})));
    let error = Request::parse(r#"{"program": "1", "omit": ["prints"]}"#).unwrap_err().to_string();
    assert!(error.contains("`prints`") && error.contains("`ledger`"), "{error}");
}

/// A bug of whatever runs the request is contained, and its answer can be told from others.
#[test]
fn the_answer_to_a_bug_has_the_id_of_its_request() {
    let engine = Engine::default();
    for id in ["7", r#""a""#, r#"{"n": [1, null]}"#] {
        let line = format!(r#"{{"program": "(+ 1 2)", "limits": {{"fuel": 9}}, "id": {id}}}"#);
        let answer = answer_bytes_by(&engine, line.as_bytes(), |_| std::panic::panic_any("a bug of a test"));
        let answer: Value = serde_json::from_str(&answer.to_json()).expect("an answer is JSON");
        assert_eq!(answer["id"], serde_json::from_str::<Value>(id).expect("an id is JSON"));
        assert_eq!((&answer["verdict"], &answer["error"]["reason"]), (&json!("host_fault"), &json!("host_fault")));
        assert_eq!(answer["schema"], "ptc-lisp/1");
    }
}
