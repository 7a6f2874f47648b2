// announce.ts - tells screen readers what has changed, in the polite region of index.html.
import { h } from '../dom';

/** Reads a text out when the reader has finished what it says. */
export function announce(text: string): void {
	const line = h('p', {}, text);
	document.querySelector('#announcements')!.append(line);
	setTimeout(() => line.remove(), 10000);
}

const settleMs = 800;

/** Announces the states of a sheet in which it stays, not each edit on its way. */
export class StateAnnouncer {
	private state = '';
	private said = '';
	private timer: ReturnType<typeof setTimeout> | undefined;

	/** `state` is announced as `text` if it has lasted for a moment; '' is not announced. */
	show(state: string, text: string): void {
		if (state === this.state) return;
		this.state = state;
		clearTimeout(this.timer);
		if (state === '' || state === this.said) return;
		this.timer = setTimeout(() => {
			this.said = state;
			announce(text);
		}, settleMs);
	}

	/** The state is to be announced even if it was the last one announced: something happened in between. */
	forget(): void {
		this.said = '';
	}

	stop(): void {
		clearTimeout(this.timer);
	}
}
