//! Durable runs that continue under another configuration than the one they started with: the one of today holds, and for
//! what a tool does, the stricter of both.

#[path = "support/life.rs"]
mod life;
#[path = "today/restart.rs"]
mod restart;
#[path = "today/terms.rs"]
mod terms;
#[path = "support/tool.rs"]
mod tool;

use life::{Life, stores, until};
use serde_json::json;
use tool::ToolServer;

/// What a tool may declare, and whether its started calls may be made again.
const DECLARED: [(&str, bool); 3] =
    [("effect = \"write\"", false), ("effect = \"read\"", true), ("effect = \"write\"\nidempotent = true", true)];

/// A call that was in progress when the service was killed is made again if its tool could be repeated when the call started
/// and can be repeated now. Otherwise it is asked about.
#[test]
fn a_started_call_is_made_again_if_its_tool_was_and_is_repeatable() {
    for store in stores("effects").iter() {
        let server = ToolServer::start();
        let pairs: Vec<_> = DECLARED.iter().flat_map(|was| DECLARED.iter().map(move |is| (*was, *is))).collect();
        let tools = |declared: &dyn Fn(usize) -> &'static str| {
            let tools: String = (0..pairs.len()).map(|i| server.config(&format!("pay{i}"), declared(i))).collect();
            tools + &server.network()
        };
        server.hold(true);
        let before = Life::open(store, &tools(&|i| pairs[i].0.0));
        let submit = |i| before.submit(&json!({ "program": format!("(+ 100 (tool/pay{i} {{}}))") }));
        let runs: Vec<String> = (0..pairs.len()).map(submit).collect();
        until("the calls", || (0..runs.len()).all(|i| server.count(&format!("pay{i}")) == 1));
        before.crash();
        server.hold(false);
        let after = Life::open(store, &tools(&|i| pairs[i].1.0));
        for (i, run_id) in runs.iter().enumerate() {
            let ((was, was_repeatable), (is, is_repeatable)) = pairs[i];
            let (path, is_made_again) = (format!("pay{i}"), was_repeatable && is_repeatable);
            if !is_made_again {
                assert_eq!(after.asked(run_id), "unknown1", "{was}, then {is}");
                assert_eq!(server.count(&path), 1, "{was}, then {is}");
                after.reply(run_id, "1", json!({ "result": 7 }));
            }
            let (value, count) = if is_made_again { (102, 2) } else { (107, 1) };
            assert_eq!(
                (after.done(run_id)["value"].clone(), server.count(&path)),
                (json!(value), count),
                "{was}, then {is}"
            );
        }
        after.stop();
    }
}
