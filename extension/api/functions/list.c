/*
 * list.c - the list of an account's sheets, last opened first, in pages.
 *
 * A page of n rows reads n entries of the index of sheet.member on (uid, opened_at, sheet_id), and looks up each sheet.
 * Its cost depends neither on the length of the list, nor on other accounts, nor on the history of the sheets. A sheet
 * that the account cannot see any more (in the trash of another account, or its link has ended) counts as a row of the
 * page; its columns are null.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "journal/journal.h"
#include "permission/permission.h"
#include "journal/store/timeconv.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_account_sheets);
PG_FUNCTION_INFO_V1(sheet_register_opening);
PG_FUNCTION_INFO_V1(sheet_last_edit);
PG_FUNCTION_INFO_V1(sheet_glance);

#define LIST_MAX_ROWS 1000

/* OFFSET 0 keeps the lookup of each sheet a subquery, so that the cost is that of the page, whatever the planner knows.
 */
static CatalogQuery list_page = {
	"SELECT m.sheet_id, s.name, s.owner, s.role, s.trashed, g.versions, g.cols, s.created_at, g.updated_at, "
	"(extract(epoch FROM m.opened_at) * 1000000)::int8 || '-' || m.sheet_id, "
	"(SELECT t.book_id FROM sheet.book_tab t WHERE t.sheet_id = s.sheet_id) "
	"FROM (SELECT m.sheet_id, m.opened_at FROM sheet.member m "
	"WHERE m.uid = $1 AND (m.role IS NOT NULL OR m.link_no IS NOT NULL) AND (m.opened_at, m.sheet_id) < ($3, $4) "
	"ORDER BY m.opened_at DESC, m.sheet_id DESC LIMIT $2) m "
	"LEFT JOIN LATERAL (SELECT s.*, s.trashed_at IS NOT NULL AS trashed, "
	"(SELECT a.name FROM sheet.account a WHERE a.uid = s.owner_uid) AS owner "
	"FROM sheet.listed s WHERE s.uid = $1 AND s.sheet_id = m.sheet_id OFFSET 0) s ON true "
	"LEFT JOIN LATERAL sheet.glance(s.sheet_id, s.init_cols, s.created_at) g ON s.sheet_id IS NOT NULL "
	"ORDER BY m.opened_at DESC, m.sheet_id DESC",
	{INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID}};

static CatalogQuery list_opened = {
	"SELECT (role IS NOT NULL OR link_no IS NOT NULL)::int::int8, (opened_at > now() - interval '1 hour')::int::int8 "
	"FROM sheet.member WHERE sheet_id = $1 AND uid = $2",
	{INT8OID, INT8OID}};
static CatalogQuery list_open_again = {"UPDATE sheet.member SET opened_at = now() WHERE sheet_id = $1 AND uid = $2",
									   {INT8OID, INT8OID}};
/* The first opening of a sheet whose link has no key. */
static CatalogQuery list_open_first = {
	"INSERT INTO sheet.member (sheet_id, uid, link_no) SELECT s.sheet_id, a.uid, s.link_no "
	"FROM sheet.sheet s, sheet.account a WHERE s.sheet_id = $1 AND a.uid = $2 AND s.link_role IS NOT NULL AND "
	"s.link_digest IS NULL AND s.trashed_at IS NULL FOR KEY SHARE OF s "
	"ON CONFLICT (sheet_id, uid) DO UPDATE SET link_no = excluded.link_no, opened_at = now()",
	{INT8OID, INT8OID}};

/* ---- the list ---- */

/* The position in the index at which a page begins: after the last row of the page before, or at the start. */
static void
list_parse_place(FunctionCallInfo fcinfo, int arg, NullableDatum *opened_at, NullableDatum *sheet_id)
{
	char *place;
	long long since_epoch, id;
	int len = 0;

	if (PG_ARGISNULL(arg))
	{
		*opened_at = CATALOG_DATUM(TimestampTzGetDatum(DT_NOEND));
		*sheet_id = CATALOG_INT64(PG_INT64_MAX);
		return;
	}
	place = text_to_cstring(PG_GETARG_TEXT_PP(arg));
	if (strlen(place) > 40 || sscanf(place, "%lld-%lld%n", &since_epoch, &id, &len) != 2 || place[len] != '\0' ||
		llabs(since_epoch) > PG_INT64_MAX / 2)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is not a place in a list", place)));
	*opened_at = CATALOG_DATUM(TimestampTzGetDatum(timeconv_from_unix(since_epoch)));
	*sheet_id = CATALOG_INT64(id);
}

/* account_sheets(uid, max_rows, after): gateways, and everybody for the own account */
Datum
sheet_account_sheets(PG_FUNCTION_ARGS)
{
	int64 uid = catalog_arg_int64(fcinfo, 0, 0);
	NullableDatum args[4] = {CATALOG_INT64(uid)};

	if (permission_uid(0) != uid)
		permission_require_gateway();
	args[1] = CATALOG_INT64(catalog_arg_page(fcinfo, 1, LIST_MAX_ROWS, "sheets"));
	list_parse_place(fcinfo, 2, &args[2], &args[3]);
	return catalog_return_rows(fcinfo, &list_page, args, true);
}

/* last_edit(sheet_id, otherwise): internal, not granted to anybody */
Datum
sheet_last_edit(PG_FUNCTION_ARGS)
{
	TimestampTz at;

	if (!journal_edited_at(PG_GETARG_INT64(0), GetActiveSnapshot(), &at))
		at = PG_GETARG_TIMESTAMPTZ(1);
	PG_RETURN_TIMESTAMPTZ(at);
}

/* glance(sheet_id, init_cols, created_at): internal, not granted to anybody */
Datum
sheet_glance(PG_FUNCTION_ARGS)
{
	int64 sheet_id = PG_GETARG_INT64(0);
	uint32 cols = (uint32) PG_GETARG_INT32(1);
	TimestampTz at;
	Datum values[3];
	bool nulls[3] = {false};

	values[0] = Int64GetDatum(journal_newest_version(sheet_id, GetActiveSnapshot(), &cols));
	values[1] = Int32GetDatum((int32) cols);
	if (!journal_edited_at(sheet_id, GetActiveSnapshot(), &at))
		at = PG_GETARG_TIMESTAMPTZ(2);
	values[2] = TimestampTzGetDatum(at);
	return catalog_return_row(fcinfo, values, nulls);
}

/* ---- openings ---- */

/*
 * Waits for locks for 1 ms, the shortest lock_timeout, and fails then: the opening is not registered. The commit is
 * asynchronous if the function is alone in its transaction.
 */
static bool
list_write_opening(const NullableDatum *args, bool listed, bool alone)
{
	CatalogScope scope;
	bool done;

	if (alone)
		(void) set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0,
								 false);
	catalog_begin(&scope);
	(void) set_config_option("lock_timeout", "1ms", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	done = catalog_run(listed ? &list_open_again : &list_open_first, args, false) > 0;
	catalog_end(&scope);
	return done;
}

typedef enum ListOpening
{
	LIST_OPENING_NONE, /* nothing to write */
	LIST_OPENING_DONE,
	LIST_OPENING_WAITS /* another transaction holds a lock */
} ListOpening;

static ListOpening
list_try_opening(const NullableDatum *args, bool listed)
{
	bool alone = !IsTransactionBlock(); /* a subtransaction always is in a block */
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile ListOpening result = LIST_OPENING_WAITS;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		result = list_write_opening(args, listed, alone) ? LIST_OPENING_DONE : LIST_OPENING_NONE;
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		CurrentResourceOwner = owner;
		if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE && error->sqlerrcode != ERRCODE_T_R_SERIALIZATION_FAILURE)
			ReThrowError(error);
		FreeErrorData(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return result;
}

/* register_opening(sheet_id, uid): NULL if it could not be written without waiting */
Datum
sheet_register_opening(PG_FUNCTION_ARGS)
{
	CatalogScope scope;
	bool listed, lately;
	ListOpening result = LIST_OPENING_NONE;

	permission_require_gateway();
	catalog_require_args(fcinfo);
	if (RecoveryInProgress() || XactReadOnly)
		PG_RETURN_NULL();
	catalog_begin(&scope);
	listed = catalog_run(&list_opened, fcinfo->args, true) > 0 && catalog_int64(1, 0) == 1;
	lately = listed && catalog_int64(2, 0) == 1;
	catalog_end(&scope);
	if (!lately)
		result = list_try_opening(fcinfo->args, listed);
	if (result == LIST_OPENING_WAITS)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(result == LIST_OPENING_DONE);
}
