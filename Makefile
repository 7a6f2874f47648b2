# pg_sheet: `make run` and `make check` are all that is needed on Debian 12 or 13; `make help` tells the rest.
# What stands on our command line must not reach PostgreSQL's makefiles, where DATA has another meaning.
SUBMAKE = env -u MAKEFLAGS -u MFLAGS -u DATA -u PORT -u PGPORT $(MAKE) --no-print-directory
export PORT PGPORT ZKPORT DATA GATEWAYS ZOOKEEPERS SUITE ASSERT SANITIZE BENCH PGVERSIONS

all build:
	@scripts/setup run
	@scripts/build

run start stop check bench picture:
	@scripts/$@
# Random tests for longer, and more inputs of the fuzz targets.
check-long:
	@LONG=1 scripts/check

# The page alone, into gateway/web/dist.
web:
	@scripts/setup run
	@scripts/build --page

# Into the system's PostgreSQL, or the one of PG_CONFIG=; the gateway, calc, their units for systemd, and the page below PREFIX.
PREFIX ?= /usr/local
PG_CONFIG ?= pg_config
install: all
	$(SUBMAKE) -C extension PG_CONFIG=$(PG_CONFIG) install
	install -D -m 0755 build/gateway/pg_sheet_gateway $(DESTDIR)$(PREFIX)/bin/pg_sheet_gateway
	rm -rf $(DESTDIR)$(PREFIX)/share/pg_sheet/web
	mkdir -p $(DESTDIR)$(PREFIX)/share/pg_sheet
	cp -r gateway/web/dist $(DESTDIR)$(PREFIX)/share/pg_sheet/web
	rm -rf $(DESTDIR)$(PREFIX)/lib/pg_sheet/calc
	install -d $(DESTDIR)$(PREFIX)/lib/pg_sheet/calc
	install -m 0644 build/calc/*.mjs $(DESTDIR)$(PREFIX)/lib/pg_sheet/calc
	$(PLACED) packaging/pg_sheet_calc >build/pg_sheet_calc
	install -m 0755 build/pg_sheet_calc $(DESTDIR)$(PREFIX)/bin/pg_sheet_calc
	$(MAKE) --no-print-directory install-service

# The units for systemd (pg_sheet_gateway@NAME reads NAME.conf instead of gateway.conf), the user as whom it runs, and an example of the configuration; none of them replaces what is in /etc.
PLACED = sed 's|@PREFIX@|$(PREFIX)|g'
install-service:
	mkdir -p $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(PREFIX)/share/pg_sheet
	$(PLACED) packaging/pg_sheet_gateway.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/pg_sheet_gateway.service
	$(PLACED) packaging/pg_sheet_gateway.service | sed 's|/gateway\.conf|/%i.conf|; s|^Description=.*|& %i|' \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system/pg_sheet_gateway@.service
	$(PLACED) packaging/pg_sheet_calc.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/pg_sheet_calc.service
	install -m 0644 packaging/pg_sheet_zookeeper.service $(DESTDIR)$(PREFIX)/lib/systemd/system/
	$(PLACED) packaging/gateway.conf >$(DESTDIR)$(PREFIX)/share/pg_sheet/gateway.conf.example
	install -m 0644 packaging/pg_sheet.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/pg_sheet.conf

# Everything that was built; the data of `make run` stays.
clean:
	$(SUBMAKE) -C extension clean
	rm -rf build gateway/web/dist gateway/web/node_modules tests/node_modules .run/app .run/pg .run/check

help:
	@cat scripts/help.txt

.PHONY: install-service all build run start stop picture check check-long bench web install clean help
