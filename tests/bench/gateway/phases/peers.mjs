/*
 * peers - the flood against Node's `ws` (peer.mjs), which keeps nothing: one send for each message and receiver, and with
 * coalescing by hand. Ours and the coalescing one take turns, so that the machine's other work meets both.
 */
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import readline from 'node:readline';
import { startGenerator } from '../../common/site.mjs';
import { expectWhole, round, writeOneSheet } from './common.mjs';

const turns = 3;

async function floodPeer(bench, kind, seconds) {
	const server = spawn(process.execPath, [path.join(path.dirname(fileURLToPath(import.meta.url)), '..', 'peer.mjs'), kind], {
		stdio: ['pipe', 'pipe', 'inherit'],
	});
	const [port] = await new Promise((resolve) =>
		readline.createInterface({ input: server.stdout }).once('line', (line) => resolve([Number(line)])),
	);
	try {
		const tokens = bench.file(
			'tokens',
			bench.users.map(() => 'nobody'),
		);
		const generator = startGenerator('edit_generator', [port, 1, tokens, seconds, 0, bench.file('cells'), 60]);
		if ((await generator.line()) !== 'ready') throw new Error('the load generator is not ready');
		generator.go();
		const result = JSON.parse(await generator.line());
		generator.end();
		expectWhole(bench, result, `ws, ${kind}`);
		return Math.round(result.received / result.users / result.total_seconds);
	} finally {
		server.kill('SIGKILL');
	}
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

export async function peers(bench) {
	const seconds = Math.max(1, bench.seconds / 2);
	const ours = [];
	const coalescing = [];
	for (let i = 0; i < turns; i++) {
		ours.push((await writeOneSheet(bench, { seconds, rate: 0 })).recv);
		coalescing.push(await floodPeer(bench, 'coalescing', seconds));
	}
	const plain = await floodPeer(bench, 'plain', seconds);
	const ratio = round(median(ours) / median(coalescing), 2);
	bench.line('this gateway, durable: edits a second and user', median(ours));
	bench.line('ws, coalescing by hand, not durable', median(coalescing));
	bench.line('ws, one send for each message and receiver, not durable', plain);
	bench.line('this gateway against the coalescing one', ratio, '1.5', ratio >= 1.5);
	return { ws_coalescing_recv_per_user: median(coalescing), ws_plain_recv_per_user: plain, ws_coalescing_ratio: ratio };
}
