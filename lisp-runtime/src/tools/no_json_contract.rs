//! Replaces the JSON Schemas of tools when the feature `json-schema` is off.

use super::schema_error::SchemaError;
use super::tool::Tool;
use lisp_core::Error;
use serde_json::value::RawValue;
use std::sync::Arc;

/// The schemas of a tool, which never exist.
#[derive(Debug)]
pub(crate) enum JsonContract {}

/// What the schemas of a request may cost to read, where none is read.
#[derive(Debug)]
pub(crate) struct Allowance;

impl Allowance {
    pub(crate) fn of_request() -> Self {
        Allowance
    }
}

fn no_schemas() -> SchemaError {
    SchemaError::new("it has a JSON Schema: build ptc-lisp-runtime with the feature json-schema")
}

impl JsonContract {
    pub(crate) fn within(_: Option<&str>, _: Option<&str>, _: &mut Allowance) -> Result<Arc<Self>, SchemaError> {
        Err(no_schemas())
    }

    pub(crate) fn hyphenated(&self) -> Vec<String> {
        match *self {}
    }

    pub(crate) fn derived(&self) -> Option<&str> {
        match *self {}
    }

    pub(crate) fn line_text(&self) -> &str {
        match *self {}
    }

    pub(crate) fn texts(&self) -> (&RawValue, Option<&RawValue>) {
        match *self {}
    }

    pub(crate) fn extends(&self, _: &RawValue, _: Option<&RawValue>) -> bool {
        match *self {}
    }

    pub(crate) fn difference(&self, _: &RawValue, _: Option<&RawValue>) -> (String, String) {
        match *self {}
    }

    pub(crate) fn remark(&self) -> Option<&str> {
        match *self {}
    }

    pub(crate) fn validate_arguments(&self, _: &str, _: &str, _: &[String]) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn validate_result(&self, _: &str, _: &str) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn notes(&self) -> String {
        match *self {}
    }
}

impl Tool {
    /// Fails: a record with the schemas of a tool needs the feature.
    pub(crate) fn of_schemas(_: &str, _: &str, _: Option<&str>) -> Result<Self, SchemaError> {
        Err(no_schemas())
    }
}
