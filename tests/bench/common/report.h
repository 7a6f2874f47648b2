/* report.h - the two sides of a comparison, and their figures: a table, and one line of JSON. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

typedef enum SideName
{
	HEAP,
	SHEET,
	SIDES
} SideName;

/* Who has the turn: in odd rounds the other side goes first. */
static inline SideName
side_of(int round, int turn)
{
	return (SideName) ((round + turn) % SIDES);
}

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
/* A number that has no counterpart on the heap: in the table, and at the top of the JSON. */
extern void report_headline(const char *key, const char *what, double value);
extern void report_print(void);

extern double median(double *values, int count);

#endif
