CREATE TABLE IF NOT EXISTS owner (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL);
INSERT OR IGNORE INTO owner VALUES (1, 0);

CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    request TEXT NOT NULL,
    status TEXT NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    answer TEXT
) WITHOUT ROWID;
-- Covering indexes for lists: reading a row is slow if its request is large.
CREATE INDEX IF NOT EXISTS listed_runs ON runs (tenant, created_ms, run_id, status, cancelled, updated_ms);
CREATE INDEX IF NOT EXISTS unfinished_listed_runs ON runs (tenant, created_ms, run_id, status, cancelled, updated_ms)
    WHERE status <> 'done';
DROP INDEX IF EXISTS unfinished_runs;
DROP INDEX IF EXISTS runs_of_tenants;
CREATE INDEX IF NOT EXISTS done_runs ON runs (updated_ms) WHERE status = 'done';

CREATE TABLE IF NOT EXISTS journal (
    run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS replies (
    run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    call TEXT NOT NULL,
    phase TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, call, phase)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS sessions (
    session_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    opening TEXT NOT NULL,
    turns INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_of_tenants ON sessions (tenant);
CREATE INDEX IF NOT EXISTS idle_sessions ON sessions (updated_ms);

CREATE TABLE IF NOT EXISTS states (
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    text TEXT,
    PRIMARY KEY (session_id, number)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS keys (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    run_id TEXT NOT NULL,
    used_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS old_keys ON keys (used_ms);

-- Written to check that the store is writable.
CREATE TABLE IF NOT EXISTS probe (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, filler BLOB NOT NULL);

CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, secret BLOB NOT NULL) WITHOUT ROWID;
