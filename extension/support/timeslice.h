/*
 * timeslice.h - the scheduler's time slice of a session (pg_sheet.time_slice); see timeslice.c.
 */
#ifndef TIMESLICE_H
#define TIMESLICE_H

/* Defines the setting. From _PG_init. */
extern void time_slice_init(void);

#endif
