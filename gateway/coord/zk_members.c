/*
 * zk_members.c - who the gateways are (see zk_coord.h).
 *
 * Watches are one-shot, and a member may come and go between a watch and the next read. So a change only says
 * "read again": the children are read with a new watch in one call, their weights and states after that, also with
 * watches, and the whole set replaces the old one. An error keeps the old set: nobody leaves because our connection
 * broke.
 */
#include "coord/zk_coord.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/log.h"

typedef struct MemberRead
{
	ZkCoord *self;
	char *name;
	unsigned weight; /* 0: gone in the meantime, or malformed */
	CoordState state;
	char *peer; /* NULL: not told */
	int rc;
} MemberRead;

/* The words in the data of a member's node. */
static const char *const states[] = {
	[COORD_SERVING] = "serving", [COORD_CUT] = "cut", [COORD_AWAY] = "away", [COORD_DRAINING] = "draining"};

static void
members_path(const ZkCoord *self, char to[ZK_PATH_MAX])
{
	snprintf(to, ZK_PATH_MAX, "%s/members", self->root);
}

static void
own_path(const ZkCoord *self, char to[ZK_PATH_MAX])
{
	snprintf(to, ZK_PATH_MAX, "%s/members/%s", self->root, self->coord.member);
}

/* Every reply begins here; false when the request's outcome is not known or it has to be tried again. */
static bool
take_reply(ZkCoord *self, int rc, bool expected)
{
	self->members.busy = false;
	if (rc == ZOK || expected)
		return true;
	if (zk_is_connection_loss(rc))
		zk_members_step(self); /* does nothing before we are up again */
	else
		zk_coord_retry_later(self);
	return false;
}

static CoordState
state_in(const char *data)
{
	char word[16];

	for (CoordState state = COORD_CUT; state <= COORD_DRAINING; state++)
		if (sscanf(data, "%*s %*s %15s", word) == 1 && strcmp(word, states[state]) == 0)
			return state;
	return COORD_SERVING;
}

/* Names end up in redirects, so a strange one is not a member. */
static bool
is_member_name(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char) name[i]) && strchr(".-_:[]", name[i]) == NULL)
			return false;
	return len > 0 && len <= 255;
}

/* Reads the address in the data of a member's node. There may be none, as in those of gateways before this word.
 * Returns false when there is no memory. */
static bool
read_peer(MemberRead *read, const char *data)
{
	char word[256];

	if (sscanf(data, "%*s %*s %*s %255s", word) != 1 || !is_member_name(word))
		return true;
	read->peer = strdup(word);
	return read->peer != NULL;
}

/* ---- the nodes above, and our own ---- */

/* The step'th node to be made: the parts of the root, members, locks. False when there is no further one. */
static bool
root_path(const ZkCoord *self, int step, char to[ZK_PATH_MAX])
{
	const char *part = self->root;

	for (int i = 0; *part; i++)
	{
		part += 1 + strcspn(part + 1, "/");
		if (i == step)
		{
			snprintf(to, ZK_PATH_MAX, "%.*s", (int) (part - self->root), self->root);
			return true;
		}
		if (!*part && step - i <= 2)
		{
			snprintf(to, ZK_PATH_MAX, "%s/%s", self->root, step - i == 1 ? "members" : "locks");
			return true;
		}
	}
	return false;
}

static void
on_root_made(void *arg, const ZkReply *reply)
{
	ZkCoord *self = arg;

	if (!take_reply(self, reply->rc, reply->rc == ZNODEEXISTS))
		return;
	self->members.roots_made++;
	zk_members_step(self);
}

/* The name is taken: by a former self whose session will end, or by another gateway. */
static void
name_is_taken(ZkCoord *self)
{
	uint64_t now = uv_now(self->coord.loop);
	char reason[512];

	if (self->members.taken_since == 0)
	{
		self->members.taken_since = now;
		log_event(LOG_WARN, "the member name is in use; waiting for the other session to end",
				  LOG_STR("member", self->coord.member));
	}
	if (now - self->members.taken_since <= zk_session_ms(self->client) + ZK_GRACE_MS)
	{
		zk_coord_retry_later(self);
		return;
	}
	snprintf(reason, sizeof(reason),
			 "the member name %s is in use by another gateway; every gateway needs a --public-address of its own",
			 self->coord.member);
	coord_tell_fatal(&self->coord, reason);
}

static void
on_own_looked_at(void *arg, const ZkReply *reply)
{
	ZkCoord *self = arg;

	if (!take_reply(self, reply->rc, reply->rc == ZNONODE))
		return;
	if (reply->rc == ZOK && reply->session != zk_session(self->client))
	{
		name_is_taken(self);
		return;
	}
	/* ours: made by a request whose answer was lost, and whose state may be an older one */
	self->members.made = reply->rc == ZOK;
	if (self->members.made)
	{
		self->members.told = state_in(reply->data);
		self->members.version = reply->version;
	}
	zk_members_step(self);
}

/* Our node says our state, and has a version of this contact. */
static void
own_is_current(ZkCoord *self, int version)
{
	self->members.made = self->members.current = true;
	self->members.version = version;
	zk_members_step(self);
	if (self->serving)
		zk_locks_step_all(self);
}

static void
on_own_made(void *arg, const ZkReply *reply)
{
	ZkCoord *self = arg;
	char path[ZK_PATH_MAX];

	if (reply->rc == ZNONODE) /* somebody removed the nodes above */
		self->members.roots_made = 0;
	if (!take_reply(self, reply->rc, reply->rc == ZNODEEXISTS || reply->rc == ZNONODE))
		return;
	if (reply->rc == ZNODEEXISTS)
	{
		own_path(self, path);
		self->members.busy = true;
		zk_get(self->client, path, false, on_own_looked_at, self);
		return;
	}
	if (reply->rc == ZOK)
		own_is_current(self, 0);
	else
		zk_members_step(self);
}

static void
on_own_set(void *arg, const ZkReply *reply)
{
	ZkCoord *self = arg;

	self->members.made = reply->rc == ZOK; /* otherwise it is looked at again */
	if (!take_reply(self, reply->rc, reply->rc == ZNONODE || reply->rc == ZBADVERSION))
		return;
	if (reply->rc == ZOK)
		own_is_current(self, reply->version);
	else
		zk_members_step(self);
}

/* ---- the set ---- */

static void
free_reads(ZkMembers *members)
{
	for (int i = 0; i < members->read_count; i++)
	{
		free(members->reads[i].name);
		free(members->reads[i].peer);
	}
	free(members->reads);
	members->reads = NULL;
	members->read_count = members->reads_left = 0;
}

/* All weights are read: the new ring. */
static void
use_set(ZkCoord *self)
{
	ZkMembers *members = &self->members;
	CoordMember *set = calloc((size_t) members->read_count + 1, sizeof(*set));
	bool found_own = false;
	int count = 0, rc = set != NULL ? ZOK : ZSYSTEMERROR;

	for (int i = 0; i < members->read_count && set != NULL; i++)
	{
		const MemberRead *read = &members->reads[i];

		if (read->rc != ZOK && read->rc != ZNONODE)
			rc = read->rc;
		if (read->rc != ZOK || read->weight == 0)
			continue;
		set[count++] = (CoordMember){read->name, read->weight, read->state, read->peer};
		found_own = found_own || strcmp(read->name, self->coord.member) == 0;
	}
	if (take_reply(self, rc, false))
	{
		if (!found_own)
			members->made = false;
		if (coord_set_members(&self->coord, set, count))
			members->fresh = !members->again && found_own;
		else
		{
			rc = ZSYSTEMERROR;
			zk_coord_retry_later(self);
		}
	}
	free(set);
	free_reads(members);
	if (rc == ZOK)
	{
		if (!self->serving)
			zk_coord_settled(self);
		zk_members_step(self);
		zk_coord_settled(self);
	}
}

static void
on_weight(void *arg, const ZkReply *reply)
{
	MemberRead *read = arg;
	ZkCoord *self = read->self;

	read->rc = reply->rc;
	if (reply->rc == ZOK)
	{
		read->weight = (unsigned) strtoul(reply->data, NULL, 10);
		if (read->weight > RING_MAX_WEIGHT || reply->session == 0)
			read->weight = 0;
		read->state = state_in(reply->data);
		if (!read_peer(read, reply->data))
			read->rc = ZSYSTEMERROR;
	}
	if (--self->members.reads_left == 0)
		use_set(self);
}

static void
on_names(void *arg, const ZkReply *reply)
{
	ZkCoord *self = arg;
	ZkMembers *members = &self->members;
	char path[ZK_PATH_MAX];
	bool failed = false;

	if (reply->rc == ZNONODE)
		members->roots_made = 0;
	if (!take_reply(self, reply->rc, reply->rc == ZNONODE))
		return;
	members->reads = calloc((size_t) reply->child_count + 1, sizeof(*members->reads));
	for (int i = 0; i < reply->child_count && members->reads != NULL; i++)
		if (is_member_name(reply->children[i]))
		{
			MemberRead *read = &members->reads[members->read_count++];

			read->self = self;
			read->name = strdup(reply->children[i]);
			failed |= read->name == NULL;
		}
	if (members->reads == NULL || failed)
	{
		free_reads(members);
		(void) take_reply(self, ZSYSTEMERROR, false); /* tried again */
		return;
	}
	members->reads_left = members->read_count;
	members->busy = true;
	for (int i = 0; i < members->read_count; i++)
	{
		snprintf(path, sizeof(path), "%s/members/%s", self->root, members->reads[i].name);
		zk_get(self->client, path, true, on_weight, &members->reads[i]);
	}
	if (members->read_count == 0)
		use_set(self);
}

/* ---- what is next ---- */

void
zk_members_step(ZkCoord *self)
{
	ZkMembers *members = &self->members;
	/* A newcomer is in nobody's ring before it knows the others: they would send it clients that it cannot place. */
	CoordState state = self->serving ? members->state : COORD_DRAINING;
	char path[ZK_PATH_MAX], data[320];

	if (members->busy || !zk_coord_is_up(self))
		return;
	if (root_path(self, members->roots_made, path))
	{
		members->busy = true;
		zk_create(self->client, path, "", 0, on_root_made, self);
		return;
	}
	own_path(self, path);
	if (!members->made || !members->current || members->told != state)
	{
		members->busy = true;
		members->current = false;
		members->told = state;
		snprintf(data, sizeof(data), "%u %s %s %s", self->coord.weight, self->nonce, states[members->told],
				 self->coord.peer);
		if (members->made)
			zk_set(self->client, path, data, members->version, on_own_set, self);
		else
			zk_create(self->client, path, data, ZOO_EPHEMERAL, on_own_made, self);
	}
	else if (!members->fresh)
	{
		members->busy = true;
		members->again = false;
		members_path(self, path);
		zk_get_children(self->client, path, true, on_names, self);
	}
}

void
zk_members_suspend(ZkCoord *self)
{
	self->members.fresh = self->members.current = false;
	self->members.taken_since = 0; /* sessions do not end while the servers have no leader */
}

int
zk_members_guard(const ZkCoord *self, char path[ZK_PATH_MAX])
{
	own_path(self, path);
	return self->members.made && self->members.current ? self->members.version : -1;
}

void
zk_members_guard_failed(ZkCoord *self)
{
	self->members.made = false;
	zk_members_step(self);
}

void
zk_members_end(ZkCoord *self)
{
	ZkMembers *members = &self->members;

	free_reads(members);
	*members = (ZkMembers){.state = members->state};
}

bool
zk_members_settled(const ZkCoord *self)
{
	return self->members.fresh && !self->members.busy;
}

bool
zk_members_changed(ZkCoord *self, const char *path)
{
	char own[ZK_PATH_MAX];

	members_path(self, own);
	if (strncmp(path, own, strlen(own)) != 0)
		return false;
	self->members.fresh = false;
	self->members.again = true;
	zk_members_step(self);
	return true;
}
