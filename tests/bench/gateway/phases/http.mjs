/*
 * http - answers a second on 16 connections that stay open, against nginx, one worker, that serves the same bytes from a
 * file of that size: a sheet of 20 x 50 cells that the database has in its cache. nginx is Debian's (common/debian.mjs).
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { newSheet } from '../../../lib/client.mjs';
import { startNginx } from '../servers.mjs';

const connections = 16;
const [rows, columns] = [20, 50];

const files = (root) => `sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type application/json;
	open_file_cache max=16; server { listen 127.0.0.1:PORT; root ${root}; }`;

function load(bench, port, name, head, body = '') {
	const file = bench.file(name, []);
	fs.writeFileSync(file, `${head}\r\nHost: 127.0.0.1\r\n\r\n${body}`);
	return JSON.parse(
		execFileSync(bench.program('http_load'), [port, connections, Math.max(1, bench.seconds / 4), file]).toString(),
	);
}

/** A sheet whose cells are all filled. */
async function fillSheet(bench) {
	const [user] = bench.users;
	const fid = await newSheet(bench.site.gateway, user, { name: 'window', rows, columns });
	await bench.site.psql(
		`DO $$ BEGIN FOR r IN 0..${rows - 1} LOOP FOR c IN 0..${columns - 1} LOOP
			PERFORM sheet.set(${fid}, r, c, 'cell ' || r * c); END LOOP; END LOOP; END $$`,
	);
	return { fid, token: user.token };
}

export async function http(bench) {
	const { gateway } = bench.site;
	const sheet = await fillSheet(bench);
	const body = JSON.stringify(sheet);
	const head = `POST /getsheet HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
	const answers = load(bench, gateway.port, 'getsheet', head, body);
	const json = { http_sheet_per_s: answers.per_second };
	bench.line(`a sheet of ${rows} x ${columns} cells (${answers.body_bytes} bytes), answers a second`, answers.per_second);
	const root = fs.mkdtempSync(path.join(os.tmpdir(), 'pg_sheet-files-'));
	fs.chmodSync(root, 0o755);
	fs.writeFileSync(path.join(root, 'window.json'), 'x'.repeat(answers.body_bytes));
	let nginx;
	try {
		nginx = await startNginx({ http: files(root) });
		const file = load(bench, nginx.port, 'file', 'GET /window.json HTTP/1.1');
		Object.assign(json, {
			nginx_per_s: file.per_second,
			http_sheet_ratio: Number((answers.per_second / file.per_second).toFixed(3)),
		});
		bench.line('nginx, a file of the same size, answers a second', file.per_second);
		bench.line('the sheet against nginx', json.http_sheet_ratio, '0.7', json.http_sheet_ratio >= 0.7);
	} catch (error) {
		if (nginx) throw error;
		bench.line(`no comparison with nginx: ${error.message}`, '-');
	} finally {
		await nginx?.stop();
		fs.rmSync(root, { recursive: true, force: true });
	}
	return json;
}
