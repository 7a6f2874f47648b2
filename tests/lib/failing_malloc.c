/*
 * failing_malloc.c - an allocator for a gateway under test (LD_PRELOAD): allocations that the program itself makes, and
 * not its libraries, fail when the test says so.
 *
 * The test says it in a file that is mapped here, whose name is in FAILING_MALLOC: see Control.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

/* least: smaller ones succeed. countdown: the one with which it comes to 0 fails; 0: none. lasting: so do all that
 * follow. */
typedef struct Control
{
	_Atomic uint64_t least;
	_Atomic int64_t countdown;
	_Atomic uint64_t failed;
	_Atomic uint64_t lasting;
} Control;

static Control *control;
static uintptr_t program_begin, program_end;

static int
note_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X))
		{
			program_begin = info->dlpi_addr + part->p_vaddr;
			program_end = program_begin + part->p_memsz;
		}
	}
	return 1; /* the first one is the program */
}

__attribute__((constructor)) static void
begin(void)
{
	const char *name = getenv("FAILING_MALLOC");
	int fd = name != NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *map = fd >= 0 ? mmap(NULL, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED)
		return;
	dl_iterate_phdr(note_program, NULL);
	control = map;
}

static int
fails(size_t size, void *caller)
{
	uintptr_t at = (uintptr_t) caller;

	if (control == NULL || atomic_load(&control->countdown) <= 0 || size < atomic_load(&control->least) ||
		at < program_begin || at >= program_end || atomic_fetch_sub(&control->countdown, 1) != 1)
		return 0;
	if (atomic_load(&control->lasting))
		atomic_store(&control->countdown, 1);
	atomic_fetch_add(&control->failed, 1);
	errno = ENOMEM;
	return 1;
}

void *
malloc(size_t size)
{
	return fails(size, __builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
	return fails(count * size, __builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *memory, size_t size)
{
	return fails(size, __builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}
