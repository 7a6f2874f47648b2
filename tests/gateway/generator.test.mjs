/* The verifiers of the benchmarks `edit` and `gateway` notice what they must: run against a relay that damages the stream on purpose. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { WebSocketServer } from 'ws';
import { repository } from '../lib/cluster.mjs';

const users = 4;
const faultAt = 300;
let directory;
let generator;

before(() => {
	directory = fs.mkdtempSync(path.join(os.tmpdir(), 'tests-generator-'));
	execFileSync('make', ['-s', '-C', path.join(repository, 'tests', 'bench', 'edit'), `BUILD=${directory}`]);
	generator = path.join(directory, 'edit_generator');
	execFileSync('make', ['-s', '-C', path.join(repository, 'tests', 'bench', 'gateway'), `BUILD=${directory}`, `${directory}/crowd`, `${directory}/peer_load`]);
	fs.writeFileSync(path.join(directory, 'members'), '1 token\n'.repeat(users));
	fs.writeFileSync(path.join(directory, 'tokens'), 'token\n'.repeat(users));
});
after(() => fs.rmSync(directory, { recursive: true, force: true }));

/* Sends every edit to everybody, in one order, except for what the fault does. */
function relay(fault) {
	const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
	let count = 0;
	let held;
	const last = new Map();
	const tell = (clients, body) =>
		clients.forEach((client) =>
			client.send(JSON.stringify({ msgType: 'modify', body: { ...body, username: `user ${body.row}` } })),
		);
	server.on('connection', (socket, request) => {
		if (request.url.startsWith('/sheetws')) socket.send(
			JSON.stringify({
				msgType: 'onConn',
				body: { name: 'relay', columns: 100, content: Array(1000).fill(''), cellLocks: [] },
			}),
		);
		socket.on('message', (data) => {
			const clients = [...server.clients];
			if (data.toString().startsWith('hello')) {
				clients.forEach((client) => client.send(data.toString()));
				return;
			}
			const { body } = JSON.parse(data);
			last.set(`${body.row} ${body.col}`, body.content.length / 4);
			count++;
			if (fault === 'pings' && count % 100 === 0) clients[count % users].ping('are you there');
			if (count === faultAt && fault === 'drops one') return;
			if (count === faultAt && fault === 'leaves one user out') clients.splice(2, 1);
			if (count === faultAt && fault === 'changes a content') body.content = `${body.content}test`;
			if (count === faultAt && fault === 'sends garbage') body.content = 'tset';
			if (count === faultAt && fault === 'doubles one') tell(clients, body);
			if (fault === 'delays one' && count === faultAt) {
				held = body;
				return;
			}
			if (fault === 'shows another order to one user' && (count === faultAt || held)) {
				if (!held) held = body;
				else if (held.row !== body.row) {
					tell(clients.slice(0, 3), held);
					tell(clients, body);
					tell(clients.slice(3), held);
					held = null;
					return;
				} else tell(clients, body);
				return;
			}
			tell(clients, body);
			if (held && count === faultAt + 50) tell(clients, held);
		});
	});
	return { server, last };
}

/** Runs a program against a relay; its result, and the relay's cells. */
async function run(fault, program, args, first = []) {
	const { server, last } = relay(fault);
	await new Promise((resolve) => server.once('listening', resolve));
	const child = spawn(program, [...first, server.address().port, ...args].map(String), { stdio: ['pipe', 'pipe', 'ignore'] });
	let output = '';
	child.stdin.write('go\n');
	await new Promise((resolve, reject) => {
		child.stdout.on('data', (data) => (output += data).includes('}\n') && resolve());
		child.once('exit', () => reject(new Error(`the generator ended: ${output}`)));
	});
	const exit = new Promise((resolve) => child.once('exit', resolve));
	child.stdin.end();
	await exit;
	for (const client of server.clients) client.terminate();
	server.close();
	return { result: JSON.parse(output.split('\n')[1]), last };
}

async function generate(fault, rate = 1000) {
	const files = ['tokens', 'cells'].map((name) => path.join(directory, name));
	const { result, last } = await run(fault, generator, [1, files[0], 0.6, rate, files[1], 2]);
	const cells = fs.readFileSync(files[1], 'utf8').trim().split('\n').sort();
	return {
		result,
		cells,
		last: [...last]
			.filter(([, repeats]) => repeats > 0)
			.map(([cell, repeats]) => `${cell} ${repeats}`)
			.sort(),
	};
}

async function crowd(fault) {
	const [members, order] = ['members', 'order'].map((name) => path.join(directory, name));
	const { result } = await run(fault, path.join(directory, 'crowd'), [members, 4000, 0.5, users, order, 1]);
	return { result, order: fs.readFileSync(order, 'utf8').trim().split('\n') };
}

for (const kind of ['none', 'pings']) {
	test(`an honest stream (${kind}) is found whole, and the cells are known`, async () => {
		const { result, cells, last } = await generate(kind);
		assert.deepEqual([result.lost, result.reordered, result.other_messages], [0, 0, 0]);
		assert.equal(result.received, result.sent * users);
		assert.ok(result.sent >= 2000 && result.changed > result.sent * 0.9);
		assert.ok(result.latency_samples > 100 && result.p50_ms > 0 && result.p50_ms <= result.p99_ms);
		assert.deepEqual(cells, last);
	});
}

test('an unlimited run is found whole, too', async () => {
	const { result, cells, last } = await generate('none', 0);
	assert.deepEqual([result.lost, result.reordered], [0, 0]);
	assert.deepEqual(cells, last);
});

for (const [fault, expected] of [
	['doubles one', 'reordered'],
	['delays one', 'reordered'],
	['changes a content', 'reordered'],
	['shows another order to one user', 'reordered'],
	['sends garbage', 'other_messages'],
]) {
	test(`a relay that ${fault} is noticed as ${expected}`, async () => {
		const { result } = await generate(fault);
		assert.ok(result[expected] > 0, JSON.stringify(result));
	});
}

for (const [fault, lost] of [
	['drops one', users],
	['leaves one user out', 1],
]) {
	test(`a relay that ${fault} is noticed as loss`, async () => {
		const { result } = await generate(fault);
		assert.equal(result.lost, lost, JSON.stringify(result));
	});
}

for (const kind of ['none', 'pings']) {
	test(`crowd: an honest stream (${kind}) is found whole`, async () => {
		const { result, order } = await crowd(kind);
		assert.deepEqual([result.lost, result.reordered], [0, 0]);
		assert.equal(result.received, result.sent * users);
		assert.ok(result.sent >= 1500 && result.echo_p50_ms > 0 && result.echo_p50_ms <= result.last_max_ms);
		assert.equal(order.length, result.sent);
	});
}

for (const [fault, expected] of [
	['drops one', 'lost'],
	['leaves one user out', 'lost'],
	['doubles one', 'reordered'],
	['delays one', 'reordered'],
	['changes a content', 'reordered'],
	['shows another order to one user', 'reordered'],
]) {
	test(`crowd: a relay that ${fault} is noticed as ${expected}`, async () => {
		const { result } = await crowd(fault);
		assert.ok(result[expected] > 0, JSON.stringify(result));
	});
}

/* A load of peers: each user keeps as many edits under way as go beyond the fault. */
async function peerLoad(fault) {
	return (await run(fault, path.join(directory, 'peer_load'), [users, 500, 0.6, 1], ['nchan'])).result;
}

for (const kind of ['none', 'pings']) {
	test(`peer_load: an honest stream (${kind}) is found whole`, async () => {
		const result = await peerLoad(kind);
		assert.deepEqual([result.lost, result.reordered, result.other_messages], [0, 0, 0]);
		assert.ok(result.sent > faultAt, JSON.stringify(result));
		assert.equal(result.received, result.sent * users);
	});
}

for (const [fault, expected] of [
	['drops one', 'lost'],
	['leaves one user out', 'lost'],
	['doubles one', 'reordered'],
	['changes a content', 'reordered'],
	['sends garbage', 'other_messages'],
]) {
	test(`peer_load: a relay that ${fault} is noticed as ${expected}`, async () => {
		const result = await peerLoad(fault);
		assert.ok(result[expected] > 0, JSON.stringify(result));
	});
}
