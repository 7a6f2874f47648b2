/*
 * sheetlog_ddl.c - refuses at DDL what could only fail at each later use.
 *
 * A foreign key that references a log would fail at every insert into the referencing table (it locks the referenced
 * row), and a publication of a log would never tell of its rows. Both are refused when they are made, whatever the
 * statement was, by looking at the catalog row from the object-access hook; and a table that has one of them, or would
 * be in a publication of its schema or of all tables, is refused when it is about to become a log.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_publication_namespace.h"
#include "catalog/pg_publication_rel.h"
#include "sheetlog.h"
#include "sheetlog_private.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static object_access_hook_type sheetlog_next_hook = NULL;

static bool
sheetlog_is_access_method(Oid am)
{
	HeapTuple row = SearchSysCache1(AMOID, ObjectIdGetDatum(am));
	bool is = false;

	if (HeapTupleIsValid(row))
	{
		is = sheetlog_is_handler(((Form_pg_am) GETSTRUCT(row))->amhandler);
		ReleaseSysCache(row);
	}
	return is;
}

/* The relation that a new catalog row is about: the referenced table, or the published one; 0 when none. */
static Oid
sheetlog_row_target(Oid catalog, HeapTuple row)
{
	if (catalog == ConstraintRelationId)
	{
		Form_pg_constraint constraint = (Form_pg_constraint) GETSTRUCT(row);

		return constraint->contype == CONSTRAINT_FOREIGN ? constraint->confrelid : InvalidOid;
	}
	return ((Form_pg_publication_rel) GETSTRUCT(row))->prrelid;
}

/* Reads the row that was just made: not yet visible to the system caches. */
static Oid
sheetlog_new_row_target(Oid catalog, Oid object)
{
	Relation rel = table_open(catalog, AccessShareLock);
	Oid target = InvalidOid;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple row;

	ScanKeyInit(&key, catalog == ConstraintRelationId ? Anum_pg_constraint_oid : Anum_pg_publication_rel_oid,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(object));
	scan = systable_beginscan(rel, catalog == ConstraintRelationId ? ConstraintOidIndexId : PublicationRelObjectIndexId,
							  true, SnapshotSelf, 1, &key);
	row = systable_getnext(scan);
	if (HeapTupleIsValid(row))
		target = sheetlog_row_target(catalog, row);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return target;
}

static void
sheetlog_check_target(Oid catalog, Oid target)
{
	Relation rel = table_open(target, AccessShareLock);
	bool is_log = sheetlog_is(rel);

	table_close(rel, AccessShareLock);
	if (!is_log)
		return;
	if (catalog == ConstraintRelationId)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot reference table \"%s\" by a foreign key", get_rel_name(target)),
				 errdetail("Tables using access method \"sheetlog\" are append-only: their rows cannot be locked."),
				 errhint("Check the reference by a trigger, or use ALTER TABLE ... SET ACCESS METHOD heap.")));
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot publish table \"%s\"", get_rel_name(target)),
					errdetail("Tables using access method \"sheetlog\" are not decoded logically."),
					errhint("Replicate the cluster by streaming, or read the log by SQL.")));
}

/* Logs of the schema; InvalidOid: of any. */
static Oid
sheetlog_find_log(Oid schema)
{
	Relation rel = table_open(RelationRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	Oid found = InvalidOid;
	HeapTuple row;

	while (!OidIsValid(found) && HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(row);

		if (class->relkind == RELKIND_RELATION && class->relpersistence == RELPERSISTENCE_PERMANENT &&
			(!OidIsValid(schema) || class->relnamespace == schema) && sheetlog_is_access_method(class->relam))
			found = class->oid;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

static void
sheetlog_refuse_published(Oid log, Oid schema)
{
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

/* Calls fn for the oids in a column of the rows of a publication, which may have been made by this command. */
static void
sheetlog_for_published(Oid catalog, AttrNumber publication_column, AttrNumber column, Oid publication,
					   void (*fn)(Oid target))
{
	Relation rel = table_open(catalog, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple row;
	bool isnull;

	ScanKeyInit(&key, publication_column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(publication));
	scan = systable_beginscan(rel, InvalidOid, false, SnapshotSelf, 1, &key);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
		fn(DatumGetObjectId(heap_getattr(row, column, RelationGetDescr(rel), &isnull)));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

static void
sheetlog_check_published_table(Oid table)
{
	sheetlog_check_target(PublicationRelRelationId, table);
}

static void
sheetlog_check_published_schema(Oid schema)
{
	sheetlog_refuse_published(sheetlog_find_log(schema), schema);
}

/* CREATE PUBLICATION tells of itself only, when its tables and schemas are in. */
static void
sheetlog_check_publication(Oid publication)
{
	if (GetPublication(publication)->alltables)
		sheetlog_refuse_published(sheetlog_find_log(InvalidOid), InvalidOid);
	sheetlog_for_published(PublicationRelRelationId, Anum_pg_publication_rel_prpubid, Anum_pg_publication_rel_prrelid,
						   publication, sheetlog_check_published_table);
	sheetlog_for_published(PublicationNamespaceRelationId, Anum_pg_publication_namespace_pnpubid,
						   Anum_pg_publication_namespace_pnnspid, publication, sheetlog_check_published_schema);
}

/* ALTER PUBLICATION ... ADD TABLES IN SCHEMA. */
static void
sheetlog_check_schema(Oid object)
{
	sheetlog_for_published(PublicationNamespaceRelationId, Anum_pg_publication_namespace_oid,
						   Anum_pg_publication_namespace_pnnspid, object, sheetlog_check_published_schema);
}

/* What a table that is being made or changed is, by its row, which the caches do not have yet. */
typedef struct SheetlogTable
{
	Oid schema;
	bool permanent;
	NameData name;
} SheetlogTable;

/* Does the relation's new pg_class row, not yet visible to the caches, name our access method? */
static bool
sheetlog_becomes_log(Oid relation, SheetlogTable *table)
{
	Relation rel = table_open(RelationRelationId, AccessShareLock);
	bool becomes = false;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple row;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
	scan = systable_beginscan(rel, ClassOidIndexId, true, SnapshotSelf, 1, &key);
	row = systable_getnext(scan);
	if (HeapTupleIsValid(row) && ((Form_pg_class) GETSTRUCT(row))->relkind == RELKIND_RELATION)
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(row);

		becomes = sheetlog_is_access_method(class->relam);
		*table =
			(SheetlogTable){class->relnamespace, class->relpersistence == RELPERSISTENCE_PERMANENT, class->relname};
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return becomes;
}

/* Does a row of the catalog have the relation in this column? No index is needed: only ALTER TABLE asks. */
static bool
sheetlog_is_named_in(Oid catalog, AttrNumber column, Oid relation)
{
	Relation rel = table_open(catalog, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	bool found;

	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
	scan = systable_beginscan(rel, InvalidOid, false, NULL, 1, &key);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* The name that the user knows: a rewrite is made in a table that is called pg_temp_ and the number of the one it is
 * for. */
static const char *
sheetlog_table_name(const SheetlogTable *table)
{
	char *end;
	Oid rewritten;
	char *name = NULL;

	if (strncmp(NameStr(table->name), "pg_temp_", 8) == 0)
	{
		rewritten = (Oid) strtoul(NameStr(table->name) + 8, &end, 10);
		name = *end == '\0' ? get_rel_name(rewritten) : NULL;
	}
	return name != NULL ? name : pstrdup(NameStr(table->name));
}

/* CREATE TABLE, SET SCHEMA, and SET ACCESS METHOD, which tells of the table when its files are swapped. */
static void
sheetlog_check_table(Oid relation)
{
	SheetlogTable table;
	bool referenced;

	if (!sheetlog_becomes_log(relation, &table))
		return;
	referenced = sheetlog_is_named_in(ConstraintRelationId, Anum_pg_constraint_confrelid, relation);
	if (!referenced && !sheetlog_is_named_in(PublicationRelRelationId, Anum_pg_publication_rel_prrelid, relation) &&
		(!table.permanent || (GetAllTablesPublications() == NIL && GetSchemaPublications(table.schema) == NIL)))
		return;
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("table \"%s\" cannot use access method \"sheetlog\"", sheetlog_table_name(&table)),
					referenced ? errdetail("It is referenced by a foreign key, and rows of a log cannot be locked.")
							   : errdetail("It is in a publication, and logs are not decoded logically."),
					referenced ? errhint("Drop the foreign key first.")
							   : errhint("Take the table, its schema or all tables out of the publication first.")));
}

static void
sheetlog_object_access(ObjectAccessType access, Oid catalog, Oid object, int sub_object, void *arg)
{
	if (sheetlog_next_hook != NULL)
		sheetlog_next_hook(access, catalog, object, sub_object, arg);
	if ((access == OAT_POST_ALTER || access == OAT_POST_CREATE) && catalog == RelationRelationId && sub_object == 0)
		sheetlog_check_table(object);
	if (access != OAT_POST_CREATE)
		return;
	if (catalog == PublicationRelationId)
		sheetlog_check_publication(object);
	else if (catalog == PublicationNamespaceRelationId)
		sheetlog_check_schema(object);
	else if (catalog == ConstraintRelationId || catalog == PublicationRelRelationId)
	{
		Oid target = sheetlog_new_row_target(catalog, object);

		if (OidIsValid(target))
			sheetlog_check_target(catalog, target);
	}
}

void
sheetlog_ddl_init(void)
{
	sheetlog_next_hook = object_access_hook;
	object_access_hook = sheetlog_object_access;
}
