// values.ts - between cells of Univer's model and what the worker is told, and tells.
import type { ICellData, IStyleData, Nullable, Styles } from '@univerjs/core';

export function isFormulaCell(cell: Nullable<ICellData>): boolean {
	return !!cell && Boolean(cell.f || cell.si);
}

/** The number format of a cell that follows from the result of its formula. It is in the grid only. */
function derivedPattern(cell: Nullable<ICellData>, style: Nullable<IStyleData>): string | undefined {
	const derived = cell?.custom?.derivedFormat as string | undefined;
	return derived && derived === style?.n?.pattern ? derived : undefined;
}

/** The style that a cell has, as it is stored. */
export function ownStyle(cell: Nullable<ICellData>, styles: Styles): Nullable<IStyleData> {
	const style = cell?.s ? styles.getStyleByCell(cell) : null;
	if (!derivedPattern(cell, style)) return style;
	const { n: _derived, ...own } = style!;
	return Object.keys(own).length > 0 ? own : null;
}

/** What the user has typed into a cell. Univer gives it the style of the cell before, of which the format may follow from a formula. */
export function withoutDerived(typed: ICellData, old: Nullable<ICellData>, styles: Styles): ICellData {
	const style = typeof typed.s === 'string' ? styles.get(typed.s) : typed.s;
	const derived = old?.s ? derivedPattern(old, styles.getStyleByCell(old)) : undefined;
	if (!derived || style?.n?.pattern !== derived) return typed;
	const { n: _derived, ...own } = style;
	return { ...typed, s: own };
}

/** A patch of a cell takes the formula out: the format that follows from the formula goes, too. */
export function leaveDerived(patch: ICellData, old: Nullable<ICellData>, styles: Styles): void {
	const goes = ('f' in patch || 'si' in patch) && !patch.f && !patch.si;
	if (!goes || !old?.custom?.derivedFormat) return;
	patch.custom ??= null;
	if (!derivedPattern(old, styles.getStyleByCell(old)) || patch.s === null) return;
	const style = typeof patch.s === 'string' ? styles.get(patch.s) : patch.s;
	if (!style?.n) patch.s = { ...style, n: null };
}

/**
 * What a result changes in the cell of its formula; null: nothing. A format that follows from the result is marked, so that it
 * goes with it: what a cell shows does not depend on what it has shown before.
 */
export function formulaPatch(result: ICellData, old: ICellData, style: Nullable<IStyleData>): ICellData | null {
	const pattern = (result.s as Nullable<IStyleData>)?.n?.pattern;
	const oldPattern = style?.n?.pattern;
	const isDerived = derivedPattern(old, style) !== undefined;
	const isSame = old.v === result.v && old.t === result.t && !old.p && !result.p;
	const patch: ICellData = { v: result.v ?? null, t: result.t ?? null };
	if (result.p || old.p) patch.p = result.p ?? null;
	if (pattern && (!oldPattern || isDerived)) {
		if (isSame && pattern === oldPattern) return null;
		return { ...patch, s: { n: { pattern } }, custom: { ...old.custom, derivedFormat: pattern } };
	}
	if (isDerived) return { ...patch, s: { n: null }, custom: null };
	return isSame ? null : patch;
}
