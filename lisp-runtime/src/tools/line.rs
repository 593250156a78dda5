//! A schema in one line for models: the notation of signatures, and what it leaves out. See `docs/tools.md`.

use super::document::{Document, Link, Subschema, Target, each_part};
use super::schema::Schema;
use super::words::cut;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The maximum bytes of a line, without description and remark.
const LINE_BYTES: usize = 1_000;
/// The depth of maps and vectors, the number of fields of a map, and the number of forms: tried in turn until the line
/// is short enough.
const DETAIL: [(usize, usize, usize); 6] = [(6, 60, 24), (5, 60, 12), (4, 40, 12), (3, 30, 8), (2, 30, 6), (1, 20, 5)];
/// The maximum number of forms of a value that are shown.
const FORMS: usize = 40;
/// The maximum number of steps of one try.
const STEPS: usize = 20_000;

/// The arguments and the result of a tool in one line.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// What the line does not show, if anything.
    pub(crate) remark: Option<String>,
}

/// Returns the line for a schema of arguments and one of results. Takes the steps of writing it from `left`; without
/// enough of them, the line shows nothing.
pub(crate) fn line(input: &Schema, output: Option<&Schema>, left: &mut usize) -> Line {
    let too_much =
        || Line { text: "(...) -> :any".to_owned(), remark: Some("too much to show in one line".to_owned()) };
    if *left == 0 {
        return too_much();
    }
    let mut last = None;
    for detail in DETAIL {
        let mut hidden = Hidden::default();
        let (given, steps) = written(&input.document, detail, &mut hidden, false);
        let (taken, more) = match output {
            Some(output) => written(&output.document, detail, &mut hidden, true),
            None => (":any".to_owned(), 0),
        };
        *left = left.saturating_sub(steps + more);
        // Names of formats and definitions may contain any character; the line must stay one line.
        let text = format!("{given} -> {taken}").replace(char::is_control, " ");
        let is_short = text.len() <= LINE_BYTES;
        last = Some((text, hidden));
        if is_short || *left == 0 {
            break;
        }
    }
    let (text, hidden) = last.unwrap_or_default();
    if text.len() > LINE_BYTES {
        return too_much();
    }
    Line { text, remark: hidden.remark() }
}

/// Returns the names of the arguments.
pub(crate) fn parameters(schema: &Schema) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Ok(document) = Document::of(&schema.document) else { return names };
    let mut left = vec![document.root];
    let mut seen = BTreeSet::new();
    while let Some(sub) = left.pop() {
        if !seen.insert(sub.key().addr()) {
            continue;
        }
        if let Some(Value::Object(fields)) = sub.get("properties") {
            names.extend(fields.keys().cloned());
        }
        left.extend(document.referred(sub).unwrap_or_default());
        each_part(sub.schema, |link, part| {
            if link == Link::Same {
                left.push(sub.part(part));
            }
        });
    }
    names
}

/// What a line does not show.
#[derive(Debug, Default)]
struct Hidden {
    keywords: BTreeSet<&'static str>,
    deeper: bool,
    fields: usize,
    values: bool,
}

impl Hidden {
    fn remark(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.keywords.is_empty() {
            parts.push(format!("checked too: {}", self.keywords.iter().copied().collect::<Vec<_>>().join(", ")));
        }
        if self.deeper {
            parts.push("what is deeper is not shown".to_owned());
        }
        if self.fields > 0 {
            parts.push(format!("{} more fields", self.fields));
        }
        if self.values {
            parts.push("not all values are shown".to_owned());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Keywords that narrow a value in ways that a line does not show.
const BEYOND: &[&str] = &[
    "not",
    "if",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentEncoding",
    "contentMediaType",
    "$dynamicRef",
    "$recursiveRef",
];

/// Keywords of which a form has at least one: without them it does not say what a value is.
const SHAPES: &[&str] = &[
    "type",
    "properties",
    "items",
    "prefixItems",
    "enum",
    "const",
    "$ref",
    "anyOf",
    "oneOf",
    "allOf",
    "additionalProperties",
];

/// Writes one schema.
struct Writer<'a> {
    document: &'a Document<'a>,
    hidden: &'a mut Hidden,
    /// The references that are being written, and whether each has led to itself again.
    open: Vec<(*const Value, bool)>,
    detail: (usize, usize, usize),
    steps: usize,
    is_result: bool,
}

/// Returns a schema in the notation of lines, and the number of steps that this took.
fn written(schema: &Value, detail: (usize, usize, usize), hidden: &mut Hidden, is_result: bool) -> (String, usize) {
    let Ok(document) = Document::of(schema) else { return (":any".to_owned(), 0) };
    let mut writer = Writer { document: &document, hidden, open: Vec::new(), detail, steps: 0, is_result };
    let text = if is_result { writer.of(document.root, 0) } else { writer.parameters(document.root) };
    // Opening a document takes time by its size.
    (text, writer.steps + document.count)
}

impl<'a> Writer<'a> {
    /// Writes the arguments of a call.
    fn parameters(&mut self, root: Subschema<'a>) -> String {
        let mut sub = root;
        for _ in 0..8 {
            let Some(Value::String(reference)) = sub.get("$ref") else { break };
            match self.document.target(sub, reference) {
                Target::Known(target) => sub = target,
                Target::Standard | Target::Unknown => break,
            }
        }
        let is_plain = !["$ref", "enum", "const", "allOf"].iter().any(|keyword| sub.get(keyword).is_some())
            && !["anyOf", "oneOf"].iter().any(|keyword| says_more(sub, keyword))
            && sub.get("type").is_none_or(|of| of == "object")
            && !matches!(sub.get("additionalProperties"), Some(Value::Object(more)) if !more.is_empty());
        if !is_plain || !sub.schema.is_object() {
            return format!("(& {})", self.of(root, 0));
        }
        self.open.push((sub.key(), false));
        self.note(sub);
        let fields = self.fields(sub, 0);
        format!("({fields})")
    }

    /// Writes a type.
    fn of(&mut self, sub: Subschema<'a>, depth: usize) -> String {
        self.forms(sub, depth).join("|")
    }

    /// Returns the alternative forms of a value.
    fn forms(&mut self, sub: Subschema<'a>, depth: usize) -> Vec<String> {
        self.steps += 1;
        if self.steps > STEPS {
            self.hidden.deeper = true;
            return vec![":any".to_owned()];
        }
        if sub.schema == &Value::Bool(false) {
            return vec![":none".to_owned()];
        }
        let Value::Object(schema) = sub.schema else { return vec![":any".to_owned()] };
        self.note(sub);
        let mut all: Vec<Vec<String>> = Vec::new();
        if let Some(Value::String(reference)) = schema.get("$ref") {
            all.push(self.reference(sub, reference, depth));
        }
        let mut literals = false;
        if let Some(value) = schema.get("const") {
            all.push(vec![self.literal(value)]);
            literals = true;
        } else if let Some(Value::Array(values)) = schema.get("enum") {
            let max = self.detail.2;
            let mut shown: Vec<String> = values.iter().take(max).map(|value| self.literal(value)).collect();
            if values.len() > max {
                self.hidden.values = true;
                shown.push("...".to_owned());
            }
            all.push(shown);
            literals = true;
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(parts)) = schema.get(keyword) else { continue };
            if !says_more(sub, keyword) {
                self.hidden.keywords.insert(if keyword == "anyOf" { "anyOf" } else { "oneOf" });
                continue;
            }
            let (mut forms, mut only_literals) = (Vec::new(), true);
            for part in parts {
                if forms.len() >= FORMS {
                    self.hidden.values = true;
                    forms.push("...".to_owned());
                    break;
                }
                only_literals &= part.get("const").is_some() || part.get("enum").is_some();
                for form in self.forms(sub.part(part), depth) {
                    if !forms.contains(&form) {
                        forms.push(form);
                    }
                }
            }
            literals |= only_literals;
            all.push(forms);
        }
        if !literals {
            let own = self.own(sub, depth);
            if !own.is_empty() {
                all.insert(0, own);
            }
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let forms = self.forms(sub.part(part), depth);
            if forms != [":any"] {
                all.push(forms);
            }
        }
        all.dedup();
        together(all)
    }

    /// Returns the forms by the types of a schema itself, without references and combinations.
    fn own(&mut self, sub: Subschema<'a>, depth: usize) -> Vec<String> {
        let has = |keyword: &str| sub.get(keyword).is_some();
        match sub.get("type") {
            Some(Value::String(name)) => vec![self.typed(sub, name, depth)],
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).map(|name| self.typed(sub, name, depth)).collect()
            }
            _ if has("properties") || (has("additionalProperties") && !has("$ref")) => {
                vec![self.typed(sub, "object", depth)]
            }
            _ if has("items") || has("prefixItems") => vec![self.typed(sub, "array", depth)],
            _ => {
                for keyword in ["required", "minimum", "maximum", "pattern", "minLength", "maxLength", "format"] {
                    if has(keyword) {
                        self.hidden.keywords.insert(keyword);
                    }
                }
                Vec::new()
            }
        }
    }

    fn typed(&mut self, sub: Subschema<'a>, name: &str, depth: usize) -> String {
        match name {
            "null" => "nil".to_owned(),
            "boolean" => ":bool".to_owned(),
            "integer" => format!(":int{}", range(sub, "minimum", "maximum")),
            "number" => format!(":float{}", range(sub, "minimum", "maximum")),
            "string" => self.string(sub),
            "array" => self.vector(sub, depth),
            "object" => self.map(sub, depth),
            other => format!(":{other}"),
        }
    }

    fn string(&mut self, sub: Subschema<'a>) -> String {
        /// The maximum length of a pattern that is shown.
        const PATTERN: usize = 40;
        let mut parts = Vec::new();
        if let Some(Value::String(format)) = sub.get("format") {
            parts.push(cut(format, 30));
        }
        let length = between(sub, "minLength", "maxLength");
        if !length.is_empty() {
            parts.push(format!("length {length}"));
        }
        match sub.get("pattern") {
            Some(Value::String(pattern)) if pattern.len() <= PATTERN => {
                parts.push(format!("#\"{}\"", pattern.replace(['\n', '\r'], " ")));
            }
            Some(_) => drop(self.hidden.keywords.insert("pattern")),
            None => {}
        }
        if parts.is_empty() { ":string".to_owned() } else { format!(":string<{}>", parts.join(", ")) }
    }

    fn vector(&mut self, sub: Subschema<'a>, depth: usize) -> String {
        let (max, _, values) = self.detail;
        let count = range(sub, "minItems", "maxItems");
        let listed = |keyword: &str| sub.get(keyword).and_then(Value::as_array);
        let parts = listed("prefixItems").or_else(|| listed("items"));
        let rest = match (listed("items"), sub.get("prefixItems")) {
            (Some(_), _) => sub.get("additionalItems"),
            _ => sub.get("items"),
        };
        if depth >= max {
            self.hidden.deeper |= parts.is_some() || rest.is_some_and(|rest| rest != &Value::Bool(true));
            return format!("[:any]{count}");
        }
        let rest_shown = match rest {
            Some(Value::Bool(false)) => None,
            Some(rest) => Some(self.of(sub.part(rest), depth + 1)),
            None => Some(":any".to_owned()),
        };
        let Some(parts) = parts else {
            return format!("[{}]{count}", rest_shown.unwrap_or_default());
        };
        let mut shown: Vec<String> = parts.iter().take(values).map(|part| self.of(sub.part(part), depth + 1)).collect();
        if parts.len() > values {
            self.hidden.values = true;
            shown.push("...".to_owned());
        } else if let Some(rest) = rest_shown {
            shown.push(format!("& {rest}"));
        }
        format!("[{}]{count}", shown.join(", "))
    }

    fn map(&mut self, sub: Subschema<'a>, depth: usize) -> String {
        let has_fields = sub.get("properties").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty())
            || sub.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
        let more = sub.get("additionalProperties").filter(|more| more.as_object().is_some_and(|more| !more.is_empty()));
        if !has_fields && more.is_none() {
            return if sub.get("additionalProperties") == Some(&Value::Bool(false))
                && sub.get("patternProperties").is_none()
            {
                "{}".to_owned()
            } else {
                ":map".to_owned()
            };
        }
        if depth >= self.detail.0 {
            self.hidden.deeper = true;
            return ":map".to_owned();
        }
        format!("{{{}}}", self.fields(sub, depth))
    }

    /// Writes the fields of a map, required ones first.
    fn fields(&mut self, sub: Subschema<'a>, depth: usize) -> String {
        let none = Map::new();
        let fields = sub.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> = match sub.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        // In a canonical order: required fields as listed, then the others by name.
        let needed: BTreeSet<&str> = required.iter().copied().collect();
        let others = fields.keys().map(String::as_str).filter(|name| !needed.contains(name));
        let names: Vec<&str> = required.iter().copied().chain(others).collect();
        let mut shown = Vec::new();
        for name in names.iter().take(self.detail.1) {
            let is_needed = needed.contains(name);
            shown.push(match sub.schema.get("properties").and_then(|fields| fields.get(*name)) {
                Some(of) => self.field(name, sub.part(of), is_needed, depth),
                None => format!("{} :any", key(name)),
            });
        }
        if names.len() > self.detail.1 {
            self.hidden.fields += names.len() - self.detail.1;
            shown.push("...".to_owned());
            return shown.join(", ");
        }
        let patterned = sub.get("patternProperties").is_some();
        match sub.get("additionalProperties") {
            Some(Value::Object(more)) if !more.is_empty() => {
                let of = sub.get("additionalProperties").map(|more| self.of(sub.part(more), depth + 1));
                shown.push(format!("* {}", of.unwrap_or_default()));
            }
            Some(Value::Bool(false)) if !patterned => {}
            // A result may always have more fields, as with signatures.
            _ if self.is_result => {}
            _ => shown.push("...".to_owned()),
        }
        shown.join(", ")
    }

    fn field(&mut self, name: &str, of: Subschema<'a>, is_needed: bool, depth: usize) -> String {
        /// The maximum length of a default that is shown.
        const DEFAULT: usize = 30;
        let mut forms = self.forms(of, depth + 1);
        let may_be_nil = forms.len() > 1 && forms.contains(&"nil".to_owned());
        let mut out = key(name);
        let shown = if !is_needed && may_be_nil {
            forms.retain(|form| form != "nil");
            format!("{}?", grouped(&forms))
        } else {
            if !is_needed {
                out.push('?');
            }
            forms.join("|")
        };
        // Writing to a string cannot fail.
        let _ = write!(out, " {shown}");
        if let Some(default) = of.get("default").filter(|default| !default.is_null()) {
            let text = default.to_string();
            if text.len() <= DEFAULT {
                let _ = write!(out, " = {text}");
            }
        }
        out
    }

    fn reference(&mut self, sub: Subschema<'a>, reference: &str, depth: usize) -> Vec<String> {
        let Target::Known(target) = self.document.target(sub, reference) else {
            self.hidden.keywords.insert("$ref");
            return vec![":any".to_owned()];
        };
        let name = cut(reference.rsplit(['/', '#']).next().filter(|name| !name.is_empty()).unwrap_or("this"), 40);
        if let Some(open) = self.open.iter_mut().find(|open| open.0 == target.key()) {
            open.1 = true;
            // The arguments as a whole have no other name.
            return vec![if std::ptr::eq(target.key(), self.document.root.schema) {
                "@this".to_owned()
            } else {
                format!("@{name}")
            }];
        }
        self.open.push((target.key(), false));
        let forms = self.forms(target, depth);
        match self.open.pop() {
            Some((_, true)) => vec![format!("@{name}={}", grouped(&forms))],
            _ => forms,
        }
    }

    fn literal(&mut self, value: &Value) -> String {
        const LITERAL: usize = 60;
        if value.is_null() {
            return "nil".to_owned();
        }
        let text = value.to_string();
        if text.len() <= LITERAL {
            return text;
        }
        self.hidden.values = true;
        match value {
            Value::String(text) => Value::from(cut(text, LITERAL)).to_string(),
            Value::Array(_) => "[...]".to_owned(),
            _ => "{...}".to_owned(),
        }
    }

    /// Notes what the line does not show of a schema.
    fn note(&mut self, sub: Subschema<'a>) {
        let Value::Object(schema) = sub.schema else { return };
        for keyword in BEYOND {
            let says_nothing = |value: &Value| value == &Value::Bool(false) && !keyword.starts_with("unevaluated");
            if schema.get(*keyword).is_some_and(|value| !says_nothing(value)) {
                self.hidden.keywords.insert(keyword);
            }
        }
    }
}

/// Returns whether the alternatives of a schema have shapes of their own; others only narrow it.
fn says_more(sub: Subschema<'_>, keyword: &str) -> bool {
    let Some(Value::Array(parts)) = sub.get(keyword) else { return false };
    let has_shape = |part: &Value| SHAPES.iter().any(|keyword| part.get(*keyword).is_some());
    parts.iter().any(has_shape)
}

/// Returns the forms of a value that must match all of these.
fn together(mut all: Vec<Vec<String>>) -> Vec<String> {
    match all.len() {
        0 => vec![":any".to_owned()],
        1 => all.pop().unwrap_or_default(),
        _ => vec![all.iter().map(|forms| grouped(forms)).collect::<Vec<_>>().join(" & ")],
    }
}

/// Groups forms into one.
fn grouped(forms: &[String]) -> String {
    match forms {
        [one] if !one.contains(" & ") => one.clone(),
        many => format!("({})", many.join("|")),
    }
}

/// Returns a name as it is written in a line.
fn key(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-');
    if is_plain { name.to_owned() } else { Value::from(cut(name, 60)).to_string() }
}

/// Returns `1..10`, `1..`, `..10`, or nothing.
fn between(sub: Subschema<'_>, low: &str, high: &str) -> String {
    let number = |keyword: &str| sub.get(keyword).filter(|limit| limit.is_number()).map(ToString::to_string);
    // In draft 4, these flags make the limits themselves exclusive.
    let excluded = |keyword: &str| sub.get(keyword) == Some(&Value::Bool(true));
    let (from, to) = (number(low), number(high));
    let above = if excluded("exclusiveMinimum") { "above " } else { "" };
    let below = if excluded("exclusiveMaximum") { "below " } else { "" };
    match (from, to) {
        (None, None) => String::new(),
        (from, to) => format!(
            "{}..{}",
            from.map(|from| format!("{above}{from}")).unwrap_or_default(),
            to.map(|to| format!("{below}{to}")).unwrap_or_default()
        ),
    }
}

/// Returns the limits of a number or of a length, written after the type.
fn range(sub: Subschema<'_>, low: &str, high: &str) -> String {
    let mut parts = Vec::new();
    let plain = between(sub, low, high);
    if !plain.is_empty() {
        parts.push(plain);
    }
    if low == "minimum" {
        for (keyword, word) in [("exclusiveMinimum", "above"), ("exclusiveMaximum", "below"), ("multipleOf", "step")] {
            if let Some(limit) = sub.get(keyword).filter(|limit| limit.is_number()) {
                parts.push(format!("{word} {limit}"));
            }
        }
    }
    if parts.is_empty() { String::new() } else { format!("<{}>", parts.join(", ")) }
}
