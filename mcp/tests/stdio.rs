//! Clients on a pair of streams: the messages, each tool, and what is no message.

mod support;

use lisp_mcp::Mcp;
use lisp_server::config::Config;
use lisp_server::runs::{ListQuery, Service};
use lisp_server::store::MemoryStore;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{Bench, text};
use tokio::io::AsyncWriteExt;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_says_what_there_is() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    let about = client.initialize(json!({})).await;
    assert_eq!(about["protocolVersion"], "2025-11-25");
    assert_eq!(about["serverInfo"]["name"], "ptc-lisp");
    assert!(about["capabilities"]["tools"].is_object() && about["capabilities"].get("prompts").is_none());
    let listed = client.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["run", "check", "search", "describe", "resume", "runs"]);
    for tool in tools {
        assert!(tool["title"].is_string() && tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
        assert_eq!((&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]), (&json!("object"), &json!("object")));
    }
    let description = tools[0]["description"].as_str().unwrap();
    assert!(description.contains("data/NAME reads data") && description.contains("tool/pay"), "{description}");
    assert!(description.len() < 9_000);
    assert!(tools[0]["inputSchema"]["properties"]["limits"]["properties"]["timeout_ms"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_run() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let result = client
        .call(
            "run",
            json!({ "program": "(println \"two\" \"words\") (sum data/xs)", "data": { "xs": [1, 2, 3] }, "signature": "() -> :int" }),
        )
        .await;
    assert_eq!((text(&result), &result["isError"]), ("6", &json!(false)));
    assert_eq!(result["content"][1]["text"], "prints:\ntwo words");
    let answer = &result["structuredContent"];
    assert_eq!((&answer["verdict"], &answer["value"]), (&json!("ok"), &json!(6)));
    assert!(answer["usage"]["fuel"].as_u64().unwrap() > 0 && answer.get("limits").is_none());
    for (program, wanted) in [
        ("(fail {:why 1})", "(fail v): {:why 1}"),
        ("(+ 1 nil)", "type_error at 1:1: "),
        ("(mapp inc [1])", "unbound_var at 1:2: "),
        ("(loop [] (recur))", "loop_limit_exceeded"),
    ] {
        let result = client.run(program).await;
        assert_eq!(result["isError"], true, "{program}");
        assert!(text(&result).starts_with(wanted), "{program}: {}", text(&result));
    }
    assert!(text(&client.run("(mapp inc [1])").await).contains("\nhint: "));
    let fenced = client.run("```clojure\n(+ 1 2)\n```").await;
    assert!(
        text(&fenced).starts_with("3\n[warning at 1:1: the program is in a Markdown code fence"),
        "{}",
        text(&fenced)
    );
    assert_eq!(fenced["structuredContent"]["warnings"][0]["kind"], "code_fence");
    let keys =
        client.call("run", json!({ "program": "data/m", "data": { "m": { "a": 1 } }, "json_keys": "keywords" })).await;
    assert_eq!(text(&keys), "{:a 1}");
    let limited =
        client.call("run", json!({ "program": "(reduce + (range 100000))", "limits": { "fuel": 1000 } })).await;
    assert_eq!(limited["structuredContent"]["error"]["reason"], "fuel_exhausted");
    let wrong = client.call("run", json!({ "program": "\"a\"", "signature": "() -> :int" })).await;
    assert_eq!(wrong["isError"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_checked_without_running() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let program = "(tool/send {:total 5})\n(map :nmae data/rows)";
    let tools = json!({ "send": { "client": true, "signature": "(totl :int) -> :bool" } });
    let data = json!({ "rows": [{ "name": "a" }] });
    let checked = client.call("check", json!({ "program": program, "tools": tools, "data": data })).await;
    assert_eq!(checked["isError"], false);
    let lines: Vec<&str> = text(&checked).lines().collect();
    assert!(lines[0].starts_with("unknown_argument at 1:") && lines[0].ends_with(": write :totl"), "{lines:?}");
    assert!(lines[1].starts_with("unknown_key at 2:") && lines[1].ends_with(": write :name"), "{lines:?}");
    assert_eq!(checked["structuredContent"]["warnings"][1]["repair"], "write :name");
    let checked = client.call("check", json!({ "program": "(mapp inc [1])" })).await;
    assert!(text(&checked).starts_with("unbound_var at 1:2: ") && checked["isError"] == true, "{}", text(&checked));
    assert_eq!(checked["structuredContent"]["error"]["reason"], "unbound_var");
    let checked = client.call("check", json!({ "program": "(+ 1 2)" })).await;
    assert_eq!((text(&checked), &checked["structuredContent"]), ("no warnings", &json!({ "warnings": [] })));
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_json_readers_do_not_take_are_named() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let result = client.run("(reduce (fn [v _] [v]) 1 (range 300))").await;
    assert_eq!(result["isError"], false);
    assert!(text(&result).starts_with("[[[["));
    let answer = &result["structuredContent"];
    assert!(answer.get("value").is_none() && answer["truncated"]["value"]["why"].is_string(), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_arguments_are_results_that_a_model_can_read() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    for (tool, arguments, wanted) in [
        ("run", json!({}), "missing field `program`"),
        ("run", json!({ "program": 1 }), "program: invalid type: integer `1`, expected a string; example"),
        (
            "run",
            json!({ "program": "1", "dta": {} }),
            "unknown argument \"dta\"; did you mean data? run takes program, data",
        ),
        ("run", json!({ "program": "1", "limits": { "fule": 1 } }), "did you mean `fuel`?"),
        ("run", json!({ "program": "1", "json_keys": "both" }), "json_keys"),
        ("check", json!({ "programm": "1" }), "did you mean program? check takes program, data"),
        ("search", json!({}), "words must be a non-empty string"),
        ("search", json!({ "words": " " }), "words must be a non-empty string"),
        ("describe", json!({ "name": 7 }), "name must be a non-empty string"),
        ("describe", json!({ "name": "grop-by" }), "did you mean group-by?"),
        ("describe", json!({ "name": "tool/nope" }), "unknown tool nope"),
        ("resume", json!({}), "token must be"),
        ("resume", json!({ "token": "x" }), "not a token of this server"),
        ("resume", json!({ "token": "x", "wait_seconds": 51 }), "wait_seconds must be an integer from 0 to 50"),
        ("resume", json!({ "token": "x", "result": 1, "error": "no" }), "give either"),
        ("resume", json!({ "token": "x", "approve": true }), "a model cannot decide on its own calls"),
        ("resume", json!({ "token": "x", "aprove": true }), "unknown argument \"aprove\""),
    ] {
        let result = client.call(tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{tool} {arguments}");
        assert!(text(&result).contains(wanted), "{tool} {arguments}: {}", text(&result));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_is_can_be_looked_up() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let found = client.call("search", json!({ "words": "group-by" })).await;
    assert!(text(&found).lines().next().unwrap().contains("(group-by f coll)"), "{}", text(&found));
    let found = client.call("search", json!({ "words": "pay customer" })).await;
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "pay");
    assert!(text(&found).starts_with("tool/pay (amount :int, ...) -> :any: Pays an amount"), "{}", text(&found));
    let nothing = client.call("search", json!({ "words": "xyzzyplugh" })).await;
    assert_eq!(text(&nothing), "no matches; try other or fewer words");
    let many = client.call("search", json!({ "words": "a" })).await;
    assert!(many["structuredContent"]["more"].as_u64().unwrap() > 10 && text(&many).lines().count() < 40);
    let page = client.call("describe", json!({ "name": "group-by" })).await;
    assert!(text(&page).contains("; => "), "{}", text(&page));
    for name in ["tool/pay", "pay"] {
        let page = client.call("describe", json!({ "name": name })).await;
        assert!(text(&page).starts_with("tool/pay (amount :int, ...)"), "{}", text(&page));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_none_are_errors() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    for (method, params, code) in [
        ("nope/nope", json!({}), -32601),
        ("prompts/list", json!({}), -32601),
        ("resources/list", json!({}), -32601),
        ("tools/call", json!({ "name": "nope", "arguments": {} }), -32602),
        ("tools/call", json!({ "name": "run", "arguments": [1] }), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/list", json!({ "cursor": "x" }), -32602),
    ] {
        let response = client.request(method, params.clone()).await;
        assert_eq!(response["error"]["code"], code, "{method} {params}: {response}");
        assert!(response["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_no_messages_are_answered_and_passed_over() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    // Before the client begins nothing belongs to anything, whatever it has asked until then.
    let whole = json!({ "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let future = json!({ "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/protocolVersion": "2099-01-01" });
    for (method, params) in [
        ("", json!({})),
        ("ping", json!({})),
        ("server/discover", json!({ "_meta": whole })),
        ("tools/list", json!({})),
        ("tools/list", json!({ "_meta": future })),
        ("nope/nope", json!({})),
        ("initialize", json!({})),
        ("initialize", json!({ "protocolVersion": 7 })),
    ] {
        if !method.is_empty() {
            client.request(method, params).await;
        }
        client.line(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}").await;
        client.line(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}").await;
        client.line(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}").await;
        client.line(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":1,\"message\":\"no\"}}").await;
        client.line(b"garbage").await;
        assert_eq!(client.read().await["error"]["code"], -32700, "{method}");
    }
    client.initialize(json!({})).await;
    let deep = [vec![b'['; 100_000 - 1], b"]".to_vec()].concat();
    let nested = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":79,\"method\":\"ping\",\"params\":{{\"a\":{}{}}}}}",
        "[".repeat(200),
        "]".repeat(200)
    );
    let nested = nested.into_bytes();
    for (line, code, id) in [
        (&b"{"[..], -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[]", -32600, None),
        (b"7", -32600, None),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, None),
        (b"{\"jsonrpc\":\"1.0\",\"id\":77,\"method\":\"ping\"}", -32600, Some(77)),
        (b"{\"id\":78,\"method\":\"ping\"}", -32600, Some(78)),
        (&deep, -32700, None),
        // One whose id is none is a request all the same.
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600, None),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600, None),
        (b"{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"ping\"}", -32600, None),
        (&nested, -32700, Some(79)),
    ] {
        client.line(line).await;
        let answer = client.read().await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert_eq!(answer["id"].as_i64(), id, "{answer}");
    }
    // An id is in each response.
    let long = json!({ "jsonrpc": "2.0", "id": "x".repeat(1_001), "method": "ping" });
    client.send(&long).await;
    let answer = client.read().await;
    assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!(-32600), None), "{answer}");
    // Notifications are not answered, whatever they are.
    client.line(b"").await;
    client.line(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nope\",\"params\":7}").await;
    client.line(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":99}}\r").await;
    assert_eq!(text(&client.run("(+ 1 2)").await), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_too_long_is_an_error_with_its_id() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let program = "x".repeat(3_000_000);
    let request = json!({ "jsonrpc": "2.0", "id": "big", "method": "tools/call", "params": { "name": "run", "arguments": { "program": program } } });
    client.send(&request).await;
    let answer = client.read().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("big"), &json!(-32600)));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("more than 100000 bytes") && message.contains("max_body_bytes"), "{message}");
    client.line(&vec![b'y'; 200_000]).await;
    assert!(client.read().await.get("id").is_none());
    // One as long as may be is read.
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "pad": "" } }).to_string().len();
    for (length, code) in [(100_000, None), (100_001, Some(-32600))] {
        let pad = "p".repeat(length - frame);
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "pad": pad } })).await;
        assert_eq!(client.read().await["error"]["code"].as_i64(), code, "{length}");
    }
    assert_eq!(text(&client.run("(+ 1 2)").await), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_cancelled_ends_its_run() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let began = Instant::now();
    // What may ask is a durable run, which the service can list.
    let program = "(do (tool/slow {}) (tool/pay {:amount 1}))";
    let id = client.ask("tools/call", json!({ "name": "run", "arguments": { "program": program } })).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })).await;
    // Nothing comes for it; the next request is answered.
    assert_eq!(text(&client.run("(+ 1 2)").await), "3");
    let service = bench.mcp.service();
    let tenant = service.config().anonymous().unwrap().name.clone();
    loop {
        let query = ListQuery { max: 10, ..ListQuery::default() };
        let runs = service.runs(&tenant, query).await.unwrap().runs;
        if runs.iter().all(|run| run.status.name() == "done") {
            // A program that calls no tool that asks needs no journal, and is not stored.
            assert_eq!(runs.len(), 1);
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(200), "{runs:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_progress_hears_of_prints_and_calls() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    client.request("logging/setLevel", json!({ "level": "info" })).await;
    let program = "(println \"one\") (println \"two\") (+ 1 2)";
    let params = json!({ "name": "run", "arguments": { "program": program }, "_meta": { "progressToken": "t" } });
    let response = client.request("tools/call", params).await;
    assert_eq!(text(&response["result"]), "3");
    let of = |method: &str| client.notes.iter().filter(|note| note["method"] == method).collect::<Vec<_>>();
    let progress = of("notifications/progress");
    let messages: Vec<_> = progress.iter().map(|note| note["params"]["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["one", "two"]);
    assert!(progress.iter().all(|note| note["params"]["progressToken"] == "t"));
    let steps: Vec<_> = progress.iter().map(|note| note["params"]["progress"].as_f64().unwrap()).collect();
    assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
    let logs: Vec<_> = of("notifications/message").iter().map(|note| note["params"]["data"].clone()).collect();
    assert_eq!(logs, [json!("one"), json!("two")]);
    client.notes.clear();
    client.request("logging/setLevel", json!({ "level": "error" })).await;
    client.run(program).await;
    assert!(client.notes.is_empty(), "{:?}", client.notes);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_way_are_answered_when_the_client_closes_its_end() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let id = client.ask("tools/call", json!({ "name": "run", "arguments": { "program": "(+ 1 2)" } })).await;
    client.leave();
    let answer = client.message().await;
    assert_eq!((answer["id"].as_u64(), text(&answer["result"])), (Some(id), "3"));
    client.served.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_nothing_is_served_nothing() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.leave();
    client.served.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_stand_for_themselves_need_no_session() {
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.modern(json!({}));
    let about = client.request("server/discover", json!({})).await;
    let versions = about["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{about}");
    let listed = client.request("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 6);
    let result = client.run("(println 1) (+ 1 2)").await;
    assert_eq!((text(&result), &result["resultType"]), ("3", &json!("complete")));
    assert!(client.notes.is_empty());
    let meta = json!({ "io.modelcontextprotocol/logLevel": "info" });
    let params = json!({ "name": "run", "arguments": { "program": "(println 1)" }, "_meta": meta });
    client.request("tools/call", params).await;
    assert_eq!(client.notes[0]["params"]["data"], "1");
    client.meta = None;
    // A connection has sessions or none.
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let refused = client.request("initialize", hello).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("a connection of its own"), "{refused}");
    let response = client
        .request("tools/list", json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } }))
        .await;
    assert!(response["error"]["code"].is_i64(), "{response}");
}

/// Responses that a client does not read are bounded: then no more of its messages are read. All are answered in the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_not_read_either() {
    const REQUESTS: usize = 20_000;
    let bench = Bench::open().await;
    let mut client = bench.client();
    client.initialize(json!({})).await;
    let mut write = client.write.take().unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let counted = written.clone();
    let writes = tokio::spawn(async move {
        for id in 0..REQUESTS {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n");
            write.write_all(line.as_bytes()).await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
        }
        write
    });
    // Until nothing more is taken.
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        match written.load(Ordering::SeqCst) {
            now if now == before => break,
            now => before = now,
        }
    }
    assert!(!writes.is_finished() && before < REQUESTS, "{before}");
    let mut answered = std::collections::BTreeSet::new();
    while answered.len() < REQUESTS {
        let answer = client.read().await;
        assert!(answered.insert(answer["id"].as_str().unwrap().to_owned()), "{answer}");
    }
    drop(writes.await.unwrap());
}

/// A client whose reading end is closed is at its end when its input is.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_read_any_more_ends() {
    let bench = Bench::open().await;
    let (mut input, its_input) = tokio::io::duplex(1 << 16);
    let (output, its_output) = tokio::io::duplex(1 << 16);
    let mcp = bench.mcp.clone();
    let served = tokio::spawn(async move { mcp.serve_stdio(None, its_input, its_output).await });
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } } });
    input.write_all(format!("{begin}\n").as_bytes()).await.unwrap();
    drop(output);
    for id in 0..12_000 {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n");
        if input.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    drop(input);
    let _ = tokio::time::timeout(Duration::from_secs(100), served).await.expect("it ends").unwrap();
}

/// One that reads nothing for `body_seconds`, while what it has not read takes all its room, is at its end too.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_ends() {
    let text =
        "isolation = \"in-process\"\n[service]\nmax_bodies_bytes = 1048576\nbody_seconds = 1\ndrain_seconds = 1\n";
    let config = Config::parse(text, "service.toml").unwrap();
    let mcp = Mcp::new(Service::open(config, Arc::new(MemoryStore::new())).await.unwrap()).await.unwrap();
    let (mut input, its_input) = tokio::io::duplex(1 << 16);
    let (_output, its_output) = tokio::io::duplex(1 << 10);
    let served = tokio::spawn(async move { mcp.serve_stdio(None, its_input, its_output).await });
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } } });
    input.write_all(format!("{begin}\n").as_bytes()).await.unwrap();
    for id in 0..10_000 {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n");
        if input.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    // Its input stays open.
    let _ = tokio::time::timeout(Duration::from_secs(100), served).await.expect("it ends").unwrap();
}
