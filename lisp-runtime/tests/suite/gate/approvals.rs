//! Approvals: calls that wait for somebody, and what is decided about them.

use super::{asks, at, counted, message, reason, waits};
use lisp_runtime::outcome::CallStatus;
use lisp_runtime::record::{RecordError, Settled};
use lisp_runtime::tools::{AskedCall, Effect, PolicyDecision};
use lisp_runtime::{Engine, Input, LimitsRequest, Outcome, Progress, Reason, Record, Recording, Tool};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_run_driven_step_by_step_stops_for_an_approval() {
    let (engine, _, _) = asks();
    let program = engine.compile("(+ (tool/pay {:n 1}) (tool/pay {:n 100}))").unwrap();
    let stop = || {
        let Progress::ToolCall(waiting) = engine.start(&program, Input::new()) else { panic!("the first is allowed") };
        let waiting = waits(waiting.reply(&1));
        assert_eq!((waiting.calls().count(), waiting.approvals().count()), (0, 1));
        assert_eq!((waiting.call().question(), waiting.call().json()), (Some("pay 100?"), r#"{"n":100}"#));
        let id = waiting.approvals().next().unwrap().0;
        (waits(waiting.poll()), id)
    };
    let (waiting, id) = stop();
    let Progress::ToolCall(waiting) = waiting.approve(id) else { panic!("it waits for its reply") };
    assert_eq!(waiting.call().question(), None);
    let Progress::Done(outcome) = waiting.reply(&100) else { panic!() };
    assert_eq!(outcome.value::<i64>().unwrap(), 101);

    let (waiting, id) = stop();
    let Progress::ToolCall(waiting) = waiting.approve_with(id, r#"{"n":50}"#) else { panic!() };
    assert_eq!(waiting.call().json(), r#"{"n":50}"#);

    let (waiting, id) = stop();
    let Progress::Done(outcome) = waiting.reject(id, "too much") else { panic!() };
    assert_eq!((reason(&outcome), &*message(&outcome)), (Some(Reason::ToolDenied), "tool/pay was denied: too much"));
    assert_eq!(outcome.ledger.iter().map(|line| line.status).collect::<Vec<_>>(), [CallStatus::Ok, CallStatus::Error]);

    // A reply is an approval, too; and what is no JSON object is none.
    let (waiting, id) = stop();
    let Progress::Done(outcome) = waiting.reply_to(id, &5) else { panic!() };
    assert_eq!(outcome.value::<i64>().unwrap(), 6);
    let (waiting, id) = stop();
    let Progress::Done(outcome) = waiting.approve_with(id, "[1") else { panic!() };
    assert_eq!(reason(&outcome), Some(Reason::ToolDenied));
}

#[test]
fn an_approval_behind_the_deadline_hands_out_no_call() {
    let (engine, calls, _) = asks();
    for program in ["(tool/pay {:n 100})", "(pmap (fn [n] (tool/pay {:n n})) [100 200])"] {
        let program = engine.compile(program).unwrap();
        for given in [None, Some(r#"{"n":50}"#)] {
            let recording = Recording::new();
            let mut limits = LimitsRequest::default();
            limits.timeout_ms = Some(30);
            let waiting = waits(engine.start(&program, Input::new().limits(limits).record(&recording)));
            let id = waiting.approvals().next().unwrap().0;
            std::thread::sleep(Duration::from_millis(40));
            let progress = match given {
                None => waiting.approve(id),
                Some(given) => waiting.approve_with(id, given),
            };
            let Progress::Done(outcome) = progress else { panic!("{progress:?}") };
            assert_eq!(reason(&outcome), Some(Reason::Timeout));
            // Who is slower approves by the record.
            let mut record = recording.record().unwrap();
            assert!(record.open_calls().iter().all(|call| call.question.is_some()));
            let name = record.open_calls()[0].name.clone();
            record.approve(&name, given).unwrap();
        }
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[test]
fn the_ledger_has_the_arguments_that_a_call_was_approved_with() {
    const GIVEN: &str = r#"{"n":50}"#;
    let (engine, _, _) = asks();
    let shown = |progress: Progress| {
        let Progress::Done(outcome) = progress else { panic!("{progress:?} is not over") };
        assert!(outcome.is_success(), "{}", message(&outcome));
        outcome.ledger.iter().map(|line| line.arguments.text.clone()).collect::<Vec<_>>()
    };
    let approved = |program: &str| {
        let waiting = waits(engine.start(&engine.compile(program).unwrap(), Input::new()));
        let id = waiting.approvals().next().unwrap().0;
        let Progress::ToolCall(waiting) = waiting.approve_with(id, GIVEN) else { panic!() };
        (waiting, id)
    };
    assert_eq!(shown(approved("(tool/pay {:n 100})").0.reply(&50)), [GIVEN]);
    let (waiting, id) = approved("(tool/pay {:n 100})");
    assert_eq!(shown(waiting.serve(id)), [GIVEN]);
    let (waiting, id) = approved("(pmap (fn [n] (tool/pay {:n n})) [100])");
    assert_eq!(shown(waiting.serve(id)), [GIVEN]);

    let recording = Recording::new();
    engine.eval("(tool/pay {:n 100})", Input::new().record(&recording));
    let mut record = recording.record().unwrap();
    record.approve("1", Some(GIVEN)).unwrap();
    for mode in 0..2 {
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        assert_eq!(shown(Progress::Done(Box::new(at(mode, &engine, program.source(), input)))), [GIVEN]);
    }
}

#[test]
fn a_session_is_told_of_an_approval_what_it_can_follow() {
    let (engine, _, _) = asks();
    let hint = |outcome: &Outcome| outcome.problem().and_then(|problem| problem.error.hint.clone()).unwrap_or_default();
    let turn = engine.session(Input::new()).eval("(tool/pay {:n 100})");
    assert_eq!(reason(&turn), Some(Reason::ApprovalRequired));
    assert!(
        hint(&turn).contains("as a durable run (POST /v1/runs)") && !hint(&turn).contains("Record::approve"),
        "{}",
        hint(&turn)
    );
    assert!(hint(&engine.eval("(tool/pay {:n 100})", Input::new())).contains("Record::approve"));
}

#[test]
fn parallel_workers_wait_for_approvals_beside_each_other() {
    let (engine, _, asked) = asks();
    let program = engine.compile("(pmap (fn [n] (tool/pay {:n n})) [1 100 200])").unwrap();
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new()) else { panic!() };
    assert_eq!((waiting.calls().count(), waiting.approvals().count()), (1, 2));
    let ids: Vec<_> = waiting.approvals().map(|(id, _)| id).collect();
    let one = waiting.call().json().to_owned();
    assert_eq!(one, r#"{"n":1}"#);
    let waiting = waits(waiting.reply(&1));
    let Progress::ToolCall(waiting) = waiting.approve_with(ids[1], r#"{"n":150}"#) else { panic!() };
    assert_eq!((waiting.call().json(), waiting.approvals().count()), (r#"{"n":150}"#, 1));
    let waiting = waits(waiting.reply(&150));
    let Progress::ToolCall(waiting) = waiting.approve(ids[0]) else { panic!() };
    let Progress::Done(outcome) = waiting.reply(&100) else { panic!() };
    assert_eq!(outcome.text(), Some("[1 100 150]"));
    assert_eq!(asked.load(Ordering::Relaxed), 3, "the policy is asked once for each call");
}

#[test]
fn an_approval_outlives_the_process() {
    let (engine, calls, asked) = asks();
    let program = "(+ (tool/pay {:n 1}) (tool/pay {:n 100}))";
    for mode in 0..2 {
        let recording = Recording::new();
        let input = Input::new().record(&recording);
        let outcome = at(mode, &engine, program, input);
        assert_eq!(reason(&outcome), Some(Reason::ApprovalRequired));
        assert!(message(&outcome).contains("pay 100?"));
        let record = Record::parse(recording.text()).unwrap();
        let open = record.open_calls();
        assert_eq!(open.len(), 1);
        assert_eq!((&*open[0].name, open[0].question.as_deref()), ("2", Some("pay 100?")));
        let go_on = |record: &Record| {
            let (program, input, again) = engine.open_record(record, &[]).unwrap();
            (at(mode, &engine, program.source(), input), again.text())
        };
        let before = asked.load(Ordering::Relaxed);
        // Undecided, it asks again, and nothing is made.
        assert_eq!(reason(&go_on(&record).0), Some(Reason::ApprovalRequired));
        // Approved, as it is and with other arguments.
        for (given, sum) in [(None, 101), (Some(r#"{"n":60}"#), 61)] {
            let mut approved = record.clone();
            approved.approve("2", given).unwrap();
            assert!(approved.open_calls().iter().all(|call| call.question.is_none()));
            assert!(matches!(approved.approve("2", None), Err(RecordError::NoQuestion(_))));
            let (outcome, text) = go_on(&Record::parse(approved.text()).unwrap());
            assert_eq!(outcome.value::<i64>().unwrap(), sum);
            // What came of it is replayed from the second life's record, without a call.
            let made = calls.load(Ordering::Relaxed);
            assert_eq!(go_on(&Record::parse(text).unwrap()).0.value::<i64>().unwrap(), sum);
            assert_eq!(calls.load(Ordering::Relaxed), made);
        }
        let mut rejected = record.clone();
        rejected.reject("2", "no").unwrap();
        assert!(rejected.open_calls().is_empty());
        assert_eq!(message(&go_on(&rejected).0), "tool/pay was denied: no");
        // Somebody did it by other means.
        let mut done = record.clone();
        done.settle("2", Settled::Done("7".to_owned())).unwrap();
        assert_eq!(go_on(&done).0.value::<i64>().unwrap(), 8);
        assert!(matches!(rejected.approve("1", None), Err(RecordError::NoQuestion(_))));
        let fault = record.clone().approve("2", Some("[1]"));
        assert!(matches!(fault, Err(RecordError::Json(_))), "{fault:?}");
        assert_eq!(asked.load(Ordering::Relaxed), before, "decisions of the record stand");
        assert_eq!(calls.swap(0, Ordering::Relaxed), 3, "the first call once, the second once for each approval");
        // By hand, too: what waits to be approved is not served, what is approved is.
        let waiting = waits(engine.resume(&record).unwrap());
        let id = waiting.approvals().next().unwrap().0;
        let waiting = waits(waiting.serve(id));
        let Progress::ToolCall(waiting) = waiting.approve(id) else { panic!() };
        let Progress::Done(outcome) = waiting.serve(id) else { panic!() };
        assert_eq!((outcome.value::<i64>().unwrap(), calls.swap(0, Ordering::Relaxed)), (101, 1));
    }
}

#[test]
fn decisions_are_in_the_record() {
    let count = Arc::new(AtomicU64::new(0));
    let its = count.clone();
    // A policy that decides otherwise each time.
    let policy = move |_: &AskedCall<'_>| match its.fetch_add(1, Ordering::Relaxed) {
        n @ 0..=2 => PolicyDecision::AllowWith(format!(r#"{{"n":{n}}}"#)),
        3 => PolicyDecision::Deny("enough".to_owned()),
        _ => PolicyDecision::Deny("asked again".to_owned()),
    };
    let (tool, calls) = counted("t");
    let engine = Engine::builder().grant(tool.cached()).policy(policy).build().unwrap();
    let program = "[(tool/t {:n 9}) (tool/t {:n 9}) (tool/t {:n 8}) (tool/t {:n 9})]";
    let recording = Recording::new();
    let first = engine.eval(program, Input::new().record(&recording));
    assert_eq!(message(&first), "tool/t was denied: enough");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    let record = Record::parse(recording.text()).unwrap();
    let (program, input, _) = engine.open_record(&record, &[]).unwrap();
    let second = engine.run(&program, input);
    assert_eq!((message(&second), second.usage.fuel), (message(&first), first.usage.fuel));
    assert_eq!((calls.load(Ordering::Relaxed), count.load(Ordering::Relaxed)), (3, 4));
}

/// What a record says of arguments is checked like what a policy says of them.
#[test]
fn a_record_cannot_give_a_tool_what_does_not_fit() {
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}"#;
    let got: Arc<Mutex<Vec<String>>> = Arc::default();
    let its = got.clone();
    let pay = Tool::from_json_schema("pay", "", schema, None).unwrap().with_handler(move |call| {
        its.lock().unwrap().push(call.json().to_owned());
        Ok(1)
    });
    let ask = |_: &AskedCall<'_>| PolicyDecision::Ask("pay?".to_owned());
    let engine = Engine::builder().grant(pay.with_effect(Effect::Write)).policy(ask).build().unwrap();
    let recording = Recording::new();
    engine.eval("(tool/pay {:n 1})", Input::new().record(&recording));
    for (arguments, ends) in [(r#"{"n":"lots","evil":1}"#, Some(Reason::ToolDenied)), (r#"{"n":7}"#, None)] {
        let mut record = recording.record().unwrap();
        record.approve("1", Some(arguments)).unwrap();
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        let outcome = engine.run(&program, input);
        assert_eq!(reason(&outcome), ends, "{arguments}");
        assert!(outcome.ledger.iter().all(|call| ends.is_some() || call.arguments.text == arguments));
    }
    assert_eq!(*got.lock().unwrap(), [r#"{"n":7}"#]);
}

/// The result of a call that was approved with arguments of another spelling serves equal calls, not its arguments.
#[test]
fn a_cached_call_that_was_approved_serves_its_result() {
    for given in [r#"{"n":1}"#, r#"{"n": 1}"#, r#"{ "n" : 1 }"#] {
        let asked = AtomicU64::new(0);
        let policy = move |_: &AskedCall<'_>| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => PolicyDecision::Ask("really?".to_owned()),
            _ => PolicyDecision::Allow,
        };
        let tool = Tool::new("t", |_| Ok(42)).with_effect(Effect::Read).cached();
        let engine = Engine::builder().grant(tool).policy(policy).build().unwrap();
        let recording = Recording::new();
        let first = engine.eval("[(tool/t {:n 1}) (tool/t {:n 1}) (tool/t {:n 1})]", Input::new().record(&recording));
        assert_eq!(reason(&first), Some(Reason::ApprovalRequired));
        let mut record = recording.record().unwrap();
        record.approve("1", Some(given)).unwrap();
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        let second = engine.run(&program, input);
        assert_eq!(second.text(), Some("[42 42 42]"), "{given}: {:?}", second.problem());
    }
}
