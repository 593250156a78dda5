//! The calendar of `java.time.LocalDate`: fields, and arithmetic with months and years. Days of the week and months are
//! strings of their names, as they print in Java.

use super::Builtin;
use super::java::{CHRONO_UNITS, int, long, nanos_of_unit, null, out_of_domain, out_of_domain_as, wrong_type};
use super::java_moments::{joined, moment, moved, on_day};
use crate::context::Ctx;
use crate::error::ErrorClass;
use crate::heap::{Fault, Heap, Res, TimeValue, Value};
use crate::text::dates::{DAY, DAYS, MONTHS, WEEKDAYS, calendar, days_of, days_of_month, is_date};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::java("LocalDate/of", 3, 3, "(LocalDate/of year month day)", of).doc(
        "Returns the date of a year, month and day.",
        &[("(str (LocalDate/of 2024 2 29))", "\"2024-02-29\""), ("(LocalDate/of 2023 2 29)", "!java_domain_error")],
    ),
    Builtin::java("LocalDate/ofEpochDay", 1, 1, "(LocalDate/ofEpochDay n)", of_epoch_day)
        .doc(
            "Returns the date n days after 1970-01-01.",
            &[("(str (LocalDate/ofEpochDay 1))", "\"1970-01-02\""), ("(LocalDate/ofEpochDay nil)", "!java_type_error")],
        ),
    Builtin::java(".getYear", 1, 1, "(.getYear date)", |_, args| field(".getYear", args[0], |date| date.0)).doc(
        "Returns the year of a date.",
        &[("(.getYear (LocalDate/of 2024 2 29))", "2024"), ("(.getYear \"2024\")", "!java_type_error")],
    ),
    Builtin::java(".getMonthValue", 1, 1, "(.getMonthValue date)", |_, args| {
        field(".getMonthValue", args[0], |date| date.1)
    })
    .doc(
        "Returns the month of a date, 1 to 12.",
        &[("(.getMonthValue (LocalDate/of 2024 2 29))", "2"), ("(.getMonthValue nil)", "!java_domain_error")],
    ),
    Builtin::java(".getMonth", 1, 1, "(.getMonth date)", get_month).doc(
        "Returns the name of the month of a date.",
        &[("(.getMonth (LocalDate/of 2024 2 29))", "\"FEBRUARY\""), ("(.getMonth 5)", "!java_type_error")],
    ),
    Builtin::java(".getDayOfMonth", 1, 1, "(.getDayOfMonth date)", |_, args| {
        field(".getDayOfMonth", args[0], |date| date.2)
    })
    .doc(
        "Returns the day of the month of a date.",
        &[("(.getDayOfMonth (LocalDate/of 2024 2 29))", "29"), ("(.getDayOfMonth 5)", "!java_type_error")],
    ),
    Builtin::java(".getDayOfYear", 1, 1, "(.getDayOfYear date)", get_day_of_year).doc(
        "Returns the day of the year of a date, from 1 on.",
        &[("(.getDayOfYear (LocalDate/of 2024 2 29))", "60"), ("(.getDayOfYear 5)", "!java_type_error")],
    ),
    Builtin::java(".getDayOfWeek", 1, 1, "(.getDayOfWeek date)", get_day_of_week).doc(
        "Returns the name of the day of the week of a date; .getValue makes a number of it.",
        &[
            ("(.getDayOfWeek (LocalDate/of 2024 2 29))", "\"THURSDAY\""),
            ("(.getValue (.getDayOfWeek (LocalDate/of 2024 2 29)))", "4"),
            ("(.getDayOfWeek 5)", "!java_type_error"),
        ],
    ),
    Builtin::java(".getValue", 1, 1, "(.getValue name)", get_value).doc(
        "Returns the number of a day of the week, from \"MONDAY\" on, or of a month.",
        &[("(.getValue \"SUNDAY\")", "7"), ("(.getValue \"MARCH\")", "3"), ("(.getValue 5)", "!java_type_error")],
    ),
    Builtin::java(".lengthOfMonth", 1, 1, "(.lengthOfMonth date)", |_, args| {
        field(".lengthOfMonth", args[0], |date| days_of_month(date.0, date.1))
    })
    .doc(
        "Returns the number of days of the date's month.",
        &[("(.lengthOfMonth (LocalDate/of 2024 2 1))", "29"), ("(.lengthOfMonth 5)", "!java_type_error")],
    ),
    Builtin::java(".lengthOfYear", 1, 1, "(.lengthOfYear date)", |_, args| {
        field(".lengthOfYear", args[0], |date| days_of(date.0 + 1, 1, 1) - days_of(date.0, 1, 1))
    })
    .doc(
        "Returns the number of days of the date's year.",
        &[("(.lengthOfYear (LocalDate/of 2024 2 1))", "366"), ("(.lengthOfYear 5)", "!java_type_error")],
    ),
    Builtin::java(".isLeapYear", 1, 1, "(.isLeapYear date)", is_leap_year).doc(
        "Returns whether the date's year is a leap year.",
        &[("(.isLeapYear (LocalDate/of 2023 1 1))", "false"), ("(.isLeapYear 2024)", "!java_type_error")],
    ),
    Builtin::java(".withDayOfMonth", 2, 2, "(.withDayOfMonth date n)", with_day).doc(
        "Returns the date with another day of the month.",
        &[
            ("(str (.withDayOfMonth (LocalDate/of 2024 2 29) 1))", "\"2024-02-01\""),
            ("(.withDayOfMonth (LocalDate/of 2024 2 29) 30)", "!java_domain_error"),
        ],
    ),
    Builtin::java(".withMonth", 2, 2, "(.withMonth date n)", with_month).doc(
        "Returns the date with another month; beyond its end the last day of it.",
        &[
            ("(str (.withMonth (LocalDate/of 2024 1 31) 2))", "\"2024-02-29\""),
            ("(.withMonth (LocalDate/of 2024 1 31) 13)", "!java_domain_error"),
        ],
    ),
    Builtin::java(".withYear", 2, 2, "(.withYear date n)", with_year).doc(
        "Returns the date with another year; beyond the end of its month the last day of that.",
        &[
            ("(str (.withYear (LocalDate/of 2024 2 29) 2023))", "\"2023-02-28\""),
            ("(.withYear 5 2023)", "!java_type_error"),
        ],
    ),
    Builtin::java(".plusWeeks", 2, 2, "(.plusWeeks date n)", |h, args| weeks_away(h, ".plusWeeks", args, 1)).doc(
        "Returns the date n weeks later.",
        &[
            ("(str (.plusWeeks (LocalDate/of 2024 2 28) 1))", "\"2024-03-06\""),
            ("(.plusWeeks nil 1)", "!java_domain_error"),
        ],
    ),
    Builtin::java(".minusWeeks", 2, 2, "(.minusWeeks date n)", |h, args| weeks_away(h, ".minusWeeks", args, -1)).doc(
        "Returns the date n weeks earlier.",
        &[
            ("(str (.minusWeeks (LocalDate/of 2024 3 6) 1))", "\"2024-02-28\""),
            ("(.minusWeeks 1 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".plusMonths", 2, 2, "(.plusMonths date n)", |h, args| months_away(h, ".plusMonths", args, 1)).doc(
        "Returns the date n months later. If that month has no such day, returns its last day.",
        &[
            ("(str (.plusMonths (LocalDate/of 2024 1 31) 1))", "\"2024-02-29\""),
            ("(.plusMonths (LocalDate/of 2024 1 31) \"1\")", "!java_type_error"),
        ],
    ),
    Builtin::java(".minusMonths", 2, 2, "(.minusMonths date n)", |h, args| {
        months_away(h, ".minusMonths", args, -1)
    })
    .doc(
        "Returns the date n months earlier. If that month has no such day, returns its last day.",
        &[
            ("(str (.minusMonths (LocalDate/of 2024 3 31) 1))", "\"2024-02-29\""),
            ("(.minusMonths 1 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".plusYears", 2, 2, "(.plusYears date n)", |h, args| months_away(h, ".plusYears", args, 12)).doc(
        "Returns the date n years later. If that month has no such day, returns its last day.",
        &[
            ("(str (.plusYears (LocalDate/of 2024 2 29) 1))", "\"2025-02-28\""),
            ("(.plusYears 1 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".minusYears", 2, 2, "(.minusYears date n)", |h, args| months_away(h, ".minusYears", args, -12)).doc(
        "Returns the date n years earlier. If that month has no such day, returns its last day.",
        &[
            ("(str (.minusYears (LocalDate/of 2024 2 29) 4))", "\"2020-02-29\""),
            ("(.minusYears 1 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".isEqual", 2, 2, "(.isEqual date other)", is_equal).doc(
        "Returns whether the dates are the same day, or the dates with a time the same time.",
        &[
            ("(.isEqual (LocalDate/of 2024 1 1) (LocalDate/parse \"2024-01-01\"))", "true"),
            ("(.isEqual 1 1)", "!java_type_error"),
        ],
    ),
    Builtin::java(".until", 3, 3, "(.until from to unit)", |h, args| between(h, &[args[2], args[0], args[1]])).doc(
        "Like .between, with the unit as the last argument.",
        &[
            ("(.until (LocalDate/of 2024 2 1) (LocalDate/of 2024 3 1) ChronoUnit/DAYS)", "29"),
            ("(.until 1 2 ChronoUnit/DAYS)", "!java_type_error"),
        ],
    ),
    Builtin::java(".between", 3, 3, "(.between unit from to)", between).doc(
        "Returns the whole units between two dates, with or without a time, or two instants; a unit is ChronoUnit/DAYS or similar.",
        &[
            ("(.between java.time.temporal.ChronoUnit/DAYS (LocalDate/of 2024 2 1) (LocalDate/of 2024 3 1))", "29"),
            ("(.between java.time.temporal.ChronoUnit/MONTHS (LocalDate/of 2024 1 31) (LocalDate/of 2024 3 30))", "1"),
            ("(.between \"days\" 1 2)", "!java_type_error"),
        ],
    ),
];

/// Returns the day of a date, with or without a time; nil is an error.
fn days(name: &str, v: Value<'_>) -> Res<i64> {
    Ok(moment(name, v)?.ok_or_else(|| null(name))?.day)
}

/// The error for a date that does not exist.
#[cold]
pub(super) fn no_such_date(name: &str, (year, month, day): (i64, i64, i64)) -> Fault {
    out_of_domain(
        name,
        &match month {
            1..=12 => format!("there is no day {day} in month {month} of {year}"),
            _ => format!("there is no month {month}: write 1 to 12"),
        },
    )
}

/// Returns the day number of a date, if the date exists.
fn day_of(name: &str, (year, month, day): (i64, i64, i64)) -> Res<i64> {
    if !is_date(year, month, day) {
        return Err(no_such_date(name, (year, month, day)));
    }
    match days_of(year, month, day) {
        days if DAYS.contains(&days) => Ok(days),
        _ => Err(out_of_domain(name, "the year would be beyond 999,999,999")),
    }
}

/// Returns a value of the same class and at the same time of day, on another day.
fn date<'h>(h: &'h Heap, name: &str, like: Value<'h>, date: (i64, i64, i64)) -> Res<Value<'h>> {
    on_day(h, name, like, day_of(name, date)?)
}

/// Returns a month, by its number or its name.
pub(super) fn month(name: &str, v: Value<'_>) -> Res<i64> {
    match v {
        Value::Str(s) => named(&MONTHS, s.text()).ok_or_else(|| wrong_type(name, "a month from 1 to 12", v)),
        other => int(name, other),
    }
}

fn of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "LocalDate/of";
    let month = month(name, args[1])?;
    let day = day_of(name, (int(name, args[0])?, month, int(name, args[2])?))?;
    h.time(TimeValue::LocalDate(day))
}

fn of_epoch_day<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "LocalDate/ofEpochDay";
    match long(name, args[0])? {
        days if DAYS.contains(&days) => h.time(TimeValue::LocalDate(days)),
        _ => Err(out_of_domain(name, "the year would be beyond 999,999,999")),
    }
}

fn field<'h>(name: &str, v: Value<'h>, field: impl Fn((i64, i64, i64)) -> i64) -> Res<Value<'h>> {
    Ok(Value::Int(field(calendar(days(name, v)?))))
}

fn get_day_of_year<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    field(".getDayOfYear", args[0], |(year, month, day)| days_of(year, month, day) - days_of(year, 1, 1) + 1)
}

fn is_leap_year<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (year, ..) = calendar(days(".isLeapYear", args[0])?);
    Ok(Value::Bool(is_date(year, 2, 29)))
}

/// Returns the name at an index that counts from 0, in capital letters.
fn name_at<'h>(h: &'h Heap, names: &[&str], place: i64) -> Res<Value<'h>> {
    let name = usize::try_from(place).ok().and_then(|place| names.get(place)).copied().unwrap_or_default();
    h.str(&name.to_ascii_uppercase())
}

/// Returns the index of a name in capital letters, from 1 on.
fn named(names: &[&str], name: &str) -> Option<i64> {
    let at = names.iter().position(|own| own.to_ascii_uppercase() == name)?;
    i64::try_from(at + 1).ok()
}

fn get_month<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (_, month, _) = calendar(days(".getMonth", args[0])?);
    name_at(h, &MONTHS, month - 1)
}

fn get_day_of_week<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    // 1970-01-01 was a Thursday.
    name_at(h, &WEEKDAYS, (days(".getDayOfWeek", args[0])? + 3).rem_euclid(7))
}

fn get_value<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".getValue";
    let number = match args[0] {
        Value::Nil => return Err(null(name)),
        Value::Str(s) => named(&WEEKDAYS, s.text()).or_else(|| named(&MONTHS, s.text())),
        _ => None,
    };
    number.map(Value::Int).ok_or_else(|| wrong_type(name, "a day of the week or a month, such as \"MONDAY\"", args[0]))
}

fn with_day<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".withDayOfMonth";
    let (year, month, _) = calendar(days(name, args[0])?);
    date(h, name, args[0], (year, month, int(name, args[1])?))
}

/// Returns a date in a month that may be shorter.
fn within_month<'h>(h: &'h Heap, name: &str, like: Value<'h>, (year, month, day): (i64, i64, i64)) -> Res<Value<'h>> {
    date(h, name, like, (year, month, day.min(days_of_month(year, month)).max(1)))
}

fn with_month<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".withMonth";
    let (year, _, day) = calendar(days(name, args[0])?);
    let month = int(name, args[1])?;
    within_month(h, name, args[0], (year, month, day))
}

fn with_year<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".withYear";
    let (_, month, day) = calendar(days(name, args[0])?);
    within_month(h, name, args[0], (int(name, args[1])?, month, day))
}

fn weeks_away<'h>(h: &'h Heap, name: &str, args: &[Value<'h>], sign: i128) -> Res<Value<'h>> {
    let weeks = long(name, args[1])?;
    moved(h, name, args[0], sign * 7 * i128::from(weeks))
}

fn months_away<'h>(h: &'h Heap, name: &str, args: &[Value<'h>], months: i128) -> Res<Value<'h>> {
    let (_, number) = (moment(name, args[0])?, long(name, args[1])?);
    months_later(h, name, args[0], months * i128::from(number))
}

/// Returns a time a number of months later; beyond the end of that month its last day.
pub(super) fn months_later<'h>(h: &'h Heap, name: &str, v: Value<'h>, months: i128) -> Res<Value<'h>> {
    let (year, month, day) = calendar(days(name, v)?);
    let sum = i128::from(year) * 12 + i128::from(month - 1) + months;
    let (Ok(year), Ok(month)) = (i64::try_from(sum.div_euclid(12)), i64::try_from(sum.rem_euclid(12))) else {
        return Err(out_of_domain(name, "the year would be beyond 999,999,999"));
    };
    if year.abs() > 1_000_000_000 {
        return Err(out_of_domain(name, "the year would be beyond 999,999,999"));
    }
    within_month(h, name, v, (year, month + 1, day))
}

fn is_equal<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".isEqual";
    let (a, b) = (moment(name, args[0])?, moment(name, args[1])?);
    match (a, b) {
        (Some(a), Some(b)) if a.time.is_some() == b.time.is_some() => Ok(Value::Bool(a == b)),
        (Some(_), Some(_)) => Err(wrong_type(name, "two values of one class", args[1])),
        _ => Err(null(name)),
    }
}

fn between<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = ".between";
    let unit = match args[0] {
        Value::Nil => return Err(null(name)),
        Value::Str(s) => CHRONO_UNITS.iter().find(|unit| unit.0 == s.text()),
        _ => None,
    };
    let Some(&(unit, nanos)) = unit else {
        return Err(wrong_type(name, "a unit such as ChronoUnit/DAYS", args[0]));
    };
    match (args[1], args[2]) {
        (Value::Time(a), Value::Time(b)) => match (a.value, b.value) {
            (TimeValue::LocalDate(a), TimeValue::LocalDate(b)) => match unit {
                "WEEKS" => Ok(Value::Int((b - a) / 7)),
                "DAYS" => Ok(Value::Int(b - a)),
                "MONTHS" => Ok(Value::Int(months_between(a, b))),
                "YEARS" => Ok(Value::Int(months_between(a, b) / 12)),
                _ => Err(out_of_domain(name, &format!("dates have no {unit}; use instants"))),
            },
            (TimeValue::LocalDateTime(a, m), TimeValue::LocalDateTime(b, n)) if nanos.is_none() || unit == "WEEKS" => {
                // A part of a day is not a day.
                let (from, to) = ((a.rem_euclid(DAY), m), (b.rem_euclid(DAY), n));
                let (from_day, mut day) = (a.div_euclid(DAY), b.div_euclid(DAY));
                if day > from_day && to < from {
                    day -= 1;
                } else if day < from_day && to > from {
                    day += 1;
                }
                Ok(Value::Int(match unit {
                    "WEEKS" => (day - from_day) / 7,
                    "MONTHS" => months_between(from_day, day),
                    _ => months_between(from_day, day) / 12,
                }))
            }
            (TimeValue::Instant(a, m), TimeValue::Instant(b, n))
            | (TimeValue::LocalDateTime(a, m), TimeValue::LocalDateTime(b, n)) => {
                let Some(unit) = nanos_of_unit(unit) else {
                    return Err(out_of_domain(name, &format!("instants have no {unit}; use dates")));
                };
                match i64::try_from((joined(b, n) - joined(a, m)) / unit) {
                    Ok(count) => Ok(Value::Int(count)),
                    Err(_) => Err(out_of_domain_as(ErrorClass::Arithmetic, name, "the result does not fit in 64 bits")),
                }
            }
            _ => Err(wrong_type(name, "two dates or two instants", args[2])),
        },
        (Value::Nil, _) | (_, Value::Nil) => Err(null(name)),
        (Value::Time(_), other) | (other, _) => Err(wrong_type(name, "two dates or two instants", other)),
    }
}

/// Returns the number of whole months from one day to another.
fn months_between(a: i64, b: i64) -> i64 {
    let (a, b) = (calendar(a), calendar(b));
    // A month counts as 32 days, so that a missing day reduces the number of months.
    let packed = |(year, month, day): (i64, i64, i64)| (year * 12 + month - 1) * 32 + day;
    (packed(b) - packed(a)) / 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_the_calendar_agree() {
        for days in (-800_000..800_000).step_by(97).chain([*DAYS.start(), *DAYS.end()]) {
            let (year, month, day) = calendar(days);
            assert!(is_date(year, month, day), "{days}");
            assert_eq!(days_of(year, month, day), days);
        }
        for (from, to, months) in [
            ((2024, 1, 31), (2024, 2, 29), 0),
            ((2024, 1, 31), (2024, 3, 31), 2),
            ((2024, 3, 31), (2024, 1, 31), -2),
            ((2024, 3, 15), (2024, 1, 31), -1),
            ((2020, 2, 29), (2024, 2, 28), 47),
        ] {
            let days = |(y, m, d)| days_of(y, m, d);
            assert_eq!(months_between(days(from), days(to)), months, "{from:?} {to:?}");
        }
    }
}
