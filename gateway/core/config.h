/*
 * config.h - the values of the settings.
 *
 * settings.c has a table with the name, type, unit, range, default and help of each setting. The setting `listen-port`
 * is `listen-port = 8080` in the file, PG_SHEET_LISTEN_PORT in the environment and --listen-port=8080 as a flag. An
 * unknown name is an error in the file and on the command line, and a warning in the environment. JWT keys are in a
 * file of their own, which other users must not be able to read.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_VERSION	  "1.0"
#define CONFIG_ADMIN_PORT 1000 /* added to listen-port, or subtracted if that is too much */

/* settings.c documents the fields: the setting of `listen_port` is "listen-port". */
typedef struct Config
{
	char *listen_address;
	int listen_port;
	char *public_address;
	char *peer_address;
	char *public_scheme;
	char *tls_certificate;
	char *tls_key;
	int hsts_seconds;
	char *database;
	char *coordinator;
	char *zookeeper_hosts;
	char *zookeeper_root;
	int zookeeper_session_ms;
	int weight;
	char *web_root;
	char *jwt_key_file;
	int token_minutes;
	int attempts_per_address;
	int attempts_per_account;
	int password_memory;
	int password_queue;
	char *trusted_proxies;
	char *allowed_origins;
	char *admin_address;
	char *admin_networks;
	char *admin_token_file;
	bool log_requests;
	char *default_link_role;
	char *anonymous_pastes;
	int pastes_per_address;
	int webhook_requests;
	char *webhook_networks;
	char *reminder_mail;
	char *reminder_mail_from;
	char *log_level;
	char *log_format;
	int max_connections;
	int max_connections_per_address;
	int max_header_bytes;
	int max_url_bytes;
	int head_seconds;
	int keepalive_seconds;
	int stall_seconds;
	int min_rate_bytes;
	int max_frame_bytes;
	int max_body_bytes;
	int max_upload_bytes;
	int batch_edits;
	int send_queue_bytes;
	int stalled_receiver_seconds;
	int snapshot_bytes;
	int range_cache_bytes;
	int block_seconds;
	int ping_seconds;
	int lease_seconds;
	int drain_notice_seconds;
	int drain_seconds;
	int handover_seconds;
	int database_deadline_ms;
	int long_connections;
	int long_statement_seconds;
	bool durable;
} Config;

typedef enum ConfigResult
{
	CONFIG_OK,
	CONFIG_HELP,	/* --help or --version was printed: exit 0 */
	CONFIG_INVALID, /* a message was printed to stderr: exit 2 */
} ConfigResult;

extern ConfigResult config_load(Config *config, int argc, char **argv);
/* For a command, which is no gateway: of the settings that must exist or fit together, only `database` is checked. */
extern bool config_load_command(Config *config, int argc, char **argv, bool uses_database);
/*
 * Reads all sources again and changes the settings that can change while the gateway runs. Calls say with a line for
 * each change, and for each setting that needs a restart. On an error, returns false and changes nothing; say then gets
 * the reason.
 */
typedef void (*ConfigSayFn)(const char *line);
extern bool config_reload(Config *config, int argc, char **argv, ConfigSayFn say);
/* Operators are served over plain HTTP: certificates name no loopback address, and nobody listens there. */
extern bool config_admin_is_plain(const Config *config);
extern void config_free(Config *config);

#endif
