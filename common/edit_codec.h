/*
 * edit_codec.h - the bytes in which edits travel and rest.
 *
 * One format for three places: the parameter of sheet.apply, the data of a stored
 * batch (its edits only: its row has the rest), and what sheet.tail and sheet.read_cells return. Pure C, no allocation,
 * no PostgreSQL: both programs, the unit tests and the fuzzer link it.
 *
 *   stream := batch*
 *   batch  := u8 version(=1) uvarint first_seq uvarint at uvarint count edit{count}
 *   edit   := u8 head
 *             [uvarint uid]          absent when head has EDIT_SAME_UID (same as the edit before)
 *             [uvarint row]          absent when head has EDIT_SAME_ROW
 *             uvarint col
 *             uvarint len, bytes     content (UTF-8, no NUL)
 *             [uvarint len, bytes]   style, when head has EDIT_HAS_STYLE
 *             [uvarint len, bytes]   old content, when head has EDIT_HAS_OLD
 *   head   := low 4 bits kind, high 4 bits EDIT_* flags
 *
 * uvarint is LEB128 of an unsigned 64-bit number, at most 10 bytes, no overlong check beyond that.
 * uid is the number of edit_uid_to_number(). at is microseconds since the Unix epoch; edit i of a batch has seq
 * first_seq + i and time at + i. In sheet.apply's parameter first_seq and at are 0. In sheet.read_cells' result kind is
 * EDIT_SET, uid 0, first_seq the seq at which the cells hold; many cells are several batches.
 */
#ifndef EDIT_CODEC_H
#define EDIT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EDIT_CODEC_VERSION 1

/* Limits of a sheet, checked before anything is logged. */
#define SHEET_MAX_ROWS			16777216
#define SHEET_MAX_COLS			16384
#define SHEET_MAX_CHARS			32767 /* characters of a cell's content */
#define SHEET_MAX_CONTENT_BYTES (SHEET_MAX_CHARS * 4)
#define SHEET_MAX_STYLE_BYTES	4096
#define SHEET_MAX_BATCH_EDITS	65536
#define SHEET_MAX_BATCH_BYTES	(16 * 1024 * 1024)

/* A limit as a string constant. */
#define TEXT_OF(number)	   TEXT_OF_IT(number)
#define TEXT_OF_IT(number) #number

typedef enum EditKind
{
	EDIT_SET = 1,	   /* content of a cell, and its style when present */
	EDIT_STYLE = 2,	   /* style only; content is empty and ignored */
	EDIT_RESIZE = 3,   /* the sheet has at least row + 1 rows and col + 1 columns */
	EDIT_COMMIT = 4,   /* end of a segment; row is the VersionCause, col 0, shown as -1; content is the label */
	EDIT_ROLLBACK = 5, /* marker before the edits that bring version `row` back */
	/* Structure edits: `row` (`col`) is the first of the lines that come or go, the other one 0; content is how many,
	 * in decimal. The cells of lines that go, and of those that an insert would push beyond the end, are empty before.
	 */
	EDIT_INSERT_ROWS = 6,
	EDIT_DELETE_ROWS = 7,
	EDIT_INSERT_COLUMNS = 8,
	EDIT_DELETE_COLUMNS = 9,
	EDIT_PROPERTY = 10, /* a property of the sheet; the form is in properties.h */
} EditKind;

#define EDIT_KIND_LAST EDIT_PROPERTY

#define EDIT_KIND_MASK 0x0F
#define EDIT_HAS_STYLE 0x10
#define EDIT_HAS_OLD   0x20
#define EDIT_SAME_UID  0x40
#define EDIT_SAME_ROW  0x80

/* Why a version was made. Stored with the version and in its commit record. */
typedef enum VersionCause
{
	VERSION_BY_COMMIT,	 /* sheet.commit */
	VERSION_BY_ROLLBACK, /* sheet.rollback */
	VERSION_BY_LENGTH,	 /* the open segment had become long */
	VERSION_BY_EVICTION, /* the cache evicted the sheet */
	VERSION_CAUSES
} VersionCause;

/* True for versions that a background worker makes. */
static inline bool
version_is_automatic(VersionCause cause)
{
	return cause >= VERSION_BY_LENGTH;
}

typedef struct EditText
{
	const char *data; /* not terminated; NULL when absent */
	uint32_t len;
} EditText;

typedef struct Edit
{
	EditKind kind;
	uint64_t uid;
	uint32_t row;
	uint32_t col;
	EditText content;
	EditText style; /* data NULL: not part of the edit */
	EditText old;	/* data NULL: not part of the edit */
} Edit;

/*
 * Guests, who have opened a sheet by a share link, have negative uids: -n by the link n, which is below 2^52. In these
 * bytes and in messages, where numbers have no sign and clients know those below 2^53, 2^52 + n stands for it. No
 * account has such a uid; here it would change places with the guest's.
 */
#define EDIT_GUEST_BASE (UINT64_C(1) << 52)

static inline uint64_t
edit_uid_to_number(uint64_t uid)
{
	return uid > 0 - EDIT_GUEST_BASE || uid - EDIT_GUEST_BASE - 1 < EDIT_GUEST_BASE - 1 ? EDIT_GUEST_BASE - uid : uid;
}

static inline uint64_t
edit_uid_of_number(uint64_t number)
{
	return edit_uid_to_number(number);
}

static inline bool
edit_is_of_cell(EditKind kind)
{
	return kind == EDIT_SET || kind == EDIT_STYLE;
}

/* Sets the least size of the sheet, or a property that lies within it. Of edits of the log, in which a property is
 * removed only where the sheet has it. Before an edit is stored, ask edit_extends(). */
static inline bool
edit_is_of_extent(EditKind kind)
{
	return kind == EDIT_RESIZE || kind == EDIT_PROPERTY;
}

/* Returns whether row, column, content and style lie within the limits of sheets. The row of EDIT_ROLLBACK is a
 * version, which may be any. */
static inline bool
edit_is_within_limits(const Edit *edit)
{
	return (edit->row < SHEET_MAX_ROWS || edit->kind == EDIT_ROLLBACK) && edit->col < SHEET_MAX_COLS &&
		   edit->content.len <= SHEET_MAX_CONTENT_BYTES &&
		   (edit->style.data == NULL || edit->style.len <= SHEET_MAX_STYLE_BYTES);
}

/* Returns whether a sheet has the edit's row and column from then on. Beyond its end there are neither cells nor
 * properties, and an edit that only removes one is not stored. */
static inline bool
edit_extends(const Edit *edit)
{
	if (edit_is_of_cell(edit->kind))
		return edit->content.len > 0 || edit->style.len > 0;
	return edit->kind == EDIT_RESIZE || (edit->kind == EDIT_PROPERTY && edit->content.len > 0);
}

static inline bool
edit_is_structure(EditKind kind)
{
	return kind >= EDIT_INSERT_ROWS && kind <= EDIT_DELETE_COLUMNS;
}

static inline bool
edit_is_of_rows(EditKind kind)
{
	return kind == EDIT_INSERT_ROWS || kind == EDIT_DELETE_ROWS;
}

/* A structure edit: n rows or columns are inserted before the one at `at`, or deleted beginning with it. */
typedef struct LineChange
{
	bool rows;
	bool insert;
	uint32_t at;
	uint32_t n;
} LineChange;

/* Returns false unless it is a structure edit as it should be: n is at least 1, and the lines are within the limits of
 * sheets. */
extern bool line_change_of(const Edit *edit, LineChange *change);
/* The edit that makes the change. text: LINE_CHANGE_TEXT bytes, which the edit refers to. */
#define LINE_CHANGE_TEXT 9
extern Edit line_change_edit(const LineChange *change, uint64_t uid, char *text);

/* The number of rows (columns) that sheets have at most. */
static inline uint32_t
line_limit(bool rows)
{
	return rows ? SHEET_MAX_ROWS : SHEET_MAX_COLS;
}

/* Both programs compute the following, and the page does so as well (gateway/web/src/v2/lines.ts). */

/* The number of rows, or columns, that a sheet has after the change. A sheet has at least one row and one column. */
static inline uint32_t
extent_after(const LineChange *change, uint32_t extent)
{
	uint32_t limit = line_limit(change->rows), at = change->at, n = change->n;

	if (change->insert)
	{
		uint32_t from = at > extent ? at : extent;

		return limit - from < n ? limit : from + n;
	}
	if (at >= extent)
		return extent;
	if (extent - at > n)
		return extent - n;
	return at > 0 ? at : 1;
}

/* Moves the lines *first to *last, *first <= *last. Lines that are inserted between them are added; what is pushed
 * beyond the limit is lost. Returns false if none of them is left. */
static inline bool
extent_move(const LineChange *change, uint32_t *first, uint32_t *last)
{
	uint32_t limit = line_limit(change->rows), at = change->at, n = change->n, end = at + n;

	if (*last < at)
		return true;
	if (change->insert)
	{
		*first += *first >= at ? n : 0;
		*last = limit - 1 - *last < n ? limit - 1 : *last + n;
		return *first < limit;
	}
	if (*first >= at && *last < end)
		return false;
	*first = *first < at ? *first : *first < end ? at : *first - n;
	*last = *last < end ? at - 1 : *last - n;
	return true;
}

typedef struct EditBatch
{
	uint64_t first_seq;
	uint64_t at;
	uint32_t count;
} EditBatch;

/* Why a decode stopped; edit_error_text() says it in words. */
typedef enum EditError
{
	EDIT_OK = 0,
	EDIT_END,		  /* no more edits or batches: not an error */
	EDIT_TRUNCATED,	  /* bytes end inside an edit */
	EDIT_BAD_VERSION, /* not a batch of this version */
	EDIT_BAD_KIND,	  /* unknown kind */
	EDIT_BAD_NUMBER,  /* a varint over its range (64 bits, or 32 for row, col, lengths, count) */
	EDIT_TOO_MANY,	  /* count over SHEET_MAX_BATCH_EDITS */
} EditError;

/* ---- decoding: pointers into the given bytes, which must outlive the edits ---- */
typedef struct EditReader
{
	const uint8_t *pos;
	const uint8_t *end;
	uint32_t left; /* edits of the current batch not yet read */
	uint64_t uid;  /* of the edit before */
	uint32_t row;
} EditReader;

extern void edit_reader_init(EditReader *reader, const void *data, size_t len);
/* To read the edits of a batch that is stored without its header. */
extern void edit_reader_init_edits(EditReader *reader, const void *data, size_t len, uint32_t count);
/* The next batch's header. Call it when the batch before is used up; EDIT_END at the end of the stream. */
extern EditError edit_read_batch(EditReader *reader, EditBatch *batch);
/* The next edit of the current batch; EDIT_END after its last. */
extern EditError edit_read(EditReader *reader, Edit *edit);
/* Passes over the next edit and says its kind, several times as fast. A batch is read either this way or by
 * edit_read(). Lengths are not trusted; that a uid, a row or a column is too large may go unnoticed. */
extern EditError edit_read_kind(EditReader *reader, EditKind *kind);
extern const char *edit_error_text(EditError error);

/* ---- encoding into memory of the caller ---- */
typedef struct EditWriter
{
	uint8_t *pos; /* next byte to write */
	bool first;
	uint64_t uid;
	uint32_t row;
} EditWriter;

#define EDIT_BATCH_HEAD_MAX 32
/* Upper bound of the bytes that an edit takes. */
static inline size_t
edit_size_bound(const Edit *edit)
{
	return 64 + (size_t) edit->content.len + edit->style.len + edit->old.len;
}
/* Write a batch's header / an edit at writer->pos, which must have room (EDIT_BATCH_HEAD_MAX, edit_size_bound). */
extern void edit_write_batch(EditWriter *writer, uint8_t *to, const EditBatch *batch);
/* Begins a batch that is stored without its header. */
extern void edit_write_edits(EditWriter *writer, uint8_t *to);
extern void edit_write(EditWriter *writer, const Edit *edit);
/* Bytes of a batch header; to prepend one when the edits were written before their count was known. */
extern size_t edit_batch_head_size(const EditBatch *batch);

#endif
