// values.ts - between cells of Univer's model and what the worker is told, and tells.
import { CellValueType } from '@univerjs/core';
import type { ICellData, IStyleData, Nullable } from '@univerjs/core';

/** The value of a cell without a formula; undefined: it is empty. */
export function valueOf(cell: Nullable<ICellData>): number | string | boolean | undefined {
	if (!cell) return undefined;
	if (cell.p?.body) return cell.p.body.dataStream.replace(/\r\n$/, '').replace(/\r/g, '\n');
	const { v, t } = cell;
	if (v === null || v === undefined || v === '') return undefined;
	if (t === CellValueType.BOOLEAN) return v === 1 || v === true || v === '1';
	if (t === CellValueType.NUMBER && !Number.isNaN(Number(v))) return Number(v);
	return t === CellValueType.STRING || t === CellValueType.FORCE_STRING ? String(v) : v;
}

/**
 * What a result changes in the cell of its formula; null: nothing. A format that follows from the result is marked, so that it
 * goes with it: what a cell shows does not depend on what it has shown before.
 */
export function formulaPatch(result: ICellData, old: ICellData, style: Nullable<IStyleData>): ICellData | null {
	const pattern = (result.s as Nullable<IStyleData>)?.n?.pattern;
	const oldPattern = style?.n?.pattern;
	const isDerived = old.custom?.derivedFormat === true;
	const isSame = old.v === result.v && old.t === result.t && !old.p && !result.p;
	const patch: ICellData = { v: result.v ?? null, t: result.t ?? null };
	if (result.p || old.p) patch.p = result.p ?? null;
	if (pattern && (!oldPattern || isDerived)) {
		if (isSame && pattern === oldPattern) return null;
		return { ...patch, s: { n: { pattern } }, custom: { ...old.custom, derivedFormat: true } };
	}
	if (isDerived) return { ...patch, s: { n: null }, custom: { ...old.custom, derivedFormat: false } };
	return isSame ? null : patch;
}
