/*
 * test_web_address.c - which texts are addresses for requests, and what their parts are.
 */
#include "common/web_address.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

int
main(void)
{
	static const struct
	{
		const char *text, *host, *path;
		int port;
		bool tls, literal;
		const char *written;
	} good[] = {
		{"https://example.org", "example.org", "", 443, true, false, "https://example.org/"},
		{"http://example.org/", "example.org", "/", 80, false, false, "http://example.org/"},
		{"HTTP://Example.ORG.:80/A", "example.org", "/A", 80, false, false, "http://example.org/A"},
		{"hTTps://example.org:0443?B", "example.org", "?B", 443, true, false, "https://example.org/?B"},
		{"http://example.org:443", "example.org", "", 443, false, false, "http://example.org:443/"},
		{"http://Example.ORG:8080/a?b=c", "example.org", "/a?b=c", 8080, false, false, "http://example.org:8080/a?b=c"},
		{"https://a_b.x-y.org.?q", "a_b.x-y.org", "?q", 443, true, false, "https://a_b.x-y.org/?q"},
		{"http://1.2.3.4:65535/", "1.2.3.4", "/", 65535, false, true, "http://1.2.3.4:65535/"},
		{"http://127.0.0.1.", "127.0.0.1", "", 80, false, true, "http://127.0.0.1/"},
		{"http://[2001:DB8::1]:1/x", "2001:db8::1", "/x", 1, false, true, "http://[2001:db8::1]:1/x"},
		{"https://[2001:0db8:0:0:0:0:0:1]", "2001:db8::1", "", 443, true, true, "https://[2001:db8::1]/"},
		{"http://[::ffff:1.2.3.4]", "::ffff:1.2.3.4", "", 80, false, true, "http://[::ffff:1.2.3.4]/"},
		{"http://1.2.3.4.example/", "1.2.3.4.example", "/", 80, false, false, "http://1.2.3.4.example/"},
		{"http://h/@:[]", "h", "/@:[]", 80, false, false, "http://h/@:[]"},
	};
	static const char *const bad[] = {
		"",
		"example.org",
		"//example.org",
		"ftp://example.org",
		"http:/example.org",
		"http://",
		"http:///x",
		"http://:80",
		"http://a b",
		"http://a\tb",
		"http://a\nb",
		"http://a\x7f",
		"http://\xc3\xa4",
		"http://a\\b",
		"http://u@h/",
		"http://u:p@h/",
		"http://h:",
		"http://h:0",
		"http://h:65536",
		"http://h:100000",
		"http://h:1x",
		"http://h:-1",
		"http://h:+1",
		"http://h#f",
		"http://h/#",
		"http://h?x#y",
		"http://127.1",
		"http://0x7f.1",
		"http://0x7f000001",
		"http://1",
		"http://2130706433",
		"http://127.0.0.1..",
		"http://a..",
		"http://.",
		"http://1.2.3.4.5",
		"http://01.2.3.4",
		"http://1.2.3.256",
		"http://[::1",
		"http://[]",
		"http://[",
		"http://[::1]x",
		"http://[fe80::1%25a]",
		"http://[1.2.3.4]",
		"http://[::1.]",
		"http://::1/",
		"http://a..b",
		"http://.a",
		"http://a%2eb",
		"http://h/<",
		"http://h:80:80",
	};
	char text[WEB_ADDRESS_MAX + 2] = "http://h/", written[WEB_ADDRESS_SIZE];
	WebAddress address;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
	{
		const char *problem = web_address_parse(good[i].text, &address);

		TAP_OK(problem == NULL && strcmp(address.host, good[i].host) == 0 && strcmp(address.path, good[i].path) == 0 &&
				   address.port == good[i].port && address.tls == good[i].tls && address.literal == good[i].literal,
			   "an address: %s (%s)", good[i].text, problem != NULL ? problem : address.host);
		web_address_write(&address, written);
		TAP_OK(problem == NULL && strcmp(written, good[i].written) == 0, "its one form: %s", written);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TAP_OK(web_address_parse(bad[i], &address) != NULL, "no address: number %zu", i);
	memset(text + strlen(text), 'a', WEB_ADDRESS_MAX - strlen(text));
	TAP_OK(web_address_parse(text, &address) == NULL, "2048 bytes are an address");
	text[WEB_ADDRESS_MAX] = 'a';
	TAP_OK(web_address_parse(text, &address) != NULL, "2049 are not");
	snprintf(text, sizeof(text), "http://%0254d/", 0);
	memset(text + 7, 'a', 254);
	TAP_OK(web_address_parse(text, &address) != NULL, "a host of 254 characters is not one");
	return tap_done();
}
