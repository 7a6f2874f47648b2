/*
 * v1_scan.h - reads one message of protocol v1; see v1_scan.c. Pure C.
 */
#ifndef V1_SCAN_H
#define V1_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define V1_SCRATCH(len) ((len) *2 + 128)

typedef enum V1Type
{
	V1_ACQUIRE,
	V1_RELEASE,
	V1_MODIFY
} V1Type;

typedef enum V1Status
{
	V1_OK,
	V1_MALFORMED, /* not JSON, not such a message, wrong types, NUL in a string */
	V1_RANGE	  /* row or column is negative, not whole or too large; both are 0 then */
} V1Status;

typedef struct V1Message
{
	V1Type type;
	uint32_t row; /* 0-based, below SHEET_MAX_ROWS */
	uint32_t col;
	char *content; /* unescaped UTF-8, in scratch; never NULL */
	size_t content_len;
	const char *info; /* its JSON text as it was sent; NULL when absent */
	size_t info_len;
} V1Message;

/* text[0..len) is well-formed UTF-8 and, with scratch of V1_SCRATCH(len) bytes, stays as long as the message is used.
 */
extern V1Status v1_scan(const char *text, size_t len, char *scratch, V1Message *message);

#endif
