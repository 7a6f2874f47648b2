/*
 * cross_origin.test.mjs - a page on an origin of its own, which allowed-origins names, with two gateways: whichever it
 * asks serves every sheet, since a browser that is redirected there forgets who asks.
 */
import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';
import { Cluster, freePort } from '../lib/cluster.mjs';
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
	const stranger = await browser.newPage();
	await stranger.goto(`http://localhost:${port}`);
	const refused = await stranger.evaluate(
		({ url }) => fetch(`${url}/healthz`).then(() => false, () => true),
		{ url: first.url },
	);
	assert.ok(refused, 'other pages may read nothing');
});
