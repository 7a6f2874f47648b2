// choices.ts - what an account has chosen for its calendars in this browser: which are shown, their colours, and the view.

/** White text has at least 4.5:1 on each of them. */
export const colours = ['#0b6b50', '#1d5fbf', '#7a3bd1', '#b3261e', '#8a5200', '#00647a', '#a3206a', '#4d5a55'] as const;

export type View = 'dayGridMonth' | 'timeGridWeek' | 'timeGridDay' | 'listMonth';
export const views: readonly View[] = ['dayGridMonth', 'timeGridWeek', 'timeGridDay', 'listMonth'];
/** In the place of an id: invitations of calendars that the account may not open. */
export const invitations = 0;

export class Choices {
	private readonly key: string;
	private hidden: number[] = [];
	private colours: Record<number, number> = {};
	private chosenView: View | null = null;

	constructor(uid: number) {
		this.key = `pg_sheet.calendars.${uid}`;
		try {
			const stored = JSON.parse(localStorage.getItem(this.key) ?? '{}') as { hidden?: unknown; colours?: unknown; view?: unknown };
			if (Array.isArray(stored.hidden)) this.hidden = stored.hidden.filter((id): id is number => Number.isInteger(id));
			if (stored.colours && typeof stored.colours === 'object') this.colours = stored.colours as Record<number, number>;
			if (views.includes(stored.view as View)) this.chosenView = stored.view as View;
		} catch {
			// The entry is not ours.
		}
	}

	private store(): void {
		localStorage.setItem(this.key, JSON.stringify({ hidden: this.hidden, colours: this.colours, view: this.chosenView }));
	}

	isShown(id: number): boolean {
		return !this.hidden.includes(id);
	}

	show(id: number, isShown: boolean): void {
		this.hidden = this.hidden.filter((other) => other !== id);
		if (!isShown) this.hidden.push(id);
		this.store();
	}

	/** The number of its colour. */
	colourOf(id: number): number {
		return Math.abs(this.colours[id] ?? id) % colours.length;
	}

	setColour(id: number, colour: number): void {
		this.colours[id] = colour;
		this.store();
	}

	get view(): View | null {
		return this.chosenView;
	}

	set view(view: View) {
		this.chosenView = view;
		this.store();
	}
}
