/*
 * pg_proxy.mjs - a wire between gateways and PostgreSQL that holds back what the server says, on the connections of some
 * application_names or on all, so that an answer can be late, or lost, when a test wants it.
 */
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { giveToService } from './processes.mjs';

const socketName = '.s.PGSQL.5432';

export class PgProxy {
	/** Stands beside the socket of the cluster; the gateway is started again, with this between it and the server. */
	static async start(cluster, gateway) {
		const proxy = new PgProxy();
		Object.assign(proxy, { cluster, gateway });
		proxy.directory = path.join(cluster.directory, 'proxy');
		fs.mkdirSync(proxy.directory);
		proxy.target = path.join(cluster.directory, 'socket', socketName);
		Object.assign(proxy, { held: [], heldBytes: 0, wires: new Set() });
		proxy.server = net.createServer((client) => proxy.connect(client));
		await new Promise((resolve) => proxy.server.listen(path.join(proxy.directory, socketName), resolve));
		fs.chmodSync(path.join(proxy.directory, socketName), 0o777);
		giveToService(proxy.directory);
		await gateway.stop();
		await gateway.start({ database: cluster.conninfo('gateway').replace('/socket', '/proxy') });
		return proxy;
	}

	/** Called with the name of a connection and with data of the server's, before they are passed on or held. */
	seen;

	/** The gateway is started again, without this. */
	async remove() {
		this.release();
		await this.gateway.stop();
		await this.gateway.start({ database: this.cluster.conninfo('gateway') });
		await this.stop();
	}

	connect(client) {
		const server = net.connect(this.target);
		const wire = { client, server, name: '', waiting: [] };
		this.wires.add(wire);
		client.once('data', (startup) => {
			wire.name = /application_name\0([^\0]*)/.exec(startup.toString('latin1'))?.[1] ?? '';
		});
		client.on('data', (data) => server.write(data));
		server.on('data', (data) => {
			this.seen?.(wire.name, data);
			if (!this.silent && !this.held.includes(wire.name)) client.write(data);
			else {
				wire.waiting.push(data);
				if (wire.name === this.held[0]) this.heldBytes += data.length;
			}
		});
		for (const [from, to] of [
			[client, server],
			[server, client],
		]) {
			from.on('error', () => {});
			from.on('close', () => {
				to.destroy();
				this.wires.delete(wire);
			});
		}
	}

	/** From now on the server's answers on connections of these names wait; heldBytes counts those of the first name. */
	hold(...names) {
		this.held = names;
		this.heldBytes = 0;
	}

	/** From now on nothing arrives on any connection, as when the network drops packets. */
	silence() {
		this.silent = true;
	}

	release() {
		this.held = [];
		this.silent = false;
		for (const { client, waiting } of this.wires) for (const data of waiting.splice(0)) client.write(data);
	}

	/** What waits is lost, with the connections that it came on. */
	drop() {
		for (const { name, client } of this.wires) if (this.held.includes(name)) client.destroy();
		this.held = [];
	}

	stop() {
		for (const { client, server } of this.wires) {
			client.destroy();
			server.destroy();
		}
		return new Promise((resolve) => this.server.close(resolve)).then(() => fs.rmSync(this.directory, { recursive: true }));
	}
}
