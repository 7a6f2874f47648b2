/*
 * structure.h - inserting and deleting rows and columns; see structure.c.
 */
#ifndef STRUCTURE_H
#define STRUCTURE_H

#include "journal/write/writer.h"

/* A cell, by its logical row and column. */
typedef struct StructureCell
{
	uint32 row, col;
} StructureCell;

/* A structure edit on its way. */
typedef struct Structure
{
	LineChange change;
	uint64 uid;
	StructureCell *cells; /* to empty before the edit */
	Size count, done;
	char text[LINE_CHANGE_TEXT];
	Edit edit; /* what to append after them; its content is `text` */
} Structure;

/*
 * Prepares a structure edit, which was checked with line_change_of(). Returns false if it changes nothing. Allocates in
 * the current memory context. 54000 if rows or columns with cells would leave the sheet.
 */
extern bool structure_begin(WriterSheet *ws, const Edit *edit, Structure *structure);
/* The next edits that empty cells; returns their number, 0 at the end. */
extern uint32 structure_empty_cells(Structure *structure, Edit *edits, uint32 most);
/* Within a change: inserts or deletes the rows or columns. 54000 if a map would become too long. */
extern void structure_change_maps(WriterSheet *ws, const Edit *edit);

#endif
