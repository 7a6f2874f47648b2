/* am_page.c - reading and building the pages of am_page.h. */
#include "postgres.h"

#include "am/page/am_page.h"
#include "port/pg_crc32c.h"

/* ---- walking ---- */

static bool
am_walk_damaged(AmWalk *walk, const char *what)
{
	walk->damage = what;
	walk->next = walk->end;
	return false;
}

/* BASE, which comes first. */
static bool
am_walk_base(AmWalk *walk)
{
	uint64 natts, n, value;
	const uint8 *base = walk->next + 5, *pos;

	if ((*walk->next & AM_KIND_MASK) != AM_BASE)
		return am_walk_damaged(walk, "the page does not begin with a base record");
	walk->base_xid = am_load32(walk->next + 1);
	pos = am_read_varint(base, &natts);
	pos = am_read_varint(pos, &n);
	if (n > AM_BASE_COLUMNS || natts > MaxHeapAttributeNumber)
		return am_walk_damaged(walk, "the base record has too many columns");
	while (n-- > 0 && pos < walk->end)
		pos = am_read_varint(pos, &value);
	if (pos > walk->end)
		return am_walk_damaged(walk, "the base record does not end");
	walk->base = base;
	walk->next = pos;
	return true;
}

void
am_walk_begin(AmWalk *walk, Page page)
{
	memset(walk, 0, sizeof(*walk));
	walk->page = page;
	walk->next = (const uint8 *) page + SizeOfPageHeaderData;
	walk->end = (const uint8 *) page + ((PageHeader) page)->pd_lower;
	if (walk->next < walk->end)
		(void) am_walk_base(walk);
}

static bool
am_walk_run(AmWalk *walk)
{
	const uint8 *pos = walk->next;
	uint64 difference, cid;
	AmRun *run = &walk->run;

	run->pos = pos - (const uint8 *) walk->page;
	run->frozen = run->pos < am_special(walk->page)->frozen_end;
	pos = am_read_varint(pos + 1, &difference);
	pos = am_read_varint(pos, &cid);
	run->xid = walk->base_xid + (TransactionId) am_unzigzag(difference);
	run->cid = (CommandId) cid;
	run->token = 0;
	if (*(walk->next) & AM_RUN_SPECULATIVE)
	{
		run->token = am_load32(pos);
		pos += 4;
	}
	if (pos > walk->end)
		return am_walk_damaged(walk, "a run record does not end");
	run->speculative = run->token != 0;
	run->frozen = run->frozen || run->xid == FrozenTransactionId;
	walk->next = pos;
	return true;
}

static bool
am_walk_row(AmWalk *walk)
{
	AmRow *row = &walk->row;
	uint64 length;
	const uint8 *pos = am_read_varint(walk->next + 1, &length);

	if (unlikely(walk->run.pos == 0))
		return am_walk_damaged(walk, "a row has no run record before it");
	if (unlikely(length > BLCKSZ || pos + 2 + length > walk->end))
		return am_walk_damaged(walk, "a row does not end");
	if (unlikely(++walk->offset > AM_MAX_ROWS))
		return am_walk_damaged(walk, "the page has too many rows");
	row->offset = walk->offset;
	row->tag = *walk->next;
	row->pos = walk->next - (const uint8 *) walk->page;
	row->check = am_load16(pos);
	row->body = pos + 2;
	row->length = (uint16) length;
	walk->next = pos + 2 + length;
	return true;
}

static bool
am_walk_gap(AmWalk *walk)
{
	uint64 n;
	const uint8 *pos = am_read_varint(walk->next + 1, &n);

	if (pos > walk->end || n == 0 || walk->offset + n > AM_MAX_ROWS)
		return am_walk_damaged(walk, "the record of removed rows is wrong");
	walk->offset += n;
	walk->next = pos;
	return true;
}

bool
am_walk_next(AmWalk *walk)
{
	while (walk->next < walk->end)
	{
		switch (*walk->next & AM_KIND_MASK)
		{
			case AM_ROW:
				return am_walk_row(walk);
			case AM_RUN:
				if (!am_walk_run(walk))
					return false;
				break;
			case AM_GAP:
				if (!am_walk_gap(walk))
					return false;
				break;
			default:
				return am_walk_damaged(walk, "the page has a second base record");
		}
	}
	return false;
}

bool
am_walk_to(AmWalk *walk, OffsetNumber offset)
{
	while (walk->row.offset < offset)
		if (!am_walk_next(walk))
			return false;
	return walk->row.offset == offset;
}

bool
am_walk_seek(AmWalk *walk, OffsetNumber offset)
{
	if (walk->row.offset == 0 || offset < walk->row.offset || walk->damage != NULL)
	{
		am_walk_begin(walk, walk->page);
		return am_walk_to(walk, offset);
	}
	/* What may have changed since: rows at the end, marks, and what is frozen. */
	walk->end = (const uint8 *) walk->page + ((PageHeader) walk->page)->pd_lower;
	walk->run.frozen = walk->run.xid == FrozenTransactionId || walk->run.pos < am_special(walk->page)->frozen_end;
	walk->row.tag = *((const uint8 *) walk->page + walk->row.pos);
	return am_walk_to(walk, offset);
}

OffsetNumber
am_page_rows(Page page)
{
	AmWalk walk;

	am_walk_begin(&walk, page);
	while (am_walk_next(&walk))
		;
	return walk.offset;
}

int
am_read_base(const AmWalk *walk, int *natts, int64 *values)
{
	uint64 count, n, value;
	const uint8 *pos;

	*natts = 0;
	if (walk->base == NULL)
		return 0;
	pos = am_read_varint(walk->base, &count);
	pos = am_read_varint(pos, &n);
	for (uint64 i = 0; i < n; i++)
	{
		pos = am_read_varint(pos, &value);
		values[i] = am_unzigzag(value);
	}
	*natts = (int) count;
	return (int) n;
}

/* ---- building ---- */

void
am_page_init(Page page, AmPageKind kind)
{
	AmSpecial *special;

	PageInit(page, BLCKSZ, sizeof(AmSpecial));
	special = am_special(page);
	special->magic = AM_MAGIC;
	special->version = AM_VERSION;
	special->kind = kind;
	if (kind == AM_PAGE_META)
	{
		*am_meta(page) = (AmMeta){AM_META_MAGIC, AM_VERSION, InvalidBlockNumber, 1, 1, 1, 1, 0};
		((PageHeader) page)->pd_lower = (char *) (am_meta(page) + 1) - (char *) page;
	}
}

const char *
am_page_damage(Page page, BlockNumber block)
{
	PageHeader header = (PageHeader) page;
	AmSpecial *special;

	if (header->pd_special == BLCKSZ)
		return "the page has heap's format, which pg_sheet 0.1 used";
	if (header->pd_special != BLCKSZ - MAXALIGN(sizeof(AmSpecial)) || header->pd_upper != header->pd_special ||
		header->pd_lower < SizeOfPageHeaderData || header->pd_lower > header->pd_upper ||
		PageGetPageSize(page) != BLCKSZ)
		return "the page header is wrong";
	special = am_special(page);
	if (special->magic != AM_MAGIC)
		return "the page is not one of access method sheetlog";
	if (special->version != AM_VERSION)
		return "the page has another version of the format";
	if ((special->kind == AM_PAGE_META) != (block == 0) || special->kind < AM_PAGE_META || special->kind > AM_PAGE_FREE)
		return "the page is of the wrong kind";
	if (block == 0 && (am_meta(page)->magic != AM_META_MAGIC || am_meta(page)->version != AM_VERSION))
		return "the contents of the metapage are wrong";
	return NULL;
}

bool
am_append_begin(AmAppend *append, Page page)
{
	AmWalk walk;

	am_walk_begin(&walk, page);
	append->page = page;
	append->next = (uint8 *) page + ((PageHeader) page)->pd_lower;
	append->empty = walk.base == NULL;
	append->base_xid = walk.base_xid;
	append->nbase = am_read_base(&walk, &append->natts, append->base);
	while (am_walk_next(&walk))
		;
	append->rows = walk.offset;
	/* Rows after a frozen or speculative run, or after a compaction, get a run of their own. */
	append->run_xid = walk.run.frozen || walk.run.speculative ? InvalidTransactionId : walk.run.xid;
	append->run_cid = walk.run.cid;
	return walk.damage == NULL;
}

void
am_append_base(AmAppend *append, TransactionId xid, int natts, const int64 *values, int n)
{
	uint8 *pos = append->next;

	Assert(append->empty);
	*pos++ = AM_BASE;
	pos = am_store(pos, xid, 4);
	pos = am_write_varint(pos, natts);
	pos = am_write_varint(pos, n);
	for (int i = 0; i < n; i++)
	{
		pos = am_write_varint(pos, am_zigzag(values[i]));
		append->base[i] = values[i];
	}
	append->empty = false;
	append->base_xid = xid;
	append->natts = natts;
	append->nbase = n;
	append->next = pos;
}

void
am_append_run(AmAppend *append, TransactionId xid, CommandId cid, uint32 token)
{
	uint8 *pos = append->next;

	*pos++ = AM_RUN | (token != 0 ? AM_RUN_SPECULATIVE : 0);
	pos = am_write_varint(pos, am_zigzag((int32) (xid - append->base_xid)));
	pos = am_write_varint(pos, cid);
	if (token != 0)
		pos = am_store(pos, token, 4);
	append->run_xid = token != 0 ? InvalidTransactionId : xid;
	append->run_cid = cid;
	append->next = pos;
}

OffsetNumber
am_append_row(AmAppend *append, uint8 flags, const uint8 *body, uint32 length, uint16 check)
{
	uint8 *pos = append->next;

	*pos++ = AM_ROW | flags;
	pos = am_write_varint(pos, length);
	pos = am_store(pos, check, 2);
	memcpy(pos, body, length);
	append->next = pos + length;
	return ++append->rows;
}

void
am_append_end(AmAppend *append)
{
	PageHeader header = (PageHeader) append->page;

	header->pd_lower = (char *) append->next - (char *) append->page;
	Assert(header->pd_lower <= header->pd_upper);
}

/*
 * Dead rows become GAP records, neighbours one, and those at the end nothing. Runs without rows go with them; a run
 * that rows follow is kept as it is. The bytes before frozen_end are frozen afterwards as before: it moves with them.
 */
void
am_page_compact(Page page)
{
	PGAlignedBlock copy;
	AmSpecial *special = am_special(page);
	uint8 *to = (uint8 *) page + SizeOfPageHeaderData;
	uint16 frozen_end = 0, old_frozen_end = special->frozen_end, run_pos = 0;
	OffsetNumber written = 0;
	AmWalk walk;

	memcpy(copy.data, page, BLCKSZ);
	am_walk_begin(&walk, copy.data);
	memcpy(to, copy.data + SizeOfPageHeaderData, walk.next - (const uint8 *) copy.data - SizeOfPageHeaderData);
	to += walk.next - (const uint8 *) copy.data - SizeOfPageHeaderData;
	while (am_walk_next(&walk))
	{
		const uint8 *row = (const uint8 *) copy.data + walk.row.pos;

		if (am_row_deleter(walk.row.tag) == AM_DEAD)
			continue;
		if (walk.row.offset > written + 1)
		{
			*to++ = AM_GAP;
			to = am_write_varint(to, walk.row.offset - written - 1);
		}
		if (walk.run.pos != run_pos)
		{
			const uint8 *run = (const uint8 *) copy.data + walk.run.pos;
			uint64 ignored;
			const uint8 *run_end = am_read_varint(am_read_varint(run + 1, &ignored), &ignored);

			run_end += *run & AM_RUN_SPECULATIVE ? 4 : 0;
			memcpy(to, run, run_end - run);
			run_pos = walk.run.pos;
			if (run_pos < old_frozen_end)
				frozen_end = to - (uint8 *) page + 1;
			to += run_end - run;
		}
		memcpy(to, row, walk.next - row);
		to += walk.next - row;
		written = walk.row.offset;
	}
	special->frozen_end = frozen_end;
	((PageHeader) page)->pd_lower = written == 0 ? SizeOfPageHeaderData : to - (uint8 *) page;
	memset((char *) page + ((PageHeader) page)->pd_lower, 0,
		   ((PageHeader) page)->pd_upper - ((PageHeader) page)->pd_lower);
}

uint16
am_checksum_fold(uint32 crc)
{
	return (uint16) (crc ^ (crc >> 16));
}

uint16
am_checksum(const void *body, Size length)
{
	pg_crc32c crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, body, length);
	FIN_CRC32C(crc);
	return am_checksum_fold(crc);
}
