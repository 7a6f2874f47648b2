/*
 * away.c - gives the sheets to other gateways while the database answers them and not this one.
 *
 * Each gateway tells the others whether the database answers it (coord_set_state()):
 *
 *   SERVING --no answer--> CUT --another has been SERVING for AWAY_AFTER_S meanwhile--> AWAY
 *   CUT --an answer--> SERVING
 *   AWAY --answers for `quiet` seconds, or at once if no other is SERVING--> SERVING
 *
 * health.c notices after 3 s at most that the database is silent, so the sheets are given up within 9 s. A member that
 * is AWAY is left out of the ring by all. When PostgreSQL itself is away, all members are CUT, and nothing moves.
 * AWAY_AFTER_S is longer than members differ in noticing that it is away or back.
 *
 * Against going to and fro, `quiet` is doubled each time the gateway is cut again within AWAY_CALM_S of its return.
 *
 * Giving up is what the end of a ZooKeeper session does: members are closed with 1012, and the lock is released. A
 * batch whose outcome is unknown is either in the log before the next gateway claims the sheet, or refused for its
 * epoch.
 */
#include "main/away.h"

#include "core/gateway.h"
#include "core/health.h"
#include "support/log.h"
#include "ws/room/room.h"

#define AWAY_AFTER_S	 5
#define AWAY_QUIET_S	 10
#define AWAY_QUIET_MAX_S 320
#define AWAY_CALM_S		 600

static CoordState away_state;
static int away_seconds; /* CUT: since when another serves; AWAY: since when the database answers */
static int away_quiet_s = AWAY_QUIET_S;
static int64_t away_returned; /* s; 0: never */

static void
away_enter(CoordState state)
{
	away_state = state;
	away_seconds = 0;
	gateway.away = state == COORD_AWAY;
	coord_set_state(gateway.coord, state);
}

static void
away_give_up(Room *room, void *arg)
{
	int64_t sheet_id = room_sheet_id(room);

	if (room->state == ROOM_LOST)
		return;
	coord_release(gateway.coord, sheet_id);
	room_lost(sheet_id, "the database does not answer this gateway: another one serves the sheet");
}

static void
away_go(void)
{
	if (away_returned != 0 && gateway_now() - away_returned > AWAY_CALM_S)
		away_quiet_s = AWAY_QUIET_S;
	else if (away_returned != 0 && away_quiet_s < AWAY_QUIET_MAX_S)
		away_quiet_s *= 2;
	log_event(LOG_WARN, "the database answers other gateways and not this one: they get its sheets",
			  LOG_INT("sheets", room_count()), LOG_INT("quiet_seconds", away_quiet_s));
	away_enter(COORD_AWAY);
	room_for_each(away_give_up, NULL);
}

void
away_tick(void)
{
	bool answers = health_database_answers(), another;

	if (gateway.draining)
	{
		away_state = COORD_SERVING; /* what drain_cancel() tells the others */
		gateway.away = false;
	}
	if (gateway.draining || gateway.coord == NULL || !gateway.ready || gateway.suspended)
		return;
	another = coord_another_serves(gateway.coord);
	switch (away_state)
	{
		case COORD_SERVING:
			if (!answers)
				away_enter(COORD_CUT);
			break;
		case COORD_CUT:
			away_seconds = another ? away_seconds + 1 : 0;
			if (answers)
				away_enter(COORD_SERVING);
			else if (away_seconds >= AWAY_AFTER_S)
				away_go();
			break;
		case COORD_AWAY:
			away_seconds = answers ? away_seconds + 1 : 0;
			if (!answers || (another && away_seconds < away_quiet_s))
				break;
			log_event(LOG_INFO, "the database answers again: this gateway takes sheets");
			away_returned = gateway_now();
			away_enter(COORD_SERVING);
			break;
		case COORD_DRAINING: /* told by handover.c */
			break;
	}
}
