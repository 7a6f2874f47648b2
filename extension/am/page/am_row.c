/* am_row.c - rows to bytes; the way back is the slot's, in am_slot.c. See am_row.h. */
#include "postgres.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/toast_compression.h"
#include "access/toast_internals.h"
#include "catalog/pg_type.h"
#include "am/page/am_row.h"
#include "utils/memutils.h"

/* Shorter values are not worth the time of a compressor. */
#define AM_COMPRESS_FROM 512

/* ---- preparing ---- */

static Datum
am_compress(Form_pg_attribute att, Datum value)
{
	Datum compressed;

	if (att->attstorage == TYPSTORAGE_PLAIN || att->attstorage == TYPSTORAGE_EXTERNAL ||
		VARATT_IS_EXTENDED(DatumGetPointer(value)) || VARSIZE_ANY_EXHDR(DatumGetPointer(value)) < AM_COMPRESS_FROM)
		return value;
	compressed = toast_compress_datum(value, att->attcompression);
	return DatumGetPointer(compressed) != NULL ? compressed : value;
}

/* Flat and in line. */
static Datum
am_prepare_varlena(Form_pg_attribute att, Datum value)
{
	struct varlena *data = (struct varlena *) DatumGetPointer(value);

	if (VARATT_IS_EXTERNAL(data))
		data = detoast_external_attr(data);
	return am_compress(att, PointerGetDatum(data));
}

/* Adds the bytes that the column takes to the bounds. */
static void
am_prepare_column(Form_pg_attribute att, AmPrepared *row, Datum *value)
{
	Size size;

	if (att->attbyval)
	{
		row->bound += 9;
		row->least += 1;
		return;
	}
	if (att->attlen == -1)
	{
		*value = am_prepare_varlena(att, *value);
		size = VARSIZE_ANY(DatumGetPointer(*value));
		row->bound += 1;
		row->least += Max(size, VARHDRSZ) - VARHDRSZ;
	}
	else
	{
		size = att->attlen == -2 ? strlen(DatumGetCString(*value)) + 1 : att->attlen;
		row->least += size;
	}
	row->bound += size;
}

static void
am_row_too_large(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("row is too large for table \"%s\"", RelationGetRelationName(rel)),
			 errdetail("Tables using access method \"sheetlog\" hold rows of up to %zu bytes.", (Size) MaxAllocSize)));
}

void
am_prepare_row(Relation rel, TupleTableSlot *slot, AmPrepared *row)
{
	TupleDesc desc = RelationGetDescr(rel);

	slot_getallattrs(slot);
	row->natts = desc->natts;
	row->values = palloc(sizeof(Datum) * Max(desc->natts, 1));
	row->isnull = palloc(sizeof(bool) * Max(desc->natts, 1));
	row->nulls = false;
	row->encoded = NULL;
	row->bound = 9 + (desc->natts + 7) / 8;
	row->least = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		row->isnull[i] = slot->tts_isnull[i] || att->attisdropped;
		row->values[i] = slot->tts_values[i];
		row->nulls |= row->isnull[i];
		if (!row->isnull[i])
			am_prepare_column(att, row, &row->values[i]);
		if (row->bound > MaxAllocSize)
			am_row_too_large(rel);
	}
}

/* ---- encoding ---- */

static inline int64
am_integer(Form_pg_attribute att, Datum value)
{
	switch (att->attlen)
	{
		case 2:
			return DatumGetInt16(value);
		case 4:
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

static inline bool
am_is_integer(Form_pg_attribute att)
{
	return att->attbyval && att->attlen > 1;
}

int
am_base_of(TupleDesc desc, const AmPrepared *row, int64 *base)
{
	int n = 0;

	for (int i = 0; i < Min(desc->natts, AM_BASE_COLUMNS); i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		base[i] = am_is_integer(att) && !row->isnull[i] ? am_integer(att, row->values[i]) : 0;
		if (base[i] != 0)
			n = i + 1;
	}
	return n;
}

/* Types that are stored plain are read without a look at their header: it stays a long one. */
static uint8 *
am_encode_varlena(Form_pg_attribute att, uint8 *to, Datum value)
{
	struct varlena *data = (struct varlena *) DatumGetPointer(value);
	Size size = VARSIZE_ANY(data);

	if (VARATT_IS_SHORT(data))
	{
		memcpy(to, data, size);
		return to + size;
	}
	if (att->attstorage != TYPSTORAGE_PLAIN && VARATT_CAN_MAKE_SHORT(data))
	{
		size = VARATT_CONVERTED_SHORT_SIZE(data);
		SET_VARSIZE_SHORT(to, size);
		memcpy(to + VARHDRSZ_SHORT, VARDATA(data), size - VARHDRSZ_SHORT);
		return to + size;
	}
	*to++ = AM_LONG;
	memcpy(to, data, size);
	return to + size;
}

static uint8 *
am_encode_column(Form_pg_attribute att, Datum value, int64 base, uint8 *to)
{
	if (am_is_integer(att))
		return am_write_varint(to, am_zigzag((int64) ((uint64) am_integer(att, value) - (uint64) base)));
	if (att->attbyval)
	{
		*to = (uint8) DatumGetChar(value);
		return to + 1;
	}
	if (att->attlen == -1)
		return am_encode_varlena(att, to, value);
	if (att->attlen == -2)
	{
		strcpy((char *) to, DatumGetCString(value));
		return to + strlen((char *) to) + 1;
	}
	memcpy(to, DatumGetPointer(value), att->attlen);
	return to + att->attlen;
}

uint8 *
am_encode_row(TupleDesc desc, const AmPrepared *row, const int64 *base, int nbase, int base_natts, uint8 *to,
			  uint8 *flags)
{
	uint8 *nullmap = NULL;

	*flags = 0;
	if (row->natts != base_natts)
	{
		*flags |= AM_ROW_NATTS;
		to = am_write_varint(to, row->natts);
	}
	if (row->nulls)
	{
		*flags |= AM_ROW_NULLS;
		nullmap = to;
		to += (row->natts + 7) / 8;
		memset(nullmap, 0, to - nullmap);
	}
	for (int i = 0; i < row->natts; i++)
	{
		if (row->isnull[i])
			nullmap[i >> 3] |= 1 << (i & 7);
		else
			to = am_encode_column(TupleDescAttr(desc, i), row->values[i], i < nbase ? base[i] : 0, to);
	}
	return to;
}
