/*
 * tickets.c - one-time tickets for WebSockets.
 *
 * A browser's WebSocket carries no header of ours, so what says who it is stands in its address, which logs and
 * histories keep. A ticket is worth nothing there: it is used once, at the gateway that has issued it, for one sheet,
 * within TICKET_SECONDS. It is 128 random bits; the first ones say where in the table it is.
 */
#include "http/request/tickets.h"

#include "auth/base64.h"
#include "core/gateway.h"
#include "http/request/request.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <string.h>

#define TICKET_PLACES 8192 /* a power of two */
#define TICKET_BYTES  16
#define TICKET_TRIES  8

typedef struct SheetTicket
{
	unsigned char bytes[TICKET_BYTES];
	JwtClaims claims;
	int64_t sheet_id;
	uint64_t ends; /* ms of the loop's clock; 0: free */
} SheetTicket;

static SheetTicket tickets[TICKET_PLACES];

static SheetTicket *
ticket_place(const unsigned char *bytes)
{
	return &tickets[(bytes[0] | bytes[1] << 8) & (TICKET_PLACES - 1)];
}

bool
ticket_issue(const JwtClaims *claims, int64_t sheet_id, char to[TICKET_SIZE])
{
	uint64_t now = uv_now(&gateway.loop);

	for (int i = 0; i < TICKET_TRIES; i++)
	{
		unsigned char bytes[TICKET_BYTES];
		SheetTicket *place;

		if (RAND_bytes(bytes, sizeof(bytes)) != 1)
			return false;
		place = ticket_place(bytes);
		if (place->ends > now)
			continue;
		*place = (SheetTicket){.claims = *claims, .sheet_id = sheet_id, .ends = now + TICKET_SECONDS * 1000};
		memcpy(place->bytes, bytes, sizeof(bytes));
		return base64_encode(BASE64_URL, bytes, sizeof(bytes), to, TICKET_SIZE) > 0;
	}
	return false;
}

bool
ticket_redeem(const char *ticket, int64_t sheet_id, JwtClaims *claims)
{
	unsigned char bytes[TICKET_BYTES];
	SheetTicket *place;
	size_t len;

	if (!base64_decode(BASE64_URL, ticket, strlen(ticket), bytes, sizeof(bytes), &len) || len != sizeof(bytes))
		return false;
	place = ticket_place(bytes);
	if (place->ends <= uv_now(&gateway.loop) || place->sheet_id != sheet_id ||
		CRYPTO_memcmp(place->bytes, bytes, sizeof(bytes)) != 0)
		return false;
	*claims = place->claims;
	place->ends = 0;
	return true;
}

static void
ticket_authenticated(Request *request)
{
	char ticket[TICKET_SIZE];
	Buf body = {NULL, 0, 0};

	if (!ticket_issue(&request->claims, request->sheet_id, ticket))
	{
		request_error_later(request, 503, REQUEST_BUSY_S, "too many tickets are out: try again");
		return;
	}
	buf_printf(&body, "{\"ticket\":\"%s\",\"seconds\":%d}", ticket, TICKET_SECONDS);
	request_answer(request, 200, "application/json", &body);
}

void
route_ticket(Request *request)
{
	request->by_status = true;
	if (request_number(request, "fid", 1, SHEET_ID_MAX, &request->sheet_id))
		request_authenticate(request, ticket_authenticated);
	else
		request_error(request, 400, "fid is needed, as a number");
}
