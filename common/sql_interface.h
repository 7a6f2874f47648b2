/*
 * sql_interface.h - numbers that SQL functions of the extension and the gateway, which calls them, agree on.
 */
#ifndef SQL_INTERFACE_H
#define SQL_INTERFACE_H

/* ---- sheet.follow: in place of a seq ---- */
/* The row of the sheet or its members changed (trashed, recovered, purged, renamed, shared), not its cells; or the name
 * or tokens of the account. */
#define FOLLOW_STATUS (-1)
/* The account has new reminders, or has dismissed some. */
#define FOLLOW_REMINDERS (-2)
/* Values of formulas were stored for the sheet. */
#define FOLLOW_VALUES (-3)
/* The book of which the sheet is a tab has changed, or has become another one. */
#define FOLLOW_BOOK (-4)

#define FOLLOW_ANSWER_MAX 1024 /* sheets in one answer; the rest comes with the next */

#define IMPORT_PART_BYTES 262144 /* of sheet.import_put */
#define PASTE_ID_CHARS	  26	 /* of five bits; the last one has three */

#endif
