/*
 * coord.h - who are the gateways, who owns a sheet, and may I serve it now?
 *
 * Two implementations behind one interface: coord_postgres (exactly one gateway; epochs from a sequence; a session
 * lock keeps a second one out) and coord_zookeeper (members are ephemeral nodes, one lock node per served sheet;
 * the epoch is the czxid of the lock node). All callbacks run on the loop.
 *
 * Session rules (ZooKeeper): when contact is lost, `suspended` is told at once: the gateway stops acknowledging edits,
 * and keeps them; back within the session, `resumed`. At five sixths of the session time without
 * contact, or when the session has expired, every held sheet gets `lost`, and the member node is made anew when contact
 * returns.
 */
#ifndef COORD_H
#define COORD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

typedef struct Coord Coord;

/* What a member tells the others of itself. */
typedef enum CoordState
{
	COORD_SERVING,
	COORD_CUT, /* the database does not answer it; it keeps its sheets */
	/* It is left out of the ring, unless all members are in these states: */
	COORD_AWAY,	   /* it has given its sheets up, because the database does not answer it */
	COORD_DRAINING /* its sheets move to others */
} CoordState;

typedef struct CoordEvents
{
	void *arg;
	/* The first ring is there: the gateway may serve. Told again after a session was lost and made anew; ends a
	 * suspension as `resumed` does. */
	void (*ready)(void *arg);
	/* Members or their states changed; ask coord_owner_of() again. names[0..count) are valid during the call. */
	void (*members)(void *arg, const char *const *names, int count);
	void (*suspended)(void *arg);
	void (*resumed)(void *arg);
	/* The sheet's lock is ours, with this epoch; answers coord_acquire(). */
	void (*granted)(void *arg, int64_t sheet_id, int64_t epoch);
	/* Another holds the lock: told once per coord_acquire() that must wait. holder may be "". */
	void (*waiting)(void *arg, int64_t sheet_id, const char *holder);
	/* A lock that we held is gone, or an acquire has failed for good: stop serving the sheet, tell its clients to
	 * reconnect. */
	void (*lost)(void *arg, int64_t sheet_id, const char *reason);
	/* The gateway cannot go on (a second gateway with --coordinator=postgres, a member name in use): end with this
	 * message. */
	void (*fatal)(void *arg, const char *reason);
	/* The lock of a coord_release() is gone: another can take it. The callback must not ask for a lock. */
	void (*released)(void *arg, int64_t sheet_id);
} CoordEvents;

/* holder: another member's name, valid during the call; NULL: no other member holds the lock, as far as is known. */
typedef void (*CoordHolderFn)(void *arg, const char *holder);

typedef struct CoordConfig
{
	const char *kind;		/* "postgres" or "zookeeper" */
	const char *member;		/* own public "host:port": what others redirect to */
	unsigned weight;		/* 1 .. 64 */
	const char *conninfo;	/* postgres */
	const char *zk_hosts;	/* "127.0.0.1:2181,..." */
	const char *zk_root;	/* "/pg_sheet" */
	unsigned zk_session_ms; /* default 7000 */
	const char *peer;		/* "host:port" that other gateways reach this one at; NULL or "": member */
} CoordConfig;

extern Coord *coord_open(uv_loop_t *loop, const CoordConfig *config, const CoordEvents *events);
/* Tells the others, as soon as there is contact. Held locks stay until they are released. */
extern void coord_set_state(Coord *coord, CoordState state);
/* Is another member COORD_SERVING, by the last word of it? */
extern bool coord_another_serves(const Coord *coord);
/* Releases everything and frees coord; done runs when nothing of it is left on the loop. */
extern void coord_close(Coord *coord, void (*done)(void *arg), void *arg);

/* The owner's "host:port"; our own name when it is us; NULL while there is no ring. Valid until the next iteration
 * of the loop. */
extern const char *coord_owner_of(const Coord *coord, int64_t sheet_id);
extern bool coord_is_mine(const Coord *coord, int64_t sheet_id);
/* Is this "host:port" a member now? */
extern bool coord_is_member(const Coord *coord, const char *name);
/* The "host:port" that other gateways reach the member at; NULL if it is none. Valid until the next iteration of the
 * loop. */
extern const char *coord_peer_address(const Coord *coord, const char *name);
/* Is the member COORD_CUT, by the last word of it? */
extern bool coord_is_cut(const Coord *coord, const char *name);
/* Is it one, or was it since we started? For the Origin allow-list: open pages outlive the gateway that they came from.
 */
extern bool coord_was_member(const Coord *coord, const char *name);
/* The members by name, from 0; NULL past the last. Valid until the next iteration of the loop. */
extern const char *coord_member_name(const Coord *coord, int index);

/* Ask for the sheet's lock; answered by granted, perhaps after waiting. Asking for a held lock again is an error of the
 * caller. False: no memory, and it is not answered. */
extern bool coord_acquire(Coord *coord, int64_t sheet_id);
/* Give a held lock back, or stop waiting for it. No callback follows. Does nothing if it is neither held nor asked for.
 */
extern void coord_release(Coord *coord, int64_t sheet_id);
/* Is the sheet's lock ours now, whoever owns the sheet by the ring? */
extern bool coord_holds(const Coord *coord, int64_t sheet_id);
/* Asks which member holds the sheet's lock, without waiting for it. Returns false when none but this one can be known
 * to hold it; otherwise fn is called once, later. */
extern bool coord_ask_holder(Coord *coord, int64_t sheet_id, CoordHolderFn fn, void *arg);

#endif
