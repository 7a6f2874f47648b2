// choices.ts - what an account has chosen for its calendars in this browser: which are shown, and the view.

export type View = 'dayGridMonth' | 'timeGridWeek' | 'timeGridDay' | 'listMonth';
export const views: readonly View[] = ['dayGridMonth', 'timeGridWeek', 'timeGridDay', 'listMonth'];
/** In the place of an id: invitations of calendars that the account may not open. */
export const invitations = 0;

export class Choices {
	private readonly key: string;
	private hidden: number[] = [];
	private chosenView: View | null = null;

	constructor(uid: number) {
		this.key = `pg_sheet.calendars.${uid}`;
		try {
			const stored = JSON.parse(localStorage.getItem(this.key) ?? '{}') as { hidden?: unknown; view?: unknown };
			if (Array.isArray(stored.hidden)) this.hidden = stored.hidden.filter((id): id is number => Number.isInteger(id));
			if (views.includes(stored.view as View)) this.chosenView = stored.view as View;
		} catch {
			// The entry is not ours.
		}
	}

	private store(): void {
		localStorage.setItem(this.key, JSON.stringify({ hidden: this.hidden, view: this.chosenView }));
	}

	isShown(id: number): boolean {
		return !this.hidden.includes(id);
	}

	show(id: number, isShown: boolean): void {
		this.hidden = this.hidden.filter((other) => other !== id);
		if (!isShown) this.hidden.push(id);
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
