/* server_file.h - a file of the server, or the output of a program there; see server_file.c. */
#ifndef SERVER_FILE_H
#define SERVER_FILE_H

#include "storage/buffile.h"

/* A temporary copy, at its start, with its size in bytes. 42501 without the rights that COPY needs; the SQLSTATE of the
 * system's error if the file cannot be read; 38000 if the program fails. */
extern BufFile *server_file_copy(const char *path, bool is_program, int64 *size);

#endif
