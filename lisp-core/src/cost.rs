//! The cost schedule: how much fuel work costs. Everything is charged before it is done.
//!
//! One instruction costs [`INSTRUCTION`]. A built-in costs in proportion to its work, by the functions here; by default
//! one unit for each element, entry, character or step. A unit takes about a nanosecond in a loop, and at most some
//! twenty in a built-in. The cost of a program depends only on the program and its data: not on the machine, the free
//! memory, compactions, or the time slices of the driver.

/// The version of the cost schedule. Changes whenever the cost of any program may change.
pub const COST_SCHEDULE_VERSION: u32 = 15;

/// Units for one instruction.
pub const INSTRUCTION: u64 = 1;
/// Bytes of text copied, hashed or compared for one unit.
pub const BYTES_PER_UNIT: u64 = 16;
/// Bytes of text that are copied at no cost as a part of something else.
pub const SHORT: usize = 32;
/// Bytes of text scanned one by one for one unit.
pub const SCANNED_BYTES_PER_UNIT: u64 = 8;
/// Units for a value parsed from text, in addition to its text.
pub const VALUE_READ: u64 = 4;
/// Units to find the end of a character of several bytes, or to make a character a value.
pub const CHARACTER: u64 = 8;
/// Bytes of text parsed into values for one unit.
pub const PARSED_BYTES_PER_UNIT: u64 = 4;
/// Elements of a vector copied unchanged for one unit.
pub const MOVED_PER_UNIT: u64 = 2;
/// Entries and children of a map node copied for one unit.
pub const NODE_PARTS_PER_UNIT: u64 = 4;
/// Units for each entry of a map that is built at once: its hash, its position in the order, its node.
pub const ENTRY_BUILT: u64 = 4;
/// Units for an element that is looked up or inserted: its hash and its position.
pub const PLACED: u64 = 4;
/// Units for a number added to a sum.
pub const ADDED: u64 = 3;
/// Units for two elements of vectors, or entries of maps, compared for their order.
pub const COMPARED: u64 = 2;
/// Keys of a new small map compared with another key for one unit.
pub const COMPARED_PER_UNIT: u64 = 2;
/// Keys of a small map that a key is compared with for one unit.
pub const KEYS_PER_UNIT: u64 = 4;
/// Words of eight bytes of names compared for one unit, when a keyword is looked up among the keys of a small map.
pub const NAME_WORDS_PER_UNIT: usize = 4;
/// Keys or values copied into a new small map for one unit.
pub const KEYS_COPIED_PER_UNIT: u64 = 4;
/// Units for the text of a date or time, in addition to its characters.
pub const TIME_WRITTEN: u64 = 8;
/// Units for creating an exception with its map.
pub const EXCEPTION: u64 = 16;
/// Units for finding the class of an exception by its name.
pub const CLASS_FOUND: u64 = 4;
/// Units for a sigma converted to lower case, and for each of the characters around it that decide its form.
pub const SIGMA: u64 = 16;
/// Units for an entry that is described: its name, its type, its position.
pub const DESCRIBED: u64 = 4;
/// Units for a value written as a part of a text.
pub const TEXT_PART: u64 = 2;
/// Units for the path to an entry of a large map, whether or not the entry exists.
pub const LOOK_UP: u64 = 3;
/// Units for a preview of a value.
pub const PREVIEW: u64 = 16;
/// Units for a part of a preview.
pub const PREVIEW_PART: u64 = 8;
/// Units for a float that is written, with its own digits or a given number of them.
pub const FLOAT_WRITTEN: u64 = 12;
/// Digits of a float that are computed at once.
pub const FLOAT_DIGITS: usize = 17;
/// Units for each further digit.
pub const FLOAT_DIGIT: u64 = 8;
/// Units for a date parsed in the standard form.
pub const DATE_READ: u64 = 4;
/// Units for a date parsed in one of the older forms.
pub const OLD_DATE_READ: u64 = 32;
/// Units for parsing a pattern.
pub const PATTERN_READ: u64 = 1_000;
/// Units for a part of the estimated effort of compiling a pattern. A Unicode class has 64 of them.
pub const PATTERN_EFFORT: u64 = 100;
/// Units for a part of a text that becomes a value.
pub const PART: u64 = 3;
/// Units for preparing a text to be searched for.
pub const SOUGHT: u64 = 8;
/// Units for a search for the next match, whether or not it finds one.
pub const SEARCH: u64 = 8;
/// Bytes of a searched text for which each further search costs one more unit.
pub const SEARCHED_AGAIN_PER_UNIT: u64 = 64;
/// Limbs (of 32 bits) compared for one unit.
pub const LIMBS_PER_UNIT: u64 = 8;
/// Units for a limb converted to digits of a base that is a power of two.
pub const LIMB_WRITTEN: u64 = 8;
/// Bytes of a number parsed for one unit.
pub const NUMBER_BYTES_PER_UNIT: u64 = 2;
/// Limbs (of 32 bits) in one piece of a division.
pub const DIVIDED_LIMBS: usize = 128;
/// Pairs of limbs (of 32 bits) multiplied or divided for one unit.
pub const LIMB_PAIRS_PER_UNIT: u64 = 16;
/// Bytes of text searched by a regular expression for one unit; a pattern with many positions costs more.
pub const SEARCHED_BYTES_PER_UNIT: u64 = 4;
/// Bytes of text scanned for the groups of a match for one unit, which is slower than the search.
pub const GROUP_BYTES_PER_UNIT: u64 = 2;
/// Returns the factor for the cost of a byte in a search that can be at this many positions of its pattern at once. At
/// worst each byte leads to a new state of the automaton, made of all these positions, and few large states are cached.
pub const fn search_spread(places: u64) -> u64 {
    /// The number of positions from which a state is large.
    const LARGE: u64 = 512;
    places.saturating_add(places.saturating_mul(places) / LARGE).saturating_add(1)
}
/// Steps of the backtracking engine for one unit.
pub const BACKTRACKED_STEPS_PER_UNIT: u64 = 2;
/// Bytes of the compiled form of a pattern for one unit, at every use.
pub const COMPILED_BYTES_PER_UNIT: u64 = 1_024;

/// Units for a worker of a parallel call: a state, a heap, a frame.
pub const WORKER: u64 = 250;

/// Returns the cost of text that is copied, hashed or compared.
#[inline]
pub const fn copied(bytes: usize) -> u64 {
    bytes as u64 / BYTES_PER_UNIT
}

/// Returns the cost of text that is scanned byte by byte.
#[inline]
pub const fn scanned(bytes: usize) -> u64 {
    bytes as u64 / SCANNED_BYTES_PER_UNIT
}

/// Returns the cost of text that is parsed into values.
#[inline]
pub const fn parsed(bytes: usize) -> u64 {
    bytes as u64 / PARSED_BYTES_PER_UNIT
}

/// Returns the cost of elements that are copied unchanged.
#[inline]
pub const fn moved(elements: usize) -> u64 {
    elements as u64 / MOVED_PER_UNIT
}

/// Returns the cost of the workers of `calls` calls, each with its own copy of the slots of the definitions.
#[inline]
pub const fn workers(calls: usize, definitions: usize) -> u64 {
    (calls as u64).saturating_mul(WORKER.saturating_add(moved(definitions)))
}

/// Returns the cost of preparing a text of this many bytes to be searched for.
#[inline]
pub const fn sought(bytes: usize) -> u64 {
    SOUGHT + parsed(bytes)
}

/// Returns the cost of writing a float with this many digits.
#[inline]
pub const fn float_written(digits: usize) -> u64 {
    FLOAT_WRITTEN + digits.saturating_sub(FLOAT_DIGITS) as u64 * FLOAT_DIGIT
}

/// Returns the cost of a new map node.
#[inline]
pub const fn node(parts: usize) -> u64 {
    (parts as u64 / NODE_PARTS_PER_UNIT).saturating_add(1)
}

/// Returns the cost of steps of the backtracking engine.
#[inline]
pub const fn backtracked(steps: u64) -> u64 {
    steps / BACKTRACKED_STEPS_PER_UNIT
}

/// Returns the cost of elements that are looked up or inserted.
#[inline]
pub const fn placed(elements: usize) -> u64 {
    (elements as u64).saturating_mul(PLACED)
}

/// Returns the cost of comparing entries with others at the same positions.
#[inline]
pub const fn compared(entries: usize) -> u64 {
    (entries as u64).saturating_mul(COMPARED)
}

/// Returns the cost of comparing a key with this many keys of a small map.
#[inline]
pub const fn compared_with(keys: usize) -> u64 {
    keys as u64 / KEYS_PER_UNIT
}

/// Returns the cost of comparing names with a keyword, by their words of eight bytes: up to 32 names of up to 64 bytes.
#[inline]
pub fn names_compared(words: usize) -> u8 {
    u8::try_from(words / NAME_WORDS_PER_UNIT).unwrap_or(u8::MAX)
}

/// Returns the cost of comparing a short text of this many bytes with the keys of a small map.
#[inline]
pub const fn texts_compared(keys: usize, bytes: usize) -> u64 {
    (keys * (2 + bytes / 4) / (4 * NAME_WORDS_PER_UNIT)) as u64
}

/// Returns the cost of a new small map with this many other keys, or with half as many values.
#[inline]
pub const fn keys_copied(keys: usize) -> u64 {
    keys as u64 / KEYS_COPIED_PER_UNIT
}

/// Returns the cost of comparing the names of up to 32 keys with each other: each pair by length, and so many words of eight
/// bytes of those that are equally long.
pub const fn pairs_compared(keys: usize, words: usize) -> u64 {
    (keys * keys / 32 + words / NAME_WORDS_PER_UNIT) as u64
}

/// Returns the cost of describing entries.
#[inline]
pub const fn described(entries: usize) -> u64 {
    (entries as u64).saturating_mul(DESCRIBED)
}

/// Returns the cost of comparing integers, by the limbs of the shorter one.
#[inline]
pub const fn limbs_compared(limbs: usize) -> u64 {
    limbs as u64 / LIMBS_PER_UNIT
}

/// Returns the cost of sorting elements. Comparisons that are not cheap are charged in addition.
#[inline]
pub const fn sorted(elements: usize) -> u64 {
    let n = elements as u64;
    n.saturating_mul((usize::BITS.saturating_sub(elements.leading_zeros())) as u64)
}

/// Returns the cost of dividing an integer of `limbs` limbs by one of `width` limbs, in pieces of [`DIVIDED_LIMBS`].
pub const fn division(limbs: usize, width: usize) -> u64 {
    let whole = limb_pairs(DIVIDED_LIMBS, width).saturating_mul((limbs / DIVIDED_LIMBS) as u64);
    let rest = limbs % DIVIDED_LIMBS;
    if rest == 0 { whole } else { whole.saturating_add(limb_pairs(rest, width)) }
}

/// Returns the cost of multiplying integers with this many limbs.
#[inline]
pub const fn limb_pairs(a: usize, b: usize) -> u64 {
    let pairs = (a as u64).saturating_mul(b as u64) / LIMB_PAIRS_PER_UNIT;
    pairs.saturating_add(a as u64).saturating_add(b as u64)
}
