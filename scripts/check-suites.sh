# shellcheck shell=bash disable=SC2034,SC2154 # variables of scripts/check, which sources this
# check-suites.sh - the suites of scripts/check: which test files they have and how they run.
#
# suite_NAME [FILE...] prints the log of the suite, or of these files of it (names as in check-results.awk). It runs in a
# process of its own, with its own directory ($dir).

suites=(format unit fuzz web regress isolation tap gateway browser docker)
suites_long=(unit fuzz web tap gateway browser)
suites_server=(regress isolation tap gateway) # what depends on the version of PostgreSQL

# The kind of a suite's log, as scripts/check-results.awk calls it.
suite_log_kind() {
	case $1 in
		unit | tap) echo tap ;;
		regress | isolation | pgregress) echo regress ;;
		gateway | browser | docker) echo node ;;
		*) echo "$1" ;;
	esac
}

# suite_path SUITE FILE: the path of a test file in the repository.
suite_path() {
	case $1 in
		unit) echo "tests/unit/$2.c" ;;
		fuzz) echo "tests/fuzz/fuzz_$2.c" ;;
		web) echo "gateway/web/$2" ;;
		regress) echo "tests/regress/sql/$2.sql" ;;
		isolation) echo "tests/isolation/specs/$2.spec" ;;
		*) echo "tests/$1/$2" ;;
	esac
}

# Two lines of suites, which take about as long, run at the same time, those of a line one after another: the first ones
# compute, the second ones mostly wait. Files that measure run after all others, one at a time. The suite docker builds
# images, and runs last.
lines=('format fuzz web browser' 'gateway unit regress isolation pgregress tap')
declare -A files_at_a_time=([tap]=3 [gateway]=4 [browser]=2)
[ "${SANITIZE:-0}" = 0 ] || files_at_a_time[gateway]=1 # such a gateway needs a processor for itself

# test_files PART: sets files to the names of its test files: with LONG=1 to those that have a long form, otherwise to
# those without a line "// long form only". Files with a line "// measures WHAT" or "# measures WHAT" belong to
# SUITE-alone, others to SUITE.
test_files() {
	local pattern suite=${1%%-*} measuring=-L
	[[ $1 != *-alone ]] || measuring=-l
	case $suite in
		unit) pattern='test_*.c' ;;
		regress) pattern='sql/*.sql' ;;
		isolation) pattern='specs/*.spec' ;;
		tap) pattern='*.pl' ;;
		gateway | browser | docker) pattern='*.test.mjs' ;;
		*) pattern= ;;
	esac
	files=()
	[ -n "$pattern" ] || return 0
	# shellcheck disable=SC2086 # a pattern
	mapfile -t files < <(cd "$source_dir/tests/$suite" && grep "$measuring" -E '^(//|#) measures ' $pattern |
		if [ "${LONG:-0}" = 0 ]; then xargs -r grep -L '^// long form only' || true; else xargs -r grep -lE '(steps_to_run|seconds_to_run|rounds_to_run|roundsToRun)\(' || true; fi |
		if [ "$suite" = browser ]; then xargs -r ls -S; else cat; fi) # the long ones first, so that none runs alone at the end
	case $suite in unit | regress | isolation) files=("${files[@]##*/}") files=("${files[@]%.*}") ;; esac
}

suite_format() {
	local code=0
	"$repo/scripts/check-format" || code=1
	"$repo/tests/check/run" || code=1
	return "$code"
}

suite_unit() {
	local files=("$@")
	[ $# -gt 0 ] || test_files "$part"
	submake -C "$repo/tests/unit" check TESTS="${files[*]#test_}"
}

suite_fuzz() {
	"$repo/tests/fuzz/run" "$@"
}

suite_web() {
	cd "$repo/gateway/web" && NO_COLOR=1 CI=true npm test -- "$@" </dev/null
}

# run_pg_regress SUITE PROGRAM TEST...: on a temporary server with the extension preloaded.
run_pg_regress() {
	local suite=$1 program=$2
	shift 2
	# Tests run VACUUM and ANALYZE themselves: an autovacuum's snapshot would keep rows that a test expects to vanish.
	# They also save versions themselves: an automatic version would take a seq between theirs.
	as_suite tee "$dir/server.conf" >/dev/null <<-CONF
		shared_preload_libraries = 'pg_sheet'
		autovacuum = off
		max_prepared_transactions = 10
		timezone = 'UTC'
		pg_sheet.version_bytes = 0
		pg_sheet.version_edits = 0
	CONF
	cd "$dir"
	as_suite "$program" --inputdir="$source_dir/tests/$suite" --outputdir="$dir" --bindir="$bindir" \
		--temp-instance="$dir/instance" --temp-config="$dir/server.conf" --encoding=UTF8 --no-locale \
		--dbname="pg_sheet_$suite" --load-extension=pg_sheet "$@" || {
		cat "$dir/regression.diffs" 2>/dev/null
		return 1
	}
}

suite_regress() {
	local files=("$@")
	[ $# -gt 0 ] || test_files regress
	run_pg_regress regress "$pgxs/src/test/regress/pg_regress" "${files[@]}"
}

suite_isolation() {
	local files=("$@")
	[ $# -gt 0 ] || test_files isolation
	run_pg_regress isolation "$pgxs/src/test/isolation/pg_isolation_regress" "${files[@]}"
}

# PostgreSQL's own tests of append-only tables (tests/pgregress), with all their tables in sheetlog. Only with ASSERT=1.
suite_pgregress() {
	local names name
	# Some are not in all versions.
	mapfile -t names < <(grep -v '^#' "$source_dir/tests/pgregress/schedule" |
		while read -r name; do [ ! -e "$tmp/pg/regress/sql/$name.sql" ] || echo "$name"; done)
	as_suite cp -r "$tmp/pg/regress" "$dir/regress"
	printf '%s\n' "shared_preload_libraries = 'pg_sheet'" 'default_table_access_method = sheetlog' 'max_prepared_transactions = 10' |
		as_suite tee "$dir/server.conf" >/dev/null
	cd "$dir/regress"
	as_suite "$pgxs/src/test/regress/pg_regress" --inputdir="$dir/regress" --outputdir="$dir/regress" --bindir="$bindir" \
		--dlpath="$dir/regress" --temp-instance="$dir/regress/instance" --temp-config="$dir/server.conf" \
		--encoding=UTF8 --no-locale --load-extension=pg_sheet --dbname=regression --max-connections=1 "${names[@]}" || {
		head -200 "$dir/regress/regression.diffs"
		return 1
	}
}

# file_perl FILE: one file of the suite tap.
file_perl() {
	local code=0 name=${1%.pl}
	cd "$dir"
	# TESTDIR until PostgreSQL 15, the others from 16 on.
	as_suite env "PATH=$source_dir/tests/tap/bin:$bindir:$PATH" "TESTDIR=$dir" "TESTDATADIR=$dir/tmp_check" "TESTLOGDIR=$dir/tmp_check/log" \
		perl -I "$source_dir/tests/tap" "$source_dir/tests/tap/$1" || code=$?
	# PostgreSQL's modules write the last messages of a dying test to its own file, before those of its end.
	[ "$code" -eq 0 ] || grep -qE '^\[.* 1\.\.[0-9]+$' "tmp_check/log/regress_log_$name" || grep -m 1 '^error running SQL' "tmp_check/log/regress_log_$name" ||
		grep -vE '^###|^# (Running|Postmaster PID|No postmaster)|^waiting for|^server (stopped|started)|# (Looks like|Tests were run)' "tmp_check/log/regress_log_$name" | tail -n 1
	return "$code"
}

# suite_files COMMAND [FILE...]: runs COMMAND FILE for the files of this part.
suite_files() {
	local files=("${@:2}") jobs=${files_at_a_time[$suite]:-1}
	[ ${#files[@]} -gt 0 ] || test_files "$part"
	[ "$part" = "$suite" ] || jobs=1
	run_files "$jobs" "$1" "${files[@]}"
}

suite_tap() {
	suite_files file_perl "$@"
}

file_node() {
	cd "$source_dir"
	as_suite node --test --test-reporter=tap "tests/$suite/$1"
}

suite_gateway() {
	suite_files file_node "$@"
}

suite_browser() {
	suite_files file_node "$@"
}

# As the caller, who may use the engine.
file_docker() {
	local settings=() name
	for name in PATH HOME DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_CERT_PATH DOCKER_TLS_VERIFY XDG_RUNTIME_DIR; do
		[ -z "${!name:-}" ] || settings+=("$name=${!name}")
	done
	settings+=("TMPDIR=$dir" "CHECK_DIR=$dir" LANG=C.UTF-8 "PG_SHEET_DOCKER_CA=${PG_SHEET_DOCKER_CA:-${NODE_EXTRA_CA_CERTS:-}}")
	cd "$repo"
	env -i "${settings[@]}" node --test --test-reporter=tap "tests/docker/$1"
}

suite_docker() {
	suite_files file_docker "$@"
}
