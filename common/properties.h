/*
 * properties.h - properties of a sheet: a target, a key and a JSON value each; see properties.c. Pure C; both programs
 * use it.
 *
 * A target is a rectangle. One that has all rows or all columns keeps all of them whatever is inserted or deleted; one
 * that has both is the sheet itself.
 *
 * A property edit (EDIT_PROPERTY) is stored as
 *
 *   row, col   the last row and the last column of the target; 0 if it has all
 *   style      "R C KEY": the first row and the first column in decimal, "*" for all; and the key
 *   content    the value; empty removes the property
 *   old        the value before; empty: there was none
 *
 * So an edit's row and col are those that the sheet has from then on, as for EDIT_RESIZE.
 */
#ifndef PROPERTIES_H
#define PROPERTIES_H

#include "common/edit_codec.h"

#define PROPERTY_MAX_KEY	 64			   /* characters: letters, digits, '_', '-', '.' of ASCII */
#define PROPERTY_MAX_VALUE	 32768		   /* bytes */
#define PROPERTY_MAX_DEPTH	 64			   /* arrays and objects in one another */
#define PROPERTY_MAX_POWER	 308		   /* of ten, in a number: that of a double */
#define PROPERTIES_MAX		 10000		   /* of one sheet ... */
#define PROPERTIES_MAX_BYTES (1024 * 1024) /* ... and bytes of their keys and values */

/* Of the keys that the page uses: what other values would cost every member who opens the sheet. */
#define PROPERTY_MAX_PIXELS	  10000	  /* width, height */
#define PROPERTY_MAX_FROZEN	  1000	  /* rows, and columns */
#define PROPERTY_MAX_ZONE	  64	  /* characters of timezone */
#define PROPERTY_MAX_MERGE	  100000  /* cells of a merge ... */
#define PROPERTIES_MAX_MERGED 1000000 /* ... and of all merges of a sheet */

/* Inclusive. All rows: 0 to SHEET_MAX_ROWS - 1; all columns likewise. */
typedef struct PropertyTarget
{
	uint32_t row0, col0, row1, col1;
} PropertyTarget;

typedef struct Property
{
	PropertyTarget target;
	EditText key;
	EditText value; /* len 0: none */
	uint64_t uid;	/* of the last edit of it */
	uint64_t seq;	/* likewise; 0: not known */
} Property;

static inline bool
property_has_all_rows(const PropertyTarget *target)
{
	return target->row0 == 0 && target->row1 == SHEET_MAX_ROWS - 1;
}

static inline bool
property_has_all_cols(const PropertyTarget *target)
{
	return target->col0 == 0 && target->col1 == SHEET_MAX_COLS - 1;
}

static inline uint64_t
property_target_cells(const PropertyTarget *target)
{
	return (uint64_t) (target->row1 - target->row0 + 1) * (target->col1 - target->col0 + 1);
}

/* ---- one property edit ---- */
/* Reads the property of an edit of the kind EDIT_PROPERTY, seq 0. Returns false if its style is malformed. Whether the
 * target is within the limits of sheets is not checked. */
extern bool property_of(const Edit *edit, Property *property);
/* Returns whether the key can be one. */
extern bool property_is_key(EditText key);
/*
 * Returns whether a JSON value is nested no deeper than PROPERTY_MAX_DEPTH, and its numbers have no exponent beyond
 * PROPERTY_MAX_POWER and fit into a double, so that it can be read everywhere at a bounded cost. What is not JSON may
 * be found good. *deep: it is nested too deep.
 */
extern bool property_value_is_bounded(EditText value, bool *deep);
/* Returns whether the value is the JSON null, which removes a property. */
extern bool property_value_is_null(EditText value);
/* Describes the values that the key of this property allows, if its value (JSON, not null) is not one of them. Returns
 * NULL if the value is allowed, or the key is not one of the page. */
extern const char *property_wanted_value(const Property *property);
/* The number of cells that the property merges. */
extern uint64_t property_merged_cells(const Property *property);
/* Returns the edit that sets the property, or removes it. text: PROPERTY_TEXT_MAX bytes, which the edit refers to. */
#define PROPERTY_TEXT_MAX (2 * 11 + PROPERTY_MAX_KEY)
extern Edit property_edit(const Property *property, char *text);

/* ---- a set of properties ---- */
/* As realloc(); size 0 frees. Returns NULL if there is no memory. */
typedef void *(*PropertiesRealloc)(void *ctx, void *ptr, size_t size);

typedef struct PropertyEntry PropertyEntry;
/* Sorted by key and target, each pair once. */
typedef struct Properties
{
	PropertiesRealloc resize;
	void *ctx;
	PropertyEntry **entries;
	uint32_t count, size;
	size_t bytes;	 /* of keys and values */
	uint64_t merged; /* cells of all merges */
} Properties;

extern void properties_init(Properties *set, PropertiesRealloc resize, void *ctx);
extern void properties_free(Properties *set);
extern const Property *properties_get(const Properties *set, uint32_t index);
/* NULL if there is none. Valid until the next change. */
extern const Property *properties_find(const Properties *set, const PropertyTarget *target, EditText key);
/* Sets the property, or removes it. Returns false if there is no memory; the set is unchanged. */
extern bool properties_put(Properties *set, const Property *property);
/*
 * Moves all properties by a structure edit that line_change_of() accepts. Those whose rows or columns are all deleted
 * are removed. If two of one key get the same target, the one that had fewer cells stays. Returns whether any changed.
 */
extern bool properties_move(Properties *set, const Edit *edit);
/* Returns a property that an insertion would push wholly beyond the end of sheets, or NULL. */
extern const Property *properties_pushed_out(const Properties *set, const Edit *edit);
/* Returns a merge that an insertion would widen so that it, or all merges together, have more cells than allowed; or
 * NULL. */
extern const Property *properties_overgrown(const Properties *set, const Edit *edit);
/* Applies a property edit or a structure edit, and ignores others. Returns false if there is no memory. */
extern bool properties_apply(Properties *set, const Edit *edit, uint64_t seq);

/* As bytes: of each property its seq, then its edit. The same set gives the same bytes; the empty one none. */
extern size_t properties_encode_bound(const Properties *set);
extern size_t properties_encode(const Properties *set, uint8_t *to);
/* Adds the properties to an empty set. Returns false if the bytes are damaged, or if there is no memory. */
extern bool properties_decode(Properties *set, const void *bytes, size_t len);
/* 0 for no bytes. */
extern uint64_t properties_digest(const void *bytes, size_t len);

#endif
