/* timer_board.c - which entries of the timer workers do not know yet, and when databases need a worker. */
#include "timer/timer_board.h"

#include <string.h>

TimerDatabase *
timer_board_find(TimerBoard *board, Oid database)
{
	for (int i = 0; i < board->databases; i++)
		if (board->database[i].database == database)
			return &board->database[i];
	return NULL;
}

/* Finds or adds the database. Returns NULL when there is no room. */
static TimerDatabase *
timer_board_get(TimerBoard *board, Oid database)
{
	TimerDatabase *found = timer_board_find(board, database);

	if (found != NULL || board->databases == TIMER_DATABASES)
		return found;
	found = &board->database[board->databases++];
	*found = (TimerDatabase){
		.database = database, .horizon = DT_NOEND, .told = DT_NOEND, .until = DT_NOBEGIN, .not_before = DT_NOBEGIN};
	return found;
}

/* Moves at most `max` entries of the database out of the list, to `entries` unless it is NULL. */
static int
timer_board_remove_told(TimerBoard *board, TimerDatabase *db, TimerEntry *entries, int max)
{
	int taken = 0, kept = 0;

	if (db->told == DT_NOEND)
		return 0;
	db->told = DT_NOEND;
	for (int i = 0; i < board->told_count; i++)
	{
		TimerTold *told = &board->told[i];

		if (told->database == db->database && taken < max)
		{
			if (entries != NULL)
				entries[taken] = told->entry;
			taken++;
			continue;
		}
		if (told->database == db->database)
			db->told = Min(db->told, told->entry.at);
		board->told[kept++] = *told;
	}
	board->told_count = kept;
	return taken;
}

static inline TimestampTz
timer_board_next(const TimerDatabase *db)
{
	return Min(db->horizon, db->told);
}

/* ---- committed entries ---- */

/* Entries of databases without a worker take half of the list at most. There, one beyond the window would stay long. */
static bool
timer_board_has_room(const TimerBoard *board, const TimerDatabase *db, TimestampTz at, TimestampTz now)
{
	if (db->worker != NULL)
		return board->told_count < TIMER_TOLD;
	return board->told_count < TIMER_TOLD / 2 && at <= now + TIMER_WINDOW_US;
}

TimerWake
timer_board_tell(TimerBoard *board, Oid database, const TimerEntry *entry, TimestampTz now)
{
	TimerDatabase *db = entry->at == DT_NOEND ? NULL : timer_board_get(board, database);
	TimestampTz before;

	if (db == NULL || entry->at >= db->horizon)
		return TIMER_WAKE_NOBODY;
	before = timer_board_next(db);
	if (timer_board_has_room(board, db, entry->at, now))
	{
		board->told[board->told_count++] = (TimerTold){database, *entry};
		db->told = Min(db->told, entry->at);
	}
	else
		db->horizon = entry->at;
	if (db->worker == NULL)
		return entry->at < before ? TIMER_WAKE_LAUNCHER : TIMER_WAKE_NOBODY;
	if (entry->at >= db->until && board->told_count < TIMER_TOLD / 2)
		return TIMER_WAKE_NOBODY;
	return db->until == DT_NOBEGIN ? TIMER_WAKE_NOBODY : TIMER_WAKE_WORKER;
}

/* ---- the launcher ---- */

void
timer_board_look(TimerBoard *board, Oid database)
{
	TimerDatabase *db = timer_board_get(board, database);

	if (db != NULL && db->worker == NULL)
		db->horizon = DT_NOBEGIN;
}

static bool
timer_board_is_busy(Oid database, const Oid *busy, int count)
{
	for (int i = 0; i < count; i++)
		if (busy[i] == database)
			return true;
	return false;
}

Oid
timer_board_due(const TimerBoard *board, const Oid *busy, int count, TimestampTz now, TimestampTz *next)
{
	const TimerDatabase *found = NULL;

	*next = DT_NOEND;
	for (int i = 0; i < board->databases; i++)
	{
		const TimerDatabase *db = &board->database[i];
		TimestampTz at = timer_board_next(db);

		if (db->worker != NULL || timer_board_is_busy(db->database, busy, count))
			continue;
		if (db->not_before > now && db->not_before <= now + TIMER_LATER_US)
			at = Max(at, db->not_before);
		if (at > now)
			*next = Min(*next, at);
		else if (found == NULL || timer_board_next(db) < timer_board_next(found))
			found = db;
	}
	return found == NULL ? InvalidOid : found->database;
}

void
timer_board_put_off(TimerBoard *board, Oid database, TimestampTz not_before)
{
	TimerDatabase *db = timer_board_find(board, database);

	if (db != NULL)
		db->not_before = not_before;
}

void
timer_board_discard(TimerBoard *board, Oid database)
{
	TimerDatabase *db = timer_board_find(board, database);

	if (db == NULL)
		return;
	(void) timer_board_remove_told(board, db, NULL, TIMER_TOLD);
	*db = board->database[--board->databases];
}

/* ---- a worker ---- */

bool
timer_board_attach(TimerBoard *board, Oid database, struct PGPROC *worker)
{
	TimerDatabase *db = timer_board_find(board, database);

	if (db == NULL || db->worker != NULL)
		return false;
	db->worker = worker;
	db->until = DT_NOBEGIN;
	db->not_before = DT_NOBEGIN;
	return true;
}

int
timer_board_take(TimerBoard *board, Oid database, TimerEntry *entries, int max)
{
	TimerDatabase *db = timer_board_find(board, database);

	if (db == NULL)
		return 0;
	db->until = DT_NOBEGIN;
	return timer_board_remove_told(board, db, entries, max);
}

bool
timer_board_sleep(TimerBoard *board, Oid database, TimestampTz horizon, TimestampTz until)
{
	TimerDatabase *db = timer_board_find(board, database);

	if (db == NULL || db->told != DT_NOEND || db->horizon < horizon)
		return false;
	db->until = until;
	return true;
}

TimestampTz
timer_board_scan_begin(TimerBoard *board, Oid database)
{
	TimerDatabase *db = timer_board_find(board, database);
	TimestampTz from;

	if (db == NULL)
		return DT_NOEND;
	from = db->horizon;
	db->horizon = DT_NOEND;
	return from;
}

/* During a scan, an entry that had no room in the list may have made the horizon nearer. */
void
timer_board_lower_horizon(TimerBoard *board, Oid database, TimestampTz horizon)
{
	TimerDatabase *db = timer_board_find(board, database);

	if (db != NULL)
		db->horizon = Min(db->horizon, horizon);
}

/* A database that has nothing left is removed. */
void
timer_board_leave(TimerBoard *board, Oid database, TimestampTz earliest)
{
	TimerDatabase *db = timer_board_find(board, database);

	if (db == NULL)
		return;
	db->worker = NULL;
	db->horizon = Min(db->horizon, earliest);
	if (timer_board_next(db) == DT_NOEND)
		timer_board_discard(board, database);
}
