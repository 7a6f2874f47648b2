/* plot.h - misses against the size of the cache, as a picture. */
#ifndef PLOT_H
#define PLOT_H

typedef struct PlotPoint
{
	double size;			/* of the cache, 0 to 1 of the working set */
	double measured, exact; /* misses, 0 to 1 of the accesses */
} PlotPoint;

/* An SVG file; the points go from left to right. */
extern void plot_write(const char *path, const PlotPoint *points, int count);

#endif
