// clipboard.ts - what Univer's clipboard knows of copied and cut cells: where they are, and which cells its marks surround.
//
// What is pasted after a copy are the cells as they were, with the references as they are now. What is pasted after a cut are the
// cells as they are now: refreshCut() reads them again before each paste.
import type { ICellData, Injector, Nullable, ObjectMatrix } from '@univerjs/core';
import { IMarkSelectionService, ISheetClipboardService } from '@univerjs/sheets-ui';
import { isOfRows, moveContent, moveSpan } from '../../v2/lines';
import type { Place, StructureEdit } from '../../v2/messages';
import { movedSelection, type Selected } from '../structure';

/** What Univer remembers of a copy. matrix: null once a cut has been pasted. */
export interface Copied {
	unitId: string;
	subUnitId: string;
	range: { rows: number[]; cols: number[] };
	matrix: ObjectMatrix<Nullable<ICellData>> | null;
	copyType: 'COPY' | 'CUT';
}

interface Cache {
	_cache: { forEach(run: (copied: Copied, id: string) => void): void };
	get(id: string): Copied | undefined;
	set(id: string, copied: Copied): void;
	del(id: string): void;
	getLastCopyId(): string | null;
}

const cacheOf = (clipboard: ISheetClipboardService) => clipboard.copyContentCache() as unknown as Cache;
const upTo = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

const cellsOf = ({ range: { rows, cols } }: Copied) => ({ startRow: rows[0]!, endRow: rows.at(-1)!, startColumn: cols[0]!, endColumn: cols.at(-1)! });

/** The rows or columns after the change; undefined if the cells cannot be told any more. */
function movedLines(lines: number[], change: StructureEdit, isCut: boolean): number[] | undefined {
	if (isCut) {
		const span = moveSpan(change, lines[0]!, lines.at(-1)!);
		return span && upTo(...span);
	}
	const moved = lines.map((line) => moveSpan(change, line, line)?.[0]);
	return moved.includes(undefined) ? undefined : (moved as number[]);
}

/** Moves what the clipboard refers to. Returns what it has lost: 'cut' or 'copy', if it was the last one. */
function moveCopies(clipboard: ISheetClipboardService, change: StructureEdit): 'cut' | 'copy' | undefined {
	const cache = cacheOf(clipboard);
	let lost: 'cut' | 'copy' | undefined;
	const gone: string[] = [];
	cache._cache.forEach((copied, id) => {
		const { range, matrix } = copied;
		if (!matrix) return;
		const isCut = copied.copyType === 'CUT';
		const key = isOfRows(change) ? 'rows' : 'cols';
		const lines = movedLines(range[key], change, isCut);
		if (!lines) {
			gone.push(id);
			if (cache.getLastCopyId() === id) lost = isCut ? 'cut' : 'copy';
			return;
		}
		copied.range = { ...range, [key]: lines };
		if (!isCut)
			matrix.forValue((_row, _col, cell) => {
				if (cell?.f) cell.f = moveContent(cell.f, change) ?? cell.f;
			});
	});
	gone.forEach((id) => cache.del(id));
	return lost;
}

/** The cells that a cut has marked, as they are now. */
export function refreshCut(clipboard: ISheetClipboardService, id: string): void {
	const copied = cacheOf(clipboard).get(id);
	if (copied?.copyType !== 'CUT' || !copied.matrix) return;
	const { unitId, subUnitId } = copied;
	const present = clipboard.generateCopyContent(unitId, subUnitId, cellsOf(copied), { copyType: copied.copyType as never });
	if (present) copied.matrix = present.matrixFragment;
}

type Clipboard = ISheetClipboardService & { _copyMarkId: string | null };
type Shape = ReturnType<IMarkSelectionService['getShapeMap']> extends Map<string, infer One> ? One : never;

/** The marks around copied cells, and that of the format painter. */
export interface Marks {
	shapes: { shape: Shape; isCopy: boolean }[];
}

/** Univer removes the marks of copied cells when rows or columns move. Call this before. */
export function marksOf(injector: Injector): Marks {
	const { _copyMarkId: copyMark } = injector.get(ISheetClipboardService) as Clipboard;
	return { shapes: [...injector.get(IMarkSelectionService).getShapeMap()].map(([id, shape]) => ({ shape, isCopy: id === copyMark })) };
}

/** Draws the marks where their cells are now. Those whose cells are deleted, or cannot be pasted any more, are gone. */
function moveMarks(injector: Injector, { shapes }: Marks, change: StructureEdit, limit: Place, lost: boolean): void {
	if (shapes.length === 0) return;
	const marks = injector.get(IMarkSelectionService);
	marks.removeAllShapes();
	for (const { shape, isCopy } of shapes) {
		const moved = isCopy && lost ? undefined : movedSelection(shape.selection as Selected, change, limit);
		const id = moved ? marks.addShape(moved as Shape['selection'], shape.exits, shape.zIndex) : null;
		if (isCopy) (injector.get(ISheetClipboardService) as Clipboard)._copyMarkId = id;
	}
}

/** Univer marks what it has copied when the browser has taken it: by then, the cells may have moved, or be deleted. */
export function followCopies(injector: Injector, onLost: (lost: 'cut' | 'copy') => void): void {
	const clipboard = injector.get(ISheetClipboardService) as Clipboard;
	const copy = clipboard.copy.bind(clipboard);
	clipboard.copy = async (options) => {
		const done = await copy(options);
		if (!done) return done;
		const id = cacheOf(clipboard).getLastCopyId();
		const copied = id === null ? undefined : cacheOf(clipboard).get(id);
		const marks = injector.get(IMarkSelectionService);
		const mark = marks.getShapeMap().get(clipboard._copyMarkId ?? '');
		if (copied && mark) {
			mark.selection = { ...mark.selection, range: { ...mark.selection.range, ...cellsOf(copied) } };
			marks.refreshShapes();
		} else if (mark) {
			clipboard.removeMarkSelection();
			onLost((options?.copyType as string | undefined) === 'CUT' ? 'cut' : 'copy');
		}
		return done;
	};
}

/** Returns the copy or the cut that has lost its cells, if it was marked. */
export function moveClipboard(injector: Injector, marks: Marks, change: StructureEdit, limit: Place): 'cut' | 'copy' | undefined {
	const clipboard = injector.get(ISheetClipboardService);
	const lost = moveCopies(clipboard, change);
	moveMarks(injector, marks, change, limit, lost !== undefined);
	// What Univer offers after a paste refers to where it was.
	clipboard.disposePasteOptionsCache();
	return marks.shapes.some(({ isCopy }) => isCopy) ? lost : undefined;
}
