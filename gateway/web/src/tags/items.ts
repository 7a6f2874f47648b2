// items.ts - lists in cells, as the SQL function sheet.split reads them: items between separators, without the blanks around them. An
// item that begins with a quote ends with the next one that is not doubled, and may contain the separator. No grid.

const trimmed = (text: string) => text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');

const quotes = (text: string) => text.split('"').length - 1;

/** The items of a content; an empty one has none. */
export function itemsOf(content: string, separator: string): string[] {
	const items: string[] = [];
	const pieces = content === '' ? [] : content.split(separator);
	for (let i = 0; i < pieces.length; i++) {
		let item = pieces[i]!;
		if (trimmed(item).startsWith('"')) {
			let count = quotes(item);
			while (count % 2 === 1 && i + 1 < pieces.length) {
				item += separator + pieces[++i]!;
				count += quotes(pieces[i]!);
			}
		}
		item = trimmed(item);
		items.push(item.length >= 2 && item.startsWith('"') && item.endsWith('"') ? item.slice(1, -1).replaceAll('""', '"') : item);
	}
	return items;
}

const written = (item: string, separator: string) => (item.includes(separator) || item.startsWith('"') ? `"${item.replaceAll('"', '""')}"` : item);

/** A list without empty items, whose separators are followed by a blank. A text does not become a formula. */
export function contentOf(items: string[], separator: string): string {
	const text = items
		.filter((item) => item !== '')
		.map((item) => written(item, separator))
		.join(/\s$/.test(separator) ? separator : `${separator} `);
	return text.startsWith('=') ? `'${text}` : text;
}

/** The content after an item was added at the end, or all of that name were removed. */
export function changed(content: string, separator: string, item: string, isIn: boolean): string {
	const rest = itemsOf(content, separator).filter((other) => other !== item);
	return contentOf(isIn ? [...rest, item] : rest, separator);
}

/** How many chips of these widths fit; `more`: the width of the mark that names how many are left. */
export function fitting(widths: number[], room: number, gap: number, more: (left: number) => number): number {
	const ends: number[] = [];
	for (const width of widths) ends.push((ends.at(-1) ?? -gap) + gap + width);
	if ((ends.at(-1) ?? 0) <= room) return widths.length;
	let count = widths.length - 1;
	while (count > 0 && ends[count - 1]! + gap + more(widths.length - count) > room) count--;
	return count;
}
