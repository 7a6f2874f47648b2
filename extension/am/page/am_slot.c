/*
 * am_slot.c - the slot of tables that use the access method sheetlog.
 *
 * Holds a pin on the row's page and decodes columns when they are asked for, in place where alignment allows it. It
 * begins with a virtual slot, whose memory it uses when it must stand alone.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "am/page/am_row.h"
#include "compat.h"
#include "am/page/am_space.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

static void
am_slot_forget_page(AmSlot *slot)
{
	if (BufferIsValid(slot->buffer))
		ReleaseBuffer(slot->buffer);
	slot->buffer = InvalidBuffer;
}

static void
am_slot_reset_arena(AmSlot *slot)
{
	if (slot->arena_used)
		MemoryContextReset(slot->arena);
	slot->arena_used = false;
}

static void *
am_slot_alloc(AmSlot *slot, Size size)
{
	if (slot->arena == NULL)
		slot->arena = AllocSetContextCreate(slot->virtual.base.tts_mcxt, "sheetlog slot", ALLOCSET_DEFAULT_SIZES);
	slot->arena_used = true;
	return MemoryContextAllocHuge(slot->arena, size);
}

static void
am_slot_init(TupleTableSlot *slot)
{
	AmSlot *ls = (AmSlot *) slot;

	ls->buffer = InvalidBuffer;
}

static void
am_slot_release(TupleTableSlot *slot)
{
	AmSlot *ls = (AmSlot *) slot;

	if (ls->arena != NULL)
		MemoryContextDelete(ls->arena);
	ls->arena = NULL;
	ls->arena_used = false;
}

/* Keeps the pin when the next row is of the same page. */
static void
am_slot_empty(TupleTableSlot *slot)
{
	AmSlot *ls = (AmSlot *) slot;

	if (unlikely(TTS_SHOULDFREE(slot)))
	{
		pfree(ls->virtual.data);
		ls->virtual.data = NULL;
		slot->tts_flags &= ~TTS_FLAG_SHOULDFREE;
	}
	am_slot_reset_arena(ls);
	slot->tts_nvalid = 0;
	slot->tts_flags |= TTS_FLAG_EMPTY;
	ItemPointerSetInvalid(&slot->tts_tid);
	ls->stored = false;
	ls->next = NULL;
}

static void
am_slot_clear(TupleTableSlot *slot)
{
	am_slot_empty(slot);
	am_slot_forget_page((AmSlot *) slot);
}

/* ---- storing ---- */

static void
am_slot_read_base(AmSlot *slot, const AmSource *source)
{
	AmWalk walk;

	am_walk_begin(&walk, source->page);
	slot->nbase = am_read_base(&walk, &slot->base_natts, slot->base);
}

/* Takes the page: pins it once, and reads its BASE once, for all its rows. */
static void
am_slot_take_page(AmSlot *slot, const AmSource *source)
{
	if (BufferIsValid(source->buffer) && slot->buffer == source->buffer)
		return;
	am_slot_forget_page(slot);
	if (BufferIsValid(source->buffer))
		IncrBufferRefCount(source->buffer);
	slot->buffer = source->buffer;
	am_slot_read_base(slot, source);
}

static void
am_slot_check(AmSlot *slot)
{
	if (unlikely(slot->next > slot->end))
		ereport(
			ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("row (%u,%u) of table \"%s\" is damaged", ItemPointerGetBlockNumber(&slot->virtual.base.tts_tid),
					ItemPointerGetOffsetNumber(&slot->virtual.base.tts_tid), RelationGetRelationName(slot->rel)),
			 errhint("Check the table with sheet.am_check().")));
}

/* Numbers at the beginning of the body. */
static void
am_slot_open_body(AmSlot *slot)
{
	uint64 value;

	slot->overflow = InvalidBlockNumber;
	if (unlikely(slot->tag & AM_ROW_OVERFLOW))
	{
		slot->overflow = am_load32(slot->next);
		slot->next = am_read_varint(slot->next + 4, &value);
		slot->overflow_bytes = value - (slot->end - slot->next);
		if (slot->overflow_bytes == 0)
			slot->overflow = InvalidBlockNumber;
	}
	slot->natts = slot->base_natts;
	if (unlikely(slot->tag & (AM_ROW_NATTS | AM_ROW_OVERFLOW)))
	{
		slot->next = am_read_varint(slot->next, &value);
		slot->natts = (int) Min(value, MaxHeapAttributeNumber + 1);
	}
	slot->nullmap = NULL;
	if (unlikely(slot->natts > MaxHeapAttributeNumber))
		slot->next = slot->end + 1;
}

static void
am_slot_read_deleter(AmSlot *slot, Page page)
{
	int deleter = am_row_deleter(slot->tag);

	slot->xmax = InvalidTransactionId;
	slot->cmax = 0;
	if (deleter > 0 && deleter <= AM_DELETERS)
	{
		slot->xmax = am_special(page)->deleters[deleter - 1].xid;
		slot->cmax = am_special(page)->deleters[deleter - 1].cid;
	}
}

static void
am_slot_copy_body(AmSlot *slot)
{
	Size size = slot->end - slot->next;
	uint8 *copy = am_slot_alloc(slot, size + sizeof(uint64));

	memcpy(copy, slot->next, size);
	slot->next = copy;
	slot->end = copy + size;
}

void
am_slot_store_at(TupleTableSlot *slot, Relation rel, const AmSource *source, const AmRowRef *ref)
{
	AmSlot *ls = (AmSlot *) slot;
	const uint8 *row = (const uint8 *) source->page + ref->pos;
	uint64 length;

	Assert(am_slot_is(slot));
	am_slot_empty(slot);
	am_slot_take_page(ls, source);
	ls->rel = rel;
	ls->tag = *row;
	ls->next = am_read_varint(row + 1, &length) + 2;
	ls->end = ls->next + length;
	ls->xmin = ref->xmin;
	ls->cmin = ref->cmin;
	am_slot_read_deleter(ls, source->page);
	if (BufferIsInvalid(source->buffer))
		am_slot_copy_body(ls);
	ls->stored = true;
	am_slot_open_body(ls);
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_tableOid = RelationGetRelid(rel);
	ItemPointerSet(&slot->tts_tid, source->block, ref->offset);
}

void
am_slot_store(TupleTableSlot *slot, Relation rel, const AmSource *source, const AmWalk *walk)
{
	AmRowRef ref = am_row_ref(walk);

	am_slot_store_at(slot, rel, source, &ref);
}

/* ---- decoding ---- */

/*
 * Copies the row's part on its page and those on overflow pages into one piece of memory. The caller's memory context
 * may be one from which nothing can be freed: sorts use a BumpContext, from PostgreSQL 17 on. Reading pages may open
 * files, which frees memory. So the slot's own context is used.
 */
static void
am_slot_assemble(AmSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(slot->virtual.base.tts_mcxt);
	Size head = slot->end - slot->next;
	uint8 *whole = am_slot_alloc(slot, head + slot->overflow_bytes + sizeof(uint64));

	memcpy(whole, slot->next, head);
	am_space_read_overflow(slot->rel, slot->overflow, whole + head, slot->overflow_bytes);
	MemoryContextSwitchTo(old);
	slot->overflow = InvalidBlockNumber;
	slot->next = whole;
	slot->end = whole + head + slot->overflow_bytes;
}

/* Makes sure that this many bytes are there, as far as the row has them. */
static inline void
am_slot_need(AmSlot *slot, Size bytes)
{
	if (unlikely(slot->overflow != InvalidBlockNumber && slot->end - slot->next < bytes))
		am_slot_assemble(slot);
}

/*
 * The null bitmap of a long row with many columns may go on in overflow pages. Those of a row that was never committed
 * may be gone, so it is not read before a column is asked for.
 */
static void
am_slot_open_nulls(AmSlot *slot)
{
	Size bytes = (slot->natts + 7) / 8;

	am_slot_need(slot, bytes);
	slot->nullmap = slot->next;
	slot->next += bytes;
	am_slot_check(slot);
}

static Datum
am_decode_varlena(AmSlot *slot, Form_pg_attribute att)
{
	uintptr_t alignment = att->attalign == TYPALIGN_DOUBLE ? ALIGNOF_DOUBLE : ALIGNOF_INT;
	const uint8 *data;
	uint32 header;
	Size size;
	void *copy;

	am_slot_need(slot, 1 + VARHDRSZ);
	if (*slot->next != AM_LONG)
	{
		am_slot_need(slot, VARSIZE_1B(slot->next));
		data = slot->next;
		slot->next += VARSIZE_1B(data);
		return PointerGetDatum(data);
	}
	slot->next++;
	memcpy(&header, slot->next, sizeof(header));
	size = VARSIZE_4B(&header);
	am_slot_need(slot, size);
	data = slot->next;
	slot->next += size;
	am_slot_check(slot);
	if (((uintptr_t) data & (alignment - 1)) == 0)
		return PointerGetDatum(data);
	copy = am_slot_alloc(slot, size);
	memcpy(copy, data, size);
	return PointerGetDatum(copy);
}

static Datum
am_decode_fixed(AmSlot *slot, Form_pg_attribute att)
{
	const uint8 *data;
	void *copy;

	am_slot_need(slot, att->attlen);
	data = slot->next;
	slot->next += att->attlen;
	if (att->attalign == TYPALIGN_CHAR)
		return PointerGetDatum(data);
	am_slot_check(slot);
	copy = am_slot_alloc(slot, att->attlen);
	memcpy(copy, data, att->attlen);
	return PointerGetDatum(copy);
}

static inline Datum
am_decode_integer(AmSlot *slot, int column, Form_pg_attribute att)
{
	uint64 value;
	int64 number;

	am_slot_need(slot, 9);
	slot->next = am_read_varint(slot->next, &value);
	number = am_unzigzag(value);
	if (column < slot->nbase && !(slot->tag & AM_ROW_OVERFLOW))
		number = (int64) ((uint64) number + (uint64) slot->base[column]);
	if (att->attlen == 8)
		return Int64GetDatum(number);
	return att->attlen == 4 ? Int32GetDatum((int32) number) : Int16GetDatum((int16) number);
}

static Datum
am_decode_column(AmSlot *slot, int column, Form_pg_attribute att)
{
	const uint8 *data;

	if (att->attbyval && att->attlen > 1)
		return am_decode_integer(slot, column, att);
	if (att->attlen == -1)
		return am_decode_varlena(slot, att);
	if (!att->attbyval && att->attlen > 0)
		return am_decode_fixed(slot, att);
	am_slot_need(slot, 1);
	if (att->attbyval)
		return CharGetDatum(*(const char *) slot->next++);
	if (slot->overflow != InvalidBlockNumber)
		am_slot_assemble(slot);
	data = slot->next;
	slot->next += strlen((const char *) data) + 1;
	return PointerGetDatum(data);
}

static void
am_slot_getsomeattrs(TupleTableSlot *slot, int natts)
{
	AmSlot *ls = (AmSlot *) slot;
	TupleDesc desc = slot->tts_tupleDescriptor;
	int stored = Min(natts, ls->natts);

	Assert(!TTS_EMPTY(slot));
	if ((ls->tag & AM_ROW_NULLS) && ls->nullmap == NULL)
		am_slot_open_nulls(ls);
	for (int i = slot->tts_nvalid; i < stored; i++)
	{
		bool isnull = ls->nullmap != NULL && (ls->nullmap[i >> 3] & (1 << (i & 7))) != 0;

		slot->tts_isnull[i] = isnull;
		slot->tts_values[i] = isnull ? (Datum) 0 : am_decode_column(ls, i, TupleDescAttr(desc, i));
		am_slot_check(ls);
	}
	if (stored < natts)
		slot_getmissingattrs(slot, Max(stored, slot->tts_nvalid), natts);
	slot->tts_nvalid = natts;
}

/* Of a long value that is decoded next, and whose head is here; 0 when it is not so. Nulls are left to those who
 * decode.
 */
static Size
am_slot_peek_size(const AmSlot *slot, int column)
{
	uint32 head[VARHDRSZ_COMPRESSED / sizeof(uint32)];

	if (slot->virtual.base.tts_nvalid != column - 1 || column > slot->natts || (slot->tag & AM_ROW_NULLS) ||
		slot->end - slot->next <= VARHDRSZ_COMPRESSED || *slot->next != AM_LONG)
		return 0;
	memcpy(head, slot->next + 1, sizeof(head));
	return VARATT_IS_4B_C(head) ? VARDATA_COMPRESSED_GET_EXTSIZE(head) + VARHDRSZ : VARSIZE_4B(head);
}

Size
am_slot_raw_size(TupleTableSlot *slot, int column)
{
	AmSlot *ls = (AmSlot *) slot;
	Datum value;
	bool isnull;
	Size size;

	Assert(am_slot_is(slot));
	if (column > 1)
		slot_getsomeattrs(slot, column - 1);
	size = am_slot_peek_size(ls, column);
	if (size > 0)
		return size;
	value = slot_getattr(slot, column, &isnull);
	return isnull ? 0 : toast_raw_datum_size(value);
}

static Datum
am_slot_getsysattr(TupleTableSlot *slot, int attnum, bool *isnull)
{
	AmSlot *ls = (AmSlot *) slot;

	Assert(!TTS_EMPTY(slot));
	*isnull = false;
	if (ls->stored)
	{
		switch (attnum)
		{
			case MinTransactionIdAttributeNumber:
				return TransactionIdGetDatum(ls->xmin);
			case MaxTransactionIdAttributeNumber:
				return TransactionIdGetDatum(ls->xmax);
			case MinCommandIdAttributeNumber:
				return CommandIdGetDatum(ls->cmin);
			case MaxCommandIdAttributeNumber:
				return CommandIdGetDatum(ls->cmax);
			default:
				break;
		}
	}
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot retrieve a system column in this context")));
	return (Datum) 0; /* not reached */
}

static void
am_slot_materialize(TupleTableSlot *slot)
{
	AmSlot *ls = (AmSlot *) slot;

	Assert(!TTS_EMPTY(slot));
	if (TTS_SHOULDFREE(slot))
		return;
	slot_getallattrs(slot);
	TTSOpsVirtual.materialize(slot);
	am_slot_reset_arena(ls);
	am_slot_forget_page(ls);
}

static void
am_slot_copyslot(TupleTableSlot *to, TupleTableSlot *from)
{
	TupleDesc desc = from->tts_tupleDescriptor;

	am_slot_clear(to);
	slot_getallattrs(from);
	for (int i = 0; i < desc->natts; i++)
	{
		to->tts_values[i] = from->tts_values[i];
		to->tts_isnull[i] = from->tts_isnull[i];
	}
	to->tts_nvalid = desc->natts;
	to->tts_flags &= ~TTS_FLAG_EMPTY;
	to->tts_tid = from->tts_tid;
	to->tts_tableOid = from->tts_tableOid;
	if (am_slot_is(from))
	{
		AmSlot *source = (AmSlot *) from, *target = (AmSlot *) to;

		target->stored = source->stored;
		target->xmin = source->xmin;
		target->cmin = source->cmin;
		target->xmax = source->xmax;
		target->cmax = source->cmax;
	}
	am_slot_materialize(to);
}

static HeapTuple
am_slot_copy_heap_tuple(TupleTableSlot *slot)
{
	HeapTuple tuple;

	slot_getallattrs(slot);
	tuple = heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
	tuple->t_self = slot->tts_tid;
	tuple->t_tableOid = slot->tts_tableOid;
	return tuple;
}

static MinimalTuple
am_slot_copy_minimal_tuple(TupleTableSlot *slot COMPAT_SLOT_EXTRA)
{
	slot_getallattrs(slot);
	return compat_form_minimal_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
}

const TupleTableSlotOps AmSlotOps = {.base_slot_size = sizeof(AmSlot),
									 .init = am_slot_init,
									 .release = am_slot_release,
									 .clear = am_slot_clear,
									 .getsomeattrs = am_slot_getsomeattrs,
									 .getsysattr = am_slot_getsysattr,
									 .materialize = am_slot_materialize,
									 .copyslot = am_slot_copyslot,
									 .get_heap_tuple = NULL,
									 .get_minimal_tuple = NULL,
									 .copy_heap_tuple = am_slot_copy_heap_tuple,
									 .copy_minimal_tuple = am_slot_copy_minimal_tuple};
