//! Converts values: JSON text into an arena, values to JSON and to text.

use crate::terms::keys::Keys;
use crate::terms::warning::Warning;
use crate::tools::tool::Tool;
use lisp_core::heap::{Fault, Heap, Map, Res, TextBuf, Value, Work};
use lisp_core::json::{Nulls, ReadError, Reader, Style, write};
use lisp_core::syntax::LineIndex;
use lisp_core::text::pr_str;
use lisp_core::{Error, Reason, cost};
use std::fmt;

/// Bytes beyond the texts themselves, for the work lists of walks.
const SLACK: usize = 1 << 20;

/// Units of fuel for converting values of a run that is not watched: about a millisecond.
pub(crate) const UNWATCHED: u64 = 100_000;

/// Parses JSON text into an arena.
pub(crate) fn read_json<'h>(h: &'h Heap, text: &str, keys: Keys) -> Res<Value<'h>> {
    Reader::new(h).keys(keys).read(text).map_err(|error| unreadable(error, text))
}

/// Parses the text of a [`TypedValue`](crate::value::TypedValue) into an arena.
pub(crate) fn read_typed<'h>(h: &'h Heap, text: &str, keys: Keys) -> Res<Value<'h>> {
    Reader::new(h).keys(keys).typed().read(text).map_err(|error| unreadable(error, text))
}

/// Parses JSON text that is an array or object of values, each of which may be as deep as a written value.
pub(crate) fn read_several<'h>(h: &'h Heap, text: &str, keys: Keys) -> Res<Value<'h>> {
    Reader::new(h).of_several().keys(keys).read(text).map_err(|error| unreadable(error, text))
}

/// Returns the error for a text that is not JSON, with the position in it.
fn unreadable(error: ReadError, text: &str) -> Fault {
    match error {
        ReadError::Syntax { .. } if text.trim_ascii().is_empty() => {
            Error::new(Reason::ParseError, "expected a JSON value, got an empty string").into()
        }
        ReadError::Syntax { offset, message } => {
            let (line, column) = LineIndex::new(text).position(u32::try_from(offset).unwrap_or(u32::MAX));
            let message = format!("invalid JSON at line {line}, column {column}: {message}");
            Error::new(Reason::ParseError, message).detail("offset", offset).into()
        }
        fault => fault.into_fault(Reason::ParseError),
    }
}

/// Returns the text of a key that was read.
pub(crate) fn key_text<'h>(key: Value<'h>) -> &'h str {
    match key {
        Value::Str(text) | Value::Keyword(_, text) => text.text(),
        _ => "",
    }
}

/// Lets work of the host take up to `bytes` beyond the program's heap limit: what the program has left says nothing
/// about the permitted size of a result. Fails with the reason `timeout` if no time is left, or if the work takes
/// longer than a moment in a run that is not watched.
pub(crate) fn with_room<T>(h: &Heap, bytes: usize, work: impl FnOnce() -> Res<T>) -> Result<T, Error> {
    // A text under construction takes three times its length.
    let room = bytes.saturating_mul(3).saturating_add(SLACK);
    h.unmetered(room, UNWATCHED, work).map_err(|fault| match fault {
        Fault::Error(error) => *error,
        Fault::Collect(_) => no_room(bytes),
        Fault::Pause(_) | Fault::Clock | Fault::Place | Fault::NeedsFrame => {
            Error::new(Reason::Timeout, "timed out while converting the result")
        }
    })
}

/// Lets a session be written as text of up to `bytes`, beyond the program's heap limit. `work` may run twice.
pub(crate) fn with_room_for_session(
    h: &Heap,
    bytes: usize,
    work: &mut dyn FnMut() -> Res<String>,
) -> Result<String, Error> {
    let room = bytes.saturating_mul(3).saturating_add(SLACK);
    h.unmetered(room, UNWATCHED, work).map_err(|fault| match fault {
        Fault::Error(error) => *error,
        Fault::Collect(_) => {
            let message =
                format!("the saved session needs more room than the limit session_bytes allows, which is {bytes}");
            Error::new(Reason::SessionLimitExceeded, message)
                .hint("define less, as in (def name nil), or raise the limit session_bytes")
                .detail("limit_bytes", bytes)
        }
        Fault::Pause(_) | Fault::Clock | Fault::Place | Fault::NeedsFrame => {
            Error::new(Reason::Timeout, "timed out while saving the session")
        }
    })
}

/// Returns the error for something that is too large to leave the run.
fn too_large(what: &str, bytes: usize, limit: usize) -> Error {
    let less = if what == "the result" { "return a summary or the first rows" } else { "pass less" };
    let message = format!("{what} takes {bytes} bytes as JSON; the limit result_bytes is {limit}");
    Error::new(Reason::ResultLimitExceeded, message)
        .hint(format!("{less}, or raise the limit result_bytes"))
        .detail("limit_bytes", limit)
        .detail("bytes", bytes)
}

/// Returns the error for something whose conversion needs more memory than its text may have.
fn no_room(limit: usize) -> Error {
    let message = format!("the result needs more memory to convert than result_bytes allows, which is {limit}");
    Error::new(Reason::ResultLimitExceeded, message)
        .hint("return less, or flatter values, or raise the limit result_bytes; converting may use three times that")
        .detail("limit_bytes", limit)
}

/// Returns a value as JSON text for the host, and the numbers in it that became null.
pub(crate) fn project<'h>(h: &'h Heap, value: Value<'h>) -> Res<(String, Nulls)> {
    let mut out = TextBuf::new(h);
    let nulls = write(h, value, Style::Project, &mut out)?;
    Ok((out.into_string(), nulls))
}

/// Returns a value as the text of a [`TypedValue`](crate::value::TypedValue).
pub(crate) fn typed<'h>(h: &'h Heap, value: Value<'h>) -> Res<String> {
    let mut out = TextBuf::new(h);
    write(h, value, Style::Typed, &mut out)?;
    Ok(out.into_string())
}

/// Checks that JSON text has at most `limit` bytes. `what` names it in the error.
pub(crate) fn within(text: String, what: impl fmt::Display, limit: usize) -> Res<String> {
    if text.len() > limit { Err(too_large(&what.to_string(), text.len(), limit).into()) } else { Ok(text) }
}

/// Returns the arguments of a tool call as JSON text of at most `limit` bytes, even if the heap is full.
pub(crate) fn text_of_arguments<'h>(h: &'h Heap, value: Value<'h>, tool: &str, limit: usize) -> Res<String> {
    let room = limit.saturating_mul(3).saturating_add(SLACK);
    let made = h.beyond_the_budget(room, || {
        let mut out = TextBuf::new(h);
        write(h, value, Style::Arguments, &mut out).map_err(|fault| of_tool(fault, tool))?;
        within(out.into_string(), format_args!("tool/{tool}: the map of its arguments"), limit)
    });
    made.map_err(|fault| match fault {
        Fault::Collect(_) => no_room(limit).into(),
        fault => fault,
    })
}

/// Adds the tool to an error about its arguments.
fn of_tool(fault: Fault, tool: &str) -> Fault {
    match fault {
        Fault::Error(mut error) if matches!(error.reason, Reason::InvalidToolArgs | Reason::ResultLimitExceeded) => {
            error.message = format!("tool/{tool}: {}", error.message);
            Fault::Error(error)
        }
        fault => fault,
    }
}

/// Returns a value in Clojure syntax, cut at `limit` bytes, and the length of the whole text.
pub(crate) fn text<'h>(h: &'h Heap, value: Value<'h>, limit: usize) -> Res<(String, usize)> {
    let mut out = TextBuf::new(h);
    pr_str(h, value, &mut out).map_err(of_result)?;
    let mut text = out.into_string();
    let whole = text.len();
    if whole > limit {
        text.truncate(text.floor_char_boundary(limit));
    }
    Ok((text, whole))
}

/// Names the result in the only type error of printing: the result contains an endless sequence.
fn of_result(fault: Fault) -> Fault {
    match fault {
        Fault::Error(error) if error.reason == Reason::TypeError => {
            Error { message: "the result contains an endless sequence".into(), ..*error }.into()
        }
        fault => fault,
    }
}

/// Returns definitions as one JSON object, with warnings. Functions are left out: they have no JSON form.
pub(crate) fn definitions<'h>(h: &'h Heap, all: &[(&str, Value<'h>)], limit: usize) -> Res<(String, Vec<Warning>)> {
    let mut warnings = Vec::new();
    let mut sorted: Vec<_> = all.iter().filter(|(_, value)| !is_function(*value)).collect();
    sorted.sort_by_key(|(name, _)| *name);
    let mut out = TextBuf::new(h);
    out.push('{')?;
    for (i, (name, value)) in sorted.into_iter().enumerate() {
        if i > 0 {
            out.push(',')?;
        }
        out.push_str(&serde_json::Value::from(*name).to_string())?;
        out.push(':')?;
        let nulls = write(h, *value, Style::Project, &mut out).map_err(|fault| match fault {
            Fault::Error(mut error) => {
                error.message = format!("the definition {name}: {}", error.message);
                Fault::Error(error)
            }
            fault => fault,
        })?;
        if warnings.len() <= Nulls::TOLD {
            Warning::of_nulls(&nulls, Some(name), &mut warnings);
        }
    }
    out.push('}')?;
    Ok((within(out.into_string(), "the memory", limit)?, warnings))
}

fn is_function(value: Value<'_>) -> bool {
    matches!(value, Value::Closure(_) | Value::Builtin(_) | Value::Composed(_) | Value::Tool(_))
}

/// Returns the arguments of a call as one map, from `(tool/f)`, `(tool/f {:k v})` or `(tool/f :k v ...)`. `keys` are
/// the keys that the tool receives.
///
/// In argument names that are keywords, hyphens become underscores, unless the tool's signature has the name with
/// hyphens. Strings, and all keys below the top level, are unchanged.
pub(crate) fn arguments<'h>(h: &'h Heap, tool: &Tool, args: &[Value<'h>], keys: Keys) -> Res<&'h Map<'h>> {
    let name = tool.name();
    let value = match args {
        [] => Value::Map(h.empty_map()?),
        [Value::Map(map)] => stringify(h, tool, Value::Map(map), keys)?,
        pairs if pairs.len().is_multiple_of(2) && pairs.iter().step_by(2).all(|k| matches!(k, Value::Keyword(..))) => {
            let map = h.map(pairs.chunks_exact(2).map(|pair| (pair[0], pair[1])))?;
            match &map {
                Value::Map(map) if map.len() < pairs.len() / 2 => return Err(ambiguous(name, "a keyword")),
                _ => stringify(h, tool, map, keys)?,
            }
        }
        _ => return Err(positional(name, args).into()),
    };
    match value {
        Value::Map(map) => Ok(map),
        _ => h.empty_map(),
    }
}

fn positional(tool: &str, args: &[Value<'_>]) -> Error {
    let got = match args {
        [one] => format!("one {}", one.type_name()),
        many => format!("{} values", many.len()),
    };
    Error::new(Reason::InvalidToolArgs, format!("tool/{tool} takes named arguments, got {got}"))
        .hint(format!("write (tool/{tool} {{:name value}})"))
}

fn ambiguous(tool: &str, key: &str) -> Fault {
    Error::new(Reason::InvalidToolArgs, format!("tool/{tool}: the argument {key} is given twice"))
        .hint(
            "a tool gets keywords as strings, and hyphens in the keywords of its argument names as underscores; keep one \
             of the keys",
        )
        .into()
}

/// One step of a walk.
enum Task<'h> {
    Visit(Value<'h>),
    Vector(usize),
    Set(usize),
    /// The map whose values are done.
    Map(&'h Map<'h>),
}

/// Returns whether tools receive a value unchanged.
fn is_leaf(value: Value<'_>) -> bool {
    !matches!(value, Value::Keyword(..) | Value::Vector(_) | Value::Set(_) | Value::Map(_))
}

/// Converts arguments for tools: keywords become strings, except for keys if those are to be keywords.
fn stringify<'h>(h: &'h Heap, tool: &Tool, value: Value<'h>, keys: Keys) -> Res<Value<'h>> {
    if let Value::Map(map) = value
        && let Some(values) = map.few_values()
        && values.iter().all(|&value| is_leaf(value))
    {
        return renamed(h, map, values.iter().copied(), Names { tool, named: true, keys });
    }
    let (mut tasks, mut done) = (Work::new(h), Work::new(h));
    tasks.push(Task::Visit(value))?;
    while let Some(task) = tasks.pop() {
        h.charge(1)?;
        match task {
            Task::Visit(Value::Keyword(_, name)) => done.push(h.str(name.text())?)?,
            Task::Visit(Value::Vector(items)) => {
                tasks.push(Task::Vector(items.len()))?;
                for &item in items.items().iter().rev() {
                    tasks.push(Task::Visit(item))?;
                }
            }
            Task::Visit(Value::Set(set)) => {
                tasks.push(Task::Set(set.len()))?;
                for (member, _) in set.entries(h)?.iter() {
                    tasks.push(Task::Visit(member))?;
                }
            }
            Task::Visit(Value::Map(map)) => {
                tasks.push(Task::Map(map))?;
                for (_, value) in map.entries(h)?.iter().rev() {
                    tasks.push(Task::Visit(value))?;
                }
            }
            Task::Visit(leaf) => done.push(leaf)?,
            Task::Vector(len) => {
                let vector = h.vector(&last(h, &mut done, len)?)?;
                done.push(vector)?;
            }
            Task::Set(len) => {
                let members = last(h, &mut done, len)?;
                let set = h.set(members.into_iter())?;
                match set {
                    Value::Set(set) if set.len() < len => return Err(ambiguous(tool.name(), "a member of a set")),
                    _ => done.push(set)?,
                }
            }
            Task::Map(map) => {
                let values = last(h, &mut done, map.len())?;
                // Only top-level keys are argument names, and nothing is left to do when they are reached.
                let named = tasks.is_empty();
                let names = Names { tool, named, keys };
                done.push(renamed(h, map, values.into_iter(), names)?)?;
            }
        }
    }
    Ok(done.pop().unwrap_or(Value::Nil))
}

/// Takes the last results, in order.
fn last<'h>(h: &'h Heap, done: &mut Work<'h, Value<'h>>, len: usize) -> Res<Vec<Value<'h>>> {
    h.charge(len as u64)?;
    h.check_available(len.saturating_mul(std::mem::size_of::<Value<'h>>()))?;
    let mut items: Vec<_> = std::iter::from_fn(|| done.pop()).take(len).collect();
    items.reverse();
    Ok(items)
}

/// How the keys of a map are rewritten.
#[derive(Clone, Copy)]
struct Names<'a> {
    tool: &'a Tool,
    /// Whether they are argument names.
    named: bool,
    keys: Keys,
}

/// Returns a map with rewritten keys.
fn renamed<'h>(
    h: &'h Heap,
    map: &'h Map<'h>,
    values: impl Iterator<Item = Value<'h>>,
    names: Names<'_>,
) -> Res<Value<'h>> {
    let Names { tool, named, keys } = names;
    /// Units of fuel for a rewritten map, and for each of its keys.
    const MAP: u64 = 16;
    const KEY: u64 = 8;
    h.charge(MAP + KEY * map.len() as u64)?;
    let name_of = |key: Value<'h>| match key {
        Value::Str(_) => Ok(key),
        Value::Keyword(_, s) if named && s.text().contains('-') && !tool.contract.has_parameter(s.text()) => {
            h.str(&s.text().replace('-', "_"))
        }
        Value::Keyword(_, s) => h.str(s.text()),
        // These have no JSON form: the code that writes the arguments rejects them, with their path.
        Value::Float(f) if !f.is_finite() => Ok(key),
        function if is_function(function) => Ok(key),
        other => {
            let mut out = TextBuf::new(h);
            pr_str(h, other, &mut out)?;
            out.finish()
        }
    };
    let key_of = |key: Value<'h>| match (name_of(key)?, keys) {
        (Value::Str(name), Keys::Keywords) => {
            h.charge(cost::copied(name.text().len()))?;
            h.keyword(name.text())
        }
        (name, _) => Ok(name),
    };
    let old = map.entries(h)?;
    let entries = old.iter().zip(values).map(|((key, _), value)| Ok((key_of(key)?, value)));
    h.distinct_map(map.len(), entries, |name| ambiguous(tool.name(), key_text(name)))
}
