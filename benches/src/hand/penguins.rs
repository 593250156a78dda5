//! Penguins by species and sex.

use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Default)]
struct Group {
    n: u64,
    masses: Vec<f64>,
    flipper: Option<i64>,
}

pub(super) fn describe(penguins: &Value) -> Option<Value> {
    let mut groups: BTreeMap<(&str, &str), Group> = BTreeMap::new();
    for penguin in penguins.as_array()? {
        let sex = penguin["Sex"].as_str().filter(|sex| ["MALE", "FEMALE"].contains(sex)).unwrap_or("?");
        let group = groups.entry((penguin["Species"].as_str()?, sex)).or_default();
        group.n += 1;
        group.masses.extend(penguin["Body Mass (g)"].as_f64());
        group.flipper = group.flipper.max(penguin["Flipper Length (mm)"].as_i64());
    }
    let mut rows = Vec::new();
    for ((species, sex), group) in groups.iter().filter(|(_, group)| !group.masses.is_empty()) {
        let mass = group.masses.iter().sum::<f64>() / group.masses.len() as f64;
        let flipper = group.flipper?;
        rows.push(
            json!({"species": species, "sex": sex, "n": group.n, "mass": mass.round() as i64, "flipper": flipper}),
        );
    }
    Some(rows.into())
}
