/*
 * handshake.c - is a request for a WebSocket one as RFC 6455 4.2.1 wants it? libwebsockets 4.1.6 takes any version and
 * any key for good, and drops the connection without a word for the rest.
 */
#include "handshake.h"

#include "base64.h"

#include <libwebsockets.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HANDSHAKE_KEY_LEN 24 /* 16 bytes in base64 */

static bool
handshake_header(struct lws *wsi, enum lws_token_indexes token, char *to, size_t size)
{
	to[0] = '\0';
	return lws_hdr_total_length(wsi, token) > 0 && lws_hdr_copy(wsi, to, (int) size, token) > 0;
}

/* The next word of a list between commas, cut out of it; NULL at its end. */
static char *
handshake_next_word(char **list)
{
	char *word;

	while ((word = strsep(list, ", \t")) != NULL && *word == '\0')
		;
	return word;
}

static bool
handshake_key_is_good(struct lws *wsi)
{
	char key[HANDSHAKE_KEY_LEN + 2];
	unsigned char nonce[16];
	size_t len;

	return lws_hdr_total_length(wsi, WSI_TOKEN_KEY) == HANDSHAKE_KEY_LEN &&
		   handshake_header(wsi, WSI_TOKEN_KEY, key, sizeof(key)) && strcmp(key + HANDSHAKE_KEY_LEN - 2, "==") == 0 &&
		   base64_decode(BASE64_STANDARD, key, HANDSHAKE_KEY_LEN - 2, nonce, sizeof(nonce), &len);
}

static bool
handshake_asks_to_upgrade(struct lws *wsi)
{
	char text[256], *list = text, *word;

	if (handshake_header(wsi, WSI_TOKEN_CONNECTION, text, sizeof(text)))
	{
		while ((word = handshake_next_word(&list)) != NULL)
		{
			if (strcasecmp(word, "upgrade") == 0)
				return true;
		}
	}
	return false;
}

/* None asked for is fine; of those asked for one must be ours. */
static bool
handshake_protocol_is_spoken(struct lws *wsi)
{
	char text[256], *list = text, *word;

	if (lws_hdr_total_length(wsi, WSI_TOKEN_PROTOCOL) == 0)
		return true;
	if (handshake_header(wsi, WSI_TOKEN_PROTOCOL, text, sizeof(text)))
	{
		while ((word = handshake_next_word(&list)) != NULL)
		{
			if (lws_vhost_name_to_protocol(lws_get_vhost(wsi), word) != NULL)
				return true;
		}
	}
	return false;
}

const char *
handshake_problem(struct lws *wsi, int *status)
{
	char text[32];

	*status = 400;
	if (!handshake_header(wsi, WSI_TOKEN_UPGRADE, text, sizeof(text)) || strcasecmp(text, "websocket") != 0)
		return "the only upgrade is to websocket";
	if (!handshake_header(wsi, WSI_TOKEN_HTTP, text, sizeof(text)) || strcasecmp(text, "HTTP/1.1") != 0)
		return "a WebSocket begins with HTTP/1.1";
	if (lws_hdr_total_length(wsi, WSI_TOKEN_HOST) == 0)
		return "Host is needed";
	if (!handshake_asks_to_upgrade(wsi))
		return "Connection must name Upgrade";
	if (!handshake_key_is_good(wsi))
		return "Sec-WebSocket-Key must be 16 bytes in base64";
	if (!handshake_protocol_is_spoken(wsi))
		return "none of the subprotocols in Sec-WebSocket-Protocol is spoken here";
	if (handshake_header(wsi, WSI_TOKEN_VERSION, text, sizeof(text)) && strcmp(text, "13") == 0)
		return NULL;
	*status = 426;
	return "Sec-WebSocket-Version must be 13";
}
