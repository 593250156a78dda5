-- Step 1 of the format: the functions. Each is one operation that writes, in one statement of its caller: nothing comes
-- between the check of the lease and the write. A later step adds functions with other names or parameters, and leaves
-- these to the processes of this version.
--
-- `a_again` says that the caller made the same call before, lost its connection, and does not know whether it happened.

create function ptc_lisp.now_ms() returns bigint language sql volatile as $$
    select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
$$;

-- Adds to the usage of a tenant. A connection has a row of its own, as far as there are rows.
create function ptc_lisp.count_usage(a_tenant text, a_runs bigint, a_queued bigint, a_bytes bigint) returns void
language plpgsql as $$
declare
    my_part constant integer := pg_backend_pid() % 64;
begin
    if a_runs = 0 and a_queued = 0 and a_bytes = 0 then
        return;
    end if;
    update ptc_lisp.usage set runs = runs + a_runs, queued = queued + a_queued, bytes = bytes + a_bytes
        where tenant = a_tenant and part = my_part;
    if not found then
        insert into ptc_lisp.usage as stored (tenant, part, runs, queued, bytes)
            values (a_tenant, my_part, a_runs, a_queued, a_bytes)
            on conflict (tenant, part) do update set
                runs = stored.runs + excluded.runs,
                queued = stored.queued + excluded.queued,
                bytes = stored.bytes + excluded.bytes;
    end if;
end $$;

-- The status that clients see.
create function ptc_lisp.shown(status text, open integer) returns text language sql immutable as $$
    select case when open > 0 and status in ('queued', 'running', 'waiting') then 'waiting' else status end
$$;

-- Returns 'new', 'exists', 'other', or 'known' with the ID of the run that has the key.
create function ptc_lisp.submit(
    a_run text, a_tenant text, a_request bytea, a_key text, a_digest text, a_again boolean,
    out outcome text, out known text
) language plpgsql as $$
declare
    now constant bigint := ptc_lisp.now_ms();
    size constant bigint := octet_length(a_request);
    stored_digest text;
begin
    insert into ptc_lisp.runs (run_id, tenant, key, digest, created_ms, updated_ms, due_ms, bytes, counted)
        values (a_run, a_tenant, a_key, a_digest, now, now, now, size, size)
        on conflict do nothing;
    if found then
        insert into ptc_lisp.requests (run_id, request) values (a_run, a_request);
        perform ptc_lisp.count_usage(a_tenant, 1, 1, size);
        outcome := 'new';
        return;
    end if;
    select run_id, digest into known, stored_digest from ptc_lisp.runs where tenant = a_tenant and key = a_key;
    if known is null or (a_again and known = a_run) then
        known := null;
        outcome := case when a_again then 'new' else 'exists' end;
    elsif stored_digest = a_digest then
        outcome := 'known';
    else
        outcome := 'other';
    end if;
end $$;

-- The open calls of a run, in order: one row.
create function ptc_lisp.open_calls(a_run text)
returns table (calls text[], phases text[], numbers bigint[], tools text[], arguments bytea[], questions bytea[])
language sql stable as $$
    select array_agg(call), array_agg(phase), array_agg(number), array_agg(tool), array_agg(c.arguments), array_agg(question)
        from (select * from ptc_lisp.calls where run_id = a_run order by number) as c
$$;

-- Marks runs as running by turns: the first of each tenant, then the second of each, and so on. Returns their IDs.
create function ptc_lisp.take(a_holder text, a_period bigint, a_slots integer, a_tenants text[], a_maxima integer[])
returns text[] language plpgsql as $$
declare
    now constant bigint := ptc_lisp.now_ms();
    taken text[] := '{}';
    got text[];
    wanted bigint;
begin
    if cardinality(a_tenants) = 1 then
        -- Nothing to share out: the same in less time.
        with first as (
            select run_id, due_ms from ptc_lisp.runs
                where status in ('queued', 'running') and tenant = a_tenants[1] and due_ms <= now
                order by due_ms, run_id limit least(a_slots, a_maxima[1]) for no key update skip locked
        ), claimed as (
            update ptc_lisp.runs set
                    status = 'running', shown = ptc_lisp.shown('running', open), holder = a_holder, epoch = epoch + 1,
                    due_ms = now + a_period, updated_ms = now,
                    faults = case when status = 'running' then faults + 1 else faults end
                from first where runs.run_id = first.run_id
        )
        select array_agg(run_id order by due_ms, run_id) into taken from first;
        return taken;
    end if;
    -- Others may be claiming the same runs at this moment. Then the rest is taken from the tenants that had enough.
    for round in 1..4 loop
        with room as (
            select tenant, max, place, first.number as ready
                from unnest(a_tenants, a_maxima) with ordinality as listed (tenant, max, place)
                    cross join lateral (
                        select count(*) as number from (
                            select from ptc_lisp.runs
                                where status in ('queued', 'running') and runs.tenant = listed.tenant and due_ms <= now
                                order by due_ms, run_id limit a_slots
                        ) as some_of_them
                    ) as first
                where max > 0
        ), turns as (
            select tenant, turn, place, ready, row_number() over (partition by tenant order by turn, place) as number
                from room cross join generate_series(1, least(max, ready)) as turn
        ), chosen as (
            select tenant, turn, place, number from turns where number <= ready order by turn, place limit a_slots
        ), quota as (
            select tenant, count(*) as number from chosen group by tenant
        ), locked as (
            select quota.tenant, first.run_id,
                    row_number() over (partition by quota.tenant order by first.due_ms, first.run_id) as number
                from quota cross join lateral (
                    select run_id, due_ms from ptc_lisp.runs
                        where status in ('queued', 'running') and tenant = quota.tenant and due_ms <= now
                        order by due_ms, run_id limit quota.number for no key update skip locked
                ) as first
        ), fit as (
            select tenant, run_id, turn, place from locked join chosen using (tenant, number)
        ), claimed as (
            update ptc_lisp.runs set
                    status = 'running', shown = ptc_lisp.shown('running', open), holder = a_holder, epoch = epoch + 1,
                    due_ms = now + a_period, updated_ms = now,
                    faults = case when status = 'running' then faults + 1 else faults end
                from fit where runs.run_id = fit.run_id
        ), rest as (
            select tenant, sum(least(max, 1000000)) - quota.number as max
                from room join quota using (tenant)
                where quota.number = (select count(*) from fit where fit.tenant = room.tenant)
                group by tenant, quota.number
        )
        select (select array_agg(run_id order by turn, place) from fit), (select count(*) from chosen),
                (select array_agg(tenant) from rest), (select array_agg(max) from rest)
            into got, wanted, a_tenants, a_maxima;
        taken := taken || got;
        a_slots := a_slots - coalesce(cardinality(got), 0);
        exit when coalesce(cardinality(got), 0) = wanted or a_tenants is null;
    end loop;
    return nullif(taken, '{}');
end $$;

create function ptc_lisp.claim(
    a_holder text, a_period bigint, a_slots integer, a_tenants text[], a_maxima integer[], a_again boolean
) returns table (
    run_id text, tenant text, cancelled boolean, error text, created_ms bigint, updated_ms bigint,
    epoch bigint, lines bigint, events bigint, printed bigint, faults integer, request bytea,
    calls text[], phases text[], numbers bigint[], tools text[], arguments bytea[], questions bytea[]
) language plpgsql as $$
#variable_conflict use_column
declare
    taken text[];
begin
    if a_again then
        select array_agg(r.run_id) into taken from ptc_lisp.runs as r
            where status = 'running' and tenant = any (a_tenants) and holder = a_holder;
    end if;
    if taken is null then
        taken := ptc_lisp.take(a_holder, a_period, a_slots, a_tenants, a_maxima);
    end if;
    if taken is null then
        return;
    end if;
    return query
        select r.run_id, r.tenant, r.cancelled, r.error, r.created_ms, r.updated_ms,
                r.epoch, r.lines, r.events, r.printed, r.faults, requests.request, open.*
            from unnest(taken) with ordinality as claimed (run_id, place)
                join ptc_lisp.runs as r using (run_id)
                join ptc_lisp.requests using (run_id)
                left join lateral ptc_lisp.open_calls(r.run_id) as open on r.open > 0
            order by claimed.place;
end $$;

-- Renews leases. Returns a row for each that is held.
create function ptc_lisp.renew(a_runs text[], a_epochs bigint[], a_period bigint)
returns table (run_id text, epoch bigint, cancelled boolean, replies bigint) language plpgsql as $$
#variable_conflict use_column
declare
    new_due constant bigint := ptc_lisp.now_ms() + a_period;
begin
    return query
        with held as (
            -- In one order everywhere, so that two of these do not block each other.
            select r.run_id from ptc_lisp.runs as r
                join unnest(a_runs, a_epochs) as lease (run_id, epoch) using (run_id, epoch)
                where r.status = 'running'
                order by r.run_id
                for no key update of r
        )
        update ptc_lisp.runs as r set due_ms = new_due from held where r.run_id = held.run_id
            returning r.run_id, r.epoch, r.cancelled, r.replies;
end $$;

-- Inserts the rows of a batch that is not empty, and returns the run as it is to be stored.
create function ptc_lisp.put(
    run ptc_lisp.runs,
    a_first_line bigint, a_lines bigint, a_text bytea, a_digest bytea,
    a_first_event bigint, a_kinds text[], a_data bytea[],
    a_calls text[], a_phases text[], a_tools text[], a_arguments bytea[], a_questions bytea[],
    a_closed_calls text[], a_closed_phases text[]
) returns ptc_lisp.runs language plpgsql as $$
declare
    last_line constant bigint := a_first_line + a_lines - 1;
    last_event constant bigint := a_first_event + cardinality(a_kinds) - 1;
    stored_digest bytea;
    changed bigint;
begin
    run.updated_ms := ptc_lisp.now_ms();
    if a_lines > 0 then
        if a_first_line = run.lines + 1 then
            insert into ptc_lisp.lines (run_id, first, last, text, digest)
                values (run.run_id, a_first_line, last_line, a_text, a_digest);
            run.lines := last_line;
            run.bytes := run.bytes + octet_length(a_text);
            run.faults := 0;
        else
            select digest into stored_digest from ptc_lisp.lines
                where run_id = run.run_id and first = a_first_line and last = last_line;
            if stored_digest is distinct from a_digest then
                raise exception using errcode = 'PT001', message = run.lines::text;
            end if;
        end if;
    end if;
    if cardinality(a_kinds) > 0 then
        if a_first_event not between 1 and run.events + 1 then
            raise exception using errcode = 'PT002', message = run.events::text;
        end if;
        insert into ptc_lisp.events (run_id, number, kind, data)
            select run.run_id, a_first_event + place - 1, kind, data
                from unnest(a_kinds, a_data) with ordinality as event (kind, data, place)
                where a_first_event + place - 1 > run.events;
        run.printed := run.printed + cardinality(array_positions(a_kinds[run.events - a_first_event + 2:], 'print'));
        run.events := greatest(run.events, last_event);
    end if;
    if cardinality(a_calls) > 0 then
        insert into ptc_lisp.calls (run_id, call, phase, number, tool, arguments, question)
            select run.run_id, call, phase, run.opened + row_number() over (order by place), tool, arguments, question
                from unnest(a_calls, a_phases, a_tools, a_arguments, a_questions)
                    with ordinality as opened (call, phase, tool, arguments, question, place)
                where not exists (select from ptc_lisp.calls as c
                        where c.run_id = run.run_id and c.call = opened.call and c.phase = opened.phase)
                    and not exists (select from ptc_lisp.replies as r
                        where r.run_id = run.run_id and r.call = opened.call and r.phase = opened.phase);
        get diagnostics changed = row_count;
        run.opened := run.opened + changed;
        run.open := run.open + changed;
    end if;
    if cardinality(a_closed_calls) > 0 then
        delete from ptc_lisp.calls as c using unnest(a_closed_calls, a_closed_phases) as closed (call, phase)
            where c.run_id = run.run_id and c.call = closed.call and c.phase = closed.phase;
        get diagnostics changed = row_count;
        run.open := run.open - changed;
    end if;
    return run;
end $$;

-- Returns false if the lease is lost. A batch is not empty if its lines are left out because they are stored already.
create function ptc_lisp.write(
    a_run text, a_epoch bigint,
    a_is_empty boolean, a_first_line bigint, a_lines bigint, a_text bytea, a_digest bytea,
    a_first_event bigint, a_kinds text[], a_data bytea[],
    a_calls text[], a_phases text[], a_tools text[], a_arguments bytea[], a_questions bytea[],
    a_closed_calls text[], a_closed_phases text[]
) returns boolean language plpgsql as $$
declare
    run ptc_lisp.runs;
begin
    if a_lines > 0 and cardinality(a_calls) = 0 and cardinality(a_closed_calls) = 0 then
        -- The usual case, in one statement less.
        update ptc_lisp.runs set
                lines = lines + a_lines, bytes = bytes + octet_length(a_text), faults = 0,
                events = events + cardinality(a_kinds),
                printed = printed + cardinality(array_positions(a_kinds, 'print')),
                updated_ms = ptc_lisp.now_ms()
            where run_id = a_run and epoch = a_epoch and status = 'running'
                and lines = a_first_line - 1 and (cardinality(a_kinds) = 0 or events = a_first_event - 1);
        if found then
            insert into ptc_lisp.lines (run_id, first, last, text, digest)
                values (a_run, a_first_line, a_first_line + a_lines - 1, a_text, a_digest);
            insert into ptc_lisp.events (run_id, number, kind, data)
                select a_run, a_first_event + place - 1, kind, data
                    from unnest(a_kinds, a_data) with ordinality as event (kind, data, place);
            return true;
        end if;
    end if;
    select * into run from ptc_lisp.runs where run_id = a_run and epoch = a_epoch and status = 'running' for no key update;
    if not found then
        return false;
    elsif a_is_empty then
        return true;
    end if;
    run := ptc_lisp.put(
        run, a_first_line, a_lines, a_text, a_digest, a_first_event, a_kinds, a_data,
        a_calls, a_phases, a_tools, a_arguments, a_questions, a_closed_calls, a_closed_phases
    );
    update ptc_lisp.runs set
            lines = run.lines, bytes = run.bytes, faults = run.faults, events = run.events, printed = run.printed,
            opened = run.opened, open = run.open, updated_ms = run.updated_ms,
            shown = ptc_lisp.shown('running', run.open)
        where run_id = a_run;
    return true;
end $$;

-- Ends an attempt as 'done', 'suspended', 'requeued' or 'stuck'. Returns the status of the run after that, 'news' if the
-- attempt goes on, 'ended' if it has ended this way before, or 'lost'.
create function ptc_lisp.end_attempt(
    a_run text, a_epoch bigint, a_end text, a_seen bigint, a_after bigint, a_is_fault boolean, a_error text, a_answer bytea,
    a_is_empty boolean, a_first_line bigint, a_lines bigint, a_text bytea, a_digest bytea,
    a_first_event bigint, a_kinds text[], a_data bytea[],
    a_calls text[], a_phases text[], a_tools text[], a_arguments bytea[], a_questions bytea[],
    a_closed_calls text[], a_closed_phases text[]
) returns text language plpgsql as $$
declare
    now constant bigint := ptc_lisp.now_ms();
    run ptc_lisp.runs;
    goes_on boolean;
begin
    select * into run from ptc_lisp.runs where run_id = a_run for no key update;
    if run.ended_epoch = a_epoch and run.ended = a_end then
        return 'ended';
    elsif not found or run.epoch <> a_epoch or run.status <> 'running' then
        return 'lost';
    end if;
    if not a_is_empty then
        run := ptc_lisp.put(
            run, a_first_line, a_lines, a_text, a_digest, a_first_event, a_kinds, a_data,
            a_calls, a_phases, a_tools, a_arguments, a_questions, a_closed_calls, a_closed_phases
        );
    end if;
    -- A run that was cancelled neither waits nor sticks.
    goes_on := a_end in ('suspended', 'stuck') and run.cancelled or a_end = 'suspended' and run.replies > a_seen;
    if not goes_on then
        run.ended_epoch := a_epoch;
        run.ended := a_end;
        run.updated_ms := now;
        run.due_ms := now;
        if a_end = 'done' then
            insert into ptc_lisp.answers (run_id, answer) values (a_run, a_answer);
            if run.open > 0 then
                delete from ptc_lisp.calls where run_id = a_run;
            end if;
            run.status := 'done';
            run.open := 0;
            run.bytes := run.bytes + octet_length(a_answer);
        elsif a_end = 'stuck' then
            run.status := 'stuck';
            run.error := a_error;
        elsif a_end = 'suspended' and run.open > 0 then
            run.status := 'waiting';
        else
            run.status := 'queued';
            run.due_ms := now + a_after;
            run.faults := run.faults + a_is_fault::integer;
        end if;
        perform ptc_lisp.count_usage(
            run.tenant, 0, case run.status when 'queued' then 0 else -1 end, run.bytes - run.counted
        );
        run.counted := run.bytes;
    end if;
    update ptc_lisp.runs set
            lines = run.lines, bytes = run.bytes, faults = run.faults, events = run.events, printed = run.printed,
            opened = run.opened, open = run.open, updated_ms = run.updated_ms,
            status = run.status, shown = ptc_lisp.shown(run.status, run.open), due_ms = run.due_ms,
            error = run.error, counted = run.counted,
            ended_epoch = run.ended_epoch, ended = run.ended
        where run_id = a_run;
    return case when goes_on then 'news' else run.status end;
end $$;

-- Queues a run that is suspended or stuck.
create function ptc_lisp.queue(a_run text) returns void language plpgsql as $$
declare
    its_tenant text;
begin
    update ptc_lisp.runs set
            status = 'queued', shown = ptc_lisp.shown('queued', open), due_ms = ptc_lisp.now_ms(), error = null,
            faults = case status when 'stuck' then 0 else faults end
        where run_id = a_run and status in ('waiting', 'stuck')
        returning tenant into its_tenant;
    perform ptc_lisp.count_usage(its_tenant, 0, 1, 0);
end $$;

-- Returns the status that the run had, and what became of the reply: 'taken', 'repeated', 'answered', 'no call', 'over', 'cancelled' or
-- 'no run'.
create function ptc_lisp.reply(
    a_run text, a_call text, a_phase text, a_body bytea, a_again boolean, out was text, out outcome text
) language plpgsql as $$
declare
    run ptc_lisp.runs;
    first bytea;
begin
    select * into run from ptc_lisp.runs where run_id = a_run for no key update;
    if not found then
        outcome := 'no run';
        return;
    end if;
    was := run.status;
    select body into first from ptc_lisp.replies where run_id = a_run and call = a_call and phase = a_phase;
    if found then
        outcome := case when first <> a_body then 'answered' when a_again then 'taken' else 'repeated' end;
        return;
    elsif was in ('stuck', 'done') then
        outcome := 'over';
        return;
    elsif run.cancelled then
        outcome := 'cancelled';
        return;
    end if;
    delete from ptc_lisp.calls where run_id = a_run and call = a_call and phase = a_phase;
    if not found then
        outcome := 'no call';
        return;
    end if;
    insert into ptc_lisp.replies (run_id, number, call, phase, body)
        values (a_run, run.replies + 1, a_call, a_phase, a_body);
    update ptc_lisp.runs set
            replies = run.replies + 1, open = run.open - 1, shown = ptc_lisp.shown(was, run.open - 1),
            updated_ms = ptc_lisp.now_ms()
        where run_id = a_run;
    if was = 'waiting' then
        perform ptc_lisp.queue(a_run);
    end if;
    outcome := 'taken';
end $$;

-- Returns the status that the run had, or null if there is no such run.
create function ptc_lisp.cancel(a_run text) returns text language plpgsql as $$
declare
    was text;
begin
    select status into was from ptc_lisp.runs where run_id = a_run for no key update;
    if was <> 'done' then
        update ptc_lisp.runs set cancelled = true, updated_ms = ptc_lisp.now_ms() where run_id = a_run;
        if was in ('waiting', 'stuck') then
            perform ptc_lisp.queue(a_run);
        end if;
    end if;
    return was;
end $$;

-- Queues a run that is stuck, and returns whether it was. The holder tells the caller whether this call did it before.
create function ptc_lisp.retry(a_run text, a_holder text, a_again boolean) returns boolean language plpgsql as $$
begin
    if a_again and exists (select from ptc_lisp.runs where run_id = a_run and holder = a_holder) then
        return true;
    end if;
    perform from ptc_lisp.runs where run_id = a_run and status = 'stuck' for no key update;
    if not found then
        return false;
    end if;
    update ptc_lisp.runs set holder = a_holder, updated_ms = ptc_lisp.now_ms() where run_id = a_run;
    perform ptc_lisp.queue(a_run);
    return true;
end $$;

-- Deletes runs that finished before a time, and returns how many: at most `a_max`.
create function ptc_lisp.sweep_runs(a_before bigint, a_max integer) returns bigint language plpgsql as $$
declare
    old text[];
    part record;
begin
    select array_agg(run_id) into old from (
        select run_id from ptc_lisp.runs where status = 'done' and due_ms < a_before
            order by due_ms limit a_max for update skip locked
    ) as first;
    delete from ptc_lisp.requests where run_id = any (old);
    delete from ptc_lisp.answers where run_id = any (old);
    delete from ptc_lisp.lines where run_id = any (old);
    delete from ptc_lisp.events where run_id = any (old);
    delete from ptc_lisp.replies where run_id = any (old);
    for part in
        with deleted as (delete from ptc_lisp.runs where run_id = any (old) returning tenant, counted)
        -- Tenants in one order, so that two of these do not block each other.
        select tenant, count(*) as runs, sum(counted)::bigint as bytes from deleted group by tenant order by tenant
    loop
        perform ptc_lisp.count_usage(part.tenant, -part.runs, 0, -part.bytes);
    end loop;
    return coalesce(cardinality(old), 0);
end $$;
