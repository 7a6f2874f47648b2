/*
 * convergence.test.mjs - several people with the page's session, and SQL, edit a sheet at random while connections break: all
 * grids end with the cells of the database, which are those of its log.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { roundsToRun, waitUntil } from '../lib/processes.mjs';
import { Person, randomOf } from '../lib/sessions.mjs';
import { anna, ben, cluster, fid, gateway, sorted, sqlGrid } from '../lib/two_people.mjs';

const sql = (random, round, n) =>
	cluster.psql(
		[
			`SELECT count(sheet.set(${fid}, i / 5, i % 5, 'sql' || ${round} || 'x' || ${n} || 'x' || i)) FROM generate_series(0, 24) i`,
			`SELECT sheet.insert_rows(${fid}, ${random(6)}, 1)`,
			`SELECT sheet.set(${fid}, ${random(6)}, ${random(6)}, 'sql${round}x${n}'), sheet.delete_columns(${fid}, ${random(4)}, 1), sheet.insert_columns(${fid}, ${random(4)}, 2)`,
		][random(3)],
	);

/** Random actions with pauses, and connections that are cut. Resolves to the people, who are connected and quiet. */
async function edit(random, round) {
	const people = ['a', 'b', 'c', 'd'].map((name, i) => {
		const person = { sockets: [] };
		const { uid, token } = i % 2 === 0 ? anna : ben;
		const open = (url, protocol) => {
			const socket = new WebSocket(url, protocol).on('error', () => {});
			person.sockets.push(socket);
			return socket;
		};
		return Object.assign(person, { person: new Person({ name, uid, sheet: fid, url: `ws://${gateway.host}/sheetws`, token, open, random }) });
	});
	let statements = Promise.resolve();
	for (let step = 0; step < 400; step++) {
		const { person, sockets } = people[random(people.length)];
		person.act(10, 8);
		if (step % 40 === 20) sockets.at(-1)?.terminate();
		if (step % 50 === 30) statements = statements.then(() => sql(random, round, step));
		if (random(4) === 0) person.frame();
		if (random(3) === 0) await sleep(random(12));
	}
	await statements;
	return people.map(({ person }) => person);
}

test('all grids end with the cells of the database and of its log', { timeout: 300000 }, async (t) => {
	const rounds = roundsToRun(3, 30);
	for (let round = 0; round < rounds; round++) {
		const seed = Number(process.env.PG_SHEET_SEED ?? 1) + round;
		await cluster.psql(`DO $$ BEGIN PERFORM sheet.set(${fid}, 9, 7, 'corner ${round}'); END $$`);
		const people = await edit(randomOf(seed), round);
		let truth;
		const show = async () => {
			if (!people.every((person) => person.isQuiet)) return false;
			truth = await sqlGrid();
			return people.every((person) => JSON.stringify(sorted(Object.entries(person.grid.contents()))) === JSON.stringify(truth));
		};
		await waitUntil(show, () => `seed ${seed}: grids to be ${JSON.stringify(truth)}: ${JSON.stringify(people.map(({ grid, session, connected }) => [connected, session.unsaved, sorted(Object.entries(grid.contents()))]))}`, 30000);
		await Promise.all(people.map(({ session }) => session.stop()));
		const typed = people.flatMap((person) => person.typed);
		assert.ok(typed.length > 100, 'edits were made');
		t.diagnostic(`seed ${seed}: ${typed.length} texts, ${people.reduce((sum, { refusals }) => sum + refusals, 0)} refusals, ${truth.length} cells`);
		// Also compares the cells with the replay of the log.
		assert.equal(await cluster.psql(`SELECT severity, what FROM sheet.fsck(${fid}, "full" => true)`), 'info|clean');
	}
});
