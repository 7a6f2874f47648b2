/*
 * sessions.mjs - people at the page without a browser: its session, mirror and undo on a plain grid (gateway/web/test/person.ts),
 * built for Node.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { repository } from './cluster.mjs';

const web = path.join(repository, 'gateway', 'web');
const built = fs.mkdtempSync(path.join(os.tmpdir(), 'sessions-'));
process.on('exit', () => fs.rmSync(built, { recursive: true, force: true }));
const output = path.join(built, 'person.mjs');
execFileSync(path.join(web, 'node_modules', '.bin', 'esbuild'), [path.join(web, 'test', 'person.ts'), '--bundle', '--format=esm', `--outfile=${output}`, '--log-level=error']);

export const { Person, randomOf } = await import(output);
