/*
 * settings.c - the table of the gateway's settings, and --help; see settings.h.
 */
#include "core/settings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "auth/password.h"
#include "db/pgpool.h"
#include "support/network.h"

#define MEBIBYTE (1024 * 1024)

#define FIXED(field)	FIELD(field), false
#define RELOADED(field) FIELD(field), true

const Setting settings[] = {
	{"Listening", "listen-address", SETTING_TEXT, FIXED(listen_address), "127.0.0.1", 0, 0, "", "an IP address",
	 "Address to listen on. 0.0.0.0 means every interface."},
	{"Listening", "listen-port", SETTING_INT, FIXED(listen_port), "8080", 1, 65535, "", "", "TCP port to listen on."},
	{"Listening", "public-address", SETTING_TEXT, FIXED(public_address), "", 0, 0, "", "host:port",
	 "Address at which browsers reach this gateway; its name in the ring and in redirects. Default: "
	 "listen-address:listen-port."},
	{"Listening", "peer-address", SETTING_TEXT, FIXED(peer_address), "", 0, 0, "", "host:port",
	 "Address at which the other gateways reach this gateway, to notice its death at once. Default: public-address."},
	{"Listening", "allowed-origins", SETTING_TEXT, RELOADED(allowed_origins), "", 0, 0, "", "comma-separated origins",
	 "Origins, other than the gateways' own, whose pages may use this gateway; for example "
	 "https://sheets.example.org."},
	{"Listening", "trusted-proxies", SETTING_TEXT, RELOADED(trusted_proxies), "", 0, 0, "", "comma-separated networks",
	 "Proxies whose X-Forwarded-For or Forwarded header names the client; for example 127.0.0.1, 10.0.0.0/8. If a "
	 "header is malformed in any part, or the two headers differ, the client's address is unknown."},
	{"Listening", "web-root", SETTING_TEXT, FIXED(web_root), "", 0, 0, "", "a directory",
	 "Directory of the built page. Empty: no page is served."},
	{"Listening", "public-scheme", SETTING_CHOICE, FIXED(public_scheme), "auto", 0, 0, "", "auto http https",
	 "Scheme in redirects and WebSocket addresses. auto: https if tls-certificate is set. Set https behind a proxy "
	 "that terminates TLS."},
	{"Listening", "tls-certificate", SETTING_TEXT, FIXED(tls_certificate), "", 0, 0, "", "a file in PEM format",
	 "Certificate chain for HTTPS. Empty: plain HTTP. SIGHUP reads this file and tls-key again."},
	{"Listening", "tls-key", SETTING_TEXT, FIXED(tls_key), "", 0, 0, "", "a file in PEM format",
	 "Private key of the certificate. Only the gateway may read it."},
	{"Listening", "hsts-seconds", SETTING_INT, RELOADED(hsts_seconds), "31536000", 0, 63072000, "s", "",
	 "Value of Strict-Transport-Security, sent over HTTPS. 0: the header is not sent."},
	{"Database", "database", SETTING_TEXT, FIXED(database), "", 0, 0, "", "a libpq connection string",
	 "The PostgreSQL database with pg_sheet, for example \"host=/run/postgresql dbname=sheets user=gateway\". Missing "
	 "parts come from PGHOST, PGUSER, the password file and so on."},
	{"Database", "database-deadline-ms", SETTING_INT, FIXED(database_deadline_ms), "10000", 100, 600000, "ms", "",
	 "The server cancels a statement after three quarters of this time. A connection that is silent for longer is "
	 "replaced and its statements have an unknown outcome, unless the server reports that it still executes them."},
	{"Database", "long-connections", SETTING_INT, FIXED(long_connections), "2", 1, PGPOOL_MAX_CONNECTIONS,
	 "connections", "",
	 "Connections for long statements: saving and restoring versions, trashing and sharing sheets, reading large "
	 "sheets and logs. An account runs one such statement and queues four; more get 503."},
	{"Database", "long-statement-seconds", SETTING_INT, FIXED(long_statement_seconds), "120", 1, 86400, "s", "",
	 "The server cancels a long statement after three quarters of this time."},
	{"Database", "durable", SETTING_BOOL, FIXED(durable), "true", 0, 1, "", "",
	 "Acknowledge and show an edit only after its commit is on disk. false: after the commit (synchronous_commit off); "
	 "a crash of the server may lose the last moment."},
	{"Database", "batch-edits", SETTING_INT, RELOADED(batch_edits), "5000", 1, 65536, "edits", "",
	 "Maximum number of edits in a transaction. Further edits wait for the next one."},
	{"Coordination", "coordinator", SETTING_CHOICE, FIXED(coordinator), "postgres", 0, 0, "", "postgres zookeeper",
	 "postgres: this is the only gateway of its database. zookeeper: it is one of several."},
	{"Coordination", "zookeeper-hosts", SETTING_TEXT, FIXED(zookeeper_hosts), "127.0.0.1:2181", 0, 0, "",
	 "comma-separated host:port",
	 "The ZooKeeper ensemble. Prefer IP addresses: a name that cannot be resolved blocks the gateway."},
	{"Coordination", "zookeeper-root", SETTING_TEXT, FIXED(zookeeper_root), "/pg_sheet", 0, 0, "", "a path, /name",
	 "ZooKeeper node shared by the gateways of one database. Each database needs its own."},
	{"Coordination", "zookeeper-session-ms", SETTING_INT, FIXED(zookeeper_session_ms), "7000", 1000, 120000, "ms", "",
	 "A gateway that is silent for this long is considered dead and its sheets move. ZooKeeper limits it to 2..20 of "
	 "its ticks."},
	{"Coordination", "weight", SETTING_INT, FIXED(weight), "1", 1, 64, "", "",
	 "Share of the sheets. A gateway of weight 2 gets twice as many as one of weight 1."},
	{"Login", "jwt-key-file", SETTING_TEXT, RELOADED(jwt_key_file), "", 0, 0, "", "a file with mode 0600",
	 "Keys that sign tokens, one \"kid:secret\" per line. The first key signs, all keys verify. All gateways need the "
	 "same file. Required. Create it with: (umask 077; echo \"k1:$(openssl rand -hex 32)\" > jwt.key)."},
	{"Login", "token-minutes", SETTING_INT, RELOADED(token_minutes), "720", 1, 525600, "min", "",
	 "Lifetime of a login token."},
	{"Login", "attempts-per-address", SETTING_INT, RELOADED(attempts_per_address), "60", 0, 100000, "a minute", "",
	 "Logins and registrations per client address, and password changes and logins of known devices per account, "
	 "with a burst of the same number; more get 429. Loopback is not limited. 0: no limit."},
	{"Login", "attempts-per-account", SETTING_INT, RELOADED(attempts_per_account), "10", 0, 100000, "a minute", "",
	 "Wrong passwords per account and network; more get 429, or wait two seconds per attempt if the account has "
	 "signed in from the network. After this many from all networks together, all other networks wait as well. 0: no "
	 "limit."},
	{"Login", "password-memory", SETTING_INT, FIXED(password_memory), "32MB", 1 << PASSWORD_MEMORY_MIN_LOG2,
	 1 << PASSWORD_MEMORY_MAX_LOG2, "bytes", "",
	 "Memory for hashing a new password, a power of two. More memory makes stolen hashes harder to crack. At most "
	 "three passwords are hashed at a time. Stored passwords keep the value they were hashed with until they change."},
	{"Login", "password-queue", SETTING_INT, RELOADED(password_queue), "256", 1, 100000, "passwords", "",
	 "Passwords that may wait to be hashed (about 0.1 s of CPU each); more get 503. Those of addresses and known "
	 "devices that have asked for fewer in the last ten minutes come first."},
	{"Sharing", "default-link-role", SETTING_CHOICE, RELOADED(default_link_role), "none", 0, 0, "",
	 "none viewer commenter editor",
	 "Role of every signed-in account on a new sheet whose id it knows, until the owner creates a link. Ids can be "
	 "guessed: none keeps new sheets private. Clients that share sheets by id need editor."},
	{"Sharing", "anonymous-pastes", SETTING_CHOICE, RELOADED(anonymous_pastes), "loopback", 0, 0, "",
	 "none loopback everybody",
	 "Who may make pastes without a token: nobody, clients on this machine, or everybody. Behind a proxy on this "
	 "machine that does not name its clients, loopback is everybody."},
	{"Sharing", "pastes-per-address", SETTING_INT, RELOADED(pastes_per_address), "60", 0, 100000, "a minute", "",
	 "Pastes per account, or without a token per client address, with a burst of the same number; more get 429. A "
	 "paste counts once for each 4 kB. Loopback is not limited. 0: no limit."},
	{"Sharing", "webhook-requests", SETTING_INT, RELOADED(webhook_requests), "32", 0, 256, "requests", "",
	 "Requests to the addresses of webhooks at a time: at most 4 of them to one host, and 8 of webhooks that one "
	 "account has made. 0: this gateway sends none."},
	{"Sharing", "webhook-networks", SETTING_TEXT, RELOADED(webhook_networks), "", 0, 0, "", "comma-separated networks",
	 "Networks to which webhooks may be sent although they are loopback, private, link-local or otherwise special; for "
	 "example 10.1.2.0/24. Whoever owns a sheet can then send requests to what listens there."},
	{"Sharing", "reminder-mail", SETTING_TEXT, FIXED(reminder_mail), "", 0, 0, "", "a program with arguments",
	 "Program that sends reminders of calendars by mail, for example /usr/sbin/sendmail -t -i. It gets the mail as its "
	 "input; status 0 means sent. It is run without a shell: blanks separate its arguments. Empty: no mail is sent."},
	{"Sharing", "reminder-mail-from", SETTING_TEXT, FIXED(reminder_mail_from), "", 0, 0, "", "an address",
	 "Sender of these mails, for example calendar@example.org or Calendar <calendar@example.org>."},
	{"Logging", "log-level", SETTING_CHOICE, RELOADED(log_level), "info", 0, 0, "", "error warn info debug",
	 "Least severe level that is logged."},
	{"Logging", "log-format", SETTING_CHOICE, RELOADED(log_format), "text", 0, 0, "", "text json",
	 "text: one line per message. json: one JSON object per message."},
	{"Logging", "log-requests", SETTING_BOOL, RELOADED(log_requests), "false", 0, 1, "", "",
	 "Log each HTTP request, without the query of its URL. false: only at log-level debug."},
	{"Operators", "admin-address", SETTING_TEXT, FIXED(admin_address), "", 0, 0, "", "address:port",
	 "IP address and port for operators: /metrics, /debug and /admin are served here only. Default: listen-port + 1000 "
	 "(- 1000 if that exceeds 65535) of listen-address if that is a loopback address, otherwise of 127.0.0.1."},
	{"Operators", "admin-networks", SETTING_TEXT, RELOADED(admin_networks), NETWORK_LOOPBACK, 0, 0, "",
	 "comma-separated networks",
	 "Networks that may read /metrics and /debug without a token, and loopback addresses that may use /admin. A "
	 "request "
	 "forwarded by an untrusted proxy never matches."},
	{"Operators", "admin-token-file", SETTING_TEXT, RELOADED(admin_token_file), "", 0, 0, "", "a file with mode 0600",
	 "File with a token of 32 to 256 characters that permits all of these from anywhere (Authorization: Bearer "
	 "TOKEN)."},
	{"Limits", "max-connections", SETTING_INT, FIXED(max_connections), "10000", 10, 1000000, "connections", "",
	 "WebSocket and HTTP connections together. A further one takes the place of a connection without a token, of the "
	 "address that has the most of them. Needs as many file descriptors (ulimit -n)."},
	{"Limits", "max-connections-per-address", SETTING_INT, RELOADED(max_connections_per_address), "1000", 0, 1000000,
	 "connections", "",
	 "Connections from one IPv4 address or IPv6 /64 network, or, if it is in trusted-proxies, of one client behind "
	 "it. A further one takes the place of one that has shown no token for two seconds, or gets 429. 0: no limit."},
	{"Limits", "max-header-bytes", SETTING_INT, RELOADED(max_header_bytes), "16kB", 1024, 65536, "bytes", "",
	 "Maximum size of an HTTP request head; a larger one gets 431."},
	{"Limits", "max-url-bytes", SETTING_INT, RELOADED(max_url_bytes), "8kB", 256, 65536, "bytes", "",
	 "Maximum length of a request's URL; a longer one gets 414."},
	{"Limits", "head-seconds", SETTING_INT, RELOADED(head_seconds), "10", 1, 3600, "s", "",
	 "Time within which an HTTP request head or a TLS handshake must arrive; otherwise 408."},
	{"Limits", "keepalive-seconds", SETTING_INT, RELOADED(keepalive_seconds), "5", 1, 3600, "s", "",
	 "Idle time after which an HTTP connection is closed."},
	{"Limits", "stall-seconds", SETTING_INT, RELOADED(stall_seconds), "20", 1, 3600, "s", "",
	 "Time over which min-rate-bytes is averaged."},
	{"Limits", "min-rate-bytes", SETTING_INT, RELOADED(min_rate_bytes), "1kB", 1, MEBIBYTE, "bytes", "",
	 "Minimum bytes per second at which a body must arrive (otherwise 408) and an answer must be read (otherwise the "
	 "connection is closed)."},
	{"Limits", "max-frame-bytes", SETTING_INT, RELOADED(max_frame_bytes), "1MB", 65536, 64 * MEBIBYTE, "bytes", "",
	 "Maximum size of a WebSocket message; a larger one closes the connection (1009)."},
	{"Limits", "max-body-bytes", SETTING_INT, RELOADED(max_body_bytes), "1MB", 1024, 64 * MEBIBYTE, "bytes", "",
	 "Maximum size of an HTTP request body that is not an upload; a larger one gets 413."},
	{"Limits", "max-upload-bytes", SETTING_INT, RELOADED(max_upload_bytes), "256MB", 1024, INT_MAX, "bytes", "",
	 "Maximum size of an uploaded file; a larger one gets 413."},
	{"Limits", "send-queue-bytes", SETTING_INT, RELOADED(send_queue_bytes), "8MB", 65536, 1024 * MEBIBYTE, "bytes", "",
	 "Maximum lag of a receiver. From half of it on, senders wait for the receiver."},
	{"Limits", "stalled-receiver-seconds", SETTING_INT, RELOADED(stalled_receiver_seconds), "10", 1, 3600, "s", "",
	 "A receiver for which senders wait is closed (1013) if it reads nothing for this long, or less than 64 kB per "
	 "second over 30 s."},
	{"Limits", "snapshot-bytes", SETTING_INT, RELOADED(snapshot_bytes), "256MB", MEBIBYTE, INT_MAX, "bytes", "",
	 "Memory for whole sheets sent by protocol v1 (/getsheet, /getsheetchkp, onConn). Readers of the same state share "
	 "one copy. A request that needs more gets 503, as does an account whose sheets need more than a quarter."},
	{"Limits", "range-cache-bytes", SETTING_INT, FIXED(range_cache_bytes), "32MB", 0, 1024 * MEBIBYTE, "bytes", "",
	 "Memory for cached ranges of GET /v2/sheets/ID/cells, GET /v2/link/cells, and tables of GET /s/KEY, least "
	 "recently used first out. 0: each request queries the database."},
	{"Limits", "block-seconds", SETTING_INT, RELOADED(block_seconds), "30", 1, 3600, "s", "",
	 "Time within which a client must read a range of more than 2 MB; otherwise it is closed (1013). Two such ranges "
	 "are read at a time. Also applies to a whole sheet while others need its memory."},
	{"Limits", "ping-seconds", SETTING_INT, FIXED(ping_seconds), "20", 1, 3600, "s", "",
	 "A WebSocket that is silent for this long is pinged, and closed after the same time again."},
	{"Limits", "lease-seconds", SETTING_INT, RELOADED(lease_seconds), "30", 1, 3600, "s", "",
	 "A cell lock ends when its user is silent for this long."},
	{"Limits", "drain-notice-seconds", SETTING_INT, RELOADED(drain_notice_seconds), "0", 0, 3600, "s", "",
	 "After SIGTERM, the gateway serves for this long while /readyz answers 503, so that load balancers notice."},
	{"Limits", "drain-seconds", SETTING_INT, RELOADED(drain_seconds), "10", 0, 3600, "s", "",
	 "Then the maximum time for commits, queues and requests in progress."},
	{"Limits", "handover-seconds", SETTING_INT, RELOADED(handover_seconds), "10", 0, 3600, "s", "",
	 "When another gateway becomes the owner of a sheet with editors, the sheet moves there within this time."},
};

const size_t settings_count = sizeof(settings) / sizeof(settings[0]);
_Static_assert(sizeof(settings) / sizeof(settings[0]) <= SETTINGS_MOST, "SETTINGS_MOST is too small");

const Setting *
setting_find(const char *name, size_t len)
{
	for (size_t i = 0; i < settings_count; i++)
		if (strlen(settings[i].name) == len && memcmp(settings[i].name, name, len) == 0)
			return &settings[i];
	return NULL;
}

void
setting_env_name(const Setting *setting, char *to, size_t size)
{
	size_t len = (size_t) snprintf(to, size, SETTINGS_ENV_PREFIX "%s", setting->name);

	for (size_t i = strlen(SETTINGS_ENV_PREFIX); i < len && i < size; i++)
		to[i] = to[i] == '-' ? '_' : (char) toupper((unsigned char) to[i]);
}

size_t
setting_size(const Setting *setting)
{
	return setting_is_text(setting) ? sizeof(char *) : setting->type == SETTING_BOOL ? sizeof(bool) : sizeof(int);
}

bool
setting_is_text(const Setting *setting)
{
	return setting->type == SETTING_TEXT || setting->type == SETTING_CHOICE;
}

char **
setting_text(const Setting *setting, Config *config)
{
	return (char **) ((char *) config + setting->offset);
}

bool
setting_parse_bool(const char *value, bool *to)
{
	static const char *const words[2][4] = {{"false", "off", "no", "0"}, {"true", "on", "yes", "1"}};

	for (int truth = 0; truth < 2; truth++)
		for (int i = 0; i < 4; i++)
			if (strcasecmp(value, words[truth][i]) == 0)
			{
				*to = truth;
				return true;
			}
	return false;
}

typedef struct Unit
{
	const char *name;
	long long size;
} Unit;

static const Unit byte_units[] = {{"bytes", 1}, {"B", 1}, {"kB", 1LL << 10}, {"MB", 1LL << 20}, {"GB", 1LL << 30}, {0}};
static const Unit time_units[] = {{"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}, {0}};

static const Unit *
unit_find(const Unit *units, const char *name)
{
	while (units->name != NULL && strcasecmp(units->name, name) != 0)
		units++;
	return units->name != NULL ? units : NULL;
}

/* The units that values of the setting may have. NULL: none. */
static const Unit *
setting_units(const Setting *setting)
{
	if (unit_find(byte_units, setting->unit) != NULL)
		return byte_units;
	return unit_find(time_units, setting->unit) != NULL ? time_units : NULL;
}

/* Parses an integer in the setting's unit, or one with a unit of the same kind. Returns NULL, or what is wrong. */
static const char *
setting_parse_number(const Setting *setting, const char *value, long long *to)
{
	const Unit *units = setting_units(setting), *unit;
	char *end;

	if (!isdigit((unsigned char) value[0]) && value[0] != '-')
		return "not a number";
	errno = 0;
	*to = strtoll(value, &end, 10);
	if (errno != 0 || end == value)
		return "not a number";
	if (*end == '\0')
		return NULL;
	end += strspn(end, " ");
	unit = units != NULL ? unit_find(units, end) : NULL;
	if (unit == NULL || __builtin_mul_overflow(*to, unit->size, to))
		return "not a number";
	unit = unit_find(units, setting->unit);
	if (*to % unit->size != 0)
		return "not a whole number in the setting's unit";
	*to /= unit->size;
	return NULL;
}

/* Whether value is one of the words, which blanks separate. */
static bool
is_choice(const char *words, const char *value)
{
	bool found = false;

	for (const char *word = words; *word && !found; word += strspn(word, " "))
	{
		size_t len = strcspn(word, " ");

		found = strlen(value) == len && memcmp(word, value, len) == 0;
		word += len;
	}
	return found;
}

const char *
setting_store(const Setting *setting, Config *config, const char *value)
{
	void *field = (char *) config + setting->offset;
	const char *problem;
	long long number;
	char *copy;

	switch (setting->type)
	{
		case SETTING_CHOICE:
			if (!is_choice(setting->legal, value))
				return "not a legal value";
			/* FALLTHROUGH */
		case SETTING_TEXT:
			copy = strdup(value);
			if (copy == NULL)
				return "out of memory";
			free(*setting_text(setting, config));
			*setting_text(setting, config) = copy;
			break;
		case SETTING_INT:
			problem = setting_parse_number(setting, value, &number);
			if (problem != NULL)
				return problem;
			if (number < setting->min || number > setting->max)
				return "out of range";
			*(int *) field = (int) number;
			break;
		case SETTING_BOOL:
			if (!setting_parse_bool(value, field))
				return "not a boolean";
			break;
	}
	return NULL;
}

const char *
setting_legal(const Setting *setting, char *to, size_t size)
{
	const Unit *units = setting_units(setting);

	switch (setting->type)
	{
		case SETTING_TEXT:
			return setting->legal;
		case SETTING_CHOICE:
			snprintf(to, size, "one of: %s", setting->legal);
			break;
		case SETTING_BOOL:
			return "true or false";
		case SETTING_INT:
			snprintf(to, size, "%lld .. %lld%s%s%s", setting->min, setting->max, setting->unit[0] ? " " : "",
					 setting->unit,
					 units == byte_units   ? "; units B, kB, MB, GB"
					 : units == time_units ? "; units ms, s, min, h, d"
										   : "");
			break;
	}
	return to;
}

/* Prints text indented, in lines of at most 100 characters. */
static void
print_wrapped(const char *text)
{
	size_t column = 0;

	printf("      ");
	while (*text)
	{
		size_t word = strcspn(text, " ");

		if (column > 0 && column + 1 + word > 94)
		{
			printf("\n      ");
			column = 0;
		}
		else if (column > 0)
			column += (size_t) printf(" ");
		column += (size_t) printf("%.*s", (int) word, text);
		text += word;
		text += strspn(text, " ");
	}
	printf("\n");
}

void
settings_print(void)
{
	const char *group = "";

	printf("pg_sheet_gateway serves the sheets of a PostgreSQL database with pg_sheet to browsers.\n\n"
		   "Usage: pg_sheet_gateway [--config=FILE] [--NAME=VALUE ...]\n"
		   "       pg_sheet_gateway members          the gateways, their state and load\n"
		   "       pg_sheet_gateway drain ADDRESS    move the sheets of that gateway to others\n"
		   "       pg_sheet_gateway resume ADDRESS   have it take sheets again\n"
		   "ADDRESS is its admin-address (host:port, or a URL), or its name as members shows it.\n\n"
		   "A setting takes its value from its default, the file (NAME = VALUE lines), the environment\n"
		   "(listen-port is PG_SHEET_LISTEN_PORT) and the flags; the last one wins. SIGHUP reads them\n"
		   "again and applies those marked with *.\n\n"
		   "  --config=FILE   read this file; default: the one named by PG_SHEET_CONFIG\n"
		   "  --help          print this\n"
		   "  --version       print the version\n");
	for (size_t i = 0; i < settings_count; i++)
	{
		char legal[128];

		if (strcmp(group, settings[i].group) != 0)
			printf("\n%s\n", group = settings[i].group);
		printf("  --%s=%s   (%s)%s\n", settings[i].name, settings[i].fallback,
			   setting_legal(&settings[i], legal, sizeof(legal)), settings[i].reloaded ? " *" : "");
		print_wrapped(settings[i].help);
	}
}
