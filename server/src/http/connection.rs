//! Limits the number of connections and closes idle ones.
//!
//! A connection without a request in progress is idle. It is closed once it has been idle for longer than
//! `header_seconds`, counted from when it was accepted or last busy. It is closed earlier if a new connection needs its
//! slot. If none is idle, the one is closed whose client has not read for longest.

use crate::config::Config;
use crate::runs::RequestInProgress;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, Request, Version, header};
use axum::response::Response;
use axum_server::accept::Accept;
use http_body::{Frame, SizeHint};
use prometheus_client::metrics::gauge::Gauge;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_io_timeout::TimeoutStream;
use tower_service::Service;

/// A write of at least this many bytes is part of a response; HTTP/2 keep-alive frames are shorter.
const PART_OF_RESPONSE: usize = 256;
/// A client that has read nothing for so long may lose its connection to a new one.
const STALLED: Duration = Duration::from_secs(10);
/// The bytes that the system keeps of what a client has not read. It reports that a client reads only once it has read about a
/// third of this, or of twice as much: a client that reads 20 kB a second is not stalled.
#[cfg(unix)]
const SEND_BUFFER: usize = 256 << 10;
/// How long a connection is open after its last input, even if it is to close: what has arrived may be a request.
const LINGER: Duration = Duration::from_millis(50);
/// The maximum number of connections beyond `max_connections`: those that were told to close, and have not yet.
const CLOSING: usize = 64;

/// All connections of a server.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Room>);

#[derive(Debug)]
struct Room {
    max: usize,
    idle_time: Duration,
    write_time: Duration,
    figure: Gauge,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    last: u64,
    connections: HashMap<u64, Arc<Activity>>,
}

impl Open {
    /// Returns the number of connections that were told to close.
    fn closing(&self) -> usize {
        self.connections.values().filter(|activity| activity.lock().is_unwanted).count()
    }

    /// Tells a connection to close: the one that has been idle longest, or else the one whose client has not read for
    /// longest. Returns false if all are busy. A connection counts until it is closed.
    fn close_one(&self) -> bool {
        let closable = self.connections.iter().filter_map(|(number, activity)| Some((activity.closable()?, number)));
        let closed = closable.min().and_then(|(_, number)| self.connections.get(number));
        closed.inspect(|activity| activity.close()).is_some()
    }
}

impl Connections {
    pub(super) fn new(config: &Config, figure: Gauge) -> Self {
        let limits = &config.service;
        Connections(Arc::new(Room {
            max: limits.max_connections,
            idle_time: Duration::from_secs(limits.header_seconds),
            write_time: Duration::from_secs(limits.body_seconds),
            figure,
            open: Mutex::default(),
        }))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection that has been idle longest, if there is one.
    pub(super) fn close_one(&self) {
        self.open().close_one();
    }

    /// Takes a slot for a new connection. If none is free, another one is closed.
    fn place(&self) -> Option<Place> {
        let activity = Arc::new(Activity::new());
        let mut open = self.open();
        let beyond = (open.connections.len() + 1).saturating_sub(self.0.max);
        // So many connections must close.
        if beyond > 0 && ((open.closing() < beyond && !open.close_one()) || beyond > CLOSING) {
            return None;
        }
        open.last += 1;
        let number = open.last;
        open.connections.insert(number, activity.clone());
        self.0.figure.inc();
        Some(Place { connections: self.clone(), number, activity })
    }
}

/// A slot of `max_connections`, freed when it is dropped.
struct Place {
    connections: Connections,
    number: u64,
    activity: Arc<Activity>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.number);
        self.connections.0.figure.dec();
    }
}

/// The state of a connection, shared with its requests.
#[derive(Debug)]
struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Requests whose response has not ended.
    requests: usize,
    /// When the last request ended, or the last part of a response was sent.
    idle_since: Instant,
    /// When input arrived that has not led to a request yet.
    last_input: Option<Instant>,
    last: u64,
    /// Requests with a part of the response ready that the connection has not taken on, and since when.
    given: BTreeMap<u64, Instant>,
    /// Since when the client has not read.
    blocked_since: Option<Instant>,
    /// Another connection needs the slot.
    is_unwanted: bool,
    /// Wakes the task of the connection.
    waker: Option<Waker>,
}

impl Activity {
    fn new() -> Self {
        Activity(Mutex::new(State {
            requests: 0,
            idle_since: Instant::now(),
            last_input: None,
            last: 0,
            given: BTreeMap::new(),
            blocked_since: None,
            is_unwanted: false,
            waker: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new request. Returns whether it is the last one: the connection is to close. One that has several requests at a
    /// time cannot say so to its client, and stays.
    fn begin(self: &Arc<Self>, has_several: bool) -> (ActiveRequest, bool) {
        let mut state = self.lock();
        (state.requests, state.last, state.last_input) = (state.requests + 1, state.last + 1, None);
        state.is_unwanted &= !has_several;
        (ActiveRequest { activity: self.clone(), number: state.last }, state.is_unwanted)
    }

    /// Returns whether the connection can be closed for another one: since when it is idle, or else since when its client
    /// has not read. Idle ones are less.
    fn closable(&self) -> Option<(bool, Instant)> {
        let state = self.lock();
        match state.is_idle() {
            _ if state.is_unwanted => None,
            true => Some((false, state.idle_since)),
            false => state.stalled_since().map(|since| (true, since)),
        }
    }

    /// Records input.
    fn has_read(&self) {
        self.lock().last_input = Some(Instant::now());
    }

    /// Records a write. Returns whether the connection must be closed now: it is unwanted, and its client does not read.
    fn has_written(&self, written: &Poll<io::Result<usize>>, waker: &Waker) -> bool {
        let (mut state, now) = (self.lock(), Instant::now());
        let was_blocked = state.blocked_since.is_some();
        state.blocked_since = written.is_pending().then(|| state.blocked_since.unwrap_or(now));
        let is_part = matches!(written, Poll::Ready(Ok(bytes)) if *bytes >= PART_OF_RESPONSE);
        if (was_blocked && !written.is_pending()) || is_part {
            state.idle_since = now;
        }
        if written.is_pending() {
            state.woken_by(waker);
        }
        written.is_pending() && state.is_unwanted && state.stalled_since().is_some()
    }

    fn close(&self) {
        let mut state = self.lock();
        state.is_unwanted = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Returns when the connection must be looked at again, or `None` if it must be closed now. `has_input` says whether a
    /// request may have arrived.
    fn until(&self, waker: &Waker, room: &Room, has_input: impl FnOnce() -> bool) -> Option<Instant> {
        let mut state = self.lock();
        state.woken_by(waker);
        let now = Instant::now();
        let at_work = state.requests > 0 || state.blocked_since.is_some();
        // A request that ends meanwhile leaves at least this much time.
        let until = if at_work { now } else { state.idle_since } + room.idle_time;
        let stalled = state.given.values().min().map(|since| *since + room.write_time);
        let until = stalled.map_or(until, |stalled| until.min(stalled));
        if state.is_unwanted && state.stalled_since().is_some() {
            return None;
        }
        if state.is_unwanted && state.is_idle() {
            // A request that arrived at the same time is still served.
            let lingers = state.last_input.map(|input| input + LINGER).filter(|lingers| *lingers > now);
            let lingers = lingers.or_else(|| has_input().then_some(now + LINGER));
            return lingers.map(|lingers| until.min(lingers)).filter(|until| *until > now);
        }
        (until > now).then_some(until)
    }
}

impl State {
    /// Returns whether nothing is to be done or sent.
    fn is_idle(&self) -> bool {
        self.requests == 0 && self.blocked_since.is_none()
    }

    /// Returns since when the client has read nothing, if that is too long: of no response if there are several.
    fn stalled_since(&self) -> Option<Instant> {
        let by_socket = self.blocked_since.filter(|since| since.elapsed() >= STALLED);
        let is_stalled = |since: &&Instant| since.elapsed() >= STALLED;
        let by_stream = self.given.values().filter(is_stalled).count() == self.requests;
        let by_stream = self.given.values().min().copied().filter(|_| self.requests > 0 && by_stream);
        by_socket.into_iter().chain(by_stream).min()
    }

    fn woken_by(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }
}

/// A request in progress, until its response ends or is dropped.
struct ActiveRequest {
    activity: Arc<Activity>,
    number: u64,
}

impl ActiveRequest {
    /// Records that a part of the response is ready.
    fn gives(&self) {
        self.activity.lock().given.insert(self.number, Instant::now());
    }

    /// Records that the next part was asked for.
    fn is_asked(&self) {
        self.activity.lock().given.remove(&self.number);
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.given.remove(&self.number);
        (state.requests, state.idle_since) = (state.requests - 1, Instant::now());
    }
}

/// A response body that keeps its request in progress while it exists.
struct ResponseBody {
    body: Body,
    request: ActiveRequest,
    /// Frees a request of its tenant.
    _of_tenant: Option<Arc<RequestInProgress>>,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.request.is_asked();
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(Some(_))) {
            self.request.gives();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The service of one connection; counts requests in progress.
#[derive(Clone, Debug)]
pub(super) struct CountedService<S> {
    service: S,
    activity: Arc<Activity>,
}

impl<S, B> Service<Request<B>> for CountedService<S>
where
    S: Service<Request<B>, Response = Response>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (in_progress, is_last) = self.activity.begin(request.version() == Version::HTTP_2);
        let responds = self.service.call(request);
        Box::pin(async move {
            let mut response = responds.await?;
            let _of_tenant = response.extensions_mut().remove();
            if is_last {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| Body::new(ResponseBody { body, request: in_progress, _of_tenant })))
        })
    }
}

/// Accepts connections, up to the limit.
#[derive(Clone, Debug)]
pub(super) struct Acceptor(pub(super) Connections);

/// A stream of bytes that the system has accepted.
pub(super) trait Socket: AsyncRead + AsyncWrite + Send + 'static {
    /// Sets what the stream needs before it is served.
    fn prepare(&self) -> io::Result<()>;

    /// Returns whether input has arrived that was not read.
    fn has_input(&self) -> bool;
}

#[cfg(unix)]
fn has_input(socket: impl std::os::fd::AsFd) -> bool {
    use rustix::net::RecvFlags;
    let peeked = rustix::net::recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    peeked.is_ok_and(|(_, bytes)| bytes > 0)
}

impl Socket for TcpStream {
    fn prepare(&self) -> io::Result<()> {
        #[cfg(unix)]
        rustix::net::sockopt::set_socket_send_buffer_size(self, SEND_BUFFER)?;
        self.set_nodelay(true)
    }

    fn has_input(&self) -> bool {
        #[cfg(unix)]
        return has_input(self);
        #[cfg(not(unix))]
        false
    }
}

#[cfg(unix)]
impl Socket for tokio::net::UnixStream {
    fn prepare(&self) -> io::Result<()> {
        Ok(())
    }

    fn has_input(&self) -> bool {
        has_input(self)
    }
}

impl<T: Socket, S: Send + 'static> Accept<T, S> for Acceptor {
    type Stream = Connection<T>;
    type Service = CountedService<S>;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Connection<T>, CountedService<S>)>> + Send>>;

    fn accept(&self, stream: T, service: S) -> Self::Future {
        let place = self.0.place();
        Box::pin(async move {
            let place = place.ok_or_else(|| io::Error::other("all max_connections connections are in use"))?;
            stream.prepare()?;
            let room = place.connections.0.clone();
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(room.write_time));
            let service = CountedService { service, activity: place.activity.clone() };
            let wakes = Box::pin(sleep_until(Instant::now() + room.idle_time));
            let connection = Connection { stream: Box::pin(stream), wakes, room, place };
            Ok((connection, service))
        })
    }
}

/// A connection with its slot.
pub(super) struct Connection<T> {
    stream: Pin<Box<TimeoutStream<T>>>,
    wakes: Pin<Box<Sleep>>,
    room: Arc<Room>,
    place: Place,
}

impl<T: Socket> Connection<T> {
    /// Returns whether the connection has been idle or stalled for too long. Called while there is nothing to read.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        loop {
            let Some(until) =
                self.place.activity.until(context.waker(), &self.room, || self.stream.get_ref().has_input())
            else {
                return true;
            };
            if self.wakes.is_elapsed() || until < self.wakes.deadline() {
                self.wakes.as_mut().reset(until);
            }
            if self.wakes.as_mut().poll(context).is_pending() {
                return false;
            }
        }
    }

    fn written(&self, written: Poll<io::Result<usize>>, context: &Context<'_>) -> Poll<io::Result<usize>> {
        match self.place.activity.has_written(&written, context.waker()) {
            true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            false => written,
        }
    }
}

impl<T: Socket> AsyncRead for Connection<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = self.stream.as_mut().poll_read(context, into);
        if into.filled().len() > before {
            self.place.activity.has_read();
        }
        match polled.is_pending() && self.is_over(context) {
            true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            false => polled,
        }
    }
}

impl<T: Socket> AsyncWrite for Connection<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = self.stream.as_mut().poll_write(context, bytes);
        self.written(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = self.stream.as_mut().poll_write_vectored(context, bytes);
        self.written(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that is to close, and whose time is over, closes even if input seems to be there: looking at it again at once
    /// would not end.
    #[tokio::test]
    async fn a_connection_is_looked_at_again_later_or_closed() {
        let config = Config::parse_with("[service]\nheader_seconds = 1\n", "test.toml", &|_| None).unwrap();
        let room = Connections::new(&config, Gauge::default()).0;
        let idle = [Duration::ZERO, room.idle_time * 2];
        for (since, is_unwanted, input, has_input, is_closed) in [
            (idle[0], false, None, false, false),
            (idle[1], false, None, true, true),
            (idle[0], true, None, false, true),
            (idle[0], true, None, true, false),
            (idle[0], true, Some(Duration::ZERO), false, false),
            (idle[0], true, Some(LINGER * 2), false, true),
            (idle[1], true, Some(Duration::ZERO), true, true),
        ] {
            let activity = Activity::new();
            let now = Instant::now();
            {
                let mut state = activity.lock();
                (state.idle_since, state.is_unwanted) = (now.checked_sub(since).unwrap(), is_unwanted);
                state.last_input = input.map(|input| now.checked_sub(input).unwrap());
            }
            let until = activity.until(Waker::noop(), &room, || has_input);
            assert_eq!(until.is_none(), is_closed, "{since:?} {is_unwanted} {input:?} {has_input}");
            assert!(until.is_none_or(|until| until > now));
        }
    }
}
