-- Locks with names, for programs that use SQL.

-- A number is one of this sequence and 24 random bits below it (locks.c).
CREATE SEQUENCE sheet.lock_number_seq MAXVALUE 549755813887;
SELECT pg_catalog.pg_extension_config_dump('sheet.lock_number_seq', '');

CREATE FUNCTION sheet.lock(name text, wait interval DEFAULT NULL, lease interval DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_lock';
COMMENT ON FUNCTION sheet.lock(text, interval, interval) IS
	'Locks the name (1 to 123 bytes) for this session, until as many calls of unlock() or its end. '
	'Returns a number that is higher than that of every earlier owner; while the session holds the '
	'name, the same one. wait null: waits as lock_timeout says. 55P03: another session held it for '
	'longer than wait. lease (from 1 s; not in a transaction block): while it holds a name, the '
	'session ends when its client has been silent or gone for that long.';
CREATE FUNCTION sheet.lock(names text[], wait interval DEFAULT NULL, lease interval DEFAULT NULL) RETURNS bigint[]
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_lock_all';
COMMENT ON FUNCTION sheet.lock(text[], interval, interval) IS
	'Locks all of the names or none, in an order that excludes deadlocks between such calls. Returns '
	'their numbers in the order of the names.';
CREATE FUNCTION sheet.unlock(name text) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_unlock';
COMMENT ON FUNCTION sheet.unlock(text) IS
	'Takes one lock() back. SF002: this session does not hold the name.';
CREATE FUNCTION sheet.require_lock(name text, number bigint) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_require_lock';
COMMENT ON FUNCTION sheet.require_lock(text, bigint) IS
	'SF002 unless the name is locked under this number, by any session. No other session becomes '
	'the owner before the current transaction ends. Any role that was given the number may call it.';

CREATE FUNCTION sheet.locks_read(OUT name text, OUT number bigint, OUT pid integer, OUT role oid, OUT since timestamptz,
	OUT classid oid, OUT objid oid)
	RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_locks_read';
COMMENT ON FUNCTION sheet.locks_read() IS 'For the view sheet.locks.';

-- 21324 is the field by which locks.c tells its locks from others. The lock manager is read once.
CREATE VIEW sheet.locks AS
	WITH l AS MATERIALIZED (SELECT l.classid, l.objid, l.pid, l.granted FROM pg_catalog.pg_locks l
		WHERE l.locktype = 'advisory' AND l.objsubid = 21324
			AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
	SELECT n.name, n.number, n.pid, n.role::regrole::text AS role, n.since, COALESCE(w.sessions, 0) AS waiting
	FROM sheet.locks_read() n JOIN l ON l.granted AND l.pid = n.pid AND l.classid = n.classid AND l.objid = n.objid
		LEFT JOIN (SELECT classid, objid, count(*) AS sessions FROM l WHERE NOT granted GROUP BY classid, objid) w
			ON w.classid = n.classid AND w.objid = n.objid;
COMMENT ON VIEW sheet.locks IS 'Locked names of this database, and their owners.';
COMMENT ON COLUMN sheet.locks.number IS
	'as returned by sheet.lock(); null for who has not the rights of the owner''s role';
COMMENT ON COLUMN sheet.locks.pid IS 'of the owner''s session';
COMMENT ON COLUMN sheet.locks.role IS 'of the owner''s session';
COMMENT ON COLUMN sheet.locks.since IS 'when it became the owner';
COMMENT ON COLUMN sheet.locks.waiting IS 'sessions that wait for the name';

CREATE FUNCTION sheet.locked(name text) RETURNS boolean
	LANGUAGE sql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
	AS $$ SELECT EXISTS (SELECT FROM sheet.locks l WHERE l.name = locked.name) $$;
COMMENT ON FUNCTION sheet.locked(text) IS 'Does a session hold the name?';
