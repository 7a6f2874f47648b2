// cell-editor.ts - Univer's editor of a cell: its text, how structure edits move it, and Home and End, which Univer lacks there.
import { DOCS_NORMAL_EDITOR_UNIT_ID_KEY, ICommandService, IUniverInstanceService, RANGE_DIRECTION, UniverInstanceType } from '@univerjs/core';
import type { DocumentDataModel, Injector } from '@univerjs/core';
import { DocSelectionManagerService } from '@univerjs/docs';
import { IEditorService, InsertCommand } from '@univerjs/docs-ui';
import { IEditorBridgeService } from '@univerjs/sheets-ui';
import { moveContent, movePlace } from '../../v2/lines';
import type { StructureEdit } from '../../v2/messages';

type Bridge = IEditorBridgeService & { _currentEditCell?: { primary: Record<string, number> } | null };

export class CellEditor {
	constructor(private readonly injector: () => Injector | null) {}

	private get<T>(service: Parameters<Injector['get']>[0]): T {
		return this.injector()!.get(service as never) as T;
	}

	/** Univer would replace the text in the open editor when the cell changes, or is read again. */
	keepText(): void {
		const { bridge } = this;
		const refresh = bridge.refreshEditCellState.bind(bridge);
		bridge.refreshEditCellState = () => {
			if (!this.isOpen) refresh();
		};
	}

	private get bridge(): Bridge {
		return this.get<Bridge>(IEditorBridgeService);
	}

	get isOpen(): boolean {
		return this.injector() !== null && this.bridge.isVisible().visible;
	}

	/** The text in the open editor; null if none is open. */
	text(): string | null {
		if (!this.isOpen) return null;
		const document = this.get<IUniverInstanceService>(IUniverInstanceService).getUnit<DocumentDataModel>(DOCS_NORMAL_EDITOR_UNIT_ID_KEY);
		return document?.getBody()?.dataStream.replace(/\r\n$/, '').replace(/\r/g, '\n') ?? null;
	}

	/** Moves the editor and the references in its text with its cell. Returns the text if the cell is deleted. */
	move(change: StructureEdit): string | null {
		const cell = this.bridge._currentEditCell;
		const text = this.text();
		if (!cell || text === null) return null;
		const { primary } = cell;
		const place = movePlace({ row: primary.actualRow!, col: primary.actualColumn! }, change);
		if (!place) return text;
		// Univer moves the edited cell, but not the editor's box.
		cell.primary = {
			...primary,
			actualRow: place.row,
			actualColumn: place.col,
			startRow: place.row,
			endRow: place.row,
			startColumn: place.col,
			endColumn: place.col,
		};
		this.bridge.refreshEditCellPosition(false);
		const moved = moveContent(text, change);
		if (moved !== undefined && moved !== text) this.replace(text, moved);
		return null;
	}

	/** Replaces what differs, as typing does. The cursor stays behind the characters that it was behind. */
	private replace(before: string, after: string): void {
		const unitId = this.get<IEditorService>(IEditorService).getFocusId() ?? DOCS_NORMAL_EDITOR_UNIT_ID_KEY;
		const cursor = this.get<DocSelectionManagerService>(DocSelectionManagerService).getActiveTextRange()?.startOffset ?? before.length;
		let start = 0;
		while (before[start] === after[start]) start++;
		let rest = 0;
		while (rest < Math.min(before.length, after.length) - start && before.at(-1 - rest) === after.at(-1 - rest)) rest++;
		const end = before.length - rest;
		const dataStream = after.slice(start, after.length - rest);
		const moved = cursor <= start ? cursor : Math.max(start, cursor + after.length - before.length);
		const range = { startOffset: start, endOffset: end, collapsed: start === end };
		void this.get<ICommandService>(ICommandService).executeCommand(InsertCommand.id, {
			unitId,
			range,
			segmentId: '',
			body: { dataStream },
			cursorOffset: moved - start,
		});
	}
}

/** Moves the cursor to the start or the end of its line; with Ctrl, of the text; with Shift, selects. Returns false for other keys. */
export function moveCursor(injector: Injector, { key, ctrlKey, shiftKey, altKey, metaKey }: KeyboardEvent): boolean {
	const selections = injector.get(DocSelectionManagerService);
	const range = selections.getActiveTextRange();
	const text = injector.get(IUniverInstanceService).getCurrentUnitOfType<DocumentDataModel>(UniverInstanceType.UNIVER_DOC)?.getBody()?.dataStream;
	if ((key !== 'Home' && key !== 'End') || altKey || metaKey || !range || !text) return false;
	const backward = range.direction === RANGE_DIRECTION.BACKWARD;
	const [anchor, focus] = backward ? [range.endOffset!, range.startOffset!] : [range.startOffset!, range.endOffset!];
	const [start, end] = ctrlKey ? [0, text.length - 2] : [text.slice(0, focus).lastIndexOf('\r') + 1, text.indexOf('\r', focus)];
	const to = key === 'Home' ? start : end;
	selections.replaceTextRanges([{ startOffset: shiftKey ? anchor : to, endOffset: to }], false);
	return true;
}
