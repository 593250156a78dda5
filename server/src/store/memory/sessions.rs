//! Sessions in memory.

use super::super::clock::millis;
use super::super::rules::exists;
use super::super::{
    NewSession, Opened, Put, Result, SessionLimits, SessionStore, SessionSummary, StoredSession, TurnLease, TurnStart,
    Undo,
};
use super::{Inner, MemoryStore};
use async_trait::async_trait;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Session {
    tenant: String,
    opening: String,
    turns: u64,
    created_ms: i64,
    pub(super) updated_ms: i64,
    /// The saved sessions, oldest first: that before the first turn, and one after each.
    states: Vec<Option<String>>,
    /// The number of the last turn that was begun.
    epoch: u64,
    /// When the lease of the turn in progress expires.
    turn_until_ms: Option<i64>,
    /// The last turns that ended, and how.
    ended: VecDeque<(u64, Ended)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Put,
    Undo,
    NothingToUndo,
}

impl Session {
    pub(super) fn is_in_turn(&self, now: i64) -> bool {
        self.turn_until_ms.is_some_and(|until| until > now)
    }

    fn end(&mut self, epoch: u64, how: Ended) {
        /// How many endings are kept.
        const KEPT: usize = 300;
        self.turn_until_ms = None;
        self.ended.push_front((epoch, how));
        self.ended.truncate(KEPT);
    }

    /// Returns the bytes of all its texts.
    fn bytes(&self) -> u64 {
        (self.opening.len() + self.states.iter().flatten().map(String::len).sum::<usize>()) as u64
    }

    fn text(&self) -> Option<&String> {
        self.states.last().and_then(Option::as_ref)
    }

    fn summary(&self, session_id: &str) -> SessionSummary {
        SessionSummary {
            session_id: session_id.to_owned(),
            tenant: self.tenant.clone(),
            bytes: (self.opening.len() + self.text().map_or(0, String::len)) as u64,
            turns: self.turns,
            undos: (self.states.len() as u64).saturating_sub(1),
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
        }
    }
}

impl Inner {
    /// Returns the session of a turn that is valid.
    fn in_turn(&mut self, turn: &TurnLease) -> Option<&mut Session> {
        let session = self.sessions.get_mut(&*turn.session_id)?;
        (session.epoch == turn.epoch && session.turn_until_ms.is_some()).then_some(session)
    }

    /// Returns the session if the turn has ended this way: the result of the first try may have been lost.
    fn ended(&self, turn: &TurnLease, how: Ended) -> Option<SessionSummary> {
        let session = self.sessions.get(&*turn.session_id)?;
        session.ended.contains(&(turn.epoch, how)).then(|| session.summary(&turn.session_id))
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn open_session(&self, session: NewSession, limits: SessionLimits) -> Result<Opened> {
        let mut inner = self.lock()?;
        let NewSession { session_id, tenant, opening, text } = session;
        if inner.sessions.contains_key(&session_id) {
            return Err(exists("session", &session_id));
        }
        let of_tenant = inner.sessions.values().filter(|session| session.tenant == tenant);
        let (count, bytes) = of_tenant.fold((0, 0), |(count, bytes), session| (count + 1, bytes + session.bytes()));
        if count >= limits.sessions {
            return Ok(Opened::TooMany);
        }
        let now = inner.clock.wall_ms();
        let session = Session {
            tenant,
            opening,
            turns: 0,
            created_ms: now,
            updated_ms: now,
            states: vec![text],
            epoch: 0,
            turn_until_ms: None,
            ended: VecDeque::new(),
        };
        let bytes = bytes + session.bytes();
        if bytes > limits.bytes {
            return Ok(Opened::TooLarge(bytes));
        }
        inner.sessions.insert(session_id, session);
        Ok(Opened::New)
    }

    async fn session_summary(&self, session_id: &str) -> Result<Option<SessionSummary>> {
        Ok(self.lock()?.sessions.get(session_id).map(|session| session.summary(session_id)))
    }

    async fn session(&self, session_id: &str) -> Result<Option<StoredSession>> {
        let inner = self.lock()?;
        Ok(inner.sessions.get(session_id).map(|session| StoredSession {
            summary: session.summary(session_id),
            opening: session.opening.clone(),
            text: session.text().cloned(),
        }))
    }

    async fn begin_turn(&self, tenant: &str, session_id: &str, period: Duration) -> Result<TurnStart> {
        let mut inner = self.lock()?;
        let now = inner.clock.steady_ms();
        let Some(session) = inner.sessions.get_mut(session_id).filter(|session| session.tenant == tenant) else {
            return Ok(TurnStart::NoSession);
        };
        if session.is_in_turn(now) {
            return Ok(TurnStart::Busy);
        }
        session.epoch += 1;
        session.turn_until_ms = Some(now.saturating_add(millis(period)));
        let turn = TurnLease { session_id: session_id.into(), epoch: session.epoch };
        Ok(TurnStart::Started(turn, Box::new(session.summary(session_id))))
    }

    async fn renew_turn(&self, turn: &TurnLease, period: Duration) -> Result<bool> {
        let mut inner = self.lock()?;
        let until = inner.clock.steady_ms().saturating_add(millis(period));
        let Some(session) = inner.in_turn(turn) else { return Ok(false) };
        session.turn_until_ms = Some(until);
        Ok(true)
    }

    async fn put_turn(&self, turn: &TurnLease, text: String, undos: u64, max_bytes: u64) -> Result<Put> {
        let mut inner = self.lock()?;
        let now = inner.clock.wall_ms();
        if let Some(summary) = inner.ended(turn, Ended::Put) {
            return Ok(Put::Stored(summary));
        }
        let Some(session) = inner.in_turn(turn) else { return Ok(Put::Lost) };
        let tenant = session.tenant.clone();
        let keep = usize::try_from(undos).unwrap_or(usize::MAX);
        let old = session.states.len().saturating_sub(keep);
        let dropped: usize = session.states[..old].iter().flatten().map(String::len).sum();
        let of_tenant = inner.sessions.values().filter(|session| session.tenant == tenant);
        let bytes = of_tenant.map(Session::bytes).sum::<u64>() + text.len() as u64 - dropped as u64;
        if bytes > max_bytes {
            return Ok(Put::TooLarge(bytes));
        }
        let Some(session) = inner.in_turn(turn) else { return Ok(Put::Lost) };
        session.states.drain(..old);
        session.states.push(Some(text));
        session.end(turn.epoch, Ended::Put);
        session.turns += 1;
        session.updated_ms = now;
        Ok(Put::Stored(session.summary(&turn.session_id)))
    }

    async fn undo_turn(&self, turn: &TurnLease) -> Result<Undo> {
        let mut inner = self.lock()?;
        let now = inner.clock.wall_ms();
        if let Some(summary) = inner.ended(turn, Ended::Undo) {
            return Ok(Undo::Done(summary));
        } else if inner.ended(turn, Ended::NothingToUndo).is_some() {
            return Ok(Undo::Nothing);
        }
        let Some(session) = inner.in_turn(turn) else { return Ok(Undo::Lost) };
        if session.states.len() < 2 {
            session.end(turn.epoch, Ended::NothingToUndo);
            return Ok(Undo::Nothing);
        }
        session.end(turn.epoch, Ended::Undo);
        session.states.pop();
        session.turns = session.turns.saturating_sub(1);
        session.updated_ms = now;
        Ok(Undo::Done(session.summary(&turn.session_id)))
    }

    async fn end_turn(&self, turn: &TurnLease) -> Result<()> {
        if let Some(session) = self.lock()?.in_turn(turn) {
            session.turn_until_ms = None;
        }
        Ok(())
    }

    async fn delete_session(&self, turn: &TurnLease) -> Result<bool> {
        let mut inner = self.lock()?;
        let is_valid = inner.in_turn(turn).is_some();
        if is_valid {
            inner.sessions.remove(&*turn.session_id);
        }
        Ok(is_valid)
    }
}
