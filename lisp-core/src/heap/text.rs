//! Strings under construction, metered as they grow.

use super::{Heap, Res, Value};
use crate::cost;

/// A string under construction. Its bytes are charged to the memory limit and paid for with fuel when its buffer grows,
/// including the copy into the arena. So adding text only has to check whether there is room.
pub struct TextBuf<'h> {
    heap: &'h Heap,
    text: String,
    /// Bytes that fitted the limit when they were requested. The buffer may be larger, because it is reused.
    granted: usize,
}

/// A string so short that a [`TextBuf`] would neither check nor charge for it, without a heap-allocated buffer.
pub(crate) struct ShortText {
    bytes: [u8; TextBuf::FREE],
    len: usize,
}

impl ShortText {
    /// Creates an empty string.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        ShortText { bytes: [0; TextBuf::FREE], len: 0 }
    }

    /// Adds a text if all of it fits. Returns whether it did.
    #[inline(always)]
    pub(crate) fn push(&mut self, text: &str) -> bool {
        let Some(room) = self.bytes.get_mut(self.len..).and_then(|free| free.get_mut(..text.len())) else {
            return false;
        };
        room.copy_from_slice(text.as_bytes());
        self.len = self.len.wrapping_add(text.len());
        true
    }

    /// Returns the text so far.
    #[inline(always)]
    pub(crate) fn as_str(&self) -> &str {
        // SAFETY: complete texts were written to the first `len` bytes, which are at most as many as fit.
        unsafe { std::str::from_utf8_unchecked(self.bytes.get_unchecked(..self.len)) }
    }
}

impl<'h> TextBuf<'h> {
    /// Bytes that are neither checked nor charged: an idle heap keeps a larger buffer, and the finished string is
    /// checked.
    const FREE: usize = 64;

    /// Creates an empty string.
    pub fn new(heap: &'h Heap) -> Self {
        let mut text = heap.take_scratch();
        if text.capacity() < Self::FREE {
            text = String::with_capacity(Self::FREE);
        }
        TextBuf { heap, text, granted: Self::FREE }
    }

    /// Ensures that there is memory for `more` bytes, and charges for them.
    #[inline(always)]
    pub fn reserve(&mut self, more: usize) -> Res<()> {
        // Both are lengths of texts in memory.
        let need = self.text.len().wrapping_add(more);
        if need > self.granted { self.grow(need) } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self, need: usize) -> Res<()> {
        let room = need.max(self.granted * 2);
        // The finished string is copied into the arena, so both must fit.
        self.heap.check_available(room.saturating_add(need))?;
        self.heap.charge(cost::copied(room - self.granted))?;
        self.text.reserve_exact(room - self.text.len());
        self.granted = room;
        Ok(())
    }

    /// Adds a text.
    #[inline]
    pub fn push_str(&mut self, text: &str) -> Res<()> {
        self.reserve(text.len())?;
        // SAFETY: there is room for it.
        unsafe { self.append(text) };
        Ok(())
    }

    /// Adds a text without checking for room.
    ///
    /// # Safety
    /// Its bytes were granted.
    #[inline(always)]
    unsafe fn append(&mut self, text: &str) {
        let len = self.text.len();
        // SAFETY: the buffer is never smaller than what was granted. A complete text is added, so the contents stay
        // UTF-8.
        unsafe {
            let buffer = self.text.as_mut_vec();
            buffer.as_mut_ptr().add(len).copy_from_nonoverlapping(text.as_ptr(), text.len());
            // It is at most what was granted.
            buffer.set_len(len.wrapping_add(text.len()));
        }
    }

    /// Adds several texts. Inlined, because that pays off when some lengths are known.
    #[inline(always)]
    pub fn push_all(&mut self, parts: &[&str]) -> Res<()> {
        self.reserve(parts.iter().map(|part| part.len()).sum())?;
        for part in parts {
            // SAFETY: there is room for all of them.
            unsafe { self.append(part) };
        }
        Ok(())
    }

    /// Adds a text between quotation marks if it needs no escapes, optionally with a comma before and a colon after it.
    /// Returns whether it did. The text is paid for before it is checked.
    #[inline(always)]
    pub(crate) fn push_quoted(
        &mut self,
        comma: bool,
        text: &str,
        colon: bool,
        is_plain: impl FnOnce(&[u8]) -> bool,
    ) -> Res<bool> {
        let marks = 2 + usize::from(comma) + usize::from(colon);
        self.reserve(text.len().wrapping_add(marks))?;
        if !is_plain(text.as_bytes()) {
            return Ok(false);
        }
        let len = self.text.len();
        // SAFETY: there is room for the text and the marks, as just ensured: the buffer is never smaller than what was
        // granted. What is written is UTF-8: a complete text with ASCII before and after it.
        unsafe {
            let buffer = self.text.as_mut_vec();
            let mut end = buffer.as_mut_ptr().add(len);
            if comma {
                end.write(b',');
                end = end.add(1);
            }
            end.write(b'"');
            end = end.add(1);
            end.copy_from_nonoverlapping(text.as_ptr(), text.len());
            end = end.add(text.len());
            end.write(b'"');
            end = end.add(1);
            if colon {
                end.write(b':');
                end = end.add(1);
            }
            buffer.set_len(end.offset_from_unsigned(buffer.as_ptr()));
        }
        Ok(true)
    }

    /// Charges for a search in a text that will be added.
    #[inline]
    pub fn charge_scan(&self, text: &str) -> Res<()> {
        self.heap.charge_copy(text.len())
    }

    /// Charges for scanning a text that will be added, byte by byte.
    pub(crate) fn look_at_each(&self, text: &str) -> Res<()> {
        self.heap.charge(cost::parsed(text.len()))
    }

    /// Adds a character.
    #[inline]
    pub fn push(&mut self, c: char) -> Res<()> {
        self.reserve(4)?;
        self.text.push(c);
        Ok(())
    }

    /// Adds a character several times.
    pub fn fill(&mut self, c: char, times: usize) -> Res<()> {
        self.reserve(times.saturating_mul(c.len_utf8()).min(usize::MAX / 4))?;
        self.text.extend(std::iter::repeat_n(c, times));
        Ok(())
    }

    /// Returns the text so far.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the finished string, in the arena. Inlined, because most strings are short and the call would take as
    /// long as the work.
    #[inline(always)]
    pub fn finish(self) -> Res<Value<'h>> {
        self.heap.str(&self.text)
    }

    /// Returns the text as it is, outside the arena.
    pub fn into_string(mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

impl Drop for TextBuf<'_> {
    fn drop(&mut self) {
        self.heap.give_scratch(std::mem::take(&mut self.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_hold_what_was_added(parts in proptest::collection::vec("[a-z\"é]{0,40}", 0..12)) {
            let h = Heap::new(1, 1 << 20);
            let (mut out, mut wanted) = (TextBuf::new(&h), String::new());
            let (mut short, mut fits) = (ShortText::new(), true);
            for (i, part) in parts.iter().enumerate() {
                out.push_str(part).expect("room");
                let plain = out.push_quoted(i % 2 == 0, part, i % 3 == 0, |text| !text.contains(&b'"')).expect("room");
                prop_assert_eq!(plain, !part.contains('"'));
                wanted.push_str(part);
                if plain {
                    let (comma, colon) = (if i % 2 == 0 { "," } else { "" }, if i % 3 == 0 { ":" } else { "" });
                    wanted.push_str(&format!("{comma}\"{part}\"{colon}"));
                }
                prop_assert_eq!(out.as_str(), &wanted);
                fits &= short.push(part);
            }
            let all: String = parts.concat();
            prop_assert_eq!(fits, all.len() <= TextBuf::FREE);
            if fits {
                prop_assert_eq!(short.as_str(), &all);
            }
        }
    }
}
