//! Notes about a run: what of that which it read and compared in vain is surely a mistake in the program.
//!
//! The run counts by name. The core forms then tell whether a name may be right: a key that the program also writes, tests or
//! shows may be absent at first, and one that is read beside the similar key is meant.

use super::names::{cut, keyword_shown, written};
use super::{Finding, FindingKind, MAX_DEPTH, MAX_WORK};
use crate::builtins::Rows;
use crate::compile::Forms;
use crate::compile::core::{Bind, Clause, Constant, FnNode, Kind, Node, Prim};
use crate::heap::{Misses, Noted, Vain};
use std::collections::BTreeMap;

/// A set of the names that are noted, by their indexes.
type Names = u32;

/// Returns the notes about a run of the program with this number, in the order of their positions. Leaves out what `found` has.
pub(crate) fn notes(number: u64, forms: &Forms, misses: &Misses, found: &[Finding]) -> Vec<Finding> {
    let meant = |noted: &Noted| match &noted.what {
        Vain::Missed(meant) => Some(meant.clone()),
        Vain::Compared => None,
    };
    let meant: Vec<_> = misses.noted.iter().map(meant).collect();
    let names = misses.noted.iter().zip(&meant).map(|(noted, meant)| (&*noted.name, meant.as_deref()));
    let mut uses = Uses::of(names.collect());
    uses.walk(&forms.body);
    if uses.is_over {
        return Vec::new();
    }
    let mut notes: Vec<Finding> = (0..misses.noted.len())
        .filter_map(|index| uses.note(misses, index, number))
        .filter(|note| !found.iter().any(|finding| repeats(note, finding)))
        .collect();
    notes.sort_by_key(|note| (note.span.start, note.span.end));
    notes
}

/// The maximum number of pairs that [`read_beside`] looks for.
pub(super) const MAX_PAIRS: usize = Names::BITS as usize;

/// Returns for each of these names, with the one that is probably meant, whether a program reads both of them as alternatives, or
/// beside each other. Empty if the program is too large.
pub(super) fn read_beside(forms: &Forms, pairs: &[(&str, &str)]) -> Vec<bool> {
    let mut uses = Uses::of(pairs.iter().map(|(name, meant)| (*name, Some(*meant))).collect());
    uses.walk(&forms.body);
    match uses.is_over {
        true => Vec::new(),
        false => (0..pairs.len()).map(|at| uses.beside & 1 << at != 0).collect(),
    }
}

/// Returns whether a check has found what a note says.
fn repeats(note: &Finding, finding: &Finding) -> bool {
    let is_same = match note.kind {
        FindingKind::KeyNeverFound => finding.kind == FindingKind::UnknownKey && finding.repair == note.repair,
        _ => finding.kind == FindingKind::NeverEqual,
    };
    is_same && finding.span.start < note.span.end && note.span.start < finding.span.end
}

/// How a program uses the names.
struct Uses<'m> {
    /// The names, and those that are probably meant by them.
    names: Vec<(&'m str, Option<&'m str>)>,
    rows: &'static Rows,
    depth: usize,
    /// The forms and constants so far.
    work: u32,
    /// Whether the program is too large or nested too deep.
    is_over: bool,
    /// Names that it reads as keys.
    read: Names,
    /// Names that may be right.
    excused: Names,
    /// Names beside which it reads the similar key.
    beside: Names,
    /// Names that it has as keywords and as strings, but for those that it reads.
    keywords: Names,
    strings: Names,
    /// Names that it has as keywords or strings to make values of them, not to compare them.
    made: Names,
    /// Whether constants are compared.
    compares: bool,
}

/// The names in a part of a program.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Names that are noted.
    noted: Names,
    /// Names whose similar key is there.
    meant: Names,
    /// Names whose similar key is read.
    meant_read: Names,
    /// How often something is tested to be absent.
    negations: u8,
}

impl std::ops::BitOr for Seen {
    type Output = Seen;

    fn bitor(self, other: Seen) -> Seen {
        Seen {
            noted: self.noted | other.noted,
            meant: self.meant | other.meant,
            meant_read: self.meant_read | other.meant_read,
            negations: self.negations.saturating_add(other.negations),
        }
    }
}

impl<'m> Uses<'m> {
    fn of(names: Vec<(&'m str, Option<&'m str>)>) -> Self {
        Uses {
            names,
            rows: crate::library::rows(),
            depth: 0,
            work: 0,
            is_over: false,
            read: 0,
            excused: 0,
            beside: 0,
            keywords: 0,
            strings: 0,
            made: 0,
            compares: false,
        }
    }

    fn note(&self, misses: &Misses, index: usize, number: u64) -> Option<Finding> {
        let noted = &misses.noted[index];
        let (program, span) = noted.place?;
        let has = |names: Names| names & 1 << index != 0;
        let (name, count) = (&*noted.name, noted.count.max(1));
        let times = if count == 1 { "1 time".to_owned() } else { format!("{count} times") };
        let (kind, message, repair) = match &noted.what {
            _ if program != number => return None,
            Vain::Missed(_) if !has(self.read) || has(self.excused | self.beside) || misses.was_found(noted) => {
                return None;
            }
            Vain::Missed(meant) => {
                let (read, has) = (keyword_shown(name), keyword_shown(meant));
                let message = format!("{read} was read {times} and never found; these maps have {has}");
                (FindingKind::KeyNeverFound, message, written(meant, &has))
            }
            // What is also a default or a result may be the value that it is compared with.
            Vain::Compared if has(self.keywords) == has(self.strings) || has(self.made) => return None,
            Vain::Compared => {
                let shown = cut(name);
                let message =
                    format!("the keyword :{shown} and the string {shown:?} were compared {times}: they are not equal");
                let repair = if has(self.keywords) { format!("write {name:?}") } else { format!("write :{name}") };
                (FindingKind::KeywordForString, message, repair)
            }
        };
        Some(Finding { kind, span, message, repair: Some(repair), fails: false })
    }

    /// Counts work. Returns false if there was too much.
    fn spend(&mut self) -> bool {
        self.work += 1;
        self.is_over |= self.work > MAX_WORK;
        !self.is_over
    }

    /// Returns the names that a text is.
    fn seen(&self, text: &str) -> Seen {
        let mut seen = Seen::default();
        for (index, (name, meant)) in self.names.iter().enumerate() {
            seen.noted |= Names::from(*name == text) << index;
            seen.meant |= Names::from(meant.is_some_and(|meant| is_spelt(meant, text))) << index;
        }
        seen
    }

    /// Returns the names that a text is, where it is read as a key.
    fn read_name(&self, text: &str) -> Seen {
        let seen = self.seen(text);
        Seen { meant_read: seen.meant, ..seen }
    }

    /// A constant that is read as a key.
    fn key(&mut self, constant: &Constant) -> Seen {
        match constant {
            Constant::Keyword(text) | Constant::Str(text) => {
                let seen = self.read_name(text);
                self.read |= seen.noted;
                seen
            }
            _ => self.constant(constant),
        }
    }

    /// A constant that is anything but a key that is read.
    fn constant(&mut self, constant: &Constant) -> Seen {
        let (mut all, mut left) = (Seen::default(), vec![constant]);
        let compares = self.compares || matches!(constant, Constant::Set(_));
        while let Some(constant) = left.pop().filter(|_| self.spend()) {
            match constant {
                Constant::Keyword(text) | Constant::Symbol(text) => {
                    let seen = self.seen(text);
                    self.keywords |= seen.noted;
                    self.made |= if compares { 0 } else { seen.noted };
                    all = all | seen;
                }
                Constant::Str(text) => {
                    let seen = self.seen(text);
                    self.strings |= seen.noted;
                    self.made |= if compares { 0 } else { seen.noted };
                    all = all | seen;
                }
                Constant::Vector(items) | Constant::Map(items) | Constant::Set(items) => left.extend(items),
                _ => {}
            }
        }
        self.excused |= all.noted;
        // Keys in one collection are tried one after the other.
        if !constant.is_scalar() {
            self.beside |= all.noted & all.meant;
        }
        all
    }

    /// A constant that a value is compared with.
    fn compared(&mut self, constant: &Constant) -> Seen {
        let compares = std::mem::replace(&mut self.compares, true);
        let seen = self.constant(constant);
        self.compares = compares;
        seen
    }

    /// Excuses names that one part of a form has while another part has the similar key.
    fn beside(&mut self, parts: &[Seen]) -> Seen {
        let mut before = Seen::default();
        for part in parts {
            self.beside |= before.noted & part.meant_read | before.meant_read & part.noted;
            self.excused |= before.noted & part.meant | before.meant & part.noted;
            before = before | *part;
        }
        before
    }

    /// Forms of which each runs. Keys that are read directly of the same map are read beside each other.
    fn each<'n>(&mut self, nodes: impl Iterator<Item = &'n Node> + Clone) -> Seen {
        // By the variables that are read; of what else is read it is not clear whether it is the same.
        let mut maps: BTreeMap<usize, Seen> = BTreeMap::new();
        let mut others = Seen::default();
        for (seen, map) in nodes.clone().filter_map(|node| self.read_by(node)) {
            match map.kind {
                Kind::Local(var) => {
                    let known = maps.entry(var.0).or_default();
                    *known = *known | seen;
                }
                _ => others = others | seen,
            }
        }
        let all = maps.values().fold(others, |all, seen| all | *seen);
        self.excused |= all.noted & all.meant;
        for seen in maps.values().chain([&others]) {
            let seen = *seen | others;
            self.beside |= seen.noted & seen.meant_read;
        }
        nodes.fold(Seen::default(), |all, node| all | self.walk(node))
    }

    /// Forms of which one may be there in the place of another.
    fn either<'n>(&mut self, nodes: impl Iterator<Item = &'n Node>) -> Seen {
        let parts: Vec<Seen> = nodes.map(|node| self.walk(node)).collect();
        self.beside(&parts)
    }

    /// Branches. What is read where the test found something does not replace that.
    fn branches<'n>(&mut self, pairs: impl Iterator<Item = (&'n Node, &'n Node)>, last: &Node) -> Seen {
        let mut all = Seen::default();
        for (node, then) in pairs {
            let (test, then) = (self.walk(node), self.walk(then));
            self.beside(&[all, test]);
            self.beside(&[all, then]);
            // What is read directly may be absent, and so may what is missed.
            let is_read = self.read_by(node).is_some();
            let missed = Seen { meant: 0, meant_read: 0, ..test };
            if test.negations > 0 {
                self.beside(&[missed, then]);
            }
            if !(is_read && test.negations > 0) {
                all = all | if is_read { test } else { missed };
            }
            all = all | then;
        }
        let last = self.walk(last);
        self.beside(&[all, last])
    }

    /// Returns the key that a form reads, if it does nothing else than to test it or to give it a default, and the form
    /// of the map.
    fn read_by<'n>(&self, node: &'n Node) -> Option<(Seen, &'n Node)> {
        /// The maximum number of tests around it.
        const TESTS: usize = 4;
        let mut node = node;
        for _ in 0..TESTS {
            node = match &node.kind {
                Kind::CallBuiltin(id, arguments) if tests(self.rows.row(*id).name) => arguments.first()?,
                Kind::Prim(_, nodes) | Kind::Or(nodes) => nodes.first()?,
                _ => break,
            };
        }
        let (key, map) = match &node.kind {
            Kind::Key(map, key, _) => (key, &**map),
            Kind::Call(callee, arguments) => match &callee.kind {
                Kind::Const(key) => (key, arguments.first()?),
                _ => return None,
            },
            Kind::CallBuiltin(id, arguments) if self.rows.row(*id).name == "get" => match &arguments.get(1)?.kind {
                Kind::Const(key) => (key, arguments.first()?),
                _ => return None,
            },
            _ => return None,
        };
        match key {
            Constant::Keyword(text) | Constant::Str(text) => Some((self.read_name(text), map)),
            _ => None,
        }
    }

    fn walk(&mut self, node: &Node) -> Seen {
        self.is_over |= self.depth == MAX_DEPTH;
        if !self.spend() {
            return Seen::default();
        }
        self.depth += 1;
        let seen = self.form(node);
        self.depth -= 1;
        seen
    }

    fn form(&mut self, node: &Node) -> Seen {
        match &node.kind {
            Kind::Const(constant) => self.constant(constant),
            Kind::Key(map, key, default) => {
                let read = self.walk(map) | self.key(key);
                let default = default.iter().fold(Seen::default(), |all, node| all | self.walk(node));
                self.beside(&[read, default])
            }
            Kind::Call(callee, arguments) => {
                let is_key = matches!(callee.kind, Kind::Const(_));
                let callee = match &callee.kind {
                    Kind::Const(key) => self.key(key),
                    _ => self.walk(callee),
                };
                // A constant that is passed to a function may be compared there; that of a key is a default.
                let passed = |node: &&Node| !is_key && matches!(node.kind, Kind::Const(_));
                let mut constants = Seen::default();
                for argument in arguments.iter().filter(passed) {
                    if let Kind::Const(constant) = &argument.kind {
                        constants = constants | self.compared(constant);
                    }
                }
                let rest = self.each(arguments.iter().filter(|node| !passed(node)));
                self.beside(&[callee, constants | rest])
            }
            Kind::CallBuiltin(id, arguments) => self.call(self.rows.row(*id).name, arguments),
            Kind::Vector(nodes) | Kind::Map(nodes) | Kind::Set(nodes) | Kind::Do(nodes) | Kind::Recur(nodes) => {
                self.each(nodes.iter())
            }
            Kind::Prim(prim, nodes) => {
                let seen = self.each(nodes.iter());
                Seen { negations: seen.negations.saturating_add((*prim == Prim::IsNil).into()), ..seen }
            }
            Kind::And(nodes) => self.each(nodes.iter()),
            Kind::Or(nodes) => self.either(nodes.iter()),
            Kind::If(test, then, other) => self.branches([(&**test, &**then)].into_iter(), other),
            Kind::Cond(pairs, last) => self.branches(pairs.iter().map(|(test, then)| (test, then)), last),
            Kind::Case(value, clauses, last) => {
                let constants = clauses.iter().flat_map(|(constants, _)| constants);
                let constants = constants.fold(Seen::default(), |all, constant| all | self.compared(constant));
                let value = self.walk(value);
                // In each case there may be another map.
                let rest = self.each(clauses.iter().map(|(_, then)| then).chain([&**last]));
                let all = value | constants | rest;
                self.excused |= all.noted & all.meant;
                all
            }
            Kind::Let(binds, body) => {
                // What is read first may be tested in the body, as by `if-let`.
                let direct = binds.iter().filter_map(|bind| self.read_by(&bind.init));
                let direct = direct.fold(Seen::default(), |all, (seen, _)| all | seen);
                let (binds, body) = (self.binds(binds), self.walk(body));
                self.excused |= direct.noted & body.meant | direct.meant & body.noted;
                binds | body
            }
            Kind::Loop(variables, body) => self.each(variables.iter().map(|(_, node)| node)) | self.walk(body),
            Kind::Fn(function) => self.function(function),
            Kind::Letfn(group, body) => {
                let walk = |all, (_, function): &(_, FnNode)| all | self.function(function);
                group.functions.iter().fold(Seen::default(), walk) | self.walk(body)
            }
            Kind::For(clauses, body, _) => {
                clauses.iter().fold(Seen::default(), |all, clause| all | self.clause(clause)) | self.walk(body)
            }
            Kind::Times(_, a, b) | Kind::While(a, b) | Kind::Finally(a, b) => self.walk(a) | self.walk(b),
            Kind::Try(body, _, handler) => self.either([body, handler].into_iter().map(|node| &**node)),
            Kind::Def(_, node) | Kind::DefOnce(_, node) | Kind::Throw(node) | Kind::Return(node) | Kind::Fail(node) => {
                self.walk(node)
            }
            Kind::Local(_)
            | Kind::Global(_)
            | Kind::Data(_)
            | Kind::Builtin(_)
            | Kind::Tool(_)
            | Kind::Name(_)
            | Kind::Rethrow(_) => Seen::default(),
        }
    }

    /// The call of a built-in function. Some read keys that are passed to them.
    fn call(&mut self, name: &str, arguments: &[Node]) -> Seen {
        let (reads, reads_path) = (reads_keys(name), matches!(name, "get-in" | "select-keys"));
        let (mut keys, mut rest, mut compared) = (Vec::new(), Vec::new(), Seen::default());
        for argument in arguments {
            match &argument.kind {
                Kind::Const(constant) if matches!(name, "=" | "not=" | "contains?") => {
                    compared = compared | self.compared(constant);
                }
                Kind::Const(key) if reads && key.is_scalar() => keys.push(self.key(key)),
                Kind::Const(Constant::Vector(path)) if reads_path => keys.extend(path.iter().map(|key| self.key(key))),
                Kind::Vector(path) if reads_path => keys.extend(path.iter().map(|node| match &node.kind {
                    Kind::Const(key) => self.key(key),
                    _ => self.walk(node),
                })),
                _ => rest.push(argument),
            }
        }
        let read = match name {
            // The two functions of a tree read different keys, and a path reads of different maps.
            "tree-seq" | "get-in" => keys.into_iter().fold(Seen::default(), |all, key| all | key),
            _ => self.beside(&keys),
        };
        let rest = self.each(rest.into_iter());
        // The rest may be what is there in place of the key.
        let all = if matches!(name, "get" | "get-in") { self.beside(&[read, rest]) } else { read | rest };
        let all = all | compared;
        let is_negation = is_negation(name) && arguments.first().is_some_and(|node| self.read_by(node).is_some());
        Seen { negations: all.negations.saturating_add(is_negation.into()), ..all }
    }

    fn binds(&mut self, binds: &[Bind]) -> Seen {
        self.each(binds.iter().map(|bind| &bind.init))
    }

    fn clause(&mut self, clause: &Clause) -> Seen {
        match clause {
            Clause::Each(_, node, binds) => self.walk(node) | self.binds(binds),
            Clause::Let(binds) => self.binds(binds),
            Clause::When(node) | Clause::While(node) => self.walk(node),
        }
    }

    fn function(&mut self, function: &FnNode) -> Seen {
        let of = |uses: &mut Self, one: &FnNode| uses.binds(&one.prologue) | uses.walk(&one.body);
        std::iter::once(function).chain(&function.others).fold(Seen::default(), |all, one| all | of(self, one))
    }
}

/// Returns whether a built-in function tests that something is absent.
fn is_negation(name: &str) -> bool {
    matches!(name, "not" | "nil?" | "empty?" | "blank?" | "not=" | "false?" | "zero?")
}

/// Returns whether a built-in function tests its argument.
fn tests(name: &str) -> bool {
    matches!(name, "not" | "nil?" | "some?" | "empty?" | "seq" | "boolean" | "not-empty")
}

/// Returns whether a built-in function reads the keys that are passed to it, and does nothing else with them.
fn reads_keys(name: &str) -> bool {
    matches!(
        name,
        "get"
            | "map"
            | "mapv"
            | "pmap"
            | "mapcat"
            | "keep"
            | "filter"
            | "filterv"
            | "remove"
            | "take-while"
            | "drop-while"
            | "some"
            | "every?"
            | "not-any?"
            | "not-every?"
            | "sort-by"
            | "group-by"
            | "partition-by"
            | "distinct-by"
            | "sum-by"
            | "avg-by"
            | "min-by"
            | "max-by"
            | "min-key"
            | "max-key"
            | "comp"
            | "juxt"
            | "complement"
            | "every-pred"
            | "some-fn"
            | "tree-seq"
    )
}

/// Returns whether a program can write a key like this, with hyphens for its underscores.
fn is_spelt(key: &str, text: &str) -> bool {
    key.len() == text.len() && key.bytes().zip(text.bytes()).all(|(a, b)| a == b || a == b'_' && b == b'-')
}
