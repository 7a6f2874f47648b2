/*
 * append.h - edits into rows of log_batch; see append.c.
 */
#ifndef APPEND_H
#define APPEND_H

#include "journal/store/version_store.h"
#include "journal/write/writer.h"

/* The sheet's properties, as far as edits need them (property_write.c). */
typedef struct AppendProperties AppendProperties;

typedef struct AppendCall
{
	Edit *edits; /* their texts live as long as the (sub)transaction; `old` is set */
	uint32 nedits;
	int64 epoch;
	int64 origin;
	int64 batch_no;
	bool follows;				   /* the previous batch is of the same call: time continues from there */
	bool nowait;				   /* nothing may wait for a lock of another transaction */
	AppendProperties **properties; /* those of a call of several batches, or NULL; see property_write_end() */
} AppendCall;

typedef struct AppendResult
{
	int64 first_seq; /* 0: nothing was appended */
	int64 last_seq;	 /* the sheet's last seq */
	int64 at;		 /* of the first edit, Unix microseconds */
} AppendResult;

/* A batch being appended. */
typedef struct AppendBatch
{
	WriterSheet *ws;
	const AppendCall *call;
	AppendResult *result;		   /* of the rows that are stored */
	bool changed;				   /* the change was begun */
	bool formulas;				   /* some contents are formulas */
	bool names;					   /* some formulas have names of sheets */
	AppendProperties **properties; /* of the call; NULL: not read */
	/* the next row */
	uint32 count; /* edits */
	bytea *data;  /* encoded, without the batch's header, whose values are columns of the row */
	Size size;
	EditWriter writer;
} AppendBatch;

extern void append_begin(AppendBatch *append, WriterSheet *ws, const AppendCall *call, AppendResult *result);
/* Encodes an edit. Stores a row when it is full. */
extern void append_edit(AppendBatch *append, const Edit *edit);
/* Stores the last row. Returns false if there was no edit. */
extern bool append_end(AppendBatch *append);
/* Stores a version's commit record that was lost, without a WriterSheet: for repair. */
extern void append_commit_record(const VersionHead *head);

#endif
