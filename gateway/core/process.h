/* process.h - what the operating system knows of this process, under the names that Prometheus has for it. */
#ifndef PROCESS_H
#define PROCESS_H

#include "support/buf.h"

extern void process_print(Buf *buf);

#endif
