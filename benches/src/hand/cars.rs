//! Cars: what is missing, and miles per gallon.

use super::{cents, descending};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

pub(super) fn errors(cars: &Value) -> Option<Value> {
    let mut sum = 0;
    for car in cars.as_array()? {
        sum += car["Horsepower"].as_i64()?;
    }
    Some(sum.into())
}

pub(super) fn fields(cars: &Value) -> Option<Value> {
    let cars = cars.as_array()?;
    let mut gaps = Map::new();
    for key in cars.first()?.as_object()?.keys() {
        let missing = cars.iter().filter(|car| car[key].is_null()).count();
        if missing > 0 {
            gaps.insert(key.clone(), missing.into());
        }
    }
    Some(gaps.into())
}

pub(super) fn mpg_by_origin(cars: &Value) -> Option<Value> {
    let mut groups: HashMap<(&str, i64), (u32, f64)> = HashMap::new();
    for car in cars.as_array()? {
        let Some(mpg) = car["Miles_per_Gallon"].as_f64() else { continue };
        let (n, sum) = groups.entry((car["Origin"].as_str()?, car["Cylinders"].as_i64()?)).or_default();
        *n += 1;
        *sum += mpg;
    }
    let mut rows: Vec<_> = groups
        .into_iter()
        .filter(|(_, (n, _))| *n >= 5)
        .map(|((origin, cylinders), (n, sum))| (origin, cylinders, n, sum / f64::from(n)))
        .collect();
    rows.sort_by(|a, b| descending(a.3, b.3));
    Some(
        rows.into_iter()
            .map(|(origin, cylinders, n, mpg)| json!({"origin": origin, "cylinders": cylinders, "n": n, "mpg": cents(mpg)}))
            .collect(),
    )
}
