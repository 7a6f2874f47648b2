/* lru.c - see lru.h. A ring of all places: [count] is its head, whose next is the most recently used sheet. */
#include "lru.h"

#include "session.h"

#include <stdlib.h>

typedef struct Place
{
	int64_t next, previous;
	bool here;
} Place;

struct Lru
{
	const int64_t *sizes;
	int64_t count, capacity, used;
	Place *places;
};

Lru *
lru_create(const int64_t *sizes, int64_t count, int64_t capacity)
{
	Lru *lru = allocate(sizeof(*lru));

	*lru = (Lru){sizes, count, capacity, 0, allocate((count + 1) * sizeof(Place))};
	lru->places[count] = (Place){count, count, false};
	return lru;
}

void
lru_free(Lru *lru)
{
	free(lru->places);
	free(lru);
}

static void
lru_unlink(Lru *lru, int64_t sheet)
{
	Place *place = &lru->places[sheet];

	lru->places[place->previous].next = place->next;
	lru->places[place->next].previous = place->previous;
}

static void
lru_push(Lru *lru, int64_t sheet)
{
	int64_t first = lru->places[lru->count].next;

	lru->places[sheet] = (Place){first, lru->count, true};
	lru->places[first].previous = sheet;
	lru->places[lru->count].next = sheet;
}

static void
lru_evict(Lru *lru)
{
	int64_t last = lru->places[lru->count].previous;

	lru_unlink(lru, last);
	lru->places[last].here = false;
	lru->used -= lru->sizes[last];
}

bool
lru_access(Lru *lru, int64_t sheet)
{
	bool here = lru->places[sheet].here;

	if (here)
		lru_unlink(lru, sheet);
	else if (lru->sizes[sheet] > lru->capacity)
		return false;
	else
	{
		while (lru->used + lru->sizes[sheet] > lru->capacity)
			lru_evict(lru);
		lru->used += lru->sizes[sheet];
	}
	lru_push(lru, sheet);
	return here;
}
