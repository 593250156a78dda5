//! Requests in every style of OpenAPI, compared with those that the reference client builds: `openapi/generate.mjs` writes them.

use super::{engine, server, service};
use lisp_runtime::Input;
use serde_json::{Value, json};

/// What is written otherwise than the reference has it, and why.
fn otherwise(id: &str, arguments: &Value, wanted: &mut Value) -> Option<&'static str> {
    let color = &arguments["color"];
    let url = wanted["url"].as_str().unwrap_or_default().to_owned();
    let set = |wanted: &mut Value, url: String| wanted["url"] = url.into();
    if id.starts_with("path_label") && !id.ends_with("true") && (color.is_array() || color.is_object()) {
        let (start, rest) = url.rsplit_once("/.").unwrap_or_default();
        let values = rest.strip_suffix("/end").unwrap_or_default();
        let parts = if color.is_array() {
            color.as_array().map_or(0, Vec::len)
        } else {
            2 * color.as_object().map_or(0, serde_json::Map::len)
        };
        // A dot in a value stays.
        let values = if values.matches('.').count() + 1 == parts {
            values.replace('.', ",")
        } else {
            values.replacen('.', ",", parts - 1)
        };
        set(wanted, format!("{start}/.{values}/end"));
        return Some("RFC 6570, and OpenAPI since 3.0.4: without explode the values of a label are joined by commas");
    }
    let between = if id.contains("spaceDelimited") { "%20" } else { "%7C" };
    if id.contains("Delimited") && !id.contains("true") && color.is_object() {
        set(wanted, url.replace(',', between).replace("1&2", "1%262"));
        return Some("OpenAPI: what stands between the parts of a map is what the style is named after");
    }
    if id.contains("reserved") {
        let (path, query) = url.split_once('?').unwrap_or_default();
        let text = color.to_string();
        if text.contains(['&', '+', '#']) {
            let query = query
                .replace("x/y&z", "x/y%26z")
                .replace("1+1", "1%2B1")
                .replace("x&y", "x%26y")
                .replace("1&2", "1%262");
            set(wanted, format!("{path}?{query}"));
            return Some("a value ends with &, and + is a space to many servers: they are encoded");
        }
    }
    None
}

/// The same in one way of writing: the reference leaves a bar and the keys of maps as they are.
fn written(url: &str) -> String {
    url.replace('|', "%7C").replace(' ', "%20").replace('[', "%5B").replace(']', "%5D")
}

fn json_of(text: &Value) -> Value {
    serde_json::from_str(text.as_str().unwrap()).unwrap()
}

fn pairs_of(form: &str) -> Vec<&str> {
    let mut pairs: Vec<_> = form.split('&').collect();
    pairs.sort_unstable();
    pairs
}

#[tokio::test]
async fn styles_are_those_of_the_reference() {
    let (address, _) = server().await;
    let tools = service("[openapi.x]\nfile = \"FIXTURES/../openapi/api.json\"\nbase_url = \"@/v1\"\n", address).await;
    assert!(tools.refused.is_empty(), "{:?}", tools.refused);
    let engine = engine(&tools);
    let (mut wrong, mut others) = (Vec::new(), 0);
    for line in include_str!("requests.jsonl").lines() {
        let mut wanted: Value = serde_json::from_str(line).unwrap();
        let (id, arguments) = (wanted["id"].as_str().unwrap().to_owned(), wanted["arguments"].clone());
        wanted["url"] = written(wanted["url"].as_str().unwrap()).into();
        others += usize::from(otherwise(&id, &arguments, &mut wanted).is_some());
        let program = engine.compile(&format!("(tool/x__{id} data/arguments)")).unwrap();
        let outcome = engine.run_async(&program, Input::new().data("arguments", &arguments).into_owned()).await;
        let Ok(sent) = outcome.value::<Value>() else {
            wrong.push(format!("{line}\n  {:?}", outcome.problem()));
            continue;
        };
        let body = wanted["body"].as_str().map(written).unwrap_or_default();
        // JSON is compared as such.
        let same_body = match id.as_str() {
            "body_json" => json_of(&sent["body"]) == json_of(&wanted["body"]),
            // Maps are in the order of their keys.
            "body_form" => pairs_of(sent["body"].as_str().unwrap()) == pairs_of(&body),
            _ => sent["body"] == body,
        };
        let target = sent["target"].as_str().unwrap().strip_prefix("/v1").unwrap();
        if target != wanted["url"] || sent["headers"].get("color") != wanted.get("header") || !same_body {
            wrong.push(format!("{wanted}\n  {}", json!([target, sent["headers"].get("color"), sent["body"]])));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    println!("{others} are written otherwise");
}
