-- The sessions of each tenant, and their bytes.
CREATE TABLE session_usage (
    tenant TEXT PRIMARY KEY,
    sessions INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
