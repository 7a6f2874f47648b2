/* quota.h - how many bytes of files an account may have; see quota.c. */
#ifndef QUOTA_H
#define QUOTA_H

#include "postgres.h"

extern void quota_init(void);
/*
 * Raises SQ001 unless the account may have so many bytes more. Inside catalog_begin(); others of the account wait until
 * the transaction has ended, so that two uploads do not both take what is left.
 */
extern void quota_require(int64 uid, int64 upload_id, int64 bytes);

#endif
