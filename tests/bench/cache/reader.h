/*
 * reader.h - ways to the cells of a sheet, all through prepared statements with binary parameters and answers.
 */
#ifndef READER_H
#define READER_H

#include "model.h"
#include "report.h"
#include "session.h"

typedef enum Way
{
	WAY_HEAP,	/* rows of a plain table with a primary key */
	WAY_RANGE,	/* rows of sheet.range(): SQL */
	WAY_STREAM, /* bytes of sheet.read_cells(), decoded: what gateways do */
	WAY_FLOOR,	/* as many rows of a table that has nothing else: what PostgreSQL takes to hand rows out */
	WAYS
} Way;

/* heap: with statements on the heap tables, which are there. */
extern void reader_prepare(Session *session, bool heap);
/* Nanoseconds until the client has the cells; every cell is checked after that. */
extern int64_t reader_window(Session *session, Way way, const Model *model, Window window);
/* The same for all cells; *bytes: of them as a stream. Checked against the model as it is, which needs no index. */
extern int64_t reader_whole(Session *session, Way way, const Model *model, int64_t *bytes);
/* One cell, with sheet.get() or from the heap table. */
extern int64_t reader_cell(Session *session, Way way, const Model *model, int32_t row, int32_t col);

#endif
