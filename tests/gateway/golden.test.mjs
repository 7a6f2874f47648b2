/*
 * golden.test.mjs - every route of protocol v1, with each code that it answers: the whole answer, byte for byte but for what
 * differs from run to run. Existing clients take these answers apart in ways of their own, so nothing of them may change.
 */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { Cluster } from '../lib/cluster.mjs';
import { call, multipart, newSheet, register, request } from '../lib/client.mjs';

let cluster;
let gateway;
let anna; // owns the sheets
let ben; // has no role
let place; // names of what differs from run to run

before(async () => {
	cluster = await Cluster.start();
	[gateway] = cluster.gateways;
	[anna, ben] = [await register(gateway, 'anna'), await register(gateway, 'ben')];
	const [open, empty, trashed, doomed] = await Promise.all(
		['Open', 'Empty', 'Trashed', 'Doomed'].map((name) => newSheet(gateway, anna, { name })),
	);
	for (const fid of [open, empty, trashed, doomed]) await cluster.psql(`SELECT sheet.share_link(${fid}, NULL)`);
	await cluster.psql(`SELECT sheet.set(${open}, 'B1', 'a "b" <c> & /d')`);
	await call(gateway, '/commitsheet', { token: anna.token, fid: open }, 28);
	await cluster.psql(`SELECT sheet.set(${open}, 'A1', '=B1')`);
	for (const fid of [trashed, doomed]) await call(gateway, '/deletesheet', { token: anna.token, fid }, 16);
	place = { OPEN: open, EMPTY: empty, TRASHED: trashed, DOOMED: doomed, NONE: 8999999999999999, ANNA: anna.uid, BEN: ben.uid };
});
after(() => cluster?.stop());

/** What is written in the table, with this run's values. */
function filled(text) {
	return text
		.replaceAll('$TOKEN', anna.token)
		.replaceAll('$BENS', ben.token)
		.replace(/\$([A-Z]+)/g, (_, name) => String(place[name]));
}

/** An answer without what nobody can know before. */
function timeless(text) {
	return text
		.replace(/"ey[\w-]+\.[\w-]+\.[\w-]+"/g, '"A.B.C"')
		.replace(/"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"/g, '"TIME"');
}

const cells = (rows, columns, some = {}) => JSON.stringify(Array.from({ length: rows * columns }, (_, i) => some[i] ?? ''));
const refusal = (msg) => `{"success":false,"msg":${msg},"data":null}`;
const malformed = (reason) => `{"success":false,"msg":0,"data":"${reason}"}`;
const brief = (fid, name, versions = 0, trashed = false) =>
	`{"fid":$${fid},"isDeleted":${trashed},"name":"${name}","checkpoint_num":${versions},"checkPointBrief":[],"columns":10,"owner":"anna","CreatedAt":"TIME","UpdatedAt":"TIME"}`;

/* [route, body, answer]; in order, since some change what later ones see. 400 and others stand before the answer. */
const posts = [
	['/register', '{"username":"carl","password":"secret","email":"c@example.org"}', '{"success":true,"msg":5,"data":"A.B.C"}'],
	['/register', '{"username":"carl","password":"other","email":""}', refusal(6)],
	['/register', '{"username":"carl"}', 400, malformed('username, password and email are needed, as strings')],
	['/login', '{"username":"ben","password":"pw of ben"}', '{"success":true,"msg":4,"data":{"token":"A.B.C","info":{"uid":$BEN,"username":"ben","sheets":[]}}}'],
	['/login', '{"userName":"ben","PassWord":"pw of ben"}', '{"success":true,"msg":4,"data":{"token":"A.B.C","info":{"uid":$BEN,"username":"ben","sheets":[]}}}'],
	['/login', '{"USERNAME":"nobody","username":"ben","password":"pw of ben"}', '{"success":true,"msg":4,"data":{"token":"A.B.C","info":{"uid":$BEN,"username":"ben","sheets":[]}}}'],
	['/login', '{"username":"ben","password":"wrong"}', refusal(3)],
	['/login', '{"username":"nobody","password":"wrong"}', refusal(3)],
	['/login', '{"username":7,"password":"wrong"}', 400, malformed('username and password are needed, as strings')],
	['/getuser', '{"token":"$BENS"}', '{"success":true,"msg":10,"data":{"uid":$BEN,"username":"ben","sheets":[]}}'],
	['/getuser', '{"token":"x"}', refusal(1)],
	['/modifyuser', '{"token":"$BENS","username":"Ben"}', '{"success":true,"msg":7,"data":null}'],
	['/modifyuser', '{"token":"$BENS","username":"anna"}', refusal(9)],
	['/modifyuser', '{"token":"x","username":"y"}', refusal(1)],
	['/newsheet', '{"token":"x","name":"n","initRows":1,"initColumns":1}', refusal(1)],
	['/getsheet', '{"token":"$TOKEN","fid":$OPEN}', `{"success":true,"msg":12,"data":{"fid":$OPEN,"isDeleted":false,"name":"Open","owner":"anna","CreatedAt":"TIME","UpdatedAt":"TIME","checkpoint_num":1,"checkPointBrief":[{"cid":1,"timestamp":"TIME"}],"columns":10,"content":${cells(10, 10, { 0: '=B1', 1: 'a "b" <c> & /d' })}}}`],
	['/getsheet', '{"token":"$TOKEN","fid":$TRASHED}', refusal(18)],
	['/getsheet', '{"token":"$BENS","fid":$OPEN}', refusal(13)],
	['/getsheet', '{"token":"$TOKEN","fid":$NONE}', refusal(14)],
	['/getsheet', '{"token":"x","fid":$OPEN}', refusal(1)],
	['/getsheet', '{"token":"$TOKEN","fid":"1"}', 400, malformed('fid is needed, as a number')],
	['/commitsheet', '{"token":"$TOKEN","fid":$OPEN}', '{"success":true,"msg":28,"data":2}'],
	['/commitsheet', '{"token":"$TOKEN","fid":$OPEN}', refusal(29)],
	['/commitsheet', '{"token":"$TOKEN","fid":$TRASHED}', refusal(18)],
	['/commitsheet', '{"token":"$BENS","fid":$OPEN}', refusal(13)],
	['/commitsheet', '{"token":"x","fid":$OPEN}', refusal(1)],
	['/getsheetchkp', '{"token":"$TOKEN","fid":$OPEN,"cid":1}', `{"success":true,"msg":21,"data":{"cid":1,"timestamp":"TIME","rows":10,"columns":10,"content":${cells(10, 10, { 1: 'a "b" <c> & /d' })}}}`],
	['/getsheetchkp', '{"token":"$TOKEN","fid":$OPEN,"cid":77}', refusal(22)],
	['/getsheetchkp', '{"token":"$BENS","fid":$OPEN,"cid":1}', refusal(13)],
	['/getsheetchkp', '{"token":"x","fid":$OPEN,"cid":1}', refusal(1)],
	['/getsheetlog', '{"token":"$TOKEN","fid":$OPEN,"lid":2}', '{"success":true,"msg":23,"data":[{"lid":2,"timestamp":"TIME","row":0,"col":0,"old":"","new":"=B1","uid":0,"username":""},{"lid":2,"timestamp":"TIME","row":-1,"col":-1,"old":"","new":"","uid":$ANNA,"username":"anna"}]}'],
	['/getsheetlog', '{"token":"$TOKEN","fid":$OPEN,"lid":3}', '{"success":true,"msg":23,"data":[]}'],
	['/getsheetlog', '{"token":"$TOKEN","fid":$OPEN,"lid":77}', refusal(24)],
	['/getsheetlog', '{"token":"$BENS","fid":$OPEN,"lid":1}', refusal(13)],
	['/getsheetlog', '{"token":"x","fid":$OPEN,"lid":1}', refusal(1)],
	['/rollbacksheet', '{"token":"$TOKEN","fid":$OPEN,"cid":1}', '{"success":true,"msg":30,"data":null}'],
	['/rollbacksheet', '{"token":"$TOKEN","fid":$OPEN,"cid":77}', refusal(22)],
	['/rollbacksheet', '{"token":"$BENS","fid":$OPEN,"cid":1}', refusal(13)],
	['/rollbacksheet', '{"token":"x","fid":$OPEN,"cid":1}', refusal(1)],
	['/getallchunks', '{"token":"$TOKEN","fid":$OPEN}', '{"success":true,"msg":34,"data":[]}'],
	['/getallchunks', '{"token":"$BENS","fid":$OPEN}', refusal(13)],
	['/getallchunks', '{"token":"x","fid":$OPEN}', refusal(1)],
	['/deletesheet', '{"token":"$BENS","fid":$EMPTY}', refusal(13)],
	['/deletesheet', '{"token":"$TOKEN","fid":$NONE}', refusal(14)],
	['/deletesheet', '{"token":"x","fid":$EMPTY}', refusal(1)],
	['/deletesheet', '{"token":"$TOKEN","fid":$EMPTY}', '{"success":true,"msg":16,"data":null}'],
	['/recoversheet', '{"token":"$BENS","fid":$EMPTY}', refusal(13)],
	['/recoversheet', '{"token":"x","fid":$EMPTY}', refusal(1)],
	['/recoversheet', '{"token":"$TOKEN","fid":$EMPTY}', '{"success":true,"msg":25,"data":null}'],
	['/recoversheet', '{"token":"$TOKEN","fid":$EMPTY}', refusal(26)],
	['/deletesheet', '{"token":"$TOKEN","fid":$DOOMED}', '{"success":true,"msg":16,"data":null}'],
	['/getsheet', '{"token":"$TOKEN","fid":$DOOMED}', refusal(14)],
	['/getuser', '{"token":"$TOKEN"}', `{"success":true,"msg":10,"data":{"uid":$ANNA,"username":"anna","sheets":[SHEETS]}}`],
	['/modifyuserauth', '{"token":"x","password":"new"}', refusal(1)],
	['/modifyuserauth', '{"token":"$BENS","password":"new"}', '{"success":true,"msg":8,"data":"A.B.C"}'],
	['/getuser', '{"token":"$BENS"}', refusal(1)],
];

/** The sheets in an answer, each of them as it stands in the table, in any order. */
function sorted(text) {
	return text.replace(/"sheets":\[(.+)\]\}\}$/, (_, list) => {
		const sheets = list.split(/(?<=\}),(?=\{"fid")/).sort();
		assert.deepEqual(sheets, [brief('EMPTY', 'Empty'), brief('OPEN', 'Open', 3), brief('TRASHED', 'Trashed', 0, true)].map(filled).sort());
		return '"sheets":[SHEETS]}}';
	});
}

test('POST: each route and each of its codes', async () => {
	for (const [route, body, ...expected] of posts) {
		const answer = expected.pop();
		const text = filled(body);
		const got = await request(gateway, 'POST', route, {
			headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
			body: text,
		});
		assert.equal(sorted(timeless(got.text)), filled(answer), `${route} ${body}`);
		assert.equal(got.status, expected[0] ?? 200, `${route} ${body}`);
		assert.equal(got.headers['content-type'], 'application/json');
	}
	const made = await request(gateway, 'POST', '/newsheet', { body: filled('{"token":"$TOKEN","name":"n","initRows":1,"initColumns":12}') });
	assert.match(made.text, /^\{"success":true,"msg":11,"data":\d+\}$/, 'the id is a bare number');
});

test('GET /sheetws with query=1', async () => {
	for (const [query, status, answer] of [
		['token=$TOKEN&fid=$OPEN', 200, '{"success":true,"msg":20,"data":null}'],
		['token=$TOKEN&fid=$TRASHED', 200, refusal(18)],
		['token=$TOKEN&fid=$NONE', 200, refusal(14)],
		['token=x&fid=$OPEN', 200, refusal(1)],
		['token=$TOKEN', 400, malformed('fid is needed')],
	]) {
		const got = await request(gateway, 'GET', filled(`/sheetws?query=1&${query}`));
		assert.deepEqual([got.status, got.text], [status, answer], query);
	}
	const stranger = await register(gateway);
	const got = await request(gateway, 'GET', `/sheetws?query=1&token=${stranger.token}&fid=${place.OPEN}`);
	assert.equal(got.text, refusal(13));
});

test('files', async () => {
	const stranger = await register(gateway);
	const file = ['uploadfile', Buffer.from('content'), 'a b.txt', 'text/plain'];
	for (const [fields, answer] of [
		[[['fid', '$OPEN'], ['token', '$TOKEN'], file], '{"success":true,"msg":33,"data":"a b.txt","url":"http://HOST/i/KEY/a%20b.txt"}'],
		[[['fid', '$OPEN'], ['token', '$TOKEN'], file], '{"success":true,"msg":33,"data":"a b (2).txt","url":"http://HOST/i/KEY/a%20b%20%282%29.txt"}'],
		[[['fid', '$OPEN'], ['token', '$TOKEN']], refusal(31)],
		[[['fid', 'x'], ['token', '$TOKEN'], file], refusal(32)],
		[[['fid', '$NONE'], ['token', '$TOKEN'], file], refusal(14)],
		[[['fid', '$OPEN'], ['token', stranger.token], file], refusal(13)],
		[[['fid', '$OPEN'], ['token', 'x'], file], refusal(1)],
	]) {
		const values = fields.map(([name, value, ...rest]) => [name, typeof value === 'string' ? filled(value) : value, ...rest]);
		const got = await request(gateway, 'POST', '/uploadchunk', multipart(values));
		assert.deepEqual([got.status, got.text.replace(/127\.0\.0\.1:\d+\/i\/[0-9a-f]{32}/, 'HOST/i/KEY')], [200, filled(answer)]);
	}
	assert.deepEqual(await call(gateway, '/getallchunks', { token: anna.token, fid: place.OPEN }, 34), ['a b.txt', 'a b (2).txt']);
	const got = await request(gateway, 'GET', filled('/getchunk?fid=$OPEN&chunk=a%20b.txt&token=$TOKEN'));
	assert.deepEqual([got.status, got.text, got.headers['content-type']], [200, 'content', 'application/octet-stream']);
	assert.equal(got.headers['content-disposition'], "attachment; filename*=UTF-8''a%20b.txt");
	const absent = await request(gateway, 'GET', filled('/getchunk?fid=$OPEN&chunk=a.txt&token=$TOKEN'));
	assert.deepEqual([absent.status, absent.text], [404, malformed('no such file')]);
});
