/*
 * cells_stream.c - cells as streams of edits.
 *
 * Each cell is written once, into the bytea that is returned. The header of a batch is written when the batch ends and
 * its number of edits is known. The longest header is reserved; if it is shorter, the batch is moved.
 */
#include "postgres.h"

#include "api/scan/cells_stream.h"
#include "common/edit_write.h"
#include "utils/memutils.h"

#define STREAM_MIN_BYTES 256

void
stream_begin(CellStream *stream, Size max_bytes, Size expected)
{
	memset(stream, 0, sizeof(*stream));
	stream->context = CurrentMemoryContext;
	stream->max_bytes = max_bytes;
	stream->size = stream->first_size = Min(max_bytes, expected) + STREAM_MIN_BYTES;
}

void
stream_begin_again(void *arg)
{
	CellStream *stream = arg;

	while (stream->count > 0)
		pfree(stream->values[--stream->count]);
	if (stream->bytes != NULL)
		pfree(stream->bytes);
	stream->bytes = NULL;
	stream->size = stream->first_size;
}

static void
stream_grow(CellStream *stream, Size needed)
{
	stream->size = Max(stream->size * 2, needed);
	stream->bytes = repalloc_huge(stream->bytes, stream->size);
}

static EditBatch
stream_head(const CellStream *stream, uint32 edits)
{
	return (EditBatch){(uint64) stream->view.seq, 0, edits};
}

/* Begins a batch, and a value if there is none. */
static void
stream_begin_batch(CellStream *stream)
{
	EditBatch longest = stream_head(stream, SHEET_MAX_BATCH_EDITS);

	if (stream->bytes == NULL)
	{
		stream->bytes = MemoryContextAllocHuge(stream->context, stream->size);
		stream->len = VARHDRSZ;
	}
	if (stream->len + EDIT_BATCH_HEAD_MAX > stream->size)
		stream_grow(stream, stream->len + EDIT_BATCH_HEAD_MAX);
	stream->batch = stream->len;
	stream->len += edit_batch_head_size(&longest);
	stream->edits = 0;
	edit_write_batch(&stream->writer, (uint8_t *) stream->bytes + stream->batch, &longest);
}

static void
stream_end_batch(CellStream *stream)
{
	EditBatch longest = stream_head(stream, SHEET_MAX_BATCH_EDITS), batch = stream_head(stream, stream->edits);
	Size reserved = edit_batch_head_size(&longest), head = edit_batch_head_size(&batch);
	char *start = stream->bytes + stream->batch;
	EditWriter writer;

	if (head < reserved)
		memmove(start + head, start + reserved, stream->len - stream->batch - reserved);
	stream->len -= reserved - head;
	edit_write_batch(&writer, (uint8_t *) start, &batch);
}

static void
stream_end_value(CellStream *stream)
{
	stream_end_batch(stream);
	if (stream->count == stream->room)
	{
		stream->room = Max(stream->room * 2, 8);
		stream->values = stream->values == NULL ? MemoryContextAlloc(stream->context, stream->room * sizeof(bytea *))
												: repalloc_huge(stream->values, stream->room * sizeof(bytea *));
	}
	stream->values[stream->count++] = (bytea *) stream->bytes;
	if (stream->len <= MaxAllocSize)
		SET_VARSIZE(stream->bytes, stream->len);
	else
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("the cells are too large for one result"),
						errhint("Read the sheet in parts, or say how many bytes a row may have.")));
	stream->bytes = NULL;
	stream->size = stream->max_bytes + STREAM_MIN_BYTES;
}

/* Writes the first cell, for which there is room, and as many more as fit into the batch. Returns their number. */
static uint32
stream_put(CellStream *stream, const GridCell *cells, uint32 count)
{
	EditWriter writer = stream->writer; /* a local copy can be in registers */
	const uint8_t *end = (uint8_t *) stream->bytes + Min(stream->max_bytes, stream->size);
	uint32 most = Min(count, SHEET_MAX_BATCH_EDITS - stream->edits);
	uint32 done;

	writer.pos = (uint8_t *) stream->bytes + stream->len;
	for (done = 0; done < most; done++)
	{
		const GridCell *cell = &cells[done];
		EditText content = {cell->content, cell->content_len};
		EditText style = {cell->style_len > 0 ? cell->style : NULL, cell->style_len};

		if (done > 0 && (ssize_t) edit_cell_size_bound(content.len, style.len) > end - writer.pos)
			break;
		edit_write_cell(&writer, cell->row, cell->col, content, cell->readable, style);
	}
	stream->len = (char *) writer.pos - stream->bytes;
	stream->edits += done;
	stream->writer = writer;
	return done;
}

/* Makes room for a cell of `needed` bytes, beginning a batch or a value if necessary. */
static void
stream_make_room(CellStream *stream, Size needed)
{
	if (stream->bytes != NULL && stream->edits > 0 && stream->len + needed > stream->max_bytes)
		stream_end_value(stream);
	if (stream->bytes == NULL)
		stream_begin_batch(stream);
	else if (stream->edits == SHEET_MAX_BATCH_EDITS)
	{
		stream_end_batch(stream);
		stream_begin_batch(stream);
	}
	if (stream->len + needed > stream->size)
		stream_grow(stream, stream->len + needed);
}

void
stream_cells(void *arg, const GridCell *cells, uint32 count)
{
	CellStream *stream = arg;

	for (uint32 done = 0; done < count;)
	{
		stream_make_room(stream, edit_cell_size_bound(cells[done].content_len, cells[done].style_len));
		done += stream_put(stream, cells + done, count - done);
	}
}

void
stream_end(CellStream *stream)
{
	if (stream->bytes == NULL)
		stream_begin_batch(stream);
	stream_end_value(stream);
}
