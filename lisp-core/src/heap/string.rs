//! Strings and the texts of keywords. Their bytes never change, so a substring is a view of the whole.

use super::header::Header;
use super::{Heap, Res, Value};
use crate::cost;
use std::cell::Cell;

/// Texts up to this length are hashed and compared within the cost of the instruction; longer ones cost fuel.
pub(super) const SHORT_TEXT: usize = 64;

/// A string in an arena, or a view of a part of one.
pub struct Str<'h> {
    pub(super) head: Header,
    text: Cell<&'h str>,
}

impl<'h> Str<'h> {
    pub(super) fn new(head: Header, text: &'h str) -> Self {
        Str { head, text: Cell::new(text) }
    }

    /// Returns the text.
    #[inline(always)]
    pub fn text(&self) -> &'h str {
        self.text.get()
    }

    /// Sets the text of a copy that was copied in pieces.
    pub(super) fn set_text(&self, text: &'h str) {
        self.text.set(text);
    }
}

/// Hashes bytes with a fixed, fast function: the same on every machine, so that fuel is too.
#[inline]
pub(crate) fn hash_bytes(bytes: &[u8]) -> u32 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut h = (bytes.len() as u64).wrapping_mul(K);
    let mut chunks = bytes.chunks_exact(8);
    for c in &mut chunks {
        let word = u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]);
        h = mix(h ^ word);
    }
    let mut last = 0u64;
    for (i, &b) in chunks.remainder().iter().enumerate() {
        last |= u64::from(b) << (8 * i);
    }
    folded(mix(h ^ last))
}

/// Returns the hash of the keyword, or string, with this text.
pub(super) fn hash_text(text: &str, keyword: bool) -> u32 {
    let hash = hash_bytes(text.as_bytes());
    if keyword { hash } else { hash ^ 0x5151_5151 }
}

/// Returns the fuel for hashing or comparing a text.
#[inline]
pub(super) fn text_cost(text: &str) -> u64 {
    if text.len() <= SHORT_TEXT { 0 } else { cost::copied(text.len()) }
}

/// Combines the two halves of a hash.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the upper half has been mixed into the lower one")]
pub(super) fn folded(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

/// Spreads every bit of a word over all others.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both halves of the product are used")]
pub(crate) fn mix(word: u64) -> u64 {
    let wide = u128::from(word ^ 0xA076_1D64_78BD_642F) * 0xE703_7ED1_A0B4_28DB;
    (wide as u64) ^ ((wide >> 64) as u64)
}

impl Heap {
    /// Returns a string with a copy of `text`.
    pub fn str<'h>(&'h self, text: &str) -> Res<Value<'h>> {
        Ok(Value::Str(self.text(text)?))
    }

    /// Returns a string that shares bytes already in an arena.
    pub(crate) fn str_view<'h>(&'h self, text: &'h str) -> Res<Value<'h>> {
        self.charge_share(text.len())?;
        Ok(Value::Str(self.alloc(Str::new(self.header(), text))?))
    }

    /// Returns a keyword with a copy of `text` (without the colon) as its name.
    pub fn keyword<'h>(&'h self, text: &str) -> Res<Value<'h>> {
        Ok(Value::Keyword(hash_bytes(text.as_bytes()), self.text(text)?))
    }

    /// Returns a string object with a copy of `text`.
    pub(crate) fn text<'h>(&'h self, text: &str) -> Res<&'h Str<'h>> {
        let head = self.header();
        self.alloc_with_text(text, |text| Str::new(head, text))
    }
}
