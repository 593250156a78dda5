//! Fast paths of the dispatch loop for integers and floats, and their fallbacks.

use crate::builtins::numbers;
use crate::code::Cmp;
use crate::context::Ctx;
use crate::heap::{FrameRegs, Res, Value};

/// Returns whether a comparison of two integers or two floats holds; `None` for other values.
#[inline(always)]
pub(super) fn fast_compare(op: Cmp, a: &Value<'_>, b: &Value<'_>) -> Option<bool> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(op.holds(a.cmp(b))),
        (Value::Float(a), Value::Float(b)) => Some(a.partial_cmp(b).is_some_and(|order| op.holds(order))),
        _ => None,
    }
}

/// R[dst] = R[a] op R[b] for floats, and for integers if the result fits. Returns false, with nothing changed, for
/// other values.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "an integer is the float next to it where it meets one")]
pub(super) fn fast_arithmetic(
    w: &mut FrameRegs<'_, '_>,
    [dst, a, b]: [u16; 3],
    int: impl FnOnce(i64, i64) -> Option<i64>,
    float: impl FnOnce(f64, f64) -> f64,
) -> bool {
    let value = match (w.get(a), w.get(b)) {
        (&Value::Int(x), &Value::Int(y)) => match int(x, y) {
            Some(value) => {
                w.set(dst, Value::Int(value));
                return true;
            }
            None => return false,
        },
        (&Value::Float(x), &Value::Float(y)) => float(x, y),
        (&Value::Int(x), &Value::Float(y)) => float(x as f64, y),
        (&Value::Float(x), &Value::Int(y)) => float(x, y as f64),
        _ => return false,
    };
    w.set(dst, Value::Float(value));
    true
}

/// Compares any two values.
#[cold]
pub(super) fn compare<'h>(h: &'h Ctx, op: Cmp, a: Value<'h>, b: Value<'h>) -> Res<bool> {
    match op {
        Cmp::Eq => {
            let same = h.equal(a, b)?;
            if !same {
                h.note_unequal(a, b)?;
            }
            Ok(same)
        }
        Cmp::Lt => numbers::less(h, a, b),
        Cmp::Le => numbers::less_eq(h, a, b),
        Cmp::Gt => numbers::greater(h, a, b),
        Cmp::Ge => numbers::greater_eq(h, a, b),
    }
}
