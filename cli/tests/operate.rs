//! `ptcl runs` and `ptcl store` on a store in a file: what an operator sees and does without a service.

#![cfg(target_os = "linux")]

mod service;

use serde_json::{Value, json};
use service::{Dir, Server, ToolServer, finished, ptcl};
use std::os::unix::fs::PermissionsExt;
use unicode_width::UnicodeWidthStr;

/// Runs a command. Returns its exit code, and what it writes to standard output and standard error.
fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = ptcl().args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A store with runs, and what is needed to serve it.
struct Bench {
    dir: Dir,
    tool: ToolServer,
    store: String,
    config: String,
}

impl Bench {
    fn new(name: &str) -> Self {
        let (dir, tool) = (Dir::new(name), ToolServer::start());
        let config = dir.write("service.toml", &(CONFIG.to_owned() + &tool.config("ask")));
        Bench { store: dir.path("ptc.db"), config, tool, dir }
    }

    fn serve(&self) -> Server {
        Server::start(&["--store", &self.store, "--config", &self.config])
    }

    /// Serves the store until its runs wait, and returns their IDs.
    fn with_runs(&self, requests: &[Value]) -> Vec<String> {
        let mut server = self.serve();
        let ids: Vec<String> = requests
            .iter()
            .map(|request| {
                let (status, state) = server.post("/v1/runs", request);
                assert_eq!(status, 202, "{state}");
                state["run_id"].as_str().unwrap().to_owned()
            })
            .collect();
        for id in &ids {
            server.state_when(&format!("/v1/runs/{id}"), |state| {
                state["status"] != "queued" && state["status"] != "running"
            });
        }
        server.terminate();
        assert_eq!(server.exit_code(), Some(0));
        ids
    }

    fn runs(&self, arguments: &[&str]) -> (i32, String, String) {
        run(&[&["runs"], arguments, &["--store", &self.store, "--config", &self.config]].concat())
    }

    fn store(&self, arguments: &[&str]) -> (i32, String, String) {
        run(&[&["store"], arguments, &["--store", &self.store]].concat())
    }
}

const CONFIG: &str = "isolation = \"in-process\"\n[service]\nsuspend_after_ms = 0\n[limits]\ntimeout_ms = 60000\n";

fn pays(n: u64) -> Value {
    json!({ "program": "(println data/n) (get (tool/pay {:k 1 :n data/n}) \"n\")", "data": {"n": n} })
}

/// Decisions of an operator are those of the service: with the same checks, and the run goes on when the service starts.
#[test]
fn an_operator_decides_like_the_service() {
    let bench = Bench::new("decides");
    let ids = bench.with_runs(&[pays(1), pays(2), pays(3), pays(4), json!({ "program": "(+ 1 2)" })]);
    let [approved, changed, rejected, cancelled, done] = [0, 1, 2, 3, 4].map(|at| ids[at].as_str());
    assert_eq!(
        bench.runs(&["approve", approved, "1"]),
        (0, format!("{approved} is queued; it continues when the service starts\n"), String::new())
    );
    for (command, wanted) in [
        (&["approve", approved, "1"][..], "answered before"),
        (&["reject", approved, "1", "--why", "late"], "answered before"),
        (&["approve", changed, "7"], "no open call 7"),
        (&["approve", changed, "1", "--arguments", "{\"k\": 1}"], "n: the field is missing; the call stays open"),
        (&["approve", changed, "1", "--arguments", "[1]"], "arguments is a JSON object"),
        (&["approve", "no-such-run", "1"], "there is no run \"no-such-run\""),
        (&["show", "no-such-run"], "there is no run"),
        (&["cancel", "no-such-run"], "there is no run"),
        (&["retry", changed], "waiting, not stuck"),
        (&["reject", done, "1", "--why", "late"], "no open call 1"),
    ] {
        let (exit, out, said) = bench.runs(command);
        assert_eq!((exit, out.as_str()), (1, ""), "{command:?}: {said}");
        assert!(said.contains(wanted), "{command:?}: {said}");
    }
    for (command, wanted) in [
        (&["approve", changed, "1", "--arguments", "{"][..], "it is not JSON"),
        (&["list", "--status", "open"], "write one of queued"),
        (&["list", "--cursor", "x"], "is not the cursor of a page"),
        (&["list", "--limit", "0"], "--limit"),
        (&["reject", changed, "1"], "--why"),
    ] {
        let (exit, _, said) = bench.runs(command);
        assert!(exit == 2 && said.contains(wanted), "{command:?}: {exit} {said}");
    }
    assert_eq!(bench.runs(&["approve", changed, "1", "--arguments", "{\"k\": 1, \"n\": 20}"]).0, 0);
    assert_eq!(bench.runs(&["reject", rejected, "1", "--why", "too much"]).0, 0);
    assert!(bench.runs(&["cancel", cancelled]).1.contains("is cancelled; it ends when the service starts"));
    assert!(bench.runs(&["cancel", done]).1.contains("is done already"));
    let (exit, shown, _) = bench.runs(&["show", done]);
    assert!(exit == 0 && shown.contains("status   done"), "{shown}");
    assert!(shown.ends_with("verdict  ok\nvalue\n  3\n`--json` prints the whole answer\n"), "{shown}");
    let whole: Value = serde_json::from_str(&bench.runs(&["show", done, "--json"]).1).unwrap();
    assert_eq!(whole["answer"]["value"], 3);
    let server = bench.serve();
    let answer = |id: &str| finished(&server, &format!("/v1/runs/{id}"))["answer"].clone();
    assert_eq!(answer(approved)["value"], 1);
    assert_eq!(answer(changed)["value"], 20);
    assert_eq!(answer(rejected)["error"]["reason"], "tool_denied");
    assert_eq!(answer(cancelled)["verdict"], "cancelled");
    assert_eq!([1, 2, 3, 4, 20].map(|n| bench.tool.count(1, n)), [1, 0, 0, 0, 1]);
    // Now it is the service's.
    for command in [&["list"][..], &["approve", changed, "1"], &["check"]] {
        let (exit, _, said) = bench.runs(command);
        assert_eq!(exit, 74, "{said}");
        assert!(said.contains(&format!("in use by process {}", server.id())) && said.contains("HTTP API"), "{said}");
    }
}

/// Lists have pages, and fit a terminal that nothing in them controls.
#[test]
fn lists_fit_and_control_nothing() {
    let bench = Bench::new("lists");
    let hostile =
        "\u{1b}]0;gone\u{7}\u{202e}evil\u{2066} and a long question about something that takes more than its column";
    let request = json!({
        "program": format!("; {hostile}\n(tool/ask {{:n \"{hostile}\"}})"), "tools": {"ask": {"client": true}},
    });
    let ids = bench.with_runs(&[request, pays(1), pays(2), pays(3)]);
    let (exit, table, said) = bench.runs(&["list"]);
    assert_eq!((exit, said.as_str()), (0, ""));
    assert_eq!(table.lines().count(), 2 + 4);
    assert!(ids.iter().all(|id| table.contains(id.as_str())) && table.contains("1 Pay 2?"), "{table}");
    let (_, shown, _) = bench.runs(&["show", &ids[0]]);
    for text in [&table, &shown] {
        assert!(text.lines().all(|line| line.width() <= 100), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{2066}']), "{text:?}");
    }
    assert!(shown.contains("\\u202eevil") && shown.contains("call 1 of ask: its client sends the result"), "{shown}");
    // Pages, newest first.
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let more = cursor.iter().flat_map(|cursor: &String| ["--cursor", cursor.as_str()]);
        let (_, page, said) =
            bench.runs(&["list", "--json", "--limit", "3"].into_iter().chain(more).collect::<Vec<_>>());
        for line in page.lines() {
            let run: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&run["tenant"], &run["status"]), (&json!("anonymous"), &json!("waiting")));
            seen.push(run["run_id"].as_str().unwrap().to_owned());
        }
        cursor = said.trim().strip_prefix("there are more: add --cursor ").map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert!(seen.iter().eq(ids.iter().rev()), "{seen:?}");
    assert_eq!(bench.runs(&["list", "--tenant", "nobody"]).1, "no runs\n");
    assert_eq!(bench.runs(&["list", "--status", "done", "--json"]).1, "");
}

/// Before an upgrade: which runs could not go on with the tools of this configuration, and why.
#[test]
fn a_check_replays_what_waits() {
    let bench = Bench::new("check");
    let asks = json!({ "program": "(+ (tool/ask {:n 1}) (tool/ask {:n 2}))", "tools": {"ask": {"client": true}} });
    let ids = bench.with_runs(&[pays(1), asks, json!({ "program": "1" })]);
    let (exit, said, _) = bench.runs(&["check"]);
    assert_eq!((exit, said.as_str()), (0, "2 runs checked: 2 can continue, 0 cannot\n"));
    // Without the tool, and with one that takes other arguments.
    let other = bench.dir.write("without.toml", CONFIG);
    let number = std::fs::read_to_string(&bench.config).unwrap().replace("integer", "string");
    let changed = bench.dir.write("changed.toml", &number);
    let other_type =
        "tool/pay has \"string\" at /properties/k/type of its input schema now; in the record it has \"integer\" there";
    for (config, why) in [
        (Some(other), "tools missing from the configuration: pay"),
        (Some(changed), other_type),
        (None, "no configuration was given: pay; add --config service.toml"),
    ] {
        let config: Vec<&str> = config.iter().flat_map(|config: &String| ["--config", config.as_str()]).collect();
        let check = |more: &[&str]| run(&[&["runs", "check", "--store", &bench.store], &*config, more].concat());
        let (exit, said, _) = check(&[]);
        assert_eq!(exit, 1, "{said}");
        let lines: Vec<&str> = said.lines().collect();
        // It takes as many lines as it needs.
        let reason: Vec<&str> = lines[1..lines.len() - 1].iter().map(|line| line.trim()).collect();
        assert!(lines[0].starts_with(&ids[0]) && reason.join(" ").contains(why), "{said}");
        assert_eq!(lines.last(), Some(&"2 runs checked: 1 can continue, 1 cannot"));
        let (exit, said, _) = check(&["--json"]);
        assert_eq!((exit, said.lines().count()), (1, 2), "{said}");
        let bad = said.lines().find(|line| line.contains(&ids[0])).unwrap();
        let bad: Value = serde_json::from_str(bad).unwrap();
        assert!(bad["can_continue"] == false && bad["why"].as_str().unwrap().contains(why), "{bad}");
    }
    // Nothing has happened to them.
    assert_eq!(bench.runs(&["check"]).0, 0);
    assert_eq!(bench.tool.count(1, 1), 0);
}

/// A run that is stuck is retried when its tool is back.
#[test]
fn a_stuck_run_is_retried() {
    let bench = Bench::new("stuck");
    let ids = bench.with_runs(&[pays(1)]);
    let without = bench.dir.write("without.toml", CONFIG);
    let run_path = format!("/v1/runs/{}", ids[0]);
    {
        let mut server = Server::start(&["--store", &bench.store, "--config", &without]);
        // An approval would have no effect.
        let (status, refused) = server.post(&format!("{run_path}/calls/1"), &json!({ "approve": true }));
        assert!(status == 409 && refused["detail"].as_str().unwrap().contains("no tool pay"), "{refused}");
        server.terminate();
        assert_eq!(server.exit_code(), Some(0));
        // The command takes it without knowing the tools. It makes the run go on, which it cannot.
        assert_eq!(bench.runs(&["approve", &ids[0], "1", "--phase", "gate"]).0, 0);
        let mut server = Server::start(&["--store", &bench.store, "--config", &without]);
        server.state_when(&run_path, |state| state["status"] == "stuck");
        server.terminate();
        assert_eq!(server.exit_code(), Some(0));
    }
    let (_, table, _) = bench.runs(&["list", "--status", "stuck"]);
    assert!(table.contains("tools missing from the"), "{table}");
    assert!(bench.runs(&["show", &ids[0]]).1.contains("error\n  tools missing from the configuration: pay"));
    assert_eq!(
        bench.runs(&["retry", &ids[0]]).1,
        format!("{} is queued; it continues when the service starts\n", ids[0])
    );
    assert_eq!(finished(&bench.serve(), &run_path)["answer"]["value"], 1);
}

/// A copy is made while the service works, and is a store by itself. Damage is found, and said where.
#[test]
fn copies_are_whole_and_damage_is_found() {
    let bench = Bench::new("copies");
    let server = bench.serve();
    let (_, state) = server.post("/v1/runs", &pays(7));
    let path = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
    server.state_when(&path, |state| state["calls"][0].is_object());
    let copy = bench.dir.path("copy.db");
    let (exit, said, error) = bench.store(&["backup", &copy]);
    assert!(exit == 0 && said.contains("bytes in"), "{said}{error}");
    assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let (exit, _, error) = bench.store(&["backup", &copy]);
    assert!(
        exit == 74 && error.contains("the copy cannot be written: ") && error.contains("copy.db exists already"),
        "{error}"
    );
    let (exit, said, _) = bench.store(&["check"]);
    assert!(exit == 0 && said.starts_with("1 runs, ") && said.ends_with(" lines: no damage\n"), "{said}");
    let names = |dir: &Dir| {
        let entries = std::fs::read_dir(dir.path("")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("partial"))
            .count()
    };
    assert_eq!(names(&bench.dir), 0);
    drop(server);
    let copied = Server::start(&["--store", &copy, "--config", &bench.config]);
    assert_eq!(copied.post(&format!("{path}/calls/1"), &json!({ "approve": true })).0, 200);
    assert_eq!(finished(&copied, &path)["answer"]["value"], 7);
    drop(copied);
    // A byte of a line of the journal.
    let damaged = bench.dir.path("damaged.db");
    assert_eq!(bench.store(&["backup", &damaged]).0, 0);
    let mut bytes = std::fs::read(&damaged).unwrap();
    let line = b"\"state\":\"asked\"";
    let at = bytes.windows(line.len()).position(|window| window == line).expect("the journal has the call");
    bytes[at + 9..at + 14].copy_from_slice(b"begun");
    std::fs::write(&damaged, bytes).unwrap();
    let (exit, said, _) = run(&["store", "check", "--store", &damaged]);
    let wanted = format!("of the journal of run {} is damaged", &path["/v1/runs/".len()..]);
    assert!(exit == 1 && said.contains(&wanted) && said.contains(": 1 problem"), "{said}");
    let (exit, said, _) = run(&["runs", "check", "--store", &damaged, "--config", &bench.config]);
    assert!(exit == 1 && said.contains("is damaged"), "{said}");
    // What is no store is left as it is.
    let text = bench.dir.write("notes.txt", "not a database, but a text that is long enough to be taken for one");
    for command in [&["check"][..], &["migrate"], &["backup", &bench.dir.path("x.db")]] {
        let (exit, _, error) = run(&[&["store"], command, &["--store", &text]].concat());
        assert!(exit == 74 && error.contains("notes.txt"), "{error}");
        assert!(error.contains("name another file with --store") && !error.contains("store check"), "{error}");
        let missing = bench.dir.path("missing.db");
        let (exit, _, error) = run(&[&["store"], command, &["--store", &missing]].concat());
        assert!(exit == 2 && error.contains("there is no store"), "{error}");
    }
    let empty = bench.dir.write("empty.db", "");
    let (exit, said, error) = run(&["store", "migrate", "--store", &empty]);
    assert!(exit == 0 && said.contains("was empty and has the format"), "{said}{error}");
    assert!(run(&["store", "migrate", "--store", &empty]).1.contains("already"));
    let empty = bench.dir.write("never-used.db", "");
    let (exit, _, said) = run(&["store", "backup", &bench.dir.path("y.db"), "--store", &empty]);
    assert!(exit != 0 && said.contains("there is no store in"), "{exit}: {said}");
    let (exit, _, said) = run(&["store", "backup", "a b.dump", "--store", "postgres://me:hush@db/runs"]);
    assert_eq!(exit, 2);
    assert!(
        said.contains("pg_dump --format=custom --schema=ptc_lisp --file='a b.dump' postgres://me@db/runs"),
        "{said}"
    );
}

/// After a backup was restored, nothing that its runs may have done since is done again without a question.
#[test]
fn a_restored_store_asks_before_it_repeats() {
    let (dir, tool) = (Dir::new("restored"), ToolServer::start());
    let config = dir.write("service.toml", &(CONFIG.to_owned() + &tool.config("allow")));
    let (store, copy) = (dir.path("ptc.db"), dir.path("copy.db"));
    let program = "(let [k (tool/ask {:n 1}) paid (mapv (fn [n] (get (tool/pay {:k k :n n}) \"n\")) (range 2)) \
                     more (pmap (fn [n] (get (tool/pay {:k k :n n}) \"n\")) (range 2 5))] [paid more])";
    let asks = json!({ "program": program, "tools": {"ask": {"client": true}} });
    let server = Server::start(&["--store", &store, "--config", &config]);
    let (_, state) = server.post("/v1/runs", &asks);
    let id = state["run_id"].as_str().unwrap();
    let path = format!("/v1/runs/{id}");
    server.state_when(&path, |state| state["calls"][0].is_object());
    assert_eq!(run(&["store", "backup", &copy, "--store", &store]).0, 0);
    // What the backup does not have.
    assert_eq!(server.post(&format!("{path}/calls/1"), &json!({ "result": 1 })).0, 200);
    let wanted = json!([[0, 1], [2, 3, 4]]);
    assert_eq!(finished(&server, &path)["answer"]["value"], wanted);
    drop(server);
    let mut server = Server::start(&["--store", &copy, "--config", &config, "--restored"]);
    assert!(server.logged.contains("restored from a backup") && server.logged.contains("runs=1"), "{}", server.logged);
    // A run of today is as ever.
    let (_, state) = server.post("/v1/runs", &asks);
    let new = format!("/v1/runs/{}", state["run_id"].as_str().unwrap());
    server.state_when(&new, |state| state["calls"][0].is_object());
    assert_eq!(server.post(&format!("{new}/calls/1"), &json!({ "result": 2 })).0, 200);
    assert_eq!(finished(&server, &new)["answer"]["value"], wanted);
    assert_eq!(server.post(&format!("{path}/calls/1"), &json!({ "result": 1 })).0, 200);
    let mut asked = 0;
    let state = loop {
        let state = server.state_when(&path, |state| state["calls"][0].is_object() || state["answer"].is_object());
        let Some(call) = state["calls"][0]["call"].as_str() else { break state };
        asked += 1;
        let wanted = format!(
            "The store was restored from a backup, and this may have been done since: a call of pay. Look for the \
             Idempotency-Key {id}/{call} at the tool, then send its result or error. If you cannot find out, approve to \
             make it, or reject to make it fail, with the phase unknown1."
        );
        assert_eq!(state["calls"][0]["question"], wanted, "{state}");
        let made = tool.made(&format!("{id}/{call}")).expect("it was made after the backup");
        assert_eq!(server.post(&format!("{path}/calls/{call}"), &json!({ "result": {"n": made.n} })).0, 200);
        if asked == 1 {
            // It is known in the store that it was restored.
            drop(server);
            server = Server::start(&["--store", &copy, "--config", &config]);
        }
    };
    assert_eq!((&state["answer"]["value"], asked), (&wanted, 5), "{state}");
    assert!((0..5).all(|n| tool.count(1, n) == 1 && tool.count(2, n) == 1));
}

/// An approver of a run that came from a backup knows it, before the call is made and when it is asked about.
#[test]
fn approvers_know_that_a_store_was_restored() {
    let bench = Bench::new("restored-gate");
    let ids = bench.with_runs(&[pays(5)]);
    let copy = bench.dir.path("copy.db");
    assert_eq!(bench.store(&["backup", &copy]).0, 0);
    let path = format!("/v1/runs/{}", ids[0]);
    let restored = "The store was restored from a backup, and this may have been done since: Pay 5?";
    let question = |state: &Value| state["calls"][0]["question"].as_str().unwrap_or_default().to_owned();
    // The option changes a question once.
    for _ in 0..2 {
        let server = Server::start(&["--store", &copy, "--config", &bench.config, "--restored"]);
        assert_eq!(question(&server.state_when(&path, |state| state["calls"][0].is_object())), restored);
    }
    let server = Server::start(&["--store", &copy, "--config", &bench.config]);
    assert_eq!(server.post(&format!("{path}/calls/1"), &json!({ "approve": true })).0, 200);
    let state = server.state_when(&path, |state| question(state).contains("Idempotency-Key"));
    assert!(question(&state).starts_with(restored), "{state}");
    assert_eq!(server.post(&format!("{path}/calls/1"), &json!({ "result": {"n": 50} })).0, 200);
    assert_eq!((&finished(&server, &path)["answer"]["value"], bench.tool.count(1, 5)), (&json!(50), 0));
}

/// An operator is the tool of a client, with the checks of the service. No configuration is needed: the request has the tool.
#[test]
fn an_operator_answers_the_calls_of_clients() {
    let bench = Bench::new("answers");
    let asks = json!({
        "program": "(inc (tool/ask {:n 1}))",
        "tools": {"ask": {"client": true, "signature": "(n :int) -> :int"}},
    });
    let ids = bench.with_runs(&[asks.clone(), asks, pays(1)]);
    let [answered, failed, gated] = [0, 1, 2].map(|at| ids[at].as_str());
    let runs = |command: &[&str]| run(&[&["runs"], command, &["--store", &bench.store]].concat());
    for (command, exit, wanted) in [
        (&["answer", answered, "1", "--result", "\"x\""][..], 1, "the call stays open"),
        (&["approve", answered, "1"], 1, "use `ptcl runs answer` with --result or --error"),
        (&["answer", gated, "1", "--result", "1"], 1, "use `ptcl runs approve` or `ptcl runs reject`"),
        (&["answer", answered, "1", "--result", "{"], 2, "it is not JSON"),
        (&["answer", answered, "1", "--result", "1", "--error", "x"], 2, "cannot be used with"),
        (&["answer", answered, "1"], 2, "--result"),
        (&["answer", answered, "7", "--result", "1"], 1, "no open call 7"),
    ] {
        let (code, out, said) = runs(command);
        assert!((code, out.as_str()) == (exit, "") && said.contains(wanted), "{command:?}: {code} {said}");
    }
    let queued = format!("{answered} is queued; it continues when the service starts\n");
    assert_eq!(runs(&["answer", answered, "1", "--result", "41"]), (0, queued, String::new()));
    assert_eq!(runs(&["answer", failed, "1", "--error", "nobody knows"]).0, 0);
    let server = bench.serve();
    let answer = |id: &str| finished(&server, &format!("/v1/runs/{id}"))["answer"].clone();
    assert_eq!(answer(answered)["value"], 42);
    let failed_with = answer(failed);
    assert!(failed_with["error"]["message"].as_str().unwrap().contains("nobody knows"), "{failed_with}");
}

/// Other arguments are not taken unless they can be checked.
#[test]
fn arguments_need_the_tool() {
    let bench = Bench::new("unchecked");
    let ids = bench.with_runs(&[pays(1)]);
    let approve = ["approve", &ids[0], "1", "--arguments", "{\"k\": \"no number\"}"];
    let without = bench.dir.write("without.toml", CONFIG);
    for (config, wanted) in [
        (
            &[][..],
            "arguments are checked against the tool pay, and no configuration was given: add --config service.toml",
        ),
        (&["--config", &without], "arguments are checked against the tool pay, and the configuration has no such tool"),
    ] {
        let (exit, out, said) = run(&[&["runs"], &approve[..], &["--store", &bench.store], config].concat());
        assert!((exit, out.as_str()) == (2, "") && said.contains(wanted), "{exit} {out} {said}");
    }
    assert!(bench.runs(&["list"]).1.contains("1 Pay 1?"));
}

/// A service was killed during a call that writes, while other runs waited for the slot.
#[test]
fn what_a_dead_service_has_left_is_checked_and_answered() {
    let dir = Dir::new("left");
    // A tool that does not answer.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let tool = ToolServer::config_of(listener.local_addr().unwrap().port(), "ask");
    let config = CONFIG.replace("suspend_after_ms = 0", "suspend_after_ms = 0\nconcurrency = 1");
    let config = dir.write("service.toml", &(config + &tool));
    let store = dir.path("ptc.db");
    let serve = || Server::start(&["--store", &store, "--config", &config]);
    let mut server = serve();
    let submit =
        |server: &Server, request: &Value| server.post("/v1/runs", request).1["run_id"].as_str().unwrap().to_owned();
    let id = submit(&server, &pays(5));
    let path = format!("/v1/runs/{id}");
    server.state_when(&path, |state| state["calls"][0].is_object());
    assert_eq!(server.post(&format!("{path}/calls/1"), &json!({ "approve": true })).0, 200);
    let call = listener.accept().unwrap();
    let others = [submit(&server, &pays(6)), submit(&server, &json!({ "program": "1" }))];
    server.kill();
    drop(call);
    let runs = |command: &[&str]| run(&[&["runs"], command, &["--store", &store]].concat());
    let (exit, said, error) = runs(&["check", "--config", &config]);
    assert_eq!((exit, said.as_str()), (0, "3 runs checked: 3 can continue, 0 cannot\n"), "{error}");
    let server = serve();
    let state = server.state_when(&path, |state| state["calls"][0].is_object());
    let question = format!(
        "It is unknown whether this was done: Pay 5? Look for the Idempotency-Key {id}/1 at the tool, then send its result or \
         error. If you cannot find out, approve to make it again, or reject to make it fail, with the phase unknown1."
    );
    assert_eq!(state["calls"][0]["question"], question, "{state}");
    // The approval of the first question comes once more, late: the call is not made a second time.
    let (status, said) = server.post(&format!("{path}/calls/1"), &json!({ "approve": true }));
    assert!(status == 400 && said["detail"].as_str().unwrap().contains("\"phase\": \"unknown1\""), "{said}");
    let late = json!({ "approve": true, "phase": "gate" });
    assert_eq!(server.post(&format!("{path}/calls/1"), &late).0, 409);
    assert_eq!(server.post(&format!("{path}/calls/1"), &json!({ "reject": "no" })).0, 400);
    assert_eq!(server.state_when(&path, |_| true)["calls"], state["calls"]);
    others.iter().for_each(|id| {
        server
            .state_when(&format!("/v1/runs/{id}"), |state| state["status"] == "done" || state["calls"][0].is_object());
    });
    drop(server);
    assert!(runs(&["list"]).1.contains("1 effect unknown: pay\n"), "{}", runs(&["list"]).1);
    // Questions are not broken within words.
    assert!(runs(&["show", &id]).1.contains("Look for the Idempotency-Key\n  "), "{}", runs(&["show", &id]).1);
    let (exit, _, said) = runs(&["approve", &id, "1"]);
    assert!(exit == 1 && said.contains("add --phase unknown1"), "{exit} {said}");
    let answer = ["answer", &id, "1", "--result", "{\"n\": 7}"];
    let (exit, _, said) = runs(&answer);
    assert!(exit == 2 && said.contains("the result is checked against the tool pay, and no configuration"), "{said}");
    assert_eq!(runs(&[&answer[..], &["--config", &config]].concat()).0, 0);
    assert_eq!(finished(&serve(), &path)["answer"]["value"], 7);
}

/// Commands that read create no store and change no format.
#[test]
fn commands_that_read_change_no_format() {
    let bench = Bench::new("formats");
    let id = bench.with_runs(&[json!({ "program": "1" })]).remove(0);
    let empty = bench.dir.write("empty.db", "");
    let earlier = bench.dir.path("earlier.db");
    assert_eq!(bench.store(&["backup", &earlier]).0, 0);
    let mut bytes = std::fs::read(&earlier).unwrap();
    // SQLite's user_version.
    bytes[60..64].copy_from_slice(&1_u32.to_be_bytes());
    std::fs::write(&earlier, &bytes).unwrap();
    for command in [&["runs", "list"][..], &["runs", "check"], &["runs", "show", &id], &["store", "check"]] {
        let (exit, _, said) = run(&[command, &["--store", &empty]].concat());
        let wanted =
            format!("there is no store in {empty}: name another file with --store, or start `ptcl serve` there");
        assert!(exit == 2 && said.contains(&wanted), "{command:?}: {exit} {said}");
        let (exit, _, said) = run(&[command, &["--store", &earlier]].concat());
        let wanted = format!(
            "has the format 1, and this version works with 3: change it with `ptcl store migrate --store {earlier}`"
        );
        assert!(exit == 74 && said.contains(&wanted), "{command:?}: {exit} {said}");
    }
    assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0);
    assert!(std::fs::read(&earlier).unwrap() == bytes);
}
