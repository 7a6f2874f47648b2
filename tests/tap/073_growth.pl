# No statement of the gateway reads more blocks in a large database than in a small one: not for a sheet with a long history, many
# versions, members, clients or files, nor for an account with many sheets, nor beside many other accounts and sheets.
#
# The statements are those of gateway/, found in its sources. One that %parameters does not know fails: add a line with the values of
# its parameters, in SQL, where $name stands for an id of %ids, and, behind a |, what has to be done before in the same transaction.
use strict;
use warnings;
use File::Find;
use FindBin;
use JSON::PP;
use lib $FindBin::Bin;
use SheetTest;
use Test::More;

# Blocks that a statement may read beyond what it reads in the small database: indexes have a level more.
my $allowance = 8;

# Blocks more for those that need more.
my %steps = (
	'links.c link_create_sql rectangle' => 20, # looks for what twenty revoked links have left, in an index that has a level more
	# search 10,000 edits, more than the small database has
	'routes_history.c history_find_sql' => 60,
	'routes_history.c history_find_sql cells' => 1200,
	# look for calendars in the index of the account's 10,000 sheets
	'api_calendars.c calendars_list_sql' => 100,
	'dav_find.c dav_calendars_sql' => 100,
	'dav_calendar.c dav_make_sql' => 100,
	# in either database 16 more in some runs: pages that earlier statements have filled with what was undone
	'api_versions.c api_commit_sql' => 20,
	'api_versions.c api_rollback_sql' => 20,
	'routes_version.c version_commit_sql' => 20,
	'routes_version.c version_rollback_sql' => 20,
	# read a calendar six to eight times, whose batches, with what was undone, lie on one page more in some runs
	'api_calendars.c calendars_add_sql' => 16,
	'api_calendars.c calendars_change_sql' => 16,
	'api_calendars.c calendars_delete_sql' => 16,
	'dav_object.c dav_put_sql' => 16,
	'dav_object.c dav_delete_sql' => 16,
	# look into indexes of series and occurrences that have a level more
	'api_sheets.c api_purge_sql' => 12,
	'routes_sheet.c sheet_purge_sql' => 12,
	# read the sheet again after each undone edit, which is larger
	'a change of a task is followed' => 200,
	'a task of many is changed' => 200,
	'a task is added to many' => 200,
	# write the places of twenty tabs again, of which earlier runs have left versions on more pages
	'api_books.c books_change_tab_sql' => 100,
	'api_books.c books_copy_tab_sql' => 100,
	'upload.c upload_begin_sql' => 40, # finds a free name among thousands of pictures by bisection
);

my $set = q{'\x01000001010000000178'}; # one edit: an "x" in the first cell
# A name may have a word behind it: the statement with other parameters.
my %parameters = (
	'access_tokens.c access_tokens_find_sql' => [q{sha256('token 7')}],
	'access_tokens.c use_sql' => [ '$token', '|UPDATE sheet.access_token SET last_used = NULL WHERE token_id = $token' ],
	'accounts.c opening_sql' => [ '$busy', '$guest', '|UPDATE sheet.member SET opened_at = opened_at - interval $$2 hours$$ WHERE sheet_id = $busy AND uid = $guest' ],
	'api_books.c books_list_sql' => [ '$rich', '20', '9007199254740991' ],
	'api_books.c books_create_sql' => [ q{'new'}, '$rich' ],
	'api_books.c books_copy_sql' => [ '$shelf', q{'copy'}, '$rich' ],
	'api_books.c books_describe_sql' => [ '$book', '$guest' ],
	'api_books.c books_rename_sql' => [ '$book', '$rich', q{'renamed'} ],
	'api_books.c books_trash_sql' => [ '$shelf', '$rich' ],
	'api_books.c books_recover_sql' => [ '$shelf', '$rich', '|SELECT sheet.trash_book($shelf)' ],
	'api_books.c books_purge_sql' => [ '$shelf', '$rich' ],
	'api_books.c books_share_sql' => [ '$shelf', '$rich', q{'account 3'}, q{'viewer'} ],
	'api_books.c books_unshare_sql' => [ '$shelf', '$rich', q{'account 2'} ],
	'api_books.c books_state_sql' => [ '$book', '$guest' ],
	'api_books.c books_members_sql' => [ '$book', '$guest', '200', '0' ],
	'api_books.c books_add_tab_sql' => [ '$book', '$rich', q{'new'}, '$tab', '10', '10' ],
	'api_books.c books_take_tab_sql' => [ '$book', '$rich', '$quiet', '$tab' ],
	'api_books.c books_take_tab_sql of another book' => [ '$shelf', '$rich', '$tab', 'NULL' ],
	'api_books.c books_copy_tab_sql' => [ '$book', '$rich', '$tab', q{'copy'} ],
	'api_books.c books_change_tab_sql' => [ '$book', '$rich', '$tab', 'true', 'NULL', q{'#1d5fbf'}, 'true' ],
	'api_books.c books_leave_sql' => [ '$book', '$rich', '$tab' ],
	'api_calendars.c calendars_add_sql' => [ '$team', q{'{"Title": "x", "Start": "2031-01-01 10:00"}'}, '$rich' ],
	'api_calendars.c calendars_answer_sql' => [ '$team', q{'daily'}, q{'accepted'}, 'NULL', '$guest' ],
	'api_calendars.c calendars_change_sql' => [ '$team', q{'daily'}, q{'{"Place": "x"}'}, q{'all'}, 'NULL', q{'{"Place": ""}'}, '$rich' ],
	'api_calendars.c calendars_choose_sql' => [ '$team', q{'#1d5fbf'}, '$rich' ],
	'api_calendars.c calendars_create_sql' => [ q{'new'}, q{'Europe/Berlin'}, '$rich' ],
	'api_calendars.c calendars_delete_sql' => [ '$team', q{'daily'}, q{'this'}, q{'2031-01-02 09:00'}, '$rich' ],
	'api_calendars.c calendars_dots_sql' => [ '$guest', q{'2031-01'}, q{'UTC'} ],
	'api_calendars.c calendars_entries_sql' => [ q{'{$team}'}, q{'2031-01-01'}, q{'2031-02-01'}, '$guest' ],
	'api_calendars.c calendars_list_sql' => ['$rich'],
	'api_calendars.c calendars_set_sql' => [ '$team', '$rich' ],
	'api_calendars.c reminders_dismiss_sql' => [ 'ARRAY[1, 2]', '$rich' ],
	'api_calendars.c reminders_list_sql' => ['$rich'],
	'api_calendars.c calendars_task_sql' => [ '$team', q{'daily'}, q{'2031-01-02 09:00'}, '$rich' ],
	'api_cells.c write_cells_sql' => [ '$busy', $set, '$last - 5', 'false', 'true', '$guest' ],
	'api_cells.c write_cells_sql append' => [ '$busy', $set, 'NULL', 'true', 'true', '$guest' ],
	'api_cells.c link_write_sql' => [ $set, '3', '3', 'true', '-$rect' ],
	'api_sheets.c api_create_sql' => [ q{'new'}, '10', '10', 'NULL', '$rich' ],
	'api_sheets.c api_describe_sql' => [ '$busy', '$guest' ],
	'api_sheets.c api_files_sql' => ['$quiet'],
	'api_sheets.c api_list_sql' => [ '$rich', '200', 'NULL' ],
	'api_sheets.c api_purge_sql' => [ '$quiet', '$rich' ],
	'api_sheets.c api_recover_sql' => [ '$busy', '$rich', '|SELECT sheet.trash($busy)' ],
	'api_sheets.c api_share_sql' => [ '$busy', q{'account 3'}, q{'viewer'}, '$rich' ],
	'api_sheets.c api_trash_sql' => [ '$busy', '$rich' ],
	'api_sheets.c api_unshare_sql' => [ '$busy', q{'account 4'}, '$rich' ],
	'api_tokens.c token_create_sql' => [ q{'new'}, q{'{read}'}, '90', '$guest' ],
	'api_tokens.c token_list_sql' => ['$guest'],
	'api_tokens.c token_revoke_sql' => [ '$token', '$rich' ],
	'api_versions.c api_commit_sql' => [ '$busy', q{'label'}, '$rich', '|SELECT sheet.set($busy, 0, 0, clock_timestamp()::text)' ],
	'api_versions.c api_diff_sql' => [ '$busy', '$version', '0', '$rich', '-1', '-1', '200' ],
	'api_versions.c api_rollback_sql' => [ '$busy', '$version', '$rich' ],
	'commit.c apply_sql' => [ '$busy', $set, '$last', 'NULL', '5', '7', 'NULL', 'true' ],
	'commit.c apply_sql newcomer' => [ '$busy', $set, '$last', 'NULL', '5', '7', 'ARRAY[$guest, 987654321, 1, 1]', 'true' ],
	'workbook_export.c workbook_link_sql' => ['-1'],
	'workbook_export.c workbook_published_sql' => [q{sha256('key')}],
	'workbook_export.c workbook_book_sql' => [ '$book', '$rich' ],
	'workbook_export.c workbook_export_sql' => [ q{'book'}, '$book', '$rich', q{|SELECT sheet.report_calculator('here')} ],
	'workbook_export.c workbook_part_sql' => [ '$job', '0' ],
	'workbook_import.c workbook_begin_sql' => [ q{'new'}, '$rich', q{|SELECT sheet.report_calculator('here')} ],
	'workbook_import.c workbook_put_sql' => [ '$import', '0', q{'bytes'} ],
	'workbook_import.c workbook_ready_sql' => ['$job'],
	'workbook_jobs.c workbook_end_sql' => ['$job'],
	'workbook_jobs.c workbook_state_sql' => ['$job'],
	'webhook_routes.c webhook_change_sql' => [ '$busy', '$rich', '0', q{'https://example.org/'}, 'true' ],
	'webhook_routes.c webhook_create_sql' => [ '$busy', q{'https://example.org/'}, '$rich' ],
	'webhook_routes.c webhook_delete_sql' => [ '$busy', '$rich', '0' ],
	'webhook_routes.c webhook_test_sql' => [ '$busy', '$rich', '0' ],
	'webhook_routes.c webhooks_list_sql' => [ '$busy', '$rich' ],
	'webhooks.c end_sql' => [ '0', '1', '1', q{'delivered'}, '200', 'NULL', '0', q{|SELECT sheet.create_webhook($busy, 'https://example.org/')} ],
	'webhooks.c take_sql' => [ 'ARRAY[$busy]', '8', '30000', 'ARRAY[$rich]', q{ARRAY['example.org']}, q{|SELECT sheet.create_webhook($busy, 'https://example.org/'); SELECT sheet.set($busy, 0, 0, clock_timestamp()::text)} ],
	'webhooks.c watched_sql' => ['0'],
	'v1_stream.c name_sql' => ['$rich'],
	'mail.c take_sql' => [ q{'a@example.org'}, q{'http://here'}, q{'{}'}, q{|SELECT due($guest)} ],
	'mail.c take_sql none is due' => [ q{'a@example.org'}, q{'http://here'}, q{'{}'} ],
	'mail.c lock_sql' => ['1'],
	'mail.c end_sql' => [ 'lastval()', 'true', q{|SELECT due($guest)} ],
	'commit.c tail_sql' => [ '$busy', '$last - 5' ],
	'coord_postgres.c acquire_sql' => [q{'here'}],
	'coord_postgres.c heartbeat_sql' => [],
	'coord_postgres.c holder_sql' => [],
	'csv_export.c export_sql' => [ '$busy', '$guest', 'NULL', 'true', q{'tsv'}, 'false' ],
	'csv_import.c import_abort_sql' => ['$import'],
	'csv_import.c import_begin_sql' => [ q{'new'}, 'NULL', '$rich' ],
	'csv_import.c import_into_sql' => [ '$busy', '$rich' ],
	'csv_import.c import_end_sql' => [ '$import', 'NULL', 'NULL', q{'csv'}, q{','}, 'NULL', 'true', 'NULL', 'true', 'NULL', q{|SELECT sheet.import_put($import, 0, 'a,b')} ],
	'csv_import.c import_end_sql into' => [ '$import', '$busy', q{'A1'}, q{'csv'}, q{','}, 'NULL', 'true', 'NULL', 'true', q{'dmy'}, q{|SELECT sheet.import_put($import, 0, clock_timestamp()::text::bytea)} ],
	'csv_import.c import_tab_sql' => [ '$book', q{'new'}, '$rich' ],
	'csv_import.c import_end_tab_sql' => [ '$import', '$book', 'NULL', q{'csv'}, q{','}, 'NULL', 'true', 'NULL', 'true', 'NULL', q{'of rows'}, '$tab', '$rich', q{|SELECT sheet.import_put($import, 0, 'a,b')} ],
	'csv_import.c import_put_sql' => [ '$import', '0', q{'bytes'} ],
	'database.c database_works_sql' => [ '1', q{'pg_sheet group'} ],
	'database.c database_cancel_sql' => [ '1', q{'pg_sheet blocks'} ],
	'doctor.c doctor_sql' => [],
	'download.c download_info_sql' => [ '$busy', q{'file 7'}, '$guest', q{sha256('')} ],
	'download.c download_public_sql' => [ q{sha256('key')}, q{'file 7'} ],
	'routes_files.c files_sql' => [ '200', '9007199254740992', '$rich' ],
	'routes_files.c files_delete_sql' => [ '$file', '$rich' ],
	'download.c download_part_sql' => [ '$file', '0' ],
	'command.c sql' => [],
	'command.c admin_sql' => [q{'here:1'}],
	# not to be explained: these set and read settings
	map({ ("pgsession.c $_" => undef) } '"SELECT %s"', '"SELECT 1"', 'check_begin_sql', 'setup_durable_sql'),
	'follow.c follow_sql' => [ '5', 'NULL', '0' ],
	'health.c sql' => [],
	'held.c held_sql' => ['ARRAY[$busy]'],
	'guests.c enter_sql' => [ q{sha256('key')}, q{'Zoe'} ],
	'guests.c target_sql' => ['-$rect'],
	'guests.c uses_sql' => [ '$link', '3' ],
	'published_links.c published_sql' => [q{sha256('key')}],
	'cached_range.c link_sql' => [ '$busy', '$rect', '1000000' ],
	'cached_range.c html_link_sql' => [ '$busy', '$rect', '1000000' ],
	'cached_range.c html_sql' => [ '$busy', '0', '0', '9', '9', '1000000', 'true' ],
	'links.c links_list_sql' => [ '$busy', '$rich' ],
	'links.c link_create_sql' => [ '$quiet', q{'viewer'}, q{'2033-05-18T03:33:20Z'}, 'NULL', 'NULL', 'NULL', '$rich', q{'https://example.org'}, 'true', 'NULL' ],
	'links.c link_create_sql rectangle' => [ '$busy', q{'viewer'}, q{'2033-05-18T03:33:20Z'}, q{'A1:B2'}, 'NULL', 'NULL', '$rich', 'NULL', 'false', 'NULL' ],
	'links.c link_change_sql' => [ '$busy', '$rich', '$shared', q{'editor'}, q{'2033-05-18T03:33:20Z'}, 'NULL', q{'label'}, 'false', q{'https://example.org'}, 'true' ],
	'links.c link_revoke_sql' => [ '$busy', '$rich', '$shared' ],
	'links.c link_revoke_sql rectangle' => [ '$busy', '$rich', '$rect' ],
	'log_stream.c log_sql' => [ '$busy', '$version', '$guest', '0', '100' ],
	'account.c account_get_sql' => [ '$rich', '5' ],
	'pastes.c paste_create_sql' => [ q{'twenty bytes of text'}, q{'title'}, q{'csv'}, '60', q{'192.0.2.1'}, '$rich' ],
	'pastes.c paste_get_sql' => [ q{'aaaaaaaaaaaaaaaaaaaaaaaaaa'}, '1' ],
	'paste_cache.c paste_viewed_sql' => [ q{'aaaaaaaaaaaaaaaaaaaaaaaaaa'}, '7' ],
	'account.c account_get_sql guest' => [ '-$link', '5' ],
	'report.c sql' => [ q{'here:1'}, '1', q{'serving'}, '2', '3', '4', q{'http://here:2'} ],
	'room.c room_claim_sql' => [ '$busy', '9', q{'here'}, 'true' ],
	'room.c room_measure_sql' => ['$busy'],
	'room.c room_release_sql' => [ '$busy', '9' ],
	'routes_account.c account_create_sql' => [ q{'newcomer'}, 'NULL', q{'hash'} ],
	'routes_account.c account_find_sql' => [q{'account 3'}],
	'routes_account.c account_rename_sql' => [ '$guest', q{'renamed'} ],
	'routes_account.c account_sheets_sql' => [ '$rich', '200', 'NULL' ],
	'routes_password.c password_find_sql' => [q{'account 3'}],
	'routes_password.c password_revoke_sql' => ['$guest'],
	'routes_password.c session_end_sql' => [ '$guest', '5', '2000000000', '$rich', '6', '2000000000' ],
	'routes_password.c password_set_sql' => [ '$guest', q{'hash'} ],
	'routes_sheet.c sheet_create_sql' => [ q{'new'}, '10', '10', 'NULL', '$rich' ],
	'routes_sheet.c sheet_files_sql' => ['$quiet'],
	'routes_sheet.c sheet_info_sql' => [ '$busy', '$guest' ],
	'routes_share.c sheet_open_link_sql' => [ '$busy', q{sha256('key')}, '$guest' ],
	'routes_sheet.c sheet_purge_sql' => [ '$quiet', '$rich' ],
	'routes_sheet.c sheet_recover_sql' => [ '$busy', '$rich', '|SELECT sheet.trash($busy)' ],
	'routes_share.c sheet_share_link_sql' => [ '$busy', q{'viewer'}, '$rich' ],
	'routes_share.c sheet_share_sql' => [ '$busy', q{'account 3'}, q{'viewer'}, '$rich' ],
	'routes_history.c history_log_sql' => [ '$busy', '$guest', '$last', '200' ],
	'routes_history.c history_find_sql' => [ '$busy', '$guest', '$last', '200', '$guest', '$guest', '-1', '16777215', '-1', '16383' ],
	'routes_history.c history_find_sql cells' => [ '$busy', '$guest', '9007199254740992', '200', '-9223372036854775808', '9223372036854775807', '3', '3', '3', '3' ],
	'routes_share.c sheet_access_sql' => [ '$busy', '$rich', '200', '0' ],
	'routes_history.c history_versions_sql' => [ '$busy', '$guest', '9007199254740992', '200' ],
	'routes_sheet.c sheet_rename_sql' => [ '$busy', q{'renamed'}, '$rich' ],
	'routes_sheet.c sheet_trash_sql' => [ '$busy', '$rich' ],
	'routes_share.c sheet_unshare_sql' => [ '$busy', q{'account 4'}, '$rich' ],
	'routes_sheet.c sheet_versions_sql' => ['$busy'],
	'routes_version.c version_label_sql' => [ '$busy', '$version', q{'label'}, '$rich' ],
	'routes_version.c version_commit_sql' => [ '$busy', q{'label'}, '$rich', 'NULL', '|SELECT sheet.set($busy, 0, 0, clock_timestamp()::text)' ],
	'routes_version.c version_check_sql' => [ '$busy', '$guest' ],
	'routes_version.c version_rollback_sql' => [ '$busy', '$version', '$rich', 'NULL' ],
	'v1_session.c refusal_sql' => [ '$busy', '0', '0' ],
	'admission.c check_sql' => [ '$busy', '$guest', '5', 'NULL' ],
	'admission.c check_sql guest' => [ '$quiet', '-$link', '5', 'NULL' ],
	'admission.c check_sql program' => [ '$busy', '$rich', '0', q{sha256('token 7')} ],
	'admission.c link_sql' => [ '$busy', q{sha256('key')}, '$guest' ],
	'snapshot.c head_present_sql' => ['$busy'],
	'snapshot.c head_version_sql' => [ '$busy', '$version' ],
	'snapshot.c snapshot_long_sql' => ['$busy'],
	'snapshot.c snapshot_short_sql' => ['$busy'],
	'snapshot.c snapshot_version_sql' => [ '$busy', '$version' ],
	'snapshot.c snapshot_version_sql old' => [ '$busy', '7' ],
	'upload.c upload_abort_sql' => ['$upload'],
	'upload.c upload_begin_sql' => [ '$busy', q{'picture.png'}, 'NULL', '$rich', '100' ],
	'upload.c upload_end_sql' => [ '$upload', q{'digest'}, q{|SELECT sheet.file_put($upload, 0, 'bytes')} ],
	'upload.c upload_put_sql' => [ '$upload', '0', q{'bytes'} ],
	'dav.c dav_find_sql' => [ q{'work'}, '$rich' ],
	'dav_calendar.c dav_make_sql' => [ q{'work'}, 'NULL', 'NULL', q{'#1d5fbf'}, '$rich' ],
	'dav_calendar.c dav_patch_sql' => [ '$calendar', q{'renamed'}, q{'#1d5fbf'}, '$poor' ],
	'dav_calendar.c dav_trash_sql' => [ '$calendar', '$poor' ],
	'dav_find.c dav_email_sql' => ['$rich'],
	'dav_find.c dav_calendars_sql' => ['$rich'],
	'dav_find.c dav_calendar_sql' => [ '$calendar', '$poor' ],
	'dav_find.c dav_list_sql' => [ '$calendar', '$poor' ],
	'dav_find.c dav_object_sql' => [ '$calendar', q{'1.ics'}, '$poor' ],
	'dav_report.c dav_get_sql' => [ '$calendar', 'NULL', '$poor' ],
	'dav_report.c dav_etags_sql' => [ '$calendar', 'NULL', '$poor' ],
	'dav_report.c dav_span_sql' => [ '$calendar', q{'2027-01-01'}, q{'2027-02-01'}, '$poor' ],
	'dav_report.c dav_span_etags_sql' => [ '$calendar', q{'2027-01-01'}, q{'2027-02-01'}, '$poor' ],
	'dav_report.c dav_expand_sql' => [ '$calendar', q{'2027-01-01'}, q{'2027-02-01'}, '$poor' ],
	'dav_report.c dav_busy_sql' => [ '$calendar', q{'2027-01-01'}, q{'2027-02-01'}, '$poor' ],
	'dav_report.c dav_changes_sql' => [ '$calendar', 'sheet.calendar_token($calendar)', '$poor' ],
	'dav_report.c dav_changes_data_sql' => [ '$calendar', 'sheet.calendar_token($calendar)', '$poor' ],
	'dav_report.c dav_multiget_sql' => [ '$calendar', q{'{1.ics,none}'}, q{'{a,b}'}, '$poor' ],
	'dav_report.c dav_uid_sql' => [ '$calendar', q{'1'}, '$poor' ],
	'dav_object.c dav_read_sql' => [ '$calendar', q{'1.ics'}, '$poor' ],
	'dav_object.c dav_put_sql' => [ '$calendar', q{'new.ics'}, q{object(0)}, 'NULL', 'NULL', '$poor' ],
	'dav_object.c dav_delete_sql' => [ '$calendar', q{'1.ics'}, 'NULL', '$poor' ],
	'dav_feed.c feed_sql' => [ q{sha256('calendar')}, 'NULL' ],
	'v2_block.c block_sql' => [ '$busy', '0', '0', '9', '9' ],
	'v2_join.c state_sql' => [ '$busy', '$guest', '7' ],
	'v2_join.c tail_sql' => [ '$busy', '$last - 5', '4194304' ],
	'v2_join.c user_sql' => [ '$busy', '$stranger' ],
	'v2_large_block.c streaming_sql' => [ '$busy', '0', '0', '9', '9' ],
	'cached_range.c range_sql' => [ '$busy', '0', '0', '9', '9', '1000000', 'true' ],
);

# Changes of a calendar that has many tasks: a statement that runs first, and the one that is measured.
my %changes = (
	'a change of a task is followed' => [ q{SELECT sheet.set($other, 'B8', '2027-03-01 10:00')}, 'SELECT sheet.refresh_calendar($other)' ],
	'a task of many is changed' => [ '', q{SELECT sheet.change_task($other, (SELECT t.task_uid FROM sheet.task t WHERE t.sheet_id = $other AND t.row_no = 7), '{"Place": "x"}')} ],
	'a task is added to many' => [ '', q{SELECT sheet.add_task($other, '{"Title": "x", "Start": "2027-01-01 10:00"}')} ],
	'values are stored' => [ '', q{SELECT sheet.put_values($busy, sheet.last_seq($busy), '{0,1}', '{0,1}', '{2,3}')} ],
	'a workbook is taken' => [ 'SELECT sheet.workbook_ready($job)', q{SELECT * FROM sheet.workbook_take('here')} ],
	'a workbook is kept' => [ 'SELECT sheet.workbook_ready($job)', q{SELECT sheet.workbook_keep(ARRAY['here'])} ],
	'all values are stored' => [ '', q{SELECT sheet.put_values($busy, sheet.last_seq($busy), '{0,1}', '{0,1}', '{2,3}', whole => true)} ],
	'a sheet to compute' => [ '', 'SELECT * FROM sheet.to_compute(ARRAY[$busy])' ],
	'values that depend on a tab are stored' => [ '', q{SELECT sheet.put_values($busy, sheet.last_seq($busy), '{0,1}', '{0,1}', '{2,3}', source_ids => ARRAY[$tab, 0], source_seqs => '{1,0}')} ],
	'sheets that depend on a tab' => [ '', q{SELECT * FROM sheet.to_compute('{}', ARRAY[$tab, $quiet])} ],
	'the tabs that formulas may read' => [ '', 'SELECT * FROM sheet.tabs_to_read($tab, ARRAY[$busy, $tab])' ],
	'the next sheets to compute again' => [ '', q{SELECT * FROM sheet.to_compute_again('-infinity', 0, 10)} ],
	'a page of the sheets with formulas' => [ '', 'SELECT * FROM sheet.computed_sheets(0, 10)' ],
	'values of a range' => [ '', q{SELECT value FROM sheet.range($busy, 'A1:B2')} ],
);

# What people ask for by SQL: one who has one sheet, and one who has many.
my %queries = (
	'poor sheet.list' => 'SELECT count(*) FROM sheet.list',
	'poor a sheet of sheet.list' => 'SELECT * FROM sheet.list WHERE sheet_id = $quiet',
	'poor the end of sheet.log' => 'SELECT * FROM sheet.log WHERE sheet_id = $quiet ORDER BY seq DESC LIMIT 100',
	'poor sheet.log of all sheets' => 'SELECT count(*) FROM sheet.log',
	'poor sheet.versions' => 'SELECT count(*) FROM sheet.versions($quiet)',
	'poor sheet.cells' => 'SELECT count(*) FROM sheet.cells',
	'guest a sheet of sheet.list' => 'SELECT * FROM sheet.list WHERE sheet_id = $busy',
	'guest the end of sheet.log' => 'SELECT * FROM sheet.log WHERE sheet_id = $busy ORDER BY seq DESC LIMIT 100',
	'guest a sheet of sheet.cells' => 'SELECT count(*) FROM sheet.cells WHERE sheet_id = $busy',
	'guest a row in a sheet of which links to rectangles were revoked' => 'SELECT sheet.insert_rows($busy, 0, 1)',
	'guest sheet.books' => 'SELECT count(*) FROM sheet.books WHERE book_id = $book',
	'guest the tabs of a book' => 'SELECT * FROM sheet.tabs($book)',
	'guest the cells of a tab by its name' => q{SELECT count(*) FROM sheet.cells WHERE sheet_id = sheet.tab($book, 'SHEET 2')},
	'guest an edit by SQL' => q{SELECT sheet.set($busy, 'A1', 'of a guest')},
);

# name of the file and of the constant => text
sub gateway_statements
{
	my %statements;
	find(
		{
			no_chdir => 1,
			wanted => sub {
				return unless m{/([^/]+\.[ch])$} && !m{/web/};
				my $file = $1;
				open my $handle, '<', $_ or die;
				my $source = join '', <$handle>;
				$source =~ s{/\*.*?\*/}{}gs;
				while ($source =~ /(?:(\w+)\[\]\s*=\s*)?((?:"(?:[^"\\\n]|\\.)*"\s*)+)/g)
				{
					my ($name, $literals) = ($1, $2);
					my $text = join '', $literals =~ /"((?:[^"\\]|\\.)*)"/g;
					next unless $text =~ /^\s*((?i:SELECT|INSERT|UPDATE|DELETE)|MERGE|WITH|VALUES|TABLE|CALL|DO|COPY|SET|LISTEN|NOTIFY)\s/;
					$text =~ s/\\(.)/$1/g;
					$statements{ "$file " . ($name // "\"$text\"") } = $text;
				}
			}
		},
		"$FindBin::Bin/../../gateway");
	return %statements;
}

# ---- the two databases ------------------------------------------------------------------------------------------------------

# The indexes of the small one have two levels, as those of the large one: what differs is what grows.
my %sizes = (
	small => { accounts => 500, sheets => 500, own => 500, edits => 2000, versions => 1100, members => 500, files => 2000, clients => 500, tasks => 400 },
	large => { accounts => 5000, sheets => 20000, own => 10000, edits => 60000, versions => 3000, members => 5000, files => 10000, clients => 5000, tasks => 4000 },
);

sub fill
{
	my ($node, $database, $size) = @_;
	$node->safe_psql($database, <<SQL);
INSERT INTO sheet.account (name) SELECT 'account ' || n FROM generate_series(1, $size->{accounts}) n;
INSERT INTO sheet.access_token (uid, digest, label, scopes) SELECT a.uid, sha256(convert_to('token ' || n, 'UTF8')), 'token', '{read}' FROM generate_series(1, $size->{accounts}) n, sheet.account a WHERE a.name = 'account ' || 1 + n % 50 * 7;
CREATE TABLE ids (name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO ids SELECT v.name, a.uid FROM (VALUES ('rich', 1), ('guest', 2), ('stranger', 5), ('poor', 6)) v(name, n) JOIN sheet.account a ON a.name = 'account ' || n;
CREATE FUNCTION id(text) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT value FROM ids WHERE name = \$1';
CREATE ROLE poor_$database;
CREATE ROLE guest_$database;
SELECT sheet.link_account('account 6', 'poor_$database'), sheet.link_account('account 2', 'guest_$database');
INSERT INTO ids SELECT 'token', min(token_id) FROM sheet.access_token WHERE uid = id('rich');
INSERT INTO ids SELECT 'busy', sheet.create('busy', 10, 10, as_uid => id('rich'));
INSERT INTO ids SELECT 'quiet', sheet.create('quiet', 10, 10, as_uid => id('rich'));
SELECT sheet.share(id('quiet'), 'account 6', 'editor');
DO \$\$
DECLARE
	busy bigint := id('busy');
BEGIN
	FOR i IN 1 .. $size->{sheets} LOOP
		PERFORM sheet.create('sheet ' || i, 10, 10, as_uid => CASE WHEN i <= $size->{own} THEN id('rich') ELSE (SELECT min(uid) + 9 + i % 100 FROM sheet.account) END);
		IF i % 1000 = 0 THEN COMMIT; END IF;
	END LOOP;
	FOR i IN 1 .. $size->{edits} LOOP
		PERFORM sheet.set(busy, i % 10, i / 10 % 10, i::text);
	END LOOP;
	FOR i IN 1 .. $size->{versions} LOOP
		PERFORM sheet.set(busy, 3, 3, 'v' || i);
		PERFORM sheet.commit(busy);
	END LOOP;
END
\$\$;
SELECT count(sheet.share(id('busy'), a.name, 'editor')) FROM sheet.account a WHERE a.name NOT IN ('account 1', 'account 5', 'account 6') AND a.uid < (SELECT min(uid) + $size->{members} FROM sheet.account);
SELECT count(sheet.share(s.sheet_id, 'account 2', 'editor')) FROM sheet.sheet s WHERE s.owner = id('rich') AND s.name LIKE 'sheet %';
-- Books of twenty tabs, one of two, and others without. A new tab is shared with each member of its book, so there are as many in both databases.
INSERT INTO sheet.book (name, owner) SELECT 'book ' || n, id('rich') FROM generate_series(1, $size->{own}) n;
INSERT INTO ids SELECT 'book', min(book_id) FROM sheet.book;
INSERT INTO ids SELECT 'shelf', max(book_id) FROM sheet.book;
INSERT INTO sheet.book_tab (sheet_id, book_id, place) SELECT sheet_id, id('book') + n / 20, n % 20 + 1
	FROM (SELECT sheet_id, row_number() OVER (ORDER BY sheet_id) - 1 AS n FROM sheet.sheet WHERE owner = id('rich') AND name LIKE 'sheet %') s;
INSERT INTO ids SELECT 'tab', sheet_id FROM sheet.book_tab WHERE book_id = id('book') AND place = 2;
INSERT INTO sheet.book_member SELECT book_id, id('rich'), 'owner' FROM sheet.book;
INSERT INTO sheet.book_member SELECT book_id, id('guest'), 'editor' FROM sheet.book;
INSERT INTO sheet.book_member SELECT id('book'), a.uid, 'viewer' FROM sheet.account a WHERE a.name IN ('account 11', 'account 12', 'account 13');
SELECT sheet.add_tab(id('shelf'), 'shelf ' || n) FROM generate_series(1, 2) n;
-- A calendar that is changed is read from its batches several times, which costs more if they lie on two pages. So they begin a page.
CREATE PROCEDURE begin_log_page() LANGUAGE plpgsql AS \$\$
DECLARE
	bytes bigint := pg_relation_size('sheet.log_batch');
BEGIN
	LOOP
		PERFORM sheet.set(id('filler'), 0, 0, repeat(clock_timestamp()::text, 10));
		COMMIT;
		EXIT WHEN pg_relation_size('sheet.log_batch') > bytes;
	END LOOP;
END \$\$;
-- Each sheet has formulas, and values of them that nobody computes.
INSERT INTO sheet.computed SELECT sheet_id, 1, now() + interval '1 hour' FROM sheet.sheet ON CONFLICT DO NOTHING;
INSERT INTO sheet.value SELECT sheet_id, 0, '\\x000231' FROM sheet.sheet;
INSERT INTO ids SELECT 'filler', sheet.create('filler', 10, 10, as_uid => id('stranger'));
CALL begin_log_page();
INSERT INTO ids SELECT 'team', sheet.create_calendar('team', 'UTC', id('rich'));
SELECT sheet.share(id('team'), 'account 2', 'viewer');
SELECT sheet.set_range(id('team'), 'A2', ARRAY[['daily', '2031-01-01 09:00', '1 h', 'FREQ=DAILY;COUNT=10', 'account 1, account 2', '', '', '', '', '', '', 'daily']]);
SELECT sheet.refresh_calendar(id('team'));
INSERT INTO sheet.outbox (uid, sheet_id, task_uid, starts_at, ends_at, all_day, zone, title, place, mail_at)
	SELECT id('rich'), id('team'), 'daily', now(), now(), false, 'UTC', 'x', '', CASE n % 2 WHEN 0 THEN now() + interval '1 day' END FROM generate_series(1, $size->{edits}) n;
INSERT INTO sheet.notice SELECT outbox_id, uid, sheet_id, task_uid, starts_at, ends_at, all_day, zone, title, place, created_at FROM sheet.outbox;
INSERT INTO sheet.mailed SELECT uid, now()::date, 1 FROM sheet.account;
UPDATE sheet.account SET email = 'guest\@example.org' WHERE uid = id('guest');
CREATE FUNCTION due(uid bigint) RETURNS void LANGUAGE sql AS \$\$INSERT INTO sheet.outbox (uid, sheet_id, task_uid, starts_at, ends_at, all_day, zone, title, place)
	SELECT uid, id('team'), 'daily', now(), now(), false, 'UTC', 'x', ''\$\$;
INSERT INTO sheet.file (sheet_id, name, uid, size, etag) SELECT id('busy'), CASE n % 2 WHEN 0 THEN 'file ' || n ELSE 'picture (' || n / 2 + 2 || ').png' END, id('rich'), 1, '' FROM generate_series(1, $size->{files}) n;
INSERT INTO sheet.file (sheet_id, name, uid, size, etag) VALUES (id('busy'), 'picture.png', id('rich'), 1, ''), (id('busy'), 'file 7', id('rich'), 1, ''), (id('quiet'), 'a', id('rich'), 1, ''), (id('quiet'), 'b', id('rich'), 1, '');
INSERT INTO sheet.file_part SELECT upload_id, 0, 'x' FROM sheet.file;
INSERT INTO sheet.file_use SELECT uid, size FROM sheet.file;
UPDATE sheet.file SET link_key = 'key' WHERE name = 'file 7';
INSERT INTO ids SELECT 'file', upload_id FROM sheet.file WHERE name = 'file 7';
INSERT INTO ids SELECT 'import', sheet.import_begin('import', NULL, id('rich'));
SELECT sheet.report_calculator('here');
INSERT INTO ids SELECT 'job', job_id FROM sheet.workbook_begin('import', NULL, 'new', id('rich'));
INSERT INTO ids SELECT 'upload', upload_id FROM sheet.file_begin(id('busy'), 'upload', NULL, 100, id('rich'));
INSERT INTO sheet.link (sheet_id, digest, role, label, created_by) SELECT s.sheet_id, CASE s.sheet_id WHEN id('quiet') THEN sha256('key') ELSE sha256(s.sheet_id::text::bytea) END, 'viewer', 'a link', 0 FROM sheet.sheet s;
INSERT INTO ids SELECT 'link', link_id FROM sheet.link WHERE sheet_id = id('quiet');
INSERT INTO ids SELECT 'shared', link_id FROM sheet.link WHERE sheet_id = id('busy');
INSERT INTO sheet.link (sheet_id, digest, role, label, created_by, revoked_at) SELECT id('busy'), sha256(convert_to('revoked ' || n, 'UTF8')), 'viewer', 'a link', id('rich'), now() FROM generate_series(1, $size->{edits}) n;
INSERT INTO ids SELECT 'rect', link_id FROM sheet.create_link(id('busy'), 'editor', ref => 'A1:C3');
INSERT INTO sheet.link_rect SELECT id('busy'), id('rect'), -n, 0, 0, 2, 2 FROM generate_series(1, $size->{edits}) n;
INSERT INTO sheet.link (sheet_id, digest, role, label, created_by, rectangle, revoked_at) SELECT id('busy'), sha256(convert_to('part ' || n, 'UTF8')), 'viewer', 'a part', id('rich'), true, now() FROM generate_series(1, $size->{clients}) n;
INSERT INTO sheet.link_rect SELECT sheet_id, link_id, 0, 0, 0, 2, 2 FROM sheet.link WHERE label = 'a part';
INSERT INTO sheet.client SELECT id('busy'), id('guest'), n, 1, now() FROM generate_series(1, $size->{clients}) n;
INSERT INTO sheet.ownership SELECT sheet_id, 3, 'here' FROM sheet.sheet ON CONFLICT DO NOTHING;
CREATE FUNCTION object(n bigint) RETURNS text LANGUAGE sql AS
	\$\$SELECT format(E'BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:%s\nDTSTART:20270104T080000Z\nSUMMARY:x\nEND:VEVENT\nEND:VCALENDAR\n', n)\$\$;
CALL begin_log_page();
INSERT INTO ids SELECT 'calendar', sheet.create_calendar('calendar', 'UTC', id('poor'));
SELECT sheet.caldav_put(id('calendar'), n || '.ics', object(n), as_uid => id('poor')) FROM generate_series(1, 10) n;
INSERT INTO sheet.calendar_object SELECT id('calendar'), 'gone ' || n, 'gone ' || n, n - $size->{edits}, now(), true FROM generate_series(1, $size->{edits}) n;
INSERT INTO ids SELECT 'other', sheet.create_calendar('other', 'UTC', id('stranger'));
SELECT sheet.set_range(id('other'), 'A2', (SELECT array_agg(ARRAY['task ' || n, to_char(timestamp '2027-01-01' + n * interval '1 h', 'YYYY-MM-DD HH24:MI')])
	FROM generate_series(1, $size->{tasks}) n));
SELECT sheet.refresh_calendar(id('other'));
UPDATE sheet.link SET digest = sha256('calendar') WHERE link_id IN (SELECT link_id FROM sheet.create_link(id('calendar')));
INSERT INTO ids SELECT 'last', r.seq FROM sheet.read_cells(id('busy'), 0, 0, 0, 0) r;
INSERT INTO ids SELECT 'version', max(version_id) FROM sheet.version WHERE sheet_id = id('busy');
SQL
	# The worker follows the calendars; what it replaces while statements are counted would be counted, too.
	$node->poll_query_until($database, q{SELECT NOT EXISTS (SELECT FROM sheet.calendar_edit) AND NOT EXISTS (SELECT FROM sheet.timer WHERE kind = 'calendar' AND at <= now())})
		or die 'the worker does not follow the calendars';
	# Index-only scans also read what is not known to be visible to all: pages with dead rows, which VACUUM leaves if they are few,
	# and those that a snapshot of the worker keeps.
	my $unclear = q{SELECT count(*) FROM pg_class WHERE relnamespace = 'sheet'::regnamespace AND relkind = 'r'
		AND relam = (SELECT oid FROM pg_am WHERE amname = 'heap') AND relallvisible < relpages};
	for my $try (1 .. 100)
	{
		$node->safe_psql($database, 'VACUUM (ANALYZE, INDEX_CLEANUP ON)');
		last if $node->safe_psql($database, $unclear) == 0;
		die 'some pages are never visible to all' if $try == 100;
	}
	$node->safe_psql($database, q{SELECT sheet.set(id('quiet'), 'A1', 'known to the cache again')});
	return split /[|\n]/, $node->safe_psql($database, 'SELECT name, value FROM ids');
}

sub filled_in
{
	my ($sql, $ids) = @_;
	$sql =~ s/\$([a-z]+)/$ids->{$1} \/\/ die "no id \$$1"/ge;
	return $sql;
}

# Blocks that a statement reads when the session has run it before, and what it does is undone. What other
# processes have just done, such as an invalidation of the catalog, adds to one run: the least of three counts.
sub blocks
{
	my ($session, $before, $statement) = @_;
	my $least;
	for my $run (1 .. 8) # plans for all parameters come with the sixth
	{
		$session->ask('BEGIN');
		$session->ask($before) if $before;
		my $explained = $session->ask("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) $statement");
		$session->ask('ROLLBACK');
		return $explained if $explained =~ /^ERROR/;
		next if $run < 6;
		my $plan = decode_json($explained)->[0]{Plan};
		my $read = $plan->{'Shared Hit Blocks'} + $plan->{'Shared Read Blocks'};
		$least = $read if !defined $least || $read < $least;
	}
	return $least;
}

sub compare
{
	my ($name, $small, $large) = @_;
	my $more = $allowance + ($steps{$name} // 0);
	return fail("$name: $small $large") if "$small$large" =~ /ERROR/;
	cmp_ok($large, '<=', $small + $more, "$name: $small blocks, $large in the large database");
}

my $node = PostgreSQL::Test::Cluster->new('growth');
$node->init;
$node->append_conf('postgresql.conf', <<CONF);
shared_preload_libraries = 'pg_sheet'
autovacuum = off
fsync = off
shared_buffers = '256MB'
pg_sheet.version_bytes = 0
pg_sheet.version_edits = 0
pg_sheet.file_quota = '1TB'
CONF
$node->start;
my (%ids, %sessions);
for my $database (sort keys %sizes)
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION pg_sheet');
	$ids{$database} = { fill($node, $database, $sizes{$database}) };
	$sessions{$database} = new_session($node, database => $database);
}

my %statements = gateway_statements();
cmp_ok(scalar keys %statements, '>', 40, 'the statements of the gateway are found');
my %constants = map { $_ => /^(\S+ (?:".*"|\S+))/ } keys %parameters;
is(join(', ', grep { !exists $parameters{$_} } sort keys %statements), '', 'this test knows all statements of the gateway');
is(join(', ', grep { !exists $statements{ $constants{$_} } } sort keys %parameters), '', 'the gateway has all statements that this test knows');
for my $name (grep { $statements{ $constants{$_} } && $parameters{$_} } sort keys %parameters)
{
	my @values = @{ $parameters{$name} };
	my $before = @values && $values[-1] =~ /^\|/ ? substr pop @values, 1 : '';
	my %blocks;
	for my $database (keys %sizes)
	{
		my $session = $sessions{$database};
		(my $id = $name) =~ s/\W/_/g;
		my $prepared = $session->ask("PREPARE $id AS $statements{ $constants{$name} }");
		# What is undone stays in the log of a calendar, too. A session goes on with the page in which it has written last.
		$session->ask('CALL begin_log_page()') if grep { /\$(team|calendar)/ } @values;
		my $execute = "EXECUTE $id" . (@values ? '(' . join(', ', @values) . ')' : '');
		$blocks{$database} = $prepared =~ /^ERROR/ ? $prepared : blocks($session, filled_in($before, $ids{$database}), filled_in($execute, $ids{$database}));
	}
	compare($name, $blocks{small}, $blocks{large});
}
for my $name (sort keys %queries)
{
	my ($role) = $name =~ /(\w+)/;
	my %blocks = map { $_ => blocks($sessions{$_}, "SET LOCAL ROLE ${role}_$_", filled_in($queries{$name}, $ids{$_})) } keys %sizes;
	compare($name, $blocks{small}, $blocks{large});
}
for my $name (sort keys %changes)
{
	my %blocks;
	for my $database (keys %sizes)
	{
		$blocks{$database} = blocks($sessions{$database}, map { filled_in($_, $ids{$database}) } @{ $changes{$name} });
	}
	compare($name, $blocks{small}, $blocks{large});
}
$_->end for values %sessions;
$node->stop;
done_testing();
