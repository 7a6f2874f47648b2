/*
 * routes_version.c - versions: commit, read, roll back.
 */
#include "core/gateway.h"
#include "db/pgresult.h"
#include "ws/room/room.h"
#include "http/routes/routes.h"
#include "http/routes/whole_sheet.h"
#include "ws/cache/cached_range.h"

#include <stdio.h>
#include <string.h>

#define VERSION_MAX 9007199254740991

static const char version_commit_sql[] = "SELECT sheet.commit($1, NULL, $2, $3)";
static const char version_rollback_sql[] = "SELECT sheet.rollback($1, $2, $3, $4)";
static const char version_check_sql[] = "SELECT FROM sheet.check_role($1, $2, 'viewer', true)";

/* The epoch under which this gateway has the sheet open; NULL when it has not. */
static PgParam
version_epoch(char buffer[24], int64_t sheet_id)
{
	const Room *room = room_find(sheet_id);

	return room != NULL && room_is_open(room) ? pgparam_int64(buffer, room->epoch) : pgparam_null();
}

bool
version_numbers(Request *request, const char *name)
{
	if (request_number(request, "fid", 0, VERSION_MAX, &request->sheet_id) &&
		(name == NULL || request_number(request, name, 0, VERSION_MAX, &request->number)))
		return true;
	request_error(request, 400, "fid, cid and lid are numbers");
	return false;
}

/* 42704 may mean the sheet or the version: the message tells. */
void
version_error(Request *request, const PGresult *res, Msg missing)
{
	const char *text = res != NULL ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	if (strcmp(pgresult_sqlstate(res), "SN001") == 0)
		request_msg(request, MSG_NOTHING_TO_COMMIT);
	else if (strcmp(pgresult_sqlstate(res), "42704") == 0 && text != NULL &&
			 (strstr(text, "version") != NULL || strstr(text, "log") != NULL))
		request_msg(request, missing);
	else
		request_sql_error(request, res);
}

static bool
version_succeeded(const PGresult *res)
{
	return res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK;
}

/* ---- /commitsheet ---- */

static void
committed(Request *request, PGresult *res)
{
	Buf data = {NULL, 0, 0};

	cached_range_invalidate(request->sheet_id);
	if (!version_succeeded(res))
	{
		version_error(request, res, MSG_NO_VERSION);
		return;
	}
	buf_puts(&data, PQgetvalue(res, 0, 0));
	request_data(request, MSG_COMMITTED, &data);
}

static void
commit_authenticated(Request *request)
{
	char sheet[24], uid[24], epoch[24];
	PgParam params[] = {pgparam_int64(sheet, request->sheet_id), pgparam_int64(uid, request->claims.uid),
						version_epoch(epoch, request->sheet_id)};

	if (!request_redirect(request, request->sheet_id))
		request_query(request, DATABASE_LONG, version_commit_sql, 3, params, REQUEST_RAW_TEXT, committed);
}

void
route_commit(Request *request)
{
	if (version_numbers(request, NULL))
		request_authenticate(request, commit_authenticated);
}

/* ---- /rollbacksheet ---- */

static void
rolled_back(Request *request, PGresult *res)
{
	cached_range_invalidate(request->sheet_id);
	if (version_succeeded(res))
		request_msg(request, MSG_ROLLED_BACK);
	else
		version_error(request, res, MSG_NO_VERSION);
}

static void
rollback_authenticated(Request *request)
{
	char sheet[24], cid[24], uid[24], epoch[24];
	PgParam params[] = {pgparam_int64(sheet, request->sheet_id), pgparam_int64(cid, request->number),
						pgparam_int64(uid, request->claims.uid), version_epoch(epoch, request->sheet_id)};

	if (!request_redirect(request, request->sheet_id))
		request_query(request, DATABASE_LONG, version_rollback_sql, 4, params, REQUEST_RAW_TEXT, rolled_back);
}

void
route_rollback(Request *request)
{
	if (version_numbers(request, "cid"))
		request_authenticate(request, rollback_authenticated);
}

/* ---- /getsheetchkp ---- */

static void
version_checked(Request *request, PGresult *res)
{
	if (!version_succeeded(res))
		version_error(request, res, MSG_NO_VERSION);
	else if (request->number == 0)
		request_msg(request, MSG_NO_VERSION);
	else
		whole_sheet_answer(request, request->number);
}

static void
version_authenticated(Request *request)
{
	char sheet[24], uid[24];
	PgParam params[] = {pgparam_int64(sheet, request->sheet_id), pgparam_int64(uid, request->claims.uid)};

	request_query(request, DATABASE_READS, version_check_sql, 2, params, REQUEST_RAW_TEXT, version_checked);
}

void
route_get_version(Request *request)
{
	if (version_numbers(request, "cid"))
		request_authenticate(request, version_authenticated);
}
