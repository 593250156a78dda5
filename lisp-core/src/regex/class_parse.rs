//! Parses classes in brackets, such as `[a-z&&[^b]]`.

use super::parse::{Escaped, Parser, Res, Unit, wrong};
use super::sets;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// The maximum nesting of classes, including the right sides of `&&`. The parsers of nested classes are recursive.
const MAX_DEPTH: usize = 20;

/// A class under construction. Its members are merged only when they are needed.
struct Class {
    /// The members of nested classes.
    ranges: Vec<ClassUnicodeRange>,
    /// Characters and ranges whose other cases are still to be added.
    items: Vec<ClassUnicodeRange>,
    is_begun: bool,
}

impl Class {
    fn add(&mut self, set: &ClassUnicode) {
        self.ranges.extend(set.iter());
        self.is_begun = true;
    }

    /// Adds a range of code points, without surrogates, which no string contains.
    fn add_range(&mut self, first: u32, last: u32) {
        let first = if (0xd800..0xe000).contains(&first) { 0xe000 } else { first };
        let last = if (0xd800..0xe000).contains(&last) { 0xd7ff } else { last };
        if let (Some(first), Some(last)) = (char::from_u32(first), char::from_u32(last))
            && first <= last
        {
            self.items.push(ClassUnicodeRange::new(first, last));
        }
        self.is_begun = true;
    }

    /// Returns all members so far and removes them from here.
    fn take(&mut self, p: &mut Parser) -> Res<ClassUnicode> {
        let mut items = ClassUnicode::new(std::mem::take(&mut self.items));
        p.add_cases(&mut items)?;
        self.ranges.extend(items.iter());
        Ok(ClassUnicode::new(std::mem::take(&mut self.ranges)))
    }
}

impl Parser {
    /// Parses a class after its opening `[`.
    pub(super) fn class(&mut self) -> Res<ClassUnicode> {
        self.open_class()?;
        let negative = self.takes_raw('^');
        let set = self.members()?;
        self.at += 1;
        self.classes_open -= 1;
        Ok(if negative { sets::negated(set) } else { set })
    }

    fn open_class(&mut self) -> Res<()> {
        self.classes_open += 1;
        if self.classes_open > MAX_DEPTH {
            return wrong(
                format!("its classes are nested more than {MAX_DEPTH} deep"),
                "write one class with all their members",
            );
        }
        Ok(())
    }

    /// Parses the members of a class up to its closing `]`, which is not consumed.
    fn members(&mut self) -> Res<ClassUnicode> {
        let mut class = Class { ranges: Vec::new(), items: Vec::new(), is_begun: false };
        loop {
            match self.peek() {
                None => return wrong("a class is not closed", r"add the `]`, or write \[ for the character"),
                Some(Unit { c: ']', plain: false }) if class.is_begun => break,
                Some(Unit { c: '[', plain: false }) => {
                    self.at += 1;
                    let nested = self.nested()?;
                    class.add(&nested);
                }
                Some(_) if self.sees_raw("&&") => {
                    self.at += 2;
                    let right = self.right_side()?;
                    let both = if class.is_begun {
                        let mut left = class.take(self)?;
                        left.intersect(&right);
                        left
                    } else {
                        right
                    };
                    class.add(&both);
                }
                Some(_) => self.member(&mut class)?,
            }
        }
        class.take(self)
    }

    /// Parses a nested class after its opening `[`.
    fn nested(&mut self) -> Res<ClassUnicode> {
        match self.posix() {
            Some(set) => {
                self.spend_class()?;
                Ok(set)
            }
            None => self.class(),
        }
    }

    /// Parses a POSIX class such as `[:alpha:]` after its first bracket. Consumes nothing if there is none.
    fn posix(&mut self) -> Option<ClassUnicode> {
        let rest: String = self.rest_up_to(']')?.iter().map(|unit| unit.c).collect();
        let name = rest.strip_prefix(':')?.strip_suffix(':')?;
        let (name, negative) = match name.strip_prefix('^') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let set = sets::of_posix(name, self.unicode_classes())?;
        self.at += rest.len() + 1;
        Some(if negative { sets::negated(set) } else { set })
    }

    /// Parses the right side of `&&`: the classes in brackets that follow, and all other members after them.
    fn right_side(&mut self) -> Res<ClassUnicode> {
        self.open_class()?;
        let mut right = None;
        loop {
            match self.peek() {
                Some(Unit { c: ']' | '&', plain: false }) => break,
                Some(Unit { c: '[', plain: false }) => {
                    self.at += 1;
                    let nested = self.nested()?;
                    right.get_or_insert_with(Vec::new).extend(nested.iter());
                }
                _ => {
                    let members = self.members()?;
                    right.get_or_insert_with(Vec::new).extend(members.iter());
                }
            }
        }
        let Some(right) = right else {
            return wrong("missing class after &&", "write the class that both must have: [a-z&&[^aeiou]]");
        };
        self.classes_open -= 1;
        Ok(ClassUnicode::new(right))
    }

    /// Parses a character, a range or an escape.
    fn member(&mut self, class: &mut Class) -> Res<()> {
        let first = match self.member_code()? {
            Escaped::Code(code) => code,
            Escaped::Set(set) => {
                class.add(&set);
                return Ok(());
            }
            Escaped::Tree(_) => return wrong("a class has characters only", "write it outside the class"),
        };
        let is_range = self.sees('-') && !self.class_ends_behind();
        if !is_range {
            class.add_range(first, first);
            return Ok(());
        }
        self.at += 1;
        if self.sees_raw(r"\v") {
            self.at += 2;
            return self.range(class, first, 0xb);
        }
        match self.member_code()? {
            Escaped::Code(last) => self.range(class, first, last),
            _ => wrong("a range of a class ends in a class", r"write \- for the character"),
        }
    }

    fn range(&self, class: &mut Class, first: u32, last: u32) -> Res<()> {
        if last < first {
            return wrong(
                "a range of a class is in the wrong order",
                r"write the smaller end first, or \- for the character",
            );
        }
        class.add_range(first, last);
        Ok(())
    }

    fn member_code(&mut self) -> Res<Escaped> {
        if self.takes('\\') {
            return self.escape(true);
        }
        let unit = self.peek();
        self.at += 1;
        match unit {
            Some(unit) => Ok(Escaped::Code(u32::from(unit.c))),
            None => wrong("a class is not closed", r"add the `]`, or write \[ for the character"),
        }
    }

    /// Returns whether a hyphen is literal, because no character follows with which it could form a range.
    fn class_ends_behind(&self) -> bool {
        match self.units.get(self.at + 1..).unwrap_or_default() {
            [] | [Unit { c: '[' | ']', plain: false }, ..] => true,
            [Unit { c: '\\', plain: false }, Unit { c, plain: false }, ..] => {
                matches!(c, 'w' | 'W' | 'd' | 'D' | 's' | 'S' | 'p' | 'P' | 'h' | 'H' | 'V')
            }
            _ => false,
        }
    }
}
