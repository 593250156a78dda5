//! Dates and times by a pattern such as `yyyy-MM-dd HH:mm`, like `java.time.format.DateTimeFormatter`. Names are
//! English.

use super::dates::{DAY, MONTHS, WEEKDAYS, calendar, days_of, days_of_month};
use std::fmt::Write as _;

/// The moment to write, or that was parsed: the day since 1970-01-01, and the seconds and nanoseconds of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) day: i64,
    /// `None` for a date.
    pub(crate) time: Option<(i64, u32)>,
    /// Whether the time is UTC.
    pub(crate) is_utc: bool,
}

/// The maximum number of parts of a pattern. Each takes at least one letter.
const MAX_PARTS: usize = 100;
/// The maximum length of a pattern, in bytes.
const MAX_BYTES: usize = 10_000;

const QUARTERS: [&str; 4] = ["1st quarter", "2nd quarter", "3rd quarter", "4th quarter"];
const HALVES: [&str; 2] = ["AM", "PM"];

/// A part of a date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Year,
    YearOfEra,
    Quarter,
    Month,
    Day,
    DayOfYear,
    Weekday,
    Half,
    Hour,
    /// 1 to 24
    HourFromOne,
    /// 1 to 12
    HourOfHalf,
    /// 0 to 11
    HourOfHalfFromZero,
    Minute,
    Second,
    Nano,
    MilliOfDay,
}

/// One part of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// A number of at least `min` digits, at most `max`.
    Number {
        field: Field,
        min: usize,
        max: usize,
    },
    /// The last two digits of a year from 2000 on.
    TwoDigitYear(Field),
    /// This number of digits of the second's fraction.
    Fraction(usize),
    /// A name: in full, or this number of its letters.
    Name {
        field: Field,
        letters: Option<usize>,
    },
    /// The offset from UTC, which is zero; written as `Z` if the flag says so.
    Offset {
        zulu: bool,
        text: &'static str,
    },
}

/// A parsed pattern.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
}

/// The letters that patterns may have, for an error.
pub(crate) const LETTERS: &str = "y u M L d D E Q a H h k K m s S n A X x Z, and other text in '...'";

impl Pattern {
    /// Parses a pattern, or the name of one of the constants.
    pub(crate) fn read(pattern: &str) -> Result<Pattern, String> {
        let pattern = match pattern {
            "ISO_LOCAL_DATE" | "ISO_DATE" => "uuuu-MM-dd",
            "BASIC_ISO_DATE" => "uuuuMMdd",
            _ => pattern,
        };
        if pattern.len() > MAX_BYTES {
            return Err(format!("it has more than {MAX_BYTES} bytes"));
        }
        let mut parts = Vec::new();
        let mut rest = pattern.chars().peekable();
        while let Some(c) = rest.next() {
            if parts.len() >= MAX_PARTS {
                return Err(format!("it has more than {MAX_PARTS} parts"));
            }
            if c.is_ascii_alphabetic() {
                let mut count = 1;
                while rest.next_if_eq(&c).is_some() {
                    count += 1;
                }
                parts.push(part(c, count)?);
                continue;
            }
            let mut literal = String::new();
            match c {
                '\'' => literal = quoted(&mut rest)?,
                '[' | ']' | '{' | '}' | '#' => return Err(format!("{c} is reserved; write it as '{c}'")),
                _ => literal.push(c),
            }
            match parts.last_mut() {
                Some(Part::Literal(before)) => before.push_str(&literal),
                _ => parts.push(Part::Literal(literal)),
            }
        }
        Ok(Pattern { parts })
    }

    /// Returns the moment as text.
    ///
    /// # Errors
    /// Returns the name of a part that the moment does not have.
    pub(crate) fn write(&self, moment: &Moment) -> Result<String, &'static str> {
        let mut out = String::new();
        for part in &self.parts {
            // Writing to a string cannot fail.
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::TwoDigitYear(field) => {
                    let _ = write!(out, "{:02}", value(*field, moment)?.unsigned_abs() % 100);
                }
                Part::Number { field, min, max } => number(&mut out, *field, value(*field, moment)?, (*min, *max)),
                Part::Fraction(digits) => {
                    let nanos = format!("{:09}", value(Field::Nano, moment)?);
                    out.push_str(nanos.get(..*digits).unwrap_or(&nanos));
                }
                Part::Name { field, letters } => {
                    let name = name(*field, *letters, value(*field, moment)?);
                    out.push_str(name);
                }
                Part::Offset { zulu, text } => {
                    if !moment.is_utc {
                        return Err("an offset");
                    }
                    out.push_str(if *zulu { "Z" } else { text });
                }
            }
        }
        Ok(out)
    }

    /// Parses a text to a moment.
    pub(crate) fn parse(&self, text: &str) -> Option<Moment> {
        let (mut found, mut rest, mut is_utc) = (Found::default(), text, false);
        for (i, part) in self.parts.iter().enumerate() {
            rest = match part {
                Part::Literal(literal) => rest.strip_prefix(literal.as_str())?,
                Part::TwoDigitYear(_) => {
                    let (year, rest) = digits(rest, 2, 2)?;
                    found.set(Field::Year, 2000 + year)?;
                    rest
                }
                Part::Number { field, min, max } => {
                    // Numbers of a fixed width that follow directly determine where this one ends.
                    let behind =
                        self.parts.get(i + 1..).unwrap_or_default().iter().map_while(fixed_width).sum::<usize>();
                    let behind = if min == max { 0 } else { behind };
                    let (number, rest) = read_number(rest, *field, (*min, *max), behind)?;
                    found.set(*field, number)?;
                    rest
                }
                Part::Fraction(count) => {
                    let (number, rest) = digits(rest, *count, *count)?;
                    let unit = 10i64.pow(9u32.checked_sub(u32::try_from(*count).ok()?)?);
                    found.set(Field::Nano, number * unit)?;
                    rest
                }
                Part::Name { field, letters } => {
                    let (number, rest) = read_name(rest, *field, *letters)?;
                    found.set(*field, number)?;
                    rest
                }
                Part::Offset { zulu, text } => {
                    is_utc = true;
                    match rest.strip_prefix('Z').filter(|_| *zulu) {
                        Some(rest) => rest,
                        None => rest.strip_prefix(text)?,
                    }
                }
            };
        }
        if !rest.is_empty() {
            return None;
        }
        Some(Moment { is_utc, ..found.moment()? })
    }
}

/// Returns the text between two apostrophes, or one apostrophe for two of them.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, String> {
    if rest.next_if_eq(&'\'').is_some() {
        return Ok("'".to_owned());
    }
    let mut literal = String::new();
    while let Some(c) = rest.next() {
        if c == '\'' && rest.next_if_eq(&'\'').is_none() {
            return Ok(literal);
        }
        literal.push(c);
    }
    Err("a ' is missing at its end".to_owned())
}

/// Returns the part for a letter that is repeated `count` times.
fn part(letter: char, count: usize) -> Result<Part, String> {
    let number = |field, max: usize| match count {
        1 => Ok(Part::Number { field, min: 1, max: 19 }),
        _ if count <= max => Ok(Part::Number { field, min: count, max: count }),
        _ => Err(()),
    };
    let named = |field| match count {
        3 => Ok(Part::Name { field, letters: Some(3) }),
        4 => Ok(Part::Name { field, letters: None }),
        5 => Ok(Part::Name { field, letters: Some(1) }),
        _ => Err(()),
    };
    let part = match letter {
        'y' | 'u' => {
            let field = if letter == 'u' { Field::Year } else { Field::YearOfEra };
            match count {
                2 => Ok(Part::TwoDigitYear(field)),
                _ if count < 19 => Ok(Part::Number { field, min: count, max: 19 }),
                _ => Err(()),
            }
        }
        'M' | 'L' if count < 3 => number(Field::Month, 2),
        'M' | 'L' => named(Field::Month),
        'Q' | 'q' if count < 3 => number(Field::Quarter, 2),
        'Q' | 'q' if count == 3 => Ok(Part::Name { field: Field::Quarter, letters: Some(2) }),
        'Q' | 'q' => named(Field::Quarter),
        'd' => number(Field::Day, 2),
        'D' if count == 2 => Ok(Part::Number { field: Field::DayOfYear, min: 2, max: 3 }),
        'D' => number(Field::DayOfYear, 3),
        'E' if count < 3 => Ok(Part::Name { field: Field::Weekday, letters: Some(3) }),
        'E' => named(Field::Weekday),
        'a' if count == 1 => Ok(Part::Name { field: Field::Half, letters: None }),
        'H' => number(Field::Hour, 2),
        'k' => number(Field::HourFromOne, 2),
        'h' => number(Field::HourOfHalf, 2),
        'K' => number(Field::HourOfHalfFromZero, 2),
        'm' => number(Field::Minute, 2),
        's' => number(Field::Second, 2),
        'S' if count <= 9 => Ok(Part::Fraction(count)),
        'n' => Ok(Part::Number { field: Field::Nano, min: count.min(19), max: 19 }),
        'A' => Ok(Part::Number { field: Field::MilliOfDay, min: count.min(19), max: 19 }),
        'Z' if count < 4 => Ok(Part::Offset { zulu: false, text: "+0000" }),
        'X' | 'x' => match count {
            1 => Ok(Part::Offset { zulu: letter == 'X', text: "+00" }),
            2 | 4 => Ok(Part::Offset { zulu: letter == 'X', text: "+0000" }),
            3 | 5 => Ok(Part::Offset { zulu: letter == 'X', text: "+00:00" }),
            _ => Err(()),
        },
        _ => return Err(format!("unknown pattern letter {letter}; the letters are {LETTERS}")),
    };
    part.map_err(|()| format!("there are too many letters {letter} in a row"))
}

/// Returns the value of a field, or its name if the moment does not have it.
fn value(field: Field, moment: &Moment) -> Result<i64, &'static str> {
    let (year, month, day) = calendar(moment.day);
    let time = || moment.time.ok_or("a time");
    let hour = || time().map(|time| time.0 / 3_600);
    Ok(match field {
        Field::Year => year,
        Field::YearOfEra => {
            if year > 0 {
                year
            } else {
                1 - year
            }
        }
        Field::Quarter => (month - 1) / 3 + 1,
        Field::Month => month,
        Field::Day => day,
        Field::DayOfYear => moment.day - days_of(year, 1, 1) + 1,
        // 1970-01-01 was a Thursday.
        Field::Weekday => (moment.day + 3).rem_euclid(7) + 1,
        Field::Half => hour()? / 12 + 1,
        Field::Hour => hour()?,
        Field::HourFromOne => (hour()? + 23) % 24 + 1,
        Field::HourOfHalf => (hour()? + 11) % 12 + 1,
        Field::HourOfHalfFromZero => hour()? % 12,
        Field::Minute => time()?.0 / 60 % 60,
        Field::Second => time()?.0 % 60,
        Field::Nano => i64::from(time()?.1),
        Field::MilliOfDay => time()?.0 * 1_000 + i64::from(time()?.1 / 1_000_000),
    })
}

fn is_year(field: Field) -> bool {
    matches!(field, Field::Year | Field::YearOfEra)
}

/// Adds a number with at least `min` digits. A year with more than four digits, and more than requested, gets a sign.
fn number(out: &mut String, field: Field, number: i64, (min, max): (usize, usize)) {
    let digits = number.unsigned_abs().to_string();
    if number < 0 {
        out.push('-');
    } else if is_year(field) && min >= 4 && max > min && digits.len() > min {
        out.push('+');
    }
    let _ = write!(out, "{digits:0>min$}");
}

/// Returns the names of a field, from 1 on.
fn names(field: Field) -> &'static [&'static str] {
    match field {
        Field::Month => &MONTHS,
        Field::Quarter => &QUARTERS,
        Field::Half => &HALVES,
        _ => &WEEKDAYS,
    }
}

fn short(field: Field, letters: Option<usize>, name: &'static str) -> &'static str {
    const SHORT_QUARTERS: [&str; 4] = ["Q1", "Q2", "Q3", "Q4"];
    match (field, letters) {
        (Field::Quarter, Some(2)) => QUARTERS.iter().position(|own| *own == name).map_or(name, |at| SHORT_QUARTERS[at]),
        (_, Some(letters)) => name.get(..letters).unwrap_or(name),
        (_, None) => name,
    }
}

fn name(field: Field, letters: Option<usize>, number: i64) -> &'static str {
    let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
    names(field).get(at).map_or("", |name| short(field, letters, name))
}

/// Returns the number of the longest name at the start of a text, and the rest. If several names are cut to the same
/// letters it is the last, as in Java.
fn read_name(text: &str, field: Field, letters: Option<usize>) -> Option<(i64, &str)> {
    let at_beginning = names(field).iter().enumerate().filter_map(|(i, name)| {
        let name = short(field, letters, name);
        Some((name.len(), i, text.strip_prefix(name)?))
    });
    let (_, i, rest) = at_beginning.max_by_key(|(len, i, _)| (*len, *i))?;
    Some((i64::try_from(i + 1).ok()?, rest))
}

/// Returns the width of a number that always has the same number of digits.
fn fixed_width(part: &Part) -> Option<usize> {
    match part {
        Part::Number { min, max, .. } if min == max => Some(*min),
        Part::TwoDigitYear(_) => Some(2),
        Part::Fraction(digits) => Some(*digits),
        _ => None,
    }
}

/// Returns a number of `min` to `max` digits at the start of a text, and the rest.
fn digits(text: &str, min: usize, max: usize) -> Option<(i64, &str)> {
    let count = text.bytes().take(max).take_while(u8::is_ascii_digit).count();
    if count < min {
        return None;
    }
    let (digits, rest) = text.split_at_checked(count)?;
    Some((digits.parse().ok()?, rest))
}

fn read_number(text: &str, field: Field, (min, max): (usize, usize), behind: usize) -> Option<(i64, &str)> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' if is_year(field) => (-1, text.get(1..)?),
        b'+' if is_year(field) && min >= 4 => (1, text.get(1..)?),
        _ => (0, text),
    };
    let run = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = digits(unsigned, min, max.min(run.saturating_sub(behind)))?;
    let count = unsigned.len() - rest.len();
    // A year has a sign if, and only if, it has more digits than required.
    if is_year(field) && min >= 4 && (sign == 1) != (count > min && sign != -1) {
        return None;
    }
    Some((if sign == -1 { -number } else { number }, rest))
}

/// The parsed fields.
#[derive(Default)]
struct Found {
    fields: Vec<(Field, i64)>,
}

impl Found {
    /// Sets a field. One that was set before must have the same value.
    fn set(&mut self, field: Field, number: i64) -> Option<()> {
        let range = match field {
            Field::Year => -999_999_999..=999_999_999,
            Field::YearOfEra => 1..=999_999_999,
            Field::Quarter => 1..=4,
            Field::Month | Field::HourOfHalf => 1..=12,
            Field::Day => 1..=31,
            Field::DayOfYear => 1..=366,
            Field::Weekday => 1..=7,
            Field::Half => 1..=2,
            Field::Hour => 0..=24,
            Field::HourFromOne => 1..=24,
            Field::HourOfHalfFromZero => 0..=11,
            Field::Minute | Field::Second => 0..=59,
            Field::Nano => 0..=999_999_999,
            Field::MilliOfDay => 0..=86_399_999,
        };
        let field = if field == Field::YearOfEra { Field::Year } else { field };
        if !range.contains(&number) || self.get(field).is_some_and(|before| before != number) {
            return None;
        }
        self.fields.push((field, number));
        Some(())
    }

    fn get(&self, field: Field) -> Option<i64> {
        self.fields.iter().find(|found| found.0 == field).map(|found| found.1)
    }

    /// Returns the moment that the fields describe together.
    fn moment(&self) -> Option<Moment> {
        let (time, next_day) = match self.time()? {
            Some((DAY, nanos)) => (Some((0, nanos)), 1),
            time => (time, 0),
        };
        let day = self.day()?;
        let read = Moment { day, time, is_utc: false };
        let by_month = self.get(Field::Month).is_some() && self.get(Field::Day).is_some();
        let day_too = (!by_month).then_some(Field::Day);
        for field in [Field::Weekday, Field::Quarter, Field::Month, Field::DayOfYear].into_iter().chain(day_too) {
            let is_other = |number| value(field, &read).is_ok_and(|own| own != number);
            if self.get(field).is_some_and(is_other) {
                return None;
            }
        }
        Some(Moment { day: day + next_day, ..read })
    }

    fn day(&self) -> Option<i64> {
        let year = self.get(Field::Year)?;
        match (self.get(Field::Month), self.get(Field::Day), self.get(Field::DayOfYear)) {
            // A day beyond the end of a month is its last day.
            (Some(month), Some(day), _) => Some(days_of(year, month, day.min(days_of_month(year, month)))),
            (_, _, Some(day)) => {
                let first = days_of(year, 1, 1);
                (day <= days_of(year + 1, 1, 1) - first).then_some(first + day - 1)
            }
            _ => None,
        }
    }

    /// Returns the time of day, if any; the outer `None` if the fields contradict each other.
    #[expect(clippy::option_option, reason = "no time, and one that cannot be")]
    fn time(&self) -> Option<Option<(i64, u32)>> {
        if let Some(milli) = self.get(Field::MilliOfDay) {
            let nano = u32::try_from(milli % 1_000).ok()? * 1_000_000;
            return Some(Some((milli / 1_000, nano)));
        }
        let of_half = match (self.get(Field::HourOfHalf), self.get(Field::HourOfHalfFromZero)) {
            (Some(hour), _) => Some(hour % 12),
            (None, hour) => hour,
        };
        let of_half = match (of_half, self.get(Field::Half)) {
            (Some(hour), Some(half)) => Some(hour + (half - 1) * 12),
            _ => None,
        };
        let hours = [self.get(Field::Hour), self.get(Field::HourFromOne).map(|hour| hour % 24), of_half];
        let mut hours = hours.into_iter().flatten();
        let (minute, second, nano) = (self.get(Field::Minute), self.get(Field::Second), self.get(Field::Nano));
        let Some(hour) = hours.next() else { return Some(None) };
        if hours.any(|other| other != hour) || self.get(Field::Half).is_some_and(|half| hour / 12 + 1 != half) {
            return None;
        }
        if minute.is_none() && (second.is_some() || nano.is_some()) || second.is_none() && nano.is_some() {
            return Some(None);
        }
        let (minute, second, nano) = (minute.unwrap_or(0), second.unwrap_or(0), nano.unwrap_or(0));
        if hour == 24 && (minute, second, nano) != (0, 0, 0) {
            return None;
        }
        Some(Some((hour * 3_600 + minute * 60 + second, u32::try_from(nano).ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::dates::{parse_date_time, time_text};
    use super::*;
    use crate::heap::TimeValue;

    /// What `java.time` of OpenJDK 17 does: an invalid pattern; a date and time and its texts with and without the
    /// time; or a text and its value with and without a time. An error is `!`.
    const JAVA: &str = include_str!("../../tests/java_dates.tsv");

    fn date_time(moment: &Moment) -> Option<String> {
        let (second, nano) = moment.time?;
        Some(time_text(TimeValue::LocalDateTime(moment.day * DAY + second, nano)))
    }

    #[test]
    fn patterns_do_what_javas_do() {
        let mut wrong = Vec::new();
        for line in JAVA.lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            let pattern = Pattern::read(parts[1]);
            let got = match (parts[0], &pattern) {
                ("bad", _) => vec![if pattern.is_ok() { "read" } else { "!" }.to_owned()],
                (_, Err(why)) => vec![why.clone()],
                ("format", Ok(pattern)) => {
                    let (day, second, nano) = parse_date_time(parts[2]).expect("a date and time");
                    let with = |time| pattern.write(&Moment { day, time, is_utc: false });
                    [with(Some((second, nano))), with(None)].map(|text| text.unwrap_or("!".to_owned())).to_vec()
                }
                (_, Ok(pattern)) => {
                    let read = pattern.parse(parts[2]);
                    let date = read.as_ref().map(|moment| time_text(TimeValue::LocalDate(moment.day)));
                    [read.as_ref().and_then(date_time), date].map(|text| text.unwrap_or("!".to_owned())).to_vec()
                }
            };
            let wanted = if parts[0] == "bad" { &["!"][..] } else { &parts[3..] };
            if got != wanted {
                wrong.push(format!("{line}: {got:?}"));
            }
        }
        assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), JAVA.lines().count(), wrong.join("\n"));
    }
}
