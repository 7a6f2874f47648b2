/* repeat.c - the log lines about what fails and is tried again; see repeat.h. */
#include "support/repeat.h"

#include <stdio.h>
#include <string.h>

#define REPEAT_LOG_MS 60000

bool
repeat_failed(Repeat *repeat, uint64_t now, const char *reason)
{
	bool other = strncmp(repeat->reason, reason, sizeof(repeat->reason) - 1) != 0;

	if (repeat->failures++ == 0)
		repeat->since = now;
	else if (!other && now - repeat->logged < REPEAT_LOG_MS)
		return false;
	snprintf(repeat->reason, sizeof(repeat->reason), "%s", reason);
	repeat->logged = now;
	return true;
}

void
repeat_ended(Repeat *repeat, uint64_t now, const char *event, LogField about)
{
	if (repeat->failures > 0)
		log_event(LOG_INFO, event, about, LOG_INT("failures", repeat->failures), LOG_INT("ms", now - repeat->since));
	*repeat = (Repeat){.failures = 0};
}
