//! Runs behind the process mode as futures, on one thread.
//!
//! It has a `main` of its own, which templates need.

#[cfg(target_os = "linux")]
mod linux {
    use lisp_runtime::tools::{Approval, AskedCall, Effect, PolicyDecision};
    use lisp_runtime::{
        Cancel, Engine, EngineBuilder, Input, Limits, LimitsRequest, Outcome, Reason, Recording, Request, Tool,
        ToolCall, ToolError, Verdict,
    };
    use lisp_sandbox::{DomainLimits, Sandbox, SandboxRun};
    use rustix::process::{Pid, Signal};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::time::{Duration, Instant};
    use tokio::runtime::{Builder, Runtime};
    use tokio::time::sleep;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().build().unwrap()
    }

    fn patient() -> Limits {
        Limits::default().with_timeout_ms(30_000).with_parallel_timeout_ms(30_000).with_loop_iterations(0)
    }

    /// Counts those that were dropped.
    struct Guard(Arc<AtomicUsize>);

    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn builder(dropped: &Arc<AtomicUsize>) -> EngineBuilder {
        let dropped = dropped.clone();
        Engine::builder()
            .limits(patient())
            .grant(Tool::new_async("slow", |call: ToolCall| async move {
                sleep(Duration::from_millis(300)).await;
                call.get::<i64>("n")
            }))
            .grant(Tool::new_async("never", move |_| {
                let guard = Guard(dropped.clone());
                async move {
                    std::future::pending::<()>().await;
                    drop(guard);
                    Ok(())
                }
            }))
            .grant(Tool::new_async("now", |call: ToolCall| async move { call.get::<i64>("n") }))
            .grant(Tool::new_async("kept", |call: ToolCall| async move { call.get::<i64>("n") }).cached())
            .grant(Tool::new_async("fails", |_| async { Err::<(), _>(ToolError::new("no")) }))
            .grant(Tool::new_async("panics", |_| async { if true { panic!("a test's panic") } else { Ok(()) } }))
            .tool("closure", |call| Ok(call.get::<i64>("n")? + 1))
    }

    fn gist(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug {
        let ledger: Vec<_> = outcome
            .ledger
            .iter()
            .map(|call| (call.name.clone(), call.arguments.text.clone(), call.status, call.worker.clone()))
            .collect();
        let problem = outcome.problem().map(|problem| problem.error.message.clone());
        (outcome.text().map(str::to_owned), problem, outcome.prints.clone(), ledger, outcome.usage.fuel)
    }

    fn the_same_outcome(sandbox: &Sandbox) {
        let runtime = runtime();
        let in_process = sandbox.engine();
        let domain = sandbox.domain("acme").unwrap();
        let mut asked = LimitsRequest::default();
        // Which of those beside a failed one have ended is a matter of time.
        asked.set("parallel_window", 1).unwrap();
        for program in [
            "(+ 1 2)",
            "(println :a) (tool/now {:n 2})",
            "(mapv #(tool/now {:n %}) (range 50))",
            "(pmap (fn [n] (println n) (tool/closure {:n n}) (tool/now {:n n})) (range 20))",
            "(pmap (fn [n] (tool/kept {:n (mod n 2)})) (range 9))",
            "[(tool/kept {:n 1}) (tool/closure {:n 1}) (tool/kept {:n 1})]",
            "(try (tool/fails {}) (catch Exception e (ex-message e)))",
            "(pmap (fn [n] (if (= n 2) (tool/panics {}) (tool/now {:n n}))) (range 5))",
            "(tool/now {:m 1})",
            "(tool/missing {})",
            "(inc",
            "(apply str (repeat 300000 \"long \"))",
        ] {
            let input = || Input::new().limits(asked);
            let process = runtime.block_on(sandbox.eval_async(program, &input()));
            let warm = runtime.block_on(domain.eval_async(program, &input()));
            assert_eq!(gist(&warm), gist(&process), "{program}");
            let compiled = in_process.compile(program);
            match compiled {
                Ok(compiled) => {
                    let here = runtime.block_on(in_process.run_async(&compiled, input()));
                    assert_eq!(gist(&here), gist(&process), "{program}");
                    assert!(here.problem().is_some() || process.usage.rss_peak_bytes.is_some());
                }
                Err(_) => assert_eq!(process.verdict(), Verdict::Error),
            }
        }
        // One that may start threads, where there are several processors, and one for programs that ask for none.
        let has_threads = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
        assert_eq!(domain.processes(), 1 + usize::from(has_threads));
        let named = Request::parse(r#"{"program": "(tool/now {:n 8})", "domain": "acme"}"#).unwrap();
        assert_eq!(runtime.block_on(sandbox.run_async(&named)).value::<i64>().unwrap(), 8);
        let unnamed = Request::parse(r#"{"program": "1", "domain": ""}"#).unwrap();
        assert_eq!(runtime.block_on(sandbox.run_async(&unnamed)).verdict(), Verdict::Error);
        let request = Request::parse(r#"{"program": "(tool/now {:n data/n})", "data": {"n": 7}}"#).unwrap();
        let run = sandbox.run_async(&request);
        let id = run.run_id().to_owned();
        let outcome = runtime.block_on(run);
        assert_eq!((outcome.value::<i64>().unwrap(), &*outcome.run_id), (7, &*id));
    }

    fn many_wait_on_one_thread(sandbox: &Sandbox) {
        const RUNS: i64 = 60;
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let before = threads();
        let begun = Instant::now();
        let (outcomes, while_waiting) = runtime().block_on(async {
            let local = tokio::task::LocalSet::new();
            let program = "(reduce + (pmap (fn [n] (tool/slow {:n (+ n data/k)})) (range 3)))";
            let runs: Vec<_> = (0..RUNS)
                .map(|k| local.spawn_local(sandbox.eval_async(program, &Input::new().data("k", &k))))
                .collect();
            let waiting = local
                .run_until(async {
                    sleep(Duration::from_millis(250)).await;
                    threads()
                })
                .await;
            let mut outcomes = Vec::new();
            for run in runs {
                outcomes.push(local.run_until(run).await.unwrap());
            }
            (outcomes, waiting)
        });
        let took = begun.elapsed();
        for (k, outcome) in (0..).zip(&outcomes) {
            assert_eq!(outcome.value::<i64>().unwrap(), 3 + 3 * k, "{:?}", outcome.problem());
        }
        println!(
            "{RUNS} processes that wait for three tools of 300 ms each: {took:?}; {before} threads, then {while_waiting}"
        );
        // One for sockets, one for alarms. One after the other they would take 18 s.
        assert!(while_waiting <= before + 2, "{before} {while_waiting}");
        assert!(took < Duration::from_secs(6), "{took:?}");
    }

    /// More runs than the domain has processes, each of which waits for a tool: they take turns.
    fn runs_of_a_domain_take_turns(sandbox: &Sandbox, dropped: &AtomicUsize) {
        let domain = sandbox.domain("turns").unwrap();
        let values = runtime().block_on(async {
            let local = tokio::task::LocalSet::new();
            let input = |k: i64| Input::new().data("k", &k);
            let runs: Vec<_> =
                (0..12).map(|k| local.spawn_local(domain.eval_async("(tool/slow {:n data/k})", &input(k)))).collect();
            let mut values = Vec::new();
            for run in runs {
                values.push(local.run_until(run).await.unwrap().value::<i64>().unwrap());
            }
            values
        });
        assert_eq!((values, domain.processes()), ((0..12).collect(), 4));
        // A run that is dropped takes its process with it, and no other.
        let before = dropped.load(SeqCst);
        runtime().block_on(async {
            let run = domain.eval_async("(tool/never {})", &Input::new());
            assert!(tokio::time::timeout(Duration::from_millis(200), run).await.is_err());
        });
        assert_eq!((dropped.load(SeqCst), domain.processes()), (before + 1, 3));
        // One that finds no place ends with its time, and so does one that waits.
        let mut asked = LimitsRequest::default();
        asked.set("timeout_ms", 150).unwrap();
        runtime().block_on(async {
            let local = tokio::task::LocalSet::new();
            let input = || Input::new().limits(asked);
            let runs: Vec<_> =
                (0..6).map(|_| local.spawn_local(domain.eval_async("(tool/slow {:n 1})", &input()))).collect();
            for run in runs {
                assert_eq!(local.run_until(run).await.unwrap().verdict(), Verdict::Timeout);
            }
        });
    }

    fn dropping_kills_and_deadlines_hold(sandbox: &Sandbox, dropped: &AtomicUsize) {
        let runtime = runtime();
        let program = "(pmap (fn [n] (tool/never {:n n})) (range 3))";
        runtime.block_on(async {
            let run = sandbox.eval_async(program, &Input::new());
            assert!(tokio::time::timeout(Duration::from_millis(200), run).await.is_err());
        });
        assert_eq!(dropped.swap(0, SeqCst), 3);
        drop(sandbox.eval_async(program, &Input::new()));
        for (source, why) in [(program, 3), ("(tool/never {})", 1), ("(loop [] (recur))", 0)] {
            let mut asked = LimitsRequest::default();
            asked.set("timeout_ms", 150).unwrap();
            let outcome = runtime.block_on(sandbox.eval_async(source, &Input::new().limits(asked)));
            assert_eq!((outcome.verdict(), dropped.swap(0, SeqCst)), (Verdict::Timeout, why), "{source}");
            assert!(outcome.usage.duration_us < 3_000_000, "{source}: {}", outcome.usage.duration_us);
            let cancel = Cancel::new();
            let run = sandbox.eval_async(source, &Input::new().cancel_with(&cancel));
            let outcome = runtime.block_on(async {
                let waits = async {
                    sleep(Duration::from_millis(60)).await;
                    cancel.cancel();
                    std::future::pending::<Outcome>().await
                };
                tokio::select! { outcome = run => outcome, outcome = waits => outcome }
            });
            assert_eq!((outcome.verdict(), dropped.swap(0, SeqCst)), (Verdict::Cancelled, why), "{source}");
            assert!(outcome.usage.duration_us < 3_000_000, "{source}: {}", outcome.usage.duration_us);
        }
        assert!(sandbox.eval("1", &Input::new()).is_success());
    }

    fn recorded_runs_go_on(sandbox: &Sandbox) {
        let recording = Recording::new();
        let source = "[(tool/now {:n 1}) (pmap (fn [n] (tool/now {:n n})) (range 3))]";
        let whole = runtime().block_on(sandbox.eval_async(source, &Input::new().record(&recording)));
        assert!(whole.is_success(), "{:?}", whole.problem());
        let record = recording.record().unwrap();
        assert_eq!(record.run_id(), &*whole.run_id);
        let (program, input, _) = sandbox.engine().open_record(&record, &[]).unwrap();
        let again = runtime().block_on(sandbox.eval_async(program.source(), &input));
        assert_eq!((again.text(), &again.run_id), (whole.text(), &whole.run_id));
    }

    /// Kills what the templates have forked, and waits until it is gone.
    async fn kill_programs(sandbox: &Sandbox) {
        let children = || -> Vec<i32> {
            let of = |pid| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
            let all: Vec<String> = sandbox.template_pids().into_iter().map(of).collect();
            all.iter().flat_map(|line| line.split_whitespace()).map(|pid| pid.parse().unwrap()).collect()
        };
        let killed = children();
        assert!(!killed.is_empty());
        for pid in &killed {
            rustix::process::kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL).unwrap();
        }
        while children().iter().any(|pid| killed.contains(pid)) {
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// The process of a recorded run is lost: calls that write are heard to their end, unless the run is cancelled. Calls that
    /// read are dropped.
    fn calls_of_a_lost_process_are_heard() {
        let (is_held, begun) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let tool = |name: &str| {
            let (is_held, begun) = (is_held.clone(), begun.clone());
            Tool::new_async(name, move |call: ToolCall| {
                let is_held = is_held.clone();
                begun.fetch_add(1, SeqCst);
                async move {
                    while is_held.load(SeqCst) {
                        sleep(Duration::from_millis(1)).await;
                    }
                    call.get::<i64>("n")
                }
            })
        };
        let engine = Engine::builder().limits(patient()).grant(tool("write"));
        let engine = engine.grant(tool("read").with_effect(Effect::Read)).build().unwrap();
        let sandbox = Sandbox::builder().engine(engine.clone()).without_namespaces().build().unwrap();
        let domain = sandbox.domain("acme").unwrap();
        for (name, is_cancelled) in [("write", false), ("read", false), ("write", true)] {
            for in_domain in [false, true] {
                let (recording, cancel) = (Recording::new(), Cancel::new());
                let input = Input::new().record(&recording).cancel_with(&cancel);
                let program = format!("(pmap (fn [n] (tool/{name} {{:n n}})) (range 3))");
                is_held.store(true, SeqCst);
                begun.store(0, SeqCst);
                let local = tokio::task::LocalSet::new();
                let outcome = local.block_on(&runtime(), async {
                    let run = if in_domain {
                        domain.eval_async(&program, &input)
                    } else {
                        sandbox.eval_async(&program, &input)
                    };
                    let run = tokio::task::spawn_local(run);
                    while begun.load(SeqCst) < 3 {
                        sleep(Duration::from_millis(1)).await;
                    }
                    kill_programs(&sandbox).await;
                    for _ in 0..100 {
                        sleep(Duration::from_millis(1)).await;
                        assert!(name == "read" || !run.is_finished(), "it did not wait");
                    }
                    match is_cancelled {
                        true => cancel.cancel(),
                        false => is_held.store(name == "read", SeqCst),
                    }
                    run.await.unwrap()
                });
                let (ends, text) = (recording.text().matches("\"state\":\"done\"").count(), recording.text());
                assert_eq!(outcome.problem().map(|problem| problem.reason()), Some(Reason::HostFault), "{name} {text}");
                assert_eq!(ends, if name == "write" && !is_cancelled { 3 } else { 0 }, "{name} {is_cancelled} {text}");
                if !is_cancelled {
                    is_held.store(false, SeqCst);
                    let (program, input, _) = engine.open_record(&recording.record().unwrap(), &[]).unwrap();
                    let again = runtime().block_on(sandbox.eval_async(program.source(), &input));
                    assert_eq!(again.text(), Some("[0 1 2]"), "{name} {:?}", again.problem());
                    assert_eq!(begun.load(SeqCst), if name == "write" { 3 } else { 6 }, "{name}");
                }
            }
        }
        println!("calls of a lost process are heard ... ok");
    }

    fn approvals_come_while_the_run_goes_on() {
        let policy = |call: &AskedCall<'_>| PolicyDecision::Ask(format!("call {}?", call.name()));
        let engine = builder(&Arc::default()).policy(policy).build().unwrap();
        let sandbox = Sandbox::builder().engine(engine).build().unwrap();
        let input = |answers: [Approval; 3]| {
            Input::new().approvals(move |call: ToolCall| {
                let answers = answers.clone();
                async move {
                    let n = call.get::<usize>("n").unwrap();
                    assert_eq!(call.question(), Some("call now?"));
                    // All three are asked at once, and answered from the last to the first.
                    sleep(Duration::from_millis(40 - 10 * n as u64)).await;
                    answers[n].clone()
                }
            })
        };
        let other = Approval::ApproveWith(r#"{"n":7}"#.to_owned());
        let program = "(pmap (fn [n] (tool/now {:n n})) (range 3))";
        let recording = Recording::new();
        let given = input([Approval::Approve, other, Approval::Approve]).record(&recording);
        let outcome = runtime().block_on(sandbox.eval_async(program, &given));
        assert_eq!(outcome.text(), Some("[0 7 2]"), "{:?}", outcome.problem());
        assert_eq!(recording.text().matches(r#""state":"begun""#).count(), 3);
        let given = input([Approval::Approve, Approval::Reject("no".to_owned()), Approval::Approve]);
        let outcome = runtime().block_on(sandbox.eval_async(program, &given));
        assert_eq!(outcome.problem().unwrap().reason(), Reason::ToolDenied);
        println!("approvals come while the run goes on ... ok");
    }

    /// Runs as futures wait in one queue with runs that block threads.
    fn nobody_overtakes(sandbox: &Sandbox) {
        let mut limits = DomainLimits::default();
        limits.processes = 1;
        let one = Sandbox::builder().engine(sandbox.engine().clone()).domain_limits(limits).without_namespaces();
        let domain = one.build().unwrap().domain("one").unwrap();
        let ends = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            // Two that are never done: there is always one waiting.
            for _ in 0..2 {
                scope.spawn(|| {
                    while ends.load(SeqCst) == 0 {
                        let outcome = domain.eval("(loop [i 0] (if (< i 20000) (recur (inc i)) i))", &Input::new());
                        assert!(outcome.is_success(), "{:?}", outcome.problem());
                    }
                });
            }
            let begun = Instant::now();
            let mut asked = LimitsRequest::default();
            asked.set("timeout_ms", 1_000).unwrap();
            for n in 0..20 {
                let input = Input::new().data("n", &n).limits(asked);
                let outcome = runtime().block_on(domain.eval_async("data/n", &input));
                assert_eq!(outcome.value::<i64>().ok(), Some(n), "{:?}", outcome.problem());
            }
            ends.store(1, SeqCst);
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(5), "{took:?}");
        });
        // A future that is kept and not polled holds up nobody.
        let slow = domain.eval_async("(tool/slow {:n 1})", &Input::new());
        let kept = domain.eval_async("1", &Input::new());
        runtime().block_on(async {
            let (mut slow, mut kept) = (Box::pin(slow), Box::pin(kept));
            let polled = |run: &mut Pin<Box<SandboxRun>>| {
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                Future::poll(Pin::as_mut(run), &mut context).is_ready()
            };
            assert_eq!((polled(&mut slow), polled(&mut kept)), (false, false));
            slow.await;
            let begun = Instant::now();
            assert_eq!(domain.eval_async("2", &Input::new()).await.value::<i64>().unwrap(), 2);
            assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
            assert_eq!(kept.await.value::<i64>().unwrap(), 1);
        });
        println!("nobody overtakes ... ok");
    }

    /// As many long runs as there is room for, and one more, which is none of their business.
    fn a_full_template_takes_nobody_with_it() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let engine = builder(&dropped).ceiling(Limits::unlimited()).build().unwrap();
        let sandbox = Sandbox::builder().engine(engine).without_namespaces().build().unwrap();
        let template = sandbox.template_pids();
        runtime().block_on(async {
            let local = tokio::task::LocalSet::new();
            let long = |_| local.spawn_local(sandbox.eval_async("(tool/never {})", &Input::new()));
            let runs: Vec<_> = (0..256).map(long).collect();
            let path = format!("/proc/{0}/task/{0}/children", template[0]);
            let children = || std::fs::read_to_string(&path).unwrap().split_whitespace().count();
            while children() < 256 {
                local.run_until(sleep(Duration::from_millis(5))).await;
            }
            let mut asked = LimitsRequest::default();
            asked.set("timeout_ms", 700).unwrap();
            let late = local.run_until(sandbox.eval_async("1", &Input::new().limits(asked))).await;
            let problem = late.problem().unwrap();
            assert_eq!(problem.reason(), Reason::Timeout);
            assert!(problem.error.hint.as_ref().unwrap().contains("all 256 processes were in use"), "{problem:?}");
            assert!(runs.iter().all(|run| !run.is_finished()));
            let waits = local.spawn_local(sandbox.eval_async("(+ 1 2)", &Input::new()));
            local.run_until(sleep(Duration::from_millis(50))).await;
            runs[7].abort();
            assert_eq!(local.run_until(waits).await.unwrap().value::<i64>().unwrap(), 3);
            assert_eq!(runs.iter().filter(|run| run.is_finished()).count(), 1);
        });
        assert_eq!((sandbox.template_pids(), dropped.load(SeqCst)), (template, 256));
        println!("a full template takes nobody with it ... ok");
    }

    /// A future that is over and kept holds nothing of its domain.
    fn futures_that_are_over_hold_no_place() {
        let mut limits = DomainLimits::default();
        limits.domains = 1;
        let sandbox = Sandbox::builder().domain_limits(limits).without_namespaces().build().unwrap();
        let mut run = Box::pin(sandbox.domain("a").unwrap().eval_async("1", &Input::new()));
        assert_eq!(runtime().block_on(&mut run).value::<i64>().unwrap(), 1);
        assert_eq!(sandbox.domain("b").unwrap().processes(), 0);
        println!("futures that are over hold no place ... ok");
    }

    pub(crate) fn main() {
        lisp_sandbox::init();
        let dropped = Arc::new(AtomicUsize::new(0));
        let sandbox = Sandbox::builder().engine(builder(&dropped).build().unwrap()).build().unwrap();
        the_same_outcome(&sandbox);
        println!("the same outcome ... ok");
        many_wait_on_one_thread(&sandbox);
        println!("many wait on one thread ... ok");
        dropping_kills_and_deadlines_hold(&sandbox, &dropped);
        println!("dropping kills and deadlines hold ... ok");
        runs_of_a_domain_take_turns(&sandbox, &dropped);
        println!("runs of a domain take turns ... ok");
        recorded_runs_go_on(&sandbox);
        println!("recorded runs go on ... ok");
        calls_of_a_lost_process_are_heard();
        approvals_come_while_the_run_goes_on();
        nobody_overtakes(&sandbox);
        a_full_template_takes_nobody_with_it();
        futures_that_are_over_hold_no_place();
        #[cfg(feature = "tracing")]
        spans_of_processes_have_no_texts();
    }

    #[cfg(feature = "tracing")]
    fn spans_of_processes_have_no_texts() {
        use std::sync::Mutex;
        use tracing::span::{Attributes, Id, Record};
        use tracing::{Event, Metadata, Subscriber};

        /// Writes down what it is told.
        #[derive(Clone, Default)]
        struct Notes(Arc<Mutex<String>>);
        impl Notes {
            fn note(&self, what: &str) {
                self.0.lock().unwrap().push_str(what);
            }
        }
        impl Subscriber for Notes {
            fn enabled(&self, metadata: &Metadata<'_>) -> bool {
                metadata.target() == "ptc_lisp"
            }
            fn new_span(&self, attributes: &Attributes<'_>) -> Id {
                self.note(&format!("\n{} {:?}", attributes.metadata().name(), attributes.values()));
                Id::from_u64(1)
            }
            fn record(&self, _: &Id, values: &Record<'_>) {
                self.note(&format!("\n{values:?}"));
            }
            fn record_follows_from(&self, _: &Id, _: &Id) {}
            fn event(&self, _: &Event<'_>) {
                self.note("\nevent");
            }
            fn enter(&self, _: &Id) {}
            fn exit(&self, _: &Id) {}
        }
        let notes = Notes::default();
        tracing::subscriber::with_default(notes.clone(), || {
            let engine = Engine::builder().tool("look", |_| Ok("s3cret-result")).build().unwrap();
            let sandbox = Sandbox::builder().engine(engine).build().unwrap();
            let program = "(println \"s3cret-print\") [\"s3cret\" (tool/look {:a data/x})]";
            let input = Input::new().json("x", "\"s3cret-data\"");
            assert!(sandbox.eval(program, &input).is_success());
            assert!(runtime().block_on(sandbox.eval_async(program, &input)).is_success());
        });
        let notes = notes.0.lock().unwrap();
        for (span, times) in
            [("\ntemplate ", 1), ("\nrun ", 2), ("\nchild ", 2), ("\ntool_call ", 2), ("rss_peak_bytes: ", 2)]
        {
            assert_eq!(notes.matches(span).count(), times, "{span}: {notes}");
        }
        assert!(!notes.contains("s3cret") && !notes.contains("println"), "{notes}");
        println!("spans of processes have no texts ... ok");
    }
}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the process layer is for Linux");
}
