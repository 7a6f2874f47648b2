/* The machine of a gateway vanishes, so that nothing ends its connections: while its session lasts, the others send nobody there. */
import { after, test } from 'node:test';
import assert from 'node:assert/strict';
import { runInNamespace } from '../lib/networks.mjs';

const refusal = await runInNamespace(import.meta.url);
const { newSheet, register, request } = await import('../lib/client.mjs');
const { Ensemble } = await import('../lib/ensemble.mjs');
const { waitUntil } = await import('../lib/processes.mjs');

const sessionMs = 20000;
let cluster;
after(() => cluster?.stop());

test('a machine that vanished is noticed before the session of its gateway ends', { skip: refusal }, async () => {
	cluster = await Ensemble.start({ sessionMs });
	const [gone, other] = cluster.gateways;
	const anna = await register(other);
	let fid;
	const ask = () => request(other, 'GET', `/sheetws?token=${anna.token}&fid=${fid}&query=1`);
	const isThere = async () => {
		fid = await newSheet(other, anna);
		return (await ask()).text.includes(gone.host);
	};
	await waitUntil(isThere, 'a sheet of the gateway', 20000);
	const connections = async () => (await gone.metrics()).pg_sheet_connections;
	await waitUntil(async () => (await connections()) > 1, 'the connections of both others', 20000);
	const began = performance.now();
	for (const node of Object.keys(cluster.network.addresses)) if (node !== gone.network) cluster.network.part(gone.network, node);
	const answer = await waitUntil(async () => {
		const { status, headers, text } = await ask();
		return status !== 200 && { status, headers, text };
	}, 'another answer');
	assert.ok(performance.now() - began < sessionMs / 2, `${performance.now() - began} ms`);
	assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '1']);
	assert.match(answer.text, /accepts no connections/);
});
