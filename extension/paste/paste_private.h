/*
 * paste_private.h - the shared memory of pastes.
 *
 * An array of blocks, of which a paste has a chain. The first block of the chain begins with the paste's head; the text
 * fills the rest of it and the further blocks. Beside it are a hash table by id, a heap by (end, id), and a table of
 * makers. All of it is sized once, by the number of blocks: nothing here allocates, and no operation can fail between
 * two writes. Whatever a comment does not except needs Pastes->lock in exclusive mode, a leaf.
 */
#ifndef PASTE_PRIVATE_H
#define PASTE_PRIVATE_H

#include "paste/paste.h"

#include "lib/ilist.h"
#include "port/atomics.h"
#include "storage/lwlock.h"

#define PASTE_BLOCK	 256
#define PASTE_NONE	 PG_UINT32_MAX /* in place of a block's number */
#define PASTE_SHARES 16			   /* of the memory, each for one maker */

/* Makers whose hashes have the same place in the table count as one. */
typedef struct PasteMaker
{
	dlist_head pastes; /* most recently used first */
	dlist_node over;   /* in Pastes->over, if its blocks are more than its share */
	uint32 blocks;
	bool is_over;
} PasteMaker;

typedef struct PasteHead
{
	uint32 next;   /* block of the chain; first, as in PasteRest */
	uint32 last;   /* block of the chain */
	uint32 blocks; /* in the chain */
	uint32 maker;
	PasteId id;
	Oid database;
	uint32 hash_next; /* head in the same bucket */
	uint32 heap_at;
	dlist_node used; /* in Pastes->used */
	dlist_node mine; /* in PasteMaker.pastes */
	pg_atomic_uint64 views;
	PasteInfo info; /* without views */
} PasteHead;

typedef struct PasteRest
{
	uint32 next;
	char text[PASTE_BLOCK - sizeof(uint32)];
} PasteRest;

typedef union PasteBlock
{
	PasteHead head;
	PasteRest rest;
	char bytes[PASTE_BLOCK];
} PasteBlock;

#define PASTE_HEAD_TEXT (PASTE_BLOCK - sizeof(PasteHead))
#define PASTE_REST_TEXT sizeof(((PasteRest *) 0)->text)

StaticAssertDecl(sizeof(PasteBlock) == PASTE_BLOCK, "a block has no padding");

/* Blocks that were taken and belong to no paste yet: its creator's own. All zero: none. */
typedef struct PasteChain
{
	uint32 first, last;
	uint32 blocks;
} PasteChain;

typedef struct PasteShared
{
	LWLock lock;
	int tranche;
	uint64 secret; /* key of the hash of makers */
	uint32 blocks; /* in all */
	uint32 unused; /* this block and all after it have never been used */
	uint32 freed;  /* first block of the chain of those that were given back */
	uint32 free;   /* number of both */
	uint32 count;  /* pastes */
	uint32 makers;
	uint32 share;	 /* blocks */
	dlist_head used; /* most recently used first */
	dlist_head over; /* makers with more than their share */
	TimestampTz sweep_at;
	int64 sweep_ns;							   /* see PasteStats */
	pg_atomic_uint64 counters[PASTE_COUNTERS]; /* without a lock */
} PasteShared;

extern PasteShared *Pastes; /* NULL: turned off */
extern PasteBlock *paste_blocks;

/* ---- paste_memory.c ---- */
extern uint32 *paste_buckets; /* `blocks` of them: PASTE_NONE, or the first head */
extern uint32 *paste_heap;	  /* the first `count` of them are heads */
extern PasteMaker *paste_makers;

static inline PasteHead *
paste_head(uint32 block)
{
	return &paste_blocks[block].head;
}

static inline uint32
paste_block_of(const PasteHead *head)
{
	return (uint32) ((const PasteBlock *) head - paste_blocks);
}

/* Returns the number of blocks for a paste of `len` bytes. */
extern uint32 paste_blocks_for(Size len);
/* Takes up to `wanted` free blocks for the maker. */
extern void paste_take(uint32 maker, uint32 wanted, PasteChain *chain);
/* Frees a chain. */
extern void paste_give_back(uint32 maker, const PasteChain *chain);
/* Copy text to and from a chain; the first without a lock, the second with the lock in shared mode. */
extern void paste_fill(uint32 first, const char *text, Size len);
extern void paste_copy(uint32 first, char *text, Size len);

/* ---- paste_index.c ---- */
extern void paste_index_add(PasteHead *head);
/* Removes a paste, and frees its blocks. */
extern void paste_index_remove(PasteHead *head, PasteCounter counter);
/* NULL: there is none. The lock in shared mode is enough for both. */
extern PasteHead *paste_index_find(const PasteId *id);
extern PasteHead *paste_index_first(void); /* that ends next */
extern bool paste_index_is_newest(PasteHead *head);
extern void paste_index_use(PasteHead *head);
/* Returns the paste to remove when the maker needs `more` blocks, or NULL. Sets *counter to the counter of the reason.
 */
extern PasteHead *paste_index_victim(uint32 maker, uint32 more, TimestampTz now, PasteCounter *counter);

static inline void
paste_count(PasteCounter counter)
{
	pg_atomic_fetch_add_u64(&Pastes->counters[counter], 1);
}

#endif
