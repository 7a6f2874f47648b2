\set ECHO none
-- What the tests journal_* and those of scans begin with; the helpers are not shown.
\ir journal_helpers.sql
SET client_min_messages = warning; -- no notice that it is there already, with the place of this file
CREATE EXTENSION IF NOT EXISTS pg_sheet;
RESET client_min_messages;
\set ECHO all
