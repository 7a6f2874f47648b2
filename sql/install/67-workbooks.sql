-- Workbooks (.xlsx): files that become books, and books that become files. Gateways ask, and calc converts (docs/design/workbooks.md).

-- Logged: after a crash, requests are told what was made before it. Nothing waits for the disk but what calc makes. The files are unlogged.
CREATE SEQUENCE sheet.workbook_job_id_seq;
CREATE TABLE sheet.workbook_job (
	-- After a crash the sequence may give a number again. Who still asks for the former job must not get another one.
	job_id bigint PRIMARY KEY DEFAULT nextval('sheet.workbook_job_id_seq') * 1048576 + floor(random() * 1048576)::bigint,
	kind text NOT NULL CHECK (kind IN ('import', 'book', 'sheet')),
	uid bigint NOT NULL,
	target bigint,
	name text,
	file bigint NOT NULL,
	bytes bigint NOT NULL DEFAULT 0,
	state text NOT NULL CHECK (state IN ('uploading', 'waiting', 'running', 'done')),
	status integer,
	answer text,
	worker text,
	lease_at timestamptz,
	tries integer NOT NULL DEFAULT 0,
	asked_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
COMMENT ON TABLE sheet.workbook_job IS 'Conversions of workbooks that gateways have asked for. A row lives as long as the request.';
COMMENT ON COLUMN sheet.workbook_job.kind IS 'import: a file becomes a book; book, sheet: one becomes a file';
COMMENT ON COLUMN sheet.workbook_job.target IS 'the book or the sheet that becomes a file';
COMMENT ON COLUMN sheet.workbook_job.name IS 'of the new book; of the file, without its suffix, when it is done';
COMMENT ON COLUMN sheet.workbook_job.file IS 'its bytes are in sheet.import_part';
COMMENT ON COLUMN sheet.workbook_job.status IS 'of HTTP, when it is done, with the body in answer';
COMMENT ON COLUMN sheet.workbook_job.worker IS 'the try of a program that converts, until lease_at';
COMMENT ON COLUMN sheet.workbook_job.asked_at IS 'when the gateway has asked last; nobody waits any more after a minute';

-- ---- for gateways ----

CREATE FUNCTION sheet.delete_workbooks(jobs bigint[]) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE AS $$
	WITH job AS (DELETE FROM sheet.workbook_job j WHERE j.job_id = ANY (jobs) RETURNING j.file),
	file AS (DELETE FROM sheet.import i USING job WHERE i.import_id = job.file)
	DELETE FROM sheet.import_part p USING job WHERE p.import_id = job.file
$$;
COMMENT ON FUNCTION sheet.delete_workbooks(bigint[]) IS 'Internal: removes jobs and their files.';

CREATE FUNCTION sheet.workbook_is_served() RETURNS boolean
	LANGUAGE sql STABLE PARALLEL UNSAFE AS $$
	SELECT EXISTS (SELECT FROM sheet.calculator c WHERE c.seen > now() - interval '15 s')
$$;
COMMENT ON FUNCTION sheet.workbook_is_served() IS 'Internal: whether a program that converts workbooks was seen in the last 15 seconds.';

CREATE FUNCTION sheet.workbook_begin(kind text, target bigint, name text, as_uid bigint, OUT job_id bigint, OUT file bigint)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	IF NOT sheet.workbook_is_served() THEN
		RAISE EXCEPTION 'no program runs that converts workbooks' USING ERRCODE = '55000', HINT = 'Start pg_sheet_calc.';
	END IF;
	-- Two that begin at once do not both become the last one.
	PERFORM pg_advisory_xact_lock(hashtextextended('pg_sheet workbooks', CASE WHEN as_uid < 0 THEN -workbook_begin.target ELSE as_uid END));
	-- Visitors of all links of a sheet together have what one account has.
	IF (SELECT count(*) FROM sheet.workbook_job j WHERE CASE WHEN as_uid < 0 THEN j.uid < 0 AND j.target = workbook_begin.target ELSE j.uid = as_uid END
			AND j.asked_at > now() - CASE WHEN j.state IN ('uploading', 'done') THEN interval '10 minutes' ELSE interval '1 minute' END) >= 4 THEN
		RAISE EXCEPTION '%', CASE WHEN as_uid < 0 THEN 'four workbooks of the sheet are being made for visitors'
			ELSE 'four workbooks of the account are being converted' END USING ERRCODE = '53400', HINT = 'Wait until one is done.';
	END IF;
	INSERT INTO sheet.import (name, uid) VALUES ('', as_uid) RETURNING import_id INTO workbook_begin.file;
	INSERT INTO sheet.workbook_job (kind, uid, target, name, file, state)
		VALUES (workbook_begin.kind, as_uid, workbook_begin.target, workbook_begin.name, workbook_begin.file,
			CASE WHEN workbook_begin.kind = 'import' THEN 'uploading' ELSE 'waiting' END)
		RETURNING sheet.workbook_job.job_id INTO workbook_begin.job_id;
	IF workbook_begin.kind <> 'import' THEN
		PERFORM pg_notify('sheet_workbook', '');
	END IF;
	PERFORM set_config('synchronous_commit', 'off', true);
	-- What gateways have left that ended. An upload or a download may take long; of others they ask often. Last, so that nothing
	-- waits with these locks.
	PERFORM sheet.delete_workbooks(ARRAY(SELECT j.job_id FROM sheet.workbook_job j
		WHERE j.asked_at < now() - CASE WHEN j.state IN ('uploading', 'done') THEN interval '1 day' ELSE interval '1 minute' END
		LIMIT 10 FOR UPDATE SKIP LOCKED));
END
$$;
COMMENT ON FUNCTION sheet.workbook_begin(text, bigint, text, bigint) IS
	'Asks for the conversion of a workbook. kind import: the bytes of the file follow by sheet.import_put(), then '
	'sheet.workbook_ready(). book, sheet: target becomes a file. 55000: no program converts. 53400: the account has '
	'four such jobs. For gateways.';

CREATE FUNCTION sheet.workbook_ready(job_id bigint) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE sheet.workbook_job j SET state = 'waiting', asked_at = now() WHERE j.job_id = $1 AND j.state = 'uploading';
	SELECT set_config('synchronous_commit', 'off', true);
	SELECT pg_notify('sheet_workbook', '')
$$;
COMMENT ON FUNCTION sheet.workbook_ready(bigint) IS 'All bytes of the file are there: it can be converted. For gateways.';

CREATE FUNCTION sheet.workbook_state(job_id bigint, OUT done boolean, OUT status integer, OUT answer text, OUT name text, OUT bytes bigint)
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	j sheet.workbook_job;
BEGIN
	SELECT w.* INTO j FROM sheet.workbook_job w WHERE w.job_id = workbook_state.job_id;
	done := j.state = 'done' OR j.state IS NULL;
	status := j.status;
	answer := j.answer;
	name := j.name;
	bytes := j.bytes;
	IF j.state IS NULL OR NOT done AND (j.state = 'waiting' OR j.lease_at < now()) AND NOT sheet.workbook_is_served() THEN
		done := true;
		status := 503;
	ELSIF (NOT done OR j.kind <> 'import' AND j.status = 200) AND NOT EXISTS (SELECT FROM sheet.import i WHERE i.import_id = j.file) THEN
		-- A crash of the server has removed the file, and may have taken back that it was complete.
		done := true;
		status := 503;
	ELSIF NOT done AND j.asked_at < now() - interval '5 s' THEN
		PERFORM set_config('synchronous_commit', 'off', true);
		UPDATE sheet.workbook_job w SET asked_at = now() WHERE w.job_id = (SELECT l.job_id FROM sheet.workbook_job l
			WHERE l.job_id = j.job_id FOR UPDATE SKIP LOCKED);
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.workbook_state(bigint) IS
	'Whether the job is done, and the answer to the request: its status and, of an import, its body; of a file, its name '
	'and size. 503 without an answer: no program converts any more. Jobs of which nobody asks for a minute end. For gateways.';

CREATE FUNCTION sheet.workbook_part(job_id bigint, part integer) RETURNS bytea
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT p.data FROM sheet.import_part p
	WHERE p.import_id = (SELECT j.file FROM sheet.workbook_job j WHERE j.job_id = $1) AND p.part = $2
$$;
COMMENT ON FUNCTION sheet.workbook_part(bigint, integer) IS
	'The bytes of a part of the file, from 0; null: there are no more. For gateways and programs that convert.';

CREATE FUNCTION sheet.workbook_end(job_id bigint) RETURNS void
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT set_config('synchronous_commit', 'off', true);
	SELECT sheet.delete_workbooks(ARRAY[job_id])
$$;
COMMENT ON FUNCTION sheet.workbook_end(bigint) IS
	'The request has ended: removes the job and its file. A conversion that is under way is given up. For gateways.';

-- ---- for programs that convert ----

CREATE FUNCTION sheet.workbook_take(worker text, OUT job_id bigint, OUT kind text, OUT uid bigint, OUT target bigint, OUT name text)
	RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	j sheet.workbook_job;
BEGIN
	-- One after which programs have ended twice would end others, too. A crash of the server removes files.
	UPDATE sheet.workbook_job w SET state = 'done', status = 503 WHERE w.job_id IN (SELECT l.job_id FROM sheet.workbook_job l
		WHERE l.state = 'running' AND l.lease_at < now() AND l.tries >= 2
			OR (l.state = 'waiting' OR l.state = 'running' AND l.lease_at < now())
				AND NOT EXISTS (SELECT FROM sheet.import i WHERE i.import_id = l.file)
		FOR UPDATE SKIP LOCKED);
	-- Of one account, one at a time, and one of all visitors.
	SELECT w.* INTO j FROM sheet.workbook_job w
		WHERE (w.state = 'waiting' OR w.state = 'running' AND w.lease_at < now()) AND w.asked_at > now() - interval '1 minute'
			AND NOT EXISTS (SELECT FROM sheet.workbook_job o WHERE (o.uid = w.uid OR o.uid < 0 AND w.uid < 0) AND o.state = 'running' AND o.lease_at >= now())
		ORDER BY w.job_id LIMIT 1 FOR UPDATE SKIP LOCKED;
	IF j.job_id IS NULL THEN
		RETURN;
	END IF;
	-- What a former one has made of the file.
	IF j.kind <> 'import' THEN
		DELETE FROM sheet.import_part p WHERE p.import_id = j.file;
		UPDATE sheet.import i SET parts = 0 WHERE i.import_id = j.file;
	END IF;
	UPDATE sheet.workbook_job w SET state = 'running', worker = workbook_take.worker, lease_at = now() + interval '15 s', tries = tries + 1,
		bytes = 0 WHERE w.job_id = j.job_id;
	RETURN QUERY SELECT j.job_id, j.kind, j.uid, j.target, j.name;
END
$$;
COMMENT ON FUNCTION sheet.workbook_take(text) IS
	'The job that has waited for longest, for the worker, a name that is used once; no row: there is none. It is taken by another one '
	'unless sheet.workbook_keep() is called within 15 seconds. NOTIFY sheet_workbook tells that there is one. For programs that convert.';

CREATE FUNCTION sheet.workbook_keep(workers text[]) RETURNS SETOF text
	LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	-- Renewals wait for nobody: a job that another transaction has locked is ending, or renewed the next time.
	UPDATE sheet.workbook_job j SET lease_at = now() + interval '15 s' WHERE j.job_id IN (SELECT l.job_id FROM sheet.workbook_job l
		WHERE l.worker = ANY (workers) AND l.state = 'running' FOR UPDATE SKIP LOCKED);
	SELECT j.worker FROM sheet.workbook_job j WHERE j.worker = ANY (workers) AND j.state = 'running'
$$;
COMMENT ON FUNCTION sheet.workbook_keep(text[]) IS
	'The workers still convert; returns those whose jobs are still wanted, and theirs. For programs that convert.';

CREATE FUNCTION sheet.workbook_put(job_id bigint, worker text, part integer, data bytea) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	id bigint;
BEGIN
	UPDATE sheet.workbook_job j SET bytes = bytes + octet_length(workbook_put.data)
		WHERE j.job_id = workbook_put.job_id AND j.worker = workbook_put.worker AND j.state = 'running' RETURNING j.file INTO id;
	IF id IS NULL THEN
		RAISE EXCEPTION 'the workbook is not wanted any more' USING ERRCODE = '55000';
	END IF;
	INSERT INTO sheet.import_part (import_id, part, data) VALUES (id, workbook_put.part, workbook_put.data);
END
$$;
COMMENT ON FUNCTION sheet.workbook_put(bigint, text, integer, bytea) IS
	'Stores a part of the file that is made. 55000: the worker has lost the job. For programs that convert.';

CREATE FUNCTION sheet.workbook_done(job_id bigint, worker text, status integer, answer text, name text DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	UPDATE sheet.workbook_job j SET state = 'done', status = workbook_done.status, answer = workbook_done.answer,
			name = coalesce(workbook_done.name, name)
		WHERE j.job_id = workbook_done.job_id AND j.worker = workbook_done.worker AND j.state = 'running';
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the workbook is not wanted any more' USING ERRCODE = '55000';
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.workbook_done(bigint, text, integer, text, text) IS
	'Ends the job with the answer to its request, in the transaction that makes the book. 55000: the worker has lost the '
	'job, and the transaction fails. For programs that convert.';
