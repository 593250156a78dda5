//! Reading keys, and comparing values.

use super::known::{Known, Missed};
use super::names::{LONGEST, cut, is_plural, keyword_shown, nearest_of, string_shown, whole, written};
use super::shape::{Fields, Shape, Types, name_of};
use super::walk::Checker;
use super::{Finding, FindingKind};
use crate::compile::core::{Constant, Node};
use crate::error::Span;
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
                self.excuse_no_map(&value);
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
        match self.find(map, &name) {
            Some(Found::Value(shape)) => {
                self.right(span, &name);
                self.find_name(name);
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
                let value = self.in_vain(finding, name, Some(&meant));
                if is_listed { Known { missed: value.missed, ..Known::unknown() } } else { value }
            }
            // A branch may be for maps only.
            Some(Found::NoMap) if self.arms > 0 => {
                self.right(span, &name);
                Known::types(Types::NIL)
            }
            Some(Found::NoMap) => {
                let (what, repair) = match map.types.without(Types::NIL) {
                    Types::LIST => ("a list", Some("map over it: (map f list), or take one element: (first list)")),
                    Types::STRING => ("a string", None),
                    Types::BOOL => ("a boolean", None),
                    types if types.is_within(Types::NUMBER) => ("a number", None),
                    _ => ("a value of another type", None),
                };
                let finding = Finding {
                    kind: FindingKind::UnknownKey,
                    span,
                    message: format!("this looks up {} in {what}, which has no keys", shown(&name, key)),
                    repair: repair.map(str::to_owned),
                    fails: false,
                };
                let value = self.in_vain(finding, name, None);
                let missed = value.missed.as_deref().map(|missed| Missed { is_no_map: true, ..missed.clone() });
                Known { missed: missed.map(Rc::new), ..value }
            }
            None => {
                self.right(span, &name);
                Known::unknown()
            }
        }
    }

    /// Notes a key that is not there, so that its value is nil.
    fn in_vain(&mut self, finding: Finding, name: Arc<str>, meant: Option<&str>) -> Known<'p> {
        let meant: Option<Arc<str>> = meant.map(Into::into);
        let missed = Missed { span: finding.span, name: name.clone(), meant: meant.clone(), is_no_map: false };
        self.wrong_name(&name, finding, meant);
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
            message: format!("no map here has the number {number} as a key: their keys are names"),
            repair,
            fails: false,
        };
        self.in_vain(finding, name, None)
    }

    /// Looks a key up; `None` if nothing is known.
    fn find(&mut self, map: &Shape, name: &str) -> Option<Found> {
        const NO_MAPS: Types = Types(Types::LIST.0 | Types::STRING.0 | Types::NUMBER.0 | Types::BOOL.0 | Types::NIL.0);
        if map.types.is_within(NO_MAPS) && map.types.without(Types::NIL) != Types::NEVER {
            return Some(Found::NoMap);
        }
        if !map.types.is_within(Types::MAP | Types::NIL) || !map.types.may_be(Types::MAP) {
            return None;
        }
        let fields = map.fields.as_deref()?;
        if let Some(field) = fields.read(name) {
            let shape = field.shape;
            return Some(Found::Value(match field.is_always && !map.types.may_be(Types::NIL) {
                true => shape,
                false => shape.or_nil(),
            }));
        }
        if let Some((_, value)) = &fields.others {
            return Some(match fields.is_listed.then(|| self.nearest(fields, name)).flatten() {
                Some(meant) => Found::Missing { meant: meant.to_owned(), is_listed: true },
                None => Found::Value(value.clone().or_nil()),
            });
        }
        // One or many: a map of another type, which this branch is for, may have it.
        Some(match self.nearest(fields, name).filter(|meant| self.arms == 0 || !is_plural(name, meant)) {
            Some(meant) => Found::Missing { meant: meant.to_owned(), is_listed: false },
            // A key that is only absent may be optional.
            None => Found::Value(Shape::of(Types::NIL)),
        })
    }

    /// Returns the key that is probably meant by a name that no map has.
    fn nearest<'f>(&mut self, fields: &'f Fields, name: &str) -> Option<&'f str> {
        nearest_of(fields.known.iter().map(|(key, _)| &**key), name, &mut |steps| self.spend(steps))
    }

    /// Notes a name that was looked for and found, if it may be meant by another one.
    pub(super) fn find_name(&mut self, name: Arc<str>) {
        if name.len() <= LONGEST {
            self.found.push(name);
        }
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
                (format!("the keyword :{} with strings", cut(name)), as_string(name))
            }
            Constant::Str(text) if types.without(nullable) == Types::KEYWORD => {
                (format!("the string {:?} with keywords", cut(text)), as_keyword(text))
            }
            Constant::Int(number) if types.without(nullable) == Types::STRING => {
                (format!("the number {number} with strings"), Some(format!("write \"{number}\"")))
            }
            Constant::Str(text)
                if types.without(nullable).is_within(Types::NUMBER)
                    && types.may_be(Types::NUMBER)
                    && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'))
                    && text.parse::<f64>().is_ok() =>
            {
                (
                    format!("the string {:?} with numbers", cut(text)),
                    number_shown(text).map(|number| format!("write {number}")),
                )
            }
            _ => return None,
        };
        Some(Finding {
            kind: FindingKind::NeverEqual,
            span,
            message: format!("this compares {what}, which are never equal"),
            repair,
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
                ("strings with keywords only", as_string(name).map(|repair| repair + ", without the colon"))
            }
            Some(Constant::Str(text)) => ("keywords with strings only", as_keyword(text)),
            _ => return self.right(span, "among"),
        };
        let finding = Finding {
            kind: FindingKind::NeverEqual,
            span,
            message: format!("this compares {what}, which are never equal"),
            repair,
            fails: false,
        };
        self.wrong("among", finding);
    }
}

/// Returns the repair of a keyword that should be a string.
fn as_string(name: &str) -> Option<String> {
    whole(name).map(|name| format!("write {}", string_shown(name)))
}

/// Returns the repair of a string that should be a keyword.
fn as_keyword(text: &str) -> Option<String> {
    let shown = keyword_shown(whole(text)?);
    Some(if shown.starts_with(':') { format!("write {shown}") } else { format!("write (keyword {shown})") })
}

/// Returns a number as a program writes it.
fn number_shown(text: &str) -> Option<String> {
    let text = whole(text)?;
    match text.parse::<i64>() {
        Ok(number) => Some(number.to_string()),
        Err(_) => text.parse::<f64>().ok().map(|number| format!("{number:?}")),
    }
}

/// Returns a key as a program writes it: the one that it has, or one in its place.
fn shown(name: &str, like: &Constant) -> String {
    match like {
        Constant::Keyword(_) => keyword_shown(name),
        _ => string_shown(&cut(name)),
    }
}

/// Returns the value at a key where it is present, which may be nil; `None` if nothing is known.
fn present(map: &Shape, key: &Constant) -> Option<Shape> {
    let (fields, name) = (map.fields.as_deref()?, name_of(key)?);
    if !map.types.is_within(Types::MAP | Types::NIL) || fields.has_other_spelling(&name) && fields.get(&name).is_some()
    {
        return None;
    }
    Some(match (fields.read(&name), &fields.others) {
        (Some(field), _) => field.shape,
        (None, Some((_, value))) => value.clone(),
        (None, None) => Shape::of(Types::NEVER),
    })
}
