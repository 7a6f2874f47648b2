/*
 * convergence.test.mjs - several people with the page's session, and SQL, edit a sheet at random while connections break: all
 * grids end with the cells, the styles and the properties of the database, which are those of its log.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { WebSocket } from 'ws';
import { roundsToRun, waitUntil } from '../lib/processes.mjs';
import { sqlProperties } from '../lib/properties.mjs';
import { Person, randomOf } from '../lib/sessions.mjs';
import { anna, ben, cluster, fid, gateway } from '../lib/two_people.mjs';

/** Properties by their ranges and keys, from "range,key=value". */
const byName = (list) => Object.fromEntries(list.map((property) => [property.split('=', 1)[0], JSON.parse(property.slice(property.indexOf('=') + 1))]));

/** The sheet as SQL sees it. */
async function stored() {
	const cells = await cluster.rows(`SELECT "row" || ',' || col AS place, content, style FROM sheet.range(${fid})`);
	return {
		contents: Object.fromEntries(cells.filter(({ content }) => content).map(({ place, content }) => [place, content])),
		styles: Object.fromEntries(cells.filter(({ style }) => style).map(({ place, style }) => [place, JSON.parse(style)])),
		properties: byName(await sqlProperties(cluster, fid)),
	};
}

/** How many rows or columns were moved: inserted, and deleted elsewhere by the next edit. */
const moves = async () =>
	Number(
		await cluster.psql(`SELECT count(*) FROM (SELECT kind, uid, new, lag((kind, uid, new)::text) OVER (ORDER BY seq) AS before FROM sheet.log_edits(${fid})) edits
			WHERE kind LIKE 'delete%' AND before = (replace(kind, 'delete', 'insert'), uid, new)::text`),
	);

/** The sheet as a person sees it. */
const shown = ({ grid }) => ({ contents: grid.contents(), styles: grid.styles(), properties: byName(grid.properties) });

const sql = (random, round, n) =>
	cluster.psql(
		[
			`SELECT count(sheet.set(${fid}, i / 5, i % 5, 'sql' || ${round} || 'x' || ${n} || 'x' || i)) FROM generate_series(0, 24) i`,
			`SELECT sheet.insert_rows(${fid}, ${random(6)}, 1)`,
			`SELECT sheet.set(${fid}, ${random(6)}, ${random(6)}, 'sql${round}x${n}'), sheet.delete_columns(${fid}, ${random(4)}, 1), sheet.insert_columns(${fid}, ${random(4)}, 2)`,
			`SELECT sheet.set_property(${fid}, 'B:D', 'width', '${30 + n}'), sheet.set_property(${fid}, 'C${1 + random(6)}:D8', 'merge', 'true'), sheet.delete_rows(${fid}, ${random(6)}, 1)`,
		][random(4)],
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
	// How fast the people are decides what they meet; another round, until rows or columns have been moved.
	for (let round = 0; round < rounds || ((await moves()) === 0 && round < 10 * rounds); round++) {
		const seed = Number(process.env.PG_SHEET_SEED ?? 1) + round;
		await cluster.psql(`DO $$ BEGIN PERFORM sheet.set(${fid}, 9, 7, 'corner ${round}'); END $$`);
		const people = await edit(randomOf(seed), round);
		const stop = () => Promise.all(people.map(({ session }) => session.stop()));
		t.after(stop);
		let truth;
		const show = async () => {
			if (!people.every((person) => person.isQuiet)) return false;
			truth = await stored();
			return people.every((person) => isDeepStrictEqual(shown(person), truth));
		};
		await waitUntil(show, () => `seed ${seed}: grids to be ${JSON.stringify(truth)}: ${JSON.stringify(people.map((person) => [person.connected, person.session.unsaved, shown(person)]))}`, 30000);
		for (const { grid } of people) assert.deepEqual(grid.merges, people[0].grid.merges);
		await stop();
		const typed = people.flatMap((person) => person.typed);
		assert.ok(typed.length > 50, 'edits were made');
		t.diagnostic(`seed ${seed}: ${typed.length} texts, ${people.reduce((sum, { refusals }) => sum + refusals, 0)} refusals, ${Object.entries(truth).map(([what, all]) => `${Object.keys(all).length} ${what}`).join(', ')}`);
		// Also compares the cells with the replay of the log.
		assert.equal(await cluster.psql(`SELECT severity, what FROM sheet.fsck(${fid}, "full" => true)`), 'info|clean');
	}
	assert.ok((await moves()) > 0, 'rows and columns were moved');
});
