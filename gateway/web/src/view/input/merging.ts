// merging.ts - what merging, copying of formats and moving do to contents and to merged cells: asks before contents are deleted,
// and refuses to divide merged cells, by name.
import { ICommandService, type Injector, type IRange, type Worksheet } from '@univerjs/core';
import { getAddMergeMutationRangeByType } from '@univerjs/sheets';
import { IFormatPainterService } from '@univerjs/sheets-ui';
import { cellName, rangeName } from '../../content';
import { isInside, overlap } from '../../sheet/arrange';
import type { Range } from '../../v2/messages';
import { rangeOf } from '../cells/reading';
import type { GridEvents } from '../events';
import { hasContent } from '../parts';
import type { Pointers } from '../pointers';

const mergeId = 'sheet.command.add-worksheet-merge';
const paintId = 'sheet.command.apply-format-painter';
const moveId = 'sheet.command.move-range';

const irange = ({ row, col, toRow, toCol }: Range): IRange => ({ startRow: row, startColumn: col, endRow: toRow, endColumn: toCol });

/** The first merged cells that a range has a part of. */
export function dividedBy(sheet: Worksheet, range: Range): Range | undefined {
	return sheet
		.getMergeData()
		.map(rangeOf)
		.find((one) => overlap(one, range) && !isInside(one, range));
}

/** The names of the cells whose contents a merge deletes: of each range, all but the first content stays. */
function lostBy(sheet: Worksheet, ranges: Range[]): string[] {
	const rows = sheet.getCellMatrix().getMatrix();
	return ranges.flatMap(({ row, col, toRow, toCol }) => {
		const filled: string[] = [];
		for (let r = row; r <= toRow; r++) if (rows[r]) for (let c = col; c <= toCol; c++) if (hasContent(rows[r]![c])) filled.push(cellName(r, c));
		return filled.slice(1);
	});
}

export class Merging {
	/** A command that the user has confirmed. */
	private confirmed = false;

	constructor(private readonly parts: { injector: Injector; sheet: Worksheet; events: GridEvents; pointers: Pointers; readOnly(): boolean }) {}

	/** Whether the command is refused, or asked about first; then it is executed again after the answer. */
	holds(id: string, params: any): boolean {
		if (this.confirmed || ![mergeId, paintId, moveId].includes(id)) return false;
		const { sheet, events } = this.parts;
		if (id === moveId) {
			const divided = dividedBy(sheet, rangeOf(params.fromRange)) ?? dividedBy(sheet, rangeOf(params.toRange));
			if (divided) events.onDivides(rangeName(divided));
			return divided !== undefined;
		}
		const selected: IRange[] = id === mergeId ? params.selections : [params.range];
		const merged = this.mergedBy(id, params, selected);
		const divided = merged.map((range) => dividedBy(sheet, range)).find(Boolean);
		if (divided) events.onDivides(rangeName(divided));
		else if (lostBy(sheet, merged).length === 0) return false;
		else void this.ask(id, params, selected.map(rangeOf));
		return true;
	}

	/** The ranges that a command merges. */
	private mergedBy(id: string, params: any, selected: IRange[]): Range[] {
		if (id === mergeId) return getAddMergeMutationRangeByType(selected, params.value).map(rangeOf);
		const painter = this.parts.injector.get(IFormatPainterService);
		const redos = painter
			.getHooks()
			.flatMap((hook) => hook.onApply?.(params.unitId, params.subUnitId, selected[0]!, painter.getSelectionFormat())?.redos ?? []);
		return redos.flatMap(({ id: mutation, params: of }) =>
			mutation === 'sheet.mutation.add-worksheet-merge' ? (of as { ranges: IRange[] }).ranges.map(rangeOf) : [],
		);
	}

	private async ask(id: string, params: any, selected: Range[]): Promise<void> {
		const { sheet, events, pointers } = this.parts;
		if (this.parts.readOnly()) return events.onBlocked('role');
		const tracked = pointers.track(selected);
		const named = new Set<string>();
		try {
			for (;;) {
				// Edits that have arrived since the last frame are not in the grid.
				events.beforeChange();
				const at = tracked.ranges?.map(irange);
				if (!at) return events.onBlocked('gone');
				const now = id === mergeId ? { ...params, selections: at, defaultMerge: true } : { ...params, range: at[0] };
				const merged = this.mergedBy(id, now, at);
				const lost = lostBy(sheet, merged);
				// Others may have written meanwhile, or moved the cells.
				if (lost.every((name) => named.has(name))) return this.run(id, now);
				lost.forEach((name) => named.add(name));
				if (!(await events.confirmMerge(merged.map(rangeName), lost))) return;
			}
		} finally {
			tracked.end();
		}
	}

	private run(id: string, params: object): void {
		this.confirmed = true;
		try {
			void this.parts.injector.get(ICommandService).executeCommand(id, params);
		} finally {
			this.confirmed = false;
		}
	}
}
