/*
 * Every common client reaches a sheet by asking the wrong gateway. Many lose the Authorization header at a redirect to
 * another port, and some follow none.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import path from 'node:path';
import axios from 'axios';
import { WebSocket } from 'ws';
import { Cluster, repository, waitUntil } from '../lib/cluster.mjs';
import { getSheet, newSheet, post, register, request } from '../lib/client.mjs';
import { mustRunAs } from '../lib/processes.mjs';
import { sheetClient } from '../lib/v2.mjs';

let cluster;
let anna;
let fid;
let wrong; // The gateway that does not serve the sheet.
let right;

before(async () => {
	cluster = await Cluster.start({ gateways: 2, coordinator: 'zookeeper' });
	anna = await register(cluster.gateways[0]);
	fid = await newSheet(cluster.gateways[0], anna, { rows: 3, columns: 3 });
	const query = `/sheetws?token=${anna.token}&fid=${fid}&query=1`;
	const answers = async () => Promise.all(cluster.gateways.map(async (gateway) => (await request(gateway, 'GET', query)).json.msg));
	await waitUntil(async () => (await answers()).sort().join() === '19,20', 'one of them to own the sheet');
	const own = (await request(cluster.gateways[0], 'GET', query)).json.msg === 20 ? 0 : 1;
	[right, wrong] = [cluster.gateways[own], cluster.gateways[1 - own]];
	await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'found')`);
});
after(() => cluster?.stop());

const header = () => `Authorization: Bearer ${anna.token}`;
const body = (more = {}) => JSON.stringify({ fid, ...more });
const address = () => `${wrong.url}/getsheet`;

/** The answer of /getsheet, as a client printed it. */
function checkSheet(text) {
	const answer = JSON.parse(text);
	assert.equal(answer.msg, 12, text);
	assert.equal(answer.data.fid, fid);
}

test('with the token in the body, the wrong gateway redirects', async () => {
	const answer = await post(wrong, '/getsheet', { fid, token: anna.token });
	assert.deepEqual([answer.status, answer.headers.location], [307, `${right.url}/getsheet`]);
	assert.equal((await getSheet(right, anna, fid)).fid, fid);
});

test('curl follows with the token in the body, and needs not follow with the token in a header', async () => {
	checkSheet(await mustRunAs('curl', ['-sSL', '-d', body({ token: anna.token }), address()]));
	checkSheet(await mustRunAs('curl', ['-sS', '-H', header(), '-d', body(), address()]));
	checkSheet(await mustRunAs('curl', ['-sSL', '-H', header(), '-H', 'Expect: 100-continue', '-d', body(), address()]));
});

test('wget does', async () => {
	checkSheet(await mustRunAs('wget', ['-qO-', `--post-data=${body({ token: anna.token })}`, address()]));
	checkSheet(await mustRunAs('wget', ['-qO-', `--header=${header()}`, `--post-data=${body()}`, address()]));
});

test("Node's fetch does", async () => {
	const send = (more) => fetch(address(), { method: 'POST', ...more }).then((answer) => answer.text());
	checkSheet(await send({ body: body({ token: anna.token }) }));
	checkSheet(await send({ body: body(), headers: { authorization: `Bearer ${anna.token}` } }));
});

test('axios does', async () => {
	const send = (data, headers = {}) => axios.post(address(), data, { headers, responseType: 'text', transformResponse: [] });
	checkSheet((await send({ fid, token: anna.token })).data);
	checkSheet((await send({ fid }, { Authorization: `Bearer ${anna.token}` })).data);
	// An upload, as PicGo sends it.
	const form = new FormData();
	form.append('fid', String(fid));
	form.append('uploadfile', new Blob(['a picture']), 'a.png');
	const { data } = await axios.post(`${wrong.url}/uploadchunk`, form, { headers: { Authorization: `Bearer ${anna.token}` } });
	assert.deepEqual([data.msg, data.data], [33, 'a.png']);
});

test("Node's ws finds the gateway: with the token in a header by the answer to the upgrade, and by close code 4307", async () => {
	const headers = { authorization: `Bearer ${anna.token}` };
	const url = `ws://${wrong.host}/sheetws?fid=${fid}`;
	// Protocol v1: an answer without an upgrade, which ws does not follow, names the address.
	const refused = new WebSocket(url, { headers, followRedirects: true });
	const response = await new Promise((resolve, reject) => refused.on('error', reject).on('unexpected-response', (_, answer) => resolve(answer)));
	const { msg, data } = JSON.parse((await response.toArray()).join(''));
	assert.equal(msg, 19);
	assert.equal(new URL(data).host, right.host);
	const editor = new WebSocket(data, { headers, followRedirects: true });
	const [first] = await once(editor, 'message');
	editor.close();
	assert.equal(JSON.parse(first).msgType, 'onConn');
	// Protocol v2: the token is in the hello.
	const hello = async (address) => {
		const socket = new WebSocket(address, 'sheet.v2', { followRedirects: true });
		await once(socket, 'open');
		socket.send(JSON.stringify({ t: 'hello', v: 2, token: anna.token }));
		const answer = await Promise.race([once(socket, 'message'), once(socket, 'close')]);
		socket.close();
		return answer;
	};
	const [code, reason] = await hello(url);
	assert.equal(code, 4307);
	const [message] = await hello(`${JSON.parse(reason).ws}?fid=${fid}`);
	assert.equal(JSON.parse(message).t, 'hello');
});

test('a program with an access token is led to the right gateway, and closed when another revokes the token', async () => {
	const sent = { token: anna.token, label: 'live', scopes: ['edit'] };
	const made = (await post(wrong, '/v2/tokens', sent)).json;
	let closed;
	const program = sheetClient(wrong, { token: made.token }, fid, { onClose: (code, reason) => (closed = { code, reason }) });
	await waitUntil(() => program.loaded, 'the cells');
	await program.operate([{ row: 1, col: 1, content: 'by a program' }]);
	assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'B2')`), 'by a program');
	assert.equal(closed.code, 4307);
	const revoked = await request(wrong, 'DELETE', `/v2/tokens/${made.id}`, { headers: { authorization: `Bearer ${anna.token}` } });
	assert.equal(revoked.status, 204);
	await waitUntil(() => closed.code === 4401, 'the session to be closed');
	assert.equal(closed.reason, 'the token has been revoked');
	program.close();
});

const python = (...args) =>
	mustRunAs('/usr/bin/python3', [
		path.join(repository, 'tests/gateway/http_client.py'),
		...args,
		wrong.url,
		anna.token,
		String(fid),
	]);

test("Python's requests, aiohttp and urllib do; urllib with the token in a header, because it follows no 307", async () => {
	for (const client of ['requests', 'aiohttp']) checkSheet(await python(client, 'body'));
	for (const client of ['requests', 'aiohttp', 'urllib']) checkSheet(await python(client, 'header'));
});

test("Python's two WebSocket clients find the gateway, by query=1 and by close code 4307", async () => {
	for (const client of ['websockets', 'websocket-client']) {
		assert.match(await python(client, 'probe'), /"msgType":"onConn"/, client);
		assert.equal(JSON.parse(await python(client, 'v2')).t, 'hello', client);
	}
});

test('load generators, which follow nothing, get each answer', async () => {
	const cells = `${wrong.url}/v2/sheets/${fid}/cells?range=A1:B2`;
	const wrk = await mustRunAs('wrk', ['-c2', '-t1', '-d1', '-H', header(), cells]);
	assert.match(wrk, /[1-9][0-9]* requests in/);
	assert.doesNotMatch(wrk, /Non-2xx/);
	const ab = await mustRunAs('ab', ['-n', '50', '-c', '2', '-H', header(), cells]);
	assert.match(ab, /Failed requests: +0\n/);
	assert.doesNotMatch(ab, /Non-2xx/);
	const h2load = await mustRunAs('h2load', ['--h1', '-n', '50', '-c', '2', '-H', header(), cells]);
	assert.match(h2load, /status codes: 50 2xx, 0 3xx, 0 4xx, 0 5xx/);
});

test('a commit and a rollback by the wrong gateway reach those who edit at the right one', async () => {
	const headers = { authorization: `Bearer ${anna.token}` };
	const send = async (route, more) => (await post(wrong, route, { fid, ...more }, { headers })).json;
	const cells = async () => (await request(wrong, 'GET', `/v2/sheets/${fid}/cells?range=A1:A1`, { headers })).json.cells[0][2];
	const editor = sheetClient(right, anna, fid);
	try {
		await waitUntil(() => editor.replica.cells.get('0,0')?.content === 'found', 'the cell at the editor');
		assert.equal(await cells(), 'found');
		const committed = await send('/commitsheet');
		assert.equal(committed.msg, 28);
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'changed')`);
		assert.equal(await cells(), 'changed', 'an answer is not older than the question');
		await waitUntil(() => editor.replica.cells.get('0,0')?.content === 'changed', 'the change at the editor');
		const cid = await cluster.psql(`SELECT max(version_id) FROM sheet.version WHERE sheet_id = ${fid}`);
		await send('/rollbacksheet', { cid: Number(cid) });
		await waitUntil(() => editor.replica.cells.get('0,0')?.content === 'found', 'the rollback at the editor');
		assert.equal(await cells(), 'found');
	} finally {
		editor.close();
	}
});
