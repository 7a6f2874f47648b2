/* usernames.c - names of accounts by uid, cached for the duration of a scan. */
#include "postgres.h"

#include "access/stratnum.h"
#include "permission/catalog.h"
#include "catalog/pg_type.h"
#include "journal/store/storage.h"
#include "permission/permission.h"
#include "permission/usernames.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#define USERNAMES_CACHED 256

typedef struct UsernameEntry
{
	int64 uid; /* 0: the entry is free */
	text *name;
} UsernameEntry;

static CatalogQuery usernames_uid = {"SELECT uid FROM sheet.account WHERE name = $1", {TEXTOID}};

void
usernames_init(Usernames *names, Snapshot snapshot)
{
	*names = (Usernames){snapshot, CurrentMemoryContext, NULL};
}

/* In the current memory context. No account has a name that ends as that of a link (accounts.c). */
static text *
usernames_read(Snapshot snapshot, int64 uid)
{
	bool guest = permission_is_guest(uid);
	StorageKey key = {1, BTEqualStrategyNumber, false, guest ? permission_link_of(uid) : uid};
	StorageScan scan;
	text *name = NULL;

	storage_scan_begin(&scan, guest ? STORAGE_LINK : STORAGE_ACCOUNT, snapshot, &key, 1);
	if (storage_scan_next(&scan, ForwardScanDirection))
	{
		bool isnull;
		Datum value = storage_value(&scan, guest ? "label" : "name", &isnull);

		if (!isnull && guest)
			name = cstring_to_text(psprintf("%s%s", TextDatumGetCString(value), GUEST_LINK_SUFFIX));
		else if (!isnull)
			name = DatumGetTextPCopy(value);
	}
	storage_scan_end(&scan);
	return name;
}

static void
usernames_load(Usernames *names, UsernameEntry *entry, int64 uid)
{
	MemoryContext old = MemoryContextSwitchTo(names->context);

	entry->uid = 0;
	if (entry->name != NULL)
		pfree(entry->name);
	entry->name = NULL;
	entry->name = usernames_read(names->snapshot, uid);
	entry->uid = uid;
	MemoryContextSwitchTo(old);
}

text *
usernames_get(Usernames *names, int64 uid)
{
	UsernameEntry *entry;

	if (uid == 0)
		return NULL;
	if (names->entries == NULL)
		names->entries = MemoryContextAllocZero(names->context, sizeof(UsernameEntry) * USERNAMES_CACHED);
	entry = &names->entries[(uint64) uid % USERNAMES_CACHED];
	if (entry->uid != uid)
		usernames_load(names, entry, uid);
	return entry->name;
}

bool
usernames_is_of_links(text *name)
{
	size_t len = VARSIZE_ANY_EXHDR(name), suffix = strlen(GUEST_LINK_SUFFIX);

	return len >= suffix && memcmp(VARDATA_ANY(name) + len - suffix, GUEST_LINK_SUFFIX, suffix) == 0;
}

bool
usernames_find(text *name, int64 *uid)
{
	return catalog_find_int64(&usernames_uid, &CATALOG_DATUM(PointerGetDatum(name)), true, uid);
}
