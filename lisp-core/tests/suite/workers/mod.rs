//! A driver without threads: the workers of a parallel call one after the other, without a limit on their number.

use lisp_core::vm::{Effect, Ending, Machine, Settings, Step, WorkerEnd};

/// Does the parallel call that the machine waits for. `drive` runs a worker to its end.
pub(crate) fn in_turn(machine: &mut Machine, settings: &Settings, drive: &dyn Fn(&mut Machine, &Settings) -> Ending) {
    let call = machine.parallel_call().expect("a parallel call");
    let branch = machine.branch();
    let settings = Settings { fuel: branch.fuel(), ..settings.clone() };
    let mut ends: Vec<WorkerEnd> = Vec::new();
    let mut failure = None;
    for index in call.joined..call.count {
        let end = match branch.worker(index, &settings) {
            Ok(mut worker) => {
                let ending = drive(&mut worker, &settings);
                worker.end_worker(ending)
            }
            Err(error) => WorkerEnd::failed(error),
        };
        failure = end.error().cloned();
        ends.push(end);
        if failure.is_some() {
            break;
        }
    }
    assert!(machine.rejoin(branch).is_ok(), "no worker is left");
    if machine.join(ends).is_ok()
        && let Some(error) = failure
    {
        machine.fail_parallel(error, false);
    }
}

/// Runs a machine to its end in slices of so much fuel; `reply` answers tool calls.
pub(crate) fn to_end(machine: &mut Machine, settings: &Settings, slice: u64, reply: &dyn Fn(&mut Machine)) -> Ending {
    // A clock that goes on a second each time it is asked.
    let mut time = 0;
    loop {
        match machine.resume(slice) {
            Step::Paused => {}
            Step::Effect(Effect::Clock) => {
                time += 1_000;
                machine.tell_time(time);
            }
            Step::Effect(Effect::ToolCall) => reply(machine),
            Step::Effect(Effect::Parallel) => {
                in_turn(machine, settings, &|worker, settings| to_end(worker, settings, slice, reply))
            }
            Step::Done(ending) => return ending,
        }
    }
}
