/* csv.h - RFC 4180: reading and writing comma-separated values; also writing them with tabs. Pure C, no allocation. */
#ifndef CSV_H
#define CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum CsvStatus
{
	CSV_FIELD,		/* a field was read */
	CSV_END,		/* the text is used up */
	CSV_MORE,		/* the next field is not complete: more of the text is needed */
	CSV_UNCLOSED,	/* a quoted field has no end */
	CSV_STRAY_QUOTE /* a quote inside an unquoted field, or text after a closing quote */
} CsvStatus;

/*
 * Reads a text of len bytes; a byte order mark at its start is skipped. Lines end with LF or CRLF (or a lone CR).
 *
 * A text may be read in pieces: while `more` is set, the text continues behind `end`. csv_read() then returns CSV_MORE,
 * and changes nothing, if the next field may go beyond `end`. The caller moves the bytes from `pos` on to the front of
 * the next piece, and sets `pos` and `end` anew. The first piece has the whole byte order mark.
 */
typedef struct CsvReader
{
	const char *pos, *end;
	uint32_t row, col; /* of the next field, from 0 */
	uint64_t line;	   /* of the text, from 1; for messages */
	bool field_due;	   /* a comma was read: a field follows even at the end */
	bool more;		   /* the text continues behind `end` */
} CsvReader;

typedef struct CsvField
{
	const char *data; /* the bytes between the quotes, doubled quotes not yet undone */
	size_t len;
	bool quoted;
	uint32_t row, col;
} CsvField;

extern void csv_reader_init(CsvReader *reader, const char *text, size_t len);
extern CsvStatus csv_read(CsvReader *reader, CsvField *field);
/* The field's content, doubled quotes undone; `to` has room for field->len bytes. Returns its length. */
extern size_t csv_unquote(const CsvField *field, char *to);

/* Whether a value has to be quoted between separators, and writing it: `to` has room for 2 * len + 2 bytes. Returns the
 * bytes written. */
extern bool csv_needs_quotes(const char *data, size_t len, char separator);
extern size_t csv_write(char *to, const char *data, size_t len, char separator);

#endif
