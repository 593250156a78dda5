//! Reads requests: bodies within their limits, JSON and queries.

use super::guard::RequestTenant;
use super::problem::ProblemDetails;
use crate::runs::{BodyRoom, InTurn, Refused, Service, Slot, TenantState};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;
use futures_util::stream::{StreamExt, unfold};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use lisp_runtime::internal::near_field;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;

/// The body of a request as text, within `max_body_bytes` and `body_seconds`. It takes room of its tenant's
/// `max_bodies_bytes` as long as it is kept.
#[derive(Debug)]
pub struct Text {
    text: String,
    _room: Option<BodyRoom>,
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Text {
    /// Replaces the text by one that is hardly longer.
    pub(super) fn with(self, change: impl FnOnce(String) -> String) -> Text {
        Text { text: change(self.text), ..self }
    }
}

impl FromRequest<Service> for Text {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, service: &Service) -> Result<Self, ProblemDetails> {
        let settings = &service.config().service;
        let max = settings.max_body_bytes;
        let encoding = request.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
            let why = "compressed bodies are not supported; send the body without Content-Encoding";
            return Err(ProblemDetails::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let too_large = || {
            let why = format!("the body has more than {max} bytes; send less, or raise max_body_bytes of the service");
            ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, why)
        };
        let tenant = request.extensions().get::<Arc<TenantState>>().cloned();
        let body = request.into_body();
        let hint = body.size_hint();
        if hint.lower() > max as u64 {
            return Err(too_large());
        }
        // A body of unknown size has room for the largest.
        let size = hint.upper().and_then(|size| usize::try_from(size).ok()).unwrap_or(max).min(max);
        let mut _room = match &tenant {
            Some(tenant) => Some(tenant.body_room(size).await.map_err(Refused::Busy)?),
            None => None,
        };
        let time = Duration::from_secs(settings.body_seconds);
        let read = tokio::select! {
            read = tokio::time::timeout(time, Limited::new(body, max).collect()) => read,
            () = service.drained() => return Err(Refused::Draining.into()),
        };
        let read = read.map_err(|_| {
            let why = format!("the body did not arrive within {} s (body_seconds of the service)", time.as_secs());
            ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, why)
        })?;
        let bytes = match read {
            Ok(read) => read.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
            Err(error) => {
                return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, format!("the body broke off: {error}")));
            }
        };
        if let Some(room) = &mut _room {
            room.shrink_to(bytes.len());
        }
        // JSON has no byte order mark: skip it.
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").map_or_else(|| bytes.clone(), |rest| bytes.slice_ref(rest));
        String::from_utf8(bytes.into()).map(|text| Text { text, _room }).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            ProblemDetails::new(StatusCode::BAD_REQUEST, format!("the body is not UTF-8 at byte {at}"))
        })
    }
}

/// The query of a request; unknown or invalid parameters are errors.
#[derive(Debug)]
pub(crate) struct StrictQuery<T>(pub(crate) T);

impl<T: serde::de::DeserializeOwned> FromRequestParts<Service> for StrictQuery<T> {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, ProblemDetails> {
        let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        let read = serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(query));
        read.map(StrictQuery).map_err(|error| {
            let field = error.path().to_string();
            let error = error.into_inner().to_string();
            let near = near_field(&error).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let field = if matches!(field.as_str(), "." | "?") { "query".to_owned() } else { field };
            ProblemDetails::of_field(field, format!("invalid query: {error}{near}"))
        })
    }
}

/// Reads a whole number of a query.
pub(crate) fn whole<'de, N: FromStr, D: Deserializer<'de>>(from: D) -> Result<Option<N>, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    text.parse().map(Some).map_err(|_| D::Error::custom(format!("{text:?} is not a whole number")))
}

/// Reads a flag of a query: true if it has no value.
pub(crate) fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match &*Cow::<str>::deserialize(from)? {
        "" | "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        text => Err(D::Error::custom(format!("{text:?} is not `true`, `1`, `false` or `0`"))),
    }
}

/// Rejects any query, for routes without parameters.
#[derive(Debug)]
pub(crate) struct NoQuery;

impl FromRequestParts<Service> for NoQuery {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, ProblemDetails> {
        match parts.uri.query().unwrap_or_default().split(['&', '=']).next() {
            None | Some("") => Ok(NoQuery),
            Some(name) => {
                let more = match name {
                    "wait" => "; to wait for a run, use POST /v1/run, or GET /v1/runs/{run_id}?wait=10",
                    _ => "",
                };
                let why = format!("unknown parameter `{name}`: this path takes no query; leave it out{more}");
                Err(ProblemDetails::of_field("query", why))
            }
        }
    }
}

/// Reads a JSON object; an error names the field.
pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ProblemDetails> {
    // Serde would read an array as the fields in their order.
    if text.trim_start().starts_with('[') {
        return Err(ProblemDetails::of_field("", "invalid request: expected a JSON object, got an array".to_owned()));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        let error = error.into_inner();
        let what = if error.is_data() { "invalid request" } else { "the body is not JSON" };
        let error = error.to_string();
        let near = near_field(&error).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        ProblemDetails::of_field(field, format!("{what}: {error}{near}"))
    })?;
    reader.end().map_err(|error| ProblemDetails::of_field("", format!("the body is not JSON: {error}")))?;
    Ok(value)
}

/// Reads the request of a run. Each of its tools must say what its calls return. If a field is repeated, the last one counts.
pub(crate) fn read_request(text: &str) -> Result<lisp_runtime::Request<'_>, ProblemDetails> {
    let request = any_request(text)?;
    // Calls of another would return nil in silence.
    if let Some((name, _)) = request.tools.iter().find(|(_, tool)| !tool.is_answered()) {
        let why = "missing what answers its calls: add \"client\": true to answer them yourself, or one of `returns`, `error` and `echo`";
        return Err(ProblemDetails::of_field(format!("tools.{name}"), format!("tool {name}: {why}")));
    }
    Ok(request)
}

fn any_request(text: &str) -> Result<lisp_runtime::Request<'_>, ProblemDetails> {
    let wrong = match read(text) {
        Err(wrong) if read::<IgnoredAny>(text).is_ok() => wrong,
        read => return read,
    };
    match lisp_runtime::Request::parse(text) {
        Ok(request) => Ok(request),
        Err(_) if !wrong.detail.contains("duplicate field") => Err(wrong),
        Err(error) => Err(ProblemDetails::of_field("", format!("invalid request: {error}"))),
    }
}

/// Drops repeated fields of an object, of its limits and of its tools, so that the last one counts. Borrows the text if
/// none is repeated.
pub(crate) fn last_of_equal(text: &str) -> Cow<'_, str> {
    let levels = |name: &str| match name {
        "limits" => 1,
        "tools" => 2,
        _ => 0,
    };
    last_of(text, &levels).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Returns an object without repeated fields, here and as many levels down in each field as `levels` says. `None` if
/// none is repeated, or it is no object.
fn last_of(text: &str, levels: &dyn Fn(&str) -> usize) -> Option<String> {
    struct Fields;
    impl<'de> Visitor<'de> for Fields {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = Vec::new();
            while let Some(field) = map.next_entry()? {
                fields.push(field);
            }
            Ok(fields)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let fields = reader.deserialize_map(Fields).ok()?;
    reader.end().ok()?;
    let mut last: BTreeMap<&str, Cow<'_, RawValue>> =
        fields.iter().map(|(name, value)| (&**name, Cow::Borrowed(*value))).collect();
    let mut has_repeats = last.len() < fields.len();
    for (name, value) in &mut last {
        let down = levels(name);
        if down > 0
            && let Some(inner) = last_of(value.get(), &|_| down - 1)
        {
            (*value, has_repeats) = (Cow::Owned(RawValue::from_string(inner).ok()?), true);
        }
    }
    if has_repeats { serde_json::to_string(&last).ok() } else { None }
}

/// The response to a tenant with the answer of a run, or of what else had a slot and is `done`. It takes room of the tenant's
/// until it is sent, and has the slot until there is some.
pub(crate) async fn answer_to(
    tenant: &TenantState,
    done: &str,
    (answer, slot): (String, Slot),
) -> Result<Response, ProblemDetails> {
    if answer.len() <= TenantState::SMALL_RESPONSE {
        return Ok(json(StatusCode::OK, answer));
    }
    let room = tenant.response_room(answer.len()).await;
    drop(slot);
    match room {
        Ok(room) => Ok(json_in(room, StatusCode::OK, answer)),
        Err(busy) => Err(ProblemDetails::unsent(done, &busy)),
    }
}

/// What is done when a run has its answer.
pub(crate) const RUN_ENDED: &str = "the run has ended";

/// A JSON response to a tenant, of what `read` reads from the store and writes down in the tenant's turn. It takes room of
/// the tenant's until it is sent. While there is no room, nothing that was read is kept, and no turn: it is read again
/// once there is. `done` is what the request has done already.
pub(crate) async fn json_read<F>(
    tenant: &TenantState,
    done: Option<&str>,
    read: impl Fn() -> F,
) -> Result<Response, ProblemDetails>
where
    F: Future<Output = Result<InTurn<(StatusCode, String)>, Refused>>,
{
    let mut room: Option<(usize, BodyRoom)> = None;
    loop {
        let InTurn { value: (status, text), turn } = read().await?;
        let bytes = text.len();
        if bytes <= TenantState::SMALL_RESPONSE {
            return Ok(json(status, text));
        }
        // What was read may have grown meanwhile.
        let now = match room.take().filter(|(has, _)| *has >= bytes) {
            Some((_, room)) => Some(room),
            None => tenant.response_room_now(bytes),
        };
        if let Some(room) = now {
            return Ok(json_in(room, status, text));
        }
        drop((text, turn));
        let now = tenant.response_room(bytes).await.map_err(|busy| match done {
            Some(done) => ProblemDetails::unsent(done, &busy),
            None => Refused::Busy(busy).into(),
        })?;
        room = Some((bytes, now));
    }
}

/// A JSON response to a tenant, which takes room of the tenant's until it is sent.
pub(crate) async fn json_for(tenant: &TenantState, text: String) -> Result<Response, ProblemDetails> {
    if text.len() <= TenantState::SMALL_RESPONSE {
        return Ok(json(StatusCode::OK, text));
    }
    let room = tenant.response_room(text.len()).await.map_err(Refused::Busy)?;
    Ok(json_in(room, StatusCode::OK, text))
}

/// A body whose large frames take room of its tenant until they are written. In place of one that finds no room in a second, the
/// body has `unsent`, and ends.
pub fn in_room(tenant: RequestTenant, frames: Body, unsent: impl Into<Bytes>) -> Body {
    let state = Some((frames.into_data_stream(), unsent.into(), None::<oneshot::Receiver<()>>));
    let frames = unfold(state, move |state| {
        let tenant = tenant.0.clone();
        async move {
            let (mut frames, unsent, before) = state?;
            if let Some(written) = before {
                let _ = written.await;
            }
            let frame = frames.next().await?;
            let size = frame.as_ref().map_or(0, Bytes::len);
            if size <= TenantState::SMALL_RESPONSE {
                return Some((frame, Some((frames, unsent, None))));
            }
            match tenant.response_room(size).await {
                Ok(room) => {
                    let (sender, written) = oneshot::channel();
                    let frame = frame.map(|bytes| InRoom { bytes, _room: room, _written: Some(sender) }.into_bytes());
                    Some((frame, Some((frames, unsent, Some(written)))))
                }
                Err(busy) => {
                    tracing::warn!(tenant = tenant.name, %busy, "a response cannot be sent");
                    Some((Ok(unsent), None))
                }
            }
        }
    });
    Body::new(FrameByFrame::new(Body::from_stream(frames)))
}

fn json_in(room: BodyRoom, status: StatusCode, text: String) -> Response {
    let mut response = json(status, String::new());
    let bytes = InRoom { bytes: text.into(), _room: room, _written: None }.into_bytes();
    *response.body_mut() = Body::new(ChunkedBody { bytes });
    response
}

/// Bytes with their room: it is given back when no piece of them is left to be written, whoever has the pieces.
struct InRoom {
    bytes: Bytes,
    _room: BodyRoom,
    /// Dropped with the rest, which its receiver sees.
    _written: Option<oneshot::Sender<()>>,
}

impl InRoom {
    fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for InRoom {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body that is sent piece by piece, so that a client that does not read is noticed.
struct ChunkedBody {
    bytes: Bytes,
}

impl HttpBody for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(next_piece(&mut self.bytes).map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// Takes the next piece of a text. The text, and its room, stay until the last piece is written.
fn next_piece(bytes: &mut Bytes) -> Option<Bytes> {
    const PIECE: usize = 65_536;
    let length = bytes.len().min(PIECE);
    (length > 0).then(|| bytes.split_to(length))
}

/// A body whose frames are sent piece by piece. The next frame is asked for once the one before is sent.
pub(super) struct FrameByFrame {
    frames: Body,
    rest: Bytes,
}

impl FrameByFrame {
    pub(super) fn new(frames: Body) -> Self {
        FrameByFrame { frames, rest: Bytes::new() }
    }
}

impl HttpBody for FrameByFrame {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            if let Some(piece) = next_piece(&mut self.rest) {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            self.rest = Bytes::new();
            match ready!(Pin::new(&mut self.frames).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
    }
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, text: impl Into<Body>) -> Response {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    response.body(text.into()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::store::MemoryStore;

    /// An answer that waits for room has the slot of its run: no more answers are in memory than there are slots.
    #[tokio::test]
    async fn an_answer_has_its_slot_until_there_is_room_for_it() {
        let text = "isolation = \"in-process\"\n[service]\nmax_bodies_bytes = 1048576\n";
        let config = Config::parse_with(text, "test.toml", &|_| None).unwrap();
        let service = Service::open_front(config, Arc::new(MemoryStore::new())).await.unwrap();
        let tenant = service.tenant("anonymous").unwrap();
        let request = read_request(r#"{"program": "1"}"#).unwrap();
        let taken = async || {
            let metrics = service.metrics().await;
            let line = metrics.lines().find(|line| line.starts_with("ptc_slots_taken ")).unwrap();
            line["ptc_slots_taken ".len()..].parse::<usize>().unwrap()
        };
        for is_freed in [true, false] {
            let (_, slot) = service.run_in_slot(&tenant, &request, "run").await.unwrap();
            let room = tenant.response_room_now(1_048_576).unwrap();
            let text = "x".repeat(TenantState::SMALL_RESPONSE + 1);
            let answer = answer_to(&tenant, RUN_ENDED, (text, slot));
            let mut answer = std::pin::pin!(answer);
            assert!(futures_util::poll!(&mut answer).is_pending());
            assert_eq!(taken().await, 1);
            if is_freed {
                drop(room);
            }
            let answer = answer.await;
            assert_eq!(taken().await, 0);
            match answer {
                Ok(response) => assert!(is_freed && response.status() == StatusCode::OK),
                Err(problem) => {
                    assert_eq!((is_freed, problem.status), (false, 507));
                    assert!(problem.detail.starts_with("the run has ended"), "{}", problem.detail);
                }
            }
        }
    }

    #[tokio::test]
    async fn large_frames_take_room_until_they_are_sent_or_are_replaced() {
        let text = "isolation = \"in-process\"\n[service]\nmax_bodies_bytes = 1048576\n";
        let config = Config::parse_with(text, "test.toml", &|_| None).unwrap();
        let service = Service::open_front(config, Arc::new(MemoryStore::new())).await.unwrap();
        let tenant = service.tenant("anonymous").unwrap();
        let all = |body: Body| async { body.collect().await.unwrap().to_bytes() };
        let large = || in_room(RequestTenant(tenant.clone()), Body::from("x".repeat(100_000)), "unsent");
        let room = tenant.response_room_now(1_048_576).unwrap();
        assert_eq!(all(large()).await, "unsent");
        let small = in_room(RequestTenant(tenant.clone()), Body::from("small"), "unsent");
        assert_eq!(all(small).await, "small");
        drop(room);
        let mut body = large();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(tenant.response_room_now(1_048_576).is_none());
        let length = first.len();
        // The next frame is asked for once this one is written.
        assert!(futures_util::poll!(body.frame()).is_ready());
        assert!(futures_util::poll!(body.frame()).is_pending());
        drop(first);
        assert!(length < 100_000 && all(body).await.is_empty());
        assert!(tenant.response_room_now(1_048_576).is_some());
        // A connection has a piece of a response that it has not written.
        let room = tenant.response_room(100_000).await.unwrap();
        let mut body = json_in(room, StatusCode::OK, "x".repeat(100_000)).into_body();
        let first = body.frame().await.unwrap();
        assert_eq!(all(body).await.len(), 100_000 - length);
        assert!(tenant.response_room_now(1_048_576).is_none());
        drop(first);
        assert!(tenant.response_room_now(1_048_576).is_some());
    }
}
