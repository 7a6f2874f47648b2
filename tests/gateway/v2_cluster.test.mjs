/* Protocol v2 with two gateways: who asks the wrong one is sent on, and nothing is lost or doubled when the owner dies. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { newSheet, register, request } from '../lib/client.mjs';
import { RawClient, sheetClient } from '../lib/v2.mjs';

let cluster;
let anna;

before(async () => {
	cluster = await Cluster.start({ gateways: 2, coordinator: 'zookeeper', sessionMs: 2000 });
	anna = await register(cluster.gateways[0]);
});
after(() => cluster?.stop());

const route = async (gateway, fid) =>
	(await request(gateway, 'GET', `/v2/sheets/${fid}/route`, { headers: { Authorization: `Bearer ${anna.token}` } })).json;
const other = (gateway) => cluster.gateways.find((candidate) => candidate !== gateway);

/** The gateway that both say owns the sheet. */
const ownerOf = (fid) =>
	waitUntil(async () => {
		const said = await Promise.all(cluster.gateways.map(async (gateway) => (await route(gateway, fid)).ws));
		return said[0] === said[1] && cluster.gateways.find(({ host }) => said[0] === `ws://${host}/sheetws`);
	}, 'the gateways to agree');

test('the wrong gateway names the right one; when that is killed every operation lands once, at the other', async () => {
	const fid = await newSheet(cluster.gateways[0], anna);
	const owner = await ownerOf(fid);
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
			await new Promise((resolve) => setTimeout(resolve, 1));
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
});
