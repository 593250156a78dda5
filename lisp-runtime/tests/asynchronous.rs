//! Runs as futures, on one thread.

#[path = "../../lisp-core/tests/cpu/mod.rs"]
mod cpu;

use cpu::thread_time;
use lisp_runtime::observe::RunEnded;
use lisp_runtime::tools::{Approval, AskedCall, PolicyDecision};
use lisp_runtime::{
    Amounts, Budget, Cancel, Engine, EngineBuilder, Input, Limits, LimitsRequest, Observer, Outcome, Progress, Reason,
    Record, Recording, Tool, ToolCall, ToolError, Verdict,
};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn patient() -> Limits {
    Limits::default().with_timeout_ms(60_000).with_parallel_timeout_ms(60_000).with_loop_iterations(0)
}

/// Async tools: `slow` waits 200 ms and returns its argument, `never` does not return; `now` is over at once.
fn builder() -> EngineBuilder {
    Engine::builder()
        .limits(patient())
        .grant(Tool::new_async("slow", |call: ToolCall| async move {
            sleep(Duration::from_millis(200)).await;
            call.get::<i64>("n")
        }))
        .grant(Tool::new_async("never", |_| std::future::pending::<Result<(), _>>()))
        .grant(Tool::new_async("now", |call: ToolCall| async move { call.get::<i64>("n") }))
        .grant(Tool::new_async("fails", |_| async { Err::<(), _>(ToolError::new("no")) }))
        .grant(Tool::new_async("panics", |_| async { if true { panic!("a test's panic") } else { Ok(()) } }))
        .grant(Tool::new_async("panics_early", |call: ToolCall| {
            assert!(call.json().is_empty(), "a test's panic");
            async { Ok(()) }
        }))
}

fn run(engine: &Engine, program: &str, input: Input<'static>) -> Outcome {
    runtime().block_on(engine.run_async(&engine.compile(program).unwrap(), input))
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[test]
fn a_thousand_runs_wait_for_three_tools_each_on_one_thread() {
    const RUNS: i64 = 1_000;
    let engine = builder().build().unwrap();
    let program = engine.compile("(reduce + (pmap (fn [n] (tool/slow {:n (+ n data/k)})) (range 3)))").unwrap();
    let begun = Instant::now();
    let before = threads();
    let outcomes = runtime().block_on(async {
        let local = tokio::task::LocalSet::new();
        let runs: Vec<_> =
            (0..RUNS).map(|k| local.spawn_local(engine.run_async(&program, Input::new().data("k", &k)))).collect();
        let max = local
            .run_until(async {
                sleep(Duration::from_millis(100)).await;
                threads()
            })
            .await;
        // The thread for alarms; tests beside this one have some of their own.
        println!("{before} threads before, {max} while {RUNS} runs wait");
        let mut outcomes = Vec::new();
        for run in runs {
            outcomes.push(local.run_until(run).await.unwrap());
        }
        outcomes
    });
    let took = begun.elapsed();
    for (k, outcome) in (0..).zip(&outcomes) {
        assert_eq!(outcome.value::<i64>().unwrap(), 3 + 3 * k);
        assert_eq!(outcome.ledger.len(), 3);
    }
    println!("{RUNS} runs that wait for three tools of 200 ms each took {took:?}");
    // One after the other they would take 200 s.
    assert!(took >= Duration::from_millis(200) && took < Duration::from_secs(100), "{took:?}");
}

#[test]
fn the_outcome_is_that_of_a_run_with_closures() {
    let closures = Engine::builder()
        .limits(patient())
        .tool("now", |call| call.get::<i64>("n"))
        .tool("fails", |_| Err::<(), _>(ToolError::new("no")))
        .tool("panics", |_| -> Result<(), _> { panic!("a test's panic") })
        .tool("panics_early", |_| -> Result<(), _> { panic!("a test's panic") })
        .grant(Tool::new("kept", |call| call.get::<i64>("n")).cached())
        .grant(Tool::echo("echo"))
        .grant(Tool::external("ask"))
        .build()
        .unwrap();
    let futures = builder()
        .grant(Tool::new_async("kept", |call: ToolCall| async move { call.get::<i64>("n") }).cached())
        .grant(Tool::echo("echo"))
        .grant(Tool::external("ask"))
        .build()
        .unwrap();
    let programs = [
        "1",
        "(println :a) (tool/now {:n 2})",
        "(mapv #(tool/now {:n %}) (range 50))",
        "(pmap (fn [n] (println n) (tool/now {:n n})) (range 50))",
        "(pmap (fn [n] (pmap (fn [m] (tool/now {:n (+ n m)})) (range 2))) (range 3))",
        "(pmap (fn [n] (tool/kept {:n (mod n 2)})) (range 9))",
        "(tool/fails {})",
        "(pmap (fn [n] (if (= n 3) (tool/fails {}) (tool/now {:n n}))) (range 6))",
        "(try (tool/fails {}) (catch Exception e (ex-message e)))",
        "[(try (tool/panics {}) (catch Exception e 1)) (tool/now {:n 1})]",
        "(tool/panics {})",
        "(tool/panics_early {})",
        "(pmap (fn [_] (tool/panics {})) [1 2])",
        "(tool/now {:m 1})",
        "(tool/echo {:a #{1}})",
        "(tool/ask {})",
        "(reduce + (range 300000))",
        "(loop [i 0] (if (< i 100000) (recur (inc i)) i))",
        "(inc nil)",
        "(fail 3)",
        "(def a (tool/now {:n 1})) (+ a 1)",
    ];
    for program in programs {
        let gist = |outcome: &Outcome| {
            let ledger: Vec<_> = outcome
                .ledger
                .iter()
                .map(|call| (call.name.clone(), call.arguments.text.clone(), call.status, call.worker.clone()))
                .collect();
            let (prints, usage) = (outcome.prints.clone(), outcome.usage);
            let problem = outcome.problem().map(|problem| (problem.error.message.clone(), problem.position));
            (outcome.text().map(str::to_owned), problem, prints, ledger, usage.fuel, usage.tool_calls)
        };
        // Which of those beside a failed one have ended is a matter of time.
        let window = u64::from(program.contains("fails") || program.contains("panics"));
        let mut asked = LimitsRequest::default();
        asked.set("parallel_window", window).unwrap();
        let input = || Input::new().limits(asked);
        let (one, other) = (closures.eval(program, input()), run(&futures, program, input()));
        assert_eq!(gist(&one), gist(&other), "{program}");
        assert_eq!(one.memory(), other.memory(), "{program}");
        let third = run(&closures, program, input());
        assert_eq!(gist(&one), gist(&third), "{program}");
    }
    let sync = futures.eval("(tool/now {:n 1})", Input::new());
    assert!(sync.problem().unwrap().error.message.contains("run_async"), "{:?}", sync.problem());
}

/// Counts those that were dropped.
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn guarded(dropped: &Arc<AtomicUsize>) -> Tool {
    let dropped = dropped.clone();
    Tool::new_async("guarded", move |_| {
        let guard = Guard(dropped.clone());
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok(1)
        }
    })
}

struct Ends(Arc<Mutex<Vec<Verdict>>>);

impl Observer for Ends {
    fn run_ended(&self, run: &RunEnded<'_>) {
        self.0.lock().unwrap().push(run.verdict);
    }
}

#[test]
fn dropping_the_future_drops_the_calls_and_ends_the_run() {
    let (dropped, ends) = (Arc::default(), Arc::default());
    let engine = builder().grant(guarded(&dropped)).observer(Ends(Arc::clone(&ends))).build().unwrap();
    let program = engine.compile("(pmap (fn [n] (tool/guarded {})) (range 3))").unwrap();
    let cancelled = Arc::new(AtomicUsize::new(0));
    runtime().block_on(async {
        let run = tokio::time::timeout(Duration::from_millis(50), engine.run_async(&program, Input::new())).await;
        assert!(run.is_err());
    });
    assert_eq!(dropped.load(SeqCst), 3);
    assert_eq!(std::mem::take(&mut *ends.lock().unwrap()), [Verdict::Cancelled]);
    // One that was never polled, too.
    drop(engine.run_async(&program, Input::new()));
    assert_eq!(std::mem::take(&mut *ends.lock().unwrap()), [Verdict::Cancelled]);
    // A closure on a thread sees it.
    let seen = cancelled.clone();
    let patient = Tool::new("patient", move |call| {
        call.sleep(Duration::from_secs(20));
        seen.fetch_add(usize::from(call.is_cancelled()), SeqCst);
        Ok(1)
    });
    let engine = Engine::builder().limits(self::patient()).grant(patient).tool_threads(2).build().unwrap();
    let program =
        engine.compile("(pcalls #(tool/patient {:a 1}) #(tool/patient {:a 2}) #(tool/patient {:a 3}))").unwrap();
    runtime().block_on(async {
        let run = tokio::time::timeout(Duration::from_millis(50), engine.run_async(&program, Input::new())).await;
        assert!(run.is_err());
    });
    let begun = Instant::now();
    while cancelled.load(SeqCst) < 2 && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The third had no thread, and is not made any more.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(cancelled.load(SeqCst), 2);
}

#[test]
fn programs_that_do_not_compile_count_in_a_budget() {
    let engine = builder().build().unwrap();
    let budget = Budget::new(Amounts::new().with_runs(1));
    for wanted in [Reason::ParseError, Reason::BudgetExceeded] {
        let outcome = runtime().block_on(engine.eval_async("(", Input::new().budget(&budget)));
        assert_eq!(outcome.problem().unwrap().reason(), wanted);
    }
}

/// Polls a future on this thread, which sleeps until it is woken; counts the polls.
fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut context, mut future, mut polls) = (std::task::Context::from_waker(&waker), pin!(future), 0);
    loop {
        polls += 1;
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return (output, polls);
        }
        std::thread::park();
    }
}

#[test]
fn deadlines_and_handles_end_those_that_wait_without_a_runtime_and_without_spinning() {
    let dropped = Arc::default();
    let limits = patient().with_timeout_ms(100).with_parallel_timeout_ms(60);
    let engine = builder().grant(guarded(&dropped)).limits(limits).build().unwrap();
    for (source, at_least) in
        [("(tool/guarded {})", 100), ("(pmap (fn [n] (tool/guarded {:n n})) [1 2])", 60), ("(loop [] (recur))", 100)]
    {
        let program = engine.compile(source).unwrap();
        let begun = Instant::now();
        let (outcome, polls) = block_on(engine.run_async(&program, Input::new()));
        assert_eq!(outcome.problem().unwrap().reason(), Reason::Timeout, "{source}");
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(at_least) && took < Duration::from_secs(300), "{source}: {took:?}");
        assert!(polls < if source.starts_with("(loop") { 400 } else { 12 }, "{source}: {polls} polls");
    }
    assert_eq!(dropped.load(SeqCst), 3);
    let engine = builder().build().unwrap();
    for source in ["(tool/never {})", "(pmap (fn [n] (tool/never {:n n})) [1 2])", "(loop [] (recur))"] {
        let program = engine.compile(source).unwrap();
        let cancel = Cancel::new();
        let run = engine.run_async(&program, Input::new().cancel_with(&cancel));
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(40));
                cancel.cancel();
            });
            block_on(run).0
        });
        assert_eq!(outcome.verdict(), Verdict::Cancelled, "{source}");
    }
    // A worker that fails ends the one that waits beside it.
    let (outcome, _) = block_on({
        let program = engine.compile("(pcalls #(tool/fails {}) #(tool/never {}))").unwrap();
        engine.run_async(&program, Input::new())
    });
    assert!(outcome.problem().unwrap().error.message.contains("no"), "{:?}", outcome.problem());
}

#[test]
fn a_long_run_and_a_blocking_closure_let_others_go_on() {
    let engine = builder()
        .grant(Tool::new("blocks", |_| {
            std::thread::sleep(Duration::from_millis(100));
            Ok(1)
        }))
        .build()
        .unwrap();
    for source in [
        "(loop [i 0] (if (< i 3000000) (recur (inc i)) i))",
        "(pmap (fn [_] (loop [i 0] (if (< i 500000) (recur (inc i)) i))) (range 4))",
        "(reduce (fn [m i] (assoc m (mod i 100) i)) {} (range 100000))",
        "(tool/blocks {})",
        "(pmap (fn [n] (tool/blocks {:n n})) (range 3))",
    ] {
        let program = engine.compile(source).unwrap();
        let (outcome, ticks, longest) = runtime().block_on(async {
            let local = tokio::task::LocalSet::new();
            let longest = Arc::new(Mutex::new((0, Duration::ZERO)));
            let its = longest.clone();
            let ticking = local.spawn_local(async move {
                let mut last = thread_time();
                loop {
                    // What a busy machine takes from the executor's thread is not the run's doing.
                    tokio::task::yield_now().await;
                    let (mut longest, now) = (its.lock().unwrap(), thread_time());
                    *longest = (longest.0 + 1, longest.1.max(now - last));
                    last = now;
                }
            });
            let outcome = local.run_until(engine.run_async(&program, Input::new())).await;
            ticking.abort();
            let (ticks, longest) = *longest.lock().unwrap();
            (outcome, ticks, longest)
        });
        assert!(outcome.is_success(), "{source}: {:?}", outcome.problem());
        println!("{source}: {:?} us, {ticks} ticks, {longest:?} between two", outcome.usage.duration_us);
        // About 1 ms.
        assert!(ticks > 2 && longest < Duration::from_millis(60), "{source}: {ticks} {longest:?}");
    }
}

#[test]
fn a_call_that_waits_for_a_thread_in_vain_says_so() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    // Until both runs have ended.
    let sleeps = Tool::new("sleeps", move |_| {
        let _ = released.lock().unwrap().recv();
        Ok(1)
    });
    let engine = builder().limits(patient().with_timeout_ms(1_000)).grant(sleeps).tool_threads(1).build().unwrap();
    let program = engine.compile("(tool/sleeps {})").unwrap();
    let (first, second) = runtime().block_on(async {
        let local = tokio::task::LocalSet::new();
        let first = local.spawn_local(engine.run_async(&program, Input::new()));
        let second = local.spawn_local(engine.run_async(&program, Input::new()));
        local.run_until(async { (first.await.unwrap(), second.await.unwrap()) }).await
    });
    assert_eq!((first.verdict(), second.verdict()), (Verdict::Timeout, Verdict::Timeout));
    // Either may have come to its call first.
    let messages = [&first, &second].map(|outcome| outcome.problem().unwrap().error.message.clone());
    let waited = messages.iter().filter(|message| message.contains("one of 1 tool threads")).count();
    assert_eq!(waited, 1, "{messages:?}");
    drop(release);
}

#[test]
fn recorded_runs_go_on_as_futures_and_step_by_step() {
    let engine = builder().build().unwrap();
    let source = "[(tool/now {:n 1}) (pmap (fn [n] (tool/now {:n n})) (range 3)) (tool/now {:n 2})]";
    let recording = Recording::new();
    let whole = run(&engine, source, Input::new().record(&recording));
    assert!(whole.is_success(), "{:?}", whole.problem());
    let text = recording.text();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 11);
    for kept in 1..=lines.len() {
        let mut record = Record::parse(lines[..kept].concat()).unwrap();
        for call in record.open_calls() {
            record.settle(&call.name, lisp_runtime::record::Settled::NotMade).unwrap();
        }
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        let resumed = runtime().block_on(engine.run_async(&program, input));
        assert_eq!((resumed.text(), resumed.usage.fuel), (whole.text(), whole.usage.fuel), "{kept}");
        assert_eq!(resumed.run_id, whole.run_id);
    }
    let Progress::Done(again) = engine.resume(&recording.record().unwrap()).unwrap() else { panic!() };
    assert_eq!(again.text(), whole.text());
}

#[test]
fn a_run_that_cannot_begin_is_an_outcome_and_a_delay_is_refused() {
    let engine = builder().build().unwrap();
    let outcome = run(&engine, "data/x", Input::new().json("x", "{"));
    assert_eq!(outcome.problem().unwrap().phase, lisp_runtime::outcome::Phase::Setup);
    let delayed = Tool::new_async("d", |_| async { Ok(1) }).delay(Duration::from_millis(1));
    assert!(Engine::builder().grant(delayed).build().unwrap_err().to_string().contains("timer"));
    let run = engine.run_async(&engine.compile("(inc 1)").unwrap(), Input::new().run_id("r9"));
    assert_eq!(run.run_id(), "r9");
    assert_eq!(&*block_on(run).0.run_id, "r9");
}

/// Three calls that have to be approved and one that has not, in one `pmap`: the answers come in another order than the questions.
#[test]
fn approvals_come_while_the_run_goes_on() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let (its, policy) = (made.clone(), |call: &AskedCall<'_>| match call.arguments::<serde_json::Value>() {
        Ok(given) if given["n"].as_i64() > Some(0) => PolicyDecision::Ask(format!("pay {}?", given["n"])),
        _ => PolicyDecision::Allow,
    });
    let pay = Tool::new_async("pay", move |call: ToolCall| {
        its.lock().unwrap().push(call.json().to_owned());
        assert_eq!(call.question(), None);
        async move { call.get::<i64>("n") }
    });
    let builder = || Engine::builder().limits(patient().with_parallel_window(8)).policy(policy);
    let engine = builder().grant(pay.clone()).build().unwrap();
    let asked = |call: ToolCall| async move {
        let n = call.get::<u64>("n").unwrap();
        assert_eq!(call.question(), Some(&*format!("pay {n}?")));
        sleep(Duration::from_millis(10 * (5 - n))).await;
        match n {
            1 => Approval::Approve,
            2 => Approval::ApproveWith(r#"{"n":20}"#.to_owned()),
            3 => Approval::ApproveWith("[]".to_owned()),
            _ => Approval::Reject("no money".to_owned()),
        }
    };
    let program = "(pmap #(tool/pay {:n %}) data/ns)";
    let recording = Recording::new();
    let input = |ns: &[i64]| Input::new().data("ns", &ns).approvals(asked);
    let outcome = run(&engine, program, input(&[1, 0, 2]).record(&recording));
    assert_eq!(outcome.text(), Some("[1 0 20]"), "{:?}", outcome.problem());
    let ledger = |outcome: &Outcome| outcome.ledger.iter().map(|call| call.arguments.text.clone()).collect::<Vec<_>>();
    assert_eq!(ledger(&outcome), [r#"{"n":1}"#, r#"{"n":0}"#, r#"{"n":20}"#], "what the tool got");
    assert_eq!(std::mem::take(&mut *made.lock().unwrap()), [r#"{"n":0}"#, r#"{"n":20}"#, r#"{"n":1}"#]);
    let text = recording.text();
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is not in {text}"));
    assert!(
        place(r#"{"gate":"1:2/1","decision":"allow","given":{"n":20}}"#) < place(r#"{"call":"1:2/1","state":"begun"}"#)
    );

    // The record has the decisions: nobody is asked, and nothing is called.
    let replay = |engine: &Engine, text: &str, calls: usize| {
        let (program, input, _) = engine.open_record(&Record::parse(text).unwrap(), &[]).unwrap();
        let outcome = runtime().block_on(engine.run_async(&program, input));
        assert_eq!(std::mem::take(&mut *made.lock().unwrap()).len(), calls);
        outcome
    };
    let replayed = replay(&engine, &text, 0);
    assert_eq!((replayed.text(), ledger(&replayed)), (Some("[1 0 20]"), ledger(&outcome)));
    // It was broken off before the decision: somebody is asked again.
    let cut = &text[..place(r#"{"gate":"1:2/1","decision":"allow""#)];
    assert!(Record::parse(cut).unwrap().open_calls().iter().any(|call| call.question.as_deref() == Some("pay 2?")));
    assert_eq!(replay(&engine, cut, 0).problem().unwrap().reason(), Reason::ApprovalRequired);

    for (ns, why) in [([4], "no money"), ([3], "not a JSON object")] {
        let outcome = run(&engine, program, input(&ns));
        let problem = outcome.problem().unwrap();
        assert_eq!(problem.reason(), Reason::ToolDenied);
        assert!(problem.error.message.contains(why), "{}", problem.error.message);
        assert_eq!(outcome.ledger[0].status, lisp_runtime::outcome::CallStatus::Error);
    }
    let panics = Input::new().data("ns", &[1]).approvals(|call: ToolCall| {
        assert!(call.json().is_empty(), "a test's panic");
        async { Approval::Approve }
    });
    assert_eq!(run(&engine, program, panics).problem().unwrap().reason(), Reason::ToolDenied);
    assert!(made.lock().unwrap().is_empty());

    // A tool that is a closure has nobody to ask.
    let closure = builder().tool("pay", |call| call.get::<i64>("n")).build().unwrap();
    let outcome = run(&closure, program, input(&[1]));
    assert_eq!(outcome.problem().unwrap().reason(), Reason::ApprovalRequired);
}

/// A tool that came by its schemas, served by a future: its schemas are checked before and after the call.
#[test]
fn an_imported_tool_is_served_by_a_future() {
    let input = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    let tool = Tool::from_json_schema("half", "", input, Some(r#"{"type": "integer"}"#)).unwrap();
    let tool = tool.renamed("of/half").with_async_handler(|call: ToolCall| async move {
        assert_eq!(call.name(), "of/half");
        sleep(Duration::from_millis(5)).await;
        Ok(f64::from(call.get::<i32>("n")?) / 2.0)
    });
    let unnamed = Tool::new_async("x", |_| async { Ok(1) }).renamed("");
    assert!(Engine::builder().grant(unnamed).build().is_err());
    let engine = Engine::builder().limits(patient()).grant(tool).build().unwrap();
    assert_eq!(run(&engine, "(pmap #(tool/of%2Fhalf {:n %}) [4 6])", Input::new()).text(), Some("[2.0 3.0]"));
    for (program, reason, message) in [
        ("(tool/of%2Fhalf {:n \"4\"})", Reason::InvalidToolArgs, "expected an integer"),
        ("(tool/of%2Fhalf {:n 5})", Reason::ToolError, "expected an integer, got the number 2.5"),
        ("(tool/half {:n 4})", Reason::UnknownTool, "tool/half"),
    ] {
        let outcome = run(&engine, program, Input::new());
        let problem = outcome.problem().unwrap();
        assert_eq!(problem.reason(), reason, "{:?}", problem.error);
        assert!(problem.error.message.contains(message), "{}", problem.error.message);
    }
    let outcome = engine.eval("(tool/of%2Fhalf {:n 4})", Input::new());
    assert!(outcome.problem().unwrap().error.message.contains("run_async"));
}
