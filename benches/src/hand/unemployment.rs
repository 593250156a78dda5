//! Months of unemployment.

use serde_json::Value;

pub(super) fn rolling(rows: &Value) -> Option<Value> {
    let mut months = Vec::new();
    for row in rows.as_array()?.iter().filter(|row| row["series"] == "Construction") {
        months.push((row["year"].as_i64()?, row["month"].as_i64()?, row["rate"].as_f64()?));
    }
    months.sort_by_key(|(year, month, _)| (*year, *month));
    months.truncate(30);
    let mean = |window: &[(i64, i64, f64)]| (window[2].2 + window[1].2 + window[0].2) / 3.0;
    Some(months.windows(3).map(|window| format!("{:.2}", mean(window))).collect())
}
