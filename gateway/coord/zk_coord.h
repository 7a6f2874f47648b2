/*
 * zk_coord.h - the parts of the ZooKeeper coordinator (coord_zookeeper.c: the session; zk_members.c: who is there;
 * zk_locks.c: whose sheet; zk_holder.c: who holds it, for those who do not want it).
 *
 * Nodes: ROOT/members/HOST:PORT (ephemeral; data "weight nonce state peer-address") and
 * for each holder or waiter of a sheet's lock ROOT/locks/sheetID/<32 hex>-__lock__NNNNNNNNNN and <32
 * hex>-lock-NNNNNNNNNN (ephemeral, sequential; data: the member's name). kazoo recognises the first name, Curator and
 * the C recipe the second; any child that ends in ten digits is taken for a contender, so that other programs can take
 * part.
 */
#ifndef ZK_COORD_H
#define ZK_COORD_H

#include <sys/queue.h>
#include "coord/coord_impl.h"
#include "support/sheet_map.h"
#include "coord/zk_client.h"

#define ZK_PATH_MAX 640
#define ZK_RETRY_MS 250	 /* after an error that is not a loss of connection */
#define ZK_GRACE_MS 2000 /* beyond the session time, for the node of a dead predecessor to go */

typedef struct ZkMembers
{
	int roots_made;
	bool made;			  /* our own node, as far as we know */
	CoordState state;	  /* to be told */
	CoordState told;	  /* what our node says, if it is made */
	int version;		  /* of our node, if it is made */
	bool current;		  /* it was given this version since contact was last lost */
	bool busy;			  /* a request is under way */
	bool fresh;			  /* the ring is what the last read said, and a watch is set */
	bool again;			  /* something changed during the read */
	uint64_t taken_since; /* uv_now() when our name was first found in use, or 0 */
	struct MemberRead *reads;
	int read_count;
	int reads_left;
} ZkMembers;

typedef struct ZkLocks
{
	SheetMap map;
	int unverified; /* locks that were held before the contact broke, not yet looked at again */
} ZkLocks;

typedef struct ZkQuestion ZkQuestion;

typedef struct ZkCoord
{
	Coord coord;
	char *hosts, *root;
	char nonce[33];
	unsigned session_ms;
	ZkClient *client; /* NULL between two sessions */
	ZkClient *ending; /* the former session, until it is closed */
	uv_timer_t retry;
	ZkMembers members;
	ZkLocks locks;
	LIST_HEAD(, ZkQuestion) questions;
	bool serving;	/* this session has told `ready` */
	bool suspended; /* told */
	bool done_with_client, done_with_timer;
	void (*done)(void *arg);
	void *done_arg;
} ZkCoord;

/* True when requests may be sent. */
extern bool zk_coord_is_up(const ZkCoord *self);
/* Calls both steps again in a moment. */
extern void zk_coord_retry_later(ZkCoord *self);
/* Members and locks call it whenever they may have become settled. */
extern void zk_coord_settled(ZkCoord *self);

/* step: does the next thing that is to be done, if any; to be called whenever something has changed. */
extern void zk_members_step(ZkCoord *self);
extern void zk_members_suspend(ZkCoord *self); /* contact is lost: everything has to be looked at again */
extern void zk_members_end(ZkCoord *self);	   /* the session is over */
extern bool zk_members_settled(const ZkCoord *self);
/* The path of our node. Returns its version, or -1 until contact is back and it has a new one: what has been sent
 * before on condition that it had the former version is then done, or is not done any more. */
extern int zk_members_guard(const ZkCoord *self, char path[ZK_PATH_MAX]);
extern void zk_members_guard_failed(ZkCoord *self);				 /* it has another version: it is looked at again */
extern bool zk_members_changed(ZkCoord *self, const char *path); /* a watch; false: not of ours */

/* The path of a node below the sheet's; of that node itself if child is "". */
extern void zk_lock_path(const ZkCoord *self, int64_t sheet_id, const char *child, char to[ZK_PATH_MAX]);
/* The trailing ten digits, which every recipe's names have; -1 for anything else. */
extern int64_t zk_sequence_of(const char *name);
extern void zk_locks_step_all(ZkCoord *self);
extern void zk_locks_suspend(ZkCoord *self);
extern void zk_locks_end(ZkCoord *self, const char *reason);
extern bool zk_locks_settled(const ZkCoord *self);
extern void zk_locks_changed(ZkCoord *self, const char *path);
extern bool zk_locks_acquire(ZkCoord *self, int64_t sheet_id);
extern void zk_locks_release(ZkCoord *self, int64_t sheet_id);
extern void zk_locks_free(ZkCoord *self);

/* coord_ask_holder(); false: no contact */
extern bool zk_holder_ask(ZkCoord *self, int64_t sheet_id, CoordHolderFn fn, void *arg);
extern void zk_holder_end(ZkCoord *self); /* the session is over */

#endif
