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

	/* on both sides of each border */
	static const char *const special[] = {"0.0.0.0",
										  "0.255.255.255",
										  "10.0.0.0",
										  "10.255.255.255",
										  "100.64.0.0",
										  "100.127.255.255",
										  "127.0.0.1",
										  "169.254.0.0",
										  "169.254.169.254",
										  "172.16.0.0",
										  "172.31.255.255",
										  "192.0.0.8",
										  "192.0.2.1",
										  "192.88.99.1",
										  "192.168.0.1",
										  "198.18.0.1",
										  "198.19.255.255",
										  "198.51.100.1",
										  "203.0.113.1",
										  "224.0.0.1",
										  "239.1.2.3",
										  "240.0.0.1",
										  "255.255.255.255",
										  "::",
										  "::1",
										  "::7f00:1",
										  "::ffff:127.0.0.1",
										  "::ffff:a00:1",
										  "64:ff9b::127.0.0.1",
										  "64:ff9b:1::1",
										  "100::1",
										  "fc00::1",
										  "fdff:ffff::1",
										  "fe80::1",
										  "febf::1",
										  "fec0::1",
										  "ff02::1",
										  "2001::1",
										  "2001:1ff::1",
										  "2001:db8::1",
										  "2002:7f00:1::",
										  "3fff:1::1",
										  "1fff::1",
										  "4000::1",
										  "",
										  "localhost",
										  "127.1",
										  "1.2.3.4/32"};
	static const char *const public[] = {
		"1.0.0.0",			"9.255.255.255", "11.0.0.0",	   "100.63.255.255", "100.128.0.0",		"126.255.255.255",
		"128.0.0.0",		"169.253.1.1",	 "169.255.0.0",	   "172.15.255.255", "172.32.0.0",		"192.0.1.1",
		"192.167.1.1",		"192.169.0.0",	 "198.17.255.255", "198.20.0.0",	 "223.255.255.255", "::ffff:8.8.8.8",
		"64:ff9b::8.8.8.8", "2000::1",		 "2001:200::1",	   "2003::1",		 "2606:4700::1111", "3ffe::1"};

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		TAP_OK(network_is_special(special[i]), "special: \"%s\"", special[i]);
	for (size_t i = 0; i < sizeof(public) / sizeof(public[0]); i++)
		TAP_OK(!network_is_special(public[i]), "public: \"%s\"", public[i]);
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
