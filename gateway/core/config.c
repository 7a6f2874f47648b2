/*
 * config.c - reads the values of the settings from their sources; settings.c has the table of settings.
 *
 * The sources in order: the table's defaults, the file of --config (or PG_SHEET_CONFIG), PG_SHEET_* in the environment,
 * flags. The last one wins. An invalid value is refused here, with the setting's name, the value, its source and the
 * legal values, so that no error appears under load.
 */
#include "core/config.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/jwt.h"
#include "db/pgconninfo.h"
#include "support/network.h"
#include "core/settings.h"

extern char **environ;

static ConfigSayFn config_say_fn;

/* Prints a line to stderr, or passes it to the caller of config_reload(). */
static void
config_say(const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (config_say_fn != NULL)
		config_say_fn(text);
	else
		fprintf(stderr, "pg_sheet_gateway: %s\n", text);
}

typedef struct Loader
{
	Config *config;
	char *from[SETTINGS_MOST]; /* source of each value: "default", "FILE:LINE", "environment NAME", "flag --NAME" */
} Loader;

static bool
setting_refuse(const Setting *setting, const char *value, const char *from, const char *problem)
{
	char legal[128];
	/* a connection string may contain a password */
	const char *shown = setting->offset == FIELD(database) ? "(not shown)" : value;

	config_say("setting \"%s\" = \"%s\" (%s): %s; legal: %s", setting->name, shown, from, problem,
			   setting_legal(setting, legal, sizeof(legal)));
	return false;
}

static bool
name_is(const char *name, size_t len, const char *other)
{
	return strlen(other) == len && memcmp(name, other, len) == 0;
}

static bool
loader_set(Loader *loader, const Setting *setting, const char *value, const char *from)
{
	char **source = &loader->from[setting - settings];
	const char *problem = setting_store(setting, loader->config, value);

	if (problem != NULL)
		return setting_refuse(setting, value, from, problem);
	free(*source);
	*source = strdup(from);
	return *source != NULL || setting_refuse(setting, value, from, "out of memory");
}

static char *
trim(char *text)
{
	char *end;

	while (isspace((unsigned char) *text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char) end[-1]))
		end--;
	*end = '\0';
	return text;
}

/*
 * Returns the value of a line: the text up to a # that follows a blank, or the text in double quotes, without escapes.
 * Returns NULL if the closing quote is missing or text follows it.
 */
static char *
file_value(char *text)
{
	char *end;

	text = trim(text);
	if (*text != '"')
	{
		for (char *c = text; *c; c++)
			if (*c == '#' && (c == text || isspace((unsigned char) c[-1])))
			{
				*c = '\0';
				break;
			}
		return trim(text);
	}
	end = strchr(text + 1, '"');
	if (end == NULL)
		return NULL;
	*end = '\0';
	end = trim(end + 1);
	return *end == '\0' || *end == '#' ? text + 1 : NULL;
}

static bool
loader_read_line(Loader *loader, const char *path, int number, char *line, int *seen)
{
	char from[PATH_MAX + 32];
	char *equals, *name, *value;
	const Setting *setting;

	snprintf(from, sizeof(from), "%s:%d", path, number);
	line = trim(line);
	if (*line == '\0' || *line == '#')
		return true;
	equals = strchr(line, '=');
	if (equals == NULL)
	{
		config_say("%s: \"%s\" is not of the form name = value", from, line);
		return false;
	}
	*equals = '\0';
	name = trim(line);
	value = file_value(equals + 1);
	setting = setting_find(name, strlen(name));
	if (setting == NULL)
	{
		config_say("%s: there is no setting \"%s\" (see --help)", from, name);
		return false;
	}
	if (value == NULL)
		return setting_refuse(setting, trim(equals + 1), from, "the double quotes do not match");
	if (seen[setting - settings])
	{
		config_say("%s: \"%s\" is set a second time, first in line %d", from, name, seen[setting - settings]);
		return false;
	}
	seen[setting - settings] = number;
	return loader_set(loader, setting, value, from);
}

static bool
loader_read_file(Loader *loader, const char *path)
{
	int seen[SETTINGS_MOST] = {0};
	char *line = NULL;
	size_t size = 0;
	int number = 0;
	bool good = true;
	FILE *file = fopen(path, "r");

	if (file == NULL)
	{
		config_say("cannot read the configuration file \"%s\": %s", path, strerror(errno));
		return false;
	}
	while (good && getline(&line, &size, file) >= 0)
		good = loader_read_line(loader, path, ++number, line, seen);
	if (good && ferror(file))
	{
		config_say("cannot read the configuration file \"%s\": %s", path, strerror(errno));
		good = false;
	}
	free(line);
	fclose(file);
	return good;
}

static bool
is_known_env(const char *entry)
{
	char name[128];
	size_t len = strcspn(entry, "=");
	bool known = name_is(entry, len, SETTINGS_ENV_PREFIX "CONFIG");

	for (size_t i = 0; i < settings_count && !known; i++)
	{
		setting_env_name(&settings[i], name, sizeof(name));
		known = name_is(entry, len, name);
	}
	return known;
}

static bool
loader_read_environment(Loader *loader)
{
	char name[128], from[160];

	for (size_t i = 0; i < settings_count; i++)
	{
		const char *value;

		setting_env_name(&settings[i], name, sizeof(name));
		value = getenv(name);
		if (value == NULL)
			continue;
		snprintf(from, sizeof(from), "environment %s", name);
		if (!loader_set(loader, &settings[i], value, from))
			return false;
	}
	/* Only a warning: container platforms derive variables from names of services (PG_SHEET_PORT=tcp://...). */
	for (char **entry = environ; *entry != NULL; entry++)
		if (strncmp(*entry, SETTINGS_ENV_PREFIX, strlen(SETTINGS_ENV_PREFIX)) == 0 && !is_known_env(*entry))
			config_say("warning: the environment variable %.*s is not a setting", (int) strcspn(*entry, "="), *entry);
	return true;
}

/*
 * Parses the flag at argv[*i]: --name=value, --name value, --switch or --no-switch. Advances *i over a separate value.
 * name and value point into argv; value is NULL if it is missing.
 */
static bool
flag_take(int argc, char **argv, int *i, const char **name, size_t *name_len, const char **value)
{
	const char *arg = argv[*i], *equals;
	const Setting *setting;
	bool word;

	if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0')
	{
		config_say("\"%s\" is not a flag; flags look like --name=value (see --help)", arg);
		return false;
	}
	*name = arg + 2;
	equals = strchr(arg, '=');
	*name_len = equals != NULL ? (size_t) (equals - *name) : strlen(*name);
	*value = equals != NULL ? equals + 1 : NULL;
	setting = setting_find(*name, *name_len);
	if (setting == NULL && equals == NULL && strncmp(*name, "no-", 3) == 0)
	{
		const Setting *negated = setting_find(*name + 3, *name_len - 3);

		if (negated != NULL && negated->type == SETTING_BOOL)
		{
			*name += 3;
			*name_len -= 3;
			*value = "false";
			return true;
		}
	}
	if (*value != NULL)
		return true;
	if (setting != NULL && setting->type == SETTING_BOOL)
	{
		*value = "true";
		if (*i + 1 < argc && setting_parse_bool(argv[*i + 1], &word))
			*value = argv[++*i];
	}
	else if (*i + 1 < argc)
		*value = argv[++*i];
	return true;
}

/* Finds the name of the file, which is read before the flags. Returns false if --config has no value. */
static bool
find_config_file(int argc, char **argv, const char **path)
{
	const char *name, *value;
	size_t len;

	*path = getenv(SETTINGS_ENV_PREFIX "CONFIG");
	for (int i = 1; i < argc; i++)
	{
		if (!flag_take(argc, argv, &i, &name, &len, &value))
			return false;
		if (name_is(name, len, "config"))
			*path = value != NULL ? value : "";
	}
	if (*path == NULL || **path)
		return true;
	config_say("--config (or " SETTINGS_ENV_PREFIX "CONFIG) needs the name of a file");
	return false;
}

static bool
loader_read_flags(Loader *loader, int argc, char **argv)
{
	const char *name, *value;
	char from[160];
	size_t len;

	for (int i = 1; i < argc && flag_take(argc, argv, &i, &name, &len, &value); i++)
	{
		const Setting *setting = setting_find(name, len);

		if (name_is(name, len, "config"))
			continue;
		if (setting == NULL)
		{
			config_say("there is no setting \"%.*s\" (flag --%.*s; see --help)", (int) len, name, (int) len, name);
			return false;
		}
		snprintf(from, sizeof(from), "flag --%s", setting->name);
		if (value == NULL)
			return setting_refuse(setting, "", from, "a value is missing");
		if (!loader_set(loader, setting, value, from))
			return false;
	}
	return true; /* find_config_file() has refused malformed flags */
}

static bool
has_only(const char *text, size_t len, const char *punctuation)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char) text[i]) && strchr(punctuation, text[i]) == NULL)
			return false;
	return true;
}

/* host:port: a host with characters that are safe in a URL, and a port from 1 to 65535. */
static bool
is_host_port(const char *text)
{
	const char *colon = strrchr(text, ':');
	char *end;
	long port = colon != NULL ? strtol(colon + 1, &end, 10) : 0;

	if (port < 1 || port > 65535 || !isdigit((unsigned char) colon[1]) || *end || colon == text || strlen(text) > 255)
		return false;
	if (text[0] == '[' ? colon[-1] != ']' : memchr(text, ':', (size_t) (colon - text)) != NULL)
		return false;
	return has_only(text, (size_t) (colon - text), ".-_[]:");
}

static bool
is_host_list(const char *text)
{
	char *copy = strdup(text), *rest = copy, *item;
	bool good = *text != '\0' && copy != NULL;

	while (good && (item = strsep(&rest, ",")) != NULL)
		good = is_host_port(trim(item));
	free(copy);
	return good;
}

static bool
is_zookeeper_path(const char *text)
{
	size_t len = strlen(text);

	return len >= 2 && len <= 200 && text[0] == '/' && text[len - 1] != '/' && strstr(text, "//") == NULL &&
		   strstr(text, "/.") == NULL && strcmp(text, "/zookeeper") != 0 && has_only(text, len, "/._-");
}

/* Returns 0 if there is no such file. */
static mode_t
file_mode(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 ? status.st_mode : 0;
}

static bool
loader_refuse(Loader *loader, const char *name, const char *problem)
{
	const Setting *setting = setting_find(name, strlen(name));
	char number[24];
	const char *value = number;

	if (setting_is_text(setting))
		value = *setting_text(setting, loader->config);
	else
		snprintf(number, sizeof(number), "%d", *(int *) ((char *) loader->config + setting->offset));
	return setting_refuse(setting, value, loader->from[setting - settings], problem);
}

static bool
check_database(Loader *loader)
{
	char problem[512];

	return pgconninfo_check(loader->config->database, problem, sizeof(problem)) ||
		   loader_refuse(loader, "database", problem);
}

/* Checks the keys. main/reload.c loads them. */
static bool
check_jwt_keys(Loader *loader)
{
	char reason[512];
	JwtKeys keys;
	bool good;

	if (loader->config->jwt_key_file[0] == '\0')
		return loader_refuse(loader, "jwt-key-file",
							 "it is required: make a key file with (umask 077; echo \"k1:$(openssl rand -hex 32)\" > "
							 "jwt.key) and give it to all gateways");
	good = jwt_keys_load(&keys, loader->config->jwt_key_file, reason, sizeof(reason));
	OPENSSL_cleanse(&keys, sizeof(keys));
	return good || loader_refuse(loader, "jwt-key-file", reason);
}

static bool
is_wildcard(const char *address)
{
	return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

/* Puts host:port into the setting, unless it has a value. Returns false when there is no memory. */
static bool
put_address(char **setting, const char *host, int port)
{
	char address[300], *copy;

	if (**setting != '\0')
		return true;
	snprintf(address, sizeof(address), strchr(host, ':') != NULL ? "[%s]:%d" : "%s:%d", host, port);
	copy = strdup(address);
	if (copy == NULL)
		return false;
	free(*setting);
	*setting = copy;
	return true;
}

/* Addresses that follow from others. So the ports for operators of gateways on one machine differ as the others do.
 * Returns false when there is no memory. */
static bool
derive_addresses(Config *config)
{
	bool loopback = network_list_contains(NETWORK_LOOPBACK, config->listen_address);
	int port = config->listen_port;

	return put_address(&config->public_address, config->listen_address, port) &&
		   put_address(&config->admin_address, loopback ? config->listen_address : "127.0.0.1",
					   port + (port + CONFIG_ADMIN_PORT > 65535 ? -CONFIG_ADMIN_PORT : CONFIG_ADMIN_PORT));
}

static bool
is_ip_port(const char *text)
{
	char host[NETWORK_HOST_MAX];

	return is_host_port(text) && network_split(text, host) != NULL && network_is_address(host);
}

/* Checks formats, files, and combinations of values. */
static bool
loader_check(Loader *loader)
{
	static const char *const networks[] = {"trusted-proxies", "admin-networks", "webhook-networks"};
	Config *config = loader->config;

	if (config->listen_address[0] == '\0')
		return loader_refuse(loader, "listen-address", "it is empty");
	if (!derive_addresses(config))
		return loader_refuse(loader, "public-address", "out of memory");
	if (!is_host_port(config->public_address))
		return loader_refuse(loader, "public-address", "it is not host:port");
	if (!is_ip_port(config->admin_address))
		return loader_refuse(loader, "admin-address", "it is not an IP address and a port");
	if (strcmp(config->coordinator, "zookeeper") == 0 && is_wildcard(config->public_address))
		return loader_refuse(loader, "public-address", "nobody can be redirected to it; name this machine");
	if (config->peer_address[0] != '\0' && (!is_host_port(config->peer_address) || is_wildcard(config->peer_address)))
		return loader_refuse(loader, "peer-address", "it is not the host:port of this machine");
	if ((config->tls_certificate[0] == '\0') != (config->tls_key[0] == '\0'))
		return loader_refuse(loader, "tls-key", "tls-certificate and tls-key go together");
	if (config->tls_key[0] && (file_mode(config->tls_key) & 07) != 0)
		return loader_refuse(loader, "tls-key", "others may read it: chmod o-rwx");
	if (config->web_root[0] && file_mode(config->web_root) != 0 && !S_ISDIR(file_mode(config->web_root)))
		return loader_refuse(loader, "web-root", "it is not a directory");
	if (config->web_root[0] && access(config->web_root, R_OK | X_OK) != 0)
		return loader_refuse(loader, "web-root", strerror(errno));
	if ((config->password_memory & (config->password_memory - 1)) != 0)
		return loader_refuse(loader, "password-memory", "it is not a power of two");
	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
	{
		if (!network_list_is_valid(*setting_text(setting_find(networks[i], strlen(networks[i])), config)))
			return loader_refuse(loader, networks[i], "it is not a list of addresses and networks (10.0.0.0/8)");
	}
	if (!is_host_list(config->zookeeper_hosts))
		return loader_refuse(loader, "zookeeper-hosts", "it is not a list of host:port");
	if (!is_zookeeper_path(config->zookeeper_root))
		return loader_refuse(loader, "zookeeper-root", "it is not a path of letters, digits, . _ - and /");
	return check_database(loader) && check_jwt_keys(loader);
}

/* Reads all sources into an empty Config. On failure it is empty again. check: what they must be together. */
static bool
config_read(Config *config, int argc, char **argv, bool (*check)(Loader *loader))
{
	Loader loader = {config, {NULL}};
	const char *path;
	bool good = true;

	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < settings_count && good; i++)
		good = loader_set(&loader, &settings[i], settings[i].fallback, "default");
	good = good && find_config_file(argc, argv, &path) && (path == NULL || loader_read_file(&loader, path)) &&
		   loader_read_environment(&loader) && loader_read_flags(&loader, argc, argv) && check(&loader);
	for (size_t i = 0; i < settings_count; i++)
		free(loader.from[i]);
	if (!good)
		config_free(config);
	return good;
}

ConfigResult
config_load(Config *config, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "--version") == 0)
		{
			if (argv[i][2] == 'h')
				settings_print();
			else
				printf("pg_sheet_gateway %s\n", CONFIG_VERSION);
			return CONFIG_HELP;
		}
	return config_read(config, argc, argv, loader_check) ? CONFIG_OK : CONFIG_INVALID;
}

static bool
check_nothing(Loader *loader)
{
	return true;
}

bool
config_load_command(Config *config, int argc, char **argv, bool uses_database)
{
	return config_read(config, argc, argv, uses_database ? check_database : check_nothing);
}

bool
config_reload(Config *config, int argc, char **argv, ConfigSayFn say)
{
	Config fresh;
	bool good;

	config_say_fn = say;
	good = config_read(&fresh, argc, argv, loader_check);
	for (size_t i = 0; good && i < settings_count; i++)
	{
		const Setting *setting = &settings[i];
		char *old = (char *) config + setting->offset, *new = (char *) &fresh + setting->offset;
		char swap[sizeof(char *)];
		size_t size = setting_size(setting);

		if (setting_is_text(setting) ? strcmp(*setting_text(setting, config), *setting_text(setting, &fresh)) == 0
									 : memcmp(old, new, size) == 0)
			continue;
		if (!setting->reloaded)
		{
			config_say("setting \"%s\" has changed: that needs a restart", setting->name);
			continue;
		}
		memcpy(swap, old, size);
		memcpy(old, new, size);
		memcpy(new, swap, size);
		config_say("setting \"%s\" has changed", setting->name);
	}
	if (good)
		config_free(&fresh);
	config_say_fn = NULL;
	return good;
}

bool
config_admin_is_plain(const Config *config)
{
	char host[NETWORK_HOST_MAX];

	return config->tls_certificate[0] == '\0' ||
		   (network_split(config->admin_address, host) != NULL && network_list_contains(NETWORK_LOOPBACK, host));
}

void
config_free(Config *config)
{
	for (size_t i = 0; i < settings_count; i++)
		if (setting_is_text(&settings[i]))
		{
			free(*setting_text(&settings[i], config));
			*setting_text(&settings[i], config) = NULL;
		}
}
