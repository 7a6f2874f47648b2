/*
 * handshake.c - is a request for a WebSocket one as RFC 6455 4.2.1 wants it? libwebsockets 4.1.6 takes any version and
 * any key for good, and drops the connection without a word for the rest.
 */
#include "handshake.h"

#include "base64.h"
#include "request.h"
#include "server.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define HANDSHAKE_KEY_LEN 24 /* 16 bytes in base64 */

static bool
handshake_key_is_good(const char *key)
{
	unsigned char nonce[16];
	size_t len;

	return key != NULL && strlen(key) == HANDSHAKE_KEY_LEN && strcmp(key + HANDSHAKE_KEY_LEN - 2, "==") == 0 &&
		   base64_decode(BASE64_STANDARD, key, HANDSHAKE_KEY_LEN - 2, nonce, sizeof(nonce), &len);
}

/* None asked for is fine; of those asked for one must be ours. */
static bool
handshake_protocol_is_spoken(const char *asked)
{
	if (asked == NULL)
		return true;
	for (int i = 0; server_protocol_name(i) != NULL; i++)
	{
		if (head_list_has(asked, server_protocol_name(i)))
			return true;
	}
	return false;
}

const char *
handshake_problem(const Request *request, int *status)
{
	const Head *head = &request->head;
	const char *version = head_field(head, "sec-websocket-version");

	*status = 400;
	if (strcasecmp(head_field(head, "upgrade"), "websocket") != 0)
		return "the only upgrade is to websocket";
	if (head->minor == 0)
		return "a WebSocket begins with HTTP/1.1";
	if (!head->upgrade)
		return "Connection must name Upgrade";
	if (request->content_length > 0 || head->chunked)
		return "a WebSocket begins without a body";
	if (!handshake_key_is_good(head_field(head, "sec-websocket-key")))
		return "Sec-WebSocket-Key must be 16 bytes in base64";
	if (!handshake_protocol_is_spoken(head_field(head, "sec-websocket-protocol")))
		return "none of the subprotocols in Sec-WebSocket-Protocol is spoken here";
	if (version != NULL && strcmp(version, "13") == 0)
		return NULL;
	*status = 426;
	return "Sec-WebSocket-Version must be 13";
}
