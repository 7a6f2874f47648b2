/*
 * sim_database.c - PostgreSQL with pg_sheet in a simulated world: the functions of gateway/core/database.h, of
 * gateway/db/ and of libpq that sessions and rooms call.
 *
 * The statements of a connection are executed in order, those of a group as one transaction; the answers come back in
 * order. When connections break, what was sent may or may not be executed, and is answered by NULL. As in pg_sheet, a
 * sheet has the greatest epoch of a claim or a batch, and refuses smaller ones; batches are recognised by their origin
 * and number, operations by their client.
 */
#include "sim_gateway.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/edit_codec.h"
#include "core/database.h"

#define PROCESSES_MAX 64
#define SHEETS_MAX	  16
#define EDITORS_MAX	  64
#define COLUMNS_MAX	  7

/* ---- results ---- */

typedef struct Field
{
	char *data; /* NULL: SQL NULL */
	int len;
} Field;

struct pg_result
{
	ExecStatusType status;
	const char *sqlstate; /* NULL: success */
	int rows;
	Field fields[COLUMNS_MAX];
};

static PGresult *
result_new(ExecStatusType status, const char *sqlstate)
{
	PGresult *res = calloc(1, sizeof(*res));

	res->status = status;
	res->sqlstate = sqlstate;
	res->rows = status == PGRES_TUPLES_OK;
	return res;
}

static void
result_put(PGresult *res, int column, const void *data, size_t len)
{
	Field *field = &res->fields[column];

	field->data = malloc(len + 1);
	memcpy(field->data, data, len);
	field->data[len] = '\0';
	field->len = (int) len;
}

static void
result_text(PGresult *res, int column, const char *text)
{
	result_put(res, column, text, strlen(text));
}

static void
result_int64(PGresult *res, int column, int64_t value)
{
	uint64_t bytes = htobe64((uint64_t) value);

	result_put(res, column, &bytes, sizeof(bytes));
}

static void
result_uint32(PGresult *res, int column, uint32_t value)
{
	uint32_t bytes = htobe32(value);

	result_put(res, column, &bytes, sizeof(bytes));
}

void
PQclear(PGresult *res)
{
	for (int i = 0; res && i < COLUMNS_MAX; i++)
		free(res->fields[i].data);
	free(res);
}

PGresult *
PQcopyResult(const PGresult *res, int flags)
{
	PGresult *copy = result_new(res->status, res->sqlstate);

	copy->rows = res->rows;
	for (int i = 0; i < COLUMNS_MAX; i++)
		if (res->fields[i].data)
			result_put(copy, i, res->fields[i].data, (size_t) res->fields[i].len);
	return copy;
}

ExecStatusType
PQresultStatus(const PGresult *res)
{
	return res ? res->status : PGRES_FATAL_ERROR;
}

char *
PQresultErrorField(const PGresult *res, int field)
{
	return res ? (char *) res->sqlstate : NULL;
}

int
PQntuples(const PGresult *res)
{
	return res->rows;
}

/* Its results have no names. */
int
PQfnumber(const PGresult *res, const char *name)
{
	return -1;
}

int
PQgetisnull(const PGresult *res, int row, int column)
{
	return res->fields[column].data == NULL;
}

int
PQgetlength(const PGresult *res, int row, int column)
{
	return res->fields[column].len;
}

char *
PQgetvalue(const PGresult *res, int row, int column)
{
	static char empty[1];

	return res->fields[column].data ? res->fields[column].data : empty;
}

/* ---- sheets ---- */

typedef struct Batch
{
	int64_t first_seq, origin, number;
	uint32_t count;
	size_t len;
	uint8_t *bytes; /* with its head */
} Batch;

typedef struct Sheet
{
	int64_t epoch, last_seq;
	SimProcess *claimed; /* whose epoch it is */
	uint64_t held_since, held_until;
	Batch *batches;
	int count, room;
	uint64_t last[EDITORS_MAX];			/* the last operation of each account in the log */
	uint64_t acknowledged[EDITORS_MAX]; /* as sheet.client_acknowledged says */
} Sheet;

static Sheet sheets[SHEETS_MAX];
static long refusals, commits;

static bool
sheet_is_held(const Sheet *sheet)
{
	return sim_now < sheet->held_until;
}

/* Returns false if the epoch is over. */
static bool
sheet_admit(Sheet *sheet, int64_t epoch, SimProcess *process)
{
	if (epoch < sheet->epoch)
	{
		refusals++;
		return false;
	}
	sim_promise(epoch > sheet->epoch || sheet->claimed == process, "the database accepts one epoch of two gateways",
				sheet - sheets);
	sheet->epoch = epoch;
	sheet->claimed = process;
	return true;
}

/* Returns all batches after the seq. */
static void
sheet_put_tail(const Sheet *sheet, int64_t since, PGresult *res, int column)
{
	size_t len = 0;
	int first = sheet->count;
	char *bytes;

	while (first > 0 && sheet->batches[first - 1].first_seq + sheet->batches[first - 1].count - 1 > since)
		len += sheet->batches[--first].len;
	bytes = malloc(len + 1);
	len = 0;
	for (int i = first; i < sheet->count; i++)
	{
		memcpy(bytes + len, sheet->batches[i].bytes, sheet->batches[i].len);
		len += sheet->batches[i].len;
	}
	result_put(res, column, bytes, len);
	free(bytes);
}

/* Appends the edits, whose rows are the editors' numbers and whose columns the operations'. */
static void
sheet_append(Sheet *sheet, const char *edits, size_t len, int64_t origin, int64_t number)
{
	EditReader reader, body;
	EditBatch head;
	EditWriter writer;
	Batch *batch;
	Edit edit;
	size_t body_len;

	edit_reader_init(&reader, edits, len);
	if (edit_read_batch(&reader, &head) != EDIT_OK || head.count == 0)
		return;
	body = reader;
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		sim_promise(edit.col == sheet->last[edit.row] + 1, "an operation is twice in the log, or not in order",
					edit.row);
		sheet->last[edit.row] = edit.col;
	}
	if (sheet->count == sheet->room)
		sheet->batches = realloc(sheet->batches, (size_t) (sheet->room += 64) * sizeof(Batch));
	batch = &sheet->batches[sheet->count++];
	*batch = (Batch){.first_seq = sheet->last_seq + 1, .origin = origin, .number = number, .count = head.count};
	head.first_seq = (uint64_t) batch->first_seq;
	head.at = 1;
	body_len = (size_t) (body.end - body.pos);
	batch->bytes = malloc(EDIT_BATCH_HEAD_MAX + body_len);
	edit_write_batch(&writer, batch->bytes, &head);
	memcpy(writer.pos, body.pos, body_len);
	batch->len = (size_t) (writer.pos - batch->bytes) + body_len;
	sheet->last_seq += batch->count;
	commits++;
}

/* ---- statements ---- */

typedef struct Statement
{
	struct Statement *next;
	const char *sql;
	char *params[8]; /* NULL: SQL NULL */
	int lens[8];
	int nparams;
	PgResultFn fn;
	void *arg;
	PGresult *res;
} Statement;

static int64_t
param_int64(const Statement *statement, int i)
{
	return statement->params[i] ? atoll(statement->params[i]) : 0;
}

typedef enum Acknowledged
{
	ACKNOWLEDGED_NONE,
	ACKNOWLEDGED_SOME,
	ACKNOWLEDGED_ALL
} Acknowledged;

/* The clients' operations: uid, client, first, last. Returns which are in the log; stores them if `store`. */
static Acknowledged
apply_clients(Sheet *sheet, const char *text, bool store)
{
	int old = 0, new = 0;

	while (text && *text && text[1])
	{
		long long uid, client, first, last;
		int len;

		if (sscanf(text + 1, "%lld,%lld,%lld,%lld%n", &uid, &client, &first, &last, &len) != 4)
			break;
		text += 1 + len;
		old += sheet->acknowledged[uid] >= (uint64_t) first;
		new += sheet->acknowledged[uid] < (uint64_t) last;
		if (store)
			sheet->acknowledged[uid] = (uint64_t) last;
	}
	return old == 0 ? ACKNOWLEDGED_NONE : new > 0 ? ACKNOWLEDGED_SOME : ACKNOWLEDGED_ALL;
}

/* sheet.apply(sheet_id, edits, known_seq, epoch, origin, batch_no, clients, nowait) */
static PGresult *
run_apply(Sheet *sheet, const Statement *statement, SimProcess *process)
{
	int64_t known = param_int64(statement, 2), origin = param_int64(statement, 4), number = param_int64(statement, 5);
	PGresult *res = result_new(PGRES_TUPLES_OK, NULL);
	const Batch *same = NULL;
	Acknowledged acknowledged = apply_clients(sheet, statement->params[6], false);
	int64_t first;

	if (sheet_is_held(sheet))
	{
		if (strcmp(statement->params[7], "true") == 0)
		{
			result_int64(res, 4, param_int64(statement, 0));
			return res;
		}
		PQclear(res);
		return result_new(PGRES_FATAL_ERROR, "55P03");
	}
	if (!sheet_admit(sheet, param_int64(statement, 3), process) || known > sheet->last_seq)
	{
		PQclear(res);
		return result_new(PGRES_FATAL_ERROR, known > sheet->last_seq ? "22023" : "SF001");
	}
	for (int i = sheet->count - 1; i >= 0 && sheet->batches[i].first_seq > known; i--)
		if (sheet->batches[i].origin == origin && sheet->batches[i].number == number)
			same = &sheet->batches[i];
	if (!same && acknowledged == ACKNOWLEDGED_SOME)
	{
		PQclear(res);
		return result_new(PGRES_FATAL_ERROR, "22023");
	}
	if (known < sheet->last_seq)
		sheet_put_tail(sheet, known, res, 3);
	first = same ? same->first_seq : 0;
	if (same)
	{
		result_int64(res, 1, first + same->count - 1);
		result_put(res, 2, "\1", 1);
	}
	else if (acknowledged == ACKNOWLEDGED_ALL)
	{
		result_int64(res, 1, sheet->last_seq);
		result_put(res, 2, "\1", 1);
	}
	else
	{
		first = sheet->last_seq + 1;
		sheet_append(sheet, statement->params[1], (size_t) statement->lens[1], origin, number);
		(void) apply_clients(sheet, statement->params[6], true);
		result_int64(res, 1, sheet->last_seq);
		result_put(res, 2, "\0", 1);
	}
	result_int64(res, 0, first);
	return res;
}

/* sheet.claim(sheet_id, epoch, holder, nowait) */
static PGresult *
run_claim(Sheet *sheet, const Statement *statement, SimProcess *process)
{
	PGresult *res;

	if (sheet_is_held(sheet))
		return strcmp(statement->params[3], "true") == 0 ? result_new(PGRES_TUPLES_OK, NULL)
														 : result_new(PGRES_FATAL_ERROR, "55P03");
	if (!sheet_admit(sheet, param_int64(statement, 1), process))
		return result_new(PGRES_FATAL_ERROR, "SF001");
	res = result_new(PGRES_TUPLES_OK, NULL);
	result_text(res, 0, "1");
	return res;
}

static PGresult *
run_tail(const Sheet *sheet, int64_t since)
{
	PGresult *res;

	if (since > sheet->last_seq)
		return result_new(PGRES_FATAL_ERROR, "22023");
	res = result_new(PGRES_TUPLES_OK, NULL);
	result_int64(res, 0, sheet->last_seq);
	sheet_put_tail(sheet, since, res, 1);
	return res;
}

static PGresult *
run_holders(const Statement *statement)
{
	PGresult *res = result_new(PGRES_TUPLES_OK, NULL);
	char text[24];
	long id = 0;

	/* One sheet is enough: the gateway asks again for the others. */
	for (const char *at = statement->params[0]; *at && at[1]; at++)
		if ((*at == '{' || *at == ',') && sheet_is_held(&sheets[atol(at + 1)]))
			id = atol(at + 1);
	res->rows = id != 0;
	if (id == 0)
		return res;
	snprintf(text, sizeof(text), "%ld", id);
	result_text(res, 0, text);
	result_text(res, 1, "somebody");
	result_text(res, 2, "psql");
	result_text(res, 3, "3/7");
	snprintf(text, sizeof(text), "%llu", (unsigned long long) ((sim_now - sheets[id].held_since) / SIM_MS));
	result_text(res, 4, text);
	return res;
}

/* The answer to the statement that reads an account; with_sheet: and its rights to a sheet. */
static PGresult *
run_account(const Statement *statement, bool with_sheet)
{
	PGresult *res = result_new(PGRES_TUPLES_OK, NULL);

	result_text(res, 0, with_sheet ? "editor" : statement->params[0]);
	result_text(res, 1, with_sheet ? "0" : "editor");
	if (!with_sheet)
		return res;
	result_text(res, 2, statement->params[0]);
	result_text(res, 3, "sheet");
	result_text(res, 4, "f");
	result_text(res, 5, "editor");
	result_text(res, 6, "f");
	return res;
}

static PGresult *
run(const Statement *statement, SimProcess *process)
{
	const char *sql = statement->sql;
	Sheet *sheet = &sheets[param_int64(statement, 0) % SHEETS_MAX];
	PGresult *res;

	if (strstr(sql, "sheet.apply("))
		return run_apply(sheet, statement, process);
	if (strstr(sql, "sheet.claim("))
		return run_claim(sheet, statement, process);
	if (strstr(sql, "sheet.tail("))
		return run_tail(sheet, param_int64(statement, 1));
	if (strstr(sql, "sheet.holders("))
		return run_holders(statement);
	if (strstr(sql, "sheet.account_get("))
		return run_account(statement, strstr(sql, "sheet.info(") != NULL);
	res = result_new(PGRES_TUPLES_OK, NULL);
	if (strstr(sql, "sheet.client_acknowledged("))
		result_int64(res, 0, (int64_t) sheet->acknowledged[param_int64(statement, 1)]);
	else if (strstr(sql, "sheet.read_properties("))
	{
		result_int64(res, 0, sheet->last_seq);
		result_uint32(res, 1, 100);
		result_uint32(res, 2, 100);
	}
	else if (!strstr(sql, "sheet.release(") && !strstr(sql, "sheet.register_opening("))
		abort();
	return res;
}

/* ---- connections ---- */

typedef struct Transaction
{
	struct Transaction *next; /* of the connection */
	struct PgConn *conn;
	Statement *first, **last;
	bool lost;	  /* answered by NULL */
	bool arrives; /* is executed, although it is lost */
	bool waits;	  /* in the gateway, for the connection */
} Transaction;

struct PgConn
{
	struct Database *database;
	int pending;
	uint64_t to_server, to_client;
	Transaction *open; /* not ended by pgconn_sync() */
	Transaction *first, **last;
};

typedef struct Database
{
	SimProcess *process;
	uint64_t down_since, down_until;
	PgConn conns[DATABASE_CLASSES + 1]; /* the last one is for groups */
} Database;

static Database *databases[PROCESSES_MAX];
static int database_count;

static Database *
database_of(const SimProcess *process)
{
	for (int i = 0; i < database_count; i++)
		if (databases[i]->process == process)
			return databases[i];
	return NULL;
}

static uint64_t
arrival(uint64_t *last, uint64_t not_before)
{
	uint64_t at =
		(not_before > sim_now ? not_before : sim_now) + 100 + sim_random(sim_is_slow(3) ? 150 * SIM_MS : 3 * SIM_MS);

	*last = at > *last ? at : *last;
	return *last - sim_now;
}

static void
transaction_free(Transaction *transaction)
{
	while (transaction->first)
	{
		Statement *statement = transaction->first;

		transaction->first = statement->next;
		for (int i = 0; i < statement->nparams; i++)
			free(statement->params[i]);
		PQclear(statement->res);
		free(statement);
	}
	free(transaction);
}

/* In the gateway. */
static void
on_answered(void *arg)
{
	Transaction *transaction = arg;
	PgConn *conn = transaction->conn;

	if (transaction->lost)
		return;
	conn->first = transaction->next;
	if (!conn->first)
		conn->last = &conn->first;
	for (Statement *statement = transaction->first; statement; statement = statement->next)
	{
		conn->pending--;
		statement->fn(statement->arg, statement->res);
	}
	transaction_free(transaction);
}

/* In the database. If a statement fails, nothing of the transaction is stored. */
static void
on_arrived(void *arg)
{
	Transaction *transaction = arg;
	PgConn *conn = transaction->conn;
	SimProcess *process = conn->database->process;
	const Statement *failed = NULL;

	if ((transaction->lost && !transaction->arrives) || (transaction->waits && process->dead))
		return;
	for (Statement *statement = transaction->first; statement && statement->next && !failed;
		 statement = statement->next)
	{
		/* Only batches share a transaction. They fail for their epochs. */
		Sheet *sheet = &sheets[param_int64(statement, 0) % SHEETS_MAX];

		if (param_int64(statement, 3) < sheet->epoch)
			failed = statement;
	}
	for (Statement *statement = transaction->first; statement; statement = statement->next)
	{
		statement->res =
			failed && failed != statement ? result_new(PGRES_PIPELINE_ABORTED, NULL) : run(statement, process);
		if (statement->res->status == PGRES_FATAL_ERROR)
			failed = statement;
	}
	if (!transaction->lost && !process->dead)
		sim_after(process, arrival(&conn->to_client, 0), on_answered, transaction);
}

static void
lose_later(void *arg)
{
	Transaction *transaction = arg;

	for (Statement *statement = transaction->first; statement; statement = statement->next)
		statement->fn(statement->arg, NULL);
}

PgConn *
sim_database_open(SimProcess *process)
{
	Database *database = calloc(1, sizeof(*database));

	database->process = process;
	for (int i = 0; i <= DATABASE_CLASSES; i++)
	{
		database->conns[i].database = database;
		database->conns[i].last = &database->conns[i].first;
	}
	databases[database_count++] = database;
	return &database->conns[DATABASE_CLASSES];
}

static void
conn_break(PgConn *conn)
{
	Transaction *transaction, *next;

	for (transaction = conn->first; transaction; transaction = next)
	{
		next = transaction->next;
		transaction->lost = true;
		transaction->arrives = sim_percent(50);
		for (Statement *statement = transaction->first; statement; statement = statement->next)
			conn->pending--;
		sim_after(conn->database->process, sim_random(20 * SIM_MS), lose_later, transaction);
	}
	conn->first = NULL;
	conn->last = &conn->first;
}

void
sim_database_break(SimProcess *process, uint64_t duration)
{
	Database *database = database_of(process);

	if (!database)
		return; /* the gateway has not begun */
	sim_trace("gateway %d loses the database for %llu ms", process->number, (unsigned long long) duration / SIM_MS);
	if (sim_now >= database->down_until)
		database->down_since = sim_now;
	database->down_until = sim_now + duration;
	for (int i = 0; i <= DATABASE_CLASSES; i++)
		conn_break(&database->conns[i]);
}

void
sim_database_hold(int64_t sheet_id, uint64_t duration)
{
	Sheet *sheet = &sheets[sheet_id];

	sim_trace("a transaction holds sheet %d for %llu ms", (int) sheet_id, (unsigned long long) duration / SIM_MS);
	if (!sheet_is_held(sheet))
		sheet->held_since = sim_now;
	sheet->held_until = sim_now + duration;
}

void
sim_database_heal(void)
{
	for (int i = 0; i < database_count; i++)
		if (databases[i]->down_until > sim_now)
			databases[i]->down_until = sim_now;
	for (int i = 0; i < SHEETS_MAX; i++)
		sheets[i].held_until = 0;
}

bool
sim_database_answers(SimProcess *process)
{
	const Database *database = database_of(process);

	return sim_now >= database->down_until || sim_now - database->down_since < 3000 * SIM_MS;
}

bool
sim_database_is_written(int64_t sheet_id, const SimProcess *except)
{
	for (int i = 0; i < database_count; i++)
		for (int j = 0; databases[i]->process != except && j <= DATABASE_CLASSES; j++)
			for (const Transaction *each = databases[i]->conns[j].first; each; each = each->next)
				for (const Statement *statement = each->first; statement; statement = statement->next)
					if (strstr(statement->sql, "sheet.apply(") && param_int64(statement, 0) == sheet_id)
						return true;
	return false;
}

uint64_t
sim_log_last(int64_t sheet_id, int64_t uid)
{
	return sheets[sheet_id].last[uid];
}

long
sim_database_refusals(void)
{
	return refusals;
}

long
sim_database_commits(void)
{
	return commits;
}

/* ---- what gateways call ---- */

bool
pgconn_is_up(const PgConn *conn)
{
	return sim_now >= conn->database->down_until;
}

int
pgconn_pending(const PgConn *conn)
{
	return conn->pending;
}

bool
pgconn_push(PgConn *conn)
{
	return false;
}

bool
pgconn_send(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format, unsigned deadline_ms,
			PgResultFn fn, void *arg)
{
	Statement *statement = calloc(1, sizeof(*statement));

	*statement = (Statement){.sql = sql, .nparams = nparams, .fn = fn, .arg = arg};
	for (int i = 0; i < nparams; i++)
		if (params[i].data)
		{
			statement->lens[i] = params[i].len;
			statement->params[i] = malloc((size_t) params[i].len + 1);
			memcpy(statement->params[i], params[i].data, (size_t) params[i].len);
			statement->params[i][params[i].len] = '\0';
		}
	if (!conn->open)
	{
		conn->open = calloc(1, sizeof(*conn->open));
		conn->open->conn = conn;
		conn->open->last = &conn->open->first;
	}
	*conn->open->last = statement;
	conn->open->last = &statement->next;
	conn->pending++;
	return true;
}

unsigned sim_commit_ms;

static uint64_t
commit_time(void)
{
	unsigned most = sim_is_slow(5) ? 600 : sim_percent(20) ? 130 : 20;

	if (sim_commit_ms > 0)
		return (sim_commit_ms / 2 + sim_random(sim_commit_ms / 2)) * SIM_MS;
	return sim_random(most * SIM_MS);
}

/* A batch takes effect when it is committed. The statements behind it wait. */
void
pgconn_sync(PgConn *conn)
{
	Transaction *transaction = conn->open;
	uint64_t commit = strstr(transaction->first->sql, "sheet.apply(") ? commit_time() : 0;
	uint64_t delay = arrival(&conn->to_server, conn->database->down_until) + commit;

	conn->open = NULL;
	transaction->waits = !pgconn_is_up(conn);
	*conn->last = transaction;
	conn->last = &transaction->next;
	conn->to_server += commit;
	if (!conn->database->process->dead)
		sim_after(NULL, delay, on_arrived, transaction);
}

bool
database_query(DatabaseClass class, int64_t account, const char *sql, int nparams, const PgParam *params,
			   int result_format, PgResultFn fn, void *arg)
{
	PgConn *conn = &database_of(sim_process_now())->conns[class];

	pgconn_send(conn, sql, nparams, params, result_format, 0, fn, arg);
	pgconn_sync(conn);
	return true;
}

PgConn *
database_choose(DatabaseClass class)
{
	return &database_of(sim_process_now())->conns[class];
}

const PgPool *
database_pool(DatabaseClass class)
{
	return (const PgPool *) database_choose(class);
}

unsigned
database_deadline(void)
{
	return 0;
}

bool
pgpool_is_up(const PgPool *pool)
{
	return pgconn_is_up((const PgConn *) pool);
}

int
pgpool_connections(const PgPool *pool)
{
	return 0;
}

PgConn *
pgpool_connection(const PgPool *pool, int i)
{
	abort();
}

/* Nobody asks for cells here. */
bool
database_stream(DatabaseClass class, int64_t account, bool goes_on, const char *sql, int nparams, const PgParam *params,
				int result_format, PgResultFn row_fn, PgResultFn fn, void *arg)
{
	abort();
}

bool
pgconn_stream(PgConn *conn, const char *sql, int nparams, const PgParam *params, int result_format,
			  unsigned deadline_ms, PgResultFn row_fn, PgResultFn fn, void *arg)
{
	abort();
}

void
pgconn_pause(PgConn *conn)
{
	abort();
}

void
pgconn_resume(PgConn *conn)
{
	abort();
}

void
database_cancel(PgConn *conn)
{
	abort();
}
