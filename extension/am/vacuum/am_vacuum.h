/*
 * am_vacuum.h - what the files of VACUUM share: the run over all pages (am_vacuum.c) calls the look at a page
 * (am_vacuum_page.c) and the removal of dead rows (am_vacuum_dead.c). Private to am/.
 */
#ifndef AM_VACUUM_H
#define AM_VACUUM_H

#include "compat.h"
#include "commands/vacuum.h"
#include "am/page/am_space.h"

/* TIDs of rows marked dead, in ascending order. */
typedef struct AmDeadRows
{
	int max_items, num_items;
	ItemPointerData items[FLEXIBLE_ARRAY_MEMBER];
} AmDeadRows;

typedef struct AmVacuum
{
	Relation rel;
	VacuumParams *params;
	BufferAccessStrategy strategy;
	TransactionId oldest_xmin;
	TransactionId freeze_before;  /* rows of older transactions are frozen */
	TransactionId standby_xid;	  /* readers of standbys that do not see this transaction have been told to go */
	TransactionId new_frozen_xid; /* oldest xid that stays in the table */
	MultiXactId new_min_multi;
	int nindexes;
	Relation *indexes;
	IndexBulkDeleteResult **results;
	bool clean_indexes;
	AmDeadRows *dead;
	BlockNumber from, used, tail; /* as the metapage had them */
	BlockNumber unfinished;		  /* first block that the next VACUUM has to look at */
	BlockNumber scanned, freed, not_cleaned;
	double live, removed;
	bool exact;		/* all rows before `from` are in `settled` */
	uint64 settled; /* rows in blocks before settled_end */
	BlockNumber settled_end;
	int page_rows; /* of the current page */
	int index_scans;
} AmVacuum;

/* The first look at a page: marks what is dead, and remembers it; freezes; frees what no index knows. */
extern void am_vacuum_page(AmVacuum *vacuum, BlockNumber block);
/* Deletes the index entries of the remembered TIDs, then the rows themselves. */
extern void am_vacuum_dead(AmVacuum *vacuum);

/* What an index's functions for VACUUM are told. tuples: rows of the table; estimated: they were not counted. */
extern IndexVacuumInfo am_vacuum_index_info(const AmVacuum *vacuum, int index, double tuples, bool estimated);

/* Is the page worth going back to? Pages of short rows run out of row numbers before they run out of bytes. */
extern bool am_vacuum_has_room(Page page);
/* The next VACUUM has to look at the block. */
extern void am_vacuum_leave(AmVacuum *vacuum, BlockNumber block);
/* Makes a page free that is locked exclusively. */
extern void am_vacuum_free_page(AmVacuum *vacuum, Buffer buffer);
/* Offers the page to those who need so many bytes. */
extern void am_vacuum_record_free(AmVacuum *vacuum, BlockNumber block, Size bytes);

#endif
