/* report.c - see report.h. */
#include "report.h"

#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FIGURES 128

static Figure figures[MAX_FIGURES];
static int figure_count;

void
report_add(Figure figure)
{
	if (figure_count == MAX_FIGURES)
		fail("too many figures");
	figures[figure_count++] = figure;
}

void
report_section(const char *title)
{
	report_add((Figure){.what = title});
}

void
report_headline(const char *key, const char *what, double value)
{
	report_add((Figure){.ratio = key, .what = what, .values = {-1, value}});
}

/* Above 1: the sheet is better. 0: not known. */
static double
figure_ratio(const Figure *figure)
{
	double heap = figure->values[HEAP], sheet = figure->values[SHEET];

	if (heap <= 0 || sheet <= 0)
		return 0;
	return figure->more_is_better ? sheet / heap : heap / sheet;
}

static void
print_value(double value)
{
	if (value < 0)
		printf(" %12s", "-");
	else
		printf(" %12.*f", value < 10 ? 3 : value < 1000 ? 1 : 0, value);
}

static void
print_row(const Figure *figure)
{
	double ratio = figure_ratio(figure);

	printf("%-58s", figure->what);
	print_value(figure->values[HEAP]);
	print_value(figure->values[SHEET]);
	if (ratio > 0)
		printf(" %8.2f", ratio);
	putchar('\n');
}

static void
print_table(void)
{
	printf("%-58s %12s %12s %8s\n", "(ratio above 1: the sheet is better)", "heap", "sheet", "ratio");
	for (Figure *figure = figures; figure < figures + figure_count; figure++)
		if (figure->key == NULL && figure->ratio == NULL)
			printf("%s\n", figure->what);
		else
			print_row(figure);
}

static void
print_side(const char *name, SideName side)
{
	const char *comma = "";

	printf(",\"%s\":{", name);
	for (Figure *figure = figures; figure < figures + figure_count; figure++)
	{
		if (figure->key == NULL || figure->values[side] < 0)
			continue;
		printf("%s\"%s\":%.4g", comma, figure->key, figure->values[side]);
		comma = ",";
	}
	putchar('}');
}

static void
print_json(void)
{
	const char *comma = "";

	putchar('{');
	for (Figure *figure = figures; figure < figures + figure_count; figure++)
	{
		if (figure->ratio == NULL)
			continue;
		printf("%s\"%s\":%.4g", comma, figure->ratio, figure->key ? figure_ratio(figure) : figure->values[SHEET]);
		comma = ",";
	}
	print_side("heap", HEAP);
	print_side("sheet", SHEET);
	printf("}\n");
}

void
report_print(void)
{
	print_table();
	print_json();
}

static int
compare_numbers(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

double
median(double *values, int count)
{
	qsort(values, count, sizeof(double), compare_numbers);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
