// export.ts - a book, or a sheet, becomes a workbook: of one state of the database, with the tabs that the account may see.
import pg from 'pg';
import { socketOf } from '../database';
import type { Conversion } from './conversion';
import { FileSender } from './files';
import { type Job, transactionSql, type Work } from './jobs';
import type { FromChild } from './messages';

const chunkBytes = 1 << 20;

interface Tab {
	sheet_id: string;
	name: string;
	colour: string | null;
	hidden: boolean;
}

const bookSql = 'SELECT name FROM sheet.book_info($1, $2)';
const tabsSql = `SELECT sheet_id, name, colour, hidden FROM sheet.tabs($1, $2) WHERE role IS NOT NULL AND NOT trashed ORDER BY place, sheet_id`;
/** Whether a guest of a link sees a rectangle of the sheet alone. */
const isPartSql = 'SELECT (sheet.link_place($1, -$2::bigint)).ref IS NOT NULL AS "isPart"';
const partSql = 'SELECT c.cells, c."row", c.col FROM sheet.link_target($1) t, sheet.published_cells(t.sheet_id, -$1::bigint, $2) c';
const mostPartBytes = 1 << 24;
/** The state of an error for what does not exist: 404. */
const undefinedObject = '42704';
const sheetSql = `SELECT i.sheet_id, i.name, NULL AS colour, false AS hidden FROM sheet.check_role($1, 'viewer', as_uid => $2), sheet.info($1, $2) i`;

/** Gives each row to `visit`, and reads on when it is done, so that a large answer is not in memory. */
const stream = (client: pg.Client, text: string, values: unknown[], visit: (row: Record<string, never>) => Promise<void>) =>
	new Promise<void>((resolve, reject) => {
		const query = new pg.Query(text, values);
		const socket = socketOf(client);
		let visits = Promise.resolve();
		let waiting = 0;
		query.on('row', (row: Record<string, never>) => {
			socket.pause();
			waiting++;
			visits = visits.then(() => visit(row));
			visits.then(() => --waiting === 0 && socket.resume(), reject);
		});
		query.on('end', () => void visits.then(resolve, reject));
		query.on('error', reject);
		client.query(query);
	});

/** The tab, as the child takes it. */
async function exportTab(client: pg.Client, conversion: Conversion, files: FileSender, { sheet_id: sheet, name, colour, hidden }: Tab): Promise<void> {
	const { rows } = await client.query('SELECT p.properties, p.seq, sheet.computed_seq($1) AS computed FROM sheet.read_properties($1) p', [sheet]);
	const [{ properties, seq, computed }] = rows;
	await conversion.post({ t: 'tab', name, colour, hidden, properties, isComputed: computed === seq });
	if (properties) await files.send(properties);
	const read = async (t: 'cells' | 'values') =>
		stream(client, 'SELECT cells FROM sheet.read_cells($1, NULL, NULL, NULL, NULL, $2, $3)', [sheet, chunkBytes, t === 'values'], async ({ cells }) => {
			if (cells) await conversion.post({ t, bytes: cells });
		});
	await read('cells');
	if (computed !== null) await read('values');
}

/** The tabs of a book, or a sheet. Returns the name of the file. */
async function exportTabs(client: pg.Client, conversion: Conversion, { uid, target, kind }: Job): Promise<string> {
	await client.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; ${transactionSql}`);
	const [book] = kind === 'book' ? (await client.query(bookSql, [target, uid])).rows : [];
	const tabs: Tab[] = (await client.query(kind === 'book' ? tabsSql : sheetSql, [target, uid])).rows;
	// A workbook has a tab at least.
	await conversion.post({ t: 'write', names: tabs.length === 0 ? ['Sheet1'] : tabs.map(({ name }) => name) });
	if (tabs.length === 0) await conversion.post({ t: 'tab', name: 'Sheet1', colour: null, hidden: false, properties: null, isComputed: true });
	const files = new FileSender(client, conversion);
	for (const tab of tabs) await exportTab(client, conversion, files, tab);
	await client.query('COMMIT');
	return kind === 'book' ? (book?.name ?? 'book') : tabs[0]!.name;
}

/** The contents of the rectangle of a link, whose readers need not learn of which sheet it is. */
async function exportPart(client: pg.Client, conversion: Conversion, { uid }: Job): Promise<string> {
	const name = 'Cells';
	await client.query(`BEGIN ISOLATION LEVEL READ COMMITTED; ${transactionSql}`);
	const [part] = (await client.query(partSql, [uid, mostPartBytes])).rows;
	await client.query('COMMIT');
	if (!part) throw Object.assign(new Error('no such view'), { code: undefinedObject });
	const { cells, row, col } = part;
	await conversion.post({ t: 'write', names: [name] });
	await conversion.post({ t: 'tab', name, colour: null, hidden: false, properties: null, isComputed: true, part: { row, col } });
	await conversion.post({ t: 'cells', bytes: cells });
	return name;
}

export async function exportWorkbook({ job, client, worker, database, convert }: Work): Promise<void> {
	const { job_id: id, uid, target } = job;
	let part = 0;
	const handle = async (message: FromChild): Promise<void> => {
		if (message.t === 'file') await database.rows('SELECT sheet.workbook_put($1, $2, $3, $4)', [id, worker, part++, Buffer.from(message.bytes)]);
	};
	const isPart = Number(uid) < 0 && (await client.query(isPartSql, [target, uid])).rows[0].isPart;
	const conversion = convert(handle);
	const title = await (isPart ? exportPart : exportTabs)(client, conversion, job);
	await conversion.post({ t: 'end' });
	await conversion.done;
	await database.rows('SELECT sheet.workbook_done($1, $2, 200, NULL, $3)', [id, worker, title]);
}
