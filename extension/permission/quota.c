/*
 * quota.c - how many bytes of files an account may have (pg_sheet.file_quota).
 *
 * An upload that was announced with its size counts from its beginning, so that many at once cannot take more than is
 * allowed; one that has not ended counts no more when it is a day old, as it may be removed then. Finished files are
 * counted in sheet.file_use, by rows that everybody adds without waiting for anybody; who asks for the sum, under a
 * lock on the account, leaves one row.
 */
#include "permission/quota.h"

#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "utils/guc.h"

static int quota_kb;

static CatalogQuery quota_lock = {"SELECT 1 FROM sheet.account WHERE uid = $1 FOR NO KEY UPDATE", 1, {INT8OID}};
static CatalogQuery quota_finished = {
	"WITH rows AS (DELETE FROM sheet.file_use WHERE uid = $1 RETURNING bytes) "
	"INSERT INTO sheet.file_use SELECT $1, coalesce(sum(bytes), 0) FROM rows RETURNING bytes",
	1,
	{INT8OID}};
static CatalogQuery quota_unfinished = {
	"SELECT coalesce(sum(announced), 0)::int8 FROM sheet.file WHERE uid = $1 AND upload_id <> $2 "
	"AND size IS NULL AND created_at > now() - interval '1 day'",
	2,
	{INT8OID, INT8OID}};

void
quota_init(void)
{
	DefineCustomIntVariable("pg_sheet.file_quota", "Maximum bytes of files that an account may attach to sheets.",
							"0: no limit.", &quota_kb, 0, 0, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB, NULL, NULL, NULL);
}

void
quota_require(int64 uid, int64 upload_id, int64 bytes)
{
	Datum values[2] = {Int64GetDatum(uid), Int64GetDatum(upload_id)};
	int64 quota = (int64) quota_kb * 1024, used;
	bool isnull;

	if (quota == 0 || uid == 0)
		return;
	catalog_run(&quota_lock, values, NULL, false);
	catalog_run(&quota_finished, values, NULL, false);
	used = catalog_int64(1, &isnull);
	catalog_run(&quota_unfinished, values, NULL, false);
	used += catalog_int64(1, &isnull);
	if (bytes > quota - used)
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'Q', '0', '0', '1')),
						errmsg("this file of " INT64_FORMAT " bytes would exceed the quota", bytes),
						errdetail("The account's files have " INT64_FORMAT " bytes, and " INT64_FORMAT " are allowed.",
								  used, quota),
						errhint("Remove sheets whose files are not needed, or have pg_sheet.file_quota raised.")));
}
