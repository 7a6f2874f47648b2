/*
 * paste_sql.c - the SQL functions of pastes: sheet.paste_create, paste_get, paste_viewed, paste_block, paste_delete,
 * and those of the views sheet.moderation and sheet.paste_stats.
 *
 * An id is 128 random bits, written in base32. Whoever has it may read the paste. Functions change shared memory at
 * once: what they did stays when the transaction is rolled back. They write no WAL, so a standby has pastes of its own.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "common/sql_interface.h"
#include "compat.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "paste/paste.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_paste_create);
PG_FUNCTION_INFO_V1(sheet_paste_get);
PG_FUNCTION_INFO_V1(sheet_paste_viewed);
PG_FUNCTION_INFO_V1(sheet_paste_block);
PG_FUNCTION_INFO_V1(sheet_paste_delete);
PG_FUNCTION_INFO_V1(sheet_pastes_read);
PG_FUNCTION_INFO_V1(sheet_paste_stats);

#define GET_COLUMNS	  6
#define READ_COLUMNS  10
#define STATS_COLUMNS (5 + PASTE_COUNTERS)
#define NEW_PASTES	  1024 /* may be made while pastes are being listed */

/* ---- ids ---- */

static const char paste_digits[] = "abcdefghijklmnopqrstuvwxyz234567";

static char *
paste_id_text(const PasteId *id)
{
	char *text = palloc(PASTE_ID_CHARS + 1), *to = text;
	uint32 bits = 0;
	int count = 0;

	for (int i = 0; i < sizeof(id->bytes); i++)
	{
		bits = bits << 8 | id->bytes[i];
		for (count += 8; count >= 5; count -= 5)
			*to++ = paste_digits[bits >> (count - 5) & 31];
	}
	*to++ = paste_digits[bits << (5 - count) & 31];
	*to = '\0';
	return text;
}

/* Returns false if the text is not as paste_id_text() writes an id. */
static bool
paste_id_parse(const text *value, PasteId *id)
{
	const char *from = VARDATA_ANY(value);
	uint32 bits = 0;
	int count = 0, at = 0;

	if (VARSIZE_ANY_EXHDR(value) != PASTE_ID_CHARS)
		return false;
	for (int i = 0; i < PASTE_ID_CHARS; i++)
	{
		const char *digit = from[i] == '\0' ? NULL : strchr(paste_digits, from[i]);

		if (digit == NULL)
			return false;
		bits = bits << 5 | (uint32) (digit - paste_digits);
		count += 5;
		if (count >= 8)
		{
			count -= 8;
			id->bytes[at++] = (uint8) (bits >> count);
		}
	}
	return (bits & ((1u << count) - 1)) == 0;
}

static void
paste_require_memory(void)
{
	if (!paste_enabled())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("pastes are turned off"),
				 errdetail("They need shared memory of pg_sheet."),
				 errhint("Add pg_sheet to shared_preload_libraries, set pg_sheet.paste_memory above 0, and restart the "
						 "server.")));
}

/* ---- making ---- */

static TimestampTz
paste_end(const Interval *lifetime, TimestampTz now)
{
	double seconds = (double) lifetime->time / USECS_PER_SEC + (double) lifetime->day * SECS_PER_DAY +
					 (double) lifetime->month * DAYS_PER_MONTH * SECS_PER_DAY;

	if (!(seconds >= 1 && seconds <= PASTE_MAX_SECONDS))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a paste lives for 1 second to %d days", PASTE_MAX_SECONDS / SECS_PER_DAY),
						errdetail("The lifetime is %s.",
								  DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(lifetime))))));
	return now + (int64) (seconds * USECS_PER_SEC);
}

static void
paste_check_content(const text *content)
{
	int len = VARSIZE_ANY_EXHDR(content);

	if (len < PASTE_MIN_BYTES)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a paste has at least %d bytes", PASTE_MIN_BYTES), errdetail("This one has %d.", len)));
	if (len > PASTE_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("a paste has at most %d bytes", PASTE_MAX_BYTES),
				 errdetail("This one has %d.", len), errhint("Import it into a sheet, or upload it as a file.")));
}

static void
paste_check_title(const char *title)
{
	if (strlen(title) > PASTE_TITLE_MAX)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the title of a paste has at most %d bytes", PASTE_TITLE_MAX),
						errdetail("This one has %zu.", strlen(title))));
	if (title[0] != '\0')
		catalog_check_name("title", title, PASTE_TITLE_MAX);
}

static void
paste_check_lang(const char *lang)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+#._-";

	if (strlen(lang) > PASTE_LANG_MAX || strspn(lang, allowed) != strlen(lang))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the language of a paste has at most %d letters, digits or characters of \"+#._-\"",
							   PASTE_LANG_MAX)));
}

/* By whom shares are counted: the account, the address that a gateway names, or the role. */
static uint64
paste_origin_of(int64 uid, const char *address)
{
	char *name = uid != 0		   ? psprintf("account " INT64_FORMAT, uid)
				 : address != NULL ? psprintf("address %s", address)
								   : psprintf("role %u", GetUserId());

	return paste_origin(name);
}

static char *
paste_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

/* paste_create(content, title, lang, lifetime, as_uid, address) */
Datum
sheet_paste_create(PG_FUNCTION_ARGS)
{
	PasteInfo info = {.created_at = GetCurrentTimestamp()};
	char *title = paste_arg(fcinfo, 1), *lang = paste_arg(fcinfo, 2);
	char *address = PG_ARGISNULL(4) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(4));
	int64 as_uid = PG_ARGISNULL(5) ? 0 : PG_GETARG_INT64(5);
	StringInfoData all;
	PasteId id;
	text *content;

	paste_require_memory();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(3))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("content and lifetime must not be null")));
	if (address != NULL)
		permission_require_gateway();
	if (address == NULL || as_uid != 0)
		info.uid = permission_uid(as_uid);
	if (info.uid == 0 && address == NULL && !permission_is_gateway_role(GetUserId()))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("only accounts may make pastes"),
						errdetail("Role \"%s\" is not linked to an account.", GetUserNameFromId(GetUserId(), false)),
						errhint("A superuser links it with sheet.link_account().")));
	content = PG_GETARG_TEXT_PP(0);
	paste_check_content(content);
	paste_check_title(title);
	paste_check_lang(lang);
	info.ends_at = paste_end(PG_GETARG_INTERVAL_P(3), info.created_at);
	info.origin = paste_origin_of(info.uid, address);
	info.title_len = (uint16) strlen(title);
	info.lang_len = (uint8) strlen(lang);
	info.content_len = VARSIZE_ANY_EXHDR(content);
	initStringInfo(&all);
	appendStringInfoString(&all, title);
	appendStringInfoString(&all, lang);
	appendBinaryStringInfo(&all, VARDATA_ANY(content), (int) info.content_len);
	if (!pg_strong_random(&id, sizeof(id)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not get random bytes")));
	if (!paste_add(&id, &info, all.data))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("there is no room for the paste"),
						errdetail("All memory of pastes is taken by those that are being stored."),
						errhint("Try again, or increase pg_sheet.paste_memory.")));
	PG_RETURN_TEXT_P(cstring_to_text(paste_id_text(&id)));
}

/* ---- reading ---- */

/* Only gateways, which keep copies, report views of others. */
static int64
paste_views(FunctionCallInfo fcinfo)
{
	int64 views = PG_GETARG_INT64(1);

	if (views < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the number of views must not be negative")));
	if (views > 1)
		permission_require_gateway();
	return views;
}

/* paste_get(id, viewed): a row, or none */
Datum
sheet_paste_get(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int64 views = paste_views(fcinfo);
	Datum values[GET_COLUMNS];
	bool nulls[GET_COLUMNS] = {0};
	PasteInfo info;
	PasteId id;
	char *at;
	int n = 0;

	paste_require_memory();
	InitMaterializedSRF(fcinfo, 0);
	at = palloc(PASTE_TEXT_MAX);
	if (!paste_id_parse(PG_GETARG_TEXT_PP(0), &id) || !paste_read(&id, views, &info, at))
		return (Datum) 0;
	values[1] = PointerGetDatum(cstring_to_text_with_len(at, info.title_len));
	at += info.title_len;
	values[2] = PointerGetDatum(cstring_to_text_with_len(at, info.lang_len));
	at += info.lang_len;
	values[0] = PointerGetDatum(cstring_to_text_with_len(at, (int) info.content_len));
	n = 3;
	values[n++] = TimestampTzGetDatum(info.created_at);
	values[n++] = TimestampTzGetDatum(info.ends_at);
	values[n++] = Int64GetDatum(info.views);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}

/* paste_viewed(id, viewed): its end, or null */
Datum
sheet_paste_viewed(PG_FUNCTION_ARGS)
{
	int64 views = paste_views(fcinfo);
	PasteInfo info;
	PasteId id;

	paste_require_memory();
	if (!paste_id_parse(PG_GETARG_TEXT_PP(0), &id) || !paste_read(&id, views, &info, NULL))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(info.ends_at);
}

/* ---- for operators ---- */

Datum
sheet_paste_block(PG_FUNCTION_ARGS)
{
	PasteId id;

	paste_require_memory();
	PG_RETURN_BOOL(paste_id_parse(PG_GETARG_TEXT_PP(0), &id) && paste_block(&id, PG_GETARG_BOOL(1)));
}

Datum
sheet_paste_delete(PG_FUNCTION_ARGS)
{
	PasteId id;

	paste_require_memory();
	PG_RETURN_BOOL(paste_id_parse(PG_GETARG_TEXT_PP(0), &id) && paste_remove(&id));
}

static void
pastes_put(ReturnSetInfo *rsinfo, const PasteId *id, const PasteInfo *info, const char *text)
{
	Datum values[READ_COLUMNS];
	bool nulls[READ_COLUMNS] = {0};
	int n = 0;

	values[n++] = CStringGetTextDatum(paste_id_text(id));
	values[n++] = PointerGetDatum(cstring_to_text_with_len(text, info->title_len));
	values[n++] = PointerGetDatum(cstring_to_text_with_len(text + info->title_len, info->lang_len));
	values[n++] = Int32GetDatum((int32) info->content_len);
	values[n++] = TimestampTzGetDatum(info->created_at);
	values[n++] = TimestampTzGetDatum(info->ends_at);
	values[n++] = Int64GetDatum(info->views);
	values[n++] = BoolGetDatum(info->blocked);
	nulls[n] = info->uid == 0;
	values[n++] = Int64GetDatum(info->uid);
	values[n++] = CStringGetTextDatum(psprintf("%016llx", (unsigned long long) info->origin));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* Others store and remove pastes meanwhile. */
Datum
sheet_pastes_read(PG_FUNCTION_ARGS)
{
	MemoryContext row = AllocSetContextCreate(CurrentMemoryContext, "paste", ALLOCSET_DEFAULT_SIZES);
	PasteStats stats;
	uint32 *places, max, count;

	InitMaterializedSRF(fcinfo, 0);
	if (!paste_enabled())
		return (Datum) 0;
	paste_read_stats(&stats);
	max = (uint32) stats.pastes + NEW_PASTES;
	places = palloc_extended(sizeof(uint32) * (Size) max, MCXT_ALLOC_HUGE);
	count = Min(paste_places(places, max), max);
	for (uint32 i = 0; i < count; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(row);
		char text[PASTE_TITLE_MAX + PASTE_LANG_MAX];
		PasteInfo info;
		PasteId id;

		CHECK_FOR_INTERRUPTS();
		if (paste_describe(places[i], &id, &info, text))
			pastes_put((ReturnSetInfo *) fcinfo->resultinfo, &id, &info, text);
		MemoryContextSwitchTo(old);
		MemoryContextReset(row);
	}
	return (Datum) 0;
}

/* One row; no row if pastes are turned off. */
Datum
sheet_paste_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum values[STATS_COLUMNS];
	bool nulls[STATS_COLUMNS] = {0};
	PasteStats stats;
	int n = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (!paste_enabled())
		return (Datum) 0;
	paste_read_stats(&stats);
	values[n++] = Int64GetDatum(stats.pastes);
	values[n++] = Int64GetDatum(stats.bytes);
	values[n++] = Int64GetDatum(stats.budget);
	values[n++] = Int64GetDatum(stats.share);
	for (int i = 0; i < PASTE_COUNTERS; i++)
		values[n++] = Int64GetDatum(stats.counters[i]);
	values[n++] = Float8GetDatum((double) stats.sweep_ns / 1000000);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	return (Datum) 0;
}
