// tsv.ts - a table as plain text, as spreadsheets put it on the clipboard: tabs between cells, line breaks between rows. A
// cell that contains a tab, a line break or a quotation mark stands in quotation marks, and those inside it are doubled.

/** The quoted cell that begins here, and where it ends; null if no spreadsheet writes it. */
function quotedCell(text: string, start: number): { cell: string; end: number } | null {
	let end = start + 1;
	for (;;) {
		end = text.indexOf('"', end);
		if (end < 0) return null;
		if (text[end + 1] !== '"') break;
		end += 2;
	}
	const next = text[end + 1];
	if (next !== undefined && next !== '\t' && next !== '\r' && next !== '\n') return null;
	const inside = text.slice(start + 1, end);
	// "text" alone needs no quotation marks: somebody has typed them.
	return /[\t\r\n"]/.test(inside) ? { cell: inside.replaceAll('""', '"').replace(/\r\n?/g, '\n'), end: end + 1 } : null;
}

/** The cells of a text, by row. A line break at the end of the text ends the last row. */
export function readTable(text: string): string[][] {
	const rows: string[][] = [];
	let row: string[] = [];
	const separator = /[\t\r\n]/g;
	for (let at = 0; ; at++) {
		const quoted = text[at] === '"' ? quotedCell(text, at) : null;
		separator.lastIndex = at;
		const end = quoted ? quoted.end : (separator.exec(text)?.index ?? text.length);
		row.push(quoted ? quoted.cell : text.slice(at, end));
		at = end;
		if (text[at] === '\t') continue;
		rows.push(row);
		row = [];
		if (text[at] === '\r' && text[at + 1] === '\n') at++;
		if (at >= text.length - 1) return rows;
	}
}

/** The text of a table, which readTable() and other spreadsheets read as the same cells. */
export function writeTable(rows: string[][]): string {
	const quote = (cell: string) => (/[\t\r\n"]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
	return rows.map((row) => row.map(quote).join('\t')).join('\n');
}
