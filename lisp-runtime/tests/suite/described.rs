//! Tools that are described by JSON Schema. The examples of `docs/tools.md` are run.

use lisp_runtime::outcome::CallStatus;
use lisp_runtime::tools::{AskedCall, Effect, PolicyDecision};
use lisp_runtime::{Engine, Input, Progress, Reason, Recording, Tool, ToolPolicy, Tools};
use serde_json::Value;

/// The examples in the document: what is given, and what comes of it.
fn examples() -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tools.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter_map(|pair| Some((pair[0].to_owned(), pair[1].strip_prefix("=> ")?.to_owned())));
    pairs.collect()
}

#[test]
fn the_examples_of_the_document() {
    let (mut lines, mut checks) = (0, 0);
    for (given, wanted) in examples() {
        let mut values =
            serde_json::Deserializer::from_str(&given).into_iter::<Value>().map(|value| value.expect(&given));
        let schema = values.next().expect("a schema");
        let tool = Tool::from_json_schema("t", "", &schema.to_string(), None).expect(&given);
        if let Some(arguments) = values.next() {
            let error = tool.validate_arguments(&arguments.to_string()).expect_err(&given);
            assert_eq!(error.message, format!("tool/t: {wanted}"), "{given}");
            checks += 1;
        } else {
            let remark = tool.remark().map(|remark| format!(" ; {remark}")).unwrap_or_default();
            assert_eq!(format!("{}{remark}", tool.signature_text()), wanted, "{given}");
            lines += 1;
        }
    }
    assert!(lines >= 9 && checks >= 6, "{lines} lines, {checks} checks");
}

/// Tools of one server, served by one function.
pub(crate) fn server() -> Tools {
    let list = r#"{"tools": [
        {"name": "issues/get", "description": "Gets an issue. It has a title.", "annotations": {"readOnlyHint": true, "idempotentHint": true},
         "inputSchema": {"type": "object", "properties": {"number": {"type": "integer"}, "x-trace": {"type": "string"}}, "required": ["number"],
                         "additionalProperties": false},
         "outputSchema": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}},
        {"name": "close", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": false}},
        {"name": "other", "inputSchema": {"type": "object"}}]}"#;
    let imported = Tools::from_mcp_list(list).expect("a list");
    assert!(imported.refused.is_empty());
    imported.tools.with_handler(|call| {
        let number = if call.name() == "issues/get" { call.get::<i64>("number")? } else { 0 };
        Ok(match number {
            0 => serde_json::json!(call.json()),
            7 => serde_json::json!({"titel": 7}),
            n => serde_json::json!({"title": format!("{} {n}", call.name()), "more": true}),
        })
    })
}

/// Programs, and what comes of them: the value, or what the error says.
pub(crate) const PROGRAMS: &[(&str, &str)] = &[
    ("(:title (tool/issues%2Fget {:number 3}))", "\"issues/get 3\""),
    ("(map #(:title (tool/issues%2Fget {:number %})) [1 2])", "[\"issues/get 1\" \"issues/get 2\"]"),
    ("(:title (tool/issues%2Fget {:number 3 :x-trace \"t\"}))", "\"issues/get 3\""),
    ("(tool/issues%2Fget {})", "!invalid_tool_args tool/issues%2Fget: number: the field is missing"),
    (
        "(tool/issues%2Fget {:number \"3\"})",
        "!invalid_tool_args tool/issues%2Fget: number: expected an integer, got the string \"3\"; write 3, without quotes",
    ),
    (
        "(tool/issues%2Fget {:numbr 3})",
        "!invalid_tool_args tool/issues%2Fget: unknown argument \"numbr\": did you mean number?; number: the field is missing",
    ),
    (
        "(tool/issues%2Fget {:number 7})",
        "!tool_error tool/issues%2Fget: its result does not fit its schema: result.title: the field is missing",
    ),
    ("(try (tool/issues%2Fget {:number nil}) (catch Exception e (:reason e)))", ":invalid_tool_args"),
    ("(try (tool/issues%2Fget {:number 7}) (catch Exception e (:reason e)))", ":tool_error"),
    ("(tool/close {:a-b {:c-d 1}})", "\"{\\\"a_b\\\":{\\\"c-d\\\":1}}\""),
];

pub(crate) fn came(outcome: &lisp_runtime::Outcome) -> String {
    match outcome.problem() {
        Some(problem) => format!("!{} {}", problem.reason().name(), problem.error.message),
        None => outcome.text().unwrap_or_default().to_owned(),
    }
}

#[test]
fn programs_call_tools_of_a_server() {
    let engine = Engine::builder().grant_all(server()).build().expect("an engine");
    for (program, wanted) in PROGRAMS {
        assert_eq!(came(&engine.eval(program, Input::new())), *wanted, "{program}");
    }
    let refused = engine.eval("(tool/issues%2Fget {:number nil})", Input::new());
    assert_eq!(refused.ledger[0].status, CallStatus::Error);
    assert_eq!(refused.usage.tool_calls, 0);
    let hint = refused.problem().and_then(|problem| problem.error.hint.clone()).expect("a hint");
    assert_eq!(hint, "tool/issues%2Fget: (number :int, x-trace? :string) -> {title :string}");
    let effects: Vec<Effect> = server().all().map(|tool| tool.effect()).collect();
    assert_eq!(effects, [Effect::Write, Effect::Read, Effect::Unknown]);
}

#[test]
fn tools_that_do_not_fit_on_the_card_are_found() {
    let all = server();
    let engine = Engine::builder().grant(all.search_tool()).grant_all(all.clone()).build().expect("an engine");
    let card = engine.prompt();
    let line = "tool/issues%2Fget (number :int, x-trace? :string) -> {title :string} ; Gets an issue.";
    assert!(card.lines().any(|shown| shown.starts_with(line)), "{card}");
    assert!(!card.contains("are shown"), "{card}");
    let small =
        Engine::builder().grant(all.search_tool()).grant_all(all).prompt_tools_bytes(160).build().expect("an engine");
    let card = small.prompt();
    assert!(card.ends_with("2 of 4 tools are shown; (tool/search {:words \"..\"}) finds the others.\n"), "{card}");
    let outcome = small.eval("(map :usage (tool/search {:words \"issue\"}))", Input::new());
    assert_eq!(outcome.value::<Vec<String>>().expect("usages"), [line.split(" ; ").next().expect("a line")]);
}

#[test]
fn descriptions_are_whole_where_they_fit() {
    let schema = r#"{"type": "object", "properties": {"amount": {"type": "integer", "description": "In cents."}},
        "required": ["amount"], "additionalProperties": false}"#;
    let about = "Pays, e.g. a bill. Fails when the bank is closed.";
    let lines = |max: usize| {
        let pay = Tool::from_json_schema("pay", about, schema, None).expect("a tool");
        let engine = Engine::builder().grant(pay).prompt_tools_bytes(max).build().expect("an engine");
        let prompt = engine.prompt();
        prompt.lines().skip_while(|line| !line.starts_with("tool/")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(1_000), [format!("tool/pay (amount :int) -> :any ; {about} ; amount: In cents")]);
    assert_eq!(
        lines(60),
        ["tool/pay (amount :int) -> :any ; Pays, e.g. a bill. ..", "(doc tool/NAME) prints what is cut here."]
    );
}

#[test]
fn schemas_that_cannot_be_used_say_why() {
    for (schema, wanted) in [
        ("{", "the schema of its arguments: the schema cannot be read: EOF while parsing an object at line 1 column 1"),
        (
            r#"{"$ref": "http://example.com/a"}"#,
            "the schema of its arguments: it refers to \"http://example.com/a\", which it does not contain; a schema must contain everything that it refers to",
        ),
        (
            r##"{"allOf": [{"$ref": "#"}]}"##,
            "the schema of its arguments: a reference in it leads back to itself without going into the value",
        ),
    ] {
        let error = Tool::from_json_schema("t", "", schema, None).expect_err(schema);
        assert_eq!(error.to_string(), wanted);
    }
    let wrong =
        Tool::from_json_schema("t", "", r#"{"properties": {"a": {"type": "text"}}}"#, None).expect_err("no schema");
    assert!(wrong.to_string().contains("/properties/a/type"), "{wrong}");
    let broken = r#"{"properties": {"a\nb": {"type": "string", "format": "x\ny"}}}"#;
    let tool = Tool::from_json_schema("t", "", broken, None).expect("a tool");
    assert_eq!(tool.signature_text(), r#"("a\nb"? :string<x y>, ...) -> :any"#);
    let name = Tool::from_json_schema("", "", "{}", None).expect_err("no name");
    assert!(name.to_string().contains("1 to 200 bytes"), "{name}");
}

#[test]
fn an_api_is_tools() {
    let api = r##"{"openapi": "3.0.3", "paths": {
        "/pets": {
          "parameters": [{"$ref": "#/components/parameters/Tenant"}],
          "post": {"operationId": "pets/create", "summary": "Creates a pet.", "requestBody": {"required": true, "content": {"application/json":
              {"schema": {"$ref": "#/components/schemas/NewPet"}}}}, "responses": {"201": {"description": "", "content": {"application/json": {"schema":
              {"$ref": "#/components/schemas/Pet"}}}}}},
          "get": {"parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 0, "exclusiveMinimum": true}},
              {"name": "limit", "in": "header", "schema": {"type": "string", "nullable": true}}], "responses": {"default": {"description": ""}}}},
        "/bad": {"get": {"operationId": "bad", "parameters": [{"name": "x", "in": "query", "schema": {"$ref": "other.json"}}]}}},
      "components": {"parameters": {"Tenant": {"name": "X-Tenant", "in": "header", "required": true, "schema": {"type": "string"}}},
        "schemas": {"NewPet": {"type": "object", "properties": {"name": {"type": "string"}, "parent": {"$ref": "#/components/schemas/Pet"}}, "required": ["name"]},
          "Pet": {"type": "object", "properties": {"id": {"type": "integer"}, "parent": {"$ref": "#/components/schemas/Pet"}}}, "Unused": {"type": "nonsense"}}}}"##;
    let imported = Tools::from_openapi(api).expect("an API");
    let lines: Vec<String> =
        imported.tools.all().map(|tool| format!("{} {}", tool.name(), tool.signature_text())).collect();
    assert_eq!(
        lines,
        [
            "get_pets (X-Tenant :string, header_limit :string?, limit? :int<above 0..>) -> :any",
            "pets%2Fcreate (X-Tenant :string, body {name :string, parent? @Pet={id? :int, parent? @Pet, ...}, ...}) -> @Pet={id? :int, parent? @Pet}",
        ]
    );
    assert_eq!(imported.refused.len(), 1);
    assert_eq!(imported.refused[0].0, "bad");
    let create = imported.tools.all().nth(1).expect("two tools");
    let operation = create.operation().expect("an operation");
    assert_eq!((operation.method.as_str(), operation.path.as_str()), ("POST", "/pets"));
    let body = operation.body.as_ref().expect("a body");
    assert_eq!((body.argument.as_str(), body.media.as_str()), ("body", "application/json"));
    assert_eq!((create.effect(), create.is_idempotent()), (Effect::Write, false));
    assert!(create.validate_arguments(r#"{"X-Tenant": "a", "body": {"name": "b", "parent": {"id": 1}}}"#).is_ok());
    let error = create
        .validate_arguments(r#"{"X-Tenant": "a", "body": {"name": "b", "parent": {"parent": {"id": "1"}}}}"#)
        .err();
    let error = error.expect("a mismatch");
    assert_eq!(error.reason, Reason::InvalidToolArgs);
    assert!(
        error.message.contains("body.parent.parent.id: expected an integer, got the string \"1\""),
        "{}",
        error.message
    );
}

/// `(doc tool/name)` prints the tool in full, in every way to run, and asks nobody.
#[test]
fn the_page_of_a_tool_is_printed() {
    let schema = r#"{"properties": {"q": {"type": "string", "description": "What to look for."}}}"#;
    let find = Tool::from_json_schema("find", "Finds things.\nSlowly.", schema, None).expect("a tool");
    let engine = Engine::builder()
        .grant(find.clone())
        .grant(Tool::external("secret").about("Hidden."))
        .policy(OnlyFind)
        .build()
        .expect("an engine");
    let mut own = Tools::new();
    own.add(Tool::external("mine").signature("() -> :int").about("Of the run.")).expect("a tool");
    let source =
        "[(doc tool/find) (doc tool/mine) (doc tool/fin) (doc tool/secret) (pmap (fn [_] (doc tool/mine)) [1])]";
    let find = find.describe().trim_end().to_owned();
    let wanted = [
        find.as_str(),
        "tool/mine () -> :int\nOf the run.",
        "there is no tool/fin; did you mean tool/find?",
        "there is no tool/secret; available: tool/find, tool/mine",
        "tool/mine () -> :int\nOf the run.",
    ];
    let recording = Recording::new();
    let outcome = engine.eval(source, Input::new().tools(own.clone()).record(&recording));
    assert_eq!(outcome.text(), Some("[nil nil nil nil [nil]]"), "{:?}", outcome.problem());
    assert_eq!(outcome.prints, wanted);
    // By hand it stops nowhere, and again from its record it prints what it printed.
    let program = engine.compile(source).expect("a program");
    let Progress::Done(outcome) = engine.start(&program, Input::new().tools(own.clone())) else { panic!("it stops") };
    assert_eq!(outcome.prints, wanted);
    let mut other = Tools::new();
    other.add(Tool::external("mine").signature("() -> :int").about("Of another run.")).expect("a tool");
    let again = engine.resume_with(&recording.record().expect("a record"), Input::new().tools(other));
    let Progress::Done(outcome) = again.expect("a run") else { panic!("it stops") };
    assert_eq!(outcome.prints, wanted);
    // Without any tool it says so; a local of the name, or a text, is as before.
    let outcome = Engine::default().eval("[(doc tool/x) (doc \"tool/x\") (let [x \"nowhere\"] (doc x))]", Input::new());
    assert_eq!(outcome.prints[0], "there is no tool/x; this run has no tools; use data/... only");
    assert_eq!(outcome.prints[1], "No documentation found for \"tool/x\".");
    assert_eq!(outcome.prints[2], "No documentation found for \"nowhere\".");
}

/// It hides a tool, and would deny each call.
struct OnlyFind;

impl ToolPolicy for OnlyFind {
    fn decide(&self, _: &AskedCall<'_>) -> PolicyDecision {
        PolicyDecision::Deny("nobody asks".to_owned())
    }

    fn shows(&self, tool: &Tool, _: Option<&str>) -> bool {
        tool.name() != "secret"
    }
}

#[test]
fn functions_of_the_program_have_documentation_and_source() {
    let engine = Engine::default();
    let twice = r#"(defn twice "Doubles." [n & more] (* 2 n))"#;
    let source = format!(
        r#"{twice} (def half "Halves." (fn [n] (/ n 2))) (defn bare [] 1) (def n 5) (defn filter [f] f)
        (doc twice) (source twice) (doc half) (doc bare) (doc n) (source n) (doc filter) (doc nowhere) (source nowhere)"#
    );
    let outcome = engine.eval(&source, Input::new());
    let wanted = [
        "(twice n & more)\n  Doubles.",
        twice,
        "(half n)\n  Halves.",
        "(bare)\n  No documentation string; source shows the definition.",
        "No documentation found for \"n\".",
        "No source available for \"n\".",
        "(filter f)\n  No documentation string; source shows the definition.",
        "No documentation found for \"nowhere\".",
        "No source available for \"nowhere\".",
    ];
    assert_eq!(outcome.prints, wanted, "{:?}", outcome.problem());

    let mut session = engine.session(Input::new());
    session.eval(twice);
    let shown = ["(twice n & more)\n  Doubles.", twice];
    assert_eq!(session.eval("(doc twice) (source twice)").prints, shown);
    let saved = session.save().expect("a saved session");
    let mut later = engine.load_session(&saved, Input::new()).expect("a session");
    assert_eq!(later.eval("(doc twice) (source twice)").prints, shown);
}
