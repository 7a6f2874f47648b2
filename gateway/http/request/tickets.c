/*
 * tickets.c - one-time tickets for WebSockets.
 *
 * A browser sends no headers of ours with a WebSocket, so its credentials are in the address, which logs and histories
 * record. A ticket is worthless there: it is valid once, at the gateway that issued it, for one sheet, and for
 * TICKET_SECONDS. It is 128 random bits, of which the first are its index in the table.
 *
 * When the slots that are looked at are taken, the account that has the most tickets of them loses one to an account
 * that has less. So a few accounts with TICKETS_MAX tickets each cannot keep others from getting one.
 */
#include "http/request/tickets.h"

#include "auth/base64.h"
#include "core/gateway.h"

#include <openssl/crypto.h>
#include <limits.h>
#include <openssl/rand.h>
#include <string.h>

#define TICKET_SLOTS 8192 /* a power of two */
#define TICKET_BYTES 16
#define TICKET_TRIES 8

typedef struct SheetTicket
{
	unsigned char bytes[TICKET_BYTES];
	JwtClaims claims;
	int64_t sheet_id;
	uint64_t ends; /* ms of the loop's clock; 0: free */
} SheetTicket;

static SheetTicket tickets[TICKET_SLOTS];

static SheetTicket *
ticket_slot(const unsigned char *bytes)
{
	return &tickets[(bytes[0] | bytes[1] << 8) & (TICKET_SLOTS - 1)];
}

int
ticket_count(int64_t uid)
{
	uint64_t now = uv_now(&gateway.loop);
	int count = 0;

	for (int i = 0; i < TICKET_SLOTS; i++)
		count += tickets[i].ends > now && tickets[i].claims.uid == uid;
	return count;
}

bool
ticket_issue(const JwtClaims *claims, int64_t sheet_id, char to[TICKET_SIZE])
{
	uint64_t now = uv_now(&gateway.loop);
	int most = ticket_count(claims->uid) + 1; /* with the new one */
	unsigned char bytes[TICKET_BYTES];
	SheetTicket *slot = NULL;

	for (int i = 0; i < TICKET_TRIES && (slot == NULL || slot->ends > now); i++)
	{
		unsigned char tried[TICKET_BYTES];
		int count = INT_MAX; /* of the tickets of the account that has the slot */

		if (RAND_bytes(tried, sizeof(tried)) != 1)
			return false;
		if (ticket_slot(tried)->ends > now)
			count = ticket_count(ticket_slot(tried)->claims.uid);
		if (count <= most)
			continue;
		most = count;
		slot = ticket_slot(tried);
		memcpy(bytes, tried, sizeof(bytes));
	}
	if (slot == NULL)
		return false;
	*slot = (SheetTicket){.claims = *claims, .sheet_id = sheet_id, .ends = now + TICKET_SECONDS * 1000};
	memcpy(slot->bytes, bytes, sizeof(bytes));
	return base64_encode(BASE64_URL, bytes, sizeof(bytes), to, TICKET_SIZE) > 0;
}

/* NULL if the ticket does not exist, was used, is for another sheet, or is too old. */
static SheetTicket *
ticket_find(const char *ticket, int64_t sheet_id)
{
	unsigned char bytes[TICKET_BYTES];
	SheetTicket *slot;
	size_t len;

	if (!base64_decode(BASE64_URL, ticket, strlen(ticket), bytes, sizeof(bytes), &len) || len != sizeof(bytes))
		return NULL;
	slot = ticket_slot(bytes);
	if (slot->ends <= uv_now(&gateway.loop) || slot->sheet_id != sheet_id ||
		CRYPTO_memcmp(slot->bytes, bytes, sizeof(bytes)) != 0)
		return NULL;
	return slot;
}

bool
ticket_is_valid(const char *ticket, int64_t sheet_id)
{
	return ticket_find(ticket, sheet_id) != NULL;
}

bool
ticket_redeem(const char *ticket, int64_t sheet_id, JwtClaims *claims)
{
	SheetTicket *slot = ticket_find(ticket, sheet_id);

	if (slot == NULL)
		return false;
	*claims = slot->claims;
	slot->ends = 0;
	return true;
}
