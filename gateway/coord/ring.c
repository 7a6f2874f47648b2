/*
 * ring.c - consistent hashing with virtual nodes (see ring.h).
 *
 * The method is Karger et al., "Consistent Hashing and Random Trees" (1997), with ketama's points per weight. Point k
 * of a member is the hash of "name#k", a sheet's place the hash of "sheet" and its decimal id. The hash is FNV-1a 64
 * (Fowler, Noll, Vo) finished by the mix of splitmix64 (Steele, Lea, Flood 2014, variant 13 of Stafford): FNV alone
 * spreads names that differ only in their last digits too badly for a ring.
 */
#include "coord/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct RingPoint
{
	uint64_t hash;
	uint32_t member; /* index into names, which are sorted */
} RingPoint;

struct Ring
{
	char **names;
	size_t member_count;
	RingPoint *points; /* by hash, then by member: names decide between equal hashes, on all gateways alike */
	size_t point_count;
};

uint64_t
ring_hash(const void *data, size_t len)
{
	const unsigned char *bytes = data;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
	return hash ^ hash >> 31;
}

static int
compare_members(const void *a, const void *b)
{
	return strcmp(((const RingMember *) a)->name, ((const RingMember *) b)->name);
}

static int
compare_points(const void *a, const void *b)
{
	const RingPoint *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->member < y->member ? -1 : x->member > y->member;
}

static unsigned
clamp_weight(unsigned weight)
{
	return weight < 1 ? 1 : weight > RING_MAX_WEIGHT ? RING_MAX_WEIGHT : weight;
}

/* text: memory for the longest name and 16 bytes. */
static void
add_points(Ring *ring, size_t member, unsigned weight, char *text)
{
	size_t name_len = strlen(ring->names[member]);

	memcpy(text, ring->names[member], name_len);
	for (unsigned k = 0; k < RING_POINTS * weight; k++)
	{
		int digits = snprintf(text + name_len, 16, "#%u", k);
		RingPoint *point = &ring->points[ring->point_count++];

		point->hash = ring_hash(text, name_len + (size_t) digits);
		point->member = (uint32_t) member;
	}
}

Ring *
ring_build(const RingMember *members, size_t count)
{
	Ring *ring = calloc(1, sizeof(*ring));
	RingMember *sorted = malloc((count + 1) * sizeof(*sorted));
	size_t points = 0, longest = 0;
	char *text = NULL;
	bool failed;

	for (size_t i = 0; i < count; i++)
	{
		points += RING_POINTS * (size_t) clamp_weight(members[i].weight);
		longest = strlen(members[i].name) > longest ? strlen(members[i].name) : longest;
	}
	if (ring != NULL)
	{
		ring->names = calloc(count + 1, sizeof(*ring->names));
		ring->points = calloc(points + 1, sizeof(*ring->points));
		text = malloc(longest + 16);
	}
	failed = text == NULL || sorted == NULL || ring->names == NULL || ring->points == NULL;
	if (!failed && count > 0)
	{
		memcpy(sorted, members, count * sizeof(*sorted));
		qsort(sorted, count, sizeof(*sorted), compare_members);
	}
	for (size_t i = 0; i < count && !failed; i++)
	{
		ring->names[i] = strdup(sorted[i].name);
		ring->member_count++;
		failed = ring->names[i] == NULL;
		if (!failed)
			add_points(ring, i, clamp_weight(sorted[i].weight), text);
	}
	free(sorted);
	free(text);
	if (failed)
	{
		ring_free(ring);
		return NULL;
	}
	qsort(ring->points, ring->point_count, sizeof(*ring->points), compare_points);
	return ring;
}

void
ring_free(Ring *ring)
{
	if (ring == NULL)
		return;
	for (size_t i = 0; i < ring->member_count; i++)
		free(ring->names[i]);
	free(ring->names);
	free(ring->points);
	free(ring);
}

const char *
ring_owner_of(const Ring *ring, int64_t sheet_id)
{
	char key[32];
	int len = snprintf(key, sizeof(key), "sheet%lld", (long long) sheet_id);
	uint64_t hash = ring_hash(key, (size_t) len);
	size_t low = 0, high = ring->point_count;

	if (ring->point_count == 0)
		return NULL;
	while (low < high)
	{
		size_t middle = low + (high - low) / 2;

		if (ring->points[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return ring->names[ring->points[low == ring->point_count ? 0 : low].member];
}
