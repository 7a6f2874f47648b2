/*
 * test_forwarded.c - whom proxies forward for: the forms that real ones send, and what is no address.
 */
#include "http/server/forwarded.h"

#include <string.h>

#include "tap.h"

/* All addresses of a header's value, the last one first, with a blank behind each; "-" for none. */
static const char *
all_of(const char *value, bool rfc7239)
{
	static char all[512];
	char address[FORWARDED_ADDRESS_MAX];
	ssize_t len = (ssize_t) strlen(value);

	all[0] = '\0';
	while (len >= 0)
	{
		forwarded_take_last(value, &len, rfc7239, address);
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s ", address[0] != '\0' ? address : "-");
	}
	return all;
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
		{false, "[192.0.2.1]:x/", "- "},
		{false, "2001:db8::1:99999", "- "},
		{false, "localhost", "- "},
		{false, "127.0.0.1 127.0.0.1", "- "},
		{false, "\"192.0.2.1\"", "- "},
		{false, "1234567890123456789012345678901234567890123456789012345678901234567890", "- "},
		{true, "for=192.0.2.1", "192.0.2.1 "},
		{true, "For=192.0.2.1;Proto=https;by=203.0.113.4", "192.0.2.1 "},
		{true, "proto=https; for=\"192.0.2.1:80\"", "192.0.2.1 "},
		{true, "for=\"[2001:db8::1]:80\"", "2001:db8::1 "},
		{true, "for=\"[2001:db8::1]\", for=198.51.100.7;host=a", "198.51.100.7 2001:db8::1 "},
		{true, "for=\"192.0.2.1:_secret-port\"", "192.0.2.1 "},
		{true, "for=\"\\1\\9\\2.0.2.1\"", "192.0.2.1 "},
		{true, "host=\"a,b;c\\\"\";for=192.0.2.1", "192.0.2.1 "},
		{true, "for=unknown", "- "},
		{true, "for=_hidden", "- "},
		{true, "for=\"_hidden:80\"", "- "},
		{true, "host=192.0.2.1", "- "},
		{true, "for=192.0.2.1;for=127.0.0.1", "- "},
		{true, "for=\"192.0.2.1", "- "},
		{true, "for=192.0.2.1\"", "- "},
		{true, "for= 192.0.2.1", "- "},
		{true, "192.0.2.1", "- "},
		{true, "", "- "},
		{true, "for=192.0.2.1, ", "- 192.0.2.1 "},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
	{
		const char *addresses = all_of(table[i].value, table[i].rfc7239);

		TAP_OK(strcmp(addresses, table[i].addresses) == 0, "%s %s: %s",
			   table[i].rfc7239 ? "Forwarded" : "X-Forwarded-For", table[i].value, addresses);
	}
	return tap_done();
}
