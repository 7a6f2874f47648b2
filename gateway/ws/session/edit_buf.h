/*
 * edit_buf.h - edits in the codec's form, collected in a buffer.
 */
#ifndef EDIT_BUF_H
#define EDIT_BUF_H

#include "support/buf.h"
#include "common/edit_codec.h"

/* Behind those that the writer has put there before. */
static inline void
edit_buf_put(Buf *edits, EditWriter *writer, const Edit *edit)
{
	if (!buf_reserve(edits, edit_size_bound(edit)))
		return;
	writer->pos = (uint8_t *) edits->data + edits->len;
	edit_write(writer, edit);
	edits->len = (size_t) ((char *) writer->pos - edits->data);
}

#endif
