/* worker.h - background workers that make versions and check sheets; see worker.c. */
#ifndef WORKER_H
#define WORKER_H

#include "postgres.h"

/* Registers the launcher; from _PG_init while preloading. */
extern void worker_register(void);

/* Where the processes begin. */
extern PGDLLEXPORT void sheet_launcher_main(Datum arg);
extern PGDLLEXPORT void sheet_worker_main(Datum arg);

#endif
