//! Imports the host's input before the program starts.

use super::input::{DataSet, Input, Source};
use crate::drive::setting::Setting;
use crate::terms::deadline::expired;
use crate::terms::keys::Keys;
use crate::terms::limits::bytes;
use crate::terms::outcome::{Phase, Problem};
use crate::text::convert;
use lisp_core::heap::{Fault, Heap, Value};
use lisp_core::syntax::is_name_part;
use lisp_core::vm::{Grant, GrantBuilder};
use lisp_core::{Error, Reason};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Imports the input of one run into a frozen arena (the *grant*). Returns `None` if there is nothing to import.
fn import_sources(
    limit: usize,
    input: &Input<'_>,
    until: Option<Instant>,
    setting: &Setting,
) -> Result<Option<Grant>, Fault> {
    /// The usual work of an import, in units of fuel; with more, the clock is checked.
    const USUAL: u64 = 2_000_000;
    let sources = &input.sources;
    if let Some(name) = GivenNames::twice(&input.sets) {
        return Err(bad_input(&format!("data/{name}"), "two data sets have it; give each name once"));
    }
    if sources.is_empty() {
        return Ok(None);
    }
    let given = GivenNames::new(&input.sets, sources);
    let build = |fuel: u64, flag: Option<Arc<AtomicBool>>| {
        Grant::build(limit, |h, builder| {
            h.set_host_fuel(fuel, flag);
            let built = sources.iter().enumerate().try_for_each(|(index, source)| {
                given.begin(index);
                import_source(h, builder, source, &given, setting.keys).map_err(|fault| match fault {
                    Fault::Error(error) => error.detail("input", index).into(),
                    other => other,
                })
            });
            h.set_host_fuel(u64::MAX, None);
            built
        })
    };
    match build(USUAL, None) {
        Err(Fault::Pause(_)) => build(USUAL, Some(setting.flag(until, &setting.cancel))).map(Some),
        built => built.map(Some),
    }
}

/// Imports the whole input of a run whose programs take `code` bytes. Returns it with its total size in bytes.
pub(crate) fn granted(
    setting: &Setting,
    input: &Input<'_>,
    code: usize,
    until: Option<Instant>,
) -> Result<(Vec<Arc<Grant>>, usize), Error> {
    let ceiling = bytes(setting.limits.setup_heap_bytes);
    let shared: usize = input.sets.iter().map(|set| set.bytes()).sum();
    let used = code.saturating_add(shared);
    if code > ceiling {
        return Err(code_exceeded(code, ceiling));
    }
    let grant = import_sources(ceiling.saturating_sub(used), input, until, setting).map_err(|fault| {
        let expired = || expired(&setting.limits, Some(&setting.cancel), until);
        let late = matches!(fault, Fault::Pause(_)).then(expired).flatten();
        late.unwrap_or_else(|| in_setup(fault, ceiling))
    })?;
    let baseline = used.saturating_add(grant.as_ref().map_or(0, |grant| grant.bytes()));
    if baseline > ceiling {
        return Err(setup_exceeded(ceiling));
    }
    let mut grants: Vec<Arc<Grant>> = input.sets.iter().map(|set| set.grant.clone()).collect();
    grants.extend(grant.map(Arc::new));
    Ok((grants, baseline))
}

pub(crate) fn import_source<'h>(
    h: &'h Heap,
    builder: &mut GrantBuilder<'_, 'h>,
    source: &Source<'_>,
    given: &GivenNames<'_>,
    keys: Keys,
) -> Result<(), Fault> {
    let (what, text) = match source {
        Source::Data(name, text) => (format!("data/{name}"), text),
        Source::Typed(name, text) => (format!("data/{name}"), text),
        Source::DataObject(text) => ("the data".to_owned(), text),
        Source::Memory(text) => ("the memory".to_owned(), text),
        Source::History(text) => ("the history".to_owned(), text),
    };
    let text = text.as_ref().map_err(|reason| bad_input(&what, reason))?;
    let value = match source {
        Source::Data(..) => convert::read_json(h, text, keys),
        Source::Typed(..) => convert::read_typed(h, text, keys),
        Source::DataObject(_) | Source::Memory(_) | Source::History(_) => convert::read_several(h, text, keys),
    };
    let value = value.map_err(|fault| match fault {
        Fault::Error(error) if error.reason != Reason::MemoryExceeded => bad_input(&what, &error.message),
        fault => fault,
    })?;
    let wrong = |expected: &str| bad_input(&what, &format!("expected {expected}, got {}", json_kind(value)));
    match (source, value) {
        (Source::Data(name, _) | Source::Typed(name, _), value) => {
            take_name(given, name)?;
            builder.data(name, value);
        }
        (Source::DataObject(_), Value::Map(map)) => {
            for (key, value) in map.entries(h)?.iter() {
                let name = convert::key_text(key);
                take_name(given, name)?;
                builder.data(name, value);
            }
        }
        (Source::Memory(_), Value::Map(map)) => {
            for (key, value) in map.entries(h)?.iter() {
                builder.define(convert::key_text(key), value);
            }
        }
        (Source::History(_), Value::Vector(items)) => items.items().iter().for_each(|&item| builder.history(item)),
        (Source::DataObject(_) | Source::Memory(_), _) => return Err(wrong("an object")),
        (Source::History(_), _) => return Err(wrong("an array")),
    }
    Ok(())
}

/// Reserves a name for data.
fn take_name(given: &GivenNames<'_>, name: &str) -> Result<(), Fault> {
    let Err((why, before)) = given.take(name) else { return Ok(()) };
    match (bad_input(&format!("data/{name}"), &why), before) {
        (Fault::Error(error), Some(before)) => Err(error.detail("earlier_input", before).into()),
        (fault, _) => Err(fault),
    }
}

/// Returns the JSON kind of a value.
fn json_kind(value: Value<'_>) -> &'static str {
    match value {
        Value::Map(_) => "an object",
        Value::Vector(_) => "an array",
        Value::Str(_) => "a string",
        Value::Nil => "null",
        Value::Bool(_) => "a boolean",
        _ => "a number",
    }
}

fn bad_input(what: &str, reason: &str) -> Fault {
    Error::new(Reason::ParseError, format!("cannot import {what}: {reason}")).into()
}

/// Converts a fault during set-up to an error.
pub(crate) fn in_setup(fault: Fault, ceiling: usize) -> Error {
    match fault {
        Fault::Error(error) => *error,
        _ => setup_exceeded(ceiling),
    }
}

/// Returns the error for a program whose constants and code alone are too large.
fn code_exceeded(code: usize, ceiling: usize) -> Error {
    let message =
        format!("the program takes {code} bytes compiled, with its constants; the limit setup_heap_bytes is {ceiling}");
    Error::new(Reason::MemoryExceeded, message)
        .hint("write a shorter program and give the data as data, or raise the limit setup_heap_bytes")
        .detail("limit_bytes", ceiling)
}

pub(crate) fn setup_exceeded(ceiling: usize) -> Error {
    let message =
        format!("the data and the program of the run take more than {ceiling} bytes, the limit setup_heap_bytes");
    Error::new(Reason::MemoryExceeded, message)
        .hint("give less data, or raise the limit setup_heap_bytes")
        .detail("limit_bytes", ceiling)
}

impl DataSet {
    /// Imports the values, in at most `ceiling` bytes, without keeping the text.
    pub(crate) fn import(source: &Source<'_>, keys: Keys, ceiling: usize) -> Result<Self, Box<Problem>> {
        let given = GivenNames::default();
        match Grant::build(ceiling, |h, builder| import_source(h, builder, source, &given, keys)) {
            Ok(grant) => Ok(DataSet { grant: Arc::new(grant), source: None, keys, digest: Arc::default() }),
            Err(fault) => Err(Box::new(Problem::new(in_setup(fault, ceiling), Phase::Setup))),
        }
    }
}

/// The names of data that were given: each may be given once.
#[derive(Debug, Default)]
pub(crate) struct GivenNames<'a> {
    sets: &'a [DataSet],
    /// The names so far, each with its source, if there are several sources.
    by_source: Option<RefCell<HashMap<String, usize>>>,
    /// The index of the current source.
    at: Cell<usize>,
}

impl<'a> GivenNames<'a> {
    pub(crate) fn new(sets: &'a [DataSet], sources: &[Source<'_>]) -> Self {
        let is_data =
            |source: &&Source<'_>| matches!(source, Source::Data(..) | Source::Typed(..) | Source::DataObject(_));
        let data = sources.iter().filter(is_data).count();
        GivenNames { sets, by_source: (data > 1).then(RefCell::default), at: Cell::default() }
    }

    /// Continues with the source of an index.
    pub(crate) fn begin(&self, at: usize) {
        if at == 0
            && let Some(names) = &self.by_source
        {
            names.borrow_mut().clear();
        }
        self.at.set(at);
    }

    /// Reserves a name.
    ///
    /// # Errors
    /// Why it may not be given, and the index of the source that gave it before.
    pub(crate) fn take(&self, name: &str) -> Result<(), (String, Option<usize>)> {
        if !is_name_part(name) {
            let why =
                "programs cannot write this name; bind the value to another name, or bind the whole object to one name";
            return Err((why.to_owned(), None));
        }
        if self.sets.iter().any(|set| set.grant.has_data(name)) {
            return Err(("a data set has it too; give each name once".to_owned(), None));
        }
        let Some(names) = &self.by_source else { return Ok(()) };
        match names.borrow_mut().insert(name.to_owned(), self.at.get()) {
            Some(before) => Err(("it is given twice; give each name once".to_owned(), Some(before))),
            None => Ok(()),
        }
    }

    /// Returns a name that two of the data sets give.
    pub(crate) fn twice(sets: &[DataSet]) -> Option<&str> {
        let pairs = sets.iter().enumerate().flat_map(|(i, one)| sets[i + 1..].iter().map(move |other| (one, other)));
        pairs.filter(|(one, other)| !one.is(other)).find_map(|(one, other)| {
            let count = |set: &DataSet| set.grant.data_names().count();
            let (less, more) = if count(one) < count(other) { (one, other) } else { (other, one) };
            less.grant.data_names().find(|name| more.grant.has_data(name))
        })
    }
}
