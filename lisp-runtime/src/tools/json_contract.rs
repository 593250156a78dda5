//! A tool's JSON Schemas: what its arguments and results are checked against, and the line that models read.

use super::document::SchemaError;
use super::line::{Line, line, parameters};
use super::schema::{Of, Schema};
use super::signature::{Mismatch, sentence};
use lisp_core::{Error, Reason};
use serde_json::Value;
use std::fmt::Write;

/// The schemas of a tool.
#[derive(Debug)]
pub(crate) struct JsonContract {
    input: Schema,
    output: Option<Schema>,
    pub(crate) line: Line,
}

impl JsonContract {
    pub(crate) fn new(input: Schema, output: Option<Schema>) -> Self {
        let line = line(&input, output.as_ref());
        JsonContract { input, output, line }
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

    /// The parameters whose names have hyphens: keywords that name them stay as they are.
    pub(crate) fn hyphenated(&self) -> Vec<String> {
        parameters(&self.input).into_iter().filter(|name| name.contains('-')).collect()
    }

    /// Why a call with these arguments, JSON text, is not made.
    pub(crate) fn refused(&self, tool: &str, arguments: &str) -> Option<Error> {
        let mismatches = self.input.check(arguments, "");
        (!mismatches.is_empty()).then(|| {
            Error::new(Reason::InvalidToolArgs, format!("tool/{tool}: {}", told(&mismatches)))
                .hint(format!("tool/{tool}: {}", self.line.text))
        })
    }

    /// Why a result, JSON text, does not come to the program.
    pub(crate) fn unfit(&self, tool: &str, result: &str) -> Option<Error> {
        let mismatches = self.output.as_ref()?.check(result, "return");
        (!mismatches.is_empty()).then(|| {
            let text = format!("tool/{tool}: its result does not fit its schema: {}", told(&mismatches));
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
            let _ = writeln!(out, "  {name}: {}", super::schema::cut(&one_line(text), NOTE));
        }
        out
    }
}

fn told(mismatches: &[Mismatch]) -> String {
    super::schema::cut(&sentence(mismatches), 2_000)
}

/// A text without line breaks.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
