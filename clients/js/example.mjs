/**
 * Opens a sheet, writes its first cell, and prints what changes after that.
 *
 *     PG_SHEET_TOKEN=pgs_... node example.mjs https://sheets.example.org 42 'hello'
 *
 * The token needs the scope edit (menu of the account in the page, or sheet.create_token).
 */
import { SheetClient, isCell } from 'pg-sheet-client';

const [server, sheet, text = 'hello'] = process.argv.slice(2);
const token = process.env.PG_SHEET_TOKEN;
if (!token || !server || !(Number(sheet) > 0)) {
	console.error('usage: PG_SHEET_TOKEN=pgs_... node example.mjs SERVER SHEET [TEXT]');
	process.exit(2);
}
// Node before 22 has no WebSocket, and before 20 no crypto: npm install ws.
globalThis.WebSocket ??= (await import('ws')).WebSocket;
globalThis.crypto ??= (await import('node:crypto')).webcrypto;

let written = Infinity;
const client = new SheetClient({
	url: `${server.replace(/^http/, 'ws')}/sheetws`,
	sheet: Number(sheet),
	token: () => token,
	open: (url, protocol) => Object.assign(new WebSocket(url, protocol), { onerror: () => {} }), // onClose is called, too
	onMessage: (message) => {
		if (message.t !== 'edits' || message.seq <= written) return;
		for (const edit of message.edits.filter(isCell)) console.log(`account ${edit.uid} has set row ${edit.row}, column ${edit.col}: ${edit.content}`);
	},
	onClose: (code, reason, again) => {
		if (again) return; // it reconnects
		console.error(`closed: ${code} ${reason}`);
		process.exit(1);
	},
});
client.load({ row: 0, col: 0, toRow: 99, toCol: 25 });
client.connect();
setInterval(() => client.check(), 1000); // notices a connection that is dead

try {
	written = await client.operate([{ row: 0, col: 0, content: text }]);
	console.log(`written as change ${written} of ${client.hello?.name}`);
} catch (error) {
	console.error(error.message); // the account or the token may not edit, or somebody holds the cell
	process.exit(1);
}
