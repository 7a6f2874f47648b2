/*
 * fuzz_properties.c - whatever edits come, a set of properties stays sorted and within sheets, and is read back the
 * same; and whatever bytes are stored, the reader stays within them, and what it accepts is a set that is written and
 * read.
 *
 * The first byte says which: 0, the rest is stored properties; else it is edits.
 */
#include "common/properties.h"

#include <stdlib.h>

#include "fuzz.h"

static void *
fuzz_resize(void *ctx, void *ptr, size_t size)
{
	if (size > 0)
		return realloc(ptr, size);
	free(ptr);
	return NULL;
}

static void
fuzz_check_set(const Properties *set)
{
	uint8_t *bytes = malloc(properties_encode_bound(set) + 1), *again;
	size_t len = properties_encode(set, bytes), sum = 0;
	Properties copy;

	for (uint32_t i = 0; i < set->count; i++)
	{
		const Property *property = properties_get(set, i);
		const PropertyTarget *target = &property->target;

		FUZZ_CHECK(target->row0 <= target->row1 && target->row1 < SHEET_MAX_ROWS);
		FUZZ_CHECK(target->col0 <= target->col1 && target->col1 < SHEET_MAX_COLS);
		FUZZ_CHECK(property->value.len > 0 && property_is_key(property->key));
		FUZZ_CHECK(properties_find(set, target, property->key) == property);
		sum += property->key.len + property->value.len;
	}
	FUZZ_CHECK(sum == set->bytes && len <= properties_encode_bound(set));
	properties_init(&copy, fuzz_resize, NULL);
	FUZZ_CHECK(properties_decode(&copy, bytes, len) && copy.count == set->count);
	again = malloc(len + properties_encode_bound(&copy) + 1);
	FUZZ_CHECK(properties_encode(&copy, again) == len && memcmp(bytes, again, len) == 0);
	properties_free(&copy);
	free(bytes);
	free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact;
	EditReader reader;
	Properties set;
	uint64_t seq = 0;
	Edit edit;

	if (size == 0)
		return 0;
	exact = fuzz_copy(data + 1, size - 1);
	properties_init(&set, fuzz_resize, NULL);
	if (data[0] == 0)
	{
		if (properties_decode(&set, exact, size - 1))
			fuzz_check_set(&set);
	}
	else
	{
		edit_reader_init_edits(&reader, exact, size - 1, UINT32_MAX);
		while (edit_read(&reader, &edit) == EDIT_OK)
		{
			/* The callers have checked that. */
			if (edit.row < SHEET_MAX_ROWS && edit.col < SHEET_MAX_COLS)
				FUZZ_CHECK(properties_apply(&set, &edit, ++seq));
		}
		fuzz_check_set(&set);
	}
	properties_free(&set);
	free(exact);
	return 0;
}
