/* password_queue.c - password hashes beside the loop, first come, first served; see password_queue.h. */
#include "auth/password_queue.h"

#include "auth/password.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define RUNNING_MAX 3 /* of libuv's 4 threads; no more than there are processors */

typedef struct PasswordJob
{
	struct PasswordJob *next;
	uv_work_t work;
	uv_loop_t *loop;
	PasswordTask task;
	char *password, *stored;
	bool ok;
	bool failed; /* no memory */
	char hash[PASSWORD_HASH_MAX];
} PasswordJob;

static PasswordJob *waiting_first;
static PasswordJob **waiting_last = &waiting_first;
static int waiting;
static int running;

static void queue_run(void);

static void
job_free(PasswordJob *job)
{
	if (job->password != NULL)
		OPENSSL_cleanse(job->password, strlen(job->password));
	free(job->password);
	free(job->stored);
	free(job);
}

static PasswordJob *
job_new(uv_loop_t *loop, const PasswordTask *task)
{
	PasswordJob *job = calloc(1, sizeof(PasswordJob));

	if (job == NULL)
		return NULL;
	job->work.data = job;
	job->loop = loop;
	job->task = *task;
	job->password = strdup(task->password);
	job->stored = task->stored != NULL ? strdup(task->stored) : NULL;
	if (job->password != NULL && (task->stored == NULL || job->stored != NULL))
		return job;
	job_free(job);
	return NULL;
}

static void
job_end(PasswordJob *job)
{
	job->task.done(job->task.arg, job->ok, job->failed ? NULL : job->hash);
	job_free(job);
}

/* On a thread. */
static void
job_work(uv_work_t *work)
{
	PasswordJob *job = work->data;

	if (job->task.compare)
		job->ok = password_verify(job->password, strlen(job->password), job->stored);
	else
		job->ok = password_hash(job->password, strlen(job->password), job->hash);
	job->failed = !job->ok && (errno == ENOMEM || !job->task.compare);
}

static void
job_worked(uv_work_t *work, int status)
{
	PasswordJob *job = work->data;

	running--;
	job->ok = job->ok && status == 0;
	job_end(job);
	queue_run();
}

static int
queue_running_max(void)
{
	unsigned processors = uv_available_parallelism();

	return processors < RUNNING_MAX ? (int) processors : RUNNING_MAX;
}

static void
queue_run(void)
{
	while (waiting_first != NULL && running < queue_running_max())
	{
		PasswordJob *job = waiting_first;

		waiting_first = job->next;
		if (waiting_first == NULL)
			waiting_last = &waiting_first;
		waiting--;
		if (job->task.wanted(job->task.arg) && uv_queue_work(job->loop, &job->work, job_work, job_worked) == 0)
			running++;
		else
			job_end(job);
	}
}

bool
password_queue_add(uv_loop_t *loop, const PasswordTask *task, int limit)
{
	PasswordJob *job = waiting < limit ? job_new(loop, task) : NULL;

	if (job == NULL)
		return false;
	*waiting_last = job;
	waiting_last = &job->next;
	waiting++;
	queue_run();
	return true;
}

int
password_queue_waiting(void)
{
	return waiting;
}
