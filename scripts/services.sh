# shellcheck shell=bash disable=SC2154,SC2016 # lib.sh sets data, run_dir, ports; $0 is for the inner sh
# services.sh - starts PostgreSQL, ZooKeeper, gateways and calc as children of the script that sources it (after lib.sh;
# run_dir_choose, data_dir_prepare and settings_read have been called). Each is in a session of its own, so that Ctrl-C
# reaches only the script, which then stops them in order.

database=sheets
bindir=$("$repo/scripts/pgtree" "$run_dir/pg")
bindir=${bindir%/*}

# service_spawn NAME COMMAND...: starts it with its output in log/NAME.log, and keeps its pid.
service_spawn() {
	local name=$1
	shift
	setsid "${service_prefix[@]}" "$@" </dev/null >>"$data/log/$name.log" 2>&1 8>&- 9>&- &
	# setsid and setpriv execute the program in the same process, so the start time does not change.
	proc_record "$name" $!
}

# service_wait NAME SECONDS COMMAND...: waits until the command succeeds; fails if the service ends or time runs out.
service_wait() {
	local name=$1 tries=$(($2 * 20))
	shift 2
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		if [ "$tries" -le 0 ] || ! proc_find "$name" >/dev/null; then
			say "--- the end of $data/log/$name.log:" >&2
			tail -n 20 "$data/log/$name.log" >&2
			return 1
		fi
		sleep 0.05
	done
}

# ---- PostgreSQL -----------------------------------------------------------------------------------------------------

cluster_conninfo() {
	echo "host=$socket_dir port=$pgport user=$1 dbname=$database"
}

# cluster_psql [OPTION...]: psql as the superuser, stopping at the first error.
cluster_psql() {
	as_service "$bindir/psql" -X -q -v ON_ERROR_STOP=1 -A -t "$@" "$(cluster_conninfo postgres)"
}

cluster_init() {
	local version
	if version=$(cat "$data/postgres/PG_VERSION" 2>/dev/null); then
		[[ $("$bindir/postgres" --version) =~ \)\ $version[^0-9] ]] ||
			die "$data/postgres was made by PostgreSQL $version, this is $("$bindir/postgres" --version): upgrade it with pg_upgrade (docs/OPERATIONS.md), choose PostgreSQL $version with PG_CONFIG=, or another directory with DATA="
		return 0
	fi
	say "Creating a PostgreSQL cluster in $data/postgres (about 5 s)"
	rm -rf "$data/postgres.new"
	as_service "$bindir/initdb" -D "$data/postgres.new" -U postgres --data-checksums --encoding=UTF8 --locale=C.UTF-8 \
		--auth-local=trust --auth-host=scram-sha-256 >"$data/log/initdb.log" 2>&1 || {
		tail -n 20 "$data/log/initdb.log" >&2
		die "initdb failed"
	}
	mv "$data/postgres.new" "$data/postgres"
}

# cluster_spawn [OPTION...]: passes the settings that pg_sheet needs on the command line, so that postgresql.conf belongs
# to the user. OPTIONs are further options of postgres.
cluster_spawn() {
	service_spawn postgres "$bindir/postgres" -D "$data/postgres" -p "$pgport" -k "$socket_dir" \
		-c listen_addresses=127.0.0.1 -c unix_socket_permissions=0700 -c shared_preload_libraries=pg_sheet \
		-c "cluster_name=pg_sheet" "$@"
}

# cluster_start [OPTION...]: cluster_spawn, and waits until the server answers.
cluster_start() {
	cluster_spawn "$@"
	service_wait postgres 60 as_service "$bindir/pg_isready" -q -h "$socket_dir" -p "$pgport" ||
		die "PostgreSQL did not start"
}

# The database, the extension, and the role that gateways sign in with.
cluster_prepare() {
	as_service "$bindir/psql" -X -q -A -t -c "SELECT 1 FROM pg_database WHERE datname = '$database'" \
		"host=$socket_dir port=$pgport user=postgres dbname=postgres" | grep -q 1 ||
		as_service "$bindir/createdb" -h "$socket_dir" -p "$pgport" -U postgres "$database"
	cluster_psql >/dev/null <<-'SQL' || die "the extension could not be set up in the database"
		SET client_min_messages = warning;
		CREATE EXTENSION IF NOT EXISTS pg_sheet;
		ALTER EXTENSION pg_sheet UPDATE;
		SELECT 'CREATE ROLE gateway LOGIN IN ROLE sheet_gateway' WHERE to_regrole('gateway') IS NULL \gexec
	SQL
}

# Epochs of different coordinators cannot be compared, nor those of ensembles of different sizes, which have separate
# data. If the coordinator has changed, the old ones are removed.
cluster_note_coordinator() {
	local before now=$coordinator
	[ "$zookeepers" -eq 1 ] || now="zookeeper with $zookeepers servers"
	before=$(cat "$data/coordinator" 2>/dev/null || true)
	if [ -n "$before" ] && [ "$before" != "$now" ]; then
		say "The coordinator has changed from $before to $now: resetting epochs"
		cluster_psql -c 'SELECT sheet.reset_epochs()' >/dev/null
	fi
	echo "$now" >"$data/coordinator"
}

# ---- ZooKeeper ------------------------------------------------------------------------------------------------------

# zookeeper_answers PORT
zookeeper_answers() {
	local answer
	exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
	printf srvr >&3
	answer=$(timeout 2 cat <&3 || true)
	exec 3>&-
	[[ $answer == *Mode:* ]]
}

# Prints the addresses of all servers, for clients.
zookeeper_hosts() {
	local k hosts=() ports
	for ((k = 1; k <= zookeepers; k++)); do
		read -ra ports <<<"$(zookeeper_ports "$k")"
		hosts+=("127.0.0.1:${ports[0]}")
	done
	(IFS=, && echo "${hosts[*]}")
}

# zookeeper_dir K: the directory of the Kth server. Ensembles of different sizes share nothing.
zookeeper_dir() {
	if [ "$zookeepers" -eq 1 ]; then
		echo "$data/zookeeper"
	else
		echo "$data/zookeeper-$zookeepers/$1"
	fi
}

# zookeeper_configure K: prints the configuration of the Kth server.
zookeeper_configure() {
	local k ports
	read -ra ports <<<"$(zookeeper_ports "$1")"
	cat <<-CFG
		tickTime=500
		minSessionTimeout=1000
		maxSessionTimeout=60000
		dataDir=$(zookeeper_dir "$1")/data
		clientPort=${ports[0]}
		clientPortAddress=127.0.0.1
		maxClientCnxns=0
		admin.enableServer=false
		4lw.commands.whitelist=srvr,stat,ruok
		autopurge.snapRetainCount=3
		autopurge.purgeInterval=24
	CFG
	[ "$zookeepers" -gt 1 ] || return 0
	printf '%s\n' initLimit=20 syncLimit=10
	for ((k = 1; k <= zookeepers; k++)); do
		read -ra ports <<<"$(zookeeper_ports "$k")"
		echo "server.$k=127.0.0.1:${ports[1]}:${ports[2]}"
	done
}

# zookeeper_start K: starts the Kth server on loopback. Its data is kept, because epochs are its transaction numbers and
# must keep growing.
zookeeper_start() {
	local dir
	dir=$(zookeeper_dir "$1")
	as_service mkdir -p "$dir/data"
	zookeeper_configure "$1" | as_service tee "$dir/zoo.cfg" >/dev/null
	[ "$zookeepers" -eq 1 ] || echo "$1" | as_service tee "$dir/data/myid" >/dev/null
	service_spawn "zookeeper-$1" java -Xms16m -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
		-Djava.awt.headless=true -Dzookeeper.jmx.log4j.disable=true \
		-cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar \
		org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/zoo.cfg"
}

# Servers of an ensemble answer only when a majority has started.
zookeepers_start() {
	local k ports
	for ((k = 1; k <= zookeepers; k++)); do
		zookeeper_start "$k"
	done
	for ((k = 1; k <= zookeepers; k++)); do
		read -ra ports <<<"$(zookeeper_ports "$k")"
		service_wait "zookeeper-$k" 60 zookeeper_answers "${ports[0]}" || die "ZooKeeper server $k did not start"
	done
}

# ---- gateways -------------------------------------------------------------------------------------------------------

# Creates the key that signs tokens once, readable only by the service user.
gateway_make_key() {
	[ ! -s "$data/jwt.key" ] || return 0
	echo "k1:$(openssl rand -hex 32)" | as_service sh -c 'umask 077; cat > "$0"' "$data/jwt.key"
}

gateway_answers() {
	curl -fsS --noproxy '*' --max-time 2 "http://127.0.0.1:$1/healthz"
}

# gateway_start PORT
gateway_start() {
	local others=() i
	for ((i = 0; i < gateways; i++)); do
		others+=("http://localhost:$((port + i))")
	done
	[ -z "${PG_SHEET_ALLOWED_ORIGINS:-}" ] || others+=("$PG_SHEET_ALLOWED_ORIGINS")
	service_spawn "gateway-$1" "${gateway_bin:-$run_dir/app/pg_sheet_gateway}" --listen-address=127.0.0.1 --listen-port="$1" \
		--database="$(cluster_conninfo gateway)" --coordinator="$coordinator" --zookeeper-hosts="$(zookeeper_hosts)" \
		--web-root="$run_dir/app/web" --jwt-key-file="$data/jwt.key" \
		--allowed-origins="$(IFS=,; echo "${others[*]}")" ${gateway_flags[@]+"${gateway_flags[@]}"}
}

gateways_start() {
	local i
	gateway_make_key
	for ((i = 0; i < gateways; i++)); do
		gateway_start $((port + i))
	done
	for ((i = 0; i < gateways; i++)); do
		service_wait "gateway-$((port + i))" 30 gateway_answers $((port + i)) ||
			die "the gateway on port $((port + i)) did not start"
	done
}

# ---- calc: computes the formulas; it connects until the database answers ---------------------------------------------

calc_start() {
	service_spawn calc node "$run_dir/app/calc/main.mjs" --database="$(cluster_conninfo gateway)"
}
