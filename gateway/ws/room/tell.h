/*
 * tell.h - what is committed goes into a room's streams; see tell.c.
 */
#ifndef TELL_H
#define TELL_H

#include "ws/room/room.h"

/* Who has made one of these stored batches and has a name that is not known here: the first such uid; 0 when there is
 * none. Batches that begin at own_first to own_last do not count. */
extern int64_t tell_unknown_uid(const char *data, size_t len, int64_t own_first, int64_t own_last);
/* A batch of this gateway's. seq: of the sheet when the batch is in it. */
extern void tell_own(Room *room, RoomBatch *batch, int64_t seq);
/*
 * Stored batches, as sheet.apply's `missed` and sheet.tail have them: those behind published_seq, which follows. own,
 * or NULL: one of this gateway's that is among them, from own_first to own_last, after a resend. It is told in its own
 * frames, at the place of the first of its rows, as a whole: who comes then must not be taken to have a part of it.
 */
extern void tell_missed(Room *room, const char *data, size_t len, RoomBatch *own, int64_t own_first, int64_t own_last);
/* The end of a turn's batches: receivers get them when it is theirs. */
extern void tell_done(Room *room);

#endif
