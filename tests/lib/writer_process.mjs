/*
 * writer_process.mjs - a writer (writer.mjs) in a process of its own, so that a test can stop it as a whole. It is forked
 * with what to do in its first message, and answers the next one by stopping and telling what it has seen.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Writer } from './writer.mjs';

const self = fileURLToPath(import.meta.url);

/** Starts one. report(): resolves to what checkNothingLost() wants of a writer. */
export function startWriterProcess(name, row, user, fid, gateway) {
	const child = fork(self, { stdio: 'inherit' });
	const messages = [];
	let wake = () => {};
	child.on('message', (message) => {
		messages.push(message);
		wake();
	});
	child.on('exit', () => wake());
	const next = async () => {
		while (messages.length === 0) {
			if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the process of ${name} has ended`);
			await new Promise((resolve) => (wake = resolve));
		}
		return messages.shift();
	};
	process.once('exit', () => child.kill('SIGKILL'));
	child.send({ name, row, user, fid, gateway: { port: gateway.port, host: gateway.host } });
	return {
		signal: (signal) => child.kill(signal),
		ready: next,
		report: async () => {
			child.send('report');
			const report = await next();
			child.disconnect();
			return report;
		},
	};
}

if (process.argv[1] === self && process.send) {
	let writer;
	process.on('message', async (message) => {
		if (writer === undefined) {
			writer = new Writer(message.name, message.row, message.user, message.fid, () => message.gateway);
			await writer.progress(50, 30000);
			process.send('ready');
			return;
		}
		await writer.stop();
		const streams = writer.streams.map(({ onConn, messages }) => ({ onConn, messages }));
		process.send({ name: writer.name, order: writer.order, streams, connections: writer.connections });
	});
	process.on('disconnect', () => process.exit(0));
}
