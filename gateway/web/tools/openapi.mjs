// Writes docs/openapi.yaml as dist/openapi.json, which the gateway serves as it serves the page.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const web = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const document = parse(fs.readFileSync(path.join(web, '../../docs/openapi.yaml'), 'utf8'), { merge: true, maxAliasCount: -1 });
fs.writeFileSync(path.join(web, 'dist/openapi.json'), JSON.stringify(document));
