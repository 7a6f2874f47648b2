/* table.mjs - the peers' figures as a table of Markdown, and its place in a document. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { repository } from '../../../lib/cluster.mjs';

const [begin, end] = ['<!-- peers: begin -->', '<!-- peers: end -->'];
const noisy = 0.2; /* share of the machine from which on others' work spoils rates */
const here = path.dirname(fileURLToPath(import.meta.url));

const whole = (value) => Math.round(value).toLocaleString('en-US');
const spread = ({ median, low, high }) => `${whole(median)} (${whole(low)} to ${whole(high)})`;

const losses = ({ high }) => (high > 0 ? `; up to ${(high * 100).toPrecision(2)} % of the deliveries never came` : '');

/** Of the peers' packages, or the tests'. */
function versionOf(name) {
	const places = [here, path.join(repository, 'tests')].map((place) => path.join(place, 'node_modules', name, 'package.json'));
	return `${name} ${JSON.parse(fs.readFileSync(places.find((place) => fs.existsSync(place)))).version}`;
}

/** What apt would install, or has: the packages that are used. */
function debianVersionOf(name) {
	const text = execFileSync('apt-cache', ['policy', name]).toString();
	const [, installed] = /Installed: (\S+)/.exec(text);
	return `${name} ${installed === '(none)' ? /Candidate: (\S+)/.exec(text)[1] : installed}`;
}

export function versionsOf(measured) {
	const unique = (key) => [...new Set(measured.flatMap((peer) => peer[key] ?? []))];
	return [`Node ${process.version}`, ...unique('packages').map(versionOf), ...unique('debian').map(debianVersionOf)];
}

/** rows: {name, recv, ns, stored, lost}; facts: {rounds, seconds, others (share of the machine, or null), versions, leftOut}. */
export function markdown(rows, { rounds, seconds, others, versions, leftOut }) {
	const hint = others > noisy ? ', so CPU tells more than rates' : '';
	const noise = others === null ? '' : `; other processes took ${Math.round(others * 100)} % of the machine meanwhile${hint}`;
	const date = new Date().toISOString().slice(0, 10);
	return [
		'| 10 users of one sheet write as fast as they can; each gets every edit | edits a second that each user receives | CPU of the servers, ns a delivery | is an edit on the disk when its sender sees it? |',
		'|---|---|---|---|',
		...rows.map(({ name, recv, ns, stored, lost }) => `| ${name} | ${spread(recv)}${losses(lost)} | ${spread(ns)} | ${stored} |`),
		'',
		`${date}, ${os.cpus().length} cores (${os.cpus()[0].model.trim()}), Linux ${os.release()}; load and servers share them. ` +
			`Medians, lowest and highest of ${rounds} rounds of ${seconds} s, in turns${noise}.`,
		`Versions: ${versions.join(', ')}.`,
		...leftOut.map(({ name, reason }) => `Left out: ${name}: ${reason}`),
	].join('\n');
}

/** Puts the table between its marks in the document. */
export function writeInto(document, table) {
	const text = fs.readFileSync(document, 'utf8');
	const [from, to] = [text.indexOf(begin), text.indexOf(end)];
	if (from < 0 || to < from) throw new Error(`${document} has no lines "${begin}" and "${end}"`);
	fs.writeFileSync(document, `${text.slice(0, from + begin.length)}\n${table}\n${text.slice(to)}`);
}
