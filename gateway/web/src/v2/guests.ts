// guests.ts - guests of one share link have one uid. A guest's page knows its own edits by what it has sent.
import type { Edit, LoggedEdit } from './messages';

const firstGuest = 2 ** 52;

export const isGuest = (uid: number): boolean => uid >= firstGuest;

/** Of nobody who is known. */
const nobody = 0;

/** The same text for an edit that was sent and for its echo. */
function nameOf(edit: Edit & { uid?: number }): string {
	const fields = Object.entries(edit).filter(([name, value]) => name !== 'uid' && value !== undefined);
	return JSON.stringify(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The edits of a commit, of which those of other guests are of nobody. sent: the edits that the page has sent, and that it may
 * not have heard of. heard: those of them that it has heard of; what is found is added.
 */
export function tellGuestsApart(edits: LoggedEdit[], uid: number, sent: readonly Edit[], heard: WeakSet<Edit>): LoggedEdit[] {
	if (!edits.some((edit) => edit.uid === uid)) return edits;
	const expected = new Map<string, Edit[]>();
	for (const edit of sent) {
		if (heard.has(edit)) continue;
		const name = nameOf(edit);
		const alike = expected.get(name);
		if (alike) alike.push(edit);
		else expected.set(name, [edit]);
	}
	const isOwn = (edit: LoggedEdit): boolean => {
		const mine = expected.get(nameOf(edit))?.shift();
		if (mine) heard.add(mine);
		return mine !== undefined;
	};
	return edits.map((edit) => (edit.uid === uid && !isOwn(edit) ? { ...edit, uid: nobody } : edit));
}
