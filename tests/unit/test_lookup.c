/*
 * test_lookup.c - look-ups of names (transport/lookup.c) whose servers do not answer: one account keeps a part of the
 * threads only, also when it has forgotten its look-ups, and gets them back when they end.
 */
#include "transport/lookup.h"

#include <netdb.h>

#include "tap.h"

static uv_sem_t answers; /* one for each look-up that may end */

extern int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
							  struct addrinfo **found);

int
__wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	uv_sem_wait(&answers);
	return EAI_AGAIN;
}

static int answered;

static void
on_answer(void *arg, const char (*addresses)[LOOKUP_ADDRESS], int count)
{
	answered += count == 0;
}

static void
on_timer(uv_timer_t *timer)
{
}

int
main(void)
{
	uv_loop_t *loop = uv_default_loop();
	uv_timer_t timer; /* keeps the loop alive */
	Lookup *lookup;
	int own = 0, others = 0;

	uv_sem_init(&answers, 0);
	lookup_start(loop);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_timer, 10, 10);
	while (own < 100 && (lookup = lookup_name(1, "silent.example", on_answer, NULL)) != NULL)
	{
		own++;
		lookup_forget(lookup);
	}
	TAP_OK(own == 8, "an account has 8 look-ups at a time, also forgotten ones (%d)", own);
	for (int64_t account = 2; account < 100; account++)
		others += lookup_name(account, "other.example", on_answer, NULL) != NULL;
	TAP_OK(others == 56, "other accounts have the rest (%d)", others);
	for (int i = 0; i < own + others; i++)
		uv_sem_post(&answers);
	for (int i = 0; i < 3000 && answered < others; i++)
		uv_run(loop, UV_RUN_ONCE);
	TAP_OK(answered == others, "who has not forgotten gets the answer (%d)", answered);
	for (lookup = NULL, own = 0; own < 3000 && lookup == NULL; own++)
	{
		uv_run(loop, UV_RUN_ONCE);
		lookup = lookup_name(1, "silent.example", on_answer, NULL);
	}
	TAP_OK(lookup != NULL, "when they have ended, the account may look up again");
	uv_sem_post(&answers);
	for (int i = 0; i < 3000 && answered == others; i++)
		uv_run(loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *) &timer, NULL);
	lookup_stop();
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
	return tap_done();
}
