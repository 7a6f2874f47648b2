/*
 * picture.mjs FRAMES - the frames of the README's picture, taken of the running product: two people and psql in one sheet, a
 * rollback, and a gateway that is killed while both go on. scripts/picture joins them.
 *
 * FRAMES is a directory. It gets 000.png, 001.png ..., and `list`: a line "MILLISECONDS FILE" for each.
 */
import fs from 'node:fs';
import path from 'node:path';
import { Person, startBrowser } from '../browser/page.mjs';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { request } from '../lib/client.mjs';
import { mustRunAs } from '../lib/processes.mjs';

const frames = process.argv[2];
const pane = { width: 640, height: 400 };
const shownLines = 11;
const stageHtml = `<!DOCTYPE html><meta charset="utf-8"><style>
body { margin: 0; width: 1300px; background: #26332f; font: 600 15px 'Liberation Sans', sans-serif; color: #fff; }
.panes { display: grid; grid-template-columns: 640px 640px; gap: 0 8px; padding: 6px 6px 0; }
h1 { font-size: 15px; margin: 0; padding: 3px 4px 5px; }
img { display: block; width: 640px; height: 400px; background: #fff; }
pre { margin: 0 6px; padding: 8px 12px; height: 205px; overflow: hidden; background: #10181a; color: #d7e4de; font: 14px/18.6px 'Liberation Mono', monospace; white-space: pre; }
#caption { font-size: 19px; padding: 9px 10px 11px; height: 24px; }
</style><div class="panes"><div><h1>Ann, at gateway 1</h1><img id="ann"></div><div><h1>Bob, at gateway 2</h1><img id="bob"></div></div>
<h1 style="padding-left: 12px; padding-top: 6px">A terminal</h1><pre id="terminal"></pre><div id="caption"></div>`;

const cluster = await Cluster.start({ gateways: 2, coordinator: 'zookeeper' });
const browser = await startBrowser();
try {
	const people = await Promise.all(['ann', 'bob'].map((name, i) => Person.arrive(browser, cluster.gateways[i], name, { viewport: pane })));
	const [ann, bob] = people;
	const stage = await browser.newPage({ viewport: { width: 1300, height: 720 } });
	await stage.setContent(stageHtml);
	await Promise.all(people.map((person) => person.register()));
	const id = Number(await cluster.psql(`SELECT sheet.create('Trip', 84, 26, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
	await cluster.psql(`SELECT sheet.share(${id}, 'bob', 'editor')`);
	await Promise.all(people.map((person) => person.open(id)));
	await ann.paste('A1', 'Item\tCost\tWho\nHotel\t420\tAnn\nTrain\t180\tBob\n\nSum\t=SUM(B2:B4)');
	await bob.untilShows('B5', '600');
	await cluster.psql(`SELECT sheet.commit(${id}, 'plan')`);
	const version = Number(await cluster.psql(`SELECT max(version_id) FROM sheet.versions(${id})`));
	await ann.goTo('D1');
	await bob.goTo('D3');
	await ann.untilSaved();

	let caption = '';
	let terminal = [];
	let count = 0;
	const list = [];
	/** Takes a frame of what everybody sees now, which is shown so long. */
	const shoot = async (ms) => {
		const images = await Promise.all(people.map(({ page }) => page.screenshot()));
		const [left, right] = images.map((png) => `data:image/png;base64,${png.toString('base64')}`);
		await stage.evaluate(async ([ann, bob, text, title]) => {
			for (const [name, source] of [['ann', ann], ['bob', bob]]) {
				const image = document.getElementById(name);
				image.src = source;
				await image.decode();
			}
			document.getElementById('terminal').textContent = text;
			document.getElementById('caption').textContent = title;
		}, [left, right, terminal.slice(-shownLines).join('\n'), caption]);
		const file = `${String(count++).padStart(3, '0')}.png`;
		await stage.screenshot({ path: path.join(frames, file) });
		list.push(`${ms} ${file}`);
	};
	const say = (text) => (caption = text);
	const type = async (person, text, key = 'Enter') => {
		for (const part of text.match(/.{1,2}/g)) {
			await person.page.keyboard.type(part);
			await person.frames();
			await shoot(180);
		}
		if (key) await person.page.keyboard.press(key);
	};
	const all = (name, shown) => Promise.all(people.map((person) => person.untilShows(name, shown, 60000)));
	const print = (text) => terminal.push(...text.trimEnd().split('\n'));
	/** Runs a statement with psql, and shows what it prints. */
	const psql = async (statement, until = async () => {}) => {
		const prompt = `sheets=# ${statement}`;
		terminal.push(prompt);
		await shoot(900);
		const output = await mustRunAs(path.join(cluster.bin, 'psql'), ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-c', statement, cluster.conninfo()], { timeoutMs: 60000 });
		print(output.replace(/\n\n$/, '\n'));
		await until();
		await Promise.all(people.map((person) => person.frames()));
		await shoot(1700);
	};

	say('Two people and a psql session in one sheet');
	print('$ psql sheets');
	await shoot(1800);
	say('Ann types. Bob sees which cell she has locked, then her number');
	await ann.goTo('B2');
	await ann.page.keyboard.type('3');
	await waitUntil(async () => (await bob.locks()).B2 === 'ann', 'bob to see what ann locks');
	await shoot(500);
	await type(ann, '80');
	await all('B5', '560');
	await shoot(900);
	say('Bob fills a row, and the sum is computed again for everybody');
	await bob.goTo('A4');
	await type(bob, 'Food', 'Tab');
	await type(bob, '95');
	await all('B5', '655');
	await shoot(1200);
	say('SQL reads and writes the same cells');
	await psql(`SELECT * FROM sheet.as_table(${id}) AS t(item text, cost text, who text) WHERE who > '';`);
	await psql(`SELECT sheet.set(${id}, 'B3', '210');`, () => all('B5', '685'));
	say('A mistake …');
	await ann.goTo('B5');
	await type(ann, 'gone');
	await all('B5', 'gone');
	await shoot(900);
	say(`… and a rollback to version ${version}, seen by everybody; the log keeps all of it`);
	await psql(`SELECT sheet.rollback(${id}, ${version});`, () => all('B5', '600'));
	await psql(`SELECT seq, username, a1, old, new FROM sheet.log WHERE sheet_id = ${id} AND a1 = 'B5' ORDER BY seq DESC LIMIT 3;`);

	const token = await ann.page.evaluate(() => JSON.parse(sessionStorage.getItem('pg_sheet.session')).token);
	const { json } = await request(cluster.gateways[0], 'GET', `/v2/sheets/${id}/route`, { headers: { authorization: `Bearer ${token}` } });
	const owner = cluster.gateways.find(({ url }) => url === json.http);
	const number = cluster.gateways.indexOf(owner) + 1;
	say(`Gateway ${number}, which serves this sheet, is killed. Both go on typing`);
	terminal.push('sheets=# \\q', `$ kill -9 ${owner.service.pid}     # gateway ${number}`);
	await shoot(1200);
	await owner.kill();
	await waitUntil(async () => /Reconnecting|does not answer/.test(await ann.status()), 'the page to notice', 30000);
	await ann.goTo('A4');
	await type(ann, 'Food', 'Tab');
	await type(ann, '95');
	await bob.goTo('C5');
	await type(bob, 'both');
	await shoot(900);
	await Promise.all(people.map((person) => person.untilSaved(90000)));
	await all('B5', '695');
	await all('C5', 'both');
	say(`Gateway ${3 - number} has taken the sheet over: every edit is saved, and seen by both`);
	await shoot(2200);
	terminal.push('$ psql sheets');
	await psql(`SELECT a1, content FROM sheet.range(${id}, 'A4:C5');`);
	await shoot(2500);
	const problems = people.flatMap((person) => person.problems);
	if (problems.length > 0) throw new Error(problems.join('\n'));
	fs.writeFileSync(path.join(frames, 'list'), `${list.join('\n')}\n`);
} finally {
	await browser.close();
	await cluster.stop();
}
