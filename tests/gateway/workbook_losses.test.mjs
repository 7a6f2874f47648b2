/*
 * workbook_losses.test.mjs - conversions of workbooks when something is lost: memory, calc, connections, the server
 * (docs/design/workbooks.md). The answer to a request is what has happened.
 */
import { after, afterEach, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, PsqlSession, waitUntil } from '../lib/cluster.mjs';
import { register, request } from '../lib/client.mjs';
import { makeSheet, startCalc, waitValues } from '../lib/calc.mjs';
import { makeWorkbook, script, workbookType as type } from '../lib/workbook.mjs';

let cluster;
let gateway;
let calc;
let bytes;
let lock;

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
	calc = startCalc(cluster, { 'calc-thread-memory': 64 });
	bytes = makeWorkbook(path.join(cluster.directory, 'made.xlsx'));
	await reported();
});
afterEach(() => lock?.close());
after(async () => {
	await calc?.stop();
	await cluster?.stop();
});

const upload = (user, body = bytes) =>
	request(gateway, 'POST', '/v2/books/import?name=Book', { headers: { authorization: `Bearer ${user.token}`, 'content-type': type, 'content-length': body.length }, body, timeoutMs: 120000 });
const books = async () => Number(await cluster.psql('SELECT count(*) FROM sheet.book'));
const nothingLeft = () => waitUntil(async () => (await cluster.psql('SELECT (SELECT count(*) FROM sheet.workbook_job) + (SELECT count(*) FROM sheet.import_part)')) === '0', 'jobs and parts to be removed');
/** While the table is locked, jobs run that make a book, and go no further. */
const hold = async () => {
	lock = new PsqlSession(cluster);
	await lock.query('BEGIN; LOCK TABLE sheet.book IN SHARE ROW EXCLUSIVE MODE');
};
const inState = (state, n = 1) => waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.workbook_job WHERE state = '${state}'`)) === String(n), `${n} jobs to be ${state}`);
const childrenOf = (pid) => fs.readdirSync(`/proc/${pid}/task`).flatMap((task) => fs.readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number));
const isThere = (pid) => fs.existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
const backends = async (condition) => (await cluster.psql(`SELECT coalesce(string_agg(pid::text, ' '), '') FROM pg_stat_activity WHERE ${condition}`)).split(' ').filter(Boolean).map(Number);
/** After a crash of the server, it does not know calc. */
const reported = () => waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.calculator')) === '1', 'calc to report');
/** What the gateway has open to the database. */
const ofGateway = `usename = (SELECT usename FROM pg_stat_activity WHERE application_name = 'pg_sheet_calc follow') AND application_name NOT LIKE 'pg_sheet_calc%'`;

test('a workbook that takes too much memory is refused, and calc goes on with its sheets', async () => {
	const user = await register(gateway);
	const file = path.join(cluster.directory, 'large.xlsx');
	const rules = `t.replace('</sheetData>', '</sheetData><dataValidations>' + ''.join('<dataValidation type="list" sqref="A1"><formula1>"%d"</formula1></dataValidation>' % i for i in range(300000)) + '</dataValidations>')`;
	execFileSync('/usr/bin/python3', ['-c', `import sys; sys.path.insert(0, ${JSON.stringify(path.dirname(script))}); import workbook\nworkbook.make(sys.argv[1]); workbook.rewrite(sys.argv[1], 'xl/worksheets/sheet2.xml', lambda t: ${rules})`, file], { cwd: cluster.directory });
	const sheet = await makeSheet(cluster, { A1: '=1+1' });
	await waitValues(cluster, sheet, { A1: '2' });
	const before = await books();
	const answer = await upload(user, fs.readFileSync(file));
	assert.deepEqual([answer.status, answer.json.code, answer.json.data], [400, 'workbook_limit', 'the workbook takes more than 64 MB of memory'], answer.text);
	assert.equal(calc.alive, true);
	await cluster.psql(`SELECT sheet.set(${sheet}, 'A1', '=1+2')`);
	await waitValues(cluster, sheet, { A1: '3' });
	assert.equal((await upload(user)).status, 201);
	assert.equal(await books(), before + 1);
	await waitUntil(() => childrenOf(calc.pid).length === 0, 'the processes to end');
	await nothingLeft();
});

test('a process that converts ends with calc', async () => {
	const user = await register(gateway);
	const priority = (pid) => (fs.existsSync(`/proc/${pid}/autogroup`) ? / nice (-?[0-9]+)$/.exec(fs.readFileSync(`/proc/${pid}/autogroup`, 'latin1').trim())?.[1] : undefined);
	const calcsPriority = priority(calc.pid);
	await hold();
	const made = upload(user);
	await inState('running');
	await waitUntil(() => childrenOf(calc.pid).length === 1, 'a process to convert');
	const [child] = childrenOf(calc.pid);
	// If the kernel has autogroups, the session of the process gets a nice value. That of calc keeps its own.
	if (calcsPriority !== undefined) {
		await waitUntil(() => priority(child) === '5', 'the session of the process to have a low priority');
		assert.equal(priority(calc.pid), calcsPriority);
	}
	process.kill(calc.pid, 'SIGKILL');
	await waitUntil(() => !isThere(child), 'the process to end', 10000);
	await calc.kill();
	calc = startCalc(cluster);
	await lock.close();
	assert.equal((await made).status, 201);
	await nothingLeft();
});

test('a gateway that loses its connections while the book is made tells of it', async () => {
	const user = await register(gateway);
	const before = await books();
	await hold();
	const made = upload(user);
	await inState('running');
	gateway.service.signal('SIGSTOP');
	try {
		await lock.close();
		await inState('done');
		const lost = await backends(ofGateway);
		assert.ok(lost.length > 0);
		await cluster.psql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${ofGateway}`);
		await waitUntil(() => lost.every((pid) => !isThere(pid)), 'the connections to be lost');
	} finally {
		gateway.service.signal('SIGCONT');
	}
	const answer = await made;
	assert.equal(answer.status, 201, answer.text);
	assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.book WHERE book_id = ${answer.json.id}`), '1');
	assert.equal(await books(), before + 1);
	await nothingLeft();
});

test('a server that crashes when the book is made: the request is told of it', async () => {
	const user = await register(gateway);
	const before = await books();
	await hold();
	const made = upload(user);
	await inState('running');
	gateway.service.signal('SIGSTOP');
	try {
		await lock.close();
		await inState('done');
		await cluster.restartPostgres('immediate');
	} finally {
		gateway.service.signal('SIGCONT');
	}
	const answer = await made;
	assert.equal(answer.status, 201, answer.text);
	assert.equal(await books(), before + 1);
	await nothingLeft();
});

test('a server that crashes while the workbook is converted: nothing is made, and the request is told to try again', async () => {
	await reported();
	const user = await register(gateway);
	const before = await books();
	await hold();
	const made = upload(user);
	await inState('running');
	await cluster.restartPostgres('immediate');
	const answer = await made;
	assert.equal(answer.status, 503, answer.text);
	assert.equal(await books(), before);
	await nothingLeft();
});

test('a server that falls silent: the jobs end with their leases, and others are converted', async () => {
	await reported();
	const users = [await register(gateway), await register(gateway)];
	const before = await books();
	await hold();
	const made = users.map((user) => upload(user));
	await inState('running', 2);
	await waitUntil(() => childrenOf(calc.pid).length === 2, 'two processes to convert');
	// No connection can be made, either.
	const all = [cluster.postgres.pid, ...(await backends(`application_name LIKE 'pg_sheet_calc%'`))];
	const own = await backends(`application_name = 'pg_sheet_calc workbook'`);
	assert.equal(own.length, 2);
	all.forEach((pid) => process.kill(pid, 'SIGSTOP'));
	try {
		await waitUntil(() => childrenOf(calc.pid).length === 0, 'the processes to end', 40000);
		// Those of the jobs stay silent.
		all.filter((pid) => !own.includes(pid)).forEach((pid) => process.kill(pid, 'SIGCONT'));
		await lock.close();
		assert.deepEqual((await Promise.all(made)).map(({ json }) => json.code), ['workbook_unserved', 'workbook_unserved']);
		await waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.calculator WHERE seen > now() - interval '5 s'`)) === '1', 'calc to be there again');
		assert.deepEqual((await Promise.all(users.map((user) => upload(user)))).map(({ status }) => status), [201, 201]);
	} finally {
		all.forEach((pid) => isThere(pid) && process.kill(pid, 'SIGCONT'));
	}
	assert.equal(await books(), before + 2);
	await nothingLeft();
});

test('each try has a lease of its own, and renewals wait for no lock', async () => {
	await reported();
	const user = await register(gateway);
	const before = await books();
	await hold();
	const made = upload(user);
	await inState('running');
	const worker = () => cluster.psql('SELECT worker FROM sheet.workbook_job');
	const first = await worker();
	const other = new PsqlSession(cluster);
	await other.query('BEGIN; SELECT FROM sheet.workbook_job FOR UPDATE');
	const kept = await cluster.psql(`SET lock_timeout = 1000; SELECT sheet.workbook_keep(ARRAY['${first}', 'another'])`);
	assert.equal(kept.split('\n').at(-1), first);
	await other.close();
	// Its lease is lost, and the same calc takes the job again.
	await cluster.psql(`UPDATE sheet.workbook_job SET state = 'waiting'`);
	await cluster.psql(`SELECT pg_notify('sheet_workbook', '')`);
	await inState('running');
	assert.notEqual(await worker(), first);
	await lock.close();
	assert.equal((await made).status, 201);
	assert.equal(await books(), before + 1);
	await nothingLeft();
});

test('a file that a crash has removed is refused, and asking for a job waits for no disk', async () => {
	const file = await cluster.psql(`INSERT INTO sheet.import (name, uid) VALUES ('', 1) RETURNING import_id`);
	const jobs = [
		`('book', 1, 0, 'done', 200, NULL, now())`,
		`('import', 1, 0, 'uploading', NULL, NULL, now())`,
		`('book', 1, ${file}, 'running', NULL, now() + interval '1 hour', now() - interval '20 s')`,
	];
	const made = `INSERT INTO sheet.workbook_job (kind, uid, file, state, status, lease_at, asked_at) VALUES ${jobs}`;
	const [done, lost, running] = (await cluster.psql(`${made} RETURNING job_id`)).split('\n');
	for (const job of [done, lost]) assert.equal(await cluster.psql(`SELECT done, status FROM sheet.workbook_state(${job})`), 't|503');
	for (const asked of [`SELECT done FROM sheet.workbook_state(${running})`, `SELECT sheet.workbook_end(${running})`]) {
		const output = await cluster.psql(`BEGIN;\n${asked};\nSELECT current_setting('synchronous_commit');\nCOMMIT;\n`);
		assert.equal(output.split('\n').at(-1), 'off', output);
	}
	for (const job of [done, lost]) await cluster.psql(`SELECT sheet.workbook_end(${job})`);
	assert.equal(await cluster.psql('SELECT count(*) FROM sheet.workbook_job'), '0');
});
