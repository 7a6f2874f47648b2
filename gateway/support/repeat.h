/*
 * repeat.h - the log lines about what fails and is tried again: one when it begins to fail, one when it fails for
 * another reason, one each minute, and one when it works again.
 */
#ifndef REPEAT_H
#define REPEAT_H

#include "support/log.h"

#include <stdbool.h>
#include <stdint.h>

/* {0}: nothing has failed. */
typedef struct Repeat
{
	char reason[48]; /* of the last failure; cut */
	uint64_t failures;
	uint64_t since;	 /* ms */
	uint64_t logged; /* ms */
} Repeat;

/* Counts a failure at `now` (ms). Returns whether it is to be logged. */
extern bool repeat_failed(Repeat *repeat, uint64_t now, const char *reason);
/* Ends the failures. If there were any, logs the event with `about`, their number and their time. */
extern void repeat_ended(Repeat *repeat, uint64_t now, const char *event, LogField about);

#endif
