/* report.h - what the view sheet.gateways shows of this gateway; see report.c. */
#ifndef REPORT_H
#define REPORT_H

/* Called once a second. */
extern void report_tick(void);

#endif
