/*
 * stoppoint.c - places where a test can end, fail or hold a backend.
 *
 * What a crash leaves behind depends on where it happens. Tests name the place by the setting pg_sheet.stop_point, so
 * that they need not hope for a signal to come at the right moment.
 */
#include "postgres.h"

#include <signal.h>

#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "stoppoint.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#define STOP_POINT_NAME_MAX 63
#define STOP_POINT_POLL_MS	10

typedef enum StopAction
{
	STOP_KILL,
	STOP_PANIC,
	STOP_ERROR,
	STOP_WAIT,
	STOP_ACTIONS
} StopAction;

static const char *const stop_action_names[STOP_ACTIONS] = {"kill", "panic", "error", "wait"};

typedef struct StopPoint
{
	char name[STOP_POINT_NAME_MAX + 1];
	StopAction action;
	int countdown; /* passages until it acts */
} StopPoint;

bool stop_point_armed = false;
static char *stop_point_setting = NULL;
static StopPoint stop_point;

/* ---- the setting ---- */

static bool
stop_action_parse(const char *text, size_t len, StopAction *action)
{
	for (int i = 0; i < STOP_ACTIONS; i++)
	{
		*action = i;
		if (strlen(stop_action_names[i]) == len && strncmp(stop_action_names[i], text, len) == 0)
			return true;
	}
	return false;
}

/* NAME:ACTION[:N] */
static bool
stop_point_parse(const char *text, StopPoint *point)
{
	size_t name_len = strcspn(text, ":");
	const char *action = text + name_len + 1;
	size_t action_len;
	char *end;

	if (name_len == 0 || name_len > STOP_POINT_NAME_MAX || text[name_len] == '\0')
		return false;
	memcpy(point->name, text, name_len);
	point->name[name_len] = '\0';
	action_len = strcspn(action, ":");
	if (!stop_action_parse(action, action_len, &point->action))
		return false;
	point->countdown = 1;
	if (action[action_len] == '\0')
		return true;
	point->countdown = strtol(action + action_len + 1, &end, 10);
	return *end == '\0' && point->countdown > 0;
}

static bool
stop_point_check(char **value, void **extra, GucSource source)
{
	StopPoint point;

	if (**value == '\0' || stop_point_parse(*value, &point))
		return true;
	GUC_check_errdetail("A stop point is NAME:ACTION or NAME:ACTION:N, where ACTION is kill, panic, error or wait.");
	return false;
}

static void
stop_point_assign(const char *value, void *extra)
{
	stop_point_armed = stop_point_parse(value, &stop_point);
}

void
stop_point_init(void)
{
	DefineCustomStringVariable("pg_sheet.stop_point", "A place where this session ends, fails or waits.",
							   "For tests of crashes and races.", &stop_point_setting, "", PGC_SUSET,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, stop_point_check, stop_point_assign, NULL);
}

/* ---- acting ---- */

/* As pg_advisory_lock(hashtext(name)) does it. */
static void
stop_point_wait(const char *name, bool may_fail)
{
	int64 key = (int32) DatumGetUInt32(hash_any((const unsigned char *) name, strlen(name)));
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) ((uint64) key >> 32), (uint32) key, 1);
	if (may_fail)
	{
		int timeout = LockTimeout;

		/* What bounds the session's waits for locks is not meant for this one. */
		LockTimeout = 0;
		PG_TRY();
		{
			(void) LockAcquire(&tag, ShareLock, true, false);
		}
		PG_FINALLY();
		{
			LockTimeout = timeout;
		}
		PG_END_TRY();
	}
	else
	{
		while (LockAcquire(&tag, ShareLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, STOP_POINT_POLL_MS,
							 PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
		}
	}
	(void) LockRelease(&tag, ShareLock, true);
}

void
stop_point_reached(const char *name, bool may_fail)
{
	if (strcmp(name, stop_point.name) != 0 || --stop_point.countdown > 0)
		return;
	stop_point_armed = false;
	switch (stop_point.action)
	{
		case STOP_KILL:
			kill(MyProcPid, SIGKILL);
			break;
		case STOP_PANIC:
			ereport(PANIC, (errmsg("stop point \"%s\" reached", name)));
			break;
		case STOP_ERROR:
			if (may_fail)
				ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("stop point \"%s\" reached", name)));
			break;
		default:
			stop_point_wait(name, may_fail);
			break;
	}
}
