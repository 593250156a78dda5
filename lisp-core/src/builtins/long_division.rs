//! Division of long integers. A division that takes more than a few milliseconds is done in pieces. Each piece is
//! charged before it is divided, so that a run can end between pieces.

use crate::cost;
use crate::heap::{Heap, Res};
use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::Zero;

/// Pairs of 32-bit limbs that are divided at once.
const PAIRS: usize = 1 << 22;

/// Returns the quotient and the remainder of two integers, truncated. The divisor must not be zero, and there must be
/// room for both.
pub(super) fn div_rem(h: &Heap, x: &BigInt, y: &BigInt) -> Res<(BigInt, BigInt)> {
    let (limbs, width) = (x.iter_u32_digits().len(), y.iter_u32_digits().len());
    let piece = PAIRS / width.max(1);
    if limbs <= piece {
        h.charge(cost::division(limbs, width))?;
        return Ok(x.div_rem(y));
    }
    let (quotient, rem) = div_rem_by_pieces(h, x.magnitude(), y.magnitude(), piece)?;
    let sign = if x.sign() == y.sign() { Sign::Plus } else { Sign::Minus };
    Ok((BigInt::from_biguint(sign, quotient), BigInt::from_biguint(x.sign(), rem)))
}

/// Long division with digits of `piece` limbs: each is divided together with the remainder so far.
fn div_rem_by_pieces(h: &Heap, x: &BigUint, y: &BigUint, piece: usize) -> Res<(BigUint, BigUint)> {
    let (limbs, width) = (x.to_u32_digits(), y.iter_u32_digits().len());
    // A multiple of the schedule's pieces, so that the sum does not depend on how many limbs are divided at once.
    let piece = piece.next_multiple_of(cost::DIVIDED_LIMBS);
    let mut quotient = vec![0; limbs.len()];
    let mut rem = BigUint::zero();
    for start in (0..limbs.len()).step_by(piece).rev() {
        let part = limbs.get(start..limbs.len().min(start + piece)).unwrap_or_default();
        h.charge(cost::division(part.len(), width))?;
        let left = (rem << (32 * part.len())) + BigUint::from_slice(part);
        let (digits, left) = left.div_rem(y);
        rem = left;
        for (to, digit) in quotient.iter_mut().skip(start).zip(digits.iter_u32_digits()) {
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
        let pieces = |x: &BigInt, y: &BigInt| div_rem_by_pieces(&h, x.magnitude(), y.magnitude(), 100).ok();
        for n in [1, 2, 127, 128, 129, 300] {
            for m in [1, 2, 100, 128, 256, 400] {
                for (x, y) in [
                    (sample(n), sample(m)),
                    (-sample(n), sample(m)),
                    (sample(n), -sample(m)),
                    (BigInt::zero(), sample(m)),
                ] {
                    assert_eq!(div_rem(&h, &x, &y).ok(), Some((&x / &y, &x % &y)), "{n} {m}");
                    assert_eq!(pieces(&x, &y), Some(x.magnitude().div_rem(y.magnitude())), "{n} {m}");
                }
            }
        }
        let (x, y) = (-sample(20_000), sample(300));
        const { assert!(20_000 * 300 > PAIRS) };
        assert_eq!(div_rem(&h, &x, &y).ok(), Some((&x / &y, &x % &y)));
    }

    #[test]
    fn pieces_cost_as_much_as_the_whole() {
        for (n, m) in [(1_000, 1), (1_024, 77), (1_300, 900)] {
            let h = Heap::new(1, usize::MAX / 2);
            let spent = h.spent();
            div_rem_by_pieces(&h, sample(n).magnitude(), sample(m).magnitude(), 200).expect("there is fuel");
            let limbs = sample(n).iter_u32_digits().len();
            assert_eq!(h.spent() - spent, cost::division(limbs, sample(m).iter_u32_digits().len()), "{n} {m}");
        }
    }
}
