//! Tools of a request that the client answers, described by JSON Schemas; and the prompt that has them.

#![cfg(target_os = "linux")]

mod service;

use serde_json::{Value, json};
use service::{Dir, Server, finished};

fn ask() -> Value {
    json!({
        "client": true,
        "description": "Asks the user. One question at a time.",
        "input": {
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
            "additionalProperties": false,
        },
        "output": { "type": "object", "properties": { "yes": { "type": "boolean" } }, "required": ["yes"] },
    })
}

/// A reply is checked before it is taken, also after the service was killed.
#[test]
fn a_reply_that_does_not_fit_leaves_the_call_open() {
    let dir = Dir::new("client-tools");
    for isolation in ["in-process", "process"] {
        let store = dir.path(&format!("{isolation}.db"));
        let start = || Server::start(&["--isolation", isolation, "--store", &store]);
        let mut server = start();
        let request = json!({ "program": "(:yes (tool/ask {:text \"Go?\"}))", "tools": { "ask": ask() } });
        let (status, state) = server.post("/v1/runs", &request);
        assert_eq!(status, 202, "{state}");
        let run = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
        for is_killed in [false, true] {
            if is_killed {
                server.kill();
                server = start();
            }
            let state = server.state_when(&run, |state| state["calls"][0].is_object());
            assert_eq!(state["calls"][0]["arguments"], json!({ "text": "Go?" }));
            for (reply, wanted) in [
                (json!({ "result": { "yes": "true" } }), "result.yes: expected true or false, got the string"),
                (json!({ "result": {} }), "result.yes: the field is missing"),
                (json!({ "result": null }), "expected a map, got nil"),
            ] {
                let (status, refused) = server.post(&format!("{run}/calls/1"), &reply);
                let detail = refused["detail"].as_str().unwrap_or_default();
                assert!(
                    status == 422 && detail.contains(wanted) && detail.contains("stays open"),
                    "{status} {refused}"
                );
            }
            assert_eq!(server.send("GET", &run, &[], b"").2["status"], "waiting");
        }
        let (status, state) = server.post(&format!("{run}/calls/1"), &json!({ "result": { "yes": true } }));
        assert_eq!(status, 200, "{state}");
        assert_eq!(finished(&server, &run)["answer"]["value"], true);
    }
}

#[test]
fn arguments_that_do_not_fit_are_no_call() {
    let server = Server::start(&[]);
    let request = |program: &str, tool: Value| json!({ "program": program, "tools": { "ask": tool } });
    let (status, answer) = server.post("/v1/run", &request("(tool/ask {:txt 1})", ask()));
    assert_eq!((status, &answer["error"]["reason"]), (200, &json!("invalid_tool_args")), "{answer}");
    assert!(answer["error"]["hint"].as_str().unwrap().contains("(text :string)"), "{answer}");
    let caught = "(try (tool/ask {}) (catch Exception e (:reason e)))";
    assert_eq!(server.post("/v1/run", &request(caught, ask())).1["value"], "invalid_tool_args");
    let mut both = ask();
    both["signature"] = "() -> :int".into();
    let (status, answer) = server.post("/v1/run", &request("1", both));
    let said = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 200 && said.contains("has a signature and a JSON Schema"), "{answer}");
}

#[test]
fn the_prompt_has_the_tools_of_a_request() {
    let dir = Dir::new("prompt");
    let config =
        dir.write("service.toml", "[tools.weather]\nurl = \"https://weather.example.com/\"\nmethod = \"GET\"\n");
    let server = Server::start(&["--isolation", "in-process", "--config", &config]);
    let post = |body: &str| {
        let length = body.len();
        let head =
            format!("POST /v1/prompt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n");
        String::from_utf8(server.raw(format!("{head}\r\n{body}").as_bytes())).unwrap()
    };
    let said = post(&json!({ "tools": { "ask": ask() }, "json_keys": "keywords" }).to_string());
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("text/markdown"), "{said}");
    assert!(said.contains("tool/ask (text :string) -> {yes :bool} ; Asks the user."), "{said}");
    assert!(said.contains("tool/weather ") && said.contains("keys are keywords"), "{said}");
    // A result may be nil, if that is said.
    let nil = json!({ "program": "(nil? (tool/nothing))", "tools": { "nothing": { "returns": null } } });
    assert_eq!(server.post("/v1/run", &nil).1["value"], true);
    // With nothing it is that of the service.
    let (plain, own) = (post("{}"), server.text("/v1/prompt"));
    assert_eq!(plain.split_once("\r\n\r\n").unwrap().1, own.split_once("\r\n\r\n").unwrap().1);
    for (body, wanted) in [
        ("{\"tool\": {}}", "unknown field `tool`"),
        ("[]", "expected a JSON object"),
        (
            "{\"tools\": {\"ask\": {\"client\": true, \"input\": {\"$ref\": \"http://x.example/\"}}}}",
            "which it does not contain",
        ),
        ("{\"tools\": {\"a b\": {\"client\": true}}}", "not a valid tool name"),
    ] {
        let said = post(body);
        assert!(said.starts_with("HTTP/1.1 400") && said.contains(wanted), "{body}: {said}");
    }
}
