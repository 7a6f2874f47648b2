/*
 * charset.c - the encoding of an uploaded text: recognised by its byte order mark, by being valid UTF-8, or by uchardet
 * (Mozilla's statistics of languages); converted by iconv.
 *
 * A converter is fed with pieces that end anywhere. The first bytes of a character are kept until the rest comes.
 */
#include "support/charset.h"

#include "common/utf8.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <uchardet/uchardet.h>

#define CHARSET_GROWTH	 3 /* bytes of UTF-8 for one of the others, at most */
#define CHARSET_FALLBACK "windows-1252"
#define CHARSET_SURE	 20 /* bytes that are not ASCII, from which on statistics tell encodings of single bytes apart */

static const char *const charset_names[] = {
	"UTF-8",		"UTF-16LE",		"UTF-16BE",		"GB18030",		"Big5",			"Shift_JIS",	"EUC-JP",
	"EUC-KR",		"KOI8-R",		"windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254",
	"windows-1255", "windows-1256", "windows-1257", "windows-1258", "ISO-8859-1",	"ISO-8859-2",	"ISO-8859-3",
	"ISO-8859-4",	"ISO-8859-5",	"ISO-8859-6",	"ISO-8859-7",	"ISO-8859-8",	"ISO-8859-9",	"ISO-8859-10",
	"ISO-8859-11",	"ISO-8859-13",	"ISO-8859-14",	"ISO-8859-15",	"ISO-8859-16",
};

const char *
charset_find(const char *name)
{
	for (size_t i = 0; i < sizeof(charset_names) / sizeof(charset_names[0]); i++)
	{
		if (strcasecmp(charset_names[i], name) == 0)
			return charset_names[i];
	}
	return NULL;
}

/* As the system calls it. Of two, what Windows writes, which has more characters. */
static const char *
charset_converter(const char *name)
{
	if (strcmp(name, "Shift_JIS") == 0)
		return "CP932";
	return strcmp(name, "EUC-KR") == 0 ? "UHC" : name;
}

/* ---- recognition ---- */

/* UTF-16 without a mark, of which half of the characters at least are those of ASCII. NULL: it is none. */
static const char *
charset_of_zeros(const char *head, size_t len, bool whole)
{
	size_t zeros[2] = {0, 0};

	for (size_t i = 0; i < len; i++)
		zeros[i % 2] += head[i] == '\0';
	if ((whole && len % 2 != 0) || (zeros[0] + zeros[1]) * 4 < len || zeros[0] * zeros[1] != 0)
		return NULL;
	return zeros[0] > 0 ? "UTF-16BE" : zeros[1] > 0 ? "UTF-16LE" : NULL;
}

/* The length without the first bytes of a character at the end, of which the rest is missing. */
static size_t
charset_without_cut(const char *head, size_t len)
{
	size_t back = 0;

	while (back < 3 && back < len && ((uint8_t) head[len - 1 - back] & 0xC0) == 0x80)
		back++;
	return back < len && (uint8_t) head[len - 1 - back] >= 0xC2 ? len - 1 - back : len;
}

/* Does each byte stand for a character? */
static bool
charset_is_single_byte(const char *name)
{
	return strncmp(name, "ISO-", 4) == 0 || strncmp(name, "windows-", 8) == 0 || strcmp(name, "KOI8-R") == 0;
}

static size_t
charset_count_high(const char *head, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += (uint8_t) head[i] >= 0x80;
	return count;
}

static const char *
charset_of_statistics(const char *head, size_t len)
{
	uchardet_t detector = uchardet_new();
	const char *found = NULL;

	if (detector == NULL)
		return CHARSET_FALLBACK;
	if (uchardet_handle_data(detector, head, len) == 0)
	{
		uchardet_data_end(detector);
		found = charset_find(uchardet_get_charset(detector));
	}
	uchardet_delete(detector);
	if (found == NULL || strcmp(found, "UTF-8") == 0)
		return CHARSET_FALLBACK;
	if (charset_is_single_byte(found) && charset_count_high(head, len) < CHARSET_SURE)
		return CHARSET_FALLBACK;
	/* windows-1252 has characters where these have control characters. The euro sign is at another place in the latter.
	 */
	if (strcmp(found, "ISO-8859-1") == 0 || (strcmp(found, "ISO-8859-15") == 0 && memchr(head, 0xA4, len) == NULL))
		return CHARSET_FALLBACK;
	return found;
}

const char *
charset_guess(const char *head, size_t len, bool whole)
{
	const char *name;

	if (len >= 2 && memcmp(head, "\xFF\xFE", 2) == 0)
		return "UTF-16LE";
	if (len >= 2 && memcmp(head, "\xFE\xFF", 2) == 0)
		return "UTF-16BE";
	if (utf8_check(head, whole ? len : charset_without_cut(head, len), NULL) ||
		(len >= 3 && memcmp(head, "\xEF\xBB\xBF", 3) == 0))
		return "UTF-8";
	name = charset_of_zeros(head, len, whole);
	return name != NULL ? name : charset_of_statistics(head, len);
}

/* ---- conversion ---- */

static bool
charset_is_utf8(const Charset *charset)
{
	return strcmp(charset->name, "UTF-8") == 0;
}

bool
charset_begin(Charset *charset, const char *name)
{
	*charset = (Charset){.name = name};
	if (charset_is_utf8(charset))
		return true;
	charset->converter = iconv_open("UTF-8", charset_converter(name));
	if (charset->converter != (iconv_t) -1)
		return true;
	charset->name = NULL;
	return false;
}

/* Converts what is complete. Returns false at a byte that is in no character. */
static bool
charset_step(Charset *charset, char **data, size_t *len, Buf *to)
{
	const char *from = *data;
	size_t most = *len * CHARSET_GROWTH + sizeof(charset->cut), room = most;
	char *out;
	bool wrong;

	if (!buf_reserve(to, most))
		return true; /* the caller sees that the buffer has failed */
	out = to->data + to->len;
	wrong = iconv(charset->converter, data, len, &out, &room) == (size_t) -1 && errno != EINVAL;
	to->len += most - room;
	charset->offset += *data - from;
	return !wrong;
}

bool
charset_convert(Charset *charset, const char *data, size_t len, Buf *to)
{
	char *from = (char *) data;

	if (charset_is_utf8(charset))
	{
		buf_put(to, data, len);
		return true;
	}
	while (charset->cut_len > 0 && len > 0 && !buf_failed(to))
	{
		char *cut = charset->cut;

		if (charset->cut_len == sizeof(charset->cut))
			return false;
		charset->cut[charset->cut_len++] = *from++;
		len--;
		if (!charset_step(charset, &cut, &charset->cut_len, to))
			return false;
		memmove(charset->cut, cut, charset->cut_len);
	}
	if (!charset_step(charset, &from, &len, to))
		return false;
	if (len >= sizeof(charset->cut)) /* without memory */
		return true;
	memcpy(charset->cut + charset->cut_len, from, len);
	charset->cut_len += len;
	return true;
}

/* The converter of windows-1258 keeps a letter until it knows whether an accent follows. */
bool
charset_end(Charset *charset, Buf *to)
{
	size_t room = sizeof(charset->cut);
	char *out;

	if (charset->cut_len > 0)
		return false;
	if (charset_is_utf8(charset) || !buf_reserve(to, room))
		return true;
	out = to->data + to->len;
	(void) iconv(charset->converter, NULL, NULL, &out, &room);
	to->len = (size_t) (out - to->data);
	return true;
}

void
charset_free(Charset *charset)
{
	if (charset->name != NULL && !charset_is_utf8(charset))
		iconv_close(charset->converter);
	charset->name = NULL;
}
