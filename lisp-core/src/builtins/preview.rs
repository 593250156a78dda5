//! Previews: a short text for any value, with limits on characters, elements and depth. Previews are for people, and
//! cannot be read back.

use crate::cost;
use crate::heap::{Heap, Res, TextBuf, Value};
use crate::text::characters::{count_short, of_short};
use crate::text::dates::time_text;
use crate::text::number::float_text;
use crate::text::pr_str;

/// The maximum number of characters of a preview.
pub(super) const CHARS: usize = 120;
const BYTES: usize = CHARS * 4;
const ITEMS: usize = 8;
const DEPTH: usize = 2;
const NODES: usize = 32;
/// The text of a value that does not fit.
const ELLIPSIS: &str = "#<…>";
/// The room reserved in a collection for the ellipsis.
const MARK: usize = 4;

/// The space left for the text.
#[derive(Clone, Copy)]
struct Room {
    chars: usize,
    bytes: usize,
}

impl Room {
    fn holds(self, text: &str) -> bool {
        text.len() <= self.bytes && count_short(text) <= self.chars
    }

    fn less(self, chars: usize, bytes: usize) -> Room {
        Room { chars: self.chars.saturating_sub(chars), bytes: self.bytes.saturating_sub(bytes) }
    }

    fn without(self, text: &str) -> Room {
        self.less(count_short(text), text.len())
    }
}

/// Returns the preview of a value.
pub(crate) fn preview<'h>(h: &'h Heap, value: Value<'h>) -> Res<String> {
    h.charge(cost::PREVIEW)?;
    h.check_available(BYTES * 4)?;
    let mut nodes = NODES;
    render(h, value, 0, Room { chars: CHARS, bytes: BYTES }, &mut nodes)
}

/// Returns the text of a value. The recursion ends at [`DEPTH`].
fn render<'h>(h: &'h Heap, value: Value<'h>, depth: usize, room: Room, nodes: &mut usize) -> Res<String> {
    if room.chars == 0 || room.bytes == 0 || *nodes == 0 {
        return Ok(String::new());
    }
    *nodes -= 1;
    h.charge(cost::PREVIEW_PART)?;
    let deep = depth >= DEPTH;
    Ok(match value {
        Value::Str(s) => quoted(h, s.text(), room)?,
        Value::Vector(_) if deep => leaf("[...]", room),
        Value::Set(_) if deep => leaf("#{...}", room),
        Value::Map(_) if deep => leaf("{...}", room),
        Value::Vector(v) => {
            let items = v.items();
            sequence(["[", "]"], items.len().min(ITEMS), items.len() > ITEMS, room, nodes, |i, room, nodes| {
                render(h, items[i], depth + 1, room, nodes)
            })?
        }
        Value::Set(members) => {
            let members = members.entries(h)?;
            sequence(["#{", "}"], members.len().min(ITEMS), members.len() > ITEMS, room, nodes, |i, room, nodes| {
                render(h, members.entry(i).0, depth + 1, room, nodes)
            })?
        }
        Value::Map(map) => {
            let entries = map.entries(h)?;
            sequence(["{", "}"], entries.len().min(ITEMS), entries.len() > ITEMS, room, nodes, |i, room, nodes| {
                let (key, value) = entries.entry(i);
                let key = render_key(h, key, room, nodes)?;
                let value = render(h, value, depth + 1, room.without(&key).less(1, 1), nodes)?;
                Ok(format!("{key} {value}"))
            })?
        }
        other => leaf(&scalar(h, other)?, room),
    })
}

fn render_key<'h>(h: &'h Heap, key: Value<'h>, room: Room, nodes: &mut usize) -> Res<String> {
    const MAX: usize = 68;
    let room = Room { chars: (room.chars / 3).clamp(8, MAX), bytes: (room.bytes / 3).clamp(8, MAX * 4) };
    match key {
        Value::Str(s) => quoted(h, s.text(), room),
        Value::Keyword(..) => Ok(leaf(&scalar(h, key)?, room)),
        // A collection that is a key shows its elements, but not the elements of these.
        other => render(h, other, DEPTH - 1, room, nodes),
    }
}

/// Returns the elements that fit, separated by spaces, and a mark if there are more. Each gets an equal share of the
/// room.
fn sequence(
    [open, close]: [&str; 2],
    count: usize,
    more: bool,
    room: Room,
    nodes: &mut usize,
    mut item: impl FnMut(usize, Room, &mut usize) -> Res<String>,
) -> Res<String> {
    let mut text = open.to_owned();
    let brackets = open.len() + close.len();
    if room.chars < brackets || room.bytes < brackets {
        return Ok(leaf("", room));
    }
    let mut left = room.less(brackets, brackets);
    let mut stopped = false;
    for i in 0..count {
        let separator = usize::from(i > 0);
        let free = left.less(separator + MARK, separator + MARK);
        let part = Room { chars: free.chars / (count - i), bytes: free.bytes / (count - i) };
        let shown = item(i, part, nodes)?;
        if shown.is_empty() || !free.holds(&shown) {
            stopped = true;
            break;
        }
        if i > 0 {
            text.push(' ');
        }
        text.push_str(&shown);
        left = left.without(&shown).less(separator, separator);
    }
    let mark = if text.len() == open.len() { "..." } else { " ..." };
    if (more || stopped) && left.holds(mark) {
        text.push_str(mark);
    }
    text.push_str(close);
    Ok(text)
}

fn leaf(text: &str, room: Room) -> String {
    match () {
        () if !text.is_empty() && room.holds(text) => text.to_owned(),
        () if room.holds(ELLIPSIS) => ELLIPSIS.to_owned(),
        () => String::new(),
    }
}

/// Returns a string with quotation marks, cut with an ellipsis if it does not fit.
fn quoted(h: &Heap, text: &str, room: Room) -> Res<String> {
    let max = CHARS.min(room.chars.saturating_sub(3));
    let begin = first_bytes(text);
    h.charge(cost::CHARACTER * begin.len().min(max) as u64)?;
    let clusters: Vec<&str> = of_short(begin).take(max + 1).collect();
    let whole = clusters.len() <= max && begin.len() == text.len();
    let show = |clusters: &[&str], end: &str| -> Res<Option<String>> {
        h.charge(cost::CHARACTER * clusters.len() as u64)?;
        let mut shown = String::from("\"");
        clusters.iter().for_each(|cluster| escape(cluster, &mut shown));
        shown.push_str(end);
        Ok(room.holds(&shown).then_some(shown))
    };
    if whole && let Some(shown) = show(&clusters, "\"")? {
        return Ok(shown);
    }
    // Binary search for the largest number of characters that fits.
    let (mut best, mut fits, mut too_many) = (None, 0, clusters.len().min(max) + usize::from(!whole));
    while fits < too_many {
        let middle = fits + (too_many - fits) / 2;
        match show(&clusters[..middle], "…\"")? {
            Some(shown) => (best, fits) = (Some(shown), middle + 1),
            None => too_many = middle,
        }
    }
    Ok(best.unwrap_or_else(|| if room.holds("\"\"") { "\"\"".to_owned() } else { String::new() }))
}

/// Returns as much of a text as a preview can ever show. The number of code points in a cluster is unlimited, so bytes
/// are limited.
fn first_bytes(text: &str) -> &str {
    &text[..text.floor_char_boundary(BYTES * 2)]
}

fn escape(cluster: &str, out: &mut String) {
    for c in cluster.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            c => out.push(c),
        }
    }
}

/// Returns the text of a value that contains no others.
fn scalar<'h>(h: &'h Heap, value: Value<'h>) -> Res<String> {
    let cut = |text: &str| -> Res<String> {
        let begin = first_bytes(text);
        h.charge(cost::CHARACTER * begin.len().min(CHARS) as u64)?;
        let shown: String = of_short(begin).take(CHARS).collect();
        Ok(if shown.len() < text.len() { shown + "…" } else { shown })
    };
    Ok(match value {
        Value::Nil => "nil".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Big(b) if b.limbs.len() <= 11 => b.to_bigint().to_string(),
        Value::Big(_) => "#<large-integer>".to_owned(),
        Value::Float(f) => float_text(f),
        Value::Keyword(_, s) => format!(":{}", cut(s.text())?),
        Value::Time(t) => {
            let class = match value.type_name() {
                name @ "java.util.Date" => name.to_owned(),
                name => format!("java.time.{name}"),
            };
            format!("#java[{class} {}]", time_text(t.value))
        }
        other => {
            let mut text = TextBuf::new(h);
            pr_str(h, other, &mut text)?;
            cut(text.as_str())?
        }
    })
}
