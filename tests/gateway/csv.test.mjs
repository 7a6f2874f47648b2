/*
 * csv.test.mjs - a sheet as CSV, TSV or JSON Lines, and CSV as a new sheet: bounded memory in the gateway, errors by their place, and nothing left of
 * an import that fails.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, newSheet, post, register, request } from '../lib/client.mjs';

let cluster;
let gateway;
let anna;
let ben;

before(async () => {
	cluster = await Cluster.start({ measured: true, gatewayFlags: { 'default-link-role': 'none' }, postgres: { fsync: 'off', max_wal_size: '2GB' } });
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());

const bearer = (user) => ({ authorization: `Bearer ${user.token}` });
const ends = ['.csv', '.tsv', '.jsonl'];
const download = (user, fid, end = '.csv') => request(gateway, 'GET', `/v2/sheets/${fid}${end}`, { headers: bearer(user) });
const upload = (user, name, body, headers = {}) =>
	request(gateway, 'POST', `/v2/sheets/import?name=${encodeURIComponent(name)}`, { headers: { ...bearer(user), 'content-type': 'text/csv', ...headers }, body });
const sheets = async (user) => (await call(gateway, '/getuser', { token: user.token }, 10)).sheets;
/** A download that its client does not read. */
const mute = (user, fid, end = '.csv') =>
	http.get({ port: gateway.port, path: `/v2/sheets/${fid}${end}`, agent: false, headers: bearer(user) }, (answer) => answer.pause()).on('error', () => {});
const active = () => cluster.psql(`SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pg_sheet downloads' AND state = 'active'`);
const nothingLeft = () =>
	waitUntil(async () => (await cluster.psql('SELECT (SELECT count(*) FROM sheet.import) + (SELECT count(*) FROM sheet.import_part)')) === '0', 'the parts to be removed');

test('CSV becomes a sheet of the account, which is downloaded as the same CSV', async () => {
	const csv = 'name,"a ""quoted"" text"\r\n"two\r\nlines",=A1+1\r\n,äöü 表 🙂\r\n';
	for (const [body, headers] of [
		[`\uFEFF${csv}`, {}],
		[csv, { 'transfer-encoding': 'chunked' }],
		[csv.slice(0, -2), { expect: '100-continue' }],
	]) {
		const made = await upload(anna, 'Größe & "mehr"', body, headers);
		assert.equal(made.status, 200, made.text);
		const fid = made.json.id;
		const listed = (await sheets(anna)).find((sheet) => sheet.fid === fid);
		assert.deepEqual([listed.name, listed.owner], ['Größe & "mehr"', anna.username]);
		const got = await download(anna, fid);
		assert.equal(got.status, 200, got.text);
		assert.equal(got.text, csv);
		assert.equal(got.headers['content-type'], 'text/csv; charset=utf-8');
		assert.equal(got.headers['content-disposition'], `attachment; filename*=UTF-8''${encodeURIComponent('Größe & "mehr"')}.csv`);
	}
	await nothingLeft();
});

test('an empty sheet is an empty file, and the other way round', async () => {
	const made = await upload(anna, 'empty', '');
	assert.equal(made.status, 200, made.text);
	const got = await download(anna, made.json.id);
	assert.deepEqual([got.status, got.text], [200, '']);
	const head = await request(gateway, 'HEAD', `/v2/sheets/${made.json.id}.csv`, { headers: bearer(anna) });
	assert.deepEqual([head.status, head.text], [200, '']);
	for (const end of ends) assert.deepEqual([(await download(anna, made.json.id, end)).status, (await download(anna, made.json.id, end)).text], [200, ''], end);
});

test('the same rows and columns as TSV and JSON Lines, of the sheet or a range', async () => {
	const rows = [
		['a,b', 'tab\there', '"quoted"', null],
		[null, null, null, null],
		['=A1+1', null, 'two\r\nlines', 'äöü 表 🙂\\'],
	];
	const quoted = (content) => `"${content.replaceAll('"', '""')}"`;
	const made = await upload(anna, 'Größe', rows.map((row) => row.map((content) => (content === null ? '' : quoted(content))).join(',')).join('\n'));
	const editor = await Editor.open(gateway, anna, made.json.id);
	editor.modify(1, 1, '', { italic: true }); // within the contents
	editor.modify(7, 7, '', { italic: true }); // behind them
	await editor.nextModify(7, 7);
	await editor.close();
	for (const [end, type, all, part] of [
		['.csv', 'text/csv; charset=utf-8', '"a,b",tab\there,"""quoted""",\r\n,,,\r\n=A1+1,,"two\r\nlines",äöü 表 🙂\\\r\n', 'tab\there,"""quoted"""\r\n,\r\n,"two\r\nlines"\r\n'],
		['.tsv', 'text/tab-separated-values; charset=utf-8', 'a,b\t"tab\there"\t"""quoted"""\t\r\n\t\t\t\r\n=A1+1\t\t"two\r\nlines"\täöü 表 🙂\\\r\n', '"tab\there"\t"""quoted"""\r\n\t\r\n\t"two\r\nlines"\r\n'],
		['.jsonl', 'application/jsonl', rows.map((row) => `${JSON.stringify(row)}\n`).join(''), rows.map((row) => `${JSON.stringify(row.slice(1, 3))}\n`).join('')],
	]) {
		const got = await download(anna, made.json.id, end);
		assert.deepEqual([got.status, got.headers['content-type'], got.text], [200, type, all], end);
		assert.equal(got.headers['content-disposition'], `attachment; filename*=UTF-8''${encodeURIComponent('Größe')}${end}`);
		for (const ref of ['B1:C3', 'c9:b1', '%24B%3AC']) assert.equal((await download(anna, made.json.id, `${end}?ref=${ref}`)).text, part, `${end} ${ref}`);
		assert.equal((await download(anna, made.json.id, `${end}?ref=E1:XFD100`)).text, '', end);
		const head = await request(gateway, 'HEAD', `/v2/sheets/${made.json.id}${end}?ref=A1`, { headers: bearer(anna) });
		assert.deepEqual([head.status, head.headers['content-type'], head.text], [200, type, ''], end);
	}
	const again = await upload(anna, 'again', (await download(anna, made.json.id, '.csv?ref=A1:D3')).text);
	assert.equal((await download(anna, again.json.id, '.jsonl')).text, (await download(anna, made.json.id, '.jsonl')).text);
});

test('formulas are escaped on demand', async () => {
	const { id } = (await upload(anna, 'formulas', '=A1,-1,"+\t1",a=1\n')).json;
	assert.equal((await download(anna, id, '.csv?escape_formulas=true')).text, "'=A1,'-1,'+\t1,a=1\r\n");
	assert.equal((await download(anna, id, '.tsv?escape_formulas=true&ref=B1:D1')).text, "'-1\t\"'+\t1\"\ta=1\r\n");
	assert.equal((await download(anna, id, '.tsv?escape_formulas=false')).text, '=A1\t-1\t"+\t1"\ta=1\r\n');
	assert.equal((await download(anna, id, '.jsonl')).text, '["=A1","-1","+\\t1","a=1"]\n');
});

test('an argument that is none is refused', async () => {
	const { id } = (await upload(anna, 'arguments', 'a')).json;
	for (const end of ends)
		for (const [query, reason] of [
			...['', '=', '=A0', '=x', '=A1:', '=XFE1', '=A1:B2,C3', `=${'A1'.padStart(99, '$')}`].map((ref) => [`ref${ref}`, 'ref is a range, as A1:C10']),
			...['', '=', '=1', '=TRUE', '=truefalse'].map((value) => [`escape_formulas${value}`, end === '.jsonl' ? 'escape_formulas is for .csv and .tsv only' : 'escape_formulas is true or false']),
			...(end === '.jsonl' ? ['true', 'false'] : []).map((value) => [`escape_formulas=${value}`, 'escape_formulas is for .csv and .tsv only']),
		]) {
			const got = await download(anna, id, `${end}?${query}`);
			assert.deepEqual([got.status, got.json?.data], [400, reason], `${end}?${query}`);
		}
	for (const end of ['.xlsx', '.json', '.tsvx', '.', '.csv.tsv']) assert.equal((await download(anna, id, end)).status, 404, end);
});

test('a guest of the sheet exports it; a guest of a rectangle nothing, not even that', async () => {
	const { id } = (await upload(anna, 'guests', 'a,b\nc,d\n')).json;
	const guest = async (values) => {
		const { key } = (await post(gateway, `/v2/sheets/${id}/links`, { token: anna.token, ...values })).json;
		return (await post(gateway, '/v2/link', { link: key, name: 'Zoe' })).json;
	};
	const [whole, part] = [await guest({}), await guest({ ref: 'A1:A2' })];
	assert.equal((await download(whole, id, '.csv?ref=A1:A2')).text, 'a\r\nc\r\n');
	assert.equal((await download(whole, id, '.tsv')).text, 'a\tb\r\nc\td\r\n');
	assert.equal((await download(whole, id, '.jsonl')).text, '["a","b"]\n["c","d"]\n');
	for (const end of ends)
		for (const query of ['', '?ref=A1:A2', '?ref=B1']) assert.equal((await download(part, id, end + query)).status, 404, end + query);
});

test('a link is followed with the cookie for files; others get no sheet', async () => {
	const fid = (await upload(anna, 'mine', 'secret')).json.id;
	const signedIn = await post(gateway, '/login', { username: anna.username, password: anna.password }, { headers: { 'sec-fetch-site': 'same-origin' } });
	const cookie = signedIn.headers['set-cookie'].find((line) => line.includes('pg_sheet_files=')).split(';')[0];
	const path = `/v2/sheets/${fid}.csv`;
	for (const [end, text] of [['.tsv', 'secret\r\n'], ['.jsonl', '["secret"]\n']]) {
		assert.equal((await request(gateway, 'GET', `/v2/sheets/${fid}${end}`, { headers: { cookie } })).text, text);
		assert.equal((await request(gateway, 'GET', `/v2/sheets/${fid}${end}`)).status, 401);
		assert.equal((await download(ben, fid, end)).status, 403);
		assert.equal((await download(anna, 999999, end)).status, 404);
	}
	assert.equal((await request(gateway, 'GET', path, { headers: { cookie } })).text, 'secret\r\n');
	assert.equal((await request(gateway, 'GET', path, { headers: { cookie, 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' } })).status, 401);
	assert.equal((await request(gateway, 'GET', path)).status, 401);
	assert.equal((await download(ben, fid)).status, 403);
	assert.equal((await download(anna, 999999)).status, 404);
	assert.equal((await request(gateway, 'GET', '/v2/sheets/x.csv', { headers: bearer(anna) })).status, 404);
	await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
	for (const end of ends) assert.equal((await download(anna, fid, end)).status, 410);
});

test('an error is told by its place, and nothing is left of the import', async () => {
	const before_ = (await sheets(ben)).length;
	const long = 'x'.repeat(32768);
	for (const [body, code, line, column] of [
		['a,b\nc,"d', 'csv_malformed', 2, 2],
		['a\n\n"b"c', 'csv_malformed', 3, 1],
		[`${'row,of,cells\n'.repeat(50000)}a,b"`, 'csv_malformed', 50001, 2],
		[`a,"${'never closed\n'.repeat(50000)}`, 'csv_malformed', 1, 2],
		[Buffer.from('n\u00e4me\nk\u00f6ln', 'latin1'), 'csv_encoding', 1, 1],
		[Buffer.from('\uFEFFa,b\n', 'utf16le'), 'csv_encoding', 1, 1],
		[`a,"\n",${long}`, 'csv_limit', 2, 3],
		[`a,"${'closed\n'.repeat(50000)}"\n`, 'csv_limit', 1, 2],
		[`a\n${','.repeat(16384)}`, 'csv_limit', 2, 16385],
	]) {
		const answer = await upload(ben, 'bad', body);
		assert.equal(answer.status, 400, answer.text);
		assert.deepEqual([answer.json.code, answer.json.line, answer.json.column], [code, line, column], answer.text);
		assert.match(answer.json.data, /in line \d+, column \d+: [A-Z]/);
	}
	for (const name of ['', 'a\u202eb', 'n'.repeat(256)]) assert.equal((await upload(ben, name, 'a')).json.code, 'sheet_name');
	assert.equal((await request(gateway, 'POST', '/v2/sheets/import', { headers: bearer(ben), body: 'a' })).status, 400);
	assert.equal((await request(gateway, 'POST', '/v2/sheets/import?name=x', { body: 'a' })).status, 401);
	await nothingLeft();
	assert.equal((await sheets(ben)).length, before_);
});

test('a client that leaves in the middle, and a file that is too large, leave nothing', async () => {
	const before_ = (await sheets(ben)).length;
	const outgoing = http.request({ port: gateway.port, method: 'POST', path: '/v2/sheets/import?name=cut', agent: false, headers: { ...bearer(ben), 'content-length': 10 << 20 } });
	outgoing.on('error', () => {});
	outgoing.write(Buffer.alloc(2 << 20, 'a,b\n'));
	await waitUntil(async () => Number(await cluster.psql('SELECT count(*) FROM sheet.import_part')) > 0, 'a part');
	outgoing.destroy();
	await nothingLeft();
	await gateway.stop();
	await gateway.start({ 'max-upload-bytes': '1MB', 'default-link-role': 'none' });
	const body = Buffer.alloc((1 << 20) + 1, 'a,b\n');
	for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
		const answer = await upload(ben, 'large', body, headers).catch((error) => error);
		if (!(answer instanceof Error)) assert.equal(answer.status, 413, answer.text); // or the connection ended while it was sending
	}
	await nothingLeft();
	assert.equal((await sheets(ben)).length, before_);
	await gateway.stop();
	await gateway.start({ 'max-upload-bytes': '64MB', 'default-link-role': 'none' });
});

/** CSV of about `megabytes`, in lines of 1 kB. */
const lines = (megabytes) => Array.from({ length: megabytes * 1024 }, (_, i) => Array.from({ length: 64 }, (_, j) => `cell ${(i * 64 + j) % 99999999}`.padEnd(15)).join(',')).join('\r\n') + '\r\n';

test('a large sheet goes in and out within 16 MiB of memory, while somebody edits another one', async (context) => {
	const csv = lines(24);
	const editor = await Editor.open(gateway, ben, await newSheet(gateway, ben));
	await editor.settle();
	const peak = () => gateway.memory('VmHWM') / 1024;
	const before_ = peak();
	let busy = true;
	let edits = 0;
	const editing = (async () => {
		for (; busy; edits++) await editor.settle();
	})();
	try {
		const started = performance.now();
		const made = await upload(anna, 'large', csv);
		context.diagnostic(`import: ${Math.round(performance.now() - started)} ms, ${edits} edits, +${(peak() - before_).toFixed(1)} MiB`);
		assert.equal(made.status, 200, made.text);
		const got = await download(anna, made.json.id);
		assert.equal(got.status, 200, got.text);
		assert.ok(got.text === csv, `${got.text.length} of ${csv.length}`);
		context.diagnostic(`and download: ${Math.round(performance.now() - started)} ms, ${edits} edits, +${(peak() - before_).toFixed(1)} MiB`);
		assert.ok(peak() - before_ < 16, `${before_} -> ${peak()} MiB`);
		assert.ok(edits > 10);
		assert.ok((await download(anna, made.json.id, '.tsv')).text === csv.replaceAll(',', '\t'));
		assert.ok((await download(anna, made.json.id, '.jsonl')).text === csv.replace(/.+\r\n/g, (line) => `${JSON.stringify(line.slice(0, -2).split(','))}\n`));
		assert.ok(peak() - before_ < 16, `${before_} -> ${peak()} MiB`);

		// A client that does not read keeps its connection to the database, and no other.
		const slow = [...ends, '.csv?ref=A:Z'].map((end) => mute(anna, made.json.id, end));
		await waitUntil(async () => (await active()) === '1', 'a connection to be in use');
		await waitUntil(async () => (await download(anna, made.json.id)).status === 503, 'an account to have at most four downloads');
		const small = (await upload(ben, 'small', 'x')).json.id;
		assert.equal((await download(ben, small)).text, 'x\r\n');
		assert.equal(await active(), '1', 'an account never has both connections');
		slow.forEach((request_) => request_.destroy());
		await waitUntil(async () => (await active()) === '0', 'nothing to be read for clients that have gone');
		assert.ok(peak() - before_ < 24, `${before_} -> ${peak()} MiB`);
	} finally {
		busy = false;
		await editing;
		await editor.close();
	}
});

test('the statement of a client that has gone is cancelled, and no other one', async () => {
	await gateway.stop();
	await gateway.start({ 'database-deadline-ms': '4000', 'default-link-role': 'none' });
	const carl = await register(gateway);
	const large = [await newSheet(gateway, anna), await newSheet(gateway, ben)];
	for (const fid of large) await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'x'), sheet.set(${fid}, 'XFD5000', 'x')`); // 82 MB of commas
	const small = (await upload(carl, 'small', 'x')).json.id;
	const log = path.join(cluster.directory, 'log', 'postgres.log');
	const cancelled = () => fs.readFileSync(log, 'utf8').split('canceling statement due to user request').length - 1;
	const pids = (name) => cluster.psql(`SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity WHERE application_name = 'pg_sheet ${name}'`);
	const bothBusy = async () => {
		const clients = [mute(anna, large[0]), mute(ben, large[1])];
		await waitUntil(async () => (await active()) === '2', 'both connections to be in use');
		const waits = download(carl, small);
		return { waits, leave: () => clients.forEach((client) => client.destroy()) };
	};

	const before_ = cancelled();
	for (let i = 1; i <= 3; i++) {
		const { waits, leave } = await bothBusy();
		leave();
		assert.equal((await waits).text, 'x\r\n');
		await waitUntil(async () => (await active()) === '0', 'the connections to be free');
	}
	assert.equal(cancelled() - before_, 6);

	// It is not known whether and when a request to cancel reaches its statement: the next one has another process.
	const { waits, leave } = await bothBusy();
	const [asking, old] = [Number(await pids('accounts')), (await pids('downloads')).split(' ')];
	process.kill(asking, 'SIGSTOP');
	try {
		leave();
		assert.equal((await waits).text, 'x\r\n');
		const now = (await pids('downloads')).split(' ');
		assert.ok(now.some((pid) => !old.includes(pid)), `${now} instead of ${old}`);
	} finally {
		process.kill(asking, 'SIGCONT');
	}

	// The gateway ends without the answer, too.
	const clients = [mute(anna, large[0]), mute(ben, large[1])];
	await waitUntil(async () => (await active()) === '2', 'both connections to be in use');
	const silent = Number(await pids('accounts'));
	process.kill(silent, 'SIGSTOP');
	try {
		clients.forEach((client) => client.destroy());
		await waitUntil(async () => (await active()) === '0', 'the connections to be read');
		assert.deepEqual(await gateway.stop(), { code: 0, signal: null });
	} finally {
		process.kill(silent, 'SIGCONT');
	}
	await gateway.start();
});

test('a sheet with a content far from the others is refused', async () => {
	const fid = await newSheet(gateway, anna);
	await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'x'), sheet.set(${fid}, 'XFD16777216', 'y')`);
	for (const end of ends) {
		const got = await download(anna, fid, end);
		assert.equal(got.status, 400, got.text);
		assert.match(got.json.data, /274877906942 empty fields/);
		assert.match((await download(anna, fid, `${end}?ref=XFD16777216`)).text, /^(y\r|\["y"\])\n$/);
	}
});

for (const [end, line] of [['.csv', (content) => `${content}\r\n`], ['.tsv', (content) => `${content}\r\n`], ['.jsonl', (content) => `["${content}"]\n`]])
	test(`all rows have one state of the sheet: ${end}`, async () => {
		const rows = 20000;
		const fid = (await upload(anna, 'state', 'old\n'.repeat(rows))).json.id;
		const text = await new Promise((resolve, reject) => {
			const outgoing = http.get({ port: gateway.port, path: `/v2/sheets/${fid}${end}`, agent: false, headers: bearer(anna) }, (answer) => {
				let got = '';
				answer.once('data', async (data) => {
					got += data;
					answer.pause();
					await cluster.psql(`SELECT sheet.import_csv_into(${fid}, 'A1', repeat(E'new\\n', ${rows}))`).catch(reject);
					answer.on('data', (more) => (got += more));
					answer.on('end', () => resolve(got));
					answer.resume();
				});
			});
			outgoing.on('error', reject);
		});
		assert.equal(text, line('old').repeat(rows));
		assert.equal((await download(anna, fid, end)).text, line('new').repeat(rows));
	});
