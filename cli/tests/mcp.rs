//! `ptcl mcp` as a client starts it.

#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

fn start(options: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptcl"));
    command.arg("mcp").args(options).current_dir(std::env::temp_dir());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn initialize() -> Value {
    let about = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

#[test]
fn a_session_on_standard_input_and_output() {
    let mut child = start(&[]);
    let mut input = child.stdin.take().unwrap();
    let run = json!({ "name": "run", "arguments": { "program": "(println 1) (+ 1 2)" } });
    writeln!(input, "{}", initialize()).unwrap();
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
    // The last line has no end.
    write!(input, "{}", json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": run })).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let lines: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let answer = &lines[1]["result"]["structuredContent"];
    assert_eq!((&answer["value"], &answer["prints"]), (&json!(3), &json!(["1"])));
    assert!(answer["usage"]["cpu_us"].is_number(), "it ran in a process of its own: {answer}");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn a_signal_ends_it() {
    let end = |child: &Child| {
        assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    };
    let mut child = start(&["--isolation", "in-process"]);
    // The pipe stays open: nothing but the signal ends it.
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", initialize()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    end(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let mut child = start(&["--isolation", "in-process", "--listen", "127.0.0.1:0"]);
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let body = initialize().to_string();
    let head = format!(
        "POST /mcp HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"name\":\"ptc-lisp\""), "{answer}");
    end(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Sends a request of HTTP/1.0 and returns its response.
fn send(address: &str, head: &str, body: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "{head} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {length}\r\n").unwrap();
    write!(stream, "\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_person_is_told_where_to_approve_and_the_model_is_not() {
    let config = std::env::temp_dir().join(format!("ptc-mcp-ask-{}.toml", std::process::id()));
    std::fs::write(&config, "[tools.pay]\nurl = \"https://pay.example.com/\"\npolicy = \"ask\"\n").unwrap();
    let config = config.display().to_string();
    let mut child = start(&["--isolation", "in-process", "--config", &config]);
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let (url, token) = line.trim().strip_prefix("approvals at ").unwrap().split_once("#token=").unwrap();
    let address = url.strip_prefix("http://").unwrap().strip_suffix('/').unwrap();
    assert!(address.starts_with("127.0.0.1:") && token.len() == 32, "{line}");

    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut result = move |id: u32, name: &str, arguments: Value| -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        if id == 2 {
            writeln!(input, "{}", initialize()).unwrap();
            lines.next().unwrap().unwrap();
        }
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).unwrap();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        answer["result"].clone()
    };
    let paused = result(2, "run", json!({ "program": "(tool/pay {})" }));
    let says = paused["content"][0]["text"].as_str().unwrap();
    assert!(says.contains(url) && !paused.to_string().contains(token), "{paused}");
    let state = &paused["structuredContent"];
    let approved = result(3, "resume", json!({ "token": state["token"], "approve": true }));
    assert!(
        approved["isError"] == true && approved["content"][0]["text"].as_str().unwrap().contains(url),
        "{approved}"
    );
    let call = format!(
        "POST /v1/runs/{}/calls/{}",
        state["run_id"].as_str().unwrap(),
        state["calls"][0]["call"].as_str().unwrap()
    );
    assert!(send(address, &call, "{\"reject\": \"no\"}").contains(" 401 "));
    assert!(send(address, "GET /", "").contains("class=\"approvals\""));
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let body = "{\"reject\": \"not today\"}";
    let head = format!(
        "{call} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: {}",
        body.len()
    );
    write!(stream, "{head}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 200 "), "{answer}");
    let ended = result(4, "resume", json!({ "token": state["token"], "wait_seconds": 50 }));
    assert!(ended["content"][0]["text"].as_str().unwrap().contains("not today"), "{ended}");
    // The pipe to it ends with the closure.
    drop(result);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    std::fs::remove_file(config).unwrap();
}

#[test]
fn wrong_options_say_what_to_do() {
    let tenants = std::env::temp_dir().join(format!("ptc-mcp-tenants-{}.toml", std::process::id()));
    let tenant = "[[tenants]]\nname = \"a\"\n\
                  token_sha256 = \"2348f998744212575d85959674f9607ab26f67708a917157472832386337c904\"\n\
                  [tools.pay]\nurl = \"https://example.com/\"\ninput = {type = \"object\"}\npolicy = \"ask\"\n";
    std::fs::write(&tenants, tenant).unwrap();
    let tenants = tenants.display().to_string();
    for (options, code, wanted) in [
        (&["--listen", "0.0.0.0:0"][..], 2, "add [[tenants]]"),
        (&["--listen", "nonsense"], 2, "--listen"),
        (&["--config", "/no/such/file"], 2, "cannot be read"),
        (&["--config", &tenants], 2, "--tenant NAME"),
        (&["--config", &tenants, "--tenant", "b"], 2, "no tenant b"),
        (&["--tenant", "b"], 2, "no tenant b"),
        (&["--listen", "127.0.0.1:0", "--tenant", "b"], 2, "cannot be used with"),
        (&["--listen", "127.0.0.1:0", "--approvals", "127.0.0.1:0"], 2, "cannot be used with"),
        (&["--approvals", "0.0.0.0:0"], 2, "add [[tenants]]"),
        (&["--store", "/no/such/folder/x.db"], 74, "/no/such/folder/x.db"),
    ] {
        let output = start(&[&["--isolation", "in-process"], options].concat()).wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
        assert!(said.contains(wanted) && output.stdout.is_empty(), "{options:?}: {said}");
        // It does not look like a start.
        assert!(!said.contains("approvals at"), "{options:?}: {said}");
    }
    std::fs::remove_file(tenants).unwrap();
}
