//! Equality, hashing and the total order of values. Nothing here recurses: a vector nested a million deep is compared
//! with a work list, whose memory is metered.

use super::big::{Big, compare_big_float};
use super::map::Map;
use super::string::{SHORT_TEXT, Str, folded, hash_bytes, hash_text, mix, text_cost};
use super::value::TimeValue;
use super::{Heap, Res, Value, Work};
use crate::cost;
use crate::error::Error;
use std::cmp::Ordering;

/// Which numbers are the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// `(= 1 1.0)`
    ByValue,
    /// as map keys and set members 1 and 1.0 differ
    ByKind,
}

/// Integers of up to this number of 32-bit limbs are hashed and compared within the cost of the instruction.
const SHORT_BIG: usize = SHORT_TEXT / 4;

/// Are two texts the same? `None` when that is not to be said for nothing.
#[inline]
fn equal_texts<'h>(a: &'h Str<'h>, b: &'h Str<'h>) -> Option<bool> {
    if std::ptr::eq(a, b) {
        return Some(true);
    }
    if a.text().len() > SHORT_TEXT && a.text().len() == b.text().len() { None } else { Some(a.text() == b.text()) }
}

/// Are two integers the same? `None` when that is not to be said for nothing.
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

/// The text of a value that is one.
fn text_of<'h>(v: Value<'h>) -> Option<&'h str> {
    match v {
        Value::Str(s) | Value::Keyword(_, s) | Value::Symbol(s) | Value::Var(s) | Value::Regex(s) | Value::Tool(s) => {
            Some(s.text())
        }
        _ => None,
    }
}

/// Fuel for the hash of a value that holds no others.
#[inline]
fn hash_cost(v: Value<'_>) -> u64 {
    match v {
        Value::Str(s) | Value::Symbol(s) | Value::Var(s) | Value::Regex(s) | Value::Tool(s) => text_cost(s.text()),
        Value::Big(b) => b.limbs.len() as u64 / 4,
        _ => 0,
    }
}

/// Compares two values that hold no others; `None` for two collections of the same kind, and for long texts.
#[inline]
fn equal_leaf<'h>(a: Value<'h>, b: Value<'h>, numbers: Numbers) -> Option<bool> {
    Some(match (a, b) {
        (Value::Keyword(ha, _), Value::Keyword(hb, _)) if ha != hb => false,
        (Value::Keyword(_, a), Value::Keyword(_, b)) | (Value::Str(a), Value::Str(b)) => return equal_texts(a, b),
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => match numbers {
            Numbers::ByValue => a == b,
            Numbers::ByKind => a == b || (a.is_nan() && b.is_nan()),
        },
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
            numbers == Numbers::ByValue && compare_numbers(a, b) == Some(Ordering::Equal)
        }
        _ => false,
    })
}

/// Compares two numbers by value, exactly; `None` with NaN or what is no number.
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
    /// `(= a b)`
    #[inline]
    pub(crate) fn equal<'h>(&'h self, a: Value<'h>, b: Value<'h>) -> Res<bool> {
        match equal_leaf(a, b, Numbers::ByValue) {
            Some(same) => Ok(same),
            None => self.equal_deep(a, b, Numbers::ByValue),
        }
    }

    /// Are two values one map key?
    #[inline]
    pub(crate) fn same_key<'h>(&'h self, a: Value<'h>, b: Value<'h>) -> Res<bool> {
        match equal_leaf(a, b, Numbers::ByKind) {
            Some(same) => Ok(same),
            None => self.equal_deep(a, b, Numbers::ByKind),
        }
    }

    fn equal_deep<'h>(&'h self, a: Value<'h>, b: Value<'h>, numbers: Numbers) -> Res<bool> {
        let mut work = Work::new(self);
        work.push((a, b))?;
        while let Some((a, b)) = work.pop() {
            self.charge(1)?;
            if let Some(same) = equal_leaf(a, b, numbers) {
                if !same {
                    return Ok(false);
                }
                continue;
            }
            match (a, b) {
                (Value::Vector(a), Value::Vector(b)) => {
                    self.charge(a.len() as u64)?;
                    for (&x, &y) in a.items().iter().zip(b.items()).rev() {
                        self.poll_every(1)?;
                        match equal_leaf(x, y, numbers) {
                            Some(true) => {}
                            Some(false) => return Ok(false),
                            None => work.push((x, y))?,
                        }
                    }
                }
                (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) => {
                    self.charge(cost::placed(a.len()))?;
                    for (key, x) in a.entries(self)?.iter() {
                        match b.get(self, key)? {
                            Some(y) => work.push((x, y))?,
                            None => return Ok(false),
                        }
                    }
                }
                (Value::Big(a), Value::Big(b)) => {
                    self.charge(cost::limbs_compared(a.limbs.len()))?;
                    if a.limbs != b.limbs {
                        return Ok(false);
                    }
                }
                (Value::Endless(_), _) | (_, Value::Endless(_)) => return Err(Error::endless("=").into()),
                _ => match (text_of(a), text_of(b)) {
                    (Some(a), Some(b)) => {
                        self.charge(text_cost(a))?;
                        if a != b {
                            return Ok(false);
                        }
                    }
                    _ => return Ok(false),
                },
            }
        }
        Ok(true)
    }

    /// The hash of a key: equal keys have equal hashes.
    #[inline]
    pub(crate) fn hash<'h>(&'h self, v: Value<'h>) -> Res<u32> {
        match v {
            // The usual keys, which cost nothing.
            Value::Str(s) if s.text().len() <= SHORT_TEXT => Ok(hash_text(s.text(), false)),
            Value::Keyword(hash, _) => Ok(hash),
            other => self.hash_any(other),
        }
    }

    fn hash_any<'h>(&'h self, v: Value<'h>) -> Res<u32> {
        let cost = hash_cost(v);
        if cost > 0 {
            self.charge(cost)?;
        }
        if let Some(hash) = hash_leaf(v) {
            return Ok(hash);
        }
        // Maps and sets add up the hashes of their entries, so the order of a walk does not matter; every part is
        // mixed with the depth and place it stands at.
        let mut sum = 0u64;
        let mut work = Work::new(self);
        work.push((v, 1u64))?;
        while let Some((v, seed)) = work.pop() {
            self.charge(1 + hash_cost(v))?;
            if let Some(hash) = hash_leaf(v) {
                sum = sum.wrapping_add(mix(u64::from(hash) ^ seed));
                continue;
            }
            match v {
                Value::Vector(items) => {
                    sum = sum.wrapping_add(mix(seed ^ (items.len() as u64) << 8));
                    for (i, &item) in items.items().iter().enumerate() {
                        self.poll_every(1)?;
                        work.push((item, mix(seed.wrapping_add(i as u64 + 1))))?;
                    }
                }
                Value::Map(map) | Value::Set(map) => {
                    sum = sum.wrapping_add(mix(seed ^ (map.len() as u64) << 9));
                    for (key, value) in map.entries(self)?.iter() {
                        // The value's seed depends on its key only where that is cheap to know.
                        self.charge(hash_cost(key))?;
                        let place = hash_leaf(key).map_or(seed, |h| mix(seed ^ u64::from(h)));
                        work.push((key, mix(seed ^ 7)))?;
                        work.push((value, place))?;
                    }
                }
                Value::Endless(_) => return Err(Error::without_end("an endless sequence is no key").into()),
                _ => {}
            }
        }
        Ok(folded(sum))
    }

    /// The total order of values by kind, then by value: the order in which maps and sets are walked.
    pub(crate) fn order<'h>(&'h self, a: Value<'h>, b: Value<'h>) -> Res<Ordering> {
        if let (Value::Int(a), Value::Int(b)) = (a, b) {
            return Ok(a.cmp(&b));
        }
        if let Some(order) = order_leaf(a, b) {
            return Ok(order);
        }
        let mut work = Work::new(self);
        work.push((a, b))?;
        while let Some((a, b)) = work.pop() {
            self.charge(1)?;
            match order_leaf(a, b) {
                Some(Ordering::Equal) => {}
                Some(order) => return Ok(order),
                None => match (a, b) {
                    (Value::Vector(a), Value::Vector(b)) => {
                        self.charge(a.len() as u64)?;
                        for (&x, &y) in a.items().iter().zip(b.items()).rev() {
                            self.poll_every(1)?;
                            work.push((x, y))?;
                        }
                    }
                    (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) => {
                        let (a, b) = (a.entries(self)?, b.entries(self)?);
                        self.charge(a.len() as u64)?;
                        for (x, y) in a.iter().zip(b.iter()).rev() {
                            self.poll_every(1)?;
                            work.push((x.1, y.1))?;
                        }
                        for (x, y) in a.iter().zip(b.iter()).rev() {
                            self.poll_every(1)?;
                            work.push((x.0, y.0))?;
                        }
                    }
                    (Value::Big(a), Value::Big(b)) => {
                        self.charge(cost::limbs_compared(a.limbs.len()))?;
                        let order = a.order(b);
                        if order != Ordering::Equal {
                            return Ok(order);
                        }
                    }
                    _ => {
                        if let (Some(a), Some(b)) = (text_of(a), text_of(b)) {
                            self.charge(text_cost(a).min(text_cost(b)))?;
                            let order = a.cmp(b);
                            if order != Ordering::Equal {
                                return Ok(order);
                            }
                        }
                    }
                },
            }
        }
        Ok(Ordering::Equal)
    }
}

fn hash_leaf(v: Value<'_>) -> Option<u32> {
    let word = |tag: u64, w: u64| folded(mix(w ^ tag << 56));
    Some(match v {
        Value::Keyword(hash, _) => hash,
        Value::Str(s) => hash_text(s.text(), false),
        Value::Int(i) => word(1, i.cast_unsigned()),
        Value::Nil => word(2, 0),
        Value::Bool(b) => word(3, u64::from(b)),
        // One key are the zeros of both signs, and all that is no number.
        Value::Float(0.0) => word(4, 0),
        Value::Float(f) => word(4, if f.is_nan() { f64::NAN } else { f }.to_bits()),
        Value::Big(b) => word(5, b.limbs.iter().fold(u64::from(b.negative), |h, &limb| mix(h ^ u64::from(limb)))),
        Value::Symbol(s) | Value::Var(s) | Value::Regex(s) | Value::Tool(s) => hash_bytes(s.text().as_bytes()) ^ 0x77,
        Value::Builtin(id) => word(6, u64::from(id.0)),
        Value::Time(t) => match t.value {
            TimeValue::LocalDate(d) => word(7, d.cast_unsigned()),
            TimeValue::Instant(s, n) => word(8, s.cast_unsigned() ^ u64::from(n) << 32),
            TimeValue::Duration(s, n) => word(9, s.cast_unsigned() ^ u64::from(n) << 32),
            TimeValue::Date(ms) => word(10, ms.cast_unsigned()),
        },
        // Functions move with the heap, so their address is no hash.
        Value::Closure(_) | Value::Composed(_) => 11,
        Value::VecBuilder(_) | Value::MapBuilder(_) | Value::Unset => 12,
        Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Endless(_) => return None,
    })
}

/// The place of a value's kind in the total order.
fn rank(v: Value<'_>) -> u8 {
    match v {
        Value::Int(_) | Value::Float(_) | Value::Big(_) => 0,
        Value::Nil => 1,
        Value::Bool(_) => 2,
        Value::Keyword(..) => 3,
        Value::Symbol(_) | Value::Var(_) => 4,
        Value::Closure(_) | Value::Builtin(_) | Value::Composed(_) | Value::Tool(_) => 5,
        Value::Regex(_) | Value::Time(_) => 6,
        Value::Map(_) => 7,
        Value::Set(_) => 8,
        Value::Vector(_) => 9,
        Value::Str(_) => 10,
        Value::Endless(_) | Value::VecBuilder(_) | Value::MapBuilder(_) | Value::Unset => 11,
    }
}

fn order_leaf<'h>(a: Value<'h>, b: Value<'h>) -> Option<Ordering> {
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
        | (Value::Symbol(a) | Value::Var(a), Value::Symbol(b) | Value::Var(b))
        | (Value::Regex(a), Value::Regex(b)) => {
            let long = a.text().len().min(b.text().len()) > SHORT_TEXT && !std::ptr::eq(a, b);
            if long { None } else { Some(a.text().cmp(b.text())) }
        }
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(&b)),
        (Value::Time(a), Value::Time(b)) => {
            let key = |t: TimeValue| match t {
                TimeValue::LocalDate(d) => (0, d, 0),
                TimeValue::Instant(s, n) => (1, s, n),
                TimeValue::Duration(s, n) => (2, s, n),
                TimeValue::Date(ms) => (3, ms, 0),
            };
            Some(key(a.value).cmp(&key(b.value)))
        }
        (Value::Vector(a), Value::Vector(b)) => {
            // Shorter vectors first among those with an equal beginning would need both; length decides, as in the
            // reference's order of tuples.
            let order = a.len().cmp(&b.len());
            if order == Ordering::Equal && !a.is_empty() { None } else { Some(order) }
        }
        (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) => size(a, b),
        (Value::Big(a), Value::Big(b)) if a.is_as_long_as(b) && !std::ptr::eq(a, b) && a.limbs.len() > SHORT_BIG => {
            None
        }
        _ if rank(a) == 0 => Some(order_numbers(a, b)),
        _ => Some(Ordering::Equal),
    }
}

/// Numbers by value, NaN last; of equal ones the integer first, so that distinct keys never tie.
fn order_numbers(a: Value<'_>, b: Value<'_>) -> Ordering {
    let nan = |v: Value<'_>| matches!(v, Value::Float(f) if f.is_nan());
    let float = |v: Value<'_>| matches!(v, Value::Float(_));
    compare_numbers(a, b).unwrap_or_else(|| nan(a).cmp(&nan(b))).then_with(|| float(a).cmp(&float(b)))
}
