/*
 * value_store.c - the stored values of formulas.
 *
 * A sheet that has or had formulas has a row of sheet.computed. It is inserted with the first formula, in the same
 * transaction, so nobody has to look for formulas in sheets that have none. Values are in sheet.value. They are
 * derived: a program computes them (docs/design/calc.md) and stores them after the edits, by sheet.put_values(). They
 * are never in the log, and a sheet without them is a whole sheet.
 *
 *   data  := entry*            by place
 *   entry := u8 place, uvarint (length << 1 | filled), bytes
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "common/edit_write.h"
#include "journal/store/history.h"
#include "journal/store/storage.h"
#include "journal/store/value_store.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* ---- the bytes of a tile ---- */

void
value_reader_init(ValueReader *reader, const struct varlena *data)
{
	reader->pos = (const uint8 *) VARDATA_ANY(data);
	reader->end = reader->pos + VARSIZE_ANY_EXHDR(data);
	reader->last = -1;
}

_Noreturn static void
value_damaged(void)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("stored values of formulas are damaged"),
					errhint("Values can be computed again: delete the sheet's rows of sheet.value, and set the seq of "
							"its row of sheet.computed to 0.")));
}

static uint64
value_read_number(ValueReader *reader)
{
	uint64 value = 0;

	for (int shift = 0; reader->pos < reader->end && shift < 35; shift += 7)
	{
		uint8 byte = *reader->pos++;

		value |= (uint64) (byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	value_damaged();
}

bool
value_reader_next(ValueReader *reader, ValueEntry *entry)
{
	uint64 head;

	if (reader->pos == reader->end)
		return false;
	entry->place = *reader->pos++;
	head = value_read_number(reader);
	entry->filled = head & 1;
	if (entry->place <= reader->last || head >> 1 > reader->end - reader->pos)
		value_damaged();
	entry->len = (uint32) (head >> 1);
	entry->text = (const char *) reader->pos;
	reader->pos += entry->len;
	reader->last = entry->place;
	return true;
}

void
value_write(StringInfo to, const ValueEntry *entry)
{
	uint8 head[16];
	uint8 *end = head;

	*end++ = entry->place;
	end = codec_put_number(end, (uint64) entry->len << 1 | entry->filled);
	appendBinaryStringInfo(to, (char *) head, (int) (end - head));
	appendBinaryStringInfo(to, entry->text, (int) entry->len);
}

/* ---- rows ---- */

bool
value_store_state(int64 sheet_id, Snapshot snapshot, int64 *seq)
{
	StorageScan scan;
	bool found = storage_scan_first(&scan, STORAGE_COMPUTED, snapshot, sheet_id, ForwardScanDirection);

	if (found)
		*seq = storage_int64(&scan, COMPUTED_SEQ);
	storage_scan_end(&scan);
	return found;
}

bool
value_store_is_behind(int64 sheet_id, Snapshot snapshot)
{
	StorageKey keys[] = {storage_key_int64(VALUE_SOURCE_SHEET_ID, BTEqualStrategyNumber, sheet_id),
						 storage_key_int64(VALUE_SOURCE_ID, BTGreaterStrategyNumber, 0)};
	StorageScan scan;
	bool behind = false;

	storage_scan_begin(&scan, STORAGE_VALUE_SOURCE, snapshot, keys, lengthof(keys));
	while (!behind && storage_scan_next(&scan, ForwardScanDirection))
	{
		HistoryLast last;
		int64 seq = storage_int64(&scan, VALUE_SOURCE_SEQ);

		if (seq < 0)
			continue;
		history_last_edit(storage_int64(&scan, VALUE_SOURCE_ID), snapshot, &last);
		behind = last.found && last.last_seq != seq;
	}
	storage_scan_end(&scan);
	return behind;
}

void
value_store_mark(int64 sheet_id)
{
	Datum values[STORAGE_MAX_COLUMNS] = {
		[COMPUTED_SHEET_ID - 1] = Int64GetDatum(sheet_id),
		[COMPUTED_SEQ - 1] = Int64GetDatum(0),
	};
	bool nulls[STORAGE_MAX_COLUMNS] = {[COMPUTED_AGAIN_AT - 1] = true};
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	int64 seq;

	if (!value_store_state(sheet_id, snapshot, &seq))
		storage_insert(STORAGE_COMPUTED, values, nulls);
	UnregisterSnapshot(snapshot);
}

void
value_store_read(int64 sheet_id, uint32 row0, uint32 row1, Snapshot snapshot, ValueFn fn, void *arg)
{
	StorageKey keys[] = {
		storage_key_int64(VALUE_SHEET_ID, BTEqualStrategyNumber, sheet_id),
		storage_key_int64(VALUE_TILE, BTGreaterEqualStrategyNumber, value_tile_at(row0, 0)),
		storage_key_int64(VALUE_TILE, BTLessEqualStrategyNumber, value_tile_at(row1, SHEET_MAX_COLS - 1))};
	StorageScan scan;

	storage_scan_begin(&scan, STORAGE_VALUE, snapshot, keys, lengthof(keys));
	while (storage_scan_next(&scan, ForwardScanDirection))
	{
		int64 tile = storage_int64(&scan, VALUE_TILE);
		uint32 row = (uint32) (tile / (SHEET_MAX_COLS / VALUE_TILE_COLS)) * VALUE_TILE_ROWS;
		uint32 col = (uint32) (tile % (SHEET_MAX_COLS / VALUE_TILE_COLS)) * VALUE_TILE_COLS;
		struct varlena *data;
		ValueReader reader;
		ValueEntry entry;
		bool copy;

		data = storage_bytes(&scan, VALUE_DATA, &copy);
		value_reader_init(&reader, data);
		while (value_reader_next(&reader, &entry))
			fn(arg, row + entry.place / VALUE_TILE_COLS, col + entry.place % VALUE_TILE_COLS, &entry);
		if (copy)
			pfree(data);
	}
	storage_scan_end(&scan);
}
