//! Bodies of HTTP requests.

use super::style::{Style, pairs, plain};
use crate::config::encoded;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use lisp_runtime::ToolError;
use lisp_runtime::tools::{BodyField, OperationBody};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The encoding of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Media {
    Json,
    Form,
    Parts,
    Text,
    Bytes,
}

/// The body of an operation.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) argument: String,
    media: String,
    how: Media,
    fields: BTreeMap<String, BodyField>,
}

/// Bytes as written in programs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Base64 {
    base64: String,
}

/// Returns the bytes of a value: UTF-8 for a string, any bytes for `{"base64": ".."}`, `None` for other values.
fn bytes_of(value: &RawValue) -> Result<Option<Vec<u8>>, String> {
    if let Ok(text) = serde_json::from_str::<String>(value.get()) {
        return Ok(Some(text.into_bytes()));
    }
    let Ok(Base64 { base64 }) = serde_json::from_str(value.get()) else { return Ok(None) };
    BASE64_STANDARD.decode(base64).map(Some).map_err(|error| format!("its base64 cannot be read: {error}"))
}

impl Body {
    pub(super) fn of(body: &OperationBody) -> Result<Self, String> {
        let media = body.media.clone();
        let how = if media.contains("json") {
            Media::Json
        } else if media == "application/x-www-form-urlencoded" {
            Media::Form
        } else if media == "multipart/form-data" {
            Media::Parts
        } else if media.starts_with("text/") {
            Media::Text
        } else if media == "application/octet-stream" {
            Media::Bytes
        } else {
            return Err(format!("its body is {media:?}; JSON, forms, texts and bytes can be sent"));
        };
        Ok(Body { argument: body.argument.clone(), media, how, fields: body.fields.clone() })
    }

    /// Returns the bytes of a body and its media type.
    pub(super) fn write(&self, value: &RawValue) -> Result<(Vec<u8>, String), ToolError> {
        let argument = &self.argument;
        let wrong = |what: &str| ToolError::invalid_arguments(format!("the argument {argument} {what}"));
        let fields = || -> Result<BTreeMap<String, Box<RawValue>>, ToolError> {
            serde_json::from_str(value.get()).map_err(|_| wrong("is sent as a form: write a map"))
        };
        match self.how {
            Media::Json => Ok((value.get().into(), self.media.clone())),
            Media::Text => match serde_json::from_str::<String>(value.get()) {
                Ok(text) => Ok((text.into_bytes(), format!("{}; charset=utf-8", self.media))),
                Err(_) => Err(wrong("is sent as text: write a string")),
            },
            Media::Bytes => match bytes_of(value).map_err(|why| wrong(&why))? {
                Some(bytes) => Ok((bytes, self.media.clone())),
                None => Err(wrong("is sent as bytes: write a string, or {\"base64\" \"..\"}")),
            },
            Media::Form => {
                let mut form = Vec::new();
                for (name, value) in &fields()? {
                    let found = self.form_pairs(name, value);
                    form.extend(found.map_err(|why| wrong(&format!("cannot be sent as a form: {name}: {why}")))?);
                }
                let form: Vec<_> = form.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
                Ok((form.join("&").into_bytes(), self.media.clone()))
            }
            Media::Parts => {
                let mut parts = Vec::new();
                for (name, value) in &fields()? {
                    self.add_parts(name, value, &mut parts)
                        .map_err(|why| wrong(&format!("cannot be sent as a form: {name}: {why}")))?;
                }
                Ok(multipart(&parts))
            }
        }
    }

    fn form_pairs(&self, name: &str, value: &RawValue) -> Result<Vec<(String, String)>, String> {
        let field = self.fields.get(name);
        if let Some(BodyField { style: Some(kind), explode, allow_reserved, .. }) = field {
            return pairs(Style { kind: *kind, explode: *explode, reserved: *allow_reserved }, name, value);
        }
        let is_json = field.and_then(|field| field.media.as_ref()).is_some_and(|media| media.contains("json"));
        if is_json || value.get().starts_with('{') {
            // Maps in forms are sent as JSON, unless the description says otherwise.
            return Ok(vec![(encoded(name), encoded(value.get()))]);
        }
        pairs(Style::PLAIN, name, value)
    }

    fn add_parts(&self, name: &str, value: &RawValue, parts: &mut Vec<Part>) -> Result<(), String> {
        let media = self.fields.get(name).and_then(|field| field.media.as_deref());
        let items = serde_json::from_str::<Vec<Box<RawValue>>>(value.get());
        let is_one = media.is_some_and(|media| media.contains("json"));
        let all = match items {
            Ok(items) if !is_one => items,
            _ => vec![value.to_owned()],
        };
        for value in all.iter().filter(|value| value.get() != "null") {
            let is_file = media.is_some_and(|media| !media.contains("json") && !media.starts_with("text/"));
            let (bytes, media) = match (bytes_of(value)?, media) {
                (Some(bytes), media) if is_file => (bytes, media),
                (_, media) if value.get().starts_with(['{', '[']) || is_one => {
                    (value.get().into(), Some(media.unwrap_or("application/json")))
                }
                (_, media) => (plain(value).into_bytes(), media),
            };
            parts.push(Part { name: name.to_owned(), is_file, media: media.map(str::to_owned), bytes });
        }
        Ok(())
    }
}

/// A part of a multipart form.
struct Part {
    name: String,
    is_file: bool,
    media: Option<String>,
    bytes: Vec<u8>,
}

/// Encodes a multipart form. The boundary is derived from the parts, so that none of them contains it.
fn multipart(parts: &[Part]) -> (Vec<u8>, String) {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(&part.bytes));
    let digest = digest.finalize();
    let boundary: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let quoted = |text: &str| text.replace('\r', "%0D").replace('\n', "%0A").replace('"', "%22");
    let mut body = Vec::new();
    for part in parts {
        let name = quoted(&part.name);
        body.extend(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"").bytes());
        if part.is_file {
            body.extend(format!("; filename=\"{name}\"").bytes());
        }
        if let Some(media) = &part.media {
            body.extend(format!("\r\nContent-Type: {}", quoted(media)).bytes());
        }
        body.extend(b"\r\n\r\n");
        body.extend(&part.bytes);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").bytes());
    (body, format!("multipart/form-data; boundary={boundary}"))
}
