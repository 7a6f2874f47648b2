/*
 * paste_memory.c - the blocks of pastes: their number, free ones, chains. See paste_private.h.
 *
 * Blocks of one size leave no gaps, so a budget that has room on paper has room. What a paste costs is counted in whole
 * blocks with their part of the tables, never less than one: so a paste of the largest size takes the place of at most
 * PASTE_TEXT_MAX / PASTE_BLOCK small ones.
 *
 * Not done: an area of DSA as the cache has it (cache/cache_memory.c). It needs a process to attach, rounds sizes up to
 * its classes, and grows by superblocks of one class, which others cannot use before all of their pieces are free.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "paste/paste_private.h"
#include "port/pg_bitutils.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#define PASTE_BLOCKS_PER_MAKER 8
#define PASTE_TABLES		   (sizeof(uint32) * 2 + sizeof(PasteMaker) / PASTE_BLOCKS_PER_MAKER) /* bytes a block */
#define PASTE_COST			   (PASTE_BLOCK + PASTE_TABLES)
#define PASTE_MEMORY_MAX	   (64 * 1024 * 1024) /* kB, so that a block's number has 32 bits */

int paste_memory_kb = 0;
PasteShared *Pastes = NULL;
PasteBlock *paste_blocks = NULL;
uint32 *paste_buckets = NULL;
uint32 *paste_heap = NULL;
PasteMaker *paste_makers = NULL;

StaticAssertDecl(sizeof(PasteMaker) % PASTE_BLOCKS_PER_MAKER == 0, "the cost of a block is whole");
StaticAssertDecl(PASTE_HEAD_TEXT >= PASTE_MIN_BYTES, "a small paste has one block");

/* ---- start-up ---- */

static bool
paste_check_memory(int *kilobytes, void **extra, GucSource source)
{
	if (*kilobytes == 0 || *kilobytes >= PASTE_MEMORY_MIN)
		return true;
	GUC_check_errdetail("It is 0, or at least %d kB.", PASTE_MEMORY_MIN);
	return false;
}

void
paste_define_settings(void)
{
	DefineCustomIntVariable("pg_sheet.paste_memory", "Shared memory for pastes.", "0 turns pastes off.",
							&paste_memory_kb, 32768, 0, PASTE_MEMORY_MAX, PGC_POSTMASTER, GUC_UNIT_KB,
							paste_check_memory, NULL, NULL);
}

static Size
paste_budget(void)
{
	return (Size) paste_memory_kb * 1024;
}

/* All of it together is not more than the budget. */
static uint32
paste_count_blocks(void)
{
	return (uint32) ((paste_budget() - MAXALIGN(sizeof(PasteShared)) - PG_CACHE_LINE_SIZE) / PASTE_COST);
}

Size
paste_shmem_size(void)
{
	return paste_budget();
}

static void
paste_initialize(uint32 blocks, uint32 makers)
{
	memset(Pastes, 0, sizeof(PasteShared));
	Pastes->tranche = LWLockNewTrancheId();
	LWLockInitialize(&Pastes->lock, Pastes->tranche);
	if (!pg_strong_random(&Pastes->secret, sizeof(Pastes->secret)))
		ereport(FATAL, (errmsg("pg_sheet: could not get random bytes")));
	Pastes->blocks = Pastes->free = blocks;
	Pastes->makers = makers;
	Pastes->share = Max(blocks / PASTE_SHARES, paste_blocks_for(PASTE_TEXT_MAX));
	Pastes->freed = PASTE_NONE;
	Pastes->sweep_at = DT_NOEND;
	dlist_init(&Pastes->used);
	dlist_init(&Pastes->over);
	for (int i = 0; i < PASTE_COUNTERS; i++)
		pg_atomic_init_u64(&Pastes->counters[i], 0);
	memset(paste_buckets, 0xFF, blocks * sizeof(uint32));
	memset(paste_makers, 0, makers * sizeof(PasteMaker)); /* also an empty dlist_head */
}

void
paste_shmem_startup(void)
{
	uint32 blocks, makers;
	bool found;
	char *at;

	if (paste_budget() == 0)
		return;
	blocks = paste_count_blocks();
	makers = blocks / PASTE_BLOCKS_PER_MAKER;
	at = ShmemInitStruct("pg_sheet pastes", paste_budget(), &found);
	Pastes = (PasteShared *) at;
	at += MAXALIGN(sizeof(PasteShared));
	paste_makers = (PasteMaker *) at;
	at += makers * sizeof(PasteMaker);
	paste_blocks = (PasteBlock *) CACHELINEALIGN(at);
	paste_buckets = (uint32 *) (paste_blocks + blocks);
	paste_heap = paste_buckets + blocks;
	if (!found)
		paste_initialize(blocks, makers);
	LWLockRegisterTranche(Pastes->tranche, "pg_sheet_pastes");
}

bool
paste_enabled(void)
{
	return Pastes != NULL;
}

uint64
paste_origin(const char *name)
{
	return hash_bytes_extended((const unsigned char *) name, strlen(name), Pastes->secret);
}

/* ---- makers ---- */

static void
paste_maker_count(PasteMaker *maker, uint32 blocks)
{
	maker->blocks = blocks;
	if (maker->is_over == (blocks > Pastes->share))
		return;
	maker->is_over = !maker->is_over;
	if (maker->is_over)
		dlist_push_tail(&Pastes->over, &maker->over);
	else
		dlist_delete(&maker->over);
}

/* ---- chains ---- */

uint32
paste_blocks_for(Size len)
{
	Size more = len > PASTE_HEAD_TEXT ? len - PASTE_HEAD_TEXT : 0;

	return 1 + (uint32) ((more + PASTE_REST_TEXT - 1) / PASTE_REST_TEXT);
}

void
paste_take(uint32 maker, uint32 wanted, PasteChain *chain)
{
	uint32 count = Min(wanted, Pastes->free);

	for (uint32 i = 0; i < count; i++)
	{
		uint32 block = Pastes->freed;

		if (block == PASTE_NONE)
			block = Pastes->unused++;
		else
			Pastes->freed = paste_blocks[block].rest.next;
		paste_blocks[block].rest.next = chain->blocks == 0 ? PASTE_NONE : chain->first;
		if (chain->blocks++ == 0)
			chain->last = block;
		chain->first = block;
	}
	Pastes->free -= count;
	paste_maker_count(&paste_makers[maker], paste_makers[maker].blocks + count);
}

void
paste_give_back(uint32 maker, const PasteChain *chain)
{
	if (chain->blocks == 0)
		return;
	paste_blocks[chain->last].rest.next = Pastes->freed;
	Pastes->freed = chain->first;
	Pastes->free += chain->blocks;
	paste_maker_count(&paste_makers[maker], paste_makers[maker].blocks - chain->blocks);
}

/* The piece of text in a block, and its length at most. */
static char *
paste_piece(uint32 block, bool first, Size *len)
{
	*len = Min(*len, first ? PASTE_HEAD_TEXT : PASTE_REST_TEXT);
	return first ? paste_blocks[block].bytes + sizeof(PasteHead) : paste_blocks[block].rest.text;
}

void
paste_fill(uint32 first, const char *text, Size len)
{
	for (uint32 block = first; len > 0; block = paste_blocks[block].rest.next)
	{
		Size piece = len;
		char *to = paste_piece(block, block == first, &piece);

		memcpy(to, text, piece);
		text += piece;
		len -= piece;
	}
}

void
paste_copy(uint32 first, char *text, Size len)
{
	for (uint32 block = first; len > 0; block = paste_blocks[block].rest.next)
	{
		Size piece = len;
		const char *from = paste_piece(block, block == first, &piece);

		memcpy(text, from, piece);
		text += piece;
		len -= piece;
	}
}
