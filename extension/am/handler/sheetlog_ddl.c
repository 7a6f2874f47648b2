/*
 * sheetlog_ddl.c - refuses at DDL what could only fail at each later use.
 *
 * A foreign key that references a log would fail at every insert into the referencing table (it locks the referenced
 * row). One of a log with actions such as CASCADE would fail at every change of a referenced row. A publication would
 * never send the rows of a log. They are refused when they are created, whatever the statement was, by looking at the
 * catalog row from the object-access hook; and a table that has one of them is refused when it is to become a log.
 *
 * A table is published by its name, with its schema, with all tables, or as a partition of a table that is. So each of
 * these is checked from both ends: when a publication gets a table or a schema, and when a log becomes one of what is
 * published. A lock makes one end wait until the other has committed or rolled back: publications are changed one by
 * one, and not while logs are created. Unlogged logs are in no publication, as in PostgreSQL.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "am/handler/sheetlog.h"
#include "catalog/objectaccess.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_publication_namespace.h"
#include "catalog/pg_publication_rel.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static object_access_hook_type sheetlog_next_hook = NULL;

/* ---- catalogs ---- */

/* The rows of a catalog that have this OID in a column. */
typedef struct SheetlogRows
{
	Oid catalog;
	Oid index; /* that begins with the column; InvalidOid: all rows are looked at */
	AttrNumber column;
	Oid oid;
	bool just_made; /* also those that the command has just made */
} SheetlogRows;
typedef bool (*SheetlogRowFn)(HeapTuple row, TupleDesc desc, void *arg);

/* Calls fn for one after the other until it returns true; returns false if it never does. Reads the catalog itself: the
 * caches do not have rows that the command has just made. */
static bool
sheetlog_find_row(const SheetlogRows *rows, SheetlogRowFn fn, void *arg)
{
	Relation rel = table_open(rows->catalog, AccessShareLock);
	bool found = false;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple row;

	ScanKeyInit(&key, rows->column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(rows->oid));
	scan =
		systable_beginscan(rel, rows->index, OidIsValid(rows->index), rows->just_made ? SnapshotSelf : NULL, 1, &key);
	while (!found && HeapTupleIsValid(row = systable_getnext(scan)))
		found = fn(row, RelationGetDescr(rel), arg);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

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

/* ---- publications ---- */

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
static void
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
static void
sheetlog_check_publication_table(Oid object)
{
	sheetlog_lock_publications(ShareRowExclusiveLock);
	sheetlog_check_rows(PublicationRelRelationId, Anum_pg_publication_rel_oid, object, Anum_pg_publication_rel_prrelid,
						sheetlog_check_published_table);
}

/* ALTER PUBLICATION ... ADD TABLES IN SCHEMA. */
static void
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

static Oid
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

static void
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
static void
sheetlog_check_partitioned(const SheetlogTable *table)
{
	if (!table->permanent)
		return;
	sheetlog_lock_publications(ShareLock);
	if (sheetlog_schema_is_published(table->schema))
		sheetlog_check_published_table(table->oid);
}

/* ---- foreign keys, and tables that become logs ---- */

static bool
sheetlog_is_log(Oid relation)
{
	Relation rel = table_open(relation, AccessShareLock);
	bool is = sheetlog_is(rel);

	table_close(rel, AccessShareLock);
	return is;
}

/* Would the action change rows of the table that has the foreign key? */
static bool
sheetlog_action_changes(char action)
{
	return action != FKCONSTR_ACTION_NOACTION && action != FKCONSTR_ACTION_RESTRICT;
}

static bool
sheetlog_changes_referencing(Form_pg_constraint constraint)
{
	return constraint->contype == CONSTRAINT_FOREIGN &&
		   (sheetlog_action_changes(constraint->confdeltype) || sheetlog_action_changes(constraint->confupdtype));
}

static void
sheetlog_refuse_reference(const FormData_pg_constraint *constraint)
{
	if (sheetlog_is_log(constraint->confrelid))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot reference table \"%s\" by a foreign key", get_rel_name(constraint->confrelid)),
				 errdetail("Tables using access method \"sheetlog\" are append-only: their rows cannot be locked."),
				 errhint("Check the reference by a trigger, or use ALTER TABLE ... SET ACCESS METHOD heap.")));
	if (sheetlog_changes_referencing((Form_pg_constraint) constraint) && sheetlog_is_log(constraint->conrelid))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a foreign key of table \"%s\" cannot change its rows", get_rel_name(constraint->conrelid)),
				 errdetail("Tables using access method \"sheetlog\" are append-only."),
				 errhint("Use ON DELETE and ON UPDATE with NO ACTION or RESTRICT.")));
}

static bool
sheetlog_copy_foreign_key(HeapTuple row, TupleDesc desc, void *copy)
{
	memcpy(copy, GETSTRUCT(row), sizeof(FormData_pg_constraint));
	return ((Form_pg_constraint) copy)->contype == CONSTRAINT_FOREIGN;
}

/* Looks at the new row of pg_constraint, not yet visible to the system caches. */
static void
sheetlog_check_constraint(Oid constraint)
{
	const SheetlogRows rows = {ConstraintRelationId, ConstraintOidIndexId, Anum_pg_constraint_oid, constraint, true};
	FormData_pg_constraint found;

	if (sheetlog_find_row(&rows, sheetlog_copy_foreign_key, &found))
		sheetlog_refuse_reference(&found);
}

static bool
sheetlog_describe_table(HeapTuple row, TupleDesc desc, void *table)
{
	Form_pg_class class = (Form_pg_class) GETSTRUCT(row);

	*(SheetlogTable *) table = (SheetlogTable){.oid = class->oid,
											   .schema = class->relnamespace,
											   .am = class->relam,
											   .name = class->relname,
											   .kind = class->relkind,
											   .permanent = class->relpersistence == RELPERSISTENCE_PERMANENT,
											   .partition = class->relispartition};
	return true;
}

/* Reads the relation's new row of pg_class, not yet visible to the caches. */
static bool
sheetlog_read_table(Oid relation, SheetlogTable *table)
{
	const SheetlogRows rows = {RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, relation, true};

	return sheetlog_find_row(&rows, sheetlog_describe_table, table);
}

static bool
sheetlog_any_row(HeapTuple row, TupleDesc desc, void *arg)
{
	return true;
}

/* Is it referenced by a foreign key? No index is needed: only ALTER TABLE asks. */
static bool
sheetlog_is_referenced(Oid relation)
{
	const SheetlogRows rows = {ConstraintRelationId, InvalidOid, Anum_pg_constraint_confrelid, relation, false};

	return sheetlog_find_row(&rows, sheetlog_any_row, NULL);
}

static bool
sheetlog_is_changing_key(HeapTuple row, TupleDesc desc, void *arg)
{
	return sheetlog_changes_referencing((Form_pg_constraint) GETSTRUCT(row));
}

/* Has it a foreign key whose actions would change its rows? */
static bool
sheetlog_has_changing_key(Oid relation)
{
	const SheetlogRows rows = {ConstraintRelationId, ConstraintRelidTypidNameIndexId, Anum_pg_constraint_conrelid,
							   relation, false};

	return sheetlog_find_row(&rows, sheetlog_is_changing_key, NULL);
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

static void
sheetlog_check_new_log(const SheetlogTable *table)
{
	Oid published;

	if (sheetlog_is_referenced(table->oid))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("table \"%s\" cannot use access method \"sheetlog\"", sheetlog_table_name(table)),
						errdetail("It is referenced by a foreign key, and rows of a log cannot be locked."),
						errhint("Drop the foreign key first.")));
	if (sheetlog_has_changing_key(table->oid))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("table \"%s\" cannot use access method \"sheetlog\"", sheetlog_table_name(table)),
						errdetail("It has a foreign key whose actions would change its rows."),
						errhint("Make it one with NO ACTION or RESTRICT first.")));
	published = sheetlog_published_by(table);
	if (OidIsValid(published))
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("table \"%s\" cannot use access method \"sheetlog\"", sheetlog_table_name(table)),
			 published == table->oid
				 ? errdetail("It is in a publication, and logs are not decoded logically.")
				 : errdetail(
					   "It is a partition of \"%s\", which is in a publication, and logs are not decoded logically.",
					   get_rel_name(published)),
			 errhint("Take the table, its schema or all tables out of the publication first.")));
}

/* CREATE TABLE, SET SCHEMA, and SET ACCESS METHOD, which tells of the table when its files are swapped. */
static void
sheetlog_check_table(Oid relation)
{
	SheetlogTable table;

	if (!sheetlog_read_table(relation, &table))
		return;
	if (table.kind == RELKIND_RELATION && sheetlog_is_access_method(table.am))
		sheetlog_check_new_log(&table);
	else if (table.kind == RELKIND_PARTITIONED_TABLE)
		sheetlog_check_partitioned(&table);
}

static void
sheetlog_object_access(ObjectAccessType access, Oid catalog, Oid object, int sub_object, void *arg)
{
	if (sheetlog_next_hook != NULL)
		sheetlog_next_hook(access, catalog, object, sub_object, arg);
	if ((access == OAT_POST_ALTER || access == OAT_POST_CREATE) && catalog == RelationRelationId && sub_object == 0)
		sheetlog_check_table(object);
	else if (access == OAT_POST_ALTER && catalog == InheritsRelationId)
		sheetlog_check_inheritance(object, ((ObjectAccessPostAlter *) arg)->auxiliary_id);
	if (access != OAT_POST_CREATE)
		return;
	if (catalog == PublicationRelationId)
		sheetlog_check_publication(object);
	else if (catalog == PublicationNamespaceRelationId)
		sheetlog_check_publication_schema(object);
	else if (catalog == PublicationRelRelationId)
		sheetlog_check_publication_table(object);
	else if (catalog == ConstraintRelationId)
		sheetlog_check_constraint(object);
}

void
sheetlog_ddl_init(void)
{
	sheetlog_next_hook = object_access_hook;
	object_access_hook = sheetlog_object_access;
}
