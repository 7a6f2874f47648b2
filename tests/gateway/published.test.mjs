/*
 * published.test.mjs - published views: /s/KEY and its forms for programs, byte by byte; what they never show; and that they are
 * current, also at a gateway that has no room of the sheet.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { roundsToRun } from '../lib/processes.mjs';
import { newSheet, post, register, request } from '../lib/client.mjs';
import { RawClient } from '../lib/v2.mjs';
import { WebSocket } from 'ws';

let cluster;
let gateway;
let anna;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none', 'max-connections': 12000, 'max-connections-per-address': 0 }, postgres: { fsync: 'off' } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
});
after(() => cluster?.stop());

const get = (path, headers = {}, method = 'GET') => request(gateway, method, path, { headers });
const bearer = () => ({ authorization: `Bearer ${anna.token}` });
const create = async (fid, values = {}) => {
	const answer = await post(gateway, `/v2/sheets/${fid}/links`, { token: anna.token, ...values });
	assert.equal(answer.status, 200, answer.text);
	return answer.json;
};
const change = (fid, link, values) => {
	const body = JSON.stringify({ token: anna.token, ...values });
	return request(gateway, 'PATCH', `/v2/sheets/${fid}/links/${link}`, { headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }, body });
};
const sheet = async (cells = {}, name = undefined) => {
	const fid = await newSheet(gateway, anna, { name });
	for (const [ref, content] of Object.entries(cells)) await set(fid, ref, content);
	return fid;
};
const literal = (text) => `E'${text.replace(/\\/g, '\\\\').replace(/'/g, "\\'").replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}'`;
const set = (fid, ref, content) => cluster.psql(`SELECT sheet.set(${fid}, '${ref}', ${literal(content)})`);
/** What two answers must have in common so that nobody can tell them apart. */
const shown = ({ status, headers, text }) => {
	const { date, 'x-request-id': id, ...rest } = headers;
	return { status, rest, text: id ? text.replaceAll(id, '') : text };
};
const hostile = '<script>alert(1)</script> & "q" \'s\'';

test('answers tell of which seq their values of formulas are', async () => {
	const fid = await sheet({ A1: '1', B1: '=A1+1' });
	const { key } = await create(fid);
	const part = await create(fid, { ref: 'A1:B1' });
	const plain = await sheet({ A1: '1' });
	const seqOf = async () => Number(await cluster.psql(`SELECT max(seq) FROM sheet.log WHERE sheet_id = ${fid}`));
	const paths = [`/v2/sheets/${fid}/cells?range=A1:B1`, ...['.csv', '.tsv', '.jsonl'].map((end) => `/v2/sheets/${fid}${end}`), ...['', '.csv', '.tsv', '.json'].map((end) => `/s/${key}${end}`)];
	const read = (path, headers = {}) => request(gateway, 'GET', path, { headers: path.startsWith('/v2/') ? { ...bearer(), ...headers } : headers });
	const computed = async (path, headers) => (await read(path, headers)).headers['x-pg-sheet-computed'];
	const all = async () => {
		const seqs = [];
		for (const path of paths) seqs.push(Number(await computed(path)));
		return seqs;
	};
	const put = (seq, values = "'{0}', '{1}', '{2}'") => cluster.psql(`SELECT sheet.put_values(${fid}, ${seq}, ${values})`);
	assert.deepEqual(await all(), paths.map(() => 0), 'there are none');
	const first = await seqOf();
	await put(first);
	const untilAll = (seq) => waitUntil(async () => (await all()).every((found) => found === seq), () => `all answers to have values of ${seq}`);
	await untilAll(first);
	const old = await Promise.all(paths.map((path) => read(path)));
	assert.ok(old[0].text.includes('"2"'), old[0].text);
	// another edit: the values stay those of before, and no answer says otherwise
	const body = JSON.stringify({ cells: [{ a1: 'A1', value: 5 }] });
	const written = await request(gateway, 'PATCH', `/v2/sheets/${fid}/cells`, { headers: { ...bearer(), 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }, body });
	assert.equal(written.status, 200, written.text);
	assert.deepEqual(await all(), paths.map(() => first));
	const second = await seqOf();
	assert.ok(second > first);
	await put(second, "'{0}', '{1}', '{6}'");
	await untilAll(second);
	// an edit that changes no value: the texts stay, and so does the ETag of their seq
	await set(fid, 'A2', 'x');
	const third = await seqOf();
	assert.deepEqual(await all(), paths.map(() => second));
	const etag = (await read(paths[0])).headers.etag;
	await put(third, "'{}', '{}', '{}'");
	await untilAll(third);
	const same = await read(paths[0], { 'if-none-match': etag });
	assert.deepEqual([same.status, same.headers['x-pg-sheet-computed']], [304, String(third)]);
	for (const path of [`${paths[0]}&formulas=true`, `/v2/sheets/${fid}.csv?formulas=true`, `/s/${part.key}.json`, `/v2/sheets/${plain}/cells?range=A1`, `/v2/sheets/${plain}.csv`])
		assert.equal(await computed(path), undefined, path);
});

test('CSV, TSV and JSON, byte by byte, as other programs read them', async () => {
	const fid = await sheet({ A1: 'name', B1: 'two\nlines, "quoted"', A3: '=SUM(B1:B2)', C3: 'tab\there', B3: 'ä 表 🙂' }, 'Q1 "ä"; 100%/\\<b>');
	const { key, published } = await create(fid);
	assert.equal(await cluster.psql(`SELECT sheet.put_values(${fid}, seq, '{2}', '{0}', '{0.5}') FROM sheet.to_compute('{${fid}}')`), 't');
	assert.equal(published, `/s/${key}`);
	const csv = await get(`/s/${key}.csv`);
	assert.deepEqual([csv.status, csv.headers['content-type']], [200, 'text/csv; charset=utf-8']);
	assert.equal(csv.text, 'name,"two\nlines, ""quoted""",\r\n,,\r\n0.5,ä 表 🙂,"tab\there"\r\n');
	assert.equal((await get(`/s/${key}.tsv`)).text, 'name\t"two\nlines, ""quoted"""\t\r\n\t\t\r\n0.5\tä 表 🙂\t"tab\there"\r\n');
	const json = await get(`/s/${key}.json`);
	const { seq, ...rest } = json.json;
	assert.equal(seq, Number(await cluster.psql(`SELECT max(seq) FROM sheet.log WHERE sheet_id = ${fid}`)));
	assert.deepEqual(rest, {
		title: 'Q1 "ä"; 100%/\\<b>',
		rows: [['name', 'two\nlines, "quoted"', null], [null, null, null], ['0.5', 'ä 表 🙂', 'tab\there']],
	});
	for (const [answer, form] of [[csv, 'csv'], [json, 'json']]) {
		assert.equal(answer.headers['content-disposition'], `inline; filename="sheet.${form}"; filename*=UTF-8''Q1%20%22%C3%A4%22%3B%20100%25%2F%5C%3Cb%3E.${form}`);
		assert.equal(answer.headers['content-security-policy'], "default-src 'none'; sandbox; frame-ancestors 'none'");
		assert.equal(answer.headers['cache-control'], 'no-cache');
		assert.equal(answer.headers['x-robots-tag'], 'noindex');
		assert.equal(answer.headers['access-control-allow-origin'], '*');
	}
	const script = 'import csv, io, json, sys; print(json.dumps(list(csv.reader(io.StringIO(sys.stdin.read(), newline="")))))';
	assert.deepEqual(JSON.parse(execFileSync('python3', ['-c', script], { input: csv.text, env: { ...process.env, PYTHONIOENCODING: 'utf-8' } })), [
		['name', 'two\nlines, "quoted"', ''],
		['', '', ''],
		['0.5', 'ä 表 🙂', 'tab\there'],
	]);
	// an empty row of one column is a row
	const narrow = await sheet({ A1: 'a', A3: 'b' });
	assert.equal((await get(`/s/${(await create(narrow)).key}.csv`)).text, 'a\r\n""\r\nb\r\n');
	const empty = (await create(await sheet())).key;
	assert.deepEqual([(await get(`/s/${empty}.csv`)).text, (await get(`/s/${empty}.json`)).json.rows], ['', []]);
	assert.match((await get(`/s/${empty}`)).text, /<tbody>\n<\/tbody>/);
});

test('the page: a table without a script, and nothing of a cell or a name is markup', async () => {
	const fid = await sheet({ A1: hostile, B2: '12' }, `${hostile}</title><b>`);
	const styles = { bl: 1, it: 1, ht: 2, cl: { rgb: '#ff0000' }, bg: { rgb: 'rgb(1, 2, 3)' } };
	const client = await RawClient.open(gateway, anna, fid, { client: 77 });
	client.op(1, [{ row: 0, col: 2, content: 'styled', style: styles }, { row: 0, col: 3, content: 'odd', style: { cl: { rgb: '"><script>' }, bg: { rgb: 'red" onclick="x' }, ht: 9 } }]);
	await client.next('ack');
	const { key } = await create(fid, { expires: null });
	const page = await get(`/s/${key}`);
	assert.deepEqual([page.status, page.headers['content-type']], [200, 'text/html; charset=utf-8']);
	const escaped = '&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;q&quot; \'s\'';
	assert.ok(page.text.includes(`<tr><th scope="row">1</th><td>${escaped}</td><td></td>`), page.text);
	assert.ok(page.text.includes('<td align="center" bgcolor="#010203"><font color="#ff0000"><b><i>styled</i></b></font></td><td>odd</td></tr>'), page.text);
	assert.ok(page.text.includes('<th scope="row">2</th><td></td><td align="right">12</td>'));
	assert.ok(page.text.includes('<th scope="col">A</th><th scope="col">B</th><th scope="col">C</th><th scope="col">D</th>'));
	assert.match(page.text, /<title>&lt;script&gt;alert\(1\)&lt;\/script&gt; &amp; &quot;q&quot; 's'&lt;\/title&gt;&lt;b&gt;<\/title>/);
	assert.equal(page.text.match(/<script/g).length, 1);
	assert.ok(page.text.includes('<meta name="robots" content="noindex">'));
	assert.match(page.text, /prefers-color-scheme:dark/);
	const policy = page.headers['content-security-policy'];
	assert.match(
		policy,
		/^default-src 'none'; script-src 'self'; style-src 'sha256-[A-Za-z0-9+/]{43}='; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
	);
	const style = /<style>(.*?)<\/style>/s.exec(page.text)[1];
	assert.ok(policy.includes(`'sha256-${createHash('sha256').update(style).digest('base64')}'`));
	assert.equal(page.headers['access-control-allow-origin'], undefined);
	assert.equal((await get(`/s/${key}`, { origin: 'https://elsewhere.example' })).headers['access-control-allow-origin'], undefined);
	assert.equal((await get(`/s/${key}.csv`, { origin: 'https://elsewhere.example' })).headers['access-control-allow-origin'], '*');
	const head = await get(`/s/${key}`, {}, 'HEAD');
	assert.deepEqual([head.status, head.text, head.headers['content-length'], head.headers.etag], [200, '', String(Buffer.byteLength(page.text)), page.headers.etag]);
	client.terminate();
});

test('pandas reads the CSV and the TSV from their addresses', async () => {
	const lines = [
		['id', 'name', 'amount', 'share', 'day', 'note', 'flag', 'code'],
		['1', 'Ä 表 🙂', '1.5', '0.25', '2024-01-31 08:00:00', 'two\nlines, "quoted"', 'TRUE', '007'],
		['2', '', '-2e3', '', '2024-02-01 10:30:00', 'two', 'FALSE', "'12"],
		['3', 'x y', '', '0.5', '', '', 'TRUE', "'09"],
	];
	const cells = lines.flatMap((line, row) => line.map((content, col) => [`${'ABCDEFGH'[col]}${row + 1}`, content]));
	const { key } = await create(await sheet(Object.fromEntries(cells.filter(([, content]) => content !== ''))));
	const script = `import json, sys, pandas
typed = pandas.read_csv(sys.argv[1], parse_dates=['day'])
text = pandas.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
tabs = pandas.read_csv(sys.argv[2], sep='\\t', dtype=str, keep_default_na=False)
print(json.dumps([{name: str(kind) for name, kind in typed.dtypes.items()}, json.loads(typed.to_json(orient='records', date_format='iso')),
	[list(text.columns)] + text.values.tolist(), tabs.equals(text)]))`;
	const { stdout } = await promisify(execFile)('/usr/bin/python3', ['-c', script, `${gateway.url}/s/${key}.csv`, `${gateway.url}/s/${key}.tsv`]);
	const [types, typed, text, same] = JSON.parse(stdout);
	assert.deepEqual(types, { id: 'int64', name: 'object', amount: 'float64', share: 'float64', day: 'datetime64[ns]', note: 'object', flag: 'bool', code: 'object' });
	assert.deepEqual([typed[0].name, typed[0].note, typed[0].flag, typed[0].code], ['Ä 表 🙂', 'two\nlines, "quoted"', true, '007']);
	assert.deepEqual([typed[1].name, typed[1].amount, typed[1].share, typed[1].note], [null, -2000, null, 'two']);
	assert.deepEqual([typed[1].day.slice(0, 19), typed[2].day], ['2024-02-01T10:30:00', null]);
	assert.deepEqual(text, lines.map((line) => line.map((content) => (content === "'09" ? '09' : content))));
	assert.equal(same, true);
});

test('curl and =IMPORTDATA need no token, no redirect and no header', async () => {
	const { key } = await create(await sheet({ A1: 'ä', B1: '1' }));
	const curl = async (...args) => (await promisify(execFile)('curl', ['-sS', '--max-redirs', '0', ...args])).stdout;
	const write = '%{http_code} %{num_redirects} %{content_type} %header{access-control-allow-origin}';
	assert.equal(await curl('-L', '-w', write, `${gateway.url}/s/${key}.csv`), 'ä,1\r\n200 0 text/csv; charset=utf-8 *');
	// a client that says nothing of itself, over HTTP 1.0
	assert.equal(await curl('-0', '-H', 'User-Agent:', '-H', 'Accept:', `${gateway.url}/s/${key}.csv`), 'ä,1\r\n');
	assert.equal(await curl('-w', '%{http_code} %{content_type}', '-o', '/dev/null', `${gateway.url}/s/${'A'.repeat(22)}.csv`), '404 application/json');
});

test('other methods are refused, and pages of other sites may ask for the forms for programs', async () => {
	const { key } = await create(await sheet({ A1: 'x' }));
	for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
		for (const end of ['', '.csv']) {
			const answer = await get(`/s/${key}${end}`, { 'content-length': '0' }, method);
			assert.deepEqual([answer.status, answer.headers.allow], [405, 'GET, HEAD, OPTIONS'], method);
		}
	const asked = { origin: 'https://elsewhere.example', 'access-control-request-method': 'GET', 'access-control-request-headers': 'if-none-match' };
	const preflight = await get(`/s/${key}.json`, asked, 'OPTIONS');
	assert.deepEqual([preflight.status, preflight.headers['access-control-allow-origin']], [204, '*']);
	assert.match(preflight.headers['access-control-allow-headers'], /if-none-match/);
	assert.equal((await get(`/s/${key}`, asked, 'OPTIONS')).headers['access-control-allow-origin'], undefined);
});

test('whatever is no published view has one answer', async () => {
	const fid = await sheet({ A1: 'secret' });
	const links = {
		valid: await create(fid),
		password: await create(fid, { password: 'long enough' }),
		editor: await create(fid, { role: 'editor' }),
		commenter: await create(fid, { role: 'commenter' }),
		blocked: await create(fid),
		revoked: await create(fid),
	};
	for (const name of ['password', 'editor', 'commenter']) assert.equal(links[name].published, undefined);
	for (const name of ['blocked', 'revoked', 'valid']) assert.equal((await get(`/s/${links[name].key}.csv`)).text, 'secret\r\n');
	assert.equal((await change(fid, links.blocked.link, { blocked: true })).status, 200);
	assert.equal((await request(gateway, 'DELETE', `/v2/sheets/${fid}/links/${links.revoked.link}`, { headers: bearer() })).status, 200);
	for (const end of ['', '.csv', '.json']) {
		const unknown = shown(await get(`/s/${'A'.repeat(22)}${end}`));
		assert.equal(unknown.status, 404);
		for (const [name, { key }] of Object.entries(links)) if (name !== 'valid') assert.deepEqual(shown(await get(`/s/${key}${end}`)), unknown, name + end);
		for (const key of ['', 'x', `${links.valid.key}x`, links.valid.key.slice(1), "';DROP", `${fid}`]) assert.deepEqual(shown(await get(`/s/${encodeURIComponent(key)}${end}`)), unknown, key + end);
	}
	assert.equal((await get(`/s/${links.valid.key}.ods`)).status, 404);
	// in force at the next request: by HTTP at once, by SQL when the gateway has heard of it
	assert.equal((await change(fid, links.blocked.link, { blocked: false })).status, 200);
	assert.equal((await get(`/s/${links.blocked.key}.csv`)).status, 200);
	assert.equal((await change(fid, links.valid.link, { password: 'long enough' })).status, 200);
	assert.equal((await get(`/s/${links.valid.key}.csv`)).status, 404);
	await cluster.psql(`SELECT sheet.revoke_link(${links.blocked.link})`);
	await waitUntil(async () => (await get(`/s/${links.blocked.key}.csv`)).status === 404, 'the revoked link');
	const last = await create(fid);
	assert.equal((await get(`/s/${last.key}`)).status, 200);
	await cluster.psql(`SELECT sheet.trash(${fid})`);
	await waitUntil(async () => (await get(`/s/${last.key}`)).status === 404, 'the trash');
});

test('a link that ends is not found from its end on, though its table is kept', async () => {
	const fid = await sheet({ A1: 'ends' });
	const { link_id, key } = JSON.parse(await cluster.psql(`SELECT row_to_json(l) FROM sheet.create_link(${fid}, expires => clock_timestamp() + interval '3 s') l`));
	const end = Number(await cluster.psql(`SELECT extract(epoch FROM expires_at) * 1000 FROM sheet.link WHERE link_id = ${link_id}`));
	let good = 0;
	await waitUntil(async () => {
		const asked = Date.now();
		const { status } = await get(`/s/${key}.csv`);
		if (asked >= end) assert.equal(status, 404);
		good += status === 200;
		return status === 404;
	}, 'the end of the link');
	assert.ok(Date.now() >= end - 5, 'and not long before'); // Date.now() is rounded
	assert.ok(good > 0);
});

test('an ETag is valid until the next edit, whoever makes it', async () => {
	const fid = await sheet({ A1: '1' });
	const { key, link } = await create(fid);
	const ends = ['', '.csv', '.tsv', '.json'];
	const tags = {};
	for (const end of ends) {
		const { etag } = (await get(`/s/${key}${end}`)).headers;
		assert.match(etag, /^"[^"]+"$/);
		const again = await get(`/s/${key}${end}`, { 'if-none-match': `"x", ${etag}` });
		assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', etag]);
		tags[end] = etag;
	}
	await set(fid, 'A1', '2');
	await waitUntil(async () => (await get(`/s/${key}.csv`, { 'if-none-match': tags['.csv'] })).text === '2\r\n', 'the edit');
	for (const end of ends) assert.equal((await get(`/s/${key}${end}`, { 'if-none-match': tags[end] })).status, 200, end);
	// a new name is in the page and in JSON
	const { etag } = (await get(`/s/${key}`)).headers;
	await cluster.psql(`SELECT sheet.rename(${fid}, 'New name')`);
	await waitUntil(async () => (await get(`/s/${key}`, { 'if-none-match': etag })).text.includes('<title>New name</title>'), 'the name');
	// and so is what search engines may do, which is in the page alone
	const [before] = await Promise.all(['', '.csv'].map(async (end) => (await get(`/s/${key}${end}`)).headers.etag));
	assert.equal((await change(fid, link, { index: true })).status, 200);
	assert.notEqual((await get(`/s/${key}`)).headers.etag, before);
	// uses are those that had an answer
	const uses = async () => JSON.parse(await cluster.psql(`SELECT uses FROM sheet.link WHERE link_id = ${link}`));
	await waitUntil(async () => (await uses()) >= 10, 'the uses');
});

test('a rectangle: nothing outside, wherever its cells move, and no formula', async () => {
	const fid = await sheet({ A1: 'above', B2: 'in 1', C2: '=A1', B3: 'in 2', D2: 'right', B4: 'below', A2: 'left' }, 'Payroll');
	const { key } = await create(fid, { ref: 'B2:C3', embed: '*' });
	const whole = await create(fid);
	assert.match((await get(`/s/${whole.key}`)).text, /<title>Payroll</); // the name is there to be told
	for (const end of ['', '.csv', '.tsv', '.json']) {
		const { text, headers } = await get(`/s/${key}${end}`);
		assert.ok(!/payroll/i.test(text + JSON.stringify(headers)), text);
		if (end !== '') assert.equal(headers['content-disposition'], `inline; filename="sheet${end}"; filename*=UTF-8''Cells${end}`);
	}
	assert.match((await get(`/s/${key}`)).text, /<title>Cells<\/title>.*<h1>Cells<\/h1>/s);
	assert.equal((await get(`/s/${key}.json`)).json.title, 'Cells');
	const csv = async () => (await get(`/s/${key}.csv`)).text;
	assert.equal(await csv(), 'in 1,\r\nin 2,\r\n');
	const page = (await get(`/s/${key}`)).text;
	assert.ok(!/above|right|below|left|=A1/.test(page.slice(page.indexOf('<main'))), page);
	assert.ok(page.includes('<th scope="col">A</th><th scope="col">B</th></tr>') && page.includes('<th scope="row">1</th><td>in 1</td>'));
	assert.deepEqual((await get(`/s/${key}.json`)).json.rows, [['in 1', null], ['in 2', null]]);
	const { etag } = (await get(`/s/${key}.csv`)).headers;
	// while rows are inserted above and deleted again, every answer is of the rectangle
	let moving = true;
	const reader = (async () => {
		while (moving) assert.match(await csv(), /^in 1,\r\nin 2,\r\n$/);
	})();
	for (let i = 0; i < 15; i++) {
		await cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 2)`);
		await cluster.psql(`SELECT sheet.delete_rows(${fid}, 0, 1)`);
	}
	moving = false;
	await reader;
	assert.notEqual((await get(`/s/${key}.csv`)).headers.etag, etag);
	await cluster.psql(`SELECT sheet.insert_rows(${fid}, 17, 1)`);
	await waitUntil(async () => (await csv()) === 'in 1,\r\n,\r\nin 2,\r\n', 'the row between');
	await cluster.psql(`SELECT sheet.delete_rows(${fid}, 10, 20)`);
	await waitUntil(async () => (await get(`/s/${key}.csv`)).status === 404, 'the rectangle that is gone');
});

/** Watches a published view. */
class Watch {
	messages = [];
	constructor(key, options = {}) {
		this.socket = new WebSocket(`ws://${gateway.host}/sheetws?watch=${key}`, 'sheet.v2', options);
		this.opened = new Promise((opened, failed) => this.socket.on('open', opened).on('error', failed));
		this.closed = new Promise((closed) => this.socket.on('close', (code) => closed(code)));
		this.socket.on('message', (data, binary) => this.messages.push({ at: performance.now(), text: binary ? null : String(data) }));
	}
}

test('who watches a view is told that it has changed, at most once a second', async () => {
	const fid = await sheet({ A1: '0' });
	const { key, link } = await create(fid);
	const other = await create(await sheet({ A1: 'other' }));
	const watch = new Watch(key);
	const still = new Watch(other.key);
	await Promise.all([watch.opened, still.opened]);
	// what came before the link was known is in the page, which is asked for when the connection is open
	await waitUntil(async () => {
		await set(fid, 'B1', String(watch.messages.length));
		return watch.messages.length > 0;
	}, 'the first change');
	const before = watch.messages.length;
	let value = 0;
	const end = performance.now() + 3000;
	while (performance.now() < end) await set(fid, 'A1', String(++value));
	await waitUntil(() => watch.messages.length > before + 1, 'further changes');
	const told = () => watch.messages.at(-1).at;
	await waitUntil(async () => {
		const { headers } = await get(`/s/${key}`);
		return (await get(`/s/${key}.csv`)).text.startsWith(`${value},`) && headers.etag && told() > end - 1000;
	}, 'the last change');
	for (const { text } of watch.messages) assert.equal(text, '{"t":"changed"}');
	for (let i = 1; i < watch.messages.length; i++) assert.ok(watch.messages[i].at - watch.messages[i - 1].at > 800, 'changes are told together');
	assert.equal(still.messages.length, 0);
	// a property, and a new name, are changes of the page
	const count = watch.messages.length;
	await property(fid, 'A:A', 'width', '99');
	await waitUntil(() => watch.messages.length > count, 'the width');
	const renamed = watch.messages.length;
	await cluster.psql(`SELECT sheet.rename(${fid}, 'Renamed')`);
	await waitUntil(() => watch.messages.length > renamed, 'the name');
	// revoked
	assert.equal((await request(gateway, 'DELETE', `/v2/sheets/${fid}/links/${link}`, { headers: bearer() })).status, 200);
	assert.equal(await watch.closed, 4404);
	still.socket.send('x');
	assert.equal(await still.closed, 4400);
});

test('watching ends with the link, and never begins without one', async () => {
	const fid = await sheet({ A1: 'ends' });
	const { key } = JSON.parse(await cluster.psql(`SELECT row_to_json(l) FROM sheet.create_link(${fid}, expires => clock_timestamp() + interval '2 s') l`));
	const blocked = await create(fid);
	const password = await create(fid, { password: 'long enough' });
	const ending = new Watch(key);
	const stopped = new Watch(blocked.key);
	await Promise.all([ending.opened, stopped.opened]);
	assert.equal((await change(fid, blocked.link, { blocked: true })).status, 200);
	assert.deepEqual(await Promise.all([stopped.closed, ending.closed]), [4404, 4404]);
	assert.equal((await get(`/s/${key}`)).status, 404);
	for (const one of [key, blocked.key, password.key, 'A'.repeat(22)]) assert.equal(await new Watch(one).closed, 4404);
	for (const one of ['', 'x', 'A'.repeat(23), '%27'.repeat(22)]) await assert.rejects(new Watch(one).opened, /400/);
	await assert.rejects(new Watch(key, { origin: 'https://elsewhere.example' }).opened, /403/);
	const plain = new WebSocket(`ws://${gateway.host}/sheetws?watch=${key}`);
	await assert.rejects(new Promise((opened, failed) => plain.on('open', opened).on('error', failed)), /400/);
});

test('all watchers of a view are told of a change, and take little memory', async (t) => {
	const count = roundsToRun(600, 10000);
	const fid = await sheet({ A1: '0' });
	const { key, link } = await create(fid);
	const memory = async () => (await gateway.metrics()).process_resident_memory_bytes;
	const before = await memory();
	const all = [];
	while (all.length < count) {
		const some = Array.from({ length: Math.min(200, count - all.length) }, () => new Watch(key));
		await Promise.all(some.map((watch) => watch.opened));
		all.push(...some);
	}
	const each = ((await memory()) - before) / count;
	const begun = performance.now();
	await set(fid, 'A1', '1');
	await waitUntil(() => all.every((watch) => watch.messages.length > 0), 'the first change');
	const last = Math.max(...all.map((watch) => watch.messages[0].at)) - begun;
	t.diagnostic(`${count} watchers: ${Math.round(each / 102.4) / 10} kB each, the last one told after ${Math.round(last)} ms`);
	assert.ok(each < 65536, `${each} bytes for a watcher`);
	for (const watch of all) watch.messages = [];
	all.splice(0, 50).forEach((watch) => watch.socket.terminate());
	await waitUntil(async () => {
		await set(fid, 'A1', String(Math.random()));
		return all.every((watch) => watch.messages.length > 0);
	}, 'the change');
	await cluster.psql(`SELECT sheet.revoke_link(${link})`);
	assert.deepEqual(new Set(await Promise.all(all.map((watch) => watch.closed))), new Set([4404]));
});

test('watchers that vanish, send, ping or close while their links end leave nothing behind', async () => {
	const fid = await sheet({ A1: '0' });
	const acts = [
		(socket) => socket.terminate(),
		(socket) => socket.send('x'),
		(socket) => socket.send(Buffer.alloc(70000)),
		(socket) => Array.from({ length: 50 }, () => socket.ping('p'.repeat(125))),
		(socket) => socket.close(1000, 'bye'),
		(socket) => socket._socket.write(Buffer.from([0x8f, 0])),
		(socket) => socket._socket.end(Buffer.from([0x88, 0x85, 0, 0, 0, 0, 3])),
		() => {},
	];
	for (let round = 0; round < 8; round++) {
		const links = await Promise.all(Array.from({ length: 4 }, () => create(fid)));
		const keys = [...links.map(({ key }) => key), 'B'.repeat(22)];
		const all = Array.from({ length: 80 }, (_, i) => new Watch(keys[i % keys.length]));
		all.forEach(({ socket, opened }, i) => opened.then(() => acts[(i + round) % acts.length](socket)).catch(() => {}));
		await Promise.all([set(fid, 'A1', String(round)), ...links.slice(round % 2).map(({ link }) => cluster.psql(`SELECT sheet.revoke_link(${link})`))]);
		await Promise.all(links.map(({ link }) => cluster.psql(`SELECT sheet.revoke_link(${link})`)));
		await Promise.all(all.map(({ closed }) => closed));
	}
	const { key } = await create(fid);
	const watch = new Watch(key);
	await watch.opened;
	await waitUntil(async () => {
		await set(fid, 'A1', String(Math.random()));
		return watch.messages.length > 0;
	}, 'the change');
	watch.socket.close();
	assert.equal(await watch.closed, 1005);
});

test('what is too large for a form is refused', async () => {
	const fid = await sheet({ A1: 'a', ALL1000: 'far' });
	const { key } = await create(fid);
	const page = await get(`/s/${key}`);
	assert.equal(page.status, 413);
	assert.equal((await get(`/s/${key}.csv`)).status, 200);
	await set(fid, 'A9000000', 'farther');
	await waitUntil(async () => (await get(`/s/${key}.csv`)).status === 413, 'the limit');
	assert.equal((await get('/livez')).status, 200);
});

const property = (fid, target, key, value) => cluster.psql(`SELECT sheet.set_property(${fid}, ${target === null ? 'NULL' : `'${target}'`}, '${key}', '${value}')`);
/** The rows of the page's table: its header, then one each. */
const rowsOf = (page) => page.slice(page.indexOf('<tr>'), page.indexOf('</tbody>')).split(/<\/tr>(?:<\/thead><tbody>)?\n?/).filter((row) => row.startsWith('<tr'));

test('the page shows merges, sizes, hidden rows and columns, and formats, as the grid does', async () => {
	const fid = await sheet({ A1: 'Title', C1: 'covered?', D1: 'hidden', A2: 'hidden', A3: 'x', E4: 'last' });
	const client = await RawClient.open(gateway, anna, fid, { client: 78 });
	const as = (row, col, content, pattern, more = {}) => ({ row, col, content, style: { n: { pattern }, ...more } });
	client.op(1, [
		as(2, 1, '0.256', '0.0%'),
		as(2, 2, '1234567.891', '#,##0.00'),
		as(2, 4, '-5', '#,##0_);[Red](#,##0)'),
		as(3, 0, '2024-01-31', 'd"."m".<b>"yyyy', { vt: 2, ul: { s: 1 }, st: { s: 1 } }),
		as(3, 1, '18:05', 'h:mm AM/PM'),
		as(3, 2, "'007", '0'),
		{ row: 3, col: 3, content: 'TRUE' },
	]);
	await client.next('ack');
	for (const [target, key, value] of [['A1:C1', 'merge', 'true'], ['B:C', 'width', '120'], ['B:B', 'width', '80'], [null, 'height', '30'], ['3:3', 'height', '44.6'], ['2:2', 'hidden', 'true'], ['D:D', 'hidden', 'true']])
		await property(fid, target, key, value);
	const { key, link } = await create(fid);
	const page = await get(`/s/${key}`);
	assert.deepEqual(rowsOf(page.text), [
		'<tr><td></td><th scope="col">A</th><th scope="col" width="80">B</th><th scope="col" width="120">C</th><th scope="col">E</th>',
		'<tr height="30"><th scope="row">1</th><td colspan="3">Title</td><td></td>',
		'<tr height="45"><th scope="row">3</th><td>x</td><td align="right">25.6%</td><td align="right">1,234,567.89</td><td align="right">(5)</td>',
		'<tr height="30"><th scope="row">4</th><td align="right" valign="middle"><u><s>31.1.&lt;b&gt;2024</s></u></td><td align="right">6:05 PM</td><td>007</td><td>last</td>',
	]);
	// programs get what was typed, and all of it
	assert.equal((await get(`/s/${key}.csv`)).text, "Title,,covered?,hidden,\r\nhidden,,,,\r\nx,0.256,1234567.891,,-5\r\n2024-01-31,18:05,007,TRUE,last\r\n");
	// a property is a change of the page
	await property(fid, '2:2', 'hidden', 'null');
	await property(fid, 'B4:E5', 'merge', 'true');
	await property(fid, 'A4:C4', 'merge', 'true');
	const changed = async () => (await get(`/s/${key}`, { 'if-none-match': page.headers.etag })).text;
	await waitUntil(async () => (await changed()).includes('<tr height="30"><th scope="row">4</th><td colspan="3" align="right"'), 'the properties');
	// of merges that overlap, the smaller one is shown
	const rows = rowsOf(await changed());
	assert.equal(rows.length, 5);
	assert.ok(rows[4].endsWith('</td><td>last</td>'), rows[4]);
	// a hidden row of a merge: the rest has the content of its first cell
	await property(fid, 'A2:A3', 'merge', 'true');
	await property(fid, '2:2', 'hidden', 'true');
	await waitUntil(async () => rowsOf(await changed())[2]?.startsWith('<tr height="45"><th scope="row">3</th><td>hidden</td>'), 'the merge');
	// a rectangle: its part, wherever it moves; nothing of what is outside
	const part = await create(fid, { ref: 'B1:E3' });
	assert.notEqual(part.link, link);
	const expected = [
		'<tr><td></td><th scope="col" width="80">A</th><th scope="col" width="120">B</th><th scope="col">D</th>',
		'<tr height="30"><th scope="row">1</th><td colspan="2"></td><td></td>',
		'<tr height="45"><th scope="row">3</th><td align="right">25.6%</td><td align="right">1,234,567.89</td><td align="right">(5)</td>',
	];
	assert.deepEqual(rowsOf((await get(`/s/${part.key}`)).text), expected);
	for (let i = 0; i < 10; i++) {
		const moved = cluster.psql(`SELECT sheet.insert_rows(${fid}, 0, 1), sheet.insert_columns(${fid}, 0, 1)`);
		assert.deepEqual(rowsOf((await get(`/s/${part.key}`)).text), expected);
		await moved;
	}
	client.terminate();
});

test('errors of addresses that people open are pages for browsers, and JSON for programs', async () => {
	const fid = await sheet({ A1: 'x' });
	const { key, link } = await create(fid);
	const browser = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
	assert.equal((await get(`/s/${key}`, browser)).status, 200);
	assert.equal((await request(gateway, 'DELETE', `/v2/sheets/${fid}/links/${link}`, { headers: bearer() })).status, 200);
	const unknown = 'A'.repeat(22);
	for (const path of [`/s/${key}`, `/s/${unknown}`, '/s/x', `/s/${unknown}.csv`, `/p/${'a'.repeat(26)}`, '/p/x', `/i/${unknown}/a.png`, '/i/x', '/nothing']) {
		const page = await get(path, browser);
		assert.deepEqual([page.status, page.headers['content-type']], [404, 'text/html; charset=utf-8'], path);
		assert.match(page.text, /^<!doctype html><html lang="en">.*<h1>Not found<\/h1>.*<\/html>\n$/s);
		assert.ok(!page.text.includes('<script'));
		const style = /<style>(.*?)<\/style>/s.exec(page.text)[1];
		assert.ok(page.headers['content-security-policy'].includes(`style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`));
		assert.equal(page.text, (await get('/nothing', browser)).text);
		for (const accept of [undefined, '*/*', 'application/json', 'text/html;q=0, */*', 'text/csv']) {
			const answer = await get(path, accept ? { accept } : {});
			assert.deepEqual([answer.status, answer.headers['content-type'], answer.json.success], [404, 'application/json', false], path);
			assert.match(answer.headers.vary, /\bAccept\b/);
		}
	}
	assert.deepEqual(shown(await get(`/s/${key}`, browser)), shown(await get(`/s/${unknown}`, browser)));
	// a reason may come from elsewhere: it is no markup
	const twice = await get('/s/x?a=1&a=<b>', browser);
	assert.deepEqual([twice.status, twice.headers['content-type']], [400, 'text/html; charset=utf-8']);
	assert.equal((await get('/v2/sheets/1', browser)).headers['content-type'], 'application/json');
});

test('the ETag of a file of the page is a digest of its content', async () => {
	const web = path.join(cluster.directory, 'web');
	const etags = [];
	for (const [name, content] of [['one.js', 'let a=1;'], ['other.js', 'let a=2;'], ['same.js', 'let a=1;']]) {
		writeFileSync(path.join(web, name), content);
		utimesSync(path.join(web, name), 1e9, 1e9);
		const { status, headers } = await get(`/${name}`);
		assert.equal(status, 200);
		assert.equal((await get(`/${name}`, { 'if-none-match': headers.etag })).status, 304);
		etags.push(headers.etag);
	}
	assert.notEqual(etags[0], etags[1]);
	assert.equal(etags[0], etags[2]);
});

test("the owner's options: who may show the page in a frame, and search engines", async () => {
	const fid = await sheet({ A1: 'x' });
	const embed = 'https://example.org http://localhost:3000 https://*.example.com';
	const { key, link } = await create(fid, { embed, index: true });
	const page = await get(`/s/${key}`);
	assert.match(page.headers['content-security-policy'], /; frame-ancestors https:\/\/example\.org http:\/\/localhost:3000 https:\/\/\*\.example\.com$/);
	assert.equal(page.headers['x-robots-tag'], undefined);
	assert.ok(!page.text.includes('robots'));
	const listed = async () => (await request(gateway, 'GET', `/v2/sheets/${fid}/links`, { headers: bearer() })).json.links.find((one) => one.link === link);
	const { embed: shownEmbed, index } = await listed();
	assert.deepEqual([shownEmbed, index], [embed, true]);
	for (const bad of ['example.org', "'self'", 'https://a b', 'https://a; script-src *', 'https://a/path', 'https://a  https://b', ' https://a', 'javascript:x', 'https://a\nx', 'https://ä.example', '* https://a', `https://${'a'.repeat(1000)}`, 'https://*.*.a', 'https://a:port', 'data:'])
		assert.equal((await change(fid, link, { embed: bad })).status, 400, bad);
	for (const bad of [1, ['https://a']]) assert.equal((await change(fid, link, { embed: bad })).status, 400);
	assert.equal((await change(fid, link, { index: 'yes' })).status, 400);
	assert.equal((await change(fid, link, { embed: '*', index: false })).status, 200);
	const any = await get(`/s/${key}`);
	assert.match(any.headers['content-security-policy'], /frame-ancestors \*$/);
	assert.equal(any.headers['x-robots-tag'], 'noindex');
	assert.equal((await change(fid, link, { label: 'Other' })).status, 200);
	assert.equal((await listed()).embed, '*');
	assert.equal((await change(fid, link, { embed: null })).status, 200);
	assert.match((await get(`/s/${key}`)).headers['content-security-policy'], /frame-ancestors 'none'$/);
	assert.equal((await listed()).embed, null);
});
