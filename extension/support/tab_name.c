/*
 * tab_name.c - how names are compared: two names are the same if they differ only in the case of their letters, by the
 * full case folding of Unicode, or in the form of composed characters.
 */
#include "postgres.h"

#include "common/string.h"
#include "mb/pg_wchar.h"
#include "support/tab_name.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include <unicode/uchar.h>
#include <unicode/ustring.h>

char *
tab_name_normal(char *name)
{
	Datum normal;

	if (GetDatabaseEncoding() != PG_UTF8 || pg_is_ascii(name))
		return name;
	normal = DirectFunctionCall2(unicode_normalize_func, CStringGetTextDatum(name), CStringGetTextDatum("NFC"));
	return TextDatumGetCString(normal);
}

/* The text as UTF-16, of which ICU computes. */
static UChar *
tab_name_to_utf16(const char *name, int32 *len)
{
	int32 bytes = (int32) strlen(name);
	UChar *to = palloc(sizeof(UChar) * (bytes + 1));
	UErrorCode status = U_ZERO_ERROR;

	u_strFromUTF8WithSub(to, bytes + 1, len, name, bytes, 0xFFFD, NULL, &status);
	if (U_FAILURE(status))
		elog(ERROR, "u_strFromUTF8WithSub failed: %s", u_errorName(status));
	return to;
}

char *
tab_name_key(char *name)
{
	int32 len, folded_len, bytes;
	UChar *from, *folded;
	char *key;
	UErrorCode status = U_ZERO_ERROR;

	name = tab_name_normal(name);
	from = tab_name_to_utf16(name, &len);
	/* one character becomes at most three */
	folded = palloc(sizeof(UChar) * (3 * len + 1));
	key = palloc(9 * len + 1);
	folded_len = u_strFoldCase(folded, 3 * len + 1, from, len, U_FOLD_CASE_DEFAULT, &status);
	u_strToUTF8(key, 9 * len + 1, &bytes, folded, folded_len, &status);
	if (U_FAILURE(status))
		ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR),
						errmsg("ICU cannot compare the name \"%s\": %s", name, u_errorName(status))));
	key[bytes] = '\0';
	return tab_name_normal(key);
}

/* ---- comparing ---- */

void
tab_name_init(TabName *tab, char *name)
{
	tab->name = name;
	tab->ascii = pg_is_ascii(name);
	tab->key = tab_name_key(name);
	tab->scratch = AllocSetContextCreate(CurrentMemoryContext, "pg_sheet names", ALLOCSET_SMALL_SIZES);
}

static bool
tab_name_is_ascii(const char *name, Size len)
{
	for (Size i = 0; i < len; i++)
		if (IS_HIGHBIT_SET(name[i]))
			return false;
	return true;
}

bool
tab_name_is(const TabName *tab, const char *name, Size len)
{
	MemoryContext old;
	bool same;

	if (tab->ascii && tab_name_is_ascii(name, len))
		return strlen(tab->name) == len && pg_strncasecmp(tab->name, name, len) == 0;
	if (strlen(tab->name) == len && memcmp(tab->name, name, len) == 0)
		return true;
	old = MemoryContextSwitchTo(tab->scratch);
	same = strcmp(tab->key, tab_name_key(pnstrdup(name, len))) == 0;
	MemoryContextSwitchTo(old);
	MemoryContextReset(tab->scratch);
	return same;
}
