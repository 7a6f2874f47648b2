// widths.ts - how wide a column is that nobody has given a width: as its first contents need, within limits.
import type { CellEdit } from '../v2/messages';

/** Pixels. */
export const leastWidth = 96;
const mostWidth = 200;
export const measuredRows = 200;

export function columnWidths(cells: CellEdit[]): Record<number, { w: number }> {
	const widths: Record<number, { w: number }> = {};
	for (const { row, col, content = '' } of cells) {
		if (row >= measuredRows || content.startsWith('=')) continue;
		if (content.length * 8 <= leastWidth && !wideLetters.test(content)) continue;
		let width = 16;
		for (const letter of content) width += wideLetters.test(letter) ? 15 : 8;
		widths[col] = { w: Math.min(mostWidth, Math.max(leastWidth, width, widths[col]?.w ?? 0)) };
	}
	return widths;
}

/** Chinese, Japanese and Korean letters are about twice as wide. */
const wideLetters = /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uff00-\uff60]/;
