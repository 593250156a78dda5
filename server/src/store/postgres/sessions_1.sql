-- Step 1 of the format: the functions for sessions. See functions_1.sql.

-- What a tenant has in sessions. Those that add to it do so one after another: otherwise two could both find the last place
-- free.
create function ptc_lisp.sessions_of(a_tenant text, out sessions bigint, out bytes bigint) language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('ptc_lisp sessions of ' || a_tenant, 0));
    select count(*), coalesce(sum(s.bytes), 0) into sessions, bytes from ptc_lisp.sessions as s where tenant = a_tenant;
end $$;

-- Stores a session. Returns 'new', 'full' or 'exists', or how many bytes the tenant's sessions would have if that is too much.
create function ptc_lisp.open_session(
    a_session text, a_tenant text, a_opening bytea, a_text bytea, a_max bigint, a_max_bytes bigint, a_again boolean
) returns text language plpgsql as $$
declare
    now constant bigint := ptc_lisp.now_ms();
    size constant bigint := octet_length(a_opening)::bigint + coalesce(octet_length(a_text), 0);
    has record;
begin
    select * into has from ptc_lisp.sessions_of(a_tenant);
    if exists (select from ptc_lisp.sessions where session_id = a_session) then
        return case when a_again then 'new' else 'exists' end;
    elsif has.sessions >= a_max then
        return 'full';
    elsif has.bytes + size > a_max_bytes then
        return has.bytes + size;
    end if;
    insert into ptc_lisp.sessions (session_id, tenant, opening, bytes, created_ms, updated_ms)
        values (a_session, a_tenant, a_opening, size, now, now);
    insert into ptc_lisp.session_texts (session_id, turn, text) values (a_session, 0, a_text);
    return 'new';
end $$;

-- A session with the text of its last turn.
create function ptc_lisp.session(a_session text)
returns table (
    session_id text, tenant text, opening bytea, turns bigint, undos bigint, created_ms bigint, updated_ms bigint,
    epoch bigint, text bytea
) language sql stable as $$
    select s.session_id, s.tenant, s.opening, s.turns, s.undos, s.created_ms, s.updated_ms, s.epoch, t.text
        from ptc_lisp.sessions as s join ptc_lisp.session_texts as t on t.session_id = s.session_id and t.turn = s.turns
        where s.session_id = a_session
$$;

-- Starts a turn. Returns the session, one row of nulls if another turn is in progress, or no row if there is no such
-- session.
create function ptc_lisp.begin_turn(a_tenant text, a_session text, a_period bigint, a_holder text, a_again boolean)
returns table (
    session_id text, tenant text, opening bytea, turns bigint, undos bigint, created_ms bigint, updated_ms bigint,
    epoch bigint, text bytea
) language plpgsql as $$
#variable_conflict use_column
declare
    now constant bigint := ptc_lisp.now_ms();
    session ptc_lisp.sessions;
begin
    select * into session from ptc_lisp.sessions where session_id = a_session and tenant = a_tenant for no key update;
    if not found then
        return;
    elsif a_again and session.holder = a_holder then
        return query select * from ptc_lisp.session(a_session);
        return;
    elsif session.expires_ms > now then
        return next;
        return;
    end if;
    update ptc_lisp.sessions set epoch = epoch + 1, holder = a_holder, expires_ms = now + a_period
        where session_id = a_session;
    return query select * from ptc_lisp.session(a_session);
end $$;

create function ptc_lisp.renew_turn(a_session text, a_epoch bigint, a_period bigint) returns boolean language plpgsql as $$
begin
    update ptc_lisp.sessions set expires_ms = ptc_lisp.now_ms() + a_period
        where session_id = a_session and epoch = a_epoch and expires_ms is not null;
    return found;
end $$;

-- Ends a turn as 'put', 'undo', 'end' or 'delete'. Returns the session, one row of nulls if it is deleted or there is nothing to
-- undo, or no row if the turn is not valid. Ending a turn again in the same way changes nothing. PT003: with the text, the tenant's
-- sessions would have so many bytes.
create function ptc_lisp.end_turn(
    a_session text, a_epoch bigint, a_end text, a_text bytea, a_undos bigint, a_max_bytes bigint, a_again boolean
) returns table (
    session_id text, tenant text, opening bytea, turns bigint, undos bigint, created_ms bigint, updated_ms bigint,
    epoch bigint, text bytea
) language plpgsql as $$
#variable_conflict use_column
declare
    session ptc_lisp.sessions;
    size bigint;
begin
    select * into session from ptc_lisp.sessions where session_id = a_session for update;
    if a_again and a_end = 'delete' and not found then
        return next;
        return;
    elsif strpos(session.ended || ' ', format(' %s:%s ', a_epoch, a_end)) > 0 then
        -- Its result may have been lost.
        return query select * from ptc_lisp.session(a_session);
        return;
    elsif a_end = 'undo' and strpos(session.ended || ' ', format(' %s:nothing ', a_epoch)) > 0 then
        return next;
        return;
    elsif not found or session.epoch <> a_epoch or session.expires_ms is null then
        return;
    elsif a_end = 'delete' then
        delete from ptc_lisp.session_texts where session_id = a_session;
        delete from ptc_lisp.sessions where session_id = a_session;
        return next;
        return;
    elsif a_end = 'put' then
        session.turns := session.turns + 1;
        session.undos := least(session.undos + 1, a_undos);
        insert into ptc_lisp.session_texts (session_id, turn, text) values (a_session, session.turns, a_text);
        delete from ptc_lisp.session_texts where session_id = a_session and turn < session.turns - session.undos;
    elsif a_end = 'undo' and session.undos > 0 then
        delete from ptc_lisp.session_texts where session_id = a_session and turn = session.turns;
        session.turns := session.turns - 1;
        session.undos := session.undos - 1;
    elsif a_end = 'undo' then
        -- Ends the turn all the same.
        a_end := 'nothing';
    end if;
    update ptc_lisp.sessions set
            expires_ms = null, ended = left(format(' %s:%s', a_epoch, a_end) || ended, 4000),
            turns = session.turns, undos = session.undos,
            bytes = octet_length(opening)
                + (select coalesce(sum(octet_length(text)), 0) from ptc_lisp.session_texts where session_id = a_session),
            updated_ms = case session.turns when turns then updated_ms else ptc_lisp.now_ms() end
        where session_id = a_session;
    if a_end = 'put' then
        select bytes into size from ptc_lisp.sessions_of(session.tenant);
        if size > a_max_bytes then
            raise exception using errcode = 'PT003', message = size::text;
        end if;
    end if;
    if a_end = 'nothing' then
        return next;
    else
        return query select * from ptc_lisp.session(a_session);
    end if;
end $$;

-- Deletes sessions that last changed before a time, unless a turn is in progress, and returns how many: at most `a_max`.
create function ptc_lisp.sweep_sessions(a_before bigint, a_max integer) returns bigint language plpgsql as $$
declare
    now constant bigint := ptc_lisp.now_ms();
    old text[];
begin
    select array_agg(session_id) into old from (
        select session_id from ptc_lisp.sessions
            where updated_ms < a_before and (expires_ms is null or expires_ms <= now)
            limit a_max for update skip locked
    ) as first;
    delete from ptc_lisp.session_texts where session_id = any (old);
    delete from ptc_lisp.sessions where session_id = any (old);
    return coalesce(cardinality(old), 0);
end $$;
