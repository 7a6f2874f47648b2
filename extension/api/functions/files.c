/*
 * files.c - files attached to sheets, which gateways store in parts, and their quota (pg_sheet.file_quota).
 *
 * An upload that was announced with its size counts from its beginning, so that concurrent uploads cannot exceed the
 * quota together. An unfinished upload that is a day old does not count, is refused what it sends, and is removed by
 * the timer (sheet.expire_uploads). Finished files are counted by rows in sheet.file_use, which are inserted without a
 * lock. The check of the quota locks the account, and replaces its rows by their sum.
 */
#include "postgres.h"

#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "api/functions/functions.h"
#include "permission/permission.h"
#include "timer/timer.h"
#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/guc.h"

PG_FUNCTION_INFO_V1(sheet_file_begin);
PG_FUNCTION_INFO_V1(sheet_file_put);
PG_FUNCTION_INFO_V1(sheet_file_end);
PG_FUNCTION_INFO_V1(sheet_file_abort);
PG_FUNCTION_INFO_V1(sheet_file_info);
PG_FUNCTION_INFO_V1(sheet_file_by_digest);
PG_FUNCTION_INFO_V1(sheet_account_files);
PG_FUNCTION_INFO_V1(sheet_file_usage);
PG_FUNCTION_INFO_V1(sheet_file_delete);
PG_FUNCTION_INFO_V1(sheet_file_get);
PG_FUNCTION_INFO_V1(sheet_file_list);

#define FILES_PART_BYTES 262144
#define FILES_NAME_BYTES 255
#define FILES_PAGE_MAX	 1000 /* rows of account_files() */
#define FILES_NUMBER_MAX (1 << 30)

/* A purged sheet gets no more files. */
static CatalogQuery files_lock_sheet = {"SELECT 1 FROM sheet.sheet WHERE sheet_id = $1 FOR KEY SHARE", {INT8OID}};
static CatalogQuery files_insert = {
	"INSERT INTO sheet.file (sheet_id, name, content_type, uid, announced) VALUES ($1, $2, $3, $4, $5) "
	"ON CONFLICT (sheet_id, name) DO NOTHING RETURNING upload_id",
	{INT8OID, TEXTOID, TEXTOID, INT8OID, INT8OID}};
static CatalogQuery files_taken = {"SELECT 1 FROM sheet.file WHERE sheet_id = $1 AND name = $2", {INT8OID, TEXTOID}};
static CatalogQuery files_row = {"SELECT $1::text, $2::int8", {TEXTOID, INT8OID}};
static CatalogQuery files_open = {"SELECT uid, announced FROM sheet.file WHERE upload_id = $1 AND size IS NULL AND "
								  "created_at > now() - interval '1 day' "
								  "FOR UPDATE",
								  {INT8OID}};
static CatalogQuery files_put = {"INSERT INTO sheet.file_part (upload_id, part, data) VALUES ($1, $2, $3)",
								 {INT8OID, INT4OID, BYTEAOID}};
/* Whole: parts are numbered from 0 without a gap, and all but the last are full. */
static CatalogQuery files_whole = {
	"SELECT coalesce(sum(length(data)), 0)::int8, (count(*) = coalesce(max(part) + 1, 0) AND "
	"count(*) FILTER (WHERE length(data) < 262144) <= 1 AND "
	"coalesce(max(part) FILTER (WHERE length(data) < 262144) = max(part), true))::int::int8 "
	"FROM sheet.file_part WHERE upload_id = $1",
	{INT8OID}};
static CatalogQuery files_end = {"UPDATE sheet.file SET size = $2, etag = $3, created_at = now() WHERE upload_id = $1 "
								 "RETURNING link_key",
								 {INT8OID, INT8OID, TEXTOID}};
static CatalogQuery files_count = {"INSERT INTO sheet.file_use SELECT uid, size FROM sheet.file "
								   "WHERE upload_id = $1 AND uid IS NOT NULL",
								   {INT8OID}};
static CatalogQuery files_abort = {
	"WITH gone AS (DELETE FROM sheet.file WHERE upload_id = $1 AND size IS NULL RETURNING upload_id) "
	"SELECT array_agg(upload_id) FROM gone",
	{INT8OID}};
/* All files of a sheet, whose bytes are subtracted. Waits for an upload that is ending. */
static CatalogQuery files_delete_of_sheet = {
	"WITH gone AS (DELETE FROM sheet.file WHERE sheet_id = $1 RETURNING upload_id, uid, size), "
	"used AS (INSERT INTO sheet.file_use SELECT uid, -sum(size) FROM gone WHERE uid IS NOT NULL AND size IS NOT NULL "
	"GROUP BY uid) SELECT array_agg(upload_id) FROM gone",
	{INT8OID}};
static CatalogQuery files_delete_parts = {"DELETE FROM sheet.file_part WHERE upload_id = ANY ($1)", {INT8ARRAYOID}};
static CatalogQuery files_info = {
	"SELECT upload_id, size, content_type, etag, c.created_at, sha256(link_key::bytea) = $3 AND trashed_at IS NULL "
	"FROM sheet.file c JOIN sheet.sheet USING (sheet_id) WHERE sheet_id = $1 AND c.name = $2 AND size IS NOT NULL",
	{INT8OID, TEXTOID, BYTEAOID}};
static CatalogQuery files_by_digest = {
	"SELECT upload_id, size, etag, sheet_id FROM sheet.file f JOIN sheet.sheet s USING (sheet_id) "
	"WHERE sha256(link_key::bytea) = $1 AND f.name = $2 AND size IS NOT NULL AND trashed_at IS NULL",
	{BYTEAOID, TEXTOID}};
/* The sheets are looked up for the rows of the page only. */
static CatalogQuery files_of_account = {
	"SELECT f.upload_id, CASE WHEN f.seen THEN f.sheet_id END, f.name, f.size, f.created_at, "
	"CASE WHEN f.seen AND s.trashed_at IS NULL THEN f.link_key END FROM (SELECT upload_id, sheet_id, "
	"name COLLATE \"default\" AS name, size, created_at, link_key, sheet.role_of(sheet_id, $1) IS NOT NULL AS seen "
	"FROM sheet.file WHERE uid = $1 AND upload_id < $2 AND size IS NOT NULL ORDER BY upload_id DESC LIMIT $3) f "
	"JOIN sheet.sheet s USING (sheet_id) ORDER BY f.upload_id DESC",
	{INT8OID, INT8OID, INT4OID}};
static CatalogQuery files_owner = {"SELECT sheet_id, uid FROM sheet.file WHERE upload_id = $1 AND size IS NOT NULL",
								   {INT8OID}};
static CatalogQuery files_delete_one = {
	"WITH gone AS (DELETE FROM sheet.file WHERE upload_id = $1 AND size IS NOT NULL RETURNING upload_id, uid, size), "
	"used AS (INSERT INTO sheet.file_use SELECT uid, -size FROM gone WHERE uid IS NOT NULL) "
	"SELECT array_agg(upload_id) FROM gone",
	{INT8OID}};
static CatalogQuery files_get = {"SELECT p.data FROM sheet.file_part p JOIN sheet.file c USING (upload_id) "
								 "WHERE p.upload_id = $1 AND p.part = $2 AND c.size IS NOT NULL",
								 {INT8OID, INT4OID}};
static CatalogQuery files_list = {
	"SELECT name COLLATE \"default\", link_key FROM sheet.file WHERE sheet_id = $1 AND size IS NOT NULL "
	"ORDER BY upload_id",
	{INT8OID}};

/* ---- quota ---- */

static int files_quota_kb;

static CatalogQuery files_quota_lock = {"SELECT 1 FROM sheet.account WHERE uid = $1 FOR NO KEY UPDATE", {INT8OID}};
static CatalogQuery files_quota_finished = {
	"WITH rows AS (DELETE FROM sheet.file_use WHERE uid = $1 RETURNING bytes) "
	"INSERT INTO sheet.file_use SELECT $1, coalesce(sum(bytes), 0) FROM rows RETURNING bytes",
	{INT8OID}};
static CatalogQuery files_quota_unfinished = {
	"SELECT coalesce(sum(announced), 0)::int8 FROM sheet.file WHERE uid = $1 AND upload_id <> $2 "
	"AND size IS NULL AND created_at > now() - interval '1 day'",
	{INT8OID, INT8OID}};

/* Without a quota nobody adds up the rows of file_use, so there may be one for each file. */
static CatalogQuery files_usage = {
	"SELECT CASE WHEN $2 > 0 THEN (SELECT coalesce(sum(bytes), 0)::int8 FROM sheet.file_use WHERE uid = $1) END, "
	"nullif($2, 0)",
	{INT8OID, INT8OID}};

void
files_init(void)
{
	DefineCustomIntVariable("pg_sheet.file_quota", "Maximum bytes of files that an account may attach to sheets.",
							"0: no limit.", &files_quota_kb, 0, 0, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB, NULL, NULL,
							NULL);
}

/*
 * Raises SQ001 unless the account may have `bytes` more. Called between catalog_begin() and catalog_end(). Other
 * uploads of the account wait until the transaction ends, so that two of them do not both take the remaining bytes.
 */
static void
files_require_quota(int64 uid, int64 upload_id, int64 bytes)
{
	NullableDatum args[] = {CATALOG_INT64(uid), CATALOG_INT64(upload_id)};
	int64 quota = (int64) files_quota_kb * 1024, used;

	if (quota == 0 || uid == 0)
		return;
	catalog_run(&files_quota_lock, args, false);
	catalog_run(&files_quota_finished, args, false);
	used = catalog_int64(1, 0);
	catalog_run(&files_quota_unfinished, args, false);
	used += catalog_int64(1, 0);
	if (bytes > quota - used)
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'Q', '0', '0', '1')),
						errmsg("this file of " INT64_FORMAT " bytes would exceed the quota", bytes),
						errdetail("The account's files have " INT64_FORMAT " bytes, and " INT64_FORMAT " are allowed.",
								  used, quota),
						errhint("Remove sheets whose files are not needed, or have pg_sheet.file_quota raised.")));
}

/* ---- deleting ---- */

/*
 * Runs a query that deletes files and returns an array of their uploads, then deletes their parts. A part is inserted
 * under a lock on the row of its file (files_open), so nobody adds one to a file that is deleted; the second statement
 * sees those that came before. Called between catalog_begin() and catalog_end().
 */
static void
files_delete(CatalogQuery *query, const NullableDatum *args)
{
	NullableDatum uploads;

	catalog_run_latest(query, args);
	uploads.value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &uploads.isnull);
	if (!uploads.isnull)
		catalog_run_latest(&files_delete_parts, &uploads);
}

void
files_delete_all(int64 sheet_id)
{
	files_delete(&files_delete_of_sheet, &CATALOG_INT64(sheet_id));
}

/* ---- names ---- */

/* Names are parts of paths and headers: they have no separators and no control characters, and are not "." or "..". */
static void
files_check_name(const char *name)
{
	catalog_check_name("file name", name, FILES_NAME_BYTES);
	if (strlen(name) > FILES_NAME_BYTES || strchr(name, '/') != NULL || strchr(name, '\\') != NULL ||
		strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is not a name for a file", name),
						errdetail("File names have 1 to %d bytes, no slash and no backslash.", FILES_NAME_BYTES)));
}

/* "a.b (2).txt" for "a.b.txt" and 2. A name that would be too long is cut before the number, between characters. */
static char *
files_numbered_name(const char *name, int number)
{
	const char *dot = strrchr(name, '.');
	const char *suffix = dot != NULL && dot != name && strlen(dot) <= 32 ? dot : name + strlen(name);
	char *tail = psprintf(" (%d)%s", number, suffix);
	int stem = Min((int) (suffix - name), FILES_NAME_BYTES - (int) strlen(tail));

	while (stem > 0 && ((unsigned char) name[stem] & 0xC0) == 0x80)
		stem--;
	return psprintf("%.*s%s", stem, name, tail);
}

static bool
files_is_taken(int64 sheet_id, const char *wanted, int number)
{
	NullableDatum args[] = {CATALOG_INT64(sheet_id), CATALOG_TEXT(files_numbered_name(wanted, number))};

	return catalog_run(&files_taken, args, false) > 0;
}

/* A name that is free, found by bisection between numbers that are taken and free: O(log n) lookups. */
static char *
files_free_name(int64 sheet_id, const char *wanted)
{
	int taken = 1, vacant = 2;

	while (files_is_taken(sheet_id, wanted, vacant))
	{
		taken = vacant;
		vacant *= 2;
		if (vacant > FILES_NUMBER_MAX)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many files are named \"%s\"", wanted)));
	}
	while (vacant - taken > 1)
	{
		int middle = taken + (vacant - taken) / 2;

		if (files_is_taken(sheet_id, wanted, middle))
			taken = middle;
		else
			vacant = middle;
	}
	return files_numbered_name(wanted, vacant);
}

/* ---- functions, in the order of an upload ---- */

/* Locks the upload. uid 0: of nobody; announced -1: its size was not announced. */
static void
files_require_open(int64 upload_id, int64 *uid, int64 *announced)
{
	if (catalog_run(&files_open, &CATALOG_INT64(upload_id), false) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("no upload " INT64_FORMAT " is under way", upload_id)));
	*uid = catalog_int64(1, 0);
	*announced = catalog_int64(2, -1);
}

/* file_begin(sheet_id, name, content_type, size, as_uid) */
Datum
sheet_file_begin(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 4, 0);
	char *wanted = catalog_arg_string(fcinfo, 1, "file name");
	int64 size = catalog_arg_int64(fcinfo, 3, 0), uid, upload_id;
	NullableDatum args[5] = {fcinfo->args[0], CATALOG_TEXT(wanted), fcinfo->args[2], CATALOG_NULL, fcinfo->args[3]};
	NullableDatum row[2];
	CatalogScope scope;
	char *name = wanted;

	permission_require_gateway();
	files_check_name(wanted);
	catalog_check_text(fcinfo, 2, "content type", FILES_NAME_BYTES);
	if (size < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a file has 0 bytes or more")));
	uid = permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	permission_refuse_guest(uid);
	args[3] = CATALOG_INT64(uid);
	catalog_begin(&scope);
	if (catalog_run(&files_lock_sheet, args, false) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	files_require_quota(uid, 0, size);
	while (catalog_run(&files_insert, args, false) == 0)
	{
		name = files_free_name(sheet_id, wanted);
		args[1] = CATALOG_TEXT(name);
	}
	upload_id = catalog_int64(1, 0);
	row[1] = CATALOG_INT64(upload_id);
	timer_set(TIMER_UPLOAD, upload_id, GetCurrentTransactionStartTimestamp() + USECS_PER_DAY);
	name = MemoryContextStrdup(scope.caller, name);
	catalog_end(&scope);
	row[0] = CATALOG_TEXT(name);
	return catalog_return_rows(fcinfo, &files_row, row, true);
}

/* file_put(upload_id, part, data) */
Datum
sheet_file_put(PG_FUNCTION_ARGS)
{
	int32 part = PG_GETARG_INT32(1);
	bytea *data = PG_GETARG_BYTEA_PP(2);
	int64 bytes = VARSIZE_ANY_EXHDR(data), uid, announced;
	NullableDatum args[] = {fcinfo->args[0], fcinfo->args[1], CATALOG_DATUM(PointerGetDatum(data))};
	CatalogScope scope;

	permission_require_gateway();
	if (part < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("parts are numbered from 0")));
	if (bytes < 1 || bytes > FILES_PART_BYTES)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a part has 1 to %d bytes, this one has " INT64_FORMAT, FILES_PART_BYTES, bytes)));
	catalog_begin(&scope);
	files_require_open(PG_GETARG_INT64(0), &uid, &announced);
	if (announced >= 0 && (int64) part * FILES_PART_BYTES + bytes > announced)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the upload was announced with " INT64_FORMAT " bytes, and has more", announced)));
	catalog_run(&files_put, args, false);
	catalog_end(&scope);
	PG_RETURN_VOID();
}

/* file_end(upload_id, sha256) */
Datum
sheet_file_end(PG_FUNCTION_ARGS)
{
	NullableDatum args[3] = {fcinfo->args[0], CATALOG_NULL, fcinfo->args[1]};
	CatalogScope scope;
	int64 uid, announced, bytes;
	char *key;

	permission_require_gateway();
	catalog_check_text(fcinfo, 1, "digest", FILES_NAME_BYTES);
	catalog_begin(&scope);
	files_require_open(PG_GETARG_INT64(0), &uid, &announced);
	catalog_run(&files_whole, args, false);
	if (catalog_int64(2, 0) != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the upload is not complete"),
						errdetail("All parts but the last have %d bytes, and none is missing.", FILES_PART_BYTES)));
	bytes = catalog_int64(1, 0);
	args[1] = CATALOG_INT64(bytes);
	if (announced < 0)
		files_require_quota(uid, PG_GETARG_INT64(0), bytes);
	catalog_run(&files_end, args, false);
	key = catalog_string(&scope, 1);
	catalog_run(&files_count, args, false);
	timer_remove(TIMER_UPLOAD, PG_GETARG_INT64(0));
	catalog_end(&scope);
	PG_RETURN_TEXT_P(cstring_to_text(key));
}

/* file_abort(upload_id) */
Datum
sheet_file_abort(PG_FUNCTION_ARGS)
{
	CatalogScope scope;

	permission_require_gateway();
	catalog_begin(&scope);
	files_delete(&files_abort, fcinfo->args);
	timer_remove(TIMER_UPLOAD, PG_GETARG_INT64(0));
	catalog_end(&scope);
	PG_RETURN_VOID();
}

/* file_info(sheet_id, name, digest) */
Datum
sheet_file_info(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	catalog_require_args(fcinfo);
	return catalog_return_rows(fcinfo, &files_info, fcinfo->args, true);
}

/* file_by_digest(digest, name) */
Datum
sheet_file_by_digest(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	catalog_require_args(fcinfo);
	return catalog_return_rows(fcinfo, &files_by_digest, fcinfo->args, true);
}

/* account_files(max_rows, before, as_uid) */
Datum
sheet_account_files(PG_FUNCTION_ARGS)
{
	int32 rows = catalog_arg_page(fcinfo, 0, FILES_PAGE_MAX, "files");
	int64 uid = permission_uid(catalog_arg_int64(fcinfo, 2, 0));
	NullableDatum args[] = {CATALOG_INT64(uid), CATALOG_INT64(catalog_arg_int64(fcinfo, 1, PG_INT64_MAX)),
							CATALOG_DATUM(Int32GetDatum(rows))};

	return catalog_return_rows(fcinfo, &files_of_account, args, true);
}

/* file_usage(as_uid) */
Datum
sheet_file_usage(PG_FUNCTION_ARGS)
{
	int64 uid = permission_uid(catalog_arg_int64(fcinfo, 0, 0));
	NullableDatum args[] = {CATALOG_INT64(uid), CATALOG_INT64((int64) files_quota_kb * 1024)};

	return catalog_return_rows(fcinfo, &files_usage, args, true);
}

/* The account may delete the file: it has uploaded it, or owns the sheet. Files of a sheet that it can no longer see
 * count for its quota, too. */
static bool
files_may_delete(int64 upload_id, int64 as_uid)
{
	NullableDatum arg = CATALOG_INT64(upload_id);
	int64 uid = permission_uid(as_uid), sheet_id = 0, uploader = 0;
	CatalogScope scope;

	catalog_begin(&scope);
	if (catalog_run_latest(&files_owner, &arg) > 0)
	{
		sheet_id = catalog_int64(1, 0);
		uploader = catalog_int64(2, 0);
	}
	catalog_end(&scope);
	if (sheet_id == 0)
		return false;
	return (uid != 0 && uploader == uid) || permission_role(sheet_id, as_uid) == ROLE_OWNER;
}

/* file_delete(upload_id, as_uid) */
Datum
sheet_file_delete(PG_FUNCTION_ARGS)
{
	int64 upload_id = catalog_arg_int64(fcinfo, 0, 0);
	CatalogScope scope;

	catalog_require_arg(fcinfo, 0, "file");
	if (!files_may_delete(upload_id, catalog_arg_int64(fcinfo, 1, 0)))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("there is no file " INT64_FORMAT, upload_id)));
	catalog_begin(&scope);
	files_delete(&files_delete_one, fcinfo->args);
	catalog_end(&scope);
	PG_RETURN_VOID();
}

/* file_get(upload_id, part): NULL past the end */
Datum
sheet_file_get(PG_FUNCTION_ARGS)
{
	CatalogScope scope;
	bytea *data = NULL;
	bool isnull;

	permission_require_gateway();
	catalog_begin(&scope);
	if (catalog_run(&files_get, fcinfo->args, true) > 0)
	{
		Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
		MemoryContext old = MemoryContextSwitchTo(scope.caller);

		data = DatumGetByteaPCopy(value);
		MemoryContextSwitchTo(old);
	}
	catalog_end(&scope);
	if (data == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(data);
}

/* file_list(sheet_id) */
Datum
sheet_file_list(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	catalog_require_args(fcinfo);
	return catalog_return_rows(fcinfo, &files_list, fcinfo->args, true);
}
