/*
 * json_check.h - is a text JSON as RFC 8259 writes it? For what is passed on as it came: cJSON takes more (control
 * characters in strings, numbers like 01), and a text that another client's parser refuses would break that client.
 */
#ifndef JSON_CHECK_H
#define JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#define JSON_CHECK_DEPTH 256 /* arrays and objects in each other */

/* text[0..len) is one value, with blanks around it; whether it is UTF-8 is checked elsewhere. */
extern bool json_check(const char *text, size_t len);
/* Has it `most` values at most, itself and those in it? For texts that json_check() takes: what cJSON makes of each
 * value is many times its text. */
extern bool json_has_few_values(const char *text, size_t len, size_t most);
/* Is a NUL escaped in it? cJSON would end a string there. */
extern bool json_has_nul(const char *text, size_t len);

#endif
