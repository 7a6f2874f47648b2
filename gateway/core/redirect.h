/* redirect.h - which gateway serves a sheet, and how clients reach it; see redirect.c. */
#ifndef REDIRECT_H
#define REDIRECT_H

#include <stdint.h>

typedef enum Served
{
	SERVED_HERE,
	SERVED_ELSEWHERE,
	SERVED_NOWHERE /* the gateways have not found each other yet */
} Served;

typedef enum RedirectForm
{
	REDIRECT_HTTP,	   /* http://HOST:PORT */
	REDIRECT_WEBSOCKET /* ws://HOST:PORT/sheetws */
} RedirectForm;

#define REDIRECT_MAX 320

/* Sets the address of the gateway that serves the sheet, also if it is this one; "" for SERVED_NOWHERE. */
extern Served redirect_find(int64_t sheet_id, RedirectForm form, char address[REDIRECT_MAX]);

#endif
