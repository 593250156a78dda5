//! The keys in JSON data, for completion.

use serde_json::Value;
use std::collections::BTreeSet;

/// Collects the keys of objects in JSON text, as keywords: at most 500, from four levels of objects and the first 20
/// items of each array.
pub(crate) fn collect(json: &str, into: &mut BTreeSet<String>) {
    const ROWS: usize = 20;
    const MAX: usize = 500;
    let Ok(value) = serde_json::from_str::<Value>(json) else { return };
    let mut todo = vec![(&value, 0)];
    while let Some((value, depth)) = todo.pop() {
        match value {
            Value::Object(fields) if depth < 4 => {
                for (key, value) in fields {
                    let is_word =
                        !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "-_?!*+<>=.".contains(c));
                    if is_word && into.len() < MAX {
                        into.insert(format!(":{key}"));
                    }
                    todo.push((value, depth + 1));
                }
            }
            Value::Array(rows) => todo.extend(rows.iter().take(ROWS).map(|row| (row, depth))),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_rows_and_of_what_is_in_them() {
        let mut names = BTreeSet::new();
        collect(r#"{"orders": [{"id": 1, "ship to": {"city": "x"}}], "n": [[{"deep": 1}]]}"#, &mut names);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), [":city", ":deep", ":id", ":n", ":orders"]);
        let mut none = BTreeSet::new();
        collect("[1, {", &mut none);
        assert!(none.is_empty());
    }
}
