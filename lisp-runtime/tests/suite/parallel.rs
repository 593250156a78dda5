//! `pmap` and `pcalls` on a pool: order, limits, failures, and that nothing is left behind.

use lisp_runtime::outcome::CallStatus;
use lisp_runtime::threads::Pool;
use lisp_runtime::{Cancel, Engine, EngineBuilder, Input, Limits, Outcome, Progress, Reason, Tool, ToolError};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

fn limits() -> Limits {
    Limits::default().with_timeout_ms(20_000)
}

fn engine(limits: Limits) -> Engine {
    Engine::builder().limits(limits).build().unwrap()
}

fn run(limits: Limits, source: &str) -> Outcome {
    engine(limits).eval(source, Input::new())
}

/// The reason, and the index among the figures.
fn failure(outcome: &Outcome) -> (Reason, Option<String>) {
    let error = &outcome.problem().expect("a failure").error;
    let index = error.details.iter().find(|(name, _)| name == "index").map(|(_, value)| match value {
        lisp_runtime::outcome::Detail::Int(n) => n.to_string(),
        other => format!("{other:?}"),
    });
    (error.reason, index)
}

fn failed_at(outcome: &Outcome, reason: Reason, index: usize) {
    assert_eq!(failure(outcome), (reason, Some(index.to_string())), "{:?}", outcome.problem());
}

const FIB: &str = "(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) ";

/// Programs that use workers in every way.
fn programs() -> Vec<String> {
    vec![
        format!("{FIB} (pmap (fn [i] (println i) (fib (rem i 15))) (range 60))"),
        "(def base (vec (range 200))) (pmap (fn [i] [(subvec base i (+ i 3)) (conj base i) (str i)]) (range 50))".into(),
        "(pmap (fn [i] (println :outer i) (pcalls #(do (println :inner i) (tool/echo {:i i})) #(str i))) (range 3))".into(),
        "(defn deep [n] (if (zero? n) [n] (pmap (fn [i] [i (deep (dec n))]) (range 2)))) (deep 2)".into(),
        "(pmap (fn [i] (reduce (fn [acc j] (if (zero? (mod j 9)) (conj acc (str j (range 20))) acc)) [i] (range 99))) (range 9))".into(),
        "(pmap (fn [i] (println i) (tool/price {:n (rem i 3)})) (range 12))".into(),
        "(reduce + (apply pmap [* (range 3000) (range 3000)]))".into(),
        "(map pmap [inc dec] [(range 5) (range 5)])".into(),
        "((partial pmap (fn [x] (println x) (* x x))) [3 1 2])".into(),
        "(pmap (fn [i] (subs (apply str (map (constantly \"ab\") (range 3000))) 0 (* 500 (inc (rem i 3))))) (range 40))".into(),
    ]
}

fn with_tools(builder: EngineBuilder) -> Engine {
    builder
        .limits(limits().with_parallel_workers(8))
        .grant(Tool::echo("echo"))
        .grant(
            Tool::new("price", |call| {
                // The later calls come back first.
                std::thread::sleep(Duration::from_micros(300 * (3 - call.get::<u64>("n")?)));
                Ok(call.get::<i64>("n")? * 10)
            })
            .cached(),
        )
        .build()
        .unwrap()
}

/// What must not depend on how many workers there are, or where they run.
fn came_to(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug + use<> {
    let calls: Vec<_> = outcome
        .ledger
        .iter()
        .map(|call| (call.name.clone(), call.arguments.clone(), call.status, call.result.clone(), call.worker.clone()))
        .collect();
    (outcome.text().map(str::to_owned), outcome.prints.clone(), outcome.usage.fuel, outcome.usage.compactions, calls)
}

#[test]
fn a_successful_run_does_not_depend_on_threads_or_workers() {
    let pools = || {
        let own = |threads| Engine::builder().pool(Pool::new(threads).unwrap());
        vec![Engine::builder(), Engine::builder().without_threads(), own(1), own(4)]
    };
    let engines: Vec<Engine> = pools().into_iter().map(with_tools).collect();
    for source in programs() {
        let plain = engines[0].eval(&source, Input::new());
        assert!(plain.is_success(), "{source}: {:?}", plain.problem());
        for engine in &engines {
            for window in [1, 2, 3, 8] {
                let mut asked = lisp_runtime::LimitsRequest::default();
                asked.set("parallel_window", window).unwrap();
                let other = engine.eval(&source, Input::new().limits(asked));
                assert_eq!(came_to(&other), came_to(&plain), "{source}, window {window}");
            }
        }
    }
}

#[test]
fn workers_are_as_many_as_the_window_and_the_slots_allow() {
    for (workers, window, max) in [(8, 3, 3), (2, 5, 2), (1, 3, 1), (8, 8, 8)] {
        let together = Arc::new(AtomicUsize::new(0));
        let peak = Arc::new(AtomicUsize::new(0));
        let (t, p) = (together.clone(), peak.clone());
        let engine = Engine::builder()
            .limits(limits().with_parallel_workers(workers).with_parallel_window(window))
            .tool("wait", move |_| {
                p.fetch_max(t.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Until as many wait together as may; then a little longer, for one too many to show.
                let begun = Instant::now();
                while p.load(Ordering::SeqCst) < max && begun.elapsed() < Duration::from_secs(60) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                std::thread::sleep(Duration::from_millis(5));
                t.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            })
            .build()
            .unwrap();
        let outcome = engine.eval("(count (pmap (fn [i] (tool/wait {:i i})) (range 24)))", Input::new());
        assert_eq!(outcome.value::<i64>().unwrap(), 24);
        // Workers in tools hold slots, not threads: all of them wait at the same time, however few cores there are.
        assert_eq!((peak.load(Ordering::SeqCst), outcome.usage.workers_peak), (max, max as u64));
    }
}

#[test]
fn a_call_with_no_slot_and_no_worker_is_refused() {
    let nested = "(pmap (fn [_] (pmap inc [1 2])) [0])";
    let refused = run(limits().with_parallel_workers(1), nested);
    failed_at(&refused, Reason::ParallelCapacityExceeded, 0);
    assert_eq!(run(limits().with_parallel_workers(2), nested).text(), Some("[[2 3]]"));
    // A collection longer than the window goes through windows.
    let long = run(limits().with_parallel_workers(1), "(reduce + (pmap inc (range 1000)))");
    assert_eq!(long.value::<i64>().unwrap(), 500_500);
}

/// Calls inside calls come to the same whatever the number of threads, of slots and the width, as long as they are not more, one inside
/// the other, than there are slots.
#[test]
fn calls_inside_calls_do_not_depend_on_the_machine() {
    let deep = "(defn deep [n] (if (zero? n) [n] (pmap (fn [i] [i (deep (dec n))]) (range 3)))) ";
    let programs = [
        "(pmap (fn [i] (pmap (fn [j] (println i j) (* i j)) (range 2))) (range 8))".to_owned(),
        "(pmap (fn [i] (pmap (fn [j] (tool/echo {:i i :j j})) (range 20))) (range 20))".to_owned(),
        "(pcalls #(pmap inc (range 9)) #(pcalls (fn [] (pmap dec (range 9))) (fn [] 1)) #(pmap (fn [i] (try (pmap / [1 i]) (catch Exception e (:reason e)))) [0 1]))".to_owned(),
        format!("{deep} (deep 4)"),
    ];
    let engine = |threads: Option<usize>| {
        let builder = match threads {
            Some(threads) => Engine::builder().pool(Pool::new(threads).unwrap()),
            None => Engine::builder().without_threads(),
        };
        builder.limits(limits()).grant(Tool::echo("echo")).build().unwrap()
    };
    let engines: Vec<Engine> = [None, Some(1), Some(2), Some(8), Some(64)].into_iter().map(engine).collect();
    for source in &programs {
        let plain = engines[0].eval(source, Input::new());
        assert!(plain.is_success(), "{source}: {:?}", plain.problem());
        for engine in &engines {
            for (workers, window) in [(8, 4), (8, 1), (8, 8), (8, 0), (4, 3), (64, 8)] {
                let mut asked = lisp_runtime::LimitsRequest::default();
                asked.set("parallel_window", window).unwrap();
                asked.set("parallel_workers", workers).unwrap();
                let other = engine.eval(source, Input::new().limits_over(&asked));
                assert_eq!(came_to(&other), came_to(&plain), "{source}, {workers} workers, window {window}");
                assert!(other.usage.workers_peak <= workers);
            }
        }
    }
    // More of them, one inside the other, than there are slots.
    for engine in &engines {
        for (workers, deepest) in [(1, 1), (2, 2), (8, 4)] {
            let eval = |depth: u64| {
                let mut asked = lisp_runtime::LimitsRequest::default();
                asked.set("parallel_workers", workers).unwrap();
                engine.eval(&format!("{deep} (deep {depth})"), Input::new().limits_over(&asked))
            };
            assert!(eval(deepest).is_success());
            if workers < 8 {
                let outcome = eval(deepest + 1);
                failed_at(&outcome, Reason::ParallelCapacityExceeded, 0);
            }
        }
    }
}

/// Without a slot of their own the workers of a call are alive, one after the other, in the slot and in the budget of the worker that
/// called: what is alive at once is never more than the slots allow.
#[test]
fn workers_without_a_slot_share_the_budget_of_the_one_that_called() {
    let limits = limits().with_parallel_workers(2).with_parallel_window(2).with_worker_heap_bytes(1_000_000);
    let inner = |n: u32| format!("(pmap (fn [i] (pmap (fn [j] (count (vec (range {n})))) [1 2])) [1 2])");
    assert_eq!(run(limits, &inner(20_000)).text(), Some("[[20000 20000] [20000 20000]]"));
    let outcome = run(limits, &inner(40_000));
    failed_at(&outcome, Reason::MemoryExceeded, 0);
    let details = &outcome.problem().unwrap().error.details;
    assert!(details.contains(&("budget_bytes".into(), lisp_runtime::outcome::Detail::Int(500_000))), "{details:?}");
    // With slots of their own they have budgets of their own.
    assert!(run(limits.with_parallel_workers(8), &inner(40_000)).is_success());
    // What the one that called holds itself is the other half at most; its garbage does not count.
    let outer = |hold: &str, uses: &str| {
        format!("(defn make [] (vec (range 40000))) (pmap (fn [i] (let [v {hold}] (pmap inc [1 2]) {uses})) [1 2])")
    };
    let held = run(limits, &outer("(make)", "(count v)"));
    failed_at(&held, Reason::MemoryExceeded, 0);
    assert!(held.problem().unwrap().error.message.contains("inside its own slot"), "{:?}", held.problem());
    let garbage = run(limits, &outer("((fn [] (count (make))))", "v"));
    assert!(garbage.is_success(), "{:?}", garbage.problem());
}

#[test]
fn the_error_is_the_worker_s_and_has_its_index() {
    let outcome = run(limits(), "(pmap (fn [x] (if (= x 50) (/ 1 0) x)) (range 100))");
    failed_at(&outcome, Reason::PmapError, 50);
    let problem = outcome.problem().unwrap();
    assert!(problem.error.message.contains("division by zero"), "{problem:?}");
    let at = problem.position.map(|at| (at.line, at.column, at.end_line, at.end_column));
    assert_eq!(at, Some((1, 28, 1, 35)), "the place is the worker's");
    failed_at(&run(limits(), "(pcalls #(+ 1 1) #(inc nil))"), Reason::PcallsError, 1);
    // Of several failures the first in the order of the calls, whichever comes first.
    let slow_first = format!("{FIB} (pmap (fn [i] (fib (- 12 i)) (/ i 0)) (range 8))");
    for _ in 0..20 {
        failed_at(&run(limits(), &slow_first), Reason::PmapError, 0);
    }
    // Of calls inside calls, the outermost index.
    let nested = "(pmap (fn [i] (pcalls #(do 1) #(if (= i 2) (inc nil) 2))) [0 1 2])";
    failed_at(&run(limits(), nested), Reason::PmapError, 2);
    failed_at(&run(limits(), "(pmap (fn [_] (return 1)) [1])"), Reason::PmapError, 0);
    failed_at(&run(limits(), "(pcalls #(do 1) #(fail 1))"), Reason::PcallsError, 1);
}

/// What a program goes on with behind a call that failed is the same at any width: what calls behind the failing one did is given up.
#[test]
fn a_failure_that_is_caught_leaves_the_same_each_time() {
    let source = format!(
        "{FIB} (try (pmap (fn [x] (println x) (if (= x 3) (/ 1 0) (fib (rem x 12)))) (range 40)) (catch Exception e (println :e) 1))"
    );
    let seen = |workers: u64| {
        let outcome = run(limits().with_parallel_workers(workers), &source);
        assert_eq!(outcome.text(), Some("1"), "{:?}", outcome.problem());
        (outcome.prints, outcome.usage.fuel)
    };
    let alone = seen(1);
    assert_eq!(alone.0, ["0", "1", "2", "3", ":e"]);
    for workers in [2, 8, 8, 8] {
        assert_eq!(seen(workers), alone);
    }
}

/// Work that is given up is no part of the fuel: behind more of it than the limit allows, as before, the program comes to the same.
#[test]
fn work_that_is_given_up_changes_nothing() {
    let source = format!(
        "{FIB} (loop [i 0] (if (< i 300) (do (try (pcalls #(do (fib 12) (/ 1 0)) #(fib 25) #(fib 25)) (catch Exception e 1)) (recur (inc i))) :done))"
    );
    let seen = |workers| {
        let outcome =
            run(limits().with_fuel(3_000_000).with_loop_iterations(0).with_parallel_workers(workers), &source);
        assert_eq!(outcome.text(), Some(":done"), "{:?}", outcome.problem());
        outcome.usage.fuel
    };
    assert_eq!(seen(4), seen(1));
}

#[test]
fn an_endless_worker_does_not_outlive_a_failure_before_it() {
    let source = |endless: u32| format!("(pmap (fn [i] (if (= i {endless}) (loop [] (recur)) (/ 1 0))) [0 1])");
    let limits = limits().with_loop_iterations(0).with_fuel(3_000_000);
    failed_at(&run(limits.with_fuel(0), &source(1)), Reason::PmapError, 0);
    // One before the failure goes on to its end, whatever that is.
    let outcome = run(limits, &source(0));
    assert_eq!((failure(&outcome).0, outcome.usage.fuel), (Reason::FuelExhausted, 3_000_000));
}

#[test]
fn a_worker_has_its_own_heap_budget() {
    let hungry = "(pmap (fn [i] (count (vec (range (* i 40000))))) [0 1 2 3])";
    let small = limits().with_worker_heap_bytes(1_000_000);
    failed_at(&run(small, hungry), Reason::MemoryExceeded, 2);
    let outcome = run(small, hungry);
    let budget = outcome.problem().unwrap().error.details.iter().find(|(name, _)| name == "budget_bytes").cloned();
    assert_eq!(budget.map(|(_, value)| value), Some(lisp_runtime::outcome::Detail::Int(1_000_000)));
    assert_eq!(run(limits(), hungry).text(), Some("[0 40000 80000 120000]"));
    // The budget is not divided by the depth, and garbage does not count.
    let nested = "(pmap (fn [i] (pmap (fn [j] (count (vec (range 40000)))) [1 2])) [1 2])";
    assert!(run(small, nested).is_success());
    let garbage = "(pmap (fn [i] (reduce (fn [n j] (+ n (count (vec (range 1000))))) 0 (range 400))) (range 4))";
    assert!(run(small, garbage).is_success());
    // What the workers answer is the program's.
    let results = "(pmap (fn [i] (vec (range 30000))) (range 10))";
    let outcome = run(small.with_heap_bytes(2_000_000).with_worker_heap_bytes(1_000_000), results);
    assert_eq!(failure(&outcome), (Reason::MemoryExceeded, None));
    assert!(run(limits(), results).is_success());
}

#[test]
fn the_deadline_of_a_parallel_call_is_shared_and_names_the_first_unfinished() {
    let tight = limits().with_loop_iterations(0).with_parallel_timeout_ms(30);
    let outcome = run(tight, "(pmap (fn [i] (if (> i 1) (loop [] (recur)) i)) (range 4))");
    failed_at(&outcome, Reason::Timeout, 2);
    assert!(outcome.problem().unwrap().error.message.contains("30 ms"));
    // Calls inside calls have the deadline of the outermost.
    let start = Instant::now();
    let nested =
        run(tight, "(pmap (fn [_] (reduce (fn [_ _] (pmap (fn [_] (loop [] (recur))) [1])) 0 (range 50))) [1])");
    failed_at(&nested, Reason::Timeout, 0);
    assert!(start.elapsed() < Duration::from_secs(5));
    // The run's own deadline comes first when it is nearer.
    let run_out =
        run(tight.with_timeout_ms(20).with_parallel_timeout_ms(5_000), "(pmap (fn [_] (loop [] (recur))) [1])");
    assert!(run_out.problem().unwrap().error.message.contains("20 ms"), "{:?}", run_out.problem());
}

#[test]
fn fuel_is_one_account() {
    let source = format!("{FIB} (pmap fib [10 11 12 13])");
    let needed = run(limits(), &source).usage.fuel;
    assert!(run(limits().with_fuel(needed), &source).is_success());
    for less in [1, needed / 2, needed - 10] {
        let outcome = run(limits().with_fuel(needed - less), &source);
        assert_eq!(failure(&outcome).0, Reason::FuelExhausted);
        assert!(outcome.usage.fuel <= needed - less);
    }
}

#[test]
fn what_was_printed_and_called_before_a_failure_is_kept_in_order() {
    let engine = Engine::builder().limits(limits()).grant(Tool::echo("echo")).build().unwrap();
    let source = "(println \"before\")
                  (pmap (fn [i] (println i) (tool/echo {:i i}) (if (= i 3) (inc nil) i)) (range 4))";
    let outcome = engine.eval(source, Input::new());
    failed_at(&outcome, Reason::PmapError, 3);
    assert_eq!(outcome.prints, ["before", "0", "1", "2", "3"]);
    let workers: Vec<_> = outcome.ledger.iter().map(|call| (call.worker.clone(), call.status)).collect();
    assert_eq!(workers, (0..4).map(|i| (vec![i], CallStatus::Ok)).collect::<Vec<_>>());
}

#[test]
fn prints_of_all_workers_together_are_bounded() {
    let outcome = run(limits().with_prints_bytes(500), "(pmap (fn [i] (println (str \"worker \" i))) (range 100))");
    assert!(outcome.prints.len() < 20 && outcome.prints_dropped > 80);
    assert_eq!(outcome.prints[..2], ["worker 0", "worker 1"]);
    assert!(outcome.prints.last().unwrap().contains("more lines"));
}

#[test]
fn a_tool_that_panics_is_not_the_program_s_error() {
    let engine = Engine::builder()
        .limits(limits())
        .tool("boom", |call| match call.get::<i64>("i")? {
            1 => panic!("the tool's own fault"),
            i => Ok(i),
        })
        .tool("fails", |_| Err::<(), _>(ToolError::new("no")))
        .build()
        .unwrap();
    let outcome = engine.eval("(pmap (fn [i] (tool/boom {:i i})) [0 1])", Input::new());
    failed_at(&outcome, Reason::RuntimeError, 1);
    failed_at(&engine.eval("(pmap (fn [i] (tool/fails {})) [0])", Input::new()), Reason::PmapError, 0);
}

#[test]
fn a_call_of_a_cached_tool_is_made_once_whoever_asks() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let engine = Engine::builder()
        .limits(limits().with_parallel_window(8).with_tool_calls(2))
        .grant(
            Tool::new("slow", move |call| {
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(10));
                call.get::<i64>("n")
            })
            .cached(),
        )
        .build()
        .unwrap();
    let outcome = engine.eval("(pmap (fn [i] (tool/slow {:n (rem i 2)})) (range 16))", Input::new());
    assert!(outcome.is_success(), "{:?}", outcome.problem());
    assert_eq!((made.load(Ordering::SeqCst), outcome.usage.tool_calls, outcome.ledger.len()), (2, 2, 16));
    let statuses: Vec<_> = outcome.ledger.iter().map(|call| call.status).collect();
    assert_eq!(statuses[..2], [CallStatus::Ok; 2]);
    assert!(statuses[2..].iter().all(|status| *status == CallStatus::Cached));
}

#[test]
fn cancelling_stops_every_worker() {
    let cancel = Cancel::new();
    let begun = Arc::new(Barrier::new(5));
    let here = begun.clone();
    let engine = Engine::builder()
        .limits(limits().with_loop_iterations(0).with_parallel_window(4))
        .tool("begun", move |_| {
            here.wait();
            Ok(())
        })
        .build()
        .unwrap();
    let handle = cancel.clone();
    let canceller = std::thread::spawn(move || {
        begun.wait();
        handle.cancel();
    });
    let source = "(pmap (fn [i] (tool/begun {:i i}) (pmap (fn [_] (loop [] (recur))) [1])) (range 4))";
    let outcome = engine.eval(source, Input::new().cancel_with(&cancel));
    canceller.join().unwrap();
    assert_eq!(failure(&outcome).0, Reason::Cancelled);
    assert!(outcome.ledger.iter().all(|call| call.status == CallStatus::Ok));
}

#[test]
fn one_pool_serves_short_runs_beside_endless_ones() {
    let pool = Pool::new(1).unwrap();
    let engine = Engine::builder().limits(limits().with_loop_iterations(0)).pool(pool).build().unwrap();
    let stop = Cancel::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (engine, stop) = (&engine, stop.clone());
            scope.spawn(move || {
                let endless = "(pmap (fn [_] (loop [] (recur))) (range 8))";
                let outcome = engine.eval(endless, Input::new().cancel_with(&stop));
                assert_eq!(failure(&outcome).0, Reason::Cancelled);
            });
        }
        // All of these end while the others hold the one thread for ever.
        for i in 0..20 {
            let outcome = engine.eval("(pmap (fn [x] (* x x)) (range 20))", Input::new());
            assert!(outcome.is_success(), "{i}: {:?}", outcome.problem());
        }
        stop.cancel();
    });
}

#[test]
fn a_run_driven_step_by_step_has_the_calls_of_all_workers_to_answer() {
    let engine =
        Engine::builder().limits(limits().with_parallel_window(3)).grant(Tool::external("fetch")).build().unwrap();
    let source =
        "(println :a) (def r (pmap (fn [i] (println i) (tool/fetch {:i i})) (range 4))) [(tool/fetch {:i 9}) r]";
    let program = engine.compile(source).unwrap();
    let mut progress = engine.start(&program, Input::new());
    let mut waiting_at_once = Vec::new();
    let outcome = loop {
        progress = match progress {
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => {
                waiting_at_once.push(waiting.calls().count());
                // The last one first.
                let (id, call) = waiting.calls().last().unwrap();
                let answer = call.get::<i64>("i").unwrap() * 10;
                waiting.reply_to(id, &answer)
            }
            Progress::Done(outcome) => break outcome,
        };
    };
    assert_eq!(outcome.text(), Some("[90 [0 10 20 30]]"));
    assert_eq!(waiting_at_once, [3, 3, 2, 1, 1]);
    assert_eq!(outcome.prints, [":a", "0", "1", "2", "3"]);
    let workers: Vec<_> = outcome.ledger.iter().map(|call| call.worker.clone()).collect();
    assert_eq!(workers, [vec![0], vec![1], vec![2], vec![3], vec![]]);
}

#[test]
fn a_run_driven_step_by_step_ends_at_its_deadline_or_when_it_is_dropped() {
    let engine = Engine::builder()
        .limits(limits().with_parallel_timeout_ms(20))
        .grant(Tool::external("fetch").cached())
        .build()
        .unwrap();
    let program = engine.compile("(pmap (fn [i] (pmap (fn [j] (tool/fetch {:j j})) [1 2])) (range 3))").unwrap();
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new()) else { panic!("it calls tools") };
    // Equal calls wait for one another; replies to what is not asked for do no harm.
    assert_eq!(waiting.calls().count(), 2);
    let id = waiting.calls().next().unwrap().0;
    let Progress::ToolCall(waiting) = waiting.reply_to(id, &1) else { panic!("one more is under way") };
    let Progress::ToolCall(waiting) = waiting.reply_to(id, &2) else { panic!("nobody waits for it") };
    drop(waiting);
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new()) else { panic!("it calls tools") };
    std::thread::sleep(Duration::from_millis(25));
    let Progress::Done(outcome) = waiting.poll() else { panic!("its time is over") };
    failed_at(&outcome, Reason::Timeout, 0);
    assert!(outcome.ledger.iter().all(|call| call.status == CallStatus::Unknown));
}

#[test]
fn definitions_of_workers_are_their_own_and_functions_come_back() {
    let source = "(def x 1)
        (def fs (pmap (fn [i] (def x i) (let [t (str \"t\" i)] (fn [y] [t x y]))) [5 6]))
        [(map #(% 0) fs) x]";
    assert_eq!(run(limits(), source).text(), Some("[[[\"t5\" 1 0] [\"t6\" 1 0]] 1]"));
    let mut session = engine(limits()).session(Input::new());
    assert!(session.eval("(def pf (first (pmap (fn [i] (fn [x] (+ x i))) [10])))").is_success());
    assert_eq!(session.eval("(pmap pf [1 2])").text(), Some("[11 12]"));
}

/// No workers at all: each call of `pmap` and `pcalls` is refused, and nothing else is.
#[test]
fn no_workers() {
    let none = limits().with_parallel_workers(0);
    for source in ["(pmap inc [1 2])", "(pcalls #(+ 1 1))", "(map #(pmap inc [%]) [1])"] {
        let outcome = run(none, source);
        let error = &outcome.problem().unwrap().error;
        assert_eq!(error.reason, Reason::ParallelCapacityExceeded, "{source}");
        assert!(error.hint.as_ref().unwrap().contains("parallel_workers"), "{error:?}");
        assert!(error.details.contains(&("limit".into(), lisp_runtime::outcome::Detail::Int(0))));
        assert_eq!(outcome.usage.workers_peak, 0);
    }
    // Nothing to do takes no worker.
    assert_eq!(run(none, "(pmap inc [])").text(), Some("[]"));
    assert_eq!(run(none, "(reduce + (map inc [1 2]))").value::<i64>().unwrap(), 5);
}

/// The deadline of a parallel call is one moment for all calls inside it, however late they begin.
#[test]
fn the_parallel_deadline_is_absolute() {
    let engine = Engine::builder()
        .limits(limits().with_loop_iterations(0).with_parallel_timeout_ms(200).with_parallel_workers(4))
        .tool("wait", |call| {
            call.sleep(Duration::from_millis(120));
            Ok(1)
        })
        .build()
        .unwrap();
    // The inner call begins after 120 ms: it has 80 ms left, not 200, and the one inside it no more.
    let source = "(pmap (fn [_] (tool/wait {}) (pmap (fn [_] (pmap (fn [_] (loop [] (recur))) [1])) [1])) [1])";
    let took = (0..5).map(|_| {
        let begun = Instant::now();
        let outcome = engine.eval(source, Input::new());
        let took = begun.elapsed();
        failed_at(&outcome, Reason::Timeout, 0);
        assert!(outcome.problem().unwrap().error.message.contains("parallel call"), "{:?}", outcome.problem());
        assert!(took >= Duration::from_millis(200), "{took:?}");
        took
    });
    // A deadline of its own would end the innermost after 320 ms at the earliest, however idle the machine.
    let took: Vec<Duration> = took.collect();
    assert!(took.iter().any(|took| *took < Duration::from_millis(310)), "{took:?}");
    // Another parallel call of the same run has its own.
    let again = "[(pmap (fn [_] (tool/wait {})) [1]) (pmap (fn [_] (tool/wait {})) [1])]";
    assert_eq!(engine.eval(again, Input::new()).text(), Some("[[1] [1]]"));
}

/// A host knows until when a parallel call may last, and sees whose calls a failure makes superfluous.
#[test]
fn a_run_driven_step_by_step_says_when_to_look() {
    let engine =
        Engine::builder().grant(Tool::external("slow")).limits(limits().with_timeout_ms(60_000)).build().unwrap();
    let program = engine.compile("(pmap #(tool/slow {:n %}) [0 1 2])").unwrap();
    let begun = Instant::now();
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new()) else { panic!("it waits") };
    assert!(waiting.wake_at().is_some_and(|at| at > begun + Duration::from_secs(4)), "the deadline of the call");
    let second = waiting.calls().find(|(_, call)| call.json().contains('1')).expect("the second call").0;
    // The call behind it is not waited for any more, the one before it is: it may fail too, and then it counts.
    let Progress::ToolCall(waiting) = waiting.fail_call(second, ToolError::new("no")) else { panic!("one is left") };
    let left: Vec<_> = waiting.calls().map(|(id, call)| (id, call.json().to_owned())).collect();
    assert_eq!(left.iter().map(|(_, json)| &**json).collect::<Vec<_>>(), ["{\"n\":0}"]);
    let Progress::Done(outcome) = waiting.reply_to(left[0].0, &1) else { panic!("it is over") };
    failed_at(&outcome, Reason::PmapError, 1);
}
