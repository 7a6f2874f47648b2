/* versions.c - SQL functions on versions: commit, rollback, trim, and reading them. */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "api/scan/cells_stream.h"
#include "funcapi.h"
#include "journal/journal.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(sheet_commit);
PG_FUNCTION_INFO_V1(sheet_rollback);
PG_FUNCTION_INFO_V1(sheet_label_version);
PG_FUNCTION_INFO_V1(sheet_trim);
PG_FUNCTION_INFO_V1(sheet_read_version);
PG_FUNCTION_INFO_V1(sheet_versions);
PG_FUNCTION_INFO_V1(sheet_saved_versions);
PG_FUNCTION_INFO_V1(sheet_newest_version);

#define SAVED_MAX_ROWS 1000

/* ---- writing ---- */

/* commit(sheet_id, label, epoch, as_uid) */
Datum
sheet_commit(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 3, 0), uid;
	char *label = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));

	catalog_check_text(fcinfo, 1, "label", PG_INT32_MAX); /* the journal checks its length */
	uid = permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	PG_RETURN_INT64(journal_commit(sheet_id, uid, label, catalog_arg_int64(fcinfo, 2, 0)));
}

/* Labels and trims of a sheet wait for each other, so that no label outlives its version. A trim locks the row after
 * the sheet's writer, as a purge does. */
static CatalogQuery versions_lock_label = {"SELECT 1 FROM sheet.sheet WHERE sheet_id = $1 FOR SHARE", {INT8OID}};
static CatalogQuery versions_lock_trim = {"SELECT 1 FROM sheet.sheet WHERE sheet_id = $1 FOR NO KEY UPDATE", {INT8OID}};
static CatalogQuery versions_is_saved = {
	"SELECT 1 FROM sheet.version WHERE sheet_id = $1 AND version_id = $2 AND cause <= 1", {INT8OID, INT8OID}};
static CatalogQuery versions_label = {"INSERT INTO sheet.version_label VALUES ($1, $2, $3) ON CONFLICT (sheet_id, "
									  "version_id) DO UPDATE SET label = excluded.label",
									  {INT8OID, INT8OID, TEXTOID}};
static CatalogQuery versions_trim_labels = {"DELETE FROM sheet.version_label WHERE sheet_id = $1 AND version_id < $2",
											{INT8OID, INT8OID}};

/* label_version(sheet_id, version_id, label, as_uid) */
Datum
sheet_label_version(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	char *label = PG_ARGISNULL(2) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(2));
	NullableDatum args[] = {fcinfo->args[0], fcinfo->args[1], CATALOG_TEXT(label)};
	CatalogScope scope;

	catalog_require_arg(fcinfo, 1, "version");
	catalog_check_text(fcinfo, 2, "label", PG_INT32_MAX);
	journal_check_label(label);
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 3, 0), ROLE_EDITOR, false);
	catalog_begin(&scope);
	if (catalog_run(&versions_lock_label, args, false) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	if (catalog_run_latest(&versions_is_saved, args) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("sheet " INT64_FORMAT " has no saved version " INT64_FORMAT, sheet_id, PG_GETARG_INT64(1)),
				 errdetail("Versions that were made automatically have no label.")));
	catalog_run(&versions_label, args, false);
	catalog_end(&scope);
	PG_RETURN_VOID();
}

/* rollback(sheet_id, version_id, epoch, as_uid) */
Datum
sheet_rollback(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 3, 0), uid;

	catalog_require_arg(fcinfo, 1, "version");
	uid = permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	PG_RETURN_INT64(journal_rollback(sheet_id, PG_GETARG_INT64(1), uid, catalog_arg_int64(fcinfo, 2, 0)));
}

/* trim(sheet_id, version_id, as_uid) */
Datum
sheet_trim(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 2, 0), uid, removed;
	CatalogScope scope;

	catalog_require_arg(fcinfo, 1, "version");
	uid = permission_require(sheet_id, as_uid, ROLE_OWNER, false);
	removed = journal_trim(sheet_id, PG_GETARG_INT64(1), uid);
	catalog_begin(&scope);
	catalog_run(&versions_lock_trim, fcinfo->args, false);
	catalog_run_latest(&versions_trim_labels, fcinfo->args);
	catalog_end(&scope);
	PG_RETURN_INT64(removed);
}

/* ---- reading ---- */

/* All cells of a grid. */
static void
versions_stream_grid(CellStream *stream, Grid *grid)
{
	GridScan scan;
	GridCell cell;

	grid_view_init(&scan, grid, grid_maps(grid), 0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1);
	while (grid_scan_next(&scan, &cell))
		stream_cells(stream, &cell, 1);
	stream_end(stream);
}

/* read_version(sheet_id, version_id, max_bytes) */
Datum
sheet_read_version(PG_FUNCTION_ARGS)
{
	int64 sheet_id = PG_GETARG_INT64(0);
	int64 version_id = PG_GETARG_INT64(1);
	int32 max_bytes = PG_GETARG_INT32(2);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CellStream stream;
	Grid *grid;
	Datum values[5];
	bool nulls[5] = {0};

	permission_require_gateway();
	catalog_require_args(fcinfo);
	if (max_bytes < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("max_bytes must not be negative")));
	InitMaterializedSRF(fcinfo, 0);
	stream_begin(&stream, max_bytes == PG_INT32_MAX ? MaxAllocHugeSize / 2 : max_bytes, 0);
	grid = journal_read_version(sheet_id, version_id, max_bytes > 0, &stream.view);
	if (max_bytes > 0)
		versions_stream_grid(&stream, grid);
	values[0] = Int64GetDatum(stream.view.seq);
	values[1] = TimestampTzGetDatum(stream.view.at);
	values[2] = Int32GetDatum((int32) stream.view.rows);
	values[3] = Int32GetDatum((int32) stream.view.cols);
	nulls[4] = max_bytes == 0;
	for (Size i = 0; i < Max(stream.count, 1); i++)
	{
		CHECK_FOR_INTERRUPTS();
		values[4] = nulls[4] ? (Datum) 0 : PointerGetDatum(stream.values[i]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* ---- the versions as rows ---- */

/* Of versions v: the name of the account or link, and the label that the version got later, which is empty if it was
 * removed. */
#define VERSIONS_SELECT                                                                                                \
	"SELECT v.version_id, v.seq, v.at, v.uid, a.name, CASE WHEN l.label IS NULL THEN v.label ELSE nullif(l.label, "    \
	"'') "                                                                                                             \
	"END, "
#define VERSIONS_CAUSE "(ARRAY['commit', 'rollback', 'log', 'eviction'])[v.cause + 1] FROM "
#define VERSIONS_JOIN                                                                                                  \
	"LEFT JOIN LATERAL (SELECT a.name FROM sheet.account a WHERE a.uid = v.uid UNION ALL "                             \
	"SELECT l.label || '" GUEST_LINK_SUFFIX "' FROM sheet.link l WHERE v.uid < 0 AND l.link_id = -v.uid) a ON true "   \
	"LEFT JOIN LATERAL (SELECT l.label FROM sheet.version_label l WHERE l.sheet_id = $1 AND l.version_id = "           \
	"v.version_id OFFSET 0) l ON true ORDER BY v.version_id"

static CatalogQuery all_versions = {VERSIONS_SELECT
									"v.rows, v.cols, " VERSIONS_CAUSE
									"(SELECT * FROM sheet.version WHERE sheet_id = $1) v " VERSIONS_JOIN,
									{INT8OID}};

/* versions(sheet_id) */
Datum
sheet_versions(PG_FUNCTION_ARGS)
{
	permission_require_reader(catalog_arg_sheet(fcinfo, 0));
	return catalog_return_rows(fcinfo, &all_versions, fcinfo->args, true);
}

/* The newest versions of a cause, by the index on (sheet_id, cause, version_id). With an equation on the cause the
 * planner could choose the primary key, and read versions of other causes. */
#define SAVED_OF_CAUSE(cause)                                                                                          \
	"(SELECT version_id, seq, at, uid, label, cause FROM sheet.version WHERE sheet_id = $1 AND cause >= " cause        \
	" AND cause <= " cause " AND version_id < $3 ORDER BY cause DESC, version_id DESC LIMIT $2)"
static CatalogQuery saved_versions = {VERSIONS_SELECT VERSIONS_CAUSE
									  "(" SAVED_OF_CAUSE("0") " UNION ALL " SAVED_OF_CAUSE(
										  "1") " ORDER BY version_id DESC LIMIT $2) v " VERSIONS_JOIN " DESC",
									  {INT8OID, INT8OID, INT8OID}};

/* saved_versions(sheet_id, max_rows, before) */
Datum
sheet_saved_versions(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	NullableDatum args[] = {fcinfo->args[0], CATALOG_INT64(catalog_arg_page(fcinfo, 1, SAVED_MAX_ROWS, "versions")),
							CATALOG_INT64(catalog_arg_int64(fcinfo, 2, PG_INT64_MAX))};

	permission_require_reader(sheet_id);
	return catalog_return_rows(fcinfo, &saved_versions, args, true);
}

/* newest_version(sheet_id) */
Datum
sheet_newest_version(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	uint32 cols;

	permission_require_reader(sheet_id);
	PG_RETURN_INT64(journal_newest_version(sheet_id, GetActiveSnapshot(), &cols));
}
