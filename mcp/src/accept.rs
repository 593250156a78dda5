//! The `Accept` header (RFC 9110, section 12.5.1).

use axum::http::{HeaderMap, header};

/// The response types that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

/// Marks a request whose client accepts JSON only: it cannot be asked a question before the response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonOnly;

impl Accepts {
    /// Parses the header. Without it, a client accepts everything.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let given = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<_> = given.flat_map(|value| value.split(',')).filter_map(range).collect();
        let takes = |kind: &str| ranges.is_empty() || is_taken(&ranges, kind);
        Accepts { json: takes("application/json"), events: takes("text/event-stream") }
    }
}

/// A media range, and whether its weight is above zero. An invalid weight is ignored.
fn range(text: &str) -> Option<(String, bool)> {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().filter(|range| !range.is_empty())?.to_ascii_lowercase();
    let weight = parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    let weight = weight.and_then(|(_, weight)| weight.trim().parse::<f32>().ok());
    Some((range, weight.is_none_or(|weight| weight > 0.0)))
}

/// The most specific matching range decides.
fn is_taken(ranges: &[(String, bool)], kind: &str) -> bool {
    let whole = kind.split_once('/').map(|(whole, _)| format!("{whole}/*")).unwrap_or_default();
    let find = |wanted: &str| ranges.iter().find(|(range, _)| range == wanted).map(|(_, is_wanted)| *is_wanted);
    find(kind).or_else(|| find(&whole)).or_else(|| find("*/*")).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_read_as_http_has_it() {
        for (given, json, events) in [
            (&[][..], true, true),
            (&[""], true, true),
            (&["*/*"], true, true),
            (&["application/json, text/event-stream"], true, true),
            (&["application/json", "text/event-stream"], true, true),
            (&["Application/JSON;charset=utf-8"], true, false),
            (&["text/event-stream;q=0.5"], false, true),
            (&["application/*"], true, false),
            (&["text/html, */*;q=0.1"], true, true),
            (&["*/*, application/json;q=0"], false, true),
            (&["text/*;q=0.000, */*"], true, false),
            (&["text/html"], false, false),
            (&["application/json;q=x"], true, false),
        ] {
            let mut headers = HeaderMap::new();
            for value in given {
                headers.append(header::ACCEPT, value.parse().unwrap());
            }
            assert_eq!(Accepts::of(&headers), Accepts { json, events }, "{given:?}");
        }
    }
}
