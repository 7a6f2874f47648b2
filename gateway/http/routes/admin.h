/*
 * admin.h - what is for operators only: from the networks of admin-networks, or with the token of admin-token-file.
 */
#ifndef ADMIN_H
#define ADMIN_H

#include "http/request/request.h"

/* True when the request may go on; otherwise answered (403). */
extern bool admin_may(Request *request);

#endif
