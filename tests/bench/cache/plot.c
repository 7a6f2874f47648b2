/* plot.c - see plot.h. */
#include "plot.h"

#include "session.h"

#include <stdio.h>

/* Of the picture, in its own units. */
#define WIDTH  640
#define HEIGHT 400
#define LEFT   70
#define RIGHT  610
#define TOP	   40
#define BOTTOM 340

static double
plot_x(double size)
{
	return LEFT + size * (RIGHT - LEFT);
}

static double
plot_y(double misses)
{
	return BOTTOM - misses * (BOTTOM - TOP);
}

static void
plot_axes(FILE *file)
{
	for (int i = 0; i <= 4; i++)
	{
		double at = i / 4.0;

		fprintf(file, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, plot_y(at), RIGHT);
		fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d %%</text>\n", LEFT - 8, plot_y(at) + 4, i * 25);
		fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d %%</text>\n", plot_x(at), BOTTOM + 20,
				i * 25);
	}
	fprintf(file, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#444\"/>\n", LEFT, TOP, BOTTOM, RIGHT);
	fprintf(
		file,
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">size of the cache, of the bytes of all sheets in use</text>\n",
		(LEFT + RIGHT) / 2, BOTTOM + 45);
	fprintf(file,
			"<text x=\"%d\" y=\"%d\">accesses that find their sheet not in the cache (80 %% of them go to 20 %% of the "
			"sheets)</text>\n",
			LEFT - 40, TOP - 16);
}

static void
plot_line(FILE *file, const PlotPoint *points, int count, int exact, const char *look)
{
	fprintf(file, "<path fill=\"none\" %s d=\"", look);
	for (int i = 0; i < count; i++)
		fprintf(file, "%c%.1f %.1f", i == 0 ? 'M' : 'L', plot_x(points[i].size),
				plot_y(exact ? points[i].exact : points[i].measured));
	fprintf(file, "\"/>\n");
}

static void
plot_legend(FILE *file)
{
	int x = RIGHT - 200, y = TOP + 20;

	fprintf(file, "<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"#1a6fb5\"/><text x=\"%d\" y=\"%d\">measured</text>\n",
			x + 15, y, x + 40, y + 4);
	fprintf(file, "<path d=\"M%d %dh30\" stroke=\"#d9480f\" stroke-width=\"2\" stroke-dasharray=\"5 4\"/>", x, y + 22);
	fprintf(file, "<text x=\"%d\" y=\"%d\">an exact LRU cache</text>\n", x + 40, y + 26);
}

void
plot_write(const char *path, const PlotPoint *points, int count)
{
	FILE *file = fopen(path, "w");

	if (file == NULL)
		fail("%s cannot be written", path);
	fprintf(file,
			"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
			"font-size=\"13\">\n",
			WIDTH, HEIGHT);
	fprintf(file, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, HEIGHT);
	plot_axes(file);
	plot_line(file, points, count, 0, "stroke=\"#1a6fb5\" stroke-width=\"1.5\"");
	plot_line(file, points, count, 1, "stroke=\"#d9480f\" stroke-width=\"2\" stroke-dasharray=\"5 4\"");
	for (int i = 0; i < count; i++)
		fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#1a6fb5\"/>\n", plot_x(points[i].size),
				plot_y(points[i].measured));
	plot_legend(file);
	fprintf(file, "</svg>\n");
	if (fclose(file) != 0)
		fail("%s cannot be written", path);
}
