//! Programs behind the process door: the same answers, from any number of threads, through sessions, pipes and slates.

use crate::pipes;
use lisp_runtime::{Answer, CallStatus, Cancel, Engine, Input, Limits, Request, Tool, ToolError, Verdict};
use lisp_sandbox::{CleanSlate, Sandbox, SlateFailure};
use serde_json::Value;
use std::time::{Duration, Instant};

fn engine() -> Engine {
    Engine::builder()
        .limits(Limits::default().with_prints_bytes(100_000).with_tool_calls(5))
        .ceiling(Limits::unlimited())
        .grant(Tool::new("price", |call| Ok(call.get::<i64>("n")? * 2)).signature("(n :int) -> :int").cached())
        .tool("broken", |_| Err::<(), _>(ToolError::new("it is broken")))
        .grant(Tool::echo("echo"))
        .grant(
            Tool::new("stuck", |_| {
                std::thread::sleep(Duration::from_secs(2));
                Ok(1)
            })
            .detached(),
        )
        .build()
        .unwrap()
}

fn sandbox() -> Sandbox {
    Sandbox::builder().engine(engine()).build().unwrap()
}

/// An answer without what no two runs have in common.
fn plain(answer: &Answer) -> Value {
    let mut value: Value = serde_json::from_str(&answer.to_json()).unwrap();
    value.as_object_mut().unwrap().remove("run_id");
    for name in ["compute_us", "duration_us", "cpu_us", "rss_peak_bytes"] {
        value["usage"].as_object_mut().unwrap().remove(name);
    }
    for entry in value["ledger"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("duration_us");
    }
    value
}

fn the_same_answer(sandbox: &Sandbox) {
    let requests = [
        r#"{"program": "(+ 1 2)", "id": [1]}"#,
        r#"{"program": "(println 1) (tool/price {:n 4})"}"#,
        r#"{"program": "[(tool/price {:n 4}) (tool/price {:n 4}) (tool/echo {:a #{1 2}})]"}"#,
        r#"{"program": "(mapv #(tool/price {:n %}) (range 9))"}"#,
        r#"{"program": "(tool/broken {})"}"#,
        r#"{"program": "(tool/price {:m 4})"}"#,
        r#"{"program": "(tool/missing {})"}"#,
        r#"{"program": "(def x 1) (fail [x \"\u0000\u202e\"])"}"#,
        r#"{"program": "(return {:a 1 \"a\" 2})"}"#,
        r#"{"program": "(doseq [i (range 900)] (println (apply str (map (constantly \"x\") (range 300))) i))"}"#,
        r#"{"program": "(inc nil)"}"#,
        r#"{"program": "(inc"}"#,
        r#"{"program": "(+ a 1)", "setup": ["(def a 1)", "(println a)"]}"#,
        r#"{"program": "1", "setup": ["(def a 1)", "(println"]}"#,
        r#"{"program": "[data/x (count *1) m]", "data": {"x": [1]}, "memory": {"m": 2}, "history": ["abc"]}"#,
        r#"{"program": "1.5", "signature": "() -> :int"}"#,
        r#"{"program": "(vec (range 1e9))"}"#,
        r#"{"program": "(reduce (fn [s _] (str s s)) \"x\" (range 64))"}"#,
        r#"{"program": "(defn f [x] (inc (f x))) (f 0)", "limits": {"heap_bytes": 1000000}}"#,
        r#"{"program": "(loop [i 0] (recur (inc i)))"}"#,
        r#"{"program": "(loop [i 0] (recur (inc i)))", "limits": {"fuel": 5000, "loop_iterations": 0}}"#,
        r#"{"program": "(tool/own {:a 1})", "tools": {"own": {"returns": {"b": [1, null]}}}}"#,
        r#"{"program": "(vec (range 100000))"}"#,
        r#"{"program": "(pmap (fn [x] (println x) (tool/price {:n (mod x 3)})) (range 12))"}"#,
        r#"{"program": "(pmap (fn [x] (if (= x 5) (/ 1 0) (tool/echo {:x x}))) [5])"}"#,
    ];
    for json in requests {
        let request = Request::parse(json).unwrap();
        let here = plain(&request.run(sandbox.engine()));
        let there = plain(&Answer::new(request.id.clone(), &sandbox.run(&request)));
        assert_eq!(there, here, "{json}");
    }
    let nested = "(".repeat(1_000_000);
    let there = sandbox.eval(&nested, &Input::new());
    assert_eq!(
        there.problem().map(|p| &p.error),
        sandbox.engine().eval(&nested, Input::new()).problem().map(|p| &p.error)
    );
}

fn timeouts(sandbox: &Sandbox) {
    let endless = r#"{"program": "(println 1) (tool/price {:n 1}) (println 2) (loop [] (recur))",
        "limits": {"timeout_ms": 80, "loop_iterations": 0}}"#;
    let begun = Instant::now();
    let outcome = sandbox.run(&Request::parse(endless).unwrap());
    assert_eq!((outcome.verdict(), outcome.prints.join(",")), (Verdict::Timeout, "1,2".to_owned()));
    assert_eq!(outcome.ledger[0].status, CallStatus::Ok);
    // The clean error, with its place, not the kill.
    assert!(outcome.problem().unwrap().position.is_some());
    assert!(begun.elapsed() < Duration::from_millis(400), "{:?}", begun.elapsed());
    assert!(outcome.usage.cpu_us.unwrap() > 10_000 && outcome.usage.rss_peak_bytes.unwrap() > 1 << 20);
    let stuck = r#"{"program": "(println 1) (tool/stuck {})", "limits": {"timeout_ms": 80}}"#;
    let outcome = sandbox.run(&Request::parse(stuck).unwrap());
    assert_eq!((outcome.verdict(), outcome.ledger[0].status), (Verdict::Timeout, CallStatus::Unknown));
    let outcome = sandbox.run(&Request::parse(r#"{"program": "1", "limits": {"timeout_ms": 0}}"#).unwrap());
    assert_eq!(outcome.verdict(), Verdict::Timeout);
}

fn cancelled(sandbox: &Sandbox) {
    let cancel = Cancel::new();
    let mut limits = lisp_runtime::LimitsRequest::default();
    limits.set("loop_iterations", 0).unwrap();
    let endless = Sandbox::builder()
        .engine(Engine::builder().limits(Limits::default().with(&limits).with_timeout_ms(u64::MAX)).build().unwrap())
        .build()
        .unwrap();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(60));
            cancel.cancel();
        });
        endless.eval("(println 1) (loop [] (recur))", &Input::new().cancel_with(&cancel))
    });
    assert_eq!((outcome.verdict(), outcome.prints.join(",")), (Verdict::Cancelled, "1".to_owned()));
    assert!(sandbox.eval("1", &Input::new().cancel_with(&Cancel::new())).is_success());
}

fn many_threads(_: &Sandbox) {
    let sandbox = Sandbox::builder().engine(engine()).forkers(2).build().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for i in 0..20 {
                    let source = format!("(println {i}) (+ {thread} (tool/price {{:n {i}}}))");
                    let outcome = sandbox.eval(&source, &Input::new());
                    assert_eq!(outcome.value::<i64>().unwrap(), thread + 2 * i);
                    assert_eq!(outcome.prints, [i.to_string()]);
                }
            });
        }
    });
}

fn large_things(sandbox: &Sandbox) {
    let data = format!("[{}]", vec![r#"{"name": "a \"quoted\" word", "n": 1.5}"#; 5_000].join(","));
    let input = Input::new().json("rows", data.as_str());
    let outcome = sandbox.eval("data/rows", &input);
    assert_eq!(outcome.json(), sandbox.engine().eval("data/rows", input.clone()).json());
    assert!(outcome.json().unwrap().len() > 150_000);
    let outcome = sandbox.eval("(reduce + (map :n (:a (tool/echo {:a data/rows}))))", &input);
    assert_eq!(outcome.value::<f64>().unwrap(), 7_500.0);
}

fn sessions(sandbox: &Sandbox) {
    let mut session = sandbox.session(Input::new().data("n", &5));
    assert!(session.eval("(defn twice [x] (* 2 x))").is_success());
    assert_eq!(session.eval("(println 1) (twice data/n)").prints, ["1"]);
    assert_eq!(session.eval("(inc *1)").value::<i64>().unwrap(), 11);
    assert_eq!(session.names(), ["twice"]);
    assert!(session.eval("(inc nil)").problem().is_some());
    assert_eq!(session.eval("(tool/price {:n 2})").ledger.len(), 1);
    assert_eq!(session.eval("(twice 4)").value::<i64>().unwrap(), 8);
    assert!(session.is_alive());
}

fn slates(sandbox: &Sandbox) {
    let slate = CleanSlate::new(sandbox).setup("(def a 20)").unwrap().setup("(println a)").unwrap();
    let run = slate.run("(println \"half\") (def b 1) (+ a a 2)");
    assert_eq!((run.output.as_str(), run.value::<i64>().unwrap(), &run.failure), ("half\n", 42, &None));
    // Nothing of it is left.
    let failure = slate.run("b").failure;
    assert!(matches!(failure, Some(SlateFailure::Error { ref kind, .. }) if kind == "unbound_var"), "{failure:?}");
    let run = slate.run("(doseq [i (range 60)] (println (apply str (map (constantly \"ä\") (range 1000)))))");
    let (shown, all) = (run.output.len(), run.output_bytes);
    assert!(shown < 50_100 && all > 90_000 && run.output.ends_with("bytes)"), "{shown} of {all}");
    let run = slate.run("(println 1) (doseq [i (range 50000)] (reduce + (map inc (range 1000))))");
    assert_eq!((run.output.as_str(), run.failure), ("1\n", Some(SlateFailure::Timeout)));
    let run = slate.run("(fail :no)");
    assert!(matches!(run.failure, Some(SlateFailure::Error { ref reason, .. }) if reason == ":no"));
}

fn capabilities(_: &Sandbox) {
    let capabilities = lisp_sandbox::capabilities().unwrap();
    assert!(capabilities.missing.is_empty() && capabilities.trouble.is_none(), "{capabilities}");
    assert!(capabilities.to_string().contains("programs can run"));
    assert_eq!(capabilities.layers.0.len(), lisp_sandbox::Layer::ALL.len());
}

type Test = fn(&Sandbox);

const TESTS: &[(&str, Test)] = &[
    ("the_same_answer", the_same_answer),
    ("timeouts", timeouts),
    ("cancelled", cancelled),
    ("many_threads", many_threads),
    ("large_things", large_things),
    ("sessions", sessions),
    ("slates", slates),
    ("pipes_while_it_runs", pipes::while_it_runs),
    ("pipes_after_the_end", pipes::after_the_end),
    ("pipes_two_clients_at_once", pipes::two_clients_at_once),
    ("pipes_ten_thousand_times", pipes::ten_thousand_times),
    ("pipes_clients_that_go_away", pipes::clients_that_go_away),
    ("pipes_terminated_twice", pipes::terminated_twice),
    ("pipes_asked_in_grace", pipes::asked_in_grace),
    ("pipes_grace", pipes::grace),
    ("capabilities", capabilities),
];

pub(crate) fn main() {
    lisp_sandbox::testing::init(pipes::PAYLOADS);
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let sandbox = sandbox();
    let chosen = TESTS.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| name.contains(only.as_str())));
    let mut failed = Vec::new();
    for (name, test) in chosen {
        let begun = Instant::now();
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&sandbox))).is_ok();
        println!("test {name} ... {} ({:?})", if good { "ok" } else { "FAILED" }, begun.elapsed());
        if !good {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}
