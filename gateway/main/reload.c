/*
 * reload.c - SIGHUP: settings and files are read again while the gateway serves.
 *
 * If one setting is wrong, none is changed; the same holds for keys. Connections stay open. If a key was removed, live
 * editors are closed (1012), and those whose token it has signed are refused when they return.
 */
#include "main/reload.h"

#include "core/gateway.h"
#include "support/log.h"
#include "ws/room/room.h"
#include "ws/session/session.h"
#include "transport/certificate.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#define ADMIN_TOKEN_MIN 32

/* Is every key of `before` in `after`, with the same secret? */
static bool
reload_keeps_keys(const JwtKeys *before, const JwtKeys *after)
{
	for (int i = 0; i < before->count; i++)
	{
		bool found = false;

		for (int j = 0; j < after->count && !found; j++)
			found = memcmp(&before->keys[i], &after->keys[j], sizeof(JwtKey)) == 0;
		if (!found)
			return false;
	}
	return true;
}

static void
reload_close_sessions(Room *room, void *arg)
{
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
		session_close(session, CLOSE_RESTART, "the signing keys have changed: come again");
}

bool
reload_keys(ConfigSayFn say)
{
	char reason[512], line[1024];
	JwtKeys fresh;
	bool kept;

	if (!jwt_keys_load(&fresh, gateway.config.jwt_key_file, reason, sizeof(reason)))
	{
		snprintf(line, sizeof(line), "jwt-key-file \"%.400s\": %s", gateway.config.jwt_key_file, reason);
		say(line);
		return false;
	}
	kept = reload_keeps_keys(&gateway.keys, &fresh);
	gateway.keys = fresh;
	jwt_cache_clear();
	OPENSSL_cleanse(&fresh, sizeof(fresh));
	if (!kept)
		room_for_each(reload_close_sessions, NULL);
	return true;
}

/* Reads the only line of the file. Sets *reason if that fails. */
static bool
reload_read_token(int fd, char token[ADMIN_TOKEN_MAX + 1], const char **reason)
{
	char text[ADMIN_TOKEN_MAX + 3];
	struct stat status;
	ssize_t len;

	*reason = "it cannot be read";
	if (fd < 0 || fstat(fd, &status) != 0 || (len = read(fd, text, sizeof(text))) < 0)
		return false;
	*reason = "others may read or write it; chmod 600 it";
	if (status.st_mode & 077)
		return false;
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	*reason = "it must hold a token of 32 to 256 letters, digits or . _ ~ + / = -";
	if (len < ADMIN_TOKEN_MIN || len > ADMIN_TOKEN_MAX)
		return false;
	for (ssize_t i = 0; i < len; i++)
	{
		if (!isalnum((unsigned char) text[i]) && memchr("._~+/=-", text[i], 7) == NULL)
			return false;
	}
	memcpy(token, text, (size_t) len);
	token[len] = '\0';
	return true;
}

bool
reload_admin_token(ConfigSayFn say)
{
	char token[ADMIN_TOKEN_MAX + 1] = "", line[1024];
	const char *path = gateway.config.admin_token_file, *reason;
	bool good = true;

	if (path[0] != '\0')
	{
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

		good = reload_read_token(fd, token, &reason);
		if (fd >= 0)
			close(fd);
	}
	if (good)
		memcpy(gateway.admin_token, token, sizeof(token));
	else
	{
		snprintf(line, sizeof(line), "admin-token-file \"%.400s\": %s", path, reason);
		say(line);
	}
	return good;
}

bool
reload_certificate(ConfigSayFn say)
{
	const char *certificate = gateway.config.tls_certificate, *key = gateway.config.tls_key;
	char reason[256], line[1024];

	if (certificate[0] == '\0' || certificate_load(certificate, key, reason, sizeof(reason)))
		return true;
	snprintf(line, sizeof(line), "%s (certificate \"%.300s\", key \"%.300s\")", reason, certificate, key);
	say(line);
	return false;
}

static void
reload_log(const char *line)
{
	log_event(LOG_WARN, "reload", LOG_STR("text", line));
}

void
reload_all(int argc, char **argv)
{
	bool good = config_reload(&gateway.config, argc, argv, reload_log);

	if (good)
	{
		log_setup(gateway.config.log_level, gateway.config.log_format);
		good = reload_keys(reload_log) && reload_certificate(reload_log);
		good = reload_admin_token(reload_log) && good;
	}
	if (good)
		log_event(LOG_INFO, "reloaded", LOG_INT("keys", gateway.keys.count),
				  LOG_STR("signs", gateway.keys.keys[0].kid));
	else
		log_event(LOG_ERROR, "not reloaded: the settings in the messages above are unchanged");
}
