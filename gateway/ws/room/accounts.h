/*
 * accounts.h - names and token generations of accounts, remembered for a short time.
 */
#ifndef ACCOUNTS_H
#define ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#define ACCOUNTS_FRESH_MS 5000 /* so long a change may go unnoticed if its event is lost (follow.c) */

typedef struct Account
{
	int64_t uid;
	char name[404];		/* at most 100 characters */
	int64_t generation; /* -1: not known */
	uint64_t fetched;	/* ms of the loop's clock; 0: free */
} Account;

/* What is known of an account, however old; NULL when nothing is. */
extern const Account *accounts_find(int64_t uid);
extern bool accounts_is_fresh(const Account *account);
/* asked: follow_changes() when the database was asked. When the account has changed since, only the name is believed.
 */
extern void accounts_put(int64_t uid, const char *name, int64_t generation, uint64_t asked);
extern void accounts_forget(int64_t uid);
extern void accounts_forget_all(void);

/*
 * Whether the account has been in the sheet, or is to be seen there by what the database knows: then everybody in it
 * may know its name. False also when that has been forgotten.
 */
extern bool accounts_is_seen(int64_t sheet_id, int64_t uid);
extern void accounts_note_seen(int64_t sheet_id, int64_t uid);

#endif
