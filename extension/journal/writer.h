/*
 * writer.h - what the current transaction does to sheets (writer.c), and its publication at commit (writer_end.c).
 */
#ifndef WRITER_H
#define WRITER_H

#include "postgres.h"
#include "access/xact.h"
#include "cache.h"
#include "edit_codec.h"
#include "lib/ilist.h"

/* An edit that will be set in the shared grid at commit. The texts live as long as the transaction. */
typedef struct StagedEdit
{
	uint32 row, col;
	bool resize;
	EditText content; /* data NULL: kept */
	EditText style;	  /* data NULL: kept */
} StagedEdit;

/* One append (or claim): what ROLLBACK TO takes back as a whole. */
typedef struct WriterChange
{
	dlist_node link;
	SubTransactionId subid;
	CacheMeta before;
	uint32 nedits;
	StagedEdit *edits;
} WriterChange;

typedef struct WriterSheet
{
	dlist_node link;
	int64 sheet_id;
	SubTransactionId locked_in;	  /* the subtransaction that holds the sheet lock */
	CacheEntry *entry;			  /* pinned; NULL without shared memory */
	uint64 fxid;				  /* 0 until the first change */
	CacheMeta meta;				  /* the present, own changes included */
	dlist_head changes;			  /* oldest first */
	int64 base_seq;				  /* the state before own changes */
	Grid *base;					  /* own copy of it, when the entry has no grid ... */
	struct HTAB *base_tiles;	  /* ... of these tiles (ReplayTile) only, unless NULL */
	struct pending_hash *pending; /* cells changed by own changes; NULL: not built */
	bool learned;				  /* meta was found out by a look that no error ended */
	bool forget;				  /* drop the entry's knowledge at commit */
	bool drop_grid;				  /* a reservation failed: the next reader loads again */
	bool release;				  /* some reserved room will not be used */
	int64 origin;				  /* of all changes; 0 when they differ */
	MemoryContext context;
} WriterSheet;

extern dlist_head writer_sheets; /* of this transaction */
extern MemoryContext writer_context;

/* Registers the callbacks of writer_end.c. */
extern void writer_init(void);

/* Refuses where nothing may be written. The name is that of the SQL function. */
extern void writer_require_writable(const char *function);
/* Takes the sheet lock only. */
extern void writer_lock_sheet(int64 sheet_id);
/*
 * Takes the sheet lock and finds out the sheet's present state. Raises 40001 when a transaction-wide snapshot does not
 * see it.
 */
extern WriterSheet *writer_open(int64 sheet_id);
/* 42704 when there is no such sheet, ST001 when it is in the trash. */
extern void writer_require_live(WriterSheet *ws);
/* SF001 for an epoch lower than the highest known; a higher one is stored. 0: none. */
extern void writer_check_epoch(WriterSheet *ws, int64 epoch, const char *holder);

/* At commit, lets every writer look up its sheet's epoch anew. */
extern void writer_reset_epochs(void);
/* At commit, drops what shared memory knows of the sheet. */
extern void writer_forget(WriterSheet *ws);
/* The whole grid as it was before own changes; NULL never. */
extern const Grid *writer_base(WriterSheet *ws);
/* Makes sure that the cells of these edits can be looked up, and that meta knows the extent. */
extern void writer_prepare(WriterSheet *ws, const Edit *edits, uint32 nedits);
/* What a cell holds now, own changes included. */
extern void writer_lookup(WriterSheet *ws, uint32 row, uint32 col, EditText *content, EditText *style);
/* Remembers an edit that is about to be staged, for lookups of later edits. */
extern void writer_note_pending(WriterSheet *ws, const StagedEdit *edit);
extern bool writer_has_changes(const WriterSheet *ws);

/* Starts a change: from here on readers know that the transaction writes. meta may be altered after it. */
extern WriterChange *writer_begin_change(WriterSheet *ws, int64 origin);
/* Makes room in the shared grid and stages the edits (in ws->context) for commit. */
extern void writer_stage(WriterSheet *ws, WriterChange *change, StagedEdit *edits, uint32 nedits);
/* A snapshot that sees everything that is committed, and the own changes. For writers, who hold the sheet lock. */
extern Snapshot writer_snapshot(void);

#endif
