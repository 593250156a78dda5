//! Parses messages, and answers those that are invalid.

use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The longest ID of a request, in bytes. Responses have it, also those that say that there is no room for a response.
const MAX_ID: usize = 1_000;

/// Parses a message. On failure returns the answer to send, or `None` for a notification.
pub(crate) fn read_message(text: &[u8]) -> Result<ClientJsonRpcMessage, Option<Box<ServerJsonRpcMessage>>> {
    // JSON has no byte order mark: skip it.
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    if let Ok(message) = serde_json::from_slice(text) {
        return match &message {
            ClientJsonRpcMessage::Request(asked) if !is_short(&asked.id) => {
                let why = format!("an id has at most {MAX_ID} bytes");
                Err(Some(Box::new(ServerJsonRpcMessage::error(ErrorData::invalid_request(why, None), None))))
            }
            _ => Ok(message),
        };
    }
    let (id, error) = match serde_json::from_slice::<Value>(text) {
        // A message nested too deeply still has an ID.
        Err(error) => (id_of(text), ErrorData::parse_error(format!("the message is not JSON: {error}"), None)),
        Ok(value) => {
            let id = value.get("id");
            if value.is_object() && id.is_none() && value.get("method").is_some() {
                return Err(None);
            }
            let why = "the message is not a JSON-RPC 2.0 request, notification or response; an id must be a string or a 64-bit integer";
            let id = id.and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
            (id, ErrorData::invalid_request(why, None))
        }
    };
    Err(Some(Box::new(ServerJsonRpcMessage::error(error, id.filter(is_short)))))
}

/// Returns whether an ID can be sent back whatever else is sent.
fn is_short(id: &RequestId) -> bool {
    match id {
        RequestId::String(id) => id.len() <= MAX_ID,
        RequestId::Number(_) => true,
    }
}

/// The ID of a request whose line is too long, if the part that was kept contains it.
pub(crate) fn id_of(line: &[u8]) -> Option<RequestId> {
    struct Id<'a>(&'a mut Option<RequestId>);

    impl<'de> DeserializeSeed<'de> for Id<'_> {
        type Value = ();

        fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_map(self)
        }
    }

    impl<'de> Visitor<'de> for Id<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a message")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<String>()? {
                match name.as_str() {
                    "id" => *self.0 = Some(map.next_value()?),
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(())
        }
    }

    let mut id = None;
    // Fails where the line was cut, which is expected.
    let _ = Id(&mut id).deserialize(&mut serde_json::Deserializer::from_slice(line));
    id.filter(is_short)
}
