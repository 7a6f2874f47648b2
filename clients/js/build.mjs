/**
 * Builds the package from the page's client (gateway/web/src/v2) with the page's tools: a module without imports, and its
 * types.
 *
 *     node build.mjs [DIRECTORY]
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const web = path.join(here, '..', '..', 'gateway', 'web');
const to = path.resolve(process.argv[2] ?? path.join(here, 'dist'));
const run = (tool, ...args) => execFileSync(path.join(web, 'node_modules', '.bin', tool), args, { stdio: 'inherit' });

fs.rmSync(to, { recursive: true, force: true });
run('esbuild', path.join(web, 'src', 'v2', 'index.ts'), '--bundle', '--format=esm', '--target=es2022', `--outfile=${path.join(to, 'index.js')}`, '--log-level=warning');
run('tsc', '--project', path.join(here, 'tsconfig.json'), '--outDir', to);
// Node's rules for modules want the extensions, which bundlers add.
for (const folder of [to, path.join(to, 'v2')]) {
	for (const name of fs.readdirSync(folder)) {
		if (!name.endsWith('.d.ts')) continue;
		const file = path.join(folder, name);
		fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(/(from |import\()(['"])(\.[^'"]+)\2/g, '$1$2$3.js$2'));
	}
}
