/* staging.h - the edits of the transaction until the commit; see staging.c. */
#ifndef STAGING_H
#define STAGING_H

#include "journal/write/writer.h"

#define STAGING_NONE PG_UINT32_MAX

/* An edit that is set in the shared grid at commit. Its texts live as long as the (sub)transaction. */
typedef struct StagedEdit
{
	GridTile
		*tile; /* of the shared grid, with reserved room; NULL: no grid, a non-resident tile, or an edit of no cell */
	uint32 row, col; /* physical: independent of later insertions and deletions */
	uint32 before;	 /* the previous edit of cells with the same hash, or STAGING_NONE */
	bool resize;
	EditText content; /* data NULL: unchanged */
	EditText style;	  /* data NULL: unchanged */
} StagedEdit;

/* A cell, looked up for an edit. */
typedef struct StagingCell
{
	GridTile *tile;			 /* of the state before own changes */
	uint32 *newest;			 /* where the index registers its edits; NULL: they are not indexed */
	EditText content, style; /* at present, own changes included; valid until the next edit is staged */
} StagingCell;

/* Reserves memory for n more edits. */
extern void staging_expect(WriterSheet *ws, uint32 n);
/* Looks up the cell of an edit, which has physical rows and columns. indexed: later lookups must see the edit. */
extern void staging_lookup(WriterSheet *ws, const Edit *edit, GridTile *tile, bool indexed, StagingCell *cell);
/* Whether own edits have set the content of the cell at this physical row and column; *content is the newest one. */
extern bool staging_find_content(WriterSheet *ws, uint32 row, uint32 col, EditText *content);
/* Stages the edit, and reserves room for it in the shared grid. cell: just looked up; NULL: it is of no cell. */
extern void staging_add(WriterSheet *ws, const Edit *edit, const StagingCell *cell);
/* Removes the staged edits from this one on. */
extern void staging_undo(WriterSheet *ws, uint32 from);
/* Drops the index; the next lookup builds it again. */
extern void staging_drop_index(WriterSheet *ws);

#endif
