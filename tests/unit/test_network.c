/*
 * test_network.c - lists of networks: what is one, and which addresses are in it.
 */
#include "support/network.h"

#include <string.h>

#include "tap.h"

int
main(void)
{
	static const char *const good[] = {"",	  "127.0.0.1",			"10.0.0.0/8", "0.0.0.0/0",
									   "::1", "fd00::/8, 10.1.2.3", " ::/0 ",	  "1.2.3.4/32,::1/128"};
	static const char *const bad[] = {"x",			 "127.0.0.1/33", "::1/129",	   "10.0.0.0/",	   "10.0.0/8",
									  "10.0.0.0/-1", "1.2.3.4,",	 ",",		   "10.0.0.0/8 x", "1.2.3.4/8/8",
									  "localhost",	 "10.0.0.0/ 8",	 "1.2.3.4:80", "[::1]"};
	static const struct
	{
		const char *list, *address;
		bool in;
	} table[] = {
		{NETWORK_LOOPBACK, "127.0.0.1", true},
		{NETWORK_LOOPBACK, "127.255.255.255", true},
		{NETWORK_LOOPBACK, "128.0.0.1", false},
		{NETWORK_LOOPBACK, "126.255.255.255", false},
		{NETWORK_LOOPBACK, "::1", true},
		{NETWORK_LOOPBACK, "::ffff:127.0.0.1", true},
		{NETWORK_LOOPBACK, "::2", false},
		{NETWORK_LOOPBACK, "", false},
		{NETWORK_LOOPBACK, "127.0.0.1/8", false},
		{NETWORK_LOOPBACK, "localhost", false},
		{"", "127.0.0.1", false},
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", "10.1.2.4", false},
		{"10.0.0.0/9", "10.127.0.1", true},
		{"10.0.0.0/9", "10.128.0.1", false},
		{"10.99.0.0/8", "10.1.2.3", true}, /* bits behind the length do not count */
		{"0.0.0.0/0", "8.8.8.8", true},
		{"0.0.0.0/0", "fe80::1", false},
		{"::/0", "fe80::1", true},
		{"1.1.1.1, 2.2.2.2 ,fd00::/8", "fd12::1", true},
		{"1.1.1.1, 2.2.2.2 ,fd00::/8", "2.2.2.2", true},
		{"1.1.1.1, 2.2.2.2 ,fd00::/8", "fc00::1", false},
	};

	static const struct
	{
		const char *address, *holder;
	} holders[] = {
		{"192.0.2.7", "192.0.2.7"},
		{"::ffff:192.0.2.7", "192.0.2.7"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"2001:db8:1:2:ffff::", "2001:db8:1:2::"},
		{"2001:db8:1:3::1", "2001:db8:1:3::"},
		{"nobody", "nobody"},
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		TAP_OK(network_list_is_valid(good[i]), "a list: \"%s\"", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TAP_OK(!network_list_is_valid(bad[i]), "no list: \"%s\"", bad[i]);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		TAP_OK(network_list_contains(table[i].list, table[i].address) == table[i].in, "\"%s\" is %sin \"%s\"",
			   table[i].address, table[i].in ? "" : "not ", table[i].list);
	for (size_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++)
	{
		char holder[NETWORK_NAME_MAX];

		network_holder(holders[i].address, holder);
		TAP_OK(strcmp(holder, holders[i].holder) == 0, "%s is %s's", holders[i].address, holder);
	}
	return tap_done();
}
