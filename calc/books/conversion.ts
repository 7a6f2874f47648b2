// conversion.ts - the thread of one conversion (thread.ts): it ends with its job, and when it takes too much memory or time.
import { Worker } from 'node:worker_threads';
import type { FromThread, ToThread } from './messages';
import { Refused } from './read/refused';

export const deadlineMs = 120_000;

/** The thread has failed: a fault of this program. */
export class ThreadFailed extends Error {}

/** Nobody wants the workbook any more. */
export class Ended extends Error {}

type Last = FromThread & { t: 'read' | 'written' };

export class Conversion {
	private readonly worker: Worker;
	private readonly deadline: ReturnType<typeof setTimeout>;
	private queue = Promise.resolve();
	private finish!: (last: Last) => void;
	private fail!: (error: Error) => void;
	/** Its last message. Fails if the workbook is refused, or what is done with its messages fails. */
	readonly done: Promise<Last>;

	/** do: what is done with a message of the thread, one after the other. */
	constructor(
		script: URL,
		memory: number,
		private readonly handle: (message: FromThread) => Promise<void>,
	) {
		this.done = new Promise((resolve, reject) => {
			this.finish = resolve;
			this.fail = reject;
		});
		// It may fail before anybody waits for it.
		this.done.catch(() => {});
		this.worker = new Worker(script, { resourceLimits: { maxOldGenerationSizeMb: memory } });
		this.worker.on('message', (message: FromThread) => this.hear(message));
		this.worker.on('error', (error) => this.fail(memoryError(error as NodeJS.ErrnoException, memory)));
		this.worker.on('exit', () => this.fail(new ThreadFailed('the thread has ended')));
		this.deadline = setTimeout(() => this.fail(new Refused('workbook_limit', `the workbook takes longer than ${deadlineMs / 1000} s`)), deadlineMs);
	}

	private hear(message: FromThread): void {
		this.queue = this.queue.then(() => this.handle(message)).then(() => this.took(message), this.fail);
	}

	private took(message: FromThread): void {
		if (message.t === 'refused') this.fail(new Refused(message.code, message.reason, message.where));
		else if (message.t === 'read' || message.t === 'written') this.finish(message);
		else this.post({ t: 'took' });
	}

	post(message: ToThread): void {
		this.worker.postMessage(message);
	}

	/** It is not wanted any more. */
	end(): void {
		clearTimeout(this.deadline);
		this.fail(new Ended());
		void this.worker.terminate();
	}
}

const memoryError = (error: NodeJS.ErrnoException, memory: number): Error =>
	error.code === 'ERR_WORKER_OUT_OF_MEMORY'
		? new Refused('workbook_limit', `the workbook takes more than ${memory} MB of memory`)
		: new ThreadFailed(error.stack ?? error.message);
