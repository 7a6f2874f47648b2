// Fails when an installed package has a licence that is not on the list; prints how many have which.
import fs from 'node:fs';
import path from 'node:path';

const root = path.resolve(path.dirname(new URL(import.meta.url).pathname), '..');
const allowed = new Set(['MIT', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', '0BSD']);

/** An SPDX expression of OR and AND; every word of an AND and one of an OR must be allowed. */
function isAllowed(expression) {
	const words = String(expression ?? '')
		.replace(/[()]/g, ' ')
		.trim();
	if (/\bAND\b/.test(words)) return words.split(/\bAND\b/).every(isAllowed);
	return words.split(/\bOR\b/).some((word) => allowed.has(word.trim()));
}

/** Old package files name their licence as an object or a list; some have only the text of it beside them. */
function licenceOf(directory) {
	const manifest = JSON.parse(fs.readFileSync(path.join(directory, 'package.json'), 'utf8'));
	if (typeof manifest.license === 'string') return manifest.license;
	if (manifest.license?.type) return manifest.license.type;
	if (manifest.licenses) return manifest.licenses.map((licence) => licence.type ?? licence).join(' OR ');
	const text = path.join(directory, 'LICENSE');
	return fs.existsSync(text) && /Apache License\s+Version 2\.0,/.test(fs.readFileSync(text, 'utf8')) ? 'Apache-2.0' : '';
}

const lock = JSON.parse(fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8'));
const count = new Map();
const refused = [];
for (const [place, entry] of Object.entries(lock.packages)) {
	if (place === '') continue;
	const directory = path.join(root, place);
	if (!fs.existsSync(path.join(directory, 'package.json'))) {
		// Binaries for another system: not installed here, their licence is in the lock file.
		if (!entry.optional) refused.push(`${place}: not installed (npm ci first)`);
		else if (!isAllowed(entry.license)) refused.push(`${place}: ${entry.license ?? 'no licence'}`);
		continue;
	}
	const licence = licenceOf(directory);
	count.set(licence, (count.get(licence) ?? 0) + 1);
	if (!isAllowed(licence)) refused.push(`${place}: ${licence || 'no licence'}`);
}
for (const [licence, packages] of [...count].sort((a, b) => b[1] - a[1])) console.log(`${String(packages).padStart(4)}  ${licence}`);
if (refused.length) {
	console.error(`not allowed:\n  ${refused.join('\n  ')}`);
	process.exit(1);
}
