/*
 * role_link.c - a role that is dropped acts as no account any more.
 *
 * sheet.account names the roles that act as accounts by their numbers, and a role is not kept from being dropped by it.
 * The number of one that is gone would stand in dumps of the database, and where these are restored it can be another
 * role's, which would act as the account. So the link ends with the role, in the database in which it is dropped.
 */
#include "postgres.h"

#include "permission/catalog.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "permission/role_link.h"

static object_access_hook_type role_next_hook = NULL;

static CatalogQuery role_unlink = {"UPDATE sheet.account SET db_role = NULL WHERE db_role = $1", 1, {OIDOID}};

static void
role_object_access(ObjectAccessType access, Oid catalog, Oid object, int sub_object, void *arg)
{
	Datum role = ObjectIdGetDatum(object);

	if (role_next_hook != NULL)
		role_next_hook(access, catalog, object, sub_object, arg);
	if (access == OAT_DROP && catalog == AuthIdRelationId && OidIsValid(get_extension_oid("pg_sheet", true)))
		(void) catalog_execute(&role_unlink, &role, NULL);
}

void
role_link_init(void)
{
	role_next_hook = object_access_hook;
	object_access_hook = role_object_access;
}
