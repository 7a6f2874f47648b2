/* cells_stream.h - cells as streams of edits (common/edit_codec.h) in values of type bytea. */
#ifndef CELLS_STREAM_H
#define CELLS_STREAM_H

#include "postgres.h"
#include "compat.h"
#include "journal/journal.h"

typedef struct CellStream
{
	JournalView view; /* its seq is set before the first cell is written */
	bytea **values;	  /* each is a stream */
	Size count, room;
	MemoryContext context; /* of the values */
	Size max_bytes;		   /* of a value, about */
	Size first_size;	   /* bytes allocated for the first value */
	/* the value that is being written, with its varlena header */
	char *bytes;
	Size len, size;
	/* its last batch */
	Size batch; /* where it begins */
	uint32 edits;
	EditWriter writer;
} CellStream;

/* expected: bytes of the first value. The values live in the current memory context. */
extern void stream_begin(CellStream *stream, Size max_bytes, Size expected);
/* For a JournalSink. */
extern void stream_begin_again(void *arg);
extern void stream_cells(void *arg, const GridCell *cells, uint32 count);
/* Makes at least one value: without cells, a batch without edits. 54000: a value is too large. */
extern void stream_end(CellStream *stream);

#endif
