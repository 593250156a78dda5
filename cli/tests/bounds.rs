//! The bounds of a tenant of `ptcl serve`, for durable runs, sessions and direct runs alike, and the errors that it sees.

#![cfg(target_os = "linux")]

mod service;

use serde_json::{Value, json};
use service::{Dir, Server, ToolServer, finished, ptcl, refused, sha256_hex};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(100);

fn tenant(name: &str, more: &str) -> String {
    format!("[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{}\"\n{more}\n", sha256_hex(&format!("token-of-{name}")))
}

/// A service whose tenants ask by name.
struct Tenants(Server);

impl Tenants {
    fn ask(&self, tenant: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let token = format!("Bearer token-of-{tenant}");
        let (status, _, answer) = self.0.send(method, path, &[("Authorization", &token)], body.to_string().as_bytes());
        (status, answer)
    }

    /// Does no durable run go on in the service? What waits is parked.
    fn has_none_under_way(&self) -> bool {
        let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer token-of-runs\r\n\r\n";
        String::from_utf8(self.0.raw(head.as_bytes())).unwrap().lines().any(|line| line == "ptc_durable_runs 0")
    }

    /// The state of a run once it is so.
    fn once(&self, tenant: &str, run: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut state = Value::Null;
        self.0.until(LONG, run, || {
            state = self.ask(tenant, "GET", run, &Value::Null).1;
            is_so(&state)
        });
        state
    }
}

fn asks(program: &str) -> Value {
    json!({ "program": program, "tools": {"ask": {"client": true}}, "limits": {"timeout_ms": 60_000} })
}

/// A run that is parked between its calls has as many lives as calls, and pays for itself, its fuel and its calls once.
#[test]
fn a_parked_run_pays_once() {
    let sum = "(reduce + (range 50000))";
    for isolation in ["process", "in-process"] {
        let dir = Dir::new("budgets");
        let start = |budgets: [&str; 3]| {
            let names = ["runs", "calls", "fuel"];
            let tenants: String = names.iter().zip(budgets).map(|(name, budget)| tenant(name, budget)).collect();
            let config = dir.write("service.toml", &format!("[service]\nsuspend_after_ms = 0\n{tenants}"));
            Tenants(Server::start(&["--config", &config, "--isolation", isolation]))
        };
        let server = start(["", "", ""]);
        let fuel =
            server.ask("fuel", "POST", "/v1/run", &json!({ "program": sum })).1["usage"]["fuel"].as_u64().unwrap();
        drop(server);
        let fuel_for_two = format!("budget = {{ fuel = {} }}", fuel * 5 / 2);
        let server = start(["budget = { runs = 2 }", "budget = { calls = 3 }", &fuel_for_two]);
        let run = |tenant: &str, program: &str| {
            let (status, state) = server.ask(tenant, "POST", "/v1/runs", &asks(program));
            assert_eq!(status, 202, "{state}");
            let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
            for n in 0..3 {
                let waits =
                    server.once(tenant, &run, |state| !state["calls"][0].is_null() || !state["answer"].is_null());
                assert!(waits["answer"].is_null(), "{isolation}, {tenant}: {waits}");
                server.0.until(LONG, "the run to be parked", || server.has_none_under_way());
                let call = waits["calls"][0]["call"].as_str().unwrap();
                assert_eq!(server.ask(tenant, "POST", &format!("{run}/calls/{call}"), &json!({ "result": n })).0, 200);
            }
            server.once(tenant, &run, |state| !state["answer"].is_null())["answer"].clone()
        };
        let three = "[(tool/ask {:n 0}) (tool/ask {:n 1}) (tool/ask {:n 2})]";
        let plain = |tenant: &str, program: &str| {
            server.ask(tenant, "POST", "/v1/run", &json!({ "program": program })).1["verdict"].clone()
        };
        assert_eq!(run("runs", three)["value"], json!([0, 1, 2]));
        assert_eq!(
            (plain("runs", "1"), plain("runs", "1")),
            (json!("ok"), json!("error")),
            "{isolation}: one run is left"
        );
        assert_eq!(run("calls", three)["value"], json!([0, 1, 2]));
        assert_eq!(run("fuel", &format!("{sum} {three}"))["value"], json!([0, 1, 2]));
        assert_eq!(
            (plain("fuel", sum), plain("fuel", sum)),
            (json!("ok"), json!("error")),
            "{isolation}: fuel for one is left"
        );
    }
}

/// What one tenant has under way leaves the others theirs, and its own queue holds for durable runs, too.
#[test]
fn durable_runs_are_bounded_by_tenant() {
    let dir = Dir::new("bounds");
    let slow = json!({ "program": "(tool/slow {})", "tools": {"slow": {"returns": 1, "delay_ms": 600_000}},
                       "limits": {"timeout_ms": 600_000} });
    let config = dir.write(
        "service.toml",
        &format!(
            "[ceiling]\ntimeout_ms = 600000\n[service]\nconcurrency = 4\nqueue = 2\n{}{}{}",
            tenant("none", "concurrency = 1\nqueue = 0"),
            tenant("two", "concurrency = 1\nqueue = 2"),
            tenant("other", ""),
        ),
    );
    let server = Tenants(Server::start(&["--config", &config]));
    let submit = |tenant: &str| server.ask(tenant, "POST", "/v1/runs", &slow);
    let mut taken = Vec::new();
    for (tenant, max) in [("none", 1), ("two", 3)] {
        for n in 0..6 {
            let (status, state) = submit(tenant);
            assert_eq!(status, if n < max { 202 } else { 429 }, "{tenant} {n}: {state}");
            taken.extend(state["run_id"].as_str().map(|id| (tenant, format!("/v1/runs/{id}"))));
            if status == 429 {
                let detail = state["detail"].as_str().unwrap();
                assert!(detail.contains("raise queue of the tenant"), "{detail}");
            }
        }
    }
    for _ in 0..3 {
        let (status, state) = server.ask("other", "POST", "/v1/runs", &json!({ "program": "(+ 1 2)" }));
        assert_eq!(status, 202, "{state}");
        let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
        let state = server.once("other", &run, |state| !state["answer"].is_null());
        assert_eq!(state["answer"]["value"], 3);
    }
    // Where one has gone there is room again.
    for (tenant, run) in &taken {
        assert_eq!(server.ask(tenant, "DELETE", run, &Value::Null).0, 200);
    }
    for (tenant, run) in &taken {
        server.once(tenant, run, |state| !state["answer"].is_null());
    }
    assert_eq!((submit("none").0, submit("two").0), (202, 202));
}

/// A session begins by the rate and the places of its tenant, as a run does.
#[test]
fn sessions_begin_as_runs_do() {
    let dir = Dir::new("sessions");
    let config = dir.write(
        "service.toml",
        &format!(
            "[ceiling]\ntimeout_ms = 600000\n{}{}{}",
            tenant("rated", "runs_per_second = 0.001\nburst = 2"),
            tenant("placed", "concurrency = 1\nqueue = 0"),
            tenant("poor", "budget = { runs = 1 }"),
        ),
    );
    let server = Tenants(Server::start(&["--config", &config]));
    let open = |tenant: &str| server.ask(tenant, "POST", "/v1/sessions", &json!({ "setup": ["(def a 1)"] }));
    let (begun, session) = open("rated");
    assert_eq!([begun, open("rated").0, open("rated").0], [201, 201, 429]);
    let fork = format!("/v1/sessions/{}/fork", session["session_id"].as_str().unwrap());
    assert_eq!(server.ask("rated", "POST", &fork, &Value::Null).0, 429);
    assert_eq!(server.ask("rated", "POST", "/v1/run", &json!({ "program": "1" })).0, 429);
    assert_eq!(open("placed").0, 201);
    let slow = json!({ "program": "(tool/slow {})", "tools": {"slow": {"returns": 1, "delay_ms": 600_000}},
                       "limits": {"timeout_ms": 600_000} });
    let run = server.ask("placed", "POST", "/v1/runs", &slow).1;
    let run = format!("/v1/runs/{}", run["run_id"].as_str().unwrap());
    server.once("placed", &run, |state| state["status"] == "running");
    assert_eq!(open("placed").0, 429);
    server.ask("placed", "DELETE", &run, &Value::Null);
    server.once("placed", &run, |state| !state["answer"].is_null());
    assert_eq!(open("placed").0, 201);
    assert_eq!(server.ask("poor", "POST", "/v1/run", &json!({ "program": "1" })).1["value"], 1);
    let (status, refused) = open("poor");
    assert!(status == 422 && refused["detail"].as_str().unwrap().contains("do not pay from a budget"), "{refused}");
}

/// A list has the runs that wait, parked or not, and shows of each what the run itself shows; one whose journal cannot be read is
/// no trouble of the others.
#[test]
fn a_list_shows_runs_as_they_are() {
    let dir = Dir::new("list");
    let store = dir.path("ptc.db");
    let config = dir.write("service.toml", "[ceiling]\ntimeout_ms = 600000\n[limits]\ntimeout_ms = 600000\n");
    let kept = dir.write(
        "kept.toml",
        "[ceiling]\ntimeout_ms = 600000\n[limits]\ntimeout_ms = 600000\n[service]\nsuspend_after_ms = 3600000\n",
    );
    for config in [&config, &kept] {
        let mut server = Server::start(&["--store", &store, "--config", config]);
        let waiting = server.post("/v1/runs", &asks("(tool/ask {:n 1})")).1["run_id"].as_str().unwrap().to_owned();
        let beside = json!({ "program": "(pmap (fn [n] (if (= n 0) (tool/ask {}) (tool/slow {}))) (range 2))",
            "tools": {"ask": {"client": true}, "slow": {"returns": 1, "delay_ms": 600_000}}, "limits": {"parallel_timeout_ms": 600_000} });
        let beside = server.post("/v1/runs", &beside).1["run_id"].as_str().unwrap().to_owned();
        let ended = server.post("/v1/runs", &json!({ "program": "1" })).1["run_id"].as_str().unwrap().to_owned();
        for run in [&waiting, &beside] {
            server.state_when(&format!("/v1/runs/{run}"), |state| !state["calls"][0].is_null());
        }
        finished(&server, &format!("/v1/runs/{ended}"));
        let list = |query: &str| {
            let list = server.send("GET", &format!("/v1/runs{query}"), &[], b"").2;
            list["runs"].as_array().unwrap_or_else(|| panic!("{query}: {list}")).clone()
        };
        let ids = |query: &str| -> Vec<String> {
            list(query).iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids("?status=waiting"), [beside.clone(), waiting.clone()]);
        assert_eq!(ids("?status=waiting&limit=1"), std::slice::from_ref(&beside));
        assert_eq!(ids("?limit=3"), [ended.clone(), beside.clone(), waiting.clone()]);
        assert!(ids("?status=done").contains(&ended) && ids("?status=running").is_empty());
        for run in list("?limit=3") {
            let mut own = server.send("GET", &format!("/v1/runs/{}", run["run_id"].as_str().unwrap()), &[], b"").2;
            own.as_object_mut().unwrap().remove("answer");
            own["updated_ms"] = run["updated_ms"].clone();
            assert_eq!(run, own);
        }
        for run in [&waiting, &beside] {
            server.send("DELETE", &format!("/v1/runs/{run}"), &[], b"");
            finished(&server, &format!("/v1/runs/{run}"));
        }
        server.kill();
    }
}

/// The code of an error reaches the program, for a call that had begun when the service was killed, too.
#[test]
fn an_error_of_an_unknown_call_keeps_its_code() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let dir = Dir::new("codes");
    let config = dir.write("service.toml", &ToolServer::config_of(silent.local_addr().unwrap().port(), "allow"));
    let store = dir.path("ptc.db");
    let mut server = Server::start(&["--store", &store, "--config", &config]);
    let program = "(try (tool/pay {:k 0 :n 1}) (catch Exception e [(:message e) (:code e)]))";
    for (error, value) in [
        (json!({ "message": "boom", "code": "E42" }), json!(["tool/pay: boom", "E42"])),
        (json!({ "message": "boom", "code": 7 }), json!(["tool/pay: boom", 7])),
        (json!({ "message": "boom" }), json!(["tool/pay: boom", null])),
    ] {
        let run = server.post("/v1/runs", &json!({ "program": program })).1["run_id"].as_str().unwrap().to_owned();
        let held = silent.accept().unwrap();
        server.kill();
        drop(held);
        server = Server::start(&["--store", &store, "--config", &config]);
        let run = format!("/v1/runs/{run}");
        let call = server.state_when(&run, |state| !state["calls"][0].is_null())["calls"][0]["call"].clone();
        let said = server.post(&format!("{run}/calls/{}", call.as_str().unwrap()), &json!({ "error": error }));
        assert_eq!(said.0, 200, "{}", said.1);
        assert_eq!(finished(&server, &run)["answer"]["value"], value);
    }
}

/// What a client relies on is not left out because it is nested deeply, and not guessed where it is said twice or wrongly.
#[test]
fn requests_and_events_are_taken_as_they_are() {
    let server = Server::start(&[]);
    let deep = asks("(tool/ask {:a (reduce (fn [a _] [a]) [] (range 300))})");
    let run = format!("/v1/runs/{}", server.post("/v1/runs", &deep).1["run_id"].as_str().unwrap());
    // It is nested too deeply for a value of `serde_json`.
    server.until(LONG, "the call", || server.text(&run).contains("\"status\":\"waiting\""));
    let events = server.until_said(&format!("{run}/events"), "event: waiting\n", "\n\n");
    assert!(events.contains(&format!("\"arguments\":{{\"a\":{}{}}}", "[".repeat(301), "]".repeat(301))), "{events}");

    for path in ["/v1/run", "/v1/runs", "/v1/sessions"] {
        for script in [json!({ "returns": 1 }), json!({ "client": true }), json!({ "echo": true })] {
            if path == "/v1/sessions" && script["client"] == true {
                continue;
            }
            let mut body = json!({ "tools": {"t": script} });
            body["tools"]["t"]["signature"] = "(x :int".into();
            if path != "/v1/sessions" {
                body["program"] = "(tool/t {:x 1})".into();
            }
            let (status, mut answer) = server.post(path, &body);
            if let Some(run) = answer["run_id"].as_str().filter(|_| status == 202) {
                answer = finished(&server, &format!("/v1/runs/{run}"))["answer"].clone();
            }
            let text = answer.to_string();
            assert!(text.contains("parse_error") || status == 400, "{path} {body}: {status} {text}");
            assert!(text.contains("signature"), "{path} {body}: {text}");
        }
    }

    let session = server.send("POST", "/v1/sessions", &[], br#"{"data": {"n": 1}, "setup": [], "data": {"n": 2}}"#);
    assert_eq!(session.0, 201, "{}", session.2);
    let turns = format!("/v1/sessions/{}/turns", session.2["session_id"].as_str().unwrap());
    // So it is within limits and tools, as in the request of a run.
    let twice = r#""limits": {"fuel": 1, "timeout_ms": 9000, "fuel": 100000},
        "tools": {"t": {"returns": 1}, "t": {"returns": 1, "returns": 7}}"#;
    let own = server.send("POST", "/v1/sessions", &[], format!("{{{twice}}}").as_bytes());
    assert_eq!(own.0, 201, "{}", own.2);
    let own = format!("/v1/sessions/{}/turns", own.2["session_id"].as_str().unwrap());
    let program = r#""program": "(tool/t {})""#;
    for (path, body) in [(&*own, format!("{{{program}}}")), ("/v1/run", format!("{{{program}, {twice}}}"))] {
        let answer = server.send("POST", path, &[], body.as_bytes()).2;
        assert_eq!((&answer["value"], &answer["limits"]["fuel"]), (&json!(7), &json!(100_000)), "{path}: {answer}");
    }
    let turn = server.send("POST", &turns, &[], br#"{"id": 1, "program": "1", "program": "data/n", "id": 2}"#).2;
    assert_eq!((&turn["value"], &turn["id"]), (&json!(2), &json!(2)), "{turn}");
    for body in [r#"{"program": "1", "nope": 1}"#, r#"{"program": "1", "program": 2}"#, "[]", "{"] {
        assert_eq!(server.send("POST", &turns, &[], body.as_bytes()).0, 400, "{body}");
    }

    let search =
        |words: usize| server.send("GET", &format!("/v1/functions?q={}", vec!["a"; words].join("+")), &[], b"");
    assert_eq!((search(1).0, search(12).0, search(13).0, search(30_000).0), (200, 200, 400, 400));
}

/// A turn whose client has left ends even if its tool does not answer, and gives back its slot and its session.
#[test]
fn a_turn_ends_with_its_client() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let dir = Dir::new("left");
    let tool = ToolServer::config_of(silent.local_addr().unwrap().port(), "allow");
    let tool = tool.replace("effect = \"write\"", "effect = \"write\"\ntimeout_ms = 600000");
    let all = format!("[ceiling]\ntimeout_ms = 600000\n[service]\nconcurrency = 1\n{tool}");
    let config = dir.write("service.toml", &all);
    for isolation in ["process", "in-process"] {
        let store = dir.path(isolation);
        let server = Server::start(&["--config", &config, "--isolation", isolation, "--store", &store]);
        let session = server.post("/v1/sessions", &json!({ "limits": {"timeout_ms": 600_000} })).1;
        let turns = format!("/v1/sessions/{}/turns", session["session_id"].as_str().unwrap());
        let body = json!({ "program": "(tool/pay {:k 0 :n 1})" }).to_string();
        let mut client = TcpStream::connect(&server.address).unwrap();
        let length = body.len();
        write!(client, "POST {turns} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let _call = silent.accept().unwrap();
        drop(client);
        server.until(LONG, "the slot", || server.post("/v1/run", &json!({ "program": "1" })).0 == 200);
        server.until(LONG, "the session", || server.post(&turns, &json!({ "program": "2" })).1["value"] == 2);
    }
}

/// A run is stored if its program names a tool that asks, not if it calls others.
#[test]
fn runs_that_call_no_tool_that_asks_are_not_stored() {
    let tool = ToolServer::start();
    let dir = Dir::new("asking");
    let config = dir.write("service.toml", &tool.config("ask"));
    let server = Server::start(&["--config", &config, "--store", &dir.path("ptc.db")]);
    let mine = json!({ "pay": {"returns": 7} });
    for (program, tools) in [
        ("(count \"tool/payment\")", json!({})),
        ("(tool/other {})", json!({ "other": {"returns": 8} })),
        ("(tool/pay {:k 1 :n 1})", mine),
    ] {
        let (status, answer) = server.post("/v1/run", &json!({ "program": program, "tools": tools }));
        assert!(status == 200 && answer["value"].is_u64(), "{program}: {status} {answer}");
        assert!(server.text("/v1/runs").contains("\"runs\":[]"), "{program}: {}", server.text("/v1/runs"));
    }
    for request in [
        json!({ "program": "(tool/pay {:k 1 :n 1})" }),
        json!({ "program": "(f)", "setup": ["(defn f [] (tool/pay {:k 1 :n 1}))"] }),
    ] {
        let (status, state) = server.post("/v1/run", &request);
        assert!(status == 202 && state["calls"][0]["name"] == "pay", "{request}: {status} {state}");
    }
    assert_eq!(tool.count(1, 1), 0);
}

/// A write beyond the limit for the size of files fails, and ends nothing; the service says that it is not ready.
#[test]
fn a_store_that_is_full_is_an_error() {
    let dir = Dir::new("full");
    let store = dir.path("ptc.db");
    // In blocks of 1024 bytes.
    let line = format!("ulimit -f 600; exec \"$0\" serve --listen 127.0.0.1:0 --store {store}");
    let server = Server::of(Command::new("bash").args(["-c", &line]).arg(ptcl().get_program()));
    let session = json!({ "data": {"x": "y".repeat(100_000)} }).to_string();
    let mut last = (0, std::collections::HashMap::new(), Value::Null);
    for _ in 0..40 {
        last = server.send("POST", "/v1/sessions", &[], session.as_bytes());
        if last.0 != 201 {
            break;
        }
    }
    assert!(last.0 == 503 && last.1.contains_key("retry-after"), "{last:?}");
    let ready = server.send("GET", "/readyz", &[], b"");
    assert!(ready.0 == 503 && ready.1.contains_key("retry-after"), "{ready:?}");
    assert_eq!(server.send("GET", "/healthz", &[], b"").0, 200);
    // A store whose file is gone keeps nothing either.
    let server = Server::start(&["--store", &dir.path("gone.db")]);
    assert_eq!(server.send("GET", "/readyz", &[], b"").0, 200);
    std::fs::remove_file(dir.path("gone.db")).unwrap();
    assert_eq!(server.send("GET", "/readyz", &[], b"").0, 503);
}

/// An error in a configuration names its place, and comes before the service says that it listens.
#[test]
fn a_bad_configuration_is_named_with_its_place() {
    let dir = Dir::new("places");
    dir.write("api.json", "{\"openapi\": \"3.1.0\", \"info\": {\"title\": \"t\", \"version\": \"1\"}, \"paths\": {}}");
    dir.write("no-api.json", "{\"swagger\": 2");
    dir.write("bad.json", "{\"type\": \"nope\"}");
    dir.write("empty.pem", "");
    for (text, place, wanted) in [
        ("\n[tools.x]\nurl = \"https://e.com/\"\ninput = { type = \"nope\" }", "4:9", "tools.x.input"),
        ("[tools.x]\nurl = \"https://e.com/\"\noutput = { type = \"nope\" }", "3:10", "tools.x.output"),
        ("[tools.x]\nurl = \"https://e.com/\"\ninput_file = \"bad.json\"", "3:14", "tools.x.input"),
        ("[openapi.x]\nfile = \"no-api.json\"", "2:8", "openapi.x.file"),
        (
            "[openapi.x]\nfile = \"api.json\"\nbase_url = \"https://e.com\"\npolicies = { nope = \"ask\" }",
            "4:21",
            "no tool nope",
        ),
        ("[mcp.x]\ncommand = [\"/nope\"]", "1:6", "cannot be started"),
        ("[tls]\ncertificate = \"empty.pem\"\nkey = \"empty.pem\"", "2:15", "tls.certificate"),
    ] {
        let config = dir.write("service.toml", text);
        let mut command = ptcl();
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", &dir.path("ptc.db"), "--config", &config]);
        let (code, said) = refused(&mut command);
        assert_eq!(code, Some(2), "{text}: {said}");
        assert!(said.starts_with(&format!("ptcl: {config}:{place}: ")) && said.contains(wanted), "{text}: {said}");
        assert!(!said.contains("listening"), "{said}");
    }
}

/// The end of a call is one event, however often the run is suspended and replayed.
#[test]
fn each_end_of_a_call_is_one_event() {
    let tool = ToolServer::start();
    for isolation in ["process", "in-process"] {
        let dir = Dir::new("events");
        let config = dir.write("service.toml", &format!("[service]\nsuspend_after_ms = 0\n{}", tool.config("allow")));
        let server = Server::start(&["--config", &config, "--isolation", isolation]);
        let program =
            "[(tool/pay {:k 0 :n 1}) (tool/ask {:n 1}) (tool/pay {:k 0 :n 2}) (tool/ask {:n 2}) (tool/ask {:n 3})]";
        let (status, state) = server.post("/v1/runs", &asks(program));
        assert_eq!(status, 202, "{state}");
        let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
        for n in 0..3 {
            let state = server.state_when(&run, |state| state["calls"][0].is_object());
            server.until(LONG, "the run to be suspended", || server.text("/metrics").contains("ptc_durable_runs 0"));
            let call = state["calls"][0]["call"].as_str().unwrap();
            assert_eq!(server.post(&format!("{run}/calls/{call}"), &json!({ "result": n })).0, 200);
        }
        finished(&server, &run);
        let events = server.text(&format!("{run}/events"));
        let ends = events.lines().filter(|line| line.contains("\"status\":\"ok\"") && line.contains("duration_ms"));
        assert_eq!(ends.count(), 5, "{isolation}: {events}");
    }
}
