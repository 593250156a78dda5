//! JSON Schema documents: parsed within limits, converted to one dialect, and walked. Checks are in [`super::schema`],
//! the line for models is in [`super::line`].

use super::allowance::Allowance;
use super::naming::percent_decoded;
use super::schema_error::SchemaError;
use super::yaml;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// The maximum bytes of a list of tools or of an API description.
pub(crate) const LIST_BYTES: usize = 16 << 20;
/// The maximum number of schemas that apply to the same value, nested or by reference.
const CHAIN: usize = 32;
/// The maximum bytes of a pattern.
const PATTERN_BYTES: usize = 2_000;

/// Parses JSON text of at most `max` bytes and at most 127 levels.
pub(crate) fn read(text: &str, max: usize, what: &str) -> Result<Value, SchemaError> {
    // A byte order mark is not part of JSON.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > max {
        return Err(SchemaError::new(format!("{what} has {} bytes; the maximum is {max}", text.len())));
    }
    serde_json::from_str(text).map_err(|error| SchemaError::new(format!("{what} cannot be read: {error}")))
}

/// Parses a description of at most `max` bytes and at most 127 levels. It is JSON if it starts with `{`, else YAML.
pub(crate) fn read_description(text: &str, max: usize, what: &str) -> Result<Value, SchemaError> {
    let trimmed = text.trim_start_matches(|c: char| c == '\u{feff}' || c.is_ascii_whitespace());
    if text.len() > max || trimmed.is_empty() || trimmed.starts_with(['{', '[']) {
        return read(text, max, what);
    }
    yaml::read(text).map_err(|error| SchemaError::new(format!("{what} cannot be read as YAML: {error}")))
}

/// How a schema relates to the schema that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// It applies to the same value.
    Same,
    /// It applies to a part of the value.
    Part,
    /// It is only a target of references.
    Kept,
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// Visits each direct subschema of a schema.
pub(crate) fn each_part<'v>(schema: &'v Value, mut see: impl FnMut(Link, &'v Value)) {
    let Value::Object(map) = schema else { return };
    // A schema uses few of the many keywords.
    for (keyword, value) in map {
        let named = match keyword.as_str() {
            "properties" | "patternProperties" => Some(Link::Part),
            "dependentSchemas" | "dependencies" => Some(Link::Same),
            "$defs" | "definitions" => Some(Link::Kept),
            _ => None,
        };
        let link = match keyword.as_str() {
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => Some(Link::Same),
            "additionalProperties"
            | "unevaluatedProperties"
            | "propertyNames"
            | "items"
            | "additionalItems"
            | "unevaluatedItems"
            | "prefixItems"
            | "contains" => Some(Link::Part),
            "contentSchema" => Some(Link::Kept),
            _ => None,
        };
        match (value, named, link) {
            (Value::Object(all), Some(link), _) => {
                all.values().filter(|part| is_schema(part)).for_each(|part| see(link, part));
            }
            (Value::Array(all), _, Some(link)) => {
                all.iter().filter(|part| is_schema(part)).for_each(|part| see(link, part));
            }
            (part, _, Some(link)) if is_schema(part) => see(link, part),
            _ if keyword == "components" => {
                let all = value.get("schemas").and_then(Value::as_object);
                all.into_iter()
                    .flat_map(Map::values)
                    .filter(|part| is_schema(part))
                    .for_each(|part| see(Link::Kept, part));
            }
            _ => {}
        }
    }
}

/// Converts other dialects to JSON Schema: type names of function-calling APIs, and `nullable`. The recursion is as
/// deep as the text, which its parser bounds.
pub(crate) fn unify(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    match map.get_mut("type") {
        Some(Value::String(name)) => match type_name(name) {
            Some("any") => drop(map.remove("type")),
            Some(known) => known.clone_into(name),
            None => {}
        },
        Some(Value::Array(names)) => {
            for name in names {
                if let Value::String(name) = name
                    && let Some(known) = type_name(name).filter(|known| *known != "any")
                {
                    known.clone_into(name);
                }
            }
        }
        _ => {}
    }
    if map.remove("nullable") == Some(Value::Bool(true)) {
        if let Some(Value::String(name)) = map.get("type") {
            let both = Value::from(vec![name.as_str(), "null"]);
            map.insert("type".to_owned(), both);
        } else if ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| map.contains_key(*keyword)) {
            // It applies to the value that the other keywords describe.
            let other = Value::Object(std::mem::take(map));
            map.insert("anyOf".to_owned(), Value::from(vec![json!({"type": "null"}), other]));
        }
        if let Some(Value::Array(all)) = map.get_mut("enum")
            && !all.contains(&Value::Null)
        {
            all.push(Value::Null);
        }
    }
    each_part_mut(schema, &mut unify);
}

/// Visits each direct subschema of a schema mutably.
pub(crate) fn each_part_mut(schema: &mut Value, see: &mut dyn FnMut(&mut Value)) {
    let Value::Object(map) = schema else { return };
    for (keyword, value) in map {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions",
                Value::Object(all),
            ) => all.values_mut().for_each(&mut *see),
            ("components", value) => {
                if let Some(Value::Object(all)) = value.get_mut("schemas") {
                    all.values_mut().for_each(&mut *see);
                }
            }
            (
                "allOf"
                | "anyOf"
                | "oneOf"
                | "not"
                | "if"
                | "then"
                | "else"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "items"
                | "additionalItems"
                | "unevaluatedItems"
                | "prefixItems"
                | "contains",
                value,
            ) => match value {
                Value::Array(all) => all.iter_mut().for_each(&mut *see),
                part => see(part),
            },
            _ => {}
        }
    }
}

/// Returns the JSON Schema type for a type name of another dialect; `None` for JSON Schema names and unknown ones.
fn type_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "dict" | "Dict" | "HashMap" | "Map" | "map" | "Object" => "object",
        "float" | "Float" | "double" | "Double" | "Number" => "number",
        "int" | "Int" | "Integer" | "long" | "Long" => "integer",
        "tuple" | "list" | "List" | "Array" | "ArrayList" => "array",
        "str" | "String" | "char" => "string",
        "bool" | "Bool" | "Boolean" => "boolean",
        "any" | "Any" | "" => "any",
        _ => return None,
    })
}

/// A schema, and the document that its references are relative to: the nearest enclosing schema with an `$id`, or the
/// whole document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subschema<'d> {
    pub(crate) schema: &'d Value,
    pub(crate) base: &'d Value,
}

impl<'d> Subschema<'d> {
    /// Returns a schema within this one.
    pub(crate) fn part(self, schema: &'d Value) -> Self {
        Subschema { schema, base: if id(schema).is_some() { schema } else { self.base } }
    }

    pub(crate) fn key(self) -> *const Value {
        std::ptr::from_ref(self.schema)
    }

    pub(crate) fn get(self, keyword: &str) -> Option<&'d Value> {
        self.schema.get(keyword)
    }
}

/// Returns the identifier of a document.
fn id(schema: &Value) -> Option<&str> {
    let of = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let id = of("$id").or_else(|| of("id").filter(|id| id.contains("://")))?;
    (!id.starts_with('#')).then_some(id)
}

/// The target of a reference.
pub(crate) enum Target<'d> {
    Known(Subschema<'d>),
    /// A schema of the standard.
    Standard,
    Unknown,
}

/// A document with its identifiers and anchors.
pub(crate) struct Document<'d> {
    pub(crate) root: Subschema<'d>,
    ids: Vec<(&'d str, &'d Value)>,
    anchors: HashMap<&'d str, Vec<Subschema<'d>>>,
    /// The number of schemas, and of patterns.
    pub(crate) count: usize,
    patterns: usize,
}

impl<'d> Document<'d> {
    /// Walks a document, without following references.
    fn open(root: &'d Value, allowance: &Allowance) -> Result<Self, SchemaError> {
        let root = Subschema { schema: root, base: root };
        let mut document = Document { root, ids: Vec::new(), anchors: HashMap::new(), count: 0, patterns: 0 };
        let mut left = vec![document.root];
        while let Some(sub) = left.pop() {
            document.count += 1;
            allowance.check_schemas(document.count)?;
            document.note(sub);
            let named = sub.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
            let own = sub.get("pattern").and_then(Value::as_str).into_iter();
            for pattern in own.chain(named.map(String::as_str)) {
                document.patterns += 1;
                allowance.check_patterns(document.patterns)?;
                if pattern.len() > PATTERN_BYTES {
                    return Err(SchemaError::new(format!(
                        "it has a pattern of {} bytes, and a pattern may have {PATTERN_BYTES}",
                        pattern.len()
                    )));
                }
            }
            each_part(sub.schema, |_, part| left.push(sub.part(part)));
        }
        Ok(document)
    }

    /// Reads the identifiers and anchors of a document whose schemas were checked before.
    pub(crate) fn of(root: &'d Value) -> Result<Self, SchemaError> {
        Document::open(root, &Allowance::of_one())
    }

    fn note(&mut self, sub: Subschema<'d>) {
        if let Some(id) = id(sub.schema) {
            self.ids.push((id, sub.schema));
        }
        let own = sub.get("$id").and_then(Value::as_str).and_then(|id| id.strip_prefix('#'));
        let named = ["$anchor", "$dynamicAnchor"].into_iter().filter_map(|keyword| sub.get(keyword)?.as_str());
        for name in own.into_iter().chain(named) {
            self.anchors.entry(name).or_default().push(sub);
        }
    }

    /// Returns the target of a reference in a schema.
    pub(crate) fn target(&self, sub: Subschema<'d>, reference: &str) -> Target<'d> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = if document.is_empty() {
            sub.base
        } else {
            match self.ids.iter().find(|(id, _)| same_document(id, document)) {
                Some((_, schema)) => schema,
                None if is_standard(document) => return Target::Standard,
                None => return Target::Unknown,
            }
        };
        if fragment.is_empty() {
            return Target::Known(Subschema { schema: base, base });
        }
        if !fragment.starts_with('/') {
            let found = self
                .anchors
                .get(fragment)
                .and_then(|all| all.iter().find(|sub| std::ptr::eq(sub.base, base)).or(all.first()));
            return found.map_or(Target::Unknown, |sub| Target::Known(*sub));
        }
        let mut at = Subschema { schema: base, base };
        for step in fragment[1..].split('/') {
            let step = percent_decoded(step).replace("~1", "/").replace("~0", "~");
            let next = match at.schema {
                Value::Object(map) => map.get(&step),
                Value::Array(all) => step.parse::<usize>().ok().and_then(|index| all.get(index)),
                _ => None,
            };
            match next {
                Some(next) => at = at.part(next),
                None => return Target::Unknown,
            }
        }
        Target::Known(at)
    }

    /// Returns the schemas that a schema refers to.
    ///
    /// # Errors
    /// A reference leads out of the document.
    pub(crate) fn referred(&self, sub: Subschema<'d>) -> Result<Vec<Subschema<'d>>, SchemaError> {
        let mut found = Vec::new();
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(reference) = sub.get(keyword).and_then(Value::as_str) else { continue };
            match self.target(sub, reference) {
                Target::Known(target) => found.push(target),
                Target::Standard => {}
                Target::Unknown => {
                    let shown: String = reference.chars().take(200).collect();
                    return Err(SchemaError::new(format!(
                        "it refers to {shown:?}, which it does not contain; a schema must contain everything that it refers to"
                    )));
                }
            }
            // The target depends on the path of evaluation: any of these.
            if let Some(name) = reference.strip_prefix('#').filter(|_| keyword == "$dynamicRef") {
                found.extend(self.anchors.get(name).into_iter().flatten());
            }
        }
        Ok(found)
    }
}

/// Checks that a document is within the limits, and that its references have targets in it. Returns the number of its
/// schemas, and whether it has references. What it has is taken from the allowance.
///
/// # Errors
/// The limit that is exceeded, or the reference without a target.
pub(crate) fn check_limits(root: &Value, allowance: &mut Allowance) -> Result<(usize, bool), SchemaError> {
    let document = Document::open(root, allowance)?;
    let mut chains = Chains { document: &document, lengths: HashMap::new() };
    let mut seen = HashSet::new();
    let mut has_references = false;
    let mut left = vec![document.root];
    while let Some(sub) = left.pop() {
        if !seen.insert(sub.key()) {
            continue;
        }
        allowance.check_schemas(seen.len())?;
        chains.length(sub, 0)?;
        let referred = document.referred(sub)?;
        has_references |= !referred.is_empty();
        left.extend(referred);
        each_part(sub.schema, |_, part| left.push(sub.part(part)));
    }
    allowance.take(document.count.max(seen.len()), document.patterns);
    Ok((document.count, has_references))
}

/// For each schema, the number of nested schemas that apply to the same value.
struct Chains<'a, 'd> {
    document: &'a Document<'d>,
    /// `None` while it is computed.
    lengths: HashMap<*const Value, Option<usize>>,
}

impl<'d> Chains<'_, 'd> {
    /// The recursion is at most [`CHAIN`] deep.
    fn length(&mut self, sub: Subschema<'d>, above: usize) -> Result<usize, SchemaError> {
        let too_long = || {
            SchemaError::new(format!(
                "more than {CHAIN} schemas for one value refer to each other or are inside each other"
            ))
        };
        if above > CHAIN {
            return Err(too_long());
        }
        match self.lengths.get(&sub.key()) {
            Some(Some(length)) if above + length > CHAIN => return Err(too_long()),
            Some(Some(length)) => return Ok(*length),
            Some(None) => {
                return Err(SchemaError::new("a reference in it leads back to itself without going into the value"));
            }
            None => {}
        }
        self.lengths.insert(sub.key(), None);
        let mut next = self.document.referred(sub)?;
        each_part(sub.schema, |link, part| {
            if link == Link::Same {
                next.push(sub.part(part));
            }
        });
        let mut longest = 0;
        for sub in next {
            longest = longest.max(self.length(sub, above + 1)?);
        }
        self.lengths.insert(sub.key(), Some(longest + 1));
        Ok(longest + 1)
    }
}

/// Returns whether a reference names the document of an identifier. Compares only the last part: the rules for relative
/// references are not implemented.
fn same_document(id: &str, document: &str) -> bool {
    let id = id.trim_end_matches('#');
    id == document
        || id.rsplit('/').next() == Some(document.trim_start_matches("./").trim_start_matches('/'))
        || (document.starts_with('/') && id.ends_with(document))
        || (id.len() < document.len() && document.ends_with(&format!("/{}", id.trim_start_matches('/'))))
}

fn is_standard(document: &str) -> bool {
    ["http://json-schema.org/draft-", "https://json-schema.org/draft/", "https://json-schema.org/draft-"]
        .iter()
        .any(|prefix| document.starts_with(prefix))
}
