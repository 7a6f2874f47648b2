/*
 * calc.mjs - calc for a test (docs/design/calc.md), and the values that it stores.
 *
 *     const calc = startCalc(cluster);
 *     await waitValues(cluster, sheet, { B1: '42' });
 */
import fs from 'node:fs';
import path from 'node:path';
import { repository } from './cluster.mjs';
import { Service, waitUntil } from './processes.mjs';

/** Starts calc with these settings. One that is started again has the same name. Its program is build/calc, of which the cluster has a copy. */
export function startCalc(cluster, settings = {}) {
	const program = path.join(cluster.directory, 'calc');
	if (!fs.existsSync(program)) fs.cpSync(path.join(repository, 'build', 'calc'), program, { recursive: true });
	const all = { database: cluster.conninfo('gateway'), 'calc-name': 'calc', ...settings };
	const name = all['calc-name'];
	const args = Object.entries(all).map(([key, value]) => `--${key}=${value}`);
	return Service.spawn(name, process.execPath, [path.join(program, 'main.mjs'), ...args], {
		log: path.join(cluster.directory, 'log', `${name}.log`),
		cwd: cluster.directory,
	});
}

/** What the cells of a sheet show, by their names; a value that is older than the sheet has a mark. */
export async function valuesOf(cluster, sheet) {
	const rows = await cluster.rows(`SELECT a1, value, stale FROM sheet.range(${sheet})`);
	return Object.fromEntries(rows.map(({ a1, value, stale }) => [a1, stale ? `${value} (stale)` : value]));
}

/** Waits until these cells show these values (null: nothing). */
export async function waitValues(cluster, sheet, wanted, timeoutMs = 30000) {
	let values;
	const fits = async () => {
		values = await valuesOf(cluster, sheet);
		return Object.entries(wanted).every(([name, value]) => (values[name] ?? null) === value);
	};
	await waitUntil(fits, () => `${JSON.stringify(wanted)}; there is ${JSON.stringify(values ?? null).slice(0, 1000)}`, timeoutMs);
}

/** Creates a sheet with these contents. */
export async function makeSheet(cluster, contents = {}) {
	const sheet = await cluster.psql(`SELECT sheet.create('computed')`);
	await setCells(cluster, sheet, contents);
	return sheet;
}

const quoted = (text) => (text === null ? 'NULL' : `'${text.replaceAll("'", "''")}'`);

/** In one transaction. */
export const setCells = (cluster, sheet, contents) =>
	cluster.psql(
		['BEGIN', ...Object.entries(contents).map(([name, content]) => `SELECT sheet.set(${sheet}, '${name}', ${quoted(content)})`), 'COMMIT', ''].join(';\n'),
	);
