/*
 * head.h - the head of an HTTP/1.1 request (RFC 9112): request line and fields, read strictly.
 *
 * Leniency would allow requests to be smuggled past a proxy that reads them differently. So lines end in CRLF, no field
 * is folded, no blank precedes a colon, and the fields that frame the body occur once. Pure C, without memory of its
 * own: the bytes of the head are cut into strings in place.
 */
#ifndef HEAD_H
#define HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD_FIELDS_MAX 100

typedef struct HeadField
{
	const char *name; /* lower case */
	const char *value;
} HeadField;

typedef struct Head
{
	const char *method;
	const char *target; /* path and query, not decoded, without scheme and host */
	const char *path;	/* decoded */
	const char *query;	/* after the "?", not decoded; "" if there is none */
	int minor;			/* of HTTP/1.x */
	HeadField fields[HEAD_FIELDS_MAX];
	int field_count;
	int64_t content_length; /* -1: absent */
	bool chunked;
	bool close; /* this is the last request of the connection */
	bool upgrade;
	bool expect_continue;
} Head;

typedef struct HeadError
{
	int status; /* 4xx or 5xx */
	const char *reason;
} HeadError;

/*
 * The length of the head, with its empty line; 0 if it is not complete; -1 if no head begins like this (control
 * characters, lines that end in a bare LF or CR). *seen: bytes that earlier calls have searched; 0 at first.
 */
extern long head_find_end(const char *bytes, size_t len, size_t *seen);
/* Reads a head of len bytes. The buffer must have 2 * len + 2 bytes: the decoded path is put after the head. False:
 * *error is the answer. */
extern bool head_parse(Head *head, char *bytes, size_t len, size_t url_max, HeadError *error);
/* NULL if the field is absent. name is in lower case. */
extern const char *head_field(const Head *head, const char *name);
/* Is the word an element of the list in the fields of this name? There may be several (RFC 9110 5.3). Ignores case. */
extern bool head_has_word(const Head *head, const char *name, const char *word);
/* An argument of the query, decoded ("+" is a blank); false if it is absent, malformed or longer than size - 1. */
extern bool head_query_arg(const char *query, const char *name, char *to, size_t size);
/*
 * An argument of a form (application/x-www-form-urlencoded, terminated by a NUL), decoded. Unlike one of a query it may
 * have any character but NUL. MALFORMED: also if it is longer than size - 1.
 */
typedef enum HeadArg
{
	HEAD_ABSENT,
	HEAD_MALFORMED,
	HEAD_FOUND
} HeadArg;
extern HeadArg head_form_arg(const char *form, const char *name, char *to, size_t size);
/* Has the query two arguments of one name, or more than 32? */
extern bool head_query_repeats(const char *query);
/* Does the query have an argument of this name? */
extern bool head_query_has(const char *query, const char *name);
/* How much a client wants a coding, from 0 (not at all) to 1000 (RFC 9110 12.5.3). accepted: Accept-Encoding or NULL.
 */
extern int head_quality(const char *accepted, const char *coding);

/* A character of a token (RFC 9110 5.6.2). */
extern bool head_is_token_char(char c);
/* The value of a hexadecimal digit; -1 for any other character. */
extern int head_hex_digit(char digit);
/* Returns the byte of an escape, whose digits are behind a %; -1: it is malformed. */
extern int head_escaped_byte(const char *digits, size_t len);

#endif
