// tell.ts - gives the messages of the page to the calculation.
import type { Calculation } from './calculation';
import type { ToWorker } from './messages';
import { TabCells } from './tab_cells';

export class Teller {
	/** The other tabs, by their numbers. */
	private readonly tabs = new Map<number, TabCells>();
	private n = 0;

	constructor(private readonly calculation: Calculation) {}

	tell(message: Exclude<ToWorker, { t: 'start' }>): void {
		const { calculation } = this;
		this.n = message.n;
		switch (message.t) {
			case 'cells':
				return calculation.set(message.n, message.cells, message.formulas, message.more);
			case 'move':
				return calculation.move(message.n, message.change);
			case 'hidden':
				return calculation.hide(message.n, message.rows);
			case 'clock':
				return calculation.setClock(message.n, message.zone);
			case 'seq':
				return calculation.draw(message.n, message.seq);
			case 'names':
				// Those that come back are told anew.
				for (const tab of this.tabs.keys()) if (!message.names?.some((name) => name.tab === tab)) this.tabs.delete(tab);
				return calculation.setNames(message.n, message.names);
			case 'tab':
				this.tabs.delete(message.tab);
				return calculation.setState(message.n, message.tab, message.state);
			case 'edits':
				return this.edit(message);
		}
	}

	private edit({ n, tab: number, edits, seq, isHere }: Extract<ToWorker, { t: 'edits' }>): void {
		let tab = this.tabs.get(number);
		if (!tab) this.tabs.set(number, (tab = new TabCells(this.calculation, number, () => this.n)));
		for (const edit of edits) tab.apply(edit);
		if (!isHere) return tab.tell(true);
		tab.settle(seq);
		this.calculation.setState(n, number, 'here');
	}
}
