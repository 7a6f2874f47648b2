/*
 * permission.c - who may do what to a sheet.
 *
 * The caller is GetUserId(): the role of the session, that of SET ROLE, or the owner of a SECURITY DEFINER function
 * that calls us. A superuser may do everything. Any other role acts as the account that is linked to its name
 * (sheet.account.db_role), without one as nobody. Superusers and members of sheet_gateway may name the account for
 * which they act (as_uid).
 *
 * An account's role on a sheet is the highest of these:
 *   - owner, if it is sheet.sheet.owner;
 *   - the role that it was given in sheet.member;
 *   - the role of the sheet's link, if the link has no key, or if its row in sheet.member has the link's number.
 * A guest (a negative uid) has the role of the link on the link's sheet, while the link is valid, and no other. The end
 * of the link is compared with the clock, not with the start of the transaction. A link to a rectangle gives no role on
 * the sheet: its role counts in the rectangle alone (api/programs/link_write.c).
 * A viewer may read the cells, the versions and the log. A sheet in the trash can be read by nobody, its log only by
 * its owner. Gateways may read every sheet, since they read for all their users; they check the role of each user by
 * as_uid.
 *
 * sheet.list and sheet.log show fewer sheets, those of the view sheet.listed: the account has a row in sheet.member,
 * and in the trash only its own. permission_lists() has the same rule.
 */
#include "permission/permission.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "permission/catalog.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "journal/store/storage.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_check_role);
PG_FUNCTION_INFO_V1(sheet_role_of);
PG_FUNCTION_INFO_V1(sheet_current_uid);
PG_FUNCTION_INFO_V1(sheet_sees_all);

static const char *const permission_names[] = {"none", "viewer", "commenter", "editor", "owner"};

static CatalogQuery permission_list_range = {
	"SELECT sheet_id FROM sheet.listed WHERE uid = $1 AND sheet_id BETWEEN $2 AND $3 ORDER BY 1",
	{INT8OID, INT8OID, INT8OID},
	.by_values = true};
static CatalogQuery permission_list_all = {
	"SELECT sheet_id FROM sheet.sheet WHERE sheet_id BETWEEN $1 AND $2 ORDER BY 1", {INT8OID, INT8OID}};
static CatalogQuery permission_relink_role = {"UPDATE sheet.account SET db_role = $2 WHERE db_role = $1",
											  {NAMEOID, NAMEOID}};

/* ---- who calls ---- */

static Oid permission_gateway_role = InvalidOid;

static void
permission_forget_roles(Datum arg, int cacheid, uint32 hash)
{
	permission_gateway_role = InvalidOid;
}

bool
permission_is_gateway_role(Oid role)
{
	static bool watching = false;

	if (superuser_arg(role))
		return true;
	if (!watching)
	{
		CacheRegisterSyscacheCallback(AUTHOID, permission_forget_roles, (Datum) 0);
		watching = true;
	}
	if (!OidIsValid(permission_gateway_role))
		permission_gateway_role = get_role_oid("sheet_gateway", true);
	return OidIsValid(permission_gateway_role) && has_privs_of_role(role, permission_gateway_role);
}

static bool
permission_is_gateway(void)
{
	return permission_is_gateway_role(GetUserId());
}

void
permission_require_gateway(void)
{
	if (!permission_is_gateway())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only gateways may act for others"),
						errdetail("The role \"%s\" is not a member of \"sheet_gateway\".",
								  GetUserNameFromId(GetUserId(), false))));
}

void
permission_refuse_guest(int64 uid)
{
	if (permission_is_guest(uid))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("a guest has no account"),
						errdetail("Whoever opens a sheet by a link can use that sheet only.")));
}

/* Permission is checked with every read and edit, so its rows are read through their indexes without SQL. The caller
 * needs no privilege on the tables. Returns whether a row was found. The caller ends the scan. */
static bool
permission_scan(StorageScan *scan, StorageTable table, Snapshot snapshot, const StorageKey *keys, int nkeys)
{
	storage_scan_begin(scan, table, snapshot, keys, nkeys);
	return storage_scan_next(scan, ForwardScanDirection);
}

static int64
permission_uid_by(int64 as_uid, Snapshot snapshot)
{
	StorageScan scan;
	StorageKey key;
	int64 uid = 0;
	bool isnull;

	if (as_uid != 0)
	{
		permission_require_gateway();
		return as_uid;
	}
	key = storage_key_name(1, GetUserNameFromId(GetUserId(), false));
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

/* A row of sheet.sheet. */
typedef struct PermissionSheet
{
	bool exists, trashed;
	SheetRole role; /* of the account, if it has no row in sheet.member */
	SheetRole link_role;
	int32 link_no;
	bool keyed; /* only accounts that opened the sheet by the link have its role */
} PermissionSheet;

static PermissionSheet
permission_read_sheet(int64 sheet_id, int64 uid, Snapshot snapshot)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, sheet_id};
	StorageScan scan;
	PermissionSheet sheet = {.exists = permission_scan(&scan, STORAGE_SHEET, snapshot, &key, 1)};

	if (sheet.exists)
	{
		bool isnull;

		(void) storage_value(&scan, "trashed_at", &isnull);
		sheet.trashed = !isnull;
		sheet.link_role = permission_role_in(&scan, "link_role");
		sheet.link_no = DatumGetInt32(storage_value(&scan, "link_no", &isnull));
		(void) storage_value(&scan, "link_digest", &isnull);
		sheet.keyed = !isnull;
		if (uid > 0 && DatumGetInt64(storage_value(&scan, "owner", &isnull)) == uid && !isnull)
			sheet.role = ROLE_OWNER;
		else if (uid > 0 && !sheet.keyed)
			sheet.role = sheet.link_role;
	}
	storage_scan_end(&scan);
	return sheet;
}

/* The role of an account with a row in sheet.member. Former members, whose row has neither role nor link, have none. */
static SheetRole
permission_of_member(int64 sheet_id, int64 uid, Snapshot snapshot, const PermissionSheet *sheet)
{
	StorageKey keys[2] = {{1, BTEqualStrategyNumber, false, sheet_id}, {2, BTEqualStrategyNumber, false, uid}};
	StorageScan scan;
	SheetRole role = ROLE_NONE;

	if (permission_scan(&scan, STORAGE_MEMBER, snapshot, keys, 2))
	{
		bool no_link;
		int32 link_no = DatumGetInt32(storage_value(&scan, "link_no", &no_link));

		role = permission_role_in(&scan, "role");
		if ((!no_link && link_no == sheet->link_no) || (!sheet->keyed && (!no_link || role != ROLE_NONE)))
			role = Max(role, sheet->link_role);
	}
	storage_scan_end(&scan);
	return role;
}

/* The link of the row may be used now. */
static bool
permission_link_is_valid(StorageScan *scan)
{
	bool never, isnull;
	TimestampTz ends = DatumGetTimestampTz(storage_value(scan, "expires_at", &never));

	if (DatumGetBool(storage_value(scan, "blocked", &isnull)))
		return false;
	(void) storage_value(scan, "revoked_at", &isnull);
	return isnull && (never || GetCurrentTimestamp() < ends);
}

static SheetRole
permission_role_of_link(StorageScan *scan)
{
	return permission_link_is_valid(scan) ? Min(permission_role_in(scan, "role"), ROLE_EDITOR) : ROLE_NONE;
}

/* The role of a guest on the sheet. A link to a rectangle gives none. */
static SheetRole
permission_of_link(int64 sheet_id, int64 uid, Snapshot snapshot)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, permission_link_of(uid)};
	StorageScan scan;
	SheetRole role = ROLE_NONE;
	bool isnull;

	if (permission_scan(&scan, STORAGE_LINK, snapshot, &key, 1) &&
		DatumGetInt64(storage_value(&scan, "sheet_id", &isnull)) == sheet_id &&
		!DatumGetBool(storage_value(&scan, "rectangle", &isnull)))
		role = permission_role_of_link(&scan);
	storage_scan_end(&scan);
	return role;
}

SheetRole
permission_in_part(int64 uid, int64 *sheet_id)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, permission_link_of(uid)};
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	StorageScan scan;
	SheetRole role = ROLE_NONE;
	bool isnull;

	*sheet_id = 0;
	if (permission_scan(&scan, STORAGE_LINK, snapshot, &key, 1) &&
		DatumGetBool(storage_value(&scan, "rectangle", &isnull)))
	{
		*sheet_id = DatumGetInt64(storage_value(&scan, "sheet_id", &isnull));
		role = permission_role_of_link(&scan);
	}
	storage_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	return role;
}

/* An account and its role. */
typedef struct PermissionFound
{
	int64 uid; /* 0 also for a superuser who reads as himself: only a change has an author */
	SheetRole role;
	bool trashed; /* the sheet */
} PermissionFound;

/* A superuser who acts as himself is an owner. */
static PermissionFound
permission_find_by(int64 sheet_id, int64 as_uid, bool now, Snapshot snapshot)
{
	bool sees_all = as_uid == 0 && superuser();
	int64 uid = sees_all && !now ? 0 : permission_uid_by(as_uid, snapshot);
	PermissionSheet sheet = permission_read_sheet(sheet_id, uid, snapshot);
	SheetRole role = sheet.role;

	if (!sheet.exists)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	if (sees_all)
		role = ROLE_OWNER;
	else if (permission_is_guest(uid))
		role = permission_of_link(sheet_id, uid, snapshot);
	else if (uid != 0 && role < ROLE_EDITOR)
		role = Max(role, permission_of_member(sheet_id, uid, snapshot, &sheet));
	return (PermissionFound){uid, role, sheet.trashed};
}

/*
 * now: uses the latest snapshot instead of the active one. A change needs the role at present, however old the
 * transaction's snapshot is, and may be to a sheet that the same statement has made.
 */
static PermissionFound
permission_find(int64 sheet_id, int64 as_uid, bool now)
{
	Snapshot snapshot = RegisterSnapshot(now ? GetLatestSnapshot() : GetActiveSnapshot());
	PermissionFound found = permission_find_by(sheet_id, as_uid, now, snapshot);

	UnregisterSnapshot(snapshot);
	return found;
}

SheetRole
permission_role(int64 sheet_id, int64 as_uid)
{
	return permission_find(sheet_id, as_uid, false).role;
}

const char *
permission_role_name(SheetRole role)
{
	return permission_names[role];
}

void
permission_deny_trashed(int64 sheet_id)
{
	ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'T', '0', '0', '1')),
					errmsg("sheet " INT64_FORMAT " is in the trash", sheet_id),
					errhint("Its owner can bring it back with sheet.recover().")));
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
		permission_deny_trashed(sheet_id);
}

int64
permission_require(int64 sheet_id, int64 as_uid, SheetRole needed, bool allow_trashed)
{
	PermissionFound found = permission_find(sheet_id, as_uid, needed >= ROLE_EDITOR);

	permission_check(sheet_id, found.role, needed, found.trashed && !allow_trashed);
	return found.uid;
}

SheetRole
permission_require_now(int64 sheet_id, int64 as_uid, SheetRole needed)
{
	PermissionFound found = permission_find(sheet_id, as_uid, true);

	permission_check(sheet_id, found.role, needed, found.trashed);
	return found.role;
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
	PermissionFound found = permission_find(sheet_id, 0, false);

	if (!permission_is_gateway())
		permission_check(sheet_id, found.role, ROLE_VIEWER, found.trashed && found.role < ROLE_OWNER);
}

static bool
permission_lists(int64 sheet_id, int64 uid, bool sees_all)
{
	Snapshot snapshot = GetActiveSnapshot();
	PermissionSheet sheet = permission_read_sheet(sheet_id, uid, snapshot);

	if (!sheet.exists || sees_all || sheet.role == ROLE_OWNER)
		return sheet.exists;
	return uid != 0 && !sheet.trashed && permission_of_member(sheet_id, uid, snapshot, &sheet) != ROLE_NONE;
}

int64 *
permission_listed(int64 low, int64 high, int *count)
{
	CatalogScope scope;
	bool sees_all = superuser();
	int64 uid = sees_all ? 0 : permission_uid(0);
	NullableDatum args[] = {CATALOG_INT64(uid), CATALOG_INT64(low), CATALOG_INT64(high)};
	int64 *ids;
	bool isnull;

	if (low == high)
	{
		ids = palloc(sizeof(int64));
		ids[0] = low;
		*count = permission_lists(low, uid, sees_all) ? 1 : 0;
		return ids;
	}
	catalog_begin(&scope);
	*count = (int) Min(sees_all ? catalog_run(&permission_list_all, args + 1, true)
								: catalog_run(&permission_list_range, args, true),
					   PG_INT32_MAX);
	ids = MemoryContextAllocHuge(scope.caller, sizeof(int64) * Max(*count, 1));
	for (int i = 0; i < *count; i++)
		ids[i] = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull));
	catalog_end(&scope);
	return ids;
}

/* ---- roles that are dropped or renamed ---- */

/*
 * Links are by name: they survive a dump, and mean the role that has the name where it is restored. In the database in
 * which it runs, DROP ROLE ends the link and ALTER ROLE ... RENAME keeps it. Commands in other databases do neither:
 * there, a role acts as the account that is linked to its name, as pg_hba.conf would see it.
 */
static object_access_hook_type permission_next_hook = NULL;

/* The role's name in the row that the command has just written, which the caches do not have yet. */
static char *
permission_new_name(Oid role)
{
	Relation rel = table_open(AuthIdRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple row;
	char *name = NULL;

	ScanKeyInit(&key, Anum_pg_authid_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(role));
	scan = systable_beginscan(rel, AuthIdOidIndexId, true, SnapshotSelf, 1, &key);
	if (HeapTupleIsValid(row = systable_getnext(scan)))
		name = pstrdup(NameStr(((Form_pg_authid) GETSTRUCT(row))->rolname));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return name;
}

/* The link may be newer than the snapshot of the transaction. */
static uint64
permission_relink(const NullableDatum *args)
{
	CatalogScope scope;
	uint64 rows;

	catalog_begin(&scope);
	rows = catalog_run_latest(&permission_relink_role, args);
	catalog_end(&scope);
	return rows;
}

/* No role had the new name until now. A link to it was to a role that was dropped or renamed in another database. */
static void
permission_rename_role(const char *old_name, const char *new_name)
{
	NullableDatum args[] = {CATALOG_NAME(new_name), CATALOG_NULL};

	if (permission_relink(args) > 0)
		ereport(NOTICE, (errmsg("the account that was linked to a role \"%s\" is no longer linked", new_name),
						 errdetail("No role had that name.")));
	args[1] = args[0];
	args[0] = CATALOG_NAME(old_name);
	(void) permission_relink(args);
}

static void
permission_role_changes(ObjectAccessType access, Oid role)
{
	NullableDatum args[] = {CATALOG_NULL, CATALOG_NULL};
	char *old_name = GetUserNameFromId(role, true), *new_name;

	if (old_name == NULL || !OidIsValid(get_extension_oid("pg_sheet", true)))
		return;
	args[0] = CATALOG_NAME(old_name);
	if (access == OAT_DROP)
	{
		(void) permission_relink(args);
		return;
	}
	new_name = permission_new_name(role);
	if (new_name != NULL && strcmp(old_name, new_name) != 0)
		permission_rename_role(old_name, new_name);
}

static void
permission_object_access(ObjectAccessType access, Oid catalog, Oid object, int sub_object, void *arg)
{
	if (permission_next_hook != NULL)
		permission_next_hook(access, catalog, object, sub_object, arg);
	if (catalog == AuthIdRelationId && (access == OAT_DROP || access == OAT_POST_ALTER))
		permission_role_changes(access, object);
}

void
permission_init(void)
{
	permission_next_hook = object_access_hook;
	object_access_hook = permission_object_access;
}

/* ---- for SQL ---- */

/* check_role(sheet_id, role, allow_trashed, as_uid) */
Datum
sheet_check_role(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	char *name = catalog_arg_string(fcinfo, 1, "role");
	SheetRole needed = permission_parse(name);

	if (needed == ROLE_NONE)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" is not a role of sheets", name),
						errhint("The roles are viewer, commenter, editor and owner.")));
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 3, 0), needed, !PG_ARGISNULL(2) && PG_GETARG_BOOL(2));
	PG_RETURN_VOID();
}

/* role_of(sheet_id, as_uid): NULL if there is none */
Datum
sheet_role_of(PG_FUNCTION_ARGS)
{
	SheetRole role = permission_role(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0));

	if (role == ROLE_NONE)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(permission_names[role]));
}

/* current_uid(): the account of the current role, 0 if there is none */
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
