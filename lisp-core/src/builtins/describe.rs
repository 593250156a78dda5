//! `describe`: the shape of data, as a map of limited size for data of any size.

use super::numbers::charge_comparison;
use super::preview::{CHARS, preview};
use super::{Builtin, java};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Heap, Map, MapBuilder, Res, TimeValue, Value, compare_numbers};
use crate::json::push;
use crate::text::characters;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const TABLE: &[Builtin] = &[Builtin::direct("describe", 1, 2, "(describe x), (describe x opts)", describe)
    .doc(
        "Returns the shape of a value: types, counts, keys with examples and ranges. Options: :sample 1 to 3 examples, \
         :paths true for nested keys, :depth 1 to 5 for how deep.",
        &[
            ("(:item_types (describe [1 2 \"x\"]))", "{\"integer\" 2 \"string\" 1}"),
            ("(describe [1 2])", "{:count 2 :item_types {\"integer\" 2} :scanned 2 :type \"vector\"}"),
            ("(describe 1 2 3)", "!arity_error"),
        ],
    )];

/// The maximum number of elements examined.
const ITEMS: usize = 1_000;
/// The maximum number of keys of one map, and of the maps of a vector together.
const KEYS: usize = 100;
/// The maximum number of paths, and of values on them.
const PATHS: usize = 300;
const PATH_VALUES: usize = 10_000;
/// The maximum depth of a path, and number of nested vectors on it.
const DEPTH: usize = 5;
const EXAMPLES: usize = 3;
/// The maximum number of distinct values counted.
const DISTINCT: usize = 50;
/// The maximum length of a string that may count as a number.
const NUMERIC: usize = 64;

struct Options {
    depth: usize,
    sample: usize,
    paths: bool,
}

impl Options {
    fn read<'h>(h: &'h Heap, options: Option<&Value<'h>>) -> Res<Options> {
        let mut found = Options { depth: 1, sample: EXAMPLES, paths: false };
        let Some(Value::Map(map)) = options else { return Ok(found) };
        let option = |name| match map.get_text(h, name, true)? {
            Some(value) => Ok(Some(value)),
            None => map.get_text(h, name, false),
        };
        let bounded = |value, otherwise, max: usize| match value {
            Some(Value::Int(n)) => usize::try_from(n.max(1)).map_or(otherwise, |n| n.min(max)),
            Some(Value::Big(big)) => {
                if big.negative {
                    1
                } else {
                    max
                }
            }
            _ => otherwise,
        };
        found.depth = bounded(option("depth")?, 1, DEPTH);
        found.sample = bounded(option("sample")?, EXAMPLES, EXAMPLES);
        found.paths = option("paths")?.is_some_and(Value::truthy);
        Ok(found)
    }
}

/// A map under construction with keywords as keys.
struct Summary<'h> {
    h: &'h Heap,
    fields: &'h MapBuilder<'h>,
    caps: BTreeSet<&'static str>,
}

impl<'h> Summary<'h> {
    fn new(h: &'h Heap) -> Res<Self> {
        Ok(Summary { h, fields: h.map_builder(16)?, caps: BTreeSet::new() })
    }

    fn put(&mut self, name: &str, value: Value<'h>) -> Res<()> {
        self.fields.insert(self.h, self.h.keyword(name)?, value)?;
        Ok(())
    }

    fn count(&mut self, name: &str, count: usize) -> Res<()> {
        self.put(name, count_value(count))
    }

    fn finish(mut self) -> Res<Value<'h>> {
        if !self.caps.is_empty() {
            let caps = std::mem::take(&mut self.caps);
            let names = self.h.vec_builder(caps.len())?;
            for cap in caps {
                names.push(self.h, self.h.str(cap)?)?;
            }
            let names = names.finish(self.h)?;
            self.put("truncated", Value::Bool(true))?;
            self.put("caps_hit", names)?;
        }
        Ok(Value::Map(self.fields.finish(self.h)?))
    }
}

fn count_value<'h>(count: usize) -> Value<'h> {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn describe<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let options = Options::read(h, args.get(1))?;
    let value = args[0];
    let mut summary = match value {
        Value::Map(map) => describe_map(h, map, &options)?,
        Value::Vector(v) => describe_vector(h, v.items(), &options)?,
        Value::Set(set) => describe_set(h, set)?,
        other => {
            let mut summary = Summary::new(h)?;
            field(&mut summary, &[other], &options)?;
            summary.put("type", h.str(type_name(other))?)?;
            let sample = example(h, other)?;
            summary.put("sample", sample)?;
            summary
        }
    };
    if options.paths {
        let mut walk = Walk::new(h, options.depth);
        let roots = match value {
            Value::Vector(v) => walk.roots(v.items())?,
            other => {
                walk.collect(other, "", 0, 0)?;
                1
            }
        };
        let paths = walk.finish(roots, &options, &mut summary.caps)?;
        summary.put("paths", paths)?;
    }
    summary.finish()
}

fn describe_map<'h>(h: &'h Heap, map: &'h Map<'h>, options: &Options) -> Res<Summary<'h>> {
    let mut summary = Summary::new(h)?;
    let entries = sorted_entries(h, map, &mut summary.caps)?;
    let names = names(h, entries.iter().map(|e| (e.key, e.shown.as_str())))?;
    let keys = h.map_builder(entries.len())?;
    for (entry, name) in entries.iter().zip(&names) {
        let mut one = Summary::new(h)?;
        field(&mut one, &[entry.value], options)?;
        keys.insert(h, h.str(name)?, one.finish()?)?;
    }
    summary.put("type", h.str("map")?)?;
    summary.count("count", map.len())?;
    let types = histogram(h, entries.iter().map(|e| type_name(e.key)))?;
    summary.put("key_types", types)?;
    summary.put("keys", Value::Map(keys.finish(h)?))?;
    Ok(summary)
}

fn describe_vector<'h>(h: &'h Heap, all: &'h [Value<'h>], options: &Options) -> Res<Summary<'h>> {
    let mut summary = Summary::new(h)?;
    let items = &all[..all.len().min(ITEMS)];
    h.charge(items.len() as u64)?;
    summary.put("type", h.str("vector")?)?;
    summary.count("count", items.len())?;
    summary.count("scanned", items.len())?;
    let types = histogram(h, items.iter().map(|&item| type_name(item)))?;
    summary.put("item_types", types)?;
    if all.len() > ITEMS {
        summary.caps.insert("max_items");
        summary.put("count_capped", Value::Bool(true))?;
    }
    if items.iter().any(|item| matches!(item, Value::Map(_))) {
        describe_rows(items, options, &mut summary)?;
    }
    Ok(summary)
}

/// Describes the keys of the maps in a vector: in how many maps each one is, and its values.
fn describe_rows<'h>(items: &[Value<'h>], options: &Options, summary: &mut Summary<'h>) -> Res<()> {
    let h = summary.h;
    // Every distinct key, in the order of first appearance, with its values row by row.
    let seen = h.map_builder(16)?;
    let mut columns: Vec<Column<'h>> = Vec::new();
    let mut row = 0;
    for &item in items {
        let Value::Map(map) = item else { continue };
        row += 1;
        for entry in sorted_entries(h, map, &mut summary.caps)? {
            h.charge(cost::PLACED)?;
            let place = match seen.place(h, entry.key)? {
                Some(place) => place,
                None if seen.len() < KEYS => {
                    push(h, &mut columns, Column { key: entry.key, shown: entry.shown, cells: Vec::new() })?;
                    seen.insert(h, entry.key, Value::Nil)?
                }
                None => {
                    summary.caps.insert("max_keys");
                    continue;
                }
            };
            if let Some(column) = columns.get_mut(place) {
                push(h, &mut column.cells, (row, entry.value))?;
            }
        }
    }
    let cells = columns.iter().flat_map(|column| column.cells.iter().map(|_| type_name(column.key)));
    let types = histogram(h, cells)?;
    let names = names(h, columns.iter().map(|c| (c.key, c.shown.as_str())))?;
    let keys = h.map_builder(columns.len())?;
    for (column, name) in columns.iter().zip(&names) {
        // The last rows come first, so that the examples are from them.
        h.check_available(column.cells.len() * 16)?;
        let values: Vec<Value<'h>> = column.cells.iter().rev().map(|cell| cell.1).collect();
        let mut one = Summary::new(h)?;
        field(&mut one, &values, options)?;
        presence(&mut one, column.cells.len(), items.len())?;
        keys.insert(h, h.str(name)?, one.finish()?)?;
    }
    summary.put("key_types", types)?;
    summary.put("keys", Value::Map(keys.finish(h)?))
}

/// A key of the maps in a vector, and its values with the number of their row.
struct Column<'h> {
    key: Value<'h>,
    shown: String,
    cells: Vec<(usize, Value<'h>)>,
}

fn presence(summary: &mut Summary<'_>, present: usize, of: usize) -> Res<()> {
    summary.count("present", present)?;
    let percent = present as f64 / of.max(1) as f64 * 100.0;
    summary.put("pct", Value::Float((percent * 10.0).round() / 10.0))
}

fn describe_set<'h>(h: &'h Heap, set: &'h Map<'h>) -> Res<Summary<'h>> {
    let mut summary = Summary::new(h)?;
    let members = set.entries(h)?;
    let scanned = members.len().min(ITEMS);
    h.charge(scanned as u64)?;
    let types = histogram(h, members.iter().take(ITEMS).map(|member| type_name(member.0)))?;
    summary.put("type", h.str("set")?)?;
    summary.count("count", members.len())?;
    summary.count("scanned", scanned)?;
    summary.put("item_types", types)?;
    if members.len() > ITEMS {
        summary.caps.insert("max_items");
    }
    Ok(summary)
}

// ---- keys ----

/// An entry of a map with the text of its key.
struct Shown<'h> {
    shown: String,
    key: Value<'h>,
    value: Value<'h>,
}

/// Returns the first hundred entries in the order of the texts of their keys.
fn sorted_entries<'h>(h: &'h Heap, map: &'h Map<'h>, caps: &mut BTreeSet<&'static str>) -> Res<Vec<Shown<'h>>> {
    let entries = map.entries(h)?;
    h.charge(cost::described(entries.len()))?;
    h.check_available(entries.len().min(KEYS + 1).saturating_mul(std::mem::size_of::<Shown<'_>>() + CHARS))?;
    let mut first: Vec<Shown<'h>> = Vec::with_capacity(entries.len().min(KEYS + 1));
    for (key, value) in entries.iter() {
        let shown = show_key(h, key)?;
        let sort_key = |e: &Shown<'h>| (e.shown.as_str(), type_name(e.key)) <= (shown.as_str(), type_name(key));
        let at = if first.last().is_none_or(sort_key) { first.len() } else { first.partition_point(sort_key) };
        if at < KEYS {
            first.insert(at, Shown { shown, key, value });
            first.truncate(KEYS);
        }
    }
    if entries.len() > KEYS {
        caps.insert("max_keys");
    }
    Ok(first)
}

fn show_key<'h>(h: &'h Heap, key: Value<'h>) -> Res<String> {
    match key {
        Value::Str(s) => short(h, s.text()),
        other => preview(h, other),
    }
}

/// Returns the text, or its beginning and length.
fn short(h: &Heap, text: &str) -> Res<String> {
    h.charge(cost::copied(text.len()) + 1)?;
    if text.len() <= CHARS {
        return Ok(text.to_owned());
    }
    h.charge(text.len() as u64)?;
    let count = characters::count(h, text)?;
    if count <= CHARS {
        h.check_available(text.len())?;
        return Ok(text.to_owned());
    }
    let start = characters::first(h, text, CHARS)?;
    h.check_available(start.len())?;
    Ok(format!("{start}...({count} chars)"))
}

/// Returns the names of distinct keys: their texts. If two look the same the type precedes them, and if the types are
/// the same too, a hash follows.
fn names<'k, 'h: 'k>(h: &'h Heap, keys: impl Iterator<Item = (Value<'h>, &'k str)>) -> Res<Vec<String>> {
    let keys: Vec<(Value<'h>, &str)> = keys.collect();
    h.charge(cost::described(keys.len()))?;
    h.check_available(keys.len() * (CHARS + 64))?;
    let mut alike: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
    for &(key, shown) in &keys {
        alike.entry(shown).or_default().push(type_name(key));
    }
    let mut names = Vec::with_capacity(keys.len());
    for (key, shown) in keys {
        let (types, kind) = (alike.get(shown).map_or(&[][..], Vec::as_slice), type_name(key));
        names.push(match types.iter().filter(|&&other| other == kind).count() {
            _ if types.len() <= 1 => shown.to_owned(),
            1 => format!("{kind}:{shown}"),
            _ => format!("{kind}:{shown}#{:08x}", h.hash(key)?),
        });
    }
    Ok(names)
}

// ---- fields ----

/// Returns how often each name occurs.
fn histogram<'h>(h: &'h Heap, types: impl Iterator<Item = &'static str>) -> Res<Value<'h>> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for name in types {
        *counts.entry(name).or_default() += 1;
    }
    let map = h.map_builder(counts.len())?;
    for (name, count) in counts {
        map.insert(h, h.str(name)?, count_value(count))?;
    }
    Ok(Value::Map(map.finish(h)?))
}

/// Describes the values at one key.
fn field<'h>(summary: &mut Summary<'h>, values: &[Value<'h>], options: &Options) -> Res<()> {
    let h = summary.h;
    h.charge(cost::placed(values.len()))?;
    let types = histogram(h, values.iter().map(|&value| type_name(value)))?;
    summary.put("types", types)?;
    let examples = examples(h, values, options.sample)?;
    summary.put("examples", examples)?;
    let sized = values.iter().filter_map(|&value| is_empty(value));
    if let (some, Some(_)) = (sized.clone().filter(|empty| !empty).count(), sized.clone().next()) {
        summary.count("non_empty", some)?;
    }
    range(summary, values)?;
    distinct(summary, values)
}

/// Returns whether a value is empty; `None` for values that cannot be.
fn is_empty(value: Value<'_>) -> Option<bool> {
    match value {
        Value::Str(s) => Some(s.text().is_empty()),
        Value::Vector(v) => Some(v.is_empty()),
        Value::Map(m) | Value::Set(m) => Some(m.is_empty()),
        _ => None,
    }
}

fn examples<'h>(h: &'h Heap, values: &[Value<'h>], max: usize) -> Res<Value<'h>> {
    let found = h.vec_builder(max)?;
    let mut looks: Vec<String> = Vec::with_capacity(max);
    for &value in values {
        if looks.len() >= max {
            break;
        }
        if !looks.contains(&preview(h, value)?) {
            let example = example(h, value)?;
            found.push(h, example)?;
            looks.push(preview(h, example)?);
        }
    }
    found.finish(h)
}

/// Returns scalars unchanged, long strings cut, everything else as its preview.
fn example<'h>(h: &'h Heap, value: Value<'h>) -> Res<Value<'h>> {
    match value {
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) | Value::Keyword(..) => Ok(value),
        Value::Str(s) if s.text().len() <= CHARS => Ok(value),
        Value::Str(s) => h.str(&short(h, s.text())?),
        other => h.str(&preview(h, other)?),
    }
}

/// Returns a number, or the number that a whole string represents.
fn measure<'h>(value: Value<'h>) -> Option<Value<'h>> {
    match value {
        Value::Int(_) | Value::Big(_) => Some(value),
        Value::Float(f) if f.is_finite() => Some(value),
        Value::Str(s) if s.text().len() <= NUMERIC => {
            let unsigned = s.text().strip_prefix(['+', '-']).unwrap_or(s.text());
            let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if !digits(whole) || !digits(fraction) || !digits(exponent) {
                return None;
            }
            s.text().parse::<f64>().ok().filter(|f| f.is_finite()).map(Value::Float)
        }
        _ => None,
    }
}

fn range<'h>(summary: &mut Summary<'h>, values: &[Value<'h>]) -> Res<()> {
    let mut ends: Option<(Value<'h>, Value<'h>)> = None;
    for number in values.iter().filter_map(|&value| measure(value)) {
        let (least, max) = ends.unwrap_or((number, number));
        charge_comparison(summary.h, number, least)?;
        charge_comparison(summary.h, number, max)?;
        let below = compare_numbers(number, least) == Some(Ordering::Less);
        let above = compare_numbers(number, max) == Some(Ordering::Greater);
        ends = Some((if below { number } else { least }, if above { number } else { max }));
    }
    let Some((least, max)) = ends else { return Ok(()) };
    let mut range = Summary::new(summary.h)?;
    range.put("min", least)?;
    range.put("max", max)?;
    let range = range.finish()?;
    summary.put("range", range)
}

/// Counts the distinct scalars, up to a limit.
fn distinct<'h>(summary: &mut Summary<'h>, values: &[Value<'h>]) -> Res<()> {
    let scalar = |value: &&Value<'h>| match value {
        Value::Float(f) => f.is_finite(),
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Str(_) | Value::Keyword(..) => true,
        _ => false,
    };
    let mut scalars = values.iter().filter(scalar).peekable();
    if scalars.peek().is_none() {
        return Ok(());
    }
    let mut looks = BTreeSet::new();
    for &value in scalars {
        let look = preview(summary.h, value)?;
        if looks.len() >= DISTINCT && !looks.contains(&look) {
            summary.put("distinct_capped", Value::Bool(true))?;
            break;
        }
        looks.insert(look);
    }
    summary.count("distinct_count", looks.len())
}

fn type_name(value: Value<'_>) -> &'static str {
    match value {
        Value::Float(f) if f.is_nan() => "nan",
        Value::Float(f) if f.is_infinite() => "infinity",
        Value::Time(t) => match t.value {
            TimeValue::LocalDate(_) => java::LOCAL_DATE,
            TimeValue::Instant(..) => java::INSTANT,
            TimeValue::LocalDateTime(..) => java::LOCAL_DATE_TIME,
            TimeValue::Duration(..) => java::DURATION,
            TimeValue::Date(_) => java::DATE,
        },
        Value::Regex(_) | Value::Symbol(_) | Value::Var(_) => "unknown",
        other => other.type_name(),
    }
}

// ---- paths ----

/// The values at every path of keys, found by a walk of limited depth.
struct Walk<'h> {
    h: &'h Heap,
    depth: usize,
    root: usize,
    /// Values with the number of their root.
    found: BTreeMap<String, Vec<(usize, Value<'h>)>>,
    values: usize,
    caps: BTreeSet<&'static str>,
}

impl<'h> Walk<'h> {
    fn new(h: &'h Heap, depth: usize) -> Self {
        Walk { h, depth, root: 0, found: BTreeMap::new(), values: 0, caps: BTreeSet::new() }
    }

    /// Walks the elements of a vector; returns their number.
    fn roots(&mut self, items: &'h [Value<'h>]) -> Res<usize> {
        let items = self.first(items);
        for (i, &item) in items.iter().enumerate() {
            self.root = i;
            self.collect(item, "", 0, 0)?;
        }
        Ok(items.len())
    }

    fn first(&mut self, items: &'h [Value<'h>]) -> &'h [Value<'h>] {
        if items.len() > ITEMS {
            self.caps.insert("max_items");
        }
        &items[..items.len().min(ITEMS)]
    }

    /// Recursion is bounded by the depth of paths and the number of vectors on one.
    fn collect(&mut self, value: Value<'h>, prefix: &str, depth: usize, vectors: usize) -> Res<()> {
        self.h.charge(1)?;
        if depth >= self.depth {
            return Ok(());
        }
        match value {
            Value::Map(map) => self.collect_map(map, prefix, depth, vectors),
            Value::Vector(v) if !prefix.is_empty() && vectors < DEPTH => {
                for &item in self.first(v.items()) {
                    self.collect(item, prefix, depth, vectors + 1)?;
                }
                Ok(())
            }
            Value::Vector(v) if !prefix.is_empty() && !v.is_empty() => {
                self.caps.insert("max_depth");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn collect_map(&mut self, map: &'h Map<'h>, prefix: &str, depth: usize, vectors: usize) -> Res<()> {
        let h = self.h;
        let entries = sorted_entries(h, map, &mut self.caps)?;
        let names = names(h, entries.iter().map(|e| (e.key, e.shown.as_str())))?;
        for (entry, name) in entries.iter().zip(&names) {
            let name = name.replace('\\', "\\\\").replace('.', "\\.");
            let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            h.charge(cost::copied(path.len()) + 4)?;
            if !self.found.contains_key(&path) {
                if self.found.len() >= PATHS {
                    self.caps.insert("max_paths");
                    continue;
                }
                h.check_available(path.len() * 2 + 256)?;
                self.found.insert(path.clone(), Vec::new());
            }
            if self.values >= PATH_VALUES {
                self.caps.insert("max_path_values");
                continue;
            }
            self.values += 1;
            if let Some(values) = self.found.get_mut(&path) {
                push(h, values, (self.root, entry.value))?;
            }
            self.collect(entry.value, &path, depth + 1, vectors)?;
        }
        Ok(())
    }

    /// Returns the summary of every path.
    fn finish(self, roots: usize, options: &Options, caps: &mut BTreeSet<&'static str>) -> Res<Value<'h>> {
        let h = self.h;
        let paths = h.map_builder(self.found.len())?;
        for (path, found) in &self.found {
            // A path first found after the limit of values has none.
            if found.is_empty() {
                continue;
            }
            h.check_available(found.len() * 16)?;
            let values: Vec<Value<'h>> = found.iter().map(|cell| cell.1).collect();
            let present = found.chunk_by(|a, b| a.0 == b.0).count();
            let mut one = Summary::new(h)?;
            field(&mut one, &values, options)?;
            presence(&mut one, present, roots)?;
            if values.len() > present {
                one.count("value_count", values.len())?;
            }
            paths.insert(h, h.str(path)?, one.finish()?)?;
        }
        caps.extend(self.caps);
        Ok(Value::Map(paths.finish(h)?))
    }
}
