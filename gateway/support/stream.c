/*
 * stream.c - the bytes of a connection: a socket, or TLS on it.
 */
#include "support/stream.h"

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
stream_ssl_result(Stream *stream, int result, bool reading)
{
	switch (SSL_get_error(stream->ssl, result))
	{
		case SSL_ERROR_WANT_READ:
			stream->wants_read = !reading;
			return STREAM_AGAIN;
		case SSL_ERROR_WANT_WRITE:
			stream->wants_write = reading;
			return STREAM_AGAIN;
		case SSL_ERROR_ZERO_RETURN:
			return STREAM_END;
		default:
			return STREAM_BROKEN;
	}
}

static ssize_t
stream_socket_result(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? STREAM_AGAIN : STREAM_BROKEN;
}

ssize_t
stream_read(Stream *stream, void *to, size_t size)
{
	ssize_t got;

	stream->wants_write = false;
	if (stream->ssl != NULL)
	{
		ERR_clear_error();
		got = SSL_read(stream->ssl, to, size < INT_MAX ? (int) size : INT_MAX);
		if (got <= 0)
			got = stream_ssl_result(stream, (int) got, true);
	}
	else if ((got = recv(stream->fd, to, size, 0)) < 0)
		got = stream_socket_result();
	stream->ended = stream->ended || got == STREAM_END;
	return got;
}

ssize_t
stream_write(Stream *stream, const void *from, size_t len)
{
	ssize_t sent;

	stream->wants_read = false;
	if (stream->ssl != NULL)
	{
		ERR_clear_error();
		sent = SSL_write(stream->ssl, from, len < INT_MAX ? (int) len : INT_MAX);
		if (sent > 0)
			return sent;
		sent = stream_ssl_result(stream, (int) sent, false);
		return sent == STREAM_END ? STREAM_BROKEN : sent;
	}
	sent = send(stream->fd, from, len, MSG_NOSIGNAL);
	return sent >= 0 ? sent : stream_socket_result();
}

ssize_t
stream_write_parts(Stream *stream, const struct iovec *parts, size_t count)
{
	struct msghdr message = {.msg_iov = (struct iovec *) parts, .msg_iovlen = count};
	ssize_t sent = sendmsg(stream->fd, &message, MSG_NOSIGNAL);

	return sent >= 0 ? sent : stream_socket_result();
}

int
stream_queued(const Stream *stream)
{
	int queued = 0;

	return ioctl(stream->fd, SIOCOUTQ, &queued) == 0 && queued > 0 ? queued : 0;
}

int
stream_handshake(Stream *stream)
{
	int result;

	ERR_clear_error();
	result = SSL_accept(stream->ssl);
	stream->wants_write = false;
	if (result == 1)
		return 1;
	return stream_ssl_result(stream, result, true) == STREAM_AGAIN ? STREAM_AGAIN : STREAM_BROKEN;
}

bool
stream_has_more(const Stream *stream)
{
	return stream->ssl != NULL && SSL_pending(stream->ssl) > 0;
}

void
stream_end(Stream *stream)
{
	ERR_clear_error();
	if (stream->ssl != NULL && SSL_is_init_finished(stream->ssl))
		(void) SSL_shutdown(stream->ssl);
	(void) shutdown(stream->fd, SHUT_WR);
}

void
stream_close(Stream *stream)
{
	SSL_free(stream->ssl);
	if (stream->fd >= 0)
		close(stream->fd);
	stream->ssl = NULL;
	stream->fd = -1;
}
