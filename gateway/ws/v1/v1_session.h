/*
 * v1_session.h - what clients of protocol v1 send; see v1_session.c.
 */
#ifndef V1_SESSION_H
#define V1_SESSION_H

#include "ws/session/session.h"

/* A whole message of a session that is LIVE. */
extern void v1_handle(Session *session, const char *text, size_t len, bool binary);

#endif
