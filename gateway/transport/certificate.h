/*
 * certificate.h - the gateway's certificate; see certificate.c.
 */
#ifndef CERTIFICATE_H
#define CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ssl_ctx_st SSL_CTX;

/* Reads both files, for new connections. Returns false if that fails: reason says why, and the former certificate
 * stays. */
extern bool certificate_load(const char *certificate, const char *key, char *reason, size_t size);
extern bool certificate_is_loaded(void);
extern void certificate_free(void);

/* ---- for transport.c ---- */
/* The context of libwebsockets is being made ... */
extern void certificate_attach(SSL_CTX *context);
/* ... and is complete. */
extern void certificate_attached(void);

#endif
