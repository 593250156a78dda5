//! Numbers as text.

use crate::cost;
use crate::heap::{Big, Heap, Res, TextBuf};
use num_bigint::BigUint;

/// Limbs of 32 bits that are divided at once.
const PIECE: usize = 128;
/// Digits that are split off at once; they fit into a piece.
const DIGITS: u32 = 1_224;

/// The decimal digits of a finite float without its sign: the shortest that parse to it again; among several such the
/// nearest, and among two equally near the even one. All code that writes floats takes its digits from here, or from
/// the same library, so that they are the same everywhere.
pub(crate) struct FloatDigits {
    digits: [u8; Self::MAX],
    len: usize,
    /// The number of digits before the point; if negative, the number of zeros after it.
    point: i32,
}

impl FloatDigits {
    /// No float has more.
    const MAX: usize = 17;

    pub(crate) fn of(f: f64) -> Self {
        let mut buffer = ryu::Buffer::new();
        let text = buffer.format_finite(f.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut point = exponent.parse().unwrap_or(0) + i32::try_from(whole.len()).unwrap_or(0);
        let (mut digits, mut len, mut zeros) = ([b'0'; Self::MAX], 0, 0);
        for digit in whole.bytes().chain(part.bytes()) {
            match digit {
                b'0' if len == 0 => point -= 1,
                // Zeros count only if another digit follows.
                b'0' => zeros += 1,
                digit => {
                    len += zeros + 1;
                    zeros = 0;
                    if let Some(last) = digits.get_mut(len - 1) {
                        *last = digit;
                    }
                }
            }
        }
        if len == 0 {
            (len, point) = (1, 1);
        }
        FloatDigits { digits, len: len.min(Self::MAX), point }
    }

    /// Returns the digits. Neither the first nor the last is a zero, except for zero itself.
    pub(crate) fn digits(&self) -> &str {
        self.digits.get(..self.len).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or("0")
    }

    /// Returns the number of digits before the point.
    pub(crate) fn point(&self) -> i32 {
        self.point
    }

    /// Returns it with one digit before the point, at least one after it, and an exponent: `1.5e300`.
    pub(crate) fn scientific(&self) -> String {
        let (first, rest) = self.digits().split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        format!("{first}.{rest}e{}", self.point - 1)
    }

    /// Returns it in full, without an exponent: `1500.0`.
    fn plain(&self) -> String {
        let digits = self.digits();
        match usize::try_from(self.point) {
            Ok(whole) if whole > 0 => match digits.split_at_checked(whole) {
                Some((whole, "")) => format!("{whole}.0"),
                Some((whole, part)) => format!("{whole}.{part}"),
                None => format!("{digits:0<whole$}.0"),
            },
            _ => format!("0.{}{digits}", "0".repeat(self.point.unsigned_abs() as usize)),
        }
    }
}

/// Returns a float with the fewest digits that parse to it again: `1.0`, `0.1`, `1.0e21`, `1.0e-5`, `##Inf`.
pub(crate) fn float_text(f: f64) -> String {
    if f.is_nan() {
        return "##NaN".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { "##Inf" } else { "##-Inf" }.to_owned();
    }
    let size = f.abs();
    let mut buffer = ryu::Buffer::new();
    let shortest = buffer.format_finite(f);
    if size == 0.0 || (0.001..1e16).contains(&size) {
        return shortest.to_owned();
    }
    let (digits, sign) = (FloatDigits::of(f), if f < 0.0 { "-" } else { "" });
    // Four digits after the point are no longer than the exponent of a single digit.
    match (digits.len, digits.point) {
        (1, -3) => format!("{sign}{}", digits.plain()),
        _ => format!("{sign}{}", digits.scientific()),
    }
}

/// Returns a float for a person: in full between 1e-10 and 1e21, beyond that like [`float_text`].
pub(crate) fn plain_float_text(f: f64) -> String {
    let size = f.abs();
    if (1e-10..0.001).contains(&size) || (1e16..1e21).contains(&size) {
        let sign = if f < 0.0 { "-" } else { "" };
        return format!("{sign}{}", FloatDigits::of(f).plain());
    }
    float_text(f)
}

/// Returns the number of 32-bit limbs of an integer.
fn limbs_of(n: &BigUint) -> usize {
    usize::try_from(n.bits() / 32).unwrap_or(usize::MAX)
}

/// Adds the decimal digits of an integer, which takes time in the square of their number.
pub(crate) fn decimal<'h>(h: &'h Heap, big: &Big<'h>, out: &mut TextBuf<'h>) -> Res<()> {
    let limbs = big.limbs.len();
    h.check_available(limbs.saturating_mul(24))?;
    let mut rest = BigUint::from_slice(big.limbs);
    let mut parts = Vec::with_capacity(limbs / (PIECE - 1) + 1);
    // Creating the divisor takes longer than most integers do.
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

/// Returns the digits of an integer in a base that is a power of two.
pub(crate) fn in_base<'h>(h: &'h Heap, big: &Big<'h>, radix: u32) -> Res<String> {
    debug_assert!(radix.is_power_of_two());
    h.charge(cost::LIMB_WRITTEN * big.limbs.len() as u64)?;
    h.check_available(big.limbs.len().saturating_mul(32))?;
    Ok(big.to_bigint().to_str_radix(radix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Value;
    use num_bigint::BigInt;

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
    fn floats_have_the_fewest_digits() {
        for (f, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (123_456_789.123, "123456789.123"),
            (1e15, "1000000000000000.0"),
            (1e16, "1.0e16"),
            (1.5e300, "1.5e300"),
            (0.001, "0.001"),
            (0.00123, "0.00123"),
            (0.0001, "0.0001"),
            (0.000123, "1.23e-4"),
            (0.00001, "1.0e-5"),
            (5e-324, "5.0e-324"),
            (f64::NEG_INFINITY, "##-Inf"),
            (f64::NAN, "##NaN"),
        ] {
            assert_eq!(float_text(f), text);
        }
        assert_eq!(plain_float_text(1e20), "100000000000000000000.0");
        assert_eq!(plain_float_text(0.00001), "0.00001");
        assert_eq!(plain_float_text(1e21), "1.0e21");
        assert_eq!(plain_float_text(-123_456_789_012_345_678_901.0), "-123456789012345680000.0");
        assert_eq!(plain_float_text(-1.5e-9), "-0.0000000015");
        // Two digits are equally near: the even one is written.
        assert_eq!(float_text(2_251_553_810_368_456.2), "2251553810368456.2");
    }
}
