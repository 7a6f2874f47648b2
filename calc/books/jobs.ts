// jobs.ts - the workbooks that this calc converts (docs/design/workbooks.md): takes jobs from the database, and makes the book of each,
// or its file. A job is this calc's as long as it says so; whoever has lost one cannot commit it.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type Database, stateOf } from '../database';
import { log } from '../log';
import type { Settings } from '../settings';
import { Conversion, Ended, ThreadFailed } from './conversion';
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
	/** The name of this calc in the job. */
	worker: string;
	/** A connection of its own, for its transaction. */
	client: pg.Client;
	/** For what is not in the transaction. */
	database: Database;
	/** Starts the thread. */
	convert(handle: ConstructorParameters<typeof Conversion>[2]): Conversion;
}

const mostJobs = 2;
const keepMs = 5000;
const channel = 'sheet_workbook';
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
	if (error instanceof ThreadFailed) return failed(500, 'the workbook could not be converted', 'workbook_failed');
	if (error instanceof Refused) return failed(400, error.message, error.code, error.where);
	const [status, code] = statuses[stateOf(error) ?? ''] ?? [];
	const { message } = error as Error;
	return status ? failed(status, message, / name must /.test(message) ? 'sheet_name' : code) : null;
}

export class Workbooks {
	private readonly worker = randomUUID();
	private readonly running = new Map<string, Conversion | null>();
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
		if (this.running.size > 0) {
			const jobs = [...this.running.keys()];
			const rows = await this.database.rows('SELECT k::text AS id FROM sheet.workbook_keep($1, $2) k', [this.worker, jobs]);
			const wanted = new Set(rows.map(({ id }) => id as unknown as string));
			for (const id of jobs) if (!wanted.has(id)) this.running.get(id)?.end();
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
				const [job] = (await this.database.rows('SELECT * FROM sheet.workbook_take($1)', [this.worker])) as unknown as Job[];
				if (!job) continue;
				this.looksAgain = true;
				this.running.set(job.job_id, null);
				void this.run(job);
			}
		} catch {
			// It looks again after keepMs.
		} finally {
			this.isLooking = false;
		}
	}

	private async run(job: Job): Promise<void> {
		let client: pg.Client | undefined;
		try {
			client = await this.database.client('pg_sheet_calc workbook');
			client.on('error', () => this.running.get(job.job_id)?.end());
			await this.convert(job, client);
		} catch (error) {
			await this.failed(job, error).catch(() => {});
		}
		this.running.get(job.job_id)?.end();
		this.running.delete(job.job_id);
		// This rolls back a transaction that is not committed.
		client?.end().catch(() => {});
		void this.look();
	}

	private async convert(job: Job, client: pg.Client): Promise<void> {
		const work: Work = {
			...{ job, client, worker: this.worker, database: this.database },
			convert: (handle) => {
				const conversion = new Conversion(this.script, this.settings.threadMemory, handle);
				this.running.set(job.job_id, conversion);
				return conversion;
			},
		};
		await (job.kind === 'import' ? importWorkbook(work) : exportWorkbook(work));
	}

	/** Answers what the request is at fault for. All else is tried again, by whoever takes the job when it is not kept any more. */
	private async failed(job: Job, error: unknown): Promise<void> {
		const answer = refusal(error);
		if ((!answer || answer.status >= 500) && !(error instanceof Ended) && stateOf(error) !== lost)
			log(`workbook ${job.job_id} could not be converted: ${(error as Error).message}`);
		if (!answer) return;
		await this.database.rows('SELECT sheet.workbook_done($1, $2, $3, $4)', [job.job_id, this.worker, answer.status, answer.body]);
	}

	close(): void {
		this.isClosed = true;
		clearInterval(this.keeping);
		this.listener?.end().catch(() => {});
		for (const conversion of this.running.values()) conversion?.end();
	}
}
