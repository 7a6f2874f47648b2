/* report.h - figures of both sides: a table, and one line of JSON. */
#ifndef REPORT_H
#define REPORT_H

#include "side.h"

#include <stdbool.h>

typedef struct Figure
{
	const char *key;   /* in the JSON's "heap" and "sheet" */
	const char *what;  /* in the table, with the unit */
	const char *ratio; /* the ratio's key in the JSON; NULL: only in the table */
	bool more_is_better;
	double values[SIDES]; /* negative: there is none */
} Figure;

extern void report_add(Figure figure);
/* A line of the table before the next figure. */
extern void report_section(const char *title);
extern void report_print(void);

extern double median(double *values, int count);

#endif
