/*
 * two_people.mjs - what tests of protocol v2 begin with: a cluster, Anna and Ben, and a new sheet of Anna's for each
 * test. Clients and sessions that a test has opened are closed after it. Importing this file starts the cluster.
 */
import { after, afterEach, before, beforeEach } from 'node:test';
import { newSheet, register } from './client.mjs';
import { Cluster, waitUntil } from './cluster.mjs';
import { RawClient, gridOf, sheetClient } from './v2.mjs';

export let cluster;
export let gateway;
export let anna;
export let ben;
export let fid;
let lastClient = 0;
const opened = [];
const sessions = [];

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
beforeEach(async () => {
	fid = await newSheet(gateway, anna);
});
afterEach(async () => {
	for (const client of opened.splice(0)) (client.terminate ?? client.close).call(client);
	for (const session of sessions.splice(0)) await session.close();
});

/** Closes the client after the test. */
export const keep = (client) => (opened.push(client), client);
/** The number of a client that has not been used. */
export const newClient = () => ++lastClient;
/** The number that was used last. */
export const usedClient = () => lastClient;
/** A client that shows each message. */
export const raw = async (user, options) => keep(await RawClient.open(gateway, user, fid, { client: newClient(), ...options }));
/** A client that keeps the whole sheet. */
export const whole = async (user, options) => {
	const client = keep(sheetClient(gateway, user, fid, options));
	await waitUntil(() => client.hello, 'hello');
	return client;
};
/** Statements of a transaction that stays open, and holds the sheet. */
export const hold = async (sql) => {
	const session = cluster.psqlSession();
	sessions.push(session);
	await session.query(`BEGIN; ${sql}`);
	return session;
};

export const set = (row, col, content) => ({ row, col, content });
export const change = (kind, at, n) => ({ kind, at, n });
export const sorted = (cells) => cells.sort(([a], [b]) => (a < b ? -1 : 1));
/** The cells of the sheet as SQL sees them. */
export const sqlGrid = async () =>
	sorted(
		(await cluster.rows(`SELECT "row", col, content FROM sheet.range(${fid}) WHERE content <> ''`)).map(({ row, col, content }) => [`${row},${col}`, content]),
	);
/** Waits until all clients show the cells that SQL sees, and returns these. */
export const agree = async (clients) => {
	const truth = await sqlGrid();
	await waitUntil(
		() => clients.every((client) => JSON.stringify(gridOf(client)) === JSON.stringify(truth)),
		() => `all to show ${JSON.stringify(truth)}: ${clients.map((client) => JSON.stringify(gridOf(client)))}`,
	);
	return truth;
};
