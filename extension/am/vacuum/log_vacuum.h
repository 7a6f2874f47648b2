/*
 * log_vacuum.h - what the files of VACUUM share: the run over all pages (log_vacuum.c) calls the look at a page
 * (log_vacuum_page.c) and the removal of dead rows (log_vacuum_dead.c). Private to am/.
 */
#ifndef LOG_VACUUM_H
#define LOG_VACUUM_H

#include "compat.h"
#include "commands/vacuum.h"
#include "am/page/log_space.h"

/* TIDs of rows marked dead, in ascending order. */
typedef struct LogDeadRows
{
	int max_items, num_items;
	ItemPointerData items[FLEXIBLE_ARRAY_MEMBER];
} LogDeadRows;

typedef struct LogVacuum
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
	LogDeadRows *dead;
	BlockNumber from, used, tail; /* as the metapage had them */
	BlockNumber unfinished;		  /* first block that the next VACUUM has to look at */
	BlockNumber scanned, freed, not_cleaned;
	double live, removed;
	bool exact;		/* all rows before `from` are in `settled` */
	uint64 settled; /* rows in blocks before settled_end */
	BlockNumber settled_end;
	int page_rows; /* of the current page */
	int index_scans;
} LogVacuum;

/* The first look at a page: marks what is dead, and remembers it; freezes; frees what no index knows. */
extern void log_vacuum_page(LogVacuum *vacuum, BlockNumber block);
/* Deletes the index entries of the remembered TIDs, then the rows themselves. */
extern void log_vacuum_dead(LogVacuum *vacuum);

/* What an index's functions for VACUUM are told. tuples: rows of the table; estimated: they were not counted. */
extern IndexVacuumInfo log_vacuum_index_info(const LogVacuum *vacuum, int index, double tuples, bool estimated);

/* Is the page worth going back to? Pages of short rows run out of row numbers before they run out of bytes. */
extern bool log_vacuum_has_room(Page page);
/* The next VACUUM has to look at the block. */
extern void log_vacuum_leave(LogVacuum *vacuum, BlockNumber block);
/* Makes a page free that is locked exclusively. */
extern void log_vacuum_free_page(LogVacuum *vacuum, Buffer buffer);
/* Offers the page to those who need so many bytes. */
extern void log_vacuum_record_free(LogVacuum *vacuum, BlockNumber block, Size bytes);

#endif
