//! The fields of JSON objects, whose values stay JSON text.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// The fields of a JSON object, in their order.
pub(crate) struct Fields<'j>(pub(crate) Vec<(String, &'j RawValue)>);

impl<'de: 'j, 'j> Deserialize<'de> for Fields<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reads<'j>(PhantomData<&'j ()>);
        impl<'de: 'j, 'j> Visitor<'de> for Reads<'j> {
            type Value = Fields<'j>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'j>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Reads(PhantomData))
    }
}
