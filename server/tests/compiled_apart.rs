//! With process isolation, what came in a request is compiled in the run's process: the service's own processor time and
//! memory do not depend on what the text says, only on how long it is.
//!
//! It has a `main` of its own, which templates need.

#[cfg(target_os = "linux")]
mod linux {
    use lisp_runtime::Request;
    use lisp_server::config::Config;
    use lisp_server::runs::{Done, Refused, Reply, RunState, Service, TenantState, Turn};
    use lisp_server::store::{MemoryStore, RunStatus, Store};
    use serde_json::{Value, json};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    const ISOLATIONS: [&str; 2] = ["process", "in-process"];
    const SET_UPS: usize = 24;
    const BYTES: usize = 600_000;

    struct Served {
        service: Service,
        tenant: Arc<TenantState>,
    }

    async fn open_on(store: &Arc<dyn Store>, isolation: &str, more: &str) -> Served {
        let text = format!(
            "isolation = \"{isolation}\"\nceiling = {{ timeout_ms = 120000{more} }}\n[limits]\ntimeout_ms = 8000\n[service]\nsuspend_after_ms = 0\nconcurrency = 4\n"
        );
        let config = Config::parse_with(&text, "test.toml", &|_| None).unwrap();
        let service = Service::open(config, store.clone()).await.unwrap();
        let tenant = service.tenant("anonymous").unwrap();
        Served { service, tenant }
    }

    async fn open(isolation: &str) -> Served {
        open_on(&(Arc::new(MemoryStore::new()) as Arc<dyn Store>), isolation, "").await
    }

    impl Served {
        async fn run(&self, body: &Value) -> Value {
            let text = body.to_string();
            let request = Request::parse(&text).unwrap();
            let answer = self.service.run(&self.tenant, &request, "r").await.unwrap();
            serde_json::from_str(&answer.to_json()).unwrap()
        }

        async fn durable(&self, body: &Value) -> Value {
            match self.service.submit_and_wait(&self.tenant, &body.to_string(), None).await.unwrap() {
                Done::Answer(answer) => serde_json::from_str(&answer).unwrap(),
                Done::Waiting(state) => panic!("{state:?}"),
            }
        }

        async fn session(&self, opening: &Value) -> Result<String, Refused> {
            self.service.open_session(&self.tenant, opening.to_string()).await.map(|state| state.session_id)
        }

        async fn turn(&self, session: &str, program: &str) -> Value {
            let turn = Turn { id: None, program: program.to_owned() };
            let answer = self.service.turn(&self.tenant, session, turn).await.unwrap();
            serde_json::from_str(&answer.to_json()).unwrap()
        }

        async fn until(&self, run_id: &str, wanted: impl Fn(&RunState) -> bool) -> RunState {
            let end = Instant::now() + Duration::from_secs(120);
            loop {
                let state = self.service.state("anonymous", run_id).await.unwrap();
                if wanted(&state) {
                    return state;
                }
                assert!(Instant::now() < end, "{state:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }

        async fn reply(&self, run_id: &str, result: i64) {
            let reply: Reply = serde_json::from_value(json!({ "result": result })).unwrap();
            self.service.reply("anonymous", run_id, "1", &reply).await.unwrap();
        }
    }

    /// What this process has used: its processor time, of all its threads and of no child, and its peak memory.
    #[derive(Clone, Copy, Debug)]
    struct Used {
        cpu: Duration,
        peak_kb: u64,
    }

    fn cpu() -> Duration {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
        // utime and stime, in hundredths of a second.
        Duration::from_millis(10 * (ticks(11) + ticks(12)))
    }

    fn memory(field: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Returns what some work uses of this process.
    async fn used<T>(work: impl Future<Output = T>) -> (T, Used) {
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (before, memory_before) = (cpu(), memory("VmRSS:"));
        let done = work.await;
        (done, Used { cpu: cpu() - before, peak_kb: memory("VmHWM:").saturating_sub(memory_before) })
    }

    /// Asserts that work on text that is hard to compile takes the service what the same work on easy text takes it.
    fn assert_same(what: &str, hard: Used, easy: Used) {
        println!("{what}: {hard:?}, {easy:?} for text of the same size that is easy to compile");
        assert!(hard.cpu <= easy.cpu * 2 + Duration::from_secs(1), "{what}: {hard:?}, {easy:?}");
        assert!(hard.peak_kb <= easy.peak_kb * 3 / 2 + 48 * 1024, "{what}: {hard:?}, {easy:?}");
    }

    /// A program of many small forms.
    fn hard(bytes: usize) -> String {
        let form = "(def a [1 {:b (+ 2 3)} (fn [x] x)])\n";
        form.repeat(bytes / form.len())
    }

    /// A program that is one string.
    fn easy(bytes: usize) -> String {
        format!("\"{}\"", "a".repeat(bytes - 2))
    }

    fn with_set_ups(text: String) -> Value {
        json!({ "program": "1", "setup": vec![text; SET_UPS] })
    }

    async fn set_up_programs() {
        let served = open("process").await;
        let (hard, easy) = (with_set_ups(hard(BYTES)), with_set_ups(easy(BYTES)));
        let opening = |request: &Value| json!({ "setup": request["setup"].clone() });
        assert_eq!(served.run(&json!({ "program": "(+ 1 2)" })).await["value"], 3);
        let (_, easily) = used(served.run(&easy)).await;
        let (answer, hardly) = used(served.run(&hard)).await;
        assert_same("a run", hardly, easily);
        // However it ends, it is the run that ends.
        assert_ne!(answer["verdict"], "host_fault", "{answer}");
        let (_, easily) = used(served.durable(&easy)).await;
        let (answer, hardly) = used(served.durable(&hard)).await;
        assert_same("a durable run", hardly, easily);
        assert_ne!(answer["verdict"], "host_fault", "{answer}");
        let (session, easily) = used(served.session(&opening(&easy))).await;
        let (_, hardly) = used(served.session(&opening(&hard))).await;
        assert_same("a session", hardly, easily);
        let (_, turn) = used(served.turn(&session.unwrap(), "1")).await;
        assert_same("a turn", turn, easily);
        // Other runs are served as before.
        assert_eq!(served.run(&json!({ "program": "(+ 1 2)" })).await["value"], 3);
    }

    async fn resumed_programs() {
        let served = open("process").await;
        let mut figures = Vec::new();
        for text in [easy(BYTES / 2), hard(BYTES / 2)] {
            let body = json!({
                "program": format!("{text} (+ n (tool/ask {{}}))"),
                "setup": [text, "(def n 1)"],
                "tools": {"ask": {"client": true}},
                "limits": {"timeout_ms": 60_000},
            });
            let run_id = served.service.submit(&served.tenant, &body.to_string(), None).await.unwrap().run_id;
            served.until(&run_id, |state| state.calls.len() == 1).await;
            // It is suspended, and continues in another process.
            let resumed = async {
                served.reply(&run_id, 41).await;
                served.until(&run_id, |state| state.status == RunStatus::Done).await
            };
            let (state, figure) = used(resumed).await;
            let answer: Value = serde_json::from_str(state.answer.unwrap().get()).unwrap();
            assert_eq!(answer["value"], 42, "{answer}");
            figures.push(figure);
        }
        assert_same("a resumed run", figures[1], figures[0]);
    }

    /// An answer without what differs from run to run.
    fn gist(mut answer: Value) -> Value {
        let fields = answer.as_object_mut().unwrap();
        ["usage", "run_id", "limits"].iter().for_each(|name| drop(fields.remove(*name)));
        answer
    }

    async fn errors() {
        let served = [open(ISOLATIONS[0]).await, open(ISOLATIONS[1]).await];
        let good = "(def a 1)";
        for (bad, reason, at) in [
            ("(def b", "parse_error", 2),
            ("(let [x] x)", "invalid_form", 2),
            ("(nope 1)", "unbound_var", 2),
            ("(tool/nope {})", "unknown_tool", 2),
            ("(def b (/ 1 0))", "arithmetic_error", 2),
        ] {
            let setup = json!([good, good, bad, good]);
            let request = json!({ "program": "(", "setup": setup });
            let mut answers = Vec::new();
            for served in &served {
                answers.push(gist(served.run(&request).await));
                answers.push(gist(served.durable(&request).await));
            }
            // Set-up programs are compiled before the program, and run after it is.
            let (reason, at) = if reason == "parse_error" || reason == "invalid_form" {
                (reason, Some(at))
            } else {
                ("parse_error", None)
            };
            for answer in &answers {
                assert_eq!(answer, &answers[0], "{bad}");
                assert_eq!(answer["error"]["reason"], reason, "{bad}: {answer}");
                assert_eq!(answer["error"]["details"]["setup"].as_u64(), at, "{bad}: {answer}");
            }
        }
        for (bad, reason) in [
            ("(def b", "parse_error"),
            ("(let [x] x)", "invalid_form"),
            ("(nope 1)", "unbound_var"),
            ("(tool/nope {})", "unknown_tool"),
            ("(def b (/ 1 0))", "arithmetic_error"),
        ] {
            let setup = json!([good, good, bad, good]);
            let (mut answers, mut refusals) = (Vec::new(), Vec::new());
            for served in &served {
                answers.push(gist(served.run(&json!({ "program": "a", "setup": setup })).await));
                answers.push(gist(served.durable(&json!({ "program": "a", "setup": setup })).await));
                refusals.push(match served.session(&json!({ "setup": setup })).await {
                    Err(Refused::Invalid { field, message }) => Some((field, message)),
                    Err(refused) => panic!("{bad}: {refused:?}"),
                    // What only shows when it runs is the error of each turn.
                    Ok(session) => {
                        answers.push(gist(served.turn(&session, "a").await));
                        None
                    }
                });
            }
            for answer in &answers {
                assert_eq!(answer["error"]["reason"], reason, "{bad}: {answers:#?}");
                assert_eq!(answer["error"]["details"]["setup"], 2, "{bad}: {answer}");
                assert_eq!(answer["error"]["message"], answers[0]["error"]["message"], "{bad}");
                assert_eq!(answer["error"]["line"], answers[0]["error"]["line"], "{bad}");
            }
            assert_eq!(refusals[0], refusals[1], "{bad}");
            match &refusals[0] {
                Some((field, message)) => {
                    assert!(field == "setup[2]" && message.contains(reason), "{field}: {message}")
                }
                None => assert!(["arithmetic_error", "unbound_var"].contains(&reason), "{bad}"),
            }
        }
    }

    async fn hostile() {
        let served = open("process").await;
        let easily = used(served.run(&json!({ "program": "1", "setup": [easy(BYTES)] }))).await.1;
        let nested = |open: &str, close: &str| format!("{}{}", open.repeat(499_000), close.repeat(499_000));
        for (what, source) in [
            ("nested lists", nested("(", ")")),
            ("nested vectors", nested("[", "]")),
            ("open brackets", "[".repeat(999_000)),
            ("quotes", "'".repeat(999_000)),
            ("skipped forms", "#_".repeat(499_000)),
            ("an endless loop", "(loop [] (recur))".to_owned()),
            ("an endless sequence", "(count (iterate inc 0))".to_owned()),
            ("growing", "(loop [x [1]] (recur [x x]))".to_owned()),
        ] {
            let limits = json!({ "timeout_ms": 2_000 });
            let request = json!({ "program": "1", "setup": ["1", source], "limits": limits });
            let (answer, hardly) = used(served.run(&request)).await;
            assert_same(what, hardly, easily);
            let verdict = answer["verdict"].as_str().unwrap();
            assert!(["error", "timeout", "out_of_memory"].contains(&verdict), "{what}: {answer}");
            // The opening says so, or its turns do.
            match served.session(&json!({ "setup": ["1", source], "limits": limits })).await {
                Err(Refused::Invalid { field, .. }) => {
                    assert!(field == "setup[1]" || field.is_empty(), "{what}: {field}")
                }
                Err(refused) => panic!("{what}: {refused:?}"),
                Ok(session) => assert_ne!(served.turn(&session, "1").await["verdict"], "ok", "{what}"),
            }
            assert_eq!(served.run(&json!({ "program": "(+ 1 2)" })).await["value"], 3, "{what}");
        }
    }

    /// A run whose program does not compile any more is stuck, and continues when it does again.
    async fn programs_that_do_not_compile_any_more() {
        for isolation in ISOLATIONS {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let program = format!("(inc (tool/ask {{}})) ;{}\n", "-".repeat(2_000));
            let program = format!("{program} (+ 1 (tool/ask {{:n 2}}))");
            let body = json!({ "program": program, "tools": {"ask": {"client": true}} });
            let run_id = {
                let served = open_on(&store, isolation, "").await;
                let run_id = served.service.submit(&served.tenant, &body.to_string(), None).await.unwrap().run_id;
                served.until(&run_id, |state| state.calls.len() == 1).await;
                served.service.drain();
                served.service.ended_without_closing().await;
                run_id
            };
            {
                let served = open_on(&store, isolation, ", program_bytes = 1000").await;
                served.reply(&run_id, 1).await;
                let stuck = served.until(&run_id, |state| state.status == RunStatus::Stuck).await;
                let why = stuck.error.unwrap();
                assert!(why.contains("does not compile its program"), "{isolation}: {why}");
                served.service.drain();
                served.service.ended_without_closing().await;
            }
            let served = open_on(&store, isolation, "").await;
            let waits = served.until(&run_id, |state| state.calls.iter().any(|call| call.call == "2")).await;
            assert_eq!(waits.calls.len(), 1, "{isolation}: {waits:?}");
        }
    }

    /// Some bytes of text each cannot become any number of programs and tools.
    async fn parts_of_requests() {
        let served = open("process").await;
        let tools = |count: usize| (0..count).map(|n| (format!("t{n}"), json!({}))).collect::<serde_json::Map<_, _>>();
        let request = |set_ups: usize, count: usize| json!({ "program": "1", "setup": vec!["2"; set_ups], "tools": tools(count) });
        assert_eq!(served.run(&request(1_000, 1_000)).await["value"], 1);
        for (set_ups, count, what) in [(1_001, 0, "set-up programs"), (0, 1_001, "tools")] {
            let text = request(set_ups, count).to_string();
            let error = Request::parse(&text).unwrap_err().to_string();
            assert!(error.contains(&format!("more than 1000 {what}")), "{error}");
            let opening = json!({ "setup": vec!["2"; set_ups], "tools": tools(count) });
            let refused = served.session(&opening).await;
            assert!(matches!(&refused, Err(Refused::Invalid { message, .. }) if message.contains(what)), "{refused:?}");
        }
    }

    type Test = Pin<Box<dyn Future<Output = ()>>>;

    pub(crate) fn main() {
        lisp_sandbox::init();
        if std::env::args().any(|argument| argument == "--list") {
            return;
        }
        let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
        let tests: [(&str, Test); 6] = [
            ("set_up_programs", Box::pin(set_up_programs())),
            ("resumed_programs", Box::pin(resumed_programs())),
            ("errors", Box::pin(errors())),
            ("hostile", Box::pin(hostile())),
            ("programs_that_do_not_compile_any_more", Box::pin(programs_that_do_not_compile_any_more())),
            ("parts_of_requests", Box::pin(parts_of_requests())),
        ];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        for (name, test) in tests {
            if only.as_ref().is_none_or(|only| name.contains(only.as_str())) {
                println!("test {name} ..");
                runtime.block_on(test);
            }
        }
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
