/*
 * interchange.mjs - the benchmark `interchange`: files and rows of queries become cells, cells become files, and formulas become
 * values. PHASES="csv rows xlsx recalc calc" chooses, MEGABYTES=100, ROWS=1000000, XLSX_CELLS=1000000, CALC_SHEETS=1000. fsync is on. The last line is
 * one line of JSON:
 *
 *   csv_import_mb_per_s    CSV by HTTP into a new sheet, from the first byte sent to the answer
 *   csv_import_gateway_mb  how much more memory the gateway has at most meanwhile
 *   csv_export_mb_per_s    the same sheet by HTTP as CSV, when the server has saved its version
 *   csv_export_at_once_mb_per_s  the same just before, while the server saves the version of what was imported
 *   rows_vs_copy           the time of sheet.import_rows() of ROWS rows from a table, divided by that of COPY of the same rows from
 *                          a file into a heap table; median of ROUNDS=3 that alternate
 *   import_file_vs_copy    the same of sheet.import_file() of the file
 *   xlsx_import_s, xlsx_export_s  XLSX_CELLS cells, half of them texts, by HTTP as a workbook: until the answer, until its end
 *   xlsx_calc_mb           memory of calc and its processes meanwhile, at most
 *   xlsx_cells_wrong       cells, sizes, merges and so on of two workbooks that are not the same after they were books
 *   recalc_ms              from an edit by SQL until SQL sees the value of a formula that depends on it; the median of 50
 *   recalc10k_ms           the same of 10,000 formulas
 *   calc_mb                memory of calc when it has computed CALC_SHEETS sheets of 100 formulas
 */
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { makeSheet, startCalc } from '../../lib/calc.mjs';
import { register } from '../../lib/client.mjs';
import { Cluster, waitUntil } from '../../lib/cluster.mjs';
import { memoryKilobytes, peakMegabytes, setting } from '../common/site.mjs';
import { workbooks } from './workbooks.mjs';

const megabytes = setting('MEGABYTES', 100, 1, 1000);
const rowCount = setting('ROWS', 1000000, 1000, 10000000);
const rounds = setting('ROUNDS', 3, 1, 20);
const xlsxCells = setting('XLSX_CELLS', 1000000, 1000, 10000000);
const calcSheets = setting('CALC_SHEETS', 1000, 1, 10000);
const phases = (process.env.PHASES ?? 'csv rows xlsx recalc calc').split(' ');
const goals = {
	csv_import_mb_per_s: [20, true],
	csv_import_gateway_mb: [32],
	csv_export_mb_per_s: [60, true],
	rows_vs_copy: [2],
	xlsx_import_s: [60],
	xlsx_export_s: [60],
	xlsx_calc_mb: [1024],
	xlsx_cells_wrong: [0],
	recalc_ms: [500],
	recalc10k_ms: [3000],
	calc_mb: [1024],
};
const results = {};
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

function report(key, values) {
	results[key] = Number(median(values).toFixed(2));
	const [goal, least] = goals[key] ?? [];
	const reached = least ? results[key] >= goal : results[key] <= goal;
	const verdict = goal === undefined ? '' : `goal ${goal}: ${reached ? 'reached' : 'MISSED'}`;
	process.stdout.write(`  ${key.padEnd(28)} ${String(results[key]).padStart(9)}  ${verdict}   (${values.map((value) => value.toFixed(2)).join(' ')})\n`);
}

/** Lines as people have them: a number, a date, an amount, two texts, one of them quoted at times. */
const lineOf = (i) =>
	`${i},2026-${String((i % 12) + 1).padStart(2, '0')}-${String((i % 28) + 1).padStart(2, '0')},${((i * 7919) % 1000003) / 100},item ${i % 5003},${i % 10 === 0 ? '"said ""yes"", then no"' : 'nothing of note'}\n`;

async function writeFile(file, wanted) {
	const to = fs.createWriteStream(file);
	let bytes = 0;
	for (let i = 0; wanted(i, bytes); ) {
		let block = '';
		for (let n = 0; n < 10000 && wanted(i, bytes + block.length); n++) block += lineOf(i++);
		bytes += block.length;
		if (!to.write(block)) await once(to, 'drain');
	}
	to.end();
	await once(to, 'finish');
	return bytes;
}

const secondsOf = async (run) => {
	const began = performance.now();
	await run();
	return (performance.now() - began) / 1000;
};

async function answerOf(request) {
	const [answer] = await once(request, 'response');
	let bytes = 0;
	let head = '';
	for await (const data of answer) {
		bytes += data.length;
		if (head.length < 1000) head += data.toString('utf8').slice(0, 1000);
	}
	if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${head}`);
	return { bytes, head };
}

async function csv(cluster) {
	const [gateway] = cluster.gateways;
	const user = await register(gateway);
	const file = path.join(cluster.directory, 'large.csv');
	const bytes = await writeFile(file, (i, bytes) => bytes < megabytes * 1e6);
	const headers = { authorization: `Bearer ${user.token}`, 'content-type': 'text/csv' };
	const { pid } = gateway.service;
	const before = memoryKilobytes(pid) / 1024;
	const rates = { import: [], atOnce: [], export: [] };
	const exportRate = async (id) => {
		let got;
		const took = await secondsOf(async () => {
			got = await answerOf(http.get({ port: gateway.port, path: `/v2/sheets/${id}.csv`, headers, agent: false }));
		});
		if (got.bytes < bytes) throw new Error(`${got.bytes} of ${bytes} bytes came back`); // line ends are CRLF now
		return got.bytes / 1e6 / took;
	};
	for (let round = 0; round < rounds; round++) {
		let id;
		const upload = await secondsOf(async () => {
			const request = http.request({ port: gateway.port, method: 'POST', path: `/v2/sheets/import?name=large`, headers, agent: false });
			request.on('error', () => {}); // the answer says why
			fs.createReadStream(file, { highWaterMark: 262144 }).pipe(request);
			({ id } = JSON.parse((await answerOf(request)).head));
		});
		rates.import.push(bytes / 1e6 / upload);
		if (round === 0) report('csv_import_gateway_mb', [peakMegabytes(pid) - before]);
		rates.atOnce.push(await exportRate(id));
		await waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.version WHERE sheet_id = ${id}`)) !== '0', 'the version', 60000);
		rates.export.push(await exportRate(id));
	}
	report('csv_import_mb_per_s', rates.import);
	report('csv_export_at_once_mb_per_s', rates.atOnce);
	report('csv_export_mb_per_s', rates.export);
}

async function rows(cluster) {
	const file = path.join(cluster.directory, 'rows.csv');
	await writeFile(file, (i) => i < rowCount);
	const columns = '(id int, day date, amount numeric, item text, note text)';
	await cluster.psql(`CREATE TABLE staged ${columns}; COPY staged FROM '${file}' (FORMAT csv); ANALYZE staged`, { timeoutMs: 600000 });
	const ratios = { rows: [], file: [] };
	for (let round = 0; round < rounds; round++) {
		const run = (sql) => secondsOf(() => cluster.psql(sql, { timeoutMs: 600000 }));
		await cluster.psql(`DROP TABLE IF EXISTS copied; CREATE TABLE copied ${columns}; CHECKPOINT`);
		const copy = await run(`COPY copied FROM '${file}' (FORMAT csv)`);
		await cluster.psql('CHECKPOINT');
		const sheet = await cluster.psql(`SELECT sheet.create('rows', ${rowCount}, 5)`);
		const imported = await run(`SELECT sheet.import_rows(${sheet}, 'SELECT * FROM staged')`);
		await cluster.psql('CHECKPOINT');
		const read = await run(`SELECT sheet_id FROM sheet.import_file('${file}', 'file')`);
		process.stdout.write(`  COPY ${copy.toFixed(2)} s, import_rows ${imported.toFixed(2)} s, import_file ${read.toFixed(2)} s\n`);
		ratios.rows.push(imported / copy);
		ratios.file.push(read / copy);
		const [{ cells }] = await cluster.rows(`SELECT count(*) AS cells FROM sheet.range(${sheet})`);
		if (Number(cells) !== rowCount * 5) throw new Error(`${cells} cells`);
	}
	report('rows_vs_copy', ratios.rows);
	report('import_file_vs_copy', ratios.file);
}

/** A statement that ends when the cell has this value, and it is not stale. */
const untilValue = (sheet, cell, value) => `DO $$ BEGIN
	FOR i IN 1 .. 100000 LOOP
		PERFORM FROM sheet.range(${sheet}, '${cell}') WHERE value = '${value}' AND NOT stale;
		EXIT WHEN FOUND;
		COMMIT;
		PERFORM pg_sleep(0.001);
	END LOOP;
END $$`;

async function recalc(cluster) {
	const few = await makeSheet(cluster, { A1: '0', B1: '=A1*2' });
	const many = await makeSheet(cluster, { A1: '0' });
	await cluster.psql(`SELECT sheet.set_range(${many}, 'B1', array_agg(ARRAY['=A$1+' || i])) FROM generate_series(1, 10000) i`);
	await cluster.psql(untilValue(few, 'B1', 0));
	await cluster.psql(untilValue(many, 'B10000', 10000));
	const measure = async (sheet, cell, valueOf, times) => {
		const took = [];
		for (let i = 1; i <= times; i++) {
			const output = await cluster.psql(
				[
					'CREATE TEMP TABLE began AS SELECT clock_timestamp() AS at',
					`SELECT sheet.set(${sheet}, 'A1', '${i}')`,
					untilValue(sheet, cell, valueOf(i)),
					'SELECT extract(epoch FROM clock_timestamp() - at) * 1000 FROM began;\n',
				].join(';\n'),
			);
			took.push(Number(output.split('\n').at(-1)));
		}
		return took;
	};
	report('recalc_ms', await measure(few, 'B1', (i) => i * 2, 50));
	report('recalc10k_ms', await measure(many, 'B10000', (i) => i + 10000, rounds));
}

async function calc(cluster, calcProcess) {
	await cluster.psql(`SELECT count(sheet.set_range(sheet.create('calc ' || s), 'A1', (SELECT array_agg(ARRAY[i::text, '=A' || i || '*' || s]) FROM generate_series(1, 100) i)))
		FROM generate_series(1, ${calcSheets}) s`);
	await waitUntil(
		async () => (await cluster.psql(`SELECT count(*) FROM sheet.sheet s JOIN sheet.computed c USING (sheet_id) WHERE s.name LIKE 'calc %'`)) === String(calcSheets),
		'all sheets to be computed',
		300000,
	);
	report('calc_mb', [memoryKilobytes(calcProcess.pid) / 1024]);
}

const cluster = await Cluster.start({ gateways: 1, postgres: { fsync: 'on', shared_buffers: '256MB', max_wal_size: '4GB', 'pg_sheet.cache_size': '256MB' } });
let calcProcess;
try {
	if (phases.includes('csv')) await csv(cluster);
	if (phases.includes('rows')) await rows(cluster);
	calcProcess = startCalc(cluster);
	if (phases.includes('xlsx')) await workbooks(cluster, calcProcess, xlsxCells, report);
	if (phases.includes('recalc')) await recalc(cluster);
	if (phases.includes('calc')) await calc(cluster, calcProcess);
} finally {
	await calcProcess?.stop();
	await cluster.stop();
}
process.stdout.write(`${JSON.stringify(results)}\n`);
