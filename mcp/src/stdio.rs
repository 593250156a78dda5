//! Serves one client over a pair of streams, with one JSON-RPC message per line.

use crate::handler::{Mcp, OpenError};
use crate::message::{id_of, read_message};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta, JsonRpcError, JsonRpcMessage,
    JsonRpcNotification, JsonRpcResponse, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler};
use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The maximum number of messages that wait to be written.
const QUEUE: usize = 16;

/// The maximum number of requests that are read before the first of them has its response.
const REQUESTS: usize = 1_000;

/// What a client has not read.
#[derive(Default)]
struct Unread {
    waiting: watch::Sender<Waiting>,
    /// The requests without a response.
    asked: Mutex<HashSet<RequestId>>,
}

#[derive(Clone, Copy, Default)]
struct Waiting {
    /// Bytes that wait to be written.
    bytes: usize,
    /// Requests without a response.
    requests: usize,
}

impl Unread {
    fn is_asked(&self, id: &RequestId) {
        let is_new = self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        self.waiting.send_modify(|now| now.requests += usize::from(is_new));
    }

    fn is_answered(&self, id: &RequestId) {
        let was_asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.waiting.send_modify(|now| now.requests -= usize::from(was_asked));
    }

    fn waits(&self, room: usize) {
        self.waiting.send_modify(|now| now.bytes += room);
    }

    fn is_written(&self, room: usize) {
        self.waiting.send_modify(|now| now.bytes = now.bytes.saturating_sub(room));
    }
}

/// How long replies may take that are still being made when the time after the end of the stream is over.
const LAST_REPLIES: Duration = Duration::from_secs(1);

impl Mcp {
    /// Serves one client until it closes its stream or until [`Mcp::end`]. Each line is a JSON-RPC message of at most
    /// `max_body_bytes`. Requests in progress when the stream ends get `drain_seconds` to finish.
    ///
    /// # Errors
    /// If there are tenants and none is named, the tenant does not exist, or a stream fails.
    pub async fn serve_stdio<R, W>(&self, tenant: Option<&str>, read: R, write: W) -> Result<(), OpenError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let disconnected = CancellationToken::new();
        let handler = self.handler(self.tenant(tenant)?, disconnected.clone());
        let versions = handler.supported_protocol_versions().into_owned();
        let limits = &self.service.config().service;
        let drain = Duration::from_secs(limits.drain_seconds);
        let calls = (self.calls.clone(), drain);
        let max = (limits.max_body_bytes, limits.max_bodies_bytes, Duration::from_secs(limits.body_seconds));
        let lines = Lines::new(read, write, max, versions, disconnected.clone(), calls);
        let late = async {
            disconnected.cancelled().await;
            sleep(drain + LAST_REPLIES).await;
        };
        match serve_server_with_ct(handler, lines, self.ended.child_token()).await {
            Ok(running) => tokio::select! {
                // After the end of the stream it waits for all requests, for 5 s.
                done = running.waiting() => done.map(drop).map_err(|error| OpenError::Connection(error.to_string())),
                () = late => Ok(()),
            },
            // The client disconnected before it started.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(OpenError::Connection(error.to_string())),
        }
    }
}

/// Returns whether this request starts the connection: `initialize`, or a request of a protocol revision without it.
/// Requests that may come earlier (`ping`, `server/discover`) do not, nor do requests without the required metadata.
fn begins(request: &ClientRequest, versions: &[ProtocolVersion]) -> bool {
    let meta = request.get_meta();
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        _ => {
            let is_whole = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty();
            is_whole && meta.protocol_version().is_some_and(|version| versions.contains(&version))
        }
    }
}

/// How a connection has started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// With `initialize`.
    Session,
    /// With a request of a protocol revision without sessions.
    Stateless,
}

/// Messages as lines of a pair of streams.
struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    max: usize,
    /// Whether the rest of a line that is too long is being skipped.
    is_passing: bool,
    /// The answer to a line that is not a message.
    reply: Option<Vec<u8>>,
    /// How the connection has started, once it has.
    start: Option<Start>,
    versions: Vec<ProtocolVersion>,
    queue: Option<Sender<Vec<u8>>>,
    unread: Arc<Unread>,
    /// The bytes that may wait to be written while further messages are read.
    max_unread: usize,
    /// How long a client may read nothing while no further message is read.
    body_time: Duration,
    writer: Option<JoinHandle<io::Result<()>>>,
    disconnected: CancellationToken,
    /// The calls in progress, and how long they may take after the end of the stream.
    calls: (TaskTracker, Duration),
    /// When that time is over, once the stream has ended.
    end: Option<Instant>,
}

/// The result of reading a line.
enum Read {
    Line,
    TooLong,
    End,
}

impl<R: AsyncRead + Send + Unpin> Lines<R> {
    fn new<W>(
        read: R,
        write: W,
        (max, max_unread, body_time): (usize, usize, Duration),
        versions: Vec<ProtocolVersion>,
        disconnected: CancellationToken,
        calls: (TaskTracker, Duration),
    ) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (queue, queued) = channel(QUEUE);
        let unread = Arc::new(Unread::default());
        Lines {
            read: BufReader::new(read),
            line: Vec::new(),
            max,
            is_passing: false,
            reply: None,
            start: None,
            versions,
            queue: Some(queue),
            unread: unread.clone(),
            max_unread,
            body_time,
            writer: Some(tokio::spawn(write_all(write, queued, unread))),
            disconnected,
            calls,
            end: None,
        }
    }

    /// Returns when no call is in progress after the end of the stream, or when their time is over. If this is dropped
    /// before, the next call continues.
    async fn ended(&mut self) {
        /// How often the calls are counted.
        const EVERY: Duration = Duration::from_millis(10);
        self.disconnected.cancel();
        let end = *self.end.get_or_insert(Instant::now() + self.calls.1);
        while !self.calls.0.is_empty() && Instant::now() < end {
            sleep_until(end.min(Instant::now() + EVERY)).await;
        }
    }

    /// Waits while unread responses take too much: no further request is served meanwhile. Returns false if the client has read
    /// nothing for too long. What can no longer be written takes no room.
    async fn has_room(&mut self) -> bool {
        let (mut waiting, max) = (self.unread.waiting.subscribe(), self.max_unread);
        let closed = async {
            if let Some(queue) = &self.queue {
                queue.closed().await;
            }
        };
        let read = async {
            loop {
                let now = *waiting.borrow_and_update();
                if now.bytes <= max && now.requests < REQUESTS {
                    return true;
                }
                // Requests may take as long as they need.
                let is_late = match now.bytes {
                    0 => waiting.changed().await.is_err(),
                    _ => !matches!(timeout(self.body_time, waiting.changed()).await, Ok(Ok(()))),
                };
                if is_late {
                    return false;
                }
            }
        };
        tokio::select! {
            has_room = read => has_room,
            () = closed => true,
        }
    }

    /// Reads to the end of the line. If this is dropped before, the next call continues.
    async fn read_line(&mut self) -> io::Result<Read> {
        loop {
            let there = self.read.fill_buf().await?;
            let is_end = there.is_empty();
            let newline = there.iter().position(|byte| *byte == b'\n');
            let take = newline.map_or(there.len(), |at| at + 1);
            let is_too_long = !self.is_passing && self.line.len().saturating_add(take) > self.max.saturating_add(1);
            if !self.is_passing {
                // The start of a line that is too long is enough.
                let room = self.max.saturating_add(1).saturating_sub(self.line.len());
                self.line.extend_from_slice(&there[..take.min(room)]);
            }
            self.read.consume(take);
            let was_passing = self.is_passing;
            self.is_passing = (was_passing || is_too_long) && newline.is_none();
            match (is_too_long, newline.is_some() && !was_passing, is_end) {
                (true, ..) => return Ok(Read::TooLong),
                (false, true, _) => return Ok(Read::Line),
                (false, false, true) if self.line.is_empty() => return Ok(Read::End),
                // The last line may have no newline.
                (false, false, true) => return Ok(Read::Line),
                (false, false, false) => {}
            }
        }
    }

    /// Parses the message of the line. On failure, may set `reply`.
    fn message(&mut self) -> Option<ClientJsonRpcMessage> {
        let line = self.line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        match read_message(line) {
            Ok(message) => Some(message),
            Err(answer) => {
                self.reply = answer.and_then(|answer| text_of(&answer).ok());
                None
            }
        }
    }

    /// Refuses `initialize` on a connection whose requests have no session.
    fn refuse(&mut self, id: RequestId) {
        let why = "the connection has started with requests that need no session; send initialize first on a connection of its own";
        let error = ErrorData::invalid_request(why, None);
        self.reply = text_of(&ServerJsonRpcMessage::error(error, Some(id))).ok();
    }

    fn too_long(&mut self) {
        let max = self.max;
        let why = format!("the line has more than {max} bytes; send less, or raise max_body_bytes of the service");
        let error = ErrorData::invalid_request(why, None);
        self.reply = text_of(&ServerJsonRpcMessage::error(error, id_of(&self.line))).ok();
        self.line = Vec::new();
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (queue, unread) = (self.queue.clone(), self.unread.clone());
        async move {
            let closed = || io::Error::from(ErrorKind::NotConnected);
            let text = text_of(&message)?;
            if let JsonRpcMessage::Response(JsonRpcResponse { id, .. })
            | JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) = &message
            {
                unread.is_answered(id);
            }
            drop(message);
            let room = room_of(&text);
            unread.waits(room);
            let sent = match queue {
                Some(queue) => queue.send(text).await.is_ok(),
                None => false,
            };
            if !sent {
                unread.is_written(room);
            }
            sent.then_some(()).ok_or_else(closed)
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if self.reply.is_some() {
                // If this is dropped while it waits, the reply is sent by the next call.
                let room = self.queue.as_ref()?.reserve().await.ok()?;
                let reply = self.reply.take().unwrap_or_default();
                self.unread.waits(room_of(&reply));
                room.send(reply);
            }
            if !self.has_room().await {
                tracing::warn!(
                    "the client has read nothing for body_seconds, and unread responses take more than max_bodies_bytes"
                );
                self.ended().await;
                return None;
            }
            let message = match self.read_line().await {
                Ok(Read::Line) => {
                    let message = self.message();
                    self.line.clear();
                    message
                }
                Ok(Read::TooLong) => {
                    self.too_long();
                    None
                }
                Ok(Read::End) => {
                    self.ended().await;
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read from the client");
                    self.ended().await;
                    return None;
                }
            };
            match message {
                Some(JsonRpcMessage::Request(asked)) => {
                    let is_initialize = matches!(asked.request, ClientRequest::InitializeRequest(_));
                    if is_initialize && self.start == Some(Start::Stateless) {
                        self.refuse(asked.id);
                        continue;
                    }
                    if self.start.is_none() && begins(&asked.request, &self.versions) {
                        self.start = Some(if is_initialize { Start::Session } else { Start::Stateless });
                    }
                    self.unread.is_asked(&asked.id);
                    return Some(JsonRpcMessage::Request(asked));
                }
                // Before the connection has started, only requests are accepted.
                Some(message) if self.start.is_some() => {
                    if let JsonRpcMessage::Notification(JsonRpcNotification {
                        notification: ClientNotification::CancelledNotification(cancelled),
                        ..
                    }) = &message
                    {
                        // It has no response.
                        cancelled.params.request_id.iter().for_each(|id| self.unread.is_answered(id));
                    }
                    return Some(message);
                }
                _ => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.queue = None;
        match self.writer.take() {
            None => Ok(()),
            // A client that does not read does not keep the process.
            Some(mut writer) => match timeout(self.calls.1 + LAST_REPLIES, &mut writer).await {
                Ok(done) => done.unwrap_or_else(|error| Err(io::Error::other(error))),
                Err(_) => {
                    writer.abort();
                    Ok(())
                }
            },
        }
    }
}

async fn write_all<W: AsyncWrite + Unpin>(
    mut write: W,
    mut queued: Receiver<Vec<u8>>,
    unread: Arc<Unread>,
) -> io::Result<()> {
    while let Some(line) = queued.recv().await {
        let write = &mut write;
        let written = async move {
            write.write_all(&line).await?;
            write.flush().await.map(|()| room_of(&line))
        };
        match written.await {
            Ok(room) => unread.is_written(room),
            Err(error) => {
                // Nothing waits any more.
                unread.waiting.send_modify(|now| now.bytes = 0);
                return Err(error);
            }
        }
    }
    write.shutdown().await
}

/// Returns how many bytes a message takes while it waits, in a task of its own.
fn room_of(line: &[u8]) -> usize {
    const TASK: usize = 16 << 10;
    line.len() + TASK
}

fn text_of(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(message)?;
    text.push(b'\n');
    Ok(text)
}
