//! Recorded runs: cut off anywhere, they go on to the same answer, and no effect happens twice.

use lisp_runtime::record::{CallState, RecordError, Settled};
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Input, Limits, Outcome, Progress, Record, Recording, Tool, ToolError, Tools};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Numbers that are the same in every run of the test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides.max(1)
    }
}

/// A random expression over the names `i` (a number), at most so deep.
fn expression(dice: &mut Dice, depth: u64) -> String {
    let n = dice.roll(5);
    if depth == 0 {
        return match dice.roll(7) {
            0 => format!("(tool/read {{:n (+ i {n})}})"),
            1 => format!("(tool/write {{:n (+ i {n})}})"),
            2 => format!("(tool/cached {{:n (mod (+ i {n}) 3)}})"),
            3 => format!("(try (tool/fails {{:n {n}}}) (catch Exception e (:message e)))"),
            4 => "(do (println :at i) i)".to_owned(),
            5 => "(System/currentTimeMillis)".to_owned(),
            _ => format!("(+ i {n})"),
        };
    }
    let mut inner = || expression(dice, depth - 1);
    match n {
        0 => format!("[{} {}]", inner(), inner()),
        1 => format!("(str {} {})", inner(), inner()),
        2 => format!("(pmap (fn [i] {}) (range {}))", inner(), depth + 2),
        3 => format!("(mapv (fn [i] {}) (range 2))", inner()),
        _ => format!("(let [f (fn f [i] (if (< i 1) {} [(f (dec i))]))] (f 2))", inner()),
    }
}

/// The world outside: how often each call of `write` was made, by its key.
type World = Arc<Mutex<BTreeMap<String, u32>>>;

fn engine(world: &World, window: u64) -> Engine {
    let writes = world.clone();
    let limits = Limits::default()
        .with_parallel_window(window)
        .with_timeout_ms(60_000)
        .with_parallel_timeout_ms(60_000)
        .with_parallel_workers(1_024);
    let number = |call: &lisp_runtime::ToolCall| call.get::<i64>("n");
    Engine::builder()
        .limits(limits)
        .grant(Tool::new("read", move |call| Ok(number(call)? * 2)).with_effect(Effect::Read))
        .grant(
            Tool::new("write", move |call| {
                let key = call.key().ok_or_else(|| ToolError::new("no key"))?.to_owned();
                *writes.lock().unwrap().entry(key).or_default() += 1;
                Ok(BTreeMap::from([("id", number(call)?)]))
            })
            .with_effect(Effect::Write),
        )
        .grant(Tool::new("cached", number).cached().with_effect(Effect::Read))
        .grant(Tool::new("fails", move |call| Err::<(), _>(ToolError::new(format!("no {}", number(call)?)))))
        .build()
        .unwrap()
}

/// What must be the same in every life of a run.
fn gist(outcome: &Outcome) -> String {
    let problem = outcome.problem().map(|problem| (problem.reason(), problem.error.message.clone(), problem.position));
    let calls: Vec<String> = outcome
        .ledger
        .iter()
        .map(|call| format!("{} {:?} {:?} {:?} {:?}", call.name, call.arguments, call.status, call.result, call.worker))
        .collect();
    format!(
        "{:?} {problem:?} {:?} {} {} {calls:?}",
        outcome.text(),
        outcome.prints,
        outcome.usage.fuel,
        outcome.usage.tool_calls
    )
}

/// The record cut off behind a random line; what was begun then is settled as the world has it.
fn cut(record: &str, dice: &mut Dice, world: &World) -> Record {
    let lines: Vec<&str> = record.split_inclusive('\n').collect();
    let kept = 1 + dice.roll(lines.len() as u64) as usize;
    let mut text: String = lines[..kept.min(lines.len())].concat();
    if dice.roll(4) == 0 {
        // The last line did not reach the disk in whole.
        text.truncate(text.len() - dice.roll(lines[kept.min(lines.len()) - 1].len() as u64) as usize);
        if !text.contains('\n') {
            text = lines[0].to_owned();
        }
    }
    let mut record = Record::parse(text).unwrap();
    for call in record.open_calls() {
        assert_eq!(call.state, CallState::Started);
        if call.tool == "write" {
            let key = format!("{}/{}", record.run_id(), call.name);
            let n: BTreeMap<String, i64> = serde_json::from_str(&call.arguments).unwrap();
            let settled = match dice.roll(2) {
                0 => Settled::Done(format!("{{\"id\":{}}}", n["n"])),
                // As if the process had ended before the call.
                _ => {
                    world.lock().unwrap().remove(&key);
                    Settled::NotMade
                }
            };
            record.settle(&call.name, settled).unwrap();
        } else if call.tool == "fails" {
            record.settle(&call.name, Settled::NotMade).unwrap();
        }
    }
    // What comes behind the cut has not happened.
    let happened: Vec<String> =
        record.text().lines().filter(|line| line.contains("\"tool\":\"write\"")).map(str::to_owned).collect();
    world.lock().unwrap().retain(|key, _| {
        let place = key.rsplit_once(&format!("{}/", record.run_id())).map_or("", |(_, place)| place);
        happened.iter().any(|line| line.contains(&format!("\"call\":\"{place}\"")))
    });
    record
}

/// Ten thousand random programs, each run whole, cut off somewhere, and gone on with at other widths.
#[test]
fn cut_runs_go_on_to_the_same_answer() {
    const PROGRAMS: u64 = 10_000;
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for number in (0..PROGRAMS).filter(|number| number % threads == thread) {
                    check(number);
                }
            });
        }
    });
}

fn check(number: u64) {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ (number + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9));
    let depth = 1 + dice.roll(3);
    let body = expression(&mut dice, depth);
    let source = match dice.roll(8) {
        0 => format!("(let [i 1] {body} (tool/fails {{:n 9}}))"),
        _ => format!("(let [i 1] {body})"),
    };
    let world = World::default();
    let widths = [1, 8];
    let first = engine(&world, widths[dice.roll(2) as usize]);
    let program = first.compile(&source).unwrap();
    let recording = Recording::new();
    let whole = first.run(&program, Input::new().record(&recording));
    let second = engine(&world, widths[dice.roll(2) as usize]);
    let record = cut(&recording.text(), &mut dice, &world);
    let (again, input, recording) = second.open_record(&record, &[]).unwrap();
    let resumed = second.run(&again, input);
    // The clock of the second life tells another time from the cut on.
    let timeless = |gist: String| gist.replace(|c: char| c.is_ascii_digit(), "#");
    let (a, b) = (gist(&whole), gist(&resumed));
    match source.contains("currentTimeMillis") {
        false => assert_eq!(a, b, "{number}: {source}\n{}", record.text()),
        true => assert_eq!(timeless(a), timeless(b), "{number}: {source}\n{}", record.text()),
    }
    for (key, times) in world.lock().unwrap().iter() {
        assert_eq!(*times, 1, "{number}: {key} of {source}\n{}", record.text());
    }
    // The whole record, driven step by step, stops nowhere.
    let record = Record::parse(recording.text()).unwrap();
    match second.resume(&record).unwrap() {
        Progress::Done(outcome) => assert_eq!(gist(&outcome), gist(&resumed), "{number}: {source}"),
        Progress::ToolCall(waiting) | Progress::Approval(waiting) => panic!("{number}: {source} calls {waiting:?}"),
    }
}

#[test]
fn a_run_driven_step_by_step_goes_on_after_every_stop() {
    let tool = || Tool::external("ask").signature("(n :int) -> :int");
    let engine = Engine::builder().grant(tool()).build().unwrap();
    let program = engine.compile("[(tool/ask {:n 0}) (pmap #(tool/ask {:n %}) [1 2 3]) (tool/ask {:n 4})]").unwrap();
    let recording = Recording::new();
    drop(engine.start(&program, Input::new().record(&recording)));
    let (mut text, mut lives) = (recording.text(), 0);
    // In each life the last of the calls that wait is answered; then the process ends.
    let outcome = loop {
        let record = Record::parse(text).unwrap();
        assert!(record.open_calls().iter().all(|call| call.state == CallState::Asked && call.tool == "ask"));
        let (program, input, recording) = engine.open_record(&record, &[]).unwrap();
        let waiting = match engine.start(&program, input) {
            Progress::Done(outcome) => break outcome,
            Progress::ToolCall(waiting) | Progress::Approval(waiting) => waiting,
        };
        let (id, n) = waiting.calls().last().map(|(id, call)| (id, call.get::<i64>("n").unwrap())).unwrap();
        let last = waiting.reply_to(id, &(n * 10));
        text = recording.text();
        lives += 1;
        drop(last);
    };
    assert_eq!(outcome.text(), Some("[0 [10 20 30] 40]"));
    assert_eq!(lives, 5);
}

#[test]
fn a_begun_call_is_not_made_again_without_a_word() {
    let world = World::default();
    let engine = engine(&world, 1);
    let program = engine.compile("[(tool/write {:n 1}) (tool/read {:n 2})]").unwrap();
    let recording = Recording::new();
    assert!(engine.run(&program, Input::new().record(&recording)).is_success());
    let text = recording.text();
    let until = |line: usize| Record::parse(text.split_inclusive('\n').take(line).collect::<String>()).unwrap();
    // Behind the line that announces the write.
    let mut record = until(2);
    let (again, input, _) = engine.open_record(&record, &[]).unwrap();
    let outcome = engine.run(&again, input);
    let problem = outcome.problem().unwrap();
    assert_eq!(problem.reason().name(), "unknown_call");
    assert!(problem.error.message.contains("call 1"), "{}", problem.error.message);
    assert_eq!(world.lock().unwrap().values().sum::<u32>(), 1);
    assert_eq!(record.settle("9", Settled::NotMade), Err(RecordError::NoCall("9".to_owned())));
    assert!(matches!(record.settle("1", Settled::Done("{".to_owned())), Err(RecordError::Json(_))));
    record.settle("1", Settled::Done(r#"{"id": 1}"#.to_owned())).unwrap();
    let (again, input, _) = engine.open_record(&record, &[]).unwrap();
    assert_eq!(engine.run(&again, input).text(), Some("[{\"id\" 1} 4]"));
    // Behind the line that announces the read: it is made again.
    let (again, input, _) = engine.open_record(&until(4), &[]).unwrap();
    assert_eq!(engine.run(&again, input).text(), Some("[{\"id\" 1} 4]"));
    assert_eq!(world.lock().unwrap().values().sum::<u32>(), 1);
}

/// What was said of a tool when its call began counts, also when less is said of it now.
#[test]
fn the_stricter_of_two_effects_counts() {
    let engine = |effect| {
        let tool = Tool::new("pay", |call| call.get::<i64>("n")).with_effect(effect).idempotent();
        Engine::builder().grant(tool).build().unwrap()
    };
    let effects = [Effect::Read, Effect::Write, Effect::Unknown];
    for (was, is) in effects.into_iter().flat_map(|was| effects.map(|is| (was, is))) {
        let recording = Recording::new();
        assert!(engine(was).eval("(tool/pay {:n 1})", Input::new().record(&recording)).is_success());
        let whole = recording.text();
        let begun: String = whole.split_inclusive('\n').take(2).collect();
        let shown = recording.record().unwrap().external_tools().unwrap();
        assert_eq!((shown[0].effect(), shown[0].is_idempotent()), (was, true));
        // A record of a version that did not say it: what is said now counts.
        let (_, rest) = begun.split_once('\n').unwrap();
        let mut header = earlier(&begun);
        assert!(header.as_object_mut().unwrap().remove("effects").is_some(), "{header}");
        let older = format!("{header}\n{rest}");
        for (text, was) in [(begun, was), (older, Effect::Read)] {
            let engine = engine(is);
            let (program, input, _) = engine.open_record(&Record::parse(text).unwrap(), &[]).unwrap();
            let outcome = engine.run(&program, input);
            match (was, is) {
                (Effect::Read, Effect::Read) => assert_eq!(outcome.text(), Some("1")),
                _ => assert_eq!(outcome.problem().unwrap().reason().name(), "unknown_call", "{was:?} {is:?}"),
            }
        }
        // A call that ended is not made again, whatever is said of its tool.
        let Progress::Done(outcome) = engine(is).resume(&Record::parse(whole).unwrap()).unwrap() else { panic!() };
        assert_eq!(outcome.text(), Some("1"));
    }
}

#[test]
fn another_way_than_the_record_is_an_error_before_anything_is_done() {
    let world = World::default();
    let engine = engine(&world, 1);
    let program = engine.compile("(do (tool/write {:n 1}) (tool/write {:n 2}) (tool/read {:n 3}))").unwrap();
    let recording = Recording::new();
    assert!(engine.run(&program, Input::new().record(&recording)).is_success());
    let text = recording.text();
    let edits = [
        (
            "(tool/write {:n 2})",
            "(tool/write {:n 5})",
            "record has tool/write {\"n\":2}, and the run has tool/write {\"n\":5}",
        ),
        ("(tool/write {:n 1}) (tool", "(tool/read {:n 1}) (tool", "and the run has tool/read"),
        ("(tool/write {:n 1}) (tool/write {:n 2}) ", "(tool/write {:n 1}) ", "at 2"),
        ("(tool/read {:n 3}))", "3)", "and the run has the end"),
    ];
    for (from, to, says) in edits {
        assert!(text.contains(from), "{from}");
        let record = Record::parse(text.replacen(from, to, 1)).unwrap();
        let (program, input, _) = engine.open_record(&record, &[]).unwrap();
        let outcome = engine.run(&program, input);
        let problem = outcome.problem().unwrap_or_else(|| panic!("{to}: {:?}", outcome.text()));
        assert_eq!(problem.reason().name(), "replay_diverged", "{to}");
        assert!(problem.error.message.contains(says), "{to}: {}", problem.error.message);
        assert_eq!(world.lock().unwrap().len(), 2, "{to}");
    }
    let fewer = Engine::builder().grant(Tool::external("write")).build().unwrap();
    let record = Record::parse(text).unwrap();
    let error = fewer.open_record(&record, &[]).unwrap_err();
    // Those that the program does not name are not missed.
    assert!(error.to_string().starts_with("the run had tools that are not there now: tool/read;"), "{error}");
}

/// Tools that the programs do not name may change and go; those that they name may grow optional parameters.
#[test]
fn a_run_is_bound_to_the_tools_that_it_names() {
    let with = |pay: &str, other: Option<&str>| {
        let builder = Engine::builder().grant(Tool::external("pay").signature(pay));
        match other {
            Some(other) => builder.grant(Tool::external("other").signature(other)).build().unwrap(),
            None => builder.build().unwrap(),
        }
    };
    let first = with("(n :int) -> :int", Some("(a :int) -> :int"));
    let program = first.compile("(inc (tool/pay {:n 1}))").unwrap();
    let recording = Recording::new();
    drop(first.start(&program, Input::new().record(&recording)));
    let record = recording.record().unwrap();
    assert!(!record.text().contains("other"), "{}", record.text());
    for (pay, other) in [
        ("(n :int) -> :int", None),
        ("(n :int) -> :int", Some("(b :string) -> :string")),
        ("(n :int, note :string?) -> :int", None),
    ] {
        let engine = with(pay, other);
        let Progress::ToolCall(waiting) = engine.resume(&record).unwrap() else { panic!("{pay} {other:?}") };
        let Progress::Done(outcome) = waiting.reply(&41) else { panic!("{pay} {other:?}") };
        assert_eq!(outcome.value::<i64>().unwrap(), 42);
    }
    for pay in
        ["(n :string) -> :int", "(n :int, note :string) -> :int", "(n :int) -> :string", "(note :string?) -> :int"]
    {
        let error = with(pay, None).resume(&record).unwrap_err();
        assert!(error.to_string().contains("tool/pay has the signature"), "{pay}: {error}");
    }
}

/// Each settled call costs its own line, not another reading of the record.
#[test]
fn open_calls_are_settled_without_reading_all_again() {
    const CALLS: usize = 4_000;
    let engine = Engine::builder().grant(Tool::external("ask")).build().unwrap();
    let limits = Limits::default().with_timeout_ms(60_000).with_parallel_window(8).with_parallel_workers(8);
    let recording = Recording::new();
    let program = engine.compile("(pmap (fn [i] (tool/ask {:i i})) (range 8))").unwrap();
    let mut asked = lisp_runtime::LimitsRequest::default();
    for (name, value) in [("parallel_window", limits.parallel_window), ("timeout_ms", limits.timeout_ms)] {
        asked.set(name, value).unwrap();
    }
    drop(engine.start(&program, Input::new().limits(asked).record(&recording)));
    let text = recording.text();
    let mut long = text.lines().next().unwrap().to_owned() + "\n";
    for i in 0..CALLS {
        let pad = "x".repeat(500);
        long += &format!(
            "{{\"call\":\"1:{i}/1\",\"tool\":\"ask\",\"arguments\":{{\"i\":\"{pad}\"}},\"state\":\"asked\"}}\n"
        );
    }
    let mut record = Record::parse(long).unwrap();
    assert_eq!(record.open_calls().len(), CALLS);
    let ((), took) = crate::cpu::timed(|| {
        for i in 0..CALLS {
            record.settle(&format!("1:{i}/1"), Settled::Done("1".to_owned())).unwrap();
        }
    });
    // To read it all for each takes minutes.
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
    assert_eq!(record.settle("1:0/1", Settled::NotMade), Err(RecordError::NoCall("1:0/1".to_owned())));
    assert!(record.open_calls().is_empty());
    // What was settled stands in the text.
    assert_eq!(Record::parse(record.text()).unwrap(), record);
}

/// Tools of the run alone are not the engine's: they are given again.
#[test]
fn tools_of_the_run_alone_are_given_again() {
    let own = |answer: i64| {
        let mut tools = Tools::new();
        tools.add(Tool::new("own", move |_| Ok(answer)).signature("() -> :int").with_effect(Effect::Read)).unwrap();
        tools
    };
    // One of them takes the place of the engine's.
    let engine =
        Engine::builder().grant(Tool::new("both", |_| Ok("engine")).signature("() -> :string")).build().unwrap();
    let all = |answer| {
        let mut tools = own(answer);
        tools.add(Tool::new("both", move |_| Ok(answer)).signature("() -> :int").with_effect(Effect::Read)).unwrap();
        tools
    };
    let recording = Recording::new();
    let source = "[(tool/own {}) (tool/both {}) (tool/own {})]";
    let whole = engine.eval(source, Input::new().tools(all(1)).record(&recording));
    assert_eq!(whole.text(), Some("[1 1 1]"));
    let text = recording.text();
    let record = Record::parse(text.split_inclusive('\n').take(5).collect::<String>()).unwrap();
    let message = engine.open_record(&record, &[]).unwrap_err().to_string();
    assert!(message.contains("tool/own; ") && message.contains("Input::tools"), "{message}");
    // The other one is there, but not the same.
    let differs = engine.resume_with(&record, Input::new().tools(own(2))).unwrap_err();
    assert!(matches!(differs, RecordError::Tool { ref name, .. } if name == "both"), "{differs}");
    let builder = Recording::builder();
    let (program, input, _) = engine.open_record_given(&record, Input::new().tools(all(2)), &builder).unwrap();
    assert_eq!(engine.run(&program, input).text(), Some("[1 1 2]"));
    let Progress::ToolCall(waiting) = engine.resume_with(&record, Input::new().tools(all(2))).unwrap() else {
        panic!()
    };
    let Progress::Done(outcome) = waiting.reply(&7) else { panic!() };
    assert_eq!(outcome.text(), Some("[1 1 7]"));
    // What the record has cannot be given again.
    for (given, what) in [
        (Input::new().json("rows", "[]"), "data"),
        (Input::new().tenant("acme"), "the tenant"),
        (Input::new().now_ms(1), "the time"),
        (Input::new().record(&Recording::new()), "a recording"),
    ] {
        let message = engine.resume_with(&record, given).unwrap_err().to_string();
        assert!(message.contains(what) && message.ends_with("leave it out"), "{message}");
    }
}

#[test]
fn a_record_has_ceilings_with_errors_of_their_own() {
    let engine = Engine::builder().grant(Tool::new("big", |call| Ok("x".repeat(call.get("bytes")?)))).build().unwrap();
    let run = |source: &str| {
        let recording = Recording::builder().max_value_bytes(1_000).max_bytes(5_000).build();
        let outcome = engine.eval(source, Input::new().record(&recording));
        let problem = outcome.problem().map(|problem| (problem.reason().name(), problem.error.message.clone()));
        (problem, recording)
    };
    assert_eq!(run("(count (tool/big {:bytes 900}))").0, None);
    let (problem, recording) = run("(try (tool/big {:bytes 1100}) (catch Exception e 1))");
    let (reason, message) = problem.unwrap();
    assert_eq!(reason, "record_limit_exceeded");
    assert!(message.contains("tool/big takes 1102 bytes; a value in the record of the run may take 1000"), "{message}");
    // The call was made: that stands in the record.
    assert_eq!(recording.record().unwrap().open_calls()[0].state, CallState::Started);
    let (problem, _) = run("(doseq [i (range 9)] (tool/big {:bytes 900}))");
    assert!(problem.unwrap().1.contains("they may take 5000"));
    let (problem, recording) = run("(inc 1)");
    assert_eq!(problem, None);
    let again = engine.eval("(inc 2)", Input::new().record(&recording));
    assert!(again.problem().unwrap().error.message.contains("of another run"));
    let session = engine.session(Input::new().record(&Recording::new())).eval("1");
    assert!(session.problem().unwrap().error.message.contains("cannot be recorded"));
}

#[test]
fn a_recorder_that_fails_ends_the_run_before_the_call() {
    let world = World::default();
    let engine = engine(&world, 1);
    let lines = Arc::new(Mutex::new(Vec::<String>::new()));
    let kept = lines.clone();
    let keep = move |line: &str| {
        let mut lines = kept.lock().unwrap();
        if lines.len() == 3 {
            return Err("the disk is full".into());
        }
        lines.push(line.to_owned());
        Ok(())
    };
    let recording = Recording::builder().recorder(keep).build();
    let outcome = engine.eval("(do (tool/write {:n 1}) (tool/write {:n 2}))", Input::new().record(&recording));
    let problem = outcome.problem().unwrap();
    assert_eq!(problem.reason().name(), "host_fault");
    assert!(problem.error.message.ends_with("the disk is full"), "{}", problem.error.message);
    assert_eq!(world.lock().unwrap().len(), 1);
    assert_eq!(lines.lock().unwrap().concat(), recording.text());
}

#[test]
fn no_text_makes_a_record_panic() {
    let world = World::default();
    let engine = engine(&world, 8);
    let recording = Recording::new();
    let source = "[(pmap (fn [i] (tool/write {:n i})) (range 3)) (System/currentTimeMillis) (tool/cached {:n 1})]";
    assert!(engine.eval(source, Input::new().json("rows", "[1]").record(&recording)).is_success());
    let text = recording.text();
    let mut dice = Dice(7);
    let (mut bad, mut good) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=dice.roll(3) {
            if bytes.is_empty() {
                break;
            }
            let at = dice.roll(bytes.len() as u64) as usize;
            match dice.roll(4) {
                0 => bytes[at] = b"\"{}[],:0\n/"[dice.roll(10) as usize],
                1 => drop(bytes.remove(at)),
                2 => {
                    let end = at + dice.roll((bytes.len() - at) as u64) as usize;
                    let part = bytes[at..end].to_vec();
                    let to = dice.roll(bytes.len() as u64) as usize;
                    bytes.splice(to..to, part);
                }
                _ => bytes.truncate(at.max(1)),
            }
        }
        let Ok(text) = String::from_utf8(bytes) else { continue };
        match Record::parse(text) {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                bad += 1;
            }
            Ok(mut record) => {
                good += 1;
                for call in record.open_calls() {
                    record.settle(&call.name, Settled::Failed("gone".to_owned())).unwrap();
                }
                if let Ok((program, input, _)) = engine.open_record(&record, &[]) {
                    engine.run(&program, input);
                }
            }
        }
    }
    assert!(bad > 1_000 && good > 1_000, "{bad} {good}");
    let long = format!("{}\n{}", text.lines().next().unwrap(), "x".repeat(Record::MAX_BYTES));
    assert!(matches!(Record::parse(long), Err(RecordError::TooLarge { .. })));
    assert!(matches!(Record::parse(text.replacen("ptc-record/1", "ptc-record/2", 1)), Err(RecordError::Schema(_))));
}

/// Returns the first line of a record as earlier versions wrote it: what is known of the tools is in a map for each fact.
fn earlier(text: &str) -> Value {
    let mut header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let contracts = header.as_object_mut().unwrap().remove("contracts").unwrap();
    for field in ["tools", "schemas", "treatments", "effects"] {
        header[field] = json!({});
    }
    header["cached"] = json!([]);
    for (name, tool) in contracts.as_object().unwrap() {
        let treatment = &tool["treatment"];
        header["tools"][name] = tool["signature"].clone();
        if let Some(schemas) = tool.get("schemas") {
            header["schemas"][name] = schemas.clone();
        }
        if treatment["cached"] == true {
            header["cached"].as_array_mut().unwrap().push(json!(name));
        }
        let (tagged, max, redacted) = (&treatment["tagged"], &treatment["max_calls"], &treatment["redacted"]);
        header["treatments"][name] = json!({ "tagged": tagged, "most_calls": max, "redacted": redacted });
        let (effect, idempotent) = (&treatment["effect"], &treatment["idempotent"]);
        header["effects"][name] = json!({ "effect": effect, "idempotent": idempotent });
    }
    header
}

/// Tools with each fact that a record has.
fn declared_tools() -> Vec<Tool> {
    let schema = |kind: &str| format!(r#"{{"type": "object", "properties": {{"rate-of": {{"type": "{kind}"}}}}}}"#);
    let rate = Tool::from_json_schema("rate", "", &schema("string"), Some(r#"{"type": "number"}"#)).unwrap();
    vec![
        Tool::new("half", |call| Ok(call.get::<i64>("n")? / 2)).tagged(),
        Tool::new("pay", |call| call.get::<i64>("n"))
            .signature("(n :int, card :string) -> :int")
            .with_effect(Effect::Write)
            .idempotent()
            .max_calls(3)
            .redact(["card"]),
        rate.with_handler(|_| Ok(1.5)).cached().with_effect(Effect::Read),
    ]
}

type Change = fn(Tool) -> Tool;

fn engine_of(tools: impl IntoIterator<Item = Tool>) -> Engine {
    tools.into_iter().fold(Engine::builder(), |builder, tool| builder.grant(tool)).build().unwrap()
}

/// Nothing that a record has of its tools is lost, in the form of this version and in the earlier one.
#[test]
fn all_facts_of_tools_are_read() {
    let recording = Recording::new();
    let source = "[(tool/pay {:n 1 :card \"4711\"}) (tool/rate {:rate-of \"eur\"}) (:ok (tool/half {:n 4}))]";
    let whole = engine_of(declared_tools()).eval(source, Input::new().record(&recording));
    assert_eq!(whole.text(), Some("[1 1.5 2]"));
    let text = recording.text();
    let (_, lines) = text.split_once('\n').unwrap();
    for text in [text.clone(), format!("{}\n{lines}", earlier(&text))] {
        let record = Record::parse(&*text).unwrap();
        let signatures = record.tools().into_iter().map(|(name, text)| format!("{name} {}", text.unwrap_or_default()));
        assert_eq!(
            signatures.collect::<Vec<_>>(),
            ["half ", "pay (n :int, card :string) -> :int", "rate (rate-of? :string, ...) -> :float"]
        );
        assert_eq!(record.declared("half"), Some((Effect::Unknown, false)));
        assert_eq!(record.declared("pay"), Some((Effect::Write, true)));
        assert_eq!(record.declared("rate"), Some((Effect::Read, false)));
        for tools in [declared_tools(), record.external_tools().unwrap()] {
            let Progress::Done(outcome) = engine_of(tools).resume(&record).unwrap() else { panic!("{text}") };
            assert_eq!(outcome.text(), whole.text(), "{text}");
        }
        let changes: [(&str, Change, &str); 6] = [
            ("half", |tool| tool.max_calls(2), "has tagged true, max_calls 2, redacted [] now"),
            ("half", |tool| tool.cached(), "is cached now; in the record it is not cached"),
            ("half", |tool| tool.signature("(n :int) -> :int"), "in the record it has no signature"),
            ("pay", |tool| tool.redact(["n"]), "max_calls 3, redacted [\"card\"]"),
            ("pay", |tool| tool.signature("(n :int) -> :int"), "it has the signature (n :int, card :string) -> :int"),
            ("rate", |_| Tool::external("rate").cached(), "it has the signature (rate-of? :string, ...) -> :float"),
        ];
        for (name, change, says) in changes {
            let changed =
                declared_tools().into_iter().map(|tool| if tool.name() == name { change(tool) } else { tool });
            let error = engine_of(changed).open_record(&record, &[]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("tool/{name} ")) && error.contains(says), "{error}");
        }
        // What does not bind the run may change.
        let others = declared_tools().into_iter().map(|tool| tool.with_effect(Effect::Read).detached());
        assert!(engine_of(others).open_record(&record, &[]).is_ok());
    }
}

/// Records of earlier versions stay readable.
#[test]
fn records_of_earlier_versions_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let record = Record::parse(std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let Progress::Done(outcome) = engine_of(declared_tools()).resume(&record).unwrap() else {
            panic!("{path:?} stops")
        };
        let recorded: serde_json::Value = serde_json::from_str(record.answer().unwrap()).unwrap();
        assert_eq!(recorded["text"].as_str(), outcome.text(), "{path:?}");
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn blank_lines_of_a_recorder_are_skipped() {
    let recording = Recording::new();
    Engine::default().eval("(System/currentTimeMillis)", Input::new().record(&recording));
    let text = recording.text();
    let doubled: String = text.split_inclusive('\n').flat_map(|line| [line, "\n"]).collect();
    assert!(text.lines().count() > 1);
    assert_eq!(Record::parse(doubled).expect("a record").text(), text);
}
