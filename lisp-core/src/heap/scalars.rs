//! Equality, hash and order of values that contain no others; `compare.rs` applies them to the parts of collections.
//! Keys that are equal by [`equal_leaf`] have the same hash by [`hash_leaf`] and are tied by [`order_leaf`]. Tied
//! values are equal, except functions of the program.

use super::big::{self, Big, compare_big_float};
use super::map::Map;
use super::string::{SHORT_TEXT, Str, folded, hash_bytes, hash_text, mix, text_cost};
use super::value::{TimeValue, whole};
use super::{Heap, Res, Value};
use crate::cost;
use std::cmp::Ordering;

/// The only difference between `=` and keys. For all other numbers both compare by value: 1 and 1.0 are equal, and the
/// same key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nan {
    /// `(= ##NaN ##NaN)` is false.
    EqualsNothing,
    /// NaN can be found as a map key and set member.
    IsOneKey,
}

/// Integers of up to this number of 32-bit limbs are hashed and compared within the cost of the instruction.
const SHORT_BIG: usize = SHORT_TEXT / 4;

/// Returns whether two texts are equal; `None` if the comparison is not free.
#[inline]
fn equal_texts<'h>(a: &'h Str<'h>, b: &'h Str<'h>) -> Option<bool> {
    if std::ptr::eq(a, b) {
        return Some(true);
    }
    if a.text().len() > SHORT_TEXT && a.text().len() == b.text().len() { None } else { Some(a.text() == b.text()) }
}

/// Returns whether two integers are equal; `None` if the comparison is not free.
#[inline]
fn equal_bigs(a: &Big<'_>, b: &Big<'_>) -> Option<bool> {
    if std::ptr::eq(a, b) {
        return Some(true);
    }
    if a.negative != b.negative || a.limbs.len() != b.limbs.len() {
        return Some(false);
    }
    if a.limbs.len() > SHORT_BIG { None } else { Some(a.limbs == b.limbs) }
}

/// Returns the text of a value that has one.
fn text_of<'h>(v: Value<'h>) -> Option<&'h str> {
    match v {
        Value::Str(s) | Value::Keyword(_, s) | Value::Symbol(s) | Value::Var(s) | Value::Regex(s) | Value::Tool(s) => {
            Some(s.text())
        }
        _ => None,
    }
}

/// Returns the fuel for the hash of a value that contains no others.
#[inline]
pub(super) fn hash_cost(v: Value<'_>) -> u64 {
    match v {
        Value::Str(s) | Value::Symbol(s) | Value::Var(s) | Value::Regex(s) | Value::Tool(s) => text_cost(s.text()),
        Value::Big(b) => b.limbs.len() as u64 / 4,
        _ => 0,
    }
}

/// Compares two values that contain no others; `None` for two collections of the same kind, and for long strings. The
/// callers compare the most frequent keys themselves.
#[inline]
pub(super) fn equal_leaf<'h>(a: Value<'h>, b: Value<'h>, nan: Nan) -> Option<bool> {
    match (a, b) {
        (Value::Keyword(ha, _), Value::Keyword(hb, _)) if ha != hb => Some(false),
        (Value::Keyword(_, a), Value::Keyword(_, b)) | (Value::Str(a), Value::Str(b)) => equal_texts(a, b),
        (Value::Int(a), Value::Int(b)) => Some(a == b),
        _ => equal_others(a, b, nan),
    }
}

#[inline(never)]
fn equal_others<'h>(a: Value<'h>, b: Value<'h>, nan: Nan) -> Option<bool> {
    Some(match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b || nan == Nan::IsOneKey && a.is_nan() && b.is_nan(),
        (Value::Vector(a), Value::Vector(b)) if std::ptr::eq(a, b) => true,
        (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) if std::ptr::eq(a, b) => true,
        (Value::Vector(a), Value::Vector(b)) if a.len() != b.len() => false,
        (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) if a.len() != b.len() => false,
        (Value::Vector(_), Value::Vector(_)) | (Value::Map(_), Value::Map(_)) | (Value::Set(_), Value::Set(_)) => {
            return None;
        }
        (Value::Big(a), Value::Big(b)) => return equal_bigs(a, b),
        (Value::Closure(a), Value::Closure(b)) => std::ptr::eq(a, b),
        (Value::Builtin(a), Value::Builtin(b)) => a == b,
        (Value::Composed(a), Value::Composed(b)) => std::ptr::eq(a, b),
        (Value::Endless(a), Value::Endless(b)) if std::ptr::eq(a, b) => true,
        (Value::Endless(_), Value::Endless(_) | Value::Vector(_)) | (Value::Vector(_), Value::Endless(_)) => {
            return None;
        }
        (Value::Tool(a), Value::Tool(b))
        | (Value::Regex(a), Value::Regex(b))
        | (Value::Symbol(a), Value::Symbol(b))
        | (Value::Var(a), Value::Var(b)) => return equal_texts(a, b),
        (Value::Time(a), Value::Time(b)) => a.value == b.value,
        (Value::Int(_) | Value::Big(_), Value::Float(_)) | (Value::Float(_), Value::Int(_) | Value::Big(_)) => {
            compare_numbers(a, b) == Some(Ordering::Equal)
        }
        _ => false,
    })
}

/// Compares two numbers by value, exactly; `None` for NaN and for values that are not numbers.
pub(crate) fn compare_numbers(a: Value<'_>, b: Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(&b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b),
        (Value::Int(a), Value::Float(b)) => compare_int_float(a, b),
        (Value::Float(a), Value::Int(b)) => compare_int_float(b, a).map(Ordering::reverse),
        (Value::Big(a), Value::Float(b)) => compare_big_float(a, b),
        (Value::Float(a), Value::Big(b)) => compare_big_float(b, a).map(Ordering::reverse),
        (Value::Big(a), Value::Big(b)) => Some(a.order(b)),
        (Value::Big(a), Value::Int(_)) => Some(if a.negative { Ordering::Less } else { Ordering::Greater }),
        (Value::Int(_), Value::Big(b)) => Some(if b.negative { Ordering::Greater } else { Ordering::Less }),
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the float has no fraction and is within 64 bits")]
fn compare_int_float(a: i64, b: f64) -> Option<Ordering> {
    const EXACT: i64 = 1 << 53;
    if b.is_nan() {
        return None;
    }
    if (-EXACT..=EXACT).contains(&a) {
        return (a as f64).partial_cmp(&b);
    }
    if b >= 9_223_372_036_854_775_808.0 {
        return Some(Ordering::Less);
    }
    if b < -9_223_372_036_854_775_808.0 {
        return Some(Ordering::Greater);
    }
    let whole = b.trunc() as i64;
    Some(a.cmp(&whole).then_with(|| 0.0.partial_cmp(&b.fract()).unwrap_or(Ordering::Equal)))
}

impl Heap {
    /// Compares long strings, and long integers.
    pub(super) fn equal_long<'h>(&'h self, a: Value<'h>, b: Value<'h>) -> Res<bool> {
        if let (Value::Big(a), Value::Big(b)) = (a, b) {
            self.charge(cost::limbs_compared(a.limbs.len()))?;
            return Ok(a.limbs == b.limbs);
        }
        let (Some(a), Some(b)) = (text_of(a), text_of(b)) else { return Ok(false) };
        self.charge(text_cost(a))?;
        Ok(a == b)
    }

    /// Orders long strings, and long integers.
    pub(super) fn order_long<'h>(&'h self, a: Value<'h>, b: Value<'h>) -> Res<Ordering> {
        if let (Value::Big(a), Value::Big(b)) = (a, b) {
            self.charge(cost::limbs_compared(a.limbs.len()))?;
            return Ok(a.order(b));
        }
        let (Some(a), Some(b)) = (text_of(a), text_of(b)) else { return Ok(Ordering::Equal) };
        self.charge(text_cost(a).min(text_cost(b)))?;
        Ok(a.cmp(b))
    }
}

fn hash_limbs(negative: bool, limbs: impl Iterator<Item = u32>) -> u64 {
    limbs.fold(u64::from(negative), |hash, limb| mix(hash ^ u64::from(limb)))
}

#[inline]
fn hash_word(tag: u64, w: u64) -> u32 {
    folded(mix(w ^ tag << 56))
}

#[inline]
fn hash_int(i: i64) -> u32 {
    hash_word(1, i.cast_unsigned())
}

/// Returns the hash of a value that contains no others; `None` for collections. A whole float has the hash of its
/// integer.
#[inline]
pub(super) fn hash_leaf(v: Value<'_>) -> Option<u32> {
    match v {
        Value::Keyword(hash, _) => Some(hash),
        Value::Int(i) => Some(hash_int(i)),
        _ => hash_others(v),
    }
}

#[inline(never)]
fn hash_others(v: Value<'_>) -> Option<u32> {
    Some(match v {
        Value::Keyword(hash, _) => hash,
        Value::Int(i) => hash_int(i),
        Value::Str(s) => hash_text(s.text(), false),
        Value::Nil => hash_word(2, 0),
        Value::Bool(b) => hash_word(3, u64::from(b)),
        Value::Float(f) => match whole(f) {
            Some(i) => hash_int(i),
            None if f.is_nan() => hash_word(4, f64::NAN.to_bits()),
            None if f.is_infinite() || f.trunc() != f => hash_word(4, f.to_bits()),
            None => hash_word(5, hash_limbs(f < 0.0, big::limbs(f))),
        },
        Value::Big(b) => hash_word(5, hash_limbs(b.negative, b.limbs.iter().copied())),
        Value::Symbol(s) | Value::Var(s) | Value::Regex(s) | Value::Tool(s) => hash_bytes(s.text().as_bytes()) ^ 0x77,
        Value::Builtin(id) => hash_word(6, u64::from(id.0)),
        Value::Time(t) => match t.value {
            TimeValue::LocalDate(d) => hash_word(7, d.cast_unsigned()),
            TimeValue::Instant(s, n) => hash_word(8, s.cast_unsigned() ^ u64::from(n) << 32),
            TimeValue::Duration(s, n) => hash_word(9, s.cast_unsigned() ^ u64::from(n) << 32),
            TimeValue::Date(ms) => hash_word(10, ms.cast_unsigned()),
            TimeValue::LocalDateTime(s, n) => hash_word(11, s.cast_unsigned() ^ u64::from(n) << 32),
        },
        // Functions move with the heap, so their address cannot be their hash.
        Value::Closure(_) | Value::Composed(_) => 11,
        Value::VecBuilder(_) | Value::MapBuilder(_) | Value::Unset => 12,
        Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Endless(_) => return None,
    })
}

/// Returns the position of a value's kind in the total order.
fn rank(v: Value<'_>) -> u8 {
    match v {
        Value::Int(_) | Value::Float(_) | Value::Big(_) => 0,
        Value::Nil => 1,
        Value::Bool(_) => 2,
        Value::Keyword(..) => 3,
        Value::Symbol(_) => 4,
        Value::Var(_) => 5,
        // Functions of the program have no order among them: they are the same, or tied.
        Value::Closure(_) | Value::Composed(_) => 6,
        Value::Builtin(_) => 7,
        Value::Tool(_) => 8,
        Value::Regex(_) => 9,
        Value::Time(_) => 10,
        Value::Map(_) => 11,
        Value::Set(_) => 12,
        Value::Vector(_) => 13,
        Value::Str(_) => 14,
        Value::Endless(_) | Value::VecBuilder(_) | Value::MapBuilder(_) | Value::Unset => 15,
    }
}

/// Orders two values that contain no others, with NaN after all numbers; `None` for two collections of the same kind
/// and length, and for long strings.
#[inline]
pub(super) fn order_leaf<'h>(a: Value<'h>, b: Value<'h>) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(&b)),
        _ => order_others(a, b),
    }
}

#[inline(never)]
fn order_others<'h>(a: Value<'h>, b: Value<'h>) -> Option<Ordering> {
    let ranks = rank(a).cmp(&rank(b));
    if ranks != Ordering::Equal {
        return Some(ranks);
    }
    let size = |m: &Map<'_>, n: &Map<'_>| match m.len().cmp(&n.len()) {
        Ordering::Equal if m.is_empty() => Some(Ordering::Equal),
        Ordering::Equal => None,
        order => Some(order),
    };
    match (a, b) {
        (Value::Str(a), Value::Str(b))
        | (Value::Keyword(_, a), Value::Keyword(_, b))
        | (Value::Symbol(a), Value::Symbol(b))
        | (Value::Var(a), Value::Var(b))
        | (Value::Tool(a), Value::Tool(b))
        | (Value::Regex(a), Value::Regex(b)) => {
            let long = a.text().len().min(b.text().len()) > SHORT_TEXT && !std::ptr::eq(a, b);
            if long { None } else { Some(a.text().cmp(b.text())) }
        }
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(&b)),
        (Value::Builtin(a), Value::Builtin(b)) => Some(a.0.cmp(&b.0)),
        (Value::Time(a), Value::Time(b)) => {
            let key = |t: TimeValue| match t {
                TimeValue::LocalDate(d) => (0, d, 0),
                TimeValue::Instant(s, n) => (1, s, n),
                TimeValue::Duration(s, n) => (2, s, n),
                TimeValue::Date(ms) => (3, ms, 0),
                TimeValue::LocalDateTime(s, n) => (4, s, n),
            };
            Some(key(a.value).cmp(&key(b.value)))
        }
        (Value::Vector(a), Value::Vector(b)) if std::ptr::eq(a, b) => Some(Ordering::Equal),
        (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) if std::ptr::eq(a, b) => Some(Ordering::Equal),
        (Value::Vector(a), Value::Vector(b)) => {
            // Comparing elements first would put a shorter vector before longer ones with the same beginning. Here
            // length decides, as in the order of tuples of the reference implementation.
            let order = a.len().cmp(&b.len());
            if order == Ordering::Equal && !a.is_empty() { None } else { Some(order) }
        }
        (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) => size(a, b),
        (Value::Big(a), Value::Big(b)) if a.is_as_long_as(b) && !std::ptr::eq(a, b) && a.limbs.len() > SHORT_BIG => {
            None
        }
        _ if rank(a) == 0 => {
            let nan = |v: Value<'_>| matches!(v, Value::Float(f) if f.is_nan());
            Some(compare_numbers(a, b).unwrap_or_else(|| nan(a).cmp(&nan(b))))
        }
        _ => Some(Ordering::Equal),
    }
}
