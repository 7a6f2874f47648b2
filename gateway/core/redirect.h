/* redirect.h - which gateway serves a sheet, and how clients reach it; see redirect.c. */
#ifndef REDIRECT_H
#define REDIRECT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum Served
{
	SERVED_HERE,
	SERVED_ELSEWHERE,
	SERVED_NOWHERE /* for now: see redirect_nowhere_reason() */
} Served;

typedef enum RedirectForm
{
	REDIRECT_HTTP,	   /* http://HOST:PORT */
	REDIRECT_WEBSOCKET /* ws://HOST:PORT/sheetws */
} RedirectForm;

#define REDIRECT_MAX	 320
#define REDIRECT_RETRY_S 1 /* Retry-After for SERVED_NOWHERE */

/* Sets the address of the gateway that serves the sheet, also if it is this one; "" for SERVED_NOWHERE. */
extern Served redirect_find(int64_t sheet_id, RedirectForm form, char address[REDIRECT_MAX]);
/* Does this gateway serve the sheet, as holder of its lock or as owner by the ring? */
extern bool redirect_is_here(int64_t sheet_id);
/* Why it is SERVED_NOWHERE; at most 123 bytes, for a WebSocket's close frame. */
extern const char *redirect_nowhere_reason(int64_t sheet_id);

/* The address of a member. */
extern void redirect_put_address(const char *member, RedirectForm form, char address[REDIRECT_MAX]);

#endif
