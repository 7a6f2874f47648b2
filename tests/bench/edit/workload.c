/* workload.c - see workload.h. */
#include "workload.h"

#include "basics.h"
#include "ws_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char words[] = "testtesttesttesttesttesttesttesttesttesttesttesttesttesttesttesttesttesttesttest"
							"testtesttesttesttesttesttesttesttest";

#define WORD_LEN (sizeof(WORKLOAD_WORD) - 1)

_Static_assert(sizeof(words) - 1 == WORD_LEN * (WORKLOAD_REPEATS - 1), "words holds the longest content");

/* The finalizer of splitmix64: every bit of the input reaches every bit of the result. */
static uint64_t
mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15u;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

WorkloadEdit
workload_edit_at(int sender, uint64_t index)
{
	uint64_t random = mix(((uint64_t) (sender + 1) << 48) + index);

	return (WorkloadEdit){.col = (uint32_t) random % WORKLOAD_COLUMNS, .repeats = (random >> 32) % WORKLOAD_REPEATS};
}

size_t
workload_write_message(char *to, int sender, uint64_t index)
{
	WorkloadEdit edit = workload_edit_at(sender, index);

	return (size_t) snprintf(
		to, WORKLOAD_MESSAGE_MAX,
		"{\"msgType\":\"modify\",\"body\":{\"row\":%d,\"col\":%d,\"content\":\"%.*s\",\"info\":null}}", sender,
		edit.col, (int) (edit.repeats * WORD_LEN), words);
}

size_t
workload_write_frame(char *to, int sender, uint64_t index)
{
	char message[WORKLOAD_MESSAGE_MAX];
	size_t len = workload_write_message(message, sender, index);

	return ws_write_frame(to, WS_TEXT, message, len, workload_mask(index));
}

uint32_t
workload_mask(uint64_t index)
{
	return (uint32_t) mix(index ^ 0xA5A5A5A5u);
}

uint64_t
workload_check(WorkloadModel *model, int sender, WorkloadEdit edit)
{
	for (uint64_t i = model->next; i < model->next + WORKLOAD_LOOKAHEAD; i++)
	{
		WorkloadEdit wanted = workload_edit_at(sender, i);

		if (wanted.col != edit.col || wanted.repeats != edit.repeats)
			continue;
		model->missing += i - model->next;
		model->next = i + 1;
		if (model->cells[edit.col] != edit.repeats)
			model->changed++;
		model->cells[edit.col] = edit.repeats;
		return i;
	}
	model->strange++;
	return UINT64_MAX;
}

/* The text after a key; looks first where the key was in the message before. */
static const char *
find_value(const char *text, size_t len, const char *key, size_t key_len, size_t *hint)
{
	const char *at;

	if (*hint + key_len <= len && memcmp(text + *hint, key, key_len) == 0)
		return text + *hint + key_len;
	at = memmem(text, len, key, key_len);
	if (!at)
		return NULL;
	*hint = at - text;
	return at + key_len;
}

#define FIND_VALUE(text, len, key, hint) find_value(text, len, key, sizeof(key) - 1, hint)

/* A number of at most four digits that something follows. */
static bool
read_number(const char *at, const char *end, int *number)
{
	int value = 0, digits = 0;

	while (at < end && *at >= '0' && *at <= '9' && digits < 5)
	{
		value = value * 10 + (*at++ - '0');
		digits++;
	}
	*number = value;
	return digits > 0 && digits < 5 && at < end;
}

bool
workload_read_message(const char *text, size_t len, int *row, WorkloadEdit *edit)
{
	static size_t type_hint, row_hint, col_hint, content_hint;
	const char *end = text + len, *at, *quote;
	size_t content_len;

	if (!FIND_VALUE(text, len, "\"msgType\":\"modify\"", &type_hint))
		return false;
	at = FIND_VALUE(text, len, "\"row\":", &row_hint);
	if (!at || !read_number(at, end, row))
		return false;
	at = FIND_VALUE(text, len, "\"col\":", &col_hint);
	if (!at || !read_number(at, end, &edit->col))
		return false;
	at = FIND_VALUE(text, len, "\"content\":\"", &content_hint);
	quote = at ? memchr(at, '"', end - at) : NULL;
	if (!quote)
		return false;
	content_len = quote - at;
	edit->repeats = content_len / WORD_LEN;
	return content_len % WORD_LEN == 0 && content_len < sizeof(words) && memcmp(at, words, content_len) == 0;
}

void
workload_write_cells(const WorkloadModel *models, int senders, const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		fail("%s: %s", path, strerror(errno));
	for (int row = 0; row < senders; row++)
		for (int col = 0; col < WORKLOAD_COLUMNS; col++)
			if (models[row].cells[col] > 0)
				fprintf(file, "%d %d %d\n", row, col, models[row].cells[col]);
	if (fclose(file) != 0)
		fail("%s: %s", path, strerror(errno));
}
