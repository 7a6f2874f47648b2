/* worker.h - background workers: versions and checks of sheets (worker.c), the timer (timers.c), and the launcher. */
#ifndef WORKER_H
#define WORKER_H

#include "postgres.h"

/* Registers the launcher; from _PG_init while preloading. */
extern void worker_register(void);

/* Where the processes begin. */
extern PGDLLEXPORT void sheet_launcher_main(Datum arg);
extern PGDLLEXPORT void sheet_worker_main(Datum arg);
extern PGDLLEXPORT void sheet_timer_main(Datum arg);

/* ---- what workers share: worker.c ---- */
/* Overrides what the database or the role sets for its sessions. */
extern void worker_settings(const char *name);
/* A transaction with an active snapshot. */
extern void worker_begin(void);
extern void worker_commit(void);
/* In a PG_CATCH block: returns a copy of the error, in `context`, and ends the transaction. */
extern ErrorData *worker_abort(MemoryContext context);
extern bool worker_has_extension(void);

#define WORKER_FAILED_MS 60000 /* until a worker is started again that could not connect */

#endif
