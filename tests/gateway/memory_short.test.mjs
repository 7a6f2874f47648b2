/*
 * When there is no memory: whoever asked for it is refused or closed, everybody else goes on, and so does the gateway.
 *
 * Each allocation of the gateway's own code on the way of a request or a session fails once (lib/failing_malloc.c); and a
 * gateway with a limit of its address space is asked for more than it can have.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Cluster, repository, sleep, waitUntil } from '../lib/cluster.mjs';
import { Editor, multipart, newSheet, post, register, request } from '../lib/client.mjs';
import { giveToService } from '../lib/processes.mjs';
import { RawClient, gridOf, sheetClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let sanitized;

/** The gateway's allocator, when it is started with this environment. */
const allocator = {
	prepare(directory) {
		const library = path.join(directory, 'failing_malloc.so');
		const control = path.join(directory, 'failing_malloc.control');
		execFileSync('cc', ['-shared', '-fPIC', '-O1', '-D_GNU_SOURCE', '-o', library, path.join(repository, 'tests', 'lib', 'failing_malloc.c')]);
		fs.chmodSync(library, 0o755);
		fs.writeFileSync(control, Buffer.alloc(32));
		giveToService(control);
		this.file = fs.openSync(control, 'r+');
		this.env = { LD_PRELOAD: library, FAILING_MALLOC: control };
	},
	write(...words) {
		fs.writeSync(this.file, Buffer.from(BigInt64Array.from(words, BigInt).buffer), 0, words.length * 8, 0);
	},
	/** The nth allocation of at least so many bytes from now on fails (lasting: and all behind it). */
	fail(n, { least = 1, lasting = false } = {}) {
		this.write(least, n, 0, lasting ? 1 : 0);
	},
	/** From now on none fails; has one? */
	end() {
		const words = Buffer.alloc(24);
		fs.readSync(this.file, words, 0, 24, 0);
		this.write(0, 0, 0, 0);
		return words.readBigInt64LE(16) > 0n;
	},
};

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
	sanitized = fs.readFileSync(cluster.gatewayBinary).includes('__asan_init');
	anna = await register(gateway);
	allocator.prepare(cluster.directory);
});
after(() => cluster?.stop());

/** Members of sheets of their own, who must notice nothing. */
class Bystanders {
	static async open() {
		const bystanders = new Bystanders();
		bystanders.pid = gateway.service.pid;
		bystanders.v1 = await Editor.open(gateway, anna, await newSheet(gateway, anna));
		bystanders.v2 = await RawClient.open(gateway, anna, await newSheet(gateway, anna), { client: 7 });
		bystanders.n = 0;
		return bystanders;
	}

	async check(when) {
		assert.ok(gateway.service.alive, `the gateway lives: ${when}\n${gateway.service.logTail()}`);
		assert.equal(gateway.service.pid, this.pid);
		assert.deepEqual([this.v1.closed, this.v2.closed], [null, null], when);
		await this.v1.settle();
		this.v2.op(++this.n, [{ row: 0, col: 0, content: `${this.n}` }]);
		await this.v2.next('ack', ({ n }) => n === this.n);
	}

	end() {
		this.v1.terminate();
		this.v2.terminate();
	}
}

/** A request is answered as ever, or with 503, or its connection ends; returns the answer when it is as ever. */
async function ask(how, ...args) {
	let answer;
	try {
		answer = await how(...args);
	} catch (error) {
		assert.match(String(error.code), /ECONNRESET|EPIPE/, String(error));
		return undefined;
	}
	if (answer.status === 503) assert.ok(Number(answer.headers['retry-after']) > 0, answer.text);
	else assert.equal(answer.status, 200, answer.text);
	return answer.status === 200 ? answer : undefined;
}

/** What a member does; being closed is as good as an answer. */
async function member(act) {
	const sockets = [];
	const open = async (socket) => (sockets.push(socket), await socket.opened, socket);
	let done = false;
	const closed = waitUntil(() => done || sockets.find((socket) => socket.closed), 'an end', 20000, 2);
	try {
		await Promise.race([act(open), closed]);
	} catch (error) {
		assert.match(error.message, /closed|refused|response: 503|hang up|ECONNRESET/, error.stack);
	}
	done = true;
	const codes = sockets.map((socket) => socket.closed?.code).filter(Boolean);
	assert.ok(codes.every((code) => [1006, 1011, 1012, 1013].includes(code)), codes.join());
	for (const socket of sockets) socket.terminate();
}

async function openRaw(open, fid, { encoding, client, since = 0 }) {
	const raw = await open(new RawClient(gateway, fid, { encoding }));
	raw.send({ t: 'hello', v: 2, token: anna.token, client, acked: 0, since });
	raw.hello = await raw.next('hello');
	return raw;
}

test('each allocation on behalf of a client may fail: that client is refused or closed, and nobody else', async (t) => {
	if (sanitized) return t.skip('the sanitizers have an allocator of their own');
	await gateway.stop();
	await gateway.start({}, { env: allocator.env });
	const fid = await newSheet(gateway, anna, { rows: 20, columns: 20 });
	const unopened = await newSheet(gateway, anna);
	await cluster.psql(`SELECT sheet.set(${fid}, 1, 5, 'here')`);
	const bystanders = await Bystanders.open();
	t.after(() => bystanders.end());
	const acknowledged = new Map();
	const keeper = sheetClient(gateway, anna, fid); // closed with its sheet, it comes again
	t.after(() => keeper.close());
	const long = (text) => `${text} ${'x'.repeat(5000)}`; // several of these are more than a block of the stream
	let cells = 0;
	const nextCell = () => [cells % 200, 1 + Math.floor(cells++ / 200)]; // nobody writes it again
	let client = 100;
	const file = multipart([['token', anna.token], ['fid', String(fid)], ['uploadfile', Buffer.alloc(300000, 'x'), 'a.txt', 'text/plain']]);
	const operation = async (raw, n, edits, cell) => {
		raw.op(n, edits);
		await raw.next('ack', (ack) => ack.n === n, 4000);
		if (cell) acknowledged.set(...cell);
	};
	const acts = {
		opening: () => member((open) => openRaw(open, unopened, { encoding: 'json', client: ++client })),
		login: () => ask(post, gateway, '/login', { username: anna.username, password: anna.password }),
		getsheet: async () => {
			const answer = await ask(post, gateway, '/getsheet', { token: anna.token, fid });
			if (answer) assert.deepEqual([answer.json?.data.content.length, answer.json?.data.content[25]], [400, 'here'], answer.text);
		},
		cells: (n) => ask(request, gateway, 'GET', `/v2/sheets/${fid}/cells?range=A1:C${n + 1}`, { headers: { authorization: `Bearer ${anna.token}` } }),
		page: () => ask(request, gateway, 'GET', '/'),
		metrics: () => ask(request, gateway.admin, 'GET', '/metrics'),
		debug: () => ask(request, gateway.admin, 'GET', '/debug'),
		upload: () => ask(request, gateway, 'POST', '/uploadchunk', file),
		v1: (n) =>
			member(async (open) => {
				const editor = await open(new Editor(gateway, anna, fid, { nack: true }));
				await editor.nextOf('onConn');
				editor.acquire(1, 1);
				const [row, col] = nextCell();
				editor.modify(row, col, long(`v1 ${n}`));
				await editor.nextModify(row, col, long(`v1 ${n}`), 4000);
				acknowledged.set(`${row},${col}`, long(`v1 ${n}`));
				editor.modify(-1, 0, 'x');
				await editor.nextOf('refused', 4000);
			}),
		...Object.fromEntries(
			['json', 'binary'].map((encoding) => [
				encoding,
				(n) =>
					member(async (open) => {
						const raw = await openRaw(open, fid, { encoding, client: ++client });
						const content = long(`${encoding} ${n}`);
						const [row, col] = nextCell();
						await operation(raw, 1, [{ row, col, content }], [`${row},${col}`, content]);
						raw.send({ t: 'lock', row: 1, col: 5 });
						raw.send({ t: 'cursor', row: 1, col: 1, toRow: 1, toCol: 1 });
						raw.send({ t: 'get', id: 3, row: 0, col: 0, toRow: 99, toCol: 9 });
						await raw.next('block', () => true, 4000);
						raw.send({ t: 'who', uid: 1 });
						await raw.next('user', () => true, 4000);
						await operation(raw, 2, [{ kind: 'insertRows', at: 300, n: 1 }]);
						const since = Number(raw.hello.seq);
						const again = await openRaw(open, fid, { encoding, client: ++client, since });
						await operation(again, 1, [{ kind: 'deleteRows', at: 300, n: 1 }]);
					}),
			]),
		),
	};
	let total = 0;
	for (const [name, act] of Object.entries(acts)) {
		await act(0);
		for (const lasting of [false, true]) {
			let n = 0;
			for (let failed = true; failed; ) {
				n++;
				allocator.fail(n, lasting ? { least: 16384, lasting } : {});
				const acting = act(n);
				if (lasting) await Promise.race([acting, sleep(300)]); // edits wait until there is memory to send them
				else await acting;
				failed = allocator.end();
				await acting;
				await bystanders.check(`allocation ${n} of ${name} has failed`);
				assert.ok(n < 1000, `${name} comes to an end`);
				total++;
			}
			if (!lasting) t.diagnostic(`${name}: ${n - 1} allocations`);
		}
	}
	const reader = await Editor.open(gateway, anna, fid);
	for (const [cell, content] of acknowledged) assert.ok(reader.cells.get(cell) === content, cell);
	const inRange = reader.grid().filter(([cell]) => Number(cell.split(',')[0]) < 200);
	const difference = () => {
		const [has, wants] = [gridOf(keeper), inRange].map((grid) => new Map(grid));
		const cells = [...new Set([...has.keys(), ...wants.keys()])].filter((cell) => has.get(cell) !== wants.get(cell));
		return `the member that has been there all along to have the same cells; it is ${keeper.state}, of ${wants.size} cells ${cells.length} differ: ${cells.slice(0, 5)}`;
	};
	await waitUntil(() => isDeepStrictEqual(gridOf(keeper), inRange), difference);
	reader.terminate();
	assert.ok(total > 100, `${total} allocations`);
});

/** The gateway's address space may grow by so many bytes; without a number by any. */
function limitMemory(bytes) {
	const size = Number(/^VmSize:\s+(\d+) kB/m.exec(fs.readFileSync(`/proc/${gateway.service.pid}/status`, 'utf8'))[1]) * 1024;
	execFileSync('prlimit', ['--pid', String(gateway.service.pid), `--as=${bytes === undefined ? 'unlimited' : size + bytes}:`]);
}

test('a gateway that has no more memory refuses what is large; members of other sheets edit on, and afterwards everything is as before', async (t) => {
	if (sanitized) return t.skip('the sanitizers need an address space of their own');
	await gateway.stop();
	await gateway.start({}, { env: { LD_PRELOAD: '', FAILING_MALLOC: '' } });
	const fid = await newSheet(gateway, anna, { rows: 500, columns: 1 });
	await cluster.psql(`SELECT sheet.set(${fid}, r, 0, repeat('x', 30000)) FROM generate_series(0, 399) r`); // 12 MB
	const bystanders = await Bystanders.open();
	t.after(() => bystanders.end());
	const cells = () => request(gateway, 'GET', `/v2/sheets/${fid}/cells?range=A1:A400`, { headers: { authorization: `Bearer ${anna.token}` } });

	limitMemory(16 << 20);
	const length = 1000000;
	const posts = Array.from({ length: 40 }, () => {
		const socket = net.connect(gateway.port, '127.0.0.1');
		const post = { socket, answer: '' };
		socket.on('error', () => {});
		socket.on('data', (data) => (post.answer += data));
		socket.write(`POST /login HTTP/1.1\r\nHost: ${gateway.host}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`);
		socket.write(Buffer.alloc(length - 1, 'x'));
		return post;
	});
	await waitUntil(() => posts.every(({ socket }) => socket.writableLength === 0), 'the bodies to be taken');
	await bystanders.check('40 large bodies are being sent');
	for (const { socket } of posts) socket.write('x');
	await waitUntil(() => posts.every(({ answer, socket }) => answer.includes('\r\n\r\n') || socket.destroyed), 'all to be answered');
	const statuses = posts.map(({ answer }) => Number(answer.split(' ')[1] ?? 0)); // 0: ended, without memory for an answer
	for (const { socket } of posts) socket.destroy();
	assert.ok(statuses.every((status) => [400, 503, 0].includes(status)), statuses.join());
	const without = statuses.filter((status) => status !== 400).length;
	t.diagnostic(`${without} of 40 bodies of 1 MB were refused`);
	assert.ok(without > 10, statuses.join());
	assert.match(posts[statuses.indexOf(503)].answer, /retry-after: \d+\r\n[^]*out of memory/i);
	await bystanders.check('40 large bodies were sent');
	await waitUntil(async () => (await post(gateway, '/login', 'x'.repeat(length))).status === 400, 'room for one of them');

	limitMemory(8 << 20); // libpq keeps the largest buffer that it has had
	const refused = await cells();
	assert.equal(refused.status, 503, refused.text.slice(0, 200));
	assert.ok(Number(refused.headers['retry-after']) > 0);
	await bystanders.check('a large range was asked for');

	limitMemory();
	const answer = await cells();
	assert.equal(answer.status, 200);
	assert.ok(answer.body.length > 12000000);
	await bystanders.check('there is memory again');
});
