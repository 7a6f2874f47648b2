# shellcheck shell=bash disable=SC2154,SC2016 # the sourcing script sets data, port, run_dir; $0 is for the inner sh
# example.sh - the example sheet and the account "demo" that owns it, created once for a data directory (sourced by run,
# after services.sh). $data/demo records what was created, one line each: name, password, sheet, link. Each step is
# done once, so the next start completes an interrupted one.

demo_get() {
	sed -n "s/^$1=//p" "$data/demo" 2>/dev/null || true
}

demo_put() {
	echo "$1=$2" | as_service sh -c 'umask 077; cat >> "$0"' "$data/demo"
}

# Registers the account through the gateway, which hashes the password. The password is random; each start prints it.
demo_register() {
	local password answer
	[ -z "$(demo_get registered)" ] || return 0
	password=$(demo_get password)
	if [ -z "$password" ]; then
		password=$(openssl rand -hex 8)
		demo_put name demo
		demo_put password "$password"
	fi
	answer=$(curl -fsS --noproxy '*' --max-time 20 -H 'Content-Type: application/json' \
		-d "{\"username\":\"demo\",\"password\":\"$password\",\"email\":\"demo@localhost\"}" \
		"http://127.0.0.1:$port/register") || die "the demo account could not be registered"
	case $answer in
		*'"success":true'*) ;;
		*'"msg":6'*) ;; # the account exists: the last start was interrupted after creating it
		*) die "the demo account could not be registered: $answer" ;;
	esac
	demo_put registered yes
}

# Imports and shares the sheet in one transaction: every signed-in account that opens its link may edit. SQL sessions of
# the role demo act as the account demo.
demo_import() {
	local made
	[ -z "$(demo_get sheet)" ] || return 0
	made=$(cluster_psql -1 -f - -v "file=$run_dir/app/examples/airports.csv" <<-'SQL'
		\set csv `cat :'file'`
		SELECT uid FROM sheet.account_find('demo') \gset
		SELECT sheet.import_csv('US airports', :'csv', as_uid => :uid) AS id \gset
		SELECT sheet.share_link(:id, 'editor', :uid) AS key \gset
		SELECT sheet.commit(:id, 'as imported', :uid) \g /dev/null
		SELECT 'CREATE ROLE demo LOGIN' WHERE to_regrole('demo') IS NULL \gexec
		SELECT sheet.link_account('demo', 'demo') \g /dev/null
		\echo :id :key
	SQL
	) || die "the example could not be imported"
	demo_put link "${made#* }"
	demo_put sheet "${made%% *}"
}

demo_prepare() {
	[ -n "$(demo_get sheet)" ] || say "Importing the example sheet (about 5 s)"
	demo_register
	demo_import
}
