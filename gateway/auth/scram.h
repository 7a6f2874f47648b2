/* scram.h - the passwords of links that were created by SQL: PostgreSQL's SCRAM-SHA-256 secrets (RFC 5803). */
#ifndef SCRAM_H
#define SCRAM_H

#include <stdbool.h>
#include <stddef.h>

#define SCRAM_PREFIX "SCRAM-SHA-256$"

/*
 * Compares the password, byte by byte, with "SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>", in constant
 * time. False for a secret of another form, or one of more than 100,000 iterations; with errno ENOMEM if it could not
 * be compared.
 */
extern bool scram_verify(const char *password, size_t len, const char *stored);

#endif
