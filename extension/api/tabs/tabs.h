/* tabs.h - what the book of a sheet demands of changes of the sheet; see tabs.c. */
#ifndef API_TABS_H
#define API_TABS_H

#include "postgres.h"

/* Updates, and so locks, the row of the sheet's book until the end of the transaction, and returns the book; 0: the
 * sheet is in none. */
extern int64 tabs_lock_book(int64 sheet_id);
/* The same for a book. Returns false if it does not exist. */
extern bool tabs_lock(int64 book_id);
/* Gateways tell the pages of all tabs of the book, at most BOOK_MAX_TABS, when the transaction commits. book_id 0: does
 * nothing. */
extern void tabs_register_change(int64 book_id);
/* Locks the sheet's row. 40001 unless the sheet is still in the book (0: in none). Caller must hold the book's row. */
extern void tabs_lock_sheet(int64 sheet_id, int64 book_id);
/* The sheet's book; 0: none. By the latest snapshot. */
extern int64 tabs_book_of(int64 sheet_id);
/* 23505 if another tab of the book that is not in the trash has this name, without regard to case. sheet_id 0: of a new
 * sheet. book_id 0: does nothing. Holds until the end of the transaction if the caller holds the book's row. */
extern void tabs_check_name(int64 book_id, int64 sheet_id, const char *name);
/* 55000 if the book is in the trash. book_id 0: does nothing. */
extern void tabs_require_live_book(int64 book_id, int64 sheet_id);

#endif
