//! Durable runs that are cancelled while they do not run: their answers have the calls and prints of their journals, and nothing
//! is called for that.

#[path = "support/life.rs"]
mod life;
#[path = "support/tool.rs"]
mod tool;

use life::{Life, stores, until};
use serde_json::{Value, json};
use tool::ToolServer;

/// Returns the names and statuses of the calls in an answer, whose run must have been cancelled after it printed.
fn calls(answer: &Value) -> Vec<(String, String)> {
    assert_eq!(
        (&answer["verdict"], &answer["error"]["reason"]),
        (&json!("cancelled"), &json!("cancelled")),
        "{answer}"
    );
    assert_eq!((&answer["prints"], answer.get("value")), (&json!(["before"]), None), "{answer}");
    // Nothing is missing.
    assert_eq!(answer["truncated"], json!({}), "{answer}");
    let text = |call: &Value, name: &str| call[name].as_str().unwrap().to_owned();
    let ledger = answer["ledger"].as_array().unwrap();
    ledger.iter().map(|call| (text(call, "name"), text(call, "status"))).collect()
}

fn named<const N: usize>(calls: [(&str, &str); N]) -> Vec<(String, String)> {
    calls.map(|(name, status)| (name.to_owned(), status.to_owned())).to_vec()
}

/// The run waits for its client, in this service or for the next one.
#[test]
fn a_suspended_run_has_the_calls_it_made() {
    for store in stores("suspended").iter() {
        for is_between in [false, true] {
            let server = ToolServer::start();
            let config = server.config("pay", "effect = \"write\"") + &server.network();
            let first = Life::open(store, &config);
            let program = "(do (println \"before\") (tool/pay {}) (tool/ask {}) (println \"after\") (tool/pay {}))";
            let run_id = first.submit(&json!({ "program": program, "tools": {"ask": {"client": true}} }));
            assert_eq!(first.asked(&run_id), "result");
            until("it is suspended", || first.service.active_count() == 0);
            let last = match is_between {
                false => first,
                true => {
                    first.stop();
                    Life::open(store, &config)
                }
            };
            last.block_on(last.service.cancel("anonymous", &run_id)).unwrap();
            let answer = last.done(&run_id);
            assert_eq!(calls(&answer), named([("pay", "ok"), ("ask", "unknown")]), "{answer}");
            assert_eq!(server.count("pay"), 1);
            last.stop();
        }
    }
}

/// The call that was in progress when the service was killed is in the answer, and is not made again.
#[test]
fn a_run_that_is_asked_about_has_the_unknown_call() {
    for store in stores("unknown").iter() {
        let server = ToolServer::start();
        let config = ["pay", "slow"].map(|name| server.config(name, "effect = \"write\"")).concat() + &server.network();
        let first = Life::open(store, &config);
        let run_id = first
            .submit(&json!({ "program": "(do (println \"before\") (tool/pay {}) (tool/ask {}) (tool/slow {}))", "tools": {"ask": {"client": true}} }));
        first.asked(&run_id);
        server.hold(true);
        first.reply(&run_id, "2", json!({ "result": 1 }));
        until("the call", || server.count("slow") == 1);
        first.crash();
        let second = Life::open(store, &config);
        assert_eq!(second.asked(&run_id), "unknown1");
        until("it is suspended", || second.service.active_count() == 0);
        let before = second.block_on(store.journal(&run_id)).unwrap().text;
        second.block_on(second.service.cancel("anonymous", &run_id)).unwrap();
        let answer = second.done(&run_id);
        assert_eq!(calls(&answer), named([("pay", "ok"), ("ask", "ok"), ("slow", "unknown")]), "{answer}");
        assert_eq!((server.count("pay"), server.count("slow")), (1, 1));
        assert_eq!(second.block_on(store.journal(&run_id)).unwrap().text, before, "nothing more has happened");
        server.hold(false);
        second.stop();
    }
}
