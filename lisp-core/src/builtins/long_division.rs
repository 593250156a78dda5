//! Division of long integers, and their digits: piece by piece, each charged for before it is divided, because all at
//! once they take long.

use super::numbers::MAX_LIMBS;
use crate::cost;
use crate::heap::{Big, Heap, Res, TextBuf};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::Zero;

/// Limbs of 32 bits that are divided at once.
const PIECE: usize = 128;
/// Digits that are split off at once; they fit into a piece.
const DIGITS: u32 = 1_224;

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

/// The whole limbs of an integer.
fn limbs_of(n: &BigUint) -> usize {
    usize::try_from(n.bits() / 32).unwrap_or(usize::MAX)
}

/// Adds the decimal digits of an integer, which takes time in the square of their number.
pub(crate) fn decimal<'h>(h: &'h Heap, big: &Big<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    let limbs = big.limbs.len();
    h.room(limbs.saturating_mul(24))?;
    let mut rest = BigUint::from_slice(big.limbs);
    let mut parts = Vec::with_capacity(limbs / (PIECE - 1) + 1);
    // To make the unit takes longer than most integers do.
    let unit = if limbs < PIECE { None } else { Some(BigUint::from(10u32).pow(DIGITS)) };
    while let Some(unit) = unit.as_ref().filter(|unit| rest > **unit) {
        h.charge(cost::limb_pairs(limbs_of(&rest), PIECE))?;
        parts.push(&rest % unit);
        rest /= unit;
    }
    if big.negative {
        out.push('-')?;
    }
    let left = limbs_of(&rest) + 1;
    h.charge(cost::FLOAT_WRITTEN + cost::limb_pairs(left, left))?;
    out.push_str(&rest.to_string())?;
    for part in parts.iter().rev() {
        h.charge(cost::limb_pairs(PIECE, PIECE))?;
        let digits = part.to_string();
        out.fill('0', DIGITS as usize - digits.len())?;
        out.push_str(&digits)?;
    }
    Ok(())
}

/// The digits of an integer in a base that is a power of two.
pub(super) fn in_base<'h>(h: &'h Heap, big: &Big<'h>, radix: u32) -> Res<String> {
    debug_assert!(radix.is_power_of_two() && big.limbs.len() <= MAX_LIMBS);
    h.charge(cost::LIMB_WRITTEN * big.limbs.len() as u64)?;
    h.room(big.limbs.len().saturating_mul(32))?;
    Ok(big.to_bigint().to_str_radix(radix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Value;

    fn sample(limbs: u32) -> BigInt {
        (0..limbs).fold(BigInt::from(7), |n, i| n * 0xFFFF_FFFFu64 + u64::from(i) * 2_654_435_761)
    }

    #[test]
    fn digits_are_those_of_the_library() {
        for n in [3, 5, 126, 127, 128, 129, 254, 255, 300, 1_000] {
            for big in [sample(n), -sample(n), BigInt::from(10).pow(n), BigInt::from(10).pow(n) - 1] {
                let h = Heap::new(1, usize::MAX / 2);
                let Ok(Value::Big(value)) = h.integer(&big) else { continue };
                let mut out = TextBuf::new(&h);
                decimal(&h, value, &mut out).expect("there is room");
                assert_eq!(out.into_string(), big.to_string());
            }
        }
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
