/* reload.h - what SIGHUP reads again; see reload.c. */
#ifndef RELOAD_H
#define RELOAD_H

#include "core/config.h"

#include <stdbool.h>

/* Reads the keys of jwt-key-file; false, with the reason told to say and the former keys kept, when that fails. */
extern bool reload_keys(ConfigSayFn say);
/* The same for the token of admin-token-file, if there is one. */
extern bool reload_admin_token(ConfigSayFn say);
/* Settings, then keys, then whatever else comes from files. What is wrong is logged, and the former state kept. */
extern void reload_all(int argc, char **argv);

#endif
