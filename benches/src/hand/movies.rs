//! Films: directors, dates as text, JSON within JSON.

use super::{cents, descending};
use regex::Regex;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Some titles are numbers.
fn title(film: &Value) -> Cow<'_, str> {
    match &film["Title"] {
        Value::String(title) => title.into(),
        Value::Null => "".into(),
        other => other.to_string().into(),
    }
}

pub(super) fn directors(films: &Value) -> Option<Value> {
    let mut directors: HashMap<&str, Vec<(f64, &Value)>> = HashMap::new();
    for film in films.as_array()? {
        if let (Some(director), Some(rating)) = (film["Director"].as_str(), film["IMDB Rating"].as_f64()) {
            directors.entry(director).or_default().push((rating, film));
        }
    }
    let mut rows = Vec::new();
    for (director, films) in directors.into_iter().filter(|(_, films)| films.len() >= 5) {
        let mean = cents(films.iter().map(|(rating, _)| rating).sum::<f64>() / films.len() as f64);
        let (_, best) = films.iter().min_by(|a, b| descending(a.0, b.0).then_with(|| title(a.1).cmp(&title(b.1))))?;
        rows.push((
            mean.as_f64()?,
            director,
            json!({"director": director, "films": films.len(), "mean": mean, "best": title(best)}),
        ));
    }
    rows.sort_by(|a, b| descending(a.0, b.0).then_with(|| a.1.cmp(b.1)));
    Some(rows.into_iter().take(12).map(|(_, _, row)| row).collect())
}

pub(super) fn json_roundtrip(films: &Value) -> Option<Value> {
    let pick = |film: &Value| -> Map<String, Value> {
        ["Title", "US Gross", "Release Date"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), film.get(key)?.clone())))
            .collect()
    };
    let small: Vec<Map<String, Value>> = films.as_array()?.iter().take(40).map(pick).collect();
    let text = serde_json::to_string(&small).ok()?;
    let back: Vec<Map<String, Value>> = serde_json::from_str(&text).ok()?;
    let sum: i64 = back.iter().filter_map(|film| film.get("US Gross")?.as_i64()).sum();
    Some(json!({"same": small == back, "chars": text.chars().count(), "sum": sum}))
}

static DATE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^([A-Z][a-z]{2}) \d{1,2} (\d{4})$").expect("a pattern"));

pub(super) fn release_months(films: &Value) -> Option<Value> {
    let mut months: HashMap<&str, u64> = HashMap::new();
    for film in films.as_array()? {
        if let Some(date) = film["Release Date"].as_str().and_then(|date| DATE.captures(date)) {
            *months.entry(date.get(1)?.as_str()).or_default() += 1;
        }
    }
    let mut months: Vec<_> = months.into_iter().collect();
    months.sort_unstable_by_key(|(month, n)| (Reverse(*n), *month));
    Some(json!(months))
}
