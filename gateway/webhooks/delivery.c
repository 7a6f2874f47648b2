/*
 * delivery.c - one request to the address of a webhook: look up the name, check all of its addresses, sign, post.
 *
 * The name is looked up once, and the request goes to the address that was checked: a name that has another address a
 * moment later gains nothing. If one of the addresses is special, nothing is sent to any of them.
 *
 * The time limit is for everything, and shorter than the lease by which the database gives a webhook to one gateway.
 */
#include "webhooks/delivery.h"

#include "common/web_address.h"
#include "core/gateway.h"
#include "support/buf.h"
#include "support/log.h"
#include "support/network.h"
#include "transport/client.h"
#include "transport/lookup.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define DELIVERY_MS		  10000 /* from the look-up to the head of the answer */
#define DELIVERY_HOST_MAX 4		/* at a time to one host, by its name or its address */
#define DELIVERY_HEADERS  5

struct Delivery
{
	DeliveryTask task; /* strings are freed */
	DeliveryFn fn;
	WebAddress to;
	char address[LOOKUP_ADDRESS]; /* "": not known yet */
	char host[WEB_ADDRESS_HOST_MAX + 16];
	char path[WEB_ADDRESS_MAX + 2];
	char signature[16 + 20 + 2 * EVP_MAX_MD_SIZE];
	char id[48];
	char agent[32];
	ClientHeader headers[DELIVERY_HEADERS];
	Lookup *lookup;
	uv_timer_t timer; /* of the look-up */
	uint64_t begun;	  /* ms */
	LIST_ENTRY(Delivery) link;
};

static LIST_HEAD(, Delivery) deliveries = LIST_HEAD_INITIALIZER(deliveries);
static int deliveries_count;

/* ---- the end ---- */

static void
delivery_free(uv_handle_t *handle)
{
	Delivery *delivery = handle->data;

	free((char *) delivery->task.url);
	free((char *) delivery->task.secret);
	free((char *) delivery->task.body);
	free(delivery);
}

static void
delivery_remove(Delivery *delivery)
{
	if (delivery->lookup != NULL)
		lookup_forget(delivery->lookup);
	delivery->lookup = NULL;
	LIST_REMOVE(delivery, link);
	deliveries_count--;
	uv_close((uv_handle_t *) &delivery->timer, delivery_free);
}

static void
delivery_end(Delivery *delivery, DeliveryOutcome outcome, int status, int wait_seconds, const char *why)
{
	DeliveryResult result = {.webhook_id = delivery->task.webhook_id,
							 .attempt = delivery->task.attempt,
							 .to_seq = delivery->task.to_seq,
							 .outcome = outcome,
							 .status = status,
							 .why = why,
							 .wait_seconds = wait_seconds};

	if (outcome != DELIVERY_POSTPONED)
		log_event(outcome == DELIVERY_DELIVERED ? LOG_DEBUG : LOG_INFO, "webhook",
				  LOG_INT("webhook", delivery->task.webhook_id), LOG_STR("host", delivery->to.host),
				  LOG_STR("address", delivery->address), LOG_INT("status", status), LOG_STR("problem", why));
	delivery->fn(&result);
	delivery_remove(delivery);
}

static void
delivery_answered(void *arg, const ClientAnswer *answer)
{
	char why[64];

	snprintf(why, sizeof(why), "the answer was %d%s", answer->status,
			 answer->status / 100 == 3 ? "; redirects are not followed" : "");
	if (answer->status == 0)
		delivery_end(arg, DELIVERY_FAILED, 0, 0, answer->problem);
	else if (answer->status / 100 == 2)
		delivery_end(arg, DELIVERY_DELIVERED, answer->status, 0, "");
	else if (answer->status == 410)
		delivery_end(arg, DELIVERY_GONE, answer->status, 0, why);
	else
		delivery_end(arg, DELIVERY_FAILED, answer->status,
					 answer->status == 429 || answer->status == 503 ? answer->retry_after : 0, why);
}

/* ---- the request ---- */

/* HMAC-SHA256 of "TIME.BODY", in hexadecimal. False: OpenSSL has failed. */
static bool
delivery_sign(Delivery *delivery)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	Buf text = {NULL, 0, 0};
	size_t at;
	bool signed_;

	buf_printf(&text, "%lld.%s", (long long) gateway_now(), delivery->task.body);
	signed_ = !buf_failed(&text) && HMAC(EVP_sha256(), delivery->task.secret, (int) strlen(delivery->task.secret),
										 (unsigned char *) text.data, text.len, digest, &len) != NULL;
	if (signed_)
	{
		at = (size_t) snprintf(delivery->signature, sizeof(delivery->signature),
							   "t=%.*s,v1=", (int) strcspn(text.data, "."), text.data);
		for (unsigned i = 0; i < len; i++)
			at += (size_t) snprintf(delivery->signature + at, sizeof(delivery->signature) - at, "%02x", digest[i]);
	}
	buf_free(&text);
	return signed_;
}

static int
delivery_count_like(const Delivery *delivery)
{
	Delivery *other;
	int count = 0;

	LIST_FOREACH (other, &deliveries, link)
		count +=
			other != delivery && (strcmp(other->to.host, delivery->to.host) == 0 ||
								  (delivery->address[0] != '\0' && strcmp(other->address, delivery->address) == 0));
	return count;
}

static void
delivery_post(Delivery *delivery)
{
	const WebAddress *to = &delivery->to;
	uint64_t spent = uv_now(&gateway.loop) - delivery->begun;
	bool ipv6 = to->literal && strchr(to->host, ':') != NULL;
	ClientRequest request = {.tls = to->tls,
							 .address = delivery->address,
							 .port = to->port,
							 .host = delivery->host,
							 .path = delivery->path,
							 .headers = delivery->headers,
							 .header_count = DELIVERY_HEADERS,
							 .body = delivery->task.body,
							 .length = strlen(delivery->task.body),
							 .timeout_ms = spent < DELIVERY_MS ? (int) (DELIVERY_MS - spent) : 1,
							 .fn = delivery_answered,
							 .arg = delivery};

	if (delivery_count_like(delivery) >= DELIVERY_HOST_MAX)
	{
		delivery_end(delivery, DELIVERY_POSTPONED, 0, 0, "");
		return;
	}
	snprintf(delivery->host, sizeof(delivery->host), ipv6 ? "[%s]" : "%s", to->host);
	if (to->port != (to->tls ? 443 : 80))
		snprintf(delivery->host + strlen(delivery->host), sizeof(delivery->host) - strlen(delivery->host), ":%d",
				 to->port);
	snprintf(delivery->path, sizeof(delivery->path), "%s%s", to->path[0] == '/' ? "" : "/", to->path);
	snprintf(delivery->id, sizeof(delivery->id), "%lld-%lld", (long long) delivery->task.webhook_id,
			 (long long) delivery->task.attempt);
	snprintf(delivery->agent, sizeof(delivery->agent), "pg_sheet/%s", CONFIG_VERSION);
	delivery->headers[0] = (ClientHeader){"content-type:", "application/json"};
	delivery->headers[1] = (ClientHeader){"user-agent:", delivery->agent};
	delivery->headers[2] = (ClientHeader){"x-pg-sheet-event:", delivery->task.to_seq < 0 ? "ping" : "changes"};
	delivery->headers[3] = (ClientHeader){"x-pg-sheet-delivery:", delivery->id};
	delivery->headers[4] = (ClientHeader){"x-pg-sheet-signature:", delivery->signature};
	if (!delivery_sign(delivery) || client_post(&request) == NULL)
		delivery_end(delivery, DELIVERY_POSTPONED, 0, 0, "");
}

/* ---- the address ---- */

/* An address of this machine, also a public one: requests to it pass no firewall. */
static bool
delivery_is_own(const char *address)
{
	uv_interface_address_t *own;
	bool found = false;
	int count;

	if (uv_interface_addresses(&own, &count) != 0)
		return true;
	for (int i = 0; i < count && !found; i++)
	{
		char text[INET6_ADDRSTRLEN] = "";

		if (own[i].address.address4.sin_family == AF_INET)
			uv_ip4_name(&own[i].address.address4, text, sizeof(text));
		else
			uv_ip6_name(&own[i].address.address6, text, sizeof(text));
		found = network_list_contains(text, address);
	}
	uv_free_interface_addresses(own, count);
	return found;
}

/* Chooses the address of a name: after a failure the next one, since one of them may not be reachable. NULL: there is
 * none, or one of them may not be sent to. */
static const char *
delivery_choose(const char (*addresses)[LOOKUP_ADDRESS], int count, int failures, const char *allowed_networks)
{
	for (int i = 0; i < count; i++)
	{
		if ((network_is_special(addresses[i]) || delivery_is_own(addresses[i])) &&
			!network_list_contains(allowed_networks, addresses[i]))
			return NULL;
	}
	return count > 0 ? addresses[failures % count] : NULL;
}

static void
delivery_looked_up(void *arg, const char (*addresses)[LOOKUP_ADDRESS], int count)
{
	Delivery *delivery = arg;
	const char *address = delivery_choose(addresses, count, delivery->task.failures, gateway.config.webhook_networks);

	delivery->lookup = NULL;
	uv_timer_stop(&delivery->timer);
	if (address != NULL)
	{
		snprintf(delivery->address, sizeof(delivery->address), "%s", address);
		delivery_post(delivery);
	}
	else if (count == 0)
		delivery_end(delivery, DELIVERY_FAILED, 0, 0, "the name of the host has no address");
	else
		delivery_end(delivery, DELIVERY_FAILED, 0, 0,
					 "its address is in a private or special network, or the gateway's");
}

static void
delivery_too_late(uv_timer_t *timer)
{
	delivery_end(timer->data, DELIVERY_FAILED, 0, 0, "the name of the host could not be looked up in time");
}

static void
delivery_find_address(Delivery *delivery)
{
	char literal[1][LOOKUP_ADDRESS];

	if (delivery->to.literal)
	{
		snprintf(literal[0], sizeof(literal[0]), "%.*s", LOOKUP_ADDRESS - 1, delivery->to.host);
		delivery_looked_up(delivery, (const char(*)[LOOKUP_ADDRESS]) literal, 1);
		return;
	}
	delivery->lookup = lookup_name(delivery->task.account, delivery->to.host, delivery_looked_up, delivery);
	if (delivery->lookup == NULL)
		delivery_end(delivery, DELIVERY_POSTPONED, 0, 0, "");
	else
		uv_timer_start(&delivery->timer, delivery_too_late, DELIVERY_MS, 0);
}

void
delivery_start(const DeliveryTask *task, DeliveryFn fn)
{
	Delivery *delivery = calloc(1, sizeof(Delivery));
	const char *problem;

	if (delivery == NULL)
		return; /* the lease ends, and another attempt follows */
	delivery->task = *task;
	delivery->task.url = strdup(task->url);
	delivery->task.secret = strdup(task->secret);
	delivery->task.body = strdup(task->body);
	delivery->fn = fn;
	delivery->begun = uv_now(&gateway.loop);
	uv_timer_init(&gateway.loop, &delivery->timer);
	delivery->timer.data = delivery;
	LIST_INSERT_HEAD(&deliveries, delivery, link);
	deliveries_count++;
	if (delivery->task.url == NULL || delivery->task.secret == NULL || delivery->task.body == NULL)
	{
		delivery_end(delivery, DELIVERY_POSTPONED, 0, 0, "");
		return;
	}
	problem = web_address_parse(delivery->task.url, &delivery->to);
	if (problem != NULL)
		delivery_end(delivery, DELIVERY_FAILED, 0, 0, problem);
	else
		delivery_find_address(delivery);
}

int
delivery_count(void)
{
	return deliveries_count;
}

void
delivery_put_running(Buf *accounts, Buf *hosts)
{
	const Delivery *delivery;

	LIST_FOREACH (delivery, &deliveries, link)
	{
		bool ipv6 = strchr(delivery->to.host, ':') != NULL;

		buf_printf(accounts, "%s%lld", accounts->len > 0 ? "," : "{", (long long) delivery->task.account);
		buf_printf(hosts, ipv6 ? "%s\"[%s]\"" : "%s\"%s\"", hosts->len > 0 ? "," : "{", delivery->to.host);
	}
	buf_puts(accounts, accounts->len > 0 ? "}" : "{}");
	buf_puts(hosts, hosts->len > 0 ? "}" : "{}");
}

void
delivery_stop_all(void)
{
	while (!LIST_EMPTY(&deliveries))
		delivery_remove(LIST_FIRST(&deliveries));
}
