//! Common parts of the built-ins with Java names: the classes, the constants, the errors for Java names that the
//! language does not have, and access to arguments.

use super::exception_classes::of_wrong;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Fault, Res, Value};
use crate::text::describe;

/// The classes: the name as usually written, the full name, and whether the short name may be used.
pub(super) const CLASSES: &[(&str, &str, bool)] = &[
    ("Boolean", "java.lang.Boolean", true),
    ("Character", "java.lang.Character", true),
    ("Double", "java.lang.Double", true),
    ("Float", "java.lang.Float", true),
    ("Integer", "java.lang.Integer", true),
    ("Long", "java.lang.Long", true),
    ("Math", "java.lang.Math", true),
    ("String", "java.lang.String", false),
    ("System", "java.lang.System", true),
    ("LocalDate", LOCAL_DATE, true),
    ("LocalDateTime", LOCAL_DATE_TIME, true),
    ("Instant", INSTANT, true),
    ("Duration", DURATION, true),
    ("Period", "java.time.Period", true),
    ("ChronoUnit", "java.time.temporal.ChronoUnit", true),
    ("DateTimeFormatter", "java.time.format.DateTimeFormatter", true),
    ("ZoneId", "java.time.ZoneId", true),
    ("ZoneOffset", "java.time.ZoneOffset", true),
    ("Date", DATE, false),
];

/// The full names of the classes whose objects are values.
pub(super) const LOCAL_DATE: &str = "java.time.LocalDate";
pub(super) const LOCAL_DATE_TIME: &str = "java.time.LocalDateTime";
pub(super) const INSTANT: &str = "java.time.Instant";
pub(super) const DURATION: &str = "java.time.Duration";
pub(super) const DATE: &str = "java.util.Date";

/// A Java constant.
pub struct Constant {
    /// The short name.
    pub name: &'static str,
    /// The documentation.
    pub doc: &'static str,
    /// Programs and their results.
    pub examples: &'static [(&'static str, &'static str)],
    value: JavaConstant,
}

const fn constant_row(
    name: &'static str,
    value: JavaConstant,
    doc: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> Constant {
    Constant { name, doc, examples, value }
}

/// All Java constants.
pub const CONSTANTS: &[Constant] = &[
    constant_row(
        "Double/POSITIVE_INFINITY",
        JavaConstant::Float(f64::INFINITY),
        "More than every number, ##Inf.",
        &[("(< 1e300 Double/POSITIVE_INFINITY)", "true")],
    ),
    constant_row(
        "Double/NEGATIVE_INFINITY",
        JavaConstant::Float(f64::NEG_INFINITY),
        "Less than every number, ##-Inf.",
        &[("(> -1e300 Double/NEGATIVE_INFINITY)", "true")],
    ),
    constant_row(
        "Double/NaN",
        JavaConstant::Float(f64::NAN),
        "##NaN, not a number; equal to nothing.",
        &[("(NaN? Double/NaN)", "true")],
    ),
    constant_row(
        "Double/MAX_VALUE",
        JavaConstant::Float(f64::MAX),
        "The largest float.",
        &[("(< 1e308 Double/MAX_VALUE)", "true")],
    ),
    constant_row(
        "Double/MIN_VALUE",
        JavaConstant::Float(5e-324),
        "The least float above zero.",
        &[("(pos? Double/MIN_VALUE)", "true")],
    ),
    constant_row(
        "Math/PI",
        JavaConstant::Float(std::f64::consts::PI),
        "The length of a circle of diameter one.",
        &[("(int Math/PI)", "3")],
    ),
    constant_row(
        "Math/E",
        JavaConstant::Float(std::f64::consts::E),
        "The base of natural logarithms.",
        &[("(int Math/E)", "2")],
    ),
    constant_row(
        "Integer/MAX_VALUE",
        JavaConstant::Int(i32::MAX as i64),
        "The largest integer of 32 bits.",
        &[("Integer/MAX_VALUE", "2147483647")],
    ),
    constant_row(
        "Integer/MIN_VALUE",
        JavaConstant::Int(i32::MIN as i64),
        "The least integer of 32 bits.",
        &[("Integer/MIN_VALUE", "-2147483648")],
    ),
    constant_row(
        "Long/MAX_VALUE",
        JavaConstant::Int(i64::MAX),
        "The largest integer of 64 bits.",
        &[("Long/MAX_VALUE", "9223372036854775807")],
    ),
    constant_row(
        "Long/MIN_VALUE",
        JavaConstant::Int(i64::MIN),
        "The least integer of 64 bits.",
        &[("Long/MIN_VALUE", "-9223372036854775808")],
    ),
    constant_row(
        "java.time.temporal.ChronoUnit/DAYS",
        JavaConstant::Text("DAYS"),
        "A unit of time for .between; so are MILLIS, SECONDS, MINUTES, HOURS, WEEKS, MONTHS and YEARS.",
        &[("(.between java.time.temporal.ChronoUnit/DAYS (LocalDate/of 2024 2 1) (LocalDate/of 2024 3 1))", "29")],
    ),
    constant_row(
        "ZoneOffset/UTC",
        JavaConstant::Text("Z"),
        "The UTC zone, the only one, for .toInstant, .atZone and similar methods.",
        &[("(str (.toInstant (LocalDateTime/parse \"2024-01-02T03:04\") ZoneOffset/UTC))", "\"2024-01-02T03:04:00Z\"")],
    ),
    constant_row(
        "DateTimeFormatter/ISO_LOCAL_DATE",
        JavaConstant::Text("ISO_LOCAL_DATE"),
        "A formatter; so are ISO_DATE, BASIC_ISO_DATE, ISO_LOCAL_DATE_TIME, ISO_DATE_TIME and ISO_INSTANT.",
        &[("(.format (LocalDate/of 2024 2 1) DateTimeFormatter/BASIC_ISO_DATE)", "\"20240201\"")],
    ),
];

/// The constants of `java.time.format.DateTimeFormatter`.
const FORMATTERS: &[&str] =
    &["ISO_LOCAL_DATE", "ISO_DATE", "BASIC_ISO_DATE", "ISO_LOCAL_DATE_TIME", "ISO_DATE_TIME", "ISO_INSTANT"];

/// The value of a constant.
#[derive(Clone, Copy)]
pub(crate) enum JavaConstant {
    Float(f64),
    Int(i64),
    /// A unit of time, which is the string of its name.
    Text(&'static str),
}

/// The units of `java.time.temporal.ChronoUnit`, and the nanoseconds of those with a fixed length.
pub(super) const CHRONO_UNITS: &[(&str, Option<i128>)] = &[
    ("MILLIS", Some(1_000_000)),
    ("SECONDS", Some(SECOND)),
    ("MINUTES", Some(60 * SECOND)),
    ("HOURS", Some(3_600 * SECOND)),
    ("DAYS", Some(24 * 3_600 * SECOND)),
    ("WEEKS", Some(7 * 24 * 3_600 * SECOND)),
    ("MONTHS", None),
    ("YEARS", None),
];
const SECOND: i128 = 1_000_000_000;

/// Returns the nanoseconds of the units that divide a day.
pub(super) fn nanos_of_unit(unit: &str) -> Option<i128> {
    let (_, nanos) = CHRONO_UNITS.iter().find(|own| own.0 == unit)?;
    nanos.filter(|&nanos| nanos <= 24 * 3_600 * SECOND)
}

/// Returns a member or constructor without the package of its class: `Math/abs` for `java.lang.Math/abs`.
pub(super) fn without_package(name: &str) -> &str {
    let class = name.rsplit_once(['/', '.']).map_or(name, |(class, _)| class);
    match CLASSES.iter().find(|own| own.1 == class) {
        Some((short, full, _)) => &name[full.len() - short.len()..],
        None => name,
    }
}

/// Returns the method that is named with its class: `.getYear` for `LocalDate/getYear`.
pub(super) fn method_named_with_class(name: &str) -> Option<&'static str> {
    let (class, member) = name.split_once('/')?;
    let (_, methods) = METHODS.iter().find(|(own, _)| *own == class)?;
    methods.split_ascii_whitespace().find(|method| &method[1..] == member)
}

/// Returns the value of a Java constant: `Double/NaN`, also with its full name.
pub(crate) fn constant(name: &str) -> Option<JavaConstant> {
    let name = without_package(name);
    if let Some(unit) = name.strip_prefix("ChronoUnit/") {
        return CHRONO_UNITS.iter().find(|own| own.0 == unit).map(|own| JavaConstant::Text(own.0));
    }
    if let Some(own) = name.strip_prefix("DateTimeFormatter/") {
        return FORMATTERS.iter().find(|name| **name == own).map(|name| JavaConstant::Text(name));
    }
    CONSTANTS.iter().find(|constant| constant.name == name).map(|constant| constant.value)
}

/// Returns the error for a name that looks like Java and is neither a built-in nor a constant; `None` for other names.
pub(crate) fn unsupported(name: &str) -> Option<Error> {
    if let Some(method) = name.strip_prefix('.') {
        if !method.starts_with(|c: char| c.is_alphabetic()) {
            return None;
        }
        let error = Error::new(Reason::UnsupportedMethod, format!("unknown method {name}"));
        return Some(error.hint(match METHODS_INSTEAD.iter().find(|(absent, _)| *absent == name) {
            Some((_, instead)) => (*instead).to_owned(),
            None => methods_like(name),
        }));
    }
    let (class, member) = name.split_once('/')?;
    if member.is_empty() {
        return None;
    }
    match CLASSES.iter().find(|c| c.1 == class || (c.2 && c.0 == class)) {
        Some(&(short, full, _)) => {
            let error = Error::new(Reason::UnsupportedJavaMember, format!("{class} has no member {member} here"));
            let members = names(|row| row.split_once('/').is_some_and(|row| row.0 == short || row.0 == full));
            Some(match short {
                "Period" => error
                    .hint("count with (.between java.time.temporal.ChronoUnit/DAYS from to), move with .plusMonths"),
                "ChronoUnit" => error.hint(format!(
                    "available: {}",
                    CHRONO_UNITS.iter().map(|unit| unit.0).collect::<Vec<_>>().join(", ")
                )),
                "DateTimeFormatter" => error.hint(format!("available: {}, and ofPattern", FORMATTERS.join(", "))),
                "Math" if member == "random" => error.hint("there is no randomness; a tool has to provide it"),
                _ if members.is_empty() => error,
                _ => error.hint(format!("available: {members}")),
            })
        }
        None => None,
    }
}

/// Java methods that models write, and their replacements.
const METHODS_INSTEAD: &[(&str, &str)] = &[
    (".hashCode", "there are no hash codes; values are keys of maps as they are"),
    (".getClass", "write (type x)"),
    (".printStackTrace", "there are no stack traces; write (println (ex-message e))"),
    (".getStackTrace", "there are no stack traces; write (ex-message e)"),
    (".getLocalizedMessage", "write (.getMessage e)"),
    (".intValue", "write (int n)"),
    (".longValue", "write (long n)"),
    (".doubleValue", "write (double n)"),
    (".size", "write (count coll)"),
    (".get", "write (get m k)"),
    (".getOrDefault", "write (get m k default)"),
    (".add", "write (conj coll x)"),
    (".put", "write (assoc m k v)"),
    (".remove", "write (dissoc m k)"),
    (".keySet", "write (keys m)"),
    (".entrySet", "write (seq m)"),
    (".values", "write (vals m)"),
    (".containsKey", "write (contains? m k)"),
    (".append", "write (str a b)"),
    (".chars", "strings are sequences already: (map f s)"),
];

/// Returns a hint for an unknown method: one whose name has the same words, or the methods of the class that has it in
/// Java.
fn methods_like(name: &str) -> String {
    let plain = |name: &str| name.trim_start_matches('.').to_ascii_lowercase();
    let wanted = plain(name);
    let methods = || super::FIRST_ORDER.iter().map(|row| row.name).filter(|row| row.starts_with('.'));
    if let Some((class, _)) = IN_JAVA.iter().find(|(_, names)| has_word(names, name.trim_start_matches('.'))) {
        return methods_of(class);
    }
    let alike = methods().find(|row| plain(row).contains(&wanted) || wanted.contains(&plain(row)));
    match alike.filter(|_| wanted.len() > 2 && wanted.len() < 64) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("{}; others are found by (apropos \"java\")", methods_of("String")),
    }
}

/// Returns whether a list of words has this one.
fn has_word(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|own| own == word)
}

/// Returns the methods of a class, for a hint.
fn methods_of(class: &str) -> String {
    let names: Vec<&str> = match METHODS.iter().find(|(own, _)| *own == class) {
        Some((_, names)) => names.split_ascii_whitespace().collect(),
        None => {
            let of_strings = super::AREAS.iter().filter(|(title, _)| title.starts_with("Java: strings"));
            let rows = of_strings.flat_map(|(_, rows)| rows.iter().map(|row| row.name));
            rows.filter(|row| row.starts_with('.')).collect()
        }
    };
    format!("methods of {class}: {}", names.join(", "))
}

/// Returns the error for an unknown method, called on the result of a form that starts with the name `maker`:
/// `Instant/parse`.
pub(crate) fn no_method(name: &str, maker: &str) -> Option<Error> {
    let (class, _) = maker.split_once('/')?;
    let class = class.rsplit('.').next().unwrap_or(class);
    if !METHODS.iter().any(|(own, _)| *own == class) || METHODS_INSTEAD.iter().any(|(absent, _)| *absent == name) {
        return None;
    }
    let error = Error::new(Reason::UnsupportedMethod, format!("unknown method {name} of {class}"));
    Some(error.hint(methods_of(class)))
}

/// The methods of the classes whose objects are times.
const METHODS: &[(&str, &str)] = &[
    (
        "LocalDate",
        ".getYear .getMonthValue .getMonth .getDayOfMonth .getDayOfWeek .getDayOfYear .lengthOfMonth \
         .lengthOfYear .isLeapYear .plusDays .plusWeeks .plusMonths .plusYears .minusDays .minusWeeks \
         .minusMonths .minusYears .withDayOfMonth .withMonth .withYear .isBefore .isAfter .isEqual .plus \
         .minus .atStartOfDay .atTime .toEpochDay .until .format .compareTo .equals .toString",
    ),
    (
        "LocalDateTime",
        ".getYear .getMonthValue .getMonth .getDayOfMonth .getDayOfWeek .getDayOfYear .getHour .getMinute \
         .getSecond .getNano .plusDays .plusWeeks .plusMonths .plusYears .plusHours .plusMinutes .plusSeconds \
         .plusNanos .plus .minusDays .minusWeeks .minusMonths .minusYears .minusHours .minusMinutes \
         .minusSeconds .minus .withDayOfMonth .withMonth .withYear .withHour .withMinute .withSecond \
         .withNano .truncatedTo .isBefore .isAfter .isEqual .toLocalDate .toInstant .atZone .until .format \
         .compareTo .equals .toString",
    ),
    (
        "Instant",
        ".toEpochMilli .getEpochSecond .getNano .plusSeconds .plusMillis .plusNanos .plus .minusSeconds \
         .minusMillis .minus .truncatedTo .isBefore .isAfter .until .atZone .toLocalDate .toLocalDateTime \
         .getYear .getMonthValue .getDayOfMonth .getDayOfWeek .getHour .getMinute .getSecond .format \
         .compareTo .equals .toString",
    ),
    (
        "Duration",
        ".toDays .toHours .toMinutes .toMillis .getSeconds .getNano .plus .plusDays .plusHours .plusMinutes \
         .plusSeconds .plusMillis .minus .minusDays .minusHours .minusMinutes .minusSeconds .minusMillis \
         .truncatedTo .negated .isNegative .isZero .compareTo .equals .toString",
    ),
];

/// Methods of Java classes that the language does not have, by the class that is most often meant.
const IN_JAVA: &[(&str, &str)] = &[
    ("LocalDate", "datesUntil withDayOfYear getEra getChronology toEpochSecond atDate"),
    ("LocalDateTime", "toLocalTime toZonedDateTime withZoneSameInstant withZoneSameLocal withEarlierOffsetAtOverlap"),
    ("Instant", "getLong isSupported adjustInto query range with toEpochSecond ofEpochMilli"),
    (
        "Duration",
        "abs multipliedBy dividedBy toNanos toDaysPart toHoursPart toMinutesPart toSecondsPart toMillisPart \
         toNanosPart getUnits withSeconds withNanos addTo subtractFrom",
    ),
];

/// Returns true if a class has any function, constructor or constant.
pub(super) fn has_members((short, full, _): &(&str, &str, bool)) -> bool {
    let is_of = |name: &str| {
        let rest = name.strip_prefix(full).or_else(|| name.strip_prefix(short));
        rest.is_some_and(|rest| rest.starts_with(['/', '.']))
    };
    let rows = super::FIRST_ORDER.iter().filter(|row| row.namespace == "java");
    CONSTANTS.iter().any(|constant| is_of(constant.name))
        || rows.flat_map(|row| std::iter::once(&row.name).chain(row.aliases)).any(|name| is_of(name))
}

/// Returns true for the full name of a supported class.
pub(crate) fn is_class(full: &str) -> bool {
    CLASSES.iter().any(|class| class.1 == full)
}

/// Returns the names of the rows and constants that pass, separated by commas.
fn names(wanted: impl Fn(&str) -> bool) -> String {
    let rows = super::FIRST_ORDER.iter().filter(|row| row.namespace == "java").map(|row| row.name);
    let found: Vec<&str> =
        rows.chain(CONSTANTS.iter().map(|constant| constant.name)).filter(|&name| wanted(name)).collect();
    found.join(", ")
}

/// Returns the error for an argument of the wrong type.
#[cold]
pub(super) fn wrong_type(name: &str, expects: &str, got: Value<'_>) -> Fault {
    let error = Error::new(Reason::JavaTypeError, format!("{name} expects {expects}, got {}", describe(got)));
    let error = error.class(of_wrong(got));
    match METHODS.iter().find(|(class, _)| *class == got.type_name()) {
        Some((class, methods)) if name.starts_with('.') && !has_word(methods, name) => {
            error.hint(methods_of(class)).into()
        }
        _ => error.into(),
    }
}

/// Returns the error for a value outside of what the method accepts.
#[cold]
pub(super) fn out_of_domain(name: &str, message: &str) -> Fault {
    out_of_domain_as(domain_class(name), name, message)
}

/// Like [`out_of_domain`], with another class than the method's own.
#[cold]
pub(super) fn out_of_domain_as(class: ErrorClass, name: &str, message: &str) -> Fault {
    Error::new(Reason::JavaDomainError, format!("{name}: {message}")).class(class).into()
}

/// Returns the class that Java throws for a value outside of what a method accepts.
fn domain_class(name: &str) -> ErrorClass {
    const PARSED: [&str; 7] = ["Integer", "Long", "Short", "Byte", "Double", "Float", "BigInteger"];
    match name.split_once('/') {
        Some(("Math" | "StrictMath", _)) => ErrorClass::Arithmetic,
        Some((class, method)) if PARSED.contains(&class) => match method.starts_with("to") {
            true => ErrorClass::IllegalArgument,
            false => ErrorClass::NumberFormat,
        },
        Some(("Character" | "String", _)) => ErrorClass::IllegalArgument,
        Some(_) => ErrorClass::DateTime,
        None if matches!(name, ".charAt" | ".substring" | ".codePointAt" | ".subSequence") => {
            ErrorClass::StringIndexOutOfBounds
        }
        None if matches!(name, ".between" | ".until" | ".format" | ".truncatedTo") => ErrorClass::DateTime,
        None if name.starts_with(".to") || name.starts_with(".get") || name == ".pow" => ErrorClass::Arithmetic,
        None if [".plus", ".minus", ".with", ".at"].iter().any(|prefix| name.starts_with(prefix)) => {
            ErrorClass::DateTime
        }
        None => ErrorClass::IllegalArgument,
    }
}

/// Returns the error for nil where Java requires an object.
#[cold]
pub(super) fn null(name: &str) -> Fault {
    let error = Error::new(Reason::JavaDomainError, format!("{name} got nil where it needs an object"))
        .class(match name.split_once('/') {
            // As in Java, which does not accept null as a number.
            Some(("Integer" | "Long" | "Short" | "Byte", _)) => ErrorClass::NumberFormat,
            _ => ErrorClass::NullPointer,
        })
        .hint("test with nil? or give a default with (or x ...) first");
    Error { of_nil: true, ..error }.into()
}

/// Returns a string argument; `None` for nil, which is checked after all types.
pub(super) fn text<'h>(name: &str, v: Value<'h>) -> Res<Option<&'h str>> {
    match v {
        Value::Str(s) => Ok(Some(s.text())),
        Value::Nil => Ok(None),
        other => Err(wrong_type(name, "a string", other)),
    }
}

/// Returns an argument that is an `int` in Java. A whole float counts as its integer; a fraction would be lost.
pub(super) fn int(name: &str, v: Value<'_>) -> Res<i64> {
    let n = v.as_integer().filter(|&n| i32::try_from(n).is_ok());
    n.ok_or_else(|| wrong_type(name, "an integer of 32 bits", v))
}

/// Returns an argument that is a `long` in Java, by the same rule.
pub(super) fn long(name: &str, v: Value<'_>) -> Res<i64> {
    v.as_integer().ok_or_else(|| wrong_type(name, "an integer of 64 bits", v))
}

/// Returns an argument that is a `double` in Java.
pub(super) fn double(name: &str, v: Value<'_>) -> Res<f64> {
    match v {
        Value::Int(i) => Ok(i as f64),
        Value::Float(f) => Ok(f),
        other => Err(wrong_type(name, "a number of 64 bits", other)),
    }
}
