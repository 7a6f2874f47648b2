// links.ts - addresses of =HYPERLINK(): a card below the selected cell, with a link that a click or Alt+Enter opens, and the picture
// if it is one of a sheet; Ctrl+click on the cell opens it at once. Other addresses than those of web pages and mail are shown as text alone.
import type { ICellData, Nullable } from '@univerjs/core';
import { h } from '../../dom';
import { t } from '../../i18n';
import { canvasOf, selectionOf, type GridParts } from '../parts';

const opened = new Set(['http:', 'https:', 'mailto:']);

/** The address that a page may open; null for all others, such as scripts. */
function safeAddress(address: string): string | null {
	try {
		// Univer takes the address of a mail for that of a page.
		const { protocol, href } = new URL(address.replace(/^https:\/\/(?=mailto:)/i, '').replace(/^mailto:\/\//i, 'mailto:'));
		return opened.has(protocol) ? href : null;
	} catch {
		return null;
	}
}

/** The address of a picture of a sheet, at this gateway: each one has all of them. Null for other addresses. */
function pictureAddress(address: string): string | null {
	const { pathname } = new URL(address);
	return /^\/i\/[\w-]+\/[^/]+\.(png|jpe?g|gif|webp|avif)$/i.test(pathname) ? pathname : null;
}

/** The result of the function has the address as a link of its text. */
function addressOf(cell: Nullable<ICellData>): string | null {
	if (!cell?.f && !cell?.si) return null;
	const url: unknown = cell.p?.body?.customRanges?.find(({ properties }) => properties?.['url'])?.properties?.['url'];
	return typeof url === 'string' ? safeAddress(url) : null;
}

const open = (address: string) => void window.open(address, '_blank', 'noopener,noreferrer');

/** Listens until the returned function is called. */
export function addLinks(parts: GridParts): () => void {
	const { host, sheet, commands } = parts;
	const link = h('a', { target: '_blank', rel: 'noopener noreferrer' }, t('link.keys'));
	const picture = h('img', { alt: '', hidden: true, click: () => link.click() });
	const card = h('div', { class: 'link-card', hidden: true }, picture, link, h('span', { class: 'hint', 'aria-hidden': 'true' }, t('link.keys')));
	document.body.append(card);

	/** The address of the selected cell, if it is the only one. */
	const selected = () => {
		const at = selectionOf(parts);
		if (!at) return null;
		const { startRow, startColumn, endRow, endColumn } = at.range;
		const merged = sheet.getMergedCell(at.row, at.col);
		const isOne = merged ? endRow <= merged.endRow && endColumn <= merged.endColumn : startRow === endRow && startColumn === endColumn;
		const address = isOne ? addressOf(sheet.getCellRaw(at.row, at.col)) : null;
		return address === null ? null : { row: at.row, col: at.col, address };
	};
	const cornerOf = (row: number, col: number) => parts.cornerOf({ row, col, toRow: row, toCol: col });
	const show = () => {
		const cell = parts.isEditing() ? null : selected();
		const corner = cell && cornerOf(cell.row, cell.col);
		card.hidden = !corner;
		if (!corner) return;
		link.href = cell.address;
		link.textContent = cell.address;
		link.setAttribute('aria-label', t('link.open', { address: cell.address }));
		const shown = pictureAddress(cell.address);
		if (shown !== picture.getAttribute('src')) {
			picture.hidden = true;
			if (shown === null) picture.removeAttribute('src');
			else picture.src = shown;
		}
		const below = corner.y + sheet.getRowHeight(cell.row) * sheet.getZoomRatio() + 2;
		card.style.left = `${Math.max(0, Math.min(corner.x, innerWidth - card.offsetWidth - 8))}px`;
		card.style.top = `${below + card.offsetHeight > innerHeight ? Math.max(0, corner.y - card.offsetHeight - 2) : below}px`;
	};
	picture.addEventListener('load', () => {
		picture.hidden = false;
		showSoon();
	});
	let frame = 0;
	const showSoon = () => {
		frame ||= requestAnimationFrame(() => {
			frame = 0;
			show();
		});
	};
	const listener = commands.onCommandExecuted(({ id }) => {
		if (/set-selections$|set-scroll$|set-zoom-ratio$|set-range-values$|set-activate-cell-edit$|set-cell-edit-visible/.test(id)) showSoon();
	});

	const click = (event: MouseEvent) => {
		if (!(event.ctrlKey || event.metaKey) || event.button !== 0 || event.target !== canvasOf(host)) return;
		const cell = selected();
		const corner = cell && cornerOf(cell.row, cell.col);
		const zoom = sheet.getZoomRatio();
		const isInside =
			corner &&
			event.clientX >= corner.x &&
			event.clientX <= corner.x + sheet.getColumnWidth(cell.col) * zoom &&
			event.clientY >= corner.y &&
			event.clientY <= corner.y + sheet.getRowHeight(cell.row) * zoom;
		if (isInside) open(cell.address);
	};
	const key = (event: KeyboardEvent) => {
		if (event.key !== 'Enter' || !event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || card.hidden) return;
		// Keys go to the cells also if nothing has the focus, or the card has.
		const focused = document.activeElement;
		if (focused !== document.body && !host.contains(focused) && !card.contains(focused)) return;
		event.preventDefault();
		event.stopImmediatePropagation();
		link.click();
	};
	host.addEventListener('click', click);
	window.addEventListener('keydown', key, { capture: true });
	return () => {
		cancelAnimationFrame(frame);
		listener.dispose();
		host.removeEventListener('click', click);
		window.removeEventListener('keydown', key, { capture: true });
		card.remove();
	};
}
