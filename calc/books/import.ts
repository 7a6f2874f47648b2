// import.ts - a workbook becomes a book of the account, in one transaction: all of it is there, or nothing.
import { FileWriter } from './files';
import { transactionSql, type Work } from './jobs';
import type { FromChild } from './messages';

export async function importWorkbook({ job, client, worker, convert }: Work): Promise<void> {
	const { job_id: id, uid, name } = job;
	const value = async (text: string, values: unknown[]): Promise<unknown> => (await client.query({ text, values, rowMode: 'array' })).rows[0]?.[0];
	let book: unknown;
	let sheet: unknown;
	const tabs: { id: number; name: string }[] = [];
	const renamed: string[] = [];
	/** Hidden when all are there: the last visible tab of a book cannot be. */
	const hidden: unknown[] = [];
	const file = new FileWriter(client, uid);

	/** Names of tabs differ in more than case, which the database decides. */
	const freeName = async (wanted: string): Promise<string> => {
		for (let i = 1; ; i++) {
			const own = i === 1 ? wanted : `${wanted} (${i})`;
			if ((await value('SELECT sheet.tab($1, $2, $3)', [book, own, uid])) !== null) continue;
			if (i > 1) renamed.push(own);
			return own;
		}
	};
	const handle = async (message: FromChild): Promise<void> => {
		switch (message.t) {
			case 'tab': {
				book ??= await value('SELECT sheet.create_book($1, $2)', [name, uid]);
				const own = await freeName(message.name);
				sheet = await value('SELECT sheet.add_tab($1, $2, as_uid => $3)', [book, own, uid]);
				tabs.push({ id: Number(sheet), name: own });
				return;
			}
			case 'edits':
				await client.query('SELECT last_seq FROM sheet.apply($1, $2)', [sheet, message.bytes]);
				return;
			case 'endTab':
				if (message.colour) await client.query('SELECT sheet.change_tab($1, $2, as_uid => $3)', [sheet, message.colour, uid]);
				if (message.hidden) hidden.push(sheet);
				return;
			case 'again':
				sheet = tabs[message.tab]!.id;
				return;
			case 'beginFile':
				return conversion.post({ t: 'answer', answer: await file.begin(sheet, message) });
			case 'fileBytes':
				return file.put(message.bytes);
			case 'endFile':
				return conversion.post({ t: 'answer', answer: await file.end() });
		}
	};

	const conversion = convert(handle);
	// The book is durable when it is answered.
	await client.query(`BEGIN; SET LOCAL synchronous_commit = on; ${transactionSql}`);
	for (let part = 0; ; part++) {
		const bytes = (await value('SELECT sheet.workbook_part($1, $2)', [id, part])) as Uint8Array | null;
		if (!bytes) break;
		await conversion.post({ t: 'bytes', bytes });
	}
	await conversion.post({ t: 'read', uid: Number(uid) });
	const last = await conversion.done;
	for (const tab of hidden) await client.query('SELECT sheet.change_tab($1, hidden => true, as_uid => $2)', [tab, uid]);
	if (last.t !== 'read') throw new Error('the process has written a workbook');
	const { lost, kept } = last;
	for (const tab of renamed) lost.push({ tab, what: 'a name that another tab has', count: 1 });
	const answer = JSON.stringify({ id: Number(book), tabs, not_carried: lost, kept });
	await client.query('SELECT sheet.workbook_done($1, $2, 201, $3)', [id, worker, answer]);
	await client.query('COMMIT');
}
