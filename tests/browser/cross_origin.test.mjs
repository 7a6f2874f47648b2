/*
 * cross_origin.test.mjs - a page on an origin of its own, which allowed-origins names, with two gateways: whichever it
 * asks serves every sheet, since a browser that is redirected there forgets who asks. And a published view in its frame.
 */
import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';
import { Cluster, freePort, waitUntil } from '../lib/cluster.mjs';
import { newSheet, post, register } from '../lib/client.mjs';
import { startBrowser } from './page.mjs';

test('a page of another origin reads, saves and watches sheets of both gateways through one', { timeout: 120000 }, async (t) => {
	const port = await freePort();
	const origin = `http://127.0.0.1:${port}`;
	const pages = http.createServer((_request, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>')).listen(port, '127.0.0.1');
	t.after(() => pages.close());
	const cluster = await Cluster.start({ gateways: 2, coordinator: 'zookeeper', gatewayFlags: { 'allowed-origins': origin } });
	t.after(() => cluster.stop());
	const [first] = cluster.gateways;
	const user = await register(first);
	const sheets = [];
	const redirected = [];
	for (let i = 0; i < 64 && !(i >= 8 && redirected.includes(true) && redirected.includes(false)); i++) {
		const fid = await newSheet(first, user);
		sheets.push(fid);
		redirected.push((await post(first, '/getsheet', { token: user.token, fid })).status === 307);
	}
	assert.ok(redirected.includes(true) && redirected.includes(false), 'each gateway has some of the sheets');

	const browser = await startBrowser();
	t.after(() => browser.close());
	const page = await browser.newPage();
	await page.goto(origin);
	const seen = await page.evaluate(
		async ({ url, token, fids }) => {
			const ask = async (path, fields) => {
				const answer = await fetch(url + path, {
					method: 'POST',
					headers: { 'content-type': 'application/json' },
					credentials: 'include',
					body: JSON.stringify({ token, ...fields }),
				});
				return (await answer.json()).msg;
			};
			const cells = async (fid) => {
				const answer = await fetch(`${url}/v2/sheets/${fid}/cells?range=A1:B2`, { headers: { authorization: `Bearer ${token}` } });
				return answer.status;
			};
			const all = [];
			for (const fid of fids) all.push([await ask('/getsheet', { fid }), await cells(fid), await ask('/commitsheet', { fid }), await ask('/deletesheet', { fid })]);
			return all;
		},
		{ url: first.url, token: user.token, fids: sheets },
	);
	for (const answers of seen) assert.deepEqual(answers, [12, 200, 28, 16]);

	const fid = await newSheet(first, user, { name: 'Public' });
	await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'before')`);
	const { published } = (await post(first, `/v2/sheets/${fid}/links`, { token: user.token, embed: origin })).json;
	const [, second] = cluster.gateways;
	const embed = (where) =>
		where.evaluate((address) => {
			const frame = Object.assign(document.createElement('iframe'), { src: address, width: 600, height: 300 });
			document.body.append(frame);
			return new Promise((loaded) => frame.addEventListener('load', () => loaded()));
		}, second.url + published);
	const refusals = [];
	page.on('console', (message) => message.type() === 'error' && refusals.push(message.text()));
	await embed(page);
	const frame = page.frames().find((one) => one.url().includes(published));
	assert.equal(await frame.locator('tbody td').first().textContent(), 'before');
	assert.equal(await frame.title(), 'Public');
	const colour = (where) => where.locator('thead th').first().evaluate((cell) => getComputedStyle(cell).backgroundColor);
	assert.equal(await colour(frame), 'rgb(241, 244, 243)', 'the policy permits the style sheet');
	await cluster.psql(`SELECT sheet.set(${fid}, 'B2', '<b>after</b>'), sheet.rename(${fid}, 'Renamed')`);
	await frame.locator('td', { hasText: '<b>after</b>' }).waitFor();
	await frame.locator('h1', { hasText: 'Renamed' }).waitFor();
	assert.equal(await frame.locator('tbody td b').count(), 0);
	await page.emulateMedia({ colorScheme: 'dark' });
	assert.equal(await colour(frame), 'rgb(34, 40, 42)');
	assert.equal((await page.evaluate((address) => fetch(address).then((answer) => answer.text()), `${second.url}${published}.csv`)), 'before,\r\n,<b>after</b>\r\n');
	await cluster.psql('SELECT sheet.revoke_link(link_id) FROM sheet.link WHERE embed IS NOT NULL');
	await frame.locator('h1', { hasText: 'Not found' }).waitFor();
	assert.equal(await frame.locator('td').count(), 0);
	assert.deepEqual(refusals.filter((text) => !/404/.test(text)), []);

	const stranger = await browser.newPage();
	await stranger.goto(`http://localhost:${port}`);
	const refused = await stranger.evaluate(
		({ url }) => fetch(`${url}/healthz`).then(() => false, () => true),
		{ url: first.url },
	);
	assert.ok(refused, 'other pages may read nothing');
	const another = (await post(first, `/v2/sheets/${fid}/links`, { token: user.token, embed: origin })).json.published;
	const errors = [];
	stranger.on('console', (message) => errors.push(message.text()));
	await stranger.evaluate((address) => document.body.append(Object.assign(document.createElement('iframe'), { src: address })), first.url + another);
	await waitUntil(() => errors.some((text) => text.includes('frame-ancestors')), 'the refusal of the frame');
});
