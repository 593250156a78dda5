//! A week of earthquakes.

use super::descending;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn properties(quakes: &Value) -> Option<impl Iterator<Item = &Value>> {
    Some(quakes["features"].as_array()?.iter().map(|feature| &feature["properties"]))
}

pub(super) fn histogram(quakes: &Value) -> Option<Value> {
    let mut bins: BTreeMap<i64, u64> = BTreeMap::new();
    for magnitude in properties(quakes)?.filter_map(|event| event["mag"].as_f64()) {
        *bins.entry((2.0 * magnitude).floor() as i64).or_default() += 1;
    }
    Some(bins.into_iter().map(|(bin, n)| json!([bin as f64 / 2.0, n])).collect())
}

pub(super) fn strongest(quakes: &Value) -> Option<Value> {
    let mut events = Vec::new();
    for event in properties(quakes)? {
        if let Some(magnitude) = event["mag"].as_f64() {
            events.push((magnitude, event["place"].as_str()?, event));
        }
    }
    events.sort_by(|a, b| descending(a.0, b.0).then_with(|| a.1.cmp(b.1)));
    Some(
        events
            .into_iter()
            .take(8)
            .map(|(_, place, event)| {
                let place = place.split_once("of ").map_or(place, |(_, place)| place);
                json!({"mag": event["mag"], "where": place, "ms": event["time"]})
            })
            .collect(),
    )
}
