//! Runs of several kinds, and the client that answers their calls.

use crate::service::ToolServer;
use serde_json::{Value, json};

/// The tools of the configuration, at a tool server.
pub(crate) fn tools(port: u16) -> String {
    let input = "input = {type = \"object\", properties = {k = {type = \"integer\"}, n = {type = \"integer\"}}, \
                 required = [\"k\", \"n\"]}";
    let tool = |name: &str, path: &str, more: &str| {
        format!("[tools.{name}]\nurl = \"http://127.0.0.1:{port}/{path}\"\n{input}\n{more}\n")
    };
    tool("pay", "pay", "effect = \"write\"")
        + &tool("flaky", "flaky", "effect = \"write\"")
        + &tool("gated", "pay", "effect = \"write\"\npolicy = \"ask\"\nquestion = \"Pay {n}?\"")
        + &tool("look", "look", "method = \"GET\"")
        + &format!("[network]\nallow_private = [\"127.0.0.1:{port}\"]\n")
}

/// What the runs do. `data/k` tells those of one kind apart.
const PROGRAMS: [&str; 10] = [
    // Writes, one after the other.
    "(println \"pays\" data/k) (reduce (fn [sum n] (+ sum (get (tool/pay {:k data/k :n n}) \"n\"))) data/k (range 3))",
    // Reads.
    "(mapv (fn [n] (get (tool/look {:k data/k :n n}) \"n\")) (range 5))",
    // Nested parallel calls that write.
    "(pmap (fn [i] (reduce + (pmap (fn [j] (get (tool/pay {:k data/k :n (+ (* 10 i) j)}) \"n\")) (range 2)))) (range 3))",
    // Failures that are caught.
    "(mapv (fn [n] (try (get (tool/flaky {:k data/k :n n}) \"n\") (catch Exception e :failed))) (range 4))",
    // Calls that the client answers, at once.
    "(pmap (fn [n] (tool/ask {:n (+ n data/k)})) (range 3))",
    // Approvals.
    "[(get (tool/gated {:k data/k :n 1}) \"n\") (get (tool/pay {:k data/k :n 2}) \"n\") (get (tool/gated {:k data/k :n 3}) \"n\")]",
    // An approval that is not given.
    "(println \"before\") (tool/pay {:k data/k :n 12}) (tool/gated {:k data/k :n 13}) (println \"after\")",
    // The clock.
    "(let [from (System/currentTimeMillis)] (tool/look {:k data/k :n 1}) (<= from (System/currentTimeMillis)))",
    // Computing.
    "(doseq [n (range 20)] (println n)) (reduce + (map (fn [n] (mod n 7)) (range (* 5000 (inc data/k)))))",
    // Some of each.
    "(let [a (tool/ask {:n 1}) b (pmap (fn [n] (get (tool/pay {:k data/k :n (+ a n)}) \"n\")) (range 3))] \
       (println b) (try (tool/flaky {:k data/k :n 1}) (catch Exception e :failed)) [(tool/ask {:n 2}) b])",
];
pub(crate) const KINDS: usize = PROGRAMS.len();
/// How many different runs there are of a kind.
pub(crate) const VARIANTS: usize = 3;

/// The request of a run of a kind.
pub(crate) fn request(kind: usize, k: usize) -> Value {
    let tools = if PROGRAMS[kind].contains("tool/ask") { json!({"ask": {"client": true}}) } else { json!({}) };
    json!({ "program": PROGRAMS[kind], "data": {"k": k}, "tools": tools })
}

/// The reply to an open call, and whether nobody knew what had come of it.
pub(crate) fn reply(tool: &ToolServer, run_id: &str, call: &Value) -> (Value, bool) {
    let n = call["arguments"]["n"].as_u64().unwrap();
    let is_unknown =
        call["question"].as_str().is_some_and(|question| question.contains("Look for the Idempotency-Key"));
    let mut reply = match call["name"].as_str().unwrap() {
        _ if is_unknown => match tool.made(&format!("{run_id}/{}", call["call"].as_str().unwrap())) {
            None => json!({ "approve": true }),
            Some(made) if made.failed => json!({ "error": {"message": "it had failed"} }),
            Some(made) => json!({ "result": {"n": made.n} }),
        },
        "ask" => json!({ "result": 2 * n }),
        "gated" if n == 13 => json!({ "reject": "unlucky" }),
        "gated" => json!({ "approve": true }),
        other => panic!("a call of {other} is open: {call}"),
    };
    // Late, it must not answer the next question about the call.
    reply["phase"] = call["phase"].clone();
    (reply, is_unknown)
}

/// What answers of runs of one kind have in common. `was_asked` says that a client has told what came of a call: its words may
/// cost other fuel than those of the tool.
pub(crate) fn essence(answer: &Value, was_asked: bool) -> Value {
    let fuel = if was_asked { Value::Null } else { answer["usage"]["fuel"].clone() };
    json!([answer["verdict"], answer["outcome"], answer["text"], answer["prints"], answer["error"]["reason"], fuel])
}
