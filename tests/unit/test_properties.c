/*
 * test_properties.c - properties of a sheet: tests/vectors/properties.json, whose messages, sets and late edits the
 * page can test as well; a set against a plain model, in which each line is itself wherever it lies; late edits against
 * the set; and damaged bytes.
 */
#include "common/properties.h"
#include "ws/edit/lines.h"
#include "ws/wire/v2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edit_vectors.h"
#include "random.h"
#include "tap.h"

#define VECTORS "../vectors/properties.json"

static void *
resize(void *ctx, void *ptr, size_t size)
{
	if (size > 0)
		return realloc(ptr, size);
	free(ptr);
	return NULL;
}

/* ---- the vectors ---- */

static const char *
text_of(const cJSON *vector, const char *name)
{
	const cJSON *item = cJSON_GetObjectItem(vector, name);

	return item != NULL ? item->valuestring : NULL;
}

static Buf
hex_of(const void *bytes, size_t len)
{
	Buf hex = {NULL, 0, 0};

	for (size_t i = 0; i < len; i++)
		buf_printf(&hex, "%02x", ((const uint8_t *) bytes)[i]);
	buf_put(&hex, "", 1);
	return hex;
}

static Buf
bytes_of(const char *hex)
{
	Buf bytes = {NULL, 0, 0};
	unsigned byte;

	for (; sscanf(hex, "%2x", &byte) == 1 && hex[1] != '\0'; hex += 2)
		buf_put(&bytes, &(uint8_t){(uint8_t) byte}, 1);
	return bytes;
}

typedef struct Message
{
	char *scratch;
	const char *wrong;
	V2Message message;
} Message;

static Message
read_json(const char *json)
{
	Message read = {.scratch = malloc(V2_SCRATCH(strlen(json)))};

	read.wrong = v2_read_json(json, strlen(json), read.scratch, &read.message);
	return read;
}

static void
check_client(const cJSON *vector)
{
	Message read = read_json(text_of(vector, "json"));
	const V2Message *message = &read.message;
	Buf binary = bytes_of(text_of(vector, "hex"));
	Buf written = {NULL, 0, 0}, json = {NULL, 0, 0};
	V2Message again;
	const char *wrong = v2_read_binary(binary.data, binary.len, &again);

	TAP_OK(read.wrong == NULL && message->reason == V2_REASON_NONE && message->properties > 0, "%s: read",
		   text_of(vector, "name"));
	TAP_OK(wrong == NULL && again.n == message->n && again.base == message->base && again.count == message->count &&
			   again.properties == message->properties && again.edits_len == message->edits_len &&
			   memcmp(again.edits, message->edits, again.edits_len) == 0,
		   "%s: the binary form says the same", text_of(vector, "name"));
	written = hex_of(message->edits, message->edits_len);
	v2_put_edits(&json, V2_JSON, 1, false, message->edits, message->edits_len, message->count);
	if (wrong != NULL)
		printf("# %s\n# %s\n# %.*s\n", wrong, written.data, (int) json.len, json.data);
	free(read.scratch);
	buf_free(&binary);
	buf_free(&written);
	buf_free(&json);
}

static void
check_refused(const cJSON *vector)
{
	Message read = read_json(text_of(vector, "json"));

	TAP_OK(read.wrong == NULL && strcmp(v2_reason_names[read.message.reason], text_of(vector, "reason")) == 0,
		   "%s: refused with %s", text_of(vector, "name"), text_of(vector, "reason"));
	free(read.scratch);
}

static void
check_malformed(const cJSON *vector)
{
	const char *json = text_of(vector, "json");
	Buf binary = bytes_of(json == NULL ? text_of(vector, "hex") : "");
	V2Message message;

	if (json != NULL)
	{
		Message read = read_json(json);

		TAP_OK(read.wrong != NULL, "malformed: %s", text_of(vector, "name"));
		free(read.scratch);
	}
	else
	{
		const char *wrong = v2_read_binary(binary.data, binary.len, &message);

		TAP_OK(wrong != NULL && strcmp(wrong, "an edit is malformed") == 0, "malformed: %s: %s",
			   text_of(vector, "name"), wrong != NULL ? wrong : "read");
	}
	buf_free(&binary);
}

/* ---- lists of edits ---- */

static Message
read_edits(const cJSON *list)
{
	char *json = cJSON_PrintUnformatted(list);
	Buf text = {NULL, 0, 0};
	Message read;

	buf_printf(&text, "{\"t\":\"op\",\"n\":1,\"edits\":%s}", json);
	buf_put(&text, "", 1);
	read = read_json(text.data);
	/* The values of the edits point into the text's copy in scratch. */
	free(json);
	buf_free(&text);
	return read;
}

static EditReader
reader_of(const Message *read)
{
	EditReader reader;

	edit_reader_init_edits(&reader, read->message.edits, read->message.edits_len, read->message.count);
	return reader;
}

static void
output_put_set(Output *output, const Properties *set)
{
	for (uint32_t i = 0; i < set->count; i++)
	{
		char text[PROPERTY_TEXT_MAX];
		Edit edit = property_edit(properties_get(set, i), text);

		edit.uid = 0;
		output_put(output, &edit);
	}
}

static void
check_output(const cJSON *vector, Output *output)
{
	Message expected = read_edits(cJSON_GetObjectItem(vector, "result"));
	Buf got = {NULL, 0, 0};

	v2_put_edits(&got, V2_JSON, 1, false, output->bytes.data, output->bytes.len, output->count);
	TAP_OK(output->bytes.len == expected.message.edits_len &&
			   memcmp(output->bytes.data, expected.message.edits, output->bytes.len) == 0,
		   "%s: %.*s", text_of(vector, "name"), (int) got.len, got.data);
	buf_free(&got);
	buf_free(&output->bytes);
	free(expected.scratch);
}

static void
check_set(const cJSON *vector)
{
	Message edits = read_edits(cJSON_GetObjectItem(vector, "edits"));
	EditReader reader = reader_of(&edits);
	Output output = {.writer = {.first = true}};
	uint64_t seq = 0;
	Properties set;
	Edit edit;

	properties_init(&set, resize, NULL);
	while (edit_read(&reader, &edit) == EDIT_OK)
		properties_apply(&set, &edit, ++seq);
	output_put_set(&output, &set);
	check_output(vector, &output);
	properties_free(&set);
	free(edits.scratch);
}

static void
check_late(const cJSON *vector)
{
	Message changes = read_edits(cJSON_GetObjectItem(vector, "changes"));
	Message edits = read_edits(cJSON_GetObjectItem(vector, "edits"));
	EditReader reader = reader_of(&changes);
	Output output = {.writer = {.first = true}};
	LineChange change;
	LinesView view;
	Edit edit;

	lines_view_init(&view);
	while (edit_read(&reader, &edit) == EDIT_OK && line_change_of(&edit, &change))
		lines_view_change(&view, &change);
	reader = reader_of(&edits);
	while (edit_read(&reader, &edit) == EDIT_OK)
		lines_transform(&view, &edit, output_put, &output);
	check_output(vector, &output);
	lines_view_free(&view);
	free(changes.scratch);
	free(edits.scratch);
}

/* Edits of the gateway: those of "edits" have a uid before the rest, which the client's form does not have. */
static void
check_server(const cJSON *vector)
{
	const char *json = text_of(vector, "json"), *hex = text_of(vector, "hex");
	const cJSON *message = cJSON_Parse(json);
	bool committed = strcmp(text_of(message, "t"), "edits") == 0;
	const cJSON *list = cJSON_GetObjectItem(message, committed ? "edits" : "properties"), *item;
	Output output = {.writer = {.first = true}};
	Buf got[V2_ENCODINGS] = {0};
	Buf got_hex;
	uint64_t seq = (uint64_t) cJSON_GetObjectItem(vector, "seq")->valuedouble;

	cJSON_ArrayForEach(item, list)
	{
		cJSON *own = cJSON_Duplicate(item, true), *one = cJSON_CreateArray();
		uint64_t uid = 0;
		Message read;
		EditReader reader;
		Edit edit;

		if (committed)
		{
			uid = (uint64_t) cJSON_GetArrayItem(own, 0)->valuedouble;
			cJSON_DeleteItemFromArray(own, 0);
		}
		cJSON_AddItemToArray(one, own);
		read = read_edits(one);
		reader = reader_of(&read);
		if (edit_read(&reader, &edit) != EDIT_OK)
			abort();
		edit.uid = uid;
		output_put(&output, &edit);
		free(read.scratch);
		cJSON_Delete(one);
	}
	for (V2Encoding encoding = 0; encoding < V2_ENCODINGS; encoding++)
		(committed ? v2_put_edits : v2_put_properties)(&got[encoding], encoding, seq, false, output.bytes.data,
													   output.bytes.len, output.count);
	TAP_OK(got[V2_JSON].len == strlen(json) && memcmp(got[V2_JSON].data, json, strlen(json)) == 0, "%s in JSON: %.*s",
		   text_of(vector, "name"), (int) got[V2_JSON].len, got[V2_JSON].data);
	got_hex = hex_of(got[V2_BINARY].data, got[V2_BINARY].len);
	TAP_OK(strcmp(got_hex.data, hex) == 0, "%s in the binary form: %s", text_of(vector, "name"), got_hex.data);
	buf_free(&got_hex);
	buf_free(&got[V2_JSON]);
	buf_free(&got[V2_BINARY]);
	buf_free(&output.bytes);
	cJSON_Delete((cJSON *) message);
}

/* ---- a plain model: lines that have names, and properties that have lines ---- */

#define MODEL_LINES 30
#define MODEL_SIZE	4000
#define MODEL_PROPS 400

typedef struct ModelMap
{
	int lines[MODEL_SIZE]; /* names, in their order */
	int count;
} ModelMap;

typedef struct ModelProperty
{
	bool all[2];
	bool has[2][MODEL_SIZE]; /* by name */
	char key;
	int value;
} ModelProperty;

static ModelMap model_maps[2];
static ModelProperty *model[MODEL_PROPS];
static int model_count, model_next;

static void
model_reset(void)
{
	model_next = 0;
	for (int map = 0; map < 2; map++)
	{
		model_maps[map].count = MODEL_LINES;
		for (int i = 0; i < MODEL_LINES; i++)
			model_maps[map].lines[i] = model_next++;
	}
	while (model_count > 0)
		free(model[--model_count]);
}

/* The first and the last line; false if there is none. */
static bool
model_bounds(const ModelProperty *property, int map, uint32_t *first, uint32_t *last)
{
	bool any = false;

	*first = 0;
	*last = map == 0 ? SHEET_MAX_ROWS - 1 : SHEET_MAX_COLS - 1;
	for (int i = 0; i < model_maps[map].count && !property->all[map]; i++)
	{
		if (!property->has[map][model_maps[map].lines[i]])
			continue;
		*first = any ? *first : (uint32_t) i;
		*last = (uint32_t) i;
		any = true;
	}
	return any || property->all[map];
}

static bool
model_target(const ModelProperty *property, PropertyTarget *target)
{
	return model_bounds(property, 0, &target->row0, &target->row1) &&
		   model_bounds(property, 1, &target->col0, &target->col1);
}

static void
model_remove(int i)
{
	free(model[i]);
	model[i] = model[--model_count];
}

static bool
model_same(const PropertyTarget *a, const PropertyTarget *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static bool
model_within(const PropertyTarget *a, const PropertyTarget *b)
{
	return a->row0 >= b->row0 && a->row1 <= b->row1 && a->col0 >= b->col0 && a->col1 <= b->col1;
}

static void
model_put(const PropertyTarget *target, char key, int value)
{
	ModelProperty *property;

	for (int i = 0; i < model_count; i++)
	{
		PropertyTarget other;

		if (model[i]->key == key && model_target(model[i], &other) && model_same(&other, target))
		{
			model_remove(i);
			break;
		}
	}
	if (value == 0)
		return;
	property = model[model_count++] = calloc(1, sizeof(ModelProperty));
	property->key = key;
	property->value = value;
	property->all[0] = property_has_all_rows(target);
	property->all[1] = property_has_all_cols(target);
	for (uint32_t i = target->row0; i <= target->row1 && !property->all[0]; i++)
		property->has[0][model_maps[0].lines[i]] = true;
	for (uint32_t i = target->col0; i <= target->col1 && !property->all[1]; i++)
		property->has[1][model_maps[1].lines[i]] = true;
}

static uint64_t
model_cells(const PropertyTarget *target)
{
	return (uint64_t) (target->row1 - target->row0 + 1) * (target->col1 - target->col0 + 1);
}

static void
model_change(const LineChange *change)
{
	int map = change->rows ? 0 : 1;
	ModelMap *lines = &model_maps[map];
	uint64_t cells[MODEL_PROPS] = {0};
	PropertyTarget target, other;

	for (int i = 0; i < model_count; i++)
	{
		model_target(model[i], &target);
		cells[i] = model_cells(&target);
	}
	if (change->insert)
	{
		memmove(&lines->lines[change->at + change->n], &lines->lines[change->at],
				((size_t) lines->count - change->at) * sizeof(int));
		for (uint32_t i = 0; i < change->n; i++)
		{
			lines->lines[change->at + i] = model_next++;
			for (int p = 0; p < model_count; p++)
			{
				bool within = change->at > 0 && model[p]->has[map][lines->lines[change->at - 1]] &&
							  model[p]->has[map][lines->lines[change->at + change->n]];

				model[p]->has[map][lines->lines[change->at + i]] =
					i == 0 ? within : model[p]->has[map][lines->lines[change->at]];
			}
		}
		lines->count += (int) change->n;
	}
	else
	{
		memmove(&lines->lines[change->at], &lines->lines[change->at + change->n],
				((size_t) lines->count - change->at - change->n) * sizeof(int));
		lines->count -= (int) change->n;
	}
	for (int i = model_count - 1; i >= 0; i--)
	{
		bool gone = !model_target(model[i], &target);

		for (int j = 0; j < model_count && !gone; j++)
			gone = j != i && model[j]->key == model[i]->key && model_target(model[j], &other) &&
				   model_same(&target, &other) && cells[j] < cells[i];
		if (!gone)
			continue;
		model_remove(i);
		cells[i] = cells[model_count];
	}
}

static bool
model_agrees(const Properties *set)
{
	if ((int) set->count != model_count)
		return false;
	for (int i = 0; i < model_count; i++)
	{
		const Property *property;
		PropertyTarget target;

		model_target(model[i], &target);
		property = properties_find(set, &target, (EditText){&model[i]->key, 1});
		if (property == NULL || atoi(property->value.data) != model[i]->value)
			return false;
	}
	return true;
}

static PropertyTarget
random_target(void)
{
	PropertyTarget target = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	uint32_t kind = random_below(5);

	if (kind != 0 && kind != 1)
	{
		target.row0 = random_below((uint32_t) model_maps[0].count);
		target.row1 = target.row0 + random_below(4);
		if (target.row1 >= (uint32_t) model_maps[0].count)
			target.row1 = target.row0;
	}
	if (kind != 0 && kind != 2)
	{
		target.col0 = random_below((uint32_t) model_maps[1].count);
		target.col1 = target.col0 + random_below(4);
		if (target.col1 >= (uint32_t) model_maps[1].count)
			target.col1 = target.col0;
	}
	return target;
}

static LineChange
random_change(void)
{
	LineChange change = {.rows = random_below(2) == 0, .insert = random_below(2) == 0, .n = 1 + random_below(3)};
	uint32_t count = (uint32_t) model_maps[change.rows ? 0 : 1].count;

	change.insert = count < 10 || (count < 60 && change.insert);
	change.at = random_below(count - change.n);
	return change;
}

static bool
set_round_trip(const Properties *set)
{
	uint8_t *bytes = malloc(properties_encode_bound(set) + 1), *again;
	size_t len = properties_encode(set, bytes), len_again = 0;
	Properties copy;
	bool good;

	properties_init(&copy, resize, NULL);
	good = len <= properties_encode_bound(set) && properties_decode(&copy, bytes, len) && copy.bytes == set->bytes;
	again = malloc(properties_encode_bound(&copy) + 1);
	if (good)
		len_again = properties_encode(&copy, again);
	good = good && len_again == len && memcmp(bytes, again, len) == 0;
	properties_free(&copy);
	free(bytes);
	free(again);
	return good;
}

/* A property that is set before the changes lies where one does that is set late, by somebody who does not know of
 * them. What others have inserted belongs to the late one only between lines that are still there. */
static bool
late_agrees(void)
{
	PropertyTarget target = random_target();
	Property property = {.target = target, .key = {"k", 1}, .value = {"1", 1}};
	char text[PROPERTY_TEXT_MAX];
	Edit edit = property_edit(&property, text);
	Output output = {.writer = {.first = true}};
	Properties early, late;
	LinesView view;
	EditReader reader;
	Edit moved;
	bool good, inserted = false, deleted = false;

	properties_init(&early, resize, NULL);
	properties_init(&late, resize, NULL);
	lines_view_init(&view);
	properties_apply(&early, &edit, 1);
	for (uint32_t i = random_below(6); i > 0; i--)
	{
		LineChange change = random_change();
		char digits[LINE_CHANGE_TEXT];
		Edit structure;

		inserted |= change.insert;
		deleted |= !change.insert;
		structure = line_change_edit(&change, 0, digits);
		properties_apply(&early, &structure, 2);
		lines_view_change(&view, &change);
		model_change(&change);
	}
	lines_transform(&view, &edit, output_put, &output);
	edit_reader_init_edits(&reader, output.bytes.data, output.bytes.len, output.count);
	while (edit_read(&reader, &moved) == EDIT_OK)
		properties_apply(&late, &moved, 3);
	good = early.count <= 1 && late.count <= early.count;
	if (good && late.count == 1)
		good = model_within(&properties_get(&late, 0)->target, &properties_get(&early, 0)->target);
	if (good && !(inserted && deleted))
		good = late.count == early.count &&
			   (late.count == 0 || model_same(&properties_get(&early, 0)->target, &properties_get(&late, 0)->target));
	lines_view_free(&view);
	properties_free(&early);
	properties_free(&late);
	buf_free(&output.bytes);
	return good;
}

static void
check_model(void)
{
	bool agrees = true, encodes = true, late = true;
	int rounds = 0;
	Properties set;

	properties_init(&set, resize, NULL);
	for (; rounds < 300 && agrees && encodes && late; rounds++)
	{
		model_reset();
		properties_free(&set);
		for (int step = 0; step < 120 && agrees; step++)
		{
			char digits[LINE_CHANGE_TEXT], text[PROPERTY_TEXT_MAX], value[16];

			if (random_below(4) == 0)
			{
				LineChange change = random_change();
				Edit edit = line_change_edit(&change, 1, digits);

				properties_apply(&set, &edit, (uint64_t) step + 1);
				model_change(&change);
			}
			else
			{
				PropertyTarget target = random_target();
				char key = (char) ('a' + random_below(2));
				int number = random_below(5) == 0 ? 0 : 1 + (int) random_below(99);
				Property property = {.target = target, .key = {&key, 1}, .value = {value, 0}, .uid = 7};
				Edit edit;

				if (number > 0)
					property.value.len = (uint32_t) snprintf(value, sizeof(value), "%d ", number);
				edit = property_edit(&property, text);
				properties_apply(&set, &edit, (uint64_t) step + 1);
				model_put(&target, key, number);
			}
			agrees = model_agrees(&set);
		}
		encodes = set_round_trip(&set);
		late = late_agrees();
	}
	TAP_OK(agrees, "a set is what the model says (%d rounds)", rounds);
	TAP_OK(encodes, "it is read back the same, and its bytes depend on it alone");
	TAP_OK(late, "a late property lies where an early one has been moved to");
	model_reset();
	properties_free(&set);
}

/* ---- one edit, limits, damage ---- */

static bool
reads(uint32_t row, uint32_t col, const char *style)
{
	Edit edit = {
		.kind = EDIT_PROPERTY, .row = row, .col = col, .content = {"1", 1}, .style = {style, (uint32_t) strlen(style)}};
	Property property;

	return property_of(&edit, &property);
}

static void
check_edits(void)
{
	static const char *const malformed[] = {
		"",		  " ",		"0",	 "0 ",	  "0 0",	 "0 0 ",		 "* *",	   "*0 0 k",
		"00 0 k", "0 01 k", "1 0 k", "0 1 k", "0 0 a b", "0 0 \xC3\xA9", "-1 0 k", "99999999999 0 k"};
	char key[PROPERTY_MAX_KEY + 2] = "";
	int read = 0;

	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		read += reads(0, 0, malformed[i]);
	TAP_OK(read == 0, "malformed targets and keys");
	TAP_OK(!reads(1, 0, "* 0 k") && !reads(SHEET_MAX_ROWS - 1, 0, "0 0 k") && !reads(0, SHEET_MAX_COLS - 1, "0 0 k"),
		   "all rows, or all columns, have one form");
	TAP_OK(reads(0, 0, "* * k") && reads(0, 9, "* 9 k") && reads(9, 0, "0 * k") && reads(9, 9, "9 9 a-Z_0.9"),
		   "well-formed ones");
	memset(key, 'k', sizeof(key) - 1);
	TAP_OK(property_is_key((EditText){key, PROPERTY_MAX_KEY}) &&
			   !property_is_key((EditText){key, PROPERTY_MAX_KEY + 1}),
		   "a key has at most %d characters", PROPERTY_MAX_KEY);
	{
		Property longest = {.target = {SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1},
							.key = {key, PROPERTY_MAX_KEY}};
		char text[PROPERTY_TEXT_MAX];
		Edit edit = property_edit(&longest, text);

		TAP_OK(edit.style.len <= PROPERTY_TEXT_MAX && property_of(&edit, &longest), "the longest edit");
	}
}

static bool
is_bounded(const char *value, bool *deep)
{
	return property_value_is_bounded((EditText){value, (uint32_t) strlen(value)}, deep);
}

static bool
is_wanted(const char *key, const char *value)
{
	Property property = {.key = {key, (uint32_t) strlen(key)}, .value = {value, (uint32_t) strlen(value)}};

	return property_wanted_value(&property) == NULL;
}

/* Numbers that a double has, and only these, wherever they stand; values of the keys of the page. */
static void
check_values(void)
{
	static const char *const numbers[] = {"0",		"-0",	  "1e308",		 "1.7976931348623157e308",
										  "1e-308", "-1E308", "0.00017e308", "[1,{\"a\":17976931348623157e292}]",
										  "12e+3",	"0e308",  "\"1e999\"",	 "[true,false,null,\"e9\"]"};
	static const char *const large[] = {"1e309",
										"-1e999",
										"1.8e308",
										"[2e308]",
										"{\"a\":1e400}",
										"100e307",
										"17976931348623158e292",
										"1e99999999999999999999"};
	static const struct
	{
		const char *key, *value;
		bool wanted;
	} values[] = {{"width", "0", true},
				  {"width", " 120.5\n", true},
				  {"height", "1e4", true},
				  {"height", "10000.01", false},
				  {"width", "-1", false},
				  {"width", "\"7\"", false},
				  {"width", "", false},
				  {"width", "1 2", false},
				  {"hidden", "true", true},
				  {"hidden", "truer", false},
				  {"merge", " true ", true},
				  {"merge", "false", false},
				  {"freeze", "{ \"rows\" : 1 , \"cols\" : 1000 }", true},
				  {"freeze", "{}", true},
				  {"freeze", "{\"rows\":1001}", false},
				  {"freeze", "{\"rows\":0.5}", false},
				  {"freeze", "{\"rows\":1,}", false},
				  {"freeze", "{\"rows\":1}}", false},
				  {"freeze", "{\"lines\":1}", false},
				  {"timezone", "\"Europe/Berlin\"", true},
				  {"timezone", " \"America/Argentina/Buenos_Aires\" ", true},
				  {"timezone", "\"Etc/GMT+3\"", true},
				  {"timezone", "\"\"", false},
				  {"timezone", "\"Europe/Berl in\"", false},
				  {"timezone", "\"Europe\\/Berlin\"", false},
				  {"timezone", "\"+03:00\"", false},
				  {"timezone", "\"UTC", false},
				  {"timezone", "\"UTC\"x", false},
				  {"timezone", "2", false},
				  {"widths", "-1", true}};
	char digits[400];
	bool good = true, deep;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		good = is_bounded(numbers[i], &deep) && good;
	TAP_OK(good, "numbers of doubles");
	good = true;
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		good = !is_bounded(large[i], &deep) && !deep && good;
	memset(digits, '9', sizeof(digits));
	TAP_OK(good && property_value_is_bounded((EditText){digits, 308}, &deep) &&
			   !property_value_is_bounded((EditText){digits, 309}, &deep),
		   "larger numbers are refused, also as digits");
	memset(digits, '[', sizeof(digits));
	TAP_OK(property_value_is_bounded((EditText){digits, PROPERTY_MAX_DEPTH}, &deep) && !deep &&
			   !property_value_is_bounded((EditText){digits, PROPERTY_MAX_DEPTH + 1}, &deep) && deep,
		   "values that are nested too deep");
	good = true;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		good = is_wanted(values[i].key, values[i].value) == values[i].wanted && good;
	TAP_OK(good, "values of the keys of the page");
}

/* The cells of merges are counted, whatever moves or goes; insertions that would make too many of them are found. */
static void
check_merges(void)
{
	Property merge = {.target = {10, 0, 10 + PROPERTY_MAX_MERGE / 2 - 1, 1}, .key = {"merge", 5}, .value = {"true", 4}};
	Property other = {.target = {5, 7, 6, 7}, .key = {"merge", 5}, .value = {"true", 4}};
	Edit inside = {.kind = EDIT_INSERT_ROWS, .row = 11, .content = {"1", 1}};
	Edit before = {.kind = EDIT_INSERT_ROWS, .row = 3, .content = {"1", 1}};
	Edit within = {.kind = EDIT_DELETE_ROWS, .row = 11, .content = {"5", 1}};
	Edit all = {.kind = EDIT_DELETE_ROWS, .row = 5, .content = {"2", 1}};
	Properties set;

	properties_init(&set, resize, NULL);
	(void) properties_put(&set, &merge);
	(void) properties_put(&set, &other);
	(void) properties_put(&set, &other);
	TAP_OK(set.merged == PROPERTY_MAX_MERGE + 2, "the cells of all merges");
	TAP_OK(properties_overgrown(&set, &inside) != NULL && properties_overgrown(&set, &before) == NULL,
		   "an insertion that would widen a merge too far");
	(void) properties_move(&set, &all);
	TAP_OK(set.merged == PROPERTY_MAX_MERGE, "without those that are deleted");
	(void) properties_move(&set, &within);
	TAP_OK(set.merged == PROPERTY_MAX_MERGE - 10 && properties_overgrown(&set, &inside) == NULL, "and narrowed");
	properties_free(&set);
	TAP_OK(set.merged == 0, "none");
}

/* Whatever the bytes, what is read of them is a set that is written as these bytes. */
static void
check_damage(void)
{
	uint8_t bytes[512], damaged[512], again[4096];
	bool good = true;
	int accepted = 0;
	Properties set;
	size_t len;

	properties_init(&set, resize, NULL);
	model_reset();
	for (int i = 0; i < 8; i++)
	{
		Property property = {.target = random_target(), .key = {"key", 3}, .value = {"[1]", 3}, .uid = 5, .seq = 300};

		properties_put(&set, &property);
	}
	len = properties_encode(&set, bytes);
	properties_free(&set);
	for (int i = 0; i < 20000 && good; i++)
	{
		size_t part = random_below(4) == 0 ? random_below((uint32_t) len + 1) : len;

		memcpy(damaged, bytes, len);
		damaged[random_below((uint32_t) len)] ^= (uint8_t) (1 << random_below(8));
		if (properties_decode(&set, damaged, part))
		{
			accepted++;
			good = properties_encode_bound(&set) <= sizeof(again) && properties_encode(&set, again) <= part;
		}
		properties_free(&set);
	}
	TAP_OK(good && accepted > 0, "damaged bytes are refused, or are another set");
	len = 0;
	TAP_OK(properties_decode(&set, bytes, 0) && set.count == 0 && properties_digest(bytes, 0) == 0, "no bytes");
}

int
main(void)
{
	cJSON *vectors = read_vectors(VECTORS), *vector;

	if (vectors == NULL)
		abort();
	cJSON_ArrayForEach(vector, cJSON_GetObjectItem(vectors, "client")) check_client(vector);
	cJSON_ArrayForEach(vector, cJSON_GetObjectItem(vectors, "refused")) check_refused(vector);
	cJSON_ArrayForEach(vector, cJSON_GetObjectItem(vectors, "malformed")) check_malformed(vector);
	cJSON_ArrayForEach(vector, cJSON_GetObjectItem(vectors, "server")) check_server(vector);
	cJSON_ArrayForEach(vector, cJSON_GetObjectItem(vectors, "sets")) check_set(vector);
	cJSON_ArrayForEach(vector, cJSON_GetObjectItem(vectors, "late")) check_late(vector);
	cJSON_Delete(vectors);
	check_edits();
	check_values();
	check_merges();
	check_model();
	check_damage();
	return tap_done();
}
