/*
 * ring.h - consistent hashing with virtual nodes.
 *
 * Every member puts RING_POINTS points per unit of weight on a ring of 64-bit hashes (FNV-1a with a
 * finalising mix); a sheet belongs to the first point at or after its own hash. All gateways with the same
 * members agree. Immutable: membership changes build a new ring. Pure C.
 */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_POINTS		512
#define RING_MAX_WEIGHT 64

typedef struct RingMember
{
	const char *name; /* unique; "host:port" by convention */
	unsigned weight;  /* 1 .. RING_MAX_WEIGHT */
} RingMember;

typedef struct Ring Ring;

/* Names are copied; count 0 is legal. Returns NULL when there is no memory. */
extern Ring *ring_build(const RingMember *members, size_t count);
extern void ring_free(Ring *ring);
/* The owner's name, or NULL on an empty ring. */
extern const char *ring_owner_of(const Ring *ring, int64_t sheet_id);
extern uint64_t ring_hash(const void *data, size_t len);

#endif
