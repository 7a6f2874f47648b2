// formula.ts - rewrites the references of a formula when rows or columns are inserted or deleted. The database and the
// gateway do the same in common/formula_shift.c, which explains it; tests/vectors/formulas.json holds both to it. References
// with a sheet's name stay here: the database rewrites them in stored formulas.

import { columnName } from '../content';

export const maxRows = 16777216;
export const maxCols = 16384;
const maxChars = 32767;

/** Whether a content exceeds the characters of a cell. */
export const isTooLong = (content: string): boolean => content.length > maxChars && [...content].length > maxChars;

/** Moves the rows or columns first to last, first <= last; undefined if none of them is left. */
export type MoveLines = (rows: boolean, first: number, last: number) => [number, number] | undefined;

const space = '[ \\t\\n\\r\\xa0\\u3000]*';
const inWord = '(?![\\xa0\\u3000])[\\w.$\\\\?~`|\\x80-\\uffff]';
const quoted = /"(?:[^"]|"")*"|'(?:[^']|'')*'|\{(?:[^"}]|"(?:[^"]|"")*")*\}/y;
const hash = /#N\/A|#DIV\/0|#[A-Za-z_]*/y;
const word = new RegExp(`(?:${inWord})*`, 'y');
const spaces = new RegExp(space, 'y');
const nameBefore = new RegExp(`!|${space}\\(`, 'y');
const colon = new RegExp(`${space}:${space}`, 'y');
const cornerPattern = /^(?:(\$?)([A-Za-z]+))?(?:(\$?)([1-9][0-9]*))?$/;

/** A corner of a reference, with its row and column, if it has them. */
interface Corner {
	text: string;
	row: number | undefined;
	col: number | undefined;
}

function readCorner(text: string): Corner | undefined {
	const [whole, , letters, , digits] = cornerPattern.exec(text) ?? [];
	if (!whole || (letters?.length ?? 0) > 3) return undefined;
	const col = letters && [...letters.toUpperCase()].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
	const row = digits && Number(digits) - 1;
	if ((col && col >= maxCols) || (row && row >= maxRows)) return undefined;
	return { text, row: row === '' ? undefined : row, col: col === '' ? undefined : col };
}

function writeCorner({ text, row, col }: Corner, newRow: number, newCol: number): string {
	const [, colSign = '', letters = '', rowSign = '', digits = ''] = cornerPattern.exec(text)!;
	const name = newCol === col || col === undefined ? letters : columnName(newCol);
	const cased = name !== letters && letters >= 'a' ? name.toLowerCase() : name;
	return `${colSign}${cased}${rowSign}${newRow === row || row === undefined ? digits : newRow + 1}`;
}

class Shift {
	private pos = 1;
	private copied = 0;
	private result = '';

	constructor(
		private readonly text: string,
		private readonly move: MoveLines,
	) {}

	/** The new text; undefined if it is too long. */
	run(): string | undefined {
		while (this.pos < this.text.length) if (!this.next()) return this.text;
		if (this.copied === 0) return this.text;
		const result = this.result + this.text.slice(this.copied);
		return isTooLong(result) ? undefined : result;
	}

	/** What a pattern matches at a position; undefined if it does not. */
	private match(pattern: RegExp, pos = this.pos): string | undefined {
		pattern.lastIndex = pos;
		return pattern.exec(this.text)?.[0];
	}

	/** Passes over the next part. Returns false if it is not closed. */
	private next(): boolean {
		const char = this.text[this.pos]!;
		if (char === '[') return this.skipBrackets();
		if ('"\'{'.includes(char)) {
			const part = this.match(quoted);
			this.pos += part?.length ?? 0;
			return part !== undefined;
		}
		if (char === '#') this.pos += this.match(hash)!.length;
		else if (char === '!') this.skipQualified();
		else if (this.match(word) !== '') this.word();
		else this.pos++;
		return true;
	}

	/** From "[" to behind its "]". An apostrophe escapes the next character there. */
	private skipBrackets(): boolean {
		for (let depth = 0; this.pos < this.text.length;) {
			const char = this.text[this.pos++];
			if (char === "'" && this.pos < this.text.length) this.pos++;
			if (char === '[') depth++;
			if (char === ']' && --depth === 0) return true;
		}
		return false;
	}

	/** Behind the "!" of a sheet's name: the reference there stays. */
	private skipQualified(): void {
		this.pos++;
		this.pos += this.match(spaces)!.length;
		this.pos += this.match(word)!.length;
		this.pos = this.second()?.end ?? this.pos;
	}

	/** The corner behind a colon, and where it begins and ends. */
	private second(): { corner: Corner; from: number; end: number } | undefined {
		const sign = this.match(colon);
		if (sign === undefined) return undefined;
		const from = this.pos + sign.length;
		const text = this.match(word, from)!;
		const end = from + text.length;
		const corner = this.match(nameBefore, end) === undefined ? readCorner(text) : undefined;
		return corner && { corner, from, end };
	}

	private word(): void {
		const from = this.pos;
		const text = this.match(word)!;
		this.pos += text.length;
		const a = this.match(nameBefore) === undefined ? readCorner(text) : undefined;
		if (!a) return;
		const b = this.second();
		if (b && (a.row === undefined) === (b.corner.row === undefined) && (a.col === undefined) === (b.corner.col === undefined)) {
			const sign = this.text.slice(this.pos, b.from);
			this.pos = b.end;
			this.reference(from, a, b.corner, sign);
		} else if (a.row !== undefined && a.col !== undefined && text.toUpperCase() !== 'LOG10') this.reference(from, a, a);
	}

	/** Replaces the reference that began at `from`. sign: the colon between its corners. */
	private reference(from: number, a: Corner, b: Corner, sign?: string): void {
		const rows = this.lines(true, a.row, b.row);
		const cols = this.lines(false, a.col, b.col);
		const text = (i: 0 | 1): string => writeCorner([a, b][i]!, rows![i], cols![i]);
		const moved = !rows || !cols ? '#REF!' : sign === undefined ? text(0) : text(0) + sign + text(1);
		if (moved === this.text.slice(from, this.pos)) return;
		this.result += this.text.slice(this.copied, from) + moved;
		this.copied = this.pos;
	}

	/** Moves the rows or columns between two corners. All rows of sheets stay all rows. */
	private lines(rows: boolean, a: number | undefined, b: number | undefined): [number, number] | undefined {
		if (a === undefined || b === undefined) return [0, 0];
		const [first, last] = a <= b ? [a, b] : [b, a];
		if (first === 0 && last === (rows ? maxRows : maxCols) - 1) return [a, b];
		const moved = this.move(rows, first, last);
		return moved && (a <= b ? moved : [moved[1], moved[0]]);
	}
}

/** Rewrites the references of a content, if it is a formula; undefined if the new text would be too long. */
export function shiftFormula(content: string, move: MoveLines): string | undefined {
	return content.startsWith('=') ? new Shift(content, move).run() : content;
}
