# shellcheck shell=bash disable=SC2034 # variables are used by the scripts that source this
# lib.sh - shared by the scripts: messages, settings, directories, users, processes and ports.
# Sourced by the other scripts, which have `set -euo pipefail`.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
export LANG=C.UTF-8 LC_ALL=C.UTF-8
umask 022
# On Debian, setpriv and others are in directories that a user's PATH may lack.
PATH=$PATH:/usr/sbin:/sbin

say() {
	printf '%s\n' "$*"
}

die() {
	printf 'pg_sheet: %s\n' "$*" >&2
	exit 1
}

# ---- settings -------------------------------------------------------------------------------------------------------

# setting_check_number NAME VALUE LOW HIGH
setting_check_number() {
	if ! [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then
		die "$1=$2 is not a number from $3 to $4"
	fi
}

# Settings of `make run`, from the environment (make exports its command line variables).
settings_read() {
	port=${PORT:-8080}
	pgport=${PGPORT:-5442}
	zkport=${ZKPORT:-21810}
	gateways=${GATEWAYS:-1}
	zookeepers=${ZOOKEEPERS:-1}
	setting_check_number GATEWAYS "$gateways" 1 16
	[[ $zookeepers == [135] ]] || die "ZOOKEEPERS=$zookeepers is not 1, 3 or 5"
	setting_check_number PORT "$port" 1 $((65536 - gateways))
	setting_check_number PGPORT "$pgport" 1 65535
	setting_check_number ZKPORT "$zkport" 1 $((65535 - 25))
	coordinator=postgres
	[ "$gateways" -eq 1 ] && [ "$zookeepers" -eq 1 ] || coordinator=zookeeper
}

# zookeeper_ports K: the ports of the Kth ZooKeeper server: for clients, between servers, for elections. A single server
# uses only the first.
zookeeper_ports() {
	echo $((zkport + $1 - 1)) $((zkport + 10 + $1)) $((zkport + 20 + $1))
}

# ---- PostgreSQL -----------------------------------------------------------------------------------------------------

pg_versions=(18 17 16 15) # that the extension supports, the newest first

# Sets pg_config and pg_version: those of PG_CONFIG, else of the newest supported version that is installed from the
# system's packages with its headers. Fails if there is none.
pg_choose() {
	pg_config=${PG_CONFIG:-}
	if [ -n "$pg_config" ]; then
		pg_version=$("$pg_config" --version 2>/dev/null | sed -nE 's/^PostgreSQL ([0-9]+).*/\1/p')
		[[ " ${pg_versions[*]} " == *" ${pg_version:-none} "* ]] ||
			die "PG_CONFIG=$pg_config is not the pg_config of PostgreSQL ${pg_versions[-1]} to ${pg_versions[0]}"
		[ -e "$("$pg_config" --pgxs)" ] || die "PG_CONFIG=$pg_config: the files to build extensions are not installed"
		return 0
	fi
	for pg_version in "${pg_versions[@]}"; do
		pg_config=/usr/lib/postgresql/$pg_version/bin/pg_config
		[ ! -x "${pg_config%_config}_ctl" ] || [ ! -e "/usr/lib/postgresql/$pg_version/lib/pgxs/src/makefiles/pgxs.mk" ] || return 0
	done
	pg_config='' pg_version=''
	return 1
}

# ---- building -------------------------------------------------------------------------------------------------------

# make, without the variables of the calling make: DATA, for example, has another meaning in PostgreSQL's makefiles.
submake() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u DATA -u PORT -u PGPORT -u DESTDIR -u GATEWAYS -u ZOOKEEPERS -u ZKPORT -u SUITE -u SANITIZE -u BENCH \
		make --no-print-directory -s -j"$(nproc)" "$@"
}

# build_say PART SECONDS OPTION...: says how long building takes, if make has something to build.
build_say() {
	submake -q "${@:3}" >/dev/null 2>&1 || say "Building the $1 (about $2 s if all of it is new)"
}

# npm_install DIR: npm ci, if package-lock.json has changed.
npm_install() {
	cmp -s "$1/package-lock.json" "$1/node_modules/.pg_sheet-lock" && return
	say "Installing the npm packages of ${1#"$repo"/} (about 15 s)"
	(cd "$1" && npm ci --no-audit --no-fund --loglevel=error </dev/null)
	cp "$1/package-lock.json" "$1/node_modules/.pg_sheet-lock"
}

# ---- users and directories --------------------------------------------------------------------------------------------------

# PostgreSQL refuses to run as root. As root, servers and tests run as the user `postgres` of Debian's package.
service_user() {
	if [ "$(id -u)" -eq 0 ]; then
		echo postgres
	else
		id -un
	fi
}

# The prefix that runs a command as that user, in a clean environment (no PGHOST, PGDATA, proxies). Only PG_SHEET_*
# settings of the gateway are passed on.
service_prefix_set() {
	local name
	service_prefix=()
	if [ "$(id -u)" -eq 0 ]; then
		service_prefix+=(setpriv --reuid=postgres --regid=postgres --init-groups)
	fi
	service_prefix+=(env -i "PATH=$PATH" LANG=C.UTF-8 LC_ALL=C.UTF-8 "HOME=${service_home:-/tmp}")
	while read -r name; do
		service_prefix+=("$name=${!name}")
	done < <(compgen -e | grep '^PG_SHEET_' || true)
}

as_service() {
	"${service_prefix[@]}" "$@"
}

# service_can_reach DIR: whether the service user can read DIR.
service_can_reach() {
	as_service test -x "$1" -a -r "$1"
}

# run_dir has the copies of PostgreSQL, gateway and page, and by default the data. It is .run in the clone. If the clone
# belongs to root and the user postgres cannot read it (/root is 0700), it is a directory in /var/lib.
run_dir_choose() {
	service_prefix_set
	run_dir=$repo/.run
	if [ "$(id -u)" -eq 0 ] && ! service_can_reach "$repo"; then
		run_dir=/var/lib/pg_sheet-run-$(printf %s "$repo" | sha256sum | cut -c1-8)
		run_dir_why="The user postgres cannot read $repo, so the run directory is $run_dir."
	fi
	data=${DATA:-$run_dir/data}
	[[ $data == /* ]] || data=$repo/$data
	case $data in *[[:space:]\'\\]*) die "DATA=$data: spaces, quotes and backslashes are not supported" ;; esac
}

# Creates the data directory, or reports why it cannot be used. It contains everything that must be kept: the database
# (postgres/), the key that signs tokens (jwt.key), the demo account (demo), ZooKeeper's data (zookeeper/).
data_dir_prepare() {
	local owner created=no
	if [ -e "$run_dir" ] && [ ! -w "$run_dir" ]; then
		die "$run_dir belongs to $(stat -c %U "$run_dir"): run make as that user, or remove it"
	fi
	mkdir -p "$run_dir"
	if [ ! -e "$data" ]; then
		mkdir -p "$(dirname "$data")"
		mkdir -m 0700 "$data"
		created=yes
		[ "$(id -u)" -ne 0 ] || chown postgres: "$data"
	fi
	[ -d "$data" ] || die "DATA=$data is not a directory"
	owner=$(stat -c %U "$data")
	[ "$owner" = "$(service_user)" ] ||
		die "$data belongs to $owner, but the server would run as $(service_user): choose another directory with DATA="
	if ! service_can_reach "$data"; then
		[ "$created" = no ] || rmdir "$data"
		die "the user $(service_user) cannot read $data: choose another directory with DATA="
	fi
	if [ ! -e "$data/postgres" ] && [ -n "$(ls -A "$data")" ] && [ ! -d "$data/log" ]; then
		die "$data is not empty and not a data directory of pg_sheet: choose another directory with DATA="
	fi
	chmod 0700 "$data"
	as_service mkdir -p -m 0700 "$data/log" "$data/run"
	socket_dir_choose
}

# The server's socket needs no password, so it is in a directory that only its user can enter. The path of a socket has
# at most 107 bytes: a deep clone uses a short directory in /tmp instead.
socket_dir_choose() {
	socket_dir=$data/run
	if [ ${#socket_dir} -gt 85 ]; then
		socket_dir=/tmp/pg_sheet-$(printf %s "$data" | sha256sum | cut -c1-12)
		as_service mkdir -p -m 0700 "$socket_dir"
		[ "$(stat -c '%U %a' "$socket_dir")" = "$(service_user) 700" ] ||
			die "$socket_dir exists and is not a private directory of $(service_user): remove it"
	fi
}

# ---- processes: a pid file has "PID STARTTIME", so that a reused pid is not mistaken for ours ---------------

# proc_start_time PID: sets start_time to clock ticks since boot; fails if there is no such process or it is a zombie.
proc_start_time() {
	local line fields
	start_time=0
	{ read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
	read -ra fields <<<"${line##*) }"
	[ "${fields[0]}" != Z ] && start_time=${fields[19]}
}

# proc_record NAME PID
proc_record() {
	local start_time
	proc_start_time "$2" || true
	echo "$2 $start_time" >"$data/run/$1.pid"
}

# proc_find NAME: prints the pid if that process is still running.
proc_find() {
	local pid start start_time
	{ read -r pid start <"$data/run/$1.pid"; } 2>/dev/null || return 1
	proc_start_time "$pid" && [ "$start_time" = "$start" ] && echo "$pid"
}

# proc_stop NAME SIGNAL SECONDS LAST_SIGNAL: signals it, waits, and sends LAST_SIGNAL after the timeout.
proc_stop() {
	local pid tries=$(($3 * 10))
	if pid=$(proc_find "$1"); then
		kill -s "$2" "$pid" 2>/dev/null || true
		while proc_find "$1" >/dev/null; do
			sleep 0.1
			tries=$((tries - 1))
			if [ "$tries" -eq 0 ]; then
				say "$1 (pid $pid) did not end within $3 s: sending $4"
				kill -s "$4" "$pid" 2>/dev/null || true
			elif [ "$tries" -lt -100 ]; then
				say "$1 (pid $pid) cannot be ended"
				return 1
			fi
		done
	fi
	rm -f "$data/run/$1.pid"
}

# procs_stop_all: calc and gateways first (they drain), then ZooKeeper, then PostgreSQL.
procs_stop_all() {
	local file name
	for file in "$data"/run/calc.pid "$data"/run/gateway-*.pid; do
		[ -e "$file" ] || continue
		name=${file##*/}
		proc_signal "${name%.pid}" TERM
	done
	for file in "$data"/run/calc.pid "$data"/run/gateway-*.pid "$data"/run/zookeeper*.pid; do
		[ -e "$file" ] || continue
		name=${file##*/}
		proc_stop "${name%.pid}" TERM 20 KILL
	done
	proc_stop postgres INT 60 QUIT
}

# proc_signal NAME SIGNAL
proc_signal() {
	local pid
	pid=$(proc_find "$1") || return 0
	kill -s "$2" "$pid" 2>/dev/null || true
}

# ---- ports ----------------------------------------------------------------------------------------------------------

# port_is_open PORT: whether a process listens on it on loopback.
port_is_open() {
	(exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# port_check_free VARIABLE VALUE PORT WHAT: PORT follows from VARIABLE's value.
port_check_free() {
	local other=$(($2 + 1000))
	[ "$other" -le 65000 ] || other=$(($2 - 1000))
	! port_is_open "$3" || die "port $3 is in use, and $4 needs it: choose another port, for example $1=$other"
}

# gateway_admin_port PORT: the port of admin-address by default (--help).
gateway_admin_port() {
	echo $(($1 + ($1 > 64535 ? -1000 : 1000)))
}

# ports_check: checks all ports of a run before anything is started.
ports_check() {
	local i number ports name
	local -A taken=([$pgport]=PGPORT)
	port_check_free PGPORT "$pgport" "$pgport" "PostgreSQL"
	for ((i = 0; i < gateways; i++)); do
		port_take PORT "$port" $((port + i)) "gateway $((i + 1))"
		port_take PORT "$port" "$(gateway_admin_port $((port + i)))" "operators of gateway $((i + 1))"
	done
	[ "$coordinator" = zookeeper ] || return 0
	for ((i = 1; i <= zookeepers; i++)); do
		read -ra ports <<<"$(zookeeper_ports "$i")"
		[ "$zookeepers" -gt 1 ] || ports=("${ports[0]}")
		for number in "${ports[@]}"; do
			port_take ZKPORT "$zkport" "$number" "ZooKeeper server $i"
		done
	done
}

# port_take VARIABLE VALUE PORT WHAT: like port_check_free; also fails if another variable asks for the port. Uses `taken`
# of ports_check.
port_take() {
	name=${taken[$3]:-}
	[ -z "$name" ] || die "$name and $1 ask for the same port $3"
	taken[$3]=$1
	port_check_free "$@"
}
