/* Accounts under attack: guessing, floods of logins, names that deceive, revoked tokens; who may do what with a sheet. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { Editor, call, login, newSheet, post, refused, register, request, shareByLink, tokenClaims, uniqueName } from '../lib/client.mjs';
import { RawClient } from '../lib/v2.mjs';

let cluster;
let gateway;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'trusted-proxies': '127.0.0.0/8,10.0.0.0/8' } });
	[gateway] = cluster.gateways;
});
after(() => cluster?.stop());

/** A request that a trusted proxy forwards from this address. */
const from = (address, path, body, headers = {}) =>
	post(gateway, path, body, { headers: { 'x-forwarded-for': address, ...headers }, timeoutMs: 60000 });

describe('the session of a browser', () => {
	test('goes on in a new tab by a cookie that only /v2/session accepts, and ends by signing out', async () => {
		const user = await register(gateway);
		const answer = await post(gateway, '/login', { username: user.username, password: user.password });
		const cookies = answer.headers['set-cookie'];
		const session = cookies.find((cookie) => cookie.startsWith('pg_sheet_session='));
		assert.match(session, /^pg_sheet_session=[^;]+; Path=\/v2\/session; HttpOnly; SameSite=Strict$/);
		const headers = { cookie: session.split(';')[0] };
		const again = await post(gateway, '/v2/session', {}, { headers });
		assert.equal(again.status, 200);
		assert.equal(again.headers['cache-control'], 'no-store');
		assert.deepEqual([again.json.username, again.json.token], [user.username, answer.json.data.token]);
		assert.equal((await post(gateway, '/v2/session', {}, { headers: { ...headers, origin: gateway.url } })).status, 200);
		for (const origin of ['http://elsewhere.example', 'null', `http://127.0.0.1:${gateway.port + 1}`])
			assert.equal((await post(gateway, '/v2/session', {}, { headers: { ...headers, origin } })).status, 403, origin);
		const none = await post(gateway, '/v2/session', {});
		assert.deepEqual([none.status, none.text], [204, ''], 'a browser without a session');
		assert.equal((await post(gateway, '/v2/session', {}, { headers: { cookie: 'pg_sheet_session=nonsense' } })).status, 401);
		assert.equal((await post(gateway, '/getuser', {}, { headers })).json.msg, 1);
		const end = await post(gateway, '/v2/session/end', {}, { headers });
		assert.ok(end.headers['set-cookie'].every((cookie) => /=; Path=.*Max-Age=0$/.test(cookie)), end.headers['set-cookie']);
	});

	/** Headers of requests that no page of this gateway sends, or that may be those of a form of another one. */
	const foreign = () => [
		...['http://elsewhere.example', 'null', `http://127.0.0.1:${gateway.port + 1}`, `https://${gateway.host}`.replace(/\d+$/, gateway.port + 1)].map((origin) => ({ origin })),
		{ origin: 'null', 'content-type': 'text/plain' },
		{ 'sec-fetch-site': 'cross-site' },
		{ 'sec-fetch-site': 'same-site' },
		{ origin: gateway.url, 'sec-fetch-site': 'cross-site' },
		{ origin: 'http://elsewhere.example', 'sec-fetch-site': 'same-origin' },
		...['text/plain', 'application/x-www-form-urlencoded', 'text/plain; application/json', 'application/jsonp'].map((type) => ({ 'content-type': type })),
	];
	const own = () => [
		{},
		{ 'content-type': 'Application/JSON; charset=utf-8' },
		{ origin: gateway.url },
		{ origin: gateway.url, 'sec-fetch-site': 'same-origin', 'content-type': 'text/plain' },
		{ 'sec-fetch-site': 'same-origin', 'content-type': 'text/plain' },
	];

	test('begins and ends by pages of this gateway only: others get tokens without cookies', async () => {
		const user = await register(gateway);
		const signIns = {
			'/login': () => ({ username: user.username, password: user.password }),
			'/register': () => ({ username: uniqueName(), password: 'x', email: '' }),
			'/modifyuserauth': () => ({ token: user.token, password: user.password, oldPassword: user.password }),
			'/v2/account/password': () => ({ token: user.token, password: user.password, oldPassword: user.password }),
			'/v2/account/revoke': () => ({ token: user.token }),
		};
		const ask = async (path, headers) => {
			const answer = await post(gateway, path, signIns[path](), { headers });
			assert.equal(answer.status, 200, `${path} ${answer.text}`);
			assert.equal(answer.headers['cache-control'], 'no-store');
			if (!/login|register/.test(path)) user.token = answer.json.token ?? answer.json.data;
			return (answer.headers['set-cookie'] ?? []).map((cookie) => cookie.split('=')[0]).sort();
		};
		for (const path of Object.keys(signIns)) {
			for (const headers of path === '/login' ? foreign() : foreign().slice(0, 2)) assert.deepEqual(await ask(path, headers), [], `${path} ${JSON.stringify(headers)}`);
			for (const headers of path === '/login' ? own() : own().slice(-1)) assert.deepEqual(await ask(path, headers), ['pg_sheet_device', 'pg_sheet_files', 'pg_sheet_session'], `${path} ${JSON.stringify(headers)}`);
		}
		for (const path of ['/v2/session', '/v2/session/end']) {
			const cookie = `pg_sheet_session=${user.token}`;
			for (const headers of foreign()) {
				const answer = await post(gateway, path, {}, { headers: { cookie, ...headers } });
				assert.deepEqual([answer.status, answer.headers['set-cookie']], [403, undefined], `${path} ${JSON.stringify(headers)}`);
			}
			if (path === '/v2/session')
				for (const headers of own()) assert.equal((await post(gateway, path, {}, { headers: { cookie, ...headers } })).status, 200, JSON.stringify(headers));
		}
		const ticket = await post(gateway, '/v2/ticket', { token: user.token, fid: 1 });
		assert.deepEqual([ticket.status, ticket.headers['cache-control']], [200, 'no-store']);
	});

	test('pages of allowed origins get cookies, and do not get the token by them', async () => {
		const other = await cluster.addGateway({ 'allowed-origins': 'https://sheets.example.org', coordinator: 'zookeeper', 'zookeeper-hosts': '127.0.0.1:1' }, { ready: '/livez' });
		const headers = { origin: 'https://sheets.example.org', 'sec-fetch-site': 'same-site' };
		const user = await register(gateway);
		const answer = await post(other, '/login', { username: user.username, password: user.password }, { headers });
		assert.equal(answer.headers['set-cookie']?.length, 3);
		assert.equal((await post(other, '/v2/session', {}, { headers: { ...headers, cookie: `pg_sheet_session=${user.token}` } })).status, 403);
		const { token } = answer.json.data;
		await call(other, '/getuser', { token }, 10);
		await post(gateway, '/v2/session/end', { token });
		await waitUntil(async () => (await post(other, '/getuser', { token })).json.msg === 1, 'the other gateway to hear that the token is revoked', 4000);
		await call(other, '/getuser', { token: user.token }, 10);
		await other.stop();
	});

	test('signing out revokes the token wherever it is used, and no other', async () => {
		const user = await register(gateway);
		const fid = await newSheet(gateway, user);
		const [first, second, third] = await Promise.all([1, 2, 3].map(async () => ({ ...user, token: (await login(gateway, user)).token })));
		const ticket = (await post(gateway, '/v2/ticket', { token: first.token, fid })).json.ticket;
		const [v1, v2, kept] = [await Editor.open(gateway, first, fid), await RawClient.open(gateway, first, fid), await Editor.open(gateway, second, fid)];
		await call(gateway, '/getuser', { token: first.token }, 10);
		const end = (token, cookie) =>
			post(gateway, '/v2/session/end', token ? { token } : {}, { headers: cookie ? { cookie: `pg_sheet_session=${cookie}` } : {} });
		const out = await end(first.token, first.token);
		assert.deepEqual([out.status, out.headers['set-cookie'].length], [200, 2]);
		for (const closed of [await v1.waitClosed(), await v2.waitClosed()]) assert.deepEqual(closed, { code: 4401, reason: 'the token has been revoked' });
		await refused(gateway, '/getuser', { token: first.token }, 1);
		assert.equal((await post(gateway, '/v2/ticket', { token: first.token, fid })).status, 401);
		assert.equal((await post(gateway, '/v2/session', {}, { headers: { cookie: `pg_sheet_session=${first.token}` } })).status, 401);
		const late = new Editor(gateway, null, fid, { path: `/sheetws?ticket=${ticket}&fid=${fid}` });
		await late.opened;
		assert.equal((await late.waitClosed()).code, 4401, 'a ticket of the token');
		await kept.settle();
		await kept.close();
		assert.equal((await end(first.token)).status, 200, 'again');
		assert.equal((await end('nonsense')).status, 200);
		const stranger = await register(gateway);
		assert.equal((await end(second.token, stranger.token)).headers['set-cookie'], undefined, 'somebody else has signed in with this browser');
		await call(gateway, '/getuser', { token: stranger.token }, 10);
		await refused(gateway, '/getuser', { token: second.token }, 1);
		await call(gateway, '/getuser', { token: third.token }, 10);
		await end(null, third.token);
		await refused(gateway, '/getuser', { token: third.token }, 1);
		await call(gateway, '/getuser', { token: user.token }, 10);
		// What is kept of it is bounded: an account with a thousand of them gets new tokens.
		await cluster.psql(`SELECT count(sheet.account_revoke_token(${user.uid}, n, extract(epoch FROM now())::bigint + 600)) FROM generate_series(1, 1000) n`);
		assert.equal(await cluster.psql(`SELECT count(*) < 1000 FROM sheet.revoked_token WHERE uid = ${user.uid}`), 't');
		await refused(gateway, '/getuser', { token: user.token }, 1);
	});

	test('ends with the tokens of the account', async () => {
		const user = await register(gateway);
		const headers = { cookie: `pg_sheet_session=${user.token}` };
		assert.equal((await post(gateway, '/v2/session', {}, { headers })).status, 200);
		await post(gateway, '/v2/account/revoke', { token: user.token });
		assert.equal((await post(gateway, '/v2/session', {}, { headers })).status, 401);
	});
});

describe('registration', () => {
	test('200 at once, some of them twice: each name once, each its own identity', async () => {
		const unique = [...Array(160)].map(() => uniqueName('crowd'));
		const names = [...unique, ...unique.slice(0, 40)];
		const answers = await Promise.all(
			names.map((username) =>
				post(gateway, '/register', { username, password: `pw ${username}`, email: '' }, { timeoutMs: 60000 }),
			),
		);
		const tokens = new Map();
		let taken = 0;
		answers.forEach(({ json, text }, i) => {
			assert.ok(json?.msg === 5 || json?.msg === 6, text);
			if (json.msg === 6) taken++;
			else {
				assert.ok(!tokens.has(names[i]), `${names[i]} was given out twice`);
				tokens.set(names[i], json.data);
			}
		});
		assert.equal(taken, 40);
		assert.equal(tokens.size, 160);
		await Promise.all(
			[...tokens].map(async ([username, token]) => {
				const user = await call(gateway, '/getuser', { token }, 10);
				assert.deepEqual([user.username, user.uid], [username, tokenClaims(token).uid]);
			}),
		);
		for (const username of unique.slice(30, 50)) {
			const { token, info } = await login(gateway, { username, password: `pw ${username}` });
			assert.equal(info.uid, tokenClaims(tokens.get(username)).uid);
			assert.equal((await call(gateway, '/getuser', { token }, 10)).username, username);
		}
		assert.equal(await cluster.psql("SELECT count(*) FROM sheet.account WHERE name LIKE 'crowd-%'"), '160');
	});

	test('names are in any script; what cannot be seen is refused with a reason', async () => {
		for (const username of ['Zoë Åström', '李小龍', 'محمد', 'נעמי', 'नमस्ते', "O'Brien #1 <x> \\ \"", '𝔘 😀', 'ns#1#2']) {
			const user = await register(gateway, username);
			assert.equal((await login(gateway, user)).info.username, username);
		}
		for (const [username, reason] of [
			['a\u202eb', /direction.*U\+202E|direction/],
			['a\u2066b', /direction/],
			['a\u200bb', /width/],
			['a\u200db', /width/],
			['\ufeffa', /width/],
			['a\u00adb', /format/],
			['a\u0007b', /control/],
			['a\u2028b', /separator/],
			['a\ue000b', /private/],
			[' a', /white space/],
			['a ', /white space/],
			['a\u3164', /blank/],
			['', /1 to 100/],
			['x'.repeat(101), /1 to 100/],
		]) {
			const body = { username, password: 'long enough', email: '' };
			const answer = await post(gateway, '/register', body);
			assert.equal(answer.status, 400, `${JSON.stringify(username)}: ${answer.text}`);
			assert.match(answer.json.data, reason);
			const user = await register(gateway);
			assert.equal((await post(gateway, '/modifyuser', { token: user.token, username })).status, 400);
		}
	});

	test('a name is one name however its accents are typed', async () => {
		const composed = `${uniqueName('no')}\u00e9l`;
		const decomposed = composed.normalize('NFD');
		assert.notEqual(composed, decomposed);
		const user = await register(gateway, decomposed);
		await refused(gateway, '/register', { username: composed, password: 'other', email: '' }, 6);
		for (const username of [composed, decomposed])
			assert.equal((await login(gateway, { username, password: user.password })).info.username, composed);
	});
});

describe('guessing', () => {
	test('an unknown name takes as long as a wrong password', async () => {
		await gateway.stop();
		await gateway.start({ 'password-memory': '32MB' });
		const user = await register(gateway);
		// Of processor time: what others on the machine do is not in it.
		const took = async (username) => {
			const start = gateway.processorMs();
			await refused(gateway, '/login', { username, password: 'wrong' }, 3);
			return gateway.processorMs() - start;
		};
		const times = { known: [], unknown: [] };
		for (let i = 0; i < 7; i++) {
			times.known.push(await took(user.username));
			times.unknown.push(await took(uniqueName('nobody')));
		}
		const best = (list) => Math.min(...list);
		const ratio = best(times.unknown) / best(times.known);
		assert.ok(ratio > 0.6 && ratio < 1.7, `${JSON.stringify(times)} ms`);
		await gateway.stop();
		await gateway.start({ 'password-memory': '1MB' });
	});

	/** So many attempts at once; resolves to those that were answered, those that were refused, and how long it took. */
	async function attempts(count, attempt) {
		const start = Date.now();
		const answers = await Promise.all([...Array(count)].map((_, i) => attempt(i)));
		const limited = answers.filter(({ status }) => status === 429);
		return { limited, let: answers.filter(({ status }) => status !== 429), seconds: (Date.now() - start) / 1000 };
	}

	/** The right password of this client is not delayed, by two seconds: one of some answers comes earlier, also on a busy machine. */
	async function signsInAtOnce(what, address, body, headers) {
		const taken = [];
		const early = async () => {
			const start = performance.now();
			assert.equal((await from(address, '/login', body, headers)).json.msg, 4, what);
			return taken.push((performance.now() - start) / 1000) > 0 && taken.at(-1) < 2;
		};
		await waitUntil(early, () => `${what} to sign in at once; it took ${taken} s`);
	}

	for (const known of [true, false]) {
		test(`ten wrong passwords a minute on ${known ? 'an' : 'an unknown'} account from one network`, async () => {
			const username = known ? (await register(gateway)).username : uniqueName('nobody');
			const other = await register(gateway);
			const guess = (address, i) => from(address, '/login', { username, password: `guess ${i}` });
			const tried = await attempts(30, (i) => guess(i % 2 ? '192.0.2.1' : '2001:db8:1:2::1', i));
			assert.ok(tried.let.every(({ json }) => json.msg === 3));
			assert.ok(tried.let.length >= 20 && tried.let.length <= 20 + 2 * (tried.seconds / 6 + 1), `${tried.let.length} of 30`);
			for (const { json, headers } of tried.limited) {
				assert.equal(json.success, false);
				assert.match(json.data, /too many attempts: try again in \d s/);
				assert.match(headers['retry-after'], /^[1-7]$/);
			}
			// There is another attempt every six seconds, which a guess takes.
			const waits = async () => {
				await attempts(3, (i) => guess('192.0.2.1', i));
				return (await from('192.0.2.1', '/login', { username, password: `pw of ${username}` })).status === 429;
			};
			await waitUntil(waits, 'the right password to have to wait, too');
			await login(gateway, other);
		});
	}

	test('whoever guesses keeps nobody out: known networks and devices sign in at once, others a little later', async () => {
		const user = await register(gateway);
		const { username, password } = user;
		const timed = async (...args) => {
			const start = performance.now();
			const answer = await from(...args);
			return { msg: answer.json.msg, seconds: (performance.now() - start) / 1000 };
		};
		assert.equal((await timed('203.0.113.1', '/login', { username, password })).msg, 4);
		await attempts(30, (i) => from(`192.0.2.${i}`, '/login', { username, password: `guess ${i}` }));
		await signsInAtOnce('a known network', '203.0.113.1', { username, password });
		await signsInAtOnce('a device with a token, in the network of one who guesses', '192.0.2.1', { username, password, token: user.token });
		// The attempts of the account that have come back since are used up again.
		await attempts(30, (i) => from(`192.0.2.${i}`, '/login', { username, password: `guess ${i}` }));
		const forged = [undefined, user.token.slice(0, -2), (await register(gateway)).token];
		const strangers = await Promise.all(forged.map((token, i) => timed(`203.0.113.${90 + i}`, '/login', { username, password, token })));
		for (const { msg, seconds } of strangers) assert.ok(msg === 4 && seconds >= 2, `without a token of the account: ${seconds} s`);
	});

	test('who guesses in the network of the owner keeps out neither the owner nor a known device', async () => {
		const user = await register(gateway);
		const stranger = await register(gateway);
		const { username, password } = user;
		const office = '198.51.100.20';
		const registered = { username: uniqueName('colleague'), password: 'her own' };
		assert.equal((await from(office, '/register', { ...registered, email: '' })).json.msg, 5);
		const first = await from(office, '/login', { username, password });
		assert.equal(first.json.msg, 4);
		const guesses = await attempts(30, (i) => from(office, '/login', { username, password: `guess ${i}` }));
		assert.ok(guesses.let.every(({ json }) => json.msg === 3));
		assert.equal(guesses.limited.length, 0, 'guesses are delayed');
		const signIn = async (body, headers) => (await from(office, '/login', body, headers)).json.msg;
		assert.equal(await signIn({ username, password }), 4, 'the right password after them');
		// There is another attempt every second: what is used up before the answers, may be there after them.
		const usedUp = async () => {
			let refused;
			const asStranger = async () => {
				const answer = await from(office, '/login', { username: stranger.username, password: stranger.password });
				refused = answer.status === 429;
				return answer;
			};
			await attempts(61, (i) => (i < 60 ? from(office, '/login', { username: uniqueName('nobody'), password: 'x' }) : asStranger()));
			return refused;
		};
		await waitUntil(usedUp, 'the attempts of the address to be used up');
		assert.equal(await signIn({ username, password }), 4, 'not for who has signed in there');
		assert.equal(await signIn(registered), 4, 'or registered');
		const cookie = first.headers['set-cookie'].find((text) => text.startsWith('pg_sheet_device=')).split(';')[0];
		for (const [body, headers] of [[{}, { cookie }], [{ token: user.token }, {}]])
			await signsInAtOnce('a known device', office, { username, password, ...body }, headers);
		const changed = await from(office, '/v2/account/password', { token: user.token, oldPassword: password, password: 'another' });
		assert.equal(changed.status, 200, changed.text);
	});

	test('a flood of logins from some networks delays nobody else, and takes nobody’s place in the queue', async () => {
		await gateway.stop();
		await gateway.start({ 'password-memory': '64MB', 'password-queue': 60 });
		const user = await register(gateway);
		let answered = 0;
		const flood = Promise.all(
			Array.from({ length: 160 }, async (_, i) => {
				const { status } = await from(`192.0.2.${100 + (i % 8)}`, '/login', { username: uniqueName('nobody'), password: 'x' });
				answered += status === 200;
				return status;
			}),
		);
		await waitUntil(async () => answered > 8 && (await gateway.metrics()).pg_sheet_password_queue > 40, 'the queue to be full');
		const before_ = answered;
		const { json } = await from('192.0.2.200', '/login', user);
		const after_ = answered;
		assert.equal(json.msg, 4, JSON.stringify(json));
		assert.ok(after_ - before_ < 20, `${after_ - before_} passwords of the flood came before`);
		const statuses = await flood;
		assert.ok(statuses.every((status) => status === 200 || status === 503), `${statuses}`);
		await gateway.stop();
		await gateway.start({ 'password-memory': '1MB', 'password-queue': 256 });
	});

	test('an unknown name is nobody’s number', async () => {
		const user = await register(gateway);
		await attempts(15, () => from('192.0.2.7', '/login', { username: `#${user.uid}`, password: 'x' }));
		assert.equal((await from('192.0.2.7', '/login', { username: user.username, password: user.password })).json.msg, 4);
	});

	test('right passwords are not counted', async () => {
		const user = await register(gateway);
		for (let i = 0; i < 15; i++) await login(gateway, user);
	});

	test('sixty passwords a minute from an address; others are not concerned', async () => {
		const attempt = (address) => from(address, '/register', { username: '', password: 'x' });
		const start = Date.now();
		const tried = await attempts(100, () => attempt('198.51.100.7'));
		assert.ok(tried.let.every(({ status }) => status === 400));
		assert.ok(tried.let.length >= 60 && tried.let.length <= 60 + tried.seconds + 1, `${tried.let.length} of 100`);
		assert.ok(tried.limited.every(({ headers }) => headers['retry-after'] === '1'));
		assert.equal((await attempt('198.51.100.8')).status, 400);
		// What a client invents in front of its address does not help, nor does a chain of our own proxies.
		let count = tried.let.length;
		for (const forwarded of ['203.0.113.5, 198.51.100.7', '198.51.100.7, 10.1.2.3', 'nonsense, 198.51.100.7']) {
			count += (await attempts(60, () => attempt(forwarded))).let.length;
			assert.ok(count <= 60 + (Date.now() - start) / 1000 + 1, `${forwarded}: ${count}`);
		}
		// Whoever has an address of IPv6 has 2^64 of them.
		const many = await attempts(100, (i) => attempt(`2001:db8:0:1::${(i + 1).toString(16)}`));
		assert.ok(many.let.length >= 60 && many.let.length <= 60 + many.seconds + 1, `${many.let.length} of 100`);
		const metrics = await gateway.metrics();
		assert.ok(metrics['pg_sheet_refused_total{reason="attempts_address"}'] >= 3);
		assert.ok(metrics['pg_sheet_refused_total{reason="attempts_account"}'] >= 2);
	});

	test('when many passwords wait, more are refused and told when to come again', async () => {
		await gateway.stop();
		await gateway.start({ 'password-queue': 2, 'attempts-per-account': 0, 'password-memory': '32MB' });
		const user = await register(gateway);
		const answers = await Promise.all([...Array(30)].map(() => post(gateway, '/login', user, { timeoutMs: 60000 })));
		const busy = answers.filter(({ status }) => status === 503);
		assert.ok(busy.length >= 10, `${busy.length} of 30 were refused`);
		assert.ok(busy.every(({ headers, json }) => headers['retry-after'] === '2' && /try again/.test(json.data)));
		assert.ok(answers.filter(({ json }) => json.msg === 4).length >= 2, 'those who came first are served');
		assert.ok(answers.every(({ status }) => status === 200 || status === 503));
		await login(gateway, user);
		await gateway.stop();
		await gateway.start({ 'password-queue': 256, 'attempts-per-account': 10, 'password-memory': '1MB' });
	});
});

describe('tokens are revoked', () => {
	/** `change` revokes user's tokens; his live editor is closed with 4401, and nobody else's. */
	async function revokes(change) {
		const [user, other] = [await register(gateway), await register(gateway)];
		const fid = await newSheet(gateway, user);
		const [mine, second, theirs] = [
			await Editor.open(gateway, user, fid),
			await Editor.open(gateway, user, fid),
			await Editor.open(gateway, other, fid),
		];
		await change(user);
		for (const editor of [mine, second]) {
			const { code, reason } = await editor.waitClosed();
			assert.equal(code, 4401);
			assert.match(reason, /revoked/);
		}
		await refused(gateway, '/getuser', { token: user.token }, 1);
		await theirs.settle();
		await theirs.close();
		return user;
	}

	test('by a changed password', () =>
		revokes((user) => call(gateway, '/modifyuserauth', { token: user.token, password: 'another one' }, 8)));

	test('by SQL', () =>
		revokes((user) => cluster.psql(`SELECT sheet.account_set_password(${user.uid}, 'no hash at all')`)));

	test('by a changed password in v2, which answers with a new token', async () => {
		let token;
		const user = await revokes(async ({ token: old, password }) => {
			const answer = await post(gateway, '/v2/account/password', {
				token: old,
				oldPassword: password,
				password: 'another one',
			});
			assert.equal(answer.status, 200, answer.text);
			token = answer.json.token;
		});
		assert.equal((await call(gateway, '/getuser', { token }, 10)).uid, user.uid);
	});

	test('all of them, on demand', async () => {
		let token;
		await revokes(async ({ token: old }) => {
			const answer = await post(gateway, '/v2/account/revoke', { token: old });
			assert.equal(answer.status, 200, answer.text);
			token = answer.json.token;
		});
		await call(gateway, '/getuser', { token }, 10);
	});

	test('when the gateway could not ask the database at first: as soon as it can', () =>
		revokes(async (user) => {
			const reads = "FROM pg_stat_activity WHERE application_name LIKE 'pg_sheet reads%'";
			const failures = () => readFileSync(cluster.postgres.log, 'utf8').split('canceling statement due to lock timeout').length;
			const [change, lock] = [cluster.psqlSession(), cluster.psqlSession()];
			const before = failures();
			await change.query(`BEGIN; SELECT sheet.account_set_password(${user.uid}, 'x')`);
			// Whoever locks the table behind the change is in front of the gateway's question, which the commit causes.
			const locked = lock.query('BEGIN; LOCK TABLE sheet.account IN ACCESS EXCLUSIVE MODE');
			await waitUntil(
				() => cluster.psql("SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted"),
				'the lock to be waited for',
			);
			await change.query('COMMIT');
			await locked;
			await waitUntil(() => failures() > before, 'the question to fail');
			await cluster.psql(`SELECT pg_terminate_backend(pid) ${reads}`);
			await lock.query('COMMIT');
			await Promise.all([change.close(), lock.close()]);
		}));
});

test('routes of protocol v2 answer 401 to a token that is not valid, those of v1 msg 1', async () => {
	const user = await register(gateway);
	const fid = await newSheet(gateway, user);
	const old = user.token;
	user.token = (await post(gateway, '/v2/account/revoke', { token: old })).json.token;
	for (const token of [undefined, '', 'nonsense', `${user.token}x`, old]) {
		for (const [path, members] of [
			['/v2/ticket', { fid }],
			['/v2/account/revoke', {}],
			['/v2/account/password', { password: 'x', oldPassword: 'x' }],
			[`/v2/sheets/${fid}/open`, { link: 'x' }],
		]) {
			const answer = await post(gateway, path, { token, ...members });
			assert.deepEqual([answer.status, answer.headers['www-authenticate'], answer.json.success], [401, 'Bearer', false], `${path} ${token} ${answer.text}`);
		}
		for (const what of ['route', 'log', 'versions', 'cells?range=A1'])
			for (const headers of [{}, { authorization: `Bearer ${token}` }])
				assert.equal((await request(gateway, 'GET', `/v2/sheets/${fid}/${what}`, { headers })).status, 401, what);
		await refused(gateway, '/getuser', { token }, 1);
	}
});

describe('a password is changed', () => {
	test('only with the right old one, when it is given or v2 is spoken', async () => {
		const user = await register(gateway);
		const { token } = user;
		await refused(gateway, '/modifyuserauth', { token, oldPassword: 'wrong', password: 'new' }, 3);
		for (const [body, status] of [
			[{ token, oldPassword: 'wrong', password: 'new' }, 403],
			[{ token, password: 'new' }, 400],
			[{ token, oldPassword: 5, password: 'new' }, 400],
			[{ token, oldPassword: user.password, password: '' }, 400],
			[{ token, oldPassword: user.password, password: 'x'.repeat(1025) }, 400],
		])
			assert.equal((await post(gateway, '/v2/account/password', body)).status, status, JSON.stringify(body));
		assert.equal((await post(gateway, '/modifyuserauth', { token, password: '' })).status, 400);
		await login(gateway, user);
		const fresh = await call(gateway, '/modifyuserauth', { token, oldPassword: user.password, password: 'new' }, 8);
		await call(gateway, '/getuser', { token: fresh }, 10);
		await refused(gateway, '/getuser', { token }, 1);
		await login(gateway, { username: user.username, password: 'new' });
	});

	test('guesses of the old one are limited like logins', async () => {
		const { token } = await register(gateway);
		const guesses = await Promise.all(
			[...Array(30)].map(() =>
				post(gateway, '/v2/account/password', { token, oldPassword: 'wrong', password: 'new' }),
			),
		);
		const count = (status) => guesses.filter((answer) => answer.status === status).length;
		assert.ok(count(403) >= 10 && count(429) >= 10 && count(403) + count(429) === 30);
	});
});

describe('roles', () => {
	let owner;
	let guest;
	let fid;
	before(async () => {
		[owner, guest] = [await register(gateway), await register(gateway)];
		fid = await newSheet(gateway, owner);
		await call(gateway, '/sharelink', { token: owner.token, fid, role: null }, 12);
	});

	const share = (role, user = guest) => post(gateway, '/sharesheet', { token: owner.token, fid, username: user.username, role });
	const opens = () => post(gateway, '/getsheet', { token: guest.token, fid });

	/** The live editor may (not) change a cell. */
	async function edits() {
		const editor = await Editor.open(gateway, guest, fid, { nack: true });
		editor.modify(1, 1, uniqueName('cell'));
		const { msgType } = await editor.next(({ msgType }) => msgType === 'modify' || msgType === 'refused');
		await editor.close();
		return msgType === 'modify';
	}

	test('by user: none, viewer, editor, none again', async () => {
		assert.equal((await opens()).json.msg, 13);
		assert.equal((await share('viewer')).json.success, true);
		assert.equal((await opens()).json.msg, 12);
		assert.equal(await edits(), false);
		await refused(gateway, '/commitsheet', { token: guest.token, fid }, 13);
		assert.equal((await share('editor')).json.success, true);
		assert.equal(await edits(), true);
		for (const route of ['/deletesheet', '/sharelink'])
			await refused(gateway, route, { token: guest.token, fid, role: 'editor' }, 13);
		await refused(gateway, '/sharesheet', { token: guest.token, fid, username: guest.username, role: 'editor' }, 13);
		assert.equal((await share(null)).json.success, true);
		assert.equal((await opens()).json.msg, 13);
	});

	test('by link: whoever has opened it has its role, at once and while it lasts', async () => {
		await shareByLink(gateway, owner, fid, 'viewer', guest);
		assert.equal(await edits(), false);
		const link = await shareByLink(gateway, owner, fid, 'editor');
		assert.equal((await opens()).json.msg, 13, 'a new link ends the one before it');
		const open = () => post(gateway, `/v2/sheets/${fid}/open`, { token: guest.token, link });
		assert.equal((await open()).status, 200);
		const editor = await Editor.open(gateway, guest, fid, { nack: true });
		await editor.settle(2, 2);
		assert.equal((await share('viewer')).json.success, true);
		assert.equal(await edits(), true, 'the higher role counts');
		assert.equal((await post(gateway, '/sharelink', { token: owner.token, fid, role: null })).json.data, null);
		const edited = async () => {
			editor.modify(2, 2, uniqueName('late'));
			return (await editor.next(({ msgType }) => msgType === 'modify' || msgType === 'refused')).msgType === 'modify';
		};
		await waitUntil(async () => !(await edited()), 'the editor to become a viewer');
		assert.equal((await share(null)).json.success, true);
		assert.equal((await editor.waitClosed()).code, 4403);
		assert.equal((await opens()).json.msg, 13);
	});

	test('a role that there is not, and an account that there is not, are told apart', async () => {
		for (const role of ['owner', 'admin', '']) assert.equal((await share(role)).status, 400);
		const answer = await share('viewer', { username: uniqueName('nobody') });
		assert.equal(answer.status, 404, answer.text);
		assert.match(answer.json.data, /account.*does not exist/);
		await refused(gateway, '/sharesheet', { token: owner.token, fid: 999999, username: guest.username, role: 'viewer' }, 14);
	});
});
