/* books.h - books: who may do what to one, and its tabs; see books.c. */
#ifndef API_BOOKS_H
#define API_BOOKS_H

#include "postgres.h"
#include "fmgr.h"
#include "permission/permission.h"

#define BOOK_MAX_TABS 256

/* A book, and the caller. */
typedef struct Book
{
	int64 book_id;
	int64 owner; /* 0: none */
	int64 uid;	 /* as permission_uid() */
	SheetRole role;
	bool all; /* a superuser who acts as himself */
	bool trashed;
} Book;

/* 22004 for null. */
extern int64 books_arg(FunctionCallInfo fcinfo, int arg);
/*
 * Locks the book's row until the end of the transaction, and returns what the latest snapshot sees. 42704 if there is
 * no such book, 42501 unless the caller has at least the role, ST001 in the trash unless allow_trashed.
 */
extern Book books_require(int64 book_id, int64 as_uid, SheetRole needed, bool allow_trashed);
/* The same without the lock: what is found may change. */
extern Book books_check(int64 book_id, int64 as_uid, SheetRole needed, bool allow_trashed);
/* Reads the book by the active snapshot, without a lock. Checks neither the role nor whether it is in the trash. */
extern Book books_find(int64 book_id, int64 as_uid);
/* 42501: the caller has no role on the book. */
extern _Noreturn void books_deny(const Book *book, SheetRole needed);
/* Makes an empty book of this owner (0: none). */
extern int64 books_make(const char *name, int64 owner);
/* The ids of the tabs, also of those in the trash, in the order of the ids, by the latest snapshot. Palloced. */
extern int64 *books_tabs(int64 book_id, int *count);

/* book_members.c: gives the members of the book to (0: none) to the sheet, and takes from it those of the book from (0:
 * none). Exceptions stay. Caller must hold the rows of the books. */
extern void book_members_apply(int64 sheet_id, int64 from, int64 to);

/* book_copy.c: makes a sheet with the cells, styles, properties and the size of another one. 0: no owner. */
extern int64 book_copy_sheet(int64 source, const char *name, int64 owner, int64 author);

#endif
