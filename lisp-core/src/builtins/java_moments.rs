//! Common parts of the time classes: reading arguments, creating values, and arithmetic. All zones are UTC.

use super::java::{null, out_of_domain, out_of_domain_as, text, wrong_type};
use crate::cost;
use crate::error::{Error, ErrorClass, Reason};
use crate::heap::{Heap, Res, TimeValue, Value};
use crate::text::date_pattern::{Moment, Pattern};
use crate::text::dates::{DAY, DAYS, NANOS, SECONDS, parse_date_time};

#[cold]
pub(super) fn unreadable(name: &str, text: &str, expects: &str) -> crate::heap::Fault {
    let shown: String = text.chars().take(60).collect();
    let error = Error::new(Reason::JavaDomainError, format!("{name} cannot read {shown:?}: it is not {expects}"));
    let error = error.class(match name {
        "java.util.Date." => ErrorClass::IllegalArgument,
        _ => ErrorClass::DateTimeParse,
    });
    match name {
        "LocalDate/parse" if shown.contains('T') => error.hint("write (subs text 0 10) for the date of a longer text"),
        _ => error,
    }
    .into()
}

/// Returns the value of a receiver or argument of a class, `None` for nil.
pub(super) fn take<T>(name: &str, class: &str, v: Value<'_>, take: impl Fn(TimeValue) -> Option<T>) -> Res<Option<T>> {
    match v {
        Value::Nil => Ok(None),
        Value::Time(t) => match take(t.value) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong_type(name, class, v)),
        },
        other => Err(wrong_type(name, class, other)),
    }
}

/// The values that have a day.
pub(super) const MOMENT: &str = "a LocalDate, LocalDateTime or Instant";

/// Returns the day of a date, and the UTC time of day of a date with a time or an instant.
pub(super) fn moment(name: &str, v: Value<'_>) -> Res<Option<Moment>> {
    take(name, MOMENT, v, |t| match t {
        TimeValue::LocalDate(day) => Some(Moment { day, time: None, is_utc: false }),
        TimeValue::LocalDateTime(second, nano) | TimeValue::Instant(second, nano) => Some(Moment {
            day: second.div_euclid(DAY),
            time: Some((second.rem_euclid(DAY), nano)),
            is_utc: matches!(t, TimeValue::Instant(..)),
        }),
        _ => None,
    })
}

pub(super) fn local_date_time(name: &str, v: Value<'_>) -> Res<Option<(i64, u32)>> {
    take(name, "a LocalDateTime", v, |t| if let TimeValue::LocalDateTime(s, n) = t { Some((s, n)) } else { None })
}

pub(super) fn local_date(name: &str, v: Value<'_>) -> Res<Option<i64>> {
    take(name, "a LocalDate", v, |t| if let TimeValue::LocalDate(days) = t { Some(days) } else { None })
}

pub(super) fn instant(name: &str, v: Value<'_>) -> Res<Option<(i64, u32)>> {
    take(name, "an Instant", v, |t| if let TimeValue::Instant(s, n) = t { Some((s, n)) } else { None })
}

pub(super) fn duration(name: &str, v: Value<'_>) -> Res<(i64, u32)> {
    take(name, "a Duration", v, |t| if let TimeValue::Duration(s, n) = t { Some((s, n)) } else { None })?
        .ok_or_else(|| null(name))
}

/// Returns a date, a date with a time or an instant a number of days later; a longer duration for a duration.
pub(super) fn moved<'h>(h: &'h Heap, name: &str, v: Value<'h>, days: i128) -> Res<Value<'h>> {
    if let Value::Time(t) = v
        && matches!(t.value, TimeValue::Duration(..))
    {
        return away(h, name, v, days * i128::from(DAY) * i128::from(NANOS));
    }
    let from = moment(name, v)?.ok_or_else(|| null(name))?;
    match i64::try_from(i128::from(from.day) + days) {
        Ok(day) if DAYS.contains(&day) => on_day(h, name, v, day),
        _ => Err(out_of_domain(name, "the year would be beyond 999,999,999")),
    }
}

/// Returns the seconds and nanoseconds of a number of nanoseconds, if the seconds fit 64 bits.
fn split(nanos: i128) -> Option<(i64, u32)> {
    let unit = i128::from(NANOS);
    let seconds = i64::try_from(nanos.div_euclid(unit)).ok()?;
    Some((seconds, u32::try_from(nanos.rem_euclid(unit)).ok()?))
}

pub(super) fn joined(seconds: i64, nanos: u32) -> i128 {
    i128::from(seconds) * i128::from(NANOS) + i128::from(nanos)
}

pub(super) fn made_duration<'h>(h: &'h Heap, name: &str, nanos: i128) -> Res<Value<'h>> {
    match split(nanos) {
        Some((seconds, nanos)) => h.time(TimeValue::Duration(seconds, nanos)),
        None => Err(out_of_domain_as(ErrorClass::Arithmetic, name, "a duration has at most 2^63 seconds")),
    }
}

pub(super) fn made_instant<'h>(h: &'h Heap, name: &str, nanos: i128) -> Res<Value<'h>> {
    match split(nanos) {
        Some((seconds, nanos)) if SECONDS.contains(&seconds) => h.time(TimeValue::Instant(seconds, nanos)),
        _ => Err(out_of_domain(name, "the year would be beyond 1,000,000,000")),
    }
}

/// The values that can be moved by less than a day.
const MOVABLE: &str = "an Instant, a LocalDateTime or a Duration";

/// Returns an instant, a date with a time or a duration that is a number of nanoseconds later or longer.
pub(super) fn away<'h>(h: &'h Heap, name: &str, v: Value<'h>, by: i128) -> Res<Value<'h>> {
    match v {
        Value::Nil => Err(null(name)),
        Value::Time(t) => match t.value {
            TimeValue::Instant(seconds, nanos) => made_instant(h, name, joined(seconds, nanos) + by),
            TimeValue::Duration(seconds, nanos) => made_duration(h, name, joined(seconds, nanos) + by),
            TimeValue::LocalDateTime(seconds, nanos) => {
                let (seconds, nanos) = split(joined(seconds, nanos) + by)
                    .ok_or_else(|| out_of_domain(name, "the year would be beyond 999,999,999"))?;
                date_time(h, name, i128::from(seconds), nanos)
            }
            _ => Err(wrong_type(name, MOVABLE, v)),
        },
        other => Err(wrong_type(name, MOVABLE, other)),
    }
}

/// Returns a date with a time, from the seconds since 1970-01-01T00:00.
pub(super) fn date_time<'h>(h: &'h Heap, name: &str, second: i128, nano: u32) -> Res<Value<'h>> {
    match i64::try_from(second).ok().filter(|second| SECONDS.contains(second)) {
        Some(second) => h.time(TimeValue::LocalDateTime(second, nano)),
        None => Err(out_of_domain(name, "the year would be beyond 999,999,999")),
    }
}

/// Returns a value of the same class as another, at another time.
pub(super) fn like<'h>(h: &'h Heap, name: &str, v: Value<'h>, day: i64, second: i64, nano: u32) -> Res<Value<'h>> {
    let all = i128::from(day) * i128::from(DAY) + i128::from(second);
    match v {
        Value::Time(t) if matches!(t.value, TimeValue::Instant(..)) => match i64::try_from(all) {
            Ok(second) if SECONDS.contains(&second) => h.time(TimeValue::Instant(second, nano)),
            _ => Err(out_of_domain(name, "the year would be beyond 1,000,000,000")),
        },
        _ => date_time(h, name, all, nano),
    }
}

/// Returns the pattern of a formatter.
pub(super) fn pattern<'h>(h: &'h Heap, name: &str, formatter: Value<'h>) -> Res<Pattern> {
    let pattern = text(name, formatter)?.ok_or_else(|| null(name))?;
    h.charge(cost::OLD_DATE_READ + pattern.len() as u64)?;
    h.check_available(pattern.len().saturating_mul(48))?;
    Pattern::read(pattern).map_err(|why| {
        let shown: String = pattern.chars().take(60).collect();
        let message = format!("the pattern {shown:?} cannot be read: {why}");
        out_of_domain_as(ErrorClass::IllegalArgument, name, &message)
    })
}

/// Parses a text by a pattern.
pub(super) fn parse_by<'h>(h: &'h Heap, name: &str, source: &str, formatter: Value<'h>) -> Res<Moment> {
    let parsed = match formatter {
        Value::Str(s) if matches!(s.text(), "ISO_LOCAL_DATE_TIME" | "ISO_DATE_TIME") => {
            h.charge(cost::DATE_READ + cost::copied(source.len()))?;
            parse_date_time(source).map(|(day, second, nano)| Moment { day, time: Some((second, nano)), is_utc: false })
        }
        _ => {
            let pattern = pattern(h, name, formatter)?;
            h.charge(cost::parsed(source.len()))?;
            pattern.parse(source)
        }
    };
    let by = formatter.as_str().unwrap_or_default();
    parsed.ok_or_else(|| {
        unreadable(name, source, &format!("a text by the pattern {}", by.chars().take(60).collect::<String>()))
    })
}

/// Returns a value on another day, at the same time of day.
pub(super) fn on_day<'h>(h: &'h Heap, name: &str, v: Value<'h>, day: i64) -> Res<Value<'h>> {
    match moment(name, v)?.ok_or_else(|| null(name))?.time {
        Some((second, nano)) => like(h, name, v, day, second, nano),
        None => h.time(TimeValue::LocalDate(day)),
    }
}
