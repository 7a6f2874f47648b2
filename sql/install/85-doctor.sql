-- What is open, missing or set so that a promise of the extension does not hold.

CREATE FUNCTION sheet.doctor() RETURNS TABLE (severity text, what text, detail text, advice text)
	LANGUAGE plpgsql STABLE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	preloaded boolean := current_setting('shared_preload_libraries') ~ '[[:<:]]pg_sheet[[:>:]]';
	members oid[] := (SELECT array_agg(d.objid) FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
		WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'pg_sheet');
	blocks bigint := pg_relation_size('sheet.log_batch') / current_setting('block_size')::bigint;
	newest timestamptz;
BEGIN
	-- ---- who may do what ----
	RETURN QUERY SELECT 'error', 'others than the extension says have a privilege',
			format('%s: %s on %s', c.grantee, c.privilege, string_agg(c.object, ', ' ORDER BY c.object)),
			'Use SELECT sheet.reset_privileges(), unless you want it so.'
		FROM sheet.privileges_changed() c WHERE c.extra GROUP BY c.grantee, c.privilege ORDER BY 3;
	RETURN QUERY SELECT 'warning', 'a privilege is missing',
			format('%s: %s on %s', c.grantee, c.privilege, string_agg(c.object, ', ' ORDER BY c.object)),
			'Use SELECT sheet.reset_privileges().'
		FROM sheet.privileges_changed() c WHERE NOT c.extra GROUP BY c.grantee, c.privilege ORDER BY 3;
	RETURN QUERY SELECT 'error', 'a role that is not a superuser owns objects of the extension',
			format('%s: %s', r.rolname, string_agg(o.object, ', ' ORDER BY o.object)),
			'Give them to the superuser who owns the rest: ALTER ... OWNER TO.'
		FROM (SELECT 'schema sheet', n.nspowner FROM pg_namespace n WHERE n.nspname = 'sheet'
			UNION ALL SELECT format('sheet.%I', c.relname), c.relowner FROM pg_class c WHERE c.oid = ANY (members)
			UNION ALL SELECT p.oid::regprocedure::text, p.proowner FROM pg_proc p WHERE p.pronamespace = 'sheet'::regnamespace) o (object, owner)
			JOIN pg_roles r ON r.oid = o.owner WHERE NOT r.rolsuper GROUP BY r.rolname ORDER BY 3;
	RETURN QUERY SELECT 'error', 'an object in schema "sheet" is not the extension''s', pg_describe_object(d.classid, d.objid, 0),
			'Drop it, or move it to another schema: queries of the extension might use it.'
		FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = 'sheet'::regnamespace AND d.deptype = 'n'
			AND d.classid <> 'pg_extension'::regclass AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = d.classid
				AND e.objid = d.objid AND e.refclassid = 'pg_extension'::regclass AND e.deptype = 'e') ORDER BY 3 LIMIT 20;
	RETURN QUERY SELECT 'error', 'sheet_gateway can do more than act for accounts', format('It has %s.', sheet.gateway_role_powers()),
			'Use ALTER ROLE sheet_gateway NOLOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION NOBYPASSRLS. Gateways connect as members of it.'
		WHERE sheet.gateway_role_powers() IS NOT NULL;
	RETURN QUERY SELECT DISTINCT 'warning', 'a role that is not a superuser can make others gateways', format('role %I is a member of sheet_gateway with ADMIN OPTION', r.rolname),
			format('Gateways act for every account. Use REVOKE ADMIN OPTION FOR sheet_gateway FROM %I, unless you trust it.', r.rolname)
		FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member JOIN pg_roles g ON g.oid = m.roleid
		WHERE g.rolname = 'sheet_gateway' AND m.admin_option AND NOT r.rolsuper ORDER BY 3;
	RETURN QUERY SELECT 'warning', 'an account is linked to a role that does not exist', format('account "%s", role "%s"', a.name, a.db_role),
			format('Create the role, or end the link with SELECT sheet.link_account(%L, NULL). A role that gets this name acts as the account.', a.name)
		FROM sheet.account a WHERE a.db_role IS NOT NULL AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = a.db_role) ORDER BY 3 LIMIT 20;

	-- ---- the server ----
	IF NOT preloaded THEN
		RETURN QUERY VALUES ('error', 'the library is not loaded at the start of the server',
			'Without it there is no cache, no gateway can follow sheets, no version is saved automatically, and no sheet is checked after a crash.',
			'Add pg_sheet to shared_preload_libraries, and restart the server.');
	ELSIF NOT pg_is_in_recovery() AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.backend_type = 'pg_sheet launcher') THEN
		RETURN QUERY VALUES ('error', 'the background worker does not run', format('max_worker_processes is %s.', current_setting('max_worker_processes')),
			'Raise max_worker_processes, and restart the server; see its log.');
	ELSIF current_setting('max_worker_processes')::integer < 6 THEN
		RETURN QUERY VALUES ('warning', 'few worker processes', format('max_worker_processes is %s. The extension uses up to 6, others take from the same number.',
			current_setting('max_worker_processes')), 'Raise max_worker_processes, and restart the server.');
	END IF;
	RETURN QUERY SELECT 'warning', 'the extension is not of the version of its files', format('%s, and %s is installed on the server', e.extversion, a.default_version),
			'Use ALTER EXTENSION pg_sheet UPDATE.'
		FROM pg_extension e JOIN pg_available_extensions a ON a.name = e.extname WHERE e.extname = 'pg_sheet' AND e.extversion <> a.default_version;
	IF getdatabaseencoding() <> 'UTF8' THEN
		RETURN QUERY VALUES ('warning', 'the encoding of the database is not UTF8', getdatabaseencoding()::text,
			'Text is not converted or checked. Restore a dump into a database whose encoding is UTF8.');
	END IF;
	RETURN QUERY SELECT 'warning', 'the collation of the database has changed', format('version %s, and the system has %s', d.datcollversion, pg_database_collation_actual_version(d.oid)),
			format('Use REINDEX DATABASE %1$I and ALTER DATABASE %1$I REFRESH COLLATION VERSION.', d.datname)
		FROM pg_database d WHERE d.datname = current_database() AND d.datcollversion <> pg_database_collation_actual_version(d.oid);
	RETURN QUERY SELECT 'error', 'a publication includes the log of sheets', format('publication %I', p.pubname), 'Drop it: rows of the log are not decoded logically, and writing them may fail.'
		FROM pg_publication p WHERE p.puballtables
			OR EXISTS (SELECT FROM pg_publication_namespace n WHERE n.pnpubid = p.oid AND n.pnnspid = 'sheet'::regnamespace)
			OR EXISTS (SELECT FROM pg_publication_rel r JOIN pg_class c ON c.oid = r.prrelid JOIN pg_am a ON a.oid = c.relam
				WHERE r.prpubid = p.oid AND c.oid = ANY (members) AND a.amname = 'sheetlog') ORDER BY 3;

	-- ---- settings: of the server, of this database, of roles that edit sheets ----
	RETURN QUERY WITH
		bad (name, pattern, severity, effect) AS (VALUES
			('fsync', '^(off|false|no|0)$', 'error', 'A crash of the machine damages the database.'),
			('full_page_writes', '^(off|false|no|0)$', 'error', 'A crash of the machine damages the database.'),
			('synchronous_commit', '^(off|false|no|0)$', 'error', 'Edits that were acknowledged are lost in a crash.'),
			('default_transaction_read_only', '^(on|true|yes|1)$', 'error', 'Edits fail.'),
			('default_transaction_isolation', '^(serializable|repeatable read)$', 'warning', 'Edits fail when others edit the same sheet.'),
			('search_path', '^(?![[:space:]]*"?pg_catalog"?[[:space:]]*(,|$)).*pg_catalog', 'error', 'What others create in a schema before pg_catalog is called instead of PostgreSQL''s own functions.'),
			('session_replication_role', '^(replica|local)$', 'warning', 'Triggers of your own do not fire.'),
			('row_security', '^(off|false|no|0)$', 'warning', 'Queries of views with policies of your own fail.'),
			('zero_damaged_pages', '^(on|true|yes|1)$', 'error', 'Damaged pages are emptied.'),
			('ignore_checksum_failure', '^(on|true|yes|1)$', 'error', 'Damaged pages are used.'),
			('statement_timeout', '^[''"]?0*[1-9]', 'warning', 'Statements that take longer fail: checks of all sheets, dumps.'),
			('transaction_timeout', '^[''"]?0*[1-9]', 'warning', 'Transactions that take longer fail: checks of all sheets, dumps.'),
			('idle_session_timeout', '^[''"]?0*[1-9]', 'warning', 'Connections of gateways end when nobody edits.'),
			('pg_sheet.allow_log_delete', '^(on|true|yes|1)$', 'error', 'The log can be deleted by SQL.'),
			('pg_sheet.stop_point', '.', 'error', 'It is for tests only.')),
		role AS (SELECT r.oid, r.rolname FROM pg_roles r WHERE r.rolsuper OR pg_has_role(r.oid, 'sheet_gateway', 'MEMBER')
			OR EXISTS (SELECT FROM sheet.account a WHERE a.db_role = r.rolname)),
		configured (here, name, value, place, how) AS (
			SELECT s.setrole = 0 OR r.rolname = session_user, split_part(c, '=', 1), substr(c, strpos(c, '=') + 1),
				concat_ws(', ', CASE WHEN s.setrole <> 0 THEN format('role %I', r.rolname) END, CASE WHEN s.setdatabase <> 0 THEN format('database %I', current_database()) END),
				CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ALTER ROLE ALL' WHEN s.setrole = 0 THEN format('ALTER DATABASE %I', current_database())
					ELSE format('ALTER ROLE %I', r.rolname) || CASE WHEN s.setdatabase <> 0 THEN format(' IN DATABASE %I', current_database()) ELSE '' END END
			FROM pg_db_role_setting s LEFT JOIN role r ON r.oid = s.setrole, unnest(s.setconfig) c
			WHERE s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) AND (s.setrole = 0 OR r.oid IS NOT NULL)),
		given (name, value, place, how) AS (
			SELECT c.name, c.value, c.place, c.how FROM configured c
			UNION ALL
			-- what a session of this role has that sets nothing itself, unless a role or database has set it
			SELECT s.name, s.reset_val, 'server', 'ALTER SYSTEM' FROM pg_settings s
			WHERE s.name NOT IN (SELECT c.name FROM configured c WHERE c.here))
		SELECT b.severity, format('%s = %s', g.name, g.value), format('%s: %s', CASE g.place WHEN '' THEN 'all roles' ELSE g.place END, b.effect),
			CASE g.how WHEN 'ALTER SYSTEM' THEN format('Change it in postgresql.conf, or by ALTER SYSTEM RESET %s, and reload.', g.name) ELSE format('Use %s RESET %s.', g.how, g.name) END
		FROM given g JOIN bad b ON b.name = g.name AND g.value COLLATE "C" ~* b.pattern ORDER BY 2, 3;

	-- ---- the tables, as after a restore ----
	RETURN QUERY SELECT 'error', 'a table has lost its access method', format('sheet.%I uses %s', c.relname, a.amname),
			format('Use ALTER TABLE sheet.%I SET ACCESS METHOD sheetlog.', c.relname)
		FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid = ANY (members) AND c.relname IN ('log_batch', 'segment', 'version', 'version_tile')
			AND a.amname <> 'sheetlog' ORDER BY 3;
	RETURN QUERY SELECT 'error', 'a table is emptied by a crash', format('sheet.%I is unlogged', c.relname), format('Use ALTER TABLE sheet.%I SET LOGGED.', c.relname)
		FROM pg_class c WHERE c.oid = ANY (members) AND c.relkind = 'r' AND c.relpersistence <> 'p' AND c.relname NOT IN ('calculator', 'gateway', 'import', 'import_part', 'workbook_job') ORDER BY 3;
	RETURN QUERY SELECT 'error', 'an index cannot be used', i.indexrelid::regclass::text, format('Use REINDEX INDEX %s.', i.indexrelid::regclass)
		FROM pg_index i WHERE i.indrelid = ANY (members) AND NOT (i.indisvalid AND i.indisready) ORDER BY 3;
	RETURN QUERY SELECT 'error', 'a table has no primary key', format('sheet.%I', c.relname), 'Create it as in the installation script, after duplicate rows are removed.'
		FROM pg_class c WHERE c.oid = ANY (members) AND c.relkind = 'r' AND c.relname NOT IN ('log_batch', 'id_range', 'file_use')
			AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) ORDER BY 3;
	RETURN QUERY SELECT 'warning', 'a trigger, rule or policy is on a table of the extension', pg_describe_object(o.class, o.oid, 0), 'Edits do not fire it: they are not written by SQL.'
		FROM (SELECT 'pg_trigger'::regclass, t.oid FROM pg_trigger t WHERE t.tgrelid = ANY (members) AND NOT t.tgisinternal AND (t.tgrelid, t.tgname) NOT IN (('sheet.timer'::regclass, 'timer_changed'), ('sheet.webhook'::regclass, 'webhook_changed'), ('sheet.account'::regclass, 'account_named'), ('sheet.calendar_object'::regclass, 'rename_object'))
			UNION ALL SELECT 'pg_policy'::regclass, p.oid FROM pg_policy p WHERE p.polrelid = ANY (members)
			UNION ALL SELECT 'pg_rewrite'::regclass, w.oid FROM pg_rewrite w WHERE w.ev_class = ANY (members) AND w.rulename <> '_RETURN') o (class, oid) ORDER BY 3;
	RETURN QUERY SELECT 'error', 'a constraint has not been checked', format('%I on %s', c.conname, c.conrelid::regclass), format('Use ALTER TABLE %s VALIDATE CONSTRAINT %I.', c.conrelid::regclass, c.conname)
		FROM pg_constraint c WHERE c.conrelid = ANY (members) AND NOT c.convalidated ORDER BY 3;
	RETURN QUERY SELECT 'error', 'a sequence is behind its table', format('sheet.%s has given out %s, and %s is in use', s.name, s.given, s.used),
			format('Use SELECT setval(''sheet.%s'', %s).', s.name, s.used)
		FROM (SELECT 'account_uid_seq', CASE WHEN is_called THEN last_value ELSE 0 END, (SELECT max(a.uid) FROM sheet.account a) FROM sheet.account_uid_seq
			UNION ALL SELECT 'file_upload_id_seq', CASE WHEN is_called THEN last_value ELSE 0 END, (SELECT max(f.upload_id) FROM sheet.file f) FROM sheet.file_upload_id_seq
			UNION ALL SELECT 'book_id_seq', CASE WHEN is_called THEN last_value ELSE 0 END, (SELECT max(b.book_id) FROM sheet.book b) FROM sheet.book_id_seq
			UNION ALL SELECT 'sheet_number_seq', CASE WHEN q.is_called THEN q.last_value ELSE q.last_value - 1 END, (
				SELECT (max(t.sheet_id) - coalesce(max(r.start), 1)) / coalesce(max(r.stride), 1)
				FROM (SELECT max(t.sheet_id) AS sheet_id FROM sheet.sheet t) t LEFT JOIN sheet.id_range r ON true)
				FROM sheet.sheet_number_seq q) s (name, given, used) WHERE s.used > s.given;

	-- ---- the timer ----
	RETURN QUERY SELECT 'warning', 'what has expired is not removed', format('kind "%s", id %s, since %s', t.kind, t.id, date_trunc('second', t.at)),
			'Nobody can use it. See the log of the server, and whether max_worker_processes has room for the timer.'
		FROM (SELECT * FROM sheet.timer ORDER BY at LIMIT 1) t WHERE preloaded AND NOT pg_is_in_recovery() AND t.at < clock_timestamp() - interval '10 minutes';

	-- ---- the clock ----
	-- The newest rows of the log are at its end, or in space that was freed.
	SELECT greatest(max(b.at), (SELECT t.created_at FROM sheet.sheet t ORDER BY t.sheet_id DESC LIMIT 1),
			(SELECT a.created_at FROM sheet.account a ORDER BY a.uid DESC LIMIT 1), (SELECT c.checkpoint_time FROM pg_control_checkpoint() c),
			pg_postmaster_start_time()) INTO newest
		FROM sheet.log_batch b WHERE b.ctid >= format('(%s,0)', greatest(blocks - 2, 0))::tid;
	IF newest > clock_timestamp() + interval '10 seconds' THEN
		RETURN QUERY VALUES ('warning', 'the clock has been set back', format('Something was stored at %s, and it is %s.', newest, date_trunc('second', clock_timestamp())),
			'Correct the clock. Edits of sheets that were edited before get times after those, until the clock has caught up.');
	END IF;
END
$$;
COMMENT ON FUNCTION sheet.doctor() IS
	'What is open to others, missing, or set so that a promise of the extension does not hold: a row for each finding. '
	'severity: error or warning. The cost does not depend on the number of sheets. Superusers and gateways, which log '
	'the findings when they start.';
