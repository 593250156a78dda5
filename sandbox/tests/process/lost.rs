//! Recorded runs whose process is lost while the host makes calls.

use crate::domains::children_of;
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Input, Limits, Reason, Record, Recording, Tool};
use lisp_sandbox::Sandbox;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// Waits until something is so.
fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill_programs(sandbox: &Sandbox) {
    let pids: Vec<i32> = sandbox.template_pids().into_iter().flat_map(children_of).collect();
    assert!(!pids.is_empty());
    pids.iter().for_each(|pid| kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL).unwrap());
    until(|| sandbox.template_pids().into_iter().flat_map(children_of).all(|pid| !pids.contains(&pid)));
}

/// The record of a run has the ends of the calls that may not be repeated. Others are not awaited.
pub(crate) fn calls_are_heard(_: &Sandbox) {
    let (begun, made, is_held) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
    let tool = |name: &str, effect| {
        let (begun, made, is_held) = (begun.clone(), made.clone(), is_held.clone());
        Tool::new(name, move |call| {
            begun.fetch_add(1, SeqCst);
            until(|| !is_held.load(SeqCst));
            made.fetch_add(1, SeqCst);
            call.get::<i64>("n")
        })
        .with_effect(effect)
    };
    let limits = Limits::default().with_timeout_ms(60_000).with_parallel_timeout_ms(60_000);
    let engine = Engine::builder().limits(limits).tool_threads(8);
    let engine = engine.grant(tool("write", Effect::Write)).grant(tool("read", Effect::Read)).build().unwrap();
    let sandbox = Sandbox::builder().engine(engine.clone()).without_namespaces().build().unwrap();
    for name in ["write", "read"] {
        [&begun, &made].iter().for_each(|count| count.store(0, SeqCst));
        is_held.store(true, SeqCst);
        let (recording, program) = (Recording::new(), format!("(pmap (fn [n] (tool/{name} {{:n n}})) [1 2 3])"));
        let lost = Barrier::new(2);
        let outcome = std::thread::scope(|scope| {
            let run = scope.spawn(|| sandbox.eval(&program, &Input::new().record(&recording)));
            scope.spawn(|| {
                lost.wait();
                // Long enough for the host to hear of the death.
                std::thread::sleep(Duration::from_millis(200));
                is_held.store(false, SeqCst);
            });
            until(|| begun.load(SeqCst) == 3);
            kill_programs(&sandbox);
            lost.wait();
            run.join().unwrap()
        });
        assert_eq!(outcome.problem().map(|problem| problem.reason()), Some(Reason::HostFault), "{name}");
        let ends = recording.text().matches("\"state\":\"done\"").count();
        assert_eq!(ends, if name == "write" { 3 } else { 0 }, "{name}: {}", recording.text());
        let (program, input, _) = engine.open_record(&Record::parse(recording.text()).unwrap(), &[]).unwrap();
        assert_eq!(engine.run(&program, input).value::<Vec<i64>>().unwrap(), [1, 2, 3], "{name}");
        until(|| made.load(SeqCst) == begun.load(SeqCst));
        assert_eq!(made.load(SeqCst), if name == "write" { 3 } else { 6 }, "{name}");
    }
}
