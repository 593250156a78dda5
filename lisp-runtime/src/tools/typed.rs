//! Tools by the Rust types of their arguments and results.

use super::schema_error::SchemaError;
use super::tool::{Tool, ToolCall, ToolError};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

impl Tool {
    /// Creates a tool from the Rust types of its arguments and its result. Requires the feature `schemars`.
    ///
    /// The JSON Schemas of the types are checked, as with [`Tool::from_json_schema`], and the closure receives typed
    /// arguments. Attributes for `serde` (`rename`, `default`, `tag`) also apply to the schema. Arguments that the type does not
    /// have are refused, unless it flattens another type into itself.
    /// The first paragraph of the argument type's documentation describes the tool, unless [`Tool::about`] is used.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool};
    /// /// Finds orders of a customer.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Find {
    ///     customer: String,
    ///     #[schemars(range(min = 1, max = 50))]
    ///     #[serde(default = "ten")]
    ///     most: u32,
    /// }
    /// fn ten() -> u32 { 10 }
    /// let find = Tool::typed("find_orders", |find: Find, _| Ok(vec![find.customer; find.most as usize]))?;
    /// assert_eq!(find.signature_text(), "(customer :string, most? :int<1..50> = 10) -> [:string]");
    /// let engine = Engine::builder().grant(find).build()?;
    /// assert!(engine.prompt().contains("Finds orders of a customer."));
    /// assert_eq!(engine.eval("(tool/find_orders {:customer \"ann\" :most 2})", Input::new()).text(), Some(r#"["ann" "ann"]"#));
    /// let refused = engine.eval("(tool/find_orders {:customer \"ann\" :most 51})", Input::new());
    /// assert!(refused.problem().is_some_and(|problem| problem.error.message.contains("most")));
    /// let refused = engine.eval("(tool/find_orders {:customer \"ann\" :mots 2})", Input::new());
    /// assert!(refused.problem().is_some_and(|problem| problem.error.message.contains("mots")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Tool::from_json_schema`]: the schema of a type exceeds the limits in `docs/tools.md`, or the
    /// arguments are not an object.
    pub fn typed<A, R>(
        name: &str,
        function: impl Fn(A, &ToolCall) -> Result<R, ToolError> + Send + Sync + 'static,
    ) -> Result<Self, SchemaError>
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: Serialize + JsonSchema + 'static,
    {
        let mut input = schema::<A>(SchemaSettings::draft2020_12().for_deserialize().into_generator())?;
        close(&mut input);
        let output = schema::<R>(SchemaSettings::draft2020_12().for_serialize().into_generator())?;
        let about = input.get("description").and_then(|text| text.as_str()).unwrap_or_default();
        let about = about.split("\n\n").next().unwrap_or_default().to_owned();
        let tool = Tool::from_json_schema(name, &about, &input.to_string(), Some(&output.to_string()))?;
        Ok(tool.with_handler(move |call| function(call.arguments()?, call)))
    }
}

/// Closes the objects of a schema whose fields are all listed: serde would skip a misspelt one in silence.
fn close(schema: &mut Value) {
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        match schema {
            Value::Object(fields) => {
                let is_listed = fields.contains_key("properties");
                let has_more =
                    ["allOf", "anyOf", "oneOf", "additionalProperties", "patternProperties", "unevaluatedProperties"]
                        .iter()
                        .any(|keyword| fields.contains_key(*keyword));
                if is_listed && !has_more {
                    fields.insert("additionalProperties".to_owned(), Value::Bool(false));
                }
                // What is flattened into an object is one of its alternatives.
                let parts = fields.iter_mut().filter(|(keyword, _)| !is_listed || !keyword.ends_with("Of"));
                open.extend(parts.map(|(_, part)| part));
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}

fn schema<T: JsonSchema>(generator: SchemaGenerator) -> Result<serde_json::Value, SchemaError> {
    serde_json::to_value(generator.into_root_schema_for::<T>()).map_err(|error| SchemaError::new(error.to_string()))
}
