/*
 * write_cells.c - sheet.write_cells(): cells that a program sets through a gateway, below what is there, or only if
 * nobody else has set them.
 *
 * The sheet lock is taken first. What is decided under it, the row to append to and whether cells have changed, is true
 * until the transaction ends: two appends never meet, and of two writers with the same precondition one fails.
 */
#include "postgres.h"

#include "api/scan/cells.h"
#include "api/scan/unchanged.h"
#include "journal/write/batch.h"
#include "journal/write/writer.h"
#include "miscadmin.h"
#include "permission/catalog.h"
#include "permission/permission.h"

PG_FUNCTION_INFO_V1(sheet_write_cells);

/* Programs set contents only. */
static Edit *
write_decode(const bytea *bytes, uint64 uid, uint32 *n)
{
	Edit *edits;

	batch_check_size(VARSIZE_ANY_EXHDR(bytes));
	edits = batch_decode(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), n);
	for (uint32 i = 0; i < *n; i++)
	{
		if (edits[i].kind != EDIT_SET || edits[i].style.data != NULL)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an edit does not set a content alone"),
							errdetail("In edit %u of the batch.", i + 1)));
		edits[i].uid = uid;
	}
	return edits;
}

static void
write_place_below(Edit *edits, uint32 n, uint32 first)
{
	for (uint32 i = 0; i < n; i++)
	{
		cells_check_place((int64) edits[i].row + first, edits[i].col);
		edits[i].row += first;
	}
}

/* write_cells(sheet_id, edits, if_seq, append, nowait, as_uid) */
Datum
sheet_write_cells(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), as_uid = catalog_arg_int64(fcinfo, 5, 0);
	bool append = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3), nowait = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4);
	Datum values[2];
	bool nulls[2] = {true, true};
	uint32 n, first = 0;
	WriterSheet *ws;
	Edit *edits;
	uint64 uid;

	permission_require_gateway();
	catalog_require_arg(fcinfo, 1, "edits");
	writer_require_writable("sheet.write_cells()");
	uid = permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	if (nowait && !writer_try_lock_sheet(sheet_id))
		return catalog_return_row(fcinfo, values, nulls);
	writer_begin();
	edits = write_decode(PG_GETARG_BYTEA_PP(1), uid, &n);
	ws = writer_open(sheet_id);
	writer_require_live(ws);
	if (!PG_ARGISNULL(2))
		unchanged_require(ws, PG_GETARG_INT64(2), edits, n, append);
	if (append)
	{
		first = cells_next_row(sheet_id, true);
		write_place_below(edits, n, first);
	}
	values[0] = Int64GetDatum(n > 0 ? journal_edit(sheet_id, edits, n) : ws->meta.last_seq);
	values[1] = Int32GetDatum((int32) first);
	nulls[0] = false;
	nulls[1] = !append;
	return catalog_return_row(fcinfo, values, nulls);
}
