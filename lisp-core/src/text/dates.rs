//! Dates and times as text: the calendar, and the ISO 8601 forms.
//!
//! The calendar is the proleptic Gregorian one of `java.time`, with years up to 999,999,999 in both directions. The
//! crate `jiff` is not used because its years go from -9,999 to 9,999: it would reject dates that `LocalDate` accepts.

use crate::heap::TimeValue;
use std::fmt::Write as _;

/// The names of the months.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// The names of the days of the week.
pub(crate) const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Seconds per day.
pub(crate) const DAY: i64 = 86_400;
/// Nanoseconds per second.
pub(crate) const NANOS: u32 = 1_000_000_000;
/// The range of days of a `LocalDate`.
pub(crate) const DAYS: std::ops::RangeInclusive<i64> = -365_243_219_162..=365_241_780_471;
/// The range of seconds of an `Instant`.
pub(crate) const SECONDS: std::ops::RangeInclusive<i64> = -31_557_014_167_219_200..=31_556_889_864_403_199;

/// Returns the days since 1970-01-01. Internally a year starts in March, so that the leap day is its last.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = if month > 2 { month - 3 } else { month + 9 };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let in_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year * 365 + year / 4 - year / 100 + in_year - 719_468
}

/// Returns true if this day exists.
pub(crate) fn is_date(year: i64, month: i64, day: i64) -> bool {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=last).contains(&day)
}

/// Returns a number of `count` digits at the start of a text, and the rest.
pub(crate) fn leading_digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let digits = text.get(..count)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, &text[count..]))
}

/// Parses an ISO 8601 date: four digits of the year, or a sign and up to ten.
pub(crate) fn parse_date(text: &str, max: i64) -> Option<i64> {
    /// A sign, ten digits of the year, and the rest. Longer texts are rejected without parsing.
    const LONGEST: usize = 1 + 10 + "-01-02".len();
    if text.len() > LONGEST {
        return None;
    }
    let digits = text.trim_start_matches(['+', '-']);
    let length = digits.bytes().take_while(|b| b.is_ascii_digit()).count();
    let (lengths, sign) = match (text.len() - digits.len(), text.as_bytes().first()?) {
        (0, _) => (4..=4, 1),
        (1, b'+') => (5..=10, 1),
        (1, _) => (4..=10, -1),
        _ => return None,
    };
    if !lengths.contains(&length) {
        return None;
    }
    let (year, rest) = leading_digits(digits, length)?;
    let (month, rest) = leading_digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = leading_digits(rest.strip_prefix('-')?, 2)?;
    let valid = rest.is_empty() && year <= max && (sign == 1 || year > 0) && is_date(sign * year, month, day);
    valid.then(|| days_of(sign * year, month, day))
}

/// Hours, minutes, seconds and nanoseconds, the last two optional in that order, and the rest of the text.
struct Clock<'t> {
    hour: i64,
    minute: i64,
    second: i64,
    nano: u32,
    rest: &'t str,
}

fn parse_clock(text: &str) -> Option<Clock<'_>> {
    let (hour, rest) = leading_digits(text, 2)?;
    let (minute, rest) = leading_digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = leading_digits(rest.strip_prefix(':')?, 2)?;
    parse_fraction(Clock { hour, minute, second, nano: 0, rest })
}

/// Returns the clock with the fraction of its second, if one follows.
fn parse_fraction(clock: Clock<'_>) -> Option<Clock<'_>> {
    let (mut nano, mut rest) = (0, clock.rest);
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = fraction.bytes().take_while(|b| b.is_ascii_digit()).count();
        if length > 9 {
            return None;
        }
        nano = fraction[..length].bytes().fold(0, |sum, b| sum * 10 + u32::from(b - b'0'));
        nano *= 10u32.pow(9 - u32::try_from(length).ok()?);
        rest = &fraction[length..];
    }
    Some(Clock { nano, rest, ..clock })
}

/// Parses an ISO 8601 date with a time, without an offset: the day, the seconds of the day, and nanoseconds.
pub(crate) fn parse_date_time(text: &str) -> Option<(i64, i64, u32)> {
    let (date, rest) = text.rsplit_once(['T', 't'])?;
    let day = parse_date(date, 999_999_999)?;
    let (hour, rest) = leading_digits(rest, 2)?;
    let (minute, rest) = leading_digits(rest.strip_prefix(':')?, 2)?;
    let mut clock = Clock { hour, minute, second: 0, nano: 0, rest };
    if let Some(seconds) = rest.strip_prefix(':') {
        let (second, rest) = leading_digits(seconds, 2)?;
        clock = parse_fraction(Clock { second, rest, ..clock })?;
    }
    let is_time = clock.rest.is_empty() && clock.hour < 24 && clock.minute < 60 && clock.second < 60;
    is_time.then_some((day, clock.hour * 3_600 + clock.minute * 60 + clock.second, clock.nano))
}

/// Returns the seconds of an offset: `Z`, `+01:00` or `-01:00:30`, at most 18 hours.
fn parse_offset(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hour, rest) = leading_digits(rest, 2)?;
    let (minute, rest) = leading_digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = if rest.is_empty() { (0, rest) } else { leading_digits(rest.strip_prefix(':')?, 2)? };
    let seconds = hour * 3_600 + minute * 60 + second;
    (rest.is_empty() && minute < 60 && second < 60 && seconds <= 18 * 3_600).then_some(sign * seconds)
}

pub(crate) fn parse_instant(text: &str) -> Option<(i64, u32)> {
    let (date, rest) = text.rsplit_once(['T', 't'])?;
    let days = parse_date(date, 1_000_000_000)?;
    let clock = parse_clock(rest)?;
    let offset = parse_offset(clock.rest)?;
    let second = match (clock.hour, clock.minute, clock.second) {
        // The end of the day, and the leap second, which is mapped to the second before it.
        (24, 0, 0) if clock.nano == 0 => DAY,
        (23, 59, 60) => DAY - 1,
        (h, m, s) if h < 24 && m < 60 && s < 60 => h * 3_600 + m * 60 + s,
        _ => return None,
    };
    let second = days * DAY + second - offset;
    SECONDS.contains(&second).then_some((second, clock.nano))
}

/// Returns true for an ISO 8601 point in time, as parsed by `Instant/parse`.
pub fn is_instant_text(text: &str) -> bool {
    parse_instant(text).is_some()
}

/// Returns the ISO 8601 text of a time value.
pub(crate) fn time_text(value: TimeValue) -> String {
    match value {
        TimeValue::LocalDate(days) => date_text(i128::from(days)),
        TimeValue::Instant(seconds, nanos) => instant_text(i128::from(seconds), nanos),
        TimeValue::LocalDateTime(seconds, nanos) => date_time_text(i128::from(seconds), nanos, false),
        TimeValue::Date(millis) => {
            let (seconds, rest) = (millis.div_euclid(1_000), millis.rem_euclid(1_000));
            // A remainder is below 1,000.
            instant_text(i128::from(seconds), u32::try_from(rest).unwrap_or_default() * 1_000_000)
        }
        TimeValue::Duration(seconds, nanos) => duration_text(seconds, nanos),
    }
}

/// Returns the year, month and day of a number of days since 1970-01-01.
pub(crate) fn calendar(days: i64) -> (i64, i64, i64) {
    let (year, month, day) = wide_calendar(i128::from(days));
    // There are fewer years than days, and the rest are small.
    let narrow = |n: i128| i64::try_from(n).unwrap_or_default();
    (narrow(year), narrow(month), narrow(day))
}

/// Returns the number of days of a month.
pub(crate) fn days_of_month(year: i64, month: i64) -> i64 {
    (28..=31).rev().find(|&day| is_date(year, month, day)).unwrap_or(0)
}

/// Returns the year, month and day, for any number of days.
fn wide_calendar(days: i128) -> (i128, i128, i128) {
    // Days are counted from 1 March of year 0 in cycles of 400 years, so that the leap day comes last.
    const CYCLE: i128 = 146_097;
    let days = days + 719_468;
    let (cycle, day) = (days.div_euclid(CYCLE), days.rem_euclid(CYCLE));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    (year + cycle * 400 + i128::from(month <= 2), month, day)
}

/// Years outside of 0 to 9999 have a sign.
fn date_text(days: i128) -> String {
    let (year, month, day) = wide_calendar(days);
    let sign = match year {
        ..0 => "-",
        0..=9_999 => "",
        _ => "+",
    };
    format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}

fn instant_text(seconds: i128, nanos: u32) -> String {
    let mut text = date_time_text(seconds, nanos, true);
    text.push('Z');
    text
}

/// Returns a date and time; zero seconds are left out unless `in_full`.
fn date_time_text(seconds: i128, nanos: u32, in_full: bool) -> String {
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let mut text = date_text(day);
    // Writing to a string cannot fail.
    let _ = write!(text, "T{:02}:{:02}", second / 3_600, second / 60 % 60);
    if in_full || second % 60 != 0 || nanos != 0 {
        let _ = write!(text, ":{:02}", second % 60);
    }
    let _ = match nanos {
        0 => Ok(()),
        n if n % 1_000_000 == 0 => write!(text, ".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => write!(text, ".{:06}", n / 1_000),
        n => write!(text, ".{n:09}"),
    };
    text
}

fn duration_text(seconds: i64, nanos: u32) -> String {
    if seconds == 0 && nanos == 0 {
        return "PT0S".to_owned();
    }
    // Below zero the fraction counts towards zero: -1.5 s is stored as -2 s and 0.5 s.
    let borrowed = seconds < 0 && nanos > 0;
    let (whole, fraction) = if borrowed { (seconds + 1, 1_000_000_000 - nanos) } else { (seconds, nanos) };
    let mut text = "PT".to_owned();
    for (amount, unit) in [(whole / 3_600, 'H'), (whole / 60 % 60, 'M')] {
        if amount != 0 {
            let _ = write!(text, "{amount}{unit}");
        }
    }
    let rest = whole % 60;
    if rest == 0 && fraction == 0 {
        return text;
    }
    let sign = if rest == 0 && borrowed { "-" } else { "" };
    let _ = write!(text, "{sign}{rest}");
    if fraction > 0 {
        let digits = format!("{fraction:09}");
        let _ = write!(text, ".{}", digits.trim_end_matches('0'));
    }
    text.push('S');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_iso_texts() {
        for (value, text) in [
            (TimeValue::LocalDate(19_724), "2024-01-02"),
            (TimeValue::LocalDate(-719_528), "0000-01-01"),
            (TimeValue::LocalDate(-719_529), "-0001-12-31"),
            (TimeValue::LocalDate(2_932_897), "+10000-01-01"),
            (TimeValue::Instant(-1, 500_000_000), "1969-12-31T23:59:59.500Z"),
            (TimeValue::Instant(0, 123_456_789), "1970-01-01T00:00:00.123456789Z"),
            (TimeValue::LocalDateTime(0, 0), "1970-01-01T00:00"),
            (TimeValue::LocalDateTime(-1, 5_000), "1969-12-31T23:59:59.000005"),
            (TimeValue::LocalDateTime(60, 1_000_000), "1970-01-01T00:01:00.001"),
            (TimeValue::Date(1), "1970-01-01T00:00:00.001Z"),
            (TimeValue::Date(-1), "1969-12-31T23:59:59.999Z"),
            (TimeValue::Duration(0, 0), "PT0S"),
            (TimeValue::Duration(-2, 500_000_000), "PT-1.5S"),
            (TimeValue::Duration(-1, 500_000_000), "PT-0.5S"),
            (TimeValue::Duration(3_661, 1), "PT1H1M1.000000001S"),
            (TimeValue::Duration(7_200, 0), "PT2H"),
        ] {
            assert_eq!(time_text(value), text);
        }
        for extreme in [i64::MIN, i64::MAX] {
            let _ = time_text(TimeValue::LocalDate(extreme));
            let _ = time_text(TimeValue::Instant(extreme, 1));
            let _ = time_text(TimeValue::LocalDateTime(extreme, 1));
            let _ = time_text(TimeValue::Duration(extreme, 1));
            let _ = time_text(TimeValue::Date(extreme));
        }
    }
}
