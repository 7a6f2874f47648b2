-- The journal: the tables of edits and versions, the functions for gateways, the views of the cache.
-- The C code addresses columns by position; storage.h lists them in this order.

CREATE TABLE sheet.log_batch (
	sheet_id bigint NOT NULL,
	first_seq bigint NOT NULL,
	last_seq bigint NOT NULL,
	segment_id bigint NOT NULL,
	at timestamptz NOT NULL,
	epoch bigint NOT NULL,
	origin bigint NOT NULL,
	batch_no bigint NOT NULL,
	data bytea NOT NULL
) USING sheetlog;
CREATE INDEX log_batch_directory ON sheet.log_batch USING sheetlog_directory (sheet_id, first_seq);
COMMENT ON TABLE sheet.log_batch IS
	'All edits, in packed batches. sheet.log shows the single edits.';
COMMENT ON COLUMN sheet.log_batch.at IS 'time of the first edit; edit i is i microseconds later';
COMMENT ON COLUMN sheet.log_batch.epoch IS 'epoch of the gateway that wrote the batch; 0: SQL';
COMMENT ON COLUMN sheet.log_batch.origin IS 'gateway that wrote the batch; 0: SQL';
COMMENT ON COLUMN sheet.log_batch.batch_no IS
	'number of the batch within its origin, to detect duplicates; 0: none';
COMMENT ON COLUMN sheet.log_batch.data IS
	'edits in the format of common/edit_codec.h, without the batch header';

CREATE TABLE sheet.segment (
	sheet_id bigint NOT NULL,
	segment_id bigint NOT NULL,
	first_seq bigint NOT NULL,
	at timestamptz NOT NULL,
	PRIMARY KEY (sheet_id, segment_id)
) USING sheetlog;
COMMENT ON TABLE sheet.segment IS
	'The segments of each sheet''s log. The last one is open; the others end with a commit record.';

CREATE TABLE sheet.version (
	sheet_id bigint NOT NULL,
	version_id bigint NOT NULL,
	seq bigint NOT NULL,
	at timestamptz NOT NULL,
	uid bigint NOT NULL,
	label text,
	rows integer NOT NULL,
	cols integer NOT NULL,
	tiles integer NOT NULL,
	digest bigint NOT NULL,
	cause integer NOT NULL DEFAULT 0,
	line_maps bytea,
	properties bytea,
	PRIMARY KEY (sheet_id, version_id)
) USING sheetlog;
CREATE INDEX version_cause_idx ON sheet.version (sheet_id, cause, version_id);

-- Rows of sheet.version never change.
CREATE TABLE sheet.version_label (
	sheet_id bigint NOT NULL,
	version_id bigint NOT NULL,
	label text NOT NULL,
	PRIMARY KEY (sheet_id, version_id)
);
ALTER TABLE sheet.version_label ALTER sheet_id SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.version_label IS
	'Labels that versions got after they were made, instead of those in sheet.version. Empty: none.';
COMMENT ON TABLE sheet.version IS 'The versions of each sheet.';
COMMENT ON COLUMN sheet.version.seq IS
	'seq of the commit record that ends segment segment_id = version_id';
COMMENT ON COLUMN sheet.version.tiles IS 'tiles stored with this version';
COMMENT ON COLUMN sheet.version.digest IS
	'digest of all cells, the extent, the row and column maps and the properties';
COMMENT ON COLUMN sheet.version.line_maps IS
	'row map and column map: where the rows and columns of the tiles are shown '
	'(extension/grid/line_maps.h); null: identity';
COMMENT ON COLUMN sheet.version.properties IS 'as in sheet.property_set; null: none';
COMMENT ON COLUMN sheet.version.cause IS
	'0 sheet.commit, 1 sheet.rollback, automatic: 2 the open segment was long, 3 the cache evicted '
	'the sheet';

CREATE TABLE sheet.version_tile (
	sheet_id bigint NOT NULL,
	tile_row integer NOT NULL,
	tile_col integer NOT NULL,
	version_id bigint NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (sheet_id, tile_row, tile_col, version_id)
) USING sheetlog;
COMMENT ON TABLE sheet.version_tile IS
	'Blocks of 64 x 16 cells that changed in a version. A version consists of the newest row of '
	'each tile up to it.';

CREATE TABLE sheet.property_set (
	sheet_id bigint PRIMARY KEY,
	data bytea NOT NULL
);
COMMENT ON TABLE sheet.property_set IS
	'The present properties of sheets that have some; they follow from the log. See '
	'sheet.properties().';
COMMENT ON COLUMN sheet.property_set.data IS 'all properties of the sheet (common/properties.h)';

CREATE TABLE sheet.ownership (
	sheet_id bigint PRIMARY KEY,
	epoch bigint NOT NULL,
	holder text NOT NULL
);
CREATE INDEX ownership_epoch_idx ON sheet.ownership (epoch);
COMMENT ON TABLE sheet.ownership IS
	'The highest epoch that has written each sheet. Lower ones are refused.';
COMMENT ON COLUMN sheet.ownership.holder IS 'gateway that claimed the sheet; empty: released';

CREATE TABLE sheet.client (
	sheet_id bigint NOT NULL,
	uid bigint NOT NULL,
	client bigint NOT NULL,
	acknowledged bigint NOT NULL,
	at timestamptz NOT NULL,
	PRIMARY KEY (sheet_id, uid, client)
) WITH (fillfactor = 50); -- each batch updates the row of its client: leave room for HOT updates
ALTER TABLE sheet.client ALTER sheet_id SET (n_distinct = -0.05);
COMMENT ON TABLE sheet.client IS
	'The last committed operation of each protocol v2 client, kept for at least 7 days.';
COMMENT ON COLUMN sheet.client.client IS 'number that the client chose';
COMMENT ON COLUMN sheet.client.acknowledged IS
	'its highest committed operation, or one that changed nothing';
COMMENT ON COLUMN sheet.client.at IS 'when that operation was committed';

CREATE TABLE sheet.log_trim (
	sheet_id bigint NOT NULL,
	version_id bigint NOT NULL,
	seq bigint NOT NULL,
	at timestamptz NOT NULL,
	uid bigint NOT NULL,
	PRIMARY KEY (sheet_id, version_id)
);
COMMENT ON TABLE sheet.log_trim IS
	'Versions at which a sheet''s history was trimmed. It begins with the version of the last row.';
COMMENT ON COLUMN sheet.log_trim.seq IS 'seq of the version; edits up to it have been removed';
COMMENT ON COLUMN sheet.log_trim.at IS 'when it was trimmed';
COMMENT ON COLUMN sheet.log_trim.uid IS 'who trimmed it; 0: a superuser without an account';

-- Large values are compressed. lz4 costs a tenth of pglz; a server built without it keeps its default.
DO $$
BEGIN
	ALTER TABLE sheet.log_batch ALTER data SET COMPRESSION lz4;
	ALTER TABLE sheet.version_tile ALTER data SET COMPRESSION lz4;
	ALTER TABLE sheet.version ALTER properties SET COMPRESSION lz4;
	ALTER TABLE sheet.property_set ALTER data SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END
$$;

SELECT pg_catalog.pg_extension_config_dump('sheet.log_batch', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.segment', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.version', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.version_tile', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.version_label', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.property_set', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.ownership', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.client', '');
SELECT pg_catalog.pg_extension_config_dump('sheet.log_trim', '');

-- A named type: the row type of OUT parameters would be built from the catalog twice in each call,
-- a fifth of its cost.
CREATE TYPE sheet.applied AS (first_seq bigint, last_seq bigint, at timestamptz, duplicate boolean, missed bytea,
	held bigint);
COMMENT ON TYPE sheet.applied IS 'Result of sheet.apply().';

CREATE FUNCTION sheet.apply(sheet_id bigint, edits bytea, known_seq bigint DEFAULT NULL, epoch bigint DEFAULT NULL,
	origin bigint DEFAULT NULL, batch_no bigint DEFAULT NULL, clients bigint[] DEFAULT NULL,
	nowait boolean DEFAULT false)
	RETURNS sheet.applied LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_apply';
COMMENT ON FUNCTION sheet.apply(bigint, bytea, bigint, bigint, bigint, bigint, bigint[], boolean) IS
	'Appends a batch of edits (common/edit_codec.h) and returns their seqs; edits that change '
	'nothing get none. missed: the batches after known_seq that the caller has not seen. '
	'duplicate: the batch (origin, batch_no) was stored before; if missed ends before last_seq, '
	'sheet.tail returns the rest. clients: uid, client, first and last operation of each protocol '
	'v2 client in the batch, stored with it; if all of them are stored, the batch is a duplicate. '
	'nowait: while another transaction holds the sheet, nothing is done and all columns but held are null. held: the '
	'sheet that is held: this one, or, of structure edits, a tab of its book whose formulas have names of tabs; or the '
	'id of the book, negative, while another transaction stores the first such formula of a tab.';

CREATE FUNCTION sheet.client_acknowledged(sheet_id bigint, uid bigint, client bigint) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_client_acknowledged';
COMMENT ON FUNCTION sheet.client_acknowledged(bigint, bigint, bigint) IS
	'The highest committed operation of a protocol v2 client in the sheet; 0: none known. For '
	'gateways.';

CREATE FUNCTION sheet.claim(sheet_id bigint, epoch bigint, holder text, nowait boolean DEFAULT false) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_claim';
COMMENT ON FUNCTION sheet.claim(bigint, bigint, text, boolean) IS
	'Makes epoch the lowest that may write the sheet, and returns the last seq. SF001: a higher '
	'epoch has been seen. nowait: null, and nothing is done, while another transaction holds the '
	'sheet. A sheet that its former holder has not released is checked in the background. For '
	'gateways.';

CREATE FUNCTION sheet.release(sheet_id bigint, epoch bigint) RETURNS boolean
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_release';
COMMENT ON FUNCTION sheet.release(bigint, bigint) IS
	'The holder of the epoch releases the sheet. Does not wait: false if another transaction edits '
	'the sheet, or a higher epoch has been seen. Makes the commit of the transaction asynchronous. '
	'For gateways.';

CREATE FUNCTION sheet.holders(IN sheet_ids bigint[], OUT sheet_id bigint, OUT holder text, OUT application text, OUT transaction text,
	OUT since timestamptz)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_holders';
COMMENT ON FUNCTION sheet.holders(bigint[]) IS
	'Which of the sheets are held by a transaction, so that others cannot change them: its account '
	'(or its role), its application_name, an identifier of the transaction while it lasts, and its '
	'start. Negative ids: of books, as in sheet.applied.held. For gateways.';

CREATE FUNCTION sheet.reset_epochs() RETURNS void
	LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_reset_epochs';
COMMENT ON FUNCTION sheet.reset_epochs() IS
	'Removes the epochs of all sheets, after ZooKeeper was wiped or the coordinator changed. No '
	'gateway may be running.';

-- VOLATILE, as read_properties(), tail() and client_acknowledged(): they read what is committed when they are called.
CREATE FUNCTION sheet.read_cells(IN sheet_id bigint, IN row0 integer DEFAULT NULL, IN col0 integer DEFAULT NULL,
	IN row1 integer DEFAULT NULL, IN col1 integer DEFAULT NULL, IN max_bytes integer DEFAULT NULL, IN "values" boolean DEFAULT false,
	OUT seq bigint, OUT rows integer, OUT cols integer, OUT cells bytea)
	RETURNS SETOF record LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1 AS 'MODULE_PATHNAME', 'sheet_read_cells';
COMMENT ON FUNCTION sheet.read_cells(bigint, integer, integer, integer, integer, integer, boolean) IS
	'The cells of a rectangle (null: no bound) as a stream of edits (common/edit_codec.h), the '
	'size of the sheet, and the seq at which they are valid. One row; with max_bytes several, each '
	'a stream of about this size, all of one state. values: the stream has the values of formulas instead '
	'of their texts, in the form of contents, and the cells that arrays fill. Viewers; gateways.';

CREATE FUNCTION sheet.read_properties(IN sheet_id bigint,
	OUT seq bigint, OUT rows integer, OUT cols integer, OUT properties bytea)
	RETURNS record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_read_properties';
COMMENT ON FUNCTION sheet.read_properties(bigint) IS
	'The size of the sheet and its properties (common/properties.h; null: none), and the seq at '
	'which they are valid. For gateways.';

CREATE FUNCTION sheet.read_version(IN sheet_id bigint, IN version_id bigint, IN max_bytes integer DEFAULT 2147483647,
	OUT seq bigint, OUT at timestamptz, OUT rows integer, OUT cols integer, OUT cells bytea)
	RETURNS SETOF record ROWS 1 LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_read_version';
COMMENT ON FUNCTION sheet.read_version(bigint, bigint, integer) IS
	'The cells of a version as a stream of edits. One row; with max_bytes several, each a stream '
	'of about so many bytes; with max_bytes 0 one without cells. For gateways.';

CREATE FUNCTION sheet.tail(IN sheet_id bigint, IN since bigint, IN max_bytes integer DEFAULT 4194304,
	OUT last_seq bigint, OUT batches bytea)
	RETURNS record LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_tail';
COMMENT ON FUNCTION sheet.tail(bigint, bigint, integer) IS
	'Whole batches that end after seq since, oldest first: at least one, at most about max_bytes. '
	'last_seq is the last seq among them. 22023: some of them have been trimmed, so read the cells '
	'again. For gateways.';

CREATE FUNCTION sheet.commit(sheet_id bigint, label text DEFAULT NULL, epoch bigint DEFAULT NULL,
	as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_commit';
COMMENT ON FUNCTION sheet.commit(bigint, text, bigint, bigint) IS
	'Saves the present state as a new version and returns its number. SN001: nothing has changed '
	'since the last one.';

CREATE FUNCTION sheet.rollback(sheet_id bigint, version_id bigint, epoch bigint DEFAULT NULL, as_uid bigint DEFAULT NULL)
	RETURNS bigint LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_rollback';
COMMENT ON FUNCTION sheet.rollback(bigint, bigint, bigint, bigint) IS
	'Restores the cells and properties of a version by new edits, as a new version, and returns its number. The '
	'history is kept.';

CREATE FUNCTION sheet.trim(sheet_id bigint, version_id bigint, as_uid bigint DEFAULT NULL) RETURNS bigint
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_trim';
COMMENT ON FUNCTION sheet.trim(bigint, bigint, bigint) IS
	'Removes the edits up to a version, and the versions before it, for good, and returns the '
	'number of edits. That version is the oldest from then on. The sheet is checked first; nothing '
	'is removed unless it is sound. Owners.';

CREATE FUNCTION sheet.versions(IN sheet_id bigint,
	OUT version_id bigint, OUT seq bigint, OUT at timestamptz, OUT uid bigint, OUT username text, OUT label text,
	OUT rows integer, OUT cols integer, OUT cause text)
	RETURNS SETOF record LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_versions';
COMMENT ON FUNCTION sheet.versions(bigint) IS
	'The versions of a sheet, oldest first. cause: commit or rollback; log or eviction for an '
	'automatic version.';

CREATE FUNCTION sheet.saved_versions(IN sheet_id bigint, IN max_rows integer DEFAULT 100, IN before bigint DEFAULT NULL,
	OUT version_id bigint, OUT seq bigint, OUT at timestamptz, OUT uid bigint, OUT username text, OUT label text, OUT cause text)
	RETURNS SETOF record LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_saved_versions';
COMMENT ON FUNCTION sheet.saved_versions(bigint, integer, bigint) IS
	'A page of the versions that people saved, by commit or rollback, newest first: at most '
	'max_rows of those before version `before`.';

CREATE FUNCTION sheet.label_version(sheet_id bigint, version_id bigint, label text, as_uid bigint DEFAULT NULL) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_label_version';
COMMENT ON FUNCTION sheet.label_version(bigint, bigint, text, bigint) IS
	'Changes the label of a version that somebody saved (null or empty: none). 42704: there is no '
	'such version. Editors.';

CREATE FUNCTION sheet.newest_version(sheet_id bigint) RETURNS bigint
	LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_newest_version';
COMMENT ON FUNCTION sheet.newest_version(bigint) IS
	'The number of the newest version, automatic ones included; 0: none.';

CREATE FUNCTION sheet.cache_stats_read(OUT bytes bigint, OUT budget bigint, OUT entries integer,
	OUT max_entries integer, OUT hits bigint, OUT misses bigint, OUT loads bigint, OUT load_failures bigint,
	OUT evictions bigint, OUT waits bigint, OUT private_old_snapshot bigint, OUT private_own_edits bigint,
	OUT private_no_room bigint, OUT private_writer bigint, OUT private_serializable bigint, OUT private_empty bigint)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_cache_stats';
COMMENT ON FUNCTION sheet.cache_stats_read() IS 'See the view sheet.cache_stats.';
CREATE VIEW sheet.cache_stats AS SELECT * FROM sheet.cache_stats_read();
COMMENT ON VIEW sheet.cache_stats IS
	'The cache of this server; no row without shared_preload_libraries. private_*: reads not '
	'served from it, by reason.';

CREATE FUNCTION sheet.cache_entries_read(OUT place integer, OUT database oid, OUT sheet_id bigint, OUT cached boolean,
	OUT bytes bigint, OUT seq bigint, OUT pins integer, OUT writing boolean, OUT loading boolean, OUT tiles_cached integer, OUT tiles integer)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_cache_entries';
COMMENT ON FUNCTION sheet.cache_entries_read() IS 'See the view sheet.cache_entries.';
CREATE VIEW sheet.cache_entries AS SELECT * FROM sheet.cache_entries_read();
COMMENT ON VIEW sheet.cache_entries IS
	'Sheets in the cache of this server, most recently used first. cached: cells are cached, '
	'tiles_cached of tiles (null while it is being changed).';

CREATE FUNCTION sheet.version_stats_read(OUT by_commit bigint, OUT by_rollback bigint, OUT by_log bigint,
	OUT by_eviction bigint, OUT failures bigint, OUT rescans bigint, OUT replayed_edits bigint,
	OUT longest_lock_ms double precision, OUT checked bigint, OUT damaged bigint, OUT queued integer, OUT workers integer)
	RETURNS SETOF record LANGUAGE c STRICT VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'sheet_version_stats';
COMMENT ON FUNCTION sheet.version_stats_read() IS 'See the view sheet.version_stats.';
CREATE VIEW sheet.version_stats AS SELECT * FROM sheet.version_stats_read();
COMMENT ON VIEW sheet.version_stats IS
	'Versions by cause since the start of the server, automatic checks, and the queue; no row '
	'without shared_preload_libraries.';
COMMENT ON COLUMN sheet.version_stats.by_log IS 'automatic: the open segment was long';
COMMENT ON COLUMN sheet.version_stats.by_eviction IS 'automatic: the cache evicted the sheet';
COMMENT ON COLUMN sheet.version_stats.failures IS 'failed attempts, which are repeated';
COMMENT ON COLUMN sheet.version_stats.rescans IS 'searches of all databases for long segments';
COMMENT ON COLUMN sheet.version_stats.replayed_edits IS
	'edits after the newest version that were read to rebuild cells';
COMMENT ON COLUMN sheet.version_stats.longest_lock_ms IS
	'longest time that a background worker blocked writers of a sheet';
COMMENT ON COLUMN sheet.version_stats.checked IS
	'automatic checks of sheets: opened after a crash, or taken over from a gateway that did not '
	'release them';
COMMENT ON COLUMN sheet.version_stats.damaged IS
	'of these, sheets with findings, which are in the server''s log';
COMMENT ON COLUMN sheet.version_stats.queued IS 'sheets that wait for a version or a check';
COMMENT ON COLUMN sheet.version_stats.workers IS 'running background workers';
