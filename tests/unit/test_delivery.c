/*
 * test_delivery.c - which address a delivery (webhooks/delivery.c) goes to, and what it tells of those under way. The
 * look-up and the client are stand-ins.
 */
#include "webhooks/delivery.h"

#include "core/gateway.h"
#include "transport/client.h"
#include "transport/lookup.h"

#include <string.h>

#include "tap.h"

Gateway gateway;

static char addresses[3][LOOKUP_ADDRESS] = {"192.0.2.1", "2001:db8::2", "192.0.2.3"};
static char posted[LOOKUP_ADDRESS];
static ClientRequest request;
static LookupFn looked_up;
static void *looked_up_arg;
static int ended;

int64_t
gateway_now(void)
{
	return 1700000000;
}

Lookup *
lookup_name(int64_t account, const char *name, LookupFn fn, void *arg)
{
	static char lookup;

	looked_up = fn;
	looked_up_arg = arg;
	return (Lookup *) &lookup;
}

void
lookup_forget(Lookup *lookup)
{
}

ClientCall *
client_post(const ClientRequest *posted_request)
{
	static char call;

	request = *posted_request;
	snprintf(posted, sizeof(posted), "%s", request.address);
	return (ClientCall *) &call;
}

static void
on_end(const DeliveryResult *result)
{
	ended++;
}

static void
start(int failures, const char *url)
{
	DeliveryTask task = {
		.webhook_id = 1, .attempt = 9, .account = 7, .failures = failures, .url = url, .secret = "s", .body = "{}"};

	posted[0] = '\0';
	looked_up = NULL;
	delivery_start(&task, on_end);
	if (looked_up != NULL)
		looked_up(looked_up_arg, (const char(*)[LOOKUP_ADDRESS]) addresses, 3);
}

static bool
fails(int failures, const char *address)
{
	ClientAnswer answer = {.problem = "it could not be connected to"};
	int before = ended;

	start(failures, "https://several.example/");
	request.fn(request.arg, &answer);
	return strcmp(posted, address) == 0 && ended == before + 1;
}

static bool
is(const Buf *buf, const char *text)
{
	return buf->len == strlen(text) && memcmp(buf->data, text, buf->len) == 0;
}

int
main(void)
{
	Buf accounts = {NULL, 0, 0}, hosts = {NULL, 0, 0};

	gateway.config.webhook_networks = "192.0.2.0/24, 2001:db8::/32";
	uv_loop_init(&gateway.loop);
	TAP_OK(fails(0, addresses[0]) && fails(1, addresses[1]) && fails(2, addresses[2]) && fails(3, addresses[0]),
		   "after a failure the next address is tried");
	gateway.config.webhook_networks = "192.0.2.0/24";
	start(0, "https://several.example/");
	TAP_OK(posted[0] == '\0' && ended == 5, "nothing is sent if one of them is special");
	gateway.config.webhook_networks = "192.0.2.0/24, 2001:db8::/32";
	start(0, "http://Several.example:81/x");
	start(0, "http://[2001:db8::9]/");
	delivery_put_running(&accounts, &hosts);
	TAP_OK(is(&accounts, "{7,7}") && is(&hosts, "{\"[2001:db8::9]\",\"several.example\"}"),
		   "accounts and hosts of those under way, as arrays");
	delivery_stop_all();
	buf_free(&accounts);
	buf_free(&hosts);
	delivery_put_running(&accounts, &hosts);
	TAP_OK(is(&accounts, "{}") && is(&hosts, "{}"), "none: empty arrays");
	buf_free(&accounts);
	buf_free(&hosts);
	uv_run(&gateway.loop, UV_RUN_DEFAULT);
	uv_loop_close(&gateway.loop);
	return tap_done();
}
