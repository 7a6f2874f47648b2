// marks.ts - coloured frames with names over Univer's canvas: the cells and ranges that others have locked, and their selections.
//
// Their positions are computed from the canvas's scrolling, zoom and frozen panes whenever the canvas was drawn.
import type { Injector } from '@univerjs/core';
import { IRenderManagerService, SHEET_VIEWPORT_KEY } from '@univerjs/engine-render';
import { SheetSkeletonManagerService } from '@univerjs/sheets-ui';
import { IUniverInstanceService, UniverInstanceType } from '@univerjs/core';
import type { Workbook } from '@univerjs/core';
import { cellName } from '../content';
import { t } from '../i18n';
import type { Mark } from '../sheet/presence';
import type { Range } from '../v2/messages';

/** Colours with a contrast of 4.5:1 to white text. */
const colours = ['#b3261e', '#7b3fb5', '#0b6b50', '#a04a00', '#1558b0', '#93246b', '#4b5a00', '#00607a'];

export function colourOf(name: string): string {
	let hash = 0;
	for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)!) >>> 0;
	return colours[hash % colours.length];
}

/** The cell or, of a locked range, the range. */
function markName({ row, col, toRow, toCol, lock }: Mark): string {
	return cellName(row, col) + (lock && (row < toRow || col < toCol) ? `:${cellName(toRow, toCol)}` : '');
}

interface Box {
	left: number;
	top: number;
	width: number;
	height: number;
}

export class MarkOverlay {
	private readonly layer = document.createElement('div');
	private frames: { mark: Mark; element: HTMLElement }[] = [];
	private frame = 0;

	constructor(
		private readonly container: HTMLElement,
		private readonly injector: Injector,
		private readonly unitId: string,
		private readonly sheetId: string,
	) {
		this.layer.className = 'lock-layer';
		container.append(this.layer);
	}

	show(marks: Mark[]): void {
		const same = (a: Mark, b: Mark) => a.session === b.session && a.lock === b.lock && a.name === b.name && markName(a) === markName(b);
		const before = this.frames;
		this.frames = marks.map((mark) => {
			const element = before.find((frame) => same(frame.mark, mark))?.element ?? this.build(mark);
			if (!element.isConnected) this.layer.append(element);
			return { mark, element };
		});
		for (const { element } of before) if (!this.frames.some((frame) => frame.element === element)) element.remove();
		this.refresh();
	}

	refresh(): void {
		if (this.frame === 0 && this.frames.length > 0 && this.layer.isConnected) this.frame = requestAnimationFrame(() => this.place());
	}

	/** The upper left corner of a range in the window; null if it is not visible. */
	cornerOf(range: Range): { x: number; y: number } | null {
		const box = this.surface()?.boxOf(range);
		const outer = this.layer.getBoundingClientRect();
		return box ? { x: outer.left + Math.max(box.left, 0), y: outer.top + Math.max(box.top, 0) } : null;
	}

	dispose(): void {
		cancelAnimationFrame(this.frame);
		this.layer.remove();
	}

	private build(mark: Mark): HTMLElement {
		const { name, lock } = mark;
		const element = document.createElement('div');
		element.className = lock ? 'cell-lock' : 'cell-cursor';
		element.dataset.cell = markName(mark);
		element.dataset.user = name;
		element.style.setProperty('--colour', colourOf(name));
		const label = document.createElement('span');
		label.textContent = name;
		label.dir = 'auto';
		if (lock) label.title = t('lock.held', { name, cell: element.dataset.cell });
		element.append(label);
		return element;
	}

	/** Positions the frames over their cells. */
	place(): void {
		cancelAnimationFrame(this.frame);
		this.frame = 0;
		if (this.frames.length === 0) return;
		const surface = this.surface();
		for (const { mark, element } of this.frames) {
			const box = surface?.boxOf(mark);
			element.hidden = !box;
			if (!box) continue;
			element.style.transform = `translate(${box.left}px, ${box.top}px)`;
			element.style.width = `${box.width}px`;
			element.style.height = `${box.height}px`;
			element.classList.toggle('label-below', box.top < 22);
		}
	}

	/** Moves the layer over the visible part of the grid. Returns null if there is none. */
	private surface(): { boxOf(range: Range): Box | null } | null {
		const render = this.injector.get(IRenderManagerService).getRenderById(this.unitId);
		const book = this.injector.get(IUniverInstanceService).getUnit<Workbook>(this.unitId, UniverInstanceType.UNIVER_SHEET);
		const sheet = book?.getSheetBySheetId(this.sheetId);
		const canvas = render?.engine.getCanvasElement();
		const viewport = render?.scene.getViewport(SHEET_VIEWPORT_KEY.VIEW_MAIN);
		const skeleton = render?.with(SheetSkeletonManagerService).getSkeletonParam(this.sheetId)?.skeleton;
		if (!render || !sheet || !canvas || !viewport || !skeleton) return null;
		const { scaleX, scaleY } = render.scene.getAncestorScale();
		const headerWidth = skeleton.rowHeaderWidth * scaleX;
		const headerHeight = skeleton.columnHeaderHeight * scaleY;
		const outer = this.container.getBoundingClientRect();
		const inner = canvas.getBoundingClientRect();
		const width = inner.width - headerWidth;
		const height = inner.height - headerHeight;
		Object.assign(this.layer.style, {
			left: `${inner.left - outer.left + headerWidth}px`,
			top: `${inner.top - outer.top + headerHeight}px`,
			width: `${width}px`,
			height: `${height}px`,
		});
		const freeze = sheet.getFreeze();
		const { viewportScrollX, viewportScrollY } = viewport;
		return {
			boxOf({ row, col, toRow, toCol }) {
				if (row >= sheet.getRowCount() || col >= sheet.getColumnCount()) return null;
				const first = skeleton.getCellWithCoordByIndex(row, col);
				const last = skeleton.getCellWithCoordByIndex(Math.min(toRow, sheet.getRowCount() - 1), Math.min(toCol, sheet.getColumnCount() - 1));
				const scrollX = col < freeze.startColumn ? 0 : viewportScrollX;
				const scrollY = row < freeze.startRow ? 0 : viewportScrollY;
				const left = (first.startX - scrollX) * scaleX - headerWidth;
				const top = (first.startY - scrollY) * scaleY - headerHeight;
				const box = { left, top, width: (last.endX - first.startX) * scaleX, height: (last.endY - first.startY) * scaleY };
				const visible = left + box.width > 0 && top + box.height > 0 && left < width && top < height;
				return visible ? box : null;
			},
		};
	}
}
