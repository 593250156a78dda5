//! A catalogue joined with its category tree.

use super::{descending, frequencies};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

type Categories<'a> = HashMap<i64, &'a Value>;

fn path(categories: &Categories<'_>, id: &Value) -> String {
    let category = |id: &Value| categories.get(&id.as_i64()?).copied();
    let mut names = Vec::new();
    let mut next = category(id);
    while let Some(found) = next {
        names.push(found["name"].as_str().unwrap_or_default());
        next = category(&found["parent"]);
    }
    names.reverse();
    if names.is_empty() { "unknown".to_owned() } else { names.join(" / ") }
}

fn stock(product: &Value) -> Option<i64> {
    product["stock"].as_object()?.values().map(Value::as_i64).sum()
}

fn by_category(categories: &Categories<'_>, live: &[&Value]) -> Option<Vec<Value>> {
    let mut groups: BTreeMap<String, Vec<(f64, i64, &str)>> = BTreeMap::new();
    for product in live {
        if let Some(price) = product["price"].as_f64() {
            let row = (price, stock(product)?, product["sku"].as_str()?);
            groups.entry(path(categories, &product["category"])).or_default().push(row);
        }
    }
    let row = |(path, items): (String, Vec<(f64, i64, &str)>)| {
        let cheapest = items.iter().min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.2.cmp(b.2)));
        json!({
            "path": path,
            "n": items.len(),
            "units": items.iter().map(|(_, stock, _)| stock).sum::<i64>(),
            "value": items.iter().map(|(price, stock, _)| price * *stock as f64).sum::<f64>().round() as i64,
            "cheapest": cheapest.map(|(_, _, sku)| sku),
        })
    };
    Some(groups.into_iter().map(row).collect())
}

fn top_rated(live: &[&Value]) -> Option<Vec<Value>> {
    let mut rated = Vec::new();
    for product in live {
        let ratings = product["ratings"].as_array()?;
        if ratings.len() >= 8 {
            let sum: i64 = ratings.iter().map(Value::as_i64).sum::<Option<i64>>()?;
            rated.push((sum as f64 / ratings.len() as f64, product["sku"].as_str()?, &product["name"]));
        }
    }
    rated.sort_by(|a, b| descending(a.0, b.0).then_with(|| a.1.cmp(b.1)));
    let row = |(rating, sku, name)| json!({"sku": sku, "name": name, "rating": format!("{rating:.1}")});
    Some(rated.into_iter().take(5).map(row).collect())
}

fn sorted_skus<'a>(products: &[&'a Value], keep: impl Fn(&Value) -> bool) -> Vec<&'a str> {
    let kept = products.iter().filter(|product| keep(product));
    let mut skus: Vec<&str> = kept.filter_map(|product| product["sku"].as_str()).collect();
    skus.sort_unstable();
    skus
}

pub(super) fn catalogue(data: &Value) -> Option<Value> {
    let mut categories = Categories::new();
    for category in data["categories"].as_array()? {
        categories.insert(category["id"].as_i64()?, category);
    }
    let products = data["products"].as_array()?;
    let live: Vec<&Value> = products.iter().filter(|product| product["discontinued"] != true).collect();
    let gaps = |missing: &dyn Fn(&Value) -> bool| live.iter().filter(|product| missing(product)).count();
    let known = |product: &Value| product["category"].as_i64().is_some_and(|id| categories.contains_key(&id));
    let heavy = |specs: &Value| specs["wireless"] == true && specs["weight_g"].as_i64().unwrap_or(0) > 7_000;
    let specs = live.iter().filter_map(|product| product["specs"].as_object());
    Some(json!({
        "products": products.len(),
        "gaps": {
            "no-price": gaps(&|product| product["price"].is_null()),
            "no-category": gaps(&|product| !known(product)),
            "no-ratings": gaps(&|product| product["ratings"].as_array().is_none_or(Vec::is_empty)),
        },
        "categories": by_category(&categories, &live)?,
        "top-rated": top_rated(&live)?,
        "spec-keys": frequencies(specs.flat_map(|specs| specs.keys().map(String::as_str))),
        "heavy-wireless": sorted_skus(&live, |product| heavy(&product["specs"])),
        "sold-out": sorted_skus(&live, |product| stock(product) == Some(0)),
    }))
}
