/*
 * coord.c - the part of coordination that both kinds share: dispatch, the ring of members, and telling the gateway.
 */
#include "coord/coord_impl.h"

#include "support/log.h"

#include <stdlib.h>
#include <string.h>

Coord *
coord_open(uv_loop_t *loop, const CoordConfig *config, const CoordEvents *events)
{
	if (strcmp(config->kind, "zookeeper") == 0)
		return coord_zookeeper_open(loop, config, events);
	return coord_postgres_open(loop, config, events);
}

void
coord_set_state(Coord *coord, CoordState state)
{
	if (coord)
		coord->ops->set_state(coord, state);
}

bool
coord_another_serves(const Coord *coord)
{
	for (int i = 0; coord && i < coord->member_count; i++)
		if (coord->members[i].state == COORD_SERVING && strcmp(coord->members[i].name, coord->member) != 0)
			return true;
	return false;
}

void
coord_close(Coord *coord, void (*done)(void *arg), void *arg)
{
	coord->closing = true;
	coord->ops->close(coord, done, arg);
}

bool
coord_acquire(Coord *coord, int64_t sheet_id)
{
	return coord->ops->acquire(coord, sheet_id);
}

static void
held_add(Coord *coord, int64_t sheet_id)
{
	SheetEntry *entry;

	if (coord_holds(coord, sheet_id))
		return;
	entry = must_have(calloc(1, sizeof(*entry)));
	entry->sheet_id = sheet_id;
	sheet_map_add(&coord->held, entry);
}

static void
held_remove(Coord *coord, int64_t sheet_id)
{
	SheetEntry *entry = sheet_map_find(&coord->held, sheet_id);

	if (!entry)
		return;
	sheet_map_remove(&coord->held, entry);
	free(entry);
}

void
coord_release(Coord *coord, int64_t sheet_id)
{
	held_remove(coord, sheet_id);
	coord->ops->release(coord, sheet_id);
}

bool
coord_holds(const Coord *coord, int64_t sheet_id)
{
	return coord && sheet_map_find(&coord->held, sheet_id) != NULL;
}

bool
coord_ask_holder(Coord *coord, int64_t sheet_id, CoordHolderFn fn, void *arg)
{
	return coord && coord->ops->ask_holder && !coord_holds(coord, sheet_id) &&
		   coord->ops->ask_holder(coord, sheet_id, fn, arg);
}

const char *
coord_owner_of(const Coord *coord, int64_t sheet_id)
{
	return coord && coord->ring ? ring_owner_of(coord->ring, sheet_id) : NULL;
}

bool
coord_is_mine(const Coord *coord, int64_t sheet_id)
{
	const char *owner = coord_owner_of(coord, sheet_id);

	return owner && strcmp(owner, coord->member) == 0;
}

bool
coord_is_member(const Coord *coord, const char *name)
{
	for (int i = 0; coord && i < coord->member_count; i++)
		if (strcmp(coord->members[i].name, name) == 0)
			return true;
	return false;
}

const char *
coord_peer_address(const Coord *coord, const char *name)
{
	for (int i = 0; coord && i < coord->member_count; i++)
		if (strcmp(coord->members[i].name, name) == 0)
			return coord->members[i].peer ? coord->members[i].peer : coord->members[i].name;
	return NULL;
}

bool
coord_is_cut(const Coord *coord, const char *name)
{
	for (int i = 0; coord && i < coord->member_count; i++)
		if (strcmp(coord->members[i].name, name) == 0)
			return coord->members[i].state == COORD_CUT;
	return false;
}

static bool
is_former(const Coord *coord, const char *name)
{
	for (int i = 0; i < COORD_FORMER; i++)
		if (coord->former[i] && strcmp(coord->former[i], name) == 0)
			return true;
	return false;
}

bool
coord_was_member(const Coord *coord, const char *name)
{
	return is_former(coord, name) || coord_is_member(coord, name);
}

/* Remembers a name that is not in the ring any more, in place of the one that left longest ago. */
static void
remember_former(Coord *coord, const char *name)
{
	char **place = &coord->former[coord->former_next++ % COORD_FORMER];

	free(*place);
	*place = must_have(strdup(name));
}

const char *
coord_member_name(const Coord *coord, int index)
{
	return index >= 0 && index < coord->member_count ? coord->members[index].name : NULL;
}

static void
free_members(CoordMember *members, int count)
{
	for (int i = 0; i < count; i++)
	{
		free((char *) members[i].name);
		free((char *) members[i].peer);
	}
	free(members);
}

void
coord_init(Coord *coord, const CoordOps *ops, uv_loop_t *loop, const CoordConfig *config, const CoordEvents *events)
{
	coord->ops = ops;
	coord->loop = loop;
	coord->events = *events;
	coord->weight = config->weight;
	coord->member = must_have(strdup(config->member));
	coord->peer = must_have(strdup(config->peer ? config->peer : ""));
}

static void
held_free(Coord *coord)
{
	size_t count;
	int64_t *ids = sheet_map_ids(&coord->held, &count);

	for (size_t i = 0; i < count; i++)
		held_remove(coord, ids[i]);
	free(ids);
	sheet_map_free(&coord->held);
}

void
coord_free(Coord *coord)
{
	ring_free(coord->ring);
	free_members(coord->members, coord->member_count);
	for (int i = 0; i < COORD_FORMER; i++)
		free(coord->former[i]);
	held_free(coord);
	free(coord->member);
	free(coord->peer);
	free(coord);
}

static int
compare_members(const void *a, const void *b)
{
	return strcmp(((const CoordMember *) a)->name, ((const CoordMember *) b)->name);
}

static bool
same_peer(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool
same_members(const Coord *coord, const CoordMember *members, int count)
{
	if (!coord->ring || coord->member_count != count)
		return false;
	for (int i = 0; i < count; i++)
		if (strcmp(coord->members[i].name, members[i].name) != 0 || coord->members[i].weight != members[i].weight ||
			coord->members[i].state != members[i].state || !same_peer(coord->members[i].peer, members[i].peer))
			return false;
	return true;
}

static bool
is_among(const CoordMember *members, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(members[i].name, name) == 0)
			return true;
	return false;
}

/* Without the members that have given their sheets up, unless there are no others. */
static Ring *
ring_of(const CoordMember *members, int count)
{
	RingMember *among = must_have(calloc((size_t) count + 1, sizeof(*among)));
	size_t used = 0;
	Ring *ring;

	for (int i = 0; i < count; i++)
		if (members[i].state < COORD_AWAY)
			among[used++] = (RingMember){members[i].name, members[i].weight};
	for (int i = 0; used == 0 && i < count; i++)
		among[i] = (RingMember){members[i].name, members[i].weight};
	ring = ring_build(among, used > 0 ? used : (size_t) count);
	free(among);
	return ring;
}

void
coord_set_members(Coord *coord, const CoordMember *members, int count)
{
	CoordMember *copy = must_have(calloc((size_t) count + 1, sizeof(*copy)));
	const char **names = must_have(calloc((size_t) count + 1, sizeof(*names)));

	for (int i = 0; i < count; i++)
	{
		copy[i] = members[i];
		copy[i].name = must_have(strdup(members[i].name));
		if (members[i].peer)
			copy[i].peer = must_have(strdup(members[i].peer));
	}
	qsort(copy, (size_t) count, sizeof(*copy), compare_members);
	if (same_members(coord, copy, count))
	{
		free_members(copy, count);
		free(names);
		return;
	}
	ring_free(coord->ring);
	for (int i = 0; i < coord->member_count; i++)
		if (!is_among(copy, count, coord->members[i].name) && !is_former(coord, coord->members[i].name))
			remember_former(coord, coord->members[i].name);
	free_members(coord->members, coord->member_count);
	coord->ring = ring_of(copy, count);
	coord->members = copy;
	coord->member_count = count;
	for (int i = 0; i < count; i++)
		names[i] = copy[i].name;
	if (!coord->closing && coord->events.members)
		coord->events.members(coord->events.arg, names, count);
	free(names);
}

void
coord_tell_ready(Coord *coord)
{
	if (!coord->closing && coord->events.ready)
		coord->events.ready(coord->events.arg);
}

void
coord_tell_suspended(Coord *coord)
{
	if (!coord->closing && coord->events.suspended)
		coord->events.suspended(coord->events.arg);
}

void
coord_tell_resumed(Coord *coord)
{
	if (!coord->closing && coord->events.resumed)
		coord->events.resumed(coord->events.arg);
}

void
coord_tell_granted(Coord *coord, int64_t sheet_id, int64_t epoch)
{
	held_add(coord, sheet_id);
	if (!coord->closing && coord->events.granted)
		coord->events.granted(coord->events.arg, sheet_id, epoch);
}

void
coord_tell_waiting(Coord *coord, int64_t sheet_id, const char *holder)
{
	if (!coord->closing && coord->events.waiting)
		coord->events.waiting(coord->events.arg, sheet_id, holder);
}

void
coord_tell_lost(Coord *coord, int64_t sheet_id, const char *reason)
{
	held_remove(coord, sheet_id);
	if (!coord->closing && coord->events.lost)
		coord->events.lost(coord->events.arg, sheet_id, reason);
}

void
coord_tell_released(Coord *coord, int64_t sheet_id)
{
	if (!coord->closing && coord->events.released)
		coord->events.released(coord->events.arg, sheet_id);
}

void
coord_tell_fatal(Coord *coord, const char *reason)
{
	if (!coord->closing && coord->events.fatal)
		coord->events.fatal(coord->events.arg, reason);
}
