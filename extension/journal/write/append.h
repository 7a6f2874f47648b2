/*
 * append.h - edits into the log; see append.c.
 */
#ifndef APPEND_H
#define APPEND_H

#include "postgres.h"
#include "journal/store/version_store.h"
#include "common/edit_codec.h"
#include "journal/write/writer.h"

typedef struct AppendCall
{
	Edit *edits; /* texts live as long as the transaction; changed in place: unchanged edits are taken out */
	uint32 nedits;
	int64 epoch;
	int64 origin;
	int64 batch_no;
	bool follows; /* the batch before it is of the same call: time goes on from there */
	bool padded;  /* WRITER_PAD bytes may be read from where any content begins */
} AppendCall;

typedef struct AppendResult
{
	int64 first_seq; /* 0: nothing was appended */
	int64 last_seq;	 /* the sheet's last seq then */
	int64 at;		 /* of the first edit, Unix microseconds */
} AppendResult;

/* One batch, at most SHEET_MAX_BATCH_EDITS, in as many rows as its bytes need. The edits have been checked. A structure
 * edit is a batch of its own, whose cells are empty already: structure.c. */
extern void append_edits(WriterSheet *ws, const AppendCall *call, AppendResult *result);
/* To be called where edits were found to change nothing. */
extern void append_note_read(const WriterSheet *ws);
/* Stores a version's commit record that was lost, past the writer: for repair. */
extern void append_commit_record(const VersionHead *head);

#endif
