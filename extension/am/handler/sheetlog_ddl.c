/*
 * sheetlog_ddl.c - refuses at DDL what could only fail at each later use.
 *
 * A foreign key that references a log would fail at every insert into the referencing table (it locks the referenced
 * row), one of a log with actions such as CASCADE at every change of a referenced row, and a publication of a log would
 * never tell of its rows (sheetlog_published.c). They are refused when they are made, whatever the statement was, by
 * looking at the catalog row from the object-access hook; and a table that has one of them is refused when it is about
 * to become a log.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_publication.h"
#include "catalog/pg_publication_namespace.h"
#include "catalog/pg_publication_rel.h"
#include "nodes/parsenodes.h"
#include "am/handler/sheetlog.h"
#include "am/handler/sheetlog_private.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static object_access_hook_type sheetlog_next_hook = NULL;

bool
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
