// others.ts - the cells of other tabs of the book, for the formulas of the open sheet. A tab is read when a formula asks for it, over a
// connection of its own that writes nothing, and is followed as long as the sheet is open.
import type { OtherTabsSource, TabListener, TabName } from '../formulas/messages';
import { SheetClient, type Socket } from '../v2/client';
import { closeCodes, type Edit, type Range } from '../v2/messages';

/** A larger tab is not read. */
const mostCells = 4194304;
const checkMs = 1000;
/** Number of checks after which a refused tab is read again. */
const refusedChecks = 10;
/** Number of checks without a message after which formulas no longer wait for a tab. */
const mostWaits = 10;

export interface OtherTabsOptions {
	/** The open sheet. */
	sheet: number;
	token: () => string;
	/** The address of a tab's gateway. moved: the one that the last gateway named. */
	locate: (sheet: number, moved: string | null) => Promise<string>;
	/** Whether it is settled that no gateway has the tab for this account. */
	isRefusal: (error: unknown) => boolean;
	open?: (url: string, protocol: string) => Socket;
}

/** What a listener hears of one tab. */
interface TabTeller {
	edits(edits: Edit[], seq: number, isHere: boolean): void;
	state(state: 'wanted' | 'refused'): void;
}

export class OtherTabs implements OtherTabsSource {
	/** By sheets. A number never names another sheet. */
	private readonly numbers: Map<number, number>;
	private names: readonly TabName[] | null = null;
	private listener: TabListener | null = null;
	private readonly open = new Map<number, OtherTab>();
	private checks = 0;
	private checking: ReturnType<typeof setInterval> | undefined;

	constructor(private readonly options: OtherTabsOptions) {
		this.numbers = new Map([[options.sheet, 0]]);
	}

	/** The tabs of the book, in their order; none: the sheet is in no book. */
	setTabs(tabs: readonly { sheet: number; name: string }[]): void {
		const names = tabs.map(({ sheet, name }) => {
			if (!this.numbers.has(sheet)) this.numbers.set(sheet, this.numbers.size);
			return { tab: this.numbers.get(sheet)!, name };
		});
		const listed = new Set(names.map(({ tab }) => tab));
		for (const [tab, other] of this.open) {
			if (listed.has(tab)) continue;
			other.close();
			this.open.delete(tab);
		}
		this.tryAgain();
		if (JSON.stringify(names) === JSON.stringify(this.names)) return;
		this.names = names;
		this.listener?.names(names);
	}

	/** Another computation begins: it asks for what it reads. */
	listen(listener: TabListener): void {
		this.close();
		this.listener = listener;
		if (this.names) listener.names(this.names);
	}

	/** Tabs that could not be read may be readable now: the book has changed, or there is a new token. */
	tryAgain(): void {
		for (const [tab, other] of this.open) if (other.isEnded) this.read(tab, other);
	}

	want(tabs: number[]): void {
		for (const tab of tabs) if (!this.open.has(tab)) this.read(tab);
	}

	private read(tab: number, before?: OtherTab): void {
		const { listener } = this;
		const sheet = [...this.numbers].find(([, number]) => number === tab)?.[0];
		if (!listener || sheet === undefined) return;
		const tell: TabTeller = {
			edits: (edits, seq, isHere) => listener.edits(tab, edits, seq, isHere),
			state: (state) => listener.state(tab, state),
		};
		this.open.set(tab, new OtherTab(sheet, this.options, tell, before));
		this.checking ??= setInterval(() => this.check(), checkMs);
	}

	private check(): void {
		this.open.forEach((other) => other.check());
		// A tab in the list that a gateway has refused: one of the two answers is old.
		if (++this.checks % refusedChecks === 0) this.tryAgain();
	}

	close(): void {
		clearInterval(this.checking);
		this.checking = undefined;
		this.listener = null;
		this.open.forEach((other) => other.close());
		this.open.clear();
	}
}

class OtherTab {
	private readonly client: SheetClient;
	private edits: Edit[] = [];
	private told = -1;
	/** The listener has been told of it. */
	private isKnown: boolean;
	/** The listener has been told that it cannot be read. */
	private isRefused: boolean;
	/** The listener has all of its cells. */
	private isHere = false;
	/** Checks since anything has come. */
	private waits = 0;
	/** It is closed for good. */
	isEnded = false;

	constructor(
		sheet: number,
		{ token, locate, isRefusal, open }: OtherTabsOptions,
		private readonly listener: TabTeller,
		/** The connection before this one. */
		before: OtherTab | undefined,
	) {
		this.isKnown = before !== undefined;
		this.isRefused = before?.isRefused ?? false;
		this.client = new SheetClient({
			url: (moved) => locate(sheet, moved),
			...{ sheet, token, client: 0, encoding: 'binary' as const },
			...(open && { open }),
			store: {
				set: (edit) => this.edits.push(edit),
				fill: (_, cells) => this.add(cells),
				move: (change) => this.edits.push(change),
				property: (edit) => this.edits.push(edit),
				clear: () => {},
			},
			onRestart: ({ rows, cols }) => {
				this.edits = [];
				if (this.isKnown) listener.state('wanted');
				this.isKnown = true;
				this.isRefused = this.isHere = false;
				this.told = -1;
				if (rows * cols <= mostCells) return this.load();
				this.client.close();
				this.tellRefused();
			},
			onMessage: (message) => {
				this.waits = 0;
				if (message.t === 'properties') this.add(message.properties);
				this.tell();
			},
			onClose: (code, _, again) => {
				if (again || this.isEnded) return;
				// With the next token it is read again.
				if (code === closeCodes.unauthorized) this.close();
				else this.refuse();
			},
			onUnreachable: (error) => {
				if (isRefusal(error)) this.refuse();
				return !this.isEnded;
			},
		});
		this.client.connect();
	}

	private add(edits: readonly Edit[]): void {
		for (const edit of edits) this.edits.push(edit);
	}

	private get whole(): Range {
		const { rows, cols } = this.client.replica;
		return { row: 0, col: 0, toRow: Math.max(rows, 1) - 1, toCol: Math.max(cols, 1) - 1 };
	}

	private load(): void {
		this.client.load(this.whole, 0);
	}

	private tell(): void {
		const { replica, hello } = this.client;
		if (!hello || this.isEnded) return;
		const { isWhole, seq } = replica;
		// Edits have enlarged it.
		if (!isWhole) this.load();
		if (this.edits.length === 0 && (!isWhole || (seq === this.told && this.isHere))) return;
		this.listener.edits(this.edits.splice(0), seq, isWhole);
		this.told = seq;
		this.isHere = isWhole;
	}

	private refuse(): void {
		this.close();
		this.tellRefused();
	}

	private tellRefused(): void {
		this.isKnown = true;
		if (!this.isRefused) this.listener.state('refused');
		this.isRefused = true;
	}

	check(): void {
		if (this.isEnded) return;
		this.client.check();
		// Formulas do not wait for a gateway that does not answer.
		if (!this.isHere && ++this.waits > mostWaits) this.refuse();
	}

	close(): void {
		this.isEnded = true;
		this.client.close();
	}
}
