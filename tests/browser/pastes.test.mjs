/*
 * pastes.test.mjs - the page of pastes: each kind as it is shown, nothing of a paste that runs, what is loaded for it, preview,
 * publishing, a sheet of a paste, and a paste of cells.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { post } from '../lib/client.mjs';
import { Person, startBrowser } from './page.mjs';

const libraries = ['papaparse', 'marked', 'common', 'katex', 'purify', 'qrcode'];

test('pastes in the browser', { timeout: 180000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const browser = await startBrowser();
	t.after(() => browser.close());
	const [gateway] = cluster.gateways;
	const ann = await Person.arrive(browser, gateway, 'ann');
	await ann.register();
	const { page } = ann;
	let loaded = new Set();
	let beyond = [];
	let assets = [];
	page.on('request', (request) => {
		const { pathname, origin, protocol } = new URL(request.url());
		if (pathname.startsWith('/assets/')) assets.push(pathname);
		const library = libraries.find((name) => pathname.startsWith(`/assets/${name}`));
		if (library) loaded.add(library);
		if (protocol !== 'data:' && origin !== gateway.url) beyond.push(request.url());
	});

	const publish = async (fields) => {
		const answer = await post(gateway, '/record', fields);
		assert.equal(answer.status, 200, answer.text);
		return answer.json.key;
	};
	/** Opens a paste, waits for this selector, and tells which libraries were loaded. */
	const open = async (fields, selector) => {
		const id = await publish(fields);
		loaded = new Set();
		await page.goto(`${gateway.url}/p/${id}.html`);
		await page.locator(`main.paste .shown ${selector}`).first().waitFor();
		return { id, loaded: [...loaded].sort() };
	};

	await t.test('text has numbers of lines, and loads nothing', async () => {
		const { id, loaded: names } = await open({ content: '<b>first</b> line\nsecond line\n', title: 'Some <i>text</i>' }, '.lines');
		assert.deepEqual(names, []);
		assert.equal(await page.locator('.lines pre.numbers').innerText(), '1\n2');
		assert.match(await page.locator('.lines pre').last().innerText(), /^<b>first<\/b> line\nsecond line/);
		assert.equal(await page.locator('h1').innerText(), 'Some <i>text</i>');
		await page.getByRole('button', { name: 'QR code' }).click();
		assert.equal(await page.locator('dialog .qr img').getAttribute('alt'), `${gateway.url}/p/${id}.html`);
		assert.ok((await page.locator('dialog .qr img').evaluate((image) => image.decode().then(() => image.naturalWidth))) > 100);
		assert.deepEqual([...loaded], ['qrcode']);
		await page.keyboard.press('Escape');
		assert.equal(await (await fetch(`${gateway.url}/p/${id}`)).text(), '<b>first</b> line\nsecond line\n');
	});

	await t.test('CSV is a table, and becomes a sheet', async () => {
		const { loaded: names } = await open({ content: 'name,"a ""quoted"" text"\r\n"two\nlines",<script>1</script>\r\n', title: 'Numbers', lang: 'csv' }, 'table');
		assert.deepEqual(names, ['papaparse']);
		const cells = await page.locator('.table tr').evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
		assert.deepEqual(cells, [
			['1', 'name', 'a "quoted" text'],
			['2', 'two\nlines', '<script>1</script>'],
		]);
		await page.getByRole('button', { name: 'Make a sheet' }).click();
		await page.waitForURL(/\?id=\d+$/);
		const fid = new URL(page.url()).searchParams.get('id');
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1') || sheet.get(${fid}, 'B1')`), 'namea "quoted" text');
		assert.equal(await cluster.psql(`SELECT name FROM sheet.sheet WHERE sheet_id = ${fid}`), 'Numbers');
	});

	await t.test('selected cells become a paste as they are shown, and that a sheet again', async () => {
		const fid = Number(new URL(page.url()).searchParams.get('id'));
		await ann.untilOpen();
		await cluster.psql(`SELECT sheet.set(${fid}, 'A3', '=1+1'), sheet.set(${fid}, 'B3', $$'=1+1$$), sheet.set(${fid}, 'A4', 'a hidden row'), sheet.set(${fid}, 'A5', 'tab' || chr(9) || 'here'), sheet.set(${fid}, 'C2', 'beside'), sheet.set_property(${fid}, '4:4', 'hidden', 'true')`);
		await ann.untilShows('A3', '2');
		await ann.untilShows('C2', 'beside');
		await waitUntil(async () => (await page.evaluate(() => window.pgSheet.layoutOf(3, 0))).height === 0, 'the row to be hidden');
		const publishSelection = async () => {
			await page.locator('.editor-bar .fold.more').click();
			await page.getByRole('button', { name: 'Publish selection as paste' }).click();
		};
		await ann.goTo('A1');
		await publishSelection();
		await page.getByText('this one has 4 bytes').waitFor();
		assert.ok(await page.getByRole('button', { name: 'Publish', exact: true }).isDisabled());
		await page.keyboard.press('Escape');
		await ann.goTo('D9');
		await publishSelection();
		await page.getByText('Select cells with content first.').waitFor();
		// Two whole columns, by the keyboard.
		await ann.goTo('A1');
		await page.keyboard.press('Shift+ArrowRight');
		await page.keyboard.press('Control+Space');
		await publishSelection();
		const dialog = page.getByRole('dialog');
		assert.equal(await dialog.getByLabel('Ends in').inputValue(), '86400');
		assert.match(await dialog.getByLabel('Title').inputValue(), /^Numbers A1:B\d+$/);
		await dialog.getByLabel('Ends in').selectOption({ label: '7 days' });
		await dialog.getByLabel('Format').selectOption('tsv');
		await page.getByRole('button', { name: 'Publish', exact: true }).click();
		const address = dialog.getByLabel('Address');
		await address.waitFor();
		await dialog.getByRole('button', { name: 'Copy' }).click();
		await page.getByText('Copied.', { exact: true }).waitFor();
		const url = await address.inputValue();
		assert.equal(await page.evaluate(() => navigator.clipboard.readText()), url);
		const id = /\/p\/([a-z2-7]{26})\.html$/.exec(url)[1];
		assert.equal(await cluster.psql(`SELECT lang || ' ' || (expires_at - created_at) || ' ' || (uid IS NOT NULL) FROM sheet.moderation WHERE id = '${id}'`), 'tsv 7 days true');
		const text = 'name\t"a ""quoted"" text"\n"two\nlines"\t<script>1</script>\n2\t\'=1+1\n"tab\there"\t';
		assert.equal(await (await fetch(`${gateway.url}/p/${id}`)).text(), text);
		await page.goto(url);
		await page.locator('.shown table').waitFor();
		await page.getByRole('button', { name: 'Make a sheet' }).click();
		await page.waitForURL(/\?id=\d+$/);
		const again = Number(new URL(page.url()).searchParams.get('id'));
		assert.notEqual(again, fid);
		const cells = JSON.parse(await cluster.psql(`SELECT jsonb_object_agg(a1, content) FROM sheet.range(${again}) WHERE content <> ''`));
		assert.deepEqual(cells, { A1: 'name', B1: 'a "quoted" text', A2: 'two\nlines', B2: '<script>1</script>', A3: '2', B3: "'=1+1", A4: 'tab\there' });
		// Neither do too many cells, nor too many bytes.
		await ann.untilOpen();
		await cluster.psql(`SELECT sheet.import_csv_into(${again}, 'A1', (SELECT string_agg('abc,def,ghi', E'\n') FROM generate_series(1, 4000)))`);
		await ann.untilShows('C4', 'ghi');
		await ann.untilSaved();
		await page.keyboard.press('Control+a');
		await publishSelection();
		await page.getByText('this one has 47999 bytes').waitFor();
		await page.keyboard.press('Escape');
		await cluster.psql(`SELECT sheet.set(${again}, 'L4000', 'far')`);
		await ann.goTo('A1');
		await page.keyboard.press('Control+End');
		await waitUntil(async () => (await ann.selected()) === 'L4000', 'the last cell');
		await page.keyboard.press('Control+a');
		await publishSelection();
		await page.getByText('A paste has at most 32 kB; A1:L4000 has too many cells.').waitFor();
	});

	await t.test('code is coloured', async () => {
		const { loaded: names } = await open({ content: 'def f(x):\n    return "<img src=x onerror=alert(1)>"\n', lang: 'python' }, '.hljs-keyword');
		assert.deepEqual(names, ['common', 'purify']);
		assert.equal(await page.locator('.shown img').count(), 0);
		assert.match(await page.locator('.shown code').innerText(), /return "<img src=x/);
	});

	await t.test('Markdown: formulas and code of it, and nothing that runs, loads or looks like the page', async () => {
		const content = [
			'# Title $x^2$ and $5 or $6',
			'| a | b |\n|---|---|\n| 1 | 2 |',
			'```js\nconst a = 1;\n```',
			'$$\\frac{1}{2}$$',
			'$\\href{javascript:window.ran=1}{x}$',
			'<img src=x onerror="window.ran=1"><script>window.ran=1</script><svg onload="window.ran=1"></svg>',
			'<a href="javascript:window.ran=1">bad</a> [bad](javascript:window.ran=1) [good](https://example.org)',
			'<form action="/login"><input name="password"></form><style>body{display:none}</style>',
			'<div class="stopped primary" id="app" style="position:fixed;inset:0" onclick="window.ran=1">over</div>',
			'<iframe src="/"></iframe><object data="/"></object><math><mtext><table><mglyph><style><img src=x onerror="window.ran=1">',
		].join('\n\n');
		const { loaded: names } = await open({ content, lang: 'markdown' }, '.katex');
		assert.deepEqual(names, ['common', 'katex', 'marked', 'purify']);
		assert.equal(await page.locator('.shown > .text h1 .katex').count(), 1);
		assert.match(await page.locator('.shown > .text h1').innerText(), /and \$5 or \$6$/);
		assert.equal(await page.locator('.shown > .text table td').count(), 2);
		await page.locator('.shown > .text .hljs-keyword').waitFor();
		const bad = await page.locator('.shown > .text').evaluate((text) => [
			...[...text.querySelectorAll('script, iframe, object, form, input, style, img, [onclick], [onerror], [onload], [id], .stopped, .primary')].map((e) => e.outerHTML),
			...[...text.querySelectorAll('a[href]')].map((a) => a.protocol).filter((protocol) => protocol !== 'https:'),
		]);
		assert.deepEqual(bad, []);
		assert.equal(await page.getByRole('link', { name: 'good' }).getAttribute('rel'), 'noopener noreferrer nofollow');
		await page.getByText('over', { exact: true }).click();
		assert.equal(await page.evaluate(() => window.ran), undefined);
	});

	await t.test('TeX is drawn; another kind can be chosen', async () => {
		const { loaded: names } = await open({ content: '\\int_0^1 x\\,dx = \\frac12\n\n\\badcommand{', lang: 'tex' }, '.katex');
		assert.deepEqual(names, ['katex']);
		await page.getByLabel('Shown as').selectOption('plain');
		await page.locator('.shown .lines').waitFor();
	});

	await t.test('a preview shows what is not published; publishing opens the paste', async () => {
		await page.goto(`${gateway.url}/paste.html`);
		await page.getByLabel('Text').fill('a,b\n1,2\nand more,to have 20 bytes');
		await page.getByLabel('Language').fill('csv');
		await page.getByLabel('Title').fill('Mine');
		const before = await cluster.psql('SELECT created FROM sheet.paste_stats');
		await page.getByRole('button', { name: 'Preview' }).click();
		await page.locator('.shown table').waitFor();
		assert.equal(await cluster.psql('SELECT created FROM sheet.paste_stats'), before);
		await page.getByLabel('Ends in').selectOption({ label: '7 days' });
		await page.getByRole('button', { name: 'Publish' }).click();
		await page.waitForURL(/\/p\/[a-z2-7]{26}\.html$/);
		await page.locator('.shown table').waitFor();
		const id = /([a-z2-7]{26})\.html/.exec(page.url())[1];
		assert.equal(await cluster.psql(`SELECT title || ' ' || lang || ' ' || (expires_at - created_at) || ' ' || (uid IS NOT NULL) FROM sheet.moderation WHERE id = '${id}'`), 'Mine csv 7 days true');
		await page.goto(`${gateway.url}/paste.html`);
		await page.getByLabel('Text').fill('too short');
		await page.getByRole('button', { name: 'Publish' }).click();
		await page.getByText('this one has 9 bytes').waitFor();
	});

	await t.test('what is not there', async () => {
		for (const id of ['a'.repeat(26), 'x']) {
			await page.goto(`${gateway.url}/p/${id}.html`);
			await page.getByText('There is no such paste').waitFor();
		}
	});

	await t.test('nothing comes from elsewhere, and the sheets load none of it', async () => {
		assert.deepEqual(beyond, []);
		assets = [];
		await page.goto(gateway.url);
		assert.equal(await page.getByRole('link', { name: 'New paste' }).getAttribute('href'), '/paste.html');
		await page.locator('main.sheets .list :is(table, .empty)').waitFor();
		await waitUntil(async () => (await page.evaluate(() => document.readyState)) === 'complete', 'the page');
		// One script, what it looks like, and its texts.
		assert.deepEqual(assets.map((name) => name.replace(/-[\w-]{8}\./, '.')).sort(), ['/assets/en.js', '/assets/index.css', '/assets/index.js']);
	});
	// Chromium reports handlers in the document without a window that DOMPurify parses, where none of them can run.
	assert.deepEqual(ann.problems.filter((problem) => !problem.startsWith('Executing inline event handler violates')), []);
});
