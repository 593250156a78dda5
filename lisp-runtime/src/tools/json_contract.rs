//! The JSON Schemas of a tool, and the line that models read.

pub(crate) use super::allowance::Allowance;
use super::derived::signature_of;
use super::line::{Line, line, parameters};
use super::schema::{Of, Schema};
use super::schema_error::SchemaError;
use super::signature::{sentence, sentence_of_arguments};
use super::words::{cut, one_line};
use lisp_core::{Error, Reason};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

/// The schema of arguments if none is given.
const ANY_OBJECT: &str = r#"{"type": "object"}"#;

/// The schemas of a tool.
#[derive(Debug)]
pub(crate) struct JsonContract {
    input: Schema,
    output: Option<Schema>,
    line: Line,
    /// Both schemas as JSON text, made on first use.
    texts: OnceLock<(Box<RawValue>, Option<Box<RawValue>>)>,
    /// Its signature for checks before a run, made on first use.
    derived: OnceLock<Option<String>>,
}

impl JsonContract {
    /// Creates the contract from schemas of the host.
    pub(crate) fn new(input: Schema, output: Option<Schema>) -> Self {
        JsonContract::of(input, output, &mut Allowance::of_one())
    }

    fn of(input: Schema, output: Option<Schema>, allowance: &mut Allowance) -> Self {
        let line = line(&input, output.as_ref(), &mut allowance.line_steps);
        JsonContract { input, output, line, texts: OnceLock::new(), derived: OnceLock::new() }
    }

    /// Parses both schemas, each within an allowance of its own.
    pub(crate) fn read(input: &str, output: Option<&str>) -> Result<Self, SchemaError> {
        let input = JsonContract::read_input(input, &mut Allowance::of_one())?;
        let output = output.map(|output| JsonContract::read_output(output, &mut Allowance::of_one())).transpose()?;
        Ok(JsonContract::new(input, output))
    }

    /// Parses both schemas within one allowance. Without a schema, arguments are any object.
    pub(crate) fn within(
        input: Option<&str>,
        output: Option<&str>,
        allowance: &mut Allowance,
    ) -> Result<Arc<Self>, SchemaError> {
        let input = JsonContract::read_input(input.unwrap_or(ANY_OBJECT), allowance)?;
        let output = output.map(|output| JsonContract::read_output(output, allowance)).transpose()?;
        Ok(Arc::new(JsonContract::of(input, output, allowance)))
    }

    fn read_input(text: &str, allowance: &mut Allowance) -> Result<Schema, SchemaError> {
        Schema::read(text, Of::Arguments, allowance).map_err(|error| error.at("the schema of its arguments"))
    }

    fn read_output(text: &str, allowance: &mut Allowance) -> Result<Schema, SchemaError> {
        Schema::read(text, Of::Results, allowance).map_err(|error| error.at("the schema of its results"))
    }

    /// Returns the schemas of the arguments and the result as JSON text.
    pub(crate) fn texts(&self) -> (&RawValue, Option<&RawValue>) {
        // The documents were parsed from JSON, so writing them cannot fail.
        let text = |schema: &Schema| to_raw_value(&schema.document).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let (input, output) = self.texts.get_or_init(|| (text(&self.input), self.output.as_ref().map(text)));
        (input, output.as_deref())
    }

    /// Returns the signature that its schemas imply, for checks before a run.
    pub(crate) fn derived(&self) -> Option<&str> {
        let output = self.output.as_ref().map(|schema| &schema.document);
        let derived = || signature_of(&self.input.document, output).map(|signature| signature.to_string());
        self.derived.get_or_init(derived).as_deref()
    }

    /// Returns the line that models read.
    pub(crate) fn line_text(&self) -> &str {
        &self.line.text
    }

    /// Returns what the line does not show of the schemas; `None` if it shows everything.
    pub(crate) fn remark(&self) -> Option<&str> {
        self.line.remark.as_deref()
    }

    /// Returns whether these were its schemas, but for parameters that are new and optional.
    pub(crate) fn extends(&self, input: &RawValue, output: Option<&RawValue>) -> bool {
        let read = |text: &RawValue| serde_json::from_str::<Value>(text.get()).ok();
        let is = |schema: &Schema, text: &RawValue| read(text).is_some_and(|document| document == schema.document);
        let output = match (&self.output, output) {
            (None, None) => true,
            (Some(schema), Some(text)) => is(schema, text),
            _ => false,
        };
        output && (is(&self.input, input) || read(input).is_some_and(|was| only_grew(&was, &self.input.document)))
    }

    /// Says where the schemas first differ from those that were: how that is, and how it was.
    pub(crate) fn difference(&self, input: &RawValue, output: Option<&RawValue>) -> (String, String) {
        let read = |text: &RawValue| serde_json::from_str::<Value>(text.get()).unwrap_or_default();
        let says = |which: &str, (path, is, was): Difference<'_>| {
            let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), shown);
            let path = if path.is_empty() { "/" } else { &path };
            (format!("has {} at {path} of its {which} schema", shown(is)), format!("has {} there", shown(was)))
        };
        let was = read(input);
        if !only_grew(&was, &self.input.document)
            && let Some(found) = first_difference(&self.input.document, &was)
        {
            return says("input", found);
        }
        let is = self.output.as_ref().map(|schema| &schema.document);
        let was = output.map(read);
        match (is, &was) {
            (Some(is), Some(was)) => match first_difference(is, was) {
                Some(found) => says("output", found),
                None => ("has other schemas".to_owned(), "has others".to_owned()),
            },
            (None, _) => ("has no output schema".to_owned(), "has one".to_owned()),
            (Some(_), None) => ("has an output schema".to_owned(), "has none".to_owned()),
        }
    }

    /// Returns the parameters whose names have hyphens: keywords for them keep the hyphens.
    pub(crate) fn hyphenated(&self) -> Vec<String> {
        parameters(&self.input).into_iter().filter(|name| name.contains('-')).collect()
    }

    /// Checks the arguments of a call, JSON text. Values of redacted arguments are not in the error.
    pub(crate) fn validate_arguments(&self, tool: &str, arguments: &str, redacted: &[String]) -> Result<(), Error> {
        let mismatches = self.input.check(arguments, "");
        if mismatches.is_empty() {
            return Ok(());
        }
        let message = message(&sentence_of_arguments(&mismatches, redacted));
        Err(Error::new(Reason::InvalidToolArgs, format!("tool/{tool}: {message}"))
            .hint(format!("tool/{tool}: {}", self.line.text)))
    }

    /// Checks a result, JSON text.
    pub(crate) fn validate_result(&self, tool: &str, result: &str) -> Result<(), Error> {
        let mismatches = self.output.as_ref().map(|output| output.check(result, "result")).unwrap_or_default();
        if mismatches.is_empty() {
            return Ok(());
        }
        let text = format!("tool/{tool}: its result does not fit its schema: {}", message(&sentence(&mismatches)));
        Err(Error::new(Reason::ToolError, text))
    }

    /// Returns the descriptions of the parameters, one per line.
    pub(crate) fn notes(&self) -> String {
        /// The maximum number of parameters, and the maximum bytes of a description.
        const NOTES: usize = 60;
        const NOTE: usize = 300;
        let mut out = String::new();
        let fields = self.input.document.get("properties").and_then(Value::as_object);
        for (name, field) in fields.into_iter().flatten().take(NOTES) {
            let Some(text) = field.get("description").and_then(Value::as_str) else { continue };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "  {name}: {}", cut(&one_line(text), NOTE));
        }
        out
    }
}

/// A path in a schema, with the value that is there and the one that was; `None` if there is none.
type Difference<'v> = (String, Option<&'v Value>, Option<&'v Value>);

/// Returns where a value first differs from what it was. What is new comes last.
fn first_difference<'v>(is: &'v Value, was: &'v Value) -> Option<Difference<'v>> {
    let (Value::Object(fields), Value::Object(before)) = (is, was) else {
        return (is != was).then(|| (String::new(), Some(is), Some(was)));
    };
    let below = |name: &str, (path, is, was): Difference<'v>| (format!("/{name}{path}"), is, was);
    let changed = before.iter().find_map(|(name, was)| match fields.get(name) {
        Some(is) => first_difference(is, was).map(|found| below(name, found)),
        None => Some((format!("/{name}"), None, Some(was))),
    });
    let is_new = || fields.iter().find(|(name, _)| !before.contains_key(*name));
    changed.or_else(|| is_new().map(|(name, is)| (format!("/{name}"), Some(is), None)))
}

/// Returns the beginning of a value, as JSON.
fn shown(value: &Value) -> String {
    const MAX: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(MAX) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Returns whether the schema of an object differs from an earlier one by properties that are new and optional.
fn only_grew(was: &Value, is: &Value) -> bool {
    let (Some(was), Some(is)) = (was.as_object(), is.as_object()) else { return false };
    let same = |key: &str| was.get(key) == is.get(key);
    let grows =
        |was: Option<&Value>, is: Option<&Value>| match (was.and_then(Value::as_object), is.and_then(Value::as_object))
        {
            (Some(was), Some(is)) => was.iter().all(|(name, schema)| is.get(name) == Some(schema)),
            (None, Some(_)) => true,
            (_, None) => false,
        };
    was.keys().chain(is.keys()).all(|key| key == "properties" || same(key))
        && grows(was.get("properties"), is.get("properties"))
}

fn message(mismatches: &str) -> String {
    cut(mismatches, 2_000)
}
