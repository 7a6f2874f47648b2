/*
 * cache_slack.c - what edited tiles have beyond their cells goes before any tile does.
 *
 * Tiles that are being edited have room for the next edits, and garbage of the last ones: mostly a sixteenth of a tile,
 * but as much as its contents when blocks of cells are written over, and more when cells have been emptied. Nobody
 * looks at a tile that is not edited any more; so who needs memory does, before it takes tiles out.
 *
 * Sheets that have been edited wait in a queue, the one that was not looked at for longest first. It is looked at when
 * a part of the cache's size has been asked for since: its tiles that have not been edited since the last look give
 * back what they do not need. So a tile that is edited again and again keeps its room, since it would need it again at
 * once, and one that is not edited any more is copied once.
 *
 * Locks are those of eviction (cache_evict.c): an entry that is locked by others is passed over.
 */
#include "postgres.h"

#include "cache/cache_private.h"

/* For one request for memory there are so many looks, of so many tiles. */
#define SLACK_LOOKS 16
#define SLACK_TILES 16
/* This part of the cache is asked for between two looks at a tile. */
#define SLACK_PART 32

/* ---- the queue, under the directory's lock ---- */

static void
slack_queue(CacheEntry *entry, bool first)
{
	if (entry->slack_queued)
		return;
	entry->slack_queued = true;
	if (first)
		dlist_push_head(&CacheState->slack, &entry->slack_link);
	else
	{
		entry->slack_looked = pg_atomic_read_u64(&CacheState->asked);
		dlist_push_tail(&CacheState->slack, &entry->slack_link);
	}
}

void
cache_unqueue_slack(CacheEntry *entry)
{
	if (!entry->slack_queued)
		return;
	entry->slack_queued = false;
	dlist_delete(&entry->slack_link);
}

/* Who takes it out of the queue locks it afterwards: either he sees the edit, or it is seen here that he took it. */
void
cache_note_edited(CacheEntry *entry)
{
	if (entry->slack_queued)
		return;
	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	slack_queue(entry, false);
	LWLockRelease(&CacheState->directory);
}

/* ---- looking ---- */

/* Takes the first entry out of the queue, and pins it; NULL when none is to be looked at. */
static CacheEntry *
slack_next(void)
{
	uint64 asked = pg_atomic_read_u64(&CacheState->asked);
	CacheEntry *entry = NULL;

	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	if (!dlist_is_empty(&CacheState->slack))
		entry = dlist_head_element(CacheEntry, slack_link, &CacheState->slack);
	if (entry != NULL && asked - entry->slack_looked < CacheState->budget / SLACK_PART)
		entry = NULL;
	if (entry != NULL)
	{
		cache_unqueue_slack(entry);
		pg_atomic_fetch_add_u32(&entry->pins, 1);
	}
	LWLockRelease(&CacheState->directory);
	return entry;
}

typedef enum SlackLook
{
	SLACK_NONE,	 /* no tile has been edited */
	SLACK_GO_ON, /* there are more tiles to look at */
	SLACK_LOOKED
} SlackLook;

static void
slack_put_back(CacheEntry *entry, SlackLook look)
{
	LWLockAcquire(&CacheState->directory, LW_EXCLUSIVE);
	pg_atomic_fetch_sub_u32(&entry->pins, 1);
	if (look != SLACK_NONE)
		slack_queue(entry, look == SLACK_GO_ON);
	LWLockRelease(&CacheState->directory);
}

/* Adds the bytes that tiles of the entry have given back. */
static SlackLook
slack_look_at(CacheEntry *entry, size_t *freed)
{
	bool own = LWLockHeldByMe(&entry->lock);
	SlackLook look = SLACK_LOOKED;
	bool more;

	if (!own && !LWLockConditionalAcquire(&entry->lock, LW_EXCLUSIVE))
		return SLACK_LOOKED;
	if (entry->grid == NULL)
		look = SLACK_NONE;
	else if (!entry->kept)
	{
		*freed += cache_pack(entry, SLACK_TILES, &more);
		look = !more ? SLACK_NONE : entry->slack_at > 0 ? SLACK_GO_ON : SLACK_LOOKED;
	}
	if (!own)
		LWLockRelease(&entry->lock);
	return look;
}

bool
cache_take_slack(size_t wanted)
{
	size_t freed = 0;
	CacheEntry *entry;

	pg_atomic_fetch_add_u64(&CacheState->asked, wanted);
	for (int i = 0; i < SLACK_LOOKS && freed < wanted && (entry = slack_next()) != NULL; i++)
		slack_put_back(entry, slack_look_at(entry, &freed));
	return freed > 0;
}
