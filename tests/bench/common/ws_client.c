/* ws_client.c - see ws_client.h. */
#include "ws_client.h"

#include "basics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define TLS_MOST 1024 /* descriptors */

static SSL *tls_of[TLS_MOST];

static void
tls_connect(int fd)
{
	static SSL_CTX *context;

	if (context == NULL)
		context = SSL_CTX_new(TLS_client_method());
	if (fd >= TLS_MOST || context == NULL || (tls_of[fd] = SSL_new(context)) == NULL)
		fail("no TLS for descriptor %d", fd);
	SSL_set_mode(tls_of[fd], SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_set_fd(tls_of[fd], fd);
	if (SSL_connect(tls_of[fd]) != 1)
		fail("the TLS handshake failed");
}

static ssize_t
tls_result(SSL *ssl, int result)
{
	int error = SSL_get_error(ssl, result);

	if (result > 0)
		return result;
	errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
	return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

ssize_t
ws_recv(int fd, char *to, size_t size)
{
	SSL *ssl = fd < TLS_MOST ? tls_of[fd] : NULL;
	ssize_t got = 0;

	if (ssl == NULL)
		return recv(fd, to, size, 0);
	/* All that OpenSSL has read must be taken: the poller does not tell of it. */
	do
	{
		ssize_t more = tls_result(ssl, SSL_read(ssl, to + got, (int) (size - (size_t) got)));

		if (more <= 0)
			return got > 0 ? got : more;
		got += more;
	} while (SSL_pending(ssl) > 0 && (size_t) got < size);
	return got;
}

ssize_t
ws_send(int fd, const char *from, size_t len)
{
	SSL *ssl = fd < TLS_MOST ? tls_of[fd] : NULL;

	return ssl == NULL ? send(fd, from, len, MSG_NOSIGNAL) : tls_result(ssl, SSL_write(ssl, from, (int) len));
}

int
ws_connect(int port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) != 0)
		fail("cannot connect to port %d: %s", port, strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (getenv("WS_TLS") != NULL)
		tls_connect(fd);
	return fd;
}

size_t
ws_write_upgrade(char *to, size_t size, int port, const char *path, const char *protocol)
{
	size_t len = (size_t) snprintf(
		to, size,
		"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%s%s%s\r\n",
		path, port, protocol ? "Sec-WebSocket-Protocol: " : "", protocol ? protocol : "", protocol ? "\r\n" : "");

	if (len >= size)
		fail("the upgrade is too long");
	return len;
}

int
ws_open(int port, const char *path, const char *protocol, char *rest, size_t size, size_t *rest_len)
{
	int fd = ws_connect(port);
	char text[16384] = "", *end;
	size_t len = ws_write_upgrade(text, sizeof(text), port, path, protocol);

	if (ws_send(fd, text, len) != (ssize_t) len)
		fail("cannot send the upgrade");
	for (len = 0, text[0] = '\0'; !(end = strstr(text, "\r\n\r\n"));)
	{
		ssize_t got = ws_recv(fd, text + len, sizeof(text) - 1 - len);

		if (got <= 0)
			fail("no answer to the upgrade; got: %s", text);
		len += (size_t) got;
		text[len] = '\0';
	}
	if (strncmp(text, "HTTP/1.1 101", 12) != 0)
		fail("the upgrade was refused: %s", text);
	*rest_len = len - (size_t) (end + 4 - text);
	if (*rest_len > size)
		fail("too much came with the answer to the upgrade");
	memcpy(rest, end + 4, *rest_len);
	return fd;
}

size_t
ws_measure_frame(const unsigned char *frame, size_t len, uint64_t *payload)
{
	if (len < 2)
		return 0;
	*payload = frame[1] & 0x7F;
	if (*payload < 126)
		return 2;
	if (*payload == 126)
	{
		if (len < 4)
			return 0;
		*payload = frame[2] << 8 | frame[3];
		return 4;
	}
	if (len < 10)
		return 0;
	*payload = 0;
	for (int i = 2; i < 10; i++)
		*payload = *payload << 8 | frame[i];
	return 10;
}

/* Eight bytes at a time: generators mask hundreds of megabytes a second. */
static void
mask_copy(char *to, const char *from, size_t len, uint32_t mask)
{
	uint64_t mask8 = (uint64_t) mask << 32 | mask, part;
	unsigned char bytes[4];
	size_t i = 0;

	for (; i + 8 <= len; i += 8)
	{
		memcpy(&part, from + i, 8);
		part ^= mask8;
		memcpy(to + i, &part, 8);
	}
	memcpy(bytes, &mask, 4);
	for (; i < len; i++)
		to[i] = (char) (from[i] ^ bytes[i % 4]);
}

size_t
ws_write_frame(char *to, int opcode, const void *payload, size_t len, uint32_t mask)
{
	size_t head = 2;

	to[0] = (char) (0x80 | opcode);
	if (len < 126)
		to[1] = (char) (0x80 | len);
	else if (len < 65536)
	{
		to[1] = (char) (0x80 | 126);
		to[head++] = (char) (len >> 8);
		to[head++] = (char) len;
	}
	else
	{
		to[1] = (char) (0x80 | 127);
		for (int shift = 56; shift >= 0; shift -= 8)
			to[head++] = (char) ((uint64_t) len >> shift);
	}
	memcpy(to + head, &mask, 4);
	head += 4;
	mask_copy(to + head, payload, len, mask);
	return head + len;
}
