/* Gateways join and are drained while editors of both protocols are live: newcomers are served at once, sheets move by themselves, nothing is lost. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, newSheet, post, register, request } from '../lib/client.mjs';
import { PgProxy } from '../lib/pg_proxy.mjs';
import { runAs } from '../lib/processes.mjs';
import { Typist, enter } from '../lib/typist.mjs';
import { RawClient } from '../lib/v2.mjs';
import { Writer, checkNothingLost } from '../lib/writer.mjs';
import { withZookeeper } from '../lib/zookeeper.mjs';

let cluster;
let anna;
let first;
let second;
const sheets = [];
const typists = [];
const writers = [];
// Each of them is the new gateway's with a probability of a half.
const movable = 16;
// Accepts connections, and says nothing. Commands ask it while other tests run: they wait for 10 s.
const mute = net.createServer(() => {}).unref();
let unanswered;

before(async () => {
	cluster = await Cluster.start({ gateways: 1, coordinator: 'zookeeper', sessionMs: 10000, gatewayFlags: { 'handover-seconds': 2 } });
	[first] = cluster.gateways;
	mute.listen(0, '127.0.0.1');
	await once(mute, 'listening');
	const { port } = mute.address();
	unanswered = Promise.all([
		command('drain', `127.0.0.1:${port}`),
		command('resume', `https://127.0.0.1:${port}`),
		command('members', `--database=host=127.0.0.1 port=${port} dbname=sheets`),
	]);
	anna = await register(first);
	for (let i = 0; i < 6 + movable; i++) sheets.push(await newSheet(first, anna));
});
after(async () => {
	for (const { client } of typists) client.close();
	for (const writer of writers) writer.stopping = true;
	await cluster?.stop();
});

const query = async (gateway, fid) => (await request(gateway, 'GET', `/sheetws?token=${anna.token}&fid=${fid}&query=1`)).json;
const owns = (gateway, fid) => query(gateway, fid).then(({ msg }) => msg === 20);

/** Who serves the sheets, by their rooms. */
async function served(gateway) {
	const { first_rooms: rooms } = (await request(gateway.admin, 'GET', '/debug')).json;
	return new Set(rooms.filter(({ state }) => state === 'serving').map(({ sheet }) => sheet));
}

function type(gateway, fid) {
	typists.push(new Typist(gateway, anna, fid));
	return typists.at(-1);
}

/** The gateway that serves a newcomer who begins at `gateway`, by protocol v1: query=1, then the WebSocket where it says. */
async function enterV1(gateway, fid) {
	const { msg, data } = await query(gateway, fid);
	const host = msg === 20 ? gateway.host : new URL(data).host;
	const target = cluster.gateways.find((candidate) => candidate.host === host);
	const editor = await Editor.open(target, anna, fid);
	await editor.close();
	return target;
}

const enterV2 = (gateway, fid) => enter(cluster, gateway, anna, fid);
const command = (verb, ...words) => {
	const [address, ...flags] = verb === 'members' ? ['', ...words] : words;
	return runAs(cluster.gatewayBinary, [verb, address, ...first.arguments(), ...flags].filter(Boolean), { timeoutMs: 60000 });
};

test('a gateway joins: nobody is closed for it who does not come back, newcomers are served at once, sheets of v2 move', async () => {
	writers.push(new Writer('w', 0, anna, sheets[0], () => first));
	const idle = await Promise.all(sheets.slice(1, 6).map((fid) => Editor.open(first, anna, fid)));
	for (const fid of sheets.slice(6)) type(first, fid);
	await Promise.all([...writers, ...typists].map((editor) => editor.progress(20)));
	second = await cluster.addGateway();
	await waitUntil(async () => (await Promise.all(sheets.map((fid) => owns(second, fid)))).every((own) => !own), 'the new one to send all on');
	// The ring names the new gateway for some sheets; the first one holds them all.
	const ring = (await Promise.all(sheets.map(async (fid) => [fid, (await post(first, '/getsheet', { token: anna.token, fid })).status])));
	assert.ok(ring.every(([, status]) => status === 200), 'the holder answers for its sheets');
	for (const fid of sheets.slice(0, 6)) {
		assert.equal((await enterV1(second, fid)).host, first.host, 'newcomers of v1 are sent to the holder');
		assert.equal((await enterV2(second, fid)).host, first.host, 'and those of v2');
	}
	await checkTickets();
	for (const fid of sheets.slice(6)) await enterV2(second, fid);
	const moved = await waitUntil(async () => {
		const there = await served(second);
		return there.size > 0 && typists.every(({ fid, closes }) => !there.has(fid) || closes.length > 0) && there;
	}, 'sheets to move', 20000, 100);
	await waitUntil(async () => {
		const [here, there] = [await served(first), await served(second)];
		return typists.every(({ fid }) => here.has(fid) !== there.has(fid));
	}, 'each sheet to have one gateway', 20000, 100);
	assert.ok(!sheets.slice(0, 6).some((fid) => moved.has(fid)), 'sheets with editors of v1 stay');
	await Promise.all([...writers, ...typists].map((editor) => editor.progress(20)));
	assert.equal(writers[0].connections, 1, 'no editor of v1 was closed');
	assert.ok(idle.every(({ closed }) => !closed));
	for (const { closes } of typists) assert.ok(closes.every(({ code }) => code === 4307), JSON.stringify(closes));
	for (const editor of [...writers, ...typists]) await editor.stop();
	for (const editor of idle) await editor.close();
	for (const writer of writers) await checkNothingLost(cluster, writer.fid, [writer]);
	for (const typist of typists) await checkTypist(typist);
});

const upgrade = async (gateway, fid, ticket = 'A'.repeat(22)) =>
	(
		await request(gateway, 'GET', `/sheetws?ticket=${ticket}&fid=${fid}`, {
			headers: {
				upgrade: 'websocket',
				connection: 'Upgrade',
				'sec-websocket-version': '13',
				'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
			},
		})
	).json;
/** Does the ring name the gateway, whoever holds the sheet? Then it tells the holder only to those with a ticket. */
const ringNames = async (gateway, fid) => (await upgrade(gateway, fid)).msg === 1;

/** The first gateway holds the sheets. Where the ring names the second one, it tells so only to those with a ticket. */
async function checkTickets() {
	const { ticket } = (await post(second, '/v2/ticket', { token: anna.token, fid: sheets[1] })).json;
	assert.ok((await Promise.all(sheets.map((fid) => ringNames(second, fid)))).some((named) => named));
	const { msg, data } = await upgrade(second, sheets[1], ticket);
	assert.deepEqual([msg, new URL(data).host], [19, first.host]);
}

const checkTypist = async (typist) => assert.deepEqual(await typist.faults(cluster), { lost: 0, doubled: 0 });

test('a gateway is drained by command: all of its sheets move, it forwards clients, and takes sheets again when told', async () => {
	const own = [];
	for (let i = 0; own.length < 2 && i < 60; i++) {
		const fid = await newSheet(first, anna);
		if (await owns(second, fid)) own.push(fid);
	}
	assert.equal(own.length, 2);
	let tries = 0;
	const writer = new Writer('w', 0, anna, own[0], () => [second, first][tries++ % 2]);
	const typist = type(second, own[1]);
	await Promise.all([writer.progress(20), typist.progress(20)]);
	const v1 = writer.editor;
	await cluster.reported(second);
	const drained = await command('drain', second.host);
	assert.equal(drained.code, 0, drained.stderr);
	assert.match(drained.stdout, /drains: 0 open sheets are left/);
	await Promise.all([writer.progress(20), typist.progress(20)]);
	assert.deepEqual([...(await served(second))], []);
	const told = await v1.waitClosed();
	assert.deepEqual([told.code, told.reason], [1012, `ws://${first.host}/sheetws`]);
	assert.equal((await enterV1(second, own[0])).host, first.host);
	assert.equal((await enterV2(second, own[1])).host, first.host);
	const state = (host) => cluster.psql(`SELECT state FROM sheet.gateways WHERE address = '${host}'`);
	await waitUntil(async () => (await state(second.host)) === 'draining' && (await state(first.host)) === 'serving', 'the view', 20000, 100);
	assert.match((await command('members')).stdout, new RegExp(`${second.host}\\s*\\|.*draining`));
	assert.match((await command('members')).stdout, new RegExp(`${second.host}\\s*\\|.*http://${second.admin.host}`));
	const refused = await command('drain', first.admin.host);
	assert.deepEqual([refused.code, /409.*no other gateway serves/.test(refused.stderr)], [1, true], refused.stderr);
	const nameless = await command('resume', `localhost:${first.port}`);
	assert.deepEqual([nameless.code, /not the admin-address of a gateway, nor a name/.test(nameless.stderr)], [1, true], nameless.stderr);
	const resumed = await command('resume', `http://${second.admin.host}`);
	assert.equal(resumed.code, 0, resumed.stderr);
	await waitUntil(async () => (await served(second)).has(own[1]), 'the sheet to come back', 20000, 100);
	await Promise.all([writer.stop(), typist.stop()]);
	await checkNothingLost(cluster, own[0], [writer]);
	await checkTypist(typist);
});

test('a command whose server does not answer ends with an error', async () => {
	const [drain, resume, members] = await unanswered;
	for (const [{ code, stderr }, whom] of [
		[drain, /^pg_sheet_gateway: 127\.0\.0\.1:\d+ did not answer within 10 s\n$/],
		[resume, /^pg_sheet_gateway: https:\/\/127\.0\.0\.1:\d+ did not answer within 10 s\n$/],
		[members, /^pg_sheet_gateway: connection to server at "127\.0\.0\.1", port \d+ failed: timeout expired\n/],
	]) {
		assert.equal(code, 1, stderr);
		assert.match(stderr, whom);
	}
});

test('locks of ranges end when the sheet moves: the holder and who waits are closed with 4307, and ask again', async () => {
	const ben = await register(first);
	const fid = await waitUntil(async () => {
		const candidate = await newSheet(first, anna);
		return (await owns(second, candidate)) && candidate;
	}, 'a sheet of the second gateway');
	const range = { row: 1, col: 1, toRow: 3, toCol: 3 };
	const lock = (client) => client.send({ t: 'lockRange', ...range, wait: true });
	const holder = await RawClient.open(second, anna, fid, { client: 1, v: 3 });
	const next = await RawClient.open(second, ben, fid, { client: 2, v: 3 });
	lock(holder);
	await next.next('range');
	lock(next);
	assert.ok((await next.next('blocked')).waits);
	await cluster.reported(second);
	assert.equal((await command('drain', second.host)).code, 0);
	for (const client of [holder, next]) {
		const { code, reason } = await client.waitClosed();
		assert.deepEqual([code, JSON.parse(reason).ws], [4307, `ws://${first.host}/sheetws`]);
	}
	// Whoever asks first has it.
	const nowHolder = await RawClient.open(first, ben, fid, { client: 2, v: 3 });
	assert.deepEqual(nowHolder.hello.ranges, []);
	lock(nowHolder);
	const { session } = await nowHolder.next('range');
	assert.equal(session, nowHolder.hello.session);
	const former = await RawClient.open(first, anna, fid, { client: 1, v: 3 });
	assert.deepEqual(former.hello.ranges, [{ ...range, session, uid: ben.uid }]);
	former.op(1, [{ row: 2, col: 2, content: 'under a lock that has ended' }]);
	assert.equal((await former.next('nack')).reason, 'locked');
	lock(former);
	assert.ok((await former.next('blocked')).waits);
	nowHolder.terminate();
	await former.next('range', (message) => message.session === former.hello.session);
	former.terminate();
	assert.equal((await command('resume', second.host)).code, 0);
});

test('web pages may not drain a gateway, nor may strangers', async () => {
	const page = await post(first.admin, '/admin/drain', {}, { headers: { origin: 'http://elsewhere.example' } });
	assert.equal(page.status, 403);
	const stranger = await post(first.admin, '/admin/drain', {}, { headers: { host: 'elsewhere.example' } });
	assert.equal(stranger.status, 403);
});

test('SIGTERM: editors of v2 go to the other gateway, and the gateway ends', async () => {
	const fid = await waitUntil(async () => {
		const candidate = await newSheet(first, anna);
		return (await owns(second, candidate)) && candidate;
	}, 'a sheet of the second gateway');
	const typist = type(second, fid);
	await typist.progress(20);
	const { code } = await second.stop();
	assert.equal(code, 0);
	await typist.progress(20); // more than were under way
	// The first gateway sends him back while it has not heard that the second one is leaving.
	assert.ok(typist.closes.length > 0 && typist.closes.every((close) => close.code === 4307), JSON.stringify(typist.closes));
	assert.ok((await served(first)).has(fid));
	await typist.stop();
	await checkTypist(typist);
});

test('no sheet moves to a gateway that the database does not answer; the view tells at once that it was killed', async () => {
	const fids = sheets.slice(6, 18);
	const editors = await Promise.all(fids.map((fid) => Editor.open(first, anna, fid))); // while they are here, the sheets stay
	const third = await cluster.addGateway();
	const proxy = await PgProxy.start(cluster, third);
	const told = async () =>
		withZookeeper({ port: cluster.zookeeperPort }, async ({ read }) => (await read(`/pg_sheet/members/${third.host}`)).text.split(' ')[2]);
	try {
		const named = async () => {
			const found = await Promise.all(fids.map((fid) => ringNames(third, fid)));
			return fids.filter((_, i) => found[i]);
		};
		const fid = (await waitUntil(async () => (await named()).length > 0 && named(), 'a sheet of the third gateway'))[0];
		const typist = new Typist(first, anna, fid, { name: 'c' });
		typists.push(typist);
		await typist.progress(20);
		proxy.silence();
		await waitUntil(async () => (await told()) === 'cut', 'it to be cut');
		for (const editor of editors) await editor.close();
		await typist.progress(20);
		await waitUntil(async () => (await told()) === 'away', 'it to give its sheets up');
		await typist.progress(20);
		assert.deepEqual(typist.closes, [], 'the sheet has stayed');
		await typist.stop();
		await checkTypist(typist);
	} finally {
		proxy.release();
	}
	const view = () =>
		cluster.rows(`SELECT state, seen > now() - interval '15 s' AS lately FROM sheet.gateways WHERE address = '${third.host}'`);
	await waitUntil(async () => (await view())[0].state === 'away', 'the view to show it', 20000, 100);
	await third.kill();
	const [row] = await waitUntil(async () => {
		const rows = await view();
		return rows[0].state === 'silent' && rows;
	}, 'the view to show that it is gone', 20000, 20);
	assert.ok(row.lately);
	await proxy.stop();
});
