/*
 * guesses.test.mjs - guessed ids find none: addresses with secrets, tokens and passwords. Near misses of real ones and a great many
 * random ones have the answer of an unknown one; the gateway keeps nothing of them, and still serves the real ones.
 *
 * Requests are pipelined, each connection from an address of its own in 127.0.0.0/8: a network that guesses access tokens is refused
 * after 60 of them (429).
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import net from 'node:net';
import path from 'node:path';
import { Cluster, writePrivateFile } from '../lib/cluster.mjs';
import { multipart, newSheet, post, register, request, shareByLink } from '../lib/client.mjs';
import { roundsToRun } from '../lib/processes.mjs';
import { clientFrame, serverFrames } from '../lib/raw_socket.mjs';

const MB = 1024 * 1024;
const guesses = Math.max(roundsToRun(20000, 1000000), 5000);
const connections = 24; // at a time
const pipelined = 40; // fewer than a network may guess access tokens in a minute
const password = 'long enough';

let cluster;
let gateway;
let anna;
let ben;
let eve;
let fid;
let calendar;
let kinds;

before(async () => {
	cluster = await Cluster.start({ gateways: 0, measured: true, postgres: { fsync: 'off' } });
	const operator = crypto.randomBytes(24).toString('hex');
	const file = path.join(cluster.directory, 'operator');
	writePrivateFile(file, `${operator}\n`);
	gateway = await cluster.addGateway({ 'default-link-role': 'none', 'max-connections-per-address': 0, 'anonymous-pastes': 'everybody', 'pastes-per-address': 0, 'admin-token-file': file });
	[anna, ben, eve] = [await register(gateway), await register(gateway), await register(gateway)];
	fid = await newSheet(gateway, anna);
	await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'secret')`);
	calendar = Number(await cluster.psql(`SELECT sheet.create_calendar('Team', 'Europe/Berlin', ${anna.uid})`));
	kinds = await makeKinds(operator);
});
after(() => cluster?.stop());

const link = async (sheet, values = {}) => {
	const { status, json, text } = await post(gateway, `/v2/sheets/${sheet}/links`, { token: anna.token, ...values });
	assert.equal(status, 200, text);
	return json;
};

/* ---- ids ---- */

const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const base32 = 'abcdefghijklmnopqrstuvwxyz234567';
const hex = '0123456789abcdef';
const random = (alphabet, length) => Array.from(crypto.randomBytes(length), (byte) => alphabet[byte % alphabet.length]).join('');
/** Forms: the alphabet, and a new id as the product makes them. */
const forms = {
	key: { alphabet: base64url, make: () => crypto.randomBytes(16).toString('base64url') },
	paste: { alphabet: base32, make: () => random(base32, 25) + base32[crypto.randomInt(8) << 2] },
	file: { alphabet: hex, make: () => crypto.randomBytes(16).toString('hex') },
	access: { alphabet: base64url, make: () => `pgs_${crypto.randomBytes(32).toString('base64url')}` },
	operator: { alphabet: hex, make: () => crypto.randomBytes(24).toString('hex') },
	/** The account and the times of a valid token, with another signature. */
	signed: (token) => ({ alphabet: base64url, make: () => `${token.slice(0, token.lastIndexOf('.'))}.${crypto.randomBytes(32).toString('base64url')}` }),
};

/** Ids that differ from the real one by little, and are others. */
function nearMisses(id, { alphabet }) {
	const other = (char, by = 1) => alphabet[(Math.max(alphabet.indexOf(char), 0) + by) % alphabet.length];
	const put = (at, text) => id.slice(0, at) + text + id.slice(at + 1);
	const swapped = (text) => text.replace(/[a-z]/gi, (char) => (char < 'a' ? char.toLowerCase() : char.toUpperCase()));
	const letter = id.search(/[a-z]/i);
	const found = [
		...Array.from(id, (char, at) => put(at, other(char))),
		...Array.from(alphabet, (char) => put(id.length - 1, char)), // also those that differ in bits that no byte has
		...[alphabet[0], alphabet.at(-1), '=', '.', '-'].flatMap((char) => [id + char, char + id]),
		...[id.slice(1), id.slice(0, -1), id.slice(2), id.slice(0, id.length / 2), id.slice(0, 1), id + id, [...id].reverse().join(''), id.slice(1) + id[0]],
		...[swapped(id), id.toLowerCase(), id.toUpperCase(), put(letter, swapped(id[letter]))],
		...['*', '%25', '_', '..', "'--", 'x'.repeat(500), '0', '1', `${fid}`],
	];
	return [...new Set(found)].filter((one) => one !== id);
}

const escaped = (text, form = (digits) => digits) => Array.from(text, (char) => `%${form(char.charCodeAt(0).toString(16).padStart(2, '0'))}`).join('');

/* ---- requests ---- */

const head = (method, target, headers = {}) =>
	`${method} ${target} HTTP/1.1\r\n${Object.entries({ Host: gateway.host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
const sent = (method, target, body, { type = 'application/json', ...headers } = {}) => {
	const text = typeof body === 'object' ? JSON.stringify(body) : body;
	return head(method, target, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text), ...headers }) + text;
};
const bearer = (token) => ({ Authorization: `Bearer ${token}` });
/** The token of an account, and the cookie that the answer would else set. */
const signedIn = ({ token }) => ({ ...bearer(token), Cookie: `pg_sheet_files=${token}` });

let networks = 0;
/** Addresses of this machine that no test has used. */
const nextAddress = () => `127.${8 + ((networks >> 15) & 127)}.${(networks >> 7) & 255}.${1 + (networks++ & 127)}`;

/** An answer as {status, all of it but what is new in each}. */
function shown(headText, body) {
	const id = /^x-request-id: (.*)$/im.exec(headText)?.[1];
	const lines = headText.split('\r\n').filter((line) => !/^(date|x-request-id): /i.test(line));
	const text = `${lines.join('\n')}\n\n${body}`;
	return { status: Number(headText.slice(9, 12)), text: id ? text.replaceAll(id, '') : text };
}

/** Pipelines requests on a connection; their answers. port: another one than that of the gateway. */
function ask(requests, { port = gateway.port, localAddress = nextAddress() } = {}) {
	return new Promise((resolve, reject) => {
		const answers = [];
		let received = '';
		const socket = net.connect({ port, host: '127.0.0.1', localAddress }, () => socket.write(requests.join(''), 'latin1'));
		const end = (error) => {
			socket.destroy();
			if (error) reject(new Error(`${error.message}: ${answers.length} of ${requests.length} answers; ${requests[answers.length]?.slice(0, 200)} ${received.slice(0, 300)}`));
			else resolve(answers);
		};
		socket.setEncoding('latin1');
		socket.setTimeout(60000, () => end(new Error('no answer in a minute')));
		socket.on('error', end);
		socket.on('close', () => end(new Error('closed')));
		socket.on('data', (text) => {
			received += text;
			for (;;) {
				const behind = received.indexOf('\r\n\r\n');
				if (behind < 0) return;
				const headText = received.slice(0, behind);
				const length = headText.startsWith('HTTP/1.1 101') ? 0 : Number(/^content-length: (\d+)$/im.exec(headText)?.[1] ?? 0);
				if (received.length < behind + 4 + length) return;
				answers.push(shown(headText, received.slice(behind + 4, behind + 4 + length)));
				received = received.slice(behind + 4 + length);
				if (answers.length === requests.length) return end();
			}
		});
	});
}

/** The answers to ids of a kind, on connections of their own if they close them. */
async function askFor(kind, ids) {
	const size = kind.alone ? 1 : pipelined;
	const groups = Array.from({ length: Math.ceil(ids.length / size) }, (_, i) => ids.slice(i * size, (i + 1) * size));
	const answers = [];
	await Promise.all(
		Array.from({ length: Math.min(8, groups.length) }, async (_, first) => {
			for (let i = first; i < groups.length; i += 8) answers[i] = await (kind.converse ? converse(kind, groups[i][0]) : ask(groups[i].map(kind.request), { port: kind.port }));
		}),
	);
	return answers.flat();
}

/** The first answer on a WebSocket: the code with which it is closed, or 101. */
function converse({ request: handshake, converse: hello }, id) {
	return new Promise((resolve, reject) => {
		let bytes = Buffer.alloc(0);
		const socket = net.connect({ port: gateway.port, host: '127.0.0.1', localAddress: nextAddress() });
		socket.write(handshake(id), 'latin1');
		for (const message of hello(id)) socket.write(clientFrame(0x81, Buffer.from(JSON.stringify(message))));
		socket.setTimeout(60000, () => socket.destroy());
		socket.on('error', () => {});
		socket.on('close', () => {
			const text = bytes.toString('latin1');
			if (/^HTTP\/1\.1 [45]/.test(text)) resolve([shown(...text.split('\r\n\r\n'))]);
			else reject(new Error(`no frame: ${id} ${text.slice(0, 300)}`));
		});
		socket.on('data', (part) => {
			bytes = Buffer.concat([bytes, part]);
			const behind = bytes.indexOf('\r\n\r\n');
			const frame = behind < 0 ? undefined : serverFrames(bytes.subarray(behind + 4)).find(({ opcode }) => opcode === 1 || opcode === 8);
			if (!frame) return;
			resolve([frame.opcode === 8 ? { status: frame.payload.readUInt16BE(), text: frame.payload.subarray(2).toString() } : { status: 101, text: '' }]);
			socket.destroy();
		});
	});
}

/* ---- what can be guessed ---- */

/**
 * {name, id: a real one, form, request(id), refusal: the status for others, found: for the real one, address(id): of kinds whose id
 * is in the path; alone: the answer ends the connection; converse(id): the messages on a WebSocket;
 * wake: what makes the gateway answer; malformed: others are refused by their form}
 */
async function makeKinds(operator) {
	const [open, locked, accounts, feed] = [await link(fid), await link(fid, { password }), await shareByLink(gateway, anna, fid, 'viewer'), await link(calendar)];
	const { key: paste } = (await post(gateway, '/record', { content: 'a paste of twenty bytes' })).json;
	const picture = multipart([['fid', `${fid}`], ['token', anna.token], ['uploadfile', Buffer.from('\x89PNG\r\n\x1a\n picture', 'latin1'), 'a.png', 'image/png']]);
	const file = new URL((await request(gateway, 'POST', '/uploadchunk', picture)).json.url).pathname.split('/')[2];
	const token = async (scope) => (await post(gateway, '/v2/tokens', { token: anna.token, label: scope, scopes: [scope] })).json.token;
	const [read, upload] = [await token('read'), await token('upload')];
	const guest = (await post(gateway, '/v2/link', { link: (await link(fid, { ref: 'A1' })).key, name: 'Zoe' })).json.token;
	const handshake = (target, headers = {}) =>
		head('GET', target, { Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Key': crypto.randomBytes(16).toString('base64'), 'Sec-WebSocket-Version': '13', ...headers });
	/** A watched view tells nothing but changes. */
	const edit = () => cluster.psql(`SELECT sheet.set(${fid}, 'A1', '${crypto.randomInt(1e9)}')`);
	const v2 = { 'Sec-WebSocket-Protocol': 'sheet.v2' };
	const inPath = (name, id, form, address) => ({ name, id, form, address, request: (one) => head('GET', address(one)) });
	const found = [
		{ name: 'link', id: open.key, form: forms.key, request: (id) => sent('POST', '/v2/link', { link: id, name: 'Zoe' }) },
		{ name: 'link with a password', id: locked.key, form: forms.key, request: (id) => sent('POST', '/v2/link', { link: id, name: 'Zoe', password }) },
		// An account that has opened a link keeps its role. So another account sends the guesses.
		{ name: 'link, by an account', id: accounts, form: forms.key, refusal: 403, request: (id) => sent('POST', `/v2/sheets/${fid}/open`, { link: id }, signedIn(id === accounts ? ben : eve)) },
		...['', '.csv', '.tsv', '.json'].map((end) => inPath(`published view ${end}`, open.key, forms.key, (id) => `/s/${id}${end}`)),
		inPath('calendar feed', feed.key, forms.key, (id) => `/cal/${id}.ics`),
		inPath('paste', paste, forms.paste, (id) => `/p/${id}`),
		inPath('page of a paste', paste, forms.paste, (id) => `/p/${id}.html`),
		inPath('record of a paste', paste, forms.paste, (id) => `/record/${id}`),
		inPath('picture', file, forms.file, (id) => `/i/${id}/a.png`),
		{ name: 'file by its key', id: file, form: forms.file, request: (id) => head('GET', `/getchunk?fid=${fid}&chunk=a.png&key=${escaped(id)}`) },
		{ name: 'access token', id: read, form: forms.access, refusal: 401, request: (id) => head('GET', '/v2/sheets', bearer(id)) },
		{ name: 'access token in the query', id: read, form: forms.access, refusal: 401, request: (id) => head('GET', `/v2/sheets?token=${escaped(id)}`) },
		{ name: 'access token in the body', id: read, form: forms.access, refusal: 200, request: (id) => sent('POST', '/getuser', { token: id, username: anna.username }) },
		{ name: 'password of CalDAV', id: read, form: forms.access, refusal: 401, found: 207, request: (id) => head('PROPFIND', '/dav/', { Depth: 0, Authorization: `Basic ${Buffer.from(`${anna.username}:${id}`).toString('base64')}` }) },
		{ name: 'upload token, for pastes', id: upload, form: forms.access, refusal: 401, request: (id) => sent('POST', '/record', { content: 'another paste of twenty bytes' }, bearer(id)) },
		{
			name: 'upload token, for files', id: upload, form: forms.access, refusal: 200, alone: true,
			request: (id) => {
				const { body, headers } = multipart([['fid', `${fid}`], ['uploadfile', Buffer.from('x'), 'x.txt', 'text/plain']]);
				return sent('POST', '/uploadchunk', body.toString('latin1'), { type: headers['content-type'], ...bearer(id) });
			},
		},
		{ name: 'sign-in token', id: anna.token, form: forms.signed(anna.token), refusal: 401, request: (id) => head('GET', '/v2/sheets', bearer(id)) },
		{ name: "guest's token", id: guest, form: forms.signed(guest), refusal: 401, request: (id) => head('GET', '/v2/link/cells', bearer(id)) },
		{ name: 'cookie of the session', id: anna.token, form: forms.signed(anna.token), refusal: 401, request: (id) => sent('POST', '/v2/session', {}, { Cookie: `pg_sheet_session=${id}` }) },
		{ name: 'cookie for files', id: anna.token, form: forms.signed(anna.token), refusal: 200, request: (id) => head('GET', `/getchunk?fid=${fid}&chunk=a.png`, { Cookie: `pg_sheet_files=${id}` }) },
		{ name: "operator's token", id: operator, form: forms.operator, refusal: 403, port: Number(gateway.admin.host.split(':')[1]), request: (id) => head('GET', '/metrics', { Host: 'elsewhere.example', ...bearer(id) }) },
		{
			name: 'ticket', form: forms.key, refusal: 200, found: 101, alone: true,
			renew: async () => (await post(gateway, '/v2/ticket', { token: anna.token, fid })).json.ticket,
			request: (id) => handshake(`/sheetws?ticket=${escaped(id)}&fid=${fid}`),
		},
		{ name: 'watched view', id: open.key, form: forms.key, refusal: 4404, found: 101, alone: true, converse: () => [], wake: edit, malformed: /^[\w-]{22}$/, request: (id) => handshake(`/sheetws?watch=${escaped(id)}`, v2) },
		{
			name: 'access token of a WebSocket', id: read, form: forms.access, refusal: 4401, found: 101, alone: true,
			converse: (id) => [{ t: 'hello', v: 2, token: id, client: 0, acked: 0, since: 0 }],
			request: () => handshake(`/sheetws?fid=${fid}`, v2),
		},
	];
	for (const kind of found) kind.id ??= await kind.renew();
	return found.map((kind) => ({ refusal: 404, found: 200, ...kind }));
}

const isRefused = ({ status, text }) => status === 429 || (status === 1013 && /too many/.test(text));

/** Each kind still has its real id. */
async function checkReal() {
	for (const kind of kinds) {
		const id = kind.renew ? await kind.renew() : kind.id;
		let answer;
		const answered = askFor(kind, [id]).then((answers) => ([answer] = answers));
		while (kind.wake && !answer) await kind.wake();
		await answered;
		assert.equal(answer.status, kind.found, `${kind.name}: ${answer.text}`);
		assert.notEqual(answer.text, kind.unknown?.text, kind.name);
	}
}

/* ---- tests ---- */

test('near misses of real ids have the answer of an unknown one', async () => {
	for (const kind of kinds) [kind.unknown] = await askFor(kind, [kind.form.make()]);
	await checkReal();
	for (const kind of kinds) {
		assert.equal(kind.unknown.status, kind.refusal, `${kind.name}: ${kind.unknown.text}`);
		if (kind.refusal === 200) assert.match(kind.unknown.text, /"success":false,"msg":1[,}]/, kind.name);
		const ids = nearMisses(kind.id, kind.form);
		const answers = await askFor(kind, ids);
		for (const [i, id] of ids.entries()) {
			if (kind.malformed && !kind.malformed.test(id)) assert.equal(answers[i].status, 400, `${kind.name}: ${id}`);
			else assert.deepEqual(answers[i], kind.unknown, `${kind.name}: ${id} for ${kind.id}`);
		}
	}
	await checkReal();
});

test('addresses that differ from real ones have the answer of an address with an unknown id', async () => {
	for (const { name, id, form, address } of kinds.filter(({ address }) => address)) {
		const unknown = form.make();
		const at = id.length >> 1;
		const escapedAt = (one, text) => address(one.slice(0, at) + text + one.slice(at + 1));
		const changes = {
			slash: (one) => `${address(one)}/`,
			dot: (one) => `${address(one)}.`,
			blank: (one) => `${address(one)}%20`,
			'blank before': (one) => address(`%20${one}`),
			'escaped slash': (one) => `${address(one)}%2f`,
			'two slashes': (one) => `/${address(one)}`,
			'slashes within': (one) => address(`/${one}`),
			'a folder below': (one) => `${address(one)}/x`,
			'this folder': (one) => address(`./${one}`),
			'and back': (one) => `${address(one)}/..`,
			semicolon: (one) => `${address(one)};x`,
			'case of the address': (one) => address('ID').toUpperCase().replace('ID', one),
			'escaped twice': (one) => escapedAt(one, escaped(escaped(one[at]))),
			'an escape cut off': (one) => `${address(one)}%2`,
			'no escape': (one) => `${address(one)}%zz`,
			NUL: (one) => `${address(one)}%00`,
			'NUL within': (one) => address(`${one}%00`),
			'no UTF-8': (one) => address(`${one}%ff`),
			'overlong UTF-8': (one) => escapedAt(one, `%c1%${(0x80 | (one.charCodeAt(at) & 63)).toString(16)}`),
			'wide letters': (one) => escapedAt(one, encodeURIComponent(String.fromCharCode(one.charCodeAt(at) + 0xfee0))),
			'the other form': (one) => address(one).replace(/(\.\w+)?$/, '.ods'),
		};
		for (const [what, change] of Object.entries(changes)) {
			const [[near], [far]] = await Promise.all([id, unknown].map((one) => ask([head('GET', change(one))])));
			assert.deepEqual(near, far, `${name}: ${what}: ${change(id)}`);
			assert.ok(near.status === 404 || (near.status === 400 && /NUL|escape/.test(what)), `${name}: ${what}: ${near.text}`);
		}
		// For people, an error is a page.
		const pages = await ask([form.make(), ...nearMisses(id, form).slice(0, 10)].map((one) => head('GET', address(one), { Accept: 'text/html' })));
		for (const page of pages) assert.deepEqual([page.status, page.text], [404, pages[0].text], name);
		// The same address, written in another way, is the same.
		const equal = [address(id), escapedAt(id, escaped(id[at])), escapedAt(id, escaped(id[at], (digits) => digits.toUpperCase())), address(escaped(id)), `${address(id)}?`];
		const same = await ask(equal.map((target) => head('GET', target)));
		for (const [i, answer] of same.entries()) assert.equal(answer.status, 200, `${name}: ${equal[i]}`);
	}
});

test('links that are unknown, expired, revoked, blocked or in the trash answer alike', async () => {
	const sheets = { valid: fid, expired: fid, revoked: fid, blocked: fid, trashed: await newSheet(gateway, anna) };
	const feeds = { ...sheets, ...Object.fromEntries(['valid', 'expired', 'revoked', 'blocked'].map((state) => [state, calendar])) };
	for (const [where, values] of [[sheets, {}], [sheets, { password }], [sheets, { role: 'editor' }], [sheets, { ref: 'A1:B2' }], [feeds, {}]]) {
		const links = {};
		for (const [state, sheet] of Object.entries(where)) if (state !== 'trashed') links[state] = await link(sheet, values);
		links.trashed = await link(sheets.trashed, values);
		await cluster.psql(`UPDATE sheet.link SET expires_at = created_at WHERE link_id = ${links.expired.link};
			SELECT sheet.change_link(${links.blocked.link}, blocked => true), sheet.revoke_link(${links.revoked.link}), sheet.trash(${sheets.trashed})`);
		const sequences = {
			'without a password': (key) => [sent('POST', '/v2/link', { link: key, name: 'Zoe' })],
			'with a password': (key) => [sent('POST', '/v2/link', { link: key, name: 'Zoe', password })],
			'with a bad name': (key) => ['', ' ', 'x'.repeat(51), '\u0001'].map((name) => sent('POST', '/v2/link', { link: key, name })),
			'with many passwords': (key) => Array.from({ length: 14 }, (_, i) => sent('POST', '/v2/link', { link: key, name: 'Zoe', password: `wrong ${i}` })),
			'by an account': (key) => [sent('POST', `/v2/sheets/${fid}/open`, { link: key }, signedIn(eve))],
			'published': (key) => ['', '.csv', '.tsv', '.json'].map((end) => head('GET', `/s/${key}${end}`)),
			'as a feed': (key) => [head('GET', `/cal/${key}.ics`)],
		};
		for (const [what, requests] of Object.entries(sequences)) {
			const told = async (key) => (await ask(requests(key))).map(({ status, text }) => ({ status, text: text.replace(/(try again in|retry-after:) \d+/gi, '$1 N') }));
			const unknown = await told(forms.key.make());
			assert.ok(unknown.every(({ status }) => [400, 403, 404, 429].includes(status)), JSON.stringify(unknown));
			for (const [state, { key }] of Object.entries(links)) if (state !== 'valid') assert.deepEqual(await told(key), unknown, `${JSON.stringify(values)} ${what}: ${state}`);
		}
		const [valid] = await ask([sent('POST', '/v2/link', { link: links.valid.key, name: 'Zoe', password })]);
		assert.equal(valid.status, 200, valid.text);
		await cluster.psql(`SELECT sheet.recover(${sheets.trashed})`);
	}
});

test(`${guesses} guesses find nothing and leave nothing behind`, async (t) => {
	const kept = 64; // bytes for each guess: what must not go unnoticed in the long form
	const counts = new Map(kinds.map(({ name }) => [name, { asked: 0, refused: 0 }]));
	let left;
	let turn;
	const guess = async () => {
		while (left > 0) {
			const kind = kinds[turn++ % kinds.length];
			const ids = Array.from({ length: Math.min(kind.alone ? 8 : pipelined, left) }, kind.form.make);
			left -= ids.length;
			const count = counts.get(kind.name);
			for (const [i, answer] of (await askFor(kind, ids)).entries()) {
				count.asked++;
				if (isRefused(answer)) count.refused++;
				else if (answer.text !== kind.unknown.text || answer.status !== kind.unknown.status) assert.deepEqual(answer, kind.unknown, `${kind.name}: ${ids[i]}`);
			}
		}
	};
	const run = async (number) => {
		[left, turn] = [number, 0];
		await Promise.all(Array.from({ length: connections }, guess));
	};
	await run(Math.min(guesses / 5, 20000)); // what all requests need
	const before = gateway.memory();
	const begun = Date.now();
	await run(guesses);
	const seconds = (Date.now() - begun) / 1000;
	const grown = (gateway.memory() - before) * 1024;
	t.diagnostic(`${guesses} guesses in ${seconds.toFixed(1)} s; the gateway has grown by ${(grown / MB).toFixed(1)} MB to ${(gateway.memory() / 1024).toFixed(0)} MB`);
	for (const [name, { asked, refused }] of counts) {
		t.diagnostic(`${name}: ${asked} asked, ${refused} refused`);
		assert.ok(asked > 0 && refused < asked / 20, `${name}: ${refused} of ${asked} were refused before anybody looked`);
	}
	assert.ok(grown < Math.max(16 * MB, (kept * guesses) / 2), `it has grown by ${grown} bytes`);
	await checkReal();
});

test('one network that guesses access tokens is refused, and others are not', async () => {
	const localAddress = nextAddress();
	const kind = kinds.find(({ name }) => name === 'access token');
	const answers = await ask(Array.from({ length: 200 }, () => kind.request(kind.form.make())), { localAddress });
	const found = answers.filter(({ status }) => status === 401).length;
	assert.ok(found >= 60 && found < 80, `${found} were looked up`);
	assert.equal(answers.filter(isRefused).length, 200 - found);
	assert.equal((await ask([kind.request(kind.id)]))[0].status, 200);
});
