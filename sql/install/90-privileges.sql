-- Who may use what: all grants of the extension. A table, a sequence or a function that is not named here is for
-- superusers alone, whatever ALTER DEFAULT PRIVILEGES has granted on new objects.
--
-- The last part of the install script. An update script ends with this part, too.

CREATE OR REPLACE FUNCTION sheet.granted(OUT grantee text, OUT privilege text, OUT kind text, OUT name text)
	RETURNS SETOF record LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT g.grantee, g.privilege, g.kind, n.name FROM (VALUES
		('public', 'USAGE', 'SCHEMA', 'sheet'),
		('public', 'USAGE', 'TYPE', 'applied logged_edit'),
		('public', 'SELECT', 'TABLE', 'books cache_stats cells links list locks log paste_stats timer_stats version_stats'),
		-- these check what the caller may do
		('public', 'EXECUTE', 'ROUTINE', 'access account_files account_sheets am_check as_table at cache_stats_read check_role column_names
			commit create create_view current_uid delete_columns delete_rows diff diff_properties export_csv file_delete file_usage fsck fsck_all
			get history import_csv import_csv_into import_file import_rows info insert_columns insert_rows label_version link_account list_column list_items lock locked locks_read
			log_edits member_role members newest_version open_link properties purge range read_cells read_csv recover rename
			change_link create_link links revoke_link
			change_webhook create_webhook delete_webhook test_webhook webhooks
			require_lock role_of rollback saved_versions sees_all set set_property set_range share share_link split tag_counts timer_stats_read trash trim
			unlock unshare version_stats_read versions'),
		('public', 'EXECUTE', 'ROUTINE', 'paste_create paste_get paste_stats_read'),
		('public', 'EXECUTE', 'ROUTINE', 'account_books add_tab book_info book_members change_tab create_book duplicate_book duplicate_tab
			move_tab purge_book recover_book rename_book share_book tab tabs trash_book unshare_book'),
		('public', 'EXECUTE', 'ROUTINE', 'create_token revoke_token tokens'),
		('public', 'EXECUTE', 'ROUTINE', 'add_task agenda answer busy calendar_columns calendar_end calendar_entries calendar_header calendar_zone change_task check_cells check_object check_persons
			check_rule check_seen common_gap create_calendar cut_rule cut_task delete_task find_task is_task_column is_text month_dots move_instances moved_cells moved_end occurrences person_item persons_of put_cells read_end read_length read_rule
			read_task read_time read_times refresh_calendar rule_until rule_without_end set_calendar task_before task_content task_from tasks time_text times_between until_text zone_time'),
		('public', 'EXECUTE', 'ROUTINE', 'caldav_calendar caldav_changes caldav_delete caldav_get caldav_list caldav_name caldav_put
			caldav_busy caldav_email caldav_find caldav_make caldav_query choose_calendar ics_zone'),
		('public', 'USAGE', 'TYPE', 'calendar_event calendar_part calendar_row task_fields'),
		('public', 'EXECUTE', 'ROUTINE', 'calendar_state calendars dismiss_reminders reminders task_info'),
		-- A sheet may be open by its id alone, so only roles that monitor the whole server see ids.
		('pg_monitor', 'SELECT', 'TABLE', 'cache_entries fsck_progress gateways'),
		('pg_monitor', 'EXECUTE', 'ROUTINE', 'cache_entries_read fsck_progress_read'),
		('sheet_gateway', 'SELECT', 'TABLE', 'gateways'),
		('sheet_gateway', 'EXECUTE', 'ROUTINE', 'account_create account_find account_get account_rename
			count_link_uses enter_link guest_left has_link last_seq link_place link_target link_write published published_cells
			account_revoke_token account_revoke_tokens account_seen account_set_password account_token_revoked apply claim client_acknowledged coordinator_acquire
			coordinator_holder doctor file_abort file_begin file_by_digest file_end file_get file_info file_list file_put follow holders import_abort import_begin
			import_end import_put open_link_digest paste_viewed read_properties read_version register_opening release report_calculator report_gateway tail'),
		('sheet_gateway', 'EXECUTE', 'ROUTINE', 'calendar_feed end_mail lock_mail take_mail take_reminders'),
		('sheet_gateway', 'EXECUTE', 'ROUTINE', 'computed_seq computed_sheets put_values tabs_to_read to_compute to_compute_again'),
		('sheet_gateway', 'EXECUTE', 'ROUTINE', 'workbook_begin workbook_done workbook_end workbook_keep workbook_part workbook_put workbook_ready
			workbook_state workbook_take'),
		('sheet_gateway', 'EXECUTE', 'ROUTINE', 'token_find token_used write_cells'),
		('sheet_gateway', 'EXECUTE', 'ROUTINE', 'end_webhook take_webhooks watched_sheets')
	) g (grantee, privilege, kind, names), regexp_split_to_table(g.names, '[[:space:]]+') n (name)
$$;
COMMENT ON FUNCTION sheet.granted() IS
	'Internal: what the extension grants, to others than the owners. A name stands for all functions of that name.';

CREATE OR REPLACE FUNCTION sheet.privileges_changed(OUT extra boolean, OUT privilege text, OUT kind text, OUT object text,
	OUT grantee text)
	RETURNS SETOF record LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH object (kind, name, object, owner, acl, standard) AS (
		SELECT 'SCHEMA', n.nspname, n.nspname::text, n.nspowner, n.nspacl, acldefault('n', n.nspowner)
		FROM pg_namespace n WHERE n.nspname = 'sheet'
		UNION ALL
		SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.relname, format('sheet.%I', c.relname), c.relowner,
			c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, c.relowner)
		FROM pg_class c WHERE c.relnamespace = 'sheet'::regnamespace AND c.relkind IN ('r', 'v', 'S')
			AND EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.classid = 'pg_class'::regclass
				AND d.objid = c.oid AND d.deptype = 'e' AND e.extname = 'pg_sheet')
		UNION ALL
		SELECT 'ROUTINE', p.proname, p.oid::regprocedure::text, p.proowner, p.proacl, acldefault('f', p.proowner)
		FROM pg_proc p WHERE p.pronamespace = 'sheet'::regnamespace
			AND EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.classid = 'pg_proc'::regclass
				AND d.objid = p.oid AND d.deptype = 'e' AND e.extname = 'pg_sheet')
		UNION ALL
		SELECT 'TYPE', t.typname, format('sheet.%I', t.typname), t.typowner, t.typacl, acldefault('T', t.typowner)
		FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
		-- Without types of arrays, which take no privileges, and of the rows of tables. Only PostgreSQL 17 and later
		-- have them as members of an extension.
		WHERE t.typnamespace = 'sheet'::regnamespace AND coalesce(c.relkind, 'c') = 'c'
			AND NOT EXISTS (SELECT FROM pg_type e WHERE e.typarray = t.oid)
			AND EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.classid = 'pg_type'::regclass
				AND d.objid = t.oid AND d.deptype = 'e' AND e.extname = 'pg_sheet')),
	actual (kind, object, grantee, privilege, grantable) AS (
		SELECT o.kind, o.object, a.grantee, a.privilege_type, a.is_grantable
		FROM object o, aclexplode(coalesce(o.acl, o.standard)) a
		UNION
		SELECT 'TABLE', format('sheet.%I', c.relname), a.grantee, a.privilege_type, a.is_grantable
		FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid, aclexplode(t.attacl) a
		WHERE c.relnamespace = 'sheet'::regnamespace AND t.attacl IS NOT NULL),
	wanted (kind, object, grantee, privilege, grantable) AS (
		SELECT o.kind, o.object, a.grantee, a.privilege_type, a.is_grantable
		FROM object o, aclexplode(o.standard) a WHERE a.grantee = o.owner
		UNION
		SELECT o.kind, o.object, coalesce(r.oid, 0), g.privilege, false
		FROM object o JOIN sheet.granted() g ON g.kind = o.kind AND g.name = o.name LEFT JOIN pg_roles r ON r.rolname = g.grantee
		WHERE r.oid IS NOT NULL OR g.grantee = 'public')
	SELECT d.extra, d.privilege, d.kind, d.object, CASE d.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(d.grantee)) END
	FROM ((SELECT true, * FROM actual EXCEPT SELECT true, * FROM wanted)
		UNION ALL (SELECT false, * FROM wanted EXCEPT SELECT false, * FROM actual)) d (extra, kind, object, grantee, privilege, grantable)
$$;
COMMENT ON FUNCTION sheet.privileges_changed() IS
	'Internal: how the privileges on the objects of the extension differ from what it grants. extra: one too many; '
	'otherwise one is missing.';

CREATE OR REPLACE FUNCTION sheet.reset_privileges() RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c record;
BEGIN
	FOR c IN SELECT * FROM sheet.privileges_changed() WHERE extra LOOP
		EXECUTE format('REVOKE %s ON %s %s FROM %s CASCADE', c.privilege, c.kind, c.object, c.grantee);
	END LOOP;
	FOR c IN SELECT * FROM sheet.privileges_changed() WHERE NOT extra LOOP
		EXECUTE format('GRANT %s ON %s %s TO %s', c.privilege, c.kind, c.object, c.grantee);
	END LOOP;
END
$$;
COMMENT ON FUNCTION sheet.reset_privileges() IS
	'Revokes every privilege on objects of the extension that it does not grant itself, and grants those that are '
	'missing. CREATE EXTENSION and ALTER EXTENSION UPDATE do so. Superusers.';

SELECT sheet.reset_privileges();
