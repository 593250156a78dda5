//! Who appears with whom.

use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

pub(super) fn degree(graph: &Value) -> Option<Value> {
    let mut names: HashMap<i64, &str> = HashMap::new();
    for node in graph["nodes"].as_array()? {
        names.insert(node["index"].as_i64()?, node["name"].as_str()?);
    }
    let mut neighbours: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
    for link in graph["links"].as_array()? {
        let (source, target) = (link["source"].as_i64()?, link["target"].as_i64()?);
        let value = link["value"].as_i64()?;
        neighbours.entry(source).or_default().push((value, target));
        neighbours.entry(target).or_default().push((value, source));
    }
    let mut rows = Vec::with_capacity(neighbours.len());
    for (node, edges) in &neighbours {
        let (_, closest) = edges.iter().min_by_key(|(value, other)| (Reverse(value), other))?;
        rows.push((Reverse(edges.len()), *names.get(node)?, *names.get(closest)?));
    }
    rows.sort_unstable();
    Some(
        rows.into_iter()
            .take(10)
            .map(|(Reverse(degree), name, closest)| json!({"name": name, "degree": degree, "closest": closest}))
            .collect(),
    )
}

pub(super) fn sort_set(graph: &Value) -> Option<Value> {
    let sources: BTreeSet<i64> = graph["links"].as_array()?.iter().filter_map(|link| link["source"].as_i64()).collect();
    Some(sources.into_iter().collect())
}
