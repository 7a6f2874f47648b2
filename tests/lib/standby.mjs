/* standby.mjs - a standby of a cluster's server, which can take its place. */
import fs from 'node:fs';
import path from 'node:path';
import { Service, freePort, giveToService, mustRunAs, runAs } from './processes.mjs';

export class Standby {
	/** The cluster's server must listen on 127.0.0.1. */
	static async start(cluster) {
		const standby = new Standby();
		Object.assign(standby, { cluster, port: await freePort(), data: fs.mkdtempSync(path.join(cluster.directory, 'standby-')) });
		giveToService(standby.data);
		const source = `host=${cluster.directory}/socket port=${cluster.settings.port} user=postgres application_name=standby`;
		await mustRunAs(path.join(cluster.bin, 'pg_basebackup'), ['-D', standby.data, '-R', '-X', 'stream', '-c', 'fast', '-N', '-d', source]);
		await standby.startPostgres();
		return standby;
	}

	async startPostgres() {
		const { cluster, port } = this;
		const settings = Object.entries({ ...cluster.settings, port }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
		this.postgres = Service.spawn('standby', path.join(cluster.bin, 'postgres'), ['-D', this.data, '-k', `${cluster.directory}/socket`, ...settings], {
			log: path.join(cluster.directory, 'log', 'standby.log'),
			deathSignal: 'SIGQUIT',
		});
		const probe = ['-q', '-d', `host=${cluster.directory}/socket port=${port} user=postgres dbname=postgres`];
		await this.postgres.waitReady(async () => (await runAs(path.join(cluster.bin, 'pg_isready'), probe)).code === 0, 60000);
	}

	/** It becomes the cluster's server, whose former one must have ended. */
	async promote() {
		const { cluster } = this;
		await mustRunAs(path.join(cluster.bin, 'pg_ctl'), ['promote', '-w', '-t', '60', '-D', this.data]);
		cluster.settings = { ...cluster.settings, port: this.port };
		cluster.postgres = this.postgres;
	}

	async stop() {
		if (this.postgres?.alive) await this.postgres.stop('SIGINT', 30000);
		fs.rmSync(this.data, { recursive: true, force: true });
	}
}
