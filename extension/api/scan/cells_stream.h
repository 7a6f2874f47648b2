/* cells_stream.h - cells as streams of edits (edit_codec.h), written into the values that are returned. */
#ifndef CELLS_STREAM_H
#define CELLS_STREAM_H

#include "postgres.h"
#include "journal/journal.h"

typedef struct CellStream
{
	JournalView view; /* its seq is set before the first cell comes */
	bytea **values;	  /* each of them a stream of its own */
	Size count, room;
	MemoryContext context; /* of the values */
	Size max_bytes;		   /* of a value, about */
	Size first_size;	   /* room that the first one gets */
	/* the value that is being written, with its head */
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
/* At least one value: without cells it is a batch of none. 54000 when one is too large. */
extern void stream_end(CellStream *stream);

#endif
