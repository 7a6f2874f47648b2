/*
 * tls.c - the gateway's certificate, and TLS on a socket: 1.2 with forward secrecy and authenticated ciphers, and 1.3.
 *
 * A new certificate is used for new connections. Open ones keep their context, which OpenSSL counts.
 */
#include "http/server/tls.h"

#include "core/gateway.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define TLS_RECORD 0x16 /* first byte of a handshake */

static SSL_CTX *tls_context;

static const char tls_ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL";

/* Only HTTP/1.1 is supported: the handshake fails if the client offers other protocols only. */
static int
tls_choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
					unsigned in_len, void *arg)
{
	static const unsigned char protocols[] = "\x08http/1.1";
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, out_len, protocols, sizeof(protocols) - 1, in, in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *
tls_load(char *reason, size_t size)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	const char *what = NULL;

	if (context == NULL)
	{
		snprintf(reason, size, "out of memory");
		return NULL;
	}
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_cipher_list(context, tls_ciphers);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(context,
					 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(context, tls_choose_protocol, NULL);
	if (SSL_CTX_use_certificate_chain_file(context, gateway.config.tls_certificate) != 1)
		what = "tls-certificate cannot be read";
	else if (SSL_CTX_use_PrivateKey_file(context, gateway.config.tls_key, SSL_FILETYPE_PEM) != 1)
		what = "tls-key cannot be read, or does not belong to the certificate";
	if (what == NULL)
		return context;
	snprintf(reason, size, "%s: %s", what, ERR_reason_error_string(ERR_peek_error()) ?: "unknown error");
	ERR_clear_error();
	SSL_CTX_free(context);
	return NULL;
}

bool
tls_start(void)
{
	char reason[256];

	if (gateway.config.tls_certificate[0] == '\0')
		return true;
	tls_context = tls_load(reason, sizeof(reason));
	if (tls_context == NULL)
		fprintf(stderr, "pg_sheet_gateway: %s (certificate \"%s\", key \"%s\")\n", reason,
				gateway.config.tls_certificate, gateway.config.tls_key);
	return tls_context != NULL;
}

bool
tls_reload(void (*say)(const char *line))
{
	char reason[256];
	SSL_CTX *context;

	if (tls_context == NULL)
		return true;
	context = tls_load(reason, sizeof(reason));
	if (context == NULL)
	{
		say(reason);
		return false;
	}
	SSL_CTX_free(tls_context);
	tls_context = context;
	return true;
}

void
tls_stop(void)
{
	SSL_CTX_free(tls_context);
	tls_context = NULL;
}

bool
tls_is_on(void)
{
	return tls_context != NULL;
}

SSL *
tls_new(int fd)
{
	SSL *ssl = SSL_new(tls_context);

	if (ssl == NULL)
		return NULL;
	if (SSL_set_fd(ssl, fd) != 1)
	{
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_accept_state(ssl);
	return ssl;
}

bool
tls_is_plain(const Transport *transport)
{
	char byte;

	return SSL_in_before(transport->ssl) && recv(transport->fd, &byte, 1, MSG_PEEK) == 1 && byte != TLS_RECORD;
}

bool
tls_is_silent(const Transport *transport)
{
	return BIO_number_read(SSL_get_rbio(transport->ssl)) == 0;
}

void
tls_free(Transport *transport)
{
	SSL_free(transport->ssl);
	transport->ssl = NULL;
}
