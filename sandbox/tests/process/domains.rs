//! Runs of a domain, which share processes.

use lisp_runtime::{Cancel, Engine, Input, Limits, LimitsRequest, Outcome, Reason, Request, Tool, Verdict};
use lisp_sandbox::{DomainLimits, Sandbox};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An engine with a tool that says when it was begun and ends when it is told to.
fn engine() -> (Engine, Receiver<()>, Sender<()>) {
    let (began, begun) = channel();
    let (end, ended) = channel::<()>();
    let ended = Mutex::new(ended);
    let wait = Tool::new("wait", move |_| {
        let _ = began.send(());
        let _ = ended.lock().unwrap().recv();
        Ok(1)
    });
    let limits = Limits::default().with_timeout_ms(20_000).with_loop_iterations(0);
    let engine = Engine::builder().limits(limits).ceiling(Limits::unlimited()).grant(wait);
    (engine.grant(Tool::new("now", |_| Ok(1))).build().unwrap(), begun, end)
}

fn with(change: impl FnOnce(&mut DomainLimits)) -> Sandbox {
    let mut limits = DomainLimits::default();
    change(&mut limits);
    Sandbox::builder().engine(engine().0).domain_limits(limits).without_namespaces().without_spares().build().unwrap()
}

/// Returns the processes that a template has forked and that have not ended.
pub(crate) fn children_of(template: u32) -> Vec<i32> {
    let all = std::fs::read_to_string(format!("/proc/{template}/task/{template}/children")).unwrap();
    let ended =
        |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "));
    all.split_whitespace().map(|pid| pid.parse().unwrap()).filter(|pid| !ended(pid)).collect()
}

/// Returns those of all templates of a sandbox.
fn children(sandbox: &Sandbox) -> BTreeSet<i32> {
    sandbox.template_pids().into_iter().flat_map(children_of).collect()
}

/// The processes, when there are so many.
fn settled(sandbox: &Sandbox, many: usize) -> BTreeSet<i32> {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let now = children(sandbox);
        if now.len() == many || Instant::now() > until {
            assert_eq!(now.len(), many, "{now:?}");
            return now;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn limits(name: &str, value: u64) -> Input<'static> {
    let mut limits = LimitsRequest::default();
    limits.set(name, value).unwrap();
    Input::new().limits(limits)
}

fn value(outcome: &Outcome) -> i64 {
    outcome.value().unwrap_or_else(|_| panic!("{:?}", outcome.problem()))
}

/// Nothing of a run is there in the next, though they share a process.
pub(crate) fn share_a_process(_: &Sandbox) {
    let sandbox = with(|_| ());
    let domain = sandbox.domain("acme").unwrap();
    assert_eq!((domain.name(), domain.processes()), ("acme", 0));
    assert!(domain.eval("(def a 1) (println a) (tool/now {})", &Input::new()).is_success());
    let first = settled(&sandbox, 1);
    let mut fuel = BTreeSet::new();
    for n in 0..200 {
        let outcome = domain.eval("(println data/n) (inc data/n)", &Input::new().data("n", &n));
        assert_eq!((value(&outcome), outcome.prints, outcome.ledger.len()), (n + 1, vec![n.to_string()], 0));
        fuel.insert(outcome.usage.fuel);
    }
    assert_eq!(fuel.len(), 1);
    let outcome = domain.eval("a", &Input::new());
    assert_eq!(outcome.problem().map(|problem| problem.reason()), Some(Reason::UnboundVar));
    // A run that comes to the end of its meter is none the worse for its process.
    let ended = domain.eval("(loop [] (recur))", &limits("timeout_ms", 60));
    assert_eq!((ended.verdict(), value(&domain.eval("(+ 1 2)", &Input::new()))), (Verdict::Timeout, 3));
    assert_eq!((children(&sandbox), domain.processes()), (first.clone(), 1));
    // A request may name it, and so may another handle; another domain has another process.
    let request = Request::parse(r#"{"program": "(+ 1 2)", "domain": "acme"}"#).unwrap();
    assert_eq!(value(&sandbox.run(&request)), 3);
    assert_eq!(value(&sandbox.domain("acme").unwrap().eval("(+ 1 3)", &Input::new())), 4);
    assert_eq!(children(&sandbox), first);
    assert_eq!(value(&sandbox.domain("other").unwrap().run(&request)), 3);
    assert!(settled(&sandbox, 2).is_superset(&first));
    drop(domain);
    assert_eq!(sandbox.domain("acme").unwrap().processes(), 1);
}

/// Which process is there after each of some runs: the number of a process, counted from 0.
fn served(sandbox: &Sandbox, programs: &[(&str, &Input<'_>)]) -> Vec<usize> {
    let (domain, mut seen) = (sandbox.domain("acme").unwrap(), Vec::new());
    let number = |(program, input): &(&str, &Input<'_>)| {
        let (begun, now) = (seen.len(), domain.eval(program, input));
        assert!(now.verdict() != Verdict::HostFault, "{:?}", now.problem());
        for pid in settled(sandbox, domain.processes()) {
            if !seen.contains(&pid) {
                seen.push(pid);
            }
        }
        seen.len().max(begun)
    };
    programs.iter().map(number).collect()
}

/// After so many runs, so much time, and so much memory.
pub(crate) fn are_replaced(_: &Sandbox) {
    let one = ("1", &Input::new());
    assert_eq!(served(&with(|limits| limits.runs = 3), &[one; 7]), [1, 1, 1, 2, 2, 2, 3]);
    let sandbox = with(|limits| limits.max_age = Duration::from_millis(300));
    assert_eq!(served(&sandbox, &[one; 2]), [1, 1]);
    let before = children(&sandbox);
    std::thread::sleep(Duration::from_millis(310));
    assert_eq!(served(&sandbox, &[one]), [1]);
    assert!(settled(&sandbox, 1).is_disjoint(&before));
    let wide = limits("heap_bytes", 100 << 20);
    let (small, large) = (("1", &wide), ("(count (vec (range 1000000)))", &wide));
    let sandbox = with(|limits| limits.growth_bytes = 8 << 20);
    assert_eq!(served(&sandbox, &[small, small, large, small, small]), [1, 1, 1, 2, 2]);
    // One that has less room than a run needs makes room for one that has it.
    let sandbox = with(|limits| limits.processes = 1);
    let huge = ("1", &limits("heap_bytes", 1 << 30));
    assert_eq!(served(&sandbox, &[one, huge, one, huge]), [1, 2, 2, 2]);
}

/// A run whose process is killed takes no other with it, and the next has a process of its own.
pub(crate) fn outlive_a_kill(_: &Sandbox) {
    let (engine, begun, end) = engine();
    let sandbox = Sandbox::builder().engine(engine).without_namespaces().without_spares().build().unwrap();
    let domain = sandbox.domain("acme").unwrap();
    assert_eq!(value(&domain.eval("1", &Input::new())), 1);
    let idle = settled(&sandbox, 1);
    let kill = |pid: i32| kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    kill(*idle.first().unwrap());
    settled(&sandbox, 0);
    assert_eq!(value(&domain.eval("2", &Input::new())), 2);
    // Two at work: one is killed.
    std::thread::scope(|scope| {
        let first = scope.spawn(|| domain.eval("(tool/wait {})", &Input::new()));
        begun.recv().unwrap();
        let of_first = settled(&sandbox, 1);
        let second = scope.spawn(|| domain.eval("(loop [i 0] (if (< i 200000) (recur (inc i)) i))", &Input::new()));
        assert_eq!(value(&second.join().unwrap()), 200_000);
        assert_eq!(domain.processes(), 2);
        kill(*of_first.first().unwrap());
        end.send(()).unwrap();
        let first = first.join().unwrap();
        assert_eq!((first.verdict(), first.ledger.len()), (Verdict::HostFault, 1));
    });
    assert_eq!(domain.processes(), 1);
    assert_eq!(value(&domain.eval("3", &Input::new())), 3);
    // The template goes, and with it the idle process.
    kill(sandbox.template_pids()[0].try_into().unwrap());
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(value(&domain.eval("4", &Input::new())), 4);
}

/// More runs than processes wait, until their time is over or they are cancelled.
pub(crate) fn wait_for_a_process(_: &Sandbox) {
    let (engine, begun, end) = engine();
    let mut max = DomainLimits::default();
    (max.processes, max.domains) = (1, 1);
    let sandbox = Sandbox::builder().engine(engine).domain_limits(max).build().unwrap();
    let domain = sandbox.domain("acme").unwrap();
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| domain.eval("(tool/wait {})", &Input::new()));
        begun.recv().unwrap();
        let late = domain.eval("1", &limits("timeout_ms", 50));
        let problem = late.problem().unwrap();
        assert_eq!(problem.reason(), Reason::Timeout);
        assert!(problem.error.hint.as_ref().unwrap().contains("DomainLimits::processes"), "{problem:?}");
        let waits = scope.spawn(|| domain.eval("1", &Input::new().cancel_with(&cancel)));
        std::thread::sleep(Duration::from_millis(30));
        cancel.cancel();
        assert_eq!(waits.join().unwrap().verdict(), Verdict::Cancelled);
        let patient = scope.spawn(|| domain.eval("2", &Input::new()));
        std::thread::sleep(Duration::from_millis(30));
        end.send(()).unwrap();
        assert_eq!((value(&first.join().unwrap()), value(&patient.join().unwrap())), (1, 2));
    });
    assert_eq!(domain.processes(), 1);
    // Another domain, while this one is in use, and when it is not.
    let error = sandbox.domain("other").unwrap_err().to_string();
    assert!(error.contains("limit domains"), "{error}");
    let refused = sandbox.run(&Request::parse(r#"{"program": "1", "domain": "other"}"#).unwrap());
    assert!(refused.problem().unwrap().error.message.contains("limit domains"), "{refused:?}");
    drop(domain);
    assert_eq!(value(&sandbox.domain("other").unwrap().eval("1", &Input::new())), 1);
    assert_eq!(sandbox.domain("acme").unwrap().processes(), 0);
    for name in ["", &"x".repeat(DomainLimits::NAME_BYTES + 1)] {
        assert!(sandbox.domain(name).unwrap_err().to_string().contains("1 to 128"));
    }
}

/// The end of a run that was cancelled is not that of the next one.
pub(crate) fn are_cancelled_one_by_one(_: &Sandbox) {
    let sandbox = with(|limits| limits.processes = 1);
    let domain = Arc::new(sandbox.domain("acme").unwrap());
    for round in 0..60 {
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(100 * round));
                cancel.cancel();
            });
            let program = "(loop [i 0] (if (< i 40000) (recur (inc i)) i))";
            let outcome = domain.eval(program, &Input::new().cancel_with(&cancel));
            assert!(outcome.is_success() || outcome.verdict() == Verdict::Cancelled, "{:?}", outcome.problem());
        });
        assert_eq!(value(&domain.eval("(reduce + (range 1000))", &Input::new())), 499_500);
    }
}

/// A sandbox that is full of idle processes has room for a run all the same.
pub(crate) fn give_way(_: &Sandbox) {
    let sandbox = with(|limits| (limits.domains, limits.idle) = (300, 300));
    let template = sandbox.template_pids();
    for n in 0..256 {
        let domain = sandbox.domain(&n.to_string()).unwrap();
        assert_eq!(value(&domain.eval("data/n", &Input::new().data("n", &n))), n);
    }
    let full = settled(&sandbox, 256);
    assert_eq!(value(&sandbox.eval("(+ 1 2)", &Input::new())), 3);
    assert_eq!(value(&sandbox.domain("256").unwrap().eval("4", &Input::new())), 4);
    // One made room, that was used least recently; the run before the last has left its place.
    let after = settled(&sandbox, 256);
    assert_eq!((sandbox.template_pids(), full.intersection(&after).count()), (template, 255));
    let idle = |name: &str| sandbox.domain(name).unwrap().processes();
    assert_eq!(["0", "1", "2", "255", "256"].map(idle), [0, 1, 1, 1, 1]);
}

/// No more than their limit, and none for long past its maximum age while there are runs.
pub(crate) fn have_few_idle_processes(_: &Sandbox) {
    let sandbox = with(|limits| (limits.idle, limits.max_age) = (3, Duration::from_millis(500)));
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(value(&sandbox.domain(name).unwrap().eval("1", &Input::new())), 1);
    }
    settled(&sandbox, 3);
    let idle = |name: &str| sandbox.domain(name).unwrap().processes();
    assert_eq!(["a", "b", "c", "d", "e"].map(idle), [0, 0, 1, 1, 1]);
    std::thread::sleep(Duration::from_millis(1_050));
    assert_eq!(value(&sandbox.domain("f").unwrap().eval("1", &Input::new())), 1);
    settled(&sandbox, 1);
}

/// A host that has no descriptors left takes those of idle processes.
pub(crate) fn give_back_descriptors(_: &Sandbox) {
    let sandbox = with(|_| ());
    for n in 0..16 {
        assert_eq!(value(&sandbox.domain(&n.to_string()).unwrap().eval("1", &Input::new())), 1);
    }
    let limit = |current: Option<u64>| {
        let all = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current, ..all }).unwrap();
        all.current
    };
    // With none left, and no hole among those that there are.
    let starved = |programs: usize| {
        let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
        let highest = numbers.map(|entry| entry.unwrap().file_name().into_string().unwrap().parse().unwrap()).max();
        let before = limit(highest.map(|highest: u64| highest + 1));
        let filled: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        let outcomes: Vec<Outcome> = (0..programs).map(|_| sandbox.eval("(+ 1 2)", &Input::new())).collect();
        limit(before);
        drop(filled);
        outcomes.iter().map(value).collect::<Vec<_>>()
    };
    let left = || (0..16).map(|n| sandbox.domain(&n.to_string()).unwrap().processes()).sum::<usize>();
    assert_eq!(starved(3), [3, 3, 3]);
    assert!((10..16).contains(&left()), "{}", left());
    // A new template takes more of them; the old one's processes are of no use.
    kill_process(Pid::from_raw(sandbox.template_pids()[0].try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(starved(1), [3]);
}

/// A run is none the worse for a process that dies in the moment in which it is given to the run.
pub(crate) fn replace_what_died_idle(_: &Sandbox) {
    let sandbox = with(|_| ());
    let domain = sandbox.domain("acme").unwrap();
    let large = "x".repeat(1 << 20);
    for round in 0..60 {
        assert_eq!(value(&domain.eval("(+ 1 2)", &Input::new())), 3);
        let idle = settled(&sandbox, 1);
        kill_process(Pid::from_raw(*idle.first().unwrap()).unwrap(), Signal::KILL).unwrap();
        let input = if round % 2 == 0 { Input::new() } else { Input::new().data("x", &large) };
        let outcome = domain.eval("(println 1) 5", &input);
        assert_eq!((value(&outcome), outcome.prints.len()), (5, 1), "{round}");
    }
}

/// The deadline of a run is not that of its process.
pub(crate) fn forget_deadlines(_: &Sandbox) {
    let sandbox = with(|_| ());
    let domain = sandbox.domain("acme").unwrap();
    let mut session = sandbox.session(limits("timeout_ms", 150));
    // Long enough for the template to be told.
    let count = "(loop [i 0] (if (< i 20000) (recur (inc i)) i))";
    assert_eq!(value(&domain.eval(count, &limits("timeout_ms", 150))), 20_000);
    assert_eq!(value(&session.eval(&format!("(def n {count}) n"))), 20_000);
    let both = settled(&sandbox, 2);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!((value(&domain.eval("6", &limits("timeout_ms", 150))), value(&session.eval("n"))), (6, 20_000));
    assert_eq!(children(&sandbox), both);
    // A template that stands still hears of the deadline when the run is long over, and of its end at once behind that.
    let template = Pid::from_raw(sandbox.template_pids()[0].try_into().unwrap()).unwrap();
    kill_process(template, Signal::STOP).unwrap();
    let outcomes = [domain.eval(count, &limits("timeout_ms", 150)), session.eval(count)];
    std::thread::sleep(Duration::from_millis(400));
    kill_process(template, Signal::CONT).unwrap();
    assert_eq!(outcomes.map(|outcome| value(&outcome)), [20_000, 20_000]);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!((value(&domain.eval("7", &limits("timeout_ms", 150))), value(&session.eval("n"))), (7, 20_000));
    assert_eq!(children(&sandbox), both);
}
