/*
 * redraw.test.mjs - when somebody else has changed a few rows, only these are drawn again: the grid looks as if all of it had been.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { register } from '../lib/client.mjs';
import { Cluster } from '../lib/cluster.mjs';
import { roundsToRun, waitUntil } from '../lib/processes.mjs';
import { sheetClient } from '../lib/v2.mjs';
import { Person, startBrowser } from './page.mjs';

const rounds = roundsToRun(4, 12);
const [rows, columns] = [30, 14]; // more than is visible

/** The same numbers in each run. */
let state = 12345;
const random = (n) => (state = (state * 48271) % 0x7fffffff) % n;
const pick = (values) => values[random(values.length)];

const line = (width, colour) => ({ s: width, cl: { rgb: colour } });
const styles = [
	...[null, { bl: 1 }, { bg: { rgb: '#ffcc00' } }, { cl: { rgb: '#cc0000' }, it: 1 }, { fs: 18 }, { ht: 3 }, { ht: 2, vt: 3 }, { st: { s: 1 } }],
	...[{ bd: { t: line(13, '#0000ff'), b: line(8, '#ff0000') } }, { bd: { l: line(1, '#00aa00'), r: line(7, '#00aa00') } }, { tr: { a: 45 } }, { tr: { v: 1, a: 0 } }],
];
const texts = ['', '7', '-1234.5', 'text', 'a text that is longer than its cell and goes on in the next ones', 'two\nlines', '漢字', "'007"];

test('the rows that others change', { timeout: 240000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const ann = await Person.arrive(browser, gateway, 'ann');
	await ann.register();
	const account = await register(gateway);

	const meet = async () => {
		const id = Number(await cluster.psql(`SELECT sheet.create('Rows', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
		await cluster.psql(`SELECT sheet.share(${id}, '${account.username}', 'editor')`);
		const ben = sheetClient(gateway, account, id, { load: null });
		t.after(() => ben.close());
		await waitUntil(() => ben.hello, 'Ben to join');
		await ann.turnTo(id);
		return { id, ben };
	};
	let sequence = 0;
	/** Ben writes, and Ann's page knows it. */
	const send = async (ben, edits) => {
		const last = `last ${++sequence}`;
		await ben.operate([...edits, { row: 27, col: 20, content: last }]);
		await waitUntil(() => ann.page.evaluate((text) => window.pgSheet.contentOf(27, 20)?.content === text, last), last);
	};
	const isDrawn = () => ann.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
	const write = async (ben, edits) => {
		await send(ben, edits);
		await isDrawn();
	};
	/** What `action` causes is drawn in one frame. */
	const inOneFrame = async (action) => {
		await ann.page.evaluate(() => {
			const next = window.requestAnimationFrame;
			const held = [];
			window.requestAnimationFrame = (run) => held.push(run);
			window.releaseFrames = () => {
				window.requestAnimationFrame = next;
				for (const run of held) next.call(window, run);
			};
		});
		const done = action();
		// The page shows an edit that follows another within 16 ms in the next frame, which is held here.
		await Promise.race([done, sleep(3000, undefined, { ref: false })]);
		await ann.page.evaluate(() => window.releaseFrames());
		await done;
		await isDrawn();
	};
	/** While `action` runs, Univer's layers do not become dirty by themselves: a busy browser does this later than its next frame. */
	const withLateLayers = async (action) => {
		await ann.page.evaluate(() => {
			const Channel = window.MessageChannel;
			const held = [];
			window.MessageChannel = function () {
				const channel = new Channel();
				const { port2 } = channel;
				port2.postMessage = (message) => held.push(() => MessagePort.prototype.postMessage.call(port2, message));
				return channel;
			};
			window.releaseLayers = () => {
				window.MessageChannel = Channel;
				for (const send of held) send();
			};
		});
		await action();
		await ann.page.evaluate(() => window.releaseLayers());
		await isDrawn();
	};
	const picture = () => ann.grid.screenshot();
	/** A picture after everything has been drawn again. */
	const wholePicture = async () => {
		await ann.page.setViewportSize({ width: 1280, height: 700 });
		await ann.page.waitForTimeout(300);
		await ann.page.setViewportSize({ width: 1280, height: 760 });
		await ann.page.waitForTimeout(300);
		return picture();
	};
	/** The largest difference of a colour, 0 to 255. Where scrolling joins two parts, lines of the grid may differ by a few. */
	const difference = (a, b) =>
		ann.page.evaluate(
			async (pictures) => {
				const pixels = [];
				for (const bytes of pictures) {
					const image = await createImageBitmap(new Blob([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))]));
					const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
					context.drawImage(image, 0, 0);
					pixels.push(context.getImageData(0, 0, image.width, image.height).data);
				}
				return pixels[0].reduce((most, value, i) => Math.max(most, Math.abs(value - pixels[1][i])), 0);
			},
			[a, b].map((bytes) => bytes.toString('base64')),
		);
	const looksRight = async (what) => {
		const before = await picture();
		let after = await wholePicture();
		// A busy machine draws later.
		for (let n = 0; n < 10 && !((await difference(before, after)) <= 8); n++) {
			await ann.page.waitForTimeout(300);
			after = await picture();
		}
		if ((await difference(before, after)) <= 8) return;
		for (const [name, bytes] of Object.entries({ before, after })) fs.writeFileSync(path.join(process.env.SCREENSHOTS || cluster.directory, `redraw-${name}.png`), bytes);
		assert.fail(`${what}: the picture changes when everything is drawn`);
	};
	const cells = (n) => Array.from({ length: n }, () => ({ row: random(rows), col: random(columns), content: pick(texts), style: pick(styles) }));

	await t.test('contents and styles of any kind, in a few rows at a time', async () => {
		const { ben } = await meet();
		await write(ben, cells(250));
		for (let round = 0; round < rounds; round++) {
			await write(ben, cells(1 + random(4)));
			await looksRight(`round ${round}`);
		}
	});

	await t.test('scrolling after the first click, while all cells are to be drawn again', async () => {
		// The first click in a grid reads texts of functions. When they are there, Univer draws all cells again.
		const { ben: first } = await meet();
		await write(first, cells(1));
		const texts = ann.page.waitForResponse((response) => /\/en-US-/.test(response.url()));
		await ann.goTo('C3');
		await (await texts).finished();
		await ann.frames();
		const { ben } = await meet();
		await write(ben, cells(250));
		await withLateLayers(async () => {
			await ann.goTo('C3');
			await isDrawn();
			await ann.page.keyboard.press('ArrowDown'); // another layer is drawn
			await isDrawn();
			await ann.page.mouse.wheel(60, 0);
			await isDrawn();
		});
		await looksRight('scrolled');
	});

	await t.test('a page at rest draws nothing', async () => {
		const framesOfASecond = () =>
			ann.page.evaluate(async () => {
				const real = window.requestAnimationFrame;
				let count = 0;
				window.requestAnimationFrame = (run) => (count++, real.call(window, run));
				await new Promise((done) => setTimeout(done, 1000));
				window.requestAnimationFrame = real;
				return count;
			});
		// The text cursor of the cell that is not being edited blinks.
		await waitUntil(async () => (await framesOfASecond()) < 30, 'the page to be at rest');
	});

	await t.test('with frozen rows and columns, with merged cells, and after scrolling', async () => {
		const { id, ben } = await meet();
		await write(ben, cells(250));
		await cluster.psql(`SELECT sheet.set_property(${id}, NULL, 'freeze', '{"rows": 2, "cols": 1}')`);
		await write(ben, cells(2));
		await looksRight('frozen');
		// The rows beside hidden and narrow ones have borders and colours.
		const coloured = (row) => ({ row, col: 2, content: `row ${row}`, style: { bg: { rgb: '#ffcc00' }, bd: { t: line(13, '#0000ff'), b: line(13, '#ff0000') } } });
		await cluster.psql(`SELECT sheet.set_property(${id}, '11:14', 'hidden', 'true'), sheet.set_property(${id}, '17:17', 'height', '2')`);
		await write(ben, [9, 14, 15, 17].map(coloured));
		await looksRight('hidden rows');
		for (const row of [9, 11, 14, 15, 16, 17]) {
			await write(ben, [{ row, col: 3, content: `beside ${row}` }]);
			await looksRight(`hidden and narrow rows, row ${row}`);
		}
		await ann.page.mouse.move(600, 500);
		for (let n = 0; n < 3; n++) {
			await ann.page.mouse.wheel(n === 1 ? 130 : 0, 75);
			await write(ben, cells(2));
		}
		await ann.page.waitForTimeout(500);
		await write(ben, cells(2));
		await looksRight('scrolled');
		await inOneFrame(async () => {
			await ann.page.mouse.wheel(0, 100);
			await send(ben, cells(2));
		});
		await looksRight('scrolled and written in one frame');
		await cluster.psql(`SELECT sheet.set_property(${id}, 'C9:D12', 'merge', 'true')`);
		for (const row of [8, 9, 13]) {
			await write(ben, [{ row, col: 2, content: `in row ${row}`, style: { bg: { rgb: '#ccffcc' } } }]);
			await looksRight(`merged, row ${row}`);
		}
		assert.deepEqual(ann.problems, []);
	});
});
