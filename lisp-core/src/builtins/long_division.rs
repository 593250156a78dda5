//! Division of long integers: piece by piece, each charged for before it is divided, because all at
//! once they take long.

use crate::cost;
use crate::heap::{Heap, Res};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::Zero;

/// Limbs of 32 bits that are divided at once.
const PIECE: usize = 128;

/// The quotient and the remainder of two integers, cut towards zero. The divisor is not zero, and there is room for both.
pub(super) fn div_rem(h: &Heap, x: &BigInt, y: &BigInt) -> Res<(BigInt, BigInt)> {
    let (quotient, rem) = div_rem_unsigned(h, x.magnitude(), y.magnitude())?;
    let sign = if x.sign() == y.sign() { Sign::Plus } else { Sign::Minus };
    Ok((BigInt::from_biguint(sign, quotient), BigInt::from_biguint(x.sign(), rem)))
}

fn div_rem_unsigned(h: &Heap, x: &BigUint, y: &BigUint) -> Res<(BigUint, BigUint)> {
    let limbs = x.to_u32_digits();
    let width = y.to_u32_digits().len();
    let mut quotient = vec![0; limbs.len()];
    let mut rem = BigUint::zero();
    for start in (0..limbs.len()).step_by(PIECE).rev() {
        let piece = limbs.get(start..limbs.len().min(start + PIECE)).unwrap_or_default();
        h.charge(cost::limb_pairs(piece.len(), width))?;
        let left = (rem << (32 * piece.len())) + BigUint::from_slice(piece);
        let digits = (&left / y).to_u32_digits();
        rem = left % y;
        for (to, digit) in quotient.iter_mut().skip(start).zip(digits) {
            *to = digit;
        }
    }
    Ok((BigUint::new(quotient), rem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(limbs: u32) -> BigInt {
        (0..limbs).fold(BigInt::from(7), |n, i| n * 0xFFFF_FFFFu64 + u64::from(i) * 2_654_435_761)
    }

    #[test]
    fn quotients_are_those_of_the_library() {
        let h = Heap::new(1, usize::MAX / 2);
        for n in [1, 2, 127, 128, 129, 300] {
            for m in [1, 2, 100, 128, 256, 400] {
                for (x, y) in [
                    (sample(n), sample(m)),
                    (-sample(n), sample(m)),
                    (sample(n), -sample(m)),
                    (BigInt::zero(), sample(m)),
                ] {
                    assert_eq!(div_rem(&h, &x, &y).ok(), Some((&x / &y, &x % &y)), "{n} {m}");
                }
            }
        }
    }
}
