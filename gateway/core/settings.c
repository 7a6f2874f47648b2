/*
 * settings.c - see settings.h.
 */
#include "core/settings.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "support/network.h"
#include "db/pgpool.h"

#define MEBIBYTE (1024 * 1024)

/* What SIGHUP changes; everything else is kept until a restart. */
static const size_t reloadable[] = {
	FIELD(allowed_origins),
	FIELD(jwt_key_file),
	FIELD(trusted_proxies),
	FIELD(attempts_per_address),
	FIELD(attempts_per_account),
	FIELD(password_queue),
	FIELD(token_minutes),
	FIELD(log_level),
	FIELD(log_format),
	FIELD(max_frame_bytes),
	FIELD(max_body_bytes),
	FIELD(max_upload_bytes),
	FIELD(batch_edits),
	FIELD(send_queue_bytes),
	FIELD(stalled_receiver_seconds),
	FIELD(snapshot_bytes),
	FIELD(lease_seconds),
	FIELD(drain_seconds),
	FIELD(max_header_bytes),
	FIELD(max_url_bytes),
	FIELD(head_seconds),
	FIELD(keepalive_seconds),
	FIELD(stall_seconds),
	FIELD(min_rate_bytes),
	FIELD(hsts_seconds),
	FIELD(drain_notice_seconds),
	FIELD(admin_networks),
	FIELD(admin_token_file),
	FIELD(log_requests),
	FIELD(block_seconds),
	FIELD(max_connections_per_address),
	FIELD(default_link_role),
};

const Setting settings[] = {
	{"Listening", "listen-address", SETTING_TEXT, FIELD(listen_address), "127.0.0.1", 0, 0, "", "an IP address",
	 "Address to listen on; 0.0.0.0 is every interface."},
	{"Listening", "listen-port", SETTING_INT, FIELD(listen_port), "8080", 1, 65535, "", "", "TCP port to listen on."},
	{"Listening", "public-address", SETTING_TEXT, FIELD(public_address), "", 0, 0, "", "host:port",
	 "Where browsers and other gateways reach this one: its name in the ring and in redirects. Default: "
	 "listen-address:listen-port."},
	{"Listening", "allowed-origins", SETTING_TEXT, FIELD(allowed_origins), "", 0, 0, "", "origins between commas",
	 "Origins whose pages may use this gateway, besides those of the gateways themselves; for example "
	 "https://sheets.example.org."},
	{"Listening", "trusted-proxies", SETTING_TEXT, FIELD(trusted_proxies), "", 0, 0, "", "networks between commas",
	 "Addresses of proxies whose X-Forwarded-For or Forwarded says from where a request comes; for example 127.0.0.1, "
	 "10.0.0.0/8. A request for which they do not say it, or say it in a way that cannot be read, is from nobody."},
	{"Listening", "web-root", SETTING_TEXT, FIELD(web_root), "", 0, 0, "", "a directory",
	 "Directory of the built page; empty: no page is served."},
	{"Listening", "public-scheme", SETTING_CHOICE, FIELD(public_scheme), "auto", 0, 0, "", "auto http https",
	 "How browsers reach the gateways: in redirects and addresses of WebSockets. auto: https when tls-certificate is "
	 "set; behind a proxy that speaks TLS: https."},
	{"Listening", "tls-certificate", SETTING_TEXT, FIELD(tls_certificate), "", 0, 0, "", "a file in PEM format",
	 "The certificate and those that lead to its root, for HTTPS; empty: plain HTTP. SIGHUP reads it and tls-key "
	 "again."},
	{"Listening", "tls-key", SETTING_TEXT, FIELD(tls_key), "", 0, 0, "", "a file in PEM format",
	 "The certificate's private key, which only the gateway may read."},
	{"Listening", "hsts-seconds", SETTING_INT, FIELD(hsts_seconds), "31536000", 0, 63072000, "s", "",
	 "Over HTTPS, how long browsers shall refuse to come back by plain HTTP (Strict-Transport-Security); 0: not said."},
	{"Database", "database", SETTING_TEXT, FIELD(database), "", 0, 0, "", "a libpq connection string",
	 "PostgreSQL with pg_sheet, for example \"host=/run/postgresql dbname=sheets user=gateway\"; what it leaves out "
	 "comes "
	 "from PGHOST, PGUSER, the password file and so on."},
	{"Database", "database-deadline-ms", SETTING_INT, FIELD(database_deadline_ms), "10000", 100, 600000, "ms", "",
	 "The server cancels a statement that takes three quarters of this. A connection that is silent for longer is made "
	 "anew, the outcome of its statements unknown, unless the server says that it still works on them."},
	{"Database", "long-connections", SETTING_INT, FIELD(long_connections), "2", 1, PGPOOL_MAX_CONNECTIONS,
	 "connections", "",
	 "Connections for statements that may take long: saving and restoring versions, trashing and sharing sheets, "
	 "reading large ones and logs. An account has one such statement under way and four waiting; more get 503."},
	{"Database", "long-statement-seconds", SETTING_INT, FIELD(long_statement_seconds), "120", 1, 86400, "s", "",
	 "The server cancels such a statement that takes three quarters of this."},
	{"Database", "durable", SETTING_BOOL, FIELD(durable), "true", 0, 1, "", "",
	 "Acknowledge and show an edit only after its commit is on disk; false: after the commit, which a crash of the "
	 "server may lose for a moment (synchronous_commit off)."},
	{"Database", "batch-edits", SETTING_INT, FIELD(batch_edits), "5000", 1, 65536, "edits", "",
	 "Most edits of one transaction; more wait for the next."},
	{"Coordination", "coordinator", SETTING_CHOICE, FIELD(coordinator), "postgres", 0, 0, "", "postgres zookeeper",
	 "postgres: this is the only gateway of its database; zookeeper: one of several."},
	{"Coordination", "zookeeper-hosts", SETTING_TEXT, FIELD(zookeeper_hosts), "127.0.0.1:2181", 0, 0, "",
	 "host:port between commas",
	 "The ZooKeeper ensemble. IP addresses are better than names: one name that cannot be looked up keeps the gateway "
	 "waiting."},
	{"Coordination", "zookeeper-root", SETTING_TEXT, FIELD(zookeeper_root), "/pg_sheet", 0, 0, "", "a path, /name",
	 "Node under which the gateways of one database meet; gateways of another database need another."},
	{"Coordination", "zookeeper-session-ms", SETTING_INT, FIELD(zookeeper_session_ms), "7000", 1000, 120000, "ms", "",
	 "After this long without a sign of life a gateway is taken for dead and its sheets move. ZooKeeper bounds it to "
	 "2..20 "
	 "of its ticks."},
	{"Coordination", "weight", SETTING_INT, FIELD(weight), "1", 1, 64, "", "",
	 "Share of the sheets: a gateway of weight 2 gets twice those of weight 1."},
	{"Login", "jwt-key-file", SETTING_TEXT, FIELD(jwt_key_file), "", 0, 0, "", "a file with mode 0600",
	 "Keys that sign tokens, one \"kid:secret\" a line; the first signs, all verify. All gateways share it. Required. "
	 "Make one: (umask 077; echo \"k1:$(openssl rand -hex 32)\" > jwt.key)."},
	{"Login", "token-minutes", SETTING_INT, FIELD(token_minutes), "720", 1, 525600, "minutes", "",
	 "How long a login lasts."},
	{"Login", "attempts-per-address", SETTING_INT, FIELD(attempts_per_address), "60", 0, 100000, "a minute", "",
	 "Logins, registrations and password changes that an address may try; more get 429. As many at once, if there were "
	 "none before. 0: any number. Loopback is not limited."},
	{"Login", "attempts-per-account", SETTING_INT, FIELD(attempts_per_account), "10", 0, 100000, "a minute", "",
	 "Wrong passwords that may be tried on an account from one network; more get 429. After as many from everywhere, "
	 "networks that the account has not signed in from wait for two seconds. 0: any number."},
	{"Login", "password-memory", SETTING_BYTES, FIELD(password_memory), "32MB", MEBIBYTE, 256 * MEBIBYTE, "bytes", "",
	 "What hashing a new password takes, a power of two: the more, the harder to guess it is from a stolen table; at "
	 "most "
	 "three are hashed at a time. Accounts keep what they were made with until their password changes."},
	{"Login", "password-queue", SETTING_INT, FIELD(password_queue), "256", 1, 100000, "passwords", "",
	 "Passwords that may wait to be hashed, which takes a tenth of a second of a processor each; more get 503."},
	{"Sharing", "default-link-role", SETTING_CHOICE, FIELD(default_link_role), "none", 0, 0, "",
	 "none viewer commenter editor",
	 "Role of every signed-in account on a new sheet whose id it knows, until the owner makes a link. Ids can be "
	 "guessed: none keeps new sheets private. Clients that share sheets by their id need editor."},
	{"Logging", "log-level", SETTING_CHOICE, FIELD(log_level), "info", 0, 0, "", "error warn info debug",
	 "Least severe messages that are logged."},
	{"Logging", "log-format", SETTING_CHOICE, FIELD(log_format), "text", 0, 0, "", "text json",
	 "One line of text, or one JSON object, per message."},
	{"Logging", "log-requests", SETTING_BOOL, FIELD(log_requests), "false", 0, 1, "", "",
	 "Log each HTTP request, without the query of its address; otherwise only at log-level debug."},
	{"Operators", "admin-networks", SETTING_TEXT, FIELD(admin_networks), NETWORK_LOOPBACK, 0, 0, "",
	 "networks between commas",
	 "Addresses from which /metrics and /debug may be read. What a proxy that is not trusted forwards is from none."},
	{"Operators", "admin-token-file", SETTING_TEXT, FIELD(admin_token_file), "", 0, 0, "", "a file with mode 0600",
	 "Holds a token of 32 to 256 characters with which they may be read from anywhere (Authorization: Bearer TOKEN)."},
	{"Limits", "max-connections", SETTING_INT, FIELD(max_connections), "10000", 10, 1000000, "connections", "",
	 "WebSockets and HTTP together; needs as many file descriptors (ulimit -n)."},
	{"Limits", "max-connections-per-address", SETTING_INT, FIELD(max_connections_per_address), "1000", 0, 1000000,
	 "connections", "",
	 "Connections from one IPv4 address or IPv6 /64 network, unless it is one of trusted-proxies; more get 429. 0: any "
	 "number."},
	{"Limits", "max-header-bytes", SETTING_BYTES, FIELD(max_header_bytes), "16kB", 1024, 65536, "bytes", "",
	 "Longest head of an HTTP request; a longer one gets 431."},
	{"Limits", "max-url-bytes", SETTING_BYTES, FIELD(max_url_bytes), "8kB", 256, 65536, "bytes", "",
	 "Longest address of an HTTP request; a longer one gets 414."},
	{"Limits", "head-seconds", SETTING_INT, FIELD(head_seconds), "10", 1, 3600, "s", "",
	 "The head of an HTTP request, and a TLS handshake, have to come within this time; else 408."},
	{"Limits", "keepalive-seconds", SETTING_INT, FIELD(keepalive_seconds), "5", 1, 3600, "s", "",
	 "How long an HTTP connection may wait for its next request."},
	{"Limits", "stall-seconds", SETTING_INT, FIELD(stall_seconds), "20", 1, 3600, "s", "",
	 "The time over which min-rate-bytes is averaged."},
	{"Limits", "min-rate-bytes", SETTING_BYTES, FIELD(min_rate_bytes), "1kB", 1, MEBIBYTE, "bytes", "",
	 "Bytes a second that an HTTP body has to come with (else 408), and an answer to be read with (else the connection "
	 "ends)."},
	{"Limits", "max-frame-bytes", SETTING_BYTES, FIELD(max_frame_bytes), "1MB", 65536, 64 * MEBIBYTE, "bytes", "",
	 "Longest WebSocket message; a longer one closes the connection (1009)."},
	{"Limits", "max-body-bytes", SETTING_BYTES, FIELD(max_body_bytes), "1MB", 1024, 64 * MEBIBYTE, "bytes", "",
	 "Longest HTTP request body other than an upload; a longer one gets 413."},
	{"Limits", "max-upload-bytes", SETTING_BYTES, FIELD(max_upload_bytes), "64MB", 1024, INT_MAX, "bytes", "",
	 "Longest upload of a file; a longer one gets 413."},
	{"Limits", "send-queue-bytes", SETTING_BYTES, FIELD(send_queue_bytes), "8MB", 65536, 1024 * MEBIBYTE, "bytes", "",
	 "How far a slow receiver may lag behind: from half of it on senders wait for it."},
	{"Limits", "stalled-receiver-seconds", SETTING_INT, FIELD(stalled_receiver_seconds), "10", 1, 3600, "s", "",
	 "A receiver for which senders wait is closed (1013) when it has taken nothing for this long, or less than 64 kB a "
	 "second over 30 s."},
	{"Limits", "snapshot-bytes", SETTING_BYTES, FIELD(snapshot_bytes), "256MB", MEBIBYTE, INT_MAX, "bytes", "",
	 "Memory for whole sheets that protocol v1 sends (/getsheet, /getsheetchkp, onConn). Readers of the same state "
	 "share one copy. Beyond it a request gets 503, and so does an account whose sheets need more than a quarter."},
	{"Limits", "window-cache-bytes", SETTING_BYTES, FIELD(window_cache_bytes), "32MB", 0, 1024 * MEBIBYTE, "bytes", "",
	 "Memory for windows of cells that GET /v2/sheets/ID/cells has read, the last ones used; 0: the database is asked "
	 "each time."},
	{"Limits", "block-seconds", SETTING_INT, FIELD(block_seconds), "30", 1, 3600, "s", "",
	 "A range of cells that takes more than 2 MB has to be read by its client within this time, else it is closed "
	 "(1013); two are read at a time. The same holds for a whole sheet while others need its memory."},
	{"Limits", "ping-seconds", SETTING_INT, FIELD(ping_seconds), "20", 1, 3600, "s", "",
	 "A WebSocket that has been silent for this long is asked for a sign of life, and dropped after as long again."},
	{"Limits", "lease-seconds", SETTING_INT, FIELD(lease_seconds), "30", 1, 3600, "s", "",
	 "A cell lock without a sign of life from its user ends after this long."},
	{"Limits", "drain-notice-seconds", SETTING_INT, FIELD(drain_notice_seconds), "0", 0, 3600, "s", "",
	 "After SIGTERM everything is served so much longer while /readyz says 503, for balancers to notice."},
	{"Limits", "drain-seconds", SETTING_INT, FIELD(drain_seconds), "10", 0, 3600, "s", "",
	 "Then at most this long for commits, queues and requests that are under way."},
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
	switch (setting->type)
	{
		case SETTING_TEXT:
		case SETTING_CHOICE:
			return sizeof(char *);
		case SETTING_INT:
		case SETTING_BYTES:
			return sizeof(int);
		case SETTING_BOOL:
			break;
	}
	return sizeof(bool);
}

bool
setting_is_text(const Setting *setting)
{
	return setting->type == SETTING_TEXT || setting->type == SETTING_CHOICE;
}

bool
setting_is_reloadable(const Setting *setting)
{
	for (size_t i = 0; i < sizeof(reloadable) / sizeof(reloadable[0]); i++)
		if (reloadable[i] == setting->offset)
			return true;
	return false;
}

char **
setting_text(const Setting *setting, Config *config)
{
	return (char **) ((char *) config + setting->offset);
}

const char *
setting_legal(const Setting *setting, char *to, size_t size)
{
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
			snprintf(to, size, "%lld .. %lld%s%s", setting->min, setting->max, setting->unit[0] ? " " : "",
					 setting->unit);
			break;
		case SETTING_BYTES:
			snprintf(to, size, "%lld .. %lld bytes; kB, MB and GB (of 1024) may follow", setting->min, setting->max);
			break;
	}
	return to;
}

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

	for (size_t i = 0; i < settings_count; i++)
	{
		char legal[128];

		if (strcmp(group, settings[i].group) != 0)
			printf("\n%s\n", group = settings[i].group);
		printf("  --%s=%s   (%s)%s\n", settings[i].name, settings[i].fallback,
			   setting_legal(&settings[i], legal, sizeof(legal)), setting_is_reloadable(&settings[i]) ? " *" : "");
		print_wrapped(settings[i].help);
	}
}
