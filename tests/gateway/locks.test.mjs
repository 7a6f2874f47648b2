/* Other programs may take part in the sheets' locks: kazoo, Curator and the recipe in C exclude the gateways, and are excluded by them. */
import { after, afterEach, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { sleep, waitUntil } from '../lib/cluster.mjs';
import { Rival, finish, killProbes, newSheet, prepare, start, stop, zookeeper } from '../lib/coord.mjs';
import { withZookeeper } from '../lib/zookeeper.mjs';

const noNode = -101; // ZooKeeper's code
const sessionMs = 15000; // that of the rivals, too: no session ends by itself

before(prepare);
afterEach(killProbes);
after(finish);

const pathOf = (sheet) => `/pg_sheet/locks/sheet${sheet}`;
const countNodes = async (at) => (await zookeeper.zookeeperCommand('dump')).split(`${at}/`).length - 1;
const waitForNodes = (at, count) => waitUntil(async () => (await countNodes(at)) === count, () => `${count} nodes`, 30000, 20);

for (const kind of ['kazoo', 'the recipe in C', 'Curator']) {
	test(`${kind} and two gateways: one holder at a time, in the order in which they asked`, async () => {
		const [a, b] = await start(2, { session: sessionMs });
		const rival = new Rival(kind);
		const sheet = newSheet();
		const at = pathOf(sheet);
		const asked = (count) => waitForNodes(at, count);

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

test('kazoo takes a lock by a new Lock object after ZooKeeper has removed the empty parent', async () => {
	await zookeeper.zookeeper.stop('SIGKILL');
	zookeeper.zookeeperProperties = ['-Dznode.container.checkIntervalMs=100']; // a minute by default
	await zookeeper.startZookeeper();
	const [a] = await start(1, { session: sessionMs });
	const rival = new Rival('kazoo');
	const sheet = newSheet();
	const at = pathOf(sheet);
	const held = async () => {
		await rival.answer(`held ${at}`);
		rival.tell(`release ${at}`);
		await rival.answer(`released ${at}`);
	};
	const exists = () =>
		withZookeeper({ port: zookeeper.zookeeperPort }, ({ children }) => children(at)).then(
			() => true,
			({ code }) => code !== noNode,
		);
	await a.acquire(sheet); // makes the parent
	rival.tell(`acquire ${at}`);
	await waitForNodes(at, 3);
	a.tell(`release ${sheet}`);
	await held();
	await waitUntil(async () => !(await exists()), 'the parent to be removed', 30000, 20);
	rival.tell(`forget ${at}`);
	rival.tell(`acquire ${at}`);
	await held();
	await rival.kill();
	await stop(a);
});
