/*
 * reload.c - SIGHUP: settings and files are read again while the gateway serves.
 *
 * All or nothing: settings of which one is wrong change nothing, and so do keys of which one is. Connections stay. When
 * a key has gone, live editors are told to come again (1012): those whose token it had signed are refused then.
 */
#include "reload.h"

#include "gateway.h"
#include "log.h"
#include "room.h"
#include "session.h"
#include "tls.h"

#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>

/* Whether every key of `before` is still there, with the same secret. */
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
reload_check_tokens(Room *room, void *arg)
{
	for (Session *session = room->sessions; session != NULL; session = session->next)
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
	OPENSSL_cleanse(&fresh, sizeof(fresh));
	if (!kept)
		room_for_each(reload_check_tokens, NULL);
	return true;
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
		good = reload_keys(reload_log) && tls_reload(reload_log);
	}
	if (good)
		log_event(LOG_INFO, "reloaded", LOG_INT("keys", gateway.keys.count),
				  LOG_STR("signs", gateway.keys.keys[0].kid));
	else
		log_event(LOG_ERROR, "not reloaded: everything stays as it was");
}
