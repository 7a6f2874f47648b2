/* workload.c - see workload.h. */
#include "workload.h"

#include "session.h"

#include <string.h>

/* splitmix64 */
static uint64_t
random_next(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;

	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

static void
text_make(WorkloadText *text, uint64_t *random)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
	uint64_t bits = random_next(random);

	memset(text, 0, sizeof(*text));
	text->len = bits >> 60;
	for (int i = 0; i < text->len; i++, bits >>= 6)
	{
		if (i == 8)
			bits = random_next(random);
		text->data[i] = letters[bits & 63];
	}
}

WorkloadSheet *
workload_create(uint64_t seed)
{
	WorkloadSheet *sheet = allocate(sizeof(WorkloadSheet));

	sheet->random = seed * 0x9E3779B97F4A7C15u;
	return sheet;
}

void
workload_next(WorkloadSheet *sheet, WorkloadEdit *edit)
{
	uint64_t place = random_next(&sheet->random);
	WorkloadText *cell;

	edit->uid = 1 + (place >> 48) % WORKLOAD_USERS;
	edit->row = (place & 0xFFFFFF) % WORKLOAD_ROWS;
	edit->col = (place >> 24 & 0xFFFFFF) % WORKLOAD_COLS;
	cell = &sheet->cells[edit->row][edit->col];
	edit->old = *cell;
	do
		text_make(&edit->new, &sheet->random);
	while (memcmp(&edit->new, cell, sizeof(*cell)) == 0);
	*cell = edit->new;
}
