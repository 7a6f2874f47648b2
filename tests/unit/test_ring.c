/*
 * test_ring.c - the ring: balance, what a change of members moves, agreement, weights. Numbers are printed as comments.
 */
#include "coord/ring.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define SHEETS	  100000
#define MAX_NODES 16

static char names[MAX_NODES][32];

static Ring *
ring_of(int count, const unsigned *weights)
{
	RingMember members[MAX_NODES];

	for (int i = 0; i < count; i++)
		members[i] = (RingMember){names[i], weights ? weights[i] : 1};
	return ring_build(members, (size_t) count);
}

static int
index_of(const char *name)
{
	for (int i = 0; i < MAX_NODES; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

static void
test_balance(int nodes)
{
	Ring *ring = ring_of(nodes, NULL);
	int counts[MAX_NODES] = {0}, largest = 0;
	double ratio;

	for (int64_t id = 1; id <= SHEETS; id++)
		counts[index_of(ring_owner_of(ring, id))]++;
	for (int i = 0; i < nodes; i++)
		largest = counts[i] > largest ? counts[i] : largest;
	ratio = largest / ((double) SHEETS / nodes);
	TAP_OK(ratio <= 1.15, "%d nodes: the fullest has %.3f of the mean (at most 1.15)", nodes, ratio);
	ring_free(ring);
}

/* From n to n + 1 members and, read the other way, from n + 1 to n. */
static void
test_movement(int nodes)
{
	Ring *small = ring_of(nodes, NULL), *large = ring_of(nodes + 1, NULL);
	int moved = 0, elsewhere = 0;
	double share, ideal = 1.0 / (nodes + 1);

	for (int64_t id = 1; id <= SHEETS; id++)
	{
		const char *before = ring_owner_of(small, id), *after = ring_owner_of(large, id);

		if (strcmp(before, after) == 0)
			continue;
		moved++;
		elsewhere += strcmp(after, names[nodes]) != 0;
	}
	share = (double) moved / SHEETS;
	TAP_OK(fabs(share - ideal) <= 0.2 * ideal, "%d -> %d nodes: %.4f of the sheets move (ideal %.4f, within 20 %%)",
		   nodes, nodes + 1, share, ideal);
	TAP_OK(elsewhere == 0, "%d -> %d nodes: sheets move only to the new node, and back only from it", nodes, nodes + 1);
	ring_free(small);
	ring_free(large);
}

static void
test_order(void)
{
	RingMember forward[5], backward[5];
	Ring *a, *b;
	int different = 0;

	for (int i = 0; i < 5; i++)
		forward[i] = backward[4 - i] = (RingMember){names[i], 1 + (unsigned) i % 3};
	a = ring_build(forward, 5);
	b = ring_build(backward, 5);
	for (int64_t id = 1; id <= SHEETS; id++)
		different += strcmp(ring_owner_of(a, id), ring_owner_of(b, id)) != 0;
	TAP_OK(different == 0, "the order in which members are listed does not matter");
	ring_free(a);
	ring_free(b);
}

static void
test_weight(void)
{
	const unsigned weights[4] = {1, 2, 1, 1};
	Ring *ring = ring_of(4, weights);
	int counts[4] = {0};
	double ratio;

	for (int64_t id = 1; id <= SHEETS; id++)
		counts[index_of(ring_owner_of(ring, id))]++;
	ratio = counts[1] / ((counts[0] + counts[2] + counts[3]) / 3.0);
	TAP_OK(ratio > 1.8 && ratio < 2.2, "weight 2 gets %.3f times the sheets of weight 1", ratio);
	ring_free(ring);
}

static void
test_edges(void)
{
	static const int64_t ids[] = {0, 1, -1, INT64_MAX, INT64_MIN, (1LL << 53) - 1};
	Ring *empty = ring_build(NULL, 0), *one = ring_of(1, NULL);
	bool good = true;

	TAP_OK(ring_owner_of(empty, 1) == NULL, "an empty ring has no owner");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		good = good && strcmp(ring_owner_of(one, ids[i]), names[0]) == 0;
	TAP_OK(good, "a ring of one owns every id, the extreme ones too");
	ring_free(empty);
	ring_free(one);
	ring_free(NULL);
}

/* Gateways of different builds share a ring: the hash must never change. */
static void
test_hash(void)
{
	TAP_OK(ring_hash("", 0) == 0xf52a15e9a9b5e89bu, "hash of nothing is %016llx",
		   (unsigned long long) ring_hash("", 0));
	TAP_OK(ring_hash("sheet1", 6) == 0x4b37e5b8ef8c5462u, "hash of sheet1 is %016llx",
		   (unsigned long long) ring_hash("sheet1", 6));
}

int
main(void)
{
	for (int i = 0; i < MAX_NODES; i++)
		snprintf(names[i], sizeof(names[i]), "10.0.0.%d:8080", i + 1);
	test_balance(3);
	test_balance(5);
	test_balance(10);
	test_movement(2);
	test_movement(3);
	test_movement(5);
	test_movement(10);
	test_order();
	test_weight();
	test_edges();
	test_hash();
	return tap_done();
}
