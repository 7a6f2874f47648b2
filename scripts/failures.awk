# failures.awk - prints the failures in the log of a suite, one per line: FILE: TEST: the beginning of its error.
#
#     awk -v kind=node|tap|regress|web -f failures.awk LOG
#
# node     node's own runner with --test-reporter=tap: "not ok" and a block of YAML
# tap      prove, tests/unit, tests/fuzz/run, check-format: "not ok" and the comments after it
# regress  pg_regress: "... FAILED", or "not ok" from PostgreSQL 16 on, and the differences at the end
# web      vitest: "FAIL  FILE > TEST" and the error below it

BEGIN { error_length = 160 }

function begin(name) {
	finish()
	pending = 1
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

function line_of(file, test, error) {
	if (length(error) > error_length)
		error = substr(error, 1, error_length) "..."
	print (file == "" ? "" : file ": ") test (error == "" ? "" : ": " error)
}

function finish() {
	if (pending)
		line_of(file, test, error)
	pending = 0
}

function base_name(path) {
	sub(/^.*\//, "", path)
	return path
}

/^not ok - the suite was ended/ {
	begin(substr($0, 10))
	finish()
	next
}

# ---- node: the YAML of a suite only reports that one of its tests failed --------------------------------------------------------

kind == "node" && /^ *not ok / {
	sub(/^ *not ok /, "")
	begin($0)
	file = ""
	in_error = 0
	next
}
kind == "node" && pending {
	if (file == "" && match($0, /[A-Za-z0-9_]+\.test\.mjs:[0-9]+/))
		file = substr($0, RSTART, RLENGTH)
	if (/^ *failureType: 'subtestsFailed'/)
		pending = 0
	else if (/^ *\.\.\.$/)
		finish()
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

# ---- TAP: comments follow the test that they explain ----------------------------------------------------------------

kind == "tap" && /^not ok / {
	begin(substr($0, 8))
	found_in_file++
	next
}
kind == "tap" && pending && /^#/ {
	if (!/^# +Failed test/)
		add($0)
	next
}
kind == "tap" && pending && !/^$/ { finish() }
kind == "tap" && /^# test_/ { file = $2 }
kind == "tap" && /\.pl \.\.+ *$/ {
	for (i = 1; i <= NF; i++)
		if ($i ~ /\.pl$/)
			file = base_name($i)
	found_in_file = 0
	next
}
# A file that died has no "not ok".
kind == "tap" && /^Dubious, test returned/ && !found_in_file { died[file] = $0 }
kind == "tap" && sub(/^# last words of /, "") {
	name = substr($0, 1, index($0, ": ") - 1)
	if (name in died)
		line_of(name, died[name], substr($0, index($0, ": ") + 2))
}

# ---- pg_regress -----------------------------------------------------------------------------------------------------------

kind == "regress" && /\.\.\. FAILED/ {
	sub(/^test /, "")
	tests[++count] = $1
	next
}
kind == "regress" && /^not ok +[0-9]+ +[-+] / {
	tests[++count] = $5
	next
}
kind == "regress" && /^diff .*\.out$/ {
	changed = base_name($NF)
	sub(/\.out$/, "", changed)
	place = ""
}
kind == "regress" && /^@@ / { place = $2 " " $3 }
kind == "regress" && place != "" && /^[-+]/ && !(changed in first) { first[changed] = $0 }

# ---- vitest ---------------------------------------------------------------------------------------------------------------

kind == "web" && /^ *FAIL  / {
	sub(/^ *FAIL +/, "")
	begin($0)
	next
}
kind == "web" && pending && /^[A-Za-z]*Error: / {
	add($0)
	finish()
}

END {
	finish()
	for (i = 1; i <= count; i++)
		line_of("", tests[i], first[tests[i]])
}
