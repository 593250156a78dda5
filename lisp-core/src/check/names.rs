//! Names that are probably meant by others.

use crate::text::distance_within;
use std::borrow::Cow;

/// The longest name that is looked at, in bytes. A longer one is never meant.
pub(super) const LONGEST: usize = 64;

/// Pays for a number of steps. Returns false if they are too many.
type Pay<'c> = &'c mut dyn FnMut(u32) -> bool;

/// Returns the name that is probably meant by one that is not there; `None` if there is none, or too little to pay for the search.
pub(super) fn nearest_of<'n>(names: impl Iterator<Item = &'n str>, name: &str, pay: Pay<'_>) -> Option<&'n str> {
    let wanted = Wanted::of(name)?;
    let mut nearest: Option<(usize, &str)> = None;
    for (at, other) in names.enumerate() {
        if at % 16 == 15 && !pay(1) {
            return None;
        }
        if !wanted.may_be(other) {
            continue;
        }
        if !pay(wanted.cost()) {
            return None;
        }
        if wanted.is_same(other) {
            return Some(other).filter(|other| !are_sisters(name, other));
        }
        let near = wanted.distance(other).map(|distance| (distance, other));
        nearest = [nearest, near].into_iter().flatten().min();
    }
    let (_, near) = nearest?;
    (!is_another_word(name, near) && !are_sisters(name, near)).then_some(near)
}

/// Returns the name among these that is probably meant by one that is not there. Among many that may be, none is: maps with such
/// keys are rather an index. What it takes is small: of very many names none is looked at.
pub(crate) fn similar<'n>(names: &[&'n str], name: &str) -> Option<&'n str> {
    const FEW: usize = 4;
    const LONGEST: usize = 40;
    const MANY: usize = 1_000;
    if names.len() > MANY {
        return None;
    }
    let wanted = Wanted::of(name).filter(|_| name.len() <= LONGEST)?;
    let may_be = |other: &&str| {
        other.len() <= LONGEST
            && other.len().abs_diff(name.len()) <= FEW
            && wanted.may_be(other)
            && (wanted.is_same(other) || wanted.distance(other).is_some())
    };
    let mut few = [""; FEW];
    let mut count = 0;
    for &other in names.iter().filter(|other| may_be(other)) {
        *few.get_mut(count)? = other;
        count += 1;
    }
    nearest_of(few[..count].iter().copied(), name, &mut |_| true)
}

/// A name that is not there.
struct Wanted<'n> {
    name: &'n str,
    letters: u64,
    plain: String,
    count: usize,
}

impl<'n> Wanted<'n> {
    fn of(name: &'n str) -> Option<Self> {
        (name.len() <= LONGEST).then(|| Wanted {
            name,
            letters: letters_of(name),
            plain: plain(name),
            count: name.chars().count(),
        })
    }

    /// Returns whether another name may be similar. The names that are left are few.
    fn may_be(&self, other: &str) -> bool {
        // Two changes bring at most two letters and take at most two.
        other.len() <= LONGEST && (letters_of(other) ^ self.letters).count_ones() <= 4
    }

    /// Returns the steps that a comparison with another name takes at most.
    fn cost(&self) -> u32 {
        u32::try_from(self.name.len() / 16).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Returns whether a name is the same in another case or with other separators, or one is the plural of the other.
    fn is_same(&self, other: &str) -> bool {
        let other = plain(other);
        other == self.plain || is_plural(&other, &self.plain)
    }

    /// Returns how many characters differ, if these are few among so many.
    fn distance(&self, other: &str) -> Option<usize> {
        let count = self.count.min(other.chars().count());
        distance_within(self.name, other, max_distance(count)).filter(|&distance| distance < count)
    }
}

/// Returns how many characters may differ in a name of so many.
fn max_distance(count: usize) -> usize {
    if count <= 5 { 1 } else { 2 }
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | '_' | ' ' | '?')).flat_map(char::to_lowercase).collect()
}

/// Returns whether one of two names is the plural of the other.
pub(super) fn is_plural(a: &str, b: &str) -> bool {
    let is_of = |many: &str, one: &str| many.strip_suffix('s') == Some(one) && !one.ends_with('s');
    is_of(a, b) || is_of(b, a)
}

/// Returns the words of a name, as of `unit-price`, `unit_price` or `unitPrice`.
fn words(name: &str) -> impl Iterator<Item = &str> + Clone {
    name.split(['-', '_', ' ', '.']).flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            let is_start = |(at, pair): (usize, &[u8])| {
                (pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).then_some(at + 1)
            };
            let end = rest.as_bytes().windows(2).enumerate().find_map(is_start).unwrap_or(rest.len());
            let (word, more) = rest.split_at(end);
            rest = more;
            (!word.is_empty()).then_some(word)
        })
    })
}

/// Returns the words that two names have in the same place and that differ; both names if their words are the same, or not as many;
/// `None` if several words differ.
fn differing<'n>(a: &'n str, b: &'n str) -> Option<(&'n str, &'n str)> {
    if words(a).count() != words(b).count() {
        return Some((a, b));
    }
    let mut pairs = words(a).zip(words(b)).filter(|(a, b)| !a.eq_ignore_ascii_case(b));
    match (pairs.next(), pairs.next()) {
        (Some(pair), None) => Some(pair),
        (None, _) => Some((a, b)),
        _ => None,
    }
}

/// Returns whether two similar names have different words, such as `rate` and `date`, or `tax_rate` and `day_rate`.
fn is_another_word(name: &str, near: &str) -> bool {
    // In two words only a letter that has come to the next word is no other word.
    let Some((a, b)) = differing(name, near) else { return distance_within(name, near, 1).is_none() };
    match a.chars().count().min(b.chars().count()) {
        // Of so few letters many are similar, but not with the same letters.
        0..=2 => letters(a) != letters(b),
        count => distance_within(a, b, max_distance(count)).is_none_or(|distance| has_another_start(a, b, distance)),
    }
}

/// Returns whether the first letter of one word stands in the place of that of another one: it is neither missing, nor doubled, nor
/// swapped with the next.
fn has_another_start(a: &str, b: &str, distance: usize) -> bool {
    let tail = |word: &'_ str| word.chars().next().map_or(0, char::len_utf8);
    let (a_rest, b_rest) = (&a[tail(a)..], &b[tail(b)..]);
    let (mut first, mut second) = (a.chars(), b.chars());
    let (a0, a1, b0, b1) = (first.next(), first.next(), second.next(), second.next());
    let is_missing = distance_within(a_rest, b, 1).is_some_and(|rest| rest < distance)
        || distance_within(a, b_rest, 1).is_some_and(|rest| rest < distance);
    a0 != b0 && !(a0 == b1 && a1 == b0) && !is_missing
}

/// Returns whether two names stand for two things, such as `line1` and `line2`, or `price_min` and `price_max`.
fn are_sisters(a: &str, b: &str) -> bool {
    /// Words that differ in a letter or two, as a misspelt one does, and words that are opposites.
    const PAIRS: &[(&str, &str)] = &[
        ("min", "max"),
        ("minimum", "maximum"),
        ("x", "y"),
        ("name", "date"),
        ("http", "https"),
        ("expired", "expires"),
        ("folder", "filter"),
        ("app", "api"),
        ("start", "end"),
        ("from", "to"),
        ("first", "last"),
        ("old", "new"),
        ("in", "out"),
        ("on", "off"),
        ("latitude", "altitude"),
        ("quantity", "quality"),
        ("date", "data"),
        ("state", "stage"),
        ("start", "stars"),
        ("stars", "stats"),
        ("stats", "status"),
        ("mode", "model"),
        ("url", "uri"),
        ("text", "test"),
        ("from", "form"),
        ("last", "list"),
        ("tag", "tax"),
        ("price", "prize"),
        ("login", "logic"),
        ("parent", "patent"),
        ("count", "county"),
        ("country", "county"),
        ("content", "context"),
        ("contact", "contract"),
        ("contact", "content"),
        ("role", "rule"),
        ("part", "port"),
        ("port", "post"),
        ("code", "core"),
        ("score", "store"),
        ("change", "charge"),
        ("changed", "charged"),
        ("sent", "send"),
        ("read", "ready"),
        ("product", "project"),
        ("amount", "account"),
        ("line", "link"),
    ];
    let by_number = a.bytes().filter(u8::is_ascii_digit).ne(b.bytes().filter(u8::is_ascii_digit));
    by_number
        || words(a).count() == words(b).count()
            && differing(a, b).is_some_and(|(a, b)| {
                let is = |one: &str, word: &str| one.eq_ignore_ascii_case(word);
                PAIRS.iter().any(|(one, other)| is(a, one) && is(b, other) || is(a, other) && is(b, one))
            })
}

/// Returns a bit for each letter and digit of a name, in either case; the other characters of other alphabets share one.
fn letters_of(name: &str) -> u64 {
    name.bytes().fold(0, |letters, byte| match byte.to_ascii_lowercase() {
        letter @ b'a'..=b'z' => letters | 1 << (letter - b'a'),
        digit @ b'0'..=b'9' => letters | 1 << (26 + digit - b'0'),
        b'-' | b'_' | b' ' | b'?' => letters,
        byte if byte.is_ascii() => letters | 1 << (36 + byte % 27),
        _ => letters | 1 << 63,
    })
}

/// Returns the different letters of a name, in order.
fn letters(name: &str) -> Vec<char> {
    let mut letters: Vec<char> = name.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    letters
}

/// Returns a name for a message: of a long one the beginning.
pub(super) fn cut(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(LONGEST) {
        None => name.into(),
        Some((end, _)) => format!("{}…", &name[..end]).into(),
    }
}

/// Returns a name for a repair; `None` if it is long.
pub(super) fn whole(name: &str) -> Option<&str> {
    matches!(cut(name), Cow::Borrowed(_)).then_some(name)
}

/// Returns a key as a keyword, or as a string if no keyword is written like this.
pub(super) fn keyword_shown(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '?' | '!' | '.' | '*' | '+' | '/');
    match !name.is_empty() && name.chars().all(is_plain) {
        true => format!(":{}", cut(name)),
        false => string_shown(&cut(name)),
    }
}

/// Returns a text as a program writes it. Characters that a reader does not see are escaped.
pub(super) fn string_shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 2);
    shown.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => shown.extend(['\\', c]),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            // What Rust escapes is not visible, or not on its own.
            c if c.escape_debug().count() > 1 && c != '\'' => {
                let units = c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
                shown.push_str(&units);
            }
            c => shown.push(c),
        }
    }
    shown.push('"');
    shown
}

/// Returns the repair of a key: the one that is meant, and as it is shown.
pub(super) fn written(meant: &str, shown: &str) -> String {
    match shown.starts_with(':') || keyword_shown(meant).starts_with(':') {
        true => format!("write {shown}"),
        false => format!("write (get map {shown})"),
    }
}
