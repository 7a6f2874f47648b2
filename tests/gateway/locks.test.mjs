/* Other programs may take part in the sheets' locks: kazoo, Curator and the recipe in C exclude the gateways, and are excluded by them. */
import { after, afterEach, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { repository, sleep, waitUntil } from '../lib/cluster.mjs';
import { finish, killProbes, newSheet, prepare, start, stop, zookeeper } from '../lib/coord.mjs';

const sessionMs = 15000; // that of the rivals, too: no session ends by itself
const rivals = {
	kazoo: ['python3', ['rival.py', 'kazoo']],
	'the recipe in C': ['python3', ['rival.py', 'c']],
	Curator: [
		'java',
		[
			'-Xmx64m',
			'-XX:TieredStopAtLevel=1',
			'-cp',
			['curator-client', 'curator-framework', 'curator-recipes', 'zookeeper', 'guava', 'slf4j-nop', 'bsh']
				.map((jar) => `/usr/share/java/${jar}.jar`)
				.join(':'),
			'bsh.Interpreter',
			'rival_curator.bsh',
		],
	],
};
let running;

before(prepare);
afterEach(async () => {
	running?.kill();
	await killProbes();
});
after(finish);

/** A program that was started: tell() gives it a command and resolves to its answer. */
class Rival {
	constructor(kind) {
		const [program, args] = rivals[kind];
		this.answers = [];
		this.stderr = '';
		this.child = spawn(program, [...args, `127.0.0.1:${zookeeper.zookeeperPort}`], {
			cwd: path.join(repository, 'tests', 'lib'),
			stdio: ['pipe', 'pipe', 'pipe'],
		});
		this.ended = new Promise((resolve) => this.child.on('exit', resolve));
		this.child.stdin.on('error', () => {});
		this.child.stderr.on('data', (data) => (this.stderr += data));
		let partial = '';
		this.child.stdout.on('data', (data) => {
			const lines = (partial + data).split('\n');
			partial = lines.pop();
			this.answers.push(...lines);
		});
	}

	tell(command) {
		this.child.stdin.write(`${command}\n`);
	}

	async answer(wanted) {
		await waitUntil(() => this.answers.length > 0 || this.child.exitCode !== null, () => `"${wanted}"\n${this.stderr}`, 60000, 2);
		assert.equal(this.answers.shift(), wanted, this.stderr);
	}

	kill() {
		this.child.kill('SIGKILL');
		return this.ended;
	}
}

const pathOf = (sheet) => `/pg_sheet/locks/sheet${sheet}`;

for (const kind of Object.keys(rivals)) {
	test(`${kind} and two gateways: one holder at a time, in the order in which they asked`, async () => {
		const [a, b] = await start(2, { session: sessionMs });
		const rival = (running = new Rival(kind));
		const sheet = newSheet();
		const at = pathOf(sheet);
		const nodes = async () => (await zookeeper.zookeeperCommand('dump')).split(`${at}/`).length - 1;
		const asked = async (count) => waitUntil(async () => (await nodes()) === count, () => `${count} nodes`, 30000, 20);

		// The rival waits for a gateway that asked before it, and a gateway that asked after it waits for the rival.
		await a.acquire(sheet);
		rival.tell(`acquire ${at}`);
		await asked(3);
		b.tell(`acquire ${sheet}`);
		await b.next(`waiting ${sheet}`);
		assert.deepEqual(rival.answers, []);
		a.tell(`release ${sheet}`);
		await rival.answer(`held ${at}`);
		await asked(3);
		a.tell(`acquire ${sheet}`);
		await a.next(`waiting ${sheet}`);
		assert.ok(![a, b].some((probe) => probe.texts.filter((text) => text.startsWith('granted')).length > (probe === a ? 1 : 0)));
		rival.tell(`release ${at}`);
		await rival.answer(`released ${at}`);
		await b.granted(sheet);
		b.tell(`release ${sheet}`);
		await a.granted(sheet);
		a.tell(`release ${sheet}`);
		await asked(0);

		// All three, again and again; the rival finds the lock's parent as it left it.
		let holder = null;
		const hold = async (who) => {
			assert.equal(holder, null, `${who} got the lock that ${holder} has`);
			holder = who;
			await sleep(1);
			holder = null;
		};
		const contend = async (probe, before) => {
			for (let i = 0; i < 25; i++) {
				probe.tell(`acquire ${sheet}`);
				await probe.grantNumber(before + i, sheet);
				await hold(probe.member);
				probe.tell(`release ${sheet}`);
			}
		};
		const contendRival = async () => {
			for (let i = 0; i < 25; i++) {
				rival.tell(`acquire ${at}`);
				await rival.answer(`held ${at}`);
				await hold(kind);
				rival.tell(`release ${at}`);
				await rival.answer(`released ${at}`);
			}
		};
		await Promise.all([contend(a, 2), contend(b, 1), contendRival()]);
		await asked(0);
		await rival.kill();
		await stop(a, b);
	});
}
