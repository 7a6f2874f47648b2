/* HTTP of v1: accounts, tokens, and requests that are not what they should be. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import net from 'node:net';
import { Cluster } from '../lib/cluster.mjs';
import {
	call,
	login,
	newSheet,
	post,
	register,
	request,
	signToken,
	tokenParts,
	uniqueName,
	unsignedToken,
} from '../lib/client.mjs';
import * as client from '../lib/client.mjs';

let cluster;
let gateway;

before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'max-body-bytes': 262144 } });
	[gateway] = cluster.gateways;
});
after(() => cluster?.stop());

const refused = (path, body, msg) => client.refused(gateway, path, body, msg);
const malformed = (path, body, headers) => client.malformed(gateway, path, body, headers);

describe('accounts', () => {
	test('register, login, getuser', async () => {
		const username = uniqueName('anna');
		const body = { username, password: 'correct horse', email: 'anna@example.org' };
		const first = await post(gateway, '/register', body);
		assert.equal(first.status, 200);
		assert.match(first.headers['content-type'], /^application\/json/);
		assert.deepEqual(Object.keys(first.json).sort(), ['data', 'msg', 'success']);
		assert.equal(first.json.success, true);
		assert.equal(first.json.msg, 5);
		assert.equal(first.json.data.split('.').length, 3, 'data is a token');
		await refused('/register', body, 6);

		const data = await call(gateway, '/login', { username, password: 'correct horse' }, 4);
		assert.deepEqual(Object.keys(data).sort(), ['info', 'token']);
		assert.deepEqual(Object.keys(data.info).sort(), ['sheets', 'uid', 'username']);
		assert.equal(data.info.username, username);
		assert.deepEqual(data.info.sheets, []);
		assert.ok(Number.isSafeInteger(data.info.uid));

		const user = await call(gateway, '/getuser', { token: data.token }, 10);
		assert.deepEqual(user, data.info);
	});

	test('wrong password and unknown user are answered alike', async () => {
		const user = await register(gateway);
		const wrong = await post(gateway, '/login', { username: user.username, password: 'wrong' });
		const unknown = await post(gateway, '/login', { username: uniqueName('nobody'), password: 'wrong' });
		assert.equal(wrong.json.msg, 3);
		assert.equal(wrong.text, unknown.text);
	});

	test('the reference installed test users with known passwords; we do not', async () => {
		for (const name of ['test', 'test1', 'admin']) await refused('/login', { username: name, password: name }, 3);
	});

	test('names are unique, also when registered at the same time', async () => {
		const username = uniqueName('race');
		const answers = await Promise.all(
			[...Array(8)].map((_, i) => post(gateway, '/register', { username, password: `password ${i}`, email: '' })),
		);
		const messages = answers.map((answer) => answer.json.msg).sort();
		assert.deepEqual(messages, [5, 6, 6, 6, 6, 6, 6, 6]);
	});

	test('every new account gets its own identity', async () => {
		const users = await Promise.all([...Array(10)].map(() => register(gateway)));
		assert.equal(new Set(users.map((user) => user.uid)).size, 10);
		for (const user of users) {
			const info = await call(gateway, '/getuser', { token: user.token }, 10);
			assert.deepEqual([info.uid, info.username], [user.uid, user.username]);
		}
	});

	test('passwords are stored as salted scrypt hashes', async () => {
		const [a, b] = [
			await register(gateway, uniqueName(), 'same password'),
			await register(gateway, uniqueName(), 'same password'),
		];
		const hashes = (
			await cluster.rows(`SELECT password_hash FROM sheet.account WHERE uid IN (${a.uid}, ${b.uid})`)
		).map((row) => row.password_hash);
		assert.notEqual(hashes[0], hashes[1]);
		for (const hash of hashes) {
			assert.match(hash, /^\$scrypt\$/);
			assert.ok(!hash.includes('same'));
		}
	});

	test('modifyuser renames, and keeps what one owns', async () => {
		const [anna, ben] = [await register(gateway), await register(gateway)];
		const fid = await newSheet(gateway, anna);
		const username = uniqueName('renamed');
		assert.equal(await call(gateway, '/modifyuser', { token: anna.token, username }, 7), null);
		await refused('/modifyuser', { token: anna.token, username: ben.username }, 9);
		const info = await call(gateway, '/getuser', { token: anna.token }, 10);
		assert.equal(info.username, username);
		assert.equal(info.sheets[0].fid, fid);
		assert.equal(info.sheets[0].owner, username);
		await login(gateway, { username, password: anna.password });
	});

	test('modifyuserauth changes the password, revokes older tokens and answers with a new one', async () => {
		const user = await register(gateway);
		const fresh = await call(gateway, '/modifyuserauth', { token: user.token, password: 'another one' }, 8);
		await call(gateway, '/getuser', { token: fresh }, 10);
		await refused('/login', { username: user.username, password: user.password }, 3);
		const { token } = await login(gateway, { username: user.username, password: 'another one' });
		await call(gateway, '/getuser', { token }, 10);
		await refused('/getuser', { token: user.token }, 1);
	});
});

describe('tokens', () => {
	let user;
	before(async () => {
		user = await register(gateway);
	});

	const withToken = (token) => post(gateway, '/getuser', { token });

	test('are HS256 with uid, iat, exp', () => {
		const { header, claims } = tokenParts(user.token);
		assert.equal(header.alg, 'HS256');
		assert.ok(claims.exp > claims.iat);
		assert.ok(Math.abs(claims.iat - Date.now() / 1000) < 60);
		assert.ok(Number.isSafeInteger(claims.uid));
	});

	test('a token made with the shared key is good', async () => {
		const { header, claims } = tokenParts(user.token);
		const answer = await withToken(signToken(header, claims, cluster.jwtKey));
		assert.equal(answer.json.msg, 10, answer.text);
	});

	test('forged, expired, unsigned and mangled ones are refused with msg 1', async () => {
		const { header, claims, signature } = tokenParts(user.token);
		const [head, body] = user.token.split('.');
		const now = Math.floor(Date.now() / 1000);
		const tokens = {
			'signed with another key': signToken(header, claims, 'f'.repeat(63) + '0'),
			expired: signToken(header, { ...claims, iat: now - 7200, exp: now - 3600 }, cluster.jwtKey),
			'alg none': unsignedToken({ ...header, alg: 'none' }, claims),
			'alg none with a signature': unsignedToken({ ...header, alg: 'none' }, claims, signature),
			'alg None': unsignedToken({ ...header, alg: 'nOnE' }, claims),
			'alg HS512': signToken({ ...header, alg: 'HS512' }, claims, cluster.jwtKey, 'sha512'),
			'stripped signature': `${head}.${body}.`,
			'no signature part': `${head}.${body}`,
			'another uid under the old signature': unsignedToken(header, { ...claims, uid: claims.uid + 1 }, signature),
			'unknown kid': signToken({ ...header, kid: 'other' }, claims, cluster.jwtKey),
			'no exp': signToken(header, { uid: claims.uid, gen: claims.gen, iat: claims.iat }, cluster.jwtKey),
			'uid as text': signToken(header, { ...claims, uid: String(claims.uid) }, cluster.jwtKey),
			'unknown uid': signToken(header, { ...claims, uid: 999999999 }, cluster.jwtKey),
			'newer generation': signToken(header, { ...claims, gen: 77 }, cluster.jwtKey),
			'one character changed': user.token.slice(0, -2) + (user.token.at(-2) === 'A' ? 'B' : 'A') + user.token.at(-1),
			'base64 padding added': `${user.token}=`,
			'more parts': `${user.token}.x`,
			empty: '',
			'only dots': '..',
			text: 'not a token',
			'a hard-coded 64-digit token': '1'.repeat(64),
			'very long': 'A'.repeat(20000),
		};
		for (const [name, token] of Object.entries(tokens)) {
			const answer = await withToken(token);
			assert.equal(answer.status, 200, `${name}: ${answer.status} ${answer.text}`);
			assert.equal(answer.json.msg, 1, `${name}: ${answer.text}`);
			assert.equal(answer.json.success, false);
		}
		await refused('/getuser', {}, 1);
	});

	test('every route checks the token', async () => {
		for (const [route, body] of [
			['/modifyuser', { username: 'x' }],
			['/modifyuserauth', { password: 'long enough' }],
			['/newsheet', { name: 'x', initRows: 10, initColumns: 10 }],
			['/getsheet', { fid: 1 }],
			['/deletesheet', { fid: 1 }],
			['/recoversheet', { fid: 1 }],
			['/commitsheet', { fid: 1 }],
			['/getsheetchkp', { fid: 1, cid: 1 }],
			['/getsheetlog', { fid: 1, lid: 1 }],
			['/rollbacksheet', { fid: 1, cid: 1 }],
			['/getallchunks', { fid: 1 }],
		]) {
			await refused(route, { ...body, token: 'no.such.token' }, 1);
		}
	});

	test('Authorization: Bearer is accepted', async () => {
		const answer = await post(gateway, '/getuser', {}, { headers: { authorization: `Bearer ${user.token}` } });
		assert.equal(answer.json.msg, 10, answer.text);
		assert.equal((await post(gateway, '/getuser', {}, { headers: { authorization: 'Bearer nonsense' } })).json.msg, 1);
		assert.equal(
			(await post(gateway, '/getuser', {}, { headers: { authorization: `Basic ${user.token}` } })).json.msg,
			1,
		);
	});
});

describe('malformed requests', () => {
	let user;
	before(async () => {
		user = await register(gateway);
	});

	test('are 400 with msg 0, on every route', async () => {
		for (const route of [
			'/login',
			'/register',
			'/getuser',
			'/modifyuser',
			'/modifyuserauth',
			'/newsheet',
			'/getsheet',
			'/deletesheet',
			'/recoversheet',
			'/commitsheet',
			'/getsheetchkp',
			'/getsheetlog',
			'/rollbacksheet',
			'/getallchunks',
		]) {
			for (const body of [
				'',
				'{',
				'null',
				'[]',
				'"text"',
				'12',
				'{"token":}',
				'{"a":1}trailing',
				'\u0000',
				'{"token":"x"',
				`${'['.repeat(100000)}`,
				'{"token":"x","fid":01}',
				'{"token":"x","fid":1.}',
				'{"token":"line\nend"}',
				'{"token":"x","token":"y"}',
				'{"token":"x","t\\u006fken":"y"}',
				'\ufeff{"token":"x"}',
				'{"token":"\\ud800"}',
				`{${Array.from({ length: 200 }, (_, i) => `"m${i}":0`)}}`,
			])
				await malformed(route, body);
		}
	});

	test('wrong types are 400 with msg 0', async () => {
		const { token } = user;
		for (const [route, body] of [
			['/login', { username: 5, password: 'x' }],
			['/login', { username: 'x', password: ['x'] }],
			['/register', { username: {}, password: 'x', email: 'x' }],
			['/register', { username: 'x', password: true, email: 'x' }],
			['/getuser', { token: 5 }],
			['/modifyuser', { token, username: 12 }],
			['/modifyuserauth', { token, password: 12 }],
			['/newsheet', { token, name: 1, initRows: 10, initColumns: 10 }],
			['/newsheet', { token, name: 'x', initRows: '10', initColumns: 10 }],
			['/newsheet', { token, name: 'x', initRows: 10.5, initColumns: 10 }],
			['/getsheet', { token, fid: '1' }],
			['/getsheet', { token, fid: 1.5 }],
			['/getsheet', { token, fid: [1] }],
			['/deletesheet', { token, fid: {} }],
			['/getsheetchkp', { token, fid: 1, cid: 'x' }],
			['/getsheetlog', { token, fid: 1, lid: true }],
			['/rollbacksheet', { token, fid: 1, cid: '1' }],
			['/getallchunks', { token, fid: 'x' }],
		]) {
			await malformed(route, body);
		}
		await malformed('/getsheet', `{"token":"${token}","fid":1e99}`);
		await malformed('/getsheet', { token, fid: 1, more: Array(1000).fill(0) });
	});

	test('invalid UTF-8 and NUL do not get in', async () => {
		const count = () => cluster.psql('SELECT count(*) FROM sheet.account');
		const accounts = await count();
		for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
			await malformed(
				'/register',
				Buffer.concat([
					Buffer.from('{"username":"bad'),
					Buffer.from(bytes),
					Buffer.from('","password":"long enough","email":""}'),
				]),
			);
		}
		for (const username of ['with\u0000nul', '', 'x'.repeat(101), 'line\nbreak']) {
			const answer = await post(gateway, '/register', { username, password: 'long enough', email: '' });
			assert.equal(answer.json?.success, false, `${JSON.stringify(username)}: ${answer.text}`);
		}
		assert.equal(await count(), accounts);
	});

	test('too large a body is 413, and the gateway goes on', async () => {
		const answer = await post(gateway, '/login', { username: 'x', password: 'x'.repeat(300000) }).catch((error) => ({
			status: error.code,
		}));
		assert.equal(answer.status, 413);
		assert.equal((await post(gateway, '/getuser', { token: user.token })).json.msg, 10);
	});

	test('a body longer than announced, a negative length, a length that lies', async () => {
		const raw = (text) =>
			new Promise((resolve) => {
				const socket = net.connect(gateway.port, '127.0.0.1', () => socket.write(text));
				let answer = '';
				socket.on('data', (data) => (answer += data));
				socket.on('error', () => resolve(answer));
				socket.on('close', () => resolve(answer));
				socket.setTimeout(1500, () => {
					socket.destroy();
				});
			});
		const head = (length) =>
			`POST /login HTTP/1.1\r\nHost: ${gateway.host}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
		for (const text of [
			`${head(-5)}{"username":"x"}`,
			`${head('abc')}{}`,
			`${head('99999999999999999999')}{}`,
			'NONSENSE\r\n\r\n',
			'\u0000\u0001\u0002\r\n\r\n',
		]) {
			const answer = await raw(text);
			assert.doesNotMatch(answer, /^HTTP\/1\.1 200/, JSON.stringify(text));
		}
		await raw(head(1000) + '{'); // Never completed.
		assert.equal((await post(gateway, '/getuser', { token: user.token })).json.msg, 10);
	});

	test('unknown paths are 404; the wrong method is refused', async () => {
		assert.equal((await post(gateway, '/nosuchroute', {})).status, 404);
		assert.equal((await request(gateway, 'GET', '/no/such/file')).status, 404);
		assert.equal((await request(gateway, 'GET', '/pprof')).status, 404);
		for (const method of ['GET', 'PUT', 'DELETE']) {
			const { status } = await request(gateway, method, '/login');
			assert.ok(status === 404 || status === 405, `${method} /login: ${status}`);
		}
	});

	test('paths cannot leave the page', async () => {
		const page = (await request(gateway, 'GET', '/')).text;
		for (const name of [
			'/../jwt.key',
			'/../../etc/passwd',
			'/%2e%2e/jwt.key',
			'/..%2fjwt.key',
			'/%2e%2e%2fjwt.key',
			'/assets/../../jwt.key',
			'//etc/passwd',
			'/..\\jwt.key',
			'/%00',
			'/.%00./jwt.key',
			'/index.html%00.js',
		]) {
			const answer = await request(gateway, 'GET', name).catch(() => ({ status: 400, text: '' }));
			assert.ok(answer.status >= 300 || answer.text === page, `${name}: ${answer.status}`);
			assert.ok(!answer.text.includes(cluster.jwtKey) && !answer.text.includes('root:'), name);
		}
	});
});

test('nothing above has killed or restarted the gateway', async () => {
	assert.ok(gateway.service.alive);
	assert.equal((await request(gateway, 'GET', '/healthz')).status, 200);
});
