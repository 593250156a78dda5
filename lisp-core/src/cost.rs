//! The cost schedule: how much fuel work costs. Everything is charged before it is done.
//!
//! One instruction of the machine costs [`INSTRUCTION`]; a built-in costs in proportion to its work, by the functions
//! here, and where nothing else is said one unit for each element, entry, character or step. A unit is
//! about ten nanoseconds at most. The cost of a program depends on the program and its data alone: not on the machine,
//! the memory that is left, compactions, or the slices in which a driver lets it run.

/// Changes whenever the same program may come to another sum than before.
pub const COST_SCHEDULE_VERSION: u32 = 15;

/// One instruction.
pub const INSTRUCTION: u64 = 1;
/// Bytes of text copied, hashed or compared for one unit.
pub const BYTES_PER_UNIT: u64 = 16;
/// Bytes of text that are copied for nothing as a part of something else.
pub const SHORT: usize = 32;
/// Bytes of text looked at one by one for one unit.
pub const SCANNED_BYTES_PER_UNIT: u64 = 8;
/// A value read from text, besides its text.
pub const VALUE_READ: u64 = 4;
/// A character of several bytes that is told from the next one, or one that is made a value.
pub const CHARACTER: u64 = 8;
/// Bytes of text taken apart into values for one unit.
pub const PARSED_BYTES_PER_UNIT: u64 = 4;
/// Elements of a vector copied as they are for one unit.
pub const MOVED_PER_UNIT: u64 = 2;
/// Entries and children of a node of a map copied for one unit.
pub const NODE_PARTS_PER_UNIT: u64 = 4;
/// Units for each entry of a map that is built as a whole: its hash, its place in the order, its node.
pub const ENTRY_BUILT: u64 = 4;
/// Units for an element that is looked up or put among others: its hash and its place.
pub const PLACED: u64 = 4;
/// Units for a number that is added to the sum of those before.
pub const ADDED: u64 = 3;
/// Elements of two vectors compared for their order, or entries of two maps.
pub const COMPARED: u64 = 2;
/// Keys of a small map that is made, compared with another for one unit.
pub const COMPARED_PER_UNIT: u64 = 2;
/// Keys of a small map that another key is compared with for one unit.
pub const KEYS_PER_UNIT: u64 = 4;
/// Words of eight bytes of names compared for one unit, where a keyword is looked for among the keys of a small map.
pub const NAME_WORDS_PER_UNIT: usize = 4;
/// Keys or values that a small map is made anew with for one unit.
pub const KEYS_COPIED_PER_UNIT: u64 = 4;
/// Units for the text of a date or time, beside its characters.
pub const TIME_WRITTEN: u64 = 8;
/// Units for an exception that is made, with its map.
pub const EXCEPTION: u64 = 16;
/// Units for the class of an exception, found by its name.
pub const CLASS_FOUND: u64 = 4;
/// Units for a sigma in lower case, and for each of the characters around it on which its form depends.
pub const SIGMA: u64 = 16;
/// Units for an entry that is described: its name, its type, its place.
pub const DESCRIBED: u64 = 4;
/// Units for a value written as a part of a text.
pub const TEXT_PART: u64 = 2;
/// The way to an entry of a large map, and to where one might be.
pub const LOOK_UP: u64 = 3;
/// A preview of a value, and each part of it.
pub const PREVIEW: u64 = 16;
/// A part of a preview.
pub const PREVIEW_PART: u64 = 8;
/// A float that is written, with its own digits or with a number of them that is asked for.
pub const FLOAT_WRITTEN: u64 = 12;
/// Digits of a float that are found at once.
pub const FLOAT_DIGITS: usize = 17;
/// Units for each digit beyond them.
pub const FLOAT_DIGIT: u64 = 8;
/// A date read in the one form there is.
pub const DATE_READ: u64 = 4;
/// A date read in one of the older forms.
pub const OLD_DATE_READ: u64 = 32;
/// A pattern read.
pub const PATTERN_READ: u64 = 1_000;
/// Units for a part of the estimated effort of compiling a pattern. A class of Unicode's has 64 of them.
pub const PATTERN_EFFORT: u64 = 100;
/// Units for a part of a text that becomes a value.
pub const PART: u64 = 3;
/// Units for a text prepared for searches in others.
pub const SOUGHT: u64 = 8;
/// A search for the next match, whatever it finds.
pub const SEARCH: u64 = 8;
/// Bytes of a text searched at one go for one unit more at each search.
pub const SEARCHED_AGAIN_PER_UNIT: u64 = 64;
/// Limbs (of 32 bits) compared for one unit.
pub const LIMBS_PER_UNIT: u64 = 8;
/// Units for a limb turned into digits of a base that is a power of two.
pub const LIMB_WRITTEN: u64 = 8;
/// Bytes of a number read for one unit.
pub const NUMBER_BYTES_PER_UNIT: u64 = 2;
/// Limbs (of 32 bits) by which a division is counted.
pub const DIVIDED_LIMBS: usize = 128;
/// Pairs of limbs (of 32 bits) multiplied or divided for one unit.
pub const LIMB_PAIRS_PER_UNIT: u64 = 16;
/// Bytes of text searched by a regular expression for one unit; a pattern of many places costs more.
pub const SEARCHED_BYTES_PER_UNIT: u64 = 4;
/// Bytes of text gone through for the groups of a match for one unit: they are found more slowly.
pub const GROUP_BYTES_PER_UNIT: u64 = 2;
/// How many times more a byte costs where a search can be at so many places of its pattern at once. At worst each byte leads to a new
/// state of the automaton, which is made of all these places; of large states few are kept.
pub const fn search_spread(places: u64) -> u64 {
    /// Places of which a state is large.
    const LARGE: u64 = 512;
    places.saturating_add(places.saturating_mul(places) / LARGE).saturating_add(1)
}
/// Steps of the backtracking machine for one unit.
pub const BACKTRACKED_STEPS_PER_UNIT: u64 = 2;
/// Bytes of the compiled form of a pattern for one unit, at every use.
pub const COMPILED_BYTES_PER_UNIT: u64 = 1_024;

/// A worker of a parallel call: a state, a heap, a frame.
pub const WORKER: u64 = 250;

/// Text copied, hashed or compared.
#[inline]
pub const fn copied(bytes: usize) -> u64 {
    bytes as u64 / BYTES_PER_UNIT
}

/// Text looked at byte by byte.
#[inline]
pub const fn scanned(bytes: usize) -> u64 {
    bytes as u64 / SCANNED_BYTES_PER_UNIT
}

/// Text taken apart into values.
#[inline]
pub const fn parsed(bytes: usize) -> u64 {
    bytes as u64 / PARSED_BYTES_PER_UNIT
}

/// Elements copied as they are.
#[inline]
pub const fn moved(elements: usize) -> u64 {
    elements as u64 / MOVED_PER_UNIT
}

/// `workers` workers, each with its own copy of the places of the definitions.
#[inline]
pub const fn workers(calls: usize, definitions: usize) -> u64 {
    (calls as u64).saturating_mul(WORKER.saturating_add(moved(definitions)))
}

/// A text made ready to be searched for, by its bytes.
#[inline]
pub const fn sought(bytes: usize) -> u64 {
    SOUGHT + parsed(bytes)
}

/// A float written, by its digits.
#[inline]
pub const fn float_written(digits: usize) -> u64 {
    FLOAT_WRITTEN + digits.saturating_sub(FLOAT_DIGITS) as u64 * FLOAT_DIGIT
}

/// A node of a map made anew.
#[inline]
pub const fn node(parts: usize) -> u64 {
    (parts as u64 / NODE_PARTS_PER_UNIT).saturating_add(1)
}

/// Steps of the backtracking machine.
#[inline]
pub const fn backtracked(steps: u64) -> u64 {
    steps / BACKTRACKED_STEPS_PER_UNIT
}

/// Elements looked up, or put among others, by their number.
#[inline]
pub const fn placed(elements: usize) -> u64 {
    (elements as u64).saturating_mul(PLACED)
}

/// Entries compared with others at the same places, by their number.
#[inline]
pub const fn compared(entries: usize) -> u64 {
    (entries as u64).saturating_mul(COMPARED)
}

/// A key compared with those of a small map, by their number.
#[inline]
pub const fn compared_with(keys: usize) -> u64 {
    keys as u64 / KEYS_PER_UNIT
}

/// Names compared with a keyword, by their words of eight bytes: up to 32 names of up to 64 bytes.
#[inline]
pub fn names_compared(words: usize) -> u8 {
    u8::try_from(words / NAME_WORDS_PER_UNIT).unwrap_or(u8::MAX)
}

/// A short text compared with the keys of a small map, by their number and its bytes.
#[inline]
pub const fn texts_compared(keys: usize, bytes: usize) -> u64 {
    (keys * (2 + bytes / 4) / (4 * NAME_WORDS_PER_UNIT)) as u64
}

/// A small map made anew with other keys, by their number; or with half as many values.
#[inline]
pub const fn keys_copied(keys: usize) -> u64 {
    keys as u64 / KEYS_COPIED_PER_UNIT
}

/// Entries described, by their number.
#[inline]
pub const fn described(entries: usize) -> u64 {
    (entries as u64).saturating_mul(DESCRIBED)
}

/// Integers compared, by the limbs of the shorter one.
#[inline]
pub const fn limbs_compared(limbs: usize) -> u64 {
    limbs as u64 / LIMBS_PER_UNIT
}

/// Sorting, by the number of elements, with a comparison that is charged for, or cheap.
#[inline]
pub const fn sorted(elements: usize) -> u64 {
    let n = elements as u64;
    n.saturating_mul((usize::BITS.saturating_sub(elements.leading_zeros())) as u64)
}

/// An integer of some limbs divided by one of `width` limbs: counted by pieces of [`DIVIDED_LIMBS`].
pub const fn division(limbs: usize, width: usize) -> u64 {
    let whole = limb_pairs(DIVIDED_LIMBS, width).saturating_mul((limbs / DIVIDED_LIMBS) as u64);
    let rest = limbs % DIVIDED_LIMBS;
    if rest == 0 { whole } else { whole.saturating_add(limb_pairs(rest, width)) }
}

/// Integers multiplied by the limbs of the two.
#[inline]
pub const fn limb_pairs(a: usize, b: usize) -> u64 {
    let pairs = (a as u64).saturating_mul(b as u64) / LIMB_PAIRS_PER_UNIT;
    pairs.saturating_add(a as u64).saturating_add(b as u64)
}
