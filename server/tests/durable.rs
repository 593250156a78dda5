//! Durable runs through the service, without HTTP: replies in any order, runs that are stuck, several processes on one
//! store, and tenants beside each other.

use lisp_runtime::Request;
use lisp_server::config::Config;
use lisp_server::runs::{Done, Refused, Reply, RunState, Service, TenantState};
use lisp_server::store::{MemoryStore, RunStatus, SqliteStore, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PAY: &str = "[tools.pay]\nurl = \"http://127.0.0.1:1/pay\"\npolicy = \"ask\"\n\
    input = { type = \"object\", properties = { n = { type = \"integer\" } }, required = [\"n\"], additionalProperties = false }\n\
    [network]\nallow_private = [\"127.0.0.1:1\"]\n";

fn config(more: &str) -> Config {
    let text = format!("isolation = \"in-process\"\n{more}\n[service]\nsuspend_after_ms = 0\nconcurrency = 4\n");
    Config::parse_with(&text, "test.toml", &|_| None).unwrap()
}

async fn open(store: &Arc<dyn Store>, more: &str) -> (Service, Arc<TenantState>) {
    let service = Service::open(config(more), store.clone()).await.unwrap();
    let tenant = service.tenant("anonymous").unwrap();
    (service, tenant)
}

fn in_memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn reply(body: Value) -> Reply {
    serde_json::from_value(body).unwrap()
}

/// Polls the state of a run until it is as wanted.
async fn until(service: &Service, run_id: &str, wanted: impl Fn(&RunState) -> bool) -> RunState {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let state = service.state("anonymous", run_id).await.unwrap();
        if wanted(&state) {
            return state;
        }
        assert!(Instant::now() < end, "{state:?}\n{}", std::backtrace::Backtrace::force_capture());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn done(service: &Service, run_id: &str) -> Value {
    let state = until(service, run_id, |state| state.status == RunStatus::Done).await;
    serde_json::from_str(state.answer.unwrap().get()).unwrap()
}

const THREE: &str = r#"{"program": "(pmap (fn [n] (tool/ask {:n n})) [1 2 3])", "tools": {"ask": {"client": true}}}"#;

/// Open calls are data: they stay open and take replies whatever the run is doing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_calls_are_answered_in_every_order() {
    let store = in_memory();
    let (service, tenant) = open(&store, "").await;
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let run_id = service.submit(&tenant, THREE, None).await.unwrap().run_id;
        let open = until(&service, &run_id, |state| state.calls.len() == 3).await.calls;
        for at in order {
            let n = open[at].arguments.get().chars().find(char::is_ascii_digit).unwrap().to_digit(10).unwrap();
            let taken = service.reply("anonymous", &run_id, &open[at].call, &reply(json!({ "result": n * 10 }))).await;
            let state = taken.unwrap_or_else(|refused| panic!("{order:?} {at}: {refused}"));
            assert!(!state.calls.iter().any(|call| call.call == open[at].call));
            // The second time it is refused, whether the run is done by then or not.
            let again = service.reply("anonymous", &run_id, &open[at].call, &reply(json!({ "result": 0 }))).await;
            assert!(matches!(again, Err(Refused::Conflict(_))), "{again:?}");
        }
        assert_eq!(done(&service, &run_id).await["value"], json!([10, 20, 30]), "{order:?}");
    }
}

/// A reply that does not fit is refused, and the call stays open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_are_checked_before_they_are_taken() {
    let store = in_memory();
    let (service, tenant) = open(&store, PAY).await;
    let text = r#"{"program": "(+ 1 (tool/ask {:n 1}))", "tools": {"ask": {"client": true, "signature": "(n :int) -> :int"}}}"#;
    let run_id = service.submit(&tenant, text, None).await.unwrap().run_id;
    until(&service, &run_id, |state| state.calls.len() == 1).await;
    let send = async |body: Value| service.reply("anonymous", &run_id, "1", &reply(body)).await;
    let unfit = send(json!({ "result": "one" })).await;
    assert!(matches!(&unfit, Err(Refused::Unprocessable(why)) if why.contains("stays open")), "{unfit:?}");
    let large = send(json!({ "result": "x".repeat(1_100_000) })).await;
    assert!(matches!(&large, Err(Refused::TooLarge(why)) if why.contains("1000000")), "{large:?}");
    let wrong = send(json!({ "approve": true })).await;
    assert!(matches!(wrong, Err(Refused::Invalid { .. })), "{wrong:?}");
    assert_eq!(service.state("anonymous", &run_id).await.unwrap().calls.len(), 1);
    send(json!({ "result": 41 })).await.unwrap();
    assert_eq!(done(&service, &run_id).await["value"], 42);

    let run_id = service.submit(&tenant, r#"{"program": "(tool/pay {:n 1})"}"#, None).await.unwrap().run_id;
    until(&service, &run_id, |state| state.calls.len() == 1).await;
    let given =
        service.reply("anonymous", &run_id, "1", &reply(json!({ "approve": true, "arguments": { "m": 1 } }))).await;
    assert!(matches!(&given, Err(Refused::Unprocessable(why)) if why.contains("arguments")), "{given:?}");
    service.reply("anonymous", &run_id, "1", &reply(json!({ "reject": "no" }))).await.unwrap();
    assert_eq!(done(&service, &run_id).await["error"]["reason"], "tool_denied");
}

/// A reply that the run could not read, or that its record has no room for, is refused, whichever text it is in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_the_run_cannot_take_are_refused() {
    let store = in_memory();
    let (service, tenant) = open(&store, &PAY.replace("input =", "# input =")).await;
    let asks = |program: &str| json!({ "program": program, "tools": { "ask": { "client": true }, "int": { "client": true, "signature": "() -> :any" } } });
    let long = "x".repeat(1_000_001);
    let deep = format!("{}{}", "[".repeat(513), "]".repeat(513));
    let digits = "9".repeat(4_301);
    let unreadable = [r#""\ud800""#, "[1, 1e999999]", &deep, &digits];
    let results = unreadable.map(|text| (format!(r#"{{"result": {text}}}"#), "result: "));
    for program in ["(tool/ask {})", "(tool/int {})"] {
        let run_id = service.submit(&tenant, &asks(program).to_string(), None).await.unwrap().run_id;
        until(&service, &run_id, |state| state.calls.len() == 1).await;
        let send = async |body: &str| {
            let reply: Reply = serde_json::from_str(body).unwrap();
            service.reply("anonymous", &run_id, "1", &reply).await
        };
        for (body, field) in &results {
            let refused = send(body).await;
            let is_told = |why: &str| why.contains(field) && why.contains("stays open");
            assert!(matches!(&refused, Err(Refused::Unprocessable(why)) if is_told(why)), "{body:.60}: {refused:?}");
        }
        // It says where.
        let refused = send("{\"result\": [1,\n 1e999999]}").await;
        assert!(
            matches!(&refused, Err(Refused::Unprocessable(why)) if why.contains("line 2, column 2")),
            "{refused:?}"
        );
        for (body, field) in [
            (json!({ "result": &long }), "result"),
            (json!({ "error": { "message": &long } }), "error.message"),
            (json!({ "error": { "message": "m", "code": &long } }), "error.code"),
        ] {
            let refused = send(&body.to_string()).await;
            assert!(matches!(&refused, Err(Refused::TooLarge(why)) if why.starts_with(field)), "{field}: {refused:?}");
        }
        assert_eq!(service.state("anonymous", &run_id).await.unwrap().calls.len(), 1);
        // The run takes the longest that is not refused.
        send(&json!({ "error": { "message": "\u{1}".repeat(1_000_000), "code": "c".repeat(1_000_000) } }).to_string())
            .await
            .unwrap();
        assert_eq!(done(&service, &run_id).await["error"]["reason"], "tool_error", "{program}");
    }
    for (last, reason) in [(json!({ "reject": "y".repeat(1_000_000) }), "tool_denied")] {
        let run_id = service.submit(&tenant, r#"{"program": "(tool/pay {:n 1})"}"#, None).await.unwrap().run_id;
        until(&service, &run_id, |state| state.calls.len() == 1).await;
        let send = async |body: &str| {
            let reply: Reply = serde_json::from_str(body).unwrap();
            service.reply("anonymous", &run_id, "1", &reply).await
        };
        for text in [r#""\ud800""#, "1e999999"] {
            let refused = send(&format!(r#"{{"approve": true, "arguments": {{"n": {text}}}}}"#)).await;
            let is_told = |why: &str| why.contains("arguments: ") && why.contains("column");
            assert!(matches!(&refused, Err(Refused::Unprocessable(why)) if is_told(why)), "{text}: {refused:?}");
        }
        for (body, field) in [
            (json!({ "approve": true, "arguments": { "n": &long } }), "arguments"),
            (json!({ "reject": &long }), "reject"),
        ] {
            let refused = send(&body.to_string()).await;
            assert!(matches!(&refused, Err(Refused::TooLarge(why)) if why.starts_with(field)), "{field}: {refused:?}");
        }
        assert_eq!(service.state("anonymous", &run_id).await.unwrap().calls.len(), 1);
        send(&last.to_string()).await.unwrap();
        assert_eq!(done(&service, &run_id).await["error"]["reason"], reason);
    }
}

/// A run whose tool is gone is stuck, and says so; it goes on when the tool is back, and can be cancelled before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_without_its_tool_is_stuck_until_it_is_back() {
    let store = in_memory();
    let gated = r#"{"program": "(tool/pay {:n 1})"}"#;
    let pay = r#"{"program": "(do (tool/ask {:n 1}) (tool/pay {:n 1}))", "tools": {"ask": {"client": true}}}"#;
    let other = r#"{"program": "(tool/ask {:n 1})", "tools": {"ask": {"client": true}}}"#;
    let (run_id, cancelled, unrelated, waits) = {
        let (service, tenant) = open(&store, PAY).await;
        let mut ids = Vec::new();
        for text in [pay, pay, other, gated] {
            let run_id = service.submit(&tenant, text, None).await.unwrap().run_id;
            until(&service, &run_id, |state| state.calls.len() == 1).await;
            ids.push(run_id);
        }
        service.drain();
        service.ended_without_closing().await;
        (ids.remove(0), ids.remove(0), ids.remove(0), ids.remove(0))
    };
    {
        let (service, _) = open(&store, "").await;
        // A run that does not name the tool does not need it.
        service.reply("anonymous", &unrelated, "1", &reply(json!({ "result": 7 }))).await.unwrap();
        assert_eq!(done(&service, &unrelated).await["value"], 7);
        // A decision on a call of the tool that is gone would have no effect.
        for decision in [json!({ "approve": true }), json!({ "reject": "no" })] {
            let refused = service.reply("anonymous", &waits, "1", &reply(decision)).await;
            let Err(Refused::Conflict(why)) = refused else { panic!("{refused:?}") };
            assert!(why.contains("no tool pay") && why.contains("the call stays open"), "{why}");
        }
        for run_id in [&run_id, &cancelled] {
            // Its tool is gone, but it waits for its client: only an answer makes it go on.
            service.reply("anonymous", run_id, "1", &reply(json!({ "result": 1 }))).await.unwrap();
            let state = until(&service, run_id, |state| state.status == RunStatus::Stuck).await;
            let why = state.error.unwrap();
            assert!(why.contains("pay") && why.contains("configure") && !why.contains("Engine"), "{why}");
            let refused = service.reply("anonymous", run_id, "1", &reply(json!({ "result": 1 }))).await;
            assert!(matches!(refused, Err(Refused::Conflict(_))), "{refused:?}");
        }
        let metrics = service.metrics().await;
        assert!(metrics.contains("ptc_stuck_runs 2\n") && metrics.contains("ptc_runs_stuck_total 2\n"), "{metrics}");
        let waited = service.wait("anonymous", &run_id).await.unwrap();
        assert!(matches!(waited, Done::Waiting(state) if state.error.is_some()));
        service.cancel("anonymous", &cancelled).await.unwrap();
        assert_eq!(done(&service, &cancelled).await["verdict"], "cancelled");
        let metrics = service.metrics().await;
        assert!(metrics.contains("ptc_stuck_runs 1\n") && metrics.contains("ptc_runs_stuck_total 2\n"), "{metrics}");
        service.drain();
        service.ended_without_closing().await;
    }
    let (service, _) = open(&store, PAY).await;
    for (run_id, call) in [(&run_id, "2"), (&waits, "1")] {
        until(&service, run_id, |state| state.calls.len() == 1).await;
        service.reply("anonymous", run_id, call, &reply(json!({ "reject": "no" }))).await.unwrap();
        assert_eq!(done(&service, run_id).await["error"]["reason"], "tool_denied");
    }
}

/// Fronts and workers share a store: a run is submitted, watched and answered at one process, and runs in another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_front_and_a_worker_share_a_store() {
    let store = in_memory();
    let front = Service::open_front(config(""), store.clone()).await.unwrap();
    let tenant = front.tenant("anonymous").unwrap();
    let text =
        r#"{"program": "(do (println \"a\") (println (tool/ask {:n 1})) 5)", "tools": {"ask": {"client": true}}}"#;
    let run_id = front.submit(&tenant, text, None).await.unwrap().run_id;
    assert_eq!(front.state("anonymous", &run_id).await.unwrap().status, RunStatus::Queued);
    let mut events = front.events("anonymous", &run_id, 0);
    let (worker, _) = open(&store, "").await;
    until(&front, &run_id, |state| state.calls.len() == 1).await;
    front.reply("anonymous", &run_id, "1", &reply(json!({ "result": "b" }))).await.unwrap();
    assert_eq!(done(&front, &run_id).await["prints"], json!(["a", "b"]));
    let mut kinds = Vec::new();
    while let Some(more) = events.next().await.unwrap() {
        kinds.extend(more.into_iter().map(|event| (event.number, event.kind.into_owned())));
    }
    let names: Vec<&str> = kinds.iter().map(|(_, kind)| kind.as_str()).filter(|kind| *kind != "call").collect();
    assert_eq!(names, ["started", "print", "waiting", "print", "answer"]);
    assert!(kinds.iter().map(|(number, _)| *number).eq(1..=kinds.len() as u64), "{kinds:?}");
    drop(worker);
}

/// A tenant's queue is its own: another one's runs are accepted, and get a slot before all of the first one's have had one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_cannot_fill_the_queue_of_another() {
    let tenant = |name: &str, digit: &str| {
        format!(
            "[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{}\"\nconcurrency = 1\nqueue = 30\n",
            digit.repeat(64)
        )
    };
    let text =
        format!("isolation = \"in-process\"\n[service]\nconcurrency = 1\n{}{}", tenant("a", "a"), tenant("b", "b"));
    let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
    // No worker yet: what is submitted waits.
    let store = in_memory();
    let front = Service::open_front(config.clone(), store.clone()).await.unwrap();
    let (a, b) = (front.tenant("a").unwrap(), front.tenant("b").unwrap());
    let submit = async |tenant: &TenantState| front.submit(tenant, r#"{"program": "1"}"#, None).await;
    for _ in 0..31 {
        submit(&a).await.unwrap();
    }
    let full = submit(&a).await;
    assert!(matches!(&full, Err(Refused::Busy(busy)) if busy.why.contains("30 queued")), "{full:?}");
    let of_b = submit(&b).await.unwrap().run_id;
    let mut news = store.news();
    let worker = Service::open(config, store.clone()).await.unwrap();
    let mut ended = Vec::new();
    while ended.len() < 32 {
        let one = tokio::time::timeout(Duration::from_secs(60), news.recv()).await.unwrap().unwrap();
        if let lisp_server::store::News::Changed(run_id) = one {
            let run = store.run(&run_id).await.unwrap().unwrap();
            if run.summary.status == RunStatus::Done && !ended.contains(&run.summary.run_id) {
                ended.push(run.summary.run_id);
            }
        }
    }
    let at = ended.iter().position(|run_id| *run_id == of_b).unwrap();
    assert!(at < 8, "the run of b was number {at}");
    drop(worker);
}

/// A run pays from its tenant's budget for what it uses, not for each time that it is suspended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_run_pays_once() {
    let text = format!(
        "isolation = \"in-process\"\n[service]\nsuspend_after_ms = 0\n[[tenants]]\nname = \"a\"\ntoken_sha256 = \"{}\"\n\
         budget = {{ runs = 2, calls = 8 }}\n",
        "a".repeat(64)
    );
    let store = in_memory();
    let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
    let service = Service::open(config, store.clone()).await.unwrap();
    let tenant = service.tenant("a").unwrap();
    let asks = r#"{"program": "(mapv (fn [n] (tool/ask {:n n})) (range 8))", "tools": {"ask": {"client": true}}}"#;
    let run_id = service.submit(&tenant, asks, None).await.unwrap().run_id;
    for n in 0..8 {
        let Done::Waiting(state) = service.wait("a", &run_id).await.unwrap() else { panic!("call {n} was not paid") };
        // It has to give its slot back, and to start again.
        let end = Instant::now() + Duration::from_secs(60);
        while service.is_active(&run_id) {
            assert!(Instant::now() < end, "the run is not suspended");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        service.reply("a", &run_id, &state.calls[0].call, &reply(json!({ "result": n }))).await.unwrap();
    }
    let Done::Answer(answer) = service.wait("a", &run_id).await.unwrap() else { panic!("it has no answer") };
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["value"], json!([0, 1, 2, 3, 4, 5, 6, 7]), "{answer}");
    // One run is left, and no call.
    let reason = async |program: &str| {
        let text = format!(r#"{{"program": "{program}", "tools": {{"echo": {{"echo": true}}}}}}"#);
        let run_id = service.submit(&tenant, &text, None).await.unwrap().run_id;
        let Done::Answer(answer) = service.wait("a", &run_id).await.unwrap() else { panic!("it waits") };
        serde_json::from_str::<Value>(&answer).unwrap()["error"]["reason"].clone()
    };
    assert_eq!(reason("(tool/echo {:n 1})").await, "budget_exceeded");
    assert_eq!(reason("1").await, "budget_exceeded");
}

/// A client that waits is answered when there is news, and else when its time is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_waits_for_news_without_asking_again() {
    const LONG: Duration = Duration::from_secs(60);
    let store = in_memory();
    let (service, tenant) = open(&store, "").await;
    let text = r#"{"program": "[(tool/ask {:n 1}) (tool/ask {:n 2})]", "tools": {"ask": {"client": true}}}"#;
    let run_id = service.submit(&tenant, text, None).await.unwrap().run_id;
    let first = service.wait_at_most("anonymous", &run_id, LONG, None).await.unwrap();
    assert_eq!(first.calls.len(), 1, "{first:?}");
    // There is nothing newer than this.
    let known = until(&service, &run_id, |state| state.status == RunStatus::Waiting).await.updated_ms;
    let began = Instant::now();
    let time = Duration::from_millis(300);
    let same = service.wait_at_most("anonymous", &run_id, time, Some(known)).await.unwrap();
    assert_eq!((same.updated_ms, began.elapsed() >= time), (known, true));
    // Someone else's reply ends the wait.
    let waits = tokio::spawn({
        let (service, run_id) = (service.clone(), run_id.clone());
        async move { service.wait_at_most("anonymous", &run_id, LONG, Some(known)).await.unwrap() }
    });
    service.reply("anonymous", &run_id, &first.calls[0].call, &reply(json!({ "result": 5 }))).await.unwrap();
    let second = tokio::time::timeout(LONG / 2, waits).await.unwrap().unwrap();
    assert_eq!(second.calls.len(), 1, "{second:?}");
    assert_ne!(second.calls[0].call, first.calls[0].call);
    let (other, of) = (service.clone(), run_id.clone());
    let answer = tokio::spawn(async move { other.wait_at_most("anonymous", &of, LONG, Some(second.updated_ms)).await });
    service.reply("anonymous", &run_id, &second.calls[0].call, &reply(json!({ "result": 6 }))).await.unwrap();
    let answer = tokio::time::timeout(LONG / 2, answer).await.unwrap().unwrap().unwrap();
    assert_eq!(answer.status, RunStatus::Done);
    let none = service.wait_at_most("anonymous", "00000000-0000-0000-0000-000000000000", LONG, None).await;
    assert!(matches!(none, Err(Refused::NotFound(_))), "{none:?}");
}

/// A run that was cancelled waits for no answer: a client that waits for it waits for its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_waits_for_the_end_of_a_cancelled_run() {
    let store = in_memory();
    let (service, tenant) = open(&store, "").await;
    let text = r#"{"program": "(tool/ask {:n 1})", "tools": {"ask": {"client": true}}}"#;
    let run_id = service.submit(&tenant, text, None).await.unwrap().run_id;
    until(&service, &run_id, |state| state.status == RunStatus::Waiting).await;
    service.drain();
    service.ended_without_closing().await;
    // No worker ends it yet.
    let front = Service::open_front(config(""), store.clone()).await.unwrap();
    front.cancel("anonymous", &run_id).await.unwrap();
    let (began, time) = (Instant::now(), Duration::from_millis(300));
    front.wait_at_most("anonymous", &run_id, time, None).await.unwrap();
    assert!(began.elapsed() >= time, "{:?}", began.elapsed());
    let waits = tokio::spawn({
        let (front, run_id) = (front.clone(), run_id.clone());
        async move { front.wait("anonymous", &run_id).await.unwrap() }
    });
    let (_worker, _) = open(&store, "").await;
    let waited = tokio::time::timeout(Duration::from_secs(60), waits).await.unwrap().unwrap();
    assert!(matches!(&waited, Done::Answer(answer) if answer.contains("cancelled")), "{waited:?}");
}

/// Runs whose callers wait leave slots to the durable runs of their tenant, however many they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durable_runs_have_their_turn_among_others() {
    const MANY: u64 = 5_000;
    let text =
        "isolation = \"in-process\"\n[limits]\ntimeout_ms = 60000\n[service]\nconcurrency = 1\nqueue_seconds = 600\n";
    let service = Service::open(Config::parse_with(text, "test.toml", &|_| None).unwrap(), in_memory()).await.unwrap();
    let tenant = service.tenant("anonymous").unwrap();
    let (runs, is_done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let client = |_| {
        let (service, tenant, runs, is_done) = (service.clone(), tenant.clone(), runs.clone(), is_done.clone());
        tokio::spawn(async move {
            let request = Request::parse(r#"{"program": "1"}"#).unwrap();
            while !is_done.load(Relaxed) && runs.fetch_add(1, Relaxed) < MANY {
                service.run(&tenant, &request, "r").await.unwrap();
            }
        })
    };
    let clients: Vec<_> = (0..8).map(client).collect();
    // All the others wait for the only slot by now.
    while runs.load(Relaxed) < 100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let run_id = service.submit(&tenant, r#"{"program": "2"}"#, None).await.unwrap().run_id;
    assert_eq!(done(&service, &run_id).await["value"], 2);
    is_done.store(true, Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert!(runs.load(Relaxed) < MANY, "the durable run had to wait for all others");
}

/// A client that comes back after the answer gets nothing more. One that comes back before it gets it once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_one_event() {
    let store = in_memory();
    let (service, tenant) = open(&store, "").await;
    let run_id = service.submit(&tenant, r#"{"program": "(do (println 1) 2)"}"#, None).await.unwrap().run_id;
    done(&service, &run_id).await;
    let all = async |read: u64| {
        let (mut events, mut all) = (service.events("anonymous", &run_id, read), Vec::new());
        while let Some(more) = events.next().await.unwrap() {
            all.extend(more.into_iter().map(|event| (event.number, event.kind.into_owned())));
        }
        all
    };
    let events = all(0).await;
    let kinds: Vec<&str> = events.iter().map(|(_, kind)| kind.as_str()).collect();
    assert_eq!(kinds, ["started", "print", "answer"]);
    for read in 0..=3 {
        let rest = events[usize::try_from(read).unwrap()..].to_vec();
        assert_eq!(all(read).await, rest, "after {read}");
    }
}

/// A tool that a tenant does not have makes no run durable: the tenant cannot tell it from one that does not exist.
#[tokio::test]
async fn hidden_tools_that_ask_need_no_journal() {
    let tenant = |name: &str, digit: &str, tools: &str| {
        format!("[[tenants]]\nname = \"{name}\"\ntoken_sha256 = \"{}\"\n{tools}\n", digit.repeat(64))
    };
    let text = format!(
        "isolation = \"in-process\"\n{PAY}{}{}",
        tenant("sees", "a", ""),
        tenant("other", "b", "tools = [\"else*\"]")
    );
    let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
    let service = Service::open_front(config, in_memory()).await.unwrap();
    let needs = |tenant: &str, text: &str| {
        service.needs_journal(&service.tenant(tenant).unwrap(), &Request::parse(text).unwrap())
    };
    for program in ["(tool/pay {:n 1})", "; tool/pay\n1"] {
        let text = json!({ "program": program }).to_string();
        assert_eq!((needs("sees", &text), needs("other", &text)), (true, false), "{program}");
    }
    let asks = r#"{"program": "1", "tools": {"ask": {"client": true}}}"#;
    assert!(needs("other", asks), "its own tools are its own");
}

/// Slots are taken for durable runs that are there: a worker without any is in nobody's way, even where nobody may wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_takes_no_slots() {
    let path = std::env::temp_dir().join(format!("ptc-{}-idle-worker.db", std::process::id()));
    let file: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, lisp_server::config::Durability::Process).unwrap());
    for store in [in_memory(), file] {
        for limit in ["queue = 0", "queue_seconds = 0"] {
            let text = format!("isolation = \"in-process\"\n[service]\nconcurrency = 2\n{limit}\n");
            let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
            let service = Service::open(config, store.clone()).await.unwrap();
            let tenant = service.tenant("anonymous").unwrap();
            let request = Request::parse(r#"{"program": "(+ 1 2)"}"#).unwrap();
            for n in 0..300 {
                let answer = service.run(&tenant, &request, "run").await;
                assert!(answer.is_ok(), "{limit} {n}: {answer:?}");
            }
            service.drain();
            service.ended_without_closing().await;
        }
    }
    for end in ["", "-wal", "-shm", "-lock"] {
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
}
