//! Operations that write runs.

use super::super::clock::millis;
use super::super::rules::{PRINT, digest, end_name, events_out_of_order, exists, has_news, known};
use super::super::{
    Batch, Claim, End, Ended, Lease, NewRun, News, Renewed, Replied, RequestKey, Result, Room, RunStatus, StoreError,
    StoredReply, StoredRun, Submitted,
};
use super::reads::{count, known_request, request_of, sql_int, status_at, summary_of};
use super::writer::Write;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The row of a run, without what never changes.
struct Row {
    status: RunStatus,
    cancelled: bool,
    error: Option<String>,
    ready_ms: i64,
    epoch: i64,
    worker: Option<String>,
    ended: Option<(i64, String)>,
    faults: i64,
    lines: i64,
    events: i64,
    printed: i64,
    opened: i64,
    open: i64,
    replies: i64,
    bytes: i64,
}

impl Row {
    fn of(write: &Write<'_>, run_id: &str) -> Result<Option<Row>> {
        let mut select = write.db.prepare_cached(
            "SELECT status, cancelled, error, ready_ms, epoch, ended_epoch, ended, faults,
                 lines, events, printed, opened, open, replies, bytes, worker
             FROM runs WHERE run_id = ?1",
        )?;
        let row = select.query_row([run_id], |row| {
            let ended: Option<i64> = row.get(5)?;
            Ok(Row {
                status: status_at(row, 0)?,
                cancelled: row.get(1)?,
                error: row.get(2)?,
                ready_ms: row.get(3)?,
                epoch: row.get(4)?,
                ended: ended.zip(row.get(6)?),
                faults: row.get(7)?,
                lines: row.get(8)?,
                events: row.get(9)?,
                printed: row.get(10)?,
                opened: row.get(11)?,
                open: row.get(12)?,
                replies: row.get(13)?,
                bytes: row.get(14)?,
                worker: row.get(15)?,
            })
        });
        Ok(row.optional()?)
    }

    /// Returns the row of a lease that is valid.
    fn leased(write: &Write<'_>, lease: &Lease) -> Result<Row> {
        let row = Row::of(write, &lease.run_id)?.ok_or(StoreError::LeaseLost)?;
        let is_valid = row.status == RunStatus::Running && count(row.epoch) == lease.epoch;
        if is_valid { Ok(row) } else { Err(StoreError::LeaseLost) }
    }

    /// Writes all columns.
    fn save(&self, write: &Write<'_>, run_id: &str) -> Result<()> {
        let (ended_epoch, ended) = self.ended.as_ref().map(|(epoch, how)| (*epoch, how.as_str())).unzip();
        write
            .db
            .prepare_cached(
                "UPDATE runs SET updated_ms = ?2, status = ?3, cancelled = ?4, error = ?5, ready_ms = ?6, epoch = ?7,
                     ended_epoch = ?8, ended = ?9, faults = ?10, lines = ?11, events = ?12, printed = ?13, opened = ?14,
                     open = ?15, replies = ?16, bytes = ?17, worker = ?18
                 WHERE run_id = ?1",
            )?
            .execute(params![
                run_id,
                write.wall_ms,
                self.status.name(),
                self.cancelled,
                self.error,
                self.ready_ms,
                self.epoch,
                ended_epoch,
                ended,
                self.faults,
                self.lines,
                self.events,
                self.printed,
                self.opened,
                self.open,
                self.replies,
                self.bytes,
                self.worker,
            ])?;
        Ok(())
    }

    /// Writes the columns that change with each batch. They are in no index of runs that are not done.
    fn save_counts(&self, write: &Write<'_>, run_id: &str) -> Result<()> {
        write
            .db
            .prepare_cached(
                "UPDATE runs SET updated_ms = ?2, faults = ?3, lines = ?4, events = ?5, printed = ?6, bytes = ?7
                 WHERE run_id = ?1",
            )?
            .execute(params![run_id, write.wall_ms, self.faults, self.lines, self.events, self.printed, self.bytes])?;
        Ok(())
    }

    /// Queues a run that is suspended or stuck.
    fn queue(&mut self, ready_ms: i64) {
        if self.status == RunStatus::Stuck {
            self.error = None;
            self.faults = 0;
        }
        self.status = RunStatus::Queued;
        self.ready_ms = ready_ms;
    }

    fn write(&mut self, write: &Write<'_>, run_id: &str, batch: &Batch) -> Result<()> {
        self.write_lines(write, run_id, batch)?;
        self.write_events(write, run_id, batch)?;
        let mut open = write.db.prepare_cached(
            "INSERT INTO calls SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
             WHERE NOT EXISTS (SELECT 1 FROM replies WHERE run_id = ?1 AND call = ?2 AND phase = ?3)
             ON CONFLICT DO NOTHING",
        )?;
        for call in &batch.opened {
            let (number, tool, arguments) = (self.opened + 1, &call.tool, &call.arguments);
            let opened =
                open.execute(params![run_id, call.call, call.phase, number, tool, arguments, call.question])?;
            if opened == 1 {
                self.opened += 1;
                self.open += 1;
            }
        }
        let mut close = write.db.prepare_cached("DELETE FROM calls WHERE run_id = ?1 AND call = ?2 AND phase = ?3")?;
        for (call, phase) in &batch.closed {
            if close.execute([run_id, call, phase])? == 1 {
                self.open -= 1;
            }
        }
        Ok(())
    }

    fn write_lines(&mut self, write: &Write<'_>, run_id: &str, batch: &Batch) -> Result<()> {
        let Batch { first_line, lines, .. } = batch;
        let out_of_order = StoreError::OutOfOrder { stored: count(self.lines), written: *first_line };
        let Some(old) = known(count(self.lines), *first_line, lines.len()) else { return Err(out_of_order) };
        for (number, line) in (sql_int(*first_line)..).zip(&lines[..old]) {
            let mut select =
                write.db.prepare_cached("SELECT line = ?3 FROM journal WHERE run_id = ?1 AND number = ?2")?;
            if !select.query_row(params![run_id, number, line], |row| row.get(0))? {
                return Err(out_of_order);
            }
        }
        let mut insert = write.db.prepare_cached("INSERT INTO journal VALUES (?1, ?2, ?3, ?4)")?;
        for line in &lines[old..] {
            self.lines += 1;
            insert.execute(params![run_id, self.lines, line, digest(line)])?;
            self.bytes = self.bytes.saturating_add(length(line));
            self.faults = 0;
        }
        Ok(())
    }

    fn write_events(&mut self, write: &Write<'_>, run_id: &str, batch: &Batch) -> Result<()> {
        let (stored, first) = (count(self.events), batch.first_event);
        let Some(old) = known(stored, first, batch.events.len()) else {
            return Err(events_out_of_order(run_id, stored, first));
        };
        let mut insert = write.db.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, ?4)")?;
        for (kind, data) in &batch.events[old..] {
            self.events += 1;
            self.printed += i64::from(*kind == PRINT);
            insert.execute(params![run_id, self.events, kind, &**data])?;
        }
        Ok(())
    }
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

fn send_queued(write: &mut Write<'_>, run_id: &str) {
    write.news.push(News::Queued);
    write.news.push(News::Changed(run_id.into()));
}

/// Sends that a run has a reply or was cancelled.
fn send_replied(write: &mut Write<'_>, run_id: &str, was: RunStatus) {
    match was {
        RunStatus::Waiting | RunStatus::Stuck => return send_queued(write, run_id),
        RunStatus::Running => write.news.push(News::Replied(run_id.into())),
        RunStatus::Queued | RunStatus::Done => {}
    }
    write.news.push(News::Changed(run_id.into()));
}

pub(super) fn submit(write: &mut Write<'_>, run: &NewRun, key: Option<&RequestKey>) -> Result<Submitted> {
    if let Some(key) = key
        && let Some(known) = known_request(write.db, &run.tenant, key)?
    {
        return Ok(known);
    }
    let NewRun { run_id, tenant, request } = run;
    let (key, digest) = key.map(|key| (&key.key, &key.digest)).unzip();
    let inserted = write
        .db
        .prepare_cached(
            "INSERT INTO runs (run_id, tenant, key, digest, status, created_ms, updated_ms, ready_ms, bytes)
             VALUES (?1, ?2, ?3, ?4, 'queued', ?5, ?5, ?6, ?7) ON CONFLICT (run_id) DO NOTHING",
        )?
        .execute(params![run_id, tenant, key, digest, write.wall_ms, write.steady_ms, length(request)])?;
    if inserted == 0 {
        return Err(exists("run", run_id));
    }
    write.db.prepare_cached("INSERT INTO requests VALUES (?1, ?2)")?.execute([run_id, request])?;
    send_queued(write, run_id);
    Ok(Submitted::New)
}

pub(super) fn claimable(db: &Connection, tenants: &[String], now: i64, max: usize) -> Result<Vec<usize>> {
    let mut select = db.prepare_cached(&format!("SELECT count(*) FROM ({CLAIMABLE})"))?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let of = |tenant: &String| select.query_row(params![tenant, now, max], |row| row.get::<_, i64>(0));
    let numbers = tenants.iter().map(of).collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(numbers.into_iter().map(|number| usize::try_from(number).unwrap_or(0)).collect())
}

pub(super) fn claim(write: &mut Write<'_>, worker: &str, period: Duration, room: &Room) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for run_id in picked(write, room)? {
        let Some(mut row) = Row::of(write, &run_id)? else { continue };
        if row.status == RunStatus::Running {
            row.faults += 1;
        }
        row.status = RunStatus::Running;
        row.epoch += 1;
        row.ready_ms = write.steady_ms.saturating_add(millis(period));
        row.worker = Some(worker.to_owned());
        row.save(write, &run_id)?;
        let Some(mut summary) = summary_of(write.db, &run_id)? else { continue };
        summary.status = RunStatus::Running;
        let run = StoredRun { summary, request: request_of(write.db, &run_id)?, answer: None };
        claims.push(Claim {
            lease: Lease { run_id, epoch: count(row.epoch) },
            run,
            lines: count(row.lines),
            events: count(row.events),
            printed: count(row.printed),
            faults: u32::try_from(row.faults).unwrap_or(u32::MAX),
        });
    }
    Ok(claims)
}

/// Picks the runs to claim: by turns of the tenants, the oldest of each first.
fn picked(write: &Write<'_>, room: &Room) -> Result<Vec<Arc<str>>> {
    let mut select = write.db.prepare_cached(CLAIMABLE)?;
    let mut oldest: HashMap<&str, VecDeque<Arc<str>>> = HashMap::new();
    for (tenant, _) in &room.tenants {
        if !oldest.contains_key(&**tenant) {
            let max = i64::try_from(room.slots).unwrap_or(i64::MAX);
            let rows = select.query_map(params![tenant, write.steady_ms, max], |row| row.get(0))?;
            oldest.insert(tenant, rows.collect::<rusqlite::Result<_>>()?);
        }
    }
    let mut left: Vec<(&str, usize)> = room.tenants.iter().map(|(tenant, max)| (&**tenant, *max)).collect();
    let mut picked = Vec::new();
    while picked.len() < room.slots {
        let before = picked.len();
        for (tenant, left) in left.iter_mut().filter(|(_, left)| *left > 0) {
            let next = oldest.get_mut(tenant).and_then(VecDeque::pop_front);
            if picked.len() < room.slots
                && let Some(run_id) = next
            {
                picked.push(run_id);
                *left -= 1;
            }
        }
        if picked.len() == before {
            break;
        }
    }
    Ok(picked)
}

/// The condition on the status is that of the index.
pub(super) const CLAIMABLE: &str = "SELECT run_id FROM runs
     WHERE tenant = ?1 AND ready_ms <= ?2 AND status IN ('queued', 'running') ORDER BY ready_ms, run_id LIMIT ?3";

pub(super) fn renew(write: &mut Write<'_>, leases: &[Lease], period: Duration) -> Result<Vec<Renewed>> {
    let until = write.steady_ms.saturating_add(millis(period));
    let mut update = write.db.prepare_cached(
        "UPDATE runs SET ready_ms = ?3 WHERE run_id = ?1 AND epoch = ?2 AND status = 'running'
         RETURNING cancelled, replies",
    )?;
    let renewed = leases.iter().map(|lease| {
        let epoch = sql_int(lease.epoch);
        let held = update.query_row(params![&*lease.run_id, epoch, until], |row| {
            Ok(Renewed::Held { cancelled: row.get(0)?, replies: count(row.get(1)?) })
        });
        Ok(held.optional()?.unwrap_or(Renewed::Lost))
    });
    renewed.collect()
}

pub(super) fn write(write: &mut Write<'_>, lease: &Lease, batch: &Batch) -> Result<()> {
    let mut row = Row::leased(write, lease)?;
    if batch.is_empty() {
        return Ok(());
    }
    let open = row.open;
    row.write(write, &lease.run_id, batch)?;
    match open == row.open && batch.opened.is_empty() {
        true => row.save_counts(write, &lease.run_id)?,
        false => row.save(write, &lease.run_id)?,
    }
    if !(batch.events.is_empty() && batch.opened.is_empty() && batch.closed.is_empty()) {
        write.news.push(News::Changed(lease.run_id.clone()));
    }
    Ok(())
}

pub(super) fn end(write: &mut Write<'_>, lease: &Lease, batch: &Batch, end: &End) -> Result<Ended> {
    let run_id = &*lease.run_id;
    let how = end_name(end);
    let row = Row::of(write, run_id)?;
    let is_repeated =
        row.is_some_and(|row| row.ended.is_some_and(|(epoch, was)| count(epoch) == lease.epoch && was == how));
    if is_repeated {
        return Ok(Ended::Ended);
    }
    let mut row = Row::leased(write, lease)?;
    row.write(write, run_id, batch)?;
    if has_news(end, row.cancelled, count(row.replies)) {
        if !batch.is_empty() {
            row.save(write, run_id)?;
        }
        write.news.push(News::Changed(lease.run_id.clone()));
        return Ok(Ended::News);
    }
    match end {
        End::Done(answer) => {
            row.status = RunStatus::Done;
            row.open = 0;
            row.bytes = row.bytes.saturating_add(length(answer));
            write.db.prepare_cached("INSERT INTO answers VALUES (?1, ?2)")?.execute([run_id, &**answer])?;
            write.db.prepare_cached("DELETE FROM calls WHERE run_id = ?1")?.execute([run_id])?;
        }
        End::Suspended(_) if row.open == 0 => row.queue(write.steady_ms),
        End::Suspended(_) => row.status = RunStatus::Waiting,
        End::Requeued { after, is_fault } => {
            row.queue(write.steady_ms.saturating_add(millis(*after)));
            row.faults += i64::from(*is_fault);
        }
        End::Stuck(why) => {
            row.status = RunStatus::Stuck;
            row.error = Some(why.clone());
        }
    }
    row.ended = Some((row.epoch, how.to_owned()));
    row.save(write, run_id)?;
    match row.status {
        RunStatus::Queued => send_queued(write, run_id),
        _ => write.news.push(News::Changed(lease.run_id.clone())),
    }
    Ok(Ended::Ended)
}

pub(super) fn reply(write: &mut Write<'_>, run_id: &str, reply: &StoredReply) -> Result<Replied> {
    let StoredReply { call, phase, body } = reply;
    let Some(mut row) = Row::of(write, run_id)? else { return Ok(Replied::NoRun) };
    let mut select =
        write.db.prepare_cached("SELECT body = ?4 FROM replies WHERE run_id = ?1 AND call = ?2 AND phase = ?3")?;
    let is_same: Option<bool> = select.query_row([run_id, call, phase, body], |row| row.get(0)).optional()?;
    if let Some(is_same) = is_same {
        return Ok(if is_same { Replied::Repeated } else { Replied::Answered });
    }
    let was = row.status;
    if matches!(was, RunStatus::Stuck | RunStatus::Done) {
        return Ok(Replied::Over(was));
    }
    if row.cancelled {
        return Ok(Replied::Cancelled);
    }
    let mut close = write.db.prepare_cached("DELETE FROM calls WHERE run_id = ?1 AND call = ?2 AND phase = ?3")?;
    if close.execute([run_id, call, phase])? == 0 {
        return Ok(Replied::NoCall);
    }
    row.open -= 1;
    row.replies += 1;
    write.db.prepare_cached("INSERT INTO replies VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
        run_id,
        call,
        phase,
        row.replies,
        body
    ])?;
    if was == RunStatus::Waiting {
        row.queue(write.steady_ms);
    }
    row.save(write, run_id)?;
    send_replied(write, run_id, was);
    Ok(Replied::Taken)
}

pub(super) fn cancel(write: &mut Write<'_>, run_id: &str) -> Result<bool> {
    let Some(mut row) = Row::of(write, run_id)? else { return Ok(false) };
    let was = row.status;
    if was == RunStatus::Done {
        return Ok(true);
    }
    row.cancelled = true;
    if matches!(was, RunStatus::Waiting | RunStatus::Stuck) {
        row.queue(write.steady_ms);
    }
    row.save(write, run_id)?;
    send_replied(write, run_id, was);
    Ok(true)
}

pub(super) fn retry(write: &mut Write<'_>, run_id: &str) -> Result<bool> {
    let Some(mut row) = Row::of(write, run_id)?.filter(|row| row.status == RunStatus::Stuck) else {
        return Ok(false);
    };
    row.queue(write.steady_ms);
    row.save(write, run_id)?;
    send_queued(write, run_id);
    Ok(true)
}
