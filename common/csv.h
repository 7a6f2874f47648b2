/*
 * csv.h - separated values: reading and writing RFC 4180 and its dialects, and reading JSON Lines. Pure C, no
 * allocation.
 *
 * docs/design/interchange.md says which dialects there are, and how the separator is recognised.
 */
#ifndef CSV_H
#define CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSV_HEAD_BYTES 65536 /* of a text, in which the separator is recognised */
#define CSV_NO_QUOTE   256	 /* no byte */

typedef enum CsvStatus
{
	CSV_FIELD,		 /* a field was read */
	CSV_END,		 /* the text is used up */
	CSV_MORE,		 /* the next field is not complete: more of the text is needed */
	CSV_UNCLOSED,	 /* a quoted field has no end */
	CSV_STRAY_QUOTE, /* a quote inside an unquoted field, or text after a closing quote */
	CSV_NOT_JSON	 /* a line of JSON Lines is no array of strings, numbers, booleans and nulls */
} CsvStatus;

typedef struct CsvDialect
{
	char separator;
	int quote;	  /* CSV_NO_QUOTE: none */
	bool lenient; /* takes misplaced quotes: see csv.c */
	bool json;	  /* JSON Lines: separator, quote and lenient are ignored */
} CsvDialect;

/* The order of day and month in dates that end with the year; what is no such date stays as it is. */
typedef enum CsvDates
{
	CSV_DATES_NONE,
	CSV_DATES_DMY,
	CSV_DATES_MDY
} CsvDates;

/* How a text becomes contents of cells. */
typedef struct CsvOptions
{
	CsvDialect dialect;
	bool guess;			/* the separator is to be recognised */
	bool sep_line;		/* a first line as sep=; is no row */
	bool decimal_comma; /* -50,00 and 1.234,56 become -50.00 and 1234.56 */
	bool formulas;		/* =A1, +49301234 and 1E5 are what they are as contents; if false, texts */
	CsvDates dates;		/* 31.01.2024 or 1/31/2024 become 2024-01-31 */
} CsvOptions;

#define CSV_DATES_ARE	 "the order of dates is dmy or mdy"
#define CSV_SEPARATOR_IS "the separator is one ASCII character other than a line end, or tab"

/* Reads options; NULL stands for the default. Returns NULL, or what is wrong. */
extern const char *csv_options_parse(CsvOptions *options, const char *format, const char *separator, const char *quote,
									 bool lenient, const char *decimal_point, bool formulas, const char *date_order);

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
	bool field_due;	   /* a separator was read: a field follows even at the end */
	bool more;		   /* the text continues behind `end` */
	CsvDialect dialect;
	uint64_t forgiven, forgiven_line; /* fields that only a lenient reader takes, and the line of the first one */
} CsvReader;

typedef enum CsvKind
{
	CSV_PLAIN,
	CSV_QUOTED,
	CSV_LOOSE,	/* quoted, with text behind the closing quote */
	CSV_STRING, /* of JSON, and the next two */
	CSV_NUMBER,
	CSV_BOOLEAN
} CsvKind;

typedef struct CsvField
{
	const char *data; /* the bytes between the quotes, doubled quotes and escapes not yet undone */
	size_t len;
	CsvKind kind;
	int quote;
	uint32_t row, col;
	uint64_t line; /* in which it begins */
} CsvField;

extern void csv_reader_init(CsvReader *reader, const CsvDialect *dialect, const char *text, size_t len);
/* The place is also that of what is wrong. */
extern CsvStatus csv_read(CsvReader *reader, CsvField *field);
/* csv_json.c: the same for JSON Lines. */
extern CsvStatus csv_read_json(CsvReader *reader, CsvField *field);
extern size_t csv_unquote_json(const CsvField *field, char *to);
/* The field's text, quotes and escapes undone; `to` has room for field->len bytes. Returns its length. */
extern size_t csv_unquote(const CsvField *field, char *to);
/* The content of a cell that the field stands for; `to` has room for field->len + CSV_CONTENT_MORE bytes. Returns its
 * length. An apostrophe that an export would leave out belongs to the text, so the content has one more. */
#define CSV_CONTENT_MORE 3
extern size_t csv_content(const CsvOptions *options, const CsvField *field, char *to);
/* Whether the text is a date in this order. */
extern bool csv_is_date(CsvDates order, const char *text, size_t len);
/* Whether the field of a content leaves out the content's first apostrophe: the rest is the same text without it, as in
 * '007, but not in '12. */
extern bool csv_omits_apostrophe(const char *content, size_t len);

/* csv_guess.c: recognises the separator if it is not given, and passes over a first line as sep=;. The reader is at the
 * start, and has CSV_HEAD_BYTES, or the whole text, or all that the caller will read. */
extern void csv_guess(CsvReader *reader, const CsvOptions *options);

/* Whether a value has to be quoted between separators, and writing it: `to` has room for 2 * len + 2 bytes. Returns the
 * bytes written. Between commas, other separators are quoted too, and a value that begins with sep=: so commas are
 * recognised when the text is read. */
extern bool csv_needs_quotes(const char *data, size_t len, char separator);
extern size_t csv_write(char *to, const char *data, size_t len, char separator);

#endif
