/*
 * sanitize.c - options of the sanitizers, in a gateway that is built with SANITIZE=1. They are not in the environment,
 * so that every such gateway ends with a report and status 86 after a wrong access or a leak. 64 MB of freed memory are
 * quarantined; tests that measure memory set less (tests/lib/cluster.mjs).
 */
extern const char *__asan_default_options(void);
extern const char *__ubsan_default_options(void);
extern const char *__lsan_default_suppressions(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=1:exitcode=86:quarantine_size_mb=64:detect_stack_use_after_return=1:print_suppressions=0";
}

const char *
__ubsan_default_options(void)
{
	return "print_stacktrace=1:exitcode=86";
}

/* Leaks of libraries: libzookeeper 3.8.0 does not free unanswered requests when a session is closed that has lost
 * contact. Our own data of these requests is freed (coord/zk_request.c). */
const char *
__lsan_default_suppressions(void)
{
	return "leak:libzookeeper_mt.so\n";
}
