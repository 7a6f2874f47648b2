/*
 * pastes.c - pastes: short texts with an address that cannot be guessed, until an end (docs/design/pastes.md).
 *
 *   POST /paste      a form as pastebinit sends it; the answer is the address, as text
 *   POST /record     the same as JSON; GET /record/ID: all of a paste
 *   GET /p/ID        its content as plain text; /p/ID.html is the page that shows it
 *
 * Pastes are in the database server's shared memory, so every gateway serves all of them, and none redirects:
 * pastebinit does not follow. An id that is unknown, has ended or is blocked has the same answer, and a malformed one
 * too.
 *
 * Nothing that somebody else wrote is shown as a page: text/plain, nosniff, and a sandbox without any rights.
 */
#include "http/share/pastes.h"

#include "auth/attempts.h"
#include "common/utf8.h"
#include "core/gateway.h"
#include "core/metrics.h"
#include "http/request/range.h"
#include "http/routes/routes.h"
#include "http/server/forwarded.h"
#include "http/server/origin.h"
#include "http/share/paste_cache.h"
#include "support/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PASTE_DAY_S		  86400
#define PASTE_DAYS_MAX	  7
#define PASTE_UNIT_BYTES  4096 /* a larger paste counts as several */
#define PASTE_JSON_VALUES 1000
#define PASTE_BROWSER_MS  60000 /* for which a browser may keep one */
#define PASTE_NOT_ENABLED "55000"
#define PASTE_TEXT_TYPE	  "text/plain; charset=utf-8"

static const char paste_create_sql[] =
	"SELECT sheet.paste_create($1, $2, $3, pg_catalog.make_interval(secs => $4), $5, $6)";
static const char paste_get_sql[] =
	"SELECT content, title, lang, extract(epoch FROM created_at)::bigint, "
	"round(extract(epoch FROM expires_at - created_at))::bigint, views, "
	"floor(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint FROM sheet.paste_get($1, $2)";

enum PasteColumn
{
	PASTE_CONTENT,
	PASTE_TITLE,
	PASTE_LANG,
	PASTE_CREATED_AT,
	PASTE_LIFETIME,
	PASTE_VIEWS,
	PASTE_LEFT_MS
};

/* A paste to be made. */
typedef struct NewPaste
{
	char *title, *lang, *content; /* of the JSON body, or allocated: `form` */
	bool form;
	int64_t seconds;
	bool json_answer;
} NewPaste;

static Attempts pastes_by_party;

/* ---- what is to be made ---- */

static void
paste_free_new(void *own)
{
	NewPaste *paste = own;

	if (paste->form)
	{
		free(paste->title);
		free(paste->lang);
		free(paste->content);
	}
	free(paste);
}

/* An argument of the form, allocated; "" if there is none. False: answered. */
static bool
paste_take_form(Request *request, const char *name, char **to)
{
	size_t size = request->body.len;
	HeadArg found;
	char reason[80];

	*to = malloc(size);
	if (*to == NULL)
	{
		request_out_of_memory(request);
		return false;
	}
	found = head_form_arg(request->body.data, name, *to, size);
	if (found == HEAD_ABSENT)
		**to = '\0';
	else if (found == HEAD_MALFORMED)
	{
		snprintf(reason, sizeof(reason), "%s holds a malformed escape or a NUL", name);
		request_error(request, 400, reason);
	}
	return found != HEAD_MALFORMED;
}

static bool
paste_take_days(Request *request, int64_t *seconds)
{
	char *days, *end;
	bool taken = paste_take_form(request, "expiry_days", &days);
	long number = 1;

	if (taken && days[0] != '\0')
	{
		number = strtol(days, &end, 10);
		taken = days[0] >= '0' && days[0] <= '9' && *end == '\0' && number >= 1 && number <= PASTE_DAYS_MAX;
		if (!taken)
			request_error(request, 400, "expiry_days is a number from 1 to 7");
	}
	free(days);
	*seconds = number * PASTE_DAY_S;
	return taken;
}

/* Reads a form. False: answered. */
static bool
paste_read_form(Request *request, NewPaste *paste)
{
	Buf *body = &request->body;
	char type[64];

	paste->form = true;
	if (request_header(request, "content-type", type, sizeof(type)) && strncasecmp(type, "multipart/", 10) == 0)
	{
		request_error(request, 400, "the form must not be multipart: curl --data-urlencode content@FILE sends a paste");
		return false;
	}
	if (body->len > 0 && memchr(body->data, '\0', body->len) != NULL)
	{
		request_error(request, 400, "the form holds a NUL");
		return false;
	}
	buf_put(body, "", 1);
	if (buf_failed(body))
	{
		request_out_of_memory(request);
		return false;
	}
	return paste_take_form(request, "content", &paste->content) && paste_take_form(request, "title", &paste->title) &&
		   paste_take_form(request, "syntax", &paste->lang) && paste_take_days(request, &paste->seconds);
}

/* Reads the JSON body. False: answered. */
static bool
paste_read_json(Request *request, NewPaste *paste)
{
	static const char *const names[] = {"content", "title", "lang"};
	char **to[] = {&paste->content, &paste->title, &paste->lang};
	const cJSON *end = request_member(request, "expiration");

	for (int i = 0; i < 3; i++)
	{
		const cJSON *item = request_member(request, names[i]);

		*to[i] = "";
		if (cJSON_IsString(item))
			*to[i] = item->valuestring;
		else if (i == 0 || (item != NULL && !cJSON_IsNull(item)))
		{
			request_error(request, 400, "content is needed as a string; title and lang are strings");
			return false;
		}
	}
	paste->seconds = PASTE_DAY_S;
	if (end == NULL || cJSON_IsNull(end) ||
		request_number(request, "expiration", 1, PASTE_DAYS_MAX * PASTE_DAY_S, &paste->seconds))
		return true;
	request_error(request, 400, "expiration is a number of seconds from 1 to 604800");
	return false;
}

/* The content has the right size, and all of it is UTF-8. False: answered. */
static bool
paste_check(Request *request, const NewPaste *paste)
{
	size_t len = strlen(paste->content);

	if (len > PASTE_MAX_BYTES)
		request_error(request, 413, "a paste has at most 32768 bytes");
	else if (len < PASTE_MIN_BYTES)
		request_error(request, 400, "a paste has at least 20 bytes");
	else if (!utf8_check(paste->content, len, NULL) || !utf8_check(paste->title, strlen(paste->title), NULL) ||
			 !utf8_check(paste->lang, strlen(paste->lang), NULL))
		request_error(request, 400, "a paste is text in UTF-8");
	else
		return true;
	return false;
}

/* ---- who may make one ---- */

/* The client is on this machine, as far as a proxy tells. */
static bool
paste_is_local(const Request *request)
{
	const char *host = head_field(&request->head, "host");

	/* A client within trusted-proxies could name any address. */
	return network_list_contains(NETWORK_LOOPBACK, request->peer) &&
		   network_list_contains(NETWORK_LOOPBACK, conn_address(request->conn)) &&
		   (!forwarded_has_signs(&request->head) ||
			network_list_contains(gateway.config.trusted_proxies, conn_address(request->conn))) &&
		   (host == NULL || origin_host_is_known(host));
}

/* Somebody without an account may make a paste. False: answered. */
static bool
paste_check_anonymous(Request *request)
{
	const char *setting = gateway.config.anonymous_pastes;

	if (strcmp(setting, "none") == 0 || (strcmp(setting, "loopback") == 0 && !paste_is_local(request)))
		request_error(request, 401, "a valid token is needed (Authorization: Bearer): see anonymous-pastes");
	else if (request->origin > ORIGIN_ALLOWED)
		request_error(request, 403, "pages of other sites make no pastes");
	else
		return true;
	return false;
}

/* Counts the paste for its maker, unless that is somebody on this machine. False: answered with 429. */
static bool
paste_check_rate(Request *request)
{
	const NewPaste *paste = request->own;
	int count = 1 + (int) ((strlen(paste->content) - 1) / PASTE_UNIT_BYTES);
	char party[NETWORK_NAME_MAX], reason[80];
	int seconds;

	if (request->claims.uid != 0)
		snprintf(party, sizeof(party), "uid %lld", (long long) request->claims.uid);
	else if (paste_is_local(request))
		return true;
	else
		network_holder(request->peer, party);
	seconds =
		attempts_take_many(&pastes_by_party, party, count, gateway.config.pastes_per_address, uv_now(&gateway.loop));
	if (seconds == 0)
		return true;
	metrics.refused_pastes++;
	snprintf(reason, sizeof(reason), "too many pastes: try again in %d s", seconds);
	request_error_later(request, 429, seconds, reason);
	return false;
}

/* ---- making ---- */

static void
paste_created(Request *request, PGresult *res)
{
	const NewPaste *paste = request->own;
	Buf address = {NULL, 0, 0}, body = {NULL, 0, 0};
	const char *id;

	if (!request_succeeded(res))
	{
		if (strcmp(pgresult_sqlstate(res), PASTE_NOT_ENABLED) == 0)
			request_error(request, 501, "the database server keeps no pastes (pg_sheet.paste_memory)");
		else
			request_sql_error(request, res);
		return;
	}
	id = PQgetvalue(res, 0, 0);
	buf_printf(&address, "%s://%s/p/%s", gateway_http_scheme(), gateway.config.public_address, id);
	if (paste->json_answer)
	{
		buf_printf(&body, "{\"key\":\"%s\",\"url\":", id);
		buf_put_json(&body, address.data, address.len);
		buf_puts(&body, "}");
		buf_free(&address);
		request_json(request, 200, &body);
		return;
	}
	buf_puts(&address, "\n");
	request_answer(request, 200, PASTE_TEXT_TYPE, &address);
}

static void
paste_create(Request *request)
{
	const NewPaste *paste = request->own;
	char holder[NETWORK_NAME_MAX];

	if (!paste_check_rate(request))
		return;
	network_holder(request->peer, holder);
	request_query(request, DATABASE_READS, paste_create_sql,
				  PARAMS(pgparam_text(paste->content), pgparam_text(paste->title), pgparam_text(paste->lang),
						 request_int64(request, paste->seconds), pgparam_text(holder), request_uid(request)),
				  REQUEST_TEXT_RAW, paste_created);
}

static void
paste_begin(Request *request, bool form, bool json_answer)
{
	NewPaste *paste = request_own(request, sizeof(NewPaste), paste_free_new);
	char token[JWT_MAX];

	if (paste == NULL)
		return;
	paste->json_answer = json_answer;
	if (!(form ? paste_read_form(request, paste) : paste_read_json(request, paste)) || !paste_check(request, paste))
		return;
	if (request_member(request, "token") != NULL || request_token(request, token, sizeof(token)))
		request_authenticate(request, paste_create);
	else if (paste_check_anonymous(request))
		paste_create(request);
}

static bool
paste_is_json(const Request *request)
{
	const char *type = head_field(&request->head, "content-type");
	size_t len = type != NULL ? strcspn(type, "; \t") : 0;

	return len >= 4 && strncasecmp(type + len - 4, "json", 4) == 0;
}

void
route_paste(Request *request)
{
	const Buf *body = &request->body;
	bool form = !paste_is_json(request);
	JsonError error =
		form ? JSON_OK : json_parse_object(body->data, body->len, PASTE_JSON_VALUES, JSON_MAX_DEPTH, &request->json);

	if (error == JSON_NO_MEMORY || buf_failed(body))
		request_out_of_memory(request);
	else if (error == JSON_OK)
		paste_begin(request, form, false);
	else
		request_error(request, 400, "the body must be a form, or a JSON object in UTF-8");
}

void
route_new_record(Request *request)
{
	paste_begin(request, false, true);
}

/* ---- reading ---- */

static bool
paste_is_id(const char *id)
{
	return strlen(id) == PASTE_ID_CHARS && strspn(id, "abcdefghijklmnopqrstuvwxyz234567") == PASTE_ID_CHARS;
}

/* The id at the end of the path, after `before`; NULL: it is none, which was answered. */
static const char *
paste_find_id(Request *request, const char *before)
{
	const char *id = request->head.path + strlen(before);

	if (paste_is_id(id))
		return id;
	request_error(request, 404, "no such paste");
	return NULL;
}

/* A row has come. False: answered. */
static bool
paste_is_there(Request *request, const PGresult *res)
{
	if (!request_succeeded(res) && strcmp(pgresult_sqlstate(res), PASTE_NOT_ENABLED) != 0)
		request_sql_error(request, res);
	else if (!request_succeeded(res) || PQntuples(res) == 0)
		request_error(request, 404, "no such paste");
	else
		return true;
	return false;
}

static void
paste_query(Request *request, const char *id, int64_t views, RequestStep step)
{
	request->asked = uv_hrtime();
	request_query(request, DATABASE_READS, paste_get_sql, PARAMS(pgparam_text(id), request_int64(request, views)),
				  REQUEST_TEXT_RAW, step);
}

/* A browser keeps nothing beyond the paste's end; others keep nothing at all. */
static void
paste_add_cache_control(Request *request, int64_t left_ms)
{
	char value[48];

	snprintf(value, sizeof(value), "private, max-age=%lld",
			 (long long) (left_ms > PASTE_BROWSER_MS ? PASTE_BROWSER_MS : left_ms) / 1000);
	request_add_header(request, "Cache-Control", value);
}

static void
paste_release(void *own)
{
	paste_content_unpin(own);
}

/* Takes over a pin of the content. */
static void
paste_give(Request *request, PasteContent *content)
{
	uint64_t now = uv_hrtime();

	request->own = content;
	request->free_own = paste_release;
	paste_add_cache_control(request, content->ends_at > now ? (int64_t) (content->ends_at - now) / 1000000 : 0);
	request_add_header(request, "Content-Security-Policy", "sandbox; default-src 'none'");
	if (range_not_modified(request, content->etag))
		return;
	request->text = content->text;
	request->length = content->len;
	request_answer(request, 200, PASTE_TEXT_TYPE, NULL);
}

static void
paste_read(Request *request, PGresult *res)
{
	PasteContent *content;
	int64_t left_ms;

	if (!paste_is_there(request, res))
		return;
	left_ms = atoll(PQgetvalue(res, 0, PASTE_LEFT_MS));
	content = paste_cache_put(request->head.path + strlen("/p/"), PQgetvalue(res, 0, PASTE_CONTENT),
							  (size_t) PQgetlength(res, 0, PASTE_CONTENT), request->asked, left_ms > 0 ? left_ms : 0);
	if (content == NULL)
		request_out_of_memory(request);
	else
		paste_give(request, content);
}

/* ---- the page ---- */

static void
page_found(Request *request, PGresult *res)
{
	if (request_succeeded(res))
		static_serve_paste(request, PQntuples(res) > 0 ? 200 : 404);
	else if (strcmp(pgresult_sqlstate(res), PASTE_NOT_ENABLED) == 0)
		static_serve_paste(request, 404);
	else
		request_sql_error(request, res);
}

/* The page tells people that there is no such paste, the status tells programs. It is no view: the page reads
 * /record/ID. */
static void
paste_serve_page(Request *request, size_t len)
{
	char id[PASTE_ID_CHARS + 1];

	snprintf(id, sizeof(id), "%.*s", (int) len, request->head.path + strlen("/p/"));
	if (len != PASTE_ID_CHARS || !paste_is_id(id))
		static_serve_paste(request, 404);
	else
		paste_query(request, id, 0, page_found);
}

void
route_paste_text(Request *request)
{
	size_t len = strlen(request->head.path);
	const char *id;
	PasteContent *content;

	if (len >= strlen("/p/.html") && strcmp(request->head.path + len - strlen(".html"), ".html") == 0)
	{
		paste_serve_page(request, len - strlen("/p/.html"));
		return;
	}
	id = paste_find_id(request, "/p/");
	if (id == NULL)
		return;
	content = paste_cache_find(id, request->method == METHOD_GET);
	if (content == NULL)
	{
		paste_query(request, id, request->method == METHOD_GET, paste_read);
		return;
	}
	paste_content_pin(content);
	paste_give(request, content);
}

static void
record_read(Request *request, PGresult *res)
{
	Buf body = {NULL, 0, 0};

	if (!paste_is_there(request, res))
		return;
	buf_puts(&body, "{\"title\":");
	buf_puts_json(&body, PQgetvalue(res, 0, PASTE_TITLE));
	buf_puts(&body, ",\"lang\":");
	buf_puts_json(&body, PQgetvalue(res, 0, PASTE_LANG));
	buf_puts(&body, ",\"content\":");
	buf_put_json(&body, PQgetvalue(res, 0, PASTE_CONTENT), (size_t) PQgetlength(res, 0, PASTE_CONTENT));
	buf_printf(&body, ",\"saving_time\":%s,\"expiration\":%s,\"view_count\":%s}", PQgetvalue(res, 0, PASTE_CREATED_AT),
			   PQgetvalue(res, 0, PASTE_LIFETIME), PQgetvalue(res, 0, PASTE_VIEWS));
	request_add_header(request, "Cache-Control", "no-store");
	request_json(request, 200, &body);
}

void
route_record(Request *request)
{
	const char *id = paste_find_id(request, "/record/");

	if (id != NULL)
		paste_query(request, id, paste_cache_take_views(id) + (request->method == METHOD_GET), record_read);
}
