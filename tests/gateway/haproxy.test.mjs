/* docker/haproxy.cfg, with other ports and paths, ends TLS in front of two real gateways. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, freePort, repository, waitUntil } from '../lib/cluster.mjs';
import { Editor, getSheet, newSheet, post, register, request } from '../lib/client.mjs';
import { Service } from '../lib/processes.mjs';

/* HAProxy's address, from which clients come as well if Docker's userland proxy forwards them, and the operator's. */
const [proxy, operator] = ['127.0.0.1', '127.0.0.3'];
let cluster;
let haproxy;
const doors = []; // the frontends, as gateways
let anna;
let fid;
let wrong; // the door of the gateway that does not serve the sheet
let right;

before(async () => {
	cluster = await Cluster.start({ gateways: 0, coordinator: 'zookeeper' });
	cluster.makeCertificate();
	const ca = cluster.certificate;
	cluster.certificate = undefined; // gateways speak plain HTTP
	for (let i = 0; i < 3; i++) {
		const port = await freePort();
		const host = `127.0.0.1:${port}`;
		doors.push({ address: '127.0.0.1', port, host, url: `https://${host}`, tls: { ca } });
	}
	for (let i = 0; i < 2; i++) {
		const flags = { 'public-scheme': 'https', 'trusted-proxies': proxy, 'admin-networks': operator };
		await cluster.addGateway({ 'public-address': doors[i].host, ...flags });
	}
	await startProxy();
	anna = await register(doors[0]);
	fid = await newSheet(doors[0], anna);
	const query = `/sheetws?token=${anna.token}&fid=${fid}&query=1`;
	const ask = async () => Promise.all(doors.slice(0, 2).map(async (door) => (await request(door, 'GET', query)).json.msg));
	const answers = await waitUntil(async () => {
		const found = await ask();
		return [...found].sort().join() === '19,20' && found;
	}, 'one of them to own the sheet');
	[right, wrong] = answers[0] === 20 ? doors : [doors[1], doors[0]];
});
after(async () => {
	await haproxy?.stop();
	await cluster?.stop();
});

async function startProxy() {
	const { directory, gateways } = cluster;
	const pem = path.join(directory, 'site.pem');
	const file = path.join(directory, 'haproxy.cfg');
	fs.writeFileSync(pem, ['tls.crt', 'tls.key'].map((name) => fs.readFileSync(path.join(directory, name), 'utf8')).join(''));
	fs.writeFileSync(
		file,
		fs
			.readFileSync(path.join(repository, 'docker/haproxy.cfg'), 'utf8')
			.replaceAll('/tls/site.pem', pem)
			.replace(/:844([345]) /g, (_, digit) => `127.0.0.1:${doors[digit - 3].port} `)
			.replace(/gateway-([123]):8080/g, (_, digit) => gateways[Math.min(digit, 2) - 1].host),
	);
	haproxy = Service.spawn('haproxy', 'haproxy', ['-db', '-f', file], { log: path.join(directory, 'log', 'haproxy.log') });
	for (const door of doors) await haproxy.waitReady(async () => (await request(door, 'GET', '/healthz')).status === 200);
}

const metrics = async (door, headers) => (await request(door, 'GET', '/metrics', { headers })).status;

test('nobody becomes an operator through it, and clients cannot forge what it tells of them', async () => {
	const forged = [{ 'x-forwarded-for': operator }, { forwarded: `for=${operator}` }, { 'x-forwarded-for': operator, forwarded: `for=${operator}` }];
	assert.equal(await metrics(cluster.gateways[0].admin, forged[0]), 200, 'the gateways trust what HAProxy passes on');
	for (const door of doors)
		for (const localAddress of [proxy, operator])
			for (const headers of [{}, ...forged])
				assert.equal(await metrics({ ...door, tls: { ...door.tls, localAddress } }, headers), 404, `${door.host} ${JSON.stringify(headers)}`);
	const log = () => fs.readFileSync(path.join(cluster.directory, 'log', 'gateway-0.log'), 'utf8');
	for (const headers of [{}, ...forged, { forwarded: `for=${operator};x="` }, { 'x-forwarded-for': `${operator}, "` }]) {
		const id = `forged-${Math.random()}`;
		const body = { username: 'nobody', password: 'x' };
		await post({ ...doors[0], tls: { ...doors[0].tls, localAddress: '127.0.0.4' } }, '/login', body, { headers: { ...headers, 'x-request-id': id } });
		const line = log().split('\n').find((text) => text.includes('login refused') && text.includes(id));
		assert.match(line, /peer="127\.0\.0\.4"/, JSON.stringify(headers));
	}
});

test('the page behind it gets cookies of this host alone', async () => {
	const answer = await post(right, '/login', { username: anna.username, password: anna.password }, { headers: { origin: right.url } });
	const cookies = answer.headers['set-cookie'].map((cookie) => cookie.replace(/=[^;]+/, ''));
	assert.match(cookies.join('\n'), /^__Host-pg_sheet_files; Path=\/; HttpOnly; SameSite=Strict; Secure; Max-Age=\d+\n__Host-pg_sheet_session; Path=\/; HttpOnly; SameSite=Strict; Secure\n__Host-pg_sheet_device; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
	const headers = { origin: right.url, cookie: answer.headers['set-cookie'][1].split(';')[0] };
	assert.equal((await post(right, '/v2/session', {}, { headers })).json.username, anna.username);
});

test('two edit over wss and hear of each other; REST reads what they wrote', async () => {
	const [a, b] = [await Editor.open(right, anna, fid), await Editor.open(right, await register(wrong), fid)];
	a.modify(0, 0, 'through the proxy');
	await b.nextModify(0, 0, 'through the proxy');
	await a.close();
	await b.close();
	assert.equal((await getSheet(right, anna, fid)).fid, fid);
	const cells = await request(right, 'GET', `/v2/sheets/${fid}/cells?range=A1:A1&token=${anna.token}`);
	assert.deepEqual(cells.json.cells, [[0, 0, 'through the proxy']]);
});

test("redirects and WebSocket addresses name the other gateway's port of HAProxy, with https and wss", async () => {
	const answer = await post(wrong, '/getsheet', { fid, token: anna.token });
	assert.deepEqual([answer.status, answer.headers.location], [307, `${right.url}/getsheet`]);
	const elsewhere = await request(wrong, 'GET', `/sheetws?token=${anna.token}&fid=${fid}&query=1`);
	assert.match(JSON.stringify(elsewhere.json.data), new RegExp(`wss://${right.host}/sheetws`));
	const route = await request(wrong, 'GET', `/v2/sheets/${fid}/route?token=${anna.token}`);
	assert.deepEqual([route.json.http, route.json.ws], [right.url, `wss://${right.host}/sheetws`]);
});
