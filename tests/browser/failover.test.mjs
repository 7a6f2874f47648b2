/*
 * failover.test.mjs - two gateways with ZooKeeper: people at different gateways meet in one sheet, and when the gateway
 * that serves it is killed, the open pages go on with the other by themselves, also the page that came from the dead one.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { request } from '../lib/client.mjs';
import { Person, startBrowser } from './page.mjs';

test('open pages survive the death of one of two gateways', { timeout: 180000 }, async (t) => {
	const cluster = await Cluster.start({ gateways: 2, coordinator: 'zookeeper' });
	t.after(() => cluster.stop());
	const [first, second] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const ann = await Person.arrive(browser, first, 'ann');
	const bob = await Person.arrive(browser, second, 'bob');
	await ann.register();
	await bob.register();
	const id = await ann.newSheet('Shared');
	await ann.share('bob', 'editor');
	await bob.open(id);
	await ann.type('A1', 'before');
	await bob.untilShows('A1', 'before');
	await ann.untilSaved();

	const token = await ann.page.evaluate(() => JSON.parse(sessionStorage.getItem('pg_sheet.session')).token);
	const route = await request(first, 'GET', `/v2/sheets/${id}/route`, { headers: { authorization: `Bearer ${token}` } });
	assert.equal(route.json.members.length, 2, route.text);
	const owner = cluster.gateways.find(({ url }) => url === route.json.http);
	await owner.kill();
	await bob.type('A2', 'after');
	await Promise.all([ann.untilSaved(60000), bob.untilSaved(60000)]);
	await Promise.all([ann, bob].map((person) => person.untilShows('A2', 'after')));
	assert.deepEqual(await ann.cells('A1', 'A2'), ['before', 'after']);

	// One that stands still is noticed, and left, too. It comes back as if nothing had happened.
	await owner.start();
	const other = cluster.gateways.find((gateway) => gateway !== owner);
	const servedBy = async (gateway) => (await gateway.metrics()).pg_sheet_sessions;
	const still = await waitUntil(async () => ((await servedBy(owner)) === 2 ? owner : (await servedBy(other)) === 2 && other), 'both pages at one gateway', 60000, 100);
	still.service.signal('SIGSTOP');
	try {
		await ann.type('A3', 'while it stands');
		await ann.page.getByText(/does not answer/).first().waitFor({ timeout: 30000 });
		await ann.untilSaved(60000);
		await bob.untilShows('A3', 'while it stands', 60000);
	} finally {
		still.service.signal('SIGCONT');
	}
	assert.deepEqual([...ann.problems, ...bob.problems], []);
});
