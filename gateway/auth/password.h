/*
 * password.h - password hashes by scrypt (RFC 7914, OpenSSL's EVP_PBE_scrypt) with a salt of their own.
 *
 * They are stored as "$scrypt$ln=15,r=8,p=1$<salt, base64>$<hash, base64>". A hash takes 32 MiB and 0.1 s of CPU time.
 * Passwords that SQL has given to links are compared, too (scram.h).
 * The queue computes few at a time, so that a flood of logins fills neither the memory nor libuv's threads. Who has
 * asked for less comes first (PasswordTask.rank).
 */
#ifndef PASSWORD_H
#define PASSWORD_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define PASSWORD_HASH_MAX 160
#define PASSWORD_MAX	  1024 /* bytes; longer ones are refused before hashing */

/*
 * Sets the memory of new hashes, and of the comparison for an unknown user, before the first hash: 1 MiB (memory_log2
 * 20) to 256 MiB. The default is 32 MiB.
 */
#define PASSWORD_MEMORY_MIN_LOG2 20
#define PASSWORD_MEMORY_MAX_LOG2 28
extern void password_set_memory(int memory_log2);
extern bool password_hash(const char *password, size_t len, char to[PASSWORD_HASH_MAX]);
/*
 * Compares in constant time. stored NULL (unknown user): takes the same time and returns false. If there was no memory,
 * returns false with errno ENOMEM.
 */
extern bool password_verify(const char *password, size_t len, const char *stored);

typedef enum PasswordResult
{
	PASSWORD_OK, /* a hash was made, or the password matches */
	PASSWORD_WRONG,
	PASSWORD_DISPLACED, /* the queue was full, and somebody came who has asked for less */
	PASSWORD_FAILED,
	PASSWORD_NO_MEMORY
} PasswordResult;

/* hash: the new hash, "" if none was made. Called on the loop. */
typedef void (*PasswordDone)(void *arg, PasswordResult result, const char *hash);
/* Whether the result is still wanted. Called on the loop before a waiting job starts; if false, it is not computed. */
typedef bool (*PasswordWanted)(const void *arg);

#define PASSWORD_RANKS 80

typedef struct PasswordTask
{
	const char *password; /* copied */
	const char *stored;	  /* copied; the hash to compare with; NULL: unknown user */
	bool compare;		  /* false: make a hash */
	int rank;			  /* 0 to PASSWORD_RANKS - 1: the lowest comes first, those of one rank in their order */
	PasswordWanted wanted;
	PasswordDone done;
	void *arg;
} PasswordTask;

/* Returns false if `limit` jobs wait already, none of a higher rank, or there is no memory; done is then not called. */
extern bool password_queue_add(uv_loop_t *loop, const PasswordTask *task, int limit);
extern int password_queue_waiting(void);

#endif
