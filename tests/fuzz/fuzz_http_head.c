/*
 * fuzz_http_head.c - the head of a request, held to another parser: a proxy must not read it in another way.
 *
 * What is accepted must be accepted by http-parser (nginx's and Node's descendant), with the same address, fields and
 * framing of the body: whoever reads a length differently, or a line more, is where requests are smuggled. Paths and
 * arguments are decoded again by other means. What http-parser takes and this does not is strictness, and fine.
 */
#include "http/server/head.h"

#include <ctype.h>
#include <http_parser.h>
#include <stdbool.h>
#include <strings.h>

#include "fuzz.h"

#define FUZZ_URL_MAX 1000

/* The fields as http-parser tells them: "name:value\n" after each other, names in lower case. */
typedef struct Told
{
	char *text;
	size_t len;
	char *url;
	size_t url_len;
	bool in_value;
	bool complete;
} Told;

static void
told_put(Told *told, const char *bytes, size_t len)
{
	memcpy(told->text + told->len, bytes, len);
	told->len += len;
}

static int
on_url(http_parser *parser, const char *at, size_t len)
{
	Told *told = parser->data;

	memcpy(told->url + told->url_len, at, len);
	told->url_len += len;
	return 0;
}

static int
on_field(http_parser *parser, const char *at, size_t len)
{
	Told *told = parser->data;

	if (told->in_value)
		told_put(told, "\n", 1);
	told->in_value = false;
	told_put(told, at, len);
	for (size_t i = told->len - len; i < told->len; i++)
		told->text[i] += told->text[i] >= 'A' && told->text[i] <= 'Z' ? 'a' - 'A' : 0;
	return 0;
}

static int
on_value(http_parser *parser, const char *at, size_t len)
{
	Told *told = parser->data;

	if (!told->in_value)
		told_put(told, ":", 1);
	told->in_value = true;
	told_put(told, at, len);
	return 0;
}

static int
on_complete(http_parser *parser)
{
	((Told *) parser->data)->complete = true;
	return 1; /* the body is not ours to read */
}

/* A word that begins as one of those that http-parser knows, and is another: it takes what follows for a part of it. */
static bool
is_nearly_known(const char *word, size_t len)
{
	static const char *const known[] = {"close", "keep-alive", "upgrade"};

	for (int i = 0; i < 3; i++)
	{
		if (tolower((unsigned char) *word) == *known[i])
			return len != strlen(known[i]) || strncasecmp(word, known[i], len) != 0;
	}
	return false;
}

/* A list that holds nothing but words: http-parser and this read others differently, and neither means anything. Nor
 * does http-parser know that an element of a list may be empty (RFC 9110 5.6.1). */
static bool
is_list_of_words(const Head *head, const char *name)
{
	static const char words[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-,";

	for (int i = 0; i < head->field_count; i++)
	{
		const char *value = head->fields[i].value;

		if (strcmp(head->fields[i].name, name) == 0 &&
			(value[strspn(value, words)] != '\0' || value[0] == ',' || strstr(value, ",,") != NULL))
			return false;
		for (size_t len; strcmp(head->fields[i].name, name) == 0 && *value != '\0'; value += len + (value[len] == ','))
		{
			len = strcspn(value, ",");
			if (is_nearly_known(value, len))
				return false;
		}
	}
	return true;
}

static void
check_fields(const Head *head, Told *told)
{
	char *line = told->text;

	if (told->in_value)
		told_put(told, "\n", 1);
	told->text[told->len] = '\0';
	for (int i = 0; i < head->field_count; i++)
	{
		char *end = strchr(line, '\n'), *colon = strchr(line, ':');

		FUZZ_CHECK(end != NULL && colon != NULL && colon < end);
		FUZZ_CHECK((size_t) (colon - line) == strlen(head->fields[i].name) &&
				   memcmp(line, head->fields[i].name, (size_t) (colon - line)) == 0);
		/* http-parser leaves blanks at a value's end, we do not. */
		FUZZ_CHECK(strncmp(colon + 1, head->fields[i].value, strlen(head->fields[i].value)) == 0);
		for (char *rest = colon + 1 + strlen(head->fields[i].value); rest < end; rest++)
			FUZZ_CHECK(*rest == ' ' || *rest == '\t');
		line = end + 1;
	}
	FUZZ_CHECK(*line == '\0');
}

/*
 * Where http-parser 2.9.4 is wrong: Transfer-Encodingx is Transfer-Encoding to it, and a tab behind a length, a coding
 * or a word of Connection no blank.
 */
static bool
is_fault_of_other(const Head *head, enum http_errno error, const char *bytes, size_t len)
{
	for (int i = 0; i < head->field_count; i++)
	{
		if (strncmp(head->fields[i].name, "transfer-encoding", 17) == 0 && head->fields[i].name[17] != '\0')
			return true;
	}
	return memchr(bytes, '\t', len) != NULL &&
		   (error == HPE_INVALID_CONTENT_LENGTH || head_field(head, "transfer-encoding") != NULL ||
			head_field(head, "connection") != NULL);
}

static void
check_with_other(const Head *head, const char *bytes, size_t len)
{
	static const http_parser_settings settings = {
		.on_url = on_url, .on_header_field = on_field, .on_header_value = on_value, .on_headers_complete = on_complete};
	Told told = {.text = malloc(len * 2 + 2), .url = malloc(len + 1)};
	enum http_errno error;
	http_parser parser;

	http_parser_init(&parser, HTTP_REQUEST);
	parser.data = &told;
	http_parser_execute(&parser, &settings, bytes, len);
	error = HTTP_PARSER_ERRNO(&parser);
	if (error != HPE_INVALID_METHOD && parser.method != HTTP_CONNECT && !is_fault_of_other(head, error, bytes, len))
	{
		told.url[told.url_len] = '\0';
		FUZZ_CHECK(told.complete);
		FUZZ_CHECK(parser.http_major == 1 && parser.http_minor == head->minor);
		FUZZ_CHECK(strcmp(http_method_str(parser.method), head->method) == 0);
		FUZZ_CHECK(told.url_len >= strlen(head->target) &&
				   strcmp(told.url + told.url_len - strlen(head->target), head->target) == 0);
		check_fields(head, &told);
		FUZZ_CHECK(((parser.flags & F_CHUNKED) != 0) == head->chunked);
		FUZZ_CHECK(head->content_length == -1 ? (parser.flags & F_CONTENTLENGTH) == 0
											  : parser.content_length == (uint64_t) head->content_length);
		if (is_list_of_words(head, "connection"))
		{
			bool closes = (parser.flags & F_CONNECTION_CLOSE) != 0 ||
						  (head->minor == 0 && (parser.flags & F_CONNECTION_KEEP_ALIVE) == 0);

			FUZZ_CHECK(closes == head->close);
			FUZZ_CHECK(((parser.flags & F_UPGRADE) != 0 && (parser.flags & F_CONNECTION_UPGRADE) != 0) ==
					   head->upgrade);
		}
	}
	free(told.text);
	free(told.url);
}

/* Percent-decoding by sscanf; NULL for a bad escape or a character below `least`, or, if that is a blank, DEL. To be
 * freed. */
static char *
decode_from(const char *from, size_t len, bool plus, unsigned char least)
{
	char *text = fuzz_text(from, len), *to = text;
	bool good = true;

	for (char *at = text; at < text + len; at++)
	{
		unsigned value = (unsigned char) *at;

		if (*at == '%')
		{
			char digits[3] = {at[1], at[1] != '\0' ? at[2] : '\0', '\0'};

			good = good && strspn(digits, "0123456789abcdefABCDEF") == 2 && sscanf(digits, "%2x", &value) == 1;
			at += good ? 2 : 0;
		}
		else if (plus && *at == '+')
			value = ' ';
		good = good && value >= least && (least < ' ' || value != 0x7F);
		*to++ = (char) value;
	}
	*to = '\0';
	if (good)
		return text;
	free(text);
	return NULL;
}

static char *
decode(const char *from, size_t len, bool plus)
{
	return decode_from(from, len, plus, ' ');
}

static void
check_argument(const char *query, const char *name)
{
	char *all = strdup(query), *rest = all, *piece, *right = NULL, value[32];
	bool found = false;

	while (!found && (piece = strsep(&rest, "&")) != NULL)
	{
		found = strncmp(piece, name, strlen(name)) == 0 && piece[strlen(name)] == '=';
		if (found)
			right = decode(piece + strlen(name) + 1, strlen(piece) - strlen(name) - 1, true);
	}
	found = right != NULL && strlen(right) < sizeof(value);
	FUZZ_CHECK(head_query_arg(query, name, value, sizeof(value)) == found);
	FUZZ_CHECK(!found || strcmp(value, right) == 0);
	free(right);
	free(all);
}

/* The bytes as a form: what is decoded of the first argument is as long and as sscanf has it. */
static void
check_form(const uint8_t *data, size_t size)
{
	char *form = fuzz_text((const char *) data, size), *value = malloc(size + 1), *right = NULL;
	size_t len = strcspn(form, "&");
	HeadArg found;

	FUZZ_CHECK(head_form_arg(form, "a", value, strlen(form) + 1) != HEAD_FOUND || strlen(value) <= strlen(form) - 2);
	if (len >= 2 && form[0] == 'a' && form[1] == '=')
	{
		right = decode_from(form + 2, len - 2, true, 1);
		found = head_form_arg(form, "a", value, strlen(form) + 1);
		FUZZ_CHECK(found == (right != NULL ? HEAD_FOUND : HEAD_MALFORMED));
		FUZZ_CHECK(right == NULL || strcmp(value, right) == 0);
	}
	free(right);
	free(value);
	free(form);
}

static void
check_address(const Head *head)
{
	size_t path_len = strcspn(head->target, "?");
	char *path = decode(head->target, path_len, false);

	FUZZ_CHECK(path != NULL && strcmp(path, head->path) == 0 && (*path == '/' || strcmp(path, "*") == 0));
	FUZZ_CHECK(strcmp(head->query, head->target[path_len] == '?' ? head->target + path_len + 1 : "") == 0);
	check_argument(head->query, "a");
	check_argument(head->query, "fid");
	free(path);
}

/* Where the head ends, asked for bytes that come one after the other. */
static long
find_end_in_steps(const char *bytes, size_t size)
{
	size_t seen = 0;

	for (size_t len = 1; len <= size; len++)
	{
		long end = head_find_end(bytes, len, &seen);

		if (end != 0)
			return end;
	}
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = fuzz_copy(data, size), *buffer;
	size_t seen = 0;
	long end = head_find_end(exact, size, &seen);
	HeadError error = {0, NULL};
	Head head;

	check_form(data, size);
	FUZZ_CHECK(end == find_end_in_steps(exact, size) && end <= (long) size);
	if (end > 0)
	{
		buffer = malloc(2 * (size_t) end + 2);
		memcpy(buffer, exact, (size_t) end);
		if (head_parse(&head, buffer, (size_t) end, FUZZ_URL_MAX, &error))
		{
			const char *accepted = head_field(&head, "accept-encoding");
			int quality = head_quality(accepted, "br");

			FUZZ_CHECK(quality >= 0 && quality <= 1000 && (accepted != NULL || quality == 0));
			check_with_other(&head, exact, (size_t) end);
			check_address(&head);
		}
		else
			FUZZ_CHECK(error.status >= 400 && error.status < 600 && error.reason != NULL);
		free(buffer);
	}
	free(exact);
	return 0;
}
