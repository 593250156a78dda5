//! Repairs invalid messages of MCP servers, so that one invalid part does not affect the rest.

use rmcp::model::{ContentBlock, ServerJsonRpcMessage, Tool};
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

/// The key in `_meta` for a tool that the protocol's types cannot represent.
const RAW: &str = "ptc-lisp/raw";

/// The error code for an answer that cannot be read: JSON-RPC's parse error.
const UNREADABLE: i64 = -32_700;

/// Repairs a message with [`lenient`]. An answer that still cannot be read becomes an error for the caller that waits.
pub(super) fn readable(message: &str) -> Cow<'_, str> {
    let mended = lenient(message);
    let Err(error) = serde_json::from_str::<ServerJsonRpcMessage>(&mended) else { return mended };
    match unanswered(&mended, "") {
        Some(id) => Cow::Owned(unreadable(id, &format!("the server's answer cannot be read: {error}"))),
        None => mended,
    }
}

/// Returns the error for an answer that is too long, from its first and last bytes. Returns `None` if it is not an
/// answer.
pub(super) fn too_long(beginning: &str, end: &str, max: usize) -> Option<String> {
    let id = unanswered(beginning, end)?;
    Some(unreadable(id, &format!("the server's answer has more than {max} bytes")))
}

fn unreadable(id: &RawValue, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": UNREADABLE, "message": message } }).to_string()
}

/// The fields of a message that precede its first invalid part.
#[derive(Default)]
struct Head<'a> {
    id: Option<&'a RawValue>,
    /// Whether it is a request or notification, not an answer.
    asks: bool,
}

/// Returns the ID of an answer, from the part that can be read or from its end.
fn unanswered<'a>(beginning: &'a str, end: &'a str) -> Option<&'a RawValue> {
    struct Fields<'a, 'h>(&'h RefCell<Head<'a>>);
    impl<'a> Visitor<'a> for Fields<'a, '_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a message")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<Cow<'_, str>>()? {
                match &*name {
                    "id" => self.0.borrow_mut().id = Some(map.next_value()?),
                    "method" => {
                        self.0.borrow_mut().asks = true;
                        map.next_value::<IgnoredAny>()?;
                    }
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(())
        }
    }
    let head = RefCell::new(Head::default());
    let mut reader = serde_json::Deserializer::from_str(beginning);
    let _ = serde::Deserializer::deserialize_map(&mut reader, Fields(&head));
    let Head { id, asks } = head.into_inner();
    let at_end = || {
        let tail = if end.is_empty() { beginning } else { end };
        let (_, behind) = tail.rsplit_once("\"id\"")?;
        let id = behind.trim_start().strip_prefix(':')?;
        let mut ids = serde_json::Deserializer::from_str(id).into_iter::<&RawValue>();
        ids.next()?.ok()
    };
    let is_id =
        |id: &&RawValue| id.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit());
    id.or_else(at_end).filter(|_| !asks).filter(is_id)
}

/// Repairs the entries of a message's tool and content lists. An invalid entry becomes a text that names it, or a tool
/// that [`raw_of`] recognizes. A byte order mark is removed.
pub(super) fn lenient(message: &str) -> Cow<'_, str> {
    let message = message.strip_prefix('\u{feff}').unwrap_or(message);
    // Most messages have neither list, or only valid entries.
    let may_have = |name: &str| message.contains(name);
    if !may_have("\"content\"") && !may_have("\"tools\"") {
        return Cow::Borrowed(message);
    }
    let Ok(mut value) = serde_json::from_str::<Value>(message) else { return Cow::Borrowed(message) };
    let Some(Value::Object(result)) = value.get_mut("result") else { return Cow::Borrowed(message) };
    let has_changed = mend_tools(result) | mend_content(result);
    if has_changed { Cow::Owned(value.to_string()) } else { Cow::Borrowed(message) }
}

/// Returns the tool as the server wrote it, if it was replaced.
pub(super) fn raw_of(tool: &Tool) -> Option<&Value> {
    tool.meta.as_ref()?.get(RAW)
}

fn mend_tools(result: &mut Map<String, Value>) -> bool {
    let Some(Value::Array(tools)) = result.get_mut("tools") else { return false };
    let mut has_changed = false;
    for tool in tools.iter_mut().filter(|tool| Tool::deserialize(&**tool).is_err()) {
        *tool = json!({ "name": "", "inputSchema": {}, "_meta": { RAW: tool.take() } });
        has_changed = true;
    }
    has_changed
}

fn mend_content(result: &mut Map<String, Value>) -> bool {
    let mut has_changed = false;
    match result.get_mut("content") {
        Some(Value::Array(content)) => {
            for block in content.iter_mut().filter(|block| ContentBlock::deserialize(&**block).is_err()) {
                *block = mended(block);
                has_changed = true;
            }
        }
        Some(Value::Null) => {
            result.insert("content".to_owned(), json!([]));
            has_changed = true;
        }
        Some(other) => {
            let block = mended(other);
            result.insert("content".to_owned(), json!([block]));
            has_changed = true;
        }
        None => return false,
    }
    if result.get("_meta").is_some_and(|meta| !meta.is_object()) {
        result.remove("_meta");
        has_changed = true;
    }
    if let Some(Value::String(text)) = result.get("isError") {
        let is_error = text == "true";
        result.insert("isError".to_owned(), is_error.into());
        has_changed = true;
    }
    has_changed
}

/// Repairs a content block: drops optional parts, or replaces it by a text that names it.
fn mended(block: &Value) -> Value {
    let text = |text: String| json!({ "type": "text", "text": text });
    if let Value::String(given) = block {
        return text(given.clone());
    }
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    let needed: &[&str] = match kind {
        "text" => &["text"],
        "image" | "audio" => &["data", "mimeType"],
        "resource" => &["resource"],
        "resource_link" => &["uri", "name"],
        "" => return text("[left out: content without a type]".to_owned()),
        kind => return text(format!("[left out: content of the unknown type {}]", short(kind))),
    };
    let mut bare = json!({ "type": kind });
    for name in needed {
        bare[*name] = block.get(*name).cloned().unwrap_or_default();
    }
    match ContentBlock::deserialize(&bare) {
        Ok(_) => bare,
        Err(error) => text(format!("[left out: content of the type {kind} that cannot be read: {error}]")),
    }
}

fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(100) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{CallToolResult, ServerJsonRpcMessage, ServerResult};

    fn result_of(result: &Value) -> ServerResult {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
        match serde_json::from_str(&lenient(&message)).unwrap() {
            ServerJsonRpcMessage::Response(response) => response.result,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_stays() {
        let good = json!({ "type": "text", "text": "good" });
        for (content, wanted) in [
            (json!([good]), "good"),
            (json!([good, { "type": "hologram", "data": 1 }]), "good|[left out: content of the unknown type hologram]"),
            (json!([{ "data": 1 }, good]), "[left out: content without a type]|good"),
            (json!([7, good]), "[left out: content without a type]|good"),
            (json!(["plain", null, good]), "plain|[left out: content without a type]|good"),
            (json!([{ "type": "text", "text": "a", "annotations": { "audience": "user" } }, good]), "a|good"),
            (
                json!([{ "type": "image", "mimeType": "image/png" }, good]),
                "[left out: content of the type image that cannot be read: invalid type: null, expected a string]|good",
            ),
            (json!(null), ""),
            (json!("alone"), "alone"),
            (json!({ "type": "text", "text": "alone" }), "alone"),
        ] {
            for more in [json!({}), json!({ "resultType": "complete" }), json!({ "_meta": 7, "isError": "false" })] {
                let mut result = more.clone();
                result["content"] = content.clone();
                let read = result_of(&result);
                let ServerResult::CallToolResult(CallToolResult { content, is_error, .. }) = read else {
                    panic!("{result}: {read:?}")
                };
                let texts: Vec<_> = content.iter().map(|block| block.as_text().unwrap().text.as_str()).collect();
                assert_eq!((texts.join("|").as_str(), is_error == Some(true)), (wanted, false), "{result}");
            }
        }
    }

    #[test]
    fn tools_are_kept_as_they_came() {
        let good = json!({ "name": "good", "inputSchema": { "type": "object" } });
        for bad in [
            json!({ "name": "x", "inputSchema": null }),
            json!({ "name": "x" }),
            json!({ "inputSchema": {} }),
            json!({ "name": 7, "inputSchema": {} }),
            json!({ "name": "x", "inputSchema": {}, "annotations": 5 }),
            json!(null),
            json!("x"),
        ] {
            for more in [json!({}), json!({ "resultType": "complete" })] {
                let mut result = more.clone();
                result["tools"] = json!([bad, good]);
                let read = result_of(&result);
                let ServerResult::ListToolsResult(list) = read else { panic!("{result}: {read:?}") };
                assert_eq!(raw_of(&list.tools[0]), Some(&bad), "{result}");
                assert_eq!((list.tools[1].name.as_ref(), raw_of(&list.tools[1])), ("good", None));
            }
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_an_error() {
        let deep = format!("{}{}", "[".repeat(3_000), "]".repeat(3_000));
        for (id, result) in [
            ("7", format!(r#"{{"content":[],"structuredContent":{{"a":{deep}}}}}"#)),
            ("7", r#"{"content":[],"structuredContent":{"a":1e400}}"#.to_owned()),
            ("\"x\"", r#"{"content":[],"structuredContent":{"a":NaN}}"#.to_owned()),
            ("7", r#"{"content":["#.to_owned()),
            ("7", "nothing".to_owned()),
        ] {
            let of = |message: &str| {
                let read: Value = serde_json::from_str(&readable(message)).unwrap_or_else(|_| panic!("{message}"));
                assert_eq!(
                    (&read["error"]["code"], read["id"].to_string().as_str()),
                    (&json!(UNREADABLE), id),
                    "{read}"
                );
                assert!(read["error"]["message"].as_str().unwrap().contains("cannot be read"), "{read}");
            };
            of(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
            of(&format!(r#"{{"jsonrpc":"2.0","result":{result}, "id" : {id} }}"#));
        }
        // Messages that no caller waits for do not change.
        for message in [
            "Traceback: id",
            "{}",
            r#"{"jsonrpc":"2.0","id":null,"result":1e400}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":1e400}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1e400}}"#,
        ] {
            assert_eq!(readable(message), message);
        }
        let long = too_long(r#"{"jsonrpc":"2.0","id":5,"result":{"content":["aaaa"#, "aa\"]}}", 10).unwrap();
        assert!(long.contains("more than 10 bytes") && long.contains("\"id\":5"), "{long}");
        let last = too_long(r#"{"jsonrpc":"2.0","result":{"content":["aaaa"#, "aa\"]},\"id\":6}", 10).unwrap();
        assert!(last.contains("\"id\":6"), "{last}");
        assert_eq!(too_long(r#"{"method":"x","params":["aaaa"#, "aa\"]}", 10), None);
    }

    #[test]
    fn messages_without_faults_stay_as_they_are() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":123456789012345678901}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{}}]}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"content":7,"tools":8}}"#,
            "no message with \"content\"",
        ] {
            assert!(matches!(lenient(message), Cow::Borrowed(same) if same == message), "{message}");
        }
        assert_eq!(lenient("\u{feff}{}"), "{}");
    }
}
