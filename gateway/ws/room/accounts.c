/*
 * accounts.c - names and token generations of accounts: a table of eight ways; a newcomer takes the oldest place of its
 * set.
 */
#include "ws/room/accounts.h"

#include "ws/room/follow.h"
#include "core/gateway.h"

#include <stdio.h>

#define ACCOUNTS_SETS 512 /* a power of two */
#define ACCOUNTS_WAYS 8

static Account accounts[ACCOUNTS_SETS][ACCOUNTS_WAYS];

/* The account's place, or the one that it would take: of those in its set, the one that was put there first. */
static Account *
accounts_place(int64_t uid)
{
	Account *set = accounts[(uint64_t) uid * UINT64_C(0x9E3779B97F4A7C15) >> 32 & (ACCOUNTS_SETS - 1)];
	Account *place = set;

	for (int i = 0; i < ACCOUNTS_WAYS; i++)
	{
		if (set[i].uid == uid)
			return &set[i];
		if (set[i].fetched < place->fetched)
			place = &set[i];
	}
	return place;
}

const Account *
accounts_find(int64_t uid)
{
	const Account *account = accounts_place(uid);

	return account->fetched != 0 && account->uid == uid ? account : NULL;
}

bool
accounts_is_fresh(const Account *account)
{
	return account != NULL && account->generation >= 0 && uv_now(&gateway.loop) - account->fetched < ACCOUNTS_FRESH_MS;
}

void
accounts_put(int64_t uid, const char *name, int64_t generation, uint64_t asked)
{
	Account *account = accounts_place(uid);

	account->uid = uid;
	snprintf(account->name, sizeof(account->name), "%s", name);
	account->generation = follow_has_changed(-uid, asked) ? -1 : generation;
	account->fetched = uv_now(&gateway.loop) + (uv_now(&gateway.loop) == 0);
}

void
accounts_forget(int64_t uid)
{
	Account *account = accounts_place(uid);

	if (account->uid == uid)
		account->fetched = 0;
}

void
accounts_forget_all(void)
{
	for (int i = 0; i < ACCOUNTS_SETS * ACCOUNTS_WAYS; i++)
		accounts[i / ACCOUNTS_WAYS][i % ACCOUNTS_WAYS].fetched = 0;
}

/* ---- who is to be seen where ---- */

#define SEEN_PLACES 4096

typedef struct Seen
{
	int64_t sheet_id; /* 0: free */
	int64_t uid;
} Seen;

static Seen seen[SEEN_PLACES];

static Seen *
seen_place(int64_t sheet_id, int64_t uid)
{
	return &seen[((uint64_t) sheet_id * 31 + (uint64_t) uid) & (SEEN_PLACES - 1)];
}

bool
accounts_is_seen(int64_t sheet_id, int64_t uid)
{
	const Seen *place = seen_place(sheet_id, uid);

	return place->sheet_id == sheet_id && place->uid == uid;
}

void
accounts_note_seen(int64_t sheet_id, int64_t uid)
{
	*seen_place(sheet_id, uid) = (Seen){sheet_id, uid};
}
