/*
 * password.c - password hashes by scrypt, computed on threads; see password.h.
 */
#include "auth/password.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "auth/base64.h"
#include "auth/scram.h"

/* Parameters of new hashes. They take 128 * r * 2^ln bytes: 32 MiB by default. */
#define BLOCK_SIZE 8
#define BLOCK_LOG2 10 /* of 128 * r */
#define PARALLEL   1
#define SALT_LEN   16
#define HASH_LEN   32
/* Limits of stored hashes, so that a bad row cannot exhaust memory. */
#define COST_LOG2_MIN  10
#define COST_LOG2_MAX  20
#define BLOCK_SIZE_MAX 32
#define PARALLEL_MAX   16
#define MEMORY_MAX	   (256u << 20)
#define STORED_LEN_MAX 64 /* bytes of a salt or a hash */

#define RUNNING_MAX 3 /* jobs at a time: libuv's pool has 4 threads, and others need one */

static unsigned password_cost_log2 = 15;

typedef struct Stored
{
	unsigned cost_log2, block_size, parallel;
	unsigned char salt[STORED_LEN_MAX], hash[STORED_LEN_MAX];
	size_t salt_len, hash_len;
} Stored;

static bool
derive(const Stored *stored, const char *password, size_t len, unsigned char *to, size_t to_len)
{
	uint64_t cost = 1ULL << stored->cost_log2;
	/* RFC 7914: V takes 128 r N, B takes 128 r p; OpenSSL needs a little more */
	uint64_t memory = 128ULL * stored->block_size * (cost + stored->parallel + 2) + (1 << 20);

	return EVP_PBE_scrypt(password, len, stored->salt, stored->salt_len, cost, stored->block_size, stored->parallel,
						  memory, to, to_len) == 1;
}

void
password_set_memory(int memory_log2)
{
	password_cost_log2 = (unsigned) memory_log2 - BLOCK_LOG2;
}

bool
password_hash(const char *password, size_t len, char to[PASSWORD_HASH_MAX])
{
	Stored stored = {
		.cost_log2 = password_cost_log2, .block_size = BLOCK_SIZE, .parallel = PARALLEL, .salt_len = SALT_LEN};
	char salt[BASE64_LENGTH(SALT_LEN) + 1], hash[BASE64_LENGTH(HASH_LEN) + 1];

	to[0] = '\0';
	if (len > PASSWORD_MAX || RAND_bytes(stored.salt, SALT_LEN) != 1 ||
		!derive(&stored, password, len, stored.hash, HASH_LEN))
		return false;
	base64_encode(BASE64_STANDARD, stored.salt, SALT_LEN, salt, sizeof(salt));
	base64_encode(BASE64_STANDARD, stored.hash, HASH_LEN, hash, sizeof(hash));
	snprintf(to, PASSWORD_HASH_MAX, "$scrypt$ln=%u,r=%d,p=%d$%s$%s", password_cost_log2, BLOCK_SIZE, PARALLEL, salt,
			 hash);
	return true;
}

/* Parses a prefix and a number of at most three digits, and advances *text. */
static bool
take_number(const char **text, const char *prefix, unsigned min, unsigned max, unsigned *to)
{
	size_t digits = 0;

	if (strncmp(*text, prefix, strlen(prefix)) != 0)
		return false;
	*text += strlen(prefix);
	for (*to = 0; digits < 3 && **text >= '0' && **text <= '9'; digits++)
		*to = *to * 10 + (unsigned) (*(*text)++ - '0');
	return digits > 0 && *to >= min && *to <= max;
}

static bool
parse_stored(const char *text, Stored *stored)
{
	const char *dollar;

	if (!take_number(&text, "$scrypt$ln=", COST_LOG2_MIN, COST_LOG2_MAX, &stored->cost_log2) ||
		!take_number(&text, ",r=", 1, BLOCK_SIZE_MAX, &stored->block_size) ||
		!take_number(&text, ",p=", 1, PARALLEL_MAX, &stored->parallel) || *text++ != '$')
		return false;
	if ((128ULL * stored->block_size << stored->cost_log2) > MEMORY_MAX)
		return false;
	dollar = strchr(text, '$');
	return dollar &&
		   base64_decode(BASE64_STANDARD, text, (size_t) (dollar - text), stored->salt, sizeof(stored->salt),
						 &stored->salt_len) &&
		   stored->salt_len >= 8 &&
		   base64_decode(BASE64_STANDARD, dollar + 1, strlen(dollar + 1), stored->hash, sizeof(stored->hash),
						 &stored->hash_len) &&
		   stored->hash_len >= 16;
}

bool
password_verify(const char *password, size_t len, const char *stored_text)
{
	Stored stored = {0};
	unsigned char computed[STORED_LEN_MAX];
	bool usable = stored_text && parse_stored(stored_text, &stored), same;

	errno = 0;
	if (len > PASSWORD_MAX)
		return false;
	if (!usable && stored_text != NULL && strncmp(stored_text, SCRAM_PREFIX, strlen(SCRAM_PREFIX)) == 0)
		return scram_verify(password, len, stored_text);
	if (!usable) /* takes as long as a real comparison, so that the time does not show which users exist */
		stored = (Stored){.cost_log2 = password_cost_log2,
						  .block_size = BLOCK_SIZE,
						  .parallel = PARALLEL,
						  .salt_len = SALT_LEN,
						  .hash_len = HASH_LEN};
	if (!derive(&stored, password, len, computed, stored.hash_len))
	{
		errno = ENOMEM;
		return false;
	}
	same = CRYPTO_memcmp(computed, stored.hash, stored.hash_len) == 0;
	OPENSSL_cleanse(computed, sizeof(computed));
	return same && usable;
}

/* ---- the queue: by rank, and within one first come, first served ---- */

typedef struct PasswordJob
{
	struct PasswordJob *next;
	uv_work_t work;
	uv_loop_t *loop;
	PasswordTask task;
	char *password, *stored;
	PasswordResult result;
	char hash[PASSWORD_HASH_MAX];
} PasswordJob;

static struct
{
	PasswordJob *first, *last;
} queues[PASSWORD_RANKS];
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
	job->task.done(job->task.arg, job->result, job->hash);
	job_free(job);
}

/* Runs on a thread. */
static void
job_work(uv_work_t *work)
{
	PasswordJob *job = work->data;
	bool ok;

	if (job->task.compare)
		ok = password_verify(job->password, strlen(job->password), job->stored);
	else
		ok = password_hash(job->password, strlen(job->password), job->hash);
	if (ok)
		job->result = PASSWORD_OK;
	else if (!job->task.compare || errno == ENOMEM)
		job->result = PASSWORD_NO_MEMORY;
	else
		job->result = PASSWORD_WRONG;
}

static void
job_worked(uv_work_t *work, int status)
{
	PasswordJob *job = work->data;

	running--;
	if (status != 0)
		job->result = PASSWORD_FAILED;
	job_end(job);
	queue_run();
}

/* Takes the first job of a rank, or the last one. */
static PasswordJob *
queue_take(int rank, bool last)
{
	PasswordJob *job = queues[rank].first, *before = NULL;

	for (; last && job->next != NULL; job = job->next)
		before = job;
	if (before != NULL)
		before->next = NULL;
	else
		queues[rank].first = job->next;
	if (job == queues[rank].last)
		queues[rank].last = before;
	waiting--;
	return job;
}

/* Takes the last job of the highest rank above this one; NULL if there is none. */
static PasswordJob *
queue_take_above(int rank)
{
	for (int above = PASSWORD_RANKS - 1; above > rank; above--)
	{
		if (queues[above].first != NULL)
			return queue_take(above, true);
	}
	return NULL;
}

static void
queue_run(void)
{
	int processors = (int) uv_available_parallelism();
	int running_max = processors < RUNNING_MAX ? processors : RUNNING_MAX;

	while (waiting > 0 && running < running_max)
	{
		PasswordJob *job;
		int rank = 0;

		while (queues[rank].first == NULL)
			rank++;
		job = queue_take(rank, false);
		if (job->task.wanted(job->task.arg) && uv_queue_work(job->loop, &job->work, job_work, job_worked) == 0)
			running++;
		else
		{
			job->result = PASSWORD_FAILED;
			job_end(job);
		}
	}
}

bool
password_queue_add(uv_loop_t *loop, const PasswordTask *task, int limit)
{
	PasswordJob *job = job_new(loop, task);
	bool is_full = waiting >= limit;
	PasswordJob *displaced = job != NULL && is_full ? queue_take_above(task->rank) : NULL;

	if (job == NULL || (is_full && displaced == NULL))
	{
		if (job != NULL)
			job_free(job);
		return false;
	}
	if (queues[task->rank].first != NULL)
		queues[task->rank].last->next = job;
	else
		queues[task->rank].first = job;
	queues[task->rank].last = job;
	waiting++;
	if (displaced != NULL)
	{
		displaced->result = PASSWORD_DISPLACED;
		job_end(displaced);
	}
	queue_run();
	return true;
}

int
password_queue_waiting(void)
{
	return waiting;
}
