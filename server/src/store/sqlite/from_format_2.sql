-- Changes the tables of format 2 to those of format 3.
CREATE TABLE openings (
    session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    text TEXT NOT NULL
) STRICT;
INSERT INTO openings SELECT session_id, opening FROM sessions;
ALTER TABLE sessions DROP COLUMN opening;
ALTER TABLE sessions ADD COLUMN ended_epoch INTEGER;
ALTER TABLE sessions ADD COLUMN ended TEXT;
DROP INDEX sessions_of_tenants;
CREATE INDEX sessions_of_tenants ON sessions (tenant);
CREATE TABLE session_usage (
    tenant TEXT PRIMARY KEY,
    sessions INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO session_usage SELECT tenant, count(*), sum(bytes) FROM sessions GROUP BY tenant;
CREATE TRIGGER session_added AFTER INSERT ON sessions BEGIN
    INSERT INTO session_usage VALUES (new.tenant, 1, new.bytes)
        ON CONFLICT (tenant) DO UPDATE SET sessions = sessions + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER session_removed AFTER DELETE ON sessions BEGIN
    UPDATE session_usage SET sessions = sessions - 1, bytes = bytes - old.bytes WHERE tenant = old.tenant;
    DELETE FROM session_usage WHERE tenant = old.tenant AND sessions = 0;
END;
CREATE TRIGGER session_changed AFTER UPDATE OF bytes ON sessions BEGIN
    UPDATE session_usage SET bytes = bytes - old.bytes + new.bytes WHERE tenant = new.tenant;
END;
