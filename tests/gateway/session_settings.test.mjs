/*
 * Whatever an operator has set for the server, the database or the role: an acknowledged edit is on disk, names and times are
 * the same, and what a gateway cannot work with is said once, with what to do.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, freePort, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, post, register, request } from '../lib/client.mjs';
import { Service } from '../lib/processes.mjs';

let cluster;
let gateway;
let logged = 0;

before(async () => {
	cluster = await Cluster.start({ postgres: { wal_writer_delay: '10s', listen_addresses: '127.0.0.1', port: await freePort() } });
	[gateway] = cluster.gateways;
});
after(() => cluster?.stop());

const log = () => fs.readFileSync(gateway.service.log, 'utf8');
const fresh = () => log().slice(logged);
const serves = async () => (await request(gateway, 'GET', '/readyz')).status === 200;

/** Runs SQL while the gateway is stopped, and starts it again. */
async function startAfter(sql, flags = {}, ready = '/readyz') {
	await gateway.stop();
	if (sql) await cluster.psql(sql);
	logged = log().length;
	await gateway.start(flags, { ready });
}

/** Edits made after reload() are there after a crash. */
async function survivesCrash(reload = async () => {}) {
	const user = await register(gateway);
	const fid = await newSheet(gateway, user);
	const editor = await Editor.open(gateway, user, fid);
	await reload();
	for (let i = 0; i < 5; i++) {
		editor.modify(i, 0, `edit ${i}`);
		await editor.nextModify(i, 0, `edit ${i}`);
	}
	await cluster.stopPostgres('immediate');
	await cluster.startPostgres();
	assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.range(${fid})`), '5');
	await waitUntil(serves, 'the gateway to serve again');
}

test('an acknowledged edit survives a crash although synchronous_commit is off', async () => {
	await startAfter(
		'ALTER SYSTEM SET synchronous_commit = off; ALTER DATABASE sheets SET synchronous_commit = off; ALTER ROLE gateway SET synchronous_commit = off; SELECT pg_reload_conf()',
	);
	await survivesCrash();
});

test('an acknowledged edit survives a crash although synchronous_commit was turned off in running sessions', async () => {
	await startAfter('ALTER SYSTEM RESET ALL; ALTER DATABASE sheets RESET ALL; ALTER ROLE gateway RESET ALL; SELECT pg_reload_conf()');
	await survivesCrash(async () => {
		const session = cluster.psqlSession('gateway');
		await session.query('SELECT 1');
		await cluster.psql('ALTER SYSTEM SET synchronous_commit = off; SELECT pg_reload_conf()');
		// A session that has set nothing follows, and those of the gateway would.
		await waitUntil(async () => (await session.query('SHOW synchronous_commit')).trim() === 'off', 'the reload');
		await session.close();
	});
});

test('synchronous_commit = local stays: commits do not wait for a standby', async () => {
	await startAfter(
		"SET synchronous_commit = local; ALTER ROLE gateway SET synchronous_commit = local; ALTER SYSTEM SET synchronous_standby_names = 'absent'; SELECT pg_reload_conf()",
	);
	const user = await register(gateway);
	const editor = await Editor.open(gateway, user, await newSheet(gateway, user));
	editor.modify(0, 0, 'local');
	await editor.nextModify(0, 0, 'local');
	await editor.close();
	await cluster.psql(
		'SET synchronous_commit = local; ALTER SYSTEM RESET ALL; SELECT pg_reload_conf(); ALTER ROLE gateway RESET ALL; ALTER DATABASE sheets RESET ALL',
	);
});

test('names and times do not depend on the settings of the role', async () => {
	const settings = {
		client_encoding: 'LATIN1',
		DateStyle: "'German, DMY'",
		IntervalStyle: 'sql_standard',
		TimeZone: "'Asia/Kolkata'",
		bytea_output: 'escape',
		extra_float_digits: '-15',
		standard_conforming_strings: 'off',
		array_nulls: 'off',
		search_path: 'nowhere',
		row_security: 'off',
		default_transaction_isolation: 'serializable',
		default_transaction_deferrable: 'on',
		statement_timeout: "'200ms'",
		lock_timeout: "'1ms'",
		idle_in_transaction_session_timeout: "'100ms'",
		idle_session_timeout: "'300ms'",
		role: 'pg_monitor',
	};
	await startAfter(`GRANT pg_monitor TO gateway; ${Object.entries(settings).map(([name, value]) => `ALTER ROLE gateway SET ${name} = ${value}`).join('; ')}`);
	const name = `Jörg ${Date.now()} 日本`;
	const user = await register(gateway, name);
	const fid = await newSheet(gateway, user);
	const editor = await Editor.open(gateway, user, fid);
	editor.modify(0, 0, 'größer 日本');
	await editor.nextModify(0, 0, 'größer 日本');
	assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.account WHERE name = '${user.username}'`), '1');
	assert.equal(await cluster.psql(`SELECT content FROM sheet.range(${fid})`), 'größer 日本');
	const { json } = await post(gateway, '/getsheet', { token: user.token, fid });
	assert.match(JSON.stringify(json), /"CreatedAt":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"/);
	// No session ends by a timeout of the role.
	const pids = () => cluster.psql("SELECT string_agg(pid::text, ',' ORDER BY pid) FROM pg_stat_activity WHERE usename = 'gateway'");
	const before_ = await pids();
	await waitUntil(() => cluster.psql("SELECT 1 FROM pg_stat_activity WHERE usename = 'gateway' AND state = 'idle' AND now() - state_change > '1 s'"), 'an idle session');
	assert.equal(await pids(), before_);
	await editor.close();
	await cluster.psql('ALTER ROLE gateway RESET ALL');
});

/** The gateway does not serve, says why in one line, and serves after the cure. */
async function saysAndServes(sql, said, cure) {
	await startAfter(sql, {}, '/livez');
	await waitUntil(() => said.test(fresh()), () => `${said}: ${fresh()}`);
	assert.ok(!(await serves()));
	assert.equal(fresh().split('\n').filter((line) => said.test(line)).length, 1, fresh());
	await cluster.psql(cure);
	await waitUntil(serves, 'the gateway to serve');
	await waitUntil(() => /info database connections work again after=/.test(fresh()), 'the end in the log');
}

test('a read-only database, a replication role, and a limit of connections are said once, and healed', async () => {
	await saysAndServes(
		'ALTER DATABASE sheets SET default_transaction_read_only = on',
		/the database is read-only: default_transaction_read_only is on \(database\)" hint="a gateway respects that; reset/,
		'SET default_transaction_read_only = off; ALTER DATABASE sheets RESET default_transaction_read_only',
	);
	await saysAndServes(
		'ALTER ROLE gateway SET session_replication_role = replica',
		/session_replication_role is \\"replica\\" instead of \\"origin\\" \(user\)" hint="reset them/,
		'ALTER ROLE gateway RESET ALL',
	);
	await saysAndServes(
		'ALTER ROLE gateway CONNECTION LIMIT 0',
		/FATAL:  53300: too many connections for role \\"gateway\\"" hint="raise max_connections/,
		'ALTER ROLE gateway CONNECTION LIMIT -1',
	);
	await saysAndServes('ALTER ROLE gateway NOLOGIN', /28000: role \\"gateway\\" is not permitted to log in" hint="/, 'ALTER ROLE gateway LOGIN');
});

test('a database that is not for gateways ends the start, with what to do', async () => {
	await gateway.stop();
	for (const [sql, said, cure] of [
		['CREATE DATABASE other', /the extension pg_sheet is not created in it; run CREATE EXTENSION pg_sheet/, 'DROP DATABASE other'],
		['REVOKE sheet_gateway FROM gateway', /the role "gateway" is not a member of sheet_gateway; run GRANT/, 'GRANT sheet_gateway TO gateway'],
		[
			"UPDATE pg_extension SET extversion = '0.9' WHERE extname = 'pg_sheet'",
			/extension pg_sheet 0.9 is older than this gateway \(1.0\); .*ALTER EXTENSION pg_sheet UPDATE/,
			"UPDATE pg_extension SET extversion = '1.0' WHERE extname = 'pg_sheet'",
		],
	]) {
		await cluster.psql(sql);
		const result = await cluster.runGateway(sql.includes('other') ? { database: cluster.conninfo('gateway', 'other') } : {});
		await cluster.psql(cure);
		assert.equal(result.code, 1, JSON.stringify(result));
		assert.match(result.stderr, said);
	}
	await gateway.start();
});

const hasBouncer = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find((file) => fs.existsSync(file));

test('behind PgBouncer: session mode serves, transaction mode is refused with what to do', { skip: !hasBouncer && 'pgbouncer is not installed' }, async () => {
	const port = await freePort();
	const file = path.join(cluster.directory, 'pgbouncer.ini');
	const configure = (mode) =>
		fs.writeFileSync(
			file,
			[
				'[databases]',
				`sheets = host=${cluster.directory}/socket port=${cluster.settings.port}`,
				'[pgbouncer]',
				'listen_addr = 127.0.0.1',
				`listen_port = ${port}`,
				'unix_socket_dir =',
				'auth_type = trust',
				`auth_file = ${cluster.directory}/users`,
				`pool_mode = ${mode}`,
				'',
			].join('\n'),
		);
	fs.writeFileSync(path.join(cluster.directory, 'users'), '"gateway" ""\n');
	configure('transaction');
	fs.chmodSync(file, 0o644);
	fs.chmodSync(path.join(cluster.directory, 'users'), 0o644);
	let bouncer = Service.spawn('pgbouncer', hasBouncer, [file], { log: path.join(cluster.directory, 'log', 'pgbouncer.log') });
	const database = `host=127.0.0.1 port=${port} user=gateway dbname=sheets`;
	try {
		await startAfter(null, { database }, '/livez');
		await waitUntil(() => /several connections share a server process.*pool_mode to session/.test(fresh()), () => fresh());
		await waitUntil(async () => !(await serves()), 'the gateway not to serve');
		await bouncer.stop('SIGTERM');
		await gateway.stop();
		configure('session');
		bouncer = Service.spawn('pgbouncer', hasBouncer, [file], { log: path.join(cluster.directory, 'log', 'pgbouncer.log') });
		await startAfter(null, { database });
		const user = await register(gateway);
		const fid = await newSheet(gateway, user);
		const editor = await Editor.open(gateway, user, fid);
		editor.modify(0, 0, 'through a pooler');
		await editor.nextModify(0, 0, 'through a pooler');
		await editor.close();
	} finally {
		await gateway.stop();
		await bouncer.stop('SIGTERM');
	}
});

test('a server without room for background workers says so once, and what to do', async () => {
	await cluster.stopPostgres();
	// one for PostgreSQL's logical replication, one for the launcher, none for its workers
	Object.assign(cluster.settings, { max_worker_processes: 2, 'pg_sheet.version_edits': 1, 'pg_sheet.version_interval': 0 });
	await cluster.startPostgres();
	await gateway.stop();
	await gateway.start({ database: cluster.conninfo('gateway') });
	const user = await register(gateway);
	const editor = await Editor.open(gateway, user, await newSheet(gateway, user));
	editor.modify(0, 0, 'no version');
	await editor.nextModify(0, 0, 'no version');
	await editor.close();
	const said = () => fs.readFileSync(cluster.postgres.log, 'utf8').match(/LOG: .*automatic versions and the timer wait, because no background worker can be started/g) ?? [];
	await waitUntil(() => said().length > 0, 'the line in the log');
	assert.match(fs.readFileSync(cluster.postgres.log, 'utf8'), /HINT: {2}Increase max_worker_processes/);
	assert.equal(said().length, 1);
});
