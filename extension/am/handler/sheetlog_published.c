/*
 * sheetlog_published.c - keeps logs out of publications, which would never tell of their rows.
 *
 * A table is published by its name, with its schema, with all tables, or as a partition of a table that is. So each of
 * these is looked at from both ends: when a publication gets a table or a schema, and when a log comes to be one of
 * what is published. The object-access hook of sheetlog_ddl.c calls it, with the rows that the command has just made:
 * those are read with SnapshotSelf. Unlogged logs are in no publication, as PostgreSQL has it.
 *
 * A lock lets one end look only when what the other one does has been committed or undone: publications are changed
 * one by one, and not while logs are made.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_publication_namespace.h"
#include "catalog/pg_publication_rel.h"
#include "am/handler/sheetlog_private.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* On no publication that there is, so that nobody else takes it. Held till the transaction ends. */
static void
sheetlog_lock_publications(LOCKMODE mode)
{
	LockDatabaseObject(PublicationRelationId, InvalidOid, 0, mode);
}

/* ---- logs among what is published ---- */

static bool
sheetlog_is_permanent_log(Form_pg_class class)
{
	return class->relkind == RELKIND_RELATION && class->relpersistence == RELPERSISTENCE_PERMANENT &&
		   sheetlog_is_access_method(class->relam);
}

/* The table, when it is a log, or the first log among its partitions at any depth; InvalidOid: none. */
static Oid
sheetlog_find_log_in_table(Oid table)
{
	List *tables = get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE
					   ? find_all_inheritors(table, AccessShareLock, NULL)
					   : list_make1_oid(table);
	Oid found = InvalidOid;
	ListCell *cell;

	foreach (cell, tables)
	{
		HeapTuple row = SearchSysCache1(RELOID, ObjectIdGetDatum(lfirst_oid(cell)));

		if (!HeapTupleIsValid(row))
			continue;
		if (sheetlog_is_permanent_log((Form_pg_class) GETSTRUCT(row)))
			found = lfirst_oid(cell);
		ReleaseSysCache(row);
		if (OidIsValid(found))
			break;
	}
	list_free(tables);
	return found;
}

/* A log of the schema, or one that is a partition of a table of the schema; InvalidOid for the schema: of any. */
static Oid
sheetlog_find_log_in_schema(Oid schema)
{
	Relation rel = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	Oid found = InvalidOid;
	HeapTuple row;

	while (!OidIsValid(found) && HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(row);

		if (OidIsValid(schema) && class->relnamespace != schema)
			continue;
		if (sheetlog_is_permanent_log(class))
			found = class->oid;
		else if (OidIsValid(schema) && class->relkind == RELKIND_PARTITIONED_TABLE)
			found = sheetlog_find_log_in_table(class->oid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* ---- a publication gets a table or a schema ---- */

static void
sheetlog_check_published_table(Oid table)
{
	Oid log = sheetlog_find_log_in_table(table);

	if (!OidIsValid(log))
		return;
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot publish table \"%s\"", get_rel_name(table)),
					log == table
						? errdetail("Tables using access method \"sheetlog\" are not decoded logically.")
						: errdetail("Its partition \"%s\" uses access method \"sheetlog\", whose rows are not decoded "
									"logically.",
									get_rel_name(log)),
					log == table ? errhint("Replicate the cluster by streaming, or read the log by SQL.")
								 : errhint("Name the other partitions in the publication.")));
}

static void
sheetlog_check_published_schema(Oid schema)
{
	Oid log = sheetlog_find_log_in_schema(schema);

	if (!OidIsValid(log))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 OidIsValid(schema) ? errmsg("cannot publish the tables of schema \"%s\"", get_namespace_name(schema))
								: errmsg("cannot publish all tables"),
			 errdetail("Table \"%s\" uses access method \"sheetlog\", whose rows are not decoded logically.",
					   get_rel_name(log)),
			 errhint("Name the other tables in the publication.")));
}

typedef struct PublishedOids
{
	AttrNumber column;
	void (*check)(Oid oid);
} PublishedOids;

static bool
sheetlog_check_oid(HeapTuple row, TupleDesc desc, void *arg)
{
	const PublishedOids *oids = arg;
	bool isnull;

	oids->check(DatumGetObjectId(heap_getattr(row, oids->column, desc, &isnull)));
	return false;
}

/* Checks the oids in a column of the catalog's rows that have this oid in another. */
static void
sheetlog_check_rows(Oid catalog, AttrNumber key_column, Oid oid, AttrNumber column, void (*check)(Oid oid))
{
	const SheetlogRows rows = {catalog, InvalidOid, key_column, oid, true};
	PublishedOids oids = {column, check};

	(void) sheetlog_find_row(&rows, sheetlog_check_oid, &oids);
}

/* CREATE PUBLICATION tells of itself only, when its tables and schemas are in. */
void
sheetlog_check_publication(Oid publication)
{
	sheetlog_lock_publications(ShareRowExclusiveLock);
	if (GetPublication(publication)->alltables)
		sheetlog_check_published_schema(InvalidOid);
	sheetlog_check_rows(PublicationRelRelationId, Anum_pg_publication_rel_prpubid, publication,
						Anum_pg_publication_rel_prrelid, sheetlog_check_published_table);
	sheetlog_check_rows(PublicationNamespaceRelationId, Anum_pg_publication_namespace_pnpubid, publication,
						Anum_pg_publication_namespace_pnnspid, sheetlog_check_published_schema);
}

/* ALTER PUBLICATION ... ADD TABLE, SET TABLE. */
void
sheetlog_check_publication_table(Oid object)
{
	sheetlog_lock_publications(ShareRowExclusiveLock);
	sheetlog_check_rows(PublicationRelRelationId, Anum_pg_publication_rel_oid, object, Anum_pg_publication_rel_prrelid,
						sheetlog_check_published_table);
}

/* ALTER PUBLICATION ... ADD TABLES IN SCHEMA. */
void
sheetlog_check_publication_schema(Oid object)
{
	sheetlog_lock_publications(ShareRowExclusiveLock);
	sheetlog_check_rows(PublicationNamespaceRelationId, Anum_pg_publication_namespace_oid, object,
						Anum_pg_publication_namespace_pnnspid, sheetlog_check_published_schema);
}

/* ---- a log comes to what is published ---- */

static bool
sheetlog_schema_is_published(Oid schema)
{
	return GetAllTablesPublications() != NIL || GetSchemaPublications(schema) != NIL;
}

/* The nearest of these tables that is in a publication by itself; InvalidOid: none. */
static Oid
sheetlog_find_published(List *tables)
{
	ListCell *cell;

	foreach (cell, tables)
	{
		Oid table = lfirst_oid(cell);

		if (GetRelationPublications(table) != NIL || sheetlog_schema_is_published(get_rel_namespace(table)))
			return table;
	}
	return InvalidOid;
}

Oid
sheetlog_published_by(const SheetlogTable *table)
{
	if (table->permanent)
		sheetlog_lock_publications(ShareLock);
	if (GetRelationPublications(table->oid) != NIL || (table->permanent && sheetlog_schema_is_published(table->schema)))
		return table->oid;
	if (!table->permanent || !table->partition)
		return InvalidOid;
	return sheetlog_find_published(get_partition_ancestors(table->oid));
}

static bool
sheetlog_is_of_parent(HeapTuple row, TupleDesc desc, void *parent)
{
	return ((Form_pg_inherits) GETSTRUCT(row))->inhparent == *(Oid *) parent;
}

/* Does the new row of pg_inherits, not yet visible to the caches, exist? DETACH has just taken it away. */
static bool
sheetlog_inherits(Oid child, Oid parent)
{
	const SheetlogRows rows = {InheritsRelationId, InheritsRelidSeqnoIndexId, Anum_pg_inherits_inhrelid, child, true};

	return sheetlog_find_row(&rows, sheetlog_is_of_parent, &parent);
}

void
sheetlog_check_inheritance(Oid child, Oid parent)
{
	Oid log, published;

	if (get_rel_relkind(parent) != RELKIND_PARTITIONED_TABLE || !sheetlog_inherits(child, parent))
		return;
	log = sheetlog_find_log_in_table(child);
	if (!OidIsValid(log))
		return;
	sheetlog_lock_publications(ShareLock);
	published = sheetlog_find_published(lcons_oid(parent, get_partition_ancestors(parent)));
	if (!OidIsValid(published))
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		 errmsg("table \"%s\" cannot be a partition of \"%s\"", get_rel_name(child), get_rel_name(parent)),
		 errdetail("Table \"%s\" uses access method \"sheetlog\", whose rows are not decoded logically, and \"%s\" is "
				   "in a publication.",
				   get_rel_name(log), get_rel_name(published)),
		 errhint("Take the partitioned table, its schema or all tables out of the publication first.")));
}

/* ALTER TABLE ... SET SCHEMA takes a partitioned table's partitions with it into the publications of the schema. */
void
sheetlog_check_partitioned(const SheetlogTable *table)
{
	if (!table->permanent)
		return;
	sheetlog_lock_publications(ShareLock);
	if (sheetlog_schema_is_published(table->schema))
		sheetlog_check_published_table(table->oid);
}
