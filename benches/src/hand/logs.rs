//! Lines of text to figures.

use super::frequencies;
use regex::Regex;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

struct Line<'a> {
    at: &'a str,
    level: &'a str,
    service: &'a str,
    message: &'a str,
    user: Option<&'a str>,
    ms: Option<i64>,
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

static LINE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\S+) (INFO|WARN|ERROR) \[(\w+)\] (.*)$"));
static USER: LazyLock<Regex> = LazyLock::new(|| pattern(r"user=(u\d+)"));
static MS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d+)ms"));
static REQUEST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(GET|POST|PUT) "));
static ROUTE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\w+) (/v1/\w+)"));

fn parse(line: &str) -> Option<Line<'_>> {
    let (_, [at, level, service, message]) = LINE.captures(line)?.extract();
    let first = |pattern: &Regex| Some(pattern.captures(message)?.get(1)?.as_str());
    Some(Line { at, level, service, message, user: first(&USER), ms: first(&MS).and_then(|ms| ms.parse().ok()) })
}

fn routes(lines: &[Line<'_>]) -> Option<Vec<Value>> {
    let mut routes: BTreeMap<&str, (u64, Vec<i64>)> = BTreeMap::new();
    for line in lines.iter().filter(|line| REQUEST.is_match(line.message)) {
        let route = ROUTE.find(line.message)?.as_str();
        let (n, times) = routes.entry(route).or_default();
        *n += 1;
        times.extend(line.ms);
    }
    let mut rows = Vec::with_capacity(routes.len());
    for (route, (n, mut times)) in routes {
        times.sort_unstable();
        let median = times.get(times.len() / 2)?;
        rows.push(json!({"route": route, "n": n, "median": median, "worst": times.last()}));
    }
    Some(rows)
}

fn cause(message: &str) -> &'static str {
    if message.contains("timeout") {
        "timeout"
    } else if message.contains("TypeError") {
        "bug"
    } else if message.contains(" 500 ") {
        "http-500"
    } else {
        "network"
    }
}

pub(super) fn figures(texts: &Value) -> Option<Value> {
    let texts = texts.as_array()?;
    let mut lines = Vec::with_capacity(texts.len());
    for text in texts {
        lines.extend(parse(text.as_str()?));
    }
    let errors = || lines.iter().filter(|line| line.level == "ERROR");
    let mut services: Vec<_> = frequencies(errors().map(|line| line.service)).into_iter().collect();
    services.sort_by_key(|(_, n)| Reverse(*n));
    let services: Vec<&str> = services.into_iter().map(|(service, _)| service).collect();
    let users: BTreeSet<&str> = errors().filter_map(|line| line.user).collect();
    let hours = frequencies(lines.iter().map(|line| &line.at[..13]));
    let busiest = hours.iter().min_by_key(|(hour, n)| (Reverse(**n), **hour)).map(|(hour, _)| hour);
    Some(json!({
        "lines": texts.len(),
        "unreadable": texts.len() - lines.len(),
        "levels": frequencies(lines.iter().map(|line| line.level)),
        "errors-by-service": services,
        "routes": routes(&lines)?,
        "users-with-errors": users,
        "busiest-hour": busiest,
        "causes": frequencies(errors().map(|line| cause(line.message))),
    }))
}
