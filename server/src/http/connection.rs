//! Limits the number of connections and closes idle ones.
//!
//! A connection without a request in progress is idle. It is closed once it has been idle for longer than
//! `header_seconds`, counted from when it was accepted or last busy. It is closed earlier if a new connection needs its
//! slot. If none is idle, one is closed that has no request of a tenant in progress, or else the one whose client has not
//! read for longest.

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

/// A write of at least this many bytes is part of a response, if one is to be sent; HTTP/2 keep-alive frames are shorter.
const PART_OF_RESPONSE: usize = 256;
/// A client that has read nothing for so long may lose its connection to a new one.
const STALLED: Duration = Duration::from_secs(10);
/// The bytes that the system keeps of what a client has not read. It reports that a client reads only once it has read about a
/// third of this, or of twice as much: a client that reads 20 kB a second is not stalled.
#[cfg(unix)]
const SEND_BUFFER: usize = 256 << 10;
/// How long a connection stays open after it was told to close, if input has arrived: that may be a request. If it is one,
/// this time starts over, once.
const LINGER: Duration = Duration::from_millis(50);
/// The maximum number of connections beyond `max_connections`: those that were told to close, and have not yet.
pub(super) const CLOSING: usize = 64;

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
        self.connections.values().filter(|activity| activity.lock().closing.is_some()).count()
    }

    /// Tells a connection to close: see [`Activity::closable`]. Returns false if all are busy. A connection counts until it is
    /// closed.
    fn close_one(&self) -> bool {
        let closable = self.connections.iter().filter_map(|(number, activity)| Some((activity.closable()?, number)));
        let closed = closable.min().and_then(|(_, number)| self.connections.get(number));
        closed.inspect(|activity| activity.close()).is_some()
    }

    /// Closes the connection at once that was told to close first and still waits for a request: see [`LINGER`].
    fn end_linger(&self) {
        let lingering = self.connections.values().filter_map(|activity| Some((activity.lingers_until()?, activity)));
        if let Some((_, activity)) = lingering.min_by_key(|(until, _)| *until) {
            activity.close_at(Instant::now());
        }
    }
}

impl Connections {
    /// There are at most `max` connections at a time.
    pub(super) fn new(config: &Config, max: usize, figure: Gauge) -> Self {
        let limits = &config.service;
        Connections(Arc::new(Room {
            max,
            idle_time: Duration::from_secs(limits.header_seconds),
            write_time: Duration::from_secs(limits.body_seconds),
            figure,
            open: Mutex::default(),
        }))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection that has been idle longest, or what else can be closed.
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
        if beyond > CLOSING / 2 {
            open.end_linger();
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
    /// Requests whose response has not ended, by number.
    requests: BTreeMap<u64, InProgress>,
    /// The number of the last request.
    last: u64,
    /// When the last request ended, or the last part of a response was sent.
    idle_since: Instant,
    /// When input arrived that has not led to a request yet.
    last_input: Option<Instant>,
    /// Since when parts of responses are ready, and the client has taken none. Requests that are reset and made anew do
    /// not end this time.
    unread_since: Option<Instant>,
    /// Bytes of responses that the connection has taken on and not written.
    unsent: usize,
    /// The shares of `max_requests` of responses that have ended, until they are written.
    unwritten: Vec<Arc<RequestInProgress>>,
    /// Since when the client has not read.
    blocked_since: Option<Instant>,
    /// Whether what is being sent may be for a tenant.
    is_for_tenant: bool,
    /// Another connection needs the slot.
    closing: Option<Closing>,
    /// Wakes the task of the connection.
    waker: Option<Waker>,
}

/// A request whose response has not ended.
#[derive(Debug, Default)]
struct InProgress {
    /// Since when a part of the response is ready that the connection has not taken on.
    given: Option<Instant>,
    /// Its share of its tenant's `max_requests`; `None` for a request without a valid token.
    of_tenant: Option<Arc<RequestInProgress>>,
    /// Whether its connection may have other requests at the same time.
    has_others: bool,
}

/// A connection was told to close.
#[derive(Clone, Copy, Debug)]
struct Closing {
    /// How long it waits for a request that may have arrived, and for the response to one that has: see [`LINGER`].
    until: Instant,
    /// Whether such a request has begun.
    is_extended: bool,
}

impl Activity {
    fn new() -> Self {
        Activity(Mutex::new(State {
            requests: BTreeMap::new(),
            last: 0,
            idle_since: Instant::now(),
            last_input: None,
            unread_since: None,
            unsent: 0,
            unwritten: Vec::new(),
            blocked_since: None,
            is_for_tenant: false,
            closing: None,
            waker: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new request. Returns whether the connection is to close after it.
    fn begin(self: &Arc<Self>) -> (ActiveRequest, bool) {
        let mut state = self.lock();
        (state.last, state.last_input) = (state.last + 1, None);
        let number = state.last;
        state.is_for_tenant &= state.blocked_since.is_some() || !state.requests.is_empty();
        state.requests.insert(number, InProgress::default());
        if let Some(closing) = state.closing.as_mut().filter(|closing| !closing.is_extended) {
            *closing = Closing { until: Instant::now() + LINGER, is_extended: true };
        }
        (ActiveRequest { activity: self.clone(), number }, state.closing.is_some())
    }

    /// Returns whether the connection can be closed for another one, in which order, and since when: if it is idle, if it
    /// has no request of a tenant, or if its client has not read for too long.
    fn closable(&self) -> Option<(Order, Instant)> {
        let state = self.lock();
        if state.closing.is_some() {
            return None;
        }
        match state.is_at_work() {
            false if state.requests.is_empty() => Some((Order::Idle, state.idle_since)),
            false => Some((Order::WithoutTenant, state.idle_since)),
            true => state.stalled_since().map(|since| (Order::Stalled, since)),
        }
    }

    /// Records input.
    fn has_read(&self) {
        self.lock().last_input = Some(Instant::now());
    }

    /// Records a write.
    fn has_written(&self, written: &Poll<io::Result<usize>>) {
        let (mut state, now) = (self.lock(), Instant::now());
        let was_blocked = state.blocked_since.is_some();
        state.blocked_since = written.is_pending().then(|| state.blocked_since.unwrap_or(now));
        let bytes = if let Poll::Ready(Ok(bytes)) = written { *bytes } else { 0 };
        let is_part = bytes >= PART_OF_RESPONSE && state.unsent > 0;
        state.unsent = state.unsent.saturating_sub(bytes);
        if state.unsent == 0 {
            state.unwritten.clear();
        }
        if (was_blocked && !written.is_pending()) || is_part {
            state.idle_since = now;
        }
    }

    fn close(&self) {
        self.close_at(Instant::now() + LINGER);
    }

    fn close_at(&self, until: Instant) {
        let mut state = self.lock();
        // A connection that is told again does not wait for another request.
        let is_extended = state.closing.is_some();
        state.closing = Some(Closing { until, is_extended });
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Returns how long the connection waits for a request although it is to close.
    fn lingers_until(&self) -> Option<Instant> {
        let state = self.lock();
        let closing = state.closing.filter(|closing| closing.until > Instant::now() && !state.is_at_work());
        closing.map(|closing| closing.until)
    }

    /// Returns when the connection must be looked at again, or `None` if it must be closed now. `has_input` says whether a
    /// request may have arrived.
    fn until(&self, waker: &Waker, room: &Room, has_input: impl FnOnce() -> bool) -> Option<Instant> {
        let mut state = self.lock();
        state.woken_by(waker);
        let now = Instant::now();
        let is_busy = !state.requests.is_empty() || state.blocked_since.is_some();
        // A request that ends meanwhile leaves at least this much time.
        let until = if is_busy { now } else { state.idle_since } + room.idle_time;
        let stalled = state.requests.values().filter_map(|request| request.given).min();
        let until = stalled.map_or(until, |stalled| until.min(stalled + room.write_time));
        let Some(closing) = state.closing else { return (until > now).then_some(until) };
        if state.stalled_since().is_some() {
            return None;
        }
        if state.is_at_work() {
            return (until > now).then_some(until);
        }
        // A request that arrived at the same time is still served.
        let is_recent = state.last_input.is_some_and(|input| input + LINGER > now);
        let lingers = (!state.requests.is_empty() || is_recent || has_input()).then_some(closing.until);
        lingers.map(|lingers| until.min(lingers)).filter(|until| *until > now)
    }
}

/// Which connections are closed first for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// It has no request in progress.
    Idle,
    /// It has no request of a tenant in progress.
    WithoutTenant,
    /// Its client has not read for too long.
    Stalled,
}

impl State {
    /// Returns whether a request of a tenant is in progress, or its response is being sent.
    fn is_at_work(&self) -> bool {
        (self.blocked_since.is_some() && self.is_for_tenant)
            || self.requests.values().any(|request| request.of_tenant.is_some())
    }

    /// Returns since when the client has read nothing, if that is too long: of no response if there are several.
    fn stalled_since(&self) -> Option<Instant> {
        let waits_for_client = |request: &InProgress| request.given.is_some();
        let by_stream = !self.requests.is_empty() && self.requests.values().all(waits_for_client);
        let by_stream = self.unread_since.filter(|_| by_stream);
        self.blocked_since.into_iter().chain(by_stream).filter(|since| since.elapsed() >= STALLED).min()
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
    fn gives(&self, bytes: usize) {
        let (mut state, now) = (self.activity.lock(), Instant::now());
        state.unsent = state.unsent.saturating_add(bytes);
        state.unread_since.get_or_insert(now);
        if let Some(request) = state.requests.get_mut(&self.number) {
            request.given = Some(now);
        }
    }

    /// Returns a part of the response with the share of the request, if its connection has several at a time: such a connection takes
    /// on whole responses that its client does not read, and drops them when the client ends the stream.
    fn with_share(&self, part: Bytes) -> Bytes {
        let state = self.activity.lock();
        let request = state.requests.get(&self.number).filter(|request| request.has_others && !part.is_empty());
        match request.and_then(|request| request.of_tenant.clone()) {
            Some(share) => Bytes::from_owner(WithShare { part, _share: share }),
            None => part,
        }
    }

    /// Records that the next part was asked for.
    fn is_asked(&self) {
        let mut state = self.activity.lock();
        if state.requests.get_mut(&self.number).and_then(|request| request.given.take()).is_some() {
            let others_wait = state.requests.values().any(|request| request.given.is_some());
            state.unread_since = others_wait.then(Instant::now);
        }
    }
}

/// A part of a response, and the share of `max_requests` that its request has until it is written.
struct WithShare {
    part: Bytes,
    _share: Arc<RequestInProgress>,
}

impl AsRef<[u8]> for WithShare {
    fn as_ref(&self) -> &[u8] {
        &self.part
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        let request = state.requests.remove(&self.number);
        // A stream that is reset leaves bytes that are never written: only connections with one request at a time wait for them. Of
        // others, the parts of the response have the share.
        let share =
            request.filter(|request| !request.has_others && state.unsent > 0).and_then(|request| request.of_tenant);
        state.unwritten.extend(share);
        state.idle_since = Instant::now();
    }
}

/// Tells the connection of a request whose it is.
#[derive(Clone, Debug)]
pub(super) struct OfConnection {
    activity: Arc<Activity>,
    number: u64,
    /// Whether the connection has several requests at a time.
    has_several: bool,
}

impl OfConnection {
    /// Counts the request as one of a tenant until its response is written. Its connection is not closed for others before. One
    /// that has several requests at a time cannot say to its client that it is to close, and stays.
    pub(super) fn is_of(&self, in_progress: Option<RequestInProgress>) {
        let mut state = self.activity.lock();
        if self.has_several {
            state.closing = None;
        }
        state.is_for_tenant |= in_progress.is_some();
        if let Some(request) = state.requests.get_mut(&self.number) {
            (request.of_tenant, request.has_others) = (in_progress.map(Arc::new), self.has_several);
        }
    }
}

/// A response body that keeps its request in progress while it exists.
struct ResponseBody {
    body: Body,
    request: ActiveRequest,
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
        if let Poll::Ready(Some(frame)) = &polled {
            let data = frame.as_ref().ok().and_then(Frame::data_ref);
            self.request.gives(data.map_or(0, Bytes::len));
            if self.body.is_end_stream() || self.body.size_hint().exact() == Some(0) {
                // No more is asked for.
                self.request.is_asked();
            }
        }
        polled.map_ok(|frame| frame.map_data(|part| self.request.with_share(part)))
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

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let (in_progress, is_last) = self.activity.begin();
        let (activity, number) = (self.activity.clone(), in_progress.number);
        let has_several = request.version() == Version::HTTP_2;
        request.extensions_mut().insert(OfConnection { activity, number, has_several });
        let responds = self.service.call(request);
        Box::pin(async move {
            let mut response = responds.await?;
            if is_last && !has_several {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| Body::new(ResponseBody { body, request: in_progress })))
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
    /// Returns whether the connection has been idle or stalled for too long. Called while there is nothing to read, or nothing can
    /// be written.
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

    fn written(&mut self, written: Poll<io::Result<usize>>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.place.activity.has_written(&written);
        match written.is_pending() && self.is_over(context) {
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
    use crate::runs::TenantState;
    use std::collections::BTreeSet;

    fn config() -> Config {
        Config::parse_with("[service]\nheader_seconds = 1\n", "test.toml", &|_| None).unwrap()
    }

    fn room() -> Arc<Room> {
        Connections::new(&config(), 8, Gauge::default()).0
    }

    fn ago(time: Duration) -> Instant {
        Instant::now().checked_sub(time).unwrap()
    }

    /// A connection that is to close, and whose time is over, closes even if input seems to be there: looking at it again at once
    /// would not end.
    #[tokio::test]
    async fn a_connection_is_looked_at_again_later_or_closed() {
        let room = room();
        let idle = [Duration::ZERO, room.idle_time * 2];
        let (now, late) = (Some(Duration::ZERO), Some(LINGER * 2));
        for (since, closing, input, has_input, is_closed) in [
            (idle[0], None, None, false, false),
            (idle[1], None, None, true, true),
            (idle[0], now, None, false, true),
            (idle[0], now, None, true, false),
            (idle[0], now, now, false, false),
            (idle[0], now, late, false, true),
            (idle[1], now, now, true, true),
            // However late its input is, it was told to close before.
            (idle[0], late, now, false, true),
            (idle[0], late, None, true, true),
        ] {
            let activity = Activity::new();
            {
                let mut state = activity.lock();
                state.idle_since = ago(since);
                state.closing = closing.map(|closing| Closing { until: ago(closing) + LINGER, is_extended: false });
                state.last_input = input.map(ago);
            }
            let until = activity.until(Waker::noop(), &room, || has_input);
            assert_eq!(until.is_none(), is_closed, "{since:?} {closing:?} {input:?} {has_input}");
            assert!(until.is_none_or(|until| until > Instant::now()));
        }
    }

    /// A request that had arrived when its connection was told to close is served; others after it prolong nothing.
    #[tokio::test]
    async fn a_connection_that_is_to_close_waits_for_one_request() {
        let (room, activity) = (room(), Arc::new(Activity::new()));
        let is_closed = || activity.until(Waker::noop(), &room, || true).is_none();
        activity.close();
        activity.lock().closing.as_mut().unwrap().until = Instant::now();
        assert!(is_closed());
        for is_prolonged in [true, false] {
            let (request, _) = activity.begin();
            assert_eq!(!is_closed(), is_prolonged);
            drop(request);
            activity.lock().closing.as_mut().unwrap().until = Instant::now();
            assert!(is_closed());
        }
    }

    /// A client that has taken nothing for long is stalled, however new the requests are whose responses it does not take.
    #[tokio::test]
    async fn requests_that_are_made_anew_do_not_hide_that_nothing_is_read() {
        let activity = Arc::new(Activity::new());
        let tenant = TenantState::new(&config(), config().anonymous().unwrap(), BTreeSet::new());
        let begin = || {
            let (request, _) = activity.begin();
            let number = request.number;
            let of = OfConnection { activity: activity.clone(), number, has_several: true };
            of.is_of(tenant.begin_request(false).ok());
            request
        };
        let mut request = begin();
        request.gives(1_000);
        assert_eq!(activity.closable(), None);
        activity.lock().unread_since = Some(ago(STALLED));
        for _ in 0..3 {
            // The next one comes before the one before is reset, or after.
            let next = begin();
            drop(std::mem::replace(&mut request, next));
            assert_eq!(activity.closable(), None, "its response is not ready");
            request.gives(1_000);
            assert_eq!(activity.closable().map(|(order, _)| order), Some(Order::Stalled));
        }
        request.is_asked();
        assert_eq!(activity.closable(), None);
        drop(request);
        assert_eq!(activity.closable().map(|(order, _)| order), Some(Order::Idle));
        let _of_nobody = activity.begin();
        assert_eq!(activity.closable().map(|(order, _)| order), Some(Order::WithoutTenant));
    }
}
