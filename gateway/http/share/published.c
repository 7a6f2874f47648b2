/*
 * published.c - GET /s/KEY: the published view of a sheet, or of a rectangle of it, for everybody who has the address.
 *
 *   /s/KEY                     a page without accounts, whose table is complete without a script
 *   /s/KEY.csv, .tsv, .json    the same for programs, and for pages of any site
 *
 * (/s/KEY.xlsx, a workbook, is made by calc for each request: route_export_published().)
 *
 * The key is that of a share link for viewers without a password. Anything else has one answer, 404, after the same
 * question to the database. What a key opens is kept by published_links.c, and the table by ws/cache/cached_range.c,
 * which knows of each edit. So an answer of something that has not changed costs no question.
 *
 * A request reads the cells after it has found the link. If the link or its sheet has changed meanwhile, it begins
 * anew, and a link that has ended meanwhile is not found.
 *
 * Contents of cells are escaped, so none is HTML. The page's Content-Security-Policy permits scripts of the gateway
 * itself, none within the page, and one style sheet by its digest.
 */
#include "common/edit_codec.h"
#include "http/api/api.h"
#include "http/request/error_page.h"
#include "http/request/range.h"
#include "http/routes/routes.h"
#include "http/share/published_links.h"
#include "http/share/share.h"
#include "ws/cache/cached_range.h"
#include "ws/cache/changes.h"
#include "ws/room/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLISHED_PIECE 65536

static const char published_style[] =
	":root{color-scheme:light dark}"
	"body{margin:0;font:15px/1.4 system-ui,sans-serif;background:#fff;color:#1b2521}"
	"header{padding:.7rem 1rem;display:flex;gap:.3rem 1rem;flex-wrap:wrap;align-items:baseline}"
	"h1{font-size:1.15rem;margin:0;flex:1 1 12rem;overflow-wrap:anywhere}"
	"nav a{color:inherit;margin-left:.6rem;font-size:.85rem}"
	"main{overflow:auto;max-height:calc(100vh - 3.2rem);max-height:calc(100dvh - 3.2rem)}"
	"table{border-collapse:separate;border-spacing:0}"
	"td,th{border:solid #d5dcd9;border-width:0 1px 1px 0;padding:.25rem .5rem;white-space:pre-wrap;max-width:30rem;"
	"overflow-wrap:break-word}"
	"td:not([valign]){vertical-align:top}th{max-width:none}"
	"th,thead td{background:#f1f4f3;color:#5a6762;font-weight:400;font-size:.8rem;text-align:center;position:sticky}"
	"thead th,thead td{top:0;z-index:1}tbody th{left:0}thead td{left:0;z-index:2}"
	"td[bgcolor]{color:#1b2521}"
	"@media(prefers-color-scheme:dark){body{background:#16191a;color:#e3e8e6}td,th{border-color:#343b3e}"
	"th,thead td{background:#22282a;color:#9aa5a1}}"
	"@media(max-width:40rem){body{font-size:14px}td,th{padding:.2rem .35rem;max-width:16rem}}";

typedef struct Published
{
	RangeForm form;
	char key[PUBLISHED_KEY_CHARS + 1];
	char digest[PUBLISHED_DIGEST_SIZE];
	uint64_t began; /* of the question under way */
	PublishedLink *link;
	RangeAnswer *answer;
	Buf head; /* what comes before the answer's text */
	size_t written;
} Published;

static void
published_free(void *own)
{
	Published *view = own;

	if (view->link != NULL)
		published_link_unpin(view->link);
	cached_range_unpin(view->answer);
	buf_free(&view->head);
	free(view);
}

/* ---- addresses ---- */

static const struct
{
	const char *suffix;
	RangeForm form;
	const char *type;
} published_forms[] = {{"", RANGE_HTML, "text/html; charset=utf-8"},
					   {".csv", RANGE_CSV, "text/csv; charset=utf-8"},
					   {".tsv", RANGE_TSV, "text/tab-separated-values; charset=utf-8"},
					   {".json", RANGE_JSON, "application/json"}};

#define PUBLISHED_FORMS (sizeof(published_forms) / sizeof(published_forms[0]))

/* The number of the form that the end of the path names: 0, the page, if it names none. */
static size_t
published_form(const char *path)
{
	const char *dot = strrchr(path, '.');
	size_t form = PUBLISHED_FORMS - 1;

	while (form > 0 && (dot == NULL || strcmp(dot, published_forms[form].suffix) != 0))
		form--;
	return form;
}

static bool
published_is_workbook(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot != NULL && strcmp(dot, ".xlsx") == 0;
}

bool
published_is_for_programs(const char *path)
{
	return published_form(path) > 0 || published_is_workbook(path);
}

/* Reads the path behind "/s/". False: it is none. */
static bool
published_read_path(Request *request, Published *view)
{
	size_t form = published_form(request->part);

	view->form = published_forms[form].form;
	if (published_key_chars(request->part) != PUBLISHED_KEY_CHARS ||
		strcmp(request->part + PUBLISHED_KEY_CHARS, published_forms[form].suffix) != 0)
		return false;
	memcpy(view->key, request->part, PUBLISHED_KEY_CHARS);
	return true;
}

/* ---- the page ---- */

static void
published_add_policy(Request *request, const char *embed)
{
	static char source[STYLE_SOURCE_MAX];
	Buf policy = {NULL, 0, 0};

	if (source[0] == '\0')
		style_source(published_style, source);
	buf_printf(&policy,
			   "default-src 'none'; script-src 'self'; style-src %s; connect-src 'self'; base-uri 'none'; "
			   "form-action 'none'; frame-ancestors %s",
			   source, embed[0] != '\0' ? embed : "'none'");
	request_add_header_buf(request, "Content-Security-Policy", &policy);
}

static void
published_put_page_head(Buf *to, const PublishedLink *link, const char *etag)
{
	buf_puts(to, "<!doctype html><html><head><meta charset=\"utf-8\">"
				 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
	if (!link->index_ok)
		buf_puts(to, "<meta name=\"robots\" content=\"noindex\">");
	buf_puts(to, "<title>");
	buf_put_html(to, link->title, strlen(link->title));
	buf_printf(to, "</title><style>%s</style>", published_style);
	for (size_t i = 1; i < PUBLISHED_FORMS; i++)
		buf_printf(to, "<link rel=\"alternate\" type=\"%.*s\" href=\"/s/%s%s\">",
				   (int) strcspn(published_forms[i].type, ";"), published_forms[i].type, link->key,
				   published_forms[i].suffix);
	buf_puts(to, "<script type=\"module\" src=\"/published.js\"></script></head><body><header><h1>");
	buf_put_html(to, link->title, strlen(link->title));
	buf_printf(
		to,
		"</h1><nav><a href=\"/s/%s.csv\">CSV</a><a href=\"/s/%s.json\">JSON</a><a href=\"/s/%s.xlsx\">XLSX</a></nav>"
		"</header><main data-etag=\"",
		link->key, link->key, link->key);
	buf_put_html(to, etag, strlen(etag));
	buf_puts(to, "\">\n");
}

/* ---- answers ---- */

void
published_missing(Request *request)
{
	request_add_header(request, "Cache-Control", "no-cache");
	request_add_header(request, "X-Robots-Tag", "noindex");
	request_error(request, 404, "no such view");
}

/* The title in the form of RFC 8187, where nothing can end the header. */
static void
published_add_disposition(Request *request, const Published *view, const char *suffix)
{
	Buf disposition = {NULL, 0, 0};

	buf_printf(&disposition, "inline; filename=\"sheet%s\"; filename*=UTF-8''%s%s", suffix, view->link->file_name,
			   suffix);
	request_add_header_buf(request, "Content-Disposition", &disposition);
}

/* Writes the part of the answer that precedes the cells. etag: of the page. */
static void
published_put_head(Buf *to, const Published *view, const char *etag)
{
	if (view->form == RANGE_HTML)
		published_put_page_head(to, view->link, etag);
	else if (view->form == RANGE_JSON)
	{
		buf_puts(to, "{\"title\":");
		buf_puts_json(to, view->link->title);
		buf_puts(to, ",");
	}
}

/* FNV-1a of the head, which has the title, and of a page the style and the script; kept with the link. */
static uint64_t
published_head_digest(Published *view)
{
	uint64_t *digest = &view->link->head_digests[view->form == RANGE_HTML];
	Buf head = {NULL, 0, 0};

	if (*digest != 0)
		return *digest;
	published_put_head(&head, view, "");
	*digest = UINT64_C(0xCBF29CE484222325);
	for (size_t i = 0; i < head.len; i++)
		*digest = (*digest ^ (unsigned char) head.data[i]) * UINT64_C(0x100000001B3);
	buf_free(&head);
	return *digest;
}

/* That of the answer's text has its digest, too. */
static void
published_etag(Published *view, char *to, size_t size)
{
	const char *etag = view->answer->etag;

	if (view->form == RANGE_CSV || view->form == RANGE_TSV)
		snprintf(to, size, "%s", etag);
	else
		snprintf(to, size, "%.*s-%016llx\"", (int) strlen(etag) - 1, etag,
				 (unsigned long long) published_head_digest(view));
}

/* The head, then the answer's text in pieces. */
static bool
published_fill(Request *request, Buf *to)
{
	Published *view = request->own;
	size_t piece = view->answer->len - view->written;

	if (view->head.len > 0)
		buf_put_buf(to, &view->head);
	buf_free(&view->head);
	piece = piece < PUBLISHED_PIECE ? piece : PUBLISHED_PIECE;
	buf_put(to, view->answer->body + view->written, piece);
	view->written += piece;
	return view->written == view->answer->len;
}

static void
published_give(Request *request)
{
	Published *view = request->own;
	size_t form = published_form(request->part);
	char etag[80];

	request_add_header(request, "Cache-Control", "no-cache");
	if (!view->link->index_ok)
		request_add_header(request, "X-Robots-Tag", "noindex");
	if (view->form == RANGE_HTML)
		published_add_policy(request, view->link->embed);
	else
	{
		request_add_header(request, "Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'");
		published_add_disposition(request, view, published_forms[form].suffix);
	}
	routes_add_computed(request, view->answer->computed);
	published_etag(view, etag, sizeof(etag));
	if (range_not_modified(request, etag))
		return;
	published_put_head(&view->head, view, etag);
	if (buf_failed(&view->head))
	{
		request_out_of_memory(request);
		return;
	}
	request->fill = view->head.len > 0 ? published_fill : NULL;
	request->text = view->answer->body;
	request->length = view->head.len + view->answer->len;
	if (request->method == METHOD_GET)
		link_uses_add(view->link->link_id);
	request_answer(request, 200, published_forms[form].type, NULL);
}

/* ---- reading ---- */

static void published_ask(Request *request);

static void
published_read(void *arg, RangeStatus status, RangeAnswer *answer, const PGresult *res)
{
	Request *request = arg;
	Published *view = request->own;

	if (request_is_gone(request))
		;
	else if (!published_link_lasts(view->link) || (status == RANGE_FAILED && request_succeeded(res)))
		published_missing(request);
	else if (changes_since(view->link->sheet_id, view->link->asked))
		published_ask(request);
	else if (status == RANGE_READY)
	{
		cached_range_pin(answer);
		view->answer = answer;
		published_give(request);
	}
	else if (status == RANGE_TOO_LARGE)
		request_error(request, 413, "the sheet is too large to be published in this form");
	else if (status == RANGE_BUSY)
		request_too_busy(request);
	else
		request_sql_error(request, res);
	request_end_step(request);
}

static void
published_find_cells(Request *request)
{
	Published *view = request->own;
	const PublishedLink *link = view->link;
	RangeKey key = {.sheet_id = link->sheet_id, .form = view->form};

	if (link->rectangle)
		key.link_id = link->link_id;
	else
	{
		key.to_row = SHEET_MAX_ROWS - 1;
		key.to_col = SHEET_MAX_COLS - 1;
	}
	view->answer = room_may_be_ahead(link->sheet_id) ? NULL : cached_range_find(&key);
	if (view->answer != NULL)
	{
		published_give(request);
		return;
	}
	request_begin_step(request);
	cached_range_ask(&key, -link->link_id, published_read, request);
}

static void
published_answered(Request *request, PGresult *res)
{
	Published *view = request->own;

	if (!request_succeeded(res))
		request_sql_error(request, res);
	else if (PQntuples(res) == 0)
		published_missing(request);
	else if (changes_since(atoll(PQgetvalue(res, 0, 1)), request->asked))
		published_ask(request); /* res may be older than the change */
	else if ((view->link = published_link_put(view->key, res, request->asked, view->began)) == NULL)
		request_out_of_memory(request);
	else if (!published_link_lasts(view->link))
		published_missing(request);
	else
		published_find_cells(request);
}

static void
published_ask(Request *request)
{
	Published *view = request->own;

	published_digest(view->key, view->digest);
	if (view->link != NULL)
		published_link_unpin(view->link);
	view->link = NULL;
	request->asked = changes_now();
	view->began = uv_hrtime();
	request_query(request, DATABASE_READS, published_sql, PARAMS(pgparam_text(view->digest)), REQUEST_TEXT_RAW,
				  published_answered);
}

void
route_published(Request *request)
{
	Published *view;

	if (published_is_workbook(request->part))
	{
		route_export_published(request);
		return;
	}
	view = request_own(request, sizeof(Published), published_free);
	if (view == NULL)
		return;
	if (!published_read_path(request, view))
		published_missing(request);
	else if ((view->link = published_link_find(view->key)) != NULL)
		published_find_cells(request);
	else
		published_ask(request);
}
