/*
 * window.h - the cells of a range as one JSON text (GET /v2/sheets/ID/cells): read from the database, and kept for
 * whoever asks next, as long as they are the truth; see window.c.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include "support/buf.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct WindowKey
{
	int64_t sheet_id;
	uint32_t row, col, to_row, to_col; /* inclusive */
	bool styles;
} WindowKey;

/* What a window holds at a seq. It stays as it is, as long as anybody holds it. */
typedef struct WindowAnswer
{
	int holders;
	int64_t seq;
	uint64_t asked; /* when, by the clock of window.c */
	uint64_t began; /* ns: when the question was sent */
	size_t len;
	char etag[48];
	char body[];
} WindowAnswer;

typedef enum WindowStatus
{
	WINDOW_READY,
	WINDOW_FAILED,	  /* the database has refused, or does not answer: res tells, or is NULL */
	WINDOW_TOO_LARGE, /* more than WINDOW_BYTES_MAX */
	WINDOW_BUSY		  /* too many questions wait for the database, or too many large answers for their readers */
} WindowStatus;

/* Bytes of a window's cells in the codec's form. */
#define WINDOW_BYTES_MAX (16 * 1024 * 1024)

/* answer: of WINDOW_READY; it is the callee's to hold. res: of WINDOW_FAILED. */
typedef void (*WindowFn)(void *arg, WindowStatus status, WindowAnswer *answer, const PGresult *res);

/* The window, if it is here and the truth: held for the caller. NULL: it has to be asked for. */
extern WindowAnswer *window_find(const WindowKey *key);
/* Reads the window on behalf of an account; fn is called, perhaps at once. A window that is being read is shared if the
 * answer is new enough. */
extern void window_ask(const WindowKey *key, int64_t account, WindowFn fn, void *arg);
extern void window_hold(WindowAnswer *answer);
extern void window_release(WindowAnswer *answer); /* NULL: nothing */

/* ---- what happens to sheets ---- */
/* Edits up to seq are committed. */
extern void window_committed(int64_t sheet_id, int64_t seq);
/* The sheet may have changed: what was asked for before this moment counts no more. */
extern void window_doubt(int64_t sheet_id);
/* Changes may have gone unnoticed: the same for all sheets. */
extern void window_doubt_all(void);

/* For /metrics. */
extern void window_print(Buf *buf);

#endif
