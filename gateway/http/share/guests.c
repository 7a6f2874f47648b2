/*
 * guests.c - POST /v2/link {link, name, password}: a visitor enters by a share link, and gets a token as a guest.
 *
 * The database decides whether the link is valid. It gets the digest of the key, and never a password: a server may log
 * the parameters of statements. A link that is unknown, expired, revoked or blocked is one and the same to it: no row,
 * after the same two lookups, and no password is compared. A password is compared on a thread, as those of accounts
 * are. The token ends with the link. It is one of the link's generation, and every use of it asks the database again.
 */
#include "auth/attempts.h"
#include "common/edit_codec.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "http/routes/account_steps.h"
#include "http/routes/routes.h"
#include "http/share/share.h"
#include "support/log.h"
#include "support/network.h"
#include "ws/cache/cached_range.h"
#include "ws/cache/changes.h"
#include "ws/room/room.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char enter_sql[] =
	"SELECT link_id, sheet_id, role, username, generation, left_ms, password FROM sheet.enter_link($1, $2)";
static const char uses_sql[] = "SELECT sheet.count_link_uses($1, $2)";

enum
{
	ENTER_LINK,
	ENTER_SHEET,
	ENTER_ROLE,
	ENTER_NAME,
	ENTER_GENERATION,
	ENTER_LEFT_MS,
	ENTER_PASSWORD
};

/* ---- counting uses ---- */

/*
 * A link may be opened a thousand times a second, and all would write its row. So a use is stored at once only if none
 * was stored in the last USES_MS; otherwise it is added to those that the timer stores.
 */
#define USES_LINKS	4096 /* a power of two */
#define USES_PROBES 8
#define USES_MS		5000

typedef struct LinkUses
{
	int64_t link_id; /* 0: none */
	int64_t count;	 /* not stored yet */
	uint64_t stored; /* ms of the loop's clock */
} LinkUses;

static LinkUses link_uses[USES_LINKS];
static uv_timer_t uses_timer;

static void
uses_answered(void *arg, PGresult *res)
{
}

static void
uses_store(LinkUses *uses)
{
	char link[24], count[24];
	PgParam params[] = {pgparam_int64(link, uses->link_id), pgparam_int64(count, uses->count)};

	if (uses->count == 0)
		return;
	(void) database_query(DATABASE_WRITES, -uses->link_id, uses_sql, 2, params, 0, uses_answered, NULL);
	uses->count = 0;
	uses->stored = uv_now(&gateway.loop);
}

static void
uses_on_timer(uv_timer_t *timer)
{
	for (int i = 0; i < USES_LINKS; i++)
		uses_store(&link_uses[i]);
}

/* The slot of the link, or one whose link may give it up without a statement. */
static LinkUses *
uses_find(int64_t link_id)
{
	LinkUses *idle = NULL;

	for (int i = 0; i < USES_PROBES; i++)
	{
		LinkUses *uses = &link_uses[(link_id + i) & (USES_LINKS - 1)];

		if (uses->link_id == link_id)
			return uses;
		if (idle == NULL && uses->count == 0 && (uses->link_id == 0 || uv_now(&gateway.loop) - uses->stored >= USES_MS))
			idle = uses;
	}
	return idle != NULL ? idle : &link_uses[link_id & (USES_LINKS - 1)];
}

void
link_uses_add(int64_t link_id)
{
	LinkUses *uses = uses_find(link_id);

	if (uses->link_id != link_id)
	{
		uses_store(uses);
		*uses = (LinkUses){.link_id = link_id};
	}
	uses->count++;
	if (uses->stored == 0 || uv_now(&gateway.loop) - uses->stored >= USES_MS)
		uses_store(uses);
	else if (uses_timer.loop == NULL || !uv_is_active((uv_handle_t *) &uses_timer))
	{
		if (uses_timer.loop == NULL)
		{
			uv_timer_init(&gateway.loop, &uses_timer);
			uv_unref((uv_handle_t *) &uses_timer);
		}
		uv_timer_start(&uses_timer, uses_on_timer, USES_MS, 0);
	}
}

/* ---- attempts at a password ---- */

static Attempts link_attempts;

/* The link, known or not, and the network of the visitor. */
static void
enter_pair(const Request *request, char to[NETWORK_NAME_MAX + 32])
{
	char holder[NETWORK_NAME_MAX];

	network_holder(request->peer, holder);
	snprintf(to, NETWORK_NAME_MAX + 32, "link %016llx from %s",
			 (unsigned long long) attempts_key(request_text(request, "link")), holder);
}

/* False: answered with 429. */
static bool
enter_may_try(Request *request)
{
	char pair[NETWORK_NAME_MAX + 32], reason[96];
	int seconds;

	enter_pair(request, pair);
	seconds = attempts_take(&link_attempts, pair, gateway.config.attempts_per_account, uv_now(&gateway.loop));
	if (seconds == 0)
		return true;
	metrics.refused_attempts_account++;
	log_event(LOG_WARN, "too many attempts", LOG_STR("request", request->trace.id), LOG_STR("of", "link"),
			  LOG_STR("peer", request->peer));
	snprintf(reason, sizeof(reason), "too many attempts: try again in %d s", seconds);
	request_error_later(request, 429, seconds, reason);
	return false;
}

static void
enter_forgive(const Request *request)
{
	char pair[NETWORK_NAME_MAX + 32];

	enter_pair(request, pair);
	attempts_give_back(&link_attempts, pair, gateway.config.attempts_per_account, uv_now(&gateway.loop));
}

/* ---- entering ---- */

/* Whom the link makes of the visitor, while the password is compared. */
typedef struct Entry
{
	JwtClaims claims;
	int64_t sheet_id; /* 0: a part of a sheet */
	char role[16];
} Entry;

bool
check_enter_link(Request *request)
{
	const cJSON *password = request_member(request, "password");
	const char *link, *name;

	if (request_string(request, "link", &link) && request_string(request, "name", &name) &&
		(password == NULL || cJSON_IsNull(password) || cJSON_IsString(password)))
		return true;
	request_error(request, 400, "link and name are needed, as strings; password is a string");
	return false;
}

/* When the token expires: with the link, in the second in which that ends, or as other tokens do. */
static int64_t
enter_expiry(const PGresult *res)
{
	int64_t usual = gateway_now() + (int64_t) gateway.config.token_minutes * 60, end;
	uv_timeval64_t now;

	if (PQgetisnull(res, 0, ENTER_LEFT_MS) || uv_gettimeofday(&now) != 0)
		return usual;
	end = now.tv_sec + (now.tv_usec / 1000 + atoll(PQgetvalue(res, 0, ENTER_LEFT_MS)) + 999) / 1000;
	return end < usual ? end : usual;
}

/* NULL: answered. */
static Entry *
enter_take(Request *request, const PGresult *res)
{
	Entry *entry = request_own(request, sizeof(Entry), free);
	uint64_t bits;
	const char *name = PQgetvalue(res, 0, ENTER_NAME);

	if (entry == NULL)
		return NULL;
	if (RAND_bytes((unsigned char *) &bits, sizeof(bits)) != 1 || strlen(name) >= sizeof(entry->claims.name))
	{
		request_out_of_memory(request); /* a token needs nothing else */
		return NULL;
	}
	entry->claims = (JwtClaims){.uid = -atoll(PQgetvalue(res, 0, ENTER_LINK)),
								.generation = atoll(PQgetvalue(res, 0, ENTER_GENERATION)),
								.id = (int64_t) (bits >> 12) + 1,
								.issued_at = gateway_now(),
								.expires_at = enter_expiry(res)};
	strcpy(entry->claims.name, name);
	entry->sheet_id = atoll(PQgetvalue(res, 0, ENTER_SHEET));
	snprintf(entry->role, sizeof(entry->role), "%s", PQgetvalue(res, 0, ENTER_ROLE));
	return entry;
}

static void
enter_admit(Request *request)
{
	const Entry *entry = request->own;
	char token[JWT_MAX];
	Buf body = {NULL, 0, 0};

	if (!jwt_sign(&gateway.keys, &entry->claims, token, sizeof(token)))
	{
		request_out_of_memory(request); /* a token needs nothing else */
		return;
	}
	link_uses_add(-entry->claims.uid);
	log_event(LOG_INFO, "guest entered", LOG_STR("request", request->trace.id), LOG_STR("peer", request->peer),
			  LOG_INT("uid", entry->claims.uid), LOG_INT("sheet", entry->sheet_id));
	buf_puts(&body, "{\"token\":");
	buf_puts_json(&body, token);
	if (entry->sheet_id != 0)
		buf_printf(&body, ",\"fid\":%lld", (long long) entry->sheet_id);
	else
		buf_puts(&body, ",\"fid\":null");
	routes_put_member(&body, "role", entry->role);
	buf_printf(&body, ",\"uid\":%llu", (unsigned long long) edit_uid_to_number((uint64_t) entry->claims.uid));
	routes_put_member(&body, "username", entry->claims.name);
	routes_put_time(&body, "expires", entry->claims.expires_at);
	buf_puts(&body, "}");
	request->no_store = true;
	request_json(request, 200, &body);
}

/* A link that has ended meanwhile gives a token that is refused. */
static void
enter_compared(Request *request)
{
	if (request->number == 0)
		request_error_code(request, 401, "password_wrong", "this is not the password of the link");
	else
	{
		enter_forgive(request);
		enter_admit(request);
	}
}

static void
enter_answered(Request *request, PGresult *res)
{
	const char *password = NULL;

	if (request_sql_error_code(request, res, "name"))
		return;
	(void) request_string(request, "password", &password);
	if (!request_succeeded(res))
		request_sql_error(request, res);
	else if (PQntuples(res) == 0)
		request_error_code(request, 404, "no_link", "there is no such link, or no longer");
	else if (!PQgetisnull(res, 0, ENTER_PASSWORD) && password == NULL)
		request_error_code(request, 401, "password_needed", "the link asks for its password");
	else if (enter_take(request, res) != NULL)
	{
		if (!PQgetisnull(res, 0, ENTER_PASSWORD))
			account_compare(request, password, PQgetvalue(res, 0, ENTER_PASSWORD), enter_compared);
		else
		{
			if (password != NULL)
				enter_forgive(request);
			enter_admit(request);
		}
	}
}

void
route_enter_link(Request *request)
{
	if (cJSON_IsString(request_member(request, "password")) && !enter_may_try(request))
		return;
	request_query(
		request, DATABASE_READS, enter_sql,
		PARAMS(request_digest(request, request_text(request, "link")), pgparam_text(request_text(request, "name"))),
		REQUEST_TEXT_RAW, enter_answered);
}

/* ---- GET /v2/link/cells: the rectangle of a link, which is all that its guests can read ---- */

/* Each request asks whether the link is valid. The text of its cells is shared and kept (ws/cache/cached_range.c). Its
 * role is told by a header, also with 304: it may change while a guest is there. */
static const char target_sql[] = "SELECT sheet_id, role = 'editor' FROM sheet.link_target($1)";

/* number: whether the guest may write, by PATCH (http/api/api_cells.c). */
static void
part_give(Request *request, RangeAnswer *answer)
{
	request_add_header(request, "Link-Role", request->number ? "editor" : "viewer");
	routes_give_range(request, answer);
}

static void
part_missing(Request *request)
{
	request_error(request, 403, "the part of the sheet has been deleted");
}

static void
part_read(void *arg, RangeStatus status, RangeAnswer *answer, const PGresult *res)
{
	Request *request = arg;

	if (request_is_gone(request))
		;
	else if (changes_since(request->sheet_id, request->asked))
		route_link_cells(request); /* the link may have ended meanwhile */
	else if (status == RANGE_READY)
	{
		cached_range_pin(answer);
		part_give(request, answer);
	}
	else if (status == RANGE_TOO_LARGE)
		request_error(request, 413, "the part of the sheet has become too large");
	else if (status == RANGE_BUSY)
		request_too_busy(request);
	else if (request_succeeded(res)) /* no row */
		part_missing(request);
	else
		request_sql_error(request, res);
	request_end_step(request);
}

static void
part_found(Request *request, PGresult *res)
{
	RangeKey key = {.form = RANGE_PART, .link_id = -request->claims.uid};
	RangeAnswer *answer;

	if (strcmp(pgresult_sqlstate(res), "42809") == 0)
		request_error(request, 403, "the link is not to a part of a sheet");
	else if (!request_succeeded(res))
		request_sql_error(request, res);
	else if (PQntuples(res) == 0)
		part_missing(request);
	else if (changes_since(atoll(PQgetvalue(res, 0, 0)), request->asked))
		route_link_cells(request); /* res may be older than the change */
	else
	{
		key.sheet_id = request->sheet_id = atoll(PQgetvalue(res, 0, 0));
		request->number = PQgetvalue(res, 0, 1)[0] == 't';
		answer = room_may_be_ahead(key.sheet_id) ? NULL : cached_range_find(&key);
		if (answer != NULL)
		{
			part_give(request, answer);
			return;
		}
		request_begin_step(request);
		cached_range_ask(&key, request->claims.uid, part_read, request);
	}
}

void
route_link_cells(Request *request)
{
	request->asked = changes_now();
	request_query(request, DATABASE_READS, target_sql, PARAMS(request_uid(request)), REQUEST_TEXT_RAW, part_found);
}
