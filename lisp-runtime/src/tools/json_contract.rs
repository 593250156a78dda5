//! A tool's JSON Schemas: what its arguments and results are checked against, and the line that models read.

use super::line::{Line, line, parameters};
use super::schema::{Of, Schema};
use super::schema_error::SchemaError;
use super::signature::{sentence, sentence_of_arguments};
use super::words::{cut, one_line};
use lisp_core::{Error, Reason};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::fmt::Write;
use std::sync::OnceLock;

/// The schemas of a tool.
#[derive(Debug)]
pub(crate) struct JsonContract {
    input: Schema,
    output: Option<Schema>,
    pub(crate) line: Line,
    /// Both as JSON text, when somebody has asked for it.
    texts: OnceLock<(Box<RawValue>, Option<Box<RawValue>>)>,
}

impl JsonContract {
    pub(crate) fn new(input: Schema, output: Option<Schema>) -> Self {
        let line = line(&input, output.as_ref());
        JsonContract { input, output, line, texts: OnceLock::new() }
    }

    /// Reads both schemas.
    pub(crate) fn read(input: &str, output: Option<&str>) -> Result<Self, SchemaError> {
        let input = Schema::read(input, Of::Arguments).map_err(|error| error.at("the schema of its arguments"))?;
        let output = output
            .map(|output| Schema::read(output, Of::Results))
            .transpose()
            .map_err(|error| error.at("the schema of its results"))?;
        Ok(JsonContract::new(input, output))
    }

    /// The schemas of its arguments and of its results as JSON text.
    pub(crate) fn texts(&self) -> (&RawValue, Option<&RawValue>) {
        // Documents that were read from JSON: there is nothing in them that it cannot say.
        let text = |schema: &Schema| to_raw_value(&schema.document).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let (input, output) = self.texts.get_or_init(|| (text(&self.input), self.output.as_ref().map(text)));
        (input, output.as_deref())
    }

    /// What its line does not say of the schemas; `None` when it says all.
    pub(crate) fn remark(&self) -> Option<&str> {
        self.line.remark.as_deref()
    }

    /// Are these its schemas?
    pub(crate) fn is_of(&self, input: &RawValue, output: Option<&RawValue>) -> bool {
        let is = |schema: &Schema, text: &RawValue| {
            serde_json::from_str::<Value>(text.get()).is_ok_and(|document| document == schema.document)
        };
        let output = match (&self.output, output) {
            (None, None) => true,
            (Some(schema), Some(text)) => is(schema, text),
            _ => false,
        };
        output && is(&self.input, input)
    }

    /// The parameters whose names have hyphens: keywords that name them stay as they are.
    pub(crate) fn hyphenated(&self) -> Vec<String> {
        parameters(&self.input).into_iter().filter(|name| name.contains('-')).collect()
    }

    /// Why a call with these arguments, JSON text, is not made. The values of redacted ones are not in it.
    pub(crate) fn refused(&self, tool: &str, arguments: &str, redacted: &[String]) -> Option<Error> {
        let mismatches = self.input.check(arguments, "");
        (!mismatches.is_empty()).then(|| {
            let told = told(&sentence_of_arguments(&mismatches, redacted));
            Error::new(Reason::InvalidToolArgs, format!("tool/{tool}: {told}"))
                .hint(format!("tool/{tool}: {}", self.line.text))
        })
    }

    /// Why a result, JSON text, does not come to the program.
    pub(crate) fn unfit(&self, tool: &str, result: &str) -> Option<Error> {
        let mismatches = self.output.as_ref()?.check(result, "return");
        (!mismatches.is_empty()).then(|| {
            let text = format!("tool/{tool}: its result does not fit its schema: {}", told(&sentence(&mismatches)));
            Error::new(Reason::ToolError, text)
        })
    }

    /// What is said of each parameter, a line each.
    pub(crate) fn notes(&self) -> String {
        /// The most parameters, and the most bytes of a note.
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

fn told(mismatches: &str) -> String {
    cut(mismatches, 2_000)
}
