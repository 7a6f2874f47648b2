/*
 * worker.h - background workers that write checkpoints, so that opening a sheet reads one version and a short log, and
 * that check sheets which were opened after a crash (journal/recheck.c).
 *
 * One launcher for the server, started with it (after recovery, so not on a standby before it is promoted), connected
 * to no database. It sleeps without a timeout until its latch is set: by a writer who has put a sheet into the queue
 * (ckptqueue.h), by PostgreSQL when a worker starts or ends, by SIGHUP. For each database with due items it starts a
 * worker (launcher.c), at most CKPTQUEUE_WORKERS at a time, which writes checkpoints until nothing more is due there,
 * and ends: nobody stays connected to a database without work, so none is kept from being dropped or copied.
 *
 *   DROP DATABASE, CREATE DATABASE ... TEMPLATE and others that need a database for themselves lock it and wait five
 *   seconds for it to be empty. While workers run, the launcher looks four times a second whether somebody has locked
 *   their database, and ends them.
 *
 *   DROP EXTENSION waits for the checkpoint that is being written, as for any transaction. A worker waits for a lock
 * for less than half of deadlock_timeout (worker_settings): so it is always the worker that gives way.
 *
 *   An error in one sheet is logged, the sheet is put off, ever longer, and the next one is taken. A worker that dies
 *   leaves what it had taken in the queue; one that is killed takes the server through a restart, as any backend, and
 * the queue is lost with the shared memory: then, and after a promotion, the launcher has all databases searched for
 * long logs. Sheets that were to be checked are queued again when they are opened again.
 *
 * Lock order of a worker: as for a writer (docs/ARCHITECTURE.md). It takes one sheet's lock in a transaction.
 */
#ifndef WORKER_H
#define WORKER_H

#include "postgres.h"

/* Registers the launcher; from _PG_init while preloading. */
extern void worker_register(void);

/* Where the processes begin. */
extern PGDLLEXPORT void sheet_launcher_main(Datum arg);
extern PGDLLEXPORT void sheet_worker_main(Datum arg);

#endif
