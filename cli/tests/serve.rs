//! `ptcl serve` over real sockets: what it answers to whom, and what survives its death.

#![cfg(target_os = "linux")]

#[path = "serve/checks.rs"]
mod checks;
#[path = "serve/lasting.rs"]
mod lasting;
mod service;

use serde_json::{Value, json};
use service::{Dir, Server, ToolServer, finished};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_run_is_answered_with_the_envelope() {
    let server = Server::start(&[]);
    // As curl sends it, whatever it says of the type.
    let raw = "POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n\
               Content-Length: 21\r\nConnection: close\r\n\r\n{\"program\":\"(+ 1 2)\"}";
    let (status, _, body) = service::parse(&server.raw(raw.as_bytes()));
    assert_eq!((status, &body["verdict"], &body["value"]), (200, &json!("ok"), &json!(3)));
    assert_eq!(body["schema"], "ptc-lisp/1");
    assert!(body["usage"]["cpu_us"].is_number(), "it ran in a process of its own: {body}");
    // A program that fails is an answer, too.
    for (program, verdict, reason) in [
        ("(", "error", "parse_error"),
        ("(/ 1 0)", "error", "arithmetic_error"),
        ("(loop [] (recur))", "error", "loop_limit_exceeded"),
        ("(doall (map (fn [n] (reduce + (range 100000))) (range 100000)))", "timeout", "timeout"),
        ("(reduce (fn [a i] (conj a (str a i))) [] (range 100))", "out_of_memory", "memory_exceeded"),
    ] {
        let time = if reason == "timeout" { 1_000 } else { 60_000 };
        let request = json!({ "program": program, "id": [1], "limits": { "timeout_ms": time } });
        let (status, body) = server.post("/v1/run", &request);
        let found = &body["error"]["reason"];
        assert_eq!((status, &body["verdict"], found), (200, &json!(verdict), &json!(reason)), "{program}: {body}");
        assert_eq!(body["id"], json!([1]));
    }
    let full = json!({
        "program": "(def total (+ data/a b *1)) (tool/add {:n total})", "data": {"a": 1}, "memory": {"b": 10}, "history": [100],
        "setup": ["(def unused 1)"], "tools": {"add": {"returns": {"ok": true}, "signature": "(n :int) -> {ok :bool}"}},
        "signature": "() -> {ok :bool}", "limits": {"fuel": 100_000}, "json_keys": "keywords",
    });
    let (status, body) = server.post("/v1/run", &full);
    assert_eq!((status, &body["value"], &body["memory"]["total"]), (200, &json!({"ok": true}), &json!(111)), "{body}");
    assert_eq!(body["limits"]["fuel"], 100_000);
    assert_eq!(body["ledger"][0]["name"], "add");
}

#[test]
fn every_bad_request_has_its_status_and_says_what_to_do() {
    let dir = Dir::new("bad");
    let config = dir.write(
        "service.toml",
        "[service]\nmax_body_bytes = 20000\nheader_seconds = 1\nbody_seconds = 1\nmax_sessions = 1\n",
    );
    let server = Server::start(&["--config", &config]);
    let post = |path: &str, body: &str| server.send("POST", path, &[], body.as_bytes());
    let long = format!("{{\"program\": \"{}\"}}", " ".repeat(20_000));
    let deep = format!("{{\"data\": {{\"a\": {}1{}}}}}", "[".repeat(600), "]".repeat(600));
    let rows: &[(&str, &str, &str, u16, &str)] = &[
        ("/v1/run", "", "", 400, "not JSON"),
        ("/v1/run", "{", "", 400, "not JSON"),
        ("/v1/run", "{\"program\": 1}", "program", 400, "string"),
        ("/v1/run", "{}", "", 400, "`program`"),
        ("/v1/run", "[]", "", 400, "object"),
        ("/v1/run", "{\"program\": \"1\"} 2", "", 400, "not JSON"),
        ("/v1/run", "{\"program\": \"1\", \"progam\": 2}", "progam", 400, "`progam`"),
        ("/v1/run", "{\"program\": \"1\", \"limits\": {\"fuel\": -1}}", "limits.fuel", 400, "-1"),
        ("/v1/run", r#"{"program": "1", "tools": {"a": {}}}"#, "tools.a", 400, "add \"client\": true"),
        (
            "/v1/runs",
            r#"{"program": "1", "tools": {"a": {"signature": "() -> :int"}}}"#,
            "tools.a",
            400,
            "what answers",
        ),
        (
            "/v1/run",
            "{\"program\": \"1\", \"limits\": {\"timeout_ms\": \"5s\"}}",
            "limits.timeout_ms",
            400,
            "a whole number, 0 or more",
        ),
        ("/v1/run", "{\"program\": \"1\", \"limits\": {\"fule\": 1}}", "limits.fule", 400, "`fule`"),
        ("/v1/run", "{\"program\": \"1\", \"tools\": {\"t\": {\"x\": 1}}}", "tools.t.x", 400, "`x`"),
        ("/v1/runs", "{\"program\": 1}", "program", 400, "string"),
        ("/v1/run", &long, "", 413, "max_body_bytes"),
        ("/v1/nope", "{}", "", 404, "/openapi.json"),
        ("/v1/runs/x/calls/1", "{\"result\": 1}", "", 404, "no run x"),
        ("/v1/sessions/x/turns", "{\"program\": \"1\"}", "", 404, "no session x"),
        ("/v1/sessions", "{\"program\": \"1\"}", "program", 400, "`program`"),
        // Values without names are taken for nothing.
        ("/v1/run", "{\"program\": \"1\", \"limits\": [5]}", "limits", 400, "an object of limits"),
        ("/v1/sessions", "[]", "", 400, "object"),
        ("/v1/sessions/x/turns", "[1, \"1\"]", "", 400, "object"),
        ("/v1/runs/x/calls/1", "[42]", "", 400, "object"),
        // What is asked for in a query that a path does not have.
        ("/v1/runs?stream", "{\"program\": \"1\"}", "query", 400, "`stream`"),
        ("/v1/runs?limit=1", "{\"program\": \"1\"}", "query", 400, "`limit`"),
        ("/v1/run?streams", "{\"program\": \"1\"}", "streams", 400, "did you mean `stream`?"),
        ("/v1/run?stream=maybe", "{\"program\": \"1\"}", "stream", 400, "\"maybe\" is not `true`, `1`, `false` or `0`"),
        ("/v1/sessions?stream=1", "{}", "query", 400, "`stream`"),
        ("/v1/sessions/x/turns?stream", "{\"program\": \"1\"}", "query", 400, "`stream`"),
        ("/v1/runs/x/calls/1?result=1", "{}", "result", 400, "`result`"),
        // What no turn could use.
        ("/v1/sessions", "{\"data\": []}", "", 400, "an object"),
        ("/v1/sessions", "{\"setup\": [\"1\", \"(\"]}", "setup[1]", 400, "unclosed"),
        ("/v1/sessions", &deep, "", 400, "deep"),
        ("/healthz", "", "", 405, "other methods"),
    ];
    for (path, body, field, status, why) in rows {
        let (got, _, answer) = post(path, body);
        assert_eq!(got, *status, "{path} {body}: {answer}");
        assert_eq!(answer["status"], *status, "{path} {body}: {answer}");
        assert_eq!(answer["field"].as_str().unwrap_or_default(), *field, "{path} {body}: {answer}");
        assert!(answer["detail"].as_str().unwrap_or_default().contains(why), "{path} {body}: {answer}");
    }
    let (status, headers, _) = server.send("POST", "/v1/run", &[("Content-Encoding", "gzip")], b"\x1f\x8b");
    assert_eq!((status, headers["content-type"].as_str()), (415, "application/problem+json"));
    assert_eq!(server.send("POST", "/v1/run", &[], b"{\"program\": \"\xff\"}").0, 400);
    for path in ["/v1/runs?limit=x", "/v1/runs?status=gone", "/v1/runs?x=1", "/v1/runs/%ff"] {
        let (status, headers, answer) = server.send("GET", path, &[], b"");
        assert_eq!((status, headers["content-type"].as_str()), (400, "application/problem+json"), "{path}: {answer}");
        assert!(!answer["detail"].as_str().unwrap().is_empty(), "{path}: {answer}");
    }
    for (name, value) in [("Authorization", "Bearer x"), ("Idempotency-Key", "k")] {
        let (status, _, answer) =
            server.send("POST", "/v1/run", &[(name, value), (name, "y")], b"{\"program\": \"1\"}");
        assert_eq!(
            (status, answer["detail"].as_str()),
            (400, Some(&*format!("there are two {name} headers; send one")))
        );
    }
    // Pages of others.
    let asked = |host: &str, origin: &str| {
        let request = format!("GET /v1/prompt HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\n\r\n");
        service::status(&server.raw(request.as_bytes()))
    };
    assert_eq!(asked("localhost:1", ""), 200);
    assert_eq!(asked("evil.example", ""), 403);
    assert_eq!(asked("localhost:1", "Origin: http://localhost:1\r\n"), 200);
    assert_eq!(asked("localhost:1", "Origin: http://localhost:2\r\n"), 403);
    assert_eq!(asked("localhost:1", "Origin: null\r\n"), 403);
    // One session, and no second.
    assert_eq!(post("/v1/sessions", "").0, 201);
    let (status, _, answer) = post("/v1/sessions", "{}");
    assert!(status == 422 && answer["detail"].as_str().unwrap().contains("max_sessions"), "{answer}");
}

#[test]
fn what_is_no_http_slow_or_cut_harms_nobody() {
    let dir = Dir::new("slow");
    let config = dir.write("service.toml", "[service]\nheader_seconds = 1\nbody_seconds = 1\n");
    let server = Server::start(&["--config", &config]);
    let status = |request: &[u8]| service::status(&server.raw(request));
    assert_eq!(status(b"nonsense\r\n\r\n"), 400);
    assert_eq!(status(b"GET / HTTP/9.9\r\n\r\n"), 400);
    assert_eq!(status(format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(70_000)).as_bytes()) / 100, 4);
    let many: String = (0..300).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert_eq!(status(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").as_bytes()), 431);
    let smuggled =
        b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(status(smuggled) / 100, 4);
    assert_eq!(
        status(b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        400
    );
    assert_eq!(status(b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n"), 413);
    // A head that does not end, a body that does not come: the connection ends.
    for (request, expected) in [
        (&b"GET / HTTP/1.1\r\nHost: local"[..], 0),
        (b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\n{\"prog", 408),
    ] {
        let begun = Instant::now();
        assert_eq!(status(request), expected);
        assert!(begun.elapsed() < 100 * SECOND, "{:?}", begun.elapsed());
    }
    // Many in one packet are answered one after the other.
    let one = b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n{\"program\":\"1\"}";
    let last = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answers = server.raw(&[one.repeat(20).as_slice(), last].concat());
    assert_eq!(String::from_utf8_lossy(&answers).matches("HTTP/1.1 200").count(), 21);
    assert_eq!(server.post("/v1/run", &json!({ "program": "7" })).1["value"], 7);
}

#[test]
fn events_come_while_the_run_goes_on() {
    let server = Server::start(&[]);
    let request = json!({
        "program": "(println :a) (tool/wait {}) (println :b) :done",
        "tools": {"wait": {"returns": 1, "delay_ms": 3000}},
    });
    let begun = Instant::now();
    let mut events = Vec::new();
    server.stream("/v1/run?stream", &request, |kind, data| {
        events.push((kind.to_owned(), data.clone(), begun.elapsed()));
        true
    });
    let kinds: Vec<&str> = events.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(kinds, ["started", "print", "call", "call", "print", "answer"], "{events:?}");
    assert!(events[1].2 + Duration::from_millis(100) < events[5].2, "the first line came before the end: {events:?}");
    assert_eq!(events[0].1["run_id"], events[5].1["run_id"]);
    assert_eq!(events[5].1["value"], "done");

    // Who leaves cancels the run.
    let endless =
        json!({ "program": "(println :go) (loop [] (recur))", "limits": {"timeout_ms": 60_000, "loop_iterations": 0} });
    let config = Dir::new("leave");
    let config = config.write("service.toml", "[ceiling]\ntimeout_ms = 60000\nloop_iterations = 0\n");
    let server = Server::start(&["--config", &config]);
    server.stream("/v1/run?stream", &endless, |kind, _| kind != "print");
    server.until(3 * SECOND, "the run to end", || {
        server.text("/metrics").contains("ptc_runs_total{verdict=\"cancelled\"")
    });
}

/// A program that asks its client thrice at once, and prints.
fn asks() -> Value {
    json!({
        "program": "(println :begin) (let [all (pmap (fn [n] (tool/ask {:n n})) (range 3))] (println all) (reduce + all))",
        "tools": {"ask": {"client": true, "signature": "(n :int) -> :int"}},
    })
}

#[test]
fn its_client_answers_calls_in_any_order() {
    for isolation in ["process", "in-process"] {
        let server = Server::start(&["--isolation", isolation]);
        let (status, state) = server.post("/v1/runs", &asks());
        assert_eq!(status, 202, "{state}");
        let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
        let waiting = |calls: usize| {
            server.state_when(&run, |state| state["calls"].as_array().is_some_and(|now| now.len() == calls))
        };
        let state = waiting(3);
        assert_eq!(state["status"], "waiting");
        // It stops meanwhile, and gives up what it holds.
        server.until(3 * SECOND, "the run to stop", || server.text("/metrics").contains("ptc_runs_suspended_total 1"));
        // It is neither cancelled, nor are its calls lost.
        let figures = server.text("/metrics");
        assert!(figures.contains("ptc_runs_total{verdict=\"stopped\",reason=\"\"} 1"), "{figures}");
        assert!(!figures.contains("cancelled") && !figures.contains("status=\"unknown\""), "{figures}");
        let call = |n: u64| {
            let calls = state["calls"].as_array().unwrap();
            let call = calls.iter().find(|call| call["arguments"]["n"] == n).unwrap();
            assert_eq!((&call["name"], call.get("question")), (&json!("ask"), None));
            format!("{run}/calls/{}", call["call"].as_str().unwrap())
        };
        let say = |n: u64, reply: &Value| server.post(&call(n), reply);
        assert_eq!(say(1, &json!({})).0, 400);
        assert_eq!(say(1, &json!({ "approve": true })).0, 400);
        assert_eq!(say(1, &json!({ "result": 1, "error": {"message": "x"} })).0, 400);
        assert_eq!(say(2, &json!({ "result": 20 })).0, 200);
        assert_eq!(say(2, &json!({ "result": 21 })).0, 409);
        waiting(2);
        assert_eq!(say(0, &json!({ "result": 1 })).0, 200);
        // A slash may be escaped.
        let escaped =
            call(1).rsplit_once(":").map(|(head, tail)| format!("{head}:{}", tail.replace('/', "%2F"))).unwrap();
        assert_eq!(server.post(&escaped, &json!({ "result": 300 })).0, 200);
        let state = finished(&server, &run);
        assert_eq!(state["answer"]["value"], 321, "{state}");
        assert_eq!(state["answer"]["prints"], json!([":begin", "[1 300 20]"]));
        assert_eq!(say(1, &json!({ "result": 1 })).0, 409);
        // A client that comes late gets all events from the store.
        server.until(100 * SECOND, "the events to go", || server.figure("ptc_event_logs") == 0);
        let mut kinds = Vec::new();
        server.get_stream(&format!("{run}/events"), |kind, _| {
            kinds.push(kind.to_owned());
            true
        });
        kinds.retain(|kind| kind != "call");
        assert_eq!(kinds, ["started", "print", "waiting", "waiting", "waiting", "print", "answer"]);

        // An error of the client is the program's; null is a result.
        let caught = json!({
            "program": "[(try (tool/ask {:n 1}) (catch Exception e (str (:code e) (ex-message e)))) (tool/ask {:n 2})]",
            "tools": {"ask": {"client": true}},
        });
        let (_, state) = server.post("/v1/runs", &caught);
        let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
        let state = server.state_when(&run, |state| state["calls"][0].is_object());
        let path = |state: &Value| format!("{run}/calls/{}", state["calls"][0]["call"].as_str().unwrap());
        assert_eq!(server.post(&path(&state), &json!({ "error": {"message": "no such n", "code": "GONE"} })).0, 200);
        let state = server.state_when(&run, |state| state["calls"][0]["arguments"]["n"] == 2);
        assert_eq!(server.post(&path(&state), &json!({ "result": null })).0, 200);
        let value = finished(&server, &run)["answer"]["value"].clone();
        let said = value[0].as_str().unwrap();
        assert!(said.starts_with("GONE") && said.contains("no such n") && value[1].is_null(), "{value}");

        // Whoever waits for the answer is told that it waits.
        let (status, state) = server.post("/v1/run", &asks());
        assert_eq!((status, &state["status"]), (202, &json!("waiting")), "{state}");
        let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
        assert_eq!(server.send("DELETE", &run, &[], b"").0, 200);
        assert_eq!(finished(&server, &run)["answer"]["verdict"], "cancelled");
        assert_eq!(server.send("DELETE", &run, &[], b"").0, 200);
    }
}

#[test]
fn a_key_names_one_run() {
    let server = Server::start(&[]);
    let key = [("Idempotency-Key", "order-7")];
    let send = |path: &str, program: &str| {
        server.send("POST", path, &key, json!({ "program": program }).to_string().as_bytes())
    };
    let (status, _, first) = send("/v1/run", "(+ 1 2)");
    let (again, _, second) = send("/v1/run", "(+ 1 2)");
    assert_eq!((status, again), (200, 200));
    assert_eq!(first, second, "the same answer, run id and times and all");
    let (status, _, run) = send("/v1/runs", "(+ 1 2)");
    assert_eq!((status, &run["run_id"], &run["status"]), (202, &first["run_id"], &json!("done")));
    assert_eq!(send("/v1/run", "(+ 1 3)").0, 422);
    assert_eq!(server.send("POST", "/v1/run", &[("Idempotency-Key", "")], b"{\"program\":\"1\"}").0, 400);
}

#[test]
fn somebody_approves_what_the_configuration_asks_about() {
    let tool = ToolServer::start();
    let dir = Dir::new("approve");
    let config = dir.write("service.toml", &tool.config("ask"));
    let store = dir.path("ptc.db");
    let options = ["--store", &store, "--config", &config];
    let mut server = Server::start(&options);
    let program = "(mapv (fn [n] (get (tool/pay {:k 0 :n n}) \"n\")) [1 2])";
    let (status, state) = server.post("/v1/run", &json!({ "program": program }));
    assert_eq!((status, &state["calls"][0]["question"]), (202, &json!("Pay 1?")), "{state}");
    let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
    let say = |server: &Server, reply: &Value| {
        let state = server.state_when(&run, |state| state["calls"][0].is_object());
        server.post(&format!("{run}/calls/{}", state["calls"][0]["call"].as_str().unwrap()), reply)
    };
    assert_eq!(say(&server, &json!({ "result": 1 })).0, 400);
    assert_eq!(say(&server, &json!({ "approve": true, "arguments": 5 })).0, 400);
    // The question outlives the service, and so does the answer.
    server.kill();
    server = Server::start(&options);
    assert_eq!(tool.count(0, 1), 0);
    assert_eq!(say(&server, &json!({ "approve": true, "arguments": {"k": 0, "n": 7} })).0, 200);
    server.state_when(&run, |state| state["calls"][0]["question"] == "Pay 2?");
    assert_eq!((tool.count(0, 1), tool.count(0, 7)), (0, 1));
    assert_eq!(say(&server, &json!({ "reject": "too much" })).0, 200);
    let answer = finished(&server, &run)["answer"].clone();
    assert_eq!((&answer["verdict"], &answer["error"]["reason"]), (&json!("error"), &json!("tool_denied")), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("too much"));
    assert_eq!((tool.count(0, 2), tool.count(0, 7)), (0, 1));
    assert_eq!(answer["ledger"][0]["arguments"], json!({ "k": 0, "n": 7 }));
}

#[test]
fn where_there_are_approvers_nobody_else_approves() {
    let tool = ToolServer::start();
    let dir = Dir::new("approvers");
    let (own, approver) = (service::sha256_hex("own"), service::sha256_hex("approver"));
    let tenant =
        format!("[[tenants]]\nname = \"a\"\ntoken_sha256 = \"{own}\"\napprover_token_sha256 = \"{approver}\"\n");
    let config = tool.config("ask").replace("[network]", &format!("{tenant}\n[network]"));
    let server = Server::start(&["--config", &dir.write("service.toml", &config)]);
    let ask = |token: &str, method: &str, path: &str, body: &Value| {
        let bearer = format!("Bearer {token}");
        let (status, _, answer) = server.send(method, path, &[("Authorization", &bearer)], body.to_string().as_bytes());
        (status, answer)
    };
    let program = json!({ "program": "(get (tool/pay {:k 0 :n 1}) \"n\")" });
    for path in ["/v1/run", "/v1/runs", "/v1/sessions"] {
        assert_eq!(ask("approver", "POST", path, &program).0, 403, "{path}");
    }
    let (status, state) = ask("own", "POST", "/v1/run", &program);
    assert_eq!(status, 202, "{state}");
    let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
    let call = format!("{run}/calls/{}", state["calls"][0]["call"].as_str().unwrap());
    for decision in [json!({ "approve": true }), json!({ "reject": "no" })] {
        assert_eq!(ask("nobody", "POST", &call, &decision).0, 401);
        let (status, refused) = ask("own", "POST", &call, &decision);
        assert!(status == 403 && refused["detail"].as_str().unwrap().contains("an approver"), "{refused}");
    }
    assert_eq!(tool.count(0, 1), 0);
    for token in ["own", "approver"] {
        assert_eq!(ask(token, "GET", &run, &Value::Null).1["calls"][0]["question"], "Pay 1?");
    }
    assert_eq!(ask("approver", "POST", &call, &json!({ "approve": true })).0, 200);
    server.until(Duration::from_secs(20), "the answer", || ask("own", "GET", &run, &Value::Null).1["status"] == "done");
    assert_eq!(tool.count(0, 1), 1);
}

#[test]
fn tenants_have_tokens_limits_and_tools_of_their_own() {
    let tool = ToolServer::start();
    let dir = Dir::new("tenants");
    // printf %s open | sha256sum, and shut
    let tenants = "\n[[tenants]]\nname = \"a\"\nconcurrency = 1\nqueue = 1\nceiling = {fuel = 1000}\n\
        token_sha256 = \"2348f998744212575d85959674f9607ab26f67708a917157472832386337c904\"\n\
        [[tenants]]\nname = \"b\"\nruns_per_second = 0.5\nburst = 4\ntools = []\n\
        token_sha256 = \"03e07d7ca87a8b2ebe4db85a81f4e9ae5b1e4fc44af0d37b8f0e09e5b71e3f26\"\n\
        budget = {runs = 2}\n";
    let shared = service::sha256_hex("shared");
    let tenants = format!("{tenants}[[tenants]]\nname = \"c\"\ndomain = true\ntoken_sha256 = \"{shared}\"\n");
    let config = tool.config("allow").replace("[network]", &format!("{tenants}\n[network]"));
    let token = service::sha256_hex("shut");
    let config = config.replace("03e07d7ca87a8b2ebe4db85a81f4e9ae5b1e4fc44af0d37b8f0e09e5b71e3f26", &token);
    let config = dir.write("service.toml", &format!("[service]\nqueue_seconds = 1\n{config}"));
    let server = Server::start(&["--config", &config]);
    let ask = |token: &str, program: &str| {
        let bearer = format!("Bearer {token}");
        let body = json!({ "program": program, "tools": {"wait": {"returns": 1, "delay_ms": 600}} }).to_string();
        server.send("POST", "/v1/run", &[("Authorization", &bearer)], body.as_bytes())
    };
    let (status, headers, _) = server.send("POST", "/v1/run", &[], b"{\"program\":\"1\"}");
    assert_eq!((status, headers["www-authenticate"].as_str()), (401, "Bearer"));
    for wrong in ["", "opened", "ope", "Open"] {
        assert_eq!(ask(wrong, "1").0, 401);
    }
    assert_eq!(ask("open", "1").2["value"], 1);
    assert_eq!(ask("open", "(reduce + (range 10000))").2["error"]["reason"], "fuel_exhausted");
    assert_eq!(ask("open", "(get (tool/pay {:k 1 :n 1}) \"n\")").2["value"], 1);
    // What b may not see is not there, and its budget holds.
    assert_eq!(ask("shut", "(tool/pay {:k 1 :n 2})").2["error"]["reason"], "unknown_tool");
    assert_eq!(ask("shut", "2").2["value"], 2);
    assert_eq!(ask("shut", "3").2["error"]["reason"], "budget_exceeded");
    let bearer = [("Authorization", "Bearer shut")];
    let (status, _, refused) = server.send("POST", "/v1/sessions", &bearer, b"{}");
    assert!(status == 422 && refused["detail"].as_str().unwrap().contains("budget"), "{status} {refused}");
    let (status, headers, problem) = ask("shut", "4");
    assert_eq!((status, headers["retry-after"].as_str()), (429, "2"), "{problem}");
    let card = |token: &str| {
        let head =
            format!("GET /v1/prompt HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n");
        String::from_utf8(server.raw(head.as_bytes())).unwrap()
    };
    assert!(card("open").contains("tool/pay") && !card("shut").contains("tool/pay"));
    // One run at a time, one in line, and no more. A request that comes late finds the first run ended: then once more.
    let four_at_once = || {
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let spawn = || std::thread::Builder::new().spawn_scoped(scope, || ask("open", "(tool/wait {})").0).unwrap();
            let threads: Vec<_> = (0..4).map(|_| spawn()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let count = |status| statuses.iter().filter(|it| **it == status).count();
        assert!(count(200) + count(429) == 4 && count(200) >= 1, "{statuses:?}");
        (count(200), count(429)) == (2, 2)
    };
    assert!((0..20).any(|_| four_at_once()), "never two of four");
    // Runs of a tenant that has a domain share processes; whether they do is not for requests to say.
    for n in 0..5 {
        assert_eq!(ask("shared", &format!("(def x {n}) (inc x)")).2["value"], n + 1);
    }
    assert_eq!(ask("shared", "x").2["error"]["reason"], "unbound_var");
    let bearer = [("Authorization", "Bearer shared")];
    let (status, _, problem) = server.send("POST", "/v1/run", &bearer, br#"{"program": "1", "domain": "a"}"#);
    assert_eq!((status, problem["field"].as_str()), (400, Some("domain")), "{problem}");
    let (_, _, answer) = server.send("POST", "/v1/runs", &bearer, br#"{"program": "(+ 1 2)"}"#);
    assert!(answer["run_id"].is_string(), "{answer}");
    // Runs of one are none of the other's.
    let runs = |token: &str| {
        let bearer = format!("Bearer {token}");
        let body = b"{\"program\":\"1\"}";
        server.send("POST", "/v1/runs", &[("Authorization", &bearer)], body).2["run_id"].as_str().unwrap().to_owned()
    };
    let path = format!("/v1/runs/{}", runs("open"));
    let bearer = [("Authorization", "Bearer shut")];
    assert_eq!(server.send("GET", &path, &bearer, b"").0, 404);
    assert_eq!(server.send("DELETE", &path, &bearer, b"").0, 404);
    assert_eq!(server.send("GET", &path, &[("Authorization", "Bearer open")], b"").0, 200);
}

/// Every line of the examples gives what is said of it, and there is one for every route of the description.
#[test]
fn the_examples_of_the_document_run() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/service.md")).unwrap();
    let block = text.split("```sh\n").find(|block| block.starts_with("curl -d")).unwrap();
    let server = Server::start(&[]);
    let (mut run, mut session, mut seen) = (String::new(), String::new(), Vec::new());
    for line in block.split("```").next().unwrap().lines() {
        let (command, wanted) = line.split_once(" # =>").unwrap();
        let command = command.replace("$RUN_ID", &run).replace("$SESSION_ID", &session);
        let command = command.strip_prefix("curl ").unwrap().replace("-N ", "");
        let (method, command) = match command.strip_prefix("-X ") {
            Some(rest) => rest.split_once(' ').unwrap(),
            None if command.starts_with("-d ") => ("POST", &*command),
            None => ("GET", &*command),
        };
        let (body, address) = match command.strip_prefix("-d '") {
            Some(rest) => rest.split_once("' ").unwrap(),
            None => ("", command),
        };
        let path = address.trim_matches('\'').strip_prefix("localhost:7117").unwrap();
        if path.contains("/calls/") {
            server.state_when(&format!("/v1/runs/{run}"), |state| state["calls"][0].is_object());
        }
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let raw = server.raw(head.as_bytes());
        let answer = String::from_utf8_lossy(&raw);
        assert!((200..300).contains(&service::status(&raw)), "{line}: {answer}");
        assert!(answer.contains(wanted.trim()), "{line}: {answer}");
        if method == "POST"
            && let Some((_, body)) = answer.split_once("\r\n\r\n")
        {
            let field = |name: &str| {
                let answer: Value = serde_json::from_str(body).ok()?;
                Some(answer[name].as_str()?.to_owned())
            };
            run = field("run_id").filter(|_| path == "/v1/runs").unwrap_or(run);
            session = field("session_id").unwrap_or(session);
        }
        seen.push((method.to_lowercase(), path.to_owned()));
        if path.contains("/calls/") {
            // The run goes on by itself.
            finished(&server, &format!("/v1/runs/{run}"));
        }
    }
    let api = server.send("GET", "/openapi.json", &[], b"").2;
    for (route, methods) in api["paths"].as_object().unwrap() {
        let parts: Vec<&str> = route.split('/').collect();
        let is = |path: &str| {
            let path: Vec<&str> = path.split('?').next().unwrap().splitn(parts.len(), '/').collect();
            path.len() == parts.len() && parts.iter().zip(path).all(|(part, it)| part.starts_with('{') || *part == it)
        };
        for method in methods.as_object().unwrap().keys() {
            assert!(seen.iter().any(|(its, path)| its == method && is(path)), "no example of {method} {route}");
        }
    }
}

/// A call that the end of its run cuts off has the same status with either isolation.
#[test]
fn calls_at_the_deadline_are_unknown() {
    let hanging = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = hanging.local_addr().unwrap();
    let dir = Dir::new("deadline");
    let config = format!(
        "[network]\nallow_private = [\"{address}\"]\n[tools.hang]\nurl = \"http://{address}/\"\ntimeout_ms = 60000\n"
    );
    let config = dir.write("service.toml", &config);
    for isolation in ["process", "in-process"] {
        let server = Server::start(&["--config", &config, "--isolation", isolation]);
        for program in ["(tool/hang {})", "(pmap (fn [n] (tool/hang {:n n})) [1 2])"] {
            let request = json!({ "program": program, "limits": {"timeout_ms": 400} });
            let (_, answer) = server.post("/v1/run", &request);
            assert_eq!(answer["error"]["reason"], "timeout", "{isolation}: {answer}");
            let ledger = answer["ledger"].as_array().unwrap();
            assert!(
                !ledger.is_empty() && ledger.iter().all(|call| call["status"] == "unknown"),
                "{isolation}: {answer}"
            );
        }
    }
}

/// Every route says so in the description if it rejects a percent escape that is not UTF-8.
#[test]
fn invalid_escapes_are_described() {
    let server = Server::start(&[]);
    let api = server.send("GET", "/openapi.json", &[], b"").2;
    let (mut asked, bearer) = (0, []);
    for (route, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if !route.contains('{') {
                continue;
            }
            let path: Vec<&str> =
                route.split('/').map(|part| if part.starts_with('{') { "%ff" } else { part }).collect();
            let status = server.send(&method.to_uppercase(), &path.join("/"), &bearer, b"{}").0;
            assert_eq!(status, 400, "{method} {route}");
            assert!(operation["responses"]["400"].is_object(), "{method} {route}");
            asked += 1;
        }
    }
    assert!(asked >= 9, "{asked} of the routes have a name in their path");
}

fn open_objects(schema: &Value, path: &str) {
    let is_object =
        schema["type"] == "object" || schema["type"].as_array().is_some_and(|all| all.contains(&json!("object")));
    let says = |name: &str| schema.get(name).is_some();
    assert!(!is_object || says("properties") || says("additionalProperties"), "{path}: {schema}");
    match schema {
        Value::Object(fields) => fields.iter().for_each(|(name, field)| open_objects(field, &format!("{path}/{name}"))),
        Value::Array(items) => items.iter().for_each(|item| open_objects(item, path)),
        _ => {}
    }
}

/// What the description says of the bodies is what the service reads.
#[test]
fn the_description_names_the_fields_that_are_read() {
    let server = Server::start(&[]);
    let api = server.send("GET", "/openapi.json", &[], b"").2;
    let rows = [
        ("RunRequest", "/v1/run", r#"{"program": "1", "no-field": 1}"#),
        ("SessionRequest", "/v1/sessions", r#"{"no-field": 1}"#),
        ("Turn", "/v1/sessions/x/turns", r#"{"program": "1", "no-field": 1}"#),
        ("Reply", "/v1/runs/x/calls/1", r#"{"no-field": 1}"#),
    ];
    for (schema, path, body) in rows {
        let (status, _, answer) = server.send("POST", path, &[], body.as_bytes());
        let detail = answer["detail"].as_str().unwrap_or_default();
        // As serde says it: ... expected one of `a`, `b`.
        let (_, known) = detail.split_once("expected ").unwrap_or_else(|| panic!("{status}: {answer}"));
        let mut known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let mut said: Vec<&String> =
            api["components"]["schemas"][schema]["properties"].as_object().unwrap().keys().collect();
        known.sort_unstable();
        said.sort_unstable();
        assert_eq!(known, said, "{schema}");
    }
    // An object without fields of its own can have any.
    open_objects(&api, "");
    let limits = api["components"]["schemas"]["RunRequest"]["properties"]["limits"]["properties"].as_object().unwrap();
    let (_, answer) = server.post("/v1/run", &json!({ "program": "1" }));
    assert!(answer["limits"].as_object().unwrap().keys().all(|name| limits.contains_key(name)), "{limits:?}");
    let said = api["components"]["schemas"]["Answer"]["properties"].as_object().unwrap();
    assert!(answer.as_object().unwrap().keys().all(|name| said.contains_key(name)), "{answer}");
}

/// The trace of a request reaches the tools that its program calls, from the header or from the body; the same request with another
/// trace is the same.
#[test]
fn tools_see_the_trace_of_the_request() {
    let tool = ToolServer::start();
    let dir = Dir::new("trace");
    let config = dir.write("service.toml", &tool.config("allow"));
    let server = Server::start(&["--config", &config]);
    let trace = |n: u64| format!("00-{:032x}-{:016x}-01", 7 * n + 1, n + 1);
    let body = |k: u64| json!({ "program": "(tool/pay {:k data/k :n 0})", "data": {"k": k} }).to_string();
    let send = |path: &str, headers: &[(&str, &str)], body: &str| server.send("POST", path, headers, body.as_bytes());
    send("/v1/run", &[("traceparent", &trace(0))], &body(0));
    let (_, _, run) = send("/v1/runs", &[("traceparent", &trace(1))], &body(1));
    finished(&server, &format!("/v1/runs/{}", run["run_id"].as_str().unwrap()));
    for n in [2, 5] {
        let (status, _, answer) = send("/v1/run", &[("traceparent", &trace(n)), ("Idempotency-Key", "k")], &body(2));
        assert_eq!(status, 200, "{answer}");
    }
    send("/v1/run", &[("traceparent", "nonsense")], &body(3));
    let own = json!({ "program": "(tool/pay {:k 4 :n 0})", "traceparent": trace(4) }).to_string();
    send("/v1/run", &[("traceparent", &trace(9))], &own);
    for k in [0, 1, 2, 4] {
        let got = tool.trace(k).unwrap_or_default();
        // The span is the call's own.
        assert_eq!(got.get(..35), trace(k).get(..35), "call {k}: {got}");
    }
    assert_eq!(tool.trace(3), None);
}

/// A second turn of a session, or an undo, beside one that is under way is refused, and nothing else is held up.
#[test]
fn a_session_has_one_turn_at_a_time() {
    let server = Server::start(&[]);
    let (_, session) = server.post("/v1/sessions", &json!({ "limits": {"timeout_ms": 900} }));
    let session = format!("/v1/sessions/{}", session["session_id"].as_str().unwrap());
    for _ in 0..3 {
        let (address, path) = (server.address.clone(), format!("{session}/turns"));
        let slow = std::thread::Builder::new()
            .spawn(move || {
                let endless = "(doall (map (fn [n] (reduce + (range 100000))) (range 100000)))";
                let body = json!({ "program": endless }).to_string();
                service::request(&address, "POST", &path, &[], body.as_bytes())
            })
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        for (path, body) in [("turns", &b"{\"program\": \"1\"}"[..]), ("undo", b""), ("turns", b"{\"program\": \"2\"}")]
        {
            let (status, _, answer) = server.send("POST", &format!("{session}/{path}"), &[], body);
            assert_eq!(status, 409, "{path}: {answer}");
        }
        assert!(server.text("/healthz").contains("ok"));
        assert_eq!(slow.join().unwrap().2["verdict"], "timeout");
        assert_eq!(server.post(&format!("{session}/turns"), &json!({ "program": "(+ 1 2)" })).1["value"], 3);
    }
}

/// The events of a run that waits, as a raw stream until it has `so_many`: the kinds with their ids.
fn first_events(server: &Server, run: &str, last: &str, so_many: usize) -> Vec<(String, String)> {
    use std::io::{BufRead, BufReader, Write};
    let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(5 * SECOND)).unwrap();
    let head = format!("GET {run}/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {last}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let (mut events, mut id) = (Vec::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        // Each event is `id`, `event`, `data`, in one chunk.
        if let Some(it) = line.strip_prefix("id: ") {
            it.clone_into(&mut id);
        } else if let Some(kind) = line.strip_prefix("event: ") {
            events.push((kind.to_owned(), id.clone()));
        }
        if events.len() == so_many || line == "0" {
            break;
        }
    }
    events
}

/// Whoever comes back has what they have missed, whether the log of the run is still there or not.
#[test]
fn nothing_is_missed_by_who_comes_back() {
    let dir = Dir::new("back");
    let config = dir.write("service.toml", "[service]\nsuspend_after_ms = 100\ndrain_seconds = 5\n");
    let server = Server::start(&["--config", &config, "--store", &dir.path("ptc.db")]);
    let request = json!({ "program": "(println :a) (inc (tool/ask {}))", "tools": {"ask": {"client": true}} });
    let (_, run) = server.post("/v1/runs", &request);
    let run = format!("/v1/runs/{}", run["run_id"].as_str().unwrap());
    let kinds = |events: &[(String, String)]| events.iter().map(|(kind, _)| kind.clone()).collect::<Vec<_>>();
    let events = first_events(&server, &run, "", 4);
    assert_eq!(kinds(&events), ["started", "print", "call", "waiting"], "{events:?}");
    let last = events[3].1.clone();
    // Nobody watches, and it is suspended: the store has its events.
    server.until(100 * SECOND, "the run to be suspended", || server.figure("ptc_durable_runs") == 0);
    let again = first_events(&server, &run, &events[1].1, 2);
    assert_eq!(kinds(&again), ["call", "waiting"], "{again:?}");
    assert_eq!(again[..], events[2..]);
    assert_eq!(server.post(&format!("{run}/calls/1"), &json!({ "result": 41 })).0, 200);
    finished(&server, &run);
    server.until(100 * SECOND, "the events to go", || server.figure("ptc_event_logs") == 0);
    let all = first_events(&server, &run, "", 100);
    assert_eq!(kinds(&all), ["started", "print", "call", "waiting", "call", "answer"], "{all:?}");
    let beyond = ["7", "18446744073709551615", "18446744073709551616"];
    for last in ["-1", "zzz-9", "00000000-0", "1.0", "0", "+3", "007"].into_iter().chain(beyond) {
        let refused = server.send("GET", &format!("{run}/events"), &[("Last-Event-ID", last)], b"");
        assert_eq!((refused.0, &refused.2["field"]), (400, &json!("Last-Event-ID")), "{last}: {}", refused.2);
    }
    // After any of them the others follow, and none after the answer.
    assert_eq!(first_events(&server, &run, &last, 100), all[4..]);
    assert_eq!(first_events(&server, &run, &all[5].1, 100), []);

    // A stream that waits for somebody holds up no end.
    let (_, other) = server.post("/v1/runs", &request);
    let other = format!("/v1/runs/{}", other["run_id"].as_str().unwrap());
    server.state_when(&other, |state| state["status"] == "waiting");
    let mut server = server;
    let begun = Instant::now();
    std::thread::scope(|threads| {
        let address = server.address.clone();
        threads.spawn(move || service::request(&address, "GET", &format!("{other}/events"), &[], b""));
        std::thread::sleep(Duration::from_millis(300));
        server.terminate();
        assert_eq!(server.exit_code(), Some(0));
    });
    assert!(begun.elapsed() < 100 * SECOND, "{:?}", begun.elapsed());
}

/// Runs that somebody streams say their names first, durable ones too.
#[test]
fn a_stream_begins_with_the_name_of_its_run() {
    let server = Server::start(&[]);
    let request = json!({ "program": "(tool/ask {})", "tools": {"ask": {"client": true}} });
    let (mut first, mut run) = (None, String::new());
    server.stream("/v1/run?stream", &request, |kind, data| {
        if first.is_none() {
            first = Some(kind.to_owned());
            data["run_id"].as_str().unwrap_or_default().clone_into(&mut run);
        }
        kind != "waiting"
    });
    assert_eq!(first.as_deref(), Some("started"));
    assert_eq!(server.post(&format!("/v1/runs/{run}/calls/1"), &json!({ "result": 1 })).0, 200);
    assert_eq!(finished(&server, &format!("/v1/runs/{run}"))["answer"]["value"], 1);
}

/// Queries are read as strictly as bodies.
#[test]
fn a_query_that_does_not_fit_is_refused() {
    let server = Server::start(&[]);
    for (path, field, why) in [
        ("/v1/runs?status=bogus", "status", "`waiting`"),
        ("/v1/runs?limit=-1", "limit", "\"-1\" is not a whole number"),
        ("/v1/runs?limit=1001", "limit", "1 to 1000"),
        ("/v1/runs?limit=0", "limit", "1 to 1000"),
        ("/v1/runs?stat=waiting", "stat", "`status`"),
        ("/v1/functions?query=x", "query", "`q`"),
        ("/v1/runs/x?wait=10s", "wait", "\"10s\" is not a whole number"),
    ] {
        let (status, _, answer) = server.send("GET", path, &[], b"");
        assert_eq!((status, &answer["field"]), (400, &json!(field)), "{path}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(why), "{path}: {answer}");
    }
    assert_eq!(server.post("/v1/run?streem", &json!({ "program": "1" })).0, 400);
}
