// computing_page.ts - a grid of Univer without its UI, whose formulas are computed as in the page, for tests.
import { ICommandService, type IWorkbookData, LocaleType, LogLevel, Univer, UniverInstanceType, type Workbook } from '@univerjs/core';
import { FormulaDataModel, UniverFormulaEnginePlugin } from '@univerjs/engine-formula';
import { UniverSheetsPlugin } from '@univerjs/sheets';
import { vi } from 'vitest';
import { Calculation } from '../../src/formulas/calculation';
import { Evaluator } from '../../src/formulas/evaluator';
import { Teller } from '../../src/formulas/tell';
import type { FromWorker, ToWorker } from '../../src/formulas/messages';
import type { Place, StructureEdit } from '../../src/v2/messages';
import { Contents } from '../../src/view/cells/contents';
import { Computing, type ComputingOptions, type StoredValues, type WorkerLike } from '../../src/view/formulas/computing';

export const evaluator = new Evaluator();
const structureMutations = { insertRows: 'insert-row', insertColumns: 'insert-col', deleteRows: 'remove-rows', deleteColumns: 'remove-col' };
export const ids = { unitId: 'page', subUnitId: 'page' };
export const wait = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
export const placeOf = (name: string): Place => ({ row: Number(name.slice(1)) - 1, col: name.charCodeAt(0) - 65 });

/** Computes in this thread. What both sides say waits in a queue, as between threads. */
export class TestWorker implements WorkerLike {
	onmessage: ((event: never) => void) | null = null;
	onerror: ((event: never) => void) | null = null;
	ended = false;
	heard: ToWorker[] = [];
	private teller: Teller | undefined;

	postMessage(message: ToWorker): void {
		this.heard.push(structuredClone(message));
		setTimeout(() => this.hear(message), 0);
	}

	terminate(): void {
		this.ended = true;
	}

	say(data: FromWorker): void {
		if (!this.ended) this.onmessage?.({ data } as never);
	}

	protected hear(message: ToWorker): void {
		if (this.ended) return;
		if (message.t === 'start') {
			const post = (data: FromWorker) => void setTimeout(() => this.say(structuredClone(data)), 0);
			const failed = (error: unknown) => {
				throw error;
			};
			this.teller = new Teller(new Calculation(evaluator, { stopped: new Set(message.stopped), careful: message.careful, post, pause: wait, failed }));
			evaluator.changedAll();
			post({ t: 'ready' });
		} else this.teller!.tell(message);
	}
}

/** A worker that answers nothing by itself. */
export class Mute extends TestWorker {
	protected override hear(): void {}
}

/** A grid of Univer without its UI, and its formulas. */
export class Page {
	readonly workers: TestWorker[] = [];
	readonly events: string[] = [];
	readonly univer = new Univer({ locale: LocaleType.EN_US, locales: { [LocaleType.EN_US]: {} }, logLevel: LogLevel.SILENT, override: [] });
	readonly book: Workbook;
	readonly contents: Contents;
	readonly computing: Computing;
	readonly commands: ICommandService;
	seq = 1;
	/** It is in no book. */
	others: ComputingOptions['others'] = { listen: (listener) => listener.names([]), want: () => {}, close: () => {} };
	/** What the server has stored. */
	stored: () => Promise<StoredValues> = () => Promise.reject(new Error('no answer'));
	private computed = 0;
	private arrays: Record<number, Record<number, { v: unknown }>> = {};

	constructor(make: () => TestWorker = () => new TestWorker()) {
		this.univer.registerPlugin(UniverFormulaEnginePlugin, { notExecuteFormula: true });
		this.univer.registerPlugin(UniverSheetsPlugin, { notExecuteFormula: true });
		this.book = this.univer.createUnit<Partial<IWorkbookData>, Workbook>(UniverInstanceType.UNIVER_SHEET, {
			id: 'page',
			sheetOrder: ['page'],
			sheets: { page: { id: 'page', name: 'Page', rowCount: 60, columnCount: 20 } },
		});
		const injector = this.univer.__getInjector();
		this.commands = injector.get(ICommandService);
		const formulas = injector.get(FormulaDataModel);
		this.commands.onCommandExecuted(({ id, params }) => {
			if (id === 'formula.mutation.set-array-formula-data')
				this.arrays = structuredClone((params as { arrayFormulaCellData: never }).arrayFormulaCellData['page']['page']);
		});
		const { book, commands } = this;
		const sheet = book.getSheetBySheetId('page')!;
		const extent = { growTo() {} } as never;
		this.contents = new Contents({
			book,
			sheet,
			commands,
			formulas,
			extent,
			heights: { changed() {} } as never,
			onShown() {},
			onFilled: (cells) => this.computing.note(cells),
		});
		this.computing = new Computing({
			...{ book, sheet, commands, model: formulas, extent, off: false, seq: () => this.seq, stored: () => this.stored(), others: this.others },
			contentAt: (row, col) => this.contents.contentAt(row, col),
			makeWorker: () => {
				this.workers.push(make());
				return this.workers.at(-1)!;
			},
			events: {
				onStopped: ({ row, col }) => this.events.push(`stopped ${row},${col}`),
				onSlow: () => this.events.push('slow'),
				onComputed: () => this.computed++,
				onOff: () => this.events.push('off'),
			},
		});
	}

	get worker(): TestWorker {
		return this.workers.at(-1)!;
	}

	/** What others, or the user, write. */
	write(contents: Record<string, string>): void {
		this.contents.apply(Object.entries(contents).map(([name, content]) => ({ ...placeOf(name), content })));
	}

	move(change: StructureEdit): void {
		const ofRows = change.kind.endsWith('Rows');
		const [first, last] = [change.at, change.at + change.n - 1];
		const range = ofRows ? { startRow: first, endRow: last, startColumn: 0, endColumn: 19 } : { startRow: 0, endRow: 59, startColumn: first, endColumn: last };
		this.commands.syncExecuteCommand(`sheet.mutation.${structureMutations[change.kind]}`, { ...ids, range }, { fromCollab: true });
		this.computing.move(change);
	}

	async settled(): Promise<void> {
		const before = this.computed;
		await vi.waitUntil(() => this.computed > before, { timeout: 30000, interval: 1 });
	}

	raw(name: string) {
		const { row, col } = placeOf(name);
		return this.book.getSheetBySheetId('page')!.getCellRaw(row, col);
	}

	/** The value and the number format that a cell shows. */
	of(...names: string[]): unknown[] {
		return names.map((name) => this.raw(name)?.v ?? null);
	}

	/** What arrays fill. */
	filled(...names: string[]): unknown[] {
		return names.map((name) => this.arrays[placeOf(name).row]?.[placeOf(name).col]?.v ?? null);
	}

	format(name: string): string | undefined {
		return this.book.getStyles().getStyleByCell(this.raw(name))?.n?.pattern;
	}
}
