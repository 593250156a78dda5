//! The tool `runs`: it finds runs whose answers were lost, of one tenant, and decides nothing.

mod support;

use lisp_server::store::MemoryStore;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use support::{APPROVER, Bench, Client, text};

const TOOLS: &str = r#"{"ask": {"client": true}}"#;

async fn ask(client: &mut Client, program: &str) -> Value {
    let tools: Value = serde_json::from_str(TOOLS).unwrap();
    client.call("run", json!({ "program": program, "tools": tools })).await
}

fn runs(listed: &Value) -> &Vec<Value> {
    listed["structuredContent"]["runs"].as_array().unwrap_or_else(|| panic!("no runs in {listed}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_run_is_found_and_resumed() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let none = client.call("runs", json!({})).await;
    assert!(runs(&none).is_empty() && text(&none).starts_with("no runs"), "{none}");
    ask(&mut client, "; asks\n\n(inc\n (tool/ask {:n 1}))").await;
    client.run("(:paid (tool/pay {:amount 7}))").await;
    let listed = client.call("runs", json!({})).await;
    let found = runs(&listed);
    // The newest first.
    assert_eq!(
        (&found[0]["program"], &found[1]["program"]),
        (&json!("(:paid (tool/pay {:amount 7}))"), &json!("(inc"))
    );
    assert_eq!(found[0]["calls"], json!([{ "call": "1", "name": "pay" }]));
    assert!(found[0]["status"] == "waiting" && found[0]["age_seconds"].as_u64() < Some(60), "{listed}");
    let said = text(&listed);
    assert!(said.contains("waits for tool/pay") && said.contains("call resume with its token"), "{said}");
    assert!(!listed.to_string().contains(APPROVER) && !said.contains("approve"), "{listed}");

    // The token of the list is one for resume, and decides nothing.
    let (pay, asks) = (&found[0]["token"], &found[1]["token"]);
    let refused = client.call("resume", json!({ "token": pay, "approve": true })).await;
    assert!(refused["isError"] == true && bench.paid() == 0, "{refused}");
    let answered = client.call("resume", json!({ "token": asks, "result": 41 })).await;
    assert_eq!(text(&answered), "42");
    // The same once more has the same answer, and so has the token alone, and one of a new list.
    let again = client.call("resume", json!({ "token": asks, "result": 41 })).await;
    assert_eq!((text(&again), &again["structuredContent"]), ("42", &answered["structuredContent"]));
    assert_eq!(text(&client.call("resume", json!({ "token": asks })).await), "42");
    let done = client.call("runs", json!({ "status": "done" })).await;
    assert_eq!(runs(&done).len(), 1);
    let token = &runs(&done)[0]["token"];
    assert_eq!(text(&client.call("resume", json!({ "token": token })).await), "42");

    bench.decide(&json!({ "structuredContent": found[0] }), None, json!({ "approve": true })).await;
    let paid = client.call("resume", json!({ "token": pay, "wait_seconds": 50 })).await;
    assert_eq!((text(&paid), bench.paid()), ("7", 1));
    for (arguments, wanted) in [
        (json!({ "state": "done" }), "unknown argument \"state\"; runs takes status, cursor"),
        (json!({ "status": "lost" }), "status must be one of queued, running, waiting, stuck, done"),
        (json!({ "cursor": 5 }), "cursor must be the `next` of an earlier page"),
        (json!({ "cursor": "x" }), "is not the cursor of a page"),
    ] {
        let failed = client.call("runs", arguments.clone()).await;
        assert!(failed["isError"] == true && text(&failed).contains(wanted), "{arguments}: {failed}");
    }
}

/// A page has a bounded size, whatever the runs are, and its cursor leads to the next one.
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_bounded_and_complete() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let long = "x".repeat(3_000);
    let name = "t".repeat(150);
    for n in 0..23 {
        let program = format!("(do \"{n} {long}\u{202e}\" (pmap (fn [n] (tool/{name} {{:n n}})) (range 6)))");
        let tools = json!({ name.clone(): { "client": true } });
        client.call("run", json!({ "program": program, "tools": tools })).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let listed = client.call("runs", json!({ "cursor": cursor, "status": "waiting" })).await;
        assert!(text(&listed).len() <= 3_300, "{} bytes: {listed}", text(&listed).len());
        assert!(listed["structuredContent"].to_string().len() <= 8_000, "{listed}");
        assert!(!listed.to_string().contains('\u{202e}'), "{listed}");
        seen.extend(runs(&listed).iter().map(|run| {
            let program = run["program"].as_str().unwrap();
            assert!(program.len() <= 103 && run["calls"].as_array().unwrap().len() <= 4, "{run}");
            program.strip_prefix("(do \"").unwrap().split(' ').next().unwrap().parse::<u32>().unwrap()
        }));
        match listed["structuredContent"].get("next") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(seen, (0..23).rev().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_other_tenants_are_not_there() {
    let digest =
        |token: &str| Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let tenant = |name: &str| format!("[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{}\"\n", digest(name));
    let more = format!("{}{}", tenant("a"), tenant("b"));
    let bench = Bench::with(&more, Arc::new(MemoryStore::new())).await;
    let (mut a, mut b) = (bench.client_of(Some("a")), bench.client_of(Some("b")));
    a.initialize(json!({})).await;
    b.initialize(json!({})).await;
    ask(&mut a, "(tool/ask {:of \"a\"})").await;
    ask(&mut b, "(tool/ask {:of \"b\"})").await;
    let (of_a, of_b) = (a.call("runs", json!({})).await, b.call("runs", json!({})).await);
    assert!(runs(&of_a).len() == 1 && of_a.to_string().contains("{:of \\\"a\\\"}"), "{of_a}");
    assert!(runs(&of_b).len() == 1 && of_b.to_string().contains("{:of \\\"b\\\"}"), "{of_b}");
    // The tokens of one do not work for the other.
    let refused = b.call("resume", json!({ "token": runs(&of_a)[0]["token"] })).await;
    assert!(text(&refused).contains("not a token of this server"), "{refused}");
    // The cursor of one shows nothing of the other.
    let run = &runs(&of_a)[0];
    let cursor = format!("{}.{}", i64::MAX, run["run_id"].as_str().unwrap());
    assert_eq!(runs(&b.call("runs", json!({ "cursor": cursor })).await).len(), 1);
}
