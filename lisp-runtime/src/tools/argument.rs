//! Arguments of a call as types of the host's.

use super::tool_error::ToolError;
use crate::terms::outcome::plain;
use lisp_core::text::near_names;
use serde::Deserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// The arguments, JSON text, as a type. With redacted ones among them an error does not tell what came.
pub(super) fn arguments<T: DeserializeOwned>(json: &str, redacted: &[String]) -> Result<T, ToolError> {
    serde_json::from_str(json).map_err(|error| {
        ToolError::invalid_arguments(match redacted {
            [] => plain(&error),
            _ => "the arguments do not fit; some are not shown".to_owned(),
        })
    })
}

/// One of the arguments, JSON text, as a type; one that is missing is null. Of one that is missing the type may make something,
/// as `Option` does.
pub(super) fn argument<T: DeserializeOwned>(json: &str, key: &str, redacted: &[String]) -> Result<T, ToolError> {
    let value = match OneOf(key).deserialize(&mut serde_json::Deserializer::from_str(json)) {
        Ok(value) => value,
        // The arguments are no object: any type of one says so.
        Err(_) => arguments::<BTreeMap<String, IgnoredAny>>(json, redacted).map(|_| None)?,
    };
    serde_json::from_str(value.map_or("null", RawValue::get)).map_err(|error| {
        ToolError::invalid_arguments(match value {
            Some(_) if redacted.iter().any(|name| name == key) => {
                format!("argument {key} does not fit; its value is not shown")
            }
            Some(_) => format!("argument {key}: {}", plain(&error)),
            None => missing(json, key),
        })
    })
}

/// The error of an argument that is not there.
fn missing(json: &str, key: &str) -> String {
    let all: BTreeMap<String, IgnoredAny> = serde_json::from_str(json).unwrap_or_default();
    match near_names(key, &mut all.keys().map(String::as_str), 1).first() {
        Some(near) => format!("argument {key} is missing; there is {near}: did you mean {key}?"),
        None => format!("argument {key} is missing"),
    }
}

/// Reads the value of one key of an object, the last of equal ones, and nothing else.
#[derive(Clone, Copy)]
struct OneOf<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for OneOf<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OneOf<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut value = None;
        while let Some(is_it) = map.next_key_seed(IsKey(self.0))? {
            if is_it {
                value = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(value)
    }
}

/// Is a key this one?
struct IsKey<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for IsKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsKey<'_> {
    type Value = bool;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_argument_is_told_by_its_name_and_the_nearest_that_came() {
        let fault = |json: &str| argument::<String>(json, "sku", &[]).expect_err("no sku").to_string();
        assert_eq!(fault(r#"{"skuu": "A"}"#), "argument sku is missing; there is skuu: did you mean sku?");
        assert_eq!(fault(r#"{"sk\u0075u": "A"}"#), "argument sku is missing; there is skuu: did you mean sku?");
        assert_eq!(fault(r#"{"quantity": 1}"#), "argument sku is missing");
        assert!(fault(r#"{"sku": null}"#).starts_with("argument sku: invalid type: null"));
        assert_eq!(argument::<Option<String>>(r#"{"sku": null}"#, "sku", &[]), Ok(None));
        assert_eq!(argument::<Option<String>>("{}", "sku", &[]), Ok(None));
    }

    #[test]
    fn the_last_of_equal_keys_counts_however_it_is_written() {
        assert_eq!(argument(r#"{"sku": "A", "n": {"sku": 1}, "s\u006bu": "B"}"#, "sku", &[]), Ok("B".to_owned()));
        let error = |json: &str| argument::<i64>(json, "n", &["n".to_owned()]).expect_err("no number").to_string();
        assert_eq!(error(r#"{"n": "secret"}"#), "argument n does not fit; its value is not shown");
        assert_eq!(error("[1]"), "the arguments do not fit; some are not shown");
        assert!(argument::<i64>("[1]", "n", &[]).expect_err("no object").to_string().contains("a map"));
    }
}
