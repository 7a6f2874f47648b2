/* files_api.c - SQL functions for files attached to sheets, in parts; and the one coordinator without ZooKeeper. */
#include "postgres.h"

#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "permission/permission.h"
#include "permission/quota.h"
#include "storage/lock.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(sheet_file_begin);
PG_FUNCTION_INFO_V1(sheet_file_put);
PG_FUNCTION_INFO_V1(sheet_file_end);
PG_FUNCTION_INFO_V1(sheet_file_abort);
PG_FUNCTION_INFO_V1(sheet_file_info);
PG_FUNCTION_INFO_V1(sheet_file_get);
PG_FUNCTION_INFO_V1(sheet_file_list);
PG_FUNCTION_INFO_V1(sheet_coordinator_acquire);
PG_FUNCTION_INFO_V1(sheet_coordinator_holder);

#define CHUNK_PART_BYTES 262144
#define CHUNK_NAME_BYTES 255
#define CHUNK_NUMBER_MAX (1 << 30)
#define COORDINATOR_LOCK 0x5345 /* LOCKTAG_ADVISORY's field4; sheets use 0x5348 */

static CatalogQuery chunk_expire = {
	"DELETE FROM sheet.file WHERE sheet_id = $1 AND size IS NULL AND created_at < now() - interval '1 day'",
	1,
	{INT8OID}};
static CatalogQuery chunk_insert = {
	"INSERT INTO sheet.file (sheet_id, name, content_type, uid, announced) VALUES ($1, $2, $3, $4, $5) "
	"ON CONFLICT (sheet_id, name) DO NOTHING RETURNING upload_id",
	5,
	{INT8OID, TEXTOID, TEXTOID, INT8OID, INT8OID}};
static CatalogQuery chunk_taken = {"SELECT 1 FROM sheet.file WHERE sheet_id = $1 AND name = $2", 2, {INT8OID, TEXTOID}};
static CatalogQuery chunk_row = {"SELECT $1::text, $2::int8", 2, {TEXTOID, INT8OID}};
static CatalogQuery chunk_open = {
	"SELECT uid, announced FROM sheet.file WHERE upload_id = $1 AND size IS NULL FOR UPDATE", 1, {INT8OID}};
static CatalogQuery chunk_put = {
	"INSERT INTO sheet.file_part (upload_id, part, data) VALUES ($1, $2, $3)", 3, {INT8OID, INT4OID, BYTEAOID}};
/* Whole: parts are numbered from 0 without a gap, and all but the last are full. */
static CatalogQuery chunk_whole = {
	"SELECT coalesce(sum(length(data)), 0)::int8, (count(*) = coalesce(max(part) + 1, 0) AND "
	"count(*) FILTER (WHERE length(data) < 262144) <= 1 AND "
	"coalesce(max(part) FILTER (WHERE length(data) < 262144) = max(part), true))::int::int8 "
	"FROM sheet.file_part WHERE upload_id = $1",
	1,
	{INT8OID}};
static CatalogQuery chunk_end = {"UPDATE sheet.file SET size = $2, etag = $3, created_at = now() WHERE upload_id = $1 "
								 "RETURNING link_key",
								 3,
								 {INT8OID, INT8OID, TEXTOID}};
static CatalogQuery chunk_count = {"INSERT INTO sheet.file_use SELECT uid, size FROM sheet.file "
								   "WHERE upload_id = $1 AND uid IS NOT NULL",
								   1,
								   {INT8OID}};
static CatalogQuery chunk_abort = {"DELETE FROM sheet.file WHERE upload_id = $1 AND size IS NULL", 1, {INT8OID}};
static CatalogQuery chunk_info = {
	"SELECT upload_id, size, content_type, etag, c.created_at, link_key = $3 AND trashed_at IS NULL "
	"FROM sheet.file c JOIN sheet.sheet USING (sheet_id) WHERE sheet_id = $1 AND c.name = $2 AND size IS NOT NULL",
	3,
	{INT8OID, TEXTOID, TEXTOID}};
static CatalogQuery chunk_get = {"SELECT p.data FROM sheet.file_part p JOIN sheet.file c USING (upload_id) "
								 "WHERE p.upload_id = $1 AND p.part = $2 AND c.size IS NOT NULL",
								 2,
								 {INT8OID, INT4OID}};
static CatalogQuery chunk_list = {
	"SELECT name COLLATE \"default\" FROM sheet.file WHERE sheet_id = $1 AND size IS NOT NULL ORDER BY upload_id",
	1,
	{INT8OID}};

/* Names go into paths and headers: no separators, no control characters, no "." and "..". */
static void
chunk_check_name(const char *name)
{
	catalog_check_name("file name", name, CHUNK_NAME_BYTES);
	if (strlen(name) > CHUNK_NAME_BYTES || strchr(name, '/') != NULL || strchr(name, '\\') != NULL ||
		strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is not a name for a file", name),
						errdetail("File names have 1 to %d bytes, no slash and no backslash.", CHUNK_NAME_BYTES)));
}

/* "a.b.txt", 2: "a.b (2).txt"; shortened before the number when it would get too long, never inside a character. */
static char *
chunk_numbered_name(const char *name, int number)
{
	const char *dot = strrchr(name, '.');
	const char *suffix = dot != NULL && dot != name && strlen(dot) <= 32 ? dot : name + strlen(name);
	char *tail = psprintf(" (%d)%s", number, suffix);
	int stem = Min((int) (suffix - name), CHUNK_NAME_BYTES - (int) strlen(tail));

	while (stem > 0 && ((unsigned char) name[stem] & 0xC0) == 0x80)
		stem--;
	return psprintf("%.*s%s", stem, name, tail);
}

static bool
chunk_is_taken(int64 sheet_id, const char *wanted, int number)
{
	Datum values[2] = {Int64GetDatum(sheet_id), CStringGetTextDatum(chunk_numbered_name(wanted, number))};

	return catalog_run(&chunk_taken, values, NULL, false) > 0;
}

/* A name that is free, behind one that is taken: the steps are as many as the number of such names has digits. */
static char *
chunk_free_name(int64 sheet_id, const char *wanted)
{
	int taken = 1, vacant = 2;

	while (chunk_is_taken(sheet_id, wanted, vacant))
	{
		taken = vacant;
		vacant *= 2;
		if (vacant > CHUNK_NUMBER_MAX)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many files are named \"%s\"", wanted)));
	}
	while (vacant - taken > 1)
	{
		int middle = taken + (vacant - taken) / 2;

		if (chunk_is_taken(sheet_id, wanted, middle))
			taken = middle;
		else
			vacant = middle;
	}
	return chunk_numbered_name(wanted, vacant);
}

/* Whose it is, and the bytes that it was announced with; -1: it was not. */
static void
chunk_require_open(int64 upload_id, int64 *uid, int64 *announced)
{
	Datum value = Int64GetDatum(upload_id);
	bool isnull;

	if (catalog_run(&chunk_open, &value, NULL, false) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("no upload " INT64_FORMAT " is under way", upload_id)));
	*uid = catalog_int64(1, &isnull);
	if (isnull)
		*uid = 0;
	*announced = catalog_int64(2, &isnull);
	if (isnull)
		*announced = -1;
}

/* chunk_begin(sheet_id, name, content_type, as_uid, size) */
Datum
sheet_file_begin(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 3, 0);
	char *wanted = catalog_arg_string(fcinfo, 1, "file name");
	char *name = wanted;
	int64 size = catalog_arg_int64(fcinfo, 4, 0);
	Datum values[5] = {Int64GetDatum(sheet_id), (Datum) 0, PG_GETARG_DATUM(2), (Datum) 0, PG_GETARG_DATUM(4)};
	bool nulls[5] = {false, false, PG_ARGISNULL(2), false, PG_ARGISNULL(4)};
	Datum row[2];
	CatalogScope scope;
	bool isnull;

	permission_require_gateway();
	chunk_check_name(wanted);
	if (size < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a file has 0 bytes or more")));
	permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	values[3] = Int64GetDatum(permission_uid(as_uid));
	catalog_begin(&scope);
	catalog_run(&chunk_expire, values, NULL, false);
	quota_require(DatumGetInt64(values[3]), 0, size);
	values[1] = CStringGetTextDatum(name);
	while (catalog_run(&chunk_insert, values, nulls, false) == 0)
	{
		name = chunk_free_name(sheet_id, wanted);
		values[1] = CStringGetTextDatum(name);
	}
	row[1] = Int64GetDatum(catalog_int64(1, &isnull));
	name = MemoryContextStrdup(scope.caller, name);
	catalog_end(&scope);
	row[0] = CStringGetTextDatum(name);
	return catalog_return_rows(fcinfo, &chunk_row, row, NULL, true);
}

/* chunk_put(upload_id, part, data) */
Datum
sheet_file_put(PG_FUNCTION_ARGS)
{
	bytea *data = PG_GETARG_BYTEA_PP(2);
	Datum values[3] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), PointerGetDatum(data)};
	CatalogScope scope;
	int64 uid, announced;

	permission_require_gateway();
	if (PG_GETARG_INT32(1) < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("parts are numbered from 0")));
	if (VARSIZE_ANY_EXHDR(data) < 1 || VARSIZE_ANY_EXHDR(data) > CHUNK_PART_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a part has 1 to %d bytes, this one has %zu",
																  CHUNK_PART_BYTES, (size_t) VARSIZE_ANY_EXHDR(data))));
	catalog_begin(&scope);
	chunk_require_open(PG_GETARG_INT64(0), &uid, &announced);
	if (announced >= 0 && (int64) PG_GETARG_INT32(1) * CHUNK_PART_BYTES + (int64) VARSIZE_ANY_EXHDR(data) > announced)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the upload was announced with " INT64_FORMAT " bytes, and has more", announced)));
	catalog_run(&chunk_put, values, NULL, false);
	catalog_end(&scope);
	PG_RETURN_VOID();
}

/* chunk_end(upload_id, sha256) */
Datum
sheet_file_end(PG_FUNCTION_ARGS)
{
	Datum values[3] = {PG_GETARG_DATUM(0), (Datum) 0, PG_GETARG_DATUM(1)};
	CatalogScope scope;
	int64 uid, announced;
	bool isnull;
	char *key;

	permission_require_gateway();
	catalog_begin(&scope);
	chunk_require_open(PG_GETARG_INT64(0), &uid, &announced);
	catalog_run(&chunk_whole, values, NULL, false);
	if (catalog_int64(2, &isnull) != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the upload is not complete"),
						errdetail("All parts but the last have %d bytes, and none is missing.", CHUNK_PART_BYTES)));
	values[1] = Int64GetDatum(catalog_int64(1, &isnull));
	if (announced < 0)
		quota_require(uid, PG_GETARG_INT64(0), DatumGetInt64(values[1]));
	catalog_run(&chunk_end, values, NULL, false);
	key = catalog_string(&scope, 1);
	catalog_run(&chunk_count, values, NULL, false);
	catalog_end(&scope);
	PG_RETURN_TEXT_P(cstring_to_text(key));
}

/* chunk_abort(upload_id) */
Datum
sheet_file_abort(PG_FUNCTION_ARGS)
{
	Datum value = PG_GETARG_DATUM(0);

	permission_require_gateway();
	catalog_execute(&chunk_abort, &value, NULL);
	PG_RETURN_VOID();
}

/* chunk_info(sheet_id, name, key) */
Datum
sheet_file_info(PG_FUNCTION_ARGS)
{
	Datum values[3] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2)};

	permission_require_gateway();
	return catalog_return_rows(fcinfo, &chunk_info, values, NULL, true);
}

/* chunk_get(upload_id, part) */
Datum
sheet_file_get(PG_FUNCTION_ARGS)
{
	Datum values[2] = {PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)};
	CatalogScope scope;
	bytea *data = NULL;
	bool isnull;

	permission_require_gateway();
	catalog_begin(&scope);
	if (catalog_run(&chunk_get, values, NULL, true) > 0)
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

/* chunk_list(sheet_id) */
Datum
sheet_file_list(PG_FUNCTION_ARGS)
{
	Datum value = PG_GETARG_DATUM(0);

	permission_require_gateway();
	return catalog_return_rows(fcinfo, &chunk_list, &value, NULL, true);
}

/* ---- the coordinator ---- */

static CatalogQuery coordinator_epoch = {
	"SELECT setval('sheet.coordinator_epoch_seq', greatest(nextval('sheet.coordinator_epoch_seq'), "
	"coalesce((SELECT max(epoch) FROM sheet.ownership), 0) + 1))",
	0};
static CatalogQuery coordinator_store = {
	"INSERT INTO sheet.coordinator (holder, epoch, pid) VALUES ($1, $2, pg_backend_pid()) "
	"ON CONFLICT (one) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, pid = excluded.pid",
	2,
	{TEXTOID, INT8OID}};
static CatalogQuery coordinator_read = {"SELECT holder FROM sheet.coordinator", 0};

/* coordinator_acquire(holder): the lock is the session's, so that it goes with the session */
Datum
sheet_coordinator_acquire(PG_FUNCTION_ARGS)
{
	LOCKTAG tag;
	CatalogScope scope;
	Datum values[2] = {PG_GETARG_DATUM(0), (Datum) 0};
	int64 epoch;
	bool isnull;

	permission_require_gateway();
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, COORDINATOR_LOCK);
	switch (LockAcquire(&tag, ExclusiveLock, true, true))
	{
		case LOCKACQUIRE_NOT_AVAIL:
			PG_RETURN_NULL();
		case LOCKACQUIRE_ALREADY_HELD: /* once is enough: the session's end releases it */
			LockRelease(&tag, ExclusiveLock, true);
			break;
		default:
			break;
	}
	catalog_begin(&scope);
	catalog_run(&coordinator_epoch, NULL, NULL, false);
	epoch = catalog_int64(1, &isnull);
	values[1] = Int64GetDatum(epoch);
	catalog_run(&coordinator_store, values, NULL, false);
	catalog_end(&scope);
	PG_RETURN_INT64(epoch);
}

Datum
sheet_coordinator_holder(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	return catalog_return_text(fcinfo, &coordinator_read, NULL, false);
}
