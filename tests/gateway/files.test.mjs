/*
 * files.test.mjs - large files: whatever their size, they cost the gateway a few megabytes, and nobody who edits meanwhile waits
 * for them.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import http from 'node:http';
import { Cluster } from '../lib/cluster.mjs';
import { Editor, multipart, newSheet, register, request } from '../lib/client.mjs';

const size = 96 << 20;
const piece = crypto.randomBytes(1 << 20);
let cluster;
let gateway;
let anna;
let fid;

before(async () => {
	cluster = await Cluster.start({
		measured: true,
		gatewayFlags: { 'max-upload-bytes': '1GB' },
		postgres: { max_wal_size: '4GB', fsync: 'off' }, // it is the gateway that is measured
	});
	[gateway] = cluster.gateways;
	anna = await register(gateway);
	fid = await newSheet(gateway, anna);
});
after(() => cluster?.stop());

/** The most memory that the gateway's process has had, in MiB. */
const peak = () => gateway.memory('VmHWM') / 1024;

/*
 * How much of the file may pass while an editor waits for an echo. How long that takes is the machine's matter: what is
 * slow delays the file as well as the editor.
 */
const atMost = size / 4;
let passed = 0; // bytes of the file that is under way

/** The most bytes of the file that pass, and the longest time in ms, while an editor waits for an echo during this work. */
async function longestEcho(work) {
	const editor = await Editor.open(gateway, anna, fid);
	let busy = true;
	let longest = 0;
	let most = 0;
	let beats = 0;
	passed = 0;
	const beating = (async () => {
		while (busy) {
			const [started, before] = [performance.now(), passed];
			await editor.settle();
			longest = Math.max(longest, performance.now() - started);
			most = Math.max(most, passed - before);
			beats++;
		}
	})();
	try {
		await work();
	} finally {
		busy = false;
		await beating;
	}
	await editor.close();
	assert.ok(beats > 1);
	return { longest, most };
}

/** A form with a file of `size` bytes, which is never in memory as a whole. */
function uploadLarge(name) {
	const boundary = 'xxxxxxxxxxxxxxxx';
	const field = (field_, value) => `--${boundary}\r\nContent-Disposition: form-data; name="${field_}"\r\n\r\n${value}\r\n`;
	const head = Buffer.from(
		`${field('fid', fid)}${field('token', anna.token)}--${boundary}\r\nContent-Disposition: form-data; name="uploadfile"; filename="${name}"\r\n\r\n`,
	);
	const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
	return new Promise((resolve, reject) => {
		const outgoing = http.request(
			{
				port: gateway.port,
				method: 'POST',
				path: '/uploadchunk',
				agent: false,
				headers: {
					'content-type': `multipart/form-data; boundary=${boundary}`,
					'content-length': head.length + size + tail.length,
				},
			},
			(answer) => {
				let text = '';
				answer.on('data', (data) => (text += data));
				answer.on('end', () => resolve(JSON.parse(text)));
			},
		);
		outgoing.on('error', reject);
		outgoing.write(head);
		let left = size / piece.length;
		const more = () => {
			while (left > 0) {
				left--;
				passed = size - left * piece.length - outgoing.writableLength;
				if (!outgoing.write(piece)) {
					outgoing.once('drain', more);
					return;
				}
			}
			outgoing.end(tail);
		};
		more();
	});
}

function downloadLarge(name, headers = {}) {
	return new Promise((resolve, reject) => {
		const hash = crypto.createHash('sha256');
		let bytes = 0;
		http
			.get({ port: gateway.port, path: `/getchunk?fid=${fid}&chunk=${name}&token=${anna.token}`, agent: false, headers }, (answer) => {
				answer.on('data', (data) => {
					hash.update(data);
					bytes += data.length;
					passed = bytes;
				});
				answer.on('end', () => resolve({ bytes, sha256: hash.digest('hex') }));
				answer.on('error', reject);
			})
			.on('error', reject);
	});
}

const shown = ({ longest, most }) => `an edit's echo took ${Math.round(longest)} ms at most, while ${Math.round(most / (1 << 20))} MiB went by`;

test('a file of 96 MiB goes in and out within 16 MiB of memory, while somebody edits', async (context) => {
	const sha256 = crypto.createHash('sha256');
	for (let i = 0; i < size / piece.length; i++) sha256.update(piece);
	const before_ = peak();
	let started = Date.now();
	const up = await longestEcho(async () => {
		const answer = await uploadLarge('large.bin');
		assert.equal(answer.msg, 33, JSON.stringify(answer));
	});
	context.diagnostic(`upload: ${Math.round(size / 1048.576 / (Date.now() - started))} MiB/s, ${shown(up)}`);
	started = Date.now();
	const down = await longestEcho(async () => {
		const got = await downloadLarge('large.bin');
		assert.deepEqual(got, { bytes: size, sha256: sha256.digest('hex') });
	});
	context.diagnostic(`download: ${Math.round(size / 1048.576 / (Date.now() - started))} MiB/s, ${shown(down)}`);
	context.diagnostic(`peak memory of the gateway grew by ${(peak() - before_).toFixed(1)} MiB`);
	assert.ok(peak() - before_ < 16, `${before_} -> ${peak()} MiB`);
	assert.ok(Math.max(up.most, down.most) < atMost, `nobody waits for the file: ${shown(up)}; ${shown(down)}`);
	const { headers } = await request(gateway, 'HEAD', `/getchunk?fid=${fid}&chunk=large.bin&token=${anna.token}`);
	assert.equal(headers.etag, `"${(await cluster.psql(`SELECT etag FROM sheet.file`)).trim()}"`);
});

test('sixteen downloads at a time cost no more', async () => {
	const before_ = peak();
	const parts = [...Array(16)].map((_, i) => downloadLarge('large.bin', { range: `bytes=${i * 1000003}-${i * 1000003 + (8 << 20) - 1}` }));
	for (const { bytes } of await Promise.all(parts)) assert.equal(bytes, 8 << 20);
	assert.ok(peak() - before_ < 16, `${before_} -> ${peak()} MiB`);
});

test('while somebody edits, uploads write in turn and with pauses, and a small one comes soon', async () => {
	const ben = await register(gateway);
	const parts = 12;
	const send = (user, name, bytes) => {
		const form = multipart([['fid', String(fid)], ['token', user.token], ['uploadfile', bytes, name, 'application/octet-stream']]);
		return request(gateway, 'POST', '/uploadchunk', form);
	};
	const editor = await Editor.open(gateway, anna, fid);
	await editor.settle();
	let busy = true;
	const editing = (async () => {
		while (busy) await editor.settle();
	})();
	try {
		const started = performance.now();
		let large = 0;
		const many = Promise.all(
			Array.from({ length: 4 }, async (_, i) => {
				assert.equal((await send(anna, `large ${i}`, piece.subarray(0, 256 * 1024 * (parts / 4)))).json.msg, 33);
				large++;
			}),
		);
		const small = await send(ben, 'small', Buffer.from('a few bytes'));
		assert.equal(small.json.msg, 33, small.text);
		assert.ok(large < 4, 'before the large ones');
		await many;
		const took = performance.now() - started;
		assert.ok(took >= (parts - 1) * 40, `${parts} parts took ${took} ms`);
	} finally {
		busy = false;
		await editing;
		await editor.close();
	}
});
