//! `instance?` for the classes that no predicate covers.

use super::exception_classes::class_number;
use super::exceptions::is_one_of;
use super::java::{DATE, DURATION, INSTANT, LOCAL_DATE, LOCAL_DATE_TIME};
use crate::context::Ctx;
use crate::heap::{Res, TimeValue, Value};

/// The classes of times. They have the first numbers, followed by those of exceptions.
const TIMES: [&str; 5] = [LOCAL_DATE, LOCAL_DATE_TIME, INSTANT, DURATION, DATE];

/// Returns the number of a class, with or without its package.
pub(crate) fn number_of(class: &str) -> Option<u16> {
    let is = |full: &str| full == class || full.rsplit_once('.').is_some_and(|(_, short)| short == class);
    let number = match TIMES.iter().position(|full| is(full)) {
        Some(time) => time,
        None => TIMES.len() + usize::from(class_number(class)?),
    };
    u16::try_from(number).ok()
}

/// Returns true if a value belongs to the class with this number.
pub(crate) fn is_instance<'h>(h: &'h Ctx, number: u16, value: Value<'h>) -> Res<bool> {
    let number = usize::from(number);
    let Some(exception) = number.checked_sub(TIMES.len()) else {
        let Value::Time(time) = value else { return Ok(false) };
        let class = match time.value {
            TimeValue::LocalDate(_) => LOCAL_DATE,
            TimeValue::LocalDateTime(..) => LOCAL_DATE_TIME,
            TimeValue::Instant(..) => INSTANT,
            TimeValue::Duration(..) => DURATION,
            TimeValue::Date(_) => DATE,
        };
        return Ok(class == TIMES[number]);
    };
    is_one_of(h, u16::try_from(exception).unwrap_or(u16::MAX), value)
}
