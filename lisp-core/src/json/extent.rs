//! Finds the end of a value in brackets without parsing its contents, 64 bytes at a time, with one bit for each.

use std::ops::BitXor;

const BLOCK: usize = 64;

/// The state after a number of bytes.
#[derive(Default)]
struct Extent {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
}

/// Returns the offset after the closing bracket of the value whose opening bracket is at `at`.
pub(super) fn end_of_brackets(bytes: &[u8], at: usize) -> Option<usize> {
    let (blocks, rest) = bytes.get(at..)?.as_chunks::<BLOCK>();
    let mut extent = Extent::default();
    for (i, block) in blocks.iter().enumerate() {
        if !extent.goes_over(block)
            && let Some(end) = extent.end_in(block)
        {
            return Some(at + i * BLOCK + end);
        }
    }
    extent.end_in(rest).map(|end| at + blocks.len() * BLOCK + end)
}

impl Extent {
    /// Skips a block in which the value cannot end and nothing is escaped. Otherwise does nothing and returns false.
    fn goes_over(&mut self, block: &[u8; BLOCK]) -> bool {
        // This bit maps square brackets to curly ones, and no other bytes to either.
        const CURLY: u8 = 0x20;
        let quotes = places(block, |byte| byte == b'"');
        let opening = places(block, |byte| byte | CURLY == b'{');
        let closing = places(block, |byte| byte | CURLY == b'}');
        let has_escapes = block.iter().fold(false, |has, &byte| has | (byte == b'\\'));
        let before = if self.is_string { u64::MAX } else { 0 };
        let strings = parities(quotes) ^ before;
        let closed = (closing & !strings).count_ones() as usize;
        if has_escapes || self.is_escaped || closed >= self.depth {
            return false;
        }
        self.depth += (opening & !strings).count_ones() as usize;
        self.depth -= closed;
        self.is_string = strings >> 63 != 0;
        true
    }

    /// Returns the end of the value if it is among these bytes.
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        for (i, byte) in bytes.iter().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.is_string,
                b'"' => self.is_string = !self.is_string,
                _ if self.is_string => {}
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(i + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// Returns one bit for each byte, lowest first: whether the predicate holds for it.
#[inline]
fn places(block: &[u8; BLOCK], is_one: impl Fn(u8) -> bool) -> u64 {
    // The compiler vectorizes this loop.
    let ones = block.map(|byte| u8::from(is_one(byte)));
    let mut all = 0;
    for (i, eight) in ones.as_chunks::<8>().0.iter().enumerate() {
        // The multiplication moves each of the eight bits to its own position in the top byte.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        all |= bits << (8 * i);
    }
    all
}

/// Returns for each bit whether the number of set bits up to and including it is odd.
#[inline]
fn parities(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].into_iter().fold(bits, |bits, by| bits.bitxor(bits << by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slowly(bytes: &[u8]) -> Option<usize> {
        Extent::default().end_in(bytes)
    }

    proptest! {
        #[test]
        fn blocks_end_where_bytes_do(parts in proptest::collection::vec(prop_oneof![
            Just("{"), Just("}"), Just("["), Just("]"), Just("\""), Just("\\"), Just("\"abcdefgh\""), Just("1234567,"), Just("é:"),
        ], 0..200), depth in 0usize..100) {
            let text = format!("{}{}", "[".repeat(depth + 1), parts.concat());
            prop_assert_eq!(end_of_brackets(text.as_bytes(), 0), slowly(text.as_bytes()));
        }

        #[test]
        fn bytes_are_found(bytes in proptest::collection::vec(any::<u8>(), BLOCK), byte in any::<u8>()) {
            let block: &[u8; BLOCK] = bytes.as_slice().try_into().expect("a block");
            let expected = (0..BLOCK).map(|i| u64::from(bytes[i] == byte) << i).sum::<u64>();
            prop_assert_eq!(places(block, |other| other == byte), expected);
        }
    }

    #[test]
    fn every_length_has_its_end() {
        for inside in 0..300 {
            for filler in ["a", "[]", "\"]\"", "\"\\\"]\"", "{\"a\":[\"}\"]},"] {
                let text = format!("x[{}]]", filler.repeat(inside));
                assert_eq!(end_of_brackets(text.as_bytes(), 1), Some(text.len() - 1), "{text}");
                let open = format!("[{}", filler.repeat(inside));
                assert_eq!(end_of_brackets(open.as_bytes(), 0), None, "{open}");
            }
        }
        assert_eq!(parities(0b1001_0000), 0b0111_0000);
    }
}
