//! JSON Schema validation: a validator that is built once per tool, and mismatches in words.

use super::allowance::{Allowance, CheckLimits};
use super::document::{self, Document, Link, Subschema, each_part};
use super::schema_error::SchemaError;
use super::signature::{ERRORS, Mismatch};
use super::words::cut;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use lisp_core::text::near_names;
use serde_json::Value;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The maximum nesting of a value that is checked.
const VALUE_DEPTH: usize = 64;
/// The bytes of a string that count as one step of a pattern, if they count.
const TEXT_STEP: u64 = 256;
/// The maximum number of backtracks of a pattern with look-around or back-references.
const BACKTRACKS: usize = 500;

/// What a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Arguments, whose formats are checked.
    Arguments,
    /// Results, whose formats are not checked: the program is not to blame for what a service calls a date or an
    /// address.
    Results,
}

/// A schema and its validator.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) document: Value,
    count: usize,
    has_references: bool,
    limits: CheckLimits,
    validator: Validator,
}

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// It is not JSON, not a schema, or exceeds the limits.
    pub(crate) fn read(text: &str, of: Of, allowance: &mut Allowance) -> Result<Self, SchemaError> {
        allowance.take_text(text)?;
        Schema::within(document::read(text, usize::MAX, "the schema")?, of, allowance)
    }

    /// Compiles a schema of the host.
    pub(crate) fn new(document: Value, of: Of) -> Result<Self, SchemaError> {
        Schema::within(document, of, &mut Allowance::of_one())
    }

    /// Compiles a schema. If it does not name its draft, the first of 2020-12, 7 and 4 that fits is used.
    fn within(mut document: Value, of: Of, allowance: &mut Allowance) -> Result<Self, SchemaError> {
        document::unify(&mut document);
        let (count, has_references) = document::check_limits(&document, allowance)?;
        let (pattern_size, limits) = (allowance.pattern_size(), allowance.check());
        let is_known = |name: &str| !matches!(Draft::from_schema_uri(name), Draft::Unknown);
        let says = document.get("$schema").and_then(Value::as_str).is_some_and(is_known);
        let drafts = [Draft::Draft202012, Draft::Draft7, Draft::Draft4];
        let drafts: &[Draft] = if says { &drafts[..0] } else { &drafts };
        if !says && let Value::Object(map) = &mut document {
            // An unknown name, which would have to be fetched.
            map.remove("$schema");
        }
        let mut failed = None;
        for draft in drafts.iter().copied().map(Some).chain(says.then_some(None)) {
            match build(&document, draft, of, pattern_size) {
                Ok(validator) => return Ok(Schema { document, count, has_references, limits, validator }),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| SchemaError::new("it is not a schema")))
    }

    /// Checks JSON text. Returns no mismatches on success. `root` names the value in paths.
    pub(crate) fn check(&self, json: &str, root: &str) -> Vec<Mismatch> {
        let one = |message: &str| vec![Mismatch::new(root.to_owned(), message.to_owned())];
        let Ok(value) = serde_json::from_str::<Value>(json) else {
            return one("it is nested too deep, or has a number too large, to be checked against the schema");
        };
        let Some(nodes) = size(&value) else {
            return one(&format!(
                "it is nested more than {VALUE_DEPTH} deep, too deep to be checked against the schema"
            ));
        };
        // Without references, each schema is visited as often as it is written.
        let steps = self.limits.steps;
        let text = if self.limits.counts_text { json.len() as u64 / TEXT_STEP } else { 0 };
        let may_be_many = self.has_references || (self.count as u64).saturating_mul(nodes + text) > steps;
        if may_be_many && !self.is_within(steps, &value, false) {
            return one(&format!("checking it against the schema takes more than {steps} steps"));
        }
        // An unexpected panic of the library fails the call, not the run.
        match catch_unwind(AssertUnwindSafe(|| self.validator.is_valid(&value))) {
            Ok(true) => Vec::new(),
            Ok(false) => {
                let found = catch_unwind(AssertUnwindSafe(|| self.explain(&value, root)));
                found.unwrap_or_else(|_| one("it does not fit the schema"))
            }
            Err(_) => one("it cannot be checked: the validator failed on the schema"),
        }
    }

    fn explain(&self, value: &Value, root: &str) -> Vec<Mismatch> {
        let errors: Vec<ValidationError<'_>> = if self.is_within(self.limits.steps_for_all, value, true) {
            self.validator.iter_errors(value).collect()
        } else if self.is_within(self.limits.steps_for_first, value, true) {
            self.validator.validate(value).err().into_iter().collect()
        } else {
            Vec::new()
        };
        let mut found: Vec<Mismatch> = Vec::new();
        for error in &errors {
            if found.len() >= ERRORS {
                break;
            }
            self.mismatches(error, root, &mut found);
        }
        if found.is_empty() {
            found.push(Mismatch::new(root.to_owned(), "it does not fit the schema".to_owned()));
        }
        found
    }

    /// Returns whether a check takes at most `max` steps. `copies` if it collects errors with copies of values.
    fn is_within(&self, max: u64, value: &Value, copies: bool) -> bool {
        let counts_text = self.limits.counts_text;
        Document::of(&self.document).is_ok_and(|document| {
            Steps { document: &document, left: max, copies, counts_text }.of(document.root, value)
        })
    }

    /// Converts one error of the validator.
    fn mismatches(&self, error: &ValidationError<'_>, root: &str, found: &mut Vec<Mismatch>) {
        let at = path(root, error.instance_path().iter());
        let came = error.instance();
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                found.push(Mismatch::new(joined(&at, name), "the field is missing".to_owned()));
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                let known = self.fields_beside(error.schema_path().as_str());
                let what = if at.is_empty() { "argument" } else { "field" };
                for key in unexpected.iter().take(ERRORS) {
                    let hint = match near_names(key, known.iter().copied(), 1).first() {
                        Some(near) => format!("did you mean {near}?"),
                        None if known.is_empty() => "no such key is allowed".to_owned(),
                        None => {
                            let more = if known.len() > 12 {
                                format!(" and {} more", known.len() - 12)
                            } else {
                                String::new()
                            };
                            format!("expected {}{more}", known[..known.len().min(12)].join(", "))
                        }
                    };
                    found.push(Mismatch::new(at.clone(), format!("unknown {what} {}: {hint}", quoted(key))));
                }
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                self.nearest(context, &at, root, came, found);
            }
            kind => found.push(Mismatch::new(at, in_words(kind, came, error))),
        }
    }

    /// Returns the alternative that was probably meant, of several that fail: the one that matches most, or whose
    /// mismatch is the deepest.
    fn nearest(
        &self,
        context: &[Vec<ValidationError<'static>>],
        at: &str,
        root: &str,
        came: &Value,
        found: &mut Vec<Mismatch>,
    ) {
        let depth = |error: &ValidationError<'_>| error.instance_path().iter().count();
        let here = context.iter().flatten().map(depth).min().unwrap_or_default();
        let is_other = |error: &ValidationError<'_>| {
            let kind = error.kind();
            let selects = matches!(kind, ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. });
            (depth(error) <= here && matches!(kind, ValidationErrorKind::Type { .. }))
                || (selects && depth(error) <= here + 1)
        };
        let meant = context
            .iter()
            .filter(|errors| !errors.is_empty() && !errors.iter().any(is_other))
            .min_by_key(|errors| errors.len());
        if let Some(errors) = meant {
            errors.iter().take(ERRORS).for_each(|error| self.mismatches(error, root, found));
            return;
        }
        let mut wanted: Vec<String> = Vec::new();
        for error in context.iter().flatten().filter(|error| depth(error) <= here) {
            let one = match error.kind() {
                ValidationErrorKind::Type { kind } => types(kind),
                ValidationErrorKind::Constant { expected_value } => shown(expected_value),
                ValidationErrorKind::Enum { options } => one_of(options),
                _ => continue,
            };
            if !wanted.contains(&one) {
                wanted.push(one);
            }
        }
        let selectors = context.iter().flatten().filter(|error| depth(error) == here + 1);
        let mut by: Option<(String, Vec<String>)> = None;
        for error in selectors {
            let value = match error.kind() {
                ValidationErrorKind::Constant { expected_value } => shown(expected_value),
                ValidationErrorKind::Enum { options } => one_of(options),
                _ => continue,
            };
            let place = path(root, error.instance_path().iter());
            let (of, values) = by.get_or_insert_with(|| (place.clone(), Vec::new()));
            if *of == place && !values.contains(&value) && values.len() < 12 {
                values.push(value);
            }
        }
        match by {
            Some((place, values)) => {
                found.push(Mismatch::new(
                    place,
                    format!("expected {}, which selects one of {} forms", values.join(" or "), context.len()),
                ));
            }
            None if wanted.is_empty() => {
                let message = format!("it matches none of its {} forms, got {}", context.len(), got(came));
                found.push(Mismatch::new(at.to_owned(), message));
            }
            None => {
                wanted.truncate(8);
                let message = format!("expected {}, got {}", wanted.join(" or "), got(came));
                found.push(Mismatch::new(at.to_owned(), message));
            }
        }
    }

    /// Returns the names of the fields that were allowed where an unknown one was found.
    fn fields_beside(&self, schema_path: &str) -> Vec<&str> {
        let parent = schema_path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let schema = self.document.pointer(parent);
        let fields = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        fields.into_iter().flat_map(|fields| fields.keys()).map(String::as_str).take(400).collect()
    }
}

fn build(document: &Value, draft: Option<Draft>, of: Of, pattern_size: usize) -> Result<Validator, SchemaError> {
    if !document.is_object() && !document.is_boolean() {
        return Err(SchemaError::new("it is not a JSON Schema: write an object, such as {\"type\": \"object\"}"));
    }
    let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS).size_limit(pattern_size);
    let mut options = jsonschema::options().with_pattern_options(patterns.dfa_size_limit(pattern_size));
    options = options.should_validate_formats(of == Of::Arguments);
    if let Some(draft) = draft {
        options = options.with_draft(draft);
    }
    match catch_unwind(AssertUnwindSafe(|| options.build(document))) {
        Ok(Ok(validator)) => Ok(validator),
        Ok(Err(error)) => {
            let place = error.instance_path().to_string();
            let why = unknown_type(&error, &place).unwrap_or_else(|| error.masked().to_string());
            let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
            Err(SchemaError::new(cut(&format!("it is not a valid JSON Schema{place}: {why}"), 400)))
        }
        Err(_) => Err(SchemaError::new("the validator failed on it")),
    }
}

/// Returns what is wrong with the keyword `type`, if a schema is not valid because of it: the validator only says that a
/// schema for schemas has two forms there.
fn unknown_type(error: &ValidationError<'_>, place: &str) -> Option<String> {
    let above = place.strip_suffix("/type")?;
    let is_name = ["/properties", "/dependencies"].iter().any(|names| above.ends_with(names));
    if is_name || !matches!(error.kind(), ValidationErrorKind::AnyOf { .. }) {
        return None;
    }
    const TYPES: &str = "\"string\", \"number\", \"integer\", \"boolean\", \"object\", \"array\" or \"null\"";
    let given = cut(&error.instance().to_string(), 80);
    Some(format!("{given} is not a type; write {TYPES}, or an array of some of these"))
}

/// Returns the number of values in a value; `None` if it is nested too deep.
fn size(value: &Value) -> Option<u64> {
    let mut left = vec![(value, 1)];
    let mut nodes = 0;
    while let Some((value, depth)) = left.pop() {
        nodes += 1;
        if depth > VALUE_DEPTH {
            return None;
        }
        match value {
            Value::Array(items) => left.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => left.extend(map.values().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    Some(nodes)
}

/// Returns the cost of copying a value, in steps.
fn weight(value: &Value) -> u64 {
    let mut left = vec![value];
    let mut weight: u64 = 0;
    while let Some(value) = left.pop() {
        weight += 1;
        match value {
            Value::String(text) => weight += text.len() as u64 / 256,
            Value::Array(items) => left.extend(items),
            Value::Object(map) => left.extend(map.values()),
            _ => {}
        }
    }
    weight
}

/// Counts the pairs of a schema and a value that a full check visits, up to a maximum. The recursion is as deep as the
/// value times a chain of schemas, both of which are bounded.
struct Steps<'a, 'd> {
    document: &'a Document<'d>,
    left: u64,
    /// Whether errors are collected with copies of values.
    copies: bool,
    counts_text: bool,
}

impl<'d> Steps<'_, 'd> {
    fn take(&mut self, steps: u64) -> bool {
        let is_enough = steps <= self.left;
        self.left = self.left.saturating_sub(steps);
        is_enough
    }

    /// Counts one schema for a value. Returns false if there are too many.
    fn of(&mut self, sub: Subschema<'d>, value: &Value) -> bool {
        let Value::Object(schema) = sub.schema else { return self.take(1) };
        let text = match value {
            Value::String(text)
                if self.counts_text && (schema.contains_key("pattern") || schema.contains_key("format")) =>
            {
                text.len() as u64 / TEXT_STEP
            }
            _ => 0,
        };
        let mut is_enough = self.take(1 + text) && (!self.copies || self.copied(sub, value));
        // Remaining items are visited once more.
        let rounds =
            1 + u8::from(schema.contains_key("unevaluatedProperties") || schema.contains_key("unevaluatedItems"));
        for _ in 0..rounds {
            for next in self.document.referred(sub).unwrap_or_default() {
                is_enough = is_enough && self.of(next, value);
            }
            each_part(sub.schema, |link, part| {
                is_enough = is_enough && (link != Link::Same || self.of(sub.part(part), value));
            });
        }
        is_enough
            && match value {
                Value::Object(map) => self.in_object(sub, map),
                Value::Array(items) => self.in_array(sub, items),
                _ => true,
            }
    }

    /// Each alternative that fails leaves an error with a copy of the value, and each excluded one a copy of the
    /// schema.
    fn copied(&mut self, sub: Subschema<'d>, value: &Value) -> bool {
        let forms = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| sub.get(keyword)?.as_array()).map(Vec::len);
        let forms = forms.sum::<usize>() as u64;
        let excluded = sub.get("not").map_or(0, |not| weight(not) / 8);
        (forms == 0 || self.take(forms.saturating_mul(weight(value)))) && self.take(excluded)
    }

    fn in_object(&mut self, sub: Subschema<'d>, map: &serde_json::Map<String, Value>) -> bool {
        let fields = sub.get("properties").and_then(Value::as_object);
        let patterns = sub.get("patternProperties").and_then(Value::as_object);
        let rest = ["additionalProperties", "unevaluatedProperties"].map(|keyword| sub.get(keyword));
        let names = if sub.get("propertyNames").is_some() { 8 } else { 0 };
        let text = match patterns {
            Some(patterns) if self.counts_text => {
                map.keys().map(String::len).sum::<usize>() as u64 / TEXT_STEP * patterns.len() as u64
            }
            _ => 0,
        };
        self.take((map.len() as u64).saturating_mul(names).saturating_add(text))
            && map.iter().all(|(name, value)| {
                let field = fields.and_then(|fields| fields.get(name));
                let rest = rest.iter().flatten().filter(|_| field.is_none());
                let patterns = patterns.into_iter().flat_map(|all| all.values());
                field.into_iter().chain(patterns).chain(rest.copied()).all(|part| self.of(sub.part(part), value))
            })
    }

    fn in_array(&mut self, sub: Subschema<'d>, items: &[Value]) -> bool {
        let listed = ["items", "prefixItems"].into_iter().filter_map(|keyword| sub.get(keyword)?.as_array());
        let mut listed = listed.flat_map(|parts| parts.iter().zip(items));
        let rest = ["items", "additionalItems", "unevaluatedItems", "contains"].into_iter();
        let mut rest = rest.filter_map(|keyword| sub.get(keyword)).filter(|part| !part.is_array());
        listed.all(|(part, value)| self.of(sub.part(part), value))
            && rest.all(|part| items.iter().all(|value| self.of(sub.part(part), value)))
    }
}

/// Formats a path such as `rows[2].name`.
fn path<'l>(root: &str, steps: impl Iterator<Item = LocationSegment<'l>>) -> String {
    let mut out = root.to_owned();
    for step in steps {
        match step {
            LocationSegment::Property(name) => out = joined(&out, &name),
            // Writing to a string cannot fail.
            LocationSegment::Index(index) => drop(write!(out, "[{index}]")),
        }
        if out.len() > 400 {
            out = cut(&out, 400);
            break;
        }
    }
    out
}

fn joined(path: &str, name: &str) -> String {
    let is_plain = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-');
    match (path, is_plain) {
        ("", true) => name.to_owned(),
        (_, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{}]", quoted(name)),
    }
}

fn quoted(text: &str) -> String {
    format!("{:?}", cut(text, 60))
}

/// Returns a value as a program would write it; a long one is cut.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Array(items) => format!("a vector of {}", items.len()),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().take(4).map(|key| cut(key, 30)).collect();
            let more = if map.len() > 4 { ", ..." } else { "" };
            format!("a map of {}{more}", keys.join(", "))
        }
    }
}

fn got(value: &Value) -> String {
    match value {
        Value::String(_) => format!("the string {}", shown(value)),
        Value::Number(_) => format!("the number {value}"),
        _ => shown(value),
    }
}

fn one_of(options: &Value) -> String {
    const SHOWN: usize = 12;
    let Value::Array(all) = options else { return shown(options) };
    let more = if all.len() > SHOWN { format!(" or {} more", all.len() - SHOWN) } else { String::new() };
    format!("{}{more}", all.iter().take(SHOWN).map(shown).collect::<Vec<_>>().join(" or "))
}

fn types(kind: &TypeKind) -> String {
    let word = |name: &str| match name {
        "null" => "nil".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" => "an integer".to_owned(),
        "number" => "a number".to_owned(),
        "string" => "a string".to_owned(),
        "array" => "a vector".to_owned(),
        "object" => "a map".to_owned(),
        other => other.to_owned(),
    };
    match kind {
        TypeKind::Single(one) => word(one.as_str()),
        TypeKind::Multiple(all) => all.iter().map(|one| word(one.as_str())).collect::<Vec<_>>().join(" or "),
    }
}

/// Suggests what to write instead of a string that looks like the value.
fn loose(kind: &TypeKind, came: &Value) -> String {
    let wants = |name: &str| match kind {
        TypeKind::Single(one) => one.as_str() == name,
        TypeKind::Multiple(all) => all.iter().any(|one| one.as_str() == name),
    };
    let Value::String(text) = came else {
        return if wants("string") && came.is_number() {
            format!("; write \"{came}\", in quotes")
        } else if wants("array") && !came.is_null() {
            "; put it into a vector".to_owned()
        } else {
            String::new()
        };
    };
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(Value::Number(n)) if wants("number") || (wants("integer") && !n.is_f64()) => {
            format!("; write {n}, without quotes")
        }
        Ok(Value::Bool(b)) if wants("boolean") => format!("; write {b}, without quotes"),
        Ok(Value::Array(_)) if wants("array") => "; write a vector, not its text".to_owned(),
        Ok(Value::Object(_)) if wants("object") => "; write a map, not its text".to_owned(),
        _ if wants("array") => "; put it into a vector".to_owned(),
        _ => String::new(),
    }
}

fn in_words(kind: &ValidationErrorKind, came: &Value, error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let expected = |wanted: String| format!("expected {wanted}, got {}", got(came));
    let length = || match came {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    let counted = |wanted: String| format!("expected {wanted}, got {}", length());
    match kind {
        Kind::Type { kind } => format!("{}{}", expected(types(kind)), loose(kind, came)),
        Kind::Enum { options } => {
            let hint = nearest_option(options, came).map(|near| format!(": did you mean {near}?")).unwrap_or_default();
            format!("{}{hint}", expected(one_of(options)))
        }
        Kind::Constant { expected_value } => expected(shown(expected_value)),
        Kind::Minimum { limit } => expected(format!("{limit} or more")),
        Kind::Maximum { limit } => expected(format!("{limit} or less")),
        Kind::ExclusiveMinimum { limit } => expected(format!("more than {limit}")),
        Kind::ExclusiveMaximum { limit } => expected(format!("less than {limit}")),
        Kind::MultipleOf { multiple_of } => expected(format!("a multiple of {multiple_of}")),
        Kind::MinLength { limit } => counted(format!("{limit} characters or more")),
        Kind::MaxLength { limit } => counted(format!("{limit} characters or less")),
        Kind::MinItems { limit } => counted(format!("{limit} items or more")),
        Kind::MaxItems { limit } => counted(format!("{limit} items or less")),
        Kind::AdditionalItems { limit } => counted(format!("{limit} items or less")),
        Kind::MinProperties { limit } => counted(format!("{limit} keys or more")),
        Kind::MaxProperties { limit } => counted(format!("{limit} keys or less")),
        Kind::Pattern { pattern } => expected(format!("a string that matches {}", quoted(pattern))),
        Kind::Format { format } => expected(format!("a string of the format {}", cut(format, 40))),
        Kind::UniqueItems => "expected items that differ, got one twice".to_owned(),
        Kind::Contains => "no item matches `contains`".to_owned(),
        Kind::FalseSchema => format!("expected nothing here, got {}", got(came)),
        Kind::Not { .. } => format!("it has a form that is excluded: {}", got(came)),
        Kind::OneOfMultipleValid { .. } => {
            "it matches more than one of several exclusive forms; add what distinguishes them".to_owned()
        }
        Kind::PropertyNames { error } => format!(
            "its key {} is not allowed: {}",
            shown(error.instance()),
            in_words(error.kind(), error.instance(), error)
        ),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "a pattern of the schema takes too long on it".to_owned()
        }
        _ => cut(&error.masked().to_string(), 200),
    }
}

fn nearest_option(options: &Value, came: &Value) -> Option<String> {
    let (Value::Array(all), Value::String(text)) = (options, came) else { return None };
    let same = all.iter().filter_map(Value::as_str).find(|option| option.eq_ignore_ascii_case(text));
    let near = same.or_else(|| near_names(text, all.iter().filter_map(Value::as_str).take(400), 1).first().copied())?;
    (all.len() > 1).then(|| quoted(near))
}
