//! The sets of characters that escapes such as `\d` and names in `\p{...}` stand for.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// Line terminators.
pub(super) const LINE_ENDS: &[(char, char)] =
    &[('\n', '\n'), ('\r', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')];
/// Horizontal white space in Java: `\h`.
const HORIZONTAL: &[(char, char)] = &[
    ('\t', '\t'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
];
/// Vertical white space: `\v`.
const VERTICAL: &[(char, char)] = &[('\n', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')];
const SPACE: &[(char, char)] = &[('\t', '\r'), (' ', ' ')];
const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];

/// A POSIX class: its name in Java, its ASCII ranges, and its definition with the flag `U`.
type Posix = (&'static str, &'static [(char, char)], &'static str);

const POSIX: &[Posix] = &[
    ("Lower", &[('a', 'z')], r"\p{Lowercase}"),
    ("Upper", &[('A', 'Z')], r"\p{Uppercase}"),
    ("ASCII", &[('\0', '\x7f')], r"[\x00-\x7F]"),
    ("Alpha", &[('A', 'Z'), ('a', 'z')], r"\p{Alphabetic}"),
    ("Digit", &[('0', '9')], r"\p{Nd}"),
    ("Alnum", &[('0', '9'), ('A', 'Z'), ('a', 'z')], r"[\p{Alphabetic}\p{Nd}]"),
    ("Punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')], r"\p{P}"),
    ("Graph", &[('!', '~')], r"[^\p{White_Space}\p{Cc}\p{Cn}]"),
    ("Print", &[(' ', '~')], r"[[^\p{White_Space}\p{Cc}\p{Cn}]\p{Zs}]"),
    ("Blank", &[('\t', '\t'), (' ', ' ')], r"[\p{Zs}\t]"),
    ("Cntrl", &[('\0', '\x1f'), ('\x7f', '\x7f')], r"\p{Cc}"),
    ("XDigit", &[('0', '9'), ('A', 'F'), ('a', 'f')], r"[\p{Nd}\p{Hex_Digit}]"),
    ("Space", SPACE, r"\p{White_Space}"),
];

/// Java's own names of sets, with their definitions in the syntax of regex-syntax.
const JAVA: &[(&str, &str)] = &[
    // No string contains a surrogate.
    ("Cs", r"[^\x00-\x{10FFFF}]"),
    ("L1", r"[\x00-\xFF]"),
    ("LD", r"[\p{L}\p{Nd}]"),
    ("all", r"(?s:.)"),
    ("javaLowerCase", r"\p{Lowercase}"),
    ("javaUpperCase", r"\p{Uppercase}"),
    ("javaAlphabetic", r"\p{Alphabetic}"),
    ("javaIdeographic", r"\p{Ideographic}"),
    ("javaTitleCase", r"\p{Lt}"),
    ("javaDigit", r"\p{Nd}"),
    ("javaDefined", r"\P{Cn}"),
    ("javaLetter", r"\p{L}"),
    ("javaLetterOrDigit", r"[\p{L}\p{Nd}]"),
    ("javaSpaceChar", r"\p{Z}"),
    ("javaWhitespace", r"[[\p{Z}--[\xA0\x{2007}\x{202F}]]\t-\r\x1C-\x1F]"),
    ("javaISOControl", r"\p{Cc}"),
    ("javaJavaIdentifierStart", r"[\p{L}\p{Nl}\p{Sc}\p{Pc}]"),
    ("javaJavaIdentifierPart", r"[\p{L}\p{Nl}\p{Sc}\p{Pc}\p{Nd}\p{Mc}\p{Mn}\x00-\x08\x0E-\x1B\x7F-\x9F\p{Cf}]"),
    ("javaIdentifierIgnorable", r"[\x00-\x08\x0E-\x1B\x7F-\x9F\p{Cf}]"),
    ("javaUnicodeIdentifierStart", r"\p{ID_Start}"),
    ("javaUnicodeIdentifierPart", r"[\p{ID_Continue}\x00-\x08\x0E-\x1B\x7F-\x9F\p{Cf}]"),
];

/// Java's own names after `Is` in `\p{Is...}`, with their definitions in the syntax of regex-syntax.
const IS: &[(&str, &str)] = &[
    ("assigned", r"\P{Cn}"),
    ("control", r"\p{Cc}"),
    ("digit", r"\p{Nd}"),
    ("hexdigit", r"[\p{Nd}\p{Hex_Digit}]"),
    ("hex_digit", r"[\p{Nd}\p{Hex_Digit}]"),
    ("letter", r"\p{L}"),
    ("punctuation", r"\p{P}"),
    ("titlecase", r"\p{Lt}"),
    ("word", r"\w"),
];

/// Groups of sets that are equal if case is ignored: each set then stands for all sets of its group.
const CASED: &[&[&str]] = &[
    &["Lower", "Upper"],
    &["Lu", "Ll", "Lt"],
    &["IsLu", "IsLl", "IsLt"],
    &["javaLowerCase", "javaUpperCase", "javaTitleCase"],
    &["IsLowercase", "IsUppercase", "IsTitlecase"],
];

pub(super) fn of_ranges(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(first, last)| ClassUnicodeRange::new(first, last)))
}

pub(super) fn negated(mut set: ClassUnicode) -> ClassUnicode {
    set.negate();
    set
}

/// Returns the set that an expression of regex-syntax stands for.
pub(super) fn read(notation: &str) -> Option<ClassUnicode> {
    let tree = regex_syntax::parse(notation).ok()?;
    match tree.into_kind() {
        HirKind::Class(Class::Unicode(set)) => Some(set),
        HirKind::Class(Class::Bytes(set)) => set.to_unicode_class(),
        HirKind::Literal(text) => {
            let only = std::str::from_utf8(&text.0).ok()?.chars().next()?;
            Some(of_ranges(&[(only, only)]))
        }
        _ => None,
    }
}

/// Returns the set of an escape such as `\d` or `\D`.
pub(super) fn of_letter(letter: char, unicode: bool) -> Option<ClassUnicode> {
    let set = match (letter.to_ascii_lowercase(), unicode) {
        ('d', false) => of_ranges(&[('0', '9')]),
        ('s', false) => of_ranges(SPACE),
        ('w', false) => of_ranges(WORD),
        ('d', true) => read(r"\p{Nd}")?,
        ('s', true) => read(r"\p{White_Space}")?,
        ('w', true) => read(r"\w")?,
        ('h', _) => of_ranges(HORIZONTAL),
        ('v', _) => of_ranges(VERTICAL),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { negated(set) } else { set })
}

/// Returns the set of a name in `[:...:]`.
pub(super) fn of_posix(name: &str, unicode: bool) -> Option<ClassUnicode> {
    let lower = name.bytes().all(|b| b.is_ascii_lowercase());
    match name {
        "word" => of_letter('w', unicode),
        _ => POSIX
            .iter()
            .find(|(posix, ..)| lower && posix.eq_ignore_ascii_case(name))
            .and_then(|(java, ..)| of_name(java, unicode, false)),
    }
}

/// Returns the set of a name in `\p{...}`.
pub(super) fn of_name(name: &str, unicode: bool, any_case: bool) -> Option<ClassUnicode> {
    let name = ["gc=", "general_category="].iter().find_map(|front| name.strip_prefix(front)).unwrap_or(name);
    let name = match name {
        "Lower" if any_case && unicode => "IsLowercase",
        "Upper" if any_case && unicode => "IsUppercase",
        name => name,
    };
    if any_case && let Some(cases) = CASED.iter().find(|cases| cases.contains(&name)) {
        let mut all = ClassUnicode::empty();
        for case in *cases {
            all.union(&of_name(case, unicode, false)?);
        }
        return Some(all);
    }
    if let Some((_, ascii, beyond)) = POSIX.iter().find(|(posix, ..)| *posix == name) {
        return if unicode { read(beyond) } else { Some(of_ranges(ascii)) };
    }
    if let Some((_, notation)) = JAVA.iter().find(|(java, _)| *java == name) {
        return read(notation);
    }
    let general = |name: &str| {
        let known = name.chars().all(|c| c.is_ascii_alphanumeric() || "_- =".contains(c));
        known.then(|| read(&format!(r"\p{{{name}}}"))).flatten()
    };
    let Some(is) = name.strip_prefix("Is") else { return general(name) };
    if let Some((_, notation)) = IS.iter().find(|(java, _)| java.eq_ignore_ascii_case(is)) {
        return read(notation);
    }
    if POSIX.iter().map(|(name, ..)| name).chain(JAVA.iter().map(|(name, _)| name)).any(|name| *name == is) {
        return of_name(is, false, any_case);
    }
    general(is)
}

/// Adds the other case of each ASCII letter to a set.
pub(super) fn with_ascii_cases(set: &mut ClassUnicode) {
    let mut more = Vec::new();
    for range in set.iter() {
        for (base, last, other) in
            [('A', 'Z', char::to_ascii_lowercase as fn(&char) -> char), ('a', 'z', char::to_ascii_uppercase)]
        {
            let (first, last) = (range.start().max(base), range.end().min(last));
            if first <= last {
                more.push(ClassUnicodeRange::new(other(&first), other(&last)));
            }
        }
    }
    set.union(&ClassUnicode::new(more));
}

/// Returns the part of a set that can contain letters with case.
pub(super) fn cased(set: &ClassUnicode) -> ClassUnicode {
    let mut part = of_ranges(&[('\0', '\u{1ffff}')]);
    part.intersect(set);
    part
}

/// Adds all cases of each letter to a set. As in Java, both Turkish letters i are cases of `i`.
pub(super) fn with_all_cases(set: &mut ClassUnicode) {
    const TURKISH: &[(char, char)] = &[('I', 'I'), ('i', 'i'), ('\u{130}', '\u{131}')];
    let mut cases = cased(set);
    cases.case_fold_simple();
    set.union(&cases);
    let is_in = |c: char| set.iter().any(|range| range.start() <= c && c <= range.end());
    if ['i', '\u{130}', '\u{131}'].into_iter().any(is_in) {
        set.union(&of_ranges(TURKISH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one() {
        for (name, ascii, _) in POSIX {
            let (in_ascii, beyond) = (of_name(name, false, false), of_name(name, true, false));
            assert_eq!(in_ascii, Some(of_ranges(ascii)));
            assert!(beyond.is_some(), "{name}");
        }
        for name in
            JAVA.iter().map(|(name, _)| (*name).to_owned()).chain(IS.iter().map(|(name, _)| format!("Is{name}")))
        {
            assert!(of_name(&name, false, false).is_some(), "{name}");
        }
        for name in
            ["L", "Lu", "IsL", "IsGreek", "sc=Greek", "gc=Lu", "IsAlphabetic", "IsWhite_Space", "IsLatin", "Greek"]
        {
            assert!(of_name(name, false, false).is_some(), "{name}");
        }
        for name in ["InGreek", "nope", "", "^L", "IsNope", "L}"] {
            assert_eq!(of_name(name, false, false), None, "{name}");
        }
        assert_eq!(of_name("Lu", false, true), of_name("Ll", false, true));
    }
}
