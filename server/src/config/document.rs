//! The text of a configuration file, with the positions of its fields and the files it refers to.

use super::error::ConfigError;
use super::secret::{self, Secret};
use lisp_runtime::internal::near_field;
use serde_json::Value as Json;
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The maximum size of any file that is read.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Looks up environment variables.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The text of a configuration.
pub(super) struct Document<'a> {
    name: &'a str,
    text: &'a str,
    root: Spanned<DeTable<'a>>,
    /// The directory that relative paths start from.
    base: PathBuf,
    environment: Environment<'a>,
}

impl<'a> Document<'a> {
    pub(super) fn parse(
        name: &'a str,
        text: &'a str,
        base: PathBuf,
        environment: Environment<'a>,
    ) -> Result<Self, ConfigError> {
        let root = DeTable::parse(text).map_err(|error| {
            let key = error.span().and_then(|span| text.get(span)).unwrap_or_default().trim();
            let (message, next) = match error.message() {
                "duplicate key" if key == "tenants" => {
                    (format!("{key} occurs twice"), "write [[tenants]] for each tenant")
                }
                "duplicate key" => (format!("{key} occurs twice"), "remove one"),
                // The parser says this of a missing value too.
                other if other.starts_with("string values must be quoted") => {
                    (format!("it is not TOML: {other}"), "write a value after `=`, a string in quotes")
                }
                other => (format!("it is not TOML: {other}"), "write the line as in the example of docs/service.md"),
            };
            let at = error.span().map(|span| position(text, span.start));
            ConfigError { file: name.to_owned(), at, field: String::new(), message, next: next.to_owned() }
        })?;
        Ok(Document { name, text, root, base, environment })
    }

    /// Reads the fields.
    pub(super) fn fields<T: serde::de::DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let read = toml::Deserializer::parse(self.text)
            .map_err(|error| self.unreadable(&error, String::new()))
            .map(serde_path_to_error::deserialize);
        read?.map_err(|error| {
            let path = error.path().to_string();
            self.unreadable(error.inner(), if path == "." { String::new() } else { path })
        })
    }

    fn unreadable(&self, error: &toml::de::Error, field: String) -> ConfigError {
        let message = error.message().trim_end().replace('\n', " ").replace("expected u64", "expected a whole number");
        let near = near_field(&message).map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        let next = match () {
            () if message.starts_with("unknown field") => "use one of these names, or remove the field",
            () if message.ends_with("expected a whole number") => "write one, such as 5000",
            () if message.starts_with("missing field") => "add the field",
            () if message.starts_with("unknown variant") => "write one of these",
            () => "docs/service.md lists the type of each key",
        };
        ConfigError {
            file: self.name.to_owned(),
            at: error.span().map(|span| position(self.text, span.start)),
            field,
            message,
            next: near + next,
        }
    }

    /// An error at a field.
    pub(super) fn error(&self, path: &[&str], message: impl Into<String>, next: impl Into<String>) -> ConfigError {
        ConfigError {
            file: self.name.to_owned(),
            at: self.position(path),
            field: shown(path),
            message: message.into(),
            next: next.into(),
        }
    }

    /// Returns whether the field exists. Works for fields in tables only.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        let [tables @ .., field] = path else { return true };
        let within = tables.iter().try_fold(self.root.get_ref(), |table, step| match table.get(*step)?.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        });
        within.is_some_and(|table| table.contains_key(*field))
    }

    /// Line and column of a field's value, or of the innermost table around it that exists.
    pub(super) fn position(&self, path: &[&str]) -> Option<(usize, usize)> {
        self.start(path).map(|start| position(self.text, start))
    }

    /// The first byte of a field's value, or of the innermost table around it that exists.
    fn start(&self, path: &[&str]) -> Option<usize> {
        let mut table = self.root.get_ref();
        let mut start = None;
        let mut steps = path.iter();
        while let Some(step) = steps.next() {
            let Some((key, mut value)) = table.get_key_value(*step) else { break };
            start = Some(key.span().start);
            while let DeValue::Array(items) = value.get_ref() {
                let Some(item) = steps.next().and_then(|step| items.get(step.parse::<usize>().ok()?)) else {
                    break;
                };
                start = Some(item.span().start);
                value = item;
            }
            match value.get_ref() {
                DeValue::Table(inner) => {
                    // A value after its name, rather than a table below it.
                    if value.span().start > key.span().end {
                        start = Some(value.span().start);
                    }
                    table = inner;
                }
                _ => {
                    start = Some(value.span().start);
                    break;
                }
            }
        }
        start
    }

    /// Checks that a number is in its range.
    pub(super) fn within(&self, path: &[&str], given: u64, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
        if range.contains(&given) {
            return Ok(given);
        }
        let (least, max) = (range.start(), range.end());
        let message = format!("it is {given}, and must be {least} to {max}");
        Err(self.error(path, message, "write a number within this range"))
    }

    /// Checks that a number of objects in memory is in its range.
    pub(super) fn count(&self, path: &[&str], given: u64, range: RangeInclusive<u64>) -> Result<usize, ConfigError> {
        self.within(path, given, range).map(|given| usize::try_from(given).unwrap_or(usize::MAX))
    }

    /// Resolves a path against the directory of the configuration.
    pub(super) fn path(&self, given: impl AsRef<Path>) -> PathBuf {
        self.base.join(given)
    }

    /// Reads a file that the configuration names.
    pub(super) fn file(&self, path: &[&str], given: &str) -> Result<String, ConfigError> {
        let at = self.path(given);
        read_bounded(&at).map_err(|error| {
            let message = format!("the file {} cannot be read: {error}", at.display());
            self.error(path, message, "correct the path; it is relative to the folder of the configuration")
        })
    }

    /// Returns a JSON Schema as JSON text. It is given as a table or in a file.
    pub(super) fn schema(
        &self,
        path: &[&str],
        table: Option<&toml::Table>,
        file: Option<&str>,
        names: [&str; 2],
    ) -> Result<Option<String>, ConfigError> {
        let of = |name| [path, &[name]].concat();
        match (table, file) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                let message = format!("{} is given, too", names[0]);
                Err(self.error(&of(names[1]), message, "remove one of the two"))
            }
            (Some(table), None) => {
                let json = json_of_table(table).ok_or_else(|| {
                    self.error(&of(names[0]), "it has a number that JSON does not have", "write another number")
                })?;
                Ok(Some(json.to_string()))
            }
            (None, Some(file)) => self.file(&of(names[1]), file).map(Some),
        }
    }

    /// Replaces each `${NAME}` by the value of that environment variable.
    pub(super) fn secret(&self, path: &[&str], template: &str) -> Result<Secret, ConfigError> {
        secret::fill(template, self.environment).map_err(|(message, next)| self.error(path, message, next))
    }
}

/// A path to a field, as written in TOML.
fn shown(path: &[&str]) -> String {
    let mut text = String::new();
    for step in path {
        let is_index = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        match (is_index, text.is_empty()) {
            (true, false) => text.push_str(&format!("[{step}]")),
            (_, true) => text.push_str(step),
            _ => {
                text.push('.');
                text.push_str(step);
            }
        }
    }
    text
}

/// Line and column of a byte, from 1.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// Reads a file of at most 16 MiB.
pub(super) fn read_bounded(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if read as u64 > FILE_BYTES {
        return Err(format!("it has more than {FILE_BYTES} bytes"));
    }
    Ok(text)
}

fn json_of_table(table: &toml::Table) -> Option<Json> {
    table.iter().map(|(key, value)| Some((key.clone(), json_of(value)?))).collect::<Option<_>>().map(Json::Object)
}

/// Converts a TOML value to JSON; dates become strings. The TOML parser limits the depth. Returns `None` for numbers
/// that JSON does not have.
fn json_of(value: &toml::Value) -> Option<Json> {
    Some(match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => Json::Number(serde_json::Number::from_f64(*number)?),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.iter().map(json_of).collect::<Option<_>>().map(Json::Array)?,
        toml::Value::Table(table) => json_of_table(table)?,
    })
}
