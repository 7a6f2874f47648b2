/*
 * changes.h - which sheets and accounts have changed: a clock that validates cached facts; see changes.c.
 */
#ifndef CHANGES_H
#define CHANGES_H

#include <stdbool.h>
#include <stdint.h>

/* By what id the clock knows an account, or a guest, whose uid is negative: ids of sheets are positive. The database
 * publishes changes of accounts and of links by the same id, and changes of links also as those of their sheet. */
static inline int64_t
changes_of_uid(int64_t uid)
{
	return uid >= 0 ? -uid : INT64_MIN - uid;
}

/* The clock's value now. Note it before a question to the database. */
extern uint64_t changes_now(void);
/* Returns whether the sheet's row, its members, or the account of changes_of_uid() has changed since the clock was
 * `asked`. May return true without a change: the table is hashed. */
extern bool changes_since(int64_t id, uint64_t asked);
/* Registers a change of a sheet, or of the account of changes_of_uid(). Call it for a change of our own before it is
 * acknowledged. */
extern void changes_register(int64_t id);
/* Registers a change of everything: events have been lost. */
extern void changes_register_all(void);

/* Registers edits of the sheet up to seq, unless they are known; 0: edits of an unknown number. */
extern void changes_register_edits(int64_t sheet_id, int64_t seq);
/* Returns whether cells of the sheet have changed since the clock was `asked`. May return true without a change. */
extern bool changes_edited_since(int64_t sheet_id, uint64_t asked);

/* Everything that was committed until `heard` (uv_hrtime()) has been heard of. */
extern void changes_set_heard(uint64_t heard);
extern uint64_t changes_heard(void);
/* Returns whether all that was committed up to two seconds ago has been heard of. */
extern bool changes_are_current(void);

#endif
