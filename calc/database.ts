// database.ts - the connections to the database: one that hears of commits, and a few for everything else. When the first is lost, all are
// closed, and it connects again, for ever.
import type { Socket } from 'node:net';
import pg from 'pg';
import { log } from './log';

/** Connections besides the one that follows. */
const pooled = 4;
/** Of these, as many as read whole sheets at most: the others are for short questions. */
const pooledStreams = 2;
const answerMs = 60_000;
const longestPauseMs = 5000;

/** Values are derived, so they need not be on disk when they are acknowledged. A sheet that a transaction holds is tried again later. */
const setup = `SELECT set_config('search_path', 'pg_catalog', false), set_config('synchronous_commit', 'off', false),
	set_config('statement_timeout', '0', false), set_config('lock_timeout', '2s', false), set_config('idle_session_timeout', '0', false),
	set_config('datestyle', 'ISO', false), set_config('timezone', 'UTC', false)`;

type Row = Record<string, never>;

export const socketOf = (client: pg.ClientBase): Socket => (client as unknown as { connection: { stream: Socket } }).connection.stream;

/** Ends the connection at once: what waits for an answer fails. */
export const cut = (client: pg.ClientBase): void => void socketOf(client).destroy();

export class Database {
	private follower: pg.Client | null = null;
	private pool: pg.Pool | null = null;
	/** The one that it is connected to. */
	private host: pg.ClientConfig = {};
	private readonly pooledClients = new Set<pg.PoolClient>();
	private isClosed = false;
	private wake: (() => void) | null = null;
	private streams = 0;
	private readonly waiting: (() => void)[] = [];

	/** One configuration for each host. */
	constructor(private readonly hosts: pg.ClientConfig[]) {
		// Numbers of sheets and seqs. Both are below 2^53, but ids stay texts, which maps find faster than others.
		pg.types.setTypeParser(pg.types.builtins.INT8, (text) => text);
	}

	/** Connects; tries until it succeeds. Resolves to false when the database has been closed. */
	async connect(): Promise<boolean> {
		let lost = false;
		for (let pause = 100; !this.isClosed; pause = Math.min(pause * 2, longestPauseMs)) {
			const problem = await this.tryHosts();
			if (!problem) {
				if (lost) log('the database answers again');
				return true;
			}
			if (!lost) log(`no connection to the database: ${problem}`);
			lost = true;
			await new Promise<void>((resolve) => {
				this.wake = resolve;
				setTimeout(resolve, pause);
			});
		}
		return false;
	}

	private async tryHosts(): Promise<string> {
		let problem = '';
		for (const host of this.hosts) {
			const client = new pg.Client({
				...host,
				application_name: 'pg_sheet_calc follow',
				query_timeout: answerMs,
			});
			client.on('error', () => this.disconnect());
			try {
				await client.connect();
				await client.query(setup);
				const { rows } = await client.query('SELECT pg_is_in_recovery() AS standby');
				if (rows[0].standby) throw new Error('the server is a standby');
				this.follower = client;
				this.host = host;
				// The pool waits for what this returns. It hears of a connection that is lost while nobody uses it; one that is used may be
				// lost between two queries.
				const onConnect = async (connected: pg.ClientBase) => {
					connected.on('error', () => {});
					await connected.query(setup);
				};
				this.pool = new pg.Pool({
					...host,
					application_name: 'pg_sheet_calc',
					max: pooled,
					idleTimeoutMillis: 60_000,
					onConnect,
				});
				this.pool.on('error', () => {});
				this.pool.on('connect', (connected) => this.pooledClients.add(connected));
				this.pool.on('remove', (connected) => this.pooledClients.delete(connected));
				return '';
			} catch (error) {
				problem = (error as Error).message;
				client.end().catch(() => {});
			}
		}
		return problem;
	}

	/** Closes the connections; queries under way fail. */
	disconnect(): void {
		const [follower, pool] = [this.follower, this.pool];
		this.follower = this.pool = null;
		follower?.end().catch(() => {});
		// A query of which no answer comes does not end by itself.
		this.pooledClients.forEach(cut);
		this.pooledClients.clear();
		pool?.end().catch(() => {});
	}

	close(): void {
		this.isClosed = true;
		this.wake?.();
		this.disconnect();
	}

	/** A connection of the caller's, which ends it. */
	async client(name: string): Promise<pg.Client> {
		if (!this.pool) throw new Error('not connected');
		const client = new pg.Client({ ...this.host, application_name: name });
		// It may be lost before the caller listens.
		client.on('error', () => {});
		try {
			await client.connect();
			await client.query({ text: setup, query_timeout: answerMs } as pg.QueryConfig);
		} catch (error) {
			cut(client);
			throw error;
		}
		return client;
	}

	/** On the connection that follows. */
	async follow(text: string, values: unknown[], waitMs: number): Promise<Row> {
		if (!this.follower) throw new Error('not connected');
		const config = { text, values, query_timeout: waitMs };
		return (await this.follower.query(config)).rows[0];
	}

	async rows(text: string, values: unknown[]): Promise<Row[]> {
		if (!this.pool) throw new Error('not connected');
		const config = { text, values, query_timeout: answerMs };
		return (await this.pool.query(config)).rows;
	}

	/** Gives each row to `visit` when it has come, so that a large answer is not in memory. */
	async stream(text: string, values: unknown[], visit: (row: Row) => void): Promise<void> {
		while (this.streams >= pooledStreams) await new Promise<void>((resolve) => this.waiting.push(resolve));
		this.streams++;
		try {
			await this.streamNow(text, values, visit);
		} finally {
			this.streams--;
			this.waiting.shift()?.();
		}
	}

	private async streamNow(text: string, values: unknown[], visit: (row: Row) => void): Promise<void> {
		if (!this.pool) throw new Error('not connected');
		const client = await this.pool.connect();
		try {
			await new Promise<void>((resolve, reject) => {
				const query = new pg.Query(text, values);
				query.on('row', visit);
				query.on('end', () => resolve());
				query.on('error', reject);
				client.query(query);
			});
			client.release();
		} catch (error) {
			client.release(error as Error);
			throw error;
		}
	}
}

/** The SQLSTATE of an error of the database; undefined: the connection is lost. */
export const stateOf = (error: unknown): string | undefined => {
	const code = (error as { code?: string }).code;
	return code && /^[0-9A-Z]{5}$/.test(code) && !/^(08|57P)/.test(code) ? code : undefined;
};
