//! Recorded runs at both modes: what one began the other goes on with.

use lisp_runtime::record::Settled;
use lisp_runtime::tools::Effect;
use lisp_runtime::{Answer, Engine, Input, Limits, LimitsRequest, Outcome, Reason, Record, Recording, Tool, Tools};
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
        .grant(Tool::new("read", |call| Ok(call.get::<i64>("n")? + 1)).with_effect(Effect::Read))
        .grant(Tool::new("cached", |call| Ok(call.get::<i64>("n")? + 2)).cached().with_effect(Effect::Read))
        .grant(Tool::new("fails", |_| Err::<(), _>(lisp_runtime::ToolError::new("no"))).with_effect(Effect::Read))
        .grant(
            Tool::new("write", move |call| {
                let n = call.get::<i64>("n")?;
                let key = call.key().unwrap_or_default().to_owned();
                let before = writes.lock().unwrap().insert(key, n);
                assert_eq!(before, None, "twice");
                Ok(n)
            })
            .with_effect(Effect::Write),
        )
        .build()
        .unwrap()
}

fn gist(outcome: &Outcome) -> (Option<String>, Option<String>, u64, u64) {
    let problem = outcome.problem().map(|problem| problem.error.message.clone());
    (outcome.text().map(str::to_owned), problem, outcome.usage.fuel, outcome.usage.tool_calls)
}

/// A run at one mode, cut off behind each line of its record, goes on at the other.
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
    assert!(refused.problem().unwrap().error.message.contains("cannot be recorded"), "{:?}", refused.problem());
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

/// A call that had begun as one that writes is not made again by a tool that only reads now.
pub(crate) fn keep_the_stricter_effect(_: &Sandbox) {
    let sandbox = |effect| {
        let tool = Tool::new("pay", |call| call.get::<i64>("n")).with_effect(effect);
        Sandbox::builder().engine(Engine::builder().grant(tool).build().unwrap()).build().unwrap()
    };
    for (was, says) in [(Effect::Read, None), (Effect::Write, Some("unknown_call"))] {
        let recording = Recording::new();
        assert!(sandbox(was).eval("(tool/pay {:n 1})", &Input::new().record(&recording)).is_success());
        let begun: String = recording.text().split_inclusive('\n').take(2).collect();
        let now = sandbox(Effect::Read);
        let (program, input, _) = now.engine().open_record(&Record::parse(begun).unwrap(), &[]).unwrap();
        let outcome = now.eval(program.source(), &input);
        assert_eq!(outcome.problem().map(|problem| problem.reason().name()), says, "{was:?}");
    }
}

/// The time of a run begins where its record is done again, at this mode too, and ends it then.
pub(crate) fn take_no_time_again(_: &Sandbox) {
    const PROGRAM: &str = "(let [busy (fn [] (dotimes [_ 60] (reduce + (map inc (range 50000)))))]
        (busy) (pmap (fn [i] (busy) (tool/read {:n i})) [1 2]) (System/currentTimeMillis) (busy)
        (if (= :endless (keyword (tool/ask {}))) (loop [i 0] (recur (inc i))) 5))";
    let sandbox = |answer: &'static str| {
        let limits = Limits::default().with_fuel(0).with_loop_iterations(0).with_parallel_timeout_ms(600_000);
        let engine = Engine::builder()
            .limits(limits.with_timeout_ms(600_000))
            .grant(Tool::new("read", |call| call.get::<i64>("n")).with_effect(Effect::Read))
            .grant(Tool::new("ask", move |_| Ok(answer)).with_effect(Effect::Read));
        Sandbox::builder().engine(engine.build().unwrap()).build().unwrap()
    };
    let within = |ms| {
        let mut asked = LimitsRequest::default();
        asked.set("timeout_ms", ms).unwrap();
        asked.set("parallel_timeout_ms", ms).unwrap();
        asked
    };
    let resume = |sandbox: &Sandbox, text: &str, ms: u64| {
        let record = Record::parse(text).unwrap();
        let (program, input, _) = sandbox.engine().open_record(&record, &[]).unwrap();
        sandbox.eval(program.source(), &input.limits_over(&within(ms)))
    };
    let (go, recording) = (sandbox("go"), Recording::new());
    let whole = go.eval(PROGRAM, &Input::new().record(&recording));
    assert_eq!(whole.text(), Some("5"), "{:?}", whole.problem());
    let text = recording.text();
    let begun = &text[..text.trim_end().rfind('\n').unwrap() + 1];
    let ms = whole.usage.duration_us / 4_000;
    let again = resume(&go, begun, ms);
    assert_eq!(again.text(), Some("5"), "{:?}", again.problem());
    assert!(again.usage.duration_us > ms * 1_000, "the test shows nothing");
    // The record may have all of it.
    let again = resume(&go, &text, ms);
    assert_eq!(again.text(), Some("5"), "{:?}", again.problem());
    let endless = resume(&sandbox("endless"), begun, 100);
    let problem = endless.problem().unwrap();
    assert_eq!(problem.reason(), Reason::Timeout);
    // It ended by itself, and was not killed.
    assert_eq!(problem.error.message, "the run takes longer than 100 ms");
    assert_eq!(endless.usage.tool_calls, 3);
    let nowhere = resume(&go, &begun.replacen("[_ 60]", "[_ 60000000]", 1), 3);
    let message = &nowhere.problem().unwrap().error.message;
    assert!(message.contains("longer than 100 times timeout_ms, 300 ms"), "{message}");
}

/// The page of a tool is printed, and again from the record at either mode.
pub(crate) fn have_pages_of_tools(_: &Sandbox) {
    let engine = |about: &str| {
        let tool = Tool::new("find", |_| Ok(1)).signature("() -> :int").about(about);
        Engine::builder().grant(tool).build().unwrap()
    };
    let sandbox = Sandbox::builder().engine(engine("Finds things.")).build().unwrap();
    let recording = Recording::new();
    let source = "[(doc tool/find) (pmap (fn [_] (doc tool/fin)) [1]) (tool/find {})]";
    let mut own = Tools::new();
    own.add(Tool::echo("fins")).unwrap();
    let whole = sandbox.eval(source, &Input::new().record(&recording));
    assert_eq!(whole.text(), Some("[nil [nil] 1]"), "{:?}", whole.problem());
    assert_eq!(whole.prints, ["tool/find () -> :int\nFinds things.", "there is no tool/fin; did you mean tool/find?"]);
    let calls: Vec<&str> = whole.ledger.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(calls, ["doc/tool", "doc/tool", "find"]);
    let seen = sandbox.eval("(doc tool/fins)", &Input::new().tools(own));
    assert_eq!(seen.prints, ["tool/fins"]);
    let other = engine("Finds other things.");
    let elsewhere = Sandbox::builder().engine(other.clone()).build().unwrap();
    for process in [false, true] {
        let (program, input, _) = other.open_record(&recording.record().unwrap(), &[]).unwrap();
        let again = if process { elsewhere.eval(program.source(), &input) } else { other.run(&program, input) };
        assert_eq!((gist(&again), &again.prints), (gist(&whole), &whole.prints));
    }
}

/// Tools of the run alone are given again, to a process too.
pub(crate) fn take_tools_again(_: &Sandbox) {
    let own = |answer: i64| {
        let mut tools = Tools::new();
        tools.add(Tool::new("own", move |_| Ok(answer)).with_effect(Effect::Read)).unwrap();
        Input::new().tools(tools)
    };
    let sandbox = Sandbox::builder().build().unwrap();
    let recording = Recording::new();
    let whole = sandbox.eval("[(tool/own {}) (tool/own {})]", &own(1).record(&recording));
    assert_eq!(whole.text(), Some("[1 1]"));
    let text: String = recording.text().split_inclusive('\n').take(3).collect();
    let record = Record::parse(text).unwrap();
    assert!(sandbox.engine().open_record(&record, &[]).unwrap_err().to_string().contains("tool/own"));
    let (program, input, _) = sandbox.engine().open_record_given(&record, own(2), &Recording::builder()).unwrap();
    assert_eq!(sandbox.eval(program.source(), &input).text(), Some("[1 2]"));
}

/// A worker that did nothing, as one before it had failed, does nothing when its run goes on at the other mode, with more workers.
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
