# shellcheck shell=bash disable=SC2154 # variables of scripts/check, which sources this
# check-run.sh - runs the suites of check-suites.sh, adds up their results, and runs failed files again.
#
# A part of the check is a suite, or failed files of it that run again (SUITE-again). It has a directory of its own,
# $tmp/PART, which marks its processes, and a log, $logs/PART.log. $tmp/results and $tmp/failures have what
# check-results.awk says of each part, with the name of the suite in front.

suite_seconds=3600 # timeout of a part: on a slow machine the longest suites take six times as long
file_seconds=600   # timeout of a file in a suite that runs its files one by one

# ---- files and timeouts ---------------------------------------------------------------------------------------------------

# limited SECONDS NAME COMMAND...: runs the command in a process group of its own, which ends after so many seconds, or
# when this process is ended. Call it in a process of its own.
limited() {
	local seconds=$1 name=$2 code=0 running
	shift 2
	set -m
	"$@" &
	limited_group=$!
	set +m
	trap 'kill -s TERM -- "-$limited_group" 2>/dev/null || true; exit 143' TERM
	# The watchdog ends when the pipe that it reads is closed. A signal would be lost that comes before it has begun.
	exec {running}> >(
		timed_out "$seconds" || exit 0
		echo "not ok - $name was ended after $seconds s"
		kill -s TERM -- "-$limited_group" 2>/dev/null
		! timed_out 30 || kill -s KILL -- "-$limited_group" 2>/dev/null
	)
	wait "$limited_group" || code=$?
	exec {running}>&-
	return "$code"
}

# timed_out SECONDS: waits for the end of the standard input, without a process; succeeds if it does not come in time.
timed_out() {
	local code=0
	read -rt "$1" || code=$?
	[ "$code" -gt 128 ]
}

# run_files JOBS COMMAND FILE...: runs COMMAND FILE for each file, JOBS at a time, and prints the output of each when it
# has ended. Fails if one has failed.
run_files() {
	local jobs=$1 command=$2 file code=0
	shift 2
	for file; do
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
			wait -n || code=1
		done
		run_file "$command" "$file" &
	done
	while [ -n "$(jobs -p)" ]; do
		wait -n || code=1
	done
	return "$code"
}

run_file() {
	local output=$dir/$2.output code=0 from=$EPOCHREALTIME
	limited "$file_seconds" "$2" "$@" >"$output" 2>&1 || code=$?
	# The blocks of files that end at the same time must not mix.
	flock "$tmp" awk -v name="$2" -v code="$code" -v from="$from" -v to="$EPOCHREALTIME" 'BEGIN { print "#### " name } { print }
		END { printf "#### %s ended with code %d after %.1f s\n", name, code, to - from }' "$output"
	return "$code"
}

# ---- results --------------------------------------------------------------------------------------------------------------
#
# $results/PART.results and PART.failures have the lines of check-results.awk. A failure that belongs to no file has an
# empty name in them.

# part_fail WHAT [DETAIL...]: a failure that does not belong to a file.
part_fail() {
	printf '\t0\t1\t0\t0\n' >>"$results/$part.results"
	printf '\t\t%s\n' "$1${2:+ $(head -n 1 <<<"$2")}" >>"$results/$part.failures"
	say "FAILED: $suite $1" "${@:2}"
}

# results_sum FILE...: sets passed, failed and skipped to the sums of these files.
results_sum() {
	read -r passed failed skipped < <(cat "$@" 2>/dev/null | awk -F '\t' '{ p += $2; f += $3; s += $4 } END { print p + 0, f + 0, s + 0 }')
}

# suite_row SUITE: its line in the table.
suite_row() {
	results_sum "$results/$1.results" "$results/$1"-*.results
	printf '%-10s %5d passed %5d failed %5d skipped %5d s\n' "$1" "$passed" "$failed" "$skipped" "${suite_time[$1]:-0}"
}

# The five files of a part that took longest.
slowest_show() {
	sort -t $'\t' -k 5,5nr "$results/$part.results" | awk -F '\t' '$5 > 0 && n < 5 { text = text (n++ ? ", " : "") $1 " " $5 " s" }
		END { if (n) print "  longest: " text }'
}

# failures_list: SUITE: FILE:LINE: what failed.
failures_list() {
	local file suite
	for suite in "${suites[@]}"; do
		for file in "$results/$suite.failures" "$results/$suite"-*.failures; do
			[ ! -e "$file" ] || awk -F '\t' -v suite="$suite" '{ print suite ": " $1 ($2 == "" ? "" : ":" $2) ($1 == "" ? "" : ": ") $3 }' "$file"
		done
	done
}

# Prints the failures within the last twenty lines of the output.
failures_show() {
	local shown=6 list
	list=$(failures_list)
	[ -n "$list" ] || return 0
	say "Failed (the logs are in $logs):"
	awk -v shown="$shown" 'NR <= shown { print } END { if (NR > shown) print "and " NR - shown " more" }' <<<"$list"
}

# ---- missing tests and leftover processes --------------------------------------------------------------------------

# Prints the test files of a part that have no result.
tests_list_missing() {
	local files
	test_files "$part"
	[ ${#files[@]} -eq 0 ] || printf '%s\n' "${files[@]}" | grep -vxFf <(cut -f 1 "$results/$part.results" | grep .) || true
}

# processes_marked DIR PID...: prints the processes of the check in DIR but for these: marked in their environment, with
# a path in DIR, or working in it.
processes_marked() {
	{
		grep -lsazE "^CHECK_DIR=$1(/|\$)" /proc/[0-9]*/environ || true
		grep -lsaF "$1/" /proc/[0-9]*/cmdline || true
		find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$1" -o -lname "$1/*" \) 2>/dev/null || true
	} | cut -d / -f 3 | grep -vxF "$(printf '%s\n' "${@:2}")" || true
}

# processes_list DIR: prints the processes of this check in DIR. In a container, root may not read the environments of
# others.
processes_list() {
	local -r except=("$$" "$BASHPID")
	{
		processes_marked "$1" "${except[@]}"
		[ ${#service_prefix[@]} -eq 0 ] || (cd / && "${service_prefix[@]}" bash -c "$(declare -f processes_marked); processes_marked \"\$@\"" - "$1" "${except[@]}")
	} | sort -u
}

# processes_end DIR: ends leftover processes after a grace period, and prints those that had to be ended.
processes_end() {
	local tries pid found
	for tries in {1..30}; do
		found=$(processes_list "$1")
		[ -n "$found" ] || return 0
		sleep 0.1
	done
	for pid in $found; do
		say "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c1-150)"
		kill -s TERM "$pid" 2>/dev/null || true
	done
	for tries in {1..50}; do
		found=$(processes_list "$1")
		[ -n "$found" ] || return 0
		sleep 0.1
	done
	for pid in $found; do
		kill -s KILL "$pid" 2>/dev/null || true
	done
}

# ---- parts -----------------------------------------------------------------------------------------------------------------

declare -A suite_time=() part_of=() part_began=()

# as_suite COMMAND...: as the user who runs the servers, in the environment and with the mark of this part.
as_suite() {
	"${suite_prefix[@]}" "TMPDIR=$dir/tmp" "HOME=$dir/home" "CHECK_DIR=$dir" "$@"
}

# part_start PART [FILE...]: in the background, so that Ctrl-C reaches this script before the part ends.
part_start() {
	local part=$1 suite=${1%%-*} dir=$tmp/$1
	say "=== $*"
	part_began[$part]=$SECONDS
	part_run "${@:2}" >"$logs/$part.log" 2>&1 </dev/null &
	part_of[$!]=$part
}

part_run() {
	local limit=$suite_seconds
	as_suite mkdir -p "$dir/home" "$dir/tmp" "$dir/tmp_check"
	# For a minute, ext4 without a journal does not use the inodes of deleted files again: it passes over all of them whenever a file
	# is created, and a removed server leaves thousands. With +T, each directory of a server has a block group of its own.
	as_suite chattr +T "$dir" "$dir/tmp" "$dir/tmp_check" 2>/dev/null || true
	export CHECK_DIR=$dir
	[ "${SANITIZE:-0}" = 0 ] || limit=$((suite_seconds * 2))
	[ "$suite" != fuzz ] || limit=$((suite_seconds + ${TIME:-0} * 16))
	limited "$limit" "the suite" "suite_$suite" "$@"
}

# part_finish PART CODE: notes its results, ends what remains of it, and shows what failed.
part_finish() {
	local part=$1 code=$2 suite=${1%%-*} log=$logs/$1.log left missing='' passed failed skipped ran
	left=$(processes_end "$tmp/$part")
	touch "$results/$part.results" "$results/$part.failures"
	awk -v kind="$(suite_log_kind "$suite")" -v results="$results/$part.results" -v failures="$results/$part.failures" -f "$repo/scripts/check-results.awk" "$log"
	[[ $part == *-again* ]] || missing=$(tests_list_missing)
	results_sum "$results/$part.results"
	if [ "$code" -ne 0 ] || [ "$failed" -gt 0 ]; then
		log_show
	fi
	[ -z "$left" ] || part_fail "left these processes behind (they have been ended):" "$left"
	[ -z "$missing" ] || part_fail "did not run:" "$missing"
	skips_show
	ran=$passed
	# Not every machine has a Docker engine. In other suites, something always runs.
	[ "$suite" != docker ] || ran=$((passed + skipped))
	if [ ! -s "$results/$part.failures" ] && { [ "$code" -ne 0 ] || [ "$ran" -eq 0 ]; }; then
		part_fail "ended with code $code after $passed passed tests:" "$(tail -n 1 "$log")"
	fi
	suite_time[$suite]=$((${suite_time[$suite]:-0} + SECONDS - ${part_began[$part]}))
	suite_row "$suite"
	slowest_show
}

# Prints why tests of the part were skipped.
skips_show() {
	sed -nE 's/^ *ok [0-9]+ *-? *(.*) # *SKIP *(.*)/skipped: \1: \2/p' "$log"
}

# The failures and the end of the log of a part.
log_show() {
	say "--- failures in $log:"
	grep -nE '^ *not ok\b|\.\.\. FAILED|^ *(FAIL|×|✗) |Failed test|Error:' "$log" | head -n 60 || true
	say "--- its end:"
	tail -n 80 "$log"
	servers_keep_logs
	say "---"
}

# The logs of the servers of a part that failed; a server that did not start says why in the last lines.
servers_keep_logs() {
	local place
	rm -rf "$logs/$part.servers"
	for place in "$tmp/$part/log" "$tmp/$part/regress/log" "$tmp/$part/tmp_check/log"; do
		[ ! -d "$place" ] || cp -r "$place" "$logs/$part.servers"
		[ ! -e "$place/postmaster.log" ] || grep -E 'FATAL|PANIC|TRAP|terminated by' "$place/postmaster.log" | tail -n 5 || true
	done
}

# part_run_alone PART [FILE...]
part_run_alone() {
	part_start "$@"
	part_wait
}

# part_wait: until a part has ended. Sets `ended` to its suite.
part_wait() {
	local pid part code=0
	wait -n -p pid "${!part_of[@]}" 2>/dev/null || code=$?
	if [ -z "${pid:-}" ]; then
		# One was killed while another was looked at; wait -n does not know it any more.
		pid=${!part_of[*]} pid=${pid%% *} code=0
		wait "$pid" || code=$?
	fi
	part=${part_of[$pid]} ended=${part%%-*}
	unset "part_of[$pid]"
	part_finish "$part" "$code"
}

# lines_run: runs the suites of all `lines`.
lines_run() {
	local line suite ended
	local -A next=()
	for line in "${lines[@]}"; do
		# What follows each suite in its line.
		ended=
		for suite in $line; do
			[[ " ${suites[*]} " == *" $suite "* ]] || continue
			[ -n "$ended" ] || part_start "$suite"
			[ -z "$ended" ] || next[$ended]=$suite
			ended=$suite
		done
	done
	while [ ${#part_of[@]} -gt 0 ]; do
		part_wait
		[ -z "${next[$ended]:-}" ] || part_start "${next[$ended]}"
	done
}

# ---- failed files run again ------------------------------------------------------------------------------------------------

flaky_limit=3 # so many flaky files fail the check
again_limit=5 # if more files failed, none runs again
flaky=()

# files_failed: prints PART, a tab, and FILE for each file that failed and can run by itself.
files_failed() {
	local part
	for part in "$results"/*.results; do
		part=$(basename "$part" .results)
		[[ $part == format || $part == pgregress ]] || awk -F '\t' -v part="$part" '$1 != "" && $3 > 0 { print part "\t" $1 }' "$results/$part.results"
	done | sort
}

# failed_again: runs each failed file once more, alone. One that passes then is flaky, and named in `flaky`: its results
# take the place of those of the first run. With flaky_limit flaky files, the results of the first run stand.
failed_again() {
	local list line part suite file first=$results n=0 lines=() passed failed skipped
	mapfile -t list < <(files_failed)
	if [ ${#list[@]} -gt "$again_limit" ]; then
		say "${#list[@]} files failed, too many to run them again."
		return 0
	fi
	for line in "${list[@]}"; do
		IFS=$'\t' read -r part file <<<"$line"
		suite=${part%%-*} n=$((n + 1)) results=$tmp/again$n
		mkdir "$results"
		part_run_alone "$suite-again$n" "$file"
		results_sum "$results"/*.results
		if [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]; then
			flaky+=("flaky: $(suite_path "$suite" "$file") ($(awk -F '\t' -v file="$file" '$1 == file { print $3; exit }' "$first/$part.failures"))")
			lines+=("$line"$'\t'"$results/$suite-again$n.results")
		fi
	done
	results=$first
	if [ ${#flaky[@]} -ge "$flaky_limit" ]; then
		say "$flaky_limit flaky files are a failure."
		return 0
	fi
	for line in "${lines[@]}"; do
		IFS=$'\t' read -r part file n <<<"$line"
		for name in results failures; do
			awk -F '\t' -v file="$file" '$1 != file' "$results/$part.$name" >"$tmp/rest"
			mv "$tmp/rest" "$results/$part.$name"
		done
		cat "$n" >>"$results/$part.results"
	done
}

# ---- the check -----------------------------------------------------------------------------------------------------------------

# check_run: runs the suites, prints what came of them, and fails if something failed.
check_run() {
	local suite files passed failed skipped summary
	results=$tmp/results
	mkdir "$results"
	lines_run
	for suite in "${suites[@]}"; do
		test_files "$suite-alone"
		[ ${#files[@]} -eq 0 ] || part_run_alone "$suite-alone"
	done
	[[ " ${suites[*]} " != *" docker "* ]] || part_run_alone docker
	[ "${RERUN:-0}" = 0 ] || failed_again
	say ""
	failures_show
	for suite in "${suites[@]}"; do
		suite_row "$suite"
	done
	[ ${#flaky[@]} -eq 0 ] || printf '%s\n' "${flaky[@]}"
	say ""
	results_sum "$results"/*.results
	summary="$passed passed, $failed failed"
	[ "$skipped" -eq 0 ] || summary+=", $skipped skipped"
	say "$summary"
	[ "$failed" -eq 0 ]
}
