//! The programs over data sets as one would write them in Rust over [`serde_json::Value`]: text to text, the floor that
//! this interpreter is measured against. `None` is what the interpreter calls a type error.

mod cars;
mod gapminder;
mod graph;
mod logs;
mod movies;
mod orders;
mod penguins;
mod products;
mod quakes;
mod tickets;
mod unemployment;

use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A program: JSON text in, answer out as text.
pub type Program = fn(&str) -> String;

/// The program of a name in `examples/` or the folder of data sets.
pub fn program(name: &str) -> Option<Program> {
    Some(match name {
        "cars-errors" => |text| answer(text, cars::errors),
        "cars-fields" => |text| answer(text, cars::fields),
        "cars-mpg-by-origin" => |text| answer(text, cars::mpg_by_origin),
        "gapminder-growth" => |text| answer(text, gapminder::growth),
        "logs" => |text| answer(text, logs::figures),
        "miserables-degree" => |text| answer(text, graph::degree),
        "miserables-sort-set" => |text| answer(text, graph::sort_set),
        "movies-directors" => |text| answer(text, movies::directors),
        "movies-json-roundtrip" => |text| answer(text, movies::json_roundtrip),
        "movies-release-months" => |text| answer(text, movies::release_months),
        "orders" => |text| answer(text, orders::revenue),
        "penguins-describe" => |text| answer(text, penguins::describe),
        "products" => |text| answer(text, products::catalogue),
        "quakes-histogram" => |text| answer(text, quakes::histogram),
        "quakes-strongest" => |text| answer(text, quakes::strongest),
        "tickets" => tickets::desk,
        "unemployment-rolling" => |text| answer(text, unemployment::rolling),
        _ => return None,
    })
}

fn answer(text: &str, compute: fn(&Value) -> Option<Value>) -> String {
    let data: Value = serde_json::from_str(text).expect("JSON");
    match compute(&data) {
        Some(value) => value.to_string(),
        None => crate::datasets::error("type_error"),
    }
}

/// Rounded to two digits; an integer when none are left.
fn cents(x: f64) -> Value {
    let hundredths = (100.0 * x).round() as i64;
    if hundredths % 100 == 0 { Value::from(hundredths / 100) } else { Value::from(hundredths as f64 / 100.0) }
}

fn frequencies<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, u64> {
    let mut counts = BTreeMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    counts
}

/// The greater number first.
fn descending(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}
