//! Definitions by name: of the program and of earlier turns, and data and history that the host grants.

use super::Grant;
use super::machine::Machine;
use crate::check::{Facts, Finding, MissingData, Shape, ToolShape, check, incomplete};
use crate::compile::{Forms, Program};
use crate::error::Span;
use crate::heap::{Heap, Value};
use crate::text::near_names;
use std::sync::Arc;

impl Machine {
    /// Copies definitions of earlier turns into the machine. Data and history are looked up when a program that uses
    /// them is loaded.
    pub(super) fn adopt_grants(&mut self) {
        for (i, grant) in self.grants.clone().iter().enumerate() {
            for (j, (name, _)) in grant.entries().enumerate() {
                if !name.contains('/') && !is_history(name) {
                    self.adopt(i, j, name);
                }
            }
        }
    }

    pub(super) fn place_of(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        if let Some(place) = self.free_places.pop() {
            self.names[place] = name.into();
            self.places.insert(name.into(), place);
            return place;
        }
        let place = self.names.len();
        self.names.push(name.into());
        self.places.insert(name.into(), place);
        self.store.enter(|_, state, _| state.globals.push(Value::Unset));
        place
    }

    /// Gives a definition the value of entry `entry` of grant `grant`.
    pub(super) fn adopt(&mut self, grant: usize, entry: usize, name: &str) {
        let place = self.place_of(name);
        self.store.enter(|_, state, keep| {
            if let Some(grant) = keep.get::<Grant>(grant)
                && let Some(value) = grant.value(entry)
            {
                state.globals[place] = value;
            }
        });
    }

    /// Gives a definition without a value the last granted value of this name.
    pub(super) fn link_granted(&mut self, name: &str, place: usize) {
        self.store.enter(|_, state, keep| {
            if !matches!(state.globals[place], Value::Unset) {
                return;
            }
            let mut i = 0;
            while let Some(grant) = keep.get::<Grant>(i) {
                if let Some(value) = grant.get(name) {
                    state.globals[place] = value;
                }
                i += 1;
            }
        });
    }

    /// Passes the definitions to `look`, in the order in which they were first named.
    pub fn with_definitions<T>(&mut self, look: impl for<'h> FnOnce(&'h Heap, &[(&str, Value<'h>)]) -> T) -> T {
        let names = &self.names;
        self.store.enter(|h, state, _| {
            let defined: Vec<(&str, Value<'_>)> = names
                .iter()
                .map(|n| &**n)
                .zip(state.globals.iter().copied())
                .filter(|(name, value)| {
                    !matches!(value, Value::Unset) && !name.starts_with("data/") && !is_history(name)
                })
                .collect();
            look(h, &defined)
        })
    }

    /// Sets what `*1`, `*2` and `*3` are in the next program: the result becomes `*1`.
    pub fn push_history(&mut self) {
        let places = ["*1", "*2", "*3"].map(|name| (name, self.place_of(name)));
        for (name, place) in places {
            self.link_granted(name, place);
        }
        let places = places.map(|(_, place)| place);
        self.store.enter(|_, state, _| {
            state.globals[places[2]] = state.globals[places[1]];
            state.globals[places[1]] = state.globals[places[0]];
            state.globals[places[0]] = state.result;
        });
    }

    /// Checks the program that was last loaded with this number, against the data of the machine and tools whose shapes are
    /// passed. `forms` are its core forms; without them it is analyzed again. The check is not finished once `stop` returns true.
    pub fn check(
        &self,
        number: u64,
        forms: Option<(&Program, &Forms)>,
        tools: &dyn Fn(&str) -> Option<ToolShape>,
        stop: &dyn Fn() -> bool,
    ) -> Vec<Finding> {
        struct Here<'a>(&'a [Arc<Grant>], &'a dyn Fn(&str) -> Option<ToolShape>);
        impl Facts for Here<'_> {
            fn data(&self, name: &str) -> Option<Shape> {
                let name = format!("data/{name}");
                self.0.iter().rev().find_map(|grant| grant.shape(&name))
            }
            fn missing_data(&self, name: &str) -> Option<MissingData> {
                let names: Vec<&str> = self.0.iter().flat_map(|grant| grant.data_names()).collect();
                let meant = crate::check::similar(&names, name).map(str::to_owned);
                (!names.contains(&name)).then(|| MissingData { meant, hint: data_hint(name, &names) })
            }
            fn tool(&self, name: &str) -> Option<ToolShape> {
                self.1(name)
            }
        }
        let Some(program) = self.program(number) else { return Vec::new() };
        let facts = Here(&self.grants, tools);
        match forms {
            // One that was compiled again for the names of earlier definitions has other forms.
            Some((of, forms)) if std::ptr::eq(of, &raw const *program) => check(&program, forms, &facts, stop),
            _ => match program.forms(stop) {
                Some(forms) => check(&program, &forms, &facts, stop),
                None => vec![incomplete(Span::default())],
            },
        }
    }

    /// Returns true if the host gives any data.
    pub fn has_data(&self) -> bool {
        self.grants.iter().any(|grant| grant.data_names().next().is_some())
    }

    /// Returns a hint for an error that missing data may have caused, because missing data is nil: the first `data/`
    /// name of the program that is not granted.
    pub fn hint_of_missing_data(&mut self, program: &Program) -> Option<String> {
        let missing = program.data_names().find(|key| {
            let place = self.places.get(format!("data/{key}").as_str()).copied();
            place.is_some_and(|place| self.at_rest(|state| state.is_undefined(place)))
        })?;
        let names: Vec<&str> = self.grants.iter().flat_map(|grant| grant.data_names()).collect();
        Some(format!("data/{missing} is not given, so it is nil: {}", data_hint(missing, &names)))
    }
}

/// Returns true for the names of the results of earlier turns.
pub(super) fn is_history(name: &str) -> bool {
    matches!(name, "*1" | "*2" | "*3")
}

/// Returns a hint with names of granted data that are similar to a name that is not granted.
pub(super) fn data_hint(name: &str, names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let listed = |names: &[&str]| names.iter().map(|name| format!("data/{name}")).collect::<Vec<_>>().join(", ");
    let near = near_names(name, names.iter().copied(), SHOWN);
    match (names.len(), near.len()) {
        (0, _) => "the host gives no data here".to_owned(),
        (_, 1..) => format!("did you mean {}?", listed(&near)),
        (count, 0) if count <= SHOWN => format!("available: {}", listed(names)),
        (count, 0) => format!("none of the {count} names of the data is similar; the first is {}", listed(&names[..1])),
    }
}
