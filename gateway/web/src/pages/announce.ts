// announce.ts - what the page says of the connection and of edits that are not saved, and what it tells screen readers, in the polite region
// of index.html.
import { h } from '../dom';
import { t } from '../i18n';
import type { Status } from '../sheet/events';

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

/** The browser has told that its network is gone. On a machine that never had one, a local gateway answers. */
let offline = false;
window.addEventListener('offline', () => (offline = true));
window.addEventListener('online', () => (offline = false));

export function statusText({ phase, unsaved, held, loading, partial }: Status): string {
	if (phase === 'stopped') return unsaved ? t('status.stoppedUnsaved', { count: unsaved }) : t('status.stopped');
	if (phase === 'connecting') return t('status.connecting');
	if (phase !== 'connected' && offline) return unsaved ? t('status.offlineUnsaved', { count: unsaved }) : t('status.offline');
	if (phase === 'reconnecting') return unsaved ? t('status.reconnectingUnsaved', { count: unsaved }) : t('status.reconnecting');
	if (phase === 'silent') return unsaved ? t('status.silentUnsaved', { count: unsaved }) : t('status.silent');
	if (unsaved && held) return t('status.held', { count: unsaved, name: held.holder, seconds: held.seconds });
	if (unsaved) return t('status.saving', { count: unsaved });
	if (loading) return t('status.loading');
	return partial ? t('status.partial') : t('status.saved');
}
