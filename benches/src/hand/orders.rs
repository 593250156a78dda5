//! Revenue of the orders that count, by country.

use super::{cents, descending, frequencies};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::HashMap;

fn line_total(item: &Value) -> Option<f64> {
    let discount = item["discount"].as_f64().unwrap_or(0.0);
    Some(item["price"].as_f64()? * item["qty"].as_f64()? * (1.0 - discount))
}

fn total(order: &Value) -> Option<f64> {
    let mut sum = 0.0;
    for item in order["items"].as_array()? {
        sum += line_total(item)?;
    }
    Some(sum + order["shipping"].as_f64().unwrap_or(0.0))
}

fn best_seller<'a>(orders: &[(f64, &'a Value)]) -> Option<&'a str> {
    let mut units: HashMap<&str, i64> = HashMap::new();
    for item in orders.iter().filter_map(|(_, order)| order["items"].as_array()).flatten() {
        *units.entry(item["sku"].as_str()?).or_default() += item["qty"].as_i64()?;
    }
    units.into_iter().min_by_key(|(sku, n)| (Reverse(*n), *sku)).map(|(sku, _)| sku)
}

fn by_country(orders: &[(f64, &Value)]) -> Option<Vec<Value>> {
    let mut countries: HashMap<&str, Vec<(f64, &Value)>> = HashMap::new();
    for (total, order) in orders {
        let country = order["customer"]["country"].as_str().unwrap_or("unknown");
        countries.entry(country).or_default().push((*total, order));
    }
    let mut rows = Vec::with_capacity(countries.len());
    for (country, orders) in countries {
        let revenue = cents(orders.iter().map(|(total, _)| total).sum());
        let customers = frequencies(orders.iter().filter_map(|(_, order)| order["customer"]["id"].as_str()));
        let row = json!({
            "country": country,
            "orders": orders.len(),
            "revenue": revenue,
            "with-coupon": orders.iter().filter(|(_, order)| !order["coupon"].is_null()).count(),
            "best-seller": best_seller(&orders),
            "repeat-customers": customers.values().filter(|n| **n > 1).count(),
        });
        rows.push((revenue.as_f64()?, row));
    }
    rows.sort_by(|a, b| descending(a.0, b.0));
    Some(rows.into_iter().map(|(_, row)| row).collect())
}

pub(super) fn revenue(orders: &Value) -> Option<Value> {
    let orders = orders.as_array()?;
    let mut counted = Vec::with_capacity(orders.len());
    for order in orders.iter().filter(|order| order["status"] == "shipped" || order["status"] == "paid") {
        counted.push((total(order)?, order));
    }
    let countries = by_country(&counted)?;
    counted.sort_by(|a, b| descending(a.0, b.0).then_with(|| a.1["id"].as_i64().cmp(&b.1["id"].as_i64())));
    let largest: Vec<Value> = counted
        .iter()
        .take(3)
        .map(|(total, order)| json!({"id": order["id"], "total": cents(*total), "name": order["customer"]["name"]}))
        .collect();
    Some(json!({
        "orders": orders.len(),
        "counted": counted.len(),
        "by-status": frequencies(orders.iter().filter_map(|order| order["status"].as_str())),
        "countries": countries,
        "largest": largest,
    }))
}
