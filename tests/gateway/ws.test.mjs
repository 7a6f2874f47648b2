/* The WebSocket of v1: shapes, cell locks, refusals, and what must not get in. */
import { after, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster, sleep, waitUntil } from '../lib/cluster.mjs';
import { Editor, getSheet, login, newSheet, post, register, request, shareByLink, signToken, tokenParts } from '../lib/client.mjs';
import { RawSocket, clientFrame } from '../lib/raw_socket.mjs';

let cluster;
let gateway;
let anna;
let ben;
let fid;
const opened = [];

before(async () => {
	cluster = await Cluster.start({
		gatewayFlags: { 'lease-seconds': 3, 'max-frame-bytes': 262144, 'allowed-origins': 'https://sheets.example.org' },
	});
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway), await register(gateway)];
});
after(() => cluster?.stop());
beforeEach(async () => {
	for (const editor of opened.splice(0)) editor.terminate();
	fid = await newSheet(gateway, anna, { name: 'live' });
});

async function open(user, options = {}) {
	const editor = await Editor.open(gateway, user, options.fid ?? fid, options);
	opened.push(editor);
	return editor;
}

const logged = () =>
	cluster.rows(
		`SELECT "row", col, old, new, username FROM sheet.log WHERE sheet_id = ${fid} AND kind = 'set' ORDER BY seq`,
	);

describe('shapes', () => {
	test('onConn comes first, exactly so', async () => {
		await cluster.psql(`SELECT sheet.set(${fid}, 12, 2, 'below')`);
		const editor = await open(anna);
		assert.deepEqual(Object.keys(editor.onConn).sort(), ['body', 'msgType']);
		const { body } = editor.onConn;
		assert.deepEqual(Object.keys(body).sort(), ['cellLocks', 'columns', 'content', 'name']);
		assert.equal(body.name, 'live');
		assert.equal(body.columns, 10);
		assert.equal(body.content.length, 130, 'max(row) + 1 rows, never a rounded-up capacity');
		assert.equal(body.content[122], 'below');
		assert.deepEqual(body.cellLocks, []);
		assert.match(editor.frames[0].toString(), /"cellLocks":\[\]/);
	});

	test('acquire, modify and release are told to all, the sender included, in the shapes of v1', async () => {
		const [a, b] = [await open(anna), await open(ben)];
		a.acquire(1, 2);
		a.modify(1, 2, 'hello', { bold: true });
		a.release(1, 2);
		const expected = [
			{ msgType: 'acquire', body: { row: 1, col: 2, username: anna.username } },
			{ msgType: 'modify', body: { row: 1, col: 2, content: 'hello', info: { bold: true }, username: anna.username } },
			{ msgType: 'release', body: { row: 1, col: 2, username: anna.username } },
		];
		for (const editor of [a, b]) {
			await editor.nextOf('release');
			assert.deepEqual(editor.messages.slice(1), expected);
		}
		assert.deepEqual(await logged(), [{ row: 1, col: 2, old: '', new: 'hello', username: anna.username }]);
	});

	test('a late joiner sees held locks with Row, Col and Username', async () => {
		const a = await open(anna);
		a.acquire(3, 4);
		await a.nextOf('acquire');
		const b = await open(ben);
		assert.deepEqual(b.onConn.body.cellLocks, [{ Row: 3, Col: 4, Username: anna.username }]);
	});

	test('info is passed through untouched, whatever JSON it is', async () => {
		const a = await open(anna);
		for (const info of [null, true, 12, 1.5, 'text "quoted" </script> \\', [1, [2]], { a: { b: [null] }, c: 'é 😀' }]) {
			a.modify(0, 0, `with ${JSON.stringify(info)}`, info);
			const { body } = await a.nextOf('modify');
			assert.deepEqual(body.info, info);
		}
		a.sendRaw('{"msgType":"modify","body":{"row":0,"col":0,"content":"without"}}');
		assert.equal((await a.nextModify(0, 0, 'without')).body.info ?? null, null);
	});

	test('an edit without row or column is refused; without content, or with null, it clears the cell', async () => {
		const a = await open(anna, { nack: true });
		a.modify(0, 0, 'stays');
		await a.nextModify(0, 0, 'stays');
		for (const body of ['{"content":"x"}', '{"row":0,"content":"x"}', '{"col":0,"content":"x"}', '{"row":null,"col":0,"content":"x"}', '{}']) {
			a.sendRaw(`{"msgType":"modify","body":${body}}`);
			assert.equal((await a.nextOf('refused')).body.reason, 'malformed', body);
		}
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1')`), 'stays');
		for (const content of ['', ',"content":null']) {
			a.modify(1, 1, 'goes');
			a.sendRaw(`{"msgType":"modify","body":{"row":1,"col":1${content}}}`);
			await a.nextModify(1, 1, '');
		}
	});

	test('names are understood in any case, also those of a client that writes them its own way', async () => {
		const a = await open(anna);
		a.sendRaw('{"MsgType":"modify","Body":{"Row":2,"COL":3,"Content":"x","Info":{"a":1}}}');
		assert.deepEqual((await a.nextModify(2, 3, 'x')).body.info, { a: 1 });
		a.sendRaw('{"msgType":"modify","body":{"row":9,"row":2,"ROW":8,"col":3,"content":"first","content":"last"}}');
		await a.nextModify(2, 3, 'last');
	});

	test('any key order, spacing and escapes are understood; answers never escape a slash', async () => {
		const a = await open(anna);
		a.sendRaw(
			'  {\n "body" : { "info":{"k":[1, 2]} , "content" : "\\u0061\\/b\\t\\"\\\\ \\ud83d\\ude00 \\u00e9" , "col" : 3 , "row":2 },\t"msgType":"modify" } ',
		);
		const { body } = await a.nextModify(2, 3);
		assert.equal(body.content, 'a/b\t"\\ 😀 é');
		assert.ok(!a.frames.at(-1).toString().includes('\\/'));
		assert.equal((await getSheet(gateway, anna, fid)).content[23], 'a/b\t"\\ 😀 é');
	});

	test('text and binary frames, and frames in fragments, with a ping between', async () => {
		const a = await open(anna);
		a.send('modify', { row: 0, col: 0, content: 'binary' }, { binary: true });
		await a.nextModify(0, 0, 'binary');
		const text = JSON.stringify({ msgType: 'modify', body: { row: 0, col: 1, content: 'in fragments' } });
		for (let i = 0; i < text.length; i += 10) {
			a.sendRaw(text.slice(i, i + 10), { fin: i + 10 >= text.length });
			if (i === 20) a.socket.ping('between');
		}
		await a.nextModify(0, 1, 'in fragments');
	});

	test('a client may offer permessage-deflate and any of its frames arrive', async () => {
		const a = await open(anna);
		const content = 'x'.repeat(30000);
		a.modify(0, 0, content);
		await a.nextModify(0, 0, content);
	});
});

describe('order', () => {
	test("is the same for all users, and each sender's own order is kept", async () => {
		const editors = [await open(anna), await open(ben), await open(anna), await open(await register(gateway))];
		const each = 300;
		for (let i = 0; i < each; i++) editors.forEach((editor, k) => editor.modify(k % 3, i % 5, `${k}:${i}`));
		const isLast = (n) => () =>
			editors[0].modifies().length >= n && editors.every((editor) => editor.modifies().length >= n);
		await waitUntil(isLast(each * editors.length), 'all edits at all editors', 20000);
		const streams = editors.map((editor) => editor.modifies().map(({ content }) => content));
		for (const stream of streams) assert.deepEqual(stream, streams[0]);
		for (let k = 0; k < editors.length; k++) {
			const own = streams[0]
				.filter((content) => content.startsWith(`${k}:`))
				.map((content) => Number(content.split(':')[1]));
			assert.deepEqual(own, [...Array(each).keys()]);
		}
		assert.deepEqual(
			(await logged()).map((row) => row.new),
			streams[0],
			'the log has the same order',
		);
	});
});

describe('the database', () => {
	test('an edit is committed before it is told', async () => {
		const [a, b] = [await open(anna), await open(ben)];
		for (let i = 0; i < 20; i++) {
			a.modify(0, 0, `edit ${i}`);
			await b.nextModify(0, 0, `edit ${i}`);
			assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1')`), `edit ${i}`);
		}
	});

	test('an unchanged content is told but not logged', async () => {
		const a = await open(anna);
		for (let i = 0; i < 3; i++) {
			a.modify(4, 4, 'same');
			await a.nextModify(4, 4, 'same');
		}
		a.modify(5, 5, '');
		await a.nextModify(5, 5, '');
		assert.deepEqual(
			(await logged()).map((row) => row.new),
			['same'],
		);
	});

	test('an edit outside the rectangle grows it exactly', async () => {
		const a = await open(anna);
		a.modify(20, 30, 'far');
		await a.nextModify(20, 30, 'far');
		const { columns, content } = (await open(ben)).onConn.body;
		assert.deepEqual([columns, content.length, content[20 * 31 + 30]], [31, 21 * 31, 'far']);
	});
});

describe('cell locks', () => {
	test('a cell held by another refuses modify and acquire, with a reason when asked for', async () => {
		const [a, b] = [await open(anna), await open(ben, { nack: true })];
		a.acquire(0, 0);
		a.modify(0, 0, 'mine');
		await b.nextModify(0, 0, 'mine');
		b.modify(0, 0, 'stolen');
		const refusedModify = await b.nextOf('refused');
		assert.deepEqual(Object.keys(refusedModify.body).sort(), ['col', 'content', 'reason', 'row']);
		assert.deepEqual([refusedModify.body.row, refusedModify.body.col, refusedModify.body.content], [0, 0, 'mine']);
		assert.match(String(refusedModify.body.reason), /\w/);
		b.acquire(0, 0);
		assert.equal((await b.nextOf('refused')).body.row, 0);
		await a.settle(9, 9);
		assert.equal(await cluster.psql(`SELECT sheet.get(${fid}, 'A1')`), 'mine');
		assert.ok(!a.messages.some((message) => message.msgType === 'refused' || message.body.content === 'stolen'));
	});

	test('without nack=1 a refusal is silent: v1 clients fail on a msgType they do not know', async () => {
		const [a, b] = [await open(anna), await open(ben)];
		a.acquire(0, 0);
		await b.nextOf('acquire');
		b.modify(0, 0, 'stolen');
		b.acquire(0, 0);
		b.sendRaw('{"msgType":"nonsense"}');
		await b.settle(9, 9);
		assert.deepEqual(
			b.messages.map((message) => message.msgType),
			['onConn', 'acquire', 'modify'],
		);
	});

	test('a free cell needs no acquire, and modify leaves no lock behind', async () => {
		const [a, b] = [await open(anna), await open(ben)];
		a.modify(0, 0, 'first');
		await b.nextModify(0, 0, 'first');
		b.modify(0, 0, 'second');
		await a.nextModify(0, 0, 'second');
		assert.deepEqual((await open(ben)).onConn.body.cellLocks, []);
	});

	test('the owner may acquire again (told again), from another tab too; a release of a free cell is not told', async () => {
		const [a, tab] = [await open(anna), await open(anna)];
		a.acquire(0, 0);
		a.acquire(0, 0);
		await tab.nextOf('acquire');
		await tab.nextOf('acquire');
		tab.modify(0, 0, 'from the other tab');
		await a.nextModify(0, 0, 'from the other tab');
		a.release(5, 5);
		await a.settle(9, 9);
		assert.ok(!a.messages.some((message) => message.msgType === 'release'));
	});

	test('only the owner releases', async () => {
		const [a, b] = [await open(anna), await open(ben, { nack: true })];
		a.acquire(0, 0);
		await b.nextOf('acquire');
		b.release(0, 0);
		await b.settle(9, 9);
		assert.ok(!b.messages.some((message) => message.msgType === 'release'));
		b.modify(0, 0, 'still locked');
		await b.nextOf('refused');
		a.release(0, 0);
		await b.nextOf('release');
		b.modify(0, 0, 'free now');
		await a.nextModify(0, 0, 'free now');
	});

	test('all locks of a user are released, and told, when the last connection goes', async () => {
		for (const leave of ['close', 'terminate']) {
			const [a, tab, b] = [await open(anna), await open(anna), await open(ben)];
			for (const [row, col] of [
				[0, 0],
				[1, 1],
				[2, 2],
			])
				a.acquire(row, col);
			for (let i = 0; i < 3; i++) await b.nextOf('acquire');
			await tab[leave]();
			await b.settle(9, 9);
			assert.ok(!b.messages.some((message) => message.msgType === 'release'), 'another tab is open');
			await a[leave]();
			const released = [];
			for (let i = 0; i < 3; i++) released.push((await b.nextOf('release')).body);
			assert.deepEqual(released.map(({ row, col }) => `${row},${col}`).sort(), ['0,0', '1,1', '2,2']);
			assert.ok(released.every(({ username }) => username === anna.username));
			b.modify(0, 0, `after ${leave}`);
			await b.nextModify(0, 0, `after ${leave}`);
			await b.close();
		}
	});

	test('a lock without a sign of life ends with its lease; messages about the cell renew it', async () => {
		const [a, b] = [await open(anna), await open(ben)];
		a.acquire(0, 0);
		for (let i = 0; i < 5; i++) {
			await sleep(1000);
			a.modify(0, 0, `typing ${i}`);
		}
		await a.nextModify(0, 0, 'typing 4');
		assert.ok(!b.messages.some((message) => message.msgType === 'release'), 'renewed by edits');
		a.socket.pause();
		const { body } = await b.nextOf('release', 12000);
		assert.deepEqual([body.row, body.col, body.username], [0, 0, anna.username]);
		a.socket.resume();
	});
});

describe('who may connect', () => {
	/* What the gateway knows without the database it says in HTTP; the rest by the code of the close frame. */
	const closeMessages = { 4401: 1, 4403: 13, 4404: 14, 4410: 18 };

	/** The connection must not get as far as onConn; resolves to {status, msg}. */
	const refusal = async (user, options, wantedFid = fid) => {
		const editor = new Editor(gateway, user, wantedFid, options);
		opened.push(editor);
		const error = await editor.opened.then(
			() => null,
			(problem) => problem,
		);
		if (error) return { status: error.status, msg: error.json?.msg, text: error.message };
		const { code, reason } = await editor.waitClosed();
		assert.deepEqual(editor.messages, [], 'nothing is told before the connection is closed');
		return { status: code, msg: closeMessages[code], text: `closed with ${code} ${reason}` };
	};

	test('bad tokens are msg 1, unknown sheets 14, trashed ones 18, private ones 13, a malformed fid 0', async () => {
		const { header, claims } = tokenParts(anna.token);
		for (const token of [
			'',
			'x.y.z',
			signToken(header, claims, 'wrong'.repeat(10)),
			signToken(header, { ...claims, exp: 1 }, cluster.jwtKey),
		]) {
			assert.equal((await refusal(anna, { token })).msg, 1);
		}
		assert.equal((await refusal(anna, {}, 999999999)).msg, 14);
		for (const text of ['abc', '', '-1', '1.5', '1e99', '99999999999999999999999']) {
			const error = await refusal(anna, {}, text);
			assert.ok([0, 14].includes(error.msg), `${text}: ${error.text}`);
		}
		await cluster.psql(`SELECT sheet.share_link(${fid}, NULL)`);
		assert.equal((await refusal(ben, {})).msg, 13);
		await post(gateway, '/deletesheet', { token: anna.token, fid });
		assert.equal((await refusal(anna, {})).msg, 18);
	});

	test('a ticket opens one WebSocket of its sheet once, and stands for the token in the address', async () => {
		const ticketOf = async (sheet = fid) => {
			const answer = await post(gateway, '/v2/ticket', { token: anna.token, fid: sheet });
			assert.equal(answer.status, 200);
			assert.equal(answer.json.seconds, 30);
			return answer.json.ticket;
		};
		const by = (ticket, sheet = fid) => ({ path: `/sheetws?ticket=${ticket}&fid=${sheet}` });
		const ticket = await ticketOf();
		const editor = await Editor.open(gateway, anna, fid, by(ticket));
		opened.push(editor);
		assert.equal((await editor.settle()).body.username, anna.username);
		const other = await newSheet(gateway, anna);
		for (const wrong of [ticket, await ticketOf(other), '', 'x', `${await ticketOf()}A`, anna.token, 'A'.repeat(22)])
			assert.equal((await refusal(anna, by(wrong))).msg, 1, wrong);
		assert.equal((await post(gateway, '/v2/ticket', { token: 'x', fid })).status, 401);
		assert.equal((await post(gateway, '/v2/ticket', { token: anna.token })).status, 400);
		const revoked = await ticketOf();
		await cluster.psql(`SELECT sheet.account_revoke_tokens(${anna.uid})`);
		assert.equal((await refusal(anna, by(revoked))).status, 4401);
		Object.assign(anna, await login(gateway, anna));
	});

	test('an account has 64 unused tickets, and others have theirs', async () => {
		const carl = await register(gateway);
		const ask = ({ token }) => post(gateway, '/v2/ticket', { token, fid });
		const answers = [];
		for (let i = 0; i < 65; i++) answers.push(await ask(carl));
		assert.deepEqual(answers.map(({ status }) => status), [...Array(64).fill(200), 429]);
		assert.equal(answers.at(-1).headers['retry-after'], '1');
		assert.match(answers.at(-1).text, /too many unused tickets/);
		opened.push(await Editor.open(gateway, carl, fid, { path: `/sheetws?ticket=${answers[0].json.ticket}&fid=${fid}` }));
		assert.equal((await ask(carl)).status, 200, 'one was used');
		assert.equal((await ask(anna)).status, 200);
	});

	test('query=1 says that the owner is here, and takes no lock', async () => {
		const answer = await request(gateway, 'GET', `/sheetws?token=${anna.token}&fid=${fid}&query=1`);
		assert.equal(answer.status, 200);
		assert.equal(answer.json.success, true);
		assert.equal(answer.json.msg, 20);
		assert.equal((await request(gateway, 'GET', `/sheetws?token=nonsense&fid=${fid}&query=1`)).json.msg, 1);
		assert.equal((await request(gateway, 'GET', `/sheetws?token=${anna.token}&fid=999999999&query=1`)).json.msg, 14);
	});

	test('pages of other origins cannot connect; our own, configured ones, and programs can', async () => {
		for (const origin of ['http://evil.example', 'null', `http://${gateway.host}.evil.example`]) {
			const error = await refusal(anna, { headers: { origin } });
			assert.equal(error.status, 403, `${origin}: ${error.text}`);
		}
		for (const headers of [{}, { origin: `http://${gateway.host}` }, { origin: 'https://sheets.example.org' }]) {
			await (await open(anna, { headers })).close();
		}
	});

	test('a viewer sees edits and makes none', async () => {
		await shareByLink(gateway, anna, fid, 'viewer', ben);
		const [a, b] = [await open(anna), await open(ben, { nack: true })];
		b.modify(0, 0, 'not allowed');
		assert.match(String((await b.nextOf('refused')).body.reason), /\w/);
		b.acquire(0, 0);
		await b.nextOf('refused');
		a.modify(0, 0, 'allowed');
		await b.nextModify(0, 0, 'allowed');
		assert.deepEqual(
			(await logged()).map((row) => row.new),
			['allowed'],
		);
	});
});

describe('bad input', () => {
	/** Each text is refused, the connection lives, and nothing is logged. */
	async function isRefused(texts, { answered = true } = {}) {
		const [a, b] = [await open(anna, { nack: true }), await open(ben)];
		const start = a.messages.length;
		for (const [i, text] of texts.entries()) {
			a.sendRaw(text);
			if (answered) {
				const { body } = await a
					.nextOf('refused')
					.catch((error) => assert.fail(`${text.toString().slice(0, 90)}: ${error.message}`));
				assert.match(String(body.reason), /\w/);
			}
			await a.settle(9, 9);
			// A refusal asks the database first, and so may come behind the next message's answer.
			assert.ok(a.messages.length <= start + 2 * (i + 1), `${text.toString().slice(0, 90)}: more than a refusal came back`);
		}
		assert.ok(
			(await logged()).every((row) => row.row === 9 && row.col === 9),
			'nothing is logged',
		);
		assert.ok(
			b.modifies().every((body) => body.row === 9 && body.col === 9),
			'nothing is told',
		);
		assert.ok(b.messages.slice(1).every((message) => message.msgType === 'modify'));
		return a;
	}
	const modify = (row, col, content = '"x"') =>
		`{"msgType":"modify","body":{"row":${row},"col":${col},"content":${content}}}`;

	test('rows and columns out of range', async () => {
		const numbers = [
			'-1',
			'-2147483648',
			'2147483647',
			'2147483648',
			'4294967296',
			'9223372036854775808',
			'1e99',
			'-1e99',
			'1.5',
			'16777216',
		];
		await isRefused([
			...numbers.map((n) => modify(n, 0)),
			...numbers.map((n) => modify(0, n)),
			modify(0, 16384),
			modify('2e9', '2e9'),
		]);
		await isRefused(numbers.map((n) => `{"msgType":"acquire","body":{"row":${n},"col":0}}`));
	});

	test('an edit that would grow the rectangle of v1 beyond 4,194,304 cells', async () => {
		await isRefused([modify(1000000, 15), modify(5000, 1000), modify(16777215, 0)]);
	});

	test('wrong types', async () => {
		await isRefused([modify('"0"', 0), modify(0, '[]'), modify(0, 0, '5'), modify(0, 0, '{}'), modify(0, 0, 'true')]);
	});

	test('malformed JSON and unknown messages keep the connection alive', async () => {
		await isRefused(
			[
				'',
				' ',
				'{',
				'}',
				'null',
				'[]',
				'12',
				'"text"',
				'{"msgType":"modify"',
				'{"msgType":"modify","body":',
				'{"msgType":"modify","body":[]}',
				'{"msgType":"nonsense","body":{}}',
				'{"msgType":5,"body":{}}',
				`${modify(0, 0)}x`,
				modify(0, 0, '"\\ud83d"'),
				modify(0, 0, '"\\x"'),
				modify('+1', 0),
				'['.repeat(50000),
			],
			{ answered: false },
		);
	});

	test('content of more than 32,767 characters; exactly that many are fine', async () => {
		const a = await isRefused([
			modify(0, 0, JSON.stringify('x'.repeat(32768))),
			modify(0, 0, JSON.stringify('é'.repeat(32768))),
		]);
		for (const character of ['x', 'é', '漢']) {
			const content = character.repeat(32767);
			a.modify(1, 0, content);
			await a.nextModify(1, 0, content);
			assert.equal(await cluster.psql(`SELECT length(sheet.get(${fid}, 'A2'))`), '32767');
		}
	});

	test('NUL', async () => {
		await isRefused([modify(0, 0, '"a\\u0000b"')]);
		await isRefused([Buffer.from(modify(0, 0, '"a\u0000b"'))], { answered: false });
	});

	test('invalid UTF-8 in a binary frame', async () => {
		const [head, tail] = [Buffer.from('{"msgType":"modify","body":{"row":0,"col":0,"content":"'), Buffer.from('"}}')];
		const bad = [[0xff], [0xc0, 0x80], [0xe2, 0x82], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80]];
		await isRefused(
			bad.map((bytes) => Buffer.concat([head, Buffer.from(bytes), tail])),
			{ answered: false },
		);
	});

	test('invalid UTF-8 in a text frame closes with 1007', async () => {
		const raw = await RawSocket.open(gateway, anna, fid);
		raw.write(clientFrame(0x81, Buffer.from([0x7b, 0xff, 0xfe, 0x7d])));
		assert.equal(await raw.waitCode(), 1007);
		raw.destroy();
	});

	test('a frame over the limit closes with 1009, also when it comes in fragments', async () => {
		const a = await open(anna);
		a.sendRaw(modify(0, 0, JSON.stringify('x'.repeat(300000))));
		assert.equal((await a.waitClosed()).code, 1009);
		const b = await open(anna);
		for (let i = 0; i < 40 && !b.closed; i++) b.sendRaw('x'.repeat(10000), { fin: false });
		assert.equal((await b.waitClosed()).code, 1009);
		await (await open(anna)).settle(9, 9);
		assert.deepEqual(
			(await logged()).map((row) => `${row.row},${row.col}`),
			['9,9'],
		);
	});

	test('the gateway is still the same process', async () => {
		assert.ok(gateway.service.alive);
		await (await open(anna)).settle(0, 0);
	});
});
