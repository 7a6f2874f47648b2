/* sim_children.c - schedules in processes of their own; see sim_gateway.h. */
#include "sim_gateway.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN   2 /* at the same time */
#define RESULT_MAX 256

typedef struct Child
{
	uint64_t seed;
	pid_t pid; /* 0: none */
	int pipe;  /* of its result */
} Child;

static void
child_start(Child *child, void (*run)(uint64_t seed), const void *result, size_t size)
{
	int pipes[2];

	fflush(stdout);
	if (pipe(pipes) != 0 || (child->pid = fork()) < 0)
		abort();
	if (child->pid == 0)
	{
		run(child->seed);
		fflush(stdout);
		_exit(write(pipes[1], result, size) != (ssize_t) size);
	}
	close(pipes[1]);
	child->pipe = pipes[0];
}

static void
child_wait(Child *child, size_t size, void (*ended)(uint64_t seed, const void *result))
{
	_Alignas(max_align_t) char result[RESULT_MAX];
	bool complete;

	if (child->pid == 0)
		return;
	complete = read(child->pipe, result, size) == (ssize_t) size;
	close(child->pipe);
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
	ended(child->seed, complete ? result : NULL);
}

void
sim_run_children(uint64_t first, uint64_t count, void (*run)(uint64_t seed), const void *result, size_t size,
				 void (*ended)(uint64_t seed, const void *result))
{
	Child children[CHILDREN] = {{0}};

	assert(size <= RESULT_MAX);
	for (uint64_t seed = first; seed < first + count; seed++)
	{
		Child *child = &children[seed % CHILDREN];

		child_wait(child, size, ended);
		child->seed = seed;
		child_start(child, run, result, size);
	}
	for (uint64_t seed = first + count; seed < first + count + CHILDREN; seed++)
		child_wait(&children[seed % CHILDREN], size, ended);
}
