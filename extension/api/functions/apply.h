/*
 * apply.h - sheet.apply(): called as a function (apply_api.c), and as a scan in place of the call (apply_scan.c).
 */
#ifndef APPLY_H
#define APPLY_H

#include "postgres.h"

/* The arguments, in their order. */
typedef enum ApplyArgument
{
	APPLY_SHEET_ID,
	APPLY_EDITS,
	APPLY_KNOWN_SEQ,
	APPLY_EPOCH,
	APPLY_ORIGIN,
	APPLY_BATCH_NO,
	APPLY_CLIENTS,
	APPLY_NOWAIT,
	APPLY_ARGUMENTS
} ApplyArgument;

/* first_seq, last_seq, at, duplicate, missed */
#define APPLY_COLUMNS 5

/* Checks permission and arguments, and appends; the answer's columns are in the current memory context. */
extern void apply_call(const NullableDatum *args, Datum *values, bool *nulls);

/* From _PG_init. */
extern void apply_scan_init(void);

#endif
