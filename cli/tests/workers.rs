//! Fronts and workers on one PostgreSQL: what a front has acknowledged is done by some worker, whatever dies.

#![cfg(target_os = "linux")]

#[path = "workers/chaos.rs"]
mod chaos;
#[path = "workers/kinds.rs"]
mod kinds;
#[allow(dead_code, reason = "each test uses a part")]
#[path = "../../server/tests/support/postgres.rs"]
mod postgres;
mod service;

use postgres::Postgres;
use serde_json::{Value, json};
use service::{Dir, Server, ToolServer, finished, ptcl};
use std::process::Command;
use std::time::Duration;

const PATIENT: Duration = Duration::from_secs(100);

/// Fronts and workers with one database and one configuration.
struct Cluster<'a> {
    server: &'a Postgres,
    database: String,
    config: String,
    _dir: Dir,
}

impl<'a> Cluster<'a> {
    fn new(server: &'a Postgres, config: &str) -> Self {
        let dir = Dir::new("cluster");
        let config = dir.write("service.toml", config);
        Cluster { server, database: server.create_database(), config, _dir: dir }
    }

    /// The address of the store, without the password.
    fn address(&self) -> String {
        format!("postgres://{}@127.0.0.1:{}/{}", postgres::USER, self.server.port(), self.database)
    }

    fn command(&self, command: &str, options: &[&str]) -> Command {
        let mut ptcl = ptcl();
        let store = self.address();
        ptcl.args([command, "--listen", "127.0.0.1:0", "--store", &store, "--config", &self.config]).args(options);
        ptcl.env("PGPASSWORD", postgres::PASSWORD);
        ptcl
    }

    fn front(&self) -> Server {
        Server::of(&mut self.command("serve", &["--no-worker", "--isolation", "in-process"]))
    }

    fn worker(&self, options: &[&str]) -> Server {
        Server::of(&mut self.command("worker", options))
    }

    /// Returns the only column of the only row.
    fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.database, sql)
    }
}

fn submit(front: &Server, request: &Value) -> String {
    let (status, state) = front.post("/v1/runs", request);
    assert_eq!(status, 202, "{state}");
    format!("/v1/runs/{}", state["run_id"].as_str().unwrap())
}

fn config(lease_seconds: u32, more: &str) -> String {
    format!(
        "[limits]\ntimeout_ms = 100000\nparallel_timeout_ms = 100000\n\
         [service]\nlease_seconds = {lease_seconds}\nsuspend_after_ms = 20\n{more}"
    )
}

/// A run that asks one client-answered question after another.
fn asks(k: u64) -> Value {
    let program = "(println data/k) (reduce (fn [sum n] (+ sum (tool/ask {:n n}))) 0 (range 2))";
    json!({ "program": program, "data": {"k": k}, "tools": {"ask": {"client": true}} })
}

#[test]
fn runs_go_from_any_front_to_any_worker_and_back() {
    // It is restarted: other tests have another one.
    let Some(server) = Postgres::start("fsync = off", None) else { return };
    let cluster = Cluster::new(&server, &config(15, ""));
    let (one, two) = (cluster.front(), cluster.front());
    let workers = [cluster.worker(&["--slots", "2"]), cluster.worker(&["--slots", "2", "--isolation", "in-process"])];
    let runs: Vec<String> = (0..24).map(|k| submit(&one, &asks(k))).collect();
    let answer = |run: &String| {
        for n in [10, 20] {
            let state = two.state_when(run, |state| state["calls"][0].is_object());
            let call = state["calls"][0]["call"].as_str().unwrap();
            let (status, state) = two.post(&format!("{run}/calls/{call}"), &json!({ "result": n }));
            assert_eq!(status, 200, "{state}");
        }
    };
    runs[..12].iter().for_each(answer);
    // What is stored is stored, and every connection is found dead and made again.
    server.restart();
    runs[12..].iter().for_each(answer);
    for (k, run) in runs.iter().enumerate() {
        let answer = &finished(&one, run)["answer"];
        assert_eq!((&answer["value"], &answer["prints"]), (&json!(30), &json!([k.to_string()])));
    }
    assert!(cluster.sql("select count(distinct split_part(holder, '/', 1)) from ptc_lisp.runs") == "2");
    for process in workers.iter().chain([&one, &two]) {
        process.until(PATIENT, "health", || process.text("/readyz").starts_with("HTTP/1.1 200"));
        assert!(process.text("/healthz").starts_with("HTTP/1.1 200"));
        assert!(process.text("/metrics").contains("ptc_slots"));
    }
    assert!(workers[0].text("/v1/runs").starts_with("HTTP/1.1 404"));
    assert_eq!(one.send("GET", "/v1/prompt", &[], b"").0, 200);
}

/// A run whose worker was killed goes on elsewhere when its lease is over.
#[test]
fn a_killed_worker_loses_its_runs_to_another() {
    let Some(server) = postgres::shared() else { return };
    let tool = ToolServer::start();
    let cluster = Cluster::new(server, &(config(1, "") + &kinds::tools(tool.port)));
    let front = cluster.front();
    let mut first = cluster.worker(&[]);
    // The tool takes its time: 24 ms for each.
    let program = "(reduce + (mapv (fn [n] (get (tool/look {:k 2 :n n}) \"n\")) (range 40)))";
    let runs: Vec<String> = (0..4).map(|_| submit(&front, &json!({ "program": program }))).collect();
    front.until(PATIENT, "calls", || tool.count(2, 3) == 4);
    first.kill();
    let second = cluster.worker(&[]);
    for run in &runs {
        let answer = &finished(&front, run)["answer"];
        assert_eq!(answer["value"], 780, "{answer}");
    }
    // What was answered before was not asked again.
    assert_eq!(tool.count(2, 0), 4);
    assert!(cluster.sql("select min(epoch) from ptc_lisp.runs").parse::<u64>().unwrap() >= 2);
    drop(second);
}

/// A worker that is told to end gives its runs back at once: the lease would last for an hour.
#[test]
fn a_worker_that_ends_hands_its_runs_back() {
    let Some(server) = postgres::shared() else { return };
    let tool = ToolServer::start();
    let cluster = Cluster::new(server, &(config(3_600, "") + &kinds::tools(tool.port)));
    let front = cluster.front();
    let mut first = cluster.worker(&[]);
    // It computes for seconds between its calls.
    let program = "(let [a (tool/look {:k 0 :n 1}) \
                     b (reduce (fn [sum n] (+ sum (mod n 7))) 0 (range 4000000))] (+ b (get (tool/look {:k 0 :n 2}) \"n\")))";
    let run = submit(&front, &json!({ "program": program, "limits": {"fuel": 0, "heap_bytes": 0} }));
    let waits = submit(&front, &asks(1));
    front.until(PATIENT, "the first call", || tool.count(0, 1) == 1);
    front.state_when(&waits, |state| state["calls"][0].is_object());
    first.terminate();
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!(cluster.sql("select count(*) from ptc_lisp.runs where status = 'running'"), "0");
    assert_eq!(cluster.sql("select count(*) from ptc_lisp.runs where status = 'queued'"), "1");
    let _second = cluster.worker(&[]);
    assert_eq!(finished(&front, &run)["answer"]["value"], 11_999_994 + 2);
    assert_eq!(tool.count(0, 1), 1);
}

/// An operator's commands work beside services that use the database.
#[test]
fn an_operator_works_beside_the_workers() {
    let Some(server) = postgres::shared() else { return };
    let tool = ToolServer::start();
    let cluster = Cluster::new(server, &(config(15, "") + &kinds::tools(tool.port)));
    let (front, _worker) = (cluster.front(), cluster.worker(&[]));
    let program = "(get (tool/gated {:k 1 :n data/n}) \"n\")";
    let runs = [1, 2, 3].map(|n| submit(&front, &json!({ "program": program, "data": {"n": n} })));
    let ids = runs.each_ref().map(|run| run["/v1/runs/".len()..].to_owned());
    runs.iter().for_each(|run| drop(front.state_when(run, |state| state["calls"][0].is_object())));
    let ptcl = |arguments: &[&str]| {
        let mut ptcl = ptcl();
        ptcl.args(arguments).args(["--store", &cluster.address(), "--config", &cluster.config]);
        let output = ptcl.env("PGPASSWORD", postgres::PASSWORD).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout) + &text(output.stderr))
    };
    let listed = ptcl(&["runs", "list", "--status", "waiting"]).1;
    assert!(ids.iter().all(|id| listed.contains(id)) && listed.contains("1 Pay 2?"), "{listed}");
    assert_eq!(ptcl(&["runs", "check"]), (0, "3 runs checked: 3 can continue, 0 cannot\n".to_owned()));
    let (exit, said) = ptcl(&["runs", "approve", &ids[0], "1", "--arguments", "{\"k\": 1}"]);
    assert!(exit == 1 && said.contains("the call stays open"), "{said}");
    assert_eq!(ptcl(&["runs", "approve", &ids[0], "1", "--arguments", "{\"k\": 1, \"n\": 5}"]).0, 0);
    assert_eq!(ptcl(&["runs", "reject", &ids[1], "1", "--why", "no"]).0, 0);
    let (exit, said) = ptcl(&["runs", "cancel", &ids[2]]);
    // A worker may be faster than the answer.
    let ends = ["is cancelled; a worker ends it\n", "is done already\n"];
    assert!(exit == 0 && ends.iter().any(|end| said == format!("{} {end}", ids[2])), "{said}");
    let answers = runs.each_ref().map(|run| finished(&front, run)["answer"].clone());
    assert_eq!((&answers[0]["value"], &answers[1]["error"]["reason"]), (&json!(5), &json!("tool_denied")));
    assert_eq!(answers[2]["verdict"], "cancelled");
    let (exit, said) = ptcl(&["store", "check"]);
    assert!(exit == 0 && said.starts_with("3 runs, ") && said.ends_with(" lines: no damage\n"), "{said}");
    let (exit, said) = ptcl(&["store", "migrate"]);
    assert!(exit == 0 && said.contains("already") && !said.contains("se:cr"), "{said}");
    let (exit, said) = ptcl(&["store", "backup", "x.dump"]);
    assert!(
        exit == 2 && said.contains("pg_dump --format=custom --schema=ptc_lisp --file=x.dump postgres://ptc@"),
        "{said}"
    );
    cluster.sql("update ptc_lisp.lines set text = text || 'x' where run_id = (select max(run_id) from ptc_lisp.lines)");
    let (exit, said) = ptcl(&["store", "check"]);
    assert!(exit == 1 && said.contains("is damaged") && said.contains(": 1 problem"), "{said}");
    // Another version's.
    cluster.sql("update ptc_lisp.format set version = 99");
    for command in [&["store", "check"][..], &["store", "migrate"], &["runs", "list"]] {
        let (exit, said) = ptcl(command);
        assert!(exit == 74 && said.contains("99"), "{said}");
    }
}

/// Commands that read create no schema: a wrong name is not taken for a new store.
#[test]
fn commands_that_read_create_no_schema() {
    let Some(server) = postgres::shared() else { return };
    let cluster = Cluster::new(server, "");
    let ptcl = |arguments: &[&str]| {
        let mut ptcl = ptcl();
        ptcl.args(arguments).args(["--store", &cluster.address()]).env("PGPASSWORD", postgres::PASSWORD);
        let output = ptcl.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    for command in [&["runs", "list"][..], &["runs", "check"], &["runs", "cancel", "x"], &["store", "check"]] {
        let (exit, said) = ptcl(command);
        let wanted = format!("there is no store in {}: name another database with --store", cluster.address());
        assert!(exit == 2 && said.contains(&wanted), "{command:?}: {exit} {said}");
    }
    assert_eq!(cluster.sql("select to_regnamespace('ptc_lisp') is null"), "t");
    let (exit, said) = ptcl(&["store", "migrate"]);
    assert!(exit == 0 && said.contains("was empty"), "{said}");
    assert_eq!(ptcl(&["runs", "list"]), (0, "no runs\n".to_owned()));
}

/// Who needs another store, or cannot have this one, is told what to do; a password is never shown.
#[test]
fn what_cannot_start_says_why() {
    let refused = |command: &[&str], exit: i32, wanted: &str| {
        let mut started = ptcl();
        started.args(command).env("PTCL_LOG", "debug").env("PGPASSWORD", "hush-hush");
        let (code, said) = service::refused(&mut started);
        assert_eq!(code, Some(exit), "{command:?}: {said}");
        assert!(said.contains(wanted) && !said.contains("hush-hush") && !said.contains("se:cr"), "{command:?}: {said}");
    };
    refused(&["serve", "--no-worker", "--store", "runs.db"], 2, "leave out --no-worker");
    refused(&["worker"], 2, "name a database with --store");
    refused(&["worker", "--slots", "0", "--store", "postgres://db/x"], 2, "--slots");
    let nobody = "postgres://me:se%3Acr@127.0.0.1:1/runs";
    for command in [&["worker"][..], &["serve"], &["serve", "--no-worker"], &["mcp"]] {
        let listen: &[&str] = if command == ["mcp"] { &[] } else { &["--listen", "127.0.0.1:0"] };
        refused(&[command, listen, &["--store", nobody]].concat(), 74, "postgres://me@127.0.0.1:1/runs");
    }
    let Some(server) = postgres::shared() else { return };
    let cluster = Cluster::new(server, "");
    let wrong = format!("postgres://{}:se%3Acr@127.0.0.1:{}/{}", postgres::USER, server.port(), cluster.database);
    refused(&["worker", "--listen", "127.0.0.1:0", "--store", &wrong], 74, "password authentication failed");
    // The address as a secret of the configuration.
    let dir = Dir::new("secret");
    let config = dir.write("service.toml", "store = \"${PTC_STORE}\"\n");
    refused(&["worker", "--config", &config], 2, "set PTC_STORE where the service starts");
    let mut command = ptcl();
    command.args(["worker", "--listen", "127.0.0.1:0", "--config", &config]);
    let worker = Server::of(command.env("PTC_STORE", server.address(&cluster.database)));
    // Who cannot listen does not come to the store.
    refused(&["worker", "--listen", &worker.address, "--store", nobody], 74, "cannot listen");
}
