//! Reading keys, and comparing values.

use super::shape::{Fields, Shape, Types, name_of};
use super::walk::{Checker, Known, Missed};
use super::{Finding, FindingKind};
use crate::compile::core::{Constant, Node};
use crate::error::Span;
use crate::text::near_names;
use std::rc::Rc;

/// What a key was found to be.
enum Found {
    Value(Shape),
    /// No map has it; one key may be meant.
    Missing(String),
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
            Some(_) => self.at_key(&map.shape, key, span),
            None => Known::unknown(),
        };
        match default {
            None => value,
            Some(default) => {
                self.excuse(key, span, default);
                let default = self.visit(default);
                let value = Known::of(value.shape.without_nil());
                self.join(value, default)
            }
        }
    }

    /// Returns the value at a constant key. The position is that of the form that reads it.
    pub(super) fn at_key(&mut self, map: &Shape, key: &Constant, span: Span) -> Known<'p> {
        let Some(name) = name_of(key) else {
            return match (key, map.types.is_within(Types::LIST)) {
                (Constant::Int(at), true) => Known::of(map.nth(usize::try_from(*at).unwrap_or(usize::MAX))),
                _ => Known::unknown(),
            };
        };
        match self.find(map, key, &name) {
            Some(Found::Value(shape)) => {
                self.right(span, &name);
                self.found.push(name);
                Known::of(shape)
            }
            Some(Found::Missing(meant)) => {
                let missed = Missed { span, name: name.clone(), meant: meant.as_str().into() };
                let shown = |name: &str| match key {
                    Constant::Keyword(_) => format!(":{name}"),
                    _ => format!("{name:?}"),
                };
                let (name_shown, meant) = (shown(&name), shown(&meant));
                let finding = Finding {
                    kind: FindingKind::UnknownKey,
                    span,
                    message: format!("no map here has the key {name_shown}; they have {meant}"),
                    repair: Some(format!("write {meant}")),
                    fails: false,
                };
                self.wrong(&name, finding);
                Known { missed: Some(Rc::new(missed)), ..Known::types(Types::NIL) }
            }
            None => {
                self.right(span, &name);
                Known::unknown()
            }
        }
    }

    /// Looks a key up; `None` if nothing is known.
    fn find(&mut self, map: &Shape, key: &Constant, name: &str) -> Option<Found> {
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
            return Some(Found::Value(value.clone().or_nil()));
        }
        self.spend(map.weight());
        Some(match nearest(fields, name) {
            Some(meant) => Found::Missing(meant.to_owned()),
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

/// Returns the key that is probably meant by a name that no map has.
pub(super) fn nearest<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    nearest_of(fields.known.iter().map(|(key, _)| &**key), name)
}

/// Returns the name that is probably meant by one that is not there.
pub(super) fn nearest_of<'n>(names: impl Iterator<Item = &'n str> + Clone, name: &str) -> Option<&'n str> {
    let wanted = letters_of(name);
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
