/*
 * account_steps.c - limits on attempts, password hashes and tokens, for the routes of accounts; see account_steps.h.
 */
#include "http/routes/account_steps.h"

#include "auth/attempts.h"
#include "core/gateway.h"
#include "support/log.h"
#include "core/metrics.h"
#include "support/network.h"
#include "auth/password.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCOUNT_SLOW_MS 2000 /* delay of a guess after many guesses */
#define BUSY_RETRY_S	2	 /* Retry-After while too many passwords wait */

static Attempts attempts_by_address;
static Attempts attempts_by_account;
static Attempts attempts_by_pair;	  /* of account and client */
static Attempts attempts_at_password; /* passwords that a party has had hashed */
#define ACCOUNT_PAIR_MAX (NETWORK_NAME_MAX + 64)

#define RANK_PASSWORDS 60 /* a party with this number of passwords in ten minutes is behind all others */
#define RANK_TEN	   10
#define RANK_OF_NOBODY 8 /* a network counts as if it had had this number more than a known device */
_Static_assert(RANK_PASSWORDS + RANK_OF_NOBODY < PASSWORD_RANKS, "each rank has a queue");

/* ---- limits ---- */

static bool
account_answer_attempts(Request *request, int seconds, const char *whose)
{
	char reason[96];

	if (seconds == 0)
		return true;
	log_event(LOG_WARN, "too many attempts", LOG_STR("request", request->trace.id), LOG_STR("of", whose),
			  LOG_STR("peer", request->peer), LOG_INT("uid", request->claims.uid));
	snprintf(reason, sizeof(reason), "too many attempts: try again in %d s", seconds);
	request_error_later(request, 429, seconds, reason);
	return false;
}

/* Who asks: the account, if the client is a known device of it; otherwise the network. */
static void
account_party(const Request *request, char to[NETWORK_NAME_MAX])
{
	if (request->device)
		snprintf(to, NETWORK_NAME_MAX, "uid %lld", (long long) request->claims.uid);
	else
		network_holder(request->peer, to);
}

/* Keyed hashes of accounts and the networks from which they have signed in; a new one replaces the one in its slot. */
#define FAMILIAR_SLOTS 65536
static uint64_t familiar[FAMILIAR_SLOTS];

static bool
familiar_has(uint64_t key)
{
	return familiar[key % FAMILIAR_SLOTS] == key;
}

static void
familiar_add(uint64_t key)
{
	familiar[key % FAMILIAR_SLOTS] = key;
}

/* Unknown accounts are counted like others, so that the limits do not show which exist. uid 0: by its name. */
static void
account_name(int64_t uid, const char *name, char *to, size_t size)
{
	if (uid != 0)
		snprintf(to, size, "uid %lld", (long long) uid);
	else
		snprintf(to, size, "name %016llx", (unsigned long long) attempts_key(name));
}

/* The account and the client: a device that has a token of the account, otherwise the network. */
static void
account_pair(const Request *request, int64_t uid, const char *name, char *to, size_t size)
{
	char holder[NETWORK_NAME_MAX], token[JWT_MAX];
	size_t len;

	account_name(uid, name, to, size);
	len = strlen(to);
	if (request->device && request_token(request, token, sizeof(token)))
		snprintf(to + len, size - len, " device %016llx", (unsigned long long) attempts_key(token));
	else
	{
		network_holder(request->peer, holder);
		snprintf(to + len, size - len, " from %s", holder);
	}
}

static uint64_t
account_pair_key(const Request *request, int64_t uid, const char *name)
{
	char pair[ACCOUNT_PAIR_MAX];

	account_pair(request, uid, name, pair, sizeof(pair));
	return attempts_key(pair);
}

void
account_remember(const Request *request, int64_t uid, const char *name)
{
	familiar_add(account_pair_key(request, uid, NULL));
	familiar_add(account_pair_key(request, 0, name));
}

/* Counts a request. Returns the seconds after which there may be another one, or 0. */
static int
account_come(const Request *request)
{
	char party[NETWORK_NAME_MAX];
	int seconds;

	if (network_list_contains(NETWORK_LOOPBACK, request->peer))
		return 0;
	account_party(request, party);
	seconds = attempts_take(&attempts_by_address, party, gateway.config.attempts_per_address, uv_now(&gateway.loop));
	metrics.refused_attempts_address += seconds != 0;
	return seconds;
}

bool
account_may_come(Request *request)
{
	return account_answer_attempts(request, account_come(request), "address");
}

bool
account_may_sign_in(Request *request)
{
	int seconds = account_come(request);

	/* Those who have used the attempts up may be others in the owner's network. */
	if (seconds != 0 && familiar_has(account_pair_key(request, 0, request_text(request, "username"))))
	{
		request->slow = true;
		return true;
	}
	return account_answer_attempts(request, seconds, "address");
}

/* ---- guesses at an account's password ---- */

/* Whose attempts count, and whether the client is a familiar one. */
typedef struct Guess
{
	char name[ACCOUNT_PAIR_MAX];
	char pair[ACCOUNT_PAIR_MAX];
	uint64_t key;
	bool familiar;
} Guess;

static Guess
account_guess(const Request *request)
{
	const char *name = request_text(request, "username");
	Guess guess;

	account_name(request->claims.uid, name, guess.name, sizeof(guess.name));
	account_pair(request, request->claims.uid, name, guess.pair, sizeof(guess.pair));
	guess.key = attempts_key(guess.pair);
	guess.familiar = request->device || familiar_has(guess.key);
	return guess;
}

bool
account_shows_token(const Request *request)
{
	char token[JWT_MAX];
	JwtClaims claims;
	JwtStatus status;

	if (!request_token(request, token, sizeof(token)))
		return false;
	status = jwt_verify(&gateway.keys, token, strlen(token), gateway_now(), &claims);
	return status == JWT_OK || status == JWT_EXPIRED;
}

void
account_find_device(Request *request)
{
	char token[JWT_MAX];
	JwtClaims claims;
	JwtStatus status;

	if (request->claims.uid == 0 || !request_token(request, token, sizeof(token)))
		return;
	status = jwt_verify(&gateway.keys, token, strlen(token), gateway_now(), &claims);
	request->device = (status == JWT_OK || status == JWT_EXPIRED) && claims.uid == request->claims.uid &&
					  claims.generation == request->claims.generation;
}

bool
account_may_try(Request *request)
{
	Guess guess = account_guess(request);
	uint64_t now = uv_now(&gateway.loop);
	int limit = gateway.config.attempts_per_account;
	int seconds = attempts_take(&attempts_by_pair, guess.pair, limit, now);

	if (seconds != 0 && guess.familiar && !request->device)
	{
		request->slow = true; /* the guesses may be another's in the owner's network */
		return true;
	}
	metrics.refused_attempts_account += seconds != 0;
	if (!account_answer_attempts(request, seconds, "account"))
		return false;
	request->slow |= !guess.familiar && attempts_take(&attempts_by_account, guess.name, limit, now) != 0;
	return true;
}

void
account_forgive(Request *request)
{
	Guess guess = account_guess(request);
	uint64_t now = uv_now(&gateway.loop);
	int limit = gateway.config.attempts_per_account;

	attempts_give_back(&attempts_by_pair, guess.pair, limit, now);
	if (!guess.familiar && !request->slow)
		attempts_give_back(&attempts_by_account, guess.name, limit, now);
	familiar_add(guess.key);
}

/* ---- password hashes ---- */

bool
account_password_acceptable(Request *request, const char *password)
{
	if (password[0] != '\0' && strlen(password) <= PASSWORD_MAX)
		return true;
	request_error_code(request, 400, "password", "a password of 1 to 1024 bytes is needed");
	return false;
}

static bool
account_is_waiting(const void *arg)
{
	const Request *request = arg;

	return !request_is_gone(request);
}

static void
account_too_busy(Request *request)
{
	metrics.refused_password_queue++;
	request_error_later(request, 503, BUSY_RETRY_S, "too many passwords are being checked: try again");
}

static void
account_password_done(void *arg, PasswordResult result, const char *hash)
{
	Request *request = arg;
	bool made = hash[0] != '\0';

	request->number = result == PASSWORD_OK;
	free(request->secret);
	request->secret = made ? strdup(hash) : NULL;
	if (request_is_gone(request))
		;
	else if (result == PASSWORD_NO_MEMORY || (made && request->secret == NULL))
		request_out_of_memory(request);
	else if (result == PASSWORD_DISPLACED)
		account_too_busy(request);
	else if (result == PASSWORD_FAILED)
		request_error(request, 500, "the password could not be hashed");
	else
		request->next(request);
	request_end_step(request);
}

/* Counts the password, and returns its place among those that wait. */
static int
account_rank(const Request *request)
{
	uint64_t now = uv_now(&gateway.loop) / RANK_TEN;
	char party[NETWORK_NAME_MAX];
	int rank;

	account_party(request, party);
	rank = attempts_taken(&attempts_at_password, party, RANK_PASSWORDS, now);
	(void) attempts_take(&attempts_at_password, party, RANK_PASSWORDS, now);
	return rank + (request->device ? 0 : RANK_OF_NOBODY);
}

/* compare false: makes a hash. */
static void
account_queue(Request *request, const char *password, bool compare, const char *stored, RequestNext next)
{
	PasswordTask task = {.password = password,
						 .stored = stored,
						 .compare = compare,
						 .rank = account_rank(request),
						 .wanted = account_is_waiting,
						 .done = account_password_done,
						 .arg = request};

	request->next = next;
	request_begin_step(request);
	if (password_queue_add(&gateway.loop, &task, gateway.config.password_queue))
		return;
	account_too_busy(request);
	request_end_step(request);
}

void
account_hash(Request *request, const char *password, RequestNext next)
{
	account_queue(request, password, false, NULL, next);
}

/* A comparison that waits for ACCOUNT_SLOW_MS first. */
typedef struct SlowComparison
{
	uv_timer_t timer; /* must be first: account_slow_closed() */
	Request *request;
	const char *password; /* of the request's body */
	char *stored;
	RequestNext next;
} SlowComparison;

static void
account_slow_closed(uv_handle_t *handle)
{
	SlowComparison *slow = (SlowComparison *) handle;

	free(slow->stored);
	free(slow);
}

static void
account_slow_done(uv_timer_t *timer)
{
	SlowComparison *slow = (SlowComparison *) timer;

	if (!request_is_gone(slow->request))
		account_queue(slow->request, slow->password, true, slow->stored, slow->next);
	request_end_step(slow->request);
	uv_close((uv_handle_t *) timer, account_slow_closed);
}

void
account_compare(Request *request, const char *password, const char *stored, RequestNext next)
{
	SlowComparison *slow;

	if (!request->slow)
	{
		account_queue(request, password, true, stored, next);
		return;
	}
	slow = calloc(1, sizeof(SlowComparison));
	if (slow == NULL || (stored != NULL && (slow->stored = strdup(stored)) == NULL))
	{
		free(slow);
		account_too_busy(request);
		return;
	}
	slow->request = request;
	slow->password = password;
	slow->next = next;
	request_begin_step(request);
	uv_timer_init(&gateway.loop, &slow->timer);
	uv_timer_start(&slow->timer, account_slow_done, ACCOUNT_SLOW_MS, 0);
}

/* ---- tokens ---- */

/* 52 random bits. */
static int64_t
account_token_id(void)
{
	uint64_t bits;

	if (RAND_bytes((unsigned char *) &bits, sizeof(bits)) != 1)
		return 0; /* the time of its issue is the id then */
	return (int64_t) (bits >> 12) + 1;
}

bool
account_put_token(Request *request, Buf *to, int64_t uid, int64_t generation)
{
	JwtClaims claims = {.uid = uid,
						.generation = generation,
						.id = account_token_id(),
						.issued_at = gateway_now(),
						.expires_at = gateway_now() + (int64_t) gateway.config.token_minutes * 60};
	char token[JWT_MAX];

	if (!jwt_sign(&gateway.keys, &claims, token, sizeof(token)))
	{
		buf_free(to);
		request_out_of_memory(request); /* a token needs nothing else */
		return false;
	}
	buf_puts_json(to, token);
	request_set_cookies(request, token, claims.expires_at);
	return true;
}
