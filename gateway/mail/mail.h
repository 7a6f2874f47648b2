/* mail.h - reminders of calendars by mail; see mail.c. */
#ifndef MAIL_H
#define MAIL_H

#include "support/buf.h"

#include <stdbool.h>

/* Opens connections to the database, if reminder-mail is set. Returns false when the settings are wrong, which is said
 * on stderr, or there is no memory. */
extern bool mail_start(void);
/* Programs that run are killed; the database has their mails sent again. */
extern void mail_stop(void);
/* Mails that are being sent. */
extern int mail_count(void);
extern void mail_print_metrics(Buf *buf);

#endif
