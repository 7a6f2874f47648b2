/*
 * stoppoint.c - places where a test can end, fail or hold a backend.
 *
 * The result of a crash depends on where it happens. Tests name the place in the setting pg_sheet.stop_point, since a
 * signal would arrive at some other place.
 */
#include "postgres.h"

#include <signal.h>

#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "support/stoppoint.h"
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
	STOP_CANCEL,
	STOP_HALT,
	STOP_WAIT,
	STOP_ACTIONS
} StopAction;

static const char *const stop_action_names[STOP_ACTIONS] = {"kill", "panic", "error", "cancel", "halt", "wait"};

typedef struct StopPoint
{
	char name[STOP_POINT_NAME_MAX + 1];
	StopAction action;
	int countdown; /* passages until it acts */
} StopPoint;

#define STOP_POINTS_MAX 4

bool stop_point_armed = false;
static char *stop_point_setting = NULL;
static StopPoint stop_points[STOP_POINTS_MAX];
static int stop_point_count;

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

/* Parses NAME:ACTION[:N] up to a blank or the end, and returns where it ends; NULL for anything else. */
static const char *
stop_point_parse(const char *text, StopPoint *point)
{
	size_t name_len = strcspn(text, ": ");
	const char *action = text + name_len + 1;
	size_t action_len;
	char *end;

	if (name_len == 0 || name_len > STOP_POINT_NAME_MAX || text[name_len] != ':')
		return NULL;
	memcpy(point->name, text, name_len);
	point->name[name_len] = '\0';
	action_len = strcspn(action, ": ");
	if (!stop_action_parse(action, action_len, &point->action))
		return NULL;
	point->countdown = 1;
	if (action[action_len] != ':')
		return action + action_len;
	point->countdown = strtol(action + action_len + 1, &end, 10);
	return point->countdown > 0 ? end : NULL;
}

/* Returns the number of points, or -1 for a syntax error. */
static int
stop_points_parse(const char *text, StopPoint points[STOP_POINTS_MAX])
{
	int count = 0;

	while (*text != '\0')
	{
		if (count == STOP_POINTS_MAX || (text = stop_point_parse(text, &points[count++])) == NULL)
			return -1;
		if (*text != ' ' && *text != '\0')
			return -1;
		text += strspn(text, " ");
	}
	return count;
}

static bool
stop_point_check(char **value, void **extra, GucSource source)
{
	StopPoint points[STOP_POINTS_MAX];

	if (stop_points_parse(*value, points) >= 0)
		return true;
	GUC_check_errdetail(
		"Stop points are up to %d of NAME:ACTION or NAME:ACTION:N, separated by blanks, where ACTION is "
		"kill, panic, error, cancel, halt or wait.",
		STOP_POINTS_MAX);
	return false;
}

static void
stop_point_assign(const char *value, void *extra)
{
	stop_point_count = Max(stop_points_parse(value, stop_points), 0);
	stop_point_armed = stop_point_count > 0;
}

void
stop_point_init(void)
{
	DefineCustomStringVariable("pg_sheet.stop_point", "Places where this session ends, fails or waits.",
							   "For tests of crashes and races.", &stop_point_setting, "", PGC_SUSET,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, stop_point_check, stop_point_assign, NULL);
}

/* ---- acting ---- */

/* Waits for the lock of pg_advisory_lock(hashtext(name)). */
static void
stop_point_wait(const char *name, bool may_fail)
{
	int64 key = (int32) DatumGetUInt32(hash_any((const unsigned char *) name, strlen(name)));
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) ((uint64) key >> 32), (uint32) key, 1);
	if (may_fail)
	{
		int timeout = LockTimeout;

		/* The session's lock_timeout does not apply to this wait. */
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

static void
stop_point_act(const StopPoint *point, bool may_fail)
{
	switch (point->action)
	{
		case STOP_KILL:
			kill(MyProcPid, SIGKILL);
			break;
		case STOP_PANIC:
			ereport(PANIC, (errmsg("stop point \"%s\" reached", point->name)));
			break;
		case STOP_ERROR:
			if (may_fail)
				ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("stop point \"%s\" reached", point->name)));
			break;
		case STOP_CANCEL:
			kill(MyProcPid, SIGINT);
			break;
		case STOP_HALT:
			kill(MyProcPid, SIGSTOP);
			break;
		default:
			stop_point_wait(point->name, may_fail);
			break;
	}
}

/* A point is removed from the list before it acts. */
void
stop_point_reached(const char *name, bool may_fail)
{
	for (int i = 0; i < stop_point_count; i++)
	{
		StopPoint point = stop_points[i];

		if (strcmp(name, point.name) != 0 || --stop_points[i].countdown > 0)
			continue;
		stop_points[i] = stop_points[--stop_point_count];
		stop_point_armed = stop_point_count > 0;
		stop_point_act(&point, may_fail);
		return;
	}
}
