/*
 * test_multipart.c - uploads: every body is read whole, byte by byte and split at every place, and must always mean the
 * same; malformed ones are refused.
 */
#include "http/server/multipart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define TYPE "multipart/form-data; boundary=XbX"

/* What was called, as text: "[name|filename|type]data." per part. */
typedef struct Record
{
	char text[65536];
	size_t len;
	size_t refuse_after; /* data bytes; 0: never */
} Record;

static void
record(Record *to, const char *text, size_t len)
{
	if (to->len + len >= sizeof(to->text))
		abort();
	memcpy(to->text + to->len, text, len);
	to->len += len;
	to->text[to->len] = '\0';
}

static bool
on_begin(void *arg, const char *name, const char *filename, const char *content_type)
{
	char text[2048];

	record(arg, text,
		   (size_t) snprintf(text, sizeof(text), "[%s|%s|%s]", name, filename ? filename : "-", content_type));
	return strcmp(name, "forbidden") != 0;
}

static bool
on_data(void *arg, const char *data, size_t len)
{
	Record *to = arg;

	if (len == 0)
		abort(); /* never promised, and never useful */
	record(to, data, len);
	return to->refuse_after == 0 || to->len < to->refuse_after;
}

static bool
on_end(void *arg)
{
	record(arg, ".", 1);
	return true;
}

/* Feeds body in pieces of the two lengths, then the rest; "+" at the end says done, "!" an error. */
static void
run(Record *to, const char *type, const char *body, size_t len, size_t first, size_t step)
{
	MultipartEvents events = {to, on_begin, on_data, on_end};
	Multipart *reader = multipart_open(type, &events);
	size_t at = 0, piece = first;
	bool good = true;

	to->len = 0;
	to->text[0] = '\0';
	if (!reader)
	{
		record(to, "?", 1);
		return;
	}
	while (good && at < len)
	{
		char *copy;

		if (piece > len - at)
			piece = len - at;
		copy = malloc(piece + 1); /* exactly as long: the sanitizer sees reads beyond it */
		memcpy(copy, body + at, piece);
		good = multipart_feed(reader, copy, piece);
		free(copy);
		at += piece;
		piece = step;
	}
	if (!good)
		record(to, "!", 1);
	else if (multipart_done(reader))
		record(to, "+", 1);
	if (good != (multipart_error(reader)[0] == '\0'))
		record(to, " (error text)", 13);
	multipart_close(reader);
}

static void
expect(const char *body, size_t len, const char *wanted, size_t wanted_len, const char *what)
{
	static Record whole, split;
	size_t differing = 0;

	run(&whole, TYPE, body, len, len ? len : 1, 1);
	if (!TAP_OK(whole.len == wanted_len && memcmp(whole.text, wanted, wanted_len) == 0, "%s", what))
		printf("# got  %s\n# want %s\n", whole.text, wanted);
	for (size_t first = 1; first < len; first++)
	{
		run(&split, TYPE, body, len, first, len);
		differing += split.len != whole.len || memcmp(split.text, whole.text, whole.len) != 0;
		run(&split, TYPE, body, len, first, 1);
		differing += split.len != whole.len || memcmp(split.text, whole.text, whole.len) != 0;
	}
	TAP_OK(differing == 0, "%s: the same at every split", what);
}

#define EXPECT(body, wanted, what) expect(body, sizeof(body) - 1, wanted, sizeof(wanted) - 1, what)
#define FIELD(name)				   "--XbX\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define UPLOAD(rest)			   "--XbX\r\nContent-Disposition: form-data; name=\"f\"; " rest "\r\n\r\nD\r\n--XbX--\r\n"

static void
test_bodies(void)
{
	EXPECT(FIELD("fid") "7\r\n" FIELD("token") "abc\r\n--XbX--\r\n", "[fid|-|]7.[token|-|]abc.+", "two fields");
	EXPECT(FIELD("fid") "7\r\n--XbX\r\nContent-Disposition: form-data; name=\"uploadfile\"; filename=\"a.png\"\r\n"
						"Content-Type: image/png\r\n\r\n\x89PNG\r\n\x1a\n\r\n--XbX--\r\n",
		   "[fid|-|]7.[uploadfile|a.png|image/png]\x89PNG\r\n\x1a\n.+", "a field and a file");
	EXPECT(FIELD("a") "\r\n--XbX--\r\n", "[a|-|].+", "an empty part");
	EXPECT(FIELD("a") "--XbX--\r\n", "[a|-|].+", "an empty part whose headers' line end is the delimiter's");
	EXPECT(FIELD("a") "\r\n\r\n--XbX--", "[a|-|]\r\n.+", "a part that is a line end");
	EXPECT(FIELD("a") "\r\r\r\n\r\n--Xb\r\n--XbY\r\n-\r\n--\r\r\n--XbX--",
		   "[a|-|]\r\r\r\n\r\n--Xb\r\n--XbY\r\n-\r\n--\r.+", "data that nearly is a delimiter, again and again");
	EXPECT(FIELD("a") "--XbX is not\r\n--XbX--", "[a|-|].!", "a delimiter right after the headers, and garbage");
	EXPECT(FIELD("a") "-XbX\n--XbX\r\n--XbX--", "[a|-|]-XbX\n--XbX.+", "a boundary without CRLF is data");
	EXPECT("preamble\r\nmore -- XbX\r\n" FIELD("a") "1\r\n--XbX--\r\nepilogue\r\n--XbX\r\n", "[a|-|]1.+",
		   "preamble and epilogue are ignored");
	EXPECT("\r\n" FIELD("a") "1\r\n--XbX--", "[a|-|]1.+", "a line end in front");
	EXPECT("--XbX  \t \r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--XbX--", "[a|-|]1.+",
		   "blanks after a boundary");
	EXPECT("--XbX--\r\n", "+", "no part at all");
	EXPECT(FIELD("a") "1\r\n--XbX", "[a|-|]1.", "a missing end: not done");
	EXPECT(FIELD("a") "1\r\n--XbX-", "[a|-|]1.", "half an end: not done");
	EXPECT(FIELD("a") "1", "[a|-|]1", "cut in the data: not done");
	EXPECT("", "", "an empty body: not done");
	EXPECT(FIELD("a") "x\0y\0\r\n--XbX--", "[a|-|]x\0y\0.+", "zero bytes are data");
}

static void
test_headers(void)
{
	EXPECT(UPLOAD("filename=\"a \\\"b\\\" \\\\c.txt\""), "[f|a \"b\" \\c.txt|]D.+", "escapes in a quoted filename");
	EXPECT(UPLOAD("filename=\"C:\\dir\\file.txt\""), "[f|C:\\dir\\file.txt|]D.+", "single backslashes are kept");
	EXPECT(UPLOAD("filename=\"a;b=c.txt\""), "[f|a;b=c.txt|]D.+", "separators in quotes");
	EXPECT(UPLOAD("filename=plain.txt"), "[f|plain.txt|]D.+", "a filename without quotes");
	EXPECT(UPLOAD("filename=\"\""), "[f||]D.+", "an empty filename is a filename");
	EXPECT(UPLOAD("filename=\"\xc3\xa4.txt\""), "[f|\xc3\xa4.txt|]D.+", "a filename in UTF-8");
	EXPECT(UPLOAD("filename*=UTF-8''%E2%82%AC%20rates.txt"), "[f|\xe2\x82\xac rates.txt|]D.+", "filename* (RFC 5987)");
	EXPECT(UPLOAD("filename*=utf-8'en'a.txt; filename=\"b.txt\""), "[f|a.txt|]D.+", "filename* goes before filename");
	EXPECT(UPLOAD("filename=\"b.txt\"; filename*=UTF-8''a.txt"), "[f|a.txt|]D.+", "in whatever order");
	EXPECT(UPLOAD("filename*=ISO-8859-1''%E4.txt"), "!", "filename* of another charset");
	EXPECT(UPLOAD("filename*=UTF-8''%ZZ.txt"), "!", "filename* with a bad escape");
	EXPECT(UPLOAD("filename*=UTF-8''a%00b"), "!", "filename* with a NUL");
	EXPECT(UPLOAD("filename*=UTF-8''%4"), "!", "filename* that ends in an escape");
	EXPECT(UPLOAD("filename=\"open"), "!", "a quote that is not closed");
	EXPECT(UPLOAD("filename"), "!", "a parameter without a value");
	EXPECT(UPLOAD("size=3; filename=\"x\"; modified=\"now\""), "[f|x|]D.+", "unknown parameters");
	EXPECT("--XbX\r\ncontent-disposition:FORM-DATA;name=\"a\"\r\ncontent-TYPE:text/plain\r\nX-Other: "
		   "1\r\n\r\n1\r\n--XbX--",
		   "[a|-|text/plain]1.+", "names of headers in any case, no blanks, unknown headers");
	EXPECT("--XbX\r\nContent-Type: text/plain\r\n\r\n1\r\n--XbX--", "!", "no Content-Disposition");
	EXPECT("--XbX\r\n\r\n1\r\n--XbX--", "!", "no headers");
	EXPECT("--XbX\r\nContent-Disposition: form-data\r\n\r\n1\r\n--XbX--", "!", "no name");
	EXPECT("--XbX\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n1\r\n--XbX--", "!", "not form-data");
	EXPECT("--XbX\r\nContent-Disposition: form-data; name=\"a\"; name=\"b\"\r\n\r\n1\r\n--XbX--", "!", "two names");
	EXPECT("--XbX\r\nContent-Disposition: form-data; name=\"a\"\n\n1\r\n--XbX--", "!", "bare line feeds");
	EXPECT("--XbX\r\nContent-Disposition: form-data; name=\"a\"\r\nfolded\r\n\r\n1\r\n--XbX--", "!",
		   "a header without a colon");
	EXPECT(
		"--XbX\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: base64\r\n\r\n1\r\n--XbX--",
		"!", "base64 (RFC 7578 4.7)");
	EXPECT("--XbX\r\nContent-Disposition: form-data; name=\"a\"\r\nX: \0\r\n\r\n1\r\n--XbX--", "!",
		   "a NUL in the headers");
	EXPECT("--XbXgarbage\r\n", "!", "garbage after a boundary");
	EXPECT("--XbX-\r\n", "!", "one dash after a boundary");
	EXPECT("--XbX\rX", "!", "CR without LF after a boundary");
	EXPECT(FIELD("forbidden") "1\r\n--XbX--", "[forbidden|-|]!", "the gateway refuses a part");
}

static void
test_limits(void)
{
	static char body[20000], wanted[20000];
	static Record result;
	char name[MULTIPART_NAME_MAX + 2], type[400], boundary[MULTIPART_BOUNDARY_MAX + 2];
	MultipartEvents events = {&result, on_begin, on_data, on_end};
	int len;

	memset(name, 'n', sizeof(name));
	name[MULTIPART_NAME_MAX] = '\0';
	len =
		snprintf(body, sizeof(body), "--XbX\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n1\r\n--XbX--", name);
	snprintf(wanted, sizeof(wanted), "[%s|-|]1.+", name);
	run(&result, TYPE, body, (size_t) len, 100, 100);
	TAP_OK(strcmp(result.text, wanted) == 0, "the longest name");
	name[MULTIPART_NAME_MAX] = 'n';
	name[MULTIPART_NAME_MAX + 1] = '\0';
	len =
		snprintf(body, sizeof(body), "--XbX\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n1\r\n--XbX--", name);
	run(&result, TYPE, body, (size_t) len, 100, 100);
	TAP_OK(strcmp(result.text, "!") == 0, "a longer one is refused");
	len = snprintf(body, sizeof(body),
				   "--XbX\r\nX: %*s\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--XbX--",
				   MULTIPART_HEADERS_MAX, "x");
	run(&result, TYPE, body, (size_t) len, 1000, 1000);
	TAP_OK(strcmp(result.text, "!") == 0, "headers that are too long are refused");
	result.refuse_after = 20;
	len = snprintf(body, sizeof(body), FIELD("a") "%*s\r\n--XbX--", 1000, "x");
	run(&result, TYPE, body, (size_t) len, 1, 10);
	TAP_OK(strchr(result.text, '!') && result.len < 40, "refused data stops the reading");
	result.refuse_after = 0;

	memset(boundary, 'b', sizeof(boundary));
	boundary[MULTIPART_BOUNDARY_MAX] = '\0';
	snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", boundary);
	len = snprintf(body, sizeof(body), "--%s\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--%.*s\r\n--%s--",
				   boundary, MULTIPART_BOUNDARY_MAX - 1, boundary, boundary);
	snprintf(wanted, sizeof(wanted), "[a|-|]1\r\n--%.*s.+", MULTIPART_BOUNDARY_MAX - 1, boundary);
	run(&result, type, body, (size_t) len, 7, 13);
	TAP_OK(strcmp(result.text, wanted) == 0, "the longest boundary");
	boundary[MULTIPART_BOUNDARY_MAX] = 'b';
	boundary[MULTIPART_BOUNDARY_MAX + 1] = '\0';
	snprintf(type, sizeof(type), "multipart/form-data; boundary=%s", boundary);
	TAP_OK(multipart_open(type, &events) == NULL, "a longer one is refused");
}

static void
test_types(void)
{
	static const struct
	{
		const char *type;
		bool good;
	} table[] = {
		{"multipart/form-data; boundary=abc", true},
		{"Multipart/Form-Data;BOUNDARY=\"a b:c\"", true},
		{"multipart/form-data; charset=utf-8; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", true},
		{"multipart/form-data; boundary='()+_,-./:=?'", false},
		{"multipart/form-data; boundary=\"'()+_,-./:=?\"", true},
		{"multipart/form-data", false},
		{"multipart/form-data; boundary=", false},
		{"multipart/form-data; boundary=\"\"", false},
		{"multipart/form-data; boundary=\"a \"", false},
		{"multipart/form-data; boundary=\"a\r\nb\"", false},
		{"multipart/form-data; boundary=a; boundary=b", false},
		{"multipart/form-data; boundary=\"abc", false},
		{"multipart/form-data boundary=abc", false},
		{"multipart/form-database; boundary=abc", false},
		{"multipart/mixed; boundary=abc", false},
		{"application/json", false},
		{"", false},
	};
	MultipartEvents events = {NULL, on_begin, on_data, on_end};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
	{
		Multipart *reader = multipart_open(table[i].type, &events);

		TAP_OK((reader != NULL) == table[i].good, "type %zu is %s", i, table[i].good ? "taken" : "refused");
		multipart_close(reader);
	}
}

int
main(void)
{
	test_bodies();
	test_headers();
	test_limits();
	test_types();
	return tap_done();
}
