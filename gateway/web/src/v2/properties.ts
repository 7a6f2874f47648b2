// properties.ts - the properties of a sheet: a set that follows from the edits of a log, as common/properties.c has it, and
// tests/vectors/properties.json says.

import { isOfRows, maxCols, maxRows, moveRange } from './lines';
import type { PropertyEdit, Range, StructureEdit } from './messages';

type Target = Range & { key: string };

/** Range and key name a property. */
export const propertyName = ({ row, col, toRow, toCol, key }: Target): string => `${row},${col},${toRow},${toCol},${key}`;

export const sameValue = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

export const hasAllRows = ({ row, toRow }: Range): boolean => row === 0 && toRow === maxRows - 1;
export const hasAllCols = ({ col, toCol }: Range): boolean => col === 0 && toCol === maxCols - 1;
export const cellsOf = ({ row, col, toRow, toCol }: Range): number => (toRow - row + 1) * (toCol - col + 1);

/** A property after the change; undefined if all of it is deleted. All rows stay all rows, all columns all columns. */
export function moveProperty<T extends Range>(property: T, change: StructureEdit): T | undefined {
	if (isOfRows(change) ? hasAllRows(property) : hasAllCols(property)) return property;
	const range = moveRange(property, change);
	return range && { ...property, ...range };
}

export class PropertySet {
	private entries = new Map<string, PropertyEdit>();

	get size(): number {
		return this.entries.size;
	}

	put({ row, col, toRow, toCol, key, value }: PropertyEdit): void {
		const property = { row, col, toRow, toCol, key, value };
		if (value === null) this.entries.delete(propertyName(property));
		else this.entries.set(propertyName(property), property);
	}

	remove(target: Target): void {
		this.entries.delete(propertyName(target));
	}

	/** The value; null if there is none. */
	value(target: Target): unknown {
		return this.entries.get(propertyName(target))?.value ?? null;
	}

	of(key: string): PropertyEdit[] {
		return this.list().filter((property) => property.key === key);
	}

	list(): PropertyEdit[] {
		return [...this.entries.values()];
	}

	/** Of two properties that become equal, the one stays that had fewer cells. */
	move(change: StructureEdit): void {
		const before = this.list().sort((a, b) => cellsOf(a) - cellsOf(b));
		this.entries.clear();
		for (const property of before) {
			const moved = moveProperty(property, change);
			if (moved && this.value(moved) === null) this.put(moved);
		}
	}

	clear(): void {
		this.entries.clear();
	}

	copy(): PropertySet {
		const copy = new PropertySet();
		copy.entries = new Map(this.entries);
		return copy;
	}

	/** The edits that make this set of another one: removals first. */
	since(before: PropertySet): PropertyEdit[] {
		const gone = before.list().filter((property) => this.value(property) === null);
		const set = this.list().filter((property) => !sameValue(before.value(property), property.value));
		return [...gone.map((property) => ({ ...property, value: null })), ...set];
	}
}
