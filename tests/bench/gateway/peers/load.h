/* load.h - the users of load.c, and what a dialect has to know: how a peer's messages look on its WebSocket. */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct LoadUser LoadUser;

typedef struct Dialect
{
	const char *name;
	const char *path;
	const char *protocol; /* the subprotocol, or NULL */
	int opcode;
	bool stream; /* messages are a stream of bytes, cut into frames anywhere; otherwise each is a frame */
	/* Says what makes the user a member; the answer has to end in load_joined(). */
	void (*hello)(LoadUser *user, int number);
	/* Writes edit `index` of a sender, at most LOAD_EDIT_MAX bytes; its length. */
	size_t (*put_edit)(char *to, int sender, uint64_t index);
	/* Takes the whole messages at the beginning of text, by load_edit() and the like; the length of what it took. */
	size_t (*take)(LoadUser *user, char *text, size_t len);
} Dialect;

#define LOAD_EDIT_MAX 512

extern const Dialect dialect_nchan, dialect_nats, dialect_jetstream;

extern void load_say(LoadUser *user, const char *text, size_t len);
extern void load_joined(LoadUser *user);
/* An edit has come: {"msgType":"modify",...}. */
extern void load_edit(LoadUser *user, const char *text, size_t len);

#endif
