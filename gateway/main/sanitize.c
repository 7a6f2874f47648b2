/*
 * sanitize.c - only in a gateway that is built with SANITIZE=1: what the sanitizers do. Here and not in the
 * environment, so that every such gateway, however it is started, ends with a report and status 86 after a wrong access
 * or a leak. Freed memory is kept for long; tests that measure memory make it less (tests/lib/cluster.mjs).
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

/* Of libraries, not ours: libzookeeper 3.8.0 forgets requests that are unanswered when a session is closed that has
 * lost contact. What we have given it with them is ours, and freed (coord/zk_client.c). */
const char *
__lsan_default_suppressions(void)
{
	return "leak:libzookeeper_mt.so\n";
}
