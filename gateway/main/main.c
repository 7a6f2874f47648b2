/*
 * main.c - start, iterations of the loop, and end.
 *
 * Start: settings, keys, database connections, the socket, then coordination. The gateway answers from then on;
 * /readyz tells when it serves. SIGHUP reads settings and keys again. SIGTERM or SIGINT drains (ws/room/handover.c),
 * and the gateway exits with 0.
 */
#include "main/away.h"
#include "core/config.h"
#include "core/database.h"
#include "ws/room/follow.h"
#include "ws/room/handover.h"
#include "core/gateway.h"
#include "core/health.h"
#include "support/log.h"
#include "core/metrics.h"
#include "core/reach.h"
#include "auth/password.h"
#include "common/scheduler.h"
#include "ws/room/members.h"
#include "main/command.h"
#include "main/coordination.h"
#include "main/doctor.h"
#include "main/reload.h"
#include "main/report.h"
#include "mail/mail.h"
#include "ws/room/room.h"
#include "http/routes/routes.h"
#include "http/server/listen.h"
#include "transport/certificate.h"
#include "transport/client.h"
#include "transport/lookup.h"
#include "transport/transport.h"
#include "webhooks/webhooks.h"
#include "ws/session/session.h"
#include "ws/wire/socket.h"
#include "ws/cache/snapshot.h"
#include "ws/room/iteration.h"
#include "ws/v2/v2_session.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#define AGAIN_MS	  20  /* interval at which rooms are flushed that wait for their time */
#define LOOP_SLICE_MS 0.5 /* shorter than the system's own */

Gateway gateway;

static uv_check_t loop_check;
static uv_prepare_t loop_prepare;
static uv_idle_t loop_more;
static uv_timer_t loop_second;
static uv_timer_t loop_again;
static uv_signal_t signals[3];
static int main_argc; /* what SIGHUP reads again */
static char **main_argv;
static uint64_t longest_us; /* iteration of the loop in this second */
static int exit_status;
static bool ending;
static bool webhooks_open;

int64_t
gateway_now(void)
{
	return (int64_t) time(NULL);
}

/* ---- iterations of the loop ---- */

/* Nothing to do: the timer and the idle handle only end the loop's sleep, and the check hook flushes. */
static void
main_on_again(uv_timer_t *timer)
{
}

static void
main_on_more(uv_idle_t *handle)
{
}

static void
main_on_check(uv_check_t *handle)
{
	iteration_finish();
	if (iteration_has_more())
		uv_idle_start(&loop_more, main_on_more);
	else
		uv_idle_stop(&loop_more);
	if (iteration_has_waiting() && !uv_is_active((uv_handle_t *) &loop_again))
		uv_timer_start(&loop_again, main_on_again, AGAIN_MS, 0);
}

/* Measures the iteration that ends now, without its sleep: events that arrived meanwhile have waited as long. */
static void
main_on_prepare(uv_prepare_t *handle)
{
	static uint64_t ended, idle;
	uint64_t now, slept, us;

	main_on_check(&loop_check);
	now = uv_hrtime();
	slept = uv_metrics_idle_time(&gateway.loop);
	us = (now - ended - (slept - idle)) / 1000;
	if (ended != 0)
	{
		metrics_observe(&metrics.turn_us, us);
		if (us > longest_us)
			longest_us = us;
	}
	ended = now;
	idle = slept;
}

static void
main_on_second(uv_timer_t *timer)
{
	char status[128]; /* for systemctl status */

	gateway.loop_lag_us = longest_us;
	longest_us = 0;
	iteration_tick_rooms();
	health_tick();
	reach_tick();
	away_tick();
	report_tick();
	doctor_tick();
	if (gateway.leaving || gateway.draining)
		snprintf(status, sizeof(status), "draining: %zu sessions, %zu sheets", members_count(), room_count());
	else
		snprintf(status, sizeof(status), "%s", health_is_ready(NULL) ? "serving" : "not ready (see /readyz)");
	health_notify_alive(status);
	socket_tick_all();
	v2_tick();
	snapshot_tick();
}

/* ---- the end ---- */

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
	gateway.stopping = true;
	log_event(LOG_INFO, "stopped", LOG_INT("sessions", members_count()), LOG_INT("sheets", room_count()),
			  LOG_INT("requests", trace_under_way()));
	if (gateway.coord != NULL)
		coord_close(gateway.coord, main_coord_closed, NULL);
	else
		uv_stop(&gateway.loop);
}

/* Called while the gateway stops. */
static void
main_on_drained(bool at_once)
{
	if (at_once || (trace_under_way() == 0 && mail_count() == 0))
		main_finish();
}

static void
main_on_signal(uv_signal_t *handle, int number)
{
	log_event(LOG_INFO, "received a signal to stop", LOG_INT("signal", number));
	drain_and_stop((uint64_t) gateway.config.drain_notice_seconds * 1000);
	health_notify("STOPPING=1");
}

static void
main_on_hangup(uv_signal_t *handle, int number)
{
	health_notify("RELOADING=1");
	reload_all(main_argc, main_argv);
	health_notify("READY=1");
}

static void
main_on_fatal(void *arg, const char *reason)
{
	fprintf(stderr, "pg_sheet_gateway: %s\n", reason);
	exit_status = 1;
	main_finish();
}

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
	/* All that people do passes here. Threads for passwords and encoding work for long. */
	scheduler_ask_slice(LOOP_SLICE_MS, true);
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
	drain_open(main_on_drained);
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
								.zk_session_ms = (unsigned) gateway.config.zookeeper_session_ms,
								.peer = gateway.config.peer_address};
	CoordEvents events = coordination_events;

	events.fatal = main_on_fatal;
	if (getrandom(&gateway.origin, sizeof(gateway.origin), 0) != sizeof(gateway.origin))
		return false;
	gateway.origin &= INT64_MAX;
	if (!database_open())
		return false;
	if (!transport_start(&gateway.loop, gateway.config.max_connections, certificate_is_loaded()))
	{
		main_say("libwebsockets cannot be started: is the package libwebsockets-evlib-uv installed?");
		return false;
	}
	if (!client_start())
	{
		main_say("the client for webhooks cannot be started: can the system's certificates be read?");
		return false;
	}
	lookup_start(&gateway.loop);
	webhooks_start();
	webhooks_open = true;
	if (!mail_start() || !listen_start(&router_handler))
		return false;
	gateway.coord = coord_open(&gateway.loop, &coordination, &events);
	if (gateway.coord == NULL)
		return false;
	follow_start();
	return true;
}

static void
main_stop_services(void)
{
	uv_handle_t *own[] = {(uv_handle_t *) &loop_check,	(uv_handle_t *) &loop_prepare, (uv_handle_t *) &loop_more,
						  (uv_handle_t *) &loop_second, (uv_handle_t *) &loop_again,   drain_handle(),
						  (uv_handle_t *) &signals[0],	(uv_handle_t *) &signals[1],   (uv_handle_t *) &signals[2]};

	listen_stop();
	if (webhooks_open)
	{
		webhooks_stop();
		client_stop();
		lookup_stop();
	}
	mail_stop();
	transport_stop();
	reach_close();
	database_close();
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
	{
		if (!uv_is_closing(own[i]))
			uv_close(own[i], NULL);
	}
	for (int i = 0; i < 100 && uv_run(&gateway.loop, UV_RUN_NOWAIT) != 0; i++)
		;
	certificate_free();
}

int
main(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] != '-')
		return command_run(argc, argv);
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
	if (!reload_keys(main_say) || !reload_admin_token(main_say) || !reload_certificate(main_say))
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
		exit_status = gateway.invalid ? 2 : 1;
	main_stop_services();
	config_free(&gateway.config);
	return exit_status;
}
