/*
 * request.h - one HTTP request: its parts, its answer, and the steps between them; see request.c and answer.c.
 *
 * A route is a chain of steps: each queries the database (request_query) and names the step that gets the result. A
 * request lives as long as a step is under way, even after its connection has gone: the chain ends with the next
 * result.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "auth/access_token.h"
#include "auth/digest.h"
#include "auth/jwt.h"
#include "core/database.h"
#include "db/pgconn.h"
#include "db/pgresult.h"
#include "http/request/trace.h"
#include "http/server/conn.h"
#include "http/server/head.h"
#include "http/server/origin.h"
#include "support/buf.h"
#include "support/json.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Codes of protocol v1 (docs/PROTOCOL.md): clients index a table by them. */
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
	METHOD_PUT,
	METHOD_PATCH,
	METHOD_DELETE,
	METHOD_PROPFIND, /* this one and those below: of WebDAV and CalDAV */
	METHOD_PROPPATCH,
	METHOD_REPORT,
	METHOD_MKCOL,
	METHOD_MKCALENDAR,
	METHOD_OPTIONS,
	METHOD_OTHER
} Method;

static inline bool
method_takes_body(Method method)
{
	return method == METHOD_POST || method == METHOD_PUT || method == METHOD_PATCH ||
		   (method >= METHOD_PROPFIND && method <= METHOD_MKCALENDAR);
}

/* States in their order; request_enter() is the only function that changes them. */
typedef enum RequestState
{
	REQUEST_READING,  /* the head or the body is not complete */
	REQUEST_RUNNING,  /* the route has begun */
	REQUEST_ANSWERED, /* status, headers and body are set */
	REQUEST_WRITING,  /* the head of the answer was written */
	REQUEST_GONE	  /* sent, or the connection has ended; freed when the last step ends */
} RequestState;

typedef struct Request Request;
typedef void (*RequestStep)(Request *request, PGresult *res);
typedef void (*RequestNext)(Request *request);

#define REQUEST_INT64S 10

struct Request
{
	Conn *conn;
	bool admin; /* it came to admin-address */
	Origin origin;
	RequestState state;
	int steps; /* under way */
	Head head;
	char *head_bytes; /* what head points into */
	Method method;
	const struct Route *route;
	char peer[48]; /* address of the client; REQUEST_NOBODY if a proxy does not tell it */
	Trace trace;
	int64_t received; /* bytes of the body */
	bool body_comes;  /* the body is not complete */

	/* what arrived */
	Buf body;
	void (*take_body)(Request *request, const char *data, size_t len); /* gets the body instead, as it arrives */
	cJSON *json;
	JwtClaims claims;
	const char *user_name; /* of the account; valid until the next step */
	int64_t sheet_id;
	const char *part; /* of the path, which ends the route's with a * */
	int64_t number;	  /* a second argument, or a result, of single routes */
	RequestStep step;
	RequestStep row;
	bool raw;	 /* step gets errors as well */
	bool begins; /* step gets a success even if the connection has gone: free_own() ends what the query has begun */
	RequestNext next;
	uint64_t asked;			/* changes_now() when the account or the access was queried */
	const char *form_token; /* of an upload; NULL: none */
	const char *cookie;		/* a cookie that may have the token; NULL: none may */
	Scope scope;			/* with which an access token permits the route */
	int scopes;				/* of the access token */
	bool by_program;		/* it has an access token */
	bool guests;			/* the route is also for guests */
	bool basic;				/* the access token may be the password of Basic */
	bool secret_path;		/* the path ends with a key */
	bool for_people;		/* it may come from a browser that shows the answer */
	bool by_status;			/* refusals are told by HTTP's codes instead of msg: routes of protocol v2 */
	char int64s[REQUEST_INT64S][24];
	int int64_count;
	char digest[DIGEST_TEXT_MAX];

	/* the answer */
	int status;		  /* 0: none yet */
	int retry_after;  /* seconds, of a 503 or 429; 0: REQUEST_BUSY_S */
	const char *type; /* content type; a constant */
	Buf headers;	  /* further lines, "Name: value\r\n" */
	Buf answer;		  /* the body, if it is the request's own ... */
	const char *text; /* ... and where it is */
	size_t length;
	size_t written;
	bool close;								 /* the connection ends after the answer */
	bool renews;							 /* it sets the cookie for files again */
	bool no_store;							 /* it has a token or a cookie */
	bool unmeasured;						 /* the length is not known in advance */
	bool (*fill)(Request *request, Buf *to); /* appends the next piece of the body; NULL: the body is `text` */

	/* of single routes */
	Buf data;	  /* an answer that is being built */
	char *secret; /* a password hash */
	bool device;  /* it comes with a token of the account whose password is tried */
	bool slow;	  /* the password is compared after a delay */
	void *own;
	void (*free_own)(void *own);
};

extern void request_enter(Request *request, RequestState state);
static inline bool
request_is_answered(const Request *request)
{
	return request->state >= REQUEST_ANSWERED;
}
static inline bool
request_is_gone(const Request *request)
{
	return request->state == REQUEST_GONE;
}

/* ---- for the connection ---- */
/* NULL: out of memory. */
extern Request *request_create(Conn *conn, bool admin);
/* Parses the head, and finds the client's address and id. False: answered. */
extern bool request_begin(Request *request, const char *head, size_t len);
/* Bodies are read as they come: one that is compressed would be stored as it is, or be malformed. False: answered. */
extern bool request_check_coding(Request *request);
extern void request_refuse(Request *request, int status, const char *reason);
extern bool request_fill(Request *request, Buf *to, struct iovec *rest);
extern void request_gone(Request *request);

/* ---- steps ---- */
/* Whatever is under way for the request; while there is any, the request is not freed. */
extern void request_begin_step(Request *request);
extern void request_end_step(Request *request);
/* The state that belongs to one route, freed with the request. NULL: out of memory, which was answered. */
extern void *request_own(Request *request, size_t size, void (*free_own)(void *own));

typedef enum RequestResult
{
	REQUEST_TEXT,	  /* the step gets rows; errors are answered by request_sql_error() */
	REQUEST_BINARY,	  /* the same, in binary format */
	REQUEST_TEXT_RAW, /* the step gets errors as well; res may be NULL */
	REQUEST_BINARY_RAW
} RequestResult;
/* The parameters of a statement: PARAMS(request_uid(request), pgparam_text(name)). */
#define PARAMS(...)                                                                                                    \
	(int) (sizeof((PgParam[]){__VA_ARGS__}) / sizeof(PgParam)), (const PgParam[])                                      \
	{                                                                                                                  \
		__VA_ARGS__                                                                                                    \
	}
/* Parameters whose text the request holds until the query is sent: at most REQUEST_INT64S of a query. */
extern PgParam request_int64(Request *request, int64_t value);
extern PgParam request_uid(Request *request);	/* the account of the token */
extern PgParam request_sheet(Request *request); /* sheet_id */
/* The digest of a key, which the database gets instead of the key: one of a query. */
extern PgParam request_digest(Request *request, const char *key);
/* Queries the database. Answers 503 if the class has too much to do for this account. */
extern void request_query(Request *request, DatabaseClass class, const char *sql, int nparams, const PgParam *params,
						  RequestResult result, RequestStep step);
/* The same with DATABASE_LONG and REQUEST_TEXT_RAW; row gets the rows one by one as they arrive. */
extern void request_stream(Request *request, const char *sql, int nparams, const PgParam *params, RequestStep row,
						   RequestStep step);
static inline bool
request_succeeded(const PGresult *res)
{
	return res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK;
}

/* ---- account.c ---- */
/* Over TLS their names begin with __Host-, so that nothing but this host can set them. */
#define COOKIE_FILES   "pg_sheet_files"	  /* for /getchunk */
#define COOKIE_SESSION "pg_sheet_session" /* for /v2/session */
#define COOKIE_DEVICE  "pg_sheet_device"  /* for /login: a known device */
/* Verifies the token, then calls next. Answers msg 1, or 401 (by_status), if it is not valid; 403 if it is an access
 * token without the scope of the route, or of a guest whom the route is not for. */
extern void request_authenticate(Request *request, RequestNext next);
extern void request_refuse_token(Request *request);
/* The token: of the JSON body, the query, the Authorization header, or the cookie. */
extern bool request_token(const Request *request, char *to, size_t size);
/* The token of request->cookie. */
extern bool request_cookie(const Request *request, char *to, size_t size);
/* Sets the cookies with the token, unless a foreign page has sent the request. expires_at: of the token. */
extern void request_set_cookies(Request *request, const char *token, int64_t expires_at);
extern void request_remove_cookies(Request *request);
/* Sets the cookie for files again, if the request needs it (renews). Called when it is answered. */
extern void request_renew_cookie(Request *request);
/* May the request use the cookie of the session? It must come of a page of this gateway, or of no page. */
extern bool request_is_own(const Request *request);

/* ---- access.c ---- */
/* The part of request_authenticate() for access tokens. */
extern void request_authenticate_program(Request *request, const char *token);

/* ---- arguments ---- */
/* An argument of the query, copied; false if it is absent or too long. */
extern bool request_arg(const Request *request, const char *name, char *to, size_t size);
/* The same for an id. */
/* An argument that is false by default. False, and answered with 400: it is neither true nor false. */
extern bool request_arg_flag(Request *request, const char *name, bool *flag);
extern bool request_arg_id(const Request *request, const char *name, int64_t *value);
/* Does the query have the argument, whatever its value? */
extern bool request_has_arg(const Request *request, const char *name);
/* A header by its name in lower case, copied; several of the name are one list. False if it is absent or too long. */
extern bool request_header(const Request *request, const char *name, char *to, size_t size);
/* A member of the JSON body, or NULL. Case is ignored, as clients of v1 expect; an exact match is preferred. */
extern const cJSON *request_member(const Request *request, const char *name);
/* Members of the JSON body: false if absent or of another type. */
extern bool request_string(const Request *request, const char *name, const char **value);
extern bool request_number(const Request *request, const char *name, int64_t min, int64_t max, int64_t *value);
/* The string, or "" if there is none. */
extern const char *request_text(const Request *request, const char *name);
/* Parses digits; false for anything else, or outside [1, 2^53). */
extern bool request_parse_id(const char *text, int64_t *value);

/* ---- answer.c: each of these answers the request, unless it is answered. Without memory the answer is 503 ---- */
#define REQUEST_NOBODY "unknown"
#define REQUEST_BUSY_S 1  /* Retry-After of every 503 and 429 that gives no other */
#define REQUEST_FULL_S 10 /* and of a connection beyond a limit */
/* Takes over body; NULL: request->text, or nothing. */
extern void request_answer(Request *request, int status, const char *type, Buf *body);
extern void request_json(Request *request, int status, Buf *body);
/* {"success":...,"msg":msg,"data":null} */
extern void request_msg(Request *request, Msg msg);
/* data: JSON; freed. */
extern void request_data(Request *request, Msg msg, Buf *data);
/* 4xx and 5xx: {"success":false,"msg":0,"data":reason}. */
extern void request_error(Request *request, int status, const char *reason);
/* The same with "code":code, a word by which a page finds its own text for a person. */
extern void request_error_code(Request *request, int status, const char *code, const char *reason);
/* 503 or 429, with `seconds` instead of REQUEST_BUSY_S as Retry-After. */
extern void request_error_later(Request *request, int status, int seconds, const char *reason);
extern void request_too_busy(Request *request); /* 503: too many requests of the kind */
extern void request_out_of_memory(Request *request);
/* msg, or for by_status the status and reason. */
extern void request_deny(Request *request, Msg msg, int status, const char *reason);
/* Answers an error of the database about a value that it does not accept. False: it is another one, or none. */
extern bool request_sql_error_code(Request *request, const PGresult *res, const char *code);
/* An error of the database. */
extern void request_sql_error(Request *request, const PGresult *res);
/* {}. */
extern void request_nothing(Request *request);
/* The same if the query succeeded, else the error. */
extern void request_done(Request *request, const PGresult *res);
/* A value with a control character, which could end the line, is left out; so is Cache-Control with no_store. */
extern void request_add_header(Request *request, const char *name, const char *value);
/* Frees value. */
extern void request_add_header_buf(Request *request, const char *name, Buf *value);

#endif
