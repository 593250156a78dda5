//! MCP servers whose tools are the service's: a process, which is this test once more, and one behind HTTP.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Input, Limits, Outcome, Reason};
use lisp_server::config::Config;
use lisp_server::tools::ServiceTools;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The tools of the test's servers, in two pages.
fn pages() -> [Value; 2] {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let mut add = tool("add");
    add["outputSchema"] = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
    add["annotations"] = json!({"readOnlyHint": true});
    let mut texts = tool("json_text");
    texts["outputSchema"] = json!({"type": "object"});
    let mut broken = tool("broken");
    broken["inputSchema"] = json!({"type": "object", "properties": {"a": {"type": 5}}});
    let without = json!({"name": "without", "inputSchema": null});
    [
        json!([tool("echo"), add, texts, without, 7, tool("fail"), broken]),
        json!([
            tool("odd"),
            tool("die"),
            tool("hang"),
            tool("env"),
            tool("image"),
            tool("big"),
            tool("none"),
            tool("null"),
            tool("raw"),
            tool("notes/list")
        ]),
    ]
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

/// An answer that cannot be read.
fn raw_answer(kind: &str, id: &Value) -> String {
    let of = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let content = |inner: &str| of(&format!(r#"{{"content":[],"structuredContent":{{"a":{inner}}}}}"#));
    match kind {
        "deep" => content(&format!("{}{}", "[".repeat(500), "]".repeat(500))),
        "wide" => content("1e400"),
        "NaN" => content("NaN"),
        "half" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#),
        "long" => content(&format!("\"{}\"", "x".repeat(17 << 20))),
        "last" => {
            format!(r#"{{"jsonrpc":"2.0","result":{{"content":[{{"a":"{}"}}]}},"id":{id}}}"#, "x".repeat(17 << 20))
        }
        other => panic!("{other}"),
    }
}

/// What a server answers; `None` to a notification, and to what it does not answer.
fn answer(kind: &str, request: &Value) -> Option<Value> {
    let id = request.get("id")?;
    let params = &request["params"];
    let result = match request["method"].as_str()? {
        "initialize" if kind == "modern" => {
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "what is that?"}}));
        }
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }),
        "server/discover" if kind == "modern" => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "ttlMs": 0, "cacheScope": "private",
        }),
        "tools/list" if kind == "endless" => json!({"tools": [], "nextCursor": "again"}),
        "tools/list" => match params["cursor"].as_str() {
            None => json!({"resultType": "complete", "tools": pages()[0], "nextCursor": "second"}),
            // Some servers end the list so.
            Some(_) if kind == "modern" => json!({"resultType": "complete", "tools": pages()[1], "nextCursor": ""}),
            Some(_) => json!({"resultType": "complete", "tools": pages()[1]}),
        },
        "tools/call" => {
            let arguments = &params["arguments"];
            match params["name"].as_str()? {
                "echo" => text(json!({"arguments": arguments, "meta": params["_meta"]}).to_string()),
                "add" => {
                    let sum = arguments["a"].as_i64().unwrap_or(0) + arguments["b"].as_i64().unwrap_or(0);
                    let sum = if sum == 13 { json!("bad luck") } else { json!(sum) };
                    json!({"content": [], "structuredContent": {"sum": sum}})
                }
                "json_text" => text("{\"n\": 1}"),
                "fail" => json!({"content": [{"type": "text", "text": "no such file"}], "isError": true}),
                // When it is asked for so many times.
                "die" => {
                    static TIMES: AtomicUsize = AtomicUsize::new(1);
                    if TIMES.fetch_add(1, SeqCst) < arguments["of"].as_u64().map_or(1, |of| of as usize) {
                        return None;
                    }
                    eprintln!("it was asked {arguments}");
                    std::process::exit(3)
                }
                "raw" => return Some(Value::String(raw_answer(arguments["kind"].as_str()?, id))),
                "hang" => return None,
                "env" => {
                    let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                    text(names.join(","))
                }
                "image" => json!({"content": [
                    {"type": "text", "text": "a cat"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                ]}),
                "odd" => json!({"content": [
                    {"type": "text", "text": "before"}, {"type": "hologram", "data": 1}, {"type": "text", "text": "after", "annotations": 5},
                ]}),
                "big" => text("x".repeat(60_000)),
                "none" => json!({"content": []}),
                // As some write it that have no structured content.
                "null" => json!({"content": [{"type": "text", "text": "only text"}], "structuredContent": null}),
                other => text(format!("{other} was called")),
            }
        }
        _ => return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}})),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Notes what happens to the process, for the test to read.
fn note(line: &str) {
    if let Ok(path) = std::env::var("PTC_UPSTREAM_NOTES") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

/// The process of the server. In a run of the tests it does nothing.
#[test]
fn upstream_process() {
    let Ok(kind) = std::env::var("PTC_UPSTREAM") else { return };
    // Behind what the harness of tests prints.
    println!();
    note("started");
    if kind == "dies" {
        eprintln!("no license for {}", std::env::var("TOKEN").unwrap());
        std::process::exit(3);
    }
    for line in std::io::stdin().lock().lines() {
        if kind == "leaves" {
            eprintln!("something came");
            std::process::exit(4);
        }
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if request["method"] == "notifications/cancelled" {
            note("cancelled");
        }
        if kind == "silent" {
            continue;
        }
        match answer(&kind, &request) {
            Some(Value::String(raw)) => println!("{raw}"),
            Some(answer) => println!("{answer}"),
            None => {}
        }
    }
    note("ended");
    std::process::exit(0);
}

/// A file for notes.
fn notes(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ptc-upstream-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// Waits until the notes have a line so many times.
async fn noted(path: &Path, line: &str, times: usize) {
    for _ in 0..500 {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.lines().filter(|known| *known == line).count() >= times {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no {times} times {line}: {:?}", std::fs::read_to_string(path));
}

fn config(kind: &str, notes: &Path, more: &str) -> Config {
    let program = std::env::current_exe().unwrap();
    let text = format!(
        "[mcp.up]\ncommand = [{program:?}, \"upstream_process\", \"--exact\", \"--nocapture\"]\n\
         env = {{ PTC_UPSTREAM = \"{kind}\", PTC_UPSTREAM_NOTES = {notes:?}, TOKEN = \"${{TOKEN}}\" }}\n{more}"
    );
    Config::parse_with(&text, "test.toml", &|name| (name == "TOKEN").then(|| "s3cret-value".to_owned())).unwrap()
}

async fn run(service: &ServiceTools, program: &str) -> Outcome {
    let limits = Limits::default().with_timeout_ms(20_000);
    let engine = Engine::builder()
        .limits(limits)
        .grant_all(service.tools.clone())
        .policy(service.policy.clone())
        .build()
        .unwrap();
    let input = Input::new().traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    engine.run_async(&engine.compile(program).unwrap(), input).await
}

async fn value(service: &ServiceTools, program: &str) -> Value {
    let outcome = run(service, program).await;
    outcome.value().unwrap_or_else(|error| panic!("{program}: {error}: {:?}", outcome.problem()))
}

async fn failure(service: &ServiceTools, program: &str) -> (Reason, String) {
    let outcome = run(service, program).await;
    let problem = outcome.problem().unwrap_or_else(|| panic!("{program}: {:?}", outcome.text()));
    (problem.reason(), problem.error.message.clone())
}

#[tokio::test]
async fn tools_of_a_process_are_called() {
    let notes = notes("called");
    let more =
        "max_response_bytes = 50000\npolicies = { \"notes/list\" = \"deny\", fail = \"allow\", broken = \"deny\" }";
    let service = ServiceTools::connect(&config("usual", &notes, more)).await.unwrap();
    let names: Vec<&str> = service.tools.all().map(|tool| tool.given_name()).collect();
    assert_eq!(names.len(), 14, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("up__")));
    let refused: Vec<_> = service.refused.iter().map(|refused| (refused.name.as_str(), refused.why.as_str())).collect();
    assert_eq!(refused[0], ("mcp.up: without", "inputSchema: it is null, and must be a JSON Schema"));
    assert_eq!((refused[1].0, refused[2].0, refused.len()), ("mcp.up: (entry 4 of the list)", "mcp.up: broken", 3));
    let effect = |name: &str| service.tools.all().find(|tool| tool.name() == name).unwrap().effect();
    assert_eq!((effect("up__add"), effect("up__echo")), (Effect::Read, Effect::Unknown));

    assert_eq!(value(&service, "(tool/up__add {:a 1 :b 2})").await, json!({"sum": 3}));
    assert_eq!(value(&service, "(:n (tool/up__json_text {}))").await, 1);
    assert_eq!(value(&service, "(tool/up__none {})").await, Value::Null);
    assert_eq!(value(&service, "(tool/up__null {})").await, "only text");
    assert_eq!(value(&service, "(tool/up__image {})").await, "a cat\n[an image, image/png, 4 bytes of base64]");
    let odd = value(&service, "(tool/up__odd {})").await;
    assert_eq!(odd, "before\n[left out: content of the unknown type hologram]\nafter");
    let echo = value(&service, "(tool/up__echo {:s \"ü\" :list [1 nil]})").await;
    let echo: Value = serde_json::from_str(echo.as_str().unwrap()).unwrap();
    assert_eq!(echo["arguments"], json!({"s": "ü", "list": [1, null]}));
    assert_eq!(echo["meta"]["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let sums = value(&service, "(map :sum (pmap #(tool/up__add {:a % :b 100}) (range 40)))").await;
    assert_eq!(sums, json!((100..140).collect::<Vec<i64>>()));

    let env = value(&service, "(tool/up__env {})").await;
    let mut env: Vec<&str> = env.as_str().unwrap().split(',').filter(|name| !name.starts_with("__")).collect();
    env.sort_unstable();
    assert_eq!(env, ["PATH", "PTC_UPSTREAM", "PTC_UPSTREAM_NOTES", "TOKEN"]);
    for (program, reason, wanted) in [
        ("(tool/up__fail {})", Reason::ToolError, "no such file"),
        ("(tool/up__add {:a 6 :b 7})", Reason::ToolError, "expected an integer, got the string \"bad luck\""),
        ("(tool/up__big {})", Reason::ToolError, "more than 50000 bytes (max_response_bytes of mcp.up)"),
        ("(tool/up__notes%2Flist {})", Reason::ToolDenied, "allows no call"),
    ] {
        let (got, message) = failure(&service, program).await;
        assert_eq!(got, reason, "{message}");
        assert!(message.contains(wanted), "{message}");
    }

    // It ends when the service does, and starts again when it is called again.
    service.close().await;
    noted(&notes, "ended", 1).await;
    assert_eq!(value(&service, "(tool/up__add {:a 1 :b 2})").await, json!({"sum": 3}));
    noted(&notes, "started", 2).await;
    std::fs::remove_file(&notes).unwrap();
}

#[tokio::test]
async fn a_process_that_dies_is_started_again() {
    let notes = notes("again");
    let service = ServiceTools::connect(&config("usual", &notes, "")).await.unwrap();
    let begun = Instant::now();
    for round in 1..=2 {
        let (reason, message) = failure(&service, "(tool/up__die {})").await;
        assert_eq!(reason, Reason::ToolError);
        assert!(message.contains("ended during the call") && message.contains("exit status: 3"), "{message}");
        assert_eq!(value(&service, "(tool/up__add {:a 1 :b 2})").await, json!({"sum": 3}));
        noted(&notes, "started", round + 1).await;
    }
    // Started three times, and never twice within a second.
    assert!(begun.elapsed() > Duration::from_millis(1_900), "{:?}", begun.elapsed());
    std::fs::remove_file(&notes).unwrap();
}

/// Calls that are under way when the server dies all fail, and say how it ended: not what it wrote, which may be of the calls of
/// others.
#[tokio::test]
async fn what_a_server_said_last_is_not_for_programs() {
    let notes = notes("said");
    let service = ServiceTools::connect(&config("usual", &notes, "")).await.unwrap();
    for width in [1, 2, 4] {
        let program = format!(
            "(pmap (fn [_] (try (tool/up__die {{:card 4111 :of {width}}}) (catch Exception e (:message e)))) (range {width}))"
        );
        let messages = value(&service, &program).await;
        for message in messages.as_array().unwrap() {
            let message = message.as_str().unwrap();
            assert!(message.contains("the server ended during the call"), "{message}");
            assert!(!message.contains("asked") && !message.contains("4111"), "{message}");
        }
        assert!(messages.to_string().contains("exit status: 3"), "{messages}");
    }
    std::fs::remove_file(&notes).unwrap();
}

/// An answer that cannot be read is an error at once, and takes no other call with it.
#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error() {
    let notes = notes("unread");
    let more = "timeout_ms = 3600000\nmax_response_bytes = 50000";
    let service = ServiceTools::connect(&config("usual", &notes, more)).await.unwrap();
    for (kind, wanted) in [
        ("deep", "cannot be read"),
        ("wide", "cannot be read"),
        ("NaN", "cannot be read"),
        ("half", "cannot be read"),
        ("long", "more than 16777216 bytes"),
        ("last", "more than 16777216 bytes"),
    ] {
        let program = format!("(tool/up__raw {{:kind \"{kind}\"}})");
        let (reason, message) = failure(&service, &program).await;
        assert!(reason == Reason::ToolError && message.contains(wanted), "{kind}: {reason:?}: {message}");
        assert_eq!(value(&service, "(tool/up__add {:a 1 :b 2})").await, json!({"sum": 3}), "{kind}");
    }
    noted(&notes, "started", 1).await;
    std::fs::remove_file(&notes).unwrap();
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled() {
    let notes = notes("cancelled");
    let more = "timeout_ms = 300\nconcurrency = 1";
    let service = ServiceTools::connect(&config("usual", &notes, more)).await.unwrap();
    let (_, message) = failure(&service, "(tool/up__hang {})").await;
    assert!(message.contains("longer than 300 ms (timeout_ms of mcp.up)"), "{message}");
    noted(&notes, "cancelled", 1).await;
    let dropped = tokio::time::timeout(Duration::from_millis(100), run(&service, "(tool/up__hang {})")).await;
    assert!(dropped.is_err());
    noted(&notes, "cancelled", 2).await;
    assert_eq!(value(&service, "(tool/up__add {:a 1 :b 2})").await, json!({"sum": 3}));
    std::fs::remove_file(&notes).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_ends_when_its_tools_are_dropped() {
    let notes = notes("dropped");
    let service = ServiceTools::connect(&config("usual", &notes, "")).await.unwrap();
    let pid = children().pop().expect("a process");
    drop(service);
    for _ in 0..500 {
        if !children().contains(&pid) {
            std::fs::remove_file(&notes).unwrap();
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the process {pid} is still there");
}

/// The children of this thread that are no zombies.
#[cfg(target_os = "linux")]
fn children() -> Vec<u32> {
    let path = format!("/proc/self/task/{}/children", thread_number());
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| is_alive(*pid)).collect()
}

#[cfg(target_os = "linux")]
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The number of this thread, as the kernel has it.
#[cfg(target_os = "linux")]
fn thread_number() -> String {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_string_lossy().into_owned()
}

#[tokio::test]
async fn a_server_of_the_newest_revision_is_found_out() {
    let notes = notes("modern");
    let service = ServiceTools::connect(&config("modern", &notes, "")).await.unwrap();
    assert_eq!(value(&service, "(tool/up__add {:a 1 :b 2})").await, json!({"sum": 3}));
    std::fs::remove_file(&notes).unwrap();
}

#[tokio::test]
async fn a_server_that_fails_at_the_start_is_named() {
    for (kind, more, wanted) in [
        // It is said at once, however long it may take to start.
        (
            "dies",
            "start_timeout_ms = 600000",
            "ended (exit status: 3); it wrote on standard error:\nno license for [secret]",
        ),
        ("leaves", "start_timeout_ms = 600000", "ended (exit status: 4); it wrote on standard error:\nsomething came"),
        ("silent", "start_timeout_ms = 300", "within 300 ms (start_timeout_ms)"),
        ("endless", "", "more than 1000 pages"),
        ("usual", "policies = { read = \"deny\" }", "no tool read"),
    ] {
        let notes = notes(&format!("start-{kind}"));
        let error = ServiceTools::connect(&config(kind, &notes, more)).await.unwrap_err();
        assert!(error.field.starts_with("mcp.up") && error.message.contains(wanted), "{error}");
        assert!(!error.to_string().contains("s3cret"));
        let _ = std::fs::remove_file(&notes);
    }
}

#[derive(Clone, Default)]
struct Seen {
    calls: Arc<AtomicUsize>,
    tool_calls: Arc<AtomicUsize>,
    authorization: Arc<Mutex<Option<String>>>,
}

async fn over_http(
    State(seen): State<Seen>,
    method: Method,
    headers: HeaderMap,
    uri: axum::http::Uri,
    body: Bytes,
) -> Response {
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    seen.calls.fetch_add(1, SeqCst);
    *seen.authorization.lock().unwrap() = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    match uri.path() {
        "/moved" => return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/mcp")]).into_response(),
        "/denied" => return (StatusCode::FORBIDDEN, "you sent s3cret-value").into_response(),
        _ => {}
    }
    let request: Value = serde_json::from_slice(&body).unwrap();
    if uri.path() == "/forgets" {
        // It knows a session until a tool is called in it.
        if request["method"] == "tools/call" {
            seen.tool_calls.fetch_add(1, SeqCst);
            return (StatusCode::NOT_FOUND, "no such session").into_response();
        }
        let answered = answer("usual", &request).map(axum::Json);
        return (
            [("mcp-session-id", "one")],
            answered.map_or_else(|| StatusCode::ACCEPTED.into_response(), IntoResponse::into_response),
        )
            .into_response();
    }
    match answer("usual", &request) {
        Some(Value::String(raw)) => ([(header::CONTENT_TYPE, "application/json")], raw).into_response(),
        Some(answer) => axum::Json(answer).into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

#[tokio::test]
async fn a_server_behind_http_is_called() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Seen::default();
    let routes = Router::new().fallback(any(over_http)).with_state(seen.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    let connect = async |path: &str, allowed: &str| {
        let text = format!(
            "[mcp.web]\nurl = \"http://localhost:{port}{path}\"\nheaders = {{ Authorization = \"Bearer ${{TOKEN}}\" }}\n\
             [network]\nallow_private = [{allowed}]"
        );
        let config = Config::parse_with(&text, "test.toml", &|_| Some("s3cret-value".to_owned())).unwrap();
        ServiceTools::connect(&config).await
    };
    let error = connect("/mcp", "").await.unwrap_err().to_string();
    assert!(error.contains("mcp.web: the MCP server cannot be used"), "{error}");
    assert_eq!(seen.calls.load(SeqCst), 0);

    let allowed = format!("\"localhost:{port}\"");
    let service = connect("/mcp", &allowed).await.unwrap();
    assert_eq!(value(&service, "(tool/web__add {:a 20 :b 22})").await, json!({"sum": 42}));
    assert_eq!(seen.authorization.lock().unwrap().as_deref(), Some("Bearer s3cret-value"));
    let odd = value(&service, "(tool/web__odd {})").await;
    assert_eq!(odd, "before\n[left out: content of the unknown type hologram]\nafter");
    assert_eq!(service.refused.len(), 3);
    let (_, message) = failure(&service, "(tool/web__fail {})").await;
    assert!(message.contains("no such file"), "{message}");

    for kind in ["deep", "wide", "NaN", "half"] {
        let (_, message) = failure(&service, &format!("(tool/web__raw {{:kind \"{kind}\"}})")).await;
        assert!(message.contains("cannot be read"), "{kind}: {message}");
    }
    // A call is sent once, whatever the server says of the session; the next one has another session.
    let service = connect("/forgets", &allowed).await.unwrap();
    for calls in 1..=2 {
        let (_, message) = failure(&service, "(tool/web__add {:a 1 :b 2})").await;
        assert!(message.contains("HTTP 404") && message.contains("may have been made or not"), "{message}");
        assert_eq!(seen.tool_calls.load(SeqCst), calls);
    }

    for path in ["/moved", "/denied"] {
        let error = connect(path, &allowed).await.unwrap_err();
        assert!(error.message.contains("cannot be used") && !format!("{error:?}").contains("s3cret"), "{error}");
    }
}
