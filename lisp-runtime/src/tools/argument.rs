//! Arguments of a call as types of the host's.

use super::tool_error::ToolError;
use crate::terms::outcome::plain;
use lisp_core::text::near_names;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The arguments, JSON text, as a type. With redacted ones among them an error does not tell what came.
pub(super) fn arguments<T: DeserializeOwned>(json: &str, redacted: &[String]) -> Result<T, ToolError> {
    serde_json::from_str(json).map_err(|error| {
        ToolError::invalid_arguments(match redacted {
            [] => plain(&error),
            _ => "the arguments do not fit; some are not shown".to_owned(),
        })
    })
}

/// One of the arguments, JSON text, as a type; one that is missing is null.
pub(super) fn argument<T: DeserializeOwned>(json: &str, key: &str, redacted: &[String]) -> Result<T, ToolError> {
    let is_shown = !redacted.iter().any(|name| name == key);
    // A key with an escape cannot be borrowed.
    if let Ok(all) = serde_json::from_str::<BTreeMap<&str, &RawValue>>(json) {
        return read(all.get(key).map(|raw| raw.get()), key, is_shown, &mut all.keys().copied());
    }
    let all: BTreeMap<String, Box<RawValue>> = arguments(json, redacted)?;
    read(all.get(key).map(|raw| raw.get()), key, is_shown, &mut all.keys().map(String::as_str))
}

/// The value of an argument as a type. Of one that is missing the type may make something, as `Option` does.
fn read<T: DeserializeOwned>(
    value: Option<&str>,
    key: &str,
    is_shown: bool,
    all: &mut dyn Iterator<Item = &str>,
) -> Result<T, ToolError> {
    serde_json::from_str(value.unwrap_or("null")).map_err(|error| {
        ToolError::invalid_arguments(match (value, near_names(key, all, 1).first()) {
            (Some(_), _) if is_shown => format!("argument {key}: {}", plain(&error)),
            (Some(_), _) => format!("argument {key} does not fit; its value is not shown"),
            (None, Some(near)) => format!("argument {key} is missing; there is {near}: did you mean {key}?"),
            (None, None) => format!("argument {key} is missing"),
        })
    })
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
}
