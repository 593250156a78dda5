//! Countries through the years.

use super::{cents, descending};
use serde_json::{Value, json};
use std::collections::HashMap;

pub(super) fn growth(rows: &Value) -> Option<Value> {
    let mut countries: HashMap<&str, Vec<(i64, f64)>> = HashMap::new();
    for row in rows.as_array()? {
        let at = (row["year"].as_i64()?, row["life_expect"].as_f64()?);
        countries.entry(row["country"].as_str()?).or_default().push(at);
    }
    let mut gains = Vec::with_capacity(countries.len());
    for (country, years) in countries {
        let (first, last) = (years.iter().min_by_key(|at| at.0)?, years.iter().max_by_key(|at| at.0)?);
        gains.push((country, cents(last.1 - first.1)));
    }
    gains.sort_by(|a, b| {
        let (x, y) = (a.1.as_f64().unwrap_or_default(), b.1.as_f64().unwrap_or_default());
        descending(x, y).then_with(|| a.0.cmp(b.0))
    });
    let ranks = gains.into_iter().take(10).zip(1..);
    Some(ranks.map(|((country, gain), rank)| json!({"rank": rank, "country": country, "gain": gain})).collect())
}
