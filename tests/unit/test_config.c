/*
 * test_config.c - settings: where they come from, which goes before which, and that every wrong one is refused with its
 * name, value and source.
 */
#include "core/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static char directory[] = "/tmp/test_config_XXXXXX";
static char key_flag[96], file_flag[96], file_path[64], key_path[64];
static char output[65536]; /* what the last load wrote to stdout and stderr */

static void
write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file) != 0 || chmod(path, mode) != 0)
		abort();
}

/* Loads with stdout and stderr caught. flags end with NULL. */
static ConfigResult
load(Config *config, const char *const *flags)
{
	char *argv[32] = {"pg_sheet_gateway"}, path[64];
	int argc = 1, out = dup(1), err = dup(2), file;
	ConfigResult result;
	ssize_t len;

	while (flags && *flags)
		argv[argc++] = (char *) *flags++;
	snprintf(path, sizeof(path), "%s/output", directory);
	fflush(stdout);
	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	dup2(file, 1);
	dup2(file, 2);
	result = config_load(config, argc, argv);
	fflush(stdout);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	len = pread(file, output, sizeof(output) - 1, 0);
	output[len > 0 ? len : 0] = '\0';
	close(file);
	return result;
}

#define FLAGS(...) ((const char *const[]){key_flag, __VA_ARGS__, NULL})

/* The load must fail, and its message hold all the words. */
static void
expect_refusal(const char *const *flags, const char *what, const char *a, const char *b, const char *c)
{
	Config config;
	ConfigResult result = load(&config, flags);
	bool good = result == CONFIG_INVALID && strstr(output, a) && strstr(output, b) && strstr(output, c);

	output[strcspn(output, "\n")] = '\0';
	TAP_OK(good, "%s is refused: %s", what, output);
	if (result == CONFIG_OK)
		config_free(&config);
}

/* The file's text must be refused, at that line. */
static void
expect_file_refusal(const char *text, const char *what, const char *a, const char *b)
{
	write_file(file_path, text, 0600);
	expect_refusal(FLAGS(file_flag), what, file_path, a, b);
}

static void
test_defaults(void)
{
	Config config;

	TAP_OK(load(&config, FLAGS(NULL)) == CONFIG_OK && output[0] == '\0', "the key file is all that is required");
	TAP_OK(strcmp(config.listen_address, "127.0.0.1") == 0 && config.listen_port == 8080 &&
			   strcmp(config.public_address, "127.0.0.1:8080") == 0,
		   "listens on loopback");
	TAP_OK(strcmp(config.coordinator, "postgres") == 0 && config.zookeeper_session_ms == 7000 && config.weight == 1 &&
			   strcmp(config.zookeeper_root, "/pg_sheet") == 0,
		   "one gateway needs no ZooKeeper");
	TAP_OK(config.durable && config.batch_edits == 5000 && config.token_minutes == 720,
		   "durable, 5000 edits, 12 hours");
	TAP_OK(config.max_upload_bytes == 256 << 20 && config.send_queue_bytes == 8 << 20 &&
			   config.max_frame_bytes == 1 << 20,
		   "bytes with units");
	config_free(&config);
	TAP_OK(load(&config, FLAGS("--head-seconds=2min", "--ping-seconds=30000 ms", "--drain-seconds=1h",
							   "--database-deadline-ms=5s", "--token-minutes=2d", "--lease-seconds=7",
							   "--max-url-bytes=512B", "--max-body-bytes=64kb", "--hsts-seconds=0d")) == CONFIG_OK &&
			   config.head_seconds == 120 && config.ping_seconds == 30 && config.drain_seconds == 3600 &&
			   config.database_deadline_ms == 5000 && config.token_minutes == 2880 && config.lease_seconds == 7 &&
			   config.max_url_bytes == 512 && config.max_body_bytes == 65536 && config.hsts_seconds == 0,
		   "times and bytes with units, and numbers without one in that of the setting");
	config_free(&config);
	TAP_OK(load(&config, FLAGS("--listen-port=9", "--listen-address", "::1")) == CONFIG_OK &&
			   strcmp(config.public_address, "[::1]:9") == 0,
		   "the public address follows the listening one, also of IPv6");
	config_free(&config);
}

static void
test_precedence(void)
{
	Config config;

	write_file(file_path,
			   "# a comment\n\n  listen-port = 1000   # why\nweight=2\ndurable = off\n"
			   "database = \"dbname=x password='a #b'\"  # quoted\nmax-upload-bytes = 5 MB\r\n",
			   0600);
	setenv("PG_SHEET_LISTEN_PORT", "2000", 1);
	setenv("PG_SHEET_LOG_LEVEL", "debug", 1);
	TAP_OK(load(&config, FLAGS(file_flag, "--log-level=warn")) == CONFIG_OK,
		   "a file, the environment and flags are read");
	TAP_OK(config.weight == 2 && !config.durable && config.max_upload_bytes == 5 << 20,
		   "the file goes before defaults");
	TAP_OK(strcmp(config.database, "dbname=x password='a #b'") == 0, "what stands in quotes is taken whole");
	TAP_OK(config.listen_port == 2000, "the environment goes before the file");
	TAP_OK(strcmp(config.log_level, "warn") == 0, "flags go before the environment");
	config_free(&config);
	setenv("PG_SHEET_CONFIG", file_path, 1);
	TAP_OK(load(&config, FLAGS(NULL)) == CONFIG_OK && config.weight == 2, "PG_SHEET_CONFIG names the file");
	config_free(&config);
	unsetenv("PG_SHEET_CONFIG");
	unsetenv("PG_SHEET_LISTEN_PORT");
	unsetenv("PG_SHEET_LOG_LEVEL");
	setenv("PG_SHEET_PORT", "tcp://10.0.0.1:1", 1);
	TAP_OK(load(&config, FLAGS(NULL)) == CONFIG_OK && strstr(output, "PG_SHEET_PORT"),
		   "an unknown variable of the environment is only warned of");
	config_free(&config);
	unsetenv("PG_SHEET_PORT");
}

static void
test_flags(void)
{
	Config config;

	TAP_OK(load(&config, FLAGS("--listen-port", "81", "--durable=no", "--weight=3", "--weight=4")) == CONFIG_OK &&
			   config.listen_port == 81 && !config.durable && config.weight == 4,
		   "--name value, --name=value, the last one wins");
	config_free(&config);
	TAP_OK(load(&config, FLAGS("--no-durable")) == CONFIG_OK && !config.durable, "--no-durable");
	config_free(&config);
	TAP_OK(load(&config, FLAGS("--durable", "false", "--weight", "2")) == CONFIG_OK && !config.durable &&
			   config.weight == 2,
		   "--durable false");
	config_free(&config);
	TAP_OK(load(&config, FLAGS("--no-durable", "--durable", "--weight=2")) == CONFIG_OK && config.durable, "--durable");
	config_free(&config);
	expect_refusal(FLAGS("--listen-prot=80"), "an unknown flag", "listen-prot", "flag", "--help");
	expect_refusal(FLAGS("--listen_port=80"), "an underscore", "listen_port", "flag", "--help");
	expect_refusal(FLAGS("--no-weight"), "--no- of a number", "no-weight", "flag", "");
	expect_refusal(FLAGS("8080"), "a word that is no flag", "8080", "--name=value", "");
	expect_refusal(FLAGS("--"), "two dashes", "--name=value", "", "");
	expect_refusal(FLAGS("--weight"), "a missing value", "weight", "missing", "1 .. 64");
	expect_refusal(FLAGS("--config"), "--config without a file", "--config", "", "");
	expect_refusal(FLAGS("--config=/nonexistent/x"), "a file that is not there", "/nonexistent/x", "No such file", "");
}

static void
test_values(void)
{
	expect_refusal(FLAGS("--listen-port=0"), "port 0", "listen-port", "\"0\"", "1 .. 65535");
	expect_refusal(FLAGS("--listen-port=65536"), "port 65536", "\"65536\"", "flag --listen-port", "1 .. 65535");
	expect_refusal(FLAGS("--listen-port=80x"), "port 80x", "\"80x\"", "not a number", "");
	expect_refusal(FLAGS("--listen-port="), "an empty port", "listen-port", "not a number", "");
	expect_refusal(FLAGS("--listen-port= 80"), "a blank in front", "listen-port", "not a number", "");
	expect_refusal(FLAGS("--weight=-1"), "weight -1", "out of range", "1 .. 64", "");
	expect_refusal(FLAGS("--weight=99999999999999999999"), "a number beyond 64 bits", "weight", "not a number", "");
	expect_refusal(FLAGS("--weight=1MB"), "a unit on a count", "weight", "not a number", "");
	expect_refusal(FLAGS("--max-upload-bytes=9000000000GB"), "bytes that overflow", "max-upload-bytes", "not a number",
				   "");
	expect_refusal(FLAGS("--head-seconds=1500ms"), "a part of a second", "head-seconds", "not a whole number",
				   "ms, s,");
	expect_refusal(FLAGS("--head-seconds=2h"), "hours beyond the limit", "head-seconds", "out of range", "1 .. 3600");
	expect_refusal(FLAGS("--head-seconds=2kB"), "bytes for a time", "head-seconds", "not a number", "");
	expect_refusal(FLAGS("--max-url-bytes=1min"), "a time for bytes", "max-url-bytes", "not a number", "kB");
	expect_refusal(FLAGS("--head-seconds=9000000000000000d"), "a time that overflows", "not a number", "", "");
	expect_refusal(FLAGS("--attempts-per-account=1min"), "a unit on a rate", "not a number", "a minute", "");
	expect_refusal(FLAGS("--max-upload-bytes=1TB"), "an unknown unit", "max-upload-bytes", "not a number", "kB, MB");
	expect_refusal(FLAGS("--password-memory=33MB"), "memory that is no power of two", "password-memory", "34603008",
				   "power of two");
	expect_refusal(FLAGS("--trusted-proxies=10.0.0.0/8,here"), "a network that is none", "trusted-proxies", "here",
				   "networks");
	expect_refusal(FLAGS("--durable=maybe"), "durable maybe", "durable", "maybe", "true or false");
	expect_refusal(FLAGS("--coordinator=etcd"), "another coordinator", "etcd", "postgres zookeeper", "");
	expect_refusal(FLAGS("--coordinator=postgres zookeeper"), "both coordinators", "not a legal value", "", "");
	expect_refusal(FLAGS("--log-level="), "an empty level", "log-level", "error warn info debug", "");
	expect_refusal(FLAGS("--public-address=host"), "an address without a port", "public-address", "host:port", "");
	expect_refusal(FLAGS("--public-address=ho/st:80"), "an address with a slash", "public-address", "host:port", "");
	expect_refusal(FLAGS("--peer-address=10.0.0.1"), "a peer's address without a port", "peer-address", "host:port",
				   "");
	expect_refusal(FLAGS("--peer-address=0.0.0.0:80"), "a peer's address of 0.0.0.0", "peer-address", "this machine",
				   "");
	expect_refusal(FLAGS("--public-address=a:b:80"), "an address with two colons", "public-address", "host:port", "");
	expect_refusal(FLAGS("--coordinator=zookeeper", "--listen-address=0.0.0.0"), "a public address of 0.0.0.0",
				   "public-address", "redirected", "");
	expect_refusal(FLAGS("--zookeeper-hosts=a:1,,b:2"), "an empty host", "zookeeper-hosts", "list", "");
	expect_refusal(FLAGS("--zookeeper-root=pg_sheet"), "a root without a slash", "zookeeper-root", "path", "");
	expect_refusal(FLAGS("--zookeeper-root=/"), "the root itself", "zookeeper-root", "path", "");
	expect_refusal(FLAGS("--zookeeper-root=/a/../b"), "a root with dots", "zookeeper-root", "path", "");
	expect_refusal(FLAGS("--web-root=/nonexistent"), "a missing directory", "web-root", "/nonexistent", "");
	expect_refusal(FLAGS("--database=dbnme=x"), "a misspelt connection string", "database", "dbnme", "flag --database");
	expect_refusal(FLAGS("--database=password=hunter2 oops"), "a connection string with a password", "(not shown)", "",
				   "");
	TAP_OK(!strstr(output, "hunter2"), "whose password is not shown");
	setenv("PG_SHEET_WEIGHT", "65", 1);
	expect_refusal(FLAGS(NULL), "a wrong variable", "weight", "environment PG_SHEET_WEIGHT", "1 .. 64");
	unsetenv("PG_SHEET_WEIGHT");
}

static void
test_files(void)
{
	expect_file_refusal("weight = 1\nlisten-prot = 80\n", "an unknown name", ":2", "listen-prot");
	expect_file_refusal("weight = 1\n\nweight = 2\n", "a second time", ":3", "line 1");
	expect_file_refusal("weight 1\n", "a line without =", ":1", "name = value");
	expect_file_refusal("weight = 65\n", "a value out of range", ":1", "1 .. 64");
	expect_file_refusal("log-level = \"info\n", "an open quote", ":1", "quotes");
	expect_file_refusal("log-level = \"info\" x\n", "words after a quote", ":1", "quotes");
	expect_file_refusal("weight =\n", "an empty number", ":1", "not a number");
}

static void
test_keys(void)
{
	expect_refusal((const char *const[]){NULL}, "no key file", "jwt-key-file", "openssl rand -hex 32", "required");
	expect_refusal(FLAGS("--jwt-key-file=/nonexistent"), "a missing key file", "jwt-key-file", "openssl rand -hex 32",
				   "");
	chmod(key_path, 0644);
	expect_refusal(FLAGS(NULL), "a key file that others read", "0644", "chmod 600", "");
	write_file(key_path, "k1:short\n", 0600);
	expect_refusal(FLAGS(NULL), "a short key", "shorter than 32", "openssl rand -hex 32", "line 1");
	write_file(key_path, "k1:example-example-example-example-example\n", 0600);
	expect_refusal(FLAGS(NULL), "an example key", "example", "openssl rand -hex 32", "");
	TAP_OK(!strstr(output, "example-example"), "the key itself is not shown");
}

static void
test_help(void)
{
	static const char *const names[] = {
		"listen-address",	   "listen-port",	   "public-address",	   "allowed-origins", "web-root",
		"peer-address",		   "database",		   "database-deadline-ms", "durable",		  "batch-edits",
		"coordinator",		   "zookeeper-hosts",  "zookeeper-root",	   "weight",		  "jwt-key-file",
		"token-minutes",	   "log-level",		   "log-format",		   "max-connections", "max-frame-bytes",
		"max-body-bytes",	   "max-upload-bytes", "send-queue-bytes",	   "lease-seconds",	  "drain-seconds",
		"zookeeper-session-ms"};
	Config config;
	char flag[64];
	bool all = true;

	TAP_OK(load(&config, (const char *const[]){"--help", NULL}) == CONFIG_HELP, "--help needs no key file");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		snprintf(flag, sizeof(flag), "--%s=", names[i]);
		all = all && strstr(output, flag);
	}
	TAP_OK(all && strstr(output, "1 .. 65535") && strstr(output, "openssl rand"),
		   "it shows every setting, ranges and defaults");
	TAP_OK(load(&config, FLAGS("--version")) == CONFIG_HELP && strstr(output, "pg_sheet_gateway " CONFIG_VERSION),
		   "--version");
}

static char said[4096]; /* what config_reload told */

static void
say(const char *line)
{
	size_t used = strlen(said);

	snprintf(said + used, sizeof(said) - used, "%s\n", line);
}

static bool
reload(Config *config, const char *text)
{
	char *argv[] = {"pg_sheet_gateway", key_flag, file_flag, NULL};

	said[0] = '\0';
	write_file(file_path, text, 0600);
	return config_reload(config, 3, argv, say);
}

static void
test_reload(void)
{
	Config config;

	write_file(file_path, "listen-port = 7000\nallowed-origins = https://a.example\ntoken-minutes = 5\n", 0600);
	TAP_OK(load(&config, FLAGS(file_flag)) == CONFIG_OK, "a configuration to change");
	TAP_OK(reload(&config, "listen-port = 7000\nallowed-origins = https://b.example\ntoken-minutes = 6\n") &&
			   strcmp(config.allowed_origins, "https://b.example") == 0 && config.token_minutes == 6,
		   "a reload changes texts and numbers");
	TAP_OK(strstr(said, "\"allowed-origins\" has changed\n") && strstr(said, "\"token-minutes\" has changed\n") &&
			   !strstr(said, "listen-port"),
		   "and tells which");
	TAP_OK(reload(&config, "listen-port = 7001\ndurable = off\ntoken-minutes = 6\n") && config.listen_port == 7000 &&
			   strcmp(config.public_address, "127.0.0.1:7000") == 0 && config.durable &&
			   config.allowed_origins[0] == '\0',
		   "what needs a restart is kept, what is not set any more is its default");
	TAP_OK(strstr(said, "\"listen-port\" has changed: that needs a restart") &&
			   strstr(said, "\"durable\" has changed: that needs a restart"),
		   "and told");
	TAP_OK(!reload(&config, "token-minutes = 9\nlog-level = loud\n") && config.token_minutes == 6 &&
			   strcmp(config.log_level, "info") == 0 && strstr(said, "log-level") && strstr(said, file_path),
		   "one wrong value, and nothing is changed: %s", said);
	config_free(&config);
}

int
main(void)
{
	if (!mkdtemp(directory))
		abort();
	snprintf(key_path, sizeof(key_path), "%s/jwt.key", directory);
	snprintf(key_flag, sizeof(key_flag), "--jwt-key-file=%s", key_path);
	snprintf(file_path, sizeof(file_path), "%s/gateway.conf", directory);
	snprintf(file_flag, sizeof(file_flag), "--config=%s", file_path);
	write_file(key_path, "k1:0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0\n", 0600);
	test_defaults();
	test_precedence();
	test_flags();
	test_values();
	test_files();
	test_help();
	test_reload();
	test_keys();
	unlink(key_path);
	unlink(file_path);
	snprintf(file_path, sizeof(file_path), "%s/output", directory);
	unlink(file_path);
	rmdir(directory);
	return tap_done();
}
