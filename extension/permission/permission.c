/*
 * permission.c - who may do what to a sheet.
 *
 * The caller is GetUserId(): the role of the session, after SET ROLE, or the owner of the SECURITY DEFINER function
 * that calls us. A superuser may do everything; any other role acts as the account that is linked to it.
 */
#include "permission/permission.h"

#include "access/stratnum.h"
#include "permission/catalog.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "journal/store/storage.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(sheet_check_role);
PG_FUNCTION_INFO_V1(sheet_role_of);
PG_FUNCTION_INFO_V1(sheet_current_uid);
PG_FUNCTION_INFO_V1(sheet_sees_all);

static const char *const permission_names[] = {"none", "viewer", "commenter", "editor", "owner"};

/*
 * The rule of the view sheet.list: $1 is the account, $2 and $3 bound the sheets. One sheet is a statement of its own,
 * since its plan fits all sheets and is kept; for a range the server had better plan anew.
 */
#define PERMISSION_LIST                                                                                                \
	"SELECT m.sheet_id FROM sheet.member m, LATERAL (SELECT s.trashed_at, "                                            \
	"sheet.member_role(m.role, m.link_no, s.link_role, s.link_digest, s.link_no) AS role "                             \
	"FROM sheet.sheet s WHERE s.sheet_id = m.sheet_id OFFSET 0) s "                                                    \
	"WHERE m.uid = $1 AND (m.role IS NOT NULL OR m.link_no IS NOT NULL) AND s.role IS NOT NULL "                       \
	"AND (s.trashed_at IS NULL OR s.role = 'owner') AND m.sheet_id "
static CatalogQuery permission_list_one = {PERMISSION_LIST "= $2", 2, {INT8OID, INT8OID}};
static CatalogQuery permission_list_range = {
	PERMISSION_LIST "BETWEEN $2 AND $3 ORDER BY 1", 3, {INT8OID, INT8OID, INT8OID}};
static CatalogQuery permission_list_all = {
	"SELECT sheet_id FROM sheet.sheet WHERE sheet_id BETWEEN $1 AND $2 ORDER BY 1", 2, {INT8OID, INT8OID}};

/* ---- who calls ---- */

static Oid permission_gateway_role = InvalidOid;

static void
permission_forget_roles(Datum arg, int cacheid, uint32 hash)
{
	permission_gateway_role = InvalidOid;
}

static bool
permission_is_gateway(void)
{
	static bool watching = false;

	if (superuser())
		return true;
	if (!watching)
	{
		CacheRegisterSyscacheCallback(AUTHOID, permission_forget_roles, (Datum) 0);
		watching = true;
	}
	if (!OidIsValid(permission_gateway_role))
		permission_gateway_role = get_role_oid("sheet_gateway", true);
	return OidIsValid(permission_gateway_role) && has_privs_of_role(GetUserId(), permission_gateway_role);
}

void
permission_require_gateway(void)
{
	if (!permission_is_gateway())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only gateways may act for others"),
						errdetail("The role \"%s\" is not a member of \"sheet_gateway\".",
								  GetUserNameFromId(GetUserId(), false))));
}

/*
 * The rows that say who may do what are asked for with every read and edit, so they are looked up in their indexes,
 * past SQL. The caller needs no right on the tables for it.
 */
static bool
permission_scan(StorageScan *scan, StorageTable table, Snapshot snapshot, const StorageKey *keys, int nkeys)
{
	storage_scan_begin(scan, table, snapshot, keys, nkeys);
	return storage_scan_next(scan, ForwardScanDirection);
}

static int64
permission_uid_by(int64 as_uid, Snapshot snapshot)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, GetUserId()};
	StorageScan scan;
	int64 uid = 0;
	bool isnull;

	if (as_uid != 0)
	{
		permission_require_gateway();
		return as_uid;
	}
	if (permission_scan(&scan, STORAGE_ACCOUNT_OF_ROLE, snapshot, &key, 1))
		uid = DatumGetInt64(storage_value(&scan, "uid", &isnull));
	storage_scan_end(&scan);
	return uid;
}

int64
permission_uid(int64 as_uid)
{
	return permission_uid_by(as_uid, GetActiveSnapshot());
}

/* ---- what the caller may do ---- */

static SheetRole
permission_parse(const char *name)
{
	for (int role = ROLE_NONE; name != NULL && role <= ROLE_OWNER; role++)
		if (strcmp(name, permission_names[role]) == 0)
			return role;
	return ROLE_NONE;
}

/* The role that a column of the current row names. */
static SheetRole
permission_role_in(StorageScan *scan, const char *column)
{
	bool isnull;
	Datum value = storage_value(scan, column, &isnull);

	return isnull ? ROLE_NONE : permission_parse(TextDatumGetCString(value));
}

/* The link by which somebody can come to a sheet. */
typedef struct PermissionLink
{
	SheetRole role;
	int32 number;
	bool keyed; /* only who has come by it has its role */
} PermissionLink;

/* The role that the account was given, or has from the link by which it came. */
static SheetRole
permission_of_member(int64 sheet_id, int64 uid, Snapshot snapshot, const PermissionLink *link)
{
	StorageKey keys[2] = {{1, BTEqualStrategyNumber, false, sheet_id}, {2, BTEqualStrategyNumber, false, uid}};
	StorageScan scan;
	SheetRole role = ROLE_NONE;

	if (permission_scan(&scan, STORAGE_MEMBER, snapshot, keys, 2))
	{
		bool isnull;
		int32 number = DatumGetInt32(storage_value(&scan, "link_no", &isnull));

		role = permission_role_in(&scan, "role");
		if (!isnull && number == link->number)
			role = Max(role, link->role);
	}
	storage_scan_end(&scan);
	return role;
}

/* What the sheet's own row says of the account. */
static SheetRole
permission_of_sheet(int64 sheet_id, int64 uid, Snapshot snapshot, bool *exists, bool *trashed, PermissionLink *link)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};
	StorageScan scan;
	SheetRole role = ROLE_NONE;

	*trashed = false;
	*exists = permission_scan(&scan, STORAGE_SHEET, snapshot, &key, 1);
	if (*exists)
	{
		bool isnull;

		(void) storage_value(&scan, "trashed_at", &isnull);
		*trashed = !isnull;
		link->role = permission_role_in(&scan, "link_role");
		link->number = DatumGetInt32(storage_value(&scan, "link_no", &isnull));
		(void) storage_value(&scan, "link_digest", &isnull);
		link->keyed = !isnull;
		if (uid != 0 && DatumGetInt64(storage_value(&scan, "owner", &isnull)) == uid && !isnull)
			role = ROLE_OWNER;
		else if (uid != 0 && !link->keyed)
			role = link->role;
	}
	storage_scan_end(&scan);
	return role;
}

/* Superusers who act for nobody else own everything. */
static SheetRole
permission_find_by(int64 sheet_id, int64 as_uid, Snapshot snapshot, bool *trashed)
{
	bool sees_all = as_uid == 0 && superuser(), exists;
	int64 uid = sees_all ? 0 : permission_uid_by(as_uid, snapshot);
	PermissionLink link;
	SheetRole role = permission_of_sheet(sheet_id, uid, snapshot, &exists, trashed, &link);

	if (!exists)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	if (sees_all)
		return ROLE_OWNER;
	if (uid != 0 && role < ROLE_EDITOR)
		role = Max(role, permission_of_member(sheet_id, uid, snapshot, &link));
	return role;
}

/*
 * Whoever changes a sheet needs the role now, however old the snapshot is with which the transaction or the statement
 * reads: a role that was taken away since does not count. Nor does the snapshot show a sheet that the statement has
 * made itself.
 */
static SheetRole
permission_find(int64 sheet_id, int64 as_uid, bool now, bool *trashed)
{
	Snapshot snapshot = RegisterSnapshot(now ? GetLatestSnapshot() : GetActiveSnapshot());
	SheetRole role = permission_find_by(sheet_id, as_uid, snapshot, trashed);

	UnregisterSnapshot(snapshot);
	return role;
}

SheetRole
permission_role(int64 sheet_id, int64 as_uid)
{
	bool trashed;

	return permission_find(sheet_id, as_uid, false, &trashed);
}

const char *
permission_role_name(SheetRole role)
{
	return permission_names[role];
}

static void
permission_check(int64 sheet_id, SheetRole role, SheetRole needed, bool trashed)
{
	if (role < needed)
		ereport(
			ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for sheet " INT64_FORMAT, sheet_id),
			 errdetail("It needs the role \"%s\"; yours is \"%s\".", permission_names[needed], permission_names[role]),
			 errhint("The owner of the sheet can share it with sheet.share().")));
	if (trashed)
		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'T', '0', '0', '1')),
						errmsg("sheet " INT64_FORMAT " is in the trash", sheet_id),
						errhint("Its owner can bring it back with sheet.recover().")));
}

void
permission_require(int64 sheet_id, int64 as_uid, SheetRole needed, bool allow_trashed)
{
	bool trashed;
	SheetRole role = permission_find(sheet_id, as_uid, needed >= ROLE_EDITOR, &trashed);

	permission_check(sheet_id, role, needed, trashed && !allow_trashed);
}

SheetRole
permission_require_now(int64 sheet_id, int64 as_uid, SheetRole needed)
{
	bool trashed;
	SheetRole role = permission_find(sheet_id, as_uid, true, &trashed);

	permission_check(sheet_id, role, needed, trashed);
	return role;
}

void
permission_require_reader(int64 sheet_id)
{
	if (!permission_is_gateway())
		permission_require(sheet_id, 0, ROLE_VIEWER, false);
}

void
permission_require_log(int64 sheet_id)
{
	bool trashed;
	SheetRole role = permission_find(sheet_id, 0, false, &trashed);

	permission_check(sheet_id, role, ROLE_VIEWER, trashed && role < ROLE_OWNER);
}

/* Is the sheet there, and the account its owner, or one that sees all? Then its row alone tells that it is listed. */
static bool
permission_lists_own(int64 sheet_id, int64 uid, bool sees_all)
{
	bool exists, trashed;
	PermissionLink link;
	SheetRole role = permission_of_sheet(sheet_id, uid, GetActiveSnapshot(), &exists, &trashed, &link);

	return exists && (sees_all || role == ROLE_OWNER);
}

int64 *
permission_listed(int64 low, int64 high, int *count)
{
	CatalogScope scope;
	bool sees_all = superuser();
	int64 uid = sees_all ? 0 : permission_uid(0);
	Datum values[3] = {Int64GetDatum(uid), Int64GetDatum(low), Int64GetDatum(high)};
	CatalogQuery *query = sees_all ? &permission_list_all : low == high ? &permission_list_one : &permission_list_range;
	int64 *ids;
	bool isnull;

	if (low == high && permission_lists_own(low, uid, sees_all))
	{
		ids = palloc(sizeof(int64));
		ids[0] = low;
		*count = 1;
		return ids;
	}
	catalog_begin(&scope);
	*count = (int) Min(catalog_run(query, sees_all ? values + 1 : values, NULL, true), PG_INT32_MAX);
	ids = MemoryContextAllocHuge(scope.caller, sizeof(int64) * Max(*count, 1));
	for (int i = 0; i < *count; i++)
		ids[i] = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull));
	catalog_end(&scope);
	return ids;
}

/* ---- for SQL ---- */

/* check_role(sheet_id, as_uid, role, allow_trashed) */
Datum
sheet_check_role(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	char *name = catalog_arg_string(fcinfo, 2, "role");
	SheetRole needed = permission_parse(name);

	if (needed == ROLE_NONE)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is not a role of sheets", name),
						errhint("The roles are viewer, commenter, editor and owner.")));
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 1, 0), needed, !PG_ARGISNULL(3) && PG_GETARG_BOOL(3));
	PG_RETURN_VOID();
}

/* role_of(sheet_id, as_uid): NULL when there is none */
Datum
sheet_role_of(PG_FUNCTION_ARGS)
{
	SheetRole role = permission_role(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0));

	if (role == ROLE_NONE)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(permission_names[role]));
}

/* current_uid(): the account of the current role, 0 when there is none */
Datum
sheet_current_uid(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(permission_uid(0));
}

Datum
sheet_sees_all(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(superuser());
}
