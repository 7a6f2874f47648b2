/* writer.h - makes, fills and edits sheets through the API, and the heap table with the same cells. */
#ifndef WRITER_H
#define WRITER_H

#include "model.h"
#include "session.h"

#include <stdbool.h>

/* A connection that can write; durable: its commits wait for the disk. */
extern Session *writer_open(bool durable);
/* A new sheet with a text in every cell. */
extern Model *writer_make(Session *session, const char *name, int32_t rows, int32_t cols, uint64_t seed);
/* One transaction of random edits. */
extern void writer_edit(Session *session, Model *model, int count);
/* A version. */
extern void writer_commit(Session *session, Model *model);

/* The heap table, and the model's cells in it, row by row as the primary key has them. */
extern void writer_make_heap(Session *session, const Model *model);

#endif
