/* functions.h - what the module's start needs of the SQL functions. */
#ifndef API_FUNCTIONS_H
#define API_FUNCTIONS_H

#include "fmgr.h"

/* files.c: the setting pg_sheet.file_quota. Called by _PG_init. */
extern void files_init(void);
/* Deletes the files of a sheet whose row the transaction has deleted. Between catalog_begin() and catalog_end(). */
extern void files_delete_all(int64 sheet_id);

/* locks_table.c: locks with names. */
extern Size locks_shmem_size(void);
/* From the shmem startup hook, under AddinShmemInitLock. */
extern void locks_shmem_startup(void);

/* links.c: the condition of sheet.link that the link may be used now. */
#define LINK_IS_VALID                                                                                                  \
	"revoked_at IS NULL AND NOT blocked AND (expires_at IS NULL OR expires_at > pg_catalog.clock_timestamp())"
/* 128 random bits in the alphabet of addresses (RFC 4648, base64url). */
extern char *links_random_key(void);

#define SHEET_NAME_MAX 255 /* characters */

/* ---- sheets.c ---- */
typedef struct SheetMaking
{
	const char *name;	   /* catalog_check_name() has accepted it */
	const char *link_role; /* NULL: none */
	int64 owner;		   /* 0: none */
	int64 author;		   /* of the first edit */
	int32 rows, cols;
} SheetMaking;

/* Makes a sheet, and returns its id. */
extern int64 sheets_make(const SheetMaking *sheet);
/* The account that owns what the caller makes; 0: none, which only superusers may do, since others could not open it.
 * 42501 for guests and roles without an account. */
extern int64 sheets_new_owner(int64 as_uid);
/* The size of a new sheet. 100 rows, 26 columns if the argument is null. */
extern int32 sheets_arg_rows(FunctionCallInfo fcinfo, int arg);
extern int32 sheets_arg_cols(FunctionCallInfo fcinfo, int arg);
/* 22023 unless it is viewer, commenter or editor. */
extern void sheets_check_shared_role(const char *role);
/* The caller has checked permission. They take the sheet lock. */
extern void sheets_trash(int64 sheet_id);
extern void sheets_recover(int64 sheet_id);
extern void sheets_purge(int64 sheet_id);

/* sheets.c: sheet.create(name, rows, cols, link_role, as_uid), also called by the CSV import. */
extern PGDLLEXPORT Datum sheet_create(PG_FUNCTION_ARGS);

#endif
