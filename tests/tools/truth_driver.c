/*
 * truth_driver.c - sessions that edit and read sheets at random, and hold every read against a plain table.
 *
 *     truth_driver CONNINFO SEED SECONDS SESSIONS
 *
 * Each session is a process with a connection. Whatever a transaction does to sheets it does to the heap tables
 * model_sheet, model_cell and model_version too (tests/tap/061_truth_random.pl makes them), so what a snapshot sees of
 * the model is what it must see of the sheets: a read asks for both in one statement, and for the cells that differ.
 * The seed decides what each session does, the server what comes first.
 *
 * Ends with 0 when all was equal, 1 when something was not, or an error came that none should have, 3 when a session
 * lost its connection (all others were right).
 */
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_SESSIONS 64
#define MAX_SHEETS	 64
#define MAX_TEXT	 6000
#define ROWS		 200
#define COLS		 40
#define MAX_DEPTH	 6
#define HISTORY		 40
#define HISTORY_LINE 400

typedef enum Counter
{
	COUNT_TRANSACTIONS,
	COUNT_COMMITS,
	COUNT_EDITS,
	COUNT_READS,
	COUNT_ROLLBACKS_TO,
	COUNT_VERSIONS,
	COUNT_SHEETS, /* created, trashed, recovered, purged */
	COUNT_CURSORS,
	COUNT_SERIALIZATION, /* 40001 */
	COUNT_DEADLOCKS,	 /* 40P01 */
	COUNTERS
} Counter;

static const char *const counter_names[COUNTERS] = {"transactions", "commits", "edits",	  "reads", "rollbacks_to",
													"versions",		"sheets",  "cursors", "40001", "40P01"};

typedef struct Session
{
	int number;
	unsigned long seed;
	uint64_t random;
	PGconn *conn;
	bool own_snapshot; /* REPEATABLE READ or more: all statements see the same */
	int depth;		   /* savepoints */
	bool cursor, hold; /* one is open, which outlives the transaction */
	bool failed;	   /* the transaction is over, by an error */
	long sheets[MAX_SHEETS];
	int nsheets;
	long edited;  /* sheet that this transaction has locked; 0: none */
	long highest; /* that it has tried to lock */
	char history[HISTORY][HISTORY_LINE];
	unsigned long statements;
	uint64_t *counts;
} Session;

/* ---- chance ---- */

/* splitmix64 */
static uint64_t
random_next(Session *s)
{
	uint64_t x = s->random += 0x9E3779B97F4A7C15u;

	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

static int
random_below(Session *s, int limit)
{
	return (int) (random_next(s) % (uint64_t) limit);
}

static bool
random_percent(Session *s, int percent)
{
	return random_below(s, 100) < percent;
}

/* Empty at times, short most of the time, so long that tiles must grow at others. */
static void
random_text(Session *s, char *text)
{
	int kind = random_below(s, 100);
	int len = kind < 12	  ? 0
			  : kind < 80 ? 1 + random_below(s, 12)
			  : kind < 97 ? random_below(s, 700)
						  : random_below(s, MAX_TEXT);

	for (int i = 0; i < len; i++)
		text[i] = (char) ('a' + (i < 8 ? random_below(s, 26) : len % 26));
	text[len] = '\0';
}

static long
random_sheet(Session *s)
{
	/* Two of five transactions meet at the first sheets, so that they disturb each other. */
	int among = random_percent(s, 40) && s->nsheets > 3 ? 3 : s->nsheets;

	return s->sheets[random_below(s, among)];
}

/* A sheet to be locked: mostly in the order of their ids, so that deadlocks do not take all the time. */
static long
random_sheet_to_change(Session *s)
{
	long id = random_sheet(s);

	if (id < s->highest && random_percent(s, 95))
		return s->highest;
	return s->highest = id;
}

/* ---- statements ---- */

static void
session_count(Session *s, Counter counter)
{
	s->counts[counter]++;
}

static void
session_report(Session *s, const char *what)
{
	unsigned long first = s->statements > HISTORY ? s->statements - HISTORY : 0;

	printf("seed %lu, session %d: %s\n", s->seed, s->number, what);
	for (unsigned long i = first; i < s->statements; i++)
		printf("   %s\n", s->history[i % HISTORY]);
	fflush(stdout);
}

static void
session_end_if_lost(Session *s)
{
	if (PQstatus(s->conn) == CONNECTION_OK)
		return;
	PQfinish(s->conn);
	_exit(3);
}

static bool
sqlstate_is(const PGresult *result, const char *states)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	return state != NULL && strstr(states, state) != NULL;
}

/* An error without a state is libpq's own: it may have failed to send, and learns of the end from the next answer. */
static void
session_end_if_unanswered(Session *s, const PGresult *result)
{
	if (PQresultErrorField(result, PG_DIAG_SQLSTATE) != NULL)
		return;
	PQclear(PQexec(s->conn, ""));
	session_end_if_lost(s);
}

/*
 * What may go wrong: conflicts, too many purges of one page of the log, sheets that were trashed or purged, nothing new
 * for a version, no entry free. The end of the server is seen by the next statement at the latest.
 */
#define EXPECTED_STATES "40001 40P01 55006 ST001 42704 SN001 SB001 57P01 57P02"

static PGresult *
session_run(Session *s, int nparams, const char *const *params, const char *sql)
{
	PGresult *result = NULL;
	ExecStatusType status;

	snprintf(s->history[s->statements++ % HISTORY], HISTORY_LINE, "%.120s | %.20s | %.20s | %.20s | %.40s", sql,
			 nparams > 0 ? params[0] : "", nparams > 1 ? params[1] : "", nparams > 2 ? params[2] : "",
			 nparams > 3 ? params[3] : "");
	result = PQexecParams(s->conn, sql, nparams, NULL, params, NULL, NULL, 0);
	session_end_if_lost(s);
	status = PQresultStatus(result);
	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
		return result;
	session_end_if_unanswered(s, result);
	if (sqlstate_is(result, "40001"))
		session_count(s, COUNT_SERIALIZATION);
	if (sqlstate_is(result, "40P01"))
		session_count(s, COUNT_DEADLOCKS);
	if (!sqlstate_is(result, EXPECTED_STATES))
	{
		session_report(s, PQresultErrorMessage(result));
		_exit(1);
	}
	PQclear(result);
	return NULL;
}

static bool
session_do(Session *s, const char *sql)
{
	PGresult *result = session_run(s, 0, NULL, sql);

	PQclear(result);
	return result != NULL;
}

/* After an error: back to the last savepoint, or out of the transaction. (A cursor might go with the savepoint, or
 * not.) */
static void
session_recover(Session *s)
{
	char sql[64];

	if (s->depth == 0 || s->cursor)
	{
		s->failed = true;
		return;
	}
	snprintf(sql, sizeof(sql), "ROLLBACK TO s%d", s->depth);
	if (!session_do(s, sql))
		s->failed = true;
	s->edited = 0; /* its lock may be gone */
}

/* One statement with a sheet and up to three other parameters (NULL ends them). */
static bool
session_change(Session *s, const char *sql, ...)
{
	const char *params[4];
	int nparams = 0;
	va_list args;
	PGresult *result;

	va_start(args, sql);
	for (; nparams < 4; nparams++)
		if ((params[nparams] = va_arg(args, const char *)) == NULL)
			break;
	va_end(args);
	result = session_run(s, nparams, params, sql);
	PQclear(result);
	if (result == NULL)
		session_recover(s);
	return result != NULL;
}

/* ---- edits ---- */

typedef struct RandomEdit
{
	int row, col;
	char text[MAX_TEXT + 1];
} RandomEdit;

static void
random_edit(Session *s, const char *sheet, RandomEdit *edit)
{
	/* Half of them in a corner, so that the same cells change again and again. */
	bool corner = random_percent(s, 50);

	/* In every fifth sheet four cells that say one thing or nothing, so that edits, and whole batches, change nothing,
	 * and what a transaction has changed comes back. */
	if (atol(sheet) % 5 == 0)
	{
		edit->row = random_below(s, 2);
		edit->col = random_below(s, 2);
		strcpy(edit->text, random_percent(s, 70) ? "x" : "");
		return;
	}
	edit->row = random_below(s, corner ? 10 : ROWS);
	edit->col = random_below(s, corner ? 5 : COLS);
	random_text(s, edit->text);
}

static bool
model_set(Session *s, const char *sheet, const RandomEdit *edit)
{
	char row[16], col[16];

	snprintf(row, sizeof(row), "%d", edit->row);
	snprintf(col, sizeof(col), "%d", edit->col);
	if (edit->text[0] == '\0')
		return session_change(s, "DELETE FROM model_cell WHERE sheet_id = $1 AND \"row\" = $2 AND col = $3", sheet, row,
							  col, NULL);
	return session_change(s,
						  "INSERT INTO model_cell VALUES ($1, $2, $3, $4) ON CONFLICT (sheet_id, \"row\", col) DO "
						  "UPDATE SET content = excluded.content",
						  sheet, row, col, edit->text);
}

/* Rows or columns come or go. */
static bool
step_move(Session *s, const char *sheet)
{
	static const char *const kinds[] = {"insert_rows", "delete_rows", "insert_columns", "delete_columns"};
	int kind = random_below(s, 4);
	char at[16], n[16];

	snprintf(at, sizeof(at), "%d", random_below(s, kind < 2 ? ROWS : COLS));
	snprintf(n, sizeof(n), "%d", 1 + random_below(s, 4));
	return session_change(s, "SELECT model_move($1, $2, $3::int, $4::int)", sheet, kinds[kind], at, n);
}

static bool
step_set(Session *s, const char *sheet)
{
	static RandomEdit edit;
	char row[16], col[16];

	random_edit(s, sheet, &edit);
	snprintf(row, sizeof(row), "%d", edit.row);
	snprintf(col, sizeof(col), "%d", edit.col);
	return session_change(s, "SELECT sheet.set($1, $2::int, $3::int, $4)", sheet, row, col, edit.text) &&
		   model_set(s, sheet, &edit);
}

static char *
put_hex(char *out, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		out += sprintf(out, "%02x", (unsigned char) bytes[i]);
	return out;
}

static char *
put_varint(char *out, unsigned number)
{
	for (; number >= 128; number >>= 7)
		out += sprintf(out, "%02x", (number & 127) | 128);
	return out + sprintf(out, "%02x", number);
}

/* A batch in the format of common/edit_codec.h, as bytea's hex. The model gets the edits one by one. */
static bool
step_apply(Session *s, const char *sheet)
{
	static RandomEdit edits[24];
	static char batch[24 * (2 * MAX_TEXT + 64)];
	int count = 1 + random_below(s, atol(sheet) % 5 == 0 ? 4 : 24);
	char *out = batch + sprintf(batch, "\\x010000");

	out = put_varint(out, (unsigned) count);
	for (int i = 0; i < count; i++)
	{
		size_t len;

		random_edit(s, sheet, &edits[i]);
		len = strlen(edits[i].text);
		out += sprintf(out, "0107");
		out = put_varint(out, (unsigned) edits[i].row);
		out = put_varint(out, (unsigned) edits[i].col);
		out = put_varint(out, (unsigned) len);
		out = put_hex(out, edits[i].text, len);
	}
	if (!session_change(s, "SELECT sheet.apply($1, $2::bytea)", sheet, batch, NULL))
		return false;
	for (int i = 0; i < count; i++)
		if (!model_set(s, sheet, &edits[i]))
			return false;
	return true;
}

/*
 * The sheet and the model change together or not at all: a failure in between takes both back, to a savepoint that was
 * set before.
 */
static void
step_edit(Session *s)
{
	long id = random_sheet_to_change(s);
	char sheet[24];
	bool done;

	snprintf(sheet, sizeof(sheet), "%ld", id);
	if (random_percent(s, 10))
		done = step_move(s, sheet);
	else
		done = random_percent(s, 70) ? step_set(s, sheet) : step_apply(s, sheet);
	if (!done)
		return;
	s->edited = id;
	session_count(s, COUNT_EDITS);
}

/* ---- versions ---- */

/* What a call returns, in `number`; false when it fails or returns nothing. */
static bool
session_ask(Session *s, const char *sql, const char *param0, const char *param1, char number[24])
{
	const char *params[] = {param0, param1};
	PGresult *result = session_run(s, param1 != NULL ? 2 : 1, params, sql);
	bool found = result != NULL && PQntuples(result) == 1;

	if (found)
		snprintf(number, 24, "%s", PQgetvalue(result, 0, 0));
	if (result == NULL)
		session_recover(s);
	PQclear(result);
	return found;
}

/* After the call, which has the sheet's lock: a snapshot from before it might be too old. */
static bool
version_note(Session *s, const char *sheet, const char *version_id)
{
	return session_change(s, "INSERT INTO model_version VALUES ($1, $2)", sheet, version_id, NULL) &&
		   session_change(s,
						  "INSERT INTO model_version_cell SELECT sheet_id, $2, \"row\", col, content FROM model_cell"
						  " WHERE sheet_id = $1",
						  sheet, version_id, NULL);
}

static bool
version_commit(Session *s, const char *sheet)
{
	char version_id[24];

	return session_ask(s, "SELECT sheet.commit($1)", sheet, NULL, version_id) && version_note(s, sheet, version_id);
}

static bool
version_rollback(Session *s, const char *sheet)
{
	char from[24], version_id[24];

	return session_ask(s, "SELECT version_id FROM model_version WHERE sheet_id = $1 ORDER BY random() LIMIT 1", sheet,
					   NULL, from) &&
		   session_ask(s, "SELECT sheet.rollback($1, $2)", sheet, from, version_id) &&
		   session_change(s, "DELETE FROM model_cell WHERE sheet_id = $1", sheet, NULL) &&
		   session_change(s,
						  "INSERT INTO model_cell SELECT sheet_id, \"row\", col, content FROM model_version_cell"
						  " WHERE sheet_id = $1 AND version_id = $2",
						  sheet, from, NULL) &&
		   version_note(s, sheet, version_id);
}

static void
step_version(Session *s)
{
	char sheet[24];

	snprintf(sheet, sizeof(sheet), "%ld", random_sheet_to_change(s));
	if (random_percent(s, 60) ? version_commit(s, sheet) : version_rollback(s, sheet))
		session_count(s, COUNT_VERSIONS);
}

/* ---- sheets that come and go ---- */

static bool
sheet_create(Session *s)
{
	return session_change(s, "INSERT INTO model_sheet SELECT sheet.create('truth', 100, 26)", NULL);
}

static bool
sheet_purge(Session *s, const char *sheet)
{
	return session_change(s, "SELECT sheet.purge($1)", sheet, NULL) &&
		   session_change(s, "DELETE FROM model_sheet WHERE sheet_id = $1", sheet, NULL) &&
		   session_change(s, "DELETE FROM model_cell WHERE sheet_id = $1", sheet, NULL) &&
		   session_change(s, "DELETE FROM model_version_cell WHERE sheet_id = $1", sheet, NULL) &&
		   session_change(s, "DELETE FROM model_version WHERE sheet_id = $1", sheet, NULL);
}

static void
step_sheet(Session *s)
{
	char sheet[24];
	bool done;

	snprintf(sheet, sizeof(sheet), "%ld", random_sheet_to_change(s));
	if (random_percent(s, 40))
		done = session_change(s, "SELECT sheet.trash($1)", sheet, NULL);
	else if (random_percent(s, 50))
		done = session_change(s, "SELECT sheet.trash($1)", sheet, NULL) &&
			   session_change(s, "SELECT sheet.recover($1)", sheet, NULL);
	else
		done = s->nsheets > 8 ? sheet_purge(s, sheet) : sheet_create(s);
	if (done)
		session_count(s, COUNT_SHEETS);
}

/* ---- reads ---- */

#define DIFFERENCES                                                                                                    \
	"SELECT count(*) AS n, min(\"row\" || ',' || col || ' is ' || coalesce(left(c.content, 30), 'nothing') || ' "      \
	"instead of '"                                                                                                     \
	" || coalesce(left(m.content, 30), 'nothing')) AS what FROM "
#define MODEL(where)                                                                                                   \
	" c FULL JOIN (SELECT \"row\", col, content FROM model_cell WHERE sheet_id = $1" where                             \
	") m USING (\"row\", col) WHERE c.content IS DISTINCT FROM m.content"

static const char read_all[] = DIFFERENCES "(SELECT \"row\", col, content FROM sheet.range($1))" MODEL("");
static const char read_some[] = DIFFERENCES "(SELECT \"row\", col, content FROM sheet.range($1, 'B2:G12'))" MODEL(
	" AND \"row\" BETWEEN 1 AND 11 AND col BETWEEN 1 AND 6");
static const char read_one[] =
	DIFFERENCES "(SELECT 3 AS \"row\", 2 AS col, sheet.get($1, 'C4') AS content)" MODEL(" AND \"row\" = 3 AND col = 2");
/* The view leaves out what is in the trash. */
static const char read_view[] = DIFFERENCES "(SELECT \"row\", col, content FROM sheet.cells WHERE sheet_id = $1)" MODEL(
	" AND EXISTS (SELECT FROM sheet.list l WHERE l.sheet_id = $1 AND NOT l.trashed)");
static const char read_gateway[] =
	DIFFERENCES "(SELECT d.\"row\", d.col, d.content FROM sheet.read_cells($1) r, j_decode(r.cells) d)" MODEL("");

/* What may tell the reason: does the same read say so again, and does SERIALIZABLE, which does not use the cache? */
static void
read_report(Session *s, const char *sheet)
{
	static const char *const questions[] = {"SELECT 'entry', e::text FROM sheet.cache_entries e WHERE sheet_id = $1",
											"SELECT 'newest edits', (l.seq, l.at, l.a1, left(l.new, 20))::text FROM "
											"sheet.log_edits($1) l ORDER BY seq DESC "
											"LIMIT 3",
											"SELECT 'snapshot', pg_current_snapshot()::text",
											read_all,
											"ROLLBACK",
											read_all,
											"BEGIN ISOLATION LEVEL SERIALIZABLE",
											read_all};

	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
	{
		PGresult *result = PQexecParams(s->conn, questions[i], strstr(questions[i], "$1") != NULL ? 1 : 0, NULL, &sheet,
										NULL, NULL, 0);

		printf("   then %.40s: %s\n", questions[i], PQresultErrorMessage(result));
		for (int row = 0; row < PQntuples(result); row++)
			printf("      %s | %s\n", PQgetvalue(result, row, 0), PQgetvalue(result, row, 1));
		PQclear(result);
	}
	fflush(stdout);
}

static void
read_check(Session *s, PGresult *result, const char *sheet)
{
	char what[400];

	session_count(s, COUNT_READS);
	if (PQntuples(result) == 1 && strcmp(PQgetvalue(result, 0, 0), "0") == 0)
		return;
	snprintf(what, sizeof(what), "sheet %s: %s cells differ, %s", sheet,
			 PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "?",
			 PQntuples(result) == 1 ? PQgetvalue(result, 0, 1) : "");
	session_report(s, what);
	read_report(s, sheet);
	_exit(1);
}

/* Some functions read with the statement's snapshot; the gateway's looks for the present, so the model must not move.
 */
static const char *
read_choose(Session *s, long id)
{
	int kind = random_below(s, 100);

	if (kind < 15 && (s->own_snapshot || s->edited == id))
		return read_gateway;
	return kind < 60 ? read_all : kind < 80 ? read_some : kind < 98 ? read_one : read_view;
}

static void
step_read(Session *s)
{
	long id = s->edited != 0 && random_percent(s, 40) ? s->edited : random_sheet(s);
	char sheet[24];
	const char *params[] = {sheet};
	PGresult *result;

	snprintf(sheet, sizeof(sheet), "%ld", id);
	result = session_run(s, 1, params, read_choose(s, id));
	if (result == NULL)
		session_recover(s);
	else
		read_check(s, result, sheet);
	PQclear(result);
}

/* A cursor reads with the snapshot of its DECLARE, whatever has happened since. */
static void
step_cursor(Session *s)
{
	char sql[2048];
	char *out = sql;
	long id = random_sheet(s);

	if (s->cursor)
		return;
	s->hold = random_percent(s, 40);
	out += sprintf(out, "DECLARE c CURSOR %s FOR ", s->hold ? "WITH HOLD" : "");
	for (const char *in = read_all; *in != '\0'; in++)
	{
		if (in[0] == '$' && in[1] == '1')
			out += sprintf(out, "%ld", id), in++;
		else
			*out++ = *in;
	}
	*out = '\0';
	if (!session_do(s, sql))
	{
		session_recover(s);
		return;
	}
	s->cursor = true;
	session_count(s, COUNT_CURSORS);
}

static void
step_fetch(Session *s)
{
	PGresult *result;

	if (!s->cursor)
		return;
	s->cursor = false;
	result = session_run(s, 0, NULL, "FETCH c");
	if (result == NULL)
	{
		s->failed = true;
		return;
	}
	read_check(s, result, "of a cursor");
	PQclear(result);
	(void) session_do(s, "CLOSE c");
}

/* ---- transactions ---- */

static void
step_savepoint(Session *s)
{
	char sql[64];
	int kind = random_below(s, 100);

	/* A cursor goes with the savepoint that it was declared in: that is another test's. */
	if (s->cursor)
		return;
	if (s->depth < MAX_DEPTH && (kind < 45 || s->depth == 0))
	{
		snprintf(sql, sizeof(sql), "SAVEPOINT s%d", ++s->depth);
		(void) session_do(s, sql);
		return;
	}
	s->depth = 1 + random_below(s, s->depth);
	if (kind < 80)
	{
		snprintf(sql, sizeof(sql), "ROLLBACK TO s%d", s->depth);
		s->edited = 0;
		session_count(s, COUNT_ROLLBACKS_TO);
	}
	else
		snprintf(sql, sizeof(sql), "RELEASE s%d", s->depth--);
	(void) session_do(s, sql);
}

/* The sheets that this transaction's snapshot sees. False when the server is ending. */
static bool
session_list_sheets(Session *s)
{
	PGresult *result = session_run(
		s, 0, NULL,
		"SELECT m.sheet_id FROM model_sheet m JOIN sheet.list l USING (sheet_id) WHERE NOT l.trashed ORDER BY 1");

	s->nsheets = 0;
	for (int i = 0; result != NULL && i < PQntuples(result) && i < MAX_SHEETS; i++)
		s->sheets[s->nsheets++] = atol(PQgetvalue(result, i, 0));
	PQclear(result);
	return result != NULL;
}

static void
session_step(Session *s)
{
	int kind = random_below(s, 1000);

	if (kind < 400)
		step_read(s);
	else if (kind < 750)
		step_edit(s);
	else if (kind < 900)
		step_savepoint(s);
	else if (kind < 940)
		step_cursor(s);
	else if (kind < 970)
		step_fetch(s);
	else if (kind < 990)
		step_version(s);
	else
		step_sheet(s);
}

static void
session_finish(Session *s)
{
	bool commit = !s->failed && random_percent(s, 75);
	bool hold = s->cursor && s->hold;

	if (!s->failed && s->cursor && !s->hold)
		step_fetch(s);
	commit = commit && !s->failed;
	if (session_do(s, commit ? "COMMIT" : "ROLLBACK") && commit)
	{
		session_count(s, COUNT_COMMITS);
		step_fetch(s); /* the one that was held */
	}
	s->cursor = false;
	/* PostgreSQL keeps it when a COMMIT fails so late that the cursor had been made to last. */
	if (hold)
		(void) session_do(s, "CLOSE ALL");
}

static void
session_transaction(Session *s)
{
	static const char *const begins[] = {"BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ",
										 "BEGIN ISOLATION LEVEL SERIALIZABLE"};
	int level = random_below(s, 100);
	int steps = 1 + random_below(s, 14);

	level = level < 50 ? 0 : level < 82 ? 1 : 2;
	if (!session_do(s, begins[level]))
		return;
	session_count(s, COUNT_TRANSACTIONS);
	s->own_snapshot = level > 0;
	s->depth = 0;
	s->failed = !session_list_sheets(s);
	s->edited = s->highest = 0;
	if (!s->failed && s->nsheets == 0)
		s->failed = !sheet_create(s) || !session_list_sheets(s) || s->nsheets == 0;
	while (!s->failed && steps-- > 0)
		session_step(s);
	session_finish(s);
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double) time.tv_sec + (double) time.tv_nsec / 1e9;
}

static void
session_main(Session *s, const char *conninfo, double seconds)
{
	double end = now() + seconds;

	s->random = s->seed * 1000003 + (uint64_t) s->number;
	s->conn = PQconnectdb(conninfo);
	session_end_if_lost(s);
	(void) session_do(s, "SET deadlock_timeout = '20ms'");
	while (now() < end)
		session_transaction(s);
	PQfinish(s->conn);
	_exit(0);
}

static int
wait_for_sessions(int sessions)
{
	int code = 0;

	while (sessions-- > 0)
	{
		int status, ended;

		if (wait(&status) < 0)
			return 1;
		ended = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		if (ended == 1 || (ended == 3 && code == 0))
			code = ended;
	}
	return code;
}

int
main(int argc, char **argv)
{
	int sessions = argc == 5 ? atoi(argv[4]) : 0;
	uint64_t(*counts)[COUNTERS];
	int code;

	if (sessions < 1 || sessions > MAX_SESSIONS)
	{
		fprintf(stderr, "usage: %s CONNINFO SEED SECONDS SESSIONS\n", argv[0]);
		return 2;
	}
	counts = mmap(NULL, sizeof(*counts) * MAX_SESSIONS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < sessions; i++)
	{
		Session *s = calloc(1, sizeof(Session));

		s->number = i;
		s->seed = strtoul(argv[2], NULL, 10);
		s->counts = counts[i];
		if (fork() == 0)
			session_main(s, argv[1], atof(argv[3]));
		free(s);
	}
	code = wait_for_sessions(sessions);
	for (int counter = 0; counter < COUNTERS; counter++)
	{
		uint64_t sum = 0;

		for (int i = 0; i < sessions; i++)
			sum += counts[i][counter];
		printf("%s%s=%lu", counter > 0 ? " " : "", counter_names[counter], (unsigned long) sum);
	}
	printf("\n");
	return code;
}
