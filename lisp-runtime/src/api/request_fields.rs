//! The fields of a request. Those that may hold much text are found by their brackets alone: the run reads them, and serde would
//! read them first only to find their ends.

use lisp_core::json::{Fields, Unexpected};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess};
use serde_json::Error;

/// The fields that may hold much text, as they stand in the request.
#[derive(Default)]
pub(super) struct Large<'a> {
    pub(super) data: Option<&'a str>,
    pub(super) memory: Option<&'a str>,
    pub(super) history: Option<&'a str>,
}

/// Reads the others as a `T`.
///
/// # Errors
/// When it is none. The place is left out.
pub(super) fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<(T, Large<'a>), Error> {
    let mut fields = RequestFields { fields: Fields::of(json), value: "", large: Large::default() };
    let others = T::deserialize(MapAccessDeserializer::new(&mut fields))?;
    let Large { data, memory, history } = fields.large;
    let some = |text: Option<&'a str>| text.filter(|&text| text != "null");
    Ok((others, Large { data: some(data), memory: some(memory), history: some(history) }))
}

/// The fields of a request for serde, but for the large ones.
struct RequestFields<'a> {
    fields: Fields<'a>,
    /// The value of the key that serde has.
    value: &'a str,
    large: Large<'a>,
}

impl<'a> MapAccess<'a> for &mut RequestFields<'a> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        while let Some((key, value)) = self.fields.next_field().map_err(|Unexpected| Error::custom("no object"))? {
            let large = match key {
                "\"data\"" => &mut self.large.data,
                "\"memory\"" => &mut self.large.memory,
                "\"history\"" => &mut self.large.history,
                // It may be one of these.
                _ if key.contains('\\') => return Err(Error::custom("a key with an escape")),
                _ => {
                    self.value = value;
                    return seed.deserialize(&mut serde_json::Deserializer::from_str(key)).map(Some);
                }
            };
            if large.replace(value).is_some() {
                return Err(Error::duplicate_field("a large one"));
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let mut deserializer = serde_json::Deserializer::from_str(self.value);
        let value = seed.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }
}

/// JSON text as a part of JSON.
pub(super) mod json_text {
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::value::RawValue;

    pub(in crate::api) fn serialize<S: Serializer>(text: &Option<&str>, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Option<&RawValue> = text.map(serde_json::from_str).transpose().map_err(S::Error::custom)?;
        value.serialize(serializer)
    }

    pub(in crate::api) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<&'de str>, D::Error> {
        Ok(Option::<&RawValue>::deserialize(deserializer)?.map(RawValue::get))
    }
}

#[cfg(test)]
mod tests {
    use crate::api::engine::Engine;
    use crate::api::envelope::{Request, answer_line};
    use proptest::prelude::*;

    const PARTS: [&str; 22] = [
        r#""program":"(inc data/n)""#,
        r#""program":"\"\u00e9\"""#,
        r#""program":1"#,
        r#""id":[1, "}"]"#,
        r#""id":tru"#,
        r#""data":{"n":[1,{"a":"]\"}"}]}"#,
        r#""data":null"#,
        r#""data":"n""#,
        r#""d\u0061ta":{"n":1}"#,
        r#""dta":{}"#,
        r#""memory":{"m":-1.5e3}"#,
        r#""history":[]"#,
        r#""history":[[[1]],2]"#,
        r#""setup":["(def a 1)"]"#,
        r#""limits":{"fuel":10}"#,
        r#""tools":{"t":{"returns":[1]}}"#,
        r#""omit":["memory"]"#,
        r#""strict_data":true"#,
        r#""isolation":"process""#,
        r#""json_keys":"keywords""#,
        "",
        "7",
    ];

    proptest! {
        /// What serde takes for a request is the same request here, and what it does not take is refused in its words.
        #[test]
        fn a_request_is_what_serde_reads(
            parts in proptest::collection::vec(0..PARTS.len(), 0..6),
            (open, close) in prop_oneof![Just(("{", "}")), Just((" {\n", " } ")), Just(("{", "")), Just(("[", "]"))],
        ) {
            let text = format!("{open}{}{close}", parts.iter().map(|&part| PARTS[part]).collect::<Vec<_>>().join(" , "));
            match (serde_json::from_str::<Request<'_>>(&text), Request::parse(&text)) {
                // An array of the fields' values is one for serde.
                (Ok(_), Err(_)) if open == "[" => {}
                (Ok(strict), parsed) => {
                    prop_assert_eq!(format!("{strict:?}"), format!("{:?}", parsed.expect("a request")), "{}", text);
                }
                (Err(_), Err(_)) if open == "[" => {}
                (Err(strict), Err(parsed)) => prop_assert_eq!(strict.to_string(), parsed.to_string(), "{}", text),
                (Err(strict), Ok(parsed)) => panic!("{text}: {strict} and {parsed:?}"),
            }
        }
    }

    #[test]
    fn what_is_large_and_no_json_is_named_by_the_run() {
        for (field, message) in [
            (r#""data":{"n":[1 2]}"#, "the data cannot be brought in: invalid JSON at byte 8"),
            (r#""data":nul"#, "the data cannot be brought in: invalid JSON at byte 3"),
            (r#""memory":{"n":tru}"#, "the memory cannot be brought in: invalid JSON at byte 8"),
            (r#""history":[1,]"#, "the history cannot be brought in: invalid JSON at byte 3"),
            (r#""data":{},"data":{}"#, "not a request: duplicate field `data` at line 1 column"),
            (r#""data":{"n":[1}]}"#, "not a request: expected `,` or `]` at line 1 column"),
        ] {
            let answer = answer_line(&Engine::default(), &format!(r#"{{"id":7,"program":"1",{field}}}"#));
            let error = answer.error.expect("an error");
            assert_eq!(error.reason, "parse_error");
            assert!(error.message.starts_with(message), "{field}: {}", error.message);
        }
    }

    #[test]
    fn a_request_is_written_with_its_texts_inside() {
        let request = Request::parse(r#"{"program":"1","data":{"n": [1]},"history":[2]}"#).expect("a request");
        let json = serde_json::to_string(&request).expect("JSON");
        assert!(json.contains(r#""data":{"n": [1]},"history":[2]"#), "{json}");
        let broken = Request { data: Some("{"), ..Request::default() };
        assert!(serde_json::to_string(&broken).is_err());
    }
}
