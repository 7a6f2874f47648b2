/*
 * http - answers a second on 16 connections that stay open, against nginx, one worker, that serves the same bytes from a
 * file: the gateway's own file of that size, and a sheet of 20 x 50 cells that the database has in its cache. nginx is
 * Debian's; when it is not installed, its package is unpacked below the build directory, and not installed.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Service, freePort, giveToService, waitUntil } from '../../../lib/processes.mjs';
import { repository } from '../../../lib/cluster.mjs';
import { newSheet, request } from '../../../lib/client.mjs';

const connections = 16;
const [rows, columns] = [20, 50];

/** The program; null when there is none and none can be had. */
function findNginx() {
	const place = path.join(repository, 'build', 'nginx');
	const candidates = ['/usr/sbin/nginx', path.join(place, 'usr', 'sbin', 'nginx')];
	const found = () => candidates.find((file) => fs.existsSync(file));
	if (found()) return found();
	try {
		fs.mkdirSync(place, { recursive: true });
		execFileSync('apt-get', ['download', 'nginx'], { cwd: place, stdio: 'ignore' });
		for (const name of fs.readdirSync(place).filter((file) => file.endsWith('.deb')))
			execFileSync('dpkg-deb', ['-x', path.join(place, name), place]);
	} catch {
		return null;
	}
	return found() ?? null;
}

async function startNginx(bench, program, root) {
	const port = await freePort();
	const home = path.join(bench.directory, 'nginx');
	fs.mkdirSync(path.join(home, 'logs'), { recursive: true });
	fs.writeFileSync(
		path.join(home, 'nginx.conf'),
		`daemon off; worker_processes 1; pid ${home}/pid; error_log ${home}/logs/error.log;
events { worker_connections 256; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; default_type application/json;
	client_body_temp_path ${home}/body; proxy_temp_path ${home}/proxy; fastcgi_temp_path ${home}/fastcgi;
	uwsgi_temp_path ${home}/uwsgi; scgi_temp_path ${home}/scgi; open_file_cache max=16;
	server { listen 127.0.0.1:${port}; root ${root}; } }
`,
	);
	// The user who runs it may not see the checkout.
	const copy = path.join(home, 'nginx');
	fs.copyFileSync(program, copy);
	fs.chmodSync(copy, 0o755);
	for (const name of [home, path.join(home, 'logs')]) giveToService(name);
	const service = Service.spawn('nginx', copy, ['-p', home, '-c', path.join(home, 'nginx.conf')], {
		log: path.join(home, 'log'),
	});
	await waitUntil(
		() =>
			request({ port }, 'GET', '/').then(
				() => true,
				() => false,
			),
		'nginx',
		10000,
	);
	return { port, stop: () => service.stop('SIGTERM') };
}

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
	const program = findNginx();

	bench.line(`a sheet of ${rows} x ${columns} cells (${answers.body_bytes} bytes), answers a second`, answers.per_second);
	if (!program) {
		bench.line('nginx can neither be found nor downloaded: no comparison', '-');
		return json;
	}
	const root = path.join(bench.directory, 'static');
	fs.mkdirSync(root);
	fs.chmodSync(bench.directory, 0o755);
	fs.writeFileSync(path.join(root, 'window.json'), 'x'.repeat(answers.body_bytes));
	const nginx = await startNginx(bench, program, root);
	try {
		const file = load(bench, nginx.port, 'file', 'GET /window.json HTTP/1.1');
		Object.assign(json, {
			nginx_per_s: file.per_second,
			http_sheet_ratio: Number((answers.per_second / file.per_second).toFixed(3)),
		});
		bench.line('nginx, a file of the same size, answers a second', file.per_second);
		bench.line('the sheet against nginx', json.http_sheet_ratio, '0.7', json.http_sheet_ratio >= 0.7);
	} finally {
		await nginx.stop();
	}
	return json;
}
