//! URL templates: argument names in braces in the path.

use reqwest::Url;
use std::collections::BTreeSet;

/// The maximum bytes of an argument in a path.
const ARGUMENT_BYTES: usize = 2_000;

/// A URL with argument names in braces in its path: `https://crm.example.com/orders/{id}`. Arguments change neither the
/// scheme nor the host nor the number of path segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlTemplate {
    /// The URL with an empty path.
    origin: Url,
    segments: Vec<Segment>,
    query: Option<String>,
}

/// A path segment: pieces of text, each followed by an argument name, and a last piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    arguments: Vec<(String, String)>,
    end: String,
}

impl UrlTemplate {
    /// Parses a URL.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (front, query) = text.split_once('?').map_or((text, None), |(front, query)| (front, Some(query)));
        let (scheme, rest) = front.split_once("://").ok_or("it does not start with http:// or https://")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains(['{', '}']) || query.is_some_and(|query| query.contains(['{', '}'])) {
            return Err("names in braces are allowed in the path only".to_owned());
        }
        let mut origin =
            Url::parse(&format!("{scheme}://{authority}/")).map_err(|error| format!("it is not a URL: {error}"))?;
        origin.set_query(query);
        let query = origin.query().map(str::to_owned);
        origin.set_query(None);
        UrlTemplate { origin, segments: Vec::new(), query }.with_path(path)
    }

    /// Parses a path with argument names, relative to a URL without a query.
    ///
    /// # Errors
    /// What is wrong with the path.
    pub(crate) fn below(base: &Url, path: &str) -> Result<Self, String> {
        let mut origin = base.clone();
        origin.set_path("");
        let start = base.path().strip_prefix('/').unwrap_or(base.path()).trim_end_matches('/');
        let path = path.strip_prefix('/').unwrap_or(path);
        let whole = if start.is_empty() { path.to_owned() } else { format!("{start}/{path}") };
        UrlTemplate { origin, segments: Vec::new(), query: None }.with_path(&whole)
    }

    fn with_path(mut self, path: &str) -> Result<Self, String> {
        if let Some(odd) =
            path.chars().find(|char| matches!(char, '\\' | '?' | '#') || char.is_control() || char.is_whitespace())
        {
            return Err(format!("its path has the character {odd:?}"));
        }
        self.segments = path.split('/').map(Segment::parse).collect::<Result<_, _>>()?;
        // Check that the URL parser keeps these segments.
        self.filled(|_| Ok("x".to_owned()))?;
        Ok(self)
    }

    /// Returns the constant part of the URL: scheme, host and port.
    pub fn origin(&self) -> &Url {
        &self.origin
    }

    /// The names of the arguments in the path.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(|segment| segment.arguments.iter().map(|(_, name)| name.as_str()))
    }

    /// The parameter names in the URL's own query.
    pub(crate) fn query_names(&self) -> BTreeSet<String> {
        let mut url = self.origin.clone();
        url.set_query(self.query.as_deref());
        url.query_pairs().map(|(name, _)| name.into_owned()).collect()
    }

    /// Fills in the arguments. `argument` returns a value with the texts it is made of; each value is encoded.
    ///
    /// # Errors
    /// If an argument is missing or empty, or could change where the URL leads.
    pub(crate) fn fill(&self, argument: impl Fn(&str) -> Option<(String, Vec<String>)>) -> Result<Url, String> {
        self.filled(|name| {
            let (written, texts) =
                argument(name).ok_or_else(|| format!("the argument {name} is missing: it is part of the URL"))?;
            let bytes = texts.iter().map(String::len).sum::<usize>();
            if bytes == 0 || bytes > ARGUMENT_BYTES {
                return Err(format!("the argument {name} has {bytes} bytes, and must have 1 to {ARGUMENT_BYTES}"));
            }
            texts.iter().try_for_each(|text| check(name, text))?;
            Ok(written)
        })
    }

    fn filled(&self, argument: impl Fn(&str) -> Result<String, String>) -> Result<Url, String> {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            let start = path.len();
            for (before, name) in &segment.arguments {
                path.push_str(before);
                path.push_str(&argument(name)?);
            }
            path.push_str(&segment.end);
            if is_dots(&path[start..]) {
                return Err("a part of its path is . or .., which leads elsewhere".to_owned());
            }
        }
        let mut url = self.origin.clone();
        url.set_path(&path);
        url.set_query(self.query.as_deref());
        let parts = url.path().split('/').count();
        if url.origin() == self.origin.origin() && parts == self.segments.len() + 1 {
            Ok(url)
        } else {
            Err("its path cannot be written as a part of a URL".to_owned())
        }
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self, String> {
        let mut arguments = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let name = after.split_once('}').filter(|(name, _)| !name.is_empty() && !name.contains('{'));
            let Some((name, after)) = name.filter(|_| !before.contains('}')) else {
                return Err(format!("{text:?} has no name of an argument in its braces"));
            };
            arguments.push((before.to_owned(), name.to_owned()));
            rest = after;
        }
        if rest.contains('}') {
            return Err(format!("{text:?} has a }} without a {{"));
        }
        Ok(Segment { arguments, end: rest.to_owned() })
    }
}

/// Returns whether a path segment is `.` or `..`, or a spelling of it.
fn is_dots(segment: &str) -> bool {
    let plain = segment.replace("%2e", ".").replace("%2E", ".");
    plain == "." || plain == ".."
}

/// Checks that a value may be part of a path. Percent-encoded values are checked decoded too, because some servers
/// decode more than once.
fn check(name: &str, value: &str) -> Result<(), String> {
    let mut decoded = value.as_bytes().to_vec();
    loop {
        if decoded.iter().any(|byte| byte.is_ascii_control()) {
            return Err(format!("the argument {name} has a control character, which no address has"));
        }
        if decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|part| part == b"." || part == b"..") {
            return Err(format!("the argument {name} has a part that is . or .., which leads elsewhere"));
        }
        let next = percent_decoded(&decoded);
        if next.len() == decoded.len() {
            return Ok(());
        }
        decoded = next;
    }
}

/// Decodes each valid `%XX`. The result is shorter unless there were none.
fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit =
        |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16)).and_then(|n| u8::try_from(n).ok());
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

/// Percent-encodes everything but letters, digits and `-._~`.
pub(crate) fn encoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, value: &str) -> Result<String, String> {
        let text = |value: &str| (encoded(value), vec![value.to_owned()]);
        UrlTemplate::parse(template)?.fill(|name| (name == "id").then(|| text(value))).map(String::from)
    }

    #[test]
    fn arguments_stay_where_they_stand() {
        for (template, value, wanted) in [
            ("https://a.com/orders/{id}", "7", "https://a.com/orders/7"),
            ("https://a.com/orders/{id}.json?x=1", "7", "https://a.com/orders/7.json?x=1"),
            ("https://a.com/{id}/{id}", "a b", "https://a.com/a%20b/a%20b"),
            ("http://a.com:81/{id}", "a/b", "http://a.com:81/a%2Fb"),
            ("http://a.com/{id}/", "@evil.com:80#?&", "http://a.com/%40evil.com%3A80%23%3F%26/"),
            ("http://a.com/{id}", "%2f", "http://a.com/%252f"),
            ("http://a.com/{id}", "..a", "http://a.com/..a"),
            ("http://a.com/{id}", "größe", "http://a.com/gr%C3%B6%C3%9Fe"),
            ("http://a.com/a//{id}", "1", "http://a.com/a//1"),
            ("http://a.com", "", "http://a.com/"),
            ("http://a.com?q=1", "", "http://a.com/?q=1"),
        ] {
            assert_eq!(filled(template, value), Ok(wanted.to_owned()), "{template} {value}");
        }
        for value in [
            "",
            ".",
            "..",
            "%2e%2e",
            "%2E.",
            "%252e%252e",
            "a/../b",
            "a\\..\\b",
            "a%2f..",
            "..%5cb",
            "%25252e%25252e",
            "a\r\nb",
            "a%0d%0ab",
            "a\0",
            "a\tb",
            &"x".repeat(2_001),
        ] {
            assert!(filled("http://a.com/x/{id}", value).unwrap_err().contains("the argument id"), "{value:?}");
        }
        assert!(filled("http://a.com/{other}", "1").unwrap_err().contains("other is missing"));
        assert!(filled("http://a.com/.{id}", "1").is_ok());
        for template in [
            "a.com/x",
            "http://{id}.com/",
            "http://a.com:{id}/",
            "http://a.com/?q={id}",
            "http://a.com/{}",
            "http://a.com/{a",
            "http://a.com/a}",
            "http://a.com/{a{b}}",
            "http://a.com/a\\b",
            "http://a.com/../b",
            "http://a.com/%2e%2e/b",
            "http://a.com/a b",
            "http://a.com/a#b",
            "http:///x",
        ] {
            assert!(UrlTemplate::parse(template).is_err(), "{template}");
        }
        let base = Url::parse("https://a.com/v1/").unwrap();
        let below = |path| {
            UrlTemplate::below(&base, path)
                .map(|url| String::from(url.fill(|_| Some(("9".to_owned(), vec!["9".to_owned()]))).unwrap()))
        };
        assert_eq!(below("/pets/{id}"), Ok("https://a.com/v1/pets/9".to_owned()));
        assert_eq!(below("pets"), Ok("https://a.com/v1/pets".to_owned()));
        assert!(below("/../pets").is_err() && below("/pets?x=1").is_err());
    }
}
