/*
 * person_name.h - which characters the name of a person may have: all that can be seen, in any script. What cannot be
 * seen, or changes how its neighbours are shown, would make two names look alike.
 */
#ifndef SHEET_PERSON_NAME_H
#define SHEET_PERSON_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * NULL when nothing speaks against the name (which must be UTF-8), else what does, as in "must not contain ...".
 * *character (may be NULL) gets the code point that is meant.
 */
extern const char *person_name_problem(const char *name, size_t len, uint32_t *character);

/* The same of one thing, for all that has a name: characters that change the direction of text, so that a name is shown
 * as another one, or a file as one of another kind. */
extern const char *name_direction_problem(const char *name, size_t len, uint32_t *character);

/* Whether no character of the name (UTF-8) can be seen: all are white space, or such as the name of a person may not
 * have. */
extern bool name_is_blank(const char *name, size_t len);

#endif
