/*
 * v1_scan.c - reads one message of protocol v1: {"msgType":"...","body":{"row":1,"col":2,"content":"...","info":...}}.
 *
 * The text is read once, member by member. Names are matched as the first implementation did: without regard to case,
 * but a name that is written exactly takes precedence; of several equal ones the last counts. So a value of a wrong
 * type makes the message malformed only if no later one replaces it.
 */
#include "ws/wire/v1_scan.h"

#include "common/edit_codec.h"
#include "support/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct Scan
{
	JsonInput input;
	V1Message *message;
	char *content; /* space for the content */
	char *text;	   /* space for any other string, or a number, with a terminator */
	V1Status type, body, row, col, text_status;
	bool has_row, has_col;
} Scan;

typedef struct ScanName
{
	const char *text;
	size_t len;
} ScanName;

#define NAME(text)                                                                                                     \
	{                                                                                                                  \
		text, sizeof(text) - 1                                                                                         \
	}

typedef bool (*ScanMember)(Scan *scan, int member);

/* The index of the name that is read, or -1 for an unknown name; `exact` if its case is the same as well. -2:
 * malformed. */
static int
scan_name(Scan *scan, const ScanName *names, int count, bool *exact)
{
	JsonInput *input = &scan->input;
	size_t left, len;

	json_skip_blanks(input);
	left = (size_t) (input->end - input->pos);
	for (int i = 0; i < count; i++)
	{
		len = names[i].len;
		if (left > len + 1 && *input->pos == '"' && input->pos[1] == *names[i].text && input->pos[len + 1] == '"' &&
			memcmp(input->pos + 1, names[i].text, len) == 0)
		{
			input->pos += len + 2;
			*exact = true;
			return i;
		}
	}
	*exact = false;
	if (!json_read_string(input, scan->text, &len))
		return -2;
	scan->text[len] = '\0';
	for (int i = 0; i < count; i++)
	{
		*exact = strcmp(names[i].text, scan->text) == 0;
		if (*exact || strcasecmp(names[i].text, scan->text) == 0)
			return i;
	}
	return -1;
}

/* Reads an object, and its known members by read_member. */
static bool
scan_object(Scan *scan, const ScanName *names, int count, ScanMember read_member)
{
	JsonInput *input = &scan->input;
	unsigned exact_seen = 0;

	if (!json_take(input, '{'))
		return false;
	if (json_take(input, '}'))
		return true;
	do
	{
		bool exact;
		int member = scan_name(scan, names, count, &exact);

		if (member == -2 || !json_take(input, ':'))
			return false;
		if (member < 0 || (!exact && (exact_seen & 1u << member)))
		{
			if (!json_skip_value(input))
				return false;
			continue;
		}
		exact_seen |= exact ? 1u << member : 0;
		json_skip_blanks(input);
		if (input->pos == input->end || !read_member(scan, member))
			return false;
	} while (json_take(input, ','));
	return json_take(input, '}');
}

/* Reads a row or column. False: not JSON. */
static bool
scan_index(Scan *scan, uint32_t limit, uint32_t *value, V1Status *status)
{
	JsonInput *input = &scan->input;
	const char *from = input->pos;
	uint64_t number;
	double real;

	if (json_read_number(input, &number))
	{
		*value = (uint32_t) number;
		*status = number < limit ? V1_OK : V1_RANGE;
		return true;
	}
	input->pos = from;
	if (!json_skip_value(input))
		return false;
	*status = V1_MALFORMED;
	if (*from != '-' && (*from < '0' || *from > '9'))
		return true;
	memcpy(scan->text, from, (size_t) (input->pos - from));
	scan->text[input->pos - from] = '\0';
	real = strtod(scan->text, NULL);
	*status = real >= 0 && real < limit && real == floor(real) ? V1_OK : V1_RANGE;
	*value = *status == V1_OK ? (uint32_t) real : 0;
	return true;
}

static bool
scan_content(Scan *scan)
{
	JsonInput *input = &scan->input;
	bool is_string = *input->pos == '"';

	scan->message->content_len = 0;
	scan->text_status = is_string || *input->pos == 'n' ? V1_OK : V1_MALFORMED; /* null clears the cell */
	return is_string ? json_read_string(input, scan->content, &scan->message->content_len) : json_skip_value(input);
}

static bool
scan_body_member(Scan *scan, int member)
{
	V1Message *message = scan->message;

	switch (member)
	{
		case 0:
			scan->has_row = true;
			return scan_index(scan, SHEET_MAX_ROWS, &message->row, &scan->row);
		case 1:
			scan->has_col = true;
			return scan_index(scan, SHEET_MAX_COLS, &message->col, &scan->col);
		case 2:
			return scan_content(scan);
		default:
			message->info = scan->input.pos; /* other clients receive it as it was sent */
			if (!json_skip_value(&scan->input))
				return false;
			message->info_len = (size_t) (scan->input.pos - message->info);
			return true;
	}
}

static bool
scan_type(Scan *scan)
{
	static const ScanName names[] = {
		[V1_ACQUIRE] = NAME("acquire"), [V1_RELEASE] = NAME("release"), [V1_MODIFY] = NAME("modify")};
	size_t len;

	scan->type = V1_MALFORMED;
	if (*scan->input.pos != '"')
		return json_skip_value(&scan->input);
	if (!json_read_string(&scan->input, scan->text, &len))
		return false;
	for (int i = V1_ACQUIRE; i <= V1_MODIFY; i++)
	{
		if (names[i].len == len && memcmp(scan->text, names[i].text, len) == 0)
		{
			scan->message->type = (V1Type) i;
			scan->type = V1_OK;
		}
	}
	return true;
}

static bool
scan_root_member(Scan *scan, int member)
{
	static const ScanName names[] = {NAME("row"), NAME("col"), NAME("content"), NAME("info")};

	if (member == 0)
		return scan_type(scan);
	*scan->message = (V1Message){.type = scan->message->type, .content = scan->content};
	scan->row = scan->col = scan->text_status = V1_OK;
	scan->has_row = scan->has_col = false;
	scan->body = *scan->input.pos == '{' ? V1_OK : V1_MALFORMED;
	if (scan->body != V1_OK)
		return json_skip_value(&scan->input);
	return scan_object(scan, names, 4, scan_body_member);
}

V1Status
v1_scan(const char *text, size_t len, char *scratch, V1Message *message)
{
	static const ScanName names[] = {NAME("msgType"), NAME("body")};
	Scan scan = {.input = {text, text + len}, .message = message, .content = scratch, .text = scratch + len + 64};

	*message = (V1Message){.content = scratch};
	scan.type = scan.body = V1_MALFORMED;
	if (!scan_object(&scan, names, 2, scan_root_member))
		return V1_MALFORMED;
	json_skip_blanks(&scan.input);
	scratch[message->content_len] = '\0';
	if (scan.input.pos != scan.input.end || scan.type != V1_OK || scan.body != V1_OK || scan.row == V1_MALFORMED ||
		scan.col == V1_MALFORMED || scan.text_status != V1_OK)
		return V1_MALFORMED;
	if (message->type == V1_MODIFY && !(scan.has_row && scan.has_col))
		return V1_MALFORMED;
	if (scan.row == V1_OK && scan.col == V1_OK)
		return V1_OK;
	message->row = message->col = 0;
	return V1_RANGE;
}
