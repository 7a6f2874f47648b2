/*
 * fuzz_multipart.c - upload bodies: the reading must mean the same whole, byte by byte, and in pieces of any length.
 *
 * The first byte seeds the pieces. The rest is the body, with the boundary "b"; when the first byte is odd, a line
 * before the body says the parameters of the Content-Type.
 */
#include "http/server/multipart.h"

#include "fuzz.h"

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
	FUZZ_CHECK(strlen(name) <= MULTIPART_NAME_MAX && (!filename || strlen(filename) <= MULTIPART_NAME_MAX));
	trace(arg, "[", 1);
	trace(arg, name, strlen(name) + 1);
	trace(arg, filename ? filename : "\1", filename ? strlen(filename) + 1 : 1);
	trace(arg, content_type, strlen(content_type) + 1);
	return true;
}

static bool
on_data(void *arg, const char *data, size_t len)
{
	FUZZ_CHECK(len > 0);
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
run(const char *type, const uint8_t *data, size_t size, size_t step, unsigned seed)
{
	Trace calls = {0xcbf29ce484222325u};
	MultipartEvents events = {&calls, on_begin, on_data, on_end};
	Multipart *reader = multipart_open(type, &events);
	bool good = true;

	if (reader == NULL)
		return 0;
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
	const uint8_t *line_end = size > 0 && data[0] % 2 == 1 ? memchr(data, '\n', size) : NULL;
	const uint8_t *body = line_end != NULL ? line_end + 1 : data + 1;
	char *parameters, *type;
	uint64_t whole;

	if (size < 2)
		return 0;
	parameters = line_end != NULL ? fuzz_text(data + 1, (size_t) (line_end - data - 1)) : fuzz_text("; boundary=b", 12);
	type = malloc(strlen(parameters) + 32);
	sprintf(type, "multipart/form-data%s", parameters);
	size -= (size_t) (body - data);
	whole = run(type, body, size, size, 0);
	FUZZ_CHECK(run(type, body, size, 1, 0) == whole);
	FUZZ_CHECK(run(type, body, size, 0, data[0]) == whole);
	free(parameters);
	free(type);
	return 0;
}
