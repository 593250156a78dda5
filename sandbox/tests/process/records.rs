//! Recorded runs at both doors: what one began the other goes on with.

use lisp_runtime::{Answer, Effect, Engine, Input, LimitsRequest, Outcome, Record, Recording, Settled, Tool};
use lisp_sandbox::Sandbox;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

type World = Arc<Mutex<BTreeMap<String, i64>>>;

const PROGRAM: &str = "[(tool/write {:n 101})
    (pmap (fn [i] [(tool/read {:n i}) (try (tool/fails {}) (catch Exception e (:message e))) (number? (System/currentTimeMillis))])
          (range 4))
    (tool/cached {:n 1}) (tool/cached {:n 1}) (tool/write {:n 102})]";

fn engine(world: &World) -> Engine {
    let writes = world.clone();
    Engine::builder()
        .grant(Tool::new("read", |call| Ok(call.get::<i64>("n")? + 1)).effect(Effect::Read))
        .grant(Tool::new("cached", |call| Ok(call.get::<i64>("n")? + 2)).cached().effect(Effect::Read))
        .grant(Tool::new("fails", |_| Err::<(), _>(lisp_runtime::ToolError::new("no"))).effect(Effect::Read))
        .grant(
            Tool::new("write", move |call| {
                let n = call.get::<i64>("n")?;
                let key = call.key().unwrap_or_default().to_owned();
                let before = writes.lock().unwrap().insert(key, n);
                assert_eq!(before, None, "twice");
                Ok(n)
            })
            .effect(Effect::Write),
        )
        .build()
        .unwrap()
}

fn gist(outcome: &Outcome) -> (Option<String>, Option<String>, u64, u64) {
    let problem = outcome.problem().map(|problem| problem.error.message.clone());
    (outcome.text().map(str::to_owned), problem, outcome.usage.fuel, outcome.usage.tool_calls)
}

/// A run at one door, cut off behind each line of its record, goes on at the other.
pub(crate) fn go_on_at_the_other_door(_: &Sandbox) {
    let world = World::default();
    let engine = engine(&world);
    let sandbox = Sandbox::builder().engine(engine.clone()).build().unwrap();
    for process in [false, true] {
        let recording = Recording::new();
        let input = Input::new().record(&recording);
        let whole = if process { sandbox.eval(PROGRAM, &input) } else { engine.eval(PROGRAM, input) };
        assert!(whole.is_success(), "{:?}", whole.problem());
        let all = std::mem::take(&mut *world.lock().unwrap());
        let text = recording.text();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for kept in 1..=lines.len() {
            let mut record = Record::parse(lines[..kept].concat()).unwrap();
            for call in record.open_calls().into_iter().filter(|call| call.tool == "write") {
                record.settle(&call.name, Settled::NotMade).unwrap();
            }
            // What comes behind the cut has not happened.
            let mut held = all.clone();
            held.retain(|_, n| lines[..kept].iter().any(|line| line.contains(&format!("\"result\":{n}"))));
            for at_process in [!process, process] {
                world.lock().unwrap().clone_from(&held);
                let (program, input, recording) = engine.open_record(&record, &[]).unwrap();
                let resumed = match at_process {
                    true => sandbox.eval(program.source(), &input),
                    false => engine.run(&program, input),
                };
                assert_eq!(gist(&resumed), gist(&whole), "{process} {kept}: {}", recording.text());
                assert_eq!(std::mem::take(&mut *world.lock().unwrap()).len(), 2);
            }
        }
    }
}

/// A session is not recorded, and says so; a changed program goes another way than its record.
pub(crate) fn are_checked(_: &Sandbox) {
    let world = World::default();
    let sandbox = Sandbox::builder().engine(engine(&world)).build().unwrap();
    let recording = Recording::new();
    let refused = sandbox.session(Input::new().record(&recording)).eval("1");
    assert!(refused.problem().unwrap().error.message.contains("not recorded"), "{:?}", refused.problem());
    let program = "[(System/currentTimeMillis) (tool/write {:n 1})]";
    assert!(sandbox.eval(program, &Input::new().record(&recording)).is_success());
    for (from, to) in
        [("{:n 1}", "{:n 2}"), ("[(System/currentTimeMillis)", "["), ("[(System", "[(tool/read {:n 1}) (System")]
    {
        let record = Record::parse(recording.text().replacen(from, to, 1)).unwrap();
        let (program, input, _) = engine(&world).open_record(&record, &[]).unwrap();
        let outcome = sandbox.eval(program.source(), &input);
        assert_eq!(
            outcome.problem().map(|problem| problem.reason().name()),
            Some("replay_diverged"),
            "{to}: {:?}",
            outcome.problem()
        );
    }
    assert_eq!(world.lock().unwrap().len(), 1);
}

/// A worker that did nothing, as one before it had failed, does nothing when its run goes on at the other door, with more workers.
pub(crate) fn of_failed_parallel_calls(_: &Sandbox) {
    let world = World::default();
    let engine = engine(&world);
    let sandbox = Sandbox::builder().engine(engine.clone()).build().unwrap();
    let source = "(let [made (try (pmap (fn [i] (if (= i 0) (do (reduce + (range 300000)) (tool/fails {})) (tool/write {:n i}))) (range 6))
                            (catch Exception e (:message e)))]
                    [made (tool/read {:n 1})])";
    let width = |window| {
        let mut asked = LimitsRequest::default();
        asked.set("parallel_window", window).unwrap();
        asked
    };
    for process in [false, true] {
        let recording = Recording::new();
        let input = Input::new().record(&recording).limits(width(1));
        let whole = if process { sandbox.eval(source, &input) } else { engine.eval(source, input) };
        assert!(whole.is_success() && world.lock().unwrap().is_empty(), "{:?}", whole.problem());
        recording.answer(&Answer::new(None, &whole).to_json()).unwrap();
        for at_process in [!process, process] {
            let (program, input, recording) = engine.open_record(&recording.record().unwrap(), &[]).unwrap();
            let input = input.limits_over(&width(6));
            let again = if at_process { sandbox.eval(program.source(), &input) } else { engine.run(&program, input) };
            assert!(world.lock().unwrap().is_empty(), "{}", recording.text());
            assert_eq!(gist(&again), gist(&whole), "{}", recording.text());
        }
    }
}
