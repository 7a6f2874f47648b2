/* webhooks.h - the changes of sheets are posted to addresses that their owners name; see webhooks.c. */
#ifndef WEBHOOKS_H
#define WEBHOOKS_H

#include "support/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* After client_start() and lookup_start(). */
extern void webhooks_start(void);
extern void webhooks_stop(void);
/* Edits of the sheet were committed, by whomever. Cheap for sheets without webhooks. */
extern void webhooks_edited(int64_t sheet_id);
/* The row of the sheet, or of its webhooks, has changed. */
extern void webhooks_status_changed(int64_t sheet_id);
/* Anything may have changed, in all sheets. */
extern void webhooks_look_at_all(void);
/* For GET /metrics. */
extern void webhooks_print_metrics(Buf *buf);

#endif
