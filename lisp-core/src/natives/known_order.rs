//! Comparators whose order is known: by their name, or because their code compares its two arguments, or one key of
//! each. If all keys are numbers, such a sort calls nothing.

use crate::builtins::{Lowering, id_of, maps};
use crate::code::{BuiltinId, Cmp, Instr};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Closure, Fault, Res, Value, merge_sort};
use crate::stack::State;

/// The comparator of the natural order.
pub(super) const COMPARE: BuiltinId = id_of("compare");

/// The order of a comparator, for numbers.
#[derive(Clone, Copy)]
pub(super) struct KnownOrder<'h> {
    descending: bool,
    /// The keyword that the comparator reads of each of its arguments.
    key: Option<Value<'h>>,
}

/// What a comparator compares: a parameter, or its value at a constant keyword.
type Operand = (u16, Option<u16>);

impl<'h> KnownOrder<'h> {
    /// Returns the order of a comparator, if it is known. [`Value::Unset`] stands for the natural order.
    pub(super) fn of(s: &State<'h>, comparator: Value<'h>) -> Option<Self> {
        match comparator {
            Value::Unset => Some(KnownOrder { descending: false, key: None }),
            Value::Builtin(id) => {
                let descending = descends(id.row().lowering)?;
                Some(KnownOrder { descending, key: None })
            }
            Value::Closure(closure) => Self::of_closure(s, closure),
            _ => None,
        }
    }

    fn of_closure(s: &State<'h>, closure: &'h Closure<'h>) -> Option<Self> {
        let proto = closure.proto;
        if proto.arity != 2 || proto.variadic {
            return None;
        }
        let (descending, [(first, k), (second, other)]) = compared(proto.code.instrs())?;
        if k != other || first == second {
            return None;
        }
        let key = match k {
            Some(k) => Some(s.units.get(closure.program)?.code.constants.values()[k as usize]),
            None => None,
        };
        Some(KnownOrder { descending: descending != (first > second), key })
    }

    /// Returns the elements in this order of their keys; `None` if one of the keys is not a number with a position in
    /// the order that is known without a call.
    pub(super) fn sort(self, h: &'h Ctx, list: &[Value<'h>], keys: &[Value<'h>]) -> Res<Option<Value<'h>>> {
        h.charge(cost::moved(keys.len()))?;
        h.check_available(keys.len().saturating_mul(size_of::<i64>() + size_of::<u32>()))?;
        let Some(ranks) = self.ranks(h, keys)? else { return Ok(None) };
        h.charge(cost::sorted(keys.len()))?;
        // A vector never has more elements than this type counts.
        let mut order: Vec<u32> = (0..u32::try_from(keys.len()).unwrap_or(u32::MAX)).collect();
        let rank = |index: u32| ranks[index as usize];
        match self.descending {
            true => merge_sort(h, &mut order, |a, b| Ok(rank(b).cmp(&rank(a))))?,
            false => merge_sort(h, &mut order, |a, b| Ok(rank(a).cmp(&rank(b))))?,
        }
        h.vector_from(list.len(), order.into_iter().map(|index| list[index as usize])).map(Some)
    }

    /// Returns the rank of each key in ascending order.
    fn ranks(self, h: &'h Ctx, keys: &[Value<'h>]) -> Res<Option<Vec<i64>>> {
        const BETWEEN_POLLS: usize = 1_024;
        let mut ranks = Vec::with_capacity(keys.len());
        let mut integers = true;
        for &element in keys {
            if ranks.len() % BETWEEN_POLLS == 0 {
                h.poll_every(BETWEEN_POLLS)?;
            }
            let Some(key) = self.read(h, element)? else { return Ok(None) };
            if integers && let Value::Float(_) = key {
                // The integers so far take part as floats.
                integers = false;
                for piece in ranks.chunks_mut(BETWEEN_POLLS) {
                    h.poll_every(BETWEEN_POLLS)?;
                    for rank in piece {
                        match float_of(*rank) {
                            Some(float) => *rank = rank_of(float),
                            None => return Ok(None),
                        }
                    }
                }
            }
            ranks.push(match key {
                Value::Int(i) if integers => i,
                Value::Int(i) if let Some(float) = float_of(i) => rank_of(float),
                Value::Float(float) if !float.is_nan() => rank_of(float),
                _ => return Ok(None),
            });
        }
        Ok(Some(ranks))
    }

    /// Returns the key of an element; `None` if reading it fails, so that the comparator reports the error.
    fn read(self, h: &'h Ctx, element: Value<'h>) -> Res<Option<Value<'h>>> {
        let Some(key) = self.key else { return Ok(Some(element)) };
        match maps::key_of(h, element, key) {
            Ok(value) => Ok(value),
            Err(Fault::Error(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

/// Returns the float that is exactly this integer.
#[expect(clippy::cast_precision_loss, reason = "floats have all integers up to there")]
fn float_of(integer: i64) -> Option<f64> {
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
    (integer.unsigned_abs() <= EXACT).then_some(integer as f64)
}

/// Maps floats to integers with the same order; both zeros are equal.
fn rank_of(float: f64) -> i64 {
    let bits = (float + 0.0).to_bits().cast_signed();
    if bits < 0 { !(bits & i64::MAX) } else { bits }
}

/// Returns whether a comparator orders the greater value first; `None` if it orders neither way.
fn descends(lowering: Lowering) -> Option<bool> {
    match lowering {
        Lowering::Compare(Cmp::Lt) => Some(false),
        Lowering::Compare(Cmp::Gt) => Some(true),
        _ => None,
    }
}

/// Returns what code compares of two parameters, if it does nothing else, and whether the greater value comes first.
fn compared(code: &[Instr]) -> Option<(bool, [Operand; 2])> {
    let [reads @ .., test, Instr::Return { src }] = code else { return None };
    let (descending, dst, a, b) = match *test {
        Instr::Compare { op: Cmp::Lt, dst, a, b } => (false, dst, a, b),
        Instr::Compare { op: Cmp::Gt, dst, a, b } => (true, dst, a, b),
        Instr::CallBuiltin { argc: 2, dst, base, id } if id == COMPARE => (false, dst, base, base + 1),
        _ => return None,
    };
    if dst != *src || reads.len() > 2 {
        return None;
    }
    let (mut operands, mut used) = ([(a, None), (b, None)], 0);
    for read in reads {
        let (written, operand) = match *read {
            Instr::Move { dst, src } => (dst, (src, None)),
            Instr::Key { dst, src, k } => (dst, (src, Some(k))),
            _ => return None,
        };
        let at = [a, b].iter().position(|&register| register == written)?;
        (operands[at], used) = (operand, used + 1);
    }
    let parameters = operands.iter().all(|operand| operand.0 < 2);
    (parameters && used == reads.len()).then_some((descending, operands))
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Instr = Instr::Return { src: 2 };

    #[test]
    fn comparators_by_their_code() {
        let less = |a, b| Instr::Compare { op: Cmp::Lt, dst: 2, a, b };
        let key = |dst, src, k| Instr::Key { dst, src, k };
        assert_eq!(compared(&[less(0, 1), END]), Some((false, [(0, None), (1, None)])));
        assert_eq!(compared(&[less(1, 0), END]), Some((false, [(1, None), (0, None)])));
        let keyed = [key(3, 1, 7), key(4, 0, 7), less(3, 4), END];
        assert_eq!(compared(&keyed), Some((false, [(1, Some(7)), (0, Some(7))])));
        assert_eq!(compared(&[key(3, 3, 7), key(4, 0, 7), less(3, 4), END]), None, "of no parameter");
        assert_eq!(compared(&[key(5, 1, 7), less(0, 1), END]), None, "reads what it does not compare");
        assert_eq!(compared(&[less(0, 1), Instr::Return { src: 0 }]), None, "returns something else");
        assert_eq!(compared(&[Instr::Compare { op: Cmp::Le, dst: 2, a: 0, b: 1 }, END]), None);
    }

    #[test]
    fn ranks_are_in_the_order_of_floats() {
        let floats = [f64::NEG_INFINITY, -1e300, -1.5, -f64::MIN_POSITIVE, 0.0, f64::MIN_POSITIVE, 1.5, f64::INFINITY];
        assert!(floats.windows(2).all(|pair| rank_of(pair[0]) < rank_of(pair[1])));
        assert_eq!(rank_of(-0.0), rank_of(0.0));
        assert_eq!(float_of(1 << 53), Some(9_007_199_254_740_992.0));
        assert_eq!(float_of((1 << 53) + 1), None);
    }
}
