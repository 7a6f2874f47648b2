/* handover.h - moves a sheet to the gateway that the ring names as its owner; see handover.c. */
#ifndef HANDOVER_H
#define HANDOVER_H

#include "ws/room/room.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Events of the coordinator. */
extern void handover_waiting(int64_t sheet_id, const char *holder);
extern void handover_released(int64_t sheet_id);
/* Once a second, and more often while the gateway drains: begins the moves that are due. */
extern void handover_tick(Room *room);
/* In each iteration, of an open room: goes on with the move that has begun. */
extern void handover_continue(Room *room);

/* ---- all sheets ---- */
/* finish: called after drain_and_stop(), again and again, when nothing is left that is a room's; at_once: or in any
 * case. */
extern void drain_open(void (*finish)(bool at_once));
/* Begins to move the sheets away; the gateway runs on. */
extern void drain_begin(void);
/* Takes sheets again, unless the gateway is to stop. */
extern void drain_cancel(void);
/* The gateway serves for notice_ms more, then drains and ends. A second call begins the drain, one during it ends the
 * gateway at once. */
extern void drain_and_stop(uint64_t notice_ms);
extern uv_handle_t *drain_handle(void);

#endif
