/* common.mjs - what the phases do alike: a run of the generator of `edit`, a run of the crowd, the disk's fsync. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { newSheet, request } from '../../../lib/client.mjs';
import { Service, isAlive, makeDirectory, waitUntil, writePrivateFile } from '../../../lib/processes.mjs';
import { cpuOfAll, startGenerator } from '../../common/site.mjs';
import { compareWithModel } from '../../edit/check.mjs';

export const round = (value, digits = 3) => Number(value.toFixed(digits));

/** Nanoseconds of CPU per edit by who spent them, from two looks at cpuOfAll. */
function cpuPerEdit(before, after, edits) {
	const spent = { gateway: 0, generator: 0, postgres: 0 };
	for (const [name, seconds] of after)
		spent[name.startsWith('postgres') ? 'postgres' : name] += seconds - (before.get(name) ?? 0);
	return Object.fromEntries(Object.entries(spent).map(([name, seconds]) => [name, Math.round((seconds / edits) * 1e9)]));
}

/** Ends the gateway and starts it again at its port: a fresh one. tls: it speaks TLS alone. */
export async function restartGateway({ site, directory }, { tls = false } = {}) {
	const [program, ...former] = fs.readFileSync(`/proc/${site.gatewayPid}/cmdline`, 'utf8').split('\0').slice(0, -1);
	const flags = former.filter((flag) => !flag.startsWith('--tls-'));
	const home = makeDirectory(path.join(path.dirname(directory), 'bench-restarted-'));
	const [certificate, key] = ['tls.crt', 'tls.key'].map((name) => path.join(home, name));
	if (tls) {
		const made = path.join(directory, 'tls.key');
		const words = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=gateway'];
		execFileSync('openssl', [...words, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', made, '-out', certificate], { stdio: 'ignore' });
		writePrivateFile(key, fs.readFileSync(made, 'utf8'));
		flags.push(`--tls-certificate=${certificate}`, `--tls-key=${key}`);
	}
	process.kill(site.gatewayPid, 'SIGTERM');
	await waitUntil(() => !isAlive(site.gatewayPid), 'the gateway to end', 60000);
	const service = Service.spawn('gateway', program, flags, { log: path.join(home, 'log') });
	const { stop } = site;
	site.stop = async () => {
		await service.stop();
		await stop();
	};
	const { port } = site.gateway;
	site.gateway = tls
		? { port, host: `127.0.0.1:${port}`, url: `https://127.0.0.1:${port}`, tls: { ca: fs.readFileSync(certificate, 'utf8') } }
		: { port, host: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` };
	site.gatewayPid = service.pid;
	await service.waitReady(async () => (await request(site.gateway, 'GET', '/readyz')).status === 200);
}

/** Ten users write to one new sheet; rate is edits a second and user, 0 as fast as TCP takes them. program: who they are. */
export async function writeOneSheet(bench, { seconds, rate, program = 'edit_generator' }) {
	const { site, users } = bench;
	const fid = await newSheet(site.gateway, users[0], { name: 'benchmark', rows: 10, columns: 100 });
	const tokens = bench.file(
		'tokens',
		users.map(({ token }) => token),
	);
	const cells = bench.file('cells');
	const generator = startGenerator(program, [site.gateway.port, fid, tokens, seconds, rate, cells], site.gateway.tls && { WS_TLS: '1' });
	if ((await generator.line()) !== 'ready') throw new Error('the load generator is not ready');
	const before = cpuOfAll(site, generator.child.pid);
	generator.go();
	const result = JSON.parse(await generator.line());
	const cpu = cpuPerEdit(before, cpuOfAll(site, generator.child.pid), result.sent);
	generator.end();
	const check = await compareWithModel(site.psql, fid, result, cells);
	expectWhole(bench, result, `${rate || 'unlimited'} edits a second and user`);
	for (const problem of check.problems) bench.expect(false, problem);
	return { ...result, cpu, recv: Math.round(result.received / result.users / result.total_seconds) };
}

export function expectWhole(bench, { lost, reordered, other_messages: others = 0 }, what) {
	bench.lost += lost;
	bench.reordered += reordered;
	bench.expect(lost === 0, `${what}: ${lost} edits were lost`);
	bench.expect(reordered === 0, `${what}: ${reordered} edits or streams are out of order`);
	bench.expect(others === 0, `${what}: ${others} other messages`);
}

/**
 * Many WebSockets: members are [sheet, token], rate is of each sheet. between(): called when all have joined, before the
 * first edit; while the sockets are open. Resolves to the generator's result, and the order of edits.
 */
export async function crowd(bench, members, { rate, seconds, writers }, between = async () => {}) {
	const list = bench.file(
		'members',
		members.map(([sheet, token]) => `${sheet} ${token}`),
	);
	const order = bench.file('order');
	const generator = startGenerator('crowd', [bench.site.gateway.port, list, rate, seconds, writers, order]);
	if ((await generator.line()) !== 'ready') throw new Error('the crowd is not ready');
	await between();
	const before = cpuOfAll(bench.site, generator.child.pid);
	generator.go();
	const result = JSON.parse(await generator.line());
	result.cpu = cpuPerEdit(before, cpuOfAll(bench.site, generator.child.pid), Math.max(result.sent, 1));
	const ended = new Promise((resolve) => generator.child.once('exit', resolve));
	generator.end();
	await ended;
	return { ...result, order };
}

/** Times of this disk: {p50_ms, p99_ms, count}. */
export function measureFsync(bench, seconds) {
	return JSON.parse(execFileSync(bench.program('fsync'), [bench.file('fsync'), seconds]).toString());
}

export async function newSheets(bench, count) {
	const fids = [];
	for (let i = 0; i < count; i++)
		fids.push(await newSheet(bench.site.gateway, bench.users[i % bench.users.length], { name: `sheet ${i}` }));
	return fids;
}
