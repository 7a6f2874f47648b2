/*
 * accounts.c - names and token generations of accounts, the sheets that they may read, and their openings of sheets.
 *
 * All tables are of fixed size; a new entry replaces the oldest one of its set. Only permission is cached: an account
 * that was refused asks the database each time, so that a sheet can be read at the moment at which it is shared. An
 * entry is used while its sheet and its account have not changed (changes.c), and for ACCOUNTS_FRESH_MS at most.
 */
#include "ws/cache/accounts.h"

#include "db/pgresult.h"
#include "core/database.h"
#include "core/gateway.h"
#include "ws/cache/changes.h"

#include <stdio.h>
#include <string.h>

#define ACCOUNTS_SETS	  512 /* a power of two */
#define ACCOUNTS_WAYS	  8
#define ACCOUNTS_FRESH_MS 5000			   /* bounds the use of an entry whose change was not heard of */
#define PAIRS			  4096			   /* a power of two */
#define OPENING_FRESH_MS  (30 * 60 * 1000) /* the database registers one opening an hour */

static uint64_t
accounts_now(void)
{
	return uv_now(&gateway.loop);
}

/* ---- names and token generations ---- */

static Account accounts[ACCOUNTS_SETS][ACCOUNTS_WAYS];

/* The account's slot; if it has none, the slot of its set that was filled first. */
static Account *
accounts_slot(int64_t uid)
{
	Account *set = accounts[(uint64_t) uid * UINT64_C(0x9E3779B97F4A7C15) >> 32 & (ACCOUNTS_SETS - 1)];
	Account *slot = set;

	for (int i = 0; i < ACCOUNTS_WAYS; i++)
	{
		if (set[i].uid == uid)
			return &set[i];
		if (set[i].fetched < slot->fetched)
			slot = &set[i];
	}
	return slot;
}

const Account *
accounts_find(int64_t uid)
{
	const Account *account = accounts_slot(uid);

	return account->fetched != 0 && account->uid == uid && !changes_since(changes_of_uid(uid), account->asked) ? account
																											   : NULL;
}

bool
accounts_is_fresh(const Account *account)
{
	/* The database compares the end of a guest's link with its clock each time. */
	return account != NULL && account->uid > 0 && account->generation >= 0 &&
		   accounts_now() - account->fetched < ACCOUNTS_FRESH_MS;
}

void
accounts_put(int64_t uid, const char *name, int64_t generation, uint64_t asked)
{
	Account *account = accounts_slot(uid);

	if (account->uid != uid || changes_since(changes_of_uid(uid), account->asked))
		memset(account->tokens, 0, sizeof(account->tokens));
	account->uid = uid;
	snprintf(account->name, sizeof(account->name), "%s", name);
	account->generation = generation;
	account->asked = asked;
	account->fetched = accounts_now() + (accounts_now() == 0);
}

bool
accounts_has_token(const Account *account, int64_t token_id)
{
	for (int i = 0; i < ACCOUNT_TOKENS; i++)
	{
		const AcceptedToken *token = &account->tokens[i];

		if (token->id == token_id && token->at != 0 && accounts_now() - token->at < ACCOUNTS_FRESH_MS)
			return true;
	}
	return false;
}

void
accounts_put_token(int64_t uid, int64_t token_id)
{
	Account *account = accounts_slot(uid);
	AcceptedToken *token = &account->tokens[account->next_token++ % ACCOUNT_TOKENS];

	*token = (AcceptedToken){token_id, accounts_now() + (accounts_now() == 0)};
}

/* ---- pairs of a sheet and an account ---- */

typedef struct Pair
{
	int64_t sheet_id; /* 0: the slot is free */
	int64_t uid;
	uint64_t asked;	  /* changes_now() */
	uint64_t fetched; /* ms of the loop's clock */
} Pair;

static Pair readers[PAIRS], seen[PAIRS], openings[PAIRS];

static Pair *
pair_slot(Pair *pairs, int64_t sheet_id, int64_t uid)
{
	uint64_t hash =
		((uint64_t) sheet_id * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t) uid) * UINT64_C(0x9E3779B97F4A7C15);

	return &pairs[hash >> 40 & (PAIRS - 1)];
}

/* Returns whether the slot holds this pair, since less than `ms`. */
static bool
pair_is_there(const Pair *pair, int64_t sheet_id, int64_t uid, uint64_t ms)
{
	return pair->sheet_id == sheet_id && pair->uid == uid && accounts_now() - pair->fetched < ms;
}

bool
accounts_may_read(int64_t sheet_id, int64_t uid)
{
	const Pair *pair = pair_slot(readers, sheet_id, uid);

	return uid > 0 && pair_is_there(pair, sheet_id, uid, ACCOUNTS_FRESH_MS) && !changes_since(sheet_id, pair->asked) &&
		   !changes_since(changes_of_uid(uid), pair->asked) && changes_are_current();
}

void
accounts_put_reader(int64_t sheet_id, int64_t uid, uint64_t asked)
{
	*pair_slot(readers, sheet_id, uid) = (Pair){sheet_id, uid, asked, accounts_now()};
}

bool
accounts_is_seen(int64_t sheet_id, int64_t uid)
{
	return pair_is_there(pair_slot(seen, sheet_id, uid), sheet_id, uid, UINT64_MAX);
}

void
accounts_put_seen(int64_t sheet_id, int64_t uid)
{
	*pair_slot(seen, sheet_id, uid) = (Pair){.sheet_id = sheet_id, .uid = uid};
}

/* ---- openings ---- */

static const char opening_sql[] = "SELECT sheet.register_opening($1, $2)";

/* One that was not registered is tried again with the next opening. */
static void
opening_answered(void *arg, PGresult *res)
{
	Pair *opening = arg;

	if (!pgresult_succeeded(res) || PQntuples(res) != 1 || PQgetisnull(res, 0, 0))
		opening->sheet_id = 0;
}

void
accounts_register_opening(int64_t sheet_id, int64_t uid)
{
	char sheet[24], account[24];
	PgParam params[] = {pgparam_int64(sheet, sheet_id), pgparam_int64(account, uid)};
	Pair *opening = pair_slot(openings, sheet_id, uid);

	if (uid < 0 || pair_is_there(opening, sheet_id, uid, OPENING_FRESH_MS)) /* guests have no list */
		return;
	*opening = (Pair){.sheet_id = sheet_id, .uid = uid, .fetched = accounts_now()};
	if (!database_query(DATABASE_WRITES, uid, opening_sql, 2, params, 0, opening_answered, opening))
		opening->sheet_id = 0;
}
