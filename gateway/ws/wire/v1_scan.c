/*
 * v1_scan.c - reads one message of protocol v1.
 *
 * json_check() accepts the text first, so everything after it walks over well-formed JSON, without a tree. Names match
 * without regard to case, as in Go; an exact match wins, and of several the last one.
 */
#include "ws/wire/v1_scan.h"

#include "common/edit_codec.h"
#include "support/json_check.h"
#include "ws/wire/v2_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A member of an object that is looked for. */
typedef struct Member
{
	const char *name;
	JsonInput value; /* its text; pos NULL: absent */
	bool exact;
} Member;

/* Steps over the value that begins at pos. */
static void
scan_value(JsonInput *input)
{
	int depth = 0;

	do
	{
		char byte = *input->pos++;

		depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
		if (byte == '"')
		{
			for (; *input->pos != '"'; input->pos++)
				input->pos += *input->pos == '\\';
			input->pos++;
		}
		else if (depth == 0 && byte != '}' && byte != ']')
		{
			while (input->pos < input->end && memchr(",]} \t\r\n", *input->pos, 7) == NULL)
				input->pos++;
		}
	} while (depth > 0);
}

/* Finds n members of an object. `unescaped` has room for a name. Returns false if the value is no object. */
static bool
scan_members(JsonInput object, Member *members, int n, char *unescaped)
{
	size_t len;

	if (!json_take(&object, '{'))
		return false;
	while (json_read_string(&object, unescaped, &len))
	{
		JsonInput value;

		unescaped[len] = '\0';
		(void) json_take(&object, ':');
		json_skip_blanks(&object);
		value.pos = object.pos;
		scan_value(&object);
		value.end = object.pos;
		for (Member *member = members; member < members + n; member++)
		{
			bool exact = strcmp(unescaped, member->name) == 0;

			if (exact || (!member->exact && strcasecmp(unescaped, member->name) == 0))
			{
				member->value = value;
				member->exact = exact;
			}
		}
		(void) json_take(&object, ',');
	}
	return true;
}

/* A row or column; absent means 0 unless it is required. */
static V1Status
scan_index(const Member *member, bool required, double limit, char *copy, uint32_t *index)
{
	size_t len = (size_t) (member->value.end - member->value.pos);
	double value;

	if (member->value.pos == NULL)
		return required ? V1_MALFORMED : V1_OK;
	if (*member->value.pos != '-' && (*member->value.pos < '0' || *member->value.pos > '9'))
		return V1_MALFORMED;
	memcpy(copy, member->value.pos, len);
	copy[len] = '\0';
	value = strtod(copy, NULL);
	if (!(value >= 0 && value < limit) || value != floor(value))
		return V1_RANGE;
	*index = (uint32_t) value;
	return V1_OK;
}

static bool
scan_type(Member *member, char *unescaped, V1Type *type)
{
	static const char *const names[] = {[V1_ACQUIRE] = "acquire", [V1_RELEASE] = "release", [V1_MODIFY] = "modify"};
	size_t len;

	if (member->value.pos == NULL || !json_read_string(&member->value, unescaped, &len))
		return false;
	unescaped[len] = '\0';
	for (*type = V1_ACQUIRE; *type <= V1_MODIFY; (*type)++)
	{
		if (strcmp(unescaped, names[*type]) == 0)
			return true;
	}
	return false;
}

V1Status
v1_scan(const char *text, size_t len, char *scratch, V1Message *message)
{
	enum
	{
		TYPE,
		BODY
	};
	enum
	{
		ROW,
		COL,
		CONTENT,
		INFO
	};
	Member root[] = {{.name = "msgType"}, {.name = "body"}};
	Member body[] = {{.name = "row"}, {.name = "col"}, {.name = "content"}, {.name = "info"}};
	JsonInput *content = &body[CONTENT].value;
	char *copy = scratch + len + 1; /* scratch begins with the content */
	V1Status row, col;
	bool required;

	*message = (V1Message){.content = scratch};
	scratch[0] = '\0';
	if (!json_check(text, len) || json_has_nul(text, len) ||
		!scan_members((JsonInput){text, text + len}, root, 2, copy) || !scan_type(&root[TYPE], copy, &message->type) ||
		root[BODY].value.pos == NULL || !scan_members(root[BODY].value, body, 4, copy))
		return V1_MALFORMED;
	required = message->type == V1_MODIFY;
	row = scan_index(&body[ROW], required, SHEET_MAX_ROWS, copy, &message->row);
	col = scan_index(&body[COL], required, SHEET_MAX_COLS, copy, &message->col);
	/* content null clears the cell */
	if (row == V1_MALFORMED || col == V1_MALFORMED ||
		(content->pos != NULL && !json_take_null(content) &&
		 !json_read_string(content, scratch, &message->content_len)))
		return V1_MALFORMED;
	scratch[message->content_len] = '\0';
	if (row == V1_RANGE || col == V1_RANGE)
	{
		message->row = message->col = 0;
		return V1_RANGE;
	}
	message->info = body[INFO].value.pos;
	message->info_len = message->info != NULL ? (size_t) (body[INFO].value.end - message->info) : 0;
	return V1_OK;
}
