/* The npm package (clients/js), installed as a user installs it: its example, at a real gateway, and its types. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, repository, waitUntil } from '../lib/cluster.mjs';
import { newSheet, post, register, request } from '../lib/client.mjs';
import { makeDirectory, removeDirectory } from '../lib/processes.mjs';

const source = path.join(repository, 'clients', 'js');
let cluster;
let gateway;
let directory;

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
	directory = makeDirectory('/tmp/js-client-');
	const packed = path.join(directory, 'packed');
	fs.cpSync(source, packed, { recursive: true, filter: (name) => path.basename(name) !== 'dist' });
	execFileSync(process.execPath, [path.join(source, 'build.mjs'), path.join(packed, 'dist')]);
	// No registry is asked: the package needs none.
	const npm = (cwd, ...args) => execFileSync('npm', args, { cwd, env: { ...process.env, HOME: directory, npm_config_cache: path.join(directory, 'cache'), npm_config_offline: 'true', npm_config_audit: 'false', npm_config_fund: 'false', npm_config_update_notifier: 'false' } }).toString();
	const archive = path.join(packed, npm(packed, 'pack').trim().split('\n').at(-1));
	fs.writeFileSync(path.join(directory, 'package.json'), '{"type":"module"}');
	npm(directory, 'install', archive);
	fs.symlinkSync(path.join(repository, 'tests', 'node_modules', 'ws'), path.join(directory, 'node_modules', 'ws'));
	fs.copyFileSync(path.join(directory, 'node_modules', 'pg-sheet-client', 'example.mjs'), path.join(directory, 'example.mjs'));
});
after(async () => {
	await cluster?.stop();
	if (directory) removeDirectory(directory);
});

/** The example, while it runs: {text, code}. */
function run(token, ...args) {
	const child = spawn(process.execPath, [path.join(directory, 'example.mjs'), ...args], { env: { ...process.env, PG_SHEET_TOKEN: token } });
	const run = { child, text: '', code: null };
	for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (run.text += data));
	child.on('close', (code) => (run.code = code));
	return run;
}

const ended = (example) => waitUntil(() => example.code !== null, () => `the end of the example: ${example.text}`);

test('its example writes a cell, prints changes of others, and ends when its token is revoked', async () => {
	const [anna, ben] = [await register(gateway), await register(gateway)];
	const fid = await newSheet(gateway, anna);
	const tokenOf = async (scope) => (await post(gateway, '/v2/tokens', { token: anna.token, label: scope, scopes: [scope] })).json;
	const made = await tokenOf('edit');
	const example = run(made.token, gateway.url, String(fid), 'by the example');
	try {
		await waitUntil(() => example.text.includes('written'), () => `the cell to be written: ${example.text}`);
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1')`), 'by the example');
		await cluster.psql(`SELECT sheet.share(${fid}, '${ben.username}', 'editor')`);
		const headers = { authorization: `Bearer ${ben.token}` };
		const written = await post(gateway, `/v2/sheets/${fid}/append`, { values: [['by ben']] }, { headers });
		assert.equal(written.status, 200, written.text);
		await waitUntil(() => example.text.includes(`account ${ben.uid} has set row 1, column 0: by ben\n`), () => `the change: ${example.text}`);
		assert.equal(example.code, null);
		await request(gateway, 'DELETE', `/v2/tokens/${made.id}`, { headers: { authorization: `Bearer ${anna.token}` } });
		await ended(example);
		assert.match(example.text, /closed: 4401 the token has been revoked/);
		assert.equal(example.code, 1);
	} finally {
		example.child.kill();
	}
	const refused = run((await tokenOf('read')).token, gateway.url, String(fid));
	await ended(refused);
	assert.deepEqual([refused.code, refused.text], [1, 'refused: role\n']);
});

test('its types need neither those of browsers nor those of Node', () => {
	fs.writeFileSync(
		path.join(directory, 'use.ts'),
		`import { SheetClient, type CellEdit, type ServerMessage, closeCodes, isCell } from 'pg-sheet-client';
		const cells: CellEdit[] = [];
		export const client = new SheetClient({
			url: 'ws://127.0.0.1/sheetws',
			sheet: 1,
			token: () => 'pgs_',
			onMessage: (message: ServerMessage) => {
				for (const edit of message.t === 'edits' ? message.edits : []) if (isCell(edit)) cells.push(edit);
			},
			onClose: (code, _reason, again) => void (code === closeCodes.unauthorized && again),
		});
		export const done: Promise<number> = client.operate([{ row: 0, col: 0, content: 'x' }]);
		export const content: string | undefined = client.replica.cells.get('0,0')?.content;
		// @ts-expect-error A cell has a row.
		void client.operate([{ col: 0, content: 'x' }]);\n`,
	);
	const compilerOptions = { strict: true, noEmit: true, target: 'ES2022', module: 'NodeNext', lib: ['ES2022'], types: [], skipLibCheck: false };
	fs.writeFileSync(path.join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }));
	const compiler = path.join(repository, 'gateway', 'web', 'node_modules', '.bin', 'tsc');
	execFileSync(compiler, ['--project', directory], { stdio: 'inherit' });
});
