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
#define CHARSET_SURE                                                                                                   \
	20 /* fewest bytes that are not ASCII for which statistics of single-byte encodings are trusted                    \
		*/

typedef struct CharsetKind
{
	const char *name;	   /* as answers have it */
	const char *converter; /* its name for iconv; NULL: the same */
	const char *alias;	   /* another name for it, of uchardet or of programs */
} CharsetKind;

/* All that uchardet 0.0.7 and 0.0.8 return, but for encodings in 7 bits. Of supersets, iconv has those that Windows
 * writes. */
static const CharsetKind charset_kinds[] = {
	{"UTF-8", NULL, NULL},
	{"UTF-16LE", NULL, NULL},
	{"UTF-16BE", NULL, NULL},
	{"UTF-32LE", NULL, NULL},
	{"UTF-32BE", NULL, NULL},
	{"GB18030", NULL, NULL},
	{"Big5", NULL, NULL},
	{"EUC-TW", NULL, NULL},
	{"Shift_JIS", "CP932", NULL},
	{"EUC-JP", NULL, NULL},
	{"EUC-KR", "UHC", "UHC"},
	{"EUC-KR", "UHC", "CP949"},
	{"Johab", NULL, NULL},
	{"TIS-620", "WINDOWS-874", "windows-874"},
	{"VISCII", NULL, NULL},
	{"KOI8-R", NULL, NULL},
	{"windows-1250", NULL, NULL},
	{"windows-1251", NULL, NULL},
	{"windows-1252", NULL, NULL},
	{"windows-1253", NULL, NULL},
	{"windows-1254", NULL, NULL},
	{"windows-1255", NULL, NULL},
	{"windows-1256", NULL, NULL},
	{"windows-1257", NULL, NULL},
	{"windows-1258", NULL, NULL},
	{"ISO-8859-1", NULL, NULL},
	{"ISO-8859-2", NULL, NULL},
	{"ISO-8859-3", NULL, NULL},
	{"ISO-8859-4", NULL, NULL},
	{"ISO-8859-5", NULL, NULL},
	{"ISO-8859-6", NULL, NULL},
	{"ISO-8859-7", NULL, NULL},
	{"ISO-8859-8", NULL, NULL},
	{"ISO-8859-9", NULL, NULL},
	{"ISO-8859-10", NULL, NULL},
	{"ISO-8859-11", NULL, NULL},
	{"ISO-8859-13", NULL, NULL},
	{"ISO-8859-14", NULL, NULL},
	{"ISO-8859-15", NULL, NULL},
	{"ISO-8859-16", NULL, NULL},
	{"IBM852", NULL, NULL},
	{"IBM855", NULL, NULL},
	{"IBM862", NULL, NULL},
	{"IBM865", NULL, NULL},
	{"IBM866", NULL, NULL},
	{"CP737", NULL, NULL},
	{"MAC-CENTRALEUROPE", NULL, NULL},
	{"MAC-CYRILLIC", NULL, NULL},
	{"GEORGIAN-ACADEMY", NULL, NULL},
	{"GEORGIAN-PS", NULL, NULL},
};

static const CharsetKind *
charset_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(charset_kinds) / sizeof(charset_kinds[0]); i++)
	{
		const CharsetKind *kind = &charset_kinds[i];

		if (strcasecmp(kind->name, name) == 0 || (kind->alias != NULL && strcasecmp(kind->alias, name) == 0))
			return kind;
	}
	return NULL;
}

const char *
charset_find(const char *name)
{
	const CharsetKind *kind = charset_kind(name);

	return kind != NULL ? kind->name : NULL;
}

/* The name for iconv. */
static const char *
charset_converter(const char *name)
{
	const CharsetKind *kind = charset_kind(name);

	return kind != NULL && kind->converter != NULL ? kind->converter : name;
}

/* ---- recognition ---- */

/* UTF-16 without a byte order mark, if at least half of its characters are ASCII. NULL: it is not. */
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
	static const char *const families[] = {"ISO-", "windows-", "KOI8-",	 "IBM",		 "CP737",
										   "MAC-", "TIS-",	   "VISCII", "GEORGIAN-"};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
	{
		if (strncmp(name, families[i], strlen(families[i])) == 0)
			return true;
	}
	return false;
}

static size_t
charset_count_high(const char *head, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += (uint8_t) head[i] >= 0x80;
	return count;
}

/* Has it control characters of ISO 8859, which no text has? */
static bool
charset_has_controls(const char *head, size_t len)
{
	for (size_t i = 0; i < len; i++)
	{
		if (((uint8_t) head[i] & 0xE0) == 0x80)
			return true;
	}
	return false;
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
	/* windows-1252 has characters where these have only control characters. */
	if (strcmp(found, "ISO-8859-1") == 0 || (strcmp(found, "ISO-8859-15") == 0 && charset_has_controls(head, len)))
		return CHARSET_FALLBACK;
	return found;
}

const char *
charset_guess(const char *head, size_t len, bool whole)
{
	const char *name;

	if (len >= 4 && memcmp(head, "\xFF\xFE\0\0", 4) == 0)
		return "UTF-32LE";
	if (len >= 4 && memcmp(head, "\0\0\xFE\xFF", 4) == 0)
		return "UTF-32BE";
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
	if (buf_failed(to))
		return true;
	memcpy(charset->cut + charset->cut_len, from, len);
	charset->cut_len += len;
	return true;
}

/* The converters of windows-1255 and windows-1258 keep a letter until they know whether an accent follows. */
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
