/*
 * am_page.h - the page format of a row, and of all else on the pages of the access method sheetlog.
 *
 *   0             24                                               pd_lower      8136         8192
 *   | PageHeader  | BASE | RUN | ROW | ROW | ... | RUN | ROW | ... | hole         | AmSpecial |
 *                                \___________
 *                                            \
 *          ROW:  | tag | length | check | [natts] | [null bitmap] | column | column | ... |
 *                  u8    varint   u16     varint     1 bit each      am_row.h
 *
 * The page header is PostgreSQL's own, so checksums, base backups, full-page images and pageinspect's page_header work.
 * A data page is a sequence of records, without line pointers. Each begins with a tag byte: the kind of record in the
 * upper 2 bits, flags in the lower 6.
 *
 *   BASE   tag u32(xid) varint(natts) varint(n) svarint{n}      the first record, and the only one of its kind
 *   RUN    tag svarint(xid - xid of BASE) varint(cid) [u32(token) if AM_RUN_SPECULATIVE: 0 when settled]
 *   ROW    as above; the check is CRC-32C, folded, of what follows it, overflow pages included
 *   GAP    tag varint(n)                                        n rows were here; their numbers may not be reused yet
 *
 * A run is what one command of one transaction has inserted side by side: xmin and cmin are stored once for all its
 * rows. A row's TID is the block and the row's number among the ROWs and GAPs of its page, from 1, at most
 * AM_MAX_ROWS: what bitmap scans and GIN can hold. BASE has the integers of the page's first row, by column; other
 * rows store their difference, which is small for ids, times and sequence numbers.
 *
 * A long row (AM_ROW_OVERFLOW) has instead:  u32(first overflow block) varint(bytes of the body) beginning of the
 * body; the rest is in a chain of overflow pages, whose AmSpecial names the next one. It is not relative to BASE.
 *
 * A page is not changed after a row is written, except for these changes, all of which are WAL-logged:
 *   - a row's deleter (AM_ROW_DELETER in its tag): a slot in AmSpecial, or AM_DEAD when nobody can see it any more;
 *   - the mark of a speculative run;
 *   - frozen_end: all runs before it are visible to everybody, whatever their xid is;
 *   - VACUUM, with the cleanup lock, removes the bytes of dead rows, and frees pages that hold no row.
 *
 * Numbers are little-endian. varint is a prefix code of 1 to 9 bytes: the number of trailing zeros of the first byte is
 * the number of bytes that follow. svarint is the varint of the zigzag encoding. Readers may read up to 8 bytes past a
 * number, which on a page is never past its end. Functions here are pure: no locks, no buffers.
 */
#ifndef AM_PAGE_H
#define AM_PAGE_H

#include "postgres.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
#include "storage/bufpage.h"
#include "storage/off.h"

#define AM_MAGIC   0x4C53 /* "SL" */
#define AM_VERSION 1

typedef enum AmPageKind
{
	AM_PAGE_META = 1, /* block 0 */
	AM_PAGE_DATA = 2,
	AM_PAGE_OVERFLOW = 3, /* a part of a row that is longer than a page */
	AM_PAGE_FREE = 4	  /* holds nothing, no index entry points at it */
} AmPageKind;

#define AM_DELETERS 6

typedef struct AmDeleter
{
	TransactionId xid; /* InvalidTransactionId: the slot is free */
	CommandId cid;
} AmDeleter;

typedef struct AmSpecial
{
	uint16 magic;
	uint8 version;
	uint8 kind;
	uint16 frozen_end; /* DATA: runs that begin before this byte are frozen; OVERFLOW: 1 when writer is */
	uint16 closed;	   /* DATA: takes no more rows: VACUUM is done with it, or is about to free it */
	union
	{
		AmDeleter deleters[AM_DELETERS]; /* DATA */
		struct
		{
			TransactionId writer;
			BlockNumber next; /* of the same row; InvalidBlockNumber after the last */
		} overflow;
	};
} AmSpecial;

/* The contents of block 0. */
typedef struct AmMeta
{
	uint32 magic;
	uint32 version;
	BlockNumber tail;		  /* the page that takes new rows; InvalidBlockNumber: none yet */
	BlockNumber used;		  /* blocks from here on have never been used, even when the file has them */
	BlockNumber work_from;	  /* before it, VACUUM finds nothing to do */
	BlockNumber deleted_from; /* the same for what was deleted since the last VACUUM has begun */
	BlockNumber settled_end;  /* the blocks before it had `settled_rows` rows, as long as work_from is not less */
	uint64 settled_rows;
} AmMeta;

#define AM_META_MAGIC 0x53484C47

#define AM_MAX_ROWS		  (MaxHeapTuplesPerPage - 1)
#define AM_PAGE_OFFSET	  MaxHeapTuplesPerPage /* in a directory's TIDs: the page as a whole */
#define AM_BASE_COLUMNS	  32				   /* columns that BASE has at most */
#define AM_PAGE_BYTES	  (BLCKSZ - SizeOfPageHeaderData - MAXALIGN(sizeof(AmSpecial)))
#define AM_OVERFLOW_BYTES AM_PAGE_BYTES
#define AM_BASE_BOUND	  (1 + 4 + 9 + 9 * AM_BASE_COLUMNS)
#define AM_RUN_BOUND	  (1 + 9 + 9 + 4)
#define AM_ROW_HEAD_BOUND (1 + 9 + 2)
/* Longer bodies go to overflow pages, but for their beginning. */
#define AM_MAX_INLINE (AM_PAGE_BYTES - AM_BASE_BOUND - AM_RUN_BOUND - AM_ROW_HEAD_BOUND)
#define AM_MIN_FRONT  64

typedef enum AmRecordKind
{
	AM_BASE = 0x00,
	AM_RUN = 0x40,
	AM_ROW = 0x80,
	AM_GAP = 0xC0
} AmRecordKind;

#define AM_KIND_MASK	   0xC0
#define AM_RUN_SPECULATIVE 0x01
#define AM_ROW_NULLS	   0x01 /* body has a null bitmap */
#define AM_ROW_OVERFLOW	   0x02 /* a long row */
#define AM_ROW_NATTS	   0x04 /* body begins with its number of columns; else it is that of BASE */
#define AM_ROW_DELETER	   0x38 /* 0: none; 1 to AM_DELETERS: a slot; AM_DEAD */
#define AM_ROW_DELETER_POS 3
#define AM_DEAD			   7

static inline AmSpecial *
am_special(Page page)
{
	return (AmSpecial *) PageGetSpecialPointer(page);
}

static inline AmMeta *
am_meta(Page page)
{
	return (AmMeta *) PageGetContents(page);
}

/* ---- numbers ---- */

static inline uint64
am_load64(const uint8 *from)
{
	uint64 value;

	memcpy(&value, from, sizeof(value));
#ifdef WORDS_BIGENDIAN
	value = pg_bswap64(value);
#endif
	return value;
}

static inline uint32
am_load32(const uint8 *from)
{
	return (uint32) from[0] | (uint32) from[1] << 8 | (uint32) from[2] << 16 | (uint32) from[3] << 24;
}

static inline uint16
am_load16(const uint8 *from)
{
	return (uint16) (from[0] | from[1] << 8);
}

static inline uint8 *
am_store(uint8 *to, uint64 value, int nbytes)
{
	for (int i = 0; i < nbytes; i++, value >>= 8)
		*to++ = (uint8) value;
	return to;
}

/* Reads up to 8 bytes past the first. */
static inline const uint8 *
am_read_varint(const uint8 *from, uint64 *value)
{
	uint64 bytes;
	int n;

	if (likely(*from & 1))
	{
		*value = *from >> 1;
		return from + 1;
	}
	if (*from == 0)
	{
		*value = am_load64(from + 1);
		return from + 9;
	}
	n = pg_rightmost_one_pos32(*from) + 1;
	bytes = am_load64(from);
	if (n < 8)
		bytes &= (UINT64CONST(1) << (8 * n)) - 1;
	*value = bytes >> n;
	return from + n;
}

static inline uint8 *
am_write_varint(uint8 *to, uint64 value)
{
	int n = value == 0 ? 1 : pg_leftmost_one_pos64(value) / 7 + 1;

	if (n > 8)
	{
		*to = 0;
		return am_store(to + 1, value, 8);
	}
	return am_store(to, ((value << 1) | 1) << (n - 1), n);
}

static inline uint64
am_zigzag(int64 value)
{
	return ((uint64) value << 1) ^ (uint64) (value >> 63);
}

static inline int64
am_unzigzag(uint64 value)
{
	return (int64) (value >> 1) ^ -(int64) (value & 1);
}

/* ---- iterating over the rows of a page ---- */

typedef struct AmRun
{
	TransactionId xid; /* as stored, also when frozen */
	CommandId cid;
	bool frozen;
	bool speculative;
	uint32 token;
	uint16 pos; /* of its tag */
} AmRun;

typedef struct AmRow
{
	OffsetNumber offset;
	uint8 tag;
	uint16 pos;		   /* of the tag */
	uint16 check;	   /* of the body, and of what it has in overflow pages */
	const uint8 *body; /* on the page */
	uint16 length;
} AmRow;

typedef struct AmWalk
{
	Page page;
	const uint8 *next;
	const uint8 *end;
	TransactionId base_xid;
	const uint8 *base; /* of its numbers; NULL when the page is empty, or the record damaged */
	AmRun run;		   /* of the current row */
	AmRow row;
	OffsetNumber offset; /* of the last row, or the last one of a gap */
	const char *damage;	 /* what is wrong, and the walk has ended because of it */
} AmWalk;

extern void am_walk_begin(AmWalk *walk, Page page);
/* The next row that has not been taken out; false at the end. Raises no errors: see walk->damage. */
extern bool am_walk_next(AmWalk *walk);
/* Moves to the row of this number; from where the walk is, so that ascending numbers cost one walk. */
extern bool am_walk_to(AmWalk *walk, OffsetNumber offset);

/* The same from any number, on a page that has been locked anew but was pinned all the time. */
extern bool am_walk_seek(AmWalk *walk, OffsetNumber offset);

/* How many of a page's row numbers are taken, by rows or by what is left of them. */
extern OffsetNumber am_page_rows(Page page);

static inline int
am_row_deleter(uint8 tag)
{
	return (tag & AM_ROW_DELETER) >> AM_ROW_DELETER_POS;
}

/* The integers of BASE; returns their number, at most AM_BASE_COLUMNS. */
extern int am_read_base(const AmWalk *walk, int *natts, int64 *values);

/* ---- building pages (on images that will be WAL-logged) ---- */

extern void am_page_init(Page page, AmPageKind kind);
/* NULL when the page is what its kind says, else what is wrong. */
extern const char *am_page_damage(Page page, BlockNumber block);

static inline Size
am_page_room(Page page)
{
	PageHeader header = (PageHeader) page;

	return header->pd_upper - header->pd_lower;
}

/* The state of a page that rows are added to. */
typedef struct AmAppend
{
	Page page;
	uint8 *next;
	OffsetNumber rows;
	bool empty; /* no BASE yet */
	TransactionId base_xid;
	TransactionId run_xid; /* of the last run, InvalidTransactionId: begin a new one */
	CommandId run_cid;
	int natts;
	int nbase;
	int64 base[AM_BASE_COLUMNS];
} AmAppend;

/* False when the page is damaged. */
extern bool am_append_begin(AmAppend *append, Page page);
extern void am_append_base(AmAppend *append, TransactionId xid, int natts, const int64 *values, int n);
extern void am_append_run(AmAppend *append, TransactionId xid, CommandId cid, uint32 token);
/* Returns the row's number. */
extern OffsetNumber am_append_row(AmAppend *append, uint8 flags, const uint8 *body, uint32 length, uint16 check);
extern void am_append_end(AmAppend *append);

/* Takes out the bytes of dead rows; their numbers, too, when nothing can point at them. For VACUUM. */
extern void am_page_compact(Page page);

/* The check of a row: CRC-32C of its body folded to 16 bits. */
extern uint16 am_checksum(const void *body, Size length);
extern uint16 am_checksum_fold(uint32 crc);

#endif
