//! Operations on sessions.

use super::super::clock::millis;
use super::super::rules::exists;
use super::super::{
    NewSession, Opened, Put, Result, SessionLimits, SessionSummary, StoredSession, TurnLease, TurnStart, Undo,
};
use super::reads::{count, sql_int};
use super::writer::Write;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::Duration;

/// Returns the number of a tenant's sessions, and the bytes of their texts.
fn usage(db: &Connection, tenant: &str) -> Result<(u64, u64)> {
    let mut select = db.prepare_cached("SELECT sessions, bytes FROM session_usage WHERE tenant = ?1")?;
    let usage = select.query_row([tenant], |row| Ok((count(row.get(0)?), count(row.get(1)?))));
    Ok(usage.optional()?.unwrap_or_default())
}

pub(super) fn open(write: &Write<'_>, session: &NewSession, limits: SessionLimits) -> Result<Opened> {
    let NewSession { session_id, tenant, opening, text } = session;
    let mut select = write.db.prepare_cached("SELECT 1 FROM sessions WHERE session_id = ?1")?;
    if select.exists([session_id])? {
        return Err(exists("session", session_id));
    }
    let (sessions, others) = usage(write.db, tenant)?;
    if sessions >= limits.sessions {
        return Ok(Opened::TooMany);
    }
    let bytes = (opening.len() + text.as_ref().map_or(0, String::len)) as u64;
    if others + bytes > limits.bytes {
        return Ok(Opened::TooLarge(others + bytes));
    }
    write
        .db
        .prepare_cached(
            "INSERT INTO sessions (session_id, tenant, bytes, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?4)",
        )?
        .execute(params![session_id, tenant, sql_int(bytes), write.wall_ms])?;
    write.db.prepare_cached("INSERT INTO openings VALUES (?1, ?2)")?.execute([session_id, opening])?;
    write.db.prepare_cached("INSERT INTO states VALUES (?1, 0, ?2)")?.execute(params![session_id, text])?;
    Ok(Opened::New)
}

/// The columns of a summary. `octet_length` reads no text.
const SUMMARY: &str = "session_id, tenant, turns, created_ms, updated_ms,
    (SELECT octet_length(text) FROM openings WHERE session_id = ?1)
        + coalesce((SELECT octet_length(text) FROM states WHERE session_id = ?1 ORDER BY number DESC LIMIT 1), 0),
    (SELECT count(*) - 1 FROM states WHERE session_id = ?1)";

fn summary_of(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    Ok(SessionSummary {
        session_id: row.get(0)?,
        tenant: row.get(1)?,
        turns: count(row.get(2)?),
        created_ms: row.get(3)?,
        updated_ms: row.get(4)?,
        bytes: count(row.get(5)?),
        undos: count(row.get(6)?),
    })
}

pub(super) fn summary(db: &Connection, session_id: &str) -> Result<Option<SessionSummary>> {
    let mut select = db.prepare_cached(&format!("SELECT {SUMMARY} FROM sessions WHERE session_id = ?1"))?;
    Ok(select.query_row([session_id], summary_of).optional()?)
}

pub(super) fn session(db: &Connection, session_id: &str) -> Result<Option<StoredSession>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {SUMMARY}, (SELECT text FROM openings WHERE session_id = ?1),
             (SELECT text FROM states WHERE session_id = ?1 ORDER BY number DESC LIMIT 1)
         FROM sessions WHERE session_id = ?1"
    ))?;
    let session = select.query_row([session_id], |row| {
        Ok(StoredSession { summary: summary_of(row)?, opening: row.get(7)?, text: row.get(8)? })
    });
    Ok(session.optional()?)
}

pub(super) fn begin_turn(write: &Write<'_>, tenant: &str, session_id: &str, period: Duration) -> Result<TurnStart> {
    let mut select = write.db.prepare_cached(
        "SELECT epoch, coalesce(turn_until_ms > ?3, 0) FROM sessions WHERE session_id = ?1 AND tenant = ?2",
    )?;
    let found = select.query_row(params![session_id, tenant, write.steady_ms], |row| Ok((row.get(0)?, row.get(1)?)));
    let (epoch, is_busy): (i64, bool) = match found.optional()? {
        Some(found) => found,
        None => return Ok(TurnStart::NoSession),
    };
    if is_busy {
        return Ok(TurnStart::Busy);
    }
    write
        .db
        .prepare_cached("UPDATE sessions SET epoch = ?2, turn_until_ms = ?3 WHERE session_id = ?1")?
        .execute(params![session_id, epoch + 1, write.steady_ms.saturating_add(millis(period))])?;
    let turn = TurnLease { session_id: session_id.into(), epoch: count(epoch + 1) };
    let session = summary(write.db, session_id)?;
    Ok(session.map_or(TurnStart::NoSession, |session| TurnStart::Started(turn, Box::new(session))))
}

/// Whether a session, ?1, is in a turn with an epoch, ?2.
const IN_TURN: &str = "session_id = ?1 AND epoch = ?2 AND turn_until_ms IS NOT NULL";

/// Changes the row of a session, if its turn is valid. Returns whether it is.
fn update(write: &Write<'_>, turn: &TurnLease, columns: &str, value: i64) -> Result<bool> {
    let mut update = write.db.prepare_cached(&format!("UPDATE sessions SET {columns} WHERE {IN_TURN}"))?;
    Ok(update.execute(params![&*turn.session_id, sql_int(turn.epoch), value])? == 1)
}

pub(super) fn renew_turn(write: &Write<'_>, turn: &TurnLease, period: Duration) -> Result<bool> {
    update(write, turn, "turn_until_ms = ?3", write.steady_ms.saturating_add(millis(period)))
}

/// The bytes of the opening of a session, and of its texts from a number on.
const BYTES: &str = "(SELECT octet_length(text) FROM openings WHERE session_id = ?1)
    + coalesce((SELECT sum(octet_length(text)) FROM states WHERE session_id = ?1
    AND number > (SELECT max(number) FROM states WHERE session_id = ?1) - ?2), 0)";

/// Returns what the sessions of a tenant have once this text is stored.
fn bytes_with(write: &Write<'_>, turn: &TurnLease, text: &str, undos: u64) -> Result<u64> {
    let mut select =
        write.db.prepare_cached(&format!("SELECT tenant, bytes, {BYTES} FROM sessions WHERE session_id = ?1"))?;
    let (tenant, before, kept): (String, i64, i64) = select
        .query_row(params![&*turn.session_id, sql_int(undos)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (_, of_tenant) = usage(write.db, &tenant)?;
    Ok(of_tenant + count(kept) + text.len() as u64 - count(before))
}

/// Counts the texts of a session after they have changed.
fn count_bytes(write: &Write<'_>, session_id: &str) -> Result<()> {
    let mut update = write.db.prepare_cached(&format!("UPDATE sessions SET bytes = {BYTES} WHERE session_id = ?1"))?;
    update.execute(params![session_id, i64::MAX])?;
    Ok(())
}

/// Whether the turn has ended this way: the result of the first try may have been lost.
fn has_ended(write: &Write<'_>, turn: &TurnLease, how: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM sessions WHERE session_id = ?1 AND instr(ended || ' ', ' ' || ?2 || ':' || ?3 || ' ') > 0";
    Ok(write.db.prepare_cached(sql)?.exists(params![&*turn.session_id, sql_int(turn.epoch), how])?)
}

/// Ends a turn, and writes down how. `columns` are set as well, to `?3`.
fn end(write: &Write<'_>, turn: &TurnLease, how: &str, columns: &str) -> Result<bool> {
    /// The length of what is kept of the turns that ended.
    const KEPT: usize = 4_000;
    let ended = format!("substr(' ' || ?2 || ':{how}' || coalesce(ended, ''), 1, {KEPT})");
    update(write, turn, &format!("turn_until_ms = nullif(?3, ?3), ended = {ended}{columns}"), write.wall_ms)
}

pub(super) fn put_turn(write: &Write<'_>, turn: &TurnLease, text: &str, undos: u64, max_bytes: u64) -> Result<Put> {
    if has_ended(write, turn, "put")? {
        return Ok(summary(write.db, &turn.session_id)?.map_or(Put::Lost, Put::Stored));
    }
    let mut select = write.db.prepare_cached(&format!("SELECT 1 FROM sessions WHERE {IN_TURN}"))?;
    if !select.exists(params![&*turn.session_id, sql_int(turn.epoch)])? {
        return Ok(Put::Lost);
    }
    let bytes = bytes_with(write, turn, text, undos)?;
    if bytes > max_bytes {
        return Ok(Put::TooLarge(bytes));
    }
    end(write, turn, "put", ", turns = turns + 1, updated_ms = ?3")?;
    write
        .db
        .prepare_cached(
            "INSERT INTO states (session_id, number, text)
             SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM states WHERE session_id = ?1",
        )?
        .execute([&*turn.session_id, text])?;
    write
        .db
        .prepare_cached(
            "DELETE FROM states WHERE session_id = ?1
             AND number < (SELECT max(number) FROM states WHERE session_id = ?1) - ?2",
        )?
        .execute(params![&*turn.session_id, sql_int(undos)])?;
    count_bytes(write, &turn.session_id)?;
    Ok(summary(write.db, &turn.session_id)?.map_or(Put::Lost, Put::Stored))
}

pub(super) fn undo_turn(write: &Write<'_>, turn: &TurnLease) -> Result<Undo> {
    if has_ended(write, turn, "undo")? {
        return Ok(summary(write.db, &turn.session_id)?.map_or(Undo::Lost, Undo::Done));
    } else if has_ended(write, turn, "nothing")? {
        return Ok(Undo::Nothing);
    }
    let mut select = write.db.prepare_cached("SELECT count(*) FROM states WHERE session_id = ?1")?;
    let states: i64 = select.query_row([&*turn.session_id], |row| row.get(0))?;
    if states < 2 {
        return Ok(if end(write, turn, "nothing", "")? { Undo::Nothing } else { Undo::Lost });
    }
    if !end(write, turn, "undo", ", turns = max(turns - 1, 0), updated_ms = ?3")? {
        return Ok(Undo::Lost);
    }
    write
        .db
        .prepare_cached(
            "DELETE FROM states WHERE session_id = ?1
             AND number = (SELECT max(number) FROM states WHERE session_id = ?1)",
        )?
        .execute([&*turn.session_id])?;
    count_bytes(write, &turn.session_id)?;
    Ok(summary(write.db, &turn.session_id)?.map_or(Undo::Lost, Undo::Done))
}

pub(super) fn end_turn(write: &Write<'_>, turn: &TurnLease) -> Result<()> {
    // The number is of no use here.
    update(write, turn, "turn_until_ms = nullif(?3, ?3)", 0).map(drop)
}

pub(super) fn delete_session(write: &Write<'_>, turn: &TurnLease) -> Result<bool> {
    let mut delete = write
        .db
        .prepare_cached("DELETE FROM sessions WHERE session_id = ?1 AND epoch = ?2 AND turn_until_ms IS NOT NULL")?;
    Ok(delete.execute(params![&*turn.session_id, sql_int(turn.epoch)])? == 1)
}
