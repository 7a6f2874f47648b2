/*
 * extent.h - how many rows, or columns, a sheet has after some have come or gone. Both programs reckon it, and the page
 * does so as well (moveExtent() in gateway/web/src/v2/lines.ts).
 */
#ifndef EXTENT_H
#define EXTENT_H

#include <stdbool.h>
#include <stdint.h>

/* n lines come in front of the one at `at`, or go from there on; a sheet has at most `limit`, and at least one. */
static inline uint32_t
extent_after(uint32_t extent, uint32_t limit, bool insert, uint32_t at, uint32_t n)
{
	if (insert)
	{
		uint32_t from = at > extent ? at : extent;

		return limit - from < n ? limit : from + n;
	}
	if (at >= extent)
		return extent;
	if (extent - at > n)
		return extent - n;
	return at > 0 ? at : 1;
}

#endif
