/*
 * handover.h - the world of test_handover.c: its gateways (handover_gateways.c) and its editors (handover_editors.c).
 */
#ifndef HANDOVER_H
#define HANDOVER_H

#include "sim_gateway.h"

#define GATEWAYS	3
#define SHEETS		4
#define EDITORS		8
#define SESSION_MS	2000
#define HANDOVER_MS 4000 /* sim_gateway.c sets handover-seconds */
#define FAULTS_MS	15000
#define PEACE_MS	16000
#define MOVED_MS	2000

typedef struct Gateway
{
	SimProcess process;
	const SimGatewayCalls *calls;
	char address[16];
	bool drains, leaves;
	uint64_t continued;
	uint64_t ended; /* when it refused connections */
} Gateway;

typedef enum EditorState
{
	AWAY,
	CONNECTING,
	LIVE
} EditorState;

typedef struct Editor
{
	int number, sheet;
	EditorState state;
	struct Socket *socket;
	unsigned connection; /* counts */
	Gateway *gateway;
	uint64_t began;			/* when it wanted to be served, or the connection began */
	int hops;				/* redirects since it wants to be served */
	uint64_t waits;			/* since when it wants to be served; 0: it is served, or away */
	uint64_t heard;			/* the last acknowledgement, or the hello */
	uint64_t made, acked;	/* operations */
	uint64_t since;			/* seq that it knows; 0: none */
	uint64_t seen[EDITORS]; /* the last operation of each editor that it was told; UINT64_MAX: unknown */
} Editor;

/* Of a schedule, or of all. */
typedef struct Result
{
	const char *failure; /* the first one */
	long long failed_number;
	long grants, commits, refusals, redirects, moves, kills;
	int longest_way; /* redirects until an editor was served, without faults */
	uint64_t longest_wait, longest_move;
} Result;
/* ---- test_handover.c ---- */

extern bool calm;  /* nothing fails in this schedule */
extern bool peace; /* nothing happens any more */
extern Result result;

/* ---- handover_gateways.c ---- */

extern Gateway *gateways[GATEWAYS];
extern uint64_t changed_at, changed_before; /* when the ring has last changed, and the time before */

/* The gateway of this address, or NULL. */
extern Gateway *gateway_at(const char *address);
/* Starts the gateway, unless it runs. */
extern void gateway_start(int number);
/* The same for sim_after(). */
extern void gateway_starts(void *number);
extern void gateway_kill(Gateway *gateway);
/* In the gateway's process: it stops; it drains, or takes sheets again. */
extern void gateway_stops(void *gateway);
extern void gateway_drains(void *gateway);
/* Whether it takes sheets. */
extern bool gateway_serves(const Gateway *gateway);
extern int gateways_serving(void);
/* Loads a copy of the gateway for each process of a schedule, and builds the rings of all sets of gateways. */
extern void gateways_load(void);

/* ---- handover_editors.c ---- */

extern Editor editors[EDITORS]; /* from 1 */

/* For sim_after(): it connects to any gateway, unless it is connected; and what it does from time to time. */
extern void editor_comes(void *editor);
extern void editor_lives(void *editor);
extern void editor_comes_again(Editor *editor);
/* The gateway notices after some time. */
extern void editor_disconnects(Editor *editor, uint64_t unnoticed);

#endif
