/*
 * module.c - loading: settings, shared memory, callbacks.
 *
 * The cache, pastes, the ring of events and the background workers need shared_preload_libraries = 'pg_sheet'. Without
 * it all functions except sheet.follow() work, reads are uncached, and no version is made automatically.
 */
#include "postgres.h"

#include "cache/cache.h"
#include "support/workqueue.h"
#include "api/scan/cells.h"
#include "api/functions/databases.h"
#include "api/programs/calendars.h"
#include "api/functions/functions.h"
#include "api/logscan/edits_read.h"
#include "fmgr.h"
#include "journal/follow/follow.h"
#include "am/page/am_last.h"
#include "miscadmin.h"
#include "paste/paste.h"
#include "permission/permission.h"
#include "support/serverlife.h"
#include "am/handler/sheetlog.h"
#include "support/stoppoint.h"
#include "journal/store/storage.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "support/timeslice.h"
#include "timer/timer.h"
#include "utils/guc.h"
#include "worker/worker.h"
#include "journal/write/edit_life.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

static shmem_request_hook_type module_next_shmem_request = NULL;
static shmem_startup_hook_type module_next_shmem_startup = NULL;

static void
module_shmem_request(void)
{
	if (module_next_shmem_request != NULL)
		module_next_shmem_request();
	RequestAddinShmemSpace(am_last_shmem_size());
	RequestAddinShmemSpace(server_life_shmem_size());
	RequestAddinShmemSpace(locks_shmem_size());
	RequestAddinShmemSpace(timer_shmem_size());
	RequestAddinShmemSpace(paste_shmem_size());
	RequestAddinShmemSpace(add_size(cache_shmem_size(), add_size(follow_shmem_size(), workqueue_shmem_size())));
}

static void
module_shmem_startup(void)
{
	if (module_next_shmem_startup != NULL)
		module_next_shmem_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	am_last_shmem_startup();
	cache_shmem_startup();
	follow_shmem_startup(true);
	workqueue_shmem_startup();
	server_life_shmem_startup();
	locks_shmem_startup();
	timer_shmem_startup();
	paste_shmem_startup();
	LWLockRelease(AddinShmemInitLock);
}

static void
module_define_settings(void)
{
	DefineCustomIntVariable("pg_sheet.cache_size", "Shared memory for the cells of sheets.", "0 turns the cache off.",
							&cache_size_kb, 131072, 0, MAX_KILOBYTES, PGC_POSTMASTER, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_sheet.max_cached_sheets", "Maximum number of sheets in the cache.",
							"A sheet that is being edited needs an entry until its transaction ends.",
							&cache_max_sheets, 8192, 16, 4194304, PGC_POSTMASTER, 0, NULL, NULL, NULL);
	paste_define_settings();
	workqueue_define_settings();
}

void
_PG_init(void)
{
	if (process_shared_preload_libraries_in_progress)
	{
		module_define_settings();
		module_next_shmem_request = shmem_request_hook;
		shmem_request_hook = module_shmem_request;
		module_next_shmem_startup = shmem_startup_hook;
		shmem_startup_hook = module_shmem_startup;
		worker_register();
	}
	stop_point_init();
	time_slice_init();
	sheetlog_init();
	sheetlog_ddl_init();
	storage_init();
	/* PostgreSQL calls the callback that was registered last first. So a commit publishes its edits (edit_life), and
	 * then tells gateways (follow) and the timer's worker (timer) of them. */
	timer_init();
	follow_init();
	edit_life_init();
	files_init();
	permission_init();
	databases_init();
	calendars_init();
	edits_scan_init();
	cells_scan_init();
	MarkGUCPrefixReserved("pg_sheet");
}
