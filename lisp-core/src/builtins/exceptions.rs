//! Exceptions: what programs throw and catch. An exception is a map with the keys `:reason` (a keyword) and `:message`
//! (a string), and optionally `:data`, `:cause`, `:tool`, `:code` and `:class`.

use super::exception_classes::{self, is_a, of_reason};
use super::preview::preview;
use super::{Builtin, args, java};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Detail, Error, ErrorClass, Reason};
use crate::heap::{Map, Res, Value};

/// Creates the rows of the classes that programs can instantiate.
macro_rules! rows {
    (
        named { $($named:tt)* }
        $(made($min:literal, $max:literal, $args:literal, $given:literal, $message:literal) {
            $(($name:literal, $package:literal, $above:literal),)*
        })*
    ) => {
        &[$($(
            Builtin::java(concat!($name, "."), $min, $max, concat!("(", $name, ". ", $args, ")"), |h, args| {
                made(h, $name, args)
            })
            .aliases(&[concat!($package, ".", $name, ".")])
            .doc(
                "Returns an exception for throw.",
                &[
                    (
                        concat!("(try (throw (", $name, ". ", $given, ")) (catch ", $name, " e (ex-message e)))"),
                        concat!("\"", $message, "\""),
                    ),
                    (concat!("(throw (", $package, ".", $name, ". ", $given, "))"), "!uncaught_exception"),
                ],
            ),
        )*)*]
    };
}

/// The constructors of Java's exception classes.
pub(super) const CLASSES: &[Builtin] = exception_classes::exception_classes!(rows);

const THROWN: &str = "exception";
const FAILED: &str = "fail";

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("ex-info", 2, 3, "(ex-info message data) (ex-info message data cause)", ex_info)
        .aliases(&["ExceptionInfo.", "clojure.lang.ExceptionInfo."])
        .doc(
            "Returns an exception for throw, with a message and a map of data.",
            &[
                ("(try (throw (ex-info \"no stock\" {:id 7})) (catch Exception e (ex-data e)))", "{:id 7}"),
                ("(:message (ex-info \"no stock\" {}))", "\"no stock\""),
                ("(throw (ex-info \"no stock\" {}))", "!uncaught_exception"),
                ("(ex-info 1 {})", "!type_error"),
            ],
        ),
    Builtin::direct("ex-message", 1, 1, "(ex-message e)", ex_message).doc(
        "Returns the message of an exception; nil for any other value.",
        &[("(try (/ 1 0) (catch Exception e (string? (ex-message e))))", "true"), ("(ex-message 1)", "nil")],
    ),
    Builtin::direct("ex-data", 1, 1, "(ex-data e)", ex_data).doc(
        "Returns the data of ex-info, throw or fail; nil for other exceptions and for any other value.",
        &[("(try (fail {:n 1}) (catch Exception e (ex-data e)))", "{:n 1}"), ("(ex-data 1)", "nil")],
    ),
    Builtin::direct("ex-cause", 1, 1, "(ex-cause e)", ex_cause).doc(
        "Returns the exception that ex-info was given as the cause; nil without one.",
        &[("(ex-message (ex-cause (ex-info \"b\" {} (ex-info \"a\" {}))))", "\"a\""), ("(ex-cause 1)", "nil")],
    ),
    Builtin::java(".getMessage", 1, 1, "(.getMessage e)", get_message).doc(
        "Returns the message of an exception.",
        &[
            ("(try (throw (ex-info \"no\" {})) (catch Exception e (.getMessage e)))", "\"no\""),
            ("(.getMessage 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".getCause", 1, 1, "(.getCause e)", get_cause).doc(
        "Returns the exception that caused an exception; nil without one.",
        &[
            ("(.getMessage (.getCause (ex-info \"b\" {} (Exception. \"a\"))))", "\"a\""),
            ("(.getCause 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".getData", 1, 1, "(.getData e)", get_data).doc(
        "Returns the data of ex-info, throw or fail.",
        &[("(.getData (ex-info \"no\" {:id 7}))", "{:id 7}"), ("(.getData 1)", "!java_type_error")],
    ),
];

/// Returns true if an exception belongs to the class.
pub(crate) fn is_caught<'h>(h: &'h Ctx, class: u16, exception: Value<'h>) -> Res<bool> {
    h.charge(cost::CLASS_FOUND)?;
    Ok(is_a(class_of(h, exception)?, class))
}

/// Returns true if a value is an exception of the class.
pub(super) fn is_one_of<'h>(h: &'h Ctx, class: u16, value: Value<'h>) -> Res<bool> {
    Ok(Exception::of(h, value)?.is_some() && is_caught(h, class, value)?)
}

/// Returns the name of the class of an exception.
fn class_of<'h>(h: &'h Ctx, exception: Value<'h>) -> Res<&'h str> {
    let Value::Map(map) = exception else { return Ok(exception_classes::THROWN) };
    if let Some(Value::Str(name)) = map.get_text(h, "class", true)? {
        return Ok(name.text());
    }
    let reason = match map.get_text(h, "reason", true)? {
        Some(Value::Keyword(_, reason)) if reason.text() == THROWN => Some(Reason::UncaughtException),
        Some(Value::Keyword(_, reason)) => Reason::from_name(reason.text()),
        _ => None,
    };
    Ok(reason.map_or("RuntimeException", of_reason))
}

/// The parts that every exception has. Its reason is that of an error, of `throw` or of `fail`.
struct Exception<'h> {
    map: &'h Map<'h>,
    reason: &'h str,
    message: Value<'h>,
}

impl<'h> Exception<'h> {
    fn of(h: &'h Ctx, value: Value<'h>) -> Res<Option<Self>> {
        let Value::Map(map) = value else { return Ok(None) };
        let Some(Value::Keyword(_, reason)) = map.get_text(h, "reason", true)? else { return Ok(None) };
        let Some(message @ (Value::Str(_) | Value::Nil)) = map.get_text(h, "message", true)? else { return Ok(None) };
        // A program's own map can have both keys. When it is thrown, it becomes the data of an exception. So does a map
        // with the reason of an error that cannot be caught.
        let is_caught = |reason: Reason| reason.is_catchable();
        let is_own =
            !matches!(reason.text(), THROWN | FAILED) && !Reason::from_name(reason.text()).is_some_and(is_caught);
        if is_own {
            return Ok(None);
        }
        Ok(Some(Exception { map, reason: reason.text(), message }))
    }
}

/// Returns the exception for an error of the program, or of a tool with this name.
pub(crate) fn of_error<'h>(h: &'h Ctx, error: &Error, tool: Option<&'h str>) -> Res<Value<'h>> {
    let mut entries =
        vec![(h.keyword("reason")?, h.keyword(error.reason.name())?), (h.keyword("message")?, h.str(&error.message)?)];
    let class = error.class.map_or_else(|| of_reason(error.reason), ErrorClass::name);
    entries.push((h.keyword("class")?, h.str(class)?));
    if let Some(tool) = tool {
        entries.push((h.keyword("tool")?, h.str(tool)?));
    }
    // As with ex-info, the data of a tool's error is in `:data`.
    if let Some(code) = error.named_detail("code") {
        let code = match code {
            Detail::Int(number) => Value::Int(*number),
            Detail::Text(name) => h.str(name)?,
        };
        let entry = (h.keyword("code")?, code);
        entries.extend([entry, (h.keyword("data")?, h.map(std::iter::once(entry))?)]);
    }
    h.map(entries.into_iter())
}

/// Returns the exception for `(fail value)`.
pub(crate) fn of_failed<'h>(h: &'h Ctx, value: Value<'h>) -> Res<Value<'h>> {
    carrying(h, FAILED, value)
}

const NOTHING_THROWN: &str = "throw needs a value, got nil";

/// Returns the exception for a thrown value, which may already be one.
pub(crate) fn of_thrown<'h>(h: &'h Ctx, value: Value<'h>) -> Res<Value<'h>> {
    if value.is_nil() {
        // As in Java, where throwing null does this.
        return made(h, "NullPointerException", &[h.str(NOTHING_THROWN)?]);
    }
    match Exception::of(h, value)? {
        Some(_) => Ok(value),
        None => carrying(h, THROWN, value),
    }
}

fn carrying<'h>(h: &'h Ctx, reason: &str, value: Value<'h>) -> Res<Value<'h>> {
    let message = match value {
        Value::Str(_) => value,
        other => h.str(&preview(h, other)?)?,
    };
    let entries =
        [(h.keyword("reason")?, h.keyword(reason)?), (h.keyword("message")?, message), (h.keyword("data")?, value)];
    h.map(entries.into_iter())
}

/// How a program ends with an uncaught exception.
pub(crate) enum Uncaught<'h> {
    /// Like `(fail value)`.
    Fail(Value<'h>),
    /// With an error.
    Error(Error),
}

/// Returns how a program ends with an uncaught exception. An exception that was caught and thrown again has the same
/// result as one that was never caught.
pub(crate) fn uncaught<'h>(h: &'h Ctx, exception: Value<'h>) -> Res<Uncaught<'h>> {
    let Some(Exception { map, reason, message }) = Exception::of(h, exception)? else {
        return Ok(Uncaught::Error(Error::new(Reason::UncaughtException, "an exception without a message")));
    };
    let data = map.get_text(h, "data", true)?;
    if reason == FAILED {
        return Ok(Uncaught::Fail(data.unwrap_or(Value::Nil)));
    }
    let message = message_of(h, exception, message)?;
    if let Some(reason) = Reason::from_name(reason).filter(|reason| reason.is_catchable()) {
        return Ok(Uncaught::Error(Error::new(reason, message)));
    }
    let error = Error::new(Reason::UncaughtException, message);
    // Java's `Error` is not an `Exception`.
    let is_error = match exception_classes::class_number("Error") {
        Some(error) => is_a(class_of(h, exception)?, error),
        None => false,
    };
    let catch = match is_error {
        false if error.message == NOTHING_THROWN => "write (throw (ex-info \"message\" {}))",
        true => "catch it with (try ... (catch Throwable e ...))",
        false => "catch it with (try ... (catch Exception e ...))",
    };
    Ok(Uncaught::Error(match data {
        None | Some(Value::Nil) => error.hint(catch),
        Some(data) => {
            let shown = preview(h, data)?;
            error.hint(format!("its data is {shown}; {catch}")).detail("data", shown.as_str())
        }
    }))
}

/// Returns as much of a message as an error shows.
pub(crate) fn beginning(message: Value<'_>) -> String {
    let Value::Str(message) = message else { return String::new() };
    let text = message.text();
    // One character more than the error keeps, so that the error marks the cut.
    let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).find(|&end| end > Error::MESSAGE_BYTES);
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Returns the message that an error shows for an exception: the name of its class if it has no message.
fn message_of<'h>(h: &'h Ctx, exception: Value<'h>, message: Value<'h>) -> Res<String> {
    match message {
        Value::Nil => Ok(class_of(h, exception)?.to_owned()),
        message => Ok(beginning(message)),
    }
}

/// Returns the message of an exception as an error shows it, and the reason of that error.
pub(crate) fn shown<'h>(h: &'h Ctx, exception: Value<'h>) -> Res<Option<(Reason, String)>> {
    let Some(parts) = Exception::of(h, exception)? else { return Ok(None) };
    let reason = Reason::from_name(parts.reason).filter(|reason| reason.is_catchable());
    Ok(Some((reason.unwrap_or(Reason::UncaughtException), message_of(h, exception, parts.message)?)))
}

fn message_arg<'h>(h: &'h Ctx, name: &str, value: Value<'h>) -> Res<Value<'h>> {
    h.charge(cost::EXCEPTION)?;
    match value {
        Value::Str(_) | Value::Nil => Ok(value),
        other => Err(args::type_error(name, "a string as its message", other)),
    }
}

fn ex_info<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let message = message_arg(h, "ex-info", args[0])?;
    if !matches!(args[1], Value::Map(_) | Value::Nil) {
        return Err(args::type_error("ex-info", "a map as its data", args[1]));
    }
    let mut entries = vec![
        (h.keyword("reason")?, h.keyword(THROWN)?),
        (h.keyword("message")?, message),
        (h.keyword("data")?, args[1]),
    ];
    if let Some(&cause) = args.get(2) {
        entries.push((h.keyword("cause")?, cause));
    }
    h.map(entries.into_iter())
}

/// Creates an exception of a Java class. The first argument is its message, or another exception that caused it; a
/// second argument is the cause.
fn made<'h>(h: &'h Ctx, class: &'static str, args: &[Value<'h>]) -> Res<Value<'h>> {
    let first = args.first().copied().unwrap_or(Value::Nil);
    let cause = match args {
        [_] if Exception::of(h, first)?.is_some() => Some(first),
        [_, cause] if class != "ArityException" => Some(*cause),
        _ => None,
    };
    let message = match (cause, args) {
        (Some(cause), [_]) => {
            h.charge(cost::EXCEPTION)?;
            let class = class_of(h, cause)?;
            match part(h, cause, "message")? {
                Value::Str(message) => {
                    let message = message.text();
                    h.charge(cost::copied(class.len() + message.len()))?;
                    h.check_available(class.len() + message.len())?;
                    h.str(&format!("{class}: {message}"))?
                }
                _ => h.str(class)?,
            }
        }
        (_, [Value::Int(count), Value::Str(function)]) if class == "ArityException" => {
            h.charge(cost::EXCEPTION + cost::copied(function.text().len()))?;
            h.check_available(function.text().len())?;
            h.str(&format!("Wrong number of args ({count}) passed to: {}", function.text()))?
        }
        _ => message_arg(h, class, first)?,
    };
    let mut entries = vec![
        (h.keyword("reason")?, h.keyword(THROWN)?),
        (h.keyword("message")?, message),
        (h.keyword("class")?, h.str(class)?),
    ];
    if let Some(cause) = cause {
        entries.push((h.keyword("cause")?, cause));
    }
    h.map(entries.into_iter())
}

/// Returns a part of an exception; nil for any other value.
fn part<'h>(h: &'h Ctx, value: Value<'h>, name: &str) -> Res<Value<'h>> {
    match Exception::of(h, value)? {
        Some(parts) => Ok(parts.map.get_text(h, name, true)?.unwrap_or(Value::Nil)),
        None => Ok(Value::Nil),
    }
}

fn ex_message<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    part(h, args[0], "message")
}

fn ex_data<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    part(h, args[0], "data")
}

fn ex_cause<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    part(h, args[0], "cause")
}

/// Returns the part of an exception that a method reads.
fn read<'h>(h: &'h Ctx, method: &str, name: &str, value: Value<'h>) -> Res<Value<'h>> {
    match value {
        Value::Nil => Err(java::null(method)),
        value if Exception::of(h, value)?.is_some() => part(h, value, name),
        other => Err(java::wrong_type(method, "an exception", other)),
    }
}

fn get_message<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    read(h, ".getMessage", "message", args[0])
}

fn get_cause<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    read(h, ".getCause", "cause", args[0])
}

fn get_data<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    read(h, ".getData", "data", args[0])
}
