/*
 * lws_probe.c - what the installed libwebsockets does with input that decides what the gateway uses it for. Prints a
 * line for each behaviour that is marked with (p) in docs/design/gateway.md, "Why not otherwise".
 *
 *   cc -D_GNU_SOURCE -rdynamic -o /tmp/lws_probe tests/tools/lws_probe.c -lwebsockets -lpthread && /tmp/lws_probe
 *
 * Needs libwebsockets-dev. It serves HTTP, WebSocket and raw sockets at free ports of loopback, and is its own client.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <libwebsockets.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 1500
#define FLOOD	(16 << 20) /* bytes: more than a socket takes */

static struct lws_context *context;
static struct lws_vhost *raw_host, *http_host;
static atomic_bool ended;
static atomic_int raw_received, ws_received;
static char body[256]; /* of the last request */
static atomic_size_t body_len;
static bool interfaces_fail;

/* The sandbox of a service may refuse the socket that this needs. */
int
getifaddrs(struct ifaddrs **list)
{
	*list = NULL;
	errno = interfaces_fail ? EAFNOSUPPORT : 0;
	return interfaces_fail ? -1 : 0;
}

void
freeifaddrs(struct ifaddrs *list)
{
	(void) list;
}

static int
on_raw(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	static unsigned char flood[FLOOD];

	(void) user;
	if (reason != LWS_CALLBACK_RAW_RX)
		return 0;
	raw_received++;
	if (len > 0 && *(char *) in == 'w' && lws_write(wsi, flood, sizeof(flood), LWS_WRITE_RAW) < 0)
		return -1;
	return 0;
}

static int
on_http(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	(void) user;
	switch (reason)
	{
		case LWS_CALLBACK_HTTP:
			if (lws_hdr_total_length(wsi, WSI_TOKEN_POST_URI) > 0)
				return 0;
			return lws_return_http_status(wsi, 200, "here") != 0 ? -1 : lws_http_transaction_completed(wsi);
		case LWS_CALLBACK_HTTP_BODY:
			if (body_len + len < sizeof(body))
				memcpy(body + body_len, in, len);
			body_len += len;
			return 0;
		case LWS_CALLBACK_RECEIVE:
			ws_received++;
			return 0;
		default:
			return 0;
	}
}

static const struct lws_protocols raw_protocols[] = {{.name = "raw", .callback = on_raw}, {.name = NULL}};
static const struct lws_protocols http_protocols[] = {{.name = "http", .callback = on_http, .rx_buffer_size = 4096},
													  {.name = NULL}};

static void *
serve(void *arg)
{
	(void) arg;
	while (!ended)
		lws_service(context, 0);
	return NULL;
}

static struct lws_vhost *
add_host(const char *name, const struct lws_protocols *protocols, const char *role)
{
	struct lws_context_creation_info info = {
		.port = 0, .iface = "127.0.0.1", .vhost_name = name, .protocols = protocols};

	info.options = LWS_SERVER_OPTION_DISABLE_IPV6;
	if (role != NULL)
	{
		info.options |= LWS_SERVER_OPTION_ADOPT_APPLY_LISTEN_ACCEPT_CONFIG;
		info.listen_accept_role = role;
		info.listen_accept_protocol = protocols[0].name;
	}
	return lws_create_vhost(context, &info);
}

/* ---- the client ---- */

static int
connect_to(struct lws_vhost *host)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
								  .sin_port = htons((uint16_t) lws_get_vhost_listen_port(host)),
								  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {WAIT_MS / 1000, WAIT_MS % 1000 * 1000};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *) &address, sizeof(address)) != 0)
	{
		perror("connect");
		exit(1);
	}
	return fd;
}

/* Sends a request and returns the beginning of the answer, "" if there is none. */
static const char *
ask(int fd, const char *request)
{
	static char answer[4096];
	ssize_t got;

	(void) send(fd, request, strlen(request), MSG_NOSIGNAL);
	got = recv(fd, answer, sizeof(answer) - 1, 0);
	answer[got > 0 ? got : 0] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	return answer;
}

static const char *
ask_once(const char *request)
{
	int fd = connect_to(http_host);
	const char *answer = ask(fd, request);

	close(fd);
	return answer[0] != '\0' ? answer : "no answer";
}

static void
probe_http(void)
{
	printf("a request whose last field is X-Auth: %s\n", ask_once("GET / HTTP/1.1\r\nHost: x\r\nX-Auth: 1\r\n\r\n"));
	printf("the method REPORT: %s\n", ask_once("REPORT / HTTP/1.1\r\nHost: x\r\n\r\n"));
	printf("Content-Length together with Transfer-Encoding: %s\n",
		   ask_once("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"));
	(void) ask_once("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
	printf("a chunked body with the text hello reaches its callback %s\n",
		   body_len == 5
			   ? "decoded"
			   : (memmem(body, sizeof(body), "5\r\nhello", 8) != NULL ? "with its chunk sizes" : "not at all"));
}

static void
probe_websocket(void)
{
	int fd = connect_to(http_host);
	const char *answer =
		ask(fd, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
				"Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: http\r\n\r\n");

	printf("an upgrade whose key is no key: %s\n", answer[0] != '\0' ? answer : "no answer");
	(void) send(fd, "\x81\x05hello", 7, MSG_NOSIGNAL);
	usleep(WAIT_MS * 1000);
	printf("a frame of a client that is not masked is %s\n", ws_received > 0 ? "taken" : "refused");
	close(fd);
}

static double
cpu_ms(pthread_t thread)
{
	struct timespec time;
	clockid_t clock;

	pthread_getcpuclockid(thread, &clock);
	clock_gettime(clock, &time);
	return (double) time.tv_sec * 1e3 + (double) time.tv_nsec / 1e6;
}

static void
probe_rest(pthread_t server)
{
	int fd = connect_to(raw_host);
	double before;

	(void) send(fd, "w", 1, MSG_NOSIGNAL); /* it writes more than this client ever reads */
	usleep(WAIT_MS * 1000);
	(void) send(fd, "x", 1, MSG_NOSIGNAL);
	before = cpu_ms(server);
	usleep(WAIT_MS * 1000);
	printf("while lws_write() has a rest, input is %s, and a second takes %.0f ms of CPU\n",
		   raw_received > 1 ? "read" : "not read", (cpu_ms(server) - before) / WAIT_MS * 1000);
	close(fd);
}

static void
probe_listener(void)
{
	struct sockaddr_in address;
	struct lws_vhost *host;
	socklen_t len;

	interfaces_fail = true;
	host = add_host("listener", raw_protocols, "raw-skt");
	for (int fd = 3; host != NULL && fd < 256; fd++)
	{
		len = sizeof(address);
		if (getsockname(fd, (struct sockaddr *) &address, &len) == 0 && address.sin_family == AF_INET &&
			ntohs(address.sin_port) == lws_get_vhost_listen_port(host))
			printf("told to listen on 127.0.0.1, without a list of interfaces it listens on %s\n",
				   inet_ntoa(address.sin_addr));
	}
}

int
main(void)
{
	struct lws_context_creation_info info = {.port = CONTEXT_PORT_NO_LISTEN,
											 .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
											 .gid = (gid_t) -1,
											 .uid = (uid_t) -1};
	pthread_t server;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("libwebsockets %s\n", lws_get_library_version());
	lws_set_log_level(0, NULL);
	context = lws_create_context(&info);
	raw_host = context != NULL ? add_host("raw", raw_protocols, "raw-skt") : NULL;
	http_host = raw_host != NULL ? add_host("http", http_protocols, NULL) : NULL;
	if (http_host == NULL)
	{
		fprintf(stderr, "lws_probe: cannot listen on loopback\n");
		return 1;
	}
	probe_listener();
	pthread_create(&server, NULL, serve, NULL);
	probe_http();
	probe_websocket();
	probe_rest(server);
	ended = true;
	lws_cancel_service(context);
	pthread_join(server, NULL);
	return 0;
}
