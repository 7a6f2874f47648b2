// guard.ts - what the user's commands do. No command changes what the server cannot store, or does it by itself where the sheet
// must change first: a command that inserts, deletes or moves rows or columns is reported, not executed.
//
// Univer's model is the page's only copy of the cells. A mutation of Univer is a partial patch ("formula: null" may mean that
// the value stays). Therefore a cell is read before the user's first mutation of it and after the last one, and both states
// are reported.
import { ICommandService, IUndoRedoService } from '@univerjs/core';
import type { IExecutionOptions, Injector, IRange, Worksheet } from '@univerjs/core';
import { SheetsSelectionsService } from '@univerjs/sheets';
import { editOf } from '../../sheet/undo';
import { maxCols, maxRows } from '../../v2/lines';
import type { Place, Range } from '../../v2/messages';
import { cellsOfMutation, leavePlain, UserChanges } from '../cells/changes';
import type { Contents } from '../cells/contents';
import type { GridEvents } from '../events';
import type { GridExtent } from '../extent';
import type { GridLayout } from '../layout';
import type { Pointers } from '../pointers';
import { moveCommands, structureCommands } from '../structure';
import { blockedKind, changesCells, changesLayout, readsSelection } from './blocked';
import { Merging } from './merging';
import type { Typing } from './typing';

const setValues = 'sheet.mutation.set-range-values';

type Execute = (id: string, params?: any, options?: IExecutionOptions) => unknown;

/** Mutations that the page itself executes, or the calculation of formulas, which marks formulas that others write, too. Any other that changes cells is the user's. */
function isOurs(id: string, options?: IExecutionOptions): boolean {
	if (options?.fromCollab || options?.fromFormula || options?.applyFormulaCalculationResult) return true;
	return Boolean(options?.onlyLocal) && !changesCells(id);
}

interface GuardParts {
	injector: Injector;
	unitId: string;
	sheet: Worksheet;
	contents: Contents;
	extent: GridExtent;
	pointers: Pointers;
	layout: GridLayout;
	events: GridEvents;
	typing: Typing;
	readOnly(): boolean;
	/** The grid has the focus, not an editor of text. */
	isFocused(): boolean;
}

export class Guard {
	private readonly changes: UserChanges;
	private readonly merging: Merging;
	private reporting = false;
	private history = { undos: 0, redos: 0 };
	private updateHistory = () => {};

	constructor(private readonly parts: GuardParts) {
		this.changes = new UserChanges((row, col) => parts.contents.read(row, col));
		this.merging = new Merging(parts);
		const commands = parts.injector.get(ICommandService);
		commands.syncExecuteCommand = this.wrap(commands.syncExecuteCommand.bind(commands), (done) => done) as never;
		commands.executeCommand = this.wrap(commands.executeCommand.bind(commands), (done) => Promise.resolve(done)) as never;
		this.takeHistory(parts.injector.get(IUndoRedoService));
	}

	/**
	 * Lets no command of the user change what the server cannot store. A refused mutation counts as executed, so that the
	 * rest of its command goes on. Undo and redo of the sheet are the page's own.
	 */
	private wrap(run: Execute, result: (done: boolean) => unknown): Execute {
		const { events, layout, pointers, typing } = this.parts;
		return (id, params, options) => {
			if (!typing.allows(id, params)) return result(false);
			if (id === 'doc.command-replace-snapshot') return typing.replace(() => run(id, params, options));
			if (isOurs(id, options)) return run(id, params, options);
			// The box that names the selection takes cells behind the grid, too.
			if (id === 'sheet.operation.set-selections' && !this.reach(params.selections ?? [])) {
				events.onBlocked('end');
				return result(false);
			}
			if (id.startsWith('sheet.command.') || changesCells(id)) events.beforeChange();
			const structure = structureCommands[id];
			const moves = moveCommands[id];
			const cells = changesCells(id) ? cellsOfMutation(id, params) : [];
			const kind =
				blockedKind(id) ??
				(pointers.refuses(id) ? 'moved' : undefined) ??
				(this.parts.readOnly() && (changesCells(id) || changesLayout(id) || structure || id in moveCommands) ? 'role' : this.lacking(id, cells));
			if (kind) {
				events.onBlocked(kind);
				return result(id.startsWith('sheet.mutation.'));
			}
			if (this.merging.holds(id, params)) return result(false);
			if (structure) {
				const range = (params as { range: IRange }).range;
				const [at, end] = structure.endsWith('Rows') ? [range.startRow, range.endRow] : [range.startColumn, range.endColumn];
				events.onStructure({ kind: structure, at, n: end - at + 1 });
				return result(true);
			}
			if (moves) {
				events.onMoveLines(moves(params as never));
				return result(true);
			}
			if ((id === 'univer.command.undo' || id === 'univer.command.redo') && this.parts.isFocused()) {
				if (this.parts.readOnly()) events.onBlocked('role');
				else if (id === 'univer.command.undo') events.onUndo();
				else events.onRedo();
				return result(true);
			}
			if (changesLayout(id)) {
				layout.collect(id, params as never);
				this.reportSoon();
				return result(true);
			}
			// Listeners of Univer change cells before the mutation does. Some may throw, when the cells are changed already.
			if (cells.length > 0) this.reportSoon();
			this.changes.remember(cells);
			if (id === setValues && leavePlain(params)) events.onBlocked('part');
			return run(id, params, options);
		};
	}

	/** Univer's own history has no entries of the sheet, only those of the cell editor. */
	private takeHistory(undoRedo: IUndoRedoService): void {
		const { unitId, isFocused } = this.parts;
		const history = undoRedo as IUndoRedoService & { _updateStatus(): void; _undoRedoStatus$: { next(status: object): void } };
		const push = history.pushUndoRedo.bind(history);
		history.pushUndoRedo = (item) => {
			if (item.unitID !== unitId) push(item);
		};
		const update = history._updateStatus.bind(history);
		history._updateStatus = () => (isFocused() ? history._undoRedoStatus$.next(this.history) : update());
		this.updateHistory = () => history._updateStatus();
	}

	/** Enables or disables the buttons of undo and redo. */
	showUndo(canUndo: boolean, canRedo: boolean): void {
		this.history = { undos: Number(canUndo), redos: Number(canRedo) };
		this.updateHistory();
	}

	/** Makes room for what is to be selected. Returns whether the sheet may have so many rows and columns. */
	private reach(selections: { range: IRange }[]): boolean {
		const { sheet, extent } = this.parts;
		const end = (last: 'endRow' | 'endColumn', count: number) => selections.reduce((most, { range }) => (range[last] > most ? range[last] : most), count - 1);
		const [row, col] = [end('endRow', sheet.getRowCount()), end('endColumn', sheet.getColumnCount())];
		if (row >= maxRows || col >= maxCols) return false;
		extent.growTo(row + 1, col + 1);
		return true;
	}

	/** The kind of refusal of a command that needs cells which have not been read. A single cell can be typed over. */
	private lacking(id: string, cells: Place[]): string | undefined {
		const selections = this.parts.injector.get(SheetsSelectionsService);
		const read = readsSelection(id) && this.parts.isFocused() ? selections.getCurrentSelections().map(({ range }) => this.inGrid(range)) : [];
		const written = cells.length > 1 ? cells.map(({ row, col }) => ({ row, col, toRow: row, toCol: col })) : [];
		return this.parts.events.lacks([...read, ...written]) ?? undefined;
	}

	/** The cells of a selection. A whole row or column has no ends. */
	inGrid({ startRow, startColumn, endRow, endColumn }: IRange): Range {
		const { sheet } = this.parts;
		const end = (value: number, last: number) => (Number.isNaN(value) ? last : value);
		return { row: end(startRow, 0), col: end(startColumn, 0), toRow: end(endRow, sheet.getRowCount() - 1), toCol: end(endColumn, sheet.getColumnCount() - 1) };
	}

	/** The mutations of an action (a value, then its format) are one change. */
	private reportSoon(): void {
		if (!this.reporting) queueMicrotask(() => this.report());
		this.reporting = true;
	}

	/** Each change of the user is queued by the page, or reported as not saved. */
	private report(): void {
		const { events, layout, contents, typing } = this.parts;
		this.reporting = false;
		const changes = this.changes.take((place, error) => events.onUnsaved([place], error));
		typing.reported(changes);
		for (const { row, col, before, after } of changes) if (before.style !== after.style) contents.stores(row, col);
		try {
			if (changes.some(({ after }) => after.content.startsWith('='))) contents.hasFormulas = true;
			const properties = layout.take();
			if (changes.length > 0 || properties.length > 0) events.onChanges(changes, properties);
		} catch (error) {
			events.onUnsaved(changes.map(editOf), error);
		}
	}
}
