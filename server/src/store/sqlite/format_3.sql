CREATE TABLE owner (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    -- When the last run was submitted that came from a backup.
    restored_ms INTEGER NOT NULL DEFAULT -1
) STRICT;
INSERT INTO owner (one, epoch) VALUES (1, 0);

-- Rows are short, so that lists and claims read few pages: requests and answers are in tables of their own.
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    -- The idempotency key of the client, and the digest of its request.
    key TEXT,
    digest TEXT,
    -- queued, running, waiting (suspended), stuck or done.
    status TEXT NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    -- When a queued run can be claimed, and when the lease of a running one expires.
    ready_ms INTEGER NOT NULL,
    -- The number of attempts, and who makes the last one.
    epoch INTEGER NOT NULL DEFAULT 0,
    worker TEXT,
    -- The last attempt that ended, and how.
    ended_epoch INTEGER,
    ended TEXT,
    faults INTEGER NOT NULL DEFAULT 0,
    -- How many rows there are in the other tables; `opened` counts all calls that were opened, `open` those that are.
    lines INTEGER NOT NULL DEFAULT 0,
    events INTEGER NOT NULL DEFAULT 0,
    printed INTEGER NOT NULL DEFAULT 0,
    opened INTEGER NOT NULL DEFAULT 0,
    open INTEGER NOT NULL DEFAULT 0,
    replies INTEGER NOT NULL DEFAULT 0,
    -- Of request, journal and answer.
    bytes INTEGER NOT NULL,
    -- The status that clients see.
    shown TEXT NOT NULL GENERATED ALWAYS AS (
        CASE WHEN open > 0 AND status IN ('queued', 'running', 'waiting') THEN 'waiting' ELSE status END
    ) VIRTUAL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX keys ON runs (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX claimable_runs ON runs (tenant, ready_ms, run_id) WHERE status IN ('queued', 'running');
CREATE INDEX done_runs ON runs (updated_ms) WHERE status = 'done';
CREATE INDEX listed_runs ON runs (created_ms, run_id);
CREATE INDEX listed_runs_of_tenants ON runs (tenant, created_ms, run_id);
CREATE INDEX shown_runs ON runs (shown, created_ms, run_id);
CREATE INDEX shown_runs_of_tenants ON runs (tenant, shown, created_ms, run_id);

CREATE TABLE requests (
    run_id TEXT PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    request TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE answers (
    run_id TEXT PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    answer TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE journal (
    run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    line TEXT NOT NULL,
    -- FNV-1a of the line, to find damage.
    digest INTEGER NOT NULL,
    PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;

-- The open calls.
CREATE TABLE calls (
    run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    call TEXT NOT NULL,
    phase TEXT NOT NULL,
    number INTEGER NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    question TEXT,
    PRIMARY KEY (run_id, call, phase)
) STRICT, WITHOUT ROWID;

CREATE TABLE replies (
    run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    call TEXT NOT NULL,
    phase TEXT NOT NULL,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, call, phase)
) STRICT, WITHOUT ROWID;

-- How many runs have each status, and what each tenant has, counted as it changes: both are looked up often.
CREATE TABLE counts (shown TEXT PRIMARY KEY, runs INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
    tenant TEXT PRIMARY KEY,
    runs INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER run_inserted AFTER INSERT ON runs BEGIN
    INSERT INTO usage VALUES (new.tenant, 1, new.status IN ('queued', 'running'), new.bytes)
    ON CONFLICT (tenant) DO UPDATE SET
        runs = runs + 1, queued = queued + excluded.queued, bytes = bytes + excluded.bytes;
    INSERT INTO counts VALUES (new.shown, 1) ON CONFLICT (shown) DO UPDATE SET runs = runs + 1;
END;
CREATE TRIGGER run_changed AFTER UPDATE OF status, bytes ON runs BEGIN
    UPDATE usage SET
        queued = queued + (new.status IN ('queued', 'running')) - (old.status IN ('queued', 'running')),
        bytes = bytes + new.bytes - old.bytes
    WHERE tenant = new.tenant;
END;
CREATE TRIGGER run_deleted AFTER DELETE ON runs BEGIN
    UPDATE usage SET
        runs = runs - 1, queued = queued - (old.status IN ('queued', 'running')), bytes = bytes - old.bytes
    WHERE tenant = old.tenant;
    UPDATE counts SET runs = runs - 1 WHERE shown = old.shown;
END;
CREATE TRIGGER run_shown AFTER UPDATE OF status, open ON runs WHEN new.shown <> old.shown BEGIN
    UPDATE counts SET runs = runs - 1 WHERE shown = old.shown;
    INSERT INTO counts VALUES (new.shown, 1) ON CONFLICT (shown) DO UPDATE SET runs = runs + 1;
END;

CREATE TABLE sessions (
    session_id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    -- The length of its texts: the opening and all states.
    bytes INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    -- The number of turns that were begun, and when the lease of the one in progress expires.
    epoch INTEGER NOT NULL DEFAULT 0,
    turn_until_ms INTEGER,
    -- The last turns that ended, as ' EPOCH:HOW' each, the last one first: put, undo, or nothing (to undo).
    ended TEXT
) STRICT;
CREATE INDEX sessions_of_tenants ON sessions (tenant);
CREATE INDEX idle_sessions ON sessions (updated_ms);
CREATE INDEX sessions_in_turn ON sessions (session_id) WHERE turn_until_ms IS NOT NULL;

-- Large texts are in tables of their own, because an update of a row writes all of it. These have row IDs, and the text as the last
-- column: otherwise SQLite reads the whole text to find the row, or to come to a column after it.
CREATE TABLE openings (
    session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    text TEXT NOT NULL
) STRICT;

CREATE TABLE states (
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    text TEXT,
    PRIMARY KEY (session_id, number)
) STRICT;

-- Written to check that the store is writable.
CREATE TABLE probe (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, filler BLOB NOT NULL) STRICT;

CREATE TABLE secrets (name TEXT PRIMARY KEY, secret BLOB NOT NULL) STRICT, WITHOUT ROWID;
