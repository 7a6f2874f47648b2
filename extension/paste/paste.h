/*
 * paste.h - pastes: short texts in shared memory under random ids, until an end of at most seven days; see paste.c and
 * docs/design/pastes.md.
 *
 * Needs shared_preload_libraries = 'pg_sheet' and pg_sheet.paste_memory > 0; otherwise paste_enabled() is false, and
 * nothing else here may be called but paste_sweep(). A paste belongs to the database in which it was made. Functions
 * raise no error and change no table.
 */
#ifndef PASTE_H
#define PASTE_H

#include "postgres.h"
#include "datatype/timestamp.h"

#define PASTE_MIN_BYTES	  20 /* of a content */
#define PASTE_MAX_BYTES	  32768
#define PASTE_TITLE_MAX	  200 /* bytes */
#define PASTE_LANG_MAX	  32
#define PASTE_TEXT_MAX	  (PASTE_TITLE_MAX + PASTE_LANG_MAX + PASTE_MAX_BYTES)
#define PASTE_MAX_SECONDS (7 * SECS_PER_DAY)
#define PASTE_MEMORY_MIN  1024 /* kB, if there is any */

typedef struct PasteId
{
	uint8 bytes[16];
} PasteId;

/* A paste without its text, which consists of title, language and content. */
typedef struct PasteInfo
{
	TimestampTz created_at, ends_at;
	int64 views;
	int64 uid;	   /* of the account that made it; 0: none */
	uint64 origin; /* a keyed hash of whoever made it */
	uint32 content_len;
	uint16 title_len;
	uint8 lang_len;
	bool blocked;
} PasteInfo;

extern int paste_memory_kb; /* setting */

/* ---- start-up ---- */
extern void paste_define_settings(void); /* from _PG_init while preloading */
extern Size paste_shmem_size(void);
extern void paste_shmem_startup(void); /* under AddinShmemInitLock */
extern bool paste_enabled(void);

/* ---- pastes of this database ---- */
/* The keyed hash of a name of somebody who makes pastes, by which shares are counted. */
extern uint64 paste_origin(const char *name);
/* Stores a paste; of info, the members views and blocked are ignored. Returns false if there is no room: all memory is
 * taken by pastes that are being stored. */
extern bool paste_add(const PasteId *id, const PasteInfo *info, const char *text);
/* Adds `views` to the views of the paste, makes it the most recently used one, and copies it. text: a buffer of
 * PASTE_TEXT_MAX bytes, or NULL. Returns false if there is no such paste, or it has ended, or is blocked. */
extern bool paste_read(const PasteId *id, int64 views, PasteInfo *info, char *text);
/* Return false if there is no paste, or it has ended. */
extern bool paste_block(const PasteId *id, bool blocked);
extern bool paste_remove(const PasteId *id);

/* ---- lists ---- */
/* Copies the places of at most `max` pastes of all databases, in no order. Returns their number in all. */
extern uint32 paste_places(uint32 *places, uint32 max);
/* Copies title and language to text (PASTE_TITLE_MAX + PASTE_LANG_MAX bytes). Returns false if there is no paste of
 * this database at the place, or it has ended. */
extern bool paste_describe(uint32 place, PasteId *id, PasteInfo *info, char *text);

typedef enum PasteCounter
{
	PASTE_CREATED,
	PASTE_EXPIRED, /* removed since they had ended */
	PASTE_EVICTED, /* removed before their end, for others */
	PASTE_REMOVED, /* by operators */
	PASTE_REFUSED, /* no room */
	PASTE_HITS,
	PASTE_MISSES,
	PASTE_COUNTERS
} PasteCounter;

typedef struct PasteStats
{
	int64 pastes; /* of all databases */
	int64 bytes;  /* taken of the budget, with all overhead */
	int64 budget;
	int64 share; /* bytes that one may have while others need memory */
	int64 counters[PASTE_COUNTERS];
	int64 sweep_ns; /* the longest processor time for which a sweep has held the lock */
} PasteStats;

extern void paste_read_stats(PasteStats *stats);

/* ---- the launcher ---- */
/* Removes some pastes that have ended. Returns the ms until it should be called again, or -1: when the latch is set. */
extern long paste_sweep(void);

#endif
