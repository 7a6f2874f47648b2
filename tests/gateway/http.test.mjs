/* The v1 routes over HTTP: their golden answers, their refusals, who may call them, and how the gateway starts. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Cluster, freePort, sleep, writePrivateFile } from '../lib/cluster.mjs';
import {
	call,
	getSheet,
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

let cluster;
let gateway;
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

before(async () => {
	cluster = await Cluster.start({ gateways: 0 });
});
after(() => cluster?.stop());

async function refused(path_, body, msg) {
	const answer = await post(gateway, path_, body);
	assert.equal(answer.status, 200, `${path_}: ${answer.status} ${answer.text}`);
	assert.deepEqual(
		{ success: answer.json.success, msg: answer.json.msg },
		{ success: false, msg },
		`${path_} ${JSON.stringify(body)}: ${answer.text}`,
	);
}

async function malformed(path_, body, headers) {
	const answer = await post(gateway, path_, body, { headers });
	const shown = String(typeof body === 'string' ? body : JSON.stringify(body)).slice(0, 80);
	assert.equal(answer.status, 400, `${path_} ${shown}: ${answer.status} ${answer.text}`);
	assert.equal(answer.json?.success, false, `${path_} ${shown}: ${answer.text}`);
	assert.equal(answer.json.msg, 0, `${path_} ${shown}: ${answer.text}`);
}

describe('starting', () => {
	const keyFile = (name, text) => {
		const file = path.join(cluster.directory, name);
		writePrivateFile(file, text);
		return file;
	};

	test('refuses a signing key that is short, an example, or missing', async () => {
		for (const [name, text] of [
			['short', 'k1:0123456789abcdef\n'],
			['example', 'k1:this-is-an-example-key-which-is-long-enough\n'],
			['changeme', 'k1:changeme-changeme-changeme-changeme\n'],
			['repeated', `k1:${'a'.repeat(64)}\n`],
			['empty', ''],
		]) {
			const result = await cluster.runGateway({ 'jwt-key-file': keyFile(name, text) });
			assert.equal(result.code, 2, `${name}: ${JSON.stringify(result)}`);
			assert.match(result.stderr, /key/i, name);
			const secret = text.trim().replace('k1:', '');
			assert.ok(!secret || !result.stderr.includes(secret), 'the message does not print the key');
		}
		const result = await cluster.runGateway({ 'jwt-key-file': path.join(cluster.directory, 'absent') });
		assert.equal(result.code, 2);
		assert.match(result.stderr, /absent/);
	});

	test('refuses a key file that others may read', async () => {
		const file = keyFile('readable', `k1:${cluster.jwtKey}\n`);
		fs.chmodSync(file, 0o644);
		const result = await cluster.runGateway({ 'jwt-key-file': file });
		assert.equal(result.code, 2, JSON.stringify(result));
		assert.match(result.stderr, /readable/);
	});

	test('refuses unknown settings and values out of range, with their names', async () => {
		for (const [flags, words] of [
			[{ 'no-such-setting': 1 }, /no-such-setting/],
			[{ 'listen-port': 70000 }, /listen-port/],
			[{ 'listen-port': 'eighty' }, /listen-port/],
			[{ coordinator: 'etcd' }, /coordinator/],
		]) {
			const result = await cluster.runGateway(flags);
			assert.equal(result.code, 2, JSON.stringify(result));
			assert.match(result.stderr, words);
		}
	});

	test('--help explains every setting', async () => {
		const result = await cluster.runGateway({}, { extra: ['--help'] });
		assert.equal(result.code, 0);
		for (const name of ['listen-port', 'database', 'coordinator', 'jwt-key-file', 'web-root', 'max-frame-bytes'])
			assert.match(result.stdout, new RegExp(name));
	});

	test('says which port is busy', async () => {
		const port = await freePort();
		const server = net.createServer().listen(port, '127.0.0.1');
		await new Promise((resolve) => server.once('listening', resolve));
		try {
			const result = await cluster.runGateway({ 'listen-port': port });
			assert.notEqual(result.code, 0);
			assert.notEqual(result.code, null, 'it ends by itself');
			assert.match(result.stderr, new RegExp(`${port}`));
			assert.match(result.stderr, /in use|busy/i);
		} finally {
			server.close();
		}
	});

	test('starts, and keeps a second gateway without ZooKeeper out', async () => {
		gateway = await cluster.addGateway({ 'max-body-bytes': 262144, 'allowed-origins': 'https://sheets.example.org' });
		const result = await cluster.runGateway();
		assert.notEqual(result.code, 0);
		assert.notEqual(result.code, null, 'it ends by itself');
		assert.match(result.stderr, /zookeeper|another gateway|already/i);
		assert.equal((await request(gateway, 'GET', '/healthz')).status, 200);
	});
});

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

	test('modifyuserauth changes the password and revokes older tokens', async () => {
		const user = await register(gateway);
		assert.equal(await call(gateway, '/modifyuserauth', { token: user.token, password: 'another one' }, 8), null);
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
			'with NUL': 'a\u0000b.c.d',
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

describe('sheets', () => {
	let anna;
	let ben;
	before(async () => {
		[anna, ben] = [await register(gateway), await register(gateway)];
	});

	const set = (fid, row, col, content) => cluster.psql(`SELECT sheet.set(${fid}, ${row}, ${col}, '${content}')`);

	test('newsheet answers a bare integer, getsheet its exact shape', async () => {
		const name = uniqueName('budget');
		const answer = await post(gateway, '/newsheet', { token: anna.token, name, initRows: 12, initColumns: 15 });
		assert.match(answer.text, /"data":\s*\d+\s*[,}]/, 'data is a bare number');
		assert.equal(answer.json.msg, 11);
		const fid = answer.json.data;
		const sheet = await getSheet(gateway, anna, fid);
		assert.deepEqual(Object.keys(sheet).sort(), [
			'CreatedAt',
			'UpdatedAt',
			'checkPointBrief',
			'checkpoint_num',
			'columns',
			'content',
			'fid',
			'isDeleted',
			'name',
			'owner',
		]);
		assert.deepEqual(
			{
				fid: sheet.fid,
				isDeleted: sheet.isDeleted,
				name: sheet.name,
				checkpoint_num: sheet.checkpoint_num,
				checkPointBrief: sheet.checkPointBrief,
				columns: sheet.columns,
				owner: sheet.owner,
			},
			{ fid, isDeleted: false, name, checkpoint_num: 0, checkPointBrief: [], columns: 15, owner: anna.username },
		);
		assert.match(sheet.CreatedAt, RFC3339);
		assert.match(sheet.UpdatedAt, RFC3339);
		assert.equal(sheet.content.length, 12 * 15);
		assert.ok(sheet.content.every((text) => text === ''));
	});

	test('a sheet has at least 10 by 10 cells', async () => {
		for (const [rows, columns, wantRows, wantColumns] of [
			[0, 0, 10, 10],
			[3, 20, 10, 20],
			[20, 1, 20, 10],
		]) {
			const fid = await newSheet(gateway, anna, { rows, columns });
			const sheet = await getSheet(gateway, anna, fid);
			assert.deepEqual([sheet.columns, sheet.content.length], [wantColumns, wantRows * wantColumns]);
		}
		const answer = await post(gateway, '/newsheet', { token: anna.token, name: 'without a size' });
		assert.equal(answer.json.msg, 11, answer.text);
	});

	test('absurd sizes are refused and nothing is made', async () => {
		const count = () => cluster.psql('SELECT count(*) FROM sheet.sheet');
		const sheets = await count();
		for (const [initRows, initColumns] of [
			[-1, 10],
			[10, -5],
			[2 ** 31, 10],
			[10, 2 ** 31],
			[1e9, 1e9],
			[10, 16385],
			[16777217, 10],
		]) {
			const answer = await post(gateway, '/newsheet', { token: anna.token, name: 'absurd', initRows, initColumns });
			assert.equal(answer.json.success, false, `${initRows} x ${initColumns}: ${answer.text}`);
		}
		await malformed('/newsheet', '{"token":"x","name":"absurd","initRows":1e99,"initColumns":10}');
		assert.equal(await count(), sheets);
	});

	test('content is row-major, grows exactly to what was written, and escapes only what JSON requires', async () => {
		const fid = await newSheet(gateway, anna);
		await set(fid, 0, 1, 'a/b "c" \\ é 漢 😀');
		await set(fid, 11, 3, 'below');
		await set(fid, 2, 12, 'right');
		const answer = await post(gateway, '/getsheet', { token: anna.token, fid });
		const { columns, content } = answer.json.data;
		assert.equal(columns, 13);
		assert.equal(content.length, 12 * 13);
		assert.equal(content[1], 'a/b "c" \\ é 漢 😀');
		assert.equal(content[11 * 13 + 3], 'below');
		assert.equal(content[2 * 13 + 12], 'right');
		assert.ok(!answer.text.includes('\\/'), 'a slash is never escaped');
	});

	test('names need not be unique; strange ones come back as they are', async () => {
		for (const name of ['twice', 'twice', 'a#b#c', '漢字 😀 "quoted" \\ <b>', "Robert'); DROP TABLE sheet;--"]) {
			const fid = await newSheet(gateway, anna, { name });
			assert.equal((await getSheet(gateway, anna, fid)).name, name);
		}
		const answer = await post(gateway, '/newsheet', {
			token: anna.token,
			name: 'x'.repeat(5000),
			initRows: 10,
			initColumns: 10,
		});
		assert.equal(answer.json.success, false, 'a name of 5000 characters');
	});

	test('unknown sheets are msg 14', async () => {
		for (const fid of [0, 999999999, Number.MAX_SAFE_INTEGER]) {
			await refused('/getsheet', { token: anna.token, fid }, 14);
			await refused('/deletesheet', { token: anna.token, fid }, 14);
		}
	});

	test('sheets made through v1 are open to everyone signed in who has the id; the owner can end that', async () => {
		const fid = await newSheet(gateway, anna);
		assert.equal((await getSheet(gateway, ben, fid)).owner, anna.username);
		await cluster.psql(`SELECT sheet.share_link(${fid}, NULL)`);
		for (const [route, body] of [
			['/getsheet', {}],
			['/deletesheet', {}],
			['/recoversheet', {}],
			['/commitsheet', {}],
			['/getsheetchkp', { cid: 1 }],
			['/getsheetlog', { lid: 1 }],
			['/rollbacksheet', { cid: 1 }],
			['/getallchunks', {}],
		]) {
			await refused(route, { token: ben.token, fid, ...body }, 13);
		}
		assert.equal((await getSheet(gateway, anna, fid)).fid, fid);
	});

	test('a collaborator cannot delete or purge', async () => {
		const fid = await newSheet(gateway, anna);
		await getSheet(gateway, ben, fid);
		await refused('/deletesheet', { token: ben.token, fid }, 13);
		assert.equal((await getSheet(gateway, anna, fid)).isDeleted, false);
	});

	test('deletesheet trashes, recoversheet brings back, the second deletesheet purges', async () => {
		const fid = await newSheet(gateway, anna, { name: 'to the bin' });
		await set(fid, 1, 1, 'kept');
		await refused('/recoversheet', { token: anna.token, fid }, 26);
		assert.equal(await call(gateway, '/deletesheet', { token: anna.token, fid }, 16), null);
		await refused('/getsheet', { token: anna.token, fid }, 18);
		await refused('/commitsheet', { token: anna.token, fid }, 18);
		const { sheets } = await call(gateway, '/getuser', { token: anna.token }, 10);
		assert.equal(sheets.find((sheet) => sheet.fid === fid).isDeleted, true);
		assert.equal(await call(gateway, '/recoversheet', { token: anna.token, fid }, 25), null);
		assert.equal((await getSheet(gateway, anna, fid)).content[11], 'kept');
		await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
		await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
		await refused('/getsheet', { token: anna.token, fid }, 14);
		assert.equal(await cluster.psql(`SELECT count(*) FROM sheet.log_batch WHERE sheet_id = ${fid}`), '0');
	});

	test('commit, versions, logs and rollback', async () => {
		const fid = await newSheet(gateway, anna);
		await refused('/getsheetchkp', { token: anna.token, fid, cid: 1 }, 22);
		await set(fid, 0, 0, 'one');
		await set(fid, 2, 3, 'two');
		assert.equal(await call(gateway, '/commitsheet', { token: anna.token, fid }, 28), 1);
		await refused('/commitsheet', { token: anna.token, fid }, 29);
		await set(fid, 0, 0, 'changed');

		const checkpoint = await call(gateway, '/getsheetchkp', { token: anna.token, fid, cid: 1 }, 21);
		assert.deepEqual(Object.keys(checkpoint).sort(), ['cid', 'columns', 'content', 'rows', 'timestamp']);
		assert.deepEqual(
			[checkpoint.cid, checkpoint.rows, checkpoint.columns, checkpoint.content.length],
			[1, 10, 10, 100],
		);
		assert.deepEqual([checkpoint.content[0], checkpoint.content[23]], ['one', 'two']);
		assert.match(checkpoint.timestamp, RFC3339);

		const sealed = await call(gateway, '/getsheetlog', { token: anna.token, fid, lid: 1 }, 23);
		for (const entry of sealed)
			assert.deepEqual(Object.keys(entry).sort(), ['col', 'lid', 'new', 'old', 'row', 'timestamp', 'uid', 'username']);
		const edits = sealed.filter((entry) => entry.new !== '');
		assert.deepEqual(
			edits.slice(0, 2).map((entry) => [entry.lid, entry.row, entry.col, entry.old, entry.new]),
			[
				[1, 0, 0, '', 'one'],
				[1, 2, 3, '', 'two'],
			],
		);
		assert.deepEqual([sealed.at(-1).row, sealed.at(-1).col], [-1, -1], 'a sealed log ends with a commit record');
		const open = await call(gateway, '/getsheetlog', { token: anna.token, fid, lid: 2 }, 23);
		assert.deepEqual(
			open.map((entry) => [entry.lid, entry.old, entry.new]),
			[[2, 'one', 'changed']],
		);
		await refused('/getsheetlog', { token: anna.token, fid, lid: 3 }, 24);
		await refused('/getsheetlog', { token: anna.token, fid, lid: 0 }, 24);

		assert.equal(await call(gateway, '/rollbacksheet', { token: anna.token, fid, cid: 1 }, 30), null);
		const sheet = await getSheet(gateway, anna, fid);
		assert.equal(sheet.content[0], 'one');
		assert.equal(sheet.checkpoint_num, sheet.checkPointBrief.length);
		assert.ok(sheet.checkpoint_num >= 2, 'rolling back makes a version and destroys none');
		for (const brief of sheet.checkPointBrief) {
			assert.deepEqual(Object.keys(brief).sort(), ['cid', 'timestamp']);
			assert.match(brief.timestamp, RFC3339);
		}
		await refused('/rollbacksheet', { token: anna.token, fid, cid: 99 }, 22);
		assert.equal(
			await cluster.psql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND new = 'changed'`),
			'1',
			'the log keeps every edit',
		);
	});

	test('the list of sheets has own and shared ones, without content', async () => {
		const [cleo, dora] = [await register(gateway), await register(gateway)];
		const own = await newSheet(gateway, cleo, { name: 'own' });
		const shared = await newSheet(gateway, dora, { name: 'shared' });
		await cluster.psql(`SELECT sheet.share(${shared}, '${cleo.username}', 'editor')`);
		const { sheets } = await call(gateway, '/getuser', { token: cleo.token }, 10);
		assert.deepEqual(sheets.map((sheet) => sheet.fid).sort(), [own, shared].sort());
		for (const sheet of sheets) {
			assert.ok(!sheet.content, 'only /getsheet has content');
			assert.equal(sheet.owner, sheet.fid === own ? cleo.username : dora.username);
		}
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
			assert.ok(answer.status >= 300, `${name}: ${answer.status}`);
			assert.ok(!answer.text.includes(cluster.jwtKey) && !answer.text.includes('root:'), name);
		}
	});
});

describe('the page and the operator', () => {
	test('/ is the page, with a type', async () => {
		const answer = await request(gateway, 'GET', '/');
		assert.equal(answer.status, 200);
		assert.match(answer.headers['content-type'], /^text\/html/);
		assert.match(answer.text, /<!doctype html>/i);
	});

	test('/healthz and /metrics', async () => {
		assert.equal((await request(gateway, 'GET', '/healthz')).status, 200);
		const answer = await request(gateway, 'GET', '/metrics');
		assert.equal(answer.status, 200);
		assert.match(answer.headers['content-type'], /^text\/plain/);
		assert.match(answer.text, /^# TYPE \w+ (counter|gauge|histogram)$/m);
		for (const line of answer.text.trim().split('\n'))
			assert.match(line, /^(#.*|[a-zA-Z_:][\w:]*(\{.*\})? (-?[\d.e+-]+|\+Inf|NaN))$/);
	});
});

describe('origins', () => {
	const origins = () => [`http://${gateway.host}`, 'https://sheets.example.org'];

	test("the gateway's own and the configured ones may use credentials", async () => {
		for (const origin of origins()) {
			const answer = await post(gateway, '/getuser', { token: 'x' }, { headers: { origin } });
			assert.equal(answer.headers['access-control-allow-origin'], origin);
			assert.equal(answer.headers['access-control-allow-credentials'], 'true');
			assert.match(answer.headers.vary ?? '', /origin/i);
			const preflight = await request(gateway, 'OPTIONS', '/getuser', {
				headers: {
					origin,
					'access-control-request-method': 'POST',
					'access-control-request-headers': 'content-type,authorization',
				},
			});
			assert.ok(preflight.status === 200 || preflight.status === 204, `preflight: ${preflight.status}`);
			assert.equal(preflight.headers['access-control-allow-origin'], origin);
			assert.match(preflight.headers['access-control-allow-headers'], /content-type/i);
			assert.match(preflight.headers['access-control-allow-methods'], /POST/);
		}
	});

	test('others are not, and never * or null', async () => {
		for (const origin of [
			'http://evil.example',
			'null',
			`http://${gateway.host}.evil.example`,
			`https://${gateway.host}`,
			'http://127.0.0.1:1',
			'https://sheets.example.org.evil.example',
		]) {
			for (const method of ['POST', 'OPTIONS']) {
				const answer = await request(gateway, method, '/getuser', {
					headers: { origin, 'access-control-request-method': 'POST', 'content-type': 'application/json' },
					body: method === 'POST' ? '{}' : undefined,
				});
				assert.equal(answer.headers['access-control-allow-origin'], undefined, `${method} from ${origin}`);
			}
		}
	});
});

test('nothing above has killed or restarted the gateway', async () => {
	await sleep(100);
	assert.ok(gateway.service.alive);
	assert.equal((await request(gateway, 'GET', '/healthz')).status, 200);
});
