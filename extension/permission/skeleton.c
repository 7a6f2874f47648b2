/*
 * skeleton.c - by what names that look alike are found: two of them have one skeleton (Unicode Technical Standard 39,
 * section 4), which ICU makes of their compatibility form (NFKC: without it full width is not found). "paypal" with a
 * Cyrillic a, "paypa1" and "paypal" are one to the eye.
 *
 * What looks alike is a table of Unicode's that grows with its versions. A name that was stored by an older ICU keeps
 * the skeleton of then, and what has become confusable since is not found by it.
 */
#include "permission/skeleton.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include <unicode/uspoof.h>

/* Once a session: it is read-only then. */
static const USpoofChecker *
skeleton_checker(void)
{
	static USpoofChecker *checker = NULL;
	UErrorCode status = U_ZERO_ERROR;

	if (checker == NULL)
		checker = uspoof_open(&status);
	if (U_FAILURE(status))
		ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR), errmsg("ICU cannot compare names: %s", u_errorName(status)),
						errhint("It needs its data of confusable characters.")));
	return checker;
}

/* PostgreSQL normalizes in databases of UTF-8 only. */
static char *
skeleton_compatible(const char *name)
{
	Datum value = CStringGetTextDatum(name);

	if (GetDatabaseEncoding() == PG_UTF8)
		value = DirectFunctionCall2(unicode_normalize_func, value, CStringGetTextDatum("NFKC"));
	return TextDatumGetCString(value);
}

char *
skeleton_of(const char *name)
{
	const USpoofChecker *checker = skeleton_checker();
	UErrorCode status = U_ZERO_ERROR;
	char *plain = skeleton_compatible(name);
	int32 len = (int32) strlen(plain), room = 4 * len + 64, needed;
	char *skeleton = palloc(room + 1);

	needed = uspoof_getSkeletonUTF8(checker, 0, plain, len, skeleton, room, &status);
	if (status == U_BUFFER_OVERFLOW_ERROR)
	{
		status = U_ZERO_ERROR;
		skeleton = repalloc(skeleton, needed + 1);
		needed = uspoof_getSkeletonUTF8(checker, 0, plain, len, skeleton, needed, &status);
	}
	if (U_FAILURE(status))
		ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR),
						errmsg("ICU cannot compare the name \"%s\": %s", name, u_errorName(status))));
	skeleton[needed] = '\0';
	return skeleton;
}
