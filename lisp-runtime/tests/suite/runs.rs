//! Programs, inputs and sessions.

use lisp_runtime::outcome::{OutcomeKind, Phase, ValueError};
use lisp_runtime::{Engine, Input, Reason, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    id: i64,
    name: Option<String>,
    score: f64,
}

#[test]
fn host_types_go_in_and_come_out() {
    let engine = Engine::default();
    let rows = vec![Row { id: 1, name: Some("Ada".into()), score: 0.1 }, Row { id: 2, name: None, score: 1e300 }];
    let outcome = engine.eval("(filter #(> (:id %) 0) data/rows)", Input::new().data("rows", &rows));
    assert_eq!(outcome.value::<Vec<Row>>().expect("rows"), rows);
    assert!(matches!(outcome.value::<bool>(), Err(ValueError::Type(_))));
}

#[test]
fn values_as_json() {
    let engine = Engine::default();
    for (program, json, text) in [
        ("nil", "null", "nil"),
        ("[1 2.5 \"a\\\"b\" :k true]", r#"[1,2.5,"a\"b","k",true]"#, r#"[1 2.5 "a\"b" :k true]"#),
        ("{:b 1 :a {\"x\" nil}}", r#"{"b":1,"a":{"x":null}}"#, r#"{:a {"x" nil} :b 1}"#),
        ("#{3 1 2}", "[1,2,3]", "#{1 2 3}"),
        ("123456789012345678901234567890", "123456789012345678901234567890", "123456789012345678901234567890"),
        ("##Inf", "null", "##Inf"),
        ("(return {:done true})", r#"{"done":true}"#, "{:done true}"),
    ] {
        let outcome = engine.eval(program, Input::new());
        assert_eq!((outcome.json(), outcome.text()), (Some(json), Some(text)), "{program}");
    }
    let collision = engine.eval("{:a 1 \"a\" 2}", Input::new());
    assert_eq!((collision.json(), collision.text()), (None, Some("{:a 1 \"a\" 2}")));
    assert!(collision.json_error().is_some_and(|e| e.message.contains("JSON key \"a\"")), "two keys that would be one");
    assert!(collision.value::<serde_json::Value>().is_err(), "nothing is lost silently");
}

#[test]
fn fail_is_an_end_of_the_programs_own() {
    let outcome = Engine::default().eval("(fail {:why \"no stock\"})", Input::new());
    assert_eq!((outcome.verdict(), outcome.kind()), (Verdict::Ok, Some(OutcomeKind::Fail)));
    assert_eq!(outcome.value::<bool>(), Err(ValueError::Fail("{:why \"no stock\"}".to_owned())));
}

#[test]
fn data_is_read_where_it_is_named() {
    let engine = Engine::default();
    let object = r#"{"user": {"name": "Ada"}, "n": 2}"#;
    let outcome = engine.eval("[(:name data/user) data/n data/missing]", Input::new().json_object(object));
    assert_eq!(outcome.text(), Some("[\"Ada\" 2 nil]"));
    let strict = engine.eval("data/missing", Input::new().json_object(object).strict_data(true));
    assert_eq!(strict.problem().map(|p| p.reason()), Some(Reason::RuntimeError));
    for (input, what) in [
        (Input::new().json("rows", "[1, 2"), "data/rows"),
        (Input::new().json_object("[1]"), "the data"),
        (Input::new().memory("7"), "the memory"),
        (Input::new().history("{}"), "the history"),
    ] {
        let outcome = engine.eval("1", input);
        let problem = outcome.problem().expect("a problem");
        assert_eq!((problem.reason(), problem.phase), (Reason::ParseError, Phase::Setup));
        assert!(problem.error.message.contains(what), "{problem}");
    }
}

#[test]
fn a_data_set_serves_many_threads() {
    let engine = Engine::default();
    let set = engine.import("rows", format!("[{}0]", "{\"n\": 1},".repeat(1_000))).expect("a data set");
    let program = engine.compile("(count data/rows)").expect("a program");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let outcome = engine.run(&program, Input::new().data_set(&set));
                    assert_eq!(outcome.value::<usize>(), Ok(1_001));
                    assert!(outcome.usage.heap_peak_bytes < 10_000, "nothing is copied: {:?}", outcome.usage);
                }
            });
        }
    });
    assert!(engine.import("rows", "[").is_err());
}

#[test]
fn memory_goes_from_run_to_run() {
    let engine = Engine::default();
    let first = engine.eval("(def total 40) (def rows [{:a 1}]) (defn f [x] x) total", Input::new());
    assert_eq!(first.memory(), Some(r#"{"rows":[{"a":1}],"total":40}"#));
    let memory = first.memory().expect("a memory").to_owned();
    let second = engine.eval("(def total (+ total 2)) [total (:a (first rows))]", Input::new().memory(memory.clone()));
    assert_eq!(second.text(), Some("[42 1]"));
    // What fails changes nothing.
    let failed = engine.eval("(def total 1) (fail total)", Input::new().memory(memory.clone()));
    assert_eq!(failed.memory(), Some(memory.as_str()));
    assert_eq!(engine.eval("(def total 1) (+ 1 nil)", Input::new().memory(memory)).memory(), None);
}

#[test]
fn history_is_oldest_first() {
    let outcome = Engine::default().eval("[*1 *2 *3]", Input::new().history("[10, 20, 30, 40]"));
    assert_eq!(outcome.text(), Some("[40 30 20]"));
    assert_eq!(Engine::default().eval("*1", Input::new()).text(), Some("nil"));
}

#[test]
fn set_up_programs_run_first() {
    let engine = Engine::default();
    let library = engine.compile("(println \"not shown\") (defn twice [x] (* 2 x))").expect("a program");
    let outcome = engine.eval("(println \"shown\") (twice 21)", Input::new().setup(&library));
    assert_eq!(outcome.value::<i64>(), Ok(42));
    assert_eq!(outcome.prints, ["shown"]);
    let broken = engine.compile("\n(+ 1 nil)").expect("a program");
    let outcome = engine.eval("1", Input::new().setup(&library).setup(&broken));
    let problem = outcome.problem().expect("a problem");
    assert_eq!((problem.phase, problem.setup), (Phase::Setup, Some(1)));
    assert_eq!(problem.position.map(|at| (at.line, at.column, at.end_line, at.end_column)), Some((2, 1, 2, 10)));
}

#[test]
fn a_session_keeps_functions_and_survives_failures() {
    let engine = Engine::builder().tool("n", |_| Ok(5)).build().expect("an engine");
    let mut session = engine.session(Input::new().json("rows", "[1, 2, 3]").history("[7]"));
    assert_eq!(session.eval("(inc *1)").value::<i64>(), Ok(8));
    assert_eq!(session.eval("[*1 *2]").text(), Some("[8 7]"));
    assert!(session.eval("(defn add [x] (+ x (tool/n) (count data/rows)))").is_success());
    assert!(session.eval("(def x 1)").is_success());
    assert_eq!(session.eval("(add x)").value::<i64>(), Ok(9));
    for failing in ["(def x 2) (+ 1 nil)", "(def x 2) (fail :no)", "(def x", "(def x nope)", "(tool/unknown)"] {
        assert!(!session.eval(failing).is_success(), "{failing}");
        assert_eq!(session.eval("x").value::<i64>(), Ok(1), "after {failing}");
    }
    assert_eq!(session.eval("(def x 3) (return :done)").kind(), Some(OutcomeKind::Return));
    assert_eq!(session.eval("[x *1]").text(), Some("[3 :done]"));
    assert_eq!(session.names(), ["add", "x"]);
}

#[test]
fn signatures_of_results() {
    let engine = Engine::default();
    for (program, signature, fits) in [
        ("{:count 5}", "{count :int}", true),
        ("{:count \"not an int\"}", "{count :int}", false),
        ("42", ":int", true),
        ("42", "() -> :float", true),
        ("42.5", ":int", false),
        ("{:items [{:id 1} {:id 2}]}", "{items [{id :int}]}", true),
        ("{:items [{:id 1} {}]}", "{items [{id :int}]}", false),
        ("{:name \"Alice\"}", "{name :string, age :int?}", true),
        ("{:name \"Alice\" :age nil}", "{name :string, age :int?}", true),
        ("{:user-id 42}", "{user_id :int}", true),
        ("{:user_id 42}", "{user-id :int}", true),
        ("{\"user_id\" 42}", "{user-id :int}", true),
        ("{:user_id 42 :user-id 1}", "{user-id :int}", false),
        ("{:user {:id \"x\"}}", "{user {id :int}}", false),
        ("[1 2 3]", "[:int]", true),
        ("#{1}", "[:int]", false),
        ("\"hello\"", ":string", true),
        ("true", ":bool", true),
        ("nil", ":any", true),
        ("(fail 1)", ":string", true),
    ] {
        let outcome = engine.eval(program, Input::new().signature(signature));
        let reason = outcome.problem().map(|p| p.reason());
        assert_eq!(reason, (!fits).then_some(Reason::ValidationError), "{program} {signature}");
    }
    let outcome = engine.eval("42", Input::new().signature("invalid syntax"));
    assert_eq!(outcome.problem().map(|p| p.reason()), Some(Reason::ParseError));
    let outcome = engine.eval("{:rows [{:id 1} {:id :x}]}", Input::new().signature("{rows [{id :int}]}"));
    let message = outcome.problem().map(|p| p.error.message.clone()).unwrap_or_default();
    assert_eq!(message, "result.rows[1].id: expected an integer, got keyword");
}

#[test]
fn errors_say_where() {
    let outcome = Engine::default().eval("(let [x 1]\n  (str \"é\") (+ x nil))", Input::new());
    let problem = outcome.problem().expect("a problem");
    let at = problem.position.expect("a place");
    assert_eq!((at.line, at.column, at.end_line, at.end_column), (2, 13, 2, 22));
    assert_eq!(problem.reason(), Reason::TypeError);
    let at = Engine::default().compile("(+ 1\n  (foo").expect_err("an error").position.expect("a place");
    assert_eq!((at.line, at.column, at.end_line, at.end_column), (2, 3, 2, 4));
}

#[test]
fn the_time_is_an_effect_that_the_host_fixes_and_replays() {
    use std::sync::atomic::{AtomicI64, Ordering};
    let time = std::sync::Arc::new(AtomicI64::new(10));
    let ticking = time.clone();
    let engine = Engine::builder().clock(move || ticking.fetch_add(5, Ordering::Relaxed)).build().expect("an engine");
    let program = engine.compile("(map (fn [_] (System/currentTimeMillis)) (range 3))").expect("a program");
    let outcome = engine.run(&program, Input::new());
    assert_eq!(outcome.value::<Vec<i64>>(), Ok(vec![10, 15, 20]));
    assert_eq!(outcome.clock, [(10, 1), (15, 1), (20, 1)]);
    // The clock of the host is put back; a run's does not go back, and one that is replayed tells the same again.
    time.store(-100, Ordering::Relaxed);
    let again = engine.run(&program, Input::new().clock(&outcome.clock));
    assert_eq!(again.value::<Vec<i64>>(), Ok(vec![10, 15, 20]));
    assert_eq!((again.usage.fuel, time.load(Ordering::Relaxed)), (outcome.usage.fuel, -100));
    let fixed = engine.run(&program, Input::new().now_ms(7));
    assert_eq!(fixed.value::<Vec<i64>>(), Ok(vec![7, 7, 7]));
    assert!(fixed.clock.is_empty());
    // Without a clock of the host's it is the system's.
    let now = Engine::default().eval("(System/currentTimeMillis)", Input::new()).value::<i64>().expect("a time");
    assert!(now > 1_700_000_000_000);
}

/// Runs a program and returns what the hook saw, with the moments, and the outcome.
fn streamed(source: &str, input: Input<'_>) -> (Vec<String>, lisp_runtime::Outcome) {
    let (lines, shown) = std::sync::mpsc::channel();
    let input = input.on_print(move |line| lines.send(line.to_owned()).unwrap_or_default());
    let engine = Engine::builder().tool("echo", |call| call.get::<i64>("x")).build().unwrap();
    let outcome = engine.eval(source, input);
    (shown.try_iter().collect(), outcome)
}

#[test]
fn printed_lines_are_shown_as_they_happen() {
    let (lines, outcome) = streamed("(println 1) (tool/echo {:x 1}) (println 2) (println 3) (/ 1 0)", Input::new());
    assert_eq!(lines, ["1", "2", "3"]);
    assert_eq!(lines, outcome.prints);
    // Before the next thing the program does: here, a call.
    let (seen, at_call) = (std::sync::Arc::new(std::sync::Mutex::new(Vec::new())), std::sync::mpsc::channel());
    let (keep, now) = (seen.clone(), seen.clone());
    let tool = move |_: &lisp_runtime::ToolCall| Ok(at_call.0.send(now.lock().unwrap().clone())?);
    let engine = Engine::builder().tool("look", tool).build().unwrap();
    let input = Input::new().on_print(move |line| keep.lock().unwrap().push(line.to_owned()));
    let outcome = engine.eval("(println :before) (tool/look {}) (println :after)", input);
    assert!(outcome.is_success(), "{outcome:?}");
    assert_eq!(at_call.1.try_recv().unwrap(), [":before"]);
    assert_eq!(*seen.lock().unwrap(), [":before", ":after"]);
}

#[test]
fn lines_of_workers_are_shown_once_and_what_the_limit_drops_is_said() {
    let (mut lines, outcome) =
        streamed("(pmap (fn [x] (println x) (tool/echo {:x x})) (range 50)) (println :end)", Input::new());
    assert_eq!((lines.len(), lines.last().map(String::as_str)), (51, Some(":end")));
    let mut all = outcome.prints.clone();
    lines.sort();
    all.sort();
    assert_eq!(lines, all);
    let mut limits = lisp_runtime::LimitsRequest::default();
    limits.set("prints_bytes", 60).unwrap();
    let (lines, outcome) = streamed("(println :a) (println :b) (println :c)", Input::new().limits(limits));
    assert_eq!(lines, [":a", ":b", "... (1 more line; the limit is 60 bytes)"]);
    assert_eq!(lines, outcome.prints);
}

#[test]
fn a_hook_that_panics_costs_no_line_of_the_outcome() {
    let engine = Engine::default();
    let outcome = engine.eval("(println 1) (println 2) 3", Input::new().on_print(|_| panic!("a test's panic")));
    assert_eq!((outcome.prints.len(), outcome.value::<i64>().unwrap()), (2, 3));
}

/// What an observer is told.
#[derive(Clone, Default)]
struct Told(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl lisp_runtime::Observer for Told {
    fn host_fault(&self, fault: &lisp_runtime::observe::HostFault<'_>) {
        self.0.lock().expect("no panic while it is held").push(fault.message.to_owned());
    }
}

#[test]
fn an_observer_is_told_of_a_contained_fault_once() {
    let told = Told::default();
    // A clock of the host that breaks is caught where a bug of the interpreter would be.
    let engine = Engine::builder().clock(|| panic!("broken")).observer(told.clone()).build().expect("an engine");
    assert!(engine.eval("(inc nil)", Input::new()).problem().is_some());
    assert!(told.0.lock().expect("it is free").is_empty(), "an error of the program is none");
    let outcome = engine.eval("(System/currentTimeMillis)", Input::new());
    assert_eq!(outcome.verdict(), Verdict::HostFault);
    let message = outcome.problem().map(|problem| problem.error.message.clone());
    assert_eq!(told.0.lock().expect("it is free").as_slice(), [message.expect("a problem")]);
    // So is one that the host finds in a run of another process.
    let input = Input::new();
    let Ok((_, mut home)) = engine.split("1", &input, &[], false) else { panic!("nothing is wrong with it") };
    home.fail(lisp_runtime::Error::new(Reason::HostFault, "it is gone"), None);
    assert_eq!(told.0.lock().expect("it is free").last().map(String::as_str), Some("it is gone"));
}

#[test]
fn a_value_of_another_type_says_where() {
    #[derive(Debug, Deserialize)]
    struct Report {
        #[expect(dead_code, reason = "only read")]
        rows: Vec<Row>,
    }
    let wrong = |source: &str| Engine::default().eval(source, Input::new()).value::<Report>().unwrap_err().to_string();
    let rows = "{:rows [{:id 1 :name nil :score 1.5} {:id 2 :name 5 :score 1.5}]}";
    let text = "the value is of another type: rows[1].name: invalid type: integer `5`, expected a string";
    assert_eq!(wrong(rows), text);
    assert_eq!(wrong("{}"), "the value is of another type: missing field `rows`");
}
