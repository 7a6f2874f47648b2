/* workload.c - see workload.h. */
#include "workload.h"

#include "session.h"

#include <string.h>

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
	Text *cell;

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
