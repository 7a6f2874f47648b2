/*
 * writer.h - what the current transaction does to sheets (writer.c), and its publication at commit (writer_end.c).
 */
#ifndef WRITER_H
#define WRITER_H

#include "postgres.h"
#include "access/xact.h"
#include "grid/axes.h"
#include "cache/cache.h"
#include "common/edit_codec.h"
#include "lib/ilist.h"
#include "storage/lock.h"

#define WRITER_NONE PG_UINT32_MAX
#define WRITER_PAD	16 /* bytes that are moved at once, whatever a short text's length */

/* An edit that will be set in the shared grid at commit. The texts live as long as the transaction. */
typedef struct StagedEdit
{
	GridTile *tile;	 /* of the shared grid, where room is reserved; NULL: there is none, or nothing to set */
	uint32 row, col; /* physical: they stay right whatever is inserted or deleted later */
	uint32 before;	 /* the edit before this one of cells with the same hash, WRITER_NONE: none */
	bool resize;
	bool padded;	  /* WRITER_PAD bytes may be read from where the content begins */
	EditText content; /* data NULL: kept */
	EditText style;	  /* data NULL: kept */
} StagedEdit;

/* One append (or claim): what ROLLBACK TO takes back as a whole. */
typedef struct WriterChange
{
	dlist_node link;
	SubTransactionId subid;
	CacheMeta before;
	bool axes_known;
	Axes *axes;	 /* before it, when they were known */
	uint32 from; /* its first edit in ws->staged; they go on to the next change's */
} WriterChange;

typedef struct WriterSheet
{
	dlist_node link;
	int64 sheet_id;
	SubTransactionId locked_in;	 /* the subtransaction that holds the sheet lock */
	CacheEntry *entry;			 /* pinned; NULL without shared memory */
	uint64 fxid;				 /* 0 until the first change */
	CacheMeta meta;				 /* the present, own changes included */
	dlist_head changes;			 /* oldest first */
	int64 base_seq;				 /* the state before own changes */
	uint64 base_fxid;			 /* ... and its last writer */
	Grid *base;					 /* own copy of it, when the entry has no grid ... */
	struct HTAB *base_tiles;	 /* ... of these cells (a set) only, unless NULL */
	struct KeptSheet *kept;		 /* whose these two are; NULL: the transaction's own */
	bool axes_known;			 /* these two are right ... */
	Axes *axes;					 /* ... at present, own changes included */
	Axes *base_axes;			 /* ... and before own changes; the same address when nothing was changed */
	SubTransactionId axes_subid; /* that made the present ones; invalid: they must be kept for a rollback */
	bool holds;					 /* tiles of the shared grid, or all of it */
	StagedEdit *staged;			 /* of all changes */
	uint32 nstaged, staged_room;
	uint32 *newest;				/* by the hash of a cell the newest of its staged edits; NULL: not built ... */
	uint32 newest_size;			/* ... a power of two */
	bool learned;				/* meta was found out by a look that no error ended */
	bool forget;				/* drop the entry's knowledge at commit */
	bool taken_over;			/* by a claim, from a holder that did not release the sheet */
	bool drop_grid;				/* a reservation failed: the next reader loads again */
	int64 origin;				/* of all changes; 0 when they differ */
	VersionCause cause;			/* of the version that was made, when meta.segment_id tells that one was */
	MemoryContext grid_context; /* of a base of its own and of versions; NULL: not needed yet */
} WriterSheet;

extern dlist_head writer_sheets; /* of this transaction */
/*
 * Memory of a session that edits, kept for the next transaction so that its pages are not given to the system and taken
 * again: what lives as long as the transaction, and what a call takes and frees with pfree(). Both are emptied at the
 * transaction's end; they are there after writer_begin().
 */
extern MemoryContext writer_context;
extern MemoryContext writer_scratch;
extern void writer_begin(void);
/* Bytes in writer_context that are freed when the subtransaction that has asked for them is rolled back; a call that
 * has no use for them gives them back before. */
extern void *writer_alloc_bytes(Size size);
extern void writer_free_bytes(void *bytes);
/* For the ends of transactions. */
extern void writer_hand_bytes(SubTransactionId subid, SubTransactionId parent);
extern void writer_free_bytes_of(SubTransactionId subid);
extern void writer_forget_bytes(void);
/* For whole grids of the sheet, as long as the transaction: there memory that is freed is used again. */
extern MemoryContext writer_grid_context(WriterSheet *ws);

/* Registers the callbacks of writer_end.c. */
extern void writer_init(void);

/* Refuses where nothing may be written. The name is that of the SQL function. */
extern void writer_require_writable(const char *function);
/* Takes the sheet lock only. */
extern void writer_lock_sheet(int64 sheet_id);
/* The same without waiting; false when another transaction holds it. */
extern bool writer_try_lock_sheet(int64 sheet_id);
/* The lock's name in PostgreSQL's lock table. */
extern void writer_lock_tag(int64 sheet_id, LOCKTAG *tag);
/*
 * Takes the sheet lock and finds out the sheet's present state. Raises 40001 when a transaction-wide snapshot does not
 * see it.
 */
extern WriterSheet *writer_open(int64 sheet_id);
/* Forgets a sheet without changes, which can be opened anew. */
extern void writer_give_up(WriterSheet *ws);
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
/* Tries to have the entry's grid loaded, without any tile. */
extern void writer_meet_grid(WriterSheet *ws);
/*
 * Finds the tiles of the edits, NULL where a tile has no cells (or the edit none); meta knows the extent then, and the
 * axes are known. Returns the edits with physical places: themselves when the axes are the identity, otherwise copies.
 */
extern Edit *writer_prepare(WriterSheet *ws, Edit *edits, uint32 nedits, GridTile **tiles);
/* Whether the entry's grid, or its tiles, may be loaded from what this transaction sees. */
extern bool writer_may_load(const WriterSheet *ws);
/* The address of a cell in the sheet as it is at present. */
typedef struct WriterPlace
{
	uint32 row, col;
} WriterPlace;
/* The cells of a logical rectangle that hold something at present, own changes included; each of them once. Unless
 * `exact`, cells that own changes have emptied may be among them. In the current memory context. */
extern WriterPlace *writer_list_cells(WriterSheet *ws, const GridRect *rect, bool exact, Size *count);
/* Within a change, when the axes are known: inserts or deletes rows or columns, of which there have been as many as
 * `extent` tells. 54000 when the axes would become too long. */
extern void writer_change_axes(WriterSheet *ws, const AxesChange *change, uint32 extent);

/* A cell on its way through an append: looked up, then staged. */
typedef struct WriterCell
{
	GridTile *tile;			 /* of the state before own changes */
	uint32 *newest;			 /* where staged edits of it are noted; NULL: not noted */
	EditText content, style; /* what it holds now, own changes included; valid until the next edit is staged */
	uint32 readable;		 /* so many bytes may be read from where the content begins */
} WriterCell;

/* note: the edit, when it is staged, will be seen by later lookups. */
/* Of an edit with its physical place. */
extern void writer_lookup(WriterSheet *ws, const Edit *edit, GridTile *tile, bool note, WriterCell *cell);
extern bool writer_has_changes(const WriterSheet *ws);

/* Starts a change: from here on readers know that the transaction writes. meta may be altered after it. */
extern WriterChange *writer_begin_change(WriterSheet *ws, int64 origin);
/* The edits staged from this one on have gone. */
extern void writer_take_back(WriterSheet *ws, uint32 from);
/* The table of staged edits has gone: the next lookup notes them anew. */
extern void writer_forget_staged(WriterSheet *ws);
/* Makes room for n edits more in ws->staged. */
extern void writer_expect(WriterSheet *ws, uint32 n);
/* Stages an edit of the present change, with its physical place, for commit, with room for it in the shared grid. The
 * cell was just looked up; NULL when the edit has none. */
extern void writer_stage(WriterSheet *ws, const Edit *edit, bool padded, const WriterCell *cell);
/* A snapshot that sees everything that is committed, and the own changes. For writers, who hold the sheet lock. */
extern Snapshot writer_snapshot(void);

#endif
