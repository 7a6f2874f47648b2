/*
 * changes.c - which sheets and accounts have changed.
 *
 * Every change advances a clock. A cached fact stores the clock's value at the time of its question, and is valid while
 * its sheet and its account have not changed since. So nothing has to be searched for and dropped when a change is
 * heard of, and an answer that crosses a change is not taken for new.
 */
#include "ws/cache/changes.h"

#include <uv.h>

#define CHANGES_SLOTS	   4096 /* a power of two */
#define CHANGES_CURRENT_NS UINT64_C(2000000000)

/* Of the last sheet of a slot that was edited. */
typedef struct SheetEdits
{
	int64_t sheet_id, seq;
	uint64_t at; /* the clock then */
} SheetEdits;

static uint64_t changes_clock;
static SheetEdits changes_edits[CHANGES_SLOTS];
static uint64_t changes_slots[CHANGES_SLOTS]; /* the clock when a sheet or account of this slot changed last */
static uint64_t changes_all;				  /* the clock when everything may have changed last */
static uint64_t changes_heard_at;			  /* 0: nothing has been heard yet */

static uint64_t *
changes_slot(int64_t id)
{
	return &changes_slots[(uint64_t) id * UINT64_C(0x9E3779B97F4A7C15) >> 52 & (CHANGES_SLOTS - 1)];
}

uint64_t
changes_now(void)
{
	return changes_clock;
}

bool
changes_since(int64_t id, uint64_t asked)
{
	return *changes_slot(id) > asked || changes_all > asked;
}

void
changes_register(int64_t id)
{
	*changes_slot(id) = ++changes_clock;
}

void
changes_register_all(void)
{
	changes_all = ++changes_clock;
}

void
changes_register_edits(int64_t sheet_id, int64_t seq)
{
	SheetEdits *edits = &changes_edits[changes_slot(sheet_id) - changes_slots];

	if (edits->sheet_id == sheet_id && seq != 0 && seq <= edits->seq)
		return;
	*edits = (SheetEdits){sheet_id, seq, ++changes_clock};
}

bool
changes_edited_since(int64_t sheet_id, uint64_t asked)
{
	return changes_edits[changes_slot(sheet_id) - changes_slots].at > asked || changes_all > asked;
}

void
changes_set_heard(uint64_t heard)
{
	changes_heard_at = heard;
}

uint64_t
changes_heard(void)
{
	return changes_heard_at;
}

bool
changes_are_current(void)
{
	return changes_heard_at != 0 && uv_hrtime() - changes_heard_at < CHANGES_CURRENT_NS;
}
