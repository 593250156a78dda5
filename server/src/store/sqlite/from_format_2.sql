-- Changes the tables of format 2 to those of format 3.
CREATE TABLE openings (
    session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    text TEXT NOT NULL
) STRICT;
INSERT INTO openings SELECT session_id, opening FROM sessions;
ALTER TABLE sessions DROP COLUMN opening;
ALTER TABLE sessions ADD COLUMN ended TEXT;
DROP INDEX sessions_of_tenants;
CREATE INDEX sessions_of_tenants ON sessions (tenant);
