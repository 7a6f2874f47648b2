/* usernames.c - see usernames.h. */
#include "postgres.h"

#include "access/stratnum.h"
#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "journal/store/storage.h"
#include "permission/usernames.h"
#include "utils/memutils.h"

#define USERNAMES_KEPT 256

typedef struct UsernameKept
{
	int64 uid; /* 0: the place is free */
	text *name;
} UsernameKept;

static CatalogQuery usernames_uid = {"SELECT uid FROM sheet.account WHERE name = $1", 1, {TEXTOID}};

void
usernames_init(Usernames *names, Snapshot snapshot)
{
	*names = (Usernames){snapshot, CurrentMemoryContext, NULL};
}

/* In the current memory context. */
static text *
usernames_read(Snapshot snapshot, int64 uid)
{
	StorageKey key = {1, BTEqualStrategyNumber, false, uid};
	StorageScan scan;
	text *name = NULL;

	storage_scan_begin(&scan, STORAGE_ACCOUNT, snapshot, &key, 1);
	if (storage_scan_next(&scan, ForwardScanDirection))
	{
		bool isnull;
		Datum value = storage_value(&scan, "name", &isnull);

		if (!isnull)
			name = DatumGetTextPCopy(value);
	}
	storage_scan_end(&scan);
	return name;
}

static void
usernames_keep(Usernames *names, UsernameKept *kept, int64 uid)
{
	MemoryContext old = MemoryContextSwitchTo(names->context);

	kept->uid = 0;
	if (kept->name != NULL)
		pfree(kept->name);
	kept->name = NULL;
	kept->name = usernames_read(names->snapshot, uid);
	kept->uid = uid;
	MemoryContextSwitchTo(old);
}

text *
usernames_get(Usernames *names, int64 uid)
{
	UsernameKept *kept;

	if (uid == 0)
		return NULL;
	if (names->kept == NULL)
		names->kept = MemoryContextAllocZero(names->context, sizeof(UsernameKept) * USERNAMES_KEPT);
	kept = &names->kept[(uint64) uid % USERNAMES_KEPT];
	if (kept->uid != uid)
		usernames_keep(names, kept, uid);
	return kept->name;
}

bool
usernames_find(text *name, int64 *uid)
{
	Datum value = PointerGetDatum(name);
	CatalogScope scope;
	bool found, isnull;

	catalog_begin(&scope);
	found = catalog_run(&usernames_uid, &value, NULL, true) > 0;
	if (found)
		*uid = catalog_int64(1, &isnull);
	catalog_end(&scope);
	return found;
}
