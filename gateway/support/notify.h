/*
 * notify.h - tells systemd how this service is (sd_notify(3), by its datagrams). Nothing without NOTIFY_SOCKET.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdbool.h>

/* For example "READY=1\nSTATUS=serving". */
extern void notify_send(const char *state);
/* Once a second: that the loop still turns (WatchdogSec=), and what it does. */
extern void notify_tick(const char *status);

#endif
