//! Grants: data, definitions and history that a host gives its runs. They are frozen, measured, and shared by many
//! runs.

use crate::check::Shape;
use crate::heap::{Frozen, Heap, Res, Value};
use std::sync::OnceLock;

/// Named values that never change: imported once, and read by any number of runs without copying.
#[derive(Debug)]
pub struct Grant {
    names: Vec<Box<str>>,
    /// The indices of the entries, in the order of their names; equal names in the order of their entries.
    by_name: Box<[u32]>,
    frozen: Frozen,
    /// The shapes of the values, each made when it is first needed.
    shapes: Box<[OnceLock<Shape>]>,
}

/// A grant under construction.
pub struct GrantBuilder<'b, 'h> {
    names: &'b mut Vec<Box<str>>,
    values: &'b mut Vec<Value<'h>>,
    history: Vec<Value<'h>>,
}

impl<'h> GrantBuilder<'_, 'h> {
    /// Adds the value of `data/name`.
    pub fn data(&mut self, name: &str, value: Value<'h>) {
        self.add(format!("data/{name}"), value);
    }

    /// Adds a definition of an earlier turn.
    pub fn define(&mut self, name: &str, value: Value<'h>) {
        self.add(name.to_owned(), value);
    }

    /// Adds a result of an earlier turn, oldest first: the last is `*1`.
    pub fn history(&mut self, value: Value<'h>) {
        self.history.push(value);
    }

    fn add(&mut self, name: String, value: Value<'h>) {
        self.names.push(name.into());
        self.values.push(value);
    }
}

impl Grant {
    /// Builds a grant in an arena of at most `limit` bytes.
    ///
    /// # Errors
    /// Returns the errors of `build`, and [`crate::heap::Fault::Collect`] if the values do not fit.
    pub fn build(
        limit: usize,
        build: impl for<'h> FnOnce(&'h Heap, &mut GrantBuilder<'_, 'h>) -> Res<()>,
    ) -> Res<Grant> {
        let mut names = Vec::new();
        let frozen = Frozen::build(limit, |h, values| {
            let mut builder = GrantBuilder { names: &mut names, values, history: Vec::new() };
            build(h, &mut builder)?;
            let history = std::mem::take(&mut builder.history);
            for (i, value) in history.into_iter().rev().take(3).enumerate() {
                builder.add(format!("*{}", i + 1), value);
            }
            Ok(())
        })?;
        // The names of one JSON object are sorted already, so this takes linear time.
        let mut by_name: Box<[u32]> = (0u32..).take(names.len()).collect();
        by_name.sort_by(|&a, &b| names[a as usize].cmp(&names[b as usize]));
        let shapes = names.iter().map(|_| OnceLock::new()).collect();
        Ok(Grant { names, by_name, frozen, shapes })
    }

    /// Returns names and values: `data/x` for data, `*1` for history, plain names for definitions.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.names.iter().map(|n| &**n).zip(self.frozen.values().iter().copied())
    }

    /// Returns the shape of the value with this name. It is kept.
    pub(super) fn shape(&self, name: &str) -> Option<Shape> {
        let place = self.place(name)?;
        let value = self.value(place)?;
        Some(self.shapes.get(place)?.get_or_init(|| Shape::of_value(value)).clone())
    }

    /// Returns the names of the data, without their prefix.
    pub fn data_names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter_map(|name| name.strip_prefix("data/"))
    }

    /// Returns true if there is data of this name, given without its prefix.
    pub fn has_data(&self, name: &str) -> bool {
        self.get(&format!("data/{name}")).is_some()
    }

    /// Returns the value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<Value<'_>> {
        self.value(self.place(name)?)
    }

    fn place(&self, name: &str) -> Option<usize> {
        let found = self.by_name.partition_point(|&place| &*self.names[place as usize] < name);
        let place = *self.by_name.get(found)? as usize;
        (&*self.names[place] == name).then_some(place)
    }

    /// Returns the value at an index.
    pub(crate) fn value(&self, place: usize) -> Option<Value<'_>> {
        self.frozen.values().get(place).copied()
    }

    /// Returns the memory of the values and their names, in bytes.
    pub fn bytes(&self) -> usize {
        self.frozen.bytes() + self.names.iter().map(|n| n.len() + 20).sum::<usize>()
    }
}
