/* doctor.h - logs what sheet.doctor() finds; see doctor.c. */
#ifndef DOCTOR_H
#define DOCTOR_H

/* Called once a second. */
extern void doctor_tick(void);

#endif
