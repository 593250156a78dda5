//! Whole programs, made of the language's own parts: each ends with a verdict of its own within its limits, twice the
//! same.
#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::{Corpus, fuzz_target};
use lisp_runtime::{Engine, Input, Limits, Reason, Verdict, builtin_names};
use std::sync::LazyLock;

static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut names: Vec<&str> = builtin_names().collect();
    names.extend([
        "def",
        "defn",
        "fn",
        "let",
        "if",
        "when",
        "cond",
        "case",
        "and",
        "or",
        "do",
        "loop",
        "recur",
        "for",
        "doseq",
        "->",
        "->>",
        "as->",
        "some->",
        "if-let",
        "when-let",
        "return",
        "fail",
        "tool/echo",
        "data/rows",
        "pmap",
        "pcalls",
    ]);
    names
});

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let limits = Limits::default()
        .with_fuel(200_000)
        .with_timeout_ms(10_000)
        .with_heap_bytes(1 << 20)
        .with_result_bytes(1 << 20)
        .with_tool_calls(10);
    Engine::builder().limits(limits).grant(lisp_runtime::Tool::echo("echo")).build().expect("an engine")
});

/// A program as text.
#[derive(Debug)]
struct Source(String);

impl<'a> Arbitrary<'a> for Source {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut text = String::new();
        for _ in 0..u.int_in_range(1..=4)? {
            form(u, &mut text, 0)?;
            text.push('\n');
        }
        Ok(Source(text))
    }
}

fn form(u: &mut Unstructured<'_>, text: &mut String, depth: usize) -> Result<()> {
    let kind = if depth > 6 { u.int_in_range(0..=7)? } else { u.int_in_range(0..=14)? };
    match kind {
        0 => text.push_str(&i64::arbitrary(u)?.to_string()),
        1 => text.push_str(&u.int_in_range(-3..=12)?.to_string()),
        2 => text.push_str(
            ["nil", "true", "false", "1.5", "-0.0", "##NaN", "##Inf", "99999999999999999999"][u.choose_index(8)?],
        ),
        3 => text.push_str(
            [":a", ":b", ":user-id", "\"a\"", "\"\"", "\"é👍\"", "\"a,b\"", "#\"(a+)+\""][u.choose_index(8)?],
        ),
        4..=5 => text.push_str(["x", "y", "f", "xs", "m", "%", "_"][u.choose_index(7)?]),
        6 => text.push_str(NAMES[u.choose_index(NAMES.len())?]),
        7 => text.push_str("data/rows"),
        8 => nested(u, text, "[", "]", depth)?,
        9 => nested(u, text, "{", "}", depth)?,
        10 => nested(u, text, "#{", "}", depth)?,
        11 => nested(u, text, "#(", ")", depth)?,
        12 => nested(u, text, "(fn [x] ", ")", depth)?,
        _ => {
            text.push('(');
            text.push_str(NAMES[u.choose_index(NAMES.len())?]);
            text.push(' ');
            nested(u, text, "", ")", depth)?;
        }
    }
    text.push(' ');
    Ok(())
}

fn nested(u: &mut Unstructured<'_>, text: &mut String, open: &str, close: &str, depth: usize) -> Result<()> {
    text.push_str(open);
    for _ in 0..u.int_in_range(0..=4)? {
        form(u, text, depth + 1)?;
    }
    text.push_str(close);
    Ok(())
}

fuzz_target!(|source: Source| -> Corpus {
    let input = || Input::new().json("rows", r#"[{"a": 1, "b": "x"}, {"a": null}, {"a": 2.5, "c": [1, 2]}]"#).now_ms(0);
    let first = ENGINE.eval(&source.0, input());
    assert_ne!(first.verdict(), Verdict::HostFault, "{:?}", first.problem());
    if first.problem().is_some_and(|problem| problem.reason() == Reason::Timeout) {
        panic!("200,000 units of fuel take more than ten seconds");
    }
    assert!(first.usage.heap_live_bytes <= (1 << 20) + 1024, "{:?}", first.usage);
    let again = ENGINE.eval(&source.0, input());
    assert_eq!((first.text(), first.problem(), first.usage.fuel), (again.text(), again.problem(), again.usage.fuel));
    if first.problem().is_some_and(|problem| problem.phase == lisp_runtime::Phase::Compile) {
        return Corpus::Reject;
    }
    Corpus::Keep
});
