//! The code of a tool's error.

use lisp_core::Detail;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The code of a tool's error: a name such as `"NOT_FOUND"`, or a number such as 404.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCode {
    /// A name.
    Name(String),
    /// A number.
    Number(i64),
}

impl From<&str> for ToolCode {
    fn from(name: &str) -> Self {
        ToolCode::Name(name.to_owned())
    }
}

impl From<String> for ToolCode {
    fn from(name: String) -> Self {
        ToolCode::Name(name)
    }
}

impl From<i64> for ToolCode {
    fn from(number: i64) -> Self {
        ToolCode::Number(number)
    }
}

impl From<i32> for ToolCode {
    fn from(number: i32) -> Self {
        ToolCode::Number(number.into())
    }
}

impl From<u16> for ToolCode {
    fn from(number: u16) -> Self {
        ToolCode::Number(number.into())
    }
}

impl From<&ToolCode> for Detail {
    fn from(code: &ToolCode) -> Self {
        match code {
            ToolCode::Name(name) => Detail::from(name.as_str()),
            ToolCode::Number(number) => Detail::Int(*number),
        }
    }
}

/// In formats without types, this prefix marks a number.
const NUMBER: &str = "#";

impl Serialize for ToolCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ToolCode::Number(number) if serializer.is_human_readable() => serializer.serialize_i64(*number),
            ToolCode::Name(name) if serializer.is_human_readable() => serializer.serialize_str(name),
            ToolCode::Number(number) => serializer.serialize_str(&format!("{NUMBER}{number}")),
            ToolCode::Name(name) => serializer.serialize_str(&format!("={name}")),
        }
    }
}

impl<'de> Deserialize<'de> for ToolCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return deserializer.deserialize_any(CodeVisitor);
        }
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix(NUMBER) {
            Some(number) => number.parse().map(ToolCode::Number).map_err(de::Error::custom),
            None => Ok(ToolCode::Name(text.get(1..).unwrap_or_default().to_owned())),
        }
    }
}

struct CodeVisitor;

impl Visitor<'_> for CodeVisitor {
    type Value = ToolCode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an integer as the code of an error")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<ToolCode, E> {
        Ok(ToolCode::Name(name.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<ToolCode, E> {
        Ok(ToolCode::Number(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<ToolCode, E> {
        i64::try_from(number).map(ToolCode::Number).map_err(de::Error::custom)
    }
}
