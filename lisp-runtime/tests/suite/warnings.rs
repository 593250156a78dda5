//! Notes on the text of a program: they are in every answer, and change no outcome.

use lisp_runtime::outcome::Warning;
use lisp_runtime::request::answer_line;
use lisp_runtime::threads::Pool;
use lisp_runtime::tools::Effect;
use lisp_runtime::{Check, Engine, Input, LimitsRequest, Outcome, Program, Recording, Request, Tool};
use serde_json::{Value, json};

/// The warnings of an answer to a program: kind, line, column, end of the column.
fn warnings(program: &str) -> (Value, Vec<(String, u64, u64, u64)>) {
    let line = answer_line(&Engine::default(), &json!({ "program": program }).to_string()).to_json();
    let answer: Value = serde_json::from_str(&line).expect("an answer is JSON");
    let of = |warning: &Value| {
        let at = |field: &str| warning[field].as_u64().unwrap_or_default();
        assert!(warning["message"].is_string() && warning["repair"].is_string(), "{warning}");
        (warning["kind"].as_str().expect("a kind").to_owned(), at("line"), at("column"), at("end_column"))
    };
    let all = answer["warnings"].as_array().into_iter().flatten().map(of).collect();
    (answer, all)
}

fn at(kind: &str, line: u64, column: u64, end: u64) -> (String, u64, u64, u64) {
    (kind.to_owned(), line, column, end)
}

#[test]
fn a_program_in_a_code_fence_runs_with_a_warning() {
    for (program, value, told) in [
        ("```clojure\n(+ 1 2)\n```", json!(3), vec![at("code_fence", 1, 1, 11)]),
        ("\n  ~~~\n(+ 1 2)\n~~~\n", json!(3), vec![at("code_fence", 2, 3, 6)]),
        ("```\n(+ 1 2)", json!(3), vec![at("code_fence", 1, 1, 4)]),
        ("(+ 1 2)", json!(3), vec![]),
        ("\"```\n```\"", json!("```\n```"), vec![]),
        (
            "```clj\n(re-find #\"\\\\d\" \"1\")\n```",
            Value::Null,
            vec![at("code_fence", 1, 1, 7), at("doubled_backslash", 2, 12, 15)],
        ),
    ] {
        let (answer, warnings) = warnings(program);
        assert_eq!((answer["verdict"].as_str(), &answer["value"]), (Some("ok"), &value), "{program}: {answer}");
        assert_eq!(warnings, told, "{program}");
    }
}

#[test]
fn a_pattern_with_doubled_backslashes_has_a_warning() {
    for (program, columns) in [
        (r#"(re-seq #"\\d+" "a1")"#, vec![11]),
        (r#"[(re-find #"é[\\w.]" "a") (-> "a b" (str/split #"\\s+"))]"#, vec![15, 50]),
        (r#"(mapv (fn [s] (re-find #"\\b" s)) ["a"])"#, vec![26]),
        (r#"(re-find #"\d" "1")"#, vec![]),
        (r#"(re-find #"\\(.)" "\\a")"#, vec![]),
        (r#"(re-find #"C:\\data" "C:\\data")"#, vec![]),
        (r#"(re-find (re-pattern "\\d") "1")"#, vec![]),
        (r#"#_(re-find #"\\d" "1") 1"#, vec![]),
    ] {
        let (answer, warnings) = warnings(program);
        assert_eq!(answer["verdict"], "ok", "{program}: {answer}");
        let told: Vec<_> = columns.iter().map(|column| at("doubled_backslash", 1, *column, column + 3)).collect();
        assert_eq!(warnings, told, "{program}");
    }
    let (answer, _) = warnings(r#"(re-find #"\\d" "1")"#);
    assert_eq!(
        (&answer["warnings"][0]["message"], &answer["warnings"][0]["repair"]),
        (
            &json!(r"\\d in a pattern literal is a backslash and the letter d"),
            &json!(r"if you mean a digit, write \d: a pattern literal is raw")
        )
    );
    // Of many the first.
    assert_eq!(warnings(&r#"(re-find #"\\d" "1") "#.repeat(50)).1.len(), 8);
}

#[test]
fn a_warning_changes_no_outcome() {
    let engine = Engine::default();
    for body in ["(+ 1 2)", "(/ 1 0)", "(fail 1)", "(println 1) (def x 2) x"] {
        let (plain, fenced) = (body.to_owned(), format!("```\n{body}\n```"));
        let of = |program: &str| {
            let request = json!({ "program": program, "omit": ["ledger", "limits"] }).to_string();
            let outcome = Request::parse(&request).expect("a request").outcome(&engine);
            let kinds: Vec<_> = outcome.warnings().iter().map(|warning| warning.kind.name()).collect();
            let reason = outcome.problem().map(lisp_runtime::Problem::reason);
            let memory = outcome.memory().map(str::to_owned);
            ((outcome.verdict(), outcome.kind(), reason, outcome.prints.clone(), memory, outcome.usage.fuel), kinds)
        };
        let ((expected, none), (came, told)) = (of(&plain), of(&fenced));
        assert_eq!((came, none, told), (expected, vec![], vec!["code_fence"]), "{body}");
    }
}

#[test]
fn a_program_and_the_turns_of_a_session_have_their_warnings() {
    let engine = Engine::default();
    let program: Program = engine.compile("```\n1\n```").expect("a program");
    assert_eq!(program.warnings().len(), 1);
    let mut session = engine.session(Input::new());
    let mut told = |source: &str| session.eval(source).warnings().len();
    assert_eq!([told("```\n(def x 1)\n```"), told("x"), told("#\"\\\\s\""), told("(/ x 0)")], [1, 0, 1, 0]);
}

/// What a check finds before a run, with its repair. Nothing is found if the host turns it off.
#[test]
fn programs_are_checked_against_data_and_tools_unless_the_host_turns_it_off() {
    let tools = || {
        let price = Tool::new("price", |_| Ok(json!({ "total": 1.5 })))
            .signature("(sku :string, quantity :int?) -> {total :float}");
        Engine::builder().grant(price)
    };
    let engine = tools().check(Check::Warn).build().unwrap();
    let orders = json!([{ "sku": "A1", "qty": 2, "status": "paid" }, { "sku": "B2", "qty": 1, "status": "open" }]);
    let found = |engine: &Engine, program: &str| {
        let outcome = engine.eval(program, Input::new().data("orders", &orders));
        let warning = |warning: &lisp_runtime::outcome::Warning| {
            assert!(warning.position.is_some(), "{warning:?}");
            (warning.kind.name(), warning.repair.clone().unwrap_or_default())
        };
        outcome.warnings().iter().map(warning).collect::<Vec<_>>()
    };
    for (program, kind, repair) in [
        ("(map :quantiy [{:quantity 1}])", "unknown_key", "write :quantity"),
        ("(map :stauts data/orders)", "unknown_key", "write :status"),
        ("(filter #(= :paid (:status %)) data/orders)", "never_equal", "write \"paid\""),
        ("(map #(tool/price {:skuu (:sku %) :sku \"\"}) data/orders)", "unknown_argument", "write :sku"),
        ("(tool/price {:quantity 1})", "missing_argument", "add :sku to the arguments"),
        ("(tool/price {:sku 1})", "wrong_argument", "convert it: (str n)"),
        ("(:totl (tool/price {:sku \"A1\"}))", "unknown_key", "write :total"),
    ] {
        assert_eq!(found(&engine, program), [(kind, repair.to_owned())], "{program}");
        assert_eq!(found(&tools().build().unwrap(), program), [(kind, repair.to_owned())], "{program}: the default");
        assert_eq!(found(&tools().check(Check::Off).build().unwrap(), program), [], "{program}");
    }
    for program in [
        "(map :note data/orders)",
        "(map #(tool/price (select-keys % [:sku])) data/orders)",
        "(:total (tool/price {:sku \"A1\" :quantity 2}))",
        "(filter #(= \"paid\" (:status %)) data/orders)",
    ] {
        assert_eq!(found(&engine, program), [], "{program}");
    }
}

/// JSON Schemas give the same findings. Most of them allow arguments that they do not name: such an argument is a finding only if its
/// name is similar to that of a missing one.
#[test]
#[cfg(feature = "json-schema")]
fn schemas_of_tools_are_known_to_a_check() {
    let input = json!({
        "type": "object",
        "properties": {
            "to": { "$ref": "#/$defs/address" },
            "amount": { "type": "integer", "minimum": 1 },
            "note": { "type": ["string", "null"] },
            "tags": { "type": "array", "items": { "type": "string" } },
            "mode": { "enum": ["fast", "slow"] },
            "odd.name": { "type": "string" },
        },
        "required": ["to", "amount"],
        "$defs": { "address": { "anyOf": [{ "type": "string" }, { "type": "string", "format": "uri" }] } },
    });
    let output =
        json!({ "type": "object", "properties": { "receipt": { "type": "string" } }, "required": ["receipt"] });
    let tool = Tool::from_json_schema("pay", "", &input.to_string(), Some(&output.to_string())).expect("schemas");
    let tool = tool.with_handler(|_| Ok(json!({ "receipt": "r1" })));
    let engine = Engine::builder().grant(tool).check(Check::Warn).build().unwrap();
    let found = |program: &str| {
        let outcome = engine.eval(program, Input::new());
        outcome.warnings().iter().map(|w| (w.kind.name(), w.repair.clone().unwrap_or_default())).collect::<Vec<_>>()
    };
    for (program, kind, repair) in [
        ("(tool/pay {:to \"a\" :amonut 1 :amount 2 :noet nil})", "unknown_argument", "write :note"),
        ("(tool/pay {:to \"a\"})", "missing_argument", "add :amount to the arguments"),
        ("(tool/pay {:to 5 :amount 1})", "wrong_argument", "convert it: (str n)"),
        ("(tool/pay {:to \"a\" :amount \"1\"})", "wrong_argument", "convert it: (parse-long s)"),
        ("(tool/pay {:to \"a\" :amount 1 :mode 2})", "wrong_argument", "convert it: (str n)"),
        ("(tool/pay {:to \"a\" :amount 1 :tags \"x\"})", "wrong_argument", "put it into a vector: [x]"),
        ("(:reciept (tool/pay {:to \"a\" :amount 1}))", "unknown_key", "write :receipt"),
        ("(= :r1 (:receipt (tool/pay {:to \"a\" :amount 1})))", "never_equal", "write \"r1\""),
    ] {
        assert_eq!(found(program), [(kind, repair.to_owned())], "{program}");
    }
    for program in [
        "(tool/pay {:to :a :amount 1.0 :note nil :tags #{\"x\"} :mode :fast})",
        "(tool/pay {:to (java.util.Date. 0) :amount (/ 4 2) :other 1 \"odd.name\" 7})",
        "(tool/pay (merge {:to \"a\"} (or data/more {})))",
        "(:status (tool/pay {:to \"a\" :amount 1}))",
    ] {
        assert_eq!(found(program), [], "{program}");
    }
    // What a schema may say in other ways is unknown.
    for input in [
        json!(true),
        json!({ "allOf": [{ "properties": { "total": {} }, "additionalProperties": false }] }),
        json!({ "type": "object", "properties": { "amount": { "not": { "type": "string" } } } }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "type": "object", "properties": { "amount": { "anyOf": [{ "type": "null" }, { "anyOf": [{}, { "type": "null" }] }, { "type": "object" }] } } }),
    ] {
        let Ok(tool) = Tool::from_json_schema("pay", "", &input.to_string(), None) else { continue };
        let engine = Engine::builder().grant(tool).check(Check::Warn).build().unwrap();
        let outcome = engine.eval("(tool/pay {:amount 1 :totl 2})", Input::new());
        assert!(outcome.warnings().is_empty(), "{input}: {:?}", outcome.warnings());
    }
}

/// A result has the keys that its schema may list anywhere, and those that it allows.
#[test]
#[cfg(feature = "json-schema")]
fn open_schemas_of_results_list_no_keys() {
    let number = || json!({ "type": "number" });
    for (more, is_known) in [
        (json!({}), false),
        (json!({ "allOf": [{ "properties": { "totals": number() } }] }), true),
        (json!({ "anyOf": [{ "properties": { "totals": number() } }, { "properties": { "a": number() } }] }), true),
        (json!({ "if": { "required": ["total"] }, "then": { "properties": { "totals": number() } } }), true),
        (json!({ "dependentSchemas": { "total": { "properties": { "totals": number() } } } }), true),
        (json!({ "$ref": "#/$defs/b", "$defs": { "b": { "properties": { "totals": number() } } } }), true),
        (json!({ "additionalProperties": true }), true),
        (json!({ "additionalProperties": number() }), true),
        (json!({ "patternProperties": { "^tot": number() } }), true),
    ] {
        let mut schema = json!({ "type": "object", "properties": { "total": number() } });
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let tool = Tool::from_json_schema("q", "", "{}", Some(&schema.to_string())).expect("schemas");
        let tool = tool.with_handler(|_| Ok(json!({ "total": 1, "totals": 2 })));
        let engine = Engine::builder().grant(tool).check(Check::Refuse).build().unwrap();
        let outcome = engine.eval("(:totals (tool/q {}))", Input::new());
        assert_eq!(outcome.warnings().is_empty(), is_known, "{schema}: {:?}", outcome.warnings());
        assert_eq!(outcome.value::<f64>(), Ok(2.0), "{schema}");
    }
}

/// A tagged tool returns what its contract says under `:ok`.
#[test]
fn results_of_tagged_tools_are_known_to_a_check() {
    let tool = Tool::new("name", |_| Ok("x")).signature("() -> :string").tagged();
    let pay = Tool::new("pay", |_| Ok(true)).signature("(to :string) -> :bool");
    let engine = Engine::builder().grant(tool).grant(pay).check(Check::Refuse).build().unwrap();
    for (program, value) in [
        ("(:ok (tool/name {}))", "\"x\""),
        ("(let [{:keys [ok error]} (tool/name {})] [ok error])", "[\"x\" nil]"),
        ("(tool/pay {:to (:ok (tool/name {}))})", "true"),
    ] {
        let outcome = engine.eval(program, Input::new());
        assert_eq!((outcome.warnings(), outcome.text()), (&[][..], Some(value)), "{program}: {outcome:?}");
    }
    let wrong = engine.eval("(= (:ok (tool/name {})) :x)", Input::new());
    assert_eq!(wrong.warnings()[0].kind.name(), "never_equal");
}

/// A function of an earlier turn may define again what this turn defines.
#[test]
fn definitions_beside_functions_of_earlier_turns_are_unknown() {
    let engine = Engine::builder().check(Check::Warn).build().unwrap();
    let mut session = engine.session(Input::new());
    assert!(session.eval("(defn reset [] (def mode :fast))").is_success());
    let outcome = session.eval("(def mode \"slow\") (reset) (= mode :fast)");
    assert_eq!((outcome.warnings().len(), outcome.text()), (0, Some("true")));
    assert_eq!(session.eval("(def mode \"slow\") (= mode :fast)").warnings().len(), 1);
}

/// A host can refuse runs whose calls would fail. Nothing was called then.
#[test]
fn calls_that_would_fail_can_end_a_run_before_it_starts() {
    let called = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = called.clone();
    let price = Tool::new("price", move |_| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(1)
    });
    let engine =
        Engine::builder().grant(price.signature("(sku :string) -> :int")).check(Check::Refuse).build().unwrap();
    let outcome = engine.eval("(tool/price {:sku \"a\"})\n(tool/price {:skuu \"b\"})\n(tool/price {})", Input::new());
    let problem = outcome.problem().expect("a problem");
    assert_eq!(
        (problem.reason().name(), problem.error.message.as_str()),
        ("check_failed", "tool/price has no argument :skuu; it takes :sku")
    );
    assert_eq!(problem.error.hint.as_deref(), Some("write :sku"));
    assert_eq!(problem.position.map(|at| (at.line, at.column)), Some((2, 1)));
    assert_eq!(problem.more.len(), 1, "{:?}", problem.more);
    // What is only suspicious is a warning.
    let outcome = engine.eval("(:totl {:total 1}) (tool/price {:sku \"a\"})", Input::new());
    assert_eq!((outcome.value::<i64>().ok(), outcome.warnings().len()), (Some(1), 1));
    assert_eq!(called.load(std::sync::atomic::Ordering::SeqCst), 1);
    // So is a call whose error is caught, or that is never made. Arguments may be given by name.
    for (program, value, warnings) in [
        ("(tool/price :sku \"a\")", 1, 0),
        ("(apply tool/price [:sku \"a\"])", 1, 0),
        ("(tool/price {:sku (or (butlast [\"x\"]) \"none\")})", 1, 0),
        ("(try (tool/price {}) (catch Exception e 5))", 5, 1),
        ("(defn later [] (tool/price {})) 6", 6, 1),
    ] {
        let outcome = engine.eval(program, Input::new());
        assert_eq!((outcome.value::<i64>().ok(), outcome.warnings().len()), (Some(value), warnings), "{program}");
    }
}

/// A check that is not finished says so, and a run does not.
#[test]
fn a_check_of_too_much_says_that_it_is_not_finished() {
    let calls: String = (1..6).map(|n| format!("(defn f{n} [x] {})", format!("(f{} x) ", n - 1).repeat(10))).collect();
    let source = format!("(defn f0 [x] x) {calls} (if data/flag (f5 1) 2)");
    let engine = Engine::default();
    let kinds = |outcome: &Outcome| outcome.warnings().iter().map(|warning| warning.kind.name()).collect::<Vec<_>>();
    let input = || Input::new().json("flag", "false");
    assert_eq!(kinds(&engine.eval(&source, input())), Vec::<&str>::new());
    assert_eq!(kinds(&engine.eval(&source, input().check_only())), ["check_incomplete"]);
}

/// A check runs nothing of the program, makes no calls, and reports no run, whatever the engine's setting is.
#[test]
fn a_check_ends_before_the_program_starts() {
    struct Runs(std::sync::Arc<std::sync::atomic::AtomicUsize>);
    impl lisp_runtime::Observer for Runs {
        fn run_started(&self, _: &lisp_runtime::observe::RunStarted<'_>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let (seen, called) = (std::sync::Arc::<std::sync::atomic::AtomicUsize>::default(), std::sync::Arc::new(0.into()));
    let count: std::sync::Arc<std::sync::atomic::AtomicUsize> = std::sync::Arc::clone(&called);
    let pay = Tool::new("pay", move |_| Ok(count.fetch_add(1, std::sync::atomic::Ordering::SeqCst)));
    let pay = pay.signature("(amount :int) -> :int");
    for check in [Check::Off, Check::Warn, Check::Refuse] {
        let engine = Engine::builder().grant(pay.clone()).check(check).observer(Runs(seen.clone())).build().unwrap();
        let input = || {
            Input::new().json("rows", r#"[{"total": 1}]"#).setup_source("(defn sum-of [rows] (sum (map :totl rows)))")
        };
        let source = "(println 1) (def x 1) (tool/pay {:amuont (sum-of data/rows)})";
        let outcome = engine.eval(source, input().check_only());
        let kinds: Vec<_> = outcome.warnings().iter().map(|warning| warning.kind.name()).collect();
        assert_eq!((outcome.text(), kinds), (Some("nil"), vec!["unknown_argument"]), "{check:?}");
        assert!(outcome.prints.is_empty() && outcome.memory().is_none() && outcome.ledger.is_empty());
        let program = engine.compile(source).unwrap();
        assert_eq!(engine.check(&program, &input()).unwrap(), outcome.warnings());
        // A set-up program runs, but its calls are not made.
        let calls = input().setup_source("(tool/pay {:amount 1})").check_only();
        let outcome = engine.eval(source, calls);
        let problem = outcome.problem().expect("a problem");
        assert_eq!((problem.reason().name(), problem.setup), ("tool_denied", Some(1)));
        assert_eq!(problem.error.message, "tool/pay was not called: a check makes no calls");
    }
    let none = std::sync::atomic::Ordering::SeqCst;
    assert_eq!((seen.load(none), called.load(none)), (0, 0));
}

/// Names of tools are not checked by [`Engine::check`] if there are no tools.
#[test]
fn a_check_without_tools_allows_any() {
    let engine = Engine::default();
    let program = engine.compile("(:totl (tool/any {:a 1})) (:totl {:total 1})").unwrap();
    assert_eq!(engine.check(&program, &Input::new()).unwrap().len(), 1);
    let outcome = engine.eval("(tool/any {})", Input::new().check_only());
    assert_eq!(outcome.problem().map(|problem| problem.reason().name()), Some("unknown_tool"));
}

/// What a run reads in vain is noted, also in workers, in the turns of a session, and when the run is done again from its record. A
/// host that asks for no check gets no note.
#[test]
fn what_a_run_reads_in_vain_is_noted() {
    const PROGRAM: &str = "(defn names [n] (cons (:nmae n) (pmap names (:children n))))
        [(names data/tree) (:chidlren (nth (tool/find {}) (dec 1)))]";
    let tree = json!({ "name": "a", "children": [{ "name": "b", "children": [] }, { "name": "c", "children": [] }] });
    let find = || Tool::new("find", |_| Ok(json!([{ "children": 5 }]))).with_effect(Effect::Read);
    let input = || Input::new().data("tree", &tree);
    let noted = |outcome: &Outcome| {
        assert!(outcome.is_success(), "{:?}", outcome.problem());
        let note = |warning: &Warning| {
            let at = warning.position.expect("a position");
            (
                warning.kind.name(),
                at.line,
                at.column,
                warning.message.clone(),
                warning.repair.clone().unwrap_or_default(),
            )
        };
        outcome.warnings().iter().map(note).collect::<Vec<_>>()
    };
    let message = |key: &str, times: &str, meant: &str| {
        format!(":{key} was read {times} and never found; these maps have :{meant}")
    };
    let wanted = [
        ("key_never_found", 1, 23, message("nmae", "3 times", "name"), "write :name".to_owned()),
        ("key_never_found", 2, 28, message("chidlren", "1 time", "children"), "write :children".to_owned()),
    ];
    for builder in
        [Engine::builder(), Engine::builder().without_threads(), Engine::builder().pool(Pool::new(4).unwrap())]
    {
        let engine = builder.grant(find()).check(Check::Warn).build().unwrap();
        for window in [1, 2, 8] {
            let mut asked = LimitsRequest::default();
            asked.set("parallel_window", window).unwrap();
            assert_eq!(noted(&engine.eval(PROGRAM, input().limits(asked))), wanted);
        }
        let recording = Recording::new();
        assert_eq!(noted(&engine.eval(PROGRAM, input().record(&recording))), wanted);
        let (program, input, _) = engine.open_record(&recording.record().unwrap(), &[]).unwrap();
        assert_eq!(noted(&engine.run(&program, input)), wanted);
    }
    assert_eq!(noted(&Engine::builder().grant(find()).check(Check::Off).build().unwrap().eval(PROGRAM, input())), []);
    let engine = Engine::builder().check(Check::Warn).build().unwrap();
    let mut session = engine.session(input());
    assert_eq!(noted(&session.eval("(defn nmae [n] (get-in n [:children (dec 1) :nmae])) (nmae data/tree)")).len(), 1);
    // A note is about a place in the program of the turn.
    assert_eq!(noted(&session.eval("(nmae data/tree)")), []);
    assert_eq!(noted(&session.eval("(get-in data/tree [:children (dec 1) :nmae])")).len(), 1);
    // Found in this turn as in the one before.
    let both = "(defn names [n] (if (:names n) 1 (map names (:children n))))";
    assert_eq!(noted(&session.eval("(def rows [{:names 1} data/tree])")).len(), 0);
    for _ in 0..2 {
        assert_eq!(noted(&session.eval(&format!("{both} (map names rows)"))), []);
    }
}

/// A definition of an earlier turn with the name of a built-in is not that built-in.
#[test]
fn definitions_with_names_of_built_ins_are_unknown_to_a_check() {
    let engine = Engine::builder().check(Check::Warn).build().unwrap();
    let mut session = engine.session(Input::new());
    assert!(session.eval("(defn first [xs] {:totl 1})").problem().is_none());
    let outcome = session.eval("(:totl (first [{:total 1}]))");
    assert_eq!((outcome.value::<i64>().ok(), outcome.warnings().len()), (Some(1), 0));
}

/// A host that runs only programs without findings would never run one in a fence.
#[test]
fn a_code_fence_is_no_finding_of_a_check() {
    let engine = Engine::default();
    let checked = |source: &str| {
        let program = engine.compile(source).expect("a program");
        engine.check(&program, &Input::new().json("order", r#"{"total": 9}"#)).expect("warnings").len()
    };
    assert_eq!(checked("```clojure\n(:total data/order)\n```"), 0);
    assert_eq!(checked("```clojure\n(:totl data/order)\n```"), 1);
}
