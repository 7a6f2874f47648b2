/* Two gateways and ZooKeeper: one owner for every sheet, redirects, and taking over without losing or doubling an edit. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, sleep, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, getSheet, login, newSheet, post, register, request } from '../lib/client.mjs';
import { RawClient, sheetClient } from '../lib/v2.mjs';
import { Writer, checkNothingLost } from '../lib/writer.mjs';

const sessionMs = 2000;
/* A process of a test on a busy machine may wait this long for a core. */
const schedulingMs = 1000;
/* Sheets of a dead gateway are refused for at most its session and a second: ZooKeeper ends sessions at ticks of 0.5 s. */
const takeoverMs = sessionMs + 1000 + schedulingMs;
/* Sheets of a gateway that leaves. */
const leaveMs = 300 + schedulingMs;
const patienceMs = 15000;
let cluster;
let anna;
let ben;
const sheets = [];

before(async () => {
	cluster = await Cluster.start({
		gateways: 2,
		coordinator: 'zookeeper',
		sessionMs,
		postgres: { log_line_prefix: '%m [%p] %e ' },
	});
	anna = await register(cluster.gateways[0]);
	ben = await register(cluster.gateways[1]);
	for (let i = 0; i < 40; i++) sheets.push(await newSheet(cluster.gateways[i % 2], anna));
	await waitUntil(everybodyAgrees, 'the first ring', 10000);
});
after(() => cluster?.stop());

const living = () => cluster.gateways.filter((gateway) => gateway.service.alive);
const other = (gateway) => cluster.gateways.find((candidate) => candidate !== gateway);
const window = (gateway, fid) => request(gateway, 'GET', `/v2/sheets/${fid}/cells?range=A1:B2&token=${anna.token}`);
const query = async (gateway, fid, user = anna) =>
	(await request(gateway, 'GET', `/sheetws?token=${user.token}&fid=${fid}&query=1`)).json;

/** Each gateway's own answer: the sheets that it says are its own. */
async function claimsOf(gateway) {
	const answers = await Promise.all(sheets.map((fid) => query(gateway, fid)));
	return sheets.filter((_, i) => answers[i].msg === 20);
}

async function everybodyAgrees() {
	const claims = await Promise.all(living().map(claimsOf));
	return (
		claims.flat().length === sheets.length &&
		new Set(claims.flat()).size === sheets.length &&
		claims.every((own) => own.length > 0 || living().length > 1)
	);
}

/** The owner, which every living gateway must name alike. */
async function ownerOf(fid) {
	const hosts = await Promise.all(
		living().map(async (gateway) => {
			const answer = await query(gateway, fid);
			return answer.msg === 20 ? gateway.host : new URL(answer.data).host;
		}),
	);
	assert.equal(new Set(hosts).size, 1, `sheet ${fid}: ${hosts}`);
	return cluster.gateways.find((gateway) => gateway.host === hosts[0]);
}

test('both gateways are members, and each owns a share of the sheets', async () => {
	const dump = await cluster.zookeeperCommand('dump');
	for (const gateway of cluster.gateways)
		assert.ok(dump.includes(gateway.host), `${gateway.host} has an ephemeral node\n${dump}`);
	const [a, b] = await Promise.all(cluster.gateways.map(claimsOf));
	assert.equal(a.length + b.length, sheets.length);
	assert.equal(new Set([...a, ...b]).size, sheets.length);
	assert.ok(a.length >= 8 && b.length >= 8, `${a.length} and ${b.length}`);
});

test('a token of one gateway is good at the other', async () => {
	for (const gateway of cluster.gateways)
		assert.equal((await call(gateway, '/getuser', { token: anna.token }, 10)).uid, anna.uid);
});

test('a password that is changed at one gateway revokes tokens and closes editors at both, at once', async () => {
	const user = await register(cluster.gateways[0]);
	const editors = [];
	for (const gateway of cluster.gateways) {
		const [fid] = await claimsOf(gateway);
		editors.push(await Editor.open(gateway, user, fid));
		await call(gateway, '/getuser', { token: user.token }, 10); // so that it remembers the account
	}
	await call(cluster.gateways[1], '/modifyuserauth', { token: user.token, password: 'another one' }, 8);
	for (const editor of editors) assert.equal((await editor.waitClosed()).code, 4401);
	for (const gateway of cluster.gateways) await call(gateway, '/getuser', { token: user.token }, 1);
});

test('HTTP for a sheet owned elsewhere is 307 to the same path at the owner', async () => {
	for (const fid of sheets.slice(0, 6)) {
		const owner = await ownerOf(fid);
		const elsewhere = other(owner);
		for (const [route, body] of [
			['/getsheet', {}],
			['/commitsheet', {}],
			['/rollbacksheet', { cid: 1 }],
			['/deletesheet', {}],
		]) {
			const answer = await post(elsewhere, route, { token: anna.token, fid, ...body });
			assert.equal(answer.status, 307, `${route}: ${answer.status} ${answer.text}`);
			assert.equal(answer.headers.location, `http://${owner.host}${route}`);
		}
		const elsewhereCells = await window(elsewhere, fid);
		assert.equal(elsewhereCells.status, 307);
		assert.equal(elsewhereCells.headers.location, `http://${owner.host}/v2/sheets/${fid}/cells?range=A1:B2&token=${anna.token}`);
		const headers = { authorization: `Bearer ${anna.token}` };
		assert.equal((await request(elsewhere, 'GET', `/v2/sheets/${fid}/cells?range=A1:B2`, { headers })).status, 200);
		assert.equal((await window(owner, fid)).status, 200);
		assert.equal((await getSheet(owner, anna, fid)).fid, fid);
		const followed = await fetch(`${elsewhere.url}/getsheet`, {
			method: 'POST',
			body: JSON.stringify({ token: anna.token, fid }),
		});
		assert.equal((await followed.json()).msg, 12, 'method and body survive');
	}
});

test('query=1 and a wrong-node upgrade answer msg 19 with the address', async () => {
	for (const fid of sheets.slice(0, 6)) {
		const owner = await ownerOf(fid);
		const elsewhere = other(owner);
		const answer = await request(elsewhere, 'GET', `/sheetws?token=${anna.token}&fid=${fid}&query=1`);
		assert.equal(answer.status, 200);
		assert.deepEqual(answer.json, {
			success: false,
			msg: 19,
			data: `ws://${owner.host}/sheetws?token=${anna.token}&fid=${fid}`,
		});
		assert.ok(answer.text.includes(`ws://${owner.host}/sheetws?token=`), 'the address is not escaped');
		const editor = new Editor(elsewhere, anna, fid);
		const error = await editor.opened.then(
			() => null,
			(problem) => problem,
		);
		assert.equal(error?.json?.msg, 19, error?.message);
		await (await Editor.open(owner, anna, fid)).close();
	}
});

test("the owner holds the sheet's lock in ZooKeeper while anyone edits, and only then", async () => {
	const [fid] = sheets;
	const locks = async () =>
		(await cluster.zookeeperCommand('dump')).split('\n').filter((line) => line.includes('__lock__'));
	await waitUntil(async () => (await locks()).length === 0, 'no lock at rest', 10000, 100);
	await query(await ownerOf(fid), fid);
	assert.equal((await locks()).length, 0, 'asking takes no lock');
	const [a, b] = [await Editor.open(await ownerOf(fid), anna, fid), await Editor.open(await ownerOf(fid), ben, fid)];
	await a.settle();
	assert.equal((await locks()).length, 1);
	await a.close();
	await b.settle();
	assert.equal((await locks()).length, 1);
	await b.close();
	await waitUntil(async () => (await locks()).length === 0, 'the lock to be released', 10000, 50);
});

test('each edit carries an epoch, and epochs grow', async () => {
	const [fid] = sheets;
	const epochs = [];
	for (let i = 0; i < 2; i++) {
		const editor = await Editor.open(await ownerOf(fid), anna, fid);
		editor.modify(0, 0, `epoch ${i}`);
		await editor.nextModify(0, 0, `epoch ${i}`);
		epochs.push(
			Number(
				await cluster.psql(`SELECT epoch FROM sheet.log_batch WHERE sheet_id = ${fid} ORDER BY first_seq DESC LIMIT 1`),
			),
		);
		await editor.close();
		await waitUntil(
			async () => !(await cluster.zookeeperCommand('dump')).includes('__lock__'),
			'the lock to be released',
		);
	}
	assert.ok(epochs[0] > 0 && epochs[1] > epochs[0], `${epochs}`);
});

test('kill -9 of one gateway: the other serves its sheets, with every acknowledged edit, within the session time', async () => {
	const fid = sheets[1];
	const owner = await ownerOf(fid);
	const heir = other(owner);
	let choice = owner;
	const writers = [new Writer('k0', 0, anna, fid, () => choice), new Writer('k1', 1, ben, fid, () => choice)];
	try {
		for (const writer of writers) await writer.progress(100);
		await owner.kill();
		const killed = Date.now();
		choice = heir;
		for (const writer of writers) await writer.progress(1, takeoverMs);
		const took = Date.now() - killed;
		assert.ok(took <= takeoverMs, `${took} ms`);
		await waitUntil(everybodyAgrees, 'all sheets to be served by the other', takeoverMs - took, 50);
		for (const writer of writers) await writer.progress(100);
	} finally {
		await Promise.all(writers.map((writer) => writer.stop()));
	}
	await checkNothingLost(cluster, fid, writers);
	assert.equal((await call(heir, '/getuser', { token: ben.token }, 10)).uid, ben.uid);
	await login(heir, anna);

	await owner.start();
	await waitUntil(
		async () =>
			(await claimsOf(owner)).length > 0 &&
			(await everybodyAgrees()) &&
			(await Promise.all(sheets.map((sheet) => query(heir, sheet)))).every(({ msg }) => msg === 19 || msg === 20),
		'the gateway to be a member again, and to be reached',
		patienceMs,
		50,
	);
});

test('a paused owner never writes after its successor, and shows no cells from before it', async () => {
	for (const fid of sheets.slice(2, 4)) {
		const owner = await ownerOf(fid);
		const heir = other(owner);
		const before_ = await Editor.open(owner, anna, fid);
		before_.modify(0, 0, 'before the pause');
		await before_.nextModify(0, 0, 'before the pause');
		for (let i = 0; i < 2; i++) assert.equal((await window(owner, fid)).json.cells[0][2], 'before the pause');
		let successor;
		let asked;
		try {
			owner.service.signal('SIGSTOP');
			for (let i = 0; i < 20; i++) before_.modify(0, 0, `stale ${i}`); // Waits in the socket of the paused one.
			successor = await waitUntil(
				() => Editor.open(heir, ben, fid, { timeoutMs: 1000 }).catch(() => null),
				'the other to serve the sheet',
				takeoverMs,
				50,
			);
			assert.equal(successor.cells.get('0,0'), 'before the pause');
			successor.modify(0, 0, 'by the successor');
			await successor.nextModify(0, 0, 'by the successor');
			asked = window(owner, fid); // Waits in a socket, too.
		} finally {
			owner.service.signal('SIGCONT');
		}
		const late = await asked;
		assert.ok(late.status === 307 || late.json.cells[0][2] === 'by the successor', `${late.status} ${late.text}`);
		await before_.waitClosed(15000);
		assert.ok(!before_.modifies().some(({ content }) => content.startsWith('stale')), 'nothing stale was acknowledged');
		assert.equal(
			await cluster.psql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND new LIKE 'stale%'`),
			'0',
			'nothing stale is in the log',
		);
		successor.modify(1, 1, 'goes on');
		await successor.nextModify(1, 1, 'goes on');
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1')`), 'by the successor');
		await successor.close();
		assert.ok(owner.service.alive, 'the paused one lives on');
		await waitUntil(
			async () => (await claimsOf(owner)).length > 0 && everybodyAgrees(),
			'the paused one to be a member again',
			15000,
			50,
		);
	}
});

test('an older epoch is refused by the database with SF001', async () => {
	const fid = sheets[5];
	const editor = await Editor.open(await ownerOf(fid), anna, fid);
	editor.modify(0, 0, 'mine');
	await editor.nextModify(0, 0, 'mine');
	const epoch = Number(await cluster.psql(`SELECT epoch FROM sheet.ownership WHERE sheet_id = ${fid}`));
	const session = cluster.psqlSession();
	try {
		await assert.rejects(session.query(`SELECT sheet.claim(${fid}, ${epoch - 1}, 'a ghost')`), /SF001/);
		// Somebody newer claims the sheet behind the owner's back: the owner's next edit must not land.
		await session.query(`SELECT sheet.claim(${fid}, ${epoch + 1000}, 'a successor')`);
		editor.modify(0, 0, 'too late');
		await editor.waitClosed(10000);
		assert.ok(!editor.modifies().some(({ content }) => content === 'too late'));
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1')`), 'mine');
		assert.match(fs.readFileSync(path.join(cluster.directory, 'log', 'postgres.log'), 'utf8'), /SF001/);
	} finally {
		await session.close();
	}
});

test('ZooKeeper is restarted: editing goes on, nothing is lost', async () => {
	const fid = sheets[6];
	const writer = new Writer(
		'z',
		0,
		anna,
		fid,
		() => cluster.gateways[writer?.connections % 2 === 0 ? 0 : 1] ?? cluster.gateways[0],
	);
	try {
		const owner = await ownerOf(fid);
		writer.choose = () => owner;
		await writer.progress(50);
		await cluster.zookeeper.stop('SIGKILL');
		await sleep(300);
		await cluster.startZookeeper();
		await writer.progress(100, 30000);
	} finally {
		await writer.stop();
	}
	await checkNothingLost(cluster, fid, [writer]);
	await waitUntil(everybodyAgrees, 'the ring again', 15000, 100);
});

test('ZooKeeper is stopped for five seconds: editing stops in time, goes on afterwards, and nothing is lost', async () => {
	const fid = sheets[7];
	const owner = await ownerOf(fid);
	let hosts = 0;
	const writer = new Writer('s', 0, anna, fid, () => cluster.gateways[hosts++ % cluster.gateways.length]);
	try {
		await writer.progress(50);
		const { editor } = writer;
		cluster.zookeeper.signal('SIGSTOP');
		const until = Date.now() + 5000; // more than twice the session
		await waitUntil(async () => (await request(owner, 'GET', '/readyz')).status === 503, 'the gateway to notice');
		await editor.waitClosed(4000); // the lock is given up: what was under way is decided
		await sleep(100); // what was acknowledged before has been read
		const told = writer.echoed.size;
		await sleep(until - Date.now());
		assert.equal(writer.echoed.size, told, 'nothing is acknowledged without the lock');
		cluster.zookeeper.signal('SIGCONT');
		await writer.progress(100, 30000);
	} finally {
		cluster.zookeeper.signal('SIGCONT');
		await writer.stop();
	}
	await checkNothingLost(cluster, fid, [writer]);
	await waitUntil(everybodyAgrees, 'the ring again', 15000, 100);
});

test('protocol v2: the wrong gateway names the right one; when that is killed every operation lands once, at the other', async () => {
	const fid = await newSheet(cluster.gateways[0], anna);
	const owner = await waitUntil(() => ownerOf(fid), 'the gateways to agree');
	const raw = new RawClient(other(owner), fid);
	await raw.opened;
	raw.send({ t: 'hello', v: 2, token: anna.token, client: 0, acked: 0, since: 0 });
	const { code, reason } = await raw.waitClosed();
	assert.deepEqual([code, JSON.parse(reason)], [4307, { ws: `ws://${owner.host}/sheetws` }]);

	const client = sheetClient(other(owner), anna, fid, { encoding: 'binary' });
	const results = [];
	let sending = true;
	const writer = (async () => {
		for (let n = 1; sending; n++) {
			results.push(client.operate([{ row: 0, col: 0, content: `${n}` }]));
			await sleep(1);
		}
	})();
	await waitUntil(() => client.acked > 50, 'operations at the owner');
	const epoch = client.hello.epoch;
	await owner.kill();
	const acked = client.acked;
	await waitUntil(() => client.acked > acked + 50, 'operations at the other gateway', 30000);
	assert.ok(client.hello.epoch > epoch);
	sending = false;
	await writer;
	await Promise.all(results);
	client.close();
	const log = await cluster.rows(`SELECT new FROM sheet.log_edits(${fid}) WHERE kind = 'set' ORDER BY seq`);
	assert.deepEqual(
		log.map((row) => Number(row.new)),
		results.map((_, i) => i + 1),
	);
	await owner.start();
	await waitUntil(everybodyAgrees, 'the ring again', patienceMs, 50);
});

test('a gateway that is stopped leaves the ring at once', async () => {
	const [first, second] = cluster.gateways;
	const [fid] = await claimsOf(second);
	const stopped = second.stop();
	await waitUntil(async () => (await query(first, fid)).msg === 20, 'the other to own its sheet', leaveMs, 5);
	assert.equal((await claimsOf(first)).length, sheets.length);
	assert.equal((await stopped).code, 0);
});
