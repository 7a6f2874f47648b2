/*
 * property_write.h - the properties of a sheet while edits are appended; see property_write.c.
 */
#ifndef PROPERTY_WRITE_H
#define PROPERTY_WRITE_H

#include "journal/write/append.h"

/* Looks up what a property edit replaces, and sets its old value. Returns false if it changes nothing. 54000 if the
 * sheet would have too many properties. Call property_write_apply() after it. */
extern bool property_write_look_up(AppendBatch *append, Edit *edit);
/* 54000 if an insertion would push a property wholly beyond the end of sheets. */
extern void property_write_check_end(const WriterSheet *ws, AppendProperties **properties, const Edit *edit);
/* Applies a property edit or a structure edit that has just been appended. */
extern void property_write_apply(AppendBatch *append, const Edit *edit);
/* Stores the properties if edits have changed them, and frees them. NULL does nothing. */
extern void property_write_end(WriterSheet *ws, AppendProperties *properties);

#endif
