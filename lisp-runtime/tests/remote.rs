//! A run in two halves gives the answer of a run in one.

use lisp_runtime::{
    Answer, Begun, CallReply, Cancel, Engine, Far, FarCall, Home, Input, Job, Limits, Report, Request, RunHost, Tool,
    ToolError,
};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The near half on the same thread, and what came through.
struct Near {
    home: Home,
    replies: Vec<(u64, CallReply)>,
    lines: Vec<Vec<String>>,
}

impl RunHost for Near {
    fn printed(&mut self, lines: Vec<String>) {
        assert!(self.home.printed(lines.clone()));
        self.lines.push(lines);
    }

    fn call(&mut self, call: FarCall<'_>) {
        let begun = (call.number, self.home.begin(call));
        self.go_on(begun);
    }

    fn next_reply(&mut self) -> (u64, CallReply) {
        self.replies.pop().expect("a call under way")
    }
}

impl Near {
    fn go_on(&mut self, begun: (u64, Begun)) {
        match begun {
            (number, Begun::Ready(reply)) => self.replies.push((number, reply)),
            (_, Begun::Call(call)) => {
                let ended = call.make();
                self.home.end(ended).into_iter().for_each(|begun| self.go_on(begun));
            }
            (_, Begun::Later) => {}
        }
    }
}

fn engine() -> Engine {
    Engine::builder()
        .limits(Limits::default().with_tool_calls(3).with_prints_bytes(300))
        .grant(Tool::new("price", |call| Ok(call.get::<i64>("n")? * 2)).signature("(n :int) -> :int").cached())
        .tool("broken", |_| Err::<(), _>(ToolError::new("it is broken")))
        .grant(Tool::echo("echo"))
        .build()
        .unwrap()
}

fn in_two(engine: &Engine, json: &str) -> (Answer, Vec<Vec<String>>) {
    let request = Request::parse(json).unwrap();
    let mut input = Input::new();
    let (job, home) = match engine.send_off_request(&request, &mut input) {
        Ok(halves) => halves,
        Err(outcome) => return (Answer::new(request.id.clone(), &outcome), Vec::new()),
    };
    let text = serde_json::to_string(&job).unwrap();
    let job: Job<'_> = serde_json::from_str(&text).unwrap();
    let mut far = Far::new(job, Arc::new(AtomicBool::new(false)), Cancel::new());
    let mut near = Near { home, replies: Vec::new(), lines: Vec::new() };
    let report = far.run(Instant::now(), None, &mut near);
    let report: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    let outcome = near.home.finish(report);
    (Answer::new(request.id.clone(), &outcome), near.lines)
}

/// An answer without what no two runs have in common.
fn plain(answer: &Answer) -> Value {
    let mut value: Value = serde_json::from_str(&answer.to_json()).unwrap();
    value.as_object_mut().unwrap().remove("run_id");
    // A line that goes out at once cuts the work after it: what that had allocated is allocated again.
    for name in ["compute_us", "duration_us", "allocated_bytes"] {
        value["usage"].as_object_mut().unwrap().remove(name);
    }
    for entry in value["ledger"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("duration_us");
    }
    value
}

#[test]
fn the_answer_is_the_same() {
    let engine = engine();
    let requests = [
        r#"{"program": "(+ 1 2)", "id": [1]}"#,
        r#"{"program": "(println 1) (println \"äö\") (tool/price {:n 4})"}"#,
        r#"{"program": "[(tool/price {:n 4}) (tool/price {:n 4}) (tool/echo {:a #{1 2}}) (tool/price {:n 5}) (tool/price {:n 6})]"}"#,
        r#"{"program": "(tool/broken {})"}"#,
        r#"{"program": "(tool/price {:m 4})"}"#,
        r#"{"program": "(tool/missing {})"}"#,
        r#"{"program": "(def x 1) (def y [x x]) (fail :no)"}"#,
        r#"{"program": "(return {:a 1 \"a\" 2})"}"#,
        r#"{"program": "(doseq [i (range 50)] (println \"a line of some length\" i))"}"#,
        r#"{"program": "(inc nil"}"#,
        r#"{"program": "(/ 1 0)", "setup": ["(def a 1)", "(println a)"]}"#,
        r#"{"program": "(+ a 1)", "setup": ["(def a 1)", "(println a)"]}"#,
        r#"{"program": "1", "setup": ["(def a 1)", "(println"]}"#,
        r#"{"program": "(conj data/x (count *1) m)", "data": {"x": [1]}, "memory": {"m": 2}, "history": ["abc"]}"#,
        r#"{"program": "data/nothing", "strict_data": true}"#,
        r#"{"program": "1", "data": [1]}"#,
        r#"{"program": "1.5", "signature": "() -> :int"}"#,
        r#"{"program": "1.5", "signature": "() -> :nothing!"}"#,
        r#"{"program": "(vec (range 1e9))", "limits": {"heap_bytes": 100000}}"#,
        r#"{"program": "(loop [i 0] (recur (inc i)))"}"#,
        r#"{"program": "(loop [i 0] (recur (inc i)))", "limits": {"fuel": 500}}"#,
        r#"{"program": "(println 0) (def r (pmap (fn [i] (println i) (tool/echo {:i i})) [3 1 2])) (println 4) r"}"#,
        r#"{"program": "(pmap (fn [i] (println i) (tool/price {:n (rem i 2)})) (range 6))"}"#,
        r#"{"program": "(pmap (fn [i] (pmap (fn [j] (println i j) (tool/echo {:i [i j]}) (inc j)) [1 2])) [1])"}"#,
        r#"{"program": "(pmap (fn [i] (tool/price {:n i})) (range 6))", "limits": {"parallel_window": 1}}"#,
        r#"{"program": "(pcalls #(tool/broken {}) #(do (println 1) 2))", "limits": {"parallel_window": 1}}"#,
        r#"{"program": "(tool/own {:a 1})", "tools": {"own": {"returns": {"b": [1, null]}}}}"#,
    ];
    for json in requests {
        let one = Request::parse(json).unwrap().run(&engine);
        let (two, _) = in_two(&engine, json);
        assert_eq!(plain(&two), plain(&one), "{json}");
    }
}

#[test]
fn a_line_goes_out_before_the_next_piece_of_work() {
    let (answer, lines) = in_two(&engine(), r#"{"program": "(println 1) (println 2) (tool/broken {})"}"#);
    assert_eq!(lines, [["1"], ["2"]]);
    assert_eq!(answer.prints, ["1", "2"]);
}

#[test]
fn set_up_programs_print_for_nobody() {
    let json = r#"{"program": "(println 2)", "setup": ["(println 1)", "(println 1)"]}"#;
    let (answer, lines) = in_two(&engine(), json);
    // The last line goes with the report.
    assert_eq!((lines.len(), answer.prints), (0, vec!["2".to_owned()]));
}
