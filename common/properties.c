/*
 * properties.c - properties of a sheet: one property edit, and the set that follows from the edits of a log.
 *
 * A property is named by its target and its key: an edit of the same target and key replaces it, whatever other targets
 * overlap. So a set depends on the last edit of each property alone, and not on their order. Structure edits move the
 * targets. Two targets can become equal then; one of them contained the other, and the smaller one stays.
 */
#include "common/properties.h"

#include "common/edit_read.h"
#include "common/edit_write.h"

#include <stdlib.h>
#include <string.h>

struct PropertyEntry
{
	Property property;
	uint64_t cells; /* of the target before the move under way */
	char bytes[];	/* the key, then the value */
};

/* ---- one property edit ---- */

/* Reads "*" or a number without leading zeros, and the space after it. `last`: of the edit. */
static bool
property_read_axis(EditText *text, uint32_t limit, uint32_t last, uint32_t *from, uint32_t *to)
{
	uint64_t first = 0;
	uint32_t used = 0;
	bool all = text->len > 0 && text->data[0] == '*';

	if (all)
		used = 1;
	while (!all && used < text->len && used < 10 && text->data[used] >= '0' && text->data[used] <= '9')
		first = first * 10 + (uint64_t) (text->data[used++] - '0');
	if (used == 0 || used == text->len || text->data[used] != ' ' || (text->data[0] == '0' && used > 1))
		return false;
	text->data += used + 1;
	text->len -= used + 1;
	*from = (uint32_t) first;
	*to = all ? limit - 1 : last;
	if (all)
		return last == 0;
	/* All rows, or all columns, have one form. */
	return first <= last && !(first == 0 && last == limit - 1);
}

bool
property_of(const Edit *edit, Property *property)
{
	PropertyTarget *target = &property->target;
	EditText text = edit->style;

	*property = (Property){.value = edit->content, .uid = edit->uid};
	if (!property_read_axis(&text, SHEET_MAX_ROWS, edit->row, &target->row0, &target->row1) ||
		!property_read_axis(&text, SHEET_MAX_COLS, edit->col, &target->col0, &target->col1))
		return false;
	property->key = text;
	return property_is_key(text);
}

static char *
property_put_axis(char *to, bool all, uint32_t first)
{
	char digits[10];
	size_t n = sizeof(digits);

	if (all)
		*to++ = '*';
	else
	{
		do
			digits[--n] = (char) ('0' + first % 10);
		while ((first /= 10) > 0);
		memcpy(to, digits + n, sizeof(digits) - n);
		to += sizeof(digits) - n;
	}
	*to++ = ' ';
	return to;
}

uint64_t
property_merged_cells(const Property *property)
{
	return property->key.len == 5 && memcmp(property->key.data, "merge", 5) == 0
			   ? property_target_cells(&property->target)
			   : 0;
}

Edit
property_edit(const Property *property, char *text)
{
	const PropertyTarget *target = &property->target;
	bool all_rows = property_has_all_rows(target), all_cols = property_has_all_cols(target);
	char *to = property_put_axis(property_put_axis(text, all_rows, target->row0), all_cols, target->col0);

	memcpy(to, property->key.data, property->key.len);
	to += property->key.len;
	return (Edit){.kind = EDIT_PROPERTY,
				  .uid = property->uid,
				  .row = all_rows ? 0 : target->row1,
				  .col = all_cols ? 0 : target->col1,
				  .content = property->value.len > 0 ? property->value : (EditText){"", 0},
				  .style = {text, (uint32_t) (to - text)}};
}

/* ---- a set ---- */

void
properties_init(Properties *set, PropertiesRealloc resize, void *ctx)
{
	*set = (Properties){.resize = resize, .ctx = ctx};
}

static void
properties_drop(Properties *set, PropertyEntry *entry)
{
	set->bytes -= entry->property.key.len + entry->property.value.len;
	set->merged -= property_merged_cells(&entry->property);
	(void) set->resize(set->ctx, entry, 0);
}

void
properties_free(Properties *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		properties_drop(set, set->entries[i]);
	if (set->entries != NULL)
		(void) set->resize(set->ctx, set->entries, 0);
	properties_init(set, set->resize, set->ctx);
}

const Property *
properties_get(const Properties *set, uint32_t index)
{
	return &set->entries[index]->property;
}

static int
compare_numbers(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int
compare_names(const PropertyTarget *a, EditText a_key, const PropertyTarget *b, EditText b_key)
{
	int order = memcmp(a_key.data, b_key.data, a_key.len < b_key.len ? a_key.len : b_key.len);

	if (order == 0)
		order = compare_numbers(a_key.len, b_key.len);
	if (order == 0)
		order = compare_numbers(a->row0, b->row0);
	if (order == 0)
		order = compare_numbers(a->col0, b->col0);
	if (order == 0)
		order = compare_numbers(a->row1, b->row1);
	return order != 0 ? order : compare_numbers(a->col1, b->col1);
}

/* Returns where the property is, or belongs. */
static uint32_t
properties_search(const Properties *set, const PropertyTarget *target, EditText key, bool *found)
{
	uint32_t low = 0, high = set->count;

	*found = false;
	while (low < high && !*found)
	{
		uint32_t middle = low + (high - low) / 2;
		const Property *property = &set->entries[middle]->property;
		int order = compare_names(&property->target, property->key, target, key);

		*found = order == 0;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return high;
}

const Property *
properties_find(const Properties *set, const PropertyTarget *target, EditText key)
{
	bool found;
	uint32_t at = properties_search(set, target, key, &found);

	return found ? &set->entries[at]->property : NULL;
}

static PropertyEntry *
properties_copy(Properties *set, const Property *property)
{
	size_t key = property->key.len, value = property->value.len;
	PropertyEntry *entry = set->resize(set->ctx, NULL, sizeof(PropertyEntry) + key + value);

	if (entry == NULL)
		return NULL;
	entry->property = *property;
	entry->cells = 0;
	memcpy(entry->bytes, property->key.data, key);
	memcpy(entry->bytes + key, property->value.data, value);
	entry->property.key.data = entry->bytes;
	entry->property.value.data = entry->bytes + key;
	set->bytes += key + value;
	set->merged += property_merged_cells(property);
	return entry;
}

static bool
properties_reserve(Properties *set)
{
	uint32_t size = set->size > 0 ? set->size * 2 : 16;
	PropertyEntry **entries;

	if (set->count < set->size)
		return true;
	entries = set->resize(set->ctx, set->entries, size * sizeof(PropertyEntry *));
	if (entries == NULL)
		return false;
	set->entries = entries;
	set->size = size;
	return true;
}

static void
properties_remove(Properties *set, uint32_t at)
{
	properties_drop(set, set->entries[at]);
	set->count--;
	memmove(&set->entries[at], &set->entries[at + 1], (set->count - at) * sizeof(PropertyEntry *));
}

bool
properties_put(Properties *set, const Property *property)
{
	bool found;
	uint32_t at = properties_search(set, &property->target, property->key, &found);
	PropertyEntry *entry;

	if (property->value.len == 0)
	{
		if (found)
			properties_remove(set, at);
		return true;
	}
	if (!properties_reserve(set) || (entry = properties_copy(set, property)) == NULL)
		return false;
	if (found)
		properties_drop(set, set->entries[at]);
	else
	{
		memmove(&set->entries[at + 1], &set->entries[at], (set->count - at) * sizeof(PropertyEntry *));
		set->count++;
	}
	set->entries[at] = entry;
	return true;
}

/* ---- structure edits ---- */

/* All rows (columns) of a sheet stay all. */
static bool
move_target(PropertyTarget *target, const LineChange *change)
{
	if (change->rows)
		return property_has_all_rows(target) || extent_move(change, &target->row0, &target->row1);
	return property_has_all_cols(target) || extent_move(change, &target->col0, &target->col1);
}

const Property *
properties_pushed_out(const Properties *set, const Edit *edit)
{
	LineChange change;

	if (!line_change_of(edit, &change) || !change.insert)
		return NULL;
	for (uint32_t i = 0; i < set->count; i++)
	{
		PropertyTarget target = set->entries[i]->property.target;

		if (!move_target(&target, &change))
			return &set->entries[i]->property;
	}
	return NULL;
}

const Property *
properties_overgrown(const Properties *set, const Edit *edit)
{
	uint64_t merged = set->merged;
	LineChange change;

	if (!line_change_of(edit, &change) || !change.insert)
		return NULL;
	for (uint32_t i = 0; i < set->count; i++)
	{
		const Property *property = &set->entries[i]->property;
		uint64_t before = property_merged_cells(property), cells;
		PropertyTarget target = property->target;

		if (before == 0 || !move_target(&target, &change) || (cells = property_target_cells(&target)) <= before)
			continue;
		merged += cells - before;
		if (cells > PROPERTY_MAX_MERGE || merged > PROPERTIES_MAX_MERGED)
			return property;
	}
	return NULL;
}

static int
compare_moved(const void *a, const void *b)
{
	const PropertyEntry *x = *(PropertyEntry *const *) a, *y = *(PropertyEntry *const *) b;
	int order = compare_names(&x->property.target, x->property.key, &y->property.target, y->property.key);

	return order != 0 ? order : (x->cells < y->cells ? -1 : x->cells > y->cells);
}

bool
properties_move(Properties *set, const Edit *edit)
{
	uint32_t kept = 0;
	bool changed = false;
	LineChange change;

	if (!line_change_of(edit, &change))
		return false;
	for (uint32_t i = 0; i < set->count; i++)
	{
		PropertyEntry *entry = set->entries[i];
		PropertyTarget *target = &entry->property.target, before = *target;

		entry->cells = property_target_cells(&before);
		if (!move_target(target, &change))
		{
			*target = before;
			properties_drop(set, entry);
			changed = true;
			continue;
		}
		if (property_merged_cells(&entry->property) > 0)
			set->merged += property_target_cells(target) - entry->cells;
		changed |= memcmp(target, &before, sizeof(before)) != 0;
		set->entries[kept++] = entry;
	}
	set->count = kept;
	if (!changed || kept == 0)
		return changed;
	qsort(set->entries, kept, sizeof(PropertyEntry *), compare_moved);
	for (uint32_t i = 1; i < set->count;)
	{
		const Property *a = properties_get(set, i - 1), *b = properties_get(set, i);

		if (compare_names(&a->target, a->key, &b->target, b->key) == 0)
			properties_remove(set, i);
		else
			i++;
	}
	return true;
}

bool
properties_apply(Properties *set, const Edit *edit, uint64_t seq)
{
	Property property;

	if (edit_is_structure(edit->kind) && set->count > 0)
		(void) properties_move(set, edit);
	if (edit->kind != EDIT_PROPERTY || !property_of(edit, &property))
		return true;
	property.seq = seq;
	return properties_put(set, &property);
}

/* ---- bytes ---- */

size_t
properties_encode_bound(const Properties *set)
{
	return set->bytes + (size_t) set->count * (CODEC_NUMBER_MAX + 64 + PROPERTY_TEXT_MAX);
}

size_t
properties_encode(const Properties *set, uint8_t *to)
{
	uint8_t *pos = to;

	for (uint32_t i = 0; i < set->count; i++)
	{
		const Property *property = properties_get(set, i);
		char text[PROPERTY_TEXT_MAX];
		Edit edit = property_edit(property, text);
		EditWriter writer;

		edit_write_edits(&writer, codec_put_number(pos, property->seq));
		edit_write(&writer, &edit);
		pos = writer.pos;
	}
	return (size_t) (pos - to);
}

/* Reads the next property, which must come after those in the set. */
static bool
properties_read(Properties *set, CodecInput *input)
{
	EditReader reader;
	Property property;
	uint64_t seq = 0;
	Edit edit;
	bool found;

	if (codec_get_number(input, false, &seq) != EDIT_OK)
		return false;
	edit_reader_init_edits(&reader, input->pos, (size_t) (input->end - input->pos), 1);
	if (edit_read(&reader, &edit) != EDIT_OK || edit.kind != EDIT_PROPERTY || edit.old.data != NULL ||
		!property_of(&edit, &property) || edit.row >= SHEET_MAX_ROWS || edit.col >= SHEET_MAX_COLS ||
		edit.content.len == 0 || properties_search(set, &property.target, property.key, &found) != set->count)
		return false;
	property.seq = seq;
	input->pos = reader.pos;
	return properties_put(set, &property);
}

bool
properties_decode(Properties *set, const void *bytes, size_t len)
{
	CodecInput input = {bytes, (const uint8_t *) bytes + len};

	while (input.pos != input.end)
	{
		if (!properties_read(set, &input))
			return false;
	}
	return true;
}

/* FNV-1a (public domain, Fowler, Noll, Vo). */
uint64_t
properties_digest(const void *bytes, size_t len)
{
	const uint8_t *pos = bytes;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ pos[i]) * UINT64_C(0x100000001b3);
	return len > 0 ? hash : 0;
}
