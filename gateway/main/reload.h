/* reload.h - what SIGHUP reads again; see reload.c. */
#ifndef RELOAD_H
#define RELOAD_H

#include "core/config.h"

#include <stdbool.h>

/* Reads the keys of jwt-key-file. False: the reason was given to say, and the former keys stay. */
extern bool reload_keys(ConfigSayFn say);
/* The same for the token of admin-token-file, if it is set. */
extern bool reload_admin_token(ConfigSayFn say);
/* The same for tls-certificate and tls-key, if they are set. */
extern bool reload_certificate(ConfigSayFn say);
/* Reads settings, keys, certificate and token. Logs what is wrong, and leaves it unchanged. */
extern void reload_all(int argc, char **argv);

#endif
