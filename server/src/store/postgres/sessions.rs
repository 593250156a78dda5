//! Sessions.

use super::super::{
    NewSession, Opened, Put, Result, SessionLimits, SessionStore, SessionSummary, StoredSession, TurnLease, TurnStart,
    Undo,
};
use super::pool::Failure;
use super::text::{escape, text, unescape};
use super::{PostgresStore, exists, get, get_count, only, period_ms, signed};
use async_trait::async_trait;
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

/// What [`PostgresStore::finish`] fails with if the sessions of the tenant would have too many bytes.
const TOO_LARGE: &str = "PT003";

/// Selects the columns of a summary, and more, from what a function for sessions returns. `octet_length` reads no text.
macro_rules! select_summary {
    ($more:literal, $from:literal) => {
        concat!(
            "select session_id, tenant, turns, undos, created_ms, updated_ms, epoch, \
             octet_length(opening)::bigint + coalesce(octet_length(text), 0) as bytes",
            $more,
            " from ptc_lisp.",
            $from
        )
    };
}

impl PostgresStore {
    /// Ends a turn, and returns what the function does.
    async fn finish(
        &self,
        turn: &TurnLease,
        end: &str,
        (text, undos, max_bytes): (Option<&str>, u64, u64),
    ) -> Result<Option<Row>, Failure> {
        let sql = select_summary!("", "end_turn($1, $2, $3, $4, $5, $6, $7)");
        let (session_id, text) = (escape(&turn.session_id), text.map(str::as_bytes));
        let (epoch, undos, max_bytes) = (signed(turn.epoch), signed(undos), signed(max_bytes));
        let rows = self.pool.query_again(sql, &[&session_id, &epoch, &end, &text, &undos, &max_bytes]).await?;
        Ok(rows.into_iter().next())
    }
}

fn summary(row: &Row) -> Result<SessionSummary> {
    Ok(SessionSummary {
        session_id: unescape(get(row, "session_id")?),
        tenant: unescape(get(row, "tenant")?),
        turns: get_count(row, "turns")?,
        undos: get_count(row, "undos")?,
        bytes: get_count(row, "bytes")?,
        created_ms: get(row, "created_ms")?,
        updated_ms: get(row, "updated_ms")?,
    })
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn open_session(&self, session: NewSession, limits: SessionLimits) -> Result<Opened> {
        let NewSession { session_id, tenant, opening, text } = session;
        let sql = "select ptc_lisp.open_session($1, $2, $3, $4, $5, $6, $7) as outcome";
        let (id, tenant, opening, text) =
            (escape(&session_id), escape(&tenant), opening.as_bytes(), text.as_deref().map(str::as_bytes));
        let (max, max_bytes) = (signed(limits.sessions), signed(limits.bytes));
        let row = only(self.pool.query_again(sql, &[&id, &tenant, &opening, &text, &max, &max_bytes]).await?)?;
        match get::<&str>(&row, "outcome")? {
            "new" => Ok(Opened::New),
            "full" => Ok(Opened::TooMany),
            "exists" => Err(exists("session", &session_id)),
            bytes => Ok(Opened::TooLarge(bytes.parse().unwrap_or(u64::MAX))),
        }
    }

    async fn session_summary(&self, session_id: &str) -> Result<Option<SessionSummary>> {
        let rows = self.pool.query(select_summary!("", "session($1)"), &[&escape(session_id)]).await?;
        rows.first().map(summary).transpose()
    }

    async fn session(&self, session_id: &str) -> Result<Option<StoredSession>> {
        let sql = select_summary!(", opening, text", "session($1)");
        let rows = self.pool.query(sql, &[&escape(session_id)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let saved: Option<Vec<u8>> = get(row, "text")?;
        Ok(Some(StoredSession {
            summary: summary(row)?,
            opening: text("opening", session_id, get(row, "opening")?)?,
            text: saved.map(|saved| text("text", session_id, saved)).transpose()?,
        }))
    }

    async fn begin_turn(&self, tenant: &str, session_id: &str, period: Duration) -> Result<TurnStart> {
        let sql = select_summary!("", "begin_turn($1, $2, $3, $4, $5)");
        let holder = Uuid::new_v4().to_string();
        let (tenant, id) = (escape(tenant), escape(session_id));
        let rows = self.pool.query_again(sql, &[&tenant, &id, &period_ms(period), &holder]).await?;
        let Some(row) = rows.first() else { return Ok(TurnStart::NoSession) };
        if get::<Option<&str>>(row, "session_id")?.is_none() {
            return Ok(TurnStart::Busy);
        }
        let turn = TurnLease { session_id: session_id.into(), epoch: get_count(row, "epoch")? };
        Ok(TurnStart::Started(turn, Box::new(summary(row)?)))
    }

    async fn renew_turn(&self, turn: &TurnLease, period: Duration) -> Result<bool> {
        let sql = "select ptc_lisp.renew_turn($1, $2, $3) as renewed";
        let row = self.one(sql, &[&escape(&turn.session_id), &signed(turn.epoch), &period_ms(period)]).await?;
        get(&row, "renewed")
    }

    async fn put_turn(&self, turn: &TurnLease, text: String, undos: u64, max_bytes: u64) -> Result<Put> {
        match self.finish(turn, "put", (Some(&text), undos, max_bytes)).await {
            Ok(None) => Ok(Put::Lost),
            Ok(Some(row)) => summary(&row).map(Put::Stored),
            Err(Failure::Refused(code, bytes)) if code == TOO_LARGE => {
                Ok(Put::TooLarge(bytes.parse().unwrap_or(u64::MAX)))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    async fn undo_turn(&self, turn: &TurnLease) -> Result<Undo> {
        let Some(row) = self.finish(turn, "undo", (None, 0, 0)).await? else { return Ok(Undo::Lost) };
        match get::<Option<&str>>(&row, "session_id")? {
            None => Ok(Undo::Nothing),
            Some(_) => summary(&row).map(Undo::Done),
        }
    }

    async fn end_turn(&self, turn: &TurnLease) -> Result<()> {
        self.finish(turn, "end", (None, 0, 0)).await?;
        Ok(())
    }

    async fn delete_session(&self, turn: &TurnLease) -> Result<bool> {
        Ok(self.finish(turn, "delete", (None, 0, 0)).await?.is_some())
    }
}
