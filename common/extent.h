/*
 * extent.h - how many rows, or columns, a sheet has after some have come or gone, and where they are then. Both
 * programs compute it, and the page does so as well (gateway/web/src/v2/lines.ts).
 */
#ifndef EXTENT_H
#define EXTENT_H

#include "common/edit_codec.h"

/* A sheet has at least one row and one column. */
static inline uint32_t
extent_after(const LineChange *change, uint32_t extent)
{
	uint32_t limit = line_limit(change->rows), at = change->at, n = change->n;

	if (change->insert)
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

/* Moves the lines *first to *last, *first <= *last. Lines that are inserted between them are added; what is pushed
 * beyond the limit is lost. Returns false if none of them is left. */
static inline bool
extent_move(const LineChange *change, uint32_t *first, uint32_t *last)
{
	uint32_t limit = line_limit(change->rows), at = change->at, n = change->n, end = at + n;

	if (*last < at)
		return true;
	if (change->insert)
	{
		*first += *first >= at ? n : 0;
		*last = limit - 1 - *last < n ? limit - 1 : *last + n;
		return *first < limit;
	}
	if (*first >= at && *last < end)
		return false;
	*first = *first < at ? *first : *first < end ? at : *first - n;
	*last = *last < end ? at - 1 : *last - n;
	return true;
}

#endif
