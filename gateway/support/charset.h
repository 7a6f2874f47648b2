/*
 * charset.h - the encoding of an uploaded text: which one it is, and the text in UTF-8, piece by piece.
 */
#ifndef CHARSET_H
#define CHARSET_H

#include "support/buf.h"

#include <iconv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHARSET_NAMES                                                                                                  \
	"UTF-8, UTF-16LE, UTF-16BE, UTF-32LE, UTF-32BE, GB18030, Big5, EUC-TW, Shift_JIS, EUC-JP, EUC-KR, Johab, "         \
	"TIS-620, "                                                                                                        \
	"VISCII, KOI8-R, windows-1250 to windows-1258, ISO-8859-1 to ISO-8859-16, IBM852, IBM855, IBM862, IBM865, "        \
	"IBM866, CP737, MAC-CENTRALEUROPE, MAC-CYRILLIC, GEORGIAN-ACADEMY and GEORGIAN-PS"

/* The encoding of this name, whatever its case: the name as answers have it. NULL: not supported. */
extern const char *charset_find(const char *name);
/* The encoding of a text that begins with these bytes. whole: they are all. Never NULL. */
extern const char *charset_guess(const char *head, size_t len, bool whole);

typedef struct Charset
{
	const char *name;  /* NULL: not begun */
	iconv_t converter; /* not of UTF-8, which is passed on as it is */
	char cut[8];	   /* the first bytes of a character of which the rest has not come */
	size_t cut_len;
	int64_t offset; /* bytes that were converted: on failure, that of the byte which is in no character */
} Charset;

/* name: a result of the functions above. False: the system has no converter for it. Zeroed at first. */
extern bool charset_begin(Charset *charset, const char *name);
/* Appends the piece in UTF-8. False: it has bytes that are no character. */
extern bool charset_convert(Charset *charset, const char *data, size_t len, Buf *to);
/* All has come: appends what the converter has kept. False: the text ends within a character. */
extern bool charset_end(Charset *charset, Buf *to);
extern void charset_free(Charset *charset);

#endif
