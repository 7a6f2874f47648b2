// menu.ts - Univer's menu of cells, rows and columns, for the keyboard: opens it at the selection, and moves in it with the
// arrow keys and Tab. An item with a number, such as a height, is one stop: its input. Univer's own listens to the mouse alone.
import { RANGE_TYPE } from '@univerjs/core';
import type { Injector, IRange } from '@univerjs/core';
import { SheetCopyCommand } from '@univerjs/sheets-ui';
import { ContextMenuPosition, IContextMenuService, ILayoutService, IMenuManagerService, type IMenuSchema } from '@univerjs/ui';
import type { Place } from '../../v2/messages';
import type { GridParts } from '../parts';

const submenu = '[data-u-context-menu-submenu]';
const panels = `section[dir] > section, ${submenu}`;
const items = 'button:not(:disabled), [role="menuitem"]';
/** The item whose submenu is open. */
const open = '[data-open-submenu]';
const waitMs = 3000;

const onlyCopy = (schemas: IMenuSchema[]): IMenuSchema[] =>
	schemas
		.map((schema) => (schema.children ? { ...schema, children: onlyCopy(schema.children) } : schema))
		.filter(({ children, item }) => (children ? children.length > 0 : item?.id === SheetCopyCommand.name));

/** A viewer's menu has Copy only. */
export function limitMenu(injector: Injector, isReadOnly: () => boolean): void {
	const menus = injector.get(IMenuManagerService);
	const read = menus.getMenuByPositionKey.bind(menus);
	menus.getMenuByPositionKey = (key) => (isReadOnly() && key.startsWith('contextMenu') ? onlyCopy(read(key)) : read(key));
}

/** Opens the menu of the selection, below its cell. */
export function openMenu(parts: GridParts, { range, row, col }: Place & { range: IRange }): void {
	const service = parts.injector.get(IContextMenuService);
	const corner = parts.cornerOf({ row, col, toRow: row, toCol: col }) ?? parts.host.getBoundingClientRect();
	const type =
		range.rangeType === RANGE_TYPE.ROW
			? ContextMenuPosition.ROW_HEADER
			: range.rangeType === RANGE_TYPE.COLUMN
				? ContextMenuPosition.COL_HEADER
				: ContextMenuPosition.MAIN_AREA;
	service.triggerContextMenu(new PointerEvent('contextmenu', { clientX: corner.x + 8, clientY: corner.y + 24 }) as never, type);
	focusFirst(() => (service.visible ? document.querySelector(panels) : null));
}

/** Focuses an item, or the input in it. */
function focusItem(item: HTMLElement | null | undefined): void {
	const input = item?.querySelector<HTMLInputElement>('input:not(:disabled)');
	// The texts around the input, without the signs of its buttons.
	input?.setAttribute('aria-label', item!.textContent!.replace(/[+-]+/, ' '));
	(input ?? item)?.focus();
	input?.select();
}

/** Focuses the first item of a panel as soon as Univer shows it and its number, which is NaN at first. */
function focusFirst(panel: () => Element | null | undefined): void {
	const begun = performance.now();
	const enter = () => {
		const first = panel()?.querySelector<HTMLElement>(items);
		if (first?.querySelector('input')?.value !== 'NaN') focusItem(first);
		if (!first?.contains(document.activeElement) && performance.now() - begun < waitMs) requestAnimationFrame(enter);
	};
	requestAnimationFrame(enter);
}

/** Moves in the open menu. Returns false if the key is not one of a menu. */
function run(parts: GridParts, { key, shiftKey }: KeyboardEvent, panel: Element, focused: HTMLElement): boolean {
	const all = [...panel.querySelectorAll<HTMLElement>(items)].filter((item) => item.offsetParent !== null);
	const current = focused.closest<HTMLElement>(items)!;
	const at = all.indexOf(current);
	const service = parts.injector.get(IContextMenuService);
	const focus = (index: number) => {
		if (!panel.matches(submenu)) closeSubmenu();
		focusItem(all[(index + all.length) % all.length]);
	};
	if (focused instanceof HTMLInputElement && isOfText(key, focused)) return false;
	switch (key) {
		case 'ArrowDown':
			focus(at + 1);
			return true;
		case 'ArrowUp':
			focus(at - 1);
			return true;
		case 'Tab':
			focus(shiftKey ? at - 1 : at + 1);
			return true;
		case 'Home':
			focus(0);
			return true;
		case 'End':
			focus(-1);
			return true;
		case 'ArrowRight':
			if (!panel.matches(submenu)) openSubmenu(current);
			return true;
		case 'ArrowLeft':
			if (panel.matches(submenu)) document.querySelector<HTMLElement>(open)?.focus();
			return true;
		case 'Enter':
		case ' ':
			current.click();
			// A click on an item with a submenu opens that; all others close the menu.
			if (!panel.matches(submenu)) requestAnimationFrame(() => service.visible && openSubmenu(current, true));
			return true;
		case 'Escape':
			closeSubmenu();
			service.hideContextMenu();
			parts.injector.get(ILayoutService).focus();
			return true;
		default:
			return false;
	}
}

/** Whether a key edits the text of an input. ArrowLeft at the start of the text leaves the submenu. */
function isOfText(key: string, input: HTMLInputElement): boolean {
	return /^(ArrowRight|Home|End| )$/.test(key) || (key === 'ArrowLeft' && input.selectionStart !== 0);
}

/** The items of the submenus that are or were shown. */
const owners = new WeakMap<Element, HTMLElement>();

/** The submenu of an item. A new one is that of the item whose key has opened it. */
function submenuOf(item: HTMLElement): HTMLElement | undefined {
	const all = [...document.querySelectorAll<HTMLElement>(submenu)];
	const panel = all.find((one) => owners.get(one) === item) ?? all.find((one) => !owners.has(one));
	if (panel) owners.set(panel, item);
	return panel;
}

/**
 * Univer opens a submenu when the mouse is over its item, and closes it half a second after the mouse has left. If the
 * mouse comes back meanwhile, it hides the submenu until something is scrolled or the window is resized.
 */
function openSubmenu(item: HTMLElement, isClicked = false): void {
	let closing = submenuOf(item);
	if (isClicked || (closing && item.matches(open))) closing = undefined;
	else item.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
	item.setAttribute('data-open-submenu', '');
	focusFirst(() => {
		const panel = submenuOf(item);
		const hidden = panel?.style.visibility === 'hidden';
		if (hidden) window.dispatchEvent(new Event('scroll'));
		if (hidden || panel !== closing) closing = undefined;
		const isLeft = !item.matches(open) || !item.contains(document.activeElement);
		return closing || isLeft ? null : panel;
	});
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
		if (run(parts, event, panel, focused)) event.preventDefault();
		else if (!(focused instanceof HTMLInputElement)) return;
		// Keys of the input are none of the cells.
		event.stopImmediatePropagation();
	};
	/** A press of the mouse beside the menu closes it, but not its submenu. */
	const press = ({ target }: Event) => {
		if (!(target instanceof Element && target.closest(panels))) closeSubmenu();
	};
	window.addEventListener('keydown', listen, { capture: true });
	window.addEventListener('pointerdown', press, { capture: true });
	return () => {
		window.removeEventListener('keydown', listen, { capture: true });
		window.removeEventListener('pointerdown', press, { capture: true });
	};
}
