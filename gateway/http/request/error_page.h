/* error_page.h - errors as pages, for people who open an address in a browser; see error_page.c. */
#ifndef ERROR_PAGE_H
#define ERROR_PAGE_H

#include "http/request/request.h"

/* Answers with a page, if the route has some for people, and the client prefers them. False: not answered. */
extern bool error_page_answer(Request *request, int status, const char *reason);

#define STYLE_SOURCE_MAX 64
/* The source in a Content-Security-Policy that permits this style sheet within a page. */
extern void style_source(const char *style, char to[STYLE_SOURCE_MAX]);

#endif
