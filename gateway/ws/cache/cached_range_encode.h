/*
 * cached_range_encode.h - a row of sheet.read_cells() as the JSON text of a range; see cached_range_encode.c.
 */
#ifndef CACHED_RANGE_ENCODE_H
#define CACHED_RANGE_ENCODE_H

#include "ws/cache/cached_range.h"

/* answer: only with RANGE_READY, with one pin, which is the callee's. row_bytes: those of the row's cells. */
typedef void (*RangeEncodedFn)(void *arg, RangeStatus status, RangeAnswer *answer, size_t row_bytes);

/* Encodes the first row of res (seq, rows, cols, cells), and calls fn: at once, or, when `large`, after a thread has
 * done so. Returns false when there is no memory; fn is not called. */
extern bool cached_range_encode(const RangeKey *key, const PGresult *res, bool large, RangeEncodedFn fn, void *arg);

#endif
