/*
 * am_row.h - rows as bytes, and the slot that reads them.
 *
 *   body := [varint(natts)] [null bitmap] column...           see AM_ROW_NATTS and AM_ROW_NULLS
 *
 * A column is stored by its length and passing, not by its type, as PostgreSQL does it:
 *   by value, 1 byte          the byte
 *   by value, 2, 4, 8 bytes   svarint of the difference to BASE's value of the column (to 0 beyond BASE, or in an
 *                             overflow row)
 *   fixed length              the bytes
 *   varlena, short header     as it is
 *   varlena, long             AM_LONG, then header (compressed or not) and data as they are, unaligned
 * A null takes no bytes. Values out of line are fetched before; nothing points out of the row but its overflow pages.
 */
#ifndef AM_ROW_H
#define AM_ROW_H

#include "postgres.h"
#include "access/tupdesc.h"
#include "executor/tuptable.h"
#include "am/page/am_page.h"
#include "storage/buf.h"
#include "utils/rel.h"

#define AM_LONG 0x02 /* no short varlena begins with it */

/* A row ready to be stored: values that point at nothing outside of memory. */
typedef struct AmPrepared
{
	int natts;
	bool nulls;
	Size bound; /* of the body */
	Size least; /* bytes that the body takes at least */
	Datum *values;
	bool *isnull;
	/* of a row that is encoded already, since it has overflow pages; else NULL */
	uint8 *encoded;
	uint32 length;
	uint8 flags;
	uint16 check;
} AmPrepared;

/* May raise errors, read other tables and compress. The result is of the current memory context. */
extern void am_prepare_row(Relation rel, TupleTableSlot *slot, AmPrepared *row);
/* What BASE should hold for a page that begins with the row. */
extern int am_base_of(TupleDesc desc, const AmPrepared *row, int64 *base);
/* Writes the body and returns its end. base_natts: of BASE; the flags to store are in *flags. */
extern uint8 *am_encode_row(TupleDesc desc, const AmPrepared *row, const int64 *base, int nbase, int base_natts,
							uint8 *to, uint8 *flags);

/* ---- the slot ---- */

typedef struct AmSlot
{
	VirtualTupleTableSlot virtual; /* must be first: values and memory of materialised slots are its */
	Buffer buffer;				   /* pinned; InvalidBuffer: body is not on a page */
	bool stored;				   /* holds a row of a table: system columns are known */
	TransactionId xmin;			   /* FrozenTransactionId when frozen */
	CommandId cmin;
	TransactionId xmax; /* of a deleter, committed or not */
	CommandId cmax;
	/* decoding */
	const uint8 *next; /* of column tts_nvalid */
	const uint8 *end;
	const uint8 *nullmap;
	int natts;
	uint8 tag;
	BlockNumber overflow; /* what is behind `end`; InvalidBlockNumber: nothing */
	Size overflow_bytes;
	int nbase;
	int base_natts;
	int64 base[AM_BASE_COLUMNS];
	MemoryContext arena; /* copies of values that the page does not hold aligned */
	bool arena_used;
	Relation rel; /* for overflow pages; valid while the row is not materialised */
} AmSlot;

extern const TupleTableSlotOps AmSlotOps;

/*
 * A page whose rows are stored in slots. In recovery the bytes of a page move without waiting for pins (generic WAL
 * records are replayed with a plain lock), so rows are copied there, from a copy of the page or while it is locked.
 */
typedef struct AmSource
{
	Page page;
	BlockNumber block;
	Buffer buffer; /* pinned; InvalidBuffer: rows have to be copied */
} AmSource;

/* Puts the walk's row into the slot, which takes a pin of its own. */
extern void am_slot_store(TupleTableSlot *slot, Relation rel, const AmSource *source, const AmWalk *walk);
/* The same for a row whose position on the page is known. */
typedef struct AmRowRef
{
	uint16 pos; /* of the tag */
	OffsetNumber offset;
	TransactionId xmin; /* FrozenTransactionId when frozen */
	CommandId cmin;
} AmRowRef;
extern void am_slot_store_at(TupleTableSlot *slot, Relation rel, const AmSource *source, const AmRowRef *ref);
/* Bytes of a value of a varlena type before compression, with its header; 0 for a null. Mostly no overflow page is
 * read.
 */
extern Size am_slot_raw_size(TupleTableSlot *slot, int column);

static inline AmRowRef
am_row_ref(const AmWalk *walk)
{
	return (AmRowRef){walk->row.pos, walk->row.offset, walk->run.frozen ? FrozenTransactionId : walk->run.xid,
					  walk->run.cid};
}

static inline bool
am_slot_is(const TupleTableSlot *slot)
{
	return slot->tts_ops == &AmSlotOps;
}

#endif
