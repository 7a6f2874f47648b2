/*
 * coord_impl.h - what the two coordinators share (see coord.h): the ring, the names, and the calls they implement.
 *
 * An implementation embeds Coord as its first member. It tells the gateway something by coord_tell_*() as the last
 * thing it does with an object, because the gateway may call back from there.
 */
#ifndef COORD_IMPL_H
#define COORD_IMPL_H

#include "coord/coord.h"
#include "coord/ring.h"
#include "support/sheet_map.h"

typedef struct CoordOps
{
	void (*set_state)(Coord *coord, CoordState state);
	/* Must call coord_free() and then done, when its handles are closed. */
	void (*close)(Coord *coord, void (*done)(void *arg), void *arg);
	bool (*acquire)(Coord *coord, int64_t sheet_id);
	void (*release)(Coord *coord, int64_t sheet_id);
	bool (*ask_holder)(Coord *coord, int64_t sheet_id, CoordHolderFn fn, void *arg); /* NULL: there are no others */
} CoordOps;

typedef struct CoordMember
{
	const char *name;
	unsigned weight;
	CoordState state;
	const char *peer; /* its address for other gateways; NULL: its name */
} CoordMember;

#define COORD_FORMER 64 /* names of former members that are remembered */

struct Coord
{
	const CoordOps *ops;
	uv_loop_t *loop;
	CoordEvents events;
	char *member;
	char *peer; /* "": member */
	unsigned weight;
	Ring *ring;			  /* NULL before the first one */
	CoordMember *members; /* by name */
	int member_count;
	char *former[COORD_FORMER]; /* names that left the ring, NULL where none */
	unsigned former_next;
	SheetMap held; /* SheetEntry: the locks that are ours */
	bool closing;  /* nothing is told any more */
};

extern Coord *coord_postgres_open(uv_loop_t *loop, const CoordConfig *config, const CoordEvents *events);
extern Coord *coord_zookeeper_open(uv_loop_t *loop, const CoordConfig *config, const CoordEvents *events);

extern void coord_init(Coord *coord, const CoordOps *ops, uv_loop_t *loop, const CoordConfig *config,
					   const CoordEvents *events);
/* Frees coord and what it holds; the implementation has freed its own. */
extern void coord_free(Coord *coord);

/* Builds a new ring if the members differ from the present ones, and tells. Names are copied. Returns false when there
 * is no memory: the former ones stay. */
extern bool coord_set_members(Coord *coord, const CoordMember *members, int count);

extern void coord_tell_ready(Coord *coord);
extern void coord_tell_suspended(Coord *coord);
extern void coord_tell_resumed(Coord *coord);
extern void coord_tell_granted(Coord *coord, int64_t sheet_id, int64_t epoch);
extern void coord_tell_waiting(Coord *coord, int64_t sheet_id, const char *holder);
extern void coord_tell_lost(Coord *coord, int64_t sheet_id, const char *reason);
/* All locks that are held. */
extern void coord_tell_all_lost(Coord *coord, const char *reason);
extern void coord_tell_released(Coord *coord, int64_t sheet_id);
extern void coord_tell_fatal(Coord *coord, const char *reason);

#endif
