//! Every example in the documents is run. In a block fenced as `clojure` an example is one or more lines that end in
//! `; => value` or `; !reason`, and a program of its own; in a block fenced as `clojure turns` the examples are turns
//! on one machine. Elsewhere, code between single backticks that ends so is an example too. A document's first block
//! fenced as `json` says what the host gives: `data`, `memory`, `history`, and what each of the `tools` answers.

use lisp_core::heap::{Heap, Res, Value};
use lisp_core::json::{ReadError, read};
use lisp_core::vm::{Grant, Machine, Settings};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A program in a document.
#[derive(Debug)]
struct Example {
    line: usize,
    program: String,
    want: String,
    /// Does it follow the one before on the same machine?
    follows: bool,
}

/// What a document holds.
struct Document {
    examples: Vec<Example>,
    host: String,
}

fn parse(name: &str, text: &str) -> Document {
    let (mut examples, mut host) = (Vec::new(), None);
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            examples.extend(spans(line).filter_map(|span| example(at + 1, span, false)));
            continue;
        };
        let block: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        if info.starts_with("clojure") {
            let found = in_block(at + 2, &block, info == "clojure turns");
            assert!(!found.is_empty(), "{name}:{}: a block without an example", at + 1);
            examples.extend(found);
        } else if info == "json" && host.is_none() {
            host = Some(block.join("\n"));
        }
    }
    Document { examples, host: host.unwrap_or_else(|| "{}".to_owned()) }
}

/// The texts between single backticks of a line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// A text as an example, if it ends in an answer.
fn example(line: usize, text: &str, follows: bool) -> Option<Example> {
    let (program, want) = match (text.rsplit_once("; => "), text.rsplit_once("; !")) {
        (Some((program, value)), _) => (program, value.to_owned()),
        (None, Some((program, reason))) => (program, format!("!{reason}")),
        (None, None) => return None,
    };
    Some(Example { line, program: program.trim_end().to_owned(), want, follows })
}

fn in_block(first: usize, block: &[&str], turns: bool) -> Vec<Example> {
    let (mut found, mut start) = (Vec::new(), 0);
    for (i, line) in block.iter().enumerate() {
        if line.contains("; => ") || line.contains("; !") {
            found.extend(example(first + start, &block[start..=i].join("\n"), turns && !found.is_empty()));
            start = i + 1;
        }
    }
    assert!(block[start..].iter().all(|l| l.trim().is_empty()), "line {}: an example without an answer", first + start);
    found
}

/// A part of what the host gives.
fn part<'h>(h: &'h Heap, host: &str, name: &str) -> Res<Value<'h>> {
    let whole = read(h, host).map_err(|error| match error {
        ReadError::Fault(fault) => fault,
        other => panic!("the document's JSON cannot be read: {other:?}"),
    })?;
    match whole {
        Value::Map(map) => Ok(map.get_text(h, name, false)?.unwrap_or(Value::Nil)),
        _ => Ok(Value::Nil),
    }
}

fn machine(host: &str) -> Machine {
    let grant = Grant::build(1_000_000, |h, builder| {
        for name in ["data", "memory"] {
            let Value::Map(map) = part(h, host, name)? else { continue };
            for (key, value) in map.entries(h)?.iter() {
                let key = key.as_str().expect("a JSON key is a text");
                if name == "data" { builder.data(key, value) } else { builder.define(key, value) }
            }
        }
        if let Value::Vector(values) = part(h, host, "history")? {
            values.items().iter().for_each(|value| builder.history(*value));
        }
        Ok(())
    });
    let settings = Settings { now_ms: Some(1_700_000_000_000), ..Settings::default() };
    Machine::new(vec![Arc::new(grant.expect("the document's JSON fits"))], settings)
}

fn run(machine: &mut Machine, host: &str, program: &str) -> crate::common::Answer {
    let answer = crate::common::answer_with_tools(machine, program, 10_000, |machine| {
        let replied = machine.reply_from_call(|h, name, _| match part(h, host, "tools")? {
            Value::Map(tools) => Ok(tools.get_text(h, name, false)?.unwrap_or(Value::Nil)),
            _ => Ok(Value::Nil),
        });
        // What does not fit ends the run: the next step says so.
        drop(replied);
    });
    if answer.is_ok() {
        machine.push_history();
    }
    answer
}

fn check(name: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    let text = fs::read_to_string(&path).expect("the document is readable");
    let Document { examples, host } = parse(name, &text);
    let (mut current, mut wrong) = (machine(&host), Vec::new());
    for example in &examples {
        if !example.follows {
            current = machine(&host);
        }
        let answer = run(&mut current, &host, &example.program);
        wrong.extend(
            crate::common::difference(&answer, &example.want)
                .map(|difference| format!("{name}:{}: {}\n{difference}", example.line, example.program)),
        );
    }
    assert!(wrong.is_empty(), "{} of {} examples are wrong:\n{}", wrong.len(), examples.len(), wrong.join("\n"));
    examples.len()
}

#[test]
fn examples_of_the_language_answer_what_they_say() {
    assert!(check("docs/language.md") >= 200);
}

#[test]
fn examples_of_the_functions_answer_what_they_say() {
    assert!(check("docs/functions.md") >= 600);
}

#[test]
fn examples_of_the_divergences_answer_what_they_say() {
    assert!(check("docs/divergences.md") >= 20);
}

#[test]
fn examples_of_the_readme_answer_what_they_say() {
    check("README.md");
}

#[test]
fn examples_are_found() {
    let text = "See `(inc 1) ; => 2` and `x`.\n```clojure\n(def a 1)\na ; => 1\n(/ 1\n   0) ; !arithmetic_error\n```\n";
    let found: Vec<_> = parse("", text).examples.into_iter().map(|e| (e.line, e.program, e.want)).collect();
    let wanted = [(1, "(inc 1)", "2"), (3, "(def a 1)\na", "1"), (5, "(/ 1\n   0)", "!arithmetic_error")]
        .map(|(l, p, w)| (l, p.to_owned(), w.to_owned()));
    assert_eq!(found, wanted);
}
