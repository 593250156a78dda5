//! Recorded runs against everything that goes wrong: records that were edited, tools that fail or change, disks that are full.

use crate::cpu::timed;
use lisp_runtime::tools::Effect;
use lisp_runtime::{
    Engine, Input, Limits, LimitsRequest, Outcome, Progress, Record, Recording, Tool, ToolCall, ToolError,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn number(call: &ToolCall) -> Result<i64, ToolError> {
    call.get("n")
}

fn reason(outcome: &Outcome) -> &'static str {
    outcome.problem().map_or("none", |problem| problem.reason().name())
}

/// How many workers of a parallel call may be alive at once.
fn width(window: u64) -> LimitsRequest {
    let mut limits = LimitsRequest::default();
    limits.parallel_window = Some(window);
    limits
}

/// The record as it stood behind its first lines.
fn first_lines(text: &str, lines: usize) -> Record {
    Record::parse(text.split_inclusive('\n').take(lines).collect::<String>()).unwrap()
}

/// What an attempt of a flaky tool gives: the first call of a run fails, those behind it do not.
fn flaky(cached: bool) -> Engine {
    let calls = AtomicU32::new(0);
    let tool = Tool::new("flaky", move |call| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => Err(ToolError::new("not yet")),
        _ => number(call),
    })
    .with_effect(Effect::Read);
    Engine::builder().grant(if cached { tool.cached() } else { tool }).build().unwrap()
}

#[test]
fn a_failure_of_a_cached_tool_is_of_its_call_only() {
    let source = "[(try (tool/flaky {:n 1}) (catch Exception e (:message e))) (tool/flaky {:n 1}) (tool/flaky {:n 1})]";
    let first = flaky(true);
    let recording = Recording::new();
    let whole = first.eval(source, Input::new().record(&recording));
    assert_eq!(whole.text(), Some("[\"tool/flaky: not yet\" 1 1]"));
    let text = recording.text();
    for lines in 3..=text.lines().count() {
        let (program, input, _) = first.open_record(&first_lines(&text, lines), &[]).unwrap();
        let again = first.run(&program, input);
        assert_eq!(
            (again.text(), again.usage.fuel),
            (whole.text(), whole.usage.fuel),
            "{lines}: {:?}",
            again.problem()
        );
        assert_eq!(again.usage.tool_calls, whole.usage.tool_calls, "{lines}");
    }
}

/// Two workers call a cached tool alike; the first call fails. In the second life they come in the other order.
#[test]
fn who_had_the_failure_of_a_cached_tool_has_it_again() {
    let calls = Arc::new(Mutex::new(Vec::<u32>::new()));
    let seen = calls.clone();
    let tool = Tool::new("flaky", move |call: &ToolCall| {
        let mut seen = seen.lock().unwrap();
        seen.push(call.worker()[0]);
        if seen.len() == 1 { Err(ToolError::new("not yet")) } else { Ok(call.worker()[0]) }
    });
    let engine = |window| {
        let limits = Limits::default().with_parallel_window(window).with_timeout_ms(60_000);
        Engine::builder().limits(limits).grant(tool.clone().cached().with_effect(Effect::Read)).build().unwrap()
    };
    let slow = "(reduce + (range 200000))";
    let source = format!(
        "(pmap (fn [i] (when (= i 0) {slow}) (try (tool/flaky {{:n 1}}) (catch Exception e :failed))) (range 2))"
    );
    let recording = Recording::new();
    let whole = engine(8).eval(&source, Input::new().record(&recording));
    for window in [1, 8] {
        let record = Record::parse(recording.text()).unwrap();
        let (program, input, _) = engine(window).open_record(&record, &[]).unwrap();
        let limits = width(window);
        let again = engine(window).run(&program, input.limits_over(&limits));
        assert_eq!(again.text(), whole.text(), "{window}: {}", recording.text());
        assert_eq!(again.usage.tool_calls, whole.usage.tool_calls, "{window}: {}", recording.text());
    }
}

/// A worker that was not begun, because one before it had failed, does nothing in a later life either.
#[test]
fn what_a_failed_parallel_call_left_out_is_not_made_up_for() {
    let writes = Arc::new(AtomicU32::new(0));
    let count = writes.clone();
    let builder = Engine::builder()
        .limits(Limits::default().with_parallel_window(1).with_timeout_ms(60_000))
        .ceiling(Limits::unlimited())
        .grant(Tool::new("fails", |_| Err::<(), _>(ToolError::new("no"))))
        .grant(Tool::new("read", number).with_effect(Effect::Read))
        .grant(
            Tool::new("write", move |call| {
                count.fetch_add(1, Ordering::Relaxed);
                number(call)
            })
            .with_effect(Effect::Write),
        );
    let engine = builder.build().unwrap();
    let slow = "(reduce + (range 300000))";
    let failing = format!("(pmap (fn [i] (if (= i 0) (do {slow} (tool/fails {{}})) (tool/write {{:n i}}))) (range 8))");
    for source in [
        format!("(do (try {failing} (catch Exception e 1)) (tool/read {{:n 2}}))"),
        format!("[(try {failing} (catch Exception e 1))]"),
        format!("(pmap (fn [_] (try {failing} (catch Exception e 1)) (tool/read {{:n 2}})) [1])"),
        failing,
    ] {
        writes.store(0, Ordering::Relaxed);
        let recording = Recording::new();
        let whole = engine.eval(&source, Input::new().record(&recording));
        recording.answer(&lisp_runtime::Answer::new(None, &whole).to_json()).unwrap();
        assert_eq!(writes.load(Ordering::Relaxed), 0);
        let record = Record::parse(recording.text()).unwrap();
        let (program, input, recording) = engine.open_record(&record, &[]).unwrap();
        let limits = width(8);
        let again = engine.run(&program, input.limits_over(&limits));
        assert_eq!(writes.load(Ordering::Relaxed), 0, "{source}\n{}", recording.text());
        assert_eq!((again.text(), again.usage.fuel), (whole.text(), whole.usage.fuel), "{source}");
        assert_eq!(
            again.problem().map(|problem| &problem.error.message),
            whole.problem().map(|problem| &problem.error.message)
        );
    }
}

#[test]
fn ends_of_lines_as_elsewhere_do_not_break_a_record() {
    let engine = Engine::builder().grant(Tool::new("read", number).with_effect(Effect::Read)).build().unwrap();
    let recording = Recording::new();
    let whole = engine.eval("[(tool/read {:n 1}) (tool/read {:n 2})]", Input::new().record(&recording));
    recording.answer(&lisp_runtime::Answer::new(None, &whole).to_json()).unwrap();
    let text = recording.text().replace('\n', "\r\n");
    let header = text.split_inclusive('\n').next().unwrap();
    let answer = text.split_inclusive('\n').next_back().unwrap().replace("\"ok\"", "\"timeout\"");
    for text in [text.clone(), format!("{header}{answer}")] {
        let record = Record::parse(text).unwrap();
        assert!(record.answer().is_some());
        let (program, input, recording) = engine.open_record(&record, &[]).unwrap();
        assert_eq!(engine.run(&program, input).text(), whole.text());
        assert!(recording.record().unwrap().answer().is_none());
    }
}

/// A disk that takes the n-th line in part, and those behind it again.
#[test]
fn after_a_line_that_was_not_kept_none_is() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let calls = made.clone();
    let engine = Engine::builder()
        .limits(Limits::default().with_parallel_window(4))
        .grant(Tool::new("write", move |call| {
            std::thread::sleep(Duration::from_millis(1));
            calls.lock().unwrap().push(call.key().unwrap_or_default().to_owned());
            number(call)
        }))
        .build()
        .unwrap();
    for failing in 0..14 {
        made.lock().unwrap().clear();
        let file = Arc::new(Mutex::new((0, String::new())));
        let kept = file.clone();
        let keep = move |line: &str| {
            let mut file = kept.lock().unwrap();
            file.0 += 1;
            if file.0 == failing + 1 {
                file.1.push_str(&line[..line.len() / 2]);
                return Err("no space is left".into());
            }
            file.1.push_str(line);
            Ok(())
        };
        let recording = Recording::builder().recorder(keep).build();
        let outcome = engine.eval("(pmap #(tool/write {:n %}) (range 6))", Input::new().record(&recording));
        let at_all = recording.answer(&lisp_runtime::Answer::new(None, &outcome).to_json());
        assert_eq!(at_all.is_ok(), failing > 13, "{failing}");
        assert_eq!(reason(&outcome), if failing < 13 { "host_fault" } else { "none" }, "{failing}");
        let text = file.lock().unwrap().1.clone();
        if failing == 0 {
            assert!(made.lock().unwrap().is_empty());
            continue;
        }
        let record = Record::parse(text.clone()).unwrap_or_else(|error| panic!("{failing}: {error}\n{text}"));
        for key in made.lock().unwrap().iter() {
            let place = key.rsplit_once(&format!("{}/", record.run_id())).unwrap().1;
            assert!(record.text().contains(&format!("{{\"call\":\"{place}\",\"tool\"")), "{failing}: {key}\n{text}");
        }
    }
}

/// Many looks at the clock cost no more each than few.
#[test]
fn a_look_at_the_clock_costs_the_same_however_many_there_were() {
    let limits = Limits::default().with_timeout_ms(0).with_fuel(0).with_loop_iterations(0);
    let engine = Engine::builder().limits(limits).ceiling(Limits::unlimited()).build().unwrap();
    let took = |looks: u32| {
        let recording = Recording::new();
        let source = format!("(dotimes [_ {looks}] (System/currentTimeMillis))");
        let input = Input::new().limits(LimitsRequest::all(&Limits::unlimited())).record(&recording);
        let (outcome, took) = timed(|| engine.eval(&source, input));
        assert!(outcome.is_success(), "{:?}", outcome.problem());
        took
    };
    let least = |looks| (0..3).map(|_| took(looks)).min().unwrap();
    let (few, many) = (least(8_000), least(128_000));
    assert!(many < few * 100, "8,000 looks {few:?}, 128,000 looks {many:?}");
}

/// A clock that panics has told nothing.
#[test]
fn a_clock_that_panics_leaves_no_reading() {
    let engine = Engine::builder().clock(|| panic!("no clock")).build().unwrap();
    let recording = Recording::new();
    let outcome = engine.eval("(System/currentTimeMillis)", Input::new().record(&recording));
    assert_eq!(reason(&outcome), "host_fault");
    assert!(!recording.text().contains("\"clock\""), "{}", recording.text());
}

/// Arguments of every kind stand in the record so that it can be read.
#[test]
fn arguments_of_every_kind_are_read_back() {
    let engine = Engine::builder().grant(Tool::echo("echo")).build().unwrap();
    for value in [
        "##NaN",
        "##Inf",
        "1e308",
        "(* 1e308 10)",
        "\"\\u0000\\u2028\\n\\r\"",
        "#{1 2}",
        "{\"a\\nb\" {:c [nil true]}}",
        "(reduce (fn [a _] [a]) [] (range 3000))",
        "99999999999999999999999999",
        "\\a",
        "(quote x)",
    ] {
        let source = format!("(tool/echo {{:v {value}}})");
        let recording = Recording::new();
        let whole = engine.eval(&source, Input::new().record(&recording));
        let record = recording.record().unwrap_or_else(|error| panic!("{value}: {error} {}", recording.text()));
        let Progress::Done(again) = engine.resume(&record).unwrap() else { panic!("{value} stops") };
        assert_eq!((again.text(), again.usage.fuel), (whole.text(), whole.usage.fuel), "{value}");
        assert_eq!(reason(&again), reason(&whole), "{value}");
    }
}

const INPUT: &str =
    r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;

/// An engine with a tool of these schemas, whose results do not fit them when it is called with 0.
fn with_schemas(input: &str, output: Option<&str>) -> Engine {
    let tool = Tool::from_json_schema("get it", "Gets it.", input, output).unwrap();
    let tool = tool.with_handler(|call| {
        let n = number(call)?;
        Ok(if n == 0 { serde_json::json!("none") } else { serde_json::json!(n) })
    });
    let checked = Tool::new("checked", |call| Ok(number(call)?.to_string())).signature("(n :int) -> :int");
    Engine::builder().grant(tool.with_effect(Effect::Read)).grant(checked.with_effect(Effect::Read)).build().unwrap()
}

#[test]
fn a_changed_schema_is_noticed() {
    let integer = Some(r#"{"type":"integer","title":"it"}"#);
    let engine = with_schemas(INPUT, integer);
    let recording = Recording::new();
    assert!(engine.eval("(tool/get%20it {:n 1})", Input::new().record(&recording)).is_success());
    let record = recording.record().unwrap();
    assert!(with_schemas(INPUT, integer).open_record(&record, &[]).is_ok());
    assert!(with_schemas(&INPUT.replace(":", " : "), integer).open_record(&record, &[]).is_ok());
    let stricter = INPUT.replace("\"integer\"", "\"integer\",\"maximum\":5");
    let other = Some(r#"{"type":"integer","title":"it","minimum":3}"#);
    for (input, output, wanted) in [
        (
            &*stricter,
            integer,
            "has 5 at /properties/n/maximum of its input schema now; in the record it has nothing there",
        ),
        (INPUT, None, "has no output schema now; in the record it has one"),
        (INPUT, other, "of its output schema now; in the record it has nothing there"),
    ] {
        let error = with_schemas(input, output).open_record(&record, &[]).unwrap_err().to_string();
        assert!(error.starts_with("tool/get%20it has ") && error.ends_with(wanted), "{error}");
    }
    // A tool of the same line that is not checked against schemas, and one that keeps its results.
    let line = with_schemas(INPUT, integer)
        .tools()
        .all()
        .find(|tool| tool.name() != "checked")
        .unwrap()
        .signature_text()
        .to_owned();
    let checked = || Tool::external("checked").signature("(n :int) -> :int");
    let other = Engine::builder().grant(checked()).grant(Tool::external("get%20it").signature(line)).build().unwrap();
    let error = other.open_record(&record, &[]).unwrap_err().to_string();
    assert!(error.contains("has no JSON Schema now; in the record it has the schemas {"), "{error}");
    let tool = Tool::from_json_schema("get it", "", INPUT, integer).unwrap().cached();
    let error = Engine::builder().grant(checked()).grant(tool).build().unwrap().open_record(&record, &[]).unwrap_err();
    assert_eq!(error.to_string(), "tool/get%20it is cached now; in the record it is not cached");
    // What the program does not name does not matter, but for its line.
    let recording = Recording::new();
    engine.eval("(tool/checked {:n 1})", Input::new().record(&recording));
    assert!(!recording.text().contains("additionalProperties"));
    assert!(
        with_schemas(&stricter.replace("\"maximum\":5", "\"title\":\"n\""), integer)
            .open_record(&recording.record().unwrap(), &[])
            .is_ok()
    );
}

/// Arguments and results that do not fit, caught or not: a replay without the tools comes to the same.
#[test]
fn what_does_not_fit_does_not_fit_again() {
    let engine = with_schemas(INPUT, Some(r#"{"type":"integer"}"#));
    for source in [
        "(tool/get%20it {:n 0})",
        "(try (tool/get%20it {:n 0}) (catch Exception e (:message e)))",
        "[(try (tool/get%20it {:n \"1\"}) (catch Exception e (:message e))) (tool/get%20it {:n 1})]",
        "(tool/get%20it {:m 0})",
        "(tool/checked {:n 1})",
        "(pmap (fn [i] (try (tool/get%20it {:n i}) (catch Exception e (:message e)))) (range 3))",
        "(try (tool/checked {:n 1}) (catch Exception e (:message e)))",
        "(try (tool/checked {:n :x}) (catch Exception e (:message e)))",
    ] {
        let recording = Recording::new();
        let whole = engine.eval(source, Input::new().record(&recording));
        let record = recording.record().unwrap();
        let tools = record.external_tools().unwrap();
        let without = tools.into_iter().fold(Engine::builder(), |builder, tool| builder.grant(tool)).build().unwrap();
        let Progress::Done(again) = without.resume(&record).unwrap() else { panic!("{source} stops") };
        assert_eq!((again.text(), again.usage.fuel), (whole.text(), whole.usage.fuel), "{source}");
        let says = |outcome: &Outcome| {
            outcome
                .problem()
                .map(|problem| (problem.error.message.clone(), problem.error.hint.clone(), problem.position))
        };
        assert_eq!(says(&again), says(&whole), "{source}");
    }
}

/// Lines that are left out, doubled, exchanged and edited in every field: what the record says was called is not called.
#[test]
fn no_edit_has_a_call_made_that_the_record_has() {
    let made = Arc::new(Mutex::new(Vec::<String>::new()));
    let calls = made.clone();
    let write = Tool::new("write", move |call| {
        calls.lock().unwrap().push(call.place().to_string());
        number(call)
    });
    let engine = Engine::builder()
        .limits(Limits::default().with_parallel_window(3))
        .grant(write.with_effect(Effect::Write))
        .grant(Tool::new("cached", number).cached().with_effect(Effect::Read))
        .grant(Tool::new("fails", |_| Err::<(), _>(ToolError::new("no"))))
        .build()
        .unwrap();
    let recording = Recording::new();
    let source = "[(tool/write {:n 1}) (try (tool/fails {}) (catch Exception e 1)) (System/currentTimeMillis)
        (pmap (fn [i] [(tool/cached {:n (mod i 2)}) (tool/write {:n i}) (System/currentTimeMillis)]) (range 3)) (tool/write {:n 2})]";
    assert!(engine.eval(source, Input::new().record(&recording)).is_success());
    let text = recording.text();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut all: Vec<Vec<String>> = Vec::new();
    let edits = [
        ("\"n\":1", "\"n\":5"),
        ("\"n\":", "\"m\":"),
        ("\"write\"", "\"fails\""),
        ("\"write\"", "\"gone\""),
        ("\"begun\"", "\"asked\""),
        ("\"begun\"", "\"done\""),
        ("\"done\"", "\"begun\""),
        ("\"done\",\"result\":", "\"failed\",\"result\":"),
        ("\"result\":", "\"result\":[[[["),
        ("\"result\":", "\"result\":1e999,\"x\":"),
        (",\"result\":1", ""),
        (",\"result\":1", ",\"result\":99999999999999999999999999"),
        (",\"result\":", ",\"result\":{\"a\":[]},\"result\":"),
        ("\"call\":\"1\"", "\"call\":\"0\""),
        ("\"call\":\"1\"", "\"call\":\"4294967295\""),
        ("\"call\":\"1\"", "\"call\":\"4:9/1\""),
        ("\"call\":\"4:1/", "\"call\":\"4:999999/"),
        ("\"call\":\"4:1/", "\"call\":\"4:2/"),
        ("\"call\":\"4:1/", "\"call\":\"4:1/1:0/"),
        ("\"ms\":1", "\"ms\":9223372036854775807,\"x\":1"),
        ("\"ms\":1", "\"ms\":-1"),
        ("\"clock\":\"3\"", "\"clock\":\"5\""),
        ("\"window\":3", "\"window\":18446744073709551615"),
        ("\"tool_calls\":10000", "\"tool_calls\":2"),
        ("\"fuel\":1000000000", "\"fuel\":0"),
        ("\"cost_schedule\":", "\"cost_schedule\":4"),
        ("(range 3)", "(range 2)"),
        ("(range 3)", "(range 5)"),
        ("(mod i 2)", "0"),
        ("(tool/write {:n i})", "(tool/write {:n (+ i 1)})"),
        ("(tool/write {:n 1})", "(System/currentTimeMillis)"),
    ];
    for at in 0..lines.len() {
        let owned = || lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let mut left_out = owned();
        left_out.remove(at);
        let mut doubled = owned();
        doubled.insert(at, lines[at].to_owned());
        all.extend([left_out, doubled]);
        for other in at + 1..lines.len() {
            let mut exchanged = owned();
            exchanged.swap(at, other);
            all.push(exchanged);
        }
        for (from, to) in edits.iter().filter(|(from, _)| lines[at].contains(from)) {
            let mut edited = owned();
            edited[at] = lines[at].replacen(from, to, 1);
            all.push(edited);
        }
        let deep = format!("\"result\":{}{}", "[".repeat(50_000), "]".repeat(50_000));
        let mut nested = owned();
        nested[at] = lines[at].replace("\"result\":1", &deep);
        all.push(nested);
    }
    let (mut read, mut refused) = (0, 0);
    for edited in all {
        let Ok(record) = Record::parse(edited.concat()) else {
            refused += 1;
            continue;
        };
        read += 1;
        let Ok((program, input, recording)) = engine.open_record(&record, &[]) else { continue };
        made.lock().unwrap().clear();
        let outcome = engine.run(&program, input.limits_over(&width(3)));
        assert_ne!(reason(&outcome), "host_fault", "{:?}\n{}", outcome.problem(), record.text());
        for place in made.lock().unwrap().iter() {
            let states: Vec<&String> =
                edited.iter().filter(|line| line.contains(&format!("{{\"call\":\"{place}\""))).collect();
            let is_open = states.last().is_none_or(|line| line.contains("\"asked\""));
            assert!(is_open, "{place} is made: {:?}\n{}", outcome.problem(), record.text());
        }
        // What was written behind it is a record.
        Record::parse(recording.text()).unwrap_or_else(|error| panic!("{error}\n{}", recording.text()));
    }
    assert!(read > 100 && refused > 100, "{read} {refused}");
}
