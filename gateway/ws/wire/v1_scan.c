/*
 * v1_scan.c - reads one message of protocol v1.
 *
 * Two ways: a scanner for the order of keys in which clients write (msgType, body, row, col, content, info; no blanks),
 * which builds no tree and costs some tens of nanoseconds, and cJSON for everything else. The scanner gives up at the
 * first byte that it does not expect, so that both agree on every message that it accepts.
 */
#include "ws/wire/v1_scan.h"

#include "common/edit_codec.h"
#include "support/json_check.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#define SCAN_DEPTH_MAX 32

typedef struct Scan
{
	const char *pos;
	const char *end;
} Scan;

static inline bool
scan_literal(Scan *scan, const char *literal, size_t len)
{
	if ((size_t) (scan->end - scan->pos) < len || memcmp(scan->pos, literal, len) != 0)
		return false;
	scan->pos += len;
	return true;
}

#define SCAN(scan, literal) scan_literal(scan, literal, sizeof(literal) - 1)

/* A whole number of at most 9 digits without leading zeros. */
static inline bool
scan_index(Scan *scan, uint32_t *value)
{
	const char *from = scan->pos;
	uint32_t result = 0;

	while (scan->pos < scan->end && *scan->pos >= '0' && *scan->pos <= '9' && scan->pos - from < 9)
		result = result * 10 + (uint32_t) (*scan->pos++ - '0');
	*value = result;
	return scan->pos > from && scan->pos < scan->end && (*scan->pos == ',' || *scan->pos == '}') &&
		   (*from != '0' || scan->pos - from == 1);
}

/* The character behind a backslash; -1: leave it to cJSON (\u, and errors). */
static inline int
scan_unescape(char escape)
{
	switch (escape)
	{
		case '"':
		case '\\':
		case '/':
			return escape;
		case 'n':
			return '\n';
		case 't':
			return '\t';
		case 'r':
			return '\r';
		case 'b':
			return '\b';
		case 'f':
			return '\f';
		default:
			return -1;
	}
}

/* A string, unescaped into `to` (NULL: skipped). */
static inline bool
scan_string(Scan *scan, char *to, size_t *len)
{
	size_t written = 0;

	if (scan->pos == scan->end || *scan->pos != '"')
		return false;
	for (scan->pos++; scan->pos < scan->end; scan->pos++)
	{
		unsigned char byte = (unsigned char) *scan->pos;
		int plain = byte;

		if (byte == '"')
		{
			scan->pos++;
			if (to != NULL)
				to[written] = '\0';
			*len = written;
			return true;
		}
		if (byte < 0x20)
			return false;
		if (byte == '\\' && (++scan->pos == scan->end || (plain = scan_unescape(*scan->pos)) < 0))
			return false;
		if (to != NULL)
			to[written] = (char) plain;
		written++;
	}
	return false;
}

/* A number as JSON writes it, without exponents: those are left to cJSON. */
static bool
scan_number(Scan *scan)
{
	const char *from;

	(void) SCAN(scan, "-");
	from = scan->pos;
	while (scan->pos < scan->end && *scan->pos >= '0' && *scan->pos <= '9')
		scan->pos++;
	if (scan->pos == from || (*from == '0' && scan->pos - from > 1))
		return false;
	if (!SCAN(scan, "."))
		return true;
	from = scan->pos;
	while (scan->pos < scan->end && *scan->pos >= '0' && *scan->pos <= '9')
		scan->pos++;
	return scan->pos > from;
}

static bool scan_value(Scan *scan, int depth);

/* Members up to the closing bracket; the opening one has been read. */
static bool
scan_members(Scan *scan, int depth, bool object)
{
	size_t len;

	if (scan->pos < scan->end && *scan->pos == (object ? '}' : ']'))
	{
		scan->pos++;
		return true;
	}
	do
	{
		if (object && (!scan_string(scan, NULL, &len) || !SCAN(scan, ":")))
			return false;
		if (!scan_value(scan, depth + 1))
			return false;
	} while (SCAN(scan, ","));
	return scan_literal(scan, object ? "}" : "]", 1);
}

/* Any JSON value without blanks; what is unusual is left to cJSON. */
static bool
scan_value(Scan *scan, int depth)
{
	size_t len;

	if (scan->pos == scan->end || depth > SCAN_DEPTH_MAX)
		return false;
	switch (*scan->pos)
	{
		case '"':
			return scan_string(scan, NULL, &len);
		case '{':
			scan->pos++;
			return scan_members(scan, depth, true);
		case '[':
			scan->pos++;
			return scan_members(scan, depth, false);
		case 'n':
			return SCAN(scan, "null");
		case 't':
			return SCAN(scan, "true");
		case 'f':
			return SCAN(scan, "false");
		default:
			return scan_number(scan);
	}
}

static bool
v1_scan_fast(const char *text, size_t len, char *scratch, V1Message *message)
{
	Scan scan = {text, text + len};

	if (!SCAN(&scan, "{\"msgType\":\""))
		return false;
	if (SCAN(&scan, "modify\""))
		message->type = V1_MODIFY;
	else if (SCAN(&scan, "acquire\""))
		message->type = V1_ACQUIRE;
	else if (SCAN(&scan, "release\""))
		message->type = V1_RELEASE;
	else
		return false;
	if (!SCAN(&scan, ",\"body\":{\"row\":") || !scan_index(&scan, &message->row) || !SCAN(&scan, ",\"col\":") ||
		!scan_index(&scan, &message->col))
		return false;
	if (SCAN(&scan, ",\"content\":"))
	{
		if (!scan_string(&scan, scratch, &message->content_len))
			return false;
		if (SCAN(&scan, ",\"info\":"))
		{
			message->info = scan.pos;
			if (!scan_value(&scan, 0))
				return false;
			message->info_len = (size_t) (scan.pos - message->info);
		}
	}
	return SCAN(&scan, "}}") && scan.pos == scan.end && message->row < SHEET_MAX_ROWS && message->col < SHEET_MAX_COLS;
}

/* ---- everything else: cJSON ---- */

/*
 * The member of that name, and its place among the members: names are matched without regard to case, as Go does, but
 * one that is written in the same way wins; of several the last one counts. NULL when there is none.
 */
static const cJSON *
v1_member(const cJSON *object, const char *name, int *place)
{
	const cJSON *found = NULL, *item;
	bool exact = false;
	int at = 0;

	if (!cJSON_IsObject(object))
		return NULL;
	cJSON_ArrayForEach(item, object)
	{
		bool same = strcmp(item->string, name) == 0;

		if (same || (!exact && strcasecmp(item->string, name) == 0))
		{
			found = item;
			exact = same;
			*place = at;
		}
		at++;
	}
	return found;
}

/* A row or column; required says whether it may be absent, which means 0. */
static V1Status
v1_index(const cJSON *body, const char *key, bool required, double limit, uint32_t *value)
{
	int unused;
	const cJSON *item = v1_member(body, key, &unused);

	*value = 0;
	if (item == NULL)
		return required ? V1_MALFORMED : V1_OK;
	if (!cJSON_IsNumber(item))
		return V1_MALFORMED;
	if (!(item->valuedouble >= 0 && item->valuedouble < limit) || item->valuedouble != floor(item->valuedouble))
		return V1_RANGE;
	*value = (uint32_t) item->valuedouble;
	return V1_OK;
}

static const char *
raw_skip_blanks(const char *pos, const char *end)
{
	while (pos < end && (*pos == ' ' || *pos == '\t' || *pos == '\r' || *pos == '\n'))
		pos++;
	return pos;
}

/* Behind the string that begins at pos. */
static const char *
raw_skip_string(const char *pos, const char *end)
{
	for (pos++; pos < end && *pos != '"'; pos++)
		pos += *pos == '\\';
	return pos < end ? pos + 1 : end;
}

/* Behind the value that begins at pos. */
static const char *
raw_skip_value(const char *pos, const char *end)
{
	int depth = 0;

	do
	{
		if (pos >= end)
			return end;
		if (*pos == '"')
			pos = raw_skip_string(pos, end);
		else if (depth == 0 && *pos != '{' && *pos != '[')
		{
			while (pos < end && memchr(",]} \t\r\n", *pos, 7) == NULL)
				pos++;
		}
		else
		{
			depth += (*pos == '{' || *pos == '[') - (*pos == '}' || *pos == ']');
			pos++;
		}
	} while (depth > 0);
	return pos;
}

/* The text of the value of an object's member, by its place. cJSON has accepted the object, and keeps no text of it. */
static void
raw_member(const char *pos, const char *end, int place, const char **value, size_t *len)
{
	for (int at = 0; at <= place; at++)
	{
		pos = raw_skip_blanks(pos, end) + 1; /* the brace, or the comma */
		pos = raw_skip_string(raw_skip_blanks(pos, end), end);
		*value = raw_skip_blanks(raw_skip_blanks(pos, end) + 1, end);
		pos = raw_skip_value(*value, end);
		*len = (size_t) (pos - *value);
	}
}

static V1Status
v1_read_body(const cJSON *body, char *scratch, V1Message *message)
{
	int unused;
	const cJSON *content = v1_member(body, "content", &unused);
	bool required = message->type == V1_MODIFY;
	V1Status row = v1_index(body, "row", required, SHEET_MAX_ROWS, &message->row);
	V1Status col = v1_index(body, "col", required, SHEET_MAX_COLS, &message->col);

	if (cJSON_IsNull(content))
		content = NULL; /* clears the cell */
	if (row == V1_MALFORMED || col == V1_MALFORMED || (content != NULL && !cJSON_IsString(content)))
		return V1_MALFORMED;
	if (row == V1_RANGE || col == V1_RANGE)
	{
		message->row = message->col = 0;
		return V1_RANGE;
	}
	if (content != NULL)
	{
		message->content_len = strlen(content->valuestring);
		memcpy(scratch, content->valuestring, message->content_len + 1);
	}
	return V1_OK;
}

static bool
v1_read_type(const cJSON *type, V1Type *to)
{
	static const char *const names[] = {[V1_ACQUIRE] = "acquire", [V1_RELEASE] = "release", [V1_MODIFY] = "modify"};

	if (!cJSON_IsString(type))
		return false;
	for (int i = V1_ACQUIRE; i <= V1_MODIFY; i++)
	{
		if (strcmp(type->valuestring, names[i]) == 0)
		{
			*to = (V1Type) i;
			return true;
		}
	}
	return false;
}

static V1Status
v1_scan_tree(const char *text, size_t len, char *scratch, V1Message *message)
{
	V1Status status = V1_MALFORMED;
	int body_place = 0, place = 0;
	const char *raw;
	size_t raw_len;
	const cJSON *body;
	cJSON *root;

	/* info goes to other clients as it is: it must be JSON for them, too, and cJSON takes more than that. */
	if (json_has_nul(text, len) || !json_check(text, len))
		return V1_MALFORMED;
	root = cJSON_ParseWithLength(text, len);
	if (root == NULL)
		return V1_MALFORMED;
	body = v1_member(root, "body", &body_place);
	if (cJSON_IsObject(body) && v1_read_type(v1_member(root, "msgType", &place), &message->type))
		status = v1_read_body(body, scratch, message);
	if (status == V1_OK && v1_member(body, "info", &place) != NULL)
	{
		/* As it was sent. */
		raw_member(text, text + len, body_place, &raw, &raw_len);
		raw_member(raw, raw + raw_len, place, &message->info, &message->info_len);
	}
	cJSON_Delete(root);
	return status;
}

V1Status
v1_scan(const char *text, size_t len, char *scratch, V1Message *message)
{
	*message = (V1Message){.content = scratch};
	scratch[0] = '\0';
	if (v1_scan_fast(text, len, scratch, message))
		return V1_OK;
	*message = (V1Message){.content = scratch};
	scratch[0] = '\0';
	return v1_scan_tree(text, len, scratch, message);
}
