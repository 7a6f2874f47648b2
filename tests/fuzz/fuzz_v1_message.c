/*
 * fuzz_v1_message.c - a message of protocol v1 on its way through the gateway, held to another JSON library.
 *
 * jansson, which is strict, says what the message means: what the gateway understands must be JSON to jansson, too, and
 * have the same row, column, content and info; what jansson finds to be a good message must be understood, except for
 * those that the gateway refuses on purpose (NUL, deep nesting). What is
 * told to the other clients must be JSON, and say the same.
 */
#include "ws/wire/v1_scan.h"

#include "common/edit_codec.h"
#include "support/json.h"

#include "common/utf8.h"
#include "ws/wire/v1_encode.h"

#include <jansson.h>
#include <math.h>
#include <strings.h>

#include "fuzz.h"

/* Numbers that jansson gives up on, and names that stand twice. */
static bool
fuzz_is_beyond(const json_error_t *error)
{
	enum json_error_code code = json_error_code(error);

	return code == json_error_numeric_overflow || code == json_error_duplicate_key ||
		   code == json_error_null_character || code == json_error_null_byte_in_key ||
		   code == json_error_stack_overflow;
}

/* What is told to the others about an edit. */
static void
fuzz_check_told(const V1Message *message)
{
	Buf name = {NULL, 0, 0}, frame = {NULL, 0, 0};
	json_error_t error;
	json_t *told, *body;

	buf_puts_json(&name, "a \"name\"\\");
	v1_put_modify(&frame, message->row, message->col, message->content, message->content_len, message->info,
				  message->info_len, &name);
	told = json_loadb(frame.data, frame.len, JSON_REJECT_DUPLICATES, &error);
	FUZZ_CHECK(told != NULL || fuzz_is_beyond(&error));
	if (told != NULL)
	{
		json_t *content;

		body = json_object_get(told, "body");
		content = json_object_get(body, "content");
		FUZZ_CHECK(json_integer_value(json_object_get(body, "row")) == message->row);
		FUZZ_CHECK(json_integer_value(json_object_get(body, "col")) == message->col);
		FUZZ_CHECK(json_string_length(content) == message->content_len &&
				   memcmp(json_string_value(content), message->content, message->content_len) == 0);
		FUZZ_CHECK(strcmp(json_string_value(json_object_get(body, "username")), "a \"name\"\\") == 0);
	}
	json_decref(told);
	buf_free(&name);
	buf_free(&frame);
}

/* The member of that name: as it is written, otherwise the last one that differs in case only. */
static json_t *
fuzz_member(const json_t *object, const char *name)
{
	json_t *found = json_object_get(object, name), *value;
	const char *key;

	if (found != NULL)
		return found;
	json_object_foreach((json_t *) object, key, value)
	{
		if (strcasecmp(key, name) == 0)
			found = value;
	}
	return found;
}

/* -1: not a number, or absent where it must not be; -2: a number that is no place in a sheet. */
static double
fuzz_place(const json_t *body, const char *name, bool required, double limit)
{
	const json_t *item = fuzz_member(body, name);
	double value;

	if (item == NULL)
		return required ? -1 : 0;
	if (!json_is_number(item))
		return -1;
	value = json_number_value(item);
	return value >= 0 && value < limit && value == floor(value) ? value : -2;
}

/* null clears. */
static const json_t *
fuzz_content(const json_t *body)
{
	const json_t *content = fuzz_member(body, "content");

	return json_is_null(content) ? NULL : content;
}

/* jansson's reading of the message. */
static V1Status
fuzz_read(const json_t *root, V1Message *message)
{
	static const char *const types[] = {[V1_ACQUIRE] = "acquire", [V1_RELEASE] = "release", [V1_MODIFY] = "modify"};
	const char *type = json_string_value(fuzz_member(root, "msgType"));
	const json_t *body = fuzz_member(root, "body");
	const json_t *content = fuzz_content(body);
	double row, col;
	int kind = 0;

	while (kind < 3 && (type == NULL || strcmp(type, types[kind]) != 0))
		kind++;
	row = fuzz_place(body, "row", kind == V1_MODIFY, SHEET_MAX_ROWS);
	col = fuzz_place(body, "col", kind == V1_MODIFY, SHEET_MAX_COLS);
	if (kind == 3 || !json_is_object(body) || row == -1 || col == -1 || (content != NULL && !json_is_string(content)))
		return V1_MALFORMED;
	message->type = (V1Type) kind;
	if (row < 0 || col < 0)
		return V1_RANGE;
	message->row = (uint32_t) row;
	message->col = (uint32_t) col;
	return V1_OK;
}

static void
fuzz_check_reading(const json_t *root, V1Status status, const V1Message *message)
{
	const json_t *body = fuzz_member(root, "body");
	const json_t *content = fuzz_content(body);
	const json_t *info = fuzz_member(body, "info");
	V1Message right = {.row = 0};

	FUZZ_CHECK(fuzz_read(root, &right) == status);
	if (status != V1_OK)
		return;
	FUZZ_CHECK(right.type == message->type && right.row == message->row && right.col == message->col);
	FUZZ_CHECK(message->content_len == (content != NULL ? json_string_length(content) : 0));
	FUZZ_CHECK(content == NULL || memcmp(message->content, json_string_value(content), message->content_len) == 0);
	FUZZ_CHECK((info == NULL) == (message->info == NULL));
	if (info != NULL)
	{
		json_t *again = json_loadb(message->info, message->info_len, JSON_DECODE_ANY, NULL);

		FUZZ_CHECK(again != NULL && json_equal(again, info));
		json_decref(again);
	}
}

/* Deep nesting. */
static bool
fuzz_is_refused_on_purpose(const char *text, size_t len)
{
	int brackets = 0;

	for (size_t i = 0; i < len; i++)
		brackets += text[i] == '[' || text[i] == '{';
	return brackets > JSON_MAX_DEPTH;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text, *scratch;
	V1Message message;
	json_error_t error;
	V1Status status;
	json_t *root;

	if (!utf8_check((const char *) data, size, NULL))
		return 0; /* the session refuses it before */
	text = fuzz_copy(data, size);
	scratch = malloc(V1_SCRATCH(size));
	status = v1_scan(text, size, scratch, &message);
	if (status == V1_OK)
	{
		FUZZ_CHECK(utf8_check(message.content, message.content_len, NULL));
		fuzz_check_told(&message);
	}
	root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL)
		FUZZ_CHECK(status == V1_MALFORMED || fuzz_is_beyond(&error));
	else if (status != V1_MALFORMED || !fuzz_is_refused_on_purpose(text, size))
		fuzz_check_reading(root, status, &message);
	json_decref(root);
	free(text);
	free(scratch);
	return 0;
}
