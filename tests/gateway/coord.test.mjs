/* Coordination on its own (lib/coord.mjs): members, the ring, and sheet locks against a real ZooKeeper and a real PostgreSQL. */
import { after, afterEach, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, sleep, waitUntil } from '../lib/cluster.mjs';
import { Probe, Proxy, Rival, finish, killProbes, newName, newSheet, nodeCount, prepare, quietNodeCount, removeNode, sessionMs, start, stop, untilInRing, zookeeper } from '../lib/coord.mjs';

/* A session ends at most a tick (500 ms) late; the rest is for a busy machine. */
const takeoverMs = sessionMs + 500 + 3000;

/** The path of a node of a sheet's lock. */
const lockNode = async (sheet) =>
	new RegExp(`/pg_sheet/locks/sheet${sheet}/\\S+`).exec(await zookeeper.zookeeperCommand('dump'))[0];

before(() => prepare({ sweepMs: 300 }));
afterEach(killProbes);
after(finish);

test('members see each other, agree on the owner of every sheet, and see one leave', async () => {
	const [a, b, c] = await start(3);
	const answers = await Promise.all([a, b, c].map((probe) => probe.owners(2000)));
	assert.deepEqual(answers[0], answers[1]);
	assert.deepEqual(answers[0], answers[2]);
	const shares = [a, b, c].map((probe) => answers[0].filter((owner) => owner === probe.member).length / 2000);
	for (const share of shares) assert.ok(share > 0.2 && share < 0.47, `shares ${shares}`);
	await c.close();
	await waitUntil(() => a.members().length === 2 && b.members().length === 2, 'two members');
	const left = await a.owners(2000);
	answers[0].forEach(
		(owner, i) => owner === c.member || assert.equal(left[i], owner, 'a sheet of a member that stays does not move'),
	);
	await stop(a, b);
});

test('a member of weight 2 owns twice the sheets', async () => {
	const [a] = await start(1);
	const b = new Probe('zookeeper', newName(), { weight: 2 });
	await b.next('ready');
	await untilInRing(a, b);
	const owners = await b.owners(3000);
	const ratio =
		owners.filter((owner) => owner === b.member).length / owners.filter((owner) => owner === a.member).length;
	assert.ok(ratio > 1.6 && ratio < 2.4, `ratio ${ratio}`);
	await stop(a, b);
});

test('bursts of joins and leaves end in the right set everywhere', async () => {
	const [a, b] = await start(2);
	for (let round = 0; round < 3; round++) {
		const burst = Array.from({ length: 4 }, () => new Probe('zookeeper', newName()));
		await Promise.all(burst.map((probe) => probe.next('ready')));
		const [stays, ...others] = burst;
		await stop(...others);
		await waitUntil(
			() => a.members().length === 3 && b.members().length === 3 && a.members().includes(stays.member),
			'the one that stays',
		);
		assert.deepEqual(a.members(), b.members());
		await stays.close();
	}
	await waitUntil(() => a.members().length === 2 && b.members().length === 2, 'the first two');
	await stop(a, b);
});

test('1,000 random joins and leaves in bursts: each is seen once by every gateway, and all agree at the end', async () => {
	const proxy = await Proxy.start();
	const others = new Rival('members');
	const watchers = [...(await start(2, { session: 30000 })), new Probe('zookeeper', newName(), { target: proxy.address, session: 30000 })];
	await watchers[2].next('ready');
	const living = new Set(watchers.map((probe) => probe.member));
	const names = () => [...living].sort().join(' ');
	const agree = () => watchers.every((probe) => probe.members().join(' ') === names());
	await waitUntil(agree, 'the three gateways');
	const random = (limit) => Math.floor(Math.random() * limit);
	const former = [];
	for (let events = 0; events < 1000; ) {
		const before = new Set(living);
		const marks = watchers.map((probe) => probe.mark());
		const leaves = [...living].filter((name) => watchers.every((probe) => probe.member !== name) && random(2));
		const joins = Array.from({ length: 1 + random(40) }, () => (former.length > 0 && random(3) === 0 ? former.shift() : newName()));
		const flips = Array.from({ length: random(5) }, newName); // come and go: seen twice or not at all
		const wanted = [...joins.map((name) => `+${name}`), ...leaves.map((name) => `-${name}`)].sort();
		const burst = [...wanted].sort(() => random(2) - 0.5);
		for (const name of flips) burst.splice(random(burst.length), 0, `+${name}`, `-${name}`);
		events += burst.length;
		for (const name of joins) living.add(name);
		for (const name of leaves) living.delete(name);
		others.tell(`burst ${burst.join(' ')}`);
		if (random(3) === 0) proxy.cutAll(); // this gateway hears of a part only after it has connected again
		await others.answer('done');
		await waitUntil(agree, () => `${names()}\n${watchers.map((probe) => probe.members().join(' ')).join('\n')}`, 30000, 5);
		for (const [i, probe] of watchers.entries()) {
			const seen = [];
			let known = before;
			for (const text of probe.since(marks[i]).filter((line) => line.startsWith('members'))) {
				const now = new Set(text.split(' ').slice(1));
				seen.push(...[...now].filter((name) => !known.has(name)).map((name) => `+${name}`));
				seen.push(...[...known].filter((name) => !now.has(name)).map((name) => `-${name}`));
				known = now;
			}
			const lasting = seen.filter((event) => !flips.includes(event.slice(1)));
			assert.deepEqual(lasting.sort(), wanted, 'each join and leave, once');
			assert.ok(flips.every((name) => seen.filter((event) => event.slice(1) === name).length % 2 === 0));
		}
		former.push(...leaves);
	}
	const nodes = (await zookeeper.zookeeperCommand('dump')).match(/\/pg_sheet\/members\/\S+/g);
	assert.equal(nodes.map((node) => node.split('/').at(-1)).sort().join(' '), names(), 'the nodes are the members');
	const owners = await Promise.all(watchers.map((probe) => probe.owners(2000)));
	for (const answer of owners) assert.deepEqual(answer, owners[0]);
	await others.end();
	await stop(...watchers);
	// The end of a session may be lost with its connection; then it takes 30 s. The next test counts members.
	await waitUntil(async () => !(await zookeeper.zookeeperCommand('dump')).includes('/pg_sheet/members/'), 'all sessions to end', 60000, 50);
	await proxy.stop();
});

test('one holds a lock, the next is told who, and gets it with a higher epoch as soon as it is released', async () => {
	const [a, b, c] = await start(3);
	const before = await quietNodeCount();
	const sheet = newSheet();
	const first = await a.acquire(sheet);
	assert.ok(first > 0);
	b.tell(`acquire ${sheet}`);
	assert.equal((await b.next(`waiting ${sheet}`)).text, `waiting ${sheet} ${a.member}`);
	c.tell(`acquire ${sheet}`);
	assert.equal(
		(await c.next(`waiting ${sheet}`)).text,
		`waiting ${sheet} ${a.member}`,
		'the holder, not the one before in the queue',
	);
	const released = performance.now();
	a.tell(`release ${sheet}`);
	const second = await b.granted(sheet);
	assert.ok(performance.now() - released < sessionMs, 'by the release, not by the end of a session');
	assert.ok(second > first);
	assert.ok(!c.texts.some((text) => text.startsWith('granted')), 'first come, first served');
	c.tell(`release ${sheet}`);
	b.tell(`release ${sheet}`);
	const again = await a.acquire(sheet);
	assert.ok(again > second, 'epochs grow also when the node above was made anew');
	a.tell(`release ${sheet}`);
	await waitUntil(async () => (await nodeCount()) === before, 'no node left behind');
	await stop(a, b, c);
});

test('releasing while waiting, and asking again at once, leave nothing behind', async () => {
	const [a, b] = await start(2);
	const before = await quietNodeCount();
	const sheet = newSheet();
	await a.acquire(sheet);
	for (let i = 0; i < 20; i++) {
		b.tell(`acquire ${sheet}`);
		if (i % 3) await sleep(i % 3);
		b.tell(`release ${sheet}`);
	}
	b.tell(`acquire ${sheet}`);
	await b.next(`waiting ${sheet}`);
	const mark = b.mark();
	a.tell(`release ${sheet}`);
	await b.granted(sheet);
	assert.equal(b.since(mark).filter((text) => text.startsWith('granted')).length, 1);
	b.tell(`release ${sheet}`);
	await waitUntil(async () => (await nodeCount()) === before, 'no node left behind');
	await stop(a, b);
});

test('three contend for ten sheets: never two holders, epochs only grow', async () => {
	const group = await start(3);
	const before = await quietNodeCount();
	const sheets = Array.from({ length: 10 }, newSheet);
	const grants = new Map(sheets.map((sheet) => [sheet, []]));
	const holders = new Map();
	await Promise.all(
		group.flatMap((probe) =>
			sheets.map(async (sheet) => {
				for (let i = 0; i < 8; i++) {
					probe.tell(`acquire ${sheet}`);
					const epoch = await probe.grantNumber(i, sheet);
					assert.equal(holders.get(sheet), undefined, 'two holders');
					holders.set(sheet, probe);
					grants.get(sheet).push(epoch);
					await sleep(1);
					holders.delete(sheet);
					probe.tell(`release ${sheet}`);
				}
			}),
		),
	);
	for (const epochs of grants.values()) {
		assert.equal(epochs.length, 24);
		epochs.reduce((last, epoch) => (assert.ok(epoch > last, `${epochs}`), epoch), 0);
	}
	await waitUntil(async () => (await nodeCount()) === before, 'no node left behind');
	await stop(...group);
});

test('the lock of a killed gateway moves when its session ends', async () => {
	const [a, b] = await start(2);
	const sheet = newSheet();
	const first = await a.acquire(sheet);
	b.tell(`acquire ${sheet}`);
	await b.next(`waiting ${sheet}`);
	await a.kill();
	assert.ok((await b.granted(sheet, takeoverMs)) > first);
	await waitUntil(() => b.members().length === 1, 'the dead member to leave', takeoverMs);
	await b.close();
});

test('a gateway that is started again at once waits for its dead predecessor; a living one keeps its name', async () => {
	const [a] = await start(1);
	await a.kill();
	const again = new Probe('zookeeper', a.member);
	await again.next('ready', takeoverMs);
	const thief = new Probe('zookeeper', a.member);
	assert.match(
		(await thief.next('fatal', sessionMs + 2000 + 4000)).text,
		new RegExp(`the member name ${a.member} is in use`),
	);
	await thief.close();
	assert.deepEqual(again.members(), [a.member]);
	await again.close();
});

test('contact lost for less than the session: suspended, then resumed with every lock', async () => {
	const longSession = 60000; // ZooKeeper has to be back within two thirds of it, also where its disk and its processor are busy
	const [a] = await start(1, { session: longSession });
	const sheets = [newSheet(), newSheet()];
	for (const sheet of sheets) await a.acquire(sheet);
	const mark = a.mark();
	await zookeeper.zookeeper.kill();
	const cut = performance.now();
	const told = (await a.next('suspended')).at - cut;
	assert.ok(told < longSession / 3, `told after ${told} ms: by the end of the connection, not by silence`);
	await zookeeper.startZookeeper();
	await a.next('resumed', longSession);
	assert.deepEqual(a.since(mark), ['suspended', 'resumed']);
	assert.ok((await a.acquire(newSheet())) > 0);
	await a.close();
});

test('ZooKeeper is away for less than two thirds of the session: whatever it does with connections then, nothing is lost', async () => {
	const longSession = 9000; // given up at 7500: time is what is tested, so the machine may stand still for 2 s
	const away = async (mode) => {
		const proxy = await Proxy.start();
		const a = new Probe('zookeeper', newName(), { target: proxy.address, session: longSession });
		await a.next('ready');
		await a.acquire(newSheet());
		const mark = a.mark();
		proxy.mode = mode;
		proxy.cutAll();
		await sleep(longSession * 0.6);
		proxy.mode = 'pass';
		await a.next('resumed');
		const told = a.since(mark).filter((text) => !text.startsWith('members')); // the other one of this test may end first
		assert.deepEqual(told, ['suspended', 'resumed'], mode);
		assert.ok((await a.acquire(newSheet())) > 0);
		await a.close();
		await proxy.stop();
	};
	await Promise.all(['refuse', 'mute'].map(away));
});

test('a server that stops is left: the session goes on at another one, with its locks and watches, also when the former continues', async () => {
	const longSession = 6000;
	const proxies = [await Proxy.start(), await Proxy.start()];
	const hosts = proxies.map((proxy) => proxy.address).join();
	const [a, b] = await start(2, { target: hosts, session: longSession });
	const [sheet, removed] = [newSheet(), newSheet()];
	await a.acquire(sheet);
	await a.acquire(removed);
	b.tell(`acquire ${sheet}`);
	await b.next(`waiting ${sheet}`);
	const marks = [a, b].map((probe) => probe.mark());
	const [stopped, other] = proxies[0].links.size > 0 ? proxies : proxies.toReversed();
	const moves = stopped.links.size;
	const left = performance.now();
	stopped.stall();
	const resumed = () => [a, b].filter((probe, i) => probe.since(marks[i]).includes('resumed'));
	await waitUntil(() => resumed().length === moves && other.links.size === 2, 'the session to move', longSession);
	for (const probe of resumed()) assert.ok(probe.events.findLast(({ text }) => text === 'resumed').at - left < (longSession * 5) / 6);
	const former = [...stopped.links];
	stopped.proceed();
	await waitUntil(() => !former.some((link) => stopped.links.has(link)), 'the former connections to end');
	const c = new Probe('zookeeper', newName());
	await c.next('ready');
	await waitUntil(() => [a, b].every((probe) => probe.members().length === 3), 'all to see the third');
	await removeNode(await lockNode(removed));
	assert.match((await a.next(`lost ${removed}`)).text, /removed/);
	a.tell(`release ${sheet}`);
	await b.granted(sheet);
	assert.ok(![a, b].some((probe) => probe.texts.some((text) => /^lost/.test(text) && !text.startsWith(`lost ${removed} `))));
	await stop(a, b, c);
	for (const proxy of proxies) await proxy.stop();
});

test('one of four addresses is served: each session finds it', async () => {
	const target = `127.0.0.1:1,127.0.0.1:1,127.0.0.1:1,127.0.0.1:${zookeeper.zookeeperPort}`;
	await stop(...(await start(4, { target })));
});

test('no contact for five sixths of the session: every held sheet is lost, in time and once; then it serves again', async () => {
	const proxy = await Proxy.start();
	const [a] = await start(1, { target: proxy.address });
	const b = new Probe('zookeeper', newName());
	await b.next('ready');
	const sheets = [newSheet(), newSheet(), newSheet()];
	const epochs = [];
	for (const sheet of sheets) epochs.push(await a.acquire(sheet));
	for (const sheet of sheets) b.tell(`acquire ${sheet}`);
	await waitUntil(() => b.texts.filter((text) => text.startsWith('waiting')).length === 3, 'b to wait for all');
	const mark = a.mark();
	proxy.mode = 'hole';
	const cut = performance.now();
	const suspended = (await a.next('suspended')).at - cut;
	assert.ok(suspended < (sessionMs * 2) / 3, `suspended after ${suspended} ms`);
	const lost = (await a.next('lost')).at - cut;
	assert.ok(lost < sessionMs, `lost after ${lost} ms: before the server can end the session`);
	const grants = () => b.events.filter((event) => event.text.startsWith('granted '));
	await waitUntil(() => grants().length === 3, 'three grants', takeoverMs);
	for (const { text } of grants()) {
		const [, sheet, epoch] = text.split(' ').map(Number);
		assert.ok(epoch > epochs[sheets.indexOf(sheet)], text);
	}
	const firstLost = a.events.find((event) => event.text.startsWith('lost')).at;
	assert.ok(grants()[0].at > firstLost, 'the next owner comes after the former one has given up');
	proxy.mode = 'pass';
	proxy.cutAll();
	await a.next('ready', takeoverMs);
	assert.equal(a.since(mark).filter((text) => text.startsWith('lost')).length, 3);
	assert.ok(!a.since(mark).includes('resumed'));
	for (const sheet of sheets) b.tell(`release ${sheet}`);
	assert.ok((await a.acquire(sheets[0])) > epochs[0]);
	await waitUntil(() => a.members().length === 2 && b.members().length === 2, 'both members again', takeoverMs);
	await stop(a, b);
	await proxy.stop();
});

test('contact is back before the session has expired: the gateway ends its old session itself, and waits for nothing', async () => {
	const proxy = await Proxy.start();
	const [a] = await start(1, { target: proxy.address });
	const b = new Probe('zookeeper', newName());
	await b.next('ready');
	const sheet = newSheet();
	await a.acquire(sheet);
	b.tell(`acquire ${sheet}`);
	await b.next(`waiting ${sheet}`);
	proxy.mode = 'hole';
	await a.next(`lost ${sheet}`);
	proxy.mode = 'pass';
	proxy.cutAll();
	await b.granted(sheet);
	await a.next('ready', takeoverMs);
	assert.ok(!a.stderr.includes('in use'), a.stderr);
	await waitUntil(() => a.members().length === 2 && b.members().length === 2, 'both members again');
	await stop(a, b);
	await proxy.stop();
});

test('a paused gateway has lost its sheets when it wakes', async () => {
	const [a, b] = await start(2);
	const sheet = newSheet();
	const first = await a.acquire(sheet);
	b.tell(`acquire ${sheet}`);
	await b.next(`waiting ${sheet}`);
	const mark = a.mark();
	a.child.kill('SIGSTOP');
	const second = await b.granted(sheet, takeoverMs);
	assert.ok(second > first);
	a.child.kill('SIGCONT');
	await a.next(`lost ${sheet}`);
	await a.next('ready', takeoverMs);
	assert.deepEqual(
		a
			.since(mark)
			.filter((text) => !text.startsWith('members'))
			.map((text) => text.split(' ')[0]),
		['suspended', 'lost', 'ready'],
	);
	await stop(a, b);
});

test('a gateway whose loop hangs gives its sheets up although its session is kept alive by another thread', async () => {
	const [a, b] = await start(2);
	const sheet = newSheet();
	await a.acquire(sheet);
	b.tell(`acquire ${sheet}`);
	await b.next(`waiting ${sheet}`);
	a.tell(`hang ${3 * sessionMs}`);
	await b.granted(sheet, 2 * sessionMs);
	await a.next(`lost ${sheet}`, 4 * sessionMs);
	await a.next('ready', takeoverMs);
	await stop(a, b);
});

test('a lock node that an administrator removes is lost at once', async () => {
	const [a] = await start(1);
	const sheet = newSheet();
	const first = await a.acquire(sheet);
	await removeNode(await lockNode(sheet));
	assert.match((await a.next(`lost ${sheet}`)).text, /removed/);
	assert.ok((await a.acquire(sheet)) > first, 'the other node of the lock blocks nobody');
	await a.close();
});

test('a gateway that drains is left out of the ring, and keeps its locks until they are released', async () => {
	const [a, b] = await start(2);
	const sheet = newSheet();
	await a.acquire(sheet);
	a.tell('drain');
	await waitUntil(async () => (await a.owners(200)).every((name) => name === b.member), 'the ring without it');
	b.tell(`acquire ${sheet}`);
	await b.next(`waiting ${sheet}`);
	await sleep(300);
	assert.ok(!b.texts.some((text) => text.startsWith('granted')));
	a.tell(`release ${sheet}`);
	await b.granted(sheet);
	await stop(a, b);
});

test('a create whose answer is lost is found again, not made twice', async () => {
	const proxy = await Proxy.start();
	const [a] = await start(1, { target: proxy.address });
	const b = new Probe('zookeeper', newName());
	await b.next('ready');
	await waitUntil(() => [a, b].every((probe) => probe.members().length === 2), 'both members');
	const before = await quietNodeCount();
	for (let i = 0; i < 5; i++) {
		const sheet = newSheet();
		/* the parent exists, so that the one request is the lock's own node */
		await b.acquire(sheet);
		proxy.cutNext = true;
		a.tell(`acquire ${sheet}`);
		await a.next('suspended');
		await a.next('resumed', sessionMs);
		b.tell(`release ${sheet}`);
		const epoch = await a.granted(sheet);
		proxy.cutNext = true;
		a.tell(`release ${sheet}`);
		await a.next('resumed', sessionMs);
		assert.ok((await b.acquire(sheet)) > epoch, 'no orphan blocks the sheet');
		b.tell(`release ${sheet}`);
	}
	assert.equal(proxy.cuts, 10);
	await waitUntil(async () => (await nodeCount()) === before, 'no node left behind');
	await stop(a, b);
	await proxy.stop();
});

test('random cuts under load: never two holders, nothing left behind, no sheet stuck', async () => {
	const proxy = await Proxy.start();
	const [a] = await start(1, { target: proxy.address, session: 6000 });
	const b = new Probe('zookeeper', newName());
	await b.next('ready');
	await waitUntil(() => a.members().length === 2, 'both members');
	const before = await quietNodeCount();
	const sheets = Array.from({ length: 6 }, newSheet);
	const epochs = new Map(sheets.map((sheet) => [sheet, 0]));
	let running = true;
	const cutter = (async () => {
		while (running) {
			await sleep(30 + Math.random() * 150);
			if (Math.random() < 0.5) proxy.cutAll();
			else proxy.cutNext = true;
		}
	})();
	await Promise.all(
		[a, b].flatMap((probe) =>
			sheets.map(async (sheet) => {
				for (let i = 0; i < 12; i++) {
					probe.tell(`acquire ${sheet}`);
					const epoch = await probe.grantNumber(i, sheet);
					assert.ok(epoch > epochs.get(sheet), `sheet ${sheet}: ${epoch} after ${epochs.get(sheet)}`);
					epochs.set(sheet, epoch);
					probe.tell(`release ${sheet}`);
				}
			}),
		),
	);
	running = false;
	proxy.cutNext = false;
	await cutter;
	assert.ok(!a.texts.some((text) => text.startsWith('lost')), 'the session outlives every cut');
	// A create that the server executed late may have left a node of a's session: its next acquire removes it.
	for (const sheet of sheets) {
		a.tell(`acquire ${sheet}`);
		await waitUntil(
			() => a.texts.filter((text) => text.startsWith(`granted ${sheet} `)).length > 12,
			`a quiet grant of sheet ${sheet}`,
		);
		a.tell(`release ${sheet}`);
	}
	let now;
	await waitUntil(
		async () => (now = await nodeCount()) === before,
		() => `no node left behind: ${before}, now ${now}`,
	);
	await stop(a, b);
	await proxy.stop();
});

test('gateways wait for a ZooKeeper that is not there yet', async () => {
	await zookeeper.zookeeper.kill();
	const early = new Probe('zookeeper', newName(), { root: '/another/root' });
	await sleep(500);
	assert.deepEqual(early.texts, []);
	await zookeeper.startZookeeper();
	await early.next('ready', 30000);
	await early.close();
	const never = new Probe('zookeeper', newName(), { target: '127.0.0.1:1' });
	await sleep(100);
	await never.close();
});

/* start.test.mjs has the second gateway, which is refused. */
describe('one gateway, by PostgreSQL', () => {
	let cluster;
	const single = (member = newName(), name) =>
		new Probe('postgres', member, { target: cluster.conninfo('gateway', name) });

	before(async () => {
		cluster = await Cluster.start({ gateways: 0 });
	});
	after(() => cluster?.stop());

	test('it is the only member, and every lock is granted with its epoch', async () => {
		const a = single();
		await a.next('ready');
		assert.deepEqual(a.members(), [a.member]);
		assert.deepEqual(new Set(await a.owners(50)), new Set([a.member]));
		const epoch = await a.acquire(1);
		assert.equal(await a.acquire(2), epoch);
		a.tell('release 1');
		assert.equal(await a.acquire(1), epoch);
		await a.close();
		const b = single(a.member);
		await b.next('ready');
		assert.ok((await b.acquire(1)) > epoch, 'the next one has a higher epoch');
		await b.close();
	});

	test('the successor of a killed gateway needs no help', async () => {
		const a = single();
		await a.next('ready');
		const epoch = await a.acquire(1);
		const b = single(a.member);
		await sleep(1000);
		assert.deepEqual(b.texts, []);
		await a.kill();
		await b.next('ready');
		assert.ok((await b.acquire(1)) > epoch);
		await b.close();
	});

	test('a broken session: suspended, every held sheet lost, and ready with a higher epoch', async () => {
		const a = single();
		await a.next('ready');
		const epoch = await a.acquire(1);
		await a.acquire(2);
		const mark = a.mark();
		await cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pg_sheet coordinator'");
		await a.next('suspended');
		a.tell('acquire 3');
		assert.ok((await a.granted(3)) > epoch, 'what was asked for in between is granted then');
		const told = a.since(mark);
		assert.deepEqual(
			told
				.filter((text) => text.startsWith('lost'))
				.map((text) => text.split(' ')[1])
				.sort(),
			['1', '2'],
		);
		assert.deepEqual(
			told.map((text) => text.split(' ')[0]),
			['suspended', 'lost', 'lost', 'ready', 'granted'],
		);
		await a.close();
	});

	test('a database without the extension is refused at once', async () => {
		await cluster.psql('CREATE DATABASE bare');
		const a = single(newName(), 'bare');
		assert.match((await a.next('fatal')).text, /pg_sheet/);
		await a.close();
	});

	test('a server that is not there is waited for', async () => {
		await cluster.stopPostgres('fast');
		const a = single();
		await sleep(1000);
		assert.deepEqual(a.texts, []);
		await cluster.startPostgres();
		await a.next('ready', 10000);
		await a.close();
	});
});
