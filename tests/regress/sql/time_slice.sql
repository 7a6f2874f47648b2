-- pg_sheet.time_slice: everybody's own setting; where Linux can do it (6.12), the session's process has that slice, and its own again.
SELECT setting, unit, vartype, context, min_val, max_val FROM pg_settings WHERE name = 'pg_sheet.time_slice';
\set VERBOSITY terse
\set VERBOSITY sqlstate
SET pg_sheet.time_slice = '-1ms';
SET pg_sheet.time_slice = '101ms';
\set VERBOSITY terse
SELECT coalesce(string_to_array(substring(pg_read_file('/proc/sys/kernel/osrelease', 0, 100, true) FROM '^\d+\.\d+'), '.')::int[] >= '{6,12}'
	AND pg_read_file('/proc/self/sched', 0, 10000, true) ~ 'se\.slice', false) AS can \gset
CREATE FUNCTION pg_temp.slice_is(us bigint, can boolean) RETURNS boolean LANGUAGE sql VOLATILE AS
	$$ SELECT NOT can OR substring(pg_read_file('/proc/self/sched') FROM 'se\.slice\s*:\s*(\d+)')::bigint = us * 1000 $$;
SELECT coalesce(substring(pg_read_file('/proc/self/sched', 0, 10000, true) FROM 'se\.slice\s*:\s*(\d+)')::bigint / 1000, 0) AS own \gset
SET pg_sheet.time_slice = '0.1ms';
SHOW pg_sheet.time_slice;
SELECT pg_temp.slice_is(100, :'can');
BEGIN;
SET LOCAL pg_sheet.time_slice = '20ms';
SELECT pg_temp.slice_is(20000, :'can');
ROLLBACK;
SELECT pg_temp.slice_is(100, :'can');
RESET pg_sheet.time_slice;
SELECT pg_temp.slice_is(:own, :'can');
