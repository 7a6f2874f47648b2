// export.ts - a book, or a sheet, becomes a workbook: of one state of the database, with the tabs that the account may see.
import pg from 'pg';
import type { Work } from './jobs';
import type { FromThread } from './messages';
import { Refused } from './read/refused';

const chunkBytes = 1 << 20;
/** Of cells and values: they wait in memory for the thread. */
const mostBytes = 256 << 20;

interface Tab {
	sheet_id: string;
	name: string;
	colour: string | null;
	hidden: boolean;
}

const bookSql = 'SELECT name FROM sheet.book_info($1, $2)';
const tabsSql = `SELECT sheet_id, name, colour, hidden FROM sheet.tabs($1, $2) WHERE role IS NOT NULL AND NOT trashed ORDER BY place, sheet_id`;
const sheetSql = `SELECT i.sheet_id, i.name, NULL AS colour, false AS hidden FROM sheet.check_role($1, 'viewer', as_uid => $2), sheet.info($1, $2) i`;

/** Gives each row to `visit`, so that a large answer is not in memory. */
const stream = (client: pg.Client, text: string, values: unknown[], visit: (row: Record<string, never>) => void) =>
	new Promise<void>((resolve, reject) => {
		const query = new pg.Query(text, values);
		query.on('row', visit);
		query.on('end', () => resolve());
		query.on('error', reject);
		client.query(query);
	});

export async function exportWorkbook({ job, client, worker, database, convert }: Work): Promise<void> {
	const { job_id: id, uid, target, kind } = job;
	let part = 0;
	const handle = async (message: FromThread): Promise<void> => {
		if (message.t === 'file') await database.rows('SELECT sheet.workbook_put($1, $2, $3, $4)', [id, worker, part++, Buffer.from(message.bytes)]);
	};
	const conversion = convert(handle);
	await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = 0');
	const [book] = kind === 'book' ? (await client.query(bookSql, [target, uid])).rows : [];
	const tabs: Tab[] = (await client.query(kind === 'book' ? tabsSql : sheetSql, [target, uid])).rows;
	// A workbook has a tab at least.
	if (tabs.length === 0) conversion.post({ t: 'write', names: ['Sheet1'] });
	if (tabs.length === 0) conversion.post({ t: 'tab', name: 'Sheet1', colour: null, hidden: false, properties: null });
	else conversion.post({ t: 'write', names: tabs.map(({ name }) => name) });
	let room = mostBytes;
	let failure: unknown = null;
	conversion.done.catch((error: unknown) => (failure = error));
	for (const { sheet_id: sheet, name, colour, hidden } of tabs) {
		const { rows } = await client.query('SELECT properties, sheet.computed_seq($1) AS computed FROM sheet.read_properties($1)', [sheet]);
		const [{ properties, computed }] = rows;
		conversion.post({ t: 'tab', name, colour, hidden, properties });
		const read = async (t: 'cells' | 'values') =>
			stream(client, 'SELECT cells FROM sheet.read_cells($1, NULL, NULL, NULL, NULL, $2, $3)', [sheet, chunkBytes, t === 'values'], ({ cells }) => {
				if (!cells || failure !== null) return;
				room -= (cells as Uint8Array).length;
				if (room < 0) failure = new Refused('workbook_limit', `the sheets have more than ${mostBytes >> 20} MB of cells`);
				else conversion.post({ t, bytes: cells });
			});
		await read('cells');
		if (computed !== null) await read('values');
		if (failure !== null) throw failure;
	}
	await client.query('COMMIT');
	conversion.post({ t: 'end' });
	await conversion.done;
	const title = kind === 'book' ? (book?.name ?? 'book') : tabs[0]!.name;
	await database.rows('SELECT sheet.workbook_done($1, $2, 200, NULL, $3)', [id, worker, title]);
}
