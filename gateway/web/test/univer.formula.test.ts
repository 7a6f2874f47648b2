// univer.formula.test.ts - compares moveContent() with what Univer makes of random formulas when rows and columns are
// inserted or deleted, and with common/formula_shift.c, which must do the same to the letter. The reference is the page's
// own: UpdateFormulaController of the pinned Univer.
//
// moveContent() and Univer agree but for these, where Univer writes the same in another way or is wrong:
//  - Univer writes a changed formula anew: references in capitals, corners in ascending order, A1:A1 as A1, without
//    spaces beside them. Ours keep what was typed. The comparison takes both in Univer's way.
//  - Univer takes "A1 : B2", with spaces, for two cells, and rewrites them one by one. Ours is a range.
//  - Univer takes a no-break or ideographic space before a sheet's name for a part of the name (not generated).
//  - Univer moves references that name the sheet itself. The page does not: the database does (not generated).
//  - Univer damages X!A1:X!B2 when a corner is deleted (not generated).
//  - Univer compares names with their case, the database without (not generated).
//  - Univer loses one of two quotation marks in a text ("say ""A5""") of a formula that it changes (not generated).
//  - Univer cuts off some formulas that it changes at the brace of an array constant (generated as a sole argument).
//  - Univer knows no last row. Ours are limited (not generated; see tests/vectors/formulas.json).

import { LexerTreeBuilder } from '@univerjs/engine-formula';
import { UpdateFormulaController } from '@univerjs/sheets-formula';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { EMPTY } from 'rxjs';
import { expect, test } from 'vitest';
import { isOfRows, maxCols, maxRows, moveContent } from '../src/v2/lines';
import type { StructureEdit } from '../src/v2/messages';

type FormulaData = Record<string, Record<string, Record<number, { 0: { f: string } }>>>;
interface Controller {
	_getFormulaReferenceMoveInfo(data: FormulaData, sheetNames: unknown, move: unknown): { newFormulaData: FormulaData };
}

const disposable = { dispose() {} };
const controller = new (UpdateFormulaController as unknown as new (...services: unknown[]) => Controller)(
	{ getTypeOfUnitAdded$: () => EMPTY, getTypeOfUnitDisposed$: () => EMPTY },
	{ onCommandExecuted: () => disposable, beforeCommandExecuted: () => disposable },
	new LexerTreeBuilder(),
	{},
	{ interceptCommand: () => disposable },
);

/** sheetId: the sheet that changes; the formulas are in the sheet "sheet". */
function byUniver(formulas: string[], { kind, at, n }: StructureEdit, sheetId = 'sheet'): string[] {
	const rows = kind === 'insertRows' || kind === 'deleteRows';
	const [last, wide] = [at + n - 1, 1e7];
	const range = rows
		? { startRow: at, endRow: last, startColumn: 0, endColumn: wide, rangeType: 1 }
		: { startRow: 0, endRow: wide, startColumn: at, endColumn: last, rangeType: 2 };
	const type = { insertRows: 3, insertColumns: 4, deleteRows: 5, deleteColumns: 6 }[kind];
	const move = { type, range, unitId: 'unit', sheetId, rangeFilteredRows: [] };
	const data = { unit: { sheet: Object.fromEntries(formulas.map((f, row) => [row, { 0: { f } }])) } } as FormulaData;
	const { newFormulaData } = controller._getFormulaReferenceMoveInfo(data, { unit: { Sheet2: 'second', 'Other sheet': 'third', "it's": 'fourth' } }, move);
	return formulas.map((formula, row) => newFormulaData.unit!.sheet![row]?.[0].f ?? formula);
}

/** Texts and names as they are, references in Univer's way. */
function inUniversWay(formula: string): string {
	const parts = formula.split(/("(?:[^"]|"")*"|'(?:[^']|'')*'|Sheet2|\{[^}]*\}|\[.*?\]|[\w.]*_[\w.]*)/);
	return parts
		.map((part, i) =>
			i % 2 === 1
				? part
				: part
						.toUpperCase()
						.replaceAll(' ', '')
						.replace(/(\$?)([A-Z]*)(\$?)(\d*):(\$?)([A-Z]*)(\$?)(\d*)/g, inOrder),
		)
		.join('');
}

function inOrder(whole: string, ...[a$, a, aRow$, aRow, b$, b, bRow$, bRow]: string[]): string {
	const later = (x: string, y: string): boolean => x.length > y.length || (x.length === y.length && x > y);
	const cols = later(a!, b!) ? [b, a] : [a, b];
	const rows = later(aRow!, bRow!) ? [bRow, aRow] : [aRow, bRow];
	const first = `${a$}${cols[0]}${aRow$}${rows[0]}`;
	const last = `${b$}${cols[1]}${bRow$}${rows[1]}`;
	return first === last && a && aRow ? first : whole === ':' ? whole : `${first}:${last}`;
}

/** mulberry32: the same formulas in each run. */
function randomOf(seed: number): (below: number) => number {
	return (below) => {
		seed = (seed + 0x6d2b79f5) | 0;
		let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
	};
}

function generator(random: (below: number) => number): () => string {
	const pick = <T>(list: readonly T[]): T => list[random(list.length)]!;
	const sign = (): string => pick(['', '', '$']);
	const column = (): string => pick(['A', 'B', 'C', 'D', 'E', 'F', 'Z', 'AA', 'AB', 'ABC', 'b', 'ab', 'XEZ']);
	const row = (): string => `${pick([random(12) + 1, random(12) + 1, random(2000) + 1])}`;
	const cell = (): string => `${sign()}${column()}${sign()}${row()}`;
	const range = (): string =>
		pick([() => `${cell()}:${cell()}`, () => `${sign()}${column()}:${sign()}${column()}`, () => `${sign()}${row()}:${sign()}${row()}`])();
	const leaf = (): string =>
		pick([
			cell,
			cell,
			cell,
			range,
			range,
			() => pick(['1', '2.5', '1E5', '1e3', '.5', '10%', 'TRUE', '#REF!', '#N/A', '#DIV/0!']),
			() => pick(['"A5"', '""', '"=B2:C3"', '"it\'s A5"', '"{A5}"', '"(A5"']),
			() => pick(['rate', 'A1_x', '_A1', 'my.A1', 'tax2024', 'A1B2', 'ABCD5', 'éA5']),
			() => `${pick(['Sheet2!', "'Other sheet'!", "'it''s'!"])}${pick([cell, range])()}`,
			() => pick(['SUM({1,2,3})', 'MAX({1;2})', 'Table1[Amount]', 'Table1[A5]', 'Table1[[#All],[A5]]']),
		])();
	const call = (depth: number): string => {
		const name = pick(['SUM', 'IF', 'LOG10', 'ATAN2', 'DAYS360', 'VLOOKUP', 'sum', 'BIN2DEC', 'T', 'N']);
		const list = Array.from({ length: random(3) + 1 }, () => expression(depth - 1));
		return `${name}(${list.join(pick([',', ', ']))})`;
	};
	const expression = (depth: number): string => {
		const term = (): string => (depth > 0 && random(3) === 0 ? pick([() => call(depth), () => `(${expression(depth - 1)})`, () => `-${leaf()}`])() : leaf());
		return Array.from({ length: 1 + random(3) }, term).join(pick(['+', '-', '*', '/', '^', '&', '<>', '>=', ' + ', '=']));
	};
	return () => `=${expression(3)}`;
}

const kinds = ['insertRows', 'deleteRows', 'insertColumns', 'deleteColumns'] as const;
const seed = Number(process.env.PG_SHEET_SEED ?? 20260101);
const times = process.env.LONG ? 10 : 2;

test(`${1000 * times} random formulas, as Univer has them: seed ${seed}`, () => {
	const random = randomOf(seed);
	const formula = generator(random);
	let changed = 0;
	for (let round = 0; round < 10 * times; round++) {
		const kind = kinds[round % 4]!;
		const change = { kind, at: random(10), n: 1 + random(4) };
		const formulas = Array.from({ length: 100 }, formula);
		const theirs = byUniver(formulas, change);
		formulas.forEach((text, i) => {
			const ours = moveContent(text, change)!;
			changed += ours === text ? 0 : 1;
			expect(inUniversWay(ours), `${kind} ${change.at} ${change.n}: ${text}`).toBe(inUniversWay(theirs[i]!));
		});
	}
	expect(changed).toBeGreaterThan(500 * times);
}, 60000);

/** Formulas as people type them, some with mistakes, and what is at the limits of sheets. */
function damager(random: (below: number) => number): (formula: string) => string {
	const parts = [
		...'A1$:!\'"#{}[](),._\\?~`|;@%+ \t\n\u00a0\u3000é中😀',
		'XFD',
		'XFE',
		'16777216',
		'16777217',
		'A16777216',
		'$XFD$9',
		'A1:XFD16777216',
		'2:16777216',
		'B:XFD',
		'LOG10',
		'log10',
		'#REF!',
		'#N/A',
		'#DIV/0!',
		"'it''s'!",
		'""',
		' : ',
		'0',
		'A0',
		'A01',
	];
	return (formula) => {
		const chars = [...formula];
		for (let i = random(4); i > 0; i--) chars.splice(1 + random(chars.length), random(2), ...(random(4) > 0 ? [parts[random(parts.length)]!] : []));
		return chars.join('');
	};
}

interface Vector {
	name: string;
	formula: string;
	change: [StructureEdit['kind'], number, number];
	result?: string;
	sheet?: string;
	other?: boolean;
}

/** What common/formula_shift.c makes of the vectors: a line of tests/unit/test_formula.c for each. */
function byDatabase(vectors: Vector[]): string[] {
	const unit = fileURLToPath(new URL('../../../tests/unit', import.meta.url));
	const directory = mkdtempSync(path.join(tmpdir(), 'formulas-'));
	try {
		writeFileSync(path.join(directory, 'vectors.json'), JSON.stringify(vectors.map((vector) => ({ result: '', ...vector }))));
		const program = path.join(directory, 'test_formula');
		const { MAKEFLAGS: _, ...env } = process.env;
		const made = spawnSync('make', ['-s', '-C', unit, `BUILD=${directory}`, program], { env, encoding: 'utf8' });
		expect(made.status, made.stderr).toBe(0);
		const { stdout, stderr } = spawnSync(program, [path.join(directory, 'vectors.json')], { encoding: 'utf8', maxBuffer: 64 << 20 });
		expect(stderr).toBe('');
		expect(stdout).toContain(`1..${vectors.length}`);
		return stdout.split('\n').filter((line) => !line.startsWith('#'));
	} finally {
		rmSync(directory, { recursive: true });
	}
}

test(`${1000 * times} random formulas that name a sheet which changes, as Univer has them: seed ${seed}`, () => {
	const random = randomOf(seed);
	const expression = generator(random);
	const pick = <T>(list: readonly T[]): T => list[random(list.length)]!;
	// Univer takes needless quotation marks away from what it changes.
	const plain = (formula: string): string => formula.replaceAll("'Sheet2'", 'Sheet2');
	const named = (): string =>
		pick(['Sheet2!B5', 'Sheet2!A3:B9', 'Sheet2!B:D', 'Sheet2!$3:5', "'Other sheet'!B5", "'Sheet2'!F6", 'SUM(Sheet2!B3,B3)', 'Sheet2!B5:INDEX(Sheet2!C:C,2)']);
	const rounds = Array.from({ length: 4 * times }, (_, round) => {
		const change = { kind: kinds[round % 4]!, at: random(10), n: 1 + random(4) };
		const formulas = Array.from({ length: 250 }, () => `${expression()}+${named()}`);
		const theirs = byUniver(formulas, change, 'second');
		return formulas.map((formula, i) => ({ formula, change, theirs: theirs[i]! }));
	}).flat();
	const lines = byDatabase(
		rounds.map(({ formula, change: { kind, at, n } }, i) => ({ name: `formula ${i}`, formula, change: [kind, at, n], sheet: 'Sheet2', other: true })),
	);
	let changed = 0;
	rounds.forEach(({ formula, change: { kind, at, n }, theirs }, i) => {
		const [, ours] = new RegExp(` formula ${i}: (.*)$`).exec(lines[i]!)!;
		changed += ours === formula ? 0 : 1;
		expect(inUniversWay(plain(ours!)), `${kind} ${at} ${n}: ${formula}`).toBe(inUniversWay(plain(theirs)));
	});
	expect(changed).toBeGreaterThan(250 * times);
}, 120000);

test(`${4000 * times} random formulas, as the database and the gateway have them: seed ${seed}`, () => {
	const random = randomOf(seed);
	const [formula, damage] = [generator(random), damager(random)];
	const vectors = Array.from({ length: 4000 * times }, (_, i): Vector => {
		const kind = kinds[i % 4]!;
		const limit = isOfRows({ kind, at: 0, n: 1 }) ? maxRows : maxCols;
		const at = random(8) > 0 ? random(10) : limit - 1 - random(10);
		const n = Math.min(random(8) > 0 ? 1 + random(4) : limit - 9, limit - at);
		const text = damage(formula());
		return { name: `${JSON.stringify(text)} ${kind} ${at} ${n}`, formula: text, change: [kind, at, n], result: moveContent(text, { kind, at, n })! };
	});
	expect(vectors.filter(({ formula: text, result }) => text !== result).length).toBeGreaterThan(1500 * times);
	expect(byDatabase(vectors).filter((line) => line.startsWith('not ok'))).toEqual([]);
}, 120000);
