/* workbooks.h - what the routes of workbooks (.xlsx) share. */
#ifndef WORKBOOKS_H
#define WORKBOOKS_H

#include "http/request/request.h"

/* The conversion that a request waits for: the first member of what request->own points to. Zeroed at first. */
typedef struct WorkbookJob
{
	struct WorkbookJob *next;
	Request *request;
	RequestStep done;
	int64_t id; /* 0: it has not begun */
	bool asking;
	uint64_t heard; /* when the database has answered last, or the wait has begun; ms */
} WorkbookJob;

/* The columns that done gets. */
typedef enum WorkbookColumn
{
	WORKBOOK_DONE,
	WORKBOOK_STATUS, /* of the answer */
	WORKBOOK_ANSWER, /* its body: NULL, of a file */
	WORKBOOK_NAME,	 /* of the file */
	WORKBOOK_BYTES
} WorkbookColumn;

/* Takes the id of the job from the result of sheet.workbook_begin(), its first column. False: answered, or gone. */
extern bool workbook_begun(Request *request, const PGresult *res);
/* Calls done when the conversion has ended, unless the request is answered before. Survives lost connections. */
extern void workbook_wait(Request *request, RequestStep done);
/* Removes the job, without waiting for the result. */
extern void workbook_end(WorkbookJob *job);

#endif
