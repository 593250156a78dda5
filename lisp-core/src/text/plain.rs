//! Searches for the end of plain text: a quotation mark, a backslash or a control character, which JSON strings escape.
//! Eight bytes are checked at once.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns true if plain text stops at this byte.
#[inline]
pub(crate) fn is_stop(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Finds the stops among eight bytes, the first byte lowest. The high bit of the first stop is set, possibly those of
/// bytes above it, and no bit below it.
#[inline]
fn stops(word: u64) -> u64 {
    // A byte that is 0 has its high bit set, and bytes above it may too.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let below_space = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
    zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\'))) | below_space
}

/// Returns the first stop from `at` on; or the end.
#[inline]
pub(crate) fn end_of_plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(part) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let found = stops(u64::from_le_bytes(*part));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| !is_stop(byte)) {
        at += 1;
    }
    at
}

/// Returns true if all of it is plain.
#[inline]
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    match bytes.last_chunk::<8>() {
        // The last eight bytes cover the rest after the whole words.
        Some(last) => {
            let (whole, _) = bytes.as_chunks::<8>();
            stops(u64::from_le_bytes(*last)) == 0 && whole.iter().all(|part| stops(u64::from_le_bytes(*part)) == 0)
        }
        None => !bytes.iter().any(|&byte| is_stop(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn plain_text_ends_where_it_does(bytes in proptest::collection::vec(any::<u8>(), 0..40), from in 0usize..10) {
            let slow = bytes.iter().skip(from).position(|&byte| is_stop(byte)).map_or(bytes.len().max(from), |at| from + at);
            prop_assert_eq!(end_of_plain(&bytes, from), slow);
            prop_assert_eq!(is_plain(&bytes), !bytes.iter().any(|&byte| is_stop(byte)));
        }

        #[test]
        fn text_without_stops_is_plain(text in "[ a-zé!#-\\[\\]-~]{0,40}") {
            prop_assert!(is_plain(text.as_bytes()));
        }
    }
}
