//! Calls that have to be approved: by the user, in a form of the client's or in rounds, or by an approver. Never by the model.

mod support;

use lisp_server::config::Durability;
use lisp_server::runs::ListQuery;
use lisp_server::store::{MemoryStore, SqliteStore};
use serde_json::{Value, json};
use std::sync::Arc;
use support::{APPROVER, Bench, Client, text};

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
    // Clients that make a form of it fill in what is left out.
    assert_eq!(asked["params"]["requestedSchema"]["properties"]["reason"]["default"], "");
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
        (json!({ "action": "accept", "content": { "approve": false } }), "the user rejected the call"),
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
    let paused = client.message().await["result"].clone();
    // The user may be asked once more, and an approver may be faster.
    let token = &paused["structuredContent"]["token"];
    let id = client.ask("tools/call", json!({ "name": "resume", "arguments": { "token": token } })).await;
    let asked = client.message().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    bench.decide(&paused, None, json!({ "approve": true })).await;
    let resumed = client.message().await;
    assert_eq!((resumed["id"].as_u64(), text(&resumed["result"]), bench.paid()), (Some(id), "7", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_calls_are_asked_about_one_after_the_other() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({ "elicitation": { "form": {} } })).await;
    let approve = json!({ "action": "accept", "content": { "approve": true } });
    for is_parked in [false, true] {
        let before = bench.paid();
        let (_, mut next) = question(&mut client, "(pmap (fn [n] (:paid (tool/pay {:amount n}))) [1 2 3])").await;
        for _ in 0..3 {
            assert_eq!(next["method"], "elicitation/create", "{next}");
            if is_parked {
                bench.suspended().await;
            }
            next = say(&mut client, &next, approve.clone()).await;
        }
        assert_eq!((text(&next["result"]), bench.paid() - before), ("[1 2 3]", 3));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_calls_of_a_request_in_rounds_are_asked_about_once() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.modern(forms());
    let program = "(pmap (fn [n] (:paid (tool/pay {:amount n}))) [1 2 3])";
    let mut params = json!({ "name": "run", "arguments": { "program": program } });
    let (mut asked, mut result) = (Vec::new(), client.request("tools/call", params.clone()).await["result"].clone());
    while result["resultType"] == "input_required" {
        bench.suspended().await;
        let questions = result["inputRequests"].as_object().unwrap();
        let said = |name: &String| (name.clone(), json!({ "action": "accept", "content": { "approve": true } }));
        params["inputResponses"] = questions.keys().map(said).collect();
        params["requestState"] = result["requestState"].clone();
        asked.extend(questions.values().map(|form| form["params"]["message"].as_str().unwrap()[..6].to_owned()));
        result = client.request("tools/call", params.clone()).await["result"].clone();
    }
    asked.sort();
    assert_eq!((text(&result), bench.paid(), asked.join(" ").as_str()), ("[1 2 3]", 3, "Pay 1? Pay 2? Pay 3?"));
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
        if service.active_count() == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(
        service
            .runs(&tenant, ListQuery { max: 9, ..ListQuery::default() })
            .await
            .unwrap()
            .runs
            .iter()
            .all(|run| run.status.name() == "done")
    );
    assert_eq!(bench.paid(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_forms_an_approver_decides_and_the_model_cannot() {
    let bench = Bench::open().await;
    bench.mcp.approvals_at("http://127.0.0.1:7/");
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
        for part in ["Pay 7?", token, "the tool resume", "An approver decides at http://127.0.0.1:7/"] {
            assert!(says.contains(part), "{says}");
        }
        assert!(!says.contains(APPROVER) && !says.contains("approve\""), "{says}");
        for decision in [
            json!({ "token": token, "approve": true }),
            json!({ "token": token, "approve": true, "arguments": { "amount": 1 } }),
            json!({ "token": token, "reject": "no" }),
            json!({ "token": "nonsense", "approve": true }),
        ] {
            let refused = client.call("resume", decision.clone()).await;
            assert!(refused["isError"] == true && text(&refused).contains("An approver decides at"), "{refused}");
        }
        // It fits no approval.
        for said in [json!({ "token": token, "result": { "paid": 7 } }), json!({ "token": token, "error": "no" })] {
            let refused = client.call("resume", said).await;
            assert!(
                text(&refused)
                    .starts_with("the reply was not accepted: the call 1 waits to be approved, not for a result"),
                "{refused}"
            );
            assert!(!text(&refused).contains("send {\"approve\""), "{refused}");
            assert_eq!(refused["structuredContent"]["status"], "paused");
        }
        let still = client.call("resume", json!({ "token": token })).await;
        assert_eq!((&still["structuredContent"]["status"], bench.paid()), (&json!("paused"), before));
        bench.decide(&paused, None, json!({ "approve": true })).await;
        // The answer can be had again.
        for _ in 0..2 {
            let resumed = client.call("resume", json!({ "token": format!(" {token}\n") })).await;
            assert_eq!((text(&resumed), bench.paid()), ("7", before + 1));
            assert_eq!(resumed["structuredContent"]["run_id"], state["run_id"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_waits_for_a_decision() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let paused = client.run(PAY).await;
    let token = &paused["structuredContent"]["token"];
    let id = client
        .ask("tools/call", json!({ "name": "resume", "arguments": { "token": token, "wait_seconds": 50 } }))
        .await;
    client.request_while_waiting("ping").await;
    bench.decide(&paused, None, json!({ "approve": true, "arguments": { "amount": 3 } })).await;
    let resumed = client.message().await;
    assert_eq!((resumed["id"].as_u64(), text(&resumed["result"]), bench.paid()), (Some(id), "3", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_open_what_they_were_made_for_only() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let paused = client.run(PAY).await;
    let token = paused["structuredContent"]["token"].as_str().unwrap();
    // Every character counts.
    for at in 0..token.len() {
        let mut forged: Vec<char> = token.chars().collect();
        forged[at] = if forged[at] == 'A' { 'B' } else { 'A' };
        let forged: String = forged.into_iter().collect();
        let result = client.call("resume", json!({ "token": forged })).await;
        assert!(text(&result).contains("not a token of this server"), "{at}: {result}");
    }
    for forged in ["", "é", &token[1..], &token.repeat(1000)] {
        let result = client.call("resume", json!({ "token": forged })).await;
        assert_eq!(result["isError"], true, "{result}");
    }
    bench.decide(&paused, None, json!({ "reject": "not today" })).await;
    let refused = client.call("resume", json!({ "token": token })).await;
    assert!(refused["isError"] == true && text(&refused).contains("not today"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_calls_are_decided_one_by_one() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let mut paused = client.run("(pmap (fn [n] (:paid (tool/pay {:amount n}))) [1 2])").await;
    bench.suspended().await;
    for left in [2, 1] {
        paused = client.call("resume", json!({ "token": paused["structuredContent"]["token"] })).await;
        assert_eq!(paused["structuredContent"]["calls"].as_array().unwrap().len(), left, "{paused}");
        bench.decide(&paused, None, json!({ "approve": true })).await;
        bench.suspended().await;
    }
    let answer = client.call("resume", json!({ "token": paused["structuredContent"]["token"] })).await;
    assert_eq!((text(&answer), bench.paid()), ("[1 2]", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_answers_the_calls_of_its_own_tools() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    // Nobody is asked about them.
    client.initialize(forms()).await;
    let tools = json!({ "ask": { "client": true, "signature": "(n :int) -> :int" } });
    let arguments = json!({ "program": "(pmap (fn [n] (tool/ask {:n n})) [1 2])", "tools": tools });
    let first = client.call("run", arguments).await;
    bench.suspended().await;
    let token = &first["structuredContent"]["token"];
    let paused = client.call("resume", json!({ "token": token })).await;
    let calls = &paused["structuredContent"]["calls"];
    assert!(text(&paused).contains("What is its result?") && !text(&paused).contains("pprover"), "{paused}");
    let token = &paused["structuredContent"]["token"];
    let which = client.call("resume", json!({ "token": token, "result": 1 })).await;
    assert!(text(&which).starts_with("several calls are open; name one of them with \"call\""), "{which}");
    let unknown = client.call("resume", json!({ "token": token, "call": "99", "result": 1 })).await;
    assert!(text(&unknown).starts_with("the reply was not accepted: no open call matches"), "{unknown}");
    let one = json!({ "token": token, "call": calls[0]["call"], "result": 10 });
    client.call("resume", one.clone()).await;
    let two = json!({ "token": token, "call": calls[1]["call"], "error": "I do not know" });
    // The same once more has the same answer, and something else is a conflict.
    for _ in 0..2 {
        let failed = client.call("resume", two.clone()).await;
        assert!(failed["isError"] == true && text(&failed).contains("I do not know"), "{failed}");
    }
    let again = client.call("resume", one).await;
    assert!(text(&again).contains("I do not know"), "{again}");
    let other = client.call("resume", json!({ "token": token, "call": calls[1]["call"], "result": 5 })).await;
    assert!(other["isError"] == true && text(&other).starts_with("conflict: "), "{other}");
    for (tools, wanted) in [
        (json!({ "pay": { "client": true } }), "the server has a tool of this name"),
        (json!({ "x": { "returns": 1 } }), "must have \"client\": true"),
    ] {
        let refused = client.call("run", json!({ "program": "1", "tools": tools })).await;
        assert!(refused["isError"] == true && text(&refused).contains(wanted), "{refused}");
    }
}

/// A token is for the calls that the run waited for when it was made, whether one of them is named or not.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_token_answers_no_later_call() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(forms()).await;
    let program = "(def a (tool/ask {:n 1})) (def b (tool/ask {:n 2})) [a b]";
    let first = client.call("run", json!({ "program": program, "tools": { "ask": { "client": true } } })).await;
    let old = &first["structuredContent"]["token"];
    let second = client.call("resume", json!({ "token": old, "result": "A" })).await;
    let (token, call) = (&second["structuredContent"]["token"], &second["structuredContent"]["calls"][0]["call"]);
    assert!(call.is_string() && *call != first["structuredContent"]["calls"][0]["call"], "{second}");
    for said in [json!({ "token": old, "result": "B" }), json!({ "token": old, "call": call, "result": "B" })] {
        let refused = client.call("resume", said).await;
        assert!(refused["isError"] == true && refused["structuredContent"]["calls"][0]["call"] == *call, "{refused}");
    }
    let done = client.call("resume", json!({ "token": token, "call": call, "result": "C" })).await;
    assert_eq!(done["structuredContent"]["value"], json!(["A", "C"]), "{done}");
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
    // The same request has the same answer, and another decision is none.
    let again = client.request("tools/call", params.clone()).await["result"].clone();
    assert_eq!((text(&again), bench.paid()), ("3", 2));
    let mut otherwise = params.clone();
    for answer in otherwise["inputResponses"].as_object_mut().unwrap().values_mut() {
        *answer = json!({ "action": "decline" });
    }
    let otherwise = client.request("tools/call", otherwise).await;
    assert!(
        otherwise["error"]["message"].as_str().unwrap().contains("already has a different decision"),
        "{otherwise}"
    );
    // The state belongs to its request.
    params["requestState"] = json!("AAAA");
    let forged = client.request("tools/call", params.clone()).await;
    assert_eq!(forged["error"]["code"], -32602);
    let params = json!({ "name": "run", "arguments": { "program": PAY } });
    let asked = client.request("tools/call", params).await["result"].clone();
    let other = json!({ "name": "run", "arguments": { "program": "1" }, "requestState": asked["requestState"] });
    assert_eq!(client.request("tools/call", other).await["error"]["code"], -32602);
    let resume = client.call("resume", json!({ "token": asked["requestState"] })).await;
    assert!(text(&resume).contains("not a token of this server"), "{resume}");
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
    let store = || Arc::new(SqliteStore::open(&file, Durability::Process).unwrap());
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
    bench.decide(&paused, None, json!({ "approve": true })).await;
    let resumed = client.call("resume", json!({ "token": token })).await;
    for suffix in ["", "-wal", "-shm", "-lock"] {
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
    let bench = Bench::with(more, Arc::new(MemoryStore::new())).await;
    let mut nobody = bench.client();
    nobody.leave();
    assert!(nobody.served.await.unwrap().unwrap_err().to_string().contains("--tenant NAME"));
    let mut a = bench.client_of(Some("a"));
    a.initialize(json!({})).await;
    let paused = a.run(PAY).await;
    assert!(text(&paused).contains("no approver is configured"), "{paused}");
    let token = &paused["structuredContent"]["token"];
    let mut b = bench.client_of(Some("b"));
    b.initialize(json!({})).await;
    let refused = b.call("resume", json!({ "token": token })).await;
    assert!(text(&refused).contains("not a token of this server"), "{refused}");
    // Tools that it does not see are nowhere.
    assert_eq!(b.call("search", json!({ "words": "pay customer" })).await["structuredContent"]["tools"], json!([]));
    assert_eq!(b.call("describe", json!({ "name": "tool/pay" })).await["isError"], true);
    assert!(!text(&b.run(PAY).await).contains("Pay 7?"));
    bench.decide(&paused, None, json!({ "approve": true })).await;
    let resumed = a.call("resume", json!({ "token": token })).await;
    assert_eq!((text(&resumed), bench.paid()), ("7", 1));
}

/// A result for a call that another client has answered is a conflict, also if an earlier call got the same result.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_was_not_taken_is_a_conflict() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let tools = json!({ "ask": { "client": true } });
    let arguments = json!({ "program": "[(tool/ask {:n 1}) (tool/ask {:n 2})]", "tools": tools });
    let first = client.call("run", arguments).await["structuredContent"]["token"].clone();
    let second = client.call("resume", json!({ "token": first, "result": 7 })).await;
    let token = &second["structuredContent"]["token"];
    bench.decide(&second, None, json!({ "result": 8 })).await;
    for call in [json!(null), json!("2")] {
        let lost = client.call("resume", json!({ "token": token, "call": call, "result": 7 })).await;
        assert!(lost["isError"] == true && text(&lost).starts_with("conflict: "), "{call}: {lost}");
        let same = client.call("resume", json!({ "token": token, "call": call, "result": 8 })).await;
        assert_eq!(text(&same), "[7 8]", "{call}: {same}");
        // The first call has this result, and its token is for that call.
        let same = client.call("resume", json!({ "token": first, "call": null, "result": 7 })).await;
        assert_eq!(text(&same), "[7 8]", "{call}: {same}");
        let other = client.call("resume", json!({ "token": first, "result": 8 })).await;
        assert!(other["isError"] == true && text(&other).starts_with("conflict: "), "{other}");
    }
}
