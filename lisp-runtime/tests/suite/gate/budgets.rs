//! Budgets, and calls that nobody makes.

use super::{asks, at, counted, message, reason, waits};
use lisp_runtime::{Amounts, Budget, Engine, Input, Limits, Progress, Reason, Tool};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[test]
fn runs_pay_from_a_budget() {
    const PROGRAM: &str = "(loop [i 0] (if (< i 1000) (recur (inc i)) i))";
    let engine = Engine::builder().tool("t", |_| Ok(1)).limits(Limits::default().with_fuel(100_000)).build().unwrap();
    let fuel = engine.eval(PROGRAM, Input::new()).usage.fuel;
    for mode in 0..2 {
        let run = |program: &str, budget: &Budget| at(mode, &engine, program, Input::new().budget(budget));
        let budget = Budget::new(Amounts::new().with_runs(2));
        assert!(run("1", &budget).is_success() && run("2", &budget).is_success());
        let third = run("3", &budget);
        assert_eq!(reason(&third), Some(Reason::BudgetExceeded));
        assert_eq!(message(&third), "the budget that the run shares with others has no runs left");

        {
            // What was not used is given back; the last of it is used up, and the error says what it was.
            let budget = Budget::new(Amounts::new().with_fuel(2 * fuel + fuel / 2));
            for left in [fuel + fuel / 2, fuel / 2] {
                assert!(run(PROGRAM, &budget).is_success());
                assert_eq!(budget.left().fuel, Some(left));
            }
            let over = run(PROGRAM, &budget);
            assert_eq!(reason(&over), Some(Reason::BudgetExceeded));
            let want = format!("the run needs more than the {} units of fuel that were left in the budget", fuel / 2);
            assert_eq!(message(&over), want);
            assert!(over.problem().unwrap().position.is_some());
            assert_eq!(budget.left().fuel, Some(0));
            assert_eq!(message(&run("1", &budget)), "the budget that the run shares with others has no fuel left");
            budget.refill(&Amounts::new().with_fuel(10 * fuel).with_runs(3));
            assert_eq!(budget.left(), Amounts::new().with_fuel(10 * fuel), "what is not counted is not refilled");
            budget.refill_to(&Amounts::new().with_fuel(9 * fuel).with_runs(3));
            assert_eq!(budget.left(), Amounts::new().with_fuel(10 * fuel), "more than that is left");
            budget.refill_to(&Amounts::new().with_fuel(11 * fuel));
            assert_eq!(budget.left(), Amounts::new().with_fuel(11 * fuel), "it is filled up, and does not add up");
            // Its own limit is the run's, whatever is left.
            let endless = "(reduce + (map inc (range 300000)))";
            let limited = engine.eval(endless, Input::new().budget(&Budget::new(Amounts::new().with_fuel(1 << 40))));
            assert_eq!(reason(&limited), Some(Reason::FuelExhausted));
            // Programs that do not begin take no fuel.
            let left = budget.left();
            assert!(!run("data/x (", &budget).is_success() && !run("(tool/none {})", &budget).is_success());
            assert_eq!(budget.left(), left);
        }
        let budget = Budget::new(Amounts::new().with_calls(2));
        let calls = run("(dotimes [_ 3] (tool/t {}))", &budget);
        assert_eq!((reason(&calls), calls.ledger.len()), (Some(Reason::BudgetExceeded), 3));
        assert!(run("(+ 1 2)", &budget).is_success(), "a run without calls needs none");

        let budget = Budget::new(Amounts::new().with_bytes(1));
        assert!(run("(vec (range 1000))", &budget).is_success());
        assert_eq!(message(&run("1", &budget)), "the budget that the run shares with others has no bytes left");
    }
    let mut session = engine.session(Input::new().budget(&Budget::new(Amounts::new())));
    assert_eq!(message(&session.eval("1")), "a session cannot use a budget");
    // A run whose end nobody sees has used what it took.
    let budget = Budget::new(Amounts::new().with_fuel(1_000_000));
    let program = engine.compile("(tool/t {})").unwrap();
    let waiting = engine.start(&program, Input::new().budget(&budget));
    assert_eq!(budget.left().fuel, Some(900_000));
    drop(waiting);
    assert_eq!(budget.left().fuel, Some(900_000));
}

/// A run whose time is over pays for the built-in function that was cut off, too; so do its workers.
#[test]
fn work_that_is_cut_off_is_paid_for() {
    // Compared bit by bit they would take years.
    const SHARED: &str = "(def f (fn [] (reduce (fn [m i] [m m]) [1] (range 60))))";
    // A first slice has 8,000 units.
    const LEAST: u64 = 7_000;
    let engine = Engine::builder().limits(Limits::default().with_timeout_ms(300)).build().unwrap();
    for call in ["(= (f) (f))", "(pmap (fn [_] (= (f) (f))) [1 2 3])"] {
        let budget = Budget::new(Amounts::new().with_fuel(10_000_000_000));
        let outcome = engine.eval(&format!("{SHARED} {call}"), Input::new().budget(&budget));
        assert_eq!(reason(&outcome), Some(Reason::Timeout));
        let fuel = outcome.usage.fuel;
        assert!((LEAST..=outcome.limits.fuel).contains(&fuel), "{call}: {fuel} units of fuel");
        assert_eq!(budget.left().fuel, Some(10_000_000_000 - fuel), "{call}");
    }
}

/// However many runs pay from a budget at once, they use together what it has.
#[test]
fn a_call_that_nobody_begins_is_not_paid_for() {
    let (engine, _, _) = asks();
    let budget = Budget::new(Amounts::new().with_calls(2));
    let program = engine.compile("(tool/pay {:n 100})").unwrap();
    let run = || {
        let waiting = waits(engine.start(&program, Input::new().budget(&budget)));
        assert_eq!(budget.left().calls, Some(1));
        let id = waiting.approvals().next().unwrap().0;
        (waiting, id)
    };
    let (waiting, id) = run();
    assert!(matches!(waiting.reject(id, "no"), Progress::Done(_)));
    assert_eq!(budget.left().calls, Some(2));
    drop(run());
    assert_eq!(budget.left().calls, Some(2));
    // Whoever has the call may make it.
    let (waiting, id) = run();
    drop(waiting.approve(id));
    assert_eq!(budget.left().calls, Some(1));
}

#[test]
fn a_budget_is_shared_by_threads() {
    /// In the second one the first worker comes last.
    const PROGRAMS: [&str; 2] = [
        "(pmap (fn [_] (tool/t {})) (range 5))",
        "(pmap (fn [i] (if (= i 0) (reduce + (range 3000))) (tool/t {})) (range 5))",
    ];
    for source in PROGRAMS {
        let (tool, calls) = counted("t");
        let engine = Engine::builder().grant(tool).build().unwrap();
        let budget = Budget::new(Amounts::new().with_calls(100).with_fuel(5_000_000_000));
        let used = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let outcome = engine.eval(source, Input::new().budget(&budget));
                        used.fetch_add(outcome.usage.fuel, Ordering::Relaxed);
                    }
                });
            }
        });
        let (left, made) = (budget.left().calls.unwrap(), calls.load(Ordering::Relaxed) as u64);
        // Four runs at once, each with at most four calls ahead of a worker that then finds none left.
        assert!((100..=116).contains(&(made + left)), "{made} made, {left} left");
        // A call whose run has failed before it was begun goes back; the run that finds it may be the last.
        assert!(left <= 16, "{left} left");
        assert_eq!(budget.left().fuel, Some(5_000_000_000 - used.load(Ordering::Relaxed)));
    }
}

/// A program that is made of calls which nobody makes: refused ones, and those that an earlier result serves. It ends at its
/// deadline all the same, and when it is cancelled.
#[test]
fn calls_that_nobody_makes_take_time_too() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}"#;
    let engine = Engine::builder()
        .limits(Limits::default().with_timeout_ms(200).with_loop_iterations(0))
        .grant(Tool::from_json_schema("s", "", schema, None).unwrap().with_handler(|_| Ok(1)))
        .grant(Tool::new("c", |_| Ok("x".repeat(2_000))).cached())
        .build()
        .unwrap();
    let calls = ["(try (tool/s {:a 1}) (catch Exception e 1))", "(count (tool/c {}))", "(System/currentTimeMillis)"];
    for call in calls {
        for program in [format!("(loop [] {call} (recur))"), format!("(pmap (fn [_] (loop [] {call} (recur))) [1 2])")]
        {
            let outcome = engine.eval(&program, Input::new());
            assert_eq!(reason(&outcome), Some(Reason::Timeout), "{program}: {}", message(&outcome));
        }
        let cancel = lisp_runtime::Cancel::new();
        let its = cancel.clone();
        let canceller = std::thread::Builder::new()
            .spawn(move || {
                std::thread::sleep(Duration::from_millis(30));
                its.cancel();
            })
            .unwrap();
        let endless = format!("(loop [] {call} (recur))");
        let outcome = engine.eval(&endless, Input::new().cancel_with(&cancel));
        assert_eq!(reason(&outcome), Some(Reason::Cancelled), "{call}");
        canceller.join().unwrap();
    }
}

/// A run that is cancelled after it was stopped has paid for what it did before, fuel and bytes.
#[test]
fn a_run_that_is_cancelled_while_it_is_stopped_stays_paid() {
    let engine = Engine::builder().tool("t", |_| Ok(1)).build().unwrap();
    let program = engine.compile("(def n (reduce + (map inc (into [] (range 2000))))) (tool/t {})").unwrap();
    let budget = Budget::new(Amounts::new().with_runs(1).with_fuel(700_000).with_bytes(1 << 30));
    let of_run = budget.for_one_run();
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new().budget(&of_run)) else { panic!() };
    drop(waiting);
    let left = budget.left();
    assert!(left.fuel < Some(695_000) && left.bytes < Some(1 << 30), "{left:?}");
    for _ in 0..3 {
        let cancel = lisp_runtime::Cancel::new();
        cancel.cancel();
        let outcome = engine.run(&program, Input::new().budget(&of_run).cancel_with(&cancel));
        assert_eq!(reason(&outcome), Some(Reason::Cancelled));
        assert_eq!(budget.left(), left);
    }
}

/// A run that is stopped and begins again pays for itself, its fuel and its calls once.
#[test]
fn the_lives_of_a_run_pay_once() {
    const PROGRAM: &str = "(def n (reduce + (map inc (range 2000)))) (tool/t {}) (reduce + (map inc (range 2000)))";
    const PARALLEL: &str = "(pmap (fn [_] (tool/t {})) [1]) (reduce + (map inc (range 2000)))";
    let engine = Engine::builder().tool("t", |_| Ok(1)).limits(Limits::default().with_fuel(500_000)).build().unwrap();
    let all = Amounts::new().with_runs(2).with_fuel(700_000).with_calls(5).with_bytes(1 << 30);
    for source in [PROGRAM, PARALLEL] {
        let program = engine.compile(source).unwrap();
        let used = engine.run(&program, Input::new()).usage;
        let budget = Budget::new(all);
        let of_run = budget.for_one_run();
        let mut fuel_when_stopped = None;
        for life in 0..4 {
            let Progress::ToolCall(waiting) = engine.start(&program, Input::new().budget(&of_run)) else { panic!() };
            assert_eq!(budget.left().fuel, Some(200_000), "life {life} has what is left for it");
            drop(waiting);
            let left = budget.left();
            assert_eq!(left.runs, Some(1));
            // Of parallel work it is not known what it has used.
            let is_held = left.fuel == Some(200_000);
            assert!(is_held == (source == PARALLEL) && left.fuel.unwrap() < 700_000, "{left:?}");
            assert_eq!(*fuel_when_stopped.get_or_insert(left.fuel), left.fuel, "life {life}");
            of_run.note_paid(["1".parse().unwrap(), "1:0/1".parse().unwrap()]);
        }
        let calls = budget.left().calls;
        let outcome = engine.run(&program, Input::new().budget(&of_run));
        assert!(outcome.is_success(), "{}", message(&outcome));
        let left = budget.left();
        assert_eq!((left.runs, left.fuel, left.calls), (Some(1), Some(700_000 - used.fuel), calls));
        assert_eq!(left.bytes, Some((1 << 30) - outcome.usage.allocated_bytes));
        // Another one pays for itself, and the first goes on though no run is left.
        assert!(engine.run(&program, Input::new().budget(&budget)).is_success());
        assert_eq!(reason(&engine.run(&program, Input::new().budget(&budget))), Some(Reason::BudgetExceeded));
        assert!(engine.run(&program, Input::new().budget(&of_run)).is_success());
        // So does one of which it is only known that it has begun.
        let known = budget.for_one_run();
        known.note_paid([]);
        assert!(engine.run(&program, Input::new().budget(&known)).is_success());
    }
}

/// What a run has taken and may give back counts as left when the budget is refilled: unused amounts do not add up over refills.
#[test]
fn refills_do_not_add_up_while_runs_hold_fuel() {
    let engine = Engine::builder().tool("t", |_| Ok(1)).limits(Limits::default().with_fuel(800_000)).build().unwrap();
    let program = engine.compile("(do (reduce + (range 1000)) (tool/t {}))").unwrap();
    let full = Amounts::new().with_fuel(1_000_000).with_calls(3);
    let budget = Budget::new(full);
    for of_one_run in [false, true] {
        for round in 0..6 {
            let of_run = if of_one_run { budget.for_one_run() } else { budget.clone() };
            let Progress::ToolCall(waiting) = engine.start(&program, Input::new().budget(&of_run)) else { panic!() };
            budget.refill_to(&full);
            assert_eq!(budget.left().fuel, Some(200_000), "the run has the rest");
            match round % 3 {
                // One that is not seen to its end has used all that it took, or what is known when it can go on.
                0 => drop(waiting),
                _ => assert!(matches!(waiting.reply(&1), Progress::Done(outcome) if outcome.is_success())),
            }
            let left = budget.left();
            assert!(left.fuel.unwrap() <= 1_000_000 && left.calls.unwrap() <= 3, "{left:?}");
            budget.refill_to(&full);
            assert_eq!(budget.left(), full, "nothing is held any more");
        }
    }
    // Of parallel work that is suspended it is not known what it has used. A refill does not wait for it, and it pays anew.
    let parallel = engine.compile("(count (pmap (fn [n] (tool/t {:n n})) (range 2)))").unwrap();
    let of_runs: Vec<Budget> = (0..2).map(|_| budget.for_one_run()).collect();
    for of_run in &of_runs {
        let Progress::ToolCall(waiting) = engine.start(&parallel, Input::new().budget(of_run)) else { panic!() };
        assert_eq!(budget.left().fuel, Some(200_000));
        drop(waiting);
        assert_eq!(budget.left().fuel, Some(200_000), "it has paid for all that it may use");
        budget.refill_to(&full);
        assert_eq!(budget.left().fuel, full.fuel, "it is of the time before");
    }
    for of_run in &of_runs {
        let outcome = engine.run(&parallel, Input::new().budget(of_run));
        assert!(outcome.is_success());
        assert_eq!(budget.left().fuel, Some(1_000_000 - outcome.usage.fuel), "nothing of it comes back");
        budget.refill_to(&full);
    }
    // Without a refill the next attempt goes on with what was paid.
    let of_run = budget.for_one_run();
    drop(engine.start(&parallel, Input::new().budget(&of_run)));
    let outcome = engine.run(&parallel, Input::new().budget(&of_run));
    assert_eq!(budget.left().fuel, Some(1_000_000 - outcome.usage.fuel));
    budget.refill_to(&full);
    let dropped = budget.for_one_run();
    drop(engine.start(&parallel, Input::new().budget(&dropped)));
    drop((of_runs, dropped));
    budget.refill_to(&full);
    assert_eq!(budget.left(), full, "a run that is given up holds nothing");
}

/// Bytes that a run has paid are not lent to others while it goes on.
#[test]
fn bytes_that_are_paid_stay_paid() {
    let engine = Engine::builder().tool("t", |_| Ok(1)).build().unwrap();
    let program = engine.compile("(def x (vec (range 40000))) (tool/t {}) (tool/t {}) (count x)").unwrap();
    let budget = Budget::new(Amounts::new().with_bytes(1_000_000));
    let of_run = budget.for_one_run();
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new().budget(&of_run)) else { panic!() };
    drop(waiting);
    let paid = 1_000_000 - budget.left().bytes.unwrap();
    assert!(paid > 100_000, "{paid}");
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new().budget(&of_run)) else { panic!() };
    assert_eq!(budget.left().bytes, Some(1_000_000 - paid));
    let Progress::ToolCall(waiting) = waiting.reply(&1) else { panic!() };
    let Progress::Done(outcome) = waiting.reply(&1) else { panic!() };
    assert_eq!(budget.left().bytes, Some(1_000_000 - outcome.usage.allocated_bytes));
}
