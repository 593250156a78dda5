//! Programs behind the process mode: the same answers, from any number of threads, through sessions, pipes and slates.

use crate::{domains, failures, functions, killed, lost, pipes, records, seeing, sessions};
use lisp_runtime::outcome::CallStatus;
use lisp_runtime::request::CheckReport;
use lisp_runtime::{Answer, Cancel, Check, Engine, Input, Keys, Limits, Outcome, Request, Tool, ToolError, Verdict};
use lisp_sandbox::{CleanSlate, Sandbox, SlateFailure};
use serde_json::Value;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

fn engine() -> Engine {
    Engine::builder()
        .limits(Limits::default().with_prints_bytes(100_000).with_tool_calls(5))
        .ceiling(Limits::unlimited())
        .check(Check::Warn)
        .grant(Tool::new("price", |call| Ok(call.get::<i64>("n")? * 2)).signature("(n :int) -> :int").cached())
        .tool("broken", |_| Err::<(), _>(ToolError::new("it is broken")))
        .grant(Tool::echo("echo"))
        .grant(
            Tool::new("stuck", |_| {
                std::thread::sleep(Duration::from_secs(600));
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
    for name in ["compute_us", "duration_us", "cpu_us", "rss_peak_bytes", "workers_peak"] {
        value["usage"].as_object_mut().unwrap().remove(name);
    }
    for part in ["ledger", "given_up"] {
        for entry in value[part].as_array_mut().into_iter().flatten() {
            entry.as_object_mut().unwrap().remove("duration_us");
        }
    }
    value
}

fn the_same_profile(sandbox: &Sandbox) {
    for program in ["(defn f [x] (* x x)) (reduce + (map f (range 2000)))", "(inc nil)", "(tool/price {:n 4})", "(f"] {
        let nodes = |outcome: &Outcome| {
            let mut profile = outcome.profile.clone();
            profile.iter_mut().flat_map(|p| &mut p.nodes).for_each(|node| node.cost.nanos = 0);
            profile
        };
        let here = nodes(&sandbox.engine().eval(program, Input::new().profile()));
        let there = nodes(&sandbox.eval(program, &Input::new().profile()));
        assert_eq!(here, there, "{program}");
        assert_eq!(here.is_some(), program != "(f", "{program}");
    }
    assert_eq!(sandbox.eval("1", &Input::new()).profile, None);
}

/// Programs are checked in their processes as in this one, and a check makes no calls.
fn the_same_checks(_: &Sandbox) {
    let pay = Tool::new("pay", |_| -> Result<(), ToolError> { panic!("it was called") });
    let pay = pay.signature("(amount :int) -> :int");
    for check in [Check::Off, Check::Warn, Check::Refuse] {
        let engine = Engine::builder().grant(pay.clone()).check(check).build().unwrap();
        let sandbox = Sandbox::builder().engine(engine.clone()).build().unwrap();
        let input = || Input::new().json("rows", r#"[{"total": 1}]"#);
        let (key, call) = ("(map :totl data/rows)", "(if (seq data/rows) 1 (tool/pay {:amuont 1}))");
        for (program, input) in [
            (key, input()),
            (call, input()),
            (key, input().check(Check::Off)),
            (key, input().check_only()),
            ("(tool/pay {:amuont 1})", input().check_only()),
            ("(tool/pay {:amount 1})", input().setup_source("(tool/pay {:amount 1})").check_only()),
            ("(nope)", input().check_only()),
        ] {
            let came = |outcome: &Outcome| {
                let report = CheckReport::new(None, outcome.problem(), outcome.warnings());
                (report.to_json(), outcome.text().map(str::to_owned))
            };
            let here = came(&engine.eval(program, input.clone()));
            assert_eq!(came(&sandbox.eval(program, &input)), here, "{check:?} {program}");
        }
    }
}

fn the_same_answer(sandbox: &Sandbox) {
    let requests = [
        r#"{"program": "(+ 1 2)", "id": [1]}"#,
        r#"{"program": "(println 1) (tool/price {:n 4})"}"#,
        r#"{"program": "[(tool/price {:n 4}) (tool/price {:n 4}) (tool/echo {:a #{1 2}})]"}"#,
        r#"{"program": "(mapv #(tool/price {:n %}) (range 9))"}"#,
        r#"{"program": "(tool/broken {})"}"#,
        r#"{"program": "(tool/own {})", "tools": {"own": {"error": "no", "code": "NOT_FOUND"}}}"#,
        r#"{"program": "(try (tool/own {}) (catch Exception e [(:code e) (:code (ex-data e)) (:tool e)]))", "tools": {"own": {"error": "no", "code": 404}}}"#,
        r#"{"program": "(tool/price {:m 4})"}"#,
        r#"{"program": "(tool/price {:n 4 :m 4})"}"#,
        r#"{"program": "(tool/echo {:a-b {:c-d 1 \"E-F\" #{:g-h}} \"i-j\" 2})"}"#,
        r#"{"program": "(tool/own {:user-id 1 :a-b 2})", "tools": {"own": {"echo": true, "signature": "(user-id :int, ...) -> :any"}}}"#,
        r#"{"program": "(tool/missing {})"}"#,
        r#"{"program": "(tool/price {:n 1}) (tool/echo {}) (tool/price {:n :x})"}"#,
        r#"{"program": "(pmap (fn [x] (tool/echo {:x x}) (tool/price {:n (if (= x 2) nil x)}) (tool/echo {})) (range 3))", "limits": {"parallel_window": 1}}"#,
        r#"{"program": "(mapv #(tool/echo {:n %}) (range 9))"}"#,
        r#"{"program": "(tool/echo {:long (apply str (map (constantly \"x\") (range 3000)))}) (println (vec (range 2000)))"}"#,
        r#"{"program": "[(tool/own {:a #{1}}) (tool/own {:a #{1}})]", "tools": {"own": {"echo": true, "cache": true}}}"#,
        r#"{"program": "1", "setup": ["(vec (range 10000000))"]}"#,
        r#"{"program": "(inc data/n)", "data": {"m": 1}}"#,
        r#"{"program": "(inc data/n)", "data": {"m": 1}, "strict_data": true}"#,
        r#"{"program": "1", "data": {"a b": 1}}"#,
        r#"{"program": "(def x 1) (fail [x \"\u0000\u202e\"])"}"#,
        r#"{"program": "(return {:a 1 \"a\" 2})"}"#,
        r#"{"program": "(doseq [i (range 900)] (println (apply str (map (constantly \"x\") (range 300))) i))"}"#,
        r#"{"program": "(inc nil)"}"#,
        r#"{"program": "(inc"}"#,
        r#"{"program": "(tool/broken {})\n\n(+ 1 2)"}"#,
        r#"{"program": "(map (fn [x]\n (tool/price {:n x})) (range 9))\n(+ 1 2)"}"#,
        r#"{"setup": ["(defn h [x]\n\n (inc x))"], "program": "(map h [1 nil])"}"#,
        r#"{"program": "(+ a 1)", "setup": ["(def a 1)", "(println a)"]}"#,
        r#"{"program": "1", "setup": ["(def a 1)", "(println"]}"#,
        r#"{"program": "[data/x (count *1) m]", "data": {"x": [1]}, "memory": {"m": 2}, "history": ["abc"]}"#,
        r#"{"program": "1.5", "signature": "() -> :int"}"#,
        r#"{"program": "(def m2 {:a 1 \"a\" 2}) :done"}"#,
        r#"{"program": "(def big (vec (range 300))) :done", "limits": {"result_bytes": 1000}}"#,
        r#"{"program": "(vec (range 300))", "limits": {"result_bytes": 1000}}"#,
        r#"{"program": "(reduce + (map inc (range 50000)))"}"#,
        r#"{"program": "(vec (range 1e9))"}"#,
        r#"{"program": "(reduce (fn [s _] (str s s)) \"x\" (range 64))"}"#,
        r#"{"program": "(defn f [x] (inc (f x))) (f 0)", "limits": {"heap_bytes": 1000000}}"#,
        r#"{"program": "(loop [i 0] (recur (inc i)))"}"#,
        r#"{"program": "(loop [i 0] (recur (inc i)))", "limits": {"fuel": 5000, "loop_iterations": 0}}"#,
        r#"{"program": "(tool/own {:a 1})", "tools": {"own": {"returns": {"b": [1, null]}}}}"#,
        r#"{"program": "[data/rows m (tool/own {}) (tool/echo {:x-y {\"k k\" 1}})]", "json_keys": "keywords", "data": {"rows": [{"a/b": {"": 1}}]},
            "memory": {"m": {"é": 1}}, "tools": {"own": {"returns": {"b": [{"c": null}]}}}}"#,
        r#"{"program": "(vec (range 100000))"}"#,
        r#"{"program": "(pmap (fn [x] (println x) (tool/price {:n (mod x 3)})) (range 12))"}"#,
        r#"{"program": "(defn names [n] (cons (:nmae n) (pmap names (:children n)))) (names data/tree)",
            "data": {"tree": {"name": "a", "children": [{"name": "b", "children": [{"name": "c", "children": []}]}]}}}"#,
        r#"{"program": "(def k (:k (tool/own {}))) (println (= k :role)) (/ 1 0)", "tools": {"own": {"returns": {"k": "role"}}}}"#,
        r#"{"program": "(pmap (fn [x] (if (= x 5) (/ 1 0) (tool/echo {:x x}))) [5])"}"#,
        r#"{"program": "(pmap (fn [n] (println n) (loop [i 0] (if (< i 40000) (recur (inc i)) (* n (tool/price {:n (mod n 4)}))))) (range 30))",
            "limits": {"loop_iterations": 0, "timeout_ms": 20000}}"#,
        r#"{"program": "(reduce + (pmap (fn [n] (reduce + (pmap (fn [m] (reduce + (map * (range 2000) (range m 2000)))) (range n)))) (range 8)))", "limits": {"parallel_workers": 200}}"#,
        r#"{"program": "(pmap (fn [n] (loop [i 0] (if (< i 100000) (recur (inc i)) (if (= n 0) (/ 1 n) n)))) (range 1))",
            "limits": {"loop_iterations": 0, "timeout_ms": 20000}}"#,
    ];
    let domain = sandbox.domain("the same answer").unwrap();
    for json in requests {
        let request = Request::parse(json).unwrap();
        let here = plain(&request.run(sandbox.engine()));
        let there = plain(&Answer::new(request.id.clone(), &sandbox.run(&request)));
        assert_eq!(there, here, "{json}");
        let warm = plain(&Answer::new(request.id.clone(), &domain.run(&request)));
        assert_eq!(warm, here, "{json}");
    }
    // One that may start threads, for programs that ask for workers, and one that may not.
    assert!((2..=4).contains(&domain.processes()), "{}", domain.processes());
    let nested = "(".repeat(1_000_000);
    let there = sandbox.eval(&nested, &Input::new());
    assert_eq!(
        there.problem().map(|p| &p.error),
        sandbox.engine().eval(&nested, Input::new()).problem().map(|p| &p.error)
    );
}

fn limits_of(timeout_ms: u64) -> lisp_runtime::LimitsRequest {
    let mut limits = lisp_runtime::LimitsRequest::default();
    limits.set("timeout_ms", timeout_ms).unwrap();
    limits
}

fn timeouts(sandbox: &Sandbox) {
    let endless = r#"{"program": "(println 1) (tool/price {:n 1}) (println 2) (loop [] (recur))",
        "limits": {"timeout_ms": 80, "loop_iterations": 0}}"#;
    let outcome = sandbox.run(&Request::parse(endless).unwrap());
    assert_eq!((outcome.verdict(), outcome.prints.join(",")), (Verdict::Timeout, "1,2".to_owned()));
    assert_eq!(outcome.ledger[0].status, CallStatus::Ok);
    // The clean error, with its place, not the kill.
    let at = outcome.problem().unwrap().position.unwrap();
    assert_eq!((at.line, at.column, at.end_line, at.end_column), (1, 54, 1, 61), "{:?}", outcome.problem());
    assert!(outcome.usage.cpu_us.unwrap() > 10_000 && outcome.usage.rss_peak_bytes.unwrap() > 1 << 20);
    // What workers print beyond the limit is counted, not kept; a limit of a byte keeps nothing.
    for (prints_bytes, source) in [
        (20_000, "(count (pmap (fn [i] (doseq [j (range 10)] (println (apply str (range 300))))) (range 100)))"),
        (1, "(println :abc) 1"),
        (30, "(count (pmap (fn [i] (println i) i) (range 100)))"),
    ] {
        let mut limits = limits_of(20_000);
        limits.set("prints_bytes", prints_bytes).unwrap();
        let input = Input::new().limits(limits);
        let (there, here) = (sandbox.eval(source, &input), engine().eval(source, input));
        assert_eq!(
            (there.json(), &there.prints, there.prints_dropped),
            (here.json(), &here.prints, here.prints_dropped)
        );
        assert!(there.is_success() && there.prints_dropped > 0, "{source}: {:?}", there.problem());
    }
    // Workers that wait for the host end at the deadline of their call.
    let mut limits = limits_of(20_000);
    limits.set("parallel_timeout_ms", 100).unwrap();
    let begun = Instant::now();
    let outcome = sandbox.eval("(pmap (fn [i] (tool/stuck {:i i})) (range 4))", &Input::new().limits(limits));
    assert!(outcome.problem().is_some_and(|problem| problem.error.message.contains("100 ms")), "{outcome:?}");
    assert!(begun.elapsed() < Duration::from_secs(300), "{:?}", begun.elapsed());
    // Each line is shown as it is printed, once, also those of a run that is ended.
    let (lines, shown) = std::sync::mpsc::channel();
    let hook = move |line: &str| lines.send((line.to_owned(), Instant::now())).unwrap_or_default();
    let source = "(println 1) (pmap println (range 2 5)) (println 5) (tool/stuck {})";
    let begun = Instant::now();
    let outcome = sandbox.eval(source, &Input::new().on_print(hook).limits(limits_of(3_000)));
    let shown: Vec<(String, Instant)> = shown.try_iter().collect();
    let mut texts: Vec<&str> = shown.iter().map(|line| line.0.as_str()).collect();
    texts.sort_unstable();
    assert_eq!((texts, outcome.verdict()), (vec!["1", "2", "3", "4", "5"], Verdict::Timeout));
    assert!(shown.iter().all(|line| line.1 < begun + Duration::from_millis(2_900)), "{shown:?} since {begun:?}");
    let stuck = r#"{"program": "(println 1) (tool/stuck {})", "limits": {"timeout_ms": 250}}"#;
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

/// Workers that compute for a while have the threads that there are processors for, and no program without workers has any.
fn workers_have_threads(_: &Sandbox) {
    let pids: Arc<OnceLock<Vec<u32>>> = Arc::default();
    let known = pids.clone();
    let threads = move || {
        let children = |pid| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let children: String = known.get().unwrap().iter().map(children).collect();
        let count = |pid: &str| std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        children.split_whitespace().map(count).max().unwrap_or(0)
    };
    let limits = Limits::default().with_timeout_ms(60_000).with_parallel_timeout_ms(60_000).with_loop_iterations(0);
    let engine = Engine::builder().limits(limits).tool("threads", move |_| Ok(threads())).build().unwrap();
    let sandbox = Sandbox::builder().engine(engine).without_namespaces().build().unwrap();
    pids.set(sandbox.template_pids()).unwrap();
    let long = |call: &str| {
        format!(
            "(reduce max ({call} (fn [n] (loop [i 0] (if (< i 300000) (recur (inc i)) (tool/threads {{:n n}})))) (range 12)))"
        )
    };
    let run = |program: &str| sandbox.eval(program, &Input::new()).value::<usize>().unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!((run(&long("pmap")), run(&long("map"))), (cores, 1));
    // Workers that call between long computations, with threads to help and without: no call is left lying.
    let mixed = "(reduce + (pmap (fn [n] (loop [i 0 sum 0] (if (< i 3) (recur (inc i) (+ sum (if (pos? (loop [j 0] (if (< j 9000) (recur (inc j)) j))) (- (tool/threads {:n [n i]}) (tool/threads {:n [n i]})) 0))) 1))) (range 40)))";
    for _ in 0..40 {
        assert_eq!(run(mixed), 40);
    }
    // Those that are soon through have none.
    assert_eq!(run("(reduce max (pmap (fn [n] (tool/threads {:n n})) (range 4)))"), 1);
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
    let mut given = sandbox.session(Input::new().memory(r#"{"a": 1}"#));
    assert_eq!(given.names(), ["a"]);
    assert_eq!(given.memory().unwrap(), r#"{"a": 1}"#);
    assert_eq!(given.eval("(inc a)").value::<i64>().unwrap(), 2);
    let mut session = sandbox.session(Input::new().data("n", &5));
    assert!(session.eval("(defn twice [x] (* 2 x))").is_success());
    assert_eq!(session.eval("(println 1) (twice data/n)").prints, ["1"]);
    assert_eq!(session.eval("(inc *1)").value::<i64>().unwrap(), 11);
    assert_eq!(session.names(), ["twice"]);
    assert!(session.eval("(inc nil)").problem().is_some());
    assert!(session.eval("\n(defn bad [x] (inc x))").is_success());
    let place = |outcome: &lisp_runtime::Outcome| {
        let problem = outcome.problem().unwrap();
        let at = problem.position.unwrap();
        (problem.turn, at.line, at.column, problem.calls.iter().map(|call| call.position.column).collect::<Vec<_>>())
    };
    assert_eq!(place(&session.eval("[1 (bad nil)]")), (Some(5), 2, 15, vec![4]));
    assert_eq!(place(&session.eval("[1 (tool/broken {}) 2]")), (None, 1, 4, Vec::new()));
    assert_eq!(session.eval("(tool/price {:n 2})").ledger.len(), 1);
    assert_eq!(session.eval("(twice 4)").value::<i64>().unwrap(), 8);
    // Definitions that JSON cannot say hold up no turn, and those of a turn that fails are undone.
    assert!(session.eval("(def m2 {:a 1 \"a\" 2})").is_success());
    assert_eq!(session.eval("(do (def m3 1) (return (count m2)))").value::<i64>().unwrap(), 2);
    assert_eq!(session.eval("*1").value::<i64>().unwrap(), 2);
    let error = session.memory().unwrap_err();
    assert!(error.problem().unwrap().error.message.starts_with("the definition m2: "), "{error:?}");
    assert!(session.eval("(def m2 nil) (vec (range 2000000))").problem().is_some());
    assert_eq!(session.eval("(do (def m2 nil) (count m2))").value::<i64>().unwrap(), 0);
    assert_eq!(session.memory().unwrap(), r#"{"m2":null,"m3":1}"#);
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
    let source = "(println 1) (doseq [i (range 50000)] (reduce + (map inc (range 1000))))";
    let run = slate.clone().timeout(Duration::from_millis(300)).run(source);
    assert_eq!((run.output.as_str(), run.failure), ("1\n", Some(SlateFailure::Timeout)));
    let run = slate.run("(defn deep [x]\n  (/ 1 x))\n(deep 0)");
    let Some(SlateFailure::Error { kind, trace, .. }) = run.failure else { panic!("{run:?}") };
    assert_eq!((kind.as_str(), run.text), ("arithmetic_error", None));
    assert_eq!(trace, ["line 2, column 3", "deep was called at line 3, column 1"]);
    assert_eq!(slate.run("[1 :a #{}]").text.as_deref(), Some("[1 :a #{}]"));
    // A process that is gone is a lost connection; what it printed is there.
    let lost = Sandbox::builder().engine(engine()).without_namespaces().build().unwrap();
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| CleanSlate::new(&lost).run("(println 1) (tool/stuck {})"));
        std::thread::sleep(Duration::from_millis(3_000));
        let template = rustix::process::Pid::from_raw(i32::try_from(lost.template_pids()[0]).unwrap()).unwrap();
        rustix::process::kill_process(template, rustix::process::Signal::KILL).unwrap();
        run.join().unwrap()
    });
    assert!(matches!(run.failure, Some(SlateFailure::ConnectionLost(ref why)) if why.contains("template")), "{run:?}");
    assert_eq!(run.output, "1\n");
    let run = slate.run("(fail :no)");
    assert!(matches!(run.failure, Some(SlateFailure::Error { ref reason, .. }) if reason == ":no"));
}

fn the_clock_of_the_host(sandbox: &Sandbox) {
    // Workers take turns by time; one after the other they ask in order.
    let in_order = Limits::default().with_parallel_window(1);
    let ticking = || {
        let ticks = AtomicI64::new(10);
        let builder = Engine::builder().clock(move || ticks.fetch_add(5, Ordering::Relaxed)).without_threads();
        builder.limits(in_order).build().unwrap()
    };
    let now = "(System/currentTimeMillis)";
    for source in [
        format!("[{now} (do (println 1) {now}) {now}]"),
        format!("(loop [i 0] (if (< i 400) (do {now} (recur (inc i))) {now}))"),
        format!("(pmap (fn [i] [i {now}]) (range 20))"),
        format!("(def t {now}) (/ 1 0)"),
        "1".to_owned(),
    ] {
        let there = Sandbox::builder().engine(ticking()).build().unwrap().eval(&source, &Input::new());
        let here = ticking().eval(&source, Input::new());
        assert_eq!((there.json(), &there.clock), (here.json(), &here.clock), "{source}");
        let again = Input::new().clock(&there.clock);
        // Without a clock of the host's the process reads the system's when the replay is used up.
        let engine = Engine::builder().limits(in_order).build().unwrap();
        let replayed = Sandbox::builder().engine(engine.clone()).build().unwrap().eval(&source, &again);
        assert_eq!((replayed.json(), &replayed.clock), (there.json(), &there.clock), "{source}");
        assert_eq!(engine.eval(&source, again).json(), there.json());
    }
    // Replies that come while the time is waited for are not lost.
    let source = format!("(pmap (fn [i] [{now} (:i (tool/echo {{:i i}})) {now}]) (range 50))");
    let ticks = AtomicI64::new(10);
    let engine = Engine::builder().clock(move || ticks.fetch_add(5, Ordering::Relaxed)).grant(Tool::echo("echo"));
    let outcome = Sandbox::builder().engine(engine.build().unwrap()).build().unwrap().eval(&source, &Input::new());
    let told = outcome.value::<Vec<[i64; 3]>>().unwrap();
    assert!(told.iter().enumerate().all(|(i, row)| row[1] == i as i64 && row[0] < row[2]), "{told:?}");
    assert_eq!(outcome.clock, (0..100).map(|n| (10 + 5 * n, 1)).collect::<Vec<_>>());
    let systems = sandbox.eval(now, &Input::new());
    let (told, unix) =
        (systems.value::<i64>().unwrap(), std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis());
    assert!((told as u128).abs_diff(unix) < 60_000, "{told} {unix}");
    assert_eq!(systems.clock, [(told, 1)]);
}

fn a_clock_out_of_order(_: &Sandbox) {
    let broken = || Engine::builder().clock(|| panic!("no time")).build().unwrap();
    let there = Sandbox::builder().engine(broken()).build().unwrap();
    let source = "(println 1) (System/currentTimeMillis)";
    let (one, two) = (broken().eval(source, Input::new()), there.eval(source, &Input::new()));
    assert_eq!(two.problem().map(|p| &p.error), one.problem().map(|p| &p.error));
    assert_eq!((two.verdict(), two.prints), (Verdict::HostFault, one.prints));
    assert_eq!(there.eval("(inc 1)", &Input::new()).value::<i64>().unwrap(), 2);
    // One that takes its time takes the run's.
    let slow = Engine::builder().limits(Limits::default().with_timeout_ms(100)).clock(|| {
        std::thread::sleep(Duration::from_millis(250));
        0
    });
    let there = Sandbox::builder().engine(slow.build().unwrap()).build().unwrap();
    let outcome = there.eval("(System/currentTimeMillis)", &Input::new());
    assert_eq!(outcome.verdict(), Verdict::Timeout);
    assert!(outcome.usage.duration_us < 600_000, "{}", outcome.usage.duration_us);
}

fn the_clock_in_sessions(_: &Sandbox) {
    let ticks = AtomicI64::new(0);
    let engine = Engine::builder().clock(move || ticks.fetch_add(1, Ordering::Relaxed)).build().unwrap();
    let mut session = Sandbox::builder().engine(engine).build().unwrap().session(Input::new());
    assert_eq!(session.eval("(def t (System/currentTimeMillis))").clock, [(0, 1)]);
    assert_eq!(session.eval("[t (System/currentTimeMillis)]").json(), Some("[0,1]"));
    assert!(session.eval("t").clock.is_empty());
}

/// A call of a turn that is over ends while the next turn is at work: it is nobody's, whatever its number.
fn calls_of_a_turn_before(_: &Sandbox) {
    let engine = Engine::builder()
        .grant(Tool::echo("echo"))
        .tool("late", |_| {
            std::thread::sleep(Duration::from_millis(150));
            Ok("late")
        })
        .tool("slow", |_| {
            std::thread::sleep(Duration::from_millis(300));
            Ok("slow")
        })
        .build()
        .unwrap();
    let mut session = Sandbox::builder().engine(engine).build().unwrap().session(Input::new());
    let first = session.eval("(pcalls #(do (tool/echo {}) (/ 1 0)) #(tool/late {}))");
    assert!(first.problem().is_some());
    let second = session.eval("(pcalls #(tool/echo {}) #(tool/slow {}))");
    assert_eq!(second.json(), Some(r#"[{},"slow"]"#), "{:?}", second.problem());
    assert_eq!((second.ledger.len(), session.eval("1").value::<i64>().unwrap()), (2, 1));
}

fn rows(count: usize) -> String {
    let row = |i: usize| format!(r#"{{"id": {i}, "name": "row {i}", "total": {i}.5, "tags": ["a", "b"]}}"#);
    format!("[{}]", (0..count).map(row).collect::<Vec<_>>().join(","))
}

fn data_sets(_: &Sandbox) {
    let engine = engine();
    let (rows, more) = (
        engine.import("rows", rows(2_000)).unwrap(),
        engine.import_object(r#"{"n": 5, "config": {"rate": 0.5}}"#).unwrap(),
    );
    let keywords = Engine::builder().json_keys(Keys::Keywords).build().unwrap();
    let named = keywords.import("named", r#"[{"id": 1}]"#).unwrap();
    let given = Sandbox::builder().engine(engine.clone()).data_set(&rows).data_set(&more).data_set(&named).forkers(2);
    let given = given.build().unwrap();
    let half = Sandbox::builder().engine(engine.clone()).data_set(&more).build().unwrap();
    let none = Sandbox::builder().engine(engine.clone()).build().unwrap();
    let input = Input::new().data_set(&rows).data_set(&more).json("own", "[1, 2]");
    let few = |bytes: usize| {
        let mut limits = lisp_runtime::LimitsRequest::default();
        limits.set("setup_heap_bytes", bytes as u64).unwrap();
        input.clone().limits(limits)
    };
    for (source, input) in [
        ("[(count data/rows) (sum-by :total data/rows) data/n data/config data/own]", input.clone()),
        ("(mapv #(assoc % :new data/n) (take 20 data/rows))", input.clone()),
        ("(def kept (filterv #(< (:id %) 3) data/rows)) kept", input.clone()),
        ("[data/rows2 data/n]", Input::new().data_set(&more)),
        ("data/named", Input::new().data_set(&named)),
        ("data/rows", Input::new().data_set(&more).strict_data(true)),
        ("(tool/echo {:rows (take 2 data/rows)})", input.clone()),
        ("(loop [v data/rows] (recur (into v data/rows)))", input.clone()),
        ("(pmap #(count (filter (fn [r] (= (:id r) %)) data/rows)) (range 6))", input.clone()),
        ("(count data/rows)", few(rows.bytes() / 2)),
        ("(count data/rows)", few(rows.bytes() + more.bytes() + 4_000)),
        ("(inc", input.clone()),
    ] {
        let here = plain(&Answer::new(None, &engine.eval(source, input.clone())));
        for sandbox in [&given, &given, &half, &none] {
            assert_eq!(plain(&Answer::new(None, &sandbox.eval(source, &input))), here, "{source}");
        }
    }
    let baseline = given.eval("1", &input).usage.baseline_bytes.unwrap();
    assert!(baseline > (rows.bytes() + more.bytes()) as u64, "{baseline}");
    let mut session = given.session(input.clone());
    assert_eq!(session.eval("(def t (:total (first data/rows))) t").value::<f64>().unwrap(), 0.5);
    assert_eq!(session.eval("[t data/n]").json(), Some("[0.5,5]"));
    // A template that is started again has them again.
    let killed = given.template_pids();
    for pid in &killed {
        assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    }
    let until = Instant::now() + Duration::from_secs(60);
    while given.template_pids().iter().any(|pid| killed.contains(pid)) {
        assert!(Instant::now() < until, "a dead template stays");
        given.eval("1", &input);
    }
    for _ in 0..4 {
        assert_eq!(given.eval("(count data/rows)", &input).value::<i64>().unwrap(), 2_000);
    }
}

/// Some megabytes for hundreds of runs, in processes that could not have them for themselves.
fn a_large_data_set_is_shared(_: &Sandbox) {
    let limits = Limits::default().with_setup_heap_bytes(200_000_000).with_timeout_ms(5_000);
    let engine = Engine::builder().limits(limits).build().unwrap();
    let set = engine.import("rows", rows(90_000)).unwrap();
    let text = serde_json::to_string(&set.sent().unwrap()).unwrap().len();
    assert!(text > 5 << 20 && set.bytes() > 12 << 20, "{text} {}", set.bytes());
    let own = 8 << 20;
    let builder = || Sandbox::builder().engine(engine.clone()).memory_bytes(own);
    let (given, none) = (builder().data_set(&set).build().unwrap(), builder().build().unwrap());
    let input = Input::new().data_set(&set);
    let (job, _) = engine.split("1", &input, std::slice::from_ref(&set), false).unwrap();
    assert!(serde_json::to_vec(&job).unwrap().len() < 2_000);
    let begun = Instant::now();
    for i in 0..300 {
        let source = format!("(:id (nth data/rows {}))", i * 299);
        assert_eq!(given.eval(&source, &input).value::<i64>().unwrap(), i * 299);
    }
    println!("300 runs on a set of {} bytes, {text} of text: {:?}", set.bytes(), begun.elapsed());
    let all = "(reduce + (map :total data/rows))";
    assert_eq!(given.eval(all, &input).value::<f64>().unwrap(), 4_050_000_000.0);
    // Sent with the job it takes what the process has.
    let outcome = none.eval("(:id (first data/rows))", &input);
    assert_eq!(outcome.verdict(), Verdict::OutOfMemory, "{outcome:?}");
}

fn capabilities(_: &Sandbox) {
    let capabilities = lisp_sandbox::capabilities().unwrap();
    assert!(capabilities.missing.is_empty() && capabilities.error.is_none(), "{capabilities}");
    assert!(capabilities.to_string().contains("programs can run"));
    assert_eq!(capabilities.layers.0.len(), lisp_sandbox::Layer::ALL.len());
}

type Test = fn(&Sandbox);

const TESTS: &[(&str, Test)] = &[
    ("the_same_checks", the_same_checks),
    ("the_same_answer", the_same_answer),
    ("the_same_profile", the_same_profile),
    ("timeouts", timeouts),
    ("cancelled", cancelled),
    ("workers_have_threads", workers_have_threads),
    ("many_threads", many_threads),
    ("large_things", large_things),
    ("sessions", sessions),
    ("sessions_outlive_a_killed_turn", sessions::outlive_a_killed_turn),
    ("sessions_are_saved_and_forked", sessions::are_saved_and_forked),
    ("sessions_go_back", sessions::go_back),
    ("sessions_go_back_alike", sessions::go_back_alike),
    ("sessions_say_what_is_lost", sessions::say_what_is_lost),
    ("slates", slates),
    ("domains_share_a_process", domains::share_a_process),
    ("domains_are_replaced", domains::are_replaced),
    ("domains_outlive_a_kill", domains::outlive_a_kill),
    ("domains_wait_for_a_process", domains::wait_for_a_process),
    ("domains_are_cancelled_one_by_one", domains::are_cancelled_one_by_one),
    ("domains_give_way", domains::give_way),
    ("domains_have_few_idle_processes", domains::have_few_idle_processes),
    ("domains_give_back_descriptors", domains::give_back_descriptors),
    ("domains_replace_what_died_idle", domains::replace_what_died_idle),
    ("domains_forget_deadlines", domains::forget_deadlines),
    ("cancelled_while_tools_are_called", cancelled_while_tools_are_called),
    ("records_go_on_at_the_other_door", records::go_on_at_the_other_door),
    ("records_are_checked", records::are_checked),
    ("records_take_tools_again", records::take_tools_again),
    ("records_have_pages_of_tools", records::have_pages_of_tools),
    ("records_take_no_time_again", records::take_no_time_again),
    ("records_keep_the_stricter_effect", records::keep_the_stricter_effect),
    ("records_of_failed_parallel_calls", records::of_failed_parallel_calls),
    ("failures_come_to_one_answer", failures::come_to_one_answer),
    ("failures_given_up_calls_take_no_room", failures::given_up_calls_take_no_room),
    ("failures_too_many_given_up_calls", failures::too_many_given_up_calls),
    ("cancelled_before_they_began", failures::cancelled_before_they_began),
    ("killed_in_a_call_they_pay_what_they_used", failures::killed_in_a_call_they_pay_what_they_used),
    ("programs_that_do_not_compile_count", failures::programs_that_do_not_compile_count),
    ("records_of_killed_runs", killed::everywhere),
    ("records_of_lost_processes", lost::calls_are_heard),
    ("observers_see_runs_of_processes", seeing::observers_see_runs_of_processes),
    ("observers_are_told_of_refused_calls", seeing::observers_are_told_of_refused_calls),
    ("functions_are_called", functions::are_called),
    ("functions_are_bounded", functions::are_bounded),
    ("pipes_while_it_runs", pipes::while_it_runs),
    ("pipes_after_the_end", pipes::after_the_end),
    ("pipes_two_clients_at_once", pipes::two_clients_at_once),
    ("pipes_ten_thousand_times", pipes::ten_thousand_times),
    ("pipes_clients_that_go_away", pipes::clients_that_go_away),
    ("pipes_slow_clients", pipes::slow_clients),
    ("pipes_while_a_tool_is_called", pipes::while_a_tool_is_called),
    ("pipes_slow_and_talkative_clients", pipes::slow_and_talkative_clients),
    ("pipes_what_is_there_already", pipes::what_is_there_already),
    ("pipes_trouble", pipes::trouble),
    ("pipes_terminated_twice", pipes::terminated_twice),
    ("pipes_asked_in_grace", pipes::asked_in_grace),
    ("pipes_grace", pipes::grace),
    ("the_clock_of_the_host", the_clock_of_the_host),
    ("a_clock_out_of_order", a_clock_out_of_order),
    ("the_clock_in_sessions", the_clock_in_sessions),
    ("the_callers_handle_ends_a_turn", the_callers_handle_ends_a_turn),
    ("a_grace_without_end", a_grace_without_end),
    ("figures_of_a_killed_run", figures_of_a_killed_run),
    ("calls_of_a_turn_before", calls_of_a_turn_before),
    ("data_sets", data_sets),
    ("a_large_data_set_is_shared", a_large_data_set_is_shared),
    ("capabilities", capabilities),
];

/// Whether a call is withdrawn or the process hears of it first: a run that is cancelled says so.
fn cancelled_while_tools_are_called(_: &Sandbox) {
    let engine = Engine::builder().tool_threads(1).tool("slow", |_| {
        std::thread::sleep(Duration::from_millis(4));
        Ok(1)
    });
    let sandbox = Sandbox::builder().engine(engine.build().unwrap()).without_namespaces().build().unwrap();
    for round in 0..40 {
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(2_000 + 500 * round));
                cancel.cancel();
            });
            // It takes far longer than the cancellation, even on a busy machine.
            let program = "(pmap (fn [n] (tool/slow {:n n})) (range 200))";
            let outcome = sandbox.eval(program, &Input::new().cancel_with(&cancel));
            assert_eq!(
                outcome.problem().map(|problem| problem.reason()),
                Some(lisp_runtime::Reason::Cancelled),
                "{round}"
            );
        });
    }
}

/// The caller's own handle ends a session's turn, at both modes.
fn the_callers_handle_ends_a_turn(sandbox: &Sandbox) {
    let cancel = Cancel::new();
    let mut asked = lisp_runtime::LimitsRequest::default();
    asked.set("timeout_ms", 20_000).unwrap();
    asked.set("loop_iterations", 0).unwrap();
    let mut session = sandbox.session(Input::new().cancel_with(&cancel).limits(asked));
    assert!(session.eval("(def a 1)").is_success());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            cancel.cancel();
        });
        assert_eq!(session.eval("(loop [] (recur))").verdict(), Verdict::Cancelled);
    });
    cancel.reset();
    assert!(session.cancel_handle().is_cancelled() == cancel.is_cancelled());
    assert_eq!(session.eval("(inc 1)").value::<i64>().unwrap(), 2);
}

/// A run that had to be killed has the figures that it told last, and how old they are.
fn figures_of_a_killed_run(_: &Sandbox) {
    let engine = Engine::builder()
        .limits(Limits::default().with_timeout_ms(150).with_loop_iterations(0))
        .tool("stay", |_| {
            std::thread::sleep(Duration::from_millis(400));
            Ok(1)
        })
        .build()
        .unwrap();
    let sandbox = Sandbox::builder().engine(engine).build().unwrap();
    let source = "(def big (vec (range 10000))) (loop [i 0] (if (< i 30000) (recur (inc i)) i)) (tool/stay {})";
    let outcome = sandbox.eval(source, &Input::new().json("rows", "[1, 2, 3]"));
    let problem = outcome.problem().unwrap();
    assert_eq!(outcome.verdict(), Verdict::Timeout);
    assert!(problem.error.details.iter().any(|(name, _)| name == "ended_by"), "{problem:?}");
    let usage = &outcome.usage;
    assert!(usage.fuel > 90_000 && usage.heap_peak_bytes > 100_000 && usage.baseline_bytes > Some(0), "{usage:?}");
    assert!(usage.figures_age_us.is_some_and(|age| age > 300_000), "{usage:?}");
    let answer = Answer::new(None, &outcome).to_json();
    assert!(answer.contains("figures_age_us"), "{answer}");
    // One that ends by itself has those of its end.
    assert_eq!(sandbox.eval("(+ 1 2)", &Input::new()).usage.figures_age_us, None);
}

/// A grace that no clock can count does not turn the kill off: there is no such sandbox.
fn a_grace_without_end(_: &Sandbox) {
    for grace in [Duration::MAX, Duration::from_secs(u64::MAX / 2), Duration::from_secs(3_601)] {
        let error = Sandbox::builder().grace(grace).build().unwrap_err().to_string();
        assert!(error.contains("grace") && error.contains("3600s"), "{error}");
    }
    assert!(Sandbox::builder().grace(lisp_sandbox::Builder::MAX_GRACE).build().is_ok());
}

pub(crate) fn main() {
    lisp_sandbox::testing::init_with(pipes::PAYLOADS, &functions::all());
    if killed::live() {
        return;
    }
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
