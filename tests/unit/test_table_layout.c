/*
 * test_table_layout.c - sizes and hidden lines of a table, against a plain model in which each property is applied to
 * each of its lines, the weakest first; and ten thousand properties that overlap in a hundred thousand rows.
 */
#include "common/properties.h"
#include "ws/cache/table_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "tap.h"

static void *
resize(void *ctx, void *ptr, size_t size)
{
	if (size > 0)
		return realloc(ptr, size);
	free(ptr);
	return NULL;
}

static void
put_rows(Properties *set, uint32_t first, uint32_t last, const char *key, const char *value)
{
	Property property = {.target = {first, 0, last, SHEET_MAX_COLS - 1},
						 .key = {key, (uint32_t) strlen(key)},
						 .value = {value, (uint32_t) strlen(value)}};

	if (!properties_put(set, &property))
		abort();
}

/* The layout of a table of `rows` rows, from `from` on. */
static TableLayout
read_layout(const Properties *set, uint32_t from, uint32_t rows)
{
	uint8_t *bytes = malloc(properties_encode_bound(set) + 1);
	TableSource source = {.row = from, .properties = (char *) bytes};
	TableLayout layout;

	source.properties_len = properties_encode(set, bytes);
	if (table_layout_read(&layout, &source, rows, 1) != RANGE_READY)
		abort();
	free(bytes);
	return layout;
}

/* Whether of two properties that a row has, the second one counts: it has fewer rows, or begins later. */
static bool
is_stronger(const PropertyTarget *one, const PropertyTarget *other)
{
	uint32_t rows = one->row1 - one->row0, others = other->row1 - other->row0;

	return others != rows ? others < rows : other->row0 > one->row0;
}

static void
model_row(const Properties *set, uint32_t row, int *size, bool *hidden)
{
	const Property *heights = NULL, *hides = NULL;

	for (uint32_t i = 0; i < set->count; i++)
	{
		const Property *property = properties_get(set, i);
		const Property **found = property->key.data[1] == 'e' ? &heights : &hides;

		if (property->target.row0 <= row && row <= property->target.row1 &&
			(*found == NULL || is_stronger(&(*found)->target, &property->target)))
			*found = property;
	}
	*size = 0;
	for (uint32_t i = 0; heights != NULL && i < heights->value.len; i++)
		*size = *size * 10 + (heights->value.data[i] - '0');
	*hidden = hides != NULL && hides->value.data[0] == 't';
}

static bool
layout_is_model(void)
{
	uint32_t from = random_below(20), rows = 1 + random_below(40);
	Properties set;
	TableLayout layout;
	bool good = true;

	properties_init(&set, resize, NULL);
	for (uint32_t i = random_below(30); i > 0; i--)
	{
		uint32_t first = random_below(70), last = first + random_below(20);
		char height[16];

		snprintf(height, sizeof(height), "%u", 10 + random_below(90));
		if (random_below(2) == 0)
			put_rows(&set, first, last, "height", height);
		else
			put_rows(&set, first, last, "hidden", random_below(2) == 0 ? "true" : "false");
	}
	layout = read_layout(&set, from, rows);
	for (uint32_t row = 0; row < rows; row++)
	{
		bool hidden;
		int size;

		model_row(&set, from + row, &size, &hidden);
		good = good && layout.rows[row].size == size && layout.rows[row].hidden == hidden;
	}
	table_layout_free(&layout);
	properties_free(&set);
	return good;
}

/* Applied one by one, they would be a thousand million changes of lines. */
static void
check_overlapping(void)
{
	enum
	{
		ROWS = 100000,
		STEPS = PROPERTIES_MAX
	};
	Properties set;
	TableLayout layout;
	bool good = true;

	properties_init(&set, resize, NULL);
	for (uint32_t i = 0; i < STEPS; i++)
	{
		char height[16];

		snprintf(height, sizeof(height), "%u", 1 + i % 1000);
		put_rows(&set, 0, ROWS - 1 - i, "height", height);
	}
	for (int times = 0; times < 10; times++)
	{
		layout = read_layout(&set, 0, ROWS);
		good =
			good && layout.rows[0].size == 1000 && layout.rows[ROWS - 1].size == 1 && layout.rows[ROWS - 2].size == 2;
		table_layout_free(&layout);
	}
	properties_free(&set);
	TAP_OK(good, "%d properties that overlap in %d rows, ten times", STEPS, ROWS);
}

int
main(void)
{
	bool good = true;

	for (unsigned step = steps_to_run(20000, 500000); step > 0; step--)
		good = good && layout_is_model();
	TAP_OK(good, "rows have the height and are hidden as the strongest property says");
	check_overlapping();
	return tap_done();
}
