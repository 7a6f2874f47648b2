/*
 * request.h - one HTTP request: what came, what is answered, and the steps in between; see request.c.
 *
 * A route is a chain of steps: each asks the database (request_query) and names the step that takes the answer. The
 * request stays as long as a step is under way, also when its connection has gone: then the chain ends with the next
 * answer.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "support/buf.h"
#include "core/database.h"
#include "http/server/head.h"
#include "auth/jwt.h"
#include "http/request/multipart.h"
#include "db/pgconn.h"
#include "http/request/trace.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct Conn;

/* Codes of protocol v1; shared/PROTOCOL: the front-ends index a table by them. */
typedef enum Msg
{
	MSG_INVALID_FORMAT = 0,
	MSG_INVALID_TOKEN = 1,
	MSG_LOGIN_WRONG = 3,
	MSG_LOGIN = 4,
	MSG_REGISTERED = 5,
	MSG_USER_EXISTS = 6,
	MSG_USER_MODIFIED = 7,
	MSG_PASSWORD_MODIFIED = 8,
	MSG_DUPLICATE_NAME = 9,
	MSG_USER = 10,
	MSG_SHEET_NEW = 11,
	MSG_SHEET = 12,
	MSG_NO_PERMISSION = 13,
	MSG_NO_SHEET = 14,
	MSG_SHEET_DELETED = 16,
	MSG_IN_TRASH = 18,
	MSG_REDIRECT = 19,
	MSG_DESTINATION = 20,
	MSG_VERSION = 21,
	MSG_NO_VERSION = 22,
	MSG_LOG = 23,
	MSG_NO_LOG = 24,
	MSG_RECOVERED = 25,
	MSG_NOT_IN_TRASH = 26,
	MSG_COMMITTED = 28,
	MSG_NOTHING_TO_COMMIT = 29,
	MSG_ROLLED_BACK = 30,
	MSG_NO_FILE = 31,
	MSG_BAD_FORM = 32,
	MSG_UPLOADED = 33,
	MSG_FILES = 34
} Msg;

typedef enum Method
{
	METHOD_GET,
	METHOD_HEAD,
	METHOD_POST,
	METHOD_OPTIONS,
	METHOD_OTHER
} Method;

struct Request;
typedef void (*RequestStep)(struct Request *request, PGresult *res);
typedef void (*RequestNext)(struct Request *request);

typedef struct Request
{
	struct Conn *conn; /* NULL when the connection has gone */
	int steps;		   /* under way */
	Head head;
	char *head_bytes; /* what head points into */
	Method method;
	const struct Route *route; /* NULL until it is looked for */
	const char *path;		   /* decoded; "" when the head could not be read */
	char peer[48];			   /* the address of who asks; REQUEST_NOBODY when a proxy does not say */
	Trace trace;
	int64_t content_length; /* -1: none, or in chunks */
	int64_t received;
	bool body_comes; /* not all of it is here */

	/* what came */
	Buf body;
	cJSON *json;
	JwtClaims claims;
	const char *user_name; /* of the account; valid until the next step */
	int64_t sheet_id;
	RequestStep step;
	RequestStep row;
	RequestNext next;
	uint64_t asked; /* changes_now() when the database was asked who it is and what they may do */
	bool device;	/* it comes with a token of the account whose password is tried */
	bool slow;		/* the password is compared after a while only */
	bool by_cookie; /* the token may be in the cookie */
	bool by_status; /* refusals are told by HTTP's codes, not by msg: routes of protocol v2 */

	/* what is answered */
	int status;			  /* 0: not yet */
	const char *type;	  /* content type; a constant */
	Buf headers;		  /* further lines, "Name: value\r\n" */
	Buf answer;			  /* own bytes ... */
	const char *constant; /* ... or somebody's that stay */
	size_t length;
	size_t written;
	bool head_written;
	bool close; /* end the connection behind the answer */

	/* of single routes */
	struct Upload *upload;
	struct Download *download;
	struct LogStream *log;
	struct RangeAnswer *range; /* has what `constant` points to; pinned */
	struct WholeSheet *whole;
	bool (*fill)(struct Request *request, Buf *to); /* the body as it comes; NULL: it is complete */
	bool unmeasured;								/* and its length is not known before */
	char *secret;									/* a password hash; freed with the request */
	int64_t number;
	Buf data; /* an answer being built */
} Request;

/* NULL: no memory. */
extern Request *request_create(struct Conn *conn);
/* Sets peer, once the head is there. */
extern void request_find_peer(Request *request);
extern void request_gone(Request *request); /* the connection has gone or goes on with the next request */
extern void request_begin_step(Request *request);
extern void request_end_step(Request *request);

/* ---- steps ---- */
/* Asks the database; step gets an answer with status PGRES_TUPLES_OK. Errors are answered (request_sql_error), and 503
 * when the class of statements (database.h) has too much to do for this account. */
/* REQUEST_RAW instead of a format: text becomes binary, and the step looks at errors itself (res may be NULL). */
#define REQUEST_RAW		 (-1)
#define REQUEST_RAW_TEXT (-2)
extern void request_query(Request *request, DatabaseClass class, const char *sql, int nparams, const PgParam *params,
						  int format, RequestStep step);
/* The same with DATABASE_LONG and REQUEST_RAW_TEXT, with the rows given one by one as they come. */
extern void request_stream(Request *request, const char *sql, int nparams, const PgParam *params, RequestStep row,
						   RequestStep step);
/* Checks the token (JSON body, query or Authorization), then goes on; otherwise answers msg 1, or 401 (by_status). */
extern void request_authenticate(Request *request, RequestNext next);
/* Answers an error of the database, in the way of v1 or by_status. */
extern void request_sql_error(Request *request, const PGresult *res);

/* ---- what came ---- */
/* A query argument, copied; false when it is absent or too long. */
extern bool request_arg(const Request *request, const char *name, char *to, size_t size);
/* Does the query name it, with whatever value? */
extern bool request_has_arg(const Request *request, const char *name);
/* A header, by its name in lower case, copied; several of the name are one list. False when it is absent or too long.
 */
extern bool request_header(const Request *request, const char *name, char *to, size_t size);
/* The cookie that has the token for the addresses of files, which is all that it is good for. */
extern void request_set_cookie(Request *request, const char *token);
/* The token, wherever it is: JSON body, form, query or Authorization. */
extern bool request_token(const Request *request, char *to, size_t size);
/* A member of the JSON body; NULL when it is absent. Names are matched without regard to case, as clients of v1 expect;
 * one that is written in the same way wins. */
extern const cJSON *request_member(const Request *request, const char *name);
/* Members of the JSON body: false when absent or of another type. */
extern bool request_string(const Request *request, const char *name, const char **value);
extern bool request_number(const Request *request, const char *name, int64_t min, int64_t max, int64_t *value);
#define SHEET_ID_MAX 9007199254740991 /* 2^53 - 1 */
/* Parses digits; false for anything else, or outside [1, 2^53). */
extern bool request_parse_id(const char *text, int64_t *value);

/* ---- answers: each ends the request. One for which there is no memory is 503 ---- */
extern void request_answer(Request *request, int status, const char *type, Buf *body);
extern void request_msg(Request *request, Msg msg); /* data null */
/* data: JSON, taken over. */
extern void request_data(Request *request, Msg msg, Buf *data);
/* 4xx and 5xx: {"success":false,"msg":0,"data":reason}. */
extern void request_error(Request *request, int status, const char *reason);
#define REQUEST_NOBODY "unknown"
#define REQUEST_BUSY_S 1 /* after this many seconds it may be tried again */
/* 503 or 429, with Retry-After. */
extern void request_error_later(Request *request, int status, int seconds, const char *reason);
/* 503: there is no memory for it. */
extern void request_out_of_memory(Request *request);
/* value NULL: there was no memory for it. */
extern void request_add_header(Request *request, const char *name, const char *value);
/* Answers 307 when another gateway owns the sheet; true then. Pages of other origins are served here: the database has
 * all that is asked for, and browsers could not follow. */
extern bool request_redirect(Request *request, int64_t sheet_id);

/*
 * conn.c: the socket takes more. Appends the next piece of the answer, or nothing when it has to be fetched. True: that
 * was the last one. rest: what is sent behind it, from where it lies until the request ends; NULL: everything is
 * appended.
 */
extern bool request_fill(Request *request, Buf *to, struct iovec *rest);

#endif
