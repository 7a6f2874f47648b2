/*
 * config.c - where the values of settings come from (see config.h); settings.c has the table of what they are.
 *
 * Sources in order: the table's defaults, the file of --config (or PG_SHEET_CONFIG), PG_SHEET_* in the environment,
 * flags; the last one wins. Whatever cannot be right is refused here, with the setting's name, its value, where it
 * came from and what is legal, so that nothing is found out under load.
 */
#include "core/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <libpq-fe.h>
#include <openssl/crypto.h>

#include "auth/jwt.h"
#include "support/must.h"
#include "support/network.h"
#include "core/settings.h"

extern char **environ;

static ConfigSayFn config_say_fn;

/* One line for people: to stderr, or to whoever loads the settings again. */
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

/* Where each value came from, for messages: "default", "FILE:LINE", "environment ...", "flag --...". */
typedef struct Loader
{
	Config *config;
	char *from[SETTINGS_MOST];
} Loader;

static char *
text_copy(const char *text)
{
	return must_have(strdup(text));
}

static bool
setting_refuse(const Setting *setting, const char *value, const char *from, const char *problem)
{
	char legal[128];
	/* a connection string may hold a password */
	const char *shown = setting->offset == FIELD(database) ? "(not shown)" : value;

	config_say("setting \"%s\" = \"%s\" (%s): %s; legal: %s", setting->name, shown, from, problem,
			   setting_legal(setting, legal, sizeof(legal)));
	return false;
}

static bool
parse_bool(const char *value, bool *to)
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

/* A whole decimal number, and after it kB, MB or GB if bytes. False when it is not one or would overflow. */
static bool
parse_number(const char *value, bool bytes, long long *to)
{
	static const char *const units[] = {"kB", "MB", "GB"};
	char *end;

	if (!isdigit((unsigned char) value[0]) && value[0] != '-')
		return false;
	errno = 0;
	*to = strtoll(value, &end, 10);
	if (errno != 0 || end == value)
		return false;
	while (bytes && *end == ' ')
		end++;
	for (int i = 0; bytes && *end && i < 3; i++)
		if (strcasecmp(end, units[i]) == 0)
			return !__builtin_mul_overflow(*to, 1LL << (10 * (i + 1)), to);
	return *end == '\0';
}

static bool
is_choice(const char *words, const char *value)
{
	size_t len = strlen(value);

	for (const char *word = words; *word; word += strspn(word, " "))
	{
		size_t word_len = strcspn(word, " ");

		if (word_len == len && memcmp(word, value, len) == 0)
			return true;
		word += word_len;
	}
	return false;
}

/* One value from anywhere: checks its type and range and stores it. */
static bool
loader_set(Loader *loader, const Setting *setting, const char *value, const char *from)
{
	char *place = (char *) loader->config + setting->offset;
	long long number;
	size_t i = (size_t) (setting - settings);

	switch (setting->type)
	{
		case SETTING_CHOICE:
			if (!is_choice(setting->legal, value))
				return setting_refuse(setting, value, from, "not a legal value");
			/* FALLTHROUGH */
		case SETTING_TEXT:
			free(*setting_text(setting, loader->config));
			*setting_text(setting, loader->config) = text_copy(value);
			break;
		case SETTING_INT:
		case SETTING_BYTES:
			if (!parse_number(value, setting->type == SETTING_BYTES, &number))
				return setting_refuse(setting, value, from, "not a number");
			if (number < setting->min || number > setting->max)
				return setting_refuse(setting, value, from, "out of range");
			*(int *) place = (int) number;
			break;
		case SETTING_BOOL:
			if (!parse_bool(value, (bool *) place))
				return setting_refuse(setting, value, from, "not a boolean");
			break;
	}
	free(loader->from[i]);
	loader->from[i] = text_copy(from);
	return true;
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
 * The value of a file line: everything up to a # that follows a blank, or what stands in double quotes (without
 * escapes). NULL when the closing quote is missing or something follows it.
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
	if (!end)
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
	if (!equals)
	{
		config_say("%s: \"%s\" is not of the form name = value", from, line);
		return false;
	}
	*equals = '\0';
	name = trim(line);
	value = file_value(equals + 1);
	setting = setting_find(name, strlen(name));
	if (!setting)
	{
		config_say("%s: there is no setting \"%s\" (see --help)", from, name);
		return false;
	}
	if (!value)
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

	if (!file)
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

	if (len == strlen(SETTINGS_ENV_PREFIX "CONFIG") && memcmp(entry, SETTINGS_ENV_PREFIX "CONFIG", len) == 0)
		return true;
	for (size_t i = 0; i < settings_count; i++)
	{
		setting_env_name(&settings[i], name, sizeof(name));
		if (strlen(name) == len && memcmp(name, entry, len) == 0)
			return true;
	}
	return false;
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
		if (!value)
			continue;
		snprintf(from, sizeof(from), "environment %s", name);
		if (!loader_set(loader, &settings[i], value, from))
			return false;
	}
	/*
	 * Container platforms invent variables from the names of services (PG_SHEET_PORT=tcp://...), so one that we do
	 * not know is worth a warning, no more.
	 */
	for (char **entry = environ; *entry; entry++)
		if (strncmp(*entry, SETTINGS_ENV_PREFIX, strlen(SETTINGS_ENV_PREFIX)) == 0 && !is_known_env(*entry))
			config_say("warning: the environment variable %.*s is not a setting", (int) strcspn(*entry, "="), *entry);
	return true;
}

/*
 * Takes the flag at argv[*i] apart: --name=value, --name value, --switch, --no-switch. Advances *i over a value of its
 * own. name and value point into argv; value is NULL when it is missing.
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
	*name_len = equals ? (size_t) (equals - *name) : strlen(*name);
	*value = equals ? equals + 1 : NULL;
	setting = setting_find(*name, *name_len);
	if (!setting && !equals && strncmp(*name, "no-", 3) == 0)
	{
		const Setting *negated = setting_find(*name + 3, *name_len - 3);

		if (negated && negated->type == SETTING_BOOL)
		{
			*name += 3;
			*name_len -= 3;
			*value = "false";
			return true;
		}
	}
	if (*value)
		return true;
	if (setting && setting->type == SETTING_BOOL)
	{
		*value = "true";
		if (*i + 1 < argc && parse_bool(argv[*i + 1], &word))
			*value = argv[++*i];
	}
	else if (*i + 1 < argc)
		*value = argv[++*i];
	return true;
}

static bool
name_is(const char *name, size_t len, const char *other)
{
	return strlen(other) == len && memcmp(name, other, len) == 0;
}

/* The file has to be read before the flags, so its flag is looked up first. False when it has no value. */
static bool
find_config_file(int argc, char **argv, const char **path)
{
	*path = getenv(SETTINGS_ENV_PREFIX "CONFIG");
	for (int i = 1; i < argc; i++)
	{
		const char *name, *value;
		size_t len;

		if (!flag_take(argc, argv, &i, &name, &len, &value))
			return false;
		if (name_is(name, len, "config"))
			*path = value ? value : "";
	}
	if (*path && **path == '\0')
	{
		config_say("--config (or " SETTINGS_ENV_PREFIX "CONFIG) needs the name of a file");
		return false;
	}
	return true;
}

static bool
loader_read_flags(Loader *loader, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
	{
		const char *name, *value;
		const Setting *setting;
		char from[160];
		size_t len;

		if (!flag_take(argc, argv, &i, &name, &len, &value))
			return false;
		if (name_is(name, len, "config"))
			continue;
		setting = setting_find(name, len);
		if (!setting)
		{
			config_say("there is no setting \"%.*s\" (flag --%.*s; see --help)", (int) len, name, (int) len, name);
			return false;
		}
		snprintf(from, sizeof(from), "flag --%s", setting->name);
		if (!value)
			return setting_refuse(setting, "", from, "a value is missing");
		if (!loader_set(loader, setting, value, from))
			return false;
	}
	return true;
}

/* host:port; the host is not empty and holds nothing that could break a URL, the port is 1..65535. */
static bool
is_host_port(const char *text)
{
	const char *colon = strrchr(text, ':');
	long long port;

	if (!colon || colon == text || strlen(text) > 255 || !parse_number(colon + 1, false, &port) || port < 1 ||
		port > 65535)
		return false;
	if (text[0] == '[' ? colon[-1] != ']' : memchr(text, ':', (size_t) (colon - text)) != NULL)
		return false;
	for (const char *c = text; c < colon; c++)
		if (!isalnum((unsigned char) *c) && !strchr(".-_[]:", *c))
			return false;
	return true;
}

static bool
is_host_list(const char *text)
{
	char *copy = text_copy(text), *rest = copy, *item;
	bool good = *text != '\0';

	while (good && (item = strsep(&rest, ",")) != NULL)
		good = is_host_port(trim(item));
	free(copy);
	return good;
}

static bool
is_zookeeper_path(const char *text)
{
	size_t len = strlen(text);

	if (len < 2 || len > 200 || text[0] != '/' || text[len - 1] == '/' || strstr(text, "//") || strstr(text, "/.") ||
		strcmp(text, "/zookeeper") == 0)
		return false;
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char) *c) && !strchr("/._-", *c))
			return false;
	return true;
}

static bool
is_directory(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Whoever is neither the file's owner nor in its group may do something with it. */
static bool
is_open_to_others(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && (status.st_mode & 07) != 0;
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
	char *message = NULL, problem[512];
	PQconninfoOption *options = PQconninfoParse(loader->config->database, &message);

	if (options)
	{
		PQconninfoFree(options);
		return true;
	}
	snprintf(problem, sizeof(problem), "%s", message ? trim(message) : "out of memory");
	PQfreemem(message);
	return loader_refuse(loader, "database", problem);
}

/* The keys themselves are read again by whoever signs; here they are only looked at. */
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

/* What no single value can tell: combinations, formats, files. */
static bool
loader_check(Loader *loader)
{
	Config *config = loader->config;

	if (config->listen_address[0] == '\0')
		return loader_refuse(loader, "listen-address", "it is empty");
	if (config->public_address[0] == '\0')
	{
		char address[300];
		bool ipv6 = strchr(config->listen_address, ':') != NULL;

		snprintf(address, sizeof(address), ipv6 ? "[%s]:%d" : "%s:%d", config->listen_address, config->listen_port);
		free(config->public_address);
		config->public_address = text_copy(address);
	}
	if (!is_host_port(config->public_address))
		return loader_refuse(loader, "public-address", "it is not host:port");
	if (strcmp(config->coordinator, "zookeeper") == 0 &&
		(strncmp(config->public_address, "0.0.0.0:", 8) == 0 || strncmp(config->public_address, "[::]:", 5) == 0))
		return loader_refuse(loader, "public-address", "nobody can be redirected to it; name this machine");
	if ((config->tls_certificate[0] == '\0') != (config->tls_key[0] == '\0'))
		return loader_refuse(loader, "tls-key", "tls-certificate and tls-key go together");
	if (config->tls_key[0] && is_open_to_others(config->tls_key))
		return loader_refuse(loader, "tls-key", "others may read it: chmod o-rwx");
	if (config->web_root[0] && !is_directory(config->web_root))
		return loader_refuse(loader, "web-root", "there is no such directory");
	if ((config->password_memory & (config->password_memory - 1)) != 0)
		return loader_refuse(loader, "password-memory", "it is not a power of two");
	if (!network_list_is_valid(config->trusted_proxies))
		return loader_refuse(loader, "trusted-proxies", "it is not a list of addresses and networks (10.0.0.0/8)");
	if (!network_list_is_valid(config->admin_networks))
		return loader_refuse(loader, "admin-networks", "it is not a list of addresses and networks (10.0.0.0/8)");
	if (!is_host_list(config->zookeeper_hosts))
		return loader_refuse(loader, "zookeeper-hosts", "it is not a list of host:port");
	if (!is_zookeeper_path(config->zookeeper_root))
		return loader_refuse(loader, "zookeeper-root", "it is not a path of letters, digits, . _ - and /");
	return check_database(loader) && check_jwt_keys(loader);
}

/* Prints text broken at blanks into lines of at most 100 characters, each indented. */
static void
print_help(void)
{
	printf("pg_sheet_gateway serves the sheets of a PostgreSQL database with pg_sheet to browsers.\n\n"
		   "Usage: pg_sheet_gateway [--config=FILE] [--NAME=VALUE ...]\n\n"
		   "A setting takes its value from its default, the file (NAME = VALUE lines), the environment\n"
		   "(listen-port is PG_SHEET_LISTEN_PORT) and the flags; the last one wins. SIGHUP reads them\n"
		   "again and applies those marked with *.\n\n"
		   "  --config=FILE   read this file; default: the one named by PG_SHEET_CONFIG\n"
		   "  --help          print this\n"
		   "  --version       print the version\n");
	settings_print();
}

/* All sources into an empty Config; on failure it is empty again. */
static bool
config_read(Config *config, int argc, char **argv)
{
	Loader loader = {config, {NULL}};
	const char *path;
	bool good = true;

	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < settings_count && good; i++)
		good = loader_set(&loader, &settings[i], settings[i].fallback, "default");
	good = good && find_config_file(argc, argv, &path) && (!path || loader_read_file(&loader, path)) &&
		   loader_read_environment(&loader) && loader_read_flags(&loader, argc, argv) && loader_check(&loader);
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
				print_help();
			else
				printf("pg_sheet_gateway %s\n", CONFIG_VERSION);
			return CONFIG_HELP;
		}
	return config_read(config, argc, argv) ? CONFIG_OK : CONFIG_INVALID;
}

bool
config_reload(Config *config, int argc, char **argv, ConfigSayFn say)
{
	Config fresh;
	bool good;

	config_say_fn = say;
	good = config_read(&fresh, argc, argv);
	for (size_t i = 0; good && i < settings_count; i++)
	{
		const Setting *setting = &settings[i];
		char *old_place = (char *) config + setting->offset;
		char *new_place = (char *) &fresh + setting->offset;
		char swap[sizeof(char *)];
		size_t size = setting_size(setting);

		if (setting_is_text(setting) ? strcmp(*setting_text(setting, config), *setting_text(setting, &fresh)) == 0
									 : memcmp(old_place, new_place, size) == 0)
			continue;
		if (!setting_is_reloadable(setting))
		{
			config_say("setting \"%s\" has changed: that needs a restart", setting->name);
			continue;
		}
		memcpy(swap, old_place, size);
		memcpy(old_place, new_place, size);
		memcpy(new_place, swap, size);
		config_say("setting \"%s\" has changed", setting->name);
	}
	if (good)
		config_free(&fresh);
	config_say_fn = NULL;
	return good;
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
