//! Tokens of runs that wait for a decision: sealed, for one tenant and one question, used once.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use lisp_server::runs::{Refused, Service, WaitingCall};
use lisp_server::store::StoreError;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The name of the key in the store.
const KEY: &str = "mcp-tokens";
/// Bytes of a run's name, of a moment, of a number, of the digest of its calls, and of the seal.
const RUN: usize = 16;
const MOMENT: usize = 8;
const NUMBER: usize = 4;
const CALLS: usize = 8;
const SEAL: usize = 16;
const BODY: usize = RUN + MOMENT + NUMBER + CALLS;

/// What a token is for. One of one kind is none of another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose<'a> {
    /// The tool `resume`.
    Resume,
    /// The state of a request with these contents that the client sends again.
    Round(&'a [u8; 32]),
}

/// Why a token opens nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadTicket {
    #[error("this is no token of this server: copy it whole from the result of the paused run")]
    Forged,
    #[error("the token has expired; run the program again")]
    Expired,
    #[error("the token was used before; the result of its use has the next one, if the run waits again")]
    Used,
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// What a token says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) run_id: String,
    calls: [u8; CALLS],
}

impl Ticket {
    /// Does the run wait for what it waited for when the token was made?
    pub(crate) fn fits(&self, calls: &[WaitingCall]) -> bool {
        self.calls == digest(calls)
    }
}

/// Makes tokens and opens them.
#[derive(Clone)]
pub(crate) struct Tickets {
    key: Vec<u8>,
    life_ms: i64,
    /// How many were made: two of one moment are two.
    made: Arc<AtomicU32>,
}

impl Tickets {
    pub(crate) fn new(service: &Service) -> Result<Self, StoreError> {
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(|error| StoreError::Failed(format!("no random bytes: {error}")))?;
        let hours = i64::try_from(service.config().service.keep_finished_hours).unwrap_or(i64::MAX);
        Ok(Tickets {
            key: service.secret(KEY, &fresh)?,
            life_ms: hours.saturating_mul(3_600_000),
            made: Arc::default(),
        })
    }

    fn seal(&self, tenant: &str, purpose: Purpose<'_>, body: &[u8]) -> [u8; SEAL] {
        // HMAC takes a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return [0; SEAL] };
        mac.update(&(tenant.len() as u64).to_le_bytes());
        mac.update(tenant.as_bytes());
        match purpose {
            Purpose::Resume => mac.update(b"resume"),
            Purpose::Round(contents) => {
                mac.update(b"round");
                mac.update(contents);
            }
        }
        mac.update(body);
        let mut seal = [0; SEAL];
        seal.copy_from_slice(&mac.finalize().into_bytes()[..SEAL]);
        seal
    }

    /// A token for what a run waits for.
    pub(crate) fn make(&self, tenant: &str, purpose: Purpose<'_>, run_id: &str, calls: &[WaitingCall]) -> String {
        let run = Uuid::parse_str(run_id).unwrap_or_default();
        let until = now_ms().saturating_add(self.life_ms);
        let mut body = Vec::with_capacity(BODY + SEAL);
        body.extend(run.as_bytes());
        body.extend(until.to_be_bytes());
        body.extend(self.made.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        body.extend(digest(calls));
        let seal = self.seal(tenant, purpose, &body);
        body.extend(seal);
        BASE64.encode(body)
    }

    /// Opens a token, and uses it up.
    pub(crate) fn take(
        &self,
        service: &Service,
        tenant: &str,
        purpose: Purpose<'_>,
        token: &str,
    ) -> Result<Ticket, BadTicket> {
        let bytes = BASE64.decode(token.trim()).map_err(|_| BadTicket::Forged)?;
        let (body, seal) = bytes.split_at_checked(BODY).ok_or(BadTicket::Forged)?;
        if !is_same(seal, &self.seal(tenant, purpose, body)) {
            return Err(BadTicket::Forged);
        }
        let (run, rest) = body.split_at(RUN);
        let (moment, rest) = rest.split_at(MOMENT);
        let (_, calls) = rest.split_at(NUMBER);
        let run = Uuid::from_slice(run).map_err(|_| BadTicket::Forged)?;
        let until = i64::from_be_bytes(moment.try_into().map_err(|_| BadTicket::Forged)?);
        if until < now_ms() {
            return Err(BadTicket::Expired);
        }
        // Another way to write the same bytes is the same token.
        if !service.use_token(&BASE64.encode(&bytes), until).map_err(Refused::from)? {
            return Err(BadTicket::Used);
        }
        Ok(Ticket { run_id: run.to_string(), calls: calls.try_into().map_err(|_| BadTicket::Forged)? })
    }
}

/// Takes as long wherever they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// What a run waits for, in short.
fn digest(calls: &[WaitingCall]) -> [u8; CALLS] {
    let text = serde_json::to_vec(calls).unwrap_or_default();
    let mut short = [0; CALLS];
    short.copy_from_slice(&Sha256::digest(text)[..CALLS]);
    short
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
