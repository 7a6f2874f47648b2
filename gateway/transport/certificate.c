/*
 * certificate.c - the gateway's certificate, and what TLS it speaks: 1.2 with forward secrecy and authenticated
 * ciphers, and 1.3.
 *
 * libwebsockets makes connections from a context of its own, which has no certificate. Each connection is given the
 * context with the present certificate when its client hello arrives. A connection keeps it, which OpenSSL counts. So a
 * new certificate replaces the former as a whole, whatever the kind of its key, and one that cannot be read replaces
 * nothing: lws_tls_cert_updated() reports success for it.
 */
#include "transport/certificate.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>

static SSL_CTX *certificate_context; /* with the present certificate */
static SSL_CTX *certificate_host;	 /* libwebsockets' */

static const char certificate_ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL";

/* Only HTTP/1.1 is supported: the handshake fails if the client offers other protocols only. */
static int
certificate_choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
							unsigned in_len, void *arg)
{
	static const unsigned char protocols[] = "\x08http/1.1";
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, out_len, protocols, sizeof(protocols) - 1, in, in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* Some of this counts in the context that a connection is made from, some in the one that it is given. */
static void
certificate_configure(SSL_CTX *context)
{
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_cipher_list(context, certificate_ciphers);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(context,
					 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(context, certificate_choose_protocol, NULL);
}

bool
certificate_load(const char *certificate, const char *key, char *reason, size_t size)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	const char *what = NULL;

	if (context == NULL)
	{
		snprintf(reason, size, "out of memory");
		return false;
	}
	certificate_configure(context);
	if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
		what = "tls-certificate cannot be read";
	else if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		what = "tls-key cannot be read, or does not belong to the certificate";
	if (what != NULL)
	{
		snprintf(reason, size, "%s: %s", what, ERR_reason_error_string(ERR_peek_error()) ?: "unknown error");
		ERR_clear_error();
		SSL_CTX_free(context);
		return false;
	}
	SSL_CTX_free(certificate_context);
	certificate_context = context;
	return true;
}

bool
certificate_is_loaded(void)
{
	return certificate_context != NULL;
}

void
certificate_free(void)
{
	SSL_CTX_free(certificate_context);
	certificate_context = NULL;
}

static int
certificate_on_hello(SSL *ssl, int *alert, void *arg)
{
	return SSL_set_SSL_CTX(ssl, certificate_context) != NULL ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
}

void
certificate_attach(SSL_CTX *context)
{
	certificate_host = context;
	certificate_configure(context);
	SSL_CTX_set_client_hello_cb(context, certificate_on_hello, NULL);
}

void
certificate_attached(void)
{
	if (certificate_host == NULL)
		return;
	/* libwebsockets looks for the host that a context belongs to, and has an assertion that there is one. */
	SSL_CTX_set_tlsext_servername_callback(certificate_host, NULL);
	SSL_CTX_set_alpn_select_cb(certificate_host, certificate_choose_protocol, NULL);
}
