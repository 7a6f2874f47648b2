/*
 * test_tickets.c - what a ticket opens, how often, for how long, and how many an account has.
 */
#include "http/request/tickets.h"

#include "core/gateway.h"
#include "tap.h"

#include <string.h>

Gateway gateway; /* of which only the loop's clock is used */

static char text[TICKET_SIZE];

static bool
issue(int64_t uid, int64_t sheet_id)
{
	JwtClaims claims = {.uid = uid};

	return ticket_issue(&claims, sheet_id, text);
}

static void
test_use(void)
{
	JwtClaims claims = {0};

	TAP_OK(issue(7, 1) && ticket_is_valid(text, 1) && ticket_is_valid(text, 1), "to look at a ticket does not use it");
	TAP_OK(!ticket_is_valid(text, 2) && !ticket_redeem(text, 2, &claims), "it is for one sheet");
	TAP_OK(ticket_redeem(text, 1, &claims) && claims.uid == 7, "it tells the account");
	TAP_OK(!ticket_is_valid(text, 1) && !ticket_redeem(text, 1, &claims), "it is used once");
	TAP_OK(!ticket_is_valid("", 1) && !ticket_is_valid("x", 1) && !ticket_is_valid("AAAAAAAAAAAAAAAAAAAAAA", 1),
		   "others are none");
	TAP_OK(issue(7, 1), "another one");
	gateway.loop.time += TICKET_SECONDS * 1000 - 1;
	TAP_OK(ticket_is_valid(text, 1), "it is valid for some seconds");
	gateway.loop.time++;
	TAP_OK(!ticket_is_valid(text, 1), "and then no more");
}

static void
test_count(void)
{
	JwtClaims claims;
	bool issued = true;

	for (int i = 0; i < TICKETS_MAX; i++)
		issued &= issue(8, 1);
	TAP_OK(issued && ticket_count(8) == TICKETS_MAX && ticket_count(7) == 0, "tickets are counted by account");
	TAP_OK(ticket_redeem(text, 1, &claims) && ticket_count(8) == TICKETS_MAX - 1, "one that is used is not counted");
	gateway.loop.time += TICKET_SECONDS * 1000;
	TAP_OK(ticket_count(8) == 0, "nor those that are too old");
}

/* More accounts than there are slots for their tickets; then others come. */
static void
test_full(void)
{
	int refused = 0, kept = 0;
	char texts[100][TICKET_SIZE];

	for (int uid = 1000; uid < 1150; uid++)
	{
		for (int i = 0; i < TICKETS_MAX; i++)
			(void) issue(uid, 1);
	}
	for (int uid = 0; uid < 100; uid++)
	{
		refused += !issue(2000 + uid, 1);
		memcpy(texts[uid], text, sizeof(text));
	}
	for (int uid = 1000; uid < 1150; uid++)
		(void) issue(uid, 1);
	for (int uid = 0; uid < 100; uid++)
		kept += ticket_is_valid(texts[uid], 1);
	TAP_OK(refused == 0, "150 accounts keep nobody from a ticket (%d of 100 refused)", refused);
	TAP_OK(kept == 100, "and take nobody's away (%d of 100 kept)", kept);
	gateway.loop.time += TICKET_SECONDS * 1000;
}

int
main(void)
{
	test_use();
	test_count();
	test_full();
	return tap_done();
}
