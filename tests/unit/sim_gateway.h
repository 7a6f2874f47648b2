/*
 * sim_gateway.h - gateways with their sessions and rooms in a simulated world (sim.h), for test_handover.c.
 *
 * A gateway's code has global variables, so each simulated process loads a copy of it: a shared library of
 * sim_gateway.c and of gateway/coord/, gateway/ws/ and what they call, as they are shipped. In the program are what is
 * simulated:
 *
 *   sim_loop.c, sim_zookeeper.c, sim_libzookeeper.c   see sim.h
 *   sim_children.c   processes, one for each schedule
 *   sim_socket.c     the WebSockets between clients and gateways, instead of gateway/ws/wire/socket.c
 *   sim_database.c   PostgreSQL with pg_sheet, instead of gateway/core/database.c and gateway/db/
 */
#ifndef SIM_GATEWAY_H
#define SIM_GATEWAY_H

#include "sim.h"

struct Socket;

/* The functions of a library, which exports them as `sim_gateway_calls`. Call them in events of the process. */
typedef struct SimGatewayCalls
{
	/* Starts the gateway. ended: it has drained, or cannot go on. */
	void (*start)(SimProcess *process, const char *address, void (*ended)(SimProcess *process));
	void (*accept)(struct Socket *socket, int64_t sheet_id); /* a client of protocol v2 has connected */
	void (*stop)(void);										 /* as SIGTERM does */
	void (*drain)(bool drain);								 /* as POST /admin/drain does, or its end */
	void (*fail)(int64_t sheet_id);							 /* there is no memory for the sheet */
	/* These may be called at any time. */
	const char *(*owner)(int64_t sheet_id); /* by its ring; NULL: it has none */
	bool (*holds)(int64_t sheet_id);		/* the lock */
	bool (*serves)(int64_t sheet_id);		/* edits of the sheet are sent to the database, or may be at any moment */
} SimGatewayCalls;

/* A gateway gets a lock. */
extern void sim_on_granted(SimProcess *process, int64_t sheet_id, int64_t epoch);
/* Does the member refuse connections? */
extern bool sim_is_refusing(const char *address);
/* A promise is broken, if it is not kept. The first one of a schedule counts. */
extern void sim_promise(bool kept, const char *what, int64_t number);

/* ---- sim_children.c ---- */

/*
 * Runs the schedules of `count` seeds, each in a process of its own. There, run() leaves its result in *result, of
 * `size` bytes. Here, ended() gets it; NULL: the process has ended without a result.
 */
extern void sim_run_children(uint64_t first, uint64_t count, void (*run)(uint64_t seed), const void *result,
							 size_t size, void (*ended)(uint64_t seed, const void *result));

/* ---- sim_socket.c ---- */

/* Functions that the socket calls at the client's end. `closed` is the last call. */
typedef struct SimClient
{
	void (*message)(void *arg, const char *text, size_t len);
	void (*closed)(void *arg, int code, const char *reason); /* code 0: the connection broke, or was refused */
} SimClient;

extern struct Socket *sim_connect(SimProcess *process, const SimGatewayCalls *calls, int64_t sheet_id,
								  const SimClient *client, void *arg);
/* The text is copied. */
extern void sim_send(struct Socket *socket, const char *text, size_t len);
/* The client ends the connection. The gateway learns of it after a while. */
extern void sim_disconnect(struct Socket *socket, uint64_t after);
/* The process has ended: all its connections break. */
extern void sim_disconnect_all(SimProcess *process);

/* ---- sim_database.c ---- */

/* A commit takes half of this at least; 0: most take less than 20 ms. */
extern unsigned sim_commit_ms;
/* A new process connects. Returns its connection for groups. */
extern struct PgConn *sim_database_open(SimProcess *process);
/* The process's connections break, and are up again after a while. Some of what was sent is still executed. */
extern void sim_database_break(SimProcess *process, uint64_t duration);
/* Another transaction holds the sheet. */
extern void sim_database_hold(int64_t sheet_id, uint64_t duration);
/* The world without further faults. */
extern void sim_database_heal(void);
extern bool sim_database_answers(SimProcess *process);
/* The last operation of the editor in the sheet's log. */
extern uint64_t sim_log_last(int64_t sheet_id, int64_t uid);
/* Does another process write the sheet: has a batch been sent that is not answered? */
extern bool sim_database_is_written(int64_t sheet_id, const SimProcess *except);
/* Batches that were refused because of their epoch. */
extern long sim_database_refusals(void);
extern long sim_database_commits(void);

#endif
