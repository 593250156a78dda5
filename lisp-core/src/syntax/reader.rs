//! From tokens to forms.

use super::Interrupt;
use super::diagnostics;
use super::fence::{has_fence_line, program_of};
use super::form::{Form, FormKind, NameId};
use super::lexer::{self, Closer, Delimiter, LexError, Token};
use super::literals::{self, NumberFault};
use super::names::Names;
use super::shapes::{Shape, Shapes, first_repeated};
use super::spelling::{NameFault, name_fault};
use crate::error::{Error, Span};

/// The limits of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// Maximum bytes of source text; 0 means unlimited.
    pub source_bytes: usize,
    /// Maximum distinct symbols and keywords; 0 means unlimited.
    pub names: usize,
    /// Maximum delimiters open at once, up to [`ReadLimits::NESTING_CEILING`].
    pub nesting: usize,
}

impl ReadLimits {
    /// The upper bound for `nesting`: forms are dropped and compared recursively.
    pub const NESTING_CEILING: usize = 1_000;
}

impl Default for ReadLimits {
    fn default() -> Self {
        ReadLimits { source_bytes: 1_000_000, names: 10_000, nesting: 64 }
    }
}

/// A parsed program.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The forms at the top level, in order.
    pub forms: Vec<Form>,
    /// The names that they use.
    pub names: Names,
}

/// Whether a text is a complete program.
#[derive(Clone, Debug, PartialEq)]
pub enum Completeness {
    /// It is a program.
    Complete,
    /// A delimiter or string is open: more text could complete it.
    Incomplete,
    /// It has an error that more text cannot fix.
    Invalid(Error),
}

/// Parses a program.
///
/// # Errors
/// Returns `parse_error`, `program_too_large`, `symbol_limit_exceeded`, or, for an otherwise valid text,
/// `duplicate_key`.
pub fn read(text: &str, limits: &ReadLimits) -> Result<Source, Error> {
    read_at(text, limits, &Interrupt::never())
}

/// Parses the first form of a text, unless interrupted; anything may follow it.
pub(crate) fn read_first(text: &str, limits: &ReadLimits, interrupt: &Interrupt<'_>) -> Result<Source, Error> {
    let mut reader = Reader::new(text, limits, interrupt);
    reader.only_first = true;
    reader.run().map_err(|stop| stop.error)
}

/// Parses a text like [`read`], unless interrupted.
pub(crate) fn read_at(text: &str, limits: &ReadLimits, interrupt: &Interrupt<'_>) -> Result<Source, Error> {
    Reader::new(text, limits, interrupt).run().map_err(|stop| explained(text, stop.error))
}

/// Completes the error of a text, which may be due to prose around a Markdown fence.
fn explained(text: &str, error: Error) -> Error {
    if has_fence_line(&text[program_of(text)]) { diagnostics::beside_fence(error) } else { error }
}

/// Returns whether a text, with the default limits, is a program, could become one by more text, or is invalid.
pub fn completeness(text: &str) -> Completeness {
    match Reader::new(text, &ReadLimits::default(), &Interrupt::never()).run() {
        Ok(_) => Completeness::Complete,
        Err(Stop { unfinished: true, .. }) => Completeness::Incomplete,
        Err(Stop { error, .. }) => Completeness::Invalid(explained(text, error)),
    }
}

/// Why parsing ended early.
struct Stop {
    error: Error,
    /// More text could fix it.
    unfinished: bool,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop { error, unfinished: false }
    }
}

/// A collection whose closing delimiter is not read yet.
struct Open {
    delimiter: Delimiter,
    span: Span,
    /// Where its forms start on the stack of forms.
    base: usize,
    /// The shapes of the forms that are compared: all of them, or only the keys of a map.
    shapes: Vec<Shape>,
    /// It is in a map's key or in a set, so everything in it is compared.
    compared: bool,
    in_short_fn: bool,
    /// The marks before the next form in it.
    marks: Vec<Mark>,
}

/// A mark that applies to the next form.
#[derive(Clone, Copy)]
struct Mark {
    what: Said,
    span: Span,
}

#[derive(Clone, Copy, PartialEq)]
enum Said {
    /// The form is skipped.
    LeftOut,
    /// The form is metadata of the one after it, and is skipped.
    Meta,
    /// The form has metadata, which is ignored.
    Described,
    /// The form is quoted.
    Quoted,
}

impl Open {
    /// Returns whether the next form needs a shape, given the number of forms so far.
    fn compares_next(&self, forms: usize) -> bool {
        match self.delimiter {
            Delimiter::List | Delimiter::Vector => self.compared,
            Delimiter::Map => self.compared || forms.is_multiple_of(2),
            Delimiter::Set => true,
            Delimiter::ShortFn => false,
        }
    }

    /// Returns the form that repeats an earlier key.
    fn repeated_key(&self, forms: &[Form]) -> Option<Span> {
        let step = if self.delimiter == Delimiter::Map { 2 } else { 1 };
        let shapes_step = if self.compared { step } else { 1 };
        let index = match self.delimiter {
            Delimiter::Map | Delimiter::Set => first_repeated(&self.shapes, shapes_step)?,
            Delimiter::List | Delimiter::Vector | Delimiter::ShortFn => return None,
        };
        forms.get(index * step).map(|form| form.span)
    }
}

/// Closing delimiters without an open one.
struct Surplus {
    closer: Closer,
    span: Span,
    count: usize,
}

struct Reader<'a> {
    text: &'a str,
    limits: ReadLimits,
    interrupt: &'a Interrupt<'a>,
    /// Parsing ends after the first form.
    only_first: bool,
    names: Names,
    shapes: Shapes,
    /// The forms at the top level, followed by those of the open collections.
    forms: Vec<Form>,
    /// The collections around the current position, the innermost last.
    open: Vec<Open>,
    /// The marks before the next form at the top level.
    marks: Vec<Mark>,
    /// The number of quotes among all marks: each is a level of nesting.
    quotes: usize,
    // These two are reported only if there is no other error: an error of the delimiters is more likely the cause of
    // such an error than its consequence.
    surplus: Option<Surplus>,
    duplicate: Option<Error>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, limits: &ReadLimits, interrupt: &'a Interrupt<'a>) -> Self {
        Reader {
            text,
            limits: *limits,
            interrupt,
            only_first: false,
            names: Names::new(),
            shapes: Shapes::default(),
            forms: Vec::with_capacity(16),
            open: Vec::with_capacity(8),
            marks: Vec::new(),
            quotes: 0,
            surplus: None,
            duplicate: None,
        }
    }

    fn run(mut self) -> Result<Source, Stop> {
        let (reached, limit) = (self.text.len(), self.limits.source_bytes);
        if limit != 0 && reached > limit {
            return Err(diagnostics::too_large(reached, limit).into());
        }
        if reached >= u32::MAX as usize {
            return Err(diagnostics::too_large_for_spans(reached).into());
        }
        for (token, span) in lexer::tokens(self.text) {
            self.interrupt.tick()?;
            match token {
                Ok(token) => self.token(token, span)?,
                Err(error) => return Err(self.lexical(error, span)),
            }
            if self.only_first && !self.forms.is_empty() && self.open.is_empty() {
                break;
            }
        }
        self.finish()
    }

    fn finish(self) -> Result<Source, Stop> {
        if let Some(open) = self.open.last() {
            let missing: String = self.open.iter().rev().map(|open| open.delimiter.closer().character()).collect();
            return Err(self.ended(diagnostics::unclosed(open.delimiter, open.span, &missing)));
        }
        if let Some(mark) = self.marks.last() {
            return Err(self.ended(diagnostics::mark_of_nothing(self.text, mark.span)));
        }
        match self.pending() {
            Some(error) => Err(error.into()),
            None => Ok(Source { forms: self.forms, names: self.names }),
        }
    }

    /// Returns an error found so far after which parsing could continue.
    fn pending(&self) -> Option<Error> {
        match &self.surplus {
            Some(surplus) => Some(diagnostics::surplus(surplus.closer, surplus.count, surplus.span)),
            None => self.duplicate.clone(),
        }
    }

    /// The text ended where more was needed.
    fn ended(&self, error: Error) -> Stop {
        Stop { error, unfinished: self.pending().is_none() }
    }

    fn lexical(&self, error: LexError, span: Span) -> Stop {
        match error {
            LexError::Unexpected => diagnostics::unexpected(self.text, span.start).into(),
            LexError::UnexpectedAt(at) => diagnostics::unexpected(self.text, span.start.saturating_add(at)).into(),
            LexError::UnclosedString => self.ended(diagnostics::unclosed_string(self.text, span.start)),
            LexError::EscapedLineBreak(at) => diagnostics::escaped_line_break(self.text, span.start, at).into(),
            LexError::EmptyCharacter => diagnostics::empty_character(span).into(),
        }
    }

    fn token(&mut self, token: Token, span: Span) -> Result<(), Error> {
        let kind = match token {
            Token::Space | Token::Comment => return Ok(()),
            Token::Open(delimiter) => return self.open(delimiter, span),
            Token::Close(closer) => return self.close(closer, span),
            Token::Discard => return self.mark(Said::LeftOut, span),
            Token::Meta => return self.mark(Said::Meta, span),
            Token::QuoteNext => return self.mark(Said::Quoted, span),
            Token::Number => self.number(span)?,
            Token::Symbolic => {
                let text = self.slice(span, 0, 0);
                let value = literals::symbolic(text).map(FormKind::Float);
                value.ok_or_else(|| diagnostics::unknown_symbolic(text, span))?
            }
            Token::String => FormKind::Str(literals::unescape(self.slice(span, 1, 1))),
            Token::Regex => FormKind::Regex(self.slice(span, 2, 1).into()),
            Token::Character => FormKind::Str(
                literals::character(self.slice(span, 0, 0))
                    .map_err(|fault| diagnostics::no_character(self.text, span, fault))?,
            ),
            Token::Keyword => FormKind::Keyword(self.keyword(span)?),
            Token::Symbol => match self.slice(span, 0, 0) {
                "nil" => FormKind::Nil,
                "true" => FormKind::Bool(true),
                "false" => FormKind::Bool(false),
                _ => FormKind::Symbol(self.name(span, 0)?),
            },
            Token::Quote => return self.quoted_name(span),
            Token::Var => FormKind::Var(self.name(span, 2)?),
        };
        self.atom(kind, span);
        Ok(())
    }

    fn atom(&mut self, kind: FormKind, span: Span) {
        let shape = self.compares_next().then(|| self.atom_shape(&kind));
        self.push(Form { kind, span }, shape);
    }

    /// `'name`: the symbol, regardless of what the name means otherwise.
    fn quoted_name(&mut self, span: Span) -> Result<(), Error> {
        let mark = Span::new(span.start, span.start.saturating_add(1));
        let name = Span::new(mark.end, span.end);
        let text = self.slice(name, 0, 0);
        self.mark(Said::Quoted, mark)?;
        let kind = match text.bytes().find(|b| !matches!(b, b'+' | b'-')) {
            Some(b'0'..=b'9') => self.number(name)?,
            _ => FormKind::Symbol(self.name(name, 0)?),
        };
        self.atom(kind, name);
        Ok(())
    }

    fn open(&mut self, delimiter: Delimiter, span: Span) -> Result<(), Error> {
        self.deeper(span)?;
        let compared = self.compares_next();
        let in_short_fn = delimiter == Delimiter::ShortFn || self.open.last().is_some_and(|outer| outer.in_short_fn);
        let (base, shapes, marks) = (self.forms.len(), Vec::new(), Vec::new());
        self.open.push(Open { delimiter, span, base, shapes, compared, in_short_fn, marks });
        Ok(())
    }

    /// Fails if one more level of nesting exceeds the limit.
    fn deeper(&self, span: Span) -> Result<(), Error> {
        let limit = self.limits.nesting.min(ReadLimits::NESTING_CEILING);
        match self.open.len() + self.quotes < limit {
            true => Ok(()),
            false => Err(diagnostics::too_deep(limit, ReadLimits::NESTING_CEILING, span)),
        }
    }

    /// Returns the marks before the next form.
    fn marks(&mut self) -> &mut Vec<Mark> {
        self.open.last_mut().map_or(&mut self.marks, |open| &mut open.marks)
    }

    fn mark(&mut self, what: Said, span: Span) -> Result<(), Error> {
        if what == Said::Quoted {
            self.deeper(span)?;
            self.quotes += 1;
        }
        self.marks().push(Mark { what, span });
        Ok(())
    }

    fn close(&mut self, closer: Closer, span: Span) -> Result<(), Error> {
        let Some(open) = self.open.pop() else {
            self.surplus.get_or_insert(Surplus { closer, span, count: 0 }).count += 1;
            return Ok(());
        };
        let delimiter = open.delimiter;
        if delimiter.closer() != closer {
            let fits = self.open.iter().any(|outer| outer.delimiter.closer() == closer);
            return Err(diagnostics::mismatched(self.text, (delimiter, open.span), (closer, span), fits));
        }
        if let Some(mark) = open.marks.last() {
            return Err(diagnostics::mark_of_nothing(self.text, mark.span));
        }
        let forms = self.forms.split_off(open.base);
        if delimiter == Delimiter::Map && !forms.len().is_multiple_of(2) {
            let last = forms.last().map_or(open.span, |form| form.span);
            return Err(diagnostics::odd_map(self.text, forms.len(), last));
        }
        if self.duplicate.is_none() {
            self.duplicate =
                open.repeated_key(&forms).map(|again| diagnostics::duplicate_key(self.text, delimiter, again));
        }
        let shape = open.compared.then(|| self.shapes.collection(delimiter, open.shapes));
        let kind = match delimiter {
            Delimiter::List => FormKind::List(forms),
            Delimiter::Vector => FormKind::Vector(forms),
            Delimiter::Map => FormKind::Map(forms),
            Delimiter::Set => FormKind::Set(forms),
            Delimiter::ShortFn => FormKind::ShortFn(forms),
        };
        self.push(Form { kind, span: open.span.to(span) }, shape);
        Ok(())
    }

    /// Adds a complete form, according to its marks.
    fn push(&mut self, mut form: Form, mut shape: Option<Shape>) {
        while let Some(mark) = self.marks().pop() {
            match mark.what {
                Said::LeftOut => return,
                Said::Meta => {
                    self.marks().push(Mark { what: Said::Described, ..mark });
                    return;
                }
                Said::Described => {}
                Said::Quoted => {
                    self.quotes -= 1;
                    let span = mark.span.to(form.span);
                    form = Form { kind: FormKind::Quote(Box::new(form)), span };
                    shape = shape.map(|shape| self.shapes.quoted(shape));
                }
            }
        }
        self.forms.push(form);
        if let (Some(shape), Some(open)) = (shape, self.open.last_mut()) {
            open.shapes.push(shape);
        }
    }

    fn compares_next(&self) -> bool {
        self.open.last().is_some_and(|open| open.compares_next(self.forms.len() - open.base))
    }

    fn atom_shape(&mut self, kind: &FormKind) -> Shape {
        match kind {
            FormKind::Symbol(name)
                if matches!(self.names.text(*name), "%" | "%1")
                    && self.open.last().is_some_and(|open| open.in_short_fn) =>
            {
                self.shapes.first_argument()
            }
            _ => self.shapes.atom(kind),
        }
    }

    fn number(&self, span: Span) -> Result<FormKind, Error> {
        let text = self.slice(span, 0, 0);
        literals::number(text).map_err(|fault| match fault {
            NumberFault::Malformed => diagnostics::malformed_number(text, span),
            NumberFault::LeadingZero => diagnostics::leading_zero(text, span),
            NumberFault::Radix => diagnostics::wrong_radix(text, span),
            NumberFault::Ratio => diagnostics::ratio(text, span),
            NumberFault::ExactDecimal => diagnostics::exact_decimal(text, span),
            NumberFault::Digits(digits) => diagnostics::too_many_digits(digits, span),
            NumberFault::OutOfRange => diagnostics::float_out_of_range(text, span),
        })
    }

    /// Returns the name of a keyword.
    fn keyword(&mut self, span: Span) -> Result<NameId, Error> {
        match self.slice(span, 1, 0) {
            name if name.is_empty() || name.starts_with(':') => Err(diagnostics::unexpected(self.text, span.start)),
            _ => self.name(span, 1),
        }
    }

    /// Returns the name that a token consists of after its prefix.
    fn name(&mut self, span: Span, prefix: usize) -> Result<NameId, Error> {
        let text = self.slice(span, prefix, 0);
        match name_fault(text) {
            None => {}
            Some(NameFault::Character(at)) => {
                let at = u32::try_from(prefix + at).unwrap_or(u32::MAX);
                return Err(diagnostics::unexpected(self.text, span.start.saturating_add(at)));
            }
            Some(NameFault::BesideSlash) => return Err(diagnostics::beside_slash(self.slice(span, 0, 0), span)),
            Some(NameFault::Colon) => return Err(diagnostics::colon_in_name(self.slice(span, 0, 0), span)),
        }
        // `inc'[1]` could be meant as the name inc' or as a quoted vector.
        if text.ends_with('\'') && matches!(self.text.as_bytes().get(span.end as usize), Some(b'(' | b'[' | b'{')) {
            return Err(diagnostics::quoted_collection(span.end - 1));
        }
        let id = self.names.intern(text);
        let (limit, reached) = (self.limits.names, self.names.len());
        if limit != 0 && reached > limit {
            return Err(diagnostics::too_many_names(limit, reached, span));
        }
        Ok(id)
    }

    /// Returns the text of a span without some bytes at its ends.
    fn slice(&self, span: Span, front: usize, back: usize) -> &'a str {
        self.text.get(span.start as usize + front..(span.end as usize).saturating_sub(back)).unwrap_or("")
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
