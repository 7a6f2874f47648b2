/*
 * server_file.c - a file of the server, or the output of a program there, with the rights that COPY needs.
 *
 * An import reads a text twice. The copy is the same both times, also of a file that grows and of a program's output.
 */
#include "postgres.h"

#include <sys/stat.h>

#include "api/functions/server_file.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/acl.h"

#define FILE_PIECE 65536

static void
file_require_role(bool is_program)
{
	Oid role = is_program ? ROLE_PG_EXECUTE_SERVER_PROGRAM : ROLE_PG_READ_SERVER_FILES;

	if (!has_privs_of_role(GetUserId(), role))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						is_program ? errmsg("permission denied to run a program of the server")
								   : errmsg("permission denied to read a file of the server"),
						errdetail("Only roles with privileges of the role \"%s\" may do this, as with COPY.",
								  GetUserNameFromId(role, false)),
						errhint("Use \\copy of psql into a table, and sheet.import_rows().")));
}

static FILE *
file_open(const char *path, bool is_program)
{
	FILE *file = is_program ? OpenPipeStream(path, PG_BINARY_R) : AllocateFile(path, PG_BINARY_R);
	struct stat status;

	if (file == NULL)
		ereport(ERROR, (errcode_for_file_access(), is_program ? errmsg("could not execute command \"%s\": %m", path)
															  : errmsg("could not open file \"%s\": %m", path)));
	if (!is_program && fstat(fileno(file), &status) == 0 && S_ISDIR(status.st_mode))
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is a directory", path)));
	return file;
}

static void
file_close(FILE *file, const char *path, bool is_program)
{
	int status;

	if (!is_program)
	{
		FreeFile(file);
		return;
	}
	status = ClosePipeStream(file);
	if (status == -1)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not close the pipe to \"%s\": %m", path)));
	if (status != 0)
		ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg("program \"%s\" failed", path),
						errdetail_internal("%s", wait_result_to_str(status))));
}

BufFile *
server_file_copy(const char *path, bool is_program, int64 *size)
{
	char *piece = palloc(FILE_PIECE);
	BufFile *copy;
	FILE *file;
	size_t len;

	file_require_role(is_program);
	file = file_open(path, is_program);
	copy = BufFileCreateTemp(false);
	*size = 0;
	while ((len = fread(piece, 1, FILE_PIECE, file)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		BufFileWrite(copy, piece, len);
		*size += (int64) len;
	}
	if (ferror(file))
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not read \"%s\": %m", path)));
	file_close(file, path, is_program);
	pfree(piece);
	return copy;
}
