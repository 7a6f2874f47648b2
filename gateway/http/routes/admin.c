/*
 * admin.c - who is an operator; see admin.h.
 *
 * A proxy on this machine makes every request come from loopback. So a request that was forwarded counts as the
 * proxy's client only when the proxy is trusted (request.c), and is nobody's otherwise.
 */
#include "http/routes/admin.h"

#include "http/server/conn.h"
#include "core/gateway.h"
#include "support/network.h"
#include "http/server/origin.h"

#include <openssl/crypto.h>
#include <string.h>

static bool
admin_was_forwarded(const Request *request)
{
	return (head_field(&request->head, "x-forwarded-for") != NULL || head_field(&request->head, "forwarded") != NULL) &&
		   !network_list_contains(gateway.config.trusted_proxies, conn_address(request->conn));
}

static bool
admin_has_token(const Request *request)
{
	char header[ADMIN_TOKEN_MAX + 16];
	size_t len = strlen(gateway.admin_token);

	return len > 0 && request_header(request, "authorization", header, sizeof(header)) &&
		   strncasecmp(header, "Bearer ", 7) == 0 && strlen(header + 7) == len &&
		   CRYPTO_memcmp(header + 7, gateway.admin_token, len) == 0;
}

/* Browsers send the name that they have looked up, which may be anybody's (DNS rebinding). */
static bool
admin_host_is_known(const Request *request)
{
	const char *host = head_field(&request->head, "host");

	return host == NULL || origin_host_is_known(host);
}

bool
admin_may(Request *request)
{
	if (admin_has_token(request) || (!admin_was_forwarded(request) && admin_host_is_known(request) &&
									 network_list_contains(gateway.config.admin_networks, request->peer)))
		return true;
	request_error(request, 403,
				  "this is for operators: ask from a network of admin-networks, by a name of this gateway, or with the "
				  "token of admin-token-file");
	return false;
}
