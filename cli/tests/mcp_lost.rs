//! `ptcl mcp` is killed before its client has read an answer: the run is found again, and answers as it would have.

#![cfg(target_os = "linux")]

mod service;

use serde_json::{Value, json};
use service::{Dir, ToolServer, request};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// A client of a server that it has started.
struct Client {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// The approvals page, and the token for it.
    approvals: String,
    approver: String,
    next: u64,
}

impl Client {
    fn start(store: &str, config: &str) -> Client {
        let mut child = service::ptcl()
            .args(["mcp", "--isolation", "in-process", "--store", store, "--config", config])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let (url, token) = line.trim().strip_prefix("approvals at http://").unwrap().split_once("/#token=").unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (approvals, approver) = (url.to_owned(), token.to_owned());
        let mut client = Client { child, input, lines, approvals, approver, next: 0 };
        let about = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
        client.send("initialize", params);
        client.read();
        writeln!(client.input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
        client
    }

    fn send(&mut self, method: &str, params: Value) {
        self.next += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        writeln!(self.input, "{request}").unwrap();
    }

    fn read(&mut self) -> Value {
        let answer: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], self.next, "{answer}");
        answer["result"].clone()
    }

    /// Sends a request whose answer nobody reads.
    fn ask(&mut self, tool: &str, arguments: Value) {
        self.send("tools/call", json!({ "name": tool, "arguments": arguments }));
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask(tool, arguments);
        self.read()
    }

    /// Asks as an approver.
    fn approver(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {}", self.approver);
        let headers = [("Authorization", bearer.as_str())];
        let (status, _, answer) = request(&self.approvals, method, path, &headers, body.to_string().as_bytes());
        (status, answer)
    }

    /// The only run, once it is so.
    fn run_when(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let list = self.approver("GET", "/v1/runs", &Value::Null).1;
            if is_so(&list["runs"][0]) {
                return list["runs"][0].clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "waited for {what}: {list}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

/// The token of the only run that is listed.
fn found(client: &mut Client, status: &str) -> Value {
    let listed = client.call("runs", json!({}));
    let runs = listed["structuredContent"]["runs"].as_array().unwrap();
    assert!(runs.len() == 1 && runs[0]["status"] == status, "{listed}");
    assert_eq!(runs[0]["program"], "(:n (tool/pay {:k 1 :n 7}))");
    assert!(!listed.to_string().contains(&client.approver), "{listed}");
    runs[0]["token"].clone()
}

#[test]
fn a_run_whose_answer_was_lost_is_found_after_a_kill() {
    let (dir, tools) = (Dir::new("mcp-lost"), ToolServer::start());
    let (store, config) = (dir.path("ptc.db"), dir.write("service.toml", &tools.config("ask")));
    let start = || Client::start(&store, &config);

    // The run waits for an approver, and nobody has heard of it.
    let mut client = start();
    client.ask("run", json!({ "program": "; pays\n(:n (tool/pay {:k 1 :n 7}))" }));
    client.run_when("an open call", |run| run["calls"][0].is_object());
    client.kill();

    let mut client = start();
    let token = found(&mut client, "waiting");
    let paused = client.call("resume", json!({ "token": token }));
    assert_eq!(paused["structuredContent"]["status"], "paused", "{paused}");
    let decided = client.call("resume", json!({ "token": token, "approve": true }));
    assert!(decided["isError"] == true && tools.count(1, 7) == 0, "{decided}");

    // The answer is made, and lost.
    client.ask("resume", json!({ "token": token, "wait_seconds": 50 }));
    let run = client.run_when("an open call", |run| run["calls"][0].is_object());
    let call =
        format!("/v1/runs/{}/calls/{}", run["run_id"].as_str().unwrap(), run["calls"][0]["call"].as_str().unwrap());
    assert_eq!(client.approver("POST", &call, &json!({ "approve": true })).0, 200);
    client.run_when("the answer", |run| run["status"] == "done");
    client.kill();

    // The token that was used before, and one of the list, have the answer, as often as they are asked.
    let mut client = start();
    let listed = found(&mut client, "done");
    for token in [&token, &listed, &token] {
        let answer = client.call("resume", json!({ "token": token }));
        assert_eq!((text(&answer), &answer["structuredContent"]["run_id"]), ("7", &run["run_id"]), "{answer}");
    }
    assert_eq!(tools.count(1, 7), 1);
}

/// The result of a client's tool is taken before the answer is lost: the same result again gets the same answer.
#[test]
fn a_result_that_was_taken_before_a_kill_is_not_another() {
    let dir = Dir::new("mcp-result");
    let ask = "[tools.pay]\nurl = \"https://pay.example.com/\"\npolicy = \"ask\"\n";
    let (store, config) = (dir.path("ptc.db"), dir.write("service.toml", ask));
    let mut client = Client::start(&store, &config);
    let tools = json!({ "ask": { "client": true } });
    let paused = client.call("run", json!({ "program": "(inc (tool/ask {}))", "tools": tools }));
    let token = paused["structuredContent"]["token"].clone();
    client.ask("resume", json!({ "token": token, "result": 41 }));
    client.run_when("the answer", |run| run["status"] == "done");
    client.kill();
    let mut client = Client::start(&store, &config);
    for _ in 0..2 {
        assert_eq!(text(&client.call("resume", json!({ "token": token, "result": 41 }))), "42");
    }
    let other = client.call("resume", json!({ "token": token, "result": 1 }));
    assert!(other["isError"] == true && text(&other).starts_with("conflict: "), "{other}");
}
