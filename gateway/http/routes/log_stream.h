/* log_stream.h - POST /getsheetlog; see log_stream.c. */
#ifndef LOG_STREAM_H
#define LOG_STREAM_H

typedef struct LogStream LogStream;

extern void log_stream_free(LogStream *log);

#endif
