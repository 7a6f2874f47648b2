/*
 * zk_holder.c - who holds a sheet's lock, for those who do not want it (see zk_coord.h).
 *
 * A question that was not answered when the session ends is answered by NULL.
 */
#include "coord/zk_coord.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCE_DIGITS 10

struct ZkQuestion
{
	LIST_ENTRY(ZkQuestion) entry;
	ZkCoord *self;
	int64_t sheet_id;
	CoordHolderFn fn;
	void *arg;
};

int64_t
zk_sequence_of(const char *name)
{
	size_t len = strlen(name);
	int64_t sequence = 0;

	if (len < SEQUENCE_DIGITS)
		return -1;
	for (const char *digit = name + len - SEQUENCE_DIGITS; *digit; digit++)
	{
		if (!isdigit((unsigned char) *digit))
			return -1;
		sequence = sequence * 10 + (*digit - '0');
	}
	return sequence;
}

static void
question_answer(ZkQuestion *question, const char *holder)
{
	CoordHolderFn fn = question->fn;
	void *arg = question->arg;

	LIST_REMOVE(question, entry);
	free(question);
	fn(arg, holder);
}

static void
on_holder(void *arg, const ZkReply *reply)
{
	ZkQuestion *question = arg;
	const Coord *coord = &question->self->coord;
	bool known = reply->rc == ZOK && coord_is_member(coord, reply->data) && strcmp(reply->data, coord->member) != 0;

	question_answer(question, known ? reply->data : NULL);
}

static void
on_listed(void *arg, const ZkReply *reply)
{
	ZkQuestion *question = arg;
	int64_t first = INT64_MAX;
	const char *holder = NULL;
	char path[ZK_PATH_MAX];

	for (int i = 0; reply->rc == ZOK && i < reply->child_count; i++)
	{
		int64_t sequence = zk_sequence_of(reply->children[i]);

		if (sequence >= 0 && sequence < first)
		{
			first = sequence;
			holder = reply->children[i];
		}
	}
	if (holder == NULL || !zk_coord_is_up(question->self))
	{
		question_answer(question, NULL);
		return;
	}
	zk_lock_path(question->self, question->sheet_id, holder, path);
	zk_get(question->self->client, path, false, on_holder, question);
}

bool
zk_holder_ask(ZkCoord *self, int64_t sheet_id, CoordHolderFn fn, void *arg)
{
	ZkQuestion *question;
	char path[ZK_PATH_MAX];

	if (!self->serving || !zk_coord_is_up(self))
		return false;
	question = calloc(1, sizeof(*question));
	if (question == NULL)
		return false;
	*question = (ZkQuestion){.self = self, .sheet_id = sheet_id, .fn = fn, .arg = arg};
	LIST_INSERT_HEAD(&self->questions, question, entry);
	zk_lock_path(self, sheet_id, "", path);
	zk_get_children(self->client, path, false, on_listed, question);
	return true;
}

void
zk_holder_end(ZkCoord *self)
{
	while (!LIST_EMPTY(&self->questions))
		question_answer(LIST_FIRST(&self->questions), NULL);
}
