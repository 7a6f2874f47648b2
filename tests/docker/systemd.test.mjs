/*
 * The units of `make install` in a container with systemd, PostgreSQL and ZooKeeper, prepared by the commands in
 * docs/OPERATIONS.md: the sandbox lets a gateway work, what ends is started again, invalid settings are not tried twice.
 * Skipped where no Docker engine answers. The images are kept for the next run.
 */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Editor, login, newSheet, register, request } from '../lib/client.mjs';
import { freePort, waitUntil } from '../lib/processes.mjs';
import { buildMs, copyClone, docker, engineObstacle, run } from './engine.mjs';

const name = `pg_sheet_systemd_${process.pid}`;
const obstacle = engineObstacle('docker/Dockerfile');

const image = `FROM pg_sheet/build:test
RUN apt-get update && apt-get install -y --no-install-recommends systemd systemd-sysv dbus sudo zookeeper default-jre-headless
RUN cp -r /out/. /
STOPSIGNAL SIGRTMIN+3
`;
/** What systemd needs; --privileged fails on hosts that lack a capability. */
const options = ['--cap-add=ALL', '--cap-drop=SYS_RESOURCE', '--cgroupns=private', '--tmpfs=/run', '--tmpfs=/tmp'];
for (const part of ['seccomp', 'apparmor', 'systempaths']) options.push(`--security-opt=${part}=unconfined`);
/** systemd needs control groups of version 2; Docker mounts those of version 1 on hosts that have them. */
const init = '[ -e /sys/fs/cgroup/cgroup.procs ] || { umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; }; exec /sbin/init';

/** The commands under "systemd service" of the manual, without those for machines that have not built pg_sheet. */
function commandsOfManual(directory) {
	const manual = fs.readFileSync(path.join(directory, 'docs/OPERATIONS.md'), 'utf8');
	const [block] = manual.split('## systemd service')[1].match(/(?<=\n\n)( {4}.*\n)+/);
	return block.split('\n').map((line) => line.trim()).filter((line) => line && !line.startsWith('apt-get '));
}

if (obstacle) {
	test('the units for systemd', { skip: obstacle }, () => {});
} else {
	describe('the units for systemd', () => {
		const ports = [];
		let directory;
		let anna;
		let fid;

		/** The output of a Bash script that root runs in the container. */
		const sh = (script) => docker('exec', name, 'bash', '-ec', script);
		const property = (unit, key) => sh(`systemctl show --value --property=${key} ${unit}`);
		const site = (port) => ({ port, host: `127.0.0.1:${port}` });
		const isReady = async (port) => (await request(site(port), 'GET', '/readyz')).status === 200;
		const serves = (port) => waitUntil(() => isReady(port), `port ${port} to serve`, 30000, 200);
		/** Kills the main process of a unit, and waits until systemd has started another. */
		const killAndWait = async (unit) => {
			const pid = await property(unit, 'MainPID');
			await sh(`kill -9 ${pid}`);
			const isBack = async () => (await property(unit, 'ActiveState')) === 'active' && ![pid, '0'].includes(await property(unit, 'MainPID'));
			await waitUntil(isBack, `another process of ${unit}`, 30000, 200);
		};
		const settings = (file, port, ...lines) =>
			['listen-address = 0.0.0.0', `listen-port = ${port}`, `public-address = 127.0.0.1:${port}`, ...lines]
				.map((line) => `echo '${line}' >> /etc/pg_sheet/${file}.conf`)
				.join('\n');
		const clean = () => {
			spawnSync('docker', ['rm', '--force', '--volumes', name]);
			if (directory) fs.rmSync(directory, { recursive: true, force: true });
		};

		before(
			async () => {
				process.on('exit', clean);
				directory = copyClone();
				await docker('build', '--file', `${directory}/docker/Dockerfile`, '--target', 'build', '--tag', 'pg_sheet/build:test', directory);
				const building = run('docker', ['build', '--tag', 'pg_sheet/systemd:test', '-'], { timeout: buildMs, maxBuffer: 64 << 20 });
				building.child.stdin.end(image);
				await building;
				for (let i = 0; i < 3; i++) ports.push(await freePort());
				const published = ports.flatMap((port) => ['--publish', `127.0.0.1:${port}:${port}`]);
				await docker('run', '--detach', '--name', name, ...options, ...published, 'pg_sheet/systemd:test', 'sh', '-c', init);
				await waitUntil(() => sh('systemctl is-system-running || [ "$(systemctl is-system-running)" = degraded ]'), 'systemd', 60000, 200);
				await sh('ls /etc/postgresql/*/main || { pg_createcluster $(ls /usr/lib/postgresql) main && systemctl daemon-reload && systemctl start postgresql; }');
			},
			{ timeout: buildMs },
		);
		after(clean, { timeout: 120000 });

		test('a gateway that the manual prepares serves, in its sandbox', { timeout: 120000 }, async () => {
			const commands = commandsOfManual(directory);
			assert.match(commands.at(-1), /enable --now pg_sheet_gateway/);
			await sh(commands.slice(0, -1).join('\n'));
			await sh(settings('gateway', ports[0]));
			await sh(commands.at(-1));
			await serves(ports[0]);
			await waitUntil(async () => (await property('pg_sheet_gateway', 'StatusText')).includes('serving'), 'the status', 10000, 200);
			assert.equal(await property('pg_sheet_gateway', 'User'), 'pgsheet');
			anna = await register(site(ports[0]));
			anna.token = (await login(site(ports[0]), anna)).token;
			fid = await newSheet(site(ports[0]), anna);
			const editor = await Editor.open(site(ports[0]), anna, fid);
			editor.modify(0, 0, 'kept');
			await editor.nextModify(0, 0, 'kept');
			await editor.close();
		});

		test('a gateway that is killed is started again', { timeout: 60000 }, async () => {
			await killAndWait('pg_sheet_gateway');
			assert.equal(await property('pg_sheet_gateway', 'NRestarts'), '1');
			await serves(ports[0]);
			const editor = await waitUntil(() => Editor.open(site(ports[0]), anna, fid), 'the sheet to be open', 30000, 200);
			assert.equal(editor.cells.get('0,0'), 'kept');
			await editor.close();
		});

		test('a gateway whose event loop stands still is started again', { timeout: 60000 }, async () => {
			// A process that is stopped does not take SIGABRT, either: the time until SIGKILL is shortened as well.
			const dropIn = '/run/systemd/system/pg_sheet_gateway.service.d/test.conf';
			await sh(`mkdir -p $(dirname ${dropIn}); printf '[Service]\\nWatchdogSec=3\\nTimeoutAbortSec=1\\n' > ${dropIn}`);
			await sh('systemctl daemon-reload; systemctl restart pg_sheet_gateway');
			const pid = await property('pg_sheet_gateway', 'MainPID');
			await sh(`kill -STOP ${pid}`);
			await waitUntil(async () => !['0', pid].includes(await property('pg_sheet_gateway', 'MainPID')), 'another process', 30000, 200);
			await serves(ports[0]);
			assert.match(await sh('journalctl --unit=pg_sheet_gateway'), /[Ww]atchdog timeout/);
		});

		test('reload reads the settings; invalid ones change nothing, and prevent a start, once', { timeout: 60000 }, async () => {
			const pid = await property('pg_sheet_gateway', 'MainPID');
			await sh('cp -p /etc/pg_sheet/gateway.conf /tmp/kept; echo "hsts-seconds = many" >> /etc/pg_sheet/gateway.conf');
			await sh('systemctl reload pg_sheet_gateway');
			await waitUntil(async () => (await sh('journalctl --unit=pg_sheet_gateway')).includes('hsts-seconds'), 'the reason', 10000, 200);
			assert.equal(await property('pg_sheet_gateway', 'MainPID'), pid);
			assert.ok(await isReady(ports[0]));
			await assert.rejects(sh('systemctl restart pg_sheet_gateway'));
			await new Promise((done) => setTimeout(done, 3000));
			assert.equal(await property('pg_sheet_gateway', 'ActiveState'), 'failed');
			assert.equal(await property('pg_sheet_gateway', 'ExecMainStatus'), '2');
			await sh('cp -p /tmp/kept /etc/pg_sheet/gateway.conf; systemctl start pg_sheet_gateway');
			await serves(ports[0]);
		});

		test('PostgreSQL that is killed is started again, with the drop-in of the manual', { timeout: 90000 }, async () => {
			const unit = `postgresql@${await sh('ls /usr/lib/postgresql')}-main`;
			const dropIn = `/run/systemd/system/${unit}.service.d/test.conf`;
			await sh(`mkdir -p $(dirname ${dropIn}); printf '[Service]\\nRestart=on-failure\\n' > ${dropIn}; systemctl daemon-reload`);
			await killAndWait(unit);
			await serves(ports[0]);
		});

		test('a ZooKeeper server and several gateways; one that stops hands its sheets over', { timeout: 120000 }, async () => {
			await sh('echo "admin.enableServer=false" >> /etc/zookeeper/conf/zoo.cfg; echo 1 > /etc/zookeeper/conf/myid');
			await sh('systemctl disable --now pg_sheet_gateway; systemctl enable --now pg_sheet_zookeeper');
			const gateways = ['a', 'b'].map((letter, i) => ({ unit: `pg_sheet_gateway@${letter}`, file: letter, port: ports[i + 1] }));
			for (const { file, port } of gateways) {
				await sh(`install -m 0640 -g pgsheet /usr/share/pg_sheet/gateway.conf.example /etc/pg_sheet/${file}.conf`);
				await sh(settings(file, port, 'coordinator = zookeeper'));
			}
			await sh(`systemctl enable --now ${gateways.map(({ unit }) => unit).join(' ')}`);
			for (const { port } of gateways) await serves(port);
			await killAndWait('pg_sheet_zookeeper');
			for (const { port } of gateways) await serves(port);
			const owns = async ({ port }) => (await request(site(port), 'GET', `/sheetws?token=${anna.token}&fid=${fid}&query=1`)).json?.msg === 20;
			const findOwner = async () => {
				for (const gateway of gateways) if (await owns(gateway)) return gateway;
				return undefined;
			};
			const owner = await waitUntil(findOwner, 'an owner of the sheet', 30000, 200);
			const other = gateways.find((gateway) => gateway !== owner);
			await sh(`systemctl stop ${owner.unit}`);
			assert.equal(await property(owner.unit, 'Result'), 'success');
			await waitUntil(() => owns(other), 'the other gateway to own the sheet', 10000, 200);
			const editor = await waitUntil(() => Editor.open(site(other.port), anna, fid), 'the sheet to be open', 10000, 200);
			assert.equal(editor.cells.get('0,0'), 'kept');
			await editor.close();
		});
	});
}
