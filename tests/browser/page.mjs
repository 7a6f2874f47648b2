/*
 * page.mjs - people at the page, for the tests: Debian's Chromium and Firefox through playwright-core, and what a person
 * does there.
 */
import playwright, { chromium } from 'playwright-core';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';

const flags = [
	'--no-sandbox',
	'--disable-gpu',
	'--disable-quic',
	'--no-first-run',
	'--disable-background-networking',
	'--disable-component-update',
	'--disable-sync',
	'--num-raster-threads=1', // less processor time on small machines
];

const options = { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell', args: flags, headless: true };

export function startBrowser() {
	return chromium.launch(options);
}

/** A browser that keeps its caches in the directory, as people's do. */
export function startBrowserIn(directory, more) {
	return chromium.launchPersistentContext(directory, { ...options, ...more });
}

/** playwright-core drives a Firefox that it has not patched by WebDriver BiDi, under a name that it does not document. */
export function startFirefox() {
	return playwright._bidiFirefox.launch({ executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr', headless: true });
}

/**
 * A cluster, a browser, and people who have an account, until the test ends.
 * people: the options of their windows by their names.
 */
export async function meet(t, people = { ann: {}, bob: {} }, options = {}) {
	const cluster = await Cluster.start(options);
	t.after(() => cluster.stop());
	const browser = await startBrowser();
	t.after(() => browser.close());
	const [gateway] = cluster.gateways;
	const persons = await Promise.all(Object.entries(people).map(([name, window]) => Person.arrive(browser, gateway, name, window)));
	await Promise.all(persons.map((person) => person.register()));
	return { cluster, gateway, browser, persons, sql: (text) => cluster.psql(text) };
}

/** Runs in the page: the number of edits that its IndexedDB has. */
const rowsInIndexedDb = () =>
	new Promise((resolve, reject) => {
		const opening = indexedDB.open('pg_sheet');
		opening.onupgradeneeded = () => opening.transaction.abort(); // the page has not made it yet
		opening.onerror = () => reject(opening.error);
		opening.onsuccess = () => {
			const count = opening.result.transaction('operations').objectStore('operations').count();
			count.onsuccess = () => {
				opening.result.close();
				resolve(count.result);
			};
		};
	});

/** Runs in the page before its scripts, and moves Date forward by `ahead` milliseconds. Playwright's clock would replace timers and performance as well. */
const shiftDate = (ahead) => {
	const now = Date.now.bind(Date);
	globalThis.Date = new Proxy(Date, {
		construct: (target, given, made) => Reflect.construct(target, given.length ? given : [now() + ahead], made),
		get: (target, name) => (name === 'now' ? () => now() + ahead : target[name]),
	});
};

/** One person with a browser window of their own. */
export class Person {
	/** Errors that the page reported: a test ends with none. */
	problems = [];

	static async arrive(browser, gateway, name, options = {}) {
		const person = new Person();
		person.name = name;
		person.password = `password of ${name}`;
		person.gateway = gateway;
		const { now, ...window } = options;
		person.context = await browser.newContext({ viewport: { width: 1280, height: 760 }, locale: 'en-US', ...window });
		if (now) await person.context.addInitScript(shiftDate, now - Date.now());
		if (browser.browserType() === chromium) await person.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: gateway.url });
		await person.anotherPage();
		return person;
	}

	/** Opens a page in the same browser, and goes on there. */
	async anotherPage() {
		this.page = await this.context.newPage();
		this.page.setDefaultTimeout(30000);
		this.page.on('pageerror', (error) => this.problems.push(error.stack || `${error.name}: ${error.message}`));
		this.page.on('console', (message) => {
			// A gateway that is down is what some tests are about.
			const offline = /net::ERR_|Failed to load resource|WebSocket connection to/.test(message.text());
			if (message.type() === 'error' && !offline) this.problems.push(message.text());
		});
	}

	async register() {
		const { page, name, password } = this;
		await page.goto(`${this.gateway.url}/`);
		await page.getByRole('button', { name: 'Register' }).click();
		await page.getByLabel('User name').fill(name);
		await page.getByLabel('E-mail').fill(`${name}@example.org`);
		await page.getByLabel('Password').fill(password);
		await page.locator('form button[type=submit]').click();
		await page.getByRole('heading', { name: 'Sheets' }).waitFor();
	}

	/** Makes a sheet and stays in it; resolves to its id. */
	async newSheet(name) {
		const { page } = this;
		await page.getByRole('button', { name: 'New sheet' }).click();
		await page.getByLabel('Name of the sheet').fill(name);
		await page.getByRole('button', { name: 'Create' }).click();
		await this.untilOpen();
		return Number(new URL(page.url()).searchParams.get('id'));
	}

	async open(id) {
		await this.page.goto(`${this.gateway.url}/?id=${id}`);
		await this.untilOpen();
	}

	/** Opens a sheet without loading the page again, if it shows a sheet already. */
	async turnTo(id) {
		const left = await this.page.evaluate((address) => {
			const host = document.querySelector('.grid-host');
			if (!host) return false;
			history.pushState(null, '', address);
			window.dispatchEvent(new PopStateEvent('popstate'));
			return !host.isConnected;
		}, `/?id=${id}`);
		if (!left) return this.open(id);
		await this.untilOpen();
	}

	async untilOpen() {
		await this.untilSaved();
		await this.grid.waitFor();
		await waitUntil(() => this.cell('A1'), `${this.name}'s grid to be filled`);
		// Without a grid, the page says Saved before it has read the cells.
		await this.untilSaved();
		await this.page.locator('.grid-host[data-ready]').waitFor({ state: 'attached' });
		await this.frames();
	}

	get grid() {
		return this.page.locator('canvas[id^="univer-sheet-main-canvas"]');
	}

	status() {
		return this.page.locator('.status').textContent();
	}

	/** What the page says before its next frame may be from before the last key. */
	untilSaved(timeoutMs = 30000) {
		const saved = async () => {
			await this.frames();
			return (await this.status()) === 'Saved';
		};
		return waitUntil(saved, `${this.name}'s page to say Saved`, timeoutMs);
	}

	/** The number of edits that the page keeps until they are saved. */
	rowsKept() {
		return this.page.evaluate(rowsInIndexedDb);
	}

	/** Waits until an edit is kept. */
	untilKept() {
		return waitUntil(async () => (await this.rowsKept()) > 0, 'an edit to be in IndexedDB');
	}

	/** Waits for two frames, at most for a second. */
	frames() {
		return this.page.evaluate(() => new Promise((done) => {
			requestAnimationFrame(() => requestAnimationFrame(() => done()));
			setTimeout(done, 1000);
		}));
	}

	/** What a cell holds and shows: {content, shown}; null while there is no grid. */
	cell(name) {
		const [row, col] = place(name);
		return this.page.evaluate(([r, c]) => window.pgSheet?.contentOf(r, c) ?? null, [row, col]);
	}

	/** The text in the open editor of a cell; null if none is open. */
	editorText() {
		return this.page.evaluate(() => window.pgSheet?.editorText() ?? null);
	}

	async cells(...names) {
		return Promise.all(names.map(async (name) => (await this.cell(name)).content));
	}

	untilShows(name, shown, timeoutMs = 30000) {
		let last;
		return waitUntil(
			async () => (last = await this.cell(name))?.shown === shown,
			() => `${this.name}'s ${name} to show ${shown}; it shows ${JSON.stringify(last)}`,
			timeoutMs,
		);
	}

	/** What the box of the formula bar names: the selected cell or range. */
	selected() {
		const inputs = this.page.locator('.grid input[type="text"]');
		return inputs.evaluateAll((all) => all.map(({ value }) => value).find((value) => /^([A-Z]+[0-9]+(:[A-Z]+[0-9]+)?|[0-9]+:[0-9]+|[A-Z]+:[A-Z]+)$/.test(value)));
	}

	/**
	 * Selects a cell of the visible part. Univer takes two clicks on one point within 500 ms as a double click, whatever was typed
	 * between them; no two clicks after each other are on one point here.
	 */
	async goTo(name) {
		const [row, col] = place(name);
		this.clicks = (this.clicks ?? 0) + 1;
		// Columns are 96 wide and rows 24 high, behind headers of 46 and 20.
		await this.grid.click({ position: { x: 46 + col * 96 + 36 + (this.clicks % 2) * 8, y: 20 + row * 24 + 12 } });
	}

	async type(name, ...texts) {
		await this.goTo(name);
		for (const text of texts) {
			await this.page.keyboard.type(text);
			await this.page.keyboard.press('Enter');
		}
	}

	async paste(name, text) {
		await this.page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
		await this.goTo(name);
		await this.page.keyboard.press('Control+v');
	}

	/** Chooses an item of the menu of a row's header. */
	async rows(name, item) {
		await this.grid.click({ position: { x: 20, y: 20 + (Number(name) - 1) * 24 + 12 }, button: 'right' });
		await this.chooseItem(item);
	}

	/** Chooses an item of the menu of a column's header. */
	async columns(name, item) {
		await this.grid.click({ position: { x: 46 + (name.charCodeAt(0) - 65) * 96 + 40, y: 10 }, button: 'right' });
		await this.chooseItem(item);
	}

	/** The middle of a row's header on the screen. */
	async rowHeader(name) {
		const box = await this.grid.boundingBox();
		return [box.x + 20, box.y + 20 + (Number(name) - 1) * 24 + 12];
	}

	/** Selects whole rows. */
	async selectRows(first, last = first) {
		await this.page.mouse.click(...(await this.rowHeader(first)));
		if (last === first) return;
		await this.page.keyboard.down('Shift');
		await this.page.mouse.click(...(await this.rowHeader(last)));
		await this.page.keyboard.up('Shift');
	}

	/** Drags the headers of the selected rows, of which this is one, down onto another row: they come behind it. */
	async dragRow(name, onto) {
		await this.page.mouse.move(...(await this.rowHeader(name)));
		await this.page.mouse.down();
		await this.page.mouse.move(...(await this.rowHeader(onto)), { steps: 8 });
		await this.page.mouse.up();
	}

	async chooseItem(item) {
		// Its middle may be an input.
		await this.page.getByText(item).first().click({ position: { x: 4, y: 4 } });
	}

	async share(name, role) {
		const { page } = this;
		await page.getByRole('button', { name: 'Share', exact: true }).click();
		await page.getByLabel('User name').fill(name);
		await page.getByLabel('Role', { exact: true }).selectOption(role);
		await page.locator('dialog button[type=submit]').first().click();
		await page.getByText(`${name} is now ${role} of this sheet.`).waitFor();
		await page.getByRole('button', { name: 'Close', exact: true }).click();
	}

	/** Makes a new link for accounts with the role; resolves to its address. */
	async shareByLink(role) {
		const { page } = this;
		await page.getByRole('button', { name: 'Share', exact: true }).click();
		// It is open if there is a link.
		await page.locator('.link-state:not(:empty)').waitFor();
		if (!(await page.getByLabel('Whoever opens the link is').isVisible())) await page.getByText('Link for people who have an account').click();
		await page.getByLabel('Whoever opens the link is').selectOption(role);
		await page.getByRole('button', { name: 'Set', exact: true }).click();
		await page.getByText('Here is the new link.').waitFor();
		const address = await page.getByLabel('Link', { exact: true }).inputValue();
		await page.getByRole('button', { name: 'Close', exact: true }).click();
		return address;
	}

	/** The cells that are shown as being edited by others: {A1: name}. */
	locks() {
		return this.page
			.locator('.cell-lock')
			.evaluateAll((frames) => Object.fromEntries(frames.filter((frame) => !frame.hidden).map((frame) => [frame.dataset.cell, frame.dataset.user])));
	}
}

/** "B3" as [2, 1]. */
export function place(name) {
	const [, letter, number] = /^([A-Z])([0-9]+)$/.exec(name);
	return [Number(number) - 1, letter.charCodeAt(0) - 65];
}
