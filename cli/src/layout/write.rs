//! Writes trees as lines.

use super::WIDTH;
use super::style::{Breaks, Indent, Role, Style};
use super::tree::{Collection, Item, Kind, Piece};

/// Formats the items at the top level.
pub(super) fn write(items: &[Item<'_>]) -> String {
    let mut page = Page { text: String::new(), column: 0 };
    for (index, item) in items.iter().enumerate() {
        match (index, item.kind, item.breaks) {
            (0, ..) => {}
            (_, Kind::Comment, 0) => page.write(" "),
            (.., breaks) => page.new_line(breaks, 0),
        }
        page.item(item, Role::Code, 0);
    }
    if !items.is_empty() {
        page.new_line(1, 0);
    }
    page.text
}

/// The text written so far.
struct Page {
    text: String,
    /// The length of the last line, in characters.
    column: usize,
}

/// The layout of a collection's items.
#[derive(Clone)]
struct Plan<'c, 't> {
    collection: &'c Collection<'t>,
    style: Style<'t>,
    /// The column after the opening delimiter.
    inside: usize,
    /// The column of the first argument, if it is on the line of the function.
    argument: Option<usize>,
    /// The number of forms so far.
    forms: usize,
    /// Whether the breaks of the collection's kind are made, besides those of the author.
    full: bool,
    /// Whether the body of a block starts on a new line.
    has_body: bool,
    /// The number of closing delimiters after the last item.
    closers: usize,
}

impl<'c, 't> Plan<'c, 't> {
    fn new(collection: &'c Collection<'t>, style: Style<'t>, inside: usize, closers: usize) -> Self {
        let mut plan =
            Plan { collection, style, inside, argument: None, forms: 0, full: false, has_body: false, closers };
        if let Indent::Block(arguments) = style.indent {
            let items = collection.items.iter().enumerate();
            let mut forms = items.filter(|(_, item)| item.kind == Kind::Form).map(|(index, _)| index);
            plan.has_body = forms.nth(arguments + 1).is_some_and(|index| plan.is_broken_before(index));
        }
        plan
    }

    /// Makes the breaks of the collection's kind.
    fn break_all(&mut self) {
        self.full = true;
        if let Indent::Block(arguments) = self.style.indent {
            let is_there = self.collection.forms().nth(arguments + 1).is_some();
            self.has_body |= is_there && self.style.breaks.before(arguments + 1);
        }
    }

    /// Returns whether an item other than the first starts a new line. For items that fill lines, the width can also
    /// cause a break.
    fn breaks_before(&self, index: usize) -> bool {
        let is_own = |item: &Item<'_>| self.full && item.kind != Kind::Comment && self.style.breaks.before(self.forms);
        self.is_broken_before(index) || self.collection.items.get(index).is_some_and(is_own)
    }

    /// Returns whether the author or a comment makes an item start a new line.
    fn is_broken_before(&self, index: usize) -> bool {
        let item = |index: usize| self.collection.items.get(index);
        let behind_comment = index.checked_sub(1).and_then(item).is_some_and(|item| item.kind == Kind::Comment);
        behind_comment || item(index).is_some_and(|item| item.breaks > 0)
    }

    /// The column of an item that starts a new line now.
    fn indent(&self) -> usize {
        let call = self.argument.unwrap_or(self.inside);
        match self.style.indent {
            _ if self.forms == 0 => self.inside,
            Indent::Aligned => self.inside,
            Indent::Call => call,
            Indent::Body => self.inside + 1,
            Indent::Block(_) if self.has_body => self.inside + 1,
            Indent::Block(_) => call,
        }
    }

    /// The number of columns that must stay free after an item.
    fn behind(&self, index: usize) -> usize {
        if index + 1 == self.collection.items.len() { self.closers } else { 0 }
    }

    /// Records where an item was placed.
    fn pass(&mut self, item: &Item<'_>, column: usize, begins_line: bool) {
        if item.kind == Kind::Form {
            if self.forms == 1 && !begins_line {
                self.argument = Some(column);
            }
            self.forms += 1;
        }
    }
}

impl Page {
    fn write(&mut self, text: &str) {
        self.text.push_str(text);
        self.column = match text.rsplit_once('\n') {
            Some((_, last)) => last.chars().count(),
            None => self.column + text.chars().count(),
        };
    }

    /// Ends the line, followed by an empty line if there are two breaks.
    fn new_line(&mut self, breaks: usize, indent: usize) {
        self.text.push_str(if breaks > 1 { "\n\n" } else { "\n" });
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    /// Writes an item. This many columns must stay free after it.
    fn item(&mut self, item: &Item<'_>, role: Role, behind: usize) {
        let start = self.column;
        for (index, piece) in item.pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => self.write(text),
                Piece::Space => self.write(" "),
                Piece::Break => self.new_line(1, start),
                Piece::Collection(collection) => {
                    let behind = if index + 1 == item.pieces.len() { behind } else { 0 };
                    self.collection(collection, role, behind);
                }
            }
        }
    }

    fn collection(&mut self, collection: &Collection<'_>, role: Role, behind: usize) {
        let fits = !collection.broken && self.column + collection.width + behind <= WIDTH;
        self.write(collection.delimiter.opener());
        let style = Style::of(collection, role);
        let mut plan = Plan::new(collection, style, self.column, behind + 1);
        if !fits && style.breaks != Breaks::Filled && is_crowded(plan.clone()) {
            plan.break_all();
        }
        let mut before = None;
        for (index, item) in collection.items.iter().enumerate() {
            let behind = plan.behind(index);
            let filled = !fits
                && style.breaks == Breaks::Filled
                && item.kind != Kind::Comment
                && self.column + 1 + item.width + behind > WIDTH;
            let begins_line = index > 0 && (filled || plan.breaks_before(index));
            if begins_line {
                self.new_line(item.breaks, plan.indent());
            } else if index > 0 {
                self.write(" ");
            }
            let role = style.role_of(plan.forms, before);
            plan.pass(item, self.column, begins_line);
            self.item(item, role, behind);
            if item.kind == Kind::Form {
                before = item.name();
            }
        }
        // A comment would swallow the closing delimiter.
        if collection.items.last().is_some_and(|item| item.kind == Kind::Comment) {
            self.new_line(1, plan.indent());
        }
        self.write(collection.delimiter.closer().character().encode_utf8(&mut [0; 4]));
    }
}

/// Returns whether the author's line breaks are not enough: an item that could be on one line does not fit, or an item
/// follows one that spans several lines.
fn is_crowded(mut plan: Plan<'_, '_>) -> bool {
    let mut column = plan.inside;
    let mut behind_lines = false;
    for (index, item) in plan.collection.items.iter().enumerate() {
        if item.kind == Kind::Comment {
            continue;
        }
        let begins_line = index > 0 && plan.breaks_before(index);
        if begins_line {
            column = plan.indent();
        } else if behind_lines {
            return true;
        } else if index > 0 {
            column += 1;
        }
        plan.pass(item, column, begins_line);
        column += item.width;
        behind_lines = item.broken;
        if !item.broken && column + plan.behind(index) > WIDTH {
            return true;
        }
    }
    false
}
