/*
 * rect_store.h - where the rectangles of share links are and were (sheet.link_rect); see rect_store.c.
 */
#ifndef RECT_STORE_H
#define RECT_STORE_H

#include "postgres.h"
#include "common/edit_codec.h"
#include "utils/snapshot.h"

/* A row of sheet.link_rect: the rectangle is there from the edit `seq` on. */
typedef struct LinkRect
{
	int64 link_id;
	int64 seq;
	uint32 row0, col0, row1, col1; /* inclusive */
	bool lost;					   /* no cell of it is left */
} LinkRect;

/* Sets *rect to the position of the link's rectangle after the edit `until`. Returns false if the link had no rectangle
 * then. */
extern bool rect_store_find(int64 sheet_id, int64 link_id, int64 until, Snapshot snapshot, LinkRect *rect);
/* Caller must hold the sheet lock. */
extern void rect_store_insert(int64 sheet_id, const LinkRect *rect);

/* ---- the rectangles of a sheet while edits are appended ---- */
typedef struct SheetRects
{
	LinkRect *rects;
	bool *moved;
	Size count, room;
} SheetRects;

/* Reads the rectangles of the sheet's links that were not revoked, into the current memory context. Caller must hold
 * the sheet lock. */
extern void rect_store_read(int64 sheet_id, Snapshot snapshot, SheetRects *rects);
/* Moves them by a structure edit, or, by the edit that begins a rollback, to where they were at its version, for which
 * the snapshot is used. */
extern void rect_store_apply(int64 sheet_id, SheetRects *rects, const Edit *edit, int64 seq, Snapshot snapshot);
/* Stores those that have moved. Returns whether there were any. */
extern bool rect_store_end(int64 sheet_id, const SheetRects *rects);

#endif
