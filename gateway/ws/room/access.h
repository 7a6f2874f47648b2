/*
 * access.h - which accounts may read which sheets, remembered for a short time, and forgotten when the gateway is told
 * of a change (follow.c).
 */
#ifndef ACCESS_H
#define ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#define LINK_KEY_MAX 43 /* characters of a link's key */

/* The account may read the sheet, which is not in the trash. False: the database has to be asked. */
extern bool access_is_known(int64_t sheet_id, int64_t uid);
/* The database says so. asked: follow_changes() when it was asked; when the sheet or the
 * account has changed since, its answer is not remembered. */
extern void access_remember(int64_t sheet_id, int64_t uid, uint64_t asked);
extern void access_forget_sheet(int64_t sheet_id);
extern void access_forget_account(int64_t uid);
extern void access_forget_all(void);

/* The account has opened the sheet, by whatever protocol: its own list shows so. Nobody waits for it. */
extern void access_register_opening(int64_t sheet_id, int64_t uid);

#endif
