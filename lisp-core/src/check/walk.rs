//! The walk over the core forms.

use super::known::{Captured, Function, Known, Missed, Pass};
use super::names::cut;
use super::shape::{Shape, Types, joined, name_of};
use super::{
    Facts, Finding, FindingKind, MAX_DEPTH, MAX_FINDINGS, MAX_WORK, MissingData, ToolShape, incomplete, notes,
};
use crate::Table;
use crate::builtins::Rows;
use crate::compile::core::{Bind, Clause, Constant, FnNode, Kind, Node, Prim, Var};
use crate::compile::{Forms, Program};
use crate::error::Span;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// How often the body of a loop is walked until its variables are what they are.
const ROUNDS: usize = 3;

/// What was found at a place.
enum Place {
    /// It was right, or unknown, at least once.
    Right,
    /// It was wrong each time.
    Wrong(Wrong),
}

/// A mistake at a place.
struct Wrong {
    finding: Finding,
    /// The key that is probably meant.
    meant: Option<Arc<str>>,
    /// Whether the place is walked once only.
    is_final: bool,
}

/// A place: a position, and what is read there.
type PlaceId = (u32, u32, String);

pub(super) struct Checker<'p> {
    program: &'p Program,
    forms: &'p Forms,
    pub(super) rows: &'static Rows,
    pub(super) facts: &'p dyn Facts,
    vars: Table<usize, Known<'p>>,
    /// What the variables were that functions in progress have set, the last one last. Functions share the table: the variables that
    /// one captures are those of the one that made it.
    pub(super) replaced: Vec<(Var, Option<Known<'p>>)>,
    /// The tools that were asked for.
    pub(super) tools: Table<String, Option<Rc<ToolShape>>>,
    /// The shapes of large constants, by their addresses.
    constants: Table<*const Constant, Shape>,
    /// Definitions that are made more than once, or perhaps: what they are is not known.
    volatile: &'p RefCell<BTreeSet<u32>>,
    stop: &'p dyn Fn() -> bool,
    /// The data that is probably meant by data that is not given.
    missing_data: Table<u32, Option<MissingData>>,
    globals: Table<u32, Known<'p>>,
    /// Whether definitions of earlier programs are read.
    has_others: bool,
    places: BTreeMap<PlaceId, Place>,
    work: u32,
    depth: usize,
    /// The pass that is walked, and how many there were.
    pub(super) pass: Pass,
    passes: Pass,
    /// Whether the pass surely runs.
    pub(super) is_certain: bool,
    /// Whether something may end the run, or a part of it, before all of it has run.
    pub(super) may_stop: bool,
    /// Calls with operands of wrong types, by their positions; `None` if they are right at least once.
    operands: Table<(u32, u32), Option<Finding>>,
    /// The functions that have been walked.
    pub(super) walked: Table<*const FnNode, ()>,
    /// The functions that are being called, the innermost last.
    pub(super) active: Vec<(&'p FnNode, Captured<'p>)>,
    /// The values with which the loops around go on.
    recurs: Vec<Vec<Known<'p>>>,
    /// What the functions around return early.
    pub(super) returns: Vec<Known<'p>>,
    /// Whether code is walked that may not run, or not once.
    pub(super) conditional: usize,
    /// How many branches are around that may not run.
    pub(super) arms: usize,
    /// How much is around in which a call that fails does not end the run: `try`, and functions that are not called.
    guarded: usize,
    /// Whether findings are not kept, because the code is walked again.
    pub(super) silent: usize,
    /// The keys that were looked for and found, in the order of the walk.
    pub(super) found: Vec<Arc<str>>,
    /// Names of data that is tested, and replaced by other data.
    excused_data: BTreeSet<Arc<str>>,
    is_over: bool,
}

impl<'p> Checker<'p> {
    pub(super) fn new(
        program: &'p Program,
        forms: &'p Forms,
        facts: &'p dyn Facts,
        volatile: &'p RefCell<BTreeSet<u32>>,
        stop: &'p dyn Fn() -> bool,
    ) -> Self {
        Checker {
            program,
            forms,
            rows: crate::library::rows(),
            facts,
            vars: Table::default(),
            replaced: Vec::new(),
            tools: Table::default(),
            constants: Table::default(),
            volatile,
            stop,
            missing_data: Table::default(),
            globals: Table::default(),
            has_others: false,
            places: BTreeMap::new(),
            work: 0,
            depth: 0,
            pass: 0,
            passes: 0,
            is_certain: true,
            may_stop: false,
            operands: Table::default(),
            walked: Table::default(),
            active: Vec::new(),
            recurs: Vec::new(),
            returns: Vec::new(),
            conditional: 0,
            arms: 0,
            guarded: 0,
            silent: 0,
            found: Vec::new(),
            excused_data: BTreeSet::new(),
            is_over: false,
        }
    }

    pub(super) fn findings(mut self) -> Vec<Finding> {
        let value = self.visit(&self.forms.body);
        self.result(&value, self.forms.body.span);
        self.visit_uncalled();
        let operands = std::mem::take(&mut self.operands).into_iter().filter(|_| !self.may_stop);
        for ((start, end), finding) in operands {
            let wrong = |finding| Place::Wrong(Wrong { finding, meant: None, is_final: false });
            self.places.extend(finding.map(|finding| ((start, end, String::new()), wrong(finding))));
        }
        let mut wrong: Vec<(PlaceId, Wrong)> = std::mem::take(&mut self.places)
            .into_iter()
            .filter_map(|(id, place)| match place {
                Place::Wrong(wrong) => Some((id, wrong)),
                Place::Right => None,
            })
            .filter(|(id, wrong)| (!self.is_over || wrong.is_final) && !self.excused_data.contains(&*id.2))
            .collect();
        self.leave_out_alternatives(&mut wrong);
        let mut findings: Vec<Finding> = wrong.into_iter().map(|(_, wrong)| wrong.finding).take(MAX_FINDINGS).collect();
        if self.is_over {
            findings.truncate(MAX_FINDINGS - 1);
            findings.push(incomplete(self.forms.body.span));
        }
        findings
    }

    /// Leaves out keys beside which the program also reads the similar key.
    fn leave_out_alternatives(&self, wrong: &mut Vec<(PlaceId, Wrong)>) {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        let places: Vec<Option<usize>> = wrong
            .iter()
            .map(|(id, wrong)| {
                let pair = (&*id.2, wrong.meant.as_deref()?);
                let at = pairs.iter().position(|known| *known == pair);
                Some(at.unwrap_or_else(|| {
                    pairs.push(pair);
                    pairs.len() - 1
                }))
            })
            .collect();
        if pairs.is_empty() {
            return;
        }
        pairs.truncate(notes::MAX_PAIRS);
        let beside = notes::read_beside(self.forms, &pairs);
        let mut places = places.into_iter();
        wrong.retain(|_| places.next().flatten().is_none_or(|at| beside.get(at) == Some(&false)));
    }

    /// Walks the functions that the program defines and does not call, such as those for a later program.
    fn visit_uncalled(&mut self) {
        let mut globals: Vec<u32> = self.globals.keys().copied().collect();
        globals.sort_unstable();
        self.guarded += 1;
        for global in globals {
            let value = self.globals.get(&global).cloned();
            if let Some(Known { function: Some(function), .. }) = &value
                && let Function::Closure(node, _) = &**function
                && !self.walked.contains_key(&std::ptr::from_ref::<FnNode>(node))
            {
                value.iter().for_each(|value| self.escape(value));
            }
        }
        self.guarded -= 1;
    }

    /// Returns whether a call that fails here ends the run.
    pub(super) fn is_unguarded(&self) -> bool {
        self.guarded == 0
    }

    /// Walks code that runs under other conditions. `is_certain` says that it runs at least once if the code around it does.
    pub(super) fn pass<T>(&mut self, is_certain: bool, walk: impl FnOnce(&mut Self) -> T) -> T {
        let (pass, was_certain) = (self.pass, self.is_certain);
        self.passes += 1;
        self.pass = self.passes;
        self.is_certain &= is_certain;
        let result = walk(self);
        (self.pass, self.is_certain) = (pass, was_certain);
        result
    }

    /// Returns whether the elements of a list have exactly the types of its shape, so that there is one.
    pub(super) fn is_exact_list(&self, list: &Known<'p>) -> bool {
        list.exact == Some(self.pass) && !list.shape.element().is_never()
    }

    /// Notes operands of a call that are sure to be wrong, or that they are right or unknown this time.
    pub(super) fn judge(&mut self, span: Span, finding: Option<Finding>) {
        if self.silent == 0 {
            let finding = finding.filter(|_| self.is_certain);
            self.operands
                .entry((span.start, span.end))
                .and_modify(|known| *known = known.take().filter(|_| finding.is_some()))
                .or_insert(finding);
        }
    }

    pub(super) fn data_name(&self, global: u32) -> Option<&'p str> {
        self.program.code().globals.get(global as usize)?.strip_prefix("data/")
    }

    /// Counts work. Returns false if there was too much.
    pub(super) fn spend(&mut self, work: u32) -> bool {
        const STEPS: u32 = 1_000;
        let before = self.work / STEPS;
        self.work = self.work.saturating_add(work);
        self.is_over |= self.work > MAX_WORK || self.work / STEPS > before && (self.stop)();
        !self.is_over
    }

    /// Counts the work for some things at once.
    pub(super) fn spend_on(&mut self, count: usize) -> bool {
        self.spend(u32::try_from(count).unwrap_or(u32::MAX))
    }

    pub(super) fn constant(&mut self, constant: &'p Constant, span: Span) -> Known<'p> {
        Known { constant: Some((constant, span)), ..Known::of(self.shape_of(constant)) }
    }

    /// Returns the shape of a constant. That of a collection is made once.
    pub(super) fn shape_of(&mut self, constant: &'p Constant) -> Shape {
        let (Constant::Vector(items) | Constant::Set(items) | Constant::Map(items)) = constant else {
            return Shape::of_constant(constant);
        };
        if let Some(shape) = self.constants.get(&std::ptr::from_ref(constant)) {
            return shape.clone();
        }
        match self.spend_on(items.len()) {
            true => {
                let shape = Shape::of_constant(constant);
                self.constants.insert(std::ptr::from_ref(constant), shape.clone());
                shape
            }
            false => Shape::UNKNOWN,
        }
    }

    /// Notes that a place is right, or that nothing is known.
    pub(super) fn right(&mut self, span: Span, what: &str) {
        if self.silent == 0 {
            self.places.insert(place(span, what), Place::Right);
        }
    }

    /// Notes that a place is wrong this time.
    pub(super) fn wrong(&mut self, what: &str, finding: Finding) {
        self.wrong_name(what, finding, None);
    }

    /// Notes that a name is wrong this time, and which one is probably meant.
    pub(super) fn wrong_name(&mut self, name: &str, finding: Finding, meant: Option<Arc<str>>) {
        if self.silent > 0 || self.is_over {
            return;
        }
        // Nothing excuses a call that fails, where it is made once.
        let is_final = finding.fails && self.pass == 0 && self.conditional == 0 && self.active.is_empty();
        let fails = finding.fails;
        let place = self.places.entry(place(finding.span, name));
        if let Place::Wrong(wrong) = place.or_insert(Place::Wrong(Wrong { finding, meant, is_final })) {
            wrong.finding.fails |= fails;
        }
    }

    pub(super) fn set(&mut self, var: Var, value: Known<'p>) {
        let before = self.vars.insert(var.0, value);
        if !self.active.is_empty() {
            self.replaced.push((var, before));
        }
    }

    /// Gives the variables the values back that they had when so many had been replaced.
    pub(super) fn restore(&mut self, replaced: usize) {
        while self.replaced.len() > replaced {
            match self.replaced.pop() {
                Some((var, Some(before))) => drop(self.vars.insert(var.0, before)),
                Some((var, None)) => drop(self.vars.remove(&var.0)),
                None => {}
            }
        }
    }

    pub(super) fn value_of(&self, var: Var) -> Known<'p> {
        self.vars.get(&var.0).cloned().unwrap_or_else(Known::unknown)
    }

    /// Returns one of two values.
    pub(super) fn join(&mut self, a: Known<'p>, b: Known<'p>) -> Known<'p> {
        if a.shape.is_never() {
            return b;
        }
        if b.shape.is_never() {
            return a;
        }
        self.spend(a.shape.weight().min(b.shape.weight()));
        let shape = a.shape.join(&b.shape);
        let truth = a.holds().filter(|truth| b.holds() == Some(*truth));
        let function = match (&a.function, &b.function) {
            (None, None) => None,
            (Some(f), Some(g)) if Rc::ptr_eq(f, g) => Some(f.clone()),
            _ => Some(Rc::new(Function::Either(a, b))),
        };
        Known { function, truth, ..Known::of(shape) }
    }

    pub(super) fn visit(&mut self, node: &'p Node) -> Known<'p> {
        if !self.spend(1) || !self.enter() {
            return Known::unknown();
        }
        let known = self.visit_kind(node);
        self.leave();
        known
    }

    /// Goes one level deeper. Returns false, and gives the check up, if that is too deep.
    pub(super) fn enter(&mut self) -> bool {
        self.is_over |= self.depth >= MAX_DEPTH;
        self.depth += usize::from(!self.is_over);
        !self.is_over
    }

    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    pub(super) fn visit_all(&mut self, nodes: &'p [Node]) -> Vec<Known<'p>> {
        nodes.iter().map(|node| self.visit(node)).collect()
    }

    /// Walks code that may not run.
    pub(super) fn visit_perhaps(&mut self, node: &'p Node) -> Known<'p> {
        self.conditional += 1;
        self.arms += 1;
        let known = self.pass(false, |checker| checker.visit(node));
        self.arms -= 1;
        self.conditional -= 1;
        known
    }

    fn visit_kind(&mut self, node: &'p Node) -> Known<'p> {
        let span = node.span;
        match &node.kind {
            Kind::Const(constant) => Known { exact: Some(self.pass), ..self.constant(constant, span) },
            Kind::Local(var) => self.value_of(*var),
            Kind::Global(global) => match self.globals.get(global) {
                Some(value) => value.clone(),
                None => {
                    self.define_anything();
                    Known::unknown()
                }
            },
            Kind::Data(global) => self.data(*global, span),
            Kind::Builtin(id) => {
                self.may_stop |= self.rows.row(*id).name == "reduced";
                Known::function(Function::Builtin(*id))
            }
            Kind::Tool(name) => Known::function(Function::Tool(name)),
            Kind::Vector(_) | Kind::Map(_) | Kind::Set(_) => self.collection(node),
            Kind::Do(nodes) => self.visit_all(nodes).pop().unwrap_or_else(Known::unknown),
            Kind::If(..) | Kind::Cond(..) | Kind::And(_) | Kind::Or(_) | Kind::Case(..) => self.branches(node),
            Kind::Let(binds, body) => {
                self.binds(binds);
                self.visit(body)
            }
            Kind::Loop(variables, body) => self.looped(variables, body),
            Kind::Recur(nodes) => self.recur(nodes),
            Kind::Fn(function) => Known::function(self.closure(function)),
            Kind::Letfn(group, body) => {
                for (var, _) in &group.functions {
                    self.set(*var, Known::types(Types::FN));
                }
                for (_, function) in &group.functions {
                    let function = Known::function(self.closure(function));
                    self.escape(&function);
                }
                self.visit(body)
            }
            Kind::Call(callee, arguments) => {
                let function = self.visit(callee);
                let values = self.visit_all(arguments);
                let value = self.call(&function, values, span);
                if let (Kind::Const(key), [_, default]) = (&callee.kind, &arguments[..]) {
                    self.excuse(key, callee.span, default);
                }
                value
            }
            Kind::CallBuiltin(id, arguments) => {
                self.may_stop |= self.rows.row(*id).name == "reduced";
                let values = self.visit_all(arguments);
                let value = self.builtin(*id, values, span);
                if let [_, Node { kind: Kind::Const(key), .. }, default] = &arguments[..]
                    && self.rows.row(*id).name == "get"
                {
                    self.excuse(key, span, default);
                }
                value
            }
            Kind::Prim(prim, arguments) => self.prim(*prim, arguments),
            Kind::Key(map, key, default) => self.key_form(map, key, default.as_deref(), span),
            Kind::Name(_) => Known::types(Types::OTHER),
            Kind::Def(..) | Kind::DefOnce(..) => self.definition(node),
            Kind::For(clauses, body, collects) => self.comprehension(clauses, body, *collects),
            Kind::Times(..)
            | Kind::While(..)
            | Kind::Try(..)
            | Kind::Finally(..)
            | Kind::Throw(_)
            | Kind::Fail(_)
            | Kind::Rethrow(_)
            | Kind::Return(_) => self.effect(node),
        }
    }

    fn data(&mut self, global: u32, span: Span) -> Known<'p> {
        /// The steps that the search for another name takes at most.
        const SEARCH: u32 = 100;
        let Some(name) = self.data_name(global) else { return Known::unknown() };
        let id: Arc<str> = format!("data/{name}").into();
        if let Some(shape) = self.facts.data(name) {
            self.find_name(id);
            return Known { exact: Some(self.pass), ..Known::of(shape) };
        }
        if !self.missing_data.contains_key(&global) && !self.spend(SEARCH) {
            return Known::unknown();
        }
        let facts = self.facts;
        let missing = self.missing_data.entry(global).or_insert_with(|| facts.missing_data(name)).clone();
        let Some(missing) = missing else { return Known::unknown() };
        let message = match &missing.meant {
            Some(meant) => format!("{id} is not given, so it is nil; data/{meant} is"),
            None => format!("{id} is not given, so it is nil: {}", missing.hint),
        };
        let repair = missing.meant.as_ref().map(|meant| format!("write data/{meant}"));
        self.wrong(&id, Finding { kind: FindingKind::UnknownData, span, message, repair, fails: false });
        let meant = missing.meant.map(|meant| format!("data/{meant}").into());
        Known { missed: Some(Rc::new(Missed { span, name: id, meant, is_no_map: false })), ..Known::unknown() }
    }

    /// Notes that data is not wrong where other data is in its place, wherever it is read.
    pub(super) fn excuse_data(&mut self, name: &Arc<str>) {
        if name.starts_with("data/") {
            self.excused_data.insert(name.clone());
        }
    }

    fn definition(&mut self, node: &'p Node) -> Known<'p> {
        let (Kind::Def(global, value) | Kind::DefOnce(global, value)) = &node.kind else { return Known::unknown() };
        let value = self.visit(value);
        let is_sure = self.conditional == 0 && self.active.is_empty() && matches!(node.kind, Kind::Def(..));
        if !is_sure || self.has_others || self.globals.contains_key(global) {
            self.volatile.borrow_mut().insert(*global);
        }
        let is_volatile = self.volatile.borrow().contains(global);
        let value = match is_volatile {
            true => {
                self.escape(&value);
                Known::unknown()
            }
            false => value,
        };
        self.globals.insert(*global, value);
        Known::types(Types::OTHER)
    }

    /// Notes that the program has a function of an earlier one: it may define again what this one defines.
    fn define_anything(&mut self) {
        self.has_others = true;
        let globals: Vec<u32> = self.globals.keys().copied().collect();
        self.spend_on(globals.len());
        self.volatile.borrow_mut().extend(globals);
    }

    /// Repetitions, errors and early ends.
    fn effect(&mut self, node: &'p Node) -> Known<'p> {
        let value = self.effect_of(node);
        self.may_stop |= !matches!(node.kind, Kind::Times(..) | Kind::While(..) | Kind::Finally(..));
        value
    }

    fn effect_of(&mut self, node: &'p Node) -> Known<'p> {
        match &node.kind {
            Kind::Times(var, count, body) => {
                self.visit(count);
                self.set(*var, Known::types(Types::INT));
                self.repeated(body);
                Known::types(Types::NIL)
            }
            Kind::While(test, body) => {
                self.visit(test);
                self.repeated(body);
                Known::types(Types::NIL)
            }
            Kind::Try(body, var, handler) => {
                self.guarded += 1;
                let value = self.visit_perhaps(body);
                self.guarded -= 1;
                self.set(*var, Known::unknown());
                let handled = self.visit_perhaps(handler);
                self.join(value, handled)
            }
            Kind::Finally(body, last) => {
                let value = self.visit(body);
                self.visit(last);
                value
            }
            Kind::Throw(value) | Kind::Fail(value) => {
                let value = self.visit(value);
                self.escape(&value);
                Known::never()
            }
            Kind::Rethrow(_) => Known::never(),
            Kind::Return(value) => {
                let value = self.visit(value);
                if let Some(before) = self.returns.pop() {
                    let joined = self.join(before, value);
                    self.returns.push(joined);
                }
                Known::never()
            }
            _ => Known::unknown(),
        }
    }

    /// Walks code that runs any number of times: definitions in it may be there already when it starts.
    fn repeated(&mut self, body: &'p Node) {
        self.visit_perhaps(body);
    }

    pub(super) fn binds(&mut self, binds: &'p [Bind]) {
        for bind in binds {
            let value = self.visit(&bind.init);
            if let Some(var) = bind.var {
                self.set(var, value);
            }
        }
    }

    fn collection(&mut self, node: &'p Node) -> Known<'p> {
        let (Kind::Vector(nodes) | Kind::Map(nodes) | Kind::Set(nodes)) = &node.kind else { return Known::unknown() };
        let values = self.visit_all(nodes);
        self.escape_all(&values);
        let shapes = values.into_iter().map(|value| value.shape);
        Known::of(match node.kind {
            Kind::Vector(_) => Shape::tuple(shapes.collect()),
            Kind::Set(_) => Shape::set(joined(&shapes.collect::<Vec<_>>())),
            _ => {
                let mut shapes = shapes;
                let entries = nodes.chunks_exact(2).filter_map(|pair| {
                    let name = match &pair[0].kind {
                        Kind::Const(key) => name_of(key),
                        _ => None,
                    };
                    Some((name, shapes.next()?, shapes.next()?))
                });
                Shape::of_entries(entries)
            }
        })
    }

    fn looped(&mut self, variables: &'p [(Var, Node)], body: &'p Node) -> Known<'p> {
        let mut values = Vec::with_capacity(variables.len());
        for (var, init) in variables {
            let value = self.visit(init);
            self.set(*var, value.clone());
            values.push(value);
        }
        let vars: Vec<Var> = variables.iter().map(|(var, _)| *var).collect();
        self.rounds(&vars, values, |checker| checker.visit(body))
    }

    /// Walks a body that starts again with other values, until its variables have shapes that hold for all rounds.
    pub(super) fn rounds(
        &mut self,
        vars: &[Var],
        mut values: Vec<Known<'p>>,
        mut body: impl FnMut(&mut Self) -> Known<'p>,
    ) -> Known<'p> {
        self.conditional += 1;
        self.silent += 1;
        for round in 0..ROUNDS {
            let next = self.round(vars, &values, &mut body).0;
            if next.is_empty() || self.is_over {
                break;
            }
            let mut is_same = true;
            for (value, next) in values.iter_mut().zip(next) {
                let joined = self.join(value.clone(), next);
                let is_same_function = match (&joined.function, &value.function) {
                    (Some(joined), Some(value)) => Rc::ptr_eq(joined, value),
                    (joined, value) => joined.is_none() && value.is_none(),
                };
                if joined.shape != value.shape || !is_same_function {
                    is_same = false;
                    // What has not settled by now may be anything.
                    *value = if round + 1 == ROUNDS { Known::unknown() } else { joined };
                } else {
                    *value = Known { constant: None, truth: None, ..joined };
                }
            }
            if is_same {
                break;
            }
        }
        self.silent -= 1;
        let (next, value) = self.round(vars, &values, &mut body);
        self.conditional -= 1;
        for next in next {
            self.escape(&next);
        }
        value
    }

    /// Walks the body once. Returns the values of `recur`, if there is one that is reached, and the result.
    fn round(
        &mut self,
        vars: &[Var],
        values: &[Known<'p>],
        body: &mut impl FnMut(&mut Self) -> Known<'p>,
    ) -> (Vec<Known<'p>>, Known<'p>) {
        for (var, value) in vars.iter().zip(values) {
            self.set(*var, value.clone());
        }
        self.recurs.push(Vec::new());
        let value = self.pass(false, body);
        (self.recurs.pop().unwrap_or_default(), value)
    }

    fn recur(&mut self, nodes: &'p [Node]) -> Known<'p> {
        let values = self.visit_all(nodes);
        if let Some(before) = self.recurs.pop() {
            let joined = match before.is_empty() {
                true => values,
                false => before.into_iter().zip(values).map(|(a, b)| self.join(a, b)).collect(),
            };
            self.recurs.push(joined);
        }
        Known::never()
    }

    fn comprehension(&mut self, clauses: &'p [Clause], body: &'p Node, collects: bool) -> Known<'p> {
        let is_plain = |clause: &Clause| matches!(clause, Clause::Let(_));
        self.conditional += 1;
        let (value, is_exact) = match clauses {
            [Clause::Each(var, node, binds), lets @ ..] if lets.iter().all(is_plain) => {
                let list = self.visit(node);
                let is_exact = self.is_exact_list(&list);
                let is_empty = usize::from(list.shape.element().is_never());
                self.silent += is_empty;
                let value = self.pass(is_exact, |checker| {
                    checker.each(*var, &list, is_exact.then_some(checker.pass), binds);
                    let value = checker.clauses(lets, body);
                    (value.exact == Some(checker.pass), value)
                });
                self.silent -= is_empty;
                (value.1, is_exact && value.0)
            }
            _ => (self.pass(false, |checker| checker.clauses(clauses, body)), false),
        };
        self.conditional -= 1;
        match collects {
            true => {
                self.escape(&value);
                Known { exact: is_exact.then_some(self.pass), ..Known::of(Shape::list(value.shape)) }
            }
            false => Known::types(Types::NIL),
        }
    }

    /// Binds a variable to the elements of a list.
    fn each(&mut self, var: Var, list: &Known<'p>, exact: Option<Pass>, binds: &'p [Bind]) {
        self.escape(list);
        self.set(var, Known { exact, ..Known::of(list.shape.element()) });
        self.binds(binds);
    }

    /// Walks clauses of `for`, and its body.
    fn clauses(&mut self, clauses: &'p [Clause], body: &'p Node) -> Known<'p> {
        for clause in clauses {
            match clause {
                Clause::Each(var, node, binds) => {
                    let list = self.visit(node);
                    self.each(*var, &list, None, binds);
                }
                Clause::Let(binds) => self.binds(binds),
                Clause::When(test) | Clause::While(test) => {
                    self.visit(test);
                }
            }
        }
        self.visit(body)
    }

    fn prim(&mut self, prim: Prim, nodes: &'p [Node]) -> Known<'p> {
        let mut arguments = self.visit_all(nodes);
        if prim == Prim::SelfFn {
            return self.running();
        }
        let Some(value) = arguments.pop() else { return Known::unknown() };
        if value.shape.is_never() {
            return value;
        }
        match prim {
            Prim::SeqArg(_) | Prim::MapArg => value,
            // Of an empty list it is nil.
            Prim::Seq if value.shape.has_each(0) => value,
            Prim::Seq => {
                let element = value.shape.element();
                Known::of(if element.is_never() { Shape::of(Types::NIL) } else { Shape::list(element).or_nil() })
            }
            Prim::Nth(at) => {
                let is_exact = value.shape.has_each(at.into());
                Known { exact: value.exact.filter(|_| is_exact), ..Known::of(value.shape.nth(at.into())) }
            }
            Prim::Rest(count) => Known::of(value.shape.rest(count.into())),
            Prim::IsNil => {
                let types = value.shape.types;
                let truth = match (types == Types::NIL, types.may_be(Types::NIL)) {
                    (true, _) => Some(true),
                    (_, false) if !value.shape.is_never() => Some(false),
                    _ => None,
                };
                self.excuse_no_map(&value);
                Known { missed: value.missed, ..Known::test(truth) }
            }
            Prim::IsCaught(_) | Prim::IsInstance(_) => Known::test(None),
            Prim::KeywordArgs | Prim::SelfFn | Prim::Sibling(..) => {
                self.escape(&value);
                Known::unknown()
            }
        }
    }
}

/// Returns the place where something is read. Of a very long name the beginning is enough.
fn place(span: Span, what: &str) -> PlaceId {
    const LONG: usize = 400;
    let what = if what.len() > LONG { cut(what).into_owned() } else { what.to_owned() };
    (span.start, span.end, what)
}
