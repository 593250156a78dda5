//! What a host gives: names of data, and what the set-up may take.

use lisp_runtime::outcome::{Detail, Phase};
use lisp_runtime::request::ErrorReport;
use lisp_runtime::{Engine, Input, Keys, Outcome, Reason, Tool};

fn message(outcome: &Outcome) -> (Reason, &str) {
    let problem = outcome.problem().expect("a problem");
    (problem.reason(), problem.error.message.as_str())
}

fn hint(outcome: &Outcome) -> &str {
    outcome.problem().and_then(|problem| problem.error.hint.as_deref()).unwrap_or_default()
}

#[test]
fn a_name_of_data_is_given_once() {
    let engine = Engine::default();
    let set = engine.import("n", "1").expect("a data set");
    let other = engine.import_object(r#"{"n": 2, "m": 3}"#).expect("a data set");
    let twice = "give each name once";
    for (input, why) in [
        (Input::new().json("n", "1").json("n", "2"), format!("it is given twice; {twice}")),
        (Input::new().json("n", "1").json_object(r#"{"n": 2}"#), format!("it is given twice; {twice}")),
        (Input::new().json_object(r#"{"n": 2}"#).json("n", "1"), format!("it is given twice; {twice}")),
        (Input::new().data_set(&set).json("n", "2"), format!("a data set has it too; {twice}")),
        (Input::new().data_set(&set).data_set(&other), format!("two data sets have it; {twice}")),
    ] {
        let outcome = engine.eval("data/n", input);
        let wanted = format!("cannot import data/n: {why}");
        assert_eq!(message(&outcome), (Reason::ParseError, wanted.as_str()));
        assert_eq!(outcome.problem().map(|p| p.phase), Some(Phase::Setup));
    }
    let input = Input::new().data_set(&set).data_set(&set).json("x", "2").json_object(r#"{"y": 3, "y": 4}"#);
    assert_eq!(engine.eval("[data/n data/x data/y]", input).text(), Some("[1 2 4]"));
}

#[test]
fn a_name_of_data_can_be_written() {
    let engine = Engine::default();
    for input in [Input::new().json("2024 sales", "1"), Input::new().json_object(r#"{"a": 1, "b c": 2}"#)] {
        let outcome = engine.eval("1", input);
        assert!(message(&outcome).1.contains("programs cannot write this name; bind the value to another"));
    }
    assert!(
        engine.import("é(", "1").is_err_and(|problem| problem.error.message.starts_with("cannot import data/é(: "))
    );
    let outcome = engine.eval("[data/2024 data/a.b/c]", Input::new().json("2024", "1").json("a.b/c", "2"));
    assert_eq!(outcome.text(), Some("[1 2]"));
}

#[test]
fn data_that_is_missing_is_named() {
    let engine = Engine::default();
    let given = || Input::new().json("orders", "[]").json("rates", "{}");
    let outcome = engine.eval("(inc data/order)", given());
    let both =
        "data/order is not given, so it is nil: did you mean data/orders?; give a default for what may be missing";
    assert!(hint(&outcome).starts_with(both), "{}", hint(&outcome));
    let alone = engine.eval("(inc data/n)", Input::new());
    assert!(
        hint(&alone).starts_with("data/n is not given, so it is nil: the host gives no data here"),
        "{}",
        hint(&alone)
    );
    assert!(!hint(&engine.eval("(do data/orders (inc nil))", given())).contains("not given"));
    let strict = engine.eval("(count\n data/rows)", given().strict_data(true));
    assert_eq!(message(&strict), (Reason::RuntimeError, "data/rows is not given"));
    assert_eq!(hint(&strict), "available: data/orders, data/rates");
    let at = strict.problem().and_then(|p| p.position).expect("a place");
    assert_eq!((at.line, at.column, at.end_line, at.end_column), (2, 2, 2, 11));
}

/// What is brought in before the program, programs among it, has the ceiling of the set-up.
#[test]
fn a_set_up_over_its_ceiling_says_so() {
    let engine = Engine::default();
    let big = engine.compile("(def a 1)\n(vec (range 10000000))").expect("a program");
    let program = engine.eval("1", Input::new().setup(&big));
    let data = engine.eval("1", Input::new().json("x", format!("[{}0]", "1.5,".repeat(3_000_000))));
    for (outcome, place) in [(&program, Some((2, 6))), (&data, None)] {
        let problem = outcome.problem().expect("a problem");
        assert_eq!((problem.reason(), problem.phase), (Reason::MemoryExceeded, Phase::Setup));
        assert!(hint(outcome).contains("setup_heap_bytes"), "{problem}");
        assert!(!problem.error.message.contains("10000000"), "{problem}");
        assert_eq!(problem.position.map(|at| (at.line, at.column)), place, "{problem}");
        let detail = |name: &str| problem.error.details.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
        assert_eq!(detail("limit_bytes"), Some(Detail::Int(40_000_000)));
        assert_eq!(detail("budget_bytes"), Some(Detail::Int(10_000_000)));
        assert_eq!(detail("baseline_bytes"), None);
        assert_eq!(ErrorReport::from(problem).details["phase"], "setup");
    }
    // The program's own want of room has its own limit.
    let outcome = engine.eval("(vec (range 10000000))", Input::new());
    assert!(hint(&outcome).ends_with("raise the limit heap_bytes"), "{}", hint(&outcome));
}

#[test]
fn keys_of_json_come_in_as_the_host_says() {
    let program = "[data/row m (count (filter (fn [[k _]] (= k :id)) data/row))]";
    let input = || Input::new().json("row", r#"{"id": 7, "a b/c": {"": 1}}"#).memory(r#"{"m": {"z": 1}}"#);
    let strings = r#"[{"a b/c" {"" 1} "id" 7} {"z" 1} 0]"#;
    let keywords = "[{:a b/c {: 1} :id 7} {:z 1} 1]";
    let json = r#"[{"id":7,"a b/c":{"":1}},{"z":1},"#;
    let asked = Engine::builder().json_keys(Keys::Keywords).build().expect("an engine");
    for (engine, input, text) in [
        (Engine::default(), input(), strings),
        (Engine::default(), input().json_keys(Keys::Keywords), keywords),
        (asked.clone(), input(), keywords),
        (asked.clone(), input().json_keys(Keys::Strings), strings),
    ] {
        let outcome = engine.eval(program, input);
        assert_eq!(outcome.text(), Some(text));
        assert!(outcome.json().is_some_and(|value| value.starts_with(json)), "{:?}", outcome.json());
        assert_eq!(outcome.memory(), Some(r#"{"m":{"z":1}}"#));
    }
    // A data set is shared by runs, and stays as it was imported.
    let set = asked.import("row", r#"{"id": 7}"#).expect("a data set");
    let outcome = Engine::default().eval("data/row", Input::new().data_set(&set));
    assert_eq!(outcome.text(), Some("{:id 7}"));
    let object = asked.import_object(r#"{"row": {"id": 7}, "n": 1}"#).expect("a data set");
    let outcome = asked.eval("[data/row data/n]", Input::new().data_set(&object));
    assert_eq!(outcome.text(), Some("[{:id 7} 1]"));
}

#[test]
fn keys_of_results_of_tools_come_in_like_data() {
    let engine = Engine::builder()
        .json_keys(Keys::Keywords)
        .tool("rows", |_| Ok(vec![std::collections::BTreeMap::from([("id", 1)])]))
        .grant(Tool::echo("echo"))
        .grant(Tool::new("typed", |_| Ok(std::collections::BTreeMap::from([("n", 1)]))).signature("() -> {n :int}"))
        .build()
        .expect("an engine");
    let program =
        "[(tool/rows {}) (tool/echo {:a-b {\"k\" #{1}}}) (tool/typed {}) (pmap (fn [i] (tool/echo {:i i})) [1])]";
    let outcome = engine.eval(program, Input::new());
    assert_eq!(outcome.text(), Some("[[{:id 1}] {:a_b {:k #{1}}} {:n 1} [{:i 1}]]"), "{:?}", outcome.problem());
    let mut session = engine.session(Input::new().json("row", r#"{"id": 1}"#));
    assert_eq!(session.eval("(def seen data/row) (tool/rows {})").text(), Some("[{:id 1}]"));
    assert_eq!(session.eval("[seen *1]").text(), Some("[{:id 1} [{:id 1}]]"));
}

#[test]
fn two_keys_that_would_become_one_are_both_named() {
    let outcome = Engine::default().eval("(def m {:b {:a 1 \"a\" 2}}) [m]", Input::new());
    let value = outcome.json_error().map(|error| error.message.clone()).unwrap_or_default();
    assert_eq!(value, "the value: two keys at [0 :b], :a and \"a\", would both become the JSON key \"a\"");
    let memory = outcome.memory_error().map(|error| error.message.clone()).unwrap_or_default();
    assert!(memory.starts_with("the definition m: ") && memory.contains(":a and \"a\""), "{memory}");
}
