/*
 * coord_postgres.c - coordination by PostgreSQL alone, for exactly one gateway (see coord.h).
 *
 * One connection holds the session lock of sheet.coordinator_acquire(), which also draws an epoch. While it lives the
 * ring is this one member and every sheet may be served. When the connection breaks the lock is gone with it: the
 * gateway is suspended, and with the next epoch every sheet that was held is lost, for somebody may have been in
 * between.
 *
 * A second gateway finds the lock taken. It tries for ten seconds, because the first may just be dying, and then gives
 * up for good.
 */
#include "coord/coord_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/log.h"
#include "db/pgconn.h"
#include "db/pgresult.h"
#include "support/sheet_map.h"

#define DEADLINE_MS	  5000
#define RETRY_MS	  500
#define HEARTBEAT_MS  2000
#define START_WAIT_MS 10000 /* how long the lock may be taken before that is fatal */

static const char holder_sql[] = "SELECT sheet.coordinator_holder()";
static const char acquire_sql[] = "SELECT sheet.coordinator_acquire($1)";
static const char heartbeat_sql[] = "SELECT 1";

typedef struct PgSheet
{
	SheetEntry entry;
	bool granted;
} PgSheet;

typedef struct PgCoord
{
	Coord coord;
	PgConn *conn;
	uv_timer_t timer; /* asks again for the lock, or looks whether the session still lives */
	uv_timer_t next;  /* fires in the next iteration of the loop, in which locks are granted */
	SheetMap sheets;
	int64_t epoch;		  /* 0: we do not have the lock */
	bool was_ready;		  /* we have had it once */
	bool draining;		  /* out of the ring */
	bool asking;		  /* a question is under way */
	uint64_t taken_since; /* uv_now() when we first found the lock taken, or 0 */
	int unprepared;		  /* times that the question could not even be prepared */
	int handles;		  /* not yet closed */
	void (*done)(void *arg);
	void *done_arg;
} PgCoord;

static void ask_for_lock(PgCoord *self);
static void on_timer(uv_timer_t *timer);

static void
again_in(PgCoord *self, uint64_t ms)
{
	uv_timer_start(&self->timer, on_timer, ms, 0);
}

/* Grants all locks that are waited for, in an iteration of its own. */
static void
on_next(uv_timer_t *next)
{
	PgCoord *self = next->data;
	PgSheet *sheet;
	SheetWalk walk;

	sheet_walk_begin(&walk, &self->sheets);
	while ((sheet = sheet_walk_next(&walk)) != NULL)
	{
		if (sheet->granted || self->epoch == 0 || self->coord.closing)
			continue;
		sheet->granted = true;
		coord_tell_granted(&self->coord, sheet->entry.sheet_id, self->epoch);
	}
}

static void
lose_granted(PgCoord *self, const char *reason)
{
	PgSheet *sheet;
	SheetWalk walk;

	sheet_walk_begin(&walk, &self->sheets);
	while ((sheet = sheet_walk_next(&walk)) != NULL)
	{
		int64_t sheet_id = sheet->entry.sheet_id;

		if (!sheet->granted)
			continue;
		sheet_map_remove(&self->sheets, &sheet->entry);
		free(sheet);
		coord_tell_lost(&self->coord, sheet_id, reason);
	}
}

static void
become_coordinator(PgCoord *self, int64_t epoch)
{
	CoordMember own = {self->coord.member, 1, COORD_SERVING, NULL};

	if (self->was_ready)
		lose_granted(self, "the connection to the database was lost, and the epoch has changed");
	self->epoch = epoch;
	self->was_ready = true;
	self->taken_since = 0;
	self->unprepared = 0;
	again_in(self, HEARTBEAT_MS);
	uv_timer_start(&self->next, on_next, 0, 0);
	if (coord_set_members(&self->coord, &own, self->draining ? 0 : 1))
		coord_tell_ready(&self->coord);
	else
		coord_tell_fatal(&self->coord, "out of memory");
}

static void
on_holder(void *arg, PGresult *res)
{
	PgCoord *self = arg;
	const char *holder =
		res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1 ? PQgetvalue(res, 0, 0) : "";
	char reason[512];

	self->asking = false;
	if (self->coord.closing)
		return;
	/* after a broken connection the server may hold our own former session for a while */
	if (uv_now(self->coord.loop) - self->taken_since < START_WAIT_MS ||
		(self->was_ready && (holder[0] == '\0' || strcmp(holder, self->coord.member) == 0)))
	{
		again_in(self, RETRY_MS);
		return;
	}
	snprintf(
		reason, sizeof(reason),
		"another gateway is the coordinator of this database (%s); use --coordinator=zookeeper for several gateways",
		holder[0] ? holder : "unknown");
	coord_tell_fatal(&self->coord, reason);
}

static void
lock_is_taken(PgCoord *self)
{
	if (self->taken_since == 0)
	{
		self->taken_since = uv_now(self->coord.loop);
		log_event(LOG_WARN, "another session is the coordinator of this database; waiting for it to end",
				  LOG_STR("member", self->coord.member));
	}
	self->asking = pgconn_query(self->conn, holder_sql, 0, NULL, 0, DEADLINE_MS, on_holder, self);
	if (!self->asking)
		again_in(self, RETRY_MS);
}

/*
 * Errors that no waiting heals: the extension is missing, or too old, or we may not. What keeps the statement from
 * being prepared is in the log; here it shows as 26000, and is believed the second time.
 */
static bool
is_final_error(PgCoord *self, const char *sqlstate)
{
	static const char *const final[] = {"42883", "3F000", "42501"};

	for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++)
		if (strcmp(sqlstate, final[i]) == 0)
			return true;
	return strcmp(sqlstate, "26000") == 0 && ++self->unprepared > 1;
}

static void
on_acquired(void *arg, PGresult *res)
{
	PgCoord *self = arg;

	self->asking = false;
	if (self->coord.closing)
		return;
	if (res == NULL || PQresultStatus(res) != PGRES_TUPLES_OK || PQntuples(res) != 1)
	{
		if (res != NULL && is_final_error(self, pgresult_sqlstate(res)))
		{
			char reason[512];

			snprintf(
				reason, sizeof(reason),
				"the database cannot be used: %s (is the extension pg_sheet created there, and the user a member of "
				"sheet_gateway?)",
				PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY));
			coord_tell_fatal(&self->coord, reason);
			return;
		}
		again_in(self, RETRY_MS);
	}
	else if (PQgetisnull(res, 0, 0))
		lock_is_taken(self);
	else if (self->epoch == 0)
		become_coordinator(self, strtoll(PQgetvalue(res, 0, 0), NULL, 10));
}

static void
ask_for_lock(PgCoord *self)
{
	PgParam holder = pgparam_text(self->coord.member);

	self->asking = pgconn_query(self->conn, acquire_sql, 1, &holder, 0, DEADLINE_MS, on_acquired, self);
	if (!self->asking)
		again_in(self, RETRY_MS);
}

/* A failure shows as a lost connection: pgconn's deadline sees to that. */
static void
on_heartbeat(void *arg, PGresult *res)
{
	PgCoord *self = arg;

	self->asking = false;
	if (!self->coord.closing)
		again_in(self, self->epoch != 0 ? HEARTBEAT_MS : 0);
}

static void
on_timer(uv_timer_t *timer)
{
	PgCoord *self = timer->data;

	if (self->asking || !pgconn_is_up(self->conn))
		return;
	if (self->epoch == 0)
		ask_for_lock(self);
	else
	{
		self->asking = pgconn_query(self->conn, heartbeat_sql, 0, NULL, 0, DEADLINE_MS, on_heartbeat, self);
		if (!self->asking)
			again_in(self, RETRY_MS);
	}
}

static void
on_state(void *arg, bool up)
{
	PgCoord *self = arg;

	if (self->coord.closing)
		return;
	if (up)
	{
		/* a query that the lost connection took along is answered before this */
		if (!self->asking)
			again_in(self, 0);
	}
	else if (self->epoch != 0)
	{
		self->epoch = 0;
		coord_tell_suspended(&self->coord);
	}
}

/* Ends the gateway if it was not the coordinator yet: its database is not one for gateways. */
static void
on_refused(void *arg, const char *reason)
{
	PgCoord *self = arg;

	if (!self->coord.closing && !self->was_ready)
		coord_tell_fatal(&self->coord, reason);
}

static bool
postgres_acquire(Coord *coord, int64_t sheet_id)
{
	PgCoord *self = (PgCoord *) coord;
	PgSheet *sheet = sheet_map_find(&self->sheets, sheet_id);

	if (sheet == NULL)
	{
		sheet = calloc(1, sizeof(*sheet));
		if (sheet == NULL)
			return false;
		sheet->entry.sheet_id = sheet_id;
		sheet_map_add(&self->sheets, &sheet->entry);
	}
	uv_timer_start(&self->next, on_next, 0, 0);
	return true;
}

static void
postgres_release(Coord *coord, int64_t sheet_id)
{
	PgCoord *self = (PgCoord *) coord;
	PgSheet *sheet = sheet_map_find(&self->sheets, sheet_id);

	if (sheet == NULL)
		return;
	sheet_map_remove(&self->sheets, &sheet->entry);
	free(sheet);
}

static void
postgres_set_state(Coord *coord, CoordState state)
{
	PgCoord *self = (PgCoord *) coord;
	CoordMember own = {coord->member, 1, COORD_SERVING, NULL};

	self->draining = state == COORD_DRAINING;
	if (self->was_ready)
		(void) coord_set_members(coord, &own, self->draining ? 0 : 1);
}

static void
on_handle_closed(uv_handle_t *handle)
{
	PgCoord *self = handle->data;
	void (*done)(void *arg) = self->done;
	void *done_arg = self->done_arg;

	if (--self->handles > 0)
		return;
	coord_free(&self->coord);
	if (done != NULL)
		done(done_arg);
}

static void
postgres_close(Coord *coord, void (*done)(void *arg), void *arg)
{
	PgCoord *self = (PgCoord *) coord;
	PgSheet *sheet;
	SheetWalk walk;

	sheet_walk_begin(&walk, &self->sheets);
	while ((sheet = sheet_walk_next(&walk)) != NULL)
		postgres_release(coord, sheet->entry.sheet_id);
	sheet_map_free(&self->sheets);
	self->done = done;
	self->done_arg = arg;
	pgconn_close(self->conn);
	uv_close((uv_handle_t *) &self->timer, on_handle_closed);
	uv_close((uv_handle_t *) &self->next, on_handle_closed);
}

Coord *
coord_postgres_open(uv_loop_t *loop, const CoordConfig *config, const CoordEvents *events)
{
	static const CoordOps ops = {postgres_set_state, postgres_close, postgres_acquire, postgres_release, NULL};
	PgCoord *self = must_have(calloc(1, sizeof(*self)));

	coord_init(&self->coord, &ops, loop, config, events);
	uv_timer_init(loop, &self->timer);
	uv_timer_init(loop, &self->next);
	self->timer.data = self->next.data = self;
	self->handles = 2;
	self->conn = pgconn_open(
		loop, config->conninfo,
		&(PgConnOptions){
			.name = "pg_sheet coordinator", .state_fn = on_state, .refused_fn = on_refused, .state_arg = self});
	return &self->coord;
}
