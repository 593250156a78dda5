-- Step 1 of the format: the tables.
--
-- Identifiers are text in which the store escapes U+0000; payloads are bytes, because text cannot hold U+0000. Times are in
-- milliseconds by the clock of the database.

create table ptc_lisp.runs (
    run_id text collate "C" primary key,
    tenant text collate "C" not null,
    -- The idempotency key of the client and the digest of its request.
    key text collate "C",
    digest text collate "C",
    -- 'waiting' is a suspended run.
    status text collate "C" not null default 'queued'
        check (status in ('queued', 'running', 'waiting', 'stuck', 'done')),
    cancelled boolean not null default false,
    error text,
    created_ms bigint not null,
    updated_ms bigint not null,
    -- When a queued run can be claimed, when the lease of a running one expires, when a done one finished.
    due_ms bigint not null,
    -- The lease: the number of the attempt and who claimed it.
    epoch bigint not null default 0,
    holder text,
    faults integer not null default 0,
    -- The last attempt that has ended, and how.
    ended_epoch bigint not null default 0,
    ended text,
    -- What the other tables have of the run.
    lines bigint not null default 0,
    events bigint not null default 0,
    printed bigint not null default 0,
    opened bigint not null default 0,
    open integer not null default 0,
    replies bigint not null default 0,
    -- The bytes of its request, journal and answer, and those that the usage of the tenant includes already.
    bytes bigint not null,
    counted bigint not null,
    -- The status that clients see: 'waiting' if a run that is not stuck or done has open calls. It is not a generated
    -- column, because PostgreSQL reads the text of its expression in every statement that writes.
    shown text collate "C" not null default 'queued'
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

create unique index runs_by_key on ptc_lisp.runs (tenant, key) where key is not null;
-- For lists, newest first, and for counts.
create index runs_shown on ptc_lisp.runs (tenant, shown, created_ms, run_id);
-- For claims: queued runs, and running ones whose lease expires.
create index runs_due on ptc_lisp.runs (tenant, due_ms, run_id) where status in ('queued', 'running');
create index runs_running on ptc_lisp.runs (tenant) where status = 'running';
-- For the deletion of old runs.
create index runs_done on ptc_lisp.runs (due_ms) where status = 'done';

-- Large texts are rows of their own: an update of the run does not copy them.
create table ptc_lisp.requests (
    run_id text collate "C" primary key,
    request bytea not null
);

create table ptc_lisp.answers (
    run_id text collate "C" primary key,
    answer bytea not null
);

-- Lines of journals: a row has the lines of one write.
create table ptc_lisp.lines (
    run_id text collate "C",
    first bigint,
    last bigint not null,
    text bytea not null,
    -- Of the run, the number of the first line and the text.
    digest bytea not null,
    primary key (run_id, first)
);

create table ptc_lisp.events (
    run_id text collate "C",
    number bigint,
    kind text not null,
    data bytea not null,
    primary key (run_id, number)
);

-- Open calls.
create table ptc_lisp.calls (
    run_id text collate "C",
    call text collate "C",
    phase text collate "C",
    number bigint not null,
    tool text not null,
    arguments bytea not null,
    question bytea,
    primary key (run_id, call, phase)
);

create table ptc_lisp.replies (
    run_id text collate "C",
    number bigint,
    call text collate "C" not null,
    phase text collate "C" not null,
    body bytea not null,
    primary key (run_id, number),
    unique (run_id, call, phase)
);

-- What tenants have stored, as a sum over rows, so that connections do not wait for each other. The bytes that running runs
-- have written in their present attempt are missing.
create table ptc_lisp.usage (
    tenant text collate "C",
    part integer,
    runs bigint not null,
    -- Runs that are queued or running.
    queued bigint not null,
    bytes bigint not null,
    primary key (tenant, part)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table ptc_lisp.sessions (
    session_id text collate "C" primary key,
    tenant text collate "C" not null,
    opening bytea not null,
    -- The length of its texts: the opening and all that are kept.
    bytes bigint not null default 0,
    turns bigint not null default 0,
    undos bigint not null default 0,
    created_ms bigint not null,
    updated_ms bigint not null,
    -- The lease of the turn in progress, if it has a time.
    epoch bigint not null default 0,
    holder text,
    expires_ms bigint,
    -- The last turns that have ended, as ' EPOCH:HOW' each, the last one first: put, undo, or nothing (to undo).
    ended text not null default ''
) with (fillfactor = 70);

create index sessions_by_tenant on ptc_lisp.sessions (tenant) include (bytes);

-- The saved session after each turn that can be undone, and before the first of them.
create table ptc_lisp.session_texts (
    session_id text collate "C",
    turn bigint,
    text bytea,
    primary key (session_id, turn)
);

create table ptc_lisp.secrets (
    name text collate "C" primary key,
    value bytea not null
);

-- One row: written to find out whether the database can be written.
create table ptc_lisp.alive (
    checked_ms bigint not null,
    -- When the last run was submitted that came from a backup.
    restored_ms bigint not null default -1
);
insert into ptc_lisp.alive values (0);
