// conversion.ts - the process of one conversion (child.ts). It ends with its job, and when it takes too much memory or time: whatever
// happens in it, calc goes on.
import { type ChildProcess, fork } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Flow } from './flow';
import type { FromChild, ToChild } from './messages';
import { Refused } from './read/refused';

export const deadlineMs = 120_000;
const pollMs = 200;
/** Memory that is not of the heap: code, stacks, buffers. */
const besidesMegabytes = 256;
const mostErrorCharacters = 20_000;
/** What V8 and Node say when there is no memory. */
const memoryPattern = /out of memory|allocation failed/i;

/** The process has failed: a fault of this program. */
export class ChildFailed extends Error {}

/** Nobody wants the workbook any more. */
export class Ended extends Error {}

type Last = FromChild & { t: 'read' | 'written' };

/** Megabytes; 0: not known. */
function residentMegabytes(pid: number): number {
	try {
		return Number(/^VmRSS:\s+([0-9]+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1024;
	} catch {
		return 0;
	}
}

/**
 * Lowers the priority of a session; false: not yet. Linux divides processors among sessions first (autogroup, see sched(7)), and among the
 * threads of each afterwards. The nice value of a thread counts only within its session, so the session needs one, too: one at which
 * workbooks are refused within 2 s while the processors are busy. The kernel accepts one change in 100 ms on the whole system.
 */
function lowerSession(pid: number): boolean {
	try {
		fs.writeFileSync(`/proc/${pid}/autogroup`, '5');
	} catch (error) {
		return (error as NodeJS.ErrnoException).code !== 'EAGAIN';
	}
	return true;
}

export class Conversion {
	private readonly child: ChildProcess;
	private readonly flow = new Flow<ToChild>((message) => void this.child.send?.(message, () => {}));
	private readonly deadline: ReturnType<typeof setTimeout>;
	private readonly polling: ReturnType<typeof setInterval>;
	private lowered = false;
	private errors = '';
	private queue = Promise.resolve();
	private finish!: (last: Last) => void;
	private reject!: (error: Error) => void;
	/** Its last message. Fails if the workbook is refused, or what is done with its messages fails. */
	readonly done: Promise<Last>;

	/** memory: in megabytes. handle: what is done with a message of the child, one after the other. */
	constructor(
		script: URL,
		private readonly memory: number,
		private readonly handle: (message: FromChild) => Promise<void>,
	) {
		this.done = new Promise((resolve, reject) => {
			this.finish = resolve;
			this.reject = reject;
		});
		// It may fail before anybody waits for it.
		this.done.catch(() => {});
		// Without the environment: the child needs no password of the database.
		this.child = fork(fileURLToPath(script), {
			...{ env: {}, execArgv: [`--max-old-space-size=${memory}`], serialization: 'advanced', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
			detached: true, // a session of its own
		});
		// One that could not begin, since the system has no more processes or files, has neither stderr nor send().
		this.child.on('error', (error) => this.fail(error));
		this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
			if (this.errors.length < mostErrorCharacters) this.errors += text;
		});
		this.child.on('message', (message: FromChild | { t: 'took' }) => this.hear(message));
		this.child.on('close', (_, signal) => this.fail(this.reasonOf(signal)));
		this.deadline = setTimeout(() => this.fail(new Refused('workbook_limit', `the workbook takes longer than ${deadlineMs / 1000} s`)), deadlineMs);
		this.polling = setInterval(() => this.look(), pollMs);
		this.look();
	}

	private tooMuchMemory(): Refused {
		return new Refused('workbook_limit', `the workbook takes more than ${this.memory} MB of memory`);
	}

	/** Why it has ended. SIGKILL: by the kernel, which has no memory left. */
	private reasonOf(signal: NodeJS.Signals | null): Error {
		return signal === 'SIGKILL' || memoryPattern.test(this.errors) ? this.tooMuchMemory() : new ChildFailed(this.errors || 'the process has ended');
	}

	private look(): void {
		const { pid } = this.child;
		if (pid === undefined) return;
		this.lowered ||= lowerSession(pid);
		// The heap has a limit of its own; buffers have none.
		if (residentMegabytes(pid) > this.memory + besidesMegabytes) this.fail(this.tooMuchMemory());
	}

	private fail(error: Error): void {
		this.reject(error);
		this.flow.close(error);
		clearTimeout(this.deadline);
		clearInterval(this.polling);
		this.child.kill('SIGKILL');
	}

	private hear(message: FromChild | { t: 'took' }): void {
		if (message.t === 'took') return this.flow.took();
		this.queue = this.queue
			.then(() => this.handle(message))
			.then(
				() => this.took(message),
				(error: unknown) => this.fail(error as Error),
			);
	}

	private took(message: FromChild): void {
		if (message.t === 'refused') this.fail(new Refused(message.code, message.reason, message.where));
		else if (message.t === 'read' || message.t === 'written') this.finish(message);
		else this.child.send({ t: 'took' }, () => {});
	}

	/** Resolves when the child has little left to do. Fails when the conversion has. */
	post(message: ToChild): Promise<void> {
		return this.flow.send(message);
	}

	/** It is not wanted any more. */
	end(): void {
		this.fail(new Ended());
	}
}
