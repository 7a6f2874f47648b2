/*
 * epoch.c - ownership of sheets by gateways.
 *
 * A gateway claims a sheet with an epoch, and later edits with a lower epoch are refused (SF001): a gateway that has
 * lost a sheet without knowing it cannot edit it any more. sheet.ownership has the highest epoch and its holder.
 */
#include "postgres.h"

#include "access/xact.h"
#include "journal/journal.h"
#include "journal/store/sheetmeta.h"
#include "journal/write/base.h"
#include "journal/write/epoch.h"

static bool epoch_were_reset = false; /* by this transaction */

void
epoch_check(WriterSheet *ws, int64 epoch, const char *holder)
{
	if (epoch == 0 || (epoch == ws->meta.epoch && holder == NULL))
		return;
	if (epoch < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an epoch must not be negative")));
	if (epoch < ws->meta.epoch)
	{
		const char *current = sheetmeta_holder(ws->sheet_id);

		ereport(ERROR, (errcode(MAKE_SQLSTATE('S', 'F', '0', '0', '1')),
						errmsg("epoch " INT64_FORMAT " of sheet " INT64_FORMAT " is over", epoch, ws->sheet_id),
						errdetail("The owner is \"%s\" with epoch " INT64_FORMAT ".", current, ws->meta.epoch),
						errhint("Give the sheet up, and send its editors to the owner.")));
	}
	base_load_grid(ws); /* after the change it cannot be loaded */
	writer_begin_change(ws, ws->origin);
	ws->taken_over |= sheetmeta_store_epoch(ws->sheet_id, epoch, holder) && epoch > ws->meta.epoch;
	ws->meta.epoch = epoch;
	CommandCounterIncrement();
}

bool
journal_claim(int64 sheet_id, int64 epoch, const char *holder, bool nowait, int64 *last_seq)
{
	WriterSheet *ws;

	writer_require_writable("sheet.claim()");
	if (epoch <= 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an epoch must be positive")));
	/* Before the sheet lock: while it waits for a REINDEX here, it blocks no editor of the sheet. */
	sheetmeta_lock_epochs();
	if (nowait && !writer_try_lock_sheet(sheet_id))
		return false;
	ws = writer_open(sheet_id);
	writer_require_live(ws);
	epoch_check(ws, epoch, holder != NULL ? holder : "");
	*last_seq = ws->meta.last_seq;
	return true;
}

bool
journal_release(int64 sheet_id, int64 epoch)
{
	writer_require_writable("sheet.release()");
	sheetmeta_lock_epochs();
	return writer_try_lock_sheet(sheet_id) && sheetmeta_release(sheet_id, epoch);
}

void
journal_reset_epochs(void)
{
	writer_require_writable("sheet.reset_epochs()");
	sheetmeta_delete_epochs();
	epoch_were_reset = true;
}

/* At commit, makes every writer read the epoch of its sheet again. */
void
epoch_end_transaction(bool commit)
{
	if (epoch_were_reset && commit && cache_enabled())
		pg_atomic_fetch_add_u64(&CacheState->epoch_round, 1);
	epoch_were_reset = false;
}

void
epoch_refuse_prepare(void)
{
	if (epoch_were_reset)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("cannot PREPARE a transaction that has reset the epochs of sheets")));
}
