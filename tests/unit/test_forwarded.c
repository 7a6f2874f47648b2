/*
 * test_forwarded.c - whom proxies forward for: the forms that real ones send, and what is no address.
 */
#include "http/server/forwarded.h"

#include <string.h>

#include "tap.h"

/* All addresses of a header's value, the last one first, with a blank behind each; "-" for none, "?" if malformed. */
static const char *
all_of(const char *value, bool rfc7239)
{
	static char all[512];
	ForwardedList list = {.count = 0};

	all[0] = '\0';
	if (!forwarded_read(&list, value, rfc7239))
		return "?";
	for (size_t i = list.count; i-- > 0;)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s ",
				 list.addresses[i][0] != '\0' ? list.addresses[i] : "-");
	return all;
}

/* The client of a request with these header lines ("name: value", NULL at the end) that 10.0.0.1 has sent. */
static const char *
peer_of(const char *const *lines)
{
	static char peer[FORWARDED_ADDRESS_MAX];
	static char names[4][32];
	Head head = {.field_count = 0};

	for (int i = 0; lines[i] != NULL; i++)
	{
		size_t len = strcspn(lines[i], ":");

		snprintf(names[i], sizeof(names[i]), "%.*s", (int) len, lines[i]);
		head.fields[head.field_count++] = (HeadField){names[i], lines[i] + len + 2};
	}
	strcpy(peer, "10.0.0.1");
	return forwarded_peer(&head, "10.0.0.0/8", peer) ? peer : "unknown";
}

int
main(void)
{
	static const struct
	{
		bool rfc7239;
		const char *value, *addresses;
	} table[] = {
		{false, "192.0.2.1", "192.0.2.1 "},
		{false, "192.0.2.1, 198.51.100.7", "198.51.100.7 192.0.2.1 "},
		{false, "\t192.0.2.1\t,198.51.100.7 ", "198.51.100.7 192.0.2.1 "},
		{false, "192.0.2.1:1234", "192.0.2.1 "}, /* Azure's gateway */
		{false, "[2001:db8::1]:1234", "2001:db8::1 "},
		{false, "[2001:db8::1]", "2001:db8::1 "},
		{false, "2001:db8::1", "2001:db8::1 "},
		{false, "::ffff:192.0.2.1", "::ffff:192.0.2.1 "},
		{false, "unknown", "- "},
		{false, "", "- "},
		{false, " ", "- "},
		{false, ",192.0.2.1", "192.0.2.1 - "},
		{false, "192.0.2.1,", "- 192.0.2.1 "},
		{false, "192.0.2.1:", "- "},
		{false, "192.0.2.1:12 34", "- "},
		{false, "192.0.2.1/8", "- "},
		{false, "[2001:db8::1", "- "},
		{false, "[2001:db8::1]1234", "- "},
		{false, "[192.0.2.1]", "- "},
		{false, "[192.0.2.1]:80", "- "},
		{false, "192.0.2.1:65535", "192.0.2.1 "},
		{false, "192.0.2.1:65536", "- "},
		{false, "192.0.2.1:x", "- "},
		{false, "192.0.2.1:_x", "192.0.2.1 "},
		{false, "unknown:80, _hidden, _hidden:_x", "- - - "},
		{false, "unknown2", "- "},
		{false, "_", "- "},
		{false, "127.0.0.1;x=\", 203.0.113.9", "?"},
		{false, "\"127.0.0.1, 203.0.113.9", "?"},
		{false, "garbage, 203.0.113.9", "203.0.113.9 - "},
		{false, "127.0.0.1,, 203.0.113.9", "203.0.113.9 - 127.0.0.1 "},
		{false, "2001:db8::1:99999", "- "},
		{false, "localhost", "- "},
		{false, "127.0.0.1 127.0.0.1", "- "},
		{false, "\"192.0.2.1\"", "?"},
		{false, "1234567890123456789012345678901234567890123456789012345678901234567890", "- "},
		{true, "for=192.0.2.1", "192.0.2.1 "},
		{true, "For=192.0.2.1;Proto=https;by=203.0.113.4", "192.0.2.1 "},
		{true, "proto=https; for=\"192.0.2.1:80\"", "192.0.2.1 "},
		{true, "for=\"[2001:db8::1]:80\"", "2001:db8::1 "},
		{true, "for=\"[2001:db8::1]\", for=198.51.100.7;host=a", "198.51.100.7 2001:db8::1 "},
		{true, "for=\"192.0.2.1:_secret-port\"", "192.0.2.1 "},
		{true, "for=\"\\1\\9\\2.0.2.1\"", "192.0.2.1 "},
		{true, "host=\"a;for=b;c\\\"\";for=192.0.2.1", "192.0.2.1 "},
		{true, "host=\"a,b\";for=192.0.2.1", "?"},
		{true, "for=unknown", "- "},
		{true, "for=_hidden", "- "},
		{true, "for=\"_hidden:80\"", "- "},
		{true, "host=192.0.2.1", "- "},
		{true, "for=192.0.2.1;for=127.0.0.1", "- "},
		{true, "for=\"192.0.2.1", "?"},
		{true, "for=192.0.2.1\"", "?"},
		{true, "for= 192.0.2.1", "?"},
		{true, "192.0.2.1", "?"},
		{true, "", "- "},
		{true, "for=192.0.2.1, ", "- 192.0.2.1 "},
		{true, "for=192.0.2.1;;proto=http;", "192.0.2.1 "},
		{true, "for=192.0.2.1:80;host=a:80, for=[2001:db8::1]:80", "2001:db8::1 192.0.2.1 "}, /* without quotes */
		{true, "for=127.0.0.1;x=\", for=203.0.113.9", "?"},
		{true, "for=127.0.0.1;x=\"\\\", for=203.0.113.9", "?"},
		{true, "for=127.0.0.1;x=\"\\\\\", for=203.0.113.9", "203.0.113.9 127.0.0.1 "},
		{true, "for=127.0.0.1;x=a\"b, for=203.0.113.9", "?"},
		{true, "for=127.0.0.1;x=\"a\"b, for=203.0.113.9", "?"},
		{true, "for=127.0.0.1;x=\", for=203.0.113.9;y=\"", "?"},
		{true, "for=127.0.0.1;x=(\", for=203.0.113.9", "?"},
		{true, "for=127.0.0.1 x, for=203.0.113.9", "?"},
		{true, "for, for=203.0.113.9", "?"},
		{true, "for=\"\", for=203.0.113.9", "203.0.113.9 - "},
		{true, "for=garbage, for=203.0.113.9", "203.0.113.9 - "},
		{true, "for=\"127.0.0.1, 127.0.0.1\"", "?"},
	};

	static const struct
	{
		const char *lines[4];
		const char *peer;
	} requests[] = {
		{{"accept: */*"}, "10.0.0.1"},
		{{"x-forwarded-for: 192.0.2.1"}, "192.0.2.1"},
		{{"x-forwarded-for: 127.0.0.1, 192.0.2.1, 10.0.0.9"}, "192.0.2.1"},
		{{"x-forwarded-for: 127.0.0.1", "x-forwarded-for: 192.0.2.1"}, "192.0.2.1"},
		{{"x-forwarded-for: 10.0.0.8, 10.0.0.9"}, "10.0.0.8"},
		{{"x-forwarded-for: 127.0.0.1, "}, "unknown"},
		{{"forwarded: for=127.0.0.1;x=\"", "forwarded: for=192.0.2.1"}, "unknown"},
		{{"forwarded: for=127.0.0.1", "forwarded: for=192.0.2.1;x=\""}, "unknown"},
		{{"forwarded: for=127.0.0.1", "forwarded: for=192.0.2.1;proto=https"}, "192.0.2.1"},
		{{"forwarded: for=127.0.0.1;x=\", for=192.0.2.1"}, "unknown"},
		{{"forwarded: for=127.0.0.1;x=\", for=192.0.2.1", "x-forwarded-for: 127.0.0.1"}, "unknown"},
		{{"forwarded: for=192.0.2.1", "x-forwarded-for: 192.0.2.1"}, "192.0.2.1"},
		{{"forwarded: for=192.0.2.1", "x-forwarded-for: 192.0.2.2"}, "unknown"},
		{{"via: 1.1 proxy"}, "unknown"},
		{{"x-real-ip: 127.0.0.1"}, "unknown"},
		{{"x-forwarded-proto: https"}, "unknown"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
	{
		const char *addresses = all_of(table[i].value, table[i].rfc7239);

		TAP_OK(strcmp(addresses, table[i].addresses) == 0, "%s %s: %s",
			   table[i].rfc7239 ? "Forwarded" : "X-Forwarded-For", table[i].value, addresses);
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
	{
		const char *peer = peer_of(requests[i].lines);

		TAP_OK(strcmp(peer, requests[i].peer) == 0, "%s ...: %s", requests[i].lines[0], peer);
	}
	return tap_done();
}
