# check-results.awk - writes what the log of a suite says of each test file, in lines of fields between tabs: into the file
# `results` FILE, PASSED, FAILED, SKIPPED, SECONDS; into `failures` FILE, LINE, and "TEST: the beginning of its error".
#
#     awk -v kind=node|tap|regress|fuzz|format|web -v results=FILE -v failures=FILE -f check-results.awk LOG
#
# node     node's own runner with --test-reporter=tap, in blocks
# tap      perl, tests/unit: TAP with comments behind the test that they explain, in blocks
# regress  pg_regress: "... ok" and "... FAILED", or TAP from PostgreSQL 16 on; the differences at the end
# fuzz     tests/fuzz/run: "ok - FILE: ..."
# format   check-format: TAP that belongs to no file
# web      vitest: " ✓ FILE (12 tests) 34ms"; "FAIL  FILE > TEST" and the error below it
#
# A block (run_files in check-run.sh, tests/unit/Makefile) is the output of one file between
#     #### FILE
#     #### FILE ended with code 0 after 1.5 s
# A file fails that ended with another code, or in which nothing ran.

BEGIN { error_length = 160 }

function base_name(path) {
	sub(/^.*\//, "", path)
	return path
}

# count: adds to a file's results; files appear in the order in which they were named first.
function count(file, good, bad, skips) {
	if (!(file in passed))
		names[++files] = file
	passed[file] += good
	failed[file] += bad
	skipped[file] += skips
}

# ---- failures: from the line that names the test until its error is complete ---------------------------------------------

function failure_begin(in_file, name) {
	failure_end()
	pending = 1
	failure_file = in_file
	failure_line = ""
	test = name
	sub(/^([0-9]+ +)?(- )?/, "", test)
	error = ""
}

# add: appends to the pending test's error, up to error_length.
function add(text) {
	gsub(/^[ \t#]+|[ \t]+$/, "", text)
	if (text != "" && length(error) < error_length)
		error = error (error == "" ? "" : " ") text
}

function failure(in_file, line, name, why) {
	gsub(/\t/, " ", name)
	gsub(/\t/, " ", why)
	if (length(why) > error_length)
		why = substr(why, 1, error_length) "..."
	found[++found_count] = in_file "\t" line "\t" name (why == "" ? "" : ": " why)
}

function failure_end() {
	if (pending)
		failure(failure_file, failure_line, test, error)
	pending = 0
}

/^not ok - .* was ended after [0-9]+ s$/ {
	failure_end()
	failure(block, "", substr($0, 10), "")
	count(block, 0, 1, 0)
	next
}

# ---- blocks ---------------------------------------------------------------------------------------------------------------

/^#### / && NF == 2 {
	block = $2
	last_words = ""
	count(block, 0, 0, 0)
	next
}
/^#### .* ended with code [0-9]+ after [0-9.]+ s$/ {
	failure_end()
	seconds[block] = $8
	if (failed[block] == 0 && ($6 != 0 || passed[block] + skipped[block] == 0)) {
		failure(block, "", "ended with code " $6 " after " passed[block] " passed tests", last_words)
		count(block, 0, 1, 0)
	}
	block = ""
	next
}

# ---- node: the YAML of a suite only reports that one of its tests failed --------------------------------------------------------

kind == "node" && /^# (pass|fail|cancelled|skipped|todo) [0-9]+$/ {
	count(block, $2 == "pass" ? $3 : 0, $2 ~ /fail|cancelled/ ? $3 : 0, $2 ~ /skipped|todo/ ? $3 : 0)
}
kind == "node" && /^ *not ok / {
	sub(/^ *not ok /, "")
	failure_begin(block, $0)
	in_error = 0
	next
}
kind == "node" && pending {
	if (failure_line == "" && match($0, /[A-Za-z0-9_]+\.test\.mjs:[0-9]+/)) {
		failure_line = substr($0, RSTART, RLENGTH)
		sub(/^.*:/, "", failure_line)
	}
	if (/^ *failureType: 'subtestsFailed'/)
		pending = 0
	else if (/^ *\.\.\.$/)
		failure_end()
	else if (/^ *error: /) {
		in_error = /[|>]-?$/
		sub(/^ *error: ([|>]-?$|')?/, "")
		sub(/'$/, "")
		add($0)
	} else if (in_error && /^ *(code|name|expected|stack): /)
		in_error = 0
	else if (in_error)
		add($0)
}

# ---- TAP ------------------------------------------------------------------------------------------------------------------

# file_of_test: format's tests belong to no file, those of fuzz name it.
function file_of_test() {
	if (kind != "fuzz")
		return block
	match($0, /- [a-z0-9_]+:/)
	return substr($0, RSTART + 2, RLENGTH - 3)
}

kind ~ /^(tap|fuzz|format)$/ && /^(ok|not ok)( |$)/ {
	failure_end()
	in_file = file_of_test()
	if (/# *(SKIP|skip|TODO)/)
		count(in_file, 0, 0, 1)
	else if (/^ok/)
		count(in_file, 1, 0, 0)
	else {
		count(in_file, 0, 1, 0)
		failure_begin(in_file, substr($0, 8))
	}
	if (match($0, /inputs in [0-9]+ s/))
		seconds[in_file] = substr($0, RSTART + 10) + 0
	next
}
kind == "tap" && /^1\.\.0 *# *(SKIP|skip)/ { count(block, 0, 0, 1) }
kind ~ /^(tap|fuzz|format)$/ && pending && /^#/ {
	if (!/^# +Failed test/)
		add($0)
	next
}
kind ~ /^(tap|fuzz|format)$/ && pending && !/^$/ { failure_end() }
# PostgreSQL's modules say last how many tests were run.
!/^(#### |# (Looks like|Tests were run))/ && NF > 0 { last_words = $0 }

# ---- pg_regress -----------------------------------------------------------------------------------------------------------

# regress_result: "test NAME ... ok 12 ms" and "ok 1 - NAME 12 ms"
function regress_result(name, good, ms) {
	count(name, good, !good, 0)
	seconds[name] = ms / 1000
}
kind == "regress" && /\.\.\. +(ok|FAILED) / {
	sub(/^test +/, "")
	regress_result($1, !/\.\.\. +FAILED/, $(NF - 1))
}
kind == "regress" && /^ok +[0-9]+ +[-+] / { regress_result($4, 1, $(NF - 1)) }
kind == "regress" && /^not ok +[0-9]+ +[-+] / { regress_result($5, 0, $(NF - 1)) }
kind == "regress" && /^diff .*\.out$/ {
	changed = base_name($NF)
	sub(/\.out$/, "", changed)
	place = ""
}
kind == "regress" && /^@@ / { place = $2 " " $3 }
kind == "regress" && place != "" && /^[-+]/ && !(changed in first) { first[changed] = $0 }

# ---- vitest ---------------------------------------------------------------------------------------------------------------

kind == "web" && match($0, /^ [^ ]+ [^ ]+\.test\.tsx? \([0-9]+ tests?[^)]*\)/) {
	split(substr($0, RSTART, RLENGTH), word, /[ ()|]+/)
	bad = skips = 0
	for (i = 4; i in word; i++) {
		if (word[i] == "failed")
			bad = word[i - 1]
		else if (word[i] == "skipped")
			skips = word[i - 1]
	}
	count(word[3], word[4] - bad - skips, bad, skips)
	seconds[word[3]] = $NF / 1000
}
kind == "web" && /^ *FAIL  / {
	sub(/^ *FAIL +/, "")
	failure_begin($1, $0)
	sub(/^[^ ]+ +(> )?/, "", test)
	next
}
kind == "web" && pending && /^[A-Za-z]*Error: / {
	add($0)
	failure_end()
}

END {
	failure_end()
	for (i = 1; i <= files; i++) {
		name = names[i]
		if (kind == "regress" && failed[name])
			failure(name, "", "differs", first[name])
	}
	# A file of the page that could not be loaded has no tests.
	for (i = 1; i <= found_count; i++) {
		name = substr(found[i], 1, index(found[i], "\t") - 1)
		if (!failed[name])
			count(name, 0, 1, 0)
		print found[i] >failures
	}
	for (i = 1; i <= files; i++)
		printf "%s\t%d\t%d\t%d\t%.1f\n", names[i], passed[names[i]], failed[names[i]], skipped[names[i]], seconds[names[i]] >results
}
