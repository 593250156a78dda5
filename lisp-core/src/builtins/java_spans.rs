//! `java.time.Duration` and `Instant`: durations and time arithmetic.

use super::Builtin;
use super::java::{long, nanos_of_unit, null, out_of_domain, text, wrong_type};
use super::java_calendar::months_later;
use super::java_moments::{away, duration, instant, joined, made_duration, made_instant, moved};
use crate::context::Ctx;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Heap, Res, TimeValue, Value};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::java("Duration/ofDays", 1, 1, "(Duration/ofDays n)", |h, args| {
        of_unit(h, "Duration/ofDays", args, 24 * HOUR)
    })
    .doc(
        "Returns a duration of n days.",
        &[("(str (Duration/ofDays 2))", "\"PT48H\""), ("(Duration/ofDays \"2\")", "!java_type_error")],
    ),
    Builtin::java("Duration/ofHours", 1, 1, "(Duration/ofHours n)", |h, args| {
        of_unit(h, "Duration/ofHours", args, HOUR)
    })
    .doc(
        "Returns a duration of n hours.",
        &[("(str (Duration/ofHours 2))", "\"PT2H\""), ("(Duration/ofHours nil)", "!java_type_error")],
    ),
    Builtin::java("Duration/ofMinutes", 1, 1, "(Duration/ofMinutes n)", |h, args| {
        of_unit(h, "Duration/ofMinutes", args, MINUTE)
    })
    .doc(
        "Returns a duration of n minutes.",
        &[("(str (Duration/ofMinutes 90))", "\"PT1H30M\""), ("(Duration/ofMinutes [])", "!java_type_error")],
    ),
    Builtin::java("Duration/ofSeconds", 1, 1, "(Duration/ofSeconds n)", |h, args| {
        of_unit(h, "Duration/ofSeconds", args, SECOND)
    })
    .doc(
        "Returns a duration of n seconds.",
        &[("(str (Duration/ofSeconds 90))", "\"PT1M30S\""), ("(Duration/ofSeconds {})", "!java_type_error")],
    ),
    Builtin::java("Duration/ofMillis", 1, 1, "(Duration/ofMillis n)", |h, args| {
        of_unit(h, "Duration/ofMillis", args, MILLI)
    })
    .doc(
        "Returns a duration of n milliseconds.",
        &[("(str (Duration/ofMillis 1500))", "\"PT1.5S\""), ("(Duration/ofMillis :a)", "!java_type_error")],
    ),
    Builtin::java(".getSeconds", 1, 1, "(.getSeconds duration)", |_, args| {
        Ok(Value::Int(duration(".getSeconds", args[0])?.0))
    })
    .aliases(&["Duration/toSeconds", ".toSeconds"])
    .doc(
        "Returns the whole seconds of a duration.",
        &[("(.getSeconds (Duration/ofMinutes 2))", "120"), ("(.getSeconds 5)", "!java_type_error")],
    ),
    Builtin::java(".toMinutes", 1, 1, "(.toMinutes duration)", |_, args| {
        Ok(Value::Int(duration(".toMinutes", args[0])?.0 / 60))
    })
    .doc(
        "Returns the whole minutes of a duration.",
        &[("(.toMinutes (Duration/ofSeconds 150))", "2"), ("(.toMinutes 5)", "!java_type_error")],
    ),
    Builtin::java(".toHours", 1, 1, "(.toHours duration)", |_, args| {
        Ok(Value::Int(duration(".toHours", args[0])?.0 / 3_600))
    })
    .doc(
        "Returns the whole hours of a duration.",
        &[("(.toHours (Duration/ofMinutes 150))", "2"), ("(.toHours nil)", "!java_domain_error")],
    ),
    Builtin::java("Instant/ofEpochMilli", 1, 1, "(Instant/ofEpochMilli n)", of_epoch_milli)
        .doc(
            "Returns the instant n milliseconds after 1970-01-01T00:00:00Z.",
            &[
                ("(str (Instant/ofEpochMilli 1500))", "\"1970-01-01T00:00:01.500Z\""),
                ("(Instant/ofEpochMilli \"1\")", "!java_type_error"),
            ],
        ),
    Builtin::java("Instant/ofEpochSecond", 1, 1, "(Instant/ofEpochSecond n)", of_epoch_second)
    .doc(
        "Returns the instant n seconds after 1970-01-01T00:00:00Z.",
        &[
            ("(str (Instant/ofEpochSecond 60))", "\"1970-01-01T00:01:00Z\""),
            ("(Instant/ofEpochSecond nil)", "!java_type_error"),
        ],
    ),
    Builtin::java("Instant/now", 0, 0, "(Instant/now)", |h, _| {
        made_instant(h, "Instant/now", i128::from(h.now()?) * MILLI)
    })
    .doc(
        "Returns the current instant, by the host's clock.",
        &[("(.isAfter (Instant/now) (Instant/ofEpochSecond 0))", "true"), ("(Instant/now 1)", "!java_arity_error")],
    ),
    Builtin::java(".getEpochSecond", 1, 1, "(.getEpochSecond instant)", get_epoch_second)
        .doc(
            "Returns the whole seconds from 1970-01-01T00:00:00Z to an instant.",
            &[
                ("(.getEpochSecond (Instant/parse \"1970-01-01T00:01:00Z\"))", "60"),
                ("(.getEpochSecond 5)", "!java_type_error"),
            ],
        ),
    Builtin::java(".plusSeconds", 2, 2, "(.plusSeconds x n)", |h, args| shifted(h, ".plusSeconds", args, SECOND)).doc(
        "Returns the instant or date with a time n seconds later, or the duration n seconds longer.",
        &[
            ("(str (.plusSeconds (Instant/ofEpochSecond 0) 5))", "\"1970-01-01T00:00:05Z\""),
            ("(.plusSeconds 1 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".minusSeconds", 2, 2, "(.minusSeconds x n)", |h, args| {
        shifted(h, ".minusSeconds", args, -SECOND)
    })
    .doc(
        "Returns the instant or date with a time n seconds earlier, or the duration n seconds shorter.",
        &[
            ("(str (.minusSeconds (Instant/ofEpochSecond 5) 5))", "\"1970-01-01T00:00:00Z\""),
            ("(.minusSeconds 1 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".plusMillis", 2, 2, "(.plusMillis x n)", |h, args| shifted(h, ".plusMillis", args, MILLI)).doc(
        "Returns the instant or date with a time n milliseconds later, or the duration n milliseconds longer.",
        &[("(.toMillis (.plusMillis (Duration/ofSeconds 1) 5))", "1005"), ("(.plusMillis 1 1)", "!java_type_error")],
    ),
    Builtin::java(".minusMillis", 2, 2, "(.minusMillis x n)", |h, args| shifted(h, ".minusMillis", args, -MILLI)).doc(
        "Returns the instant or date with a time n milliseconds earlier, or the duration n milliseconds shorter.",
        &[("(.toMillis (.minusMillis (Duration/ofSeconds 1) 5))", "995"), ("(.minusMillis 1 1)", "!java_type_error")],
    ),
    Builtin::java(".plusMinutes", 2, 2, "(.plusMinutes x n)", |h, args| shifted(h, ".plusMinutes", args, MINUTE)).doc(
        "Returns the instant or date with a time n minutes later, or the duration n minutes longer.",
        &[
            ("(str (.plusMinutes (LocalDateTime/of 2024 2 28 23 30) 45))", "\"2024-02-29T00:15\""),
            ("(.plusMinutes (LocalDate/of 2024 2 28) 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".minusMinutes", 2, 2, "(.minusMinutes x n)", |h, args| {
        shifted(h, ".minusMinutes", args, -MINUTE)
    })
    .doc(
        "Returns the instant or date with a time n minutes earlier, or the duration n minutes shorter.",
        &[
            ("(str (.minusMinutes (LocalDateTime/of 2024 3 1 0 0) 1))", "\"2024-02-29T23:59\""),
            ("(.minusMinutes 5 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".plusHours", 2, 2, "(.plusHours x n)", |h, args| shifted(h, ".plusHours", args, HOUR)).doc(
        "Returns the instant or date with a time n hours later, or the duration n hours longer.",
        &[
            ("(str (.plusHours (LocalDateTime/of 2024 2 28 23 30) 1))", "\"2024-02-29T00:30\""),
            ("(.plusHours (LocalDate/of 2024 2 28) 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".minusHours", 2, 2, "(.minusHours x n)", |h, args| shifted(h, ".minusHours", args, -HOUR)).doc(
        "Returns the instant or date with a time n hours earlier, or the duration n hours shorter.",
        &[
            ("(str (.minusHours (LocalDateTime/of 2024 3 1 0 0) 1))", "\"2024-02-29T23:00\""),
            ("(.minusHours 5 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".plusNanos", 2, 2, "(.plusNanos x n)", |h, args| shifted(h, ".plusNanos", args, 1)).doc(
        "Returns the instant or date with a time n nanoseconds later, or the duration n nanoseconds longer.",
        &[
            ("(str (.plusNanos (Duration/ofSeconds 1) 5))", "\"PT1.000000005S\""),
            ("(.plusNanos 5 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".negated", 1, 1, "(.negated duration)", negated).doc(
        "Returns the duration with the other sign.",
        &[("(str (.negated (Duration/ofMinutes 5)))", "\"PT-5M\""), ("(.negated 5)", "!java_type_error")],
    ),
    Builtin::java(".isNegative", 1, 1, "(.isNegative duration)", |_, args| {
        Ok(Value::Bool(duration(".isNegative", args[0])?.0 < 0))
    })
    .doc(
        "Returns whether the duration is below zero.",
        &[("(.isNegative (Duration/ofMinutes -5))", "true"), ("(.isNegative 5)", "!java_type_error")],
    ),
    Builtin::java(".isZero", 1, 1, "(.isZero duration)", |_, args| {
        Ok(Value::Bool(duration(".isZero", args[0])? == (0, 0)))
    })
    .doc(
        "Returns whether the duration is zero.",
        &[("(.isZero (Duration/ofMinutes 0))", "true"), ("(.isZero 5)", "!java_type_error")],
    ),
    Builtin::java(".plus", 2, 3, "(.plus x duration) (.plus x n unit)", |h, args| by_amount(h, ".plus", args, 1)).doc(
        "Returns the time later, or the duration longer, by a duration or by n of a unit such as ChronoUnit/DAYS.",
        &[
            ("(str (.plus (Duration/ofHours 1) (Duration/ofMinutes 5)))", "\"PT1H5M\""),
            ("(str (.plus (LocalDate/of 2024 1 31) 1 ChronoUnit/MONTHS))", "\"2024-02-29\""),
            ("(.plus (LocalDate/of 2024 1 1) 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".minus", 2, 3, "(.minus x duration) (.minus x n unit)", |h, args| {
        by_amount(h, ".minus", args, -1)
    })
    .doc(
        "Returns the time earlier, or the duration shorter, by a duration or by n of a unit such as ChronoUnit/DAYS.",
        &[
            ("(str (.minus (LocalDate/of 2024 1 1) 1 ChronoUnit/DAYS))", "\"2023-12-31\""),
            ("(str (.minus (Instant/ofEpochSecond 60) (Duration/ofMinutes 1)))", "\"1970-01-01T00:00:00Z\""),
            ("(.minus nil (Duration/ofDays 1))", "!java_domain_error"),
        ],
    ),
];

/// Nanoseconds per unit.
const MILLI: i128 = 1_000_000;
const SECOND: i128 = 1_000 * MILLI;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;

/// Returns a duration of a number of units, in nanoseconds.
fn of_unit<'h>(h: &'h Heap, name: &str, args: &[Value<'h>], unit: i128) -> Res<Value<'h>> {
    made_duration(h, name, i128::from(long(name, args[0])?) * unit)
}

fn of_epoch_milli<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "Instant/ofEpochMilli";
    made_instant(h, name, i128::from(long(name, args[0])?) * MILLI)
}

fn of_epoch_second<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "Instant/ofEpochSecond";
    made_instant(h, name, joined(long(name, args[0])?, 0))
}

fn get_epoch_second<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".getEpochSecond";
    Ok(Value::Int(instant(name, args[0])?.ok_or_else(|| null(name))?.0))
}

/// Returns a time, or a duration, a number of units later.
fn shifted<'h>(h: &'h Heap, name: &str, args: &[Value<'h>], unit: i128) -> Res<Value<'h>> {
    let units = long(name, args[1])?;
    away(h, name, args[0], i128::from(units) * unit)
}

fn negated<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (seconds, nanos) = duration(".negated", args[0])?;
    made_duration(h, ".negated", -joined(seconds, nanos))
}

/// Moves by a duration, or by a number of a unit.
fn by_amount<'h>(h: &'h Heap, name: &str, args: &[Value<'h>], sign: i128) -> Res<Value<'h>> {
    let (v, amount) = (args[0], args[1]);
    if let Some(&unit) = args.get(2) {
        return by_units(h, name, v, sign * i128::from(long(name, amount)?), unit);
    }
    match (v, amount) {
        (Value::Time(t), Value::Time(_)) if matches!(t.value, TimeValue::LocalDate(_)) => Err(Error::new(
            Reason::JavaTypeError,
            format!("{name} expects an Instant, a LocalDateTime or a Duration to move by a duration, got a LocalDate"),
        )
        .class(ErrorClass::DateTime)
        .hint(format!("move a date by a unit: ({name} date 3 ChronoUnit/DAYS)"))
        .into()),
        _ => {
            let (seconds, nanos) = duration(name, amount)?;
            away(h, name, v, sign * joined(seconds, nanos))
        }
    }
}

/// Returns a time a number of units later, or a duration that much longer.
fn by_units<'h>(h: &'h Heap, name: &str, v: Value<'h>, n: i128, unit: Value<'h>) -> Res<Value<'h>> {
    let unit = text(name, unit)?.ok_or_else(|| null(name))?;
    let Value::Time(time) = v else {
        return Err(if v.is_nil() { null(name) } else { wrong_type(name, "a time or a duration", v) });
    };
    let (has_days, has_hours) = match time.value {
        TimeValue::LocalDate(_) => (true, false),
        TimeValue::LocalDateTime(..) => (true, true),
        TimeValue::Instant(..) | TimeValue::Duration(..) => (false, true),
        TimeValue::Date(_) => return Err(wrong_type(name, "a time or a duration", v)),
    };
    match (unit, nanos_of_unit(unit)) {
        ("DAYS", _) if has_days => moved(h, name, v, n),
        ("WEEKS", _) if has_days => moved(h, name, v, 7 * n),
        ("MONTHS", _) if has_days => months_later(h, name, v, n),
        ("YEARS", _) if has_days => months_later(h, name, v, 12 * n),
        (_, Some(nanos)) if has_hours => away(h, name, v, n * nanos),
        _ => {
            let shown: String = unit.chars().take(20).collect();
            let units = match (has_days, has_hours) {
                (true, false) => "DAYS, WEEKS, MONTHS and YEARS",
                (true, true) => "MILLIS, SECONDS, MINUTES, HOURS, DAYS, WEEKS, MONTHS and YEARS",
                _ => "MILLIS, SECONDS, MINUTES, HOURS and DAYS",
            };
            let message = format!("{} is moved by {units}, not by {shown}", v.type_name());
            Err(out_of_domain(name, &message))
        }
    }
}
