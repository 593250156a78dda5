//! `java.time.LocalDateTime`, and what dates, dates with a time and instants have in common. All zones are UTC.

use super::Builtin;
use super::java::{int, nanos_of_unit, null, out_of_domain, out_of_domain_as, text, wrong_type};
use super::java_calendar::{month, no_such_date};
use super::java_moments::{
    MOMENT, date_time, duration, instant, like, local_date, made_duration, moment, parse_by, pattern, unreadable,
};
use crate::context::Ctx;
use crate::cost;
use crate::error::ErrorClass;
use crate::heap::{Heap, Res, TimeValue, Value};
use crate::text::date_pattern::{LETTERS, Moment};
use crate::text::dates::{DAY, NANOS, SECONDS, days_of, is_date, parse_date_time};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::java("LocalDateTime/parse", 1, 2, "(LocalDateTime/parse text formatter?)", parse).doc(
        "Parses a date and time, in ISO 8601 without an offset or by a formatter.",
        &[
            ("(str (LocalDateTime/parse \"2024-01-02T03:04:05\"))", "\"2024-01-02T03:04:05\""),
            (
                "(str (LocalDateTime/parse \"02.01.2024 15:04\" (DateTimeFormatter/ofPattern \"dd.MM.yyyy HH:mm\")))",
                "\"2024-01-02T15:04\"",
            ),
            ("(LocalDateTime/parse \"2024-01-02\")", "!java_domain_error"),
            ("(LocalDateTime/parse 1)", "!java_type_error"),
        ],
    ),
    Builtin::java("LocalDateTime/of", 5, 7, "(LocalDateTime/of year month day hour minute second? nano?)", of)
    .doc(
        "Returns the date and time of its parts.",
        &[
            ("(str (LocalDateTime/of 2024 2 29 10 30))", "\"2024-02-29T10:30\""),
            ("(LocalDateTime/of 2024 2 29 24 0)", "!java_domain_error"),
        ],
    ),
    Builtin::java("LocalDateTime/now", 0, 1, "(LocalDateTime/now)", now).doc(
        "Returns the current date and time in UTC, by the host's clock.",
        &[
            ("(.isAfter (LocalDateTime/now) (LocalDateTime/of 2000 1 1 0 0))", "true"),
            ("(LocalDateTime/now \"Europe/Rome\")", "!java_domain_error"),
        ],
    ),
    Builtin::java("LocalDateTime/ofInstant", 1, 2, "(LocalDateTime/ofInstant instant zone?)", of_instant)
    .doc(
        "Returns the date and time of an instant, in UTC.",
        &[
            ("(str (LocalDateTime/ofInstant (Instant/ofEpochSecond 60) ZoneOffset/UTC))", "\"1970-01-01T00:01\""),
            ("(LocalDateTime/ofInstant 5)", "!java_type_error"),
        ],
    ),
    Builtin::java("LocalDate/now", 0, 1, "(LocalDate/now)", today).doc(
        "Returns the current date in UTC, by the host's clock.",
        &[
            ("(.isAfter (LocalDate/now) (LocalDate/of 2000 1 1))", "true"),
            ("(LocalDate/now \"Europe/Rome\")", "!java_domain_error"),
        ],
    ),
    Builtin::java("ZoneId/of", 1, 1, "(ZoneId/of name)", zone_of).aliases(&["ZoneOffset/of"]).doc(
        "Returns the UTC zone; there is no other.",
        &[("(ZoneId/of \"UTC\")", "\"Z\""), ("(ZoneId/of \"Europe/Rome\")", "!java_domain_error")],
    ),
    Builtin::java(".atStartOfDay", 1, 2, "(.atStartOfDay date zone?)", at_start_of_day).doc(
        "Returns the date with the time 00:00; with a zone the instant.",
        &[
            ("(str (.atStartOfDay (LocalDate/of 2024 2 29)))", "\"2024-02-29T00:00\""),
            ("(.atStartOfDay 5)", "!java_type_error"),
        ],
    ),
    Builtin::java(".atTime", 3, 5, "(.atTime date hour minute second? nano?)", at_time).doc(
        "Returns the date with a time.",
        &[
            ("(str (.atTime (LocalDate/of 2024 2 29) 10 30))", "\"2024-02-29T10:30\""),
            ("(.atTime (LocalDate/of 2024 2 29) 10 60)", "!java_domain_error"),
        ],
    ),
    Builtin::java(".toLocalDate", 1, 1, "(.toLocalDate x)", to_local_date).doc(
        "Returns the date of a date with a time, or of an instant in UTC.",
        &[
            ("(str (.toLocalDate (LocalDateTime/of 2024 2 29 10 30)))", "\"2024-02-29\""),
            ("(.toLocalDate \"2024\")", "!java_type_error"),
        ],
    ),
    Builtin::java(".toLocalDateTime", 1, 1, "(.toLocalDateTime x)", to_local_date_time).doc(
        "Returns the date and time of an instant, in UTC.",
        &[
            ("(str (.toLocalDateTime (Instant/ofEpochSecond 0)))", "\"1970-01-01T00:00\""),
            ("(.toLocalDateTime (LocalDate/of 2024 1 1))", "!java_type_error"),
        ],
    ),
    Builtin::java(".toInstant", 1, 2, "(.toInstant x zone?)", to_instant).doc(
        "Returns the instant of a date with a time in UTC, or of a java.util.Date.",
        &[
            ("(str (.toInstant (LocalDateTime/of 2024 2 29 10 30) ZoneOffset/UTC))", "\"2024-02-29T10:30:00Z\""),
            ("(str (.toInstant (java.util.Date. 0)))", "\"1970-01-01T00:00:00Z\""),
            ("(.toInstant (LocalDate/of 2024 1 1))", "!java_type_error"),
        ],
    ),
    Builtin::java(".atZone", 2, 2, "(.atZone x zone)", at_zone).aliases(&[".atOffset"]).doc(
        "Returns the instant of a date with a time; the zone is UTC.",
        &[
            ("(str (.atZone (LocalDateTime/of 2024 2 29 10 30) (ZoneId/of \"UTC\")))", "\"2024-02-29T10:30:00Z\""),
            ("(.atZone (LocalDateTime/of 2024 2 29 10 30) \"Europe/Rome\")", "!java_domain_error"),
        ],
    ),
    Builtin::java(".getHour", 1, 1, "(.getHour x)", |_, args| {
        Ok(Value::Int(with_time(".getHour", args[0])?.1 / 3_600))
    })
    .doc(
        "Returns the hour of a date with a time, 0 to 23.",
        &[("(.getHour (LocalDateTime/of 2024 2 29 10 30))", "10"), ("(.getHour (LocalDate/of 2024 2 29))", "!java_type_error")],
    ),
    Builtin::java(".getMinute", 1, 1, "(.getMinute x)", |_, args| {
        Ok(Value::Int(with_time(".getMinute", args[0])?.1 / 60 % 60))
    })
    .doc(
        "Returns the minute of a date with a time, 0 to 59.",
        &[("(.getMinute (LocalDateTime/of 2024 2 29 10 30))", "30"), ("(.getMinute 5)", "!java_type_error")],
    ),
    Builtin::java(".getSecond", 1, 1, "(.getSecond x)", |_, args| {
        Ok(Value::Int(with_time(".getSecond", args[0])?.1 % 60))
    })
    .doc(
        "Returns the second of a date with a time, 0 to 59.",
        &[("(.getSecond (LocalDateTime/of 2024 2 29 10 30 5))", "5"), ("(.getSecond 5)", "!java_type_error")],
    ),
    Builtin::java(".getNano", 1, 1, "(.getNano x)", get_nano).doc(
        "Returns the nanoseconds of the second of a date with a time, an instant or a duration.",
        &[("(.getNano (Duration/ofMillis 1500))", "500000000"), ("(.getNano 5)", "!java_type_error")],
    ),
    Builtin::java(".withHour", 2, 2, "(.withHour x n)", |h, args| with_part(h, ".withHour", args, 3_600, 23)).doc(
        "Returns the date and time with another hour.",
        &[
            ("(str (.withHour (LocalDateTime/of 2024 2 29 10 30) 0))", "\"2024-02-29T00:30\""),
            ("(.withHour (LocalDateTime/of 2024 2 29 10 30) 24)", "!java_domain_error"),
        ],
    ),
    Builtin::java(".withMinute", 2, 2, "(.withMinute x n)", |h, args| with_part(h, ".withMinute", args, 60, 59)).doc(
        "Returns the date and time with another minute.",
        &[
            ("(str (.withMinute (LocalDateTime/of 2024 2 29 10 30) 0))", "\"2024-02-29T10:00\""),
            ("(.withMinute 5 0)", "!java_type_error"),
        ],
    ),
    Builtin::java(".withSecond", 2, 2, "(.withSecond x n)", |h, args| with_part(h, ".withSecond", args, 1, 59)).doc(
        "Returns the date and time with another second.",
        &[
            ("(str (.withSecond (LocalDateTime/of 2024 2 29 10 30) 5))", "\"2024-02-29T10:30:05\""),
            ("(.withSecond 5 0)", "!java_type_error"),
        ],
    ),
    Builtin::java(".withNano", 2, 2, "(.withNano x n)", with_nano).doc(
        "Returns the date and time with other nanoseconds.",
        &[
            ("(str (.withNano (LocalDateTime/of 2024 2 29 10 30) 5000000))", "\"2024-02-29T10:30:00.005\""),
            ("(.withNano 5 0)", "!java_type_error"),
        ],
    ),
    Builtin::java(".truncatedTo", 2, 2, "(.truncatedTo x unit)", truncated_to).doc(
        "Returns the date with a time, the instant or the duration without what is smaller than a unit such as ChronoUnit/HOURS.",
        &[
            ("(str (.truncatedTo (Instant/parse \"2024-01-01T10:11:12Z\") ChronoUnit/HOURS))", "\"2024-01-01T10:00:00Z\""),
            ("(.truncatedTo (Instant/ofEpochSecond 0) ChronoUnit/MONTHS)", "!java_domain_error"),
            ("(.truncatedTo 5 ChronoUnit/DAYS)", "!java_type_error"),
        ],
    ),
    Builtin::java("DateTimeFormatter/ofPattern", 1, 1, "(DateTimeFormatter/ofPattern pattern)", of_pattern)
    .doc(
        "Returns a formatter: the pattern, as a string, that .format and parse take. Letters as in Java: yyyy MM MMM \
         dd EEE HH hh mm ss SSS a.",
        &[
            ("(.format (LocalDate/of 2024 2 9) (DateTimeFormatter/ofPattern \"EEE, d MMM yyyy\"))", "\"Fri, 9 Feb 2024\""),
            ("(DateTimeFormatter/ofPattern \"yyyy-bb\")", "!java_domain_error"),
        ],
    ),
    Builtin::java(".format", 2, 2, "(.format x formatter)", format).doc(
        "Returns a date, a date with a time, or an instant in UTC as text by a formatter; the formatter may also be \
         the first argument.",
        &[
            ("(.format (LocalDateTime/of 2024 2 9 15 4) (DateTimeFormatter/ofPattern \"dd/MM/yy h:mm a\"))", "\"09/02/24 3:04 PM\""),
            ("(.format DateTimeFormatter/ISO_LOCAL_DATE (LocalDate/of 2024 2 9))", "\"2024-02-09\""),
            ("(.format (LocalDate/of 2024 2 9) \"HH:mm\")", "!java_domain_error"),
            ("(.format 5 \"yyyy\")", "!java_type_error"),
        ],
    ),
];

/// Returns the day of a moment that has a time, and the seconds and nanoseconds of the day.
fn with_time(name: &str, v: Value<'_>) -> Res<(i64, i64, u32)> {
    match moment(name, v)? {
        Some(Moment { day, time: Some((second, nano)), .. }) => Ok((day, second, nano)),
        Some(_) => Err(wrong_type(name, "a LocalDateTime or Instant", v)),
        None => Err(null(name)),
    }
}

/// Fails unless it is a name of UTC. There is no other zone.
fn check_zone(name: &str, zone: Option<&Value<'_>>) -> Res<()> {
    let Some(&zone) = zone else { return Ok(()) };
    match text(name, zone)?.ok_or_else(|| null(name))? {
        "Z" | "UTC" | "GMT" | "Etc/UTC" | "UT" | "+00:00" | "+00" | "Zulu" => Ok(()),
        _ => {
            let message = "the only zone is UTC; move a time with .plusHours";
            Err(out_of_domain_as(ErrorClass::DateTime, name, message))
        }
    }
}

fn zone_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    check_zone("ZoneId/of", args.first())?;
    h.str("Z")
}

fn parse<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "LocalDateTime/parse";
    let source = text(name, args[0])?.ok_or_else(|| null(name))?;
    let (day, second, nano) = match args.get(1) {
        Some(&pattern) => match parse_by(h, name, source, pattern)? {
            Moment { day, time: Some((second, nano)), .. } => (day, second, nano),
            _ => return Err(unreadable(name, source, "a date with a time")),
        },
        None => {
            h.charge(cost::DATE_READ + cost::copied(source.len()))?;
            parse_date_time(source)
                .ok_or_else(|| unreadable(name, source, "a date and time such as 2024-01-02T03:04:05"))?
        }
    };
    date_time(h, name, i128::from(day) * i128::from(DAY) + i128::from(second), nano)
}

fn of_pattern<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    pattern(h, "DateTimeFormatter/ofPattern", args[0])?;
    Ok(args[0])
}

fn format<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".format";
    let (v, formatter) = match (args[0], args[1]) {
        (formatter @ Value::Str(_), v @ (Value::Time(_) | Value::Nil)) => (v, formatter),
        (v, formatter) => (v, formatter),
    };
    let read = moment(name, v)?.ok_or_else(|| null(name))?;
    if let Value::Str(iso) = formatter
        && matches!(iso.text(), "ISO_LOCAL_DATE_TIME" | "ISO_DATE_TIME" | "ISO_INSTANT")
    {
        return iso_text(h, name, v, iso.text());
    }
    let pattern = pattern(h, name, formatter)?;
    h.charge(cost::TIME_WRITTEN * 4)?;
    let written = pattern.write(&read).map_err(|missing| {
        let message =
            format!("the pattern has {missing}, which a {} does not have; it may have {LETTERS}", v.type_name());
        out_of_domain(name, &message)
    })?;
    h.str(&written)
}

/// Returns the text in one of the ISO 8601 forms whose parts depend on the value.
fn iso_text<'h>(h: &'h Heap, name: &str, v: Value<'h>, form: &str) -> Res<Value<'h>> {
    let (day, second, nano) = with_time(name, v)?;
    let second = day.saturating_mul(DAY).saturating_add(second);
    h.charge(cost::TIME_WRITTEN)?;
    let value = match form {
        "ISO_INSTANT" => TimeValue::Instant(second, nano),
        _ => TimeValue::LocalDateTime(second, nano),
    };
    let mut text = crate::text::dates::time_text(value);
    if form != "ISO_INSTANT" && second.rem_euclid(60) == 0 && nano == 0 {
        text.push_str(":00");
    }
    h.str(&text)
}

/// Returns a part of a time.
fn within(name: &str, what: &str, v: Value<'_>, max: i64) -> Res<i64> {
    let number = int(name, v)?;
    if (0..=max).contains(&number) {
        return Ok(number);
    }
    Err(out_of_domain(name, &format!("the {what} is from 0 to {max}, got {number}")))
}

/// Returns the seconds and nanoseconds of an hour and a minute, and optionally a second and nanoseconds.
fn clock(name: &str, args: &[Value<'_>]) -> Res<(i64, u32)> {
    let part = |at: usize, what, max| args.get(at).map_or(Ok(0), |&v| within(name, what, v, max));
    let (hour, minute) = (part(0, "hour", 23)?, part(1, "minute", 59)?);
    let (second, nano) = (part(2, "second", 59)?, part(3, "nanosecond", i64::from(NANOS) - 1)?);
    Ok((hour * 3_600 + minute * 60 + second, u32::try_from(nano).unwrap_or(0)))
}

fn of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "LocalDateTime/of";
    let (year, month, day) = (int(name, args[0])?, month(name, args[1])?, int(name, args[2])?);
    let (second, nano) = clock(name, &args[3..])?;
    if !is_date(year, month, day) {
        return Err(no_such_date(name, (year, month, day)));
    }
    date_time(h, name, i128::from(days_of(year, month, day)) * i128::from(DAY) + i128::from(second), nano)
}

/// Nanoseconds per millisecond.
const MILLI: u32 = 1_000_000;

fn now<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "LocalDateTime/now";
    check_zone(name, args.first())?;
    let ms = h.now()?;
    let nano = u32::try_from(ms.rem_euclid(1_000)).unwrap_or(0) * MILLI;
    date_time(h, name, i128::from(ms.div_euclid(1_000)), nano)
}

fn today<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    check_zone("LocalDate/now", args.first())?;
    let day = h.now()?.div_euclid(DAY * 1_000);
    h.time(TimeValue::LocalDate(day))
}

fn of_instant<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "LocalDateTime/ofInstant";
    let (second, nano) = instant(name, args[0])?.ok_or_else(|| null(name))?;
    check_zone(name, args.get(1))?;
    date_time(h, name, i128::from(second), nano)
}

/// Returns the day of a date.
fn day_of_date(name: &str, v: Value<'_>) -> Res<i64> {
    local_date(name, v)?.ok_or_else(|| null(name))
}

fn at_start_of_day<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".atStartOfDay";
    let second = i128::from(day_of_date(name, args[0])?) * i128::from(DAY);
    check_zone(name, args.get(1))?;
    match i64::try_from(second) {
        Ok(second) if args.len() == 2 && SECONDS.contains(&second) => h.time(TimeValue::Instant(second, 0)),
        _ => date_time(h, name, second, 0),
    }
}

fn at_time<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".atTime";
    let (day, (second, nano)) = (day_of_date(name, args[0])?, clock(name, &args[1..])?);
    date_time(h, name, i128::from(day) * i128::from(DAY) + i128::from(second), nano)
}

fn to_local_date<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (day, ..) = with_time(".toLocalDate", args[0])?;
    h.time(TimeValue::LocalDate(day))
}

fn to_local_date_time<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".toLocalDateTime";
    let (day, second, nano) = with_time(name, args[0])?;
    date_time(h, name, i128::from(day) * i128::from(DAY) + i128::from(second), nano)
}

fn to_instant<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".toInstant";
    check_zone(name, args.get(1))?;
    let (second, nano) = match args[0] {
        Value::Time(t) => match t.value {
            TimeValue::Date(ms) => (ms.div_euclid(1_000), u32::try_from(ms.rem_euclid(1_000)).unwrap_or(0) * MILLI),
            TimeValue::Instant(second, nano) | TimeValue::LocalDateTime(second, nano) => (second, nano),
            _ => return Err(wrong_type(name, MOMENT, args[0])),
        },
        Value::Nil => return Err(null(name)),
        other => return Err(wrong_type(name, MOMENT, other)),
    };
    h.time(TimeValue::Instant(second, nano))
}

fn at_zone<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".atZone";
    let (day, second, nano) = with_time(name, args[0])?;
    check_zone(name, args.get(1))?;
    // The value exists, so this cannot overflow.
    h.time(TimeValue::Instant(day.saturating_mul(DAY).saturating_add(second), nano))
}

fn get_nano<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".getNano";
    Ok(Value::Int(i64::from(match args[0] {
        Value::Time(t) if matches!(t.value, TimeValue::Duration(..)) => duration(name, args[0])?.1,
        v => with_time(name, v)?.2,
    })))
}

/// Returns the value with another number of a unit of `unit` seconds. The number is at most `max`.
fn with_part<'h>(h: &'h Heap, name: &str, args: &[Value<'h>], unit: i64, max: i64) -> Res<Value<'h>> {
    let (day, second, nano) = with_time(name, args[0])?;
    let wanted = within(name, name.trim_start_matches(".with"), args[1], max)?;
    let own = second / unit % (max + 1);
    like(h, name, args[0], day, second + (wanted - own) * unit, nano)
}

fn with_nano<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".withNano";
    let (day, second, _) = with_time(name, args[0])?;
    let nano = within(name, "nanosecond", args[1], i64::from(NANOS) - 1)?;
    like(h, name, args[0], day, second, u32::try_from(nano).unwrap_or(0))
}

fn truncated_to<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".truncatedTo";
    let unit = text(name, args[1])?.ok_or_else(|| null(name))?;
    let unit = nanos_of_unit(unit)
        .ok_or_else(|| out_of_domain(name, "the unit is ChronoUnit/DAYS, HOURS, MINUTES, SECONDS or MILLIS"))?;
    let whole = |second: i64, nano: u32| {
        let nanos = i128::from(second) * i128::from(NANOS) + i128::from(nano);
        nanos / unit * unit
    };
    if let Value::Time(t) = args[0]
        && let TimeValue::Duration(second, nano) = t.value
    {
        return made_duration(h, name, whole(second, nano));
    }
    let (day, second, nano) = with_time(name, args[0])?;
    let whole = whole(second, nano);
    // Both are parts of a day.
    let second = i64::try_from(whole / i128::from(NANOS)).unwrap_or(0);
    let nano = u32::try_from(whole % i128::from(NANOS)).unwrap_or(0);
    like(h, name, args[0], day, second, nano)
}
