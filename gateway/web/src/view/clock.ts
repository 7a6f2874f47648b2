// clock.ts - NOW() and TODAY() in the time zone of the sheet. Univer computes NOW() in that of the browser, and TODAY() in UTC.
import type { Injector } from '@univerjs/core';
import { BaseFunction, FUNCTION_NAMES_DATE, IFunctionService, NumberValueObject } from '@univerjs/engine-formula';
import { parseDate } from '../content';
import { clockIn, zoneOf } from '../sheet/timezone';
import type { PropertySet } from '../v2/properties';

/** So often it is seen whether a day has begun. */
const dayMs = 20000;

export class GridClock {
	private zone: string;
	private day: number;
	private readonly timer: ReturnType<typeof setInterval>;

	constructor(
		injector: Injector,
		private readonly properties: () => PropertySet,
		/** Computes all formulas. */
		private readonly recalculate: () => void,
	) {
		this.zone = zoneOf(properties());
		this.day = Math.floor(this.serial());
		const clock = this;
		class Now extends BaseFunction {
			override minParams = 0;
			override maxParams = 0;
			override calculate() {
				return NumberValueObject.create(clock.serial(), 'yyyy-mm-dd hh:mm');
			}
		}
		class Today extends BaseFunction {
			override minParams = 0;
			override maxParams = 0;
			override calculate() {
				return NumberValueObject.create(Math.floor(clock.serial()), 'yyyy-mm-dd');
			}
		}
		injector.get(IFunctionService).registerExecutors(new Now(FUNCTION_NAMES_DATE.NOW), new Today(FUNCTION_NAMES_DATE.TODAY));
		this.timer = setInterval(() => this.look(), dayMs);
	}

	private serial(): number {
		return parseDate(clockIn(this.zone, new Date()))!.serial;
	}

	/** The properties may have changed. */
	arrange(): void {
		const zone = zoneOf(this.properties());
		if (zone === this.zone) return;
		this.zone = zone;
		this.day = Math.floor(this.serial());
		this.recalculate();
	}

	private look(): void {
		const day = Math.floor(this.serial());
		if (day === this.day) return;
		this.day = day;
		this.recalculate();
	}

	dispose(): void {
		clearInterval(this.timer);
	}
}
