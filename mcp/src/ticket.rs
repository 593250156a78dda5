//! Tokens of waiting runs, sealed for one tenant, one run and its open calls.
//!
//! A token identifies a run but does not decide anything, so it can be used repeatedly. A reply takes effect once.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use lisp_server::runs::{Service, WaitingCall};
use lisp_server::store::StoreError;
use sha2::{Digest, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The name of the key in the store.
const KEY: &str = "mcp-tokens";
/// The lengths in bytes of a run ID, a time, the digests of a call, and the seal.
const RUN: usize = 16;
const MOMENT: usize = 8;
const NAME: usize = 4;
const CALL: usize = 8;
const SEAL: usize = 16;

/// The purpose of a token. A token for one purpose is invalid for another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose<'a> {
    /// For the tool `resume`.
    Resume,
    /// For a request with this digest that the client sends again.
    Round(&'a [u8; 32]),
}

/// Why a token is invalid.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum BadTicket {
    #[error("this is not a token of this server; copy the whole token from the result of the paused run")]
    Forged,
    #[error("the token has expired; run the program again")]
    Expired,
}

/// The contents of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) run_id: String,
    calls: Vec<Digests>,
}

/// The digest of a call's name and what it waits for, and that of the whole call.
type Digests = [u8; NAME + CALL];

impl Ticket {
    /// Returns whether the run waited for this call when the token was made.
    pub(crate) fn names(&self, call: &WaitingCall) -> bool {
        self.calls.contains(&digests(call))
    }

    /// Returns whether the run waited for this call only.
    pub(crate) fn names_only(&self, call: &WaitingCall) -> bool {
        self.calls == [digests(call)]
    }

    /// Returns whether the run waited for a call of this name, for what `asked` says, when the token was made. If no call is
    /// named, it has to be the only one.
    pub(crate) fn may_answer(&self, named: Option<&str>, call: &str, asked: &str) -> bool {
        let is_meant = named.map_or(self.calls.len() == 1, |named| named == call);
        let name = name_digest(call, asked);
        is_meant && self.calls.iter().any(|digests| digests.starts_with(&name))
    }
}

/// Creates and opens tokens.
#[derive(Clone)]
pub(crate) struct Tickets {
    key: Vec<u8>,
    life_ms: i64,
}

impl Tickets {
    pub(crate) async fn new(service: &Service) -> Result<Self, StoreError> {
        let mut fresh = vec![0; 32];
        getrandom::fill(&mut fresh).map_err(|error| StoreError::Failed(format!("no random bytes: {error}")))?;
        let hours = i64::try_from(service.config().service.keep_finished_hours).unwrap_or(i64::MAX);
        Ok(Tickets { key: service.secret(KEY, fresh).await?, life_ms: hours.saturating_mul(3_600_000) })
    }

    fn seal(&self, tenant: &str, purpose: Purpose<'_>, body: &[u8]) -> [u8; SEAL] {
        // HMAC accepts keys of any length.
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

    /// Creates a token for a run and its open calls.
    pub(crate) fn make(&self, tenant: &str, purpose: Purpose<'_>, run_id: &str, calls: &[WaitingCall]) -> String {
        let run = Uuid::parse_str(run_id).unwrap_or_default();
        let until = now_ms().saturating_add(self.life_ms);
        let mut body = Vec::with_capacity(RUN + MOMENT + (NAME + CALL) * calls.len() + SEAL);
        body.extend(run.as_bytes());
        body.extend(until.to_be_bytes());
        body.extend(calls.iter().flat_map(digests));
        let seal = self.seal(tenant, purpose, &body);
        body.extend(seal);
        BASE64.encode(body)
    }

    /// Opens a token.
    pub(crate) fn open(&self, tenant: &str, purpose: Purpose<'_>, token: &str) -> Result<Ticket, BadTicket> {
        let bytes = BASE64.decode(token.trim()).map_err(|_| BadTicket::Forged)?;
        let sealed = bytes.len().checked_sub(SEAL).ok_or(BadTicket::Forged)?;
        let (body, seal) = bytes.split_at(sealed);
        if !is_same(seal, &self.seal(tenant, purpose, body)) {
            return Err(BadTicket::Forged);
        }
        let (run, rest) = body.split_at_checked(RUN).ok_or(BadTicket::Forged)?;
        let (moment, calls) = rest.split_at_checked(MOMENT).ok_or(BadTicket::Forged)?;
        let run = Uuid::from_slice(run).map_err(|_| BadTicket::Forged)?;
        let until = i64::from_be_bytes(moment.try_into().map_err(|_| BadTicket::Forged)?);
        if until < now_ms() {
            return Err(BadTicket::Expired);
        }
        let calls = calls.chunks(NAME + CALL).map(|call| call.try_into().map_err(|_| BadTicket::Forged));
        Ok(Ticket { run_id: run.to_string(), calls: calls.collect::<Result<_, _>>()? })
    }
}

/// Compares in constant time.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

fn digests(call: &WaitingCall) -> Digests {
    let text = serde_json::to_vec(&(call.asked(), call)).unwrap_or_default();
    let mut digests = [0; NAME + CALL];
    digests[..NAME].copy_from_slice(&name_digest(&call.call, &call.asked()));
    digests[NAME..].copy_from_slice(&Sha256::digest(text)[..CALL]);
    digests
}

fn name_digest(call: &str, asked: &str) -> [u8; NAME] {
    let mut short = [0; NAME];
    short.copy_from_slice(&Sha256::digest(format!("{asked} {call}"))[..NAME]);
    short
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
