//! Serializes values into requests, in the styles of OpenAPI: those of RFC 6570 and three more.

use crate::config::encoded;
use lisp_runtime::tools::{OperationParameter, ParameterStyle};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The maximum nesting of a map in a query.
const DEPTH: usize = 16;

/// How a value is serialized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) kind: ParameterStyle,
    pub(super) explode: bool,
    /// Whether reserved characters are not encoded, except those that would end the value.
    pub(super) reserved: bool,
}

impl Style {
    /// The style of a query without a description.
    pub(super) const PLAIN: Style = Style { kind: ParameterStyle::Form, explode: true, reserved: false };

    pub(super) fn of(parameter: &OperationParameter) -> Self {
        let OperationParameter { style, explode, allow_reserved, .. } = parameter;
        Style { kind: *style, explode: *explode, reserved: *allow_reserved }
    }

    fn encoded(self, text: &str) -> String {
        if !self.reserved {
            return encoded(text);
        }
        // Characters that start a fragment or the next pair, or stand for a space, are encoded.
        let stays = |char: char| ":/?@!$'()*,;=".contains(char);
        text.chars()
            .map(|char| if stays(char) { char.to_string() } else { encoded(char.encode_utf8(&mut [0; 4])) })
            .collect()
    }
}

/// A value, one level deep. Nulls are left out.
enum Parts {
    One(String),
    List(Vec<Box<RawValue>>),
    Map(BTreeMap<String, Box<RawValue>>),
}

fn is_there(value: &RawValue) -> bool {
    value.get() != "null"
}

impl Parts {
    fn of(value: &RawValue) -> Option<Self> {
        let text = value.get();
        match text.as_bytes().first() {
            _ if !is_there(value) => None,
            Some(b'[') => {
                let all: Vec<Box<RawValue>> = serde_json::from_str(text).ok()?;
                let all: Vec<_> = all.into_iter().filter(|item| is_there(item)).collect();
                (!all.is_empty()).then_some(Parts::List(all))
            }
            Some(b'{') => {
                let mut all: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
                all.retain(|_, item| is_there(item));
                (!all.is_empty()).then_some(Parts::Map(all))
            }
            _ => Some(Parts::One(plain(value))),
        }
    }
}

/// A value as text: strings as they are, other values as JSON.
pub(super) fn plain(value: &RawValue) -> String {
    serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned())
}

/// The pairs of a query or form, with names and values encoded.
pub(super) fn pairs(style: Style, name: &str, value: &RawValue) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    match style.kind {
        ParameterStyle::Json => {
            if is_there(value) {
                pairs.push((encoded(name), style.encoded(value.get())));
            }
        }
        ParameterStyle::DeepObject => deep(style, encoded(name), value, 0, &mut pairs)?,
        _ => {
            let text = |value: &RawValue| style.encoded(&plain(value));
            let between = match style.kind {
                ParameterStyle::SpaceDelimited => "%20",
                ParameterStyle::PipeDelimited => "%7C",
                _ => ",",
            };
            match (Parts::of(value), style.explode) {
                (None, _) => {}
                (Some(Parts::One(one)), _) => pairs.push((encoded(name), style.encoded(&one))),
                (Some(Parts::List(all)), true) => pairs.extend(all.iter().map(|item| (encoded(name), text(item)))),
                (Some(Parts::Map(all)), true) => {
                    pairs.extend(all.iter().map(|(key, item)| (encoded(key), text(item))));
                }
                (Some(Parts::List(all)), false) => {
                    let all: Vec<_> = all.iter().map(|item| text(item)).collect();
                    pairs.push((encoded(name), all.join(between)));
                }
                (Some(Parts::Map(all)), false) => {
                    let all: Vec<_> =
                        all.iter().map(|(key, item)| format!("{}{between}{}", encoded(key), text(item))).collect();
                    pairs.push((encoded(name), all.join(between)));
                }
            }
        }
    }
    Ok(pairs)
}

/// Writes `name[key]=value`. Nested maps continue the same way; a list has `[]`, or indices if it contains maps.
fn deep(
    style: Style,
    name: String,
    value: &RawValue,
    depth: usize,
    pairs: &mut Vec<(String, String)>,
) -> Result<(), String> {
    if depth > DEPTH {
        return Err(format!("it is nested more than {DEPTH} deep"));
    }
    match Parts::of(value) {
        None => Ok(()),
        Some(Parts::One(one)) => {
            pairs.push((name, style.encoded(&one)));
            Ok(())
        }
        Some(Parts::Map(all)) => all
            .iter()
            .try_for_each(|(key, item)| deep(style, format!("{name}%5B{}%5D", encoded(key)), item, depth + 1, pairs)),
        Some(Parts::List(all)) => {
            let has_parts = all.iter().any(|item| item.get().starts_with(['[', '{']));
            all.iter().enumerate().try_for_each(|(index, item)| {
                let index = if has_parts { index.to_string() } else { String::new() };
                deep(style, format!("{name}%5B{index}%5D"), item, depth + 1, pairs)
            })
        }
    }
}

/// A value as a path segment: encoded, with the texts it contains. `None` if there is nothing to write.
pub(super) fn segment(style: Style, name: &str, value: &RawValue) -> Option<(String, Vec<String>)> {
    if style.kind == ParameterStyle::Json {
        return is_there(value).then(|| (encoded(value.get()), vec![value.get().to_owned()]));
    }
    let parts = Parts::of(value)?;
    let texts = match &parts {
        Parts::One(one) => vec![one.clone()],
        Parts::List(all) => all.iter().map(|item| plain(item)).collect(),
        Parts::Map(all) => all.iter().flat_map(|(key, item)| [key.clone(), plain(item)]).collect(),
    };
    let items = |pair: &str| -> Vec<String> {
        match &parts {
            Parts::One(one) => vec![encoded(one)],
            Parts::List(all) => all.iter().map(|item| encoded(&plain(item))).collect(),
            Parts::Map(all) => {
                all.iter().map(|(key, item)| format!("{}{pair}{}", encoded(key), encoded(&plain(item)))).collect()
            }
        }
    };
    let pair = if style.explode { "=" } else { "," };
    let name = encoded(name);
    let written = match (style.kind, style.explode) {
        (ParameterStyle::Label, true) => format!(".{}", items(pair).join(".")),
        (ParameterStyle::Label, false) => format!(".{}", items(pair).join(",")),
        (ParameterStyle::Matrix, true) => {
            let is_map = matches!(parts, Parts::Map(_));
            let one = |item: String| match (is_map, item.is_empty()) {
                (true, _) => format!(";{item}"),
                (false, true) => format!(";{name}"),
                (false, false) => format!(";{name}={item}"),
            };
            items(pair).into_iter().map(one).collect()
        }
        (ParameterStyle::Matrix, false) => match items(pair).join(",") {
            text if text.is_empty() => format!(";{name}"),
            text => format!(";{name}={text}"),
        },
        _ => items(pair).join(","),
    };
    Some((written, texts))
}

/// A value as a header or cookie value, without encoding. `None` if there is nothing to write.
pub(super) fn header(style: Style, value: &RawValue) -> Option<String> {
    if style.kind == ParameterStyle::Json {
        return is_there(value).then(|| value.get().to_owned());
    }
    let pair = if style.explode { "=" } else { "," };
    Some(match Parts::of(value)? {
        Parts::One(one) => one,
        Parts::List(all) => all.iter().map(|item| plain(item)).collect::<Vec<_>>().join(","),
        Parts::Map(all) => {
            all.iter().map(|(key, item)| format!("{key}{pair}{}", plain(item))).collect::<Vec<_>>().join(",")
        }
    })
}

/// Returns whether the value is a list or a map.
pub(super) fn has_parts(value: &RawValue) -> bool {
    value.get().starts_with(['[', '{'])
}
