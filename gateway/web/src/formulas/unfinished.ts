// unfinished.ts - the formulas that are to be computed, and which of them a range contains.
import { maxCols } from '../v2/lines';
import type { Range } from '../v2/messages';
import type { Area, Formula } from './cells';

const blockRows = 256;
/** A column of a tab. */
const columnOf = (tab: number, col: number): number => tab * maxCols + col;
const blockOf = (row: number): number => Math.floor(row / blockRows);
/** The cells that show something by the formula. */
const areaOf = ({ row, col, spill }: Formula): Range => spill ?? { row, col, toRow: row, toCol: col };

export class Unfinished {
	private readonly all = new Set<Formula>();
	/** By columns of tabs, and blocks of rows. */
	private readonly columns = new Map<number, Map<number, Set<Formula>>>();
	/** It changes when a formula is added or removed. */
	version = 0;

	get size(): number {
		return this.all.size;
	}

	[Symbol.iterator](): IterableIterator<Formula> {
		return this.all.values();
	}

	/** Its place and its array may not change while it is here. */
	add(formula: Formula): void {
		if (this.all.has(formula)) return;
		this.version++;
		this.all.add(formula);
		this.eachBlock(formula, (col, block) => {
			let blocks = this.columns.get(col);
			if (!blocks) this.columns.set(col, (blocks = new Map()));
			const there = blocks.get(block);
			if (there) there.add(formula);
			else blocks.set(block, new Set([formula]));
		});
	}

	delete(formula: Formula): void {
		if (!this.all.delete(formula)) return;
		this.version++;
		this.eachBlock(formula, (col, block) => {
			const blocks = this.columns.get(col)!;
			blocks.get(block)!.delete(formula);
			if (blocks.get(block)!.size === 0) blocks.delete(block);
			if (blocks.size === 0) this.columns.delete(col);
		});
	}

	clear(): void {
		this.version++;
		this.all.clear();
		this.columns.clear();
	}

	private eachBlock(formula: Formula, visit: (col: number, block: number) => void): void {
		const { row, col, toRow, toCol } = areaOf(formula);
		for (let c = col; c <= toCol; c++) for (let block = blockOf(row); block <= blockOf(toRow); block++) visit(columnOf(formula.tab, c), block);
	}

	/** Those that show something in the range. */
	within({ tab, row, col, toRow, toCol }: Area): Formula[] {
		const found = new Set<Formula>();
		const [first, last] = [blockOf(row), blockOf(toRow)];
		const search = (there: Set<Formula> | undefined) =>
			there?.forEach((formula) => {
				const area = areaOf(formula);
				if (area.row <= toRow && area.toRow >= row && area.col <= toCol && area.toCol >= col) found.add(formula);
			});
		for (const c of smaller(columnOf(tab, col), columnOf(tab, toCol), this.columns)) {
			const blocks = this.columns.get(c);
			if (blocks) for (const block of smaller(first, last, blocks)) search(blocks.get(block));
		}
		return [...found];
	}
}

/** The numbers from first to last that may be keys: all of them, or the keys, whichever are fewer. */
function* smaller(first: number, last: number, map: Map<number, unknown>): Iterable<number> {
	if (last - first < map.size) for (let n = first; n <= last; n++) yield n;
	else for (const n of map.keys()) if (n >= first && n <= last) yield n;
}
