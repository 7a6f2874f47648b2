// settings.ts - the settings of calc: flags, and the environment, whose names are those of the gateway (PG_SHEET_DATABASE).
import os from 'node:os';

export interface Settings {
	/** A connection string; empty: the variables of libpq. */
	database: string;
	/** Cells in memory; a formula counts as ten. */
	cachedCells: number;
	threads: number;
	/** MB of memory that a thread, or a process that converts a workbook, has at most. */
	threadMemory: number;
	/** After this time a formula that was stopped is tried again, in milliseconds. */
	retryMs: number;
	name: string;
}

export class SettingsError extends Error {}

interface Setting {
	name: string;
	key: keyof Settings;
	fallback: string;
	range?: [low: number, high: number];
	says: string;
}

const settings: Setting[] = [
	{
		name: 'database',
		key: 'database',
		fallback: '',
		says: 'connection string: postgresql://... or keywords (host=... dbname=...)',
	},
	{
		name: 'calc-cells',
		key: 'cachedCells',
		fallback: '4000000',
		range: [1000, 1e9],
		says: 'cells that are kept in memory; a formula counts as ten',
	},
	{
		name: 'calc-threads',
		key: 'threads',
		fallback: '4',
		range: [2, 64],
		says: 'threads that compute, at most',
	},
	{
		name: 'calc-thread-memory',
		key: 'threadMemory',
		fallback: '1024',
		range: [64, 65536],
		says: 'memory that a thread, or a process that converts a workbook, may use, in MB',
	},
	{
		name: 'calc-retry-seconds',
		key: 'retryMs',
		fallback: '60',
		range: [1, 86400],
		says: 'time after which a formula that was stopped is tried again when its sheet changes, in seconds',
	},
	{
		name: 'calc-name',
		key: 'name',
		fallback: '',
		says: 'name that tells it from others; default: that of the host. One that is killed and started again has its sheets at once',
	},
];

export const help = `Usage: pg_sheet_calc [--SETTING=VALUE]...
Computes the formulas of sheets, and stores their values in the database.

Each setting may also be in the environment (database is PG_SHEET_DATABASE):
${settings.map(({ name, fallback, says }) => `  --${name.padEnd(20)} ${says}${fallback ? ` (${fallback})` : ''}`).join('\n')}

What the connection string does not say is taken from PGHOST, PGPORT, PGUSER, PGPASSWORD, PGPASSFILE, PGDATABASE and
PGSSLMODE. The role must be a member of sheet_gateway. Several hosts are tried in turn; a standby is passed over.
`;

export function readSettings(args: string[], environment: Record<string, string | undefined>): Settings {
	const given = new Map<string, string>();
	for (const { name } of settings) {
		const value = environment[`PG_SHEET_${name.toUpperCase().replaceAll('-', '_')}`];
		if (value !== undefined) given.set(name, value);
	}
	for (const arg of args) {
		const [, name, value] = /^--([a-z-]+)=(.*)$/s.exec(arg) ?? [];
		if (!settings.some((setting) => setting.name === name)) throw new SettingsError(`${arg} is not a setting (see --help)`);
		given.set(name!, value!);
	}
	const read: Record<string, string | number> = {};
	for (const { name, key, fallback, range } of settings) {
		const text = given.get(name) ?? fallback;
		if (range && !(/^[0-9]{1,12}$/.test(text) && Number(text) >= range[0] && Number(text) <= range[1]))
			throw new SettingsError(`${name}=${text} is not a number from ${range[0]} to ${range[1]}`);
		read[key] = range ? Number(text) : text;
	}
	read['retryMs'] = Number(read['retryMs']) * 1000;
	read['name'] ||= os.hostname();
	return read as unknown as Settings;
}
