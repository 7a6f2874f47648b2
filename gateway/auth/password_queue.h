/*
 * password_queue.h - password hashes beside the loop: few at a time, and a bounded number that wait.
 *
 * A hash takes 32 MiB and a tenth of a second on purpose. Whoever floods the gateway with logins must fill neither its
 * memory nor all of libuv's threads, on which others wait for their work.
 */
#ifndef PASSWORD_QUEUE_H
#define PASSWORD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

/* ok: a hash was made, or the password matches. hash: what was made, "" when something was compared, NULL when there
 * was no memory. On the loop. */
typedef void (*PasswordDone)(void *arg, bool ok, const char *hash);
/* Is anybody still interested? Asked before a waiting job begins; otherwise it is answered without work. On the loop.
 */
typedef bool (*PasswordWanted)(const void *arg);

typedef struct PasswordTask
{
	const char *password; /* copied */
	const char *stored;	  /* to compare with, copied; NULL: unknown user, which takes as long */
	bool compare;		  /* false: make a hash */
	PasswordWanted wanted;
	PasswordDone done;
	void *arg;
} PasswordTask;

/* False when limit jobs wait already: nothing was begun, and done is not called. */
extern bool password_queue_add(uv_loop_t *loop, const PasswordTask *task, int limit);
extern int password_queue_waiting(void);

#endif
