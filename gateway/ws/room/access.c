/*
 * access.c - which accounts may read which sheets: a table with one place per hash; a newcomer takes the place.
 *
 * Only what is allowed is remembered: who is refused asks the database each time, so that a sheet that is shared is
 * there at once. Nothing is believed while the gateway may not have heard of a change.
 *
 * Openings are registered in the database beside what the account waits for, which decides whether there is anything to
 * write; one that it has been told of is not asked about again for half an hour.
 */
#include "ws/room/access.h"

#include "ws/room/accounts.h"
#include "ws/room/follow.h"
#include "core/database.h"
#include "core/gateway.h"

#include <libpq-fe.h>
#include <string.h>

#define ACCESS_PLACES 4096 /* a power of two */

typedef struct Access
{
	int64_t sheet_id; /* 0: free */
	int64_t uid;
	uint64_t fetched; /* ms of the loop's clock */
} Access;

static Access places[ACCESS_PLACES];

static Access *
access_place(int64_t sheet_id, int64_t uid)
{
	uint64_t hash =
		((uint64_t) sheet_id * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t) uid) * UINT64_C(0x9E3779B97F4A7C15);

	return &places[hash >> 40 & (ACCESS_PLACES - 1)];
}

bool
access_is_known(int64_t sheet_id, int64_t uid)
{
	const Access *access = access_place(sheet_id, uid);

	return access->sheet_id == sheet_id && access->uid == uid &&
		   uv_now(&gateway.loop) - access->fetched < ACCOUNTS_FRESH_MS && follow_is_current();
}

void
access_remember(int64_t sheet_id, int64_t uid, uint64_t asked)
{
	if (!follow_has_changed(sheet_id, asked) && !follow_has_changed(-uid, asked))
		*access_place(sheet_id, uid) = (Access){sheet_id, uid, uv_now(&gateway.loop)};
}

void
access_forget_sheet(int64_t sheet_id)
{
	for (int i = 0; i < ACCESS_PLACES; i++)
	{
		if (places[i].sheet_id == sheet_id)
			places[i].sheet_id = 0;
	}
}

void
access_forget_account(int64_t uid)
{
	for (int i = 0; i < ACCESS_PLACES; i++)
	{
		if (places[i].uid == uid)
			places[i].sheet_id = 0;
	}
}

void
access_forget_all(void)
{
	memset(places, 0, sizeof(places));
}

/* ---- openings ---- */

#define OPENING_FRESH_MS (30 * 60 * 1000) /* the database registers one an hour */

static Access openings[ACCESS_PLACES];

static const char opening_sql[] = "SELECT sheet.register_opening($1, $2)";

/* What could not be registered is tried again with the next opening. */
static void
opening_answered(void *arg, PGresult *res)
{
	Access *opening = arg;

	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) != 1 || PQgetisnull(res, 0, 0))
		opening->sheet_id = 0;
}

void
access_register_opening(int64_t sheet_id, int64_t uid)
{
	char sheet[24], account[24];
	PgParam params[] = {pgparam_int64(sheet, sheet_id), pgparam_int64(account, uid)};
	Access *opening = &openings[access_place(sheet_id, uid) - places];

	if (opening->sheet_id == sheet_id && opening->uid == uid &&
		uv_now(&gateway.loop) - opening->fetched < OPENING_FRESH_MS)
		return;
	*opening = (Access){sheet_id, uid, uv_now(&gateway.loop)};
	if (!database_query(DATABASE_WRITES, uid, opening_sql, 2, params, 0, opening_answered, opening))
		opening->sheet_id = 0;
}
