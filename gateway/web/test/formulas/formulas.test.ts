// formulas.test.ts - what the worker computes: values, arrays, circles, limits.
import { describe, expect, test, vi } from 'vitest';
import { Calculation } from '../../src/formulas/calculation';
import { Evaluator } from '../../src/formulas/evaluator';
import type { Area, Formula } from '../../src/formulas/cells';
import { Reads } from '../../src/formulas/reads';
import { randomOf } from '../person';
import { Computed, values } from './computed';
import { data, randomFormulas } from './random_formulas';

describe('what formulas show', () => {
	test('SINGLE() is the cell of a range in the row or the column of the formula, and depends on it alone', async () => {
		const sheet = new Computed();
		await sheet.write({
			A1: 1,
			A2: 2,
			A3: 3,
			B2: '=SINGLE(A1:A3)*2',
			B3: '=-SINGLE(A:A)',
			B4: '=SINGLE(A1:A3)',
			C5: '=SINGLE(A1:C1)',
			D2: '=SINGLE(A1:B3)',
			A9: '=SUM(A1:A3,SINGLE(2:2))',
		});
		expect(sheet.of('B2', 'B3', 'B4', 'C5', 'D2', 'A9')).toEqual([4, -3, '#VALUE!', 0, '#VALUE!', 8]);
		await sheet.write({ A4: '=SINGLE(A1:A9)', D1: '=SINGLE(B1)+SINGLE(SEQUENCE(3))+SINGLE("5")', D3: '=SUM(SINGLE(A3:A9))', A2: 5 });
		expect(sheet.of('B2', 'D1', 'D3', 'A4')).toEqual([10, 6, 3, '#CYCLE!']);
	});

	test('values, chains, ranges', async () => {
		expect(
			await values({ A1: 1, A2: 2, A3: '=A1+A2', B1: '=SUM(A1:A3)', B2: '=B1*2', C1: '="x"&B2', C2: '=A9', C3: '=C2=0' }, 'A3', 'B1', 'B2', 'C1', 'C2', 'C3'),
		).toEqual([3, 6, 12, 'x12', 0, 1]);
	});
});

test('links show their text', async () => {
	const contents = { A1: '=HYPERLINK("https://example.org/","one")', A2: '=HYPERLINK("#B5","two")', B1: '=A1&A2' };
	expect((await values(contents, 'B1'))[0]).toBe('onetwo');
});

describe('limits', () => {
	test('references beyond the sheet are errors', async () => {
		expect(
			await values(
				{
					A1: '=SUM(B5:B99999999)',
					A2: '=B16777217',
					A3: '=XFE1',
					A4: '=SUM(B1:XFE2)',
					A5: '=IFERROR(B16777217,7)',
					A6: '=B16777216',
					A7: '=INDIRECT("B99999999")',
					A8: '=OFFSET(B1,16777216,0)',
				},
				'A1',
				'A2',
				'A3',
				'A4',
				'A5',
				'A6',
				'A7',
				'A8',
			),
		).toEqual(['#REF!', '#REF!', '#REF!', '#REF!', 7, 0, '#REF!', '#REF!']);
	});

	test('ranges are read as far as something is in them', async () => {
		const names = ['D1', 'D2', 'D3', 'D4', 'D5', 'D6', 'D7', 'D8', 'D9', 'E1', 'E2'];
		const shown = await values(
			{
				...{ A1: 1, A2: 2, A3: 3, B1: 10, B2: 20, B3: 30, B5: 'x' },
				...{
					D1: '=SUM(A2:B16777216)',
					D2: '=SUM(A:A)',
					D3: '=SUM(1:3)-SUM(D1:E3)',
					D4: '=SUMPRODUCT(A:A*B1:B16777216)',
					D5: '=ROWS(A:A)',
					D6: '=COLUMNS(1:1)',
					D7: '=COUNTBLANK(A:A)',
					D8: '=SUMIFS(B:B,A:A,">1")',
				},
				...{ D9: '=INDEX(A:A,3)', E1: '=COUNTA(INDIRECT("A1:B1048576"))', E2: '=SUM(OFFSET(A1,0,0,1048576,2))' },
			},
			...names,
		);
		expect(shown).toEqual([55, 6, '#CYCLE!', '#VALUE!', 16777216, 16384, 16777213, 50, 3, 7, 66]);
	});

	test('arrays and texts that are too large', async () => {
		const contents = {
			...{
				A1: '=SUM(SEQUENCE(1E9))',
				A2: '=SEQUENCE(1E5,1E5)',
				A3: '=REPT("x",1E9)',
				A4: '=SUM(MAKEARRAY(1E6,1E6,LAMBDA(a,b,1)))',
				A5: '=SUM(MUNIT(1E6))',
				A6: '=SUM(RANDARRAY(1E5,1E5))',
			},
			...{ B1: '=SUM(EXPAND(SEQUENCE(100000),,16384))', B2: '=SUM(EXPAND(SEQUENCE(1,16000),1000000))' },
			...{ B5: '=SUM(WRAPROWS(1,1E9))', B6: '=COLUMNS(EXPAND({1,2},2,3))' },
			...{ A7: '=SEQUENCE(600000)', A8: '=REDUCE("ab",SEQUENCE(40),LAMBDA(a,b,a&a))', A9: '=ROWS(A1:XFD16777216)' },
		};
		const shown = await values(contents, ...Object.keys(contents));
		expect(shown).toEqual(['#NUM!', '#NUM!', '#VALUE!', '#NUM!', ...Array<string>(5).fill('#NUM!'), 3, '#NUM!', '#VALUE!', 16777216]);
	});
});

describe('circles', () => {
	test('show an error, and end', async () => {
		const sheet = new Computed();
		await sheet.write({ A1: '=B1+1', B1: '=C1+1', C1: '=A1+1', D1: '=A1', E1: '=IFERROR(A1,5)', F1: '=SUM(F1:F3)', G1: '=INDIRECT("G1")', H1: 3 });
		expect(sheet.of('A1', 'B1', 'C1', 'D1', 'E1', 'F1', 'G1')).toEqual(['#CYCLE!', '#CYCLE!', '#CYCLE!', '#CYCLE!', 5, '#CYCLE!', '#CYCLE!']);
		await sheet.write({ C1: '=H1' });
		expect(sheet.of('A1', 'B1', 'C1', 'D1', 'E1')).toEqual([5, 4, 3, 5, 5]);
		await sheet.write({ H1: '=A1' });
		expect(sheet.of('A1', 'H1')).toEqual(['#CYCLE!', '#CYCLE!']);
	});
});

describe('arrays', () => {
	test('make room for what is written, and come back', async () => {
		const sheet = new Computed();
		await sheet.write({ A1: '=SEQUENCE(4)', B1: '=SUM(A1:A4)', C1: '=A3' });
		expect(sheet.of('A1', 'A2', 'A3', 'A4', 'B1', 'C1')).toEqual([1, 2, 3, 4, 10, 3]);
		await sheet.write({ A3: 'text' });
		expect(sheet.of('A1', 'A2', 'A3', 'A4', 'B1', 'C1')).toEqual(['#SPILL!', null, null, null, '#SPILL!', 'text']);
		await sheet.write({ A3: null });
		expect(sheet.of('A1', 'A2', 'A3', 'A4', 'B1', 'C1')).toEqual([1, 2, 3, 4, 10, 3]);
		await sheet.write({ A1: null });
		expect(sheet.of('A2', 'A4', 'B1', 'C1')).toEqual([null, null, 0, 0]);
	});

	test('the one above fills the cells that two want', async () => {
		const sheet = new Computed();
		await sheet.write({ B3: '=SEQUENCE(1,3)', C2: '=SEQUENCE(3)' });
		expect(sheet.of('B3', 'C2', 'C3', 'D3')).toEqual(['#SPILL!', 1, 2, null]);
		await sheet.write({ C4: 1 });
		expect(sheet.of('B3', 'C2', 'C3', 'D3')).toEqual([1, '#SPILL!', 2, 3]);
	});
});

/** Contents by the names of their cells. `of` returns those of a row; rows count from 1. */
const rows = (n: number, of: (row: number) => Record<string, string | number>): Record<string, string | number> =>
	Object.fromEntries(Array.from({ length: n }, (_, i) => Object.entries(of(i + 1))).flat());

describe('many formulas', () => {
	test('are computed if one reads all others', async () => {
		const n = 130_000; // more than a call takes as arguments
		const sheet = new Computed();
		// The total comes first, so that all others are needed at once.
		await sheet.write({ C1: 1, B1: `=SUM(A1:A${n})`, ...rows(n, (row) => ({ [`A${row}`]: '=C$1' })) });
		expect(sheet.of('B1')).toEqual([n]);
		expect(sheet.failures).toEqual([]);
	});

	test('in a circle are errors until it is broken', async () => {
		const n = process.env.LONG ? 130_000 : 13_000;
		const sheet = new Computed();
		await sheet.write({ C1: '=B1', B1: `=SUM(A1:A${n})`, ...rows(n, (row) => ({ [`A${row}`]: '=C$1' })) });
		expect(sheet.of('A1', `A${n}`, 'B1', 'C1')).toEqual(['#CYCLE!', '#CYCLE!', '#CYCLE!', '#CYCLE!']);
		await sheet.write({ C1: 2 });
		expect(sheet.of('B1')).toEqual([2 * n]);
		expect(sheet.failures).toEqual([]);
	});

	test('of which each reads the one above it', async () => {
		const n = process.env.LONG ? 20_000 : 12_000; // more than the stack has frames for
		const sheet = new Computed();
		await sheet.write({ A1: 1, ...rows(n, (row) => ({ [`A${row + 1}`]: `=A${row}+1` })) });
		expect(sheet.of(`A${n + 1}`)).toEqual([n + 1]);
		await sheet.write({ A1: `=A${n + 1}` });
		expect(sheet.of('A2', `A${n + 1}`)).toEqual(['#CYCLE!', '#CYCLE!']);
		await sheet.write({ A1: 2 });
		expect(sheet.of(`A${n + 1}`)).toEqual([n + 2]);
	});

	test('that read one long range of formulas, or wait for it in a circle', async () => {
		const sheet = new Computed();
		const m = 8000;
		await sheet.write({ C1: 1, ...rows(m, (row) => ({ [`B${row}`]: `=SUM(A$1:A$${m})+${row}`, [`A${row}`]: '=C$1' })) });
		expect(sheet.of('B1', `B${m}`)).toEqual([m + 1, 2 * m]);
		await sheet.write({ C1: 2 });
		expect(sheet.of('B1', `B${m}`)).toEqual([2 * m + 1, 3 * m]);
		await sheet.write(rows(m, (row) => ({ [`A${row}`]: '=SUM(A:A)' })));
		expect(sheet.of('A1', `A${m}`, 'B1')).toEqual(['#CYCLE!', '#CYCLE!', '#CYCLE!']);
		await sheet.write(rows(m, (row) => ({ [`A${row}`]: row })));
		expect(sheet.of('B1')).toEqual([(m * (m + 1)) / 2 + 1]);
	});

	test('with running totals', async () => {
		const sheet = new Computed();
		const m = 2000;
		await sheet.write(
			rows(m, (row) => ({ [`A${row}`]: row / 8, [`B${row}`]: `=SUM(A$1:A${row})`, [`C${row}`]: `=MAX(A$1:A${row})+COUNT(A$1:A${row})+COUNTA(A$1:A${row})` })),
		);
		expect(sheet.of('B1', 'B2', `B${m}`, `C${m}`)).toEqual([1 / 8, 3 / 8, (m * (m + 1)) / 16, m / 8 + 2 * m]);
		await sheet.write({ A2: 'text', A3: null });
		expect(sheet.of('B2', 'B3', `B${m}`, `C${m}`)).toEqual([1 / 8, 1 / 8, (m * (m + 1)) / 16 - 5 / 8, m / 8 + 2 * m - 3]);
		await sheet.write({ A4: '=1/0' });
		expect(sheet.of('B3', 'B4', `B${m}`, `C${m}`)).toEqual([1 / 8, '#DIV/0!', '#DIV/0!', '#DIV/0!']);
	});
});

test('what is computed is shown before the rest is, also while somebody types', async () => {
	const sheet = new Computed();
	// Each takes some time, and all of them more than a slice.
	const slow = (row: number) => ({ [`B${row}`]: `=SUM(SEQUENCE(100000))+A1+${row}` });
	let [typed, early] = [0, false];
	sheet.paused = () => {
		early ||= sheet.shown.size > 0 && sheet.of('B12')[0] === null;
		if (typed < 5) void sheet.write({ A1: ++typed }, true);
	};
	await sheet.write({ A1: 0, ...rows(12, slow) });
	expect(early).toBe(true);
	expect(sheet.of('B12')).toEqual([5000050000 + typed + 12]);
});

test('an error of the computation itself is reported', async () => {
	const failures: unknown[] = [];
	const broken = { changed() {}, changedAll() {}, evaluate: () => Promise.reject(new Error('broken')) } as unknown as Evaluator;
	const calculation = new Calculation(broken, {
		stopped: new Set(),
		careful: false,
		post() {},
		pause: async () => {},
		failed: (error) => failures.push(error),
	});
	calculation.set(1, [], [[0, 0, '=1']]);
	await vi.waitUntil(() => failures.length > 0, { interval: 1 });
	expect(String(failures[0])).toContain('broken');
});

describe('which formulas have read a cell', () => {
	const range = (row: number, col: number, toRow: number, toCol: number) => ({ row, col, toRow, toCol });

	test('those that a search of all of them finds', () => {
		const random = randomOf(7);
		const reads = new Reads();
		const all = new Map<Formula, Area[]>();
		const highest = 3000;
		const tabs = [0, 1, 255];
		for (let i = 0; i < 2000; i++) {
			const formula = { text: `${i}` } as Formula;
			const ranges = Array.from({ length: 1 + random(3) }, () => {
				const [row, col] = [random(highest), random(6)];
				const [height, width] = [[1, 2, 3, 256, 257, 1000][random(6)]!, 1 + random(3)];
				return { ...range(row, col, row + height - 1, col + width - 1), tab: tabs[random(3)]! };
			});
			reads.add(formula, ranges);
			all.set(formula, ranges);
			const [other] = [...all.keys()].slice(random(all.size));
			if (random(3) > 0) continue;
			reads.remove(other!);
			all.delete(other!);
		}
		for (let i = 0; i < 500; i++) {
			const [row, col, tab] = [random(highest + 1000), random(9), tabs[random(3)]!];
			const found = new Set<Formula>();
			reads.find(row, col, tab, (formula) => found.add(formula));
			const expected = [...all].filter(([, ranges]) =>
				ranges.some((of) => tab === of.tab && row >= of.row && row <= of.toRow && col >= of.col && col <= of.toCol),
			);
			expect(found).toEqual(new Set(expected.map(([formula]) => formula)));
		}
	});
});

describe('pages with the same log show the same values', () => {
	const seed = Number(process.env.PG_SHEET_SEED ?? 20260101);
	const times = process.env.LONG ? 400 : 40;

	test(`random edits, heard in parts of any size, and all at once: seed ${seed}`, async () => {
		const random = randomOf(seed);
		const pick = <T>(list: readonly T[]): T => list[random(list.length)]!;
		const names = ['A', 'B', 'C', 'D', 'E'].flatMap((col) => [1, 2, 3, 4, 5, 6].map((row) => `${col}${row}`));
		const cell = () => pick(names);
		const content = () =>
			pick<() => string | number | boolean | null>([
				() => random(5),
				() => random(5),
				() => null,
				() => null,
				() => 'text',
				() => `=${cell()}+${cell()}`,
				() => `=SUM(${cell()}:${cell()})`,
				() => `=SEQUENCE(${1 + random(3)},${1 + random(3)})`,
				() => `=SEQUENCE(MOD(N(${cell()}),4)+1)`,
				() => `=${pick(['A', 'B', 'C', 'D'])}1:${pick(['A', 'B', 'C', 'D'])}${1 + random(4)}`,
				() => `=IFERROR(${cell()},"none")`,
				() => `=INDIRECT("${pick(['A', 'B'])}"&MOD(N(${cell()}),6)+1)`,
				() => `=COUNTA(${pick(['A:A', 'B:C', '2:2', 'A1:E1048576'])})`,
				() => `=1/${cell()}`,
				() => '=RAND()',
			])();
		let [cycles, blocked] = [0, 0];
		for (let round = 0; round < times; round++) {
			const pages = [new Computed(), new Computed()];
			for (let i = 0; i < 12; i++) {
				const edits = Object.fromEntries(Array.from({ length: 1 + random(4) }, () => [cell(), content()]));
				await pages[0]!.write(edits);
				// The other page hears of several before it has computed.
				await pages[1]!.write(edits, random(2) === 0);
			}
			for (const page of pages) await page.settled();
			const fresh = new Computed();
			await fresh.write(Object.fromEntries(pages[0]!.contents));
			const all = [...pages, fresh].map((page) => Object.fromEntries(names.concat('F1', 'F2', 'A7', 'A8', 'B7').map((name) => [name, page.of(name)[0]])));
			const formulas = Object.fromEntries([...pages[0]!.contents].filter(([, value]) => String(value).startsWith('=')));
			const shownOf = (page: Record<string, unknown>) =>
				Object.fromEntries(Object.entries(page).filter(([name]) => !pages[0]!.contents.has(name) || name in formulas));
			expect(shownOf(all[1]!), JSON.stringify(Object.fromEntries(pages[0]!.contents))).toEqual(shownOf(all[0]!));
			expect(shownOf(all[2]!), JSON.stringify(Object.fromEntries(pages[0]!.contents))).toEqual(shownOf(all[0]!));
			const shown = Object.values(all[0]!);
			cycles += shown.includes('#CYCLE!') ? 1 : 0;
			blocked += shown.includes('#SPILL!') ? 1 : 0;
		}
		expect(Math.min(cycles, blocked)).toBeGreaterThan(times / 10);
	});
});

describe('a value follows from what its formula reads, whatever was computed before', () => {
	/** Each formula alone, and behind the others. */
	async function expectValues(data: Record<string, string | number | boolean>, before: string[], wanted: Record<string, unknown>): Promise<void> {
		const sheet = new Computed();
		await sheet.write(data);
		await sheet.write(Object.fromEntries(before.map((formula, i) => [`Y${i + 1}`, formula])));
		const formulas = Object.keys(wanted);
		await sheet.write(Object.fromEntries(formulas.map((formula, i) => [`Z${i + 1}`, formula])));
		const shown = sheet.of(...formulas.map((_, i) => `Z${i + 1}`));
		expect(Object.fromEntries(formulas.map((formula, i) => [formula, shown[i]]))).toEqual(wanted);
	}

	test('SORT() leaves the range as it is', () => expectValues({ A1: 3, A2: 1, A3: 2 }, ['=SORT(A1:A3)'], { '=INDEX(A1:A3,1)': 3, '=INDEX(A1:A3,2)': 1 }));

	test('SUMIF() leaves the cell as it is from which on it adds up', () =>
		expectValues({ A1: 3, A2: 1, A3: 2, B1: 5 }, ['=SUMIF(A1:A3,">1",B1)'], { '=B1': 5, '=B1+1': 6, '=ROWS(B1)': 1 }));

	test('comparisons with a column', () =>
		expectValues({ A1: 1, A2: '12', A3: 'Text', A5: true, A6: 2.5 }, ['=SUM(--(A1:A6=2))', '=SUM(--(A1:A6=3))', '=SUM(--(A1:A6=4))', '=A1=10', '=A1:A6<>1'], {
			'=SUM(--(A1:A6=12))': 0,
			'=SUM(--(A1:A6="12"))': 1,
			'=SUM(--(A1:A6=0))': 1,
			'=SUM(--(A1:A6=1))': 1,
			'=SUM(--EXACT(A1:A6,"text"))': 0,
			'=MOD(1,A1=10)': '#DIV/0!',
			'=ISLOGICAL(A4=5)': 1,
			'=COMPARE(1,2)': 0,
		}));

	test.each([3, 4])('random formulas in any order: seed %i', async (seed) => {
		const contents = Object.fromEntries(
			data.flatMap((line, row) => line.map((content, col) => [`${'ABCDEFG'[col]}${row + 1}`, content])).filter(([, content]) => content !== ''),
		);
		const formulas = randomFormulas(seed, 2000).map((formula, i) => [`${'KLMNOPQRST'[i % 10]}${Math.floor(i / 10) + 1}`, formula] as const);
		const values = async (order: (readonly [string, string])[]) => {
			const sheet = new Computed();
			await sheet.write({ ...contents, ...Object.fromEntries(order) });
			return Object.fromEntries(formulas.map(([name, formula]) => [`${name}${formula}`, sheet.of(name)[0]]));
		};
		expect(await values([...formulas].reverse())).toEqual(await values(formulas));
	});
});
