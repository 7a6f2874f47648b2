// computed.ts - a sheet whose formulas are computed as in the worker, for tests.
import { expect } from 'vitest';
import { Calculation } from '../../src/formulas/calculation';
import { Evaluator } from '../../src/formulas/evaluator';
import type { FromWorker } from '../../src/formulas/messages';

export const evaluator = new Evaluator();
const columns = (name: string): number => [...name].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
const place = (name: string): [number, number] => {
	const [, letters, digits] = /^([A-Z]+)([0-9]+)$/.exec(name)!;
	return [Number(digits) - 1, columns(letters!)];
};

/** A sheet whose formulas are computed as in the worker, and what the page shows of it. */
export class Computed {
	private n = 0;
	private done = 0;
	readonly contents = new Map<string, string | number | boolean>();
	shown = new Map<string, unknown>();
	private readonly formats = new Map<string, string | null>();
	private readonly written = new Set<string>();
	calculation: Calculation;
	stopped = new Set<string>();
	readonly failures: unknown[] = [];
	/** Called when messages may be heard. */
	paused = () => {};

	constructor() {
		evaluator.changedAll();
		const options = {
			stopped: this.stopped,
			careful: false,
			post: (message: FromWorker) => this.hear(message),
			pause: async () => this.paused(),
			failed: (error: unknown) => this.failures.push(error),
		};
		this.calculation = new Calculation(evaluator, options);
		// It is in no book.
		this.calculation.setNames(0, []);
	}

	private hear(message: FromWorker): void {
		if (message.t === 'done') this.done = message.n;
		if (message.t !== 'results') return;
		for (const [row, col, cell] of [...message.filled, ...message.values])
			this.formats.set(`${row},${col}`, typeof cell?.s === 'object' ? (cell.s?.n?.pattern ?? null) : null);
		// As the grid does: what arrays fill is shown where nothing is.
		for (const [row, col, cell] of message.filled) if (!this.written.has(`${row},${col}`)) this.shown.set(`${row},${col}`, cell?.v ?? null);
		for (const [row, col, cell] of message.values) this.shown.set(`${row},${col}`, cell?.v ?? null);
	}

	async write(contents: Record<string, string | number | boolean | null>, slowly = false): Promise<void> {
		const entries = Object.entries(contents).map(([name, value]) => [...place(name), value] as const);
		const isFormula = (value: unknown) => typeof value === 'string' && value.startsWith('=');
		for (const [name, value] of Object.entries(contents)) {
			// As the grid does.
			this.shown.delete(place(name).join());
			if (value === null) this.contents.delete(name);
			else this.contents.set(name, value);
			if (value === null) this.written.delete(place(name).join());
			else this.written.add(place(name).join());
		}
		this.calculation.set(
			++this.n,
			entries.filter(([, , value]) => !isFormula(value)).map(([row, col, value]) => [row, col, value]),
			entries.filter(([, , value]) => isFormula(value)).map(([row, col, value]) => [row, col, value as string]),
		);
		if (!slowly) await this.settled();
	}

	async settled(): Promise<void> {
		while (this.done < this.n && this.failures.length === 0) await new Promise((resolve) => setTimeout(resolve, 0));
	}

	of(...names: string[]): unknown[] {
		return names.map((name) => this.shown.get(place(name).join()) ?? null);
	}

	/** The number formats of the values. */
	formatsOf(...names: string[]): (string | null)[] {
		return names.map((name) => this.formats.get(place(name).join()) ?? null);
	}
}

export async function values(contents: Record<string, string | number | boolean>, ...names: string[]): Promise<unknown[]> {
	const sheet = new Computed();
	await sheet.write(contents);
	return sheet.of(...names);
}

/** Each formula has this value, in a sheet with these contents. */
export async function expectValues(contents: Record<string, string | number | boolean>, wanted: Record<string, unknown>): Promise<void> {
	const formulas = Object.keys(wanted);
	const sheet = new Computed();
	await sheet.write(contents);
	await sheet.write(Object.fromEntries(formulas.map((formula, i) => [`C${i + 1}`, formula])));
	expect(Object.fromEntries(formulas.map((formula, i) => [formula, sheet.of(`C${i + 1}`)[0]]))).toEqual(wanted);
}
