-- Moves the rows of format 1 into the current tables. Its tables are renamed to `old_*` before, and its journal is
-- moved after this.
CREATE INDEX old_keys_of_runs ON old_keys (run_id);

-- Runs that were under way or waited are queued: their next attempts find their open calls in the journal.
INSERT INTO runs (run_id, tenant, key, digest, status, cancelled, created_ms, updated_ms, ready_ms, lines, replies, bytes)
SELECT run_id, tenant,
    (SELECT key FROM old_keys WHERE old_keys.run_id = old_runs.run_id LIMIT 1),
    (SELECT digest FROM old_keys WHERE old_keys.run_id = old_runs.run_id LIMIT 1),
    iif(status = 'done', 'done', 'queued'), cancelled, created_ms, updated_ms, updated_ms,
    (SELECT count(*) FROM old_journal WHERE old_journal.run_id = old_runs.run_id),
    (SELECT count(*) FROM old_replies WHERE old_replies.run_id = old_runs.run_id),
    octet_length(request) + coalesce(octet_length(answer), 0)
        + (SELECT coalesce(sum(octet_length(line)), 0) FROM old_journal WHERE old_journal.run_id = old_runs.run_id)
FROM old_runs;

INSERT INTO requests SELECT run_id, request FROM old_runs;
INSERT INTO answers SELECT run_id, answer FROM old_runs WHERE answer IS NOT NULL;
INSERT INTO replies (run_id, call, phase, number, body)
SELECT run_id, call, phase, row_number() OVER (PARTITION BY run_id ORDER BY call, phase), body FROM old_replies;
INSERT INTO sessions (session_id, tenant, bytes, turns, created_ms, updated_ms)
SELECT session_id, tenant,
    octet_length(opening) + (SELECT coalesce(sum(octet_length(text)), 0)
        FROM old_states WHERE old_states.session_id = old_sessions.session_id),
    turns, created_ms, updated_ms
FROM old_sessions;
INSERT INTO openings SELECT session_id, opening FROM old_sessions;
INSERT INTO states SELECT session_id, number, text FROM old_states;
INSERT INTO secrets SELECT name, secret FROM old_secrets;
UPDATE owner SET epoch = (SELECT epoch FROM old_owner);
