// pictures.ts - pictures from the clipboard, and files that are dropped on the cells.
import type { Place } from '../../v2/messages';
import { select, selectionOf, type GridParts } from '../parts';

/** The types that gateways show in place; other files are attachments. */
const types = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);

export const isPicture = ({ type }: { type: string }): boolean => types.has(type);

/** What a clipboard item has as a picture. */
export async function pictureOf(item: ClipboardItem): Promise<File[]> {
	const type = item.types.find((each) => types.has(each));
	return type === undefined ? [] : [new File([await item.getType(type)], `image.${type.slice('image/'.length)}`, { type })];
}

/** The visible cell at a point of the window; of merged ones the first. */
function cellAt({ sheet, visible, cornerOf }: GridParts, x: number, y: number): Place | null {
	const shown = visible();
	if (!shown) return null;
	let [row, col] = [-1, -1];
	const corner = (r: number, c: number) => cornerOf({ row: r, col: c, toRow: r, toCol: c });
	for (let r = shown.row; r <= shown.toRow; r++) if ((corner(r, shown.col)?.y ?? Infinity) <= y) row = r;
	for (let c = shown.col; c <= shown.toCol; c++) if ((corner(shown.row, c)?.x ?? Infinity) <= x) col = c;
	if (row < 0 || col < 0) return null;
	const merged = sheet.getMergedCell(row, col);
	return merged ? { row: merged.startRow, col: merged.startColumn } : { row, col };
}

/** Takes files that are dropped on the cells, until the returned function is called. */
export function addDrop(parts: GridParts, onFiles: (files: File[], place: Place) => void): () => void {
	const listening = new AbortController();
	const over = (event: DragEvent) => {
		if (!event.dataTransfer?.types.includes('Files') || document.querySelector('dialog[open]')) return;
		event.preventDefault();
		event.dataTransfer.dropEffect = 'copy';
	};
	const drop = (event: DragEvent) => {
		const files = [...(event.dataTransfer?.files ?? [])];
		if (files.length === 0 || document.querySelector('dialog[open]')) return;
		event.preventDefault();
		const place = cellAt(parts, event.clientX, event.clientY) ?? selectionOf(parts);
		if (!place) return;
		const { row, col } = place;
		select(parts, { startRow: row, endRow: row, startColumn: col, endColumn: col }, { row, col });
		onFiles(files, { row, col });
	};
	parts.host.addEventListener('dragover', over, { signal: listening.signal });
	parts.host.addEventListener('drop', drop, { signal: listening.signal });
	return () => listening.abort();
}
