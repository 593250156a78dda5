//! What one tenant learns of another by asking: nothing. Whatever is asked of a thing of another tenant is answered as it is for one
//! that there is not, route by route of the description, and so is whatever names a tool that is hidden.

#![cfg(target_os = "linux")]

mod service;

use serde_json::{Value, json};
use service::{Dir, Server, ToolServer, sha256_hex};

/// A name that stands for nothing, as long as one that does.
const NOTHING: &str = "01900000-0000-7000-8000-000000000000";

fn bearer(tenant: &str) -> String {
    format!("Bearer token-of-{tenant}")
}

/// What was answered, without what differs each time, and with the names made one.
fn answered(server: &Server, tenant: &str, request: &Request, named: &str) -> String {
    let bearer = bearer(tenant);
    let mut headers = request.headers.clone();
    headers.push(("Authorization", &bearer));
    let (status, mut head, body) = server.send(request.method, &request.path, &headers, request.body.as_bytes());
    // They differ by the moment.
    for name in ["date", "retry-after"] {
        head.remove(name);
    }
    let mut head: Vec<String> = head.into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
    head.sort();
    format!("{status} {head:?} {body}").replace(named, "NAME")
}

#[derive(Clone, Debug)]
struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
}

/// Every request that a route takes of a thing with a name, well and badly formed.
fn requests(server: &Server, name: &str) -> Vec<Request> {
    let api = server.send("GET", "/openapi.json", &[], b"").2;
    let bodies = [
        "",
        "{",
        "{}",
        "[]",
        "{\"program\": \"1\"}",
        "{\"program\": 1}",
        "{\"result\": 1}",
        "{\"approve\": true}",
        "{\"reject\": \"no\"}",
        "{\"error\": {\"message\": \"no\"}}",
        "{\"result\": 1, \"approve\": true}",
    ];
    let mut all = Vec::new();
    for (route, methods) in api["paths"].as_object().unwrap() {
        if !route.contains("_id}") {
            continue;
        }
        for call in ["1", "0", "1:0/1", "x"] {
            let path = route.replace("{run_id}", name).replace("{session_id}", name).replace("{call}", call);
            for method in methods.as_object().unwrap().keys() {
                let method = ["GET", "POST", "DELETE"].into_iter().find(|it| it.eq_ignore_ascii_case(method)).unwrap();
                for body in if method == "POST" { &bodies[..] } else { &bodies[..1] } {
                    let headers = if route.ends_with("/events") { vec![("Last-Event-ID", "7")] } else { Vec::new() };
                    all.push(Request { method, path: path.clone(), headers, body: (*body).to_owned() });
                }
            }
            if !route.contains("{call}") {
                break;
            }
        }
    }
    assert!(all.len() > 60, "{}", all.len());
    all
}

fn start(tool: &ToolServer, dir: &Dir) -> Server {
    let rate = "runs_per_second = 0.001\nburst = 60\n";
    let none = format!("tools = []\n{rate}");
    let tenants = [("owner", ""), ("asks", &*none), ("guesses", &none), ("free", "tools = []\n")];
    let tenants: String = tenants
        .into_iter()
        .map(|(name, more)| {
            let digest = sha256_hex(&format!("token-of-{name}"));
            format!("[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{digest}\"\n{more}")
        })
        .collect();
    let config = tool.config("ask").replace("[network]", &format!("{tenants}[network]"));
    Server::start(&["--config", &dir.write("service.toml", &config), "--store", &dir.path("ptc.db")])
}

/// Things of another tenant: finished, waiting, at work.
#[test]
fn what_is_anothers_is_as_if_it_were_not() {
    let (tool, dir) = (ToolServer::start(), Dir::new("others"));
    let server = start(&tool, &dir);
    let own = [("Authorization", &*bearer("owner"))];
    let post = |path: &str, body: &Value| {
        let (status, _, answer) = server.send("POST", path, &own, body.to_string().as_bytes());
        assert!((200..300).contains(&status), "{answer}");
        answer
    };
    let submit = |body: &Value| post("/v1/runs", body)["run_id"].as_str().unwrap().to_owned();
    let until = |run_id: &str, status: &str| {
        server.until(std::time::Duration::from_secs(20), status, || {
            server.send("GET", &format!("/v1/runs/{run_id}"), &own, b"").2["status"] == status
        });
    };
    let done = submit(&json!({ "program": "(+ 1 2)" }));
    let waits = submit(&json!({ "program": "(tool/ask {})", "tools": {"ask": {"client": true}} }));
    let gated = submit(&json!({ "program": "(tool/pay {:k 0 :n 0})" }));
    until(&done, "done");
    until(&waits, "waiting");
    until(&gated, "waiting");
    let tools = json!({ "wait": {"returns": 1, "delay_ms": 20_000} });
    let begin = || {
        let opening = json!({ "tools": tools, "limits": {"timeout_ms": 60_000} });
        post("/v1/sessions", &opening)["session_id"].as_str().unwrap().to_owned()
    };
    let (idle, busy) = (begin(), begin());
    let body = json!({ "program": "(tool/wait {})" }).to_string();
    let (address, path, token) = (server.address.clone(), format!("/v1/sessions/{busy}/turns"), bearer("owner"));
    // The turn is under way until the service ends.
    std::thread::Builder::new()
        .spawn(move || service::request(&address, "POST", &path, &[("Authorization", &token)], body.as_bytes()))
        .unwrap();
    server.until(std::time::Duration::from_secs(20), "the turn", || {
        server.send("POST", &format!("/v1/sessions/{busy}/undo"), &own, b"").0 == 409
    });
    // Both tenants ask the same of what another has, and of nothing, as often as their rate allows and more.
    for name in [&done, &waits, &gated, &idle, &busy] {
        let (of_other, of_nothing) = (requests(&server, name), requests(&server, NOTHING));
        for (other, nothing) in of_other.iter().zip(&of_nothing) {
            let (got, wanted) =
                (answered(&server, "asks", other, name), answered(&server, "guesses", nothing, NOTHING));
            assert_eq!(got, wanted, "{other:?}");
        }
    }
    // It is all as it was.
    for (run_id, status) in [(&done, "done"), (&waits, "waiting"), (&gated, "waiting")] {
        assert_eq!(server.send("GET", &format!("/v1/runs/{run_id}"), &own, b"").2["status"], status);
    }
    assert_eq!(server.send("GET", &format!("/v1/sessions/{idle}"), &own, b"").0, 200);
    assert_eq!(server.send("POST", &format!("/v1/sessions/{busy}/undo"), &own, b"").0, 409);
}

/// A key is its tenant's own: to another it is a new one.
#[test]
fn a_key_of_another_tenant_is_a_new_one() {
    let (tool, dir) = (ToolServer::start(), Dir::new("keys"));
    let server = start(&tool, &dir);
    let send = |tenant: &str, key: &str, program: &str| {
        let bearer = bearer(tenant);
        let headers = [("Authorization", &*bearer), ("Idempotency-Key", key)];
        server.send("POST", "/v1/run", &headers, json!({ "program": program }).to_string().as_bytes())
    };
    let (_, _, first) = send("owner", "k", "(+ 1 2)");
    let (status, _, answer) = send("asks", "k", "(+ 1 3)");
    assert_eq!((status, &answer["value"]), (200, &json!(4)), "{answer}");
    assert_ne!(first["run_id"], answer["run_id"]);
}

/// A request that comes again is no new run: it has its answer however many runs there are.
#[test]
fn a_request_that_comes_again_needs_no_room() {
    let dir = Dir::new("quota");
    let digest = sha256_hex("token-of-owner");
    let tenant =
        format!("[[tenants]]\nname = \"owner\"\ntoken_sha256 = \"{digest}\"\nruns_per_second = 0.001\nburst = 4\n");
    let config = dir.write("service.toml", &format!("[service]\nmax_runs_stored = 2\n{tenant}"));
    let server = Server::start(&["--config", &config]);
    let send = |path: &str, key: &str, program: &str| {
        let bearer = bearer("owner");
        let headers = [("Authorization", &*bearer), ("Idempotency-Key", key)];
        server.send("POST", path, &headers, json!({ "program": program }).to_string().as_bytes())
    };
    let (status, _, first) = send("/v1/run", "a", "(+ 1 2)");
    assert_eq!(status, 200, "{first}");
    assert_eq!(send("/v1/run", "b", "2").0, 200);
    // There are as many as there may be; then the rate is used up, too.
    let refused: Vec<(u16, Value)> =
        (0..3).map(|_| send("/v1/run", "c", "3")).map(|(status, _, why)| (status, why)).collect();
    assert_eq!(refused.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [422, 422, 429]);
    assert!(refused[0].1["detail"].as_str().unwrap().contains("cancel runs that only wait"), "{refused:?}");
    for _ in 0..3 {
        let (status, _, again) = send("/v1/run", "a", "(+ 1 2)");
        assert_eq!((status, &again), (200, &first));
        assert_eq!(send("/v1/runs", "a", "(+ 1 2)").2["run_id"], first["run_id"]);
        let (status, _, other) = send("/v1/run", "a", "(+ 1 3)");
        assert!(status == 422 && other["detail"].as_str().unwrap().contains("another request"), "{other}");
    }
}

/// Programs and requests that name a tool which is hidden, and one that there is not.
#[test]
fn a_hidden_tool_is_none() {
    let (tool, dir) = (ToolServer::start(), Dir::new("hidden"));
    let server = start(&tool, &dir);
    let own = |script: &Value| json!({ "NAME": script });
    let scripts = [
        json!({ "returns": 7 }),
        json!({ "error": "no" }),
        json!({ "echo": true }),
        json!({ "returns": 7, "signature": "(k :int) -> :int" }),
        json!({ "returns": 7, "signature": "nonsense (" }),
        json!({ "returns": 7, "cache": true }),
    ];
    let programs = [
        "(tool/NAME {:k 1 :n 2})",
        "(tool/NAME {})",
        "(map tool/NAME [{:k 1}])",
        "(tool-search \"NAME\")",
        "(try (tool/NAME {:k 1}) (catch Exception e (ex-message e)))",
        "(tool/NAMES {})",
        "(describe \"tool/NAME\")",
    ];
    let mut bodies: Vec<Value> = programs.iter().map(|program| json!({ "program": program })).collect();
    bodies.extend(programs.iter().flat_map(|program| {
        scripts.iter().map(move |script| json!({ "program": program, "tools": own(script), "omit": ["limits"] }))
    }));
    let plain = |answer: &Value, name: &str| {
        let mut answer = answer.clone();
        for field in ["run_id", "usage"] {
            answer.as_object_mut().unwrap().remove(field);
        }
        answer["ledger"].as_array_mut().into_iter().flatten().for_each(|call| {
            call.as_object_mut().unwrap().remove("duration_us");
        });
        answer.to_string().replace(name, "NAME")
    };
    let ask = |path: &str, body: &Value, name: &str| {
        // No rate for these.
        let bearer = bearer("free");
        let body = body.to_string().replace("NAME", name);
        let (status, _, answer) = server.send("POST", path, &[("Authorization", &bearer)], body.as_bytes());
        (status, answer)
    };
    for body in &bodies {
        let (hidden, nothing) = (ask("/v1/run", body, "pay"), ask("/v1/run", body, "pax"));
        assert_eq!(hidden.0, nothing.0, "{body}: {hidden:?}");
        assert_eq!(plain(&hidden.1, "pay"), plain(&nothing.1, "pax"), "{body}");
    }
    // One that its client answers, and one of a session.
    for name in ["pay", "pax"] {
        let (status, state) = ask(
            "/v1/run",
            &json!({ "program": "(inc (tool/NAME {}))", "tools": own(&json!({ "client": true })) }),
            name,
        );
        assert_eq!(
            (status, &state["calls"][0]["name"], state["calls"][0].get("question")),
            (202, &json!(name), None),
            "{state}"
        );
        let (_, session) = ask("/v1/sessions", &json!({ "tools": own(&json!({ "returns": 7 })) }), name);
        let turns = format!("/v1/sessions/{}/turns", session["session_id"].as_str().unwrap());
        let (_, answer) = ask(&turns, &json!({ "program": "(tool/NAME {})" }), name);
        assert_eq!(answer["value"], 7, "{answer}");
        let (_, session) = ask("/v1/sessions", &json!({}), name);
        let turns = format!("/v1/sessions/{}/turns", session["session_id"].as_str().unwrap());
        let (_, answer) = ask(&turns, &json!({ "program": "(tool/NAME {})" }), name);
        assert_eq!(answer["error"]["reason"], "unknown_tool", "{answer}");
    }
    // Nor is anything said of it where nobody asks.
    let card =
        format!("GET /v1/prompt HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\nConnection: close\r\n\r\n", bearer("free"));
    assert!(!String::from_utf8(server.raw(card.as_bytes())).unwrap().contains("pay"));
}

/// A request says once for which host it is.
#[test]
fn a_request_names_one_host() {
    let server = Server::start(&[]);
    let rows = [
        ("1.1", "Host: localhost\r\n", 200),
        ("1.1", "Host: localhost:7117\r\n", 200),
        ("1.1", "Host: [::1]:7117\r\n", 200),
        ("1.1", "Host: localhost:\r\n", 200),
        ("1.0", "", 200),
        ("1.0", "Host: localhost\r\n", 200),
        ("1.1", "", 400),
        ("1.1", "Host:\r\n", 400),
        ("1.1", "Host: localhost\r\nHost: localhost\r\n", 400),
        ("1.1", "Host: localhost\r\nX: 1\r\nhOST: evil.example\r\n", 400),
        ("1.0", "Host: localhost\r\nHost: localhost\r\n", 400),
        ("1.1", "Host: local host\r\n", 400),
        ("1.1", "Host: localhost, localhost\r\n", 400),
        ("1.1", "Host: user@localhost\r\n", 400),
        ("1.1", "Host: http://localhost\r\n", 400),
        ("1.1", "Host: localhost/\r\n", 400),
        ("1.1", "Host: localhost:port\r\n", 400),
        ("1.1", "Host: localhost:99999\r\n", 400),
        ("1.1", "Host: :7117\r\n", 400),
        ("1.1", "Host: [::1\r\n", 400),
        ("1.1", "Host: local\u{fc}host\r\n", 400),
    ];
    for path in ["/healthz", "/readyz", "/openapi.json", "/", "/v1/functions/map", "/metrics", "/v1/nope"] {
        for (version, host, status) in rows {
            let request = format!("GET {path} HTTP/{version}\r\n{host}Connection: close\r\n\r\n");
            let got = service::status(&server.raw(request.as_bytes()));
            let needs_name = ["/v1/functions/map", "/metrics"].contains(&path) && !host.starts_with("Host");
            let wanted = match status {
                200 if path == "/v1/nope" => 404,
                // It is for this machine only, and has to be asked for as this machine.
                200 if needs_name => 403,
                status => status,
            };
            assert_eq!(got, wanted, "{path} HTTP/{version} {host:?}");
        }
    }
}

fn tenants(each: &[(&str, &str)]) -> String {
    let one = |(name, more): &(&str, &str)| {
        let digest = sha256_hex(&format!("token-of-{name}"));
        format!("[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{digest}\"\n{more}")
    };
    each.iter().map(one).collect()
}

/// Requests in progress are each tenant's own: those of one take none of another's, nor of its approvers'.
#[test]
fn requests_in_progress_have_a_bound() {
    let dir = Dir::new("requests");
    let approver = format!("max_requests = 2\napprover_token_sha256 = \"{}\"\n", sha256_hex("token-of-approver"));
    let config = tenants(&[("many", &approver), ("other", "")]);
    let server = Server::start(&["--config", &dir.write("service.toml", &config)]);
    let get = |who: &str| server.send("GET", "/v1/runs", &[("Authorization", &bearer(who))], b"");
    let body = json!({ "program": "(tool/wait {})", "tools": {"wait": {"client": true}} }).to_string();
    let (_, _, run) = server.send("POST", "/v1/runs", &[("Authorization", &bearer("many"))], body.as_bytes());
    let path = format!("/v1/runs/{}/events", run["run_id"].as_str().unwrap());
    let stream = || {
        let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n", server.address, bearer("many"));
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        let mut status = [0; 15];
        std::io::Read::read_exact(&mut stream, &mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200 OK");
        stream
    };
    let first = stream();
    assert_eq!(get("many").0, 200, "the second one");
    let second = stream();
    let (status, head, why) = get("many");
    assert_eq!((status, head["retry-after"].as_str()), (429, "1"), "{why}");
    assert!(
        why["detail"].as_str().unwrap().contains("2 requests in progress; end some, or raise max_requests"),
        "{why}"
    );
    assert_eq!((get("other").0, get("approver").0), (200, 200));
    drop((first, second));
    server.until(std::time::Duration::from_secs(20), "its streams have ended", || get("many").0 == 200);
}

/// A run that waits for an outside answer gives its slot to the next run of its tenant at once, however long
/// `suspend_after_ms` is.
#[test]
fn a_run_that_waits_gives_way_to_its_tenants_next() {
    let dir = Dir::new("gives-way");
    let config = format!("[service]\nsuspend_after_ms = 3600000\n{}", tenants(&[("one", "concurrency = 1\n")]));
    let server = Server::start(&["--config", &dir.write("service.toml", &config)]);
    let own = [("Authorization", &*bearer("one"))];
    let waits = json!({ "program": "(tool/wait {})", "tools": {"wait": {"client": true}},
                        "limits": {"timeout_ms": 3_600_000} });
    let submit = |body: &Value| {
        let (status, _, answer) = server.send("POST", "/v1/runs", &own, body.to_string().as_bytes());
        assert_eq!(status, 202, "{answer}");
        format!("/v1/runs/{}", answer["run_id"].as_str().unwrap())
    };
    let first = submit(&waits);
    let has = |path: &str, status: &str| server.send("GET", path, &own, b"").2["status"] == status;
    server.until(std::time::Duration::from_secs(20), "the first one waits", || has(&first, "waiting"));
    let second = submit(&json!({ "program": "(+ 1 2)" }));
    // Without giving way it would wait for half of the timeout.
    server.until(std::time::Duration::from_secs(60), "the second one is done", || has(&second, "done"));
    assert!(has(&first, "waiting"));
}

/// A check counts as a run of its tenant, and knows only the tools that the tenant sees.
#[test]
fn a_check_counts_as_a_run_and_knows_the_tools_of_its_tenant() {
    let (tool, dir) = (ToolServer::start(), Dir::new("checks"));
    let tenant = |name: &str, more: &str| {
        format!(
            "[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{}\"\n{more}",
            sha256_hex(&format!("token-of-{name}"))
        )
    };
    let tenants = tenant("owner", "runs_per_second = 0.001\nburst = 3\n") + &tenant("guest", "tools = []\n");
    let config = tool.config("ask").replace("[network]", &format!("{tenants}[network]"));
    let server = Server::start(&["--config", &dir.write("service.toml", &config), "--store", &dir.path("ptc.db")]);
    let send = |path: &str, name: &str, program: &str| {
        let body = json!({ "program": program }).to_string();
        server.send("POST", path, &[("Authorization", &*bearer(name))], body.as_bytes())
    };
    let call = "(tool/pay {:k 0 :n 0})";
    assert_eq!(send("/v1/check", "owner", call).2, json!({ "warnings": [] }));
    assert_eq!(send("/v1/check", "guest", call).2["error"]["reason"], "unknown_tool");
    assert_eq!(send("/v1/check", "owner", "1").0, 200);
    assert_eq!(send("/v1/run", "owner", "1").0, 200);
    let (status, headers, _) = send("/v1/check", "owner", "1");
    assert!(status == 429 && headers.contains_key("retry-after"), "{headers:?}");
    assert_eq!(send("/v1/check", "nobody", "1").0, 401);
}
