/*
 * servers.mjs - starts servers of others for a comparison, as the user who runs services: {port, pid, stop}. They get a
 * directory of their own below /tmp, which they may write to, with copies of their programs: that user may not see the
 * checkout.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { request } from '../../lib/client.mjs';
import { Service, freePort, giveToService, makeDirectory, removeDirectory } from '../../lib/processes.mjs';
import { debianFiles } from '../common/debian.mjs';

function copyInto(home, file) {
	const copy = path.join(home, path.basename(file));
	fs.copyFileSync(file, copy);
	fs.chmodSync(copy, 0o755);
	return copy;
}

async function start(name, home, port, words) {
	const service = Service.spawn(name, words[0], words.slice(1), { log: path.join(home, 'log') });
	const stop = async () => {
		await service.stop('SIGTERM');
		removeDirectory(home);
	};
	try {
		await service.waitReady(() => request({ port }, 'GET', '/'));
	} catch (error) {
		await stop();
		throw error;
	}
	return { port, pid: service.pid, stop };
}

/** Where nginx is compiled to keep what it receives. The module nchan makes this directory whatever the configuration says. */
const bodies = '/var/lib/nginx';
const withBodies = `mount -t tmpfs none ${path.dirname(bodies)} && mkdir ${bodies} && exec "$@"`;

/** http: what stands in its block of the configuration, beside a server's `listen`, which PORT is replaced in. */
export async function startNginx({ http, modules = [] }) {
	const [program, ...objects] = debianFiles(
		['nginx', ...modules.map(({ package: name }) => name)],
		['/usr/sbin/nginx', ...modules.map(({ file }) => file)],
	);
	const port = await freePort();
	const home = makeDirectory(path.join(os.tmpdir(), 'pg_sheet-nginx-'));
	const configuration = path.join(home, 'nginx.conf');
	fs.mkdirSync(path.join(home, 'logs'));
	giveToService(path.join(home, 'logs'));
	fs.writeFileSync(
		configuration,
		`${objects.map((file) => `load_module ${copyInto(home, file)};\n`).join('')}
user root; daemon off; worker_processes 1; pid ${home}/pid; error_log ${home}/logs/error.log;
events { worker_connections 256; }
http { access_log off; client_body_temp_path ${home}/body; proxy_temp_path ${home}/proxy;
	fastcgi_temp_path ${home}/fastcgi; uwsgi_temp_path ${home}/uwsgi; scgi_temp_path ${home}/scgi;
	${http.replace('PORT', port)} }
`,
	);
	const words = [copyInto(home, program), '-p', home, '-c', configuration];
	const needsBodies = objects.length > 0 && !fs.existsSync(bodies);
	return start('nginx', home, port, [
		...(needsBodies ? ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', withBodies, 'sh'] : []),
		...words,
	]);
}

/** nats-server with its listener for WebSockets; stored: with JetStream. */
export async function startNats({ stored }) {
	const [program] = debianFiles(['nats-server'], ['/usr/sbin/nats-server']);
	const [port, clients] = [await freePort(), await freePort()];
	const home = makeDirectory(path.join(os.tmpdir(), 'pg_sheet-nats-'));
	const configuration = path.join(home, 'nats.conf');
	fs.writeFileSync(
		configuration,
		`host: "127.0.0.1"\nport: ${clients}\nwebsocket { host: "127.0.0.1", port: ${port}, no_tls: true }\n` +
			(stored ? `jetstream { store_dir: "${home}/store" }\n` : ''),
	);
	return start('nats-server', home, port, [copyInto(home, program), '-c', configuration]);
}
