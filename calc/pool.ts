// pool.ts - the threads that compute. Each has one job at a time. A thread that is silent for too long, or has no memory
// left, is ended, with the sheets that it has.
import { Worker } from 'node:worker_threads';
import { deadlineMs } from '../gateway/web/src/formulas/limits';
import { Beat } from './beat';
import { log } from './log';
import type { FromThread, ToThread } from './messages';

const pollMs = 100;
/** The deadline of a thread that loads its code, or cells. */
const loadingMs = 60_000;
/** After such a time, a job is taken for a long one, and others go to other threads. */
export const longMs = 300;
/** Threads that are started at once, so that one is ready when the other has a long job. */
const readyThreads = 2;
const idleMs = 60_000;

export type Computed = FromThread & { t: 'computed' };
export type Wants = FromThread & { t: 'wants' };

/** The thread of a job has ended. `formula`: the one that it computed; '': none. */
export class ThreadLost extends Error {
	constructor(
		readonly formula: string,
		reason: string,
	) {
		super(reason);
	}
}

/** The thread could not do the job, and goes on. */
export class JobFailed extends Error {
	readonly formula = '';
}

export class Thread {
	private readonly worker: Worker;
	private readonly beat = new Beat();
	private seen = 0;
	private seenAt = performance.now();
	isReady = false;
	private answer: {
		resolve: (answer: Computed | Wants) => void;
		reject: (error: Error) => void;
	} | null = null;
	/** The sheet of its job; null: it has none. */
	job: string | null = null;
	/** The job will take long, or has. */
	private isLong = false;
	private since = performance.now();
	readonly sheets = new Set<string>();
	/** Why it has ended. */
	lost: ThreadLost | null = null;

	constructor(
		script: URL,
		memory: number,
		private readonly onEnd: (thread: Thread) => void,
	) {
		this.worker = new Worker(script, {
			workerData: this.beat.memory,
			resourceLimits: { maxOldGenerationSizeMb: memory },
		});
		this.worker.on('message', (message: FromThread) => this.hear(message));
		this.worker.on('error', (error) => this.end((error as Error).message));
		this.worker.on('exit', () => this.end('it has exited'));
	}

	private hear(message: FromThread): void {
		if (message.t === 'ready') this.isReady = true;
		else if (message.t === 'computed' || message.t === 'wants') this.answer?.resolve(message);
		else this.answer?.reject(new JobFailed(message.message));
	}

	begin(sheet: string, isLong: boolean): void {
		this.job = sheet;
		this.isLong = isLong;
		this.since = this.seenAt = performance.now();
	}

	finish(): void {
		this.job = null;
		this.since = performance.now();
	}

	/** Milliseconds since its job began, or since it has none. */
	get age(): number {
		return performance.now() - this.since;
	}

	get hasLongJob(): boolean {
		return this.job !== null && (this.isLong || this.age >= longMs);
	}

	post(message: ToThread): void {
		if (this.lost) throw this.lost;
		this.worker.postMessage(message);
	}

	/** The answer to `compute`. */
	compute(sheet: string, seq: number, others: [tab: number, seq: number][]): Promise<Computed | Wants> {
		return new Promise((resolve, reject) => {
			this.answer = { resolve, reject };
			this.post({ t: 'compute', sheet, seq, others });
		});
	}

	/** Ends the thread if it has been silent for too long. */
	poll(): void {
		const { count } = this.beat;
		if (this.job === null || count !== this.seen) {
			this.seen = count;
			this.seenAt = performance.now();
			return;
		}
		const limit = this.isReady && this.beat.formula !== '' ? deadlineMs : loadingMs;
		if (performance.now() - this.seenAt > limit) this.end(`it was silent for ${limit / 1000} s`);
	}

	end(reason: string): void {
		if (this.lost) return;
		this.lost = new ThreadLost(this.job === null ? '' : this.beat.formula, reason);
		void this.worker.terminate();
		this.answer?.reject(this.lost);
		this.onEnd(this);
	}
}

export class ThreadPool {
	readonly threads = new Set<Thread>();
	private readonly polling: ReturnType<typeof setInterval>;
	private isClosed = false;

	constructor(
		private readonly script: URL,
		private readonly most: number,
		private readonly memory: number,
		/** A job may find another thread now. */
		private readonly onPoll: () => void,
		private readonly onLost: (thread: Thread) => void,
	) {
		for (let i = 0; i < Math.min(readyThreads, most); i++) this.start();
		this.polling = setInterval(() => this.poll(), pollMs);
	}

	private start(): Thread {
		const thread = new Thread(this.script, this.memory, (ended) => this.ended(ended));
		this.threads.add(thread);
		return thread;
	}

	private ended(thread: Thread): void {
		this.threads.delete(thread);
		if (!this.isClosed && thread.isReady && this.threads.size < readyThreads) this.start();
		this.onLost(thread);
	}

	private poll(): void {
		for (const thread of this.threads) thread.poll();
		for (const thread of this.threads) if (thread.job === null && thread.age > idleMs && this.threads.size > readyThreads) thread.end('it has nothing to do');
		this.onPoll();
	}

	/** A thread has no job, or another one can be started. While jobs are short, one of the threads is free soon. */
	get hasRoom(): boolean {
		if (this.isClosed) return false;
		let isBusy = true;
		for (const { job, age } of this.threads) {
			if (job === null) return true;
			isBusy &&= age >= longMs;
		}
		return isBusy && this.threads.size < this.most;
	}

	/** A thread without a job; null: all are busy. `spare`: for a long job. One thread is left to others. */
	idle(spare: boolean): Thread | null {
		const free = [...this.threads].filter(({ job }) => job === null);
		const long = [...this.threads].filter(({ hasLongJob }) => hasLongJob).length;
		if (spare && long >= this.most - 1 && this.most > 1) return null;
		// A long job may end its thread: it gets the one with the fewest sheets.
		const isBetter = (a: Thread, b: Thread) => (spare ? a.sheets.size < b.sheets.size : a.sheets.size > b.sheets.size);
		if (free.length > 0) return free.reduce((best, thread) => (isBetter(thread, best) ? thread : best));
		return this.hasRoom ? this.start() : null;
	}

	close(): void {
		this.isClosed = true;
		clearInterval(this.polling);
		for (const thread of this.threads) void thread.end('calc ends');
	}
}

/** Says why a job has ended. */
export function logLost(sheet: string, { formula, message }: ThreadLost | JobFailed): void {
	const text = formula.length > 200 ? `${formula.slice(0, 200)}...` : formula;
	log(formula ? `sheet ${sheet}: the formula ${JSON.stringify(text)} was stopped: ${message}` : `sheet ${sheet} could not be computed: ${message}`);
}
