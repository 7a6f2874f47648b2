// jobs.ts - the workbooks that this calc converts (docs/design/workbooks.md): takes jobs from the database, and makes the book of each,
// or its file. A job is this calc's as long as it says so; whoever has lost one cannot commit it.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { cut, type Database, stateOf } from '../database';
import { log } from '../log';
import type { Settings } from '../settings';
import { ChildFailed, Conversion, deadlineMs, Ended } from './conversion';
import { exportWorkbook } from './export';
import { importWorkbook } from './import';
import { Refused } from './read/refused';

export interface Job {
	job_id: string;
	kind: 'import' | 'book' | 'sheet';
	uid: string;
	target: string | null;
	/** Of the new book. */
	name: string | null;
}

/** What a conversion works with. */
export interface Work {
	job: Job;
	/** The name of this try in the job. */
	worker: string;
	/** A connection of its own, for its transaction. */
	client: pg.Client;
	/** For what is not in the transaction. */
	database: Database;
	/** Starts the process. */
	convert(handle: ConstructorParameters<typeof Conversion>[2]): Conversion;
}

const mostJobs = 2;
const keepMs = 5000;
const leaseMs = 15_000;
/** How long the connection of a job that has ended may wait for the server. */
const goodbyeMs = 5000;
const channel = 'sheet_workbook';
/** Of a transaction. The server ends one whose calc has vanished: no conversion takes longer. */
export const transactionSql = `SET LOCAL idle_in_transaction_session_timeout = ${deadlineMs + leaseMs}; SET LOCAL lock_timeout = 0`;
/** The job is another one's, or nobody's any more. */
const lost = '55000';
/** States of errors of the database that the request is at fault for, and the statuses of HTTP for them. */
const statuses: Record<string, [status: number, code?: string]> = {
	...{ '42501': [403], '42704': [404], ST001: [410], '22023': [400, 'workbook_broken'], '23505': [400, 'sheet_name'], '54000': [400, 'workbook_limit'] },
	...{ '22021': [400, 'workbook_broken'] },
};

interface Answer {
	status: number;
	body: string;
}

function refusal(error: unknown): Answer | null {
	const failed = (status: number, reason: string, code: string | undefined, where: object = {}): Answer => ({
		status,
		body: JSON.stringify({ success: false, msg: 0, data: reason, ...(code && { code }), ...where }),
	});
	if (error instanceof ChildFailed) return failed(500, 'the workbook could not be converted', 'workbook_failed');
	if (error instanceof Refused) return failed(400, error.message, error.code, error.where);
	const [status, code] = statuses[stateOf(error) ?? ''] ?? [];
	const { message } = error as Error;
	return status ? failed(status, message, / name must /.test(message) ? 'sheet_name' : code) : null;
}

/** A job that this calc has taken. Its name is of this try alone: a former one of the same job cannot pass for it. */
class Try {
	readonly worker = randomUUID();
	private readonly begunAt = performance.now();
	/** When the database has last said that the job is still wanted. */
	keptAt = performance.now();
	conversion: Conversion | null = null;
	client: pg.Client | null = null;
	private goodbye: ReturnType<typeof setTimeout> | null = null;
	hasEnded = false;

	/** It has lost its lease, or waits for the server after the longest conversion. */
	get isLate(): boolean {
		const now = performance.now();
		return now - this.keptAt > leaseMs || now - this.begunAt > deadlineMs + leaseMs;
	}

	/** Its transaction is rolled back unless it is being committed. What waits for the server fails after goodbyeMs. */
	end(): void {
		this.hasEnded = true;
		this.conversion?.end();
		const { client } = this;
		if (!client || this.goodbye) return;
		this.goodbye = setTimeout(() => cut(client), goodbyeMs);
		client.once('end', () => clearTimeout(this.goodbye!));
	}

	/** Nothing of it waits any more. */
	close(): void {
		this.end();
		this.client?.end().catch(() => {});
	}
}

export class Workbooks {
	private readonly running = new Set<Try>();
	private listener: pg.Client | null = null;
	private isLooking = false;
	private looksAgain = false;
	private isClosed = false;
	private readonly keeping: ReturnType<typeof setInterval>;

	constructor(
		private readonly database: Database,
		private readonly settings: Settings,
		private readonly script: URL,
	) {
		this.keeping = setInterval(() => void this.keep().catch(() => {}), keepMs);
	}

	/** The database is connected. */
	begin(): void {
		void this.listen()
			.then(() => this.look())
			.catch(() => {});
	}

	/** Hears of jobs. Without the connection, they are found within keepMs. */
	private async listen(): Promise<void> {
		if (this.listener || this.isClosed) return;
		const client = await this.database.client('pg_sheet_calc workbooks');
		this.listener = client;
		const forget = () => {
			if (this.listener === client) this.listener = null;
		};
		client.on('error', forget);
		client.on('end', forget);
		client.on('notification', () => void this.look());
		await client.query(`LISTEN ${channel}`);
	}

	private async keep(): Promise<void> {
		void this.listen().catch(() => {});
		for (const one of this.running) if (one.isLate) one.end();
		if (this.running.size > 0) {
			const tries = [...this.running];
			const asked = performance.now();
			const rows = await this.database.rows('SELECT k AS worker FROM sheet.workbook_keep($1) k', [tries.map(({ worker }) => worker)]);
			const wanted = new Set(rows.map(({ worker }) => worker as unknown as string));
			for (const one of tries)
				if (wanted.has(one.worker)) one.keptAt = asked;
				else one.end();
		}
		await this.look();
	}

	/** Takes as many jobs as it can do at once. */
	private async look(): Promise<void> {
		this.looksAgain = true;
		if (this.isLooking) return;
		this.isLooking = true;
		try {
			while (this.looksAgain && this.running.size < mostJobs && !this.isClosed) {
				this.looksAgain = false;
				const one = new Try();
				const [job] = (await this.database.rows('SELECT * FROM sheet.workbook_take($1)', [one.worker])) as unknown as Job[];
				if (!job) continue;
				this.looksAgain = true;
				this.running.add(one);
				void this.run(job, one);
			}
		} catch {
			// It looks again after keepMs.
		} finally {
			this.isLooking = false;
		}
	}

	private async run(job: Job, one: Try): Promise<void> {
		try {
			one.client = await this.database.client('pg_sheet_calc workbook');
			one.client.on('error', () => one.end());
			if (one.hasEnded) throw new Ended();
			await this.convert(job, one);
		} catch (error) {
			await this.failed(job, one, error).catch(() => {});
		}
		one.close();
		this.running.delete(one);
		void this.look();
	}

	private async convert(job: Job, one: Try): Promise<void> {
		const work: Work = {
			...{ job, client: one.client!, worker: one.worker, database: this.database },
			convert: (handle) => (one.conversion = new Conversion(this.script, this.settings.threadMemory, handle)),
		};
		await (job.kind === 'import' ? importWorkbook(work) : exportWorkbook(work));
	}

	/** Answers what the request is at fault for. All else is tried again, by whoever takes the job when it is not kept any more. */
	private async failed(job: Job, { worker }: Try, error: unknown): Promise<void> {
		const answer = refusal(error);
		if ((!answer || answer.status >= 500) && !(error instanceof Ended) && stateOf(error) !== lost)
			log(`workbook ${job.job_id} could not be converted: ${(error as Error).message}`);
		if (!answer) return;
		await this.database.rows('SELECT sheet.workbook_done($1, $2, $3, $4)', [job.job_id, worker, answer.status, answer.body]);
	}

	close(): void {
		this.isClosed = true;
		clearInterval(this.keeping);
		this.listener?.end().catch(() => {});
		for (const one of this.running) one.end();
	}
}
