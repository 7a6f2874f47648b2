/*
 * workload.h - what the users of the benchmark write, and the check of what comes back.
 *
 * Sender s writes random columns of row s, content "test" repeated 0 to 29 times. Edit i of sender s is a pure function
 * of (s, i), so nobody has to carry a sequence number in the edit: whoever reads the stream knows which edit of a
 * sender must come next, and a lost, doubled or swapped edit is one that does not fit (two neighbours are alike once in
 * 3000).
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKLOAD_COLUMNS 100
#define WORKLOAD_REPEATS 30
#define WORKLOAD_WORD	 "test"

typedef struct WorkloadEdit
{
	int col;
	int repeats; /* of WORKLOAD_WORD */
} WorkloadEdit;

/* How far the stream of one sender has been checked, and the cells that follow from it. */
typedef struct WorkloadModel
{
	uint64_t next;	  /* index of the edit that must come next */
	uint64_t missing; /* edits that were skipped */
	uint64_t strange; /* edits that are none of the next WORKLOAD_LOOKAHEAD */
	uint64_t changed; /* edits that changed their cell: those are logged */
	int cells[WORKLOAD_COLUMNS];
} WorkloadModel;

#define WORKLOAD_LOOKAHEAD	 1024
#define WORKLOAD_MESSAGE_MAX 256
#define WORKLOAD_FRAME_MAX	 (WORKLOAD_MESSAGE_MAX + 14)

extern WorkloadEdit workload_edit_at(int sender, uint64_t index);
/* Writes edit `index` as a message of protocol v1, at most WORKLOAD_MESSAGE_MAX bytes with a zero behind; its length.
 */
extern size_t workload_write_message(char *to, int sender, uint64_t index);
/* What to mask the frame of an edit with. */
extern uint32_t workload_mask(uint64_t index);
/* Writes edit `index` as one masked WebSocket frame; returns its length, at most WORKLOAD_FRAME_MAX. */
extern size_t workload_write_frame(char *to, int sender, uint64_t index);
/* Takes a received edit of the sender; its index, or UINT64_MAX when it does not fit. */
extern uint64_t workload_check(WorkloadModel *model, int sender, WorkloadEdit edit);

/* The cells of so many senders that hold something, a line of row, column and repeats each. */
extern void workload_write_cells(const WorkloadModel *models, int senders, const char *path);

/* Reads {"msgType":"modify","body":{"row":..,"col":..,"content":"..",..}}, keys in any order; false when it is anything
 * else. */
extern bool workload_read_message(const char *text, size_t len, int *row, WorkloadEdit *edit);

#endif
