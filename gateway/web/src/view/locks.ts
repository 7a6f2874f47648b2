// locks.ts - coloured frames with names over Univer's canvas, for cells that others are editing.
//
// Their positions are computed from the canvas's scrolling, zoom and frozen panes in each animation frame, while there are
// locks.
import type { Injector } from '@univerjs/core';
import { IRenderManagerService, SHEET_VIEWPORT_KEY, SheetSkeletonManagerService } from '@univerjs/preset-sheets-core';
import { IUniverInstanceService, UniverInstanceType } from '@univerjs/core';
import type { Workbook } from '@univerjs/core';
import { cellName } from '../content';
import { t } from '../i18n';
import type { CellLock } from '../protocol';
import { keyOf } from '../queue';

/** Colours with a contrast of 4.5:1 to white text. */
const colours = ['#b3261e', '#7b3fb5', '#0b6b50', '#a04a00', '#1558b0', '#93246b', '#4b5a00', '#00607a'];

export function colourOf(name: string): string {
	let hash = 0;
	for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)!) >>> 0;
	return colours[hash % colours.length];
}

interface Box {
	left: number;
	top: number;
	width: number;
	height: number;
}

export class LockOverlay {
	private readonly layer = document.createElement('div');
	private readonly frames = new Map<string, { lock: CellLock; element: HTMLElement }>();
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

	show(locks: CellLock[]): void {
		const wanted = new Map(locks.map((lock) => [keyOf(lock), lock]));
		for (const [key, { lock, element }] of this.frames) {
			if (wanted.get(key)?.username === lock.username) continue;
			element.remove();
			this.frames.delete(key);
		}
		for (const [key, lock] of wanted) {
			if (this.frames.has(key)) continue;
			const element = this.build(lock);
			this.layer.append(element);
			this.frames.set(key, { lock, element });
		}
		this.refresh();
	}

	refresh(): void {
		if (this.frame === 0 && this.frames.size > 0) this.frame = requestAnimationFrame(() => this.place());
	}

	dispose(): void {
		cancelAnimationFrame(this.frame);
		this.layer.remove();
	}

	private build(lock: CellLock): HTMLElement {
		const element = document.createElement('div');
		element.className = 'cell-lock';
		element.dataset.cell = cellName(lock.row, lock.col);
		element.dataset.user = lock.username;
		element.style.setProperty('--colour', colourOf(lock.username));
		const label = document.createElement('span');
		label.textContent = lock.username;
		label.title = t('lock.held', { name: lock.username, cell: element.dataset.cell });
		element.append(label);
		return element;
	}

	/** Positions the frames over their cells. Repeats while there are frames. */
	private place(): void {
		this.frame = 0;
		if (this.frames.size === 0) return;
		const surface = this.surface();
		for (const { lock, element } of this.frames.values()) {
			const box = surface?.boxOf(lock.row, lock.col);
			element.hidden = !box;
			if (!box) continue;
			element.style.transform = `translate(${box.left}px, ${box.top}px)`;
			element.style.width = `${box.width}px`;
			element.style.height = `${box.height}px`;
			element.classList.toggle('label-below', box.top < 22);
		}
		this.frame = requestAnimationFrame(() => this.place());
	}

	/** Moves the layer over the visible part of the grid. Returns null if there is none. */
	private surface(): { boxOf(row: number, col: number): Box | null } | null {
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
			boxOf(row, col) {
				if (row >= sheet.getRowCount() || col >= sheet.getColumnCount()) return null;
				const cell = skeleton.getCellWithCoordByIndex(row, col);
				const scrollX = col < freeze.startColumn ? 0 : viewportScrollX;
				const scrollY = row < freeze.startRow ? 0 : viewportScrollY;
				const left = (cell.startX - scrollX) * scaleX - headerWidth;
				const top = (cell.startY - scrollY) * scaleY - headerHeight;
				const box = { left, top, width: (cell.endX - cell.startX) * scaleX, height: (cell.endY - cell.startY) * scaleY };
				const visible = left + box.width > 0 && top + box.height > 0 && left < width && top < height;
				return visible ? box : null;
			},
		};
	}
}
