/*
 * queries.c - what people ask a log, in plain SQL: of the heap table, and of the view sheet.log.
 *
 * The client gets the rows. The server's settings are PostgreSQL's own, parallel workers included.
 */
#include "phases.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

#define RUNS	 5
#define MIN_RUNS 3
#define PATIENCE 8 /* seconds for a query on both sides; then MIN_RUNS are enough */

typedef struct Question
{
	const char *key, *what;
	const char *sql[SIDES]; /* $S: a large sheet, $A and $B: the times of edits 45 % and 55 % into it */
	int64_t slack;			/* rows that the answers may differ by */
} Question;

static const Question questions[] = {
	{"count_ms",
	 "  count(*) of all edits, ms",
	 {"SELECT count(*) FROM bench.log", "SELECT count(*) FROM sheet.log WHERE kind = 'set'"},
	 0},
	{"last_ms",
	 "  last 1000 edits of a sheet, ms",
	 {"SELECT seq, ts, uid, \"row\", col, old, new FROM bench.log WHERE sheet_id = $S ORDER BY seq DESC LIMIT 1000",
	  "SELECT seq, at, uid, \"row\", col, old, new FROM sheet.log WHERE sheet_id = $S ORDER BY seq DESC LIMIT 1000"},
	 0},
	{"cell_ms",
	 "  all edits of a cell, ms",
	 {"SELECT seq, ts, uid, old, new FROM bench.log WHERE sheet_id = $S AND \"row\" = 500 AND col = 50 ORDER BY seq",
	  "SELECT seq, at, uid, old, new FROM sheet.log WHERE sheet_id = $S AND \"row\" = 500 AND col = 50 ORDER BY seq"},
	 0},
	{"user_ms",
	 "  a user's edits in a tenth of the time, ms",
	 {"SELECT sheet_id, seq, ts, \"row\", col, old, new FROM bench.log WHERE uid = 3 AND ts >= '$A' AND ts < '$B'",
	  "SELECT sheet_id, seq, at, \"row\", col, old, new FROM sheet.log WHERE uid = 3 AND at >= '$A' AND at < '$B'"},
	 /* Edits of a batch are a microsecond apart in sheet.log: of the other sheet, a batch at each end may be cut. */
	 2 * SIDE_MAX_EDITS},
	{"whole_ms",
	 "  all edits of a sheet in their order, into max(new), ms",
	 {"SELECT count(*), max(new COLLATE \"C\") FROM (SELECT * FROM bench.log WHERE sheet_id = $S ORDER BY seq) x",
	  "SELECT count(*), max(new COLLATE \"C\") FROM (SELECT * FROM sheet.log WHERE sheet_id = $S AND kind = 'set'"
	  " ORDER BY seq) x"},
	 0},
};

#define QUESTIONS ((int) (sizeof(questions) / sizeof(questions[0])))

/* Text for $S, $A and $B. */
typedef struct Names
{
	char sheet[24], from[64], to[64];
} Names;

static void
names_time(Bench *bench, SideName side, int percent, char to[64])
{
	const Feed *feed = &bench->large[side][0];
	/* The first edit of a transaction: all edits of one have one time on the heap. */
	int64_t seq = 2 + feed_edits(feed) / SIDE_MAX_EDITS * percent / 100 * SIDE_MAX_EDITS;
	PGresult *result = session_query(bench->monitor, "SELECT %s FROM %s WHERE sheet_id = %ld AND seq = %ld",
									 side == HEAP ? "ts" : "at", side == HEAP ? "bench.log" : "sheet.log",
									 (long) feed->sheet_id, (long) seq);

	if (PQntuples(result) != 1)
		fail("seq %ld is not in the log", (long) seq);
	snprintf(to, 64, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
}

static void
names_set(Bench *bench, SideName side, Names *names)
{
	snprintf(names->sheet, sizeof(names->sheet), "%ld", (long) bench->large[side][0].sheet_id);
	names_time(bench, side, 45, names->from);
	names_time(bench, side, 55, names->to);
}

static void
question_text(char *to, size_t room, const char *sql, const Names *names)
{
	size_t used = 0;

	for (; *sql && used + 1 < room; sql++)
		if (*sql == '$')
		{
			sql++;
			used += snprintf(to + used, room - used, "%s",
							 *sql == 'S' ? names->sheet : (*sql == 'A' ? names->from : names->to));
		}
		else
			to[used++] = *sql;
	to[used] = '\0';
}

/* Milliseconds; *rows: of the result, or the number in it when it is a count. */
static double
question_ask(Session *session, const char *sql, int64_t *rows)
{
	int64_t start = now_ns();
	PGresult *result = session_check(session, PQexec(session->conn, sql));
	double ms = (now_ns() - start) / 1e6;

	*rows = PQntuples(result);
	if (*rows == 1)
		sscanf(PQgetvalue(result, 0, 0), "%ld", (long *) rows);
	PQclear(result);
	return ms;
}

static void
question_measure(Session *session, const Question *question, const Names names[SIDES])
{
	double times[SIDES][RUNS];
	int64_t rows[SIDES], start = now_ns();
	char sql[SIDES][1024];
	int run = 0;

	for (int side = 0; side < SIDES; side++)
	{
		question_text(sql[side], sizeof(sql[side]), question->sql[side], &names[side]);
	}
	for (; run < RUNS && (run < MIN_RUNS || now_ns() - start < PATIENCE * INT64_C(1000000000)); run++)
		for (int turn = 0; turn < SIDES; turn++)
		{
			SideName side = side_of(run, turn);

			times[side][run] = question_ask(session, sql[side], &rows[side]);
		}
	if (labs((long) (rows[HEAP] - rows[SHEET])) > question->slack)
		fail("%s: %ld rows on the heap, %ld in sheet.log", question->key, (long) rows[HEAP], (long) rows[SHEET]);
	report_add(
		(Figure){question->key, question->what, NULL, false, {median(times[HEAP], run), median(times[SHEET], run)}});
}

void
queries_run(Bench *bench)
{
	Session *session = session_open(bench->conninfo);
	Names names[SIDES];

	for (int side = 0; side < SIDES; side++)
		names_set(bench, side, &names[side]);
	report_section("queries");
	for (int i = 0; i < QUESTIONS; i++)
		question_measure(session, &questions[i], names);
	session_close(session);
}
