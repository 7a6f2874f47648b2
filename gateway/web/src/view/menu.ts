// menu.ts - Univer's menu of cells, rows and columns, for the keyboard: opens it at the selection, and moves in it with the
// arrow keys. Univer's own listens to the mouse alone.
import { RANGE_TYPE } from '@univerjs/core';
import type { IRange } from '@univerjs/core';
import { ContextMenuPosition, IContextMenuService, ILayoutService } from '@univerjs/ui';
import type { Place } from '../v2/messages';
import type { GridParts } from './parts';

const submenu = '[data-u-context-menu-submenu]';
const panels = `section[dir] > section, ${submenu}`;
const items = 'button:not(:disabled), [role="menuitem"]';
/** The item whose submenu is open. */
const open = '[data-open-submenu]';
const waitMs = 1000;

/** Opens the menu of the selection, below its cell. */
export function openMenu(parts: GridParts, { range, row, col }: Place & { range: IRange }): void {
	const service = parts.injector.get(IContextMenuService);
	const corner = parts.cornerOf({ row, col, toRow: row, toCol: col }) ?? parts.host.getBoundingClientRect();
	const type = range.rangeType === RANGE_TYPE.ROW ? ContextMenuPosition.ROW_HEADER : range.rangeType === RANGE_TYPE.COLUMN ? ContextMenuPosition.COL_HEADER : ContextMenuPosition.MAIN_AREA;
	service.triggerContextMenu(new PointerEvent('contextmenu', { clientX: corner.x + 8, clientY: corner.y + 24 }) as never, type);
	focusFirst(() => (service.visible ? document.querySelector(panels) : null));
}

/** Focuses the first item of a panel as soon as Univer shows it. */
function focusFirst(panel: () => Element | null | undefined): void {
	const begun = performance.now();
	const enter = () => {
		const first = panel()?.querySelector<HTMLElement>(items);
		first?.focus();
		if ((!first || document.activeElement !== first) && performance.now() - begun < waitMs) requestAnimationFrame(enter);
	};
	requestAnimationFrame(enter);
}

/** Moves in the open menu. Returns false if the key is not one of a menu. */
function run(parts: GridParts, key: string, panel: Element, focused: HTMLElement): boolean {
	const all = [...panel.querySelectorAll<HTMLElement>(items)].filter((item) => item.offsetParent !== null);
	const at = all.indexOf(focused);
	const focus = (index: number) => {
		if (!panel.matches(submenu)) closeSubmenu();
		all[(index + all.length) % all.length]?.focus();
	};
	switch (key) {
		case 'ArrowDown':
			focus(at + 1);
			return true;
		case 'ArrowUp':
			focus(at - 1);
			return true;
		case 'Home':
			focus(0);
			return true;
		case 'End':
			focus(-1);
			return true;
		case 'ArrowRight':
			openSubmenu(focused);
			return true;
		case 'ArrowLeft':
			if (panel.matches(submenu)) document.querySelector<HTMLElement>(open)?.focus();
			return true;
		case 'Enter':
		case ' ':
			focused.click();
			return true;
		case 'Escape':
		case 'Tab':
			parts.injector.get(IContextMenuService).hideContextMenu();
			parts.injector.get(ILayoutService).focus();
			return true;
		default:
			return false;
	}
}

/** Univer opens a submenu when the mouse is over its item. */
function openSubmenu(item: HTMLElement): void {
	if (!item.matches(open)) {
		item.setAttribute('data-open-submenu', '');
		item.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
	}
	focusFirst(() => [...document.querySelectorAll(submenu)].at(-1));
}

function closeSubmenu(): void {
	const item = document.querySelector(open);
	item?.removeAttribute('data-open-submenu');
	item?.dispatchEvent(new MouseEvent('mouseout', { bubbles: true, relatedTarget: item.closest(panels) }));
}

/** Listens until the returned function is called. */
export function addMenuKeys(parts: GridParts): () => void {
	const listen = (event: KeyboardEvent) => {
		const focused = document.activeElement;
		const panel = focused?.closest(panels);
		if (!(focused instanceof HTMLElement) || !panel || !parts.injector.get(IContextMenuService).visible) return;
		if (!run(parts, event.key, panel, focused)) return;
		event.preventDefault();
		event.stopImmediatePropagation();
	};
	window.addEventListener('keydown', listen, { capture: true });
	return () => window.removeEventListener('keydown', listen, { capture: true });
}
