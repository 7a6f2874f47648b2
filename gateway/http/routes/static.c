/*
 * static.c - the page: files of web-root, which are read once and stay in memory, and their compressed forms, which the
 * build has put beside them.
 *
 * Names under /assets/ have a hash of the content: these files never change. Only plain names are looked up, so no
 * address leads out of web-root.
 */
#include "core/gateway.h"
#include "http/request/range.h"
#include "http/routes/routes.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STATIC_FILE_MAX	  (64 * 1024 * 1024)
#define STATIC_ETAG_BYTES 16 /* of the digest */

static const char static_missing_page[] =
	"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>pg_sheet</title><h1>pg_sheet</h1>"
	"<p>The gateway runs, but it has no page to show: build it with <code>make web</code> and give its directory with "
	"<code>--web-root</code>.</p></html>";

typedef struct StaticFile
{
	struct StaticFile *next;
	char *name; /* with .br or .gz */
	char *data;
	size_t len;
	char etag[2 * STATIC_ETAG_BYTES + 3];
} StaticFile;

static StaticFile *static_files;

/* Letters, digits, dot, dash, underscore and slash; no part begins with a dot. */
static bool
static_name_is_plain(const char *path)
{
	if (strlen(path) > 512)
		return false;
	for (const char *p = path; *p != '\0'; p++)
	{
		bool plain = (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') ||
					 strchr("-_./", *p) != NULL;

		if (!plain || (*p == '.' && (p == path || p[-1] == '/')) || (*p == '/' && p != path && p[-1] == '/'))
			return false;
	}
	return true;
}

static char *
static_read(const char *name, size_t *len)
{
	char path[1400];
	char *data = NULL;
	struct stat status;
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", gateway.config.web_root, name);
	file = fopen(path, "rb");
	if (file == NULL)
		return NULL;
	if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= STATIC_FILE_MAX &&
		(data = malloc((size_t) status.st_size + 1)) != NULL)
	{
		*len = fread(data, 1, (size_t) status.st_size, file);
		if (*len != (size_t) status.st_size)
		{
			free(data);
			data = NULL;
		}
	}
	fclose(file);
	return data;
}

/* A digest of the content: a release may have files of the size and the time of another one. */
static void
static_put_etag(StaticFile *file)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	char *to = file->etag;

	(void) SHA256((const unsigned char *) file->data, file->len, digest);
	*to++ = '"';
	for (int i = 0; i < STATIC_ETAG_BYTES; i++)
		to += snprintf(to, 3, "%02x", digest[i]);
	strcpy(to, "\"");
}

static const StaticFile *
static_find(const char *name)
{
	StaticFile *file;

	for (file = static_files; file != NULL; file = file->next)
	{
		if (strcmp(file->name, name) == 0)
			return file;
	}
	file = calloc(1, sizeof(StaticFile));
	if (file == NULL || (file->data = static_read(name, &file->len)) == NULL || (file->name = strdup(name)) == NULL)
	{
		if (file != NULL)
			free(file->data);
		free(file);
		return NULL;
	}
	static_put_etag(file);
	file->next = static_files;
	static_files = file;
	return file;
}

static const char *
static_type(const char *name)
{
	static const char *const types[][2] = {
		{".html", "text/html; charset=utf-8"},
		{".js", "text/javascript; charset=utf-8"},
		{".mjs", "text/javascript; charset=utf-8"},
		{".css", "text/css; charset=utf-8"},
		{".json", "application/json"},
		{".svg", "image/svg+xml"},
		{".png", "image/png"},
		{".ico", "image/x-icon"},
		{".woff2", "font/woff2"},
		{".woff", "font/woff"},
		{".ttf", "font/ttf"},
		{".wasm", "application/wasm"},
		{".txt", "text/plain; charset=utf-8"},
		{".map", "application/json"},
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot != NULL && i < sizeof(types) / sizeof(types[0]); i++)
	{
		if (strcmp(dot, types[i][0]) == 0)
			return types[i][1];
	}
	return "application/octet-stream";
}

/* The form that the client prefers; among equals, the smallest. */
static const StaticFile *
static_find_form(Request *request, const char *name)
{
	static const char *const forms[][2] = {{"br", ".br"}, {"gzip", ".gz"}};
	const char *accepted = head_field(&request->head, "accept-encoding");
	const StaticFile *best = NULL;
	const char *coding = NULL;
	int best_quality = 0;

	for (size_t i = 0; i < 2; i++)
	{
		int quality = head_quality(accepted, forms[i][0]);
		char other[640];
		const StaticFile *file;

		snprintf(other, sizeof(other), "%s%s", name, forms[i][1]);
		if (quality <= best_quality || (file = static_find(other)) == NULL)
			continue;
		best = file;
		best_quality = quality;
		coding = forms[i][0];
	}
	if (best == NULL)
		return static_find(name);
	request_add_header(request, "Content-Encoding", coding);
	return best;
}

/*
 * The page runs its own scripts only (Univer sets styles inline, and draws from blobs). It connects to the gateway that
 * serves the sheet; with several gateways, that may be one that has not started yet.
 */
static void
static_add_policy(Request *request)
{
	char policy[1024], connect[512];

	if (strcmp(gateway.config.coordinator, "zookeeper") == 0)
		snprintf(connect, sizeof(connect), "%s: %s:", gateway_http_scheme(), gateway_ws_scheme());
	else
		snprintf(connect, sizeof(connect), "%s://%s %s://%s", gateway_http_scheme(), gateway.config.public_address,
				 gateway_ws_scheme(), gateway.config.public_address);
	snprintf(policy, sizeof(policy),
			 "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
			 "font-src 'self' data:; worker-src 'self' blob:; connect-src 'self' %s; base-uri 'none'; "
			 "form-action 'self'; frame-ancestors 'none'",
			 connect);
	request_add_header(request, "Content-Security-Policy", policy);
	request_add_header(request, "Cross-Origin-Opener-Policy", "same-origin");
}

/* status: 200, or that of a page which says that something is missing. Such an answer is always whole and new. */
static void
static_serve(Request *request, const char *name, int status)
{
	const StaticFile *file = NULL;
	Range range;

	errno = 0;
	if (gateway.config.web_root[0] != '\0' && static_name_is_plain(name))
		file = static_find_form(request, name);
	if (file == NULL && errno == ENOMEM)
		request_out_of_memory(request);
	else if (file == NULL && strcmp(name, "/index.html") == 0)
	{
		request->text = static_missing_page;
		request->length = sizeof(static_missing_page) - 1;
		request_answer(request, 200, "text/html; charset=utf-8", NULL);
	}
	else if (file == NULL)
		request_error(request, 404, "no such address");
	else
	{
		request_add_header(request, "Vary", "Accept-Encoding");
		request_add_header(request, "Cache-Control",
						   strncmp(name, "/assets/", 8) == 0 ? "public, max-age=31536000, immutable" : "no-cache");
		static_add_policy(request);
		range = (Range){.from = 0};
		request->length = file->len;
		if (status == 200 && (range_not_modified(request, file->etag) ||
							  !range_choose(request, file->etag, (int64_t) file->len, &range)))
			return;
		request->text = file->data + range.from;
		request_answer(request, range.partial ? 206 : status, static_type(name), NULL);
	}
}

void
route_static(Request *request)
{
	static_serve(request, strcmp(request->head.path, "/") == 0 ? "/index.html" : request->head.path, 200);
}

void
static_serve_paste(Request *request, int status)
{
	static_serve(request, "/paste.html", status);
}
