//! Order statistics: `median` and `percentile`.

use super::args::{self, type_error};
use super::numbers::{add, charge_comparison, div, mul, not_a_number, sub};
use super::{Builtin, comparison};
use crate::context::Ctx;
use crate::cost;
use crate::error::{Error, Reason};
use crate::heap::{Heap, Res, Value, merge_sort};
use crate::text::describe;

/// Returns the numbers of a collection in order; nil is skipped.
fn in_order<'h>(h: &'h Heap, name: &str, coll: Value<'h>) -> Res<Vec<Value<'h>>> {
    let items = args::seq(h, name, coll)?;
    h.charge(cost::sorted(items.len()).saturating_add(items.len() as u64))?;
    h.check_available(items.len().saturating_mul(std::mem::size_of::<Value<'_>>()))?;
    let mut numbers = Vec::with_capacity(items.len());
    for &item in items {
        match item {
            Value::Nil => {}
            _ if item.is_number() => numbers.push(item),
            other => return Err(not_a_number(name, other)),
        }
    }
    merge_sort(h, &mut numbers, |a, b| {
        charge_comparison(h, a, b)?;
        comparison::compare_values(h, a, b)
    })?;
    Ok(numbers)
}

fn median<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let numbers = in_order(h, "median", args[0])?;
    let half = numbers.len() / 2;
    match (numbers.get(half.wrapping_sub(1)), numbers.get(half)) {
        (_, Some(&middle)) if numbers.len() % 2 == 1 => Ok(middle),
        (Some(&below), Some(&above)) => {
            let two = Value::Int(2);
            match add(h, below, above)? {
                sum if overflows(sum, below, above) => add(h, div(h, below, two)?, div(h, above, two)?),
                sum => div(h, sum, two),
            }
        }
        _ => Ok(Value::Nil),
    }
}

/// Returns whether a sum or difference of two finite numbers is beyond the range of floats.
fn overflows(result: Value<'_>, a: Value<'_>, b: Value<'_>) -> bool {
    let is_finite = |v: Value<'_>| v.as_f64().is_some_and(f64::is_finite);
    matches!(result, Value::Float(f) if f.is_infinite()) && is_finite(a) && is_finite(b)
}

fn percentile<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let name = "percentile";
    let percent = match (args[0], args[1]) {
        (Value::Vector(_), percent) if percent.is_number() => {
            let error = format!("percentile expects a number and a collection, got {}", describe(args[0]));
            return Err(Error::new(Reason::TypeError, error).hint("write (percentile p coll)").into());
        }
        (Value::Int(_) | Value::Float(_), _) => args[0].as_f64().unwrap_or(f64::NAN),
        (other, _) => return Err(type_error(name, "a number from 0 to 100", other)),
    };
    if !(0.0..=100.0).contains(&percent) {
        return Err(type_error(name, "a number from 0 to 100", args[0]));
    }
    let numbers = in_order(h, name, args[1])?;
    let Some(last) = numbers.len().checked_sub(1) else { return Ok(Value::Nil) };
    let (below, share) = place(percent, last);
    match (numbers.get(below), numbers.get(below + 1)) {
        (Some(&low), Some(&high)) if share > 0.0 => {
            let part = |v: Value<'h>, share: f64| mul(h, v, Value::Float(share));
            match sub(h, high, low)? {
                gap if overflows(gap, high, low) => add(h, part(low, 1.0 - share)?, part(high, share)?),
                gap => add(h, low, part(gap, share)?),
            }
        }
        (Some(&low), _) => Ok(low),
        (None, _) => Ok(Value::Nil),
    }
}

/// Returns the index at or below the position of a percentile among elements up to index `last`, and the distance of
/// the position from it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the place is between 0 and the last index"
)]
fn place(percent: f64, last: usize) -> (usize, f64) {
    let place = percent * last as f64 / 100.0;
    ((place.floor() as usize).min(last), place.fract())
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("median", 1, 1, "(median coll)", median).doc(
        "Returns the middle number, or the mean of the two in the middle, or nil if there are none; nil elements are ignored.",
        &[
            ("(median [3 1 2])", "2"),
            ("(median [4 1 3 2])", "2.5"),
            ("(median [nil])", "nil"),
            ("(median [\"a\"])", "!type_error"),
            ("(median 5)", "!type_error"),
        ],
    ),
    Builtin::direct("percentile", 2, 2, "(percentile p coll)", percentile).doc(
        "Returns the p-th percentile, interpolated between two numbers where needed; nil elements are ignored.",
        &[
            ("(percentile 50 [10 20 30])", "20"),
            ("(percentile 90 [1 2 3 4 5])", "4.6"),
            ("(percentile 95 [])", "nil"),
            ("(percentile 101 [1])", "!type_error"),
            ("(percentile [1 2] 50)", "!type_error"),
        ],
    ),
];
