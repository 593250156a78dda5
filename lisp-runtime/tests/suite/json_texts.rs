//! JSON texts at every place where they come in or go out: of equal keys the last counts, what is written can be read again, and a
//! number that JSON does not have is nowhere a string.

use lisp_runtime::outcome::WarningKind;
use lisp_runtime::request::answer_line;
use lisp_runtime::{Answer, Engine, Input, Reason, Request, Tool};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// What a program answers to a request, and what its tool got.
fn answer(request: &Value) -> Value {
    let line = answer_line(&Engine::default(), &request.to_string()).to_json();
    serde_json::from_str(&line).expect("an answer is JSON")
}

fn text(answer: &Answer) -> &str {
    answer.text.as_deref().unwrap_or_else(|| panic!("{:?}", answer.error))
}

/// A reader: the text of the value that it makes of a JSON text, or the reason of its error.
type Reads = Box<dyn Fn(&str) -> Result<String, String>>;

/// All readers of JSON texts, by name.
fn readers() -> Vec<(&'static str, Reads)> {
    fn of(program: &'static str, field: fn(&str) -> String) -> Reads {
        Box::new(move |json| {
            let request = format!(r#"{{"program": {}, {}}}"#, Value::from(program), field(json));
            let answer = answer_line(&Engine::default(), &request);
            answer.error.as_ref().map_or_else(|| Ok(text(&answer).to_owned()), |error| Err(error.message.clone()))
        })
    }
    fn eval(program: &'static str, input: fn(&str) -> Input<'static>) -> Reads {
        Box::new(move |json| {
            let outcome = Engine::default().eval(program, input(json));
            outcome.text().map(str::to_owned).ok_or_else(|| outcome.problem().expect("a problem").error.message.clone())
        })
    }
    let set = |json: &str, program: &str| {
        let engine = Engine::default();
        let set = engine.import("x", json).map_err(|problem| problem.error.message.clone())?;
        Ok(engine.eval(program, Input::new().data_set(&set)).text().unwrap_or_default().to_owned())
    };
    vec![
        (
            "json/parse-string",
            eval("(json/parse-string data/s)", |json| Input::new().json("s", Value::from(json).to_string())),
        ),
        (
            "json/parse-lines",
            eval("(first (json/parse-lines data/s))", |json| Input::new().json("s", Value::from(json).to_string())),
        ),
        ("data", eval("data/x", |json| Input::new().json("x", json.to_owned()))),
        ("data object", eval("data/x", |json| Input::new().json_object(format!(r#"{{"x": {json}}}"#)))),
        ("a data set", Box::new(move |json| set(json, "data/x"))),
        ("memory", eval("x", |json| Input::new().memory(format!(r#"{{"x": {json}}}"#)))),
        ("history", eval("*1", |json| Input::new().history(format!("[{json}]")))),
        ("a request's data", of("data/x", |json| format!(r#""data": {{"x": {json}}}"#))),
        ("a request's memory", of("x", |json| format!(r#""memory": {{"x": {json}}}"#))),
        ("a request's history", of("*1", |json| format!(r#""history": [{json}]"#))),
        ("a tool's reply", of("(tool/t)", |json| format!(r#""tools": {{"t": {{"returns": {json}}}}}"#))),
    ]
}

#[test]
fn of_equal_keys_the_last_counts_for_every_reader() {
    let long: String = (0..60).map(|i| format!(r#""k{i}":0,"#)).collect();
    let twice = format!(r#"{{"rows":[{{"a":1,"b":2,"a":3}},{{"a":4,"b":5,"\u0061":6}}],{long}"k7":7,"k7":8}}"#);
    for (name, read) in readers() {
        let came = read(&twice).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            came.contains(r#""rows" [{"a" 3 "b" 2} {"a" 6 "b" 5}]"#) && came.contains(r#""k7" 8"#),
            "{name}: {came}"
        );
    }
    // Fields of the request itself, and names of what is given.
    let request = r#"{"program":"0","data":{"x":1},"data":{"x":2,"y":3,"y":4},"program":"[data/x data/y m *1 (tool/t)]",
        "memory":{"m":5,"m":6},"history":[7],"history":[8],"tools":{"t":{"returns":9},"t":{"returns":1,"returns":10}}}"#;
    assert_eq!(text(&answer_line(&Engine::default(), request)), "[2 4 6 8 10]");
}

/// Nested values of a depth, as JSON.
fn nested(depth: usize) -> String {
    let (mut open, mut close) = (String::new(), String::new());
    for level in 0..depth {
        open.push_str(if level % 2 == 0 { "[" } else { r#"{"k":"# });
        close.insert(0, if level % 2 == 0 { ']' } else { '}' });
    }
    // What is innermost has something in it.
    format!("{open}{}{close}", if depth.is_multiple_of(2) { "1" } else { "" })
}

/// What is written at one place is read at all; what cannot be read is not written.
#[test]
fn depths_and_digits_that_are_written_are_read_by_every_reader() {
    let digits = |count: usize| "7".repeat(count);
    for (json, is_within) in [
        (nested(511), true),
        (nested(512), true),
        (nested(513), false),
        (nested(600), false),
        (digits(4_300), true),
        (format!("-{}", digits(4_300)), true),
        (digits(4_301), false),
    ] {
        for (name, read) in readers() {
            let came = read(&json);
            // These two say nil for what they cannot read.
            let is_read = came.is_ok() && !(name.starts_with("json/") && came == Ok("nil".to_owned()));
            assert_eq!(is_read, is_within, "{name} {}: {came:?}", json.len());
        }
    }
    let engine = Engine::builder().grant(Tool::echo("t")).build().unwrap();
    let levels = "(reduce (fn [a i] (if (even? i) [a] {\"k\" a})) [] (range data/n))";
    let long = "(reduce (fn [a i] (+ (* a 10) 7)) 0 (range data/n))";
    for (make, max, limit) in [(levels, 511, "512"), (long, 4_300, "4300")] {
        for more in [-1, 0, 1, 100] {
            let given = |n: i64| Input::new().json("n", n.to_string());
            let run = engine.eval(&format!("(def m {make}) (def p {{:f inc}}) m"), given(max + more));
            assert!(run.is_success(), "{run:?}");
            assert_eq!((run.json().is_some(), run.memory().is_some()), (more <= 0, more <= 0));
            for error in [run.json_error(), run.memory_error()] {
                assert_eq!(error.is_some(), more > 0);
                assert!(error.is_none_or(|error| error.message.contains(limit)), "{error:?}");
            }
            for call in ["(json/generate-string x)", "(count (tool/t {:a [x]}))"] {
                // An argument stands in the object of all of them, and here in an array.
                let inside = if call.contains("tool") && make == levels { 2 } else { 0 };
                let run = engine.eval(&format!("(def x {make}) {call} 1"), given(max + more - inside).without_memory());
                match run.problem() {
                    None => assert!(more <= 0, "{call}"),
                    Some(problem) => {
                        assert!(more > 0, "{call}: {problem}");
                        assert_eq!(problem.reason(), Reason::ResultLimitExceeded);
                        assert!(problem.error.message.contains(limit), "{problem}");
                    }
                }
            }
        }
    }
}

/// JSON texts of every kind of value that JSON has.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        "-?[1-9][0-9]{18,60}",
        any::<f64>().prop_filter("a number", |f| f.is_finite()).prop_map(|f| format!("{f:?}")),
        any::<f64>().prop_filter("a number", |f| f.is_finite()).prop_map(|f| format!("{f:e}")),
        any::<String>().prop_map(|s| Value::from(s).to_string()),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec((".{0,6}", inner), 0..5).prop_map(|fields| {
                let fields: Vec<_> = fields.iter().map(|(k, v)| format!("{}: {v}", Value::from(k.as_str()))).collect();
                format!("{{{}}}", fields.join(", "))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// All readers make the same value of a text, and what is written of it at every place is read as that value again.
    #[test]
    fn what_is_written_is_read_back_equal(json in json_text()) {
        let engine = Engine::default();
        let mut first = None;
        for (name, read) in readers() {
            let came = read(&json).unwrap_or_else(|error| panic!("{name}: {error}: {json}"));
            prop_assert_eq!(first.get_or_insert(came.clone()), &came, "{}", name);
        }
        let got = Arc::new(Mutex::new(String::new()));
        let keep = got.clone();
        let tool = Tool::new("t", move |call| {
            *keep.lock().unwrap() = call.json().to_owned();
            Ok(json!(null))
        });
        let engine_with_tool = Engine::builder().grant(tool).build().unwrap();
        let program = "(def m data/x) (tool/t {:a m}) [m (json/generate-string m)]";
        let run = engine_with_tool.eval(program, Input::new().json("x", json.clone()));
        let expected = format!("[true true true true {}]", first.unwrap_or_default());
        let arguments = got.lock().unwrap().clone();
        let input = Input::new()
            .json("x", json)
            .json("value", run.json().expect("a value").to_owned())
            .json("sent", arguments)
            .memory(run.memory().expect("definitions").to_owned())
            .history(format!("[{}]", run.json().expect("a value")));
        let program = "(let [same #(= (pr-str %) (pr-str data/x))]
            [(same m) (same (json/parse-string (second data/value))) (same (first *1)) (same (get data/sent \"a\")) data/x])";
        let again = engine.eval(program, input);
        prop_assert_eq!(again.text(), Some(expected.as_str()));
    }
}

#[test]
fn a_number_that_json_has_not_is_null_with_a_warning() {
    let program = "(def rate ##-Inf) (def ok 1) (def f inc) {:a {:b [1 2 ##NaN]} \"x y\" #{##Inf}}";
    let run = answer(&json!({ "program": program }));
    assert_eq!(run["value"], json!({ "a": { "b": [1, 2, null] }, "x y": [null] }), "{run}");
    assert_eq!(run["text"], "{:a {:b [1 2 ##NaN]} \"x y\" #{##Inf}}");
    assert_eq!(run["memory"], json!({ "rate": null, "ok": 1 }));
    assert_eq!(run["truncated"], json!({}));
    let told = |run: &Value| -> Vec<String> {
        let all = run["warnings"].as_array().into_iter().flatten();
        all.map(|warning| format!("{} {}", warning["kind"].as_str().unwrap(), warning["message"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(
        told(&run),
        [
            "null_in_value $.a.b[2] of the value is ##NaN, which JSON cannot express: it is written as null",
            "null_in_value $[\"x y\"][0] of the value is ##Inf, which JSON cannot express: it is written as null",
            "null_in_memory $ of the definition rate is ##-Inf, which JSON cannot express: it is written as null",
        ]
    );
    assert!(run["warnings"][0]["repair"].is_string());
    // A part that is not there has no warnings.
    assert_eq!(told(&answer(&json!({ "program": program, "omit": ["value"] }))).len(), 1);
    assert!(answer(&json!({ "program": "[1 nil 1e308]" })).get("warnings").is_none());
    let key = answer(&json!({ "program": "{:a {##NaN 1} ##Inf [##NaN]}" }));
    assert_eq!(key["value"], json!({ "a": { "##NaN": 1 }, "##Inf": [null] }), "{key}");
    assert_eq!(
        told(&key),
        [
            "null_in_value $ of the value has the key ##Inf, which JSON cannot express: it is written as a string",
            "null_in_value $.a of the value has the key ##NaN, which JSON cannot express: it is written as a string",
            "null_in_value $[\"##Inf\"][0] of the value is ##NaN, which JSON cannot express: it is written as null",
        ]
    );
    // Of many the first are told.
    let many = answer(&json!({ "program": "(def m (vec (repeat 50 ##NaN))) m" }));
    assert_eq!(told(&many).len(), 18);
    assert!(told(&many)[8].contains("42 more numbers of the value"), "{many}");
    let outcome = Engine::default().eval("(fail ##NaN)", Input::new());
    assert_eq!((outcome.json(), outcome.text()), (Some("null"), Some("##NaN")));
    assert_eq!(outcome.warnings().iter().map(|warning| warning.kind).collect::<Vec<_>>(), [WarningKind::NullInValue]);
}

#[test]
fn no_tool_gets_what_json_has_not() {
    let got = Arc::new(Mutex::new(Vec::new()));
    let keep = got.clone();
    let kept = move |call: &lisp_runtime::ToolCall| {
        keep.lock().unwrap().push(call.json().to_owned());
        Ok(json!("made"))
    };
    let engine = Engine::builder()
        .tool("free", kept.clone())
        .grant(Tool::new("typed", kept).signature("(a :any) -> :any"))
        .grant(Tool::echo("echo"))
        .build()
        .unwrap();
    for (argument, path, what) in [
        ("{:a ##NaN}", "$.a", "##NaN"),
        ("{:a {:b [1 2 ##Inf]}}", "$.a.b[2]", "##Inf"),
        ("{:a #{##-Inf}}", "$.a[0]", "##-Inf"),
        ("{:a {\"b c\" (/ 0.0 0.0)}}", "$.a[\"b c\"]", "##NaN"),
        ("{:a {##NaN 1}}", "$.a has", "##NaN"),
        ("{:a inc}", "$.a", "function"),
        ("{:a [{:f (fn [x] x)}]}", "$.a[0].f", "function"),
        ("{:a (partial + 1)}", "$.a", "function"),
        ("{:a [tool/echo]}", "$.a[0]", "function"),
        ("{:a {inc 1}}", "$.a has", "function"),
        ("{:a #\"x\"}", "$.a", "regex"),
        ("{:a [(range)]}", "$.a[0]", "endless"),
    ] {
        for tool in ["free", "typed", "echo"] {
            let outcome = engine.eval(&format!("(tool/{tool} {argument})"), Input::new());
            let problem = outcome.problem().unwrap_or_else(|| panic!("{tool} {argument}"));
            assert_eq!(problem.reason(), Reason::InvalidToolArgs, "{tool} {argument}");
            let message = &problem.error.message;
            let named = format!("tool/{tool}: {path}");
            assert!(message.starts_with(&named) && message.contains(what), "{tool} {argument}: {message}");
            assert!(problem.error.hint.is_some() && outcome.ledger[0].refused, "{tool} {argument}");
        }
        let caught = format!("(try (tool/free {argument}) (catch Exception e (:reason (ex-data e))))");
        assert!(engine.eval(&caught, Input::new()).is_success(), "{argument}");
    }
    assert!(got.lock().unwrap().is_empty(), "{got:?}");
    // Dates, symbols, keywords and sets have texts of their own.
    let outcome = engine.eval("(tool/free {:a [:k 'b #{1} (LocalDate/parse \"2024-02-03\") {1.5 nil}]})", Input::new());
    assert!(outcome.is_success(), "{outcome:?}");
    assert_eq!(*got.lock().unwrap(), [r#"{"a":["k","b",[1],"2024-02-03",{"1.5":null}]}"#]);
}

/// Behind the other half too: see `remote.rs`, which has such programs among its own.
#[test]
fn a_request_says_the_same_after_it_is_written() {
    let request = Request::parse(r#"{"program":"1","data":{"a":1,"a":2}}"#).expect("a request");
    let again = serde_json::to_string(&request).expect("JSON");
    assert_eq!(Request::parse(&again).expect("a request").data, request.data);
}

#[test]
fn a_result_with_an_endless_sequence_is_named_as_the_result() {
    for program in ["(split-at 2 (range))", "[(range)]", "{:a (repeat 1)}", "(return [(range)])"] {
        let outcome = Engine::default().eval(program, Input::new());
        let problem = outcome.problem().expect(program);
        assert_eq!(problem.reason(), Reason::TypeError, "{program}");
        assert_eq!(problem.error.message, "the result contains an endless sequence", "{program}");
        assert_eq!(problem.error.hint.as_deref(), Some("take some of it, as in (take 10 s)"), "{program}");
    }
    let outcome = Engine::default().eval("(str (range))", Input::new());
    assert_eq!(outcome.problem().unwrap().error.message, "an endless sequence has no text");
}
