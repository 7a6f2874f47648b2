/*
 * grid_memory.h - what tests of the grid share: an allocator that knows how many bytes are taken, and random numbers.
 */
#ifndef GRID_MEMORY_H
#define GRID_MEMORY_H

#include "grid/grid.h"
#include "random.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t taken;

static void *
count_alloc(void *ctx, size_t size)
{
	(void) ctx;
	taken += size;
	return malloc(size);
}

static void
count_free(void *ctx, void *memory, size_t size)
{
	(void) ctx;
	memset(memory, 0x5A, size);
	taken -= size;
	free(memory);
}

static const GridAllocator allocator = {count_alloc, count_free, NULL, false};

#endif
