//! Checks of programs by the service.

use crate::service::{Dir, Server};
use serde_json::{Value, json};

/// A check of a program: nothing runs, wherever programs run.
#[test]
fn a_program_is_checked_without_running_it() {
    let dir = Dir::new("check");
    let config = dir.write("service.toml", "check = \"off\"\n");
    for isolation in ["process", "in-process"] {
        let server = Server::start(&["--config", &config, "--isolation", isolation]);
        let tools = json!({
            "pay": { "client": true, "signature": "(to :string, amount :int) -> {receipt :string}" },
            "log": { "client": true, "input": { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"], "additionalProperties": false } },
        });
        let check = |program: &str, setup: &[&str]| {
            let data = json!({ "orders": [{ "total": 9, "status": "paid" }] });
            let request = json!({ "id": 7, "program": program, "setup": setup, "data": data, "tools": tools });
            server.post("/v1/check", &request)
        };
        let found = |program: &str| {
            let (status, report) = check(program, &["(defn total [order] (:totl order))"]);
            assert!(
                status == 200 && report["id"] == 7 && report.get("error").is_none(),
                "{isolation} {program}: {report}"
            );
            let warnings = report["warnings"].as_array().unwrap().clone();
            let parts = |warning: &Value| (warning["kind"].clone(), warning["line"].clone(), warning["repair"].clone());
            warnings.iter().map(parts).collect::<Vec<_>>()
        };
        assert_eq!(found("(println 1)\n(tool/pay {:to \"a\" :amount (:total (first data/orders))})"), []);
        assert_eq!(
            found(
                "(filter #(= (:status %) :paid) data/orders)\n(tool/log {:txt \"\"})\n(:reciept (tool/pay {:to \"a\" :amuont 1}))"
            ),
            [
                (json!("never_equal"), json!(1), json!("write \"paid\"")),
                (json!("unknown_argument"), json!(2), json!("write :text")),
                (json!("unknown_key"), json!(3), json!("write :receipt")),
                (json!("unknown_argument"), json!(3), json!("write :amount")),
            ],
            "{isolation}"
        );
        for (program, setup, reason) in [
            ("(", &[][..], "parse_error"),
            ("(nope)", &[], "unbound_var"),
            ("(tool/pya {})", &[], "unknown_tool"),
            ("(total {})", &["(defn total [x] x)", "(tool/log {:text \"x\"})"], "tool_denied"),
            ("1", &["(dotimes [n 1000000000] n)"], "timeout"),
        ] {
            let mut request = json!({ "program": program, "setup": setup, "tools": tools });
            if reason == "timeout" {
                request["limits"] = json!({ "timeout_ms": 200, "loop_iterations": 0 });
            }
            let (status, report) = server.post("/v1/check", &request);
            assert_eq!(
                (status, &report["error"]["reason"], &report["warnings"]),
                (200, &json!(reason), &json!([])),
                "{report}"
            );
        }
        assert_eq!(server.send("GET", "/v1/runs", &[], b"").2["runs"], json!([]));
        for body in [&b"{\"program\": \"1\", \"domain\": \"d\"}"[..], b"{\"progam\": \"1\"}", b"[]", b"{"] {
            assert_eq!(server.send("POST", "/v1/check", &[], body).0, 400);
        }
        assert_eq!(server.send("POST", "/v1/check?stream", &[], b"{\"program\": \"1\"}").0, 400);
    }
}
