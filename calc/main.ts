// main.ts - pg_sheet_calc: computes the formulas of sheets, and stores their values in the database (docs/design/calc.md).
import { Workbooks } from './books/jobs';
import { connectionsOf } from './conninfo';
import { Database, stateOf } from './database';
import { log } from './log';
import { Peers } from './peers';
import { help, readSettings, type Settings, SettingsError } from './settings';
import { type Due, Sheets } from './sheets';

/** The time-out of sheet.follow(): it answers at the latest then. */
const followMs = 1000;
const answerMs = 10_000;
/** How often the database is asked for sheets whose formulas have the time, and for those that could not be computed. */
const askMs = 30_000;
const reportMs = 5000;
const page = 1000;
/** What sheet.follow() reports in place of a seq if the members of a sheet, or its book, have changed. */
const membersChanged = -1;
const bookChanged = -4;
/** Invalid settings: starting again does not help. */
const invalidStatus = 2;

const followSql = `SELECT f."cursor", f.lost, f.sheet_ids::text[] AS ids, f.seqs::text[] AS seqs FROM sheet.follow($1, $2, $3) f`;

class Calc {
	private readonly database: Database;
	private readonly sheets: Sheets;
	private readonly peers: Peers;
	private readonly workbooks: Workbooks;
	/** No commit has this origin, so sheet.follow() reports all commits. */
	private readonly origin = -1 - Math.floor(Math.random() * 2 ** 40);
	private cursor: string | null = null;
	private isAsking = false;
	private askOnceMore = false;
	private isAskingAgain = false;

	constructor(private readonly settings: Settings) {
		this.database = new Database(connectionsOf(settings.database));
		this.sheets = new Sheets(this.database, settings, new URL('./worker.mjs', import.meta.url));
		this.peers = new Peers(settings.name);
		this.workbooks = new Workbooks(this.database, settings, new URL('./child.mjs', import.meta.url));
	}

	async run(): Promise<void> {
		log(`starts as ${this.settings.name}`);
		setInterval(() => void this.askAgain(), askMs);
		setInterval(() => void this.report().catch(() => {}), reportMs);
		let pause = followMs;
		while (await this.database.connect()) {
			try {
				await this.report();
				this.workbooks.begin();
				await this.follow(() => (pause = followMs));
			} catch (error) {
				log(`the database was lost: ${(error as Error).message}`);
				this.database.disconnect();
				if (!stateOf(error)) continue;
				// It refuses what it is asked.
				await new Promise((resolve) => setTimeout(resolve, pause));
				pause = Math.min(pause * 2, askMs);
			}
		}
	}

	/** Hears of commits, until the connection is lost. */
	private async follow(onAnswer: () => void): Promise<never> {
		for (let isFirst = true; ; isFirst = false) {
			const answer = await this.database.follow(followSql, [this.origin, this.cursor, followMs], followMs + answerMs);
			onAnswer();
			this.cursor = answer['cursor'];
			// sheet.follow() does not report commits from before the first cursor.
			if (isFirst || answer['lost']) this.ask();
			if (isFirst) void this.askAgain();
			this.hear(answer['ids'], answer['seqs']);
		}
	}

	private hear(ids: string[], seqs: string[]): void {
		const unknown = new Set<string>();
		const changed = new Set<string>();
		const shared = new Set<string>();
		ids.forEach((id, i) => {
			const seq = Number(seqs[i]);
			if (id.startsWith('-')) return;
			if (seq === membersChanged) shared.add(id);
			if (seq === bookChanged && this.peers.isOwn(id)) unknown.add(id);
			if (seq < 0) return;
			changed.add(id);
			if (!this.peers.isOwn(id)) return;
			if (this.sheets.has(id)) this.sheets.changed(id, seq);
			else unknown.add(id);
		});
		if (changed.size > 0 || unknown.size > 0 || shared.size > 0) void this.due([...unknown], [...changed], [...shared]);
	}

	/**
	 * Asks the database which of these sheets have work, and of those that read `sources`, or for which it matters who may see `shared`;
	 * later, if it does not answer.
	 */
	private async due(ids: string[], sources: string[] = [], shared: string[] = []): Promise<void> {
		for (let i = 0; i < Math.max(ids.length, sources.length, shared.length); i += page) {
			const [some, ...more] = [ids, sources, shared].map((list) => list.slice(i, i + page)) as [string[], string[], string[]];
			try {
				const rows = await this.database.rows('SELECT * FROM sheet.to_compute($1, $2, $3)', [some, ...more]);
				for (const row of rows as unknown as Due[]) if (this.peers.isOwn(row.sheet_id)) this.sheets.due(row);
			} catch {
				some.forEach((id) => this.sheets.miss(id));
				// Which sheets read the others is not known here.
				this.askOnceMore = true;
			}
		}
	}

	/** Asks for sheets whose formulas have the time, and for those that could not be computed. */
	private async askAgain(): Promise<void> {
		if (this.isAskingAgain) return;
		this.isAskingAgain = true;
		try {
			if (this.askOnceMore) this.ask();
			await this.due(this.sheets.takeMissed());
			for (let [time, id] = ['-infinity', '0']; ;) {
				const rows = (await this.database.rows('SELECT sheet_id, seq, again_at::text FROM sheet.to_compute_again($1, $2, $3)', [
					time,
					id,
					page,
				])) as unknown as (Due & {
					again_at: string;
				})[];
				for (const row of rows) if (this.peers.isOwn(row.sheet_id)) this.sheets.due(row);
				if (rows.length < page) break;
				[time, id] = [rows.at(-1)!.again_at, rows.at(-1)!.sheet_id];
			}
		} catch {
			// It is asked again after askMs.
		} finally {
			this.isAskingAgain = false;
		}
	}

	/** Asks the database which of all sheets have work. Later, events tell it. If the database does not answer, it is asked again after askMs. */
	private ask(): void {
		this.askOnceMore = true;
		if (!this.isAsking) void this.askPages();
	}

	private async askPages(): Promise<void> {
		this.isAsking = true;
		try {
			while (this.askOnceMore) {
				this.askOnceMore = false;
				for (let after = '0'; ;) {
					const rows = (await this.database.rows('SELECT * FROM sheet.computed_sheets($1, $2)', [after, page])) as unknown as (Due & { due: boolean })[];
					for (const row of rows) if (row.due && this.peers.isOwn(row.sheet_id)) this.sheets.due(row);
					if (rows.length < page) break;
					after = rows.at(-1)!.sheet_id;
				}
			}
		} catch {
			this.askOnceMore = true;
		} finally {
			this.isAsking = false;
		}
	}

	/** Tells the others that it is there, and hears who is. */
	private async report(leaves = false): Promise<void> {
		const rows = await this.database.rows('SELECT sheet.report_calculator($1, $2) AS name', [this.settings.name, leaves]);
		if (leaves || !this.peers.set(rows.map(({ name }) => name as unknown as string))) return;
		log(`${this.peers.count} others compute sheets, too`);
		this.sheets.keep((id) => this.peers.isOwn(id));
		this.ask();
	}

	/** Nothing is lost: the database knows of which state the values are. */
	async end(): Promise<void> {
		this.sheets.close();
		this.workbooks.close();
		const patience = new Promise((resolve) => setTimeout(resolve, 300));
		await Promise.race([this.report(true).catch(() => {}), patience]);
		this.database.close();
	}
}

function main(): void {
	const args = process.argv.slice(2);
	if (args.includes('--help')) {
		process.stdout.write(help);
		return;
	}
	let calc: Calc;
	try {
		calc = new Calc(readSettings(args, process.env));
	} catch (error) {
		if (!(error instanceof SettingsError)) throw error;
		process.stderr.write(`pg_sheet_calc: ${error.message}\n`);
		process.exit(invalidStatus);
	}
	for (const signal of ['SIGTERM', 'SIGINT'] as const) {
		process.once(signal, () => {
			log(`ends: ${signal}`);
			void calc.end().finally(() => process.exit(0));
		});
	}
	void calc.run();
}

main();
