//! Sizes that are smaller in tests, so that small data reaches the code for large data. No other constant depends on the
//! build.

/// Returns the second size, or in the unit tests of this crate the first. Fuel may depend on it.
const fn in_unit_tests(small: usize, size: usize) -> usize {
    if cfg!(test) { small } else { size }
}

/// Returns the second size, or with debug assertions the first, also in the tests of other crates. Fuel and values do
/// not depend on it.
const fn with_assertions(small: usize, size: usize) -> usize {
    if cfg!(debug_assertions) { small } else { size }
}

/// The bits of the hash that each level of a map tree uses.
pub(crate) const TREE_BITS: u32 = if cfg!(test) { 1 } else { 5 };
/// With fewer entries, a new map tree is sorted by comparing, which is then faster than counting.
pub(crate) const SORTED_BY_COUNTING: usize = in_unit_tests(8, 256);
/// The bytes of a long text that are scanned at once: far less than a millisecond.
pub(crate) const SCANNED_AT_ONCE: usize = in_unit_tests(16, 1 << 16);
/// The bytes of a character that cost no more than the text around it.
pub(crate) const USUAL_CHARACTER: usize = in_unit_tests(12, 64);
/// The bytes of a longer character that are charged at once, a unit for each.
pub(crate) const CHARACTER_PIECE: usize = in_unit_tests(16, 1_024);
/// More bytes than this are copied by a compaction in pieces of this size.
pub(crate) const COPIED_AT_ONCE: usize = with_assertions(1 << 7, 1 << 16);
/// The bytes that a compaction copies before it checks whether to continue.
pub(crate) const COMPACTED_AT_ONCE: usize = with_assertions(1 << 15, 1 << 19);
