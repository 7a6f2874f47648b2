/*
 * tokens.h - verifies tokens, and remembers those that were good: most requests come with one that has just been seen.
 */
#ifndef TOKENS_H
#define TOKENS_H

#include "auth/jwt.h"

/* As jwt_verify(); a token that was good is looked at again only for its end. */
extern JwtStatus tokens_verify(const JwtKeys *keys, const char *token, size_t len, int64_t now, JwtClaims *claims);
/* The keys have changed. */
extern void tokens_forget_all(void);

#endif
