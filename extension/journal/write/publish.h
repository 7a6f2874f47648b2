/* publish.h - the end of a transaction that has edited sheets, in the shared grid; cannot fail. See publish.c. */
#ifndef PUBLISH_H
#define PUBLISH_H

#include "journal/write/writer.h"

extern void publish_sheet(WriterSheet *ws);
extern void publish_withdraw(WriterSheet *ws);

#endif
