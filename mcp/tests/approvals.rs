//! Calls that somebody has to approve: asked by elicitation, in rounds, or by the tool `resume`.

mod support;

use lisp_server::config::Durability;
use lisp_server::store::SqliteStore;
use serde_json::{Value, json};
use support::{Bench, Client, text};

const PAY: &str = "(println \"before\") (:paid (tool/pay {:amount 7}))";

fn forms() -> Value {
    json!({ "elicitation": {} })
}

/// Sends a request; returns the question that comes of it.
async fn question(client: &mut Client, program: &str) -> (u64, Value) {
    let id = client.ask("tools/call", json!({ "name": "run", "arguments": { "program": program } })).await;
    let question = client.message().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    (id, question)
}

async fn say(client: &mut Client, question: &Value, said: Value) -> Value {
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": said })).await;
    client.message().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_approves_lets_the_run_go_on() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(forms()).await;
    let (id, asked) = question(&mut client, PAY).await;
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("Pay 7?") && message.contains("tool/pay {\"amount\":7}"), "{message}");
    assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["approve"]));
    assert_eq!(bench.paid(), 0);
    let answer = say(&mut client, &asked, json!({ "action": "accept", "content": { "approve": true } })).await;
    assert_eq!((answer["id"].as_u64(), text(&answer["result"])), (Some(id), "7"));
    assert_eq!(answer["result"]["structuredContent"]["prints"], json!(["before"]));
    assert_eq!(bench.paid(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_does_not_stops_the_call() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(forms()).await;
    for (said, wanted) in [
        (json!({ "action": "decline" }), "the user declined"),
        (json!({ "action": "accept", "content": { "approve": false } }), "the user said no"),
        (json!({ "action": "accept", "content": { "approve": false, "reason": "too much" } }), "too much"),
    ] {
        let (_, asked) = question(&mut client, PAY).await;
        let answer = say(&mut client, &asked, said).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(text(&answer["result"]).contains(wanted), "{answer}");
    }
    assert_eq!(bench.paid(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_decides_nothing_leaves_the_run_paused() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(forms()).await;
    for said in [json!({ "action": "cancel" }), json!({ "action": "accept", "content": {} }), json!({ "nonsense": 1 })]
    {
        let (_, asked) = question(&mut client, PAY).await;
        let answer = say(&mut client, &asked, said).await;
        assert_eq!(answer["result"]["structuredContent"]["status"], "paused", "{answer}");
    }
    let (_, asked) = question(&mut client, PAY).await;
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32603, "message": "no" } })).await;
    let paused = client.message().await["result"]["structuredContent"].clone();
    let resumed = client.call("resume", json!({ "token": paused["token"], "approve": true })).await;
    assert_eq!((text(&resumed), bench.paid()), ("7", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_calls_are_asked_about_one_after_the_other() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({ "elicitation": { "form": {} } })).await;
    let (_, mut next) = question(&mut client, "(pmap (fn [n] (:paid (tool/pay {:amount n}))) [1 2 3])").await;
    for _ in 0..3 {
        assert_eq!(next["method"], "elicitation/create", "{next}");
        next = say(&mut client, &next, json!({ "action": "accept", "content": { "approve": true } })).await;
    }
    assert_eq!((text(&next["result"]), bench.paid()), ("[1 2 3]", 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_question_cancels_its_run() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(forms()).await;
    let (id, asked) = question(&mut client, PAY).await;
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })).await;
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept", "content": { "approve": true } } })).await;
    assert_eq!(text(&client.run("(+ 1 2)").await), "3");
    let service = bench.mcp.service();
    let tenant = service.config().anonymous().unwrap().name.clone();
    for _ in 0..500 {
        if service.living() == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(service.runs(&tenant, None, 9).unwrap().iter().all(|run| run.status.name() == "done"));
    assert_eq!(bench.paid(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_forms_the_model_goes_on_with_a_token() {
    let bench = Bench::open().await;
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let mut client = bench.client();
        client.initialize(capabilities).await;
        let before = bench.paid();
        let paused = client.run(PAY).await;
        assert_eq!(paused["isError"], false);
        let state = &paused["structuredContent"];
        let token = state["token"].as_str().unwrap();
        assert_eq!((&state["status"], &state["calls"][0]["question"]), (&json!("paused"), &json!("Pay 7?")));
        assert!(state["run_id"].is_string() && token.len() < 80);
        let says = text(&paused);
        assert!(says.contains("Pay 7?") && says.contains(token) && says.contains("the tool resume"), "{says}");
        let resumed = client.call("resume", json!({ "token": token, "approve": true })).await;
        assert_eq!((text(&resumed), bench.paid()), ("7", before + 1));
        assert_eq!(resumed["structuredContent"]["run_id"], state["run_id"]);
        // Once, and once only.
        for decision in
            [json!({ "token": token, "approve": true }), json!({ "token": format!(" {token}\n"), "reject": "no" })]
        {
            let again = client.call("resume", decision).await;
            assert!(text(&again).contains("was used before") && again["isError"] == true, "{again}");
            assert!(again.get("structuredContent").is_none());
        }
        assert_eq!(bench.paid(), before + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_open_what_they_were_made_for_only() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let token =
        async |client: &mut Client| client.run(PAY).await["structuredContent"]["token"].as_str().unwrap().to_owned();
    let first = token(&mut client).await;
    // Every character counts.
    for at in 0..first.len() {
        let mut forged: Vec<char> = first.chars().collect();
        forged[at] = if forged[at] == 'A' { 'B' } else { 'A' };
        let forged: String = forged.into_iter().collect();
        let result = client.call("resume", json!({ "token": forged, "approve": true })).await;
        assert!(text(&result).contains("no token of this server"), "{at}: {result}");
    }
    for forged in ["", "é", &first[1..], &first.repeat(1000)] {
        let result = client.call("resume", json!({ "token": forged, "approve": true })).await;
        assert_eq!(result["isError"], true, "{result}");
    }
    // A decision that does not fit uses the token up, and says the next one.
    let wrong = client.call("resume", json!({ "token": first, "result": 7 })).await;
    assert!(text(&wrong).starts_with("nothing was decided: the call waits to be approved"), "{wrong}");
    let next = wrong["structuredContent"]["token"].as_str().unwrap();
    let refused = client.call("resume", json!({ "token": next, "reject": "not today" })).await;
    assert!(refused["isError"] == true && text(&refused).contains("not today"), "{refused}");
    // Other arguments than those of the program.
    let other = token(&mut client).await;
    let resumed = client.call("resume", json!({ "token": other, "approve": true, "arguments": { "amount": 3 } })).await;
    assert_eq!((text(&resumed), bench.paid()), ("3", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_calls_is_named() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let mut paused = client.run("(pmap (fn [n] (:paid (tool/pay {:amount n}))) [1 2])").await;
    // The second call may have come to wait a little later.
    let without =
        client.call("resume", json!({ "token": paused["structuredContent"]["token"], "approve": true })).await;
    assert_eq!(without["isError"], true, "{without}");
    paused = without;
    let unknown = json!({ "token": paused["structuredContent"]["token"], "call": "99", "approve": true });
    paused = client.call("resume", unknown).await;
    assert!(text(&paused).contains("no such call waits"), "{paused}");
    for _ in 0..2 {
        let state = &paused["structuredContent"];
        let decision = json!({ "token": state["token"], "call": state["calls"][0]["call"], "approve": true });
        paused = client.call("resume", decision).await;
    }
    assert_eq!((text(&paused), bench.paid()), ("[1 2]", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn in_rounds_the_client_sends_its_request_again() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.modern(forms());
    let two = "(+ (:paid (tool/pay {:amount 1})) (:paid (tool/pay {:amount 2})))";
    let mut params = json!({ "name": "run", "arguments": { "program": two } });
    for amount in 1..=2 {
        let result = client.request("tools/call", params.clone()).await["result"].clone();
        assert_eq!(result["resultType"], "input_required", "{result}");
        let (name, form) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(form["method"], "elicitation/create");
        let message = form["params"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("Pay {amount}?")), "{message}");
        params["requestState"] = result["requestState"].clone();
        params["inputResponses"] = json!({ name: { "action": "accept", "content": { "approve": true } } });
    }
    let result = client.request("tools/call", params.clone()).await["result"].clone();
    assert_eq!((text(&result), bench.paid()), ("3", 2));
    // The state is used up, is nobody else's, and belongs to its request.
    let again = client.request("tools/call", params.clone()).await;
    assert!(again["error"]["message"].as_str().unwrap().contains("used before"), "{again}");
    params["requestState"] = json!("AAAA");
    let forged = client.request("tools/call", params.clone()).await;
    assert_eq!(forged["error"]["code"], -32602);
    let params = json!({ "name": "run", "arguments": { "program": PAY } });
    let asked = client.request("tools/call", params).await["result"].clone();
    let other = json!({ "name": "run", "arguments": { "program": "1" }, "requestState": asked["requestState"] });
    assert_eq!(client.request("tools/call", other).await["error"]["code"], -32602);
    let resume = client.call("resume", json!({ "token": asked["requestState"], "approve": true })).await;
    assert!(text(&resume).contains("no token of this server"), "{resume}");
    assert_eq!(bench.paid(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn rounds_without_answers_ask_again_and_refusals_end() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.modern(forms());
    let mut params = json!({ "name": "run", "arguments": { "program": PAY } });
    let first = client.request("tools/call", params.clone()).await["result"].clone();
    params["requestState"] = first["requestState"].clone();
    params["inputResponses"] = json!({ "unknown": { "action": "accept", "content": { "approve": true } } });
    let second = client.request("tools/call", params.clone()).await["result"].clone();
    assert_eq!(second["resultType"], "input_required", "{second}");
    let name = second["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    params["requestState"] = second["requestState"].clone();
    params["inputResponses"] = json!({ name: { "action": "decline" } });
    let declined = client.request("tools/call", params).await["result"].clone();
    assert!(text(&declined).contains("the user declined"), "{declined}");
    client.modern(json!({}));
    let paused = client.run(PAY).await;
    assert_eq!(paused["structuredContent"]["status"], "paused", "{paused}");
    assert_eq!(bench.paid(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_outlives_the_server_that_paused_it() {
    let file = std::env::temp_dir().join(format!("ptc-mcp-{}.db", std::process::id()));
    let store = || Box::new(SqliteStore::open(&file, Durability::Process).unwrap());
    let paused = {
        let bench = Bench::with("", store()).await;
        let mut client = bench.client();
        client.initialize(json!({})).await;
        let paused = client.run("(:paid (tool/pay {:amount 7}))").await;
        // Long enough to be parked.
        bench.mcp.end().await;
        bench.mcp.service().ended().await;
        paused
    };
    let token = &paused["structuredContent"]["token"];
    let bench = Bench::with("", store()).await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let resumed = client.call("resume", json!({ "token": token, "approve": true })).await;
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    assert_eq!(resumed["structuredContent"]["run_id"], paused["structuredContent"]["run_id"], "{resumed}");
    assert_eq!((text(&resumed), bench.paid()), ("7", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_those_of_a_tenant() {
    let more = "[[tenants]]\nname = \"a\"\ntoken_sha256 = \"2348f998744212575d85959674f9607ab26f67708a917157472832386337c904\"\n\n\
                [[tenants]]\nname = \"b\"\ntools = [\"nothing\"]\n\
                token_sha256 = \"1348f998744212575d85959674f9607ab26f67708a917157472832386337c904\"\n";
    let bench = Bench::with(more, Box::new(SqliteStore::in_memory().unwrap())).await;
    let mut nobody = bench.client();
    nobody.leave();
    assert!(nobody.served.await.unwrap().unwrap_err().to_string().contains("--tenant NAME"));
    let mut a = bench.client_of(Some("a"));
    a.initialize(json!({})).await;
    let token = a.run(PAY).await["structuredContent"]["token"].clone();
    let mut b = bench.client_of(Some("b"));
    b.initialize(json!({})).await;
    let refused = b.call("resume", json!({ "token": token, "approve": true })).await;
    assert!(text(&refused).contains("no token of this server"), "{refused}");
    // Tools that it does not see are nowhere.
    assert_eq!(b.call("search", json!({ "words": "pay customer" })).await["structuredContent"]["tools"], json!([]));
    assert_eq!(b.call("describe", json!({ "name": "tool/pay" })).await["isError"], true);
    assert!(!text(&b.run(PAY).await).contains("Pay 7?"));
    let resumed = a.call("resume", json!({ "token": token, "approve": true })).await;
    assert_eq!((text(&resumed), bench.paid()), ("7", 1));
}
