/* encoding.h - which compressed form of an answer a client takes (RFC 9110 12.5.3). */
#ifndef ENCODING_H
#define ENCODING_H

/* How much the client wants the coding, from 0 (not at all) to 1000; accepted: Accept-Encoding, NULL when it is absent.
 */
extern int encoding_quality(const char *accepted, const char *coding);

#endif
