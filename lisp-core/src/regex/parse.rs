//! Parses patterns in Java's syntax. Syntax of Java that is not supported, and syntax of other engines, is an error
//! whose hint gives an alternative. `docs/divergences.md` lists the syntax accepted beyond Java's.

use super::effort;
use super::sets;
use super::tree::{At, Case, Lines, Pattern, Tree};
use regex_syntax::hir::ClassUnicode;
use std::collections::HashMap;

/// The hint for look-around.
const AROUND: &str = "match it too, and keep the part you need with a group: (second (re-find #\"a(b)\" s)); in a replacement, $1 is the group";
/// The hint for negative look-around.
const NOT_AROUND: &str = "write \\b for the edge of a word or number, or test in the program: \
    (remove (fn [line] (re-find #\"b\" line)) lines)";
/// The hint for back-references.
const AGAIN: &str = "compare in the program: (filter (fn [[a b]] (= a b)) (partition 2 1 (re-seq #\"\\w+\" s)))";

/// The maximum nesting of groups.
const MAX_DEPTH: usize = 50;

/// Why a pattern is invalid: the error and a hint.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) hint: String,
}

pub(super) type Res<T> = Result<T, Wrong>;

pub(super) fn wrong<T>(what: impl Into<String>, hint: impl Into<String>) -> Res<T> {
    Err(Wrong { what: what.into(), hint: hint.into() })
}

/// The flags of groups such as `(?i)`.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// `i`
    any_case: bool,
    /// `u`: the cases of all letters, not only of ASCII letters.
    unicode_case: bool,
    /// `U`: classes such as `\w` cover all of Unicode.
    unicode_classes: bool,
    /// `x`
    comments: bool,
    /// `m`
    multiline: bool,
    /// `s`
    dot_all: bool,
    /// `d`
    unix_lines: bool,
}

impl Flags {
    fn lines(self) -> Lines {
        if self.unix_lines { Lines::Unix } else { Lines::Any }
    }

    fn case(self) -> Case {
        match (self.any_case, self.unicode_case) {
            (false, _) => Case::Exact,
            (true, false) => Case::Ascii,
            (true, true) => Case::Unicode,
        }
    }
}

/// A character of the pattern. Characters between `\Q` and `\E` are plain: they stand for themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) c: char,
    pub(super) plain: bool,
}

/// The meaning of an escape.
pub(super) enum Escaped {
    /// A code point, which may be a surrogate.
    Code(u32),
    Set(ClassUnicode),
    /// A part of a pattern that is not allowed in a class.
    Tree(Tree),
}

/// The effect of a group on its contents.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Capturing(u32),
}

/// A group that is being parsed.
struct Open {
    kind: Kind,
    /// The flags in effect after it.
    outside: Flags,
    /// The finished alternatives.
    ways: Vec<Tree>,
    /// The parts of the current alternative.
    parts: Vec<Tree>,
}

impl Open {
    fn inside(mut self) -> Tree {
        let last = Tree::concat(self.parts);
        if self.ways.is_empty() {
            return last;
        }
        self.ways.push(last);
        Tree::Any(self.ways)
    }
}

pub(super) struct Parser {
    pub(super) units: Vec<Unit>,
    pub(super) at: usize,
    flags: Flags,
    classes: Vec<ClassUnicode>,
    /// The numbers of classes by their notation.
    known: HashMap<String, u32>,
    groups: u32,
    names: Vec<(Box<str>, u32)>,
    depth: usize,
    /// The current nesting of classes.
    pub(super) classes_open: usize,
    /// The effort of parsing so far, in the units of `effort`.
    effort: u64,
}

/// Parses a pattern.
pub(super) fn parse(pattern: &str) -> Res<Pattern> {
    let mut p = Parser {
        units: units(pattern)?,
        at: 0,
        flags: Flags::default(),
        classes: Vec::new(),
        known: HashMap::new(),
        groups: 1,
        names: Vec::new(),
        depth: 0,
        classes_open: 0,
        effort: 0,
    };
    let tree = p.tree()?;
    Ok(Pattern { tree, classes: p.classes, groups: p.groups as usize, names: p.names })
}

/// Returns the characters of a pattern without the quotation marks `\Q` and `\E`.
fn units(pattern: &str) -> Res<Vec<Unit>> {
    let mut units = Vec::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix(r"\Q") {
            let (inside, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            units.extend(inside.chars().map(|c| Unit { c, plain: true }));
            rest = after;
            continue;
        }
        let length = if c == '\\' { 1 + rest[1..].chars().next().map_or(0, char::len_utf8) } else { c.len_utf8() };
        let (own, after) = rest.split_at(length);
        if own == r"\E" {
            return wrong(r"a `\E` closes no quotation", r"start the quotation with \Q");
        }
        units.extend(own.chars().map(|c| Unit { c, plain: false }));
        rest = after;
    }
    Ok(units)
}

/// Returns the tree of a finished group.
fn closed(group: Open) -> Tree {
    match group.kind {
        Kind::Plain => group.inside(),
        Kind::Capturing(number) => Tree::Group(number, group.inside().into()),
    }
}

impl Parser {
    /// Returns the next significant character. With the flag `x`, white space and comments are skipped.
    pub(super) fn peek(&mut self) -> Option<Unit> {
        while self.flags.comments
            && let Some(&Unit { c, plain: false }) = self.units.get(self.at)
        {
            match c {
                ' ' | '\t'..='\r' => self.at += 1,
                '#' => {
                    let ends = |unit: &Unit| match self.flags.lines() {
                        Lines::Unix => unit.c == '\n',
                        Lines::Any => matches!(unit.c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}'),
                    };
                    let rest = self.units.get(self.at..).unwrap_or_default();
                    self.at += rest.iter().position(ends).unwrap_or(rest.len());
                }
                _ => break,
            }
        }
        self.raw()
    }

    /// Returns the next character, significant or not.
    fn raw(&self) -> Option<Unit> {
        self.units.get(self.at).copied()
    }

    fn next_raw(&mut self) -> Option<Unit> {
        let unit = self.raw();
        self.at += 1;
        unit
    }

    /// Returns whether the next significant character is this one, not quoted.
    pub(super) fn sees(&mut self, sign: char) -> bool {
        self.peek() == Some(Unit { c: sign, plain: false })
    }

    pub(super) fn takes(&mut self, sign: char) -> bool {
        let sees = self.sees(sign);
        self.at += usize::from(sees);
        sees
    }

    /// Returns whether exactly these characters come next, not quoted.
    pub(super) fn sees_raw(&self, text: &str) -> bool {
        let rest = self.units.get(self.at..).unwrap_or_default();
        text.chars().count() <= rest.len() && text.chars().zip(rest).all(|(c, unit)| *unit == Unit { c, plain: false })
    }

    /// Consumes this character if it comes next, not quoted.
    pub(super) fn takes_raw(&mut self, sign: char) -> bool {
        let sees = self.raw() == Some(Unit { c: sign, plain: false });
        self.at += usize::from(sees);
        sees
    }

    /// Returns the characters before the next occurrence of this one.
    pub(super) fn rest_up_to(&self, sign: char) -> Option<&[Unit]> {
        let rest = self.units.get(self.at..)?;
        rest.get(..rest.iter().position(|unit| unit.c == sign)?)
    }

    /// Consumes the characters up to and including this one. Returns those before it.
    fn up_to(&mut self, sign: char) -> Option<String> {
        let text: String = self.rest_up_to(sign)?.iter().map(|unit| unit.c).collect();
        self.at += text.chars().count() + 1;
        Some(text)
    }

    fn class_number(&mut self, set: ClassUnicode) -> Tree {
        self.classes.push(set);
        Tree::Class(u32::try_from(self.classes.len() - 1).unwrap_or(u32::MAX))
    }

    /// Returns the class of a notation that may occur more than once.
    fn known_class(&mut self, notation: String, set: impl FnOnce() -> ClassUnicode) -> Tree {
        if let Some(&known) = self.known.get(&notation) {
            return Tree::Class(known);
        }
        let class = self.class_number(set());
        if let Tree::Class(number) = class {
            self.known.insert(notation, number);
        }
        class
    }

    /// Parses the whole pattern. Open groups are kept in a list, not on the native stack.
    fn tree(&mut self) -> Res<Tree> {
        let mut whole = Open { kind: Kind::Plain, outside: self.flags, ways: Vec::new(), parts: Vec::new() };
        let mut around: Vec<Open> = Vec::new();
        while let Some(unit) = self.peek() {
            self.at += 1;
            let (atom, is_group) = match unit {
                Unit { c: '(', plain: false } => {
                    let outside = self.flags;
                    if let Some(kind) = self.group()? {
                        let inside = Open { kind, outside, ways: Vec::new(), parts: Vec::new() };
                        around.push(std::mem::replace(&mut whole, inside));
                    }
                    continue;
                }
                Unit { c: '|', plain: false } => {
                    let way = Tree::concat(std::mem::take(&mut whole.parts));
                    whole.ways.push(way);
                    continue;
                }
                Unit { c: ')', plain: false } => {
                    let Some(next) = around.pop() else {
                        return wrong("a `)` closes no group", r"write \) for the character, or open the group");
                    };
                    (self.flags, self.depth) = (whole.outside, self.depth - 1);
                    (closed(std::mem::replace(&mut whole, next)), true)
                }
                Unit { c, plain: true } => (self.literal(u32::from(c)), false),
                Unit { c, .. } => (self.atom(c)?, false),
            };
            let part = self.repeated(atom, is_group)?;
            whole.parts.push(part);
        }
        if around.is_empty() {
            Ok(whole.inside())
        } else {
            wrong("a group is not closed", r"add the `)`, or write \( for the character")
        }
    }

    /// Parses the rest of the atom that starts with this character, which is already consumed.
    fn atom(&mut self, sign: char) -> Res<Tree> {
        let lines = self.flags.lines();
        Ok(match (sign, self.flags.multiline) {
            ('[', _) => {
                let set = self.class()?;
                self.class_number(set)
            }
            ('\\', _) => match self.escape(false)? {
                Escaped::Code(code) => self.literal(code),
                Escaped::Set(set) => self.class_number(set),
                Escaped::Tree(tree) => tree,
            },
            ('^', true) => Tree::At(At::LineStart(lines)),
            ('^', false) => Tree::At(At::Start),
            ('$', true) => Tree::At(At::LineEnd(lines)),
            ('$', false) => Tree::At(At::LastLineEnd(lines)),
            ('.', _) => self.dot(),
            ('*' | '+' | '?', _) => {
                return wrong(
                    format!("there is nothing that `{sign}` could repeat"),
                    format!(r"write \{sign} for the character"),
                );
            }
            ('{', _) if self.count_from(self.at - 1)?.is_some() => {
                return wrong("there is nothing that a count in braces could repeat", r"write \{ for the character");
            }
            (c, _) => self.literal(u32::from(c)),
        })
    }

    fn dot(&mut self) -> Tree {
        match (self.flags.dot_all, self.flags.lines()) {
            (true, _) => self.known_class("(?s).".to_owned(), || sets::negated(ClassUnicode::empty())),
            (false, Lines::Unix) => {
                self.known_class("(?d).".to_owned(), || sets::negated(sets::of_ranges(&[('\n', '\n')])))
            }
            (false, Lines::Any) => self.known_class(".".to_owned(), || sets::negated(sets::of_ranges(sets::LINE_ENDS))),
        }
    }

    /// Returns a tree for one character in each of its cases that match. A surrogate matches nothing, because no string
    /// contains one.
    fn literal(&mut self, code: u32) -> Tree {
        let Some(c) = char::from_u32(code) else { return self.class_number(ClassUnicode::empty()) };
        let case = self.flags.case();
        if case == Case::Exact || case == Case::Ascii && !c.is_ascii_alphabetic() {
            return Tree::Text(c.to_string().into());
        }
        let mut set = sets::of_ranges(&[(c, c)]);
        match case {
            Case::Ascii => sets::with_ascii_cases(&mut set),
            _ => sets::with_all_cases(&mut set),
        }
        if set.ranges().len() == 1 && set.iter().all(|range| range.start() == range.end()) {
            return Tree::Text(c.to_string().into());
        }
        self.known_class(format!("{case:?}{c}"), || set)
    }

    /// Adds the other cases that match for the letters of a set.
    pub(super) fn add_cases(&mut self, set: &mut ClassUnicode) -> Res<()> {
        match self.flags.case() {
            Case::Exact => {}
            Case::Ascii => sets::with_ascii_cases(set),
            Case::Unicode => {
                self.spend(sets::cased(set).iter().map(|range| effort::of_cases(range.len())).sum())?;
                sets::with_all_cases(set);
            }
        }
        Ok(())
    }

    /// Counts the effort of a Unicode class.
    pub(super) fn spend_class(&mut self) -> Res<()> {
        self.spend(effort::WIDE)
    }

    fn spend(&mut self, effort: u64) -> Res<()> {
        self.effort += effort;
        if self.effort > effort::MAX {
            return wrong(
                "it has too many Unicode classes, or classes that are too large under (?iu)",
                "use fewer classes, or combine several searches with `or`",
            );
        }
        Ok(())
    }

    /// Parses the repeat after an atom, if there is one.
    fn repeated(&mut self, mut atom: Tree, is_group: bool) -> Res<Tree> {
        let Some((least, max)) = self.count()? else { return Ok(atom) };
        let lazy = self.takes('?');
        if !lazy && self.sees('+') {
            return wrong("possessive repeats, such as a++, are not supported", "leave out the last +");
        }
        if self.sees('*') || self.sees('+') || self.sees('?') || self.sees('{') && self.count_from(self.at)?.is_some() {
            return wrong("a repeat follows a repeat", "put the first repeat into a group: (?:a{2}){3}");
        }
        // As in Java, `\R` does not backtrack in a repeat of anything but a group, nor in a group with only one way to
        // match.
        if !is_group || (least, max) != (0, Some(1)) && atom.is_single_way() {
            atom.keep_line_ends();
        }
        Ok(Tree::Repeat { tree: atom.into(), least, max, greedy: !lazy })
    }

    fn count(&mut self) -> Res<Option<(u32, Option<u32>)>> {
        if self.takes('?') {
            return Ok(Some((0, Some(1))));
        }
        if self.takes('*') {
            return Ok(Some((0, None)));
        }
        if self.takes('+') {
            return Ok(Some((1, None)));
        }
        if !self.sees('{') {
            return Ok(None);
        }
        let Some((least, max, end)) = self.count_from(self.at)? else { return Ok(None) };
        self.at = end;
        Ok(Some((least, max)))
    }

    /// Parses the count in braces that starts at a position. Returns it with its end, or `None` if the brace is
    /// literal.
    fn count_from(&self, start: usize) -> Res<Option<(u32, Option<u32>, usize)>> {
        /// The maximum length of a count, in characters.
        const LONGEST: usize = 64;
        let rest = self.units.get(start + 1..).unwrap_or_default();
        let Some(length) = rest.iter().take(LONGEST).position(|unit| unit.c == '}') else { return Ok(None) };
        let inside: String = rest.iter().take(length).map(|unit| unit.c).collect();
        let (least, max) = inside.split_once(',').unwrap_or((&inside, &inside));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let plain = rest.iter().take(length + 1).any(|unit| unit.plain);
        if least.is_empty() || !digits(least) || !digits(max) || plain {
            return Ok(None);
        }
        let number = |text: &str| text.parse().ok().filter(|n| *n <= i32::MAX.unsigned_abs());
        let bounds = (number(least), if max.is_empty() { Some(None) } else { number(max).map(Some) });
        let (Some(least), Some(max)) = bounds else {
            return wrong(
                format!("the repeat {{{inside}}} is too large"),
                format!("repeat at most {} times", i32::MAX),
            );
        };
        if max.is_some_and(|max| max < least) {
            return wrong(
                format!("the repeat {{{inside}}} has its numbers in the wrong order"),
                "write the smaller one first",
            );
        }
        Ok(Some((least, max, start + length + 2)))
    }

    /// Parses the start of a group after `(`. Returns `None` if it only changes flags.
    fn group(&mut self) -> Res<Option<Kind>> {
        let kind = if self.takes('?') { self.special_group()? } else { Some(self.capturing()) };
        if kind.is_some() {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return wrong(
                    format!("its groups are nested more than {MAX_DEPTH} deep"),
                    "remove groups that are not necessary",
                );
            }
        }
        Ok(kind)
    }

    fn capturing(&mut self) -> Kind {
        let number = self.groups;
        self.groups += 1;
        Kind::Capturing(number)
    }

    /// Parses the start of a group after `(?`.
    fn special_group(&mut self) -> Res<Option<Kind>> {
        if self.takes_raw(':') {
            return Ok(Some(Kind::Plain));
        }
        self.foreign_group()?;
        for sign in ["<", "P<"] {
            if self.sees_raw(sign) {
                self.at += sign.len();
                let name = self.name()?;
                if self.names.iter().any(|(known, _)| **known == *name) {
                    return wrong(format!("two groups are named {name}"), "give each group a name of its own");
                }
                self.names.push((name.into(), self.groups));
                return Ok(Some(self.capturing()));
            }
        }
        self.flag_group()
    }

    /// Rejects groups that only other engines have, or that are not supported.
    fn foreign_group(&self) -> Res<()> {
        let foreign = [
            ("=", "the look-ahead (?=...)", AROUND),
            ("!", "the look-ahead (?!...)", NOT_AROUND),
            ("<=", "the look-behind (?<=...)", AROUND),
            ("<!", "the look-behind (?<!...)", NOT_AROUND),
            (">", "the atomic group (?>...)", "write (?:...)"),
            ("#", "the comment (?#...)", "write comments with the flag x: (?x) ... # comment"),
            ("|", "the branch reset (?|...)", "give each group a number of its own"),
            ("(", "the condition (?(...)...)", "write the two ways as alternatives: (?:a...|...)"),
            ("P=", "the back-reference (?P=name)", AGAIN),
            ("P>", "the recursion (?P>name)", "write the group out where it is repeated"),
            ("R", "the recursion (?R)", "write the group out where it is repeated"),
            ("&", "the recursion (?&name)", "write the group out where it is repeated"),
            ("'", "the name in (?'name'...)", "write (?<name>...)"),
        ];
        if let Some((_, what, hint)) = foreign.iter().find(|(sign, ..)| self.sees_raw(sign)) {
            return wrong(format!("{what} is not supported"), *hint);
        }
        match self.raw() {
            Some(Unit { c: '0'..='9', .. }) => {
                wrong("the recursion (?1) is not supported", "write the group out where it is repeated")
            }
            _ => Ok(()),
        }
    }

    /// Parses the name of a group and the `>` after it.
    fn name(&mut self) -> Res<String> {
        let name = self.up_to('>').unwrap_or_default();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if is_name {
            Ok(name)
        } else {
            wrong("invalid name of a group", "write letters and digits between < and >: (?<year>...)")
        }
    }

    /// Parses flags after `(?`.
    fn flag_group(&mut self) -> Res<Option<Kind>> {
        let mut on = true;
        loop {
            let Some(unit) = self.next_raw() else { return wrong("a group is not closed", "add the `)`") };
            let flags = &mut self.flags;
            match unit.c {
                '-' if on => on = false,
                'i' => flags.any_case = on,
                'm' => flags.multiline = on,
                's' => flags.dot_all = on,
                'd' => flags.unix_lines = on,
                'u' => flags.unicode_case = on,
                'x' => flags.comments = on,
                'U' => (flags.unicode_classes, flags.unicode_case) = (on, on),
                ')' => return Ok(None),
                ':' => return Ok(Some(Kind::Plain)),
                'c' => {
                    return wrong(
                        "the flag c, canonical equivalence, is not supported",
                        "write the forms of the letter as alternatives",
                    );
                }
                c => return wrong(format!("{c} is not a flag"), "the flags are i, m, s, x, u, U, d"),
            }
        }
    }

    pub(super) fn unicode_classes(&self) -> bool {
        self.flags.unicode_classes
    }

    /// Parses an escape after its backslash.
    pub(super) fn escape(&mut self, in_class: bool) -> Res<Escaped> {
        let Some(unit) = self.next_raw() else {
            return wrong("the pattern ends in a backslash", r"write \\ for the character");
        };
        let unicode = self.flags.unicode_classes;
        Ok(match unit.c {
            c if unit.plain || !c.is_ascii_alphanumeric() => Escaped::Code(u32::from(c)),
            'v' if in_class && self.sees_raw("-") => Escaped::Code(0xb),
            c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'h' | 'H' | 'v' | 'V') if !in_class => {
                let set = || sets::of_letter(c, unicode).unwrap_or_else(ClassUnicode::empty);
                Escaped::Tree(self.known_class(format!("\\{c}{unicode}"), set))
            }
            c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'h' | 'H' | 'v' | 'V') => {
                self.spend(if unicode { effort::WIDE } else { 0 })?;
                Escaped::Set(sets::of_letter(c, unicode).unwrap_or_else(ClassUnicode::empty))
            }
            c @ ('p' | 'P') => Escaped::Set(self.property(c == 'P')?),
            't' => Escaped::Code(0x9),
            'n' => Escaped::Code(0xa),
            'f' => Escaped::Code(0xc),
            'r' => Escaped::Code(0xd),
            'a' => Escaped::Code(0x7),
            'e' => Escaped::Code(0x1b),
            'b' if in_class => Escaped::Code(0x8),
            '0' => Escaped::Code(self.octal()?),
            'x' => Escaped::Code(self.hexadecimal()?),
            'u' => Escaped::Code(self.utf_16()?),
            'c' => match self.next_raw() {
                Some(unit) => Escaped::Code(u32::from(unit.c) ^ 64),
                None => return wrong(r"missing character after \c", r"write \cA, or \x01"),
            },
            c if in_class => return self.no_escape(c, true),
            c => Escaped::Tree(self.escaped_tree(c)?),
        })
    }

    /// Returns the meaning of an escaped letter outside classes.
    fn escaped_tree(&mut self, c: char) -> Res<Tree> {
        let unicode = self.flags.unicode_classes;
        let lines = self.flags.lines();
        Ok(match c {
            'b' | 'B' if self.sees_raw("{") && self.count_from(self.at)?.is_none() => {
                return wrong(
                    format!(r"\{c}{{...}} is not supported"),
                    r"write \b for a boundary of words, \X for a character",
                );
            }
            'b' | 'B' => Tree::At(At::Word { unicode, not: c == 'B' }),
            'A' => Tree::At(At::Start),
            'z' => Tree::At(At::End),
            'Z' => Tree::At(At::LastLineEnd(lines)),
            'G' => Tree::At(At::LastMatch),
            'R' => Tree::LineEnd { whole: false },
            'X' => Tree::Cluster,
            'k' | '1'..='9' => return wrong(format!(r"the back-reference \{c} is not supported"), AGAIN),
            c => return self.no_escape(c, false),
        })
    }

    /// Returns the error for an escaped letter without a meaning.
    fn no_escape<T>(&self, c: char, in_class: bool) -> Res<T> {
        let hint = match c {
            'K' => AROUND,
            'g' | 'k' => AGAIN,
            'N' => r"write \x{...} for a character, [^\n] for any but a newline",
            'E' => r"start the quotation with \Q",
            'A' | 'z' | 'Z' | 'G' | 'B' | 'R' | 'X' | '1'..='9' if in_class => "write it outside the class",
            'y' | 'm' | 'M' => r"write \b for a boundary of words",
            _ => "write the letter without a backslash",
        };
        let place = if in_class { " in a class" } else { "" };
        wrong(format!(r"\{c} is not supported{place}"), hint)
    }

    fn octal(&mut self) -> Res<u32> {
        let digit = |p: &Self| p.raw().filter(|unit| !unit.plain).and_then(|unit| unit.c.to_digit(8));
        let Some(first) = digit(self) else {
            return wrong(r"missing octal digits after \0", r"write \x00, or \0 and one to three digits");
        };
        self.at += 1;
        let mut code = first;
        for n in 1..=2 {
            match digit(self) {
                Some(next) if n == 1 || first <= 3 => (code, self.at) = (code * 8 + next, self.at + 1),
                _ => break,
            }
        }
        Ok(code)
    }

    /// Consumes this number of hexadecimal digits. Returns their value.
    fn digits(&mut self, count: usize) -> Option<u32> {
        let text: String = self.units.get(self.at..self.at + count)?.iter().map(|unit| unit.c).collect();
        let is_hex = text.bytes().all(|b| b.is_ascii_hexdigit());
        self.at += count;
        is_hex.then(|| u32::from_str_radix(&text, 16).ok()).flatten()
    }

    fn hexadecimal(&mut self) -> Res<u32> {
        const HINT: &str = r"write \x and two hexadecimal digits, or \x{...} with up to six";
        if !self.sees_raw("{") {
            return self.digits(2).map_or_else(|| wrong(r"missing two hexadecimal digits after \x", HINT), Ok);
        }
        self.at += 1;
        let digits = self.up_to('}').unwrap_or_default();
        let is_hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        match u32::from_str_radix(digits.trim_start_matches('0'), 16) {
            Ok(code) if is_hex && code <= 0x10_ffff => Ok(code),
            Err(_) if is_hex && digits.bytes().all(|b| b == b'0') => Ok(0),
            _ => wrong(format!(r"\x{{{digits}}} is not a character"), HINT),
        }
    }

    /// Parses the digits after `\u`: four, or twice four for a surrogate pair.
    fn utf_16(&mut self) -> Res<u32> {
        let bad =
            || wrong(r"missing four hexadecimal digits after \u", r"write \u0041, or \x{1F600} for one beyond FFFF");
        let Some(first) = self.digits(4) else { return bad() };
        if (0xd800..0xdc00).contains(&first) && self.sees_raw(r"\u") {
            let before = self.at;
            self.at += 2;
            let Some(second) = self.digits(4) else { return bad() };
            if (0xdc00..0xe000).contains(&second) {
                return Ok(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
            self.at = before;
        }
        Ok(first)
    }

    /// Parses a property after `\p` or `\P`.
    fn property(&mut self, negative: bool) -> Res<ClassUnicode> {
        let name = if self.sees_raw("{") {
            self.at += 1;
            match self.up_to('}') {
                Some(name) => name,
                None => return wrong(r"a \p{ is not closed", "add the `}`"),
            }
        } else {
            self.next_raw().map(|unit| unit.c.to_string()).unwrap_or_default()
        };
        self.spend_class()?;
        match sets::of_name(&name, self.flags.unicode_classes, self.flags.any_case) {
            Some(set) if negative => Ok(sets::negated(set)),
            Some(set) => Ok(set),
            None if name.starts_with("In") || name.starts_with("bl") => wrong(
                format!(r"\p{{{name}}} is a block of Unicode, and blocks are not supported"),
                r"write a script, such as \p{IsGreek}, or a range, such as [\x{370}-\x{3FF}]",
            ),
            None => wrong(
                format!(r"\p{{{name}}} is not known"),
                r"write a category such as \p{L} or \p{Lu}, a script such as \p{IsGreek}, or \p{Alpha}, \p{Punct}",
            ),
        }
    }
}
