//! Builds HTTP requests from the arguments of calls.

use super::body::Body;
use super::style::{Style, has_parts, header, pairs, plain, segment};
use crate::config::{UrlTemplate, encoded, is_own_header};
use lisp_runtime::ToolError;
use lisp_runtime::tools::{Operation, OperationParameter, ParameterStyle};
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum length of a URL in bytes, which servers commonly accept.
const URL_BYTES: usize = 8_000;

/// The arguments of a call, each as JSON text.
type Arguments = BTreeMap<String, Box<RawValue>>;

/// Where the arguments of a call go in the request.
#[derive(Debug)]
pub(super) struct Request {
    method: Method,
    url: UrlTemplate,
    /// The parameter names in the URL's own query.
    fixed: BTreeSet<String>,
    places: Places,
}

/// Where the arguments go that are not in the path.
#[derive(Debug)]
enum Places {
    /// All in the query.
    Query,
    /// All in the body, as a JSON object.
    Body,
    /// As the OpenAPI description says.
    Described {
        /// Arguments in the path, by their names there.
        path: BTreeMap<String, (String, Style)>,
        others: Vec<ArgumentPlace>,
        body: Option<Body>,
    },
}

/// An argument that is not in the path.
#[derive(Debug)]
struct ArgumentPlace {
    argument: String,
    name: String,
    place: Place,
    style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Query,
    Header,
    Cookie,
    /// A header that only the service sets. The argument is not sent.
    Nowhere,
}

/// A request ready to be sent, except for the configured headers.
#[derive(Debug)]
pub(super) struct PreparedRequest {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

impl Request {
    /// Creates the request of a tool in the configuration.
    pub(super) fn new(method: Method, url: UrlTemplate) -> Self {
        let places = if matches!(method, Method::GET | Method::DELETE) { Places::Query } else { Places::Body };
        Request { method, fixed: url.query_names(), url, places }
    }

    /// Creates the request of an operation of an API.
    ///
    /// # Errors
    /// If the operation cannot be requested. The error says why.
    pub(super) fn of_operation(operation: &Operation, base: &Url) -> Result<Self, String> {
        let method = Method::from_bytes(operation.method.as_bytes()).map_err(|_| "its method is invalid".to_owned())?;
        let url = UrlTemplate::below(base, &operation.path)?;
        let (mut path, mut others) = (BTreeMap::new(), Vec::new());
        for parameter in &operation.parameters {
            let OperationParameter { argument, name, location, .. } = parameter;
            let style = Style::of(parameter);
            let place = match location.as_str() {
                "path" => {
                    path.insert(name.clone(), (argument.clone(), style));
                    continue;
                }
                "query" => Place::Query,
                "header" => {
                    let header = HeaderName::from_bytes(name.as_bytes())
                        .map_err(|_| format!("{name:?} is not a valid header name"))?;
                    if is_own_header(&header) { Place::Nowhere } else { Place::Header }
                }
                "cookie" if encoded(name) == *name => Place::Cookie,
                "cookie" => return Err(format!("{name:?} is not a valid name of a cookie")),
                other => {
                    return Err(format!("its parameter {name} is in {other:?}, which is not a place for parameters"));
                }
            };
            others.push(ArgumentPlace { argument: argument.clone(), name: name.clone(), place, style });
        }
        if let Some(name) = url.arguments().find(|name| !path.contains_key(*name)) {
            return Err(format!("its path has {{{name}}}, which is not one of its parameters"));
        }
        let body = operation.body.as_ref().map(Body::of).transpose()?;
        Ok(Request { method, fixed: BTreeSet::new(), url, places: Places::Described { path, others, body } })
    }

    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Builds the request for a call with these arguments, a JSON object.
    pub(super) fn make(&self, arguments: &str) -> Result<PreparedRequest, ToolError> {
        let mut arguments: Arguments = serde_json::from_str(arguments)
            .map_err(|error| ToolError::invalid_arguments(format!("the arguments are not an object: {error}")))?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/plain;q=0.9, */*;q=0.5"));
        let mut query = Vec::new();
        let plain_path = |name: &str| (name.to_owned(), Style::PLAIN);
        let mut prepared = match &self.places {
            Places::Query => {
                let url = self.address(&mut arguments, plain_path)?;
                for (name, value) in &arguments {
                    // Without a description, maps are sent as JSON and spaces are encoded as in forms.
                    let kind = if value.get().starts_with('{') { ParameterStyle::Json } else { ParameterStyle::Form };
                    self.add_to_query(&mut query, (name, name, Style { kind, ..Style::PLAIN }), value)?;
                }
                query.iter_mut().for_each(|(_, value)| *value = value.replace("%20", "+"));
                PreparedRequest { url, headers, body: None }
            }
            Places::Body => {
                let url = self.address(&mut arguments, plain_path)?;
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                PreparedRequest { url, headers, body: Some(serde_json::to_vec(&arguments)?) }
            }
            Places::Described { path, others, body } => {
                let described = |name: &str| path.get(name).cloned().unwrap_or_default();
                let url = self.address(&mut arguments, described)?;
                let mut prepared = PreparedRequest { url, headers, body: None };
                for described in others {
                    let value = arguments.remove(&described.argument);
                    if let Some(value) = value.filter(|value| value.get() != "null") {
                        self.place(&mut prepared, &mut query, described, &value)?;
                    }
                }
                if let Some(body) = body
                    && let Some(value) = arguments.remove(&body.argument)
                {
                    let (bytes, media) = body.write(&value)?;
                    prepared.headers.insert(CONTENT_TYPE, HeaderValue::from_str(&media)?);
                    prepared.body = Some(bytes);
                }
                if let Some(name) = arguments.keys().next() {
                    return Err(ToolError::invalid_arguments(format!(
                        "the argument {name} has no place in the request"
                    )));
                }
                prepared
            }
        };
        if !query.is_empty() {
            let own = prepared.url.query().map(|own| format!("{own}&")).unwrap_or_default();
            let pairs: Vec<_> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            prepared.url.set_query(Some(&format!("{own}{}", pairs.join("&"))));
        }
        if prepared.url.as_str().len() > URL_BYTES {
            let message = format!(
                "the URL has {} bytes with its arguments; the maximum is {URL_BYTES}",
                prepared.url.as_str().len()
            );
            return Err(ToolError::invalid_arguments(message));
        }
        Ok(prepared)
    }

    /// Builds the URL, and removes the arguments of its path from the others.
    fn address(
        &self,
        arguments: &mut Arguments,
        argument_of: impl Fn(&str) -> (String, Style),
    ) -> Result<Url, ToolError> {
        let url = self.url.fill(|name| {
            let (argument, style) = argument_of(name);
            // Without a description, lists and maps are sent as JSON, as one path segment.
            match arguments.get(&argument)? {
                value if style == Style::PLAIN => {
                    let text = plain(value);
                    (value.get() != "null").then(|| (encoded(&text), vec![text]))
                }
                value => segment(style, name, value),
            }
        });
        let url = url.map_err(ToolError::invalid_arguments)?;
        for name in self.url.arguments() {
            arguments.remove(&argument_of(name).0);
        }
        Ok(url)
    }

    fn place(
        &self,
        prepared: &mut PreparedRequest,
        query: &mut Vec<(String, String)>,
        described: &ArgumentPlace,
        value: &RawValue,
    ) -> Result<(), ToolError> {
        let ArgumentPlace { argument, name, place, style } = described;
        let Some(text) = header(*style, value) else { return Ok(()) };
        match place {
            Place::Query => self.add_to_query(query, (argument, name, *style), value),
            Place::Header => {
                let header = HeaderValue::from_str(&text).ok().filter(|_| text.is_ascii()).ok_or_else(|| {
                    ToolError::invalid_arguments(format!(
                        "the argument {argument} is a header, and has a character that headers cannot have: a line break, or one \
                         that is not ASCII"
                    ))
                })?;
                prepared.headers.insert(HeaderName::from_bytes(name.as_bytes())?, header);
                Ok(())
            }
            Place::Nowhere => {
                let message = format!(
                    "the argument {argument} is the header {name}, which the service sets itself; leave it out"
                );
                Err(ToolError::invalid_arguments(message))
            }
            Place::Cookie => {
                if style.explode && has_parts(value) {
                    let why = "has several values, and a cookie with explode has one";
                    return Err(ToolError::invalid_arguments(format!("the argument {argument} {why}")));
                }
                let cookie = format!("{name}={}", encoded(&text));
                let all = match prepared.headers.get(COOKIE).and_then(|before| before.to_str().ok()) {
                    Some(before) => format!("{before}; {cookie}"),
                    None => cookie,
                };
                prepared.headers.insert(COOKIE, HeaderValue::from_str(&all)?);
                Ok(())
            }
        }
    }

    fn add_to_query(
        &self,
        query: &mut Vec<(String, String)>,
        (argument, name, style): (&str, &str, Style),
        value: &RawValue,
    ) -> Result<(), ToolError> {
        let refuse = |why: String| Err(ToolError::invalid_arguments(format!("the argument {argument} {why}")));
        if self.fixed.contains(name) {
            return refuse("is set by the service, in the address of the tool".to_owned());
        }
        let added = match pairs(style, name, value) {
            Ok(added) => added,
            Err(why) => return refuse(format!("cannot be written into a query: {why}")),
        };
        // The keys of a map become parameter names, but must not take the name of another argument.
        let own = encoded(name);
        let is_other = |key: &str| key != own && self.names_in_query().any(|known| encoded(known) == key);
        if let Some((key, _)) = added.iter().find(|(key, _)| is_other(key)) {
            return refuse(format!("has the key {key}, which is the name of another argument"));
        }
        query.extend(added);
        Ok(())
    }

    /// Returns the parameter names of arguments in the query, according to the description.
    fn names_in_query(&self) -> impl Iterator<Item = &str> {
        let others: &[ArgumentPlace] = match &self.places {
            Places::Described { others, .. } => others,
            _ => &[],
        };
        others.iter().filter(|other| other.place == Place::Query).map(|other| other.name.as_str())
    }
}
