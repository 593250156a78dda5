//! The HTTP client for MCP servers, which repairs messages with [`lenient`](super::lenient::lenient).

use super::lenient::readable;
use crate::config::Scrubber;
use futures_util::{Stream, StreamExt};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum characters of an error response that an error shows.
const ERROR_CHARS: usize = 2_000;

/// A client that repairs messages. Its errors contain no secrets, because they are also logged.
#[derive(Clone)]
pub(super) struct Lenient {
    pub(super) client: Client,
    pub(super) secrets: Scrubber,
    /// Whether the server has forgotten the session.
    pub(super) forgotten: Arc<AtomicBool>,
}

type Failure = StreamableHttpError<reqwest::Error>;
type Events = Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>;

/// Repairs the messages of an event stream.
fn readable_events(events: Events) -> Events {
    events
        .map(|event: Result<Sse, SseError>| {
            event.map(|mut event| {
                event.data = event.data.map(|data: String| readable(&data).into_owned());
                event
            })
        })
        .boxed()
}

/// Returns whether the result of this request is a list whose entries may need repair.
fn has_parts(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(asked) = message else { return false };
    matches!(asked.request, ClientRequest::ListToolsRequest(_) | ClientRequest::CallToolRequest(_))
}

/// Returns whether this is a tool call.
fn is_call(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(asked) = message else { return false };
    matches!(asked.request, ClientRequest::CallToolRequest(_))
}

fn unexpected(why: String) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(why.into())
}

/// Reads a body of at most this many bytes.
async fn body_of(response: Response, max: usize) -> Result<Vec<u8>, Failure> {
    let body = Limited::new(reqwest::Body::from(response), max);
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes().into()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(StreamableHttpError::ResponseBodyTooLarge { max_size: max })
        }
        Err(error) => Err(unexpected(format!("the body broke off: {error}"))),
    }
}

/// Reads events; each may have at most this many bytes.
fn events_of(response: Response, max: usize) -> Events {
    let mut since = 0_usize;
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        // An event ends with an empty line.
        since = match chunk.windows(2).rposition(|pair| pair == b"\n\n" || pair == b"\r\r" || pair == b"\n\r") {
            Some(at) => chunk.len() - at,
            None => since.saturating_add(chunk.len()),
        };
        if since > max { Err(std::io::Error::other(format!("an event has more than {max} bytes"))) } else { Ok(chunk) }
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

impl Lenient {
    /// The part of a body that an error shows.
    fn shown(&self, text: &str) -> String {
        self.secrets.scrub(text).chars().take(ERROR_CHARS).collect()
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let accept = [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", ");
        let mut request = self.client.post(&*uri).header(ACCEPT, accept);
        for (name, value) in custom_headers {
            request = request.header(name, value);
        }
        let (has_session, is_call) = (session_id.is_some(), is_call(&message));
        if let Some(session_id) = session_id {
            request = request.header(HEADER_SESSION_ID, &*session_id);
        }
        let response = request.json(&message).send().await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && has_session {
            if is_call {
                // A `SessionExpired` error would send the call again, but it may already have been made.
                self.forgotten.store(true, Ordering::Relaxed);
                let why = "HTTP 404 Not Found: the server does not know the session any more, or not this address; the call \
                           may have been made or not, and the next one begins a session of its own";
                return Err(unexpected(why.to_owned()));
            }
            return Err(StreamableHttpError::SessionExpired);
        }
        let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        let (kind, session) = (header(CONTENT_TYPE.as_str()).unwrap_or_default(), header(HEADER_SESSION_ID));
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if kind == EVENT_STREAM_MIME_TYPE && status.is_success() {
            let events = readable_events(events_of(response, limits.max_sse_event_size));
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if kind != JSON_MIME_TYPE {
            let body = body_of(response, limits.max_json_response_size).await.unwrap_or_default();
            let text = self.shown(&String::from_utf8_lossy(&body));
            return Err(unexpected(format!("HTTP {status} with content of the type {kind:?}: {text}")));
        }
        let body = body_of(response, limits.max_json_response_size).await?;
        let text = String::from_utf8_lossy(&body);
        match serde_json::from_str::<ServerJsonRpcMessage>(&readable(&text)) {
            Ok(message) if status.is_success() || matches!(message, JsonRpcMessage::Error(_)) => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            Ok(_) => Err(unexpected(format!("HTTP {status}"))),
            Err(error) => Err(unexpected(format!("HTTP {status}, and no message: {error}: {}", self.shown(&text)))),
        }
    }
}

impl StreamableHttpClient for Lenient {
    type Error = reqwest::Error;

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let events = self.client.get_stream(uri, session_id, last_event_id, auth_token, custom_headers).await;
        events.map(readable_events)
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max: usize,
    ) -> Result<Events, Failure> {
        let client = &self.client;
        let events =
            client.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_token, custom_headers, max);
        events.await.map(readable_events)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session_id, auth_token, custom_headers).await
    }

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_token, custom_headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        // The service sends no token besides its headers.
        if has_parts(&message) && auth_token.is_none() {
            return self.post(uri, message, session_id, custom_headers, limits).await;
        }
        let client = &self.client;
        let sent = client
            .post_message_with_response_limits(uri, message, session_id, auth_token, custom_headers, limits)
            .await?;
        Ok(match sent {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(readable_events(events), session)
            }
            other => other,
        })
    }
}
