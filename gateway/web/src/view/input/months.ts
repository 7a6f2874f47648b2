// months.ts - series of dates that are months apart, which Univer goes on with by days: 31 Jan, 29 Feb, 31 Mar.
import { Direction, Tools } from '@univerjs/core';
import { AUTO_FILL_APPLY_TYPE, IAutoFillService, type IAutoFillRule } from '@univerjs/sheets';
import type { GridParts } from '../parts';

const dayMs = 86400000;
const epoch = Date.UTC(1899, 11, 30);
/** 1 March 1900: before, serial numbers count a day that there was not. */
const firstSerial = 61;

/** The next dates; null: the dates are not the same day of months that are equally far apart, or of the ends of such months. */
export function nextMonths(serials: number[], count: number): number[] | null {
	const fraction = serials[0]! % 1;
	if (serials.length < 2 || serials.some((serial) => serial < firstSerial || serial % 1 !== fraction)) return null;
	const dates = serials.map((serial) => new Date(epoch + Math.floor(serial) * dayMs));
	const months = dates.map((date) => date.getUTCFullYear() * 12 + date.getUTCMonth());
	const step = months[1]! - months[0]!;
	const day = Math.max(...dates.map((date) => date.getUTCDate()));
	/** The day in a month, which may be shorter. Months count from the year 0. */
	const dateIn = (month: number) => Math.min(day, new Date(Date.UTC(Math.floor(month / 12), (month % 12) + 1, 0)).getUTCDate());
	if (step === 0 || months.some((month, i) => month !== months[0]! + i * step || dates[i]!.getUTCDate() !== dateIn(month))) return null;
	return Array.from({ length: count }, (_, i) => {
		const month = months.at(-1)! + step * (i + 1);
		return (Date.UTC(Math.floor(month / 12), month % 12, dateIn(month)) - epoch) / dayMs + fraction;
	});
}

type Fill = NonNullable<NonNullable<IAutoFillRule['applyFunctions']>[AUTO_FILL_APPLY_TYPE.SERIES]>;

/** What Univer does with dates. The rule is one for all grids. */
let byDays: Fill | undefined;

export function addMonths({ injector }: GridParts): void {
	const rule = injector
		.get(IAutoFillService)
		.getRules()
		.find(({ type }) => type === 'date');
	byDays ??= rule?.applyFunctions?.[AUTO_FILL_APPLY_TYPE.SERIES];
	const byMonths: Fill = (found, count, direction, ...rest) => {
		const backward = direction === Direction.LEFT || direction === Direction.UP;
		const cells = backward ? [...found.data].reverse() : found.data;
		const serials = nextMonths(
			cells.map((cell) => Number(cell?.v)),
			count,
		);
		if (!serials || serials.some((serial) => serial < firstSerial)) return byDays!(found, count, direction, ...rest);
		const filled = serials.map((v, i) => ({ ...Tools.deepClone(cells[i % cells.length]), v }));
		return backward ? filled.reverse() : filled;
	};
	if (rule && byDays) rule.applyFunctions = { ...rule.applyFunctions, [AUTO_FILL_APPLY_TYPE.SERIES]: byMonths };
}
