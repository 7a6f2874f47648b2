/*
 * http - answers a second on 16 connections that stay open, against nginx, one worker, that serves files of the same size:
 * a window of 20 x 50 cells (GET), which the gateway has in its memory; the page; and the same cells as protocol v1 has
 * them (POST /getsheet), for which the database is asked each time, and which it has in its cache, against the window's
 * file. They take turns in short rounds; the figures are medians. nginx is Debian's (common/debian.mjs).
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { newSheet } from '../../../lib/client.mjs';
import { startNginx } from '../servers.mjs';

const connections = 16;
const [rows, columns] = [20, 50];
const rounds = 5;

const files = (root) => `sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type application/json;
	open_file_cache max=16; server { listen 127.0.0.1:PORT; root ${root}; }`;

/** Something that is asked for, in rounds. */
export class Load {
	constructor(bench, port, name, head, body = '') {
		Object.assign(this, { bench, port, file: bench.file(name, []), rates: [] });
		fs.writeFileSync(this.file, `${head}\r\nHost: 127.0.0.1\r\n\r\n${body}`);
	}

	round() {
		const seconds = Math.max(0.2, this.bench.seconds / 4 / rounds);
		const answer = JSON.parse(
			execFileSync(this.bench.program('http_load'), [this.port, connections, seconds, this.file]).toString(),
		);
		this.bytes = answer.body_bytes;
		this.rates.push(answer.per_second);
	}

	/** The median of the rounds. */
	get rate() {
		return [...this.rates].sort((a, b) => a - b)[Math.floor(this.rates.length / 2)];
	}

	/** Of this one's rate to another's: the median of the rounds' ratios. */
	ratio(other) {
		const ratios = this.rates.map((rate, i) => rate / other.rates[i]).sort((a, b) => a - b);
		return Number(ratios[Math.floor(ratios.length / 2)].toFixed(3));
	}
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

/** What is asked of the gateway. */
function gatewayLoads(bench, sheet) {
	const { port } = bench.site.gateway;
	const body = JSON.stringify(sheet);
	const range = `row=0&col=0&toRow=${rows - 1}&toCol=${columns - 1}`;
	const window = `GET /v2/sheets/${sheet.fid}/cells?${range} HTTP/1.1\r\nAuthorization: Bearer ${sheet.token}`;
	const getsheet = `POST /getsheet HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
	return {
		window: new Load(bench, port, 'window', window),
		page: new Load(bench, port, 'page', 'GET / HTTP/1.1'),
		sheet: new Load(bench, port, 'getsheet', getsheet, body),
	};
}

/** nginx with files of these sizes, by their names: {port, stop}; null when there is none. */
export async function serveFiles(bench, sizes) {
	const root = fs.mkdtempSync(path.join(os.tmpdir(), 'pg_sheet-files-'));
	const removeRoot = () => fs.rmSync(root, { recursive: true, force: true });
	fs.chmodSync(root, 0o755);
	for (const [name, size] of Object.entries(sizes)) fs.writeFileSync(path.join(root, name), 'x'.repeat(size));
	try {
		const { port, stop } = await startNginx({ http: files(root) });
		return { port, stop: () => stop().then(removeRoot) };
	} catch (error) {
		removeRoot();
		bench.line(`no comparison with nginx: ${error.message}`, '-');
		return null;
	}
}

/** nginx with files of the sizes of the gateway's answers: what is asked of it, and how it ends; null when there is none. */
async function nginxLoads(bench, { window, page }) {
	const nginx = await serveFiles(bench, { 'window.json': window.bytes, 'page.html': page.bytes });
	return (
		nginx && {
			file: new Load(bench, nginx.port, 'file', 'GET /window.json HTTP/1.1'),
			smallFile: new Load(bench, nginx.port, 'small-file', 'GET /page.html HTTP/1.1'),
			stop: nginx.stop,
		}
	);
}

function compare(bench, { window, page, sheet }, { file, smallFile }) {
	const json = {
		nginx_per_s: file.rate,
		http_vs_nginx: window.ratio(file),
		http_page_ratio: page.ratio(smallFile),
		http_sheet_ratio: sheet.ratio(file),
	};
	bench.line(`nginx, a file of ${file.bytes} bytes`, file.rate);
	bench.line(`nginx, a file of ${smallFile.bytes} bytes`, smallFile.rate);
	bench.line('the window against nginx', json.http_vs_nginx, '0.7', json.http_vs_nginx >= 0.7);
	bench.line('the page against nginx', json.http_page_ratio, '0.7', json.http_page_ratio >= 0.7);
	bench.line('POST /getsheet against nginx', json.http_sheet_ratio);
	return json;
}

export async function http(bench) {
	const loads = gatewayLoads(bench, await fillSheet(bench));
	const { window, page, sheet } = loads;

	for (const load of Object.values(loads)) load.round(); // how large they are, and they are in memory
	for (const load of Object.values(loads)) load.rates = [];
	const nginx = await nginxLoads(bench, loads);
	try {
		for (let i = 0; i < rounds; i++)
			for (const load of [window, nginx?.file, page, nginx?.smallFile, sheet]) load?.round();
	} finally {
		await nginx?.stop();
	}
	const cells = `of ${rows} x ${columns} cells`;
	bench.line(`a window ${cells} (${window.bytes} bytes), answers a second`, window.rate);
	bench.line(`the page (${page.bytes} bytes)`, page.rate);
	bench.line(`POST /getsheet of a sheet ${cells} (${sheet.bytes} bytes)`, sheet.rate);
	return {
		http_window_per_s: window.rate,
		http_page_per_s: page.rate,
		http_sheet_per_s: sheet.rate,
		...(nginx ? compare(bench, loads, nginx) : {}),
	};
}
