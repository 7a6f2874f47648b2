// a1.ts - A1 notation for people: B3 is row 2, column 1.
import type { CellPlace } from './protocol';

export function columnName(col: number): string {
	let name = '';
	for (let rest = col + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) name = String.fromCharCode(65 + ((rest - 1) % 26)) + name;
	return name;
}

export function cellName(row: number, col: number): string {
	return `${columnName(col)}${row + 1}`;
}

/** null when the text is not the name of a cell. */
export function parseCellName(text: string): CellPlace | null {
	const match = /^\$?([A-Za-z]{1,3})\$?([1-9][0-9]{0,8})$/.exec(text.trim());
	if (!match) return null;
	let col = 0;
	for (const letter of match[1].toUpperCase()) col = col * 26 + letter.charCodeAt(0) - 64;
	return { row: Number(match[2]) - 1, col: col - 1 };
}
