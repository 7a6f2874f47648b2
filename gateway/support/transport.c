/*
 * transport.c - the bytes of a connection: a socket, or TLS on it.
 */
#include "support/transport.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What OpenSSL says instead of a number of bytes. */
static ssize_t
transport_ssl_result(Transport *transport, int result, bool reading)
{
	switch (SSL_get_error(transport->ssl, result))
	{
		case SSL_ERROR_WANT_READ:
			transport->wants_read = !reading;
			return TRANSPORT_AGAIN;
		case SSL_ERROR_WANT_WRITE:
			transport->wants_write = reading;
			return TRANSPORT_AGAIN;
		case SSL_ERROR_ZERO_RETURN:
			return TRANSPORT_END;
		default:
			return TRANSPORT_BROKEN;
	}
}

static ssize_t
transport_socket_result(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? TRANSPORT_AGAIN : TRANSPORT_BROKEN;
}

ssize_t
transport_read(Transport *transport, void *to, size_t size)
{
	ssize_t got;

	transport->wants_write = false;
	if (transport->ssl != NULL)
	{
		ERR_clear_error();
		got = SSL_read(transport->ssl, to, size < INT_MAX ? (int) size : INT_MAX);
		if (got <= 0)
			got = transport_ssl_result(transport, (int) got, true);
	}
	else if ((got = recv(transport->fd, to, size, 0)) < 0)
		got = transport_socket_result();
	transport->ended = transport->ended || got == TRANSPORT_END;
	return got;
}

ssize_t
transport_write(Transport *transport, const void *from, size_t len)
{
	ssize_t sent;

	transport->wants_read = false;
	if (transport->ssl != NULL)
	{
		ERR_clear_error();
		sent = SSL_write(transport->ssl, from, len < INT_MAX ? (int) len : INT_MAX);
		if (sent > 0)
			return sent;
		sent = transport_ssl_result(transport, (int) sent, false);
		return sent == TRANSPORT_END ? TRANSPORT_BROKEN : sent;
	}
	sent = send(transport->fd, from, len, MSG_NOSIGNAL);
	return sent >= 0 ? sent : transport_socket_result();
}

ssize_t
transport_write_parts(Transport *transport, const struct iovec *parts, size_t count)
{
	struct msghdr message = {.msg_iov = (struct iovec *) parts, .msg_iovlen = count};
	ssize_t sent = sendmsg(transport->fd, &message, MSG_NOSIGNAL);

	return sent >= 0 ? sent : transport_socket_result();
}

int
transport_queued(const Transport *transport)
{
	int queued = 0;

	return ioctl(transport->fd, SIOCOUTQ, &queued) == 0 && queued > 0 ? queued : 0;
}

int
transport_handshake(Transport *transport)
{
	int result;

	ERR_clear_error();
	result = SSL_accept(transport->ssl);
	transport->wants_write = false;
	if (result == 1)
		return 1;
	return transport_ssl_result(transport, result, true) == TRANSPORT_AGAIN ? TRANSPORT_AGAIN : TRANSPORT_BROKEN;
}

bool
transport_has_more(const Transport *transport)
{
	return transport->ssl != NULL && SSL_pending(transport->ssl) > 0;
}

void
transport_end(Transport *transport)
{
	ERR_clear_error();
	if (transport->ssl != NULL && SSL_is_init_finished(transport->ssl))
		(void) SSL_shutdown(transport->ssl);
	(void) shutdown(transport->fd, SHUT_WR);
}

void
transport_close(Transport *transport)
{
	SSL_free(transport->ssl);
	if (transport->fd >= 0)
		close(transport->fd);
	transport->ssl = NULL;
	transport->fd = -1;
}
