-- The setting that ends, fails or holds a session at a named place.
\set VERBOSITY terse
SET pg_sheet.stop_point = 'nothing';
SET pg_sheet.stop_point = ':kill';
SET pg_sheet.stop_point = 'append-store:sleep';
SET pg_sheet.stop_point = 'append-store:error:0';
SET pg_sheet.stop_point = 'append-store:error:1x';
SET pg_sheet.stop_point = 'append-store:error append-stage';
SET pg_sheet.stop_point = 'a:wait b:wait c:wait d:wait e:wait';
SHOW pg_sheet.stop_point;
SELECT sheet.create('stop points', 10, 10) AS id \gset
-- the second passage, once
SET pg_sheet.stop_point = 'append-store:error:2';
SELECT sheet.set(:id, 'A1', 'a');
SELECT sheet.set(:id, 'A2', 'b');
SELECT sheet.set(:id, 'A2', 'b');
-- an error is passed over where it would be a PANIC
SET pg_sheet.stop_point = 'publish:error';
SELECT sheet.set(:id, 'A3', 'c');
-- nobody holds what it waits for
SET pg_sheet.stop_point = 'append-stage:wait';
SELECT sheet.set(:id, 'A4', 'd');
-- cancelled where it is looked for next; the other one is still there
SET pg_sheet.stop_point = 'append-store:error append-edits:cancel';
SELECT sheet.set(:id, 'A5', 'e');
SELECT sheet.set(:id, 'A5', 'e');
SELECT sheet.set(:id, 'A5', 'e');
RESET pg_sheet.stop_point;
SELECT a1, content FROM sheet.range(:id);
-- hidden, and for superusers
SELECT count(*) FROM pg_settings WHERE name = 'pg_sheet.stop_point';
CREATE ROLE stop_points_user;
SET ROLE stop_points_user;
SET pg_sheet.stop_point = 'append-store:kill';
RESET ROLE;
DROP ROLE stop_points_user;
SELECT sheet.purge(:id);
