// span.ts - when an entry is, and the cells that say so.
import type { Cells, Scope, Task } from './http';
import { endText, wall, wallText } from './times';

/** Local times; of whole days dates, and `end` is the day after the last one. */
export interface Span {
	start: string;
	end: string;
	allDay: boolean;
}

/** The cells for another time of an entry. */
export function movedCells(task: Task | null, before: Span | null, now: Span, scope: Scope): Cells {
	const cells: Cells = {};
	const lasts = ({ start, end }: Span) => wall(end) - wall(start);
	if (!before || before.start !== now.start || before.allDay !== now.allDay) {
		// Of the whole series, the start moves as this occurrence does.
		const isSeries = scope === 'all' && task?.repeats && task.start !== null && before;
		const start = isSeries ? wall(task.start!) + wall(now.start) - wall(before.start) : wall(now.start);
		cells.Start = wallText(start, now.allDay);
	}
	if (!before ? endText(now.start, now.end, now.allDay) !== '' : lasts(before) !== lasts(now) || before.allDay !== now.allDay)
		cells.End = endText(now.start, now.end, now.allDay);
	return cells;
}
