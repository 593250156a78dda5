//! Integers beyond 64 bits: limbs in the arena, and arithmetic by num-bigint on metered temporaries.

use super::header::Header;
use super::{Heap, Res, Value};
use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;
use std::cmp::Ordering;

/// An integer that does not fit in 64 bits.
pub struct Big<'h> {
    pub(super) head: Header,
    /// Whether it is negative.
    pub(crate) negative: bool,
    /// The magnitude, least significant limb first.
    pub(crate) limbs: &'h [u32],
}

impl Big<'_> {
    /// Returns a copy for arithmetic. The caller has checked that there is room ([`Heap::check_available`]).
    pub(crate) fn to_bigint(&self) -> BigInt {
        BigInt::from_slice(if self.negative { Sign::Minus } else { Sign::Plus }, self.limbs)
    }

    /// Compares two such integers. Long integers with the same leading limbs take time.
    pub(super) fn order(&self, other: &Big<'_>) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => return Ordering::Greater,
            (true, false) => return Ordering::Less,
            _ if std::ptr::eq(self, other) => return Ordering::Equal,
            _ => {}
        }
        let lengths = self.limbs.len().cmp(&other.limbs.len());
        let order = lengths.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()));
        if self.negative { order.reverse() } else { order }
    }

    /// Returns true if both have the same sign and number of limbs.
    pub(super) fn is_as_long_as(&self, other: &Big<'_>) -> bool {
        self.negative == other.negative && self.limbs.len() == other.limbs.len()
    }

    /// Returns the nearest float; infinite beyond the range of floats.
    pub(crate) fn to_f64(&self) -> f64 {
        /// Integers with more limbs are beyond the range of floats.
        const MAX: usize = 32;
        if self.limbs.len() > MAX {
            return if self.negative { f64::NEG_INFINITY } else { f64::INFINITY };
        }
        self.to_bigint().to_f64().unwrap_or(f64::NAN)
    }
}

/// For a finite float of at least 2^53, which is therefore whole: returns the number of its lowest limbs that are zero,
/// and the rest.
fn parts(magnitude: f64) -> (usize, u128) {
    /// The bits of a float's significand, and below the bias of its stored exponent.
    const DIGITS: u32 = f64::MANTISSA_DIGITS;
    const BIAS: u32 = 1_075;
    let bits = magnitude.to_bits();
    let significand = bits & ((1 << (DIGITS - 1)) - 1) | 1 << (DIGITS - 1);
    let shift = ((bits >> (DIGITS - 1)) as u32).saturating_sub(BIAS);
    (shift as usize / 32, u128::from(significand) << (shift % 32))
}

/// Returns the limbs of the integer that equals a finite float beyond 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "a limb is the lowest 32 bits")]
pub(super) fn limbs(f: f64) -> impl Iterator<Item = u32> {
    let (zeros, mut rest) = parts(f.abs());
    let above = std::iter::from_fn(move || {
        let limb = (rest != 0).then_some(rest as u32);
        rest >>= 32;
        limb
    });
    std::iter::repeat_n(0, zeros).chain(above)
}

/// Compares with a float by value, exactly and without a copy; `None` for NaN.
pub(super) fn compare_big_float(a: &Big<'_>, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    let away = |order: Ordering| Some(if a.negative { order.reverse() } else { order });
    let magnitude = b.abs();
    // Its magnitude exceeds 64 bits, so for smaller floats and for another sign, its own sign decides.
    if magnitude < 9_223_372_036_854_775_808.0 || (b < 0.0) != a.negative {
        return away(Ordering::Greater);
    }
    if magnitude.is_infinite() || a.limbs.len() > 32 {
        return away(if magnitude.is_infinite() { Ordering::Less } else { Ordering::Greater });
    }
    let (whole, wide) = parts(magnitude);
    let limb = |i: usize| a.limbs.get(i).copied().unwrap_or(0);
    let above = a.limbs.iter().skip(whole + 3).any(|&limb| limb != 0);
    if above {
        return away(Ordering::Greater);
    }
    let top = (0..3).fold(0u128, |sum, i| sum | u128::from(limb(whole + i)) << (32 * i));
    let below = (0..whole).any(|i| limb(i) != 0);
    away(top.cmp(&wide).then(if below { Ordering::Greater } else { Ordering::Equal }))
}

impl Heap {
    /// Returns an integer as a value, with 64 bits if it fits.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Fault;
    use num_traits::FromPrimitive;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn long_integers_are_compared_for_fuel_and_under_the_flag() {
        const PAIRS: usize = if cfg!(miri) { 5 } else { 50 };
        const BITS: usize = if cfg!(miri) { 10_000 } else { 1_000_000 };
        let h = Heap::new(1, 1 << 26);
        let long = BigInt::from(1) << BITS;
        let many = |n: &BigInt| h.vector_from(PAIRS, std::iter::repeat(h.integer(n).unwrap())).unwrap();
        let (a, b, c) = (many(&long), many(&long), many(&(&long + 1)));
        let spent = |work: &dyn Fn()| {
            let before = h.spent();
            work();
            h.spent() - before
        };
        let all = PAIRS as u64 * crate::cost::limbs_compared(BITS / 32);
        assert!(spent(&|| assert!(h.equal(a, b).unwrap())) >= all);
        assert!(spent(&|| assert_eq!(h.order(a, b).unwrap(), Ordering::Equal)) >= all);
        assert!(spent(&|| assert!(!h.equal(a, c).unwrap())) < all, "the first that differ end it");
        assert!(spent(&|| assert!(h.equal(a, a).unwrap())) < 10, "the same vector is not walked");
        h.meter.set_slice(h.spent(), u64::MAX);
        h.meter.watch(Some(Arc::new(AtomicBool::new(true))));
        assert!(matches!(h.equal(a, b), Err(Fault::Pause(_))));
        assert!(matches!(h.order(a, b), Err(Fault::Pause(_))));
    }

    #[test]
    fn a_float_is_compared_as_the_integer_that_it_is() {
        let h = Heap::new(1, 1 << 24);
        let floats = [
            9.3e18,
            1e19,
            1.5e19,
            3.4e38,
            1e40,
            123_456_789e60,
            f64::MAX,
            2f64.powi(64),
            2f64.powi(95),
            2f64.powi(1_023),
        ];
        let mut compared = 0;
        for float in floats {
            let exact = BigInt::from_f64(float).unwrap();
            for difference in [-1i64 << 40, -1, 0, 1, 1 << 40] {
                for negative in [false, true] {
                    let n = if negative { -(&exact + difference) } else { &exact + difference };
                    let Value::Big(big) = h.integer(&n).unwrap() else { continue };
                    for other in [float, -float] {
                        let expected = n.cmp(&BigInt::from_f64(other).unwrap());
                        assert_eq!(compare_big_float(big, other), Some(expected), "{n} and {other}");
                        compared += 1;
                    }
                    assert_eq!(compare_big_float(big, f64::NAN), None);
                    assert_eq!(compare_big_float(big, f64::INFINITY), Some(Ordering::Less));
                    assert_eq!(
                        compare_big_float(big, 0.5),
                        Some(if n > BigInt::ZERO { Ordering::Greater } else { Ordering::Less })
                    );
                }
            }
        }
        assert!(compared > 150, "{compared}");
        let huge = h.integer(&(BigInt::from(1) << 2_000)).unwrap();
        let Value::Big(huge) = huge else { panic!("a big integer") };
        assert_eq!(compare_big_float(huge, f64::MAX), Some(Ordering::Greater));
    }
}
