/*
 * permission.h - who may do what to a sheet; see docs/SQL.md for as_uid and the roles.
 */
#ifndef PERMISSION_H
#define PERMISSION_H

#include "postgres.h"

typedef enum SheetRole
{
	ROLE_NONE,
	ROLE_VIEWER,
	ROLE_COMMENTER,
	ROLE_EDITOR,
	ROLE_OWNER
} SheetRole;

/*
 * The account for whom the caller acts: as_uid when it is not 0 (allowed for members of sheet_gateway and superusers
 * only, else 42501), otherwise the account linked to the current SQL role, 0 when there is none.
 */
extern int64 permission_uid(int64 as_uid);
/* The role of that account on the sheet; superusers acting as themselves are owners. 42704 when there is no such sheet.
 */
extern SheetRole permission_role(int64 sheet_id, int64 as_uid);
extern const char *permission_role_name(SheetRole role);
/* permission_role() must be at least `needed`, else 42501; a sheet in the trash gives ST001 unless allow_trashed. What
 * takes an editor or owner changes the sheet, and the role is looked up as it is now, past the transaction's snapshot.
 */
extern void permission_require(int64 sheet_id, int64 as_uid, SheetRole needed, bool allow_trashed);
/* The same for whatever role, not in the trash; returns the role that the account has now. */
extern SheetRole permission_require_now(int64 sheet_id, int64 as_uid, SheetRole needed);
/* What reading a sheet as gateways do takes: gateways read for all their users, others need the role viewer. */
extern void permission_require_reader(int64 sheet_id);
/* What reading a sheet's log takes: the role viewer, in the trash owner. */
extern void permission_require_log(int64 sheet_id);
/* The sheets with ids from low to high that sheet.list shows to the caller, ascending; those in the trash to owners
 * only. */
extern int64 *permission_listed(int64 low, int64 high, int *count);
/* The session may act for others: superuser or member of sheet_gateway; else 42501. Cheap: no table is read. */
extern void permission_require_gateway(void);

#endif
