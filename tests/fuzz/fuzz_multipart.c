/*
 * fuzz_multipart.c - random upload bodies: the reading must mean the same whole, byte by byte, and in random pieces.
 *
 * The first byte seeds the pieces, the rest is the body, with the boundary "b".
 */
#include "multipart.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static const char *const fuzz_words[] = {"--b\r\n",
										 "\r\n--b\r\n",
										 "\r\n--b--",
										 "--b--\r\n",
										 "\r\n",
										 "\r",
										 "\n",
										 "-",
										 "--",
										 "b",
										 "Content-Disposition: form-data; name=\"a\"\r\n\r\n",
										 "--b\r\nContent-Disposition: form-data; name=x; filename=\"y\"\r\n\r\n",
										 "Content-Disposition: form-data",
										 "; filename=\"",
										 "; filename*=UTF-8''%41%",
										 "; name=",
										 "\"",
										 "\\",
										 "Content-Type: text/plain\r\n",
										 "data",
										 " ",
										 "\r\n--",
										 NULL};

/* A running hash of everything that was called, with pieces of data joined. */
typedef struct Trace
{
	uint64_t hash;
} Trace;

static void
trace(Trace *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to->hash = (to->hash ^ (unsigned char) text[i]) * 0x100000001b3u;
}

static bool
on_begin(void *arg, const char *name, const char *filename, const char *content_type)
{
	if (strlen(name) > MULTIPART_NAME_MAX || (filename && strlen(filename) > MULTIPART_NAME_MAX))
		abort();
	trace(arg, "[", 1);
	trace(arg, name, strlen(name) + 1);
	trace(arg, filename ? filename : "\1", filename ? strlen(filename) + 1 : 1);
	trace(arg, content_type, strlen(content_type) + 1);
	return true;
}

static bool
on_data(void *arg, const char *data, size_t len)
{
	if (len == 0)
		abort();
	trace(arg, data, len);
	return true;
}

static bool
on_end(void *arg)
{
	trace(arg, "]", 1);
	return true;
}

/* step 0: pieces of random lengths. */
static uint64_t
run(const uint8_t *data, size_t size, size_t step, unsigned seed)
{
	Trace calls = {0xcbf29ce484222325u};
	MultipartEvents events = {&calls, on_begin, on_data, on_end};
	Multipart *reader = multipart_open("multipart/form-data; boundary=b", &events);
	bool good = true;

	for (size_t at = 0; at < size && good;)
	{
		size_t len = step ? step : 1 + (seed = seed * 1103515245 + 12345) / 65536 % 40;
		char *piece;

		len = len < size - at ? len : size - at;
		piece = malloc(len);
		memcpy(piece, data + at, len);
		good = multipart_feed(reader, piece, len);
		free(piece);
		at += len;
	}
	trace(&calls, good ? "+" : "!", 1);
	trace(&calls, multipart_done(reader) ? "d" : "-", 1);
	trace(&calls, multipart_error(reader), strlen(multipart_error(reader)));
	multipart_close(reader);
	return calls.hash;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t whole;

	if (size < 2)
		return 0;
	whole = run(data + 1, size - 1, size, 0);
	if (run(data + 1, size - 1, 1, 0) != whole || run(data + 1, size - 1, 0, data[0]) != whole)
		abort();
	return 0;
}
