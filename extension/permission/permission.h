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
 * A guest is a visitor who has opened a link (sheet.link). The uid of a guest is the negative number of the link.
 */
#define GUEST_SUFFIX	  " (guest)" /* behind the name that a guest has chosen */
#define GUEST_LINK_SUFFIX " (link)"	 /* behind the label of a link: the name of its guests in the log */

static inline bool
permission_is_guest(int64 uid)
{
	return uid < 0;
}

/* The number of a guest's link. */
static inline int64
permission_link_of(int64 uid)
{
	return (int64) (0 - (uint64) uid);
}

/* Raises 42501 for a guest, who has neither sheets nor files of his own. */
extern void permission_refuse_guest(int64 uid);

/*
 * The account for which the caller acts: as_uid if it is not 0 (42501 unless the caller is a superuser or a member of
 * sheet_gateway), otherwise the account linked to the current SQL role, 0 if there is none.
 */
extern int64 permission_uid(int64 as_uid);
/* The role of that account on the sheet; superusers acting as themselves are owners. 42704 when there is no such sheet.
 */
extern SheetRole permission_role(int64 sheet_id, int64 as_uid);
extern const char *permission_role_name(SheetRole role);
/* Raises 42501 unless permission_role() is at least `needed`, and ST001 for a sheet in the trash unless allow_trashed.
 * If an editor or owner is needed, that is for a change, the role is looked up with the latest snapshot. Returns the
 * account, as permission_uid(). */
extern int64 permission_require(int64 sheet_id, int64 as_uid, SheetRole needed, bool allow_trashed);
extern _Noreturn void permission_deny_trashed(int64 sheet_id);
/* Always with the latest snapshot, and not in the trash. Returns the role. */
extern SheetRole permission_require_now(int64 sheet_id, int64 as_uid, SheetRole needed);
/* The role that a guest has in the rectangle of the link, with the latest snapshot; ROLE_NONE if the link is not valid.
 * *sheet_id: the link's sheet, which never changes; 0: there is no such link to a rectangle. */
extern SheetRole permission_in_part(int64 uid, int64 *sheet_id);
/* Permission to read cells and versions: gateways always, others need the role viewer. */
extern void permission_require_reader(int64 sheet_id);
/* Permission to read the log: gateways always, others need the role viewer, in the trash owner. */
extern void permission_require_log(int64 sheet_id);
/* The sheets with ids from low to high that sheet.list shows to the caller, in the order of their ids. Palloced. */
extern int64 *permission_listed(int64 low, int64 high, int *count);
/* Raises 42501 unless the caller may act for others: superusers and members of sheet_gateway. Reads no table. */
extern void permission_require_gateway(void);
/* Whether the role is a superuser or a member of sheet_gateway. */
extern bool permission_is_gateway_role(Oid role);

/* Called by _PG_init. */
extern void permission_init(void);

#endif
