// clock.ts - the time of NOW() and TODAY(): that of the sheet's time zone, from day to day.
import { serialIn, zoneOf } from '../sheet/timezone';
import type { PropertySet } from '../v2/properties';

/** Interval of the check for a new day. */
const dayMs = 20000;

export class GridClock {
	private zone: string;
	private day: number;
	private readonly timer: ReturnType<typeof setInterval>;

	constructor(
		private readonly properties: () => PropertySet,
		/** Formulas get the time of this zone, anew. */
		private readonly tell: (zone: string) => void,
	) {
		this.zone = zoneOf(properties());
		this.day = Math.floor(serialIn(this.zone));
		tell(this.zone);
		this.timer = setInterval(() => this.look(), dayMs);
	}

	/** The properties may have changed. */
	arrange(): void {
		const zone = zoneOf(this.properties());
		if (zone === this.zone) return;
		this.zone = zone;
		this.day = Math.floor(serialIn(zone));
		this.tell(zone);
	}

	private look(): void {
		const day = Math.floor(serialIn(this.zone));
		if (day === this.day) return;
		this.day = day;
		this.tell(this.zone);
	}

	dispose(): void {
		clearInterval(this.timer);
	}
}
