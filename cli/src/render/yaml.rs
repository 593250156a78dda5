//! Values as YAML. Strings that a reader of YAML 1.1 or 1.2 would take for something else are quoted.

use super::fields::Fields;
use serde::ser::{Error, Serialize, Serializer};
use serde_json::value::RawValue;

/// Returns JSON text as a YAML document.
///
/// # Errors
/// Why it has none, such as an integer of more than 128 bits.
pub(super) fn document(json: &str) -> Result<String, String> {
    let value: &RawValue = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let options = serde_saphyr::ser_options! {
        // Lines stay as long as they are.
        folded_wrap_chars: usize::MAX,
    };
    let text = serde_saphyr::to_string_with_options(&Node(value), options);
    text.map_err(|error| error.to_string())
}

/// A value as JSON text, whose numbers stay exact.
struct Node<'j>(&'j RawValue);

impl Serialize for Node<'_> {
    // The writer of JSON bounds the depth.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.get();
        let unread = |error: serde_json::Error| S::Error::custom(error);
        match text.as_bytes() {
            [b'{', ..] => {
                let fields: Fields<'_> = serde_json::from_str(text).map_err(unread)?;
                serializer.collect_map(fields.0.iter().map(|(key, value)| (key, Node(value))))
            }
            [b'[', ..] => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(unread)?;
                serializer.collect_seq(items.into_iter().map(Node))
            }
            [b'"', ..] => serializer.serialize_str(&serde_json::from_str::<String>(text).map_err(unread)?),
            b"null" => serializer.serialize_unit(),
            b"true" => serializer.serialize_bool(true),
            b"false" => serializer.serialize_bool(false),
            _ => number(text, serializer),
        }
    }
}

fn number<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let too_large = || S::Error::custom(format!("it has the number {text}, which is too large"));
    if !text.contains(['.', 'e', 'E']) {
        return match text.parse::<i128>() {
            Ok(number) => serializer.serialize_i128(number),
            Err(_) => serializer.serialize_u128(text.parse().map_err(|_| too_large())?),
        };
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => serializer.serialize_f64(number),
        _ => Err(too_large()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn again(json: &str) -> (String, String) {
        let yaml = document(json).unwrap();
        let read = lisp_runtime::internal::yaml(&yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
        (yaml, read)
    }

    #[test]
    fn a_document_is_in_block_style() {
        let value = json!({"a": [1, {"b": null, "c": "x"}, []], "d": {}, "e": "two\nlines\n", "f": 1.0, "g": "a: b"});
        let (yaml, read) = again(&value.to_string());
        assert_eq!(yaml, "a:\n- 1\n- b: null\n  c: x\n- []\nd: {}\ne: |\n  two\n  lines\nf: 1.0\ng: \"a: b\"\n");
        assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), value);
        assert_eq!(document("5").unwrap(), "5\n");
    }

    /// What a reader would take for another value is a string when it is read again.
    #[test]
    fn strings_that_look_like_something_else_stay_strings() {
        for text in [
            "",
            "1",
            "-1",
            "+1",
            "1.5",
            ".5",
            "1e3",
            "010",
            "0x1F",
            "0o7",
            "0b11",
            "1_000",
            ".inf",
            ".nan",
            "~",
            "null",
            "Null",
            "true",
            "True",
            "yes",
            "no",
            "on",
            "off",
            "y",
            "2020-01-01",
            "2020-01-01T00:00:00Z",
            "12:30",
            "12:30:45",
            "=",
            "<<",
            "- a",
            "-",
            "---",
            "...",
            "# x",
            "a # x",
            "a: b",
            "a:",
            ":",
            "[x]",
            "{x}",
            "*a",
            "&a",
            "!a",
            "!!int 1",
            "%a",
            "@a",
            "`a",
            "? a",
            "| a",
            "> a",
            "'",
            "\"",
            " a",
            "a ",
            "\ta",
            "a\t",
            "a\n",
            "a\n\n",
            "\na",
            " \n a",
            "\n",
            "a\nb ",
            "a\r\nb",
            "\u{feff}a",
            "\u{85}",
            "\u{2028}",
            "\u{0}",
            "\u{1b}[0m",
            "\\",
            "\\n",
            "é",
            "💡",
            "a\u{fffe}b",
        ] {
            let value = json!([text, {text: text}]);
            let (yaml, read) = again(&value.to_string());
            assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), value, "{yaml}");
        }
    }

    /// Words that only YAML 1.1 takes for another value are quoted too. The reader of these tests is one of 1.2.
    #[test]
    fn words_of_yaml_1_1_are_quoted() {
        for text in
            ["yes", "No", "ON", "off", "y", "N", "0b11", "1_000", "0777", "12:30", "12:30:45", "2020-01-01", "=", "<<"]
        {
            assert_eq!(document(&json!([text]).to_string()).unwrap(), format!("- \"{text}\"\n"));
        }
    }

    #[test]
    fn integers_are_exact_or_an_error() {
        for text in ["123456789012345678901234567890", "-9223372036854775809", "18446744073709551616", "-1"] {
            assert_eq!(again(text).1, text);
        }
        let error = document(&"9".repeat(60)).unwrap_err();
        assert!(error.contains("too large"), "{error}");
    }

    fn strings() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[-+0-9xob_.eE:]{1,6}",
            "[ \n\t\r#:,\\-'\"\\[\\]{}&*!|>%@`a~]{1,12}",
            "[0-9]{4}-[0-9]{2}-[0-9]{2}",
        ]
    }

    fn values() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_filter("JSON has it", |number| number.is_finite()).prop_map(Value::from),
            strings().prop_map(Value::from),
        ];
        plain.prop_recursive(5, 40, 6, |part| {
            prop_oneof![
                prop::collection::vec(part.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(strings(), part, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same_value(value in values()) {
            let (yaml, read) = again(&value.to_string());
            prop_assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), value, "{}", yaml);
        }
    }
}
