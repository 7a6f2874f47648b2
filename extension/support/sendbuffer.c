/*
 * sendbuffer.c - room for answers to the client.
 *
 * PostgreSQL collects what it sends in 8 kB, and hands them to the system whenever they are full: a window of a sheet
 * takes two calls, of which the first wakes the client for half of its answer, and each row of a whole sheet takes
 * nine. The buffer grows for messages that must not wait for the client, and for no others; so room is asked for as
 * for such a message, which is not put then. It stays for the session.
 */
#include "postgres.h"

#include "support/sendbuffer.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#undef ENABLE_GSS /* its headers are not needed, and nothing else here has them installed */
#include "libpq/libpq.h"

#define SENDBUFFER_SERVER 8192	 /* PostgreSQL's own */
#define SENDBUFFER_MOST	  131072 /* more is sent in parts */
#define SENDBUFFER_AROUND 512	 /* for the messages before and behind a row, and those that tell that it comes */

static int
sendbuffer_put_nothing(char type, const char *bytes, size_t len)
{
	return 0;
}

static void
sendbuffer_grow(Size size)
{
	const PQcommMethods *methods = PqCommMethods;
	PQcommMethods growing = *methods;

	growing.putmessage = sendbuffer_put_nothing;
	PqCommMethods = &growing;
	PG_TRY();
	{
		methods->putmessage_noblock(0, NULL, size);
	}
	PG_FINALLY();
	{
		PqCommMethods = methods;
	}
	PG_END_TRY();
}

void
sendbuffer_expect(Size bytes)
{
	static Size there = SENDBUFFER_SERVER;
	Size wanted = Min(bytes, SENDBUFFER_MOST - SENDBUFFER_AROUND) + SENDBUFFER_AROUND;

	/* A background worker has no client, or sends through a queue. */
	if (wanted <= there || MyProcPort == NULL)
		return;
	there = pg_nextpower2_size_t(wanted);
	sendbuffer_grow(there);
}
