//! Operations that only read.

use super::super::rules::{call_bytes, digest};
use super::super::{
    EVENT_BYTES, Events, Journal, PAGE_BYTES, Page, Query, RequestKey, Result, RunStatus, RunSummary, StoreError,
    StoredCall, StoredEvent, StoredReply, StoredRun, Submitted, Usage,
};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;

/// Returns a number of the database that is never negative.
pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Returns a number for the database; one that is too large is as good as the largest.
pub(super) fn sql_int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn status_at(row: &Row<'_>, column: usize) -> rusqlite::Result<RunStatus> {
    let name = row.get_ref(column)?.as_str()?;
    RunStatus::of(name).ok_or_else(|| {
        let why = format!("unknown status `{name}`");
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
    })
}

pub(super) fn known_request(db: &Connection, tenant: &str, key: &RequestKey) -> Result<Option<Submitted>> {
    let mut select = db.prepare_cached("SELECT digest = ?3, run_id FROM runs WHERE tenant = ?1 AND key = ?2")?;
    let known = select.query_row([tenant, &key.key, &key.digest], |row| match row.get(0)? {
        true => Ok(Submitted::Known(row.get(1)?)),
        false => Ok(Submitted::OtherRequest),
    });
    Ok(known.optional()?)
}

const SUMMARY: &str = "SELECT run_id, tenant, shown, cancelled, error, created_ms, updated_ms, open FROM runs";

/// Returns a run whose open calls are still to be read, and whether there are any.
fn summary_at(row: &Row<'_>) -> rusqlite::Result<(RunSummary, bool)> {
    let open: i64 = row.get(7)?;
    let summary = RunSummary {
        run_id: row.get(0)?,
        tenant: row.get(1)?,
        status: status_at(row, 2)?,
        cancelled: row.get(3)?,
        error: row.get(4)?,
        created_ms: row.get(5)?,
        updated_ms: row.get(6)?,
        calls: Vec::new(),
    };
    Ok((summary, open > 0))
}

fn calls_of(db: &Connection, run_id: &str) -> Result<Vec<StoredCall>> {
    let mut select = db.prepare_cached(
        "SELECT call, phase, number, tool, arguments, question FROM calls WHERE run_id = ?1 ORDER BY number",
    )?;
    let calls = select.query_map([run_id], |row| {
        Ok(StoredCall {
            call: row.get(0)?,
            phase: row.get(1)?,
            number: count(row.get(2)?),
            tool: row.get(3)?,
            arguments: row.get(4)?,
            question: row.get(5)?,
        })
    })?;
    Ok(calls.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn summary_of(db: &Connection, run_id: &str) -> Result<Option<RunSummary>> {
    let mut select = db.prepare_cached(&format!("{SUMMARY} WHERE run_id = ?1"))?;
    let Some((mut summary, is_open)) = select.query_row([run_id], summary_at).optional()? else { return Ok(None) };
    if is_open {
        summary.calls = calls_of(db, run_id)?;
    }
    Ok(Some(summary))
}

pub(super) fn request_of(db: &Connection, run_id: &str) -> Result<Arc<str>> {
    let mut select = db.prepare_cached("SELECT request FROM requests WHERE run_id = ?1")?;
    Ok(select.query_row([run_id], |row| row.get(0))?)
}

pub(super) fn run(db: &Connection, run_id: &str) -> Result<Option<StoredRun>> {
    let Some(summary) = summary_of(db, run_id)? else { return Ok(None) };
    let request = request_of(db, run_id)?;
    let mut select = db.prepare_cached("SELECT answer FROM answers WHERE run_id = ?1")?;
    let answer = select.query_row([run_id], |row| row.get(0)).optional()?;
    Ok(Some(StoredRun { summary, request, answer }))
}

pub(super) fn journal(db: &Connection, run_id: &str) -> Result<Journal> {
    let mut select = db.prepare_cached("SELECT number, line, digest FROM journal WHERE run_id = ?1 ORDER BY number")?;
    let mut rows = select.query([run_id])?;
    let (mut text, mut lines) = (String::new(), 0);
    while let Some(row) = rows.next()? {
        lines += 1;
        let (number, expected): (i64, i64) = (row.get(0)?, row.get(2)?);
        // Damage may have left something that is not UTF-8.
        match row.get_ref(1)?.as_str() {
            Ok(line) if number == lines && digest(line) == expected => text.push_str(line),
            _ => return Err(damaged(run_id, lines)),
        }
    }
    let mut select = db.prepare_cached("SELECT lines FROM runs WHERE run_id = ?1")?;
    let expected: Option<i64> = select.query_row([run_id], |row| row.get(0)).optional()?;
    if expected.is_some_and(|expected| expected != lines) {
        return Err(damaged(run_id, lines + 1));
    }
    Ok(Journal { text, replies: replies(db, run_id, 0)? })
}

fn damaged(run_id: &str, line: i64) -> StoreError {
    StoreError::Damaged(format!("line {line} of the journal of run {run_id}"))
}

pub(super) fn replies(db: &Connection, run_id: &str, skip: u64) -> Result<Vec<StoredReply>> {
    let mut select =
        db.prepare_cached("SELECT call, phase, body FROM replies WHERE run_id = ?1 AND number > ?2 ORDER BY number")?;
    let replies = select.query_map(params![run_id, sql_int(skip)], |row| {
        Ok(StoredReply { call: row.get(0)?, phase: row.get(1)?, body: row.get(2)? })
    })?;
    Ok(replies.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn events(db: &Connection, run_id: &str, skip: u64) -> Result<Events> {
    let mut select = db.prepare_cached("SELECT status = 'done' FROM runs WHERE run_id = ?1")?;
    let is_done = select.query_row([run_id], |row| row.get(0)).optional()?.unwrap_or(false);
    let mut select =
        db.prepare_cached("SELECT number, kind, data FROM events WHERE run_id = ?1 AND number > ?2 ORDER BY number")?;
    let mut rows = select.query(params![run_id, sql_int(skip)])?;
    let (mut events, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        bytes += row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?.len();
        if bytes > EVENT_BYTES && !events.is_empty() {
            return Ok(Events { events, is_over: false });
        }
        events.push(StoredEvent { number: count(row.get(0)?), kind: row.get(1)?, data: row.get(2)? });
    }
    Ok(Events { events, is_over: is_done })
}

/// Returns the statement that lists runs. Each form has an index that has its order.
pub(super) fn list_sql(has_tenant: bool, has_status: bool) -> String {
    let tenant = if has_tenant { "tenant = ?1 AND" } else { "" };
    let status = if has_status { "shown = ?2 AND" } else { "" };
    format!(
        "{SUMMARY} WHERE {tenant} {status} (created_ms, run_id) < (?3, ?4) ORDER BY created_ms DESC, run_id DESC LIMIT ?5"
    )
}

pub(super) fn list(db: &Connection, query: &Query) -> Result<Page> {
    let mut select = db.prepare_cached(&list_sql(query.tenant.is_some(), query.status.is_some()))?;
    let status = query.status.map(RunStatus::name);
    let (created_ms, run_id) = query.after.as_ref().map_or((i64::MAX, ""), |(ms, run_id)| (*ms, run_id));
    // One more tells whether there are more.
    let limit = i64::try_from(query.max).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = select.query(params![query.tenant, status, created_ms, run_id, limit])?;
    let (mut page, mut bytes) = (Page::default(), 0);
    while let Some(row) = rows.next()? {
        if page.runs.len() == query.max || bytes > PAGE_BYTES {
            page.has_more = true;
            break;
        }
        let (mut run, is_open) = summary_at(row)?;
        if is_open {
            run.calls = calls_of(db, &run.run_id)?;
            bytes += run.calls.iter().map(call_bytes).sum::<usize>();
        }
        page.runs.push(run);
    }
    Ok(page)
}

pub(super) fn usage(db: &Connection, tenant: &str) -> Result<Usage> {
    let mut select = db.prepare_cached("SELECT runs, queued, bytes FROM usage WHERE tenant = ?1")?;
    let usage = select.query_row([tenant], |row| {
        Ok(Usage { runs: count(row.get(0)?), queued: count(row.get(1)?), bytes: count(row.get(2)?) })
    });
    Ok(usage.optional()?.unwrap_or_default())
}

pub(super) fn unfinished(db: &Connection) -> Result<Vec<(RunStatus, u64)>> {
    let mut select = db.prepare_cached("SELECT shown, runs FROM counts")?;
    let rows = select.query_map([], |row| Ok((status_at(row, 0)?, row.get(1)?)))?;
    let found = rows.collect::<rusqlite::Result<Vec<(RunStatus, i64)>>>()?;
    let of = |status| found.iter().find(|(found, _)| *found == status).map_or(0, |(_, runs)| count(*runs));
    let statuses = RunStatus::ALL.into_iter().filter(|status| *status != RunStatus::Done);
    Ok(statuses.map(|status| (status, of(status))).collect())
}
