//! Reading keys, and comparing values.

use super::known::{Known, Missed};
use super::shape::{Fields, Shape, Types, name_of};
use super::walk::Checker;
use super::{Finding, FindingKind};
use crate::compile::core::{Constant, Node};
use crate::error::Span;
use crate::text::near_names;
use std::rc::Rc;
use std::sync::Arc;

/// What a key was found to be.
enum Found {
    Value(Shape),
    /// It is not there, and another key may be meant: no map has it, or the contract of a tool does not list it.
    Missing {
        meant: String,
        is_listed: bool,
    },
    /// What it is read of is no map, but a list, a string or a number.
    NoMap,
}

impl<'p> Checker<'p> {
    /// `(:key map)`, `(:key map default)` and the patterns that read a key.
    pub(super) fn key_form(
        &mut self,
        map: &'p Node,
        key: &'p Constant,
        default: Option<&'p Node>,
        span: Span,
    ) -> Known<'p> {
        let map = self.visit(map);
        let value = match name_of(key) {
            Some(_) => self.read(&map, key, span),
            None => Known::unknown(),
        };
        match default {
            None => value,
            Some(default) => {
                self.excuse(key, span, default);
                let default = self.visit(default);
                let value = Known::of(present(&map.shape, key).unwrap_or(value.shape));
                self.join(value, default)
            }
        }
    }

    /// Returns the value at a constant key, as exact as the map.
    pub(super) fn read(&mut self, map: &Known<'p>, key: &Constant, span: Span) -> Known<'p> {
        let is_exact = |fields: &Fields, name: &str| {
            // Of two spellings the first that is there counts.
            let is_one =
                !name.contains('-') || fields.get(name).is_none() || fields.get(&name.replace('-', "_")).is_none();
            is_one && fields.others.is_none()
        };
        let exact = match (name_of(key), map.shape.fields.as_deref()) {
            (Some(name), Some(fields)) => map.exact.filter(|_| is_exact(fields, &name)),
            _ => None,
        };
        let value = self.at_key(&map.shape, key, span);
        // What follows from a key that is not there is told by that.
        Known { exact: exact.filter(|_| value.missed.is_none()), ..value }
    }

    /// Returns the value at a constant key. The position is that of the form that reads it.
    pub(super) fn at_key(&mut self, map: &Shape, key: &Constant, span: Span) -> Known<'p> {
        if map.is_never() {
            return Known::never();
        }
        let Some(name) = name_of(key) else {
            return match key {
                Constant::Int(at) if map.types.is_within(Types::LIST) => {
                    Known::of(map.nth(usize::try_from(*at).unwrap_or(usize::MAX)))
                }
                Constant::Int(at) => self.at_number(map, *at, span),
                _ => Known::unknown(),
            };
        };
        match self.find(map, key, &name) {
            Some(Found::Value(shape)) => {
                self.right(span, &name);
                self.found.push(name);
                Known::of(shape)
            }
            Some(Found::Missing { meant, is_listed }) => {
                let (name_shown, meant_shown) = (shown(&name, key), shown(&meant, key));
                let finding = Finding {
                    kind: FindingKind::UnknownKey,
                    span,
                    message: match is_listed {
                        false => format!("no map here has the key {name_shown}; they have {meant_shown}"),
                        true => format!(
                            "the contract of the tool has no key {name_shown} in the result; it has {meant_shown}"
                        ),
                    },
                    repair: Some(written(&meant, &meant_shown)),
                    fails: false,
                };
                let value = self.in_vain(finding, name, &meant);
                if is_listed { Known { missed: value.missed, ..Known::unknown() } } else { value }
            }
            Some(Found::NoMap) => {
                let (what, repair) = match map.types.without(Types::NIL) {
                    Types::LIST => ("a list", Some("map over it: (map f list), or take one element: (first list)")),
                    Types::STRING => ("a string", None),
                    _ => ("a value that is not a map", None),
                };
                let finding = Finding {
                    kind: FindingKind::UnknownKey,
                    span,
                    message: format!("this looks up {} in {what}, so the result is nil", shown(&name, key)),
                    repair: repair.map(str::to_owned),
                    fails: false,
                };
                self.in_vain(finding, name, "")
            }
            None => {
                self.right(span, &name);
                Known::unknown()
            }
        }
    }

    /// Notes a key that is not there, so that its value is nil.
    fn in_vain(&mut self, finding: Finding, name: Arc<str>, meant: &str) -> Known<'p> {
        let missed = Missed { span: finding.span, name: name.clone(), meant: meant.into() };
        self.wrong(&name, finding);
        Known { missed: Some(Rc::new(missed)), ..Known::types(Types::NIL) }
    }

    /// Returns the value at a number as a key.
    fn at_number(&mut self, map: &Shape, number: i64, span: Span) -> Known<'p> {
        let name: Arc<str> = number.to_string().into();
        let Some(fields) = map.fields.as_deref().filter(|fields| {
            map.types.is_within(Types::MAP | Types::NIL) && fields.others.is_none() && !fields.known.is_empty()
        }) else {
            self.right(span, &name);
            return Known::unknown();
        };
        let repair = fields.get(&name).map(|_| format!("write \"{number}\""));
        let finding = Finding {
            kind: FindingKind::UnknownKey,
            span,
            message: format!("no map here has the number {number} as a key: their keys are strings"),
            repair,
            fails: false,
        };
        self.in_vain(finding, name, "")
    }

    /// Looks a key up; `None` if nothing is known.
    fn find(&mut self, map: &Shape, key: &Constant, name: &str) -> Option<Found> {
        const NO_MAPS: Types = Types(Types::LIST.0 | Types::STRING.0 | Types::NUMBER.0 | Types::BOOL.0 | Types::NIL.0);
        if map.types.is_within(NO_MAPS) && map.types.without(Types::NIL) != Types::NEVER {
            return Some(Found::NoMap);
        }
        if !map.types.is_within(Types::MAP | Types::NIL) || !map.types.may_be(Types::MAP) {
            return None;
        }
        let fields = map.fields.as_deref()?;
        let field = match key {
            Constant::Keyword(_) => fields.read_by_keyword(name),
            _ => fields.get(name),
        };
        if let Some(field) = field {
            let shape = field.shape.clone();
            return Some(Found::Value(match field.is_always && !map.types.may_be(Types::NIL) {
                true => shape,
                false => shape.or_nil(),
            }));
        }
        if let Some((_, value)) = &fields.others {
            return Some(match fields.is_listed.then(|| nearest(fields, name)).flatten() {
                Some(meant) => Found::Missing { meant: meant.to_owned(), is_listed: true },
                None => Found::Value(value.clone().or_nil()),
            });
        }
        self.spend(map.weight());
        // One or many: a map of another type, which this branch is for, may have it.
        let is_many = |meant: &str| name.strip_suffix('s') == Some(meant) || meant.strip_suffix('s') == Some(name);
        Some(match nearest(fields, name).filter(|meant| self.arms == 0 || !is_many(meant)) {
            Some(meant) => Found::Missing { meant: meant.to_owned(), is_listed: false },
            // A key that is only absent may be optional.
            None => Found::Value(Shape::of(Types::NIL)),
        })
    }

    /// `=` and the like of two values.
    pub(super) fn compare(&mut self, a: &Known<'p>, b: &Known<'p>, span: Span) {
        match self.never_equal(a, b, span).or_else(|| self.never_equal(b, a, span)) {
            Some(finding) => self.wrong("=", finding),
            None => self.right(span, "="),
        }
    }

    fn never_equal(&self, value: &Known<'p>, other: &Known<'p>, span: Span) -> Option<Finding> {
        let types = value.shape.types;
        let (constant, _) = other.constant?;
        if types == Types::NEVER {
            return None;
        }
        let nullable = Types::NIL;
        let (what, repair) = match constant {
            Constant::Keyword(name) if types.without(nullable) == Types::STRING => {
                (format!("the keyword :{name} with strings"), format!("write {name:?}"))
            }
            Constant::Str(text) if types.without(nullable) == Types::KEYWORD => {
                (format!("the string {text:?} with keywords"), format!("write :{text}"))
            }
            Constant::Int(number) if types.without(nullable) == Types::STRING => {
                (format!("the number {number} with strings"), format!("write \"{number}\""))
            }
            Constant::Str(text)
                if types.without(nullable).is_within(Types::NUMBER)
                    && types.may_be(Types::NUMBER)
                    && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'))
                    && text.parse::<f64>().is_ok() =>
            {
                (format!("the string {text:?} with numbers"), format!("write {text}"))
            }
            _ => return None,
        };
        Some(Finding {
            kind: FindingKind::NeverEqual,
            span,
            message: format!("this compares {what}, which are never equal"),
            repair: Some(repair),
            fails: false,
        })
    }

    /// Compares a value with each of several constants, as `case` and sets do. Wrong is what matches none of them.
    pub(super) fn compare_with_all<'c>(
        &mut self,
        value: &Known<'p>,
        constants: impl Iterator<Item = &'c Constant>,
        span: Span,
    ) {
        let types = value.shape.types.without(Types::NIL);
        let mut first = None;
        for constant in constants {
            if !self.spend(1) {
                return;
            }
            let is_wrong = match constant {
                Constant::Keyword(_) => types == Types::STRING,
                Constant::Str(_) => types == Types::KEYWORD,
                _ => false,
            };
            if !is_wrong {
                return self.right(span, "among");
            }
            first.get_or_insert(constant);
        }
        let (what, repair) = match first {
            Some(Constant::Keyword(name)) => {
                ("strings with keywords only", format!("write {name:?}, without the colon"))
            }
            Some(Constant::Str(text)) => ("keywords with strings only", format!("write :{text}")),
            _ => return self.right(span, "among"),
        };
        let finding = Finding {
            kind: FindingKind::NeverEqual,
            span,
            message: format!("this compares {what}, which are never equal"),
            repair: Some(repair),
            fails: false,
        };
        self.wrong("among", finding);
    }
}

/// Returns a key as a program writes it: the one that it has, or one in its place.
fn shown(name: &str, like: &Constant) -> String {
    match like {
        Constant::Keyword(_) => keyword_shown(name),
        _ => format!("{name:?}"),
    }
}

/// Returns a key as a keyword, or as a string if no keyword is written like this.
pub(super) fn keyword_shown(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '?' | '!' | '.' | '*' | '+' | '/');
    match !name.is_empty() && name.chars().all(is_plain) {
        true => format!(":{name}"),
        false => format!("{name:?}"),
    }
}

/// Returns the repair of a key: the one that is meant, and as it is shown.
pub(super) fn written(meant: &str, shown: &str) -> String {
    match shown.starts_with(':') || keyword_shown(meant).starts_with(':') {
        true => format!("write {shown}"),
        false => format!("write (get map {shown})"),
    }
}

/// Returns the value at a key where it is present, which may be nil; `None` if nothing is known.
fn present(map: &Shape, key: &Constant) -> Option<Shape> {
    let (fields, name) = (map.fields.as_deref()?, name_of(key)?);
    if !map.types.is_within(Types::MAP | Types::NIL) || fields.has_other_spelling(&name) && fields.get(&name).is_some()
    {
        return None;
    }
    Some(match (fields.read_by_keyword(&name), &fields.others) {
        (Some(field), _) => field.shape.clone(),
        (None, Some((_, value))) => value.clone(),
        (None, None) => Shape::of(Types::NEVER),
    })
}

/// Returns the key that is probably meant by a name that no map has.
pub(super) fn nearest<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    nearest_of(fields.known.iter().map(|(key, _)| &**key), name)
}

/// Returns the name that is probably meant by one that is not there.
pub(super) fn nearest_of<'n>(names: impl Iterator<Item = &'n str> + Clone, name: &str) -> Option<&'n str> {
    near_of(names, name).filter(|near| !are_sisters(name, near))
}

fn near_of<'n>(names: impl Iterator<Item = &'n str> + Clone, name: &str) -> Option<&'n str> {
    /// The longest name that is looked at, in bytes.
    const LONGEST: usize = 64;
    let wanted = letters_of(name);
    let names = names.filter(|other| other.len() <= LONGEST && name.len() <= LONGEST);
    // Two changes bring at most two letters and take at most two. The names that are left are few.
    let names = names.filter(|other| (letters_of(other) ^ wanted).count_ones() <= 4);
    names.clone().next()?;
    let plain = |text: &str| text.replace(['-', '_', ' ', '?'], "").to_lowercase();
    let wanted = plain(name);
    // A name in another case or with other separators, and one and many.
    let same = |other: &&str| {
        let other = plain(other);
        other == wanted || other.strip_suffix('s') == Some(&wanted) || wanted.strip_suffix('s') == Some(&other)
    };
    if let Some(same) = names.clone().find(same) {
        return Some(same);
    }
    let near = near_names(name, names, 1).pop()?;
    let max = match name.chars().count().min(near.chars().count()) {
        // Of so few letters many are similar, but not with the same letters.
        0..=2 => return (letters(name) == letters(near)).then_some(near),
        // Another first letter is another word: rate and date.
        3..=5 if name.chars().count() == near.chars().count() && name.chars().next() != near.chars().next() => {
            return (letters(name) == letters(near)).then_some(near);
        }
        3..=5 => 1,
        _ => 2,
    };
    (crate::text::distance(name, near) <= max).then_some(near)
}

/// Returns the name among these that is probably meant by one that is not there. Among many that may be, none is: maps with such
/// keys are rather an index. What it takes is small.
pub(crate) fn similar<'n>(names: &[&'n str], name: &str) -> Option<&'n str> {
    const FEW: usize = 4;
    const LONGEST: usize = 40;
    if name.len() > LONGEST {
        return None;
    }
    let wanted = letters_of(name);
    let may_be = |other: &&str| {
        other.len() <= LONGEST
            && other.len().abs_diff(name.len()) <= FEW
            && (letters_of(other) ^ wanted).count_ones() <= 4
    };
    let mut few = [""; FEW];
    let mut count = 0;
    for &other in names.iter().filter(|other| may_be(other)) {
        *few.get_mut(count)? = other;
        count += 1;
    }
    nearest_of(few[..count].iter().copied(), name)
}

/// Returns whether two names stand for two things, such as `line1` and `line2`, or `price_min` and `price_max`.
fn are_sisters(a: &str, b: &str) -> bool {
    const PAIRS: &[(&str, &str)] = &[
        ("min", "max"),
        ("start", "end"),
        ("from", "to"),
        ("first", "last"),
        ("old", "new"),
        ("in", "out"),
        ("on", "off"),
    ];
    let by_number = a.bytes().filter(u8::is_ascii_digit).ne(b.bytes().filter(u8::is_ascii_digit));
    let words = |name: &str| -> Vec<String> { name.split(['-', '_', ' ', '.']).map(str::to_lowercase).collect() };
    let (a, b) = (words(a), words(b));
    let mut differ = a.iter().zip(&b).filter(|(a, b)| a != b);
    let by_word = match (a.len() == b.len(), differ.next(), differ.next()) {
        (true, Some((a, b)), None) => {
            PAIRS.iter().any(|(one, other)| (a == one && b == other) || (a == other && b == one))
        }
        _ => false,
    };
    by_number || by_word
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
