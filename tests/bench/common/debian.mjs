/*
 * debian.mjs - programs of Debian packages for a comparison: the installed ones, or else the packages unpacked below the
 * build directory. So nothing is installed, and no service starts that nobody asked for.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { repository } from '../../lib/cluster.mjs';

function run(words, options) {
	const { status, stderr, error } = spawnSync(words[0], words.slice(1), {
		stdio: ['ignore', 'ignore', 'pipe'],
		...options,
	});
	if (status === 0) return;
	throw new Error(`${words.join(' ')}: ${error?.message ?? stderr.toString().trim().split('\n').at(-1)}`);
}

/** apt may never have been asked on this machine: then it has to update first, as root. */
function download(packages, place) {
	const fetch = () => run(['apt-get', 'download', ...packages], { cwd: place });
	try {
		fetch();
	} catch {
		run([...(process.getuid() === 0 ? [] : ['sudo', '-n']), 'apt-get', '-o', 'DPkg::Lock::Timeout=300', 'update']);
		fetch();
	}
}

/** The files (named as they would be installed) of these packages, as they can be used; an error says why there are none. */
export function debianFiles(packages, files) {
	const place = path.join(repository, 'build', 'debian', packages.join('+'));
	const below = (root) => files.map((file) => path.join(root, file));
	const complete = (root) => below(root).every((file) => fs.existsSync(file));
	if (complete('/')) return below('/');
	if (complete(place)) return below(place);
	try {
		fs.rmSync(place, { recursive: true, force: true });
		fs.mkdirSync(place, { recursive: true });
		download(packages, place);
		for (const name of fs.readdirSync(place).filter((file) => file.endsWith('.deb')))
			run(['dpkg-deb', '-x', path.join(place, name), place]);
	} catch (error) {
		throw new Error(`the Debian packages ${packages.join(', ')} are not installed and cannot be had: ${error.message}`);
	}
	if (complete(place)) return below(place);
	throw new Error(`the Debian packages ${packages.join(', ')} do not hold ${files.join(', ')}`);
}
