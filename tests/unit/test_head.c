/*
 * test_head.c - heads of requests: what is understood, and what is refused with which status; and what a client says of
 * the codings that it takes.
 */
#include "http/server/head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

static char buffer[20000];

/* Reads the head; the status that it is refused with, or 0. Every prefix of it is one that has not ended. */
static int
parse(const char *text, Head *head)
{
	size_t len = strlen(text), seen = 0;
	HeadError error;
	char *exact;

	for (size_t i = 0; i <= len; i++)
	{
		long end = head_find_end(text, i, &seen);

		if (end < 0)
			return 400;
		if (end > 0 && i < len)
			return -1;
	}
	/* Memory of exactly the size that is asked for, so that the sanitizer sees what goes beyond. */
	exact = malloc(2 * len + 2);
	memcpy(exact, text, len);
	if (!head_parse(head, exact, len, 200, &error))
	{
		free(exact);
		return error.status;
	}
	memcpy(buffer, text, len);
	free(exact);
	return head_parse(head, buffer, len, 200, &error) ? 0 : -2;
}

static void
test_good(void)
{
	Head head;
	char value[16];

	TAP_OK(parse("GET /a%20b/%C3%A9?x=1&y=a+b%26c&x=2 HTTP/1.1\r\nHost: h:80\r\nX-One:\t v \r\nx-empty:\r\n\r\n",
				 &head) == 0,
		   "a request is read");
	TAP_OK(strcmp(head.method, "GET") == 0 && strcmp(head.path, "/a b/\xC3\xA9") == 0 && head.minor == 1,
		   "method, path");
	TAP_OK(strcmp(head.target, "/a%20b/%C3%A9?x=1&y=a+b%26c&x=2") == 0, "the target stays as it came");
	TAP_OK(strcmp(head_field(&head, "x-one"), "v") == 0 && strcmp(head_field(&head, "x-empty"), "") == 0 &&
			   head_field(&head, "x") == NULL,
		   "fields, without the blanks around them");
	TAP_OK(head_query_arg(head.query, "y", value, sizeof(value)) && strcmp(value, "a b&c") == 0, "an argument");
	TAP_OK(head_query_arg(head.query, "x", value, sizeof(value)) && strcmp(value, "1") == 0, "the first of two");
	TAP_OK(!head_query_arg(head.query, "z", value, sizeof(value)) && !head_query_arg(head.query, "y", value, 5) &&
			   head_query_arg(head.query, "y", value, 6),
		   "absent, too long, just fitting");
	TAP_OK(head_query_has("a=1&bc&d=%zz", "a") && head_query_has("a=1&bc&d=%zz", "bc") &&
			   head_query_has("a=1&bc&d=%zz", "d") && !head_query_has("a=1&bc&d=%zz", "b") &&
			   !head_query_has("a=1&bc&d=%zz", "c") && !head_query_has("", "a"),
		   "an argument is there, whatever its value");
	TAP_OK(!head_query_arg("a=%zz", "a", value, sizeof(value)) && !head_query_arg("a=%4", "a", value, sizeof(value)) &&
			   !head_query_arg("a=%00", "a", value, sizeof(value)) &&
			   !head_query_arg("a=%%%", "a", value, sizeof(value)),
		   "malformed escapes");
	memset(value, 'x', sizeof(value));
	TAP_OK(!head_query_arg("a=123456789A%%%%%", "a", value, 8) && value[8] == 'x' &&
			   !head_query_arg("a=12345678", "a", value, 8) && value[8] == 'x' &&
			   head_query_arg("a=1234567", "a", value, 8),
		   "nothing is written behind the room, however many escapes there seem to be");
	TAP_OK(head_form_arg("x=1&a=b%0d%0A%26+%7f\n&y", "a", value, sizeof(value)) == HEAD_FOUND &&
			   strcmp(value, "b\r\n& \x7F\n") == 0,
		   "an argument of a form may have lines");
	TAP_OK(head_form_arg("a=%00", "a", value, sizeof(value)) == HEAD_MALFORMED &&
			   head_form_arg("a=%4", "a", value, sizeof(value)) == HEAD_MALFORMED &&
			   head_form_arg("a=12345678", "a", value, 8) == HEAD_MALFORMED &&
			   head_form_arg("a=1234567", "a", value, 8) == HEAD_FOUND &&
			   head_form_arg("b=1&a", "a", value, 8) == HEAD_ABSENT && head_form_arg("", "a", value, 8) == HEAD_ABSENT,
		   "malformed, too long, absent");
	TAP_OK(head.content_length == -1 && !head.close && !head.upgrade && !head.chunked, "nothing that it does not say");
	TAP_OK(parse("POST /x HTTP/1.0\r\nContent-Length: 007\r\n\r\n", &head) == 0 && head.content_length == 7 &&
			   head.close,
		   "HTTP/1.0 closes");
	TAP_OK(parse("GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n", &head) ==
				   0 &&
			   head.upgrade,
		   "an upgrade");
	TAP_OK(parse("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgraded\r\nUpgrade: websocket\r\n\r\n", &head) == 0 &&
			   !head.upgrade,
		   "words of lists are whole");
	TAP_OK(parse("GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", &head) == 0 &&
			   head.close,
		   "a list over two fields");
	TAP_OK(parse("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n", &head) == 0 && head.chunked,
		   "chunked");
	TAP_OK(parse("GET http://h:1/p?q HTTP/1.1\r\nHost: h\r\n\r\n", &head) == 0 && strcmp(head.path, "/p") == 0 &&
			   strcmp(head.target, "/p?q") == 0,
		   "the absolute form");
}

static void
test_bad(void)
{
	static const struct
	{
		const char *text;
		int status;
	} bad[] = {
		{"GET / HTTP/1.1\nHost: h\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: h\r\n X: y\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: h\r\nX: \x01\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: h/i\r\n\r\n", 400},
		{"GET / HTTP/1.12\r\nHost: h\r\n\r\n", 400},
		{"GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505},
		{"GET / \r\nHost: h\r\n\r\n", 400},
		{" / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"GET http://h:}/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"GET /%0 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1a\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: deflate\r\n\r\n", 501},
		{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		{"POST / HTTP/1.1\r\nHost: h\r\nExpect: more\r\n\r\n", 417},
		{"\r\n\r\n", 400},
	};
	char text[8000];
	Head head;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TAP_OK(parse(bad[i].text, &head) == bad[i].status, "case %zu is refused with %d", i, bad[i].status);
	snprintf(text, sizeof(text), "GET /%0300d HTTP/1.1\r\nHost: h\r\n\r\n", 0);
	TAP_OK(parse(text, &head) == 414, "a long address");
	strcpy(text, "GET / HTTP/1.1\r\nHost: h\r\n");
	for (int i = 0; i < HEAD_FIELDS_MAX; i++)
		strcat(text, "X: y\r\n");
	strcat(text, "\r\n");
	TAP_OK(parse(text, &head) == 431, "many fields");
}

static void
test_encodings(void)
{
	TAP_OK(head_quality(NULL, "br") == 0 && head_quality("", "br") == 0, "nothing is taken that is not named");
	TAP_OK(head_quality("gzip, deflate, br", "br") == 1000, "named");
	TAP_OK(head_quality("gzip;q=0.5, BR ; q=0.25", "br") == 250, "with a weight");
	TAP_OK(head_quality("br;q=0, *", "br") == 0 && head_quality("br;q=0, *;q=0.1", "gzip") == 100, "not at all");
	TAP_OK(head_quality("brotli, xbr", "br") == 0, "another coding");
	TAP_OK(head_quality("br;q=2", "br") == 0 && head_quality("br;q=", "br") == 0, "a weight that is none");
}

int
main(void)
{
	test_good();
	test_bad();
	test_encodings();
	return tap_done();
}
