//! Nests tokens into collections, with comments and marks.

use lisp_core::syntax::lexer::{Delimiter, Token, tokens};

/// An item of a collection or of the top level.
#[derive(Debug)]
pub(super) struct Item<'t> {
    pub(super) kind: Kind,
    /// The number of line breaks before it, at most two.
    pub(super) breaks: usize,
    pub(super) pieces: Vec<Piece<'t>>,
    /// Its width in characters on one line.
    pub(super) width: usize,
    /// Whether it cannot be on one line.
    pub(super) broken: bool,
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A form with its metadata: `^:private twice`.
    Form,
    /// A form that `#_` leaves out.
    LeftOut,
    Comment,
}

/// A piece of an item.
#[derive(Debug)]
pub(super) enum Piece<'t> {
    /// A mark before a form, a form without parts, or a comment.
    Text(&'t str),
    Space,
    /// The next piece starts on a new line.
    Break,
    Collection(Collection<'t>),
}

/// A collection.
#[derive(Debug)]
pub(super) struct Collection<'t> {
    pub(super) delimiter: Delimiter,
    /// Whether a quote is before it.
    pub(super) quoted: bool,
    pub(super) items: Vec<Item<'t>>,
    pub(super) width: usize,
    pub(super) broken: bool,
}

impl<'t> Item<'t> {
    fn new(kind: Kind, breaks: usize) -> Self {
        Item { kind, breaks, pieces: Vec::with_capacity(1), width: 0, broken: false }
    }

    fn push(&mut self, piece: Piece<'t>) {
        self.broken |= match &piece {
            Piece::Text(text) => text.contains('\n'),
            Piece::Space => false,
            Piece::Break => true,
            Piece::Collection(collection) => collection.broken,
        };
        self.width += match &piece {
            Piece::Text(text) => text.chars().count(),
            Piece::Space | Piece::Break => 1,
            Piece::Collection(collection) => collection.width,
        };
        self.pieces.push(piece);
    }

    /// The text of a form without parts and marks.
    pub(super) fn name(&self) -> Option<&'t str> {
        match *self.pieces.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The collection, if the item is one, with or without marks.
    pub(super) fn collection(&self) -> Option<&Collection<'t>> {
        match self.pieces.last()? {
            Piece::Collection(collection) => Some(collection),
            _ => None,
        }
    }

    /// Returns whether the item is a collection with this opening delimiter.
    pub(super) fn is(&self, delimiter: Delimiter) -> bool {
        self.collection().is_some_and(|collection| collection.delimiter == delimiter)
    }
}

impl<'t> Collection<'t> {
    fn new(delimiter: Delimiter, quoted: bool, items: Vec<Item<'t>>) -> Self {
        let width = items.iter().map(|item| item.width).sum::<usize>() + items.len().saturating_sub(1);
        let mut inner = items.iter().skip(1);
        let broken =
            inner.any(|item| item.breaks > 0) || items.iter().any(|item| item.broken || item.kind == Kind::Comment);
        Collection { delimiter, quoted, width: delimiter.opener().len() + width + 1, items, broken }
    }

    /// The forms in it, without comments and left-out forms.
    pub(super) fn forms(&self) -> impl Iterator<Item = &Item<'t>> {
        self.items.iter().filter(|item| item.kind == Kind::Form)
    }
}

/// An open collection, or the top level.
struct Level<'t> {
    delimiter: Delimiter,
    items: Vec<Item<'t>>,
    /// An item that started with marks.
    open: Option<Open<'t>>,
    /// Line breaks since the last token.
    breaks: usize,
    /// Whether whitespace follows the last token.
    spaced: bool,
}

/// An item whose form has not come yet.
struct Open<'t> {
    item: Item<'t>,
    /// The number of forms to leave out before it.
    left_out: usize,
    /// Whether the item started with metadata, so that the form after a left-out form belongs to it.
    says: bool,
    /// Whether the last token was a mark.
    marked: bool,
    /// Whether that mark was a quote.
    quoted: bool,
}

impl<'t> Level<'t> {
    fn new(delimiter: Delimiter) -> Self {
        Level { delimiter, items: Vec::new(), open: None, breaks: 0, spaced: false }
    }

    /// Returns the item that the next token belongs to.
    fn begin(&mut self) -> &mut Open<'t> {
        let (breaks, spaced) = (std::mem::take(&mut self.breaks), std::mem::take(&mut self.spaced));
        let breaks = if self.items.is_empty() { 0 } else { breaks };
        let open = self.open.get_or_insert_with(|| Open {
            item: Item::new(Kind::Form, breaks),
            left_out: 0,
            says: false,
            marked: false,
            quoted: false,
        });
        let stuck = open.marked && !spaced;
        if !stuck && !matches!(open.item.pieces.last(), None | Some(Piece::Break)) {
            open.item.push(Piece::Space);
        }
        open
    }

    fn mark(&mut self, token: Token, text: &'t str) {
        let open = self.begin();
        open.says |= token == Token::Meta && open.left_out == 0;
        open.left_out += usize::from(token != Token::QuoteNext);
        (open.marked, open.quoted) = (true, token == Token::QuoteNext);
        open.item.push(Piece::Text(text));
    }

    /// Adds a form to the item started by [`Level::begin`].
    fn form(&mut self, piece: Piece<'t>) {
        let Some(mut open) = self.open.take() else { return };
        open.item.push(piece);
        if open.left_out == 0 {
            return self.items.push(open.item);
        }
        (open.left_out, open.marked, open.quoted) = (open.left_out - 1, false, false);
        self.open = Some(open);
        if self.open.as_ref().is_some_and(|open| open.left_out == 0 && !open.says) {
            self.end();
        }
    }

    fn comment(&mut self, text: &'t str) {
        let text = text.trim_end();
        if self.open.is_some() {
            let open = self.begin();
            open.item.push(Piece::Text(text));
            open.item.push(Piece::Break);
            return;
        }
        let breaks = if self.items.is_empty() { 0 } else { self.breaks };
        (self.breaks, self.spaced) = (0, false);
        let mut item = Item::new(Kind::Comment, breaks);
        item.push(Piece::Text(text));
        self.items.push(item);
    }

    /// Ends an item that has marks but no form.
    fn end(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.item.kind = Kind::LeftOut;
            self.items.push(open.item);
        }
    }
}

/// Returns the items of a text that the reader accepts.
pub(super) fn nest(text: &str) -> Vec<Item<'_>> {
    let mut level = Level::new(Delimiter::List);
    let mut outer: Vec<Level<'_>> = Vec::new();
    for (token, span) in tokens(text) {
        let part = text.get(span.start as usize..span.end as usize).unwrap_or("");
        match token {
            Ok(Token::Space) => {
                level.breaks = (level.breaks + part.matches('\n').count()).min(2);
                level.spaced = true;
            }
            Ok(Token::Comment) => level.comment(part),
            Ok(token @ (Token::Discard | Token::Meta | Token::QuoteNext)) => level.mark(token, part),
            Ok(Token::Open(delimiter)) => {
                level.begin();
                outer.push(std::mem::replace(&mut level, Level::new(delimiter)));
            }
            Ok(Token::Close(_)) => {
                // The reader has checked that delimiters match.
                let Some(parent) = outer.pop() else { continue };
                let mut inner = std::mem::replace(&mut level, parent);
                inner.end();
                let quoted = level.open.as_ref().is_some_and(|open| open.quoted);
                level.form(Piece::Collection(Collection::new(inner.delimiter, quoted, inner.items)));
            }
            _ => {
                level.begin();
                level.form(Piece::Text(part));
            }
        }
    }
    level.end();
    level.items
}
