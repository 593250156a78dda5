//! Integers beyond 64 bits: limbs in the arena, arithmetic by num-bigint on metered temporaries.

use super::header::Header;
use super::{Heap, Res, Value};
use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;

/// An integer that does not fit in 64 bits.
pub struct Big<'h> {
    pub(super) head: Header,
    /// Below zero?
    pub negative: bool,
    /// The magnitude, least significant limb first.
    pub limbs: &'h [u32],
}

impl Big<'_> {
    /// A copy for arithmetic. The caller has made sure that there is room ([`Heap::room`]).
    pub fn to_bigint(&self) -> BigInt {
        BigInt::from_slice(if self.negative { Sign::Minus } else { Sign::Plus }, self.limbs)
    }

    /// The nearest float; infinite beyond the range of floats.
    pub fn to_f64(&self) -> f64 {
        self.to_bigint().to_f64().unwrap_or(f64::NAN)
    }
}

impl Heap {
    /// The value of an integer: of 64 bits if it fits.
    pub fn integer<'h>(&'h self, n: &BigInt) -> Res<Value<'h>> {
        if let Some(small) = n.to_i64() {
            return Ok(Value::Int(small));
        }
        let (sign, digits) = n.to_u32_digits();
        let (head, negative) = (self.header(), sign == Sign::Minus);
        let big = |limbs| Big { head, negative, limbs };
        Ok(Value::Big(self.alloc_with(digits.len(), digits.into_iter(), big)?))
    }
}
