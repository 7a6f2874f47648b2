/*
 * members.h - the sessions of a room, and the cells and ranges that they have locked; see members.c.
 */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "ws/room/room.h"

/* Sessions of all rooms. */
extern size_t members_count(void);
/* Closes all members with the address of this member of the ring; NULL: they come again. */
extern void members_send_away(Room *room, const char *member);
/* Returns whether the room waits for a lock that another gateway has, which can be reached. */
extern bool members_holder_serves(const Room *room);
/* Adds the session to its sheet's room, which is opened if necessary. */
extern void members_add(Session *session);
extern void members_remove(Session *session);
/* The session is closing: its locks and its presence end at the end of the iteration, with members_resign_closing(). */
extern void members_resign_soon(Session *session);
extern void members_resign_closing(Room *room);

/* Locks the cell, renews the session's lock of it, or says why not. The other members are told. */
extern V2Reason members_lock_cell(Session *session, uint32_t row, uint32_t col);
/* Frees the cell if it is locked. Returns V2_REASON_LOCKED if the lock is another holder's. */
extern V2Reason members_unlock_cell(Session *session, uint32_t row, uint32_t col);
/*
 * Locks the range, renews the session's lock of it, or says why not. If the reason is V2_REASON_LOCKED, *conflict is
 * set to the lock or request that is in the way. *waits: the request may wait; set to whether it does. Sends the lock
 * to all members.
 */
extern V2Reason members_lock_range(Session *session, const uint32_t rect[4], bool *waits, const SheetLock **conflict);
/* Frees the range, or ends the request, if it is the session's. */
extern void members_unlock_range(Session *session, const uint32_t rect[4]);
/* Grants the requests that no longer conflict with a lock or an earlier request, and sends the locks to all members.
 * Called once in an iteration, because it compares each request with all locks. */
extern void members_grant_ranges(Room *room);
/* Ends the locks and requests of the session's holder. */
extern void members_end_locks(Session *session);
extern void members_renew_locks(Session *session);
/* Ends the locks that nobody has renewed. */
extern void members_expire_locks(Room *room);
/* When a lease that begins now ends, ms. */
extern uint64_t members_lease_end(void);
/* Returns a session of the holder, NULL when none is left. */
extern const Session *members_find_holder(const Room *room, const LockHolder *holder);

#endif
