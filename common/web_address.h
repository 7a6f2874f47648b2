/*
 * web_address.h - http and https addresses to which requests are sent, such as those of webhooks: strictly a part of
 * RFC 3986, so that nobody takes another host for the one that is meant.
 */
#ifndef SHEET_WEB_ADDRESS_H
#define SHEET_WEB_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#define WEB_ADDRESS_MAX		 2048
#define WEB_ADDRESS_HOST_MAX 253
#define WEB_ADDRESS_SIZE	 (WEB_ADDRESS_MAX + 32) /* of web_address_write() */

typedef struct WebAddress
{
	bool tls;
	bool literal; /* the host is an IP address */
	int port;
	char host[WEB_ADDRESS_HOST_MAX + 1]; /* lower case, no dot at the end; IPv6 in its shortest form */
	const char *path;					 /* points into the text: "", or from the first / or ? on */
} WebAddress;

/* NULL if the text is an address, else what speaks against it, as in "the address must ...". */
extern const char *web_address_parse(const char *text, WebAddress *to);

/* Writes the one form of an address that was parsed: https://host:port/path, without the port of the scheme. */
extern void web_address_write(const WebAddress *address, char text[WEB_ADDRESS_SIZE]);

#endif
