//! Arguments of a call as Rust types.

use super::tool_error::ToolError;
use crate::terms::misfit::Misfit;
use lisp_core::json::{Fields, Unexpected};
use lisp_core::text::near_names;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::BTreeMap;

/// Converts the arguments, JSON text, to a type. If some are redacted, the error does not show the value.
pub(super) fn arguments<T: DeserializeOwned>(json: &str, redacted: &[String]) -> Result<T, ToolError> {
    serde_json::from_str(json).map_err(|error| {
        ToolError::invalid_arguments(match redacted {
            [] => message(&Misfit::of::<T>(json, &error), json),
            _ => "the arguments do not fit; some are not shown".to_owned(),
        })
    })
}

/// Converts one of the arguments, JSON text, to a type. A missing argument is null, which some types accept, such as
/// `Option`.
pub(super) fn argument<T: DeserializeOwned>(json: &str, key: &str, redacted: &[String]) -> Result<T, ToolError> {
    let (mut fields, mut value) = (Fields::of(json), None);
    loop {
        match fields.next_field() {
            // If a key occurs more than once, the last one counts.
            Ok(Some((name, text))) if is_key(name, key) => value = Some(text),
            Ok(Some(_)) => {}
            Ok(None) => break,
            // The arguments are not an object; converting them to any object type gives the error.
            Err(Unexpected) => {
                arguments::<BTreeMap<String, IgnoredAny>>(json, redacted)?;
                break;
            }
        }
    }
    serde_json::from_str(value.unwrap_or("null")).map_err(|error| {
        ToolError::invalid_arguments(match value {
            Some(_) if redacted.iter().any(|name| name == key) => {
                format!("argument {key} does not fit; its value is not shown")
            }
            Some(value) => {
                let misfit = Misfit::of::<T>(value, &error);
                let dot = if misfit.path.is_empty() || misfit.path.starts_with('[') { "" } else { "." };
                format!("argument {key}{dot}{}: {}", misfit.path, misfit.in_words())
            }
            None => missing(json, key),
        })
    })
}

/// Returns the error of arguments of which one does not match.
fn message(misfit: &Misfit, json: &str) -> String {
    match (misfit.path.as_str(), misfit.missing()) {
        ("", Some(name)) => missing(json, name),
        ("", None) => misfit.in_words().replacen("unknown field ", "unknown argument ", 1),
        (path, _) => format!("argument {path}: {}", misfit.in_words()),
    }
}

/// Returns the error of a missing argument.
fn missing(json: &str, key: &str) -> String {
    let all: BTreeMap<String, IgnoredAny> = serde_json::from_str(json).unwrap_or_default();
    match near_names(key, &mut all.keys().map(String::as_str), 1).first() {
        Some(near) => format!("argument {key} is missing; there is {near}: did you mean {key}?"),
        None => format!("argument {key} is missing"),
    }
}

/// Returns whether the text of a name is this key.
fn is_key(name: &str, key: &str) -> bool {
    match name.contains('\\') {
        true => serde_json::from_str::<String>(name).is_ok_and(|name| name == key),
        false => name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) == Some(key),
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
        assert_eq!(fault(r#"{"sku": null}"#), "argument sku: expected a string, got nil");
        assert_eq!(
            fault(r#"{"sku": 5}"#),
            "argument sku: expected a string, got the integer 5; write \"5\", in quotes"
        );
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

    #[test]
    fn arguments_that_do_not_fit_are_told_by_their_names() {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(dead_code, reason = "only the reading of them is looked at")]
        struct Order {
            sku: String,
            amounts: Vec<i64>,
        }
        let fault = |json: &str| arguments::<Order>(json, &[]).map(drop).expect_err(json).to_string();
        for (json, message) in [
            (r#"{"skuu": "A", "amounts": []}"#, "unknown argument \"skuu\": did you mean sku?"),
            (r#"{"amounts": []}"#, "argument sku is missing"),
            (r#"{"sku": 1}"#, "argument sku: expected a string, got the integer 1; write \"1\", in quotes"),
            (
                r#"{"sku": "a", "amounts": [1, "2"]}"#,
                "argument amounts[1]: expected an integer, got the string \"2\"; write 2, without quotes",
            ),
        ] {
            assert_eq!(fault(json), message, "{json}");
        }
        let nested =
            argument::<Vec<Order>>(r#"{"all": [{"sku": true}]}"#, "all", &[]).map(drop).expect_err("no string");
        assert_eq!(nested.to_string(), "argument all[0].sku: expected a string, got true");
    }
}
