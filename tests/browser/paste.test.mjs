/*
 * paste.test.mjs - what other programs put on the clipboard arrives as it was: texts, numbers, dates, links, formats and merged
 * cells of Excel, Google Sheets, LibreOffice, WPS and web pages; and what the page copies is read by them.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Cluster } from '../lib/cluster.mjs';
import { waitUntil } from '../lib/processes.mjs';
import { Person, startBrowser } from './page.mjs';

const excel = (style, body) =>
	`<html xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:x="urn:schemas-microsoft-com:office:excel"><head><meta name=Generator content="Microsoft Excel 15">
<style><!--table {mso-displayed-decimal-separator:"\\."; mso-displayed-thousand-separator:"\\,";} tr {mso-height-source:auto;} td {padding-top:1px; mso-number-format:General; color:black; font-size:11.0pt; font-family:Calibri, sans-serif; text-align:general; vertical-align:bottom; border:none; white-space:nowrap;}
${style}--></style></head><body link="#0563C1"><table border=0 cellpadding=0 cellspacing=0 width=192 style='border-collapse:collapse;width:144pt'><!--StartFragment--><col width=64 span=3 style='width:48pt'>${body}<!--EndFragment--></table></body></html>`;
const table = (body) => `<meta charset='utf-8'><table>${body}</table>`;
const google = (body) => `<meta charset='utf-8'><google-sheets-html-origin><style type="text/css"><!--td {border: 1px solid #cccccc;}br {mso-data-placement:same-cell;}--></style><table xmlns="http://www.w3.org/1999/xhtml" cellspacing="0" cellpadding="0" dir="ltr" border="1" data-sheets-root="1"><colgroup><col width="100"/></colgroup><tbody>${body}</tbody></table>`;

/** Name, what is on the clipboard, the cells that are stored. */
const pasted = [
	['lines of addresses', { text: 'Bob <bob@example.org>\nAnn <ann@example.org>' }, [['Bob <bob@example.org>'], ['Ann <ann@example.org>']]],
	['quoted cells and CRLF', { text: 'a\t"line1\r\nline2"\t"say ""hi"""\r\nb\tc \td\r\n' }, [['a', 'line1\nline2', 'say "hi"'], ['b', 'c ', 'd']]],
	['a single line with an apostrophe and markup', { text: '<b>x</b> & y' }, [['<b>x</b> & y']]],
	['numbers, dates and what only looks like them', { text: '1,234.50\t50%\t31 January 2024\t007\t0x1F\t1/2\t12345678901234567' }, [['1234.5', '0.5', '2024-01-31', '007', '0x1F', '1/2', '12345678901234567']]],
	['plain text beside HTML without a table', { text: 'a <b>\nc', html: '<p>a &lt;b&gt;</p><p><b>c</b></p>' }, [['a <b>'], ['c']]],
	['a link alone', { text: 'Example', html: '<a href="https://example.org/x?a=1&amp;b=2">Example</a>' }, [['=HYPERLINK("https://example.org/x?a=1&b=2","Example")']]],
	['a script in a link', { text: 'no', html: '<table><tr><td><a href="javascript:alert(1)">no</a></td></tr></table>' }, [['no']]],
	[
		"Excel's built-in formats",
		{ html: excel('.xl65{mso-number-format:Percent;} .xl66{mso-number-format:"Short Date";} .xl67{mso-number-format:Fixed;} .xl68{mso-number-format:"\\@";} .xl69{mso-number-format:Standard;} .xl70{mso-number-format:Scientific;} .xl71{mso-number-format:"d\\\\-mmm\\\\-yy";} .xl72 {mso-number-format:"\\#\\,\\#\\#0_\\)\\;\\[Red\\]\\\\\\(\\#\\,\\#\\#0\\\\\\)";}',
			`<tr height=20><td class=xl65>12.50%</td><td class=xl66>1/31/2024</td><td class=xl67>3.10</td><td class=xl68>007</td><td class=xl69>1,234.00</td><td class=xl70>1.20E+03</td><td class=xl71>31-Jan-24</td><td class=xl72>(1,234)</td></tr>`) },
		[['0.125', '2024-01-31', '3.1', '007', '1234', '1200', '2024-01-31', '-1234']],
	],
	[
		'text cells of Excel stay text',
		{ html: excel('.t{mso-number-format:"\\@";}', '<tr><td class=t>1E5</td><td class=t>1/2</td><td class=t>=1+1</td><td class=t>TRUE</td><td style=\'mso-number-format:"\\@"\'>2024-01-31</td></tr>') },
		[["'1E5", '1/2', "'=1+1", "'TRUE", "'2024-01-31"]],
	],
	[
		'a format that nobody knows costs the format alone',
		{ html: excel('.a{mso-number-format:Percen;} .b{mso-number-format:"\\[\\[\\[";}', '<tr><td class=a>12</td><td class=b>x1</td><td>5</td></tr>') },
		[['12', 'x1', '5']],
	],
	[
		'line breaks, spaces and entities in cells of Excel',
		{ html: excel('', `<tr><td>a<br style="mso-data-placement:same-cell">
  b</td><td>x<span style='mso-spacerun:yes'>   </span>y</td><td>&lt;b&gt; &amp; "q"</td><td><font class="font5">part</font> of
  a text</td><td align=right>1</td><td></td></tr>`) },
		[['a\nb', 'x   y', '<b> & "q"', 'part of a text', '1']],
	],
	[
		'Google Sheets: texts, numbers in full, booleans, links',
		{ html: google(`<tr style="height:21px;"><td data-sheets-value="{&quot;1&quot;:2,&quot;2&quot;:&quot;0041&quot;}">0041</td><td data-sheets-value="{&quot;1&quot;:3,&quot;3&quot;:3.14159265}" data-sheets-numberformat="{&quot;1&quot;:2,&quot;2&quot;:&quot;0.00&quot;}">3.14</td><td data-sheets-value="{&quot;1&quot;:4,&quot;4&quot;:1}">TRUE</td><td data-sheets-value="{&quot;1&quot;:2,&quot;2&quot;:&quot;=1+1&quot;}">=1+1</td><td data-sheets-hyperlink="https://example.org/"><a class="in-cell-link" href="https://example.org/">site</a></td><td>one<br/>two</td><td data-sheets-value="{&quot;1&quot;:3,&quot;3&quot;:6}" data-sheets-formula="=R[0]C[-5]*2">6</td></tr>`) },
		[['0041', '3.14159265', 'TRUE', "'=1+1", '=HYPERLINK("https://example.org/","site")', 'one\ntwo', '=B1*2']],
	],
	[
		'LibreOffice: values behind what is shown',
		{ html: table(`<colgroup width="85"></colgroup><tr><td height="17" align="right" sdval="1234.5678" sdnum="1033;0;#,##0.00"><font face="Liberation Sans">1,234.57</font></td><td align="left" sdnum="1033;0;@"><font>007</font></td><td align="right" sdval="45322" sdnum="1033;0;YYYY-MM-DD">2024-01-31</td><td align="center" sdval="1" sdnum="1033;0;BOOLEAN">TRUE</td></tr>`) },
		[['1234.5678', '007', '2024-01-31', 'TRUE']],
	],
	['WPS: marks of types', { html: table('<tr><td x:str>007</td><td x:num="1234.5">1,234.50</td><td x:num>42</td><td x:str>1E5</td></tr>') }, [['007', '1234.5', '42', "'1E5"]]],
	['a web page with words around a table', { html: '<h1>Prices</h1><table><tr><th>Item</th><th>Cost</th></tr><tr><td>Tea</td><td>2.50</td></tr></table><p>End</p>' }, [['Prices'], ['Item', 'Cost'], ['Tea', '2.5'], ['End']]],
	['a table in a table', { html: table('<tr><td>a</td><td><table><tr><td>b</td><td>c</td></tr></table></td></tr>') }, [['a', 'b c']]],
	['merged cells', { html: table('<tr><td rowspan="2" colspan="2">big</td><td>r</td></tr><tr><td>s</td></tr><tr><td>x</td><td>y</td><td>z</td></tr>') }, [['big', '', 'r'], ['', '', 's'], ['x', 'y', 'z']]],
];

test('pasting', { timeout: 420000 }, async (t) => {
	const cluster = await Cluster.start();
	t.after(() => cluster.stop());
	const [gateway] = cluster.gateways;
	const browser = await startBrowser();
	t.after(() => browser.close());
	const step = (name, run) => t.test(name, run);
	const ann = await Person.arrive(browser, gateway, 'ann');
	await ann.register();
	const { page } = ann;
	let id;
	const content = (name) => cluster.psql(`SELECT content FROM sheet.range(${id}) WHERE a1 = '${name}'`);
	const stored = async () => JSON.parse(await cluster.psql(`SELECT coalesce(jsonb_object_agg(a1, content), '{}') FROM sheet.range(${id}) WHERE content <> ''`));
	/** The event that a browser sends for Ctrl+V, with what another program has put on the clipboard. */
	const pasteEvent = ({ text = '', html = '' }) =>
		page.evaluate(([plain, markup]) => {
			const clipboardData = new DataTransfer();
			if (plain) clipboardData.setData('text/plain', plain);
			if (markup) clipboardData.setData('text/html', markup);
			document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
		}, [text, html]);
	const nameOf = (row, col) => `${String.fromCharCode(65 + col)}${row + 1}`;
	const messages = () => page.locator('#messages').textContent();

	const untilStored = async (expected) => {
		const sorted = (cells) => JSON.stringify(Object.entries(cells).sort());
		await waitUntil(async () => sorted(await stored()) === sorted(expected), 'the cells to be stored', 15000).catch(async () => assert.deepEqual(await stored(), expected, await messages()));
		await ann.untilSaved();
	};
	const merges = async () => (await page.evaluate(() => window.pgSheet.layoutOf(1, 1))).merges;

	for (const [name, clipboard, rows] of pasted) {
		await step(name, async () => {
			await newSheet();
			await ann.goTo('A1');
			await pasteEvent(clipboard);
			await untilStored(Object.fromEntries(rows.flatMap((row, r) => row.flatMap((text, c) => (text === '' ? [] : [[nameOf(r, c), text]])))));
		});
	}
	await step('formats of cells and merged cells arrive, and are one step of undo', async () => {
		await newSheet();
		await ann.goTo('B2');
		await pasteEvent({ html: excel('.a{mso-number-format:Percent; font-weight:700; background:yellow; text-align:center;}', '<tr><td class=a colspan=2 rowspan=2>12.50%</td><td style="color:red">x</td></tr><tr><td>y</td></tr>') });
		await untilStored({ B2: '0.125', D2: 'x', D3: 'y' });
		await ann.untilShows('B2', '12.50%');
		const style = JSON.parse(await cluster.psql(`SELECT style FROM sheet.range(${id}) WHERE a1 = 'B2'`));
		assert.deepEqual([style.bl, style.bg, style.ht, style.n], [1, { rgb: 'yellow' }, 2, { pattern: '0.00%' }]);
		assert.deepEqual(await merges(), [{ row: 1, col: 1, toRow: 2, toCol: 2 }]);
		await page.keyboard.press('Control+z');
		await untilStored({});
		assert.deepEqual(await merges(), []);
	});
	await step('a merged cell takes one value; nothing divides it', async () => {
		await pasteEvent({ html: table('<tr><td rowspan="2" colspan="2">big</td></tr><tr></tr>') });
		await untilStored({ B2: 'big' });
		await pasteEvent({ text: 'one' });
		await untilStored({ B2: 'one' });
		assert.deepEqual(await merges(), [{ row: 1, col: 1, toRow: 2, toCol: 2 }]);
		await ann.goTo('A1');
		await pasteEvent({ text: '1\t2\n3\t4' });
		await page.getByText('it would divide the merged cells B2:C3').first().waitFor();
		await untilStored({ B2: 'one' });
	});
	await step('a cell formatted as text takes what is pasted literally', async () => {
		await newSheet();
		await ann.goTo('A1');
		await pasteEvent({ html: excel('.t{mso-number-format:"\\@";}', '<tr><td class=t></td></tr>') });
		await waitUntil(() => ann.cell('A1').then(({ style }) => style !== null), 'the format to be there');
		await pasteEvent({ text: '=1+1' });
		await untilStored({ A1: "'=1+1" });
	});
	await step('the grid goes on behind its last row and column', async () => {
		await newSheet();
		await ann.goTo('A1');
		const box = page.locator('[data-u-comp="defined-name"] input');
		const go = async (place) => {
			await box.fill(place);
			await box.press('Enter');
			await waitUntil(async () => (await ann.selected()) === place, `${place} to be selected`);
		};
		await go('A280');
		await pasteEvent({ text: Array.from({ length: 500 }, (_, i) => `r${i}`).join('\n') });
		await waitUntil(async () => (await content('A779')) === 'r499', 'the last row to be stored', 15000);
		await ann.untilSaved();
		assert.equal(await page.evaluate(() => window.pgSheet.contentOf(778, 0).content), 'r499');
		await go('CZ5000');
		await page.keyboard.type('far');
		await page.keyboard.press('Enter');
		await page.keyboard.type('next');
		await page.keyboard.press('ArrowDown');
		await waitUntil(async () => (await content('CZ5001')) === 'next', 'the cell below to be stored', 15000);
		assert.equal(await content('CZ5000'), 'far');
		await box.fill('A16777217');
		await box.press('Enter');
		await page.getByText('A sheet ends at row 16,777,216').first().waitFor();
	});
	await step('10,000 rows arrive, are taken back as one step, and are written again', async () => {
		await newSheet();
		await ann.goTo('A1');
		await pasteEvent({ text: Array.from({ length: 10000 }, (_, i) => `${i}\tx${i}\t${i * 2}`).join('\n') });
		await page.getByText('Pasted 10000 rows and 3 columns.').first().waitFor();
		const untilCount = (count) => waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.range(${id}) WHERE content <> ''`)) === String(count), `${count} cells to be stored`, 60000);
		await untilCount(30000);
		await ann.untilSaved(60000);
		await page.keyboard.press('Control+z');
		await untilCount(0);
		await ann.untilSaved(60000);
		await page.keyboard.press('Control+y');
		await untilCount(30000);
	});
	await step('what is copied is read by other programs as the same cells', async () => {
		await newSheet();
		await cluster.psql(`SELECT sheet.set(${id}, 'A1', E'one\\ntwo'), sheet.set(${id}, 'B1', 'say "hi"'), sheet.set(${id}, 'A2', '007'), sheet.set(${id}, 'B2', '=1+1'), sheet.set(${id}, 'C2', $$'1E5$$)`);
		await ann.untilShows('B2', '2');
		await ann.goTo('A1');
		for (const key of ['ArrowDown', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(`Shift+${key}`);
		await page.keyboard.press('Control+c');
		const text = await waitUntil(() => page.evaluate(() => navigator.clipboard.readText()).then((now) => (now.includes('hi') ? now : null)), 'the cells to be copied');
		assert.equal(text.replaceAll('\r\n', '\n'), '"one\ntwo"\t"say ""hi"""\t\n007\t2\t1E5');
		const html = await page.evaluate(async () => (await (await navigator.clipboard.read())[0].getType('text/html')).text());
		assert.match(html, /one<br[^>]*>two/);
	});
	assert.deepEqual(ann.problems, []);

	async function newSheet() {
		const sheet = Number(await cluster.psql(`SELECT sheet.create('Pasted', 84, 60, as_uid => (SELECT uid FROM sheet.account WHERE name = 'ann'))`));
		id = sheet;
		await ann.open(sheet);
	}
});
