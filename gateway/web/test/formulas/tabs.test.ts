// tabs.test.ts - formulas that read other tabs of their book.
import { describe, expect, test } from 'vitest';
import { Calculation } from '../../src/formulas/calculation';
import { Evaluator } from '../../src/formulas/evaluator';
import type { FromWorker } from '../../src/formulas/messages';
import type { StructureEdit } from '../../src/v2/messages';
import { randomOf } from '../person';

const evaluator = new Evaluator();
const placeOf = (name: string): [number, number] => {
	const [, letters, digits] = /^([A-Z]+)([0-9]+)$/.exec(name)!;
	return [Number(digits) - 1, [...letters!].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1];
};

type Contents = Record<string, string | number | null>;

/** A sheet and the other tabs of its book, which it gets when a formula asks for them. */
class Book {
	private n = 0;
	private done = 0;
	readonly shown = new Map<string, unknown>();
	readonly wanted: number[] = [];
	readonly refused = new Set<number>();
	failure: unknown = null;
	readonly calculation: Calculation;
	private readonly here = new Set([0]);

	constructor(readonly tabs: { name: string; contents: Contents }[]) {
		evaluator.changedAll();
		this.calculation = new Calculation(evaluator, {
			...{ stopped: new Set(), careful: false, pause: async () => {} },
			post: (message) => this.hear(message),
			failed: (error) => (this.failure = error),
		});
		this.name();
		this.tell(0, tabs[0]!.contents);
	}

	private hear(message: FromWorker): void {
		if (message.t === 'done') this.done = message.n;
		if (message.t === 'wants') {
			this.wanted.push(...message.tabs);
			setTimeout(() => message.tabs.forEach((tab) => this.load(tab)), 0);
		}
		if (message.t !== 'results') return;
		for (const [row, col, cell] of [...message.filled, ...message.values]) this.shown.set(`${row},${col}`, cell?.v ?? null);
	}

	/** Tells the names. */
	name(): void {
		this.calculation.setNames(
			++this.n,
			this.tabs.map(({ name }, tab) => ({ tab, name })),
		);
	}

	private tell(tab: number, contents: Contents, more = false): void {
		const entries = Object.entries(contents).map(([name, value]) => [...placeOf(name), value] as const);
		const isFormula = (value: unknown) => typeof value === 'string' && value.startsWith('=');
		this.calculation.set(
			++this.n,
			entries.filter(([, , value]) => !isFormula(value)).map(([row, col, value]) => [row, col, value]),
			entries.filter(([, , value]) => isFormula(value)).map(([row, col, value]) => [row, col, value as string]),
			more,
			tab,
		);
	}

	load(tab: number): void {
		if (this.refused.has(tab)) return this.calculation.setState(++this.n, tab, 'refused');
		this.here.add(tab);
		this.tell(tab, this.tabs[tab]!.contents, true);
		this.tell(tab, {});
		this.calculation.setState(++this.n, tab, 'here');
	}

	move(tab: number, change: StructureEdit): void {
		this.calculation.move(++this.n, change, tab);
	}

	/** Edits a tab; the worker hears of those that it has asked for. */
	async write(tab: number, contents: Contents): Promise<void> {
		Object.assign(this.tabs[tab]!.contents, contents);
		if (this.here.has(tab)) this.tell(tab, contents);
		await this.settled();
	}

	async settled(): Promise<void> {
		while (this.done < this.n && this.failure === null) await new Promise((resolve) => setTimeout(resolve, 0));
		expect(this.failure).toBe(null);
	}

	of(...names: string[]): unknown[] {
		return names.map((name) => this.shown.get(placeOf(name).join()) ?? null);
	}

	/** Values of formulas in the first tab, one below the other. */
	static async values(formulas: string[], tabs: { name: string; contents: Contents }[]): Promise<unknown[]> {
		const book = new Book([{ name: 'Own', contents: Object.fromEntries(formulas.map((formula, i) => [`Z${i + 1}`, formula])) }, ...tabs]);
		await book.settled();
		return book.of(...formulas.map((_, i) => `Z${i + 1}`));
	}
}

describe('references across tabs', () => {
	test('cells, ranges, whole columns and rows, names in quotes, functions', async () => {
		const other = { name: 'Other', contents: { A1: 1, A2: 2, B1: '=A1+A2', B2: 'x', C5: '=SUM(A1:A2)*2' } };
		const quoted = { name: "a b'c", contents: { A1: '=Other!B1*10' } };
		const wanted: Record<string, unknown> = {
			...{ '=Other!B1': 3, '=other!b1+1': 4, '=SUM(Other!A1:B2)': 6, '=SUM(Other!A:A)': 3, '=SUM(Other!1:1)': 4, "='Other'!$A$2": 2 },
			...{ "='a b''c'!A1": 30, "=SUM('A B''C'!A1:A9)": 30, '=INDIRECT("Other!A"&2)': 2, '=SUM(INDIRECT("Other!A1:A2"))': 3 },
			...{ '=OFFSET(Other!A1,1,0)': 2, '=SUM(OFFSET(Other!A1,0,0,2,1))': 3, '=VLOOKUP(2,Other!A1:B2,2,FALSE)': 'x', '=MATCH(2,Other!A:A,0)': 2 },
			...{ '=COUNTIF(Other!A:B,">1")': 2, '=Other!B2&"!"': 'x!', '=SUMPRODUCT(Other!A1:A2,Other!A1:A2)': 5, '=ISFORMULA(Other!B1)': 1 },
			...{ '=FORMULATEXT(Other!B1)': '=A1+A2', '=ROWS(Other!A1:A7)': 7, '=Other!C5': 6, '=INDEX(Other!A1:B2,2,1)': 2, '=Other!D9': 0 },
			...{ '=SHEETS()': 3, '=SHEET()': 1, '=SHEET(Other!A1)': 2, '=SHEET("a b\'c")': 3, '=SUM(Other!A1,Own!Y1)': 1, '=ROW(Other!B7)': 7 },
			...{ '=Nowhere!A1': '#REF!', '=IFERROR(Nowhere!A1,"none")': 'none', "=INDIRECT(\"'a b''c'!A1\")": 30, '=ISREF(Other!A1)': 1 },
		};
		expect(Object.fromEntries((await Book.values(Object.keys(wanted), [other, quoted])).map((value, i) => [Object.keys(wanted)[i], value]))).toEqual(wanted);
	});

	test('names with brackets, exclamation marks and apostrophes', async () => {
		const names = ['[br]', 'a[1]b', 'x]y', 'x!y', '!', "[it's] so", 'p:q!r', '~0041', '[draft] plan'];
		const quote = (name: string) => `'${name.replaceAll("'", "''")}'`;
		const formulas = names.flatMap((name) => [
			`=${quote(name)}!A1`,
			`=SUM(${quote(name)}!A1:A2)`,
			`=INDIRECT("${quote(name)}!A1")`,
			`="${quote(name)}!A1"&${quote(name)}!A1`,
		]);
		const tabs = names.map((name, i) => ({ name, contents: { A1: i + 1, A2: 100 } }));
		const wanted = names.flatMap((name, i) => [i + 1, i + 101, i + 1, `${quote(name)}!A1${i + 1}`]);
		expect(await Book.values(formulas, tabs)).toEqual(wanted);
	});

	test('an array of another tab fills cells of this one', async () => {
		const book = new Book([
			{ name: 'Own', contents: { A1: '=Other!A1:B2', D1: '=SORT(Other!A1:A3,1,-1)' } },
			{ name: 'Other', contents: { A1: 1, A2: 3, A3: 2, B1: 5, B2: '=A1+A2' } },
		]);
		await book.settled();
		expect(book.of('A1', 'A2', 'B1', 'B2', 'D1', 'D2', 'D3')).toEqual([1, 3, 5, 4, 3, 2, 1]);
		await book.write(1, { A2: 7 });
		expect(book.of('A1', 'A2', 'B1', 'B2', 'D1', 'D2', 'D3')).toEqual([1, 7, 5, 8, 7, 2, 1]);
	});

	test('what is filled in another tab is read, and followed', async () => {
		const book = new Book([
			{ name: 'Own', contents: { A1: '=SUM(Other!A:A)' } },
			{ name: 'Other', contents: { A1: '=SEQUENCE(B1)', B1: 3 } },
		]);
		await book.settled();
		expect(book.of('A1')).toEqual([6]);
		await book.write(1, { B1: 5 });
		expect(book.of('A1')).toEqual([15]);
		await book.write(1, { A3: 'in the way' });
		expect(book.of('A1')).toEqual(['#SPILL!']);
	});

	test('only the tabs that are read are asked for, each once, through others too', async () => {
		const book = new Book([
			{ name: 'Own', contents: { A1: '=B!A1', A2: '=B!A2' } },
			{ name: 'Unused', contents: { A1: 1 } },
			{ name: 'B', contents: { A1: '=C!A1+1', A2: '=Own!A3' } },
			{ name: 'C', contents: { A1: 41 } },
		]);
		await book.settled();
		expect([book.wanted, book.of('A1', 'A2')]).toEqual([
			[2, 3],
			[42, 0],
		]);
		await book.write(0, { A3: 'here' });
		expect(book.of('A2')).toEqual(['here']);
		await book.write(3, { A1: 1 });
		expect(book.of('A1')).toEqual([2]);
		expect(book.calculation.others).toEqual([2, 3]);
	});

	test('formulas of several tabs that wait for each other are a circle', async () => {
		const book = new Book([
			{ name: 'Own', contents: { A1: '=B!A1+1', A2: '=B!A2' } },
			{ name: 'B', contents: { A1: '=C!A1+1', A2: 5 } },
			{ name: 'C', contents: { A1: '=Own!A1+1' } },
		]);
		await book.settled();
		expect(book.of('A1', 'A2')).toEqual(['#CYCLE!', 5]);
		await book.write(2, { A1: 1 });
		expect(book.of('A1', 'A2')).toEqual([3, 5]);
	});

	test('a tab that cannot be read is an error until it can be', async () => {
		const book = new Book([
			{
				name: 'Own',
				contents: {
					A1: '=B!A1',
					A2: '=IFERROR(SUM(B!A1:A3),"no")',
					A3: '=INDIRECT("B!A1")',
					A4: '=COUNTIF(B!A1:A3,2)',
					A5: '=SUMIF(INDIRECT("B!A1:A3"),2)',
					A6: '=XLOOKUP(2,B!A1:A3,B!A1:A3)',
				},
			},
			{ name: 'B', contents: { A1: 2 } },
		]);
		book.refused.add(1);
		await book.settled();
		expect(book.of('A1', 'A2', 'A3', 'A4', 'A5', 'A6')).toEqual(['#REF!', 'no', '#REF!', '#REF!', '#REF!', '#REF!']);
		book.refused.clear();
		book.load(1);
		await book.settled();
		expect(book.of('A1', 'A2', 'A3', 'A4', 'A5', 'A6')).toEqual([2, 2, 2, 1, 2, 2]);
	});

	test('names that change, and tabs that come and go', async () => {
		const book = new Book([
			{ name: 'Own', contents: { A1: '=Later!A1', A2: '=SHEETS()', A3: '=B!A1' } },
			{ name: 'B', contents: { A1: 2 } },
		]);
		await book.settled();
		expect(book.of('A1', 'A2', 'A3')).toEqual(['#REF!', 2, 2]);
		book.tabs.push({ name: 'later', contents: { A1: 7 } });
		book.name();
		await book.settled();
		expect(book.of('A1', 'A2', 'A3')).toEqual([7, 3, 2]);
		// B is called otherwise, and a tab with the name Later is another one now.
		Object.assign(book.tabs[1]!, { name: 'LATER' });
		book.tabs[2]!.name = 'C';
		book.name();
		await book.settled();
		expect(book.of('A1', 'A2', 'A3')).toEqual([2, 3, '#REF!']);
		book.tabs.splice(1, 2);
		book.name();
		await book.settled();
		expect(book.of('A1', 'A2', 'A3')).toEqual(['#REF!', 1, '#REF!']);
	});

	test('a formula that is told again shows nothing elsewhere', async () => {
		const book = new Book([
			{ name: 'Own', contents: { A1: '=B!A2' } },
			{ name: 'B', contents: { A1: '=A2*10', A2: 4 } },
		]);
		await book.settled();
		await book.write(1, { A1: '=A2*10' });
		expect(book.of('A1')).toEqual([4]);
	});

	test('rows that are inserted in the other tab', async () => {
		const book = new Book([
			{ name: 'Own', contents: { A1: '=B!A2' } },
			{ name: 'B', contents: { A1: 1, A2: '=A1*2', A3: 9 } },
		]);
		await book.settled();
		book.move(1, { kind: 'insertRows', at: 0, n: 1 });
		// References follow as cells.
		await book.write(1, { A3: '=A2*2' });
		await book.write(0, { A1: '=B!A3' });
		expect(book.of('A1')).toEqual([2]);
		await book.write(1, { A2: 5 });
		expect(book.of('A1')).toEqual([10]);
	});

	test('a random book shows what one sheet with the same cells shows', async () => {
		const times = process.env.LONG ? 200 : 25;
		for (let seed = 1; seed <= times; seed++) {
			const random = randomOf(seed);
			const size = 6;
			const names = ['Own', 'B', 'c d'];
			const cellAt = (row: number, col: number) => `${String.fromCharCode(65 + col)}${row + 1}`;
			/** As a formula of the book, and of one sheet with the tabs beside each other. */
			const reference = (from: number): [string, string] => {
				const [tab, row, col] = [random(3), random(size), random(size)];
				const [toRow, toCol] = [Math.min(size - 1, row + random(3)), Math.min(size - 1, col + random(2))];
				const prefix = tab === from && random(2) === 0 ? '' : tab === 2 ? "'c d'!" : `${names[tab]}!`;
				const single = random(2) === 0;
				const text = (offset: number) => (single ? cellAt(row, col + offset) : `SUM(${cellAt(row, col + offset)}:${cellAt(toRow, toCol + offset)})`);
				return [text(0).replace(/(\(?)([A-Z]+[0-9]+)/, `$1${prefix}$2`), text(tab * size)];
			};
			const content = (tab: number): [string | number | null, string | number | null] => {
				const kind = random(6);
				if (kind === 0) return [null, null];
				if (kind < 3) {
					const number = random(100);
					return [number, number];
				}
				const [a, b] = [reference(tab), reference(tab)];
				return [`=${a[0]}+${b[0]}`, `=${a[1]}+${b[1]}`];
			};
			const tabs = names.map((name) => ({ name, contents: {} as Contents }));
			const single = { name: 'One', contents: {} as Contents };
			const fill = (tab: number, row: number, col: number) => {
				const [own, one] = content(tab);
				const name = cellAt(row, col);
				const placed = cellAt(row, col + tab * size);
				return { name, own, placed, one };
			};
			for (let tab = 0; tab < 3; tab++)
				for (let row = 0; row < size; row++)
					for (let col = 0; col < size; col++) {
						const { name, own, placed, one } = fill(tab, row, col);
						tabs[tab]!.contents[name] = own;
						single.contents[placed] = one;
					}
			const book = new Book(tabs);
			await book.settled();
			const shownOf = async (contents: Contents) => {
				const one = new Book([{ name: 'One', contents }]);
				await one.settled();
				return one.shown;
			};
			const compare = async () => {
				const expected = await shownOf(single.contents);
				for (let row = 0; row < size; row++)
					for (let col = 0; col < size; col++)
						if (String(tabs[0]!.contents[cellAt(row, col)]).startsWith('='))
							expect([seed, cellAt(row, col), book.shown.get(`${row},${col}`)]).toEqual([seed, cellAt(row, col), expected.get(`${row},${col}`)]);
				evaluator.changedAll();
			};
			await compare();
			for (let edit = 0; edit < 6; edit++) {
				const tab = random(3);
				const { name, own, placed, one } = fill(tab, random(size), random(size));
				single.contents[placed] = one;
				await book.write(tab, { [name]: own });
			}
			await compare();
		}
	});
});
