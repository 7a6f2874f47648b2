// refused.ts - why a workbook is not read, and what of one was left out.

export type Code = 'workbook_broken' | 'workbook_encrypted' | 'workbook_unknown' | 'workbook_limit';

/** Where in the workbook: a part is a file of it; row and column count from 1, as programs show them. */
export interface Where {
	part?: string | undefined;
	tab?: string | undefined;
	row?: number | undefined;
	column?: number | undefined;
}

export class Refused extends Error {
	constructor(
		readonly code: Code,
		reason: string,
		readonly where: Where = {},
	) {
		super(reason);
	}
}

export interface NotCarried {
	/** null: of the workbook. */
	tab: string | null;
	what: string;
	count: number;
}

/** Entries of the answer. */
const mostKinds = 1000;
/** Characters of an entry's `what`. */
const mostLetters = 100;

/** What was not taken over, by tab and kind. */
export class Losses {
	private readonly counts = new Map<string, NotCarried>();

	add(tab: string | null, thing: string, count = 1): void {
		const isFull = this.counts.size >= mostKinds;
		const what = isFull ? 'other things' : thing.slice(0, mostLetters);
		const key = `${isFull ? '' : (tab ?? '')}\n${what}`;
		const entry = this.counts.get(key) ?? { tab: isFull ? null : tab, what, count: 0 };
		entry.count += count;
		this.counts.set(key, entry);
	}

	/** It is not lost, but not shown either. */
	keep(tab: string, what: string, count: number): void {
		const entry = this.kept.find((one) => one.tab === tab && one.what === what);
		if (entry) entry.count += count;
		else this.kept.push({ tab, what, count });
	}

	readonly kept: NotCarried[] = [];

	list(): NotCarried[] {
		return [...this.counts.values()];
	}
}
