//! `java.time.LocalDate`, `Instant` and `Duration`, and `java.util.Date`: their grammars, of bounded length, and
//! arithmetic.

use super::Builtin;
use super::java::{long, null, out_of_domain, text, wrong_type};
use super::java_moments::{duration, instant, local_date, local_date_time, moved, parse_by, take, unreadable};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Res, TimeValue, Value};
use crate::text::dates::{DAY, DAYS, MONTHS, NANOS, WEEKDAYS, days_of, is_date, parse_date, parse_instant};
use crate::text::describe;
use regex_automata::meta::Regex;
use std::cmp::Ordering;
use std::sync::LazyLock;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::java("LocalDate/parse", 1, 2, "(LocalDate/parse text formatter?)", date_parse).doc(
        "Parses a date, in ISO 8601 or by a formatter.",
        &[
            ("(str (LocalDate/parse \"31/01/2024\" (DateTimeFormatter/ofPattern \"dd/MM/yyyy\")))", "\"2024-01-31\""),
            ("(str (LocalDate/parse \"2024-01-02\"))", "\"2024-01-02\""),
            ("(LocalDate/parse \"2024-02-30\")", "!java_domain_error"),
            ("(LocalDate/parse \"2024-01-02T00:00:00\")", "!java_domain_error"),
        ],
    ),
    Builtin::java(".toEpochDay", 1, 1, "(.toEpochDay date)", to_epoch_day).doc(
        "Days from 1970-01-01 to the date.",
        &[("(.toEpochDay (LocalDate/parse \"1970-01-02\"))", "1"), ("(.toEpochDay 5)", "!java_type_error")],
    ),
    Builtin::java(".plusDays", 2, 2, "(.plusDays date n)", plus_days).doc(
        "Returns the date, with a time or without, n days later.",
        &[
            ("(str (.plusDays (LocalDate/parse \"2024-02-28\") 2))", "\"2024-03-01\""),
            ("(.plusDays (LocalDate/parse \"2024-01-01\") \"1\")", "!java_type_error"),
        ],
    ),
    Builtin::java(".minusDays", 2, 2, "(.minusDays date n)", minus_days).doc(
        "Returns the date, with a time or without, n days earlier.",
        &[
            ("(str (.minusDays (LocalDate/parse \"2024-03-01\") 1))", "\"2024-02-29\""),
            ("(.minusDays nil 1)", "!java_domain_error"),
        ],
    ),
    Builtin::java(".isBefore", 2, 2, "(.isBefore a b)", |_, args| ordered(".isBefore", args, Ordering::Less)).doc(
        "Returns whether the date, with or without a time, or the instant is before the other one.",
        &[
            ("(.isBefore (LocalDate/parse \"2024-01-01\") (LocalDate/parse \"2024-01-02\"))", "true"),
            ("(.isBefore 1 2)", "!unsupported_java_member"),
        ],
    ),
    Builtin::java(".isAfter", 2, 2, "(.isAfter a b)", |_, args| ordered(".isAfter", args, Ordering::Greater)).doc(
        "Returns whether the date, with or without a time, or the instant is after the other one.",
        &[
            ("(.isAfter (LocalDate/parse \"2024-01-01\") (LocalDate/parse \"2024-01-02\"))", "false"),
            ("(.isAfter (LocalDate/parse \"2024-01-01\") nil)", "!java_domain_error"),
        ],
    ),
    Builtin::java("Instant/parse", 1, 1, "(Instant/parse text)", instant_parse).doc(
        "Parses an instant: ISO 8601 with Z or an offset.",
        &[
            ("(str (Instant/parse \"2024-01-02T03:04:05.5+01:00\"))", "\"2024-01-02T02:04:05.500Z\""),
            ("(Instant/parse \"2024-01-02T03:04:05\")", "!java_domain_error"),
        ],
    ),
    Builtin::java(".toEpochMilli", 1, 1, "(.toEpochMilli instant)", to_epoch_milli).doc(
        "Milliseconds from 1970-01-01T00:00:00Z to the instant.",
        &[
            ("(.toEpochMilli (Instant/parse \"1970-01-01T00:00:01Z\"))", "1000"),
            ("(.toEpochMilli \"x\")", "!java_type_error"),
        ],
    ),
    Builtin::java("Duration/between", 2, 2, "(Duration/between start end)", between).doc(
        "Returns the time from one instant, or date with a time, to another.",
        &[
            (
                "(str (Duration/between (Instant/parse \"1970-01-01T00:00:00Z\") (Instant/parse \"1970-01-01T01:00:01Z\")))",
                "\"PT1H1S\"",
            ),
            ("(Duration/between 1 2)", "!java_type_error"),
        ],
    ),
    Builtin::java(".toMillis", 1, 1, "(.toMillis duration)", to_millis).doc(
        "Returns the whole milliseconds of a duration.",
        &[
            (
                "(.toMillis (Duration/between (Instant/parse \"1970-01-01T00:00:00Z\") (Instant/parse \"1970-01-01T00:00:02Z\")))",
                "2000",
            ),
            ("(.toMillis nil)", "!java_domain_error"),
        ],
    ),
    Builtin::java(".toDays", 1, 1, "(.toDays duration)", |_, args| {
        Ok(Value::Int(duration(".toDays", args[0])?.0 / DAY))
    })
    .doc(
        "Returns the whole days of a duration.",
        &[
            (
                "(.toDays (Duration/between (Instant/parse \"2024-02-28T00:00:00Z\") (Instant/parse \"2024-03-01T12:00:00Z\")))",
                "2",
            ),
            ("(.toDays 5)", "!java_type_error"),
        ],
    ),
    Builtin::java(
        "java.util.Date.",
        0,
        1,
        "(java.util.Date.), (java.util.Date. milliseconds), (java.util.Date. text)",
        date_new,
    )
    .doc(
        "Returns a java.util.Date: of now, of milliseconds since 1970-01-01T00:00:00Z, or of a string such as \"8 Jan \
         2026 14:30 UTC\".",
        &[
            ("(str (java.util.Date. 1))", "\"1970-01-01T00:00:00.001Z\""),
            ("(java.util.Date. \"2024-01-02\")", "!java_domain_error"),
            ("(java.util.Date. 1.5)", "!java_type_error"),
        ],
    ),
    Builtin::java(".getTime", 1, 1, "(.getTime date)", |_, args| {
        Ok(Value::Int(legacy_date(".getTime", args[0])?.ok_or_else(|| null(".getTime"))?))
    })
    .aliases(&["Date/getTime"])
    .doc(
        "Returns the milliseconds from 1970-01-01T00:00:00Z to a java.util.Date.",
        &[("(.getTime (java.util.Date. 1234))", "1234"), ("(.getTime 5)", "!java_type_error")],
    ),
    Builtin::java(".before", 2, 2, "(.before date other)", before).aliases(&["Date/before"]).doc(
        "Returns whether the java.util.Date is before the other one.",
        &[("(.before (java.util.Date. 0) (java.util.Date. 1))", "true"), ("(.before 1 2)", "!java_type_error")],
    ),
    Builtin::java(".after", 2, 2, "(.after date other)", after).aliases(&["Date/after"]).doc(
        "Returns whether the java.util.Date is after the other one.",
        &[("(.after (java.util.Date. 0) (java.util.Date. 1))", "false"), ("(.after 1 2)", "!java_type_error")],
    ),
];

// ---- LocalDate ----

fn date_parse<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "LocalDate/parse";
    let text = text(name, args[0])?.ok_or_else(|| null(name))?;
    if let Some(&formatter) = args.get(1) {
        let day = parse_by(h, name, text, formatter)?.day;
        return h.time(TimeValue::LocalDate(day));
    }
    h.charge(cost::DATE_READ)?;
    match parse_date(text, 999_999_999) {
        Some(days) if DAYS.contains(&days) => h.time(TimeValue::LocalDate(days)),
        _ => Err(unreadable(name, text, "a date such as 2024-01-02")),
    }
}

fn legacy_date(name: &str, v: Value<'_>) -> Res<Option<i64>> {
    take(name, "a java.util.Date", v, |t| if let TimeValue::Date(ms) = t { Some(ms) } else { None })
}

fn to_epoch_day<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".toEpochDay";
    Ok(Value::Int(local_date(name, args[0])?.ok_or_else(|| null(name))?))
}

fn plus_days<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let days = long(".plusDays", args[1])?;
    moved(h, ".plusDays", args[0], i128::from(days))
}

fn minus_days<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let days = long(".minusDays", args[1])?;
    moved(h, ".minusDays", args[0], -i128::from(days))
}

fn ordered<'h>(name: &str, args: &[Value<'h>], wanted: Ordering) -> Res<Value<'h>> {
    let order = match args[0] {
        Value::Nil => None,
        Value::Time(t) => match t.value {
            TimeValue::LocalDate(a) => local_date(name, args[1])?.map(|b| a.cmp(&b)),
            TimeValue::Instant(s, n) => instant(name, args[1])?.map(|b| (s, n).cmp(&b)),
            TimeValue::LocalDateTime(s, n) => local_date_time(name, args[1])?.map(|b| (s, n).cmp(&b)),
            _ => return Err(no_order(name, args[0])),
        },
        other => return Err(no_order(name, other)),
    };
    Ok(Value::Bool(order.ok_or_else(|| null(name))? == wanted))
}

#[cold]
fn no_order(name: &str, receiver: Value<'_>) -> crate::heap::Fault {
    let got = describe(receiver);
    Error::new(
        Reason::UnsupportedJavaMember,
        format!("{name} is a method of LocalDate, LocalDateTime and Instant, not of {got}"),
    )
    .hint("java.util.Date has .before and .after; use < and > for numbers, compare for strings")
    .into()
}

// ---- Instant and Duration ----

fn instant_parse<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "Instant/parse";
    let text = text(name, args[0])?.ok_or_else(|| null(name))?;
    h.charge(cost::copied(text.len()) + 8)?;
    match parse_instant(text) {
        Some((second, nano)) => h.time(TimeValue::Instant(second, nano)),
        None => Err(unreadable(name, text, "an instant such as 2024-01-02T03:04:05Z")),
    }
}

fn to_epoch_milli<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".toEpochMilli";
    let (second, nano) = instant(name, args[0])?.ok_or_else(|| null(name))?;
    let ms = second.checked_mul(1_000).and_then(|ms| ms.checked_add(i64::from(nano / 1_000_000)));
    ms.map(Value::Int).ok_or_else(|| out_of_domain(name, "the milliseconds do not fit in 64 bits"))
}

fn between<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "Duration/between";
    let both = match args[0] {
        Value::Time(t) if matches!(t.value, TimeValue::LocalDateTime(..)) => {
            (local_date_time(name, args[0])?, local_date_time(name, args[1])?)
        }
        _ => (instant(name, args[0])?, instant(name, args[1])?),
    };
    let (Some((from, from_nano)), Some((to, to_nano))) = both else { return Err(null(name)) };
    let borrow = to_nano < from_nano;
    let nano = if borrow { to_nano + NANOS - from_nano } else { to_nano - from_nano };
    h.time(TimeValue::Duration(to - from - i64::from(borrow), nano))
}

fn to_millis<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".toMillis";
    let (second, nano) = duration(name, args[0])?;
    let nanos = i128::from(second) * i128::from(NANOS) + i128::from(nano);
    let ms = i64::try_from(nanos / 1_000_000);
    ms.map(Value::Int).map_err(|_| out_of_domain(name, "the milliseconds do not fit in 64 bits"))
}

// ---- java.util.Date ----

/// The maximum length of a text that is parsed as a date, in bytes. It may contain comments.
const LONGEST_DATE: usize = 4_096;

fn date_new<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "java.util.Date.";
    let ms = match args.first() {
        None => h.now()?,
        Some(Value::Int(ms)) => *ms,
        Some(Value::Nil) => return Err(null(name)),
        Some(Value::Str(s)) => {
            h.charge(s.text().len().min(LONGEST_DATE) as u64 + cost::OLD_DATE_READ)?;
            h.check_available(s.text().len().min(LONGEST_DATE) * 4)?;
            Some(s.text()).filter(|text| text.len() <= LONGEST_DATE).and_then(parse_legacy).ok_or_else(|| {
                unreadable(name, s.text(), "a date such as 8 Jan 2026 14:30:00 UTC, from 1582-10-15 on")
            })?
        }
        Some(&other) => return Err(wrong_type(name, "milliseconds as an integer of 64 bits, or a string", other)),
    };
    h.time(TimeValue::Date(ms))
}

fn before<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    legacy_ordered(".before", args, Ordering::Less)
}

fn after<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    legacy_ordered(".after", args, Ordering::Greater)
}

fn legacy_ordered<'h>(name: &str, args: &[Value<'h>], wanted: Ordering) -> Res<Value<'h>> {
    match (legacy_date(name, args[0])?, legacy_date(name, args[1])?) {
        (Some(a), Some(b)) => Ok(Value::Bool(a.cmp(&b) == wanted)),
        _ => Err(null(name)),
    }
}

const ZONES: [(&str, i64); 11] = [
    ("gmt", 0),
    ("ut", 0),
    ("utc", 0),
    ("est", -5),
    ("edt", -4),
    ("cst", -6),
    ("cdt", -5),
    ("mst", -7),
    ("mdt", -6),
    ("pst", -8),
    ("pdt", -7),
];

/// Returns the number of a name given in full or by its first three letters.
fn named(names: &[&str], word: &str) -> Option<i64> {
    let at = names.iter().position(|name| [name, &name[..3]].iter().any(|name| name.eq_ignore_ascii_case(word)))?;
    i64::try_from(at).ok()
}

struct LegacyForms {
    month_first: Form,
    year_last: Form,
    day_first: Form,
    slashes: Form,
    time: Form,
}

struct Form(Regex);

impl Form {
    fn new(pattern: &str) -> Option<Form> {
        Regex::new(pattern).ok().map(Form)
    }

    /// Returns the groups of a text that has this form; a missing group is empty.
    fn groups<'t, const N: usize>(&self, text: &'t str) -> Option<[&'t str; N]> {
        let mut found = self.0.create_captures();
        self.0.captures(text, &mut found);
        let group = |i: usize| found.get_group(i + 1).and_then(|span| text.get(span.range())).unwrap_or("");
        found.is_match().then(|| std::array::from_fn(group))
    }
}

static FORMS: LazyLock<Option<LegacyForms>> = LazyLock::new(|| {
    Some(LegacyForms {
        month_first: Form::new("^([A-Za-z]+) ([0-9]{1,2}) ([0-9]{4,9}) ?(.*)$")?,
        year_last: Form::new(
            "^([A-Za-z]+) ([0-9]{1,2}) ([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?: ([A-Za-z]+|[+-][0-9]{1,4}))? ([0-9]{4,9})$",
        )?,
        day_first: Form::new("^([0-9]{1,2}) ([A-Za-z]+) ([0-9]{4,9}) ?(.*)$")?,
        slashes: Form::new("^([0-9]{1,2})/([0-9]{1,2})/([0-9]{4,9}) ?(.*)$")?,
        time: Form::new("^([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2}))? ?(.*)$")?,
    })
});

/// Returns the milliseconds of a legacy text, which may contain comments in parentheses, an English weekday and a
/// comma.
fn parse_legacy(text: &str) -> Option<i64> {
    let forms = FORMS.as_ref()?;
    let plain = without_comments(text)?.replace(',', " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    let words = match words.split_first() {
        Some((first, rest)) if !rest.is_empty() && named(&WEEKDAYS, first).is_some() => rest,
        _ => &words[..],
    };
    let ((year, month, day), rest) = legacy_day(forms, &words.join(" "))?;
    let (seconds, rest) = match forms.time.groups(rest.trim()) {
        Some([hour, minute, second, rest]) => {
            let number = |part: &str| part.parse::<i64>().ok();
            let second = if second.is_empty() { Some(0) } else { number(second) };
            let (hour, minute, second) = (number(hour)?, number(minute)?, second?);
            if hour > 23 || minute > 59 || second > 59 {
                return None;
            }
            (hour * 3_600 + minute * 60 + second, rest.to_owned())
        }
        None => (0, rest),
    };
    let offset = legacy_zone(rest.trim())?;
    // Before this day the legacy class uses the Julian calendar.
    if (year, month, day) < (1582, 10, 15) || !is_date(year, month, day) {
        return None;
    }
    (days_of(year, month, day) * DAY + seconds - offset).checked_mul(1_000)
}

type Day = (i64, i64, i64);

/// Returns the day, and the rest of the text: the time and zone.
fn legacy_day(forms: &LegacyForms, text: &str) -> Option<(Day, String)> {
    let number = |s: &str| s.parse::<i64>().ok();
    let month = |s: &str| Some(named(&MONTHS, s)? + 1);
    if let Some([m, d, y, rest]) = forms.month_first.groups(text)
        && let Some(m) = month(m)
    {
        return Some(((number(y)?, m, number(d)?), rest.to_owned()));
    }
    if let Some([m, d, time, zone, y]) = forms.year_last.groups(text)
        && let Some(m) = month(m)
    {
        return Some(((number(y)?, m, number(d)?), format!("{time} {zone}")));
    }
    if let Some([d, m, y, rest]) = forms.day_first.groups(text)
        && let Some(m) = month(m)
    {
        return Some(((number(y)?, m, number(d)?), rest.to_owned()));
    }
    let [m, d, y, rest] = forms.slashes.groups(text)?;
    Some(((number(y)?, number(m)?, number(d)?), rest.to_owned()))
}

/// Returns the seconds of a zone: a name, or a sign with hours or hours and minutes.
fn legacy_zone(text: &str) -> Option<i64> {
    let text = text.to_ascii_lowercase();
    if text.is_empty() {
        return Some(0);
    }
    if let Some(zone) = ZONES.iter().find(|zone| zone.0 == text) {
        return Some(zone.1 * 3_600);
    }
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    if !(1..=4).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let n: i64 = digits.parse().ok()?;
    let (hours, minutes) = if n < 24 { (n, 0) } else { (n / 100, n % 100) };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Returns the text without anything in parentheses; `None` if one is not closed.
fn without_comments(text: &str) -> Option<String> {
    let mut depth = 0usize;
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    (depth == 0).then_some(plain)
}
