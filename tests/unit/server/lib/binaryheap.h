/* binaryheap.h - as PostgreSQL's, which is not in a library: the first element is the greatest. */
#ifndef BINARYHEAP_H
#define BINARYHEAP_H

#include <assert.h>

#include "postgres.h"

typedef struct binaryheap
{
	int bh_size, bh_space;
	int (*bh_compare)(Datum a, Datum b, void *arg);
	void *bh_arg;
	Datum bh_nodes[];
} binaryheap;

#define binaryheap_empty(h) ((h)->bh_size == 0)

static inline binaryheap *
binaryheap_allocate(int capacity, int (*compare)(Datum a, Datum b, void *arg), void *arg)
{
	binaryheap *heap = malloc(sizeof(binaryheap) + sizeof(Datum) * capacity);

	*heap = (binaryheap){.bh_space = capacity, .bh_compare = compare, .bh_arg = arg};
	return heap;
}

static inline void
binaryheap_reset(binaryheap *heap)
{
	heap->bh_size = 0;
}

static inline Datum
binaryheap_first(binaryheap *heap)
{
	assert(heap->bh_size > 0);
	return heap->bh_nodes[0];
}

static inline void
binaryheap_add(binaryheap *heap, Datum d)
{
	int at = heap->bh_size++;

	assert(at < heap->bh_space);
	for (; at > 0 && heap->bh_compare(heap->bh_nodes[(at - 1) / 2], d, heap->bh_arg) < 0; at = (at - 1) / 2)
		heap->bh_nodes[at] = heap->bh_nodes[(at - 1) / 2];
	heap->bh_nodes[at] = d;
}

static inline Datum
binaryheap_remove_first(binaryheap *heap)
{
	Datum first = binaryheap_first(heap), last = heap->bh_nodes[--heap->bh_size];
	int at = 0, child;

	while ((child = 2 * at + 1) < heap->bh_size)
	{
		if (child + 1 < heap->bh_size &&
			heap->bh_compare(heap->bh_nodes[child], heap->bh_nodes[child + 1], heap->bh_arg) < 0)
			child++;
		if (heap->bh_compare(last, heap->bh_nodes[child], heap->bh_arg) >= 0)
			break;
		heap->bh_nodes[at] = heap->bh_nodes[child];
		at = child;
	}
	heap->bh_nodes[at] = last;
	return first;
}

#endif
