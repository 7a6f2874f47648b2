/*
 * account_steps.c - limits on attempts, password hashes and tokens, for the routes of accounts; see account_steps.h.
 */
#include "account_steps.h"

#include "attempts.h"
#include "gateway.h"
#include "log.h"
#include "metrics.h"
#include "network.h"
#include "password.h"
#include "password_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_RETRY_S 2 /* what those are told who find too many passwords waiting */

static Attempts attempts_by_address;
static Attempts attempts_by_account;

/* ---- limits ---- */

static void
account_answer_later(Request *request, int status, int seconds, const char *reason)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", seconds);
	request_add_header(request, "Retry-After", text);
	request_error(request, status, reason);
}

static bool
account_answer_attempts(Request *request, int seconds, const char *whose)
{
	char reason[96];

	if (seconds == 0)
		return true;
	log_event(LOG_WARN, "too many attempts", LOG_STR("request", request->trace.id), LOG_STR("of", whose),
			  LOG_STR("peer", request->peer), LOG_INT("uid", request->claims.uid));
	snprintf(reason, sizeof(reason), "too many attempts: try again in %d s", seconds);
	account_answer_later(request, 429, seconds, reason);
	return false;
}

bool
account_may_come(Request *request)
{
	char holder[NETWORK_NAME_MAX];
	int seconds;

	if (network_list_contains(NETWORK_LOOPBACK, request->peer))
		return true;
	network_holder(request->peer, holder);
	seconds = attempts_take(&attempts_by_address, holder, gateway.config.attempts_per_address, uv_now(&gateway.loop));
	metrics.refused_attempts_address += seconds != 0;
	return account_answer_attempts(request, seconds, "address");
}

/* An unknown account has attempts like others, so that they do not tell which exist. */
static const char *
account_attempts_name(const Request *request, char to[24])
{
	const char *name = "";

	if (request->claims.uid == 0)
	{
		(void) request_string(request, "username", &name);
		return name;
	}
	snprintf(to, 24, "#%lld", (long long) request->claims.uid);
	return to;
}

bool
account_may_try(Request *request)
{
	char buffer[24];
	int seconds = attempts_take(&attempts_by_account, account_attempts_name(request, buffer),
								gateway.config.attempts_per_account, uv_now(&gateway.loop));

	metrics.refused_attempts_account += seconds != 0;
	return account_answer_attempts(request, seconds, "account");
}

void
account_forgive(Request *request)
{
	char buffer[24];

	attempts_give_back(&attempts_by_account, account_attempts_name(request, buffer),
					   gateway.config.attempts_per_account, uv_now(&gateway.loop));
}

/* ---- password hashes ---- */

bool
account_password_acceptable(Request *request, const char *password)
{
	if (password[0] != '\0' && strlen(password) <= PASSWORD_MAX)
		return true;
	request_error(request, 400, "a password of 1 to 1024 bytes is needed");
	return false;
}

static bool
account_is_waiting(const void *arg)
{
	const Request *request = arg;

	return request->conn != NULL;
}

static void
account_password_done(void *arg, bool ok, const char *hash)
{
	Request *request = arg;

	request->number = ok;
	free(request->secret);
	request->secret = hash[0] != '\0' ? strdup(hash) : NULL;
	if (request->conn != NULL)
		request->next(request);
	request_end_step(request);
}

static void
account_queue(Request *request, const PasswordTask *task, RequestNext next)
{
	request->next = next;
	request_begin_step(request);
	if (password_queue_add(&gateway.loop, task, gateway.config.password_queue))
		return;
	metrics.refused_password_queue++;
	account_answer_later(request, 503, BUSY_RETRY_S, "too many passwords are being checked: try again");
	request_end_step(request);
}

void
account_hash(Request *request, const char *password, RequestNext next)
{
	PasswordTask task = {
		.password = password, .wanted = account_is_waiting, .done = account_password_done, .arg = request};

	account_queue(request, &task, next);
}

void
account_compare(Request *request, const char *password, const char *stored, RequestNext next)
{
	PasswordTask task = {.password = password,
						 .stored = stored,
						 .compare = true,
						 .wanted = account_is_waiting,
						 .done = account_password_done,
						 .arg = request};

	account_queue(request, &task, next);
}

/* ---- tokens ---- */

bool
account_put_token(Buf *to, int64_t uid, int64_t generation)
{
	JwtClaims claims = {.uid = uid,
						.generation = generation,
						.issued_at = gateway_now(),
						.expires_at = gateway_now() + (int64_t) gateway.config.token_minutes * 60};
	char token[JWT_MAX];

	if (!jwt_sign(&gateway.keys, &claims, token, sizeof(token)))
		return false;
	buf_puts_json(to, token);
	return true;
}
