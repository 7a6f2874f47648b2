/*
 * accounts.h - what the gateway remembers of accounts for a short time: names, token generations, and the sheets that
 * they may read; see accounts.c.
 */
#ifndef ACCOUNTS_H
#define ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#define ACCOUNT_TOKENS 4

/* A token that the database has not revoked. */
typedef struct AcceptedToken
{
	int64_t id;
	uint64_t at; /* ms of the loop's clock; 0: none */
} AcceptedToken;

typedef struct Account
{
	int64_t uid;
	char name[404];		/* 100 characters at most */
	int64_t generation; /* of its tokens; -1: not known */
	uint64_t asked;		/* changes_now() when the database was asked */
	uint64_t fetched;	/* ms of the loop's clock; 0: the slot is free */
	AcceptedToken tokens[ACCOUNT_TOKENS];
	unsigned next_token; /* that is replaced */
} Account;

/* Returns the account's name and generation, however old; NULL when they are not known or have changed. */
extern const Account *accounts_find(int64_t uid);
/* Returns whether the generation is new enough to check a token by it. account may be NULL. */
extern bool accounts_is_fresh(const Account *account);
/* Returns whether the token of this id was accepted lately. */
extern bool accounts_has_token(const Account *account, int64_t token_id);
/* Of the account that accounts_put() has just put: its token of this id is not revoked. */
extern void accounts_put_token(int64_t uid, int64_t token_id);
/* asked: changes_now() when the database was asked. */
extern void accounts_put(int64_t uid, const char *name, int64_t generation, uint64_t asked);

/* Returns true when the account may read the sheet and the sheet is not in the trash; false: ask the database. */
extern bool accounts_may_read(int64_t sheet_id, int64_t uid);
/* The database says that it may. asked: changes_now() when it was asked. */
extern void accounts_put_reader(int64_t sheet_id, int64_t uid, uint64_t asked);

/* Returns true when every member of the sheet may know the account's name: it has been in the sheet, or the database
 * says that it is to be seen there. False also when that is not known. */
extern bool accounts_is_seen(int64_t sheet_id, int64_t uid);
extern void accounts_put_seen(int64_t sheet_id, int64_t uid);

/* Registers in the database that the account has opened the sheet, for its list of sheets. Nobody waits for it. */
extern void accounts_register_opening(int64_t sheet_id, int64_t uid);

#endif
