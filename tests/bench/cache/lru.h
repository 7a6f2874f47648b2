/* lru.h - an exact cache of sheets: the least recently used ones leave until there is room for the next. */
#ifndef LRU_H
#define LRU_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Lru Lru;

/* sizes: bytes of each sheet, of `count`; it stays the caller's. */
extern Lru *lru_create(const int64_t *sizes, int64_t count, int64_t capacity);
extern void lru_free(Lru *lru);
/* Was it there? It is now, unless it is larger than the whole cache. */
extern bool lru_access(Lru *lru, int64_t sheet);

#endif
