/* tab_store.h - the books and names of sheets, and which sheets refer to others by name; see tab_store.c. */
#ifndef TAB_STORE_H
#define TAB_STORE_H

#include "postgres.h"

/* All by the latest snapshot. */

/* The book of a sheet; 0: it is in none. */
extern int64 tab_store_book(int64 sheet_id);
/* The name of a sheet, palloced; NULL: it does not exist. */
extern char *tab_store_name(int64 sheet_id);
/* Whether the sheet has a row of sheet.referring. */
extern bool tab_store_refers(int64 sheet_id);
/* Inserts it. Caller must hold the sheet lock, and make the change visible. */
extern void tab_store_mark(int64 sheet_id);
/* The tabs of the book that have one, also those in the trash, by their ids. Palloced. */
extern int64 *tab_store_referring(int64 book_id, int *count);

#endif
