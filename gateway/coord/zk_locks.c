/*
 * zk_locks.c - the sheets' locks (see zk_coord.h): ZooKeeper's recipe with sequential nodes, so that each waiter
 * watches only the one before it, and the one that has waited longest is next.
 *
 * A lock has one request under way at a time (`busy`), and lock_step() decides after each answer what is to be done
 * next, from what is wanted and what is known:
 *
 *   wanted   no nodes -> make them -> list -> first? verify, granted : watch the predecessor -> (it goes) -> list ...
 *   dropped  delete the nodes -> forget the lock
 *
 * Each contender has two nodes with consecutive numbers, made in one transaction, because other programs recognise
 * and sort contenders by their names:
 *
 *   <id>-__lock__NNNNNNNNNN  kazoo, which recognises only names that end in "__lock__" and ten digits
 *   <id>-lock-NNNNNNNNNN     Curator and go-zookeeper, which sort by what follows "lock-", and the C recipe, which
 * sorts by what follows the last '-'
 *
 * The id begins with a letter, so that Curator sorts the first node after all numbers; so does the C recipe, which
 * would crash on a name without '-'. Here a contender is any child whose name ends in ten digits. Consecutive numbers
 * exclude that a contender of one kind stands between the two and that each waits for the other.
 *
 * The answer to a create may be lost with the connection while the nodes were made. Their names begin with a random id
 * of ours, so before others are made they are looked for (else our own orphans would block the sheet for as long as we
 * live). They might also be made later: a server executes what a closed connection has brought. So a create is done
 * only while the member's node has the version that it had when the create was sent, and this node gets a new version
 * before a lock is looked for (zk_members_guard). The epoch is the czxid of our nodes: it grows from holder to holder
 * also when the parent, and with it the sequence numbers, is made anew. The parent is a container: the server removes
 * it when it has been empty for about a minute. A gateway does not remove it, because a contender of another program
 * may have just looked whether it exists.
 */
#include "coord/zk_coord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_KAZOO	 "-__lock__"
#define NODE_CURATOR "-lock-"

typedef struct ZkLock
{
	SheetEntry entry;
	ZkCoord *self;
	bool wanted;
	bool granted;
	bool busy;		   /* a request is under way */
	bool drop;		   /* the nodes have to go, before others may be made */
	bool maybe_made;   /* they may exist, and their names are not known: list */
	bool twin_gone;	   /* while verifying: the second node is not there */
	bool again;		   /* a watch fired while a request was under way */
	bool watching;	   /* the predecessor; nothing to do until it goes */
	bool verified;	   /* granted: the nodes were seen since contact was last lost */
	bool told_waiting; /* for this coord_acquire() */
	char id[33];	   /* of the nodes to be made or made */
	char node[80];	   /* the first one's name; "" while there is none, or we do not know */
	char twin[80];	   /* the second one's */
	char *first;	   /* the holder's node, when that is not the predecessor */
	int64_t epoch;	   /* of the nodes, once granted */
} ZkLock;

static void lock_step(ZkLock *lock);

void
zk_lock_path(const ZkCoord *self, int64_t sheet_id, const char *child, char to[ZK_PATH_MAX])
{
	snprintf(to, ZK_PATH_MAX, "%s/locks/sheet%lld%s%s", self->root, (long long) sheet_id, child[0] ? "/" : "", child);
}

static void
node_path(const ZkLock *lock, const char *child, char to[ZK_PATH_MAX])
{
	zk_lock_path(lock->self, lock->entry.sheet_id, child, to);
}

/* Requests about a lock's node: the parent's if child is "". The lock is busy until `fn` has its reply. */
static void
lock_get(ZkLock *lock, const char *child, bool watch, ZkReplyFn fn)
{
	char path[ZK_PATH_MAX];

	node_path(lock, child, path);
	lock->busy = true;
	zk_get(lock->self->client, path, watch, fn, lock);
}

static void
lock_delete(ZkLock *lock, const char *child, ZkReplyFn fn)
{
	char path[ZK_PATH_MAX];

	node_path(lock, child, path);
	lock->busy = true;
	zk_delete(lock->self->client, path, fn, lock);
}

/* Forgets a lock that has no request under way. */
static void
lock_free(ZkLock *lock)
{
	if (lock->granted && !lock->verified)
		lock->self->locks.unverified--;
	if (!lock->wanted)
		coord_tell_released(&lock->self->coord, lock->entry.sheet_id);
	sheet_map_remove(&lock->self->locks.map, &lock->entry);
	free(lock->first);
	free(lock);
}

/* Every reply begins here; false when it was no answer: the lock is stepped again when contact is back. */
static bool
take_reply(ZkLock *lock, int rc, bool expected)
{
	lock->busy = false;
	if (rc == ZOK || expected)
		return true;
	if (zk_is_connection_loss(rc))
		lock_step(lock);
	else
		zk_coord_retry_later(lock->self);
	return false;
}

/* The held lock is no longer ours. One of its nodes may be left. */
static void
lock_lose(ZkLock *lock, const char *reason)
{
	ZkCoord *self = lock->self;
	int64_t sheet_id = lock->entry.sheet_id;

	zk_locks_release(self, sheet_id);
	coord_tell_lost(&self->coord, sheet_id, reason);
}

/* ---- making the nodes ---- */

static void
on_parent_made(void *arg, const ZkReply *reply)
{
	ZkLock *lock = arg;

	if (take_reply(lock, reply->rc, reply->rc == ZNODEEXISTS))
		lock_step(lock);
}

static void
on_made(void *arg, const ZkReply *reply)
{
	ZkLock *lock = arg;
	char path[ZK_PATH_MAX];

	if (zk_is_connection_loss(reply->rc) || reply->rc == ZOK)
		lock->maybe_made = true;
	if (reply->rc == ZBADVERSION)
		zk_members_guard_failed(lock->self);
	if (!take_reply(lock, reply->rc, reply->rc == ZNONODE || reply->rc == ZBADVERSION))
		return;
	if (reply->rc == ZNONODE && lock->wanted && !lock->drop)
	{
		node_path(lock, "", path);
		lock->busy = true;
		zk_create(lock->self->client, path, "", ZOO_CONTAINER, on_parent_made, lock);
		return;
	}
	lock_step(lock);
}

static void
make_nodes(ZkLock *lock)
{
	unsigned char random[16];
	char child[64], first[ZK_PATH_MAX], second[ZK_PATH_MAX], guard[ZK_PATH_MAX];
	int version = zk_members_guard(lock->self, guard);

	if (version < 0)
		return; /* stepped again when it has one */
	if (uv_random(NULL, NULL, random, sizeof(random), 0, NULL) != 0)
	{
		zk_coord_retry_later(lock->self);
		return;
	}
	random[0] |= 0xc0; /* the first digit is a letter */
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(lock->id + 2 * i, 3, "%02x", random[i]);
	snprintf(child, sizeof(child), "%s" NODE_KAZOO, lock->id);
	node_path(lock, child, first);
	snprintf(child, sizeof(child), "%s" NODE_CURATOR, lock->id);
	node_path(lock, child, second);
	lock->busy = true;
	zk_create_pair(lock->self->client, guard, version, first, second, lock->self->coord.member,
				   ZOO_EPHEMERAL_SEQUENTIAL, on_made, lock);
}

/* ---- the queue ---- */

static void
on_holder(void *arg, const ZkReply *reply)
{
	ZkLock *lock = arg;
	ZkCoord *self = lock->self;

	if (!take_reply(lock, reply->rc, reply->rc == ZNONODE))
		return;
	if (reply->rc == ZNONODE)
		lock->again = true;
	if (reply->rc == ZOK && lock->wanted && !lock->drop && !lock->told_waiting)
	{
		int64_t sheet_id = lock->entry.sheet_id;

		lock->told_waiting = true;
		coord_tell_waiting(&self->coord, sheet_id, reply->data);
		lock = sheet_map_find(&self->locks.map, sheet_id);
		if (lock == NULL || lock->busy)
			return;
	}
	lock_step(lock);
}

typedef struct QueueLook
{
	const char *node, *twin; /* our own */
	const char *first;
	const char *predecessor;
} QueueLook;

/* The contenders in the order of their numbers. Our own nodes are looked for by the random id. */
static QueueLook
look_at_queue(const ZkLock *lock, const ZkReply *reply)
{
	QueueLook look = {NULL, NULL, NULL, NULL};
	int64_t own = INT64_MAX, first = INT64_MAX, predecessor = -1;
	size_t id_len = strlen(lock->id);

	for (int i = 0; i < reply->child_count; i++)
	{
		const char *child = reply->children[i];

		if (id_len == 0 || strncmp(child, lock->id, id_len) != 0 || zk_sequence_of(child) < 0)
			continue;
		if (strncmp(child + id_len, NODE_KAZOO, strlen(NODE_KAZOO)) == 0)
			look.node = child;
		else
			look.twin = child;
		if (zk_sequence_of(child) < own)
			own = zk_sequence_of(child);
	}
	for (int i = 0; i < reply->child_count; i++)
	{
		int64_t sequence = zk_sequence_of(reply->children[i]);

		if (sequence < 0 || reply->children[i] == look.node || reply->children[i] == look.twin)
			continue;
		if (sequence < first)
		{
			first = sequence;
			look.first = reply->children[i];
		}
		if (sequence < own && sequence > predecessor)
		{
			predecessor = sequence;
			look.predecessor = reply->children[i];
		}
	}
	return look;
}

static void
on_predecessor(void *arg, const ZkReply *reply)
{
	ZkLock *lock = arg;

	/* the watch is set when the node was there */
	lock->watching = reply->rc == ZOK && !lock->again;
	if (reply->rc == ZOK && lock->first != NULL && !lock->told_waiting)
		lock_get(lock, lock->first, false, on_holder);
	else
		on_holder(lock, reply);
}

static void
watch_predecessor(ZkLock *lock, const QueueLook *look)
{
	free(lock->first);
	lock->first = look->predecessor == look->first ? NULL : strdup(look->first);
	lock->again = false;
	lock_get(lock, look->predecessor, true, on_predecessor);
}

/* Answers the request for the second node, which was sent before that for the first: replies come in order. */
static void
on_twin_verified(void *arg, const ZkReply *reply)
{
	ZkLock *lock = arg;

	if (reply->rc == ZSYSTEMERROR)
		lock->again = true; /* there was no memory for the answer */
	lock->twin_gone = reply->rc == ZNONODE || (reply->rc == ZOK && reply->session != zk_session(lock->self->client));
}

static void
on_verified(void *arg, const ZkReply *reply)
{
	ZkLock *lock = arg;
	ZkCoord *self = lock->self;
	bool ours = reply->rc == ZOK && reply->session == zk_session(self->client) && !lock->twin_gone;

	if (!take_reply(lock, reply->rc, reply->rc == ZNONODE))
		return;
	if (!lock->wanted || lock->drop || (!lock->granted && (!ours || !zk_coord_is_up(self))))
		lock_step(lock); /* lists again, if the lock is still wanted */
	else if (!lock->granted)
	{
		lock->granted = lock->verified = true;
		lock->epoch = reply->czxid;
		lock_step(lock);
		coord_tell_granted(&self->coord, lock->entry.sheet_id, reply->czxid);
	}
	else if (!ours || reply->czxid != lock->epoch)
		lock_lose(lock, "the lock's node was removed from ZooKeeper");
	else
	{
		if (!lock->verified)
			self->locks.unverified--;
		lock->verified = true;
		lock_step(lock);
		zk_coord_settled(self);
	}
}

/* Looks at our own nodes, with watches: an administrator may remove them. */
static void
verify(ZkLock *lock)
{
	lock->again = false;
	lock->twin_gone = false;
	lock_get(lock, lock->twin, true, on_twin_verified);
	lock_get(lock, lock->node, true, on_verified);
}

static void
on_listed(void *arg, const ZkReply *reply)
{
	ZkLock *lock = arg;
	QueueLook look;

	if (!take_reply(lock, reply->rc, reply->rc == ZNONODE))
		return;
	lock->maybe_made = false;
	look = look_at_queue(lock, reply);
	snprintf(lock->node, sizeof(lock->node), "%s", look.node != NULL ? look.node : "");
	snprintf(lock->twin, sizeof(lock->twin), "%s", look.twin != NULL ? look.twin : "");
	if ((look.node == NULL) != (look.twin == NULL))
		lock->drop = true; /* somebody has removed one of them */
	if (look.node == NULL || look.twin == NULL || !lock->wanted || lock->drop || lock->granted ||
		!zk_coord_is_up(lock->self))
		lock_step(lock);
	else if (look.predecessor != NULL)
		watch_predecessor(lock, &look);
	else
		verify(lock);
}

static void
list(ZkLock *lock)
{
	char path[ZK_PATH_MAX];

	if (lock->maybe_made && zk_members_guard(lock->self, path) < 0)
		return; /* stepped again when it has one */
	node_path(lock, "", path);
	lock->busy = true;
	lock->again = false;
	lock->watching = false;
	zk_get_children(lock->self->client, path, false, on_listed, lock);
}

/* ---- dropping the nodes ---- */

/* The deletion of the first node follows in the same connection: its reply tells of both. */
static void
on_twin_deleted(void *arg, const ZkReply *reply)
{
}

static void
on_deleted(void *arg, const ZkReply *reply)
{
	ZkLock *lock = arg;

	if (!take_reply(lock, reply->rc, reply->rc == ZNONODE))
		return;
	lock->node[0] = lock->twin[0] = lock->id[0] = '\0';
	lock->drop = false;
	lock_step(lock);
}

static void
lock_step_drop(ZkLock *lock)
{
	const char *last = lock->node[0] ? lock->node : lock->twin;

	if (lock->maybe_made)
		list(lock);
	else if (last[0])
	{
		if (last != lock->twin && lock->twin[0])
			lock_delete(lock, lock->twin, on_twin_deleted);
		lock_delete(lock, last, on_deleted);
	}
	else
	{
		lock->drop = false;
		lock_step(lock);
	}
}

static void
lock_step(ZkLock *lock)
{
	ZkCoord *self = lock->self;

	if (lock->busy)
		return;
	if (!lock->wanted && !lock->drop)
	{
		lock_free(lock);
		return;
	}
	if (!self->serving || !zk_coord_is_up(self))
		return;
	if (lock->drop)
		lock_step_drop(lock);
	else if (lock->granted)
	{
		if (!lock->verified || lock->again)
			verify(lock);
	}
	else if (!lock->node[0] && !lock->maybe_made)
		make_nodes(lock);
	else if (!lock->watching || lock->again)
		list(lock);
}

/* ---- all locks ---- */

/* Calls fn for each lock; fn may free the lock. */
static void
for_each_lock(ZkCoord *self, void (*fn)(ZkLock *lock))
{
	SheetWalk walk;
	ZkLock *lock;

	sheet_walk_begin(&walk, &self->locks.map);
	while ((lock = sheet_walk_next(&walk)) != NULL)
		fn(lock);
}

void
zk_locks_step_all(ZkCoord *self)
{
	for_each_lock(self, lock_step);
}

static void
lock_suspend(ZkLock *lock)
{
	lock->watching = false;
	if (lock->granted && lock->verified)
	{
		lock->verified = false;
		lock->self->locks.unverified++;
	}
}

void
zk_locks_suspend(ZkCoord *self)
{
	for_each_lock(self, lock_suspend);
}

void
zk_locks_end(ZkCoord *self, const char *reason)
{
	SheetWalk walk;
	ZkLock *lock;

	/* first all are put right, then the gateway is told, which may ask for them again */
	sheet_walk_begin(&walk, &self->locks.map);
	while ((lock = sheet_walk_next(&walk)) != NULL)
	{
		bool lost = lock->granted && lock->wanted && !lock->drop;

		lock->busy = lock->drop = lock->maybe_made = lock->again = lock->watching = false;
		lock->node[0] = lock->twin[0] = lock->id[0] = '\0';
		if (lost || !lock->wanted)
			lock_free(lock);
	}
	coord_tell_all_lost(&self->coord, reason);
}

bool
zk_locks_settled(const ZkCoord *self)
{
	return self->locks.unverified == 0;
}

void
zk_locks_changed(ZkCoord *self, const char *path)
{
	size_t prefix = strlen(self->root);
	long long sheet_id;
	ZkLock *lock;

	if (strncmp(path, self->root, prefix) != 0 || sscanf(path + prefix, "/locks/sheet%lld/", &sheet_id) != 1)
		return;
	lock = sheet_map_find(&self->locks.map, sheet_id);
	if (lock == NULL)
		return;
	lock->again = true;
	lock->watching = false;
	lock_step(lock);
}

bool
zk_locks_acquire(ZkCoord *self, int64_t sheet_id)
{
	ZkLock *lock = sheet_map_find(&self->locks.map, sheet_id);

	if (lock == NULL)
	{
		lock = calloc(1, sizeof(*lock));
		if (lock == NULL)
			return false;
		lock->entry.sheet_id = sheet_id;
		lock->self = self;
		sheet_map_add(&self->locks.map, &lock->entry);
	}
	else if (lock->wanted)
		return true;
	lock->wanted = true;
	lock->told_waiting = false;
	lock_step(lock);
	return true;
}

void
zk_locks_release(ZkCoord *self, int64_t sheet_id)
{
	ZkLock *lock = sheet_map_find(&self->locks.map, sheet_id);

	if (lock == NULL || !lock->wanted)
		return;
	if (lock->granted && !lock->verified)
		self->locks.unverified--;
	lock->wanted = lock->granted = false;
	lock->watching = false;
	lock->drop = lock->busy || lock->maybe_made || lock->node[0] || lock->twin[0];
	lock_step(lock);
	zk_coord_settled(self);
}

void
zk_locks_free(ZkCoord *self)
{
	for_each_lock(self, lock_free);
	sheet_map_free(&self->locks.map);
}
