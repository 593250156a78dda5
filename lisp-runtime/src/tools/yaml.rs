//! YAML text as a JSON value: most API descriptions are YAML.
//!
//! Plain scalars follow the core schema of YAML 1.2: `yes`, `0b11`, `-0x1F` and dates are strings, `010` is ten. Integers of any
//! size are exact. Keys are strings, as in JSON. Aliases and merge keys (`<<`) are expanded, within limits.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, MessageFormatter, Options, Spanned, UserMessageFormatter};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// The maximum depth of arrays and objects, as for JSON.
const DEPTH: usize = 127;
/// The maximum number of values, including those of aliases.
const VALUES: usize = 2_000_000;
/// The maximum number of values that aliases stand for.
const ALIASED: usize = 100_000;
/// The maximum number of aliases, of anchors, and of merge keys.
const NAMED: usize = 50_000;
/// The maximum bytes of keys and scalars, including those of aliases.
const SCALAR_BYTES: usize = 64 << 20;

/// Parses YAML text.
///
/// # Errors
/// What is wrong, with line and column.
pub(super) fn read(text: &str) -> Result<Value, String> {
    serde_json::to_value(Json(&parse(text)?, text)).map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<Node, String> {
    serde_saphyr::from_str_with_options::<Node>(text, options()).map_err(|error| {
        let message = message(&error);
        match error.location() {
            Some(at) if !message.contains(PLACE) => placed(&message, at),
            _ => message,
        }
    })
}

/// The beginning of the position in an error.
const PLACE: &str = " at line ";

/// Returns YAML text as JSON text.
///
/// # Errors
/// What is wrong, with line and column.
pub fn as_json(text: &str) -> Result<String, String> {
    let json =
        parse(text).and_then(|node| serde_json::to_string(&Json(&node, text)).map_err(|error| error.to_string()));
    json.map_err(|error| format!("invalid YAML: {error}"))
}

fn placed(message: &str, at: Location) -> String {
    format!("{message}{PLACE}{} column {}", at.line(), at.column())
}

/// A value whose keys are distinct as strings: `200` and `"200"` are the same JSON key.
enum Node {
    /// A value that is no number, no list and no map.
    Plain(Value),
    /// A number as the parser understood it, and where its text starts, in bytes.
    Number(Number, Option<u64>),
    List(Vec<Node>),
    /// Its keys are in the order of the text.
    Map(Vec<(String, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: Unplaced(mut node), defined, .. } = Spanned::deserialize(deserializer)?;
        if let Node::Number(_, start) = &mut node {
            *start = defined.span().byte_offset();
        }
        Ok(node)
    }
}

/// A node whose number does not have its place yet.
struct Unplaced(Node);

impl<'de> Deserialize<'de> for Unplaced {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor).map(Unplaced)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Plain(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into(), None))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into(), None))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("JSON does not have this number"))?;
        Ok(Node::Number(number, None))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Plain(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Node::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let (mut all, mut keys) = (Vec::new(), BTreeSet::new());
        while let Some(Spanned { value: key, referenced: at, .. }) = entries.next_key::<Spanned<String>>()? {
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(placed(&twice(&key), at)));
            }
            all.push((key, entries.next_value()?));
        }
        Ok(Node::Map(all))
    }
}

/// A node of a text as JSON.
struct Json<'a>(&'a Node, &'a str);

impl Serialize for Json<'_> {
    // The parser bounds the depth.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Json(node, text) = *self;
        match node {
            Node::Plain(value) => value.serialize(serializer),
            Node::List(items) => serializer.collect_seq(items.iter().map(|item| Json(item, text))),
            Node::Map(entries) => serializer.collect_map(entries.iter().map(|(key, node)| (key, Json(node, text)))),
            Node::Number(number, start) => match start.and_then(|start| by_core_schema(number, text, start)) {
                None => number.serialize(serializer),
                Some(Core::Text(word)) => serializer.serialize_str(word),
                Some(Core::Integer(digits)) => {
                    RawValue::from_string(digits.into_owned()).map_err(S::Error::custom)?.serialize(serializer)
                }
            },
        }
    }
}

/// What the core schema reads where the parser reads another number.
#[derive(Debug, PartialEq, Eq)]
enum Core<'t> {
    Text(&'t str),
    /// An integer as JSON.
    Integer(Cow<'t, str>),
}

/// Returns what the core schema reads, if it differs from what the parser read. The parser reads binary numbers and signs before
/// `0x` and `0o`, which the core schema does not have, and reads integers with leading zeros or of more than 64 bits as floats.
fn by_core_schema<'t>(number: &Number, text: &'t str, start: u64) -> Option<Core<'t>> {
    let rest = text.get(usize::try_from(start).ok()?..)?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
    let word = &rest[..end.unwrap_or(rest.len())];
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    let is_signed = digits.len() < word.len();
    match digits.as_bytes() {
        [b'0', b'b', ..] => Some(Core::Text(word)),
        [b'0', b'x' | b'o', ..] if is_signed => Some(Core::Text(word)),
        [b'0'..=b'9', ..] if number.is_f64() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let short = digits.trim_start_matches('0');
            let is_negative = word.starts_with('-') && !short.is_empty();
            let fits = if is_negative { word.parse::<i64>().is_ok() } else { digits.parse::<u64>().is_ok() };
            // `!!float 1` stays a float.
            if short.len() == digits.len() && fits {
                return None;
            }
            let short = if short.is_empty() { "0" } else { short };
            Some(Core::Integer(if is_negative { format!("-{short}").into() } else { short.into() }))
        }
        _ => None,
    }
}

fn twice(key: &str) -> String {
    format!("the key {} occurs twice in one map", shown(key))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH,
            // A key is scanned over 1,024 characters before depth is counted.
            flow_nesting_limit: 2_000,
            max_nodes: VALUES,
            max_events: 2 * VALUES,
            max_aliases: NAMED,
            max_anchors: NAMED,
            max_merge_keys: NAMED,
            max_total_scalar_bytes: SCALAR_BYTES,
            max_recorded_anchor_events: ALIASED,
            max_recorded_anchor_bytes: SCALAR_BYTES,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Merge,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        strict_booleans: true,
        null_as_string: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// Returns the error without its position. An error of a limit names the limit.
fn message(error: &Error) -> String {
    let limit = |what: &str, max: usize| format!("it has more than {max} {what}, which is the limit");
    match error.without_snippet() {
        Error::AliasError { error, .. } => message(error),
        Error::Budget { breach, .. } => match breach {
            BudgetBreach::Depth { .. } => format!("it is nested more than {DEPTH} levels deep, which is the limit"),
            BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => limit("values", VALUES),
            BudgetBreach::Aliases { .. } => limit("aliases", NAMED),
            BudgetBreach::Anchors { .. } => limit("anchors", NAMED),
            BudgetBreach::MergeKeys { .. } => limit("merge keys", NAMED),
            BudgetBreach::ScalarBytes { .. } => limit("bytes of keys and scalars", SCALAR_BYTES),
            BudgetBreach::RecordedAnchorEvents { .. } => limit("values under anchors", ALIASED),
            BudgetBreach::RecordedAnchorBytes { .. } => limit("bytes under anchors", SCALAR_BYTES),
            other => format!("it is beyond a limit: {other:?}"),
        },
        Error::AliasReplayLimitExceeded { .. } | Error::AliasReplayCounterOverflow { .. } => {
            limit("values that aliases stand for", ALIASED)
        }
        Error::AliasReplayStackDepthExceeded { max_depth, .. } => limit("aliases within each other", *max_depth),
        Error::DuplicateMappingKey { key: Some(key), .. } => twice(key),
        Error::UnknownAnchor { .. } => "an alias names no anchor before it".to_owned(),
        Error::MultipleDocuments { .. } => "it has more than one document".to_owned(),
        other => shown(&UserMessageFormatter.format_message(other)),
    }
}

/// Returns the beginning of a foreign text on one line.
fn shown(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
