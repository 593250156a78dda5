//! Tools from the operations of an HTTP API, by its OpenAPI description.

use super::contract::Effect;
use super::document::{LIST_BYTES, each_part_mut, read_description};
use super::import::{Imported, TOOLS, VALUES};
use super::naming::percent_decoded;
use super::operation::{BodyField, Operation, OperationBody, OperationParameter, ParameterStyle};
use super::schema_error::SchemaError;
use super::tool::Tool;
use super::tool_set::Tools;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The maximum length of a chain of references to a part of a description that is not a schema.
const HOPS: usize = 8;
/// Header parameters that are not arguments.
const IGNORED_HEADERS: [&str; 3] = ["accept", "authorization", "content-type"];
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

impl Tools {
    /// Creates tools from an OpenAPI description (3.0 or 3.1, as JSON or YAML), one for each operation.
    ///
    /// A tool is named after the `operationId`. Without one, its name is the method and the path, with `_` for
    /// everything except ASCII letters and digits, as in `get_pets__id_`. Its arguments are the parameters of the
    /// operation, and `body`. [`Tool::operation`] returns the HTTP request, which the host makes.
    ///
    /// ```
    /// use lisp_runtime::Tools;
    /// let api = r##"{"openapi": "3.1.0", "paths": {"/pets/{id}": {"get": {"operationId": "getPet", "summary": "Gets a pet.",
    ///     "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
    ///     "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}}}},
    ///   "components": {"schemas": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}}}}"##;
    /// let imported = Tools::from_openapi(api)?;
    /// let tool = imported.tools.all().next().unwrap();
    /// assert_eq!(tool.signature_text(), "(id :int) -> {name? :string}");
    /// assert_eq!(tool.operation().unwrap().path, "/pets/{id}");
    /// # Ok::<(), lisp_runtime::tools::SchemaError>(())
    /// ```
    ///
    /// # Errors
    /// The text is not such a description. For errors in single operations, see [`Imported::refused`].
    pub fn from_openapi(description: &str) -> Result<Imported, SchemaError> {
        let api = read_description(description, LIST_BYTES, "the description of the API")?;
        let version = version_of(&api, "openapi").unwrap_or_default();
        if !version.starts_with("3.") {
            let what = match version_of(&api, "swagger") {
                Some(version) => format!("it is Swagger {version}: convert it to OpenAPI 3"),
                None => "it is not an OpenAPI 3 description: it must have the field `openapi` at its top, such as `openapi: 3.1.0`".to_owned(),
            };
            return Err(SchemaError::new(what));
        }
        // Schemas of 3.0 are of an older draft, where exclusive limits are flags.
        let mut reader = ApiReader { api: &api, is_old: version.starts_with("3.0"), values: 0 };
        let mut imported = Imported::default();
        let paths = api.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            let item = match reader.resolved(item, true) {
                Ok(item) => item,
                Err(error) => {
                    imported.refuse(path, error);
                    continue;
                }
            };
            for method in METHODS {
                let Some(operation) = item.get(method) else { continue };
                let name = match operation.get("operationId").and_then(Value::as_str) {
                    Some(id) => id.to_owned(),
                    None => format!("{method}{}", path.replace(|c: char| !c.is_ascii_alphanumeric(), "_")),
                };
                if imported.tools.names().count() + imported.refused.len() >= TOOLS {
                    return Err(SchemaError::new(format!("the API has more than {TOOLS} operations")));
                }
                let tool = reader.tool(&name, method, path, &item, operation);
                imported.take(&name, tool);
                if reader.values > VALUES {
                    let message = format!("its operations have schemas of more than {VALUES} values together");
                    return Err(SchemaError::new(message));
                }
            }
        }
        Ok(imported)
    }
}

/// Returns the version in a field of a description. In YAML `3.1` is a number.
fn version_of(api: &Value, field: &str) -> Option<String> {
    match api.get(field)? {
        Value::String(version) => Some(version.chars().take(20).collect()),
        Value::Number(version) => Some(version.to_string()),
        _ => None,
    }
}

/// Whether a schema describes what is sent or what is received. Read-only fields are not sent; write-only fields are
/// not received.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Request,
    Response,
}

/// Reads an API description.
struct ApiReader<'a> {
    api: &'a Value,
    is_old: bool,
    /// The number of values in the schemas so far.
    values: usize,
}

/// The arguments of an operation while they are read.
#[derive(Default)]
struct Arguments {
    fields: Map<String, Value>,
    required: Vec<String>,
    parameters: Vec<OperationParameter>,
    body: Option<OperationBody>,
}

impl<'a> ApiReader<'a> {
    /// Returns the part of the description that a reference points to.
    fn at(&self, reference: &str) -> Result<&'a Value, SchemaError> {
        let shown: String = reference.chars().take(200).collect();
        let Some(pointer) = reference.strip_prefix('#') else {
            let next = "nothing is fetched; bundle the description into one file";
            return Err(SchemaError::new(format!("it refers to {shown:?}, which is another document: {next}")));
        };
        let found = self.api.pointer(pointer).or_else(|| self.api.pointer(&percent_decoded(pointer)));
        found.ok_or_else(|| SchemaError::new(format!("it refers to {shown:?}, which the description does not have")))
    }

    /// Returns a part of the description that is not a schema, with its reference resolved. Fields beside a reference
    /// count in a path item, and everywhere since 3.1.
    fn resolved(&self, part: &'a Value, is_item: bool) -> Result<Cow<'a, Value>, SchemaError> {
        let (mut part, mut beside) = (part, Vec::new());
        for _ in 0..HOPS {
            let Some(reference) = part.get("$ref").and_then(Value::as_str) else {
                if beside.is_empty() {
                    return Ok(Cow::Borrowed(part));
                }
                let mut whole = part.clone();
                if let Value::Object(map) = &mut whole {
                    // The outermost value counts.
                    for more in beside.into_iter().rev() {
                        map.extend(more);
                    }
                }
                return Ok(Cow::Owned(whole));
            };
            if let Value::Object(map) = part
                && map.len() > 1
                && (is_item || !self.is_old)
            {
                let more = map.iter().filter(|(name, _)| *name != "$ref");
                beside.push(more.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>());
            }
            part = self.at(reference)?;
        }
        Err(SchemaError::new(format!("a reference in it leads to another one more than {HOPS} times")))
    }

    fn tool(
        &mut self,
        name: &str,
        method: &str,
        path: &str,
        item: &Value,
        operation: &Value,
    ) -> Result<Tool, SchemaError> {
        let mut arguments = Arguments::default();
        self.parameters(item, operation, &mut arguments)?;
        if let Some(request) = operation.get("requestBody") {
            self.body(request, &mut arguments)?;
        }
        let Arguments { fields, required, parameters, body } = arguments;
        let mut input = json!({"type": "object", "properties": fields, "additionalProperties": false});
        if !required.is_empty() {
            input["required"] = required.into();
        }
        let input = self.whole(input, Of::Request)?;
        let output = self.output(operation)?;
        let text = |keyword: &str| operation.get(keyword).and_then(Value::as_str).filter(|text| !text.is_empty());
        let about = [text("summary"), text("description")].into_iter().flatten().collect::<Vec<_>>().join("\n");
        let reads = matches!(method, "get" | "head" | "options" | "trace");
        let mut tool = Tool::of_values(name, &about, input, output)?.treat(|treatment| {
            treatment.effect = if reads { Effect::Read } else { Effect::Write };
            treatment.idempotent = !matches!(method, "post" | "patch");
        });
        let server = [operation, item, self.api].into_iter().find_map(server_of);
        let (method, path) = (method.to_uppercase(), path.to_owned());
        tool.operation = Some(Arc::new(Operation { method, path, parameters, body, server }));
        Ok(tool)
    }

    fn parameters(&self, item: &Value, operation: &Value, arguments: &mut Arguments) -> Result<(), SchemaError> {
        let mut seen = BTreeSet::new();
        // Parameters of the operation come first and replace those of the path.
        for of in [operation, item] {
            for given in of.get("parameters").and_then(Value::as_array).into_iter().flatten() {
                let parameter = self.resolved_owned(given)?;
                let text = |keyword: &str| parameter.get(keyword).and_then(Value::as_str).unwrap_or_default();
                let (name, location) = (text("name").to_owned(), text("in").to_owned());
                let is_ignored = location == "header" && IGNORED_HEADERS.contains(&name.to_ascii_lowercase().as_str());
                if name.is_empty() || is_ignored || !seen.insert((name.clone(), location.clone())) {
                    continue;
                }
                self.parameter(&parameter, &name, &location, arguments)?;
            }
        }
        Ok(())
    }

    /// Like [`ApiReader::resolved`], for a part of a merged part.
    fn resolved_owned(&self, part: &Value) -> Result<Value, SchemaError> {
        let Some(reference) = part.get("$ref").and_then(Value::as_str) else { return Ok(part.clone()) };
        let mut found = self.resolved(self.at(reference)?, false)?.into_owned();
        if let (Value::Object(found), Value::Object(given), false) = (&mut found, part, self.is_old) {
            let beside = given.iter().filter(|(name, _)| *name != "$ref");
            found.extend(beside.map(|(name, value)| (name.clone(), value.clone())));
        }
        Ok(found)
    }

    fn parameter(
        &self,
        parameter: &Value,
        name: &str,
        location: &str,
        arguments: &mut Arguments,
    ) -> Result<(), SchemaError> {
        let fields = &mut arguments.fields;
        let argument = if fields.contains_key(name) { format!("{location}_{name}") } else { name.to_owned() };
        let content = content_of(parameter);
        let schema = parameter.get("schema").or_else(|| content?.1.get("schema"));
        let mut schema = schema.cloned().unwrap_or_else(|| json!({}));
        let about = parameter.get("description").and_then(Value::as_str).unwrap_or_default();
        let (style, explode) = match content.filter(|_| parameter.get("schema").is_none()) {
            Some((media, _)) if media.contains("json") => (ParameterStyle::Json, false),
            Some((media, _)) if !media.starts_with("text/") => {
                return Err(SchemaError::new(format!("its parameter {name} is written as {media}, and not as JSON")));
            }
            _ => style_of(parameter, name, location)?,
        };
        if location == "cookie" && explode && self.has_parts(&schema) {
            return Err(SchemaError::new(format!(
                "its parameter {name} is a cookie with several values and explode, which no cookie can have"
            )));
        }
        if let (Value::Object(schema), false) = (&mut schema, about.is_empty()) {
            schema.insert("description".to_owned(), about.into());
        }
        let is_set = |keyword: &str| parameter.get(keyword) == Some(&Value::Bool(true));
        if is_set("required") || location == "path" {
            arguments.required.push(argument.clone());
        }
        fields.insert(argument.clone(), schema);
        arguments.parameters.push(OperationParameter {
            argument,
            name: name.to_owned(),
            location: location.to_owned(),
            style,
            explode,
            allow_reserved: is_set("allowReserved"),
        });
        Ok(())
    }

    /// Follows the references of a schema until its type is visible.
    fn target<'v>(&'v self, mut schema: &'v Value) -> &'v Value {
        for _ in 0..HOPS {
            match schema.get("$ref").and_then(Value::as_str).and_then(|reference| self.at(reference).ok()) {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }

    /// Returns whether it is a schema of arrays or objects.
    fn has_parts(&self, schema: &Value) -> bool {
        matches!(self.target(schema).get("type").and_then(Value::as_str), Some("array" | "object"))
    }

    fn body(&self, request: &Value, arguments: &mut Arguments) -> Result<(), SchemaError> {
        let request = self.resolved_owned(request)?;
        let contents = request.get("content").and_then(Value::as_object);
        let sendable =
            contents.into_iter().flatten().filter_map(|(media, content)| Some((rank(media)?, media, content)));
        let Some((_, media, content)) = sendable.min_by_key(|(rank, ..)| *rank) else {
            let medias = contents.into_iter().flatten().map(|(media, _)| media.as_str()).collect::<Vec<_>>().join(", ");
            return match medias.is_empty() {
                true => Ok(()),
                false => {
                    Err(SchemaError::new(format!("its body is {medias}; JSON, forms, texts and bytes can be sent")))
                }
            };
        };
        let argument = if arguments.fields.contains_key("body") { "request_body" } else { "body" };
        let mut schema = content.get("schema").cloned().unwrap_or_else(|| json!({}));
        let mut fields = BTreeMap::new();
        let plain = plain(media);
        if plain == "application/octet-stream" {
            schema = bytes_schema(&schema);
        } else if matches!(plain.as_str(), "multipart/form-data" | "application/x-www-form-urlencoded") {
            fields = self.body_fields(&mut schema, content, plain == "multipart/form-data")?;
        }
        arguments.fields.insert(argument.to_owned(), schema);
        if request.get("required") == Some(&Value::Bool(true)) {
            arguments.required.push(argument.to_owned());
        }
        let media = if plain.contains('*') { "application/json".to_owned() } else { plain };
        arguments.body = Some(OperationBody { argument: argument.to_owned(), media, fields });
        Ok(())
    }

    /// Returns how the fields of a form are encoded. Binary fields take their bytes as they are.
    fn body_fields(
        &self,
        schema: &mut Value,
        content: &Value,
        has_files: bool,
    ) -> Result<BTreeMap<String, BodyField>, SchemaError> {
        let whole = self.target(schema).clone();
        let mut fields = BTreeMap::new();
        for (name, encoding) in content.get("encoding").and_then(Value::as_object).into_iter().flatten() {
            let has_style = ["style", "explode", "allowReserved"].iter().any(|keyword| encoding.get(keyword).is_some());
            let style = has_style.then(|| style_of(encoding, name, "query")).transpose()?;
            let media = encoding.get("contentType").and_then(Value::as_str);
            let field = BodyField {
                style: style.map(|(style, _)| style),
                explode: style.is_some_and(|(_, explode)| explode),
                allow_reserved: encoding.get("allowReserved") == Some(&Value::Bool(true)),
                media: media.map(|media| media.split(',').next().unwrap_or_default().trim().to_owned()),
            };
            fields.insert(name.clone(), field);
        }
        let mut has_bytes = false;
        let mut changed = whole.clone();
        let properties = changed.get_mut("properties").and_then(Value::as_object_mut);
        for (name, property) in properties.into_iter().flatten().filter(|_| has_files) {
            let target = self.target(property).clone();
            let items = target.get("items").map(|items| self.target(items).clone());
            let is_bytes = |schema: &Value| {
                let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
                text("format") == Some("binary")
                    || (text("contentMediaType").is_some() && text("contentEncoding").is_none())
            };
            if is_bytes(&target) {
                *property = bytes_schema(&target);
            } else if let Some(items) = items.filter(is_bytes) {
                *property = target;
                property["items"] = bytes_schema(&items);
            } else {
                continue;
            }
            has_bytes = true;
            let field = fields.entry(name.clone()).or_insert_with(BodyField::default);
            field.media.get_or_insert_with(|| "application/octet-stream".to_owned());
        }
        if has_bytes {
            *schema = changed;
        }
        Ok(fields)
    }

    /// Returns the schema of the result: of the JSON of the first successful response.
    fn output(&mut self, operation: &Value) -> Result<Option<Value>, SchemaError> {
        let responses = operation.get("responses").and_then(Value::as_object);
        let success = responses.into_iter().flatten().find(|(status, _)| status.starts_with('2'));
        let Some((_, response)) = success else { return Ok(None) };
        let response = self.resolved_owned(response)?;
        let content = content_of(&response).filter(|(media, _)| media.contains("json"));
        let Some(schema) = content.and_then(|(_, content)| content.get("schema")) else { return Ok(None) };
        self.whole(json!({"allOf": [schema]}), Of::Response).map(Some)
    }

    /// Returns a schema together with all schemas of the description that it refers to.
    fn whole(&mut self, mut schema: Value, of: Of) -> Result<Value, SchemaError> {
        let mut kept = Map::new();
        let mut left = Vec::new();
        self.values += references(&mut schema, &mut left);
        self.leave_out(&mut schema, of);
        while let Some((name, reference)) = left.pop() {
            if kept.contains_key(&name) {
                continue;
            }
            let mut found = self.at(&reference)?.clone();
            self.values += references(&mut found, &mut left);
            if self.values > VALUES {
                return Err(SchemaError::new(format!("the schemas have more than {VALUES} values together")));
            }
            self.leave_out(&mut found, of);
            kept.insert(name, found);
        }
        if let Value::Object(map) = &mut schema {
            if !kept.is_empty() {
                map.insert("components".to_owned(), json!({"schemas": kept}));
            }
            let draft = "http://json-schema.org/draft-04/schema#";
            if self.is_old {
                map.insert("$schema".to_owned(), draft.into());
            }
        }
        Ok(schema)
    }

    /// Removes what is not sent: read-only fields. Makes write-only fields optional in results.
    fn leave_out(&self, schema: &mut Value, of: Of) {
        let keyword = if of == Of::Request { "readOnly" } else { "writeOnly" };
        if let Value::Object(map) = &mut *schema {
            let mut names = BTreeSet::new();
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                let is_left_out = |schema: &Value| {
                    let is_set = |schema: &Value| schema.get(keyword) == Some(&Value::Bool(true));
                    is_set(schema) || schema.get("$ref").is_some_and(|_| is_set(self.known(schema)))
                };
                names.extend(properties.iter().filter(|(_, schema)| is_left_out(schema)).map(|(name, _)| name.clone()));
                if of == Of::Request {
                    properties.retain(|name, _| !names.contains(name));
                }
            }
            if let Some(Value::Array(required)) = map.get_mut("required")
                && !names.is_empty()
            {
                required.retain(|name| name.as_str().is_none_or(|name| !names.contains(name)));
                if required.is_empty() {
                    map.remove("required");
                }
            }
        }
        each_part_mut(schema, &mut |part| self.leave_out(part, of));
    }

    /// Returns the schema of the description for a reference written by [`references`].
    fn known<'v>(&'v self, schema: &'v Value) -> &'v Value {
        let reference = schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
        let place = reference.strip_prefix(KEPT).map(unescaped).filter(|name| name.starts_with("#/"));
        let found = self.at(place.as_deref().unwrap_or(reference));
        found.map_or(schema, |found| self.target(found))
    }
}

/// Where schemas are kept.
const KEPT: &str = "#/components/schemas/";

fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.replace('~', "~0").replace('/', "~1").bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn unescaped(name: &str) -> String {
    percent_decoded(name).replace("~1", "/").replace("~0", "~")
}

/// Lists the references of a schema, with the names under which their targets are kept, and rewrites references to
/// other parts of the description. Returns the number of values in the schema. The recursion is as deep as the text,
/// which its parser bounds.
fn references(value: &mut Value, found: &mut Vec<(String, String)>) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter_mut().map(|item| references(item, found)).sum::<usize>(),
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref")
                && reference.starts_with("#/")
            {
                match reference.strip_prefix(KEPT) {
                    // Within a kept schema, the reference points to a part of it.
                    Some(rest) => {
                        let name = rest.split('/').next().unwrap_or_default();
                        found.push((unescaped(name), format!("{KEPT}{name}")));
                    }
                    None => {
                        let place = std::mem::take(reference);
                        *reference = format!("{KEPT}{}", escaped(&place));
                        found.push((place.clone(), place));
                    }
                }
            }
            1 + map.values_mut().map(|value| references(value, found)).sum::<usize>()
        }
        _ => 1,
    }
}

/// Returns the style of a parameter, and whether its parts are encoded separately.
fn style_of(of: &Value, name: &str, location: &str) -> Result<(ParameterStyle, bool), SchemaError> {
    use ParameterStyle::{DeepObject, Form, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};
    let (usual, known): (_, &[_]) = match location {
        "path" => ("simple", &[("simple", Simple), ("label", Label), ("matrix", Matrix)]),
        "header" => ("simple", &[("simple", Simple)]),
        "cookie" => ("form", &[("form", Form)]),
        "query" => (
            "form",
            &[
                ("form", Form),
                ("spaceDelimited", SpaceDelimited),
                ("pipeDelimited", PipeDelimited),
                ("deepObject", DeepObject),
            ],
        ),
        other => {
            return Err(SchemaError::new(format!(
                "its parameter {name} is in {other:?}, which is not a place for parameters"
            )));
        }
    };
    let given = of.get("style").and_then(Value::as_str).unwrap_or(usual);
    let Some((_, style)) = known.iter().find(|(name, _)| *name == given) else {
        let message = format!("its parameter {name} has the style {given:?}, which one in the {location} cannot have");
        return Err(SchemaError::new(message));
    };
    let explode = of.get("explode").and_then(Value::as_bool).unwrap_or(*style == Form);
    Ok((*style, explode))
}

/// Returns a media type without its parameters.
fn plain(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns the preference of a content type of a body; `None` if it cannot be sent.
fn rank(media: &str) -> Option<usize> {
    let media = plain(media);
    Some(match media.as_str() {
        "application/json" => 0,
        media if media.ends_with("+json") || media.contains("json") => 1,
        "application/x-www-form-urlencoded" => 2,
        "multipart/form-data" => 3,
        "*/*" | "application/*" => 4,
        media if media.starts_with("text/") => 5,
        "application/octet-stream" => 6,
        _ => return None,
    })
}

/// Returns the schema of bytes: a string, sent as UTF-8, or any bytes.
fn bytes_schema(given: &Value) -> Value {
    let any = json!({"type": "object", "properties": {"base64": {"type": "string"}}, "required": ["base64"],
        "additionalProperties": false});
    let mut schema = json!({"anyOf": [{"type": "string"}, any]});
    if let Some(about) = given.get("description") {
        schema["description"] = about.clone();
    }
    schema
}

/// Returns the URL of the first server that a part of the description names, with default values for its variables.
fn server_of(of: &Value) -> Option<String> {
    let server = of.get("servers")?.get(0)?;
    let mut url = server.get("url")?.as_str()?.to_owned();
    for (name, variable) in server.get("variables").and_then(Value::as_object).into_iter().flatten() {
        if let Some(usual) = variable.get("default").and_then(Value::as_str) {
            url = url.replace(&format!("{{{name}}}"), usual);
        }
    }
    Some(url)
}

/// Returns the JSON content of a request or response, or else its first content, with the media type.
fn content_of(part: &Value) -> Option<(&str, &Value)> {
    let all = part.get("content")?.as_object()?;
    let json = all.iter().find(|(media, _)| plain(media) == "application/json");
    let json = json.or_else(|| all.iter().find(|(media, _)| media.contains("json")));
    json.or_else(|| all.iter().next()).map(|(media, content)| (media.as_str(), content))
}
