/*
 * main.c - start, the loop's turns, and the end.
 *
 * Start: settings, keys, database connections, coordination, then the socket. The gateway answers from the first
 * moment; /healthz says when it serves. SIGHUP reads settings and keys again. SIGTERM or SIGINT drains: out of the
 * ring, no new editors, what is pending is committed, everybody is told to come again (1012), locks are released, exit
 * 0.
 */
#include "core/config.h"
#include "core/database.h"
#include "ws/edit/dirty.h"
#include "ws/room/follow.h"
#include "core/gateway.h"
#include "core/health.h"
#include "support/log.h"
#include "core/metrics.h"
#include "auth/password.h"
#include "ws/edit/publish.h"
#include "main/reload.h"
#include "ws/room/room.h"
#include "http/server/server.h"
#include "ws/session/session.h"
#include "ws/session/socket.h"
#include "ws/cells/snapshot.h"
#include "http/request/trace.h"
#include "ws/edit/turn.h"
#include "ws/v2/v2_session.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#define AGAIN_MS	  20 /* rooms that wait for their time are looked at so often */
#define DRAIN_STEP_MS 50

Gateway gateway;

static uv_check_t loop_check;
static uv_prepare_t loop_prepare;
static uv_idle_t loop_more;
static uv_timer_t loop_second;
static uv_timer_t loop_again;
static uv_timer_t loop_drain;
static uv_signal_t signals[3];
static int main_argc; /* what SIGHUP reads again */
static char **main_argv;
static uint64_t drain_until;
static uint64_t turn_longest_us; /* of this second */
static int exit_status;
static bool ending;

int64_t
gateway_now(void)
{
	return (int64_t) time(NULL);
}

/* By default as this gateway itself speaks: all gateways of a database are set alike. */
static bool
main_public_tls(void)
{
	if (strcmp(gateway.config.public_scheme, "auto") == 0)
		return gateway.config.tls_certificate[0] != '\0';
	return strcmp(gateway.config.public_scheme, "https") == 0;
}

const char *
gateway_http_scheme(void)
{
	return main_public_tls() ? "https" : "http";
}

const char *
gateway_ws_scheme(void)
{
	return main_public_tls() ? "wss" : "ws";
}

/* ---- the turns ---- */

static void
main_on_again(uv_timer_t *timer)
{
	/* Waking up is all: the check hook flushes. */
}

static void
main_on_more(uv_idle_t *handle)
{
	/* Being there is all: the loop looks for events, and does not sleep. */
}

static void
main_flush(void)
{
	turn_finish();
	if (publish_any())
		uv_idle_start(&loop_more, main_on_more);
	else
		uv_idle_stop(&loop_more);
	if (room_any_dirty() && !uv_is_active((uv_handle_t *) &loop_again))
		uv_timer_start(&loop_again, main_on_again, AGAIN_MS, 0);
}

static void
main_on_check(uv_check_t *handle)
{
	main_flush();
}

/* How long the turn that ends now has taken, without its sleep: so long whatever came meanwhile has waited. */
static void
main_measure_turn(void)
{
	static uint64_t ended, idle;
	uint64_t now = uv_hrtime();
	uint64_t slept = uv_metrics_idle_time(&gateway.loop);
	uint64_t us = (now - ended - (slept - idle)) / 1000;

	if (ended != 0)
	{
		metrics_observe(&metrics.turn_us, us);
		if (us > turn_longest_us)
			turn_longest_us = us;
	}
	ended = now;
	idle = slept;
}

static void
main_on_prepare(uv_prepare_t *handle)
{
	main_flush();
	main_measure_turn();
}

/* Leases that nobody renewed end, and are told. */
static void
main_tick_room(Room *room, void *arg)
{
	int64_t now = *(int64_t *) arg;

	for (Session *session = room->sessions; session != NULL; session = session->next)
		session_tick(session, now);
	room_expire_locks(room);
}

/* What systemctl status shows. */
static const char *
main_status(void)
{
	static char text[128];

	if (gateway.leaving || gateway.draining)
		snprintf(text, sizeof(text), "draining: %zu sessions, %zu sheets", room_session_count(), room_count());
	else
		snprintf(text, sizeof(text), "%s", health_is_ready(NULL) ? "serving" : "not ready (see /readyz)");
	return text;
}

static void
main_on_second(uv_timer_t *timer)
{
	int64_t now = gateway_now();

	gateway.loop_lag_us = turn_longest_us;
	turn_longest_us = 0;
	room_for_each(main_tick_room, &now);
	health_tick();
	health_notify_alive(main_status());
	socket_tick_all();
	v2_tick();
	snapshot_tick();
}

/* ---- the end ---- */

static void
main_close_own(void)
{
	uv_handle_t *own[] = {(uv_handle_t *) &loop_check,	(uv_handle_t *) &loop_prepare, (uv_handle_t *) &loop_more,
						  (uv_handle_t *) &loop_second, (uv_handle_t *) &loop_again,   (uv_handle_t *) &loop_drain,
						  (uv_handle_t *) &signals[0],	(uv_handle_t *) &signals[1],   (uv_handle_t *) &signals[2]};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
	{
		if (!uv_is_closing(own[i]))
			uv_close(own[i], NULL);
	}
}

static void
main_coord_closed(void *arg)
{
	gateway.coord = NULL;
	uv_stop(&gateway.loop);
}

static void
main_finish(void)
{
	if (ending)
		return;
	ending = true;
	log_event(LOG_INFO, "stopped", LOG_INT("sessions", room_session_count()), LOG_INT("sheets", room_count()),
			  LOG_INT("requests", trace_under_way()));
	if (gateway.coord != NULL)
		coord_close(gateway.coord, main_coord_closed, NULL);
	else
		uv_stop(&gateway.loop);
}

static void
main_drain_room(Room *room, void *arg)
{
	bool quiet = room->pending_edits == 0 && room->busy == ROOM_IDLE && !room->publishing;

	if (quiet || room->state != ROOM_SERVING)
	{
		for (Session *session = room->sessions; session != NULL; session = session->next)
			session_close(session, CLOSE_RESTART, "the gateway stops: come again");
	}
}

/* Nothing is left that anybody waits for. */
static bool
main_is_drained(void)
{
	return room_session_count() == 0 && room_count() == 0 && trace_under_way() == 0;
}

static void
main_on_drain(uv_timer_t *timer)
{
	if (!gateway.draining)
	{
		gateway.draining = true;
		drain_until = uv_now(&gateway.loop) + (uint64_t) gateway.config.drain_seconds * 1000;
		log_event(LOG_INFO, "draining", LOG_INT("sessions", room_session_count()), LOG_INT("sheets", room_count()));
		if (gateway.coord != NULL)
			coord_leave(gateway.coord);
	}
	room_for_each(main_drain_room, NULL);
	if (main_is_drained() || uv_now(&gateway.loop) >= drain_until)
		main_finish();
}

/* The first signal gives balancers time, the next one ends that, and one in the drain ends the gateway at once. */
static void
main_on_signal(uv_signal_t *handle, int number)
{
	uint64_t notice_ms = (uint64_t) gateway.config.drain_notice_seconds * 1000;

	log_event(LOG_INFO, "told to stop", LOG_INT("signal", number));
	if (gateway.draining)
		drain_until = 0;
	uv_timer_start(&loop_drain, main_on_drain, gateway.leaving ? 0 : notice_ms, DRAIN_STEP_MS);
	gateway.leaving = true;
	health_notify("STOPPING=1");
}

static void
main_on_hangup(uv_signal_t *handle, int number)
{
	health_notify("RELOADING=1");
	reload_all(main_argc, main_argv);
	health_notify("READY=1");
}

/* ---- coordination ---- */

static void
main_on_ready(void *arg)
{
	log_event(LOG_INFO, "serving", LOG_STR("address", gateway.config.public_address));
	gateway.ready = true;
	gateway.suspended = false;
}

static void
main_on_members(void *arg, const char *const *names, int count)
{
	log_event(LOG_INFO, "members changed", LOG_INT("members", count));
}

static void
main_on_suspended(void *arg)
{
	log_event(LOG_WARN, "contact with the coordinator is lost: edits are kept, not acknowledged");
	gateway.suspended = true;
}

static void
main_on_resumed(void *arg)
{
	log_event(LOG_INFO, "contact with the coordinator is back");
	gateway.suspended = false;
}

static void
main_on_granted(void *arg, int64_t sheet_id, int64_t epoch)
{
	room_granted(sheet_id, epoch);
}

static void
main_on_waiting(void *arg, int64_t sheet_id, const char *holder)
{
	room_waiting(sheet_id, holder);
}

static void
main_on_lost(void *arg, int64_t sheet_id, const char *reason)
{
	room_lost(sheet_id, reason);
}

static void
main_on_fatal(void *arg, const char *reason)
{
	fprintf(stderr, "pg_sheet_gateway: %s\n", reason);
	exit_status = 1;
	main_finish();
}

static const CoordEvents main_events = {
	.ready = main_on_ready,
	.members = main_on_members,
	.suspended = main_on_suspended,
	.resumed = main_on_resumed,
	.granted = main_on_granted,
	.waiting = main_on_waiting,
	.lost = main_on_lost,
	.fatal = main_on_fatal,
};

/* ---- start ---- */

static void
main_say(const char *line)
{
	fprintf(stderr, "pg_sheet_gateway: %s\n", line);
}

/* As many descriptors as connections, and some. */
static void
main_raise_limits(void)
{
	struct rlimit limit;
	rlim_t wanted = (rlim_t) gateway.config.max_connections + 256;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	(void) setrlimit(RLIMIT_NOFILE, &limit);
}

static void
main_start_loop(void)
{
	uv_loop_init(&gateway.loop);
	(void) uv_loop_configure(&gateway.loop, UV_METRICS_IDLE_TIME);
	uv_check_init(&gateway.loop, &loop_check);
	uv_check_start(&loop_check, main_on_check);
	uv_prepare_init(&gateway.loop, &loop_prepare);
	uv_prepare_start(&loop_prepare, main_on_prepare);
	uv_idle_init(&gateway.loop, &loop_more);
	uv_timer_init(&gateway.loop, &loop_second);
	uv_timer_start(&loop_second, main_on_second, 1000, 1000);
	uv_timer_init(&gateway.loop, &loop_again);
	uv_timer_init(&gateway.loop, &loop_drain);
	for (int i = 0; i < 3; i++)
		uv_signal_init(&gateway.loop, &signals[i]);
	uv_signal_start(&signals[2], main_on_hangup, SIGHUP);
	uv_signal_start(&signals[0], main_on_signal, SIGTERM);
	uv_signal_start(&signals[1], main_on_signal, SIGINT);
	signal(SIGPIPE, SIG_IGN);
}

static bool
main_start_services(void)
{
	CoordConfig coordination = {.kind = gateway.config.coordinator,
								.member = gateway.config.public_address,
								.weight = (unsigned) gateway.config.weight,
								.conninfo = gateway.config.database,
								.zk_hosts = gateway.config.zookeeper_hosts,
								.zk_root = gateway.config.zookeeper_root,
								.zk_session_ms = (unsigned) gateway.config.zookeeper_session_ms};

	if (getrandom(&gateway.origin, sizeof(gateway.origin), 0) != sizeof(gateway.origin))
		return false;
	gateway.origin &= INT64_MAX;
	if (!database_open())
		return false;
	if (!server_start())
		return false;
	gateway.coord = coord_open(&gateway.loop, &coordination, &main_events);
	if (gateway.coord == NULL)
		return false;
	follow_start();
	return true;
}

static void
main_stop_services(void)
{
	server_stop();
	database_close();
	main_close_own();
	for (int i = 0; i < 100 && uv_run(&gateway.loop, UV_RUN_NOWAIT) != 0; i++)
		;
	server_free();
}

int
main(int argc, char **argv)
{
	main_argc = argc;
	main_argv = argv;
	switch (config_load(&gateway.config, argc, argv))
	{
		case CONFIG_OK:
			break;
		case CONFIG_HELP:
			return 0;
		case CONFIG_INVALID:
			return 2;
	}
	log_setup(gateway.config.log_level, gateway.config.log_format);
	if (!reload_keys(main_say) || !reload_admin_token(main_say))
		return 2;
	password_set_memory(__builtin_ctz((unsigned) gateway.config.password_memory));
	main_raise_limits();
	main_start_loop();
	gateway.started = gateway_now();
	if (main_start_services())
	{
		health_notify("READY=1");
		uv_run(&gateway.loop, UV_RUN_DEFAULT);
	}
	else
		exit_status = 1;
	main_stop_services();
	config_free(&gateway.config);
	return exit_status;
}
