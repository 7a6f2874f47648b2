/* engine.mjs - what the tests with a Docker engine have in common: its commands, and copies of the clone to build from. */
import { execFile, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const run = promisify(execFile);
export const buildMs = 25 * 60 * 1000;
const repository = fileURLToPath(new URL('../..', import.meta.url));

export const works = (command, ...args) => spawnSync(command, args, { stdio: 'ignore', timeout: 20000 }).status === 0;

/** Why tests that build `file` cannot run here; false: they can. */
export const engineObstacle = (file) =>
	!works('docker', 'info') ? 'no Docker engine answers' : !fs.existsSync(path.join(repository, file)) && `${file} is not here`;

export async function docker(...args) {
	try {
		return (await run('docker', args, { timeout: buildMs, maxBuffer: 64 << 20 })).stdout.trim();
	} catch (error) {
		throw new Error(`docker ${args.join(' ')}: ${`${error.stdout}${error.stderr}`.slice(-6000)}`);
	}
}

/** Copies what a clone has: neither what was built nor the secrets and data of an installation. Returns the new directory. */
export function copyClone() {
	const directory = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'docker-'));
	const left = /^(\.git|\.run|build|docker\/(\.env|tls)|gateway\/web\/dist|(.*\/)?node_modules)$/;
	for (const name of fs.readdirSync(repository)) {
		fs.cpSync(path.join(repository, name), path.join(directory, name), {
			recursive: true,
			filter: (source) => !left.test(path.relative(repository, source)),
		});
	}
	const certificates = process.env.PG_SHEET_DOCKER_CA;
	if (certificates) fs.copyFileSync(certificates, path.join(directory, 'docker/ca/test.crt'));
	return directory;
}
