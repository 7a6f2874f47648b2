/*
 * members.c - the sessions of a room, and the cells and ranges that they have locked.
 */
#include "ws/room/members.h"

#include "core/gateway.h"
#include "core/reach.h"
#include "core/redirect.h"
#include "ws/room/pending.h"
#include "ws/room/publish.h"
#include "ws/room/schedule.h"

#include <string.h>

static size_t members_total;

size_t
members_count(void)
{
	return members_total;
}

void
members_send_away(Room *room, const char *member)
{
	char address[REDIRECT_MAX];

	if (member != NULL)
		redirect_put_address(member, REDIRECT_WEBSOCKET, address);
	for (Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		if (member != NULL)
			session->protocol->close_moved(session, address);
		else
			session_close(session, CLOSE_RESTART, "the gateway stops, or has lost contact with the others: come again");
	}
}

bool
members_holder_serves(const Room *room)
{
	return room->holder != NULL && coord_is_member(gateway.coord, room->holder) &&
		   strcmp(room->holder, gateway.config.public_address) != 0 && !reach_is_refusing(room->holder);
}

/* Returns whether the session can be a member here. Otherwise closes it. room: NULL if there is none. */
static bool
members_may_add(Session *session, const Room *room)
{
	bool is_lost = room != NULL && room->state == ROOM_LOST;
	char address[REDIRECT_MAX];

	if (room != NULL && room->state == ROOM_LOCKING && members_holder_serves(room))
	{
		redirect_put_address(room->holder, REDIRECT_WEBSOCKET, address);
		session->protocol->close_moved(session, address);
	}
	else if ((is_lost || gateway.draining) &&
			 redirect_find(session->sheet_id, REDIRECT_WEBSOCKET, address) == SERVED_ELSEWHERE)
		session->protocol->close_moved(session, address);
	else if (is_lost)
		session_close(session, CLOSE_RESTART, "the sheet is moving");
	else if (!gateway.ready || gateway.stopping ||
			 (gateway.suspended && !coord_holds(gateway.coord, session->sheet_id)))
		session_close(session, CLOSE_RESTART, "the gateway does not serve now");
	else
		return true;
	return false;
}

void
members_add(Session *session)
{
	Room *room = room_find(session->sheet_id);

	if (!members_may_add(session, room))
		return;
	if (room == NULL && (room = room_open(session->sheet_id)) == NULL)
	{
		session_fail(session);
		return;
	}
	if (room->state == ROOM_RELEASED)
		room_set_state(room, ROOM_SERVING);
	session->room = room;
	session->stream = &room->streams[session->form].fanout;
	LIST_INSERT_HEAD(&room->sessions, session, in_room);
	room->session_count++;
	members_total++;
	room_each_protocol(publish_member, room, session, true);
	room->streams[session->form].readers++;
	if (room_is_open(room))
		session->protocol->join(session);
}

/* ---- locks ---- */

uint64_t
members_lease_end(void)
{
	return uv_now(&gateway.loop) + (uint64_t) gateway.config.lease_seconds * 1000;
}

/* Ends a lock, or a request that waits. */
static void
members_end_lock(Room *room, SheetLock *lock)
{
	if (!lock->waits)
		pending_add_lock(room, lock, false);
	locks_remove(&room->locks, lock);
}

/* Locks what is free, or renews it. */
static void
members_hold(Room *room, SheetLock *lock)
{
	lock->waits = false;
	lock->expires = members_lease_end();
	pending_add_lock(room, lock, true);
}

/* Something was freed or deleted: members_grant_ranges() is called at the end of the iteration. */
static void
members_free_ranges(Room *room)
{
	if (room->locks.ranges == NULL)
		return;
	room->ranges_freed = true;
	room_mark_dirty(room);
}

void
members_grant_ranges(Room *room)
{
	SheetLock *lock = NULL;

	if (!room->ranges_freed)
		return;
	room->ranges_freed = false;
	while ((lock = locks_next_free(&room->locks, lock)) != NULL)
	{
		if (members_find_holder(room, &lock->holder) != NULL)
			members_hold(room, lock);
	}
}

V2Reason
members_lock_cell(Session *session, uint32_t row, uint32_t col)
{
	SheetLocks *locks = &session->room->locks;
	LockHolder holder = session_lock_holder(session);
	SheetLock *lock = locks_find(locks, row, col);
	bool own = lock != NULL && locks_same_holder(&lock->holder, &holder);

	if (!session->may_edit)
		return V2_REASON_ROLE;
	if (!own && locks_find_conflict(locks, &holder, (const uint32_t[]){row, col, row, col}, NULL) != NULL)
		return V2_REASON_LOCKED;
	if (lock == NULL && (lock = locks_add(locks, row, col, &holder, 0)) == NULL)
		return V2_REASON_BUSY;
	members_hold(session->room, lock);
	return V2_REASON_NONE;
}

V2Reason
members_lock_range(Session *session, const uint32_t rect[4], bool *waits, const SheetLock **conflict)
{
	SheetLocks *locks = &session->room->locks;
	LockHolder holder = session_lock_holder(session);
	SheetLock *lock = locks_find_range(locks, &holder, rect);

	if (!session->may_edit)
		return V2_REASON_ROLE;
	if (lock == NULL || lock->waits)
		*conflict = locks_find_conflict(locks, &holder, rect, lock);
	*waits = *conflict != NULL && (lock != NULL || *waits);
	if (*conflict != NULL && !*waits)
		return V2_REASON_LOCKED;
	if (lock == NULL && (lock = locks_add_range(locks, rect, &holder)) == NULL)
	{
		*conflict = NULL;
		return V2_REASON_BUSY;
	}
	if (*waits)
		return V2_REASON_LOCKED;
	members_hold(session->room, lock);
	return V2_REASON_NONE;
}

V2Reason
members_unlock_cell(Session *session, uint32_t row, uint32_t col)
{
	LockHolder holder = session_lock_holder(session);
	SheetLock *lock = locks_find(&session->room->locks, row, col);

	if (lock == NULL)
		return V2_REASON_NONE;
	if (!locks_same_holder(&lock->holder, &holder))
		return V2_REASON_LOCKED;
	members_end_lock(session->room, lock);
	members_free_ranges(session->room);
	return V2_REASON_NONE;
}

void
members_unlock_range(Session *session, const uint32_t rect[4])
{
	LockHolder holder = session_lock_holder(session);
	SheetLock *lock = locks_find_range(&session->room->locks, &holder, rect);

	if (lock == NULL)
		return;
	members_end_lock(session->room, lock);
	members_free_ranges(session->room);
}

void
members_end_locks(Session *session)
{
	LockHolder holder = session_lock_holder(session);
	SheetLock *lock;

	while ((lock = locks_find_of(&session->room->locks, &holder, UINT64_MAX)) != NULL)
		members_end_lock(session->room, lock);
	members_free_ranges(session->room);
}

void
members_renew_locks(Session *session)
{
	LockHolder holder = session_lock_holder(session);

	locks_renew(&session->room->locks, &holder, members_lease_end());
}

const Session *
members_find_holder(const Room *room, const LockHolder *holder)
{
	for (const Session *session = LIST_FIRST(&room->sessions); session != NULL; session = LIST_NEXT(session, in_room))
	{
		LockHolder other = session_lock_holder(session);

		if (locks_same_holder(&other, holder) && session->name_json.len > 0 && !session->resigned)
			return session;
	}
	return NULL;
}

void
members_expire_locks(Room *room)
{
	SheetLock *lock;

	while ((lock = locks_find_of(&room->locks, NULL, uv_now(&gateway.loop))) != NULL)
		members_end_lock(room, lock);
	members_free_ranges(room);
}

/* Whoever ignores the close frame stays connected for a while, and must not keep cells locked. */
static void
members_resign(Session *session)
{
	LockHolder holder = session_lock_holder(session);

	if (session->resigned)
		return;
	if (session->state == SESSION_CLOSING)
		LIST_REMOVE(session, in_closing);
	session->resigned = true;
	session->may_edit = false;
	room_each_protocol(publish_member, session->room, session, false);
	/* The members are searched only if there is something to end. */
	if (locks_find_of(&session->room->locks, &holder, UINT64_MAX) != NULL &&
		members_find_holder(session->room, &holder) == NULL)
		members_end_locks(session);
}

void
members_resign_soon(Session *session)
{
	Room *room = session->room;

	LIST_INSERT_HEAD(&room->closing, session, in_closing);
	room_mark_dirty(room);
}

void
members_resign_closing(Room *room)
{
	while (!LIST_EMPTY(&room->closing))
		members_resign(LIST_FIRST(&room->closing));
}

void
members_remove(Session *session)
{
	Room *room = session->room;

	if (session->state == SESSION_JOINING && session->protocol->stop_joining != NULL)
		session->protocol->stop_joining(session);
	publish_forget(session);
	LIST_REMOVE(session, in_room);
	room->session_count--;
	members_total--;
	room->streams[session->form].readers--;
	members_resign(session);
	room_check_end(room);
}
