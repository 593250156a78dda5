//! Decoding within a bound for what it allocates: one byte of a message may stand for a value of many.
//!
//! A sequence is charged with the size of its elements, a text with its length, both before they are allocated.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::cell::Cell;
use std::fmt;

/// Why a message was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotDecoded {
    /// It is not a message of this type.
    Unreadable,
    /// Decoded, it would take more than the bound.
    TooLarge,
}

/// Decodes a value, which must take all of the bytes and at most `max` bytes of memory besides itself.
pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8], max: usize) -> Result<T, NotDecoded> {
    let left = Left(Cell::new(Some(max)));
    let mut inner = postcard::Deserializer::from_bytes(bytes);
    let value = T::deserialize(Metered { inner: &mut inner, left: &left });
    match (value, inner.finalize()) {
        (Ok(value), Ok([])) => Ok(value),
        _ if left.0.get().is_none() => Err(NotDecoded::TooLarge),
        _ => Err(NotDecoded::Unreadable),
    }
}

/// The bytes that may still be allocated; `None` once there were too few.
struct Left(Cell<Option<usize>>);

impl Left {
    fn charge<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.0.get().and_then(|left| left.checked_sub(bytes));
        self.0.set(left);
        left.map(drop).ok_or_else(|| E::custom("too large"))
    }
}

/// A deserializer, visitor, seed or access whose allocations are charged.
struct Metered<'m, T> {
    inner: T,
    left: &'m Left,
}

impl<'m, T> Metered<'m, T> {
    /// Meters something that was reached through this one.
    fn with<U>(&self, inner: U) -> Metered<'m, U> {
        Metered { inner, left: self.left }
    }
}

macro_rules! deserialize {
    ($($method:ident($($name:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor);
            self.inner.$method($($name,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Metered<'_, D> {
    type Error = D::Error;

    deserialize! {
        deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64() deserialize_char() deserialize_str() deserialize_string()
        deserialize_bytes() deserialize_byte_buf() deserialize_option() deserialize_unit()
        deserialize_unit_struct(name: &'static str) deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(len: usize) deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map() deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
        deserialize_identifier() deserialize_ignored_any()
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.with(OfElements(visitor));
        self.inner.deserialize_seq(visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

/// A text is charged when it is visited: the visitor copies it, or not.
impl<'de, V: Visitor<'de>> Visitor<'de> for Metered<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128, visit_u8: u8,
        visit_u16: u16, visit_u32: u32, visit_u64: u64, visit_u128: u128, visit_f32: f32, visit_f64: f64,
        visit_char: char,
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.left.charge(text.len())?;
        self.inner.visit_str(text)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.left.charge(text.len())?;
        self.inner.visit_borrowed_str(text)
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<V::Value, E> {
        self.left.charge(bytes.len())?;
        self.inner.visit_borrowed_bytes(bytes)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.with(inner);
        self.inner.visit_some(inner)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.with(inner);
        self.inner.visit_newtype_struct(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, fields: A) -> Result<V::Value, A::Error> {
        let fields = self.with(fields);
        self.inner.visit_seq(fields)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let entries = self.with(entries);
        self.inner.visit_map(entries)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        let variant = self.with(variant);
        self.inner.visit_enum(variant)
    }
}

/// The visitor of a sequence of any length, unlike the fields of a struct or tuple.
struct OfElements<V>(V);

/// The elements of such a sequence. The first one is charged with the size of all, before more room is made for them.
struct Elements<A> {
    inner: A,
    charged: bool,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Metered<'_, OfElements<V>> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.0.expecting(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        let elements = self.with(Elements { inner: elements, charged: false });
        self.inner.0.visit_seq(elements)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Metered<'_, Elements<A>> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        if !self.inner.charged {
            // There is no hint if the sender claims more elements than there are bytes.
            let count = self.size_hint().ok_or_else(|| A::Error::custom("cut"))?;
            self.left.charge(count.saturating_mul(size_of::<S::Value>()))?;
            self.inner.charged = true;
        }
        let seed = self.with(seed);
        self.inner.inner.next_element_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        // At most the number of bytes left to read; and `serde` allocates at most a mebibyte for it.
        self.inner.inner.size_hint()
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Metered<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.with(seed);
        self.inner.next_element_seed(seed)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Metered<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.with(seed);
        let key = self.inner.next_key_seed(seed)?;
        if key.is_some() {
            self.left.charge(size_of::<S::Value>())?;
        }
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.left.charge(size_of::<S::Value>())?;
        let seed = self.with(seed);
        self.inner.next_value_seed(seed)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Metered<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let inner = self.with(inner);
        self.inner.deserialize(inner)
    }
}

impl<'de, 'm, A: EnumAccess<'de>> EnumAccess<'de> for Metered<'m, A> {
    type Error = A::Error;
    type Variant = Metered<'m, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let left = self.left;
        let (tag, variant) = self.inner.variant_seed(seed)?;
        Ok((tag, Metered { inner: variant, left }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Metered<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.with(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    enum Shape {
        Unit,
        Text(String),
        Pair(u32, Option<bool>),
        Named { texts: Vec<String>, map: BTreeMap<u8, char> },
    }

    fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
        postcard::to_allocvec(value).unwrap()
    }

    /// Tests that a value is decoded within the bytes that it takes, and not within one less.
    fn takes<T: Serialize + for<'a> Deserialize<'a> + PartialEq + fmt::Debug>(value: &T, bytes: usize) {
        let sent = encoded(value);
        assert_eq!(decode::<T>(&sent, bytes).as_ref(), Ok(value));
        if let Some(less) = bytes.checked_sub(1) {
            assert_eq!(decode::<T>(&sent, less), Err(NotDecoded::TooLarge));
        }
    }

    #[test]
    fn a_value_is_charged_with_what_it_points_to() {
        const STRING: usize = size_of::<String>();
        takes(&(1_u64, -2_i8, 1.5_f64, (), Some(Box::new('x'))), 0);
        takes(&"abc".to_owned(), 3);
        takes(&vec![1_u64; 5], 40);
        // The fields of a tuple are in its size.
        takes(&vec![(1_u32, 2_u32); 5], 40);
        takes(&vec!["abc".to_owned(), String::new()], 2 * STRING + 3);
        takes(&vec![vec![1_u16; 3]; 2], 2 * (size_of::<Vec<u16>>() + 6));
        let named = Shape::Named { texts: vec!["a".to_owned()], map: [(1, 'x')].into() };
        takes(&named, STRING + 1 + size_of::<u8>() + size_of::<char>());
        let all = vec![Shape::Unit, Shape::Text("ab".to_owned()), Shape::Pair(1, Some(true))];
        takes(&all, 3 * size_of::<Shape>() + 2);
    }

    #[test]
    fn what_is_no_message_is_unreadable() {
        let sent = encoded(&vec![1_u64, 2]);
        assert_eq!(decode::<Vec<u64>>(&[&sent[..], &[0]].concat(), 1_000), Err(NotDecoded::Unreadable));
        assert_eq!(decode::<Vec<u64>>(&sent[..2], 1_000), Err(NotDecoded::Unreadable));
        // A claim of more elements than there are bytes.
        assert_eq!(decode::<Vec<u64>>(&encoded(&u64::MAX), usize::MAX), Err(NotDecoded::Unreadable));
    }
}
