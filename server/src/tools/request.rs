//! What of a call goes where in an HTTP request.

use crate::config::{UrlTemplate, encoded, is_own_header};
use lisp_runtime::{Operation, OperationParameter, ToolError};
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// The longest URL, in bytes: what servers take.
const URL_BYTES: usize = 8_000;

/// The arguments of a call, each as JSON text.
type Arguments = BTreeMap<String, Box<RawValue>>;

/// What of a call goes where.
#[derive(Debug)]
pub(super) struct Request {
    method: Method,
    url: UrlTemplate,
    /// The names in the query of the URL itself.
    fixed: BTreeSet<String>,
    places: Places,
}

/// Where arguments go that are not in the path.
#[derive(Debug)]
enum Places {
    /// All into the query
    Query,
    /// All into the body, an object
    Body,
    /// Where the description of an API has them
    Described {
        /// Arguments of the path, by their names there.
        path: BTreeMap<String, String>,
        /// The others: argument, name, place.
        others: Vec<(String, String, Place)>,
        body: Option<(String, Media)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Query,
    Header,
    Cookie,
    /// A header that only the service sets
    Nowhere,
}

/// What a body is written as.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Media {
    Json(String),
    Form,
    Text(String),
}

/// A request that is ready to be sent, but for the headers of the service.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
}

impl Request {
    /// The request of a tool of the configuration.
    pub(super) fn new(method: Method, url: UrlTemplate) -> Self {
        let places = if matches!(method, Method::GET | Method::DELETE) { Places::Query } else { Places::Body };
        Request { method, fixed: url.query_names(), url, places }
    }

    /// The request of an operation of an API.
    ///
    /// # Errors
    /// Why the operation cannot be requested.
    pub(super) fn of_operation(operation: &Operation, base: &Url) -> Result<Self, String> {
        let method = Method::from_bytes(operation.method.as_bytes()).map_err(|_| "its method is none".to_owned())?;
        let url = UrlTemplate::below(base, &operation.path)?;
        let (mut path, mut others) = (BTreeMap::new(), Vec::new());
        for OperationParameter { argument, name, location } in &operation.parameters {
            let place = match location.as_str() {
                "path" => {
                    path.insert(name.clone(), argument.clone());
                    continue;
                }
                "query" => Place::Query,
                "header" => {
                    let header =
                        HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name:?} is no header"))?;
                    if is_own_header(&header) { Place::Nowhere } else { Place::Header }
                }
                "cookie" if encoded(name) == *name => Place::Cookie,
                "cookie" => return Err(format!("{name:?} is no name of a cookie")),
                other => return Err(format!("its parameter {name} is in {other:?}, which is no place")),
            };
            others.push((argument.clone(), name.clone(), place));
        }
        if let Some(name) = url.arguments().find(|name| !path.contains_key(*name)) {
            return Err(format!("its path has {{{name}}}, which is none of its parameters"));
        }
        let body =
            operation.body.as_ref().map(|(argument, media)| Ok::<_, String>((argument.clone(), Media::of(media)?)));
        Ok(Request {
            method,
            fixed: BTreeSet::new(),
            url,
            places: Places::Described { path, others, body: body.transpose()? },
        })
    }

    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// The request of a call with these arguments, a JSON object.
    pub(super) fn make(&self, arguments: &str) -> Result<Made, ToolError> {
        let mut arguments: Arguments = serde_json::from_str(arguments)
            .map_err(|error| ToolError::invalid_arguments(format!("the arguments are no object: {error}")))?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/plain;q=0.9, */*;q=0.5"));
        let made = match &self.places {
            Places::Query => {
                let mut url = self.address(&mut arguments, str::to_owned)?;
                for (name, value) in &arguments {
                    self.add_to_query(&mut url, name, name, value)?;
                }
                Made { url, headers, body: None }
            }
            Places::Body => {
                let url = self.address(&mut arguments, str::to_owned)?;
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Made { url, headers, body: Some(serde_json::to_string(&arguments)?) }
            }
            Places::Described { path, others, body } => {
                let url = self.address(&mut arguments, |name| path.get(name).cloned().unwrap_or_default())?;
                let mut made = Made { url, headers, body: None };
                for (argument, name, place) in others {
                    let Some(value) = arguments.remove(argument).filter(|value| value.get() != "null") else {
                        continue;
                    };
                    self.place(&mut made, (argument, name, *place), &value)?;
                }
                if let Some((argument, media)) = body
                    && let Some(value) = arguments.remove(argument)
                {
                    let (text, media) = media.write(argument, &value)?;
                    made.headers.insert(CONTENT_TYPE, HeaderValue::from_str(&media)?);
                    made.body = Some(text);
                }
                if let Some(name) = arguments.keys().next() {
                    return Err(ToolError::invalid_arguments(format!(
                        "the argument {name} has no place in the request"
                    )));
                }
                made
            }
        };
        if made.url.as_str().len() > URL_BYTES {
            let message = format!(
                "the address has {} bytes with its arguments, and may have {URL_BYTES}",
                made.url.as_str().len()
            );
            return Err(ToolError::invalid_arguments(message));
        }
        Ok(made)
    }

    /// The URL; the arguments of its path are taken out of the others.
    fn address(&self, arguments: &mut Arguments, argument_of: impl Fn(&str) -> String) -> Result<Url, ToolError> {
        let url = self.url.fill(|name| plain(arguments.get(&argument_of(name))?));
        let url = url.map_err(ToolError::invalid_arguments)?;
        for name in self.url.arguments() {
            arguments.remove(&argument_of(name));
        }
        Ok(url)
    }

    fn place(
        &self,
        made: &mut Made,
        (argument, name, place): (&str, &str, Place),
        value: &RawValue,
    ) -> Result<(), ToolError> {
        let text = || plain(value).unwrap_or_else(|| value.get().to_owned());
        match place {
            Place::Query => self.add_to_query(&mut made.url, argument, name, value),
            Place::Header => {
                let text = text();
                let header = HeaderValue::from_str(&text).ok().filter(|_| text.is_ascii()).ok_or_else(|| {
                    ToolError::invalid_arguments(format!(
                        "the argument {argument} is a header, and has a character that headers cannot have: a line break, or one \
                         that is not ASCII"
                    ))
                })?;
                made.headers.insert(HeaderName::from_bytes(name.as_bytes())?, header);
                Ok(())
            }
            Place::Nowhere => {
                let message = format!(
                    "the argument {argument} is the header {name}, which the service sets itself; leave it out"
                );
                Err(ToolError::invalid_arguments(message))
            }
            Place::Cookie => {
                let cookie = format!("{name}={}", encoded(&text()));
                let all = match made.headers.get(COOKIE).and_then(|before| before.to_str().ok()) {
                    Some(before) => format!("{before}; {cookie}"),
                    None => cookie,
                };
                made.headers.insert(COOKIE, HeaderValue::from_str(&all)?);
                Ok(())
            }
        }
    }

    fn add_to_query(&self, url: &mut Url, argument: &str, name: &str, value: &RawValue) -> Result<(), ToolError> {
        if self.fixed.contains(name) {
            let message = format!("the argument {argument} is set by the service, in the address of the tool");
            return Err(ToolError::invalid_arguments(message));
        }
        let mut query = url.query_pairs_mut();
        for value in items(value) {
            if let Some(text) = plain(&value) {
                query.append_pair(name, &text);
            }
        }
        Ok(())
    }
}

impl Media {
    fn of(media: &str) -> Result<Self, String> {
        let plain = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if plain.contains("json") {
            Ok(Media::Json(plain))
        } else if plain == "application/x-www-form-urlencoded" {
            Ok(Media::Form)
        } else if plain.starts_with("text/") {
            Ok(Media::Text(plain))
        } else {
            Err(format!("its body is {plain:?}; JSON, forms and texts can be sent"))
        }
    }

    /// A body, and its media type.
    fn write(&self, argument: &str, value: &RawValue) -> Result<(String, String), ToolError> {
        match self {
            Media::Json(media) => Ok((value.get().to_owned(), media.clone())),
            Media::Text(media) => match serde_json::from_str::<String>(value.get()) {
                Ok(text) => Ok((text, format!("{media}; charset=utf-8"))),
                Err(_) => Err(ToolError::invalid_arguments(format!(
                    "the argument {argument} is sent as text: write a string"
                ))),
            },
            Media::Form => {
                let fields: Arguments = serde_json::from_str(value.get()).map_err(|_| {
                    ToolError::invalid_arguments(format!("the argument {argument} is sent as a form: write a map"))
                })?;
                let mut form = String::new();
                for (name, value) in &fields {
                    for value in items(value) {
                        if let Some(text) = plain(&value) {
                            let and = if form.is_empty() { "" } else { "&" };
                            form.push_str(&format!("{and}{}={}", encoded(name), encoded(&text)));
                        }
                    }
                }
                Ok((form, "application/x-www-form-urlencoded".to_owned()))
            }
        }
    }
}

/// A value of a query or a form: each item of a list on its own.
fn items(value: &RawValue) -> Vec<Box<RawValue>> {
    serde_json::from_str::<Vec<Box<RawValue>>>(value.get()).unwrap_or_else(|_| vec![value.to_owned()])
}

/// A value as text: a string as it is, nothing for null, others as JSON.
fn plain(value: &RawValue) -> Option<String> {
    match value.get() {
        "null" => None,
        text => Some(serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned())),
    }
}
