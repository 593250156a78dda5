//! MCP servers whose tools the service offers.

use super::clients::innermost;
use super::endpoint::Deadline;
use super::error::{ToolsError, cut};
use super::lenient::raw_of;
use super::lenient_http::Lenient;
use super::process::Process;
use super::sending::before_sending;
use crate::config::{McpConnection, McpServer, Scrubber};
use lisp_runtime::{ToolCall, ToolError};
use reqwest::Client;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock,
    Implementation, JsonObject, PaginatedRequestParams, ProtocolVersion, RequestParamsMeta, ResourceContents,
};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, Peer, RunningService, serve_client_with_lifecycle};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceError};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

/// The maximum number of tools of a server.
const TOOLS: usize = 10_000;
/// The maximum number of pages in a list of tools.
const PAGES: usize = 1_000;
/// The maximum bytes of a list of tools. Messages of this size are always accepted.
const LIST_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a message besides its result.
const FRAME_BYTES: usize = 65_536;
/// The minimum time between two starts of a server.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a server may take to end after its input is closed.
const ENDING: Duration = Duration::from_secs(2);
/// How long to wait for the exit status of a process that seems to have ended.
const LAST_LOOK: Duration = Duration::from_millis(200);
/// The maximum characters of a server's error that a program sees.
const ERROR_CHARS: usize = 2_000;

/// An MCP server. If it is not connected, the next call connects it.
pub(super) struct Upstream {
    name: String,
    server: McpServer,
    /// Set for a server with a URL.
    client: Option<Client>,
    secrets: Scrubber,
    state: Mutex<State>,
    places: Semaphore,
}

#[derive(Default)]
struct State {
    running: Option<Connection>,
    /// When the last connection was started.
    started: Option<Instant>,
}

struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    process: Option<Process>,
    /// Whether the server has forgotten the session.
    forgotten: Arc<AtomicBool>,
}

impl Upstream {
    pub(super) fn new(name: &str, server: &McpServer, client: Option<Client>) -> Self {
        let secrets = match &server.connection {
            McpConnection::Command { env, .. } => Scrubber::of(env.iter().map(|(_, value)| value)),
            McpConnection::Http { headers, .. } => Scrubber::of(headers.iter().map(|header| &header.value)),
        };
        Upstream {
            secrets,
            name: name.to_owned(),
            places: Semaphore::new(server.calls.concurrency),
            server: server.clone(),
            client,
            state: Mutex::default(),
        }
    }

    fn field(&self) -> String {
        format!("mcp.{}", self.name)
    }

    /// Returns the tools of the server.
    pub(super) async fn list(&self) -> Result<ServerTools, ToolsError> {
        let within = Duration::from_millis(self.server.start_timeout_ms);
        let listed = timeout(within, async {
            let listed = list(&self.peer().await?).await;
            match listed {
                Ok(listed) => Ok(listed),
                Err(error) => Err(self.end(true).await.unwrap_or_else(|| self.shown(&error))),
            }
        })
        .await;
        let listed = listed.unwrap_or_else(|_| {
            Err(format!("it did not list its tools within {} ms (start_timeout_ms)", self.server.start_timeout_ms))
        });
        listed.map_err(|message| {
            let message = self.secrets.scrub(&message);
            ToolsError {
                message: format!("the MCP server cannot be used: {message}"),
                next: match &self.server.connection {
                    McpConnection::Command { program, .. } => {
                        format!("run {program} in a terminal to see what is wrong with it")
                    }
                    McpConnection::Http { .. } => "check that the server runs, and url and headers".to_owned(),
                },
                ..ToolsError::at(&["mcp", &self.name])
            }
        })
    }

    /// Calls a tool, by the server's name for it.
    pub(super) async fn call(&self, tool: &str, has_output: bool, call: &ToolCall) -> Result<Value, ToolError> {
        let deadline = Deadline::of(call, &self.server.calls, &self.field());
        let _place = before_sending(call, deadline.within(self.places.acquire()))
            .await
            .map_err(|error| {
                let max = self.server.calls.concurrency;
                ToolError::new(format!("{error}: {max} calls are in progress (concurrency of {})", self.field()))
            })?
            .map_err(|_| ToolError::new("the service is shutting down"))?;
        let called = deadline.within(self.exchange(tool, call)).await.and_then(|called| called);
        let result = called.and_then(|result| self.value(result, has_output));
        result.map_err(|error| {
            let text = error.to_string();
            match self.secrets.scrub(&text) {
                Cow::Borrowed(_) => error,
                Cow::Owned(scrubbed) => error.with_message(scrubbed),
            }
        })
    }

    async fn exchange(&self, tool: &str, call: &ToolCall) -> Result<CallToolResult, ToolError> {
        if has_wide_integer(call.json()) {
            return Err(ToolError::invalid_arguments(
                "an integer of more than 64 bits does not reach an MCP server as it is; write it as a string",
            ));
        }
        let arguments: JsonObject = call.arguments()?;
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(parent) = call.traceparent() {
            params.set_traceparent(parent);
        }
        let peer = self.peer().await.map_err(ToolError::new)?;
        // Dropping this future tells the server that the call is cancelled.
        match peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(CallToolResponse::InputRequired(_)) => {
                Err(ToolError::new("the server asks for input, which the service does not give"))
            }
            Ok(_) => Err(ToolError::new("the server makes a task of the call, which the service does not wait for")),
            Err(ServiceError::McpError(error)) => {
                Err(ToolError::new(self.shown(&error.message)).with_code(error.code.0))
            }
            Err(ServiceError::TransportClosed) => {
                // Its last lines may be about other callers' calls.
                let how = self.end(false).await.map(|how| format!("; {how}")).unwrap_or_default();
                let what = "the server ended during the call, which may have been made or not";
                Err(ToolError::new(format!("{what}{how}")))
            }
            Err(error) => Err(ToolError::new(self.shown(&innermost(&error)))),
        }
    }

    fn value(&self, result: CallToolResult, has_output: bool) -> Result<Value, ToolError> {
        let max = self.server.calls.max_response_bytes;
        if result.is_error == Some(true) {
            let text = texts(&result.content);
            let text = if text.is_empty() { "the server says that it failed, and not why".to_owned() } else { text };
            return Err(ToolError::new(self.shown(&text)));
        }
        // `null` means that there is no structured content.
        let value = match result.structured_content.filter(|value| !value.is_null()) {
            Some(value) => value,
            None if result.content.is_empty() => Value::Null,
            None => {
                let text = texts(&result.content);
                match serde_json::from_str(&text) {
                    Ok(value) if has_output => value,
                    _ => Value::String(text),
                }
            }
        };
        if !is_within(&value, max) {
            let field = self.field();
            return Err(ToolError::new(format!(
                "the result has more than {max} bytes (max_response_bytes of {field}); ask for less"
            )));
        }
        Ok(value)
    }

    /// Returns the running server. Connects first if needed, at most once a second.
    async fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.running {
            let has_ended = connection.service.is_closed() || connection.service.peer().is_transport_closed();
            if !has_ended && !connection.forgotten.load(Ordering::Relaxed) {
                return Ok(connection.service.peer().clone());
            }
            tracing::warn!(target: "ptc_lisp", server = %self.name, "an MCP server ended; it is started again");
        }
        state.running = None;
        if let Some(started) = state.started {
            sleep_until(started + AGAIN).await;
        }
        state.started = Some(Instant::now());
        let connection = self.connect().await?;
        let peer = connection.service.peer().clone();
        state.running = Some(connection);
        Ok(peer)
    }

    /// Returns how the server's process ended, if it did; with its last lines if `what_it_said` is set.
    async fn end(&self, what_it_said: bool) -> Option<String> {
        let mut state = self.state.lock().await;
        let process = state.running.as_mut()?.process.as_mut()?;
        let status = timeout(LAST_LOOK, process.status()).await.ok()?;
        Some(if what_it_said { process.ended().await } else { status })
    }

    /// Returns the part of a server's message that an error shows. Secrets are removed before it is cut, because a part
    /// of a secret would not be recognized.
    fn shown(&self, text: &str) -> String {
        cut(&self.secrets.scrub(text), ERROR_CHARS)
    }

    /// Connects with `initialize`. If the server rejects that, tries the newest protocol revision, which does without
    /// it.
    async fn connect(&self) -> Result<Connection, String> {
        match self.connect_by(ClientLifecycleMode::Initialize).await {
            Ok(connection) => Ok(connection),
            Err(Failure::Started(error)) => Err(error),
            Err(Failure::Greeted(error)) => {
                let newest = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
                self.connect_by(newest).await.map_err(|_| error)
            }
        }
    }

    async fn connect_by(&self, mode: ClientLifecycleMode) -> Result<Connection, Failure> {
        let implementation = Implementation::new("ptc-lisp", env!("CARGO_PKG_VERSION"));
        let about = ClientConfig::new(ClientCapabilities::default(), implementation);
        let max = self.server.calls.max_response_bytes.saturating_add(FRAME_BYTES).max(LIST_BYTES);
        let greeted = |error: ClientInitializeError| Failure::Greeted(self.shown(&error.to_string()));
        let forgotten = Arc::<AtomicBool>::default();
        match (&self.server.connection, &self.client) {
            (McpConnection::Command { program, arguments, env }, _) => {
                let (mut process, (output, input)) = Process::start(program, arguments, env, &self.secrets, max)
                    .map_err(|error| Failure::Started(format!("{program} cannot be started: {error}")))?;
                let transport = AsyncRwTransport::new_client(output, input).with_max_line_length(max);
                let served = tokio::select! {
                    biased;
                    served = serve_client_with_lifecycle(about, transport, mode) => served,
                    how = process.ended() => return Err(Failure::Started(how)),
                };
                match served {
                    Ok(service) => Ok(Connection { service, process: Some(process), forgotten }),
                    // A server that rejects the handshake ends afterwards, because its input ends.
                    Err(error)
                        if !matches!(
                            error,
                            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }
                        ) =>
                    {
                        Err(greeted(error))
                    }
                    // If the process has ended, that explains more than the protocol error.
                    Err(error) => match timeout(LAST_LOOK, process.ended()).await {
                        Ok(how) => Err(Failure::Started(how)),
                        Err(_) => Err(greeted(error)),
                    },
                }
            }
            (McpConnection::Http { url, headers }, Some(client)) => {
                let headers = headers.iter().map(|header| {
                    let mut value = reqwest::header::HeaderValue::from_str(header.value.expose())
                        .map_err(|error| Failure::Started(error.to_string()))?;
                    value.set_sensitive(true);
                    Ok((header.name.clone(), value))
                });
                let (client, secrets) = (client.clone(), self.secrets.clone());
                let lenient = Lenient { client, secrets, forgotten: forgotten.clone() };
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.collect::<Result<_, Failure>>()?)
                    .max_concurrent_requests(self.server.calls.concurrency)
                    .max_sse_event_size(max)
                    .max_json_response_size(max);
                let transport = StreamableHttpClientTransport::with_client(lenient, config);
                let service = serve_client_with_lifecycle(about, transport, mode).await.map_err(greeted)?;
                Ok(Connection { service, process: None, forgotten })
            }
            (McpConnection::Http { .. }, None) => Err(Failure::Started("it has no client".to_owned())),
        }
    }

    /// Closes the connection: closes the server's input, and kills its process if that does not end it.
    pub(super) async fn close(&self) {
        let Some(mut connection) = self.state.lock().await.running.take() else { return };
        let _ = connection.service.close_with_timeout(ENDING).await;
        if let Some(process) = connection.process.take() {
            process.close(ENDING).await;
        }
    }
}

/// The reason for a failed connection.
enum Failure {
    /// The server cannot be started.
    Started(String),
    /// The handshake failed.
    Greeted(String),
}

/// The tools of a server.
pub(super) struct ServerTools {
    /// The result of `tools/list`, all pages, as JSON text.
    pub(super) json: String,
    /// The names of the tools that have an output schema.
    pub(super) with_output: BTreeSet<String>,
}

async fn list(peer: &Peer<RoleClient>) -> Result<ServerTools, String> {
    let (mut tools, mut bytes) = (Vec::new(), 0);
    let mut with_output = BTreeSet::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        let page = peer.list_tools(Some(params)).await.map_err(|error| innermost(&error))?;
        for tool in page.tools {
            // Tools that cannot be read are reported where all tools are checked.
            let text = raw_of(&tool).map_or_else(|| serde_json::to_string(&tool), serde_json::to_string);
            let text = text.map_err(|error| error.to_string())?;
            bytes += text.len();
            tools.push(text);
            if tool.output_schema.is_some() {
                with_output.insert(tool.name.into_owned());
            }
        }
        if tools.len() > TOOLS || bytes > LIST_BYTES {
            return Err(format!("its list of tools has more than {TOOLS} tools or {LIST_BYTES} bytes"));
        }
        // Some servers end the list so.
        cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
        if cursor.is_none() {
            return Ok(ServerTools { json: format!("[{}]", tools.join(",")), with_output });
        }
    }
    Err(format!("its list of tools has more than {PAGES} pages"))
}

/// Returns the texts of a result, one per line. Other content is named.
fn texts(content: &[ContentBlock]) -> String {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[an image, {}, {} bytes of base64]", image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => format!("[a sound, {}, {} bytes of base64]", audio.mime_type, audio.data.len()),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                format!("[the resource {uri}, {} bytes of base64]", blob.len())
            }
            _ => "[a resource of another kind]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[the resource {}]", link.uri),
        _ => "[something else]".to_owned(),
    };
    content.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Returns whether JSON text contains an integer that `serde_json::Value` would read as a different number.
fn has_wide_integer(json: &str) -> bool {
    let (mut within, mut escaped) = (false, false);
    let plain = |char| {
        let is_quote = char == '"' && !escaped;
        escaped = within && char == '\\' && !escaped;
        within ^= is_quote;
        if within || is_quote { ' ' } else { char }
    };
    let outside: String = json.chars().map(plain).collect();
    let mut words = outside.split(|char: char| !(char.is_ascii_digit() || "+-.eE".contains(char)));
    words.any(|word| {
        let is_integer = word.ends_with(|char: char| char.is_ascii_digit()) && !word.contains(['.', 'e', 'E']);
        is_integer && word.parse::<i64>().is_err() && word.parse::<u64>().is_err()
    })
}

/// Returns whether a value takes at most this many bytes as JSON.
fn is_within(value: &Value, max: usize) -> bool {
    /// The bytes left while counting.
    struct Left(usize);
    impl std::io::Write for Left {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Left(max), value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_more_than_64_bits_are_found() {
        for (json, is_wide) in [
            (r#"{"a": 18446744073709551615, "b": -9223372036854775808}"#, false),
            (r#"{"a": [1, 18446744073709551616]}"#, true),
            (r#"{"a":-9223372036854775809}"#, true),
            (r#"{"a": 1e40, "b": 123456789012345678901234.5, "c": true, "e": null}"#, false),
            (r#"{"99999999999999999999": "99999999999999999999 \" 99999999999999999999"}"#, false),
            (r#"{"a": "\\", "b": 99999999999999999999}"#, true),
        ] {
            assert_eq!(has_wide_integer(json), is_wide, "{json}");
        }
    }
}
