/*
 * sim.h - a world with a clock of its own, in which several gateways' coordinators run in one thread.
 *
 * sim_loop.c takes the place of libuv and of the time, sim_libzookeeper.c that of libzookeeper, sim_zookeeper.c that of
 * its servers and the network. gateway/coord/ is linked as it is shipped. All chance comes from one seed, so a run can
 * be repeated.
 *
 * Invariant: events run in the order of their time, and in the order in which they were made if the time is the same.
 * Those of a process that is stopped wait, and run in that order when it continues.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define SIM_MS		1000 /* units of time in a millisecond */
#define SIM_SERVERS 3
#define SIM_HOSTS	"server0:1,server1:1,server2:1"
#define SIM_ROOT	"/sim"

/* A gateway's process. */
typedef struct SimProcess
{
	uv_loop_t loop; /* only its address and `data`, which is the process, are used */
	int number;
	bool stopped;
	bool dead;					   /* killed: what it sends reaches nobody, and it gets nothing */
	struct SimEvent *first, *last; /* that wait while it is stopped */
	void (*iterate)(void);		   /* called after each of its events; NULL: nothing is */
} SimProcess;

typedef void (*SimFn)(void *arg);

extern uint64_t sim_now;
extern bool sim_traces;	 /* print what happens, with its time in ms */
extern bool sim_is_calm; /* no message takes long */
extern void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A new world at time 0. */
extern void sim_begin(uint64_t seed);
/* A number from 0 to below - 1. */
extern uint32_t sim_random(uint32_t below);
extern bool sim_percent(unsigned percent);
/* Returns whether a message or a step is one of the few that take long. */
extern bool sim_is_slow(unsigned percent);
/* Runs events up to this time. */
extern void sim_run(uint64_t until);
/* The number in this environment variable, or `otherwise`. */
extern unsigned long sim_setting(const char *name, unsigned long otherwise);
/* Forgets all events. */
extern void sim_end(void);

/* process: NULL for the world. The event can be cancelled until it runs. */
extern struct SimEvent *sim_after(SimProcess *process, uint64_t delay, SimFn fn, void *arg);
extern void sim_cancel(struct SimEvent *event);
extern void sim_continue(SimProcess *process);

/* ---- ZooKeeper and the network: sim_zookeeper.c ---- */

/* Whose event runs; NULL: the world's. */
extern SimProcess *sim_process_now(void);

extern void sim_zookeeper_begin(void);
extern void sim_zookeeper_end(void);
/* The world without further faults: links work, servers run. */
extern void sim_zookeeper_heal(void);
extern void sim_cut_link(SimProcess *process, int server, bool to_server, bool to_client, uint64_t duration);
extern void sim_crash_server(int server, uint64_t duration);
/* It accepts connections, but does nothing, as if it were stopped. */
extern void sim_hang_server(int server, uint64_t duration);
/* Proposals take this long until they are committed. */
extern void sim_slow_disk(uint64_t delay, uint64_t duration);
extern void sim_lose_leader(void);
/* A server that is not the leader. */
extern int sim_follower(void);
/* The process is gone: its connections break. */
extern void sim_kill(SimProcess *process);
/* An administrator removes a random node below a sheet's lock; both: and the other one of the contender. Returns their
 * czxid if the contender has none left, otherwise 0. */
extern int64_t sim_remove_lock_nodes(bool both);
/* Calls fn for each node that the servers have committed. */
extern void sim_each_node(void (*fn)(void *arg, const char *path, int64_t session, int64_t czxid, const char *data),
						  void *arg);

#endif
