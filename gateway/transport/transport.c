/*
 * transport.c - the bytes of accepted connections: libwebsockets' raw sockets, in the gateway's loop.
 *
 * libwebsockets watches the sockets, shakes hands and reads (TLS by OpenSSL), stops reading, and closes. Its parsers of
 * HTTP and WebSocket are not used; docs/design/gateway.md says why.
 *
 * Writing goes to the socket, or to its SSL, at once. lws_write() would copy what the socket does not take, tell nobody
 * how much that is, and read nothing of the connection while it has it, though each input raises its event again and
 * again: a receiver that is slow must neither lose its own edits nor keep the loop busy.
 *
 * libwebsockets ends a connection when it reads the end of the peer's side. So a transport is paused by who still has
 * to answer. Its timeouts are switched off: http/server/conn.c and ws/wire/socket.c have their own.
 */
#include "transport/transport.h"

#include "support/log.h"
#include "transport/certificate.h"

#include <errno.h>
#include <libwebsockets.h>
#include <limits.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <uv.h>

#define TRANSPORT_READ_BYTES		65536 /* at once */
#define TRANSPORT_ANSWER_BYTES		16384 /* of the head of an answer to client.c, which has no more */
#define TRANSPORT_DESCRIPTORS		4096 /* of the process, beside those of connections; a table has 16 bytes for each */
#define TRANSPORT_FIRST_DESCRIPTORS 256	 /* those of the start are below */
#define TRANSPORT_NEVER				1000000 /* seconds */
#define TRANSPORT_OPEN_BYTES		32768	/* more than a new connection takes */
#define TRANSPORT_ROOM_BYTES		131072	/* by which transport_make_room() enlarges the kernel's buffer, ... */
#define TRANSPORT_ROOM_MAX			1048576 /* ... and the most that it may hold */

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15; 2 minutes unless set */
#endif
#define TRANSPORT_RETRY_MS 5000 /* after which the kernel asks a silent peer again, at the latest */

struct Transport
{
	int fd;
	bool tls;	  /* accepted for TLS; transport_ssl() tells whether the client speaks it */
	bool opening; /* in transport_open() */
	bool heard;	  /* bytes have arrived */
	bool paused;
	bool wants_write;
	bool aborted;
	bool woken;
	TAILQ_ENTRY(Transport) link; /* in transport_woken, if woken */
	struct lws *wsi;
	const TransportEvents *events;
	void *user;
};

static struct lws_context *transport_context;
static struct lws_vhost *transport_plain, *transport_tls;
static TAILQ_HEAD(, Transport) transport_woken = TAILQ_HEAD_INITIALIZER(transport_woken);
static size_t transport_woken_count;
static uv_idle_t transport_idle; /* active while there are some to wake */

static void transport_on_idle(uv_idle_t *handle);

/* ---- connections to wake ---- */

void
transport_wake(Transport *transport)
{
	if (transport->woken)
		return;
	transport->woken = true;
	TAILQ_INSERT_TAIL(&transport_woken, transport, link);
	transport_woken_count++;
	uv_idle_start(&transport_idle, transport_on_idle);
}

static void
transport_forget_wake(Transport *transport)
{
	if (!transport->woken)
		return;
	transport->woken = false;
	TAILQ_REMOVE(&transport_woken, transport, link);
	transport_woken_count--;
}

/* NULL: plain. For a write without TLS, libwebsockets' own memory of the connection is not looked at. */
static SSL *
transport_ssl(const Transport *transport)
{
	return transport->tls ? lws_get_ssl(transport->wsi) : NULL;
}

/* ---- events ---- */

static bool
transport_call_ready(Transport *transport)
{
	return !transport->aborted && transport->events->ready(transport->user) && !transport->aborted;
}

/* Those that are woken meanwhile have their turn in the next iteration. */
static void
transport_on_idle(uv_idle_t *handle)
{
	for (size_t due = transport_woken_count; due > 0 && transport_woken_count > 0; due--)
	{
		Transport *transport = TAILQ_FIRST(&transport_woken);

		transport_forget_wake(transport);
		if (!transport_call_ready(transport))
			lws_set_timeout(transport->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
	}
	if (transport_woken_count == 0)
		uv_idle_stop(handle);
}

static void
transport_closed(struct lws *wsi, Transport *transport)
{
	lws_set_opaque_user_data(wsi, NULL);
	if (transport->opening)
		return; /* transport_open() frees it */
	transport->events->gone(transport->user);
	transport_forget_wake(transport);
	free(transport);
}

static bool
transport_received(Transport *transport, char *bytes, size_t len)
{
	if (!transport->heard)
		lws_set_timeout(transport->wsi, NO_PENDING_TIMEOUT, 0); /* which the handshake has set */
	transport->heard = true;
	return !transport->aborted && transport->events->received(transport->user, bytes, len) && !transport->aborted;
}

static int
transport_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	Transport *transport;

	switch (reason)
	{
		case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
			certificate_attach(user);
			return 0;
		case LWS_CALLBACK_RAW_RX:
			transport = lws_get_opaque_user_data(wsi);
			if (transport == NULL || transport->opening || len == 0)
				return 0;
			return transport_received(transport, in, len) ? 0 : -1;
		case LWS_CALLBACK_RAW_WRITEABLE:
			transport = lws_get_opaque_user_data(wsi);
			if (transport == NULL || !transport->wants_write)
				return 0;
			transport->wants_write = false;
			return transport_call_ready(transport) ? 0 : -1;
		case LWS_CALLBACK_RAW_CLOSE:
			transport = lws_get_opaque_user_data(wsi);
			if (transport != NULL)
				transport_closed(wsi, transport);
			return 0;
		default:
			return 0;
	}
}

/* ---- start and end ---- */

static void
transport_log(int level, const char *line)
{
	char text[256];

	snprintf(text, sizeof(text), "%s", line);
	text[strcspn(text, "\n")] = '\0';
	log_event(level == LLL_ERR ? LOG_WARN : LOG_DEBUG, "libwebsockets", LOG_STR("text", text));
}

#ifdef LWS_WITH_NETLINK
/* From 4.2 on libwebsockets looks at all connections whenever a route or an interface changes, and ends those whose
 * peer has no route in its copy of the table. TCP knows better. The library's socket for that is the only one of its
 * kind. */
static void
transport_ignore_routes(void)
{
	static const int groups[] = {RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_ROUTE,
								 RTNLGRP_IPV6_IFADDR};

	for (int fd = 0; fd < TRANSPORT_FIRST_DESCRIPTORS; fd++)
	{
		int domain = 0;
		socklen_t len = sizeof(domain);

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != AF_NETLINK)
			continue;
		for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
			(void) setsockopt(fd, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &groups[i], sizeof(groups[i]));
	}
}
#endif

static struct lws_vhost *
transport_add_host(const struct lws_context_creation_info *common, const char *name, unsigned long long options)
{
	struct lws_context_creation_info info = *common;

	info.vhost_name = name;
	info.options |= options;
	return lws_create_vhost(transport_context, &info);
}

/* libwebsockets has tables with an entry for each descriptor that the process may have, which may be millions. */
static struct lws_context *
transport_create_context(const struct lws_context_creation_info *info, rlim_t descriptors)
{
	struct rlimit limit, lower;
	bool lowers = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > descriptors;
	struct lws_context *context;

	lower = (struct rlimit){.rlim_cur = descriptors, .rlim_max = limit.rlim_max};
	if (lowers)
		(void) setrlimit(RLIMIT_NOFILE, &lower);
	context = lws_create_context(info);
	if (lowers)
		(void) setrlimit(RLIMIT_NOFILE, &limit);
	return context;
}

bool
transport_start(uv_loop_t *loop, int connections, bool tls)
{
	static const struct lws_protocols protocols[] = {{.name = "transport", .callback = transport_callback},
													 {.name = NULL}};
	static void *loops[1];
	struct lws_context_creation_info info = {
		.port = CONTEXT_PORT_NO_LISTEN_SERVER,
		.protocols = protocols,
		.foreign_loops = loops,
		.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT |
				   LWS_SERVER_OPTION_ADOPT_APPLY_LISTEN_ACCEPT_CONFIG,
		.listen_accept_role = "raw-skt",
		.listen_accept_protocol = "transport",
		.max_http_header_data = TRANSPORT_ANSWER_BYTES,
		.pt_serv_buf_size = LWS_PRE + TRANSPORT_READ_BYTES,
		.timeout_secs = TRANSPORT_NEVER,
		.gid = (gid_t) -1,
		.uid = (uid_t) -1,
	};

	loops[0] = loop;
	uv_idle_init(loop, &transport_idle);
	lws_set_log_level(LLL_ERR | LLL_WARN, transport_log);
	transport_context = transport_create_context(&info, (rlim_t) connections + TRANSPORT_DESCRIPTORS);
	if (transport_context == NULL)
		return false;
#ifdef LWS_WITH_NETLINK
	transport_ignore_routes();
#endif
	transport_plain = transport_add_host(&info, "plain", 0);
	if (tls)
	{
		transport_tls =
			transport_add_host(&info, "tls",
							   LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX | LWS_SERVER_OPTION_ALLOW_NON_SSL_ON_SSL_PORT |
								   LWS_SERVER_OPTION_FALLBACK_TO_APPLY_LISTEN_ACCEPT_CONFIG);
		certificate_attached();
	}
	return transport_plain != NULL && (!tls || transport_tls != NULL);
}

void
transport_stop(void)
{
	if (transport_context == NULL)
		return;
	lws_context_destroy(transport_context);
	uv_close((uv_handle_t *) &transport_idle, NULL);
}

struct lws_context *
transport_lws(void)
{
	return transport_context;
}

uv_loop_t *
transport_loop(void)
{
	return transport_idle.loop;
}

/* ---- life ---- */

/* Without memory for a new connection libwebsockets closes its descriptor twice, or never. */
static bool
transport_has_memory(void)
{
	void *volatile block = malloc(TRANSPORT_OPEN_BYTES);

	free(block);
	return block != NULL;
}

Transport *
transport_open(int fd, bool tls)
{
	Transport *transport = transport_has_memory() ? calloc(1, sizeof(Transport)) : NULL;
	lws_adopt_desc_t adopted = {.vh = tls ? transport_tls : transport_plain,
								.type = LWS_ADOPT_SOCKET | LWS_ADOPT_ALLOW_SSL,
								.fd.sockfd = fd,
								.vh_prot_name = "transport",
								.opaque = transport};
	int on = 1;

	if (transport == NULL)
	{
		log_event(LOG_WARN, "could not take a connection", LOG_STR("reason", "out of memory"));
		close(fd);
		return NULL;
	}
	(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	transport->fd = fd;
	transport->tls = tls;
	transport->opening = true;
	transport->wsi = lws_adopt_descriptor_vhost_via_info(&adopted);
	if (transport->wsi == NULL)
	{
		free(transport);
		return NULL;
	}
	transport->opening = false;
	lws_set_timeout(transport->wsi, NO_PENDING_TIMEOUT, 0);
	return transport;
}

void
transport_set_user(Transport *transport, const TransportEvents *events, void *user)
{
	transport->events = events;
	transport->user = user;
}

void
transport_pause(Transport *transport, bool pause)
{
	if (transport->paused == pause)
		return;
	transport->paused = pause;
	(void) lws_rx_flow_control(transport->wsi, !pause);
}

void
transport_end(Transport *transport)
{
	SSL *ssl = transport_ssl(transport);

	ERR_clear_error();
	if (ssl != NULL && SSL_is_init_finished(ssl))
		(void) SSL_shutdown(ssl);
	(void) shutdown(transport->fd, SHUT_WR);
}

void
transport_abort(Transport *transport)
{
	transport->aborted = true;
	transport_wake(transport);
}

void
transport_limit_received(Transport *transport, int bytes)
{
	static const int retry = TRANSPORT_RETRY_MS;

	(void) setsockopt(transport->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void) setsockopt(transport->fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &retry, sizeof(retry));
}

/*
 * The kernel offers the peer a window in bytes, and counts the memory of segments, of which small ones need many times
 * as much. If it has no room for what it has offered to take, it discards segments and closes the window. Linux before
 * 7.1 then discards the acknowledgements that follow too, since they are numbered beyond that window, until something
 * is read. What was sent to the peer does not count as delivered; where reading waits for that, the connection stands
 * still for ever. With room again, the kernel offers a new window, and the peer is heard.
 *
 * A peer that is heard and only reads nothing needs no room: it answers each probe.
 */
void
transport_make_room(Transport *transport)
{
	uint32_t memory[SK_MEMINFO_VARS];
	socklen_t len = sizeof(memory);
	struct tcp_info info = {0};
	socklen_t info_len = sizeof(info);
	uint32_t limit;
	int bytes;

	if (getsockopt(transport->fd, IPPROTO_TCP, TCP_INFO, &info, &info_len) != 0 ||
		info.tcpi_retransmits + info.tcpi_probes == 0)
		return;
	if (getsockopt(transport->fd, SOL_SOCKET, SO_MEMINFO, memory, &len) != 0 || len < sizeof(uint32_t) * 2)
		return;
	limit = memory[SK_MEMINFO_RCVBUF]; /* twice of what SO_RCVBUF has set */
	if (memory[SK_MEMINFO_RMEM_ALLOC] < limit - limit / 8 || limit / 2 >= TRANSPORT_ROOM_MAX)
		return;
	bytes = (int) (limit / 2 + TRANSPORT_ROOM_BYTES);
	(void) setsockopt(transport->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

TransportPhase
transport_phase(const Transport *transport)
{
	SSL *ssl = transport_ssl(transport);

	if (ssl == NULL || SSL_is_init_finished(ssl))
		return TRANSPORT_OPEN;
	return BIO_number_read(SSL_get_rbio(ssl)) == 0 ? TRANSPORT_SILENT : TRANSPORT_HANDSHAKE;
}

bool
transport_is_tls(const Transport *transport)
{
	return transport_ssl(transport) != NULL;
}

/* ---- writing ---- */

static ssize_t
transport_result(ssize_t sent)
{
	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? TRANSPORT_AGAIN : TRANSPORT_BROKEN;
}

ssize_t
transport_write(Transport *transport, const void *from, size_t len)
{
	SSL *ssl = transport_ssl(transport);
	int sent;

	if (ssl == NULL)
		return transport_result(send(transport->fd, from, len, MSG_NOSIGNAL));
	ERR_clear_error();
	sent = SSL_write(ssl, from, len < INT_MAX ? (int) len : INT_MAX);
	if (sent > 0)
		return sent;
	return SSL_get_error(ssl, sent) == SSL_ERROR_WANT_WRITE ? TRANSPORT_AGAIN : TRANSPORT_BROKEN;
}

ssize_t
transport_write_parts(Transport *transport, const struct iovec *parts, size_t count)
{
	struct msghdr message = {.msg_iov = (struct iovec *) parts, .msg_iovlen = count};

	return transport_result(sendmsg(transport->fd, &message, MSG_NOSIGNAL));
}

int
transport_queued(const Transport *transport)
{
	int queued = 0;

	return ioctl(transport->fd, SIOCOUTQ, &queued) == 0 && queued > 0 ? queued : 0;
}

void
transport_want_write(Transport *transport)
{
	if (transport->wants_write)
		return;
	transport->wants_write = true;
	(void) lws_callback_on_writable(transport->wsi);
}
