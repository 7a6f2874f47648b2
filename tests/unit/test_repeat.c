/* test_repeat.c - what fails again and again is logged when it begins, changes, goes on for a minute, and ends. */
#include "support/repeat.h"

#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int caught; /* the file that stderr is */
static char output[1000];

/* What repeat_ended() writes. */
static const char *
end(Repeat *repeat, uint64_t now)
{
	int saved = dup(STDERR_FILENO);
	off_t from = lseek(caught, 0, SEEK_END);
	ssize_t len;

	dup2(caught, STDERR_FILENO);
	repeat_ended(repeat, now, "it works again", LOG_INT("sheet", 7));
	dup2(saved, STDERR_FILENO);
	close(saved);
	len = pread(caught, output, sizeof(output) - 1, from);
	output[len > 0 ? len : 0] = '\0';
	return output;
}

int
main(void)
{
	char path[] = "/tmp/test_repeat_XXXXXX", text[100];
	Repeat repeat = {.failures = 0};
	int logged = 0;

	caught = mkstemp(path);
	unlink(path);
	log_setup("info", "text");
	TAP_OK(end(&repeat, 1)[0] == '\0', "what did not fail has no end");
	TAP_OK(repeat_failed(&repeat, 5000, ""), "the first failure is logged, also without a reason");
	repeat_ended(&repeat, 5000, "it works again", LOG_INT("sheet", 7));
	TAP_OK(repeat_failed(&repeat, 10000, "55P03"), "and the first one after an end");
	for (uint64_t now = 10200; now < 70000; now += 200)
		logged += repeat_failed(&repeat, now, "55P03");
	TAP_OK(logged == 0, "those of the next minute are not");
	TAP_OK(repeat_failed(&repeat, 70000, "55P03"), "one after a minute is");
	TAP_OK(!repeat_failed(&repeat, 70200, "55P03"), "and not the next one");
	TAP_OK(repeat_failed(&repeat, 70400, "40001"), "one of another reason is");
	TAP_OK(strstr(end(&repeat, 71000), "it works again sheet=7 failures=303 ms=61000\n") != NULL,
		   "the end is, with their number and time: %s", output);
	TAP_OK(end(&repeat, 72000)[0] == '\0', "once");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	(void) repeat_failed(&repeat, 80000, text);
	TAP_OK(!repeat_failed(&repeat, 80001, text), "a long reason is compared as far as it is kept");
	return tap_done();
}
