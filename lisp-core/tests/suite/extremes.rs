//! Values at which built-ins take longest.

use lisp_core::heap::{Heap, Res, Value};

/// Strings whose hashes are all the same, as their word 2 undoes word 1.
pub(crate) fn colliding() -> impl Iterator<Item = String> {
    let mix = |word: u64| {
        let wide = u128::from(word ^ 0xA076_1D64_78BD_642F) * 0xE703_7ED1_A0B4_28DB;
        (wide as u64) ^ ((wide >> 64) as u64)
    };
    (0u64..).filter_map(move |i| {
        let first = (0..8).fold(0, |word, place| word << 8 | (0x30 + i / 10u64.pow(place) % 10));
        let second = mix(16u64.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ first) ^ 0xA076_1D64_78BD_642F;
        String::from_utf8([first.to_le_bytes(), second.to_le_bytes()].concat()).ok()
    })
}

/// A value `depth` levels deep, each made of the one below; the lowest is 1.
pub(crate) fn nested<'h>(
    h: &'h Heap,
    depth: usize,
    level: impl Fn(&'h Heap, Value<'h>) -> Res<Value<'h>>,
) -> Res<Value<'h>> {
    (0..depth).try_fold(Value::Int(1), |v, _| level(h, v))
}
