/*
 * health.h - whether this gateway can take new editors, and what systemd is told.
 */
#ifndef HEALTH_H
#define HEALTH_H

#include "support/buf.h"

#include <stdbool.h>

/* Queries the database. Called once a second. */
extern void health_tick(void);
/* Whether the last answer is not older than 3 s. */
extern bool health_database_answers(void);
/* Whether new editors may be sent here. If reasons is not NULL, it gets why not, as members of a JSON list. */
extern bool health_is_ready(Buf *reasons);

/* Sends a state to systemd (sd_notify(3)), for example "READY=1\nSTATUS=serving". No effect without NOTIFY_SOCKET. */
extern void health_notify(const char *state);
/* Tells systemd's watchdog that the loop runs, and the status if it has changed. Called once a second. */
extern void health_notify_alive(const char *status);

#endif
