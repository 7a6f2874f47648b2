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
	if (coord != NULL)
		coord->ops->set_state(coord, state);
}

bool
coord_another_serves(const Coord *coord)
{
	for (int i = 0; coord != NULL && i < coord->member_count; i++)
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

/* Returns false when there is no memory. */
static bool
held_add(Coord *coord, int64_t sheet_id)
{
	SheetEntry *entry;

	if (coord_holds(coord, sheet_id))
		return true;
	entry = calloc(1, sizeof(*entry));
	if (entry == NULL)
		return false;
	entry->sheet_id = sheet_id;
	sheet_map_add(&coord->held, entry);
	return true;
}

static void
held_remove(Coord *coord, int64_t sheet_id)
{
	SheetEntry *entry = sheet_map_find(&coord->held, sheet_id);

	if (entry == NULL)
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
	return coord != NULL && sheet_map_find(&coord->held, sheet_id) != NULL;
}

bool
coord_ask_holder(Coord *coord, int64_t sheet_id, CoordHolderFn fn, void *arg)
{
	return coord != NULL && coord->ops->ask_holder != NULL && !coord_holds(coord, sheet_id) &&
		   coord->ops->ask_holder(coord, sheet_id, fn, arg);
}

const char *
coord_owner_of(const Coord *coord, int64_t sheet_id)
{
	return coord != NULL && coord->ring != NULL ? ring_owner_of(coord->ring, sheet_id) : NULL;
}

bool
coord_is_mine(const Coord *coord, int64_t sheet_id)
{
	const char *owner = coord_owner_of(coord, sheet_id);

	return owner != NULL && strcmp(owner, coord->member) == 0;
}

bool
coord_is_member(const Coord *coord, const char *name)
{
	for (int i = 0; coord != NULL && i < coord->member_count; i++)
		if (strcmp(coord->members[i].name, name) == 0)
			return true;
	return false;
}

const char *
coord_peer_address(const Coord *coord, const char *name)
{
	for (int i = 0; coord != NULL && i < coord->member_count; i++)
		if (strcmp(coord->members[i].name, name) == 0)
			return coord->members[i].peer != NULL ? coord->members[i].peer : coord->members[i].name;
	return NULL;
}

bool
coord_is_cut(const Coord *coord, const char *name)
{
	for (int i = 0; coord != NULL && i < coord->member_count; i++)
		if (strcmp(coord->members[i].name, name) == 0)
			return coord->members[i].state == COORD_CUT;
	return false;
}

static bool
is_former(const Coord *coord, const char *name)
{
	for (int i = 0; i < COORD_FORMER; i++)
		if (coord->former[i] != NULL && strcmp(coord->former[i], name) == 0)
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
	*place = strdup(name); /* without memory it is forgotten */
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
	coord->peer = must_have(strdup(config->peer != NULL ? config->peer : ""));
}

static void
held_free(Coord *coord)
{
	SheetEntry *entry;
	SheetWalk walk;

	sheet_walk_begin(&walk, &coord->held);
	while ((entry = sheet_walk_next(&walk)) != NULL)
		held_remove(coord, entry->sheet_id);
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
	return a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
}

static bool
same_members(const Coord *coord, const CoordMember *members, int count)
{
	if (coord->ring == NULL || coord->member_count != count)
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

/* Without the members that have given their sheets up, unless there are no others. Returns NULL when there is no
 * memory. */
static Ring *
ring_of(const CoordMember *members, int count)
{
	RingMember *among = calloc((size_t) count + 1, sizeof(*among));
	size_t used = 0;
	Ring *ring;

	if (among == NULL)
		return NULL;
	for (int i = 0; i < count; i++)
		if (members[i].state < COORD_AWAY)
			among[used++] = (RingMember){members[i].name, members[i].weight};
	for (int i = 0; used == 0 && i < count; i++)
		among[i] = (RingMember){members[i].name, members[i].weight};
	ring = ring_build(among, used > 0 ? used : (size_t) count);
	free(among);
	return ring;
}

/* Returns the members by name; NULL when there is no memory. */
static CoordMember *
copy_members(const CoordMember *members, int count)
{
	CoordMember *copy = calloc((size_t) count + 1, sizeof(*copy));
	bool failed = false;

	if (copy == NULL)
		return NULL;
	for (int i = 0; i < count; i++)
	{
		copy[i] = members[i];
		copy[i].name = strdup(members[i].name);
		copy[i].peer = members[i].peer != NULL ? strdup(members[i].peer) : NULL;
		failed |= copy[i].name == NULL || (members[i].peer != NULL && copy[i].peer == NULL);
	}
	if (failed)
	{
		free_members(copy, count);
		return NULL;
	}
	qsort(copy, (size_t) count, sizeof(*copy), compare_members);
	return copy;
}

bool
coord_set_members(Coord *coord, const CoordMember *members, int count)
{
	CoordMember *copy = copy_members(members, count);
	const char **names = calloc((size_t) count + 1, sizeof(*names));
	bool same = copy != NULL && same_members(coord, copy, count);
	Ring *ring = copy != NULL && names != NULL && !same ? ring_of(copy, count) : NULL;

	if (ring == NULL)
	{
		if (copy != NULL)
			free_members(copy, count);
		free(names);
		if (!same)
			log_event(LOG_ERROR, "out of memory", LOG_STR("reason", "the members that are known stay"));
		return same;
	}
	ring_free(coord->ring);
	for (int i = 0; i < coord->member_count; i++)
		if (!is_among(copy, count, coord->members[i].name) && !is_former(coord, coord->members[i].name))
			remember_former(coord, coord->members[i].name);
	free_members(coord->members, coord->member_count);
	coord->ring = ring;
	coord->members = copy;
	coord->member_count = count;
	for (int i = 0; i < count; i++)
		names[i] = copy[i].name;
	if (!coord->closing && coord->events.members != NULL)
		coord->events.members(coord->events.arg, names, count);
	free(names);
	return true;
}

void
coord_tell_ready(Coord *coord)
{
	if (!coord->closing && coord->events.ready != NULL)
		coord->events.ready(coord->events.arg);
}

void
coord_tell_suspended(Coord *coord)
{
	if (!coord->closing && coord->events.suspended != NULL)
		coord->events.suspended(coord->events.arg);
}

void
coord_tell_resumed(Coord *coord)
{
	if (!coord->closing && coord->events.resumed != NULL)
		coord->events.resumed(coord->events.arg);
}

void
coord_tell_granted(Coord *coord, int64_t sheet_id, int64_t epoch)
{
	if (!held_add(coord, sheet_id))
	{
		coord_release(coord, sheet_id);
		coord_tell_lost(coord, sheet_id, "out of memory: come again");
	}
	else if (!coord->closing && coord->events.granted != NULL)
		coord->events.granted(coord->events.arg, sheet_id, epoch);
}

void
coord_tell_waiting(Coord *coord, int64_t sheet_id, const char *holder)
{
	if (!coord->closing && coord->events.waiting != NULL)
		coord->events.waiting(coord->events.arg, sheet_id, holder);
}

void
coord_tell_lost(Coord *coord, int64_t sheet_id, const char *reason)
{
	held_remove(coord, sheet_id);
	if (!coord->closing && coord->events.lost != NULL)
		coord->events.lost(coord->events.arg, sheet_id, reason);
}

void
coord_tell_all_lost(Coord *coord, const char *reason)
{
	SheetEntry *entry;
	SheetWalk walk;

	sheet_walk_begin(&walk, &coord->held);
	while ((entry = sheet_walk_next(&walk)) != NULL)
		coord_tell_lost(coord, entry->sheet_id, reason);
}

void
coord_tell_released(Coord *coord, int64_t sheet_id)
{
	if (!coord->closing && coord->events.released != NULL)
		coord->events.released(coord->events.arg, sheet_id);
}

void
coord_tell_fatal(Coord *coord, const char *reason)
{
	if (!coord->closing && coord->events.fatal != NULL)
		coord->events.fatal(coord->events.arg, reason);
}
