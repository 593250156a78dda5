//! Sends the HTTP requests of tools and reads the responses.

use super::clients::{NotPublic, innermost};
use super::error::cut;
use super::request::Request;
use super::sending::before_sending;
use crate::config::{CallSettings, Header, Method as ConfigMethod, Scrubber};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use lisp_runtime::tools::Effect;
use lisp_runtime::{Tool, ToolCall, ToolError};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Response, StatusCode};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// The maximum bytes read from the body of an error response.
const ERROR_BYTES: usize = 2_000;
/// The maximum characters of that body that a program sees.
const ERROR_CHARS: usize = 500;

/// A tool's result as JSON text.
pub(super) type Json = Box<RawValue>;

/// The HTTP endpoint of a tool, with its settings.
pub(super) struct Endpoint {
    pub(super) client: Client,
    pub(super) request: Request,
    pub(super) headers: Vec<Header>,
    pub(super) secrets: Scrubber,
    pub(super) settings: CallSettings,
    pub(super) effect: Effect,
    pub(super) places: Arc<Semaphore>,
    /// The field of the configuration.
    pub(super) field: String,
}

impl From<ConfigMethod> for reqwest::Method {
    fn from(method: ConfigMethod) -> Self {
        match method {
            ConfigMethod::Get => reqwest::Method::GET,
            ConfigMethod::Post => reqwest::Method::POST,
            ConfigMethod::Put => reqwest::Method::PUT,
            ConfigMethod::Patch => reqwest::Method::PATCH,
            ConfigMethod::Delete => reqwest::Method::DELETE,
        }
    }
}

/// Applies the settings of the configuration to a tool.
pub(super) fn with_settings(mut tool: Tool, settings: &CallSettings) -> Tool {
    if let Some(effect) = settings.effect {
        tool = tool.with_effect(effect);
    }
    if settings.idempotent == Some(true) {
        tool = tool.idempotent();
    }
    if settings.cached {
        tool = tool.cached();
    }
    if settings.tagged {
        tool = tool.tagged();
    }
    tool.max_calls(settings.max_calls).redact(settings.redact.clone())
}

/// The deadline of a call, and the error message for exceeding it.
pub(super) struct Deadline {
    at: Instant,
    why: String,
}

impl Deadline {
    /// How long after the end of the run its call is stopped, if it is not dropped. The run ends first, which leaves the
    /// outcome of the call unknown; an error of the call would say that it failed.
    const AFTER_RUN: Duration = Duration::from_secs(1);

    pub(super) fn of(call: &ToolCall, settings: &CallSettings, field: &str) -> Self {
        let own = Duration::from_millis(settings.timeout_ms);
        match call.remaining() {
            Some(left) if left < own => {
                Deadline { at: Instant::now() + left + Self::AFTER_RUN, why: "the time of the run is over".to_owned() }
            }
            _ => Deadline {
                at: Instant::now() + own,
                why: format!("it took longer than {} ms (timeout_ms of {field})", settings.timeout_ms),
            },
        }
    }

    /// Returns the result of the work, or an error at the deadline.
    pub(super) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, ToolError> {
        timeout_at(self.at, work).await.map_err(|_| ToolError::new(self.why.clone()))
    }
}

impl Endpoint {
    /// Makes a call.
    pub(super) async fn call(&self, call: &ToolCall) -> Result<Json, ToolError> {
        let deadline = Deadline::of(call, &self.settings, &self.field);
        let _place = before_sending(call, deadline.within(self.places.acquire()))
            .await
            .map_err(|error| {
                let max = self.settings.concurrency;
                ToolError::new(format!("{error}: {max} calls are in progress (concurrency of {})", self.field))
            })?
            .map_err(|_| ToolError::new("the service is shutting down"))?;
        let result = deadline.within(self.exchange(call)).await.and_then(|result| result);
        result.map_err(|mut error| {
            self.scrub(&mut error);
            error
        })
    }

    /// Removes all secrets from an error.
    fn scrub(&self, error: &mut ToolError) {
        let text = error.to_string();
        if let Cow::Owned(scrubbed) = self.secrets.scrub(&text) {
            *error = error.clone().with_message(scrubbed);
        }
    }

    async fn exchange(&self, call: &ToolCall) -> Result<Json, ToolError> {
        let mut made = self.request.make(call.json())?;
        self.add_headers(&mut made.headers, call)?;
        let mut request = self.client.request(self.request.method().clone(), made.url).headers(made.headers);
        if let Some(body) = made.body {
            request = request.body(body);
        }
        let response = request.send().await.map_err(|error| unreachable_by(&error))?;
        self.read(response).await
    }

    fn add_headers(&self, headers: &mut HeaderMap, call: &ToolCall) -> Result<(), ToolError> {
        for Header { name, value } in &self.headers {
            if headers.contains_key(name) && name != CONTENT_TYPE && name != ACCEPT {
                return Err(ToolError::invalid_arguments(format!("the service sets the header {name} itself")));
            }
            let mut value = HeaderValue::from_str(value.expose())?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        let key = call.key().filter(|_| self.effect != Effect::Read);
        for (name, value) in [("idempotency-key", key), ("traceparent", call.traceparent())] {
            if let Some(value) = value {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
            }
        }
        Ok(())
    }

    async fn read(&self, mut response: Response) -> Result<Json, ToolError> {
        let status = response.status();
        let encoding = response.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
        let encoding = encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")).map(str::to_owned);
        if status.is_redirection() {
            return Err(self.redirected(status, &response));
        }
        if !status.is_success() {
            let body = if encoding.is_some() { Vec::new() } else { beginning(&mut response).await };
            return Err(self.refused(status, &body));
        }
        if let Some(encoding) = encoding {
            return Err(ToolError::new(format!(
                "the response is compressed ({encoding:?}), which was not asked for; have the server send it as it is"
            )));
        }
        let given = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let given = given.to_owned();
        let kind = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let body = whole(&mut response, self.settings.max_response_bytes, &self.field).await?;
        if body.is_empty() {
            return Ok(RawValue::NULL.to_owned());
        }
        let text = match text_of(body, &given) {
            Ok(text) => text,
            Err((why, _)) if kind.is_empty() || kind.starts_with("text/") || kind.contains("json") => {
                return Err(ToolError::new(why));
            }
            // A body that is not text is kept as bytes, for another tool.
            Err((_, body)) => {
                let bytes = serde_json::json!({ "base64": BASE64_STANDARD.encode(body), "content_type": kind });
                return Ok(serde_json::value::to_raw_value(&bytes)?);
            }
        };
        if kind == "application/json" || kind.ends_with("+json") {
            return RawValue::from_string(text)
                .map_err(|error| ToolError::new(format!("the response is not JSON: {error}")));
        }
        Ok(serde_json::value::to_raw_value(&text)?)
    }

    // Secrets are removed before the text is cut, because a part of a secret would not be recognized.

    fn redirected(&self, status: StatusCode, response: &Response) -> ToolError {
        let to = response.headers().get(LOCATION).map(|to| String::from_utf8_lossy(to.as_bytes()).into_owned());
        let to = cut(&self.secrets.scrub(&to.unwrap_or_else(|| "nowhere".to_owned())), ERROR_CHARS);
        ToolError::new(format!(
            "HTTP {}: it redirects to {to}; redirects are not followed; the operator of the service must configure the final address",
            status.as_u16()
        ))
        .with_code(status.as_u16())
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> ToolError {
        let text = String::from_utf8_lossy(body);
        let text = if body.len() < ERROR_BYTES { self.secrets.scrub(&text) } else { self.secrets.scrub_cut(&text) };
        let text = cut(text.trim(), ERROR_CHARS);
        let colon = if text.is_empty() { "" } else { ": " };
        ToolError::new(format!("HTTP {status}{colon}{text}")).with_code(status.as_u16())
    }
}

/// Decodes a body by the charset of its content type, without a byte order mark. On failure returns the reason and the
/// body.
fn text_of(body: Vec<u8>, given: &str) -> Result<String, (String, Vec<u8>)> {
    let charset = given.split(';').skip(1).filter_map(|parameter| parameter.trim().split_once('='));
    let mut charset = charset.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.next().map(|(_, value)| value.trim().trim_matches('"').to_owned());
    let encoding = match &charset {
        None => encoding_rs::UTF_8,
        Some(name) => match encoding_rs::Encoding::for_label(name.as_bytes()) {
            Some(encoding) => encoding,
            None => return Err((format!("the response is in the charset {name:?}, which is unknown"), body)),
        },
    };
    let (text, is_broken) = encoding.decode_with_bom_removal(&body);
    if is_broken {
        let named = if charset.is_none() { ", and names no charset" } else { "" };
        return Err((format!("the response is not text in {} (content type {given:?}){named}", encoding.name()), body));
    }
    Ok(text.into_owned())
}

/// The part of a body that an error shows. Errors while reading it are ignored.
async fn beginning(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < ERROR_BYTES
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk[..chunk.len().min(ERROR_BYTES - body.len())]);
    }
    body
}

/// Reads a whole body, never keeping more than the limit in memory.
async fn whole(response: &mut Response, max: usize, field: &str) -> Result<Vec<u8>, ToolError> {
    let too_large = || {
        ToolError::new(format!("the response has more than {max} bytes (max_response_bytes of {field}); ask for less"))
    };
    if response.content_length().is_some_and(|length| usize::try_from(length).is_ok_and(|length| length > max)) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable_by(&error))? {
        if chunk.len() > max - body.len() {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns the error for a request without a response. It does not contain the URL, as the client's own error does.
fn unreachable_by(error: &reqwest::Error) -> ToolError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(refused) = error.downcast_ref::<NotPublic>() {
            return ToolError::new(refused.to_string());
        }
        source = error.source();
    }
    let what = match () {
        () if error.is_connect() => "it cannot be connected to",
        () if error.is_body() || error.is_decode() => "the response broke off",
        () => "the request failed",
    };
    ToolError::new(format!("{what}: {}", innermost(error)))
}
