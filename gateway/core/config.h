/*
 * config.h - settings from defaults, a file, the environment and flags, in that order (the last one wins).
 *
 * One table describes every setting: name, type, unit, range, default, help. A setting `listen-port` is `listen-port =
 * 8080` in the file, PG_SHEET_LISTEN_PORT in the environment and --listen-port=8080 as a flag. --help prints the table.
 * Secrets (jwt keys) come from a file whose name is the setting; a file that others may read is refused.
 * Numbers of bytes may be written with kB, MB or GB. An unknown name in the file or a flag is an error, in the
 * environment a warning.
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_VERSION "1.0"

typedef struct Config
{
	char *listen_address;  /* 127.0.0.1 */
	int listen_port;	   /* 8080 */
	char *public_address;  /* host:port that clients reach us at; default listen_address:listen_port */
	char *public_scheme;   /* auto | http | https: how clients reach us; auto: as we speak */
	char *tls_certificate; /* PEM, with its chain; "": plain HTTP */
	char *tls_key;
	int hsts_seconds;		  /* 31536000 */
	char *database;			  /* libpq conninfo */
	char *coordinator;		  /* postgres | zookeeper */
	char *zookeeper_hosts;	  /* 127.0.0.1:2181 */
	char *zookeeper_root;	  /* /pg_sheet */
	int zookeeper_session_ms; /* 7000 */
	int weight;				  /* 1 */
	char *web_root;			  /* directory of the built page; "" none */
	char *jwt_key_file;
	int token_minutes;				 /* 720 */
	int attempts_per_address;		 /* 60 a minute; 0: any number */
	int attempts_per_account;		 /* 10 a minute */
	int password_memory;			 /* 32 MiB, a power of two */
	int password_queue;				 /* 256 */
	char *trusted_proxies;			 /* networks; "" none */
	char *allowed_origins;			 /* extra origins, comma-separated */
	char *admin_networks;			 /* 127.0.0.0/8,::1: who may read /metrics and /debug */
	char *admin_token_file;			 /* "" none */
	bool log_requests;				 /* false */
	char *default_link_role;		 /* none | viewer | commenter | editor: of sheets that are made over HTTP */
	char *log_level;				 /* error | warn | info | debug */
	char *log_format;				 /* text | json */
	int max_connections;			 /* WebSockets and HTTP together: 10000 */
	int max_connections_per_address; /* 1000; 0: as many as max_connections */
	int max_header_bytes;			 /* 16 kB: the head of a request */
	int max_url_bytes;				 /* 8 kB */
	int head_seconds;				 /* 10: the head of a request has to come within */
	int keepalive_seconds;			 /* 5: an idle HTTP connection */
	int stall_seconds;				 /* 20: the time over which min_rate_bytes is averaged */
	int min_rate_bytes;				 /* 1024: bytes a second of a body or an answer */
	int max_frame_bytes;			 /* 1 MiB: a WebSocket message */
	int max_body_bytes;				 /* 1 MiB: an HTTP body other than an upload */
	int max_upload_bytes;			 /* 64 MiB */
	int batch_edits;				 /* 5000: edits of one sheet.apply at most */
	int send_queue_bytes;			 /* 8 MiB: what a slow receiver may lag behind */
	int stalled_receiver_seconds;	 /* 10: a receiver that is too far behind and takes nothing */
	int snapshot_bytes;				 /* 256 MiB: whole sheets that are being told by protocol v1 */
	int window_cache_bytes;			 /* 32 MiB: windows of cells that are kept for GET */
	int block_seconds;				 /* 30: a large block of cells has to be read within */
	int ping_seconds;				 /* 20: between signs of life that a WebSocket is asked for */
	int lease_seconds;				 /* 30: a cell lock without sign of life */
	int drain_notice_seconds;		 /* 0: from /readyz's first no to the end of service */
	int drain_seconds;				 /* 10: SIGTERM waits for commits and queues at most */
	int database_deadline_ms;		 /* 10000 */
	int long_connections;			 /* 2: for statements that may take long */
	int long_statement_seconds;		 /* 120: how long */
	bool durable;					 /* true: acknowledge after commit */
} Config;

typedef enum ConfigResult
{
	CONFIG_OK,
	CONFIG_HELP,	/* --help or --version was printed: exit 0 */
	CONFIG_INVALID, /* a message was printed to stderr: exit 2 */
} ConfigResult;

extern ConfigResult config_load(Config *config, int argc, char **argv);
/*
 * Reads all sources again and changes the settings that can change while the gateway runs; say gets a line for each
 * change, and for one that needs a restart. False, and nothing is changed, when something is wrong; say gets why.
 */
typedef void (*ConfigSayFn)(const char *line);
extern bool config_reload(Config *config, int argc, char **argv, ConfigSayFn say);
extern void config_free(Config *config);

#endif
