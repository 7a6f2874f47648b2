/*
 * csv_of_others.test.mjs - CSV files as people and programs have them: public data sets and files that other readers have failed on
 * (scripts/test-data), and what pandas, PostgreSQL, SheetJS and others write. They become sheets as Python reads them, and an export
 * becomes the same sheet again.
 */
// long form only
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { Cluster, repository } from '../lib/cluster.mjs';
import { register, request } from '../lib/client.mjs';
import { roundsToRun } from '../lib/processes.mjs';
import { packagedFiles } from '../lib/workbook_makers.mjs';

let cluster;
let gateway;
let anna;
/** Larger files are in the long form. */
const largest = roundsToRun(20_000, 1 << 30);

describe('CSV files of others', () => {
	before(async () => {
		cluster = await Cluster.start();
		[gateway] = cluster.gateways;
		anna = await register(gateway);
	});
	after(() => cluster?.stop());

	const python = (...args) => JSON.parse(execFileSync('/usr/bin/python3', [path.join(repository, 'tests/lib/csv_files.py'), ...args], { maxBuffer: 1 << 30 }));
	const headers = () => ({ authorization: `Bearer ${anna.token}`, 'content-type': 'text/csv' });
	const query = (options) => Object.entries(options).map(([name, value]) => `&${name}=${encodeURIComponent(value === '\t' ? 'tab' : value)}`).join('');
	const imported = (body, options = {}) => request(gateway, 'POST', `/v2/sheets/import?name=x${query(options)}`, { headers: headers(), body });
	const download = async (id, end) => (await request(gateway, 'GET', `/v2/sheets/${id}${end}`, { headers: headers() })).text;
	const contents = async (id) => (await download(id, '.jsonl?formulas=true')).split('\n').filter(Boolean).map((line) => JSON.parse(line).map((content) => content ?? ''));
	/** Is a content this text? A text that looks like a number or a formula has an apostrophe. */
	const isText = (content, text) => content === text || content === `'${text}`;
	/** Rows as a sheet holds them: all of one length, without empty ones at the end. */
	const squared = (rows) => {
		const filled = rows.filter((row, i) => rows.slice(i).some((other) => other.some(Boolean)));
		const columns = Math.max(0, ...filled.map((row) => row.findLastIndex(Boolean) + 1));
		return filled.map((row) => Array.from({ length: columns }, (_, i) => row[i] ?? ''));
	};
	function bytesOf(file) {
		const bytes = fs.readFileSync(file);
		if (file.endsWith('.gz')) return zlib.gunzipSync(bytes);
		return file.endsWith('.bz2') ? execFileSync('python3', ['-c', 'import bz2, sys; sys.stdout.buffer.write(bz2.decompress(sys.stdin.buffer.read()))'], { input: bytes, maxBuffer: 1 << 30 }) : bytes;
	}

	/** Where rows differ first. */
	function firstDifference(got, wanted, same = Object.is) {
		for (let row = 0; row < Math.max(got.length, wanted.length); row++)
			for (let col = 0; col < Math.max(got[row]?.length ?? 0, wanted[row]?.length ?? 0); col++)
				if (!same(got[row]?.[col], wanted[row]?.[col])) return [row + 1, col + 1, got[row]?.[col], wanted[row]?.[col], got.length, wanted.length];
		return null;
	}

	/** The export of a sheet, in each format, becomes a sheet with equal cells. */
	async function assertComesBack(id, name) {
		const cells = await contents(id);
		for (const format of ['csv', 'tsv', 'jsonl']) {
			const again = await imported(await download(id, `.${format}?formulas=true`), { format, formulas: true });
			assert.equal(again.status, 200, `${name} ${format}: ${again.text}`);
			assert.equal(firstDifference(await contents(again.json.id), cells), null, `${name} ${format}`);
		}
		return cells;
	}

	test('files that programs write have the rows that were written', async () => {
		const folder = path.join(cluster.directory, 'made');
		fs.mkdirSync(folder);
		const wrong = [];
		for (const [file, options, rows] of python('make', folder)) {
			const made = await imported(fs.readFileSync(file), options);
			assert.equal(made.status, 200, `${file}: ${made.text}`);
			const cells = await assertComesBack(made.json.id, file);
			const difference = firstDifference(cells, squared(rows), isText);
			if (difference) wrong.push([path.basename(file), made.json.separator, ...difference]);
		}
		assert.deepEqual(wrong, []);
	});

	/** Python has no row for an empty line; here it is one. */
	const filled = (rows) => rows.filter((row) => row.some(Boolean));

	/** Files with other separators, encodings, or quotes that only a lenient reader takes. */
	const unusual = [
		['1680-fread-header-encoding.csv', ';', 'windows-1252', false],
		['fread_line_error.csv.bz2', ',', 'UTF-8', true],
		['russellCRCRLF.csv', ',', 'windows-1252', false],
		['russellCRLF.csv', ',', 'windows-1252', false],
		['unescaped.csv', ',', 'UTF-8', true],
		['variousdelim.csv', '\t', 'UTF-8', false],
	];

	test('public files are read as Python reads them', async (context) => {
		const files = packagedFiles('.csv', '.tsv', '.csv.gz', '.csv.bz2').filter((file) => fs.statSync(file).size <= largest);
		const read = [];
		for (const file of files) {
			const bytes = bytesOf(file);
			let made = await imported(bytes);
			let lenient = false;
			if (made.json?.code === 'csv_malformed') {
				lenient = true;
				made = await imported(bytes, { lenient });
			}
			if (made.json?.code === 'csv_limit') {
				assert.ok(String(bytes).split('\n', 1)[0].split(',').length > 16384, `${file}: ${made.text}`);
				continue;
			}
			assert.equal(made.status, 200, `${file}: ${made.text}`);
			const cells = await assertComesBack(made.json.id, file);
			read.push({ file, lenient, cells, ...made.json });
		}
		const list = path.join(cluster.directory, 'list.json');
		fs.writeFileSync(list, JSON.stringify(read.map(({ file, encoding, separator }) => [file, encoding, separator])));
		const wanted = python('read', list);
		const wrong = [];
		for (const [i, { file, cells }] of read.entries()) {
			const difference = firstDifference(squared(filled(cells)), squared(filled(wanted[i])), isText);
			if (difference) wrong.push([path.basename(file), ...difference]);
		}
		context.diagnostic(`${read.length} files`);
		assert.ok(read.length >= 100, `${read.length} files`);
		assert.deepEqual(wrong, []);
		const taken = read.map(({ file, separator, encoding, lenient }) => [path.basename(file), separator, encoding, lenient]);
		const usual = ([, separator, encoding, lenient]) => separator === ',' && encoding === 'UTF-8' && !lenient;
		// Other versions of the packages may have others.
		for (const one of taken.filter((other) => !usual(other))) {
			const known = unusual.find(([name]) => name === one[0]);
			if (known) assert.deepEqual(one, known);
			else context.diagnostic(one.join(' '));
		}
		assert.ok(taken.filter(([name]) => unusual.some(([other]) => other === name)).length >= 3);
	});
});
