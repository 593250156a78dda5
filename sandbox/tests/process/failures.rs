//! Parallel calls whose workers fail, behind the process mode: what they come to is what they come to in-process.
//!
//! `PTC_FAILING_PROGRAMS` says how many programs there are: 60 unless it is set.

use crate::domains::children_of;
use crate::failing::{Bounds, Maker, came_to, with_tools};
use lisp_runtime::{
    Amounts, Budget, Cancel, Engine, Input, Limits, LimitsRequest, Outcome, Reason, Record, Recording, Tool, ToolError,
    Verdict,
};
use lisp_sandbox::Sandbox;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

/// A run at one mode, recorded, cut behind some of its lines, goes on at both.
fn cut(engine: &Engine, sandbox: &Sandbox, source: &str, bounds: Bounds, each: &mut dyn FnMut(String, Outcome)) {
    let recording = Recording::new();
    each("recorded".to_owned(), sandbox.eval(source, &bounds.input(8).record(&recording)));
    let text = recording.text();
    let all = text.lines().count();
    for lines in [1, all / 3, 2 * all / 3, all].into_iter().filter(|&lines| lines > 0) {
        let cut: String = text.split_inclusive('\n').take(lines).collect();
        for process in [true, false] {
            let (program, input, _) = engine.open_record(&Record::parse(cut.clone()).unwrap(), &[]).unwrap();
            let input = input.limits_over(&bounds.limits(8));
            let outcome = if process { sandbox.eval(program.source(), &input) } else { engine.run(&program, input) };
            each(format!("cut behind line {lines}, process {process}\n{text}"), outcome);
        }
    }
}

pub(crate) fn come_to_one_answer(_: &Sandbox) {
    let programs = std::env::var("PTC_FAILING_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let engine = with_tools(Engine::builder());
    let alone = with_tools(Engine::builder().without_threads());
    let sandbox = Sandbox::builder().engine(engine.clone()).build().unwrap();
    let (mut runs, mut failed) = (0_u64, 0);
    for seed in 1..=programs {
        let (source, bounds) = (Maker::program(seed), Bounds::of(seed));
        let plain = alone.eval(&source, bounds.input(1));
        failed += u64::from(!plain.is_success());
        let expected = came_to(&plain);
        let mut each = |way: String, outcome: Outcome| {
            runs += 1;
            assert_eq!(came_to(&outcome), expected, "program {seed}, {bounds:?}, {way}:\n{source}");
        };
        for window in [1, 2, 8] {
            each(format!("process, window {window}"), sandbox.eval(&source, &bounds.input(window)));
        }
        // What is left of a budget is another matter for a run that goes on.
        if bounds.budget.is_none() {
            cut(&engine, &sandbox, &source, bounds, &mut each);
        }
    }
    assert!(failed > programs / 20 && failed < programs, "{failed} of {programs} fail");
    println!("{runs} runs of {programs} programs, of which {failed} fail");
}

/// Calls of workers that were given up are at work for longer than the parallel call. Those of later ones are no fewer for it.
pub(crate) fn given_up_calls_take_no_room(_: &Sandbox) {
    let engine = Engine::builder()
        .tool("fails", |_| Err::<(), _>(ToolError::new("no")))
        .tool("slow", |_| {
            std::thread::sleep(Duration::from_millis(60));
            Ok(1)
        })
        .build()
        .unwrap();
    let sandbox = Sandbox::builder().engine(engine.clone()).build().unwrap();
    let program = "(mapv (fn [_] (try (pmap (fn [v] (if (zero? v) (tool/fails {}) (tool/slow {:n v}))) (range 4)) (catch Exception e (:reason e)))) (range 8))";
    let value = |outcome: Outcome| outcome.text().map(str::to_owned).unwrap_or_else(|| format!("{outcome:?}"));
    let expected = format!("[{}]", [":pmap_error"; 8].join(" "));
    let mut limits = LimitsRequest::default();
    limits.set("timeout_ms", 20_000).unwrap();
    let input = Input::new().limits(limits);
    assert_eq!(value(sandbox.eval(program, &input)), expected);
    assert_eq!(value(engine.eval(program, input)), expected);
}

/// A run that goes on giving up calls whose tools do not end has an error that says so, and the sandbox serves the next run.
pub(crate) fn too_many_given_up_calls(_: &Sandbox) {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    let stuck = Tool::new("stuck", move |_| {
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(1)
    });
    // What was kept needs no thread, while all threads have stuck calls.
    let kept = Tool::new("kept", |_| Ok(1)).cached();
    let engine = Engine::builder().ceiling(Limits::unlimited()).grant(stuck).grant(kept).build().unwrap();
    let sandbox = Sandbox::builder().engine(engine).build().unwrap();
    let program = "(tool/kept {}) (mapv (fn [_] (try (pmap (fn [v] (if (zero? v) (do (tool/kept {}) (throw (ex-info \"no\" {}))) (tool/stuck {:n v}))) (range 4)) (catch Exception e 1))) (range 5000))";
    let mut limits = LimitsRequest::default();
    for (name, value) in [("timeout_ms", 120_000), ("parallel_timeout_ms", 120_000), ("tool_calls", 0)] {
        limits.set(name, value).unwrap();
    }
    let outcome = sandbox.eval(program, &Input::new().limits(limits));
    is_over.store(true, Ordering::Relaxed);
    let error = &outcome.problem().unwrap_or_else(|| panic!("{outcome:?}")).error;
    assert_eq!(error.reason, Reason::ToolCallLimitExceeded, "{error:?}");
    assert!(error.message.contains("4096") && error.hint.is_some(), "{error:?}");
    assert!(sandbox.eval("1", &Input::new()).is_success());
}

/// A run that is cancelled before it began calls nothing, and pays for one run only.
pub(crate) fn cancelled_before_they_began(_: &Sandbox) {
    let called = Arc::new(AtomicUsize::new(0));
    let count = called.clone();
    let engine = Engine::builder().tool("count", move |_| Ok(count.fetch_add(1, Ordering::Relaxed)));
    let sandbox = Sandbox::builder().engine(engine.build().unwrap()).build().unwrap();
    let domain = sandbox.domain("a").unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    let budget = Budget::new(Amounts::new().with_fuel(1_000_000));
    let input = Input::new().cancel_with(&cancel).budget(&budget);
    for outcome in [sandbox.eval("(tool/count {})", &input), domain.eval("(tool/count {})", &input)] {
        assert_eq!(outcome.verdict(), Verdict::Cancelled);
        assert_eq!((called.load(Ordering::Relaxed), outcome.ledger.len()), (0, 0));
        assert_eq!(budget.left().fuel, Some(1_000_000));
    }
}

/// A program that does not compile is a run of the budget with either isolation, and returns its fuel.
pub(crate) fn programs_that_do_not_compile_count(_: &Sandbox) {
    let engine = Engine::default();
    let sandbox = Sandbox::builder().engine(engine.clone()).build().unwrap();
    for process in [false, true] {
        let budget = Budget::new(Amounts::new().with_runs(2).with_fuel(10_000));
        for wanted in [Reason::ParseError, Reason::ParseError, Reason::BudgetExceeded] {
            let input = Input::new().budget(&budget);
            let outcome = if process { sandbox.eval("(", &input) } else { engine.eval("(", input) };
            assert_eq!(outcome.problem().unwrap().reason(), wanted, "process {process}");
        }
        assert_eq!((budget.left().runs, budget.left().fuel), (Some(0), Some(10_000)), "process {process}");
    }
}

/// A run that ends while it waits for calls pays what it used up to them, when it ends by itself and when it is killed in a call of its
/// own. What its workers have used nobody knows when it is killed: then it pays all.
pub(crate) fn killed_in_a_call_they_pay_what_they_used(_: &Sandbox) {
    let programs = [
        "(do (reduce + (range 1000)) (tool/last {}))",
        "(do (reduce + (range 1000)) (pmap (fn [_] (tool/last {})) (range 3)))",
    ];
    for (stopped, program) in [true, false].into_iter().flat_map(|stopped| programs.map(|program| (stopped, program))) {
        let (cancel, templates) = (Cancel::new(), Arc::new(OnceLock::<Vec<u32>>::new()));
        let (canceller, known) = (cancel.clone(), templates.clone());
        let begun = Barrier::new(if program.contains("pmap") { 3 } else { 1 });
        let last = Tool::new("last", move |_| {
            // All calls of the run have begun.
            if begun.wait().is_leader() {
                // A process that is stopped does not end by itself, however long it has for that.
                for pid in known.get().unwrap().iter().filter(|_| stopped).flat_map(|&pid| children_of(pid)) {
                    kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
                }
                canceller.cancel();
            }
            std::thread::sleep(Duration::from_millis(300));
            Ok(1)
        });
        let engine = Engine::builder().grant(last.detached()).build().unwrap();
        let grace = if stopped { Duration::ZERO } else { Duration::from_secs(60) };
        let sandbox = Sandbox::builder().engine(engine).grace(grace).without_namespaces().without_spares();
        let sandbox = sandbox.build().unwrap();
        templates.set(sandbox.template_pids()).unwrap();
        let budget = Budget::new(Amounts::new().with_fuel(1_000_000));
        let input = Input::new().cancel_with(&cancel).budget(&budget);
        let outcome = sandbox.eval(program, &input);
        assert_eq!(outcome.verdict(), Verdict::Cancelled);
        assert_eq!(outcome.usage.figures_age_us.is_some(), stopped, "{program}: {outcome:?}");
        let left = budget.left().fuel.unwrap();
        if stopped && program.contains("pmap") {
            assert_eq!(left, 0);
            continue;
        }
        assert_eq!(left, 1_000_000 - outcome.usage.fuel, "{program}, stopped {stopped}");
        assert!((990_000..999_000).contains(&left), "{program}: {left}");
    }
}
