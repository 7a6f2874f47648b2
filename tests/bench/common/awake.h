/*
 * awake.h - keeps the processors awake.
 *
 * A processor that has nothing to do halts, and to wake it up takes a virtual machine some 20 to 50 us. One client that
 * asks, sleeps, and asks again waits for that twice at each answer, whatever the answer costs.
 */
#ifndef AWAKE_H
#define AWAKE_H

typedef struct Awake Awake;

/* One thread for each processor works from now on, whenever nobody else wants to (SCHED_IDLE). */
extern Awake *awake_begin(void);
extern void awake_end(Awake *awake);

/* How long an idle processor of a virtual machine looks for work before it halts, in microseconds: Linux's cpuidle
 * governor haltpoll, 200 if nobody has said otherwise; 0: it halts at once. -1 where that governor does not work. */
extern double awake_halt_poll_us(void);

#endif
