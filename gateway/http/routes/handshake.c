/* handshake.c - the opening handshake of a WebSocket (see handshake.h). */
#include "http/routes/handshake.h"

#include "auth/base64.h"
#include "http/request/request.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
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

const char *
handshake_protocol(const Request *request)
{
	const char *asked = head_field(&request->head, "sec-websocket-protocol");

	if (asked == NULL)
		return NULL;
	if (head_list_has(asked, HANDSHAKE_V2))
		return HANDSHAKE_V2;
	return head_list_has(asked, HANDSHAKE_V1) ? HANDSHAKE_V1 : NULL;
}

void
handshake_accept(const Request *request, char to[HANDSHAKE_ACCEPT_SIZE])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char text[HANDSHAKE_KEY_LEN + sizeof(guid)];
	unsigned char digest[SHA_DIGEST_LENGTH];

	snprintf(text, sizeof(text), "%s%s", head_field(&request->head, "sec-websocket-key"), guid);
	(void) SHA1((const unsigned char *) text, strlen(text), digest);
	(void) EVP_EncodeBlock((unsigned char *) to, digest, sizeof(digest));
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
	if (head_field(head, "sec-websocket-protocol") != NULL && handshake_protocol(request) == NULL)
		return "none of the subprotocols in Sec-WebSocket-Protocol is spoken here";
	if (version != NULL && strcmp(version, "13") == 0)
		return NULL;
	*status = 426;
	return "Sec-WebSocket-Version must be 13";
}
