//! Policies, tenants, addresses and limits that change while a run waits.

use crate::life::{Life, stores, until};
use crate::tool::ToolServer;
use lisp_server::store::{Batch, End, NewRun, Room, RunStatus, Store, StoredReply};
use serde_json::{Value, json};
use std::sync::Arc;

const ASK: &str = "policy = \"ask\"";
const PAY: &str = "(tool/pay {})";

fn tenant(more: &str) -> String {
    format!("[[tenants]]\nname = \"a\"\ntoken_sha256 = \"{}\"\n{more}\n", "a".repeat(64))
}

/// Starts a run whose call waits for approval, and approves it: in the next service, or between the two.
fn approved_later(store: &Arc<dyn Store>, (before, after): (&str, &str), is_between: bool) -> Value {
    let first = Life::open(store, before);
    let run_id = first.submit(&json!({ "program": PAY }));
    assert_eq!(first.asked(&run_id), "gate");
    first.stop();
    if is_between {
        let reply =
            StoredReply { call: "1".into(), phase: "gate".into(), body: json!({ "approve": true }).to_string() };
        tokio::runtime::Runtime::new().unwrap().block_on(store.reply(&run_id, reply)).unwrap();
    }
    let second = Life::open(store, after);
    if !is_between {
        second.reply(&run_id, "1", json!({ "approve": true }));
    }
    let answer = second.done(&run_id);
    second.stop();
    answer
}

#[test]
fn an_approval_is_not_executed_when_the_policy_denies() {
    for store in stores("deny").iter() {
        for is_between in [true, false] {
            let server = ToolServer::start();
            let config = |policy| server.config("pay", policy) + &server.network();
            let answer = approved_later(store, (&config(ASK), &config("policy = \"deny\"")), is_between);
            assert_eq!((&answer["error"]["reason"], server.count("pay")), (&json!("tool_denied"), 0), "{answer}");
            // With the same policy it is.
            let answer = approved_later(store, (&config(ASK), &config(ASK)), is_between);
            assert_eq!((&answer["value"], server.count("pay")), (&json!(1), 1), "{answer}");
        }
    }
}

#[test]
fn an_approval_is_not_executed_when_the_tool_is_not_the_tenants_any_more() {
    for store in stores("taken").iter() {
        let server = ToolServer::start();
        let config =
            |tools: &str| server.config("pay", ASK) + &server.network() + &tenant(&format!("tools = [{tools}]"));
        let first = Life::open(store, &config("\"pay\""));
        let run_id = first.submit(&json!({ "program": PAY }));
        assert_eq!(first.asked(&run_id), "gate");
        first.stop();
        // It does not exist for the tenant: the run waits until it does.
        let second = Life::open(store, &config("\"other*\""));
        second.reply(&run_id, "1", json!({ "approve": true }));
        let state = second.state_when(&run_id, |state| state.status == RunStatus::Stuck);
        assert!(state.error.is_some_and(|why| why.contains("pay")));
        assert_eq!(server.count("pay"), 0);
        second.stop();
        let third = Life::open(store, &config("\"pay\""));
        assert_eq!((&third.done(&run_id)["value"], server.count("pay")), (&json!(1), 1));
        third.stop();
        let server = ToolServer::start();
        let config =
            |tools: &str| server.config("pay", ASK) + &server.network() + &tenant(&format!("tools = [{tools}]"));
        let answer = approved_later(store, (&config("\"pay\""), &config("\"p*\"")), false);
        assert_eq!((&answer["value"], server.count("pay")), (&json!(1), 1), "{answer}");
    }
}

#[test]
fn an_approved_call_goes_to_the_address_of_today() {
    for store in stores("address").iter() {
        let (old, new) = (ToolServer::start(), ToolServer::start());
        let config = |server: &ToolServer| server.config("pay", ASK) + &server.network();
        let answer = approved_later(store, (&config(&old), &config(&new)), false);
        assert_eq!((&answer["value"], old.count("pay"), new.count("pay")), (&json!(1), 0, 1), "{answer}");
    }
}

const BURN: &str = "(do (tool/ask {}) (reduce + (map inc (range 20000))))";

fn burning() -> Value {
    json!({ "program": BURN, "tools": {"ask": {"client": true}} })
}

/// A limit that was lowered while a run waited ends it, whichever table it is in. One that was raised does not help it.
#[test]
fn a_ceiling_of_today_holds_in_the_next_attempt() {
    let low = "fuel = 20000";
    let tables = [
        (String::new(), String::new(), None),
        (String::new(), format!("[ceiling]\n{low}"), Some("fuel_exhausted")),
        (tenant(""), tenant(&format!("ceiling = {{ {low} }}")), Some("fuel_exhausted")),
        (String::new(), format!("[limits]\n{low}"), Some("fuel_exhausted")),
        (format!("[ceiling]\n{low}"), String::new(), Some("fuel_exhausted")),
    ];
    for store in stores("ceiling").iter() {
        for (before, after, reason) in &tables {
            let first = Life::open(store, before);
            let run_id = first.submit(&burning());
            first.asked(&run_id);
            first.stop();
            let second = Life::open(store, after);
            second.reply(&run_id, "1", json!({ "result": 1 }));
            let answer = second.done(&run_id);
            assert_eq!(answer["error"]["reason"].as_str(), *reason, "{before}, then {after}: {answer}");
            second.stop();
        }
    }
}

/// The fuel of another cost schedule means nothing today: the ceiling of today is the limit then.
#[test]
fn a_run_of_another_cost_schedule_has_the_ceiling_of_today() {
    for store in stores("schedule").iter() {
        let first = Life::open(store, "");
        let run_id = first.submit(&burning());
        first.asked(&run_id);
        first.stop();
        for (ceiling, reason) in [("", None), ("[ceiling]\nfuel = 20000", Some("fuel_exhausted"))] {
            let older: Arc<dyn Store> = Arc::new(lisp_server::store::MemoryStore::new());
            tokio::runtime::Runtime::new().unwrap().block_on(copy_as_older(store, &older, &run_id));
            let second = Life::open(&older, ceiling);
            second.reply(&run_id, "1", json!({ "result": 1 }));
            let answer = second.done(&run_id);
            assert_eq!(answer["error"]["reason"].as_str(), reason, "{ceiling}: {answer}");
            if reason.is_none() {
                assert!(answer["limits"]["fuel"].as_u64() != Some(0), "{answer}");
            }
            second.stop();
        }
    }
}

/// Copies a suspended run, as a version with another cost schedule would have written it.
async fn copy_as_older(from: &Arc<dyn Store>, to: &Arc<dyn Store>, run_id: &str) {
    let (run, journal) = (from.run(run_id).await.unwrap().unwrap(), from.journal(run_id).await.unwrap());
    let mark = "\"cost_schedule\":";
    assert_eq!(journal.text.matches(mark).count(), 1, "{}", journal.text);
    let text = journal.text.replace(mark, &format!("{mark}9"));
    let tenant = run.summary.tenant;
    let new = NewRun { run_id: run_id.to_owned(), tenant: tenant.clone(), request: run.request.to_string() };
    to.submit(new, None).await.unwrap();
    let room = Room { slots: 1, tenants: vec![(tenant, 1)] };
    let claim = to.claim("older", std::time::Duration::from_secs(60), &room).await.unwrap().remove(0);
    let lines = text.split_inclusive('\n').map(str::to_owned).collect();
    let batch = Batch { first_line: 1, lines, first_event: 1, opened: run.summary.calls, ..Batch::default() };
    to.end(&claim.lease, batch, End::Suspended(0)).await.unwrap();
    assert_eq!(to.run(run_id).await.unwrap().unwrap().summary.status, RunStatus::Waiting);
}

/// A call that had started is not made again when the policy denies it by now, whether its tool reads or an approver wants it.
#[test]
fn a_started_call_is_not_made_again_when_the_policy_denies() {
    for store in stores("again").iter() {
        for effect in ["read", "write"] {
            let server = ToolServer::start();
            let config =
                |policy: &str| server.config("pay", &format!("effect = \"{effect}\"\n{policy}")) + &server.network();
            server.hold(true);
            let first = Life::open(store, &config("policy = \"allow\""));
            let run_id = first.submit(&json!({ "program": PAY }));
            until("the call", || server.count("pay") == 1);
            first.crash();
            server.hold(false);
            let second = Life::open(store, &config("policy = \"deny\""));
            if effect == "write" {
                assert_eq!(second.asked(&run_id), "unknown1");
                second.reply(&run_id, "1", json!({ "approve": true, "phase": "unknown1" }));
            }
            let answer = second.done(&run_id);
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("was denied") && server.count("pay") == 1, "{effect}: {answer}");
            second.stop();
        }
    }
}
