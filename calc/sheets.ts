// sheets.ts - which sheet is computed when, and by which thread (docs/design/calc.md).
//
// A sheet with work waits in a queue. Its job reads what the database has and the thread has not, computes, and stores the
// values. Whatever fails, the sheet is forgotten: the database says which sheets have work, and is asked again before long.
import { mostStopped } from '../gateway/web/src/formulas/limits';
import { type Database, stateOf } from './database';
import { log } from './log';
import { type Computed, JobFailed, longMs, logLost, type Thread, ThreadLost, ThreadPool } from './pool';
import type { Settings } from './settings';

/** Between two computations of a sheet. */
const pauseMs = 100;
const mostFailures = 3;
const chunkBytes = 1 << 20;
const tailBytes = 4 << 20;
/** The log has been trimmed since. */
const trimmed = '22023';
const noNames = '';
/** Source of values that depend on the names of tabs. */
const namesId = '0';

interface Sheet {
	readonly id: string;
	/** The thread that has its cells. */
	thread: Thread | null;
	/** The state of these cells. */
	seq: number;
	/** The last seq of which values are stored; -1: none are known. */
	stored: number;
	/** The last seq that is heard of. */
	wanted: number;
	state: 'idle' | 'queued' | 'running';
	/** It has had a long job. Not all threads are for such sheets. */
	isLong: boolean;
	notBefore: number;
	weight: number;
	/** Formulas that have exceeded the deadline, and when. */
	stopped: Map<string, number>;
	/** How often its thread has ended without a formula to blame. */
	failures: number;
	tabs: BookTabs;
	/** It is to be computed though it has not changed. */
	isDue: boolean;
}

/** The tabs of the sheet's book, as its thread knows them. */
interface BookTabs {
	/** Of the names. */
	state: string;
	/** By ids; the sheet itself has 0. */
	numbers: Map<string, number>;
	/** Names, as the thread was told last. */
	told: string;
	/** The states of those that the thread has, by ids. */
	seqs: Map<string, number>;
	/** Those that the sheet may not read. */
	refused: Set<string>;
	/** The last values depend on names. */
	areRead: boolean;
}

const noTabs = (id: string): BookTabs => ({
	state: '0',
	numbers: new Map([[id, 0]]),
	told: noNames,
	seqs: new Map(),
	refused: new Set(),
	areRead: false,
});

/** A row of sheet.to_compute(). */
export interface Due {
	sheet_id: string;
	seq: string;
	/** The seq of the stored values, unless they are due because of the time. */
	computed?: string;
}

/** None of its formulas is computed until it changes. */
const isOff = ({ stopped, failures }: Sheet): boolean => stopped.size >= mostStopped || failures >= mostFailures;

export class Sheets {
	/** The sheet used last is the last one. */
	private readonly sheets = new Map<string, Sheet>();
	private readonly queue = new Set<Sheet>();
	/** Could not be computed or stored; the database is asked later. */
	private missed = new Set<string>();
	private readonly pool: ThreadPool;
	private weight = 0;
	private waking: ReturnType<typeof setTimeout> | undefined;

	constructor(
		private readonly database: Database,
		private readonly settings: Settings,
		script: URL,
	) {
		this.pool = new ThreadPool(
			script,
			settings.threads,
			settings.threadMemory,
			() => this.dispatch(),
			(thread) => this.lose(thread),
		);
	}

	/** Whether the sheet's cells are in memory, or will be. */
	has(id: string): boolean {
		const sheet = this.sheets.get(id);
		return sheet !== undefined && (sheet.thread !== null || sheet.state !== 'idle');
	}

	/** A sheet that is in memory has this seq. */
	changed(id: string, seq: number): void {
		const sheet = this.sheets.get(id)!;
		sheet.wanted = Math.max(sheet.wanted, seq);
		this.enqueue(sheet);
	}

	/** The database says that the sheet has work. */
	due({ sheet_id, seq, computed }: Due): void {
		const sheet = this.sheets.get(sheet_id) ?? this.add(sheet_id);
		if (sheet.state === 'idle' && sheet.thread && (Number(computed) < sheet.stored || Number(seq) < sheet.seq)) this.unload(sheet);
		sheet.wanted = Math.max(sheet.wanted, Number(seq));
		sheet.isDue = true;
		this.enqueue(sheet);
	}

	/** The sheets that could not be computed or stored since the last call. */
	takeMissed(): string[] {
		const missed = [...this.missed];
		this.missed.clear();
		return missed;
	}

	/** The sheet could not be computed or stored. */
	miss(id: string): void {
		this.missed.add(id);
	}

	/** Others belong to another calc. */
	keep(isOwn: (id: string) => boolean): void {
		for (const sheet of this.sheets.values()) if (sheet.state !== 'running' && !isOwn(sheet.id)) this.forget(sheet);
	}

	private add(id: string): Sheet {
		const sheet: Sheet = {
			...{
				id,
				thread: null,
				seq: 0,
				stored: -1,
				wanted: 0,
				state: 'idle' as const,
				isLong: false,
			},
			...{
				notBefore: 0,
				weight: 0,
				stopped: new Map(),
				failures: 0,
				tabs: noTabs(id),
				isDue: false,
			},
		};
		this.sheets.set(id, sheet);
		return sheet;
	}

	private enqueue(sheet: Sheet): void {
		if (sheet.state !== 'idle') return;
		sheet.state = 'queued';
		this.queue.add(sheet);
		this.dispatch();
	}

	// ---- threads ----

	/** Starts the jobs for which there are threads. */
	private dispatch(): void {
		const now = performance.now();
		let next = Infinity;
		for (const sheet of this.queue) {
			if (sheet.notBefore > now) {
				next = Math.min(next, sheet.notBefore);
				continue;
			}
			if (!this.pool.hasRoom) break;
			const thread = this.threadFor(sheet);
			if (!thread) continue;
			this.queue.delete(sheet);
			sheet.state = 'running';
			thread.begin(sheet.id, sheet.isLong);
			void this.run(sheet, thread);
		}
		clearTimeout(this.waking);
		if (next < Infinity) this.waking = setTimeout(() => this.dispatch(), next - now);
	}

	/** The thread that has the sheet, unless that has a long job. */
	private threadFor(sheet: Sheet): Thread | null {
		const { thread } = sheet;
		if (thread?.job === null && !sheet.isLong) return thread;
		if (thread && thread.job !== null && thread.age < longMs) return null;
		const idle = this.pool.idle(sheet.isLong);
		if (thread && idle && thread.job === null) return thread;
		if (thread && idle) this.unload(sheet);
		return idle;
	}

	private unload(sheet: Sheet): void {
		if (sheet.thread && !sheet.thread.lost) {
			sheet.thread.sheets.delete(sheet.id);
			sheet.thread.post({ t: 'close', sheet: sheet.id });
		}
		sheet.thread = null;
		sheet.stored = -1;
		sheet.tabs = noTabs(sheet.id);
		this.weigh(sheet, 0);
	}

	private weigh(sheet: Sheet, weight: number): void {
		this.weight += weight - sheet.weight;
		sheet.weight = weight;
	}

	/** A thread has ended. */
	private lose(thread: Thread): void {
		for (const id of thread.sheets) {
			const sheet = this.sheets.get(id);
			if (sheet?.thread === thread) this.unload(sheet);
		}
	}

	/** Only what is known of its bad formulas stays. */
	private forget(sheet: Sheet): void {
		this.unload(sheet);
		this.queue.delete(sheet);
		sheet.state = 'idle';
		const waits = sheet.notBefore > performance.now() + pauseMs;
		if (sheet.stopped.size === 0 && sheet.failures === 0 && !sheet.isLong && !waits) this.sheets.delete(sheet.id);
	}

	/** Frees memory: the sheets go that were not used for longest. */
	private evict(): void {
		for (const sheet of this.sheets.values()) {
			if (this.weight <= this.settings.cachedCells) return;
			if (sheet.state === 'idle' && sheet.thread) this.forget(sheet);
		}
	}

	// ---- jobs ----

	private async run(sheet: Sheet, thread: Thread): Promise<void> {
		const began = performance.now();
		this.sheets.delete(sheet.id);
		this.sheets.set(sheet.id, sheet);
		const { wanted } = sheet;
		sheet.wanted = 0;
		sheet.isDue = false;
		let isDone = false;
		try {
			// The thread does not compute the formulas that were stopped. To try them again, it reads the sheet anew.
			if (sheet.thread && [...sheet.stopped.values()].some((at) => this.isPast(at))) this.unload(sheet);
			if (!sheet.thread) await this.load(sheet, thread);
			sheet.seq = await this.catchUp(sheet.id, 0, thread, sheet, wanted, sheet.seq);
			const computed = await this.compute(sheet, thread);
			thread.finish();
			sheet.isLong = performance.now() - began > longMs;
			sheet.notBefore = performance.now() + Math.max(pauseMs, sheet.isLong ? performance.now() - began : 0);
			this.weigh(sheet, computed.weight);
			this.dispatch();
			isDone = await this.store(sheet, computed);
			if (isOff(sheet)) {
				sheet.stopped.clear();
				sheet.failures = 0;
				sheet.notBefore = performance.now() + this.settings.retryMs;
				isDone = false;
			}
		} catch (error) {
			this.failed(sheet, error, performance.now() - began);
		}
		if (thread.job === sheet.id) thread.finish();
		sheet.state = 'idle';
		const again = sheet.wanted > sheet.seq || sheet.isDue;
		if (!isDone) this.forget(sheet);
		if (again && this.sheets.get(sheet.id) !== sheet) this.sheets.set(sheet.id, sheet);
		if (again) this.enqueue(sheet);
		this.evict();
		this.dispatch();
	}

	/** A formula that was stopped then is tried again. */
	private isPast(at: number): boolean {
		return Date.now() - at > this.settings.retryMs;
	}

	private async load(sheet: Sheet, thread: Thread): Promise<void> {
		const off = isOff(sheet);
		for (const [text, at] of sheet.stopped) if (!off && this.isPast(at)) sheet.stopped.delete(text);
		thread.post({
			t: 'open',
			sheet: sheet.id,
			stopped: [...sheet.stopped.keys()],
			off,
		});
		sheet.thread = thread;
		thread.sheets.add(sheet.id);
		sheet.seq = await this.read(sheet.id, 0, thread, sheet);
	}

	/** Reads all cells of a tab. Properties that are older than the cells follow in the log. Resolves to the seq. */
	private async read(id: string, tab: number, thread: Thread, { id: sheet }: Sheet): Promise<number> {
		const [first] = await this.database.rows('SELECT seq, rows, properties FROM sheet.read_properties($1)', [id]);
		thread.post({
			t: 'properties',
			sheet,
			tab,
			rows: Number(first!['rows']),
			bytes: first!['properties'],
		});
		let read = 0;
		await this.database.stream('SELECT seq, rows, cells FROM sheet.read_cells($1, NULL, NULL, NULL, NULL, $2)', [id, chunkBytes], (row) => {
			read = Number(row['seq']);
			if (row['cells'] && !thread.lost)
				thread.post({
					t: 'cells',
					sheet,
					tab,
					rows: Number(row['rows']),
					bytes: row['cells'],
				});
		});
		const seq = Number(first!['seq']);
		return read > seq ? this.catchUp(id, tab, thread, { id: sheet, seq }, read, read) : seq;
	}

	/** Reads the log of a tab up to `wanted` or further. Cells of the state `read` are known. Resolves to the seq. */
	private async catchUp(id: string, tab: number, thread: Thread, from: { id: string; seq: number }, wanted: number, read: number): Promise<number> {
		let { seq } = from;
		while (seq < wanted) {
			const [tail] = await this.database.rows('SELECT last_seq, batches FROM sheet.tail($1, $2, $3)', [id, seq, tailBytes]);
			if (!tail?.['batches'] || (tail['batches'] as Uint8Array).length === 0) break;
			thread.post({
				t: 'edits',
				sheet: from.id,
				tab,
				bytes: tail['batches'],
				read,
			});
			seq = Number(tail['last_seq']);
		}
		return seq;
	}

	// ---- tabs ----

	/** Computes the sheet. The other tabs that it reads come first. */
	private async compute(sheet: Sheet, thread: Thread): Promise<Computed> {
		if (!sheet.tabs.areRead && sheet.tabs.told !== noNames) {
			thread.post({ t: 'names', sheet: sheet.id, names: null });
			sheet.tabs = noTabs(sheet.id);
		}
		const { tabs } = sheet;
		if (tabs.areRead) await this.follow(sheet, thread, []);
		for (;;) {
			const others = [...tabs.seqs].map(([id, seq]): [number, number] => [tabs.numbers.get(id)!, seq]);
			const answer = await thread.compute(sheet.id, sheet.seq, others);
			if (answer.t === 'wants') await this.follow(sheet, thread, answer.tabs);
			else {
				tabs.areRead = answer.values.readsNames;
				return answer;
			}
		}
	}

	/** Tells the thread the names of the tabs, what has changed in those that it has, and all of those that it wants. */
	private async follow(sheet: Sheet, thread: Thread, wants: number[]): Promise<void> {
		const { tabs } = sheet;
		const wanted = new Set(wants);
		const known = [...tabs.numbers].filter(([id, number]) => tabs.seqs.has(id) || tabs.refused.has(id) || wanted.has(number)).map(([id]) => id);
		const rows = await this.database.rows('SELECT * FROM sheet.tabs_to_read($1, $2)', [sheet.id, known]);
		tabs.state = rows[0] ? rows[0]['book_state'] : '0';
		const names = rows.map((row) => {
			const id = row['tab_id'] as string;
			if (!tabs.numbers.has(id)) tabs.numbers.set(id, tabs.numbers.size);
			return { tab: tabs.numbers.get(id)!, name: row['name'] as string };
		});
		const told = JSON.stringify(names);
		if (told !== tabs.told) thread.post({ t: 'names', sheet: sheet.id, names });
		tabs.told = told;
		const seqs = new Map(rows.map((row) => [row['tab_id'] as string, row['seq'] === null ? null : Number(row['seq'])]));
		for (const id of known) {
			const tab = tabs.numbers.get(id)!;
			const seq = seqs.get(id);
			const has = tabs.seqs.get(id);
			if (seq === undefined || seq === null) {
				// It is not in the book any more, or may not be read.
				tabs.seqs.delete(id);
				if (seq === undefined) tabs.refused.delete(id);
				else if (!tabs.refused.has(id)) thread.post({ t: 'tab', sheet: sheet.id, tab, state: 'refused' });
				if (seq === null) tabs.refused.add(id);
			} else if (has !== undefined && has <= seq) tabs.seqs.set(id, await this.catchUp(id, tab, thread, { id: sheet.id, seq: has }, seq, has));
			else {
				// It has not been read, or the server has lost what was read (a failover).
				tabs.refused.delete(id);
				thread.post({ t: 'tab', sheet: sheet.id, tab, state: 'wanted' });
				tabs.seqs.set(id, await this.read(id, tab, thread, sheet));
				thread.post({ t: 'tab', sheet: sheet.id, tab, state: 'here' });
			}
		}
	}

	/** Returns false if the sheet is to be read anew. */
	private async store(sheet: Sheet, { values }: Computed): Promise<boolean> {
		const { row, col, value, filled, whole, againAt } = values;
		const again = againAt === null ? null : new Date(againAt).toISOString();
		const read: [string, number | string][] = values.readsNames
			? [...sheet.tabs.seqs, ...[...sheet.tabs.refused].map((id): [string, number] => [id, -1]), [namesId, sheet.tabs.state]]
			: [];
		const [sources, seqs] = [read.map(([id]) => id), read.map(([, seq]) => seq)];
		const [put] = await this.database.rows('SELECT sheet.put_values($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS stored', [
			...[sheet.id, sheet.seq, row, col, value, filled, whole, again, sources, seqs],
		]);
		if (put!['stored']) {
			sheet.stored = sheet.seq;
			// Its thread may have ended, in the job of another sheet.
			if (sheet.thread?.lost === null) sheet.thread.post({ t: 'stored', sheet: sheet.id });
			// A tab, or the book, may have changed before the database knew that the values depend on it.
			if (sources.length > 0) sheet.isDue ||= (await this.database.rows('SELECT * FROM sheet.to_compute($1)', [[sheet.id]])).length > 0;
			return true;
		}
		// A newer state is stored, or rows have moved.
		const [due] = (await this.database.rows('SELECT * FROM sheet.to_compute($1)', [[sheet.id]])) as unknown as Due[];
		if (due) sheet.wanted = Math.max(sheet.wanted, Number(due.seq));
		if (due && Number(due.seq) <= sheet.seq) this.missed.add(sheet.id);
		return due !== undefined && Number(due.seq) > sheet.seq;
	}

	private failed(sheet: Sheet, error: unknown, tookMs: number): void {
		sheet.notBefore = performance.now() + Math.max(pauseMs, tookMs);
		if (error instanceof ThreadLost || error instanceof JobFailed) {
			logLost(sheet.id, error);
			if (error.formula) sheet.stopped.set(error.formula, Date.now());
			else sheet.failures++;
			if (isOff(sheet)) log(`no formula of sheet ${sheet.id} is computed until it changes`);
			sheet.isLong = true;
			// The sheet cannot be read. It is tried again when it changes, or when calc asks for all sheets.
			if (sheet.failures > mostFailures) return;
			sheet.notBefore = performance.now() + pauseMs;
			sheet.wanted = Math.max(sheet.wanted, sheet.seq + 1);
			return;
		}
		this.missed.add(sheet.id);
		const state = stateOf(error);
		if (state === trimmed) sheet.wanted = Math.max(sheet.wanted, sheet.seq + 1);
		else if (state) log(`sheet ${sheet.id}: ${state} ${(error as Error).message}`);
	}

	close(): void {
		clearTimeout(this.waking);
		this.pool.close();
	}
}
