// conversion.test.ts - the process that converts a workbook ends with its job, and this one goes on (calc/books/conversion.ts).
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChildFailed, Conversion, Ended } from '../../../../calc/books/conversion';
import { Flow } from '../../../../calc/books/flow';
import { Refused } from '../../../../calc/books/read/refused';

let directory: string;
beforeAll(() => (directory = fs.mkdtempSync(path.join(os.tmpdir(), 'conversion-'))));
afterAll(() => fs.rmSync(directory, { recursive: true }));

/** A conversion by this program. */
function begin(program: string, memory = 64, handle = async () => {}): Conversion {
	const file = path.join(directory, `${Math.random()}.mjs`);
	fs.writeFileSync(file, program);
	return new Conversion(pathToFileURL(file), memory, handle);
}

const failure = (conversion: Conversion): Promise<unknown> =>
	conversion.done.then(
		() => 'no failure',
		(error: unknown) => error,
	);

describe('what ends the process', () => {
	test.each([
		['a heap that grows', 'const all = []; for (;;) all.push({ text: String(all.length) });'],
		['one large allocation in the heap', 'new Array(30e6).fill(0.5).map(String); setInterval(() => {}, 1000);'],
		['buffers', 'const all = []; setInterval(() => all.push(Buffer.alloc(20e6, 1)), 1);'],
		['one large buffer', 'new Uint8Array(1e9).fill(1); setInterval(() => {}, 1000);'],
		['the kernel, which has no memory left', 'process.kill(process.pid, "SIGKILL")'],
	])('%s', async (_, program) => {
		const error = await failure(begin(program));
		expect(error).toBeInstanceOf(Refused);
		expect((error as Refused).message).toBe('the workbook takes more than 64 MB of memory');
	});

	test('a fault of the program', async () => {
		for (const program of ['throw new Error("broken")', 'process.exit(3)', 'nothing is here'])
			expect(await failure(begin(program))).toBeInstanceOf(ChildFailed);
		expect(String(await failure(begin('throw new Error("broken")')))).toContain('broken');
	});

	test('a system that has no more files, and the other jobs go on', () => {
		const entry = fileURLToPath(new URL('../../../../calc/books/conversion.ts', import.meta.url));
		buildSync({ entryPoints: [entry], bundle: true, platform: 'node', format: 'esm', outfile: path.join(directory, 'conversion.mjs') });
		const program = path.join(directory, 'full.mjs');
		fs.writeFileSync(
			program,
			`import fs from 'node:fs';
			import { Conversion } from './conversion.mjs';
			const files = [];
			try { for (;;) files.push(fs.openSync('/dev/null')); } catch {}
			const conversion = new Conversion(new URL('file:///none.mjs'), 64, async () => {});
			conversion.post({ t: 'end' }).catch(() => {});
			const error = await conversion.done.catch((failed) => failed);
			files.forEach(fs.closeSync);
			console.log(error.code);`,
		);
		expect(execFileSync('/bin/sh', ['-c', 'ulimit -n 64; exec "$0" "$1"', process.execPath, program], { encoding: 'utf8' })).toBe('EMFILE\n');
	});

	test('its job, also in the midst of a computation', async () => {
		const conversion = begin('process.send({ t: "file", bytes: new Uint8Array([process.pid & 255]) }); for (;;);');
		const { pid } = (conversion as unknown as { child: { pid: number } }).child;
		conversion.end();
		expect(await failure(conversion)).toBeInstanceOf(Ended);
		await expect.poll(() => fs.existsSync(`/proc/${pid}`), { timeout: 10_000 }).toBe(false);
		await expect(conversion.post({ t: 'end' })).rejects.toBeInstanceOf(Ended);
	});
});

test('the process has nothing of the environment', async () => {
	process.env['PGPASSWORD'] = 'secret';
	const told: unknown[] = [];
	const conversion = begin(
		'process.send({ t: "tab", name: JSON.stringify(process.env) }); setInterval(() => {}, 1000);',
		64,
		async (...message: unknown[]) => void told.push(...message),
	);
	await expect.poll(() => told).toEqual([{ t: 'tab', name: '{}' }]);
	conversion.end();
	delete process.env['PGPASSWORD'];
});

test('few messages wait at the other end', async () => {
	const written: number[] = [];
	const flow = new Flow<number>((message) => void written.push(message));
	let sent = 0;
	const sending = (async () => {
		for (let i = 0; i < 10; i++) {
			await flow.send(i);
			sent = i + 1;
		}
	})();
	const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
	await turn();
	expect([written.length, sent]).toEqual([3, 2]);
	flow.took();
	await turn();
	expect([written.length, sent]).toEqual([4, 3]);
	flow.close(new Ended());
	await expect(sending).rejects.toBeInstanceOf(Ended);
});
