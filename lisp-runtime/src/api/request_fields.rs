//! The fields of a request. Large fields are located only by their brackets: the run parses them, so serde need not
//! parse them first just to find their ends.

use lisp_core::json::{Fields, Unexpected};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Error;
use std::borrow::Cow;
use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::marker::PhantomData;

/// The large fields, as raw text.
#[derive(Default)]
pub(super) struct Large<'a> {
    pub(super) data: Option<&'a str>,
    pub(super) memory: Option<&'a str>,
    pub(super) history: Option<&'a str>,
}

/// Reads the other fields as a `T`. In the request, its limits and its tools, the last of equal fields counts.
///
/// # Errors
/// The text does not match. The error has no position.
pub(super) fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<(T, Large<'a>), Error> {
    let mut fields = last_of_each(json)?;
    let mut large = |name: &str| fields.remove(name).filter(|&text| text != "null");
    let large = Large { data: large("data"), memory: large("memory"), history: large("history") };
    let others = RequestFields { fields: fields.into_iter(), value: ("".into(), "") };
    Ok((T::deserialize(MapAccessDeserializer::new(others))?, large))
}

/// Returns the values of an object by key, the last of equal ones.
fn last_of_each(json: &str) -> Result<BTreeMap<Cow<'_, str>, &str>, Error> {
    let (mut fields, mut last) = (Fields::of(json), BTreeMap::new());
    while let Some((key, value)) = fields.next_field().map_err(|Unexpected| Error::custom("no object"))? {
        let key = match key.contains('\\') {
            true => Cow::Owned(serde_json::from_str(key)?),
            false => Cow::Borrowed(key.trim_matches('"')),
        };
        if let Some(before) = last.insert(key, value) {
            // Not used, but it must be valid JSON.
            serde_json::from_str::<IgnoredAny>(before)?;
        }
    }
    Ok(last)
}

/// Returns an object without repeated keys, keeping the last of equal ones, down to `levels` levels. `None` if it has
/// no repeated keys or is not an object.
fn without_repeats(json: &str, levels: usize) -> Option<String> {
    let (mut count, mut fields) = (0, Fields::of(json));
    while fields.next_field().ok()?.is_some() {
        count += 1;
    }
    let last = last_of_each(json).ok()?;
    let (mut text, mut has_changed) = ("{".to_owned(), last.len() < count);
    for (key, value) in last {
        let inner = if levels > 1 { without_repeats(value, levels - 1) } else { None };
        has_changed |= inner.is_some();
        let comma = if text.len() > 1 { "," } else { "" };
        text.push_str(comma);
        text.push_str(&serde_json::Value::from(key).to_string());
        text.push(':');
        text.push_str(inner.as_deref().unwrap_or(value));
    }
    text.push('}');
    has_changed.then_some(text)
}

/// The fields of a request for serde, without the large ones.
struct RequestFields<'a> {
    fields: btree_map::IntoIter<Cow<'a, str>, &'a str>,
    /// The field whose key serde has read.
    value: (Cow<'a, str>, &'a str),
}

impl<'a> MapAccess<'a> for RequestFields<'a> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(field) = self.fields.next() else { return Ok(None) };
        self.value = field;
        seed.deserialize(self.value.0.as_ref().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let levels = match self.value.0.as_ref() {
            "limits" => 1,
            "tools" => 2,
            _ => 0,
        };
        if levels > 0
            && let Some(text) = without_repeats(self.value.1, levels)
        {
            // What is read from a reader borrows nothing from the text.
            return seed.deserialize(&mut serde_json::Deserializer::from_reader(text.as_bytes()));
        }
        let mut deserializer = serde_json::Deserializer::from_str(self.value.1);
        let value = seed.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }
}

/// The maximum number of set-up programs, and of tools, of a request. Without it, some bytes of text each would become
/// some hundred bytes of memory, before the run and its limits exist.
const MAX_PARTS: usize = 1_000;

fn too_many<E: serde::de::Error>(what: &str) -> E {
    E::custom(format!("there are more than {MAX_PARTS} {what}; put several into one, or leave some out"))
}

/// Reads the set-up programs of a request.
///
/// # Errors
/// Not a list of strings, or more than a request may have.
pub fn request_setup<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct SetUps;
    impl<'de> Visitor<'de> for SetUps {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of strings")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut given: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(source) = given.next_element()? {
                if all.len() == MAX_PARTS {
                    return Err(too_many("set-up programs"));
                }
                all.push(source);
            }
            Ok(all)
        }
    }
    deserializer.deserialize_seq(SetUps)
}

/// Reads the tools of a request, by name.
///
/// # Errors
/// Not an object of tools, or more than a request may have.
pub fn request_tools<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct ByName<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for ByName<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of tools")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some((name, tool)) = given.next_entry()? {
                if all.len() == MAX_PARTS && !all.contains_key(&name) {
                    return Err(too_many("tools"));
                }
                all.insert(name, tool);
            }
            Ok(all)
        }
    }
    deserializer.deserialize_map(ByName(PhantomData))
}

/// One of some words, such as `strings`. Without this, serde does not say which, if the value is not a string.
struct Word<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(OneOf(PhantomData)).map(Word)
    }
}

struct OneOf<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOf<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The error about a word that is unknown lists those that are known.
        let unknown = T::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer("")).err();
        let unknown = unknown.map(|error| error.to_string()).unwrap_or_default();
        f.write_str(unknown.split_once(", expected ").map_or("a string", |(_, words)| words))
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<T, E> {
        T::deserialize(word.into_deserializer())
    }
}

/// Reads a field of a request that is one of some words.
pub(super) fn word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Word::deserialize(deserializer).map(|word| word.0)
}

/// Reads a field of a request that is one of some words, or null.
///
/// # Errors
/// Another word, which the error lists, or not a string.
pub fn request_word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<Word<T>>::deserialize(deserializer)?.map(|word| word.0))
}

/// Reads a field of a request that is an array of words.
pub(super) fn words<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Word<T>>::deserialize(deserializer)?.into_iter().map(|word| word.0).collect())
}

/// JSON text as a raw part of JSON.
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
    use crate::api::answer::AnswerPart;
    use crate::api::engine::Engine;
    use crate::api::envelope::{Isolation, Request, answer_line};
    use crate::terms::limits::Limits;
    use proptest::prelude::*;

    const PARTS: [&str; 23] = [
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
        r#""json_keys":3"#,
        "",
        "7",
    ];

    proptest! {
        /// A request is read as serde would read it, and rejected with the message of serde. The exception is repeated
        /// fields, of which the last counts.
        #[test]
        fn a_request_is_what_serde_reads(
            parts in proptest::collection::vec(0..PARTS.len(), 0..6),
            (open, close) in prop_oneof![Just(("{", "}")), Just((" {\n", " } ")), Just(("{", "")), Just(("[", "]"))],
        ) {
            let text = format!("{open}{}{close}", parts.iter().map(|&part| PARTS[part]).collect::<Vec<_>>().join(" , "));
            let strict = serde_json::from_str::<Request<'_>>(&text);
            let key = |part: usize| PARTS[part].split(':').next().unwrap_or_default().replace("\\u0061", "a");
            let again = |at: usize| parts[at + 1..].iter().any(|&later| key(later) == key(parts[at]));
            let once = || {
                let kept = (0..parts.len()).filter(|&at| !again(at)).map(|at| PARTS[parts[at]]);
                format!("{open}{}{close}", kept.collect::<Vec<_>>().join(" , "))
            };
            if strict.is_err() && (0..parts.len()).any(again) {
                // The content of an earlier repeated field does not matter, and another error may follow it.
                if let Ok(parsed) = Request::parse(&text) {
                    let once = once();
                    let strict = serde_json::from_str::<Request<'_>>(&once).expect("a request");
                    prop_assert_eq!(format!("{strict:?}"), format!("{parsed:?}"), "{}", text);
                }
                return Ok(());
            }
            match (strict, Request::parse(&text)) {
                // serde accepts an array of the fields' values.
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
            (r#""data":{"n":[1 2]}"#, "cannot import the data: invalid JSON at line 1, column 9: "),
            (r#""data":nul"#, "cannot import the data: invalid JSON at line 1, column 4: "),
            (r#""memory":{"n":tru}"#, "cannot import the memory: invalid JSON at line 1, column 9: "),
            (r#""history":[1,]"#, "cannot import the history: invalid JSON at line 1, column 3: "),
            (r#""data":{"n":[1 2]},"data":{}"#, "not a request: expected `,` or `]` at line 1 column"),
            (r#""data":{"n":[1}]}"#, "not a request: expected `,` or `]` at line 1 column"),
        ] {
            let answer = answer_line(&Engine::default(), &format!(r#"{{"id":7,"program":"1",{field}}}"#));
            let error = answer.error.expect("an error");
            assert_eq!(error.reason, "parse_error");
            assert!(error.message.starts_with(message), "{field}: {}", error.message);
        }
    }

    #[test]
    fn errors_about_fields_name_them() {
        for (field, message) in [
            (r#""json_keys":3"#, "json_keys: invalid type: integer `3`, expected `strings` or `keywords`"),
            (r#""json_keys":"words""#, "json_keys: unknown variant `words`, expected `strings` or `keywords`"),
            (r#""isolation":[]"#, "isolation: invalid type: sequence, expected `in_process` or `process`"),
            (r#""omit":[null]"#, "omit[0]: invalid type: null, expected one of `value`, `text`,"),
            (r#""limits":{"fuel":"x"}"#, "limits.fuel: invalid type: string \"x\", expected a whole number, 0 or more"),
            (r#""limits":{"heap":1}"#, "limits: unknown field `heap`, expected"),
            (r#""tools":{"f":{"signature":1}}"#, "tools.f.signature: invalid type: integer `1`, expected a string"),
            (r#""tools":[]"#, "tools: invalid type: sequence, expected an object of tools"),
            (r#""setup":"1""#, "setup: invalid type: string \"1\", expected an array of strings"),
            (r#""dta":{}"#, "unknown field `dta`, expected"),
        ] {
            let answer = answer_line(&Engine::default(), &format!(r#"{{"program":"1",{field}}}"#));
            let said = answer.error.expect("an error").message;
            assert!(said.starts_with(&format!("not a request: {message}")), "{field}: {said}");
        }
        let request = Request::parse(r#"{"program":"1","json_keys":null,"isolation":"process","omit":["text"]}"#);
        let request = request.expect("a request");
        assert_eq!((request.json_keys, request.isolation), (None, Isolation::Process));
        assert_eq!(request.omit, [AnswerPart::Text]);
    }

    #[test]
    fn the_last_of_equal_fields_counts() {
        let text = r#"{"program":"(","data":{"n":1},"limits":{"fuel":1,"fuel":100},"id":1,"progr\u0061m":"(inc data/n)",
            "tools":{"t":{"returns":1,"returns":{"a":1,"a":2}},"t":{"error":"a","err\u006fr":"b"}},"id":2,"data":{"n":41}}"#;
        let request = Request::parse(text).expect("a request");
        assert_eq!((request.program.as_ref(), request.data), ("(inc data/n)", Some(r#"{"n":41}"#)));
        assert_eq!(request.id.as_ref().map(|id| id.get()), Some("2"));
        assert_eq!(request.tools["t"].error.as_deref(), Some("b"));
        assert_eq!(Limits::default().with(&request.limits).fuel, 100);
        for (wrong, message) in [
            (r#"{"program":"1","id":tru,"id":1}"#, "expected"),
            (r#"{"program":"1","program":"2","dta":1}"#, "unknown field `dta`"),
            (r#"{"program":"1","program":"2","limits":{"fuel":1,"fuel":2,"heap":1}}"#, "unknown field `heap`"),
        ] {
            let error = Request::parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains(message), "{wrong}: {error}");
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
