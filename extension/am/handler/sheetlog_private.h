/* sheetlog_private.h - between the files of am/. */
#ifndef SHEETLOG_PRIVATE_H
#define SHEETLOG_PRIVATE_H

#include "postgres.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"

/* sheetlog_index.c: the two callbacks of index builds; see access/tableam.h. */
extern double sheetlog_index_build_range_scan(Relation table, Relation index, IndexInfo *index_info, bool allow_sync,
											  bool anyvisible, bool progress, BlockNumber start_block,
											  BlockNumber blocks, IndexBuildCallback callback, void *callback_state,
											  TableScanDesc scan);
extern void sheetlog_index_validate_scan(Relation table, Relation index, IndexInfo *index_info, Snapshot snapshot,
										 struct ValidateIndexState *state);

/* sheetlog.c: is this the handler function of our access method? */
extern bool sheetlog_is_handler(Oid function);

/* sheetlog_catalog.c: the rows of a catalog that have this oid in a column. */
typedef struct SheetlogRows
{
	Oid catalog;
	Oid index; /* that begins with the column; InvalidOid: all rows are looked at */
	AttrNumber column;
	Oid oid;
	bool just_made; /* also those that the command has just made */
} SheetlogRows;
/* Calls fn for one after the other until it says that it has found what it looks for; false when it never does. */
typedef bool (*SheetlogRowFn)(HeapTuple row, TupleDesc desc, void *arg);
extern bool sheetlog_find_row(const SheetlogRows *rows, SheetlogRowFn fn, void *arg);

/* sheetlog_ddl.c: refuses what cannot work when it is configured. */
extern void sheetlog_ddl_init(void);
extern bool sheetlog_is_access_method(Oid am);

/* A table that is being made or changed, by its row of pg_class, which the caches do not have yet. */
typedef struct SheetlogTable
{
	Oid oid;
	Oid schema;
	Oid am;
	NameData name;
	char kind; /* relkind */
	bool permanent;
	bool partition;
} SheetlogTable;

/* sheetlog_published.c: the first three are about the rows of the publication that have just been made. */
extern void sheetlog_check_publication(Oid publication);
extern void sheetlog_check_publication_table(Oid object);
extern void sheetlog_check_publication_schema(Oid object);
/* The parent has just got, or lost, the child. */
extern void sheetlog_check_inheritance(Oid child, Oid parent);
/* The partitioned table is being made or changed. */
extern void sheetlog_check_partitioned(const SheetlogTable *table);
/* What is in a publication, so that the table is: itself or a table that it is a partition of; InvalidOid: none. */
extern Oid sheetlog_published_by(const SheetlogTable *table);

#endif
