//! Runs and their journals.

use super::super::rules::{end_name, events_out_of_order, known};
use super::super::{
    Batch, Claim, EVENT_BYTES, End, Ended, Events, Journal, Lease, NewRun, News, PAGE_BYTES, Page, Query, Renewed,
    Replied, RequestKey, Result, Room, RunStatus, RunStore, StoreError, StoredEvent, StoredReply, StoredRun, Submitted,
    Usage,
};
use super::pool::Failure;
use super::rows::{self, digest, status, summary};
use super::text::{escape, text, unescape};
use super::{PostgresStore, SWEEP, exists, get, get_count, only, period_ms, signed};
use async_trait::async_trait;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// The code with which the database refuses lines that do not follow those that are stored. The text is their number.
const LINES: &str = "PT001";
/// The same for events.
const EVENTS: &str = "PT002";

/// A batch as parameters of a function.
struct BatchParams<'a> {
    is_empty: bool,
    first_line: i64,
    lines: i64,
    text: Vec<u8>,
    digest: Vec<u8>,
    first_event: i64,
    kinds: Vec<&'a str>,
    data: Vec<&'a [u8]>,
    calls: Vec<Cow<'a, str>>,
    phases: Vec<Cow<'a, str>>,
    tools: Vec<Cow<'a, str>>,
    arguments: Vec<&'a [u8]>,
    questions: Vec<Option<&'a [u8]>>,
    closed_calls: Vec<Cow<'a, str>>,
    closed_phases: Vec<Cow<'a, str>>,
}

impl<'a> BatchParams<'a> {
    fn new(run_id: &str, batch: &'a Batch, is_empty: bool) -> Self {
        let text = batch.lines.concat().into_bytes();
        let mut names = HashSet::new();
        let opened: Vec<_> = batch.opened.iter().filter(|call| names.insert((&call.call, &call.phase))).collect();
        BatchParams {
            is_empty,
            first_line: signed(batch.first_line),
            lines: signed(batch.lines.len() as u64),
            digest: digest(run_id, batch.first_line, &text),
            text,
            first_event: signed(batch.first_event),
            kinds: batch.events.iter().map(|(kind, _)| *kind).collect(),
            data: batch.events.iter().map(|(_, data)| data.as_bytes()).collect(),
            calls: opened.iter().map(|call| escape(&call.call)).collect(),
            phases: opened.iter().map(|call| escape(&call.phase)).collect(),
            tools: opened.iter().map(|call| escape(&call.tool)).collect(),
            arguments: opened.iter().map(|call| call.arguments.as_bytes()).collect(),
            questions: opened.iter().map(|call| call.question.as_deref().map(str::as_bytes)).collect(),
            closed_calls: batch.closed.iter().map(|(call, _)| escape(call)).collect(),
            closed_phases: batch.closed.iter().map(|(_, phase)| escape(phase)).collect(),
        }
    }

    /// Returns the parameters after others.
    fn after<'p>(&'p self, mut params: Vec<&'p (dyn ToSql + Sync)>) -> Vec<&'p (dyn ToSql + Sync)> {
        params.extend([&self.is_empty as &(dyn ToSql + Sync), &self.first_line, &self.lines, &self.text, &self.digest]);
        params.extend([&self.first_event as &(dyn ToSql + Sync), &self.kinds, &self.data]);
        params.extend([
            &self.calls as &(dyn ToSql + Sync),
            &self.phases,
            &self.tools,
            &self.arguments,
            &self.questions,
        ]);
        params.extend([&self.closed_calls as &(dyn ToSql + Sync), &self.closed_phases]);
        params
    }
}

impl PostgresStore {
    fn queued(&self, run_id: &str) {
        self.notices.send(News::Queued);
        self.notices.send(News::Changed(run_id.into()));
    }

    /// Sends the news of a reply or a cancellation. The run had this status.
    fn replied(&self, run_id: &str, was: RunStatus) {
        match was {
            RunStatus::Waiting | RunStatus::Stuck => self.queued(run_id),
            RunStatus::Running => {
                self.notices.send(News::Replied(run_id.into()));
                self.notices.send(News::Changed(run_id.into()));
            }
            RunStatus::Queued | RunStatus::Done => self.notices.send(News::Changed(run_id.into())),
        }
    }

    /// Returns what the database calls to write a batch, after a batch did not follow what is stored: the part of it that is
    /// not stored yet. It is not if it differs.
    async fn rest(&self, lease: &Lease, mut batch: Batch, stored: u64) -> Result<Batch> {
        let out_of_order = StoreError::OutOfOrder { stored, written: batch.first_line };
        let Some(old) = known(stored, batch.first_line, batch.lines.len()) else { return Err(out_of_order) };
        let text = self.journal(&lease.run_id).await?.text;
        let skip = usize::try_from(batch.first_line - 1).unwrap_or(usize::MAX);
        let stored_lines = text.split_inclusive('\n').skip(skip);
        if !stored_lines.take(old).eq(batch.lines.iter().take(old)) {
            return Err(out_of_order);
        }
        batch.first_line += old as u64;
        batch.lines.drain(..old);
        Ok(batch)
    }

    /// Calls a function that writes a batch. The parameters are those before the batch.
    async fn put(
        &self,
        sql: &'static str,
        lease: &Lease,
        mut batch: Batch,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Row> {
        let is_empty = batch.is_empty();
        // At the second try nobody but the owner of the lease can have added lines.
        for is_last in [false, true] {
            let parts = BatchParams::new(&lease.run_id, &batch, is_empty);
            let error = match self.pool.query(sql, &parts.after(params.to_vec())).await {
                Ok(rows) => return only(rows),
                Err(error) => error,
            };
            drop(parts);
            batch = match &error {
                Failure::Refused(code, stored) if code == LINES && !is_last => {
                    self.rest(lease, batch, stored.parse().unwrap_or(0)).await?
                }
                Failure::Refused(code, stored) if code == EVENTS => {
                    return Err(events_out_of_order(&lease.run_id, stored.parse().unwrap_or(0), batch.first_event));
                }
                _ => return Err(error.into()),
            };
        }
        Err(StoreError::LeaseLost)
    }

    /// Cancels runs that were submitted before a time.
    pub(super) async fn cancel_old(&self, before: i64) -> Result<()> {
        let sql = "
            select first.run_id
                from (select distinct tenant from ptc_lisp.usage) as known
                    cross join unnest(array['queued', 'running', 'waiting', 'stuck']) as wanted
                    cross join lateral (
                        select run_id from ptc_lisp.runs
                            where tenant = known.tenant and shown = wanted and created_ms < $1 and not cancelled
                            order by created_ms, run_id limit $2::bigint
                    ) as first";
        loop {
            let old = self.pool.query(sql, &[&before, &i64::from(SWEEP)]).await?;
            if old.is_empty() {
                return Ok(());
            }
            for row in old {
                self.cancel(&unescape(get(&row, "run_id")?)).await?;
            }
        }
    }
}

#[async_trait]
impl RunStore for PostgresStore {
    async fn submit(&self, run: NewRun, key: Option<RequestKey>) -> Result<Submitted> {
        let NewRun { run_id, tenant, request } = run;
        let sql = "select * from ptc_lisp.submit($1, $2, $3, $4, $5, $6)";
        let (id, tenant, request) = (escape(&run_id), escape(&tenant), request.as_bytes());
        let (key, digest) = match &key {
            Some(RequestKey { key, digest }) => (Some(escape(key)), Some(escape(digest))),
            None => (None, None),
        };
        let row = only(self.pool.query_again(sql, &[&id, &tenant, &request, &key, &digest]).await?)?;
        match get::<&str>(&row, "outcome")? {
            "new" => {
                self.queued(&run_id);
                Ok(Submitted::New)
            }
            "known" => Ok(Submitted::Known(unescape(get(&row, "known")?))),
            "other" => Ok(Submitted::OtherRequest),
            _ => Err(exists("run", &run_id)),
        }
    }

    async fn known_request(&self, tenant: &str, key: RequestKey) -> Result<Option<Submitted>> {
        let sql = "select run_id, digest from ptc_lisp.runs where tenant = $1 and key = $2";
        let rows = self.pool.query(sql, &[&escape(tenant), &escape(&key.key)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(match unescape(get(row, "digest")?) == key.digest {
            true => Submitted::Known(unescape(get(row, "run_id")?)),
            false => Submitted::OtherRequest,
        }))
    }

    async fn claimable(&self, tenants: &[String], max: usize) -> Result<Vec<usize>> {
        let tenants: Vec<_> = tenants.iter().map(|tenant| escape(tenant)).collect();
        let sql = "
            select first.number from unnest($1::text[]) with ordinality as listed (tenant, place)
                cross join lateral (
                    select count(*) as number from (
                        select from ptc_lisp.runs
                            where status in ('queued', 'running') and runs.tenant = listed.tenant
                                and due_ms <= ptc_lisp.now_ms()
                            limit $2
                    ) as some_of_them
                ) as first
                order by place";
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let rows = self.pool.query(sql, &[&tenants, &max]).await?;
        let number = |row| Ok(usize::try_from(get_count(row, "number")?).unwrap_or(usize::MAX));
        rows.iter().map(number).collect()
    }

    async fn claim(&self, worker: &str, period: Duration, room: &Room) -> Result<Vec<Claim>> {
        let small = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        // Tells this call from others of the worker, if it has to be tried again.
        let holder = format!("{}/{}", escape(worker), Uuid::new_v4());
        let tenants: Vec<_> = room.tenants.iter().map(|(tenant, _)| escape(tenant)).collect();
        let maxima: Vec<i32> = room.tenants.iter().map(|(_, max)| small(*max)).collect();
        let sql = "select * from ptc_lisp.claim($1, $2, $3, $4, $5, $6)";
        let rows =
            self.pool.query_again(sql, &[&holder, &period_ms(period), &small(room.slots), &tenants, &maxima]).await?;
        rows.iter().map(rows::claim).collect()
    }

    async fn renew(&self, leases: &[Lease], period: Duration) -> Result<Vec<Renewed>> {
        let runs: Vec<_> = leases.iter().map(|lease| escape(&lease.run_id)).collect();
        let epochs: Vec<_> = leases.iter().map(|lease| signed(lease.epoch)).collect();
        let rows =
            self.pool.query("select * from ptc_lisp.renew($1, $2, $3)", &[&runs, &epochs, &period_ms(period)]).await?;
        let mut held = HashMap::new();
        for row in &rows {
            let state = Renewed::Held { cancelled: get(row, "cancelled")?, replies: get_count(row, "replies")? };
            held.insert((unescape(get(row, "run_id")?), get_count(row, "epoch")?), state);
        }
        let state = |lease: &Lease| held.get(&(lease.run_id.to_string(), lease.epoch)).copied();
        Ok(leases.iter().map(|lease| state(lease).unwrap_or(Renewed::Lost)).collect())
    }

    async fn journal(&self, run_id: &str) -> Result<Journal> {
        let sql = "
            select 'lines' as part, first as number, last, text as body, digest, null as call, null as phase
                from ptc_lisp.lines where run_id = $1
            union all select 'reply', number, null, body, null, call, phase from ptc_lisp.replies where run_id = $1
            union all select 'run', lines, null, null, null, null, null from ptc_lisp.runs where run_id = $1
            order by part, number";
        rows::journal(run_id, &self.pool.query(sql, &[&escape(run_id)]).await?)
    }

    async fn replies(&self, run_id: &str, skip: u64) -> Result<Vec<StoredReply>> {
        let sql = "select call, phase, body from ptc_lisp.replies where run_id = $1 and number > $2 order by number";
        let rows = self.pool.query(sql, &[&escape(run_id), &signed(skip)]).await?;
        rows.iter().map(|row| rows::reply(run_id, row)).collect()
    }

    async fn write(&self, lease: &Lease, batch: Batch) -> Result<()> {
        let is_seen = !(batch.events.is_empty() && batch.opened.is_empty() && batch.closed.is_empty());
        let sql = "select ptc_lisp.write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) as written";
        let (run_id, epoch) = (escape(&lease.run_id), signed(lease.epoch));
        let row = self.put(sql, lease, batch, &[&run_id, &epoch]).await?;
        if !get::<bool>(&row, "written")? {
            return Err(StoreError::LeaseLost);
        }
        if is_seen {
            self.notices.send(News::Changed(lease.run_id.clone()));
        }
        Ok(())
    }

    async fn end(&self, lease: &Lease, batch: Batch, end: End) -> Result<Ended> {
        let sql = "select ptc_lisp.end_attempt($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
                   $18, $19, $20, $21, $22, $23) as outcome";
        let name = end_name(&end);
        let (seen, after, is_fault, error, answer) = match &end {
            End::Done(answer) => (0, 0, false, None, Some(answer.as_bytes())),
            End::Suspended(seen) => (signed(*seen), 0, false, None, None),
            End::Requeued { after, is_fault } => (0, period_ms(*after), *is_fault, None, None),
            End::Stuck(why) => (0, 0, false, Some(escape(why)), None),
        };
        let (run_id, epoch) = (escape(&lease.run_id), signed(lease.epoch));
        let params: [&(dyn ToSql + Sync); 8] = [&run_id, &epoch, &name, &seen, &after, &is_fault, &error, &answer];
        let row = self.put(sql, lease, batch, &params).await?;
        let ended = match get::<&str>(&row, "outcome")? {
            "lost" => return Err(StoreError::LeaseLost),
            // The notices of the first time may be lost.
            "queued" | "ended" => {
                self.queued(&lease.run_id);
                return Ok(Ended::Ended);
            }
            "news" => Ended::News,
            _ => Ended::Ended,
        };
        self.notices.send(News::Changed(lease.run_id.clone()));
        Ok(ended)
    }

    async fn reply(&self, run_id: &str, reply: StoredReply) -> Result<Replied> {
        let StoredReply { call, phase, body } = reply;
        let sql = "select * from ptc_lisp.reply($1, $2, $3, $4, $5)";
        let (id, call, phase) = (escape(run_id), escape(&call), escape(&phase));
        let row = only(self.pool.query_again(sql, &[&id, &call, &phase, &body.as_bytes()]).await?)?;
        let was = get::<Option<&str>>(&row, "was")?.map_or(Ok(RunStatus::Done), status)?;
        Ok(match get::<&str>(&row, "outcome")? {
            "taken" => {
                self.replied(run_id, was);
                Replied::Taken
            }
            "repeated" => Replied::Repeated,
            "answered" => Replied::Answered,
            "no call" => Replied::NoCall,
            "over" => Replied::Over(was),
            "cancelled" => Replied::Cancelled,
            _ => Replied::NoRun,
        })
    }

    async fn cancel(&self, run_id: &str) -> Result<bool> {
        let row = self.one("select ptc_lisp.cancel($1) as was", &[&escape(run_id)]).await?;
        let Some(was) = get::<Option<&str>>(&row, "was")? else { return Ok(false) };
        let was = status(was)?;
        if was != RunStatus::Done {
            self.replied(run_id, was);
        }
        Ok(true)
    }

    async fn retry(&self, run_id: &str) -> Result<bool> {
        let holder = Uuid::new_v4().to_string();
        let sql = "select ptc_lisp.retry($1, $2, $3) as queued";
        let row = only(self.pool.query_again(sql, &[&escape(run_id), &holder]).await?)?;
        let is_queued = get(&row, "queued")?;
        if is_queued {
            self.queued(run_id);
        }
        Ok(is_queued)
    }

    async fn run(&self, run_id: &str) -> Result<Option<StoredRun>> {
        let sql = "
            select run.run_id, tenant, shown, cancelled, error, created_ms, updated_ms, request, answer, open_calls.*
                from ptc_lisp.runs as run
                    join ptc_lisp.requests using (run_id)
                    left join ptc_lisp.answers using (run_id)
                    left join lateral ptc_lisp.open_calls(run.run_id) on run.open > 0
                where run.run_id = $1";
        let rows = self.pool.query(sql, &[&escape(run_id)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let answer: Option<Vec<u8>> = get(row, "answer")?;
        Ok(Some(StoredRun {
            summary: summary(row, status(get(row, "shown")?)?)?,
            request: text("request", run_id, get(row, "request")?)?.into(),
            answer: answer.map(|answer| text("answer", run_id, answer)).transpose()?.map(Arc::from),
        }))
    }

    async fn events(&self, run_id: &str, skip: u64) -> Result<Events> {
        // The first one is returned in any case.
        let sql = "
            select run.status = 'done' as is_done, run.events, event.number, event.kind, event.data
                from ptc_lisp.runs as run left join (
                    select * from (
                        select number, kind, data, sum(octet_length(data)) over (order by number) as bytes
                            from ptc_lisp.events where run_id = $1 and number > $2
                    ) as next where bytes <= $3 or number - 1 = $2
                ) as event on true
                where run.run_id = $1 order by event.number";
        let rows = self.pool.query(sql, &[&escape(run_id), &signed(skip), &signed(EVENT_BYTES as u64)]).await?;
        let (mut events, mut is_over) = (Vec::with_capacity(rows.len()), false);
        for row in &rows {
            let mut last = skip;
            if get::<Option<i64>>(row, "number")?.is_some() {
                last = get_count(row, "number")?;
                let (kind, data) = (get(row, "kind")?, text("event", run_id, get(row, "data")?)?.into());
                events.push(StoredEvent { number: last, kind, data });
            }
            is_over = get::<bool>(row, "is_done")? && last >= get_count(row, "events")?;
        }
        Ok(Events { events, is_over })
    }

    async fn list(&self, query: &Query) -> Result<Page> {
        // One index serves all lists: newest runs of each tenant and status, then the newest of them.
        let sql = "
            with page as (
                select first.*
                    from (select distinct tenant from ptc_lisp.usage where $1::text is null or tenant = $1) as known
                        cross join unnest($2::text[]) as wanted
                        cross join lateral (
                            select * from ptc_lisp.runs as run
                                where run.tenant = known.tenant and run.shown = wanted
                                    and (run.created_ms, run.run_id) < ($3::bigint, $4::text)
                                order by run.created_ms desc, run.run_id desc limit $5::bigint
                        ) as first
                    order by created_ms desc, run_id desc limit $5::bigint
            ), sized as (
                select page.*, count(*) over () as found, coalesce(sum((
                        select sum(octet_length(call) + octet_length(phase) + octet_length(tool)
                                + octet_length(arguments) + coalesce(octet_length(question), 0))
                            from ptc_lisp.calls where calls.run_id = page.run_id
                    )) over (order by created_ms desc, run_id desc rows between unbounded preceding and 1 preceding), 0
                    ) as bytes_before
                    from page
            )
            select sized.run_id, tenant, shown, cancelled, error, created_ms, updated_ms, found, open_calls.*
                from sized left join lateral ptc_lisp.open_calls(sized.run_id) on sized.open > 0
                where bytes_before <= $6::bigint
                order by created_ms desc, run_id desc";
        let statuses: Vec<_> = RunStatus::ALL
            .into_iter()
            .filter(|one| query.status.is_none_or(|status| status == *one))
            .map(RunStatus::name)
            .collect();
        let tenant = query.tenant.as_deref().map(escape);
        let (after_ms, after_id) = match &query.after {
            Some((ms, id)) => (*ms, escape(id)),
            None => (i64::MAX, Cow::Borrowed("")),
        };
        let max = signed(query.max as u64);
        let one_more = max.saturating_add(1);
        let bytes = signed(PAGE_BYTES as u64);
        let rows = self.pool.query(sql, &[&tenant, &statuses, &after_ms, &after_id, &one_more, &bytes]).await?;
        let found = rows.first().map_or(Ok(0), |row| get_count(row, "found"))?;
        let shown = rows.iter().take(query.max);
        let runs = shown.map(|row| summary(row, status(get(row, "shown")?)?)).collect::<Result<Vec<_>>>()?;
        Ok(Page { has_more: (runs.len() as u64) < found, runs })
    }

    async fn usage(&self, tenant: &str) -> Result<Usage> {
        let sql = "
            select coalesce(sum(runs), 0)::bigint as runs, coalesce(sum(queued), 0)::bigint as queued,
                    (coalesce(sum(bytes), 0) + coalesce((
                        select sum(run.bytes - run.counted) from ptc_lisp.runs as run
                            where run.tenant = $1 and run.status = 'running'
                    ), 0))::bigint as bytes
                from ptc_lisp.usage where tenant = $1";
        let row = self.one(sql, &[&escape(tenant)]).await?;
        Ok(Usage {
            runs: get_count(&row, "runs")?,
            queued: get_count(&row, "queued")?,
            bytes: get_count(&row, "bytes")?,
        })
    }

    async fn unfinished(&self) -> Result<Vec<(RunStatus, u64)>> {
        let sql = "
            select wanted as status, sum(number)::bigint as number
                from (select distinct tenant from ptc_lisp.usage) as known
                    cross join unnest($1::text[]) as wanted
                    cross join lateral (
                        select count(*) as number from ptc_lisp.runs where tenant = known.tenant and shown = wanted
                    ) as counted
                group by wanted";
        let unfinished: Vec<_> = RunStatus::ALL.into_iter().filter(|status| *status != RunStatus::Done).collect();
        let names: Vec<_> = unfinished.iter().map(|status| status.name()).collect();
        let rows = self.pool.query(sql, &[&names]).await?;
        let mut counts = HashMap::new();
        for row in &rows {
            counts.insert(status(get(row, "status")?)?, get_count(row, "number")?);
        }
        Ok(unfinished.into_iter().map(|status| (status, counts.get(&status).copied().unwrap_or(0))).collect())
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.notices.subscribe()
    }
}
